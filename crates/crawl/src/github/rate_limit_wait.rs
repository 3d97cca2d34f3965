//! The single wait for the rate limit that a command may have.
//!
//! Concurrent requests wait together. A request that started after the wait does not wait again, and none
//! is sent more than twice.

use std::time::Duration;

use crucible_model::Clock;
use crucible_repo::LimitReset;
use tokio::sync::OnceCell;
use tokio::time::sleep;

use crate::observer::CrawlObserver;

/// The longest wait for a reset; a later reset is not awaited.
const MAX_LEN: Duration = Duration::from_secs(120);

/// The wait if GitHub does not state one; its documentation recommends a minute.
const UNSAID: Duration = Duration::from_secs(60);

/// A margin for clock differences and for resets in whole seconds.
const MARGIN: Duration = Duration::from_secs(1);

/// The interval of progress reports during a wait.
const TICK: Duration = Duration::from_secs(1);

/// Whether this command may still wait.
#[derive(Debug, Default)]
pub(super) struct RateLimitWait {
    waited: OnceCell<()>,
}

/// Whether a request started before or after the end of the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestStart {
    BeforeTheWait,
    AfterTheWait,
}

/// What a rate-limited request does next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LimitAction {
    /// Send it again; the limit should be reset.
    AskAgain,
    /// Give up; with the time until the reset, if known.
    GiveUp(Option<Duration>),
}

impl RateLimitWait {
    /// The state to remember before a request is sent.
    pub(super) fn begin(&self) -> RequestStart {
        if self.waited.initialized() {
            RequestStart::AfterTheWait
        } else {
            RequestStart::BeforeTheWait
        }
    }

    /// Handles a rate-limited request: it waits if a wait is left and short enough.
    pub(super) async fn handle_limit(
        &self,
        began: RequestStart,
        reset: LimitReset,
        clock: &dyn Clock,
        observer: &dyn CrawlObserver,
    ) -> LimitAction {
        let left = remaining_wait(reset, clock);
        let short = match left {
            _ if began == RequestStart::AfterTheWait => None,
            Some(left) => (left <= MAX_LEN).then_some(left),
            None => Some(UNSAID),
        };
        // Other requests may be waiting, or have waited: this one joins them.
        if let Some(left) = short {
            self.waited
                .get_or_init(|| wait(left + MARGIN, observer))
                .await;
            return LimitAction::AskAgain;
        }
        LimitAction::GiveUp(left)
    }
}

/// The time until the reset; none if GitHub did not state it.
pub(super) fn remaining_wait(reset: LimitReset, clock: &dyn Clock) -> Option<Duration> {
    reset.after.or_else(|| {
        let millis = reset
            .at?
            .unix_millis()
            .saturating_sub(clock.now().unix_millis());
        Some(Duration::from_millis(
            u64::try_from(millis).unwrap_or_default(),
        ))
    })
}

