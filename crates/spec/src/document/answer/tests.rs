//! Answers that are nearly a document, and answers that are not.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::document::lines::scanned;
use crate::document::{Requirements, design, merge, review, tasks};

const FORM: Form = Form {
    phase: PhaseId::Design,
    max_lines: 50,
    max_bytes: 4_000,
    max_entries: 3,
    begins: |_| false,
};
const DOCUMENT: &str = "# Design: Export\n\n## Overview\n\nText.";

fn opened(text: &str) -> Result<Draft, Verdict> {
    open(&Untrusted::new(text), &FORM)
}

fn code(text: &str) -> String {
    let verdict = opened(text).expect_err(text);
    verdict.findings()[0].code.to_string()
}

#[test]
fn a_document_comes_out_as_it_is() {
    let draft = opened(DOCUMENT).unwrap();
    assert_eq!(
        (draft.title.as_deref(), draft.body.as_str()),
        (Some("Export"), "## Overview\n\nText.")
    );
    assert!(draft.warnings.is_empty());
}

#[test]
fn insignificant_differences_of_document_are_removed() {
    for text in [
        format!("\u{feff}\n\n{DOCUMENT}  \n\n\n"),
        DOCUMENT.replace('\n', "\r\n"),
        format!("```markdown\n{DOCUMENT}\n```"),
        format!("````md\n```\n{DOCUMENT}\n```\n````\n"),
        format!("~~~\n\n{DOCUMENT}\n~~~"),
        DOCUMENT.replace("\n\nText", "\n\n---\n\n\n\nText"),
        DOCUMENT.replace("# Design: Export", "## **Design**: Export"),
        DOCUMENT.replace("# Design: Export", "# Design Document: Export"),
    ] {
        let draft = opened(&text).expect(&text);
        assert_eq!(
            (draft.title.as_deref(), draft.body.as_str()),
            (Some("Export"), "## Overview\n\nText."),
            "{text:?}"
        );
        assert!(draft.warnings.is_empty(), "{text:?}");
    }
}

#[test]
fn text_around_document_is_removed_with_warning() {
    for text in [
        format!("Here is the design document:\n\n{DOCUMENT}"),
        format!("Sure!\n```\n{DOCUMENT}\n```"),
        format!("```markdown\n{DOCUMENT}\n```\nI have kept it short."),
        format!("I have written the design document.\n\n{DOCUMENT}"),
        format!("{DOCUMENT}\n\nLet me know if anything is to be changed!"),
        format!("{DOCUMENT}\n\n---\nWould you like me to write the tasks?\n"),
    ] {
        let draft = opened(&text).expect(&text);
        assert_eq!(draft.body, "## Overview\n\nText.", "{text:?}");
        assert_eq!(draft.warnings.len(), 1, "{text:?}");
        assert_eq!(draft.warnings[0].kind, "spec_answer_trimmed");
    }
}

#[test]
fn code_block_in_wrapped_document_survives() {
    let inner = format!("{DOCUMENT}\n\n```rust\nfn a() {{}}\n# no title\n```\n\nEnd.");
    let wrapped = opened(&format!("```markdown\n{inner}\n```\n")).unwrap();
    assert_eq!(wrapped, opened(&inner).unwrap());
    assert!(wrapped.body.contains("fn a() {}\n# no title\n```\n\nEnd."));
}

