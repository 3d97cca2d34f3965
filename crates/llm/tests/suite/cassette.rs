//! A recording replays exactly: byte for byte, in order, and never for a changed request.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crucible_llm::{
    AnswerFault, Attempt, BudgetLimits, CallBudget, CallError, CallOutcome, Cassette,
    CassetteError, CassetteHeader, CassetteSource, CassetteWriter, ClientOptions, Fault, LlmError,
    LlmInvocation, ModelClient, Origin, ProviderSettings, Recording, RetryAllowance, RetryPolicy,
    Reuse, TornTail, construct,
};
use crucible_model::Digest;
use crucible_secrets::Scanner;
use crucible_testkit::{FakeOpenAi, Reply};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::support::{CAPABILITIES, Scripted, answer, ask, client, context, gateway, outage};

fn header() -> CassetteHeader {
    CassetteHeader::new("scripted", "m", CAPABILITIES)
}

fn writer(path: &Path, reuse: Reuse) -> Arc<CassetteWriter> {
    Arc::new(CassetteWriter::open(path, &header(), reuse).unwrap())
}

fn recording(scripted: &Arc<Scripted>, path: &Path, reuse: Reuse) -> ModelClient {
    client(
        scripted.backend(),
        Recording::To(writer(path, reuse)),
        RetryPolicy::PHASES,
    )
}

fn replay_of(settings: &ProviderSettings) -> ModelClient {
    let backend = construct("replay", settings, &context(&[])).unwrap();
    client(backend, Recording::Off, RetryPolicy::PHASES)
}

fn replay(path: &Path) -> ModelClient {
    replay_of(&ProviderSettings {
        cassette: Some(path.to_owned().into()),
        ..ProviderSettings::default()
    })
}

fn cassette_in(dir: &TempDir) -> std::path::PathBuf {
    dir.path().join("calls.jsonl")
}

fn llm(error: CallError) -> LlmError {
    match error {
        CallError::Llm(error) => error,
        other => panic!("not an error of a backend: {other}"),
    }
}

#[tokio::test]
async fn a_recorded_conversation_replays_without_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let path = cassette_in(&dir);
    let server = FakeOpenAi::start(
        ["one", "two\n\u{2028}\u{0}\"é", "three"].map(|text| Reply::Answer(text.to_owned())),
    );
    let header = CassetteHeader::new("gateway", "test-model", CAPABILITIES);
    let writer = Arc::new(CassetteWriter::open(&path, &header, Reuse::Nothing).unwrap());
    let live = client(
        gateway(&server.base_url(), None),
        Recording::To(writer),
        RetryPolicy::PHASES,
    );
    let mut llm_results = Vec::new();
    // The last request equals the first one, and gets another answer.
    for text in ["a", "b", "a"] {
        llm_results.push(live.call(ask(text)).await.unwrap());
    }
    drop(server);

    let replayed = replay(&path);
    assert_eq!(replayed.origin(), Origin::Recording);
    assert_eq!(
        (
            replayed.speaker().provider.as_str(),
            replayed.speaker().model.as_str()
        ),
        ("gateway", "test-model")
    );
    assert_eq!(
        (replayed.default_model(), replayed.capabilities()),
        ("test-model", CAPABILITIES)
    );
    for (text, llm_result) in ["a", "b", "a"].into_iter().zip(&llm_results) {
        let result = replayed.call(ask(text)).await.unwrap();
        assert_eq!(&result, llm_result);
        assert_eq!(
            result.raw_response.as_bytes(),
            llm_result.raw_response.as_bytes()
        );
    }
    let error = llm(replayed.call(ask("a")).await.unwrap_err());
    assert!(error.to_string().contains("recorded 2 times"), "{error}");
}

mod properties {
    use super::*;

