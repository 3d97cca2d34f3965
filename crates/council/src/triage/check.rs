//! The rules for a triage's answer, as a pure function.
//!
//! Invariants: [`accept`] is the only constructor of [`TriageOutput`], so each one keeps every rule.
//! Nothing that a rule covers is corrected. No rule covers model hints; they are stored in a bounded,
//! displayable form.

use crucible_model::says_nothing;

use super::reply::Draft;
use super::{CouncilSeat, TriageOutput, stored_hint};
use crate::error::Violation;
use crate::seat::{ComplexityDomain, CouncilRole};

/// Returns the draft as a triage, or every rule that it breaks with the value found.
pub(super) fn accept(draft: Draft) -> Result<TriageOutput, Vec<Violation>> {
    let violations = violations(&draft);
    match u32::try_from(draft.loop_count) {
        Ok(loop_count) if violations.is_empty() => Ok(TriageOutput {
            reconstructed_query: draft.reconstructed_query,
            complexity: draft.complexity,
            short_circuit_allowed: draft.short_circuit_allowed,
            council: draft.council.into_iter().map(with_stored_hint).collect(),
            loop_grammar: draft.loop_grammar,
            loop_count,
            red_team_flavor: draft.red_team_flavor,
            allow_early_exit: draft.allow_early_exit,
            synthesis_instruction: draft.synthesis_instruction,
        }),
        _ => Err(violations),
    }
}

fn violations(draft: &Draft) -> Vec<Violation> {
    let mut violations = Vec::new();
    let seats = draft.council.len();
    if !(3..=5).contains(&seats) {
        violations.push(Violation::Seats { found: seats });
    }
    let red_teams = draft
        .council
        .iter()
        .filter(|seat| seat.role == CouncilRole::RedTeam)
        .count();
    if red_teams != 1 {
        violations.push(Violation::RedTeams { found: red_teams });
    }
    if !(2..=5).contains(&draft.loop_count) {
        violations.push(Violation::LoopCount {
            found: draft.loop_count.to_string(),
        });
    }
    if draft.short_circuit_allowed && draft.complexity != ComplexityDomain::Simple {
        violations.push(Violation::ShortCircuit {
            found: draft.complexity.as_str(),
        });
    }
    let texts = [
        (
            "`reconstructed_query`".to_owned(),
            &draft.reconstructed_query,
        ),
        (
            "`synthesis_instruction`".to_owned(),
            &draft.synthesis_instruction,
        ),
    ];
    let prompts = draft.council.iter().enumerate().map(|(index, seat)| {
        (
            format!(
                "`system_prompt` of item {} of `council` ({})",
                index + 1,
                seat.role
            ),
            &seat.system_prompt,
        )
    });
    let empty = texts
        .into_iter()
        .chain(prompts)
        .filter(|(_, text)| says_nothing(text.as_str()));
    violations.extend(empty.map(|(field, _)| Violation::EmptyText { field }));
    violations
}

fn with_stored_hint(seat: CouncilSeat) -> CouncilSeat {
    CouncilSeat {
        model_hint: seat.model_hint.as_deref().and_then(stored_hint),
        ..seat
    }
}

#[cfg(test)]
mod tests {
    use crucible_testkit::{simple_triage, triage};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::super::reply;
    use super::*;
    use crate::seat::{LoopGrammar, RedTeamFlavor};

    fn judged(value: &Value) -> Result<TriageOutput, Vec<Violation>> {
        accept(reply::read(&value.to_string()).unwrap())
    }

