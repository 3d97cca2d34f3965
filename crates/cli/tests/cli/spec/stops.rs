//! Every way in which a phase stops: time, budget, secrets, size, locks, signals and a full disk; and what is left then.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crucible_testkit::{FakeApi, Reply};
use serde_json::{Value, json};

use super::support::{
    IDEA, RECEIPT_SCHEMA, REQUIREMENTS, SPEC, answering, artifact, asked, at, everything, good,
    newest, project, receipts, resume, server, spec, spec_dir, valid, with_idea,
};
use crate::crawl::support::wait_for;
use crate::support::{Fixture, answering as always};

#[test]
fn secret_in_idea_reaches_no_model_or_file() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    let key = format!("AKIA{}", "Z7QWERTYUIOPASDF");
    let ran = with_idea(
        fixture.call(["spec", SPEC]),
        &project,
        &format!("export data\nwith {key} as the key\n"),
    )
    .exits(8);
    assert!(
        ran.stderr.contains("standard input holds a secret (rule ")
            && ran.stderr.contains("line 2"),
        "{}",
        ran.stderr
    );
    assert_eq!(server.requests().len(), 0);
    assert!(
        !ran.stderr.contains(&key) && !everything(&project).contains(&key),
        "{}",
        ran.stderr
    );
    let receipt = newest(&project);
    assert_eq!(
        (
            &receipt["exit_code"],
            &receipt["phases"][0]["error"]["class"]
        ),
        (&json!(8), &json!("secret"))
    );
    // The idea that was refused is not kept.
    assert!(!spec_dir(&project).join("context/idea.md").exists());
    resume(&fixture, &project, []).exits(2);
}

#[test]
fn oversized_packet_names_largest_entries_and_keeps_sizes() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    std::fs::write(project.join("large.md"), "word ".repeat(20_000)).unwrap();
    let ran = spec(&fixture, &project, ["--context", "large.md"]).exits(7);
    assert!(
        ran.stderr.contains("large.md (100000 bytes"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("CRUCIBLE_SPEC_MAX_PACKET_BYTES"),
        "{}",
        ran.stderr
    );
    assert_eq!(server.requests().len(), 0);
    let receipt = newest(&project);
    assert_eq!(
        (
            &receipt["exit_code"],
            &receipt["phases"][0]["error"]["class"]
        ),
        (&json!(7), &json!("packet_over_limit"))
    );
    let id = receipt["receipt_id"].as_str().unwrap();
    let manifest =
        std::fs::read(spec_dir(&project).join(format!("context/{id}.packet.json"))).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest["schema_version"], "crucible-packet-v1");
    assert!(manifest.to_string().contains("large.md"), "{manifest:#}");
}

#[test]
fn endless_call_times_out_with_a_receipt() {
    let hanging = FakeApi::start([Reply::Hang]);
    let fixture = Fixture::with(&hanging);
    let project = project(&fixture);
    let call = fixture
        .call(["spec", SPEC])
        .env("CRUCIBLE_LLM_TIMEOUT_S", "1");
    let ran = with_idea(call, &project, IDEA).exits(10);
    assert!(ran.stderr.contains("llm.timeout_s"), "{}", ran.stderr);
    let receipt = newest(&project);
    assert_eq!(receipt["exit_code"], 10);
    let phase = &receipt["phases"][0];
    assert_eq!(
        (&phase["error"]["class"], &phase["llm"]["timed_out"]),
        (&json!("timeout"), &json!(true))
    );
    // The time of the phase, for all its calls together.
    let call = fixture
        .call(["spec", SPEC])
        .env("CRUCIBLE_SPEC_PHASE_TIMEOUT_S", "1");
    let ran = with_idea(call, &project, IDEA).exits(10);
    assert!(
        ran.stderr.contains("spec.phase_timeout_s"),
        "{}",
        ran.stderr
    );
    assert_eq!(newest(&project)["phases"][0]["error"]["class"], "timeout");
}

#[test]
fn exhausted_budget_is_reported_and_recorded() {
    let server =
        server(|phase, _| (phase == "requirements").then(|| Reply::Answer("I did it.".to_owned())));
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    let call = fixture
        .call(["spec", SPEC, "--json"])
        .env("CRUCIBLE_OPENROUTER_BUDGET", "1");
    let ran = with_idea(call, &project, IDEA).exits(70);
    assert_eq!(ran.error()["budget_exhausted"], true);
    assert!(
        ran.error()["hints"]
            .to_string()
            .contains("CRUCIBLE_OPENROUTER_BUDGET")
    );
    let receipt = newest(&project);
    assert_eq!(receipt["exit_code"], 70);
    let phase = &receipt["phases"][0];
    assert_eq!(
        (&phase["llm"]["budget_exhausted"], &phase["error"]["class"]),
        (&json!(true), &json!("budget"))
    );
    assert_eq!(phase["warnings"][0]["type"], "llm_budget_exhausted");
    assert_eq!(asked(&server).len(), 1);
}

