//! Fixups on real files: refusals, applications, and that nothing else changes the project.

#![expect(clippy::disallowed_methods, reason = "tests plant files and links")]

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use crucible_model::{Digest, EditFormat, RepoPath, Untrusted, Verdict};
use crucible_patch::Policy;
use crucible_repo::LinkPolicy;
use crucible_testkit::made_up_token;
use proptest::prelude::*;
use tempfile::TempDir;

use super::show::FixupChange;
use super::*;
use crate::error::SpecError;
use crate::gate::sample::done_up_to;
use crate::phase_id::PhaseId;
use crate::project::SpecProject;
use crate::receipt::{FileRecord, FixupReceipt, FixupStage, PhaseStatus, SpecReceipt};
use crate::state::SpecState;
use crate::store::{LockClaim, SpecStore};

mod broken_off;
mod places;

const LIB: &str = "pub fn add(a: u32, b: u32) -> u32 {\n    a - b\n}\n";
const FIXED: &str = "pub fn add(a: u32, b: u32) -> u32 {\n    a + b\n}\n";

/// A project with these files.
struct Fixture {
    dir: TempDir,
    home: TempDir,
}

impl Fixture {
    fn new(files: &[(&str, &str)]) -> Self {
        let fixture = Self {
            dir: tempfile::tempdir().unwrap(),
            home: tempfile::tempdir().unwrap(),
        };
        std::fs::create_dir_all(fixture.root().join(".crucible/specs/x")).unwrap();
        files
            .iter()
            .for_each(|(path, content)| fixture.put(path, content));
        fixture
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    fn project(&self) -> SpecProject {
        SpecProject::at(self.root())
    }

    fn store(&self) -> SpecStore {
        SpecStore::new(&self.project(), "x".parse().unwrap()).with_records(self.records())
    }

    /// The directory for journals in Crucible's own directory.
    fn records(&self) -> PathBuf {
        self.home.path().join("fixups")
    }

    /// The journal of a fixup while it is applied.
    fn record(&self) -> PathBuf {
        let root = self.root().canonicalize().unwrap();
        self.records().join(format!(
            "{}-x.json",
            Digest::compute(root.to_str().unwrap().as_bytes())
        ))
    }

    fn put(&self, path: &str, content: &str) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn get(&self, path: &str) -> String {
        String::from_utf8(std::fs::read(self.root().join(path)).unwrap()).unwrap()
    }

    /// The existing files of these, with links followed.
    fn read(&self, paths: &[&str]) -> BTreeMap<RepoPath, Vec<u8>> {
        let read = |path: &&str| {
            Some((
                path.parse().unwrap(),
                std::fs::read(self.root().join(path)).ok()?,
            ))
        };
        paths.iter().filter_map(read).collect()
    }

    /// The fixup that gives these files these contents, as if the phase had promoted it.
    fn pending(&self, changes: &[(&str, &str)], policy: &Policy) -> PendingFixup {
        let paths: Vec<&str> = changes.iter().map(|(path, _)| *path).collect();
        let files = self.read(&paths);
        let proposed =
            propose_fixup(&whole(changes), EditFormat::WholeFile, &files, policy).unwrap();
        PendingFixup {
            receipt_id: "fixup-20241201-100000-0001".to_owned(),
            diff: proposed.diff,
            files: proposed.files,
        }
    }

    fn apply(
        &self,
        fixup: &PendingFixup,
        policy: &Policy,
        links: LinkPolicy,
    ) -> Result<AppliedFixup, SpecError> {
        self.apply_as(
            fixup,
            &FixupChoice {
                links,
                ..FixupChoice::unguarded(policy.clone())
            },
        )
    }

    fn apply_as(
        &self,
        fixup: &PendingFixup,
        choice: &FixupChoice,
    ) -> Result<AppliedFixup, SpecError> {
        let lock = self.store().lock("test", LockClaim::IfFree)?;
        apply_fixup(&self.project(), &lock, fixup, choice)
    }

    /// Every path outside of the spec's own directory, with its content.
    fn tree(&self) -> BTreeMap<String, String> {
        let mut tree = BTreeMap::new();
        let mut open = vec![self.dir.path().to_owned()];
        while let Some(dir) = open.pop() {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let meta = path.symlink_metadata().unwrap();
                let name = path
                    .strip_prefix(self.dir.path())
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned();
                if name == "project/.crucible/specs" {
                    continue;
                }
                let content = if meta.is_symlink() {
                    format!("-> {}", std::fs::read_link(&path).unwrap().display())
                } else if meta.is_dir() {
                    open.push(path);
                    "/".to_owned()
                } else {
                    String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned()
                };
                tree.insert(name, content);
            }
        }
        tree
    }
}

