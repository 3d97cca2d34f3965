//! Requests of every kind on a small work tree.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests make work trees of their own"
)]

use std::fs;
use std::os::unix::fs::symlink;

use crucible_pack::{PackVersion, Source};

use super::*;
use crate::gatekeeper::tests::record;

struct Room {
    dir: tempfile::TempDir,
    tracked: Vec<(RepoPath, u64)>,
    settings: RunSettings,
    shown: ContextPack,
}

impl Room {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut tracked = Vec::new();
        for (path, text) in files {
            let at = dir.path().join(path);
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            fs::write(at, text).unwrap();
            tracked.push((path.parse().unwrap(), text.len() as u64));
        }
        let mut settings = record(dir.path(), &[]).settings;
        settings.max_total_bytes = 9_000;
        let context_pack = ContextPack {
            schema_version: PackVersion::V1,
            goal: "g".into(),
            repo_slug: "r".into(),
            summary: String::new(),
            files: Vec::new(),
            omitted: Vec::new(),
        };
        Self {
            dir,
            tracked,
            settings,
            shown: context_pack,
        }
    }

    fn serve(&self, answer: &str) -> FilesResponse {
        let text = "Status: SIGNED\nScope-Allow: src\nScope-Deny: src/locked.py\nNames:\nGates: lite\nStop: verified\n\
                    Budgets: x\nBehaviors:\nResults:\n";
        let shelf = LibrarianContext {
            top: self.dir.path(),
            slug: "r",
            goal: "mend the parser",
            settings: &self.settings,
            tracked: &self.tracked,
            shown: &self.shown,
            plan: &Plan::parse(text).unwrap(),
        };
        shelf.serve(&MoreFiles::read(answer).unwrap()).unwrap()
    }

    /// What came of each line, and the files that were added.
    fn served_requests(&self, answer: &str) -> (Vec<String>, Vec<String>) {
        let served = self.serve(answer);
        let findings = served
            .findings
            .iter()
            .map(|finding| format!("{}: {}", finding.subject, finding.hint));
        (
            findings.collect(),
            served
                .pack
                .files
                .iter()
                .map(|file| file.path.clone())
                .collect(),
        )
    }
}

#[test]
fn named_files_are_shown_and_scope_stays() {
    let fixture = Room::new(&[
        ("src/a.py", "a = 1\n"),
        ("src/locked.py", "b\n"),
        ("lib/c.py", "c = 1\n"),
    ]);
    let (findings, files) =
        fixture.served_requests("NEED: src/a.py\nNEED: c.py\nNEED: src/locked.py");
    assert_eq!(files, ["src/a.py", "lib/c.py", "src/locked.py"]);
    assert_eq!(
        findings,
        [
            "NEED: src/a.py: src/a.py is shown, and you may change it",
            "NEED: c.py: lib/c.py is shown, for reading only",
            "NEED: src/locked.py: src/locked.py is shown, for reading only",
        ]
    );
}

#[test]
fn requested_files_obey_pack_rules() {
    let token = crucible_testkit::made_up_token();
    let mut fixture = Room::new(&[
        (".env", "PASSWORD=1\n"),
        ("src/token.py", &format!("T = \"{token}\"\n")),
        ("node_modules/x/a.js", "a\n"),
        ("a/same.py", "a\n"),
        ("b/same.py", "b\n"),
        ("src/swapped.py", "a\n"),
    ]);
    fs::write(fixture.dir.path().join("untracked.py"), "private\n").unwrap();
    fs::remove_file(fixture.dir.path().join("src/swapped.py")).unwrap();
    symlink("/etc/passwd", fixture.dir.path().join("src/swapped.py")).unwrap();
    fixture.settings.max_total_bytes = 90_000;
    for (question, why) in [
        (".env", ".env may not be shown"),
        ("src/token.py", "src/token.py may not be shown"),
        (
            "node_modules/x/a.js",
            "node_modules/x/a.js may not be shown",
        ),
        ("src/swapped.py", "src/swapped.py may not be shown"),
        ("untracked.py", "git tracks no regular file of this name"),
        (
            "same.py",
            "several files have this name; give the whole path",
        ),
        ("/etc/passwd", "this is not a path inside the repository"),
        ("../outside.py", "this is not a path inside the repository"),
        (".git/config", "this is not a path inside the repository"),
        ("src", "git tracks no regular file of this name"),
    ] {
        let (findings, files) = fixture.served_requests(&format!("NEED: {question}"));
        assert!(
            files.is_empty() && findings.len() == 1,
            "{question}: {findings:?} {files:?}"
        );
        assert_eq!(findings[0], format!("NEED: {question}: {why}"));
    }
    let (findings, files) =
        fixture.served_requests(&format!("NEED: {token}\nSEARCH: PASSWORD private {token}"));
    assert!(
        files.is_empty() && !findings.join("\n").contains(&token),
        "{findings:?} {files:?}"
    );
}

