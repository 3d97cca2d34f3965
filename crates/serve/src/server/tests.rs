//! The server over a real connection.

use std::path::Path;
use std::time::Duration;

use crucible_ledger::{NewEvent, RunRow};
use crucible_model::Timestamp;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;
use crate::connections::{HEAD_TIME, MAX_CONNECTIONS};
use crate::project::project_requests;

struct Site {
    port: u16,
    token: String,
    server: tokio::task::JoinHandle<()>,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn site(home: &Path) -> Site {
    let options = ServeOptions {
        ledger: home.join("ledger.db"),
        runs_root: home.join("runs"),
        port: 0,
        project: project_requests().0,
        rights: PageRights::ReadOnly,
    };
    let server = PageServer::open(options).await.unwrap();
    let (port, link) = (server.address.port(), server.link());
    let token = link.split_once("token=").unwrap().1.to_owned();
    Site {
        port,
        token,
        server: tokio::spawn(server.run()),
    }
}

impl Site {
    /// Sends a request with these lines after the first, and returns the whole answer.
    async fn send(&self, first: &str, lines: &[&str]) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        let mut request = format!("{first} HTTP/1.1\r\nConnection: close\r\n");
        for line in lines {
            request.push_str(line);
            request.push_str("\r\n");
        }
        stream
            .write_all(format!("{request}\r\n").as_bytes())
            .await
            .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn host(&self) -> String {
        format!("Host: 127.0.0.1:{}", self.port)
    }

