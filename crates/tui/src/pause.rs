//! Suspends the program like a job of the shell, and handles other signals while the TUI owns the
//! terminal.
//!
//! In raw mode Ctrl-Z is an ordinary key, and a stop from outside (`kill -TSTP`) would leave the shell
//! with our screen. Both are therefore handled: the program restores the terminal and then stops itself.
//! Invariant: it stops only if a shell can continue it.

use std::io;

use rustix::process::{Signal as Number, getpgid, getppid, getsid, kill_current_process_group};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that the owner of a terminal must handle.
pub(super) struct Signals {
    stop: Signal,
    go_on: Signal,
    quit: Signal,
}

/// What a signal requests.
pub(super) enum SignalRequest {
    /// Suspend.
    Stop,
    /// Continue: the program was stopped without notice, and the terminal may have had another owner.
    GoOn,
    /// End at once.
    Quit,
}

/// Whether the program was suspended.
pub(super) enum Paused {
    /// It was, and has been continued.
    GoesOn,
    /// Nothing could have continued it.
    NoShell,
}

impl Signals {
    /// Starts listening in the current event loop.
    pub(super) fn new() -> io::Result<Self> {
        let stop = signal(SignalKind::from_raw(Number::TSTP.as_raw()))?;
        let go_on = signal(SignalKind::from_raw(Number::CONT.as_raw()))?;
        Ok(Self {
            stop,
            go_on,
            quit: signal(SignalKind::quit())?,
        })
    }

    /// The next signal.
    pub(super) async fn next_signal(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.quit.recv() => SignalRequest::Quit,
            _ = self.stop.recv() => SignalRequest::Stop,
            _ = self.go_on.recv() => SignalRequest::GoOn,
        }
    }

    /// Stops all processes of the job until it is continued. The caller has restored the terminal.
    pub(super) async fn pause(&mut self) -> io::Result<Paused> {
        if !has_a_shell() {
            return Ok(Paused::NoShell);
        }
        // Not the signal that is handled here, which would be received again.
        kill_current_process_group(Number::STOP)?;
        let _it_goes_on = self.go_on.recv().await;
        Ok(Paused::GoesOn)
    }
}

/// Whether the job has a parent in its session outside of the job. Without one, nothing would notice that
/// it stopped.
fn has_a_shell() -> bool {
    let Some(parent) = getppid() else {
        return false;
    };
    let same_session = getsid(Some(parent)).is_ok_and(|session| getsid(None) == Ok(session));
    let same_job = getpgid(Some(parent)).is_ok_and(|group| getpgid(None) == Ok(group));
    let leads = getsid(Some(parent)) == Ok(parent);
    same_session && !(same_job && leads)
}
