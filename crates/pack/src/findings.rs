//! What a pack leaves out, as findings for whoever prints or judges it. None of them refuses the pack: a
//! mandatory document that does not fit ends the build before there is one.

use crucible_model::{Code, Finding, Verdict};

use crate::pack::{ContextPack, OmittedReason};

/// One warning for each omission and each cut, in the order of the pack.
#[must_use]
pub fn findings(pack: &ContextPack) -> Verdict {
    let mut verdict = Verdict::default();
    for file in pack.files.iter().filter(|file| file.truncated) {
        verdict.push(Finding::warning(
            Code::new("pack-truncated"),
            file.path.as_str(),
            "only the beginning of the file is in the pack; increase max_total_bytes or ask for lines of it",
        ));
    }
    for row in &pack.omitted {
        let (code, hint) = explain(row.reason);
        verdict.push(Finding::warning(code, row.path.as_str(), hint));
    }
    verdict
}

fn explain(reason: OmittedReason) -> (Code, &'static str) {
    match reason {
        OmittedReason::TooLarge => {
            (Code::new("pack-too-large"), "the lines lie too deep in the file; ask for earlier ones")
        }
        OmittedReason::Denied => {
            (Code::new("pack-denied"), "this is never shown to a model; the summary says what forbids it")
        }
        OmittedReason::Irrelevant => {
            (Code::new("pack-irrelevant"), "name the file in the request if it is needed after all")
        }
        OmittedReason::NotFound => {
            (Code::new("pack-not-found"), "correct the path; it is relative to the repository's root")
        }
        OmittedReason::InvalidRequest => (
            Code::new("pack-invalid-request"),
            "ask for a regular file, and for snippets with line ranges [start, end] where start is not after end",
        ),
        OmittedReason::BudgetExceeded => (
            Code::new("pack-budget-exceeded"),
            "increase max_files or max_total_bytes, or move the file up in the request",
        ),
    }
}

#[cfg(test)]
mod tests {
    use crucible_model::Outcome;

    use super::*;
    use crate::pack::{Omitted, PackVersion, PackedFile};

    #[test]
    fn every_omission_and_cut_is_a_warning() {
        let file = |truncated| PackedFile {
            path: "a".to_owned(),
            why: "w".to_owned(),
            content: "c".to_owned(),
            truncated,
        };
        let reasons = [
            OmittedReason::TooLarge,
            OmittedReason::Denied,
            OmittedReason::Irrelevant,
            OmittedReason::NotFound,
            OmittedReason::InvalidRequest,
            OmittedReason::BudgetExceeded,
        ];
        let pack = ContextPack {
            schema_version: PackVersion::V1,
            goal: String::new(),
            repo_slug: String::new(),
            summary: String::new(),
            files: vec![file(false), file(true)],
            omitted: reasons.map(|reason| Omitted { path: "b".to_owned(), reason }).to_vec(),
        };
        let verdict = findings(&pack);
        assert_eq!(verdict.outcome(), Outcome::Pass);
        let codes: Vec<&str> = verdict.findings().iter().map(|finding| finding.code.as_str()).collect();
        assert_eq!(codes[0], "pack-truncated");
        for (code, reason) in codes[1..].iter().zip(reasons) {
            assert_eq!(*code, format!("pack-{}", reason.as_str().replace('_', "-")));
        }
    }
}
