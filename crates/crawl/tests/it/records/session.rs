//! A session ends completed, failed or aborted on every exit, its texts contain no secret, and a dry one
//! leaves no trace.

#![expect(
    clippy::disallowed_methods,
    reason = "tests plant files, and kill processes that they started"
)]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Stdio};

use crucible_crawl::{
    ArtifactType, ConfigSnapshot, CrawlSession, MessageRecord, OutputDir, RedactedMessage,
    SessionError, SessionStatus, Transcript, abort_dead_sessions,
};
use crucible_host::clock::PinnedClock;
use crucible_ledger::{CrawlRow, Moment};
use crucible_testkit::made_up_token;
use serde_json::{Value, json};

use super::common::{
    CHILD, CONFIG, Home, TRANSCRIPT, as_process, begin, checked, documents, ledger_in, now,
    plan_document, search_document, tree,
};

fn row(home: &Home, id: u64) -> CrawlRow {
    home.ledger().crawl(id).unwrap().unwrap()
}

fn moment() -> Moment {
    Moment::now(&PinnedClock(now()))
}

/// As a debate passes it to a session.
fn message(reply: &str) -> RedactedMessage {
    MessageRecord {
        phase: "draft",
        round: 1,
        owner: "gpt",
        provider: "gateway".to_owned(),
        model: "small".to_owned(),
        request: vec![(
            "user".to_owned(),
            format!("the repository says {}", made_up_token()),
        )],
        reply: reply.to_owned(),
        verdict: "",
        error: String::new(),
    }
    .redacted()
}

#[test]
fn every_exit_sets_session_status() {
    let home = Home::new();
    for status in [
        SessionStatus::Completed,
        SessionStatus::Failed,
        SessionStatus::Aborted,
    ] {
        let mut session = home.session();
        let id = session.id();
        assert_eq!(row(&home, id).status, SessionStatus::Active);
        session.end(status).unwrap();
        // Only the first end counts.
        session.end(SessionStatus::Failed).unwrap();
        drop(session);
        let row = row(&home, id);
        assert_eq!((row.status, row.ended_at), (status, Some(now())));
    }
    assert_eq!(
        std::fs::read_dir(home.path().join("tmp")).unwrap().count(),
        0,
        "no lock is left"
    );
    assert!(home.session().end(SessionStatus::Active).is_err());
}

#[test]
fn dropped_session_is_aborted() {
    let home = Home::new();
    let dropped = home.session().id();
    assert_eq!(row(&home, dropped).status, SessionStatus::Aborted);
    let panicked = std::panic::catch_unwind(|| {
        let _session = begin(home.dir.path());
        panic!("in the middle of a crawl");
    });
    assert!(panicked.is_err());
    assert_eq!(row(&home, dropped + 1).status, SessionStatus::Aborted);
    assert!(home.ledger().active_crawls().unwrap().is_empty());
}

#[test]
fn session_records_findings() {
    let home = Home::new();
    let mut session = home.session();
    let id = session.id();
    assert_eq!(session.run_id().unwrap().as_str(), format!("crawl-{id}"));
    session
        .record_selection("owner/tool", Some("v1.2.3:core"))
        .unwrap();
    session.record_build_system("cargo").unwrap();
    session.keep(&message("{}")).unwrap();
    session.record_debate(2, &"größer ".repeat(200)).unwrap();
    session
        .record_plan(&serde_json::from_value(plan_document()).unwrap())
        .unwrap();
    let documents = documents(&search_document(), &plan_document());
    for document in &documents {
        session.store(document).unwrap();
    }
    let dir = OutputDir::in_home(&home.path(), id).unwrap();
    let export = crucible_crawl::Export {
        artifacts: &documents,
        debate_transcript: TRANSCRIPT,
        config_snapshot: CONFIG,
    };
    session
        .record_export(&crucible_crawl::write_export(&dir, &export).unwrap())
        .unwrap();
    session.end(SessionStatus::Completed).unwrap();

    let row = row(&home, id);
    assert_eq!(row.query.as_deref(), Some("ripgrep"));
    assert_eq!(row.selected_repo.as_deref(), Some("owner/tool"));
    assert_eq!(row.selected_ref.as_deref(), Some("v1.2.3:core"));
    assert_eq!(
        (row.build_system.as_deref(), row.debate_rounds),
        (Some("cargo"), 2)
    );
    assert_eq!(row.phase_summary.unwrap().chars().count(), 1000);
    assert_eq!(
        row.plan_hash.as_deref(),
        plan_document()["plan_hash"].as_str()
    );
    assert_eq!(row.prompt_hash.as_deref(), Some("fedcba987654"));
    assert_eq!(
        row.export_path.as_deref(),
        home.path().join(format!("exports/{id}")).to_str()
    );
    assert!(row.config_snapshot.unwrap().contains("gateway"));
    let stored = home.ledger().crawl_artifacts(id).unwrap();
    for (row, document) in stored.iter().zip(&documents) {
        assert_eq!(row.content, document.json());
        assert_eq!(row.content_hash, document.content_hash().as_str());
        assert_eq!(row.schema, document.kind().schema_id());
        assert_eq!(
            row.export_filename.as_deref(),
            Some(format!("{}.json", row.kind).as_str())
        );
    }
    assert_eq!(stored.len(), 5);
    let events = home
        .ledger()
        .events(Some(&format!("crawl-{id}").parse().unwrap()))
        .unwrap();
    assert_eq!(events.len(), 13);
    for event in events {
        assert_eq!(
            event.body["clock"], "pinned",
            "an instant that is not real says so: {}",
            event.event
        );
    }
    assert_eq!(home.ledger().verify(&[]).unwrap().findings(), []);
}

