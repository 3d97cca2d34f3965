//! Tests of the bundle: its content, what it never contains, and that its bytes are reproducible.

#![expect(clippy::disallowed_methods, reason = "the tests plant links by hand")]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use crucible_host::fs as host;

use super::manifest::BundleManifest;
use super::*;

struct Run(tempfile::TempDir);

impl Run {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn with(self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        let path = self.0.path().join(name);
        host::create_dir_all(path.parent().unwrap()).unwrap();
        host::write_atomic(&path, bytes.as_ref()).unwrap();
        self
    }

    fn bundle(&self) -> Vec<u8> {
        failure_bundle(self.0.path(), &|_| true).unwrap()
    }

    fn open(&self) -> Opened {
        let mut archive = zip::ZipArchive::new(Cursor::new(self.bundle())).unwrap();
        let mut files = BTreeMap::new();
        let mut order = Vec::new();
        for index in 0..archive.len() {
            let mut file = archive.by_index(index).unwrap();
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).unwrap();
            let name = file.name().unwrap().into_owned();
            order.push(name.clone());
            files.insert(name, bytes);
        }
        let manifest = serde_json::from_slice(&files[MANIFEST_NAME]).unwrap();
        Opened {
            files,
            order,
            manifest,
        }
    }
}

struct Opened {
    files: BTreeMap<String, Vec<u8>>,
    order: Vec<String>,
    manifest: BundleManifest,
}

impl Opened {
    fn text(&self, name: &str) -> &str {
        std::str::from_utf8(&self.files[name]).unwrap()
    }

    fn left_out(&self) -> Vec<(&str, &str)> {
        self.manifest
            .left_out
            .iter()
            .map(|row| (row.path.as_str(), row.reason.as_str()))
            .collect()
    }
}

/// In two parts, so that no scanner reports this file.
fn secret() -> String {
    format!("{}{}", "AKIA", "ZQ3DRSTUVWXY2345")
}

fn full_run() -> Run {
    Run::new()
        .with("TRACE.md", "# trace\n")
        .with("events.jsonl", "{}\n")
        .with("artifacts/PLAN.md", "Status: SIGNED\n")
        .with("artifacts/diff.patch", "diff --git a/a b/a\n")
        .with("artifacts/verify_report.json", "{}")
        .with("reviews/review_patch.md", "Verdict: BLOCK\n")
        .with("outbox/001_patch.md", "write to: x\n")
        .with("logs/verify.stdout.log", "out\n")
        .with("attempts/001/answer.txt", "use this\n")
        .with("cassette.jsonl", "{}\n")
        .with("run.json", "{}\n")
        .with("lock", "not taken\n")
}

#[test]
fn bundle_has_all_required_files() {
    let opened = full_run().open();
    assert_eq!(
        opened.order,
        [
            "MANIFEST.json",
            "TRACE.md",
            "artifacts/PLAN.md",
            "artifacts/diff.patch",
            "artifacts/verify_report.json",
            "attempts/001/answer.txt",
            "cassette.jsonl",
            "events.jsonl",
            "logs/verify.stdout.log",
            "outbox/",
            "outbox/001_patch.md",
            "reviews/",
            "reviews/review_patch.md",
            "run.json",
        ]
    );
    assert_eq!(opened.text("artifacts/diff.patch"), "diff --git a/a b/a\n");
    for entry in &opened.manifest.entries {
        assert_eq!(entry.sha256, Digest::compute(&opened.files[&entry.path]));
        assert_eq!(entry.origin, BundleOrigin::File);
    }
    assert!(opened.left_out().is_empty());
}

#[test]
fn missing_file_has_explained_placeholder() {
    let opened = Run::new().open();
    for name in [
        "TRACE.md",
        "events.jsonl",
        "artifacts/verify_report.json",
        "artifacts/PLAN.md",
        "artifacts/diff.patch",
    ] {
        assert!(opened.text(name).starts_with("placeholder: "), "{name}");
    }
    assert!(
        opened.order.contains(&"outbox/".to_owned())
            && opened.order.contains(&"reviews/".to_owned())
    );
    assert!(
        opened
            .manifest
            .entries
            .iter()
            .all(|entry| entry.origin == BundleOrigin::Placeholder)
    );
}

