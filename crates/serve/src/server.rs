//! The page server: loopback only, one session, read-only unless it was started with the right to land.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, Response, StatusCode, header};
use crucible_host::random;
use crucible_ledger::Ledger;
use crucible_model::{RunId, Secret};
use crucible_run::existing_run;
use crucible_view::{CostView, LedgerView, RedactedText, RunList, RunView};
use tokio::net::TcpListener;
use tokio::time::{Instant, timeout};
use url::form_urlencoded;

use crate::access::{Access, Denial};
use crate::actions::{ActionForm, OpenForms, PageRights, RunAction, RunActionKind};
use crate::connections::{FORM_TIME, answer_connections};
use crate::error::ServeError;
use crate::live::{LiveGuard, changes};
use crate::pages::{
    ICON, SCRIPT, STYLE, attempt_page, calls_page, costs_page, events_page, land_page, ledger_page,
    message_page, run_page, runs_page,
};
use crate::project::{ProjectQuery, ProjectReader};
use crate::project_pages::{ProjectPage, document_of, message_of, project_page};
use crate::query::{RunQuery, pages_of};

/// How long the link of the start works.
const LINK_LIFE: Duration = Duration::from_secs(300);
/// The most bytes of the part of an address after `?`. A page shows a search several times.
const MAX_QUERY: usize = 4096;
/// The most bytes of a form.
const MAX_FORM: usize = 4096;
/// How many pages may update themselves at the same time.
const MAX_STREAMS: usize = 16;
/// Scripts, styles, images and connections only from this server, and nothing else from anywhere.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Headers of every answer.
const HEADERS: [(header::HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "same-origin"),
    (header::CACHE_CONTROL, "no-store"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (
        header::HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        header::HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// What is served.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// The ledger's database.
    pub ledger: PathBuf,
    /// Where run directories are.
    pub runs_root: PathBuf,
    /// The port on 127.0.0.1; 0 for any free one.
    pub port: u16,
    /// Where documents of the project are read.
    pub project: ProjectReader,
    /// What the pages may do.
    pub rights: PageRights,
}

/// A server that is about to answer.
pub struct PageServer {
    listener: TcpListener,
    address: SocketAddr,
    link: Secret,
    shared: Arc<Shared>,
}

struct Shared {
    options: ServeOptions,
    access: Access,
    /// The connection of the pages, opened with the first page that needs it.
    ledger: Mutex<Option<Ledger>>,
    /// Held by the one verification at a time.
    verification: Mutex<()>,
    streams: Arc<AtomicUsize>,
    forms: OpenForms,
}

/// A page, or why it cannot be shown.
enum Answer {
    Html(String),
    NotFound(&'static str),
    Stream(Body),
    Busy,
}

impl PageServer {
    /// Opens the port.
    ///
    /// # Errors
    ///
    /// Fails if the port is in use, or if the kernel gives no random bytes.
    pub async fn open(options: ServeOptions) -> Result<Self, ServeError> {
        let port = options.port;
        let failed = |source| ServeError::Port { port, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .await
            .map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let link = Secret::new(random::token()?);
        let session = Secret::new(random::token()?);
        let shared = Arc::new(Shared {
            access: Access::new(address.port(), options.rights, session, &link),
            options,
            ledger: Mutex::new(None),
            verification: Mutex::new(()),
            streams: Arc::default(),
            forms: OpenForms::default(),
        });
        Ok(Self {
            listener,
            address,
            link,
            shared,
        })
    }

    /// Returns the address that begins the session. It works once, within five minutes.
    #[must_use]
    pub fn link(&self) -> String {
        format!("http://{}/enter?token={}", self.address, self.link.expose())
    }

    /// Answers until it is dropped.
    pub async fn run(self) {
        let shared = Arc::clone(&self.shared);
        let expiry = tokio::spawn(async move {
            tokio::time::sleep(LINK_LIFE).await;
            shared.access.expire_link();
        });
        let router = Router::new().fallback(answer).with_state(self.shared);
        answer_connections(self.listener, router).await;
        expiry.abort();
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let access = &shared.access;
    if let Err(denial) = access.check_source(&parts.method, &parts.uri, &parts.headers) {
        return denied(denial);
    }
    let path = parts.uri.path().to_owned();
    let query = parts.uri.query().unwrap_or_default().to_owned();
    if path == "/enter" {
        // A preview of the link asks for its headers, which must not use it.
        return match parts.method {
            Method::GET => enter(access, &query),
            _ => denied(Denial::Method),
        };
    }
    if let Err(denial) = access.check_session(&parts.headers) {
        return denied(denial);
    }
    if parts.method == Method::POST {
        return act(&shared, &path, body).await;
    }
    if query.len() > MAX_QUERY {
        return message(
            StatusCode::URI_TOO_LONG,
            "Too long",
            "The search is too long. Use fewer characters.",
        );
    }
    match path.as_str() {
        "/" => return redirect("/runs", None),
        "/style.css" => return response(StatusCode::OK, "text/css; charset=utf-8", STYLE),
        "/icon.svg" => return response(StatusCode::OK, "image/svg+xml", ICON),
        "/live.js" => return response(StatusCode::OK, "text/javascript; charset=utf-8", SCRIPT),
        _ => {}
    }
    if let Some(document) = document_of(&path) {
        return match project_page(&shared.options.project, document).await {
            Ok(ProjectPage::Html(page)) => html(StatusCode::OK, page),
            Ok(ProjectPage::Missing(why)) => {
                message(StatusCode::NOT_FOUND, "Not found", why.as_str())
            }
            Err(error) => failed(&error),
        };
    }
    // The database and the run directory are read on another thread.
    let page = tokio::task::spawn_blocking(move || shared.page(&path, &query)).await;
    match page {
        Ok(Ok(Answer::Html(page))) => html(StatusCode::OK, page),
        Ok(Ok(Answer::Stream(body))) => response(StatusCode::OK, "text/event-stream", body),
        Ok(Ok(Answer::NotFound(what))) => message(StatusCode::NOT_FOUND, "Not found", what),
        Ok(Ok(Answer::Busy)) => message(
            StatusCode::SERVICE_UNAVAILABLE,
            "Busy",
            "Too many of these requests at once. Try again.",
        ),
        Ok(Err(error)) => failed(&error),
        Err(_) => message(
            StatusCode::INTERNAL_SERVER_ERROR,
            "Cannot show this page",
            "The page ended unexpectedly.",
        ),
    }
}

/// Does what a form asks for, if the form is open and confirmed.
async fn act(shared: &Shared, path: &str, body: Body) -> Response<Body> {
    let refused = |text: &str| message(StatusCode::FORBIDDEN, "Refused", text);
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let ["runs", id, action] = parts.as_slice() else {
        return message(StatusCode::NOT_FOUND, "Not found", "There is no such form.");
    };
    let (Ok(run), Some(kind)) = (id.parse::<RunId>(), RunActionKind::parse(action)) else {
        return message(StatusCode::NOT_FOUND, "Not found", "There is no such form.");
    };
    let Ok(Ok(body)) = timeout(FORM_TIME, to_bytes(body, MAX_FORM)).await else {
        return refused("The form is too long, or did not arrive.");
    };
    let confirmed = match shared.forms.take(&run, kind, &body, Instant::now()) {
        Ok(confirmed) => confirmed,
        Err(refusal) => return refused(refusal.text()),
    };
    let answer = shared.options.project.ask(ProjectQuery::Action(confirmed));
    match answer.await {
        Ok(_) => redirect(&format!("/runs/{run}"), None),
        Err(failure) => message(
            StatusCode::CONFLICT,
            "Not done",
            message_of(&failure).as_str(),
        ),
    }
}

fn failed(error: &ServeError) -> Response<Body> {
    message(
        StatusCode::INTERNAL_SERVER_ERROR,
        "Cannot show this page",
        RedactedText::new(&error.to_string()).as_str(),
    )
}

impl Shared {
    fn page(&self, path: &str, query: &str) -> Result<Answer, ServeError> {
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        match parts.as_slice() {
            ["runs"] => self.runs(query),
            ["costs"] => {
                self.with_ledger(|ledger| Ok(Answer::Html(costs_page(&CostView::read(ledger)?)?)))
            }
            ["ledger"] => self
                .with_ledger(|ledger| Ok(Answer::Html(ledger_page(&LedgerView::read(ledger)?)?))),
            ["ledger", "verify"] => self.verify(),
            ["runs", id, "live"] => match id.parse::<RunId>() {
                Ok(_) => self.live(),
                Err(_) => Ok(NO_RUN),
            },
            ["runs", id] => {
                let rights = self.options.rights;
                self.with_run(id, |run| Ok(Answer::Html(run_page(run, rights)?)))
            }
            ["runs", id, "land"] if self.options.rights == PageRights::Land => {
                self.with_run(id, |run| {
                    let forms = self.forms_of(run)?;
                    Ok(Answer::Html(land_page(run, &forms)?))
                })
            }
            ["runs", id, "events"] => self.with_run(id, |run| Ok(Answer::Html(events_page(run)?))),
            ["runs", id, "calls"] => self.with_run(id, |run| Ok(Answer::Html(calls_page(run)?))),
            ["runs", id, "attempts", number] => self.with_run(id, |run| {
                let number = number.parse::<u64>().ok();
                let mut attempts = run.attempts.iter();
                match attempts.find(|attempt| Some(attempt.number) == number) {
                    Some(attempt) => Ok(Answer::Html(attempt_page(run, attempt)?)),
                    None => Ok(Answer::NotFound("There is no such attempt.")),
                }
            }),
            _ => Ok(Answer::NotFound("There is no such page.")),
        }
    }

    /// Opens a form for each action that the state of a run allows.
    fn forms_of(&self, run: &RunView) -> Result<Vec<ActionForm>, ServeError> {
        if !run.chain.is_intact() {
            return Ok(Vec::new());
        }
        let landing = run
            .verified_attempt()
            .and_then(|attempt| attempt.patch_digest);
        let possible = [
            (RunActionKind::Approve, run.plan_to_approve()),
            (RunActionKind::Land, landing),
        ];
        let mut forms = Vec::new();
        for (kind, digest) in possible {
            if let Some(digest) = digest {
                let run = run.summary.run_id.clone();
                forms.push(
                    self.forms
                        .open(RunAction { run, kind, digest }, Instant::now())?,
                );
            }
        }
        Ok(forms)
    }

    fn runs(&self, query: &str) -> Result<Answer, ServeError> {
        let mut query = RunQuery::parse(query);
        self.with_ledger(|ledger| {
            let repositories = ledger.repositories()?;
            let redacted_texts: Vec<RedactedText> = repositories
                .iter()
                .map(|repo| RedactedText::new(repo))
                .collect();
            // The page shows names without secrets and hidden characters, and people choose what it shows.
            let mut search = query.list();
            let mut names = repositories.iter().zip(&redacted_texts);
            let chosen = names.find(|(_, shown)| query.has_repo(shown));
            if let Some((repo, _)) = chosen {
                search.filter.repo = Some(repo.clone());
            }
            let mut list = RunList::read(ledger, &search)?;
            let last = pages_of(list.total);
            if query.page > last {
                query.page = last;
                search.page = query.list().page;
                list = RunList::read(ledger, &search)?;
            }
            Ok(Answer::Html(runs_page(&list, &query, &redacted_texts)?))
        })
    }

    fn verify(&self) -> Result<Answer, ServeError> {
        let Ok(_turn) = self.verification.try_lock() else {
            return Ok(Answer::Busy);
        };
        match Ledger::open_existing(&self.options.ledger)? {
            Some(ledger) => Ok(Answer::Html(ledger_page(&LedgerView::verify(&ledger)?)?)),
            None => Ok(NO_LEDGER),
        }
    }

    fn live(&self) -> Result<Answer, ServeError> {
        let Some(guard) = LiveGuard::new(&self.streams, MAX_STREAMS) else {
            return Ok(Answer::Busy);
        };
        match Ledger::open_existing(&self.options.ledger)? {
            Some(ledger) => Ok(Answer::Stream(changes(ledger, guard))),
            None => Ok(NO_LEDGER),
        }
    }

    fn with_run(
        &self,
        id: &str,
        page: impl FnOnce(&RunView) -> Result<Answer, ServeError>,
    ) -> Result<Answer, ServeError> {
        let Some(dir) = id
            .parse()
            .ok()
            .and_then(|id| existing_run(&self.options.runs_root, &id))
        else {
            return Ok(NO_RUN);
        };
        self.with_ledger(|ledger| match RunView::read(&dir, ledger)? {
            Some(run) => page(&run),
            None => Ok(NO_RUN),
        })
    }

    fn with_ledger(
        &self,
        page: impl FnOnce(&Ledger) -> Result<Answer, ServeError>,
    ) -> Result<Answer, ServeError> {
        let mut slot = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.is_none() {
            *slot = Ledger::open_existing(&self.options.ledger)?;
        }
        match slot.as_ref() {
            Some(ledger) => page(ledger),
            None => Ok(NO_LEDGER),
        }
    }
}

const NO_RUN: Answer = Answer::NotFound("There is no such run, or its directory is missing.");
const NO_LEDGER: Answer =
    Answer::NotFound("There is no ledger yet. The first `crucible run start` makes it.");

fn enter(access: &Access, query: &str) -> Response<Body> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let token = pairs.find(|(name, _)| name == "token");
    let token = token.map(|(_, value)| value).unwrap_or_default();
    match access.exchange(&token) {
        Ok(cookie) => redirect("/runs", Some(&cookie)),
        Err(denial) => denied(denial),
    }
}

fn denied(denial: Denial) -> Response<Body> {
    let mut response = response(
        StatusCode::FORBIDDEN,
        "text/plain; charset=utf-8",
        format!("{}\n", denial.text()),
    );
    if denial == Denial::Method {
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    }
    response
}

fn redirect(to: &str, cookie: Option<&str>) -> Response<Body> {
    let mut response = response(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", "");
    let headers = response.headers_mut();
    if let Ok(to) = HeaderValue::from_str(to) {
        headers.insert(header::LOCATION, to);
    }
    if let Some(cookie) = cookie.and_then(|cookie| HeaderValue::from_str(cookie).ok()) {
        headers.insert(header::SET_COOKIE, cookie);
    }
    response
}

fn message(status: StatusCode, title: &str, text: &str) -> Response<Body> {
    match message_page(title, text) {
        Ok(page) => html(status, page),
        Err(error) => response(status, "text/plain; charset=utf-8", error.to_string()),
    }
}

fn html(status: StatusCode, page: String) -> Response<Body> {
    response(status, "text/html; charset=utf-8", page)
}

fn response(status: StatusCode, kind: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests;
