//! Sessions of crawls: a row and its events stand or fall together, what was stored is what is read, and the cache is
//! as old as the caller's clock says.

use std::path::Path;
use std::sync::Barrier;
use std::time::Duration;

use crate::common::{place, tamper};
use crucible_ledger::{
    CrawlFact, CrawlStatus, LISTED_CRAWLS, Ledger, LedgerError, Moment, NewCrawl, NewCrawlArtifact,
    NewCrawlMessage, crawl_run_id,
};
use crucible_model::{ClockSource, Digest, Timestamp};
use rusqlite::Connection;
use serde_json::json;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn real(at: Timestamp) -> Moment {
    Moment {
        at,
        clock: ClockSource::System,
    }
}

/// Long before any clock of a machine that runs this.
fn start() -> Timestamp {
    at("1999-12-31T23:00:00Z")
}

fn begin(ledger: &mut Ledger) -> u64 {
    let new = NewCrawl {
        moment: real(start()),
        query: Some("ripgrep".to_owned()),
        config_snapshot: "{\"a\":1}".to_owned(),
    };
    ledger
        .begin_crawl(&new, |_| Ok::<_, LedgerError>(()))
        .unwrap()
        .0
}

fn artifact(crawl: u64, kind: &'static str, content: &str) -> NewCrawlArtifact {
    NewCrawlArtifact {
        crawl,
        moment: real(at("1999-12-31T23:00:05Z")),
        kind,
        schema: "viv-git-plan.v1",
        content: content.to_owned(),
    }
}

fn message(crawl: u64, owner: &str, content: &str) -> NewCrawlMessage {
    NewCrawlMessage {
        crawl,
        moment: real(at("1999-12-31T23:00:04Z")),
        phase: "draft".to_owned(),
        round: 1,
        owner: owner.to_owned(),
        provider: "gateway".to_owned(),
        model: "small".to_owned(),
        content: content.to_owned(),
    }
}

/// A session with an artifact that was exported and a message.
pub(crate) fn tell(ledger: &mut Ledger) {
    let id = begin(ledger);
    ledger
        .put_crawl_message(&message(id, "gpt", "{\"reply\":\"x\"}"))
        .unwrap();
    ledger
        .put_crawl_artifact(&artifact(
            id,
            "plan",
            &format!("{{\"new\":\"{}\"}}", "ü".repeat(500)),
        ))
        .unwrap();
    let files = vec![("plan".to_owned(), "plan.json".to_owned())];
    let later = real(at("1999-12-31T23:00:03Z"));
    ledger
        .note_crawl(
            id,
            later,
            &CrawlFact::Exported {
                path: "/out".to_owned(),
                files,
            },
        )
        .unwrap();
}

