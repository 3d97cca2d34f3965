//! Searches: pages from the cache or GitHub, ranked.
//!
//! Pages of 30 are requested one after the other, at most three, until there are enough results. GitHub's
//! list does not say whether a repository has releases, so each one is queried, a few at a time. The
//! results do not depend on which answer came first. A page is cached if GitHub completed the search and
//! answered every query about it.
//!
//! A rate limit ends the search: the available results are ranked, and the document says that it is
//! incomplete.

mod cache;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use crucible_model::{Timestamp, is_hidden};
use futures_util::{StreamExt, stream};

use crate::artifact::SearchV1;
use crate::github::{FoundRepo, GitHub, GitHubError, PAGE, SearchPage};
use crate::observer::CrawlObserver;
use crate::rank::rank;
use crate::session::{CrawlSession, secrets_in};

/// The most concurrent requests.
const AT_ONCE: usize = 8;

/// The number of wanted results, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxResults(u32);

impl MaxResults {
    /// The maximum on the command line.
    pub(crate) const MAX_COMMAND_LINE: u32 = 30;
    /// The maximum for users of the library: three pages.
    pub(crate) const MAX_LIBRARY: u32 = 90;

    /// This number, clamped to the range of the command line.
    #[must_use]
    pub fn for_command_line(requested: u32) -> Self {
        Self(requested.clamp(1, Self::MAX_COMMAND_LINE))
    }

    /// This number, clamped to the range of the library.
    #[must_use]
    pub fn for_library(requested: u32) -> Self {
        Self(requested.clamp(1, Self::MAX_LIBRARY))
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0
    }
}

impl Default for MaxResults {
    fn default() -> Self {
        Self(10)
    }
}

/// The options of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchOptions {
    /// The number of results.
    pub max_results: MaxResults,
    /// Whether to read the cache.
    pub cache: UseCache,
}

/// Whether to read the cache. Fetched pages are stored in both cases, except in a dry run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UseCache {
    /// Use pages that are at most 15 minutes old.
    Yes,
    /// Ignore it.
    No,
}

/// Why a search failed.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// A GitHub call failed.
    #[error(transparent)]
    GitHub(#[from] GitHubError),
    /// The query is invalid.
    #[error("the query {why}; write up to {} visible characters", MAX_QUERY)]
    Query {
        /// What is wrong with it.
        why: &'static str,
    },
    /// The query contains a secret, so nothing was sent.
    #[error(
        "the query holds a secret ({}), so it is not sent; remove it, and revoke the secret",
        rules.join(", ")
    )]
    Secret {
        /// The rules that matched.
        rules: Vec<String>,
    },
}

/// GitHub's limit of a query, in characters.
const MAX_QUERY: usize = 256;

/// Searches. A rate limit is not an error: the results so far, possibly none, are ranked and `rate_limited` is set. Another error
/// after some results is a warning.
///
/// # Errors
///
/// See [`SearchError`].
pub async fn search(
    github: &GitHub<'_>,
    session: &mut CrawlSession,
    query: &str,
    options: &SearchOptions,
    now: Timestamp,
    observer: &dyn CrawlObserver,
) -> Result<SearchV1, SearchError> {
    check_query(query)?;
    let requested = options.max_results.get();
    let (mut candidates, mut rate_limited, mut cached) = (Vec::new(), false, true);
    for number in 1..=requested.div_ceil(PAGE) {
        let page = cache::PageKey {
            query,
            max_results: requested,
            page: number,
        };
        let known = match options.cache {
            UseCache::Yes => page.read(session, now, observer),
            UseCache::No => None,
        };
        let found = match known {
            Some(found) => found,
            None => {
                cached = false;
                observer.progress(&format!("asking GitHub for {query:?}, page {number}"));
                let SearchPage {
                    candidates: mut found,
                    is_whole,
                } = match github.search_page(query, number).await {
                    Ok(page) => page,
                    Err(GitHubError::RateLimited { .. }) => {
                        rate_limited = true;
                        break;
                    }
                    Err(error) if candidates.is_empty() => return Err(error.into()),
                    Err(error) => {
                        observer.warning(&format!(
                            "page {number} is missing from the results: {error}"
                        ));
                        break;
                    }
                };
                let missing = ask_for_releases(github, &mut found, &candidates).await;
                match &missing {
                    None if is_whole => page.write(session, &found, now, observer),
                    None => {}
                    Some(GitHubError::RateLimited { .. }) => rate_limited = true,
                    Some(error) => observer.warning(&format!(
                        "cannot get the releases of every repository; the others are ranked as if they had \
                        none: {error}"
                    )),
                }
                found
            }
        };
        let is_end = found.is_empty() || rate_limited;
        candidates.extend(found);
        if is_end {
            break;
        }
    }
    if rate_limited {
        observer.warning("GitHub's rate limit is exhausted; the results are not complete");
    }
    let mut results = rank(&candidates, query, now);
    results.truncate(requested as usize);
    Ok(SearchV1 {
        schema: SearchV1::SCHEMA.to_owned(),
        query: query.to_owned(),
        queried_at: now,
        result_count: results.len() as u64,
        rate_limited,
        cached,
        results,
    })
}

fn check_query(query: &str) -> Result<(), SearchError> {
    let why = if query.trim().is_empty() {
        "is empty"
    } else if query.chars().count() > MAX_QUERY {
        "is too long"
    } else if query.chars().any(is_hidden) {
        "contains an invisible character"
    } else {
        let rules = secrets_in(query);
        return if rules.is_empty() {
            Ok(())
        } else {
            Err(SearchError::Secret { rules })
        };
    };
    Err(SearchError::Query { why })
}

/// Queries which of the `found` have releases, except those on an earlier page. Returns why some are
/// still unknown; a rate limit takes precedence, and ends the queries.
async fn ask_for_releases(
    github: &GitHub<'_>,
    found: &mut [FoundRepo],
    earlier: &[FoundRepo],
) -> Option<GitHubError> {
    let known: BTreeMap<&str, bool> = earlier
        .iter()
        .filter_map(|one| Some((one.full_name.as_str(), one.has_releases?)))
        .collect();
    for candidate in &mut *found {
        candidate.has_releases = candidate
            .has_releases
            .or_else(|| known.get(candidate.full_name.as_str()).copied());
    }
    let exhausted = AtomicBool::new(false);
    let unknown = found
        .iter()
        .enumerate()
        .filter(|(_, candidate)| candidate.has_releases.is_none());
    let questions = unknown.map(|(index, candidate)| {
        let (name, exhausted) = (candidate.full_name.clone(), &exhausted);
        async move {
            if exhausted.load(Ordering::Relaxed) {
                return (index, Err(GitHubError::RateLimited { reset_in: None }));
            }
            let answer = github.has_releases(&name).await;
            if matches!(answer, Err(GitHubError::RateLimited { .. })) {
                exhausted.store(true, Ordering::Relaxed);
            }
            (index, answer)
        }
    });
    let questions: Vec<_> = questions.collect();
    let mut answers: Vec<_> = stream::iter(questions)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    answers.sort_by_key(|(index, _)| *index);
    let mut missing = None;
    for (index, answer) in answers {
        match answer {
            Ok(has_releases) => found[index].has_releases = Some(has_releases),
            Err(error) => {
                let is_limit = matches!(error, GitHubError::RateLimited { .. });
                if missing.is_none() || is_limit {
                    missing = Some(error);
                }
            }
        }
    }
    missing
}
