//! What an attempt comes to, whatever its agent left.

use std::sync::Arc;

use async_trait::async_trait;
use crucible_host::clock::PinnedClock;
use crucible_host::env::Environment;
use crucible_ledger::{NewSkill, SideEffect, SkillBuildStatus};
use crucible_sandbox::{Sandbox, Strength};

use super::*;

/// An agent that takes its copy away altogether.
struct TakesAway;

#[async_trait]
impl SkillAgent for TakesAway {
    fn name(&self) -> String {
        "takes-away".to_owned()
    }

    fn form(&self) -> AnswerForm {
        AnswerForm::AnswersWithFiles
    }

    async fn work(&self, task: &AgentTask<'_>) -> Result<AgentOutcome, AgentError> {
        crucible_host::fs::remove_dir_all(task.workspace.root())?;
        Ok(AgentOutcome {
            end: AgentEnd::Done,
            log: Vec::new(),
            facts: Map::new(),
            receipt: None,
        })
    }
}

struct Silent;

impl BuildObserver for Silent {
    fn note(&mut self, _: &str) {}

    fn working(&mut self, _: &str, _: Duration) {}

    fn touched(&mut self, _: &Path, _: FileChange) {}
}

#[tokio::test]
async fn agent_with_unreadable_copy_counts_as_failed() {
    let temp_dir = tempfile::tempdir().unwrap();
    let (root, home) = (
        temp_dir.path().join("project"),
        temp_dir.path().join("home"),
    );
    crucible_host::fs::create_dir_all(&root.join("src/skillset/skills")).unwrap();
    let project = ForgeProject::new(
        root,
        Digest::compute(b"project"),
        "skillset".parse().unwrap(),
    );
    let mut ledger = Ledger::open(&temp_dir.path().join("ledger.db")).unwrap();
    let env = Environment::from_pairs::<&str, &str>([], "/");
    let clock = PinnedClock("2026-01-31T09:30:00Z".parse().unwrap());
    let world = ForgeContext {
        env: &env,
        clock: &clock,
        sandbox: Arc::new(Sandbox::new(None, &env)),
        strength: Strength::Off,
        tmp: home.join("tmp"),
        home,
    };
    let proposal = ledger
        .propose_skill(&NewSkill {
            moment: Moment::now(&clock),
            project: *project.key(),
            name: "count_it".to_owned(),
            description: "Counts.".to_owned(),
            io_schema: json!({ "input": {}, "output": {} }),
            side_effect: SideEffect::ReadOnly,
            grants: json!({}),
            spec: b"spec".to_vec(),
            held_out: None,
        })
        .unwrap();
    let name: SkillName = "count_it".parse().unwrap();
    let request = BuildRequest {
        name: &name,
        agent: &TakesAway,
        timeout: Duration::from_secs(60),
        disk: ByteLimit(1 << 20),
        review: None,
    };
    let report = build_skill(&world, &project, &mut ledger, &request, &mut Silent)
        .await
        .unwrap();
    let SkillBuildOutcome::Failed(failure) = report.outcome else {
        panic!("{:?}", report.outcome)
    };
    let codes: Vec<&str> = failure
        .findings
        .iter()
        .map(|found| found.code.as_str())
        .collect();
    assert_eq!(
        (failure.kind, codes),
        (FailureKind::GateViolation, vec!["forge-scope-unseen"])
    );
    let builds = ledger.skill_builds(proposal).unwrap();
    assert_eq!(
        builds.first().map(|build| build.status),
        Some(SkillBuildStatus::Failed)
    );
}
