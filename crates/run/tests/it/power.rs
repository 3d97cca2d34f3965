//! The machine goes down: the process ends, and what was not flushed is lost or torn. The run comes to the same end all the same.
//!
//! A run is copied whenever something was recorded, and whenever an event is about to be, with its artifact written. Each copy is what a
//! process that ended there leaves. Then every file of the run that no flush protects is taken away, emptied, cut, or cut with zeros behind,
//! or stays, each by turns, and the run goes on from there. What is flushed is listed below; the ledger flushes itself.
//!
//! Slow because each crash takes a whole run, with its gates in the sandbox, to its end.
#![expect(clippy::disallowed_methods, reason = "these tests damage files")]

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crucible_ledger::EventRecord;
use crucible_run::{RunDir, RunError, RunState};
use tempfile::TempDir;

use crate::cast::RoleServers;
use crate::common::{Along, Nothing, Place, Script, Until, files_below};

/// What can become of a file that was not flushed.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Missing,
    Empty,
    Cut,
    CutWithZeros,
    Whole,
}

impl Fate {
    const ALL: [Self; 5] = [
        Self::Missing,
        Self::Empty,
        Self::Cut,
        Self::CutWithZeros,
        Self::Whole,
    ];

    fn befalls(self, path: &Path, bytes: &[u8]) {
        let half = &bytes[..bytes.len() / 2];
        match self {
            Self::Missing => std::fs::remove_file(path).unwrap(),
            Self::Empty => std::fs::write(path, b"").unwrap(),
            Self::Cut => std::fs::write(path, half).unwrap(),
            Self::CutWithZeros => {
                std::fs::write(path, [half, &vec![0; bytes.len() - half.len()]].concat()).unwrap();
            }
            Self::Whole => {}
        }
    }
}

/// Whether a file is on the disk before anything relies on it: a recording with its first call, what lies in the outbox with a prompt.
fn is_flushed(path: &str, bytes: &[u8]) -> bool {
    let is_log = path.starts_with("attempts/") && path.ends_with(".log");
    path == "run.json"
        || path == "cassette.jsonl" && bytes.iter().filter(|byte| **byte == b'\n').count() > 1
        || is_log && !bytes.is_empty()
        || path.starts_with("outbox/")
}

/// What a crash does to the files of a run; the `turn` tells which fate comes first.
fn crash(dir: &RunDir, turn: usize, is_spared: impl Fn(&str) -> bool) {
    for (number, (path, bytes)) in files_below(dir.root()).into_iter().enumerate() {
        let name = path.to_str().unwrap();
        if !(is_flushed(name, &bytes)
            || is_spared(name)
            || name == "lock"
            || name.starts_with("tmp/"))
        {
            Fate::ALL[(number + turn) % Fate::ALL.len()].befalls(&dir.path(name), &bytes);
        }
    }
}

/// Keeps a copy of everything at each point.
struct Copies {
    place: Place,
    head: AtomicU64,
    kept: Mutex<Vec<(String, TempDir)>>,
}

impl Copies {
    fn new(place: &Place) -> Arc<Self> {
        let place = Place::at(place.root().to_owned()).with(place.cast());
        Arc::new(Self {
            place,
            head: AtomicU64::new(0),
            kept: Mutex::default(),
        })
    }

    fn keep(&self, point: String) {
        self.kept.lock().unwrap().push((point, self.place.keep()));
    }
}

impl Along for Copies {
    fn event(&self, event: &EventRecord) {
        // What is recorded together is told one by one, and is all there at the first.
        if self.head.load(Ordering::SeqCst) < event.seq {
            self.head
                .store(self.place.ledger().head().unwrap().seq, Ordering::SeqCst);
            self.keep(format!("after {} {}", event.seq, event.event));
        }
    }

    fn instant(&self) {
        if self.place.run().is_some() {
            let last = self.head.load(Ordering::SeqCst);
            self.keep(format!("before something is recorded after {last}"));
        }
    }
}

/// Crashes at every `parts`-th point from `part` on.
fn crash_at_each(cast: RoleServers, script: Script, part: usize, parts: usize) {
    let place = Place::from_cast(cast);
    let model = if cast == RoleServers::Model {
        script.model()
    } else {
        cast.model()
    };
    let copies = Copies::new(&place);
    place
        .drive(&model.base_url(), Until::Landed, copies.clone())
        .unwrap();
    let story = place.story();
    let request_count = model.requests().len();
    let kept = std::mem::take(&mut *copies.kept.lock().unwrap());
    let after = kept
        .iter()
        .filter(|(point, _)| point.starts_with("after"))
        .count();
    assert!(
        after >= 8 && kept.len() >= after + story.steps.len() - 2,
        "{after} of {} points",
        kept.len()
    );
    for (turn, (point, copy)) in kept
        .iter()
        .enumerate()
        .filter(|(turn, _)| turn % parts == part)
    {
        println!("crash {point}");
        place.restore(copy);
        // What a person wrote is the person's: it was there long before the run looked at it.
        let prompts: Vec<String> = place
            .events()
            .iter()
            .filter_map(|event| Some(event.body.get("target")?.as_str()?.to_owned()))
            .collect();
        let is_persons = |path: &str| prompts.iter().any(|target| target == path);
        crash(&place.the_run(), turn, is_persons);
        place
            .drive(&model.base_url(), Until::Landed, Arc::new(Nothing))
            .unwrap();
        place.assert_ended_like(&story);
        assert_eq!(place.ledger().verify(&[]).unwrap().findings(), []);
    }
    let mut questions: Vec<String> = model
        .requests()
        .iter()
        .map(|seen| seen.body.to_string())
        .collect();
    questions.sort();
    questions.dedup();
    assert_eq!(
        questions.len(),
        request_count,
        "a question was put in two ways"
    );
}

