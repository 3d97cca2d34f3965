//! The JSON documents of a run and their versions: a reader accepts only the version it knows.
//!
//! Each document has an enum of its versions, currently one each. A later version is recognised first,
//! because its known names may have another meaning.

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A document of a run.
pub(crate) trait Document: DeserializeOwned {
    /// The only schema id that is read.
    const SCHEMA: &'static str;
}

/// Why bytes are not such a document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DocumentFault {
    /// Another version, or another document.
    #[error(
        "unsupported schema_version {found:?}, this Crucible reads {expected:?}; use the version that wrote the file"
    )]
    Version {
        /// What it states, cut to 80 characters.
        found: String,
        /// What is read.
        expected: &'static str,
    },
    /// No JSON, or not of this shape.
    #[error("{0}")]
    Shape(String),
}

/// Reads a document.
pub(crate) fn read<T: Document>(bytes: &[u8]) -> Result<T, DocumentFault> {
    #[derive(Deserialize)]
    struct Probe {
        schema_version: String,
    }
    serde_json::from_slice(bytes).map_err(|error| match serde_json::from_slice::<Probe>(bytes) {
        Ok(Probe { schema_version }) if schema_version != T::SCHEMA => {
            let found = schema_version.chars().take(80).collect();
            DocumentFault::Version {
                found,
                expected: T::SCHEMA,
            }
        }
        _ => DocumentFault::Shape(error.to_string()),
    })
}

/// Makes the enum of a document's versions.
macro_rules! versions {
    ($(#[$about:meta])* $vis:vis $document:ident, $version:ident = $schema:literal) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        $vis enum $version {
            /// The only version.
            #[default]
            #[serde(rename = $schema)]
            V1,
        }

        impl $crate::document::Document for $document {
            const SCHEMA: &'static str = $schema;
        }
    };
}

pub(crate) use versions;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::analysis::Analysis;
    use crate::attempt::AttemptOutcome;
    use crate::contract::{DispatchConfig, RunRecord, Signature};
    use crate::land::Landing;
    use crate::role::chair::OmittedFiles;

    /// Returns the error for a document of this kind of a later version, with a field that only that version
    /// has.
    fn said_of_a_later_one<T: Document>() -> String {
        let mut fields = serde_json::Map::new();
        fields.insert("a_new_field".into(), Value::from(1));
        fields.insert(
            "schema_version".into(),
            T::SCHEMA.replace("-v1", "-v2").into(),
        );
        let Err(fault) = read::<T>(Value::Object(fields).to_string().as_bytes()) else {
            panic!("{} was read as version 1", T::SCHEMA)
        };
        assert_eq!(
            fault,
            DocumentFault::Version {
                found: T::SCHEMA.replace("-v1", "-v2"),
                expected: T::SCHEMA
            }
        );
        fault.to_string()
    }

    #[test]
    fn later_version_is_refused() {
        for error in [
            said_of_a_later_one::<RunRecord>(),
            said_of_a_later_one::<Signature>(),
            said_of_a_later_one::<Analysis>(),
            said_of_a_later_one::<AttemptOutcome>(),
            said_of_a_later_one::<Landing>(),
            said_of_a_later_one::<DispatchConfig>(),
            said_of_a_later_one::<OmittedFiles>(),
        ] {
            assert!(
                error.contains("-v2") && error.contains("this Crucible reads"),
                "{error}"
            );
        }
    }

    #[test]
    fn the_same_fields_under_another_version_are_refused() {
        let signature = |version: &str| {
            let plan = crucible_model::Digest::compute(b"plan");
            json!({ "schema_version": version, "plan": plan, "reviews": {} })
                .to_string()
                .into_bytes()
        };
        assert!(read::<Signature>(&signature(Signature::SCHEMA)).is_ok());
        assert!(read::<Signature>(&signature("crucible-signature-v2")).is_err());
    }
}
