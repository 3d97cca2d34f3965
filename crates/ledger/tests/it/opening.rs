//! Everything that can be wrong with the file, its place and its disk: a typed error, and the previous state whole.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests make bad files, and start themselves on a tiny disk"
)]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::common::{event, filled, place};
use crucible_ledger::{Ledger, LedgerError};
use rusqlite::Connection;

#[test]
fn the_file_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let place = place();
    drop(filled(&place.path, 1));
    assert_eq!(
        std::fs::metadata(&place.path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(
        std::fs::metadata(place.path.parent().unwrap())
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o700
    );
}

#[test]
fn looking_for_a_ledger_makes_none() {
    let place = place();
    assert!(Ledger::open_existing(&place.path).unwrap().is_none());
    assert!(!place.path.exists());
    drop(filled(&place.path, 1));
    assert_eq!(
        Ledger::open_existing(&place.path)
            .unwrap()
            .unwrap()
            .head()
            .unwrap()
            .seq,
        1
    );
}

#[test]
fn stale_temporary_files_beside_the_ledger_are_removed() {
    let place = place();
    let home = place.path.parent().unwrap();
    std::fs::create_dir_all(home).unwrap();
    let [stale, held, other] = [".tmp-aB3dE6", ".tmp-fG4hI7", "notes"].map(|name| home.join(name));
    for file in [&stale, &held, &other] {
        std::fs::write(file, "half").unwrap();
    }
    let living = std::fs::File::open(&held).unwrap();
    living.lock().unwrap();
    drop(filled(&place.path, 1));
    assert_eq!(
        [&stale, &held, &other].map(|file| file.exists()),
        [false, true, true]
    );
    drop(living);
    drop(Ledger::open(&place.path).unwrap());
    assert!(!held.exists() && other.exists());
}

#[test]
fn path_resembling_a_uri_is_a_path() {
    let place = place();
    let unusual_path = place.dir.path().join("file:x?mode=memory");
    drop(filled(&unusual_path, 2));
    assert!(unusual_path.exists());
}

#[test]
fn non_database_file_is_refused_and_unchanged() {
    let place = place();
    let path = place.dir.path().join("ledger.db");
    let text = "this is a text file, long enough to hold a header of its own. ".repeat(20);
    std::fs::write(&path, &text).unwrap();
    assert!(matches!(
        Ledger::open(&path),
        Err(LedgerError::NotADatabase { .. })
    ));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    std::fs::write(&path, "x").unwrap();
    assert!(matches!(
        Ledger::open(&path),
        Err(LedgerError::NotADatabase { .. })
    ));
}

#[test]
fn foreign_database_is_refused_and_unchanged() {
    let place = place();
    let path = place.dir.path().join("ledger.db");
    let other = Connection::open(&path).unwrap();
    other
        .execute_batch("CREATE TABLE theirs (x); PRAGMA user_version = 1;")
        .unwrap();
    drop(other);
    let before = std::fs::read(&path).unwrap();
    assert!(matches!(
        Ledger::open(&path),
        Err(LedgerError::Foreign { .. })
    ));
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn newer_ledger_is_refused_and_unchanged() {
    let place = place();
    drop(filled(&place.path, 2));
    Connection::open(&place.path)
        .unwrap()
        .execute_batch("PRAGMA user_version = 999")
        .unwrap();
    let error = Ledger::open(&place.path).unwrap_err();
    assert!(matches!(error, LedgerError::Newer { found: 999, .. }));
    assert!(error.to_string().contains("newer Crucible"), "{error}");
    let raw = Connection::open(&place.path).unwrap();
    assert_eq!(
        raw.query_row("SELECT count(*) FROM events", [], |row| row
            .get::<_, i64>(0))
            .unwrap(),
        2
    );
}

#[test]
fn unopenable_directory_or_parent_is_named() {
    let place = place();
    assert!(matches!(
        Ledger::open(place.dir.path()),
        Err(LedgerError::CannotOpen { .. })
    ));
    std::fs::write(place.dir.path().join("file"), "").unwrap();
    assert!(matches!(
        Ledger::open(&place.dir.path().join("file/home/ledger.db")),
        Err(LedgerError::Directory(_))
    ));
}

#[test]
fn damaged_file_never_verifies_clean() {
    let place = place();
    drop(filled(&place.path, 200));
    let bytes = std::fs::read(&place.path).unwrap();
    // Cut in the middle, and the pages behind the first overwritten.
    let mut noise = bytes.clone();
    noise[8192..].fill(0xa5);
    for damaged in [&bytes[..bytes.len() / 2], &noise] {
        std::fs::write(&place.path, damaged).unwrap();
        match Ledger::open(&place.path) {
            Ok(ledger) => {
                let verdict = ledger.verify(&[]).unwrap();
                assert!(
                    verdict
                        .findings()
                        .iter()
                        .any(|finding| finding.code.as_str() == "ledger-database-damaged")
                );
            }
            Err(error) => assert!(matches!(error, LedgerError::Damaged { .. }), "{error}"),
        }
    }
}

#[test]
fn another_writer_is_waited_for_and_then_named() {
    let place = place();
    drop(filled(&place.path, 1));
    let holder = Connection::open(&place.path).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut ledger = Ledger::open_waiting(&place.path, Duration::from_millis(50)).unwrap();
    for error in [
        ledger.append(event(2)).map(drop).unwrap_err(),
        ledger.check_writable().unwrap_err(),
    ] {
        assert!(matches!(error, LedgerError::Locked { .. }), "{error}");
    }
    assert_eq!(ledger.events(None).unwrap().len(), 1, "reading goes on");
    holder.execute_batch("ROLLBACK").unwrap();
    ledger.check_writable().unwrap();
    assert_eq!(ledger.append(event(2)).unwrap().seq, 2);
}

const CHILD: &str = "CRUCIBLE_TEST_LEDGER";

/// Runs the test again in a mount namespace of its own, on a memory disk of one megabyte.
fn on_a_tiny_disk(test: &str, then: &str) {
    let place = place();
    let script = format!("mount -t tmpfs -o size=1m,mode=700 tiny \"$0\" && {then} exec \"$@\"");
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", &script])
        .arg(place.dir.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, place.dir.path())
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && stdout.contains("1 passed"),
        "{stdout}"
    );
}

#[test]
fn full_disk_is_error_without_ledger_damage() {
    let Some(dir) = std::env::var_os(CHILD) else {
        on_a_tiny_disk("opening::full_disk_is_error_without_ledger_damage", "");
        return;
    };
    let path = Path::new(&dir).join("ledger.db");
    let mut ledger = Ledger::open(&path).unwrap();
    let mut written = 0;
    let error = loop {
        match ledger.append(event(written)) {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 100_000);
    };
    assert!(matches!(error, LedgerError::DiskFull { .. }), "{error}");
    assert!(written > 10);
    assert!(matches!(
        ledger.put_artifact("log", &vec![1; 600_000]),
        Err(LedgerError::DiskFull { .. })
    ));
    assert_eq!(ledger.head().unwrap().seq, written);
    assert_eq!(ledger.verify(&[]).unwrap().findings(), []);
    drop(ledger);
    // Also from a new process: what was acknowledged is there, and nothing else.
    let ledger = Ledger::open(&path).unwrap();
    assert_eq!(ledger.head().unwrap().seq, written);
    assert_eq!(ledger.verify(&[]).unwrap().findings(), []);
}

#[test]
fn a_read_only_disk_is_named() {
    let Some(dir) = std::env::var_os(CHILD) else {
        on_a_tiny_disk(
            "opening::a_read_only_disk_is_named",
            "mount -o remount,ro tiny \"$0\" &&",
        );
        return;
    };
    match Ledger::open(&Path::new(&dir).join("ledger.db")) {
        Err(LedgerError::CannotOpen { .. } | LedgerError::ReadOnly { .. }) => {}
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        Ledger::open(&Path::new(&dir).join("home/ledger.db")),
        Err(LedgerError::Directory(_))
    ));
}

#[test]
fn non_regular_file_is_refused_at_once() {
    let place = place();
    let pipe = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    let path = place.dir.path().join("odd.db");
    pipe(&path);
    for opened in [Ledger::open(&path).map(Some), Ledger::open_existing(&path)] {
        let message = opened.unwrap_err().to_string();
        assert!(message.contains("it is not a regular file"), "{message}");
    }
    std::fs::remove_file(&path).unwrap();
    drop(Ledger::open(&path).unwrap());
    for beside in ["-wal", "-shm", "-journal"] {
        let unusual_path = place.dir.path().join(format!("odd.db{beside}"));
        pipe(&unusual_path);
        let message = Ledger::open(&path).unwrap_err().to_string();
        assert!(message.contains(beside), "{message}");
        std::fs::remove_file(&unusual_path).unwrap();
    }
    drop(Ledger::open(&path).unwrap());
}
