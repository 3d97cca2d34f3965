//! Merging answers into requirements, by example and for generated changes.

use proptest::prelude::*;

use super::*;
use crate::document::answer::{Form, open};
use crate::phase_id::PhaseId;
use crucible_model::Untrusted;

const BEFORE: &str = "# Requirements: Export\n\nIntro.\n\n### R-001: One\n\nStatement one.\n\n- check\n\n\
                      ### R-002: Two\n\nStatement  two.\n\n- check\n- other\n\n### R-004: Four\n\nStatement four.\n\n- check\n\nRetired: R-003, R-005\n";

fn form() -> Form {
    Form {
        phase: PhaseId::Requirements,
        max_lines: 999,
        max_bytes: 1 << 20,
        max_entries: 999,
        begins: begins_changes,
    }
}

fn merged(
    before: Option<&str>,
    answer: &str,
) -> Result<(String, Vec<ReceiptWarning>), Vec<Finding>> {
    let earlier = before.map(Requirements::of_artifact);
    let draft =
        open(&Untrusted::new(answer), &form()).map_err(|verdict| verdict.findings().to_vec())?;
    let over = |document: &Requirements| {
        before.map_or_else(|| document.render(), |text| document.render_over(text))
    };
    merge(earlier.as_ref(), draft, "export", 0)
        .map(|(document, warnings)| (over(&document), warnings))
}

fn codes(before: Option<&str>, answer: &str) -> Vec<String> {
    let findings = merged(before, answer).expect_err(answer);
    findings
        .iter()
        .map(|finding| format!("{} {}", finding.code, finding.subject))
        .collect()
}

#[test]
fn first_document_is_written_in_canonical_form() {
    let answer = "# Requirements: Export\nWhat is wanted.\n## Functional\n## R-1 - One\nStatement.\n### Acceptance criteria\n* a\n1. b\n\
                  **R-NEW**\n### R-NEW: Three\nText.\n+ c\n";
    let (text, warnings) = merged(None, answer).unwrap();
    assert_eq!(
        text,
        "# Requirements: Export\n\nWhat is wanted.\n\n### R-001: One\n\nStatement.\n**Acceptance criteria**\n- a\n- b\n**R-NEW**\n\n\
         ### R-002: Three\n\nText.\n- c\n"
    );
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!(
        merged(Some(&text), &text).unwrap(),
        (text.clone(), Vec::new())
    );
    assert!(
        merged(None, "### R-001: One\n\nText.\n\n- a")
            .unwrap()
            .0
            .starts_with("# Requirements: export\n\n### R-001")
    );
}

#[test]
fn an_id_cannot_move_to_another_requirement() {
    let (one, two) = (
        "Statement one.\n\n- check",
        "Statement two.\n\n- check\n- other",
    );
    for answer in [
        format!("### R-001: Two\n\n{two}\n\n### R-002: One\n\n{one}\n"),
        "### R-001: Two\n\nStatement   two.\n- check\n- other\n\nREMOVED: R-002\n".to_owned(),
        "### R-001: Two\n\nOther words.\n\n- check\n\n### R-002: One\n\nOthers still.\n\n- check\n"
            .to_owned(),
    ] {
        let messages = codes(Some(BEFORE), &answer);
        assert!(
            messages
                .iter()
                .any(|message| message == "spec-answer-double-id R-001 is now what R-002 was: Two"),
            "{messages:?}"
        );
    }
}

