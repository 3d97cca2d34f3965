//! `artifacts/PLAN.md`: what a change may touch, which gates it must pass, when to stop.
//!
//! The headers are key lines. A plan is signed by the digest of its whole text, so any edit makes it
//! unsigned. Parsing is strict: ambiguous or invisible text is a finding, not a plan. The grammar is in
//! `docs/contracts/plan.md`.

use std::collections::HashSet;
use std::fmt::{self, Write as _};
use std::str::FromStr;

use crucible_model::{Code, Finding, PathPrefix, RepoPath, SourcePattern, Verdict, single_spaced};
use crucible_patch::is_test_path;
use crucible_verify::{ACCEPTABLE, GateId, builtin_gates};

use crate::contract::ids::{IdKind, is_id};
use crate::contract::key_lines::{self, Fault, KeyLines, Keys};
use crate::may_drop::is_definition_name;

const MISSING_KEY: Code = Code::new("plan-key-missing");
const REPEATED_KEY: Code = Code::new("plan-key-repeated");
const BAD_SCOPE: Code = Code::new("plan-scope-invalid");
const WIDE_SCOPE: Code = Code::new("plan-scope-everything");
const MISSING_GATE: Code = Code::new("plan-gate-missing");
const BAD_STATUS: Code = Code::new("plan-status-invalid");
const BAD_BUDGET: Code = Code::new("plan-budget-invalid");
const BAD_STOP: Code = Code::new("plan-stop-invalid");
const BAD_NAME: Code = Code::new("plan-may-drop-invalid");
const UNRESOLVED_ID: Code = Code::new("plan-id-unresolved");
const BAD_ID: Code = Code::new("plan-id-invalid");
const BAD_GATE: Code = Code::new("plan-gate-invalid");
const NO_RESULTS: Code = Code::new("plan-no-results");
const BAD_ACCEPTS: Code = Code::new("plan-accepts-invalid");
const EMPTY_VALUE: Code = Code::new("plan-value-empty");
const GAP: Code = Code::new("plan-list-gap");
const MISSPELT_KEY: Code = Code::new("plan-key-misspelt");
const BAD_TEXT: Code = Code::new("plan-text-invalid");

/// The keys of a plan.
const KEYS: Keys = Keys {
    known: &[
        "Status",
        "Goal",
        "Scope-Allow",
        "Scope-Sources",
        "Scope-Deny",
        "Names",
        "Gates",
        "Stop",
        "Budgets",
        "Behaviors",
        "Results",
        "May-Drop",
        "May-Add",
        "Renames",
        "Accepts",
    ],
    free: &["Goal"],
};
/// Those whose value is a list.
const LISTS: [&str; 7] = [
    "Gates",
    "Stop",
    "Behaviors",
    "Results",
    "May-Drop",
    "Renames",
    "Accepts",
];
/// Keys whose value is a list of paths.
const PATHS: [&str; 5] = [
    "Scope-Allow",
    "Scope-Sources",
    "Scope-Deny",
    "Names",
    "May-Add",
];
/// Keys whose value is required.
const FILLED: [&str; 3] = ["Status", "Stop", "Budgets"];

/// The conditions on which a run stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopCondition {
    /// A change passed every gate.
    Verified,
    /// Every attempt is used up.
    Iterations,
    /// The calls, the tokens or the money are used up.
    Budget,
    /// A reviewer blocks the plan, and no other plan is left.
    Blocked,
}

impl StopCondition {
    /// Every condition, as it is written in a plan.
    const ALL: [Self; 4] = [
        Self::Verified,
        Self::Iterations,
        Self::Budget,
        Self::Blocked,
    ];

    /// The word in a plan.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Iterations => "iterations",
            Self::Budget => "budget",
            Self::Blocked => "blocked",
        }
    }

    /// All of them, as the value of `Stop`.
    pub(crate) fn every() -> String {
        Self::ALL.map(Self::as_str).join(", ")
    }
}

/// The gates that every plan declares: the verifier's own.
pub fn required_gates() -> impl Iterator<Item = &'static str> {
    builtin_gates().iter().map(|gate| gate.id())
}

