//! The form of an attack in a debate, and its lenient parser.
//!
//! Invariants: every answer can be parsed, because a badly formed attack is still an attack. An attack
//! has at least one target, and only seats that were shown. All text of an answer is kept, except a line
//! of names that was understood.

use crucible_model::strict_json::closed;
use crucible_model::{UniqueJson, Untrusted, says_nothing};
use serde_json::{Value, json};

use crate::council::Seat;
use crate::seat::{CouncilRole, SeatId};

/// The schema's name in the request.
const NAME: &str = "attack";

/// The most seats of one role.
const MAX_ROLE_LEN: usize = 4;

/// Words that name no particular seat.
const NOBODY_IN_PARTICULAR: [&str; 8] = [
    "",
    "all",
    "all_seats",
    "everybody",
    "everyone",
    "n/a",
    "nobody",
    "none",
];

/// Prefixes that a name may have.
const LEADS: [&str; 3] = ["position_of_", "seat_", "the_"];

/// The keywords of a first line that names targets.
const TARGETS: [&str; 2] = ["targets", "target"];

/// The JSON Schema of an attack on these seats, with its name.
pub(crate) fn attack_schema(seats: &[Seat]) -> (&'static str, Value) {
    let names: Vec<String> = seats.iter().map(|seat| seat.id.to_string()).collect();
    let schema = closed([
        (
            "targets",
            json!({"type": "array", "items": {"type": "string", "enum": names}}),
        ),
        ("critique", json!({"type": "string"})),
    ]);
    (NAME, schema)
}

/// An attack: its critique and its targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attack {
    pub(crate) critique: Untrusted,
    /// The targets in seat order, without duplicates.
    pub(crate) targets: Vec<SeatId>,
}

/// Parses an attack on these seats: the JSON object of the schema, or a first line
/// `TARGETS: name, name` and the rest. If no name or an unknown name is given, every seat is a target.
/// If there is no text besides the names, or the object has extra keys, the critique is the whole answer.
pub(crate) fn read_attack(answer: &Untrusted, seats: &[Seat]) -> Attack {
    let full_text = answer.as_str();
    let seats: Vec<SeatId> = seats.iter().map(|seat| seat.id).collect();
    let read = of_object(full_text).or_else(|| of_first_line(full_text, &seats));
    let read = read.unwrap_or_else(|| Read {
        names: Vec::new(),
        criticism: full_text.to_owned(),
    });
    let objection = if says_nothing(&read.criticism) {
        full_text.to_owned()
    } else {
        read.criticism
    };
    let targets = aimed(&read.names, &seats).filter(|targets| !targets.is_empty());
    Attack {
        critique: Untrusted::new(objection),
        targets: targets.unwrap_or(seats),
    }
}

/// A parsed answer.
struct Read {
    names: Vec<String>,
    criticism: String,
}

/// Parses an answer that is an object with a critique, bare or in a code block. A backend without schema
/// support may also answer this way. An object with extra keys or without the names is kept as a whole;
/// one with a repeated key is not an object.
fn of_object(full_text: &str) -> Option<Read> {
    let UniqueJson(object) = serde_json::from_str(unfenced(full_text.trim())).ok()?;
    let object = object.as_object()?;
    let critique = object.get("critique")?.as_str()?;
    let targets = object.get("targets").unwrap_or(&Value::Null);
    let names = match targets {
        Value::Array(items) => items
            .iter()
            .map(|item| name(item.as_str().unwrap_or("?")))
            .collect(),
        Value::String(listed) => names(listed),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    };
    let says_more = targets.is_object()
        || object
            .keys()
            .any(|key| key != "critique" && key != "targets");
    Some(Read {
        names,
        criticism: if says_more { full_text } else { critique }.to_owned(),
    })
}

/// The content of a code block, if the whole text is one.
fn unfenced(text: &str) -> &str {
    let inside = text
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"));
    inside
        .and_then(|inside| inside.split_once('\n'))
        .map_or(text, |(_, body)| body)
}

