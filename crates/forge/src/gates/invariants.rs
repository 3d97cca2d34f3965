//! What a skill has to be made of.

use async_trait::async_trait;

use super::{ForgeGate, GateAnswer, GateError, GateSite, SkillGate};
use crate::invariants::check_invariants;

pub(super) struct Invariants;

#[async_trait]
impl ForgeGate for Invariants {
    fn id(&self) -> SkillGate {
        SkillGate::Invariants
    }

    async fn run(&self, site: &GateSite<'_>) -> Result<GateAnswer, GateError> {
        let verdict = site
            .skill
            .judged(|source| check_invariants(source, site.name, site.paths, site.class));
        Ok(GateAnswer::from_verdict(verdict))
    }
}
