//! Checks a document against its JSON Schema, and defines its stored form.

use std::sync::OnceLock;

use crucible_model::{CanonicalError, Timestamp, short_line, to_canonical_json};
use jsonschema::{Draft, ValidationError, Validator};
use serde::Serialize;
use serde_json::Value;

use super::hash::ShortHash;

/// The most problems of a document that are listed; one more line counts the rest.
const MAX_PROBLEMS: usize = 20;

/// The most characters of a location in a document, whose names may be foreign.
const MAX_PLACE_LEN: usize = 120;

/// The kind of an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArtifactType {
    /// `viv-git-search.v1`.
    Search,
    /// `viv-git-inspect.v1`.
    Inspect,
    /// `viv-git-plan.v1`.
    Plan,
    /// `viv-git-recipe.v1`.
    Recipe,
    /// `viv-crawl-manifest.v1`.
    Manifest,
}

impl ArtifactType {
    /// All kinds, in the order of creation.
    pub const ALL: [Self; 5] = [
        Self::Search,
        Self::Inspect,
        Self::Plan,
        Self::Recipe,
        Self::Manifest,
    ];

    /// Its name in the database and the manifest.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Search => "search",
            Self::Inspect => "inspect",
            Self::Plan => "plan",
            Self::Recipe => "recipe",
            Self::Manifest => "manifest",
        }
    }

    /// Returns the id of its schema, such as `viv-git-plan.v1`.
    #[must_use]
    pub const fn schema_id(self) -> &'static str {
        match self {
            Self::Search => super::SearchV1::SCHEMA,
            Self::Inspect => super::InspectV1::SCHEMA,
            Self::Plan => super::PlanV1::SCHEMA,
            Self::Recipe => super::RecipeV1::SCHEMA,
            Self::Manifest => super::ManifestV1::SCHEMA,
        }
    }
}

/// A document that does not match its schema, or has no canonical form.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// It does not match its schema.
    #[error("the {schema} document does not match its schema: {}", problems.join("; "))]
    Mismatch {
        /// The schema's id.
        schema: &'static str,
        /// The problems with their locations.
        problems: Vec<String>,
    },
    /// It has no canonical form.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
}

/// An artifact that matches its schema, in its stored form: the only kind that is printed, saved or
/// exported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedArtifact {
    kind: ArtifactType,
    json: String,
    content_hash: ShortHash,
}

impl CheckedArtifact {
    /// Checks a document.
    ///
    /// # Errors
    ///
    /// [`ArtifactError`] if it does not match its schema.
    pub fn new<T: Serialize>(kind: ArtifactType, document: &T) -> Result<Self, ArtifactError> {
        let json = to_canonical_json(document)?;
        let value: Value = serde_json::from_slice(&json).map_err(CanonicalError::from)?;
        let problems = check_json(kind, &value);
        if !problems.is_empty() {
            return Err(ArtifactError::Mismatch {
                schema: kind.schema_id(),
                problems,
            });
        }
        let content_hash = ShortHash::compute(&json);
        let json = String::from_utf8_lossy(&json).into_owned();
        Ok(Self {
            kind,
            json,
            content_hash,
        })
    }

    /// Returns which of the five documents it is.
    #[must_use]
    pub fn kind(&self) -> ArtifactType {
        self.kind
    }

    /// The document as canonical JSON.
    #[must_use]
    pub fn json(&self) -> &str {
        &self.json
    }

    /// The short hash of [`Self::json`].
    #[must_use]
    pub fn content_hash(&self) -> &ShortHash {
        &self.content_hash
    }
}

/// Checks any JSON value against the schema of `kind`. Returns the problems, each with its location as a
/// JSON pointer, at most twenty and a line with the number of others; empty if it matches. Values of the
/// document are not repeated.
#[must_use]
pub(crate) fn check_json(kind: ArtifactType, value: &Value) -> Vec<String> {
    static COMPILED: [OnceLock<Result<Validator, String>>; 5] = [const { OnceLock::new() }; 5];
    let validator = match COMPILED[kind as usize].get_or_init(|| compile(kind)) {
        Ok(validator) => validator,
        Err(why) => return vec![format!("the schema itself cannot be used: {why}")],
    };
    let mut problems: Vec<String> = validator
        .iter_errors(value)
        .take(MAX_PROBLEMS + 1)
        .map(|error| problem(&error))
        .collect();
    if problems.len() > MAX_PROBLEMS {
        problems.truncate(MAX_PROBLEMS);
        problems.push("and more".to_owned());
    }
    problems
}

fn compile(kind: ArtifactType) -> Result<Validator, String> {
    let schema: Value =
        serde_json::from_str(schema_text(kind)).map_err(|error| error.to_string())?;
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .should_validate_formats(true)
        .with_format("date-time", is_instant)
        .with_format("uri", is_url)
        .build(&schema)
        .map_err(|error| error.to_string())
}

const fn schema_text(kind: ArtifactType) -> &'static str {
    match kind {
        ArtifactType::Search => {
            include_str!("../../../../docs/contracts/viv-git-search.v1.schema.json")
        }
        ArtifactType::Inspect => {
            include_str!("../../../../docs/contracts/viv-git-inspect.v1.schema.json")
        }
        ArtifactType::Plan => {
            include_str!("../../../../docs/contracts/viv-git-plan.v1.schema.json")
        }
        ArtifactType::Recipe => {
            include_str!("../../../../docs/contracts/viv-git-recipe.v1.schema.json")
        }
        ArtifactType::Manifest => {
            include_str!("../../../../docs/contracts/viv-crawl-manifest.v1.schema.json")
        }
    }
}

fn problem(error: &ValidationError<'_>) -> String {
    let place = error.instance_path().to_string();
    let place = if place.is_empty() {
        "the document"
    } else {
        place.as_str()
    };
    format!(
        "{}: {}",
        short_line(place, MAX_PLACE_LEN),
        error.masked_with("the value")
    )
}

/// Whether a text is a time in the form of the schemas: UTC with `Z`, capital letters, seconds
/// with or without a fraction, or no seconds; and a valid time that a [`Timestamp`] can hold.
fn is_instant(text: &str) -> bool {
    let has_shape = |text: &str, shape: &str| {
        let fits = |(byte, shape): (u8, u8)| {
            if shape == b'0' {
                byte.is_ascii_digit()
            } else {
                byte == shape
            }
        };
        text.len() == shape.len() && text.bytes().zip(shape.bytes()).all(fits)
    };
    let seconds_fit = |seconds: &str| match seconds.split_once('.') {
        Some((whole, fraction)) => {
            has_shape(whole, ":00")
                && !fraction.is_empty()
                && fraction.bytes().all(|byte| byte.is_ascii_digit())
        }
        None => seconds.is_empty() || has_shape(seconds, ":00"),
    };
    let Some((minutes, seconds)) = text
        .strip_suffix('Z')
        .and_then(|text| text.split_at_checked(16))
    else {
        return false;
    };
    has_shape(minutes, "0000-00-00T00:00")
        && seconds_fit(seconds)
        && !seconds.starts_with(":6")
        && text.parse::<Timestamp>().is_ok()
}

/// Whether a text is an absolute URL by the rules of browsers, which the schemas use.
fn is_url(text: &str) -> bool {
    url::Url::parse(text).is_ok()
}

#[cfg(test)]
mod tests;
