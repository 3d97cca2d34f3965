//! The server: which answer a request gets.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, Uri};
use serde_json::{Value, json};

use super::misbehaviour::{Answer, Misbehaviour, Times};
use super::repository::{FakeReleaseKind, FakeRepo};
use crate::loopback::UnixServer;

/// A GitHub that the real `gh` talks to; ends when it is dropped. See the top of this module.
pub struct FakeGitHub {
    directory: tempfile::TempDir,
    _server: UnixServer,
    state: Arc<Mutex<Held>>,
}

/// One request as it came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenGitHubRequest {
    /// `GET`.
    pub method: String,
    /// `api.github.com` or `codeload.github.com`.
    pub host: String,
    /// The path, percent-encoded as it came.
    pub path: String,
    /// The query's names and values, decoded, in the order of arrival.
    pub query: Vec<(String, String)>,
    /// Path and query as they came.
    pub target: String,
    /// Header names in lowercase with their values, in the order of arrival.
    pub headers: Vec<(String, String)>,
}

#[derive(Default)]
struct Held {
    repos: Vec<FakeRepo>,
    found: Option<Vec<String>>,
    completeness: Completeness,
    plans: Vec<Planned>,
    seen: Vec<SeenGitHubRequest>,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Completeness {
    #[default]
    Complete,
    Incomplete,
}

struct Planned {
    part: String,
    times: Times,
    how: Misbehaviour,
}

impl FakeGitHub {
    /// Starts a GitHub with these repositories.
    #[must_use]
    pub fn start(repos: impl IntoIterator<Item = FakeRepo>) -> Self {
        // Not in TMPDIR: the name of a unix socket has at most 107 bytes.
        let directory = tempfile::Builder::new()
            .prefix("gh")
            .tempdir_in("/tmp")
            .expect("a temporary directory in /tmp");
        let socket = directory.path().join("s");
        let config = directory.path().join("config");
        std::fs::create_dir(&config).expect("a new directory");
        let setting = format!("http_unix_socket: {}\nprompt: disabled\n", socket.display());
        std::fs::write(config.join("config.yml"), setting).expect("a new file");
        let state = Arc::new(Mutex::new(Held {
            repos: repos.into_iter().collect(),
            ..Held::default()
        }));
        let router = Router::new().fallback(serve).with_state(Arc::clone(&state));
        Self {
            _server: UnixServer::start(&socket, router),
            directory,
            state,
        }
    }

    /// The variables that make `gh` talk to this server, logged in: `GH_CONFIG_DIR` and `GH_TOKEN`.
    #[must_use]
    pub fn env(&self) -> Vec<(OsString, OsString)> {
        let mut variables = self.env_without_login();
        variables.push(("GH_TOKEN".into(), "a-token-of-the-fake".into()));
        variables
    }

    /// The variables of a user who never logged in: `GH_CONFIG_DIR` alone.
    #[must_use]
    pub fn env_without_login(&self) -> Vec<(OsString, OsString)> {
        vec![("GH_CONFIG_DIR".into(), self.config_directory().into())]
    }

    /// The directory of `gh`'s configuration.
    #[must_use]
    pub fn config_directory(&self) -> PathBuf {
        self.directory.path().join("config")
    }

    /// Adds a repository, or replaces the one of its name.
    pub fn put(&self, repo: FakeRepo) {
        let mut held = self.lock();
        held.repos.retain(|known| known.full_name != repo.full_name);
        held.repos.push(repo);
    }

    /// From now on every search finds exactly these, in this order, be a name repeated.
    pub fn search_finds(&self, full_names: &[&str]) {
        self.lock().found = Some(full_names.iter().map(|name| (*name).to_owned()).collect());
    }

    /// From now on every search says that it ran out of time (`incomplete_results`).
    pub fn search_is_incomplete(&self) {
        self.lock().completeness = Completeness::Incomplete;
    }

    /// Requests whose path and query contain `part` get another answer than the good one. Where several match, the one that was
    /// asked for first comes first, until it has happened as often as it should.
    pub fn misbehave(&self, part: &str, times: Times, how: Misbehaviour) {
        self.lock().plans.push(Planned {
            part: part.to_owned(),
            times,
            how,
        });
    }