#[test]
fn provider_failure_is_reported_and_recorded() {
    let server = FakeApi::start([Reply::Status(401)]);
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    spec(&fixture, &project, []).exits(70);
    let receipt = newest(&project);
    assert_eq!(
        (
            &receipt["exit_code"],
            &receipt["phases"][0]["error"]["class"]
        ),
        (&json!(70), &json!("provider"))
    );
    assert_eq!(receipt["phases"][0]["llm"]["error"], "provider_auth");
}

#[test]
fn concurrent_command_names_the_working_process() {
    let server = server(|_, _| Some(Reply::Hang));
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    let mut command = fixture
        .call(["spec", SPEC, "--source", "README.md"])
        .current_dir(&project)
        .command();
    let mut first = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("the first to ask", || server.completions().len() == 1);
    let ran = spec(&fixture, &project, []).exits(9);
    let owner = format!("(process {}: crucible spec {SPEC})", first.id());
    assert!(ran.stderr.contains(&owner), "{}", ran.stderr);
    assert_eq!(receipts(&project).len(), 0);
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn taken_by_force_the_first_process_keeps_nothing() {
    let mut calls = 0;
    let slow = server(move |phase, _| {
        calls += 1;
        (calls == 1).then(|| Reply::LateAnswer(good(phase), Duration::from_secs(4)))
    });
    let fixture = Fixture::with(&slow);
    let project = project(&fixture);
    let mut command = fixture
        .call(["spec", SPEC, "--source", "README.md"])
        .current_dir(&project)
        .command();
    let first = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("the first to ask", || slow.completions().len() == 1);
    spec(&fixture, &project, ["--force"]).ok();
    let lost = first.wait_with_output().unwrap();
    assert_eq!(lost.status.code(), Some(9), "{lost:?}");
    assert!(
        String::from_utf8_lossy(&lost.stderr).contains("--force"),
        "{lost:?}"
    );
    assert_eq!(
        receipts(&project).len(),
        1,
        "only the one that took the lock left a receipt"
    );
    at(
        &fixture,
        &project,
        ["gate", SPEC, "--min-phase", "requirements"],
    )
    .ok();
    // What it was answered too late harms nobody: the next try takes it over.
    resume(&fixture, &project, ["--phase", "requirements"]).ok();
    assert_eq!(newest(&project)["phases"][0]["warnings"], json!([]));
    for entry in std::fs::read_dir(spec_dir(&project).join("context")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if let Some(id) = name.strip_suffix(".calls.jsonl") {
            assert!(!id.contains('.'), "{name} is nobody's");
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(
                text.starts_with("{\"") && text.contains("cassette"),
                "{name}: {text}"
            );
        }
        assert!(!name.ends_with("unreadable-calls"), "{name}");
    }
}

/// The model answers the first question badly and hangs on the correction; then the process is killed.
#[test]
fn killed_call_leaves_consistent_state_and_reuses_answers() {
    let hang = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let hangs = std::sync::Arc::clone(&hang);
    let server = server(move |phase, request| {
        if phase != "requirements" {
            return None;
        }
        if !request
            .conversation()
            .contains("A first answer was refused")
        {
            return Some(Reply::Answer(
                "I have written the requirements document.".to_owned(),
            ));
        }
        hangs
            .load(std::sync::atomic::Ordering::SeqCst)
            .then_some(Reply::Hang)
    });
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    std::fs::write(project.join("idea.md"), IDEA).unwrap();
    let mut command = fixture
        .call(["spec", SPEC, "--source", "idea.md"])
        .current_dir(&project)
        .command();
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("the correction to be asked", || {
        server.completions().len() == 2
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(receipts(&project).len(), 0);
    assert!(
        !spec_dir(&project)
            .join("artifacts/00-requirements.md")
            .exists()
    );
    hang.store(false, std::sync::atomic::Ordering::SeqCst);
    fixture
        .call(["spec", SPEC, "--source", "idea.md"])
        .current_dir(&project)
        .run()
        .ok();
    assert_eq!(
        asked(&server).len(),
        3,
        "the first answer was paid for and is not asked for again"
    );
    let receipt = newest(&project);
    assert_eq!(
        (&receipt["sequence"], &receipt["phases"][0]["attempts"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(artifact(&project, "00-requirements.md"), REQUIREMENTS);
    let left: Vec<String> = std::fs::read_dir(spec_dir(&project).join("context"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".calls.jsonl"))
        .collect();
    assert_eq!(
        left,
        [format!(
            "{}.calls.jsonl",
            receipt["receipt_id"].as_str().unwrap()
        )]
    );
}

/// SIGKILL at moments all over the work; the next command always gets through.
#[test]
fn command_after_kill_at_any_moment_succeeds() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    std::fs::write(project.join("idea.md"), IDEA).unwrap();
    for pause in [5, 15, 25, 35, 50, 70, 90, 120, 150, 200] {
        let mut command = fixture
            .call(["spec", SPEC, "--source", "idea.md", "--through", "final"])
            .current_dir(&project)
            .command();
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(pause));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    fixture
        .call(["spec", SPEC, "--source", "idea.md", "--through", "final"])
        .current_dir(&project)
        .run()
        .ok();
    at(&fixture, &project, ["gate", SPEC, "--min-phase", "final"]).ok();
    at(&fixture, &project, ["ledger", "verify"]).ok();
}

#[test]
fn interrupted_phase_leaves_receipt_and_can_continue() {
    let mut hangs = true;
    let server = server(move |phase, _| {
        (phase == "design" && std::mem::replace(&mut hangs, false)).then_some(Reply::Hang)
    });
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    std::fs::write(project.join("idea.md"), IDEA).unwrap();
    let call = ["spec", SPEC, "--source", "idea.md", "--through", "tasks"];
    let mut command = fixture.call(call).current_dir(&project).command();
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("the design to be asked for", || {
        server.completions().len() == 2
    });
    let begun = Instant::now();
    let id = child.id().to_string();
    assert!(
        std::process::Command::new("kill")
            .args(["-s", "INT", &id])
            .status()
            .unwrap()
            .success()
    );
    let output = child.wait_with_output().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let receipt = newest(&project);
    valid(&receipt, RECEIPT_SCHEMA);
    assert_eq!(
        (
            &receipt["exit_code"],
            &receipt["phases"][0]["error"]["class"]
        ),
        (&json!(130), &json!("interrupted"))
    );
    assert_eq!(receipt["phases"][0]["attempts"], 1, "it was sent");
    fixture.call(call).current_dir(&project).run().ok();
    assert_eq!(
        asked(&server),
        ["requirements", "design", "design", "tasks"]
    );
}

#[test]
fn secret_quoted_by_model_reaches_no_file() {
    let key = format!("AKIA{}", "Z7QWERTYUIOPASDF");
    let message = REQUIREMENTS.replacen("in one file", &format!("with {key}"), 1);
    let server = always(message);
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    spec(&fixture, &project, []).ok();
    assert!(!everything(&project).contains(&key));
    let warnings = newest(&project)["phases"][0]["warnings"].to_string();
    assert!(
        warnings.contains("1 secret removed from the answer"),
        "{warnings}"
    );
}

/// Runs in a mount namespace in which `.crucible` is a small file system of its own; `$1` is the program.
const FULL: &str = r#"
failed=0
before=none
for phase in requirements design tasks review fixup final; do
    free=0
    while true; do
        dd if=/dev/zero of=.crucible/ballast bs=4096 2>/dev/null
        truncate -s "-$((free * 4096))" .crucible/ballast || exit 90
        "$1" spec export-data --source idea.md --through "$phase" >/dev/null 2>said
        code=$?
        rm -f .crucible/ballast
        [ $code = 0 ] && break
        grep -q '^error: ' said || { cat said; exit 91; }
        failed=$((failed + 1))
        # What was done before stands, and nothing is half-done.
        if [ -d .crucible/specs/export-data ]; then
            "$1" status export-data --json > status.json || exit 92
            grep -q '"problems": \[\]' status.json || { cat status.json; exit 93; }
        fi
        [ $before = none ] || "$1" gate export-data --min-phase $before >said 2>&1 || { cat said; exit 94; }
        free=$((free + 1))
        [ $free -lt 200 ] || exit 95
    done
    before=$phase
done
"$1" gate export-data --min-phase final >said 2>&1 || { cat said; exit 96; }
"$1" ledger verify >/dev/null || exit 97
[ -z "$(find .crucible -name '.tmp*' -o -name staging)" ] || { find .crucible; exit 98; }
echo "failed $failed"
"#;

#[test]
fn full_disk_fails_phase_and_spec_resumes() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    std::fs::write(project.join("idea.md"), IDEA).unwrap();
    let program = fixture.call(["--version"]).command();
    let mut story = std::process::Command::new("bwrap");
    story
        .args(["--dev-bind", "/", "/", "--size", "2097152", "--tmpfs"])
        .arg(project.join(".crucible"));
    story
        .args(["sh", "-c", FULL, "story"])
        .arg(program.get_program())
        .current_dir(&project);
    story.env_clear().envs(
        program
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let output = story.output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{:?}\n{stdout}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    let failed: u32 = stdout
        .lines()
        .last()
        .unwrap()
        .strip_prefix("failed ")
        .unwrap()
        .parse()
        .unwrap();
    assert!(failed >= 12, "the disk was hardly ever full: {stdout}");
}
