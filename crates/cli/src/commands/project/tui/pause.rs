//! Stopping for a while, as a shell's job does, and what else comes by signals while the terminal is ours.
//!
//! In raw mode Ctrl-Z is a key like any other, and a stop that comes from elsewhere (`kill -TSTP`) would leave its shell with our screen. So
//! both are heard, and the program stops itself when it has put the terminal back. What always holds: it stops only where a shell can let
//! it go on again.

use std::io;

use rustix::process::{Signal as Number, getpgid, getppid, getsid, kill_current_process_group};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that a terminal's owner has to answer to.
pub(super) struct Signals {
    stop: Signal,
    go_on: Signal,
    quit: Signal,
}

/// What a signal asks for.
pub(super) enum SignalRequest {
    /// To stop for a while.
    Stop,
    /// To go on: somebody stopped the program without a word, and the terminal may have had another owner since.
    GoOn,
    /// To end at once.
    Quit,
}

/// Whether the program stopped.
pub(super) enum Paused {
    /// It did, and goes on.
    GoesOn,
    /// Nobody could have let it go on again.
    NoShell,
}

impl Signals {
    /// Listens from now on, in the event loop that is entered.
    pub(super) fn new() -> io::Result<Self> {
        let stop = signal(SignalKind::from_raw(Number::TSTP.as_raw()))?;
        let go_on = signal(SignalKind::from_raw(Number::CONT.as_raw()))?;
        Ok(Self { stop, go_on, quit: signal(SignalKind::quit())? })
    }

    /// The next one.
    pub(super) async fn heard(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.quit.recv() => SignalRequest::Quit,
            _ = self.stop.recv() => SignalRequest::Stop,
            _ = self.go_on.recv() => SignalRequest::GoOn,
        }
    }

    /// Stops, with all programs of the job, until somebody lets it go on. The terminal has been put back before.
    pub(super) async fn pause(&mut self) -> io::Result<Paused> {
        if !has_a_shell() {
            return Ok(Paused::NoShell);
        }
        // Not the signal that is listened to: it would be heard again.
        kill_current_process_group(Number::STOP)?;
        let _it_goes_on = self.go_on.recv().await;
        Ok(Paused::GoesOn)
    }
}

/// Whether the job has a parent in its session that is no part of it. Without one nobody would hear that it stopped.
fn has_a_shell() -> bool {
    let Some(parent) = getppid() else { return false };
    let same_session = getsid(Some(parent)).is_ok_and(|session| getsid(None) == Ok(session));
    let same_job = getpgid(Some(parent)).is_ok_and(|group| getpgid(None) == Ok(group));
    let leads = getsid(Some(parent)) == Ok(parent);
    same_session && !(same_job && leads)
}
