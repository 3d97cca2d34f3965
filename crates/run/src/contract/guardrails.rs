//! `artifacts/guardrails.md`: the limits of a run.
//!
//! Parsed as strictly as a plan: an ambiguous limit is an error. Unlike in a plan, unknown keys are errors
//! too, because a misspelt limit would have no effect.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::contract::key_lines::{self, Keys};

/// The keys of the file.
const KEYS: Keys = Keys {
    known: &[
        "find_mode",
        "max_files",
        "max_total_bytes",
        "max_iterations",
        "allow_domains",
        "max_queries",
        "max_pages",
    ],
    free: &[],
};

/// Permitted sources for "what exists already".
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FindMode {
    /// Only the local resolver.
    ResolverOnly,
    /// The local resolver, and pages that a researcher fetched within these limits.
    ResolverPlusWeb(WebLimits),
}

/// How much of the web a researcher may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebLimits {
    /// Domains that may be cited.
    pub allow_domains: Vec<String>,
    /// Searches at the most.
    pub max_queries: u64,
    /// Pages at the most.
    pub max_pages: u64,
}

/// The limits of a run. Bytes are of file content, iterations are answers of the patchmaker and the fixer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Guardrails {
    /// Where knowledge may come from.
    pub find_mode: FindMode,
    /// Files in the context pack at the most.
    pub max_files: u64,
    /// Bytes of content in the context pack at the most.
    pub max_total_bytes: u64,
    /// Attempts at a patch at the most.
    pub max_iterations: u64,
}

/// What is wrong with a guardrails file. Every missing or wrong key is named, not the first alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("artifacts/guardrails.md: {}", problems.join("; "))]
pub(crate) struct GuardrailsError {
    /// One sentence for each problem.
    pub problems: Vec<String>,
}

impl Guardrails {
    /// The file's text.
    #[must_use]
    pub(crate) fn render(&self) -> String {
        let mode = match &self.find_mode {
            FindMode::ResolverOnly => "resolver_only",
            FindMode::ResolverPlusWeb(_) => "resolver_plus_web",
        };
        let mut text = format!(
            "# Guardrails\n\nfind_mode: {mode}\nmax_files: {}\nmax_total_bytes: {}\nmax_iterations: {}\n",
            self.max_files, self.max_total_bytes, self.max_iterations
        );
        if let FindMode::ResolverPlusWeb(web) = &self.find_mode {
            let domains = web.allow_domains.join(", ");
            let _infallible = writeln!(
                text,
                "allow_domains: {domains}\nmax_queries: {}\nmax_pages: {}",
                web.max_queries, web.max_pages
            );
        }
        text
    }

    /// Reads the file's text.
    ///
    /// # Errors
    ///
    /// Names every key that is missing, repeated, unknown or holds no valid value.
    pub(crate) fn parse(text: &str) -> Result<Self, GuardrailsError> {
        let lines = key_lines::read_keys(text, KEYS, 1);
        let mut problems: Vec<String> = lines
            .repeated
            .iter()
            .map(|key| format!("`{key}` appears more than once"))
            .collect();
        problems.extend(
            lines
                .faults
                .iter()
                .map(|fault| format!("{}: {fault}", fault.place())),
        );
        problems.extend(
            lines
                .values
                .keys()
                .filter(|key| !KEYS.known.contains(&key.as_str()))
                .map(|key| format!("unknown key `{key}`")),
        );
        let mut number = |key: &str| match lines.values.get(key).map(|value| whole_number(value)) {
            Some(Some(value)) if value > 0 => u64::from(value),
            Some(_) => {
                problems.push(format!(
                    "`{key}` must be a whole number from 1 to 4294967295"
                ));
                0
            }
            None => {
                problems.push(format!("`{key}` is missing"));
                0
            }
        };
        let (max_files, max_total_bytes, max_iterations) = (
            number("max_files"),
            number("max_total_bytes"),
            number("max_iterations"),
        );
        let find_mode = match lines.values.get("find_mode").map(String::as_str) {
            Some("resolver_only") => FindMode::ResolverOnly,
            Some("resolver_plus_web") => {
                let (max_queries, max_pages) = (number("max_queries"), number("max_pages"));
                let domains = lines
                    .values
                    .get("allow_domains")
                    .map(String::as_str)
                    .unwrap_or_default();
                let allow_domains: Vec<String> = key_lines::list(domains)
                    .into_iter()
                    .map(str::to_owned)
                    .collect();
                if key_lines::has_empty_item(domains) {
                    problems.push("`allow_domains` has an empty entry between commas".to_owned());
                }
                if allow_domains.is_empty() {
                    problems.push("`allow_domains` is missing or empty".to_owned());
                }
                FindMode::ResolverPlusWeb(WebLimits {
                    allow_domains,
                    max_queries,
                    max_pages,
                })
            }
            Some(_) => {
                problems.push("`find_mode` must be resolver_only or resolver_plus_web".to_owned());
                FindMode::ResolverOnly
            }
            None => {
                problems.push("`find_mode` is missing".to_owned());
                FindMode::ResolverOnly
            }
        };
        if problems.is_empty() {
            Ok(Self {
                find_mode,
                max_files,
                max_total_bytes,
                max_iterations,
            })
        } else {
            Err(GuardrailsError { problems })
        }
    }
}