#[test]
fn no_secret_reaches_the_disk() {
    let home = Home::new();
    let config = ConfigSnapshot::new([("note", made_up_token())]).unwrap();
    let clock = Box::new(PinnedClock(now()));
    let query = format!("search {}", made_up_token());
    let mut session = CrawlSession::begin(
        home.ledger(),
        &home.path().join("tmp"),
        clock,
        Some(&query),
        &config,
    )
    .unwrap();
    session
        .keep(&message(&format!("{{\"cmd\":\"{}\"}}", made_up_token())))
        .unwrap();
    session.record_debate(1, &made_up_token()).unwrap();
    session
        .record_selection(&made_up_token(), Some(&made_up_token()))
        .unwrap();
    let mut search = search_document();
    search["query"] = json!(made_up_token());
    let refused = session
        .store(&checked(ArtifactType::Search, &search))
        .unwrap_err();
    assert!(
        matches!(&refused, SessionError::Secret { artifact: "search", rules } if rules == &["github-personal-token"]),
        "{refused}"
    );
    let id = session.id();
    drop(session);
    let ledger = home.ledger();
    let row = ledger.crawl(id).unwrap().unwrap();
    assert_eq!(
        row.query.as_deref(),
        Some("search [secret:github-personal-token]")
    );
    let bytes = ledger
        .artifact(&ledger.crawl_messages(id).unwrap()[0].digest)
        .unwrap()
        .unwrap();
    let document: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(
        document["reply"],
        "{\"cmd\":\"[secret:github-personal-token]\"}"
    );
    assert_eq!(
        (&document["phase"], &document["owner"], &document["round"]),
        (&json!("draft"), &json!("gpt"), &json!(1))
    );
    let token = made_up_token();
    for (path, content) in tree(home.dir.path()) {
        let content = content.unwrap_or_default();
        let found = content
            .windows(token.len())
            .any(|window| window == token.as_bytes());
        assert!(!found, "{} holds the secret", path.display());
    }
}

#[test]
fn dry_session_leaves_no_trace() {
    let home = Home::new();
    let mut session = CrawlSession::dry();
    assert!(session.is_dry());
    assert_eq!((session.id(), session.run_id()), (0, None));
    session.record_selection("owner/tool", None).unwrap();
    session.record_build_system("cargo").unwrap();
    session.keep(&message("{}")).unwrap();
    session.record_debate(1, "x").unwrap();
    session
        .record_plan(&serde_json::from_value(plan_document()).unwrap())
        .unwrap();
    session
        .store(&checked(ArtifactType::Plan, &plan_document()))
        .unwrap();
    let mut search = search_document();
    search["query"] = json!(made_up_token());
    assert!(matches!(
        session.store(&checked(ArtifactType::Search, &search)),
        Err(SessionError::Secret { .. })
    ));
    session.end(SessionStatus::Completed).unwrap();
    drop(session);
    assert_eq!(tree(home.dir.path()), []);
}

/// A process that begins a session in `home`, prints its number and stays.
struct Other {
    child: Child,
    id: u64,
}

