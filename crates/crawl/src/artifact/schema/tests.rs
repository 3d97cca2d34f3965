//! What the schemas accept and refuse, on whole documents.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::artifact::{PlanStep, PlanV1, RecipeV1, SearchV1, fixture};

/// The optional keys, as paths without array indices.
const OPTIONAL: [(ArtifactType, &str); 2] = [
    (ArtifactType::Plan, "/steps/*/env"),
    (ArtifactType::Plan, "/steps/*/note"),
];

/// Objects with arbitrary keys.
const RECORDS: [(ArtifactType, &str); 3] = [
    (ArtifactType::Plan, "/steps/*/env"),
    (ArtifactType::Recipe, "/toolchain/version_constraints"),
    (ArtifactType::Recipe, "/environment"),
];

fn document(kind: ArtifactType) -> Value {
    fixture::documents()
        .into_iter()
        .find(|(it, _)| *it == kind)
        .unwrap()
        .1
}

/// The document with another value at a location, or without one.
fn changed(document: &Value, pointer: &str, value: Option<Value>) -> Value {
    let mut document = document.clone();
    match value {
        Some(value) => *document.pointer_mut(pointer).unwrap() = value,
        None => {
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            document
                .pointer_mut(parent)
                .unwrap()
                .as_object_mut()
                .unwrap()
                .remove(key)
                .unwrap();
        }
    }
    document
}

#[track_caller]
fn refused(kind: ArtifactType, pointer: &str, value: Option<Value>) -> Vec<String> {
    let problems = check_json(kind, &changed(&document(kind), pointer, value.clone()));
    assert!(
        !problems.is_empty(),
        "{kind:?} {pointer} {value:?} is accepted"
    );
    problems
}

#[track_caller]
fn accepted(kind: ArtifactType, pointer: &str, value: Value) {
    assert_eq!(
        check_json(kind, &changed(&document(kind), pointer, Some(value))),
        Vec::<String>::new()
    );
}

/// Every location below `value`, with the form in which [`OPTIONAL`] and [`RECORDS`] name it.
fn places(value: &Value) -> Vec<(String, String)> {
    let children: Vec<(String, String, &Value)> = match value {
        Value::Object(object) => object
            .iter()
            .map(|(key, value)| (format!("/{key}"), format!("/{key}"), value))
            .collect(),
        Value::Array(items) => (0..)
            .zip(items)
            .map(|(index, item): (usize, _)| (format!("/{index}"), "/*".to_owned(), item))
            .collect(),
        _ => Vec::new(),
    };
    let mut found = Vec::new();
    for (step, form, child) in children {
        found.push((step.clone(), form.clone()));
        let below = places(child).into_iter();
        found
            .extend(below.map(|(path, shape)| (format!("{step}{path}"), format!("{form}{shape}"))));
    }
    found
}

#[test]
fn the_schemas_are_sound_and_name_themselves() {
    for kind in ArtifactType::ALL {
        let schema: Value = serde_json::from_str(schema_text(kind)).unwrap();
        assert!(jsonschema::meta::is_valid(&schema), "{kind:?}");
        assert_eq!(schema["title"], kind.schema_id());
        assert_eq!(schema["properties"]["schema"]["const"], kind.schema_id());
        compile(kind).unwrap();
    }
}

#[test]
fn a_valid_document_of_each_schema_passes() {
    for (kind, document) in fixture::documents() {
        assert_eq!(
            check_json(kind, &document),
            Vec::<String>::new(),
            "{kind:?}"
        );
    }
}

#[test]
fn document_matches_only_its_own_schema() {
    for (kind, document) in fixture::documents() {
        for other in ArtifactType::ALL {
            assert_eq!(
                check_json(other, &document).is_empty(),
                kind == other,
                "{kind:?} as {other:?}"
            );
        }
    }
}

