//! in-toto statements (version 1) and the three that every landed commit has.
//!
//! The test result and the verification summary follow from the change, so a judge computes them again and compares.

use std::collections::BTreeMap;

use crucible_model::{CanonicalError, Digest, UniqueJson, to_canonical_json};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::change::{CHANGE_PREDICATE, CHANGE_PREDICATE_V2, CarriedFrom, Change, GateVerdict};

/// The type of every statement.
const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
/// The registered predicate of test results.
pub const RESULT_PREDICATE: &str = "https://in-toto.io/attestation/test-result/v0.1";
/// The registered predicate of verification summaries.
pub const SUMMARY_PREDICATE: &str = "https://slsa.dev/verification_summary/v1";

/// Digests by algorithm.
pub type DigestSet = BTreeMap<String, String>;

/// A statement: a predicate about some subjects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// The statement format and its version.
    #[serde(rename = "_type")]
    pub kind: String,
    /// The commit, the tree and the patch.
    pub subject: Vec<Subject>,
    /// The type of the predicate.
    #[serde(rename = "predicateType")]
    pub predicate_type: String,
    /// The content, whose shape `predicate_type` names.
    pub predicate: Value,
}

/// Something that a statement is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// `commit`, `tree` or `patch`.
    pub name: String,
    /// Its digest: `gitCommit`, `gitTree` or `sha256`.
    pub digest: DigestSet,
}

/// Why a payload is not a statement that can be judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StatementFault {
    /// It is not canonical JSON of the right shape.
    Malformed(String),
    /// Its type, or that of its predicate, is unknown.
    Unknown(String),
}

impl Statement {
    /// Parses a payload, which must be canonical.
    pub(crate) fn parse(payload: &[u8]) -> Result<Self, StatementFault> {
        let broken = |why: String| StatementFault::Malformed(why);
        let value = UniqueJson::exact(payload).map_err(|error| broken(error.to_string()))?;
        let kind = value
            .get("_type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if kind != STATEMENT_TYPE {
            return Err(StatementFault::Unknown(kind.to_owned()));
        }
        let statement: Self =
            serde_json::from_value(value).map_err(|error| broken(error.to_string()))?;
        if !is_canonical(&statement, payload) {
            return Err(broken("it is not canonical JSON".to_owned()));
        }
        let known = [
            CHANGE_PREDICATE,
            CHANGE_PREDICATE_V2,
            RESULT_PREDICATE,
            SUMMARY_PREDICATE,
        ];
        if !known.contains(&statement.predicate_type.as_str()) {
            return Err(StatementFault::Unknown(statement.predicate_type));
        }
        Ok(statement)
    }

    /// Returns the change that a statement with [`CHANGE_PREDICATE`] describes.
    pub(crate) fn change(&self) -> Result<Change, StatementFault> {
        let kind = self.predicate_type.as_str();
        if ![CHANGE_PREDICATE, CHANGE_PREDICATE_V2].contains(&kind) {
            return Err(StatementFault::Unknown(kind.to_owned()));
        }
        let change: Change = serde_json::from_value(self.predicate.clone())
            .map_err(|error| StatementFault::Malformed(error.to_string()))?;
        if change.predicate_type() == kind {
            Ok(change)
        } else {
            let why = format!("its fields are those of {}", change.predicate_type());
            Err(StatementFault::Malformed(why))
        }
    }

    /// Returns the digest of a subject, by its name and algorithm.
    pub(crate) fn digest(&self, name: &str, algorithm: &str) -> Option<&str> {
        let subject = self.subject.iter().find(|subject| subject.name == name)?;
        subject.digest.get(algorithm).map(String::as_str)
    }
}

/// Returns whether these bytes are the canonical JSON of the value that was read from them.
pub(crate) fn is_canonical<T: Serialize>(value: &T, bytes: &[u8]) -> bool {
    to_canonical_json(value).is_ok_and(|canonical| canonical == bytes)
}

