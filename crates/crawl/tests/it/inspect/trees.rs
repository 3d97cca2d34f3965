//! Inspections of real trees: the fixtures, hostile ones, and the sources of this project's own
//! dependencies.
#![expect(
    clippy::disallowed_methods,
    reason = "tests lay out trees by hand and ask cargo where its sources lie"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crucible_crawl::{
    ArtifactType, CheckedArtifact, FetchMethod, Fetched, InspectError, InspectedRepository,
    Inspection, KeyFileRole, inspect,
};
use crucible_model::{RepoPath, SECRET_REACH, Timestamp};

const KEY: &str = concat!("AKIA", "Q7RX2MPL4ZTW6NCB");

fn fetched(tree: &Path) -> Fetched {
    let repo = InspectedRepository {
        full_name: "owner/repo".to_owned(),
        url: "https://github.com/owner/repo".to_owned(),
        selected_ref: "v1.0".to_owned(),
        resolved_commit: "0123456789abcdef0123456789abcdef01234567".to_owned(),
        default_branch: "main".to_owned(),
    };
    Fetched {
        tree: tree.to_owned(),
        repo,
        method: FetchMethod::ShallowClone,
        subpath: None,
    }
}

fn at() -> Timestamp {
    "2026-01-02T03:04:05Z".parse().unwrap()
}

fn look(tree: &Path, subpath: Option<&str>) -> Result<Inspection, InspectError> {
    let subpath: Option<RepoPath> = subpath.map(|path| path.parse().unwrap());
    let inspection = inspect(&fetched(tree), subpath.as_ref(), at())?;
    CheckedArtifact::new(ArtifactType::Inspect, &inspection.artifact).unwrap();
    Ok(inspection)
}

fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, content) in files {
        put(dir.path(), path, content);
    }
    dir
}

