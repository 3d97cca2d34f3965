//! Findings as SARIF 2.1.0 for code scanning: a rule for each code, with the text of its page as help, and a result for
//! each finding with its file.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::code_page::CodeSection;
use crate::digest::Digest;
use crate::failure::Failure;
use crate::finding::{Finding, Level};
use crate::text::single_spaced;
use crate::time::Timestamp;

/// The schema that the log follows.
const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// One judgement as it goes into a log.
pub struct SarifRun<'a> {
    /// Names the judgement and its subject, such as `crucible-gate/SPEC/`.
    pub id: &'a str,
    /// Every code that may occur.
    pub rules: &'a [SarifRule],
    /// The findings, each with the file that it is about, relative to the repository's root.
    pub findings: &'a [(&'a Finding, String)],
    /// The number of findings left out.
    pub left_out: usize,
    /// How the command exits.
    pub exit_code: u8,
    /// When it was judged.
    pub at: Timestamp,
}

/// A code with its explanation on one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SarifRule {
    /// The finding code, which becomes the rule's id.
    pub code: &'static str,
    /// Its explanation.
    pub help: String,
}

impl From<CodeSection> for SarifRule {
    fn from(section: CodeSection) -> Self {
        Self {
            code: section.code,
            help: single_spaced(section.text),
        }
    }
}

impl SarifRule {
    fn document(&self) -> Value {
        let help = &self.help;
        let first = help.split_inclusive(". ").next().unwrap_or(help).trim_end();
        json!({
            "id": self.code,
            "shortDescription": { "text": first },
            "fullDescription": { "text": help },
            "help": { "text": help, "markdown": help },
            "defaultConfiguration": { "level": "error" },
        })
    }
}

impl SarifRun<'_> {
    /// Returns the log of this judgement.
    #[must_use]
    pub fn log(&self) -> Value {
        let results: Vec<Value> = self
            .findings
            .iter()
            .map(|(finding, file)| self.result(finding, file))
            .collect();
        let rules: Vec<Value> = self.rules.iter().map(SarifRule::document).collect();
        json!({
            "$schema": SCHEMA,
            "version": "2.1.0",
            "runs": [{
                "tool": { "driver": {
                    "name": "crucible",
                    "version": env!("CARGO_PKG_VERSION"),
                    "rules": rules,
                } },
                "automationDetails": { "id": self.id },
                "columnKind": "unicodeCodePoints",
                "invocations": [{
                    "executionSuccessful": true,
                    "exitCode": self.exit_code,
                    "endTimeUtc": self.at,
                }],
                "results": results,
                "properties": { "findingsLeftOut": self.left_out },
            }],
        })
    }

    fn result(&self, finding: &Finding, file: &str) -> Value {
        let level = match finding.level {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Info => "note",
        };
        let same =
            Digest::compute(format!("{}\n{file}\n{}", finding.code, finding.subject).as_bytes());
        let mut result = json!({
            "ruleId": finding.code,
            "level": level,
            "message": { "text": format!("{}: {}", finding.subject, finding.hint) },
            "locations": [{ "physicalLocation": {
                "artifactLocation": { "uri": uri(file), "uriBaseId": "%SRCROOT%" },
                "region": { "startLine": 1 },
            } }],
            // GitHub uses the first to distinguish and recognise results of one rule in one file.
            "partialFingerprints": { "primaryLocationLineHash": same, "crucibleFinding/v1": same },
        });
        if let Some(place) = self
            .rules
            .iter()
            .position(|rule| rule.code == finding.code.as_str())
        {
            result["ruleIndex"] = place.into();
        }
        result
    }
}

/// Returns the log of a command that reached no verdict: no result, and the reason.
#[must_use]
pub fn sarif_unjudged(id: &str, at: Timestamp, error: &Failure) -> Value {
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "crucible", "version": env!("CARGO_PKG_VERSION"), "rules": [] } },
            "automationDetails": { "id": id },
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": false,
                "exitCode": error.status.code(),
                "endTimeUtc": at,
                "toolExecutionNotifications": [{ "level": "error", "message": { "text": error.message } }],
            }],
            "results": [],
        }],
    })
}

/// A path as a relative reference: everything except the unreserved characters of RFC 3986 is
/// percent-encoded.
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'/') {
            uri.push(char::from(byte));
        } else {
            let _a_string_takes_it = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_path_is_valid_uri_reference() {
        assert_eq!(
            uri(".crucible/specs/a-1/artifacts/20-tasks.md"),
            ".crucible/specs/a-1/artifacts/20-tasks.md"
        );
        assert_eq!(uri("a b/ä%2e\n:x"), "a%20b/%C3%A4%252e%0A%3Ax");
    }
}
