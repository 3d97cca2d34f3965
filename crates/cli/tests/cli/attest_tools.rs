//! Programs and libraries that are not ours verify the statements and check the files for CI.

mod slow {
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use crate::attest::Team;

    /// Where the test command installs them.
    fn programs() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.tools/verifiers/bin")
    }

    #[test]
    fn libraries_of_others_verify_the_statements() {
        let team = Team::new();
        let commit = team.land();
        let bundles = team.fixture.path("bundles.jsonl");
        let export = team
            .fixture
            .call(["attest", "export", "--out"])
            .arg(&bundles);
        export.current_dir(team.repo.path()).run().ok();
        let script = team.fixture.path("verify.py");
        std::fs::write(&script, include_str!("attest_tools.py")).unwrap();
        let verify = |commit: &str, key: &str| {
            let output = Command::new(programs().join("python3"))
                .arg(&script)
                .arg(&bundles)
                .args([key, commit])
                .output()
                .unwrap();
            (
                output.status.success(),
                String::from_utf8_lossy(&output.stderr).into_owned(),
            )
        };
        let key = team.key();
        let (valid, said) = verify(&commit, &key);
        assert!(valid, "{said}");
        // They refuse what is not valid.
        let (valid, said) = verify(&"0".repeat(40), &key);
        assert!(!valid && said.contains("AssertionError"), "{said}");
        let text = std::fs::read_to_string(&bundles).unwrap();
        let payload = text.split("\"payload\":\"").nth(1).unwrap();
        let changed = text.replacen(
            &payload[..40],
            &format!("{}B{}", &payload[..20], &payload[21..40]),
            1,
        );
        std::fs::write(&bundles, changed).unwrap();
        let (valid, said) = verify(&commit, &key);
        assert!(!valid && said.contains("VerificationError"), "{said}");
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
