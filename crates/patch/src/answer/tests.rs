//! Answers as models write them: the good ones in their variations, and the ones that must not become a change.

use std::collections::BTreeMap;

use crucible_model::Code;
use proptest::prelude::*;

use super::*;
use crate::patch::Files;

mod properties;

fn path(text: &str) -> RepoPath {
    text.parse().unwrap()
}

fn paths(texts: &[&str]) -> Vec<RepoPath> {
    texts.iter().map(|text| path(text)).collect()
}

/// The edits of an answer as `path=content`, or the code of the error.
fn read(format: EditFormat, answer: &str, expected: &[&str]) -> Vec<String> {
    match read_answer(format, &Untrusted::new(answer), &paths(expected)) {
        Ok(Proposal::Edits(edits)) => edits
            .into_iter()
            .map(|edit| match edit.kind {
                EditKind::WholeFile { content } => format!("{}={content}", edit.path),
                EditKind::Definitions { content } => format!("{}~{content}", edit.path),
                EditKind::Delete { name } => format!("{}-{name}", edit.path),
                EditKind::Block { .. } | EditKind::Hunks { .. } => {
                    unreachable!("only read_any_answer gives these")
                }
                EditKind::Replace { search, replace } => {
                    format!("{}={search}|{replace}", edit.path)
                }
            })
            .collect(),
        Ok(Proposal::Diff(diff)) => vec![String::from_utf8(diff).unwrap()],
        Err(error) => vec![error.code().to_string()],
    }
}

fn whole(answer: &str, expected: &[&str]) -> Vec<String> {
    read(EditFormat::WholeFile, answer, expected)
}

fn search_replace(answer: &str, expected: &[&str]) -> Vec<String> {
    read(EditFormat::SearchReplace, answer, expected)
}

fn files(pairs: &[(&str, &str)]) -> BTreeMap<RepoPath, Vec<u8>> {
    pairs
        .iter()
        .map(|(name, text)| (path(name), text.as_bytes().to_vec()))
        .collect()
}

/// The content of `a.rs` after applying the answer to `before`, or the code of the error.
fn applied(format: EditFormat, answer: &str, before: &str) -> String {
    let proposal = read_answer(format, &Untrusted::new(answer), &paths(&["a.rs"])).unwrap();
    match apply(&proposal, &files(&[("a.rs", before)])) {
        Ok(after) => String::from_utf8(after[&path("a.rs")].clone()).unwrap(),
        Err(error) => error.code().to_string(),
    }
}

#[test]
fn thinking_before_an_answer_is_ignored() {
    let draft = "FILE: src/b.rs\n```\ndraft\n```\n";
    let answer = "FILE: src/a.rs\n```\nx\n```\n";
    let expected = &["src/a.rs", "src/b.rs"];
    for thoughts in [
        format!("<think>\n{draft}</think>\n"),
        format!("\n <think>{draft}\n```\nno end</think>"),
    ] {
        assert_eq!(
            whole(&format!("{thoughts}\n{answer}"), expected),
            ["src/a.rs=x\n"],
            "{thoughts}"
        );
    }
    // Thoughts without an end are no answer, and the word elsewhere is text.
    assert_eq!(
        whole(&format!("<think>\n{draft}"), expected),
        ["answer-empty"]
    );
    let text = "FILE: src/a.rs\n```\n<think>x</think>\n```\n";
    assert_eq!(whole(text, expected), ["src/a.rs=<think>x</think>\n"]);
}

#[test]
fn file_is_named_in_any_usual_way() {
    for answer in [
        "FILE: src/a.rs\n```rust\nx\n```",
        "Sure!\n\nFile: `src/a.rs`\n\n```\nx\n```\nDone.",
        "**FILE: src/a.rs**\n```rust\nx\n```\n",
        "### src/a.rs\n~~~~\nx\n~~~~",
        "### `src/a.rs` (updated)\n```rust\nx\n```",
        "1. **`src/a.rs`**:\n```rust\nx\n```",
        "- src/a.rs\n```rust\nx\n```",
        "```rust:src/a.rs\nx\n```",
        "```rust src/a.rs\nx\n```",
        "```src/a.rs\nx\n```",
        "```rust title=\"src/a.rs\"\nx\n```",
        "Path: ./src/a.rs\r\n```rust\r\nx\r\n```",
    ] {
        assert_eq!(
            whole(answer, &["src/b.rs", "src/a.rs"]),
            ["src/a.rs=x\n"],
            "{answer}"
        );
        assert_eq!(whole(answer, &[]), ["src/a.rs=x\n"], "{answer}");
    }
    assert_eq!(
        whole(
            "Here is the new `src/a.rs` for you:\n```\nx\n```",
            &["src/a.rs"]
        ),
        ["src/a.rs=x\n"]
    );
    assert_eq!(
        whole("Makefile:\n```\nx\n```", &["Makefile", "b"]),
        ["Makefile=x\n"]
    );
    assert_eq!(whole("FILE: a b/c d\n```\nx\n```", &[]), ["a b/c d=x\n"]);
    assert_eq!(
        whole("```rust\n// FILE: src/a.rs\nx\n```", &["q", "r"]),
        ["src/a.rs=// FILE: src/a.rs\nx\n"]
    );
}

