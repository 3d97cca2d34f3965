//! The demo for people: what it starts with, a text for each event, and what it ends with.

use crucible_ledger::EventRecord;
use crucible_llm::Speaker;

use super::{Demo, DemoAnswers, GOAL};
use crate::event_kind::EventKind;
use crate::land::Landing;
use crate::layout::RunDir;

/// The lines of the plan that are shown.
const PLAN_LINES: usize = 7;

/// The lines of a patch that are shown.
const PATCH_LINES: usize = 40;

/// Describes the events of a demo's run.
#[derive(Debug, Default)]
pub struct DemoStory {
    /// The run, once it exists.
    dir: Option<RunDir>,
}

impl DemoStory {
    /// Describes the events of this run.
    #[must_use]
    pub fn from_dir(dir: RunDir) -> Self {
        Self { dir: Some(dir) }
    }

    /// Returns the text of an event, with the beginning of its artifact; nothing for events that are not shown.
    #[must_use]
    pub fn lines(&self, event: &EventRecord) -> Vec<String> {
        let one_line = |text: &str| vec![text.to_owned()];
        match EventKind::parse(&event.event) {
            Some(EventKind::RepositoryAnalysed) => {
                one_line("1. Inspected the repository; its tests fail before any change.")
            }
            Some(EventKind::ContextPacked) => vec![format!(
                "2. What the model may see: {}",
                self.packed().join(", ")
            )],
            Some(EventKind::PlanSigned) => {
                let mut lines = one_line("3. The plan, reviewed and signed by its digest:");
                lines.extend(self.excerpt("artifacts/PLAN.md", PLAN_LINES));
                lines
            }
            Some(EventKind::ModelAsked) => {
                let attempt = event.body.get("attempt");
                let attempt = attempt.map(|n| format!("Attempt {n}")).unwrap_or_default();
                vec![format!("\n{attempt}: calling the model.")]
            }
            Some(EventKind::PatchProposed) => {
                let mut lines = one_line("  It proposes:");
                let path = event.path.as_deref().unwrap_or_default();
                lines.extend(self.excerpt(path, PATCH_LINES));
                lines
            }
            Some(EventKind::PatchAccepted) => one_line(
                "  The patch gate accepts it; running the repository's own tests on a copy.",
            ),
            Some(EventKind::PatchRejected) => {
                one_line("  The patch gate refuses it; the reason goes back to the model.")
            }
            Some(EventKind::VerifyFailed) => {
                one_line("  The tests fail; their output goes back to the model.")
            }
            Some(EventKind::VerifyPassed) => one_line("  Verified."),
            _ => Vec::new(),
        }
    }

    /// The first lines of an artifact.
    fn excerpt(&self, path: &str, lines: usize) -> Vec<String> {
        let bytes = self.dir.as_ref().and_then(|dir| dir.read(path).ok());
        let bytes = bytes.unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let shown = text.lines().take(lines);
        shown.map(|line| format!("      {line}")).collect()
    }

    /// The paths of the context pack.
    fn packed(&self) -> Vec<String> {
        let pack = self
            .dir
            .as_ref()
            .and_then(|dir| dir.read("artifacts/context_pack.json").ok());
        let pack: Option<serde_json::Value> =
            pack.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let files = pack.as_ref().and_then(|pack| pack.get("files")?.as_array());
        files
            .into_iter()
            .flatten()
            .filter_map(|file| file.get("path")?.as_str().map(str::to_owned))
            .collect()
    }
}

impl Demo<'_> {
    /// Returns the text before the run: the repository, the model and the goal.
    #[must_use]
    pub fn introduction(&self, answers: DemoAnswers) -> Vec<String> {
        let mut lines = vec![format!(
            "A small repository with a failing test: {}",
            self.repository.display()
        )];
        if answers == DemoAnswers::Recorded {
            let Speaker {
                model, provider, ..
            } = self.backend.speaker();
            lines.push(format!(
                "The model's answers below come from a recording of {model} with the provider `{provider}`."
            ));
        }
        lines.push(format!("Goal: {GOAL}\n"));
        lines
    }
}

/// Returns the text after a landing: the commit, the evidence and the next commands.
#[must_use]
pub fn conclusion(dir: &RunDir, landing: &Landing) -> Vec<String> {
    let mut lines = vec![format!(
        "\nCommitted {} with the evidence in its trailers:",
        landing.commit
    )];
    let trailers = landing.message.lines();
    let trailers = trailers.filter(|line| line.starts_with("Crucible-"));
    lines.extend(trailers.map(|line| format!("  {line}")));
    lines.push(format!("Evidence: {}", dir.root().display()));
    lines.extend(
        [
            "\nOn your own code:",
            "  crucible init",
            "  crucible run start \"fix the failing test in parser\" --repo . --provider gateway",
            "  crucible run status",
        ]
        .map(str::to_owned),
    );
    lines
}
