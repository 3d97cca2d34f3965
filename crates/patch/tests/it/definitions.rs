//! Real files as definitions of themselves.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a file that cannot be read fails its test"
)]

use std::collections::BTreeMap;
use std::path::Path;

use crucible_model::RepoPath;
use crucible_patch::{Edit, EditKind, Proposal, apply, can_splice};

fn text(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    String::from_utf8(bytes).unwrap()
}

/// The sources of this crate, whole, as definitions of themselves.
#[test]
fn real_files_are_unchanged_by_their_own_definitions() {
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
            assert!(can_splice(&name, content.as_bytes()), "{}", path.display());
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
