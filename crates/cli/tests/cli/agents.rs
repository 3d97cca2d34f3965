//! Commands that serve roles (`api_agent`): what they are told, what counts as an answer, and what they cannot reach.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crucible_testkit::{FakeOpenAi, Reply, TestRepo};
use serde_json::{Value, json};

use crate::support::{Fixture, GOOD_DIFF, codes, good_answer, holding, id_of, small, snapshot};

/// A program at the fixture that runs these lines; `good` prints the patch that fixes the repository.
fn script(fixture: &Fixture, lines: &str) -> PathBuf {
    let path = fixture.path("agent");
    let text = format!("#!/bin/sh\ngood() {{ cat <<'PATCH'\n{GOOD_DIFF}PATCH\n}}\n{lines}\n");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// A fixture whose patches come from a program of these lines; `settings` are more lines of `[dispatch]`.
fn served(lines: &str, settings: &str) -> Fixture {
    let fixture = Fixture::new();
    let path = script(&fixture, lines);
    fixture.user_config(&format!(
        "[dispatch]\nmode = \"api_agent\"\nagent_command = [{path:?}]\n{settings}\n"
    ));
    fixture
}

fn run_of(fixture: &Fixture) -> PathBuf {
    fixture.runs().pop().unwrap()
}

fn log(fixture: &Fixture, name: &str) -> String {
    fs::read_to_string(run_of(fixture).join("logs/agents").join(name)).unwrap()
}

#[test]
fn command_agent_takes_run_to_commit() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let path = script(
        &fixture,
        r#"set -e
        cmp - "$CRUCIBLE_PROMPT" && cmp "$CRUCIBLE_PROMPT" "$4"
        [ "$CRUCIBLE_ROLE $CRUCIBLE_ACTION $CRUCIBLE_TARGET" = "$1 $2 $3" ]
        [ "$1 $2 $3 $5" = "patchmaker patch artifacts/diff.patch {}" ]
        [ -n "$CRUCIBLE_RUN_ID" ] && [ ! -e .git/HEAD ]
        grep -q 'expected 6' "$CRUCIBLE_PROMPT" && grep -q 'width + height' src/area.py
        echo thinking >&2
        good"#,
    );
    let words = "\"{role}\", \"{action}\", \"{target}\", \"{prompt_file}\", \"{}\"";
    fixture.user_config(&format!(
        "[dispatch]\npatch_command = [{path:?}, {words}]\n"
    ));
    let started = fixture
        .start_call(repo.path())
        .args(["--mode", "api_agent"])
        .run()
        .ok()
        .json();
    assert_eq!(started["state"], "verified", "{started:#}");
    assert_eq!(log(&fixture, "001.stderr.log"), "thinking\n");
    assert_eq!(log(&fixture, "001.stdout.log"), GOOD_DIFF);
    for name in [
        "CONTEXT.md",
        "CONSTRAINTS.md",
        "FIX_BRIEF.md",
        "EXTERNALS.md",
    ] {
        assert!(
            run_of(&fixture).join("outbox").join(name).is_file(),
            "{name}"
        );
    }
    let id = id_of(&started);
    let replayed = fixture.run(["run", "replay", &id, "--json"]).ok().json();
    assert_eq!(
        (&replayed["state"], &replayed["different"]),
        (&json!("verified"), &json!([]))
    );
    // The logs are recorded: one that is edited shows, and nothing lands on it.
    let log = run_of(&fixture).join("logs/agents/001.stderr.log");
    fs::write(&log, "nothing\n").unwrap();
    assert_eq!(
        fixture.status()["edited"],
        json!(["logs/agents/001.stderr.log"])
    );
    fixture.run(["run", "land", &id, "--json"]).exits(1);
    fs::write(&log, "thinking\n").unwrap();
    fixture.run(["run", "land", &id, "--json"]).ok();
    assert_eq!(
        repo.git(["diff", "--name-status", "HEAD^", "HEAD"]),
        "M\tsrc/area.py"
    );
}

