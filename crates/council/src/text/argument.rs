//! A council's result as a page: the argument, loop by loop.

use std::collections::BTreeMap;

use crucible_model::{counted, one_line};

use super::degradation_text;
use crate::after_attack::AfterAttack;
use crate::degradation::Degradation;
use crate::delta::DeltaVerdict;
use crate::independence::Independence;
use crate::result::{ExecutorResult, LoopRecord};
use crate::seat::{LoopGrammar, SeatId};
use crate::triage::TriageOutput;
use crate::turn::{Turn, TurnKind};

/// Returns the argument of a run, loop by loop; empty if it was not recorded. Model output is indented below a line of ours, so that it
/// cannot pass for one.
#[must_use]
pub fn argument(result: &ExecutorResult) -> String {
    let mut page = Page::default();
    if let Some(triage) = &result.triage {
        page.triage(triage, result.loops_executed);
    }
    let grammar = result.triage.as_ref().map(|triage| triage.loop_grammar);
    for record in result.reasoning_trace.iter().flatten() {
        page.one_loop(record, grammar, &result.degradations);
    }
    page.text
}

/// Returns the answer as a section of the page that the argument continues.
#[must_use]
pub fn answer(result: &ExecutorResult) -> String {
    let mut page = Page::default();
    page.heading("THE ANSWER");
    page.words(result.final_response.as_str());
    page.text
}

/// A page of text, built line by line.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// A heading, with an empty line before it unless it is the first.
    fn heading(&mut self, heading: &str) {
        if !self.text.is_empty() {
            self.line("");
        }
        self.line(heading);
    }

    /// Foreign text below a line that names its author.
    fn quoted_block(&mut self, who: &str, what: &str) {
        self.line(&format!("  {}", one_line(who)));
        self.words(what);
    }

    /// Indented foreign text.
    fn words(&mut self, what: &str) {
        for line in what.trim_end().lines() {
            self.line(format!("    {line}").trim_end());
        }
    }

    fn triage(&mut self, triage: &TriageOutput, loops: u32) {
        self.heading("THE COUNCIL");
        let TriageOutput {
            complexity,
            loop_grammar,
            loop_count,
            red_team_flavor,
            ..
        } = triage;
        if loops == 0 {
            self.line(&format!(
                "  {complexity}; answered without a council, as the triage allowed"
            ));
            self.quoted_block(
                "the question as it was understood",
                triage.reconstructed_query.as_str(),
            );
            return;
        }
        let up_to = if triage.allow_early_exit {
            "up to "
        } else {
            ""
        };
        self.line(&format!(
            "  {complexity}; {loop_grammar}, {up_to}{loop_count} loops; red team: {red_team_flavor}"
        ));
        self.quoted_block(
            "the question as it was understood",
            triage.reconstructed_query.as_str(),
        );
        let names = SeatId::of_roles(triage.council.iter().map(|seat| seat.role));
        for (seat, name) in triage.council.iter().zip(names) {
            let hint = seat
                .model_hint
                .as_ref()
                .map(|model| format!(" (wants {model})"))
                .unwrap_or_default();
            self.quoted_block(&format!("{name}{hint}"), seat.system_prompt.as_str());
        }
        self.quoted_block("the answer is to be", triage.synthesis_instruction.as_str());
    }

    fn one_loop(
        &mut self,
        record: &LoopRecord,
        grammar: Option<LoopGrammar>,
        degradations: &[Degradation],
    ) {
        self.heading(&format!("LOOP {}", record.loop_number));
        for turn in &record.turns {
            let Turn {
                seat,
                kind,
                text,
                model,
                ..
            } = turn;
            let kind = match (kind, grammar) {
                (TurnKind::Position, Some(LoopGrammar::Sequential)) => "draft".to_owned(),
                (TurnKind::Position, _) => "position".to_owned(),
                (TurnKind::Critique, Some(LoopGrammar::Debate)) => {
                    format!("attack on {}", joined(&record.targets))
                }
                (TurnKind::Critique, _) => "attack".to_owned(),
                (TurnKind::Defense, _) => "defence".to_owned(),
            };
            self.quoted_block(&format!("{seat}, {kind} ({model})"), text.as_str());
        }
        for degradation in degradations
            .iter()
            .filter(|it| it.loop_number == Some(record.loop_number))
        {
            self.line(&format!("  - {}", one_line(&degradation_text(degradation))));
        }
        self.line(&format!(
            "  - after the attack: {}",
            after_attack(&record.after_attack, grammar)
        ));
        if !record.resemblance_to_prior.is_empty() {
            self.line(&format!(
                "  - resemblance to the loop before: {}",
                likeness(&record.resemblance_to_prior)
            ));
        }
        // The first loop has no predecessor to compare with.
        if record.loop_number > 1 {
            self.line(&format!("  - {}", delta(record)));
        }
        self.line(&format!(
            "  - {}",
            independence(record.council_responses.len(), &record.independence)
        ));
    }
}

