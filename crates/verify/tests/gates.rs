//! Real commands through the sandbox: how each of their ends is told.
//!
//! There is no inner stage in a test program, so the isolation is missing here, and the report says so; they have their
//! own tests in `crucible-sandbox`.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a helper of a test that cannot go on ends the test"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "a test lays out its own files and reads PATH to find a shell"
)]

#[path = "gates/runners.rs"]
mod runners;

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crucible_host::env::Environment;
use crucible_model::{ByteLimit, Code, Finding, Verdict};
use crucible_sandbox::{Sandbox, Strength, base_env, toolchain_env};
use crucible_verify::{
    Baseline, FailureClass, GateEnd, GateInput, GateLevel, GateObserver, GateOutcome, GateRun,
    GateSetting, GateSpec, NoopObserver, NotStarted, ReportInput, ReportPaths, Requirements,
    VerifyReport, VerifyResult, classify, excerpt, judge_run, logs, normalise, report, run_gates,
};

struct Fixture {
    dir: tempfile::TempDir,
    env: Environment,
}

impl Fixture {
    fn new() -> Self {
        let env = Environment::from_pairs([("PATH", std::env::var_os("PATH").unwrap())], "/");
        Self {
            dir: tempfile::tempdir().unwrap(),
            env,
        }
    }

    fn setting(&self) -> GateSetting {
        GateSetting {
            copy: self.dir.path().to_owned(),
            writable: Vec::new(),
            reports: None,
            masked: Vec::new(),
            mounts: Vec::new(),
            env: base_env(&self.env),
            identity: crucible_sandbox::Identity::default(),
            spelling: crucible_verify::Spelling::AsGiven,
            strength: Strength::BestEffort,
            log_limit: ByteLimit(4096),
        }
    }

    async fn run(&self, gates: &[GateInput], observer: &dyn GateObserver) -> Vec<GateOutcome> {
        run_gates(
            &Sandbox::new(None, &self.env),
            gates,
            &self.setting(),
            observer,
        )
        .await
    }

    async fn run_one(&self, gate: GateInput) -> GateRun {
        match self.run(&[gate], &NoopObserver).await.pop().unwrap() {
            GateOutcome::Ran(run) => *run,
            GateOutcome::Judged { .. } => panic!("not a command"),
        }
    }
}

fn command(id: &str, words: &[&str]) -> GateInput {
    timed(id, words, Duration::from_secs(30))
}

fn timed(id: &str, words: &[&str], timeout: Duration) -> GateInput {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    GateInput::Command(GateSpec::new(id.parse().unwrap(), words, timeout, "test"))
}

fn shell(id: &str, script: &str) -> GateInput {
    command(id, &["sh", "-c", script])
}

fn report_on(outcomes: &[GateOutcome]) -> VerifyReport {
    report(&ReportInput {
        gate: GateLevel::Lite,
        iteration: 1,
        max_iterations: 1,
        outcomes,
        requirements: Requirements {
            declared: &[],
            baseline: Baseline::default(),
        },
        named_tests: &std::collections::BTreeSet::new(),
        paths: ReportPaths::default(),
        plan_digest: None,
        patch_digest: None,
        tree: None,
    })
}

