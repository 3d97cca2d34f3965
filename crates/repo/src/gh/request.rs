//! A GitHub API request: a path with parts of any origin, and a query.

use std::ffi::OsString;

use super::error::GhError;
use crate::percent::{Slash, encode};

/// Returns whether GitHub allows the name of an account: letters, digits and inner dashes. Managed company accounts also
/// have an underscore.
#[must_use]
pub fn is_github_owner(text: &str) -> bool {
    (1..=39).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Returns whether GitHub allows the name of a repository.
#[must_use]
pub fn is_github_name(text: &str) -> bool {
    (1..=100).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && !matches!(text, "." | "..")
}

/// A question to GitHub: the path of its interface, and the query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GhRequest {
    path: String,
    query: Vec<(&'static str, String)>,
}

impl GhRequest {
    /// A question at `collection`, a plain word such as `repos` or `search`.
    #[must_use]
    pub fn at(collection: &'static str) -> Self {
        Self {
            path: encode(collection.as_bytes(), Slash::IsEncoded),
            query: Vec::new(),
        }
    }

    /// Appends a part to the path.
    ///
    /// # Errors
    ///
    /// [`GhError::Unusable`] for a part that would leave the path (`..`) or is empty.
    pub fn part(mut self, part: &str) -> Result<Self, GhError> {
        if matches!(part, "" | "." | "..") || part.contains('\0') {
            return Err(GhError::Unusable {
                name: part.to_owned(),
            });
        }
        self.path.push('/');
        self.path
            .push_str(&encode(part.as_bytes(), Slash::IsEncoded));
        Ok(self)
    }

    /// The same, further down by a tag, a branch or a commit id: GitHub wants the slashes in one as they are.
    ///
    /// # Errors
    ///
    /// As [`GhRequest::part`].
    pub fn reference(self, reference: &str) -> Result<Self, GhError> {
        reference.split('/').try_fold(self, GhRequest::part)
    }

    /// Adds a query value: any text without NUL.
    ///
    /// # Errors
    ///
    /// [`GhError::Unusable`] for a text with NUL, which cannot be an argument.
    pub fn value(mut self, name: &'static str, value: impl Into<String>) -> Result<Self, GhError> {
        let value = value.into();
        if value.contains('\0') {
            return Err(GhError::Unusable { name: value });
        }
        self.query.push((name, value));
        Ok(self)
    }

    /// Returns the path without the query, for people.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the arguments after `gh api`. A path begins with a plain word, and `-f` passes a value
    /// unchanged.
    pub(super) fn args(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> =
            vec!["--method".into(), "GET".into(), self.path.clone().into()];
        for (name, value) in &self.query {
            words.push("-f".into());
            words.push(format!("{name}={value}").into());
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(parts: &[&str]) -> Result<String, GhError> {
        let request = parts
            .iter()
            .try_fold(GhRequest::at("repos"), |request, part| request.part(part))?;
        Ok(request.path().to_owned())
    }

    #[test]
    fn a_part_stays_one_part() {
        assert_eq!(path(&["a", "b.c-d_e~"]).unwrap(), "repos/a/b.c-d_e~");
        assert_eq!(
            path(&["../x", "-f", "{owner}", "a?b#c", "http://h", "é %"]).unwrap(),
            "repos/..%2Fx/-f/%7Bowner%7D/a%3Fb%23c/http%3A%2F%2Fh/%C3%A9%20%25"
        );
        for bad in ["", ".", "..", "a\0b"] {
            assert!(
                matches!(path(&["a", bad]), Err(GhError::Unusable { .. })),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn a_ref_keeps_its_slashes_and_cannot_climb() {
        let of = |reference: &str| {
            GhRequest::at("repos")
                .reference(reference)
                .map(|request| request.path().to_owned())
        };
        assert_eq!(of("feature/a b").unwrap(), "repos/feature/a%20b");
        for bad in ["a/../b", "/a", "a//b", "a/", "../../user"] {
            assert!(of(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_value_is_no_option_and_no_file() {
        let request = GhRequest::at("search")
            .value("q", "--hostname=x @/etc/passwd\n")
            .unwrap();
        let words = request.args();
        assert_eq!(
            words,
            [
                "--method",
                "GET",
                "search",
                "-f",
                "q=--hostname=x @/etc/passwd\n"
            ]
            .map(OsString::from)
        );
        assert!(GhRequest::at("search").value("q", "a\0").is_err());
    }
}
