//! Coding agents as they are: how each is started, connected and continued, and the model endpoint that it is given.
//!
//! An agent is data, an [`AgentProfile`]: its program and arguments for unattended work, the variables and files
//! that point it at a model server, and what a repository could set for it. The built-in ones have a file each and one
//! list ([`registry`]); `[agents.NAME]` changes them and adds others. [`Launch`] fills a profile in for one session.
//!
//! The [`Endpoint`] is the only model server that an agent reaches. It forwards the requests of one wire to the user's
//! provider, as they are and while the answer streams. Each request is scanned for secrets, reserved in the budget at its
//! worst case before it is sent, settled from the usage in the answer, and recorded.
//!
//! What always holds: an agent never holds the user's key, only a random token of its session. What the budget does not
//! carry, holds a secret or has no price is not sent, and the agent gets an error in the form of its own wire.

mod configured;
mod endpoint;
mod error;
mod exit_status;
mod installed;
mod kinds;
mod launch;
mod profile;
mod registry;

pub use configured::{profile, profiles};
pub use endpoint::{Endpoint, EndpointOptions, EndpointUse, Exchanges};
pub use error::AgentError;
pub use installed::{InstalledAgent, installed};
pub use launch::{Launch, PROMPT_FILE};
pub use profile::{AgentProfile, PromptDelivery, Wire};
pub use registry::{AgentKind, registry};