#[test]
fn session_is_recorded_in_row_and_chain() {
    let place = place();
    let mut ledger = Ledger::open(&place.path).unwrap();
    let id = begin(&mut ledger);
    let later = real(at("1999-12-31T23:00:03Z"));
    let facts = [
        CrawlFact::Selected {
            repo: "owner/repo".to_owned(),
            reference: Some("v1:core".to_owned()),
        },
        CrawlFact::Detected {
            build_system: "cargo".to_owned(),
        },
        CrawlFact::Debated {
            rounds: 2,
            summary: "ü".repeat(1000),
        },
        CrawlFact::Planned {
            plan_hash: "a".repeat(12),
            prompt_hash: "b".repeat(12),
        },
    ];
    for fact in &facts {
        ledger.note_crawl(id, later, fact).unwrap();
    }
    assert_eq!(
        ledger
            .put_crawl_message(&message(id, "gpt", "{\"reply\":\"x\"}"))
            .unwrap(),
        1
    );
    assert_eq!(
        ledger
            .put_crawl_message(&message(id, "claude", "{\"reply\":\"y\"}"))
            .unwrap(),
        2
    );
    let old = ledger
        .put_crawl_artifact(&artifact(id, "plan", "{\"old\":1}"))
        .unwrap();
    let digest = ledger
        .put_crawl_artifact(&artifact(id, "plan", "{\"new\":1}"))
        .unwrap();
    let files = vec![("plan".to_owned(), "plan.json".to_owned())];
    ledger
        .note_crawl(
            id,
            later,
            &CrawlFact::Exported {
                path: "/out".to_owned(),
                files,
            },
        )
        .unwrap();
    ledger
        .end_crawl(id, real(at("1999-12-31T23:01:00Z")), CrawlStatus::Completed)
        .unwrap();

    let row = ledger.crawl(id).unwrap().unwrap();
    assert_eq!(
        (row.started_at, row.ended_at),
        (start(), Some(at("1999-12-31T23:01:00Z"))),
        "the caller's clock"
    );
    assert_eq!(row.query.as_deref(), Some("ripgrep"));
    assert_eq!(row.selected_repo.as_deref(), Some("owner/repo"));
    assert_eq!(row.selected_ref.as_deref(), Some("v1:core"));
    assert_eq!(row.build_system.as_deref(), Some("cargo"));
    assert_eq!((row.debate_rounds, row.status), (2, CrawlStatus::Completed));
    assert_eq!(
        (row.plan_hash, row.prompt_hash),
        (Some("a".repeat(12)), Some("b".repeat(12)))
    );
    assert_eq!(row.phase_summary.unwrap().chars().count(), 1000);
    assert_eq!(
        (row.export_path.as_deref(), row.config_snapshot.as_deref()),
        (Some("/out"), Some("{\"a\":1}"))
    );

    let artifacts = ledger.crawl_artifacts(id).unwrap();
    let listed: Vec<_> = artifacts
        .iter()
        .map(|row| (row.digest, row.export_filename.as_deref()))
        .collect();
    assert_eq!(
        listed,
        [(old, None), (digest, Some("plan.json"))],
        "the one that was stored last is exported"
    );
    assert_eq!(artifacts[1].content, "{\"new\":1}");

    let messages = ledger.crawl_messages(id).unwrap();
    let said: Vec<_> = messages
        .iter()
        .map(|row| (row.seq, row.owner.as_str(), row.created_at))
        .collect();
    let then = at("1999-12-31T23:00:04Z");
    assert_eq!(said, [(1, "gpt", then), (2, "claude", then)]);
    assert_eq!(
        ledger.artifact(&messages[1].digest).unwrap().unwrap(),
        b"{\"reply\":\"y\"}"
    );

    let events = ledger.events(Some(&crawl_run_id(id).unwrap())).unwrap();
    let reported: Vec<_> = events
        .iter()
        .map(|event| (event.role.as_str(), event.event.as_str()))
        .collect();
    assert_eq!(
        reported,
        [
            ("crawler", "CRAWL_STARTED"),
            ("crawler", "CRAWL_SELECTED"),
            ("crawler", "CRAWL_DETECTED"),
            ("crawler", "CRAWL_DEBATED"),
            ("crawler", "CRAWL_PLANNED"),
            ("gpt", "CRAWL_MESSAGE"),
            ("claude", "CRAWL_MESSAGE"),
            ("crawler", "CRAWL_ARTIFACT"),
            ("crawler", "CRAWL_ARTIFACT"),
            ("crawler", "CRAWL_EXPORTED"),
            ("crawler", "CRAWL_ENDED"),
        ]
    );
    assert_eq!(events[8].artifacts[0].digest, digest);
    assert_eq!(events[10].body, json!({ "status": "completed" }));
    assert_eq!(ledger.verify(&[]).unwrap().findings(), []);
    assert_eq!(ledger.runs().unwrap(), [], "a crawl is not a governed run");
}

#[test]
fn edited_messages_and_checks_are_detected() {
    let place = place();
    let mut ledger = Ledger::open(&place.path).unwrap();
    let id = begin(&mut ledger);
    ledger
        .put_crawl_message(&message(id, "gpt", "{\"reply\":\"rm\"}"))
        .unwrap();
    ledger
        .put_crawl_artifact(&artifact(id, "plan", "{\"safe\":true}"))
        .unwrap();
    tamper(
        &place.path,
        "UPDATE crawl_artifacts SET content = '{\"safe\":1}'",
    );
    let error = ledger.crawl_artifacts(id).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the plan artifact of crawl 1 was edited"),
        "{error}"
    );
    tamper(
        &place.path,
        "UPDATE artifacts SET bytes = CAST('{\"reply\":\"ls\"}' AS BLOB) WHERE kind = 'crawl-message'",
    );
    let verdict = ledger.verify(&[]).unwrap();
    let codes: Vec<_> = verdict
        .findings()
        .iter()
        .map(|finding| finding.code.as_str().to_owned())
        .collect();
    assert_eq!(codes, ["ledger-artifact-edited", "ledger-crawl-edited"]);
    tamper(
        &place.path,
        "UPDATE events SET role = 'claude' WHERE event = 'CRAWL_MESSAGE'",
    );
    let verdict = ledger.verify(&[]).unwrap();
    assert!(
        verdict
            .findings()
            .iter()
            .any(|finding| finding.code.as_str() == "ledger-event-edited")
    );
}

