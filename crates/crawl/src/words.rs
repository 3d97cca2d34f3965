//! Parts of the documents in words.

use crate::artifact::{FetchMethod, KeyFileRole, ScoreBreakdown};

impl ScoreBreakdown {
    /// The parts of the score that are not zero.
    #[must_use]
    pub fn reasons(&self) -> String {
        let parts = [
            ("exact name", self.exact_name),
            ("part of the name", self.partial_name),
            ("stars", self.star_score),
            ("pushed recently", self.recency),
            ("organization", self.verified_owner),
            ("releases", self.has_releases),
            ("build system known", self.build_files),
            ("penalties", self.penalties),
        ];
        let counts = parts.iter().filter(|(_, value)| *value != 0.0);
        let parts: Vec<String> = counts
            .map(|(name, value)| format!("{name} {}", signed(*value)))
            .collect();
        if parts.is_empty() {
            "no points".to_owned()
        } else {
            parts.join(", ")
        }
    }
}

impl FetchMethod {
    /// How the files were fetched.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            FetchMethod::Tarball => "release archive",
            FetchMethod::ShallowClone => "shallow clone",
        }
    }
}

impl KeyFileRole {
    /// What the file is for.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            KeyFileRole::BuildConfig => "build configuration",
            KeyFileRole::EntryPoint => "entry point",
            KeyFileRole::Readme => "readme",
            KeyFileRole::License => "licence",
            KeyFileRole::Ci => "continuous integration",
            KeyFileRole::Dockerfile => "container",
            KeyFileRole::Source => "source",
        }
    }
}

fn signed(value: f64) -> String {
    let text = format!("{value:+.4}");
    let short = text.trim_end_matches('0');
    // Two decimals at least: +0.20, +0.1937.
    let kept_len = short.len().max(text.len() - 2);
    text.get(..kept_len).unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn score_parts_have_sign_and_two_decimals() {
        let lines = [0.4, 0.1937, -0.35, 0.05, -0.1].map(signed);
        assert_eq!(lines, ["+0.40", "+0.1937", "-0.35", "+0.05", "-0.10"]);
    }
}