#[test]
fn command_answer_without_diff_goes_to_fixer() {
    for (lines, code) in [
        ("echo I would multiply.", "dispatch-no-diff"),
        ("echo '```diff'; good; echo '```'", "dispatch-no-diff"),
        ("true", "answer-empty"),
        (
            "head -c 50000000 /dev/zero | tr '\\0' x",
            "answer-too-large",
        ),
    ] {
        let repo = small().build();
        let lines = format!(
            "if [ $CRUCIBLE_ROLE = fixer ]; then grep -q '{code}' \"$CRUCIBLE_PROMPT\" && good; else {lines}; fi"
        );
        let fixture = served(&lines, "");
        let ended = fixture.start(repo.path()).ok().json();
        assert_eq!(ended["state"], "verified");
        let found = codes(&ended, 1);
        assert!(
            found.len() == 1 && found[0].starts_with(code),
            "{lines}: {found:?}"
        );
        assert!(
            run_of(&fixture)
                .join("logs/agents/002.stdout.log")
                .is_file()
        );
        // What is refused before it is read is refused in a replay, too.
        let replayed = fixture
            .run(["run", "replay", &id_of(&ended), "--json"])
            .ok()
            .json();
        assert_eq!(replayed["different"], json!([]), "{lines}");
        // It is a fault of form, and costs no attempt.
        assert_eq!(
            (
                &ended["attempts"][0]["end"],
                &ended["budgets"]["iterations"]
            ),
            (&json!("malformed"), &json!(1))
        );
    }
    // A sentence behind a diff takes nothing from it.
    let repo = small().build();
    let fixture = served("good; echo That was it.", "");
    let ended = fixture.start(repo.path()).ok().json();
    assert_eq!(
        (&ended["state"], ended["attempts"].as_array().unwrap().len()),
        (&json!("verified"), 1)
    );
}

#[test]
fn failing_command_leaves_the_run_unchanged() {
    for (lines, part, code) in [
        ("echo oh >&2; exit 3", "exited with code 3", 70),
        ("kill -9 $$", "exited with code 137", 70),
        ("good; sleep 1000", "dispatch.agent_timeout_s", 10),
        ("head -c 50000000 /dev/zero >&2", "33554432 bytes", 70),
        ("printf 'diff --git \\377\\n'", "not UTF-8", 70),
    ] {
        let repo = small().build();
        let hangs = code == 10;
        let fixture = served(lines, if hangs { "agent_timeout_s = 3" } else { "" });
        let ran = fixture.start(repo.path()).exits(code);
        let message = ran.message();
        assert!(message.contains(part), "{message}");
        assert!(ran.stderr.contains("logs/agents/001.std"), "{}", ran.stderr);
        let status = fixture.status();
        assert_eq!(
            (&status["state"], &status["attempts"]),
            (&json!("signed"), &json!([]))
        );
        assert_eq!(status["edited"], Value::Null);
        if hangs {
            continue;
        }
        // What is mended goes on, within the same run.
        script(&fixture, "good");
        let ended = fixture.run(["run", "advance", "--json"]).ok().json();
        assert_eq!(
            (&ended["state"], ended["budgets"]["calls"].as_u64()),
            (&json!("verified"), Some(2))
        );
    }
}

