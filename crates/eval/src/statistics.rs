//! The statistics of an evaluation: Wilson's interval for a proportion, and the exact test for paired outcomes.

use serde::{Deserialize, Serialize};

/// The 97.5th percentile of the standard normal distribution: intervals have a confidence of 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// A confidence interval within 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// Returns Wilson's 95 % score interval of a proportion observed in `n` independent tasks. For no task it
/// covers everything.
#[must_use]
pub(crate) fn wilson(proportion: f64, n: u64) -> Interval {
    if n == 0 {
        return Interval {
            low: 0.0,
            high: 1.0,
        };
    }
    let (p, n) = (proportion.clamp(0.0, 1.0), n as f64);
    let z2 = Z * Z;
    let centre = p + z2 / (2.0 * n);
    let half = Z * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z2 / n;
    // At the ends the formula gives 0 and 1, except for rounding.
    let low = if p == 0.0 {
        0.0
    } else {
        (centre - half) / scale
    };
    let high = if p == 1.0 {
        1.0
    } else {
        (centre + half) / scale
    };
    Interval {
        low: low.clamp(0.0, 1.0),
        high: high.clamp(0.0, 1.0),
    }
}

/// The two-sided exact p-value of McNemar's test: `only_first` tasks were right for the first configuration alone, `only_second` for the
/// second alone.
#[must_use]
pub(crate) fn exact_mcnemar(only_first: u64, only_second: u64) -> f64 {
    let n = only_first.saturating_add(only_second);
    if n == 0 {
        return 1.0;
    }
    // By logarithms: a power of one half would be zero from n = 1075 on.
    let mut log_term = n as f64 * 0.5f64.ln();
    let mut tail = log_term.exp();
    for k in 1..=only_first.min(only_second) {
        log_term += ((n - k + 1) as f64).ln() - (k as f64).ln();
        tail += log_term.exp();
    }
    (2.0 * tail).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_near(actual: f64, expected: f64) -> bool {
        (actual - expected).abs() < 5e-5
    }

    #[test]
    fn wilson_matches_published_values() {
        // Newcombe 1998, table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
        for (right, n, low, high) in [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0000, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] {
            let interval = wilson(f64::from(right) / f64::from(n), u64::from(n as u32));
            assert!(
                is_near(interval.low, low) && is_near(interval.high, high),
                "{right}/{n}: {interval:?}"
            );
        }
        assert_eq!(wilson(1.0, 3).high, 1.0);
        assert_eq!(
            wilson(0.5, 0),
            Interval {
                low: 0.0,
                high: 1.0
            }
        );
    }

    #[test]
    fn exact_test_adds_up_the_binomial_tail() {
        assert_eq!(exact_mcnemar(0, 0), 1.0);
        assert_eq!(exact_mcnemar(4, 4), 1.0);
        assert!(is_near(exact_mcnemar(0, 5), 0.0625));
        assert!(is_near(exact_mcnemar(8, 1), 2.0 * 10.0 / 512.0));
        assert_eq!(exact_mcnemar(8, 1), exact_mcnemar(1, 8));
        assert!(exact_mcnemar(0, 5000) < 1e-300);
    }
}