    proptest! {
        #[test]
        fn any_answer_survives_the_file(answers in proptest::collection::vec((".{1,20}", "(?s).{1,80}"), 1..6)) {
            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
                let dir = tempfile::tempdir().unwrap();
                let path = cassette_in(&dir);
                let scripted = Scripted::new(answers.iter().map(|(_, text)| Ok(answer(text))));
                let live = recording(&scripted, &path, Reuse::Nothing);
                let mut llm_results = Vec::new();
                for (text, _) in &answers {
                    llm_results.push(live.call(ask(text)).await.unwrap());
                }
                let replayed = replay(&path);
                for ((text, _), spoken) in answers.iter().zip(llm_results) {
                    assert_eq!(replayed.call(ask(text)).await.unwrap(), spoken);
                }
            });
        }
    }
}

#[tokio::test(start_paused = true)]
async fn recorded_failure_replays_without_retry() {
    let dir = tempfile::tempdir().unwrap();
    let path = cassette_in(&dir);
    let script = [
        Err(outage(500)),
        Ok(answer("late")),
        Err(outage(500)),
        Err(outage(502)),
        Err(outage(503)),
    ];
    let scripted = Scripted::new(script);
    let live = recording(&scripted, &path, Reuse::Nothing);
    live.call(ask("a")).await.unwrap();
    live.call(ask("b")).await.unwrap_err();

    let cassette = Cassette::parse(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(
        cassette.calls[0].attempts,
        [Attempt::Failed(outage(500)), Attempt::Answered]
    );
    assert_eq!(cassette.calls[1].attempts.len(), 3);
    assert_eq!(cassette.calls[1].outcome, CallOutcome::Failed(outage(503)));
    assert_eq!(cassette.calls[0].phase_id, "patch");

    let replayed = replay(&path);
    let begun = tokio::time::Instant::now();
    assert_eq!(replayed.call(ask("a")).await.unwrap().raw_response, "late");
    assert_eq!(llm(replayed.call(ask("b")).await.unwrap_err()), outage(503));
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn changed_request_fails_with_diff() {
    let dir = tempfile::tempdir().unwrap();
    let path = cassette_in(&dir);
    let live = recording(&Scripted::new([]), &path, Reuse::Nothing);
    live.call(ask("something else\nentirely\n")).await.unwrap();
    let with_number = |text: &str, number: serde_json::Value| LlmInvocation {
        metadata: std::collections::BTreeMap::from([("temperature".to_owned(), number)]),
        ..ask(text)
    };
    live.call(with_number("line one\nline two\nline three\n", 1.0.into()))
        .await
        .unwrap();

    let changed = with_number("line one\nline 2\nline three\n", 1.into());
    let error = llm(replay(&path).call(changed).await.unwrap_err());
    assert!(matches!(error, LlmError::Misconfiguration(_)));
    let text = error.to_string();
    assert!(text.contains("\n-line two\n+line 2\n"), "{text}");
    assert!(!text.contains("entirely"), "{text}");
    // The same number in another notation is not a difference.
    assert!(
        !text.contains("-metadata") && !text.contains("+metadata"),
        "{text}"
    );
}

#[tokio::test]
async fn a_huge_difference_is_shown_short_and_quickly() {
    let dir = tempfile::tempdir().unwrap();
    let path = cassette_in(&dir);
    let lines = |seed: u64| {
        (0..20_000u64)
            .map(|n| format!("{}\n", (n * seed) % 7919))
            .collect::<String>()
    };
    recording(&Scripted::new([]), &path, Reuse::Nothing)
        .call(ask(&lines(3)))
        .await
        .unwrap();
    let begun = std::time::Instant::now();
    let error = llm(replay(&path).call(ask(&lines(5))).await.unwrap_err());
    assert!(error.to_string().len() < 20_000);
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn request_key_covers_only_answer_inputs() {
    use crucible_llm::RecordedRequest;
    let key = |inv: &LlmInvocation| RecordedRequest::from_invocation(inv).key().unwrap();
    let base = ask("a");
    let elsewhere = LlmInvocation {
        spec_id: "other".to_owned(),
        phase_id: "other".to_owned(),
        timeout: Duration::from_secs(1),
        ..base.clone()
    };
    assert_eq!(key(&base), key(&elsewhere));
    let mut other_model = base.clone();
    other_model.model = "n".to_owned();
    let mut hinted = base.clone();
    hinted.metadata.insert("seed".to_owned(), 1.into());
    for other in [other_model, hinted, ask("b")] {
        assert_ne!(key(&base), key(&other));
    }
}

#[tokio::test]
async fn lines_of_parallel_calls_are_each_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = cassette_in(&dir);
    let live = Arc::new(recording(&Scripted::new([]), &path, Reuse::Nothing));
    let calls: Vec<_> = (0..64)
        .map(|n| {
            let live = Arc::clone(&live);
            tokio::spawn(async move { live.call(ask(&format!("{n}"))).await })
        })
        .collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(
        Cassette::parse(&std::fs::read(&path).unwrap())
            .unwrap()
            .calls
            .len(),
        64
    );
}

#[tokio::test]
async fn unfinished_last_line_is_ignored_then_removed() {
    let dir = tempfile::tempdir().unwrap();
    let path = cassette_in(&dir);
    recording(&Scripted::new([]), &path, Reuse::Nothing)
        .call(ask("a"))
        .await
        .unwrap();
    let full_content = std::fs::read(&path).unwrap();
    // A cut anywhere in the second line, and anywhere in the first.
    for cut in [
        full_content.len() - 1,
        full_content.len() - 40,
        full_content.iter().position(|b| *b == b'\n').unwrap() + 5,
    ] {
        std::fs::write(&path, &full_content[..cut]).unwrap();
        let torn = Cassette::parse(&full_content[..cut]).unwrap();
        assert_eq!((torn.calls.len(), torn.tail), (0, TornTail::LeftOut));
        recording(&Scripted::new([]), &path, Reuse::Nothing)
            .call(ask("b"))
            .await
            .unwrap();
        let mended = Cassette::parse(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!((mended.calls.len(), mended.tail), (1, TornTail::No));
    }
    std::fs::write(&path, &full_content[..10]).unwrap();
    assert!(matches!(
        Cassette::parse(&full_content[..10]),
        Err(CassetteError::NotACassette)
    ));
    assert_eq!(writer(&path, Reuse::Nothing).calls(), 0);
}

#[tokio::test]
async fn unused_recorded_answer_is_reused() {
    let dir = tempfile::tempdir().unwrap();
    let path = cassette_in(&dir);
    let scripted = Scripted::new([Ok(answer("used")), Ok(answer("unused"))]);
    let live = recording(&scripted, &path, Reuse::Nothing);
    live.call(ask("a")).await.unwrap();
    live.call(ask("b")).await.unwrap();

    // Killed here: the first answer was used, the second was not.
    let resumed = recording(&scripted, &path, Reuse::After(1));
    assert_eq!(resumed.call(ask("b")).await.unwrap().raw_response, "unused");
    assert_eq!(scripted.calls(), 2);
    resumed.call(ask("a")).await.unwrap();
    assert_eq!(scripted.calls(), 3);
    assert_eq!(
        Cassette::parse(&std::fs::read(&path).unwrap())
            .unwrap()
            .calls
            .len(),
        3
    );
}

#[tokio::test]
async fn replay_continues_where_earlier_process_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let (tape, own) = (cassette_in(&dir), dir.path().join("own.jsonl"));
    let live = recording(
        &Scripted::new(["1", "2"].map(|text| Ok(answer(text)))),
        &tape,
        Reuse::Nothing,
    );
    live.call(ask("a")).await.unwrap();
    live.call(ask("a")).await.unwrap();

    let settings = ProviderSettings {
        cassette: Some(tape.clone().into()),
        already_played: Some(own.clone()),
        ..ProviderSettings::default()
    };
    let play = || {
        let backend = construct("replay", &settings, &context(&[])).unwrap();
        client(
            backend,
            Recording::To(writer(&own, Reuse::Nothing)),
            RetryPolicy::NEVER,
        )
    };
    assert_eq!(play().call(ask("a")).await.unwrap().raw_response, "1");
    assert_eq!(play().call(ask("a")).await.unwrap().raw_response, "2");
    assert!(play().call(ask("a")).await.is_err());
}

#[tokio::test]
async fn unknown_formats_versions_and_edits_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = cassette_in(&dir);
    recording(&Scripted::new([]), &path, Reuse::Nothing)
        .call(ask("a"))
        .await
        .unwrap();
    let text = String::from_utf8(std::fs::read(&path).unwrap()).unwrap();

    let newer = text.replace("crucible-cassette-v1", "crucible-cassette-v2");
    assert!(matches!(
        Cassette::parse(newer.as_bytes()),
        Err(CassetteError::Newer { .. })
    ));
    for other in [
        "",
        "\n",
        "{}\n",
        "no json\n",
        "{\"schema_version\":\"something-else-v1\"}\n",
    ] {
        assert!(
            matches!(
                Cassette::parse(other.as_bytes()),
                Err(CassetteError::NotACassette)
            ),
            "{other:?}"
        );
    }
    // Additions of a later format version are ignored.
    let added = text.replace(
        "\"redactions\":0",
        "\"redactions\":0,\"added_later\":{\"x\":1}",
    );
    assert_ne!(added, text);
    assert_eq!(Cassette::parse(added.as_bytes()).unwrap().calls.len(), 1);

    let edited = text.replace("Summarise.", "Summarize.");
    let error = Cassette::parse(edited.as_bytes()).unwrap_err();
    assert!(
        matches!(error, CassetteError::BadLine { line: 2, .. }),
        "{error}"
    );
    assert!(!error.to_string().contains("Summarize"));
    let garbage = format!("{text}garbage\n");
    assert!(matches!(
        Cassette::parse(garbage.as_bytes()),
        Err(CassetteError::BadLine { line: 3, .. })
    ));

    let settings = ProviderSettings {
        cassette: Some(CassetteSource::Bytes(newer.into_bytes().into())),
        ..ProviderSettings::default()
    };
    let error = construct("replay", &settings, &context(&[])).err().unwrap();
    assert!(error.to_string().contains("update Crucible"), "{error}");
}

#[tokio::test]
async fn unrecordable_call_fails() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("inner/calls.jsonl");
    std::fs::create_dir(dir.path().join("inner")).unwrap();
    let live = recording(&Scripted::new([]), &path, Reuse::Nothing);
    std::fs::remove_dir_all(dir.path().join("inner")).unwrap();
    let error = live.call(ask("a")).await.unwrap_err();
    assert!(
        matches!(error, CallError::Record(CassetteError::File(_))),
        "{error}"
    );
}