/// Returns the payloads of the three statements about a commit with this tree: the change, the test result, the
/// summary.
///
/// # Errors
///
/// Fails as [`to_canonical_json`] does, which cannot happen for these types.
pub fn statements(
    change: &Change,
    commit: &str,
    tree: &str,
) -> Result<[Vec<u8>; 3], CanonicalError> {
    let subject = [
        ("commit", "gitCommit", commit.to_owned()),
        ("tree", "gitTree", tree.to_owned()),
        ("patch", "sha256", change.patch.to_string()),
    ]
    .map(|(name, algorithm, digest)| Subject {
        name: name.to_owned(),
        digest: DigestSet::from([(algorithm.to_owned(), digest)]),
    });
    let payload = |predicate_type: &str, predicate: Value| {
        to_canonical_json(&Statement {
            kind: STATEMENT_TYPE.to_owned(),
            subject: subject.to_vec(),
            predicate_type: predicate_type.to_owned(),
            predicate,
        })
    };
    let of_change = serde_json::to_value(change)?;
    let first = payload(change.predicate_type(), of_change)?;
    let result = payload(RESULT_PREDICATE, test_result(change))?;
    let summary = payload(
        SUMMARY_PREDICATE,
        summary(change, commit, &Digest::compute(&first)),
    )?;
    Ok([first, result, summary])
}

fn test_result(change: &Change) -> Value {
    let verification = &change.verification;
    let gates = |is_requested: bool| -> Vec<&str> {
        let gates = verification.gates.iter();
        gates
            .filter(|gate| (gate.result == GateVerdict::Passed) == is_requested)
            .map(|gate| gate.id.as_str())
            .collect()
    };
    json!({
        "result": outcome(verification.result),
        "configuration": [{ "name": "verify_report.json", "digest": { "sha256": verification.report } }],
        "passedTests": gates(true),
        "warnedTests": [],
        "failedTests": gates(false),
    })
}

fn summary(change: &Change, commit: &str, statement: &Digest) -> Value {
    let algorithm = if commit.len() == 64 { "sha256" } else { "sha1" };
    let passed = change.verification.result == GateVerdict::Passed;
    json!({
        "verifier": {
            "id": "urn:crucible:verifier",
            "version": { change.producer.name.as_str(): change.producer.version },
        },
        "timeVerified": change.created_at,
        "resourceUri": format!("gitoid:commit:{algorithm}:{commit}"),
        "policy": { "uri": "urn:crucible:plan", "digest": { "sha256": change.plan.plan } },
        "inputAttestations": [{ "uri": change.predicate_type(), "digest": { "sha256": statement } }],
        "verificationResult": outcome(change.verification.result),
        "verifiedLevels": [if passed { "CRUCIBLE_GATES_PASSED" } else { "FAILED" }],
        "slsaVersion": "1.0",
    })
}

const fn outcome(result: GateVerdict) -> &'static str {
    match result {
        GateVerdict::Passed => "PASSED",
        GateVerdict::Failed | GateVerdict::Skipped | GateVerdict::Neutral => "FAILED",
    }
}

/// Returns the change of a statement for a rewritten commit, with the original commit. The caller must have judged the
/// statement, and it must not be carried over itself.
///
/// # Errors
///
/// Returns what is wrong with the statement.
pub fn carried(payload: &[u8]) -> Result<Change, String> {
    let read = |fault: StatementFault| match fault {
        StatementFault::Malformed(why) => why,
        StatementFault::Unknown(kind) => format!("unknown type {kind:?}"),
    };
    let statement = Statement::parse(payload).map_err(read)?;
    let commit = statement.digest("commit", "gitCommit").unwrap_or_default();
    Ok(Change {
        carried_from: Some(CarriedFrom {
            commit: commit.to_owned(),
            statement: Digest::compute(payload),
        }),
        ..statement.change().map_err(read)?
    })
}