#[tokio::test]
async fn every_gate_is_checked_also_after_one_failed() {
    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);
    impl GateObserver for Heard {
        fn started(&self, gate: &GateInput) {
            let name = match gate {
                GateInput::Command(spec) => spec.id.to_string(),
                GateInput::Verdict { id, .. } => id.to_string(),
            };
            self.0.lock().unwrap().push(format!("+{name}"));
        }
        fn finished(&self, outcome: &GateOutcome) {
            self.0.lock().unwrap().push(format!("-{}", outcome.id()));
        }
    }
    let fixture = Fixture::new();
    let heard = Heard::default();
    let refused = Verdict::new(vec![Finding::error(
        Code::new("plan-unsigned"),
        "PLAN.md",
        "sign it",
    )]);
    let gates = [
        shell("one", "echo out; echo err >&2; exit 3"),
        GateInput::Verdict {
            id: "plan_check".parse().unwrap(),
            verdict: refused,
        },
        shell("two", "pwd; touch made"),
    ];
    let outcomes = fixture.run(&gates, &heard).await;
    assert_eq!(
        *heard.0.lock().unwrap(),
        ["+one", "-one", "+plan_check", "-plan_check", "+two", "-two"]
    );
    assert!(fixture.dir.path().join("made").exists());

    let report = report_on(&outcomes);
    assert_eq!(report.result, VerifyResult::Fail);
    let kinds: Vec<&str> = report
        .failures
        .iter()
        .map(|failure| failure.kind.as_str())
        .collect();
    assert_eq!(kinds, ["verify-gate-failed", "plan-unsigned"]);
    assert_eq!(report.commands[0].exit_code, 3);
    assert_eq!(report.commands[1].exit_code, 0);
    assert_eq!(report.isolation.len(), 2);

    let logs = logs(&outcomes);
    let stdout = String::from_utf8(logs.stdout).unwrap();
    let copy = fixture.dir.path().display();
    assert_eq!(
        stdout,
        format!(
            "==> one: sh -c 'echo out; echo err >&2; exit 3'\nout\n==> two: sh -c 'pwd; touch made'\n{copy}\n"
        )
    );
    assert!(String::from_utf8(logs.stderr).unwrap().contains("\nerr\n"));
}

#[tokio::test]
async fn hanging_gate_ignoring_term_is_killed() {
    let fixture = Fixture::new();
    let begun = Instant::now();
    let script = "trap '' TERM; while :; do sleep 0.1; done";
    let run = fixture
        .run_one(timed(
            "hang",
            &["sh", "-c", script],
            Duration::from_millis(300),
        ))
        .await;
    assert!(matches!(run.end, GateEnd::TimedOut { .. }), "{:?}", run.end);
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!(classify(&run), FailureClass::Timeout);
    assert_eq!(
        judge_run(&run).findings()[0].code.as_str(),
        "verify-gate-timeout"
    );
    assert_eq!(run.exit_code(), 124);
}

#[tokio::test]
async fn a_gate_that_cannot_run_has_failed() {
    let fixture = Fixture::new();
    std::fs::write(fixture.dir.path().join("no-program"), "text").unwrap();
    for words in [
        &["no-such-program-anywhere"][..],
        &["./no-program"],
        &["."],
        &[],
        &[""],
    ] {
        let run = fixture.run_one(command("lost", words)).await;
        assert!(
            matches!(run.end, GateEnd::NotStarted { .. }),
            "{words:?}: {:?}",
            run.end
        );
        assert!(!judge_run(&run).passes());
        assert_eq!(classify(&run), FailureClass::ToolMissing);
        let text = format!("{:?}", judge_run(&run));
        assert!(
            !text.contains(fixture.dir.path().to_str().unwrap()),
            "{text}"
        );
    }
}

#[tokio::test]
async fn gate_runs_after_setup_with_its_settings() {
    let fixture = Fixture::new();
    std::fs::create_dir_all(fixture.dir.path().join("packages/x")).unwrap();
    let words = |script: &str| ["sh", "-c", script].map(str::to_owned).to_vec();
    let script = "test \"$MODE\" = fast && test \"$PATH\" && test \"$(cat generated)\" = fast && basename \"$PWD\"";
    let spec = GateSpec {
        env: [("MODE".to_owned(), "fast".to_owned())].into(),
        cwd: Some("packages/x".parse().unwrap()),
        setup: vec![words("echo $MODE > generated"), words("test -s generated")],
        ..GateSpec::new(
            "x".parse().unwrap(),
            words(script),
            Duration::from_secs(30),
            "test",
        )
    };
    let run = fixture.run_one(GateInput::Command(spec)).await;
    assert_eq!(
        (run.end, run.stdout.text().as_ref()),
        (GateEnd::Exited(0), "x\n")
    );
    assert!(fixture.dir.path().join("packages/x/generated").exists());
}

