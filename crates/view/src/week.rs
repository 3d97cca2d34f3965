//! Weeks, which begin on Monday in UTC.

use std::time::Duration;

use crucible_model::Timestamp;

const DAY_MS: i64 = 86_400_000;

/// A week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Week(i64);

impl Week {
    /// Returns the week of an instant.
    #[must_use]
    pub fn from_instant(instant: Timestamp) -> Self {
        // The first of January 1970 was a Thursday.
        Self((instant.unix_millis().div_euclid(DAY_MS) + 3).div_euclid(7))
    }

    /// Its Monday, `YYYY-MM-DD`.
    #[must_use]
    pub fn first_day(self) -> String {
        let days = u64::try_from(self.0.saturating_mul(7) - 3).unwrap_or(0);
        let instant = Timestamp::from_unix(Duration::from_secs(days.saturating_mul(86_400)));
        instant.to_string().chars().take(10).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn week_begins_on_monday() {
        let week = |text: &str| Week::from_instant(text.parse().unwrap());
        let monday = week("2026-01-05T00:00:00Z");
        assert_eq!(monday, week("2026-01-11T23:59:59.999Z"));
        assert!(monday < week("2026-01-12T00:00:00Z"));
        assert_eq!(monday.first_day(), "2026-01-05");
        assert_eq!(week("1970-01-01T00:00:00Z").first_day(), "1970-01-01");
    }
}