/// An unusable answer.
fn unusable(fault: AnswerFault) -> LlmError {
    LlmError::ProviderOutage(Box::new(Fault {
        answer: Some(fault),
        ..*Fault::new("scripted", "m", "no words", "ask again")
    }))
}

#[tokio::test]
async fn failed_calls_do_not_count_as_played() {
    let dir = tempfile::tempdir().unwrap();
    let path = cassette_in(&dir);
    let script = [
        Err(outage(400)),
        Ok(answer("used")),
        Err(outage(400)),
        Ok(answer("unused")),
        Ok(answer("new")),
    ];
    let scripted = Scripted::new(script);
    let live = recording(&scripted, &path, Reuse::Nothing);
    for text in ["a", "a", "b", "b"] {
        let _either_way = live.call(ask(text)).await;
    }

    // Killed here: the answer to `a` was used, the one to `b` was not.
    let resumed = recording(&scripted, &path, Reuse::After(1));
    let key = |text: &str| resumed.key(&ask(text)).unwrap();
    assert!(!resumed.holds_answer(&key("a")) && resumed.holds_answer(&key("b")));
    assert_eq!(resumed.call(ask("b")).await.unwrap().raw_response, "unused");
    assert!(!resumed.holds_answer(&key("b")));
    assert_eq!(scripted.calls(), 4);
    assert_eq!(
        resumed.call(ask("a")).await.unwrap().raw_response,
        "new",
        "a used answer was handed out again"
    );
}

