//! `crucible config set` and `crucible config schema`.

use crucible_testkit::RepoBuilder;
use serde_json::{Value, json};

use crate::support::{Fixture, small};

const FILE: &str = ".crucible/config.toml";

#[test]
fn config_set_keeps_comments_and_reports_change() {
    let repo = small()
        .file(FILE, "# limits\n[run]\nmax_iterations = 3 # few\n")
        .build();
    let fixture = Fixture::new();
    let file = repo.path().join(FILE);
    let ran = fixture
        .call(["config", "set", "run.max_iterations", "2"])
        .current_dir(repo.path())
        .run()
        .ok();
    assert_eq!(
        ran.stdout,
        format!("set run.max_iterations = 2 in {} (was 3)\n", file.display())
    );
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        "# limits\n[run]\nmax_iterations = 2 # few\n"
    );

    let call = fixture
        .call([
            "config",
            "set",
            "llm.provider",
            "openai",
            "--json",
            "--repo",
        ])
        .arg(repo.path());
    let set = call.run().ok().json();
    assert_eq!(set["schema_version"], "crucible-config-set-v1");
    assert_eq!(
        (&set["key"], &set["value"], &set["previous"]),
        (&json!("llm.provider"), &json!("openai"), &Value::Null)
    );
    // The environment of the tests names the gateway.
    assert_eq!(set["overridden_by"]["value"], "gateway");
    assert_eq!(
        set["overridden_by"]["source"],
        json!({ "kind": "environment", "name": "CRUCIBLE_LLM_PROVIDER" })
    );
    assert!(
        std::fs::read_to_string(&file)
            .unwrap()
            .ends_with("\n[llm]\nprovider = \"openai\"\n")
    );
}

#[test]
fn config_set_in_subdirectory_writes_repository_file() {
    let repo = RepoBuilder::new()
        .file("packages/x/a.py", "A = 1\n")
        .build();
    let fixture = Fixture::new();
    let below = repo.path().join("packages/x");
    fixture
        .call(["config", "set", "run.candidates", "2"])
        .current_dir(&below)
        .run()
        .ok();
    assert_eq!(
        std::fs::read_to_string(repo.path().join(FILE)).unwrap(),
        "[run]\ncandidates = 2\n"
    );
    assert!(!below.join(".crucible").exists());
}

#[test]
fn config_set_refuses_keys_forbidden_to_projects() {
    let repo = RepoBuilder::new().file("a.py", "A = 1\n").build();
    let fixture = Fixture::new();
    for key in [["sandbox.strength", "off"], ["run.max_iterations", "50"]] {
        let ran = fixture
            .call(["config", "set"])
            .args(key)
            .current_dir(repo.path())
            .run()
            .exits(2);
        assert!(
            ran.stderr
                .contains("`crucible config set --user KEY VALUE` writes your own file"),
            "{}",
            ran.stderr
        );
        assert!(!repo.path().join(FILE).exists());
        let ran = fixture
            .call(["config", "set", "--user"])
            .args(key)
            .current_dir(repo.path())
            .run()
            .ok();
        assert!(
            ran.stdout.contains(".config/crucible/config.toml"),
            "{}",
            ran.stdout
        );
    }
    let ran = fixture
        .call(["config", "set", "llm.provider", "gpt"])
        .current_dir(repo.path())
        .run()
        .exits(2);
    assert!(
        ran.stderr.contains("it takes one of claude-cli, "),
        "{}",
        ran.stderr
    );
    let ran = fixture
        .call(["config", "set", "run.candidates", "-1"])
        .current_dir(repo.path())
        .run()
        .exits(2);
    assert!(
        ran.stderr.contains("a whole number, zero or larger"),
        "{}",
        ran.stderr
    );
}

#[test]
fn config_set_writes_no_secret() {
    let repo = small().build();
    let fixture = Fixture::new();
    let key = ["sk-ant-", "api03-", &"k3Yq".repeat(23), "AA"].concat();
    let call = fixture.call(["config", "set", "--user", "llm.anthropic.api_key_env", &key]);
    let ran = call.current_dir(repo.path()).run().exits(8);
    assert!(
        !ran.stderr.contains("k3Yq") && ran.stderr.contains("looks like a secret"),
        "{}",
        ran.stderr
    );
    assert!(!fixture.home().join(".config/crucible/config.toml").exists());
    fixture
        .call([
            "config",
            "set",
            "--user",
            "llm.anthropic.api_key_env",
            "MY_KEY",
        ])
        .run()
        .ok();
}

#[test]
fn config_schema_accepts_what_the_program_reads() {
    let fixture = Fixture::new();
    let schema = fixture.run(["config", "schema"]).ok().json();
    let stored_json: Value = serde_json::from_str(include_str!(
        "../../../../docs/schemas/crucible-settings-v1.schema.json"
    ))
    .unwrap();
    assert!(
        schema == stored_json,
        "docs/schemas/crucible-settings-v1.schema.json is out of date"
    );
    let schema = jsonschema::validator_for(&schema).unwrap();
    let is_valid = |text: &str| schema.is_valid(&json!(text.parse::<toml::Table>().unwrap()));
    let good = "[run]\nmax_iterations = 2\n[gates.unit]\ncommand = [\"make\"]\nenv = { A = \"b\" }\n[llm.prices.\"a/b.c\"]\ninput = 2\n\
                [llm.gateway.profiles.deep]\nmodel = \"m\"\n[dispatch]\nmode = \"\"\n";
    assert!(
        is_valid(good),
        "{:?}",
        schema
            .iter_errors(&json!(good.parse::<toml::Table>().unwrap()))
            .next()
    );
    for bad in [
        "[run]\nmax_iteration = 2\n",
        "[run]\nmax_iterations = \"2\"\n",
        "[run]\nmax_iterations = -2\n",
        "[gates.unit]\nlevel = \"half\"\n",
        "[gates]\ncommand = [\"make\"]\n",
        "[gates.unit]\nenv = { A = 1 }\n",
        "[nothing]\n",
    ] {
        assert!(!is_valid(bad), "{bad}");
    }
}

#[test]
fn listed_words_are_those_of_the_program() {
    let schema: Value = serde_json::from_str(include_str!(
        "../../../../docs/schemas/crucible-settings-v1.schema.json"
    ))
    .unwrap();
    let listed = |table: &str, key: &str| -> Vec<String> {
        let list = &schema["properties"][table]["properties"][key]["enum"];
        serde_json::from_value::<Vec<String>>(list.clone())
            .unwrap()
            .into_iter()
            .filter(|word| !word.is_empty())
            .collect()
    };
    let mut providers: Vec<_> = crucible_llm::registry()
        .iter()
        .map(|kind| kind.name().to_owned())
        .collect();
    let mut known = listed("llm", "provider");
    providers.sort_unstable();
    known.sort_unstable();
    assert_eq!(known, providers);
    assert_eq!(
        listed("sandbox", "strength"),
        crucible_sandbox::Strength::ALL.map(crucible_sandbox::Strength::as_str)
    );
    for format in listed("run", "edit_format") {
        serde_json::from_value::<crucible_model::EditFormat>(json!(format)).unwrap();
    }
    for mode in listed("dispatch", "mode") {
        serde_json::from_value::<crucible_run::DispatchMode>(json!(mode)).unwrap();
    }
}