#[test]
fn pinned_clock_is_marked_and_unknown_ref_omitted() {
    let place = place();
    let mut ledger = Ledger::open(&place.path).unwrap();
    let id = begin(&mut ledger);
    let pinned = Moment {
        at: start(),
        clock: ClockSource::Pinned,
    };
    let fact = CrawlFact::Selected {
        repo: "owner/repo".to_owned(),
        reference: None,
    };
    ledger.note_crawl(id, pinned, &fact).unwrap();
    ledger
        .put_crawl_message(&NewCrawlMessage {
            moment: pinned,
            ..message(id, "gpt", "{}")
        })
        .unwrap();
    ledger
        .put_crawl_artifact(&NewCrawlArtifact {
            moment: pinned,
            ..artifact(id, "plan", "{}")
        })
        .unwrap();
    ledger
        .end_crawl(id, pinned, CrawlStatus::Completed)
        .unwrap();
    let events = ledger.events(Some(&crawl_run_id(id).unwrap())).unwrap();
    let clocks: Vec<_> = events
        .iter()
        .map(|event| event.body.get("clock").cloned())
        .collect();
    let document = Some(json!("pinned"));
    assert_eq!(
        clocks,
        [
            None,
            document.clone(),
            document.clone(),
            document.clone(),
            document
        ]
    );
    assert_eq!(events[1].body["ref"], json!(null));
    assert_eq!(ledger.crawl(id).unwrap().unwrap().selected_ref, None);
}

#[test]
fn a_call_that_fails_has_changed_nothing() {
    let place = place();
    let mut ledger = Ledger::open(&place.path).unwrap();
    let new = NewCrawl {
        moment: real(start()),
        query: None,
        config_snapshot: "{}".to_owned(),
    };
    let refused = ledger.begin_crawl(&new, |id| Err::<(), _>(LedgerError::NoActiveCrawl { id }));
    assert!(matches!(refused, Err(LedgerError::NoActiveCrawl { id: 1 })));
    assert_eq!(
        (ledger.crawls().unwrap(), ledger.head().unwrap().seq),
        (Vec::new(), 0)
    );

    let id = begin(&mut ledger);
    let before = ledger.crawl(id).unwrap();
    let facts = [
        CrawlFact::Debated {
            rounds: 1,
            summary: "x".repeat(1001),
        },
        CrawlFact::Planned {
            plan_hash: "short".to_owned(),
            prompt_hash: "b".repeat(12),
        },
        CrawlFact::Selected {
            repo: "x".repeat(2 << 20),
            reference: None,
        },
    ];
    for fact in &facts {
        ledger.note_crawl(id, real(start()), fact).unwrap_err();
    }
    ledger
        .put_crawl_artifact(&artifact(id, "novel", "{}"))
        .unwrap_err();
    let mut long = message(id, "gpt", "{\"only\":\"here\"}");
    long.model = "m".repeat(2 << 20);
    assert!(matches!(
        ledger.put_crawl_message(&long),
        Err(LedgerError::TooLarge { .. })
    ));
    assert_eq!(ledger.crawl(id).unwrap(), before);
    assert_eq!(
        (
            ledger.crawl_artifacts(id).unwrap(),
            ledger.crawl_messages(id).unwrap()
        ),
        (Vec::new(), Vec::new())
    );
    assert_eq!(
        ledger
            .artifact(&Digest::compute(b"{\"only\":\"here\"}"))
            .unwrap(),
        None
    );
    assert_eq!(
        ledger.head().unwrap().seq,
        2,
        "the session began, and its row is recorded"
    );
}

#[test]
fn session_ends_once_and_accepts_nothing_after() {
    let place = place();
    let mut ledger = Ledger::open(&place.path).unwrap();
    for status in [
        CrawlStatus::Completed,
        CrawlStatus::Failed,
        CrawlStatus::Aborted,
    ] {
        let id = begin(&mut ledger);
        assert_eq!(ledger.active_crawls().unwrap(), [id]);
        assert!(matches!(
            ledger.end_crawl(id, real(start()), CrawlStatus::Active),
            Err(LedgerError::NoActiveCrawl { .. })
        ));
        ledger.end_crawl(id, real(start()), status).unwrap();
        assert_eq!(ledger.crawl(id).unwrap().unwrap().status, status);
        let head = ledger.head().unwrap();
        let fact = CrawlFact::Detected {
            build_system: "cargo".to_owned(),
        };
        let refused = [
            ledger
                .end_crawl(id, real(start()), CrawlStatus::Completed)
                .unwrap_err(),
            ledger.note_crawl(id, real(start()), &fact).unwrap_err(),
            ledger
                .put_crawl_artifact(&artifact(id, "plan", "{}"))
                .unwrap_err(),
            ledger
                .put_crawl_message(&message(id, "gpt", "{}"))
                .unwrap_err(),
        ];
        assert!(refused.iter().all(
            |error| matches!(error, LedgerError::NoActiveCrawl { id: found } if *found == id)
        ));
        assert_eq!(ledger.head().unwrap(), head);
        assert!(ledger.active_crawls().unwrap().is_empty());
    }
    for nobody in [0, 99, u64::MAX] {
        assert!(ledger.crawl(nobody).unwrap().is_none());
        assert!(
            ledger
                .end_crawl(nobody, real(start()), CrawlStatus::Failed)
                .is_err()
        );
    }
}

