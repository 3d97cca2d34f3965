//! Held-out examples, which the builder of the skill has not seen: the skill is run on each, and must return the stated output.
//!
//! The skill runs as it will when it is trusted, from the very bytes that are verified, with two differences: there is no network and no
//! secret, whatever its class. A class that writes works in the copy, and one that reads finds there what it was granted, but for databases, which no copy holds.
//!
//! What always holds: no finding quotes an example, because the next attempt reads the findings. Nothing that the skill
//! prints is kept, for it can print what it was given.

use async_trait::async_trait;
use crucible_ledger::SideEffect;
use crucible_model::{Code, Finding, Verdict};
use serde_json::{Value, json};

use super::{ForgeGate, GATE_TIMED_OUT, GateAnswer, GateError, GateExamples, GateSite, SkillGate};
use crate::examples::HeldOutExample;
use crate::grants::Grants;
use crate::io_schema::IoSide;
use crate::runner::{SkillCall, SkillCode, SkillEnd, execute};

pub(super) struct Examples;

#[async_trait]
impl ForgeGate for Examples {
    fn id(&self) -> SkillGate {
        SkillGate::Examples
    }

    fn applies(&self, site: &GateSite<'_>) -> bool {
        site.examples.is_some()
    }

    async fn run(&self, site: &GateSite<'_>) -> Result<GateAnswer, GateError> {
        let Some(GateExamples {
            examples,
            python,
            site_packages,
        }) = site.examples
        else {
            return Ok(GateAnswer::default());
        };
        if site.skill.text.is_err() {
            return Ok(GateAnswer::from_verdict(
                site.skill.judged(|_| Verdict::default()),
            ));
        }
        let code = SkillCode {
            paths: site.paths.clone(),
            package: site.package.clone(),
            skill: site.skill.bytes.clone(),
        };
        let (class, grants) = narrowed(site.class, site.grants);
        let mut verdict = Verdict::default();
        let mut left = site.timeout;
        let mut passed = 0_usize;
        for (index, example) in examples.iter().enumerate() {
            let number = index + 1;
            if left.is_zero() {
                verdict.push(timed_out(site, number));
                break;
            }
            let call = SkillCall {
                code: &code,
                class,
                grants: &grants,
                secrets: Vec::new(),
                input: &example.input,
                timeout: left,
                project_root: site.copy,
                python,
                site_packages,
            };
            let ran = execute(site.world, &call).await?;
            left = left.saturating_sub(ran.duration);
            match problem(site, example, &ran.end) {
                None => passed += 1,
                Some(Problem::Time) => {
                    verdict.push(timed_out(site, number));
                    break;
                }
                Some(Problem::Wrong(what)) => verdict.push(Finding::error(
                    Code::new("forge-example"),
                    format!("example {number} of {}", examples.len()),
                    format!("{what} Its contents are hidden from the builder of the skill."),
                )),
            }
        }
        let mut answer = GateAnswer::from_verdict(verdict);
        answer
            .facts
            .insert("examples".to_owned(), json!(examples.len()));
        answer.facts.insert("passed".to_owned(), json!(passed));
        Ok(answer)
    }
}

enum Problem {
    Time,
    Wrong(&'static str),
}

/// Without network and secrets: what is left of a class that is about them is to compute.
fn narrowed(class: SideEffect, grants: &Grants) -> (SideEffect, Grants) {
    match class {
        SideEffect::FileWrite => (
            class,
            Grants {
                write_paths: grants.write_paths.clone(),
                ..Grants::default()
            },
        ),
        SideEffect::ReadOnly => (
            class,
            Grants {
                read_paths: grants.read_paths.clone(),
                ..Grants::default()
            },
        ),
        SideEffect::Network
        | SideEffect::SecretRead
        | SideEffect::Money
        | SideEffect::Messaging => (SideEffect::ReadOnly, Grants::default()),
    }
}

fn problem(site: &GateSite<'_>, example: &HeldOutExample, end: &SkillEnd) -> Option<Problem> {
    Some(Problem::Wrong(match end {
        SkillEnd::Returned(given) if !site.io_schema.problems(IoSide::Output, given).is_empty() => {
            "What the skill gave does not fit the schema of its output."
        }
        SkillEnd::Returned(given) if !same(given, &example.output) => {
            "The skill gave something else."
        }
        SkillEnd::Returned(_) => return None,
        SkillEnd::Raised { .. } => "The skill raised an exception.",
        SkillEnd::Denied { .. } => {
            "The skill tried what is not allowed here: its class, and no network and no secret."
        }
        SkillEnd::HoldsSecret { .. } => "What the skill gave holds a secret.",
        SkillEnd::TimedOut => return Some(Problem::Time),
        SkillEnd::Broken { .. } => "The skill gave no result.",
    }))
}

fn timed_out(site: &GateSite<'_>, number: usize) -> Finding {
    let seconds = site.timeout.as_secs();
    Finding::error(
        GATE_TIMED_OUT,
        format!("example {number}: {seconds} s"),
        "The examples together took longer than a gate may. Look for what waits or never ends; [forge] gate_timeout_s gives more time.",
    )
}

/// Whether two values are the same: numbers by what they are worth, so that 2 is 2.0.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || (one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, value)| other.get(key).is_some_and(|other| same(value, other)))
        }
        (one, other) => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_json_values_compare_equal() {
        assert!(same(
            &json!({"a": [2, {"b": 1.5}]}),
            &json!({"a": [2.0, {"b": 1.5}]})
        ));
        for (one, other) in [
            (json!({"a": 1}), json!({"a": 1, "b": 2})),
            (json!([1, 2]), json!([1])),
            (json!(1), json!(true)),
            (
                json!(9_007_199_254_740_993_i64),
                json!(9_007_199_254_740_992_i64),
            ),
            (json!(null), json!(0)),
        ] {
            assert!(!same(&one, &other) && !same(&other, &one), "{one} {other}");
        }
    }
}