#[test]
fn requirement_text_cannot_move_to_another_id() {
    let three = "# Requirements: x\n\n### R-001: Export\n\nA user can export notes.\n\n- The menu has an entry.\n\n\
                 ### R-002: Limits\n\nAn export has at most **1000** rows.\n\n- A longer one is refused.\n- It says why.\n";
    for answer in [
        "### R-001: Some limits\n\nAn export has at most **1000** rows.\n\n- A longer one is refused.\n- It says why.\n\nREMOVED: R-002\n",
        "### R-001: Export\n\nAn export has at most 1000 rows!\n\n- The menu has an entry.\n",
        "### R-001: Export\n\nExports are bounded.\n\n* It says why\n* A longer one is refused\n",
    ] {
        let messages = codes(Some(three), answer);
        assert!(
            messages.iter().any(|message| message
                .starts_with("spec-answer-double-id R-001 says now what R-002 says")),
            "{messages:?}"
        );
    }
    // A requirement that takes another's checks but keeps its statement is unchanged.
    let (_, warnings) = merged(
        Some(three),
        "### R-001: Export\n\nA user can export notes.\n\n- A longer one is refused.\n- It says why.\n",
    )
    .unwrap();
    assert_eq!(warnings, []);
    let reworded = "### R-001: Export\n\nEvery user can export all notes.\n\n- The menu has an entry for it.\n";
    assert_eq!(merged(Some(three), reworded).unwrap().1, []);
    let (_, warnings) = merged(
        Some(three),
        "### R-001: Export\n\nPasswords are hashed with salt.\n\n- No hash repeats.\n",
    )
    .unwrap();
    assert_eq!(
        warnings
            .iter()
            .map(|receipt_warning| receipt_warning.kind.as_str())
            .collect::<Vec<_>>(),
        ["spec_id_reused"]
    );
}

#[test]
fn malformed_requirement_is_never_absorbed_by_previous_one() {
    for hidden in [
        "**R-002: Security**\n\nKeys are kept.\n\n- a",
        "R-004: D holds.",
        "R-004 D holds.",
        "- **R-002: Security** Keys are kept.",
        "| R-002 | Security | Keys are kept |",
        "> R-002: Security",
        "R-NEW: Security",
        "R-002: Security\n===============",
    ] {
        let answer = format!("### R-001: One\n\nOther text.\n\n- a\n\n{hidden}\n");
        for before in [None, Some(BEFORE)] {
            let messages = codes(before, &answer);
            assert!(
                messages
                    .iter()
                    .any(|message| message.starts_with("spec-answer-line-form")),
                "{hidden:?}: {messages:?}"
            );
        }
        let first = format!("# Requirements: x\n\n{hidden}\n\n### R-001: One\n\nText.\n\n- a\n");
        assert!(
            codes(None, &first)[0].starts_with("spec-answer-line-form"),
            "{hidden:?}"
        );
    }
    for valid_text in [
        "R-001: the same id again.",
        "This goes with\nR-002 and more.",
        "- R-002 holds still.",
        "```\nR-002: x\n```",
    ] {
        let answer = format!("### R-001: One\n\nOther text.\n\n- a\n\n{valid_text}\n");
        assert!(merged(Some(BEFORE), &answer).is_ok(), "{valid_text:?}");
    }
    // Text that a person wrote may contain repetitions.
    let by_hand = "# Requirements: x\n\n### R-001: One\n\nText.\n\n- a\n\nR-004: D holds.\n";
    assert_eq!(merged(Some(by_hand), by_hand).unwrap().0, by_hand);
    // It is not lost with text removed around the document either.
    for around in [
        "R-007: Keys are kept.\n\n# Requirements: x\n\n### R-001: One\n\nText.\n\n- a\n",
        "# Requirements: x\n\n### R-001: One\n\nText.\n\n- a\n\nLet me know.\nR-002: Keys are kept.\n",
    ] {
        assert!(
            codes(None, around)[0].starts_with("spec-answer-line-form"),
            "{around:?}"
        );
    }
}

#[test]
fn lines_keep_their_ends_where_nothing_changes() {
    let windows = BEFORE.replace('\n', "\r\n");
    for answer in [
        "NO CHANGES",
        BEFORE,
        "### Two\n\nStatement two.\n- check\n- other\n",
    ] {
        assert_eq!(
            merged(Some(&windows), answer).unwrap().0,
            windows,
            "{answer:?}"
        );
    }
    let (text, _) = merged(Some(&windows), "### R-NEW: Six\n\nNew.\n\n- new\n").unwrap();
    assert!(
        text.starts_with(windows.split_once("Retired").unwrap().0)
            && text.matches('\n').count() == text.matches("\r\n").count()
    );
}

