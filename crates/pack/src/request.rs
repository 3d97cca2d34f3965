//! The file request: the requested files and how much of each.
//!
//! The schema is strict. `build` checks each need later: a bad path is an omission with a reason, not a
//! refused document.

use crucible_model::{ByteLimit, FileLimit};
use serde::{Deserialize, Serialize};

use crate::json::{self, DocumentError, schema_id};

/// The most needs that one request may hold.
pub const MAX_NEEDS: u64 = 10_000;

/// `artifacts/file_request.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileRequest {
    /// The schema of this document.
    pub schema_version: RequestVersion,
    /// What the change is to achieve.
    pub goal: String,
    /// The requested files, most important first.
    pub needs: Vec<Need>,
    /// How much of them may be given, mandatory documents included.
    pub budget: Budget,
    /// Why these files; repeated in the pack as their provenance.
    pub reason: String,
}

schema_id!(
    /// The schema id of a file request.
    RequestVersion,
    "ctcp-file-request-v1"
);

/// One wanted file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Need {
    /// Repository-relative POSIX path, as the requester wrote it: not yet judged.
    pub path: String,
    /// Whole, or lines of it.
    pub mode: Mode,
    /// The lines, for [`Mode::Snippets`].
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "ranges_or_null"
    )]
    pub line_ranges: Vec<LineRange>,
}

/// How much of a file is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// All of it, or the prefix that fits.
    Full,
    /// The named lines and nothing else.
    Snippets,
}

/// The lines `start` to `end`, inclusive, counted from 1; in JSON `[start, end]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "[u64; 2]", into = "[u64; 2]")]
pub struct LineRange {
    /// The first line.
    pub start: u64,
    /// The last line.
    pub end: u64,
}

impl From<[u64; 2]> for LineRange {
    fn from([start, end]: [u64; 2]) -> Self {
        Self { start, end }
    }
}

impl From<LineRange> for [u64; 2] {
    fn from(range: LineRange) -> Self {
        [range.start, range.end]
    }
}

/// What a pack may hold at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// The number of files.
    pub max_files: FileLimit,
    /// Maximum bytes of all contents together, as written in the pack.
    pub max_total_bytes: ByteLimit,
}

impl FileRequest {
    /// Reads a request.
    ///
    /// # Errors
    ///
    /// Fails when the document is larger than [`crate::MAX_DOCUMENT_BYTES`], is not JSON, states another
    /// schema, lacks a field, has an unknown or doubled one, a value of the wrong kind, or more than
    /// [`MAX_NEEDS`] needs. The error names the field.
    pub fn parse(bytes: &[u8]) -> Result<Self, DocumentError> {
        let request: Self = json::parse(bytes, RequestVersion::ID)?;
        let count = request.needs.len() as u64;
        if count > MAX_NEEDS {
            return Err(DocumentError::TooMany {
                field: "needs",
                count,
                limit: MAX_NEEDS,
            });
        }
        Ok(request)
    }
}