#[test]
fn bundle_bytes_are_reproducible() {
    let one = full_run();
    std::thread::sleep(std::time::Duration::from_millis(20));
    let other = Run::new()
        .with("logs/verify.stdout.log", "out\n")
        .with("outbox/001_patch.md", "write to: x\n")
        .with("reviews/review_patch.md", "Verdict: BLOCK\n")
        .with("artifacts/verify_report.json", "{}")
        .with("artifacts/diff.patch", "diff --git a/a b/a\n")
        .with("artifacts/PLAN.md", "Status: SIGNED\n")
        .with("events.jsonl", "{}\n")
        .with("run.json", "{}\n")
        .with("cassette.jsonl", "{}\n")
        .with("attempts/001/answer.txt", "use this\n")
        .with("TRACE.md", "# trace\n");
    host::set_mode(&other.0.path().join("TRACE.md"), 0o600).unwrap();
    assert_eq!(one.bundle(), other.bundle());
}

#[test]
fn special_files_and_bundles_are_left_out() {
    let run = full_run().with("artifacts/failure_bundle.zip", "zip");
    let root = run.0.path();
    let outside = tempfile::tempdir().unwrap();
    host::write_atomic(&outside.path().join("private"), b"outside").unwrap();
    symlink(outside.path().join("private"), root.join("logs/link")).unwrap();
    symlink(outside.path(), root.join("logs/linked-dir")).unwrap();
    symlink("/etc/passwd", root.join("reviews/passwd")).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(root.join("logs/socket")).unwrap();
    let opened = run.open();
    let link = "is a link, a device or a pipe";
    assert_eq!(
        opened.left_out(),
        [
            ("artifacts/failure_bundle.zip", "is a bundle itself"),
            ("logs/link", link),
            ("logs/linked-dir", link),
            ("logs/socket", link),
            ("reviews/passwd", link),
        ]
    );
    assert!(
        !opened
            .files
            .values()
            .any(|bytes| bytes.windows(7).any(|window| window == b"outside"))
    );
}

#[test]
fn linked_directory_is_left_out() {
    let run = Run::new();
    let outside = tempfile::tempdir().unwrap();
    host::write_atomic(&outside.path().join("a"), b"outside").unwrap();
    symlink(outside.path(), run.0.path().join("outbox")).unwrap();
    symlink(outside.path().join("a"), run.0.path().join("TRACE.md")).unwrap();
    let opened = run.open();
    assert!(opened.text("TRACE.md").starts_with("placeholder"));
    assert_eq!(opened.left_out().len(), 2);
}

#[test]
fn secrets_are_replaced_in_every_kind_of_file() {
    let text = format!("key = \"{}\"\n", secret());
    let run = full_run()
        .with("logs/a.log", &text)
        .with("outbox/b.md", &text)
        .with(
            "artifacts/c.bin",
            [b"\xff\xfe\0".as_slice(), text.as_bytes()].concat(),
        )
        .with("events.jsonl", &text);
    let opened = run.open();
    let needle = secret();
    for (name, bytes) in &opened.files {
        assert!(
            !bytes
                .windows(needle.len())
                .any(|window| window == needle.as_bytes()),
            "{name}"
        );
    }
    let redacted: Vec<&str> = opened
        .manifest
        .entries
        .iter()
        .filter(|entry| entry.redacted == 1)
        .map(|entry| entry.path.as_str())
        .collect();
    assert_eq!(
        redacted,
        [
            "artifacts/c.bin",
            "events.jsonl",
            "logs/a.log",
            "outbox/b.md"
        ]
    );
}

