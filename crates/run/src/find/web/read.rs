//! The form of `find_web.json`: one JSON object, its keys unique and exactly those of the seed, everything bounded. Pure.

use crucible_model::strict_json::{self, Fields, SchemaMismatch};
use serde_json::Value;

/// The schema id of the document.
pub(crate) const FIND_WEB_SCHEMA: &str = "ctcp-find-web-v1";
/// The largest document, in bytes.
pub(crate) const MAX_FIND_WEB: usize = 1 << 20;

/// Entries and characters at the most.
const MAX_DOMAINS: usize = 100;
const MAX_RESULTS: usize = 200;
const MAX_FLAGS: usize = 16;
const MAX_URL: usize = 4096;
const MAX_NAME: usize = 300;
const MAX_REASON: usize = 1000;
const MAX_EXCERPT: usize = 4000;

/// How a place on a page is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LocatorKind {
    /// The text of a heading.
    Heading,
    /// The fragment of an address, after `#`.
    Anchor,
    /// A line, or the first and the last line joined by `-`, counted from 1.
    LineRange,
    /// A number of characters from the beginning.
    Offset,
}

impl LocatorKind {
    /// All of them, by their names in the document.
    const NAMED: [(&str, Self); 4] = [
        ("heading", Self::Heading),
        ("anchor", Self::Anchor),
        ("line_range", Self::LineRange),
        ("offset", Self::Offset),
    ];

    /// Its name in the document.
    #[must_use]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Heading => "heading",
            Self::Anchor => "anchor",
            Self::LineRange => "line_range",
            Self::Offset => "offset",
        }
    }
}

/// The parsed document; only its form has been checked.
#[derive(Debug)]
pub(super) struct UncheckedFindWeb {
    pub(super) allow_domains: Vec<String>,
    pub(super) max_queries: u64,
    pub(super) max_pages: u64,
    pub(super) results: Vec<UncheckedResult>,
}

/// One result as it was written.
#[derive(Debug)]
pub(super) struct UncheckedResult {
    pub(super) url: String,
    pub(super) kind: LocatorKind,
    pub(super) value: String,
    pub(super) fetched_at: String,
    pub(super) excerpt: String,
    pub(super) why_relevant: String,
    pub(super) risk_flags: Vec<String>,
}

/// Parses the document, or describes the error of form.
pub(super) fn read(bytes: &[u8]) -> Result<UncheckedFindWeb, String> {
    if bytes.len() > MAX_FIND_WEB {
        return Err(format!(
            "it has {} bytes; the limit is {MAX_FIND_WEB}",
            bytes.len()
        ));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    strict_json::read(text, MAX_FIND_WEB, document).map_err(|fault| fault.to_string())
}

fn document(mut fields: Fields) -> Result<UncheckedFindWeb, SchemaMismatch> {
    fields.one_of("schema_version", &[(FIND_WEB_SCHEMA, ())])?;
    let mut constraints = fields.object("constraints")?;
    let written = UncheckedFindWeb {
        allow_domains: constraints.texts("allow_domains", MAX_DOMAINS, MAX_NAME)?,
        max_queries: count(&mut constraints, "max_queries")?,
        max_pages: count(&mut constraints, "max_pages")?,
        results: fields.list("results", MAX_RESULTS, result)?,
    };
    constraints.finish()?;
    fields.finish()?;
    Ok(written)
}

fn result(value: Value, place: String) -> Result<UncheckedResult, SchemaMismatch> {
    let mut fields = Fields::new(value, place)?;
    let mut locator = fields.object("locator")?;
    let written = UncheckedResult {
        url: fields.words("url", MAX_URL)?,
        kind: locator.one_of("type", &LocatorKind::NAMED)?,
        value: locator.words("value", MAX_NAME)?,
        fetched_at: fields.text("fetched_at", MAX_NAME)?,
        excerpt: fields.words("excerpt", MAX_EXCERPT)?,
        why_relevant: fields.words("why_relevant", MAX_REASON)?,
        risk_flags: fields.texts("risk_flags", MAX_FLAGS, MAX_NAME)?,
    };
    locator.finish()?;
    fields.finish()?;
    Ok(written)
}

fn count(fields: &mut Fields, key: &'static str) -> Result<u64, SchemaMismatch> {
    let number = fields.integer(key)?;
    u64::try_from(number).map_err(|_| SchemaMismatch::new(&format!("`{key}`"), "is not a count"))
}