#[test]
fn history_shows_the_last_twenty_newest_first() {
    let place = place();
    let mut ledger = Ledger::open(&place.path).unwrap();
    for _ in 0..23 {
        begin(&mut ledger);
    }
    let ids: Vec<u64> = ledger.crawls().unwrap().iter().map(|row| row.id).collect();
    assert_eq!(LISTED_CRAWLS, 20);
    assert_eq!(ids, (4..=23).rev().collect::<Vec<_>>());
}

#[test]
fn concurrent_sessions_get_distinct_numbers() {
    let place = place();
    drop(Ledger::open(&place.path).unwrap());
    let (many, path) = (8, place.path.as_path());
    let barrier = Barrier::new(many);
    let mut ids: Vec<u64> = std::thread::scope(|scope| {
        let one = || {
            let mut ledger = Ledger::open_waiting(path, Duration::from_secs(120)).unwrap();
            barrier.wait();
            begin(&mut ledger)
        };
        let threads: Vec<_> = (0..many).map(|_| scope.spawn(one)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    ids.sort_unstable();
    assert_eq!(ids, (1..=many as u64).collect::<Vec<_>>());
    assert_eq!(
        Ledger::open(path).unwrap().verify(&[]).unwrap().findings(),
        []
    );
}

#[test]
fn a_number_is_never_used_twice() {
    let place = place();
    let mut ledger = Ledger::open(&place.path).unwrap();
    begin(&mut ledger);
    let last = begin(&mut ledger);
    tamper(&place.path, "DELETE FROM crawl_sessions");
    assert_eq!(begin(&mut ledger), last + 1);
}

#[test]
fn row_edited_to_invalid_value_is_error() {
    for sql in [
        "UPDATE crawl_sessions SET status = 'resting'",
        "UPDATE crawl_sessions SET started_at = 'long ago'",
        "UPDATE crawl_sessions SET debate_rounds = -1",
    ] {
        let place = place();
        let mut ledger = Ledger::open(&place.path).unwrap();
        let id = begin(&mut ledger);
        tamper(&place.path, sql);
        ledger.crawl(id).unwrap_err();
        ledger.crawls().unwrap_err();
    }
}

fn cached(path: &Path, now: &str) -> Option<String> {
    Ledger::open(path)
        .unwrap()
        .crawl_cached("key", at(now))
        .unwrap()
}

#[test]
fn cache_entry_expires_exactly_on_time() {
    let place = place();
    let mut ledger = Ledger::open(&place.path).unwrap();
    ledger
        .cache_crawl("key", "old", start(), Duration::from_secs(1))
        .unwrap();
    ledger
        .cache_crawl("key", "answer", start(), Duration::from_secs(900))
        .unwrap();
    for (now, found) in [
        ("1999-12-31T23:00:00Z", Some("answer")),
        ("1999-12-31T23:14:59.999Z", Some("answer")),
        ("1999-12-31T23:15:00Z", None),
        ("2026-01-01T00:00:00Z", None),
        // Kept under a clock that runs ahead: it must not be fresh until that clock is reached.
        ("1999-12-31T22:59:59.999Z", None),
    ] {
        assert_eq!(cached(&place.path, now).as_deref(), found, "{now}");
    }
    assert_eq!(ledger.crawl_cached("other", start()).unwrap(), None);
}

#[test]
fn expired_entries_are_removed_from_cache() {
    let place = place();
    let mut ledger = Ledger::open(&place.path).unwrap();
    let quarter = Duration::from_secs(900);
    ledger
        .cache_crawl("old", "1", at("1999-12-31T22:45:00Z"), quarter)
        .unwrap();
    ledger
        .cache_crawl("ahead", "1", at("1999-12-31T23:00:01Z"), quarter)
        .unwrap();
    ledger
        .cache_crawl("fresh", "1", at("1999-12-31T22:45:01Z"), quarter)
        .unwrap();
    assert_eq!(ledger.prune_crawl_cache(start()).unwrap(), 2);
    let raw = Connection::open(&place.path).unwrap();
    let left: String = raw
        .query_row(
            "SELECT group_concat(cache_key) FROM crawl_cache",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(left, "fresh");
    assert_eq!(
        ledger.head().unwrap().seq,
        0,
        "the cache is not a part of the chain"
    );
}
