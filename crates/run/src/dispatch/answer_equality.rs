//! Compares two answers of a person by meaning, not by bytes.
//!
//! Patches are compared by their effect. Any other text, and a patch that cannot be parsed, is compared by
//! its words. Decoration that editors and chats add around a text is ignored.

use crucible_model::{EditFormat, Untrusted};
use crucible_patch::{Content, Patch, Proposal, parse, read_answer};

use crate::contract::key_lines::strip_bom;
use crate::layout;

/// What an answer says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AnswerContent {
    /// A change.
    Patch(Patch),
    /// Words.
    Text(String),
}

impl AnswerContent {
    /// Parses the text at a target.
    pub(crate) fn at(target: &str, text: &str) -> Self {
        let diff = match read_answer(EditFormat::UnifiedDiff, &Untrusted::new(text), &[]) {
            Ok(Proposal::Diff(diff)) if target == layout::PATCH => parse(&diff).ok(),
            _ => None,
        };
        match diff {
            // The object names in a patch add nothing to its lines.
            Some(mut patch) => {
                for file in patch
                    .files
                    .iter_mut()
                    .filter(|file| file.content == Content::Text)
                {
                    file.objects = None;
                }
                Self::Patch(patch)
            }
            None => Self::Text(strip_bom(text).trim().to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "diff --git a/a b/a\nindex 1111111..2222222 100644\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n";

    #[test]
    fn text_around_patch_is_ignored() {
        let content = |text: &str| AnswerContent::at(layout::PATCH, text);
        for same in [
            format!("{DIFF}\n"),
            format!("\u{feff}\n{DIFF}"),
            format!("```diff\n{DIFF}```\n"),
            DIFF.replace("1111111..2222222", "3333333..4444444"),
            DIFF.replace("@@ -1 +1 @@", "@@ -1 +1 @@ fn a()"),
        ] {
            assert_eq!(content(&same), content(DIFF), "{same:?}");
        }
        for other in [
            DIFF.replace("+y", "+z"),
            DIFF.replace("+y", "+y "),
            DIFF.replace("+y\n", "+y\n\\ No newline at end of file\n"),
            DIFF.replace(
                "index 1111111..2222222 100644",
                "old mode 100644\nnew mode 100755",
            ),
            DIFF.replace("diff --git a/a b/a\n", ""),
        ] {
            assert_ne!(content(&other), content(DIFF), "{other:?}");
        }
    }

    #[test]
    fn other_words_are_another_answer() {
        let content = |text: &str| AnswerContent::at(layout::PLAN_DRAFT, text);
        assert_eq!(
            content("Scope-Allow: a\n\n"),
            content("\u{feff}Scope-Allow: a")
        );
        assert_ne!(content("Scope-Allow: a\n"), content("Scope-Allow: b\n"));
        // Elsewhere a diff is text like any other.
        assert!(matches!(content(DIFF), AnswerContent::Text(_)));
    }
}
