//! What a command of `sandbox exec` may use, and what is said when its time is over.

use std::process::Command;

use crate::support::{Call, Fixture};

/// The program in a directory of the fixture that is no home.
fn exec(fixture: &Fixture, words: &[&str]) -> Call {
    std::fs::create_dir_all(fixture.path("work")).unwrap();
    fixture
        .call([&["sandbox", "exec"], words].concat())
        .current_dir(fixture.path("work"))
}

/// A command may have ended before anyone looks at its group.
#[test]
fn level_of_limits_is_same_each_time() {
    let fixture = Fixture::new();
    for flags in [&[][..], &["--sandbox", "off"]] {
        let level = |_| {
            let words = [flags, &["--json", "--", "true"]].concat();
            let ran = exec(&fixture, &words).run().ok().json();
            ran["isolation"]["resources"].to_string()
        };
        let levels: std::collections::BTreeSet<String> = (0..12).map(level).collect();
        assert_eq!(levels.len(), 1, "{flags:?}: {levels:?}");
    }
}

const TAKE: &str = "kept = b'x' * (300 << 20); print('had it')";

#[test]
fn memory_and_processes_are_settings() {
    let fixture = Fixture::new();
    let take = ["--json", "--", "python3", "-c", TAKE];
    let ran = exec(&fixture, &take).run().ok().json();
    assert_eq!(
        (ran["stdout"].as_str(), ran["ran_out_of_memory"].as_bool()),
        (Some("had it\n"), Some(false))
    );
    let level = ran["isolation"]["resources"].as_str().unwrap().to_owned();
    assert!(["cgroup", "rlimit"].contains(&level.as_str()), "{level}");
    fixture.user_config("[sandbox]\nmemory_mib = 100\n");
    let ran = exec(&fixture, &take).run().exits(1);
    let is_reported =
        ran.stderr.contains("used up its memory") && ran.stderr.contains("memory_mib");
    assert!(
        !ran.stderr.contains("signal") && (is_reported || level != "cgroup"),
        "{}",
        ran.stderr
    );
    let ran: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(ran["stdout"], "");
    assert_eq!(ran["ran_out_of_memory"], level == "cgroup");
    let ran = exec(&fixture, &take)
        .env("CRUCIBLE_SANDBOX_MEMORY_MIB", "1000")
        .run()
        .ok()
        .json();
    assert_eq!(ran["stdout"], "had it\n");
    let ran = exec(
        &fixture,
        &[
            "--",
            "sh",
            "-c",
            "sleep 1 & sleep 1 & sleep 1 & wait; echo all",
        ],
    );
    let ran = ran.env("CRUCIBLE_SANDBOX_PROCESSES", "2").run();
    assert_ne!(ran.stdout, "all\n", "{}", ran.stderr);
    // Whose project it is does not say what its code may use.
    std::fs::create_dir_all(fixture.path("project/.crucible")).unwrap();
    std::fs::write(
        fixture.path("project/.crucible/config.toml"),
        "[sandbox]\nmemory_mib = 0\n",
    )
    .unwrap();
    fixture
        .call(["sandbox", "exec", "--", "true"])
        .current_dir(fixture.path("project"))
        .run()
        .exits(2);
}

#[test]
fn without_control_groups_each_process_is_bounded() {
    let fixture = Fixture::new();
    let inner = exec(&fixture, &["--json", "--", "sh", "-c", "ulimit -d"]).command();
    let mut command = Command::new("bwrap");
    command
        .args(["--dev-bind", "/", "/", "--tmpfs", "/sys/fs/cgroup", "--"])
        .arg(inner.get_program());
    command
        .args(inner.get_args())
        .env_clear()
        .current_dir(fixture.path("work"));
    command.envs(
        inner
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let ran = Call::from_command(command).run().ok().json();
    assert_eq!(
        (
            ran["isolation"]["resources"].as_str(),
            ran["stdout"].as_str()
        ),
        (Some("rlimit"), Some("4194304\n"))
    );
}

#[test]
fn command_ignoring_term_reports_when_killed() {
    let fixture = Fixture::new();
    let script = "trap '' TERM; while :; do sleep 60; done";
    let ran = exec(&fixture, &["--timeout", "1", "--", "sh", "-c", script])
        .run()
        .exits(10);
    let expected = "the command was ended after 1 second; it ignored TERM and was killed 5.";
    assert!(
        ran.stderr.contains(expected) && ran.stderr.contains("(grace period: 5.0 s)"),
        "{}",
        ran.stderr
    );
    let ran = exec(&fixture, &["--json", "--timeout", "1", "--", "sleep", "60"])
        .run()
        .exits(10)
        .json();
    assert_eq!(
        (&ran["stopped"]["grace_ms"], &ran["stopped"]["was_killed"]),
        (&5000.into(), &false.into())
    );
}
