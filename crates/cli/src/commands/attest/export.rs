//! `crucible attest export`: the statements of a commit as Sigstore bundles.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use crucible_host::fs::write_atomic;
use crucible_model::{ExitStatus, Failure};
use crucible_repo::CommitReader;
use crucible_run::read_note;

use crate::app::App;

/// Write the statements of a commit as Sigstore bundles
///
/// The output has one bundle a line, as the note has; `--statement` selects one of them.
#[derive(Args)]
pub(crate) struct Export {
    /// The commit
    #[arg(value_name = "REV", default_value = "HEAD")]
    commit: String,
    /// One of the three statements
    #[arg(long, value_name = "WHICH")]
    statement: Option<Which>,
    /// The file to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The repository [default: the one around the working directory]
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    /// How the change came about
    Change,
    /// The test result
    Result,
    /// The verification summary
    Summary,
}

impl Export {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let place = self.repo.clone().unwrap_or_default();
        let reader = CommitReader::open(app.runtime().sandbox, &app.env, &place)?;
        let (commit, note) = app.drive(read_note(&reader, &self.commit))?;
        let note = note.ok_or_else(|| {
            Failure::refused(format!("{commit} has no statement"))
                .hint("Notes are fetched on request: `git fetch origin refs/notes/crucible:refs/notes/crucible`.")
        })?;
        let lines: Vec<&[u8]> = note.split_inclusive(|byte| *byte == b'\n').collect();
        let bytes = match self.statement {
            None => note.clone(),
            Some(which) => lines
                .get(which as usize)
                .copied()
                .unwrap_or_default()
                .to_vec(),
        };
        match &self.out {
            Some(out) => write_atomic(&app.absolute(out), &bytes)?,
            None => app.output.bytes(&bytes),
        }
        Ok(ExitStatus::Success)
    }
}
