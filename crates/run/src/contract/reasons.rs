//! `artifacts/REASONS.md`: the reasons of the plan, each linked to an id.
//!
//! Every non-empty line is a reason, except headings and fenced code. Indented lines continue the reason
//! above. A reason names its behaviours and results before its first colon (`- R001, B002: why`) if only ids
//! are there, or anywhere in it. Every named id must exist. Pure.

use std::collections::HashSet;

use crucible_model::{Code, Finding, Verdict, says_nothing, short_line};

use crate::contract::ids::ids_in;
use crate::contract::key_lines::{MAX_TEXT, open_lines};

const WITHOUT_ID: Code = Code::new("plan-reason-without-id");
const UNRESOLVED: Code = Code::new("plan-reason-unresolved");
const NONE: Code = Code::new("plan-reasons-empty");
const TOO_LONG: Code = Code::new("plan-reasons-too-long");

/// How much of a reason a finding shows, in characters.
const SHOWN: usize = 60;

/// Judges the reasons of a plan against the ids that there are.
#[must_use]
pub(crate) fn check_reasons(
    text: &str,
    known_behaviors: &[String],
    known_results: &[String],
) -> Verdict {
    let mut verdict = Verdict::default();
    if text.len() > MAX_TEXT {
        verdict.push(Finding::error(
            TOO_LONG,
            "REASONS.md",
            format!("Write at most {MAX_TEXT} bytes."),
        ));
        return verdict;
    }
    let known: HashSet<&str> = known_behaviors
        .iter()
        .chain(known_results)
        .map(String::as_str)
        .collect();
    let reasons = reasons(text);
    if reasons.is_empty() {
        let hint = "Give at least one reason: a line such as `- R001: why`.";
        verdict.push(Finding::error(NONE, "REASONS.md", hint));
    }
    for (line, reason) in reasons {
        let named = parse_words(&reason);
        if named.is_empty() {
            let hint = format!(
                "Name the B### or R### that this reason is about: {:?}.",
                short_line(&reason, SHOWN)
            );
            verdict.push(Finding::error(
                WITHOUT_ID,
                format!("REASONS.md, line {line}"),
                hint,
            ));
        }
        for id in named.into_iter().filter(|id| !known.contains(id)) {
            let hint = format!("The reason in line {line} names this undefined id.");
            verdict.push(Finding::error(UNRESOLVED, id, hint));
        }
    }
    verdict
}

/// Each reason on one line, with the number of the line it begins in.
fn reasons(text: &str) -> Vec<(u64, String)> {
    let mut reasons: Vec<(u64, String)> = Vec::new();
    let mut goes_on = false;
    for (number, _, line) in open_lines(text) {
        let is_heading = line.starts_with('#');
        if is_heading || says_nothing(line) {
            goes_on &= !is_heading;
            continue;
        }
        match reasons
            .last_mut()
            .filter(|_| goes_on && line.starts_with([' ', '\t']))
        {
            Some((_, reason)) => {
                reason.push(' ');
                reason.push_str(line.trim());
            }
            None => reasons.push((number, line.trim().to_owned())),
        }
        goes_on = true;
    }
    reasons
}

/// The ids that a reason is about.
fn parse_words(reason: &str) -> Vec<&str> {
    let head = reason.split(':').next().unwrap_or_default();
    let ids: Vec<&str> = ids_in(head).collect();
    let letters = head.chars().filter(|c| c.is_alphanumeric()).count();
    if !ids.is_empty() && letters == ids.iter().map(|id| id.len()).sum::<usize>() {
        return ids;
    }
    ids_in(reason).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding_texts(text: &str) -> Vec<String> {
        let known = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        let verdict = check_reasons(text, &known(&["B001"]), &known(&["R001"]));
        verdict
            .findings()
            .iter()
            .map(|finding| format!("{} {}", finding.code, finding.subject))
            .collect()
    }

    #[test]
    fn each_reason_names_an_id_that_there_is() {
        let good = "\u{feff}# Reasons\r\n\r\n- R001: because of B250 in the goal\r\n- **R001, B001**: both\r\n* for the sake of B001\r\n  and R001\r\n";
        assert_eq!(finding_texts(good), [""; 0]);
        assert_eq!(
            finding_texts("- R001: a\n- because I say so\n"),
            ["plan-reason-without-id REASONS.md, line 2"]
        );
        assert_eq!(
            finding_texts("plain words\n"),
            ["plan-reason-without-id REASONS.md, line 1"]
        );
        assert_eq!(
            finding_texts("- R001, R002: a\n"),
            ["plan-reason-unresolved R002"]
        );
        assert_eq!(
            finding_texts("- as B001 and B002 demand\n"),
            ["plan-reason-unresolved B002"]
        );
        assert_eq!(finding_texts("- R1: a\n- r001: b\n").len(), 2);
    }

    #[test]
    fn document_without_reasons_is_refused() {
        for empty in ["", "# R001\n", "```\n- R001: a\n```\n", "\u{200b}\n \n"] {
            assert_eq!(
                finding_texts(empty),
                ["plan-reasons-empty REASONS.md"],
                "{empty:?}"
            );
        }
        assert_eq!(
            finding_texts("- R001: a\n\n  more of it\n# Next\n  and more\n"),
            ["plan-reason-without-id REASONS.md, line 5"]
        );
        assert_eq!(
            finding_texts(&"x".repeat(MAX_TEXT + 1)),
            ["plan-reasons-too-long REASONS.md"]
        );
    }

    #[test]
    fn quoted_reason_is_short_and_visible() {
        let verdict = check_reasons(&format!("\u{1b}{}\n", "x".repeat(500)), &[], &[]);
        let hint = &verdict.findings()[0].hint;
        assert!(hint.len() < 200 && !hint.contains('\u{1b}'), "{hint}");
    }
}
