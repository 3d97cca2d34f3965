//! The files that the value of a setting names, whatever the setting.
//!
//! Which settings start programs, and by which words, only git and the shell know. A file that none of them starts is guarded for
//! nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crucible_host::env::Environment;

use super::command::as_path;
use super::config_files::{Entry, path_in};
use super::nested;

/// Sections whose values are names of people, not commands.
const PEOPLE: [&str; 5] = [
    "user.",
    "author.",
    "committer.",
    "git_author_",
    "git_committer_",
];
/// Bytes that end a word of a command.
const PUNCTUATION: &[u8] = b"\"'`;&|()<>={}!,:";
/// Endings of programs that an interpreter finds without a path.
const SCRIPTS: [&str; 8] = ["bash", "js", "mjs", "php", "pl", "py", "rb", "sh"];
/// The file that Python runs if it gets a directory.
const MAIN: &str = "__main__.py";

/// Returns the paths that an entry names in a work tree: hooks, and the files of [`files_in`].
pub(super) fn named_by(entry: &Entry, top: &Path, env: &Environment) -> Vec<PathBuf> {
    match &entry.key[..] {
        b"core.hookspath" => {}
        // Its value is a work tree, in which the others are found.
        b"core.worktree" => return Vec::new(),
        _ => return files_in(entry, top, env),
    }
    let Some(hooks) = path_in(&entry.value, top, env) else {
        return Vec::new();
    };
    let mut places = nested::links_in(&hooks);
    // The hooks of husky start those in the directory above.
    if hooks.ends_with("_") {
        places.extend(hooks.parent().map(Path::to_owned));
    }
    places.push(hooks.join(""));
    places
}

/// Returns the files that a value names: the whole of it, its quoted parts and each of its words. Directories count
/// where the setting is called a path or a directory. Programs are started at the top of the work tree.
///
/// A file that does not exist counts, too, if its directory exists: else it could be created.
fn files_in(entry: &Entry, top: &Path, env: &Environment) -> Vec<PathBuf> {
    let (key, value) = (&entry.key[..], &entry.value[..]);
    let is_directory = key.ends_with(b"path") || key.ends_with(b"dir");
    let is_path = is_directory || key.ends_with(b"file");
    let is_of_people = PEOPLE
        .iter()
        .any(|section| key.starts_with(section.as_bytes()));
    if is_of_people && !is_path && !key.ends_with(b"key") {
        return Vec::new();
    }
    // The first word of a command is found on `PATH`, unless it is a path.
    let first = value
        .split(u8::is_ascii_whitespace)
        .next()
        .map(|word| strip(word, b"!\"'"));
    let mut files = Vec::new();
    let (mut directories, mut free) = (BTreeSet::new(), BTreeSet::new());
    for word in words(value) {
        let word = &word[..];
        if !is_path && !word.contains(&b'/') && first == Some(strip(word, b"!\"'")) {
            continue;
        }
        for path in paths(word, top, env) {
            let is_in_directory =
                path.file_name().is_some() && path.parent().is_some_and(Path::is_dir);
            if !is_in_directory {
                continue;
            }
            match path.metadata() {
                Ok(meta) if meta.is_file() => files.push(path),
                Ok(_) if is_directory && path != top => files.push(path),
                Ok(_) if path.starts_with(top) && path != top && !path.ends_with("..") => {
                    directories.insert(path);
                }
                Ok(_) => {}
                // A command with its arguments is no name.
                Err(_) if word == value && !is_path && first != Some(word) => {}
                // A link that leads nowhere stands for what is created there.
                Err(_) if word.contains(&b'/') || is_script(word) => files.push(path),
                Err(_) => {}
            }
        }
        if !word.starts_with(b"/") {
            free.insert(word.to_owned());
        }
    }
    // `cd tools && sh check`, `python3 tools`.
    for directory in directories {
        let names = free
            .iter()
            .map(|word| directory.join(as_path(word)))
            .chain([directory.join(MAIN)]);
        files.extend(names.filter(|path| path.is_file()));
    }
    files
}

