//! `crucible doctor`: what it says of a machine, in both forms, and how it ends.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use serde_json::Value;

use crate::support::{Call, Fixture, Ran};

/// A machine where nothing is on `PATH` but bubblewrap and these scripts.
fn machine(fixture: &Fixture, programs: &[(&str, &str)]) -> PathBuf {
    let bin = fixture.path("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let bwrap = std::env::split_paths(&path)
        .map(|place| place.join("bwrap"))
        .find(|file| file.exists());
    let link = bin.join("bwrap");
    if !link.exists() {
        symlink(bwrap.unwrap(), link).unwrap();
    }
    for (name, script) in programs {
        let file = bin.join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
    }
    bin
}

const GIT: (&str, &str) = ("git", "echo git version 2.47.3");
const CLAUDE: (&str, &str) = ("claude", "echo '2.1.330 (Claude Code)'");

/// A call of the doctor on such a machine.
fn doctor(fixture: &Fixture, programs: &[(&str, &str)], args: &[&str]) -> Call {
    let bin = machine(fixture, programs);
    fixture.call([&["doctor"], args].concat()).env("PATH", bin)
}

/// Lines as a reader compares them: the test's own paths and this machine's isolation replaced, columns one space apart.
fn text(fixture: &Fixture, ran: &Ran) -> String {
    let printed = format!("{}{}", ran.stdout, ran.stderr)
        .replace(fixture.path("bin").to_str().unwrap(), "BIN")
        .replace(fixture.home().to_str().unwrap(), "~");
    let mut lines: Vec<String> = Vec::new();
    for line in printed.lines() {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        if matches!(words.as_slice(), [_, "available", ..]) {
            words.truncate(2);
        }
        if matches!(words.as_slice(), ["bwrap", ..]) {
            words[1] = "VERSION";
        }
        lines.push(words.join(" "));
    }
    lines.push(format!("exit {}", ran.code.unwrap()));
    lines.join("\n")
}

/// The document, which is as its schema says.
#[track_caller]
fn document(ran: &Ran) -> Value {
    let document = ran.json();
    let schema = include_str!("../../../../docs/contracts/doctor.schema.json");
    let schema = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
    let errors: Vec<String> = schema
        .iter_errors(&document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}\n{document:#}");
    document
}

fn codes(document: &Value) -> Vec<(&str, &str)> {
    let findings = document["findings"].as_array().unwrap().iter();
    findings
        .map(|row| {
            (
                row["code"].as_str().unwrap(),
                row["level"].as_str().unwrap(),
            )
        })
        .collect()
}

fn provider<'a>(document: &'a Value, name: &str) -> &'a Value {
    document["providers"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["provider"] == name)
        .unwrap()
}

#[test]
fn doctor_checks_a_separate_council_provider() {
    let fixture = Fixture::new();
    let told = |provider: &str, council: &str, code: i32| {
        let call = |args: &[&str]| {
            let call = doctor(&fixture, &[GIT], args).env("CRUCIBLE_COUNCIL_PROVIDER", council);
            call.env("CRUCIBLE_LLM_PROVIDER", provider)
                .run()
                .exits(code)
        };
        let document = document(&call(&["--json"]));
        let findings = codes(&document);
        let findings: Vec<String> = findings
            .iter()
            .map(|(code, level)| format!("{level} {code}"))
            .collect();
        let text = call(&[]).stdout;
        let line = |name: &str| {
            text.lines()
                .find(|line| line.starts_with(name))
                .map(str::to_owned)
        };
        (
            findings,
            line("provider  ").unwrap_or_default(),
            line("council  "),
            document,
        )
    };
    let (findings, runs, council, document) = told("gateway", "openrouter", 2);
    assert!(
        findings.contains(&"error doctor-provider-unready".to_owned()),
        "{findings:?}"
    );
    assert!(runs.ends_with(", not probed"), "{runs}");
    assert_eq!(
        council.unwrap(),
        "council    openrouter (environment CRUCIBLE_COUNCIL_PROVIDER), not ready"
    );
    assert_eq!(document["choice"]["provider"], "gateway");
    let subjects = document["findings"].to_string();
    assert!(
        subjects.contains("for a council: openrouter: "),
        "{subjects}"
    );
    // Only the council's is set.
    let (findings, runs, council, _) = told("", "gateway", 0);
    assert!(
        findings.contains(&"warning doctor-provider-unset".to_owned()),
        "{findings:?}"
    );
    assert!(runs.ends_with("none chosen") && council.unwrap().ends_with(", not probed"));
    // One and the same is told once.
    assert_eq!(told("gateway", "gateway", 0).2, None);
}

