//! The type checker.
//!
//! It has no switch by which comments that silence it are not heeded, so they are found in the text: one that silences everything is refused,
//! one that names what it silences is shown to the person who approves the skill.

use async_trait::async_trait;
use crucible_model::{Code, Finding, Verdict};
use crucible_sandbox::Keep;

use super::site::GateSource;
use super::tool::{ToolCall, ToolRun};
use super::{ForgeGate, GateAnswer, GateError, GateSite, SkillGate};
use crate::python::{PythonSource, place_of};

/// What mypy is asked: nothing is kept for another time, and each complaint is one line with place and code.
const WORDS: [&str; 9] = [
    "--no-incremental",
    "--cache-dir=/dev/null",
    "--show-error-codes",
    "--show-column-numbers",
    "--hide-error-context",
    "--hide-error-end",
    "--no-pretty",
    "--no-color-output",
    "--no-error-summary",
];
/// What switches type checking off for a function or a class.
const SWITCHES: [&str; 2] = ["no_type_check", "no_type_check_decorator"];

pub(super) struct Mypy;

#[async_trait]
impl ForgeGate for Mypy {
    fn id(&self) -> SkillGate {
        SkillGate::Mypy
    }

    async fn run(&self, site: &GateSite<'_>) -> Result<GateAnswer, GateError> {
        let too_large = site.too_large();
        if !too_large.passes() {
            return Ok(GateAnswer::from_verdict(too_large));
        }
        let files = site.sources().map(|source| source.path.as_str());
        let scratch = site.scratch_for("mypy")?;
        let call = ToolCall::new(&site.tools.mypy, WORDS.into_iter().chain(files), scratch);
        let run = call.run(site, Keep::Head).await?;
        let mut verdict = judge(&run);
        for source in site.sources() {
            verdict.merge(silenced(source));
        }
        Ok(run.answer(verdict))
    }
}

fn judge(run: &ToolRun) -> Verdict {
    if let Some(ended) = run.abnormal_end() {
        return Verdict::new(vec![ended]);
    }
    match run.exit_code() {
        Some(0) => Verdict::default(),
        code => {
            let findings: Vec<Finding> = run.stdout_text().lines().filter_map(complaint).collect();
            match (code, findings.is_empty()) {
                (Some(1 | 2), false) => Verdict::new(findings),
                (code, _) => Verdict::new(vec![run.failed(code.unwrap_or(-1))]),
            }
        }
    }
}

/// A complaint from its line: `path:line:column: error: message  [code]`.
fn complaint(line: &str) -> Option<Finding> {
    let (place, diagnostic) = line.split_once(": error: ")?;
    let (message, code) = match diagnostic.rsplit_once("  [") {
        Some((message, code)) if code.ends_with(']') => (message, code.trim_end_matches(']')),
        _ => (diagnostic, "error"),
    };
    Some(Finding::error(
        Code::new("forge-mypy"),
        format!("{place}: {code}"),
        message,
    ))
}

/// The places where a file silences the type checker.
fn silenced(source: &GateSource) -> Verdict {
    // What is not text is said by the gate of the policy.
    let Ok(text) = &source.text else {
        return Verdict::default();
    };
    source.judged(|_| switched_off(text))
}

fn switched_off(source: &PythonSource) -> Verdict {
    let mut verdict = Verdict::default();
    let root = source.root();
    let mut cursor = root.walk();
    loop {
        let node = cursor.node();
        let place = || place_of(node);
        match node.kind() {
            "comment" => match Silence::parse(source.node_text(node)) {
                Some(Silence::All) => verdict.push(Finding::error(
                    Code::new("forge-silenced"),
                    place(),
                    "Fix what mypy reports instead of silencing it. If that is impossible, name the one code: # type: ignore[code].",
                )),
                Some(Silence::Named) => verdict.push(Finding::warning(
                    Code::new("forge-silenced"),
                    place(),
                    "One line is kept from the type checker. See that it is right before you answer for it.",
                )),
                None => {}
            },
            "identifier" if SWITCHES.contains(&source.node_text(node)) => verdict.push(Finding::error(
                Code::new("forge-silenced"),
                place(),
                "Remove the directive that disables the type checker.",
            )),
            _ => {}
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return verdict;
            }
        }
    }
}

/// How much a comment silences.
#[derive(Debug, PartialEq, Eq)]
enum Silence {
    All,
    Named,
}

impl Silence {
    /// As mypy reads comments: `# mypy: …` sets options for the file, `# type: ignore` may follow other words after a `#`.
    fn parse(comment: &str) -> Option<Self> {
        let parts = comment.split('#').map(str::trim_start);
        let mut found = None;
        for part in parts {
            if part.starts_with("mypy:") {
                return Some(Self::All);
            }
            let Some(rest) = part.strip_prefix("type:") else {
                continue;
            };
            match rest.trim_start().strip_prefix("ignore") {
                Some(named) if named.trim_start().starts_with('[') => found = Some(Self::Named),
                Some(_) => return Some(Self::All),
                None => {}
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_type_checker_suppression_is_found() {
        for all in [
            "# type: ignore",
            "#type:ignore",
            "# x # type: ignore",
            "# mypy: ignore-errors",
            "#mypy: x",
        ] {
            assert_eq!(Silence::parse(all), Some(Silence::All), "{all}");
        }
        assert_eq!(
            Silence::parse("# type: ignore[attr-defined]"),
            Some(Silence::Named)
        );
        assert_eq!(
            Silence::parse("# type: ignore [x]  # why"),
            Some(Silence::Named)
        );
        for none in [
            "# type: int",
            "# the type: ignored",
            "# ignore",
            "# a mypy: note",
        ] {
            assert_eq!(Silence::parse(none), None, "{none}");
        }
        let text = "from typing import no_type_check\nx = 1  # type: ignore[assignment]\ny = 2  # type: ignore\n";
        let source = PythonSource::parse(text.as_bytes()).unwrap();
        let verdict = switched_off(&source);
        assert_eq!(
            (verdict.errors().count(), verdict.findings().len()),
            (2, 3),
            "{verdict:?}"
        );
    }

    #[test]
    fn a_complaint_is_a_line_with_its_place() {
        let finding = complaint("src/p/a.py:3:5: error: No: really  [return-value]").unwrap();
        assert_eq!(
            finding.to_string(),
            "forge-mypy src/p/a.py:3:5: return-value: No: really"
        );
        assert_eq!(complaint("src/p/a.py:3:5: note: see there"), None);
        assert_eq!(
            complaint("Success: no issues found in 2 source files"),
            None
        );
    }
}
