//! A project with one spec and a ledger, in a temporary directory.

use std::path::{Path, PathBuf};

use crucible_ledger::Ledger;
use crucible_llm::PipelineReceipt;
use crucible_model::{ClockSource, Digest, Timestamp};
use crucible_spec::{
    LockClaim, PhaseEntry, PhaseId, PhaseOutput, PhaseStatus, PromotionEnd, ReceiptId, SpecError,
    SpecLock, SpecProject, SpecReceipt, SpecState, SpecStore,
};

pub(crate) struct Fixture {
    _dir: Option<tempfile::TempDir>,
    pub(crate) home: PathBuf,
    pub(crate) store: SpecStore,
}

pub(crate) fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let mut fixture = desk_at(dir.path());
    fixture._dir = Some(dir);
    fixture
}

pub(crate) fn desk_at(home: &Path) -> Fixture {
    let project = SpecProject::at(home.join("project"));
    let store = SpecStore::new(&project, "export-data".parse().unwrap())
        .with_records(home.join("data/records"));
    Fixture {
        _dir: None,
        home: home.to_owned(),
        store,
    }
}

pub(crate) fn now() -> Timestamp {
    "2026-01-31T09:30:00Z".parse().unwrap()
}

impl Fixture {
    pub(crate) fn ledger(&self) -> Ledger {
        Ledger::open(&self.home.join("data/ledger.db")).unwrap()
    }

    pub(crate) fn lock(&self) -> SpecLock {
        self.store.lock("test", LockClaim::IfFree).unwrap()
    }

    pub(crate) fn state(&self) -> SpecState {
        self.store.state(Some(&self.ledger())).unwrap()
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.store.dir().join(path)
    }

    pub(crate) fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap()
    }

    /// Marks the receipt with this digest as about to be promoted by this machine.
    pub(crate) fn mark(&self, digest: Digest) {
        let project = self.home.join("project").canonicalize().unwrap();
        let key = Digest::compute(project.as_os_str().as_encoded_bytes());
        let records = self.home.join("data/records");
        std::fs::create_dir_all(&records).unwrap();
        std::fs::write(
            records.join(format!("{key}-export-data.staged")),
            format!("{digest}\n"),
        )
        .unwrap();
    }

    /// The names in a folder of the spec.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(folder)) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Promotes a run of a phase, which writes its document with this text if it succeeds.
    pub(crate) fn run(&self, phase: PhaseId, status: PhaseStatus, text: &str) -> SpecReceipt {
        self.try_run(phase, status, text).unwrap()
    }

    pub(crate) fn try_run(
        &self,
        phase: PhaseId,
        status: PhaseStatus,
        text: &str,
    ) -> Result<SpecReceipt, SpecError> {
        let lock = self.store.lock("test", LockClaim::IfFree)?;
        run_under(&lock, phase, status, text, &mut self.ledger())
    }

    pub(crate) fn success(&self, phase: PhaseId) -> SpecReceipt {
        self.run(phase, PhaseStatus::Success, phase.as_str())
    }
}

pub(crate) fn run_under(
    lock: &SpecLock,
    phase: PhaseId,
    status: PhaseStatus,
    text: &str,
    ledger: &mut Ledger,
) -> Result<SpecReceipt, SpecError> {
    let outputs = if status == PhaseStatus::Success {
        vec![document(phase, text)]
    } else {
        Vec::new()
    };
    let promoted = lock.promote(draft(phase, status, lock.next_sequence()?), outputs, ledger)?;
    assert_eq!(promoted.end, PromotionEnd::Whole);
    Ok(promoted.receipt)
}

pub(crate) fn document(phase: PhaseId, text: &str) -> PhaseOutput {
    PhaseOutput {
        path: format!("artifacts/{}", phase.artifact()),
        bytes: text.as_bytes().to_vec(),
    }
}

/// A receipt as the engine passes it on: without the fields that promotion sets.
pub(crate) fn draft(phase: PhaseId, status: PhaseStatus, sequence: u64) -> SpecReceipt {
    SpecReceipt {
        schema_version: String::new(),
        receipt_id: ReceiptId::new(phase, now(), sequence).to_string(),
        spec_id: String::new(),
        sequence: 0,
        emitted_at: Some(now()),
        clock: Some(ClockSource::System),
        dry_run: status == PhaseStatus::DryRun,
        exit_code: Some(0),
        phases: vec![PhaseEntry {
            status,
            finished_at: Some(now()),
            attempts: u64::from(status != PhaseStatus::DryRun),
            ..PhaseEntry::begun(phase, now())
        }],
        pipeline: Some(PipelineReceipt::default()),
        previous: None,
        last_real: None,
        last_success: None,
        crucible_version: Some("0.1.0".to_owned()),
        digest: None,
    }
}
