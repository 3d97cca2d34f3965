//! The triage's answer: its JSON Schema, and its strict parser.
//!
//! Invariant: any other word, type or key is an error. Counts are parsed as they are and checked later
//! (`check`), so that all broken rules are reported together.

use crucible_model::Untrusted;
use crucible_model::strict_json::{self, Fields, SchemaMismatch, StrictFault, closed};
use serde_json::{Value, json};

use super::CouncilSeat;
use crate::config::HintedModels;
use crate::seat::{ComplexityDomain, CouncilRole, LoopGrammar, RedTeamFlavor};

/// The schema's name in the request.
pub(super) const NAME: &str = "triage";

/// The longest answer that is read, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// Characters of the reconstructed question, which may hold a whole document.
const MAX_QUESTION: usize = 400_000;
/// Characters of any other text.
const MAX_TEXT: usize = 20_000;
/// The most seats that are parsed. Fewer, but too many, break a rule; more are malformed.
const MAX_SEATS: usize = 50;

/// A triage before its counts are checked.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    pub(super) reconstructed_query: Untrusted,
    pub(super) complexity: ComplexityDomain,
    pub(super) short_circuit_allowed: bool,
    pub(super) council: Vec<CouncilSeat>,
    pub(super) loop_grammar: LoopGrammar,
    pub(super) loop_count: i128,
    pub(super) red_team_flavor: RedTeamFlavor,
    pub(super) allow_early_exit: bool,
    pub(super) synthesis_instruction: Untrusted,
}

/// The JSON Schema for backends that support one. Not every backend enforces the number of seats, and
/// none can require exactly one red team, so the rules are always checked.
pub(super) fn schema(hinted: &HintedModels) -> Value {
    let text = json!({"type": "string"});
    let seat = closed([
        ("role", words(CouncilRole::ALL, CouncilRole::as_str)),
        ("system_prompt", text.clone()),
        ("model_hint", hint(hinted)),
    ]);
    closed([
        ("reconstructed_query", text.clone()),
        (
            "complexity",
            words(ComplexityDomain::ALL, ComplexityDomain::as_str),
        ),
        ("short_circuit_allowed", json!({"type": "boolean"})),
        (
            "council",
            json!({"type": "array", "items": seat, "minItems": 3, "maxItems": 5}),
        ),
        ("loop_grammar", words(LoopGrammar::ALL, LoopGrammar::as_str)),
        (
            "loop_count",
            json!({"type": "integer", "enum": [2, 3, 4, 5]}),
        ),
        (
            "red_team_flavor",
            words(RedTeamFlavor::ALL, RedTeamFlavor::as_str),
        ),
        ("allow_early_exit", json!({"type": "boolean"})),
        ("synthesis_instruction", text),
    ])
}

/// Parses an answer. Only keys with a specified default may be missing.
pub(super) fn read(text: &str) -> Result<Draft, StrictFault> {
    strict_json::read(text, MAX_BYTES, |mut fields| {
        let draft = Draft {
            reconstructed_query: Untrusted::new(fields.text("reconstructed_query", MAX_QUESTION)?),
            complexity: one_of(
                &mut fields,
                "complexity",
                ComplexityDomain::ALL,
                ComplexityDomain::as_str,
            )?,
            short_circuit_allowed: fields
                .optional_truth("short_circuit_allowed")?
                .unwrap_or(false),
            council: fields.list("council", MAX_SEATS, seat)?,
            loop_grammar: one_of(
                &mut fields,
                "loop_grammar",
                LoopGrammar::ALL,
                LoopGrammar::as_str,
            )?,
            loop_count: fields.integer("loop_count")?,
            red_team_flavor: one_of(
                &mut fields,
                "red_team_flavor",
                RedTeamFlavor::ALL,
                RedTeamFlavor::as_str,
            )?,
            allow_early_exit: fields.optional_truth("allow_early_exit")?.unwrap_or(true),
            synthesis_instruction: Untrusted::new(fields.text("synthesis_instruction", MAX_TEXT)?),
        };
        fields.finish().map(|()| draft)
    })
}

fn seat(value: Value, place: String) -> Result<CouncilSeat, SchemaMismatch> {
    let mut fields = Fields::new(value, place)?;
    let seat = CouncilSeat {
        role: one_of(&mut fields, "role", CouncilRole::ALL, CouncilRole::as_str)?,
        system_prompt: Untrusted::new(fields.text("system_prompt", MAX_TEXT)?),
        model_hint: fields.optional_text("model_hint", MAX_TEXT)?,
    };
    fields.finish().map(|()| seat)
}

