//! Entries of a tree that are not plain text files: symbolic links, binary files, submodules, and files that change their mode or kind.
//!
//! All of them are refused unless the plan or the policy names the path. A link that is named must lead to a place in the same tree,
//! through no other link; binary content that is named must be binary and small enough. A submodule and a change from one
//! kind of entry to another are never let through.
//!
//! A patch need not say what it changes: [`judge_entries`] judges what git made of it.

use std::collections::BTreeMap;

use crucible_model::{Code, Finding, RepoPath, Verdict};

use crate::patch::{Content, FileMode, FilePatch, Patch};
use crate::policy::Policy;
use crate::source::Language;

/// How much of a file git looks at to tell binary content from text, in bytes.
const LOOKED_AT: usize = 8000;

/// The longest target of a link, in bytes; Linux's own limit.
const MAX_TARGET: usize = 4095;

/// One path that a patch changes, as the trees before and after it show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry<'a> {
    /// The path.
    pub path: RepoPath,
    /// What it was; nothing where it is new.
    pub old: Option<FileMode>,
    /// What it is; nothing where it is gone.
    pub new: Option<FileMode>,
    /// What it holds afterwards, where it is there and no submodule.
    pub content: Option<&'a [u8]>,
}

impl TreeEntry<'_> {
    /// Where a link leads to.
    fn target(&self) -> Option<Result<RepoPath, &'static str>> {
        (self.new == Some(FileMode::Symlink))
            .then(|| target_of(&self.path, self.content.unwrap_or_default()))
    }
}

