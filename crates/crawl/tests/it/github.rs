//! The GitHub client: the real `gh` with a fake GitHub.
#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test fails the test that calls it"
)]

use std::path::Path;
use std::time::Duration;

use crucible_crawl::{GitHub, GitHubError, OwnerType, RepoName};
use crucible_host::clock::PinnedClock;
use crucible_model::Timestamp;
use crucible_repo::GhError;
use crucible_testkit::{
    FakeGitHub, FakeRepo, Misbehaviour, Times, fake_sha, made_up_token, tarball,
};
use serde_json::{Value, json};

use crate::ears::Ears;
use crate::fake_github::{environment, gh};

const NOW: i64 = 1_700_000_000;

struct Setup {
    fake: FakeGitHub,
    ears: Ears,
    clock: PinnedClock,
}

impl Setup {
    fn with(repos: impl IntoIterator<Item = FakeRepo>) -> Self {
        let clock = PinnedClock(Timestamp::from_unix(Duration::from_secs(
            NOW.unsigned_abs(),
        )));
        Self {
            fake: FakeGitHub::start(repos),
            ears: Ears::default(),
            clock,
        }
    }

    fn github(&self) -> GitHub<'_> {
        GitHub::new(
            gh(&environment(&self.fake, Path::new("/"), &[])),
            &self.clock,
            &self.ears,
        )
    }

    fn warnings(&self) -> Vec<String> {
        self.ears.heard_of("warning: ")
    }

    /// The seconds of each tick of a wait.
    fn waits(&self) -> Vec<u64> {
        let seconds = |message: &String| {
            let (seconds, why) = message.split_once(": ").unwrap();
            assert!(why.contains("rate limit"), "{why}");
            seconds.parse().unwrap()
        };
        self.ears.heard_of("waiting ").iter().map(seconds).collect()
    }
}

