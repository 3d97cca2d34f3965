//! Loop control: the number of loops, the decision to stop, and the calls.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use crucible_council::{
    CallUsage, CouncilError, DegradationKind, DeltaChoice, DeltaStrategy, DeltaVerdict,
    ExecutorResult, Observability, Part, Positions, TriageContext,
};
use crucible_llm::BudgetLimits;
use crucible_testkit::{CouncilCall, FakeApi, Reply, council_call, simple_triage, triage};
use serde_json::Value;

use crate::support::{config, engine};

const QUESTION: &str = "Should we migrate to microservices?";

/// What the seats say, for tests that ignore it.
fn reply_for(call: &CouncilCall) -> String {
    match call {
        CouncilCall::Seat(seat) => format!("{seat} would keep the program whole."),
        CouncilCall::Defense(seat) => format!("{seat} still would keep it whole."),
        CouncilCall::RedTeam => {
            "Nobody counted what an outage at night costs, or says who gets up.".to_owned()
        }
        _ => "Keep the program whole.".to_owned(),
    }
}

/// A server whose judge gives these answers in order, repeating the last one.
fn judged(triage: Value, verdicts: Vec<Reply>) -> FakeApi {
    let mut request_count = 0;
    FakeApi::answering(move |request| match council_call(request) {
        CouncilCall::Triage => Reply::Answer(triage.to_string()),
        CouncilCall::Judge => {
            let verdict = verdicts
                .get(request_count)
                .or(verdicts.last())
                .expect("a verdict");
            request_count += 1;
            verdict.clone()
        }
        call => Reply::Answer(reply_for(&call)),
    })
}

fn answers(verdicts: &[&str]) -> Vec<Reply> {
    verdicts
        .iter()
        .map(|verdict| Reply::Answer((*verdict).to_owned()))
        .collect()
}

/// The number of calls of a kind.
fn count(server: &FakeApi, is_meant: impl Fn(&CouncilCall) -> bool) -> usize {
    server
        .completions()
        .iter()
        .filter(|request| is_meant(&council_call(request)))
        .count()
}

fn judge_calls(server: &FakeApi) -> usize {
    count(server, |call| *call == CouncilCall::Judge)
}

fn planned(loop_count: u32, allow_early_exit: bool) -> Value {
    let mut triage = triage("parallel", &["domain_expert", "pragmatist"]);
    triage["loop_count"] = loop_count.into();
    triage["allow_early_exit"] = allow_early_exit.into();
    triage
}

async fn run(server: &FakeApi, delta: DeltaChoice) -> ExecutorResult {
    let mut config = config(server);
    config.delta_strategy = delta;
    engine(config)
        .run(QUESTION, &TriageContext::none())
        .await
        .unwrap()
}

#[tokio::test]
async fn loop_count_stays_within_plan() {
    // The judge's answers after loops 2, 3, …, and the loop after which they would end the run.
    let scripts: [(&[&str], Option<u32>); 5] = [
        (&["NO"], Some(2)),
        (&["YES"], None),
        (&["YES", "NO"], Some(3)),
        (&["Maybe"], None),
        (&["yes", "It is NO", "**No**"], Some(4)),
    ];
    for (script, settled) in scripts {
        for loop_count in 2..=5 {
            for allowed in [true, false] {
                let server = judged(planned(loop_count, allowed), answers(script));
                let result = run(&server, DeltaChoice::Judge).await;
                // After the last loop there is no check, because it could change nothing.
                let ends_early = settled.filter(|settled| allowed && *settled < loop_count);
                let executed = ends_early.unwrap_or(loop_count);
                let request_count = match (allowed, ends_early) {
                    (false, _) => 0,
                    (true, Some(settled)) => settled - 1,
                    (true, None) => loop_count - 2,
                };
                let case = format!("{script:?} of {loop_count}, early exit allowed: {allowed}");
                assert_eq!(result.loops_executed, executed, "{case}");
                assert_eq!(result.early_exit, ends_early.is_some(), "{case}");
                assert_eq!(judge_calls(&server), request_count as usize, "{case}");
                assert_eq!(
                    count(&server, |call| *call == CouncilCall::RedTeam),
                    executed as usize,
                    "{case}"
                );
                let all = 1 + 3 * executed + request_count + 1;
                assert_eq!(server.completions().len(), all as usize, "{case}");
                assert_eq!(result.usage.calls, u64::from(all), "{case}");
            }
        }
    }
}

