//! Answers in another form than the one asked for, and forms that are repaired.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::parse::parse;
use crate::patch::Files;

const DIFF: &str = "diff --git a/src/a.py b/src/a.py\n--- a/src/a.py\n+++ b/src/a.py\n@@ -1,3 +1,3 @@\n def a():\n-    return 1\n+    return 2\n \n";
const BEFORE: &str = "def a():\n    return 1\n\n\ndef b():\n    return 3\n";
const AFTER: &str = "def a():\n    return 2\n\n\ndef b():\n    return 3\n";

fn path(text: &str) -> RepoPath {
    text.parse().unwrap()
}

/// What the answer makes of `src/a.py`, with the form it was read as; or the code of the error.
fn made_of(requested: EditFormat, answer: &str, before: &str) -> (String, String) {
    let expected = [path("src/a.py"), path("src/other.py")];
    let files = BTreeMap::from([(path("src/a.py"), before.as_bytes().to_vec())]);
    let reading = match read_any_answer(requested, &Untrusted::new(answer), &expected) {
        Ok(reading) => reading,
        Err(error) => return (error.code().to_string(), String::new()),
    };
    let after =
        apply(&reading.proposal, &files).or_else(|error| match as_line_edits(&reading.proposal) {
            Some(edits) => apply(&edits, &files),
            None => Err(error),
        });
    let text = match after {
        Ok(after) => String::from_utf8(after.into_values().next().unwrap()).unwrap(),
        Err(error) => error.code().to_string(),
    };
    (text, reading.format.as_str().to_owned())
}

fn build_answer(requested: EditFormat, answer: &str) -> String {
    made_of(requested, answer, BEFORE).0
}

#[test]
fn each_form_is_read_whatever_was_requested() {
    let full_text = format!("FILE: src/a.py\n```python\n{AFTER}```\n");
    let blocks = "src/a.py\n<<<<<<< SEARCH\n    return 1\n=======\n    return 2\n>>>>>>> REPLACE\n";
    let fenced = format!("Sure.\n\nFILE: src/a.py\n```\n{blocks}```\nDone.\n");
    let named_inside = format!("```python\n{blocks}```\n");
    let definition = "FILE: src/a.py\n```python\ndef a():\n    return 2\n```\n";
    let prose = format!("Here is the fix.\n\n```diff\n{DIFF}```\n\nIt returns 2 now.\n");
    let bare = DIFF.replace("diff --git a/src/a.py b/src/a.py\n", "");
    for requested in EditFormat::ALL {
        for (answer, format) in [
            (blocks, "search-replace"),
            (&fenced, "search-replace"),
            (&named_inside, "search-replace"),
            (DIFF, "unified-diff"),
            (&prose, "unified-diff"),
            (&bare, "unified-diff"),
        ] {
            let expected = (AFTER.to_owned(), format.to_owned());
            assert_eq!(
                made_of(requested, answer, BEFORE),
                expected,
                "{requested:?}: {answer}"
            );
        }
        assert_eq!(build_answer(requested, &full_text), AFTER, "{requested:?}");
        // A whole file that gives one definition of two is made whole again only after this, by `restore_lost_definitions`.
        if requested != EditFormat::WholeFile {
            assert_eq!(build_answer(requested, definition), AFTER, "{requested:?}");
        }
    }
}

#[test]
fn markers_inside_file_content_are_content() {
    let marks = "<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n";
    let answer = format!("FILE: src/a.py\n```\ntext = (\n{marks})\n```\n");
    for requested in EditFormat::ALL {
        assert_ne!(build_answer(requested, &answer), "y\n", "{requested:?}");
    }
    let doc = format!("FILE: src/a.py\n````\nHow a diff looks:\n```\n{DIFF}```\n````\n");
    let (text, format) = made_of(EditFormat::WholeFile, &doc, BEFORE);
    assert!(
        format == "whole-file" && text.contains("How a diff looks"),
        "{text}"
    );
    assert_ne!(build_answer(EditFormat::SearchReplace, &doc), AFTER);
    // Two forms in one answer could both be meant.
    let both = format!("src/a.py\n{marks}\nor:\n\n{DIFF}");
    assert_eq!(build_answer(EditFormat::WholeFile, &both), "answer-no-edit");
}

