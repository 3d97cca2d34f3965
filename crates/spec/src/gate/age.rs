//! Parses and formats ages of phases: `90s`, `30m`, `12h`, `7d`, `2w`.

use std::time::Duration;

/// The units with their seconds, the largest first.
const UNITS: [(char, u64); 5] = [
    ('w', 604_800),
    ('d', 86_400),
    ('h', 3_600),
    ('m', 60),
    ('s', 1),
];

/// An invalid age.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgeError {
    /// It has no unit.
    #[error(
        "an age without a unit; use {number}s, {number}m, {number}h, {number}d or {number}w (seconds, minutes, hours, days, weeks)"
    )]
    NoUnit {
        /// The digits that were given.
        number: String,
    },
    /// The age is zero, which no phase can meet.
    #[error("an age of zero can never pass; use an age such as 90s, 30m, 12h, 7d or 2w")]
    Zero,
    /// The age overflows.
    #[error("the age is too large; use one such as 90s, 30m, 12h, 7d or 2w")]
    TooLong,
    /// It is not a number with a unit.
    #[error(
        "invalid age {text:?}; write a whole number with a unit, such as 90s, 30m, 12h, 7d or 2w"
    )]
    Malformed {
        /// The text, shortened.
        text: String,
    },
}

/// Parses an age: a whole number and `s`, `m`, `h`, `d` or `w`.
///
/// # Errors
///
/// Fails for a number without a unit, for zero, for an overflow in milliseconds, and for any other text.
pub fn parse_age(text: &str) -> Result<Duration, AgeError> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let short = || text.chars().take(24).collect();
    if !number {
        return Err(AgeError::Malformed { text: short() });
    }
    let unit = text.strip_prefix(digits).unwrap_or_default();
    if unit.is_empty() {
        return Err(AgeError::NoUnit { number: short() });
    }
    let Some((_, seconds)) = UNITS.iter().find(|(letter, _)| unit.chars().eq([*letter])) else {
        return Err(AgeError::Malformed { text: short() });
    };
    let count: u64 = digits.parse().map_err(|_| AgeError::TooLong)?;
    let total = count
        .checked_mul(*seconds)
        .filter(|total| total.checked_mul(1_000).is_some());
    match total.ok_or(AgeError::TooLong)? {
        0 => Err(AgeError::Zero),
        total => Ok(Duration::from_secs(total)),
    }
}

/// Formats an age in its two largest units that are not zero: `3d 4h`, `59m`, `2w`, `1m 30s`.
#[must_use]
pub fn age_words(age: Duration) -> String {
    let total = age.as_secs();
    let Some(first) = UNITS.iter().position(|(_, seconds)| total >= *seconds) else {
        return "0s".to_owned();
    };
    let mut left = total;
    let mut words = Vec::new();
    for (letter, seconds) in UNITS.iter().skip(first).take(2) {
        let count = left / seconds;
        left %= seconds;
        if count > 0 {
            words.push(format!("{count}{letter}"));
        }
    }
    words.join(" ")
}

/// Formats an allowed age in the usual form: a single week as days.
#[must_use]
pub(crate) fn limit_words(limit: Duration) -> String {
    let days = limit.as_secs() / 86_400;
    match days {
        7..14 if limit.as_secs().is_multiple_of(86_400) => format!("{days}d"),
        _ => age_words(limit),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn age_is_whole_number_with_unit() {
        for (text, seconds) in [
            ("1s", 1),
            ("90s", 90),
            ("30m", 1_800),
            ("12h", 43_200),
            ("7d", 604_800),
            ("2w", 1_209_600),
            ("007d", 604_800),
        ] {
            assert_eq!(parse_age(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(
            parse_age("7"),
            Err(AgeError::NoUnit {
                number: "7".to_owned()
            })
        );
        assert!(
            parse_age("7").unwrap_err().to_string().contains("7d"),
            "the hint shows how"
        );
        assert_eq!(
            (parse_age("0d"), parse_age("000w")),
            (Err(AgeError::Zero), Err(AgeError::Zero))
        );
        assert_eq!(parse_age("0s"), Err(AgeError::Zero));
        for long in [
            "18446744073709551615w",
            "99999999999999999999999d",
            "18446744073709551615m",
        ] {
            assert_eq!(parse_age(long), Err(AgeError::TooLong), "{long}");
        }
        for bad in [
            "", "d", "-7d", "+7d", "7 d", " 7d", "7d ", "7dd", "1h30m", "1.5h", "7D", "٧d", "7y",
            "7days", "0x7d", "5seconds", "5S", "1.5s",
        ] {
            assert!(
                matches!(parse_age(bad), Err(AgeError::Malformed { .. })),
                "{bad:?}: {:?}",
                parse_age(bad)
            );
        }
    }

    #[test]
    fn age_is_shown_in_two_largest_units() {
        let age_text = |seconds| age_words(Duration::from_secs(seconds));
        assert_eq!(age_text(0), "0s");
        assert_eq!(age_text(59), "59s");
        assert_eq!(age_text(60), "1m");
        assert_eq!(age_text(3_661), "1h 1m");
        assert_eq!(age_text(90_000), "1d 1h");
        assert_eq!(age_text(86_460), "1d", "a minute more than a day");
        assert_eq!(age_text(1_209_600), "2w");
        let allowed = |text| limit_words(parse_age(text).unwrap());
        for text in ["30s", "30m", "12h", "7d", "8d", "2w"] {
            assert_eq!(allowed(text), text);
        }
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn what_is_read_is_what_was_written(count in 1u64..1_000_000, unit in 0usize..UNITS.len()) {
                let (letter, seconds) = UNITS[unit];
                prop_assert_eq!(parse_age(&format!("{count}{letter}")), Ok(Duration::from_secs(count * seconds)));
            }

            #[test]
            fn no_text_breaks_the_reader(text in any::<String>()) {
                let _ = parse_age(&text);
            }
        }
    }
}