impl Other {
    fn start(test: &str, home: &Path) -> Child {
        as_process(test, home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn began(mut child: Child) -> Self {
        let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
        let id = lines
            .find_map(|line| line.unwrap().split_once("session=")?.1.parse().ok())
            .unwrap();
        Self { child, id }
    }

    /// What such a process does.
    fn play() -> bool {
        let Some(home) = std::env::var_os(CHILD) else {
            return false;
        };
        let session = begin(Path::new(&home));
        println!("\nsession={}", session.id());
        std::io::stdout().flush().unwrap();
        let _ = std::io::stdin().read(&mut [0]);
        true
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        self.child.wait().unwrap();
    }
}

#[test]
fn dead_session_is_aborted_by_next() {
    let test = "records::session::dead_session_is_aborted_by_next";
    if Other::play() {
        return;
    }
    let home = Home::new();
    let mut killed = Other::began(Other::start(test, home.dir.path()));
    let living = Other::began(Other::start(test, home.dir.path()));
    assert_ne!(killed.id, living.id);
    let mut own = home.session();
    assert_eq!(
        row(&home, killed.id).status,
        SessionStatus::Active,
        "both processes live"
    );
    // As after a kill: SIGKILL runs no cleanup.
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    assert_eq!(
        row(&home, killed.id).status,
        SessionStatus::Active,
        "nobody has looked yet"
    );
    let next = home.session();
    assert_eq!(row(&home, killed.id).status, SessionStatus::Aborted);
    for alive in [living.id, own.id(), next.id()] {
        assert_eq!(row(&home, alive).status, SessionStatus::Active);
    }
    own.end(SessionStatus::Completed).unwrap();
    let ended = home
        .ledger()
        .events(Some(&format!("crawl-{}", killed.id).parse().unwrap()))
        .unwrap();
    assert_eq!(ended.last().unwrap().event, "CRAWL_ENDED");
    assert!(
        !home
            .path()
            .join(format!("tmp/crawl-{}.lock", killed.id))
            .exists()
    );
}

#[test]
fn concurrent_processes_get_own_sessions() {
    let test = "records::session::concurrent_processes_get_own_sessions";
    if Other::play() {
        return;
    }
    let home = Home::new();
    let children: Vec<Child> = (0..4)
        .map(|_| Other::start(test, home.dir.path()))
        .collect();
    let others: Vec<Other> = children.into_iter().map(Other::began).collect();
    let ids: BTreeSet<u64> = others.iter().map(|other| other.id).collect();
    assert_eq!(ids.len(), 4);
    let ledger = home.ledger();
    assert_eq!(
        ledger.active_crawls().unwrap(),
        ids.into_iter().collect::<Vec<_>>(),
        "none was taken for dead"
    );
    assert_eq!(ledger.verify(&[]).unwrap().findings(), []);
}

#[test]
fn dead_sessions_are_aborted_once() {
    let home = Home::new();
    let mut dead = Vec::new();
    for _ in 0..3 {
        // As a killed process leaves it: a row and no lock.
        let new = crucible_ledger::NewCrawl {
            moment: moment(),
            query: None,
            config_snapshot: "{}".to_owned(),
        };
        dead.push(
            home.ledger()
                .begin_crawl(&new, |_| Ok::<_, SessionError>(()))
                .unwrap()
                .0,
        );
    }
    let locks = home.path().join("tmp");
    let mut found: Vec<u64> = std::thread::scope(|scope| {
        let look =
            || abort_dead_sessions(&mut ledger_in(home.dir.path()), &locks, moment()).unwrap();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(look)).collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    found.sort_unstable();
    // A concurrent check may take the session for alive; the other one ends it.
    assert_eq!(found, dead);
    assert_eq!(
        abort_dead_sessions(&mut home.ledger(), &locks, moment()).unwrap(),
        Vec::<u64>::new()
    );
}

#[test]
fn session_without_lock_does_not_begin() {
    let home = Home::new();
    std::fs::write(home.path().join("tmp"), "a file").unwrap();
    let config = ConfigSnapshot::new::<&str, &str>([]).unwrap();
    let clock = Box::new(PinnedClock(now()));
    let refused = CrawlSession::begin(
        home.ledger(),
        &home.path().join("tmp"),
        clock,
        None,
        &config,
    )
    .unwrap_err();
    assert!(matches!(refused, SessionError::Lock(_)), "{refused}");
    assert!(home.ledger().crawls().unwrap().is_empty());
    assert_eq!(home.ledger().head().unwrap().seq, 0);
}