/// An answer with whole files.
fn whole(changes: &[(&str, &str)]) -> Untrusted {
    let file = |(path, content): &(&str, &str)| format!("FILE: {path}\n````\n{content}````\n");
    Untrusted::new(changes.iter().map(file).collect::<String>())
}

fn files(files: &[(&str, &str)]) -> BTreeMap<RepoPath, Vec<u8>> {
    files
        .iter()
        .map(|(path, content)| (path.parse().unwrap(), content.as_bytes().to_vec()))
        .collect()
}

fn policy() -> Policy {
    fixup_policy(5, 400, Vec::new())
}

fn naming(paths: &[&str]) -> Policy {
    fixup_policy(
        5,
        400,
        paths.iter().map(|path| path.parse().unwrap()).collect(),
    )
}

fn codes(verdict: &Verdict) -> Vec<&str> {
    verdict
        .errors()
        .map(|finding| finding.code.as_str())
        .collect()
}

#[test]
fn every_edit_format_gives_the_same_canonical_diff() {
    let shown = files(&[("src/lib.rs", LIB), ("README.md", "# It\n")]);
    let replaced = "src/lib.rs\n<<<<<<< SEARCH\n    a - b\n=======\n    a + b\n>>>>>>> REPLACE\n";
    let diff = "diff --git a/src/lib.rs b/src/lib.rs\n--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -1,3 +1,3 @@\n \
                pub fn add(a: u32, b: u32) -> u32 {\n-    a - b\n+    a + b\n }\n";
    for (format, answer) in [
        (EditFormat::WholeFile, whole(&[("src/lib.rs", FIXED)])),
        (EditFormat::SearchReplace, Untrusted::new(replaced)),
        (EditFormat::UnifiedDiff, Untrusted::new(diff)),
    ] {
        let fixup = propose_fixup(&answer, format, &shown, &policy()).unwrap();
        assert_eq!(
            String::from_utf8(fixup.diff.clone()).unwrap(),
            diff,
            "{format:?}"
        );
        let [file] = &fixup.files[..] else {
            panic!("{:?}", fixup.files)
        };
        assert_eq!(file.path, "src/lib.rs");
        assert_eq!(file.before, Some(Digest::compute(LIB.as_bytes())));
        assert_eq!(file.after, Some(Digest::compute(FIXED.as_bytes())));
        let changes = fixup_changes(&fixup.diff).unwrap();
        assert_eq!(
            describe_fixup(&changes),
            "- `src/lib.rs`: changed, 1 line added, 1 line removed\n"
        );
    }
}

#[test]
fn dropped_function_is_restored_with_warning() {
    let twice = "\npub fn twice(a: u32) -> u32 {\n    add(a, a)\n}\n";
    let shown = files(&[("src/lib.rs", &format!("{LIB}{twice}"))]);
    let fixup = propose_fixup(
        &whole(&[("src/lib.rs", FIXED)]),
        EditFormat::WholeFile,
        &shown,
        &policy(),
    )
    .unwrap();
    let patch = crucible_patch::parse(&fixup.diff).unwrap();
    let changed = &patch.files[0];
    assert_eq!(
        (patch.files.len(), changed.added(), changed.removed()),
        (1, 1, 1)
    );
    let [finding] = fixup.verdict.findings() else {
        panic!("{:?}", fixup.verdict)
    };
    assert_eq!(
        (finding.code.as_str(), finding.hint.contains("twice")),
        ("answer-spliced", true),
        "{finding}"
    );
    assert_eq!(
        fixup.files[0].after,
        Some(Digest::compute(format!("{FIXED}{twice}").as_bytes()))
    );
    // In a file that cannot be parsed into definitions nothing is restored; the diff shows what is
    // missing.
    let shown = files(&[("a.txt", "one\ntwo\n")]);
    let fixup = propose_fixup(
        &whole(&[("a.txt", "one\n")]),
        EditFormat::WholeFile,
        &shown,
        &policy(),
    )
    .unwrap();
    assert_eq!(fixup.verdict.findings(), []);
}