#[test]
fn id_in_other_spelling_matches_or_is_refused() {
    for id in [
        "R‑001",
        "R–001",
        "R_001",
        "R 001",
        "REQ-001",
        "Requirement R-001",
        "Requirement 1",
    ] {
        let answer = format!("### {id}: One\n\nOther words.\n\n- check\n");
        let (text, _) = merged(Some(BEFORE), &answer).unwrap();
        assert!(
            text.contains("### R-001: One\n\nOther words.\n") && !text.contains("R-006"),
            "{id}: {text}"
        );
    }
    for id in [
        "R-001a",
        "R-99999999999",
        "R-001.2",
        "R-001, R-002",
        "R-NEW: R-001",
        "1",
        "2.1",
    ] {
        let messages = codes(
            Some(BEFORE),
            &format!("### {id}: One more\n\nOther words.\n\n- check\n"),
        );
        assert!(
            messages
                .iter()
                .any(|message| message.starts_with("spec-answer-line-form")),
            "{id}: {messages:?}"
        );
    }
    let (text, _) = merged(Some(BEFORE), "REMOVED: R‑002\n").unwrap();
    assert!(text.contains("Retired: R-002,"), "{text}");
}

#[test]
fn requirements_without_content_are_refused() {
    for answer in [
        "### R-001: .\n\n.\n\n- .\n",
        "### R-001: TODO\n\nTBD R-001\n\n- N/A\n",
        "### R-001: Export\n\nI cannot help with that.\n\n- I cannot help with that.\n",
        "### R-001: Lorem ipsum dolor\n\nLorem ipsum dolor sit amet.\n\n- ...\n",
    ] {
        let messages = codes(None, answer);
        assert!(
            messages
                .iter()
                .all(|message| message.starts_with("spec-answer-incomplete")),
            "{messages:?}"
        );
    }
}

#[test]
fn new_ids_follow_those_of_removed_document() {
    let draft = open(
        &Untrusted::new("# Requirements: x\n\n### R-001: One\n\nText.\n\n- a\n"),
        &form(),
    )
    .unwrap();
    let (document, warnings) = merge(None, draft.clone(), "export", 5).unwrap();
    assert_eq!(
        (document.blocks[0].id, warnings[0].kind.as_str()),
        (6, "spec_id_assigned")
    );
    let earlier = Requirements::of_artifact("# x\n\n### R-002: Two\n\nText.\n\n- a\n");
    let (document, _) = merge(Some(&earlier), draft, "export", 5).unwrap();
    assert_eq!(document.ids(), BTreeSet::from([2, 6]));
}

#[test]
fn only_what_is_named_changes() {
    let answer = "### R-002: Two\n\nAnother statement.\n\n- check\n\n### R-NEW: Six\n\nNew.\n\n- new\n\nREMOVED: R-004\n";
    let (text, warnings) = merged(Some(BEFORE), answer).unwrap();
    assert_eq!(
        text,
        "# Requirements: Export\n\nIntro.\n\n### R-001: One\n\nStatement one.\n\n- check\n\n\
         ### R-002: Two\n\nAnother statement.\n\n- check\n\n### R-006: Six\n\nNew.\n\n- new\n\nRetired: R-003, R-004, R-005\n"
    );
    assert!(warnings.is_empty());
}

#[test]
fn reformatting_is_no_change_absence_no_removal() {
    for answer in [
        "NO CHANGES",
        "**No changes.**\n",
        BEFORE,
        "# Requirements: Another title\n\n## R-2: Two\nStatement two.\n\n\n* check\n* other\n",
        "### Two\n\nStatement two.\n- check\n- other\n",
        "### R-NEW: Two\n\nStatement two.\n- check\n- other\n",
        "REMOVED: R-003",
    ] {
        assert_eq!(
            merged(Some(BEFORE), answer).unwrap().0,
            BEFORE,
            "{answer:?}"
        );
    }
}

#[test]
fn a_removed_id_never_comes_back() {
    for id in ["R-003", "R-005", "R-006", "R-077", "R-NEW"] {
        let (text, _) =
            merged(Some(BEFORE), &format!("### {id}: Again\n\nText.\n\n- a\n")).unwrap();
        assert!(
            text.contains("\n\n### R-006: Again\n\nText.\n\n- a\n\nRetired: R-003, R-005\n"),
            "{id}: {text}"
        );
    }
    let (text, _) = merged(Some(BEFORE), "REMOVED: R-004, R-002\n").unwrap();
    let (text, _) = merged(Some(&text), "### R-NEW: Four\n\nText.\n\n- a\n").unwrap();
    assert!(
        text.contains("### R-006: Four")
            && text.ends_with("\nRetired: R-002, R-003, R-004, R-005\n"),
        "{text}"
    );
}

