//! What a run says of itself when something beside it changed: its commit, its copies, its repository.

use crate::support::{Desk, GOAL, answering, good_answer, id_of, move_to, small};
use crate::verify_record::Landed;

#[test]
fn run_with_lost_commit_is_not_landed() {
    for taken_back in [
        &["reset", "--quiet", "--hard", "HEAD~1"][..],
        &["commit", "--quiet", "--amend", "-m", "Mine"],
    ] {
        let run = Landed::verified();
        let landed = run.desk.run(["run", "land", &run.id, "--json"]).ok().json();
        let commit = landed["commit"].as_str().unwrap();
        run.repo.write("more.txt", "x\n");
        run.repo.commit("Later");
        run.desk.run(["run", "land", &run.id]).ok();
        run.repo.git(["reset", "--quiet", "--hard", "HEAD~1"]);
        run.repo.git(taken_back.iter().copied());
        let message = run
            .desk
            .run(["run", "land", &run.id, "--json"])
            .exits(1)
            .message();
        for part in [commit, "main", "git cherry-pick"] {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
}

#[test]
fn edited_copy_is_ignored_and_can_be_restored() {
    for land in [false, true] {
        let run = Landed::verified();
        if land {
            run.desk.run(["run", "land", &run.id]).ok();
        }
        let state = run.desk.status()["state"].clone();
        for name in [
            "artifacts/diff.patch",
            "artifacts/verify_report.json",
            "artifacts/PLAN.md",
        ] {
            let whole = std::fs::read(run.file(name)).unwrap();
            // One that is empty is what a crash leaves: it would be put back.
            std::fs::write(run.file(name), "Mine.\n").unwrap();
            let status = run.desk.status();
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
                .desk
                .run(["run", "land", &run.id, "--json"])
                .exits(1)
                .message();
            assert!(refused.contains(digest), "{name}: {refused}");
            let shown = run.desk.run(["ledger", "show", digest]).ok().stdout;
            assert_eq!(shown.as_bytes(), whole, "{name}");
            std::fs::write(run.file(name), whole).unwrap();
        }
        assert!(run.desk.status().get("edited").is_none());
        let held = run.desk.run(["run", "verify-record", &run.id]).ok().stdout;
        assert!(held.contains("the record is intact; the run is"), "{held}");
    }
}

#[test]
fn what_is_dirty_is_no_moved_head_and_is_named_before_anything_begins() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let desk = Desk::with(&server);
    let new = desk
        .call(["run", "new", GOAL, "--json", "--repo"])
        .arg(repo.path())
        .run()
        .ok()
        .json();
    let was = std::fs::read(repo.path().join("src/area.py")).unwrap();
    repo.write("src/area.py", "mine\n");
    let message = desk.run(["run", "advance", "--json"]).exits(1).message();
    assert!(
        message.contains("src/area.py") && !message.contains("no longer at"),
        "{message}"
    );
    std::fs::write(repo.path().join("src/area.py"), was).unwrap();
    desk.run(["run", "advance"]).ok();
    repo.write("src/area.py", "mine\n");
    let ran = desk.run(["run", "land", &id_of(&new)]).exits(1);
    assert!(ran.stderr.contains("src/area.py"), "{}", ran.stderr);
    for early in ["landing", "committing"] {
        assert!(!ran.stderr.contains(early), "{}", ran.stderr);
    }
    let events = std::fs::read_to_string(desk.runs()[0].join("events.jsonl")).unwrap();
    assert!(!events.contains("LANDING_STARTED"), "{events}");
}

#[test]
fn gates_of_ended_run_need_its_base() {
    let run = Landed::verified();
    run.desk.run(["run", "land", &run.id]).ok();
    let message = run.desk.run(["verify", "--run", &run.id]).exits(1).stderr;
    for part in ["has ended", "crucible run verify-record", run.id.as_str()] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(!message.contains("crucible run advance"), "{message}");
}

#[test]
fn what_is_dirty_is_told_with_the_command_to_call_again() {
    let run = Landed::verified();
    run.repo.write("src/area.py", "mine\n");
    let verify = run
        .desk
        .run(["verify", "--run", &run.id, "--json"])
        .exits(1)
        .message();
    assert!(
        verify.contains("then run `crucible verify`") && verify.contains("src/area.py"),
        "{verify}"
    );
    run.repo.git(["checkout", "--quiet", "src/area.py"]);
    let desk = &run.desk;
    let new = desk
        .call(["run", "new", GOAL, "--json", "--repo"])
        .arg(run.repo.path())
        .run()
        .ok()
        .json();
    run.repo.write("src/area.py", "mine\n");
    let advance = desk
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
    let next = || run.desk.status()["next"].as_str().unwrap().to_owned();
    assert!(next().contains("crucible run land"), "{}", next());
    let moved = run.desk.path("moved");
    move_to(run.repo.path(), &moved);
    let told = next();
    assert!(
        told.contains("no longer at") && told.contains(run.repo.path().to_str().unwrap()),
        "{told}"
    );
    move_to(&moved, run.repo.path());
    run.desk.run(["run", "land", &run.id]).ok();
    move_to(run.repo.path(), &moved);
    assert_eq!(next(), "Nothing is left to do.");
}