#[test]
fn every_key_without_default_is_required() {
    for (kind, document) in fixture::documents() {
        let mut removed = 0;
        for (pointer, form) in places(&document) {
            let parent = form.rsplit_once('/').unwrap().0;
            let is_item = form.ends_with("/*");
            let is_free =
                OPTIONAL.contains(&(kind, form.as_str())) || RECORDS.contains(&(kind, parent));
            if is_item {
                continue;
            }
            let problems = check_json(kind, &changed(&document, &pointer, None));
            assert_eq!(problems.is_empty(), is_free, "{kind:?} without {pointer}");
            if let Some(problem) = problems.first() {
                let key = format!("{:?}", pointer.rsplit_once('/').unwrap().1);
                assert!(problem.contains(&key), "{pointer}: {problem}");
                removed += 1;
            }
        }
        assert!(removed >= 7, "{kind:?}: {removed}");
    }
}

#[test]
fn value_of_wrong_type_is_refused() {
    let name_of = |value: &Value| match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let others = [
        Value::Null,
        json!(true),
        json!(7),
        json!("7"),
        json!([]),
        json!({}),
    ];
    for (kind, document) in fixture::documents() {
        assert!(
            others
                .iter()
                .all(|other| !check_json(kind, other).is_empty()),
            "{kind:?}"
        );
        for (pointer, _) in places(&document) {
            let now = document.pointer(&pointer).unwrap();
            for other in others.iter().filter(|other| name_of(other) != name_of(now)) {
                let problems = refused(kind, &pointer, Some(other.clone()));
                assert!(problems[0].starts_with(&pointer), "{problems:?}");
            }
        }
    }
}

#[test]
fn unknown_keys_are_ignored() {
    for (kind, document) in fixture::documents() {
        let mut changed = document.clone();
        changed["extra"] = json!({"a": [1]});
        assert_eq!(check_json(kind, &changed), Vec::<String>::new(), "{kind:?}");
    }
    accepted(
        ArtifactType::Plan,
        "/steps/0",
        json!({"name": "a", "cmd": "make", "cwd": ".", "shell": "zsh"}),
    );
}

#[test]
fn a_search_holds_its_limits() {
    use ArtifactType::Search;
    for (pointer, value) in [
        ("/schema", json!("viv-git-search.v2")),
        ("/query", json!("")),
        ("/queried_at", json!("yesterday")),
        ("/result_count", json!(-1)),
        ("/result_count", json!(1.5)),
        ("/results/0/rank", json!(0)),
        ("/results/0/rank", json!(1.5)),
        ("/results/0/score", json!(1.0001)),
        ("/results/0/score", json!(-0.1)),
        ("/results/0/full_name", json!("")),
        ("/results/0/name", json!("")),
        ("/results/0/url", json!("owner/tool")),
        ("/results/0/stars", json!(-1)),
        ("/results/0/stars", json!(0.5)),
        ("/results/0/pushed_at", json!("2026-02-30T00:00:00Z")),
        ("/results/0/owner_type", json!("organization")),
    ] {
        refused(Search, pointer, Some(value));
    }
    accepted(Search, "/results", json!([]));
    accepted(Search, "/results/0/default_branch", json!(""));
    accepted(Search, "/results/0/score_breakdown/penalties", json!(-0.55));
}

#[test]
fn an_inspection_holds_its_limits() {
    use ArtifactType::Inspect;
    for (pointer, value) in [
        ("/schema", json!("viv-git-inspect")),
        ("/inspected_at", json!("2026-01-01")),
        ("/repo/full_name", json!("")),
        ("/repo/url", json!("//example.org/a")),
        ("/repo/selected_ref", json!("")),
        (
            "/repo/resolved_commit",
            json!("0123456789ABCDEF0123456789abcdef01234567"),
        ),
        (
            "/repo/resolved_commit",
            json!("0123456789abcdef0123456789abcdef012345678"),
        ),
        (
            "/repo/resolved_commit",
            json!("0123456789abcdef0123456789abcdef01234567\n"),
        ),
        ("/fetch_method", json!("clone")),
        ("/build_system/confidence", json!(1.1)),
        ("/sampled_files", json!(-1)),
        ("/sampled_bytes", json!(-1)),
        ("/detected_languages/0/file_count", json!(0.5)),
        ("/key_files/0/role", json!("config")),
        ("/key_files/0/size_bytes", json!(0.5)),
    ] {
        refused(Inspect, pointer, Some(value));
    }
    for empty in ["/sub_projects", "/key_files", "/detected_languages"] {
        accepted(Inspect, empty, json!([]));
    }
    accepted(Inspect, "/readme_excerpt", json!(""));
}