#[test]
fn unnamed_block_needs_one_expected_file() {
    assert_eq!(whole("Fixed:\n```rust\nx\n```", &["a.rs"]), ["a.rs=x\n"]);
    assert_eq!(
        whole("Fixed:\n```rust\nx\n```", &["a.rs", "b.rs"]),
        ["answer-no-path"]
    );
    assert_eq!(whole("Fixed:\n```rust\nx\n```", &[]), ["answer-no-path"]);
    assert_eq!(
        whole("```rust\nx\n```\n```rust\ny\n```", &["a.rs"]),
        ["answer-no-path"]
    );
    assert_eq!(
        whole("```rust\nx\n```\nRun:\n```sh\ncargo test\n```", &["a.rs"]),
        ["a.rs=x\n"]
    );
    assert_eq!(
        whole(
            "FILE: a.rs\n```\nx\n```\nRun:\n```\ncargo test\n```",
            &["a.rs"]
        ),
        ["a.rs=x\n"]
    );
}

#[test]
fn several_files_and_repeated_ones() {
    let two = "FILE: a.rs\n```\nx\n```\nFILE: b.rs\n```\ny\n```";
    assert_eq!(whole(two, &["a.rs"]), ["a.rs=x\n", "b.rs=y\n"]);
    assert_eq!(
        whole("FILE: a.rs\n```\nx\n```\nFILE: a.rs\n```\nx\n```", &[]),
        ["a.rs=x\n"]
    );
    assert_eq!(
        whole("FILE: a.rs\n```\nx\n```\nFILE: a.rs\n```\ny\n```", &[]),
        ["answer-two-answers"]
    );
    assert_eq!(
        whole("FILE: a.rs\n```b.rs\nx\n```", &[]),
        ["answer-paths-disagree"]
    );
}

#[test]
fn nested_fences_are_part_of_the_file() {
    let long = "FILE: R.md\n````md\nUse:\n```\nx\n```\nEnd\n````";
    assert_eq!(whole(long, &[]), ["R.md=Use:\n```\nx\n```\nEnd\n"]);
    let worded = "FILE: R.md\n```md\nUse:\n```sh\nx\n```\nEnd\n```\n";
    assert_eq!(whole(worded, &[]), ["R.md=Use:\n```sh\nx\n```\nEnd\n"]);
    let bare = "FILE: R.md\n```md\nUse:\n```\nx\n```\nEnd\n```\n";
    assert_eq!(whole(bare, &[]), ["answer-ambiguous-fence"]);
    let doc = "FILE: a.rs\n```rust\n/// ```\n/// x\n/// ```\n    ```\nfn a() {}\n```";
    assert_eq!(
        whole(doc, &[]),
        ["a.rs=/// ```\n/// x\n/// ```\n    ```\nfn a() {}\n"]
    );
}

#[test]
fn files_without_fences_end_with_code() {
    assert_eq!(
        whole(
            "The limit is wrong.\n\nFILE: go.mod\nmodule a\n\nFILE: a.go\npackage a\n\nfunc A() {}\n\n",
            &["a.go"]
        ),
        ["a.go=package a\n\nfunc A() {}\n", "go.mod=module a\n"]
    );
    for other in [
        // Words behind such a file would land in it unseen.
        "FILE: a.go\npackage a\n\nFILE: Makefile\nall:\n\tgo build\n\nThis builds it.\n",
        "FILE: README.md\n# A\n\nFILE: a.go\npackage a\n",
        "FILE: a.rs\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n",
        "FILE: a.rs\n@@ -1 +1 @@\n-a\n+b\n",
        "Change `a.rs`:\nfn a() {}\n",
    ] {
        assert_eq!(whole(other, &["a.rs"]), ["answer-no-edit"], "{other}");
    }
    assert_eq!(
        whole("FILE: a.rs\nfn a() {}\nFILE: a.rs\nfn b() {}\n", &["a.rs"]),
        ["answer-two-answers"]
    );
}

