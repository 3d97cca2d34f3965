//! The ids of receipts: `design-20241201-100000-0002`, which is phase, time and sequence number.

use std::fmt;
use std::str::FromStr;

use crucible_model::Timestamp;

use crate::phase_id::PhaseId;

/// The id of a receipt, which states its phase and its sequence number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptId {
    text: String,
    phase: PhaseId,
    sequence: u64,
}

impl ReceiptId {
    /// Creates the id for this sequence number.
    #[must_use]
    pub fn new(phase: PhaseId, at: Timestamp, sequence: u64) -> Self {
        let digits: String = at.compact().chars().filter(char::is_ascii_digit).collect();
        let (day, time) = digits.split_at_checked(8).unwrap_or((&digits, ""));
        Self {
            text: format!("{phase}-{day}-{time}-{sequence:04}"),
            phase,
            sequence,
        }
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the phase that the id names.
    #[must_use]
    pub fn phase(&self) -> PhaseId {
        self.phase
    }

    /// Its sequence number among the receipts of the spec, from 1.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The second in which the phase began, according to the id; none if that is not a valid time.
    #[must_use]
    pub fn began(&self) -> Option<Timestamp> {
        let mut parts = self.text.split('-').skip(1);
        let (day, time) = (parts.next()?, parts.next()?);
        let part = |text: &'_ str, from: usize, to: usize| text.get(from..to).map(str::to_owned);
        let (year, month, date) = (part(day, 0, 4)?, part(day, 4, 6)?, part(day, 6, 8)?);
        let (hour, minute, second) = (part(time, 0, 2)?, part(time, 2, 4)?, part(time, 4, 6)?);
        format!("{year}-{month}-{date}T{hour}:{minute}:{second}Z")
            .parse()
            .ok()
    }

    /// The name of its file.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}.json", self.text)
    }
}

/// The text is not a receipt id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a receipt id, such as design-20241201-100000-0002")]
pub struct ReceiptIdError;

impl FromStr for ReceiptId {
    type Err = ReceiptIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.split('-');
        let parsed = (|| {
            let phase: PhaseId = parts.next()?.parse().ok()?;
            let digits = |part: &str, most: std::ops::RangeInclusive<usize>| {
                most.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
            };
            let (day, time, place) = (parts.next()?, parts.next()?, parts.next()?);
            let is_complete = digits(day, 8..=8)
                && digits(time, 6..=6)
                && digits(place, 4..=18)
                && parts.next().is_none();
            let sequence: u64 = place.parse().ok()?;
            // Each number has exactly one spelling.
            (is_complete && sequence > 0 && format!("{sequence:04}") == place)
                .then_some((phase, sequence))
        })();
        let (phase, sequence) = parsed.ok_or(ReceiptIdError)?;
        Ok(Self {
            text: text.to_owned(),
            phase,
            sequence,
        })
    }
}

impl fmt::Display for ReceiptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_tells_its_phase_and_its_place() {
        let id = ReceiptId::new(PhaseId::Design, "2024-12-01T10:00:00Z".parse().unwrap(), 2);
        assert_eq!(id.as_str(), "design-20241201-100000-0002");
        assert_eq!(id.as_str().parse(), Ok(id.clone()));
        assert_eq!(
            (id.phase(), id.sequence(), id.file_name()),
            (PhaseId::Design, 2, format!("{id}.json"))
        );
        let large = ReceiptId::new(
            PhaseId::Final,
            "2024-12-01T10:00:00Z".parse().unwrap(),
            123_456,
        );
        assert_eq!(large.as_str().parse(), Ok(large));
        assert_eq!(id.began(), "2024-12-01T10:00:00Z".parse().ok());
        let never: ReceiptId = "design-20241301-100000-0002".parse().unwrap();
        assert_eq!(never.began(), None);
        for bad in [
            "",
            "design",
            "design-2024-100000-0002",
            "x-20241201-100000-0002",
            "design-20241201-100000-02",
            "design-20241201-100000-0000",
            "design-20241201-100000-00002",
            "design-20241201-100000-0002-dry",
        ] {
            assert!(bad.parse::<ReceiptId>().is_err(), "{bad}");
        }
    }
}