#[test]
fn command_output_is_escaped_and_redacted() {
    let token = format!("ghp_{}", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8");
    let repo = small().build();
    let fixture = served(
        &format!(
            "printf '\\033]0;owned\\007 %s %s\\n' {token} \"$HANDED_OVER\" >&2; echo {token} \"$HANDED_OVER\"; exit 4"
        ),
        "agent_env = [\"HANDED_OVER\"]",
    );
    let key = "open sesame 12345";
    let ran = fixture
        .start_call(repo.path())
        .env("HANDED_OVER", key)
        .run()
        .exits(70);
    assert!(
        !ran.stderr.contains('\u{1b}') && !ran.stderr.contains(key),
        "{}",
        ran.stderr
    );
    assert!(log(&fixture, "001.stdout.log").contains("[secret:handed-over]"));
    // The secret that stands in the script is the script's own.
    assert_eq!(holding(&fixture.data(), &token), Vec::<PathBuf>::new());
    assert_eq!(holding(&fixture.data(), key), Vec::<PathBuf>::new());

    // The same in an answer: it is refused, and kept without it.
    script(
        &fixture,
        "good | sed \"s/width \\* height$/'$HANDED_OVER'/\"",
    );
    let refused = fixture
        .call(["run", "advance", "--json"])
        .env("HANDED_OVER", key)
        .run()
        .exits(1)
        .json();
    assert_eq!(codes(&refused, 1), ["run-secret-in-answer"]);
    assert_eq!(holding(&fixture.data(), key), Vec::<PathBuf>::new());
}

/// Tries everything that a command must not be able to do, and tells on its standard error how that went.
fn intruder(fixture: &Fixture, repo: &TestRepo, port: u16) -> String {
    let (home, data) = (fixture.home(), fixture.data());
    format!(
        r#"try() {{ name=$1; shift; if "$@" >/dev/null 2>&1; then echo "$name: done" >&2; else echo "$name: denied" >&2; fi; }}
        try key grep -q key {home}/.ssh/id_ed25519
        try original grep -q def {repo}/src/area.py
        try change sh -c 'echo x > {repo}/src/area.py'
        try history ls {repo}/.git/HEAD
        try runs sh -c 'ls {data}/runs/*/run.json'
        try home-of-user sh -c 'echo x > {home}/left'
        try network bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'
        try private sh -c 'echo x > $HOME/left'
        try copy sh -c 'echo broken > src/area.py; echo x > left'
        sleep 1000 &
        setsid sleep 1000 &
        good"#,
        home = home.display(),
        repo = repo.path().display(),
        data = data.display(),
    )
}

#[test]
fn a_command_reaches_its_copy_and_nothing_else() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (repo, fixture) = (small().build(), Fixture::new());
    fs::create_dir(fixture.home().join(".ssh")).unwrap();
    fs::write(fixture.home().join(".ssh/id_ed25519"), "a key\n").unwrap();
    let path = script(&fixture, &intruder(&fixture, &repo, port));
    let config = |network: &str| {
        fixture.user_config(&format!(
            "[dispatch]\nmode = \"api_agent\"\nagent_command = [{path:?}]\nagent_network = \"{network}\"\n"
        ));
    };
    config("off");
    let before = snapshot(&repo, &fixture);
    let ended = fixture.start(repo.path()).ok().json();
    assert_eq!(ended["state"], "verified");
    before.is_still(&snapshot(&repo, &fixture));
    let message = log(&fixture, "001.stderr.log");
    for name in [
        "key",
        "original",
        "change",
        "history",
        "runs",
        "home-of-user",
        "network",
    ] {
        assert!(message.contains(&format!("{name}: denied")), "{message}");
    }
    for name in ["private", "copy"] {
        assert!(message.contains(&format!("{name}: done")), "{message}");
    }
    assert_eq!(
        fs::read_dir(run_of(&fixture).join("tmp")).map_or(0, Iterator::count),
        0
    );

    // The network is the user's to open, and nothing else opens with it.
    config("on");
    let desk_runs = fixture.runs();
    fixture.start(repo.path()).ok();
    let second = fixture
        .runs()
        .into_iter()
        .find(|run| !desk_runs.contains(run))
        .unwrap();
    let text = fs::read_to_string(second.join("logs/agents/001.stderr.log")).unwrap();
    assert!(
        text.contains("network: done")
            && text.contains("key: denied")
            && text.contains("runs: denied"),
        "{text}"
    );
}