#[test]
fn partial_file_is_refused() {
    assert_eq!(whole("", &["a.rs"]), ["answer-empty"]);
    assert_eq!(whole(" \n\t\n", &["a.rs"]), ["answer-empty"]);
    assert_eq!(whole("I cannot do that.", &["a.rs"]), ["answer-no-edit"]);
    assert_eq!(
        whole(&"x".repeat(MAX_ANSWER_BYTES as usize + 1), &["a.rs"]),
        ["answer-too-large"]
    );
    assert_eq!(
        whole("FILE: a.rs\n```rust\nfn a() {\n", &["a.rs"]),
        ["answer-unclosed-fence"]
    );
    assert_eq!(
        whole(
            "FILE: a.rs\n```rust\nx\nFILE: b.rs\n```rust\ny\n```\n",
            &["a.rs"]
        ),
        ["answer-unclosed-fence"]
    );
    for bad in [
        "../x",
        "/etc/passwd",
        ".git/hooks/pre-commit",
        "a//b",
        "C:\\x",
        "a/../../x",
    ] {
        assert_eq!(
            whole(&format!("FILE: {bad}\n```\nx\n```"), &["a.rs"]),
            ["answer-bad-path"],
            "{bad}"
        );
        assert_eq!(
            whole(&format!("### {bad}\n```\nx\n```"), &["a.rs"]),
            ["answer-bad-path"],
            "{bad}"
        );
        assert_eq!(
            whole(&format!("```rust:{bad}\nx\n```"), &["a.rs"]),
            ["answer-bad-path"],
            "{bad}"
        );
    }
    let diff = "```diff\n--- a/a.rs\n+++ b/a.rs\n@@ -1 +1 @@\n-x\n+y\n```";
    assert_eq!(whole(diff, &["a.rs"]), ["answer-wrong-format"]);
    let blocks = "a.rs\n```\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n```";
    assert_eq!(whole(blocks, &["a.rs"]), ["answer-wrong-format"]);
}

#[test]
fn search_and_replace_blocks_are_read() {
    let block = "<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n";
    assert_eq!(
        search_replace(&format!("src/a.rs\n{block}"), &[]),
        ["src/a.rs=x\n|y\n"]
    );
    assert_eq!(
        search_replace(&format!("FILE: src/a.rs\n```rust\n{block}```\n"), &[]),
        ["src/a.rs=x\n|y\n"]
    );
    assert_eq!(
        search_replace(&format!("```rust\nsrc/a.rs\n{block}```\n"), &[]),
        ["src/a.rs=x\n|y\n"]
    );
    assert_eq!(
        search_replace(&format!("```rust:src/a.rs\n{block}```\n"), &[]),
        ["src/a.rs=x\n|y\n"]
    );
    assert_eq!(
        search_replace(&format!("Change this:\n{block}"), &["a.rs"]),
        ["a.rs=x\n|y\n"]
    );
    assert_eq!(
        search_replace(&format!("Change this:\n{block}"), &["a.rs", "b.rs"]),
        ["answer-no-path"]
    );
    let twice = format!("`a.rs`\n{block}and\n{block}b.rs\n{block}");
    assert_eq!(
        search_replace(&twice, &["a.rs", "b.rs"]),
        ["a.rs=x\n|y\n", "a.rs=x\n|y\n", "b.rs=x\n|y\n"]
    );
    let deletion = "a.rs\n<<<<<<< SEARCH\nx\n=======\n>>>>>>> REPLACE\n";
    assert_eq!(search_replace(deletion, &[]), ["a.rs=x\n|"]);
}

#[test]
fn broken_blocks_are_refused() {
    for broken in [
        "a.rs\n<<<<<<< SEARCH\nx\n=======\ny\n",
        "a.rs\n<<<<<<< SEARCH\nx\n",
        "a.rs\n<<<<<<< SEARCH\nx\n>>>>>>> REPLACE\n",
        "a.rs\n<<<<<<< SEARCH\nx\n=======\ny\n=======\nz\n>>>>>>> REPLACE\n",
        "a.rs\n<<<<<<< SEARCH\nx\n<<<<<<< SEARCH\n=======\ny\n>>>>>>> REPLACE\n",
        ">>>>>>> REPLACE\n",
    ] {
        assert_eq!(
            search_replace(broken, &["a.rs"]),
            ["answer-broken-block"],
            "{broken}"
        );
    }
    assert_eq!(
        search_replace("nothing here", &["a.rs"]),
        ["answer-no-edit"]
    );
    assert_eq!(
        search_replace(
            "../a.rs\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n",
            &["a.rs"]
        ),
        ["answer-bad-path"]
    );
    let many = "<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n".repeat(501);
    assert_eq!(search_replace(&many, &["a.rs"]), ["answer-too-many-edits"]);
}

