//! The failure bundle of a run: its evidence in one archive.

use crucible_ledger::Ledger;
use crucible_model::RunId;
use crucible_verify::failure_bundle;

use crate::error::RunError;
use crate::layout::RunDir;
use crate::verify_record::{RecordedFiles, UnrecordedFiles, unrecorded};

/// The evidence of a run, without files that no event records.
pub struct RunBundle {
    /// The zip archive.
    pub bytes: Vec<u8>,
    /// The files that were left out.
    pub left_out: UnrecordedFiles,
}

impl RunBundle {
    /// Collects the evidence of a run.
    ///
    /// # Errors
    ///
    /// Fails if the ledger or the run directory cannot be read.
    pub fn new(dir: &RunDir, ledger: &Ledger) -> Result<Self, RunError> {
        let id = dir.root().file_name().unwrap_or_default().to_string_lossy();
        let events = match id.parse::<RunId>() {
            Ok(run) => ledger.events(Some(&run))?,
            Err(_) => Vec::new(),
        };
        let accounted = RecordedFiles::from_events(&events);
        Ok(Self {
            left_out: unrecorded(dir, &events),
            bytes: failure_bundle(dir.root(), &|path| accounted.has(path))?,
        })
    }
}
