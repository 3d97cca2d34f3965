//! The target of an inspection: a GitHub or local repository, at a ref, optionally a sub-project.
//!
//! The parsed values are used in addresses, in calls of `gh` and git and in file names; so only values
//! that GitHub or git would accept are allowed.

use std::path::PathBuf;

use crucible_model::{RepoPath, RepoPathError};
use crucible_repo::{Oid, RefName, RefNameError, is_github_name, is_github_owner};

/// `owner/repo` as GitHub allows it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoName {
    owner: String,
    name: String,
}

impl RepoName {
    /// Parses `owner/repo`, with or without `.git` at its end.
    ///
    /// # Errors
    ///
    /// [`TargetError::Name`] if GitHub does not allow such names.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let parts = text
            .split_once('/')
            .map(|(owner, name)| (owner, without_git(name)));
        match parts {
            Some((owner, name))
                if is_github_owner(owner) && is_github_name(name) && without_git(name) == name =>
            {
                Ok(Self {
                    owner: owner.to_owned(),
                    name: name.to_owned(),
                })
            }
            _ => Err(TargetError::Name {
                text: text.to_owned(),
            }),
        }
    }

    /// The part before the slash.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// The repository.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `owner/repo`.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }
}

/// The target of an inspection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A GitHub repository.
    GitHub(RepoName),
    /// A local repository.
    Local(PathBuf),
}

impl Target {
    /// Parses the argument of a command: `owner/repo`, a GitHub address, or a path that begins with `.` or `/`.
    ///
    /// # Errors
    ///
    /// [`TargetError`] for anything else.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let is_path = matches!(text, "." | "..")
            || ["./", "../", "/"]
                .iter()
                .any(|start| text.starts_with(start));
        if is_path && !text.contains('\0') {
            return Ok(Self::Local(PathBuf::from(text)));
        }
        let refuse = |_| TargetError::Name {
            text: text.to_owned(),
        };
        let address = strip_start(text, "https://github.com/")
            .map(|rest| rest.strip_suffix('/').unwrap_or(rest));
        let path = address
            .or_else(|| strip_start(text, "git@github.com:"))
            .unwrap_or(text);
        RepoName::parse(path).map(Self::GitHub).map_err(refuse)
    }
}

/// The value of `--ref`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RefChoice {
    /// A tag, a branch or a whole commit id, checked against git's rules for names; if absent, the latest
    /// release, else the default branch.
    pub reference: Option<String>,
    /// The sub-project.
    pub subpath: Option<RepoPath>,
}

impl RefChoice {
    /// Parses `REF`, `REF:PATH` or `:PATH`. No ref contains a colon, so the first one ends it.
    ///
    /// # Errors
    ///
    /// [`TargetError::Ref`] if git would refuse the name, [`TargetError::Subpath`] for a path that leaves the repository.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let (name, path) = match text.split_once(':') {
            Some((name, path)) => (name, Some(path)),
            None => (text, None),
        };
        let reference = match (name, path) {
            ("", Some(_)) => None,
            _ => {
                let name: RefName = name.parse().map_err(|why| TargetError::Ref {
                    text: text.to_owned(),
                    why,
                })?;
                Some(if is_commit_id(name.as_str()) {
                    name.as_str().to_ascii_lowercase()
                } else {
                    name.to_string()
                })
            }
        };
        let subpath = path
            .map(|path| path.strip_suffix('/').unwrap_or(path).parse())
            .transpose();
        let subpath = subpath.map_err(|why| TargetError::Subpath {
            text: text.to_owned(),
            why,
        })?;
        Ok(Self { reference, subpath })
    }
}

/// Why a text is not a target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// It is not a repository.
    #[error(
        "{text:?} is not a repository; write owner/repo, https://github.com/owner/repo, or ./path for a local one"
    )]
    Name {
        /// The text as given.
        text: String,
    },
    /// It is not a ref.
    #[error(
        "{text:?} is not a ref: {why}; write a tag, a branch or a full commit id, with :PATH for a sub-project"
    )]
    Ref {
        /// The text as given.
        text: String,
        /// What is wrong with it.
        why: RefNameError,
    },
    /// It is not a path inside the repository.
    #[error(
        "{text:?} is not a sub-project: {why}; write REF:PATH with its directory relative to the repository's root"
    )]
    Subpath {
        /// The text as given.
        text: String,
        /// What is wrong with it.
        why: RepoPathError,
    },
}

/// Whether a ref is a whole commit id, in either case.
pub(crate) fn is_commit_id(text: &str) -> bool {
    text.len() == 40 && text.to_ascii_lowercase().parse::<Oid>().is_ok()
}

/// The text after `start`, ignoring its case.
fn strip_start<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    let (head, rest) = text.split_at_checked(start.len())?;
    head.eq_ignore_ascii_case(start).then_some(rest)
}