#[tokio::test]
async fn unclear_judge_does_not_end_loops() {
    let strange = [
        Reply::Answer("Perhaps they did. NO.".to_owned()),
        Reply::Answer("{\"changed\": false}".to_owned()),
        Reply::Answer(" \n ".to_owned()),
        Reply::CutAnswer("It seems that NO".to_owned()),
        Reply::NullContent,
        Reply::Status(400),
        Reply::BadJson,
        Reply::Huge(300 * 1024),
    ];
    for reply in strange {
        let server = judged(planned(4, true), vec![reply.clone()]);
        let result = run(&server, DeltaChoice::Judge).await;
        assert_eq!(
            (result.loops_executed, result.early_exit),
            (4, false),
            "{reply:?}"
        );
        assert_eq!(judge_calls(&server), 2, "{reply:?}");
        let unclear: Vec<_> = (result.degradations.iter())
            .filter(|degradation| degradation.kind == DegradationKind::DeltaUnclear)
            .map(|degradation| (degradation.loop_number, degradation.part.to_string()))
            .collect();
        assert_eq!(
            unclear,
            [(Some(2), "judge".to_owned()), (Some(3), "judge".to_owned())],
            "{reply:?}"
        );
    }
}

#[tokio::test]
async fn judge_answer_no_with_explanation_is_no() {
    let server = judged(
        planned(5, true),
        answers(&["NO, yes would be wrong: YES needs a change."]),
    );
    let result = run(&server, DeltaChoice::Judge).await;
    assert_eq!((result.loops_executed, result.early_exit), (2, true));
    assert!(result.degradations.is_empty());
}

