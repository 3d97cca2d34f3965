//! Paths inside a repository.
//!
//! A [`RepoPath`] is relative, POSIX and normalised, and never points into `.git` in any spelling that some
//! file system accepts. All code that reads or changes repository files by name uses this type. An invalid
//! path is refused, not repaired.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Maximum length of a path in bytes, as on Linux.
const MAX_BYTES: usize = 4096;

/// A file or directory inside a repository, relative to its root.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RepoPath(String);

/// Why a text is not a path inside a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RepoPathError {
    /// Nothing is named.
    #[error("the path is empty")]
    Empty,
    /// It starts at the file system's root.
    #[error("the path is absolute; name it relative to the repository's root")]
    Absolute,
    /// It names a drive or a share.
    #[error("the path names a drive")]
    Drive,
    /// A segment is `.`, `..` or empty.
    #[error("the path has an empty, `.` or `..` segment; write it in its shortest form")]
    NotNormalised,
    /// It holds a NUL byte.
    #[error("the path holds a NUL byte")]
    Nul,
    /// It has a backslash that would leave the repository or reach git's directory as a separator.
    #[error("the path uses backslashes; separate its parts with `/`")]
    Backslash,
    /// It is inside git's own directory, in any spelling.
    #[error("the path is inside git's own directory")]
    GitDirectory,
    /// It is not UTF-8.
    #[error("the path is not UTF-8")]
    NotUtf8,
    /// It is longer than any file system allows.
    #[error("the path is longer than {MAX_BYTES} bytes")]
    TooLong,
}

impl RepoPath {
    /// Reads a path as git writes it: raw bytes, no quoting.
    ///
    /// # Errors
    ///
    /// Fails when the bytes are not UTF-8 or no path inside a repository.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RepoPathError> {
        std::str::from_utf8(bytes)
            .map_err(|_| RepoPathError::NotUtf8)?
            .parse()
    }

    /// The path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the components of the path, root first.
    pub fn segments(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/')
    }

    /// The path of the directory that contains it; empty at the top of the repository.
    #[must_use]
    pub fn directory(&self) -> &str {
        self.0
            .rsplit_once('/')
            .map_or("", |(directory, _)| directory)
    }

    /// The last name.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// Returns whether a component has a backslash, which its author may have meant as a separator.
    #[must_use]
    pub fn has_backslash(&self) -> bool {
        self.0.contains('\\')
    }

    /// Returns the text after the last dot of the file name, unless the name begins with that dot.
    #[must_use]
    pub fn extension(&self) -> Option<&str> {
        let (stem, extension) = self.file_name().rsplit_once('.')?;
        (!stem.is_empty()).then_some(extension)
    }
}

impl FromStr for RepoPath {
    type Err = RepoPathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        check(text)?;
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for RepoPath {
    type Error = RepoPathError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        check(&text)?;
        Ok(Self(text))
    }
}

