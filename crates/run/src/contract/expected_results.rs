//! `artifacts/EXPECTED_RESULTS.md`: what a change must achieve, the evidence, and the related
//! gates.
//!
//! An entry begins with a heading `## R001`, a title may follow, and ends at the next heading of that level
//! or above. It has three key lines, parsed as strictly as those of a plan: `Acceptance`, `Evidence` (files
//! of the run or of the repository, by normalised relative paths) and `Related-Gates` (gates of the plan).
//! Parsing and checking are pure.

use std::collections::{BTreeMap, HashSet};

use crucible_model::{Code, Finding, RepoPath, Verdict};

use crate::contract::ids::{IdKind, is_id, is_meant_as_id};
use crate::contract::key_lines::{self, Fault, Keys};
use crate::contract::plan::Plan;

const TEXT: Code = Code::new("plan-result-text");
const INVALID: Code = Code::new("plan-result-invalid");
const REPEATED: Code = Code::new("plan-result-repeated");
const INCOMPLETE: Code = Code::new("plan-result-incomplete");
const GATE: Code = Code::new("plan-result-gate");
const PATH: Code = Code::new("plan-evidence-path");
const MISSING: Code = Code::new("plan-evidence-missing");
const NO_FILE: Code = Code::new("plan-evidence-no-file");
const OUTSIDE: Code = Code::new("plan-evidence-outside");

const KEYS: Keys = Keys {
    known: &["Acceptance", "Evidence", "Related-Gates"],
    free: &["Acceptance"],
};

/// One result that is expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedResult {
    /// Its id, such as `R001`.
    pub id: String,
    /// When it counts as reached, in words.
    pub acceptance: String,
    /// The files that show it.
    pub evidence: Vec<RepoPath>,
    /// The gates that look at it.
    pub related_gates: Vec<String>,
}

/// What is at the path of an evidence file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvidenceFound {
    /// A regular file, in the run or in the repository.
    File,
    /// Nothing.
    Nothing,
    /// A directory, a pipe or another thing that is not a file.
    NoFile,
    /// A link in the path leaves both, or is broken.
    Outside,
}

/// Parses the text; the findings describe errors of form. An invalid entry still counts as an entry, so that
/// its id is known.
#[must_use]
pub(crate) fn read_results(text: &str) -> (Vec<ExpectedResult>, Verdict) {
    let mut verdict = Verdict::default();
    let (mut entries, mut seen) = (Vec::new(), HashSet::new());
    let sections = sections(text);
    // Text before the first entry is free, but checked for hidden characters.
    let before = sections.first().map_or(text.len(), |section| section.from);
    let _nothing_is_set_here = read_lines(
        "the text",
        text.get(..before).unwrap_or_default(),
        1,
        &mut verdict,
    );
    for (index, section) in sections.iter().enumerate() {
        let to = sections.get(index + 1).map_or(text.len(), |next| next.from);
        let body = text.get(section.from..to).unwrap_or_default();
        if let Some(id) = &section.id {
            if !seen.insert(id.clone()) {
                let hint = "Two entries have this id; give each its own.";
                verdict.push(Finding::error(REPEATED, id, hint));
            }
            entries.push(entry(id, body, section.line, &mut verdict));
        } else {
            if let Some(word) = &section.invalid_id {
                let hint =
                    "Write the id as R and three digits, such as R001, in a heading of two `#`.";
                verdict.push(Finding::error(INVALID, word, hint));
            }
            let _nothing_is_set_here = read_lines("the text", body, section.line, &mut verdict);
        }
    }
    (entries, verdict)
}

/// The ids that a text of expected results defines.
pub(crate) fn known_results(text: &str) -> Vec<String> {
    sections(text)
        .into_iter()
        .filter_map(|section| section.id)
        .collect()
}

/// Judges whether each gate that an entry names is a gate of the plan.
pub(crate) fn check_gates(results: &[ExpectedResult], plan: &Plan) -> Verdict {
    let declared: HashSet<&str> = plan.gates.iter().map(String::as_str).collect();
    let mut verdict = Verdict::default();
    for result in results {
        for gate in result
            .related_gates
            .iter()
            .filter(|gate| !declared.contains(gate.as_str()))
        {
            let hint = format!("The plan declares no gate {gate:?}; name one that it declares.");
            verdict.push(Finding::error(GATE, &result.id, hint));
        }
    }
    verdict
}

