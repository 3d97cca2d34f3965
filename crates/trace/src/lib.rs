//! OpenTelemetry traces of runs, derived from the ledger.
//!
//! [`RunTrace::new`] turns a [`RunView`] into spans: the run, its stages, attempts, questions, model calls, gates and
//! variants. [`to_json`] and [`to_protobuf`] encode them as OTLP. [`Collector`] is where the environment of the user asks to
//! send them, and [`Delivery`] sends them from a thread of its own.
//!
//! Invariants: equal views have equal bytes. Each id follows from the run's id and its first event. Text of a person, a model,
//! a repository or a program is left out unless the caller asks for [`Content::Included`]. The costs of all spans together
//! are the cost of the run. Nothing here reads the environment, the clock or a file.
//!
//! [`RunView`]: crucible_view::RunView

mod collector;
mod conventions;
mod delivery;
mod encode;
mod id;
mod message;
mod provider_name;
mod run_trace;
mod span;

pub use collector::{Collector, CollectorError, Protocol};
pub use delivery::{Delivery, DeliveryError};
pub use encode::{Resource, to_json, to_protobuf};
pub use id::{SpanId, TraceId};
pub use run_trace::{Content, RunTrace};
pub use span::{Attribute, Span, SpanEvent, SpanKind, SpanStatus, Value};