/// A real answer of GitHub.
fn answer(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Misbehaviour {
    let headers = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    Misbehaviour::Raw {
        status,
        headers,
        body: body.to_vec(),
    }
}

fn name(text: &str) -> RepoName {
    RepoName::parse(text).unwrap()
}

fn widget() -> FakeRepo {
    FakeRepo::new("acme/widget")
}

#[tokio::test]
async fn search_page_is_parsed() {
    let setup = Setup::with([
        widget()
            .stars(5)
            .topics(&["cargo", "cli"])
            .language("Rust")
            .of_organization()
            .description("Turns\n it."),
        FakeRepo::new("other/widget-rs")
            .stars(7)
            .archived()
            .fork()
            .default_branch("trunk"),
        FakeRepo::new("nobody/else"),
    ]);
    let found = setup
        .github()
        .search_page("Widget", 1)
        .await
        .unwrap()
        .candidates;
    let names: Vec<&str> = found
        .iter()
        .map(|candidate| candidate.full_name.as_str())
        .collect();
    assert_eq!(names, ["other/widget-rs", "acme/widget"]);
    assert_eq!(
        (
            found[0].archived,
            found[0].fork,
            found[0].default_branch.as_str()
        ),
        (true, true, "trunk")
    );
    assert_eq!(
        (found[1].stars, found[1].owner_type),
        (5, OwnerType::Organization)
    );
    assert_eq!(found[1].description, "Turns it.");
    assert_eq!(
        (
            found[1].topics.len(),
            found[1].language.as_deref(),
            found[1].has_releases
        ),
        (2, Some("Rust"), None)
    );
    assert_eq!(found[1].url, "https://github.com/acme/widget");
    let seen = setup.fake.requests();
    assert_eq!(seen.len(), 1);
    assert_eq!(
        (seen[0].value("per_page"), seen[0].value("page")),
        (Some("30"), Some("1"))
    );
    assert!(setup.warnings().is_empty());
}

#[tokio::test]
async fn real_search_answer_is_parsed() {
    let setup = Setup::with([]);
    let body = include_bytes!("../fixtures/gh-api-responses/search-ripgrep.json");
    setup
        .fake
        .misbehave("/search/", Times::Once, answer(200, &[], body));
    let page = setup.github().search_page("ripgrep", 1).await.unwrap();
    let found: Vec<(&str, u64, OwnerType)> = page
        .candidates
        .iter()
        .map(|one| (one.full_name.as_str(), one.stars, one.owner_type))
        .collect();
    assert_eq!(
        found,
        [
            ("BurntSushi/ripgrep", 52_000, OwnerType::User),
            ("phiresky/ripgrep-all", 9000, OwnerType::User),
            ("microsoft/vscode-ripgrep", 250, OwnerType::Organization),
        ]
    );
    assert!(
        page.is_whole && setup.warnings().is_empty(),
        "{:?}",
        setup.warnings()
    );
}

#[tokio::test]
async fn search_without_hits_is_empty() {
    let setup = Setup::with([widget()]);
    let body = include_bytes!("../fixtures/gh-api-responses/search-empty.json");
    setup
        .fake
        .misbehave("/search/", Times::Once, answer(200, &[], body));
    let page = setup.github().search_page("widget", 1).await.unwrap();
    assert!(page.candidates.is_empty() && page.is_whole && setup.warnings().is_empty());
}

#[tokio::test]
async fn rate_limit_is_recognised_without_header() {
    let setup = Setup::with([widget()]);
    let body = include_bytes!("../fixtures/gh-api-responses/search-rate-limited.json");
    let reset = (NOW + 3000).to_string();
    setup.fake.misbehave(
        "/search/",
        Times::Once,
        answer(403, &[("x-ratelimit-reset", &reset)], body),
    );
    let error = setup.github().search_page("widget", 1).await.unwrap_err();
    assert_eq!(
        error,
        GitHubError::RateLimited {
            reset_in: Some(Duration::from_secs(3000))
        }
    );
}

#[tokio::test]
async fn pages_follow_each_other() {
    let repos =
        (0..65).map(|number| FakeRepo::new(&format!("many/lib-{number:02}")).stars(100 - number));
    let setup = Setup::with(repos);
    let github = setup.github();
    let mut counts = Vec::new();
    for page in 1..=4 {
        counts.push(
            github
                .search_page("lib", page)
                .await
                .unwrap()
                .candidates
                .len(),
        );
    }
    assert_eq!(counts, [30, 30, 5, 0]);
}

#[tokio::test]
async fn invalid_item_is_dropped_with_warning() {
    let lies: [(&str, Value); 8] = [
        ("full_name", json!("../../etc/passwd")),
        ("full_name", json!("a\u{1b}[2J/b")),
        ("html_url", json!("https://evil.example/a/b")),
        ("stargazers_count", json!(-5)),
        ("pushed_at", json!("soon")),
        ("owner", Value::Null),
        ("default_branch", json!("-x")),
        ("archived", json!("no")),
    ];
    let count = lies.len();
    let liars = lies
        .into_iter()
        .enumerate()
        .map(|(number, (field, value))| {
            FakeRepo::new(&format!("liar/lib-{number}"))
                .stars(1000)
                .lying(field, value)
        });
    let good = [
        FakeRepo::new("good/lib").stars(1),
        FakeRepo::new("new/lib")
            .stars(2)
            .lying("pushed_at", Value::Null),
    ];
    let setup = Setup::with(liars.chain(good));
    let found = setup
        .github()
        .search_page("lib", 1)
        .await
        .unwrap()
        .candidates;
    let names: Vec<&str> = found
        .iter()
        .map(|candidate| candidate.full_name.as_str())
        .collect();
    assert_eq!(names, ["new/lib", "good/lib"]);
    let warnings = setup.warnings();
    assert_eq!(warnings.len(), count, "{warnings:?}");
    assert!(
        warnings.iter().all(|warning| !warning.contains('\u{1b}')),
        "{warnings:?}"
    );
}

#[tokio::test]
async fn a_search_that_github_cut_short_is_reported() {
    let setup = Setup::with([widget()]);
    setup.fake.search_is_incomplete();
    let page = setup.github().search_page("widget", 1).await.unwrap();
    assert_eq!((page.candidates.len(), page.is_whole), (1, false));
    assert!(setup.warnings()[0].contains("incomplete"));
}

#[tokio::test]
async fn answers_of_another_shape_are_errors() {
    let setup = Setup::with([widget()]);
    let github = setup.github();
    for body in [
        json!({"items": {}}),
        json!([]),
        json!(null),
        json!({"total_count": 3}),
    ] {
        setup.fake.behave();
        setup
            .fake
            .misbehave("/search/", Times::Always, Misbehaviour::answer(&body));
        let error = github.search_page("widget", 1).await.unwrap_err();
        assert!(
            matches!(error, GitHubError::Odd { .. }),
            "{body}: {error:?}"
        );
    }
    for how in [
        Misbehaviour::BadJson,
        Misbehaviour::EndHalfway,
        Misbehaviour::CutHalfway,
    ] {
        setup.fake.behave();
        setup.fake.misbehave("/search/", Times::Always, how);
        let error = github.search_page("widget", 1).await.unwrap_err();
        assert!(
            matches!(error, GitHubError::Gh(GhError::Unreadable { .. })),
            "{error:?}"
        );
    }
    for sha in ["", "main", "ABCDEF", "-x"] {
        setup.fake.behave();
        setup.fake.misbehave(
            "/commits/",
            Times::Always,
            Misbehaviour::answer(&json!({"sha": sha})),
        );
        let error = github
            .commit(&name("acme/widget"), "main")
            .await
            .unwrap_err();
        assert!(matches!(error, GitHubError::Odd { .. }), "{sha}: {error:?}");
    }
    for tag in [
        json!("--upload-pack=x"),
        json!("a b"),
        json!(""),
        Value::Null,
    ] {
        setup.fake.behave();
        setup.fake.misbehave(
            "/latest",
            Times::Always,
            Misbehaviour::answer(&json!({"tag_name": tag})),
        );
        let error = github
            .latest_release(&name("acme/widget"))
            .await
            .unwrap_err();
        assert!(matches!(error, GitHubError::Odd { .. }), "{tag}: {error:?}");
    }
}

#[tokio::test]
async fn releases_commits_and_archives_are_fetched() {
    let files = [("Cargo.toml", "[package]")];
    let repo = widget()
        .release("v1.0", &files)
        .release("rel/2", &files)
        .preview("v3-rc");
    let setup = Setup::with([
        repo,
        FakeRepo::new("acme/bare"),
        FakeRepo::new("acme/early").preview("v0"),
    ]);
    let github = setup.github();
    let widget = name("acme/widget");
    assert_eq!(
        github.latest_release(&widget).await.unwrap().as_deref(),
        Some("rel/2")
    );
    assert_eq!(
        github.latest_release(&name("acme/bare")).await.unwrap(),
        None
    );
    assert_eq!(
        github.latest_release(&name("acme/early")).await.unwrap(),
        None
    );
    assert!(github.has_releases("acme/widget").await.unwrap());
    assert!(github.has_releases("acme/early").await.unwrap());
    assert!(!github.has_releases("acme/bare").await.unwrap());
    let sha = fake_sha("acme/widget", "rel/2");
    assert_eq!(github.commit(&widget, "rel/2").await.unwrap(), sha);
    assert_eq!(github.commit(&widget, &sha).await.unwrap(), sha);
    let place = tempfile::tempdir().unwrap();
    let to = place.path().join("a.tar.gz");
    github.tarball(&widget, "rel/2", &to).await.unwrap();
    assert_eq!(
        std::fs::read(&to).unwrap(),
        tarball("acme", "widget", &sha, files)
    );
    assert_eq!(
        github.repository(&widget).await.unwrap().full_name,
        "acme/widget"
    );
}

#[tokio::test]
async fn missing_things_are_not_found() {
    let setup = Setup::with([widget()]);
    let github = setup.github();
    let missing_repo_name = name("acme/gone");
    let is_missing = |error: GitHubError, word: &str| {
        assert!(matches!(error, GitHubError::NotFound { .. }), "{error:?}");
        let text = error.to_string();
        assert!(
            text.contains(word) && text.contains("check the spelling") && text.contains("private"),
            "{text}"
        );
    };
    is_missing(
        github.repository(&missing_repo_name).await.unwrap_err(),
        "acme/gone",
    );
    assert_eq!(
        github.latest_release(&missing_repo_name).await.unwrap(),
        None
    );
    is_missing(
        github.has_releases("acme/gone").await.unwrap_err(),
        "acme/gone",
    );
    is_missing(
        github
            .commit(&name("acme/widget"), "no/such")
            .await
            .unwrap_err(),
        "\"no/such\"",
    );
    let to = Path::new("/nonexistent-directory/a");
    assert!(matches!(
        github.tarball(&missing_repo_name, "v1", to).await,
        Err(GitHubError::Gh(GhError::NotRun { .. }))
    ));
    let place = tempfile::tempdir().unwrap();
    is_missing(
        github
            .tarball(&missing_repo_name, "v1", &place.path().join("a"))
            .await
            .unwrap_err(),
        "archive",
    );
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    let unusual_error = github.has_releases("no-slash").await.unwrap_err();
    assert!(
        matches!(unusual_error, GitHubError::Odd { .. }),
        "{unusual_error:?}"
    );
}

#[tokio::test]
async fn short_rate_limit_is_awaited_once() {
    let setup = Setup::with([widget()]);
    let github = setup.github();
    setup.fake.misbehave(
        "/search/",
        Times::Once,
        Misbehaviour::primary_limit(NOW + 2),
    );
    assert_eq!(
        github
            .search_page("widget", 1)
            .await
            .unwrap()
            .candidates
            .len(),
        1
    );
    assert_eq!(setup.waits(), [3, 2, 1]);
    assert_eq!(setup.fake.count("/search/"), 2);
    // The wait of this command is used up.
    setup
        .fake
        .misbehave("/repos/", Times::Once, Misbehaviour::secondary_limit(1));
    let error = github.repository(&name("acme/widget")).await.unwrap_err();
    assert_eq!(
        error,
        GitHubError::RateLimited {
            reset_in: Some(Duration::from_secs(1))
        }
    );
    assert_eq!((setup.fake.count("/repos/"), setup.waits().len()), (1, 3));
}

#[tokio::test]
async fn persistent_rate_limit_is_tried_twice() {
    let setup = Setup::with([widget()]);
    setup
        .fake
        .misbehave("/search/", Times::Always, Misbehaviour::secondary_limit(0));
    let error = setup.github().search_page("widget", 1).await.unwrap_err();
    assert_eq!(
        error,
        GitHubError::RateLimited {
            reset_in: Some(Duration::ZERO)
        }
    );
    assert_eq!((setup.fake.count("/search/"), setup.waits()), (2, vec![1]));
}

#[tokio::test]
async fn distant_reset_is_reported_at_once() {
    let setup = Setup::with([widget()]);
    setup.fake.misbehave(
        "/search/",
        Times::Always,
        Misbehaviour::primary_limit(NOW + 3000),
    );
    let error = setup.github().search_page("widget", 1).await.unwrap_err();
    assert_eq!(
        error,
        GitHubError::RateLimited {
            reset_in: Some(Duration::from_secs(3000))
        }
    );
    assert!(error.to_string().contains("for 50 min more"), "{error}");
    assert_eq!((setup.fake.count("/search/"), setup.waits().len()), (1, 0));
}

#[tokio::test]
async fn concurrent_requests_share_one_wait() {
    let names = ["acme/a", "acme/b", "acme/c", "acme/d"];
    let setup = Setup::with(names.map(FakeRepo::new));
    for name in names {
        setup.fake.misbehave(
            &format!("{name}/releases"),
            Times::Once,
            Misbehaviour::secondary_limit(1),
        );
    }
    let github = setup.github();
    let [a, b, c, d] = names.map(|name| github.has_releases(name));
    let answers = tokio::join!(a, b, c, d);
    assert_eq!(answers, (Ok(false), Ok(false), Ok(false), Ok(false)));
    assert_eq!(setup.waits(), [2, 1]);
    assert_eq!(setup.fake.count("/releases"), 2 * names.len());
}

#[tokio::test]
async fn rate_limited_download_waits() {
    let setup = Setup::with([widget().release("v1", &[("a", "b")])]);
    setup.fake.misbehave(
        "/tarball/",
        Times::Once,
        Misbehaviour::primary_limit(NOW + 3000),
    );
    let document = json!({"resources": {"core": {"remaining": 0, "reset": NOW + 1}}});
    setup
        .fake
        .misbehave("/rate_limit", Times::Once, Misbehaviour::answer(&document));
    let place = tempfile::tempdir().unwrap();
    setup
        .github()
        .tarball(&name("acme/widget"), "v1", &place.path().join("a"))
        .await
        .unwrap();
    assert_eq!(
        (setup.fake.count("/tarball/"), setup.waits()),
        (2, vec![2, 1])
    );
}

#[tokio::test]
async fn refusal_texts_are_redacted() {
    let setup = Setup::with([widget()]);
    let github = setup.github();
    let secret = made_up_token();
    for status in [403, 422, 500, 401] {
        setup.fake.behave();
        let refusal = Misbehaviour::refusal(status, &format!("No {secret} for you"), &[]);
        setup.fake.misbehave("/repos/", Times::Always, refusal);
        let error = github.repository(&name("acme/widget")).await.unwrap_err();
        let text = error.to_string();
        assert!(
            matches!(error, GitHubError::Gh(_)) && text.contains("for you"),
            "{text}"
        );
        assert!(!text.contains("a1B2"), "{text}");
    }
    // Wherever the cut of a long message would split it.
    for before in [250, 270, 285, 295, 299] {
        setup.fake.behave();
        let refusal = Misbehaviour::refusal(500, &format!("{} {secret}", "x".repeat(before)), &[]);
        setup.fake.misbehave("/repos/", Times::Always, refusal);
        let text = github
            .repository(&name("acme/widget"))
            .await
            .unwrap_err()
            .to_string();
        assert!(
            !text.contains("ghp_") && text.chars().count() < 500,
            "{text}"
        );
    }
}
