//! Searches through the real `gh` with a fake GitHub: pages, releases, limits, the cache.

use std::path::Path;
use std::time::Duration;

use crucible_crawl::{
    ArtifactType, CheckedArtifact, CrawlSession, GitHub, MaxResults, SearchError, SearchOptions,
    SearchV1, ShortHash, UseCache, search,
};
use crucible_host::clock::PinnedClock;
use crucible_model::Timestamp;
use crucible_testkit::{FakeGitHub, FakeRepo, Misbehaviour, Times, made_up_token};

use super::common::{Home, begin, now, tree};
use crate::ears::Ears;
use crate::fake_github::{environment, gh};

/// The search of one command.
struct Asked<'a> {
    github: &'a FakeGitHub,
    query: &'a str,
    max_results: MaxResults,
    cache: UseCache,
    now: Timestamp,
    ears: Ears,
}

impl<'a> Asked<'a> {
    fn from_github(github: &'a FakeGitHub) -> Self {
        Self {
            github,
            query: "widget",
            max_results: MaxResults::default(),
            cache: UseCache::Yes,
            now: now(),
            ears: Ears::default(),
        }
    }

    async fn by(&self, session: &mut CrawlSession) -> Result<SearchV1, SearchError> {
        let gh = gh(&environment(self.github, Path::new("/"), &[]));
        let clock = PinnedClock(self.now);
        let github = GitHub::new(gh, &clock, &self.ears);
        let options = SearchOptions {
            max_results: self.max_results,
            cache: self.cache,
        };
        search(&github, session, self.query, &options, self.now, &self.ears).await
    }

    /// In a new session.
    async fn within(&self, home: &Path) -> SearchV1 {
        let found = self.by(&mut begin(home)).await.unwrap();
        CheckedArtifact::new(ArtifactType::Search, &found).unwrap();
        found
    }
}

fn names(found: &SearchV1) -> Vec<&str> {
    found
        .results
        .iter()
        .map(|item| item.full_name.as_str())
        .collect()
}

/// A GitHub with this many repositories that match `widget`.
fn widgets(many: u64) -> FakeGitHub {
    FakeGitHub::start(
        (0..many)
            .map(|number| FakeRepo::new(&format!("acme/widget-{number:02}")).stars(1000 - number)),
    )
}

/// The hourly limit, exhausted for another hour.
fn exhausted() -> Misbehaviour {
    Misbehaviour::primary_limit(now().unix_millis() / 1000 + 3600)
}

fn later(seconds: u64) -> Timestamp {
    let since_epoch = u64::try_from(now().unix_millis()).unwrap() + seconds * 1000;
    Timestamp::from_unix(Duration::from_millis(since_epoch))
}

#[tokio::test]
async fn search_returns_ranked_results() {
    let home = Home::new();
    let github = FakeGitHub::start([
        FakeRepo::new("small/widget")
            .stars(3)
            .pushed_at("2026-02-20T00:00:00Z"),
        FakeRepo::new("large/widget-tools")
            .stars(90_000)
            .of_organization()
            .pushed_at("2026-02-20T00:00:00Z"),
        FakeRepo::new("acme/widget")
            .stars(500)
            .of_organization()
            .language("Rust")
            .release("v1", &[("Cargo.toml", "")])
            .pushed_at("2026-02-20T00:00:00Z"),
        FakeRepo::new("old/widget")
            .stars(500)
            .archived()
            .fork()
            .pushed_at("2020-01-01T00:00:00Z"),
        FakeRepo::new("other/gadget").stars(100_000),
    ]);
    let found = Asked::from_github(&github).within(home.dir.path()).await;
    assert_eq!(
        names(&found),
        [
            "acme/widget",
            "large/widget-tools",
            "small/widget",
            "old/widget"
        ]
    );
    assert_eq!(
        (found.result_count, found.rate_limited, found.cached),
        (4, false, false)
    );
    assert_eq!((found.query.as_str(), found.queried_at), ("widget", now()));
    let releases: Vec<bool> = found.results.iter().map(|item| item.has_releases).collect();
    assert_eq!(releases, [true, false, false, false]);
    assert_eq!(
        found
            .results
            .iter()
            .map(|item| item.rank)
            .collect::<Vec<_>>(),
        [1, 2, 3, 4]
    );
}

