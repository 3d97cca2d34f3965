//! Appending, storing and reading: what a caller may rely on, also across processes and sudden deaths.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests start themselves again as other processes"
)]

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{event, filled, instant, place, run_id};
use crucible_ledger::{
    Allowance, BudgetedResource, CallState, Ledger, LedgerError, MAX_BODY_BYTES, MicroDollars,
    NewCall, Reservation, RunRow, Settlement, Usage,
};
use crucible_model::Digest;
use serde_json::json;

#[test]
fn each_event_follows_the_one_before_it() {
    let place = place();
    let ledger = filled(&place.path, 5);
    let events = ledger.events(None).unwrap();
    assert_eq!(
        events.iter().map(|event| event.seq).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5]
    );
    assert_eq!(events[0].prev, Digest::ZERO);
    for pair in events.windows(2) {
        assert_eq!(pair[1].prev, pair[0].hash);
    }
    let head = ledger.head().unwrap();
    assert_eq!((head.seq, head.hash), (5, events[4].hash));
    assert_eq!(ledger.events(Some(&run_id())).unwrap(), events);
    assert_eq!(ledger.event(3).unwrap().as_ref(), events.get(2));
    assert_eq!(events[2].artifacts[0].kind, "plan");
    assert!(ledger.verify(&[]).unwrap().findings().is_empty());
    // What a reader of the documented format would compute, spelled out.
    let first = &events[0];
    let body = crucible_model::to_canonical_json(&first.body).unwrap();
    let sealed = json!({
        "schema_version": "crucible-event-v1", "prev": first.prev, "seq": 1, "run": first.run, "ts": first.ts,
        "role": "chair", "event": "step-done", "path": "artifacts/1.md", "key": null,
        "artifacts_digest": Digest::compute(b"[]"), "body_digest": Digest::compute(&body),
    });
    assert_eq!(Digest::of_canonical(&sealed).unwrap(), first.hash);
}

#[test]
fn an_empty_ledger_is_whole() {
    let place = place();
    let ledger = Ledger::open(&place.path).unwrap();
    assert_eq!(ledger.head().unwrap().seq, 0);
    assert_eq!(ledger.head().unwrap().hash, Digest::ZERO);
    assert!(ledger.events(None).unwrap().is_empty());
    assert!(ledger.verify(&[]).unwrap().findings().is_empty());
}

#[test]
fn keyed_event_is_appended_once_and_unchanged() {
    let place = place();
    let mut ledger = Ledger::open(&place.path).unwrap();
    let first = ledger.append(event(1).once("plan")).unwrap();
    drop(ledger);
    let mut ledger = Ledger::open(&place.path).unwrap();
    assert_eq!(ledger.append(event(2).once("plan")).unwrap(), first);
    assert_eq!(ledger.head().unwrap().seq, 1);

    let mut other_name = event(3).once("plan");
    other_name.event = "plan-signed".to_owned();
    assert!(
        matches!(ledger.append(other_name), Err(LedgerError::KeyTaken { existing, .. }) if existing == "step-done")
    );
    let mut other_run = event(4).once("plan");
    other_run.run = "20260131t093000z-aaaaaaaaaaaa".parse().unwrap();
    assert_eq!(ledger.append(other_run).unwrap().seq, 2);
}

#[test]
fn oversized_or_unknown_input_is_refused_without_writing() {
    let place = place();
    let mut ledger = Ledger::open(&place.path).unwrap();
    let mut big = event(1);
    big.body = json!("x".repeat(MAX_BODY_BYTES));
    assert!(matches!(
        ledger.append(big),
        Err(LedgerError::TooLarge { part: "body", .. })
    ));
    assert!(matches!(
        ledger.append(event(1).about("p".repeat(5000))),
        Err(LedgerError::TooLarge { part: "path", .. })
    ));
    let unknown = Digest::compute(b"never stored");
    assert!(
        matches!(ledger.append(event(1).with_artifact(unknown)), Err(LedgerError::UnknownArtifact { digest }) if digest == unknown)
    );
    assert_eq!(ledger.head().unwrap().seq, 0);
    assert_eq!(ledger.append(event(1)).unwrap().seq, 1);
}