/// Parses an answer whose first line names targets. A line that names anything else belongs to the
/// critique.
fn of_first_line(full_text: &str, seats: &[SeatId]) -> Option<Read> {
    let (line, rest) = full_text
        .trim_start()
        .split_once('\n')
        .unwrap_or((full_text.trim_start(), ""));
    let line = line.trim_start_matches(is_decoration);
    let after = TARGETS.iter().find_map(|word| {
        let beginning = line.get(..word.len())?;
        beginning
            .eq_ignore_ascii_case(word)
            .then(|| line.get(word.len()..))
            .flatten()
    })?;
    let listed = after
        .trim_start_matches(is_decoration)
        .strip_prefix([':', '-', '–', '—', '='])?;
    let names = names(listed);
    let criticism = if aimed(&names, seats).is_some() {
        rest
    } else {
        full_text
    };
    Some(Read {
        names,
        criticism: criticism.to_owned(),
    })
}

/// The critique without the target names, for any seats: the critique of an object, or the text after a
/// line of names.
pub(super) fn critique_without_names(text: &str) -> String {
    let roles: Vec<SeatId> = SeatId::of_roles(
        CouncilRole::ALL
            .iter()
            .flat_map(|role| [*role; MAX_ROLE_LEN]),
    );
    let read = of_object(text).or_else(|| of_first_line(text, &roles));
    read.map_or_else(|| text.to_owned(), |read| read.criticism)
}

/// Whether a character around a word is not part of it.
fn is_decoration(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '*' | '`' | '#' | '_' | '>' | '"' | '\'' | '[' | ']' | '(' | ')'
        )
}

fn names(listed: &str) -> Vec<String> {
    listed
        .split([',', ';', '&'])
        .flat_map(|part| part.split(" and "))
        .map(name)
        .collect()
}

/// Normalises a name: `**Domain Expert**` becomes `domain_expert`.
fn name(written: &str) -> String {
    let bare = written.trim_matches(|c| is_decoration(c) || c == '.' || c == ':');
    let words: Vec<String> = bare
        .split(|c: char| c.is_whitespace() || c == '_' || c == '-')
        .map(|word| {
            word.chars()
                .filter(|c| !matches!(c, '*' | '`' | '\\'))
                .collect::<String>()
        })
        .filter(|word| !word.is_empty())
        .map(|word| word.to_lowercase())
        .collect();
    let spelled = words.join("_").replace("_#", "#");
    let bare = LEADS.iter().find_map(|lead| spelled.strip_prefix(lead));
    bare.unwrap_or(&spelled).to_owned()
}

