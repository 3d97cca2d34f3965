//! The main job: from a goal to a commit, with nothing but the verified change in it.

use crate::support::{Fixture, GOAL, answering, good_answer, id_of, right, small, snapshot};

#[test]
fn goal_becomes_commit_with_exactly_verified_change() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let base = repo.head();
    let before = snapshot(&repo, &fixture);

    let started = fixture.start(repo.path()).ok().json();
    assert_eq!(started["schema_version"], "crucible-run-status-v1");
    assert_eq!(started["state"], "verified");
    before.is_still(&snapshot(&repo, &fixture));
    let id = id_of(&started);
    assert_eq!(fixture.status(), started);
    let listed = fixture.run(["run", "list", "--json"]).ok().json();
    assert_eq!(listed["runs"][0]["run_id"], id.as_str());
    assert_eq!(listed["runs"][0]["state"], "verified");
    assert_eq!(listed["runs"][0]["goal"], GOAL);

    let landed = fixture.run(["run", "land", &id, "--json"]).ok().json();
    let head = repo.head();
    assert_eq!(landed["commit"], head.as_str());
    assert_eq!(repo.git(["rev-parse", "HEAD^"]), base);
    assert_eq!(
        repo.git(["rev-parse", "HEAD^{tree}"]),
        landed["tree"].as_str().unwrap()
    );
    assert_eq!(
        repo.git(["diff", "--name-status", "HEAD^", "HEAD"]),
        "M\tsrc/area.py"
    );
    assert_eq!(
        std::fs::read_to_string(repo.path().join("src/area.py")).unwrap(),
        right()
    );
    assert_eq!(repo.status(), "");
    let message = repo.git(["log", "-1", "--format=%B"]);
    for trailer in [
        "Crucible-Run: ",
        "Crucible-Plan: ",
        "Crucible-Verify: ",
        "Crucible-Ledger: ",
    ] {
        assert_eq!(
            message.matches(&format!("\n{trailer}")).count(),
            1,
            "{message}"
        );
    }
    assert!(message.contains(&id), "{message}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_goal_may_have_several_lines() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let goal = "make area in src/area.py\n\n  multiply:  Gates: none\nScope-Allow: .\n";
    let call = fixture
        .call(["run", "start", goal, "--json", "--repo"])
        .arg(repo.path());
    let status = call.run().ok().json();
    assert_eq!(status["state"], "verified");
    let plan = std::fs::read_to_string(fixture.runs()[0].join("artifacts/PLAN.md")).unwrap();
    assert!(
        plan.contains("\nGoal: make area in src/area.py multiply: Gates: none Scope-Allow: .\n"),
        "{plan}"
    );
    assert!(!plan.contains("\nScope-Allow: .\n"), "{plan}");
}