    async fn cookie(&self) -> String {
        let entered = self
            .send(&format!("GET /enter?token={}", self.token), &[&self.host()])
            .await;
        assert!(entered.starts_with("HTTP/1.1 303"), "{entered}");
        let cookie = entered
            .lines()
            .find_map(|line| line.strip_prefix("set-cookie: "))
            .unwrap();
        format!("Cookie: {}", cookie.split(';').next().unwrap())
    }
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

fn ledger_of(home: &Path, runs: u64) -> Ledger {
    let mut ledger = Ledger::open(&home.join("ledger.db")).unwrap();
    let at: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    ledger
        .transact(|turn| {
            for number in 0..runs {
                let day = Duration::from_secs(
                    u64::try_from(at.unix_millis()).unwrap() / 1000 + number * 600,
                );
                let created = Timestamp::from_unix(day);
                let states = ["landed", "verified", "failed", "blocked"];
                let at = usize::try_from(number).unwrap();
                turn.record_run(&RunRow {
                    id: format!("run-{number:05}").parse().unwrap(),
                    goal: format!("make part {number} of the project faster and safer"),
                    repo: format!("/home/someone/project-{}", number % 7),
                    state: states[at % 4].to_owned(),
                    created,
                    updated: created,
                })?;
            }
            Ok(())
        })
        .unwrap();
    ledger
}

#[tokio::test]
async fn only_this_session_is_answered() {
    let home = tempfile::tempdir().unwrap();
    let _ledger = ledger_of(home.path(), 3);
    let site = site(home.path()).await;
    let host = site.host();
    let link = format!("GET /enter?token={}", site.token);
    // Without a session, with a wrong one, and with a link of another host.
    for path in [
        "/",
        "/runs",
        "/runs/run-00001",
        "/ledger",
        "/ledger/verify",
        "/costs",
        "/style.css",
        "/live.js",
        "/icon.svg",
        "/runs/run-00001/live",
        "/specs",
        "/skills",
        "/crawls/1",
        "/x",
    ] {
        let get = format!("GET {path}");
        for lines in [vec![host.as_str()], vec![&host, "Cookie: crucible=1"]] {
            let answer = site.send(&get, &lines).await;
            assert_eq!(status(&answer), "403", "{path}: {answer}");
            assert!(!answer.contains("run-0000"), "{answer}");
        }
    }
    let rebound = site.send(&link, &["Host: evil.test"]).await;
    assert_eq!(status(&rebound), "403");
    let wrong = site.send("GET /enter?token=0123", &[&host]).await;
    assert_eq!(status(&wrong), "403");
    let preview = site.send(&link.replace("GET", "HEAD"), &[&host]).await;
    assert_eq!(status(&preview), "405");
    let cookie = site.cookie().await;
    let second_text = site.send(&link, &[&host]).await;
    assert_eq!(status(&second_text), "403", "the link works once");

    let page = site.send("GET /runs", &[&host, &cookie]).await;
    assert_eq!(status(&page), "200", "{page}");
    assert!(
        page.contains("run-00002") && page.contains("3 runs"),
        "{page}"
    );
    for header in [
        "content-security-policy: default-src 'none'; style-src 'self'",
        "x-content-type-options: nosniff",
        "cache-control: no-store",
        "referrer-policy: same-origin",
        "cross-origin-resource-policy: same-origin",
    ] {
        assert!(page.contains(header), "{header}: {page}");
    }
    assert!(
        !page.to_lowercase().contains("access-control-allow"),
        "{page}"
    );
    // With the cookie, but from elsewhere.
    for wrong in [
        "Origin: http://evil.test",
        "Origin: null",
        "Origin: http://127.0.0.1:1",
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
    ] {
        let answer = site.send("GET /runs", &[&host, &cookie, wrong]).await;
        assert_eq!(status(&answer), "403", "{wrong}");
    }
    for wrong in ["Host: evil.test", "Host: 127.0.0.1", "Host: localhost"] {
        let answer = site.send("GET /runs", &[wrong, &cookie]).await;
        assert_eq!(status(&answer), "403", "{wrong}");
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        let answer = site
            .send(
                &format!("{method} /runs"),
                &[&host, &cookie, "Content-Length: 0"],
            )
            .await;
        assert_eq!(status(&answer), "405", "{method}");
    }
    // A session of another server does not count here.
    let other = self::site(home.path()).await;
    let stale = other.send("GET /runs", &[&other.host(), &cookie]).await;
    assert_eq!(status(&stale), "403");
}

#[tokio::test]
async fn unknown_and_hostile_addresses_are_not_found() {
    let home = tempfile::tempdir().unwrap();
    let _ledger = ledger_of(home.path(), 1);
    let site = site(home.path()).await;
    let (host, cookie) = (site.host(), site.cookie().await);
    for path in [
        "/runs/..",
        "/runs/%2e%2e",
        "/runs/run-00000",
        "/runs/x/attempts/1",
        "/runs/../../etc/passwd",
        "//runs",
        "/runs/",
        "/ledger/verify/",
        "/style.css/",
        "/runs/a%00b",
        "/<script>",
    ] {
        let answer = site.send(&format!("GET {path}"), &[&host, &cookie]).await;
        assert!(matches!(status(&answer), "404" | "400"), "{path}: {answer}");
        assert!(!answer.contains("<script>"), "{answer}");
    }
    let verified = site.send("GET /ledger/verify", &[&host, &cookie]).await;
    assert!(verified.contains("Verified now"), "{verified}");
}

/// Programs of other users can connect, too. They cannot hold connections that the reader needs.
#[tokio::test]
async fn slow_clients_do_not_keep_the_page() {
    let home = tempfile::tempdir().unwrap();
    let _ledger = ledger_of(home.path(), 1);
    let site = site(home.path()).await;
    let (host, cookie) = (site.host(), site.cookie().await);
    let started = Instant::now();
    let mut slow = Vec::new();
    for _ in 0..=MAX_CONNECTIONS {
        let mut stream = TcpStream::connect(("127.0.0.1", site.port)).await.unwrap();
        stream
            .write_all(b"GET /runs HTTP/1.1\r\nHos")
            .await
            .unwrap();
        slow.push(stream);
    }
    let page = site.send("GET /runs", &[&host, &cookie]).await;
    assert_eq!(status(&page), "200", "{page}");
    assert!(started.elapsed() < HEAD_TIME * 2, "{:?}", started.elapsed());
    let mut left = Vec::new();
    slow[0].read_to_end(&mut left).await.unwrap();
    assert!(!String::from_utf8_lossy(&left).contains("run-00000"));
}

#[tokio::test]
async fn search_that_is_too_long_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let _ledger = ledger_of(home.path(), 1);
    let site = site(home.path()).await;
    let (host, cookie) = (site.host(), site.cookie().await);
    for (query, expected) in [
        ("%22".repeat(MAX_QUERY / 3 - 1), "200"),
        ("%25".repeat(MAX_QUERY), "414"),
        ("a".repeat(100_000), "414"),
    ] {
        let get = format!("GET /runs?q={query}");
        let page = site.send(&get, &[&host, &cookie]).await;
        assert_eq!(status(&page), expected, "{page}");
        assert!(page.len() <= 100_000, "{}", page.len());
    }
}

#[tokio::test]
async fn repository_is_found_by_the_name_that_the_page_shows() {
    let home = tempfile::tempdir().unwrap();
    let mut ledger = ledger_of(home.path(), 0);
    let at: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let token = format!("ghp_{}", "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6");
    let names = [
        "/w/a%20b".to_owned(),
        "/w/a&b=c".to_owned(),
        "/w/a+b  c".to_owned(),
        "/w/größe".to_owned(),
        "/w/hidden\u{202e}\u{7}".to_owned(),
        format!("/w/{token}"),
    ];
    ledger
        .transact(|turn| {
            for (number, repo) in names.iter().enumerate() {
                turn.record_run(&RunRow {
                    id: format!("run-{number:05}").parse().unwrap(),
                    goal: "a goal".to_owned(),
                    repo: repo.clone(),
                    state: "landed".to_owned(),
                    created: at,
                    updated: at,
                })?;
            }
            Ok(())
        })
        .unwrap();
    let site = site(home.path()).await;
    let (host, cookie) = (site.host(), site.cookie().await);
    for (number, repo) in names.iter().enumerate() {
        let text = RedactedText::new(repo).to_string();
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("repo", &text)
            .finish();
        let page = site
            .send(&format!("GET /runs?{query}"), &[&host, &cookie])
            .await;
        assert!(page.contains("1 run, page 1 of 1"), "{repo}: {page}");
        assert!(page.contains(&format!("/runs/run-{number:05}")), "{repo}");
        assert_eq!(page.matches("\" selected>").count(), 1, "{repo}: {page}");
    }
    let none = site
        .send("GET /runs?repo=/w/other", &[&host, &cookie])
        .await;
    assert!(none.contains("No run matches."), "{none}");
}

#[tokio::test]
async fn page_beyond_the_end_is_the_last_one() {
    let home = tempfile::tempdir().unwrap();
    let _ledger = ledger_of(home.path(), 51);
    let site = site(home.path()).await;
    let page = site
        .send("GET /runs?page=99", &[&site.host(), &site.cookie().await])
        .await;
    assert!(page.contains("51 runs, page 2 of 2"), "{page}");
    assert!(
        page.contains("run-00000") && page.contains("page=1\""),
        "{page}"
    );
}

#[tokio::test]
async fn list_of_long_goals_and_many_repositories_is_small() {
    let home = tempfile::tempdir().unwrap();
    let mut ledger = ledger_of(home.path(), 0);
    let at: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    ledger
        .transact(|turn| {
            for number in 0..1000 {
                turn.record_run(&RunRow {
                    id: format!("run-{number:05}").parse().unwrap(),
                    goal: format!("{number} {}\nmore", "word ".repeat(1000)),
                    repo: format!("/home/someone/{}/{number}", "project".repeat(20)),
                    state: "landed".to_owned(),
                    created: at,
                    updated: at,
                })?;
            }
            Ok(())
        })
        .unwrap();
    let site = site(home.path()).await;
    let page = site
        .send("GET /runs", &[&site.host(), &site.cookie().await])
        .await;
    assert_eq!(status(&page), "200", "{page}");
    assert!(page.contains("run-00999") && page.contains("…"), "{page}");
    assert!(page.len() <= 100_000, "{}", page.len());
}

#[tokio::test]
async fn page_without_a_ledger_says_so() {
    let home = tempfile::tempdir().unwrap();
    let site = site(home.path()).await;
    let cookie = site.cookie().await;
    let answer = site.send("GET /runs", &[&site.host(), &cookie]).await;
    assert_eq!(status(&answer), "404");
    assert!(answer.contains("There is no ledger yet"), "{answer}");
    assert!(!home.path().join("ledger.db").exists());
}

#[tokio::test]
async fn change_is_sent_soon_after_its_event() {
    let home = tempfile::tempdir().unwrap();
    let mut ledger = ledger_of(home.path(), 1);
    let site = site(home.path()).await;
    let (host, cookie) = (site.host(), site.cookie().await);
    let mut stream = TcpStream::connect(("127.0.0.1", site.port)).await.unwrap();
    let request = format!("GET /runs/run-00000/live HTTP/1.1\r\n{host}\r\n{cookie}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut seen = String::new();
    let mut piece = [0u8; 4096];
    while !seen.contains("\r\n\r\n") {
        let read = stream.read(&mut piece).await.unwrap();
        seen.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    assert!(seen.contains("text/event-stream"), "{seen}");
    let at: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut slowest = Duration::ZERO;
    for _ in 0..3 {
        let event = NewEvent::new(
            "run-00000".parse().unwrap(),
            at,
            "r",
            "E",
            serde_json::json!({}),
        );
        ledger.append(event).unwrap();
        let started = Instant::now();
        let mut sent = String::new();
        while !sent.contains("event: changed") {
            let read = stream.read(&mut piece).await.unwrap();
            assert!(read > 0, "the stream ended: {sent}");
            sent.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
        slowest = slowest.max(started.elapsed());
    }
    println!("the slowest of three: {slowest:?}");
    // The pause is 50 ms; a busy machine may need longer.
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
}

mod slow {
    use super::*;

    /// Ten thousand runs: how large each page is and how long it takes. It fails at ten times the goal of 50 ms, because it
    /// also runs unoptimised and beside other tests; it prints what it measures.
    #[tokio::test]
    async fn pages_with_10000_runs_are_small_and_fast() {
        let home = tempfile::tempdir().unwrap();
        let _ledger = ledger_of(home.path(), 10_000);
        let site = site(home.path()).await;
        let (host, cookie) = (site.host(), site.cookie().await);
        for path in [
            "/runs",
            "/runs?page=200",
            "/runs?q=part+9999",
            "/runs?state=failed&repo=%2Fhome%2Fsomeone%2Fproject-3",
            "/costs",
            "/ledger",
        ] {
            let mut times = Vec::new();
            let mut size = 0;
            for _ in 0..40 {
                let started = Instant::now();
                let answer = site.send(&format!("GET {path}"), &[&host, &cookie]).await;
                times.push(started.elapsed());
                assert_eq!(status(&answer), "200");
                size = answer.len();
            }
            times.sort();
            println!(
                "{path}: {size} bytes, median {:?}, p95 {:?}",
                times[20], times[37]
            );
            assert!(size <= 100_000, "{path}: {size}");
            assert!(
                times[37] < Duration::from_millis(500),
                "{path}: {:?}",
                times[37]
            );
        }
    }
}
