//! The demo: real git, a real build of the bundled repository, and the recorded words of a real model.

use std::path::Path;

use crate::support::{Call, Fixture};

/// The demo as a user starts it. Its gate is cargo, whose toolchain may lie below the user's real home.
///
/// It is made outside of this workspace: cargo asks the folders above a package whether it belongs to them.
fn demo(fixture: &Fixture, directory: &Path) -> Call {
    let call = fixture
        .call(["demo", "--directory"])
        .arg(directory)
        .without_env("CRUCIBLE_LLM_PROVIDER");
    ["HOME", "CARGO_HOME", "RUSTUP_HOME"]
        .iter()
        .filter_map(|name| Some((name, std::env::var_os(name)?)))
        .fold(call, |call, (name, value)| call.env(name, value))
}

/// The places of `texts` in `story`, which must come in this order.
fn in_order(story: &str, texts: &[&str]) {
    let mut rest = story;
    for text in texts {
        let Some((_, after)) = rest.split_once(text) else {
            panic!("{text:?} is missing, or comes too early, in:\n{story}");
        };
        rest = after;
    }
}

#[test]
fn demo_refuses_first_proposal_and_lands_second() {
    let (fixture, place) = (Fixture::new(), tempfile::tempdir().unwrap());
    let directory = place.path().join("demo");
    let ran = demo(&fixture, &directory).run().ok();
    in_order(
        &ran.stderr,
        &[
            "come from a recording of Qwen2.5-Coder-1.5B-Instruct",
            "its tests fail before any change",
            "What the model may see: src/lib.rs",
            "signed by its digest",
            "Attempt 1",
            "-        assert_eq!(twelve(0), 12);\n      -        assert_eq!(twelve(12), 12);\n      +",
            "refused: patch-test-edited src/lib.rs",
            "The patch gate refuses it",
            "Attempt 2",
            "The patch gate accepts it",
            "gate cargo-test: passed",
            "Verified.",
        ],
    );
    in_order(
        &ran.stdout,
        &[
            "Committed ",
            "Crucible-Run: ",
            "Crucible-Verify: ",
            "Evidence: ",
            "crucible init",
            "run start",
            "run status",
        ],
    );

    let repository = directory.join("repository");
    let log = std::process::Command::new("git")
        .arg("-C")
        .arg(&repository)
        .args(["log", "--format=%B"])
        .output()
        .unwrap();
    assert!(
        String::from_utf8(log.stdout)
            .unwrap()
            .contains("Crucible-Ledger: ")
    );
    let content = std::fs::read_to_string(repository.join("src/lib.rs")).unwrap();
    assert!(
        content.contains("assert_eq!(twelve(0), 12)") && content.contains("if hour % 12 == 0"),
        "{content}"
    );

    let evidence = |args: &[&str]| {
        fixture
            .call(args)
            .env("CRUCIBLE_HOME", directory.join("crucible"))
    };
    let verified = evidence(&["ledger", "verify", "--json", "--repo"])
        .arg(&repository)
        .run()
        .ok()
        .json();
    assert_eq!(verified["verdict"], "pass", "{verified}");
}

#[test]
fn its_document_names_the_commit_and_who_spoke() {
    let (fixture, place) = (Fixture::new(), tempfile::tempdir().unwrap());
    let directory = place.path().join("demo");
    let document = demo(&fixture, &directory)
        .args(["--json"])
        .run()
        .ok()
        .json();
    assert_eq!(document["schema_version"], "crucible-demo-v1");
    assert_eq!(document["recorded_model"], "Qwen2.5-Coder-1.5B-Instruct");
    assert_eq!(
        document["commit"].as_str().map(str::len),
        Some(40),
        "{document}"
    );
    demo(&fixture, &directory).run().exits(2);
}

#[test]
fn unusable_cargo_is_not_a_failing_test() {
    let (fixture, place) = (Fixture::new(), tempfile::tempdir().unwrap());
    let tools = place.path().join("tools");
    std::fs::create_dir(&tools).unwrap();
    let cargo = tools.join("cargo");
    // What rustup's own program says where no toolchain is found.
    let message = "error: rustup could not choose a version of cargo to run, because one wasn't specified explicitly, and no default is configured.";
    std::fs::write(
        &cargo,
        format!("#!/bin/sh\necho \"{message}\" >&2\nexit 1\n"),
    )
    .unwrap();
    std::fs::set_permissions(&cargo, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = std::env::join_paths(
        std::iter::once(tools).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let ran = demo(&fixture, &place.path().join("demo"))
        .env("PATH", path.unwrap())
        .run()
        .exits(2);
    for part in [
        "gate cargo-test could not run",
        "rustup could not choose a version of cargo",
        "rustup default stable",
    ] {
        assert!(ran.stderr.contains(part), "{part} in {}", ran.stderr);
    }
    assert!(!ran.stderr.contains("its tests fail"), "{}", ran.stderr);
}