fn one_of<T: Copy>(
    fields: &mut Fields,
    key: &'static str,
    all: &[T],
    spelled: fn(T) -> &'static str,
) -> Result<T, SchemaMismatch> {
    let known: Vec<(&str, T)> = all.iter().map(|word| (spelled(*word), *word)).collect();
    fields.one_of(key, &known)
}

fn words<T: Copy>(all: &[T], spelled: fn(T) -> &'static str) -> Value {
    let words: Vec<&str> = all.iter().copied().map(spelled).collect();
    json!({"type": "string", "enum": words})
}

fn hint(hinted: &HintedModels) -> Value {
    let nothing = json!({"type": "null"});
    match hinted {
        HintedModels::Any => json!({"anyOf": [nothing, {"type": "string"}]}),
        HintedModels::Only(models) => match models.as_slice() {
            [] => nothing,
            models => json!({"anyOf": [nothing, {"type": "string", "enum": models}]}),
        },
    }
}

#[cfg(test)]
mod tests {
    use crucible_testkit::triage;

    use super::*;

    fn good() -> Value {
        triage("debate", &["pragmatist", "pragmatist", "creative"])
    }

    fn with(change: impl FnOnce(&mut Value)) -> Value {
        let mut value = good();
        change(&mut value);
        value
    }

