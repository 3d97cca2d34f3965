//! Builds the summary of a debate for the synthesis: at most 1000 characters, by rules.
//!
//! Whether a suggestion was accepted is computed from the plans: whether the next revision added, removed
//! or changed the step that it names.

use crucible_model::single_spaced;

use super::reply::{Action, CritiqueReply, DraftReply, Issue, Suggestion};
use crate::artifact::PlanStep;

/// The most characters of a summary.
pub(super) const MAX_SUMMARY: usize = 1000;

/// The mark at the end of a cut text.
const CUT: &str = " [cut]";

/// Suggestions by outcome.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SuggestionOutcomes {
    pub(super) accepted: Vec<Suggestion>,
    pub(super) rejected: Vec<Suggestion>,
}

impl SuggestionOutcomes {
    /// Computes the outcome of a critique's suggestions from the revision that answered it.
    pub(super) fn add_revision(
        &mut self,
        before: &DraftReply,
        critique: &CritiqueReply,
        after: &DraftReply,
    ) {
        self.settle(critique, &before.steps, &after.steps);
    }

    /// Computes the outcome of the last critique's suggestions from the final steps, and reverts outcomes
    /// that those undo.
    pub(super) fn add_final_steps(
        &mut self,
        before: &[PlanStep],
        critique: &CritiqueReply,
        last: &[PlanStep],
    ) {
        let undone = self
            .accepted
            .extract_if(.., |suggestion| is_undone(suggestion, last));
        self.rejected.extend(undone);
        self.settle(critique, before, last);
    }

    fn settle(&mut self, critique: &CritiqueReply, before: &[PlanStep], after: &[PlanStep]) {
        for suggestion in &critique.suggestions {
            let is_taken = was_taken(suggestion, before, after);
            if is_taken {
                &mut self.accepted
            } else {
                &mut self.rejected
            }
            .push(suggestion.clone());
        }
    }

    /// Rejects the suggestions of the last critique, which no revision answered.
    pub(super) fn reject_unanswered(&mut self, critique: &CritiqueReply) {
        self.rejected.extend(critique.suggestions.iter().cloned());
    }
}

/// Whether the final steps lack an addition or change, or still contain a removal.
fn is_undone(suggestion: &Suggestion, last: &[PlanStep]) -> bool {
    let is_present = last
        .iter()
        .any(|step| step.name.trim() == suggestion.step_name.trim());
    is_present == (suggestion.action == Action::Remove)
}

fn was_taken(suggestion: &Suggestion, before: &[PlanStep], after: &[PlanStep]) -> bool {
    let name = suggestion.step_name.trim();
    let step = |steps: &[PlanStep]| steps.iter().find(|step| step.name.trim() == name).cloned();
    match (suggestion.action, step(before), step(after)) {
        (Action::Add, None, Some(_)) | (Action::Remove, Some(_), None) => true,
        (Action::Add | Action::Modify, Some(before), Some(after)) => before != after,
        (Action::Add, _, None)
        | (Action::Remove, None, _)
        | (Action::Remove, _, Some(_))
        | (Action::Modify, None, _)
        | (Action::Modify, _, None) => false,
    }
}

/// The summary of a debate with this many rounds.
pub(super) fn summary(
    rounds: u32,
    end: &str,
    suggestion_outcomes: &SuggestionOutcomes,
    unresolved: &[Issue],
) -> String {
    let mut lines = vec![format!("rounds: {rounds}; {end}")];
    lines.extend(
        suggestion_outcomes
            .accepted
            .iter()
            .map(|suggestion| format!("accepted: {}", with_author(suggestion))),
    );
    lines.extend(
        suggestion_outcomes
            .rejected
            .iter()
            .map(|suggestion| format!("not taken: {}", with_author(suggestion))),
    );
    lines.extend(
        unresolved
            .iter()
            .map(|issue| format!("unresolved: {}", sentence(issue))),
    );
    cut(&lines.join("\n"), MAX_SUMMARY)
}

/// An issue as a sentence.
pub(super) fn sentence(issue: &Issue) -> String {
    let Issue {
        severity,
        step_name,
        description,
    } = issue;
    single_spaced(&format!(
        "{} in step \"{step_name}\": {description}",
        severity.as_str()
    ))
}

fn with_author(suggestion: &Suggestion) -> String {
    format!("{} (Claude)", in_words(suggestion))
}

/// A suggestion in a plan's list, with its source.
pub(super) fn with_source(suggestion: &Suggestion) -> String {
    format!("{} — source: Claude", in_words(suggestion))
}

fn in_words(suggestion: &Suggestion) -> String {
    let Suggestion {
        action,
        step_name,
        description,
    } = suggestion;
    single_spaced(&format!(
        "{} step \"{step_name}\": {description}",
        action.as_str()
    ))
}

/// At most this many characters, with a mark if it was cut.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let keep_chars = most.saturating_sub(CUT.chars().count());
    text.chars().take(keep_chars).chain(CUT.chars()).collect()
}
