//! Detects that the red team raised no objection.
//!
//! The result is only a notice for the reader. Nothing is requested again, the loop continues, and the
//! critique is kept as it is.

use crucible_model::Untrusted;

use super::attack::critique_without_names;

/// The fewest bytes of letters and digits in which an objection says what fails. The shortest real ones
/// have about that many in every script: "The costs are wrong" has 16, "成本被低估了" has 18.
const FEWEST_BYTES: usize = 16;

/// Whether a critique is too short to state an objection, beside the seats that it names. A longer
/// agreement counts as a critique: no list of phrases tells them apart reliably, in no language.
pub(crate) fn states_no_objection(critique: &Untrusted) -> bool {
    let mut bytes = 0;
    for c in critique_without_names(critique.as_str()).chars() {
        if c.is_alphanumeric() {
            bytes += c.len_utf8();
        }
        if bytes >= FEWEST_BYTES {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_agreement_raises_no_objection() {
        for text in [
            "I agree",
            "**I AGREE!**",
            "No objections.",
            "N/A",
            "Looks good to me",
            "LGTM 👍",
            "我同意",
            "",
            " \n\t",
            &"... ".repeat(1_000_000),
            "TARGETS: pragmatist\nI agree.",
            "TARGETS: pragmatist, creative#2",
            r#"{"targets":[],"critique":""}"#,
            r#"{"targets":["pragmatist"],"critique":"I agree."}"#,
        ] {
            assert!(states_no_objection(&Untrusted::new(text)), "{text:.60}");
        }
    }

    #[test]
    fn stated_objection_is_one() {
        for text in [
            "The costs are wrong.",
            "I agree with nothing here",
            "No objection to the goal, but the costs are wrong.",
            "成本被低估了",
            "TARGETS: pragmatist\nThe costs are wrong.",
            r#"{"targets":[],"critique":"The costs are wrong."}"#,
        ] {
            assert!(!states_no_objection(&Untrusted::new(text)), "{text}");
        }
    }
}