fn without_git(name: &str) -> &str {
    let cut = name.len().saturating_sub(4);
    match name.split_at_checked(cut) {
        Some((stem, end)) if end.eq_ignore_ascii_case(".git") => stem,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_repository_spelling_is_parsed() {
        let expected = Target::GitHub(RepoName {
            owner: "Some-One".into(),
            name: "re.po_1-x".into(),
        });
        for text in [
            "Some-One/re.po_1-x",
            "Some-One/re.po_1-x.git",
            "https://github.com/Some-One/re.po_1-x",
            "https://GitHub.com/Some-One/re.po_1-x/",
            "https://github.com/Some-One/re.po_1-x.git",
            "git@github.com:Some-One/re.po_1-x.git",
        ] {
            assert_eq!(Target::parse(text).as_ref(), Ok(&expected), "{text}");
        }
        for path in [".", "..", "./x", "../x", "/x", "./a b/-c", "/"] {
            assert_eq!(
                Target::parse(path),
                Ok(Target::Local(path.into())),
                "{path}"
            );
        }
        assert!(RepoName::parse(&format!("{}/{}", "o".repeat(39), "n".repeat(100))).is_ok());
        assert!(RepoName::parse("o/.github").is_ok() && RepoName::parse("corp_user/-").is_ok());
    }

    #[test]
    fn invalid_repository_name_is_refused_with_hint() {
        let long = [
            format!("{}/n", "o".repeat(40)),
            format!("o/{}", "n".repeat(101)),
        ];
        let unusual_names = [
            "",
            "repo",
            "o/",
            "/",
            "o/n/m",
            "-o/n",
            "o-/n",
            "o/.",
            "o/..",
            "o/.git",
            "o/n.git.git",
            "./..\0",
            "o/n?x",
            "o/n#x",
            "o/n m",
            "o /n",
            "o.x/n",
            "../",
            "o/\u{e9}",
            "--o/n",
            "o/n\n",
            "C:\\x",
            "~/x",
            "http://github.com/o/n",
            "https://gitlab.com/o/n",
            "https://github.com.evil.example/o/n",
            "https://me@github.com/o/n",
            "ssh://x/o/n",
            "https://github.com/o/n/tree/main",
            "git@gitlab.com:o/n",
            "file:///x",
            "https://github.com//o/n",
            "ext::sh/x",
        ];
        for text in unusual_names
            .into_iter()
            .filter(|text| *text != "../" && *text != "/")
            .chain(long.iter().map(String::as_str))
        {
            let error = Target::parse(text).unwrap_err();
            assert!(
                error.to_string().contains("write owner/repo"),
                "{text:?}: {error}"
            );
        }
    }

    #[test]
    fn ref_and_path_are_both_optional() {
        let choice = |reference: Option<&str>, path: Option<&str>| {
            let (reference, subpath) = (
                reference.map(str::to_owned),
                path.map(|path| path.parse().unwrap()),
            );
            Ok(RefChoice { reference, subpath })
        };
        assert_eq!(RefChoice::parse("v1.0"), choice(Some("v1.0"), None));
        assert_eq!(
            RefChoice::parse("v1.0:packages/core"),
            choice(Some("v1.0"), Some("packages/core"))
        );
        assert_eq!(
            RefChoice::parse(":packages/core/"),
            choice(None, Some("packages/core"))
        );
        assert_eq!(
            RefChoice::parse(&"AB".repeat(20)),
            choice(Some(&"ab".repeat(20)), None)
        );
        for bad in [
            "",
            "-x",
            "--upload-pack=touch x",
            "a b",
            "HEAD",
            "a..b",
            "x:",
            ":",
            "x:/etc",
            "x:../y",
            "x:.git",
            "x:a:/b/../c",
        ] {
            let error = RefChoice::parse(bad).unwrap_err().to_string();
            assert!(
                error.contains("write a tag") || error.contains("write REF:PATH"),
                "{bad:?}: {error}"
            );
        }
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn parsed_target_is_safe_for_calls(text in "[-a-zA-Z./_:@~%\\\\ \u{e9}]{0,20}|[a-z-]{0,5}/[-.a-zGIT]{0,8}") {
                if let Ok(Target::GitHub(repo)) = Target::parse(&text) {
                    for part in [repo.owner(), repo.name()] {
                        prop_assert!(!part.is_empty() && part != "." && part != "..");
                        prop_assert!(part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)));
                    }
                    prop_assert!(!repo.owner().starts_with('-'));
                    prop_assert_eq!(RepoName::parse(&repo.full_name()), Ok(repo));
                }
            }

            #[test]
            fn no_ref_is_ever_an_option(text in "[-a-z.:/@{} ]{0,12}") {
                if let Ok(RefChoice { reference: Some(name), .. }) = RefChoice::parse(&text) {
                    prop_assert!(!name.starts_with('-') && !name.contains([':', ' ']));
                }
            }
        }
    }
}