impl From<RepoPath> for String {
    fn from(path: RepoPath) -> Self {
        path.0
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<std::path::Path> for RepoPath {
    fn as_ref(&self) -> &std::path::Path {
        self.0.as_ref()
    }
}

/// A place in a repository and everything below it: `src/`, `src/lib.rs`, or `.` for the whole.
///
/// Compared by whole segments: the prefix `src` holds `src/a` and not `srcs/a`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PathPrefix(Option<RepoPath>);

impl PathPrefix {
    /// The whole repository.
    pub const ALL: Self = Self(None);

    /// Returns whether `path` is this place or below it.
    #[must_use]
    pub fn contains(&self, path: &RepoPath) -> bool {
        match &self.0 {
            None => true,
            Some(prefix) => path
                .0
                .strip_prefix(&prefix.0)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
        }
    }

    /// Returns whether a denial of this place covers `path`. Case is ignored and a backslash separates like `/`: some
    /// systems do so, and a denial must not depend on the spelling.
    #[must_use]
    pub fn denies(&self, path: &RepoPath) -> bool {
        let spelled = |path: &RepoPath| path.0.to_lowercase().replace('\\', "/");
        self.0.as_ref().is_none_or(|place| {
            spelled(path)
                .strip_prefix(&spelled(place))
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// Whether this is the whole repository.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.0.is_none()
    }
}

impl FromStr for PathPrefix {
    type Err = RepoPathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let trimmed = text.strip_suffix('/').unwrap_or(text);
        if text == "." || text == "./" {
            return Ok(Self::ALL);
        }
        trimmed.parse().map(|path| Self(Some(path)))
    }
}

impl TryFrom<String> for PathPrefix {
    type Error = RepoPathError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<PathPrefix> for String {
    fn from(prefix: PathPrefix) -> Self {
        prefix.to_string()
    }
}

impl From<RepoPath> for PathPrefix {
    fn from(path: RepoPath) -> Self {
        Self(Some(path))
    }
}

impl fmt::Display for PathPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_ref().map_or(".", RepoPath::as_str))
    }
}

fn check(text: &str) -> Result<(), RepoPathError> {
    if text.is_empty() {
        return Err(RepoPathError::Empty);
    }
    if text.len() > MAX_BYTES {
        return Err(RepoPathError::TooLong);
    }
    if text.contains('\0') {
        return Err(RepoPathError::Nul);
    }
    if text.starts_with('/') {
        return Err(RepoPathError::Absolute);
    }
    if text.starts_with("\\\\")
        || matches!(text.as_bytes(), [drive, b':', ..] if drive.is_ascii_alphabetic())
    {
        return Err(RepoPathError::Drive);
    }
    // A backslash is an ordinary character here and a separator elsewhere, so a harmless name may have one.
    let is_part = |part: &str| !matches!(part, "" | "." | "..") && !is_git_directory(part);
    if text.contains('\\') && !text.split(['/', '\\']).all(is_part) {
        return Err(RepoPathError::Backslash);
    }
    for segment in text.split('/') {
        if matches!(segment, "" | "." | "..") {
            return Err(RepoPathError::NotNormalised);
        }
        if is_git_directory(segment) {
            return Err(RepoPathError::GitDirectory);
        }
    }
    Ok(())
}

/// Returns whether some file system treats this name as `.git`: another case, short names of FAT and NTFS,
/// trailing dots and spaces, a stream suffix, or code points that HFS+ ignores.
fn is_git_directory(segment: &str) -> bool {
    let visible: String = segment.chars().filter(|c| !is_ignored_by_hfs(*c)).collect();
    let name = visible.split(':').next().unwrap_or_default();
    let name = name.trim_end_matches(['.', ' ']).to_ascii_lowercase();
    name == ".git"
        || name
            .strip_prefix("git~")
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// The code points that HFS+ leaves out when it compares names.
fn is_ignored_by_hfs(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn accepts_the_names_that_real_repositories_hold() {
        for good in [
            "a",
            "src/lib.rs",
            "a b/c\nd",
            ".gitignore",
            ".github/x",
            "git",
            "a/...",
            "ünï/codé",
            "x~1",
            ".gitmodules",
            "units/dev-disk-by\\x2did.mount",
        ] {
            assert!(good.parse::<RepoPath>().is_ok(), "{good:?}");
        }
    }

    #[test]
    fn path_outside_repository_is_refused() {
        use RepoPathError::*;
        for (bad, why) in [
            ("", Empty),
            ("/etc/passwd", Absolute),
            ("C:/x", Drive),
            ("c:x", Drive),
            ("\\\\host\\share", Drive),
            ("a\\..\\b", Backslash),
            ("a\\", Backslash),
            ("a/b\\.git\\config", Backslash),
            ("a\\\\b", Backslash),
            ("..", NotNormalised),
            ("a/../b", NotNormalised),
            ("a/./b", NotNormalised),
            ("a//b", NotNormalised),
            ("a/", NotNormalised),
            ("a\0b", Nul),
        ] {
            assert_eq!(bad.parse::<RepoPath>(), Err(why), "{bad:?}");
        }
        assert_eq!("a".repeat(4097).parse::<RepoPath>(), Err(TooLong));
        assert_eq!(RepoPath::from_bytes(b"\xff"), Err(NotUtf8));
    }

    #[test]
    fn refuses_every_spelling_of_the_git_directory() {
        for bad in [
            ".git",
            ".GIT/config",
            "a/.git/hooks/x",
            ".Git",
            "git~1",
            "GIT~1/x",
            "git~12",
            ".git.",
            ".git ",
            ".git. .",
            ".git::$INDEX_ALLOCATION",
            ".git:x",
            ".g\u{200c}it",
            "\u{feff}.git",
            "sub/GIT~2/config",
        ] {
            assert_eq!(
                bad.parse::<RepoPath>(),
                Err(RepoPathError::GitDirectory),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn a_prefix_holds_whole_segments_only() {
        let prefix: PathPrefix = "src/".parse().unwrap();
        assert!(prefix.contains(&"src/a".parse().unwrap()));
        assert!(prefix.contains(&"src".parse().unwrap()));
        assert!(!prefix.contains(&"srcs/a".parse().unwrap()));
        assert!(PathPrefix::ALL.contains(&"x".parse().unwrap()));
        assert!("../x".parse::<PathPrefix>().is_err());
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn parsed_path_stays_inside_root(text in "\\PC{0,40}|[./a\\\\:~]{0,20}") {
                if let Ok(path) = text.parse::<RepoPath>() {
                    let joined = std::path::Path::new("/root").join(path.as_str());
                    prop_assert!(joined.components().all(|c| !matches!(c, std::path::Component::ParentDir)));
                    prop_assert!(joined.starts_with("/root"));
                    prop_assert_eq!(path.to_string(), text);
                }
            }
        }
    }
}