/// Some writers spell an absent list as `null`.
fn ranges_or_null<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<LineRange>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{
        "schema_version": "ctcp-file-request-v1", "goal": "g", "reason": "r",
        "needs": [{"path": "a", "mode": "full"}, {"path": "b", "mode": "snippets", "line_ranges": [[1, 2]]}],
        "budget": {"max_files": 3, "max_total_bytes": 100}
    }"#;

    fn refuse(text: &str) -> DocumentError {
        FileRequest::parse(text.as_bytes()).unwrap_err()
    }

    fn field_of(text: &str) -> String {
        match refuse(text) {
            DocumentError::Field { field, .. } => field,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_request_survives_a_round_trip() {
        let request = FileRequest::parse(GOOD.as_bytes()).unwrap();
        assert_eq!(
            request.needs[1].line_ranges,
            [LineRange { start: 1, end: 2 }]
        );
        let second_file_request =
            FileRequest::parse(&serde_json::to_vec(&request).unwrap()).unwrap();
        assert_eq!(second_file_request, request);
    }

    #[test]
    fn null_ranges_equal_absent_ranges() {
        let text = GOOD.replace(
            r#""mode": "full""#,
            r#""mode": "full", "line_ranges": null"#,
        );
        assert!(
            FileRequest::parse(text.as_bytes()).unwrap().needs[0]
                .line_ranges
                .is_empty()
        );
    }

    #[test]
    fn wrong_schema_is_reported_first() {
        let error = refuse(r#"{"schema_version": "ctcp-file-request-v2", "new": 1}"#);
        let DocumentError::Version { found, .. } = error else {
            panic!("{error:?}")
        };
        assert_eq!(found, "ctcp-file-request-v2");
    }

    #[test]
    fn errors_name_the_field() {
        assert_eq!(
            field_of(&GOOD.replace("\"full\"", "\"half\"")),
            "needs[0].mode"
        );
        assert_eq!(
            field_of(&GOOD.replace("[[1, 2]]", "[[1, -2]]")),
            "needs[1].line_ranges[0][1]"
        );
        assert_eq!(
            field_of(&GOOD.replace("[[1, 2]]", "[[1, 2, 3]]")),
            "needs[1].line_ranges[0]"
        );
        assert_eq!(
            field_of(&GOOD.replace("\"max_files\": 3", "\"max_files\": 99999999999999999999")),
            "budget.max_files"
        );
        assert_eq!(
            field_of(&GOOD.replace("\"max_files\": 3", "\"max_files\": 1.5")),
            "budget.max_files"
        );
        assert_eq!(
            field_of(&GOOD.replace("\"max_files\": 3", "\"max_files\": -1")),
            "budget.max_files"
        );
        assert_eq!(
            field_of(&GOOD.replace("\"goal\"", "\"extra\": 1, \"goal\"")),
            "extra"
        );
        assert_eq!(
            field_of(&GOOD.replace("\"path\": \"a\"", "\"path\": \"a\", \"x\": 1")),
            "needs[0].x"
        );
        assert!(
            refuse(&GOOD.replace("\"goal\": \"g\",", ""))
                .to_string()
                .contains("missing field `goal`")
        );
        assert!(
            refuse(&GOOD.replace("\"goal\"", "\"goal\": \"a\", \"goal\""))
                .to_string()
                .contains("duplicate")
        );
    }

    #[test]
    fn trailing_data_is_refused() {
        assert!(
            refuse(&format!("{GOOD} {{}}"))
                .to_string()
                .contains("trailing")
        );
    }

    #[test]
    fn deep_nesting_ends_in_an_error() {
        let deep = format!("{{\"goal\": {}", "[".repeat(1_000_000));
        assert!(matches!(refuse(&deep), DocumentError::Field { .. }));
    }

    #[test]
    fn a_hundred_megabytes_are_refused_unread() {
        let bytes = vec![b'['; 100_000_000];
        assert!(matches!(
            FileRequest::parse(&bytes),
            Err(DocumentError::TooLarge {
                size: 100_000_000,
                ..
            })
        ));
    }

    #[test]
    fn needs_above_limit_are_refused() {
        let with = |count: usize| {
            let needs = vec![r#"{"path": "a", "mode": "full"}"#; count].join(",");
            format!(
                r#"{{"schema_version": "ctcp-file-request-v1", "goal": "g", "reason": "r", "needs": [{needs}],
                "budget": {{"max_files": 1, "max_total_bytes": 1}}}}"#
            )
        };
        assert_eq!(
            FileRequest::parse(with(10_000).as_bytes())
                .unwrap()
                .needs
                .len(),
            10_000
        );
        assert!(matches!(
            refuse(&with(10_001)),
            DocumentError::TooMany { count: 10_001, .. }
        ));
    }

    #[test]
    fn errors_never_repeat_a_whole_document() {
        let text = GOOD.replace("\"full\"", &format!("\"{}\"", "x".repeat(1_000_000)));
        assert!(refuse(&text).to_string().len() < 600);
    }
}
