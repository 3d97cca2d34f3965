//! What of a project no agent and no gate is shown: secrets, by their names, their places and by what files hold; and Crucible's own directory.
//!
//! What always holds: a renamed secret does not get into a copy as long as a rule of
//! `crucible-secrets` knows what it holds.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use crucible_repo::{FileContent, OmitReason, TreeCopyOptions, TreeLimits};
use crucible_secrets::{HELD_BACK, RuleId, Scanner, is_secret_directory, is_secret_file};

/// Crucible's directory in a project.
const OWN: &str = ".crucible";
/// Bytes of a large file that are scanned at once.
const PIECE: usize = 256 << 10;
/// Bytes that are scanned once more with the next piece.
const OVERLAP: usize = 4 * HELD_BACK;

/// How a copy of a project is made.
pub(super) fn options() -> TreeCopyOptions {
    TreeCopyOptions {
        path: Arc::new(by_path),
        content: Arc::new(by_content),
        limits: TreeLimits::STANDARD,
    }
}

fn by_path(path: &Path) -> Option<OmitReason> {
    if path
        .file_name()
        .is_some_and(|name| name.eq_ignore_ascii_case(OWN))
    {
        return Some(OmitReason::Own);
    }
    let text = path.to_string_lossy();
    let why = if is_secret_file(&text) {
        "its name says that it holds secrets"
    } else if is_secret_directory(&text) {
        "programs keep secrets there"
    } else {
        return None;
    };
    Some(OmitReason::Secret(why.to_owned()))
}

fn by_content(content: FileContent<'_>) -> io::Result<Option<OmitReason>> {
    let rule = match content {
        FileContent::Whole(bytes) => Scanner::builtin().first_in_file(bytes),
        FileContent::Large(file) => first_in_large(file)?,
    };
    Ok(rule.map(|rule| OmitReason::Secret(format!("it holds what looks like one ({rule})"))))
}

/// Returns the rule that matches a secret in a large file. Reads it in chunks that overlap, so that a secret across a
/// boundary is found, also in UTF-16.
fn first_in_large(file: &mut dyn Read) -> io::Result<Option<&'static RuleId>> {
    let mut window = Vec::with_capacity(PIECE + OVERLAP);
    loop {
        let consumed = window.len().saturating_sub(OVERLAP);
        window.drain(..consumed);
        let before = window.len();
        (&mut *file).take(PIECE as u64).read_to_end(&mut window)?;
        if window.len() == before {
            return Ok(None);
        }
        if let Some(rule) = Scanner::builtin().first_in_file(&window) {
            return Ok(Some(rule));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made up, and written so that nobody takes it for one.
    fn token() -> String {
        ["ghp_", "q7Zt4Lm2WsR8vK1xq7Zt4Lm2WsR8vK1x3Pa9"].concat()
    }

    fn large(bytes: &[u8]) -> bool {
        by_content(FileContent::Large(&mut &bytes[..]))
            .unwrap()
            .is_some()
    }

    #[test]
    fn secret_is_found_anywhere_in_large_file() {
        let text = token();
        assert!(
            by_content(FileContent::Whole(text.as_bytes()))
                .unwrap()
                .is_some()
        );
        for before in [0, PIECE - 20, PIECE + 1] {
            let mut bytes = b"x\n".repeat(before / 2);
            bytes.extend(text.as_bytes());
            bytes.extend(b"\n");
            bytes.extend(b"y\n".repeat(PIECE / 4));
            assert!(large(&bytes), "{before}");
            let wide: Vec<u8> = bytes.iter().flat_map(|byte| [*byte, 0]).collect();
            assert!(large(&wide), "wide, {before}");
        }
        assert!(!large(&b"nothing here\n".repeat(PIECE / 8)));
        assert!(!large(&vec![0; 3 * PIECE]));
    }

    #[test]
    fn names_and_places_are_known_whatever_their_case() {
        for path in [
            ".ENV",
            "a/.Env.local",
            ".envs",
            "x/.npmrc",
            ".NETRC",
            "k/Server.PEM",
            ".ssh",
            "a/.Crucible",
        ] {
            assert!(by_path(Path::new(path)).is_some(), "{path}");
        }
        for path in [
            "src/a.py",
            "environment.md",
            "tests/test_skill_a.py",
            "keys.py",
        ] {
            assert_eq!(by_path(Path::new(path)), None, "{path}");
        }
    }
}
