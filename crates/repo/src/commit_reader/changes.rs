//! Which files differ between two commits, also behind links.

use std::collections::BTreeSet;

use super::{CommitReader, empty_tree};
use crate::error::RepoError;
use crate::git::Call;
use crate::oid::Oid;

impl CommitReader {
    /// Returns the files that differ between `older` and `newer`, also those that one of them does not have. Without `older`,
    /// all files of `newer`.
    ///
    /// # Errors
    ///
    /// Fails when git does.
    pub async fn changed_files(
        &self,
        older: Option<&Oid>,
        newer: &Oid,
    ) -> Result<BTreeSet<String>, RepoError> {
        let words = [
            "diff-tree",
            "-r",
            "-z",
            "--name-only",
            "--no-renames",
            "--end-of-options",
            older.map_or(empty_tree(newer), Oid::as_str),
            newer.as_str(),
        ];
        let output = self.ok(Call::new(words)).await?;
        let names = output.records();
        Ok(names
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect())
    }

    /// Returns which of `paths` lead to another file in `newer` than in `older`, links followed. Directories do not count.
    ///
    /// # Errors
    ///
    /// Fails when git does.
    pub async fn changed_behind_links(
        &self,
        older: &Oid,
        newer: &Oid,
        paths: &BTreeSet<String>,
    ) -> Result<BTreeSet<String>, RepoError> {
        let paths: Vec<&String> = paths.iter().filter(|path| !path.contains('\n')).collect();
        let names = [older, newer]
            .into_iter()
            .flat_map(|tree| paths.iter().map(move |path| format!("{tree}:{path}\n")));
        let names = names.collect::<String>().into_bytes();
        let words = [
            "cat-file",
            "--batch-check=%(objecttype) %(objectname)",
            "--follow-symlinks",
        ];
        let output = self.ok(Call::new(words).reading(names)).await?;
        let mut rest = output.stdout.as_slice();
        let mut replies = Vec::with_capacity(paths.len() * 2);
        while !rest.is_empty() {
            replies.push(take_reply(&mut rest));
        }
        let (before, after) = replies.split_at(replies.len() / 2);
        // Without an object, a reply repeats the name with its tree.
        let without = |reply: &[u8], tree: &Oid| {
            String::from_utf8_lossy(reply).replacen(tree.as_str(), "", 1)
        };
        let changed = paths.into_iter().zip(before.iter().zip(after));
        Ok(changed
            .filter(|(_, (before, after))| {
                without(before, older) != without(after, newer) && !after.starts_with(b"tree ")
            })
            .map(|(path, _)| path.clone())
            .collect())
    }
}

/// Takes one reply of `cat-file --follow-symlinks`. A link that leads nowhere in the tree has a second line, of the size that
/// the first one gives.
fn take_reply<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let text = *rest;
    let line_end = |from: usize| {
        let end = text[from..].iter().position(|byte| *byte == b'\n');
        end.map_or(text.len(), |end| from + end)
    };
    let first = line_end(0);
    let line = std::str::from_utf8(&text[..first]).unwrap_or_default();
    let end = match line.split_once(' ') {
        Some(("dangling" | "symlink" | "loop" | "notdir", size)) => {
            let size = size.parse().unwrap_or(0);
            text.len().min(first.saturating_add(1).saturating_add(size))
        }
        _ => first,
    };
    *rest = text.get(end + 1..).unwrap_or_default();
    &text[..end]
}
