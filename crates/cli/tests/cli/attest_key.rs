//! The signing key is out of reach of everything that Crucible starts: its file, the agent, other processes.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::{CHECK, Fixture, GATE, GOOD_DIFF, TEST, WRONG, id_of};
use crucible_testkit::RepoBuilder;

const PROBE: &str = include_str!("attest_probe.py");

/// An agent that ends with the test.
pub(crate) struct Agent {
    child: Child,
    socket: PathBuf,
}

impl Agent {
    /// Starts an agent without keys, with more variables.
    pub(crate) fn start(socket: &Path, vars: &[(&str, &Path)]) -> Self {
        let child = Command::new("ssh-agent")
            .arg("-D")
            .arg("-a")
            .arg(socket)
            .envs(vars.iter().copied())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while !socket.exists() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        Self {
            child,
            socket: socket.to_owned(),
        }
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A fixture with Crucible's own key, another key that an agent holds, and the command that probes for all of them.
struct Keys {
    fixture: Fixture,
    agent: Agent,
    other: PathBuf,
}

impl Keys {
    fn new() -> Self {
        let fixture = Fixture::new();
        fixture.run(["attest", "init"]).ok();
        // Outside of every home and of Crucible's own directory.
        let place = fixture.path("keys");
        std::fs::create_dir(&place).unwrap();
        let other = place.join("named_key");
        let exit_status = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f"])
            .arg(&other)
            .status();
        assert!(exit_status.unwrap().success());
        let agent = Agent::start(&fixture.path("agent.sock"), &[]);
        let added = Command::new("ssh-add")
            .arg("-q")
            .arg(&other)
            .env("SSH_AUTH_SOCK", agent.socket())
            .stderr(Stdio::null())
            .status();
        assert!(added.unwrap().success());
        Self {
            fixture,
            agent,
            other,
        }
    }

    fn words(&self) -> String {
        let own = self.fixture.data().join("attest/signing_key");
        format!(
            "'{}' '{}' '{}' {} '{}'",
            own.display(),
            self.other.display(),
            self.agent.socket().display(),
            self.agent.id(),
            self.fixture.data().join("ledger.db").display()
        )
    }
}

/// How many probes ran, and which succeeded.
fn counted(log: &str) -> (u64, Vec<&str>) {
    let line = log.lines().find_map(|line| line.strip_prefix("PROBES "));
    let line = line.unwrap_or_else(|| panic!("the probes did not end:\n{log}"));
    let count = line.split(' ').next().unwrap().parse().unwrap();
    (
        count,
        log.lines()
            .filter(|line| line.starts_with("HIT "))
            .collect(),
    )
}

#[test]
fn key_is_unreachable_for_gates_agents_and_commands() {
    let keys = Keys::new();
    let fixture = &keys.fixture;
    let probe = fixture.path("probe.py");
    std::fs::write(&probe, PROBE).unwrap();
    let agent = fixture.path("agent");
    // The agent gets its own copy of the probes: the file above is not shown to it.
    let text = format!(
        "#!/bin/sh\npython3 - {} confined >&2 <<'PROBE'\n{PROBE}PROBE\ncat <<'PATCH'\n{GOOD_DIFF}PATCH\n",
        keys.words()
    );
    std::fs::write(&agent, text).unwrap();
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).unwrap();
    fixture.user_config(&format!(
        "[dispatch]\nmode = \"api_agent\"\nagent_command = [{agent:?}]\n[attest]\nkey = {:?}\nrequired = true\n",
        keys.other
    ));
    let check = format!("python3 probe.py {} confined\n{CHECK}", keys.words());
    let repo = RepoBuilder::new()
        .files([
            (".crucible/config.toml", GATE),
            ("check.sh", check.as_str()),
            ("probe.py", PROBE),
            ("src/area.py", WRONG),
            ("tests/area_test.sh", TEST),
        ])
        .build();
    // The ledger exists before anything probes for it.
    fixture.run(["run", "list"]).ok();
    let with_agent = |call: crate::support::Call| call.env("SSH_AUTH_SOCK", keys.agent.socket());
    let started = with_agent(fixture.start_call(repo.path()))
        .run()
        .ok()
        .json();
    assert_eq!(started["state"], "verified", "{started:#}");
    let run = fixture.runs().pop().unwrap();
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    let gate = read(&run.join("logs/verify.stdout.log"));
    let logs = std::fs::read_dir(run.join("logs/agents")).unwrap();
    let agents: String = logs.map(|log| read(&log.unwrap().path())).collect();
    let command = with_agent(fixture.call(["sandbox", "exec", "--", "sh", "-c"]))
        .arg(format!("python3 probe.py {} confined", keys.words()))
        .current_dir(repo.path())
        .run()
        .ok();
    let mut total = 0;
    for (who, log) in [
        ("gate", &gate),
        ("agent", &agents),
        ("command", &command.stdout),
    ] {
        let (count, hits) = counted(log);
        assert!(count >= 200, "{who}: {count}");
        assert_eq!(hits, Vec::<&str>::new(), "{who}");
        total += count;
    }
    assert!(total >= 600);
    // The key still signs where it may, and nothing of git's configuration or hooks came along.
    let id = id_of(&started);
    with_agent(fixture.call(["run", "land", &id])).run().ok();
    assert!(!repo.path().join(".git/hooks/pre-commit").exists());
    // The probes can succeed: outside of the sandbox those of the test's own things do.
    let outside = Command::new("sh")
        .arg("-c")
        .arg(format!("python3 '{}' {}", probe.display(), keys.words()))
        .env("HOME", fixture.home())
        .env_remove("SSH_AUTH_SOCK")
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&outside.stdout).into_owned();
    let (_, hits) = counted(&log);
    for expected in [
        "HIT read ",
        "HIT sign ",
        "HIT agent ",
        "HIT socket ",
        "HIT ledger ",
        "HIT git ",
        "HIT agent process",
    ] {
        assert!(
            hits.iter().any(|hit| hit.starts_with(expected)),
            "{expected}: {hits:?}"
        );
    }
}

#[test]
fn key_is_out_of_reach_of_spec_hooks() {
    let keys = Keys::new();
    let fixture = &keys.fixture;
    fixture.user_config(&format!("[attest]\nkey = {:?}\n", keys.other));
    // The ledger exists before anything probes for it.
    fixture.run(["run", "list"]).ok();
    let hook = format!(
        "#!/bin/sh\npython3 probe.py {} confined > hook.log\n",
        keys.words()
    );
    let config =
        "[hooks.probe]\non = \"pre_gate\"\ncommand = [\"sh\", \"./hook.sh\"]\non_fail = \"warn\"\n";
    let repo = RepoBuilder::new()
        .files([
            (".crucible/config.toml", config),
            (
                ".crucible/specs/x/artifacts/00-requirements.md",
                "# Requirements: x\n",
            ),
            ("hook.sh", hook.as_str()),
            ("probe.py", PROBE),
        ])
        .build();
    let gate = fixture
        .call(["gate", "x"])
        .env("SSH_AUTH_SOCK", keys.agent.socket())
        .current_dir(repo.path())
        .run()
        .exits(1);
    assert!(
        gate.stdout.contains("gate-phase-missing"),
        "{}",
        gate.stdout
    );
    let log = std::fs::read_to_string(repo.path().join("hook.log")).unwrap();
    let (count, hits) = counted(&log);
    assert!(count >= 200, "{count}");
    assert_eq!(hits, Vec::<&str>::new());
}