#[tokio::test]
async fn failure_followed_by_answer_is_skipped() {
    let dir = tempfile::tempdir().unwrap();
    let (path, own) = (cassette_in(&dir), dir.path().join("own.jsonl"));
    let script = [
        Err(outage(400)),
        Ok(answer("one")),
        Err(outage(401)),
        Ok(answer("two")),
        Err(outage(402)),
    ];
    let live = recording(&Scripted::new(script), &path, Reuse::Nothing);
    for text in ["a", "a", "a", "a", "b"] {
        let _either_way = live.call(ask(text)).await;
    }
    let settings = ProviderSettings {
        cassette: Some(path.into()),
        already_played: Some(own.clone()),
        ..ProviderSettings::default()
    };
    let play = |reuse| {
        let backend = construct("replay", &settings, &context(&[])).unwrap();
        client(
            backend,
            Recording::To(writer(&own, reuse)),
            RetryPolicy::PHASES,
        )
    };
    let first = play(Reuse::Nothing);
    assert_eq!(first.call(ask("a")).await.unwrap().raw_response, "one");
    // This one got only an error.
    assert_eq!(llm(first.call(ask("b")).await.unwrap_err()), outage(402));
    // Continued by another process: the next answer follows, whatever failed before.
    let second = play(Reuse::After(1));
    assert_eq!(second.call(ask("a")).await.unwrap().raw_response, "two");
    assert!(
        llm(second.call(ask("a")).await.unwrap_err())
            .to_string()
            .contains("recorded 2 times")
    );
}

