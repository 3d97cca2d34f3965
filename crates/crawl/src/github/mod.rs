//! GitHub as a crawl asks for it, through `gh` alone.
//!
//! Each method is one question of GitHub's REST interface with a typed answer. A question that meets the rate limit waits once,
//! at most 120 s, and is asked once more: see `patience`. What GitHub tells is read with suspicion: see `told`.
//!
//! What always holds: a question is asked at most twice, a command waits at most once, and an item that cannot be true costs
//! that item and a warning, never the page.

mod error;
mod rate_limit_wait;
mod repo_metadata;

use std::path::Path;

use crucible_model::{Clock, Timestamp};
use crucible_repo::{ArchiveLimits, Gh, GhError, GhRequest, GhResponse};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use error::GitHubError;
use rate_limit_wait::{Patience, Then};

use crate::artifact::OwnerType;
use crate::target::{RepoName, is_commit_id};
use crate::witness::CrawlObserver;

/// How many repositories a page of a search has (seed 000 §2.1.5).
pub(crate) const PAGE: u32 = 30;

/// How many characters of what GitHub said about a refusal are shown.
const SAID: usize = 300;

/// GitHub for one command: it waits for the rate limit once, and remembers that it did.
pub struct GitHub<'a> {
    gh: Gh,
    clock: &'a dyn Clock,
    witness: &'a dyn CrawlObserver,
    patience: Patience,
}

/// What GitHub says of a repository; what ranking needs, and no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundRepo {
    /// `owner/repo`.
    pub full_name: String,
    /// The part after the slash.
    pub name: String,
    /// The owner's words, on one line, without secrets; at most a thousand characters.
    pub description: String,
    /// Where people look at it.
    pub url: String,
    /// Stars.
    pub stars: u64,
    /// The last push; of a repository that nobody pushed to, when it was made.
    pub pushed_at: Timestamp,
    /// The owner's kind.
    pub owner_type: OwnerType,
    /// Whether it is read-only.
    pub archived: bool,
    /// Whether it is a fork.
    pub fork: bool,
    /// Its default branch.
    pub default_branch: String,
    /// Its main language, as GitHub sees it.
    pub language: Option<String>,
    /// Its topics, sorted.
    pub topics: Vec<String>,
    /// Whether it has a release; unknown until asked.
    pub has_releases: Option<bool>,
}

/// A page of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchPage {
    /// What it lists.
    pub candidates: Vec<FoundRepo>,
    /// GitHub searched everything for it; what it found in a part is nothing to remember.
    pub is_whole: bool,
}

impl<'a> GitHub<'a> {
    /// GitHub through this `gh`, with the command's clock; `witness` hears of waits and of what could not be believed.
    #[must_use]
    pub fn new(gh: Gh, clock: &'a dyn Clock, witness: &'a dyn CrawlObserver) -> Self {
        Self { gh, clock, witness, patience: Patience::default() }
    }

    /// The host that is asked.
    #[must_use]
    pub fn host(&self) -> &str {
        self.gh.host()
    }

