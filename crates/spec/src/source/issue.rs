//! Reads a GitHub issue as an idea, through `gh`.
//!
//! Title and text are used, because its author is responsible for them; comments may come from anyone and
//! are only counted.
//!
//! Invariants: `gh` asks the host of the issue, or nothing is asked. A pull request is not an issue. A
//! moved issue is reported.

use std::fmt;
use std::str::FromStr;

use crucible_model::{counted, is_hidden, says_nothing, short_line, single_spaced};
use crucible_repo::{Gh, GhError, GhRequest, is_github_name, is_github_owner};
use crucible_secrets::Scanner;
use serde::Deserialize;

use crate::error::SpecError;

/// The most characters of GitHub's message in an error.
const SAID: usize = 300;

/// A reference to an issue: `OWNER/REPO#N`, or its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssueRef {
    /// The host of the address; none for a repository without a host.
    host: Option<String>,
    owner: String,
    repo: String,
    number: u64,
}

/// An issue as GitHub returned it.
pub(super) struct FetchedIssue {
    pub(super) text: String,
    pub(super) notes: Vec<String>,
}

/// The parts of GitHub's answer that are used.
#[derive(Deserialize)]
struct Answer {
    /// GitHub always states it.
    number: Option<u64>,
    title: String,
    body: Option<String>,
    #[serde(default)]
    comments: u64,
    #[serde(default)]
    state: String,
    #[serde(default)]
    html_url: String,
    #[serde(default)]
    pull_request: Option<serde_json::Value>,
}

pub(super) async fn read(gh: &Gh, issue: &IssueRef) -> Result<FetchedIssue, SpecError> {
    let refuse = |why: String| SpecError::Source {
        source_name: issue.to_string(),
        why,
    };
    if let Some(host) = issue.host.as_deref().filter(|host| *host != gh.host()) {
        return Err(refuse(format!(
            "it is on {host}, but `gh` uses {}; set GH_HOST to {host}",
            gh.host()
        )));
    }
    let fail = |error: GhError| SpecError::GitHub {
        issue: issue.to_string(),
        error: redacted(error),
    };
    let request = GhRequest::at("repos")
        .part(&issue.owner)
        .and_then(|request| request.part(&issue.repo))
        .and_then(|request| request.part("issues"))
        .and_then(|request| request.part(&issue.number.to_string()))
        .map_err(fail)?;
    let answer: Answer = gh
        .get(&request)
        .await
        .and_then(|response| response.json())
        .map_err(fail)?;
    if answer.pull_request.is_some() {
        return Err(refuse(
            "it is a pull request; name an issue, or give the text with --source".to_owned(),
        ));
    }
    let title = single_spaced(&answer.title);
    // GitHub's own forms send CRLF, and mixed line endings are never intended.
    let body = answer.body.unwrap_or_default().replace("\r\n", "\n");
    let mut notes = Vec::new();
    if answer.comments > 0 {
        notes.push(format!(
            "{issue}: {} ignored; copy what matters into the issue's text or a file of \
        --source",
            comments(answer.comments)
        ));
    }
    if answer.state == "closed" {
        notes.push(format!("{issue} is closed"));
    }
    let at = |number: u64| {
        format!("/{}/{}/issues/{number}", issue.owner, issue.repo).to_ascii_lowercase()
    };
    let address = answer.html_url.to_ascii_lowercase();
    let number = answer.number.unwrap_or(issue.number);
    // Another number means that the issue was moved, or a wrong answer.
    if number != issue.number
        && (address.is_empty()
            || address.ends_with(&at(number))
            || !address.ends_with(&format!("/issues/{number}")))
    {
        return Err(refuse(format!(
            "GitHub answers with issue {number} instead; see what `gh api repos/{}/{}/issues/{}` says",
            issue.owner, issue.repo, issue.number
        )));
    }
    if !address.is_empty() && !address.ends_with(&at(issue.number)) {
        let place = clean(&answer.html_url);
        notes.push(format!(
            "{issue} was moved; GitHub answers with {place}, which is used"
        ));
    }
    let has_text = |text: &str| !says_nothing(text);
    let text = match (has_text(&title), has_text(&body)) {
        (true, true) => format!("# {title}\n\n{}\n", body.trim_end()),
        (true, false) => format!("# {title}\n"),
        (false, true) => body,
        (false, false) => String::new(),
    };
    Ok(FetchedIssue { text, notes })
}