#[tokio::test]
async fn judge_compares_consecutive_loops() {
    let mut spoken = 0;
    let server = FakeApi::answering(move |request| match council_call(request) {
        CouncilCall::Triage => Reply::Answer(planned(4, true).to_string()),
        CouncilCall::Judge => Reply::Answer("YES".to_owned()),
        CouncilCall::Seat(seat) => {
            spoken += 1;
            Reply::Answer(format!("{seat} says this in loop {}.", (spoken + 1) / 2))
        }
        call => Reply::Answer(reply_for(&call)),
    });
    run(&server, DeltaChoice::Judge).await;
    let judged: Vec<String> = (server.completions().iter())
        .filter(|request| council_call(request) == CouncilCall::Judge)
        .map(|request| {
            request.body["messages"][1]["content"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(judged.len(), 2);
    for (text, [before, now]) in judged
        .iter()
        .zip([["loop 1.", "loop 2."], ["loop 2.", "loop 3."]])
    {
        let (prior, current) = text.split_once("What each seat holds now:").unwrap();
        assert_eq!(
            (prior.matches(before).count(), prior.matches(now).count()),
            (2, 0),
            "{text}"
        );
        assert_eq!(
            (
                current.matches(before).count(),
                current.matches(now).count()
            ),
            (0, 2),
            "{text}"
        );
        for seat in ["domain_expert", "pragmatist"] {
            assert!(
                prior.contains(&format!("<<<DATA \"prior position of {seat}\" ")),
                "{text}"
            );
            assert!(
                current.contains(&format!("<<<DATA \"current position of {seat}\" ")),
                "{text}"
            );
        }
    }
}

/// A strategy with scripted verdicts that records its input.
struct Scripted {
    verdicts: Mutex<Vec<DeltaVerdict>>,
    seen: Mutex<Vec<(usize, usize)>>,
}

#[async_trait]
impl DeltaStrategy for Scripted {
    async fn detect(&self, prior: &Positions, current: &Positions) -> DeltaVerdict {
        self.seen.lock().unwrap().push((prior.len(), current.len()));
        self.verdicts.lock().unwrap().remove(0)
    }
}

#[tokio::test]
async fn custom_strategy_decides_and_doubt_is_noted() {
    let verdicts = vec![
        DeltaVerdict::Unclear("no\nopinion".to_owned()),
        DeltaVerdict::Changed,
        DeltaVerdict::Unchanged,
    ];
    let strategy = Arc::new(Scripted {
        verdicts: Mutex::new(verdicts),
        seen: Mutex::default(),
    });
    let server = judged(planned(5, true), answers(&["NO"]));
    let result = run(
        &server,
        DeltaChoice::Custom(Arc::<Scripted>::clone(&strategy)),
    )
    .await;
    assert_eq!((result.loops_executed, result.early_exit), (4, true));
    assert_eq!(*strategy.seen.lock().unwrap(), [(2, 2); 3]);
    assert_eq!(judge_calls(&server), 0);
    let [doubt] = &result.degradations[..] else {
        panic!("{:?}", result.degradations)
    };
    assert_eq!(
        (doubt.kind, doubt.loop_number),
        (DegradationKind::DeltaUnclear, Some(2))
    );
    assert!(doubt.detail.contains("no\\u{a}opinion"), "{}", doubt.detail);
}

#[tokio::test]
async fn never_strategy_runs_all_loops_without_calls() {
    let server = judged(planned(4, true), answers(&["NO"]));
    let mut config = config(&server);
    config.delta_strategy = DeltaChoice::Never;
    config.observability = Observability::On;
    let result = engine(config)
        .run(QUESTION, &TriageContext::none())
        .await
        .unwrap();
    assert_eq!((result.loops_executed, result.early_exit), (4, false));
    assert_eq!(judge_calls(&server), 0);
    assert!(result.degradations.is_empty());
    for record in result.reasoning_trace.unwrap() {
        assert_eq!(
            (record.delta, record.delta_detected),
            (None, true),
            "nobody decided anything"
        );
    }
}

/// A council of this grammar that settles on one text in its first loop. In a sequential one,
/// intermediate drafts differ. `silent` gives the loop, from 1, and the turn in it, from 0, at which a
/// seat fails.
fn settling(grammar: &str, judge: &'static str, silent: Option<(u32, usize)>) -> FakeApi {
    let roles = ["pragmatist", "domain_expert", "creative"];
    let mut triage = triage(grammar, &roles);
    triage["loop_count"] = 5.into();
    triage["allow_early_exit"] = true.into();
    let is_sequential = grammar == "sequential";
    let mut spoken = 0;
    FakeApi::answering(move |request| match council_call(request) {
        CouncilCall::Triage => Reply::Answer(triage.to_string()),
        CouncilCall::Judge => {
            let text = request.body["messages"][1]["content"].as_str().unwrap();
            let (prior, now) = text.split_once("What each seat holds now:").unwrap();
            let positions = [prior, now].map(|text| text.matches("<<<DATA \"").count());
            assert_eq!(
                positions,
                if is_sequential { [1, 1] } else { [3, 3] },
                "{text}"
            );
            // A judge that sees a different draft cannot answer NO.
            Reply::Answer(if text.contains("Draft") { "YES" } else { judge }.to_owned())
        }
        CouncilCall::Seat(seat) => {
            let (number, turn) = (1 + spoken / 3, (spoken % 3) as usize);
            spoken += 1;
            if silent == Some((number, turn)) {
                Reply::Status(400)
            } else if is_sequential && number == 1 && turn == 0 {
                Reply::Answer("Draft one says to split everything at once.".to_owned())
            } else if is_sequential && number == 1 && silent != Some((1, 2)) && turn == 1 {
                Reply::Answer("Draft two would wait for a year and then look again.".to_owned())
            } else if is_sequential {
                Reply::Answer("Split the mail part off and keep the rest whole.".to_owned())
            } else {
                Reply::Answer(format!(
                    "{seat} would split the mail part off and keep the rest whole."
                ))
            }
        }
        call => Reply::Answer(reply_for(&call)),
    })
}

#[tokio::test]
async fn unchanged_second_loop_ends_every_grammar() {
    for grammar in ["parallel", "sequential", "debate"] {
        let server = settling(grammar, "NO", None);
        let result = run(&server, DeltaChoice::TextSimilarity { threshold: 0.9 }).await;
        assert_eq!(
            (result.loops_executed, result.early_exit),
            (2, true),
            "{grammar}, texts compared"
        );
        assert_eq!(judge_calls(&server), 0, "{grammar}");
        let server = settling(grammar, "NO", None);
        let result = run(&server, DeltaChoice::Judge).await;
        assert_eq!(
            (result.loops_executed, result.early_exit),
            (2, true),
            "{grammar}, judged"
        );
        assert_eq!(judge_calls(&server), 1, "{grammar}");
    }
}

#[tokio::test]
async fn missing_last_writer_keeps_draft() {
    for silent in [(1, 2), (2, 2)] {
        let server = settling("sequential", "NO", Some(silent));
        let result = run(&server, DeltaChoice::TextSimilarity { threshold: 0.9 }).await;
        assert_eq!(
            (result.loops_executed, result.early_exit),
            (2, true),
            "{silent:?}"
        );
    }
}

/// Records the names and texts of its input.
#[derive(Default)]
struct Shown(Mutex<Vec<Vec<String>>>);

#[async_trait]
impl DeltaStrategy for Shown {
    async fn detect(&self, prior: &Positions, current: &Positions) -> DeltaVerdict {
        for positions in [prior, current] {
            let lines = positions
                .iter()
                .map(|(seat, text)| format!("{seat}: {}", text.as_str()))
                .collect();
            self.0.lock().unwrap().push(lines);
        }
        DeltaVerdict::Unchanged
    }
}

#[tokio::test]
async fn sequential_strategy_sees_only_last_draft() {
    let draft = ["creative: Split the mail part off and keep the rest whole.".to_owned()];
    for silent in [None, Some((2, 2))] {
        let strategy = Arc::new(Shown::default());
        let server = settling("sequential", "NO", silent);
        run(&server, DeltaChoice::Custom(Arc::<Shown>::clone(&strategy))).await;
        assert_eq!(
            *strategy.0.lock().unwrap(),
            [draft.clone(), draft.clone()],
            "{silent:?}"
        );
    }
}

#[tokio::test]
async fn repeated_texts_end_loops_by_similarity() {
    let similarity = || DeltaChoice::TextSimilarity { threshold: 0.9 };
    let server = judged(planned(5, true), answers(&["YES"]));
    let result = run(&server, similarity()).await;
    assert_eq!((result.loops_executed, result.early_exit), (2, true));
    assert_eq!(judge_calls(&server), 0);

    let mut spoken = 0;
    let server = FakeApi::answering(move |request| match council_call(request) {
        CouncilCall::Triage => Reply::Answer(planned(5, true).to_string()),
        CouncilCall::Seat(_) => {
            spoken += 1;
            Reply::Answer(format!(
                "Thought{spoken} about point{spoken} with cost{spoken}"
            ))
        }
        call => Reply::Answer(reply_for(&call)),
    });
    let result = run(&server, similarity()).await;
    assert_eq!((result.loops_executed, result.early_exit), (5, false));
}

#[tokio::test]
async fn council_bypass_needs_permission_and_simplicity() {
    for (allowed, complexity, loops) in [
        (true, "simple", 0),
        (false, "simple", 2),
        (false, "complex", 2),
    ] {
        let mut triage = simple_triage();
        triage["short_circuit_allowed"] = allowed.into();
        triage["complexity"] = complexity.into();
        let server = judged(triage, answers(&["YES"]));
        let result = run(&server, DeltaChoice::Judge).await;
        assert_eq!(
            result.loops_executed, loops,
            "{complexity}, allowed: {allowed}"
        );
        assert_eq!(
            result.early_exit,
            loops == 0,
            "{complexity}, allowed: {allowed}"
        );
        let direct = count(&server, |call| *call == CouncilCall::Direct);
        assert_eq!(
            direct,
            usize::from(loops == 0),
            "{complexity}, allowed: {allowed}"
        );
        let all = if loops == 0 { 2 } else { 1 + 2 * 3 + 1 };
        assert_eq!(
            server.completions().len(),
            all,
            "{complexity}, allowed: {allowed}"
        );
    }
    // Permission for a question that is not simple breaks a rule, and nothing runs.
    let mut triage = simple_triage();
    triage["complexity"] = "complex".into();
    let server = judged(triage, answers(&["YES"]));
    let ended = engine(config(&server))
        .run(QUESTION, &TriageContext::none())
        .await
        .map_err(CouncilError::from);
    assert!(
        matches!(ended, Err(CouncilError::TriageViolations { .. })),
        "{ended:?}"
    );
    assert_eq!(server.completions().len(), 1);
}

#[tokio::test]
async fn insufficient_budget_ends_run_after_triage() {
    // 4 loops of 3 calls, 2 judgements, the synthesis.
    for (limit, fits) in [(16, true), (15, false)] {
        let server = judged(planned(4, true), answers(&["YES"]));
        let mut config = config(&server);
        config.limits.budget = BudgetLimits::calls(limit);
        let ended = engine(config)
            .run(QUESTION, &TriageContext::none())
            .await
            .map_err(CouncilError::from);
        if fits {
            assert_eq!(ended.unwrap().usage.calls, 16);
        } else {
            let Err(CouncilError::BudgetTooSmall {
                needed,
                remaining_calls,
                limit,
            }) = ended
            else {
                panic!("{ended:?}")
            };
            assert_eq!((needed, remaining_calls, limit), (15, 14, 15));
            assert_eq!(server.completions().len(), 1, "only the triage was asked");
        }
    }
    // A simple question needs one more call, however large the triage's council is.
    let server = judged(simple_triage(), answers(&["YES"]));
    let mut config = config(&server);
    config.limits.budget = BudgetLimits::calls(2);
    let result = engine(config)
        .run(QUESTION, &TriageContext::none())
        .await
        .unwrap();
    assert_eq!(result.usage.calls, 2);
}

#[tokio::test]
async fn largest_council_uses_predicted_calls() {
    let roles = ["synthesizer", "domain_expert", "pragmatist", "creative"];
    for (grammar, calls) in [("parallel", 30), ("sequential", 50), ("debate", 50)] {
        let mut triage = triage(grammar, &roles);
        triage["loop_count"] = 5.into();
        triage["allow_early_exit"] = true.into();
        let server = judged(triage, answers(&["YES"]));
        let mut config = config(&server);
        config.limits.budget = BudgetLimits::calls(calls);
        let result = engine(config)
            .run(QUESTION, &TriageContext::none())
            .await
            .unwrap();
        assert_eq!(
            (result.loops_executed, result.early_exit),
            (5, false),
            "{grammar}"
        );
        assert_eq!(server.completions().len() as u64, calls, "{grammar}");
        assert!(
            result.degradations.is_empty(),
            "{grammar}: {:?}",
            result.degradations
        );
    }
}

#[tokio::test]
async fn runs_keep_no_state() {
    let server = judged(planned(3, true), answers(&["YES"]));
    let engine = engine(config(&server));
    let first = engine.run(QUESTION, &TriageContext::none()).await.unwrap();
    let bodies = |from: usize| {
        let mut bodies: Vec<String> = server
            .completions()
            .iter()
            .skip(from)
            .map(|request| request.body.to_string())
            .collect();
        bodies.sort();
        bodies
    };
    let of_first = bodies(0);
    let second = engine.run(QUESTION, &TriageContext::none()).await.unwrap();
    assert_eq!(
        bodies(of_first.len()),
        of_first,
        "every call is made again, and with the same words"
    );
    assert_eq!(first.final_response, second.final_response);
    assert_eq!(
        first.usage.calls, second.usage.calls,
        "usage and budget begin anew"
    );
}

#[tokio::test]
async fn json_result_without_trace_has_figures() {
    let server = judged(planned(3, true), answers(&["NO way to tell"]));
    let mut result = run(&server, DeltaChoice::Judge).await;
    result.usage.elapsed_ms = 0;
    (result.usage.tokens_input, result.usage.tokens_output) = (0, 0);
    for (part, usage) in &mut result.usage_by_part {
        assert!(usage.tokens_output > 0, "{part}");
        *usage = CallUsage {
            calls: usage.calls,
            ..CallUsage::default()
        };
    }
    assert_eq!(
        result
            .usage_by_part
            .values()
            .map(|usage| usage.calls)
            .sum::<u64>(),
        result.usage.calls
    );
    result
        .usage_by_part
        .retain(|part, _| *part == Part::Synthesis);
    insta::assert_snapshot!(serde_json::to_string_pretty(&result).unwrap(), @r#"
    {
      "final_response": "Keep the program whole.",
      "loops_executed": 2,
      "early_exit": true,
      "reasoning_trace": null,
      "triage": null,
      "degradations": [],
      "usage": {
        "calls": 9,
        "attempts": 9,
        "tokens_input": 0,
        "tokens_output": 0,
        "calls_without_tokens": 0,
        "micro_dollars": 0,
        "calls_without_cost": 9,
        "cost_basis": null,
        "elapsed_ms": 0
      },
      "usage_by_part": {
        "synthesis": {
          "calls": 1,
          "attempts": 0,
          "tokens_input": 0,
          "tokens_output": 0,
          "calls_without_tokens": 0,
          "micro_dollars": 0,
          "calls_without_cost": 0,
          "cost_basis": null,
          "elapsed_ms": 0
        }
      }
    }
    "#);

    let server = judged(simple_triage(), answers(&["NO"]));
    let mut config = config(&server);
    config.observability = Observability::On;
    let result = engine(config)
        .run(QUESTION, &TriageContext::none())
        .await
        .unwrap();
    assert_eq!(result.reasoning_trace.map(|records| records.len()), Some(0));
    assert!(result.triage.is_some());
}
