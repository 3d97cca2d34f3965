//! Detection over listings that are written down.

use proptest::prelude::*;

use super::*;

/// A listing, and the contents of those files that are given one.
struct Files {
    listing: Vec<String>,
    contents: Vec<(String, String)>,
}

fn files(files: &[(&str, &str)]) -> Files {
    let mut listing: Vec<String> = files.iter().map(|(path, _)| (*path).to_owned()).collect();
    listing.sort_unstable();
    listing.dedup();
    let contents = files
        .iter()
        .map(|(path, content)| ((*path).to_owned(), (*content).to_owned()))
        .collect();
    Files { listing, contents }
}

fn names(names: &[&str]) -> Files {
    files(&names.iter().map(|name| (*name, "")).collect::<Vec<_>>())
}

impl Files {
    fn view(&self) -> ProjectFiles<'_> {
        ProjectFiles::new(
            &self.listing,
            self.contents
                .iter()
                .map(|(path, text)| (path.as_str(), text.as_str())),
        )
    }

    fn detect(&self) -> Detection {
        detect_build_system(&self.view())
    }

    fn projects(&self) -> Vec<String> {
        let projects = find_projects(&self.view()).projects;
        projects
            .into_iter()
            .map(|(path, system)| format!("{path} {system}"))
            .collect()
    }

    fn is_monorepo(&self) -> bool {
        find_projects(&self.view()).is_monorepo()
    }
}

fn system(of: &[&str]) -> (&'static str, f64) {
    let found = names(of).detect();
    assert_eq!(
        found
            .detected_files
            .iter()
            .filter(|file| !of.contains(&file.as_str()))
            .count(),
        0
    );
    (found.system.as_str(), found.system.confidence())
}

#[test]
fn cargo_toml_is_cargo_with_confidence_95() {
    assert_eq!(system(&["Cargo.toml"]), ("cargo", 0.95));
}

#[test]
fn go_mod_is_go_with_confidence_95() {
    assert_eq!(system(&["go.mod", "go.sum"]), ("go", 0.95));
}

#[test]
fn package_json_with_lock_file_decides_manager() {
    assert_eq!(
        system(&["package.json", "package-lock.json"]),
        ("node-npm", 0.95)
    );
    assert_eq!(system(&["package.json", "yarn.lock"]), ("node-yarn", 0.95));
    assert_eq!(
        system(&["package.json", "pnpm-lock.yaml"]),
        ("node-pnpm", 0.95)
    );
    assert_eq!(system(&["package-lock.json"]), ("unknown", 0.0));
}

#[test]
fn pyproject_and_poetry_lock_are_poetry() {
    assert_eq!(
        system(&["pyproject.toml", "poetry.lock"]),
        ("python-poetry", 0.90)
    );
    // A requirements.txt beside a pyproject.toml does not build it.
    assert_eq!(
        system(&["pyproject.toml", "poetry.lock", "requirements.txt"]),
        ("python-poetry", 0.90)
    );
}

#[test]
fn pip_is_detected_without_pyproject() {
    assert_eq!(system(&["requirements.txt"]), ("python-pip", 0.80));
    assert_eq!(system(&["setup.py"]), ("python-pip", 0.80));
    assert_eq!(
        names(&["setup.py", "requirements.txt"])
            .detect()
            .detected_files,
        ["requirements.txt", "setup.py"]
    );
    assert_eq!(system(&["setup.py", "pyproject.toml"]), ("unknown", 0.0));
}

#[test]
fn setuptools_is_detected_by_build_system_table() {
    let of = |text| files(&[("pyproject.toml", text)]).detect().system.as_str();
    for yes in [
        "[build-system]\nrequires = ['wheel', 'setuptools>=61.0']",
        "[build-system]\nrequires = ['Setuptools[toml] ; python_version > \"3\"']",
        "\u{feff}[build-system]\nrequires = ['setuptools']",
        "[build-system]\nrequires = []\nbuild-backend = 'setuptools.build_meta'",
    ] {
        assert_eq!(of(yes), "python-setuptools", "{yes}");
    }
    for no in [
        "",
        "[build-system]\nrequires = ['setuptools_scm', 'hatchling', 'setuptools-rust', 'my.setuptools']",
        "[build-system]\nrequires = ['hatchling']\nbuild-backend = 'hatchling.build' # setuptools",
        "[build-system]\nrequires = 'setuptools'",
        "build-system = 'setuptools'",
        "[tool.x]\nrequires = ['setuptools']",
        "[build-system\nrequires = ['setuptools']",
    ] {
        assert_eq!(of(no), "unknown", "{no}");
    }
    let found = files(&[(
        "pyproject.toml",
        "[build-system]\nrequires = ['setuptools']",
    )])
    .detect();
    assert_eq!(found.system.confidence(), 0.85);
}