fn joined(seats: &[SeatId]) -> String {
    seats
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Which seats held their positions and which changed them.
fn after_attack(outcomes: &BTreeMap<SeatId, AfterAttack>, grammar: Option<LoopGrammar>) -> String {
    if outcomes
        .values()
        .all(|outcome| *outcome == AfterAttack::NotAskedAgain)
    {
        return "no seat was asked again".to_owned();
    }
    let whose = if grammar == Some(LoopGrammar::Sequential) {
        "the draft of "
    } else {
        ""
    };
    let one = |(seat, outcome): (&SeatId, &AfterAttack)| {
        let became = match outcome {
            AfterAttack::Held => "held",
            AfterAttack::Changed => "changed",
            AfterAttack::NotAttacked => "was not attacked",
            AfterAttack::NoAnswer => "gave no answer",
            AfterAttack::NotAskedAgain => "was the last one",
        };
        format!("{whose}{seat} {became}")
    };
    outcomes.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The similarity of each seat's position to its earlier one.
fn likeness(resemblance: &BTreeMap<SeatId, f64>) -> String {
    // Cut rather than rounded from its four decimals, so that only a value that counts as held is shown
    // as 0.80.
    let shown = |likeness: f64| ((likeness * 10_000.0).round() / 100.0).floor() / 100.0;
    let one = |(seat, likeness): (&SeatId, &f64)| format!("{seat} {:.2}", shown(*likeness));
    resemblance.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn delta(record: &LoopRecord) -> String {
    match &record.delta {
        None => "not checked for changes".to_owned(),
        Some(DeltaVerdict::Changed) => "something changed".to_owned(),
        Some(DeltaVerdict::Unchanged) => {
            "nothing of substance changed: the loops end here".to_owned()
        }
        Some(DeltaVerdict::Unclear(why)) => {
            format!(
                "it is unclear whether anything changed, so it counts as changed: {}",
                one_line(why)
            )
        }
    }
}

fn independence(seats: usize, independence: &Independence) -> String {
    let Independence {
        mean_similarity,
        moved_to_majority,
        distinct_models,
        ..
    } = independence;
    let mut text = format!(
        "{}, {}",
        counted(seats as u64, "seat"),
        counted(u64::from(*distinct_models), "model")
    );
    if let Some(mean) = mean_similarity {
        text.push_str(&format!(
            "; positions resemble each other {mean:.2} on average"
        ));
    }
    if let Some(moved) = moved_to_majority {
        text.push_str(&format!("; {moved} moved towards the majority"));
    }
    text
}

#[cfg(test)]
mod tests {
    use crucible_model::Untrusted;

    use super::*;
    use crate::seat::CouncilRole;

    #[test]
    fn argument_shows_counted_fate_of_positions() {
        use AfterAttack::{Changed, Held, NoAnswer, NotAskedAgain, NotAttacked};
        let seats = SeatId::of_roles([CouncilRole::Creative; 4]);
        let lines = |outcomes: &[AfterAttack], grammar| {
            after_attack(
                &seats
                    .iter()
                    .copied()
                    .zip(outcomes.iter().copied())
                    .collect(),
                Some(grammar),
            )
        };
        assert_eq!(
            lines(&[Held, Changed, NotAttacked, NoAnswer], LoopGrammar::Debate),
            "creative held, creative#2 changed, creative#3 was not attacked, creative#4 gave no answer"
        );
        assert_eq!(
            lines(&[Held, NotAskedAgain], LoopGrammar::Sequential),
            "the draft of creative held, the draft of creative#2 was the last one"
        );
        assert_eq!(
            lines(&[NotAskedAgain; 2], LoopGrammar::Parallel),
            "no seat was asked again"
        );
        let figures = BTreeMap::from([(seats[0], 0.8), (seats[1], 0.7999), (seats[2], 0.29)]);
        assert_eq!(
            likeness(&figures),
            "creative 0.80, creative#2 0.79, creative#3 0.29"
        );
    }

    fn record(delta: Option<DeltaVerdict>) -> LoopRecord {
        LoopRecord {
            loop_number: 2,
            council_responses: BTreeMap::new(),
            red_team_critique: Untrusted::new("no"),
            delta_detected: true,
            delta,
            turns: Vec::new(),
            targets: Vec::new(),
            after_attack: BTreeMap::new(),
            resemblance_to_prior: BTreeMap::new(),
            independence: Independence {
                pairwise_similarity: Vec::new(),
                mean_similarity: None,
                moved_to_majority: None,
                distinct_models: 0,
            },
            _counted: crate::trace::made::record(),
        }
    }

    #[test]
    fn verdicts_have_words_and_reasons_stay_inline() {
        assert_eq!(
            delta(&record(Some(DeltaVerdict::Changed))),
            "something changed"
        );
        assert_eq!(delta(&record(None)), "not checked for changes");
        let unclear = delta(&record(Some(DeltaVerdict::Unclear(
            "MAYBE\nLOOP 9".to_owned(),
        ))));
        assert!(
            unclear.contains("counts as changed") && !unclear.contains('\n'),
            "{unclear}"
        );
    }

    #[test]
    fn unknown_independence_is_left_out() {
        let line = independence(1, &record(None).independence);
        assert_eq!(line, "1 seat, 0 models");
        let known = Independence {
            mean_similarity: Some(0.914),
            moved_to_majority: Some(2),
            distinct_models: 1,
            ..record(None).independence
        };
        assert_eq!(
            independence(4, &known),
            "4 seats, 1 model; positions resemble each other 0.91 on average; 2 moved towards the majority"
        );
    }
}