#[test]
fn fixup_outside_policy_is_refused() {
    let shown = [
        ("tests/it.rs", "a\n"),
        ("Cargo.toml", "a\n"),
        ("Cargo.lock", "a\n"),
        (".github/workflows/ci.yml", "a\n"),
        (".gitignore", "a\n"),
        (".crucible/config.toml", "a\n"),
        ("key.pem", "a\n"),
    ];
    let all = files(&shown);
    for (path, code) in [
        ("../outside.rs", "answer-bad-path"),
        ("src/../../outside.rs", "answer-bad-path"),
        ("/etc/passwd", "answer-bad-path"),
        (".git/hooks/pre-commit", "answer-bad-path"),
        ("sub/.GIT/config", "answer-bad-path"),
        (".crucible/config.toml", "patch-path-denied"),
        (".Crucible/config.toml", "patch-path-denied"),
        ("tests/it.rs", "patch-test-edited"),
        ("Cargo.toml", "patch-manifest-edited"),
        ("Cargo.lock", "patch-lockfile-edited"),
        (".github/workflows/ci.yml", "patch-ci-edited"),
        (".gitignore", "patch-git-attributes"),
        ("key.pem", "patch-suffix-denied"),
        ("src/new.rs", "patch-new-file-unnamed"),
    ] {
        let answer = whole(&[(path, "b\n")]);
        let verdict = propose_fixup(&answer, EditFormat::WholeFile, &all, &policy()).unwrap_err();
        assert!(codes(&verdict).contains(&code), "{path}: {verdict:?}");
    }
    // The user can name most of them. Crucible's own directory cannot be named in any spelling.
    for (path, lifted) in [
        ("tests/it.rs", true),
        ("Cargo.toml", true),
        (".github/workflows/ci.yml", true),
        ("src/new.rs", true),
        (".crucible/config.toml", false),
        (".CRUCIBLE/config.toml", false),
        ("sub/.crucible/config.toml", false),
    ] {
        let result = propose_fixup(
            &whole(&[(path, "b\n")]),
            EditFormat::WholeFile,
            &all,
            &naming(&[path]),
        );
        assert_eq!(result.is_ok(), lifted, "{path}: {result:?}");
    }
}

#[test]
fn model_diff_is_judged_in_original_form() {
    let shown = files(&[("src/a.rs", "a\n"), ("src/b.rs", "b\n")]);
    let head = |path: &str| format!("diff --git a/{path} b/{path}\n");
    let edit = "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1 +1 @@\n-a\n+x\n";
    for (diff, code) in [
        (format!("{}old mode 100644\nnew mode 100755\n{edit}", head("src/a.rs")), "patch-mode-change"),
        (
            format!("{}new file mode 120000\n--- /dev/null\n+++ b/src/l.rs\n@@ -0,0 +1 @@\n+/etc\n", head("src/l.rs")),
            "patch-symlink",
        ),
        (
            format!("{}deleted file mode 100644\n--- a/src/a.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", head("src/a.rs")),
            "patch-deletes-file",
        ),
        (
            "diff --git a/src/a.rs b/src/c.rs\nsimilarity index 100%\nrename from src/a.rs\nrename to src/c.rs\n".to_owned(),
            "patch-deletes-file",
        ),
        (format!("{}{edit}", head("src/a.rs")).replace("src/a.rs", "src/gone.rs"), "answer-unknown-file"),
        (format!("Here it is:\n{}{edit}", head("src/a.rs")), "answer-text-around-diff"),
    ] {
        let answer = Untrusted::new(diff.clone());
        let verdict = propose_fixup(&answer, EditFormat::UnifiedDiff, &shown, &policy()).unwrap_err();
        assert!(codes(&verdict).contains(&code), "{diff}: {verdict:?}");
        // A fixup writes contents: naming the path allows neither a link nor a mode.
        if ["patch-mode-change", "patch-symlink"].contains(&code) {
            let named = naming(&["src/a.rs", "src/l.rs"]);
            let verdict = propose_fixup(&answer, EditFormat::UnifiedDiff, &shown, &named).unwrap_err();
            assert!(codes(&verdict).contains(&code), "{diff}: {verdict:?}");
        }
    }
}

#[test]
fn allowed_renames_become_plain_file_changes() {
    let shown = files(&[("src/a.rs", "a\n"), ("src/b.rs", "b\n")]);
    let named = naming(&["src/a.rs", "src/c.rs", "src/d.rs", "src/b.rs"]);
    let diff = "diff --git a/src/a.rs b/src/c.rs\nsimilarity index 100%\nrename from src/a.rs\nrename to src/c.rs\n\
                diff --git a/src/b.rs b/src/d.rs\nsimilarity index 100%\ncopy from src/b.rs\ncopy to src/d.rs\n";
    let fixup = propose_fixup(
        &Untrusted::new(diff),
        EditFormat::UnifiedDiff,
        &shown,
        &named,
    )
    .unwrap();
    let files: Vec<(&str, Option<Digest>, Option<Digest>)> = fixup
        .files
        .iter()
        .map(|file| (file.path.as_str(), file.before, file.after))
        .collect();
    let (a, b) = (Some(Digest::compute(b"a\n")), Some(Digest::compute(b"b\n")));
    assert_eq!(
        files,
        [
            ("src/a.rs", a, None),
            ("src/c.rs", None, a),
            ("src/d.rs", None, b)
        ]
    );
}

