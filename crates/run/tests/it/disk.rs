//! A full disk: an error that says so, everything that was there is whole, and with space the run goes on.
//!
//! The disk is a small file system in memory, mounted where only this test sees it (a mount namespace, with a user
//! namespace of its own where the test is not root). At each event of a run it is filled to the last byte.
//!
//! Slow because each event takes a whole run, with its gates in the sandbox, to a full disk and on to its end.
#![expect(
    clippy::disallowed_methods,
    reason = "these tests fill a disk from a process of their own"
)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crucible_ledger::EventRecord;

use crate::common::{Along, Nothing, Ordinals, Place, Script, Story, Until, files_below, memory};

const PLACE: &str = "DISK_TEST_PLACE";
const DISK: &str = "DISK_TEST_DISK";

/// Fills the disk when the n-th event of the ledger has been recorded, once.
struct Filler {
    at: u64,
    ordinals: Ordinals,
    done: AtomicBool,
    disk: PathBuf,
    /// The files below `home` at that moment.
    seen: Mutex<BTreeMap<PathBuf, Vec<u8>>>,
    home: PathBuf,
}

impl Along for Filler {
    fn event(&self, event: &EventRecord) {
        if self.ordinals.ordinal(event) == Some(self.at) && !self.done.swap(true, Ordering::SeqCst)
        {
            *self.seen.lock().unwrap() = files_below(&self.home);
            fill(&self.disk);
        }
    }
}

fn fill(disk: &Path) {
    let mut filler = File::create(disk.join("filler")).unwrap();
    for size in [1 << 16, 1 << 12, 1] {
        let block = vec![0; size];
        while filler.write_all(&block).is_ok() {}
    }
}

fn drain(disk: &Path) {
    std::fs::remove_file(disk.join("filler")).unwrap();
}

/// One run on a disk that is full from its n-th event on.
fn full_at(n: u64, place: &Place, disk: &Path, expected: &Story) {
    place.clear();
    std::fs::create_dir_all(disk).unwrap();
    place.furnish();
    let model = Script::Lands.model();
    let filler = Arc::new(Filler {
        at: n,
        ordinals: Ordinals::default(),
        done: AtomicBool::new(false),
        disk: disk.to_owned(),
        seen: Mutex::default(),
        home: place.home(),
    });
    let outcome = place.drive(&model.base_url(), Until::Landed, filler.clone());
    let error = match outcome {
        Err(error) => error.to_string(),
        // After the last event nothing has to be written any more that could fail the run.
        Ok(state) => format!("no error, the run is {}", state.name()),
    };
    println!("full at event {n}: {error}");
    let is_last = n as usize == expected.steps.len();
    let says_so = ["no space left", "out of diskspace"]
        .iter()
        .any(|words| error.to_lowercase().contains(words));
    assert!(says_so || is_last, "full at event {n}: {error}");
    for (path, before) in filler.seen.lock().unwrap().iter() {
        assert_whole(place, path, before);
    }
    drain(disk);
    place
        .drive(&model.base_url(), Until::Landed, Arc::new(Nothing))
        .unwrap();
    place.assert_ended_like_but_for_calls_that_failed(expected);
    // An answer that arrived and could not be written down has to be asked for again.
    let request_count = model.requests().len();
    assert!(
        (Script::Lands.attempts()..=Script::Lands.attempts() + 1).contains(&request_count),
        "asked {request_count} times"
    );
}

/// A file of the run is as it was or was replaced as a whole; what is only added to begins as it did.
fn assert_whole(place: &Place, path: &Path, before: &[u8]) {
    let name = path.to_string_lossy();
    let is_database = name.contains("ledger.db");
    let is_temporary = name.starts_with("tmp/")
        || ["/tmp/", "/.tmp-"].iter().any(|place| name.contains(place))
        || name.ends_with("filler");
    if is_database || is_temporary {
        return;
    }
    // A run that was just being made has its own name by now.
    let places = [name.to_string(), name.replacen(".new-", "", 1)];
    let now = places
        .iter()
        .find_map(|name| std::fs::read(place.home().join(name)).ok())
        .unwrap();
    if name.ends_with(".jsonl") {
        assert!(now.starts_with(before), "{name} was rewritten");
    } else if name.ends_with(".json") {
        serde_json::from_slice::<serde_json::Value>(&now)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    } else if now != before {
        assert!(
            now.len() > 10 && now.ends_with(b"\n") || name.ends_with(".zip"),
            "{name} is cut"
        );
    }
}

/// In a process that has the small disk to itself.
fn some_events(place: &Place, disk: &Path, part: Part) {
    place.furnish();
    let reference = Script::Lands.model();
    place
        .drive(&reference.base_url(), Until::Landed, Arc::new(Nothing))
        .unwrap();
    let story = place.story();
    for n in (1..=story.steps.len() as u64).filter(|n| n % part.of == part.number) {
        full_at(n, place, disk, &story);
    }
}

/// Every so manyth event, from a first one on.
#[derive(Clone, Copy)]
struct Part {
    number: u64,
    of: u64,
}

/// Starts this binary again, with the named test, below which `disk` is a file system of its own.
fn with_small_disk(test: &str, disk: &str, part: Part) {
    if let Some(root) = std::env::var_os(PLACE) {
        let place = Place::at(root.into());
        let disk = place.root().join(std::env::var(DISK).unwrap());
        some_events(&place, &disk, part);
        return;
    }
    let temp_dir = tempfile::tempdir_in(memory()).unwrap();
    for directory in ["work", disk] {
        std::fs::create_dir_all(temp_dir.path().join(directory)).unwrap();
    }
    let target = temp_dir.path().join(disk);
    let isolated = |flags: &str| -> Output {
        Command::new("unshare")
            .args([
                flags,
                "sh",
                "-c",
                "mount -t tmpfs -o size=8m tmpfs \"$0\" || exit 99; exec \"$@\"",
            ])
            .arg(&target)
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(PLACE, temp_dir.path())
            .env(DISK, disk)
            .output()
            .unwrap()
    };
    let mut output = isolated("-m");
    if matches!(output.status.code(), Some(1 | 99))
        && !String::from_utf8_lossy(&output.stdout).contains("running 1 test")
    {
        output = isolated("-rm");
    }
    let message = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        output.status.success(),
        "a mount namespace is needed here\n{message}"
    );
    assert!(
        message.contains("full at event"),
        "nothing was tried\n{message}"
    );
}

#[test]
fn a_disk_full_at_each_event_part_1() {
    with_small_disk(
        "disk::a_disk_full_at_each_event_part_1",
        "home",
        Part { number: 0, of: 2 },
    );
}

#[test]
fn a_disk_full_at_each_event_part_2() {
    with_small_disk(
        "disk::a_disk_full_at_each_event_part_2",
        "home",
        Part { number: 1, of: 2 },
    );
}

/// Only the ledger's disk: an artifact may be written whose event cannot be.
#[test]
fn a_ledger_on_a_full_disk() {
    with_small_disk(
        "disk::a_ledger_on_a_full_disk",
        "home/ledger",
        Part { number: 0, of: 2 },
    );
}
