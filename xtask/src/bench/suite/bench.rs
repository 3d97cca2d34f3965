//! What a bench is, and what it may use.

use std::cell::OnceCell;
use std::path::PathBuf;

use super::measure::Case;
use super::tree::Trees;
use crate::error::TaskError;
use crate::process::Call;
use crate::root::Root;

/// What a bench may use.
#[derive(Debug)]
pub(super) struct Context<'a> {
    pub(super) root: &'a Root,
    pub(super) rounds: u32,
    /// The source trees that are measured on, found when the first bench asks for them.
    pub(super) trees: OnceCell<Trees>,
}

impl Context<'_> {
    /// Builds the program in release and tells where it is.
    pub(super) fn program(&self) -> Result<PathBuf, TaskError> {
        Call::cargo(self.root)
            .args(["build", "--quiet", "--release", "--package", "crucible"])
            .run()?;
        Ok(self.root.target().join("release/crucible"))
    }

    /// The source trees that are measured on.
    pub(super) fn trees(&self) -> Result<&Trees, TaskError> {
        if let Some(trees) = self.trees.get() {
            return Ok(trees);
        }
        let found = Trees::find(self.root)?;
        Ok(self.trees.get_or_init(|| found))
    }
}

/// One subject that is measured.
pub(super) trait Bench {
    /// The word that selects it.
    fn name(&self) -> &'static str;
    /// Measures every case of it.
    fn run(&self, context: &Context<'_>) -> Result<Vec<Case>, TaskError>;
}

/// Turns what a crate of the product says into the error of a bench.
pub(super) fn unmeasured<E: std::fmt::Display>(bench: &'static str) -> impl Fn(E) -> TaskError {
    move |error| TaskError::Unmeasured {
        bench,
        reason: error.to_string(),
    }
}
