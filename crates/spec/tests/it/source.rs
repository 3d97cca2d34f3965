//! The sources of an idea, and the project files that are found: real directories, and the real `gh` with
//! a fake GitHub.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper of a test fails the test that calls it"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests lay out the files that they are about"
)]

use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crucible_host::env::Environment;
use crucible_model::{ByteLimit, Untrusted};
use crucible_repo::{Gh, GhDeadlines, GhError};
use crucible_sandbox::Sandbox;
use crucible_spec::{
    EntryKind, FileSelectors, Idea, IdeaBuilder, IssueRef, OmissionReason, PacketEntry,
    PacketLimits, Selection, SpecError, build_packet_with, gather_packet, select_files,
};
use crucible_testkit::{FakeGitHub, FakeRepo, Misbehaviour, Times, made_up_token};
use proptest::prelude::*;
use serde_json::json;

mod issue;

const LIMIT: ByteLimit = ByteLimit(65_536);

fn put(root: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    let path = root.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        put(dir.path(), name, text);
    }
    dir
}

fn make_pipe(path: &Path) {
    assert!(
        std::process::Command::new("mkfifo")
            .arg(path)
            .status()
            .unwrap()
            .success()
    );
}

fn selectors(root: &Path, named: &[&str], include: &[&str], exclude: &[&str]) -> FileSelectors {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    FileSelectors {
        root: root.to_owned(),
        named: owned(named),
        include: owned(include),
        exclude: owned(exclude),
    }
}

fn select(
    root: &Path,
    named: &[&str],
    include: &[&str],
    exclude: &[&str],
) -> Result<Selection, SpecError> {
    select_files(
        &selectors(root, named, include, exclude),
        PacketLimits::default(),
    )
}

/// The names found by selectors alone.
fn found(root: &Path, include: &[&str]) -> Vec<String> {
    select(root, &[], include, &[])
        .unwrap()
        .entries
        .into_iter()
        .map(|entry| entry.name)
        .collect()
}

/// The names found by naming them.
fn found_by_name(root: &Path, named: &[&str]) -> Vec<String> {
    select(root, named, &[], &[])
        .unwrap()
        .entries
        .into_iter()
        .map(|entry| entry.name)
        .collect()
}

fn names(selection: &Selection) -> Vec<&str> {
    selection
        .entries
        .iter()
        .map(|entry| entry.name.as_str())
        .collect()
}

