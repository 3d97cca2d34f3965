//! Ends the program where it is asked to end while a write to standard output or standard error does not come back: nobody reads
//! the other end of the pipe, or the terminal is stopped.
//!
//! The event loop's listeners took the usual effect of the signals away, and a writer does not turn the loop. So a
//! thread of its own watches the writes. What holds: it ends the program only when a signal was heard and the same write has stood
//! still for a while, with the code of an interruption and without a word, for nobody reads any; it listens only while a
//! write stands still, so whatever comes at another time is the loop's alone, and an orderly end stays one.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use crucible_model::ExitStatus;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::event_loop::Listeners;
use crate::raw_mode;

/// How long a write takes that stands still.
const TIMEOUT: Duration = Duration::from_millis(300);

/// How long is listened until it is looked again whether the write still stands.
const TURN: Duration = Duration::from_millis(100);

static WRITES: Writes = Writes {
    counted: Mutex::new(Counted { begun: 0, ended: 0 }),
    changed: Condvar::new(),
};

/// The writes to the program's streams.
struct Writes {
    counted: Mutex<Counted>,
    changed: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Counted {
    begun: u64,
    ended: u64,
}

/// Runs a write to one of the program's streams, and watches that it returns.
pub fn watched<T>(write: impl FnOnce() -> T) -> T {
    WRITES.count(|counted| counted.begun += 1);
    let written = write();
    WRITES.count(|counted| counted.ended += 1);
    written
}

/// Watches the writes of this program from now on; once is enough.
pub(crate) fn watch() -> io::Result<()> {
    static BEGUN: Once = Once::new();
    if BEGUN.is_completed() {
        return Ok(());
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let listeners = {
        let _entered = runtime.enter();
        Listeners::new()?
    };
    let mut failed = None;
    BEGUN.call_once(|| {
        let named = std::thread::Builder::new().name("blocked_write".to_owned());
        failed = named
            .spawn(move || end_what_stands(&runtime, listeners))
            .err();
    });
    failed.map_or(Ok(()), Err)
}

fn end_what_stands(runtime: &Runtime, mut listeners: Listeners) {
    let mut heard = false;
    loop {
        let stuck = WRITES.wait_for_a_standstill();
        if !heard {
            heard = runtime
                .block_on(async { timeout(TURN, listeners.wait_for_signal()).await.is_ok() });
        }
        if heard && WRITES.now().ended == stuck.ended {
            end();
        }
    }
}

#[expect(
    clippy::exit,
    reason = "the thread that could end in good order is held by a write that does not come back"
)]
fn end() {
    raw_mode::restore();
    std::process::exit(i32::from(ExitStatus::Interrupted.code()));
}

impl Writes {
    fn count(&self, change: impl FnOnce(&mut Counted)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn now(&self) -> Counted {
        *self.lock()
    }

    /// Waits until some write was under way for a while and none ended.
    fn wait_for_a_standstill(&self) -> Counted {
        let idle = |counted: &mut Counted| counted.begun == counted.ended;
        let mut counted = self.lock();
        loop {
            counted = self
                .changed
                .wait_while(counted, idle)
                .unwrap_or_else(PoisonError::into_inner);
            let seen = *counted;
            let none_ended = |counted: &mut Counted| counted.ended == seen.ended;
            let waited = self
                .changed
                .wait_timeout_while(counted, TIMEOUT, none_ended);
            let (now, outcome) = waited.unwrap_or_else(PoisonError::into_inner);
            if outcome.timed_out() {
                return *now;
            }
            counted = now;
        }
    }

    /// A count is whole at every moment.
    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
