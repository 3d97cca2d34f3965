//! Model calls: what was paid, and what was asked.

use crucible_ledger::{CallRow, CallState, MicroDollars, Settlement, Usage};
use crucible_llm::CostBasis;
use crucible_model::{Digest, Timestamp};
use crucible_run::Exchange;
use serde::{Deserialize, Serialize};

use crate::list::elapsed_ms;
use crate::text::RedactedText;

/// What some model calls used together, as the budget of a run counts it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Calls, failed ones included.
    pub calls: u64,
    /// Calls of them that are open; they count with what they reserved.
    pub open_calls: u64,
    /// Tokens, in and out together.
    pub tokens: u64,
    /// The cost in millionths of a US dollar.
    pub micro_dollars: u64,
}

impl Totals {
    pub(crate) fn of_usage(usage: &Usage) -> Self {
        Self {
            calls: usage.calls,
            open_calls: usage.open,
            tokens: usage.tokens,
            micro_dollars: usage.cost.0,
        }
    }

    /// Adds other totals.
    pub fn add(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.open_calls = self.open_calls.saturating_add(other.open_calls);
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.micro_dollars = self.micro_dollars.saturating_add(other.micro_dollars);
    }
}

/// One model call, as it was reserved and settled: the source of every total.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallView {
    /// Its number in the run, from 1.
    pub number: u64,
    /// The provider.
    pub provider: RedactedText,
    /// The model.
    pub model: RedactedText,
    /// The digest of the request.
    pub request: Digest,
    /// 1 for the first call with this request in the run.
    pub attempt: u32,
    /// When it was reserved.
    pub started_at: Timestamp,
    /// When it ended; absent while it is open.
    pub ended_at: Option<Timestamp>,
    /// Its duration in milliseconds; absent while it is open.
    pub elapsed_ms: Option<u64>,
    /// `ok`, or the class of the failure; absent while it is open.
    pub outcome: Option<RedactedText>,
    /// Input tokens, if reported.
    pub tokens_in: Option<u64>,
    /// Output tokens, if reported.
    pub tokens_out: Option<u64>,
    /// The tokens that count: the reported ones, or the reserved ones.
    pub tokens: u64,
    /// The cost that counts, in millionths of a US dollar: the known one, or the reserved one.
    pub micro_dollars: u64,
    /// Whether the cost is known. Otherwise it is the reserved one.
    pub is_cost_known: bool,
}

impl CallView {
    pub(crate) fn of_row(row: &CallRow) -> Self {
        let end: Option<&Settlement> = match &row.state {
            CallState::Reserved => None,
            CallState::Settled(end) => Some(end),
        };
        let tokens = end.map(|end| (end.tokens_in, end.tokens_out));
        let (tokens_in, tokens_out) = tokens.unwrap_or_default();
        let reported = match (tokens_in, tokens_out) {
            (None, None) => None,
            (input, output) => Some(input.unwrap_or(0).saturating_add(output.unwrap_or(0))),
        };
        let cost = end.and_then(|end| end.cost);
        let MicroDollars(micro_dollars) = cost.unwrap_or(row.call.cost);
        Self {
            number: row.seq,
            provider: RedactedText::new(&row.call.provider),
            model: RedactedText::new(&row.call.model),
            request: row.call.request,
            attempt: row.attempt,
            started_at: row.call.ts,
            ended_at: end.map(|end| end.ts),
            elapsed_ms: end.map(|end| elapsed_ms(row.call.ts, end.ts)),
            outcome: end.map(|end| RedactedText::new(&end.outcome)),
            tokens_in,
            tokens_out,
            tokens: reported.unwrap_or(row.call.tokens),
            micro_dollars,
            is_cost_known: cost.is_some(),
        }
    }
}

/// One question to a model or an agent, and its end, as the run's receipt has it. A council or an agent makes several calls
/// for one question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExchangeView {
    /// The number of the event that ended it.
    pub event: u64,
    /// The role that asked.
    pub role: RedactedText,
    /// When it was asked, if an event tells.
    pub asked_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Timestamp,
    /// The provider.
    pub provider: RedactedText,
    /// The model that answered; for a failed question, the requested one.
    pub model: RedactedText,
    /// The attempt that it belongs to, if it proposes a change.
    pub attempt: Option<u64>,
    /// Input tokens, if reported.
    pub tokens_in: Option<u64>,
    /// Output tokens, if reported.
    pub tokens_out: Option<u64>,
    /// The cost in millionths of a US dollar, if known.
    pub micro_dollars: Option<u64>,
    /// The basis of the cost, if known.
    pub cost_basis: Option<CostBasis>,
    /// The class of the error, if it failed.
    pub error: Option<RedactedText>,
}

impl ExchangeView {
    pub(crate) fn from_exchange(exchange: &Exchange) -> Self {
        let cost = exchange.cost.as_ref();
        Self {
            event: exchange.seq,
            role: RedactedText::new(&exchange.role),
            asked_at: exchange.asked_at,
            ended_at: exchange.ended_at,
            provider: RedactedText::new(&exchange.provider),
            model: RedactedText::new(&exchange.model),
            attempt: exchange.attempt,
            tokens_in: exchange.tokens_in,
            tokens_out: exchange.tokens_out,
            micro_dollars: cost.map(|cost| cost.micro_dollars),
            cost_basis: cost.map(|cost| cost.basis),
            error: exchange.error.as_deref().map(RedactedText::new),
        }
    }
}