#[test]
fn fragment_never_replaces_file_without_grammar() {
    let before = BTreeMap::from([(path("a.yml"), b"on: push\njobs:\n  a: 1\n  b: 2\n".to_vec())]);
    let of = |content: &str| {
        let answer = format!("FILE: a.yml\n```\n{content}```\n");
        let reading =
            read_any_answer(EditFormat::SearchReplace, &Untrusted::new(answer), &[]).unwrap();
        apply(&reading.proposal, &before)
    };
    assert_eq!(
        of("jobs:\n  a: 2\n").unwrap_err(),
        AnswerError::PartOfFile {
            path: path("a.yml")
        }
    );
    let full_text = "on: push\njobs:\n  a: 2\n  b: 2\n";
    assert_eq!(of(full_text).unwrap()[&path("a.yml")], full_text.as_bytes());
    let twice =
        "FILE: a.yml\n```\non: push\n  b: 2\n```\nFILE: a.yml\n```\non: push\nx: 1\n  b: 2\n```\n";
    let reading = read_any_answer(EditFormat::SearchReplace, &Untrusted::new(twice), &[]).unwrap();
    assert_eq!(
        apply(&reading.proposal, &before)
            .unwrap_err()
            .code()
            .as_str(),
        "answer-two-answers"
    );
}

#[test]
fn whole_file_is_accepted_instead_of_definitions() {
    let before = "import os\n\nprint(1)\n\n\ndef a():\n    return 1\n";
    let after = "import os\n\nprint(2)\n\n\ndef a():\n    return 1\n";
    let of = |requested, content: &str| {
        made_of(
            requested,
            &format!("FILE: src/a.py\n```\n{content}```\n"),
            before,
        )
        .0
    };
    for requested in EditFormat::ALL {
        assert_eq!(of(requested, after), after, "{requested:?}");
    }
    // A piece with a statement is not a whole file, and neither is one that does not follow the grammar.
    for requested in [EditFormat::Definitions, EditFormat::SearchReplace] {
        assert_eq!(
            of(requested, "print(2)\n\n\ndef a():\n    return 1\n"),
            "answer-not-a-definition"
        );
        assert_eq!(
            of(requested, &after.replace("print(2)", "print(")),
            "answer-broken-syntax"
        );
    }
}

#[test]
fn hunk_headers_that_do_not_hold_are_recounted() {
    let body = " def a():\n-    return 1\n+    return 2\n \n";
    let names = "--- a/src/a.py\n+++ b/src/a.py\n";
    let git = "diff --git a/src/a.py b/src/a.py\n";
    for answer in [
        format!("{git}{names}@@ -40,9 +40,9 @@ def a():\n{body}"),
        format!("{git}{names}@@ -1,2 +1,2 @@\n{body}"),
        format!("{git}{names}@@\n{body}"),
        format!("{git}{names}@@ ... @@\n{body}"),
        format!("{git}index 1234..5678 100644\n{names}@@ -7,3 +7,3 @@\n{body}"),
        format!("{names}@@ -1,3 +1,3 @@\n{body}"),
        format!("--- src/a.py\n+++ src/a.py\n@@ -9,3 +9,3 @@\n{body}"),
        format!(
            "diff --git src/a.py src/a.py\n--- src/a.py\n+++ src/a.py\n@@ -1,3 +1,3 @@\n{body}"
        ),
        format!("--- a/src/a.py\t2026-01-01\n+++ b/src/a.py\t2026-01-01\n@@ -9,3 +9,3 @@\n{body}"),
        format!("{git}{names}@@ -40,9 +40,9 @@\n{body}\nThis returns 2:\n- as asked\n"),
        format!("{git}{names}@@ -1,3 +1,3 @@\n{body}\nThis returns 2:\n\n- as asked\n"),
        format!("Sure, here it is:\n\n{git}{names}@@ -40,9 +40,9 @@\n{body}"),
        format!("{git}{names}@@ -40,9 +40,9 @@\n{body}").replace('\n', "\r\n"),
        format!(
            "{git}{names}@@ -1,1 +1,1 @@\n{}",
            body.replace("\n \n", "\n\n")
        ),
    ] {
        assert_eq!(
            build_answer(EditFormat::UnifiedDiff, &answer),
            AFTER,
            "{answer}"
        );
    }
}

#[test]
fn hunks_of_file_are_placed_independently() {
    let answer = "--- a/src/a.py\n+++ b/src/a.py\n@@ -90,2 +90,2 @@\n def b():\n-    return 3\n+    return 4\n@@ -1,1 +1,2 @@\n def a():\n+    x = 1\n";
    let expected = "def a():\n    x = 1\n    return 1\n\n\ndef b():\n    return 4\n";
    assert_eq!(build_answer(EditFormat::UnifiedDiff, answer), expected);
    let crlf = made_of(
        EditFormat::UnifiedDiff,
        answer,
        &BEFORE.replace('\n', "\r\n"),
    )
    .0;
    assert_eq!(crlf, expected.replace('\n', "\r\n"));
    let open = made_of(EditFormat::UnifiedDiff, answer, BEFORE.trim_end()).0;
    assert_eq!(open, expected.trim_end());
    let overlapping = answer.replace("-1,1 +1,2 @@\n def a()", "-1,1 +1,2 @@\n def b()");
    assert_eq!(
        build_answer(EditFormat::UnifiedDiff, &overlapping),
        "answer-does-not-apply"
    );
}

