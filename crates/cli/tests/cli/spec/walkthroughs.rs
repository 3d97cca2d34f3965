//! The walkthroughs of `docs/walkthroughs/`, followed to their end with real git.

use super::guide::{Answers, Guide, Reader};

/// What a reader has before they begin.
const A_REPOSITORY: &str = "\
```sh
git init -q -b main .
git add .
git commit -q -m 'As it was'
```
";

#[test]
fn twenty_minutes_on_a_repository_lead_to_a_gate_that_passes() {
    const HERE: &str = "crates/cli/tests/cli/spec/walkthrough";
    let guide = Guide::read("docs/walkthroughs/twenty-minutes.md");
    assert_eq!(guide.commands(), 13);
    let answers = Answers::read(&format!("{HERE}/answers"));
    let server = answers.serve();
    let reader = Reader::with(&server, "shop")
        .copy(&format!("{HERE}/repository"))
        .setting("CRUCIBLE_LLM_GATEWAY_MODEL", "written-by-hand");
    reader.follow(&Guide::of("what is there before", A_REPOSITORY));
    reader.follow(&guide);
    answers.all_asked();
    assert!(reader.file("shop/accounts.py").contains("record[\"user\"] == user"), "the fixup is applied");
}

#[test]
fn a_spec_goes_from_a_branch_to_a_gate_that_judges_a_clone_of_it() {
    const EXAMPLE: &str = "examples/fullstack-web";
    let guide = Guide::read("docs/walkthroughs/from-spec-to-pull-request.md");
    assert_eq!(guide.commands(), 9);
    // The example's own recording answers.
    let reader = Reader::new("tool-desk").copy(EXAMPLE);
    reader.follow(&guide);
    let sarif: serde_json::Value = serde_json::from_str(&reader.file("../pipeline/spec-gate.sarif")).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    assert!(results.iter().all(|result| result["ruleId"] == "gate-answers-recorded"), "{results:?}");
    assert!(
        reader.file("../pipeline/server/due.js").contains("Math.floor"),
        "the code is in the pull request"
    );
}