    /// One page of a search, best match first; 30 a page, pages from 1. What cannot be true of an item leaves it out, with a
    /// warning.
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
        let told: Value = self.json(request, what).await?;
        let Some(items) = told["items"].as_array() else {
            return Err(odd(what, "it lists no items"));
        };
        let is_whole = told["incomplete_results"] != true;
        if !is_whole {
            self.witness
                .warning("GitHub ran out of time and searched only a part; the results may be incomplete");
        }
        if items.len() > PAGE as usize {
            self.witness.warning(&format!(
                "GitHub sent {} results instead of {PAGE}; the rest is ignored",
                items.len()
            ));
        }
        let mut candidates = Vec::new();
        for item in items.iter().take(PAGE as usize) {
            match repo_metadata::candidate(item, self.gh.host()) {
                Ok(candidate) => candidates.push(candidate),
                Err(why) => {
                    let name = repo_metadata::line(
                        item["full_name"].as_str().unwrap_or("a repository without a name"),
                        100,
                    );
                    self.witness.warning(&format!("search result ignored, {name}: {why}"));
                }
            }
        }
        Ok(SearchPage { candidates, is_whole })
    }

    /// One repository. One that was renamed is found by its old name, and tells its new one.
    ///
    /// # Errors
    ///
    /// See [`GitHubError`].
    pub async fn repository(&self, repo: &RepoName) -> Result<FoundRepo, GitHubError> {
        let what = format!("repository {}", repo.full_name());
        let told: Value = self.json(at(repo), &what).await?;
        repo_metadata::candidate(&told, self.gh.host()).map_err(|why| odd(&what, why))
    }

    /// Whether it has at least one release.
    ///
    /// # Errors
    ///
    /// See [`GitHubError`].
    pub async fn has_releases(&self, full_name: &str) -> Result<bool, GitHubError> {
        let what = format!("repository {}", repo_metadata::line(full_name, 150));
        let repo = RepoName::parse(full_name).map_err(|_| odd(&what, "its name is not owner/name"))?;
        let request = at(&repo).and_then(|request| request.part("releases")?.value("per_page", "1"));
        let releases: Vec<Value> = self.json(request, &what).await?;
        Ok(!releases.is_empty())
    }

    /// The tag of its latest release; nothing where it has none. Pre-releases are none.
    ///
    /// # Errors
    ///
    /// See [`GitHubError`]. A repository that is not there has no release either: [`GitHub::repository`] tells the difference.
    pub async fn latest_release(&self, repo: &RepoName) -> Result<Option<String>, GitHubError> {
        let what = format!("repository {}", repo.full_name());
        let request = at(repo).and_then(|request| request.part("releases")?.part("latest"));
        let told: Value = match self.json(request, &what).await {
            Ok(told) => told,
            Err(GitHubError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        match told["tag_name"].as_str() {
            Some(tag) if repo_metadata::is_ref(tag) => Ok(Some(tag.to_owned())),
            _ => Err(odd(
                &what,
                "its latest release has no valid tag; name a branch or tag with --ref NAME",
            )),
        }
    }

    /// The commit that a tag, branch or commit id resolves to, 40 digits.
    ///
    /// # Errors
    ///
    /// See [`GitHubError`].
    pub async fn commit(&self, repo: &RepoName, reference: &str) -> Result<String, GitHubError> {
        let what = format!("{reference:?} in {}", repo.full_name());
        let request = at(repo).and_then(|request| request.part("commits")?.reference(reference));
        let told: Value = match self.json(request, &what).await {
            // What GitHub calls a wrong question is a ref that is not there.
            Err(GitHubError::Gh(GhError::Invalid { status: 422, said, .. }))
                if said.starts_with("No commit found") =>
            {
                return Err(GitHubError::NotFound { what });
            }
            other => other?,
        };
        let sha = told["sha"].as_str().filter(|sha| is_commit_id(sha));
        sha.map(str::to_ascii_lowercase).ok_or_else(|| odd(&what, "it is not a commit id of 40 digits"))
    }

    /// Downloads the archive of `reference` to the new file `to`. Where that fails, there is no file.
    ///
    /// # Errors
    ///
    /// See [`GitHubError`].
    pub async fn tarball(&self, repo: &RepoName, reference: &str, to: &Path) -> Result<(), GitHubError> {
        let what = format!("archive of {reference:?} in {}", repo.full_name());
        let request = at(repo).and_then(|request| request.part("tarball")?.reference(reference));
        let request = request.map_err(|error| GitHubError::from_gh(error, &what))?;
        // Not more than what is taken when it is unpacked.
        let limit = ArchiveLimits::DEFAULT.compressed;
        self.patiently(&what, || self.gh.download(&request, to, limit)).await.map(|_| ())
    }

    async fn json<T: serde::de::DeserializeOwned>(
        &self,
        request: Result<GhRequest, GhError>,
        what: &str,
    ) -> Result<T, GitHubError> {
        let request = request.map_err(|error| GitHubError::from_gh(error, what))?;
        let answer: GhResponse = self.patiently(what, || self.gh.get(&request)).await?;
        answer.json().map_err(|error| GitHubError::from_gh(error, what))
    }

    /// Asks, and asks once more after the wait for the rate limit where that may be.
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
        match self.patience.meet(began, first, self.clock, self.witness).await {
            Then::GiveUp(reset_in) => Err(GitHubError::RateLimited { reset_in }),
            Then::AskAgain => ask().await.map_err(|error| self.folded(error, what)),
        }
    }

    fn folded(&self, error: GhError, what: &str) -> GitHubError {
        // Redacted as it came, then cut: half a secret is not known for one.
        let redacted = |said: String| repo_metadata::line(&said, SAID);
        let error = match error {
            GhError::RateLimited(reset) => {
                return GitHubError::RateLimited { reset_in: rate_limit_wait::left(reset, self.clock) };
            }
            GhError::NotLoggedIn { said } => GhError::NotLoggedIn { said: redacted(said) },
            GhError::Forbidden { said, .. } => {
                GhError::Forbidden { what: what.to_owned(), said: redacted(said) }
            }
            GhError::Invalid { status, said, .. } => {
                GhError::Invalid { what: what.to_owned(), status, said: redacted(said) }
            }
            GhError::Server { status, said } => GhError::Server { status, said: redacted(said) },
            other => other,
        };
        GitHubError::from_gh(error, what)
    }
}

/// A question about a repository.
fn at(repo: &RepoName) -> Result<GhRequest, GhError> {
    GhRequest::at("repos").part(repo.owner())?.part(repo.name())
}

fn odd(what: &str, why: impl Into<String>) -> GitHubError {
    GitHubError::Odd { what: what.to_owned(), why: why.into() }
}