#[tokio::test]
async fn page_count_follows_wanted_results() {
    let github = widgets(75);
    for (expected, pages, results) in [(10, 1, 10), (30, 1, 30), (31, 2, 31), (1000, 3, 75)] {
        let before = (github.count("/search/"), github.count("/releases"));
        let request_counts = Asked {
            max_results: MaxResults::for_library(expected),
            ..Asked::from_github(&github)
        };
        let found = request_counts.by(&mut CrawlSession::dry()).await.unwrap();
        assert_eq!(
            (found.result_count, found.results.len()),
            (results, results as usize),
            "{expected}"
        );
        assert_eq!(github.count("/search/") - before.0, pages, "{expected}");
        assert_eq!(
            github.count("/releases") - before.1,
            75.min(pages * 30),
            "each repository is asked about once"
        );
        assert_eq!(names(&found)[..2], ["acme/widget-00", "acme/widget-01"]);
    }
    assert_eq!(MaxResults::for_library(1000).get(), 90);
    assert_eq!(
        (
            MaxResults::for_command_line(31).get(),
            MaxResults::for_command_line(0).get()
        ),
        (30, 1)
    );
}

#[tokio::test]
async fn rate_limit_between_pages_gives_partial_results() {
    let (home, github) = (Home::new(), widgets(40));
    github.misbehave("?page=2&", Times::Always, exhausted());
    let request_counts = Asked {
        max_results: MaxResults::for_library(60),
        ..Asked::from_github(&github)
    };
    let found = request_counts.within(home.dir.path()).await;
    assert_eq!(
        (found.result_count, found.rate_limited, found.cached),
        (30, true, false)
    );
    assert!(
        request_counts
            .ears
            .heard_of("warning: ")
            .iter()
            .any(|message| message.contains("rate limit")),
        "{:?}",
        request_counts.ears.heard_of("warning: ")
    );
    // Available answers are not requested again; missing ones are.
    github.behave();
    let (searches, releases) = (github.count("/search/"), github.count("/releases"));
    let found = request_counts.within(home.dir.path()).await;
    assert_eq!(
        (found.result_count, found.rate_limited, found.cached),
        (40, false, false)
    );
    assert_eq!(
        (
            github.count("/search/") - searches,
            github.count("/releases") - releases
        ),
        (1, 10)
    );
}

#[tokio::test]
async fn rate_limit_at_start_gives_empty_result() {
    let (home, github) = (Home::new(), widgets(3));
    github.misbehave("/search/", Times::Always, exhausted());
    let request_counts = Asked::from_github(&github);
    let found = request_counts.within(home.dir.path()).await;
    assert_eq!(
        (found.result_count, found.rate_limited, found.cached),
        (0, true, false)
    );
    assert!(found.results.is_empty());
    github.behave();
    assert_eq!(
        request_counts.within(home.dir.path()).await.result_count,
        3,
        "nothing of that was kept"
    );
}

#[tokio::test]
async fn rate_limited_releases_are_not_cached() {
    let (home, github) = (Home::new(), widgets(30));
    github.misbehave("/releases", Times::Always, exhausted());
    let request_counts = Asked {
        max_results: MaxResults::for_library(60),
        ..Asked::from_github(&github)
    };
    let found = request_counts.within(home.dir.path()).await;
    assert_eq!((found.result_count, found.rate_limited), (30, true));
    assert!(found.results.iter().all(|item| !item.has_releases));
    // Eight requests may be in flight when the first answer arrives; no others follow, and no other page.
    assert!(
        github.count("/releases") <= 16,
        "{} were asked",
        github.count("/releases")
    );
    assert_eq!(github.count("/search/"), 1);
    github.behave();
    let found = request_counts.within(home.dir.path()).await;
    assert_eq!((found.rate_limited, found.cached), (false, false));
}

#[tokio::test]
async fn repeated_search_uses_cache() {
    let (home, github) = (Home::new(), widgets(3));
    let first = Asked::from_github(&github).within(home.dir.path()).await;
    let request_count = github.requests().len();
    for seconds in [0, 1, 899] {
        let second = Asked {
            now: later(seconds),
            ..Asked::from_github(&github)
        };
        let second = second.within(home.dir.path()).await;
        assert!(second.cached && !second.rate_limited, "{seconds}");
        assert_eq!(second.results, first.results);
    }
    assert_eq!(
        github.requests().len(),
        request_count,
        "GitHub was not asked at all"
    );
    // Another query or another number of results is another search.
    let other = Asked {
        query: "acme",
        ..Asked::from_github(&github)
    };
    assert!(!other.within(home.dir.path()).await.cached);
    let other = Asked {
        max_results: MaxResults::for_command_line(11),
        ..Asked::from_github(&github)
    };
    assert!(!other.within(home.dir.path()).await.cached);
}