#[test]
fn doctor_prints_tables_followed_by_advice() {
    let fixture = Fixture::new();
    let call = doctor(&fixture, &[GIT, CLAUDE], &[])
        .env("ANTHROPIC_API_KEY", "a-key")
        .env("OPENAI_API_KEY", " ");
    let providers = [
        "ANTHROPIC",
        "CLAUDE_CLI",
        "CODEX_CLI",
        "GATEWAY",
        "GEMINI_CLI",
        "OPENAI",
        "OPENROUTER",
    ];
    let own = |call: Call, name: &&str| call.env(&format!("CRUCIBLE_LLM_{name}_MODEL"), "MODEL");
    let ran = providers
        .iter()
        .fold(call, own)
        .env("CRUCIBLE_LLM_PROVIDER", "claude-cli")
        .run();
    insta::assert_snapshot!(text(&fixture, &ran), @r#"
    info doctor-program-missing: gh was not found. Run `apt-get install gh`; gh is needed for repositories on GitHub

    provider state model program or address key
    anthropic not probed MODEL https://api.anthropic.com ANTHROPIC_API_KEY set
    claude-cli ready MODEL BIN/claude 2.1.330 ANTHROPIC_API_KEY set
    codex-cli not ready MODEL not found own login (OPENAI_API_KEY empty)
    gateway not probed MODEL http://127.0.0.1:9/v1 none wanted
    gemini-cli not ready MODEL not found own login (GEMINI_API_KEY not set)
    ollama not probed gpt-oss:20b http://localhost:11434/v1 none wanted
    openai not ready MODEL https://api.openai.com/v1 OPENAI_API_KEY empty
    openrouter not ready MODEL https://openrouter.ai/api/v1 OPENROUTER_API_KEY not set
    replay not ready - -

    program version where for
    git 2.47.3 BIN/git every run
    bwrap VERSION BIN/bwrap the sandbox
    gh not found repositories on GitHub

    sandbox state by
    namespaces available
    network-cut available
    masks available
    landlock available
    seccomp available
    resource-limits available

    searched BIN
    provider claude-cli (environment CRUCIBLE_LLM_PROVIDER), ready
    to use codex-cli: codex was not found; install it with `npm install -g @openai/codex`, or set [llm.codex-cli] binary
    to use gemini-cli: gemini was not found; install it with `npm install -g @google/gemini-cli`, or set [llm.gemini-cli] binary
    to use openai: the variable "OPENAI_API_KEY" that should hold its key is not set, empty, or not UTF-8; run `export OPENAI_API_KEY=YOUR-KEY`, or change [llm.openai] api_key_env
    to use openrouter: the variable "OPENROUTER_API_KEY" that should hold its key is not set, empty, or not UTF-8; run `export OPENROUTER_API_KEY=YOUR-KEY`, or change [llm.openrouter] api_key_env
    to use replay: no recording is named; run `export CRUCIBLE_LLM_REPLAY_CASSETTE=FILE` with a recording, or set [llm.replay] cassette
    exit 0
    "#);
    assert!(!fixture.data().exists());
}

#[test]
fn doctor_document_matches_schema_and_lists_searched_places() {
    let fixture = Fixture::new();
    let call =
        || doctor(&fixture, &[GIT, CLAUDE], &["--json"]).env("ANTHROPIC_API_KEY", "a-key-of-ours");
    let ran = call().run().ok();
    let seen = document(&ran);
    assert_eq!(seen["verdict"], "pass");
    assert_eq!(seen["choice"]["provider"], "gateway");
    assert_eq!(
        seen["choice"]["source"],
        "environment CRUCIBLE_LLM_PROVIDER"
    );
    let bin = fixture.path("bin");
    let codex = provider(&seen, "codex-cli");
    assert_eq!(
        codex["program"]["searched"][0],
        bin.join("codex").to_str().unwrap()
    );
    assert!(
        codex["problem"]["next"]
            .as_str()
            .unwrap()
            .contains("npm install")
    );
    let claude = &provider(&seen, "claude-cli")["program"];
    let printed = serde_json::to_string_pretty(claude)
        .unwrap()
        .replace(bin.to_str().unwrap(), "BIN");
    insta::assert_snapshot!(printed, @r#"
    {
      "install": "npm install -g @anthropic-ai/claude-code",
      "isolation": "full",
      "name": "claude",
      "needed_by": "provider",
      "path": "BIN/claude",
      "problem": null,
      "purpose": "claude-cli",
      "says": "2.1.330 (Claude Code)",
      "searched": [],
      "state": "found",
      "version": "2.1.330"
    }
    "#);
    let keys: Vec<String> = ["anthropic", "openai", "gateway", "claude-cli", "replay"]
        .map(|name| format!("{name}: {}", provider(&seen, name)["key"]))
        .into();
    insta::assert_snapshot!(keys.join("\n"), @r#"
    anthropic: {"state":"set","variable":"ANTHROPIC_API_KEY","wanted":"required"}
    openai: {"state":"unset","variable":"OPENAI_API_KEY","wanted":"required"}
    gateway: {"state":"unset","variable":null,"wanted":"optional"}
    claude-cli: {"state":"set","variable":"ANTHROPIC_API_KEY","wanted":"required"}
    replay: null
    "#);
    assert!(!ran.stdout.contains("a-key-of-ours"));
    let git = seen["programs"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["name"] == "git")
        .unwrap();
    assert_eq!(
        (&git["version"], &git["isolation"]),
        (&"2.47.3".into(), &"full".into())
    );

    // Whatever is wrong, the document has its shape.
    for (name, value) in [
        ("CRUCIBLE_LLM_PROVIDER", ""),
        ("CRUCIBLE_LLM_PROVIDER", "nobody\u{1b}[2J"),
        ("CRUCIBLE_SANDBOX", "off"),
        ("CRUCIBLE_GATEWAY_BASE_URL", "http://me:pass-0123@host/"),
        (
            "CRUCIBLE_GATEWAY_BASE_URL",
            "http://me:pass-0123#pass-0123/pass-0123?@host/",
        ),
        ("CRUCIBLE_LLM_REPLAY_CASSETTE", "/no/such"),
    ] {
        let ran = call().env(name, value).run();
        document(&ran);
        assert!(
            !ran.stdout.contains("pass-0123") && !ran.stdout.contains('\u{1b}'),
            "{}",
            ran.stdout
        );
    }
}

#[test]
fn every_searched_place_is_reported() {
    let fixture = Fixture::new();
    let call =
        doctor(&fixture, &[GIT], &[]).env("CRUCIBLE_LLM_CLAUDE_CLI_BINARY", "/no/such/claude");
    let ran = call.run();
    let searched = ran
        .stdout
        .lines()
        .find(|line| line.starts_with("searched"))
        .unwrap();
    let bin = fixture.path("bin");
    assert_eq!(
        searched,
        format!("searched   {} /no/such/claude", bin.display())
    );

    let tools = ["gh", "ruff", "mypy", "pytest", "codex", "gemini"].map(|name| (name, "echo 1.0"));
    let call =
        doctor(&fixture, &tools, &[]).env("CRUCIBLE_LLM_CLAUDE_CLI_BINARY", "/no/such/claude");
    let ran = call.run();
    assert!(
        ran.stdout.contains("searched   /no/such/claude\n"),
        "{}",
        ran.stdout
    );
}

#[test]
fn exit_code_says_whether_a_run_can_begin() {
    let fixture = Fixture::new();
    let ended = |programs: &[(&str, &str)], variables: &[(&str, &str)], code: i32| {
        let call = doctor(&fixture, programs, &["--json"]);
        let call = variables
            .iter()
            .fold(call, |call, (name, value)| call.env(name, value));
        let seen = document(&call.run().exits(code));
        let weighty = codes(&seen)
            .into_iter()
            .filter(|(_, level)| *level != "info");
        weighty
            .map(|(code, level)| format!("{level} {code}"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    // The machine of a closure before keeps its programs, so the poorest comes first.
    assert_eq!(ended(&[], &[], 2), "error doctor-program-missing");
    assert_eq!(
        ended(&[("git", "echo git version 2.20.1")], &[], 2),
        "error doctor-program-old"
    );
    assert_eq!(ended(&[GIT], &[], 0), "");
    assert_eq!(
        ended(&[], &[("CRUCIBLE_LLM_PROVIDER", "")], 0),
        "warning doctor-provider-unset"
    );
    // Nothing of a run is asked of a provider.
    let unset = ("CRUCIBLE_LLM_PROVIDER", "");
    assert_eq!(
        ended(
            &[],
            &[unset, ("CRUCIBLE_DISPATCH_MODE", "manual_outbox")],
            0
        ),
        ""
    );
    let openai = ("CRUCIBLE_LLM_PROVIDER", "openai");
    assert_eq!(ended(&[], &[openai], 2), "error doctor-provider-unready");
    assert_eq!(
        ended(&[], &[openai, ("OPENAI_API_KEY", "")], 2),
        "error doctor-provider-unready"
    );
    assert_eq!(ended(&[], &[openai, ("OPENAI_API_KEY", "key")], 0), "");
    let fallback = ("CRUCIBLE_LLM_FALLBACK_PROVIDER", "gateway");
    assert_eq!(
        ended(&[], &[openai, fallback], 0),
        "warning doctor-provider-unready"
    );
    let strategy = ("CRUCIBLE_LLM_EXECUTION_STRATEGY", "external_tool");
    assert_eq!(ended(&[], &[strategy], 2), "error doctor-strategy-refused");
    assert_eq!(
        ended(&[], &[("CRUCIBLE_SANDBOX", "off")], 0),
        "warning sandbox-off"
    );
}

#[test]
fn unusable_configuration_exits_with_2() {
    let fixture = Fixture::new();
    let python = fixture.path("python");
    let found = |settings: &str, code: i32| {
        fixture.user_config(settings);
        let seen = document(&doctor(&fixture, &[GIT], &["--json"]).run().exits(code));
        let findings = seen["findings"].as_array().unwrap().iter();
        let errors = findings.filter(|finding| finding["level"] == "error");
        errors
            .map(|finding| finding["subject"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
            .join("; ")
    };
    for (settings, subject) in [
        (
            "[council]\nprovider = \"openai\"\n",
            "for a council: openai",
        ),
        (
            "[crawl]\ngpt_provider = \"openai\"\n",
            "for the plans of a crawl: openai",
        ),
        (
            "[crawl]\nclaude_provider = \"openai\"\n",
            "for the reviews of a crawl: openai",
        ),
        (
            "[hooks.lint]\ncommand = [\"no-such-linter\"]\n",
            "no-such-linter",
        ),
        ("[hooks.lint]\ncommand = [\"./no/such\"]\n", "./no/such"),
        (
            &format!("[forge]\npython = {python:?}\n"),
            python.to_str().unwrap(),
        ),
        (
            "[forge]\nagent = \"command\"\nagent_command = [\"no-such-agent\"]\n",
            "no-such-agent",
        ),
    ] {
        let errors = found(settings, 2);
        assert!(errors.contains(subject), "{settings}: {errors}");
    }
    // The honest ones: the same settings with what is there, and one that is not used.
    for settings in [
        "[council]\nprovider = \"gateway\"\n",
        "[crawl]\ngpt_provider = \"gateway\"\nclaude_provider = \"gateway\"\n",
        "[hooks.lint]\ncommand = [\"git\", \"status\"]\n",
        "[forge]\nagent_command = [\"no-such-agent\"]\n",
    ] {
        assert_eq!(found(settings, 0), "", "{settings}");
    }
}

#[test]
fn unqueried_server_is_not_reported_ready() {
    let fixture = Fixture::new();
    let seen = document(
        &doctor(&fixture, &[GIT, CLAUDE], &["--json"])
            .env("OPENAI_API_KEY", "key")
            .run()
            .ok(),
    );
    assert_eq!(provider(&seen, "gateway")["readiness"], "unprobed");
    assert_eq!(provider(&seen, "openai")["readiness"], "unprobed");
    assert_eq!(provider(&seen, "anthropic")["readiness"], "not-ready");
    let text = doctor(&fixture, &[], &[]).run().ok().stdout;
    let chosen = text
        .lines()
        .find(|line| line.starts_with("provider   "))
        .unwrap();
    assert!(
        chosen.ends_with("gateway (environment CRUCIBLE_LLM_PROVIDER), not probed"),
        "{chosen}"
    );
}

#[test]
fn missing_items_come_first_with_their_command() {
    let fixture = Fixture::new();
    let call = doctor(&fixture, &[], &[]).env("CRUCIBLE_LLM_PROVIDER", "openai");
    let text = call
        .env("CRUCIBLE_COUNCIL_PROVIDER", "claude-cli")
        .run()
        .exits(2)
        .stdout;
    let mut lines = text.lines();
    let first: Vec<&str> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    assert!(
        lines.next().unwrap().trim_start().starts_with("provider "),
        "the tables follow: {text}"
    );
    let levels: Vec<&str> = first
        .iter()
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    assert_eq!(levels, ["error", "error", "error", "info"], "{text}");
    for (line, command) in [
        (0, "`export OPENAI_API_KEY=YOUR-KEY`"),
        (1, "`apt-get install git`"),
        (2, "`npm install -g @anthropic-ai/claude-code`"),
        (3, "`apt-get install gh`"),
    ] {
        assert!(first[line].contains(command), "{command}: {}", first[line]);
    }
    let unset = doctor(&fixture, &[GIT], &[])
        .env("CRUCIBLE_LLM_PROVIDER", "")
        .run()
        .ok()
        .stdout;
    assert!(unset.starts_with("warning doctor-provider-unset: LLM provider must be specified. Run `export CRUCIBLE_LLM_PROVIDER=NAME`"), "{unset}");
}

/// Only what this repository needs is listed: its gates' programs, and not the tools of skills.
#[test]
fn programs_of_this_repositorys_gates_are_listed() {
    let fixture = Fixture::new();
    let place = fixture.path("project");
    let write = |path: &str, content: &str| {
        let path = place.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    };
    write("go.mod", "module x\n");
    write("package.json", r#"{"scripts":{"test":"node --test"}}"#);
    write("pytest.ini", "[pytest]\n");
    let python = (".venv/bin/python3", ".venv/bin/pytest");
    for program in [python.0, python.1, ".venv/bin/python"] {
        write(program, "#!/bin/sh\n");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(place.join(program), mode).unwrap();
    }
    let args = ["--repo", place.to_str().unwrap()];
    let npm = ("npm", "echo 10.0.0");
    let ran = doctor(&fixture, &[GIT, npm], &args)
        .env("CRUCIBLE_LLM_PROVIDER", "")
        .run()
        .ok();
    let message = text(&fixture, &ran);
    for part in [
        "warning doctor-gate-tool-missing: go was not found.",
        "gate npm-test",
        "gate pytest",
        ".venv/bin/pytest",
    ] {
        assert!(message.contains(part), "{part} in {message}");
    }
    for other in ["ruff", "mypy", "make", "pip install pytest"] {
        assert!(!message.contains(other), "{other} in {message}");
    }
    write("src/skillset/__init__.py", "");
    let stdout = doctor(&fixture, &[GIT, npm], &args).run().stdout;
    assert!(stdout.contains("ruff"), "a project with skills: {stdout}");
}

#[test]
fn missing_bubblewrap_is_reported_without_failing() {
    let fixture = Fixture::new();
    let bin = machine(&fixture, &[GIT, CLAUDE]);
    std::fs::remove_file(bin.join("bwrap")).unwrap();
    let call = |strength: &str| {
        fixture
            .call(["doctor", "--json"])
            .env("PATH", &bin)
            .env("CRUCIBLE_SANDBOX", strength)
            .run()
    };
    let required = document(&call("required").exits(2));
    assert_eq!(
        provider(&required, "claude-cli")["program"]["version"],
        "2.1.330"
    );
    assert_eq!(
        provider(&required, "claude-cli")["program"]["isolation"],
        "partial"
    );
    assert!(
        codes(&required).contains(&("doctor-program-missing", "error")),
        "{required:#}"
    );
    assert!(
        codes(&required).contains(&("sandbox-layer-missing", "error")),
        "{required:#}"
    );
    let accepted = document(&call("best-effort").ok());
    assert!(
        codes(&accepted).contains(&("sandbox-layer-missing", "warning")),
        "{accepted:#}"
    );
}

/// Takes ten seconds: as long as the doctor waits for a client program that hangs.
#[test]
fn broken_client_is_reported_without_ending_doctor() {
    let fixture = Fixture::new();
    let folder = fixture.path("folder");
    std::fs::create_dir(&folder).unwrap();
    let flat = fixture.path("flat");
    std::fs::write(&flat, "#!/bin/sh\necho 1.0\n").unwrap();
    let with = |binary: &std::path::Path, code: i32| {
        let call = doctor(&fixture, &[GIT], &["--json"]).env("CRUCIBLE_LLM_PROVIDER", "claude-cli");
        let seen = document(
            &call
                .env("CRUCIBLE_LLM_CLAUDE_CLI_BINARY", binary)
                .run()
                .exits(code),
        );
        (
            provider(&seen, "claude-cli")["program"].clone(),
            codes(&seen)[0].0.to_owned(),
        )
    };
    for (bad, message) in [(&folder, "is a directory"), (&flat, "is not executable")] {
        let (program, code) = with(bad, 2);
        assert_eq!(program["state"], "unusable");
        assert!(
            program["problem"].as_str().unwrap().contains(message),
            "{program:#}"
        );
        assert_eq!(code, "doctor-provider-unready");
    }
    let hostile = [
        ("silent", "exit 0", "printed nothing"),
        (
            "loud",
            "while :; do echo 0123456789012345678901234567890123456789; done",
            "exceeded the limit",
        ),
        (
            "sorry",
            "echo 'no such option' >&2; exit 64",
            "exit code 64 when asked for its version: no such option",
        ),
        (
            "hangs",
            "trap '' TERM; /bin/sleep 1000; /bin/sleep 1000",
            "did not print its version within 10 s",
        ),
    ];
    let bin = machine(&fixture, &hostile.map(|(name, script, _)| (name, script)));
    for (name, _, says) in hostile {
        let (program, code) = with(&bin.join(name), 0);
        assert_eq!(
            (&program["state"], code.as_str()),
            (&"found".into(), "doctor-program-mute")
        );
        assert!(
            program["problem"].as_str().unwrap().contains(says),
            "{program:#}"
        );
    }
    let asks = "printf '\\033]0;mine\\007Password: '; read secret < /dev/tty || read secret; echo";
    let bin = machine(&fixture, &[("asks", asks)]);
    let (program, _) = with(&bin.join("asks"), 0);
    assert_eq!(
        (&program["version"], &program["says"]),
        (&Value::Null, &"Password:".into())
    );
}

#[test]
fn doctor_checks_the_named_project() {
    let fixture = Fixture::new();
    let project = fixture.path("project/.crucible");
    std::fs::create_dir_all(&project).unwrap();
    std::fs::create_dir(fixture.path("project/.git")).unwrap();
    std::fs::write(
        project.join("config.toml"),
        "[llm]\nprovider = \"claude-cli\"\n",
    )
    .unwrap();
    let call = doctor(&fixture, &[GIT, CLAUDE], &["--json", "--repo"]).arg(fixture.path("project"));
    let seen = document(&call.without_env("CRUCIBLE_LLM_PROVIDER").run().ok());
    assert_eq!(seen["choice"]["provider"], "claude-cli");
    assert!(
        seen["choice"]["source"]
            .as_str()
            .unwrap()
            .ends_with("config.toml")
    );
    doctor(&fixture, &[], &["--repo", "/no/such"])
        .run()
        .exits(2);
    // A limit that no budget can have would refuse a run, too.
    let call = doctor(&fixture, &[], &["--json"])
        .env("CRUCIBLE_LLM_BUDGET_DOLLARS", "-1")
        .run()
        .exits(2);
    assert!(
        call.message().contains("llm.budget.dollars"),
        "{}",
        call.stderr
    );
    std::fs::write(project.join("config.toml"), "[llm]\nprovder = \"x\"\n").unwrap();
    let broken = doctor(&fixture, &[], &["--json", "--repo"])
        .arg(fixture.path("project"))
        .run()
        .exits(2);
    assert!(
        broken.message().contains("did you mean `llm.provider`"),
        "{}",
        broken.stderr
    );
}

#[test]
fn interrupted_doctor_mentions_no_run() {
    let fixture = Fixture::new();
    let client = fixture.path("slow client");
    std::fs::write(&client, "#!/bin/sh\nsleep 60\n").unwrap();
    std::fs::set_permissions(&client, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = fixture
        .call(["doctor"])
        .env("CRUCIBLE_LLM_CLAUDE_CLI_BINARY", &client)
        .command();
    let child = command
        .stderr(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // It listens before it starts the first program, and the client holds it up.
    let tasks = format!("/proc/{}/task", child.id());
    let has_child = || {
        let tasks = std::fs::read_dir(&tasks).unwrap().flatten();
        // A thread may end while it is looked at.
        let children = tasks
            .map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
        children
            .into_iter()
            .any(|numbers| !numbers.trim().is_empty())
    };
    let begun = std::time::Instant::now();
    while !has_child() {
        assert!(begun.elapsed().as_secs() < 60, "it starts no program");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let number = nix::unistd::Pid::from_raw(child.id().try_into().unwrap());
    nix::sys::signal::kill(number, nix::sys::signal::Signal::SIGINT).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130));
    let message = String::from_utf8(ended.stderr).unwrap();
    assert!(
        message.contains("interrupted") && !message.contains("run advance"),
        "{message}"
    );
}
