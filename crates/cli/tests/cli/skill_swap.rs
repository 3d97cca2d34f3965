//! A skill's file is exchanged while the program runs it, as fast as the disk can: what runs is what somebody answers for, or nothing.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::json;

use crate::skill_trust::Skills;

const GOOD: &str = "return {'is': 'good'}";
const EVIL: &str = "\
with open('notes/evil', 'w') as file:
    file.write('x')
return {'is': 'evil'}";

/// The skill's file, and what is put in its place.
struct Setup {
    skills: Skills,
    file: PathBuf,
    good: Vec<u8>,
    evil: Vec<u8>,
    /// A file and a directory that hold the other bytes.
    evil_file: PathBuf,
    evil_directory: PathBuf,
}

impl Setup {
    fn new() -> Self {
        let skills = Skills::new();
        skills.trusted("one", "FILE_WRITE", ["--allow-write", "notes/"], GOOD);
        let file = skills.file("one");
        let good = std::fs::read(&file).unwrap();
        skills.write("one", EVIL);
        let evil = std::fs::read(&file).unwrap();
        std::fs::write(&file, &good).unwrap();
        let (evil_file, evil_directory) =
            (skills.fixture.path("evil.py"), skills.fixture.path("evil"));
        std::fs::write(&evil_file, &evil).unwrap();
        std::fs::create_dir(&evil_directory).unwrap();
        std::fs::write(evil_directory.join("one.py"), &evil).unwrap();
        Self {
            skills,
            file,
            good,
            evil,
            evil_file,
            evil_directory,
        }
    }

    /// Exchanges the file once, in one of the ways that there are.
    fn exchange(&self, round: usize) {
        let sibling_path = self.skills.fixture.path("beside.py");
        let replace = |bytes: &[u8]| {
            std::fs::write(&sibling_path, bytes).unwrap();
            std::fs::rename(&sibling_path, &self.file).unwrap();
        };
        let directory = self.file.parent().unwrap();
        let away = self.skills.fixture.path("away");
        let rename = |from: &Path, to: &Path| std::fs::rename(from, to).unwrap();
        match round % 8 {
            0 => replace(&self.evil),
            1 => replace(&self.good),
            2 => std::fs::write(&self.file, &self.evil).unwrap(),
            3 => std::fs::write(&self.file, &self.good).unwrap(),
            4 => {
                symlink(&self.evil_file, &sibling_path).unwrap();
                rename(&sibling_path, &self.file);
            }
            5 => replace(&self.good),
            6 => {
                rename(directory, &away);
                rename(&self.evil_directory, directory);
            }
            _ => {
                rename(directory, &self.evil_directory);
                rename(&away, directory);
            }
        }
    }

    /// Runs the skill. Whether it ran; where not, it was refused for its bytes.
    fn runs(&self) -> bool {
        let ran = self.skills.outcome("one");
        let evil = self.skills.root().join("notes/evil");
        assert!(!evil.exists(), "the other bytes ran: {:#}", ran.document);
        match (ran.code, ran.word()) {
            (Some(0), "SUCCEEDED") => {
                assert_eq!(ran.document["result"], json!({ "is": "good" }));
                true
            }
            (Some(1), "REFUSED") => {
                let known = ["forge-run-changed", "forge-run-unreadable"];
                assert!(
                    ran.codes().iter().all(|code| known.contains(code)),
                    "{:#}",
                    ran.document
                );
                assert_eq!(ran.document["result"], json!(null));
                false
            }
            _ => panic!("neither ran nor refused: {:#}", ran.document),
        }
    }
}

/// Runs the skill again and again while its file is exchanged, until both have happened as often as this.
fn exchanged(exchanges: usize, runs: usize) {
    let setup = Setup::new();
    assert!(setup.runs());
    setup.exchange(0);
    assert!(!setup.runs(), "the other bytes are refused where they stay");
    setup.exchange(1);
    let (over, rounds) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 0_usize;
            // It ends where it began.
            while !over.load(Ordering::Relaxed) || !round.is_multiple_of(8) {
                setup.exchange(round);
                round += 1;
                rounds.store(round, Ordering::Relaxed);
            }
        });
        let mut count = 0;
        while count < runs || rounds.load(Ordering::Relaxed) < exchanges {
            let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| setup.runs()));
            if let Err(panic) = ran {
                over.store(true, Ordering::Relaxed);
                std::panic::resume_unwind(panic);
            }
            count += 1;
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(setup.runs(), "the promoted bytes are back, and run");
    setup.skills.run(["ledger", "verify"]).ok();
}

#[test]
fn file_swapped_during_run_runs_promoted_bytes_only() {
    exchanged(1_000, 12);
}

mod slow {
    #[test]
    fn file_swapped_repeatedly_runs_promoted_bytes_only() {
        super::exchanged(10_000, 150);
    }
}
