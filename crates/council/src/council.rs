//! A council configured by the triage: its named seats, each with its model.
//!
//! Invariant: there is exactly one red team and two to four other seats.

use crucible_model::Untrusted;

use crate::config::HintedModels;
use crate::degradation::{Degradation, Part, hint_refused};
use crate::seat::{CouncilRole, LoopGrammar, RedTeamFlavor, SeatId};
use crate::triage::{TriageOutput, is_escaped_or_shortened};

/// The beginning of the placeholder for a removed secret.
const TAKEN_OUT: &str = "[secret:";

/// A seat of the council.
#[derive(Debug, Clone)]
pub(crate) struct Seat {
    pub(crate) id: SeatId,
    /// The triage's instructions for its behaviour. For the red team: what it should look at.
    pub(crate) persona: Untrusted,
    /// Its model; empty selects the default.
    pub(crate) model: String,
}

/// A configured council.
#[derive(Debug, Clone)]
pub(crate) struct Council {
    pub(crate) question: Untrusted,
    /// The seats that deliberate, in the triage's order.
    pub(crate) seats: Vec<Seat>,
    pub(crate) red_team: Seat,
    pub(crate) flavor: RedTeamFlavor,
    pub(crate) grammar: LoopGrammar,
}

impl Council {
    /// Builds the council of a checked triage, with notes about the model hints that were refused.
    pub(crate) fn new(triage: &TriageOutput, hinted: &HintedModels) -> (Self, Vec<Degradation>) {
        let names = SeatId::of_roles(triage.council.iter().map(|seat| seat.role));
        let mut seats = Vec::with_capacity(names.len());
        // A checked triage has exactly one red team, at any position in the list.
        let mut red_team = Seat {
            id: SeatId::RED_TEAM,
            persona: Untrusted::new(String::new()),
            model: String::new(),
        };
        let mut refused = Vec::new();
        for (id, configured) in names.into_iter().zip(&triage.council) {
            let hint = configured.model_hint.as_deref().unwrap_or_default();
            let model = granted(hint, hinted, id.role()).unwrap_or_else(|why| {
                refused.push(hint_refused(Part::Seat(id), hint, why));
                String::new()
            });
            let seat = Seat {
                id,
                persona: configured.system_prompt.clone(),
                model,
            };
            if id.role() == CouncilRole::RedTeam {
                red_team = seat;
            } else {
                seats.push(seat);
            }
        }
        let council = Self {
            question: triage.reconstructed_query.clone(),
            seats,
            red_team,
            flavor: triage.red_team_flavor,
            grammar: triage.loop_grammar,
        };
        (council, refused)
    }

    /// Clears the hints of models that have no price, and returns a note for each.
    pub(crate) fn refuse_unpriced(&mut self, has_price: impl Fn(&str) -> bool) -> Vec<Degradation> {
        let mut refused = Vec::new();
        for seat in self.seats.iter_mut().chain([&mut self.red_team]) {
            if !seat.model.is_empty() && !has_price(&seat.model) {
                let why = "which has no configured price, while a cost limit is set";
                refused.push(hint_refused(Part::Seat(seat.id), &seat.model, why));
                seat.model.clear();
            }
        }
        refused
    }
}

