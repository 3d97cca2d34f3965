//! The real `gh` against a GitHub of our own: every answer that GitHub has been seen to give, and the ways in which none comes.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests lay out files and listen where nobody should come"
)]

use std::ffi::OsString;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crucible_host::env::Environment;
use crucible_model::{ByteLimit, Timestamp};
use crucible_repo::{Gh, GhDeadlines, GhError, GhRequest, GhResponse, LimitReset};
use crucible_testkit::{FakeGitHub, FakeRepo, Misbehaviour, Times, fake_sha, tarball};
use serde_json::Value;

use crate::common::sandbox;

/// Longer than any answer takes on a machine that has much else to do.
const LONG: Duration = Duration::from_secs(120);

const FILES: [(&str, &str); 2] = [("Cargo.toml", "[package]"), ("src/main.rs", "fn main() {}")];

/// `gh` with these variables, a `PATH` and a home without anything in it.
fn gh_with(variables: Vec<(OsString, OsString)>) -> Gh {
    let mut pairs: Vec<(OsString, OsString)> = vec![
        ("PATH".into(), std::env::var_os("PATH").unwrap()),
        ("HOME".into(), "/nonexistent".into()),
    ];
    pairs.extend(variables);
    Gh::new(sandbox(), &Environment::from_pairs(pairs, "/"))
}

fn gh(github: &FakeGitHub) -> Gh {
    gh_with(github.env()).with_deadlines(GhDeadlines {
        answer: LONG,
        download: LONG,
    })
}

/// A deadline that ends what never ends; nothing is expected to happen within it.
fn hasty(github: &FakeGitHub) -> Gh {
    let soon = Duration::from_millis(700);
    gh(github).with_deadlines(GhDeadlines {
        answer: soon,
        download: soon,
    })
}

fn widget() -> FakeGitHub {
    FakeGitHub::start([FakeRepo::new("acme/widget").release("v1", &FILES)])
}

fn repository() -> GhRequest {
    GhRequest::at("repos")
        .part("acme")
        .unwrap()
        .part("widget")
        .unwrap()
}

fn archive_at(reference: &str) -> GhRequest {
    repository()
        .part("tarball")
        .unwrap()
        .reference(reference)
        .unwrap()
}

/// The error of asking for the repository.
async fn refused(github: &FakeGitHub, how: Misbehaviour) -> GhError {
    github.behave();
    github.misbehave("/repos/", Times::Always, how);
    gh(github).get(&repository()).await.unwrap_err()
}

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("archive.tar.gz")
    }

    fn is_empty(&self) -> bool {
        std::fs::read_dir(self.0.path()).unwrap().next().is_none()
    }
}

