//! Names of branches and tags, by git's own rules.
//!
//! A valid name is accepted by `git check-ref-format` below `refs/heads/` and `refs/tags/`, does not begin
//! with a dash and is not `HEAD`. It is therefore unambiguous in a call of git.

use std::fmt;
use std::str::FromStr;

/// Maximum bytes of a name; git's limit is that of file names.
const MAX_BYTES: usize = 1000;

/// The name of a branch or a tag, such as `main` or `release/1.0`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RefName(String);

/// Why a text names no branch and no tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RefNameError {
    /// Nothing is named.
    #[error("it is empty")]
    Empty,
    /// It is longer than any name.
    #[error("it is longer than {MAX_BYTES} bytes")]
    TooLong,
    /// git would treat it as an option.
    #[error("it begins with a dash")]
    Dash,
    /// `HEAD` and `@` name whatever is checked out.
    #[error("HEAD and @ are not branch or tag names")]
    Head,
    /// It holds a character that no name may have.
    #[error("it holds the invalid character {0:?}")]
    Character(char),
    /// It has two dots, or ends with one.
    #[error("it holds `..`, or ends with a dot")]
    Dots,
    /// It holds `@{`.
    #[error("it holds `@{{`")]
    Brace,
    /// A component is empty, begins with a dot or ends with `.lock`.
    #[error("a part of it is empty, begins with a dot or ends with `.lock`")]
    Part,
}

impl RefName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RefName {
    type Err = RefNameError;

    fn from_str(text: &str) -> Result<Self, RefNameError> {
        let is_forbidden = |c: &char| c.is_ascii_control() || " ~^:?*[\\".contains(*c);
        match text {
            "" => return Err(RefNameError::Empty),
            "HEAD" | "@" => return Err(RefNameError::Head),
            _ if text.len() > MAX_BYTES => return Err(RefNameError::TooLong),
            _ if text.starts_with('-') => return Err(RefNameError::Dash),
            _ if text.contains("..") || text.ends_with('.') => return Err(RefNameError::Dots),
            _ if text.contains("@{") => return Err(RefNameError::Brace),
            _ => {}
        }
        if let Some(character) = text.chars().find(is_forbidden) {
            return Err(RefNameError::Character(character));
        }
        if text
            .split('/')
            .any(|part| part.is_empty() || part.starts_with('.') || part.ends_with(".lock"))
        {
            return Err(RefNameError::Part);
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for RefName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::disallowed_methods,
        reason = "the real git judges the same names"
    )]

    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    /// Returns what `git check-ref-format` says about a name, as a branch and as any name.
    fn git_takes(name: &str) -> bool {
        let judge = |option: &str| {
            let mut git = Command::new("git");
            let git = git
                .args(["check-ref-format", option, name])
                .current_dir("/");
            let git = git
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .env("GIT_CONFIG_GLOBAL", "/dev/null");
            git.output().unwrap().status.success()
        };
        judge("--branch") && judge("--allow-onelevel")
    }

    #[test]
    fn every_rule_of_git_is_known() {
        for good in [
            "main",
            "v1.0",
            "release/1.0",
            "a@b",
            "x-",
            "é/ü",
            "a.b/c",
            "lock",
            "a.lockx",
            "{x}",
            "@x",
        ] {
            assert!(
                good.parse::<RefName>().is_ok() && git_takes(good),
                "{good:?}"
            );
        }
        for bad in [
            "",
            "@",
            "HEAD",
            "-x",
            "--upload-pack=x",
            ".x",
            "a/.b",
            "a..b",
            "a.",
            "a.lock",
            "a.lock/b",
            "a/",
            "/a",
            "a//b",
            "a b",
            "a~1",
            "a^",
            "a:b",
            "a?",
            "a*",
            "a[",
            "a\\b",
            "a@{1}",
            "a\u{7f}",
            "a\nb",
            "a\tb",
        ] {
            assert!(bad.parse::<RefName>().is_err(), "{bad:?}");
            assert!(!git_takes(bad), "git takes {bad:?}");
        }
        assert_eq!(
            "x".repeat(1001).parse::<RefName>(),
            Err(RefNameError::TooLong)
        );
    }

    mod properties {
        use crucible_testkit::expensive_cases;

        use super::*;

        proptest! {
            #![proptest_config(ProptestConfig::with_cases(expensive_cases()))]
            #[test]
            fn ref_name_is_valid_as_in_git(
                name in "[-./@{}a~^:?*\\[ \\\\é]{1,6}|[a-c./@-]{1,8}(\\.lock|/|\\.|@\\{)?[a./]{0,2}|(HEAD|@|-)?[a/]?"
            ) {
                prop_assert_eq!(name.parse::<RefName>().is_ok(), git_takes(&name), "{:?}", name);
            }
        }
    }
}