macro_rules! in_parts {
    ($($name:ident: $cast:expr, $script:expr, $part:literal of $parts:literal;)*) => {$(
        #[test]
        fn $name() {
            crash_at_each($cast, $script, $part, $parts);
        }
    )*};
}

in_parts! {
    a_run_that_lands_after_a_crash_at_each_point_part_1: RoleServers::Model, Script::Lands, 0 of 4;
    a_run_that_lands_after_a_crash_at_each_point_part_2: RoleServers::Model, Script::Lands, 1 of 4;
    a_run_that_lands_after_a_crash_at_each_point_part_3: RoleServers::Model, Script::Lands, 2 of 4;
    a_run_that_lands_after_a_crash_at_each_point_part_4: RoleServers::Model, Script::Lands, 3 of 4;
    a_run_that_fails_after_a_crash_at_each_point_part_1: RoleServers::Model, Script::Fails, 0 of 2;
    a_run_that_fails_after_a_crash_at_each_point_part_2: RoleServers::Model, Script::Fails, 1 of 2;
    a_run_with_a_person_after_a_crash_at_every_other_point_part_1: RoleServers::Person, Script::Lands, 0 of 4;
    a_run_with_a_person_after_a_crash_at_every_other_point_part_2: RoleServers::Person, Script::Lands, 2 of 4;
    a_run_with_models_in_all_seats_after_a_crash_at_every_other_point_part_1: RoleServers::Chairs, Script::Lands, 1 of 4;
    a_run_with_models_in_all_seats_after_a_crash_at_every_other_point_part_2: RoleServers::Chairs, Script::Lands, 3 of 4;
}

/// A verified run, and the paths of its files whose bytes the ledger holds, or that are copies of such.
fn verified() -> (Place, String, crucible_testkit::FakeOpenAi, Vec<String>) {
    let (place, model) = (Place::new(), Script::Lands.model());
    let state = place
        .drive(&model.base_url(), Until::Advanced, Arc::new(Nothing))
        .unwrap();
    assert_eq!(state, RunState::Verified);
    let mut paths: Vec<String> = place
        .events()
        .into_iter()
        .filter(|event| event.body.get("digest").is_some())
        .map(|event| event.path.unwrap())
        .filter(|path| path != "failure_bundle.zip" && path != "run.json")
        .collect();
    paths.extend(
        [
            "artifacts/diff.patch",
            "artifacts/verify_report.json",
            "reviews/review_patch.md",
        ]
        .map(String::from),
    );
    let url = model.base_url();
    (place, url, model, paths)
}

#[test]
fn torn_file_is_restored_from_ledger() {
    let (place, url, model, paths) = verified();
    let dir = place.the_run();
    let before = files_below(dir.root());
    for fate in [Fate::Missing, Fate::Empty, Fate::Cut, Fate::CutWithZeros] {
        for path in &paths {
            fate.befalls(&dir.path(path), &before[Path::new(path)]);
        }
        assert_eq!(
            place
                .drive(&url, Until::Advanced, Arc::new(Nothing))
                .unwrap(),
            RunState::Verified
        );
        for path in &paths {
            assert_eq!(
                std::fs::read(dir.path(path)).unwrap(),
                before[Path::new(path)],
                "{fate:?} {path}"
            );
        }
    }
    assert_eq!(model.requests().len(), Script::Lands.attempts());
    place.land().unwrap();
}

#[test]
fn edited_file_is_not_torn() {
    let (place, url, _model, paths) = verified();
    let dir = place.the_run();
    for path in &paths {
        let full_content = std::fs::read(dir.path(path)).unwrap();
        let half = &full_content[..full_content.len() / 2];
        let mut flipped = full_content.clone();
        flipped[full_content.len() / 2] ^= 1;
        let zeros_inside = [half, &b"\0"[..], &full_content[half.len() + 1..]].concat();
        let longer = [&full_content[..], &b"\0"[..]].concat();
        for edited in [
            flipped,
            zeros_inside,
            longer,
            [half, &b"#"[..]].concat(),
            b"x".to_vec(),
        ] {
            std::fs::write(dir.path(path), &edited).unwrap();
            for refused in [
                place
                    .drive(&url, Until::Advanced, Arc::new(Nothing))
                    .map(drop),
                place.land().map(drop),
            ] {
                let Err(
                    RunError::Edited { path: told }
                    | RunError::EditedSince { path: told, .. }
                    | RunError::Malformed { path: told, .. },
                ) = refused
                else {
                    panic!("{path} was taken as it is: {refused:?}");
                };
                assert_eq!(told, dir.path(path));
            }
            assert_eq!(
                std::fs::read(dir.path(path)).unwrap(),
                edited,
                "the edit is evidence and stays"
            );
        }
        std::fs::write(dir.path(path), &full_content).unwrap();
    }
    place.land().unwrap();
}

/// A log is recorded by its digest alone: there is no way back to it, so it is flushed, and refused where it is gone.
#[test]
fn a_log_that_is_gone_is_refused() {
    let (place, url, _model, _) = verified();
    let dir = place.the_run();
    let log = "attempts/004/stdout.log";
    let full_content = std::fs::read(dir.path(log)).unwrap();
    assert!(!full_content.is_empty());
    for fate in [Fate::Missing, Fate::Empty, Fate::Cut] {
        fate.befalls(&dir.path(log), &full_content);
        place
            .drive(&url, Until::Advanced, Arc::new(Nothing))
            .unwrap_err();
        place.land().unwrap_err();
        std::fs::write(dir.path(log), &full_content).unwrap();
    }
    place.land().unwrap();
}
