//! What calls may cost, reserved before they are made.
//!
//! An attempt first reserves its worst case: one call, a token for each byte of the request (no tokenizer makes
//! more) plus the most tokens its answer may take, and what those cost where the price is known. Only then is it
//! sent. Afterwards the reservation is settled with what the provider reports. So parallel calls, retries,
//! fallbacks and a resumed run, all sharing one [`CallBudget`], cannot pass a limit together that none would pass
//! alone.
//!
//! What always holds: an attempt that failed or was abandoned keeps its slot; its tokens come back only when the
//! provider certainly did nothing (it refused the key, the rate or the request).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::backend::LlmBackend;
use crate::error::{Fault, LlmError, Resource};
use crate::invocation::{LlmInvocation, LlmResult};

/// The extension of a result that holds the cost a provider itself reports, in millionths of a dollar.
pub(crate) const REPORTED_COST: &str = "cost_micro_dollars";

/// Tokens that a chat template may add around each message.
const TEMPLATE_TOKENS: u64 = 16;

/// How much there may be of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// As much as is asked for.
    Unlimited,
    /// At most this much.
    At(u64),
}

/// The limits of a [`CallBudget`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetLimits {
    /// Attempts to call a model.
    pub calls: Limit,
    /// Tokens, of requests and answers together.
    pub tokens: Limit,
    /// Millionths of a US dollar.
    pub micro_dollars: Limit,
}

impl BudgetLimits {
    /// At most this many attempts, and no other limit.
    #[must_use]
    pub const fn calls(calls: u64) -> Self {
        Self { calls: Limit::At(calls), tokens: Limit::Unlimited, micro_dollars: Limit::Unlimited }
    }
}

/// An amount of everything a budget counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// Attempts to call a model.
    pub calls: u64,
    /// Tokens, of requests and answers together.
    pub tokens: u64,
    /// Millionths of a US dollar.
    pub micro_dollars: u64,
}

/// What calls may cost together. Shared by everything that calls models on behalf of one user action.
#[derive(Debug)]
pub struct CallBudget {
    limits: BudgetLimits,
    /// What is used up or reserved.
    used: Mutex<Amount>,
}

/// A part of a budget that is held for one attempt. Dropped without [`HeldAmount::settle`], all of it stays used.
#[derive(Debug)]
#[must_use = "a reservation that is not settled stays used in full"]
pub struct HeldAmount {
    budget: Arc<CallBudget>,
    held: Amount,
}

impl CallBudget {
    /// A budget of which nothing is used.
    #[must_use]
    pub fn new(limits: BudgetLimits) -> Arc<Self> {
        Self::resumed(limits, Amount::default())
    }

    /// The budget of something that goes on: this much of it is used already.
    #[must_use]
    pub fn resumed(limits: BudgetLimits, used: Amount) -> Arc<Self> {
        Arc::new(Self { limits, used: Mutex::new(used) })
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> BudgetLimits {
        self.limits
    }

    /// What is used up or reserved at this moment. Store this to resume later.
    #[must_use]
    pub fn used(&self) -> Amount {
        *self.lock()
    }

    /// Sets an amount aside for one attempt.
    ///
    /// # Errors
    ///
    /// [`LlmError::BudgetExceeded`] when a limit does not carry it; then nothing is set aside.
    pub fn reserve(self: &Arc<Self>, amount: Amount) -> Result<HeldAmount, LlmError> {
        let mut used = self.lock();
        let next = Amount {
            calls: carry(Resource::Calls, self.limits.calls, used.calls, amount.calls)?,
            tokens: carry(Resource::Tokens, self.limits.tokens, used.tokens, amount.tokens)?,
            micro_dollars: carry(
                Resource::MicroDollars,
                self.limits.micro_dollars,
                used.micro_dollars,
                amount.micro_dollars,
            )?,
        };
        *used = next;
        drop(used);
        Ok(HeldAmount { budget: Arc::clone(self), held: amount })
    }

    /// The amounts are whole at every moment, so a panic elsewhere while they were locked does not spoil them.
    fn lock(&self) -> MutexGuard<'_, Amount> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldAmount {
    /// Replaces what was held by what was really spent. The slot of the attempt stays used in any case.
    pub fn settle(self, spent: Amount) {
        let mut used = self.budget.lock();
        let replace = |used: u64, held: u64, spent: u64| used.saturating_sub(held).saturating_add(spent);
        used.tokens = replace(used.tokens, self.held.tokens, spent.tokens);
        used.micro_dollars = replace(used.micro_dollars, self.held.micro_dollars, spent.micro_dollars);
    }
}

/// The use after adding `more`, where the limit carries it. Nothing more always fits, even over a limit that
/// was lowered since.
fn carry(resource: Resource, limit: Limit, used: u64, more: u64) -> Result<u64, LlmError> {
    let attempted = used.saturating_add(more);
    match limit {
        Limit::At(limit) if more > 0 && attempted > limit => {
            Err(LlmError::BudgetExceeded { resource, limit, attempted })
        }
        Limit::At(_) | Limit::Unlimited => Ok(attempted),
    }
}

/// What a model's tokens cost, from the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Price {
    /// Nobody said.
    Unknown,
    /// Millionths of a US dollar for a million tokens.
    PerMillionTokens {
        /// Of requests.
        input: u64,
        /// Of answers.
        output: u64,
    },
}

