//! `crucible explain`: the sections of finding codes.

use crate::support::Fixture;

#[test]
fn explained_code_has_the_section_of_its_page() {
    let fixture = Fixture::new();
    let page = include_str!("../../../../docs/codes/patch.md");
    let document = fixture
        .run(["explain", "patch-path-denied", "--json"])
        .ok()
        .json();
    assert_eq!(document["schema_version"], "crucible-explain-v1");
    assert_eq!(document["page"], "docs/codes/patch.md");
    let text = document["text"].as_str().unwrap();
    assert!(page.contains(&format!("## patch-path-denied\n\n{text}\n")));
    let printed = fixture.run(["explain", "patch-path-denied"]).ok().stdout;
    assert_eq!(
        printed,
        format!("patch-path-denied\n\n{text}\n\npage: docs/codes/patch.md\n")
    );
}

#[test]
fn unknown_code_is_a_usage_error_with_suggestions() {
    let fixture = Fixture::new();
    let near = fixture.run(["explain", "patch-path-deneid"]).exits(2);
    assert_eq!(near.stdout, "");
    assert!(
        near.stderr
            .contains("unknown finding code \"patch-path-deneid\"")
            && near.stderr.contains("patch-path-denied"),
        "{}",
        near.stderr
    );
    let far = fixture.run(["explain", "qqqq"]).exits(2);
    assert!(far.stderr.contains("as it is printed"), "{}", far.stderr);
    let document = fixture.run(["explain", "qqqq", "--json"]).exits(2).error();
    assert_eq!(document["schema_version"], "crucible-error-v1");
}
