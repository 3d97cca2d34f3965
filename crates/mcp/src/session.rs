//! What the calls of one server share.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crucible_model::{Failure, RunId};
use crucible_run::RunContext;
use crucible_sandbox::{BackgroundProcess, Runtime};
use crucible_settings::Settings;

use crate::host::ToolHost;
use crate::reach::{Reach, ReachedRun};

/// Whether clients may land changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Landing {
    /// The user's settings allow it.
    Allowed,
    /// Only the user lands.
    Refused,
}

/// What a call works with.
pub(crate) struct Session<'a> {
    pub(crate) host: &'a dyn ToolHost,
    pub(crate) reach: &'a Reach,
    pub(crate) landing: Landing,
    /// The processes that this server started, by the run that they advance.
    pub(crate) at_work: RefCell<BTreeMap<RunId, BackgroundProcess>>,
}

impl<'a> Session<'a> {
    /// A session as the settings of the working directory allow.
    pub(crate) fn new(host: &'a dyn ToolHost, reach: &'a Reach) -> Result<Self, Failure> {
        let settings = host.settings(host.runtime().env.working_directory(), &[])?;
        let landing = match settings.mcp.land {
            true => Landing::Allowed,
            false => Landing::Refused,
        };
        Ok(Self {
            host,
            reach,
            landing,
            at_work: RefCell::new(BTreeMap::new()),
        })
    }

    /// Returns the outside world, the settings of the first repository, and the world of runs.
    pub(crate) fn runs_here(&self) -> Result<(Runtime<'_>, Settings, RunContext<'_>), Failure> {
        let directory = self.reach.directory(self.host, None)?;
        let settings = self.host.settings(&directory, &[])?;
        let runtime = self.host.runtime();
        let world = self.host.world(&runtime.sandbox, &settings)?;
        Ok((runtime, settings, world))
    }

    /// Returns the run of this id or prefix.
    pub(crate) fn run(&self, world: &RunContext<'_>, named: &str) -> Result<ReachedRun, Failure> {
        self.reach.run(self.host, world, named)
    }
}
