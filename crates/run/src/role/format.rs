//! Chooses the edit format of a request. Pure.
//!
//! The configured format is used if its answer fits into the model's output tokens. Whole files often do not
//! fit. Then only changed parts are requested: definitions if every file in scope consists of them, otherwise
//! search and replace.

use crucible_model::{EditFormat, RepoPath};
use crucible_pack::{ContextPack, PackedFile};
use crucible_patch::consists_of_definitions;

use crate::contract::{Plan, RunSettings};

/// A token is at least about this many bytes of source.
const BYTES_PER_TOKEN: u64 = 3;

/// Tokens of an answer that are not content of files: names, fences, a sentence before them.
const RESERVE: u64 = 200;

/// Tokens without which no change of any form can be written.
pub(crate) const LEAST_TOKENS: u64 = 64;

/// The form that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChosenFormat {
    pub(crate) format: EditFormat,
    /// The bytes of the files and the token limit they exceed, if the format was changed for that.
    pub(crate) too_large: Option<(u64, u64)>,
}

/// The tokens that an answer may have.
pub(crate) fn max_tokens(settings: &RunSettings) -> u64 {
    settings
        .parameters
        .get("max_tokens")
        .and_then(serde_json::Value::as_u64)
        .unwrap_or(u64::MAX)
}

/// Chooses the format for the run's model. `was_cut` means that an answer with whole files was truncated
/// before.
pub(crate) fn choose(
    settings: &RunSettings,
    plan: &Plan,
    pack: &ContextPack,
    was_cut: bool,
) -> ChosenFormat {
    let requested = settings.edit_format;
    let files = in_scope(plan, pack);
    let bytes: u64 = files.iter().map(|file| file.content.len() as u64).sum();
    let tokens = max_tokens(settings);
    // A change makes a file longer, and some tokens are shorter.
    let needed = (bytes / BYTES_PER_TOKEN).saturating_mul(5) / 4 + RESERVE;
    // Files of a few lines are whole in any form.
    let fits = needed <= tokens || bytes / BYTES_PER_TOKEN <= tokens.min(LEAST_TOKENS);
    let is_whole = |file: &PackedFile| !file.truncated && file.ranges.is_empty();
    let all_whole = files.iter().all(|file| is_whole(file));
    if requested != EditFormat::WholeFile || files.is_empty() || (fits && all_whole && !was_cut) {
        return ChosenFormat {
            format: requested,
            too_large: None,
        };
    }
    let takes = |file: &&PackedFile| {
        let content = if is_whole(file) {
            file.content.as_bytes()
        } else {
            &[]
        };
        file.path
            .parse()
            .is_ok_and(|path| consists_of_definitions(&path, content))
    };
    let format = if files
        .iter()
        .all(|file| takes(file) && !is_one_call(&file.content))
    {
        EditFormat::Definitions
    } else {
        EditFormat::SearchReplace
    };
    ChosenFormat {
        format,
        too_large: Some((bytes, tokens)).filter(|_| !fits || was_cut),
    }
}

/// Whether all code of a script stands in one call, as in `(function (root) { … })(this)`; its first line tells, in excerpts too.
fn is_one_call(content: &str) -> bool {
    let code = |line: &&str| !line.is_empty() && !line.starts_with(['/', '*', '\'', '"', '[']);
    let first = content.lines().map(str::trim).find(code);
    let first = first.unwrap_or_default().trim_start_matches([';', '!']);
    ["(function", "(() =>", "(async "]
        .iter()
        .any(|start| first.starts_with(start))
}

