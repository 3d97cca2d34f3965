//! Judges the source of a skill without running it.

use std::path::Path;

use crucible_host::fs::read_regular_up_to;
use crucible_ledger::SideEffect;
use crucible_model::{ByteLimit, Failure, Verdict};

use crate::grants::Grants;
use crate::invariants::check_invariants;
use crate::name::SkillName;
use crate::paths::SkillPaths;
use crate::policy::{SkillPolicy, check_policy};
use crate::python::PythonSource;

/// More than the judge accepts, so that its finding reports a skill that is too large.
const MAX_READ: ByteLimit = ByteLimit(16 << 20);

/// What a skill is judged by.
pub struct SkillCheck<'a> {
    /// The operator's rules.
    pub policy: &'a SkillPolicy,
    /// The name that it must have.
    pub name: &'a SkillName,
    /// Its places.
    pub paths: &'a SkillPaths,
    /// Its class of side effects.
    pub effects: SideEffect,
    /// What the class is narrowed to.
    pub grants: &'a Grants,
}

impl SkillCheck<'_> {
    /// Judges a file by the policy and the invariants.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    pub fn judge(&self, file: &Path) -> Result<Verdict, Failure> {
        let bytes = read_regular_up_to(file, MAX_READ).map_err(|error| error.unreadable_input())?;
        let source = match PythonSource::parse(&bytes) {
            Ok(source) => source,
            Err(fault) => return Ok(Verdict::new(vec![fault.finding()])),
        };
        let mut verdict = check_policy(&source, self.policy, self.effects, self.grants);
        verdict.merge(check_invariants(
            &source,
            self.name,
            self.paths,
            self.effects,
        ));
        Ok(verdict)
    }
}
