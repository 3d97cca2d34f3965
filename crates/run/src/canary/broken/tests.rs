//! Tests of the choice of files and of their broken content.

#![expect(
    clippy::disallowed_methods,
    reason = "a test runs interpreters on what is written"
)]

use std::path::PathBuf;
use std::process::Command;

use super::*;

fn tracked(paths: &[&str]) -> Vec<TrackedFile> {
    let file = |path: &&str| TrackedFile {
        path: PathBuf::from(path),
        mode: if path.starts_with("link") {
            FileMode::Symlink
        } else {
            FileMode::Regular
        },
        oid: serde_json::from_value("7".repeat(40).into()).unwrap(),
        size: 1,
    };
    paths.iter().map(file).collect()
}

fn chosen(paths: &[&str], gate_files: &[&str]) -> (BrokenKind, Vec<String>) {
    let gate_files: Vec<RepoPath> = gate_files
        .iter()
        .map(|path| path.parse().unwrap())
        .collect();
    let broken = BrokenSources::choose(&tracked(paths), &gate_files);
    (
        broken.kind,
        broken
            .files
            .iter()
            .map(|(path, _)| path.to_string())
            .collect(),
    )
}

#[test]
fn source_files_alone_are_broken() {
    let stored_lines = [
        "tests/test_a.py",
        "setup.py",
        "pyproject.toml",
        "package.json",
        "conftest.py",
        "build.rs",
        ".github/x.py",
    ];
    let other = ["data/x.json", "README.md", "link.py", "src/gate.py"];
    let sources = ["src/a.py", "src/b.PHP", "lib/c.rs"];
    let paths = [&stored_lines[..], &other, &sources].concat();
    assert_eq!(
        chosen(&paths, &["src/gate.py"]),
        (BrokenKind::Sources, sources.map(str::to_owned).to_vec())
    );
}

#[test]
fn text_files_are_broken_without_sources() {
    let paths = [
        "README.md",
        "docs/a.md",
        "check.sh",
        "Makefile",
        "tests/x.md",
    ];
    assert_eq!(
        chosen(&paths, &["check.sh"]),
        (
            BrokenKind::Texts,
            ["README.md", "docs/a.md"].map(str::to_owned).to_vec()
        )
    );
    assert_eq!(
        chosen(&["check.sh", "tests/a.sh"], &["check.sh"]),
        (BrokenKind::None, Vec::new())
    );
}

#[test]
fn gate_program_is_broken_as_last_resort() {
    let own = |paths: &[&str]| {
        let broken = BrokenSources::of_gates(&tracked(paths), &["src/a.py".parse().unwrap()]);
        broken.map(|broken| (broken.kind, broken.files.len()))
    };
    assert_eq!(
        own(&["README.md", "src/a.py", "tests/test_a.py"]),
        Some((BrokenKind::Gates, 1))
    );
    assert_eq!(
        own(&["README.md", "src/a.py", "src/b.py"]),
        None,
        "another source is broken"
    );
    assert_eq!(own(&["README.md"]), None);
}

#[test]
fn broken_line_is_where_the_program_begins() {
    let broken = |path: &str, content: &str| {
        broken_source(path, content.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap())
    };
    let line = BROKEN_LINE;
    assert_eq!(broken("a.py", "x = 1\n").unwrap(), format!("{line}x = 1\n"));
    assert_eq!(broken("a.py", "").unwrap(), line);
    assert_eq!(
        broken("a.py", "#!/usr/bin/python3\nx = 1\n").unwrap(),
        format!("#!/usr/bin/python3\n{line}x = 1\n")
    );
    assert_eq!(
        broken("a.js", "#!/usr/bin/node").unwrap(),
        format!("#!/usr/bin/node\n{line}")
    );
    assert_eq!(
        broken("a.rs", "#![allow(x)]\n").unwrap(),
        format!("{line}#![allow(x)]\n")
    );
    assert_eq!(
        broken("a.php", "<h1>\n<?PHP echo 1;").unwrap(),
        format!("<h1>\n<?PHP\n{line} echo 1;")
    );
    assert_eq!(broken("a.php", "<h1></h1>"), None);
}

/// Whether a program refuses a file with the broken line; `None` if it is not installed.
fn refuses(program: &[&str], name: &str, content: &str) -> Option<bool> {
    let temp_dir = tempfile::tempdir().unwrap();
    let place = temp_dir.path().join(name);
    let run = |bytes: &[u8]| {
        std::fs::write(&place, bytes).unwrap();
        let output = Command::new(program[0])
            .args(&program[1..])
            .arg(&place)
            .current_dir(&temp_dir)
            .output()
            .ok()?;
        Some(output.status.success())
    };
    assert!(
        run(content.as_bytes())?,
        "{program:?} takes the file as it is"
    );
    run(&broken_source(name, content.as_bytes()).unwrap()).map(|accepted| !accepted)
}

#[test]
fn no_installed_language_accepts_the_broken_line() {
    let cases: [(&[&str], &str, &str); 6] = [
        (&["python3"], "a.py", "'''doc'''\nx = 1\n"),
        (
            &["node"],
            "a.js",
            "#!/usr/bin/env node\n/* a */ const x = 1;\n",
        ),
        (&["node"], "a.mjs", "export const x = 1;\n"),
        (&["sh"], "a.sh", "#!/bin/sh\ntrue\n"),
        (&["perl"], "a.pl", "my $x = 1;\n"),
        (
            &["rustc", "--crate-type=lib", "--emit=metadata"],
            "a.rs",
            "//! Doc.\npub fn a() {}\n",
        ),
    ];
    let refused: Vec<bool> = cases
        .into_iter()
        .filter_map(|(program, name, content)| refuses(program, name, content))
        .collect();
    assert!(
        !refused.is_empty() && refused.iter().all(|refused| *refused),
        "{refused:?}"
    );
}

#[test]
fn only_files_of_the_copy_are_written() {
    let temp_dir = tempfile::tempdir().unwrap();
    let (copy, outside) = (
        temp_dir.path().join("copy"),
        temp_dir.path().join("outside.py"),
    );
    std::fs::create_dir(&copy).unwrap();
    std::fs::write(&outside, "x = 1\n").unwrap();
    std::fs::hard_link(&outside, copy.join("a.py")).unwrap();
    std::os::unix::fs::symlink(&outside, copy.join("b.py")).unwrap();
    BrokenSources::choose(&tracked(&["a.py", "b.py", "gone.py"]), &[])
        .write(&copy)
        .unwrap();
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "x = 1\n");
    assert!(
        std::fs::read_to_string(copy.join("a.py"))
            .unwrap()
            .starts_with(BROKEN_LINE)
    );
    assert!(!copy.join("gone.py").exists());
}