impl Price {
    /// The cost in millionths of a dollar, rounded up.
    fn of(self, input_tokens: u64, output_tokens: u64) -> u64 {
        match self {
            Self::Unknown => 0,
            Self::PerMillionTokens { input, output } => {
                let total = u128::from(input) * u128::from(input_tokens)
                    + u128::from(output) * u128::from(output_tokens);
                u64::try_from(total.div_ceil(1_000_000)).unwrap_or(u64::MAX)
            }
        }
    }
}

/// Reserves each attempt in a budget before the backend sees it.
pub struct Budgeted<B> {
    inner: B,
    budget: Arc<CallBudget>,
    default_max_tokens: u64,
    price: Price,
}

impl<B> Budgeted<B> {
    /// Puts `inner` under a budget. `default_max_tokens` is what an answer may take when a call does not say.
    pub fn new(inner: B, budget: Arc<CallBudget>, default_max_tokens: u64, price: Price) -> Self {
        Self { inner, budget, default_max_tokens, price }
    }

    fn worst_case(&self, inv: &LlmInvocation) -> Result<Amount, LlmError> {
        if self.price == Price::Unknown && self.budget.limits().micro_dollars != Limit::Unlimited {
            return Err(LlmError::Misconfiguration(Fault::new(
                "budget",
                &inv.model,
                "a limit in money is set, but no price is configured for this model",
                "add its price to the price table, or limit calls and tokens instead",
            )));
        }
        let input = inv
            .messages
            .iter()
            .map(|message| message.content.as_str().len() as u64 + TEMPLATE_TOKENS)
            .fold(0, u64::saturating_add);
        let output =
            inv.metadata.get("max_tokens").and_then(Value::as_u64).unwrap_or(self.default_max_tokens);
        Ok(Amount {
            calls: 1,
            tokens: input.saturating_add(output),
            micro_dollars: self.price.of(input, output),
        })
    }

    /// What an answer cost: what the provider reports, and the worst case where it reports nothing.
    fn spent(&self, result: &LlmResult, held: Amount) -> Amount {
        let counted = result.tokens_input.zip(result.tokens_output);
        let tokens = counted.map_or(held.tokens, |(input, output)| input.saturating_add(output));
        let estimated = counted.map_or(held.micro_dollars, |(input, output)| self.price.of(input, output));
        let reported = result.extensions.get(REPORTED_COST).and_then(Value::as_u64);
        Amount { calls: held.calls, tokens, micro_dollars: reported.unwrap_or(estimated) }
    }
}

#[async_trait]
impl<B: LlmBackend> LlmBackend for Budgeted<B> {
    async fn invoke(&self, inv: LlmInvocation) -> Result<LlmResult, LlmError> {
        let held = self.worst_case(&inv)?;
        let reservation = self.budget.reserve(held)?;
        let outcome = self.inner.invoke(inv).await;
        match &outcome {
            Ok(result) => reservation.settle(self.spent(result, held)),
            Err(error) if error.did_no_work() => {
                reservation.settle(Amount { calls: held.calls, ..Amount::default() });
            }
            // It may have worked for nothing, and be paid for it.
            Err(_) => drop(reservation),
        }
        outcome
    }
}