#[test]
fn cmake_meson_and_autotools_go_by_their_files() {
    assert_eq!(system(&["CMakeLists.txt"]), ("cmake", 0.90));
    assert_eq!(system(&["meson.build"]), ("meson", 0.90));
    assert_eq!(system(&["configure.ac"]), ("autotools", 0.85));
    assert_eq!(system(&["Makefile.am"]), ("autotools", 0.85));
}

#[test]
fn a_makefile_alone_is_make_with_confidence_70() {
    assert_eq!(system(&["Makefile"]), ("make", 0.70));
    assert_eq!(system(&["GNUmakefile"]), ("make", 0.70));
    assert_eq!(system(&["Makefile", "configure.ac"]), ("autotools", 0.85));
    assert_eq!(system(&["Makefile", "CMakeLists.txt"]), ("cmake", 0.90));
}

#[test]
fn the_surest_wins_and_the_others_are_named() {
    let found = names(&["Makefile", "Cargo.toml"]).detect();
    assert_eq!(found.system, BuildSystem::Cargo);
    assert_eq!(found.detected_files, ["Cargo.toml"]);
    assert_eq!(
        found.reasons,
        [
            "cargo: Cargo.toml is at the top",
            "not make, which Makefile would mean: it is less sure"
        ]
    );
    let setuptools = "[build-system]\nrequires = ['setuptools']";
    let both = files(&[("pyproject.toml", setuptools), ("poetry.lock", "")]).detect();
    assert_eq!(both.system, BuildSystem::PythonPoetry);
}

#[test]
fn equal_confidence_prefers_table_order() {
    let everything = names(&[
        "package.json",
        "pnpm-lock.yaml",
        "yarn.lock",
        "package-lock.json",
        "go.mod",
    ]);
    assert_eq!(everything.detect().system, BuildSystem::Go);
    assert_eq!(
        system(&[
            "package.json",
            "pnpm-lock.yaml",
            "yarn.lock",
            "package-lock.json"
        ])
        .0,
        "node-npm"
    );
    assert_eq!(
        system(&["package.json", "pnpm-lock.yaml", "yarn.lock"]).0,
        "node-yarn"
    );
    assert_eq!(system(&["meson.build", "CMakeLists.txt"]).0, "cmake");
    assert!(everything.detect().reasons[1].contains("as sure, and later in the table"));
}

#[test]
fn no_build_files_are_unknown_with_confidence_0() {
    let found = names(&["README.md", "src/main.rs", "makefile", "cargo.toml"]).detect();
    assert_eq!(
        (found.system, found.system.confidence()),
        (BuildSystem::Unknown, 0.0)
    );
    assert_eq!(found.detected_files, Vec::<String>::new());
    assert_eq!(
        found.reasons,
        ["unknown: none of the known build files is at the top"]
    );
}

#[test]
fn incomplete_build_file_is_unknown_and_named() {
    let found = names(&["package.json", "docs/requirements.txt"]).detect();
    assert_eq!(
        (found.system, found.detected_files.as_slice()),
        (BuildSystem::Unknown, &["package.json".to_owned()][..])
    );
    assert!(
        found.reasons[0].contains("package-lock.json, yarn.lock or pnpm-lock.yaml"),
        "{:?}",
        found.reasons
    );
    let plain = files(&[("pyproject.toml", "[project]\nname = 'x'")]).detect();
    assert_eq!(
        (plain.system, plain.detected_files),
        (BuildSystem::Unknown, vec!["pyproject.toml".to_owned()])
    );
    assert!(plain.reasons[0].contains("no poetry.lock"));
    let broken = files(&[("pyproject.toml", "[")]).detect();
    assert!(broken.reasons[0].contains("could not be read as TOML"));
}