#[test]
fn model_cannot_write_the_removed_ids_line() {
    let (text, _) = merged(None, "### R-001: One\n\nText.\n\n- a\n\nRetired: R-002\n").unwrap();
    assert!(!text.contains("Retired"));
    let (text, _) = merged(
        Some(BEFORE),
        "### R-NEW: One more\n\nText.\n\n- a\n\nRetired: R-001\n",
    )
    .unwrap();
    assert!(text.contains("### R-001: One") && text.ends_with("\nRetired: R-003, R-005\n"));
}

#[test]
fn invalid_requirements_are_reported() {
    for (before, answer, code) in [
        (
            None,
            "# Requirements: x\n\nUsers export data.",
            "spec-answer-no-entries no requirement",
        ),
        (
            None,
            "# Requirements: x\n\n### Export\n\nText.\n\n- a",
            "spec-answer-section Export",
        ),
        (
            None,
            "### R-001: a\n\nText.\n\n- a\n\n### R-1: b\n\nText.\n\n- a",
            "spec-answer-double-id R-001",
        ),
        (
            None,
            "### R-001: a\n\nText.",
            "spec-answer-incomplete R-001: no list of checks",
        ),
        (
            None,
            "### R-001: a\n\n- a",
            "spec-answer-incomplete R-001: no statement",
        ),
        (
            None,
            "### R-001:\n\nText.\n\n- a",
            "spec-answer-incomplete R-001: no title",
        ),
        (
            None,
            "### R-001: a\n\n```\nText.\n- a\n```",
            "spec-answer-incomplete R-001: no statement",
        ),
        (
            None,
            "### R-001: a\n\nText.\n\n- a\n\n## Notes\n\nx",
            "spec-answer-section Notes",
        ),
        (
            None,
            "### R-001: a\n\nText.\n\n- a\n\nREMOVED: R-002",
            "spec-answer-unknown-id REMOVED: R-002",
        ),
        (
            Some(BEFORE),
            "REMOVED: R-009",
            "spec-answer-unknown-id REMOVED: R-009",
        ),
        (
            Some(BEFORE),
            "REMOVED: R-001, R-002, R-004",
            "spec-answer-no-entries no requirement",
        ),
        (
            Some(BEFORE),
            "### R-001: One\n\nText.\n\n- a\n\nREMOVED: R-001",
            "spec-answer-contradiction R-001 is removed and written",
        ),
        (
            Some(BEFORE),
            "### R-002: Four\n\nText.\n\n- a",
            "spec-answer-double-id R-002 is now what R-004 was: Four",
        ),
        (
            Some("### R-001: One\n\nText.\n\n- a\n\nRetired: R-999999\n"),
            "### R-NEW: Another one\n\nText.\n\n- a",
            "spec-answer-ids-used-up Another one",
        ),
        (
            Some(BEFORE),
            "### R-NEW: a\n\nText.\n\n- a\n\n### R-NEW: A\n\nText.\n\n- a",
            "spec-answer-double-id R-006, R-007 have one title: A",
        ),
    ] {
        assert_eq!(codes(before, answer)[0], code, "{answer:?}");
    }
}

#[test]
fn dangling_requirement_ids_are_warned() {
    let (_, warnings) =
        merged(Some(BEFORE), "### R-NEW: x\n\nLike R-003 and R-011.\n\n- a").unwrap();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].message.contains("R-011") && !warnings[0].message.contains("R-003"));
}

#[test]
fn repeated_check_is_written_once() {
    let answer =
        "### R-001: One\n\nStatement.\n\n- a\n* a\n\n- b\n- a\n- b\n  and more\n\n```\n- a\n```\n";
    let (text, warnings) = merged(None, answer).unwrap();
    assert!(
        text.ends_with(
            "\n\n### R-001: One\n\nStatement.\n\n- a\n\n- b\n- b\n  and more\n\n```\n- a\n```\n"
        ),
        "{text}"
    );
    assert_eq!(warnings.len(), 1);
    assert_eq!(
        warnings[0].message,
        "R-001: 2 repetitions of a check left out"
    );
    // Two requirements may have the same check, and hand-written repetitions are kept.
    let by_hand = "# Requirements: x\n\n### R-001: One\n\nText.\n\n- a\n- a\n\n### R-002: Two\n\nText.\n\n- a\n";
    assert_eq!(
        merged(Some(by_hand), by_hand).unwrap(),
        (by_hand.to_owned(), Vec::new())
    );
    let many = format!(
        "### R-NEW: Three\n\nText.\n\n{}",
        "- The same check.\n".repeat(300)
    );
    let (text, warnings) = merged(Some(by_hand), &many).unwrap();
    assert!(
        text.ends_with("### R-003: Three\n\nText.\n\n- The same check.\n"),
        "{text}"
    );
    assert_eq!(warnings.len(), 1);
}