/// The model that a hint selects, empty if it names none; or why it is refused.
fn granted(hint: &str, hinted: &HintedModels, role: CouncilRole) -> Result<String, &'static str> {
    match hinted {
        _ if hint.contains(TAKEN_OUT) => Err("from which a secret was removed"),
        HintedModels::Only(models)
            if hint.is_empty() || models.iter().any(|model| model == hint) =>
        {
            Ok(hint.to_owned())
        }
        _ if is_escaped_or_shortened(hint) => {
            Err("which is too long for a model name, or contains invisible characters")
        }
        HintedModels::Only(_) => Err("which is not in the list of allowed models"),
        // A question could persuade the triage to choose a weak opponent.
        HintedModels::Any if role == CouncilRole::RedTeam && !hint.is_empty() => {
            Err("which the red team may use only if a list of models allows it")
        }
        HintedModels::Any => Ok(hint.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use crucible_model::is_hidden;

    use super::*;
    use crate::degradation::DegradationKind;
    use crate::seat::ComplexityDomain;
    use crate::triage::CouncilSeat;

    fn triage(seats: &[(CouncilRole, Option<&str>)]) -> TriageOutput {
        let seat = |(index, (role, hint)): (usize, &(CouncilRole, Option<&str>))| CouncilSeat {
            role: *role,
            system_prompt: Untrusted::new(format!("prompt {index}")),
            model_hint: hint.and_then(crate::triage::stored_hint),
        };
        TriageOutput {
            reconstructed_query: Untrusted::new("what?"),
            complexity: ComplexityDomain::Complex,
            short_circuit_allowed: false,
            council: seats.iter().enumerate().map(seat).collect(),
            loop_grammar: LoopGrammar::Debate,
            loop_count: 2,
            red_team_flavor: RedTeamFlavor::Ethical,
            allow_early_exit: true,
            synthesis_instruction: Untrusted::new("briefly"),
        }
    }

    use CouncilRole::{Creative, Pragmatist, RedTeam};

    #[test]
    fn red_team_is_found_at_any_position() {
        for place in 0..4 {
            let mut seats = vec![(Creative, None), (Pragmatist, None), (Creative, None)];
            seats.insert(place, (RedTeam, None));
            let (council, refused) = Council::new(&triage(&seats), &HintedModels::Any);
            assert_eq!(refused, []);
            assert_eq!(council.red_team.id, SeatId::RED_TEAM);
            assert_eq!(council.red_team.id.to_string(), "red_team");
            assert_eq!(council.red_team.persona.as_str(), format!("prompt {place}"));
            let names: Vec<String> = council
                .seats
                .iter()
                .map(|seat| seat.id.to_string())
                .collect();
            assert_eq!(names, ["creative", "pragmatist", "creative#2"]);
            let personas: Vec<&str> = council
                .seats
                .iter()
                .map(|seat| seat.persona.as_str())
                .collect();
            let others: Vec<String> = (0..4)
                .filter(|n| *n != place)
                .map(|n| format!("prompt {n}"))
                .collect();
            assert_eq!(personas, others);
            assert_eq!(
                (council.grammar, council.flavor),
                (LoopGrammar::Debate, RedTeamFlavor::Ethical)
            );
            assert_eq!(council.question.as_str(), "what?");
        }
    }

    #[test]
    fn granted_hint_selects_the_seats_model() {
        let seats = [
            (Creative, Some(" a/b\n")),
            (Pragmatist, Some(" ")),
            (RedTeam, Some("c")),
        ];
        for hinted in [
            HintedModels::Any,
            HintedModels::Only(vec!["c".to_owned(), "a/b".to_owned()]),
        ] {
            let (council, refused) = Council::new(&triage(&seats), &hinted);
            assert_eq!(council.seats[0].model, "a/b");
            assert_eq!(council.seats[1].model, "");
            // The model of the red team comes only from a list.
            let (model, expected_refusals) = if hinted == HintedModels::Any {
                ("", 1)
            } else {
                ("c", 0)
            };
            assert_eq!(
                (council.red_team.model.as_str(), refused.len()),
                (model, expected_refusals)
            );
        }
    }

    #[test]
    fn refused_hint_is_noted_and_uses_default() {
        let any = HintedModels::Any;
        let some = HintedModels::Only(vec!["a".to_owned()]);
        let none = HintedModels::Only(Vec::new());
        let long = "m".repeat(201);
        for (hint, hinted, shown) in [
            (
                "b",
                &some,
                "the triage asked for the model `b`, which is not in the list of allowed models; the default \
                model is used",
            ),
            ("A", &some, "`A`, which is not in"),
            ("a", &none, "`a`, which is not in"),
            (
                "a\u{202e}b",
                &any,
                "`a\\u{202e}b`, which is too long for a model name, or contains invisible",
            ),
            ("a\r\nx-key: 1", &any, "or contains invisible characters"),
            (&long, &any, "mmm…`, which is too long for a model name"),
        ] {
            let seats = [
                (Creative, None),
                (Creative, Some(hint)),
                (RedTeam, Some(hint)),
            ];
            let (council, refused) = Council::new(&triage(&seats), hinted);
            assert_eq!(
                (&*council.seats[1].model, &*council.red_team.model),
                ("", ""),
                "{hint}"
            );
            let parts: Vec<String> = refused
                .iter()
                .map(|refused| refused.part.to_string())
                .collect();
            assert_eq!(parts, ["creative#2", "red_team"]);
            for refused in refused {
                assert_eq!(
                    (refused.loop_number, refused.kind),
                    (None, DegradationKind::HintRefused)
                );
                assert!(
                    refused.detail.contains(shown) && refused.detail.len() < 300,
                    "{}",
                    refused.detail
                );
                assert!(!refused.detail.contains(is_hidden), "{}", refused.detail);
            }
        }
        let longest = "m".repeat(200);
        let (council, refused) = Council::new(&triage(&[(Creative, Some(&longest))]), &any);
        assert_eq!(
            (council.seats[0].model.as_str(), refused.len()),
            (&*longest, 0)
        );
    }
}
