//! `crucible skill check`: a skill is judged by its text, and the answer says where.

use crate::support::{Desk, Ran};

const GOOD: &str = r#"from typing import Any

from skillset.skills.base import BaseSkill


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {}
"#;

fn check(desk: &Desk, text: &[u8], effects: &str) -> Ran {
    std::fs::write(desk.path("demo.py"), text).unwrap();
    let call = desk.call(["skill", "check", "--json", "--name", "demo", "--effects", effects]);
    call.arg(desk.path("demo.py")).run()
}

#[test]
fn a_skill_is_judged_by_its_text_and_each_finding_says_where() {
    let desk = Desk::new();
    let passed = check(&desk, GOOD.as_bytes(), "read_only").ok().json();
    assert_eq!(passed["schema_version"], "crucible-skill-check-v1");
    assert_eq!(passed["verdict"], "pass");

    let bad = GOOD.replace("return {}", "__import__('os').system('x')\n        return {}");
    let refused = check(&desk, bad.as_bytes(), "READ_ONLY").exits(1).json();
    assert_eq!(refused["verdict"], "fail");
    assert_eq!(refused["findings"][0]["code"], "forge-code");
    assert_eq!(refused["findings"][0]["subject"], "line 12, column 9: builtins.__import__");

    let other = check(&desk, GOOD.as_bytes(), "NETWORK").exits(1).json();
    assert_eq!(other["findings"][0]["code"], "forge-class-attribute");
    assert_eq!(
        check(&desk, b"\xef\xbb\xbfx = 1\n", "MONEY").exits(1).json()["findings"][0]["code"],
        "forge-source"
    );
    assert_eq!(
        check(&desk, &vec![b'#'; 300 << 10], "MONEY").exits(1).json()["findings"][0]["code"],
        "forge-source"
    );
    check(&desk, GOOD.as_bytes(), "ANYTHING").exits(2);
}

#[test]
fn a_policy_that_is_none_is_no_policy() {
    let desk = Desk::new();
    check(&desk, GOOD.as_bytes(), "READ_ONLY").ok();
    std::fs::write(desk.path("policy.yaml"), "allow_imports: [yaml]\n").unwrap();
    let call = desk.call(["skill", "check", "--name", "demo", "--effects", "READ_ONLY", "--policy"]);
    call.arg(desk.path("policy.yaml")).arg(desk.path("demo.py")).run().exits(3);
}
