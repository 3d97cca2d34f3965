//! What the text of the skill and of its test may hold, by the built-in rules and the operator's own.

use async_trait::async_trait;
use crucible_model::{Code, Finding};
use crucible_secrets::Scanner;

use super::{ForgeGate, GateAnswer, GateError, GateSite, SkillGate};
use crate::policy::{check_policy, check_test_policy};

pub(super) struct Policy;

#[async_trait]
impl ForgeGate for Policy {
    fn id(&self) -> SkillGate {
        SkillGate::Policy
    }

    async fn run(&self, site: &GateSite<'_>) -> Result<GateAnswer, GateError> {
        let mut verdict = site
            .skill
            .judged(|source| check_policy(source, site.policy, site.class, site.grants));
        verdict.merge(
            site.test
                .judged(|source| check_test_policy(source, site.policy, site.paths)),
        );
        for source in site.sources() {
            if let Some(rule) = Scanner::builtin().first_in_file(&source.bytes) {
                verdict.push(Finding::error(
                    Code::new("forge-holds-secret"),
                    format!("{}: {rule}", source.path),
                    "It holds what looks like a secret. Ask for a secret by its name, and make up another value in a test.",
                ));
            }
        }
        Ok(GateAnswer::from_verdict(verdict))
    }
}