#[test]
fn diff_is_read_bare_or_fenced() {
    let diff = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n ```\n-x\n+y\n";
    let read = |answer: &str| read(EditFormat::UnifiedDiff, answer, &[]);
    for answer in [
        diff.to_owned(),
        diff.trim_end().to_owned(),
        format!("\n{diff}\n\n"),
        format!("```diff\n{diff}```\n"),
        format!("```\n{diff}```"),
        format!("~~~patch\n{diff}~~~\n"),
    ] {
        assert_eq!(read(&answer), [diff], "{answer}");
    }
    assert_eq!(read(&format!("Here:\n{diff}")), ["answer-text-around-diff"]);
    assert_eq!(
        read(&format!("Here:\n```diff\n{diff}```\n")),
        ["answer-text-around-diff"]
    );
    assert_eq!(
        read(&format!("```diff\n{diff}```\nDone")),
        ["answer-text-around-diff"]
    );
    assert_eq!(
        read(&format!("```diff\n{diff}```\nor\n```diff\n{diff}```")),
        ["answer-two-diffs"]
    );
    assert_eq!(read("no"), ["answer-no-edit"]);
    assert_eq!(
        read("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n"),
        ["answer-no-edit"]
    );
    let crlf = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\r\n+y\r\n";
    assert_eq!(read(crlf), [crlf]);
}

#[test]
fn answer_without_diff_is_explained_once() {
    let diff = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n";
    let bare = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n";
    // What some editors put in front says nothing.
    assert_eq!(
        read(EditFormat::UnifiedDiff, &format!("\u{feff}{diff}"), &[]),
        [diff]
    );
    for (answer, code, subject, part) in [
        (
            bare.to_owned(),
            "answer-no-edit",
            "line 1",
            "first line has to begin with `diff --git`",
        ),
        (
            format!("```diff\n{bare}```\n"),
            "answer-no-edit",
            "line 2",
            "first line has to begin with `diff --git`",
        ),
        (
            format!("Here:\n{bare}"),
            "answer-no-edit",
            "line 2",
            "first line has to begin with `diff --git`",
        ),
        (
            "I would multiply.\n".to_owned(),
            "answer-no-edit",
            "answer",
            "it begins with \"I would multiply.\"",
        ),
        (
            "Look:\n```\nx\n```\n".to_owned(),
            "answer-no-edit",
            "answer",
            "it begins with \"Look:\"",
        ),
        (
            format!("Here:\n\n```diff\n{diff}```\n"),
            "answer-text-around-diff",
            "line 1",
            "no sentence and no code fence",
        ),
        (
            format!("{diff}```\nDone.\n"),
            "answer-text-around-diff",
            "line 7",
            "no sentence and no code fence",
        ),
    ] {
        let error = read_answer(
            EditFormat::UnifiedDiff,
            &Untrusted::new(answer.clone()),
            &[],
        )
        .unwrap_err();
        let finding = error.finding();
        assert_eq!(
            (finding.code.as_str(), finding.subject.as_str()),
            (code, subject),
            "{answer}"
        );
        assert!(finding.hint.contains(part), "{finding}");
        assert!(
            !finding.hint.contains("line 1") && !finding.hint.contains("line 7"),
            "told once: {finding}"
        );
    }
}

#[test]
fn whole_file_keeps_line_endings_and_bom() {
    let answer = "FILE: a.rs\n```\none\ntwo\n```";
    let whole = |before: &str| applied(EditFormat::WholeFile, answer, before);
    assert_eq!(whole("x\n"), "one\ntwo\n");
    assert_eq!(whole("x"), "one\ntwo");
    assert_eq!(whole(""), "one\ntwo\n");
    assert_eq!(whole("x\r\ny\r\n"), "one\r\ntwo\r\n");
    assert_eq!(whole("x\r\ny"), "one\r\ntwo");
    assert_eq!(whole("\u{feff}x\n"), "\u{feff}one\ntwo\n");
    assert_eq!(whole("one\r\nthree\nfour\n"), "one\r\ntwo\n");
    assert_eq!(whole("one\nthree\r\nfour\r\n"), "one\ntwo\r\n");
    let commented = "FILE: a.rs\n```\n// a.rs\none\n```";
    assert_eq!(applied(EditFormat::WholeFile, commented, "x\n"), "one\n");
    assert_eq!(
        applied(EditFormat::WholeFile, commented, "// a.rs\nx\n"),
        "// a.rs\none\n"
    );
    assert_eq!(
        applied(EditFormat::WholeFile, "FILE: a.rs\n```\n```", "x\n"),
        ""
    );
    let proposal = read_answer(EditFormat::WholeFile, &Untrusted::new(answer), &[]).unwrap();
    let latin = BTreeMap::from([(path("a.rs"), b"\xe9\n".to_vec())]);
    assert_eq!(
        apply(&proposal, &latin),
        Err(AnswerError::NotText { path: path("a.rs") })
    );
    assert_eq!(
        apply(&proposal, &BTreeMap::new()).unwrap()[&path("a.rs")],
        b"one\ntwo\n"
    );
}