/// The paths at which [`judge_entries`] has to know what stood before: those on the way to the targets of links.
#[must_use]
pub fn link_target_prefixes(entries: &[TreeEntry<'_>]) -> Vec<RepoPath> {
    let targets = entries.iter().filter_map(|entry| entry.target()?.ok());
    let mut ways: Vec<RepoPath> = targets.flat_map(|target| path_prefixes(&target)).collect();
    ways.sort();
    ways.dedup();
    ways
}

/// Judges what git made of a patch. `standing` holds what stood before at the paths that [`link_target_prefixes`] names.
#[must_use]
pub fn judge_entries(
    patch: &Patch,
    policy: &Policy,
    entries: &[TreeEntry<'_>],
    standing: &BTreeMap<RepoPath, FileMode>,
) -> Verdict {
    let mut verdict = Verdict::default();
    for entry in entries {
        let path = &entry.path;
        let refused = modes(path, entry.old, entry.new, policy).or_else(|| {
            let target = match entry.target()? {
                Ok(target) => target,
                Err(why) => return Some(leads_away(path, why)),
            };
            let mode_at =
                |ancestor: &RepoPath| match entries.iter().find(|entry| entry.path == *ancestor) {
                    Some(changed) => changed.new,
                    None => standing.get(ancestor).copied(),
                };
            let on_the_way = path_prefixes(&target)
                .into_iter()
                .find_map(|ancestor| match mode_at(&ancestor)? {
                    FileMode::Symlink => Some("leads through another link"),
                    FileMode::Gitlink => Some("leads into a submodule"),
                    FileMode::Regular | FileMode::Executable => None,
                });
            on_the_way.map(|why| leads_away(path, why))
        });
        let file = patch.files.iter().find(|file| file.path == *path);
        let is_binary = file.is_some_and(|file| file.content == Content::Binary);
        let content = entry.content.filter(|_| is_binary && refused.is_none());
        let refused = refused.or_else(|| binary(path, content?, policy));
        refused
            .into_iter()
            .for_each(|finding| verdict.push(finding));
    }
    verdict
}

/// What is wrong with the kind of entry that a section says it changes.
pub(crate) fn stated_entry_findings(
    file: &FilePatch,
    after: Option<&[u8]>,
    policy: &Policy,
) -> Vec<Finding> {
    let path = &file.path;
    let mut found = Vec::new();
    let is_named = policy.allows_unusual(path);
    match file.content {
        Content::Omitted => {
            let hint =
                "the patch does not hold the binary content; make it with `git diff --binary`";
            found.push(Finding::error(BINARY, path.as_str(), hint));
        }
        // A source that is given as binary would be judged by nothing.
        Content::Binary if !is_named || Language::from_path(path).is_some() => {
            let hint = match is_named {
                true => "a source file is changed as text only".to_owned(),
                false => format!(
                    "leave binary files as they are, or {}",
                    policy.source.naming_hint()
                ),
            };
            found.push(Finding::error(BINARY, path.as_str(), hint));
        }
        Content::Binary | Content::Text => {}
    }
    match modes(path, file.old_mode, file.new_mode, policy) {
        Some(finding) => found.push(finding),
        None if file.new_mode == Some(FileMode::Symlink) => {
            let target = after.map(|content| target_of(path, content));
            found.extend(
                target
                    .and_then(Result::err)
                    .map(|why| leads_away(path, why)),
            );
        }
        None => {}
    }
    found
}

const BINARY: Code = Code::new("patch-binary");
const SYMLINK: Code = Code::new("patch-symlink");

/// What is wrong with what an entry is before and after.
fn modes(
    path: &RepoPath,
    old: Option<FileMode>,
    new: Option<FileMode>,
    policy: &Policy,
) -> Option<Finding> {
    let refuse = |code: Code, hint: &str| Some(Finding::error(code, path.as_str(), hint));
    let naming = policy.source.naming_hint();
    let has = |mode: FileMode| [old, new].contains(&Some(mode));
    let is_named = policy.allows_unusual(path);
    if has(FileMode::Gitlink) {
        return Some(submodule(path));
    }
    let is_link = |mode: FileMode| mode == FileMode::Symlink;
    if old
        .zip(new)
        .is_some_and(|(old, new)| is_link(old) != is_link(new))
    {
        let hint =
            "a patch does not turn a file into a link or a link into a file; do that by hand";
        return refuse(TYPE_CHANGE, hint);
    }
    if has(FileMode::Symlink) && !is_named {
        return refuse(
            SYMLINK,
            &format!("leave symbolic links as they are, or {naming}"),
        );
    }
    let changes = old.zip(new).is_some_and(|(old, new)| old != new);
    if changes && !is_named {
        return refuse(
            MODE,
            &format!("leave the file's mode as it is, or {naming}"),
        );
    }
    None
}

/// The finding of a patch that changes a submodule.
#[must_use]
pub fn submodule(path: &RepoPath) -> Finding {
    let hint = "a patch does not change a submodule; update it by hand";
    Finding::error(Code::new("patch-gitlink"), path.as_str(), hint)
}

/// The code of a path that becomes another kind of entry.
pub(crate) const TYPE_CHANGE: Code = Code::new("patch-type-change");
/// The code of a file whose mode changes.
pub(crate) const MODE: Code = Code::new("patch-mode-change");

fn leads_away(path: &RepoPath, why: &str) -> Finding {
    Finding::error(
        SYMLINK,
        path.as_str(),
        format!("the link {why}; a link leads to a path in the same tree"),
    )
}

/// What is wrong with content that a patch gives as binary.
fn binary(path: &RepoPath, content: &[u8], policy: &Policy) -> Option<Finding> {
    let refuse = |hint: String| Some(Finding::error(BINARY, path.as_str(), hint));
    let size = content.len() as u64;
    if size > policy.max_binary_bytes {
        let limit = policy.max_binary_bytes;
        return refuse(format!(
            "it has {size} bytes, and the policy allows {limit}; bring in a smaller one"
        ));
    }
    let is_binary = content.iter().take(LOOKED_AT).any(|byte| *byte == 0);
    if is_binary {
        None
    } else {
        refuse("its content is text; give it as text, so that it can be judged".to_owned())
    }
}

/// The path to which the link at `path` with this content leads; or how it leads elsewhere.
fn target_of(path: &RepoPath, content: &[u8]) -> Result<RepoPath, &'static str> {
    let target = std::str::from_utf8(content).map_err(|_| "has a target that is not UTF-8")?;
    let is_odd = |c: char| c.is_control() || c == '\\';
    if target.is_empty() || target.len() > MAX_TARGET || target.chars().any(is_odd) {
        return Err("has a target that is not a path");
    }
    if target.starts_with('/') {
        return Err("has an absolute target");
    }
    let mut parts: Vec<&str> = path.segments().collect();
    parts.pop();
    let mut is_below = false;
    for part in target.split('/') {
        match part {
            "" | "." => {}
            // Behind a name that could be a link itself, `..` may be anywhere.
            ".." if is_below => return Err("goes back up behind a name"),
            ".." => {
                parts.pop().ok_or("leads out of the repository")?;
            }
            name => {
                is_below = true;
                parts.push(name);
            }
        }
    }
    let target: RepoPath = parts
        .join("/")
        .parse()
        .map_err(|_| "leads to no file of the repository")?;
    if target == *path {
        Err("leads to itself")
    } else {
        Ok(target)
    }
}

/// A path and the directories that it lies in.
fn path_prefixes(path: &RepoPath) -> Vec<RepoPath> {
    let text = path.as_str();
    let ends = text
        .match_indices('/')
        .map(|(at, _)| at)
        .chain([text.len()]);
    ends.filter_map(|end| text[..end].parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RepoPath {
        text.parse().unwrap()
    }

    #[test]
    fn link_must_stay_in_the_tree() {
        for (at, target, leads_to) in [
            ("src/a", "b", Some("src/b")),
            ("src/a", "./b/c", Some("src/b/c")),
            ("src/a", "../docs/b.md", Some("docs/b.md")),
            ("a", "src", Some("src")),
            ("a/b/c", "../../x", Some("x")),
            ("a", "src/", Some("src")),
            ("src/a", "../../b", None),
            ("a", "..", None),
            ("src/a", "..", None),
            ("a", "/etc/passwd", None),
            ("a", "b/../c", None),
            ("a", ".git/config", None),
            ("src/a", "../.GIT/hooks", None),
            ("a", "a", None),
            ("src/a", "../src/a", None),
            ("a", "", None),
            ("a", "b\n", None),
            ("a", "b\0c", None),
            ("a", "b\\c", None),
        ] {
            let found = target_of(&path(at), target.as_bytes());
            assert_eq!(found.ok(), leads_to.map(path), "{at} -> {target:?}");
        }
        assert!(target_of(&path("a"), b"\xff").is_err());
        assert!(target_of(&path("a"), "x".repeat(5000).as_bytes()).is_err());
    }

    fn judged(
        policy: &Policy,
        entries: &[TreeEntry<'_>],
        standing: &[(&str, FileMode)],
    ) -> Vec<String> {
        let standing = standing
            .iter()
            .map(|(at, mode)| (path(at), *mode))
            .collect();
        let verdict = judge_entries(&Patch { files: Vec::new() }, policy, entries, &standing);
        verdict
            .findings()
            .iter()
            .map(|finding| format!("{} {}", finding.code, finding.subject))
            .collect()
    }

    fn entry<'a>(
        at: &str,
        old: Option<FileMode>,
        new: Option<FileMode>,
        content: &'a str,
    ) -> TreeEntry<'a> {
        TreeEntry {
            path: path(at),
            old,
            new,
            content: new.map(|_| content.as_bytes()),
        }
    }

    #[test]
    fn visible_unusual_mode_is_allowed_if_named() {
        use FileMode::{Executable, Gitlink, Regular, Symlink};
        let named = Policy {
            named: ["l", "x", "s"].map(path).into(),
            ..Policy::default()
        };
        let plain = Policy::default();
        let never = Policy {
            unusual: crate::policy::SpecialEntries::Never,
            ..named.clone()
        };
        for (entry, code) in [
            (entry("l", None, Some(Symlink), "src/a"), "patch-symlink l"),
            (
                entry("l", Some(Symlink), Some(Symlink), "src/a"),
                "patch-symlink l",
            ),
            (entry("l", Some(Symlink), None, ""), "patch-symlink l"),
            (
                entry("x", Some(Regular), Some(Executable), "x"),
                "patch-mode-change x",
            ),
            (
                entry("x", Some(Executable), Some(Regular), "x"),
                "patch-mode-change x",
            ),
        ] {
            let entries = [entry];
            assert_eq!(
                judged(&named, &entries, &[("src", Regular)]),
                [""; 0],
                "{entries:?}"
            );
            assert_eq!(judged(&plain, &entries, &[]), [code], "{entries:?}");
            assert_eq!(judged(&never, &entries, &[]), [code], "{entries:?}");
        }
        // Naming lifts none of these.
        for (entry, code) in [
            (
                entry("s", Some(Gitlink), Some(Gitlink), ""),
                "patch-gitlink s",
            ),
            (entry("s", None, Some(Gitlink), ""), "patch-gitlink s"),
            (
                entry("s", Some(Regular), Some(Gitlink), ""),
                "patch-gitlink s",
            ),
            (
                entry("l", Some(Regular), Some(Symlink), "src/a"),
                "patch-type-change l",
            ),
            (
                entry("l", Some(Symlink), Some(Executable), "src/a"),
                "patch-type-change l",
            ),
            (entry("l", None, Some(Symlink), "../x"), "patch-symlink l"),
        ] {
            assert_eq!(
                judged(&named, std::slice::from_ref(&entry), &[]),
                [code],
                "{entry:?}"
            );
        }
    }

    #[test]
    fn a_link_leads_through_no_other_link() {
        let named = Policy {
            named: ["l", "src"].map(path).into(),
            ..Policy::default()
        };
        let link = || entry("l", None, Some(FileMode::Symlink), "src/a");
        assert_eq!(link_target_prefixes(&[link()]), ["src", "src/a"].map(path));
        for standing in [
            ("src", FileMode::Symlink),
            ("src/a", FileMode::Symlink),
            ("src", FileMode::Gitlink),
        ] {
            assert_eq!(
                judged(&named, &[link()], &[standing]),
                ["patch-symlink l"],
                "{standing:?}"
            );
        }
        // One that the same patch makes, and one that it takes away.
        let tree_entry = entry("src", None, Some(FileMode::Symlink), "docs");
        assert_eq!(
            judged(&named, &[link(), tree_entry], &[]),
            ["patch-symlink l"]
        );
        let missing_tree_entry = entry("src", Some(FileMode::Symlink), None, "");
        assert_eq!(
            judged(
                &named,
                &[link(), missing_tree_entry],
                &[("src", FileMode::Symlink)]
            ),
            [""; 0]
        );
    }
}
