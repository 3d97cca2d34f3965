//! The librarian: packs files of the repository verbatim within the budget. Local and deterministic, also if
//! a person chooses the files ([`by_hand`]).
//!
//! Runs and `crucible context build` both pack here: which documents come first, what is read, and what is
//! never shown.

pub(crate) mod by_hand;
pub(crate) mod more;
mod named;
mod work_tree;

use std::path::Path;

use crucible_model::RepoPath;
use crucible_pack::{ContextPack, Entry, FileRequest, Mandatory, MandatoryError, Source};
use crucible_secrets::Scanner;

use crate::contract::{ContextSettings, ContractDocuments};
use crate::error::RunError;

pub(crate) use named::check_named;
pub(crate) use work_tree::WorkTree;

/// Packs the requested files of the work tree at `top`, its top directory. `slug` is the repository's name.
///
/// The result depends on the request, the settings, the slug and the content of the files alone.
///
/// # Errors
///
/// [`RunError::SecretInRequest`] if the request itself holds a secret; as [`crucible_pack::build`] if
/// mandatory documents are missing, may not be shown, or do not fit.
pub(crate) fn pack_context(
    top: &Path,
    slug: &str,
    settings: &ContextSettings,
    request: &FileRequest,
) -> Result<ContextPack, RunError> {
    // A pack repeats the words of its request, whatever they are.
    if let Some((place, rule)) = secret_in(request) {
        return Err(RunError::SecretInRequest { rule, place });
    }
    let mandatory = mandatory(top, settings).map_err(|error| RunError::Malformed {
        path: "[context] mandatory".into(),
        problem: error.to_string(),
    })?;
    Ok(crucible_pack::build(
        request,
        &mandatory,
        slug,
        &WorkTree::new(top),
    )?)
}

/// Which of a request's words holds a secret, and its rule.
fn secret_in(request: &FileRequest) -> Option<(String, String)> {
    let scanner = Scanner::builtin();
    let words = [request.goal.as_str(), &request.reason].into_iter();
    let words: Vec<&str> = words
        .chain(request.needs.iter().map(|need| need.path.as_str()))
        .collect();
    // One pass if there is none, which is nearly always so.
    let rule = scanner
        .scan(words.join("\n").as_bytes())
        .first()?
        .rule
        .to_string();
    let place = match words
        .iter()
        .position(|word| !scanner.scan(word.as_bytes()).is_empty())
    {
        Some(0) => "the goal".to_owned(),
        Some(1) => "the reason".to_owned(),
        Some(at) => format!("path {}", at - 1),
        None => "a part".to_owned(),
    };
    Some((place, rule))
}

/// Returns the first documents of a pack of the repository at `top`. The contract's documents are required by
/// the settings or in a repository that uses the contract, and included if present elsewhere.
pub(crate) fn mandatory(
    top: &Path,
    settings: &ContextSettings,
) -> Result<Mandatory, MandatoryError> {
    let extra: Vec<&str> = settings.mandatory.iter().map(RepoPath::as_str).collect();
    let lives_by_it = top.join("ai_context").is_dir();
    if settings.contract == ContractDocuments::Required || lives_by_it {
        Mandatory::contract(&extra)
    } else {
        Mandatory::where_present(&extra)
    }
}

/// The budget that mandatory documents use before any request.
#[derive(Debug, Default)]
pub(crate) struct MandatorySize {
    /// Those that are there.
    pub(crate) paths: Vec<RepoPath>,
    /// Their bytes together.
    pub(crate) bytes: u64,
}

/// Measures the mandatory documents without reading them.
pub(crate) fn mandatory_size(top: &Path, settings: &ContextSettings) -> MandatorySize {
    let tree = WorkTree::new(top);
    let mut reserved = MandatorySize::default();
    // Building the pack reports what is wrong with them.
    let documents = mandatory(top, settings).unwrap_or_default();
    for path in documents.required.into_iter().chain(documents.optional) {
        if let Entry::File { size } | Entry::Linked { size, .. } = tree.entry(&path)
            && !reserved.paths.contains(&path)
        {
            reserved.bytes = reserved.bytes.saturating_add(size);
            reserved.paths.push(path);
        }
    }
    reserved
}

#[cfg(test)]
mod tests;
