//! A forwarded request that is not recorded yet.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crucible_secrets::Scanner;
use tokio::sync::mpsc;

use super::exchanges::Exchange;
use super::refusal::Refusal;
use super::{Shared, lock, on_blocking_thread};

/// Records its exchange on drop, unless it was recorded before: a task can be cancelled at any await.
pub(super) struct InFlight {
    shared: Arc<Shared>,
    exchange: Exchange,
    is_recorded: bool,
    /// Keeps the endpoint from closing; dropped last.
    open: mpsc::Sender<()>,
}

impl InFlight {
    /// Returns `None` if the endpoint is closed.
    pub(super) fn new(shared: &Arc<Shared>, exchange: Exchange) -> Option<Self> {
        let open = lock(&shared.in_flight).clone()?;
        Some(Self {
            shared: Arc::clone(shared),
            exchange,
            is_recorded: false,
            open,
        })
    }

    /// Returns what keeps the endpoint from closing.
    pub(super) fn keep_open(&self) -> mpsc::Sender<()> {
        self.open.clone()
    }

    /// Records the exchange as it is.
    pub(super) async fn record(mut self) -> Result<(), Refusal> {
        // The waiting task can be cancelled; the blocking thread that owns `self` cannot.
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
