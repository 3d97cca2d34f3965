//! The linter.
//!
//! It ignores comments that silence it: what a model wrote does not choose which rules apply to it. The project's own settings do.

use async_trait::async_trait;
use crucible_model::{Code, Finding, Verdict, short_line};
use crucible_sandbox::Keep;
use serde::Deserialize;

use super::tool::{ToolCall, ToolRun};
use super::{ForgeGate, GateAnswer, GateError, GateSite, SkillGate};

/// What ruff is asked. Its exclusions do not hold for the two files, its own mending and its cache neither.
const WORDS: [&str; 8] = [
    "check",
    "--no-cache",
    "--no-fix",
    "--no-fix-only",
    "--ignore-noqa",
    "--no-force-exclude",
    "--output-format",
    "json",
];

pub(super) struct Ruff;

#[async_trait]
impl ForgeGate for Ruff {
    fn id(&self) -> SkillGate {
        SkillGate::Ruff
    }

    async fn run(&self, site: &GateSite<'_>) -> Result<GateAnswer, GateError> {
        let too_large = site.too_large();
        if !too_large.passes() {
            return Ok(GateAnswer::from_verdict(too_large));
        }
        let files = site.sources().map(|source| source.path.as_str());
        let scratch = site.scratch_for("ruff")?;
        let call = ToolCall::new(&site.tools.ruff, WORDS.into_iter().chain(files), scratch);
        let run = call.run(site, Keep::Head).await?;
        Ok(run.answer(judge(&run)))
    }
}

#[derive(Deserialize)]
struct Complaint {
    code: Option<String>,
    message: String,
    filename: String,
    location: Option<Location>,
}

#[derive(Deserialize)]
struct Location {
    row: u64,
    column: u64,
}

fn judge(run: &ToolRun) -> Verdict {
    if let Some(ended) = run.abnormal_end() {
        return Verdict::new(vec![ended]);
    }
    let complaints: Result<Vec<Complaint>, _> = serde_json::from_str(&run.stdout_text());
    match (run.exit_code(), complaints) {
        (Some(0), Ok(complaints)) if complaints.is_empty() => Verdict::default(),
        (Some(0 | 1), Ok(complaints)) if !complaints.is_empty() => {
            Verdict::new(complaints.iter().map(Complaint::finding).collect())
        }
        (code, _) => Verdict::new(vec![run.failed(code.unwrap_or(-1))]),
    }
}

impl Complaint {
    fn finding(&self) -> Finding {
        let rule = self.code.as_deref().unwrap_or("invalid-syntax");
        let at = match &self.location {
            Some(Location { row, column }) => format!(":{row}:{column}"),
            None => String::new(),
        };
        let message = short_line(&self.message, 300);
        Finding::error(
            Code::new("forge-ruff"),
            format!("{}{at}: {rule}", self.filename),
            message,
        )
    }
}
