//! Side-by-side measurement: A B A B …, so that a machine that slows down slows both, then medians.

use std::time::{Duration, Instant};

use crate::error::TaskError;

/// One comparison with its measurements.
#[derive(Debug, Clone)]
pub(super) struct Case {
    /// The bench it belongs to.
    pub(super) bench: &'static str,
    /// What of ours is measured.
    pub(super) ours: String,
    /// What it is measured beside.
    pub(super) beside: String,
    /// The measurements.
    pub(super) pair: Pair,
    /// What is asked of it.
    pub(super) goal: Goal,
}

/// The times of both sides, round by round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) ours: Vec<Duration>,
    pub(super) beside: Vec<Duration>,
}

/// What is asked of a case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Goal {
    /// Our median takes at most this long.
    TimeAtMost(Duration),
    /// Our median takes at most this many times as long as the other.
    TimesAtMost(f64),
    /// What our median takes beyond the part that was measured apart is at most this many times the other's.
    TimesAtMostBeyond {
        /// How many times the other's median.
        times: f64,
        /// The median of the part that does not count.
        apart: Duration,
    },
    /// Our median is at most this much longer than the other.
    MoreAtMost(Duration),
    /// Our process had at most this many bytes resident; the times only stand beside it.
    MemoryAtMost {
        /// The most that was seen in any round.
        peak: u64,
        /// The most there may be.
        most: u64,
    },
    /// Our process and its children made at most so many calls of the system; the times only stand beside it.
    CallsAtMost {
        /// How many were seen.
        seen: usize,
        /// The most there may be.
        most: usize,
    },
    /// We run at least at this share of the other's speed.
    SpeedAtLeast(f64),
    /// We get through this many bytes at no less than so many megabytes (10⁶) a second.
    BytesPerSecond {
        /// What one round of ours works through.
        bytes: u64,
        /// The least megabytes a second.
        megabytes: f64,
    },
}

impl Case {
    /// Whether the goal is reached.
    pub(super) fn reached(&self) -> bool {
        match self.goal {
            Goal::TimeAtMost(most) => median(&self.pair.ours) <= most,
            Goal::TimesAtMost(most) => self.pair.ratio() <= most,
            Goal::TimesAtMostBeyond { times, apart } => self.pair.ratio_beyond(apart) <= times,
            Goal::MoreAtMost(most) => {
                median(&self.pair.ours) <= median(&self.pair.beside).saturating_add(most)
            }
            Goal::MemoryAtMost { peak, most } => peak <= most,
            Goal::CallsAtMost { seen, most } => seen <= most,
            Goal::SpeedAtLeast(least) => 1.0 / self.pair.ratio() >= least,
            Goal::BytesPerSecond { bytes, megabytes } => {
                rate(bytes, median(&self.pair.ours)) >= megabytes
            }
        }
    }

    /// What was measured against the goal, in the goal's own unit, and the goal.
    pub(super) fn verdict(&self) -> (String, String) {
        match self.goal {
            Goal::TimeAtMost(most) => (
                milliseconds(median(&self.pair.ours)),
                format!("at most {}", milliseconds(most)),
            ),
            Goal::TimesAtMost(most) => (
                format!("{:.2} times", self.pair.ratio()),
                format!("at most {most:.2} times"),
            ),
            Goal::TimesAtMostBeyond { times, apart } => (
                format!(
                    "{:.2} times beyond {}",
                    self.pair.ratio_beyond(apart),
                    milliseconds(apart)
                ),
                format!("at most {times:.2} times"),
            ),
            Goal::MoreAtMost(most) => (
                format!("{:+.3} ms", self.pair.difference()),
                format!("at most +{}", milliseconds(most)),
            ),
            Goal::MemoryAtMost { peak, most } => (
                format!("{} resident", megabytes(peak)),
                format!("at most {}", megabytes(most)),
            ),
            Goal::CallsAtMost { seen, most } => {
                (format!("{seen} calls"), format!("at most {most}"))
            }
            Goal::SpeedAtLeast(least) => (
                format!("{:.2} of its speed", 1.0 / self.pair.ratio()),
                format!("at least {least:.2}"),
            ),
            Goal::BytesPerSecond { bytes, megabytes } => (
                format!("{:.0} MB/s", rate(bytes, median(&self.pair.ours))),
                format!("at least {megabytes:.0} MB/s"),
            ),
        }
    }
}

impl Pair {
    /// Our median over the other's.
    pub(super) fn ratio(&self) -> f64 {
        self.ratio_beyond(Duration::ZERO)
    }

    /// What our median takes beyond the other's, in milliseconds; less than nothing when ours is the shorter one.
    fn difference(&self) -> f64 {
        (median(&self.ours).as_secs_f64() - median(&self.beside).as_secs_f64()) * 1e3
    }

