//! A judgement as SARIF 2.1.0 for code scanning: a rule for each code, with the text of its page as help,
//! and a result for each finding with its file.

use std::fmt::Write as _;

use crucible_model::{Digest, Failure, Level, Timestamp};
use serde_json::{Value, json};

use super::{GateView, Places};
use crate::gate::GateFinding;

/// The page of the gate's codes; its text is the rules' help.
const PAGE: &str = include_str!("../../../../docs/codes/gate.md");
/// The page and the code of the one finding that is not the gate's own.
const FIXUP_PAGE: &str = include_str!("../../../../docs/codes/fixup.md");
const FIXUP_CODE: &str = "fixup-under-way";

/// The schema that the log follows.
const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The log of one judgement.
#[must_use]
pub fn log(view: &GateView<'_>) -> Value {
    let rules = every_rule();
    let report = view.report;
    let results: Vec<Value> = view
        .findings
        .iter()
        .map(|found| result(found, &rules, &view.places))
        .collect();
    let rules: Vec<Value> = rules.iter().map(rule).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "crucible",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "automationDetails": { "id": format!("crucible-gate/{}/", report.spec_id) },
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": true,
                "exitCode": report.exit_status().code(),
                "endTimeUtc": report.judged_at,
            }],
            "results": results,
            "properties": { "findingsLeftOut": view.left_out },
        }],
    })
}

/// The log of a gate that reached no verdict: no result, and the reason.
#[must_use]
pub fn unjudged(spec: &str, at: Timestamp, error: &Failure) -> Value {
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "crucible", "version": env!("CARGO_PKG_VERSION"), "rules": [] } },
            "automationDetails": { "id": format!("crucible-gate/{spec}/") },
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

/// Every code that a gate finding can have, with its help.
fn every_rule() -> Vec<(&'static str, String)> {
    let mut all = rules(PAGE);
    all.extend(
        rules(FIXUP_PAGE)
            .into_iter()
            .filter(|(code, _)| *code == FIXUP_CODE),
    );
    all
}

/// The codes of a page, each with its text on one line.
fn rules(page: &str) -> Vec<(&str, String)> {
    let sections = page.split("\n## ").skip(1);
    sections
        .filter_map(|section| section.split_once('\n'))
        .map(|(code, words)| {
            (
                code.trim(),
                words.split_whitespace().collect::<Vec<_>>().join(" "),
            )
        })
        .collect()
}

fn rule((code, help): &(&str, String)) -> Value {
    let first = help.split_inclusive(". ").next().unwrap_or(help).trim_end();
    json!({
        "id": code,
        "shortDescription": { "text": first },
        "fullDescription": { "text": help },
        "help": { "text": help, "markdown": help },
        "defaultConfiguration": { "level": "error" },
    })
}

fn result(found: &GateFinding, rules: &[(&str, String)], places: &Places) -> Value {
    let finding = &found.finding;
    let level = match finding.level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Info => "note",
    };
    let file = places.file(found);
    let same = Digest::of(format!("{}\n{file}\n{}", finding.code, finding.subject).as_bytes());
    let mut result = json!({
        "ruleId": finding.code,
        "level": level,
        "message": { "text": format!("{}: {}", finding.subject, finding.hint) },
        "locations": [{ "physicalLocation": {
            "artifactLocation": { "uri": uri(&file), "uriBaseId": "%SRCROOT%" },
            "region": { "startLine": 1 },
        } }],
        // GitHub uses the first to distinguish and recognise results of one rule in one file.
        "partialFingerprints": { "primaryLocationLineHash": same, "crucibleFinding/v1": same },
    });
    if let Some(place) = rules
        .iter()
        .position(|(code, _)| *code == finding.code.as_str())
    {
        result["ruleIndex"] = place.into();
    }
    result
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
    fn every_heading_of_the_page_is_a_rule_with_its_words() {
        let rules = rules(PAGE);
        assert_eq!(
            rules.len(),
            PAGE.lines().filter(|line| line.starts_with("## ")).count()
        );
        for (code, help) in &rules {
            assert!(
                code.starts_with("gate-") && help.ends_with('.') && help.len() > 30,
                "{code}: {help}"
            );
        }
    }

    #[test]
    fn a_path_is_a_reference_whatever_it_holds() {
        assert_eq!(
            uri(".crucible/specs/a-1/artifacts/20-tasks.md"),
            ".crucible/specs/a-1/artifacts/20-tasks.md"
        );
        assert_eq!(uri("a b/ä%2e\n:x"), "a%20b/%C3%A4%252e%0A%3Ax");
    }
}