#[test]
fn code_left_out_is_refused() {
    for elided in [
        "// ... existing code ...",
        "    # ... rest of the file unchanged ...",
        "/* … remaining functions … */",
        "// ... (other functions)",
    ] {
        let answer = format!("FILE: a.rs\n```\nfn a() {{}}\n{elided}\n```");
        assert_eq!(
            applied(EditFormat::WholeFile, &answer, "x\n"),
            "answer-elided",
            "{elided}"
        );
        assert!(
            applied(
                EditFormat::WholeFile,
                &answer,
                &format!("{}\n", elided.trim())
            )
            .contains(elided)
        );
    }
    for valid_text in [
        "// and so on ...",
        "let existing = a..b;",
        "// the rest of it",
        "let x = [..., existing];",
    ] {
        let answer = format!("FILE: a.rs\n```\n{valid_text}\n```");
        assert_eq!(
            applied(EditFormat::WholeFile, &answer, "x\n"),
            format!("{valid_text}\n")
        );
    }
}

fn replaced(search: &str, replace: &str, before: &str) -> String {
    let answer = format!("a.rs\n<<<<<<< SEARCH\n{search}=======\n{replace}>>>>>>> REPLACE\n");
    applied(EditFormat::SearchReplace, &answer, before)
}

#[test]
fn search_text_must_match_once() {
    assert_eq!(replaced("b\n", "B\nBB\n", "a\nb\nc\n"), "a\nB\nBB\nc\n");
    assert_eq!(replaced("b\n", "", "a\nb\nc\n"), "a\nc\n");
    assert_eq!(replaced("b\n", "B\n", "a\r\nb\r\nc\r\n"), "a\r\nB\r\nc\r\n");
    assert_eq!(replaced("c\n", "C\n", "a\nb\nc"), "a\nb\nC");
    assert_eq!(replaced("b  \n", "B\n", "a\nb\t\n"), "a\nB\n");
    assert_eq!(replaced("b\n", "B\n", "b\nb \n"), "B\nb \n");
    assert_eq!(replaced(" b\n", "B\n", "a\nb\n"), "answer-not-one-match");
    assert_eq!(replaced("b\n", "B\n", "b\nx\nb\n"), "answer-not-one-match");
    assert_eq!(
        replaced("x\nx\n", "B\n", "x\nx\nx\n"),
        "answer-not-one-match"
    );
    assert_eq!(replaced("q\n", "B\n", "a\n"), "answer-not-one-match");
    assert_eq!(replaced("\n", "B\n", "a\n"), "answer-empty-search");
    assert_eq!(replaced("", "B\n", ""), "B\n");
}

#[test]
fn failed_search_shows_the_nearest_place() {
    let answer = "a.rs\n<<<<<<< SEARCH\nfn b() {\n    2\n}\n=======\n>>>>>>> REPLACE\n";
    let proposal = read_answer(EditFormat::SearchReplace, &Untrusted::new(answer), &[]).unwrap();
    let before = files(&[("a.rs", "fn a() {\n    1\n}\nfn b() {\n    3\n}\n")]);
    let Err(AnswerError::NotOneMatch {
        matches,
        nearest,
        edit,
        ..
    }) = apply(&proposal, &before)
    else {
        panic!()
    };
    assert_eq!((matches, edit), (0, 1));
    assert_eq!(nearest, "    4 | fn b() {\n    5 |     3\n    6 | }");
    let nowhere = apply(&proposal, &files(&[("a.rs", "x\n")])).unwrap_err();
    assert!(nowhere.to_string().contains("none of these lines"));
    assert_eq!(
        apply(&proposal, &BTreeMap::new()),
        Err(AnswerError::UnknownFile { path: path("a.rs") })
    );
}

#[test]
fn edits_of_one_file_build_on_each_other() {
    let answer = "a.rs\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n<<<<<<< SEARCH\nb\n=======\nc\n>>>>>>> REPLACE\n";
    assert_eq!(applied(EditFormat::SearchReplace, answer, "a\n"), "c\n");
    assert_eq!(
        applied(EditFormat::SearchReplace, answer, "a\nb\n"),
        "answer-not-one-match"
    );
}

