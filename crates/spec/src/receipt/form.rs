//! The bytes of a receipt: sealed when written, verified when read.
//!
//! Written: canonical JSON (RFC 8785) and one final newline. Its `digest` is the SHA-256 of the canonical
//! JSON of the whole object without that field. Read: any spelling of the same JSON. The digest covers
//! the JSON as read, including fields of a newer Crucible that this version does not know.
//!
//! A receipt from elsewhere may contain a secret in any of its texts. Receipts are shown and copied, so
//! they are redacted here, once for all readers. The digest is that of the original bytes.
//!
//! Invariant: a receipt with the schema `receipt.v1` but without a matching digest is refused. Only a
//! receipt from before the schema had a name may have none.

use crucible_model::{CanonicalError, Digest, Finding, UniqueJson, short_line, to_canonical_json};
use crucible_secrets::Scanner;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{PhaseEntry, PhaseStatus, RECEIPT_SCHEMA, ReceiptId, SpecReceipt};
use crate::id::SpecId;

/// The largest receipt, in bytes.
pub(crate) const MAX_RECEIPT_BYTES: u64 = 1 << 20;

/// Above this, two whole numbers can have the same canonical form.
const EXACT: u64 = 1 << 53;

/// A parsed receipt.
#[derive(Debug, Clone)]
pub(crate) struct ReadReceipt {
    pub(crate) receipt: SpecReceipt,
    /// The digest of the parsed content, whether the receipt states it or not.
    pub(crate) digest: Digest,
}

/// Why bytes are not a valid receipt, or not the expected one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReceiptFault {
    /// They are not a receipt.
    Unreadable(String),
    /// They are another receipt.
    NameDisagrees,
    /// Its digest does not match its content.
    DigestDiffers,
}

impl ReadReceipt {
    /// Parses the receipt with this id of this spec.
    pub(crate) fn from_bytes(
        bytes: &[u8],
        spec: &SpecId,
        id: &ReceiptId,
    ) -> Result<Self, ReceiptFault> {
        let read = Self::parse(bytes)?;
        let receipt = &read.receipt;
        let is_old = receipt.schema_version.is_empty();
        let same_place = receipt.sequence == id.sequence() || (is_old && receipt.sequence == 0);
        let phase = receipt.phase(id.phase().as_str());
        if receipt.receipt_id != id.as_str()
            || receipt.spec_id != spec.as_str()
            || !same_place
            || phase.is_none()
        {
            return Err(ReceiptFault::NameDisagrees);
        }
        Ok(read)
    }

    /// Parses a receipt of this spec whose id is not known from elsewhere: it must state all of its own.
    pub(crate) fn staged(bytes: &[u8], spec: &SpecId) -> Option<(ReceiptId, Self)> {
        let read = Self::parse(bytes).ok()?;
        let id: ReceiptId = read.receipt.receipt_id.parse().ok()?;
        let is_complete = read.receipt.digest.is_some()
            && read.receipt.sequence == id.sequence()
            && read.receipt.spec_id == spec.as_str();
        is_complete.then_some((id, read))
    }

    /// The bytes of this receipt for copying: redacted if they contain a secret.
    pub(crate) fn redacted_copy(&self, bytes: Vec<u8>) -> Vec<u8> {
        if is_free_of_secrets(&bytes) {
            return bytes;
        }
        to_canonical_json(&self.receipt)
            .unwrap_or_else(|_| Scanner::builtin().redact_bytes(&bytes).0)
    }

