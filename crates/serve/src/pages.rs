//! The pages: what each template shows. A report is the page of a run in another frame.

use askama::Template;
use crucible_view::{AttemptView, CallView, CostView, EventView, LedgerView, RunList, RunView};

use crate::actions::{ActionForm, PageRights};
use crate::chart::Chart;
use crate::error::ServeError;
use crate::query::{MAX_REPOSITORIES, RunQuery, pages_of};

/// The style sheet of every page.
pub(crate) const STYLE: &str = include_str!("../assets/style.css");
/// The script of a page that updates itself.
pub(crate) const SCRIPT: &str = include_str!("../assets/live.js");

/// The icon of the site.
pub(crate) const ICON: &str = include_str!("../assets/icon.svg");

/// How many events and calls the page of a run lists.
const LISTED: usize = 60;

/// What surrounds the content of a page.
pub(crate) struct Frame {
    /// The title.
    pub(crate) title: String,
    /// The style of a page that is one file; absent on the site, which serves it.
    pub(crate) style: Option<Style>,
    /// The address of the changes, on a page that updates itself.
    pub(crate) live: Option<String>,
    /// Whether a browser without script loads it again and again.
    pub(crate) is_reloaded: bool,
}

/// A style sheet within a page.
pub(crate) struct Style {
    /// Our own style sheet; the only text of a page that is not escaped.
    pub(crate) text: &'static str,
    /// The content security policy that allows exactly this text.
    pub(crate) policy: String,
}

impl Frame {
    /// The frame of a page of the site.
    pub(crate) fn site(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            style: None,
            live: None,
            is_reloaded: false,
        }
    }
}

/// How much a page lists.
pub(crate) struct ListLimits {
    /// Rows of lists in which each row is alike.
    pub(crate) rows: usize,
}

#[derive(Template)]
#[template(path = "message.html")]
pub(crate) struct MessagePage {
    pub(crate) frame: Frame,
    pub(crate) text: String,
}

#[derive(Template)]
#[template(path = "runs.html")]
struct RunsPage<'a> {
    frame: Frame,
    list: &'a RunList,
    query: &'a RunQuery,
    repositories: &'a [crucible_view::RedactedText],
    /// Whether there are too many repositories to choose from.
    is_repository_typed: bool,
    pages: u64,
    previous: Option<String>,
    next: Option<String>,
}

#[derive(Template)]
#[template(path = "run.html")]
struct RunPage<'a> {
    frame: Frame,
    run: &'a RunView,
    is_full: bool,
    /// Whether a page exists that approves and lands.
    can_land: bool,
    limits: ListLimits,
    events: &'a [EventView],
    calls: &'a [CallView],
}

#[derive(Template)]
#[template(path = "land.html")]
struct LandPage<'a> {
    frame: Frame,
    run: &'a RunView,
    attempt: Option<&'a AttemptView>,
    forms: &'a [ActionForm],
}

#[derive(Template)]
#[template(path = "attempt.html")]
struct AttemptPage<'a> {
    frame: Frame,
    run: &'a RunView,
    attempt: &'a AttemptView,
}

#[derive(Template)]
#[template(path = "events.html")]
struct EventsPage<'a> {
    frame: Frame,
    run: &'a RunView,
    is_calls: bool,
    events: &'a [EventView],
    calls: &'a [CallView],
}

#[derive(Template)]
#[template(path = "ledger.html")]
struct LedgerPage<'a> {
    frame: Frame,
    ledger: &'a LedgerView,
}

#[derive(Template)]
#[template(path = "costs.html")]
struct CostsPage<'a> {
    frame: Frame,
    costs: &'a CostView,
    outcomes: Chart,
    money: Chart,
    time: Chart,
}