/// The files of a pack that a plan lets change.
pub(crate) fn in_scope<'p>(plan: &Plan, pack: &'p ContextPack) -> Vec<&'p PackedFile> {
    let may_change = |file: &&PackedFile| {
        let path: Option<RepoPath> = file.path.parse().ok();
        path.is_some_and(|path| plan.scope_allow.iter().any(|scope| scope.contains(&path)))
    };
    pack.files.iter().filter(may_change).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crucible_pack::PackVersion;

    use super::*;
    use crate::gatekeeper::tests::record;

    fn chosen(
        expected: EditFormat,
        tokens: Option<u64>,
        files: &[(&str, &str)],
        was_cut: bool,
    ) -> ChosenFormat {
        let mut settings = record(Path::new("/r"), &[]).settings;
        settings.edit_format = expected;
        settings
            .parameters
            .extend(tokens.map(|tokens| ("max_tokens".to_owned(), tokens.into())));
        let file = |(path, content): &(&str, &str)| PackedFile {
            path: (*path).to_owned(),
            why: "requested".into(),
            content: (*content).to_owned(),
            truncated: false,
            ranges: Vec::new(),
        };
        let pack = ContextPack {
            schema_version: PackVersion::V1,
            goal: String::new(),
            repo_slug: "r".into(),
            summary: String::new(),
            files: files.iter().map(file).collect(),
            omitted: Vec::new(),
        };
        let text = "Status: SIGNED\nScope-Allow: src\nScope-Deny:\nNames:\nGates: lite\nStop: verified\nBudgets: 1\nBehaviors:\nResults:\n";
        choose(&settings, &Plan::parse(text).unwrap(), &pack, was_cut)
    }

    #[test]
    fn oversized_whole_files_change_format() {
        use EditFormat::{Definitions, SearchReplace, UnifiedDiff, WholeFile};
        let python = "def a():\n    return 1\n\n\n".repeat(1_500);
        let text = "a line of a document\n".repeat(1_500);
        let large = [("src/a.py", python.as_str())];
        let format = |expected, tokens, files: &[(&str, &str)]| {
            chosen(expected, tokens, files, false).format
        };
        assert_eq!(
            format(
                WholeFile,
                Some(4096),
                &[("src/a.py", "def a():\n    return 1\n")]
            ),
            WholeFile
        );
        assert_eq!(format(WholeFile, Some(4096), &large), Definitions);
        assert_eq!(
            format(WholeFile, Some(4096), &[("src/a.txt", &text)]),
            SearchReplace
        );
        assert_eq!(
            format(WholeFile, Some(4096), &[large[0], ("src/a.txt", "x")]),
            SearchReplace
        );
        // All of its code stands in one call, so no definition can take the place of another.
        let body = "    rules.push(['a', 'b']);\n".repeat(1_500);
        let module = format!("(function (root) {{\n{body}}})(this);\n");
        assert_eq!(
            format(WholeFile, Some(4096), &[("src/a.js", &module)]),
            SearchReplace
        );
        let excerpt = "/* global define */\n\n(function (root) {\n  // 200 lines\n";
        assert!(is_one_call(excerpt) && is_one_call(";(() => {\n"));
        assert!(!is_one_call("'use strict'\nfunction a () {}\n") && !is_one_call(&python));
        assert_eq!(format(WholeFile, Some(100_000), &large), WholeFile);
        assert_eq!(format(WholeFile, None, &large), WholeFile);
        // What may not change is not answered either.
        assert_eq!(
            format(WholeFile, Some(4096), &[("docs/a.txt", &text)]),
            WholeFile
        );
        for other in [Definitions, SearchReplace, UnifiedDiff] {
            assert_eq!(format(other, Some(4096), &large), other);
        }
        // All files that may change are counted, not the largest one.
        let half = "x = 1\n".repeat(1_100);
        assert_eq!(
            format(WholeFile, Some(4096), &[("src/a.py", &half)]),
            WholeFile
        );
        assert_eq!(
            format(
                WholeFile,
                Some(4096),
                &[("src/a.py", &half), ("src/b.py", &half)]
            ),
            Definitions
        );
        let too_large = chosen(WholeFile, Some(4096), &large, false).too_large;
        assert_eq!(too_large, Some((python.len() as u64, 4096)));
    }

    #[test]
    fn truncated_answer_changes_format() {
        let file = [("src/a.py", "def a():\n    return 1\n")];
        let format = |expected, was_cut| chosen(expected, Some(4096), &file, was_cut).format;
        assert_eq!(format(EditFormat::WholeFile, true), EditFormat::Definitions);
        assert_eq!(
            format(EditFormat::SearchReplace, true),
            EditFormat::SearchReplace
        );
        assert_eq!(format(EditFormat::WholeFile, false), EditFormat::WholeFile);
    }
}