#[test]
fn a_plan_holds_its_limits() {
    use ArtifactType::Plan;
    for (pointer, value) in [
        ("/schema", json!("viv-git-recipe.v1")),
        ("/created_at", json!("2026-02-28T12:00:00+01:00")),
        ("/plan_hash", json!("0123456789a")),
        ("/plan_hash", json!("0123456789ag")),
        ("/prompt_hash", json!("0123456789ABC")),
        ("/repo/resolved_commit", json!("")),
        ("/detected/confidence", json!(-0.01)),
        ("/steps", json!([])),
        ("/steps/0/name", json!("")),
        ("/steps/0/cmd", json!("")),
        ("/steps/0/cwd", json!("")),
        ("/steps/0/env", json!({"A": 1})),
        ("/debate_rounds", json!(-1)),
        ("/debate_rounds", json!(0.5)),
        ("/warnings", json!([1])),
    ] {
        refused(Plan, pointer, Some(value));
    }
    for empty in [
        "/warnings",
        "/accepted_suggestions",
        "/rejected_suggestions",
        "/safety_violations",
    ] {
        accepted(Plan, empty, json!([]));
    }
}

#[test]
fn a_recipe_holds_its_limits() {
    use ArtifactType::Recipe;
    for (pointer, value) in [
        ("/source_plan_hash", json!("")),
        ("/normalized_commands/0/phase", json!("deploy")),
        ("/toolchain/version_constraints", json!({"rustc": 1.7})),
        ("/environment", json!({"A": null})),
        ("/repo/url", json!("")),
    ] {
        refused(Recipe, pointer, Some(value));
    }
    accepted(Recipe, "/toolchain/optional", json!([]));
    accepted(Recipe, "/environment", json!({}));
    accepted(Recipe, "/normalized_commands", json!([]));
}

#[test]
fn a_manifest_holds_its_limits() {
    use ArtifactType::Manifest;
    for (pointer, value) in [
        ("/crawl_session_id", json!(-1)),
        ("/crawl_session_id", json!(1.5)),
        ("/artifacts/0/type", json!("manifest")),
        ("/artifacts/0/filename", json!("../plan.json")),
        ("/artifacts/0/filename", json!("Plan.json")),
        ("/artifacts/0/schema", json!("viv-crawl-manifest.v1")),
        ("/artifacts/0/content_hash", json!("abc123def45")),
        ("/reproducibility/token_budgets/draft", json!(0)),
        ("/reproducibility/debate_rounds", json!(-1)),
        ("/ref", json!("")),
    ] {
        refused(Manifest, pointer, Some(value));
    }
    let seed = json!({
        "schema": "viv-crawl-manifest.v1",
        "crucible_version": "1.1.0",
        "created_at": "2026-02-28T12:00:00Z",
        "crawl_session_id": 42,
        "repo": "owner/repo",
        "ref": "v1.2.3",
        "artifacts": [
            {"type": "search", "filename": "search.json", "schema": "viv-git-search.v1", "content_hash": "abc123def456"},
            {"type": "inspect", "filename": "inspect.json", "schema": "viv-git-inspect.v1", "content_hash": "abc123def457"},
            {"type": "plan", "filename": "plan.json", "schema": "viv-git-plan.v1", "content_hash": "abc123def458"},
            {"type": "recipe", "filename": "recipe.json", "schema": "viv-git-recipe.v1", "content_hash": "abc123def459"}
        ],
        "plan_hash": "abc123def458",
        "prompt_hash": "fedcba987654",
        "reproducibility": {
            "gpt_model": "gpt-4o-2024-05-13",
            "claude_model": "claude-sonnet-4-6-20250514",
            "debate_rounds": 2,
            "token_budgets": {"draft": 2000, "critique": 2000, "synthesis": 4000}
        }
    });
    assert_eq!(check_json(Manifest, &seed), Vec::<String>::new());
}

