//! The examples and the templates' READMEs, followed by somebody who has no model: a recording answers.

use crucible_spec::TEMPLATES;
use serde_json::{Value, json};

use super::guide::{Answers, Guide, ROOT, Reader, keep};

#[test]
fn web_application_example_reaches_the_gate() {
    const EXAMPLE: &str = "examples/fullstack-web";
    let guide = Guide::read(&format!("{EXAMPLE}/README.md"));
    assert_eq!(guide.commands(), 8);
    let answers = Answers::read(&format!("{EXAMPLE}/answers"));
    let server = answers.serve();
    let recording = Reader::with(&server, "fullstack-web")
        .copy(EXAMPLE)
        .record(&guide);
    answers.all_asked();
    keep(&recording, &format!("{EXAMPLE}/cassette.jsonl"));

    let reader = Reader::new("fullstack-web").copy(EXAMPLE);
    reader.follow(&guide);
    assert!(
        reader.file("server/due.js").contains("Math.floor"),
        "the fixup is applied"
    );
    let last = reader.file(".crucible/specs/return-reminders/artifacts/50-final.md");
    assert!(
        last.contains("| R-005 Nights are quiet | T-004 |"),
        "{last}"
    );
}

#[test]
fn multi_part_example_passes_hooks_and_gates() {
    const EXAMPLE: &str = "examples/mono-repo";
    let guide = Guide::read(&format!("{EXAMPLE}/README.md"));
    assert_eq!(guide.commands(), 7);
    let answers = Answers::read(&format!("{EXAMPLE}/answers"));
    let server = answers.serve();
    let recording = Reader::with(&server, "mono-repo")
        .copy(EXAMPLE)
        .record(&guide);
    answers.all_asked();
    keep(&recording, &format!("{EXAMPLE}/cassette.jsonl"));

    let reader = Reader::new("mono-repo").copy(EXAMPLE);
    reader.follow(&guide);
    for spec in ["catalog-search", "kiosk-returns"] {
        let receipts = reader
            .place()
            .join(".crucible/specs")
            .join(spec)
            .join("receipts");
        let requirements = std::fs::read_dir(receipts)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let requirements: Vec<Value> = requirements
            .filter(|path| {
                path.file_name()
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .starts_with("requirements-")
            })
            .map(|path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap())
            .collect();
        assert_eq!(requirements.len(), 1);
        let hook = &requirements[0]["phases"][0]["hooks"][0];
        assert_eq!(
            (&hook["name"], &hook["exit_code"]),
            (&json!("wording"), &json!(0)),
            "{hook:#}"
        );
    }
}

/// An example that nobody follows here breaks unseen.
#[test]
fn every_example_and_walkthrough_has_a_test() {
    let names = |directory: &str| -> Vec<String> {
        let entries = std::fs::read_dir(format!("{ROOT}/{directory}")).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names("examples"), ["fullstack-web", "mono-repo"]);
    let tests = [include_str!("examples.rs"), include_str!("walkthroughs.rs")].concat();
    for example in names("examples") {
        assert!(
            tests.contains(&format!("\"examples/{example}\"")),
            "{example}"
        );
    }
    for page in names("docs/walkthroughs") {
        assert!(tests.contains(&page), "{page}");
    }
}

#[test]
fn template_readme_commands_run_from_a_recording() {
    const HERE: &str = "crates/cli/tests/cli/spec";
    for template in TEMPLATES {
        let name = template.name;
        let begin = format!("```sh\ngit init -q .\ncrucible template init {name} my-spec\n```\n");
        let guide = Guide::new(
            name,
            &format!("{begin}{}", template.readme(&"my-spec".parse().unwrap())),
        );
        assert_eq!(guide.commands(), 3, "{name}");
        let answers = Answers::read(&format!("{HERE}/answers")).with_spec(name);
        let server = answers.serve();
        let recording = Reader::with(&server, "project").record(&guide);
        answers.all_asked();
        let cassette = format!("{HERE}/cassettes/{name}.jsonl");
        keep(&recording, &cassette);

        let reader = Reader::new("project")
            .setting("CRUCIBLE_LLM_PROVIDER", "replay")
            .setting("CRUCIBLE_LLM_REPLAY_CASSETTE", format!("{ROOT}/{cassette}"));
        reader.follow(&guide);
        assert!(
            reader
                .file(".crucible/specs/my-spec/README.md")
                .starts_with("# my-spec\n")
        );
        let tasks = reader.file(".crucible/specs/my-spec/artifacts/20-tasks.md");
        assert!(tasks.contains("- [ ] T-001 ("), "{tasks}");
    }
}
