//! Schemas, replies and templates, tested without a model.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::prompts::{Part, Slot, prompt_hash, template};
use super::reply::{CritiqueReply, DraftReply, Reply, SynthesisReply};
use super::{DebatePhase, ReplyFault};
use crate::artifact::ShortHash;

fn schemas() -> [(Value, Value); 3] {
    let step = json!({"name": "build", "cmd": "make", "cwd": ".", "env": [{"name": "CI", "value": "1"}], "note": ""});
    let plan = json!({"dependencies": {"tools": ["make"], "notes": ""}, "steps": [step], "warnings": ["w"]});
    let mut synthesis = plan.clone();
    synthesis["accepted_suggestions"] = json!(["a"]);
    synthesis["rejected_suggestions"] = json!([]);
    let critique = json!({
        "issues": [{"severity": "error", "step_name": "s", "description": "d"}],
        "suggestions": [{"action": "modify", "step_name": "s", "description": "d"}],
        "approved": false,
    });
    [
        (DraftReply::schema(), plan),
        (CritiqueReply::schema(), critique),
        (SynthesisReply::schema(), synthesis),
    ]
}

fn read(index: usize, text: &str) -> Result<Value, ReplyFault> {
    let back = |reply: &dyn Fn() -> Result<Value, serde_json::Error>| reply().unwrap();
    match index {
        0 => DraftReply::read(text).map(|reply| back(&|| serde_json::to_value(&reply))),
        1 => CritiqueReply::read(text).map(|reply| back(&|| serde_json::to_value(&reply))),
        _ => SynthesisReply::read(text).map(|reply| back(&|| serde_json::to_value(&reply))),
    }
}