#[test]
fn command_serves_as_chair_and_second_reviewer() {
    let request = json!({
        "schema_version": "ctcp-file-request-v1", "goal": "x", "reason": "r",
        "needs": [{ "path": "src/area.py", "mode": "full" }], "budget": { "max_files": 3, "max_total_bytes": 20_000 },
    });
    let server = FakeOpenAi::start([Reply::Answer(good_answer())]);
    let (repo, fixture) = (small().build(), Fixture::with(&server));
    let path = script(
        &fixture,
        &format!(
            "case $CRUCIBLE_ROLE-$CRUCIBLE_ACTION in\n\
             chair-file_request) echo '{request}' ;;\n\
             chair-plan_draft) printf 'Scope-Allow: src/area.py\\nScope-Deny:\\nStop: verified, budget\\nBehaviors:\\n' ;;\n\
             contract_guardian-review) echo 'Verdict: APPROVE' ;;\n\
             *) exit 9 ;;\nesac"
        ),
    );
    fixture.user_config("[dispatch]\nchair = \"api_agent\"\ncontract_guardian = \"api_agent\"\n");
    let words = format!("'{}' --role {{role}}", path.display());
    let ended = fixture
        .start_call(repo.path())
        .env("SDDAI_PLAN_CMD", &words)
        .env("SDDAI_AGENT_CMD", &words)
        .run()
        .ok()
        .json();
    assert_eq!(ended["state"], "verified", "{ended:#}");
    assert_eq!(ended["run"]["settings"]["agents"]["plan"][1], "--role");
    assert!(
        fs::read_to_string(run_of(&fixture).join("artifacts/PLAN.md"))
            .unwrap()
            .contains("Stop: verified, budget")
    );
    assert_eq!(server.requests().len(), 1);
    assert!(
        run_of(&fixture)
            .join("logs/agents/003.stdout.log")
            .is_file()
    );
    let replayed = fixture
        .run(["run", "replay", &id_of(&ended), "--json"])
        .ok()
        .json();
    assert_eq!(replayed["different"], json!([]));
}

#[test]
fn unusable_command_is_refused_before_the_run_begins() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let start = || {
        fixture
            .start_call(repo.path())
            .args(["--mode", "api_agent"])
    };
    let refused = |command: &str, status: i32, part: &str| {
        let message = start()
            .env("SDDAI_PATCH_CMD", command)
            .run()
            .exits(status)
            .message();
        assert!(message.contains(part), "{command}: {message}");
    };
    assert!(
        start()
            .run()
            .exits(2)
            .message()
            .contains("dispatch-no-command")
    );
    refused("./agent", 2, "dispatch-command-relative");
    refused("sh {prompt}", 2, "dispatch-command-word");
    refused("sh -c 'cat' | tee x", 2, "without a shell");
    refused("sh 'open", 2, "unclosed quotation mark");
    refused("/nowhere/agent", 2, "/nowhere/agent");
    refused(
        "sh --token=ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8",
        8,
        "secret",
    );
    fixture.user_config("[dispatch]\nagent_env = [\"NOT_SET\"]\n");
    refused("sh", 2, "NOT_SET");
    fixture.user_config("[dispatch]\nagent_timeout_s = 0\n");
    refused("sh", 2, "agent_timeout_s");
    assert_eq!(fixture.runs(), Vec::<PathBuf>::new());
}

#[test]
fn project_file_cannot_set_command_network_or_variable() {
    for line in [
        "agent_command = [\"sh\"]",
        "plan_command = [\"sh\"]",
        "patch_command = [\"sh\"]",
        "agent_network = \"on\"",
        "agent_env = [\"HOME\"]",
        "agent_timeout_s = 5000",
    ] {
        let repo = small()
            .file(".crucible/config.toml", format!("[dispatch]\n{line}\n"))
            .build();
        let fixture = Fixture::new();
        let message = fixture.start(repo.path()).exits(2).message();
        assert!(
            message.contains(line.split_once(' ').unwrap().0),
            "{message}"
        );
    }
}

#[test]
fn the_settings_win_in_their_usual_order() {
    let (repo, fixture) = (small().build(), served("exit 5", ""));
    let good = fixture.path("good");
    fs::copy(script(&fixture, "good"), &good).unwrap();
    script(&fixture, "exit 5");
    let ended = fixture
        .start_call(repo.path())
        .env("SDDAI_AGENT_CMD", &good)
        .run()
        .ok()
        .json();
    assert_eq!(ended["run"]["settings"]["agents"]["agent"], json!([good]));
}

