//! Builds the record of each loop, only if observability is on.
//!
//! Invariant: without observability a run creates no record and no turn. The tests count created values
//! rather than returned ones; in test builds, a record or turn that is created without being counted does
//! not compile.

use crate::after_attack::AfterAttacks;
use crate::delta::DeltaVerdict;
use crate::grammar::LoopState;
use crate::independence::{independence, similarity_to_prior};
use crate::result::LoopRecord;
use crate::similarity::{LoopWords, SeatShingles};

/// A finished loop with its delta verdict.
pub(crate) struct FinishedLoop {
    pub(crate) state: LoopState,
    /// Absent if there was no check.
    pub(crate) delta: Option<DeltaVerdict>,
    pub(crate) words: LoopWords,
    pub(crate) after_attack: AfterAttacks,
}

/// Builds the record of each loop, compared with the previous one. Without a verdict a loop counts as
/// changed.
pub(crate) fn records(loops: Vec<FinishedLoop>) -> Vec<LoopRecord> {
    // The positions as stated in the previous loop, which in a debate differ from those at its end.
    let mut before: Option<SeatShingles> = None;
    let mut records = Vec::with_capacity(loops.len());
    for FinishedLoop {
        state,
        delta,
        words,
        after_attack,
    } in loops
    {
        let independence = independence(&state, &words.now, before.as_ref());
        let stated = LoopState::before_attack_values(words.now, words.before_attack);
        records.push(LoopRecord {
            loop_number: state.number,
            council_responses: state.positions,
            red_team_critique: state.critique,
            delta_detected: !matches!(delta, Some(DeltaVerdict::Unchanged)),
            delta,
            turns: state.turns,
            targets: state.targets,
            after_attack,
            resemblance_to_prior: similarity_to_prior(&stated, before.as_ref()),
            independence,
            #[cfg(test)]
            _counted: made::record(),
        });
        before = Some(stated);
    }
    records
}

/// Counts the records and turns created by this thread, and the texts it has split into shingles.
#[cfg(test)]
pub(crate) mod made {
    use std::cell::Cell;

    thread_local! {
        static RECORDS: Cell<usize> = const { Cell::new(0) };
        static TURNS: Cell<usize> = const { Cell::new(0) };
        static SHINGLES: Cell<usize> = const { Cell::new(0) };
    }

    /// A field of counted values. Only the counting code can create it.
    #[derive(Debug, Clone)]
    pub(crate) struct Counted(());

    pub(crate) fn record() -> Counted {
        RECORDS.set(RECORDS.get() + 1);
        Counted(())
    }

    pub(crate) fn turn() -> Counted {
        TURNS.set(TURNS.get() + 1);
        Counted(())
    }

    pub(crate) fn shingles() {
        SHINGLES.set(SHINGLES.get() + 1);
    }

    /// The number of texts split into shingles.
    pub(crate) fn shingles_so_far() -> usize {
        SHINGLES.get()
    }

    /// The numbers of records and turns.
    pub(crate) fn so_far() -> (usize, usize) {
        (RECORDS.get(), TURNS.get())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crucible_llm::{Context, ProviderSettings, construct};
    use crucible_testkit::{CouncilCall, FakeApi, Reply, council_call, triage};

    use super::made;
    use crate::{Crucible, EngineConfig, ExecutorResult, Observability, TriageContext};

    const GRAMMARS: [&str; 3] = ["parallel", "sequential", "debate"];

    /// Runs three loops with three deliberating seats on this thread, and counts the records and turns.
    async fn made_by(
        grammar: &str,
        observability: Observability,
    ) -> (ExecutorResult, usize, usize) {
        let configured = triage(grammar, &["domain_expert", "pragmatist", "creative"]);
        let server = FakeApi::answering(move |request| {
            Reply::Answer(match council_call(request) {
                CouncilCall::Triage => configured.to_string(),
                _ => "Nobody has counted the costs of this, and they are high.".to_owned(),
            })
        });
        let settings = ProviderSettings {
            base_url: Some(server.base_url()),
            model: Some("fake-model".to_owned()),
            max_tokens: Some(1000),
            ..ProviderSettings::default()
        };
        let backend = construct("gateway", &settings, &Context::http_only([]).unwrap()).unwrap();
        let mut config = EngineConfig {
            observability,
            ..EngineConfig::with_backend(backend)
        };
        config.limits.call_timeout = Duration::from_secs(30);
        let (records, turns) = made::so_far();
        let engine = Crucible::new(config).unwrap();
        let result = engine
            .run("Should we split it?", &TriageContext::none())
            .await
            .unwrap();
        let (all_records, all_turns) = made::so_far();
        (result, all_records - records, all_turns - turns)
    }

    #[tokio::test]
    async fn observability_off_creates_no_records() {
        for grammar in GRAMMARS {
            let (result, records, turns) = made_by(grammar, Observability::Off).await;
            assert_eq!((records, turns), (0, 0), "{grammar}");
            assert!(
                result.loops_executed == 3 && result.reasoning_trace.is_none(),
                "{grammar}"
            );
        }
    }

    #[tokio::test]
    async fn every_text_is_shingled_once() {
        // Three loops of three positions; in a debate, where all are attacked, also those before the
        // attack.
        for (grammar, texts) in GRAMMARS.into_iter().zip([9, 9, 18]) {
            for observability in [Observability::Off, Observability::On] {
                let before = made::shingles_so_far();
                made_by(grammar, observability).await;
                assert_eq!(
                    made::shingles_so_far() - before,
                    texts,
                    "{grammar}, {observability:?}"
                );
            }
        }
    }

    #[tokio::test]
    async fn observability_on_creates_every_record() {
        // Answers of the seats and of the red team in one loop of three seats.
        for (grammar, answers) in GRAMMARS.into_iter().zip([3 + 1, 2 * 3 + 1, 3 + 1 + 3]) {
            let (result, records, turns) = made_by(grammar, Observability::On).await;
            assert_eq!((records, turns), (3, 3 * answers), "{grammar}");
            let trace = result.reasoning_trace.unwrap();
            let turn_count: usize = trace.iter().map(|record| record.turns.len()).sum();
            assert_eq!(
                (trace.len(), turn_count),
                (records, turns),
                "{grammar}: what was made is returned"
            );
        }
    }
}