#[test]
fn long_file_is_cut_and_marked() {
    let lines: String = (0..500_000).map(|n| format!("line number {n}\n")).collect();
    let run = full_run()
        .with("logs/long.log", &lines)
        .with("artifacts/long.txt", &lines);
    let opened = run.open();
    assert!(
        opened
            .text("logs/long.log")
            .ends_with("line number 499999\n")
    );
    assert!(
        opened
            .text("artifacts/long.txt")
            .starts_with("line number 0\n")
    );
    for (name, stored_text) in [
        ("logs/long.log", "end"),
        ("artifacts/long.txt", "beginning"),
    ] {
        let entry = opened
            .manifest
            .entries
            .iter()
            .find(|entry| entry.path == name)
            .unwrap();
        assert_eq!(
            entry.cut,
            Some(BundleCut {
                kept: stored_text.to_owned(),
                of_bytes: lines.len() as u64
            })
        );
        assert_eq!(entry.size, 4 * 1024 * 1024);
    }
}

#[test]
fn secret_at_cut_does_not_leak() {
    let needle = secret();
    for shift in [5, 15] {
        let mut log = vec![b'\n'; 5 * 1024 * 1024];
        for boundary in [4 * 1024 * 1024, log.len() - 4 * 1024 * 1024] {
            let at = boundary - shift;
            log[at..at + needle.len()].copy_from_slice(needle.as_bytes());
        }
        let opened = full_run()
            .with("logs/a.log", &log)
            .with("artifacts/a.txt", &log)
            .open();
        for name in ["logs/a.log", "artifacts/a.txt"] {
            let part = &needle.as_bytes()[..4];
            assert!(
                !opened.files[name].windows(4).any(|window| window == part),
                "{name} {shift}"
            );
            let end = &needle.as_bytes()[needle.len() - 4..];
            assert!(
                !opened.files[name].windows(4).any(|window| window == end),
                "{name} {shift}"
            );
        }
    }
}

#[test]
fn odd_names_are_made_safe_and_stay_apart() {
    let run = full_run()
        .with("logs/a\\b", "1")
        .with("logs/a:b", "2")
        .with("logs/new\nline", "3");
    let opened = run.open();
    assert!(opened.files.contains_key("logs/a_b") && opened.files.contains_key("logs/a_b~2"));
    assert!(opened.files.contains_key("logs/new_line"));
}

#[test]
fn no_run_is_an_error() {
    assert!(matches!(
        failure_bundle(Path::new("/nowhere/at/all"), &|_| true),
        Err(BundleError::NoRun { .. })
    ));
}

#[test]
fn only_unrecorded_files_are_left_out() {
    let run = Run::new()
        .with("reviews/review_cost.md", "APPROVE")
        .with("reviews/review:cost.md", "planted");
    let unnamed = Path::new("reviews").join(OsStr::from_bytes(b"review_\xff.md"));
    host::write_atomic(&run.0.path().join(&unnamed), b"planted, too").unwrap();
    let planted = [PathBuf::from("reviews/review:cost.md"), unnamed];
    let bytes = failure_bundle(run.0.path(), &|path| {
        !planted.iter().any(|other| other == path)
    })
    .unwrap();
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
    let mut text = |name: &str| {
        let mut text = String::new();
        archive
            .by_name(name)
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        text
    };
    assert_eq!(text("reviews/review_cost.md"), "APPROVE");
    let manifest: BundleManifest = serde_json::from_str(&text(MANIFEST_NAME)).unwrap();
    let left_out = manifest
        .left_out
        .iter()
        .find(|gap| gap.path.contains("review_cost.md"))
        .unwrap();
    assert!(
        left_out.reason.contains("no event of the run"),
        "{left_out:?}"
    );
    assert_eq!(manifest.left_out.len(), 2, "{:?}", manifest.left_out);
    assert!(
        !manifest
            .entries
            .iter()
            .any(|entry| entry.path.contains('\u{fffd}')),
        "{:?}",
        manifest.entries
    );
}
