//! Reads the lines of a note: signed bundles, in a fixed order.

use crucible_model::{Code, Finding, UniqueJson};

use crate::bundle::{BUNDLE_MEDIA_TYPE, Bundle};
use crate::dsse::PAYLOAD_TYPE;
use crate::policy::{KeyHolder, Policy};
use crate::statement::{Statement, StatementFault, is_canonical};

/// The largest note in bytes.
pub const MAX_NOTE: u64 = 1 << 20;

const NOTE_FOREIGN: Code = Code::new("attest-note-foreign");
const ENVELOPE_BROKEN: Code = Code::new("attest-envelope-broken");
const FORMAT_UNKNOWN: Code = Code::new("attest-format-unknown");
const PAYLOAD_TYPE_OTHER: Code = Code::new("attest-payload-type");
const SIGNER_UNKNOWN: Code = Code::new("attest-signer-unknown");
const SIGNATURE_INVALID: Code = Code::new("attest-signature-invalid");
const STATEMENT_BROKEN: Code = Code::new("attest-statement-broken");

/// A statement whose signature is valid.
#[derive(Debug)]
pub(crate) struct SignedStatement<'p> {
    pub(crate) signer: &'p KeyHolder,
    pub(crate) payload: Vec<u8>,
    pub(crate) statement: Statement,
}

/// Reads one line. The first problem is the finding; its subject begins with `place`.
pub(crate) fn read_line<'p>(
    policy: &'p Policy,
    place: &str,
    line: &[u8],
) -> Result<SignedStatement<'p>, Finding> {
    let refuse = |code: Code, hint: String| Finding::error(code, place, hint);
    let broken = |why: &str| refuse(ENVELOPE_BROKEN, format!("it is not a valid bundle: {why}"));
    if line.first() != Some(&b'{') {
        let hint =
            "it is not a statement of Crucible; other tools must use another ref for their notes";
        return Err(refuse(NOTE_FOREIGN, hint.to_owned()));
    }
    let value = UniqueJson::exact(line).map_err(|error| broken(&error.to_string()))?;
    let media_type = value.get("mediaType").and_then(serde_json::Value::as_str);
    if media_type != Some(BUNDLE_MEDIA_TYPE) {
        let found = media_type.unwrap_or_default();
        let hint = format!("the format {found:?} is unknown; a statement is a {BUNDLE_MEDIA_TYPE}");
        return Err(refuse(FORMAT_UNKNOWN, hint));
    }
    let bundle: Bundle =
        serde_json::from_value(value).map_err(|error| broken(&error.to_string()))?;
    if !is_canonical(&bundle, line) {
        return Err(broken("it is not canonical JSON"));
    }
    let envelope = &bundle.envelope;
    let [signature] = envelope.signatures.as_slice() else {
        return Err(broken("it has not exactly one signature"));
    };
    if bundle.verification_material.public_key.hint != signature.keyid {
        return Err(broken("its two key hints differ"));
    }
    if envelope.payload_type != PAYLOAD_TYPE {
        let hint = format!(
            "the payload type is {:?}, not {PAYLOAD_TYPE}",
            envelope.payload_type
        );
        return Err(refuse(PAYLOAD_TYPE_OTHER, hint));
    }
    let payload = envelope
        .payload()
        .ok_or_else(|| broken("its payload is not canonical base64"))?;
    let signer = policy
        .signers
        .iter()
        .find(|signer| signer.key.fingerprint() == signature.keyid);
    let Some(signer) = signer else {
        let hint = format!(
            "the policy names no signer with the key {}",
            signature.keyid
        );
        return Err(refuse(SIGNER_UNKNOWN, hint));
    };
    if !signature.verifies(&signer.key, PAYLOAD_TYPE, &payload) {
        let hint = format!("it is not a signature of this statement by {}", signer.name);
        return Err(refuse(SIGNATURE_INVALID, hint));
    }
    let statement = Statement::parse(&payload).map_err(|fault| fault.finding(place))?;
    Ok(SignedStatement {
        signer,
        payload,
        statement,
    })
}

impl StatementFault {
    /// The finding of a statement that cannot be judged.
    pub(crate) fn finding(self, place: &str) -> Finding {
        match self {
            Self::Malformed(why) => Finding::error(
                STATEMENT_BROKEN,
                place,
                format!("the signed statement is invalid: {why}"),
            ),
            Self::Unknown(kind) => {
                let hint = format!(
                    "unknown statement type {kind:?}; a newer version of Crucible may support it"
                );
                Finding::error(FORMAT_UNKNOWN, place, hint)
            }
        }
    }
}

/// Splits a note into its lines; the last must be complete.
pub(crate) fn lines(note: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = note.split(|byte| *byte == b'\n').collect();
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    lines
}

/// Returns the payload of the first statement of a note, without any verification.
#[must_use]
pub fn payload_of(note: &[u8]) -> Option<Vec<u8>> {
    let value = UniqueJson::exact(lines(note).first()?).ok()?;
    let bundle: Bundle = serde_json::from_value(value).ok()?;
    bundle.envelope.payload()
}

/// Returns the commit that the first statement of a note or file is about, without any verification.
#[must_use]
pub fn subject_commit(note: &[u8]) -> Option<String> {
    let statement = Statement::parse(&payload_of(note)?).ok()?;
    statement.digest("commit", "gitCommit").map(str::to_owned)
}
