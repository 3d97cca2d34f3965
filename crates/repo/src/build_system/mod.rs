//! Detects a repository's build system from file names and a few file contents.
//!
//! Pure: it examines a listing and texts that were read before. Nothing is executed, no model is called, and
//! confidence values are fixed. Every result names the files that were decisive.

mod members;
mod name;
mod projects;
mod rules;

use std::collections::BTreeMap;

use crate::sample::join;
pub use name::{BuildSystem, BuildSystemError};
pub use projects::{Projects, find_projects};

/// The files of a repository that detection examines.
#[derive(Debug, Clone)]
pub struct ProjectFiles<'a> {
    listing: &'a [String],
    contents: BTreeMap<&'a str, &'a str>,
}

/// What builds a repository, and why we think so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detection {
    /// It.
    pub system: BuildSystem,
    /// The directory it works in, from the top: empty, or one a level below.
    pub directory: String,
    /// The files that gave it away; of an unknown one the files that nearly did.
    pub detected_files: Vec<String>,
    /// Sentences for people.
    pub reasons: Vec<String>,
}

impl<'a> ProjectFiles<'a> {
    /// `listing` holds every path from the top, sorted; `contents` the texts that were read, by path.
    pub fn new(
        listing: &'a [String],
        contents: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        Self {
            listing,
            contents: contents.into_iter().collect(),
        }
    }

    fn has(&self, directory: &str, name: &str) -> bool {
        self.listing
            .binary_search_by(|path| path.as_str().cmp(&join(directory, name)))
            .is_ok()
    }

    /// Returns the text of this file in `directory` (empty is the top) without a byte order mark, if it was
    /// read.
    #[must_use]
    pub fn text(&self, directory: &str, name: &str) -> Option<&str> {
        let text = self.contents.get(join(directory, name).as_str())?;
        Some(text.strip_prefix('\u{feff}').unwrap_or(text))
    }

    /// The same, parsed as TOML; `None` if invalid.
    #[must_use]
    pub fn toml(&self, directory: &str, name: &str) -> Option<toml::Table> {
        toml::from_str(self.text(directory, name)?).ok()
    }

    /// The same, parsed as JSON; `None` if invalid.
    #[must_use]
    pub fn json(&self, directory: &str, name: &str) -> Option<serde_json::Value> {
        serde_json::from_str(self.text(directory, name)?).ok()
    }
}

/// Returns the repository's build system: that of the top, or of the only directory one level below that has
/// one.
#[must_use]
pub fn detect_build_system(files: &ProjectFiles<'_>) -> Detection {
    let at_top = rules::detect_in(files, "");
    if at_top.system != BuildSystem::Unknown || !at_top.detected_files.is_empty() {
        return at_top;
    }
    let below = projects::directories_with_build_files(files).into_iter();
    let mut known = below.map(|directory| rules::detect_in(files, directory));
    let mut known = known
        .by_ref()
        .filter(|detection| detection.system != BuildSystem::Unknown);
    match (known.next(), known.next()) {
        (Some(mut only), None) => {
            let why = format!(
                "no build file at the top; {} is the only directory below with one",
                only.directory
            );
            only.reasons.push(why);
            only
        }
        _ => at_top,
    }
}

#[cfg(test)]
mod tests;