/// Whether a plan has been approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanStatus {
    /// Proposed.
    Draft,
    /// Approved; the signature's digest proves it.
    Signed,
}

/// A plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Draft or signed.
    pub status: PlanStatus,
    /// The goal, for readers.
    pub goal: String,
    /// Where the patch may change files.
    pub scope_allow: Vec<PathPrefix>,
    /// Directories whose sources may change too; a line of the plan only if there are any.
    pub scope_sources: Vec<SourcePattern>,
    /// Where it may not, even below an allowed place.
    pub scope_deny: Vec<PathPrefix>,
    /// The gates that must have run.
    pub gates: Vec<String>,
    /// When to stop: the list of conditions.
    pub stop: String,
    /// Iterations, files and bytes.
    pub budgets: String,
    /// Behaviours this run touches (`B001`).
    pub behaviors: Vec<String>,
    /// Results this run promises (`R001`).
    pub results: Vec<String>,
    /// Files in scope although they are new, tests or manifests.
    pub names: Vec<RepoPath>,
    /// Definitions that the patch may remove; a line of the plan only if there are any.
    pub may_drop: Vec<String>,
    /// Places where the patch may add new files, tests and document lines; a line of the plan only if there
    /// are any.
    pub may_add: Vec<PathPrefix>,
    /// Old and new names of symbols that are renamed, in tests too; a line only if there are any.
    pub renames: Vec<(String, String)>,
    /// The codes of refusals that a person accepted for this run; a line only if there are any.
    pub accepts: Vec<String>,
}

impl Plan {
    /// Whether the scope lets this file change.
    pub(crate) fn may_change(&self, path: &RepoPath) -> bool {
        (self.scope_allow.iter().any(|place| place.contains(path))
            || self.scope_sources.iter().any(|place| place.contains(path)))
            && !self.scope_deny.iter().any(|place| place.denies(path))
    }

    /// The places where the patch may add tests.
    pub(crate) fn test_places(&self) -> Vec<String> {
        let is_of_tests = |place: &PathPrefix| {
            let place = place.to_string();
            let place = place.trim_end_matches('/');
            // Rust's tests stand in the files of the sources. A file of a neutral name tells whether it is the directory
            // that makes it a test.
            place.ends_with(".rs")
                || [place.to_owned(), format!("{place}/x")]
                    .iter()
                    .any(|path| path.parse().is_ok_and(|path| is_test_path(&path)))
        };
        let places = self.may_add.iter().chain(&self.scope_allow);
        let names = self.names.iter().cloned().map(PathPrefix::from);
        let mut found: Vec<String> = Vec::new();
        for place in places.cloned().chain(names).filter(is_of_tests) {
            let place = place.to_string();
            if !found.contains(&place) {
                found.push(place);
            }
        }
        found
    }