/// Every object of a value, by its JSON pointer.
fn objects(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            found.push(at.to_owned());
            map.iter()
                .for_each(|(key, value)| objects(value, &format!("{at}/{key}"), found));
        }
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, value)| objects(value, &format!("{at}/{index}"), found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn schemas_use_only_common_features() {
    for (schema, _) in schemas() {
        let mut found = Vec::new();
        objects(&schema, "", &mut found);
        for at in found {
            let part = schema.pointer(&at).unwrap();
            if part["type"] == "object" {
                assert_eq!(part["additionalProperties"], false, "{at}");
                let keys: BTreeSet<&str> = part["properties"]
                    .as_object()
                    .unwrap()
                    .keys()
                    .map(String::as_str)
                    .collect();
                let required = part["required"].as_array().unwrap();
                assert_eq!(required.len(), keys.len(), "{at}");
                assert!(
                    required
                        .iter()
                        .all(|key| keys.contains(key.as_str().unwrap())),
                    "{at}"
                );
            }
            for bound in [
                "minItems",
                "maxItems",
                "minLength",
                "maxLength",
                "pattern",
                "minimum",
                "maximum",
                "$ref",
            ] {
                assert!(
                    part.get(bound).is_none() || at.ends_with("/properties"),
                    "{bound} at {at}"
                );
            }
        }
    }
}

/// The parser and the schema accept the same documents, except for fields with a default.
#[test]
fn schemas_and_parsers_agree() {
    for (index, (schema, good)) in schemas().into_iter().enumerate() {
        let validator = jsonschema::validator_for(&schema).unwrap();
        assert!(validator.is_valid(&good));
        assert_eq!(read(index, &good.to_string()).unwrap(), good);
        let mut found = Vec::new();
        objects(&good, "", &mut found);
        for at in found {
            let keys: Vec<String> = good
                .pointer(&at)
                .unwrap()
                .as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect();
            for key in keys {
                for wrong in [Value::Null, json!(1.5), json!({}), json!([[]]), json!([1])] {
                    let mut bad = good.clone();
                    bad.pointer_mut(&at).unwrap()[&key] = wrong.clone();
                    let free_map = key == "env" && wrong == json!({});
                    assert_eq!(
                        read(index, &bad.to_string()).is_ok(),
                        free_map,
                        "{at}/{key} = {wrong}"
                    );
                    assert!(!validator.is_valid(&bad), "{at}/{key} = {wrong}");
                }
                let mut with_missing_key = good.clone();
                with_missing_key
                    .pointer_mut(&at)
                    .unwrap()
                    .as_object_mut()
                    .unwrap()
                    .remove(&key);
                let has_default = key == "env" || key == "note";
                assert_eq!(
                    read(index, &with_missing_key.to_string()).is_ok(),
                    has_default,
                    "{at} without {key}"
                );
                assert!(!validator.is_valid(&with_missing_key), "{at} without {key}");
            }
            let mut with_extra_key = good.clone();
            with_extra_key.pointer_mut(&at).unwrap()["more"] = json!("x");
            assert!(
                read(index, &with_extra_key.to_string()).is_err()
                    && !validator.is_valid(&with_extra_key),
                "{at}"
            );
        }
    }
}

mod properties {
    use super::*;

    proptest! {
        /// For any reply: it is refused with a short one-line reason, or parsed without loss.
        #[test]
        fn no_reply_breaks_the_parser(text in "\\PC{0,80}", json in "[\\[\\]{}\",:a-z0-9\\\\ ]{0,60}", at in 0usize..400) {
            let good = schemas().map(|(_, good)| good.to_string());
            for (index, good) in good.iter().enumerate() {
                let cut = good.floor_char_boundary(at.min(good.len()));
                let spliced = format!("{}{json}{}", &good[..cut], &good[cut..]);
                for candidate in [&text, &json, &spliced] {
                    match read(index, candidate) {
                        Ok(_) => prop_assert!(serde_json::from_str::<Value>(candidate).is_ok_and(|value| value.is_object())),
                        Err(fault) => {
                            let content = fault.to_string();
                            prop_assert!(content.lines().count() == 1 && content.len() < 600, "{content}");
                        }
                    }
                }
            }
        }
    }
}

fn parts(phase: DebatePhase) -> Vec<Part> {
    template(phase).parts().copied().collect()
}

#[test]
fn each_prompt_contains_its_inputs() {
    let slots = |phase| -> Vec<Slot> {
        let slot = |part: Part| match part {
            Part::Slot(slot) => Some(slot),
            Part::FixedText(_) | Part::Forms | Part::Variables => None,
        };
        parts(phase).into_iter().filter_map(slot).collect()
    };
    assert_eq!(
        slots(DebatePhase::Draft),
        [Slot::Repository, Slot::Readme, Slot::BuildFiles]
    );
    assert_eq!(
        slots(DebatePhase::Critique),
        [Slot::Repository, Slot::Readme, Slot::Plan]
    );
    assert_eq!(slots(DebatePhase::Revision), [Slot::Plan, Slot::Critique]);
    assert_eq!(
        slots(DebatePhase::Synthesis),
        [Slot::Summary, Slot::Plan, Slot::Unresolved]
    );
}

#[test]
fn prompts_do_not_mention_rounds_or_budgets() {
    for phase in DebatePhase::ALL {
        for part in parts(phase) {
            if let Part::FixedText(words) = part {
                for word in ["round", "token", "2000", "4000", "limit"] {
                    assert!(!words.contains(word), "{phase}: {word}");
                }
            }
        }
    }
}

/// Update this hash when a prompt, a schema or a limit changes. It tells plans apart that have different
/// prompts.
#[test]
fn prompt_hash_is_unchanged() {
    assert_eq!(prompt_hash(), prompt_hash());
    assert_eq!(prompt_hash().as_str(), "821d347fa9ae");
}

#[test]
fn prompt_hash_covers_every_piece_and_limit() {
    let pieces = super::prompts::hashed_parts();
    let all = super::prompts::hash_of(&pieces);
    assert_eq!(all, prompt_hash());
    let mut seen: Vec<ShortHash> = vec![all];
    for index in 0..pieces.len() {
        let mut changed = pieces.clone();
        changed[index].push('.');
        seen.push(super::prompts::hash_of(&changed));
        let mut with_part_removed = pieces.clone();
        with_part_removed.remove(index);
        seen.push(super::prompts::hash_of(&with_part_removed));
    }
    seen.sort();
    let count = seen.len();
    seen.dedup();
    assert_eq!(seen.len(), count);
    let words = pieces.concat();
    for phase in DebatePhase::ALL {
        assert!(words.contains(&format!("{phase}={}", phase.tokens())));
        for part in parts(phase) {
            if let Part::FixedText(ours) = part {
                assert!(words.contains(ours));
            }
        }
    }
    assert!(words.contains(crucible_model::UNTRUSTED_BANNER));
}

/// Every way in which a revision can answer a suggestion.
#[test]
fn suggestion_outcome_comes_from_plans() {
    let plan = |steps: &[(&str, &str)]| {
        let steps: Vec<Value> = steps
            .iter()
            .map(|(name, cmd)| json!({"name": name, "cmd": cmd, "cwd": "."}))
            .collect();
        let plan =
            json!({"dependencies": {"tools": [], "notes": ""}, "steps": steps, "warnings": []});
        DraftReply::read(&plan.to_string()).unwrap()
    };
    let (old, new) = (
        plan(&[("a", "make"), ("b", "make x")]),
        plan(&[("a", "make all"), ("c", "make y")]),
    );
    for (action, step, taken) in [
        ("add", "c", true),
        ("add", "d", false),
        ("add", "a", true),
        ("remove", "b", true),
        ("remove", "a", false),
        ("remove", "d", false),
        ("modify", " a ", true),
        ("modify", "b", false),
        ("modify", "c", false),
    ] {
        let critique_json = json!({
            "issues": [], "approved": false,
            "suggestions": [{"action": action, "step_name": step, "description": "d"}],
        });
        let critique = CritiqueReply::read(&critique_json.to_string()).unwrap();
        let mut outcomes = super::SuggestionOutcomes::default();
        outcomes.add_revision(&old, &critique, &new);
        assert_eq!(
            (outcomes.accepted.len(), outcomes.rejected.len()),
            (usize::from(taken), usize::from(!taken)),
            "{critique_json}"
        );
    }
}
