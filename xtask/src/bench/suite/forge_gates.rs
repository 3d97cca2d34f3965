//! What judges the text of a skill, and the list of skills.
//!
//! Policy and invariants are measured from the bytes on, so parsing counts: a usual skill and a large one, beside hashing the same bytes,
//! which is the least that a gate does. The list is a whole start of the program, beside `/bin/true`.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crucible_forge::{
    Grants, PythonSource, SkillName, SkillPaths, SkillPolicy, check_invariants, check_policy,
};
use crucible_ledger::{Ledger, Moment, NewSkill, SideEffect};
use crucible_model::{ClockSource, Digest};
use serde_json::json;

use super::bench::{Bench, Context, unmeasured};
use super::measure::{Case, Goal, side_by_side, timed};
use super::startup;
use super::tree::scratch;
use crate::error::TaskError;

/// What a person waits for before anything happens.
const LISTED: Goal = Goal::TimeAtMost(Duration::from_millis(10));
/// What a skill may take.
const JUDGED: Goal = Goal::TimeAtMost(Duration::from_millis(3));
/// How many skills the list has.
const SKILLS: usize = 50;
/// How many functions the skills have besides their method.
const SIZES: [(&str, usize); 2] = [("a usual skill", 6), ("a large skill", 60)];

/// The bench of what needs no sandbox.
pub(super) struct ForgeGates;

impl Bench for ForgeGates {
    fn name(&self) -> &'static str {
        "forge-gates"
    }

    fn run(&self, context: &Context<'_>) -> Result<Vec<Case>, TaskError> {
        let mut cases = Vec::new();
        for (what, functions) in SIZES {
            let text = skill(functions);
            let judge = Judge::new().map_err(unmeasured(self.name()))?;
            let beside = || {
                let (time, digest) = timed(|| Digest::compute(text.as_bytes()));
                drop(digest.to_string());
                Ok(time)
            };
            let pair = side_by_side(
                context.rounds.saturating_mul(4),
                || judge.judge(&text),
                beside,
            )?;
            let own_text = format!(
                "policy and invariants: {what}, {} lines",
                text.lines().count()
            );
            cases.push(Case {
                bench: self.name(),
                ours: own_text,
                beside: "hashing it".to_owned(),
                pair,
                goal: JUDGED,
            });
        }
        let program = context.program()?;
        let home = scratch()?;
        propose(home.path()).map_err(unmeasured(self.name()))?;
        let sibling_path = Path::new(startup::BESIDE);
        let pair = side_by_side(
            context.rounds.saturating_mul(4),
            || startup::start(&program, &["skill", "list"], home.path()),
            || startup::start(sibling_path, &[], home.path()),
        )?;
        let ours = format!("crucible skill list, {SKILLS} skills");
        cases.push(Case {
            bench: self.name(),
            ours,
            beside: startup::BESIDE.to_owned(),
            pair,
            goal: LISTED,
        });
        Ok(cases)
    }
}

/// A skill with so many functions besides its method.
fn skill(functions: usize) -> String {
    let mut text = "\"\"\"Counts the words of a text.\"\"\"\n\nimport json\nimport re\nfrom collections import Counter\nfrom typing import Any\n\n\
        from skillset.skills.base import BaseSkill\n\nWORD = re.compile(r\"[a-z]+\")\n"
        .to_owned();
    for number in 0..functions {
        text.push_str(&format!(
            "\n\ndef part_{number}(text: str, least: int = {number}) -> dict[str, int]:\n    \"\"\"Counts the words of at least so many letters.\"\"\"\n    \
             counts: Counter[str] = Counter()\n    for line in text.splitlines():\n        for word in WORD.findall(line.lower()):\n            \
             if len(word) >= least:\n                counts[word] += 1\n    return dict(sorted(counts.items(), key=lambda item: item[1]))\n"
        ));
    }
    text.push_str(
        "\n\nclass WordCountSkill(BaseSkill):\n    \"\"\"Counts words.\"\"\"\n\n    name = \"word_count\"\n    description = \"Counts the words of a text.\"\n    \
         side_effect_class = \"READ_ONLY\"\n\n    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:\n        text = str(inputs[\"text\"])\n        \
         return {\"count\": len(WORD.findall(text)), \"as_json\": json.dumps(part_0(text))}\n",
    );
    text
}

/// Everything that is judged with.
struct Judge {
    name: SkillName,
    paths: SkillPaths,
    policy: SkillPolicy,
    grants: Grants,
}

impl Judge {
    fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let name: SkillName = "word_count".parse()?;
        let paths = SkillPaths::new(&"skillset".parse()?, &name)?;
        Ok(Self {
            name,
            paths,
            policy: SkillPolicy::default(),
            grants: Grants::default(),
        })
    }

    /// How long a verdict on these bytes takes. It has to be one that lets the skill pass: a refusal could come sooner.
    fn judge(&self, text: &str) -> Result<Duration, TaskError> {
        let class = SideEffect::ReadOnly;
        let (time, verdict) = timed(|| {
            PythonSource::parse(text.as_bytes()).map(|source| {
                let mut verdict = check_policy(&source, &self.policy, class, &self.grants);
                verdict.merge(check_invariants(&source, &self.name, &self.paths, class));
                verdict
            })
        });
        let verdict = verdict.map_err(unmeasured("forge-gates"))?;
        match verdict.findings().first() {
            None => Ok(time),
            Some(finding) => Err(TaskError::Unmeasured {
                bench: "forge-gates",
                reason: format!("the skill is refused: {finding}"),
            }),
        }
    }
}

/// A project whose ledger, in the same directory, knows skills.
fn propose(home: &Path) -> Result<(), Box<dyn std::error::Error>> {
    fs::create_dir(home.join(".crucible"))?;
    let project = Digest::compute(home.canonicalize()?.as_os_str().as_encoded_bytes());
    let mut ledger = Ledger::open(&home.join("ledger.db"))?;
    let moment = Moment {
        at: "2026-01-31T09:30:00Z".parse()?,
        clock: ClockSource::System,
    };
    for number in 0..SKILLS {
        ledger.propose_skill(&NewSkill {
            moment,
            project,
            name: format!("skill{number}"),
            description: "Counts the words of a text.".to_owned(),
            io_schema: json!({ "input": { "type": "object" }, "output": { "type": "object" } }),
            side_effect: SideEffect::ReadOnly,
            grants: json!({}),
            spec: format!("{{\"name\": {number}}}").into_bytes(),
            held_out: None,
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_accepted_skills_are_measured() {
        let judge = Judge::new().unwrap();
        assert!(judge.judge(&skill(3)).is_ok());
        assert!(
            judge
                .judge(&format!("import subprocess\n{}", skill(3)))
                .is_err()
        );
        assert!(judge.judge("def broken(:\n").is_err());
    }
}