#[test]
fn single_build_directory_counts_without_top_file() {
    let found = names(&[
        "README.md",
        "rust/Cargo.toml",
        "rust/src/main.rs",
        "docs/index.md",
    ])
    .detect();
    assert_eq!(
        (found.system, found.directory.as_str()),
        (BuildSystem::Cargo, "rust")
    );
    assert_eq!(found.detected_files, ["rust/Cargo.toml"]);
    assert!(
        found
            .reasons
            .iter()
            .any(|reason| reason.contains("rust is the only directory below"))
    );

    assert_eq!(
        names(&["a/Cargo.toml", "b/go.mod"]).detect().system,
        BuildSystem::Unknown
    );
    assert_eq!(
        names(&["a/b/Cargo.toml"]).detect().system,
        BuildSystem::Unknown
    );
    // A package.json without a lock file is not a system.
    assert_eq!(
        names(&["a/package.json", "b/go.mod"]).detect().system,
        BuildSystem::Go
    );
}

#[test]
fn package_json_with_workspaces_is_a_monorepo() {
    for workspaces in [
        r#"["packages/*"]"#,
        r#"{"packages":["./packages/*/"]}"#,
        r#"["none"]"#,
    ] {
        let text = format!("{{\"workspaces\":{workspaces}}}");
        assert!(
            files(&[("package.json", &text)]).is_monorepo(),
            "{workspaces}"
        );
    }
    for none in [
        "[]",
        "{}",
        r#"{"nohoist":["a"]}"#,
        r#"["!a"]"#,
        "[1]",
        "true",
        "null",
    ] {
        let text = format!("{{\"workspaces\":{none}}}");
        assert!(!files(&[("package.json", &text)]).is_monorepo(), "{none}");
    }
    assert!(!files(&[("package.json", "{\"workspaces\":[\"a\"]")]).is_monorepo());
}

#[test]
fn cargo_toml_with_workspace_table_is_monorepo() {
    assert!(files(&[("Cargo.toml", "[workspace]\nmembers = ['a']")]).is_monorepo());
    assert!(files(&[("Cargo.toml", "[workspace]")]).is_monorepo());
    assert!(
        files(&[(
            "Cargo.toml",
            "[package]\nname='x'\n[workspace.package]\nversion='1'"
        )])
        .is_monorepo()
    );
    for none in [
        "# [workspace]",
        "workspace = true",
        "[package]\ndescription = '[workspace]'",
        "[workspace",
    ] {
        assert!(!files(&[("Cargo.toml", none)]).is_monorepo(), "{none}");
    }
}

#[test]
fn two_build_directories_are_a_monorepo() {
    let two = names(&["frontend/package.json", "backend/go.mod", "docs/index.md"]);
    assert!(two.is_monorepo());
    assert_eq!(two.projects(), ["backend go", "frontend unknown"]);
    assert!(find_projects(&two.view()).signs[0].contains("2 directories below the top"));
    assert!(!names(&["frontend/package.json"]).is_monorepo());
}

#[test]
fn single_top_build_file_is_not_monorepo() {
    let one = names(&["Cargo.toml", "src/main.rs"]);
    assert!(!one.is_monorepo());
    assert_eq!(one.projects(), Vec::<String>::new());
}

#[test]
fn two_build_directories_ignore_the_top() {
    for name in [
        "CMakeLists.txt",
        "meson.build",
        "Makefile.am",
        "Makefile",
        "Cargo.toml",
    ] {
        let all = [
            name.to_owned(),
            format!("src/{name}"),
            format!("test/{name}"),
        ];
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        assert!(
            names(&all).is_monorepo() && names(&all[1..]).is_monorepo(),
            "{name}"
        );
        assert_eq!(names(&all).projects().len(), 2, "{name}");
        assert!(!names(&all[..2]).is_monorepo(), "{name}");
    }
}