    fn broken(change: impl FnOnce(&mut Value)) -> Vec<String> {
        let mut value = triage("parallel", &["domain_expert", "pragmatist", "creative"]);
        change(&mut value);
        judged(&value)
            .unwrap_err()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    fn seats(roles: &[&str]) -> Value {
        roles
            .iter()
            .map(|role| json!({"role": role, "system_prompt": "Look."}))
            .collect()
    }

    #[test]
    fn broken_rule_is_reported_with_value() {
        type Change = fn(&mut Value);
        let cases: [(Change, &str); 15] = [
            (
                |v| v["council"] = seats(&["red_team", "creative"]),
                "the council has 2 seats",
            ),
            (
                |v| {
                    v["council"] = seats(&[
                        "creative",
                        "creative",
                        "creative",
                        "creative",
                        "creative",
                        "red_team",
                        "pragmatist",
                    ])
                },
                "the council has 7 seats",
            ),
            (
                |v| v["council"] = seats(&["creative", "creative", "pragmatist"]),
                "0 seats have the role red_team",
            ),
            (
                |v| v["council"] = seats(&["red_team", "creative", "red_team"]),
                "2 seats have the role red_team",
            ),
            (|v| v["loop_count"] = 99.into(), "loop_count is 99"),
            (|v| v["loop_count"] = 6.into(), "loop_count is 6"),
            (|v| v["loop_count"] = 1.into(), "loop_count is 1"),
            (|v| v["loop_count"] = 0.into(), "loop_count is 0"),
            (|v| v["loop_count"] = (-3).into(), "loop_count is -3"),
            (
                |v| v["loop_count"] = u64::MAX.into(),
                "loop_count is 18446744073709551615",
            ),
            (
                |v| v["short_circuit_allowed"] = true.into(),
                "short_circuit_allowed is true but complexity is complex",
            ),
            (
                |v| v["reconstructed_query"] = " \n".into(),
                "`reconstructed_query` is empty",
            ),
            (
                |v| v["synthesis_instruction"] = "\u{200b}\u{feff} ".into(),
                "`synthesis_instruction` is empty",
            ),
            (
                |v| v["synthesis_instruction"] = "\u{200d}\u{200c}".into(),
                "`synthesis_instruction` is empty",
            ),
            (
                |v| v["council"][3]["system_prompt"] = "".into(),
                "`system_prompt` of item 4 of `council` (red_team) is empty",
            ),
        ];
        for (change, text) in cases {
            let broken = broken(change);
            assert_eq!(broken.len(), 1, "{broken:?}");
            assert!(broken[0].starts_with(text), "{broken:?}");
        }
    }

    #[test]
    fn all_broken_rules_are_reported_together() {
        let broken = broken(|v| {
            v["council"] = Vec::<Value>::new().into();
            v["loop_count"] = 0.into();
            v["short_circuit_allowed"] = true.into();
            v["complexity"] = "chaotic".into();
            v["reconstructed_query"] = "".into();
            v["synthesis_instruction"] = "".into();
        });
        assert_eq!(broken.len(), 6, "{broken:?}");
    }

    #[test]
    fn only_simple_question_may_skip_council() {
        assert!(judged(&simple_triage()).unwrap().short_circuit_allowed);
        for complexity in ["complicated", "complex", "chaotic"] {
            let mut value = simple_triage();
            value["complexity"] = complexity.into();
            assert_eq!(
                judged(&value).unwrap_err(),
                [Violation::ShortCircuit { found: complexity }]
            );
        }
    }

    #[test]
    fn hint_is_stored_bounded_and_escaped() {
        let stored = |hint: &str| {
            let mut value = triage("parallel", &["creative", "pragmatist"]);
            value["council"][0]["model_hint"] = hint.into();
            judged(&value).unwrap().council[0].model_hint.clone()
        };
        assert_eq!(stored(" maker/model\n").as_deref(), Some("maker/model"));
        assert_eq!(stored(" \n"), None);
        assert_eq!(
            stored("a\u{202e}\u{1b}[2Jb").as_deref(),
            Some("a\\u{202e}\\u{1b}[2Jb")
        );
        assert_eq!(stored(&"m".repeat(200)), Some("m".repeat(200)));
        assert_eq!(
            stored(&"m".repeat(15_000)),
            Some(format!("{}…", "m".repeat(199)))
        );
    }

    #[test]
    fn bounds_are_inclusive() {
        for roles in [&["creative"; 2][..], &["creative"; 4]] {
            for loops in [2, 5] {
                let mut value = triage("sequential", roles);
                value["loop_count"] = loops.into();
                let accepted = judged(&value).unwrap();
                assert_eq!(
                    (accepted.council.len(), accepted.loop_count),
                    (roles.len() + 1, loops)
                );
            }
        }
    }

    fn text() -> impl Strategy<Value = String> {
        prop_oneof![8 => "[a-z]{1,9}", 1 => Just(" \u{200b}".to_owned())]
    }

    fn word(all: Vec<&'static str>) -> impl Strategy<Value = &'static str> {
        prop::sample::select(all)
    }

    fn any_triage() -> impl Strategy<Value = Value> {
        let role = prop_oneof![
            2 => Just("red_team"),
            5 => word(CouncilRole::ALL.iter().map(|role| role.as_str()).collect()),
        ];
        let seat =
            (role, text()).prop_map(|(role, text)| json!({"role": role, "system_prompt": text}));
        (
            prop::collection::vec(seat, 0..8),
            prop_oneof![4 => 2i64..=5, 1 => any::<i64>()],
            (text(), text()),
            (any::<bool>(), any::<bool>()),
            word(ComplexityDomain::ALL.iter().map(|word| word.as_str()).collect()),
            word(LoopGrammar::ALL.iter().map(|word| word.as_str()).collect()),
            word(RedTeamFlavor::ALL.iter().map(|word| word.as_str()).collect()),
        )
            .prop_map(|(council, loops, (query, synthesis), (short, early), complexity, grammar, flavor)| {
                json!({
                    "reconstructed_query": query, "complexity": complexity, "short_circuit_allowed": short,
                    "council": council, "loop_grammar": grammar, "loop_count": loops,
                    "red_team_flavor": flavor, "allow_early_exit": early, "synthesis_instruction": synthesis,
                })
            })
    }

    /// The rules again, on the JSON itself.
    fn keeps_every_rule(value: &Value) -> bool {
        let council = value["council"].as_array().unwrap();
        let says = |text: &Value| {
            text.as_str()
                .unwrap()
                .chars()
                .any(|c| c.is_ascii_alphabetic())
        };
        (3..=5).contains(&council.len())
            && council
                .iter()
                .filter(|seat| seat["role"] == "red_team")
                .count()
                == 1
            && (2..=5).contains(&value["loop_count"].as_i64().unwrap())
            && (value["short_circuit_allowed"] == false || value["complexity"] == "simple")
            && says(&value["reconstructed_query"])
            && says(&value["synthesis_instruction"])
            && council.iter().all(|seat| says(&seat["system_prompt"]))
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn accepted_triage_keeps_rules_and_content(value in any_triage()) {
                match judged(&value) {
                    Ok(accepted) => {
                        let json = serde_json::to_value(&accepted).unwrap();
                        prop_assert!(keeps_every_rule(&json), "{json}");
                        let mut value = value;
                        for seat in value["council"].as_array_mut().unwrap() {
                            seat["model_hint"] = Value::Null;
                        }
                        prop_assert_eq!(json, value);
                    }
                    Err(violations) => {
                        prop_assert!(!violations.is_empty());
                        prop_assert!(!keeps_every_rule(&value), "{value}");
                    }
                }
            }
        }
    }
}