#[tokio::test]
async fn gate_whose_setup_fails_could_not_run() {
    let fixture = Fixture::new();
    let words = |script: &str| ["sh", "-c", script].map(str::to_owned).to_vec();
    let spec = |setup: Vec<String>| GateSpec {
        setup: vec![setup],
        ..GateSpec::new(
            "x".parse().unwrap(),
            words("touch ran"),
            Duration::from_millis(300),
            "test",
        )
    };
    let missing = vec!["no-such-program-anywhere".to_owned()];
    for (setup, text) in [
        (
            words("echo no generator here >&2; exit 3"),
            "exited with code 3 and printed \"no generator here\"",
        ),
        (words("sleep 9"), "it was killed after 0.3 s"),
        (missing, "was not found on PATH"),
    ] {
        let run = fixture.run_one(GateInput::Command(spec(setup))).await;
        let GateEnd::NotStarted {
            why: NotStarted::Setup,
            message,
        } = &run.end
        else {
            panic!("{:?}", run.end)
        };
        assert!(
            message.contains("its setup command `") && message.contains(text),
            "{message}"
        );
        assert!(message.contains("gates.x.setup"), "{message}");
        assert_eq!((run.exit_code(), run.command), (126, words("touch ran")));
    }
    assert!(!fixture.dir.path().join("ran").exists());
}

#[tokio::test]
async fn gate_directory_outside_copy_is_refused() {
    let fixture = Fixture::new();
    std::os::unix::fs::symlink("/usr", fixture.dir.path().join("out")).unwrap();
    std::fs::write(fixture.dir.path().join("file"), "").unwrap();
    for cwd in ["out", "out/bin", "file", "none"] {
        let spec = GateSpec {
            cwd: Some(cwd.parse().unwrap()),
            ..GateSpec::new(
                "x".parse().unwrap(),
                vec!["true".to_owned()],
                Duration::from_secs(9),
                "test",
            )
        };
        let run = fixture.run_one(GateInput::Command(spec)).await;
        assert!(
            matches!(
                run.end,
                GateEnd::NotStarted {
                    why: NotStarted::Setup,
                    ..
                }
            ),
            "{cwd}: {:?}",
            run.end
        );
        assert!(!judge_run(&run).passes());
    }
}

#[tokio::test]
async fn a_sandbox_that_is_required_and_missing_refuses() {
    let fixture = Fixture::new();
    let setting = GateSetting {
        strength: Strength::Required,
        ..fixture.setting()
    };
    let sandbox = Sandbox::new(None, &fixture.env);
    let outcomes = run_gates(
        &sandbox,
        &[shell("touch", "touch made")],
        &setting,
        &NoopObserver,
    )
    .await;
    let GateOutcome::Ran(run) = &outcomes[0] else {
        panic!("not a command")
    };
    assert!(
        matches!(
            run.end,
            GateEnd::NotStarted {
                why: NotStarted::Sandbox,
                ..
            }
        ),
        "{:?}",
        run.end
    );
    assert!(!fixture.dir.path().join("made").exists());
    assert_eq!(
        report_on(&outcomes).failures[0].kind,
        "verify-sandbox-refused"
    );
}

#[tokio::test]
async fn gate_killed_by_signal_is_distinguished() {
    let fixture = Fixture::new();
    let run = fixture.run_one(shell("kill", "kill -9 $$")).await;
    assert_eq!(classify(&run), FailureClass::Killed);
    assert_eq!(run.exit_code(), 137);
    assert!(!judge_run(&run).passes());
}

#[tokio::test]
async fn long_output_keeps_its_end() {
    let fixture = Fixture::new();
    let run = fixture
        .run_one(shell(
            "long",
            "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done",
        ))
        .await;
    assert_eq!(run.end, GateEnd::Exited(0));
    assert!(run.stdout.bytes.len() <= 4096 && run.stdout.text().ends_with("line 1999\n"));
    let codes: Vec<String> = judge_run(&run)
        .findings()
        .iter()
        .map(|finding| finding.code.as_str().to_owned())
        .collect();
    assert!(codes.contains(&"verify-log-cut".to_owned()), "{codes:?}");
    let text = String::from_utf8(logs(&[GateOutcome::Ran(Box::new(run))]).stdout).unwrap();
    assert!(text.contains("bytes were kept]"));
}

#[tokio::test]
async fn a_secret_that_a_gate_prints_is_replaced() {
    let fixture = Fixture::new();
    let run = fixture
        .run_one(shell(
            "leak",
            "printf 'key %s%s\\n' AKIA ZQ3DRSTUVWXY2345 >&2",
        ))
        .await;
    assert!(
        !run.stderr.text().contains("ZQ3DRSTUVWXY2345"),
        "{}",
        run.stderr.text()
    );
}

