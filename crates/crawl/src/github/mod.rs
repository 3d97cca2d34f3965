//! A GitHub client for crawls, through `gh` only.
//!
//! Each method is one request to GitHub's REST interface with a typed answer. A request that hits the
//! rate limit waits once, at most 120 s, and is repeated once: see `rate_limit_wait`. GitHub's answers
//! are validated: see `repo_metadata`.
//!
//! Invariants: a request is sent at most twice, and a command waits at most once. An invalid item is
//! dropped with a warning; the rest of the page is used.

mod error;
mod rate_limit_wait;
mod repo_metadata;

use std::path::Path;

use crucible_model::{Clock, Timestamp};
use crucible_repo::{ArchiveLimits, Gh, GhError, GhRequest, GhResponse};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use error::GitHubError;
use rate_limit_wait::{LimitAction, RateLimitWait};

use crate::artifact::OwnerType;
use crate::observer::CrawlObserver;
use crate::target::{RepoName, is_commit_id};

/// The repositories per search page.
pub(crate) const PAGE: u32 = 30;

/// The most characters of GitHub's message in an error.
const SAID: usize = 300;

/// The GitHub client of one command: it waits for the rate limit at most once.
pub struct GitHub<'a> {
    gh: Gh,
    clock: &'a dyn Clock,
    observer: &'a dyn CrawlObserver,
    patience: RateLimitWait,
}

/// A repository as GitHub describes it; only what ranking needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundRepo {
    /// `owner/repo`.
    pub full_name: String,
    /// The part after the slash.
    pub name: String,
    /// The owner's description, redacted and on one line; at most a thousand characters.
    pub description: String,
    /// The address for browsers.
    pub url: String,
    /// The number of stars.
    pub stars: u64,
    /// The time of the last push, or of the creation if there was none.
    pub pushed_at: Timestamp,
    /// The kind of the owner.
    pub owner_type: OwnerType,
    /// Whether it is archived (read-only).
    pub archived: bool,
    /// Whether it is a fork.
    pub fork: bool,
    /// The name of the default branch.
    pub default_branch: String,
    /// Its main language, according to GitHub.
    pub language: Option<String>,
    /// Its topics, sorted.
    pub topics: Vec<String>,
    /// Whether it has a release; unknown until requested.
    pub has_releases: Option<bool>,
}

/// A page of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchPage {
    /// The repositories on the page.
    pub candidates: Vec<FoundRepo>,
    /// Whether GitHub completed the search; an incomplete page is not cached.
    pub is_whole: bool,
}

impl<'a> GitHub<'a> {
    /// Creates a client with this `gh` and the command's clock; `observer` is notified about waits and
    /// invalid answers.
    #[must_use]
    pub fn new(gh: Gh, clock: &'a dyn Clock, observer: &'a dyn CrawlObserver) -> Self {
        Self {
            gh,
            clock,
            observer,
            patience: RateLimitWait::default(),
        }
    }

    /// The host of the requests.
    #[must_use]
    pub fn host(&self) -> &str {
        self.gh.host()
    }

    /// One page of a search, best match first; 30 per page, pages from 1. An invalid item is dropped with a warning.
    ///
    /// # Errors
    ///
    /// See [`GitHubError`].
    pub async fn search_page(&self, query: &str, page: u32) -> Result<SearchPage, GitHubError> {
        let what = "page of this search";
        let request = GhRequest::at("search")
            .part("repositories")
            .and_then(|request| request.value("q", query))
            .and_then(|request| request.value("per_page", PAGE.to_string()))
            .and_then(|request| request.value("page", page.to_string()));
        let response: Value = self.json(request, what).await?;
        let Some(items) = response["items"].as_array() else {
            return Err(malformed_response(what, "it lists no items"));
        };
        let is_whole = response["incomplete_results"] != true;
        if !is_whole {
            self.observer.warning(
                "GitHub ran out of time and searched only a part; the results may be incomplete",
            );
        }
        if items.len() > PAGE as usize {
            self.observer.warning(&format!(
                "GitHub sent {} results instead of {PAGE}; the rest is ignored",
                items.len()
            ));
        }
        let mut candidates = Vec::new();
        for item in items.iter().take(PAGE as usize) {
            match repo_metadata::parse_repository(item, self.gh.host()) {
                Ok(candidate) => candidates.push(candidate),
                Err(why) => {
                    let name = repo_metadata::line(
                        item["full_name"]
                            .as_str()
                            .unwrap_or("a repository without a name"),
                        100,
                    );
                    self.observer
                        .warning(&format!("search result ignored, {name}: {why}"));
                }
            }
        }
        Ok(SearchPage {
            candidates,
            is_whole,
        })
    }

    /// Reads one repository. A renamed one is found by its old name, and returned with its new one.
    ///
    /// # Errors
    ///
    /// See [`GitHubError`].
    pub async fn repository(&self, repo: &RepoName) -> Result<FoundRepo, GitHubError> {
        let what = format!("repository {}", repo.full_name());
        let response: Value = self.json(at(repo), &what).await?;
        repo_metadata::parse_repository(&response, self.gh.host())
            .map_err(|why| malformed_response(&what, why))
    }