    /// Our median without `apart`, over the other's median.
    fn ratio_beyond(&self, duration: Duration) -> f64 {
        let ours = median(&self.ours).saturating_sub(duration).as_secs_f64();
        ours / median(&self.beside).as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// Runs both sides in turn, once for warmth and then `rounds` times for the record. Each side returns the
/// time that counts, so that what it prepares and clears away does not.
pub(super) fn side_by_side(
    rounds: u32,
    mut ours: impl FnMut() -> Result<Duration, TaskError>,
    mut beside: impl FnMut() -> Result<Duration, TaskError>,
) -> Result<Pair, TaskError> {
    ours()?;
    beside()?;
    let mut pair = Pair {
        ours: Vec::new(),
        beside: Vec::new(),
    };
    for _ in 0..rounds {
        pair.ours.push(ours()?);
        pair.beside.push(beside()?);
    }
    Ok(pair)
}

/// How long `work` takes. What it returns is given back, so that the compiler cannot leave the work out.
pub(super) fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let value = std::hint::black_box(work());
    (start.elapsed(), value)
}

/// The middle of the times; of an even number, the mean of the two in the middle.
pub(super) fn median(times: &[Duration]) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let at = |index: usize| sorted.get(index).copied().unwrap_or_default();
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        at(middle)
    } else {
        (at(middle.saturating_sub(1)) + at(middle)) / 2
    }
}

/// A time as a person reads it.
pub(super) fn milliseconds(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

fn megabytes(bytes: u64) -> String {
    let tenths = bytes / 100_000;
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a rate for people, far below 2^53 bytes"
)]
fn rate(bytes: u64, time: Duration) -> f64 {
    bytes as f64 / 1e6 / time.as_secs_f64().max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn case(own_count: u64, beside: u64, goal: Goal) -> Case {
        let pair = Pair {
            ours: vec![Duration::from_millis(own_count)],
            beside: vec![Duration::from_millis(beside)],
        };
        Case {
            bench: "b",
            ours: "ours".to_owned(),
            beside: "beside".to_owned(),
            pair,
            goal,
        }
    }

    #[test]
    fn sides_alternate_and_first_round_is_discarded() {
        let turns = RefCell::new(String::new());
        let side = |name: char| {
            turns.borrow_mut().push(name);
            Ok(Duration::from_millis(1))
        };
        let pair = side_by_side(3, || side('a'), || side('b')).unwrap();
        assert_eq!(turns.into_inner(), "abababab");
        assert_eq!((pair.ours.len(), pair.beside.len()), (3, 3));
    }

    #[test]
    fn the_median_ignores_the_odd_slow_round() {
        let times = |list: &[u64]| {
            list.iter()
                .map(|ms| Duration::from_millis(*ms))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            median(&times(&[9000, 2, 1, 3, 2])),
            Duration::from_millis(2)
        );
        assert_eq!(median(&times(&[1, 3])), Duration::from_millis(2));
        assert_eq!(median(&[]), Duration::ZERO);
    }

    #[test]
    fn goals_are_reached_or_not() {
        assert!(case(9, 1, Goal::TimeAtMost(Duration::from_millis(10))).reached());
        assert!(!case(11, 1, Goal::TimeAtMost(Duration::from_millis(10))).reached());
        assert!(case(3, 2, Goal::TimesAtMost(1.5)).reached());
        assert!(!case(4, 2, Goal::TimesAtMost(1.5)).reached());
        let beyond = |own_count| {
            let goal = Goal::TimesAtMostBeyond {
                times: 1.5,
                apart: Duration::from_millis(4),
            };
            case(own_count, 2, goal).reached()
        };
        assert!(beyond(7) && !beyond(8));
        let one_more = Goal::MoreAtMost(Duration::from_millis(1));
        assert!(case(9, 8, one_more).reached() && case(3, 8, one_more).reached());
        assert!(!case(10, 8, one_more).reached());
        assert_eq!(case(10, 8, one_more).verdict().0, "+2.000 ms");
        assert_eq!(case(7, 8, one_more).verdict().0, "-1.000 ms");
        let memory = |peak| {
            case(
                1,
                1,
                Goal::MemoryAtMost {
                    peak,
                    most: 40_000_000,
                },
            )
        };
        assert!(memory(40_000_000).reached() && !memory(40_000_001).reached());
        assert_eq!(
            memory(23_456_789).verdict(),
            ("23.4 MB resident".to_owned(), "at most 40.0 MB".to_owned())
        );
        assert!(case(10, 8, Goal::SpeedAtLeast(0.8)).reached());
        assert!(!case(10, 7, Goal::SpeedAtLeast(0.8)).reached());
        assert!(
            case(
                10,
                1,
                Goal::BytesPerSecond {
                    bytes: 2_000_000,
                    megabytes: 200.0
                }
            )
            .reached()
        );
        assert!(
            !case(
                11,
                1,
                Goal::BytesPerSecond {
                    bytes: 2_000_000,
                    megabytes: 200.0
                }
            )
            .reached()
        );
    }
}
