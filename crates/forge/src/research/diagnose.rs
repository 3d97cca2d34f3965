//! What kind of failure it is, and the facts. Pure.
//!
//! The kind is the one that the code which saw the failure recorded, or follows from the gates that did not pass: invariants before policy
//! before tests before lint, so that what is wrong with safety is never hidden behind what is wrong with style. Where that gate found nothing
//! but that its time was over, the kind is that. Text that was printed is looked at only where a row holds no such record; a kind that comes from it calls a person whatever it is ([`super::escalation()`]).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crucible_ledger::SkillGateRow;
use crucible_model::{Code, Finding, Level, short_line};
use crucible_secrets::Scanner;
use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::failed::FailedStep;
use crate::failure::{FailureKind, SkillFailure};
use crate::gates::{GATE_TIMED_OUT, GATES, SkillGate};
use crate::policy::TEST_EMPTY;

/// The most facts of a failure.
const MAX_FACTS: usize = 40;
/// The most measured values of an attempt.
const MAX_MEASURED: usize = 30;
/// The most characters of a text in a fact.
const MAX_LEN: usize = 300;

/// The evidence for a failure's kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiagnosisBasis {
    /// What the code that saw it fail recorded.
    Record,
    /// Text that was printed: a guess.
    LogText,
    /// There is neither.
    Nothing,
}

/// One thing that is known of a failure. Its texts hold no secret and nothing that nobody sees, and are short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureFact {
    /// Who found it: `build`, or a gate.
    pub source: String,
    /// Of which kind the finding is.
    pub code: String,
    /// How much it weighs.
    pub level: Level,
    /// The file, where it is about a place in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in it, from 1 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// What it is about.
    pub subject: String,
    /// What to do.
    pub hint: String,
}

/// What is known of a failure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailureDiagnosis {
    /// Of which kind it is.
    pub kind: FailureKind,
    /// The evidence for that kind.
    pub basis: DiagnosisBasis,
    /// Why it is of that kind, in our own words.
    pub why: String,
    /// What was found, at most 40.
    pub facts: Vec<FailureFact>,
    /// How many more there are.
    pub facts_left_out: u64,
    /// What was measured: seconds, exit codes, counts.
    pub measured: Map<String, Value>,
}

/// Judges a failure. `gates` are those of the verification that failed; `log` is what was printed, and counts only where an attempt has no
/// record of its failure.
#[must_use]
pub(crate) fn diagnose(
    step: &FailedStep<'_>,
    gates: &[SkillGateRow],
    log: Option<&str>,
) -> FailureDiagnosis {
    match step {
        FailedStep::Gates(..) => of_gates(gates),
        FailedStep::Build(build) => match build.failure.as_ref().and_then(recorded) {
            Some(failure) => of_record(failure),
            None => of_text(log),
        },
    }
}

/// What an attempt recorded of its failure. Of a record in a form that is not known, the kind counts alone; one that has a kind that nobody
/// knows is a record as well.
fn recorded(failure: &Value) -> Option<SkillFailure> {
    let kind = failure.get("kind")?;
    let bare = || SkillFailure {
        kind: serde_json::from_value(kind.clone()).unwrap_or(FailureKind::Unknown),
        findings: Vec::new(),
        facts: Map::new(),
        log: None,
    };
    Some(serde_json::from_value(failure.clone()).unwrap_or_else(|_| bare()))
}

fn of_record(failure: SkillFailure) -> FailureDiagnosis {
    let measured = failure
        .facts
        .iter()
        .flat_map(|(name, value)| flat(name, value))
        .take(MAX_MEASURED);
    let measured = measured
        .map(|(name, value)| (printable_text(&name), plain(&value)))
        .collect();
    let facts = failure
        .findings
        .iter()
        .map(|finding| fact("build", finding));
    let why = match failure.kind {
        FailureKind::GateViolation => {
            "the attempt changed what it may not change, or did not make both files"
        }
        FailureKind::Timeout => "the time of the attempt was over",
        FailureKind::BuildError => "the agent could not be run, or failed",
        FailureKind::Unknown => "the record of the attempt does not tell",
        FailureKind::VerifyLint
        | FailureKind::VerifyTest
        | FailureKind::VerifyPolicy
        | FailureKind::VerifyInvariant => "the record of the attempt says so",
    };
    FailureDiagnosis::new(
        failure.kind,
        DiagnosisBasis::Record,
        why.to_owned(),
        facts,
        measured,
    )
}