fn put(top: &Path, path: &str, content: impl AsRef<[u8]>) {
    let path = top.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

/// The whole inspection as text, for comparison with the expected one.
fn inspection_text(inspection: &Inspection) -> String {
    let value = serde_json::json!({
        "artifact": inspection.artifact,
        "build_dir": inspection.build_dir,
        "build_files": inspection.build_files.iter().map(|file| &file.path).collect::<Vec<_>>(),
        "version_constraints": inspection.version_constraints,
        "scripts": inspection.scripts,
        "links": inspection.links,
        "reasons": inspection.reasons,
        "warnings": inspection.warnings,
    });
    let mut text = serde_json::to_string_pretty(&value).unwrap();
    text.push('\n');
    text
}

#[test]
fn fixtures_match_expectations() {
    let cases = [
        ("cargo-repo", None, "cargo-repo.json"),
        ("node-repo", None, "node-repo.json"),
        ("python-repo", None, "python-repo.json"),
        ("monorepo", Some("packages/core"), "monorepo-core.json"),
    ];
    for (name, subpath, golden) in cases {
        let found = inspection_text(&look(&fixture(name), subpath).unwrap());
        let golden = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/it/inspect/golden")
            .join(golden);
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        assert!(
            found == expected,
            "{} is:\n{expected}\nand should be:\n{found}",
            golden.display()
        );
    }
}

#[test]
fn monorepo_without_top_system_needs_choice() {
    match look(&fixture("monorepo"), None) {
        Err(InspectError::ChooseSubProject {
            known,
            sub_projects,
        }) => {
            assert_eq!(known, "packages/cli (unknown), packages/core (unknown)");
            assert_eq!(sub_projects.len(), 2);
        }
        other => panic!("{other:?}"),
    }
    let dir = tree(&[
        ("web/package.json", "{}"),
        ("web/yarn.lock", ""),
        ("api/go.mod", "module x\n\ngo 1.22\n"),
    ]);
    let error = look(dir.path(), None).unwrap_err().to_string();
    assert!(
        error.contains("api (go), web (node-yarn)") && error.contains("--ref REF:PATH"),
        "{error}"
    );
}

#[test]
fn sub_project_is_inspected_alone() {
    let dir = tree(&[
        ("README.md", "the top"),
        ("Cargo.toml", "[workspace]\nmembers = ['api']"),
        (
            "api/Cargo.toml",
            "[package]\nname = 'api'\nrust-version = '1.80'",
        ),
        ("api/README.md", "the api"),
        ("api/src/main.rs", "fn main() {}"),
        ("web/package.json", "{}"),
    ]);
    let full_inspection = look(dir.path(), None).unwrap();
    let projects: Vec<_> = full_inspection
        .artifact
        .sub_projects
        .iter()
        .map(|project| project.path.as_str())
        .collect();
    assert_eq!(
        (full_inspection.artifact.monorepo, projects),
        (true, vec!["api", "web"])
    );
    assert_eq!(full_inspection.artifact.build_system.name, "cargo");

    let part = look(dir.path(), Some("api")).unwrap();
    assert_eq!(part.artifact.readme_excerpt, "the api");
    assert_eq!(
        part.artifact.file_tree_summary,
        "Cargo.toml\nREADME.md\nsrc/main.rs\n"
    );
    assert_eq!(part.artifact.repo.selected_ref, "v1.0:api");
    assert_eq!(part.artifact.sampled_files, 3);
    assert_eq!(
        part.version_constraints,
        BTreeMap::from([("rustc".to_owned(), ">=1.80".to_owned())])
    );
    assert!(!part.artifact.monorepo && part.artifact.sub_projects.is_empty());

    let mut chosen_before = fetched(dir.path());
    chosen_before.repo.selected_ref = "v1.0:api".to_owned();
    let second_inspection = inspect(&chosen_before, Some(&"api".parse().unwrap()), at()).unwrap();
    assert_eq!(second_inspection, part);

    // The sub-project requested when fetching is inspected, unless a menu chose another one.
    let mut asked_for = fetched(dir.path());
    asked_for.subpath = Some("api".parse().unwrap());
    assert_eq!(inspect(&asked_for, None, at()).unwrap(), part);
    let other = inspect(&asked_for, Some(&"web".parse().unwrap()), at()).unwrap();
    assert_eq!(other.artifact.repo.selected_ref, "v1.0:web");
}

#[test]
fn missing_sub_project_error_lists_existing() {
    let dir = tree(&[("a/Cargo.toml", ""), ("b/go.mod", ""), ("file", "x")]);
    std::os::unix::fs::symlink("/etc", dir.path().join("link")).unwrap();
    for path in ["none", "file", "link", "link/ssl", "a/x/y"] {
        let error = look(dir.path(), Some(path)).unwrap_err();
        let text = error.to_string();
        assert!(
            matches!(error, InspectError::NoSubProject { .. }),
            "{path}: {text}"
        );
        assert!(text.contains("a (cargo), b (go)"), "{path}: {text}");
    }
    let many: Vec<String> = (0..30)
        .map(|number| format!("p{number:02}/go.mod"))
        .collect();
    let many: Vec<(&str, &str)> = many.iter().map(|path| (path.as_str(), "")).collect();
    let error = look(tree(&many).path(), None).unwrap_err().to_string();
    assert!(
        error.contains("p19 (go), and 10 more") && !error.contains("p20"),
        "{error}"
    );
}

#[test]
fn reached_cap_truncates_with_contract_warning() {
    let dir = tree(&[("Cargo.toml", "[package]")]);
    for number in 0..250 {
        put(dir.path(), &format!("src/{number}.rs"), "//! x");
    }
    let inspection = look(dir.path(), None).unwrap();
    assert!(inspection.artifact.sampling_truncated);
    assert_eq!(
        (
            inspection.artifact.sampled_files,
            inspection.artifact.sampled_bytes
        ),
        (200, 9 + 199 * 5)
    );
    assert_eq!(
        inspection.warnings,
        [
            "sampling caps reached — 200/1004 — results may be incomplete",
            "the caps that were reached: files read",
        ]
    );
    let small = look(&fixture("cargo-repo"), None).unwrap();
    assert!(!small.artifact.sampling_truncated && small.warnings.is_empty());
}

#[test]
fn readme_excerpt_is_cut_and_redacted() {
    let text = format!("# t\naws_access_key_id = {KEY}\n{}", "ü漢😀 ".repeat(3000));
    let dir = tree(&[("README.rst", "second"), ("README.md", &text)]);
    let inspection = look(dir.path(), None).unwrap();
    let excerpt = &inspection.artifact.readme_excerpt;
    assert_eq!(excerpt.chars().count(), 4000);
    assert!(
        !excerpt.contains("AKIA") && excerpt.contains("[secret:"),
        "{}",
        &excerpt[..80]
    );
    assert!(
        inspection
            .warnings
            .contains(&"secrets that were found and replaced: 1".to_owned()),
        "{:?}",
        inspection.warnings
    );
    assert_eq!(
        look(tree(&[("README", "plain")]).path(), None)
            .unwrap()
            .artifact
            .readme_excerpt,
        "plain"
    );
    assert_eq!(
        look(tree(&[("docs/README.md", "deep")]).path(), None)
            .unwrap()
            .artifact
            .readme_excerpt,
        ""
    );
}

#[test]
fn shown_texts_contain_no_secret() {
    // Around the cut of a build file, of the README and in a file name.
    for place in [3_960, 3_975, 3_985, 3_999, 4_000, 4_000 + SECRET_REACH] {
        let text = format!(
            "{}\n# token = {KEY}\n{}",
            "#".repeat(place),
            "# filler\n".repeat(2000)
        );
        let dir = tree(&[
            ("Makefile", &text),
            ("README.md", &text),
            (&format!("{KEY}.txt"), "x"),
        ]);
        let inspection = look(dir.path(), None).unwrap();
        let content: String = inspection
            .build_files
            .iter()
            .map(|file| file.content.as_str().to_owned())
            .collect();
        for text in [
            &content,
            &inspection.artifact.readme_excerpt,
            &inspection.artifact.file_tree_summary,
        ] {
            assert!(!text.contains("AKIA"), "{place}");
        }
    }
}

#[test]
fn build_files_are_cut_with_note() {
    let long = "# a long line of a manifest\n".repeat(400);
    let dir = tree(&[
        ("Makefile", &long),
        ("Cargo.lock", "x"),
        ("src/main.rs", "x"),
    ]);
    for number in 0..5 {
        put(dir.path(), &format!("{number}/Cargo.toml"), &long);
    }
    put(dir.path(), "Cargo.toml", "[package]\nname = 'x'");
    let inspection = look(dir.path(), None).unwrap();
    let files: Vec<(&str, usize)> = inspection
        .build_files
        .iter()
        .map(|file| (file.path.as_str(), file.content.as_str().len()))
        .collect();
    assert_eq!(files[0], ("Cargo.toml", 20));
    assert_eq!(files[1].0, "Makefile");
    assert!(files.iter().all(|(_, bytes)| *bytes <= 4000), "{files:?}");
    assert!(
        files.iter().map(|(_, bytes)| bytes).sum::<usize>() <= 12_000,
        "{files:?}"
    );
    assert_eq!(files.len(), 4);
    assert!(
        inspection.build_files[1]
            .content
            .as_str()
            .ends_with("\n[only the beginning of 11200 bytes]\n")
    );
    let note = "large build files that models see in part or not at all: 6";
    assert!(
        inspection.warnings.iter().any(|warning| warning == note),
        "{:?}",
        inspection.warnings
    );
}

#[test]
fn key_files_have_their_roles_and_are_bounded() {
    let dir = tree(&[
        ("Cargo.toml", "[package]"),
        ("Cargo.lock", ""),
        ("build.rs", ""),
        ("README.md", ""),
        ("LICENSE", "MIT"),
        (".gitignore", ""),
        (".github/workflows/ci.yml", ""),
        ("Dockerfile", ""),
        ("src/main.rs", ""),
        ("src/other.rs", ""),
    ]);
    let of = |inspection: &Inspection| -> Vec<(String, KeyFileRole)> {
        inspection
            .artifact
            .key_files
            .iter()
            .map(|file| (file.path.clone(), file.role))
            .collect()
    };
    use KeyFileRole::{BuildConfig, Ci, Dockerfile, EntryPoint, License, Readme, Source};
    let expected = [
        (".github/workflows/ci.yml", Ci),
        ("Cargo.lock", BuildConfig),
        ("Cargo.toml", BuildConfig),
        ("Dockerfile", Dockerfile),
        ("LICENSE", License),
        ("README.md", Readme),
        ("build.rs", BuildConfig),
        ("src/main.rs", EntryPoint),
        ("src/other.rs", Source),
    ];
    let inspection = look(dir.path(), None).unwrap();
    assert_eq!(
        of(&inspection),
        expected.map(|(path, role)| (path.to_owned(), role))
    );
    assert_eq!(inspection.artifact.key_files[4].size_bytes, 3);
    for number in 0..90 {
        put(dir.path(), &format!("src/{number}.rs"), "");
        put(dir.path(), &format!("p{number}/Makefile"), "");
    }
    assert_eq!(look(dir.path(), None).unwrap().artifact.key_files.len(), 50);
}

#[test]
fn nested_system_has_directory_and_scripts() {
    let package = r#"{"scripts":{"build":"tsc","test":"jest"},"engines":{"node":">=20"}}"#;
    let dir = tree(&[
        ("README.md", "x"),
        ("web/package.json", package),
        ("web/package-lock.json", "{}"),
    ]);
    let inspection = look(dir.path(), None).unwrap();
    assert_eq!(inspection.artifact.build_system.name, "node-npm");
    assert_eq!(
        inspection.artifact.build_system.detected_files,
        ["web/package.json", "web/package-lock.json"]
    );
    assert_eq!(inspection.build_dir, "web");
    assert_eq!(
        inspection
            .scripts
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>(),
        ["build", "test"]
    );
    assert_eq!(inspection.version_constraints["node"], ">=20");
}

#[test]
fn hidden_characters_reach_no_text() {
    let dir = tree(&[
        (
            "package.json",
            "{\"workspaces\":[\"../\\u001b[2J\"],\"engines\":{\"node\":\"1\\n2\"}}",
        ),
        ("package-lock.json", "{}"),
        ("a\u{1b}[2J/Cargo.toml", "[package]"),
        ("b\nc/go.mod", "module x"),
        ("x\u{7}.rs", "x"),
    ]);
    std::os::unix::fs::symlink("/", dir.path().join("li\u{202e}nk")).unwrap();
    let inspection = look(dir.path(), None).unwrap();
    let texts = inspection
        .reasons
        .iter()
        .chain(&inspection.warnings)
        .chain(&inspection.artifact.build_system.detected_files);
    let key_files = inspection.artifact.key_files.iter().map(|file| &file.path);
    let projects = inspection
        .artifact
        .sub_projects
        .iter()
        .map(|project| &project.path);
    for text in texts
        .chain(key_files)
        .chain(projects)
        .chain(inspection.version_constraints.values())
    {
        assert!(!text.chars().any(crucible_model::is_hidden), "{text:?}");
    }
    let summary = &inspection.artifact.file_tree_summary;
    assert!(
        !summary
            .chars()
            .any(|c| c != '\n' && crucible_model::is_hidden(c)),
        "{summary:?}"
    );
    // No step may run beyond a skipped directory.
    assert!(inspection.links.contains("li\u{202e}nk") && inspection.links.contains("b\nc"));
}

#[test]
fn dependency_sources_are_inspected_without_error() {
    let output = std::process::Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--offline", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let foreign = packages
        .iter()
        .filter(|package| !package["source"].is_null());
    let mut manifests: Vec<PathBuf> = foreign
        .filter_map(|package| package["manifest_path"].as_str())
        .map(PathBuf::from)
        .collect();
    manifests.sort();
    let step = manifests.len().div_ceil(60);
    let chosen: Vec<&Path> = manifests
        .iter()
        .step_by(step)
        .filter_map(|manifest| manifest.parent())
        .collect();
    assert!(chosen.len() >= 30, "{}", chosen.len());
    for source in chosen {
        let inspection = look(source, None).unwrap();
        let artifact = &inspection.artifact;
        assert_eq!(artifact.build_system.name, "cargo", "{}", source.display());
        assert!(
            artifact.sampled_files <= 200 && artifact.sampled_bytes <= 2_000_000,
            "{}",
            source.display()
        );
        assert!(
            artifact
                .detected_languages
                .iter()
                .any(|language| language.language == "Rust"),
            "{}",
            source.display()
        );
        assert!(
            !inspection.build_files.is_empty() && !artifact.key_files.is_empty(),
            "{}",
            source.display()
        );
        assert_eq!(
            look(source, None).unwrap(),
            inspection,
            "{}",
            source.display()
        );
    }
}
