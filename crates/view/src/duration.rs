//! Durations for people.

/// Returns milliseconds in the largest units that fit.
#[must_use]
pub fn duration(millis: u64) -> String {
    let seconds = millis / 1000;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0) => format!("{millis} ms"),
        (0, 0, seconds) => format!("{seconds}.{} s", millis % 1000 / 100),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_fit_the_length() {
        for (millis, text) in [
            (7, "7 ms"),
            (59_999, "59.9 s"),
            (60_000, "1 min 0 s"),
            (3_660_000, "1 h 1 min"),
        ] {
            assert_eq!(duration(millis), text);
        }
    }
}