#[tokio::test]
async fn expired_cache_is_refreshed_and_cleared() {
    let (home, github) = (Home::new(), widgets(1));
    Asked::from_github(&github).within(home.dir.path()).await;
    github.put(FakeRepo::new("acme/widget-new"));
    let second_request = Asked {
        now: later(900),
        ..Asked::from_github(&github)
    };
    let found = second_request.within(home.dir.path()).await;
    assert_eq!((found.result_count, found.cached), (2, false));
    assert_eq!(github.count("/search/"), 2);
    let mut ledger = home.ledger();
    assert_eq!(
        ledger.prune_crawl_cache(later(900)).unwrap(),
        0,
        "it was cleared out already"
    );
    assert_eq!(ledger.prune_crawl_cache(later(9000)).unwrap(), 1);
}

#[tokio::test]
async fn incomplete_page_is_not_cached() {
    let (home, github) = (Home::new(), widgets(3));
    github.search_is_incomplete();
    let request_counts = Asked::from_github(&github);
    assert_eq!(request_counts.within(home.dir.path()).await.result_count, 3);
    assert!(
        request_counts.ears.heard_of("warning: ")[0].contains("incomplete"),
        "{:?}",
        request_counts.ears.heard_of("warning: ")
    );
    assert!(
        !request_counts.within(home.dir.path()).await.cached,
        "what was found in a part is nothing to remember"
    );
}

#[tokio::test]
async fn search_without_cache_still_stores_pages() {
    let (home, github) = (Home::new(), widgets(1));
    Asked::from_github(&github).within(home.dir.path()).await;
    github.put(FakeRepo::new("acme/widget-new"));
    let without = Asked {
        cache: UseCache::No,
        ..Asked::from_github(&github)
    };
    let found = without.within(home.dir.path()).await;
    assert_eq!((found.result_count, found.cached), (2, false));
    let found = Asked::from_github(&github).within(home.dir.path()).await;
    assert_eq!((found.result_count, found.cached), (2, true));
}

#[tokio::test]
async fn dry_search_neither_reads_nor_writes_cache() {
    let (home, github) = (Home::new(), widgets(1));
    for _ in 0..2 {
        let found = Asked::from_github(&github)
            .by(&mut CrawlSession::dry())
            .await
            .unwrap();
        assert!(!found.cached);
    }
    assert_eq!(github.count("/search/"), 2);
    assert_eq!(tree(home.dir.path()), []);
}

#[tokio::test]
async fn invalid_cache_entry_is_ignored() {
    let (home, github) = (Home::new(), widgets(2));
    Asked::from_github(&github).within(home.dir.path()).await;
    let key = ShortHash::compute(b"widget101");
    let good = home
        .ledger()
        .crawl_cached(key.as_str(), now())
        .unwrap()
        .unwrap();
    let hostile = good.replace("acme/widget-00", "../../etc/passwd");
    assert_ne!(good, hostile);
    for bad in [
        "",
        "null",
        "{\"candidates\":[]}",
        &good[..good.len() - 2],
        &hostile,
    ] {
        let fresh = Duration::from_secs(900);
        home.ledger()
            .cache_crawl(key.as_str(), bad, now(), fresh)
            .unwrap();
        let found = Asked::from_github(&github).within(home.dir.path()).await;
        assert_eq!((found.result_count, found.cached), (2, false), "{bad:.40}");
        assert_eq!(
            home.ledger()
                .crawl_cached(key.as_str(), now())
                .unwrap()
                .unwrap(),
            good,
            "it was mended"
        );
    }
}

#[tokio::test]
async fn later_search_error_is_only_warning() {
    let (home, github) = (Home::new(), widgets(31));
    github.misbehave("?page=1&", Times::Once, Misbehaviour::status(500));
    let request_counts = Asked {
        max_results: MaxResults::for_library(60),
        ..Asked::from_github(&github)
    };
    let error = request_counts
        .by(&mut begin(home.dir.path()))
        .await
        .unwrap_err();
    assert!(matches!(error, SearchError::GitHub(_)), "{error}");
    github.misbehave("?page=2&", Times::Once, Misbehaviour::status(500));
    let found = request_counts.within(home.dir.path()).await;
    assert_eq!((found.result_count, found.rate_limited), (30, false));
    let warnings = request_counts.ears.heard_of("warning: ");
    assert!(
        warnings
            .iter()
            .any(|message| message.contains("page 2 is missing")),
        "{warnings:?}"
    );
}