    fn fault(value: &Value) -> String {
        match read(&value.to_string()).unwrap_err() {
            StrictFault::WrongShape { detail } => detail,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn valid_triage_is_parsed() {
        let mut value = good();
        value["council"][0]["model_hint"] = " a/b ".into();
        let draft = read(&value.to_string()).unwrap();
        assert_eq!(draft.complexity, ComplexityDomain::Complex);
        assert_eq!(draft.loop_grammar, LoopGrammar::Debate);
        assert_eq!(draft.red_team_flavor, RedTeamFlavor::Feasibility);
        assert_eq!(
            (
                draft.loop_count,
                draft.short_circuit_allowed,
                draft.allow_early_exit
            ),
            (3, false, false)
        );
        assert_eq!(
            draft.reconstructed_query.as_str(),
            value["reconstructed_query"]
        );
        assert_eq!(
            draft.synthesis_instruction.as_str(),
            value["synthesis_instruction"]
        );
        let seats: Vec<_> = draft
            .council
            .iter()
            .map(|seat| (seat.role, seat.model_hint.as_deref()))
            .collect();
        use CouncilRole::{Creative, Pragmatist, RedTeam};
        assert_eq!(
            seats,
            [
                (Pragmatist, Some(" a/b ")),
                (Pragmatist, None),
                (Creative, None),
                (RedTeam, None)
            ]
        );
        assert_eq!(
            draft.council[3].system_prompt.as_str(),
            "Look at the costs."
        );
    }

    #[test]
    fn only_defaulted_keys_may_be_missing() {
        let keys: Vec<String> = good().as_object().unwrap().keys().cloned().collect();
        assert_eq!(keys.len(), 9);
        for key in keys {
            let without = with(|value| drop(value.as_object_mut().unwrap().remove(&key)));
            match key.as_str() {
                "short_circuit_allowed" => {
                    assert!(!read(&without.to_string()).unwrap().short_circuit_allowed);
                }
                "allow_early_exit" => assert!(read(&without.to_string()).unwrap().allow_early_exit),
                _ => assert_eq!(fault(&without), format!("the reply lacks `{key}`")),
            }
        }
        for key in ["role", "system_prompt"] {
            let without =
                with(|value| drop(value["council"][1].as_object_mut().unwrap().remove(key)));
            assert_eq!(
                fault(&without),
                format!("item 2 of `council` of the reply lacks `{key}`")
            );
        }
        let without = with(|value| {
            drop(
                value["council"][1]
                    .as_object_mut()
                    .unwrap()
                    .remove("model_hint"),
            )
        });
        assert_eq!(
            read(&without.to_string()).unwrap().council[1].model_hint,
            None
        );
    }

    #[test]
    fn wrong_shape_error_names_place_and_value() {
        type Change = fn(&mut Value);
        let cases: [(Change, &str); 14] = [
            (
                |v| v["complexity"] = "hard".into(),
                "`complexity` of the reply is \"hard\", none of simple, ",
            ),
            (
                |v| v["complexity"] = "COMPLEX".into(),
                "is \"COMPLEX\", none of simple, complicated, complex, chaotic",
            ),
            (
                |v| v["loop_grammar"] = "vote".into(),
                "is \"vote\", none of parallel, sequential, debate",
            ),
            (
                |v| v["red_team_flavor"] = "kind".into(),
                "is \"kind\", none of logical, feasibility, ethical, steelman",
            ),
            (
                |v| v["council"][2]["role"] = "judge".into(),
                "`role` of item 3 of `council` of the reply is \"judge\", none of",
            ),
            (
                |v| v["loop_count"] = "three".into(),
                "`loop_count` of the reply is a text, not a whole number",
            ),
            (
                |v| v["loop_count"] = 2.5.into(),
                "`loop_count` of the reply is 2.5, which is not a whole number",
            ),
            (
                |v| v["loop_count"] = Value::Null,
                "`loop_count` of the reply is null, not a whole number",
            ),
            (
                |v| v["short_circuit_allowed"] = "no".into(),
                "is a text, not true or false",
            ),
            (
                |v| v["allow_early_exit"] = Value::Null,
                "is null, not true or false",
            ),
            (
                |v| v["council"] = json!({}),
                "`council` of the reply is an object, not a list",
            ),
            (
                |v| v["council"][0]["model_hint"] = 7.into(),
                "is a number, not a text",
            ),
            (
                |v| v["answer"] = "42".into(),
                "the reply has the unknown key `answer`",
            ),
            (
                |v| v["council"][0]["name"] = "Bob".into(),
                "item 1 of `council` of the reply has the unknown key `name`",
            ),
        ];
        for (change, content) in cases {
            let detail = fault(&with(change));
            assert!(detail.contains(content), "{detail}");
        }
        assert_eq!(
            fault(&json!([good()])),
            "the reply is a list, not an object"
        );
        let twice =
            good()
                .to_string()
                .replacen("\"loop_count\":3", "\"loop_count\":3,\"loop_count\":2", 1);
        let error = read(&twice).unwrap_err().to_string();
        assert!(error.contains("a key stands twice in an object"), "{error}");
    }

    #[test]
    fn non_object_answer_is_refused() {
        let good = good().to_string();
        for text in [
            "I think so.",
            &format!("```json\n{good}\n```"),
            &format!("{good} Done."),
            &good[..good.len() - 1],
            "",
        ] {
            assert!(
                matches!(read(text).unwrap_err(), StrictFault::NoJson { .. }),
                "{text}"
            );
        }
    }

    #[test]
    fn counts_are_unchecked_and_texts_bounded() {
        for count in [99, 1, 0, -3] {
            assert_eq!(
                read(&with(|v| v["loop_count"] = count.into()).to_string())
                    .unwrap()
                    .loop_count,
                count.into()
            );
        }
        let seats =
            |count: usize| with(|v| v["council"] = vec![v["council"][0].clone(); count].into());
        for count in [0, 7, MAX_SEATS] {
            assert_eq!(
                read(&seats(count).to_string()).unwrap().council.len(),
                count
            );
        }
        assert_eq!(
            fault(&seats(51)),
            "`council` of the reply has 51 items, more than 50"
        );
        let long = with(|v| v["synthesis_instruction"] = "x".repeat(MAX_TEXT + 1).into());
        assert!(fault(&long).ends_with("is longer than 20000 characters"));
        let huge = with(|v| v["reconstructed_query"] = "x".repeat(MAX_BYTES).into());
        assert!(matches!(
            read(&huge.to_string()).unwrap_err(),
            StrictFault::TooLong { .. }
        ));
    }

    #[test]
    fn schema_lists_words_and_hints() {
        let none = schema(&HintedModels::Only(Vec::new()));
        insta::assert_snapshot!(serde_json::to_string_pretty(&none).unwrap());
        let hint = |hinted: &HintedModels| {
            schema(hinted)["properties"]["council"]["items"]["properties"]["model_hint"].clone()
        };
        assert_eq!(
            hint(&HintedModels::Only(vec!["a/b".to_owned(), "c".to_owned()])),
            json!({"anyOf": [{"type": "null"}, {"type": "string", "enum": ["a/b", "c"]}]})
        );
        assert_eq!(
            hint(&HintedModels::Any),
            json!({"anyOf": [{"type": "null"}, {"type": "string"}]})
        );
    }
}
