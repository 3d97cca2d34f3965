//! An application of fixups that was broken off: told by whoever looks, settled by the next command, and by none forgotten.

use std::path::{Path, PathBuf};

use crucible_model::Digest;
use crucible_testkit::FakeApi;
use serde_json::{Value, json};

use super::fixups::proposing;
use super::support::{SPEC, newest, project, resume, spec, spec_dir, valid, valid_sarif};
use crate::support::{Fixture, Ran};

const OLD: &str = "one = 1\ntwo = 2\n";
const NEW: &str = "one = 1\ntwo = 3\n";
const FILES: [&str; 3] = ["src/c.py", "src/export.py", "src/log.py"];
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

struct Broken {
    fixture: Fixture,
    project: PathBuf,
    _server: FakeApi,
}

/// A fixup of three files that waits, and whose application ended after the first file: as a killed process leaves it.
fn broken_off() -> Broken {
    let server = proposing(&FILES.map(|path| (path, NEW)));
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    FILES
        .iter()
        .for_each(|path| std::fs::write(project.join(path), OLD).unwrap());
    let shown = FILES.map(|path| ["--context", path]);
    let lines = shown.concat();
    spec(
        &fixture,
        &project,
        [
            "--through",
            "fixup",
            lines[0],
            lines[1],
            lines[2],
            lines[3],
            lines[4],
            lines[5],
        ],
    )
    .ok();
    let broken = Broken {
        fixture,
        project,
        _server: server,
    };
    let diff = std::fs::read(spec_dir(&broken.project).join("artifacts/40-fixup.diff")).unwrap();
    let digest = |text: &str| Digest::compute(text.as_bytes());
    let entries =
        FILES.map(|path| json!({ "path": path, "before": digest(OLD), "after": digest(NEW) }));
    let record = json!({
        "schema_version": "crucible-tree-edit-v1", "stage": "ready", "purpose": Digest::compute(&diff), "token": TOKEN,
        "made": [], "entries": entries,
    });
    std::fs::create_dir_all(broken.record().parent().unwrap()).unwrap();
    std::fs::write(broken.record(), record.to_string()).unwrap();
    for (index, path) in FILES.iter().enumerate() {
        let (now, beside) = if index == 0 { (NEW, OLD) } else { (OLD, NEW) };
        std::fs::write(broken.project.join(path), now).unwrap();
        let name = format!("src/.crucible-edit-{TOKEN}-{index}.new");
        std::fs::write(broken.project.join(name), beside).unwrap();
    }
    broken
}

impl Broken {
    fn record(&self) -> PathBuf {
        let root = self.project.canonicalize().unwrap();
        let name = format!(
            "{}-{SPEC}.json",
            Digest::compute(root.to_str().unwrap().as_bytes())
        );
        self.fixture.data().join("fixups").join(name)
    }

    fn apply(&self) -> Ran {
        resume(
            &self.fixture,
            &self.project,
            ["--phase", "fixup", "--apply-fixups"],
        )
    }

    fn run<const N: usize>(&self, args: [&str; N]) -> Ran {
        self.fixture.call(args).current_dir(&self.project).run()
    }

    fn now(&self) -> [String; 3] {
        FILES.map(|path| std::fs::read_to_string(self.project.join(path)).unwrap())
    }

    fn beside(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.project.join("src")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths
            .filter(|path| path.to_str().unwrap().contains(".crucible-edit-"))
            .collect()
    }

    /// What `git clean` does.
    fn tidy_up(&self) {
        self.beside()
            .into_iter()
            .for_each(|path| std::fs::remove_file(path).unwrap());
    }

    fn assert_applied(&self) {
        assert_eq!(self.now(), FILES.map(|_| NEW.to_owned()));
        assert_eq!(self.beside(), [] as [&Path; 0]);
        assert!(!self.record().exists());
        assert_eq!(
            newest(&self.project)["phases"][0]["fixups"]["stage"],
            "applied"
        );
    }
}