/// Whether a process lives that was told to use this GitHub.
fn has_children(github: &FakeGitHub) -> bool {
    let mark = format!("GH_CONFIG_DIR={}", github.config_directory().display()).into_bytes();
    let holds = |process: &Path| {
        let environment = std::fs::read(process.join("environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == mark)
    };
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .any(|entry| holds(&entry.path()))
}

async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LONG, "never: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn request_and_response_round_trip() {
    let github = widget();
    let query = "--hostname=evil @/etc/passwd {owner} ../ a&per_page=9 é%00\n'\"";
    let request = GhRequest::at("search").part("repositories").unwrap();
    let request = request
        .value("q", query)
        .unwrap()
        .value("page", "2")
        .unwrap();
    let answer: Value = gh(&github).get(&request).await.unwrap().json().unwrap();
    assert_eq!(answer["total_count"], 0);
    let seen = github.requests();
    assert_eq!(seen.len(), 1);
    assert_eq!(
        (seen[0].method.as_str(), seen[0].host.as_str()),
        ("GET", "api.github.com")
    );
    assert_eq!(seen[0].path, "/search/repositories");
    assert_eq!(seen[0].value("q"), Some(query));
    assert_eq!(seen[0].query.len(), 2);
    assert_eq!(
        seen[0].header("authorization"),
        Some("token a-token-of-the-fake")
    );
}

#[tokio::test]
async fn hostile_names_stay_names() {
    let github = widget();
    for name in [
        "-x",
        "--help",
        "@/etc/passwd",
        "../../user",
        "{owner}",
        "http://127.0.0.1",
        "a b\n?x=1#y",
        ":branch",
    ] {
        let request = GhRequest::at("repos")
            .part("acme")
            .unwrap()
            .part(name)
            .unwrap();
        let error = gh(&github).get(&request).await.unwrap_err();
        assert!(
            matches!(error, GhError::NotFound { .. }),
            "{name:?}: {error:?}"
        );
        let seen = github.requests().pop().unwrap();
        assert!(
            seen.path.starts_with("/repos/acme/") && seen.query.is_empty(),
            "{seen:?}"
        );
        assert_eq!(seen.path.matches('/').count(), 3, "{seen:?}");
    }
}

#[tokio::test]
async fn each_refusal_has_its_own_error() {
    let github = widget();
    let text = |error: GhError| error.to_string();
    let error = refused(&github, Misbehaviour::status(403)).await;
    assert!(matches!(error, GhError::Forbidden { .. }), "{error:?}");
    assert!(text(error).contains("Resource not accessible"));
    let error = refused(&github, Misbehaviour::status(404)).await;
    assert!(
        matches!(error, GhError::NotFound { .. }) && text(error).contains("check the spelling")
    );
    let error = refused(&github, Misbehaviour::status(422)).await;
    assert!(
        matches!(&error, GhError::Invalid { status: 422, message, .. } if message == "Validation Failed"),
        "{error:?}"
    );
    let error = refused(&github, Misbehaviour::status(500)).await;
    assert!(
        matches!(error, GhError::Server { status: 500, .. }),
        "{error:?}"
    );
    let error = refused(&github, Misbehaviour::status(401)).await;
    assert!(matches!(error, GhError::NotLoggedIn { .. }) && text(error).contains("gh auth login"));
    let page = Misbehaviour::Raw {
        status: 502,
        headers: Vec::new(),
        body: b"<html>Bad Gateway</html>".to_vec(),
    };
    let error = refused(&github, page).await;
    assert!(
        matches!(&error, GhError::Server { status: 502, message } if message.contains("Bad Gateway")),
        "{error:?}"
    );
}

#[tokio::test]
async fn rate_limits_state_their_end() {
    let github = widget();
    let limited = |at, after| GhError::RateLimited(LimitReset { at, after });
    let reset = Timestamp::from_unix(Duration::from_secs(1_900_000_000));
    assert_eq!(
        refused(&github, Misbehaviour::primary_limit(1_900_000_000)).await,
        limited(Some(reset), None)
    );
    let after = Some(Duration::from_secs(17));
    assert_eq!(
        refused(&github, Misbehaviour::secondary_limit(17)).await,
        limited(None, after)
    );
    assert_eq!(
        refused(&github, Misbehaviour::silent_secondary_limit()).await,
        limited(None, None)
    );
}

#[tokio::test]
async fn broken_answers_are_no_answers() {
    let github = widget();
    for how in [Misbehaviour::CutHalfway, Misbehaviour::Drop] {
        let error = refused(&github, how).await;
        assert!(
            matches!(
                error,
                GhError::Unreadable { .. } | GhError::Unreachable { .. }
            ),
            "{error:?}"
        );
    }
    let error = refused(&github, Misbehaviour::Huge(40 << 20)).await;
    assert!(matches!(error, GhError::TooLarge { .. }), "{error:?}");
    for how in [Misbehaviour::BadJson, Misbehaviour::EndHalfway] {
        github.behave();
        github.misbehave("/repos/", Times::Always, how);
        let answer: GhResponse = gh(&github).get(&repository()).await.unwrap();
        let error = answer.json::<Value>().unwrap_err();
        assert!(matches!(error, GhError::Unreadable { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn endless_call_is_killed() {
    let github = widget();
    for how in [Misbehaviour::Hang, Misbehaviour::Endless] {
        github.behave();
        github.misbehave("legacy.tar.gz", Times::Always, how.clone());
        github.misbehave("/repos/acme/widget", Times::Once, how);
        let error = hasty(&github).get(&repository()).await.unwrap_err();
        assert!(matches!(error, GhError::TimedOut { .. }), "{error:?}");
        let place = Place::new();
        let error = hasty(&github)
            .download(&archive_at("v1"), &place.file(), ByteLimit(1 << 30))
            .await
            .unwrap_err();
        assert!(matches!(error, GhError::TimedOut { .. }), "{error:?}");
        assert!(place.is_empty());
        assert!(!has_children(&github));
    }
}

#[tokio::test]
async fn a_slow_answer_is_waited_for() {
    let github = widget();
    github.misbehave(
        "/repos/",
        Times::Once,
        Misbehaviour::SlowBody(Duration::from_millis(1)),
    );
    let document: Value = gh(&github)
        .get(&repository())
        .await
        .unwrap()
        .json()
        .unwrap();
    assert_eq!(document["full_name"], "acme/widget");
}

#[tokio::test]
async fn missing_login_names_login_command() {
    let github = widget();
    let gh = gh_with(github.env_without_login());
    let error = gh.get(&repository()).await.unwrap_err();
    assert!(matches!(error, GhError::NotLoggedIn { .. }), "{error:?}");
    let text = error.to_string();
    assert!(
        text.contains("gh auth login") && text.contains("GH_TOKEN"),
        "{text}"
    );
    assert!(github.requests().is_empty());
}

#[tokio::test]
async fn missing_gh_error_names_package() {
    let nothing = tempfile::tempdir().unwrap();
    let env = Environment::from_pairs([("PATH", nothing.path())], "/");
    let error = Gh::new(sandbox(), &env)
        .get(&repository())
        .await
        .unwrap_err();
    assert!(matches!(error, GhError::Missing { .. }), "{error:?}");
    let text = error.to_string();
    assert!(
        text.contains("apt install gh") && text.contains("gh auth login"),
        "{text}"
    );
}

#[tokio::test]
async fn a_network_that_is_not_there_is_named() {
    let config = tempfile::tempdir().unwrap();
    std::fs::write(
        config.path().join("config.yml"),
        "http_unix_socket: /nonexistent/socket\n",
    )
    .unwrap();
    let gh = gh_with(vec![
        ("GH_CONFIG_DIR".into(), config.path().into()),
        ("GH_TOKEN".into(), "t".into()),
    ]);
    let error = gh.get(&repository()).await.unwrap_err();
    assert!(matches!(error, GhError::Unreachable { .. }), "{error:?}");
}

#[tokio::test]
async fn the_fake_is_reached_past_every_proxy() {
    let github = widget();
    let proxy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    proxy.set_nonblocking(true).unwrap();
    let address = format!("http://{}", proxy.local_addr().unwrap());
    let mut variables = github.env();
    for name in [
        "HTTPS_PROXY",
        "https_proxy",
        "HTTP_PROXY",
        "http_proxy",
        "ALL_PROXY",
    ] {
        variables.push((name.into(), address.clone().into()));
    }
    let gh = gh_with(variables).with_deadlines(GhDeadlines {
        answer: LONG,
        download: LONG,
    });
    gh.get(&repository()).await.unwrap();
    let place = Place::new();
    gh.download(&archive_at("v1"), &place.file(), ByteLimit(1 << 20))
        .await
        .unwrap();
    assert_eq!(
        proxy.accept().unwrap_err().kind(),
        std::io::ErrorKind::WouldBlock
    );
}

#[tokio::test]
async fn gh_host_selects_another_host() {
    let github = widget();
    let mut variables = github.env();
    variables.push(("GH_HOST".into(), "Git.Example.org".into()));
    variables.push(("GH_ENTERPRISE_TOKEN".into(), "t".into()));
    let gh = gh_with(variables);
    assert_eq!(gh.host(), "git.example.org");
    gh.get(&repository()).await.unwrap();
    assert!(
        github.requests()[0]
            .host
            .eq_ignore_ascii_case("git.example.org"),
        "{:?}",
        github.requests()
    );
}

#[tokio::test]
async fn only_logged_in_host_is_not_assumed() {
    let github = widget();
    // Left alone, `gh` takes the only host that it has a login for.
    let logins =
        "git.example.org:\n    user: someone\n    oauth_token: t\n    git_protocol: https\n";
    std::fs::write(github.config_directory().join("hosts.yml"), logins).unwrap();
    let gh = gh(&github);
    assert_eq!(gh.host(), "github.com");
    gh.get(&repository()).await.unwrap();
    let place = Place::new();
    gh.download(&archive_at("v1"), &place.file(), ByteLimit(1 << 20))
        .await
        .unwrap();
    let hosts: Vec<String> = github
        .requests()
        .into_iter()
        .map(|request| request.host)
        .collect();
    assert_eq!(
        hosts,
        ["api.github.com", "api.github.com", "codeload.github.com"]
    );
    let other = gh_with(vec![("GH_HOST".into(), "API.GitHub.com".into())]);
    assert_eq!(other.host(), "github.com");
}

#[tokio::test]
async fn dropped_call_leaves_nothing() {
    let github = widget();
    let place = Place::new();
    github.misbehave("/repos/", Times::Exactly(1), Misbehaviour::Hang);
    github.misbehave(
        "/legacy.tar.gz/",
        Times::Always,
        Misbehaviour::SlowBody(Duration::from_secs(60)),
    );
    let gh = gh(&github);
    let (request, file) = (repository(), place.file());
    let request_count = github.requests().len();
    tokio::select! {
        answer = gh.get(&request) => panic!("an answer came: {answer:?}"),
        () = eventually("a request", || github.requests().len() > request_count) => {}
    }
    let archive = archive_at("v1");
    tokio::select! {
        answer = gh.download(&archive, &file, ByteLimit(1 << 20)) => panic!("an answer came: {answer:?}"),
        () = eventually("a download", || github.count("legacy.tar.gz") > 0 && file.exists()) => {}
    }
    eventually("no process left", || !has_children(&github)).await;
    assert!(place.is_empty());
}

#[tokio::test]
async fn an_archive_is_downloaded_through_its_redirect() {
    let github = widget();
    let place = Place::new();
    let length = gh(&github)
        .download(&archive_at("v1"), &place.file(), ByteLimit(1 << 20))
        .await
        .unwrap();
    let bytes = std::fs::read(place.file()).unwrap();
    assert_eq!(
        bytes,
        tarball("acme", "widget", &fake_sha("acme/widget", "v1"), FILES)
    );
    assert_eq!(length, bytes.len() as u64);
    assert_eq!(
        place.file().metadata().unwrap().permissions().mode() & 0o777,
        0o600
    );
    let hosts: Vec<String> = github
        .requests()
        .into_iter()
        .map(|request| request.host)
        .collect();
    assert_eq!(hosts, ["api.github.com", "codeload.github.com"]);
}

#[tokio::test]
async fn error_body_is_never_an_archive() {
    let github = widget();
    let gh = gh(&github);
    let place = Place::new();
    for (part, how, is_expected) in [
        (
            "/tarball/",
            Misbehaviour::status(404),
            (|e| matches!(e, GhError::NotFound { .. })) as fn(&GhError) -> bool,
        ),
        ("legacy.tar.gz", Misbehaviour::status(404), |e| {
            matches!(e, GhError::NotFound { .. })
        }),
        ("/tarball/", Misbehaviour::status(403), |e| {
            matches!(e, GhError::Forbidden { .. })
        }),
        ("/tarball/", Misbehaviour::status(500), |e| {
            matches!(e, GhError::Server { status: 500, .. })
        }),
        ("/tarball/", Misbehaviour::silent_secondary_limit(), |e| {
            matches!(e, GhError::RateLimited(_))
        }),
        ("legacy.tar.gz", Misbehaviour::CutHalfway, |e| {
            matches!(e, GhError::Unreadable { .. })
        }),
        ("legacy.tar.gz", Misbehaviour::Drop, |e| {
            matches!(e, GhError::Unreachable { .. })
        }),
        ("legacy.tar.gz", Misbehaviour::Huge(2 << 20), |e| {
            matches!(e, GhError::TooLarge { .. })
        }),
        ("legacy.tar.gz", Misbehaviour::answer(&Value::Null), |_| {
            true
        }),
    ] {
        github.behave();
        github.misbehave(part, Times::Always, how.clone());
        let outcome = gh
            .download(&archive_at("v1"), &place.file(), ByteLimit(1 << 20))
            .await;
        let Err(error) = outcome else {
            // Success with other bytes is for whoever unpacks them.
            assert!(matches!(how, Misbehaviour::Raw { status: 200, .. }));
            continue;
        };
        assert!(is_expected(&error), "{part} {how:?}: {error:?}");
        assert!(place.is_empty(), "{part} {how:?}");
    }
}

#[tokio::test]
async fn a_limited_download_learns_when_the_limit_ends() {
    let github = widget();
    let place = Place::new();
    github.misbehave(
        "/tarball/",
        Times::Always,
        Misbehaviour::primary_limit(1_900_000_000),
    );
    let document =
        serde_json::json!({"resources": {"core": {"remaining": 0, "reset": 1_900_000_123}}});
    github.misbehave(
        "/rate_limit",
        Times::Always,
        Misbehaviour::answer(&document),
    );
    let error = gh(&github)
        .download(&archive_at("v1"), &place.file(), ByteLimit(1 << 20))
        .await
        .unwrap_err();
    let at = Some(Timestamp::from_unix(Duration::from_secs(1_900_000_123)));
    assert_eq!(error, GhError::RateLimited(LimitReset { at, after: None }));
    assert!(place.is_empty());
}

#[tokio::test]
async fn existing_download_target_is_kept() {
    let github = widget();
    let place = Place::new();
    let other = place.0.path().join("other");
    symlink(&other, place.file()).unwrap();
    let error = gh(&github)
        .download(&archive_at("v1"), &place.file(), ByteLimit(1 << 20))
        .await
        .unwrap_err();
    assert!(matches!(error, GhError::NotRun { .. }), "{error:?}");
    assert!(place.file().is_symlink() && !other.exists());
    assert!(github.requests().is_empty());
}

/// A `gh` of our own that does this.
fn played(directory: &Path, script: &str) -> Gh {
    let program = directory.join("gh");
    std::fs::write(&program, format!("#!/bin/sh\n{script}")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", directory.display());
    Gh::new(
        sandbox(),
        &Environment::from_pairs([("PATH", path.as_str()), ("HOME", "/nonexistent")], "/"),
    )
}

#[tokio::test]
async fn refusal_without_headers_uses_gh_message() {
    let place = tempfile::tempdir().unwrap();
    let refused = async |script: &str| {
        played(place.path(), script)
            .get(&repository())
            .await
            .unwrap_err()
    };
    let missing =
        "echo '{\"message\":\"Not Found\"}'; echo 'gh: Not Found (HTTP 404)' >&2; exit 1\n";
    let error = refused(missing).await;
    assert!(matches!(error, GhError::NotFound { .. }), "{error:?}");
    let error = refused("echo 'gh: HTTP 502' >&2; exit 1\n").await;
    assert!(
        matches!(error, GhError::Server { status: 502, .. }),
        "{error:?}"
    );
    let error = refused("echo 'error connecting to api.github.com' >&2; exit 1\n").await;
    assert!(matches!(error, GhError::Unreachable { .. }), "{error:?}");
}