/// Checks the evidence of every result against what was found at its paths. A path that was not examined
/// counts as missing.
#[must_use]
pub fn check_evidence(
    results: &[ExpectedResult],
    found: &BTreeMap<RepoPath, EvidenceFound>,
) -> Verdict {
    let mut verdict = Verdict::default();
    for result in results {
        for path in &result.evidence {
            let (code, hint) = match found.get(path).copied().unwrap_or(EvidenceFound::Nothing) {
                EvidenceFound::File => continue,
                EvidenceFound::Nothing => {
                    (MISSING, "this file is not in the run or the repository")
                }
                EvidenceFound::NoFile => (
                    NO_FILE,
                    "this is not a file; name the file that shows the result",
                ),
                EvidenceFound::Outside => (
                    OUTSIDE,
                    "a link in the path is broken or leaves the run and the repository",
                ),
            };
            verdict.push(Finding::error(
                code,
                path.as_str(),
                format!("Evidence of {}: {hint}.", result.id),
            ));
        }
    }
    verdict
}

/// A part of the text that a heading begins.
struct Section {
    from: usize,
    line: u64,
    id: Option<String>,
    /// An invalid id, as written.
    invalid_id: Option<String>,
}

fn sections(text: &str) -> Vec<Section> {
    if text.len() > key_lines::MAX_TEXT {
        return Vec::new();
    }
    let section = |(line, from, content): (u64, usize, &str)| {
        let title = content.trim_start_matches('#');
        let level = content.len() - title.len();
        let word = title
            .trim_start()
            .split([' ', '\t', ':'])
            .next()
            .unwrap_or_default();
        let is_heading =
            (1..=6).contains(&level) && (title.is_empty() || title.starts_with([' ', '\t']));
        let is_entry = level == 2 && is_id(IdKind::Outcome, word);
        let is_id_like = !is_entry && is_meant_as_id(IdKind::Outcome, word);
        (is_heading && (level <= 2 || is_id_like)).then(|| Section {
            from,
            line,
            id: is_entry.then(|| word.to_owned()),
            invalid_id: is_id_like.then(|| word.to_owned()),
        })
    };
    key_lines::open_lines(text).filter_map(section).collect()
}

fn entry(id: &str, body: &str, line: u64, verdict: &mut Verdict) -> ExpectedResult {
    let values = read_lines(id, body, line, verdict);
    let value = |key: &str| values.get(key).map(String::as_str).unwrap_or_default();
    for key in KEYS.known.iter().filter(|key| value(key).is_empty()) {
        let hint = format!("Add the line `{key}: …` to this entry.");
        verdict.push(Finding::error(INCOMPLETE, id, hint));
    }
    let mut evidence = Vec::new();
    for item in key_lines::list(value("Evidence")) {
        match item.parse() {
            // It would be a separator on other systems.
            Ok(_) if item.contains('\\') => {
                verdict.push(Finding::error(
                    PATH,
                    item,
                    format!("Evidence of {id}: write the path with `/`."),
                ));
            }
            Ok(path) => evidence.push(path),
            Err(error) => verdict.push(Finding::error(
                PATH,
                item,
                format!("Evidence of {id}: {error}."),
            )),
        }
    }
    ExpectedResult {
        id: id.to_owned(),
        acceptance: value("Acceptance").to_owned(),
        evidence,
        related_gates: key_lines::list(value("Related-Gates"))
            .into_iter()
            .map(str::to_owned)
            .collect(),
    }
}

