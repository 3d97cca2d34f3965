//! The changes of the ledger as server-sent events: one line for each change, without content.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use crucible_ledger::Ledger;
use futures_util::stream;
use tokio::time::sleep;

/// How long to wait between two looks at the ledger.
const PAUSE: Duration = Duration::from_millis(50);
/// How many looks come between two lines that keep the connection open.
const QUIET: u32 = 200;

/// What is known of the ledger.
struct Watched {
    ledger: Ledger,
    head: u64,
    guard: Option<LiveGuard>,
}

/// Counts a stream for as long as it lives.
pub(crate) struct LiveGuard(std::sync::Arc<std::sync::atomic::AtomicUsize>);

impl LiveGuard {
    /// Counts one more stream; `None` if there are `most` already.
    pub(crate) fn new(
        count: &std::sync::Arc<std::sync::atomic::AtomicUsize>,
        most: usize,
    ) -> Option<Self> {
        use std::sync::atomic::Ordering::Relaxed;
        let added = count.fetch_update(Relaxed, Relaxed, |streams| {
            (streams < most).then_some(streams + 1)
        });
        added.ok().map(|_| Self(std::sync::Arc::clone(count)))
    }
}

impl Drop for LiveGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
    }
}

/// Returns the body of a stream that ends when the reader leaves or the ledger cannot be read.
pub(crate) fn changes(ledger: Ledger, guard: LiveGuard) -> Body {
    let head = ledger.head().map_or(0, |head| head.seq);
    let watched = Watched {
        ledger,
        head,
        guard: Some(guard),
    };
    Body::from_stream(stream::unfold(watched, |mut watched| async move {
        for _ in 0..QUIET {
            sleep(PAUSE).await;
            let head = watched.ledger.head().ok()?.seq;
            if head != watched.head {
                watched.head = head;
                return line(b"event: changed\ndata:\n\n", watched);
            }
        }
        line(b": quiet\n\n", watched)
    }))
}

type Line = Option<(Result<Bytes, Infallible>, Watched)>;

fn line(text: &'static [u8], watched: Watched) -> Line {
    watched.guard.as_ref()?;
    Some((Ok(Bytes::from_static(text)), watched))
}