/// Which kind a gate that did not pass makes. The gravest comes first.
const BY_GATE: [(SkillGate, FailureKind); GATES.len()] = [
    (SkillGate::Invariants, FailureKind::VerifyInvariant),
    (SkillGate::Policy, FailureKind::VerifyPolicy),
    (SkillGate::Pytest, FailureKind::VerifyTest),
    (SkillGate::Repeat, FailureKind::VerifyTest),
    (SkillGate::Examples, FailureKind::VerifyTest),
    (SkillGate::Ruff, FailureKind::VerifyLint),
    (SkillGate::Mypy, FailureKind::VerifyLint),
];

/// The failed gate that the kind follows from.
pub(super) fn deciding_gate(gates: &[SkillGateRow]) -> Option<(&SkillGateRow, FailureKind)> {
    let (row, kind) = BY_GATE.iter().find_map(|(gate, kind)| {
        Some((
            gates.iter().find(|row| gate.is_of(row) && !row.passed)?,
            *kind,
        ))
    })?;
    if SkillGate::Policy.is_of(row) && only_of(row, TEST_EMPTY) {
        // Nothing that could do harm, only a test that asks nothing.
        return Some((row, FailureKind::VerifyTest));
    }
    Some((
        row,
        if only_out_of_time(row) {
            FailureKind::Timeout
        } else {
            kind
        },
    ))
}

/// Whether every error of a gate has this code, and there is one.
fn only_of(row: &SkillGateRow, code: Code) -> bool {
    let mut errors = findings_of(row)
        .into_iter()
        .filter(|found| found.level == Level::Error)
        .peekable();
    errors.peek().is_some() && errors.all(|found| found.code == code)
}

/// Whether a gate did not pass for its time alone. Those that judge texts have none.
fn only_out_of_time(row: &SkillGateRow) -> bool {
    let judges_texts = [SkillGate::Invariants, SkillGate::Policy]
        .iter()
        .any(|gate| gate.is_of(row));
    !judges_texts && only_of(row, GATE_TIMED_OUT)
}

/// What a gate found; nothing where its row is in a form that is not known.
fn findings_of(row: &SkillGateRow) -> Vec<Finding> {
    serde_json::from_value(row.findings.clone()).unwrap_or_default()
}

fn of_gates(gates: &[SkillGateRow]) -> FailureDiagnosis {
    let failed: Vec<&SkillGateRow> = BY_GATE
        .iter()
        .filter_map(|(gate, _)| gates.iter().find(|row| gate.is_of(row) && !row.passed))
        .collect();
    let Some((first, kind)) = deciding_gate(gates) else {
        let why = "the verification failed, and no gate is recorded that did not pass".to_owned();
        return FailureDiagnosis::new(
            FailureKind::Unknown,
            DiagnosisBasis::Record,
            why,
            [],
            Map::new(),
        );
    };
    let others: Vec<&str> = failed.iter().skip(1).map(|row| row.gate.as_str()).collect();
    let mut why = match kind {
        FailureKind::Timeout => format!("the time of {} was over", first.gate.as_str()),
        _ => format!("{} did not pass", first.gate.as_str()),
    };
    if !others.is_empty() {
        why.push_str(&format!(", nor did {}", others.join(", ")));
    }
    let mut facts = Vec::new();
    let mut measured = Map::new();
    for row in failed {
        let findings = findings_of(row);
        let mut figures = json!({ "findings": row.findings.as_array().map_or(0, Vec::len) });
        // How long a skill takes for an example that its builder is not shown, it can choose by what the example holds.
        if !SkillGate::Examples.is_of(row) {
            figures["seconds"] =
                json!(std::time::Duration::from_millis(row.duration_ms).as_secs_f64());
        }
        measured.insert(row.gate.clone(), figures);
        if SkillGate::Examples.is_of(row) {
            facts.extend(counted(&findings));
        } else {
            facts.extend(
                findings
                    .iter()
                    .map(|finding| fact(row.gate.as_str(), finding)),
            );
        }
    }
    FailureDiagnosis::new(kind, DiagnosisBasis::Record, why, facts, measured)
}

/// What may be reported of held-out examples, which the builder of the skill is not shown: how many findings of which kind.
fn counted(findings: &[Finding]) -> Vec<FailureFact> {
    let mut counts: BTreeMap<(&str, Level), u64> = BTreeMap::new();
    for finding in findings {
        *counts
            .entry((finding.code.as_str(), finding.level))
            .or_default() += 1;
    }
    let fact = |((code, level), count): ((&str, Level), u64)| FailureFact {
        source: SkillGate::Examples.as_str().to_owned(),
        code: code.to_owned(),
        level,
        file: None,
        line: None,
        subject: format!("{count} of the held-out examples' findings"),
        hint: "The contents of the examples are hidden from the builder of the skill.".to_owned(),
    };
    counts.into_iter().map(fact).collect()
}

