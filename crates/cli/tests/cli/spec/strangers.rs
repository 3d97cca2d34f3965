//! A project from somebody else: what its files say reaches neither the user's key nor the user's screen.

use crucible_model::to_canonical_json;
use serde_json::json;

use super::support::{
    IDEA, SPEC, answering, asked, at, everything, newest, project, spec, spec_dir, with_idea,
};
use super::written::seal;
use crate::support::Fixture;

#[test]
fn project_address_gets_no_user_key() {
    let server = answering();
    let fixture = Fixture::new();
    let project = project(&fixture);
    let settings = |section: &str| {
        let text = format!(
            "[llm.{section}]\nbase_url = \"{}\"\nmodel = \"m\"\n",
            server.base_url()
        );
        std::fs::write(project.join(".crucible/config.toml"), text).unwrap();
    };
    let begun = |provider: &str| {
        fixture
            .call(["spec", SPEC])
            .env("CRUCIBLE_LLM_PROVIDER", provider)
            .without_env("CRUCIBLE_GATEWAY_BASE_URL")
            .env("OPENAI_API_KEY", "sk-of-the-user")
            .env("ANTHROPIC_API_KEY", "sk-of-the-user")
    };
    for provider in ["openai", "anthropic"] {
        settings(provider);
        let ran = with_idea(begun(provider), &project, IDEA);
        assert_ne!(ran.code, Some(0));
        assert!(
            ran.stderr.contains("is not sent there") && ran.stderr.contains("base_url"),
            "{}",
            ran.stderr
        );
    }
    settings("gateway");
    let keyed = begun("gateway").env("CRUCIBLE_LLM_GATEWAY_API_KEY_ENV", "OPENAI_API_KEY");
    assert_ne!(with_idea(keyed, &project, IDEA).code, Some(0));
    assert_eq!(asked(&server), [""; 0]);
    // The user's own word for it, and a server that wants no key.
    settings("openai");
    let own = begun("openai").env("CRUCIBLE_OPENAI_BASE_URL", server.base_url());
    with_idea(own, &project, IDEA).ok();
    settings("gateway");
    fixture
        .call(["resume", SPEC, "--phase", "requirements"])
        .without_env("CRUCIBLE_GATEWAY_BASE_URL")
        .current_dir(&project)
        .run()
        .ok();
    assert_eq!(asked(&server), ["requirements", "requirements"]);
}

#[test]
fn secrets_in_foreign_receipts_are_never_shown() {
    let server = answering();
    let fixture = Fixture::with(&server);
    let project = project(&fixture);
    spec(&fixture, &project, []).ok();
    let secret = format!("gh{}_{}", 'p', "16C7e42F292c6912E7710c838347Ae178B4a");
    let mut receipt = newest(&project);
    let path = spec_dir(&project)
        .join("receipts")
        .join(format!("{}.json", receipt["receipt_id"].as_str().unwrap()));
    receipt["phases"][0]["llm"]["model_used"] = json!(secret);
    receipt["phases"][0]["warnings"] =
        json!([{ "type": secret, "message": format!("a {secret}") }]);
    receipt["phases"][0]["status"] = json!("failed");
    receipt["exit_code"] = json!(1);
    receipt["phases"][0]["error"] = json!({ "class": secret, "message": format!("no {secret}") });
    seal(&mut receipt);
    std::fs::write(&path, to_canonical_json(&receipt).unwrap()).unwrap();
    let workspace = format!(
        "version: \"1\"\nname: \"{secret}\"\nspecs:\n- id: {SPEC}\n  tags: [\"{secret}\"]\n"
    );
    std::fs::write(project.join("workspace.yaml"), workspace).unwrap();
    // Another machine, whose ledger knows nothing of it.
    let elsewhere = Fixture::with(&server);
    let mut text = String::new();
    for fixture in [&fixture, &elsewhere] {
        for command in [
            &["gate", SPEC][..],
            &["gate", SPEC, "--json"],
            &["gate", SPEC, "--format", "github"],
            &["gate", SPEC, "--format", "sarif"],
            &["status", SPEC],
            &["status", SPEC, "--json"],
            &["project", "list"],
            &["project", "status", "--json"],
            &["project", "history", SPEC],
            &["project", "history", SPEC, "--json"],
        ] {
            let ran = fixture.call(command).current_dir(&project).run();
            assert_ne!(ran.code, Some(2), "{command:?}: {}", ran.stderr);
            text.push_str(&format!("{command:?}\n{}{}", ran.stdout, ran.stderr));
        }
    }
    assert!(!text.contains(&secret), "{text}");
    assert!(text.contains("[secret:github-personal-token]"), "{text}");
    let _learned = at(
        &elsewhere,
        &project,
        ["resume", SPEC, "--phase", "requirements"],
    );
    assert!(!everything(&elsewhere.data()).contains(&secret));
}
