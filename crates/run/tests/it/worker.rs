//! The process that is killed: this very binary once more, running the one test below with orders in its environment.
#![expect(
    clippy::disallowed_methods,
    reason = "a process that is killed has to be started, with orders in its environment"
)]

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crucible_ledger::EventRecord;

use crate::cast::RoleServers;
use crate::common::{Along, Ordinals, Place, Script, Until};

const PLACE: &str = "RUN_TEST_PLACE";
const MODEL: &str = "RUN_TEST_MODEL";
const CAST: &str = "RUN_TEST_CAST";
const KILL: &str = "RUN_TEST_KILL";

/// Where a worker that a new event ended left the number of its last instant, in its place.
pub(crate) const LAST_INSTANT: &str = "last-instant";

/// Where a worker ends itself with SIGKILL; points are counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kill {
    /// Nowhere.
    Never,
    /// When the n-th event of the ledger has been recorded.
    Event(u64),
    /// When an event has been recorded that was not there when the worker began.
    NewEvent,
    /// When the n-th long step begins.
    Working(u64),
    /// When the clock is read for the n-th time: among others, with an artifact written and its event not yet appended.
    Instant(u64),
}

impl Kill {
    fn write(self) -> String {
        match self {
            Self::Never => "never 0".to_owned(),
            Self::Event(n) => format!("event {n}"),
            Self::NewEvent => "new-event 0".to_owned(),
            Self::Working(n) => format!("working {n}"),
            Self::Instant(n) => format!("instant {n}"),
        }
    }

    fn read(text: &str) -> Self {
        let (what, n) = text.split_once(' ').unwrap();
        let n = n.parse().unwrap();
        match what {
            "never" => Self::Never,
            "event" => Self::Event(n),
            "new-event" => Self::NewEvent,
            "working" => Self::Working(n),
            "instant" => Self::Instant(n),
            other => panic!("no such point: {other}"),
        }
    }
}

struct Killer {
    kill: Kill,
    /// The last event that was there when the worker began.
    last: u64,
    place: Place,
    workings: AtomicU64,
    instants: AtomicU64,
    ordinals: Ordinals,
}

impl Killer {
    fn pass(&self, counter: &AtomicU64, point: fn(u64) -> Kill) {
        let n = counter.fetch_add(1, Ordering::SeqCst) + 1;
        if self.kill == point(n) {
            end_here();
        }
    }
}

fn end_here() -> ! {
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
        .unwrap();
    unreachable!("a process outlived SIGKILL");
}

impl Along for Killer {
    fn event(&self, event: &EventRecord) {
        // A question that is put again is an event of its own; ending there each time would never end.
        let put_again = event
            .key
            .as_ref()
            .is_some_and(|key| key.contains("-asked-"));
        if self.kill == Kill::NewEvent && event.seq > self.last && !put_again {
            let instant = self.instants.load(Ordering::SeqCst).to_string();
            std::fs::write(self.place.root().join(LAST_INSTANT), instant).unwrap();
            end_here();
        }
        if self
            .ordinals
            .ordinal(event)
            .is_some_and(|n| self.kill == Kill::Event(n))
        {
            end_here();
        }
    }

    fn working(&self, _: &str) {
        self.pass(&self.workings, Kill::Working);
    }

    fn instant(&self) {
        self.pass(&self.instants, Kill::Instant);
    }
}

/// Starts a worker that drives the run of `place` to its landing.
pub(crate) fn start(place: &Place, base_url: &str, kill: Kill) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "worker::worker_alone_lands_a_run", "--nocapture"])
        .env(PLACE, place.root())
        .env(CAST, place.cast().number())
        .env(MODEL, base_url)
        .env(KILL, kill.write())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

/// Whether a worker was killed rather than having come to its end.
pub(crate) fn was_killed(status: ExitStatus) -> bool {
    assert!(
        status.success() || status.signal() == Some(9),
        "the worker failed: {status}"
    );
    status.signal() == Some(9)
}

/// With orders this is the worker; without, it is a test of its own.
#[test]
fn worker_alone_lands_a_run() {
    if let Some(root) = std::env::var_os(PLACE) {
        let cast = RoleServers::from_number(&std::env::var(CAST).unwrap());
        let here = || Place::at(root.clone().into()).with(cast);
        let place = here();
        let killer = Killer {
            kill: Kill::read(&std::env::var(KILL).unwrap()),
            last: place.ledger().head().unwrap().seq,
            place: here(),
            workings: AtomicU64::new(0),
            instants: AtomicU64::new(0),
            ordinals: Ordinals::default(),
        };
        let base_url = std::env::var(MODEL).unwrap();
        place
            .drive(&base_url, Until::Landed, Arc::new(killer))
            .unwrap();
        return;
    }
    let (place, model) = (Place::new(), Script::Lands.model());
    let untouched = place.repository();
    let status = start(&place, &model.base_url(), Kill::Never)
        .wait()
        .unwrap();
    assert!(!was_killed(status));
    assert_ne!(place.repository(), untouched);
    assert_eq!(model.requests().len(), Script::Lands.attempts());
    place.assert_ended_like(&place.story());
}