#[test]
fn odd_text_comes_back_as_it_was() {
    let place = place();
    let mut ledger = Ledger::open(&place.path).unwrap();
    let mut unusual_new_event = event(1);
    unusual_new_event.body =
        json!({ "": "\u{0}\n\u{2028}\u{1f980}", "z": [1.5, -0.0, null], "a": { "deep": [[[]]] } });
    unusual_new_event.event = "name with\nnewline and \u{0} nul".to_owned();
    let record = ledger.append(unusual_new_event.clone()).unwrap();
    let read = ledger.event(1).unwrap().unwrap();
    assert_eq!(read, record);
    assert_eq!(read.event, unusual_new_event.event);
    assert!(ledger.verify(&[]).unwrap().passes());
}

#[test]
fn artifacts_are_stored_once_under_their_digest() {
    let place = place();
    let mut ledger = Ledger::open(&place.path).unwrap();
    let digest = ledger.put_artifact("log", b"bytes").unwrap();
    assert_eq!(digest, Digest::compute(b"bytes"));
    assert_eq!(ledger.put_artifact("other", b"bytes").unwrap(), digest);
    assert_eq!(
        ledger.artifact(&digest).unwrap().as_deref(),
        Some(&b"bytes"[..])
    );
    assert_eq!(ledger.artifact(&Digest::ZERO).unwrap(), None);
    let empty = ledger.put_artifact("log", b"").unwrap();
    assert_eq!(ledger.artifact(&empty).unwrap().as_deref(), Some(&b""[..]));
    let large = vec![7; 3 << 20];
    let large_digest = ledger.put_artifact("log", &large).unwrap();
    assert_eq!(ledger.artifact(&large_digest).unwrap(), Some(large));
    assert!(ledger.verify(&[]).unwrap().passes());
}

#[test]
fn runs_are_listed_newest_first_and_current() {
    let place = place();
    let mut ledger = Ledger::open(&place.path).unwrap();
    let row = |id: &str, created: &str| RunRow {
        id: id.parse().unwrap(),
        goal: "fix".to_owned(),
        repo: "/r".to_owned(),
        state: "new".to_owned(),
        created: created.parse().unwrap(),
        updated: created.parse().unwrap(),
    };
    let old = row("a", "2026-01-01T00:00:00Z");
    let new = row("b", "2026-01-02T00:00:00Z");
    ledger.record_run(old.clone()).unwrap();
    ledger.record_run(new.clone()).unwrap();
    let later = "2026-01-03T00:00:00Z".parse().unwrap();
    ledger
        .record_run(RunRow {
            state: "signed".to_owned(),
            created: later,
            updated: later,
            ..old.clone()
        })
        .unwrap();
    let expected = RunRow {
        state: "signed".to_owned(),
        updated: later,
        ..old
    };
    assert_eq!(ledger.runs().unwrap(), [new, expected.clone()]);
    assert_eq!(ledger.run(&expected.id).unwrap(), Some(expected));
    assert_eq!(ledger.run(&"c".parse().unwrap()).unwrap(), None);
}