#[test]
fn secrets_and_empty_changes_are_refused() {
    let token = made_up_token();
    let with_token = format!("let key = \"{token}\";\n");
    let marked = "let key = \"[secret:github-token]\";\n";
    for (content, code) in [
        (with_token.as_str(), "fixup-secret"),
        (marked, "fixup-secret"),
        ("a\n", "fixup-unchanged"),
    ] {
        let shown = files(&[("src/a.rs", "a\n")]);
        let result = propose_fixup(
            &whole(&[("src/a.rs", content)]),
            EditFormat::WholeFile,
            &shown,
            &policy(),
        );
        assert_eq!(codes(&result.unwrap_err()), [code], "{content}");
    }
    // A mark that the file already had is ordinary text.
    let shown = files(&[("src/a.rs", marked)]);
    let stored_text = format!("{marked}// kept\n");
    propose_fixup(
        &whole(&[("src/a.rs", &stored_text)]),
        EditFormat::WholeFile,
        &shown,
        &policy(),
    )
    .unwrap();
}

#[test]
fn pending_fixup_is_of_newest_real_success() {
    let fixture = Fixture::new(&[("a.rs", "a\n")]);
    let fixup = fixture.pending(&[("a.rs", "b\n")], &policy());
    let at = "2024-12-01T10:00:00Z".parse().unwrap();
    let mut state = done_up_to(Some(PhaseId::Fixup), at);
    state.spec = "x".parse().unwrap();
    let waits = |state: &SpecState| pending_fixup(state, &fixture.store());
    assert_eq!(waits(&state).unwrap(), None, "a success without a fixup");
    let diff = fixture.store().dir().join("artifacts/40-fixup.diff");
    std::fs::create_dir_all(diff.parent().unwrap()).unwrap();
    std::fs::write(&diff, &fixup.diff).unwrap();
    let record = FileRecord {
        path: FIXUP_DIFF.to_owned(),
        sha256: Digest::compute(&fixup.diff),
        bytes: fixup.diff.len() as u64,
    };
    let receipt_of = |stage, patch| {
        Some(FixupReceipt {
            stage,
            patch,
            files: fixup.files.clone(),
        })
    };
    let set = |state: &mut SpecState, fixup_receipt: Option<FixupReceipt>| {
        state.phases[4].last_success.as_mut().unwrap().phases[0].fixups = fixup_receipt;
    };
    set(
        &mut state,
        receipt_of(FixupStage::Pending, Some(record.clone())),
    );
    let found = waits(&state).unwrap().unwrap();
    assert_eq!(
        (found.diff, found.files),
        (fixup.diff.clone(), fixup.files.clone())
    );
    for stage in [FixupStage::Applied, FixupStage::None] {
        let mut other = state.clone();
        set(&mut other, receipt_of(stage, Some(record.clone())));
        assert_eq!(waits(&other).unwrap(), None);
    }
    for forge in [
        |receipt: &mut SpecReceipt| receipt.dry_run = true,
        |receipt: &mut SpecReceipt| receipt.phases[0].status = PhaseStatus::Failed,
        |receipt: &mut SpecReceipt| receipt.phases[0].phase_id = "review".to_owned(),
    ] {
        let mut other = state.clone();
        forge(other.phases[4].last_success.as_mut().unwrap());
        assert_eq!(waits(&other).unwrap(), None);
    }
    let blocked = |state: &SpecState, why: &str| {
        let error = waits(state).unwrap_err().to_string();
        assert!(
            error.contains(why) && error.contains("crucible resume x --phase fixup"),
            "{error}"
        );
    };
    let mut unnamed = state.clone();
    set(&mut unnamed, receipt_of(FixupStage::Pending, None));
    blocked(&unnamed, "is not named by its receipt");
    std::fs::write(&diff, [&fixup.diff[..], b"\n"].concat()).unwrap();
    blocked(&state, "was changed after");
    std::fs::remove_file(&diff).unwrap();
    blocked(&state, "is gone");
}