#[test]
fn times_follow_the_seeds_schemas() {
    for good in [
        "2026-02-28T12:00:00Z",
        "2026-02-28T12:00:00.1Z",
        "2026-02-28T12:00:00.123456789Z",
        "2026-02-28T12:00Z",
        "2024-02-29T23:59:59Z",
        "0001-01-01T00:00:00Z",
    ] {
        assert!(is_instant(good), "{good}");
    }
    for bad in [
        "",
        "Z",
        "2026-02-28",
        "2026-02-28T12:00:00",
        "2026-02-28t12:00:00z",
        "2026-02-28T12:00:00z",
        "2026-02-28 12:00:00Z",
        "2026-02-28T12:00:00+00:00",
        "2026-02-28T12:00:60Z",
        "2026-02-28T24:00:00Z",
        "2026-02-28T12:60:00Z",
        "2026-02-29T12:00:00Z",
        "2026-13-01T12:00:00Z",
        "2026-00-01T12:00:00Z",
        "2026-02-28T12:00:00.Z",
        "2026-02-28T12:00:00,5Z",
        "2026-02-28T12:00:0Z",
        "2026-02-28T12:00:000Z",
        "2026-2-28T12:00:00Z",
        "+002026-02-28T12:00:00Z",
        "2026-02-28T12:00:00Z\n",
        " 2026-02-28T12:00:00Z",
        "２026-02-28T12:00:00Z",
        "2026-02-28T12:00é0Z",
    ] {
        assert!(!is_instant(bad), "{bad:?}");
    }
}

#[test]
fn addresses_are_absolute() {
    for good in [
        "https://example.org/a/b",
        "file:///tmp/a%20b",
        "http://[::1]:8080/",
        "https://example.org/ä",
    ] {
        assert!(is_url(good), "{good}");
    }
    for bad in [
        "",
        "owner/repo",
        "example.org",
        "/a",
        "//example.org",
        "https://",
        "http://a b/",
        "https://x:99999/",
    ] {
        assert!(!is_url(bad), "{bad}");
    }
}

#[test]
fn problems_name_their_place_and_repeat_no_value() {
    let secret = "sk-this-must-not-be-repeated";
    let problems = refused(ArtifactType::Plan, "/plan_hash", Some(json!(secret)));
    assert_eq!(problems.len(), 1);
    assert!(
        problems[0].starts_with("/plan_hash: ") && !problems[0].contains(secret),
        "{problems:?}"
    );
    let problems = refused(ArtifactType::Plan, "/steps", None);
    assert_eq!(problems, ["the document: \"steps\" is a required property"]);
}

#[test]
fn schema_problems_are_limited() {
    let env: serde_json::Map<String, Value> = (0..100_000)
        .map(|number| {
            (
                format!("K{number}\u{1b}[2J{}", "x".repeat(200)),
                Value::Null,
            )
        })
        .collect();
    let problems = refused(
        ArtifactType::Recipe,
        "/environment",
        Some(Value::Object(env)),
    );
    assert_eq!(problems.len(), 21);
    assert_eq!(problems[20], "and more");
    assert!(
        problems
            .iter()
            .all(|problem| problem.chars().count() < 300 && !problem.contains('\u{1b}'))
    );
}

#[test]
fn checked_artifact_hash_covers_its_bytes() {
    let artifact = CheckedArtifact::new(ArtifactType::Plan, &fixture::plan_document()).unwrap();
    assert_eq!(artifact.kind(), ArtifactType::Plan);
    assert_eq!(
        artifact.content_hash(),
        &ShortHash::compute(artifact.json().as_bytes())
    );
    assert!(artifact.json().starts_with(
        r#"{"accepted_suggestions":["one"],"created_at":"2026-02-28T12:00:00.000Z","#
    ));
    assert!(!artifact.json().contains('\n'));
    let back: PlanV1 = serde_json::from_str(artifact.json()).unwrap();
    assert_eq!(back, fixture::plan_document());
}

#[test]
fn nan_is_refused() {
    let mut document = fixture::search_document();
    document.results[0].score = f64::NAN;
    assert!(CheckedArtifact::new(ArtifactType::Search, &document).is_err());
    document.results[0].score = f64::INFINITY;
    assert!(CheckedArtifact::new(ArtifactType::Search, &document).is_err());
}