fn why(result: Result<Selection, SpecError>) -> String {
    match result {
        Err(error @ SpecError::Source { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn selected_files_follow_pattern_order() {
    let dir = project(&[
        ("README.md", "r\r\n"),
        ("src/b.rs", "b"),
        ("src/a.rs", "a"),
        ("src/deep/c.rs", "c"),
        ("docs/x.md", "x"),
        ("docs/y/z.md", "z"),
    ]);
    let root = dir.path();
    let all = select(
        root,
        &[],
        &["src/*.rs", "README.md", "docs", "**/*.rs", "none.md"],
        &[],
    )
    .unwrap();
    let order = [
        "src/a.rs",
        "src/b.rs",
        "README.md",
        "docs/x.md",
        "docs/y/z.md",
        "src/deep/c.rs",
    ];
    assert_eq!(names(&all), order);
    assert!(
        all.entries
            .iter()
            .all(|entry| entry.kind == EntryKind::Selected)
    );
    assert_eq!(
        all.entries[2].content.as_str(),
        "r\r\n",
        "line ends are kept"
    );
    assert!(all.passed_over.is_empty() && all.left_out.is_empty());
    // Named files come first, once.
    let both = select(
        root,
        &["./docs/", "src/[ab].rs"],
        &["src/a.rs", "README.md"],
        &[],
    )
    .unwrap();
    assert_eq!(
        names(&both),
        [
            "docs/x.md",
            "docs/y/z.md",
            "src/a.rs",
            "src/b.rs",
            "README.md"
        ]
    );
    assert_eq!(
        (both.entries[3].kind, both.entries[4].kind),
        (EntryKind::Named, EntryKind::Selected)
    );
    assert_eq!(found(root, &["."]).len(), 6);
}

#[test]
fn glob_like_file_name_is_literal() {
    let dir = project(&[
        ("pages/[id].tsx", "page"),
        ("pages/i.tsx", "other"),
        ("a{b}/c*.md", "c"),
        ("a{b}/cd.md", "d"),
    ]);
    assert_eq!(
        found_by_name(dir.path(), &["pages/[id].tsx"]),
        ["pages/[id].tsx"]
    );
    assert_eq!(found(dir.path(), &["a{b}/c*.md"]), ["a{b}/c*.md"]);
    assert_eq!(found(dir.path(), &["a{b}"]), ["a{b}/c*.md", "a{b}/cd.md"]);
    assert_eq!(found(dir.path(), &["pages/?.tsx"]), ["pages/i.tsx"]);
}

#[test]
fn excluded_file_is_never_shown() {
    let dir = project(&[
        ("a.md", "a"),
        ("sub/deep/b.lock", "b"),
        ("vendor/x/c.md", "c"),
        ("sub/d.md", "d"),
    ]);
    let exclude = ["*.lock", "vendor/", "sub/d.*"];
    assert_eq!(
        names(&select(dir.path(), &[], &["**"], &exclude).unwrap()),
        ["a.md"]
    );
    assert_eq!(
        names(&select(dir.path(), &["**"], &["sub/d.md"], &exclude).unwrap()),
        ["a.md"]
    );
    for named in ["sub/deep/b.lock", "vendor/x/c.md", "sub/d.md"] {
        let why = why(select(dir.path(), &[named], &[], &exclude));
        assert!(why.contains("spec.exclude"), "{why}");
    }
}

#[test]
fn git_and_crucible_files_are_never_shown() {
    let dir = project(&[
        (".git/config", "g"),
        (".crucible/specs/x/artifacts/10-design.md", "d"),
        ("sub/.crucible/config.toml", "c"),
        ("a.md", "a"),
        (".gitignore", "build/\n"),
        ("build/out.md", "o"),
    ]);
    let root = dir.path();
    assert_eq!(
        found(root, &["**", ".crucible/**", "sub"]),
        [".gitignore", "a.md"]
    );
    for named in [".git/config", ".git", ".GIT/config", ".git/**"] {
        assert!(
            why(select(root, &[named], &[], &[])).contains("git's own"),
            "{named}"
        );
        assert!(
            why(select(root, &[], &[named], &[])).contains("git's own"),
            "{named}"
        );
    }
    let design = ".crucible/specs/x/artifacts/10-design.md";
    for named in [
        design,
        ".crucible",
        ".crucible/**",
        "sub/.Crucible/config.toml",
    ] {
        assert!(select(root, &[named], &[], &[]).is_err(), "{named}");
    }
    // Naming a directory finds files that git ignores.
    assert_eq!(found_by_name(root, &["build/*"]), ["build/out.md"]);
}

#[test]
fn no_link_leads_out_of_the_project() {
    let outside = project(&[("notes.txt", "outside"), ("d/x.md", "outside")]);
    let dir = project(&[
        ("docs/real.md", "real"),
        (".env", "A=b"),
        (".crucible/c.md", "c"),
    ]);
    let root = dir.path();
    symlink(outside.path().join("notes.txt"), root.join("away.md")).unwrap();
    symlink(outside.path().join("d"), root.join("awaydir")).unwrap();
    symlink("docs/real.md", root.join("README.md")).unwrap();
    symlink(".env", root.join("plain.md")).unwrap();
    symlink(".crucible/c.md", root.join("own.md")).unwrap();
    symlink("loop.md", root.join("loop.md")).unwrap();
    let include = [
        "away.md",
        "awaydir/x.md",
        "awaydir",
        "awaydir/**",
        "README.md",
        "plain.md",
        "own.md",
        "loop.md",
        "**/*.md",
    ];
    let all = select(root, &[], &include, &[]).unwrap();
    assert_eq!(
        names(&all),
        ["README.md", "docs/real.md"],
        "a link inside of the project is followed"
    );
    let reason = |name: &str| {
        all.passed_over
            .iter()
            .find(|file| file.name == name)
            .map(|file| file.why.clone())
    };
    for name in ["away.md", "awaydir/x.md", "awaydir", "own.md"] {
        assert_eq!(reason(name), Some(OmissionReason::OutsideProject), "{name}");
    }
    assert_eq!(reason("plain.md"), Some(OmissionReason::SecretName));
    assert!(matches!(
        reason("loop.md"),
        Some(OmissionReason::Unreadable(_))
    ));
    for named in [
        "away.md",
        "awaydir/x.md",
        "own.md",
        "loop.md",
        "awaydir/**",
        "awaydir",
    ] {
        let error = select(root, &[named], &[], &[]).unwrap_err();
        assert!(
            matches!(error, SpecError::Source { .. }),
            "{named}: {error}"
        );
    }
    let error = select(root, &["plain.md"], &[], &[]).unwrap_err();
    assert!(
        matches!(&error, SpecError::SecretInPacket { rule, .. } if rule == "secret-file"),
        "{error}"
    );
}

#[test]
fn non_text_is_skipped_or_refused() {
    let dir = project(&[
        ("a.md", "a"),
        ("empty.md", ""),
        ("nul.md", "a\0b"),
        ("config/.env.local", "A=b"),
    ]);
    let root = dir.path();
    put(root, "latin.md", b"caf\xe9");
    make_pipe(&root.join("pipe.md"));
    let all = select(root, &[], &["**", "pipe.md"], &[]).unwrap();
    assert_eq!(names(&all), ["a.md"]);
    let passed: Vec<(&str, &OmissionReason)> = all
        .passed_over
        .iter()
        .map(|file| (file.name.as_str(), &file.why))
        .collect();
    assert_eq!(
        passed,
        [
            ("config/.env.local", &OmissionReason::SecretName),
            ("empty.md", &OmissionReason::Empty),
            ("latin.md", &OmissionReason::NotText),
            ("nul.md", &OmissionReason::NotText),
            ("pipe.md", &OmissionReason::NotAFile),
        ]
    );
    let message = all.passed_over[0].to_string();
    assert_eq!(
        message,
        "config/.env.local is not shown: its name suggests that it contains secrets"
    );
    for named in ["latin.md", "nul.md", "pipe.md"] {
        let why = why(select(root, &[named], &[], &[]));
        assert!(why.contains(named) && !why.contains("not shown"), "{why}");
    }
    let error = select(root, &["config/.env.local"], &[], &[]).unwrap_err();
    assert!(matches!(error, SpecError::SecretInPacket { .. }), "{error}");
    // A named empty file is shown: the user knows that it is empty.
    assert_eq!(found_by_name(root, &["empty.md"]), ["empty.md"]);
}

#[test]
fn missing_named_file_suggests_similar() {
    let dir = project(&[
        ("src/export.rs", "e"),
        ("src/import.rs", "i"),
        ("src/.env", "x"),
        ("Readme.md", "r"),
    ]);
    let root = dir.path();
    let near = |named: &str| why(select(root, &[named], &[], &[]));
    for (named, message) in [
        ("src/exprot.rs", "src/ has export.rs"),
        ("README.md", "the project has Readme.md;"),
        ("nowhere/at/all.rs", "the project holds Readme.md, src;"),
        ("src/zzzz", "src/ holds export.rs, import.rs;"),
        ("src/export.rs/x", "no such file"),
        ("lib/**/*.rs", "matches no file"),
    ] {
        let near = near(named);
        assert!(
            near.contains(message) && near.contains(named) && !near.contains(".env"),
            "{near}"
        );
    }
    // A selector may match nothing.
    assert_eq!(
        select(root, &[], &["none.md", "lib/**/*.rs", "nowhere/x"], &[]).unwrap(),
        Selection::default()
    );
}

#[test]
fn a_pattern_that_is_none_names_itself() {
    let dir = project(&[("a.md", "a")]);
    let long = "a/".repeat(600);
    let deep = format!("{}a{}", "{".repeat(400), "}".repeat(400));
    let bad = [
        &deep,
        "a[",
        "{a",
        "../x",
        "/etc/passwd",
        "a/../*.md",
        "",
        "\\",
        "src/{a,{b}",
        &long,
        "../**",
    ];
    for bad in bad {
        let begin: String = format!("{bad:?}").chars().take(4).collect();
        for error in [
            why(select(dir.path(), &[bad], &[], &[])),
            why(select(dir.path(), &[], &[bad], &[])),
        ] {
            assert!(error.starts_with(&begin), "{bad:?}: {error}");
        }
    }
    for bad in ["a[", "{a", "", long.as_str()] {
        let begin: String = format!("{bad:?}").chars().take(4).collect();
        let error = why(select(dir.path(), &["a.md"], &[], &[bad]));
        assert!(error.starts_with(&begin), "{bad:?}: {error}");
    }
}

#[test]
fn files_are_read_only_within_remaining_limit() {
    let dir = project(&[
        ("a.md", "12345"),
        ("b.md", "123"),
        ("c.md", "1\n2\n3\n4\n"),
        ("d.md", "12"),
    ]);
    let root = dir.path();
    // Larger than any memory: only its size is read.
    std::fs::File::create(root.join("huge.md"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let room = |max_bytes, max_lines| PacketLimits {
        max_bytes,
        max_lines,
    };
    let some = select_files(&selectors(root, &[], &["*.md"], &[]), room(10, 3)).unwrap();
    assert_eq!(names(&some), ["a.md", "b.md", "d.md"]);
    let left: Vec<(&str, u64, bool)> = some
        .left_out
        .iter()
        .map(|row| (row.name.as_str(), row.bytes, row.sha256.is_some()))
        .collect();
    assert_eq!(left, [("c.md", 8, false), ("huge.md", 1 << 40, false)]);
    // One fits by its bytes, but not by its lines.
    let some = select_files(&selectors(root, &[], &["c.md", "d.md"], &[]), room(100, 3)).unwrap();
    assert_eq!((names(&some), some.left_out[0].lines), (vec!["d.md"], 4));
    // For any number of files that do not fit, at most four times the room is read.
    let lines = project(&[]);
    for number in 0..6 {
        put(lines.path(), &format!("{number}.md"), "\n".repeat(100));
    }
    let none = select_files(&selectors(lines.path(), &[], &["*.md"], &[]), room(100, 3)).unwrap();
    let were_read = none
        .left_out
        .iter()
        .filter(|row| row.sha256.is_some())
        .count();
    assert_eq!(
        (none.entries.len(), none.left_out.len(), were_read),
        (0, 6, 4)
    );
    // Named files must fit.
    let all = selectors(root, &["huge.md", "a.md"], &["b.md"], &[]);
    match gather_packet(Vec::new(), &all, room(100, 100)) {
        Err(SpecError::PacketOverLimit { manifest }) => {
            assert_eq!(manifest.bytes, 5 + (1 << 40));
            assert_eq!(
                (
                    manifest.left_out[0].name.as_str(),
                    manifest.left_out[0].bytes
                ),
                ("b.md", 3)
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn first_pattern_has_priority_beside_an_idea() {
    let dir = project(&[("z.md", "12345"), ("a.md", "12345")]);
    let content = Untrusted::new("idea");
    let idea = PacketEntry {
        kind: EntryKind::Idea,
        name: "idea".to_owned(),
        content,
    };
    let limits = PacketLimits {
        max_bytes: 10,
        max_lines: 9,
    };
    let selectors = selectors(dir.path(), &[], &["z.md", "a.md"], &[]);
    let packet = gather_packet(vec![idea], &selectors, limits).unwrap();
    let lines: Vec<&str> = packet.files().map(|file| file.name.as_str()).collect();
    assert_eq!(lines, ["z.md"]);
    assert_eq!(packet.manifest.receipt().unwrap().left_out, 1);
}

#[test]
fn selectors_that_find_a_whole_disk_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..10_001 {
        std::fs::write(dir.path().join(format!("{number}.md")), "").unwrap();
    }
    let why = why(select(dir.path(), &[], &["*.md"], &[]));
    assert!(why.contains("more than 10000 files"), "{why}");
}

mod properties {
    use super::*;

    proptest! {
        #[test]
        fn whatever_the_patterns_nothing_outside_is_shown(
            named in prop::collection::vec("[./a-c*?{}\\[\\]\\\\,!-]{0,12}", 0..3),
            include in prop::collection::vec("[./a-c*?{}\\[\\]\\\\,!-]{0,12}", 0..3),
        ) {
            let outer = project(&[
                ("outside.md", "OUTSIDE"),
                ("in/a/b.md", "inside"),
                ("in/.git/x", "GIT"),
                ("in/.crucible/c", "OWN"),
                ("in/c", "inside"),
            ]);
            symlink("../outside.md", outer.path().join("in/b")).unwrap();
            symlink("..", outer.path().join("in/a/a")).unwrap();
            symlink("../..", outer.path().join("in/a/c")).unwrap();
            let root = outer.path().join("in");
            let named: Vec<&str> = named.iter().map(String::as_str).collect();
            let include: Vec<&str> = include.iter().map(String::as_str).collect();
            for (named, include) in [(&named, &Vec::new()), (&Vec::new(), &include)] {
                if let Ok(some) = select(&root, named, include, &[]) {
                    prop_assert!(some.entries.iter().all(|entry| entry.content.as_str() == "inside"));
                }
            }
        }
    }
}

fn idea_of(sources: &[(&str, &[u8])]) -> Result<Idea, SpecError> {
    let mut builder = IdeaBuilder::new(LIMIT);
    for (name, bytes) in sources {
        builder.text(name, bytes.to_vec())?;
    }
    builder.finish()
}

fn path_idea(path: &Path, limit: ByteLimit) -> Result<Idea, SpecError> {
    let mut builder = IdeaBuilder::new(limit);
    builder.path("wishes", path)?;
    builder.finish()
}

#[test]
fn several_sources_get_headings() {
    let text = "users can export their data\r\n\r\n";
    assert_eq!(
        idea_of(&[("standard input", text.as_bytes())])
            .unwrap()
            .text
            .as_str(),
        text
    );
    let several = idea_of(&[("b.md", b"second"), ("empty", b" \n"), ("a.md", b"first\n")]).unwrap();
    assert_eq!(
        several.text.as_str(),
        "# From b.md\n\nsecond\n\n# From a.md\n\nfirst\n"
    );
    let hostile = idea_of(&[("a\n# From x\u{202e}", b"1"), ("b", b"2")]).unwrap();
    assert_eq!(
        hostile.text.as_str().matches("\n# From ").count(),
        1,
        "a name stays on its line"
    );
}

#[test]
fn blank_idea_is_refused() {
    let unseen = "\u{feff}\u{200b}".as_bytes();
    let nothing: [&[(&str, &[u8])]; 3] = [&[], &[("a", b"")], &[("a", b" \r\n\t"), ("b", unseen)]];
    for sources in nothing {
        assert!(matches!(idea_of(sources), Err(SpecError::EmptyIdea)));
    }
}

#[test]
fn invalid_idea_is_refused_oversized_has_sizes() {
    for (bytes, why) in [
        (&b"caf\xe9"[..], "not UTF-8"),
        (b"a\0b", "a NUL byte"),
        (b"\xff\xfea\0", "not UTF-8"),
    ] {
        let error = idea_of(&[("notes.md", bytes)]).unwrap_err().to_string();
        assert!(
            error.starts_with("notes.md: ") && error.contains(why),
            "{error}"
        );
    }
    let most = vec![b'a'; 65_536];
    let more = vec![b'a'; 65_537];
    assert_eq!(
        idea_of(&[("a", &most)]).unwrap().text.as_str().len(),
        65_536
    );
    assert_eq!(
        sizes(&idea_of(&[("a", &more)]).unwrap()),
        [("a", 65_537, false)]
    );
    let both = idea_of(&[("b", b"x"), ("a", &most), ("c", b"yz")]).unwrap();
    assert_eq!(
        sizes(&both),
        [("b", 1, true), ("c", 2, true), ("a", 65_536, false)]
    );
    // The headings count, too.
    let half = vec![b'a'; 32_768];
    assert_eq!(
        sizes(&idea_of(&[("a", &half), ("b", &half)]).unwrap()),
        [("idea", 65_559, false)]
    );
    // The last character may be cut where reading stops.
    let cut = format!("{}é", "a".repeat(65_536)).into_bytes();
    assert_eq!(
        sizes(&idea_of(&[("a", &cut[..65_537])]).unwrap()),
        [("a", 65_537, false)]
    );
    assert!(
        idea_of(&[("a", &[0xff; 70_000])])
            .unwrap_err()
            .to_string()
            .contains("UTF-8")
    );
    // No packet is built with it, and its size is listed.
    let unread = both.unread;
    let selection = Selection {
        unread,
        ..Selection::default()
    };
    match build_packet_with(Vec::new(), selection, PacketLimits::default()) {
        Err(SpecError::PacketOverLimit { manifest }) => {
            assert_eq!((manifest.bytes, manifest.entries.len()), (65_539, 3));
            assert!(manifest.to_json().is_ok());
        }
        other => panic!("{other:?}"),
    }
}

/// The sources of an idea that is too large: name, bytes, and whether it was read.
fn sizes(idea: &Idea) -> Vec<(&str, u64, bool)> {
    assert_eq!(idea.text.as_str(), "");
    idea.unread
        .iter()
        .map(|row| (row.name.as_str(), row.bytes, row.sha256.is_some()))
        .collect()
}

#[test]
fn directory_gives_its_texts_in_name_order() {
    let dir = project(&[
        ("b.md", "second"),
        ("a/deep.txt", "first\n"),
        ("empty.md", " "),
        (".env", "A=b"),
        ("skip.log", "x"),
        (".gitignore", "*.log\n"),
    ]);
    put(dir.path(), "picture.png", [0x89, b'P', 0, 1]);
    put(dir.path(), "large.bin", vec![0; 100_000]);
    let idea = path_idea(dir.path(), LIMIT).unwrap();
    assert_eq!(
        idea.text.as_str(),
        "# From wishes/.gitignore\n\n*.log\n\n# From wishes/a/deep.txt\n\nfirst\n\n# From wishes/b.md\n\nsecond\n"
    );
    let passed: Vec<(&str, &OmissionReason)> = idea
        .skipped_files
        .iter()
        .map(|file| (file.name.as_str(), &file.why))
        .collect();
    assert_eq!(
        passed,
        [
            ("wishes/.env", &OmissionReason::SecretName),
            ("wishes/empty.md", &OmissionReason::Empty),
            ("wishes/large.bin", &OmissionReason::NotText),
            ("wishes/picture.png", &OmissionReason::NotText),
        ]
    );
    // A name can contain a secret, too.
    let token = made_up_token();
    put(dir.path(), &format!("{token}.png"), [0]);
    let message = format!("{:?}", path_idea(dir.path(), LIMIT).unwrap().skipped_files);
    assert!(
        message.contains(".png") && !message.contains(&token),
        "{message}"
    );
    // A text that is too large is not a picture.
    put(dir.path(), "c.md", "aé".repeat(40_000));
    let large = path_idea(dir.path(), LIMIT).unwrap();
    assert_eq!(sizes(&large).last(), Some(&("wishes/c.md", 120_000, false)));
    assert_eq!(large.unread.len(), 4);
}

#[test]
fn idea_line_maps_to_its_source_line() {
    let place = |idea: &Idea, line| {
        idea.place_of(line)
            .map(|(name, line)| format!("{name}:{line}"))
    };
    let idea = idea_of(&[
        ("a.md", b"one\ntwo"),
        ("b.md", b"three\n"),
        ("c.md", b"four\nfive\n"),
    ])
    .unwrap();
    for (number, line) in (1..).zip(idea.text.as_str().lines()) {
        let expected_value = match line {
            "one" => "a.md:1",
            "two" => "a.md:2",
            "three" => "b.md:1",
            "five" => "c.md:2",
            _ => continue,
        };
        assert_eq!(
            place(&idea, number).as_deref(),
            Some(expected_value),
            "{line}"
        );
    }
    let alone = idea_of(&[("a.md", b"one\ntwo")]).unwrap();
    assert_eq!(place(&alone, 2).as_deref(), Some("a.md:2"));
}

#[test]
fn unusable_source_is_refused_by_name() {
    let dir = project(&[
        ("only/.env", "A=b"),
        ("idea.md", "the idea"),
        ("key.pem", "x"),
    ]);
    std::fs::create_dir(dir.path().join("none")).unwrap();
    make_pipe(&dir.path().join("pipe"));
    for (name, part) in [
        ("missing", "No such file"),
        ("none", "no text"),
        ("only", "no text"),
        ("pipe", "regular file"),
    ] {
        let error = path_idea(&dir.path().join(name), LIMIT)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("wishes: ") && error.contains(part),
            "{error}"
        );
    }
    let key = path_idea(&dir.path().join("key.pem"), LIMIT);
    assert!(
        matches!(key, Err(SpecError::SecretInPacket { .. })),
        "{key:?}"
    );
    assert_eq!(
        path_idea(&dir.path().join("idea.md"), LIMIT)
            .unwrap()
            .text
            .as_str(),
        "the idea"
    );
    let large = path_idea(&dir.path().join("idea.md"), ByteLimit(7)).unwrap();
    assert_eq!(sizes(&large), [("wishes", 8, false)]);
}

#[test]
fn secret_in_source_name_is_located_in_name() {
    let token = format!("gh{}_{}", 'p', "16C7e42F292c6912E7710c838347Ae178B4a");
    let dir = project(&[("wishes/a.md", "one\ntwo\n"), ("wishes/c.md", "three\n")]);
    std::fs::write(
        dir.path().join(format!("wishes/b-{token}.md")),
        "text\nof it\n",
    )
    .unwrap();
    let idea = path_idea(&dir.path().join("wishes"), LIMIT).unwrap();
    let text = idea.text.as_str();
    let line = text.lines().position(|line| line.contains(&token)).unwrap() as u64 + 1;
    let (entry, of_entry) = idea.place_of(line).unwrap();
    assert_eq!(of_entry, 0);
    assert!(
        entry.contains("b-[secret:") && !entry.contains(&token),
        "{entry}"
    );
    assert!(idea.place_of(line + 2).unwrap().0.contains("b-[secret:"));
    assert_eq!(idea.place_of(line + 3).unwrap().1, 2);
    assert!(idea.place_of(1).unwrap().1 == 0 && idea.place_of(1).unwrap().0.ends_with("a.md"));
    let message = SpecError::SecretInPacket {
        entry,
        rule: "x".to_owned(),
        line: of_entry,
    }
    .to_string();
    assert!(
        message.starts_with("the name of wishes/b-[secret:"),
        "{message}"
    );
}

#[test]
fn link_target_decides_whether_source_is_read() {
    let dir = project(&[
        (".aws/credentials", "key"),
        (".ssh/work", "key"),
        (".env", "A=b"),
        ("a/idea.md", "x"),
    ]);
    let root = dir.path();
    symlink("../.env", root.join("a/notes.md")).unwrap();
    symlink("a/idea.md", root.join("linked.md")).unwrap();
    symlink(".aws", root.join("wishes")).unwrap();
    symlink("a/idea.md", root.join("key.pem")).unwrap();
    make_pipe(&root.join("a/pipe"));
    for secret in [
        ".aws/credentials",
        "a/notes.md",
        "wishes/credentials",
        ".ssh/work",
        "key.pem",
    ] {
        let error = path_idea(&root.join(secret), LIMIT).unwrap_err();
        assert!(
            matches!(error, SpecError::SecretInPacket { .. }),
            "{secret}: {error}"
        );
    }
    for directory in [".aws", ".ssh", "wishes"] {
        let error = path_idea(&root.join(directory), LIMIT)
            .unwrap_err()
            .to_string();
        assert!(error.contains("no text"), "{directory}: {error}");
    }
    assert_eq!(
        path_idea(&root.join("linked.md"), LIMIT)
            .unwrap()
            .text
            .as_str(),
        "x"
    );
    // Entries of a directory that are not regular files are listed.
    let idea = path_idea(&root.join("a"), LIMIT).unwrap();
    assert_eq!(idea.text.as_str(), "# From wishes/idea.md\n\nx\n");
    let messages: Vec<(&str, &OmissionReason)> = idea
        .skipped_files
        .iter()
        .map(|file| (file.name.as_str(), &file.why))
        .collect();
    let no_file = &OmissionReason::NotAFile;
    assert_eq!(
        messages,
        [("wishes/notes.md", no_file), ("wishes/pipe", no_file)]
    );
}

#[test]
fn links_and_pipes_matching_a_pattern_are_named() {
    let dir = project(&[
        ("docs/a.md", "a"),
        ("more/b.md", "b"),
        ("x.md", "x"),
        ("skip/c.md", "c"),
    ]);
    let root = dir.path();
    symlink("../x.md", root.join("docs/link.md")).unwrap();
    symlink("../more", root.join("docs/more")).unwrap();
    symlink("../x.md", root.join("docs/other.txt")).unwrap();
    symlink("../x.md", root.join("docs/skipped.md")).unwrap();
    make_pipe(&root.join("docs/pipe.md"));
    let found = select(root, &[], &["docs/**/*.md", "**/*.md"], &["skipped.md"]).unwrap();
    assert_eq!(
        names(&found),
        ["docs/a.md", "more/b.md", "skip/c.md", "x.md"]
    );
    let packet = build_packet_with(Vec::new(), found, PacketLimits::default()).unwrap();
    let messages: Vec<&str> = packet
        .manifest
        .passed_over
        .iter()
        .map(|file| file.name.as_str())
        .collect();
    assert_eq!(messages, ["docs/link.md", "docs/more", "docs/pipe.md"]);
    // A named link is followed if it stays in the project.
    let found = select(
        root,
        &["docs/link.md"],
        &["docs/**/*.md", "docs/pipe.md"],
        &["skipped.md"],
    )
    .unwrap();
    let packet = build_packet_with(Vec::new(), found, PacketLimits::default()).unwrap();
    assert_eq!(
        packet
            .entries
            .iter()
            .map(|entry| entry.name.as_str())
            .collect::<Vec<_>>(),
        ["docs/link.md", "docs/a.md"]
    );
    let messages: Vec<&str> = packet
        .manifest
        .passed_over
        .iter()
        .map(|file| file.name.as_str())
        .collect();
    assert_eq!(messages, ["docs/more", "docs/pipe.md"]);
}
