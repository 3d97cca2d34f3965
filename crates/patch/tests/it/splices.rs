//! Each folder in `splices/` is one file, an answer of definitions (or a whole file that lost some), and what comes out.
//!
//! `before.EXT` is the file, `answer.md` the answer, `how.txt`, where it is there, the edit format and the definitions
//! that may go. `after.EXT` is the file afterwards, byte for byte; `says.txt` holds the codes and hints of the
//! findings, of an error too.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a scenario that cannot be read fails its test"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crucible_model::{EditFormat, RepoPath, Untrusted};
use crucible_patch::{Edit, EditKind, Proposal, apply, read_answer, takes_definitions, with_lost};

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
    let made = read_answer(format, &answer, std::slice::from_ref(&path)).and_then(|proposal| {
        let after = apply(&proposal, &files)?;
        Ok(with_lost(&proposal, &files, after, &may_drop))
    });
    match made {
        Ok(made) => {
            let says = made
                .findings
                .iter()
                .map(|finding| format!("{finding}\n"))
                .collect();
            (
                extension,
                Some(String::from_utf8(made.files[&path].clone()).unwrap()),
                says,
            )
        }
        Err(error) => (extension, None, format!("{}\n", error.finding())),
    }
}

#[test]
fn every_answer_is_put_into_its_file_as_expected() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/splices");
    let mut folders: Vec<PathBuf> = std::fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    folders.sort();
    assert!(
        folders.len() >= 60,
        "scenarios are missing: {}",
        folders.len()
    );
    let mut wrong = Vec::new();
    for folder in folders {
        let (extension, after, says) = outcome(&folder);
        let expected = folder.join(format!("after.{extension}"));
        let wanted = expected.exists().then(|| text(&expected));
        let said = folder.join("says.txt");
        let wanted_says = if said.exists() {
            text(&said)
        } else {
            String::new()
        };
        if after != wanted || says != wanted_says {
            wrong.push(format!(
                "{}\n{}{says}",
                folder.display(),
                after.unwrap_or_default()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The sources of this crate, whole, as definitions of themselves.
#[test]
fn real_files_take_their_own_definitions_and_stay_as_they_are() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
        {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let (name, content) = ("src/a.rs".parse::<RepoPath>().unwrap(), text(&path));
            assert!(
                takes_definitions(&name, content.as_bytes()),
                "{}",
                path.display()
            );
            let files = BTreeMap::from([(name.clone(), content.clone().into_bytes())]);
            let proposal = Proposal::Edits(vec![Edit {
                path: name.clone(),
                kind: EditKind::Definitions { content },
            }]);
            assert_eq!(
                apply(&proposal, &files).unwrap(),
                files,
                "{}",
                path.display()
            );
            seen += 1;
        }
    }
    assert!(seen > 20);
}
