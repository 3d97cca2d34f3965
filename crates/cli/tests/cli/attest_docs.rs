//! The guide to signed statements, followed to its end by two people with one server, and the files for CI.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::attest::Team;
use crate::support::{Fixture, answering, good_answer, small};

/// The commands of the guide, each block with the person or machine that its first line names.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let parts = page.split("```sh\n# ").skip(1);
    parts
        .map(|part| {
            part.split_once("\n```")
                .unwrap()
                .0
                .split_once('\n')
                .unwrap()
        })
        .collect()
}

#[test]
fn team_of_two_follows_the_guide() {
    let page = include_str!("../../../../docs/attest.md");
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let room = fixture.path("team");
    std::fs::create_dir_all(room.join("server")).unwrap();
    let bare = room.join("server/server.git");
    repo.git(["clone", "--quiet", "--bare", ".", bare.to_str().unwrap()]);
    let program = Path::new(env!("CARGO_BIN_EXE_crucible")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let run = |who: &str, script: &str| {
        let home = room.join(format!("{who}-home"));
        std::fs::create_dir_all(&home).unwrap();
        let identity = format!("[user]\n\tname = {who}\n\temail = {who}@example.invalid\n");
        std::fs::write(home.join(".gitconfig"), identity).unwrap();
        let output = Command::new("sh")
            .args(["-e", "-c", script])
            .current_dir(room.join(who))
            .env_clear()
            .env("PATH", &path)
            .env("HOME", &home)
            .env("CRUCIBLE_HOME", home.join("crucible"))
            .env("GIT_CEILING_DIRECTORIES", &room)
            .env("CRUCIBLE_LLM_PROVIDER", "gateway")
            .env("CRUCIBLE_GATEWAY_BASE_URL", server.base_url())
            .output()
            .unwrap();
        let message = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(output.status.success(), "{who}: {script}\n{message}");
        message
    };
    for who in ["ada", "bob"] {
        let clone = room.join(who);
        std::fs::create_dir(&clone).unwrap();
        run(who, "git clone --quiet ../server/server.git .");
    }
    let blocks = blocks(page);
    assert_eq!(blocks.len(), 6);
    let messages: Vec<String> = blocks
        .iter()
        .map(|(who, script)| run(who, script))
        .collect();
    assert!(
        messages[4].contains("1 commit admitted: 1 attested"),
        "{}",
        messages[4]
    );
    assert!(messages[5].contains("attest-missing"), "{}", messages[5]);
}

/// The lines of a CI file that call the program or prepare its input, as one script.
fn script(lines: &[String]) -> String {
    let is_ours = |line: &&String| {
        ![
            "cargo install",
            "(cd / && cargo install",
            "apt-get",
            "git fetch",
        ]
        .iter()
        .any(|word| line.starts_with(word))
    };
    lines
        .iter()
        .filter(is_ours)
        .cloned()
        .collect::<Vec<_>>()
        .join("\n")
}

fn texts(value: &Value) -> Vec<String> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn ci_files_use_policy_of_target_branch() {
    let github: Value =
        serde_saphyr::from_str(include_str!("../../../../docs/ci/attest-github.yml")).unwrap();
    let gitlab: Value =
        serde_saphyr::from_str(include_str!("../../../../docs/ci/attest-gitlab.yml")).unwrap();
    assert_eq!(
        github["permissions"],
        serde_json::json!({ "contents": "read" })
    );
    let steps = github["jobs"]["attest"]["steps"].as_array().unwrap();
    // The program is installed before a file of the change can have a say.
    assert_eq!(steps[0]["name"], "Install Crucible");
    assert_eq!(steps[1]["with"]["fetch-depth"], 0);
    assert_eq!(steps[1]["with"]["persist-credentials"], false);
    let of_github: Vec<String> = steps
        .iter()
        .filter_map(|step| Some(step["run"].as_str()?.to_owned()))
        .collect();
    let of_gitlab = [
        texts(&gitlab["attest"]["before_script"]),
        texts(&gitlab["attest"]["script"]),
    ]
    .concat();

    let team = Team::new();
    let policy = std::fs::read(team.policy()).unwrap();
    team.repo.write(".crucible/attest.toml", &policy);
    let base = team.repo.commit("Add a policy");
    team.repo.git(["branch", "target"]);
    let landed = team.land();
    // A change that admits itself.
    team.repo.write(
        ".crucible/attest.toml",
        "version = 1\n[[people]]\nname = \"eve\"\nkey = \"ssh-ed25519 AAAA\"\n",
    );
    let forged = team.repo.commit("Change the policy");
    let room = team.fixture.path("runner");
    std::fs::create_dir(&room).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_crucible")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let temporary: PathBuf = team.fixture.path("temporary");
    std::fs::create_dir(&temporary).unwrap();
    for (script, head_name, base_name) in [
        (script(&of_github), "HEAD", "BASE"),
        (
            script(&of_gitlab),
            "CI_COMMIT_SHA",
            "CI_MERGE_REQUEST_DIFF_BASE_SHA",
        ),
    ] {
        for (head, code) in [(&landed, 0), (&forged, 1)] {
            let clone = room.join("clone");
            team.repo.git([
                "clone",
                "--quiet",
                "--no-local",
                ".",
                clone.to_str().unwrap(),
            ]);
            let fetch = [
                "fetch",
                "--quiet",
                "origin",
                "refs/notes/crucible:refs/notes/crucible",
            ];
            let fetched = Command::new("git")
                .args(fetch)
                .current_dir(&clone)
                .status()
                .unwrap();
            assert!(fetched.success());
            let output = Command::new("sh")
                .args(["-e", "-c", &script])
                .current_dir(&clone)
                .env_clear()
                .env("PATH", &path)
                .env("HOME", team.fixture.home())
                .env("CRUCIBLE_HOME", team.fixture.path("nothing"))
                .env("RUNNER_TEMP", &temporary)
                .env("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "target")
                .env(base_name, &base)
                .env(head_name, head)
                .output()
                .unwrap();
            let stdout = String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{script}\n{stdout}");
            assert_eq!(stdout.contains("attest-missing"), code == 1, "{stdout}");
            std::fs::remove_dir_all(&clone).unwrap();
        }
    }
}