async fn wait(full_duration: Duration, observer: &dyn CrawlObserver) {
    let mut left = full_duration;
    while !left.is_zero() {
        observer.waiting("GitHub's rate limit is exhausted", left);
        let step = left.min(TICK);
        sleep(step).await;
        left = left.saturating_sub(step);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use crucible_host::clock::PinnedClock;
    use crucible_model::Timestamp;
    use tokio::time::Instant;

    use super::*;

    const NOW: u64 = 1_700_000_000;

    #[derive(Default)]
    struct Countdown(Mutex<Vec<u64>>);

    impl CrawlObserver for Countdown {
        fn progress(&self, _: &str) {}

        fn warning(&self, _: &str) {}

        fn waiting(&self, _: &str, left: Duration) {
            self.0.lock().unwrap().push(left.as_secs());
        }
    }

    impl Countdown {
        fn shown_seconds(&self) -> Vec<u64> {
            self.0.lock().unwrap().clone()
        }
    }

    fn clock() -> PinnedClock {
        PinnedClock(Timestamp::from_unix(Duration::from_secs(NOW)))
    }

    fn at(seconds: u64) -> LimitReset {
        LimitReset {
            at: Some(Timestamp::from_unix(Duration::from_secs(seconds))),
            after: None,
        }
    }

    fn after(seconds: u64) -> LimitReset {
        LimitReset {
            at: None,
            after: Some(Duration::from_secs(seconds)),
        }
    }

    async fn met(reset: LimitReset) -> (LimitAction, u64, Vec<u64>) {
        let (patience, countdown, start) = (
            RateLimitWait::default(),
            Countdown::default(),
            Instant::now(),
        );
        let then = patience
            .handle_limit(patience.begin(), reset, &clock(), &countdown)
            .await;
        (then, start.elapsed().as_secs(), countdown.shown_seconds())
    }

    #[tokio::test(start_paused = true)]
    async fn wait_is_limited_to_two_minutes() {
        let (then, took, shown_seconds) = met(at(NOW + 120)).await;
        assert_eq!((then, took), (LimitAction::AskAgain, 121));
        assert_eq!(shown_seconds, (1..=121).rev().collect::<Vec<_>>());
        assert_eq!(met(after(120)).await.0, LimitAction::AskAgain);
        for far in [at(NOW + 121), after(121)] {
            let (then, took, shown_seconds) = met(far).await;
            assert_eq!(
                (then, took),
                (LimitAction::GiveUp(Some(Duration::from_secs(121))), 0)
            );
            assert!(shown_seconds.is_empty());
        }
        assert!(matches!(
            met(at(u64::MAX)).await.0,
            LimitAction::GiveUp(Some(_))
        ));
        assert!(matches!(
            met(after(u64::MAX)).await.0,
            LimitAction::GiveUp(Some(_))
        ));
    }

    #[tokio::test(start_paused = true)]
    async fn past_or_unknown_reset_is_awaited() {
        assert_eq!(
            met(at(NOW - 3600)).await,
            (LimitAction::AskAgain, 1, vec![1])
        );
        assert_eq!(met(at(0)).await.1, 1);
        assert_eq!(met(LimitReset::default()).await.1, 61);
        // A relative time from GitHub needs no clock.
        let both = LimitReset {
            after: Some(Duration::from_secs(5)),
            ..at(NOW + 3600)
        };
        assert_eq!(met(both).await.1, 6);
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_requests_wait_once_together() {
        let (patience, countdown, start) = (
            RateLimitWait::default(),
            Countdown::default(),
            Instant::now(),
        );
        let clock = clock();
        let one = |reset| patience.handle_limit(patience.begin(), reset, &clock, &countdown);
        let thens = tokio::join!(
            one(at(NOW + 10)),
            one(after(100)),
            one(LimitReset::default())
        );
        assert_eq!(
            thens,
            (
                LimitAction::AskAgain,
                LimitAction::AskAgain,
                LimitAction::AskAgain
            )
        );
        assert_eq!(start.elapsed().as_secs(), 11);
        assert_eq!(countdown.shown_seconds().len(), 11);
        assert_eq!(
            one(at(NOW + 10)).await,
            LimitAction::GiveUp(Some(Duration::from_secs(10)))
        );
        assert_eq!(start.elapsed().as_secs(), 11);
        // A request that was in flight during the wait is repeated at once.
        assert_eq!(
            patience
                .handle_limit(
                    RequestStart::BeforeTheWait,
                    at(NOW + 10),
                    &clock,
                    &countdown
                )
                .await,
            LimitAction::AskAgain
        );
        assert_eq!(start.elapsed().as_secs(), 11);
    }

    #[tokio::test(start_paused = true)]
    async fn dropped_wait_is_still_available() {
        let (patience, countdown) = (RateLimitWait::default(), Countdown::default());
        let clock = clock();
        let wait = patience.handle_limit(patience.begin(), after(60), &clock, &countdown);
        assert!(
            tokio::time::timeout(Duration::from_secs(5), wait)
                .await
                .is_err()
        );
        assert_eq!(patience.begin(), RequestStart::BeforeTheWait);
        assert_eq!(
            patience
                .handle_limit(patience.begin(), after(3), &clock, &countdown)
                .await,
            LimitAction::AskAgain
        );
    }
}