/// A journal of a process that was killed between the two files of the fixup, with its temporary files.
fn killed(
    fixture: &Fixture,
    purpose: Digest,
    edits: &[(&str, Option<&str>, Option<&str>)],
) -> String {
    let token = "0".repeat(32);
    let digest = |text: &Option<&str>| text.map(|text| Digest::compute(text.as_bytes()));
    let entries: Vec<_> = edits
        .iter()
        .map(|(path, before, after)| serde_json::json!({"path": path, "before": digest(before), "after": digest(after)}))
        .collect();
    for (index, (path, _, after)) in edits.iter().enumerate() {
        let sibling_path =
            PathBuf::from(path).with_file_name(format!(".crucible-edit-{token}-{index}.new"));
        fixture.put(sibling_path.to_str().unwrap(), after.unwrap_or_default());
    }
    serde_json::json!({
        "schema_version": "crucible-tree-edit-v1", "stage": "ready", "purpose": purpose, "token": token, "made": [],
        "entries": entries,
    })
    .to_string()
}

#[test]
fn interrupted_application_is_recovered_first() {
    let fixture = Fixture::new(&[("a.rs", "a\n"), ("b.rs", "b\n")]);
    let fixup = fixture.pending(&[("a.rs", "x\n"), ("b.rs", "y\n")], &policy());
    let edits = [
        ("a.rs", Some("a\n"), Some("x\n")),
        ("b.rs", Some("b\n"), Some("y\n")),
    ];
    let record = killed(&fixture, Digest::compute(&fixup.diff), &edits);
    std::fs::create_dir_all(fixture.records()).unwrap();
    std::fs::write(fixture.record(), record).unwrap();
    fixture.put("a.rs", "x\n");
    fixture.put(&format!(".crucible-edit-{}-0.new", "0".repeat(32)), "a\n");
    let applied = fixture
        .apply(&fixup, &policy(), LinkPolicy::Refuse)
        .unwrap();
    assert_eq!(applied.files, fixup.files);
    let findings: Vec<_> = applied
        .verdict
        .findings()
        .iter()
        .map(|finding| (finding.code.as_str(), finding.subject.as_str()))
        .collect();
    assert_eq!(
        findings,
        [("fixup-recovered", "a.rs"), ("fixup-recovered", "b.rs")]
    );
    let names: Vec<String> = fixture.tree().into_keys().collect();
    assert_eq!(
        names,
        [
            "project",
            "project/.crucible",
            "project/a.rs",
            "project/b.rs"
        ]
    );
    assert_eq!(
        (fixture.get("a.rs").as_str(), fixture.get("b.rs").as_str()),
        ("x\n", "y\n")
    );
    assert!(!fixture.record().exists());
}

#[test]
fn journal_in_project_is_ignored() {
    let fixture = Fixture::new(&[("a.rs", "a\n"), ("tests/it.rs", "t\n")]);
    let fixup = fixture.pending(&[("a.rs", "x\n")], &policy());
    let evil = [
        (".github/workflows/evil.yml", None, Some("on: push\n")),
        ("tests/it.rs", Some("t\n"), None),
    ];
    let record = killed(&fixture, Digest::compute(&fixup.diff), &evil);
    let lock = |fixture: &Fixture| fixture.store().lock("test", LockClaim::IfFree).unwrap();
    for place in ["context/fixup-journal.json", "fixup-journal.json"] {
        fixture.put(&format!(".crucible/specs/x/{place}"), &record);
    }
    let recovered = recover_fixup(&fixture.project(), &lock(&fixture)).unwrap();
    assert_eq!(recovered, crucible_repo::RecoveredEdit::nothing());
    fixture
        .apply(&fixup, &policy(), LinkPolicy::Refuse)
        .unwrap();
    assert_eq!(
        (
            fixture.get("a.rs").as_str(),
            fixture.get("tests/it.rs").as_str()
        ),
        ("x\n", "t\n")
    );
    assert!(!fixture.root().join(".github/workflows/evil.yml").exists());
}

