//! Deliberate changes of source code that a good test notices.
//!
//! [`break_change`] makes the functions that a change touches fail, [`alter_expectations`] changes the values that tests
//! expect, and [`mutants`] makes small mistakes in the changed lines. Everything goes by the syntax tree and is a pure
//! function of its arguments; a text that does not follow its grammar is left alone, and the result says so.

mod changed;
mod constants;
mod expectations;
mod failing;
mod functions;
mod mutants;
mod rules;

use std::collections::BTreeSet;

use crucible_model::{Digest, RepoPath};

use crate::class::is_test_path;
use crate::syntax::{Grammar, Parsed};
use changed::{ChangedLines, changed_lines};
use functions::{Function, FunctionKind, comparison_names};

pub(crate) use changed::code_tokens;
pub(crate) use functions::functions;

pub use expectations::{AlteredExpectations, alter_expectations};
pub use failing::BROKEN_ON_PURPOSE;
pub use mutants::{MAX_MUTANTS, Mutant, mutants};

/// How changed functions are broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breakage {
    /// Each runs as it is and then fails, once its file is loaded.
    Fails,
    /// Each runs as it is and then returns nothing, once its file is loaded. Only for Python and JavaScript.
    ReturnsNothing,
    /// Each runs as it is and then fails, also while its file is being loaded.
    FailsWhileLoading,
    /// The code of each is gone.
    Removed,
}

/// A source whose changed code is broken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BrokenSource {
    /// The broken text; absent if nothing in it could be broken.
    pub text: Option<String>,
    /// The functions that are broken.
    pub functions: Vec<String>,
    /// How many constants are wrong.
    pub constants: u64,
    /// Functions that compare values and that the change touches.
    pub comparisons: Vec<String>,
    /// What the change touches besides.
    pub rest: Vec<Unbroken>,
}

/// Changed code that is not broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unbroken {
    /// It is not in a language that is broken: documentation, configuration, data, another language.
    NoGrammar,
    /// The text does not follow its grammar.
    Unparsed,
    /// It is a test.
    Test,
    /// It declares something and computes nothing: imports, types, fields.
    Declaration,
    /// It runs when its file is loaded.
    Loading,
}

/// Breaks the functions and constants that a change touches in one file; `before` is absent in a new file.
#[must_use]
pub fn break_change(
    path: &RepoPath,
    before: Option<&[u8]>,
    after: &[u8],
    breakage: Breakage,
) -> BrokenSource {
    let only = |rest| BrokenSource {
        rest: vec![rest],
        ..BrokenSource::default()
    };
    if is_test_path(path) {
        return only(Unbroken::Test);
    }
    let Some(grammar) = Grammar::of_tested(path) else {
        return only(Unbroken::NoGrammar);
    };
    let parse = |bytes: &'_ [u8]| -> Option<String> { String::from_utf8(bytes.to_vec()).ok() };
    let Some(text) = parse(after) else {
        return only(Unbroken::Unparsed);
    };
    let Ok(parsed) = Parsed::parse(grammar, &text) else {
        return only(Unbroken::Unparsed);
    };
    let old_text = before.and_then(parse).unwrap_or_default();
    let old = Parsed::parse(grammar, &old_text)
        .ok()
        .filter(|_| before.is_some());
    let changed = changed_lines(old.as_ref(), &parsed);
    let all = functions(&parsed);
    let touched = touched(old.as_ref(), &all, &changed);
    let mark = mark_of(&text);
    let mut edits = Vec::new();
    let mut broken = BrokenSource::default();
    for function in &touched {
        if function.is_comparison() {
            broken.comparisons.push(function.name.clone());
        }
        if function.kind == FunctionKind::Loading {
            broken.rest.push(Unbroken::Loading);
            continue;
        }
        let edit = match breakage {
            Breakage::Removed => failing::remove_body(&parsed, function),
            _ => failing::failing(&parsed, function, breakage, &mark),
        };
        if edit.is_empty() {
            broken.rest.push(Unbroken::Declaration);
        } else {
            broken.functions.push(function.name.clone());
            edits.extend(edit);
        }
    }
    if broken.comparisons.is_empty() {
        broken.comparisons = comparison_names(&parsed, &changed.after);
    }
    let constants = constants::constants(&parsed, &changed.after, &all);
    broken.rest.extend(constants.rest);
    broken.constants = constants.edits.len() as u64;
    if !broken.functions.is_empty() && breakage != Breakage::Removed {
        edits.extend(failing::helper_edits(&parsed, breakage, &mark));
    }
    edits.extend(constants.edits);
    broken.rest.sort_unstable();
    broken.rest.dedup();
    broken.text = (!edits.is_empty()).then(|| with_edits(&text, edits));
    broken
}

/// The functions that a change touches: by lines that are new, or by lines that are gone from a function of the same name.
fn touched<'f, 't>(
    old: Option<&Parsed<'_>>,
    all: &'f [Function<'t>],
    changed: &ChangedLines,
) -> Vec<&'f Function<'t>> {
    let lost: BTreeSet<String> = old
        .map(|old| {
            let functions = functions(old);
            let lost = functions
                .iter()
                .filter(|function| function.has_line(&changed.before));
            lost.map(|function| function.name.clone()).collect()
        })
        .unwrap_or_default();
    all.iter()
        .filter(|function| function.has_line(&changed.after) || lost.contains(&function.name))
        .collect()
}

/// A name that occurs in no other text.
fn mark_of(text: &str) -> String {
    let digest = Digest::compute(text.as_bytes()).to_string();
    let hex = digest.rsplit(':').next().unwrap_or_default();
    format!("_broken_{}", hex.get(..12).unwrap_or_default())
}

/// A piece of a text and what takes its place.
pub(crate) type TextEdit = (std::ops::Range<usize>, String);

/// The text with these edits. Edits at one place stay in their order, and of two that overlap the outer one holds.
pub(crate) fn with_edits(text: &str, mut edits: Vec<TextEdit>) -> String {
    edits.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
    let mut out = String::with_capacity(text.len() + 1024);
    let mut at = 0;
    for (range, new) in edits {
        if range.start < at {
            continue;
        }
        out.push_str(text.get(at..range.start).unwrap_or_default());
        out.push_str(&new);
        at = range.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests;