/// The words by which the kind of a text is guessed, the gravest kind first. Words match whole: `TIMEOUT_x` does not match.
static WORDS: LazyLock<Vec<(FailureKind, Option<Regex>)>> = LazyLock::new(|| {
    let table = [
        (FailureKind::VerifyInvariant, r"(?i)\binvariants?\b"),
        (FailureKind::VerifyPolicy, r"(?i)\b(?:policy|forbidden)\b"),
        (
            FailureKind::GateViolation,
            r"(?i)\b(?:gate violation|disallowed|not allowed to change)\b",
        ),
        (FailureKind::VerifyTest, r"(?i)\bpytest\b"),
        (FailureKind::VerifyLint, r"(?i)\b(?:ruff|mypy)\b"),
        (FailureKind::Timeout, r"(?i)\b(?:timed out|timeout)\b"),
        (
            FailureKind::BuildError,
            r"(?i)\b(?:exit code|exited with|command not found)\b",
        ),
    ];
    table
        .into_iter()
        .map(|(kind, pattern)| (kind, Regex::new(pattern).ok()))
        .collect()
});

fn of_text(log: Option<&str>) -> FailureDiagnosis {
    let Some(log) = log else {
        let why = "neither a record nor a log of it is kept".to_owned();
        return FailureDiagnosis::new(
            FailureKind::Unknown,
            DiagnosisBasis::Nothing,
            why,
            [],
            Map::new(),
        );
    };
    let matches_log =
        |words: &Option<Regex>| words.as_ref().is_some_and(|words| words.is_match(log));
    let kind = WORDS
        .iter()
        .find(|(_, words)| matches_log(words))
        .map_or(FailureKind::Unknown, |(kind, _)| *kind);
    let why = "no record of it is kept; this is a guess by words of its log".to_owned();
    FailureDiagnosis::new(kind, DiagnosisBasis::LogText, why, [], Map::new())
}

impl FailureDiagnosis {
    fn new(
        kind: FailureKind,
        basis: DiagnosisBasis,
        why: String,
        facts: impl IntoIterator<Item = FailureFact>,
        measured: Map<String, Value>,
    ) -> Self {
        let mut facts: Vec<FailureFact> = facts.into_iter().collect();
        let left_out = facts.len().saturating_sub(MAX_FACTS);
        facts.truncate(MAX_FACTS);
        Self {
            kind,
            basis,
            why,
            facts,
            facts_left_out: left_out as u64,
            measured,
        }
    }
}

fn fact(source: &str, finding: &Finding) -> FailureFact {
    let (file, line) = place(&finding.subject);
    FailureFact {
        source: source.to_owned(),
        code: printable_text(finding.code.as_str()),
        level: finding.level,
        file: file.map(printable_text),
        line,
        subject: printable_text(&finding.subject),
        hint: printable_text(&finding.hint),
    }
}

/// The place that a subject begins with: `FILE:LINE`, `FILE:LINE:COLUMN`, or `line LINE, column COLUMN`.
fn place(subject: &str) -> (Option<&str>, Option<u64>) {
    if let Some(rest) = subject.strip_prefix("line ") {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        return (None, digits.parse().ok());
    }
    let mut parts = subject.split(':');
    let (file, line) = (parts.next(), parts.next());
    match (file, line.and_then(|line| line.trim().parse().ok())) {
        (Some(file), Some(line)) if !file.is_empty() => (Some(file), Some(line)),
        _ => (None, None),
    }
}

/// A text from outside as it may be kept and shown.
pub(super) fn printable_text(text: &str) -> String {
    short_line(&Scanner::builtin().redact(text).text, MAX_LEN)
}

/// A measured value by its name; one that consists of named values is these. How an agent ended used to be recorded so.
fn flat(name: &str, value: &Value) -> Vec<(String, Value)> {
    match value {
        Value::Object(map) if !map.is_empty() => {
            let named = |inner: &str| match (name, inner) {
                ("ended", "exited") => "exit_code".to_owned(),
                _ => format!("{name} {inner}"),
            };
            map.iter()
                .map(|(inner, value)| (named(inner), value.clone()))
                .collect()
        }
        _ => vec![(name.to_owned(), value.clone())],
    }
}

/// A measured value: a number or a word; a larger value is replaced by its type.
fn plain(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(printable_text(text)),
        Value::Array(items) => Value::Array(
            items
                .iter()
                .filter(|item| !item.is_array() && !item.is_object())
                .take(20)
                .map(plain)
                .collect(),
        ),
        Value::Object(map) => Value::String(format!("{} values", map.len())),
        other => other.clone(),
    }
}
