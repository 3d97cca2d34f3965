//! An answer that declines: the service that proposes changes says that the goal cannot be reached, why, and what it conflicts with.
//!
//! Every form of answer allows it. A run that is declined is over: nothing lands, and no attempt is counted.

use crucible_model::{Code, Finding};

const DECLINED: Code = Code::new("run-declined");

/// The file in which an agent declines, at the top of its working copy.
pub(crate) const DECLINED_FILE: &str = "CRUCIBLE_CANNOT.md";

/// The longest shown reason, in characters.
const MAX_SHOWN: usize = 500;

/// How to decline.
pub(crate) const DECLINED_FORM: &str = "If the goal cannot be reached without breaking a rule, a test or another sentence of the goal, do not work around \
     it. Answer instead with these two lines and nothing else:\nCANNOT: the reason\nCONFLICT: the test or the sentence that it \
     conflicts with\n";

/// An answer that declines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Declined {
    /// Why.
    pub(crate) reason: String,
    /// The test or the sentence that the goal conflicts with; empty if none is named.
    pub(crate) conflict: String,
}

impl Declined {
    /// Reads an answer; `None` if it does not decline. Its first line of text must, so a change never does. Models
    /// emphasise the word, write it as a heading, or in lower case.
    pub(crate) fn read(answer: &str) -> Option<Self> {
        let mut lines = answer
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with("```"));
        let reason = labelled(lines.next()?, "CANNOT")?;
        if reason.is_empty() {
            return None;
        }
        let conflict = lines.find_map(|line| labelled(line, "CONFLICT"));
        let shown = |text: &str| {
            text.chars()
                .filter(|letter| !letter.is_control())
                .take(MAX_SHOWN)
                .collect()
        };
        Some(Self {
            reason: shown(reason),
            conflict: shown(conflict.unwrap_or_default()),
        })
    }

    /// Returns the text of an agent's [`DECLINED_FILE`] as an answer that declines. The file itself says that the agent
    /// does, whatever form its text has.
    pub(crate) fn answer_of_file(text: &str) -> String {
        if Self::read(text).is_some() {
            return text.to_owned();
        }
        let mut lines = text.lines().map(|line| line.trim_matches(DECORATION));
        let is_heading = |line: &&str| {
            line.is_empty() || line.trim_end_matches(':').eq_ignore_ascii_case("cannot")
        };
        let reason = lines.find(|line| !is_heading(line));
        format!("CANNOT: {}", reason.unwrap_or("the agent gives no reason"))
    }

    /// The finding that ends the run.
    pub(crate) fn finding(&self, by: &str) -> Finding {
        let conflict = if self.conflict.is_empty() {
            String::new()
        } else {
            format!(" It conflicts with: {}", self.conflict)
        };
        let hint = format!("{}{conflict}", self.reason);
        Finding::error(DECLINED, by, hint)
    }
}

/// What Markdown puts around a word.
const DECORATION: [char; 5] = ['#', '*', '_', '`', ' '];

/// The text behind `LABEL:` at the beginning of a line.
fn labelled<'l>(line: &'l str, label: &str) -> Option<&'l str> {
    let (word, text) = line.split_once(':')?;
    word.trim_matches(DECORATION)
        .eq_ignore_ascii_case(label)
        .then(|| text.trim_matches(DECORATION))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_line_declines_and_nothing_else() {
        let read =
            |text: &str| Declined::read(text).map(|declined| (declined.reason, declined.conflict));
        let both = Some(("no such API".to_owned(), "test_area".to_owned()));
        assert_eq!(read("CANNOT: no such API\nCONFLICT: test_area\n"), both);
        assert_eq!(
            read("```\n\n CANNOT:  no such API\nbecause\nCONFLICT: test_area\n```\n"),
            both
        );
        assert_eq!(read("CANNOT: why"), Some(("why".to_owned(), String::new())));
        for marked in [
            "**CANNOT:** no such API\n**CONFLICT:** test_area",
            "## Cannot: no such API\n\nConflict: `test_area`",
        ] {
            assert_eq!(read(marked), both, "{marked}");
        }
        for other in [
            "",
            "CANNOT:",
            "I CANNOT: do it",
            "FILE: a.py\n```\nCANNOT: x\n```\n",
            "diff --git a/x b/x\n+CANNOT: x\n",
            "I cannot do this: it is too much",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn file_of_an_agent_declines_in_every_form() {
        for (text, expected) in [
            (
                "# Cannot\n\nThe goal contradicts `test_a`.\n",
                "The goal contradicts `test_a`.",
            ),
            ("It is impossible.", "It is impossible."),
            ("", "the agent gives no reason"),
            ("CANNOT: no API", "no API"),
        ] {
            let declined = Declined::read(&Declined::answer_of_file(text)).unwrap();
            assert_eq!(declined.reason, expected.trim_matches(DECORATION), "{text}");
        }
    }
}