#[test]
fn journal_of_other_fixup_is_refused() {
    let (own, other) = (
        ("a.rs", Some("a\n"), Some("x\n")),
        ("b.rs", Some("b\n"), Some("y\n")),
    );
    for (is_of_the_diff, edits) in [
        (true, vec![own, other]),
        (true, vec![("b.rs", Some("a\n"), Some("x\n"))]),
        (true, vec![("a.rs", Some("a\n"), Some("y\n"))]),
        (true, vec![("a.rs", Some("a\n"), None)]),
        (false, vec![own]),
    ] {
        let fixture = Fixture::new(&[("a.rs", "a\n"), ("b.rs", "b\n")]);
        let fixup = fixture.pending(&[("a.rs", "x\n")], &policy());
        let purpose = if is_of_the_diff {
            Digest::compute(&fixup.diff)
        } else {
            Digest::compute(b"another")
        };
        let record = killed(&fixture, purpose, &edits);
        std::fs::create_dir_all(fixture.records()).unwrap();
        std::fs::write(fixture.record(), record).unwrap();
        let before = fixture.tree();
        let lock = fixture.store().lock("test", LockClaim::IfFree).unwrap();
        for error in [
            recover_fixup(&fixture.project(), &lock)
                .map(drop)
                .unwrap_err(),
            apply_fixup(
                &fixture.project(),
                &lock,
                &fixup,
                &FixupChoice::unguarded(policy()),
            )
            .map(drop)
            .unwrap_err(),
        ] {
            let message = error.to_string();
            assert!(
                matches!(error, SpecError::FixupBrokenOff { .. }),
                "{message}"
            );
            assert!(!message.contains("no file was changed"), "{message}");
            assert!(
                message.contains(edits[0].0) && message.contains("remove it"),
                "{message}"
            );
        }
        drop(lock);
        assert_eq!(fixture.tree(), before, "{edits:?}");
    }
}

#[test]
fn lost_lock_changes_no_file() {
    let fixture = Fixture::new(&[("a.rs", "a\n")]);
    let fixup = fixture.pending(&[("a.rs", "b\n")], &policy());
    let old = fixture.store().lock("old", LockClaim::IfFree).unwrap();
    let new = fixture.store().lock("new", LockClaim::Force).unwrap();
    let apply = |lock| {
        apply_fixup(
            &fixture.project(),
            lock,
            &fixup,
            &FixupChoice::unguarded(policy()),
        )
    };
    assert!(matches!(apply(&old), Err(SpecError::LockLost)));
    assert_eq!(
        (fixture.get("a.rs").as_str(), fixture.record().exists()),
        ("a\n", false)
    );
    apply(&new).unwrap();
    assert_eq!(fixture.get("a.rs"), "b\n");
}

#[test]
fn applied_fixup_keeps_line_endings_and_modes() {
    let fixture = Fixture::new(&[
        ("src/a.rs", "a\r\nb\r\n"),
        ("run.sh", "echo\nexit 1"),
        ("other.txt", "o"),
    ]);
    std::fs::set_permissions(
        fixture.root().join("run.sh"),
        PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let fixup = fixture.pending(
        &[("src/a.rs", "a\nc\n"), ("run.sh", "echo\nexit 0\n")],
        &policy(),
    );
    let before = fixture.tree();
    let applied = fixture
        .apply(&fixup, &policy(), LinkPolicy::Refuse)
        .unwrap();
    assert_eq!(applied.files, fixup.files);
    assert_eq!(fixture.get("src/a.rs"), "a\r\nc\r\n");
    assert_eq!(fixture.get("run.sh"), "echo\nexit 0");
    let mode = fixture
        .root()
        .join("run.sh")
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o755);
    for file in &applied.files {
        assert_eq!(
            file.after,
            Some(Digest::compute(fixture.get(&file.path).as_bytes()))
        );
    }
    let mut expected = before;
    expected.insert("project/src/a.rs".to_owned(), "a\r\nc\r\n".to_owned());
    expected.insert("project/run.sh".to_owned(), "echo\nexit 0".to_owned());
    assert_eq!(fixture.tree(), expected);
    // If the process was killed before the receipt, applying again changes nothing.
    let second_applied_fixup = fixture
        .apply(&fixup, &policy(), LinkPolicy::Refuse)
        .unwrap();
    assert_eq!(second_applied_fixup.files, applied.files);
    assert_eq!(fixture.tree(), expected);
}

#[test]
fn changed_file_blocks_whole_fixup() {
    let fixture = Fixture::new(&[("a.rs", "a\n"), ("b.rs", "b\n")]);
    let fixup = fixture.pending(&[("a.rs", "x\n"), ("b.rs", "y\n")], &policy());
    fixture.put("b.rs", "mine\n");
    let before = fixture.tree();
    let error = fixture
        .apply(&fixup, &policy(), LinkPolicy::Refuse)
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "the fixup cannot be applied: b.rs has changed since the fixup was made; run `crucible resume x --phase \
         fixup` for a new one; no file was changed"
    );
    assert_eq!(fixture.tree(), before);
    std::fs::remove_file(fixture.root().join("b.rs")).unwrap();
    assert!(matches!(
        fixture.apply(&fixup, &policy(), LinkPolicy::Refuse),
        Err(SpecError::FixupBlocked { .. })
    ));
    assert_eq!(fixture.get("a.rs"), "a\n");
}