    fn parse(bytes: &[u8]) -> Result<Self, ReceiptFault> {
        let unreadable = |why: String| ReceiptFault::Unreadable(short_line(&why, 200));
        let UniqueJson(mut value) =
            serde_json::from_slice(bytes).map_err(|error| unreadable(error.to_string()))?;
        if !value.is_object() {
            return Err(unreadable("it is not a JSON object".to_owned()));
        }
        if !is_exact(&value) {
            return Err(unreadable("a whole number in it is too large".to_owned()));
        }
        let receipt =
            SpecReceipt::deserialize(&value).map_err(|error| unreadable(error.to_string()))?;
        let named = receipt.schema_version == RECEIPT_SCHEMA;
        if !named && !receipt.schema_version.is_empty() {
            let why = format!(
                "its schema is {:?}, but this version reads {RECEIPT_SCHEMA}",
                receipt.schema_version
            );
            return Err(unreadable(why));
        }
        let mut phases: Vec<&str> = receipt
            .phases
            .iter()
            .map(|phase| phase.phase_id.as_str())
            .collect();
        phases.sort_unstable();
        if phases.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(unreadable("it contains a phase twice".to_owned()));
        }
        if let Value::Object(fields) = &mut value {
            fields.remove("digest");
        }
        let digest = Digest::of_canonical(&value).map_err(|error| unreadable(error.to_string()))?;
        match receipt.digest {
            Some(stated) if stated == digest => {}
            None if !named => {}
            Some(_) | None => return Err(ReceiptFault::DigestDiffers),
        }
        if is_free_of_secrets(bytes) {
            return Ok(Self { receipt, digest });
        }
        redact(&mut value);
        let redacted =
            SpecReceipt::deserialize(&value).map_err(|error| unreadable(error.to_string()))?;
        let receipt = SpecReceipt {
            digest: receipt.digest,
            ..redacted
        };
        Ok(Self { receipt, digest })
    }
}

impl SpecReceipt {
    /// The receipt with its digest, and its bytes.
    pub(crate) fn sealed(mut self) -> Result<(Self, Digest, Vec<u8>), CanonicalError> {
        self.digest = None;
        let digest = Digest::of_canonical(&self)?;
        self.digest = Some(digest);
        let mut bytes = to_canonical_json(&self)?;
        bytes.push(b'\n');
        Ok((self, digest, bytes))
    }

    /// Whether a model was called, or would have been if the phase had not failed earlier. A receipt that
    /// is marked as a dry run but records a real one is real, so that it hides no failure. It is not a
    /// success either.
    pub(crate) fn is_real(&self, id: &ReceiptId) -> bool {
        let entry = self.phase(id.phase().as_str());
        !self.claims_dry_run(entry) || self.belies_dry_run(entry)
    }

    /// Whether any part of it says that it is a dry run.
    pub(crate) fn claims_dry_run(&self, entry: Option<&PhaseEntry>) -> bool {
        self.dry_run || entry.is_some_and(|entry| entry.status == PhaseStatus::DryRun)
    }

    /// Whether a part of it contradicts a dry run: a model call, an output, or another end of the phase.
    fn belies_dry_run(&self, entry: Option<&PhaseEntry>) -> bool {
        let Some(entry) = entry else { return false };
        // Receipts from before the schema have only the status for it.
        let is_named = self.schema_version == RECEIPT_SCHEMA;
        let agrees = entry.status == PhaseStatus::DryRun && (self.dry_run || !is_named);
        let failed = self.exit_code.is_some_and(|code| code != 0) && entry.error.is_none();
        !agrees || failed || entry.attempts > 0 || entry.llm.is_some() || !entry.outputs.is_empty()
    }

    /// Whether it records a success that is not a dry run.
    pub(crate) fn is_real_success(&self, id: &ReceiptId) -> bool {
        let status = self.phase(id.phase().as_str()).map(|phase| phase.status);
        !self.dry_run && status == Some(PhaseStatus::Success)
    }
}

/// Parses findings of a newer Crucible: unknown fields are ignored.
pub(super) fn loose_findings<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Finding>, D::Error> {
    #[derive(Deserialize)]
    struct Loose {
        code: crucible_model::Code,
        level: crucible_model::Level,
        subject: String,
        hint: String,
    }
    let loose = Vec::<Loose>::deserialize(deserializer)?;
    let strict = |Loose {
                      code,
                      level,
                      subject,
                      hint,
                  }| Finding {
        code,
        level,
        subject,
        hint,
    };
    Ok(loose.into_iter().map(strict).collect())
}