#[test]
fn document_under_wrong_kind_is_refused() {
    let error = CheckedArtifact::new(ArtifactType::Recipe, &fixture::plan_document()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("the viv-git-recipe.v1 document does not match its schema: "),
        "{error}"
    );
}

#[test]
fn missing_env_and_note_are_empty() {
    let plan = changed(
        &document(ArtifactType::Plan),
        "/steps/0",
        Some(json!({"name": "a", "cmd": "make", "cwd": "."})),
    );
    assert!(check_json(ArtifactType::Plan, &plan).is_empty());
    let plan: PlanV1 = serde_json::from_value(plan).unwrap();
    assert_eq!(plan.steps, [fixture::step("a", "make")]);
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[a-z]{1,8}".prop_map(|it| it)]
}

fn filled() -> impl Strategy<Value = String> {
    text().prop_map(|it| format!("x{it}"))
}

fn variables() -> impl Strategy<Value = BTreeMap<String, String>> {
    proptest::collection::btree_map(text(), text(), 0..4)
}

fn steps() -> impl Strategy<Value = Vec<PlanStep>> {
    let step = (filled(), filled(), filled(), variables(), text()).prop_map(
        |(name, cmd, cwd, env, note)| PlanStep {
            name,
            cmd,
            cwd,
            env,
            note,
        },
    );
    proptest::collection::vec(step, 1..5)
}

mod properties {
    use super::*;

    proptest! {
        #[test]
        fn every_plan_round_trips(
            steps in steps(),
            words in proptest::collection::vec(text(), 0..5),
            safe in any::<bool>(),
            rounds in 0_u64..5,
            confidence in 0.0_f64..=1.0,
            millis in 0_u64..253_402_300_799_999,
        ) {
            let created_at = Timestamp::from_unix(std::time::Duration::from_millis(millis));
            let mut plan = PlanV1 {
                created_at,
                plan_hash: PlanV1::hash_of(&steps),
                steps,
                warnings: words.clone(),
                accepted_suggestions: words.clone(),
                rejected_suggestions: words.clone(),
                safety_violations: words.clone(),
                safety_validated: safe,
                debate_rounds: rounds,
                ..fixture::plan_document()
            };
            plan.detected.confidence = confidence;
            plan.dependencies.notes = words.concat();
            plan.dependencies.tools = words;
            let artifact = CheckedArtifact::new(ArtifactType::Plan, &plan).unwrap();
            let back: PlanV1 = serde_json::from_str(artifact.json()).unwrap();
            prop_assert_eq!(back, plan);
        }

        #[test]
        fn every_recipe_round_trips(environment in variables(), constraints in variables(), notes in text()) {
            let mut recipe = RecipeV1 { environment, notes, ..fixture::recipe_document() };
            recipe.toolchain.version_constraints = constraints;
            let artifact = CheckedArtifact::new(ArtifactType::Recipe, &recipe).unwrap();
            let back: RecipeV1 = serde_json::from_str(artifact.json()).unwrap();
            prop_assert_eq!(back, recipe);
        }

        #[test]
        fn every_search_round_trips(
            query in filled(),
            description in text(),
            points in 0_u32..=10_000,
            stars in 0_u64..=9_007_199_254_740_991,
            copies in 0_usize..4,
        ) {
            let mut search = SearchV1 { query, ..fixture::search_document() };
            search.results[0].description = description;
            search.results[0].score = f64::from(points) / 10_000.0;
            search.results[0].stars = stars;
            search.results = vec![search.results[0].clone(); copies];
            search.result_count = copies as u64;
            let artifact = CheckedArtifact::new(ArtifactType::Search, &search).unwrap();
            let back: SearchV1 = serde_json::from_str(artifact.json()).unwrap();
            prop_assert_eq!(back, search);
        }

        #[test]
        fn time_and_url_checks_never_panic(text in any::<String>()) {
            let _ = (is_instant(&text), is_url(&text));
        }

        #[test]
        fn accepted_time_fits_timestamp(text in "[0-9]{4}-[0-9]{2}-[0-3][0-9]T[0-2][0-9]:[0-9]{2}(:[0-6][0-9](\\.[0-9]{0,10})?)?Z?") {
            prop_assert!(!is_instant(&text) || text.parse::<Timestamp>().is_ok());
        }
    }
}