#[test]
fn diff_applies_at_stated_lines_or_fails() {
    let diff = "diff --git a/a.rs b/a.rs\n--- a/a.rs\n+++ b/a.rs\n@@ -2,2 +2,2 @@\n-b\n+B\n c\n";
    let apply_to = |before: &str| applied(EditFormat::UnifiedDiff, diff, before);
    assert_eq!(apply_to("a\nb\nc\nd\n"), "a\nB\nc\nd\n");
    assert_eq!(apply_to("x\na\nb\nc\n"), "answer-does-not-apply");
    assert_eq!(apply_to("a\n"), "answer-does-not-apply");
    let bare = "diff --git a/a.rs b/a.rs\n--- a/a.rs\n+++ b/a.rs\n@@ -1 +1 @@\n-b\n+B\n";
    // Without context below, git would move this hunk to the end of the file.
    assert_eq!(
        applied(EditFormat::UnifiedDiff, bare, "b\nx\nb\n"),
        "answer-does-not-apply"
    );
    let unseen = Proposal::Diff(b"diff --git a/i b/i\nBinary files a/i and b/i differ\n".to_vec());
    assert_eq!(apply(&unseen, &BTreeMap::new()), Ok(BTreeMap::new()));
    let broken = Proposal::Diff(b"no diff".to_vec());
    assert_eq!(
        apply(&broken, &BTreeMap::new())
            .unwrap_err()
            .code()
            .as_str(),
        "patch-not-git-diff"
    );
    let create = Proposal::Diff(b"diff --git a/a.rs b/a.rs\nnew file mode 100644\n".to_vec());
    assert_eq!(
        apply(&create, &files(&[("a.rs", "x")]))
            .unwrap_err()
            .code()
            .as_str(),
        "answer-does-not-apply"
    );
    let delete = Proposal::Diff(
        b"diff --git a/a.rs b/a.rs\ndeleted file mode 100644\n--- a/a.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
            .to_vec(),
    );
    assert_eq!(
        apply(&delete, &files(&[("a.rs", "x\n")])),
        Ok(BTreeMap::new())
    );
    assert_eq!(
        apply(&delete, &files(&[("a.rs", "x\ny\n")]))
            .unwrap_err()
            .code()
            .as_str(),
        "answer-does-not-apply"
    );
}

#[test]
fn definitions_are_read_like_whole_files() {
    let read = |answer: &str| read(EditFormat::Definitions, answer, &["a.rs"]);
    assert_eq!(
        read("FILE: a.rs\n```rust\nfn a() {}\n```"),
        ["a.rs~fn a() {}\n"]
    );
    // Definitions of one file may stand in several blocks; the same block twice is one.
    let two = "FILE: a.rs\n```\nx\n```\nFILE: a.rs\n```\ny\n```\nFILE: a.rs\n```\nx\n```";
    assert_eq!(read(two), ["a.rs~x\n", "a.rs~y\n"]);
    assert_eq!(
        read("```rust\nx\n```\nand\n```rust\ny\n```"),
        ["answer-no-path"]
    );
    assert_eq!(read("FILE: a.rs\n```\nfn a() {"), ["answer-unclosed-fence"]);
    assert_eq!(read("FILE: ../a.rs\n```\nx\n```"), ["answer-bad-path"]);
    let blocks = "FILE: a.rs\n```\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n```";
    assert_eq!(read(blocks), ["answer-wrong-format"]);
}

#[test]
fn definitions_of_several_blocks_build_on_each_other() {
    let two =
        "FILE: a.rs\n```\nfn a() {\n    1\n}\n```\nFILE: a.rs\n```\nfn c() {\n    a()\n}\n```";
    let before = "fn a() {}\n\nfn b() {}\n";
    let after = "fn a() {\n    1\n}\n\nfn b() {}\n\nfn c() {\n    a()\n}\n";
    assert_eq!(applied(EditFormat::Definitions, two, before), after);
}

#[test]
fn file_without_syntax_tree_is_given_whole() {
    let answer = "FILE: a.rb\n```\ndef a; end\n```";
    let proposal = read_answer(EditFormat::Definitions, &Untrusted::new(answer), &[]).unwrap();
    let before = files(&[("a.rb", "def a; 1; end\ndef b; end\n")]);
    assert_eq!(
        apply(&proposal, &before).unwrap()[&path("a.rb")],
        b"def a; end\n"
    );
    assert_eq!(
        apply(&proposal, &Files::new()).unwrap()[&path("a.rb")],
        b"def a; end\n"
    );
    for (name, content, takes) in [
        ("a.rs", "fn a() {}\n", true),
        ("a.rs", "\u{feff}fn a() {}\r\n", true),
        ("a.rs", "fn a( {}\n", false),
        ("a.rb", "def a; end\n", false),
        ("a.tsx", "const a = <b />;\n", true),
        ("a.ts", "const a = <b />;\n", false),
    ] {
        assert_eq!(
            can_splice(&path(name), content.as_bytes()),
            takes,
            "{name}: {content}"
        );
    }
    assert!(!can_splice(&path("a.rs"), b"// \xe9\n"));
    let latin = BTreeMap::from([(path("a.rs"), b"// \xe9\n".to_vec())]);
    let answer = "FILE: a.rs\n```\nfn a() {}\n```";
    let proposal = read_answer(EditFormat::Definitions, &Untrusted::new(answer), &[]).unwrap();
    assert_eq!(
        apply(&proposal, &latin),
        Err(AnswerError::NotText { path: path("a.rs") })
    );
}

