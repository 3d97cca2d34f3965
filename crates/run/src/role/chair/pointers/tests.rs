//! Evidence resolved against small repositories.

use crucible_host::fs::{create_dir_all, write_atomic};
use crucible_pack::{FileClass, Goal, RankLimits, Surroundings, rank_with};
use crucible_verify::StackFrame;

use super::*;

const FILES: [(&str, &str); 6] = [
    ("src/click/__init__.py", "from .core import Option\n"),
    (
        "src/click/core.py",
        "class Option:\n    def resolve_default(self):\n        pass\n",
    ),
    ("src/click/other.py", "def other():\n    pass\n"),
    (
        "tests/test_core.py",
        "import click\n\n\ndef test_default():\n    option = click.Option()\n    assert option.resolve_default() == 1\n",
    ),
    ("tests/test_other.py", "def test_other():\n    pass\n"),
    ("README.md", "resolve_default\n"),
];

fn pointers(failed: &FailureEvidence) -> (Pointers, Vec<RepoPath>) {
    let dir = tempfile::tempdir().unwrap();
    let paths: Vec<RepoPath> = FILES
        .iter()
        .map(|(path, _)| path.parse().unwrap())
        .collect();
    for (path, text) in FILES {
        let at = dir.path().join(path);
        create_dir_all(at.parent().unwrap()).unwrap();
        write_atomic(&at, text.as_bytes()).unwrap();
    }
    let listed: Vec<&RepoPath> = paths.iter().collect();
    (Pointers::new(dir.path(), failed, &listed), paths)
}

#[test]
fn failing_test_points_to_imports_and_uses() {
    let tests = vec!["tests/test_core.py::test_default[1]".to_owned()];
    let (pointers, paths) = pointers(&FailureEvidence {
        tests,
        ..FailureEvidence::default()
    });
    assert_eq!(
        pointers.evidence.failing(),
        [&"tests/test_core.py".parse::<RepoPath>().unwrap()]
    );
    assert!(
        pointers.hints.iter().any(|hint| hint == "resolve_default"),
        "{:?}",
        pointers.hints
    );
    let goal = Goal::with_hints("the value is wrong", &pointers.hints);
    let look = |path: &RepoPath| {
        let text = FILES
            .iter()
            .find(|(name, _)| *name == path.as_str())
            .unwrap()
            .1;
        goal.look_at(
            path.clone(),
            FileClass::from_path(path),
            30_000,
            Some(text.as_bytes()),
        )
    };
    let limits = RankLimits {
        max_files: crucible_model::FileLimit(20),
        max_total_bytes: ByteLimit(60_000),
        outlines: false,
    };
    let candidates = paths.iter().map(look).collect();
    let ranking = {
        let around = Surroundings {
            evidence: &pointers.evidence,
            ..Surroundings::default()
        };
        rank_with(&goal, candidates, &limits, &around)
    };
    let chosen: Vec<&str> = ranking
        .chosen
        .iter()
        .map(|choice| choice.need.path.as_str())
        .collect();
    assert_eq!(chosen[0], "src/click/core.py");
    assert_eq!(chosen.last(), Some(&"tests/test_core.py"));
}

#[test]
fn test_group_and_title_locate_file_and_lines() {
    let dir = tempfile::tempdir().unwrap();
    let test = "const Receiver = require('../lib/receiver');\n\ndescribe('Receiver', () => {\n  it('counts empty fragments', () => {\n    new Receiver().setFragments(0);\n  });\n});\n";
    let files = [
        ("lib/receiver.js", "class Receiver {}\n"),
        ("test/receiver.test.js", test),
        ("test/other.test.js", ""),
    ];
    for (path, text) in files {
        let at = dir.path().join(path);
        create_dir_all(at.parent().unwrap()).unwrap();
        write_atomic(&at, text.as_bytes()).unwrap();
    }
    let paths: Vec<RepoPath> = files
        .iter()
        .map(|(path, _)| path.parse().unwrap())
        .collect();
    let listed: Vec<&RepoPath> = paths.iter().collect();
    let tests = vec!["Receiver > counts empty fragments".to_owned()];
    let failed = FailureEvidence {
        tests,
        ..FailureEvidence::default()
    };
    let pointers = Pointers::new(dir.path(), &failed, &listed);
    assert_eq!(pointers.evidence.failing(), [&paths[1]]);
    assert!(pointers.lines[&paths[1]].contains(&4));
    assert!(
        pointers.hints.iter().any(|hint| hint == "setFragments"),
        "{:?}",
        pointers.hints
    );
}

#[test]
fn frames_of_installed_packages_resolve_to_their_source() {
    let frame = |file: &str| StackFrame {
        depth: 0,
        file: file.to_owned(),
        line: 2,
        function: None,
    };
    let frames = vec![
        frame("click/core.py"),
        frame("pluggy/core.py"),
        frame("core.py"),
    ];
    let (pointers, _) = pointers(&FailureEvidence {
        frames,
        ..FailureEvidence::default()
    });
    assert_eq!(pointers.lines.len(), 1);
    assert!(
        pointers
            .lines
            .contains_key(&"src/click/core.py".parse::<RepoPath>().unwrap())
    );
}

#[test]
fn plain_name_of_test_is_extracted() {
    for (test, name) in [
        ("tests/test_a.py::T::test_b[1-2]", Some("test_b")),
        ("test_c (t.T.test_c)", Some("test_c")),
        ("TestWalk/sub_case", Some("TestWalk")),
        ("krate::tests::adds", Some("adds")),
        ("", None),
        ("[", None),
    ] {
        assert_eq!(plain_name(test), name, "{test}");
    }
}
