//! Timestamps and their clock.
//!
//! A command reads one [`Clock`]. A pinned clock (tests, reproducible exports) is marked as pinned, and what
//! is written under it never satisfies a gate.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// An instant in UTC with millisecond precision; prints as RFC 3339 with `Z` (`2026-01-31T09:30:00.000Z`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(jiff::Timestamp);

/// A text that is not a valid timestamp.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an RFC 3339 instant in UTC, such as 2026-01-31T09:30:00Z: {text:?}")]
pub struct TimestampError {
    text: String,
}

impl Timestamp {
    /// Creates the instant this long after the Unix epoch, truncated to milliseconds. Instants after the year 9999 are
    /// clamped to its last millisecond, so that a wrong clock cannot make a caller fail.
    #[must_use]
    pub fn from_unix(since_epoch: Duration) -> Self {
        let millis = i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX);
        Self(jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX))
    }

    /// Milliseconds since the Unix epoch.
    #[must_use]
    pub fn unix_millis(self) -> i64 {
        self.0.as_millisecond()
    }

    /// Formats the instant for names, to the second: `20260131T093000Z`.
    #[must_use]
    pub fn compact(self) -> String {
        let text = format!("{:.0}", self.0);
        text.chars().filter(|c| !matches!(c, '-' | ':')).collect()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.0)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timestamp({self})")
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = || TimestampError {
            text: text.chars().take(64).collect(),
        };
        if !text.ends_with('Z') {
            return Err(refuse());
        }
        let instant: jiff::Timestamp = text.parse().map_err(|_| refuse())?;
        jiff::Timestamp::from_millisecond(instant.as_millisecond())
            .map(Self)
            .map_err(|_| refuse())
    }
}

impl TryFrom<String> for Timestamp {
    type Error = TimestampError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Timestamp> for String {
    fn from(instant: Timestamp) -> Self {
        instant.to_string()
    }
}

/// The source of a command's timestamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClockSource {
    /// The machine's clock.
    System,
    /// A fixed time chosen by a person; nothing written under it satisfies a gate.
    Pinned,
}

/// A clock. Only `host` implements it for the machine's clock.
pub trait Clock: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Timestamp;

    /// Returns whether the time is real or pinned.
    fn source(&self) -> ClockSource;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamp_prints_in_one_format() {
        let instant = Timestamp::from_unix(Duration::from_millis(1_700_000_000_123));
        assert_eq!(instant.to_string(), "2023-11-14T22:13:20.123Z");
        assert_eq!(instant.compact(), "20231114T221320Z");
        assert_eq!("2023-11-14T22:13:20.123Z".parse(), Ok(instant));
    }

    #[test]
    fn other_zones_fail_and_late_instants_clamp() {
        assert!("2023-11-14T22:13:20+01:00".parse::<Timestamp>().is_err());
        assert!("yesterday".parse::<Timestamp>().is_err());
        assert!(
            Timestamp::from_unix(Duration::MAX)
                .to_string()
                .starts_with("9999-")
        );
    }
}