#[test]
fn mismatched_diff_is_not_applied() {
    let fixture = Fixture::new(&[("a.rs", "a\n"), ("b.rs", "b\n"), ("tests/it.rs", "t\n")]);
    let fixup = fixture.pending(&[("a.rs", "x\n")], &policy());
    let other = fixture.pending(&[("b.rs", "y\n")], &policy());
    let longer = fixture.pending(&[("a.rs", "x\n"), ("b.rs", "y\n")], &policy());
    let test = fixture.pending(&[("tests/it.rs", "u\n")], &naming(&["tests/it.rs"]));
    let before = fixture.tree();
    let mut false_digest = fixup.clone();
    false_digest.files[0].after = Some(Digest::compute(b"z\n"));
    for forged in [
        PendingFixup {
            diff: other.diff.clone(),
            ..fixup.clone()
        },
        PendingFixup {
            diff: longer.diff.clone(),
            ..fixup.clone()
        },
        PendingFixup {
            files: longer.files.clone(),
            ..fixup.clone()
        },
        false_digest,
    ] {
        let result = fixture.apply(&forged, &policy(), LinkPolicy::Refuse);
        assert!(
            matches!(result, Err(SpecError::FixupBlocked { .. })),
            "{result:?}"
        );
    }
    for refused in [
        PendingFixup {
            diff: b"no diff".to_vec(),
            ..fixup.clone()
        },
        test.clone(),
    ] {
        let result = fixture.apply(&refused, &policy(), LinkPolicy::Refuse);
        assert!(
            matches!(result, Err(SpecError::FixupRefused { .. })),
            "{result:?}"
        );
    }
    let narrow = fixup_policy(1, 400, Vec::new());
    let result = fixture.apply(&longer, &narrow, LinkPolicy::Refuse);
    assert!(
        matches!(result, Err(SpecError::FixupRefused { .. })),
        "{result:?}"
    );
    assert_eq!(fixture.tree(), before);
    fixture
        .apply(&test, &naming(&["tests/it.rs"]), LinkPolicy::Refuse)
        .unwrap();
    assert_eq!(fixture.get("tests/it.rs"), "u\n");
}

#[test]
fn links_follow_the_link_policy() {
    let fixture = Fixture::new(&[
        ("src/real.rs", "a\n"),
        ("tests/it.rs", "a\n"),
        ("plain.rs", "p\n"),
    ]);
    symlink("src/real.rs", fixture.root().join("link.rs")).unwrap();
    symlink("tests/it.rs", fixture.root().join("innocent.rs")).unwrap();
    symlink("tests", fixture.root().join("lib")).unwrap();
    let fixup = fixture.pending(&[("link.rs", "b\n"), ("plain.rs", "q\n")], &policy());
    let before = fixture.tree();
    let error = fixture
        .apply(&fixup, &policy(), LinkPolicy::Refuse)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("link.rs: it is a symbolic link") && error.contains("--allow-links"),
        "{error}"
    );
    assert_eq!(fixture.tree(), before);

    for changes in [[("innocent.rs", "b\n")], [("lib/it.rs", "b\n")]] {
        let test = fixture.pending(&changes, &policy());
        let result = fixture.apply(&test, &policy(), LinkPolicy::InsideProject);
        let Err(SpecError::FixupRefused { verdict }) = result else {
            panic!("{result:?}")
        };
        assert!(
            codes(&verdict).contains(&"patch-test-edited"),
            "{verdict:?}"
        );
        assert_eq!(fixture.tree(), before);
    }
    let new = fixture.pending(&[("lib/new.rs", "b\n")], &naming(&["lib/new.rs"]));
    let result = fixture.apply(&new, &naming(&["lib/new.rs"]), LinkPolicy::InsideProject);
    assert!(
        matches!(result, Err(SpecError::FixupRefused { .. })),
        "{result:?}"
    );

    let applied = fixture
        .apply(&fixup, &policy(), LinkPolicy::InsideProject)
        .unwrap();
    assert_eq!(
        (
            fixture.get("src/real.rs").as_str(),
            fixture.get("plain.rs").as_str()
        ),
        ("b\n", "q\n")
    );
    assert!(fixture.root().join("link.rs").is_symlink());
    let notes: Vec<&str> = applied
        .verdict
        .findings()
        .iter()
        .map(|finding| finding.code.as_str())
        .collect();
    assert_eq!(notes, ["fixup-link-followed"]);
}

