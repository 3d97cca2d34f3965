//! The two files in `meta/` and their schemas.

use jsonschema::Draft;
use serde_json::Value;

use super::{CONFIG_SNAPSHOT, DEBATE_TRANSCRIPT};

const SCHEMAS: [(&str, &str); 2] = [
    (
        DEBATE_TRANSCRIPT,
        include_str!("../../../../docs/contracts/crucible-crawl-transcript-v1.schema.json"),
    ),
    (
        CONFIG_SNAPSHOT,
        include_str!("../../../../docs/contracts/crucible-crawl-config-v1.schema.json"),
    ),
];

/// Checks a file by its name. A problem is reported with its location, without values of the file.
pub(super) fn check_meta(name: &str, json: &str) -> Result<(), String> {
    let file: Value = serde_json::from_str(json).map_err(|_| format!("{name} is not JSON"))?;
    let schema = SCHEMAS
        .iter()
        .find(|(of, _)| *of == name)
        .ok_or_else(|| format!("{name} has no schema"))?
        .1;
    let schema: Value = serde_json::from_str(schema).map_err(|error| error.to_string())?;
    let validator = jsonschema::options()
        .with_draft(Draft::Draft202012)
        .build(&schema)
        .map_err(|error| format!("the schema of {name} cannot be used: {error}"))?;
    let Some(error) = validator.iter_errors(&file).next() else {
        return Ok(());
    };
    let (place, what) = (error.instance_path(), error.masked_with("the value"));
    Err(format!("{name} does not match its schema: {place}: {what}"))
}
