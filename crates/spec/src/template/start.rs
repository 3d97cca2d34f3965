//! Starts a spec from a template.

use std::path::PathBuf;

use crucible_host::fs::write_atomic;
use crucible_model::{Failure, Timestamp};

use super::SpecTemplate;
use crate::id::SpecId;
use crate::ignored::keep_out_of_git;
use crate::project::{IDEA, SpecProject};
use crate::store::{LockClaim, SpecStore};
use crate::workspace::{OnListed, WorkspaceEntry, WorkspaceFile};

/// What to do with a spec that already exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnExisting {
    /// Fail.
    Refuse,
    /// Overwrite its idea and its README.
    Overwrite,
}

/// A spec that is to be started.
pub struct TemplateStart<'a> {
    /// The template to start from.
    pub template: &'a SpecTemplate,
    /// The project that gets the spec.
    pub project: &'a SpecProject,
    /// The list of the project's specs, if there is one.
    pub workspace: Option<&'a WorkspaceFile>,
    /// The id of the spec.
    pub spec: &'a SpecId,
    /// The current time.
    pub now: Timestamp,
}

/// The files of a spec that was started.
pub struct StartedSpec {
    /// The path of the idea.
    pub idea: PathBuf,
    /// The README with the next commands.
    pub readme: PathBuf,
    /// The list that the spec was added to.
    pub listed_in: Option<PathBuf>,
}

impl TemplateStart<'_> {
    /// Writes the idea and the README, and lists the spec in the workspace.
    ///
    /// # Errors
    ///
    /// Fails if the spec exists and must not be overwritten, if another process works on it, or if a file cannot be written.
    pub fn write(&self, existing: OnExisting) -> Result<StartedSpec, Failure> {
        let listed = self.workspace.map(WorkspaceFile::load).transpose()?;
        let store = SpecStore::new(self.project, self.spec.clone());
        let refuses = existing == OnExisting::Refuse;
        if refuses && store.exists()? {
            return Err(self.exists_error());
        }
        // Done first, because it can be refused. A list may name a spec that has not started; the next
        // attempt starts it.
        let is_unlisted = listed.is_some_and(|listed| listed.entry(self.spec).is_none());
        let list = self.workspace.filter(|_| is_unlisted);
        if let Some(list) = list {
            let entry = WorkspaceEntry {
                id: self.spec.clone(),
                tags: vec![self.template.name.to_owned()],
                added: Some(self.now),
            };
            list.add(&entry, OnListed::Refuse)?;
        }
        let lock = store.lock("crucible template init", LockClaim::IfFree)?;
        keep_out_of_git(self.project.root())?;
        // Another process may have just started the same spec.
        if refuses && store.read(IDEA)?.is_some() {
            return Err(self.exists_error());
        }
        let name = IDEA.trim_start_matches("context/");
        lock.write_context(name, self.template.idea.as_bytes())?;
        let readme = store.dir().join("README.md");
        write_atomic(&readme, self.template.readme(self.spec).as_bytes())?;
        drop(lock);
        Ok(StartedSpec {
            idea: store.dir().join(IDEA),
            readme,
            listed_in: list.map(|list| list.path().to_owned()),
        })
    }

    fn exists_error(&self) -> Failure {
        Failure::usage(format!(
            "the spec {} already exists and was not changed",
            self.spec
        ))
        .hint("Choose another id, or overwrite its idea and its README with --force.")
    }
}