#[test]
fn answer_without_document_is_refused_by_its_kind() {
    let long = "word ".repeat(200);
    for (text, expected) in [
        (String::new(), "spec-answer-empty"),
        (" \n\u{200b}\u{feff}\n".to_owned(), "spec-answer-empty"),
        ("```\n\n```".to_owned(), "spec-answer-empty"),
        (
            "I have created the design document in design.md.".to_owned(),
            "spec-answer-summary",
        ),
        (
            "# Design: Export\n\nI have created the design document with four sections.\n"
                .to_owned(),
            "spec-answer-summary",
        ),
        (
            "# Summary\n\nI've written the design.".to_owned(),
            "spec-answer-title",
        ),
        (
            "# Tasks: Export\n\n- [ ] T-001 (R-001): x".to_owned(),
            "spec-answer-wrong-phase",
        ),
        (
            "# Design Review: Export\n".to_owned(),
            "spec-answer-wrong-phase",
        ),
        (
            format!("{DOCUMENT}\n\n# Tasks: Export\n"),
            "spec-answer-wrong-phase",
        ),
        (format!("{DOCUMENT}\n\n# Appendix\n"), "spec-answer-title"),
        (format!("{DOCUMENT}\n\n{DOCUMENT}"), "spec-answer-title"),
        ("# Export\n\n## Overview\n".to_owned(), "spec-answer-title"),
        (
            "Could you tell me the language?".to_owned(),
            "spec-answer-question",
        ),
        (
            format!("Which format do you want?\n\n{DOCUMENT}"),
            "spec-answer-question",
        ),
        (
            "I'm sorry, but I cannot do that.".to_owned(),
            "spec-answer-refusal",
        ),
        (
            format!("I'm sorry, I can't design this. Here is a try:\n{DOCUMENT}"),
            "spec-answer-refusal",
        ),
        (
            "{\"design\": \"# Design: x\\n## Overview\"}".to_owned(),
            "spec-answer-json",
        ),
        ("[1, 2]".to_owned(), "spec-answer-json"),
        ("```json\n{}\n```".to_owned(), "spec-answer-json"),
        (
            "Here:\n```json\n{\"a\": 1}\n```".to_owned(),
            "spec-answer-json",
        ),
        (
            "```rust\nfn main() {}\n```".to_owned(),
            "spec-answer-no-document",
        ),
        (
            "A design is not needed.".to_owned(),
            "spec-answer-no-document",
        ),
        (format!("{long}\n\n{DOCUMENT}"), "spec-answer-around"),
        (
            format!("one\ntwo\nthree\nfour\n{DOCUMENT}"),
            "spec-answer-around",
        ),
        (
            format!("```\n{DOCUMENT}\n```\n\n## More\n\n```\nx\n```\n"),
            "spec-answer-around",
        ),
        (
            format!("```\n{DOCUMENT}\n```\n\n## More\n\nx\n"),
            "spec-answer-around",
        ),
        (format!("{DOCUMENT}\n```\nopen"), "spec-answer-open-fence"),
        (format!("```markdown\n{DOCUMENT}"), "spec-answer-open-fence"),
        (format!("{DOCUMENT} \u{202e}"), "spec-answer-hidden"),
        (format!("{DOCUMENT}\n\u{1b}[2J"), "spec-answer-hidden"),
        (format!("{DOCUMENT}\rx"), "spec-answer-hidden"),
        (format!("{DOCUMENT}\0"), "spec-answer-hidden"),
        (format!("{DOCUMENT}\n<!-- obey -->"), "spec-answer-hidden"),
        (
            format!("{DOCUMENT}\n`a` <!-- `obey` -->"),
            "spec-answer-hidden",
        ),
        (
            format!("{DOCUMENT}\n\nThe lamps are on from six to twenty o'clock."),
            "spec-answer-example",
        ),
        ("x".repeat(2 << 20), "spec-answer-too-long"),
        ("漢".repeat(1 << 20), "spec-answer-too-long"),
        ("```\n".repeat(5_000), "spec-answer-around"),
    ] {
        assert_eq!(
            code(&text),
            expected,
            "{:?}",
            text.chars().take(120).collect::<String>()
        );
    }
}

#[test]
fn a_hidden_character_is_named_with_its_line() {
    let verdict = opened("# Design: x\n\n## Overview\na\u{2066}b").unwrap_err();
    assert_eq!(verdict.findings()[0].subject, "U+2066 in line 4");
    assert!(
        opened(&format!(
            "{DOCUMENT}\n\nA comment is `<!-- x -->`.\n\n```\n<!-- x -->\n```"
        ))
        .is_ok()
    );
    assert!(
        opened(&format!("{DOCUMENT}\n\n👩\u{200d}💻 żółć\ttab")).is_ok(),
        "joiners and tabs are no secret"
    );
}

#[test]
fn document_is_measured_in_entries_lines_bytes() {
    assert_eq!(measured("a\n", 3, &FORM), None);
    for (text, entries, subject) in [
        ("a\n".to_owned(), 4, "4 entries, at most 3"),
        ("a\n".repeat(51), 0, "51 lines, at most 50"),
        ("ä".repeat(2_001), 0, "4002 bytes, at most 4000"),
    ] {
        assert_eq!(measured(&text, entries, &FORM).unwrap().subject, subject);
    }
}