#[test]
fn removal_ignores_ids_in_reason() {
    for (line, missing) in [
        ("REMOVED: R-002 (merged into R-001)", "R-002"),
        ("REMOVED: R-002 because R-001 says it", "R-002"),
        ("REMOVED: R-002: R-001 says it", "R-002"),
        ("REMOVED: R-002 - R-001 says it", "R-002"),
        ("REMOVED: R-002 — see R-001 and R-004", "R-002"),
        ("REMOVED: R-002. R-001 covers it", "R-002"),
        ("REMOVED: R-002 merged into R-001, R-004", "R-002"),
        ("REMOVED: R-002, replaced by R-001", "R-002"),
        ("REMOVED: R-002 and its part in R-001", "R-002"),
        ("REMOVED: R-002, R-004 (both are in R-001)", "R-002, R-004"),
        ("REMOVED: R-002, R-004, as R-001 says them", "R-002, R-004"),
        ("REMOVED: R-002 and R-004 because of R-001", "R-002, R-004"),
        ("- **REMOVED:** `R-002` (merged into `R-001`)", "R-002"),
        ("REMOVED: R-002 R-004", "R-002, R-004"),
        ("REMOVED: **R-002**, **R-004**", "R-002, R-004"),
        ("REMOVED: R-002; R-004", "R-002, R-004"),
        ("REMOVED: R-002 & R-004.", "R-002, R-004"),
    ] {
        let (text, warnings) = merged(Some(BEFORE), line).expect(line);
        let document = Requirements::of_artifact(&text);
        let left: Vec<u32> = [1, 2, 4]
            .into_iter()
            .filter(|id| !parse_ids(missing, 'R').contains(id))
            .collect();
        assert_eq!(
            document.ids().into_iter().collect::<Vec<_>>(),
            left,
            "{line}"
        );
        let has_warning = warnings
            .iter()
            .any(|warning| warning.kind == "spec_removal_reason");
        assert_eq!(has_warning, line.contains("R-001"), "{line}: {warnings:?}");
    }
    // It is unclear which of the two is meant.
    let codes_found = codes(Some(BEFORE), "REMOVED: R-002, R-004 covers it");
    assert_eq!(
        codes_found[0],
        "spec-answer-line-form REMOVED: R-002, R-004 covers it"
    );
}

/// A change to a requirement.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Untouched,
    Repeated,
    Changed,
    Removed,
}

fn block() -> impl Strategy<Value = (String, Fate)> {
    let words = "[a-zäé漢 ]{0,12}[a-z][*_|<>.]{0,2}";
    let code = prop_oneof![
        Just(String::new()),
        Just("\n\n```\n### R-001: no\n- x  \n\n\n```".to_owned())
    ];
    let fate = prop_oneof![
        Just(Fate::Untouched),
        Just(Fate::Repeated),
        Just(Fate::Changed),
        Just(Fate::Removed)
    ];
    (words, code, fate)
        .prop_map(|(text, code, fate)| (format!("S {text}\n\n- c {text}{code}"), fate))
}

mod properties {
    use super::*;