#[test]
fn bytes_are_shared_and_large_files_are_excerpts() {
    let define = |at: usize| format!("def f{at}(value):\n    return value + {at}\n\n\n");
    let large: String = (0..2_000).map(define).collect();
    let fixture = Room::new(&[
        ("src/a.py", &large),
        ("src/b.py", &large),
        ("src/parser.py", &large),
    ]);
    let served = fixture
        .serve("NEED: src/a.py\nNEED: src/b.py:3-4\nSEARCH: the parser f1999\nNEED: src/b.py:1-2");
    let bytes: usize = served
        .pack
        .files
        .iter()
        .map(|file| file.content.len())
        .sum();
    assert!(bytes <= 3_000, "{bytes}");
    assert!(
        served
            .pack
            .files
            .iter()
            .all(|file| !file.ranges.is_empty() && !file.content.is_empty())
    );
    let lines = served
        .pack
        .files
        .iter()
        .find(|file| file.path == "src/b.py")
        .unwrap();
    assert!(
        lines
            .content
            .starts_with("def f0(value):\n    return value + 0\n\n\n"),
        "{}",
        lines.content
    );
    // One line that is more than may be added is refused whole.
    let long = "x".repeat(5_000);
    let fixture = Room::new(&[("src/long.py", &format!("{long}\n{long}\n"))]);
    let (findings, files) = fixture.served_requests("NEED: src/long.py:2-2");
    assert!(
        files.is_empty() && findings[0].ends_with("is larger than what is left for more files"),
        "{findings:?}"
    );
}

#[test]
fn shown_lines_stay_when_excerpt_grows() {
    let text: String = (1..=400).map(|at| format!("line {at}\n")).collect();
    let mut fixture = Room::new(&[("src/a.txt", &text), ("src/b.txt", "short\n")]);
    let first = fixture.serve("NEED: src/a.txt:1-3\nNEED: src/b.txt").pack;
    fixture.shown = merge_packs(fixture.shown.clone(), first);
    let second = fixture.serve("NEED: src/a.txt:300-301\nNEED: src/b.txt");
    assert_eq!(second.findings[1].hint, "it is shown already");
    let both = merge_packs(fixture.shown.clone(), second.pack);
    let shown: Vec<String> = both
        .files
        .iter()
        .map(|file| file.readable_text().into_owned())
        .collect();
    let lines = "[lines 1-3]\nline 1\nline 2\nline 3\n[lines 300-301]\nline 300\nline 301\n";
    assert_eq!(shown, [lines, "short\n"]);
}

#[test]
fn searches_find_the_best_that_is_not_shown() {
    let files: Vec<(String, String)> = (0..40)
        .map(|at| {
            (
                format!("src/m{at}.py"),
                format!("def helper{at}():\n    return {at}\n"),
            )
        })
        .chain([(
            "src/dates.py".to_owned(),
            "def parse_date(text):\n    return text\n".to_owned(),
        )])
        .collect();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    let mut fixture = Room::new(&files);
    let (findings, found) = fixture.served_requests("SEARCH: parse_date");
    assert_eq!(
        (found.as_slice(), findings.len()),
        (&["src/dates.py".to_owned()][..], 1),
        "{findings:?}"
    );
    fixture.shown = fixture.serve("SEARCH: parse_date").pack;
    let (findings, found) = fixture.served_requests("SEARCH: parse_date\nSEARCH: zebra\nSEARCH:");
    assert!(
        found.is_empty() && findings.len() == 3,
        "{findings:?} {found:?}"
    );
    assert!(
        findings
            .iter()
            .all(|line| line.ends_with("shares anything with these words")),
        "{findings:?}"
    );
    // The same request gives the same bytes.
    let bytes = |fixture: &Room| {
        fixture
            .serve("SEARCH: helper7 helper8\nNEED: m3.py")
            .pack
            .to_bytes()
            .unwrap()
    };
    assert_eq!(bytes(&fixture), bytes(&fixture));
}

#[test]
fn a_request_of_many_files_adds_few() {
    let files: Vec<(String, String)> = (0..40)
        .map(|at| (format!("src/parser{at}.py"), "parser\n".to_owned()))
        .collect();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    let fixture = Room::new(&files);
    let search =
        "SEARCH: parser1\nSEARCH: parser2\nSEARCH: parser3\nSEARCH: parser4\nSEARCH: parser5\n";
    let (findings, found) =
        fixture.served_requests(&format!("{search}{}", "NEED: x\n".repeat(5_000)));
    assert!(found.len() as u64 <= MAX_FILES, "{found:?}");
    assert_eq!(
        findings.last().unwrap(),
        "further lines: a request has at most 5 lines; 5000 were not read"
    );
}

#[test]
fn requests_are_offered_only_with_more_files() {
    let fixture = Room::new(&[]);
    let paths = |paths: &[&str]| -> Vec<RepoPath> {
        paths.iter().map(|path| path.parse().unwrap()).collect()
    };
    let left = |names: &[&str]| has_omitted_files(&fixture.shown, &paths(names));
    assert!(left(&["src/a.py"]) && left(&["README.md"]));
    assert!(
        !left(&[])
            && !left(&[
                "Cargo.lock",
                ".gitignore",
                "LICENSE",
                ".env",
                "node_modules/a.js"
            ])
    );
    let mut pack = fixture.shown.clone();
    let file = |ranges| PackedFile {
        path: "src/a.py".into(),
        why: "requested".into(),
        content: "a\n".into(),
        truncated: false,
        ranges,
    };
    pack.files = vec![file(Vec::new())];
    assert!(!has_omitted_files(&pack, &paths(&["src/a.py"])));
    pack.files = vec![file(vec![LineRange { start: 1, end: 1 }])];
    assert!(has_omitted_files(&pack, &[]));
    assert!(
        WorkTree::new(fixture.dir.path())
            .is_secret(&".env".parse().unwrap(), b"")
            .is_some()
    );
}