#[tokio::test]
async fn gates_see_only_their_environment() {
    let fixture = Fixture::new();
    let run = fixture
        .run_one(shell("env", "env | grep -c CARGO_ || true"))
        .await;
    assert_eq!(run.stdout.text(), "0\n");
}

#[tokio::test]
async fn brief_is_independent_of_copy_path() {
    let script = "echo \"thread 't' ($$) panicked at $PWD/src/a.rs:1:2:\"; echo \"  left: 1\"; \
                  echo \"finished in 0.$$s\"; exit 101";
    let mut briefs = Vec::new();
    for _ in 0..2 {
        let fixture = Fixture::new();
        let run = fixture.run_one(shell("brief", script)).await;
        assert_eq!(classify(&run), FailureClass::TestFailure);
        briefs.push(excerpt(
            &normalise(&run.stdout.bytes, fixture.dir.path()),
            ByteLimit(1000),
        ));
    }
    assert_eq!(briefs[0], briefs[1]);
    assert_eq!(
        briefs[0],
        "thread 't' panicked at <copy>/src/a.rs:1:2:\n  left: 1\nfinished in <time>\n"
    );
}

#[tokio::test]
async fn cargo_failing_twice_in_two_places_reads_alike() {
    let source = "pub fn add(a: u32, b: u32) -> u32 { a - b }\n\
                  #[test] fn one() { assert_eq!(add(1, 1), 2); }\n\
                  #[test] fn two() { assert_eq!(add(5, 1), 6, \"sum\"); }\n\
                  #[test] fn three() { assert_eq!(add(3, 0), 3); }\n\
                  #[test] fn four() { let empty: Vec<u32> = Vec::new(); let _ = empty[add(9, 2) as usize]; }\n";
    let broken = "pub fn add(a: u32) -> u32 { a + missing }\n";
    for (text, class, telling) in [
        (
            source,
            FailureClass::TestFailure,
            &["left: 4", "right: 6"][..],
        ),
        (
            broken,
            FailureClass::CompileError,
            &[
                "error[E0425]",
                "src/lib.rs:1:33",
                "could not compile `sum`\n",
            ][..],
        ),
    ] {
        let mut briefs = Vec::new();
        for _ in 0..2 {
            let mut fixture = Fixture::new();
            fixture.env = Environment::from_pairs(
                [
                    "PATH",
                    "HOME",
                    "CARGO_HOME",
                    "RUSTUP_HOME",
                    "RUSTUP_TOOLCHAIN",
                ]
                .into_iter()
                .filter_map(|name| Some((name, std::env::var_os(name)?))),
                "/",
            );
            let copy = fixture.dir.path();
            let manifest = "[package]\nname = \"sum\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
            std::fs::create_dir(copy.join("src")).unwrap();
            std::fs::write(copy.join("Cargo.toml"), manifest).unwrap();
            std::fs::write(copy.join("src/lib.rs"), text).unwrap();
            let mut setting = fixture.setting();
            setting.env.extend(toolchain_env(&fixture.env));
            setting.env.push(("RUST_BACKTRACE".into(), "1".into()));
            setting.log_limit = ByteLimit(1 << 20);
            let gates = [timed(
                "cargo-test",
                &["cargo", "test", "--offline"],
                Duration::from_secs(120),
            )];
            let outcomes = run_gates(
                &Sandbox::new(None, &fixture.env),
                &gates,
                &setting,
                &NoopObserver,
            )
            .await;
            let GateOutcome::Ran(run) = &outcomes[0] else {
                panic!("not a command")
            };
            assert_eq!(
                classify(run),
                class,
                "{}{}",
                run.stderr.text(),
                run.stdout.text()
            );
            let log = [run.stderr.bytes.as_slice(), &run.stdout.bytes].concat();
            let text = normalise(&log, copy);
            assert!(!text.contains(copy.to_str().unwrap()), "{text}");
            briefs.push((text.clone(), excerpt(&text, ByteLimit(1500))));
        }
        assert_eq!(briefs[0], briefs[1]);
        for part in telling {
            assert!(briefs[0].1.contains(part), "{part} in:\n{}", briefs[0].1);
        }
    }
}