/// Parses a number of digits only.
fn whole_number(text: &str) -> Option<u32> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rendered_guardrails_round_trip() {
        let web = WebLimits {
            allow_domains: vec!["docs.example".into()],
            max_queries: 2,
            max_pages: 3,
        };
        for find_mode in [FindMode::ResolverOnly, FindMode::ResolverPlusWeb(web)] {
            let guardrails = Guardrails {
                find_mode,
                max_files: 9,
                max_total_bytes: 1000,
                max_iterations: 3,
            };
            assert_eq!(Guardrails::parse(&guardrails.render()), Ok(guardrails));
        }
    }

    #[test]
    fn every_missing_or_wrong_key_is_named() {
        let text = "find_mode: anywhere\nmax_files: -1\nmax_iterations: 99999999999\nmax_iterations: 3\nmax_speed: 1\n";
        let error = Guardrails::parse(text).unwrap_err().to_string();
        for part in [
            "`find_mode` must be",
            "`max_files` must be",
            "`max_total_bytes` is missing",
            "`max_iterations` must be",
            "more than once",
            "`max_speed`",
        ] {
            assert!(error.contains(part), "{part} in {error}");
        }
        let web = Guardrails::parse(
            "find_mode: resolver_plus_web\nmax_files: 1\nmax_total_bytes: 1\nmax_iterations: 1\n",
        );
        let error = web.unwrap_err().to_string();
        for part in [
            "`max_queries` is missing",
            "`max_pages` is missing",
            "`allow_domains` is missing",
        ] {
            assert!(error.contains(part), "{part} in {error}");
        }
    }

    #[test]
    fn ambiguous_limit_is_refused() {
        let good =
            "find_mode: resolver_only\nmax_files: 9\nmax_total_bytes: 1000\nmax_iterations: 3\n";
        assert!(Guardrails::parse(&format!("\u{feff}{}", good.replace('\n', "\r\n"))).is_ok());
        for (bad, part) in [
            (
                good.replace("max_files: 9", "max_files: +9"),
                "`max_files` must be",
            ),
            (
                good.replace("max_files: 9", "max_files: 9 files"),
                "`max_files` must be",
            ),
            (
                good.replace("max_files: 9", "max_files: 9e9"),
                "`max_files` must be",
            ),
            (
                good.replace("max_files: 9", "max_files: 0"),
                "`max_files` must be",
            ),
            (
                good.replace("max_files: 9", "max_files:"),
                "`max_files` must be",
            ),
            (
                good.replace("max_files: 9", "max_files: 18446744073709551616"),
                "`max_files` must be",
            ),
            (
                good.replace("max_files", "Max_Files"),
                "line 2: Begin the line with exactly `max_files:`",
            ),
            (
                good.replace("max_files", " max_files"),
                "line 2: Begin the line with exactly `max_files:`",
            ),
            (
                good.replace("max_files: 9", "```\nmax_files: 9\n```"),
                "`max_files` is missing",
            ),
            (
                good.replace("max_files: 9", "~~~\nmax_files: 9"),
                "line 2: Close the code block",
            ),
            (
                good.replace("max_files: 9", "max_files: 9\u{0}"),
                "line 2: Remove the invisible character U+0000",
            ),
            (
                good.replace(
                    "max_files: 9",
                    &format!("max_files: {}", "9".repeat(70_000)),
                ),
                "line 2: Write lines",
            ),
            ("x".repeat(2 << 20), "the text: Write at most"),
        ] {
            let error = Guardrails::parse(&bad).unwrap_err().to_string();
            assert!(error.contains(part), "{part} in {error:.300}");
        }
    }
}
