//! What the forge works with: the outside world, handed in by its caller.

use std::path::PathBuf;
use std::sync::Arc;

use crucible_host::env::Environment;
use crucible_model::Clock;
use crucible_sandbox::{Sandbox, Strength};

/// The places and means of a step of a skill.
pub struct ForgeContext<'a> {
    /// The environment the command began with.
    pub env: &'a Environment,
    /// Tells the time.
    pub clock: &'a dyn Clock,
    /// Starts processes.
    pub sandbox: Arc<Sandbox>,
    /// The required isolation of an agent and of anything that it wrote.
    pub strength: Strength,
    /// Crucible's own directory: locks and journals of the forge lie below it.
    pub home: PathBuf,
    /// Where temporary copies lie; never inside the project.
    pub tmp: PathBuf,
}