/// Units that a repetitive answer is made of.
const UNITS: [&str; 26] = [
    "#",
    "# ",
    "`",
    "```\n",
    "````\n```\n",
    "- ",
    "- x\n",
    "  - x\n",
    "*",
    "\n",
    "# Design: x\n",
    "## Data\n",
    "R-1 ",
    "### R-NEW: a b c\n- x\n",
    "### R-001: a b c\n- x\n",
    "REMOVED: R-1\n",
    "- [ ] T-1 (R-1): T-1\n",
    "files: a,",
    "- F-1 [major] a.rs: x\n",
    "<!--",
    "ä",
    "[",
    "{\"",
    "\r\n",
    "(R-1",
    "I have ",
];

/// A parser of foreign text: its name, the beginning of its input, and its function.
type Reader = (&'static str, &'static str, fn(&str));

const READERS: [Reader; 9] = [
    ("open", "", |text| drop(opened(text))),
    ("open", "# Design: x\n", |text| drop(opened(text))),
    ("open", "```\n# Design: x\n", |text| drop(opened(text))),
    ("requirements", "### R-002: a b c\n", |text| {
        drop(merge(None, draft(text), "x", 0))
    }),
    ("changes", "### R-001: b\n", |text| {
        let earlier = Requirements::of_artifact("### R-001: a\n\nS\n\n- x\n");
        drop(merge(Some(&earlier), draft(text), "x", 0));
    }),
    ("artifact", "### R-001: b\n", |text| {
        drop(Requirements::of_artifact(text).render())
    }),
    ("design", "## Data\n", |text| {
        drop(design(draft(text), "x", Some(&BTreeSet::from([1]))))
    }),
    ("tasks", "- [ ] T-1 (R-1): x\n", |text| {
        drop(tasks(draft(text), "x", Some(&BTreeSet::from([1]))))
    }),
    ("review", "- F-1 [major] a.rs: x\n", |text| {
        drop(review(draft(text), "x", &BTreeSet::new()))
    }),
];

fn draft(text: &str) -> Draft {
    Draft {
        title: None,
        body: text.to_owned(),
        warnings: Vec::new(),
    }
}

/// Four times the text makes every parser scan at most four times the lines, plus a constant. A parser
/// that rescans earlier or later lines would need sixteen times.
#[test]
fn hostile_answers_are_read_in_one_pass() {
    for unit in UNITS {
        for (name, start, read) in READERS {
            let work = |size: usize| {
                let text = format!("{start}{}", unit.repeat((size - start.len()) / unit.len()));
                let before = scanned();
                read(&text);
                scanned() - before
            };
            let (less, more) = (work(MAX_SIZE / 64), work(MAX_SIZE / 16));
            assert!(
                more <= less * 5 + 64,
                "{name} of {unit:?} behind {start:?}: {less}, then {more}"
            );
        }
    }
}

fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("# Design: x\n".to_owned()),
        Just("# Tasks: x\n".to_owned()),
        Just("```\n".to_owned()),
        Just("````markdown\n".to_owned()),
        Just("### R-001: a\n".to_owned()),
        Just("R-NEW".to_owned()),
        Just("REMOVED: R-001\n".to_owned()),
        Just("- [ ] T-001 (R-001): x\n".to_owned()),
        Just("- F-001 [major] `a.rs`: x\n".to_owned()),
        Just("---\n".to_owned()),
        Just("<<<DATA x\n".to_owned()),
        Just("\r\n".to_owned()),
        Just("## Overview\n".to_owned()),
        Just("I have created the document\n".to_owned()),
        "\\PC{0,12}\n?",
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

mod properties {
    use super::*;

    proptest! {
        #[test]
        fn whatever_is_opened_is_clean(text in hostile()) {
            if let Ok(draft) = opened(&text) {
                prop_assert!(!draft.body.contains('\r') && !draft.body.chars().any(|c| c != '\n' && c != '\t' && is_hidden(c)));
                prop_assert_eq!(scan(&draft.body).1, Fences::Closed);
                prop_assert!(!draft.body.starts_with('\n') && !draft.body.ends_with('\n'));
                let second_draft = opened(&format!("# Design: x\n\n{}", draft.body));
                if let Ok(again) = second_draft {
                    prop_assert_eq!(again.body, draft.body);
                }
            }
        }
    }
}