/// Whether no text of this JSON can contain a secret. Escapes can hide what a rule looks for, so each
/// text must be scanned.
fn is_free_of_secrets(json: &[u8]) -> bool {
    !json.windows(2).any(|pair| pair == b"\\u") && Scanner::builtin().scan(json).is_empty()
}

/// Redacts every text.
fn redact(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let std::borrow::Cow::Owned(clean) = Scanner::builtin().redact(text).text {
                *text = clean;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::Object(fields) => fields.values_mut().for_each(redact),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether every whole number has a unique canonical form.
fn is_exact(value: &Value) -> bool {
    match value {
        Value::Number(number) => {
            let total = number
                .as_u64()
                .or_else(|| number.as_i64().map(i64::unsigned_abs));
            total.is_none_or(|whole| whole <= EXACT)
        }
        Value::Array(items) => items.iter().all(is_exact),
        Value::Object(fields) => fields.values().all(is_exact),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use crucible_llm::{LlmReceipt, PipelineReceipt, ReceiptWarning};
    use crucible_model::{ClockSource, Timestamp};
    use proptest::prelude::*;

    use super::*;
    use crate::phase_id::PhaseId;
    use crate::receipt::{FileRecord, PhaseEntry};

    const OLD: &str = include_str!("../../tests/fixtures/receipts/before-the-schema.json");
    const LATER: &str = include_str!("../../tests/fixtures/receipts/of-a-later-version.json");

    fn read(text: &str, id: &str) -> Result<ReadReceipt, ReceiptFault> {
        ReadReceipt::from_bytes(
            text.as_bytes(),
            &"export-data".parse().unwrap(),
            &id.parse().unwrap(),
        )
    }

    fn schema() -> &'static jsonschema::Validator {
        static SCHEMA: std::sync::LazyLock<jsonschema::Validator> =
            std::sync::LazyLock::new(|| {
                let schema = include_str!("../../../../docs/schemas/receipt.v1.schema.json");
                jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap()
            });
        &SCHEMA
    }

    #[test]
    fn receipt_without_schema_name_is_read() {
        let id = "requirements-20241201-100000-0001";
        let read = read(OLD, id).unwrap();
        let phase = read.receipt.phase("requirements").unwrap();
        assert_eq!(phase.llm.as_ref().unwrap().tokens_input, Some(1024));
        assert_eq!(phase.warnings[0].kind, "llm_fallback");
        assert_eq!(
            (
                read.receipt.sequence,
                read.receipt.emitted_at,
                read.receipt.digest
            ),
            (0, None, None)
        );
        assert!(read.receipt.is_real_success(&id.parse().unwrap()));
        assert!(schema().is_valid(&serde_json::from_str(OLD).unwrap()));
        let least = format!(
            r#"{{"receipt_id":"{id}","spec_id":"export-data","phases":[{{"phase_id":"requirements","status":"failed"}}]}}"#
        );
        assert!(self::read(&least, id).is_ok());
    }

    /// All fields of `llm` are optional, and so are `llm`, `warnings` and `pipeline` themselves;
    /// unknown fields may appear anywhere.
    #[test]
    fn extensions_are_optional_unknown_fields_allowed() {
        let id = "requirements-20241201-100000-0001";
        let old: Value = serde_json::from_str(OLD).unwrap();
        let fits = |value: &Value, what: &str| {
            assert!(schema().is_valid(value), "{what}: {value:#}");
            let read = read(&value.to_string(), id);
            assert!(read.is_ok(), "{what}: {:?}", read.err());
        };
        let fields: Vec<String> = old["phases"][0]["llm"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        assert!(fields.len() >= 3, "{fields:?}");
        for field in &fields {
            let mut less = old.clone();
            less["phases"][0]["llm"]
                .as_object_mut()
                .unwrap()
                .remove(field);
            fits(&less, field);
        }
        let mut empty = old.clone();
        empty["phases"][0]["llm"] = serde_json::json!({});
        fits(&empty, "an empty llm block");
        for extension in ["llm", "warnings"] {
            let mut less = old.clone();
            less["phases"][0].as_object_mut().unwrap().remove(extension);
            fits(&less, extension);
        }
        let mut less = old.clone();
        less.as_object_mut().unwrap().remove("pipeline");
        fits(&less, "pipeline");
        for place in [
            "",
            "/phases/0",
            "/phases/0/llm",
            "/phases/0/warnings/0",
            "/pipeline",
        ] {
            let mut more = old.clone();
            if let Some(object) = more.pointer_mut(place).and_then(Value::as_object_mut) {
                object.insert(
                    "of_a_later_version".to_owned(),
                    serde_json::json!({ "x": [1] }),
                );
                fits(&more, place);
            }
        }
    }

    /// A reader that knows only the original fields can read current receipts.
    #[test]
    fn older_reader_accepts_current_receipt() {
        #[derive(serde::Deserialize)]
        struct OldReceipt {
            receipt_id: String,
            phases: Vec<OldPhase>,
            pipeline: OldPipeline,
        }
        #[derive(serde::Deserialize)]
        struct OldPhase {
            phase_id: String,
            status: String,
            llm: Option<OldLlm>,
            #[serde(default)]
            warnings: Vec<OldWarning>,
        }
        #[derive(serde::Deserialize)]
        struct OldLlm {
            provider: Option<String>,
            budget_exhausted: Option<bool>,
        }
        #[derive(serde::Deserialize)]
        struct OldWarning {
            #[serde(rename = "type")]
            kind: String,
        }
        #[derive(serde::Deserialize)]
        struct OldPipeline {
            execution_strategy: String,
        }
        for text in [OLD, LATER] {
            let old: OldReceipt = serde_json::from_str(text).unwrap();
            assert!(!old.receipt_id.is_empty() && old.pipeline.execution_strategy == "controlled");
            let phase = &old.phases[0];
            assert!(!phase.phase_id.is_empty() && phase.status == "success");
            assert!(
                phase
                    .warnings
                    .iter()
                    .all(|warning| !warning.kind.is_empty())
            );
            let call = phase
                .llm
                .as_ref()
                .map(|llm| (llm.provider.is_some(), llm.budget_exhausted));
            assert!(call.is_none_or(|(named, exhausted)| named && exhausted != Some(true)));
        }
    }

    #[test]
    fn newer_receipt_digest_covers_unknown_fields() {
        let id = "design-20280101-120000-0007";
        let later = read(LATER, id).unwrap();
        assert_eq!(
            later.receipt.phase("design").unwrap().findings[0]
                .code
                .as_str(),
            "spec-new"
        );
        assert_eq!(later.receipt.digest, Some(later.digest));
        assert!(schema().is_valid(&serde_json::from_str(LATER).unwrap()));
        for (from, to) in [
            ("\"grams\": 12", "\"grams\": 13"),
            ("calm", "angry"),
            ("\"line\": 7", "\"line\": 8"),
        ] {
            let edited = LATER.replace(from, to);
            assert_ne!(edited, LATER);
            assert_eq!(
                read(&edited, id).unwrap_err(),
                ReceiptFault::DigestDiffers,
                "{to}"
            );
        }
        // Only a receipt from before the schema may lack its sequence number.
        let mut nowhere: Value = serde_json::from_str(LATER).unwrap();
        nowhere["sequence"] = 0.into();
        nowhere.as_object_mut().unwrap().remove("digest");
        nowhere["digest"] = Digest::of_canonical(&nowhere).unwrap().to_string().into();
        assert_eq!(
            read(&nowhere.to_string(), id).unwrap_err(),
            ReceiptFault::NameDisagrees
        );
        let without: Value = {
            let mut value: Value = serde_json::from_str(LATER).unwrap();
            value.as_object_mut().unwrap().remove("digest");
            value
        };
        assert_eq!(
            read(&without.to_string(), id).unwrap_err(),
            ReceiptFault::DigestDiffers
        );
    }

    #[test]
    fn foreign_receipt_secret_is_redacted() {
        let secret = format!("gh{}_{}", 'p', "16C7e42F292c6912E7710c838347Ae178B4a");
        let id = "design-20280101-120000-0007";
        let mut value: Value = serde_json::from_str(LATER).unwrap();
        value.as_object_mut().unwrap().remove("digest");
        value["phases"][0]["llm"]["model_used"] = Value::from(secret.clone());
        value["phases"][0]["error"] =
            serde_json::json!({"class": secret, "message": format!("key={secret}")});
        value["phases"][0]["warnings"] = serde_json::json!([{"type": secret, "message": secret}]);
        let digest = Digest::of_canonical(&value).unwrap();
        value["digest"] = serde_json::to_value(digest).unwrap();
        let plain = value.to_string();
        // The same JSON with the secret written in escapes.
        let spelled = plain.replace("ghp_", "gh\\u0070_");
        assert_ne!(spelled, plain);
        for text in [plain, spelled] {
            let read = read(&text, id).unwrap();
            assert_eq!((read.digest, read.receipt.digest), (digest, Some(digest)));
            let content = format!("{:?}", read.receipt);
            assert!(!content.contains(&secret[4..]), "{content}");
            let phase = read.receipt.phase("design").unwrap();
            assert_eq!(
                phase.error.as_ref().unwrap().class,
                "[secret:github-personal-token]"
            );
        }
    }

    #[test]
    fn malformed_receipt_states_reason() {
        let id = "requirements-20241201-100000-0001";
        let deep = format!("{{\"x\":{}1{}}}", "[".repeat(5000), "]".repeat(5000));
        for (text, why) in [
            (String::new(), "EOF"),
            ("[]".to_owned(), "not a JSON object"),
            ("{}".to_owned(), "receipt_id"),
            (deep, "recursion limit"),
            (
                OLD.replacen('{', "{\"spec_id\":\"x\",", 1),
                "a key stands twice in an object",
            ),
            (OLD.replace("1024", "9007199254740993"), "too large"),
            (
                OLD.replacen('{', "{\"schema_version\":\"receipt.v2\",", 1),
                "this version reads receipt.v1",
            ),
            (OLD.replace("\"success\"", "\"splendid\""), "splendid"),
            (
                OLD.replace(
                    "\"phases\": [",
                    "\"phases\": [{\"phase_id\":\"requirements\",\"status\":\"failed\"},",
                ),
                "twice",
            ),
            (format!("{OLD}{{}}"), "trailing"),
            (OLD.replace("export-data", "\u{1b}[2J"), "control character"),
        ] {
            match read(&text, id) {
                Err(ReceiptFault::Unreadable(error)) => {
                    assert!(
                        error.contains(why) && error.chars().count() <= 200,
                        "{why}: {error}"
                    );
                }
                other => panic!("{why}: {other:?}"),
            }
        }
        for (text, id) in [
            (OLD.replace("export-data", "other"), id),
            (
                OLD.replace("\"phase_id\": \"requirements\"", "\"phase_id\": \"design\""),
                id,
            ),
            (OLD.replacen('{', "{\"sequence\":2,", 1), id),
            (OLD.to_owned(), "requirements-20241201-100000-0002"),
        ] {
            assert_eq!(
                read(&text, id).unwrap_err(),
                ReceiptFault::NameDisagrees,
                "{text}"
            );
        }
    }

    fn any_receipt() -> impl Strategy<Value = SpecReceipt> {
        let llm = (any::<Option<u32>>(), ".{0,12}", any::<Option<bool>>()).prop_map(
            |(tokens, model, timed_out)| LlmReceipt {
                provider: Some("gateway".to_owned()),
                model_used: Some(model),
                tokens_input: tokens.map(u64::from),
                timed_out,
                ..LlmReceipt::default()
            },
        );
        let file = ("[a-z]{1,8}", any::<u32>()).prop_map(|(name, bytes)| FileRecord {
            path: format!("artifacts/{name}"),
            sha256: Digest::compute(name.as_bytes()),
            bytes: u64::from(bytes),
        });
        let status = prop_oneof![
            Just(PhaseStatus::Success),
            Just(PhaseStatus::Failed),
            Just(PhaseStatus::DryRun)
        ];
        let phase = 0..PhaseId::ALL.len();
        let rest = (
            1u64..100_000,
            0i64..4_000_000_000,
            any::<bool>(),
            any::<u8>(),
            ".{0,20}",
        );
        (
            phase,
            status,
            prop::option::of(llm),
            prop::collection::vec(file, 0..4),
            rest,
        )
            .prop_map(
                |(phase, status, llm, files, (sequence, seconds, pinned, exit, message))| {
                    let phase = PhaseId::ALL[phase];
                    let at = Timestamp::from_unix(std::time::Duration::from_secs(
                        seconds.unsigned_abs(),
                    ));
                    SpecReceipt {
                        schema_version: RECEIPT_SCHEMA.to_owned(),
                        receipt_id: ReceiptId::new(phase, at, sequence).to_string(),
                        spec_id: "export-data".to_owned(),
                        sequence,
                        emitted_at: Some(at),
                        clock: Some(if pinned {
                            ClockSource::Pinned
                        } else {
                            ClockSource::System
                        }),
                        dry_run: status == PhaseStatus::DryRun,
                        exit_code: Some(exit),
                        phases: vec![PhaseEntry {
                            status,
                            llm,
                            attempts: sequence,
                            warnings: vec![ReceiptWarning {
                                kind: "x".to_owned(),
                                message,
                            }],
                            inputs: files.clone(),
                            outputs: files,
                            ..PhaseEntry::begun(phase, at)
                        }],
                        pipeline: Some(PipelineReceipt::default()),
                        previous: None,
                        last_real: None,
                        last_success: None,
                        crucible_version: None,
                        digest: None,
                    }
                },
            )
    }

    /// Changes the leaf with this index, counted over all of them.
    fn change_leaf(value: &mut Value, place: &mut usize) -> bool {
        match value {
            Value::Object(fields) => fields.values_mut().any(|value| change_leaf(value, place)),
            Value::Array(items) => items.iter_mut().any(|value| change_leaf(value, place)),
            leaf => {
                if *place > 0 {
                    *place -= 1;
                    return false;
                }
                *leaf = match leaf.take() {
                    Value::Bool(truth) => Value::Bool(!truth),
                    Value::Number(number) => Value::from(number.as_u64().unwrap_or_default() ^ 1),
                    Value::String(text) => Value::from(text + "x"),
                    _ => Value::from("x"),
                };
                true
            }
        }
    }

    mod properties {
        use super::*;

        proptest! {
            /// Every receipt names its execution strategy.
            #[test]
            fn receipt_round_trips_with_strategy(receipt in any_receipt()) {
                let id: ReceiptId = receipt.receipt_id.parse().unwrap();
                let (sealed, digest, bytes) = receipt.sealed().unwrap();
                let value: Value = serde_json::from_slice(&bytes).unwrap();
                prop_assert_eq!(&value["pipeline"]["execution_strategy"], "controlled");
                let read = ReadReceipt::from_bytes(&bytes, &"export-data".parse().unwrap(), &id).unwrap();
                prop_assert_eq!((&read.receipt, read.digest), (&sealed, digest));
                prop_assert_eq!(bytes.last(), Some(&b'\n'));
                prop_assert!(schema().is_valid(&value));
            }

            #[test]
            fn no_change_of_a_receipt_goes_unseen(receipt in any_receipt(), place in 0usize..40) {
                let id: ReceiptId = receipt.receipt_id.parse().unwrap();
                let (_, _, bytes) = receipt.sealed().unwrap();
                let mut value: Value = serde_json::from_slice(&bytes).unwrap();
                let mut left = place;
                prop_assume!(change_leaf(&mut value, &mut left));
                let edited = serde_json::to_vec(&value).unwrap();
                prop_assert!(ReadReceipt::from_bytes(&edited, &"export-data".parse().unwrap(), &id).is_err());
            }
        }
    }
}
