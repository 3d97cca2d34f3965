//! Loop control and the short circuit without a council, as the triage configured them.
//!
//! Each loop produces a state. The next loop reads the previous state, and the synthesis reads all of
//! them. At the end the states become records if observability is on.
//!
//! Invariants: at least two loops run, and never more than configured. The run ends early only if that is
//! allowed and nothing changed. Changes are checked from the second loop on, but not after the last one.
//! The check sees the final texts of a loop, or the positions before the attack in a debate.

use crucible_model::Untrusted;

use crate::after_attack::after_attacks;
use crate::caller::Caller;
use crate::config::{DeltaChoice, Observability};
use crate::council::Council;
use crate::delta::{self, DeltaVerdict};
use crate::error::CouncilError;
use crate::grammar::{ActiveLoop, LoopState, grammar};
use crate::result::ExecutorResult;
use crate::seat::{ComplexityDomain, CouncilRole};
use crate::similarity::LoopWords;
use crate::synthesis::{answer_directly, synthesize};
use crate::trace::{FinishedLoop, records};
use crate::triage::TriageOutput;

/// The number of loops that always run. Changes are first checked after this one.
const FLOOR: u32 = 2;

/// The most calls that the rest of a run takes, without retries.
pub(crate) fn worst_case(triage: &TriageOutput, delta: &DeltaChoice) -> u64 {
    if bypasses_council(triage) {
        return 1;
    }
    let seats = triage
        .council
        .iter()
        .filter(|seat| seat.role != CouncilRole::RedTeam)
        .count() as u64;
    let judged_loops = (1..=triage.loop_count)
        .filter(|number| is_asked_after(triage, delta, *number))
        .count() as u64;
    u64::from(triage.loop_count) * grammar(triage.loop_grammar).calls(seats)
        + judged_loops * delta::calls(delta)
        + 1
}

/// Runs the configured council.
pub(crate) async fn execute(
    caller: &Caller<'_>,
    query: &Untrusted,
    triage: TriageOutput,
) -> Result<ExecutorResult, CouncilError> {
    if bypasses_council(&triage) {
        let answer = answer_directly(caller, &triage).await?;
        return Ok(result(caller, triage, answer, Vec::new()));
    }
    let Deliberation { loops, deltas } = deliberate(caller, &triage).await?;
    let words: Vec<LoopWords> = loops.iter().map(LoopWords::from_state).collect();
    let outcomes = after_attacks(&loops, &words);
    let answer = synthesize(caller, query, &triage, &loops, &outcomes).await?;
    let figures = deltas.into_iter().zip(words).zip(outcomes);
    let ended = loops.into_iter().zip(figures);
    let ended = ended
        .map(|(state, ((delta, words), after_attack))| FinishedLoop {
            state,
            delta,
            words,
            after_attack,
        })
        .collect();
    Ok(result(caller, triage, answer, ended))
}

/// Whether the question skips the council: it must be simple, and the triage must allow it.
fn bypasses_council(triage: &TriageOutput) -> bool {
    triage.short_circuit_allowed && triage.complexity == ComplexityDomain::Simple
}

/// Whether changes are checked after this loop.
fn is_asked_after(triage: &TriageOutput, delta: &DeltaChoice, number: u32) -> bool {
    let can_end = triage.allow_early_exit && !matches!(delta, DeltaChoice::Never);
    can_end && number >= FLOOR && number < triage.loop_count
}

/// The loops that ran, each with its delta verdict if there was a check.
#[derive(Default)]
struct Deliberation {
    loops: Vec<LoopState>,
    deltas: Vec<Option<DeltaVerdict>>,
}

/// Runs the loops.
async fn deliberate(
    caller: &Caller<'_>,
    triage: &TriageOutput,
) -> Result<Deliberation, CouncilError> {
    let config = caller.config();
    let (mut council, refused) = Council::new(triage, &config.hinted_models);
    let unpriced = council.refuse_unpriced(|model| caller.has_price(model));
    refused
        .into_iter()
        .chain(unpriced)
        .for_each(|refusal| caller.note(refusal));
    let grammar = grammar(council.grammar);
    let mut done = Deliberation::default();
    for number in 1..=triage.loop_count {
        let prior = done.loops.last();
        let current = grammar
            .run(ActiveLoop::new(caller, &council, number), prior)
            .await?;
        let delta = match prior {
            Some(prior) if is_asked_after(triage, &config.delta_strategy, number) => {
                let (prior, current) = (
                    prior.comparable_positions(&council),
                    current.comparable_positions(&council),
                );
                Some(delta::detect(caller, &config.delta_strategy, number, &prior, &current).await?)
            }
            _ => None,
        };
        let is_settled = delta == Some(DeltaVerdict::Unchanged);
        done.loops.push(current);
        done.deltas.push(delta);
        if is_settled {
            break;
        }
    }
    Ok(done)
}

