//! A request that was sent on, until it is recorded.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crucible_secrets::Scanner;
use tokio::sync::mpsc;

use super::exchanges::Exchange;
use super::refusal::Refusal;
use super::{Shared, lock, on_blocking_thread};

/// An exchange that is recorded when this is dropped, if it was not before: a task can be ended at any await.
pub(super) struct InFlight {
    shared: Arc<Shared>,
    exchange: Exchange,
    is_recorded: bool,
    /// Keeps the endpoint from closing; dropped last.
    _open: mpsc::Sender<()>,
}

impl InFlight {
    /// Returns nothing if the endpoint is over.
    pub(super) fn new(shared: &Arc<Shared>, exchange: Exchange) -> Option<Self> {
        let open = lock(&shared.in_flight).clone()?;
        Some(Self {
            shared: Arc::clone(shared),
            exchange,
            is_recorded: false,
            _open: open,
        })
    }

    /// Records the exchange as it is.
    pub(super) async fn record(mut self) -> Result<(), Refusal> {
        // Whoever waits may be ended, but not the blocking thread that owns this.
        on_blocking_thread(move || {
            self.is_recorded = true;
            let exchange = self.exchange.clone();
            self.shared.exchanges.append(exchange, Scanner::builtin())
        })
        .await
    }
}

impl Deref for InFlight {
    type Target = Exchange;

    fn deref(&self) -> &Exchange {
        &self.exchange
    }
}

impl DerefMut for InFlight {
    fn deref_mut(&mut self) -> &mut Exchange {
        &mut self.exchange
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if self.is_recorded {
            return;
        }
        let mut exchange = self.exchange.clone();
        exchange.refused = Some("the agent did not wait for the answer".to_owned());
        // The reservation stays, so nothing is unaccounted for if this fails.
        let _unwritten = self.shared.exchanges.append(exchange, Scanner::builtin());
    }
}
