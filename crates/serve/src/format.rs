//! Values as people read them. Templates escape what these functions return.

use crucible_llm::dollars;
use crucible_model::{Digest, Level};
use crucible_run::AttemptEnd;
use crucible_verify::BrokenOutcome;
use crucible_view::{AttemptView, DiffFile, DiffRow, FindingView, LineChange, RunOutcome};

/// Returns millionths of a dollar as dollars, without rounding.
pub(crate) fn money(micro_dollars: &u64) -> String {
    dollars(*micro_dollars)
}

/// Returns milliseconds in the largest units that fit.
pub(crate) fn duration(millis: &u64) -> String {
    crucible_view::duration(*millis)
}

/// Returns the first digits of a digest.
pub(crate) fn short(digest: &Digest) -> String {
    digest.short()
}

/// Returns the class of an outcome in the style sheet.
pub(crate) fn class_of(outcome: &RunOutcome) -> &'static str {
    match outcome {
        RunOutcome::Open | RunOutcome::Blocked => "warn",
        RunOutcome::Verified | RunOutcome::Landed => "good",
        RunOutcome::Failed | RunOutcome::Declined => "bad",
    }
}

/// Returns the class of a level in the style sheet.
pub(crate) fn class_of_level(level: &Level) -> &'static str {
    match level {
        Level::Info => "label",
        Level::Warning => "warn",
        Level::Error => "bad",
    }
}

/// Returns a level in one word.
pub(crate) fn level(level: &Level) -> &'static str {
    match level {
        Level::Info => "info",
        Level::Warning => "warning",
        Level::Error => "error",
    }
}

/// Returns how an attempt ended.
pub(crate) fn end(end: &AttemptEnd) -> &'static str {
    match end {
        AttemptEnd::Refused => "Refused by the patch gate",
        AttemptEnd::Malformed => "Malformed answer",
        AttemptEnd::Repeated => "Repeats an earlier change",
        AttemptEnd::FilesRequested => "Requests more files",
        AttemptEnd::VerifyFailed => "A gate failed",
        AttemptEnd::Verified => "Verified",
    }
}

/// Returns what a gate showed on broken code.
pub(crate) fn broken(outcome: &BrokenOutcome) -> &'static str {
    match outcome {
        BrokenOutcome::Noticed => "noticed",
        BrokenOutcome::ReadsText => "reads the text of the code",
        BrokenOutcome::Unnoticed => "not noticed",
        BrokenOutcome::NotChecked => "not checked",
    }
}

/// Returns the class of a line in the style sheet.
pub(crate) fn change(change: &LineChange) -> &'static str {
    match change {
        LineChange::Same => "same",
        LineChange::Removed => "removed",
        LineChange::Added => "added",
    }
}

/// Returns the first items of a list.
pub(crate) fn first<'a, T>(items: &'a [T], most: &usize) -> &'a [T] {
    items.get(..*most).unwrap_or(items)
}

/// Returns the findings of an attempt on the new line of a row.
pub(crate) fn findings_at<'a>(
    attempt: &'a AttemptView,
    file: &DiffFile,
    row: &DiffRow,
) -> Vec<&'a FindingView> {
    let Some(line) = row.new.as_ref().map(|line| line.number) else {
        return Vec::new();
    };
    let at =
        |finding: &&FindingView| finding.line == Some(line) && finding.is_about(file.path.as_str());
    attempt.findings.iter().filter(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_use_fitting_units() {
        let shown = [0, 999, 1_500, 61_000, 3_725_000].map(|millis| duration(&millis));
        assert_eq!(shown, ["0 ms", "999 ms", "1.5 s", "1 min 1 s", "1 h 2 min"]);
    }
}
