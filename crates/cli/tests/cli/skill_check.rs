//! `crucible skill check`: a skill is judged by its text, and the answer says where.

use crate::support::{Fixture, Ran};

const GOOD: &str = r#"from typing import Any

from skillset.skills.base import BaseSkill


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {}
"#;

fn check(fixture: &Fixture, text: &[u8], effects: &str) -> Ran {
    std::fs::write(fixture.path("demo.py"), text).unwrap();
    let call = fixture.call([
        "skill",
        "check",
        "--json",
        "--name",
        "demo",
        "--effects",
        effects,
    ]);
    call.arg(fixture.path("demo.py")).run()
}

#[test]
fn skill_check_judges_text_and_locates_findings() {
    let fixture = Fixture::new();
    let passed = check(&fixture, GOOD.as_bytes(), "read_only").ok().json();
    assert_eq!(passed["schema_version"], "crucible-skill-check-v1");
    assert_eq!(passed["verdict"], "pass");

    let bad = GOOD.replace(
        "return {}",
        "__import__('os').system('x')\n        return {}",
    );
    let refused = check(&fixture, bad.as_bytes(), "READ_ONLY").exits(1).json();
    assert_eq!(refused["verdict"], "fail");
    assert_eq!(refused["findings"][0]["code"], "forge-code");
    assert_eq!(
        refused["findings"][0]["subject"],
        "line 12, column 9: builtins.__import__"
    );

    let other = check(&fixture, GOOD.as_bytes(), "NETWORK").exits(1).json();
    assert_eq!(other["findings"][0]["code"], "forge-class-attribute");
    assert_eq!(
        check(&fixture, b"\xef\xbb\xbfx = 1\n", "MONEY")
            .exits(1)
            .json()["findings"][0]["code"],
        "forge-source"
    );
    assert_eq!(
        check(&fixture, &vec![b'#'; 300 << 10], "MONEY")
            .exits(1)
            .json()["findings"][0]["code"],
        "forge-source"
    );
    check(&fixture, GOOD.as_bytes(), "ANYTHING").exits(2);
}

#[test]
fn a_policy_that_is_none_is_no_policy() {
    let fixture = Fixture::new();
    check(&fixture, GOOD.as_bytes(), "READ_ONLY").ok();
    std::fs::write(fixture.path("policy.yaml"), "allow_imports: [yaml]\n").unwrap();
    let call = fixture.call([
        "skill",
        "check",
        "--name",
        "demo",
        "--effects",
        "READ_ONLY",
        "--policy",
    ]);
    call.arg(fixture.path("policy.yaml"))
        .arg(fixture.path("demo.py"))
        .run()
        .exits(3);
}

#[test]
fn unreadable_skill_text_is_an_error() {
    let fixture = Fixture::new();
    let (there, missing_path) = (fixture.path("demo.py"), fixture.path("gone.py"));
    check(&fixture, GOOD.as_bytes(), "READ_ONLY").ok();
    let directory = fixture.path("");
    let huge = fixture.path("huge.py");
    std::fs::File::create(&huge)
        .unwrap()
        .set_len((16 << 20) + 1)
        .unwrap();
    for (file, policy, code) in [
        (&missing_path, None, 2),
        (&directory, None, 2),
        (&huge, None, 7),
        (&there, Some(&missing_path), 2),
        (&there, Some(&directory), 2),
        (&there, Some(&huge), 7),
    ] {
        let call = fixture
            .call(["skill", "check", "--name", "demo", "--effects", "READ_ONLY"])
            .arg(file);
        let call = policy
            .into_iter()
            .fold(call, |call, policy| call.arg("--policy").arg(policy));
        let ran = call.run().exits(code);
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    }
}

#[test]
fn skill_check_options_override_project_policy_and_package() {
    let fixture = Fixture::new();
    let own = fixture.home().join(".crucible/skills/policy.yaml");
    std::fs::create_dir_all(own.parent().unwrap()).unwrap();
    let without = check(&fixture, GOOD.as_bytes(), "READ_ONLY").ok();
    assert!(
        without.stderr.contains("there is no") && without.stderr.contains("policy.yaml"),
        "{}",
        without.stderr
    );

    // The project's policy holds where none is named, and the remark says so.
    std::fs::write(&own, "forbidden_imports: [json]\n").unwrap();
    let json = GOOD.replacen("from typing", "import json\nfrom typing", 1);
    let refused = check(&fixture, json.as_bytes(), "READ_ONLY").exits(1);
    assert!(
        refused.stderr.contains(own.to_str().unwrap()),
        "{}",
        refused.stderr
    );
    let other = fixture.path("policy.yaml");
    std::fs::write(&other, "allowed_imports: []\n").unwrap();
    let call = fixture.call([
        "skill",
        "check",
        "--name",
        "demo",
        "--effects",
        "READ_ONLY",
        "--policy",
    ]);
    let named = call.arg(&other).arg(fixture.path("demo.py")).run().ok();
    assert!(
        named.stderr.contains(other.to_str().unwrap()),
        "{}",
        named.stderr
    );
    // One that is none, or lies behind a link, is not passed over.
    std::fs::write(&own, "allow_imports: []\n").unwrap();
    check(&fixture, GOOD.as_bytes(), "READ_ONLY").exits(3);
    std::fs::remove_file(&own).unwrap();
    std::os::unix::fs::symlink(&other, &own).unwrap();
    check(&fixture, GOOD.as_bytes(), "READ_ONLY").exits(2);
    std::fs::remove_file(&own).unwrap();

    // So does its package.
    std::fs::write(
        fixture.home().join(".crucible/config.toml"),
        "[forge]\npackage = \"my_tools\"\n",
    )
    .unwrap();
    check(&fixture, GOOD.as_bytes(), "READ_ONLY").exits(1);
    let mine = GOOD.replace("skillset", "my_tools");
    check(&fixture, mine.as_bytes(), "READ_ONLY").ok();
    std::fs::write(fixture.path("demo.py"), GOOD).unwrap();
    let call = fixture.call([
        "skill",
        "check",
        "--name",
        "demo",
        "--effects",
        "READ_ONLY",
        "--package",
        "skillset",
    ]);
    call.arg(fixture.path("demo.py")).run().ok();
}

#[test]
fn option_resembling_a_secret_is_refused_unquoted() {
    let fixture = Fixture::new();
    std::fs::write(fixture.path("demo.py"), GOOD).unwrap();
    let token = "ghp_0123456789abcdefABCDEF0123456789abcd";
    for option in ["--allow-host", "--allow-write", "--allow-secret"] {
        let call = fixture.call([
            "skill",
            "check",
            "--name",
            "demo",
            "--effects",
            "NETWORK",
            option,
            token,
        ]);
        let ran = call.arg(fixture.path("demo.py")).run().exits(8);
        assert!(
            !ran.stdout.contains(token) && !ran.stderr.contains(token),
            "{option}: {}",
            ran.stderr
        );
    }
}