#[test]
fn ollama_models_are_asked_in_their_own_form() {
    let server = FakeOpenAi::start([Reply::Answer("no".to_owned()), Reply::Answer(good_answer())]);
    let (repo, fixture) = (small().build(), Fixture::with(&server));
    // Another provider is chosen, and nobody asks it: that it lacks its key is no obstacle.
    fixture.user_config(
        "[llm.gateway]\nmodel = \"small\"\n\
         [llm.gateway.profiles.large]\nmodel = \"large\"\n[phases.fixer]\nllm_profile = \"large\"\n[dispatch]\nmode = \"ollama_agent\"\n",
    );
    let ended = fixture
        .start_call(repo.path())
        .args(["--provider", "openai"])
        .run()
        .ok()
        .json();
    let requests: Vec<Value> = server
        .requests()
        .iter()
        .map(|request| request.body["model"].clone())
        .collect();
    assert_eq!(requests, ["small", "large"]);
    let settings = &ended["run"]["settings"];
    assert_eq!(settings["role_models"], json!({ "fixer": "large" }));
    let values = [
        &settings["provider"],
        &settings["model"],
        &settings["edit_format"],
    ];
    assert_eq!(
        values,
        [&json!("gateway"), &json!("small"), &json!("whole-file")]
    );
}

/// `docs/dispatch.md` says what works: each of its settings is taken as it stands, and a run begins with it as the page says.
#[test]
fn dispatch_page_settings_are_valid() {
    let page = include_str!("../../../../docs/dispatch.md");
    let snippets: Vec<&str> = page
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split_once("\n```").unwrap().0)
        .collect();
    assert_eq!(
        snippets.len(),
        page.matches("```").count() / 2,
        "a snippet is none of settings"
    );
    let fixture = Fixture::new();
    let path = script(&fixture, "good");
    for snippet in &snippets {
        assert!(
            snippet.starts_with("# ~/.config/crucible/config.toml\n"),
            "{snippet}"
        );
        fixture.user_config(&snippet.replace("/opt/agents/propose-patch", path.to_str().unwrap()));
        let repo = small().build();
        let call = fixture
            .call([
                "run",
                "new",
                "multiply width and height",
                "--json",
                "--repo",
            ])
            .arg(repo.path());
        let begun = call
            .env("AGENT_KEY", "not a key")
            .env("ANTHROPIC_API_KEY", "not a key")
            .run()
            .ok()
            .json();
        let dispatch = &begun["run"]["settings"]["dispatch"];
        let named = snippet
            .lines()
            .find_map(|line| line.strip_prefix("mode = "))
            .unwrap_or("\"local_exec\"");
        assert_eq!(dispatch["mode"].to_string(), named, "{snippet}");
        if named == "\"api_agent\"" {
            let ended = fixture
                .call(["run", "advance", "--json"])
                .env("AGENT_KEY", "not a key")
                .run()
                .ok()
                .json();
            assert_eq!(ended["state"], "verified");
        }
    }
    for mode in ["manual_outbox", "api_agent", "ollama_agent"] {
        assert!(
            snippets
                .iter()
                .any(|snippet| snippet.contains(&format!("mode = {mode:?}"))),
            "{mode}"
        );
    }
}

#[test]
fn the_doctor_tells_whether_who_serves_is_there() {
    let fixture = served("good", "");
    let path = fixture.path("agent");
    let seen = fixture.run(["doctor", "--json"]).ok().json();
    let programs = seen["programs"].as_array().unwrap();
    let own = programs
        .iter()
        .find(|program| program["name"] == json!(path))
        .unwrap();
    assert_eq!(
        (&own["state"], &own["purpose"]),
        (&json!("found"), &json!("the role patchmaker"))
    );
    fs::remove_file(&path).unwrap();
    for config in [
        None,
        Some("chair = \"api_agent\""),
        Some("chair = \"openai\""),
    ] {
        if let Some(line) = config {
            fixture.user_config(&format!("[dispatch]\n{line}\n"));
        }
        let seen = fixture.run(["doctor", "--json"]).exits(2).json();
        let found = seen["findings"].as_array().unwrap();
        assert!(
            found
                .iter()
                .any(|finding| finding["code"] == "doctor-dispatch-unready"),
            "{seen:#}"
        );
    }
}
