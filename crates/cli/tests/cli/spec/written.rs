//! Specs written by hand: receipts as their format describes them, without asking the program, so that what reads them is tried
//! against something else than what writes them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crucible_model::{Digest, Timestamp, to_canonical_json};
use crucible_spec::{PhaseId, ReceiptId};
use serde_json::{Value, json};

use crate::support::{Call, Fixture};

/// The spec of most tests.
pub(crate) const SPEC: &str = "export-data";

/// A project with one spec.
pub(crate) struct WrittenSpec {
    root: PathBuf,
    name: String,
    sequence: u64,
    previous: Option<Value>,
    last_real: BTreeMap<PhaseId, Value>,
    last_success: BTreeMap<PhaseId, Value>,
}

/// The instant this long ago.
pub(crate) fn ago(age: Duration) -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::from_unix(now.checked_sub(age).unwrap())
}

impl WrittenSpec {
    /// A project in this directory whose spec has no receipt.
    pub(crate) fn new(root: PathBuf) -> Self {
        Self::named(root, SPEC)
    }

    /// The same with another name; several may share a project.
    pub(crate) fn named(root: PathBuf, name: &str) -> Self {
        for dir in ["artifacts", "receipts", "context"] {
            std::fs::create_dir_all(root.join(".crucible/specs").join(name).join(dir)).unwrap();
        }
        std::fs::create_dir_all(root.join(".git")).unwrap();
        std::fs::write(
            root.join(".crucible/specs")
                .join(name)
                .join("context/idea.md"),
            "export\n",
        )
        .unwrap();
        let (previous, last_real, last_success) = Default::default();
        Self {
            root,
            name: name.to_owned(),
            sequence: 0,
            previous,
            last_real,
            last_success,
        }
    }

    /// A project on this fixture whose phases up to this one are done, all an hour ago.
    pub(crate) fn done(fixture: &Fixture, last: PhaseId) -> Self {
        let mut spec = Self::new(fixture.path("project"));
        for phase in last.up_to() {
            spec.success(phase, Duration::from_secs(3_600));
        }
        spec
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// A file of the spec's directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root
            .join(".crucible/specs")
            .join(&self.name)
            .join(name)
    }

    /// The program with these arguments, in the project.
    pub(crate) fn call<const N: usize>(&self, fixture: &Fixture, args: [&str; N]) -> Call {
        fixture.call(args).current_dir(&self.root)
    }

    /// A success of this phase this long ago, with its artifact. Its file.
    pub(crate) fn success(&mut self, phase: PhaseId, age: Duration) -> PathBuf {
        self.success_with(phase, age, |_| {})
    }

    /// The same, with a change before its digest is taken.
    pub(crate) fn success_with(
        &mut self,
        phase: PhaseId,
        age: Duration,
        change: impl FnOnce(&mut Value),
    ) -> PathBuf {
        let path = format!("artifacts/{}", phase.artifact());
        std::fs::write(self.path(&path), format!("# {phase}\n")).unwrap();
        let mut inputs = vec![self.record("context/idea.md")];
        let before = phase.up_to().filter(|before| *before != phase);
        inputs
            .extend(before.map(|before| self.record(&format!("artifacts/{}", before.artifact()))));
        let entry = json!({
            "phase_id": phase,
            "status": "success",
            "attempts": 1,
            "llm": { "provider": "gateway", "model_used": "model-1", "tokens_input": 1200, "tokens_output": 340,
                "cost": { "micro_dollars": 1500, "basis": "estimated" } },
            "packet": { "sha256": Digest::compute(b"packet"), "bytes": 6, "lines": 1, "entries": 1 },
            "inputs": inputs,
            "outputs": [self.record(&path)],
        });
        self.receipt(
            phase,
            age,
            json!({ "exit_code": 0, "phases": [entry] }),
            change,
        )
    }

    /// A failure of this phase this long ago. Its file.
    pub(crate) fn failure(&mut self, phase: PhaseId, age: Duration) -> PathBuf {
        let error = json!({ "class": "provider", "message": "the model is out of reach" });
        let entry = json!({ "phase_id": phase, "status": "failed", "attempts": 3, "error": error });
        self.receipt(
            phase,
            age,
            json!({ "exit_code": 70, "phases": [entry] }),
            |_| {},
        )
    }

    /// A dry run of this phase this long ago. Its file.
    pub(crate) fn dry_run(&mut self, phase: PhaseId, age: Duration) -> PathBuf {
        let entry = json!({ "phase_id": phase, "status": "dry_run" });
        self.receipt(
            phase,
            age,
            json!({ "exit_code": 0, "dry_run": true, "phases": [entry] }),
            |_| {},
        )
    }

    /// A file of the spec's directory by its digest.
    pub(crate) fn record(&self, path: &str) -> Value {
        let bytes = std::fs::read(self.path(path)).unwrap_or_default();
        json!({ "path": path, "sha256": Digest::compute(&bytes), "bytes": bytes.len() })
    }

    fn receipt(
        &mut self,
        phase: PhaseId,
        age: Duration,
        mut receipt: Value,
        change: impl FnOnce(&mut Value),
    ) -> PathBuf {
        self.sequence += 1;
        let at = ago(age);
        let id = ReceiptId::new(phase, at, self.sequence);
        let own = json!({
            "schema_version": "receipt.v1",
            "receipt_id": id.as_str(),
            "spec_id": self.name,
            "sequence": self.sequence,
            "emitted_at": at,
            "clock": "system",
            "pipeline": { "execution_strategy": "controlled" },
            "previous": self.previous,
            "last_real": self.last_real.get(&phase),
            "last_success": self.last_success.get(&phase),
        });
        for (key, value) in own
            .as_object()
            .unwrap()
            .iter()
            .filter(|(_, value)| !value.is_null())
        {
            receipt[key] = value.clone();
        }
        receipt["phases"][0]["started_at"] = json!(at);
        receipt["phases"][0]["finished_at"] = json!(at);
        change(&mut receipt);
        let link = json!({ "receipt_id": id.as_str(), "digest": seal(&mut receipt) });
        let path = self.path(&format!("receipts/{}", id.file_name()));
        std::fs::write(&path, to_canonical_json(&receipt).unwrap()).unwrap();
        let status = receipt["phases"][0]["status"].clone();
        if receipt["dry_run"] != true {
            self.last_real.insert(phase, link.clone());
            if status == "success" {
                self.last_success.insert(phase, link.clone());
            }
        }
        self.previous = Some(link);
        path
    }
}

/// Gives a receipt the digest of its content.
pub(crate) fn seal(receipt: &mut Value) -> Digest {
    receipt.as_object_mut().unwrap().remove("digest");
    let digest = Digest::of_canonical(receipt).unwrap();
    receipt["digest"] = json!(digest);
    digest
}