#[test]
fn hunk_fitting_several_places_is_refused_with_reason() {
    let before = "x\ny\nz\nx\ny\nz\n";
    let answer = "--- a/src/a.py\n+++ b/src/a.py\n@@ -9,3 +9,3 @@\n x\n-y\n+q\n z\n";
    assert_eq!(
        made_of(EditFormat::UnifiedDiff, answer, before).0,
        "answer-not-one-match"
    );
    // Where the header holds, it says which place.
    let stated = answer.replace("@@ -9,3 +9,3 @@", "@@ -4,3 +4,3 @@");
    assert_eq!(
        made_of(EditFormat::UnifiedDiff, &stated, before).0,
        "x\ny\nz\nx\nq\nz\n"
    );
    // A hunk of added lines alone stands nowhere.
    let nowhere = "--- a/src/a.py\n+++ b/src/a.py\n@@ -9 +9,2 @@\n+q\n";
    assert_eq!(
        made_of(EditFormat::UnifiedDiff, nowhere, before).0,
        "answer-does-not-apply"
    );
}

#[test]
fn non_text_changes_are_left_to_strict_parser() {
    let hunk = "@@ -9,3 +9,3 @@\n def a():\n-    return 1\n+    return 2\n \n";
    let names = "--- a/src/a.py\n+++ b/src/a.py\n";
    let git = "diff --git a/src/a.py b/src/a.py\n";
    let rename = "diff --git a/src/b.py b/src/a.py\nrename from src/b.py\nrename to src/a.py\n";
    let fenced = format!("```diff\n{git}{names}{hunk}```\n");
    for (answer, code) in [
        (
            format!("{git}old mode 100644\nnew mode 100755\n{names}{hunk}"),
            "answer-does-not-apply",
        ),
        (
            format!("{rename}--- a/src/b.py\n+++ b/src/a.py\n{hunk}"),
            "answer-unknown-file",
        ),
        (
            format!(
                "{git}deleted file mode 100644\n--- a/src/a.py\n+++ /dev/null\n@@ -3,9 +0,0 @@\n-def a():\n"
            ),
            "patch-hunk-counts",
        ),
        (
            format!("{git}--- a/src/a.py\n+++ b/src/b.py\n{hunk}"),
            "patch-headers-disagree",
        ),
        (
            format!("{git}{names}{hunk}{git}{names}{hunk}"),
            "patch-path-twice",
        ),
        (format!("{fenced}or\n{fenced}"), "answer-two-diffs"),
        // Lines behind the hunk that its counts leave out are no sign-off.
        (
            format!(
                "{git}{names}@@ -1,2 +1,2 @@\n def a():\n-    return 1\n+    return 2\n\nand\n+    more\n"
            ),
            "patch-junk",
        ),
    ] {
        let files = BTreeMap::from([(path("src/a.py"), BEFORE.as_bytes().to_vec())]);
        let reading = read_any_answer(
            EditFormat::UnifiedDiff,
            &Untrusted::new(answer.clone()),
            &[],
        );
        let error = match reading {
            Ok(reading) => {
                assert_eq!(as_line_edits(&reading.proposal), None, "{answer}");
                apply(&reading.proposal, &files).unwrap_err()
            }
            Err(error) => error,
        };
        assert_eq!(error.code().as_str(), code, "{answer}");
    }
}

#[test]
fn differently_indented_lines_match_if_unique() {
    let replaced = |search: &str, replace: &str, before: &str| {
        let answer =
            format!("src/a.py\n<<<<<<< SEARCH\n{search}=======\n{replace}>>>>>>> REPLACE\n");
        made_of(EditFormat::SearchReplace, &answer, before).0
    };
    let class = "class A:\n    def a(self):\n        return 1\n";
    let (search, replace) = (
        "def a(self):\n    return 1\n",
        "def a(self):\n\n    return 2\n",
    );
    assert_eq!(
        replaced(search, replace, class),
        "class A:\n    def a(self):\n\n        return 2\n"
    );
    let flush = "def a(self):\n    return 1\n";
    let (deep, new) = (
        "    def a(self):\n        return 1\n",
        "    def a(self):\n        return 2\n",
    );
    assert_eq!(replaced(deep, new, flush), "def a(self):\n    return 2\n");
    let tabs = "class A:\n\tdef a(self):\n\t    return 1\n";
    assert_eq!(
        replaced(search, replace, tabs),
        "class A:\n\tdef a(self):\n\n\t    return 2\n"
    );
    // The lines themselves come first, wherever else lines like them stand.
    let both = format!("{class}\n{flush}");
    assert_eq!(
        replaced(search, replace, &both),
        format!("{class}\n{replace}")
    );
    let two = format!("{class}\nclass B:\n    def a(self):\n        return 1\n");
    for (search, replace, before) in [
        // In two places.
        (search, replace, two.as_str()),
        // Not uniformly.
        ("def a(self):\n  return 1\n", "x\n", class),
        ("    def a(self):\n    return 1\n", "x\n", class),
        // What takes their place cannot be set in so.
        (deep, "  def a(self):\n", flush),
    ] {
        assert_eq!(
            replaced(search, replace, before),
            "answer-not-one-match",
            "{search}{before}"
        );
    }
}