    /// The plan's text.
    #[must_use]
    pub fn render(&self) -> String {
        let status = match self.status {
            PlanStatus::Draft => "DRAFT",
            PlanStatus::Signed => "SIGNED",
        };
        let prefixes = |list: &[PathPrefix]| {
            list.iter()
                .map(|prefix| key_lines::quote_path(&prefix.to_string()))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let names: Vec<String> = self
            .names
            .iter()
            .map(|name| key_lines::quote_path(name.as_str()))
            .collect();
        let sources: Vec<String> = self
            .scope_sources
            .iter()
            .map(|place| key_lines::quote_path(&place.to_string()))
            .collect();
        let mut text = format!("# Plan\n\nStatus: {status}\n");
        let goal = single_spaced(&self.goal);
        for (key, value) in [("Goal", goal), ("Scope-Allow", prefixes(&self.scope_allow))] {
            let _infallible = writeln!(text, "{}", format!("{key}: {value}").trim_end());
        }
        if !sources.is_empty() {
            let _infallible = writeln!(text, "Scope-Sources: {}", sources.join(", "));
        }
        for (key, value) in [
            ("Scope-Deny", prefixes(&self.scope_deny)),
            ("Names", names.join(", ")),
            ("Gates", self.gates.join(", ")),
            ("Stop", self.stop.clone()),
            ("Budgets", self.budgets.clone()),
            ("Behaviors", self.behaviors.join(", ")),
            ("Results", self.results.join(", ")),
        ] {
            let _infallible = writeln!(text, "{}", format!("{key}: {value}").trim_end());
        }
        if !self.may_drop.is_empty() {
            let _infallible = writeln!(text, "May-Drop: {}", self.may_drop.join(", "));
        }
        if !self.may_add.is_empty() {
            let _infallible = writeln!(text, "May-Add: {}", prefixes(&self.may_add));
        }
        if !self.renames.is_empty() {
            let renames: Vec<String> = self
                .renames
                .iter()
                .map(|(old, new)| format!("{old}={new}"))
                .collect();
            let _infallible = writeln!(text, "Renames: {}", renames.join(", "));
        }
        if !self.accepts.is_empty() {
            let _infallible = writeln!(text, "Accepts: {}", self.accepts.join(", "));
        }
        text
    }

    /// Parses a plan; the findings describe its errors.
    ///
    /// # Errors
    ///
    /// The verdict names every missing, duplicate or misspelt key, every scope that is invalid or unlimited,
    /// and every ambiguous line.
    pub fn parse(text: &str) -> Result<Self, Verdict> {
        let lines = key_lines::read_keys(text, KEYS, 1);
        let mut verdict = form(&lines);
        let mut value = |key: &str| {
            lines.values.get(key).cloned().unwrap_or_else(|| {
                verdict.push(Finding::error(
                    MISSING_KEY,
                    key,
                    "Add the line; the keys are listed in docs/codes/plan.md.",
                ));
                String::new()
            })
        };
        let (status, goal) = (
            value("Status"),
            lines.values.get("Goal").cloned().unwrap_or_default(),
        );
        let (allow, deny, gates) = (value("Scope-Allow"), value("Scope-Deny"), value("Gates"));
        let (stop, budgets, behaviors, results) = (
            value("Stop"),
            value("Budgets"),
            value("Behaviors"),
            value("Results"),
        );
        let status = match status.as_str() {
            "SIGNED" => PlanStatus::Signed,
            // An empty one has its finding already.
            "DRAFT" | "" => PlanStatus::Draft,
            other => {
                verdict.push(Finding::error(BAD_STATUS, other, "Write DRAFT or SIGNED."));
                PlanStatus::Draft
            }
        };
        let scope_allow: Vec<PathPrefix> = parse_items(&allow, &BAD_SCOPE, &mut verdict);
        let sources = lines
            .values
            .get("Scope-Sources")
            .map(String::as_str)
            .unwrap_or_default();
        let scope_sources = parse_items(sources, &BAD_SCOPE, &mut verdict);
        let scope_deny: Vec<PathPrefix> = parse_items(&deny, &BAD_SCOPE, &mut verdict);
        if scope_allow.iter().any(PathPrefix::is_everything) {
            verdict.push(wide_scope());
        }
        if scope_deny.iter().any(PathPrefix::is_everything) {
            let hint = "This plan denies every path; name only the paths that must not change.";
            verdict.push(Finding::error(WIDE_SCOPE, "Scope-Deny", hint));
        }
        let names = lines
            .values
            .get("Names")
            .map(String::as_str)
            .unwrap_or_default();
        let names = parse_items(names, &BAD_SCOPE, &mut verdict);
        let may_drop = lines
            .values
            .get("May-Drop")
            .map(String::as_str)
            .unwrap_or_default();
        for name in key_lines::list(may_drop)
            .into_iter()
            .filter(|name| !is_definition_name(name))
        {
            let hint = "Write plain names of definitions in May-Drop.";
            verdict.push(Finding::error(BAD_NAME, name, hint));
        }
        let may_add = lines
            .values
            .get("May-Add")
            .map(String::as_str)
            .unwrap_or_default();
        let may_add: Vec<PathPrefix> = parse_items(may_add, &BAD_SCOPE, &mut verdict);
        if may_add.iter().any(PathPrefix::is_everything) {
            verdict.push(Finding::error(
                WIDE_SCOPE,
                "May-Add",
                "Name the directories that may get new files.",
            ));
        }
        let mut renames = Vec::new();
        for item in key_lines::list(
            lines
                .values
                .get("Renames")
                .map(String::as_str)
                .unwrap_or_default(),
        ) {
            match item
                .split_once('=')
                .filter(|(old, new)| is_definition_name(old) && is_definition_name(new))
            {
                Some((old, new)) => renames.push((old.to_owned(), new.to_owned())),
                None => {
                    let hint = "Write plain names of definitions in Renames: `old=new`.";
                    verdict.push(Finding::error(BAD_NAME, item, hint));
                }
            }
        }
        let accepts = lines
            .values
            .get("Accepts")
            .map(String::as_str)
            .unwrap_or_default();
        for code in key_lines::list(accepts) {
            if !ACCEPTABLE.contains(&code) {
                let hint = format!("Only these can be accepted: {}.", ACCEPTABLE.join(", "));
                verdict.push(Finding::error(BAD_ACCEPTS, code, hint));
            }
        }
        if !verdict.passes() {
            return Err(verdict);
        }
        let owned = |text: &str| {
            key_lines::list(text)
                .into_iter()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let (gates, behaviors, results) = (owned(&gates), owned(&behaviors), owned(&results));
        let (may_drop, accepts) = (owned(may_drop), owned(accepts));
        Ok(Self {
            status,
            goal,
            scope_allow,
            scope_sources,
            scope_deny,
            gates,
            stop,
            budgets,
            behaviors,
            results,
            names,
            may_drop,
            may_add,
            renames,
            accepts,
        })
    }
}

/// Returns the places of a list; each invalid item is a finding with this code.
pub(crate) fn parse_items<T>(value: &str, code: &Code, verdict: &mut Verdict) -> Vec<T>
where
    T: FromStr<Err: fmt::Display>,
{
    let mut parsed = Vec::new();
    for item in key_lines::paths(value) {
        match item.parse() {
            Ok(path) => parsed.push(path),
            Err(error) => verdict.push(Finding::error(code.clone(), item, format!("{error}"))),
        }
    }
    parsed
}

/// Checks a parsed plan: its scope is not empty, every required gate is declared, and every id is known.
///
/// `known_results` are the `R###` ids that `EXPECTED_RESULTS.md` defines, `known_behaviors` the `B###` ids of
/// the catalogue.
#[must_use]
pub(crate) fn check_plan(
    plan: &Plan,
    known_behaviors: &[String],
    known_results: &[String],
) -> Verdict {
    let mut verdict = Verdict::default();
    if plan.scope_allow.is_empty() {
        verdict.push(Finding::error(
            BAD_SCOPE,
            "Scope-Allow",
            "Name at least one file or directory that may change.",
        ));
    }
    if plan.scope_allow.iter().any(PathPrefix::is_everything) {
        verdict.push(wide_scope());
    }
    for gate in plan
        .gates
        .iter()
        .filter(|gate| gate.parse::<GateId>().is_err())
    {
        let hint = "A gate name consists of a-z, 0-9, `-`, `_` and `.`; list nothing else.";
        verdict.push(Finding::error(BAD_GATE, gate, hint));
    }
    for gate in required_gates().filter(|gate| !plan.gates.iter().any(|declared| declared == gate))
    {
        verdict.push(Finding::error(
            MISSING_GATE,
            gate,
            "Add this gate; every plan declares it.",
        ));
    }
    for (kind, declared, known) in [
        (IdKind::Behavior, &plan.behaviors, known_behaviors),
        (IdKind::Outcome, &plan.results, known_results),
    ] {
        let known: HashSet<&str> = known.iter().map(String::as_str).collect();
        for id in declared {
            if !is_id(kind, id) {
                let hint =
                    "An id is B (a behaviour) or R (a result) and three digits; list nothing else.";
                verdict.push(Finding::error(BAD_ID, id, hint));
            } else if !known.contains(id.as_str()) {
                verdict.push(Finding::error(
                    UNRESOLVED_ID,
                    id,
                    "Define this id, or remove it from the plan.",
                ));
            }
        }
    }
    for item in wrong_budgets(&plan.budgets) {
        let hint = "Budgets are whole numbers above 0 for iterations, files, bytes and calls: `iterations=3 files=5 bytes=60000`, or `3/5/60000`.";
        verdict.push(Finding::error(BAD_BUDGET, item, hint));
    }
    let is_condition = |item: &&str| {
        StopCondition::ALL
            .iter()
            .any(|condition| condition.as_str() == *item)
    };
    for item in key_lines::list(&plan.stop)
        .into_iter()
        .filter(|item| !is_condition(item))
    {
        let hint = format!("Write a list of these in Stop: {}.", StopCondition::every());
        verdict.push(Finding::error(BAD_STOP, item, hint));
    }
    if plan.results.is_empty() {
        let hint =
            "The plan names no result, so it does not say what the change achieves; name one.";
        verdict.push(Finding::warning(NO_RESULTS, "Results", hint));
    }
    verdict
}

/// The names of budgets. A plan that Crucible writes has the long ones.
const BUDGETS: [&[&str]; 4] = [
    &["iterations", "max_iterations"],
    &["files", "max_files"],
    &["bytes", "max_total_bytes"],
    &["calls", "max_calls"],
];

/// Returns the invalid parts of a budget line: not a number above 0 without leading zeros, an unknown or duplicate
/// name, one number too many, or nothing between two separators.
fn wrong_budgets(line: &str) -> Vec<&str> {
    // Without the missing number, the others would mean other limits.
    let is_gap = |part: &str| part.trim().is_empty();
    if ['/', ',', ';']
        .iter()
        .any(|sign| line.contains(*sign) && line.split(*sign).any(is_gap))
    {
        return vec![line];
    }
    let items = line
        .split([' ', ',', ';', '/'])
        .filter(|item| !item.is_empty());
    let mut seen = [false; BUDGETS.len()];
    let mut wrong = Vec::new();
    for (at, item) in items.enumerate() {
        let (kind, number) = match item.split_once('=') {
            Some((name, number)) => (
                BUDGETS.iter().position(|names| names.contains(&name)),
                number,
            ),
            // Without names they are in this order; calls are not among them.
            None => (Some(at).filter(|at| *at < BUDGETS.len() - 1), item),
        };
        let is_allowed = |value: u64| value > 0 && value.to_string() == number;
        let is_number = number.parse().is_ok_and(is_allowed);
        let is_new = kind.is_some_and(|kind| !std::mem::replace(&mut seen[kind], true));
        if !(is_number && is_new) {
            wrong.push(item);
        }
    }
    wrong
}

fn wide_scope() -> Finding {
    Finding::error(
        WIDE_SCOPE,
        ".",
        "Name the directories that may change, not everything.",
    )
}

/// What is wrong with the lines of a plan, whatever they mean.
fn form(lines: &KeyLines) -> Verdict {
    let mut verdict = Verdict::default();
    for key in lines
        .repeated
        .iter()
        .filter(|key| KEYS.known.contains(&key.as_str()))
    {
        verdict.push(Finding::error(
            REPEATED_KEY,
            key,
            "Keep one line for each key.",
        ));
    }
    for fault in &lines.faults {
        let code = match fault {
            Fault::Misspelt { .. } => MISSPELT_KEY,
            Fault::LongText
            | Fault::LongLine { .. }
            | Fault::Hidden { .. }
            | Fault::OpenFence { .. } => BAD_TEXT,
        };
        verdict.push(Finding::error(code, fault.place(), fault.to_string()));
    }
    for key in FILLED
        .iter()
        .filter(|key| lines.values.get(**key).is_some_and(String::is_empty))
    {
        verdict.push(Finding::error(
            EMPTY_VALUE,
            *key,
            "Write the value after the colon, on the same line.",
        ));
    }
    let lists = LISTS
        .iter()
        .map(|key| (key, key_lines::has_empty_item as fn(&str) -> bool));
    let paths = PATHS
        .iter()
        .map(|key| (key, key_lines::paths_have_empty_item as fn(&str) -> bool));
    for (key, _) in lists
        .chain(paths)
        .filter(|(key, has_gap)| lines.values.get(**key).is_some_and(|value| has_gap(value)))
    {
        let hint = "Remove the comma without an entry before or after it.";
        verdict.push(Finding::error(GAP, *key, hint));
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan {
            status: PlanStatus::Signed,
            goal: "fix it".into(),
            scope_allow: vec!["src/".parse().unwrap()],
            scope_sources: vec![],
            scope_deny: vec![],
            gates: required_gates().map(str::to_owned).collect(),
            stop: "verified, iterations".into(),
            budgets: "max_iterations=3".into(),
            behaviors: vec![],
            results: vec!["R001".into()],
            names: vec!["src/new.rs".parse().unwrap()],
            may_drop: vec![],
            may_add: vec![],
            renames: vec![],
            accepts: vec![],
        }
    }

    #[test]
    fn additions_and_renames_round_trip() {
        assert!(!plan().render().contains("May-Add") && !plan().render().contains("Renames"));
        let some = Plan {
            may_add: vec!["tests/".parse().unwrap(), "a, b.py".parse().unwrap()],
            renames: vec![("helper".into(), "assist".into())],
            ..plan()
        };
        assert!(
            some.render().ends_with("\nRenames: helper=assist\n"),
            "{}",
            some.render()
        );
        assert_eq!(Plan::parse(&some.render()), Ok(some.clone()));
        for (from, to, code) in [
            ("helper=assist", "helper", "plan-may-drop-invalid"),
            ("helper=assist", "a b=c", "plan-may-drop-invalid"),
            ("May-Add: ", "May-Add: ., ", "plan-scope-everything"),
            ("May-Add: ", "May-Add: ../x, ", "plan-scope-invalid"),
        ] {
            let verdict = Plan::parse(&some.render().replace(from, to)).unwrap_err();
            assert_eq!(verdict.findings()[0].code.as_str(), code, "{to}");
        }
    }

    #[test]
    fn may_drop_round_trips() {
        let none = plan();
        assert!(!none.render().contains("May-Drop"));
        let some = Plan {
            may_drop: vec!["helper".into(), "Old".into()],
            ..plan()
        };
        assert!(some.render().ends_with("\nMay-Drop: helper, Old\n"));
        assert_eq!(Plan::parse(&some.render()), Ok(some.clone()));
        let broken = some.render().replace("Old", "a b");
        let verdict = Plan::parse(&broken).unwrap_err();
        assert_eq!(verdict.findings()[0].code.as_str(), "plan-may-drop-invalid");
    }

    #[test]
    fn places_of_tests_are_known() {
        let with = |may_add: &[&str]| Plan {
            may_add: may_add.iter().map(|place| place.parse().unwrap()).collect(),
            names: Vec::new(),
            ..plan()
        };
        let open = with(&["CHANGELOG.md", "tests/", "src/a.test.js"]);
        assert_eq!(open.test_places(), ["tests", "src/a.test.js"]);
        // Rust's tests stand in the sources.
        assert_eq!(with(&["src/a.rs"]).test_places(), ["src/a.rs"]);
        assert!(with(&["CHANGELOG.md", "src"]).test_places().is_empty());
    }

    #[test]
    fn accepted_refusals_round_trip() {
        assert!(!plan().render().contains("Accepts"));
        let some = Plan {
            accepts: ACCEPTABLE.map(str::to_owned).into(),
            ..plan()
        };
        assert_eq!(Plan::parse(&some.render()), Ok(some.clone()));
        for bad in ["verify-test-broken", "verify-goal-tests-fail", "everything"] {
            let text = some.render().replace("verify-nothing-fixed", bad);
            let verdict = Plan::parse(&text).unwrap_err();
            assert_eq!(verdict.findings()[0].code.as_str(), "plan-accepts-invalid");
        }
    }

    #[test]
    fn scope_sources_round_trip() {
        assert!(!plan().render().contains("Scope-Sources"));
        let some = Plan {
            scope_sources: ["lib/**", "a, b/*", "*"]
                .map(|place| place.parse().unwrap())
                .into(),
            scope_deny: vec!["lib/c.py".parse().unwrap()],
            ..plan()
        };
        let text = some.render();
        assert!(
            text.contains("\nScope-Sources: lib/**, \"a, b/*\", *\nScope-Deny: "),
            "{text}"
        );
        assert_eq!(Plan::parse(&text), Ok(some.clone()));
        let may_change = |path: &str| some.may_change(&path.parse().unwrap());
        assert!(may_change("lib/a.py") && may_change("src/b.txt") && may_change("top.py"));
        assert!(!may_change("lib/b.txt") && !may_change("lib/c.py") && !may_change("other/top.py"));
        for bad in ["**", "lib", "lib/", "../**", "lib/**,"] {
            let broken = text.replace("lib/**, \"a, b/*\", *", bad);
            assert!(Plan::parse(&broken).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_with_comma_round_trip() {
        let odd = |names: &[&str]| {
            names
                .iter()
                .map(|name| name.parse().unwrap())
                .collect::<Vec<PathPrefix>>()
        };
        let names = odd(&["add, tests/add.py", "src/a \"b\", c.py", ",", "plain.py"]);
        let plan = Plan {
            names: vec!["add, tests/add.py".parse().unwrap()],
            scope_allow: names.clone(),
            scope_deny: names[..2].to_vec(),
            ..plan()
        };
        assert_eq!(Plan::parse(&plan.render()), Ok(plan.clone()));
    }

    #[test]
    fn rendered_plan_round_trips_and_passes() {
        let plan = plan();
        assert_eq!(Plan::parse(&plan.render()), Ok(plan.clone()));
        assert!(check_plan(&plan, &[], &["R001".into()]).passes());
    }

    #[test]
    fn missing_keys_and_unknown_ids_are_named() {
        let errors = Plan::parse("Status: SIGNED\nScope-Allow: ../x\n").unwrap_err();
        let subjects: Vec<&str> = errors
            .findings()
            .iter()
            .map(|finding| finding.subject.as_str())
            .collect();
        for key in [
            "Scope-Deny",
            "Gates",
            "Stop",
            "Budgets",
            "Behaviors",
            "Results",
            "../x",
        ] {
            assert!(subjects.contains(&key), "{key} in {subjects:?}");
        }
        let mut bad = plan();
        bad.scope_allow = vec![PathPrefix::ALL];
        bad.gates = vec!["lite".into()];
        bad.behaviors = vec!["B009".into()];
        let verdict = check_plan(&bad, &[], &[]);
        let codes: Vec<&str> = verdict
            .findings()
            .iter()
            .map(|finding| finding.code.as_str())
            .collect();
        assert_eq!(
            codes
                .iter()
                .filter(|code| **code == "plan-gate-missing")
                .count(),
            3
        );
        assert!(codes.contains(&"plan-scope-everything"));
        assert_eq!(
            codes
                .iter()
                .filter(|code| **code == "plan-id-unresolved")
                .count(),
            2
        );
    }

    #[test]
    fn hidden_characters_in_plan_are_reported() {
        let good = plan().render();
        for (bad, code) in [
            (
                good.replace("Scope-Deny:", "Scope-Deny: ."),
                "plan-scope-everything",
            ),
            (
                good.replace("Scope-Allow: src", "Scope-Allow: ./"),
                "plan-scope-everything",
            ),
            (
                good.replace("Scope-Allow: src", "Scope-Allow: ./src"),
                "plan-scope-invalid",
            ),
            (
                good.replace("Scope-Allow: src", "Scope-Allow: src//a"),
                "plan-scope-invalid",
            ),
            (
                good.replace("Names: ", "Names: .git/config, "),
                "plan-scope-invalid",
            ),
            (
                good.replace("Status: SIGNED", "Status:"),
                "plan-value-empty",
            ),
            (
                good.replace("Status: SIGNED", "Status: signed"),
                "plan-status-invalid",
            ),
            (good.replace("Stop: ", "stop: "), "plan-key-misspelt"),
            (good.replace("Results: ", "Results: ,"), "plan-list-gap"),
            (good.replace("\nNames", "\0\nNames"), "plan-text-invalid"),
            (format!("{good}Results: R001\n"), "plan-key-repeated"),
            (format!("{good}Remark: once\nRemark: twice\n"), ""),
        ] {
            let codes: Vec<String> = Plan::parse(&bad).err().map_or_else(Vec::new, |verdict| {
                verdict
                    .findings()
                    .iter()
                    .map(|finding| finding.code.to_string())
                    .collect()
            });
            assert_eq!(
                codes.first().map_or("", String::as_str),
                code,
                "{bad:?}: {codes:?}"
            );
        }
        let rendered = Plan {
            goal: format!("\u{1b}[2J\u{202e}{}", "x".repeat(100_000)),
            ..plan()
        };
        assert_eq!(Plan::parse(&rendered.render()), Ok(rendered));
        let unusual_plan = Plan {
            gates: vec!["Lite".into()],
            results: vec!["R1".into()],
            ..plan()
        };
        let verdict = check_plan(&unusual_plan, &[], &[]);
        let codes: Vec<&str> = verdict
            .findings()
            .iter()
            .map(|finding| finding.code.as_str())
            .collect();
        assert!(
            codes.contains(&"plan-gate-invalid") && codes.contains(&"plan-id-invalid"),
            "{codes:?}"
        );
        let known = ["R001".to_owned()];
        let budgets = |text: &str| {
            let verdict = check_plan(
                &Plan {
                    budgets: text.to_owned(),
                    ..plan()
                },
                &[],
                &known,
            );
            verdict
                .findings()
                .iter()
                .filter(|finding| finding.code == BAD_BUDGET)
                .count()
        };
        for good in [
            "3",
            "3/5/60000",
            "iterations=3, files=5, bytes=60000",
            "max_iterations=4 max_calls=1",
        ] {
            assert_eq!(budgets(good), 0, "{good}");
        }
        for bad in [
            "bananas",
            "-1",
            "3/-5/1",
            "files=0",
            "files=1e3",
            "+3",
            "03",
            "files=05",
            "max_calls=0",
            "calls=0",
            "max_calls=00",
            "3.5",
            "files=",
            "bananas=3",
            "3//6",
            "3/ /6",
            "3,,6",
            "iterations=3;",
            "x=1",
            "3/5/6/7",
            "files=5 files=6",
            "99999999999999999999999999",
            "3 iterations=2",
        ] {
            assert_eq!(budgets(bad), 1, "{bad}");
        }
        let stops = |text: &str| {
            let verdict = check_plan(
                &Plan {
                    stop: text.to_owned(),
                    ..plan()
                },
                &[],
                &known,
            );
            verdict
                .findings()
                .iter()
                .filter(|finding| finding.code == BAD_STOP)
                .count()
        };
        for good in [
            "verified",
            "iterations, verified",
            "verified, iterations, budget, blocked",
        ] {
            assert_eq!(stops(good), 0, "{good}");
        }
        for bad in [
            "bananas",
            "Verified",
            "when it is right",
            "verified; budget",
            "never",
        ] {
            assert_eq!(stops(bad), 1, "{bad}");
        }
        let none = check_plan(
            &Plan {
                results: vec![],
                ..plan()
            },
            &[],
            &[],
        );
        assert!(none.passes() && none.findings()[0].code == NO_RESULTS);
    }

    #[test]
    fn a_goal_cannot_smuggle_in_a_header() {
        let mut plan = plan();
        plan.goal = "fix\nScope-Allow: .\n".into();
        assert_eq!(
            Plan::parse(&plan.render()).unwrap().scope_allow,
            plan.scope_allow
        );
    }
}