fn result(
    caller: &Caller<'_>,
    triage: TriageOutput,
    final_response: Untrusted,
    loops: Vec<FinishedLoop>,
) -> ExecutorResult {
    let loops_executed = loops.last().map_or(0, |last| last.state.number);
    let early_exit = loops_executed < triage.loop_count;
    let (reasoning_trace, triage) = match caller.config().observability {
        Observability::Off => (None, None),
        Observability::On => (Some(records(loops)), Some(triage)),
    };
    ExecutorResult {
        final_response,
        loops_executed,
        early_exit,
        reasoning_trace,
        triage,
        degradations: caller.degradations(),
        usage: caller.usage(),
        usage_by_part: caller.usage_by_part(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::CouncilLimits;
    use crate::seat::{LoopGrammar, RedTeamFlavor};
    use crate::triage::CouncilSeat;

    fn triage(
        grammar: LoopGrammar,
        seats: usize,
        loop_count: u32,
        allow_early_exit: bool,
    ) -> TriageOutput {
        let seat = |role| CouncilSeat {
            role,
            system_prompt: Untrusted::new("Speak."),
            model_hint: None,
        };
        let mut council = vec![seat(CouncilRole::RedTeam)];
        council.resize(seats, seat(CouncilRole::Creative));
        TriageOutput {
            reconstructed_query: Untrusted::new("Which?"),
            complexity: ComplexityDomain::Complex,
            short_circuit_allowed: false,
            council,
            loop_grammar: grammar,
            loop_count,
            red_team_flavor: RedTeamFlavor::Logical,
            allow_early_exit,
            synthesis_instruction: Untrusted::new("Short."),
        }
    }

    #[test]
    fn worst_case_counts_every_possible_call() {
        use LoopGrammar::{Debate, Parallel, Sequential};
        let worst = |grammar, seats, loops, early| {
            worst_case(&triage(grammar, seats, loops, early), &DeltaChoice::Judge)
        };
        assert_eq!(
            worst(Parallel, 3, 2, true),
            2 * 3 + 1,
            "after the second of two loops nobody is asked"
        );
        assert_eq!(worst(Parallel, 5, 5, false), 5 * 5 + 1);
        assert_eq!(worst(Parallel, 5, 5, true), 5 * 5 + 3 + 1);
        assert_eq!(worst(Sequential, 3, 3, true), 3 * 5 + 1 + 1);
        assert_eq!(worst(Debate, 4, 4, true), 4 * 7 + 2 + 1);
        for delta in [
            DeltaChoice::Never,
            DeltaChoice::TextSimilarity { threshold: 0.9 },
        ] {
            assert_eq!(
                worst_case(&triage(Parallel, 3, 5, true), &delta),
                5 * 3 + 1,
                "only the judge calls"
            );
        }
    }

    #[test]
    fn default_budget_covers_longest_run() {
        let mut longest = 0;
        for grammar in LoopGrammar::ALL {
            for (seats, loops) in (3..=5).flat_map(|seats| (2..=5).map(move |loops| (seats, loops)))
            {
                let triage = triage(*grammar, seats, loops, true);
                longest = longest.max(1 + worst_case(&triage, &DeltaChoice::Judge));
            }
        }
        assert_eq!(longest, 50);
        assert!(longest < CouncilLimits::CALLS);
    }

    #[test]
    fn bypassed_council_needs_one_call() {
        let mut triage = triage(LoopGrammar::Debate, 5, 5, true);
        triage.short_circuit_allowed = true;
        assert!(
            worst_case(&triage, &DeltaChoice::Judge) > 1,
            "allowed, but not simple"
        );
        triage.complexity = ComplexityDomain::Simple;
        assert_eq!(worst_case(&triage, &DeltaChoice::Judge), 1);
        triage.short_circuit_allowed = false;
        assert!(
            worst_case(&triage, &DeltaChoice::Judge) > 1,
            "simple, but not allowed"
        );
    }
}