/// The files and the names in the findings, after [`restore_lost_definitions`].
fn kept(
    before: &[(&str, &str)],
    answer: &[(&str, &str)],
    may_drop: &[&str],
) -> (Vec<String>, Vec<String>) {
    let answer: String = answer
        .iter()
        .map(|(name, text)| format!("FILE: {name}\n```\n{text}```\n"))
        .collect();
    let proposal = read_answer(EditFormat::WholeFile, &Untrusted::new(answer), &[]).unwrap();
    let before = files(before);
    let after = apply(&proposal, &before).unwrap();
    let may_drop: Vec<String> = may_drop.iter().map(ToString::to_string).collect();
    let restored_definitions = restore_lost_definitions(&proposal, &before, after, &may_drop);
    let files = restored_definitions
        .files
        .into_values()
        .map(|bytes| String::from_utf8(bytes).unwrap())
        .collect();
    (
        files,
        restored_definitions
            .findings
            .into_iter()
            .map(|finding| finding.subject)
            .collect(),
    )
}

#[test]
fn definition_moved_within_answer_is_not_lost() {
    let before = [
        ("a.py", "def a():\n    1\n\n\ndef b():\n    2\n"),
        ("b.py", "X = 1\n"),
    ];
    let moved = [
        ("a.py", "def b():\n    2\n"),
        ("b.py", "X = 1\n\n\ndef a():\n    1\n"),
    ];
    let as_given: Vec<String> = moved.iter().map(|(_, text)| text.to_string()).collect();
    assert_eq!(kept(&before, &moved, &[]), (as_given, vec![]));
    // Where another one is lost too, only that one comes back.
    let before = [
        (
            "a.py",
            "def a():\n    1\n\n\ndef b():\n    2\n\n\ndef c():\n    3\n",
        ),
        ("b.py", "X = 1\n"),
    ];
    let (files, findings) = kept(&before, &moved, &[]);
    assert_eq!(files[0], "def b():\n    2\n\n\ndef c():\n    3\n");
    assert_eq!(findings, ["a.py"]);
}

#[test]
fn permitted_removal_is_not_restored() {
    let before = [("a.py", "def a():\n    1\n\n\ndef b():\n    2\n")];
    let answer = [("a.py", "def b():\n    3\n")];
    assert_eq!(
        kept(&before, &answer, &["a"]),
        (vec!["def b():\n    3\n".to_owned()], vec![])
    );
    assert_eq!(
        kept(&before, &answer, &[]).0,
        ["def a():\n    1\n\n\ndef b():\n    3\n"]
    );
}

#[test]
fn hostile_definitions_take_bounded_time() {
    let functions = |count: usize, body: &str| -> String {
        (0..count)
            .map(|number| format!("fn f{number}() {{ {body} }}\n"))
            .collect()
    };
    let splice = |before: &str, content: String| {
        let kind = EditKind::Definitions { content };
        let proposal = Proposal::Edits(vec![Edit {
            path: path("a.rs"),
            kind,
        }]);
        apply(&proposal, &files(&[("a.rs", before)]))
            .map(|files| files.into_values().next().unwrap_or_default())
    };
    let many = functions(5_000, "1");
    assert_eq!(
        splice(&many, functions(5_000, "2")).unwrap(),
        functions(5_000, "2").into_bytes()
    );
    let error = splice("fn a() {}\n", many.clone()).unwrap_err();
    assert_eq!(error, AnswerError::TooManyEdits { limit: 500 });
    let line = many.replace('\n', " ");
    assert_eq!(
        splice(&line, functions(5_000, "2").replace('\n', " "))
            .unwrap()
            .len(),
        line.len()
    );
    let imports: String = (0..5_000)
        .map(|number| format!("use a{number}::b;\n"))
        .collect();
    assert_eq!(
        splice("fn a() {}\n", imports.clone()).unwrap_err(),
        AnswerError::TooManyEdits { limit: 500 }
    );
    assert_eq!(
        splice(&imports, imports.clone()).unwrap(),
        imports.into_bytes()
    );
    let impls: String = (0..5_000)
        .map(|number| format!("impl A<B{number}> {{}}\n"))
        .collect();
    let error = splice(&impls, "impl A {\n    fn f() {}\n}\n".to_owned()).unwrap_err();
    assert_eq!(error.code(), Code::new("answer-same-name"));
    let repeated = "impl A {}\n".repeat(5_000);
    let added = splice(&repeated, "impl A {\n    fn f() {}\n}\n".to_owned()).unwrap();
    assert_eq!(added.len() - repeated.len(), "\n    fn f() {}\n".len());
    let deep = "mod a {".repeat(10_000) + &"}".repeat(10_000);
    assert_eq!(
        splice(&deep, deep.clone()).unwrap(),
        deep.clone().into_bytes()
    );
    for piece in [
        "(", "fn a(", "\"", "mod a {", "impl<", "#[", "/*", "use a::{", "r#\"",
    ] {
        let text = piece.repeat(100_000 / piece.len());
        assert!(splice("fn a() {}\n", text).is_err(), "{piece}");
    }
}

