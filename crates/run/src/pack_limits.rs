//! Derives the size limits of a context pack from the model's context window, if known. Pure.

use crate::role::librarian::more::PART;

/// A token is at least about this many bytes of source.
const BYTES_PER_TOKEN: u64 = 3;

/// Tokens of a prompt besides the pack: the goal, gate output, an earlier change, the answer format.
const RESERVE: u64 = 2048;

/// Bounds of the derived bytes: less shows nothing, and a larger pack costs more than it helps.
const BYTES: (u64, u64) = (2_000, 240_000);

/// Bytes of a pack for each file of it.
const BYTES_PER_FILE: u64 = 3_000;

/// The limits of a context pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackLimits {
    /// Files at the most.
    pub max_files: u64,
    /// Bytes at the most.
    pub max_total_bytes: u64,
}

impl PackLimits {
    /// Returns the limits for a context window of `window` tokens, question and answer together, with at most
    /// `answer` tokens of answer and `requests` further file requests. `defaults` apply without a known
    /// window and for the number of files.
    #[must_use]
    pub(crate) fn for_window(window: u64, answer: u64, requests: u64, defaults: Self) -> Self {
        // An answer that may be longer than half of the window never is.
        let question = window
            .saturating_sub(answer.min(window / 2))
            .saturating_sub(RESERVE);
        // Each request adds one part in `PART` to the pack.
        let bytes =
            question.saturating_mul(BYTES_PER_TOKEN) / PART.saturating_add(requests).max(1) * PART;
        let max_total_bytes = bytes.clamp(BYTES.0, BYTES.1);
        Self {
            max_files: defaults.max_files.max(max_total_bytes / BYTES_PER_FILE),
            max_total_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULTS: PackLimits = PackLimits {
        max_files: 20,
        max_total_bytes: 60_000,
    };

    fn limits(window: u64, answer: u64, requests: u64) -> (u64, u64) {
        let PackLimits {
            max_files,
            max_total_bytes,
        } = PackLimits::for_window(window, answer, requests, DEFAULTS);
        (max_files, max_total_bytes)
    }

    #[test]
    fn pack_limit_reserves_answer_and_requests() {
        assert_eq!(limits(8_192, 4_096, 0), (20, 6_144));
        assert_eq!(limits(8_192, 4_096, 2), (20, 3_684));
        assert_eq!(limits(32_768, 4_096, 2), (20, 47_922));
        assert_eq!(limits(65_536, 4_096, 2), (35, 106_905));
        assert_eq!(limits(200_000, 16_000, 2), (80, 240_000));
        for window in [1, 2_048, 16_384, 100_000] {
            let (_, bytes) = limits(window, 4_096, 2);
            let sent = bytes * 5 / 3 / BYTES_PER_TOKEN + 4_096 + RESERVE;
            assert!(bytes == BYTES.0 || sent <= window, "{window}: {sent}");
        }
    }

    #[test]
    fn extreme_windows_are_clamped() {
        assert_eq!(limits(0, u64::MAX, u64::MAX), (20, BYTES.0));
        assert_eq!(limits(u64::MAX, 0, 0), (80, BYTES.1));
    }
}