#[test]
fn hostile_answers_are_read_in_bounded_time() {
    let many = format!(
        "--- a/src/a.py\n+++ b/src/a.py\n{}",
        "@@ -9 +9 @@\n-a\n+b\n".repeat(100_000)
    );
    assert_eq!(
        build_answer(EditFormat::UnifiedDiff, &many),
        "answer-no-edit"
    );
    let starts = "--- a/src/a.py\n+++ b/src/a.py\n@@\n".repeat(40_000);
    assert_eq!(
        build_answer(EditFormat::WholeFile, &starts),
        "answer-no-edit"
    );
    let long = format!(
        "src/a.py\n<<<<<<< SEARCH\n{}b\n=======\n>>>>>>> REPLACE\n",
        "  a\n".repeat(100_000)
    );
    assert_eq!(
        made_of(EditFormat::SearchReplace, &long, &"a\n".repeat(300_000)).0,
        "answer-not-one-match"
    );
    let blocks = "<<<<<<< SEARCH\n".repeat(100_000);
    assert_eq!(
        build_answer(EditFormat::WholeFile, &blocks),
        "answer-broken-block"
    );
}

#[test]
fn path_outside_repository_is_not_repairable() {
    let of_form = |answer: &str| {
        let expected = [path("src/a.py")];
        let error =
            match read_any_answer(EditFormat::UnifiedDiff, &Untrusted::new(answer), &expected) {
                Ok(ParsedAnswer {
                    proposal: Proposal::Diff(diff),
                    ..
                }) => AnswerError::from(parse(&diff).unwrap_err()),
                Ok(other) => panic!("{other:?}"),
                Err(error) => error,
            };
        error.is_of_form()
    };
    assert!(of_form("I would multiply."));
    assert!(of_form(
        "diff --git a/x b/y\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n"
    ));
    assert!(!of_form(
        "diff --git a/../x b/../x\n--- a/../x\n+++ b/../x\n@@ -1 +1 @@\n-a\n+b\n"
    ));
}

proptest! {
    #[test]
    fn any_text_gives_a_reading_or_an_error(text in "([ -~\n]|```|FILE: a\n|<<<<<<< SEARCH\n|=======\n|>>>>>>> REPLACE\n|diff --git a/a b/a\n|--- a/a\n|\\+\\+\\+ b/a\n|@@ -1 \\+1 @@\n| x\n|-y\n|\\+z\n){0,40}") {
        let files: Files = BTreeMap::from([(path("a"), b"x\ny\n".to_vec())]);
        for edit_format in EditFormat::ALL {
            let answer = Untrusted::new(text.clone());
            let read = read_any_answer(edit_format, &answer, &[path("a")]);
            prop_assert_eq!(&read, &read_any_answer(edit_format, &answer, &[path("a")]));
            if let Ok(reading) = read {
                let _ = apply(&reading.proposal, &files);
                let _ = as_line_edits(&reading.proposal).map(|edits| apply(&edits, &files));
            } else {
                prop_assert!(read_answer(edit_format, &answer, &[path("a")]).is_err());
            }
        }
    }

    /// A hunk with a wrong header is put where its lines stand, and nowhere else.
    #[test]
    fn recounted_hunk_changes_only_its_lines(
        lines in proptest::collection::vec("[a-c ]{0,2}", 1..12),
        at in any::<prop::sample::Index>(),
        crlf in any::<bool>(),
    ) {
        let at = at.index(lines.len());
        let end = if crlf { "\r\n" } else { "\n" };
        let text = |lines: &[String]| lines.iter().map(|line| format!("{line}{end}")).collect::<String>();
        let mut hunk = String::new();
        for (number, line) in lines.iter().enumerate().skip(at.saturating_sub(1)).take(3) {
            if number == at {
                hunk.push_str(&format!("-{line}\n+NEW\n"));
            } else {
                hunk.push_str(&format!(" {line}\n"));
            }
        }
        let answer = format!("--- a/src/a.py\n+++ b/src/a.py\n@@ -77,9 +77,9 @@\n{hunk}");
        let mut expected = lines.clone();
        expected[at] = "NEW".to_owned();
        let content = made_of(EditFormat::UnifiedDiff, &answer, &text(&lines)).0;
        let refused = ["answer-not-one-match", "answer-does-not-apply"].contains(&content.as_str());
        prop_assert!(refused || content == text(&expected), "{content:?}");
    }
}