#[tokio::test]
async fn failed_release_query_prevents_caching() {
    let (home, github) = (Home::new(), widgets(3));
    github.misbehave(
        "/acme/widget-01/releases",
        Times::Always,
        Misbehaviour::status(500),
    );
    let request_counts = Asked::from_github(&github);
    let found = request_counts.within(home.dir.path()).await;
    assert_eq!((found.result_count, found.rate_limited), (3, false));
    let warnings = request_counts.ears.heard_of("warning: ");
    assert!(
        warnings.iter().any(|message| message.contains("releases")),
        "{warnings:?}"
    );
    github.behave();
    assert!(!request_counts.within(home.dir.path()).await.cached);
    assert!(request_counts.within(home.dir.path()).await.cached);
}

#[tokio::test]
async fn search_result_ignores_answer_order() {
    let all: Vec<String> = (0..12)
        .map(|number| format!("acme/widget-{number:02}"))
        .collect();
    let github = FakeGitHub::start(all.iter().enumerate().map(|(number, name)| {
        let repo = FakeRepo::new(name).stars(100);
        if number % 3 == 0 {
            repo.release("v1", &[("a", "")])
        } else {
            repo
        }
    }));
    let mut expected = None;
    for shift in [0, 5, 7] {
        let mut order: Vec<&str> = all.iter().map(String::as_str).collect();
        order.rotate_left(shift);
        order.extend_from_slice(&[&all[3], &all[shift]]);
        github.behave();
        github.search_finds(&order);
        for slow in [shift, 11 - shift] {
            let pause = Misbehaviour::Late(Duration::from_millis(300));
            github.misbehave(&format!("/acme/widget-{slow:02}/"), Times::Once, pause);
        }
        let request_counts = Asked {
            max_results: MaxResults::for_command_line(30),
            ..Asked::from_github(&github)
        };
        let found = request_counts.by(&mut CrawlSession::dry()).await.unwrap();
        let bytes = CheckedArtifact::new(ArtifactType::Search, &found)
            .unwrap()
            .json()
            .to_owned();
        assert_eq!(found.result_count, 12);
        assert_eq!(*expected.get_or_insert(bytes.clone()), bytes);
    }
}

#[tokio::test]
async fn invalid_query_is_refused_unsent() {
    let github = widgets(1);
    let long = "ü".repeat(257);
    for (query, why) in [
        ("", "is empty"),
        (" \u{2003} ", "is empty"),
        (&long, "is too long"),
        ("a\nb", "invisible"),
        ("a\u{0}", "invisible"),
        ("\u{202e}evil", "invisible"),
    ] {
        let error = Asked {
            query,
            ..Asked::from_github(&github)
        }
        .by(&mut CrawlSession::dry())
        .await
        .unwrap_err();
        assert!(
            matches!(error, SearchError::Query { .. }) && error.to_string().contains(why),
            "{error}"
        );
    }
    let query = made_up_token();
    let error = Asked {
        query: &query,
        ..Asked::from_github(&github)
    }
    .by(&mut CrawlSession::dry())
    .await
    .unwrap_err();
    assert!(
        matches!(error, SearchError::Secret { .. }) && !error.to_string().contains(&query),
        "{error}"
    );
    assert!(github.requests().is_empty());
    for query in [
        "ü".repeat(256).as_str(),
        "-h",
        "--help",
        "@/etc/passwd",
        "language:rust \"a b\" & ; $(x)",
    ] {
        Asked {
            query,
            ..Asked::from_github(&github)
        }
        .by(&mut CrawlSession::dry())
        .await
        .unwrap();
        assert_eq!(github.requests().last().unwrap().value("q"), Some(query));
    }
}

#[tokio::test]
async fn searches_at_once_share_one_cache() {
    let (home, github) = (Home::new(), widgets(2));
    let ask = || async { Asked::from_github(&github).within(home.dir.path()).await };
    let (one, other, third) = tokio::join!(ask(), ask(), ask());
    assert_eq!(
        (&one.results, &one.results),
        (&other.results, &third.results)
    );
    assert!(ask().await.cached);
    assert_eq!(home.ledger().verify(&[]).unwrap().findings(), []);
}