#[tokio::test]
async fn call_refused_by_budget_is_not_played() {
    let dir = tempfile::tempdir().unwrap();
    let (path, own) = (cassette_in(&dir), dir.path().join("own.jsonl"));
    recording(&Scripted::new([Ok(answer("one"))]), &path, Reuse::Nothing)
        .call(ask("a"))
        .await
        .unwrap();
    let settings = ProviderSettings {
        cassette: Some(path.into()),
        already_played: Some(own.clone()),
        ..ProviderSettings::default()
    };
    let play = |limits| {
        let options = ClientOptions {
            scanner: Scanner::builtin(),
            recording: Recording::To(writer(&own, Reuse::After(0))),
            retry: RetryPolicy::NEVER,
            retries: RetryAllowance::unlimited(),
            budget: CallBudget::new(limits),
            prices: Arc::default(),
        };
        ModelClient::new(
            construct("replay", &settings, &context(&[])).unwrap(),
            options,
        )
    };
    let error = llm(play(BudgetLimits::calls(0))
        .call(ask("a"))
        .await
        .unwrap_err());
    assert!(matches!(error, LlmError::BudgetExceeded { .. }), "{error}");
    assert_eq!(
        play(BudgetLimits::calls(1))
            .call(ask("a"))
            .await
            .unwrap()
            .raw_response,
        "one"
    );
}