#[test]
fn unfinished_application_is_reported_by_status_and_gate() {
    let broken = broken_off();
    let before = (broken.now(), broken.beside());
    let gate = broken.run(["gate", SPEC, "--json"]).exits(1).json();
    valid(
        &gate,
        include_str!("../../../../../docs/schemas/gate-json.v1.schema.json"),
    );
    let is_it = |finding: &&Value| finding["code"] == "fixup-under-way";
    let found = gate["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(is_it)
        .unwrap();
    assert_eq!(found["level"], "error", "{gate}");
    assert!(
        found["hint"]
            .as_str()
            .unwrap()
            .contains("src/c.py, src/export.py, src/log.py"),
        "{gate}"
    );
    for format in ["text", "github", "sarif"] {
        let ran = broken.run(["gate", SPEC, "--format", format]).exits(1);
        assert!(ran.stdout.contains("fixup-under-way"), "{}", ran.stdout);
        if format == "sarif" {
            valid_sarif(&ran.json());
        }
    }
    let status = broken.run(["status", SPEC, "--json"]).ok().json();
    valid(
        &status,
        include_str!("../../../../../docs/schemas/status-json.v1.schema.json"),
    );
    assert_eq!(
        (&status["fixup_under_way"], &status["has_errors"]),
        (&json!(FILES), &json!(true)),
        "{status}"
    );
    let message = broken.run(["status", SPEC]).ok().stdout;
    assert!(
        message.contains("applying fixups has not finished: src/c.py, src/export.py, src/log.py\n"),
        "{message}"
    );
    assert_eq!((broken.now(), broken.beside()), before);
    assert!(broken.record().exists());
    // Settled, it is told no more.
    broken.apply().ok();
    broken.assert_applied();
    broken.run(["gate", SPEC]).ok();
    let status = broken.run(["status", SPEC, "--json"]).ok().json();
    assert_eq!(
        (status.get("fixup_under_way"), &status["has_errors"]),
        (None, &json!(false)),
        "{status}"
    );
}

#[test]
fn interrupted_fixup_is_completed_after_git_clean() {
    let broken = broken_off();
    broken.tidy_up();
    let ran = broken.apply().ok();
    assert!(
        ran.stderr.contains(
            "finished: the fixup is applied to these files: src/c.py, src/export.py, src/log.py"
        ),
        "{}",
        ran.stderr
    );
    broken.assert_applied();
}

#[test]
fn unresolvable_fixup_is_reported_until_it_is_repaired() {
    let broken = broken_off();
    broken.tidy_up();
    std::fs::write(broken.project.join("src/log.py"), "mine = 1\n").unwrap();
    let before = broken.now();
    for _ in 0..2 {
        let ran = broken.apply();
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        for part in [
            "src/c.py (",
            "src/log.py changed meanwhile",
            broken.record().to_str().unwrap(),
        ] {
            assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
        }
        for part in ["is now", "no file was changed"] {
            assert!(!ran.stderr.contains(part), "{part}: {}", ran.stderr);
        }
        assert_eq!(broken.now(), before);
        assert!(broken.record().exists());
    }
    std::fs::write(broken.project.join("src/log.py"), OLD).unwrap();
    broken.apply().ok();
    broken.assert_applied();
}

#[test]
fn missing_directory_keeps_record_until_it_returns() {
    let broken = broken_off();
    std::fs::rename(broken.project.join("src"), broken.project.join("lib")).unwrap();
    let ran = broken.apply();
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("the directory they are in is gone"),
        "{}",
        ran.stderr
    );
    assert!(
        !ran.stderr.contains("not applied to these files"),
        "{}",
        ran.stderr
    );
    assert!(broken.record().exists());
    std::fs::rename(broken.project.join("lib"), broken.project.join("src")).unwrap();
    broken.apply().ok();
    broken.assert_applied();
}

#[test]
fn file_edited_by_user_is_named_and_kept() {
    let broken = broken_off();
    let mine = format!("{NEW}three = 3\n");
    std::fs::write(broken.project.join("src/c.py"), &mine).unwrap();
    let ran = broken.apply().ok();
    assert!(
        ran.stderr
            .contains("the fixup is applied to these files: src/export.py, src/log.py\n"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains(
            "these files were changed after that and are left as they are; check them: src/c.py"
        ),
        "{}",
        ran.stderr
    );
    assert!(
        !ran.stderr.contains("no file was changed"),
        "{}",
        ran.stderr
    );
    assert_eq!(broken.now(), [mine, NEW.to_owned(), NEW.to_owned()]);
    assert_eq!(
        newest(&broken.project)["phases"][0]["fixups"]["stage"],
        "applied"
    );
}
