//! The event loop of a command, which hears Ctrl-C and the request to end from its first work to its last.
//!
//! Listening to a signal takes its usual effect away for good. So the listeners live as long as the loop: what comes
//! between two pieces of work is kept, and the next piece does not begin.

use std::future::Future;

use crucible_model::ExitStatus;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::CommandError;

/// A loop with its listeners.
pub(crate) struct EventLoop {
    runtime: Runtime,
    interrupt: Signal,
    terminate: Signal,
}

impl EventLoop {
    pub(crate) fn new() -> Result<Self, CommandError> {
        let fail = |error| {
            let message = format!("the program's event loop cannot start: {error}");
            CommandError::new(ExitStatus::Refused, message)
        };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(fail)?;
        let entered = runtime.enter();
        let interrupt = signal(SignalKind::interrupt()).map_err(fail)?;
        let terminate = signal(SignalKind::terminate()).map_err(fail)?;
        drop(entered);
        Ok(Self { runtime, interrupt, terminate })
    }

    /// Runs `work` to its end, or until the user interrupts: then it is dropped where it stands.
    pub(crate) fn run<T>(
        &mut self,
        work: impl Future<Output = Result<T, CommandError>>,
    ) -> Result<T, CommandError> {
        let Self { runtime, interrupt, terminate } = self;
        runtime.block_on(async {
            let work = async {
                // Signals that came before this are heard when the loop turns for the first time.
                tokio::task::yield_now().await;
                work.await
            };
            tokio::select! {
                biased;
                _ = interrupt.recv() => Err(interrupted()),
                _ = terminate.recv() => Err(interrupted()),
                result = work => result,
            }
        })
    }
}

fn interrupted() -> CommandError {
    CommandError::new(ExitStatus::Interrupted, "interrupted")
}

#[cfg(test)]
mod tests {
    use nix::sys::signal::{Signal as Number, raise};

    use super::*;

    #[test]
    fn a_signal_between_two_pieces_of_work_ends_the_second() {
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
            assert_eq!(second.unwrap_err().status, ExitStatus::Interrupted, "{number}");
            assert!(!begun, "the second piece began after {number}");
        }
    }
}
