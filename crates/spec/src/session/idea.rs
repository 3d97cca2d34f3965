//! The idea that a command gives, or that the spec has.

use crucible_llm::ReceiptWarning;
use crucible_model::{ByteLimit, Untrusted};

use crate::engine::PhaseRun;
use crate::error::SpecError;
use crate::project::IDEA;
use crate::source::{Idea, IdeaBuilder};
use crate::store::{SpecLock, SpecStore};

/// The idea of a spec, and whether it is the stored one.
pub struct GivenIdea {
    /// The idea's text and selected files.
    pub idea: Idea,
    /// Where it comes from.
    pub origin: IdeaOrigin,
}

/// The origin of an idea.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdeaOrigin {
    /// Given with this command, and to be stored.
    Given,
    /// Stored by an earlier command.
    Kept,
}

impl GivenIdea {
    /// Reads the stored idea.
    ///
    /// # Errors
    ///
    /// Fails if no idea is stored, or if it cannot be read.
    pub fn stored(store: &SpecStore, limit: ByteLimit) -> Result<Self, SpecError> {
        let mut builder = IdeaBuilder::new(limit);
        if let Some(bytes) = store.read(IDEA)? {
            builder.text(IDEA, bytes)?;
        }
        Ok(Self {
            idea: builder.finish()?,
            origin: IdeaOrigin::Kept,
        })
    }

    /// Returns whether it differs from the stored one.
    ///
    /// # Errors
    ///
    /// Fails if the stored one cannot be read.
    pub fn is_new(&self, store: &SpecStore) -> Result<bool, SpecError> {
        Ok(match self.origin {
            IdeaOrigin::Kept => false,
            IdeaOrigin::Given => {
                store.read(IDEA)?.as_deref() != Some(self.idea.text.as_str().as_bytes())
            }
        })
    }
}

/// Stores the idea if it differs from the stored one.
pub(super) fn store_idea(lock: &SpecLock, idea: &Untrusted) -> Result<(), SpecError> {
    let bytes = idea.as_str().as_bytes();
    if lock.store().read(IDEA)?.as_deref() == Some(bytes) {
        return Ok(());
    }
    lock.write_context(IDEA.trim_start_matches("context/"), bytes)
}

/// Warns about parts of the sources that were left out, and about other problems with them.
pub(super) fn warn_of_sources(run: &mut PhaseRun<'_>, given: Option<&GivenIdea>) {
    let idea = given.map(|given| &given.idea);
    for passed_over in idea.into_iter().flat_map(|idea| &idea.skipped_files) {
        run.warn(ReceiptWarning {
            kind: "file_passed_over".to_owned(),
            message: passed_over.to_string(),
        });
    }
    for note in idea.into_iter().flat_map(|idea| &idea.notes) {
        run.warn(ReceiptWarning {
            kind: "source_note".to_owned(),
            message: note.clone(),
        });
    }
}
