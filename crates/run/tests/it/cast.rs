//! Who takes part in a run, and what they say: a model alone, a person, a model in the chair and as second reviewer, or
//! a model that asks for more files.
//!
//! A budget is exactly what an undisturbed run needs, so a prompt or a call that is used twice ends the run.
#![expect(clippy::disallowed_methods, reason = "a person writes files")]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use crucible_ledger::Ledger;
use crucible_llm::{
    Backend, BackendParts, Capabilities, ClientExtra, ModelClient, Origin, Speaker,
    StructuredOutput,
};
use crucible_model::EditFormat;
use crucible_run::{
    Clients, DispatchBudgets, DispatchConfig, DispatchMode, DispatchVersion, MANUAL_OUTBOX,
    OutboxBackend, RoleProvider, RunDir, RunError, RunRole, status,
};
use crucible_testkit::{FakeOpenAi, Reply};

use crate::common::{FILE, answering, right};

/// Who serves the roles of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RoleServers {
    /// The model proposes, code does the rest.
    Model,
    /// A person is chair, second reviewer, patchmaker and fixer.
    Person,
    /// The model is chair, second reviewer of both kinds, and patchmaker.
    Chairs,
    /// The model proposes, and asks for more files first.
    Asks,
}

const PLAN: &str = "Scope-Allow: src/price.py\nScope-Deny:\nStop: verified\nBehaviors:\n";

const BAD_DIFF: &str = "diff --git a/notes.txt b/notes.txt\nnew file mode 100644\n--- /dev/null\n+++ b/notes.txt\n@@ -0,0 +1 @@\n+x\n";

const GOOD_DIFF: &str = "diff --git a/src/price.py b/src/price.py\n--- a/src/price.py\n+++ b/src/price.py\n\
    @@ -1,2 +1,2 @@\n def total(items):\n-    return 0\n+    return sum(items)\n";

fn request() -> String {
    serde_json::json!({
        "schema_version": "ctcp-file-request-v1", "goal": "x", "reason": "r",
        "needs": [{ "path": FILE, "mode": "full" }],
        "budget": { "max_files": 3, "max_total_bytes": 10_000 },
    })
    .to_string()
}

impl RoleServers {
    const ALL: [Self; 4] = [Self::Model, Self::Person, Self::Chairs, Self::Asks];

    /// The one of this number.
    pub(crate) fn from_number(number: &str) -> Self {
        Self::ALL[number.parse::<usize>().unwrap()]
    }

    pub(crate) fn number(self) -> String {
        Self::ALL
            .iter()
            .position(|cast| *cast == self)
            .unwrap()
            .to_string()
    }

    /// The calls that a run takes; with a model alone there are more, for its server fails.
    pub(crate) fn calls(self) -> u64 {
        match self {
            Self::Model => 8,
            Self::Person => 5,
            Self::Chairs => 9,
            Self::Asks => 2,
        }
    }

    pub(crate) fn dispatch(self) -> Option<DispatchConfig> {
        let (prompts, served) = match self {
            Self::Model | Self::Asks => return None,
            Self::Person => (
                5,
                [
                    RunRole::Chair,
                    RunRole::ContractGuardian,
                    RunRole::Patchmaker,
                    RunRole::Fixer,
                ]
                .map(|role| (role, MANUAL_OUTBOX)),
            ),
            Self::Chairs => (
                1,
                [
                    RunRole::Chair,
                    RunRole::ContractGuardian,
                    RunRole::CostController,
                    RunRole::Patchmaker,
                ]
                .map(|role| (role, "gateway")),
            ),
        };
        Some(DispatchConfig {
            schema_version: DispatchVersion::V1,
            mode: DispatchMode::LocalExec,
            role_providers: BTreeMap::from(
                served.map(|(role, name)| (role, RoleProvider(name.to_owned()))),
            ),
            budgets: DispatchBudgets {
                max_outbox_prompts: prompts,
            },
        })
    }

    /// A model that says what such a run needs: each thing wrong first, then right.
    pub(crate) fn model(self) -> FakeOpenAi {
        let chairs = [
            "I should like to see the prices.".to_owned(),
            request(),
            format!("{PLAN}Names: check.sh\n"),
            PLAN.to_owned(),
            "It looks good.".to_owned(),
            "Verdict: APPROVE\n".to_owned(),
            "Verdict: APPROVE\nBlocking Reasons:\n- but no\n".to_owned(),
            "Verdict: APPROVE\n".to_owned(),
        ];
        answering(move |number| match chairs.get(number) {
            Some(message) if self == Self::Chairs => Reply::Answer(message.clone()),
            Some(_) if self == Self::Asks && number == 0 => {
                Reply::Answer("NEED: README.md\nNEED: check.sh\n".to_owned())
            }
            _ => right(),
        })
    }

    /// Writes what a person owes the run, and notes that; tells whether anything was owed.
    pub(crate) fn answers(
        self,
        root: &Path,
        dir: &RunDir,
        ledger: &Ledger,
    ) -> Result<bool, RunError> {
        let Some(owed) = status(dir, ledger)?.owed else {
            return Ok(false);
        };
        let answers = [request(), PLAN.to_owned(), "Verdict: APPROVE\n".to_owned()];
        let number: usize = owed
            .prompt
            .trim_start_matches("outbox/")
            .split('_')
            .next()
            .unwrap()
            .parse()
            .unwrap();
        let answer = match number {
            1..=3 => answers[number - 1].as_str(),
            4 => BAD_DIFF,
            _ => GOOD_DIFF,
        };
        std::fs::write(dir.path(&owed.target), answer).unwrap();
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(root.join(ANSWERED))
            .unwrap();
        writeln!(file, "{}", owed.prompt).unwrap();
        Ok(true)
    }
}

/// Where a person notes which prompts are answered.
pub(crate) const ANSWERED: &str = "answered";

/// Everybody who answers in a run.
pub(crate) struct All {
    pub(crate) model: ModelClient,
    pub(crate) person: ModelClient,
}

impl Clients for All {
    fn client(&self, name: &str) -> Result<&ModelClient, RunError> {
        Ok(if name == MANUAL_OUTBOX {
            &self.person
        } else {
            &self.model
        })
    }
}

/// A person, as the program makes one of it.
pub(crate) fn person(dir: &RunDir) -> Backend {
    Backend::new(BackendParts {
        provider: MANUAL_OUTBOX,
        default_model: "person".to_owned(),
        max_output_tokens: 0,
        extra: ClientExtra::NONE,
        capabilities: Capabilities {
            edit_format: EditFormat::UnifiedDiff,
            structured_output: StructuredOutput::None,
        },
        speaker: Speaker {
            provider: MANUAL_OUTBOX.to_owned(),
            model: "person".to_owned(),
        },
        origin: Origin::Live,
        parameters: BTreeMap::new(),
        inner: Box::new(OutboxBackend::new(dir)),
    })
}
