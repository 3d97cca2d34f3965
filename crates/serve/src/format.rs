//! Values as people read them. Templates escape what these functions return.

use std::fmt::Display;

use crucible_llm::dollars;
use crucible_model::{Digest, Level};
use crucible_verify::{
    BrokenOutcome, HeldOutOutcome, ObjectionOutcome, ObjectionPolicy, WorldOutcome, WorldPolicy,
};
use crucible_view::{
    AttemptView, DiffFile, DiffRow, FindingView, LineChange, RedactedText, RunOutcome,
    WorldGateView,
};

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

/// The most characters of a heading.
const MAX_HEADING: usize = 200;

/// Returns the first line of a text, cut with an ellipsis if it is long.
pub(crate) fn heading(text: &RedactedText) -> String {
    let text = text.to_string();
    let first = text.trim().lines().next().unwrap_or_default();
    match first.char_indices().nth(MAX_HEADING) {
        Some((end, _)) => format!("{}…", first.get(..end).unwrap_or_default()),
        None => first.to_owned(),
    }
}

/// Returns whether a text has more than its heading.
pub(crate) fn has_more(text: &RedactedText) -> bool {
    heading(text) != text.to_string().trim()
}

/// Returns the words that tell an attempt from others.
pub(crate) fn attempt_label(number: &u64) -> String {
    format!("of attempt {number}")
}

/// Returns a number of things.
pub(crate) fn pluralize(count: impl Display, noun: &str) -> String {
    match count.to_string().as_str() {
        "1" => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

/// Returns the reason of an entry: `requested:by the goal` becomes `requested: by the goal`.
pub(crate) fn reason(reason: &RedactedText) -> String {
    let reason = reason.to_string();
    match reason.split_once(':') {
        Some((kind, rest)) if !rest.starts_with([' ', ':', '/']) => format!("{kind}: {rest}"),
        _ => reason,
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

/// Returns what a gate showed on broken code.
pub(crate) fn broken(outcome: &BrokenOutcome) -> &'static str {
    match outcome {
        BrokenOutcome::Noticed => "noticed",
        BrokenOutcome::ReadsText => "reads the text of the code",
        BrokenOutcome::Unnoticed => "not noticed",
        BrokenOutcome::NotChecked => "not checked",
    }
}

/// Returns what a gate showed in a second world.
pub(crate) fn world(outcome: &WorldOutcome) -> &'static str {
    match outcome {
        WorldOutcome::Same => "the same tests pass",
        WorldOutcome::Differs => "behaves differently",
        WorldOutcome::NotChecked => "not checked",
    }
}

/// Returns the groups of tests that explain what a gate showed in a second world; empty ones are left out.
pub(crate) fn world_groups(gate: &WorldGateView) -> Vec<(&'static str, &[RedactedText])> {
    let groups: [(&str, &[RedactedText]); 4] = [
        ("pass in the first world only", &gate.differing),
        (
            "fail with these settings in the first world, too",
            &gate.by_settings,
        ),
        ("fail there without the change, too", &gate.without_change),
        ("failed there in one of two runs", &gate.flaky),
    ];
    groups
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .collect()
}

/// Returns the policy about a second world.
pub(crate) fn world_policy(policy: &WorldPolicy) -> &'static str {
    WorldPolicy::NAMES
        .iter()
        .find(|(_, known)| known == policy)
        .map_or("", |(name, _)| name)
}

/// Returns the policy about objections.
pub(crate) fn objection_policy(policy: &ObjectionPolicy) -> &'static str {
    ObjectionPolicy::NAMES
        .iter()
        .find(|(_, known)| known == policy)
        .map_or("", |(name, _)| name)
}

/// Returns what an objection is.
pub(crate) fn objection(outcome: &ObjectionOutcome) -> &'static str {
    match outcome {
        ObjectionOutcome::Witness => "Witness",
        ObjectionOutcome::Advice => "Advice",
    }
}

/// Returns how held-out tests ended.
pub(crate) fn held_out(outcome: &HeldOutOutcome) -> &'static str {
    match outcome {
        HeldOutOutcome::Passed => "All of them passed",
        HeldOutOutcome::Failed => "Some of them fail",
        HeldOutOutcome::NotRun => "No gate ran them",
    }
}

/// Returns the class of the end of held-out tests in the style sheet.
pub(crate) fn class_of_held_out(outcome: &HeldOutOutcome) -> &'static str {
    match outcome {
        HeldOutOutcome::Passed => "good",
        HeldOutOutcome::Failed => "bad",
        HeldOutOutcome::NotRun => "warn",
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

/// Returns a name as one part of an address.
pub(crate) fn path_part(name: &RedactedText) -> String {
    url::form_urlencoded::byte_serialize(name.as_str().as_bytes())
        .collect::<String>()
        .replace('+', "%20")
}

/// Returns a word of a document for people: `not_started` becomes `not started`.
pub(crate) fn readable(word: &RedactedText) -> String {
    word.to_string().replace(['_', '-'], " ")
}

/// Returns the class of a state in the style sheet.
pub(crate) fn class_of_word(word: &RedactedText) -> &'static str {
    match word.as_str() {
        "done" | "success" | "proven" => "good",
        "failed" | "damaged" | "none" => "bad",
        "stale" | "changed" | "pending" | "partial" => "warn",
        _ => "",
    }
}

/// Returns a score or a part of one, with four decimals.
pub(crate) fn score(score: &f64) -> String {
    format!("{score:.4}")
}

/// Returns the name of a part of a score for people.
pub(crate) fn part_name(name: &str) -> String {
    crucible_model::escaped(name).replace('_', " ")
}

/// Returns the lines of a short diff, each with its class in the style sheet.
pub(crate) fn diff_lines(diff: &RedactedText) -> Vec<(&'static str, String)> {
    let class = |line: &str| match line.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => "same",
        [b'+', ..] => "added",
        [b'-', ..] => "removed",
        _ => "same",
    };
    let text = diff.to_string();
    text.trim_end()
        .lines()
        .map(|line| (class(line), line.to_owned()))
        .collect()
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
    fn lines_of_a_mutant_have_classes() {
        let diff = RedactedText::new("--- a.py\n+++ a.py\n-return a * b\n+return a + b\n \u{202e}");
        let classes: Vec<&str> = diff_lines(&diff).iter().map(|(class, _)| *class).collect();
        assert_eq!(classes, ["same", "same", "removed", "added", "same"]);
        assert_eq!(diff_lines(&diff)[4].1, " \\u{202e}");
    }

    #[test]
    fn heading_is_the_first_line() {
        for (text, first, is_cut) in [
            ("a goal", "a goal", false),
            ("a goal\n", "a goal", false),
            ("a goal\n\nFiles: x", "a goal", true),
        ] {
            let text = RedactedText::new(text);
            assert_eq!((heading(&text).as_str(), has_more(&text)), (first, is_cut));
        }
        let long = RedactedText::new(&"é".repeat(201));
        assert_eq!(heading(&long), "é".repeat(200) + "…");
        assert!(has_more(&long));
    }

    #[test]
    fn durations_use_fitting_units() {
        let lines = [0, 999, 1_500, 61_000, 3_725_000].map(|millis| duration(&millis));
        assert_eq!(lines, ["0 ms", "999 ms", "1.5 s", "1 min 1 s", "1 h 2 min"]);
    }
}