fn comments(number: u64) -> String {
    format!(
        "{} {}",
        counted(number, "comment"),
        if number == 1 { "is" } else { "are" }
    )
}

/// GitHub's message, redacted and short. It is redacted first, because half a secret would not be
/// recognised.
fn redacted(error: GhError) -> GhError {
    match error {
        GhError::NotLoggedIn { message } => GhError::NotLoggedIn {
            message: clean(&message),
        },
        GhError::Forbidden { what, message } => GhError::Forbidden {
            what,
            message: clean(&message),
        },
        GhError::Invalid {
            what,
            status,
            message,
        } => GhError::Invalid {
            what,
            status,
            message: clean(&message),
        },
        GhError::Server { status, message } => GhError::Server {
            status,
            message: clean(&message),
        },
        other => other,
    }
}

fn clean(message: &str) -> String {
    let seen: String = single_spaced(message)
        .chars()
        .filter(|c| !is_hidden(*c))
        .collect();
    short_line(&Scanner::builtin().redact(&seen).text, SAID)
}

impl FromStr for IssueRef {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || SpecError::Source {
            source_name: short_line(text, 100),
            why: fault(text.trim()).to_owned(),
        };
        parse(text.trim()).ok_or_else(refuse)
    }
}

impl fmt::Display for IssueRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}#{}", self.owner, self.repo, self.number)
    }
}

/// Why a text is not an issue, and what to write.
fn fault(text: &str) -> &'static str {
    let (scheme, address) = text.split_once("://").unwrap_or(("", text));
    let kind = address.split('/').nth(3);
    if kind.is_some_and(|kind| matches!(kind, "pull" | "pulls")) {
        "it is a pull request; name the issue that it is about, or give its text with --source"
    } else if scheme.eq_ignore_ascii_case("http") {
        "the address of an issue must use https; write https:// instead of http://"
    } else {
        "it is not an issue; write OWNER/REPO#123, or its address: https://github.com/OWNER/REPO/issues/123"
    }
}

fn parse(text: &str) -> Option<IssueRef> {
    let scheme = text
        .get(..8)
        .filter(|start| start.eq_ignore_ascii_case("https://"));
    let (host, owner, repo, number) = if scheme.is_some() {
        let address = text.get(8..)?;
        // The rest names a comment or a view of the same issue.
        let address = address.split(['#', '?']).next()?.trim_end_matches('/');
        let mut parts = address.split('/');
        let (host, owner, repo) = (parts.next()?, parts.next()?, parts.next()?);
        let (kind, number) = (parts.next()?, parts.next()?);
        if kind != "issues" || parts.next().is_some() || !is_host(host) {
            return None;
        }
        (Some(host.to_ascii_lowercase()), owner, repo, number)
    } else {
        let (place, number) = text.split_once('#')?;
        let (owner, repo) = place.split_once('/')?;
        (None, owner, repo, number)
    };
    // `www.` leads to the same page.
    let host = host.map(|host| {
        host.strip_prefix("www.")
            .map_or_else(|| host.clone(), str::to_owned)
    });
    let is_number =
        (1..=18).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
    let number = number
        .parse()
        .ok()
        .filter(|number| is_number && *number > 0)?;
    (is_github_owner(owner) && is_github_name(repo)).then(|| IssueRef {
        host,
        owner: owner.to_owned(),
        repo: repo.to_owned(),
        number,
    })
}

fn is_host(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 255
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-.:".contains(&byte))
}
