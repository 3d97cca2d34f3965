//! `stats`, its replay under another policy, and `run compare`: their numbers are those of the list.

use crucible_testkit::{FakeOpenAi, Reply};
use serde_json::Value;

use crate::support::{Fixture, answering, good_answer, id_of, small};

/// A verified run, a landed run and a failed run of one repository.
fn three_runs(fixture: &Fixture, repo: &std::path::Path) -> [String; 3] {
    let verified = id_of(&fixture.start(repo).ok().json());
    let landed = id_of(&fixture.start(repo).ok().json());
    fixture
        .start_call(repo)
        .args(["--max-iterations", "1"])
        .run()
        .exits(1);
    let failed = id_of(&fixture.status());
    fixture.run(["run", "land", &landed]).ok();
    [verified, landed, failed]
}

#[test]
fn stats_compare_and_replay_agree_with_the_list() {
    // The third run gets no change, however often it asks.
    let answers = [good_answer(), good_answer(), "no change".to_owned()];
    let server = FakeOpenAi::start(answers.map(Reply::Answer));
    let (repo, fixture) = (small().build(), Fixture::with(&server));
    let [verified, landed, failed] = three_runs(&fixture, repo.path());
    let list = fixture.run(["run", "list", "--json"]).ok().json();
    let runs = list["runs"].as_array().unwrap();
    let sum = |name: &str| {
        runs.iter()
            .map(|run| run[name].as_u64().unwrap())
            .sum::<u64>()
    };

    let stats = fixture.run(["stats", "--json"]).ok().json();
    let all = &stats["all"];
    assert_eq!(stats["schema_version"], "crucible-stats-v1");
    assert_eq!(all["runs"], 3);
    for name in ["calls", "tokens", "micro_dollars", "elapsed_ms"] {
        assert_eq!(all[name], sum(name), "{name}");
    }
    let outcomes = serde_json::json!({ "failed": 1, "landed": 1, "verified": 1 });
    assert_eq!(all["outcomes"], outcomes);
    assert_eq!(all["verified_percent"], 66);
    let groups = stats["groups"].as_array().unwrap();
    let keys: Vec<&Value> = groups.iter().map(|group| &group["by"]).collect();
    assert_eq!(keys, ["model", "agent", "repository", "week"]);
    for group in groups {
        assert_eq!(group["rows"].as_array().unwrap().len(), 1, "{group}");
        assert_eq!(group["rows"][0]["tokens"], all["tokens"]);
    }
    let only = fixture
        .run(["stats", "--by", "week", "--last", "1", "--json"])
        .ok()
        .json();
    assert_eq!(
        (
            &only["all"]["runs"],
            only["groups"].as_array().unwrap().len()
        ),
        (&Value::from(1), 1)
    );
    let document = fixture
        .call(["stats", "--json", "--repo"])
        .arg(repo.path())
        .run()
        .ok()
        .json();
    assert_eq!(document["all"], *all);
    let text = fixture.run(["stats"]).ok().stdout;
    assert!(
        text.starts_with("3 runs: ") && text.contains("2 (66 %)"),
        "{text}"
    );
    let elsewhere = fixture
        .call(["stats", "--json", "--repo"])
        .arg(fixture.home())
        .run()
        .ok()
        .json();
    assert_eq!(elsewhere["all"]["runs"], 0);

    let compared = fixture
        .run(["run", "compare", &verified, &failed, "--json"])
        .ok()
        .json();
    assert_eq!(compared["a"]["run_id"], verified.as_str());
    assert_eq!(
        (&compared["a"]["outcome"], &compared["b"]["outcome"]),
        (&"verified".into(), &"failed".into())
    );
    assert_eq!(compared["is_same_goal"], true);
    assert!(
        compared["different"]
            .as_array()
            .unwrap()
            .contains(&"outcome".into())
    );
    let row = runs
        .iter()
        .find(|run| run["run_id"] == verified.as_str())
        .unwrap();
    for name in [
        "calls",
        "tokens",
        "micro_dollars",
        "elapsed_ms",
        "goal",
        "model",
    ] {
        assert_eq!(compared["a"][name], row[name], "{name}");
    }
    let twins = fixture
        .run(["run", "compare", &verified, &landed, "--json"])
        .ok()
        .json();
    assert_eq!(
        (&twins["is_same_patch"], &twins["is_same_tree"]),
        (&true.into(), &true.into())
    );
    let text = fixture
        .run(["run", "compare", &verified, &landed])
        .ok()
        .stdout;
    assert!(
        text.contains("last patch: the same; verified tree: the same"),
        "{text}"
    );

    let settings = repo.path().join(".crucible/config.toml");
    let replay = |file: &std::path::Path| {
        fixture
            .call(["stats", "--json", "--policy"])
            .arg(file)
            .run()
    };
    let same = replay(&settings).ok().json();
    assert_eq!(same["schema_version"], "crucible-policy-replay-v1");
    assert_eq!(
        (&same["passing"], &same["not_verified"]),
        (&2.into(), &1.into()),
        "{same:#}"
    );
    let policy = fixture.path("policy.toml");
    let answers = |text: &str| {
        std::fs::write(&policy, text).unwrap();
        let view = replay(&policy).ok().json();
        let runs = view["runs"].as_array().unwrap().iter();
        let of_run = |run: &Value| {
            (
                run["run_id"].as_str().unwrap().to_owned(),
                run["answer"].clone(),
            )
        };
        let answers: std::collections::BTreeMap<String, Value> = runs.map(of_run).collect();
        assert_eq!(answers[&failed], Value::Null);
        assert_eq!(answers[&verified], answers[&landed]);
        answers[&verified].clone()
    };
    assert_eq!(answers("[patch]\nmax_added_lines = 1\n"), "passes");
    assert_eq!(
        answers("[run]\nsinks_need_approval = [\"network\"]\n"),
        "passes"
    );
    assert_eq!(
        answers("[run]\nresults_outside = \"required\"\n"),
        "refuses"
    );
    assert_eq!(
        answers("[llm.budget]\ncalls = 1\n[gates.lint]\ncommand = [\"true\"]\n"),
        "unknown"
    );
    assert_eq!(
        answers("[gates.tests]\ncommand = [\"sh\", \"./other.sh\"]\n"),
        "unknown"
    );
    let gates = std::fs::read_to_string(&settings).unwrap();
    for same in [
        "",
        "timeout_s = 7200\n",
        "cwd = \".\"\nnetwork = \"none\"\n",
    ] {
        assert_eq!(answers(&format!("{gates}{same}")), "passes", "{same}");
    }
    for other in [
        "cwd = \"src\"\n",
        "setup = [\"make\"]\n",
        "env = { A = \"1\" }\n",
        "timeout_s = 1\n",
    ] {
        assert_eq!(answers(&format!("{gates}{other}")), "unknown", "{other}");
    }
    assert_eq!(answers("[llm.budget]\ntokens = 1\n"), "refuses");
    let text = fixture
        .call(["stats", "--policy"])
        .arg(&policy)
        .run()
        .ok()
        .stdout;
    assert!(text.contains("llm.budget.tokens refuses: "), "{text}");
    assert!(
        text.ends_with("0 pass, 0 unknown, 2 refused; 1 without a verified change\n"),
        "{text}"
    );
    replay(&fixture.path("missing.toml")).exits(2);
    for invalid in [
        "[run]\nno_such_rule = 1\n",
        "[run]\nbroken_change = \"zzz\"\n",
        "[run]\nsecond_world = \"zzz\"\n",
        "[run]\nresults_outside = \"zzz\"\n",
        "[run]\nobjections = \"zzz\"\n",
        "[gates.tests]\ncommand = []\n",
        "[gates.tests]\ncommand = [\"true\"]\ncwd = \"../x\"\n",
        "[gates.tests]\ncommand = [\"true\"]\nnetwork = \"internet\"\n",
    ] {
        std::fs::write(&policy, invalid).unwrap();
        replay(&policy).exits(2);
    }
    // A new run has the same rules.
    std::fs::write(
        &settings,
        format!("{gates}[run]\nbroken_change = \"zzz\"\n"),
    )
    .unwrap();
    let refused = fixture.start(repo.path()).exits(2);
    assert!(
        refused.stderr.contains("unknown run.broken_change"),
        "{}",
        refused.stderr
    );
}

#[test]
fn changed_record_is_unknown_under_every_policy() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    fixture.start(repo.path()).ok();
    let report = fixture.runs()[0].join("attempts/001/verify_report.json");
    let text = std::fs::read_to_string(&report).unwrap();
    std::fs::write(&report, text.replace("\"full\"", "\"none\"")).unwrap();
    let view = fixture.run(["stats", "--policy", "--json"]).ok().json();
    assert_eq!(
        (&view["unknown"], &view["passing"]),
        (&1.into(), &0.into()),
        "{view:#}"
    );
}

#[test]
fn machine_without_runs_has_empty_stats() {
    let fixture = Fixture::new();
    let stats = fixture.run(["stats", "--json"]).ok().json();
    assert_eq!(stats["all"]["runs"], 0);
    assert!(fixture.run(["stats"]).ok().stdout.starts_with("0 runs"));
    fixture.run(["stats", "--policy"]).exits(2);
    fixture.run(["run", "compare", "a", "b"]).exits(2);
}