#[test]
fn budget_survives_restart_and_is_never_exceeded() {
    let place = place();
    let mut ledger = Ledger::open(&place.path).unwrap();
    let call = NewCall {
        run: run_id(),
        provider: "gateway".to_owned(),
        model: "m".to_owned(),
        request: Digest::compute(b"request"),
        ts: instant(),
        tokens: 100,
        cost: MicroDollars(5),
    };
    let allowance = Allowance {
        calls: Some(3),
        tokens: Some(250),
        cost: None,
    };
    assert_eq!(
        ledger.reserve_call(&call, &allowance).unwrap(),
        Reservation::Granted { seq: 1 }
    );
    assert_eq!(
        ledger.reserve_call(&call, &allowance).unwrap(),
        Reservation::Granted { seq: 2 }
    );
    assert_eq!(
        ledger.reserve_call(&call, &allowance).unwrap(),
        Reservation::Refused {
            what: BudgetedResource::Tokens,
            used: 200,
            wanted: 100,
            limit: 250
        }
    );
    let end = Settlement {
        ts: instant(),
        outcome: "ok".to_owned(),
        tokens_in: Some(10),
        tokens_out: Some(20),
        cost: Some(MicroDollars(1)),
    };
    ledger.settle_call(&run_id(), 1, &end).unwrap();
    assert!(matches!(
        ledger.settle_call(&run_id(), 1, &end),
        Err(LedgerError::NoOpenCall { seq: 1, .. })
    ));
    assert!(matches!(
        ledger.settle_call(&run_id(), 9, &end),
        Err(LedgerError::NoOpenCall { seq: 9, .. })
    ));
    drop(ledger);

    // The second call died with its process: its reservation stays used.
    let mut ledger = Ledger::open(&place.path).unwrap();
    let usage = Usage {
        calls: 2,
        tokens: 130,
        cost: MicroDollars(6),
        open: 1,
    };
    assert_eq!(ledger.usage(&run_id()).unwrap(), usage);
    assert_eq!(
        ledger.reserve_call(&call, &allowance).unwrap(),
        Reservation::Granted { seq: 3 }
    );
    assert_eq!(
        ledger.reserve_call(&call, &allowance).unwrap(),
        Reservation::Refused {
            what: BudgetedResource::Calls,
            used: 3,
            wanted: 1,
            limit: 3
        }
    );
    let cost = Allowance {
        cost: Some(MicroDollars(15)),
        ..Allowance::default()
    };
    assert!(matches!(
        ledger.reserve_call(&call, &cost).unwrap(),
        Reservation::Refused {
            what: BudgetedResource::Cost,
            used: 11,
            ..
        }
    ));
    let calls = ledger.calls(&run_id()).unwrap();
    assert_eq!(calls[0].state, CallState::Settled(end));
    assert_eq!(
        (&calls[1].call, &calls[1].state),
        (&call, &CallState::Reserved)
    );
    assert_eq!(
        calls.iter().map(|row| row.attempt).collect::<Vec<_>>(),
        [1, 2, 3]
    );
}

const CHILD: &str = "CRUCIBLE_TEST_LEDGER";

/// Starts this very test again as another process, which finds the ledger's path in its environment.
fn start_again(test: &str, path: &std::path::Path) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, path)
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

#[test]
fn writer_killed_anytime_leaves_valid_chain() {
    if let Some(path) = std::env::var_os(CHILD) {
        let mut ledger = Ledger::open(path.as_ref()).unwrap();
        for number in 0..50_000 {
            let artifact = ledger
                .put_artifact("log", format!("log {number}").as_bytes())
                .unwrap();
            ledger
                .append(event(number).with_artifact(artifact))
                .unwrap();
        }
    }
    let place = place();
    let mut before = 0;
    for round in 0..8u64 {
        let mut child = start_again(
            "chain::writer_killed_anytime_leaves_valid_chain",
            &place.path,
        );
        // Let it get going, then stop it at another moment each time.
        while Ledger::open(&place.path).unwrap().head().unwrap().seq <= before {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(3 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let mut ledger = Ledger::open(&place.path).unwrap();
        assert_eq!(ledger.verify(&[]).unwrap().findings(), []);
        let head = ledger.head().unwrap();
        assert!(head.seq > before);
        assert_eq!(ledger.append(event(0)).unwrap().prev, head.hash);
        before = head.seq + 1;
    }
}

#[test]
fn many_processes_keep_one_chain() {
    const EACH: u64 = 40;
    if let Some(path) = std::env::var_os(CHILD) {
        // All of them open a ledger that is not there yet.
        let mut ledger = Ledger::open(path.as_ref()).unwrap();
        for number in 0..EACH {
            ledger.append(event(number)).unwrap();
        }
        ledger.append(event(0).once("only one of us")).unwrap();
        return;
    }
    let place = place();
    let children: Vec<_> = (0..4)
        .map(|_| start_again("chain::many_processes_keep_one_chain", &place.path))
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let ledger = Ledger::open(&place.path).unwrap();
    assert_eq!(ledger.head().unwrap().seq, 4 * EACH + 1);
    assert_eq!(ledger.verify(&[]).unwrap().findings(), []);
}
