//! The event loop of a command, which hears Ctrl-C, the request to end and the end of its terminal from its first work to
//! its last. The end of the terminal is not listened for if the parent set it to be ignored (`nohup`).
//!
//! Listening to a signal takes its usual effect away for good. So the listeners live as long as the loop: what comes
//! between two pieces of work is kept, and the next piece does not begin. Where what comes between them is a write that
//! does not return, `blocked_write` ends the program.

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::{Pin, pin};

use crucible_host::fs::read_up_to;
use crucible_model::{ByteLimit, ExitStatus, Failure};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::blocked_write;

/// The event loop of a command, with its listeners for signals.
pub struct EventLoop {
    runtime: Runtime,
    listeners: Listeners,
}

/// Listens for the signals that end the program.
pub(crate) struct Listeners {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Option<Signal>,
}

impl EventLoop {
    /// Starts the loop and listens for signals from now on.
    pub fn new() -> Result<Self, Failure> {
        Self::begun().map_err(|error| {
            let message = format!("the program's event loop cannot start: {error}");
            Failure::refused(message)
        })
    }

    fn begun() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let listeners = {
            let _entered = runtime.enter();
            Listeners::new()?
        };
        blocked_write::watch()?;
        Ok(Self { runtime, listeners })
    }

    /// Runs `work` to its end, or until the user interrupts: then it is dropped, and its processes end with it.
    pub fn run<T>(&mut self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let mut result = None;
        // Work that is interrupted is dropped with the runtime at hand.
        let handle = self.runtime.handle().clone();
        let _entered = handle.enter();
        self.run_to_end(pin!(async { result = Some(work.await) }));
        result.unwrap_or_else(|| Err(interrupted()))
    }

    /// The runtime's loop is compiled once here, and not for the work of each command.
    fn run_to_end(&mut self, work: Pin<&mut dyn Future<Output = ()>>) {
        let Self { runtime, listeners } = self;
        runtime.block_on(async {
            let work = async {
                // Signals that came before this are heard when the loop turns for the first time.
                tokio::task::yield_now().await;
                work.await;
            };
            tokio::select! {
                biased;
                () = listeners.wait_for_signal() => {}
                () = work => {}
            }
        });
    }
}

impl Listeners {
    /// Listens from now on, in the event loop that is entered.
    pub(crate) fn new() -> io::Result<Self> {
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        let hang_up = (!ignores_hang_up())
            .then(|| signal(SignalKind::hangup()))
            .transpose()?;
        Ok(Self {
            interrupt,
            terminate,
            hang_up,
        })
    }

    /// Comes back when one of the signals is heard.
    pub(crate) async fn wait_for_signal(&mut self) {
        let Self {
            interrupt,
            terminate,
            hang_up,
        } = self;
        let hangs_up = async {
            match hang_up {
                Some(signal) => drop(signal.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            () = hangs_up => {}
        }
    }
}

/// Whether this process was started with the end of its terminal ignored. Where that cannot be determined, nobody listens: the
/// signal then ends the process, or does not, as it always did.
fn ignores_hang_up() -> bool {
    let status = read_up_to(Path::new("/proc/self/status"), ByteLimit(1 << 16)).unwrap_or_default();
    let status = String::from_utf8_lossy(&status);
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    // Signal number n is bit n - 1.
    let hang_up = 1 << (SignalKind::hangup().as_raw_value() - 1);
    ignored.is_none_or(|ignored| ignored & hang_up != 0)
}

/// The failure of work that the user interrupted.
pub fn interrupted() -> Failure {
    Failure::new(ExitStatus::Interrupted, "interrupted")
}

#[cfg(test)]
mod tests {
    use nix::sys::signal::{Signal as Number, raise};

    use super::*;

    #[test]
    fn signal_between_tasks_ends_the_second() {
        for number in [Number::SIGINT, Number::SIGTERM] {
            let mut events = EventLoop::new().unwrap();
            assert_eq!(events.run(async { Ok(1) }).unwrap(), 1);
            // Sent to this very thread, whose handler has run when the call comes back. One sent to the process
            // may go to another thread and be handled whenever that thread is next awake.
            raise(number).unwrap();
            let mut begun = false;
            let second = events.run(async {
                begun = true;
                Ok(())
            });
            assert_eq!(
                second.unwrap_err().status,
                ExitStatus::Interrupted,
                "{number}"
            );
            assert!(!begun, "the second piece began after {number}");
        }
    }
}