/// The seats with these names, in seat order without duplicates; empty if no particular seat is named,
/// nothing if a name is unknown.
fn aimed(names: &[String], seats: &[SeatId]) -> Option<Vec<SeatId>> {
    let spelled: Vec<String> = seats.iter().map(ToString::to_string).collect();
    let is_vague = |name: &String| NOBODY_IN_PARTICULAR.contains(&name.as_str());
    if !names
        .iter()
        .all(|name| spelled.contains(name) || is_vague(name))
    {
        return None;
    }
    if names.iter().any(is_vague) {
        return Some(Vec::new());
    }
    let named = seats
        .iter()
        .zip(&spelled)
        .filter(|(_, spelled)| names.contains(spelled));
    Some(named.map(|(seat, _)| *seat).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seats() -> Vec<Seat> {
        use CouncilRole::{Creative, DomainExpert, Pragmatist};
        let named = SeatId::of_roles([DomainExpert, Creative, Pragmatist, Creative]);
        let seat = |id| Seat {
            id,
            persona: Untrusted::new("It speaks."),
            model: String::new(),
        };
        named.into_iter().map(seat).collect()
    }

    fn read(answer: &str) -> (String, String) {
        let attack = read_attack(&Untrusted::new(answer), &seats());
        let targets: Vec<String> = attack.targets.iter().map(ToString::to_string).collect();
        (targets.join(" "), attack.critique.as_str().to_owned())
    }

    const EVERYBODY: &str = "domain_expert creative pragmatist creative#2";

    #[test]
    fn first_line_targets_are_parsed_leniently() {
        for (line, targets) in [
            ("TARGETS: pragmatist", "pragmatist"),
            (
                "TARGETS: creative#2, domain_expert",
                "domain_expert creative#2",
            ),
            ("TARGETS: pragmatist, pragmatist", "pragmatist"),
            (
                "targets : Pragmatist ;  CREATIVE #2",
                "pragmatist creative#2",
            ),
            (
                "**TARGETS:** `pragmatist`, **creative**.",
                "creative pragmatist",
            ),
            (
                "## Targets - pragmatist and creative",
                "creative pragmatist",
            ),
            ("Target – \"Domain Expert\"", "domain_expert"),
            (
                "> *Targets*: [domain\\_expert], (creative#2)",
                "domain_expert creative#2",
            ),
            (
                "TARGETS: the pragmatist & position of creative",
                "creative pragmatist",
            ),
            ("TARGETS = domain-expert", "domain_expert"),
            ("\r\n \n TARGETS: pragmatist\r", "pragmatist"),
            ("TARGETS: all", EVERYBODY),
            ("TARGETS: none", EVERYBODY),
            ("TARGETS:", EVERYBODY),
            ("TARGETS: pragmatist, everyone", EVERYBODY),
        ] {
            let (read_targets, critique) =
                read(&format!("{line}\nThe plan fails.\nIt costs too much."));
            assert_eq!(read_targets, targets, "{line:?}");
            assert_eq!(critique, "The plan fails.\nIt costs too much.", "{line:?}");
        }
    }

    #[test]
    fn unknown_target_means_every_seat() {
        for answer in [
            "TARGETS: economist\nThe plan fails.",
            "TARGETS: pragmatist, economist\nThe plan fails.",
            "TARGETS: red_team\nThe plan fails.",
            "TARGETS: creative#3\nThe plan fails.",
            "TARGETS: pragmatist. Its plan fails, and here is why.",
            "Targeting the pragmatist: the plan fails.",
            "I attack the pragmatist.\nTARGETS: pragmatist",
            "The plan fails.",
            "",
            "\n\n",
            "🦀🦀🦀: targets",
        ] {
            assert_eq!(read(answer), (EVERYBODY.to_owned(), answer.to_owned()));
        }
    }

    #[test]
    fn an_object_names_the_targets() {
        for (answer, targets) in [
            (
                r#"{"critique":"It fails.","targets":["creative#2","domain_expert"]}"#,
                "domain_expert creative#2",
            ),
            (
                r#" {"targets": ["Domain Expert"], "critique": "It fails."} "#,
                "domain_expert",
            ),
            (
                r#"{"targets":"pragmatist, creative","critique":"It fails."}"#,
                "creative pragmatist",
            ),
            (
                "```json\n{\"targets\":[\"pragmatist\"],\"critique\":\"It fails.\"}\n```",
                "pragmatist",
            ),
            (r#"{"targets":[],"critique":"It fails."}"#, EVERYBODY),
            (r#"{"critique":"It fails."}"#, EVERYBODY),
            (r#"{"targets":null,"critique":"It fails."}"#, EVERYBODY),
            (
                r#"{"targets":["pragmatist",7],"critique":"It fails."}"#,
                EVERYBODY,
            ),
            (
                r#"{"targets":["pragmatist","economist"],"critique":"It fails."}"#,
                EVERYBODY,
            ),
        ] {
            assert_eq!(
                read(answer),
                (targets.to_owned(), "It fails.".to_owned()),
                "{answer}"
            );
        }
    }

    #[test]
    fn object_with_extra_keys_is_kept_whole() {
        for (answer, targets) in [
            (
                r#"{"targets":["pragmatist"],"critique":"It fails.","mood":3}"#,
                "pragmatist",
            ),
            (
                r#"{"critique":"It fails.","second_objection":"It costs too much."}"#,
                EVERYBODY,
            ),
            (
                "```json\n{\"targets\":[\"creative\"],\"critique\":\"It fails.\",\"evidence\":[\"a\"]}\n```",
                "creative",
            ),
            (
                r#"{"targets":{"pragmatist":"It costs too much."},"critique":"It fails."}"#,
                EVERYBODY,
            ),
            (
                r#"{"critique":"It costs too much.","critique":"It fails."}"#,
                EVERYBODY,
            ),
            (
                r#"{"targets":["pragmatist"],"targets":["creative"],"critique":"It fails."}"#,
                EVERYBODY,
            ),
        ] {
            assert_eq!(read(answer), (targets.to_owned(), answer.to_owned()));
        }
    }

    #[test]
    fn names_without_critique_keep_whole_answer() {
        for answer in [
            r#"{"targets":["pragmatist"],"critique":" "}"#,
            "{\"targets\":[\"pragmatist\"],\"critique\":\"\u{200b}\u{200d}\"}",
            "TARGETS: pragmatist",
            "\nTargets: pragmatist\n  \n",
        ] {
            assert_eq!(read(answer), ("pragmatist".to_owned(), answer.to_owned()));
        }
    }

    #[test]
    fn invalid_json_attack_is_kept_whole() {
        let deep = "[".repeat(5000);
        for answer in [
            r#"{"targets":["pragmatist"],"critique":"It"#,
            r#"{"targets":["pragmatist"],"critique":["It fails."]}"#,
            r#"{"targets":["pragmatist"]}"#,
            r#"["pragmatist"]"#,
            "```json\n```",
            "``````",
            "```",
            "null",
            &deep,
        ] {
            assert_eq!(read(answer), (EVERYBODY.to_owned(), answer.to_owned()));
        }
    }

    #[test]
    fn attack_schema_allows_only_these_seats() {
        let (name, schema) = attack_schema(&seats());
        assert_eq!(name, "attack");
        let names = ["domain_expert", "creative", "pragmatist", "creative#2"];
        let targets = json!({"type": "array", "items": {"type": "string", "enum": names}});
        let properties = json!({"targets": targets, "critique": {"type": "string"}});
        assert_eq!(schema["properties"], properties);
        assert_eq!(schema["required"], json!(["targets", "critique"]));
        assert_eq!(schema["additionalProperties"], false);
    }

    /// Fragments of an attack, some of them invalid.
    fn pieces() -> impl Strategy<Value = String> {
        let known = proptest::sample::select(vec![
            "TARGETS",
            "targets:",
            "Target",
            ":",
            "-",
            "=",
            ",",
            " and ",
            "\n",
            " ",
            "*",
            "`",
            "#",
            "#2",
            "creative",
            "pragmatist",
            "domain_expert",
            "all",
            "{",
            "}",
            "[",
            "]",
            "\"",
            "\"targets\":",
            "\"critique\":",
            "```",
            "é",
            "\0",
        ]);
        proptest::collection::vec(prop_oneof![known.prop_map(str::to_owned), ".{0,3}"], 0..20)
            .prop_map(|pieces| pieces.concat())
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn every_answer_is_an_attack(
                answer in prop_oneof![pieces(), "(?s).{0,200}"],
                shown in proptest::sample::subsequence(vec![0, 1, 2, 3], 1..=4),
            ) {
                let all = seats();
                let seats: Vec<Seat> = shown.iter().map(|index| all[*index].clone()).collect();
                let attack = read_attack(&Untrusted::new(answer.clone()), &seats);
                prop_assert!(!attack.targets.is_empty());
                let places: Vec<Option<usize>> =
                    attack.targets.iter().map(|target| seats.iter().position(|seat| seat.id == *target)).collect();
                prop_assert!(places.iter().all(Option::is_some), "only seats that were shown");
                prop_assert!(places.is_sorted_by(|one, next| one < next), "in their order, each once");
                prop_assert!(attack.critique.as_str().trim().is_empty() <= answer.trim().is_empty());
            }

            #[test]
            fn attack_round_trips_in_both_forms(
                critique in "[a-z][a-zA-Z .,:\n\"{}]{0,60}[a-z.]",
                named in proptest::sample::subsequence(vec![0, 1, 2, 3], 1..=4),
            ) {
                let seats = seats();
                let targets: Vec<SeatId> = named.iter().map(|index| seats[*index].id).collect();
                let names: Vec<String> = targets.iter().map(ToString::to_string).collect();
                let object = json!({"targets": names, "critique": critique}).to_string();
                let line = format!("TARGETS: {}\n{critique}", names.join(", "));
                for answer in [object, line] {
                    let attack = read_attack(&Untrusted::new(answer), &seats);
                    prop_assert_eq!(attack.critique.as_str(), &critique);
                    prop_assert_eq!(&attack.targets, &targets);
                }
            }
        }
    }
}
