//! The machine's clock, a pinned one, and a stopwatch.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crucible_model::{Clock, ClockSource, Timestamp, TimestampError};

use crate::env::Environment;

/// The variable that pins the clock, for tests and reproducible exports.
pub const CLOCK_VARIABLE: &str = "CRUCIBLE_CLOCK";

/// The machine's own clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads the clock"
    )]
    fn now(&self) -> Timestamp {
        Timestamp::from_unix(
            SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default(),
        )
    }

    fn source(&self) -> ClockSource {
        ClockSource::System
    }
}

/// A clock that stands still.
#[derive(Debug, Clone, Copy)]
pub struct PinnedClock(pub Timestamp);

impl Clock for PinnedClock {
    fn now(&self) -> Timestamp {
        self.0
    }

    fn source(&self) -> ClockSource {
        ClockSource::Pinned
    }
}

/// `CRUCIBLE_CLOCK` holds something else than an instant.
#[derive(Debug, thiserror::Error)]
#[error("{CLOCK_VARIABLE} must be an RFC 3339 time; correct or unset it")]
pub struct ClockError(#[from] TimestampError);

/// The clock of a command: pinned where `CRUCIBLE_CLOCK` says so, the machine's otherwise.
///
/// # Errors
///
/// Fails when the variable is set to something else than an RFC 3339 instant in UTC.
pub fn clock_from(env: &Environment) -> Result<Box<dyn Clock>, ClockError> {
    match env.get(CLOCK_VARIABLE) {
        Some(text) if !text.is_empty() => Ok(Box::new(PinnedClock(text.parse()?))),
        _ => Ok(Box::new(SystemClock)),
    }
}

/// Measures how long something takes, unmoved by changes of the wall clock.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts measuring.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that measures time"
    )]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