/// The list of runs.
pub(crate) fn runs_page(
    list: &RunList,
    query: &RunQuery,
    repositories: &[crucible_view::RedactedText],
) -> Result<String, ServeError> {
    let pages = pages_of(list.total);
    let page = RunsPage {
        frame: Frame::site("Runs"),
        list,
        query,
        repositories,
        is_repository_typed: repositories.len() > MAX_REPOSITORIES,
        pages,
        previous: (query.page > 1).then(|| query.address(query.page - 1)),
        next: (query.page < pages).then(|| query.address(query.page + 1)),
    };
    Ok(page.render()?)
}

/// The page of a run on the site. It updates itself until the run has ended; without script, while a process works.
pub(crate) fn run_page(run: &RunView, rights: PageRights) -> Result<String, ServeError> {
    let id = &run.summary.run_id;
    let is_live = run.at_work.is_some() || !run.derived_state.is_end();
    let frame = Frame {
        live: is_live.then(|| format!("/runs/{id}/live")),
        is_reloaded: run.at_work.is_some(),
        ..Frame::site(format!("Run {id}"))
    };
    let events = run.events.get(run.events.len().saturating_sub(LISTED)..);
    let calls = run
        .model_calls
        .get(run.model_calls.len().saturating_sub(LISTED)..);
    let page = RunPage {
        frame,
        run,
        is_full: false,
        can_land: rights == PageRights::Land,
        limits: ListLimits { rows: LISTED },
        events: events.unwrap_or_default(),
        calls: calls.unwrap_or_default(),
    };
    Ok(page.render()?)
}

/// The page of a run with everything, as one file.
pub(crate) fn full_run_page(run: &RunView, style: Style) -> Result<String, ServeError> {
    let page = RunPage {
        frame: Frame {
            style: Some(style),
            ..Frame::site(format!("Run {}", run.summary.run_id))
        },
        run,
        is_full: true,
        can_land: false,
        limits: ListLimits { rows: 1_000 },
        events: &run.events,
        calls: &run.model_calls,
    };
    Ok(page.render()?)
}

/// One attempt with its diff.
pub(crate) fn attempt_page(run: &RunView, attempt: &AttemptView) -> Result<String, ServeError> {
    let page = AttemptPage {
        frame: Frame::site(format!("Attempt {}", attempt.number)),
        run,
        attempt,
    };
    Ok(page.render()?)
}

/// The forms that approve and land a run, with what they are about.
pub(crate) fn land_page(run: &RunView, forms: &[ActionForm]) -> Result<String, ServeError> {
    let page = LandPage {
        frame: Frame::site("Approve or land"),
        run,
        attempt: run.verified_attempt(),
        forms,
    };
    Ok(page.render()?)
}

/// All events of a run.
pub(crate) fn events_page(run: &RunView) -> Result<String, ServeError> {
    long_list(run, "Events", false)
}

/// All model calls of a run.
pub(crate) fn calls_page(run: &RunView) -> Result<String, ServeError> {
    long_list(run, "Model calls", true)
}

fn long_list(run: &RunView, title: &str, is_calls: bool) -> Result<String, ServeError> {
    let page = EventsPage {
        frame: Frame::site(title),
        run,
        is_calls,
        events: &run.events,
        calls: &run.model_calls,
    };
    Ok(page.render()?)
}

/// The ledger.
pub(crate) fn ledger_page(ledger: &LedgerView) -> Result<String, ServeError> {
    let frame = Frame::site("Ledger");
    Ok(LedgerPage { frame, ledger }.render()?)
}

/// The costs.
pub(crate) fn costs_page(costs: &CostView) -> Result<String, ServeError> {
    let page = CostsPage {
        frame: Frame::site("Costs"),
        costs,
        outcomes: Chart::outcomes(costs),
        money: Chart::money(costs),
        time: Chart::time(costs),
    };
    Ok(page.render()?)
}

/// A page with one sentence.
pub(crate) fn message_page(title: &str, text: &str) -> Result<String, ServeError> {
    let page = MessagePage {
        frame: Frame::site(title),
        text: crucible_model::escaped(text),
    };
    Ok(page.render()?)
}

#[cfg(test)]
mod tests;
