//! Folders of every format on disk: found by name and path, and hostile ones with one finding each.
#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test fails the test that calls it"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests lay out the files that they are about"
)]

use std::os::unix::fs::symlink;
use std::path::Path;

use crucible_evidence::SpecFormat;
use crucible_spec::{SpecOutline, SpecProject, find_spec_folder};

const SPEC_KIT: &str = "# Feature Specification: Area\n\n### User Story 1 - Area (Priority: P1)\n\nText.\n\n\
    ## Requirements\n\n- **FR-001**: System MUST multiply\n  - Test: tests/a.py::test_a\n";
const TASKS: &str = "# Tasks\n\n- [ ] T001 [US1] Multiply (FR-001)\n";

struct Room {
    dir: tempfile::TempDir,
}

impl Room {
    fn new() -> Self {
        let fixture = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        fixture.write(".git/HEAD", "ref: refs/heads/main\n");
        fixture
    }

    /// A folder of Spec Kit.
    fn spec_kit() -> Self {
        let room = Self::new();
        room.write("specs/001-area/spec.md", SPEC_KIT);
        room.write("specs/001-area/tasks.md", TASKS);
        room
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn read_from(&self, text: &str, named: &str) -> Result<SpecOutline, String> {
        let project = SpecProject::at(self.path());
        find_spec_folder(&project, &self.path().join(text), named)
            .map(|folder| folder.read())
            .map_err(|error| error.to_string())
    }

    fn read(&self, named: &str) -> SpecOutline {
        self.read_from("", named).unwrap()
    }

    fn codes(&self, named: &str) -> Vec<String> {
        let outline = self.read(named);
        let findings = outline.verdict.findings().iter();
        findings.map(|finding| finding.code.to_string()).collect()
    }
}

#[test]
fn folder_is_found_by_name_and_by_path() {
    let fixture = Room::spec_kit();
    for (text, named) in [
        ("", "001-area"),
        ("", "specs/001-area"),
        ("", "./specs/001-area/"),
        ("specs", "../specs/001-area"),
        ("src", "001-area"),
    ] {
        let outline = fixture.read_from(text, named).unwrap();
        assert_eq!(outline.name, "specs/001-area", "{text} {named}");
        assert_eq!(outline.format, SpecFormat::SpecKit);
        assert!(outline.verdict.passes(), "{:?}", outline.verdict);
        assert_eq!(outline.tasks[0].serves, ["US1", "FR-001"]);
    }
    fixture.write("packages/a/specs/002-b/spec.md", SPEC_KIT);
    assert_eq!(
        fixture.read("packages/a/specs/002-b").name,
        "packages/a/specs/002-b"
    );
    for (named, why) in [
        ("002-b", "there is no spec of this name"),
        ("specs/009", "there is no such folder"),
        ("../specs/001-area", "not a folder in"),
        ("src/001-area", "no format has specs there"),
        ("", "not a name"),
        ("a\u{202e}b", "not a name"),
        ("..", "there is no spec of this name"),
    ] {
        let error = fixture.read_from("", named).unwrap_err();
        assert!(error.contains(why), "{named}: {error}");
    }
}

#[test]
fn every_format_is_detected_and_ambiguity_refused() {
    let fixture = Room::spec_kit();
    fixture.write(
        ".kiro/specs/lamp/requirements.md",
        "### Requirement 1\n\n#### Acceptance Criteria\n\n1. WHEN a THE SYSTEM SHALL b\n",
    );
    fixture.write(
        ".kiro/specs/lamp/tasks.md",
        "- [ ] 1. Do\n  - _Requirements: 1.1_\n",
    );
    fixture.write("openspec/changes/log/tasks.md", "- [ ] 1.1 Do\n");
    fixture.write(
        "openspec/changes/log/specs/log/spec.md",
        "## ADDED Requirements\n\n### Requirement: Log\n\nThe system SHALL log.\n",
    );
    fixture.write(
        "openspec/specs/old/spec.md",
        "## Requirements\n\n### Requirement: Old\nText\n",
    );
    for (named, format, requirement) in [
        ("lamp", SpecFormat::Kiro, "1.1"),
        ("log", SpecFormat::OpenSpec, "log: Log"),
        ("openspec/changes/log", SpecFormat::OpenSpec, "log: Log"),
        ("old", SpecFormat::OpenSpec, "Old"),
    ] {
        let outline = fixture.read(named);
        assert_eq!(
            (outline.format, outline.requirements[0].id.as_str()),
            (format, requirement)
        );
        assert!(outline.verdict.passes(), "{named}: {:?}", outline.verdict);
    }
    fixture.write("specs/lamp/spec.md", SPEC_KIT);
    let error = fixture.read_from("", "lamp").unwrap_err();
    assert!(error.contains("specs/lamp, .kiro/specs/lamp"), "{error}");
    // Crucible's own spec has its name for itself.
    fixture.write(
        ".crucible/specs/lamp/artifacts/00-requirements.md",
        "# Requirements: x\n\n### R-001: A\na\n",
    );
    assert_eq!(fixture.read("lamp").format, SpecFormat::Crucible);
    assert_eq!(fixture.read("lamp").name, "lamp");
}

#[test]
fn hostile_files_have_one_finding_each() {
    type Edit = fn(&Room);
    let cases: [(Edit, &[&str]); 12] = [
        (|_| {}, &[]),
        (
            |room| std::fs::remove_file(room.path().join("specs/001-area/spec.md")).unwrap(),
            &["outline-missing"],
        ),
        (
            |room| {
                let tasks = room.path().join("specs/001-area/tasks.md");
                std::fs::rename(&tasks, room.path().join("elsewhere")).unwrap();
                symlink(room.path().join("elsewhere"), tasks).unwrap();
            },
            &["outline-link"],
        ),
        (
            |room| {
                // A link to the directory above: following it would never end.
                let folder = room.path().join("specs/001-area");
                std::fs::remove_dir_all(&folder).unwrap();
                symlink("..", folder).unwrap();
            },
            &["outline-link"],
        ),
        (
            |room| room.write("specs/001-area/tasks.md", "x".repeat((1 << 20) + 1)),
            &["outline-too-large"],
        ),
        (
            |room| room.write("specs/001-area/tasks.md", b"- [ ] T001 a\xff"),
            &["outline-not-text"],
        ),
        (
            |room| {
                std::fs::remove_file(room.path().join("specs/001-area/tasks.md")).unwrap();
                std::fs::create_dir(room.path().join("specs/001-area/tasks.md")).unwrap();
            },
            &["outline-not-text"],
        ),
        (
            |room| room.write("specs/001-area/tasks.md", "- [ ] T001 \u{202e}evil\n"),
            &["outline-hidden"],
        ),
        (
            |room| {
                let double = format!("{SPEC_KIT}- **FR-001**: Another\n- **FR-001**: Third\n");
                room.write("specs/001-area/spec.md", double);
            },
            &["outline-duplicate-id"],
        ),
        (
            |room| {
                room.write(
                    "specs/001-area/tasks.md",
                    "- [ ] T001 [US1] a\n- [ ] T001 [US1] b\n",
                )
            },
            &["outline-duplicate-id"],
        ),
        (
            |room| {
                room.write(
                    "specs/001-area/tasks.md",
                    "- [ ] T001 [US9] a (FR-009) FR-009\n- [ ] T002 [US9] b\n",
                )
            },
            &["outline-unknown-requirement", "outline-unknown-requirement"],
        ),
        (
            |room| {
                let text = SPEC_KIT.replace("tests/a.py::test_a", "../../etc/passwd::x");
                room.write("specs/001-area/spec.md", text);
            },
            &["outline-test-invalid"],
        ),
    ];
    for (at, (edit, expected)) in cases.into_iter().enumerate() {
        let fixture = Room::spec_kit();
        edit(&fixture);
        assert_eq!(fixture.codes("001-area"), expected, "case {at}");
    }
}

#[test]
fn limits_are_reported() {
    let fixture = Room::spec_kit();
    let many: String = (0..1001).map(|at| format!("- [ ] T{at:04} a\n")).collect();
    fixture.write("specs/001-area/tasks.md", many);
    let outline = fixture.read("001-area");
    assert_eq!(outline.tasks.len(), 1000);
    assert_eq!(fixture.codes("001-area"), ["outline-too-many"]);
    fixture.write("specs/001-area/tasks.md", TASKS);
    let tests: String = (0..51)
        .map(|at| format!("  - Test: tests/a.py::t{at}\n"))
        .collect();
    fixture.write("specs/001-area/spec.md", format!("{SPEC_KIT}{tests}"));
    assert_eq!(fixture.codes("001-area"), ["outline-too-many"]);
    fixture.write("specs/001-area/spec.md", "# Nothing\n");
    fixture.write("specs/001-area/tasks.md", "# None\n");
    assert_eq!(fixture.codes("001-area"), ["outline-empty"]);
    fixture.write("openspec/changes/many/tasks.md", "- [ ] 1.1 a\n");
    for at in 0..201 {
        fixture.write(
            &format!("openspec/changes/many/specs/c{at}/spec.md"),
            "## ADDED Requirements\n### Requirement: A\na\n",
        );
    }
    assert_eq!(fixture.codes("many"), ["outline-too-many"]);
    std::fs::remove_dir_all(fixture.path().join("openspec/changes/many/specs")).unwrap();
    symlink(
        fixture.path(),
        fixture.path().join("openspec/changes/many/specs"),
    )
    .unwrap();
    assert_eq!(fixture.codes("many"), ["outline-link"]);
}

#[test]
fn requirement_digest_ignores_its_test_lines() {
    let fixture = Room::spec_kit();
    let digest = |fixture: &Room| fixture.read("001-area").requirement_tests()[1].text;
    let before = digest(&fixture);
    fixture.write(
        "specs/001-area/spec.md",
        SPEC_KIT.replace("test_a", "test_b"),
    );
    assert_eq!(digest(&fixture), before);
    fixture.write(
        "specs/001-area/spec.md",
        SPEC_KIT.replace("multiply", "add"),
    );
    assert_ne!(digest(&fixture), before);
}
