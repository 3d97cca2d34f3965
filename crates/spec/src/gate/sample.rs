//! States of specs for tests, as the store returns them.

use crucible_model::{ClockSource, Digest, Timestamp};
use serde_json::json;

use crate::phase_id::PhaseId;
use crate::receipt::{FileRecord, PhaseStatus, RECEIPT_SCHEMA, ReceiptId, SpecReceipt};
use crate::state::{FileState, PhaseState, SpecState, TrackedRecord};

/// The reference time of tests.
pub(crate) fn noon() -> Timestamp {
    "2026-01-31T12:00:00Z".parse().unwrap()
}

/// The time this many milliseconds later, or earlier.
pub(crate) fn later(at: Timestamp, millis: i64) -> Timestamp {
    let millis = u64::try_from(at.unix_millis() + millis).unwrap();
    Timestamp::from_unix(std::time::Duration::from_millis(millis))
}

/// A record of this file.
pub(crate) fn record(path: &str) -> FileRecord {
    FileRecord {
        path: path.to_owned(),
        sha256: Digest::compute(path.as_bytes()),
        bytes: 5,
    }
}

/// The record of a phase's artifact.
pub(crate) fn artifact(phase: PhaseId) -> FileRecord {
    record(&format!("artifacts/{}", phase.artifact()))
}

/// The inputs of a phase: every artifact before it, or the idea.
pub(crate) fn inputs(phase: PhaseId) -> Vec<FileRecord> {
    let mut inputs = vec![record("context/idea.md")];
    inputs.extend(
        phase
            .up_to()
            .filter(|before| *before != phase)
            .map(artifact),
    );
    inputs
}

/// The receipt of a success.
pub(crate) fn success(phase: PhaseId, sequence: u64, at: Timestamp) -> SpecReceipt {
    let id = ReceiptId::new(phase, at, sequence).to_string();
    let receipt = json!({
        "schema_version": RECEIPT_SCHEMA,
        "receipt_id": id,
        "digest": Digest::compute(id.as_bytes()),
        "spec_id": "export-data",
        "sequence": sequence,
        "emitted_at": at,
        "clock": ClockSource::System,
        "exit_code": 0,
        "pipeline": { "execution_strategy": "controlled" },
        "phases": [{
            "phase_id": phase,
            "status": PhaseStatus::Success,
            "started_at": at,
            "finished_at": at,
            "attempts": 1,
            "packet": { "sha256": Digest::compute(b"packet"), "bytes": 5, "lines": 1, "entries": 1 },
            "inputs": inputs(phase),
            "outputs": [artifact(phase)],
            "llm": {
                "provider": "replay",
                "model_used": "model-1",
                "tokens_input": 100,
                "tokens_output": 20,
                "cost": { "micro_dollars": 7, "basis": "estimated" },
            },
        }],
    });
    serde_json::from_value(receipt).unwrap()
}

/// The receipt of a failure.
pub(crate) fn failure(phase: PhaseId, sequence: u64, at: Timestamp) -> SpecReceipt {
    let mut receipt = success(phase, sequence, at);
    receipt.exit_code = Some(70);
    receipt.phases[0].status = PhaseStatus::Failed;
    receipt.phases[0].outputs.clear();
    receipt
}

/// The receipt of a dry run.
pub(crate) fn dry_run(phase: PhaseId, sequence: u64, at: Timestamp) -> SpecReceipt {
    let mut receipt = success(phase, sequence, at);
    receipt.dry_run = true;
    receipt.phases[0].status = PhaseStatus::DryRun;
    receipt.phases[0].outputs.clear();
    receipt
}

/// A phase without a receipt.
pub(crate) fn untouched(phase: PhaseId) -> PhaseState {
    PhaseState {
        phase,
        newest: None,
        newest_real: None,
        last_success: None,
        last_call_receipt: None,
        outputs: Vec::new(),
        inputs: Vec::new(),
    }
}

/// A phase whose newest receipt is this success, with all its files unchanged on disk.
pub(crate) fn finished_phase(phase: PhaseId, receipt: SpecReceipt) -> PhaseState {
    let tracked = |records: &[FileRecord]| -> Vec<TrackedRecord> {
        records
            .iter()
            .map(|record| TrackedRecord {
                record: record.clone(),
                found: FileState::Same,
            })
            .collect()
    };
    let entry = &receipt.phases[0];
    PhaseState {
        phase,
        outputs: tracked(&entry.outputs),
        inputs: tracked(&entry.inputs),
        newest: Some(receipt.clone()),
        newest_real: Some(receipt.clone()),
        last_success: Some(receipt),
        last_call_receipt: None,
    }
}

/// A spec whose phases up to this one are done, a minute apart, the last at `at`.
pub(crate) fn done_up_to(last: Option<PhaseId>, at: Timestamp) -> SpecState {
    let count = PhaseId::ALL
        .iter()
        .filter(|phase| Some(**phase) <= last)
        .count() as i64;
    let phases = PhaseId::ALL.into_iter().zip(1..).map(|(phase, place)| {
        if Some(phase) <= last {
            finished_phase(
                phase,
                success(phase, place as u64, later(at, (place - count) * 60_000)),
            )
        } else {
            untouched(phase)
        }
    });
    SpecState {
        spec: "export-data".parse().unwrap(),
        phases: phases.collect(),
        problems: Vec::new(),
        receipts: count as u64,
        not_from_here: Vec::new(),
        fixups_undone: Vec::new(),
        has_idea: true,
    }
}