fn read_lines(id: &str, body: &str, line: u64, verdict: &mut Verdict) -> BTreeMap<String, String> {
    let lines = key_lines::read_keys(body, KEYS, line);
    for key in lines
        .repeated
        .iter()
        .filter(|key| KEYS.known.contains(&key.as_str()))
    {
        verdict.push(Finding::error(
            TEXT,
            id,
            format!("Keep one line `{key}: …` in this entry."),
        ));
    }
    for fault in &lines.faults {
        let place = match fault {
            Fault::LongText => "EXPECTED_RESULTS.md".to_owned(),
            _ => format!("EXPECTED_RESULTS.md, {}", fault.place()),
        };
        verdict.push(Finding::error(TEXT, place, fault.to_string()));
    }
    for (key, value) in lines.values.iter().filter(|(key, _)| *key != "Acceptance") {
        if KEYS.known.contains(&key.as_str()) && key_lines::has_empty_item(value) {
            verdict.push(Finding::error(
                TEXT,
                id,
                format!("Remove the comma without an entry from `{key}`."),
            ));
        }
    }
    lines.values
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GOOD: &str = "# Expected results\n\n## R001: it is right\n\nAcceptance: it works\nEvidence: artifacts/verify_report.json, src/a.py\n\
                        Related-Gates: lite\n\n## Remarks\n\nAcceptance of nothing.\n";

    fn codes(verdict: &Verdict) -> Vec<&str> {
        verdict
            .findings()
            .iter()
            .map(|finding| finding.code.as_str())
            .collect()
    }

    #[test]
    fn an_entry_has_its_three_lines() {
        let (results, verdict) = read_results(GOOD);
        assert_eq!(codes(&verdict), [""; 0]);
        assert_eq!(results.len(), 1);
        assert_eq!(
            (results[0].id.as_str(), results[0].evidence.len()),
            ("R001", 2)
        );
        assert_eq!(known_results(GOOD), ["R001"]);
        for key in ["Acceptance", "Evidence", "Related-Gates"] {
            let without = GOOD.replacen(&format!("\n{key}: "), "\nplain ", 1);
            assert_eq!(
                codes(&read_results(&without).1),
                ["plan-result-incomplete"],
                "{key}"
            );
            let (head, rest) = GOOD.split_once(&format!("\n{key}: ")).unwrap();
            let empty = format!("{head}\n{key}:\n{}", rest.split_once('\n').unwrap().1);
            assert_eq!(
                codes(&read_results(&empty).1),
                ["plan-result-incomplete"],
                "{key}"
            );
        }
    }

    #[test]
    fn ambiguous_text_is_reported() {
        let entry = &GOOD[20..];
        for (text, expected) in [
            (format!("{GOOD}{entry}"), "plan-result-repeated"),
            (GOOD.replace("## R001", "## R1"), "plan-result-invalid"),
            (GOOD.replace("## R001", "### R001"), "plan-result-invalid"),
            (GOOD.replace("## R001", "## r001"), "plan-result-invalid"),
            (GOOD.replace("Evidence:", "evidence:"), "plan-result-text"),
            (
                GOOD.replace(
                    "Related-Gates: lite",
                    "Related-Gates: lite\nRelated-Gates: x",
                ),
                "plan-result-text",
            ),
            (
                GOOD.replace("Gates: lite", "Gates: lite,"),
                "plan-result-text",
            ),
            (
                GOOD.replace("src/a.py", "src/a\u{202e}.py"),
                "plan-result-text",
            ),
            (format!("{GOOD}~~~\n"), "plan-result-text"),
            (format!("{GOOD}\0"), "plan-result-text"),
            ("x".repeat(key_lines::MAX_TEXT + 1), "plan-result-text"),
        ] {
            assert!(
                codes(&read_results(&text).1).contains(&expected),
                "{text:.200?}: {:?}",
                read_results(&text).1
            );
        }
        let fenced = GOOD.replace("## R001", "```\n## R009\n```\n## R001");
        assert_eq!(known_results(&fenced), ["R001"]);
        assert_eq!(codes(&read_results(&GOOD.replace('\n', "\r\n")).1), [""; 0]);
    }

    #[test]
    fn evidence_is_a_path_that_cannot_leave() {
        for path in [
            "../x",
            "/etc/passwd",
            "a/../../b",
            "logs/",
            "C:/x",
            "a\\b",
            ".git/config",
            ".",
        ] {
            let (_, verdict) = read_results(&GOOD.replace("src/a.py", path));
            assert_eq!(codes(&verdict), ["plan-evidence-path"], "{path}");
        }
    }

    #[test]
    fn evidence_is_checked_by_findings() {
        let (results, _) = read_results(GOOD);
        let found = |found| {
            BTreeMap::from([
                (
                    "artifacts/verify_report.json".parse().unwrap(),
                    EvidenceFound::File,
                ),
                ("src/a.py".parse().unwrap(), found),
            ])
        };
        assert_eq!(
            codes(&check_evidence(&results, &found(EvidenceFound::File))),
            [""; 0]
        );
        for (what, code) in [
            (EvidenceFound::Nothing, "plan-evidence-missing"),
            (EvidenceFound::NoFile, "plan-evidence-no-file"),
            (EvidenceFound::Outside, "plan-evidence-outside"),
        ] {
            assert_eq!(codes(&check_evidence(&results, &found(what))), [code]);
        }
        assert_eq!(
            codes(&check_evidence(&results, &BTreeMap::new())),
            ["plan-evidence-missing"; 2]
        );
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn any_text_parses_to_valid_ids(text in "(?s)(#{1,3} R[0-9]{1,4}|Evidence: [a./]{0,6}|```|.{0,8})(\n(#{1,3} R[0-9]{1,4}|Evidence: [a./]{0,6}|```|.{0,8})){0,9}") {
                let (results, _) = read_results(&text);
                prop_assert_eq!(results.iter().map(|result| result.id.clone()).collect::<Vec<_>>(), known_results(&text));
                for result in results {
                    prop_assert!(is_id(IdKind::Outcome, &result.id));
                }
            }
        }
    }
}