#[test]
fn linked_spec_directory_gets_no_journal() {
    let fixture = Fixture::new(&[("a.rs", "a\n")]);
    let fixup = fixture.pending(&[("a.rs", "b\n")], &policy());
    let elsewhere = fixture.dir.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, fixture.root().join(".crucible/specs/x/context")).unwrap();
    let result = fixture.apply(&fixup, &policy(), LinkPolicy::Refuse);
    assert!(matches!(result, Err(SpecError::Fs(_))), "{result:?}");
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
    assert_eq!(fixture.get("a.rs"), "a\n");
}

#[test]
fn description_stays_list_for_any_path() {
    let change = FixupChange {
        path: "a`b\n- **x**\u{202e}".to_owned(),
        kind: FixupChangeKind::New,
        added: 2,
        removed: 0,
    };
    let text = describe_fixup(&[change]);
    assert_eq!(
        text,
        "- `a\u{2019}b\\u{a}- **x**\\u{202e}`: new, 2 lines added, 0 lines removed\n"
    );
}

/// Answers of every kind: noise, and edits of existing, missing and outside files.
fn answers() -> impl Strategy<Value = (EditFormat, String)> {
    let path = prop_oneof![
        Just("src/a.rs"),
        Just("src/b.rs"),
        Just("src/new.rs"),
        Just("../outside.txt"),
        Just(".git/config"),
        Just(".crucible/config.toml"),
        Just("tests/it.rs"),
    ];
    let content = "([a-c+ -]{0,4}\r?\n){0,4}";
    let whole = prop::collection::vec((path.clone(), content), 0..3).prop_map(|files| {
        let file =
            |(path, content): &(&str, String)| format!("FILE: {path}\n````\n{content}````\n");
        (
            EditFormat::WholeFile,
            files.iter().map(file).collect::<String>(),
        )
    });
    let replace = (path.clone(), "[a-c]\n", "[a-c]\n").prop_map(|(path, search, replace)| {
        let text = format!("{path}\n<<<<<<< SEARCH\n{search}=======\n{replace}>>>>>>> REPLACE\n");
        (EditFormat::SearchReplace, text)
    });
    let diff = (path, "[a-c]", "[a-c]").prop_map(|(path, old, new)| {
        let text = format!(
            "diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,2 +1,2 @@\n-{old}\n+{new}\n b\n"
        );
        (EditFormat::UnifiedDiff, text)
    });
    let noise = (
        "\\PC{0,80}",
        prop::sample::select(
            &[
                EditFormat::WholeFile,
                EditFormat::SearchReplace,
                EditFormat::UnifiedDiff,
            ][..],
        ),
    )
        .prop_map(|(text, format)| (format, text));
    prop_oneof![4 => whole, 2 => replace, 2 => diff, 1 => noise]
}

mod properties {
    use crucible_testkit::expensive_cases;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(expensive_cases()))]

        /// For any answer, only applying changes the project, and only the files of the diff.
        #[test]
        fn only_applying_changes_files_named_in_diff((format, answer) in answers()) {
            let fixture = Fixture::new(&[
                ("src/a.rs", "a\nb\n"), ("src/b.rs", "b\n"), ("tests/it.rs", "a\nb\n"), (".git/config", "a\nb\n"),
                (".crucible/config.toml", "a\nb\n"),
            ]);
            std::fs::write(fixture.dir.path().join("outside.txt"), "a\nb\n").unwrap();
            let policy = naming(&["src/new.rs", ".crucible/config.toml"]);
            let shown = fixture.read(&["src/a.rs", "src/b.rs", "tests/it.rs"]);
            let before = fixture.tree();
            let result = propose_fixup(&Untrusted::new(answer), format, &shown, &policy);
            prop_assert_eq!(&fixture.tree(), &before);
            let Ok(proposed) = result else { return Ok(()) };
            prop_assert!(proposed.verdict.passes());
            let allowed = ["src/a.rs", "src/b.rs", "src/new.rs"];
            let touched: Vec<String> = proposed.files.iter().map(|file| file.path.clone()).collect();
            prop_assert!(!touched.is_empty() && touched.iter().all(|path| allowed.contains(&path.as_str())), "{:?}", touched);
            let fixup = PendingFixup { receipt_id: String::new(), diff: proposed.diff, files: proposed.files };
            let applied = fixture.apply(&fixup, &policy, LinkPolicy::Refuse).unwrap();
            let mut after = fixture.tree();
            for file in &applied.files {
                let content = after.remove(&format!("project/{}", file.path));
                prop_assert_eq!(content.map(|content| Digest::compute(content.as_bytes())), file.after);
            }
            let mut rest = before;
            rest.retain(|path, _| !touched.iter().any(|touched| *path == format!("project/{touched}")));
            prop_assert_eq!(after, rest);
        }
    }
}