#[test]
fn hostile_answers_are_read_in_linear_time() {
    let same = format!(
        "a.rs\n<<<<<<< SEARCH\n{}b\n=======\n>>>>>>> REPLACE\n",
        "a\n".repeat(400_000)
    );
    assert_eq!(
        applied(EditFormat::SearchReplace, &same, &"a\n".repeat(500_000)),
        "answer-not-one-match"
    );
    let elided = format!(
        "FILE: a.rs\n```\n{}\n```",
        "// ... existing\n".repeat(100_000)
    );
    let before = format!("{}// ... existing\n", "x\n".repeat(500_000));
    assert_eq!(
        applied(EditFormat::WholeFile, &elided, &before)
            .lines()
            .count(),
        100_001
    );
    let fences = "```\n".repeat(500_000);
    assert_eq!(whole(&fences, &["a.rs"]), ["answer-no-path"]);
}

/// The content of a file after definitions of it are put in, block by block; or the code of the error.
fn in_blocks(name: &str, before: &str, blocks: &[String]) -> String {
    let edit = |content: &String| Edit {
        path: path(name),
        kind: EditKind::Definitions {
            content: content.clone(),
        },
    };
    let proposal = Proposal::Edits(blocks.iter().map(edit).collect());
    match apply(&proposal, &files(&[(name, before)])) {
        Ok(after) => String::from_utf8(after[&path(name)].clone()).unwrap(),
        Err(error) => error.code().to_string(),
    }
}

#[test]
fn similar_leading_characters_are_not_cut() {
    let before = "function f() {\n  return 1;\n}\n";
    for (blank, mark) in [
        ('\u{a0}', '\u{a9}'),
        ('\u{3000}', '\u{3042}'),
        ('\u{2003}', '\u{2014}'),
    ] {
        let block = format!("{blank}function f() {{\n/*\n{mark} x\n*/\n}}\n");
        let after = in_blocks("a.js", before, &[block]);
        assert!(after.contains(&format!("{mark} x")), "{after}");
    }
}

#[test]
fn too_many_blocks_are_refused() {
    let answer = |blocks: u64| -> String {
        (0..blocks)
            .map(|number| format!("FILE: f{number}.rs\n```\nx\n```\n"))
            .collect()
    };
    for format in [EditFormat::WholeFile, EditFormat::Definitions] {
        assert_eq!(read(format, &answer(501), &[]), ["answer-too-many-edits"]);
        assert_eq!(read(format, &answer(500), &[]).len(), 500);
    }
}

#[test]
fn many_blocks_of_file_are_spliced_as_one() {
    let form = |number: u64, value: u64| format!("fn f{number}() -> u64 {{\n    {value}\n}}\n");
    let before: String = (0..4000).map(|number| form(number, 1) + "\n").collect();
    let blocks: Vec<String> = (0..500).map(|number| form(number, 2)).collect();
    let expected: String = (0..4000)
        .map(|number| form(number, if number < 500 { 2 } else { 1 }) + "\n")
        .collect();
    assert_eq!(in_blocks("a.rs", &before, &blocks), expected);
    // A few may each be written as they like; among many a block that is set in would end up in the one above.
    let methods = |count: u64| -> Vec<String> {
        (0..count)
            .map(|number| format!("    def m{number}(self):\n        return 2\n"))
            .collect()
    };
    let class: String = (0..9)
        .map(|number| format!("    def m{number}(self):\n        return 1\n"))
        .collect();
    let class = format!("class A:\n{class}");
    assert_eq!(
        in_blocks("a.py", &class, &methods(8))
            .matches("return 2")
            .count(),
        8
    );
    assert_eq!(
        in_blocks("a.py", &class, &methods(9)),
        "answer-too-many-edits"
    );
}

#[test]
fn no_block_of_unparsed_file_is_lost() {
    let blocks = ["one\n".to_owned(), "two\n".to_owned()];
    assert_eq!(in_blocks("a.txt", "zero\n", &blocks), "answer-two-answers");
    assert_eq!(in_blocks("a.txt", "", &blocks), "answer-two-answers");
    let functions = [
        "def a():\n    pass\n".to_owned(),
        "def b():\n    pass\n".to_owned(),
    ];
    let text = in_blocks("a.py", "", &functions);
    assert!(
        text.contains("def a()") && text.contains("def b()"),
        "{text}"
    );
}
