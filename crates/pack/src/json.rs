//! Strict parsing of JSON documents written by others.
//!
//! The size is checked before parsing. The types refuse unknown and duplicate fields, the parser bounds
//! nesting, and an error names its field.

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The largest document that is parsed, in bytes: 8 MiB, far above any honest request or pack budget.
pub const MAX_DOCUMENT_BYTES: u64 = 8 * 1024 * 1024;

/// Makes the type of a schema id that has one version: in JSON the id, in Rust `V1`.
macro_rules! schema_id {
    ($(#[$doc:meta])* $name:ident, $id:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            /// The only version.
            #[default]
            #[serde(rename = $id)]
            V1,
        }

        impl $name {
            /// The id as written in a document.
            pub const ID: &'static str = $id;
        }
    };
}
pub(crate) use schema_id;

/// Why a document was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// The document exceeds the size limit.
    #[error("the document has {size} bytes; the limit is {limit}")]
    TooLarge {
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The document states another schema than the one that is expected.
    #[error("schema_version is {found:?}, expected {expected:?}")]
    Version {
        /// What the document states, cut to 80 characters.
        found: String,
        /// What would be accepted.
        expected: &'static str,
    },
    /// One field does not match the schema.
    #[error("field `{field}`: {problem}")]
    Field {
        /// Where in the document: `needs[3].mode`, or `.` for the document itself.
        field: String,
        /// What is wrong, with line and column.
        problem: String,
    },
    /// A list is longer than is accepted.
    #[error("field `{field}` has {count} entries; at most {limit} are accepted")]
    TooMany {
        /// Which list.
        field: &'static str,
        /// Its length.
        count: u64,
        /// The most that it may have.
        limit: u64,
    },
}

/// Parses `bytes` as one document of the schema `expected`.
pub(crate) fn parse<T: DeserializeOwned>(
    bytes: &[u8],
    expected: &'static str,
) -> Result<T, DocumentError> {
    parse_up_to(bytes, expected, MAX_DOCUMENT_BYTES)
}

/// Like [`parse`], with its own limit.
pub(crate) fn parse_up_to<T: DeserializeOwned>(
    bytes: &[u8],
    expected: &'static str,
    limit: u64,
) -> Result<T, DocumentError> {
    let size = bytes.len() as u64;
    if size > limit {
        return Err(DocumentError::TooLarge { size, limit });
    }
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let parsed = serde_path_to_error::deserialize(&mut deserializer);
    let document = parsed.map_err(|error| explain(bytes, expected, &error))?;
    deserializer.end().map_err(|error| DocumentError::Field {
        field: ".".to_owned(),
        problem: clip(&error.to_string(), 300),
    })?;
    Ok(document)
}

/// A document of another version deserves to hear that, not which of its fields is unknown here.
fn explain(
    bytes: &[u8],
    expected: &'static str,
    error: &serde_path_to_error::Error<serde_json::Error>,
) -> DocumentError {
    #[derive(Deserialize)]
    struct Probe {
        schema_version: String,
    }
    if let Ok(Probe { schema_version }) = serde_json::from_slice(bytes)
        && schema_version != expected
    {
        return DocumentError::Version {
            found: clip(&schema_version, 80),
            expected,
        };
    }
    DocumentError::Field {
        field: clip(&error.path().to_string(), 120),
        problem: clip(&error.inner().to_string(), 300),
    }
}

/// The first `max` characters of text that came from outside, so that no error repeats a whole document.
fn clip(text: &str, max: usize) -> String {
    text.chars().take(max).collect()
}
