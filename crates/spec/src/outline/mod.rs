//! A spec as requirements and tasks, whatever its format: Crucible's own, Spec Kit, OpenSpec or Kiro.
//!
//! [`FolderFormat`] has one implementation per format, listed in [`formats`]. `folder` finds a spec and reads its files
//! within limits, `markdown` has what the formats share, `check` judges the result, and `goal` makes the goal of a run.
//!
//! What always holds: nothing is written, no link is followed, and a file that is too large, is not text or has hidden
//! characters is one finding and is not read.

mod check;
mod crucible;
mod folder;
mod goal;
mod kiro;
mod markdown;
mod open_spec;
mod spec_kit;

use std::collections::BTreeMap;

use crucible_evidence::{NamedTest, RequirementTests, SpecFormat, SpecTask, without_tests};
use crucible_model::{Digest, Verdict};

pub use folder::{SpecFolder, find_spec_folder};
pub use goal::task_goal;

/// The texts of a spec's files, by path in its folder.
pub(crate) type FolderTexts = BTreeMap<String, String>;

/// A format of specs.
pub(crate) trait FolderFormat: Sync {
    /// Its name.
    fn format(&self) -> SpecFormat;

    /// The directories of a project in which each directory is a spec.
    fn places(&self) -> &'static [&'static str];

    /// The files of a spec, by path in its folder. The first must exist.
    fn files(&self, place: &str) -> &'static [&'static str];

    /// A directory in the folder whose directories have a file of this name each, if the format has one.
    fn nested(&self, _place: &str) -> Option<(&'static str, &'static str)> {
        None
    }

    /// Returns the requirements and the tasks. Text that is neither is ignored.
    fn read(&self, texts: &FolderTexts) -> OutlineParts;
}

/// Returns every format, Crucible's own first.
pub(crate) fn formats() -> &'static [&'static dyn FolderFormat] {
    &[
        &crucible::Crucible,
        &spec_kit::SpecKit,
        &open_spec::OpenSpec,
        &kiro::Kiro,
    ]
}

/// What a format found in the texts.
#[derive(Debug, Default)]
pub(crate) struct OutlineParts {
    pub(crate) requirements: Vec<RequirementText>,
    pub(crate) tasks: Vec<OutlineTask>,
}

/// A requirement with its lines.
#[derive(Debug, Default)]
pub(crate) struct RequirementText {
    pub(crate) id: String,
    pub(crate) title: String,
    /// The file that it is in.
    pub(crate) file: String,
    /// The lines below the title, and those that name tests.
    pub(crate) body: Vec<String>,
    /// Lines of `body` that are in a code block, by position.
    pub(crate) fenced: Vec<usize>,
}

/// A spec in any supported format, read from its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecOutline {
    /// Its id, or the path of its folder in the project.
    pub name: String,
    /// The format in which it is written.
    pub format: SpecFormat,
    /// The requirements, in order.
    pub requirements: Vec<OutlineRequirement>,
    /// The tasks, in order.
    pub tasks: Vec<OutlineTask>,
    /// What is wrong with it.
    pub verdict: Verdict,
}

/// A requirement with the tests that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutlineRequirement {
    /// Its id, unique in the spec.
    pub id: String,
    /// Its title on one line.
    pub title: String,
    /// Its text below the title, without the lines that name tests.
    pub text: String,
    /// The tests that it names.
    pub tests: Vec<NamedTest>,
}

/// A task of the spec.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutlineTask {
    /// Its id, unique in the spec.
    pub id: String,
    /// The step on one line.
    pub text: String,
    /// Whether its box is checked.
    pub is_done: bool,
    /// The ids of the requirements that it serves.
    pub serves: Vec<String>,
    /// Further lines of the task.
    pub details: Vec<String>,
}

impl SpecOutline {
    /// Returns the requirements as the evidence needs them.
    #[must_use]
    pub fn requirement_tests(&self) -> Vec<RequirementTests> {
        self.requirements
            .iter()
            .map(OutlineRequirement::to_tests)
            .collect()
    }

    /// Returns the task with this id, in any case of letters.
    #[must_use]
    pub fn task(&self, id: &str) -> Option<&OutlineTask> {
        self.tasks
            .iter()
            .find(|task| task.id.eq_ignore_ascii_case(id))
    }

    /// Returns the requirements that a task serves, in the order of the spec.
    pub fn served<'a>(
        &'a self,
        task: &'a OutlineTask,
    ) -> impl Iterator<Item = &'a OutlineRequirement> {
        let is_served = |requirement: &&OutlineRequirement| task.serves.contains(&requirement.id);
        self.requirements.iter().filter(is_served)
    }

    /// Returns what a run keeps of a task.
    #[must_use]
    pub fn spec_task(&self, task: &OutlineTask) -> SpecTask {
        SpecTask {
            spec: self.name.clone(),
            format: self.format,
            task: task.id.clone(),
            requirements: self
                .served(task)
                .map(OutlineRequirement::to_tests)
                .collect(),
        }
    }
}

impl OutlineRequirement {
    fn to_tests(&self) -> RequirementTests {
        let text = format!("{}\n{}", self.title, self.text);
        RequirementTests {
            id: self.id.clone(),
            title: self.title.clone(),
            text: Digest::compute(text.as_bytes()),
            tests: self.tests.clone(),
        }
    }
}

/// The lines of a body without those that name tests, and without outer blank lines.
pub(crate) fn text_of(body: &[String]) -> String {
    let lines = without_tests(body.iter().map(String::as_str));
    lines.join("\n").trim().to_owned()
}
