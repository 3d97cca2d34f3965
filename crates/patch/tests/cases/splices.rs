//! Each folder in `splices/` is one file, an answer of definitions (or a whole file that lost some), and what comes out.
//!
//! `before.EXT` is the file, `answer.md` the answer, `how.txt`, where it is there, the edit format and the definitions
//! that may go. `after.EXT` is the file afterwards, byte for byte; `says.txt` holds the codes and hints of the
//! findings, of an error too.

use std::collections::BTreeMap;
use std::path::Path;

use crucible_model::{EditFormat, RepoPath, Untrusted};
use crucible_patch::{apply, read_answer, restore_lost_definitions};

fn text(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    String::from_utf8(bytes).unwrap()
}

/// What comes out: the file, where there is one, and what is said.
fn outcome(folder: &Path) -> (String, Option<String>, String) {
    let mut entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let before = entries
        .find(|path| path.file_stem().unwrap() == "before")
        .unwrap();
    let extension = before.extension().unwrap().to_str().unwrap().to_owned();
    let path: RepoPath = format!("src/a.{extension}").parse().unwrap();
    let how = std::fs::read_to_string(folder.join("how.txt"))
        .unwrap_or_else(|_| "definitions".to_owned());
    let mut how = how.lines().map(str::to_owned);
    let format: EditFormat = serde_json::from_value(how.next().unwrap().into()).unwrap();
    let may_drop: Vec<String> = how.collect();
    let files = BTreeMap::from([(path.clone(), text(&before).into_bytes())]);
    let answer = Untrusted::new(text(&folder.join("answer.md")));
    let restored_definitions =
        read_answer(format, &answer, std::slice::from_ref(&path)).and_then(|proposal| {
            let after = apply(&proposal, &files)?;
            Ok(restore_lost_definitions(
                &proposal, &files, after, &may_drop,
            ))
        });
    match restored_definitions {
        Ok(made) => {
            let message = made
                .findings
                .iter()
                .map(|finding| format!("{finding}\n"))
                .collect();
            (
                extension,
                Some(String::from_utf8(made.files[&path].clone()).unwrap()),
                message,
            )
        }
        Err(error) => (extension, None, format!("{}\n", error.finding())),
    }
}

/// Compares the file and what is reported with the expected files.
pub(crate) fn check(folder: &Path) -> Result<(), String> {
    let (extension, after, message) = outcome(folder);
    let expected = folder.join(format!("after.{extension}"));
    let expected_after = expected.exists().then(|| text(&expected));
    let path = folder.join("says.txt");
    let expected_says = if path.exists() {
        text(&path)
    } else {
        String::new()
    };
    if after == expected_after && message == expected_says {
        return Ok(());
    }
    Err(format!("{}\n{message}", after.unwrap_or_default()))
}