    /// Whether it has at least one release.
    ///
    /// # Errors
    ///
    /// See [`GitHubError`].
    pub async fn has_releases(&self, full_name: &str) -> Result<bool, GitHubError> {
        let what = format!("repository {}", repo_metadata::line(full_name, 150));
        let repo = RepoName::parse(full_name)
            .map_err(|_| malformed_response(&what, "its name is not owner/name"))?;
        let request =
            at(&repo).and_then(|request| request.part("releases")?.value("per_page", "1"));
        let releases: Vec<Value> = self.json(request, &what).await?;
        Ok(!releases.is_empty())
    }

    /// The tag of its latest release, if any. Pre-releases do not count.
    ///
    /// # Errors
    ///
    /// See [`GitHubError`]. A missing repository has no release either: use [`GitHub::repository`] to distinguish them.
    pub async fn latest_release(&self, repo: &RepoName) -> Result<Option<String>, GitHubError> {
        let what = format!("repository {}", repo.full_name());
        let request = at(repo).and_then(|request| request.part("releases")?.part("latest"));
        let response: Value = match self.json(request, &what).await {
            Ok(response) => response,
            Err(GitHubError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        match response["tag_name"].as_str() {
            Some(tag) if repo_metadata::is_ref(tag) => Ok(Some(tag.to_owned())),
            _ => Err(malformed_response(
                &what,
                "its latest release has no valid tag; name a branch or tag with --ref NAME",
            )),
        }
    }

    /// The commit id, 40 digits, of a tag, branch or commit id.
    ///
    /// # Errors
    ///
    /// See [`GitHubError`].
    pub async fn commit(&self, repo: &RepoName, reference: &str) -> Result<String, GitHubError> {
        let what = format!("{reference:?} in {}", repo.full_name());
        let request = at(repo).and_then(|request| request.part("commits")?.reference(reference));
        let response: Value = match self.json(request, &what).await {
            // GitHub answers 422 for a ref that does not exist.
            Err(GitHubError::Gh(GhError::Invalid {
                status: 422,
                message,
                ..
            })) if message.starts_with("No commit found") => {
                return Err(GitHubError::NotFound { what });
            }
            other => other?,
        };
        let sha = response["sha"].as_str().filter(|sha| is_commit_id(sha));
        sha.map(str::to_ascii_lowercase)
            .ok_or_else(|| malformed_response(&what, "it is not a commit id of 40 digits"))
    }

    /// Downloads the archive of `reference` to the new file `to`. On failure the file does not exist.
    ///
    /// # Errors
    ///
    /// See [`GitHubError`].
    pub async fn tarball(
        &self,
        repo: &RepoName,
        reference: &str,
        to: &Path,
    ) -> Result<(), GitHubError> {
        let what = format!("archive of {reference:?} in {}", repo.full_name());
        let request = at(repo).and_then(|request| request.part("tarball")?.reference(reference));
        let request = request.map_err(|error| GitHubError::from_gh(error, &what))?;
        // The limit for unpacking applies to the download as well.
        let limit = ArchiveLimits::DEFAULT.compressed;
        self.patiently(&what, || self.gh.download(&request, to, limit))
            .await
            .map(|_| ())
    }

    async fn json<T: serde::de::DeserializeOwned>(
        &self,
        request: Result<GhRequest, GhError>,
        what: &str,
    ) -> Result<T, GitHubError> {
        let request = request.map_err(|error| GitHubError::from_gh(error, what))?;
        let answer: GhResponse = self.patiently(what, || self.gh.get(&request)).await?;
        answer
            .json()
            .map_err(|error| GitHubError::from_gh(error, what))
    }

    /// Sends a request, and repeats it once after the wait for the rate limit, if allowed.
    async fn patiently<T>(
        &self,
        what: &str,
        ask: impl AsyncFn() -> Result<T, GhError>,
    ) -> Result<T, GitHubError> {
        let began = self.patience.begin();
        let first = match ask().await {
            Err(GhError::RateLimited(reset)) => reset,
            other => return other.map_err(|error| self.folded(error, what)),
        };
        match self
            .patience
            .handle_limit(began, first, self.clock, self.observer)
            .await
        {
            LimitAction::GiveUp(reset_in) => Err(GitHubError::RateLimited { reset_in }),
            LimitAction::AskAgain => ask().await.map_err(|error| self.folded(error, what)),
        }
    }

    fn folded(&self, error: GhError, what: &str) -> GitHubError {
        // Redacted first, then cut: half a secret would not be recognised.
        let redacted = |message: String| repo_metadata::line(&message, SAID);
        let error = match error {
            GhError::RateLimited(reset) => {
                return GitHubError::RateLimited {
                    reset_in: rate_limit_wait::remaining_wait(reset, self.clock),
                };
            }
            GhError::NotLoggedIn { message } => GhError::NotLoggedIn {
                message: redacted(message),
            },
            GhError::Forbidden { message, .. } => GhError::Forbidden {
                what: what.to_owned(),
                message: redacted(message),
            },
            GhError::Invalid {
                status, message, ..
            } => GhError::Invalid {
                what: what.to_owned(),
                status,
                message: redacted(message),
            },
            GhError::Server { status, message } => GhError::Server {
                status,
                message: redacted(message),
            },
            other => other,
        };
        GitHubError::from_gh(error, what)
    }
}

/// A request about a repository.
fn at(repo: &RepoName) -> Result<GhRequest, GhError> {
    GhRequest::at("repos").part(repo.owner())?.part(repo.name())
}

fn malformed_response(what: &str, why: impl Into<String>) -> GitHubError {
    GitHubError::Odd {
        what: what.to_owned(),
        why: why.into(),
    }
}