    /// From now on every answer is good.
    pub fn behave(&self) {
        self.lock().plans.clear();
    }

    /// Every request so far.
    #[must_use]
    pub fn requests(&self) -> Vec<SeenGitHubRequest> {
        self.lock().seen.clone()
    }

    /// How many requests so far had `part` in their path and query.
    #[must_use]
    pub fn count(&self, part: &str) -> usize {
        self.lock()
            .seen
            .iter()
            .filter(|request| request.target.contains(part))
            .count()
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        lock(&self.state)
    }
}

async fn serve(
    State(state): State<Arc<Mutex<Held>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response<Body> {
    let headers: Vec<(String, String)> = (headers.iter())
        .map(|(name, value)| {
            (
                name.to_string(),
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            )
        })
        .collect();
    let host = headers
        .iter()
        .find(|(name, _)| name == "host")
        .map(|(_, value)| value.clone());
    let request = SeenGitHubRequest {
        method: method.to_string(),
        host: host.unwrap_or_default(),
        path: uri.path().to_owned(),
        query: query(uri.query().unwrap_or_default()),
        target: uri.to_string(),
        headers,
    };
    let (answer, how) = {
        let mut held = lock(&state);
        held.seen.push(request.clone());
        (held.answer(&request), held.planned(&request))
    };
    match how {
        Some(how) => answer.but(how).await,
        None => answer.well(),
    }
}

impl Held {
    fn planned(&mut self, request: &SeenGitHubRequest) -> Option<Misbehaviour> {
        let is_due = |plan: &&mut Planned| {
            request.target.contains(&plan.part) && !matches!(plan.times, Times::Exactly(0))
        };
        let plan = self.plans.iter_mut().find(is_due)?;
        plan.times = match plan.times {
            Times::Always => Times::Always,
            Times::Once => Times::Exactly(0),
            Times::Exactly(left) => Times::Exactly(left.saturating_sub(1)),
        };
        Some(plan.how.clone())
    }

    fn answer(&self, request: &SeenGitHubRequest) -> Answer {
        let segments: Vec<String> = request.path.split('/').skip(1).map(decode).collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        let (host, segments) = match (request.host.as_str(), segments.as_slice()) {
            // A server of somebody's own has its interface below this path.
            (host, ["api", "v3", rest @ ..]) if !host.ends_with("github.com") => {
                ("api.github.com", rest)
            }
            other => other,
        };
        match (host, segments) {
            ("codeload.github.com", [owner, name, "legacy.tar.gz", reference @ ..]) => {
                self.archive(owner, name, &reference.join("/"))
            }
            ("api.github.com", ["search", "repositories"]) => self.search(request),
            ("api.github.com", ["rate_limit"]) => Answer::json(
                200,
                &json!({"resources": {"core": {"limit": 60, "remaining": 60, "reset": 0, "used": 0}}}),
            ),
            ("api.github.com", ["repos", owner, name, rest @ ..]) => match self.repo(owner, name) {
                Some(repo) => about(repo, rest, request),
                None => missing(),
            },
            _ => missing(),
        }
    }

    fn repo(&self, owner: &str, name: &str) -> Option<&FakeRepo> {
        let full_name = format!("{owner}/{name}");
        self.repos
            .iter()
            .find(|repo| repo.full_name.eq_ignore_ascii_case(&full_name))
    }

    fn search(&self, request: &SeenGitHubRequest) -> Answer {
        let text = request.value("q").unwrap_or_default().to_lowercase();
        if text.trim().is_empty() {
            let errors = json!([{"resource": "Search", "field": "q", "code": "missing"}]);
            return Answer::json(
                422,
                &json!({"message": "Validation Failed", "errors": errors}),
            );
        }
        let found: Vec<&FakeRepo> = match &self.found {
            Some(names) => {
                let of = |name: &String| self.repos.iter().find(|repo| repo.full_name == *name);
                names
                    .iter()
                    .map(|name| of(name).expect("a repository of this name"))
                    .collect()
            }
            None => {
                let mut found: Vec<&FakeRepo> = self
                    .repos
                    .iter()
                    .filter(|repo| matches(repo, &text))
                    .collect();
                found.sort_by(|a, b| {
                    b.stars
                        .cmp(&a.stars)
                        .then_with(|| a.full_name.cmp(&b.full_name))
                });
                found
            }
        };
        let number = |name: &str, usual: usize| {
            request
                .value(name)
                .and_then(|value| value.parse().ok())
                .unwrap_or(usual)
                .clamp(1, 100)
        };
        let (page, per_page) = (number("page", 1), number("per_page", 30));
        let items: Vec<Value> = found
            .iter()
            .skip((page - 1) * per_page)
            .take(per_page)
            .map(|repo| repo.json())
            .collect();
        let is_incomplete = self.completeness == Completeness::Incomplete;
        let total = found.len();
        Answer::json(
            200,
            &json!({"total_count": total, "incomplete_results": is_incomplete, "items": items}),
        )
    }

    fn archive(&self, owner: &str, name: &str, reference: &str) -> Answer {
        let archive = self
            .repo(owner, name)
            .and_then(|repo| repo.archives.get(reference));
        let Some(body) = archive else {
            return missing();
        };
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let headers = vec![
            header("content-type", "application/x-gzip"),
            header("content-disposition", "attachment; filename=archive.tar.gz"),
        ];
        Answer {
            status: 200,
            headers,
            body: body.clone(),
        }
    }
}

fn about(repo: &FakeRepo, rest: &[&str], request: &SeenGitHubRequest) -> Answer {
    match rest {
        [] => Answer::json(200, &repo.json()),
        ["releases"] => {
            let per_page = request
                .value("per_page")
                .and_then(|value| value.parse().ok())
                .unwrap_or(30);
            let releases = repo.releases.iter().take(per_page);
            Answer::json(200, &releases.map(|release| release.json(repo)).collect())
        }
        ["releases", "latest"] => {
            match repo
                .releases
                .iter()
                .find(|release| release.kind == FakeReleaseKind::Final)
            {
                Some(release) => Answer::json(200, &release.json(repo)),
                None => missing(),
            }
        }
        ["issues", number] => match number
            .parse()
            .ok()
            .and_then(|number: u64| repo.issues.get(&number))
        {
            Some(issue) => Answer::json(200, issue),
            None => missing(),
        },
        ["commits", reference @ ..] => {
            let reference = reference.join("/");
            match repo.refs.get(&reference) {
                Some(sha) => {
                    Answer::json(200, &json!({"sha": sha, "commit": {"message": "A change"}}))
                }
                None => {
                    let message = format!("No commit found for SHA: {reference}");
                    Answer::json(422, &json!({"message": message}))
                }
            }
        }
        ["tarball", reference @ ..] => {
            let reference = reference.join("/");
            let place = format!(
                "https://codeload.github.com/{}/legacy.tar.gz/{}",
                repo.full_name,
                encode(&reference)
            );
            if !repo.archives.contains_key(&reference) {
                return missing();
            }
            Answer {
                status: 302,
                headers: vec![("location".to_owned(), place)],
                body: Vec::new(),
            }
        }
        _ => missing(),
    }
}

fn matches(repo: &FakeRepo, text: &str) -> bool {
    let description = repo.description.clone().unwrap_or_default();
    let words =
        format!("{} {description} {}", repo.full_name, repo.topics.join(" ")).to_lowercase();
    text.split_whitespace().all(|word| words.contains(word))
}

fn missing() -> Answer {
    Answer::json(
        404,
        &json!({"message": "Not Found", "documentation_url": "https://docs.github.com/rest"}),
    )
}

impl SeenGitHubRequest {
    /// The value of a name in the query.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// The value of a header, by its lowercase name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

fn query(text: &str) -> Vec<(String, String)> {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (
            decode(&name.replace('+', " ")),
            decode(&value.replace('+', " ")),
        )
    };
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(pair)
        .collect()
}

/// Percent-decodes; what is not a valid escape stays as it is.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let escape = (*byte == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        match escape.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(value) => {
                decoded.push(value);
                at += 3;
            }
            None => {
                decoded.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// Percent-encodes everything but letters, digits, `-`, `.`, `_`, `~` and `/`.
fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    text.bytes()
        .map(|byte| {
            if plain(byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

/// A test that panicked while it held the lock has failed already; what the lock guards is still whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
