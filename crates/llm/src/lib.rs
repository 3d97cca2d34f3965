//! Model providers behind one trait: bounded, recorded and repeatable.
//!
//! A provider is a [`ProviderKind`] in the [`registry`]. It constructs a [`Backend`], which answers
//! through [`LlmBackend::invoke`]. A backend is never called directly: a
//! [`ModelClient`] wraps it, from the outside in, in `SecretScanned` → `Recorded` → [`Retried`] →
//! [`Budgeted`]. So a secret stops a call before any other layer sees it, a recorded call includes its
//! attempts, and every attempt is budgeted before it is sent.
//!
//! Invariants: a model gets text and returns text; nothing here acts on an answer. No error, log or
//! `Debug` output contains a key, a header, a request or a response. There is one deliberate exception: a
//! request missing in a recording is shown as a diff to the nearest one. Every call is bounded in time
//! and bytes.

mod advice;
mod answer_body;
mod asked_prices;
mod availability;
mod backend;
mod budget;
mod call_error;
mod capability;
mod cassette;
mod cassette_source;
mod chat;
mod chat_backend;
mod client;
mod client_program;
pub mod configured;
mod context;
pub mod doctor;
mod endpoint;
mod error;
mod error_text;
mod exit_status;
mod http_fault;
mod invocation;
mod messages;
mod model_list;
mod offered;
mod phase_models;
mod pool;
mod price;
mod provider_kind;
mod provider_settings;
mod providers;
mod receipt;
mod record;
mod recording_file;
mod registry;
mod retry;
mod scan;
mod select;
mod strategy;
mod template;
mod upstream;
mod usage_text;
mod watch;
mod wire_json;

pub use advice::{Advice, AdviceError, AdviceFailure, AdviceLimits, Advisor, Question};
pub use availability::{Availability, availability, offered};
pub use backend::{Backend, BackendParts, ClientExtra, LlmBackend, Origin, Speaker};
pub use budget::{
    Amount, Asks, BudgetLimits, Budgeted, CallBudget, CallEnd, Limit, PlannedCall, Reservation,
    ReservationError, ReservationStore, Ticket,
};
pub use call_error::{CallError, SecretInRequest, SecretPlace};
pub use capability::{Capabilities, StructuredOutput};
pub use cassette::{
    Attempt, CallOutcome, Cassette, CassetteError, CassetteHeader, RecordedCall, RecordedMessage,
    RecordedRequest, TornTail,
};
pub use cassette_source::{CassetteSource, MAX_CASSETTE};
pub use client::{ClientOptions, ModelClient};
pub use context::Context;
pub use error::{AnswerFault, Fault, LlmError, RequestFault, Resource};
pub use invocation::{
    FallbackList, Finish, LlmInvocation, LlmResult, Message, Role, TruncatedAnswer,
};
pub use model_list::{ModelList, ModelRow, OfferedRow, PriceRow, ProviderRow};
pub use offered::{ListExtent, ModelCatalogue, Offered, OfferedModel};
pub use pool::CallPool;
pub use price::{ListedPrice, Price, PriceTable, dollars, micro_dollars};
pub use provider_kind::{KeyUse, ProviderClass, ProviderKind};
pub use provider_settings::{AddressOrigin, Login, ModelProfile, ProviderSettings};
pub use providers::claude_cli::ClaudeAgent;
pub use receipt::{Cost, CostBasis, LlmReceipt, PipelineReceipt, ReceiptWarning};
pub use record::{CassetteWriter, Recording, Reuse};
pub use recording_file::RecordingFile;
pub use registry::{UNSPECIFIED, construct, provider, registry};
pub use retry::{Attempted, OnRateLimit, Retried, RetryAllowance, RetryPolicy};
pub use scan::refuse_secrets;
pub use select::{Fallback, FellBack, NamedProvider, Selected, select};
pub use strategy::{ExecutionStrategy, StrategyError};
pub use upstream::Upstream;
pub use usage_text::{cost_in_words, tokens_in_words};
pub use watch::CallObserver;
