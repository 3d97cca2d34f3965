//! Caches one page of a search.
//!
//! The key is the short hash of the concatenated query, number of wanted results and page number.
//! Different searches can share a key (`x` with 11 results and `x1` with 1), so a page
//! stores its search as well. Cached pages are validated like GitHub's answers: a page that differs from
//! its canonical form is ignored.

use std::time::Duration;

use crucible_model::Timestamp;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::artifact::ShortHash;
use crate::github::{FoundRepo, PAGE};
use crate::observer::CrawlObserver;
use crate::session::CrawlSession;
use crate::target::RepoName;

/// How long a page is valid.
const FRESH: Duration = Duration::from_secs(900);
/// The largest page that is read, in bytes.
const MAX_CONTENT: usize = 4 << 20;

const SCHEMA: &str = "crucible-crawl-cache-v1";

/// The identity of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageKey<'q> {
    pub(super) query: &'q str,
    pub(super) max_results: u32,
    /// The page number, from 1.
    pub(super) page: u32,
}

/// A page in the cache.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CachedPage {
    schema_version: String,
    query: String,
    max_results: u32,
    page: u32,
    candidates: Vec<FoundRepo>,
}

impl PageKey<'_> {
    /// The key of the page.
    fn key(self) -> String {
        let text = format!("{}{}{}", self.query, self.max_results, self.page);
        ShortHash::compute(text.as_bytes()).to_string()
    }

    /// The page, if the cache has a valid one. A cache error counts as a missing page.
    pub(super) fn read(
        self,
        session: &CrawlSession,
        now: Timestamp,
        observer: &dyn CrawlObserver,
    ) -> Option<Vec<FoundRepo>> {
        match session.cached(&self.key(), now) {
            Ok(content) => self.parse(&content?),
            Err(error) => {
                observer.warning(&format!("cannot read the search cache: {error}"));
                None
            }
        }
    }

    /// Stores a complete page.
    pub(super) fn write(
        self,
        session: &mut CrawlSession,
        candidates: &[FoundRepo],
        now: Timestamp,
        observer: &dyn CrawlObserver,
    ) {
        let page = CachedPage {
            schema_version: SCHEMA.to_owned(),
            query: self.query.to_owned(),
            max_results: self.max_results,
            page: self.page,
            candidates: candidates.to_vec(),
        };
        let stored = serde_json::to_string(&page)
            .map_err(|error| error.to_string())
            .and_then(|content| {
                session
                    .cache(&self.key(), &content, now, FRESH)
                    .map_err(|error| error.to_string())
            });
        if let Err(why) = stored {
            observer.warning(&format!("cannot write the search cache: {why}"));
        }
    }

    /// The candidates, if this is the requested page, complete and valid.
    fn parse(self, content: &str) -> Option<Vec<FoundRepo>> {
        if content.len() > MAX_CONTENT {
            return None;
        }
        let page: CachedPage = serde_json::from_str(content).ok()?;
        let is_this = page.schema_version == SCHEMA
            && page.query == self.query
            && page.max_results == self.max_results
            && page.page == self.page;
        let is_good =
            page.candidates.len() <= PAGE as usize && page.candidates.iter().all(is_possible);
        (is_this && is_good).then_some(page.candidates)
    }
}

fn is_possible(candidate: &FoundRepo) -> bool {
    RepoName::parse(&candidate.full_name)
        .is_ok_and(|repo| repo.full_name() == candidate.full_name && repo.name() == candidate.name)
        && Url::parse(&candidate.url).is_ok_and(|url| url.scheme() == "https")
        && candidate.has_releases.is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn page() -> PageKey<'static> {
        PageKey {
            query: "ripgrep",
            max_results: 10,
            page: 1,
        }
    }

    fn good() -> Value {
        json!({
            "schema_version": SCHEMA, "query": "ripgrep", "max_results": 10, "page": 1,
            "candidates": [{
                "full_name": "owner/ripgrep", "name": "ripgrep", "description": "", "url": "https://github.com/owner/ripgrep",
                "stars": 3, "pushed_at": "2026-01-31T09:30:00Z", "owner_type": "User", "archived": false, "fork": false,
                "default_branch": "main", "language": null, "topics": [], "has_releases": false
            }]
        })
    }

    #[test]
    fn cache_key_matches_the_seed() {
        // printf 'ripgrep101' | sha256sum | cut -c1-12
        assert_eq!(page().key(), "6da6abcd4ee4");
        let (one, other) = (
            PageKey {
                query: "x",
                max_results: 11,
                page: 1,
            },
            PageKey {
                query: "x1",
                max_results: 1,
                page: 1,
            },
        );
        assert_eq!(
            one.key(),
            other.key(),
            "which is why a page says what it answers"
        );
    }

    #[test]
    fn foreign_cache_page_is_ignored() {
        let good = good();
        assert_eq!(page().parse(&good.to_string()).unwrap().len(), 1);
        let changes: &[(&str, Value)] = &[
            ("/schema_version", json!("crucible-crawl-cache-v2")),
            ("/query", json!("other")),
            ("/max_results", json!(11)),
            ("/page", json!(2)),
            ("/page", json!("1")),
            ("/candidates", json!(null)),
            (
                "/candidates",
                json!(vec![good["candidates"][0].clone(); 31]),
            ),
            ("/candidates/0/full_name", json!("../ripgrep")),
            ("/candidates/0/full_name", json!("ripgrep")),
            (
                "/candidates/0/full_name",
                json!("https://github.com/owner/ripgrep"),
            ),
            ("/candidates/0/name", json!("grep")),
            ("/candidates/0/url", json!("javascript:alert(1)")),
            ("/candidates/0/url", json!("nowhere")),
            ("/candidates/0/stars", json!(-1)),
            ("/candidates/0/pushed_at", json!("yesterday")),
            ("/candidates/0/owner_type", json!("Robot")),
            ("/candidates/0/has_releases", json!(null)),
        ];
        for (place, value) in changes {
            let mut bad = good.clone();
            *bad.pointer_mut(place).unwrap() = value.clone();
            assert_eq!(page().parse(&bad.to_string()), None, "{place} {value}");
        }
        let mut more = good.clone();
        more["more"] = json!(1);
        let huge = format!("{good}{}", " ".repeat(MAX_CONTENT));
        for bad in [
            "",
            "null",
            "[]",
            "{",
            "\u{0}",
            &"[".repeat(100_000),
            &more.to_string(),
            &huge,
        ] {
            assert_eq!(page().parse(bad), None, "{:.20}", bad);
        }
    }
}