#[test]
fn members_are_found_by_their_patterns() {
    let cargo = files(&[
        (
            "Cargo.toml",
            "[workspace]\nmembers = ['crates/*', './xtask/', 'gone', '../out', '/abs', 'a/../b']\nexclude = ['crates/old']",
        ),
        ("crates/a/Cargo.toml", ""),
        ("crates/b/Cargo.toml", ""),
        ("crates/old/Cargo.toml", ""),
        ("crates/old/deeper/Cargo.toml", ""),
        ("crates/c/README.md", ""),
        ("crates/a/fuzz/Cargo.toml", ""),
        ("xtask/Cargo.toml", ""),
    ]);
    assert_eq!(
        cargo.projects(),
        ["crates/a cargo", "crates/b cargo", "xtask cargo"]
    );
    let notes = find_projects(&cargo.view()).notes;
    assert_eq!(
        notes,
        ["3 workspace patterns were skipped, the first is \"../out\""]
    );

    let node = files(&[
        (
            "package.json",
            r#"{"workspaces":["packages/**","tools/{x,y}","!packages/private","!**/test/**"]}"#,
        ),
        ("packages/a/package.json", ""),
        ("packages/a/yarn.lock", ""),
        ("packages/group/b/package.json", ""),
        ("packages/group/test/c/package.json", ""),
        ("packages/private/package.json", ""),
        ("tools/x/package.json", ""),
        ("tools/z/package.json", ""),
        ("other/Makefile", ""),
    ]);
    assert_eq!(
        node.projects(),
        [
            "other make",
            "packages/a node-yarn",
            "packages/group/b unknown",
            "tools/x unknown"
        ]
    );
}

#[test]
fn invalid_workspace_patterns_are_skipped_and_reported() {
    let wild: Vec<String> = (0..70).map(|number| format!("\"w{number}/*\"")).collect();
    let text = format!(
        "{{\"workspaces\":[\"[\",\"\",\"{}\",{}]}}",
        "x".repeat(600),
        wild.join(",")
    );
    let found = files(&[
        ("package.json", &text),
        ("w1/a/package.json", ""),
        ("w69/a/package.json", ""),
    ]);
    let projects = find_projects(&found.view());
    assert_eq!(
        projects
            .projects
            .iter()
            .map(|(path, _)| path.as_str())
            .collect::<Vec<_>>(),
        ["w1/a"]
    );
    assert!(
        projects.notes[0].starts_with("10 workspace patterns"),
        "{:?}",
        projects.notes
    );
    let hostile = files(&[("package.json", "{\"workspaces\":[\"../\\u001b[2J\\n\"]}")]);
    assert!(find_projects(&hostile.view()).notes[0].ends_with("\"../\\u{1b}[2J\\n\""));
}

#[test]
fn ten_thousand_members_match_in_linear_time() {
    let members: Vec<String> = (0..10_000).map(|number| format!("m/{number:05}")).collect();
    let text = format!(
        "[workspace]\nmembers = {members:?}\nexclude = {:?}",
        &members[..5_000]
    );
    let mut all: Vec<(String, &str)> = members
        .iter()
        .map(|path| (format!("{path}/Cargo.toml"), ""))
        .collect();
    all.push(("Cargo.toml".to_owned(), &text));
    let all: Vec<(&str, &str)> = all
        .iter()
        .map(|(path, text)| (path.as_str(), *text))
        .collect();
    assert_eq!(files(&all).projects().len(), 5_000);
}

mod properties {
    use super::*;

    proptest! {
        #[test]
        fn detection_is_total_and_order_independent(
            cargo in any::<String>(), package in "(\\PC|[\\[\\]{}\":,]){0,80}", pyproject in any::<String>(),
            paths in prop::collection::vec("([ab]/){0,3}(Cargo.toml|package.json|yarn.lock|go.mod|setup.py)", 0..12),
        ) {
            let mut all = vec![("Cargo.toml", cargo.as_str()), ("package.json", &package), ("x/pyproject.toml", &pyproject)];
            all.extend(paths.iter().map(|path| (path.as_str(), "")));
            let forward = files(&all);
            let found = forward.detect();
            prop_assert!(found.detected_files.iter().all(|file| forward.listing.contains(file)));
            all.reverse();
            all.sort_by_key(|(path, text)| (path.len(), *text));
            prop_assert_eq!(files(&all).detect().system, found.system);
        }
    }
}