    proptest! {
        #[test]
        fn untouched_requirements_keep_their_bytes(
            blocks in prop::collection::vec(block(), 1..9),
            step in 1u32..4,
            retired in prop::collection::btree_set(40u32..60, 0..3),
            new in 0usize..4,
            windows: bool,
            reason in prop_oneof![
                Just(""), Just(" (merged into ID)"), Just(" because ID says it"), Just(": see ID, ID"), Just(" - ID covers it"),
                Just(", replaced by ID"), Just(" and all that ID says"), Just(" – ID"), Just(". ID, ID"), Just(" in favour of ID and ID"),
            ],
        ) {
            let earlier = Requirements {
                head: "# Requirements: Any".to_owned(),
                blocks: blocks.iter().zip(1..).map(|((body, _), place)| {
                    let id = place * step;
                    Block { id, title: format!("Title {id}"), text: format!("### R-{id:03}: Title {id}\n\n{body}") }
                }).collect(),
                retired,
            };
            let before = earlier.render();
            prop_assert_eq!(&Requirements::of_artifact(&before), &earlier);
            let mut answer = "NO CHANGES\n".to_owned();
            let fates = earlier.blocks.iter().zip(blocks.iter().map(|(_, fate)| *fate));
            for (block, fate) in fates.clone() {
                match fate {
                    Fate::Untouched => {}
                    Fate::Repeated => answer.push_str(&format!("{}\n\n", block.text.replacen("\n\n- ", "\n\n\n- ", 1))),
                    Fate::Changed => answer.push_str(&format!("{}\n- one more\n\n", block.text)),
                    Fate::Removed => {
                        // A reason that names another requirement does not change that one.
                        let other = earlier.blocks.iter().map(|other| other.id).find(|other| *other != block.id).unwrap_or(77);
                        let reason = reason.replace("ID", &format!("R-{other:03}"));
                        answer.push_str(&format!("REMOVED: R-{:03}{reason}\n\n", block.id));
                    }
                }
            }
            for number in 0..new {
                answer.push_str(&format!("### R-NEW: New {number}\n\nS\n\n- c\n\n"));
            }
            if windows {
                answer = answer.replace('\n', "\r\n");
            }
            let gone: Vec<u32> = fates.clone().filter(|(_, fate)| matches!(fate, Fate::Removed)).map(|(block, _)| block.id).collect();
            if gone.len() == blocks.len() && new == 0 {
                prop_assert!(merged(Some(&before), &answer).is_err());
                return Ok(());
            }
            let (text, _) = merged(Some(&before), &answer).unwrap();
            let after = Requirements::of_artifact(&text);
            for (block, fate) in fates {
                match fate {
                    Fate::Untouched | Fate::Repeated => prop_assert_eq!(after.block(block.id), Some(block)),
                    Fate::Changed => prop_assert!(after.block(block.id).unwrap().text.ends_with("\n- one more")),
                    Fate::Removed => prop_assert!(after.block(block.id).is_none() && after.retired.contains(&block.id)),
                }
            }
            prop_assert!(earlier.retired.is_subset(&after.retired));
            prop_assert_eq!(after.ids().len(), after.blocks.len());
            let fresh: Vec<u32> = after.ids().into_iter().filter(|id| *id > earlier.highest()).collect();
            prop_assert_eq!(fresh.len(), new);
            prop_assert_eq!(after.blocks.len(), blocks.len() - gone.len() + new);
            prop_assert_eq!(&merged(Some(&text), &text).unwrap().0, &text, "reading it again changes nothing");
            prop_assert_eq!(&merged(Some(&text), "NO CHANGES").unwrap().0, &text);
        }

        #[test]
        fn ids_are_unique_for_any_artifact_and_answer(
            before in "(#{1,4} R-[0-9]{1,7}: [ab]\n|Retired: R-[0-9]{1,12}\n|```\n|text\n|- a\n){0,10}",
            answer in "(#{2,4} (R-[0-9]{1,7}|R-NEW|x): ?[abc]\nS\n- a\n|REMOVED: R-[0-9]\n|NO CHANGES\n|# Requirements: x\n){1,8}",
        ) {
            let earlier = Requirements::of_artifact(&before);
            let ids: Vec<_> = earlier.blocks.iter().map(|block| block.id).collect();
            prop_assert_eq!(earlier.ids().len(), ids.len());
            let earlier = (!ids.is_empty()).then_some(earlier);
            let Ok(draft) = open(&Untrusted::new(answer), &form()) else { return Ok(()) };
            if let Ok((document, _)) = merge(earlier.as_ref(), draft, "x", 0) {
                prop_assert_eq!(document.ids().len(), document.blocks.len());
                prop_assert!(document.ids().is_disjoint(&document.retired));
                let second_requirements = Requirements::of_artifact(&document.render());
                prop_assert_eq!(second_requirements.ids(), document.ids());
                if let Some(earlier) = earlier {
                    for id in document.ids() {
                        prop_assert!(earlier.block(id).is_some() || id > earlier.highest());
                    }
                }
            }
        }
    }
}