#[tokio::test]
async fn unusable_answer_is_recorded_without_text() {
    let dir = tempfile::tempdir().unwrap();
    let path = cassette_in(&dir);
    for fault in [AnswerFault::Empty, AnswerFault::TooLarge] {
        let scripted = Scripted::new([Err(unusable(fault))]);
        let live = recording(&scripted, &path, Reuse::Nothing);
        let error = llm(live.call(ask("a")).await.unwrap_err());
        assert_eq!(
            (error.answer_fault(), error.class()),
            (Some(fault), "provider_outage")
        );
        assert_eq!(scripted.calls(), 1, "it was retried");

        assert_eq!(llm(replay(&path).call(ask("a")).await.unwrap_err()), error);
        // The model answered, so a run that was killed before it used the answer does not ask again.
        let resumed = recording(&scripted, &path, Reuse::After(0));
        assert_eq!(llm(resumed.call(ask("a")).await.unwrap_err()), error);
        assert_eq!(scripted.calls(), 1, "it was asked for again");
        std::fs::remove_file(&path).unwrap();
    }
    assert_eq!(outage(500).answer_fault(), None);
    // A provider's own failure is recorded as before.
    assert!(
        !serde_json::to_string(&outage(500))
            .unwrap()
            .contains("answer")
    );
}

#[tokio::test]
async fn recorded_line_digest_is_always_known() {
    let dir = tempfile::tempdir().unwrap();
    let path = cassette_in(&dir);
    let live = recording(&Scripted::new([]), &path, Reuse::Nothing);
    let keys = ["a", "b"].map(|text| live.key(&ask(text)).unwrap());
    assert_eq!(live.recorded_line(&keys[0]), None);
    live.call(ask("a")).await.unwrap();
    live.call(ask("b")).await.unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let digests: Vec<Digest> = bytes
        .trim_ascii_end()
        .split(|byte| *byte == b'\n')
        .skip(1)
        .map(Digest::compute)
        .collect();
    assert_eq!(Cassette::parse(&bytes).unwrap().lines, digests);
    assert_eq!(
        keys.map(|key| live.recorded_line(&key)),
        [Some(digests[0]), Some(digests[1])]
    );

    let resumed = recording(&Scripted::new([]), &path, Reuse::After(1));
    assert_eq!(resumed.recorded_line(&keys[1]), None, "not handed out yet");
    resumed.call(ask("b")).await.unwrap();
    assert_eq!(resumed.recorded_line(&keys[1]), Some(digests[1]));
}

#[tokio::test]
async fn recording_contains_request_parameters() {
    let dir = tempfile::tempdir().unwrap();
    let path = cassette_in(&dir);
    let live = recording(&Scripted::new([]), &path, Reuse::Nothing);
    let mut first = ask("a");
    first.model = "other".to_owned();
    first.metadata.insert("seed".to_owned(), 1.into());
    live.call(first.clone()).await.unwrap();
    live.call(ask("b")).await.unwrap();
    let settings = ProviderSettings {
        cassette: Some(path.into()),
        ..ProviderSettings::default()
    };
    let backend = construct("replay", &settings, &context(&[])).unwrap();
    assert_eq!(
        (backend.default_model(), backend.parameters()),
        ("other", &first.metadata)
    );
    assert_eq!(backend.speaker().model, "m");
    assert!(
        gateway("http://127.0.0.1:9/v1", None)
            .parameters()
            .is_empty()
    );
}

#[tokio::test]
async fn replay_phase_uses_recordings_model() {
    let dir = tempfile::tempdir().unwrap();
    let path = cassette_in(&dir);
    let scripted = Scripted::new([Ok(answer("first")), Ok(answer("named")), Ok(answer("own"))]);
    let live = recording(&scripted, &path, Reuse::Nothing);
    let of = |phase: &str, model: &str, text: &str| LlmInvocation {
        phase_id: phase.to_owned(),
        model: model.to_owned(),
        ..ask(text)
    };
    for call in [
        of("begin", "m", "a"),
        of("seat", "hinted", "b"),
        of("seat", "m", "c"),
    ] {
        live.call(call).await.unwrap();
    }
    let replayed = replay(&path);
    assert_eq!(replayed.model_for("seat"), "m");
    assert_eq!(
        replayed
            .call(of("seat", "", "c"))
            .await
            .unwrap()
            .raw_response,
        "own"
    );
    assert_eq!(
        replayed
            .call(of("seat", "hinted", "b"))
            .await
            .unwrap()
            .raw_response,
        "named"
    );
}