/// Returns the paths that a word may mean. Before a `/`, a variable or the output of a command may stand for the top.
fn paths(word: &[u8], top: &Path, env: &Environment) -> Vec<PathBuf> {
    let home = [&b"$HOME/"[..], b"${HOME}/", b"~/"]
        .iter()
        .find_map(|home| word.strip_prefix(*home));
    if let Some(below) = home {
        let home = env.home();
        return home
            .map(|home| home.join(as_path(below)))
            .into_iter()
            .collect();
    }
    let mut paths = vec![top.join(as_path(word))];
    let slash = word.iter().position(|byte| *byte == b'/');
    if let Some(at) = slash.filter(|_| matches!(word.first(), Some(b'$' | b'/'))) {
        let begin = word[at..].iter().position(|byte| *byte != b'/');
        paths.extend(begin.map(|begin| top.join(as_path(&word[at + begin..]))));
    }
    paths
}

/// Returns a value, its quoted parts, its words, and its words as the shell reads them.
fn words(value: &[u8]) -> BTreeSet<Vec<u8>> {
    let ends_word = |byte: &u8| byte.is_ascii_whitespace() || PUNCTUATION.contains(byte);
    // Between quotes a name may hold blanks.
    let quoted = value.split(|byte| b"\"'".contains(byte));
    let plain = value.split(ends_word).filter(|word| !word.contains(&b'\\'));
    let mut words: BTreeSet<Vec<u8>> = std::iter::once(value)
        .chain(quoted)
        .chain(plain)
        .map(<[u8]>::to_owned)
        .collect();
    let (mut word, mut is_escaped) = (Vec::new(), false);
    for byte in value {
        match byte {
            b'\\' if !is_escaped => is_escaped = true,
            _ if ends_word(byte) && !is_escaped => {
                words.insert(std::mem::take(&mut word));
            }
            _ => {
                word.push(*byte);
                is_escaped = false;
            }
        }
    }
    words.insert(word);
    words.remove(&b""[..]);
    words
}

fn is_script(word: &[u8]) -> bool {
    as_path(word)
        .extension()
        .and_then(|ending| ending.to_str())
        .is_some_and(|ending| SCRIPTS.contains(&ending))
}

/// Returns the text without these bytes at both ends.
fn strip<'t>(text: &'t [u8], bytes: &[u8]) -> &'t [u8] {
    let is_kept = |byte: &u8| !bytes.contains(byte);
    let begin = text.iter().position(is_kept).unwrap_or(text.len());
    let end = text.iter().rposition(is_kept).map_or(begin, |at| at + 1);
    &text[begin..end]
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test lays out files by hand")]
mod tests {
    use super::*;

    #[test]
    fn files_of_commands_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path();
        std::fs::create_dir_all(top.join("tools")).unwrap();
        for file in ["tools/my check", "tools/check", "main", "tools/__main__.py"] {
            std::fs::write(top.join(file), "").unwrap();
        }
        let named = |value: &str| -> Vec<String> {
            let entry = Entry {
                key: b"filter.x.clean".to_vec(),
                value: value.as_bytes().to_vec(),
            };
            let mut files = named_by(&entry, top, &Environment::default());
            files.sort();
            files.dedup();
            let below = |path: &PathBuf| path.strip_prefix(top).unwrap().display().to_string();
            files.iter().map(below).collect()
        };
        for (value, files) in [
            ("tools/check %f", &["tools/check"][..]),
            ("sh tools/my\\ check", &["tools/my check"]),
            ("'tools/my check'", &["tools/my", "tools/my check"]),
            ("true\nsh tools/new", &["tools/new"]),
            ("sh new.sh", &["new.sh"]),
            ("$PWD/tools/check", &["tools/check"]),
            (
                "$(git rev-parse --show-toplevel)/tools/check",
                &["tools/check"],
            ),
            (
                "cd tools && sh check",
                &["tools/__main__.py", "tools/check"],
            ),
            ("python3 tools", &["tools/__main__.py"]),
            ("main", &[]),
            ("less -R", &[]),
            ("cat new", &[]),
            ("elsewhere/new", &[]),
        ] {
            assert_eq!(named(value), files, "{value:?}");
        }
    }
}
