//! What a run says of itself when something beside it changed: its commit, its copies, its repository.

use crate::support::{Fixture, GOAL, answering, good_answer, id_of, move_to, small};
use crate::verify_record::Landed;

#[test]
fn run_with_lost_commit_is_not_landed() {
    for taken_back in [
        &["reset", "--quiet", "--hard", "HEAD~1"][..],
        &["commit", "--quiet", "--amend", "-m", "Mine"],
    ] {
        let run = Landed::verified();
        let landed = run
            .fixture
            .run(["run", "land", &run.id, "--json"])
            .ok()
            .json();
        let commit = landed["commit"].as_str().unwrap();
        run.repo.write("more.txt", "x\n");
        run.repo.commit("Later");
        run.fixture.run(["run", "land", &run.id]).ok();
        run.repo.git(["reset", "--quiet", "--hard", "HEAD~1"]);
        run.repo.git(taken_back.iter().copied());
        let message = run
            .fixture
            .run(["run", "land", &run.id, "--json"])
            .exits(1)
            .message();
        for part in [commit, "main", "git merge"] {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
}

#[test]
fn edited_copy_is_ignored_and_can_be_restored() {
    for land in [false, true] {
        let run = Landed::verified();
        if land {
            run.fixture.run(["run", "land", &run.id]).ok();
        }
        let state = run.fixture.status()["state"].clone();
        for name in [
            "artifacts/diff.patch",
            "artifacts/verify_report.json",
            "artifacts/PLAN.md",
        ] {
            let full_content = std::fs::read(run.file(name)).unwrap();
            // One that is empty is what a crash leaves: it would be put back.
            std::fs::write(run.file(name), "Mine.\n").unwrap();
            let status = run.fixture.status();
            assert_eq!(status["state"], state, "{name}");
            assert_eq!(status["edited"], serde_json::json!([name]));
            let next = status["next"].as_str().unwrap();
            let digest = next
                .split("ledger show ")
                .nth(1)
                .unwrap()
                .split(' ')
                .next()
                .unwrap();
            let refused = run
                .fixture
                .run(["run", "land", &run.id, "--json"])
                .exits(1)
                .message();
            assert!(refused.contains(digest), "{name}: {refused}");
            let text = run.fixture.run(["ledger", "show", digest]).ok().stdout;
            assert_eq!(text.as_bytes(), full_content, "{name}");
            std::fs::write(run.file(name), full_content).unwrap();
        }
        assert!(run.fixture.status().get("edited").is_none());
        let held = run
            .fixture
            .run(["run", "verify-record", &run.id])
            .ok()
            .stdout;
        assert!(held.contains("the record is intact; the run is"), "{held}");
    }
}

#[test]
fn dirty_tree_is_named_and_not_moved_head() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let new = fixture
        .call(["run", "new", GOAL, "--json", "--repo"])
        .arg(repo.path())
        .run()
        .ok()
        .json();
    let was = std::fs::read(repo.path().join("src/area.py")).unwrap();
    repo.write("src/area.py", "mine\n");
    let message = fixture.run(["run", "advance", "--json"]).exits(1).message();
    assert!(
        message.contains("src/area.py") && !message.contains("no longer at"),
        "{message}"
    );
    std::fs::write(repo.path().join("src/area.py"), was).unwrap();
    fixture.run(["run", "advance"]).ok();
    repo.write("src/area.py", "mine\n");
    let ran = fixture.run(["run", "land", &id_of(&new)]).exits(1);
    assert!(ran.stderr.contains("src/area.py"), "{}", ran.stderr);
    for early in ["landing", "committing"] {
        assert!(!ran.stderr.contains(early), "{}", ran.stderr);
    }
    let events = std::fs::read_to_string(fixture.runs()[0].join("events.jsonl")).unwrap();
    assert!(!events.contains("LANDING_STARTED"), "{events}");
}

#[test]
fn gates_of_ended_run_need_its_base() {
    let run = Landed::verified();
    run.fixture.run(["run", "land", &run.id]).ok();
    let message = run
        .fixture
        .run(["verify", "--run", &run.id])
        .exits(1)
        .stderr;
    for part in ["has ended", "crucible run verify-record", run.id.as_str()] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(!message.contains("crucible run advance"), "{message}");
}

#[test]
fn dirty_tree_is_reported_with_command_to_repeat() {
    let run = Landed::verified();
    run.repo.write("src/area.py", "mine\n");
    let verify = run
        .fixture
        .run(["verify", "--run", &run.id, "--json"])
        .exits(1)
        .message();
    assert!(
        verify.contains("then run `crucible verify`") && verify.contains("src/area.py"),
        "{verify}"
    );
    run.repo.git(["checkout", "--quiet", "src/area.py"]);
    let fixture = &run.fixture;
    let new = fixture
        .call(["run", "new", GOAL, "--json", "--repo"])
        .arg(run.repo.path())
        .run()
        .ok()
        .json();
    run.repo.write("src/area.py", "mine\n");
    let advance = fixture
        .run(["run", "advance", &id_of(&new), "--json"])
        .exits(1)
        .message();
    assert!(
        advance.contains("then run `crucible run advance`"),
        "{advance}"
    );
}

#[test]
fn unfinished_run_reports_moved_repository() {
    let run = Landed::verified();
    let next = || run.fixture.status()["next"].as_str().unwrap().to_owned();
    assert!(next().contains("crucible run land"), "{}", next());
    let moved = run.fixture.path("moved");
    move_to(run.repo.path(), &moved);
    let message = next();
    assert!(
        message.contains("no longer at") && message.contains(run.repo.path().to_str().unwrap()),
        "{message}"
    );
    move_to(&moved, run.repo.path());
    run.fixture.run(["run", "land", &run.id]).ok();
    move_to(run.repo.path(), &moved);
    assert_eq!(next(), "Nothing is left to do.");
}
