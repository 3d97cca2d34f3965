//! Everything around the commands: steps, build system, working directory, variables, texts, and
//! warnings.

use crucible_crawl::{PlanV1, judge_plan, validate_plan_safety};
use crucible_model::Level;

use super::support::{judge, plan, refusals, step, warnings, workspace};

fn with(change: impl FnOnce(&mut PlanV1)) -> crucible_crawl::PlanSafety {
    let mut plan = plan("cargo", vec![step("cargo build")]);
    change(&mut plan);
    validate_plan_safety(&plan, &workspace())
}

fn in_cwd(cwd: &str) -> Vec<String> {
    refusals(&with(|plan| plan.steps[0].cwd = cwd.to_owned()))
}

#[test]
fn a_plan_without_a_step_is_refused() {
    assert_eq!(
        refusals(&with(|plan| plan.steps.clear())),
        ["build-steps-missing"]
    );
}

#[test]
fn absolute_and_parent_cwd_are_refused() {
    for cwd in [
        "/", "/tmp", "//x", "..", "../x", "a/..", "a/../b", "./..", "",
    ] {
        assert_eq!(in_cwd(cwd), ["build-cwd-refused"], "{cwd:?}");
    }
}

#[test]
fn invalid_cwd_is_refused() {
    for cwd in [
        "~",
        "~/x",
        "$HOME",
        "a b",
        "a\nb",
        "a\\b",
        "-x",
        "a;b",
        "a/.git",
        ".git/hooks",
        ".GIT",
        ".github",
        ".cargo",
        ".crucible/x",
        ".git.",
        "a\u{202e}b",
        "b\u{fc}ro",
        "C:/x",
        "a\0b",
        "node_modules",
        "node_modules/npm/bin",
        "web/Node_Modules/foo",
        "node_modules./foo",
        ".venv",
        "venv/lib",
        "lib/site-packages/pip",
        ".tox/py",
    ] {
        assert_eq!(in_cwd(cwd), ["build-cwd-refused"], "{cwd:?}");
    }
    let deep = vec!["a"; 65].join("/");
    assert_eq!(in_cwd(&deep), ["build-cwd-refused"]);
}

#[test]
fn a_cwd_inside_is_accepted_in_every_spelling() {
    for cwd in [
        ".",
        "./",
        "frontend",
        "./frontend",
        "frontend/",
        "a//b/./c",
        "a-b_c.d/e+f",
        "@scope-like".trim_start_matches('@'),
    ] {
        assert!(in_cwd(cwd).is_empty(), "{cwd:?}");
    }
}

#[test]
fn unknown_build_system_name_is_refused() {
    for name in [
        "",
        "Cargo",
        "cargo ",
        "bazel",
        "node",
        "__proto__",
        "constructor",
    ] {
        let safety = judge(name, "cargo build");
        assert_eq!(refusals(&safety), ["build-system-invalid"], "{name:?}");
    }
}

#[test]
fn an_unknown_build_system_warns() {
    let safety = judge("unknown", "mkdir -p out");
    assert!(safety.is_valid());
    assert_eq!(warnings(&safety), ["build-system-unknown"]);
    assert_eq!(safety.warnings().len(), 1);
}

#[test]
fn low_confidence_warns() {
    let of = |confidence: f64| warnings(&with(|plan| plan.detected.confidence = confidence));
    for confidence in [0.0, 0.5, 0.799, f64::NAN, f64::NEG_INFINITY] {
        assert_eq!(of(confidence), ["build-confidence-low"], "{confidence}");
    }
    assert!(of(0.80).is_empty() && of(1.0).is_empty());
}

#[test]
fn a_command_of_more_than_500_characters_warns() {
    let of_length = |length: usize| {
        let start = "cargo test ";
        judge(
            "cargo",
            &format!("{start}{}", "a".repeat(length - start.len())),
        )
    };
    assert!(warnings(&of_length(500)).is_empty());
    assert_eq!(warnings(&of_length(501)), ["build-command-long"]);
    assert!(of_length(501).is_valid());
}

#[test]
fn overlong_command_is_refused() {
    let safety = judge("cargo", &format!("cargo test {}", "a".repeat(4090)));
    assert_eq!(refusals(&safety), ["build-command-too-long"]);
}

#[test]
fn more_than_ten_steps_warn() {
    let of = |count: usize| warnings(&with(|plan| plan.steps = vec![step("cargo build"); count]));
    assert!(of(10).is_empty());
    assert_eq!(of(11), ["build-steps-many"]);
}

#[test]
fn install_location_options_warn() {
    for (system, command) in [
        ("autotools", "./configure --prefix=out"),
        ("autotools", "make install DESTDIR=out"),
        ("make", "make PREFIX=out install"),
        ("cmake", "cmake --install build --prefix out"),
        ("cmake", "cmake --install build --prefix=out"),
        ("cmake", "cmake -B build -DCMAKE_INSTALL_PREFIX=out"),
        ("cmake", "cmake -B build -DCMAKE_INSTALL_PREFIX:PATH=out"),
        ("cmake", "cmake -B build -D CMAKE_INSTALL_PREFIX=out"),
        ("cmake", "cmake -B build -D CMAKE_INSTALL_PREFIX:PATH=out"),
        ("cmake", "cmake -B build --install-prefix out"),
        ("cmake", "cmake -B build --install-prefix=out"),
        ("meson", "meson setup build --prefix out"),
        ("meson", "meson install -C build --destdir=out"),
    ] {
        let safety = judge(system, command);
        assert!(safety.is_valid(), "{command}: {:?}", safety.violations());
        assert_eq!(warnings(&safety), ["build-path-option"], "{command}");
    }
}

#[test]
fn install_outside_workspace_warns() {
    for (system, command, told) in [
        (
            "cargo",
            "cargo install --path .",
            "cargo install --path . --root out",
        ),
        ("cmake", "cmake --install build", "cmake --build build"),
        (
            "cmake",
            "cmake --build build --target install",
            "cmake --build build --target all",
        ),
        (
            "cmake",
            "cmake --build build --target=install/strip",
            "cmake --build build --target=all",
        ),
        (
            "cmake",
            "cmake --build build -tinstall",
            "cmake --build build -tlib",
        ),
        (
            "cmake",
            "cmake --build build -t all uninstall",
            "cmake --build build -t all lib",
        ),
        ("make", "make install", "make"),
        ("make", "make -j4 all sub/install", "make -j4 all sub/all"),
        ("make", "make uninstall", "make clean"),
        ("make", "make install-strip", "make strip"),
        (
            "make",
            "make install BUILDDIR=build",
            "make all BUILDDIR=build",
        ),
        ("make", "make do-install V=1", "make do V=1"),
        ("meson", "meson install -C build", "meson compile -C build"),
        ("meson", "ninja -C build install", "ninja -C build"),
        ("go", "go install ./...", "go build ./..."),
    ] {
        let safety = judge(system, command);
        assert!(safety.is_valid());
        assert_eq!(warnings(&safety), ["build-installs-outside"], "{command}");
        assert!(warnings(&judge(system, told)).is_empty(), "{told}");
    }
}

#[test]
fn variables_that_select_programs_are_refused() {
    for key in [
        "PATH",
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "DYLD_INSERT_LIBRARIES",
        "RUSTC_WRAPPER",
        "RUSTC",
        "RUSTFLAGS",
        "CARGO_BUILD_RUSTC_WRAPPER",
        "CARGO_HOME",
        "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER",
        "RUSTUP_TOOLCHAIN",
        "NODE_OPTIONS",
        "NODE_PATH",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "PYTHONHOME",
        "BASH_ENV",
        "ENV",
        "SHELL",
        "IFS",
        "MAKEFLAGS",
        "MAKEFILES",
        "GNUMAKEFLAGS",
        "GIT_SSH_COMMAND",
        "GIT_DIR",
        "GIT_CONFIG_COUNT",
        "npm_config_script_shell",
        "NPM_CONFIG_REGISTRY",
        "npm_config_registry",
        "YARN_RC_FILENAME",
        "PIP_INDEX_URL",
        "PIP_CONFIG_FILE",
        "GOFLAGS",
        "GOPROXY",
        "GOTOOLCHAIN",
        "GOBIN",
        "CFLAGS",
        "CXXFLAGS",
        "LDFLAGS",
        "CMAKE_TOOLCHAIN_FILE",
        "CMAKE_GENERATOR",
        "CTEST_CUSTOM",
        "PYTEST_ADDOPTS",
        "PYTEST_PLUGINS",
        "HOME",
        "TMPDIR",
        "HTTPS_PROXY",
        "PERL5OPT",
        "RUBYOPT",
        "JAVA_TOOL_OPTIONS",
        "EDITOR",
        "PAGER",
        "",
        " CI",
        "CI ",
        "ci",
        "CI=1",
        "LD_PRELOAD\0",
        "\u{441}I",
    ] {
        let safety = with(|plan| drop(plan.steps[0].env.insert(key.to_owned(), "1".to_owned())));
        assert_eq!(refusals(&safety), ["build-env-key-refused"], "{key:?}");
    }
}

#[test]
fn a_variable_has_a_plain_value() {
    let of = |value: &str| {
        refusals(&with(|plan| {
            drop(plan.steps[0].env.insert("CI".to_owned(), value.to_owned()))
        }))
    };
    for value in ["", "1", "true", "C.UTF-8", "debug,mycrate::parser=trace"] {
        assert!(of(value).is_empty(), "{value:?}");
    }
    let long = "a".repeat(129);
    for value in [
        "$(id)", "`id`", "a b", "a\nb", "/x", "../x", "a;b", "a\0", "\u{202e}", "\u{fc}", "$PATH",
        "'x'", &long,
    ] {
        assert_eq!(of(value), ["build-env-value-refused"], "{value:?}");
    }
}

#[test]
fn plan_texts_contain_no_invisible_characters() {
    for text in ["a\u{1b}[2Jb", "a\u{202e}b", "a\u{200b}", "a\rb", "a\u{0}"] {
        let name = with(|plan| plan.steps[0].name = text.to_owned());
        let note = with(|plan| plan.steps[0].note = text.to_owned());
        assert_eq!(refusals(&name), ["build-text-hidden"], "{text:?}");
        assert_eq!(refusals(&note), ["build-text-hidden"], "{text:?}");
        let message = format!("{:?}{:?}", name.violations(), note.violations());
        assert!(
            !message.contains(text)
                && name
                    .violations()
                    .iter()
                    .all(|line| !line.contains('\u{1b}')),
            "{message}"
        );
    }
    let note =
        with(|plan| plan.steps[0].note = "two lines\nof text, \u{4f8b}\u{3048}\u{3070}".to_owned());
    assert!(note.is_valid());
}

#[test]
fn finding_names_step_token_and_alternative() {
    let mut plan = plan(
        "go",
        vec![
            step("go build ./..."),
            step("go build -o ./bin/app ./cmd/app"),
        ],
    );
    plan.steps[1].name = "compile".to_owned();
    let safety = validate_plan_safety(&plan, &workspace());
    let [only] = &safety.violations()[..] else {
        panic!("{:?}", safety.violations())
    };
    assert!(only.starts_with("step 2 \"compile\": /bin/: "), "{only}");
    assert!(
        only.contains("omit a leading `./`") && only.ends_with("(build-token-prohibited)"),
        "{only}"
    );
}

#[test]
fn a_refused_option_is_named_with_its_command() {
    let [only] = &judge("cargo", "cargo build --config x").violations()[..1] else {
        panic!()
    };
    assert!(
        only.contains("--config") && only.contains("`cargo build`"),
        "{only}"
    );
}

#[test]
fn uninstall_into_inside_path_only_warns() {
    let safety = judge("make", "make uninstall DESTDIR=stage");
    assert_eq!(warnings(&safety), ["build-path-option"]);
}

#[test]
fn root_only_path_is_reported_with_alternative() {
    for (system, command) in [
        ("autotools", "./configure --prefix=stage"),
        ("meson", "meson setup build --prefix=stage"),
    ] {
        let message = judge(system, command).warnings().join("");
        assert!(
            message.contains("`make install DESTDIR=stage`"),
            "{command}: {message}"
        );
    }
    let text = judge("make", "make install DESTDIR=stage")
        .warnings()
        .join("");
    assert!(!text.contains("leave it out"), "{text}");
}

#[test]
fn copy_merging_into_existing_directory_warns() {
    for command in [
        "cp -r overlay/app packages",
        "cp -a overlay/app packages/core",
    ] {
        let safety = judge("unknown", command);
        assert!(safety.is_valid(), "{command}");
        assert!(
            warnings(&safety).contains(&"build-copy-merges".to_owned()),
            "{command}"
        );
    }
    for command in [
        "cp -r assets out",
        "cp -r assets ./dist/assets",
        "cp app packages",
    ] {
        assert_eq!(
            warnings(&judge("unknown", command)),
            ["build-system-unknown"],
            "{command}"
        );
    }
}

#[test]
fn long_option_value_may_begin_with_short_directory() {
    for (system, command) in [
        ("cargo", "cargo build --target-dir=./target"),
        ("cargo", "cargo build --manifest-path=a/Cargo.toml"),
        ("cmake", "cmake --install build --prefix=./stage"),
        ("node-npm", "npm ci --prefix=a/b"),
        ("python-pip", "pytest --cov=./src"),
    ] {
        assert!(
            !refusals(&judge(system, command)).contains(&"build-path-absolute".to_owned()),
            "{command}"
        );
    }
    for (system, command) in [
        ("make", "make -C/x"),
        ("cmake", "cmake -S/x -B build"),
        ("cargo", "cargo build --target-dir=/x"),
        ("cmake", "cmake -S . -B build -DX=/x"),
        ("autotools", "./configure --with-x=/x"),
    ] {
        assert!(
            refusals(&judge(system, command)).contains(&"build-path-absolute".to_owned()),
            "{command}"
        );
    }
}

#[test]
fn unparsed_command_reports_tokens_and_length() {
    let command = format!("make {}sudo", ".. ".repeat(1 << 20));
    assert_eq!(
        refusals(&judge("make", &command)),
        ["build-token-prohibited", "build-command-too-long"]
    );
}

#[test]
fn findings_per_step_are_bounded_and_marked() {
    let keys = (0..100_000).map(|number| (format!("KEY{number}"), "1".to_owned()));
    let safety = with(|plan| plan.steps[0].env = keys.collect());
    let findings = safety.verdict.findings();
    assert_eq!(findings.len(), 17);
    let last = &findings[16];
    assert_eq!(last.code.as_str(), "build-findings-cut");
    assert_eq!(last.level, Level::Error);
    assert_eq!(last.subject, "step 1 \"build\": and more");
    // Exactly the maximum number needs no such line.
    let few = (0..16).map(|number| (format!("KEY{number}"), "1".to_owned()));
    assert_eq!(
        with(|plan| plan.steps[0].env = few.collect())
            .verdict
            .findings()
            .len(),
        16
    );
}

#[test]
fn omitted_findings_have_their_highest_severity() {
    // The options only warn, and the rejecting one is first or last.
    let warned = " DESTDIR=a".repeat(30);
    let only_warned = judge("make", &format!("make install{warned}"));
    assert!(
        only_warned.is_valid()
            && warnings(&only_warned).ends_with(&["build-findings-cut".to_owned()])
    );
    let refused = judge("make", &format!("make install{warned} CC=evil"));
    assert_eq!(refusals(&refused), ["build-findings-cut"]);
}

#[test]
fn plan_findings_are_bounded_but_name_refused_steps() {
    let hostile = step(&format!("make {}", "a/.. ".repeat(100).trim_end()));
    let safety = validate_plan_safety(&plan("make", vec![hostile; 4096]), &workspace());
    let findings = safety.verdict.findings();
    assert!(findings.len() < 1000 + 17 + 4096, "{}", findings.len());
    for number in [1, 60, 2000, 4096] {
        let start = format!("step {number} ");
        assert!(
            safety
                .verdict
                .errors()
                .any(|finding| finding.subject.starts_with(&start)),
            "{number}"
        );
    }
    // A good step after them has no finding.
    let mut steps = vec![step("make CC=evil"); 2000];
    steps.push(step("make"));
    let safety = validate_plan_safety(&plan("make", steps), &workspace());
    assert!(
        safety
            .verdict
            .findings()
            .iter()
            .all(|finding| !finding.subject.starts_with("step 2001 "))
    );
}

#[test]
fn too_many_steps_are_refused_unread() {
    let of = |count: usize| with(|plan| plan.steps = vec![step("cargo build"); count]);
    assert!(of(4096).is_valid());
    assert_eq!(refusals(&of(4097)), ["build-steps-too-many"]);
}

#[test]
fn thousands_of_hostile_steps_take_one_pass() {
    // Each triggers every check; one in a hundred has the maximum length.
    let short = step(&("make ".to_owned() + &"/usr/`$(;".repeat(10)));
    let long = step(&("make ".to_owned() + &"a/../ ".repeat(680)));
    let steps = (0..4096)
        .map(|number| {
            if number % 100 == 0 {
                long.clone()
            } else {
                short.clone()
            }
        })
        .collect();
    let plan = plan("make", steps);
    let safety = validate_plan_safety(&plan, &workspace());
    assert!(!safety.is_valid());
    assert!(safety.violations().iter().all(|line| line.len() < 1000));
}

fn json(change: impl FnOnce(&mut serde_json::Value)) -> Vec<u8> {
    let mut value = serde_json::to_value(plan("cargo", vec![step("cargo build")])).unwrap();
    change(&mut value);
    serde_json::to_vec(&value).unwrap()
}

fn schema_codes(bytes: &[u8]) -> Vec<String> {
    let verdict = judge_plan(bytes, &workspace()).unwrap_err();
    verdict
        .errors()
        .map(|finding| finding.code.to_string())
        .collect()
}

#[test]
fn foreign_plan_is_parsed_and_judged_anew() {
    let safety = judge_plan(&json(|_| {}), &workspace()).unwrap();
    assert!(
        safety.is_valid() && safety.verdict.findings().is_empty(),
        "{:?}",
        safety.verdict
    );

    let edited = json(|plan| plan["steps"][0]["cmd"] = "cargo build && id".into());
    let safety = judge_plan(&edited, &workspace()).unwrap();
    assert!(!safety.is_valid(), "`safety_validated: true` is not proof");
    let warned = warnings(&safety);
    assert_eq!(warned, ["build-hash-differs", "build-claim-differs"]);

    let modest = json(|plan| plan["safety_validated"] = false.into());
    assert_eq!(
        warnings(&judge_plan(&modest, &workspace()).unwrap()),
        ["build-claim-differs"]
    );
}

#[test]
fn plan_must_be_strict_json() {
    let good = String::from_utf8(json(|_| {})).unwrap();
    let twice = good.replacen("\"steps\":", "\"steps\":[],\"steps\":", 1);
    let twice_inside = good.replacen("\"cmd\":", "\"cmd\":\"cargo test\",\"cmd\":", 1);
    let deep = "[".repeat(100_000);
    for text in [
        "",
        "{",
        "plan",
        "{} {}",
        &twice,
        &twice_inside,
        &deep,
        "\u{feff}{}",
        &format!("{good}x"),
    ] {
        assert_eq!(
            schema_codes(text.as_bytes()),
            ["build-plan-no-json"],
            "{:.80}",
            text
        );
    }
    assert_eq!(schema_codes(b"\xff\xfe{}"), ["build-plan-no-json"]);
    assert_eq!(
        schema_codes(&vec![b' '; (8 << 20) + 1]),
        ["build-plan-too-large"]
    );
}

#[test]
fn schema_mismatch_is_reported_with_its_place() {
    for bytes in [
        json(|plan| plan["steps"] = serde_json::json!([])),
        json(|plan| drop(plan.as_object_mut().unwrap().remove("steps"))),
        json(|plan| drop(plan["steps"][0].as_object_mut().unwrap().remove("cmd"))),
        json(|plan| plan["schema"] = "viv-git-plan.v2".into()),
        json(|plan| plan["plan_hash"] = "ABC".into()),
        json(|plan| plan["steps"][0]["env"] = serde_json::json!({"CI": 1})),
        json(|plan| plan["steps"] = vec![serde_json::json!(1); 10_000].into()),
        b"[]".to_vec(),
        b"null".to_vec(),
        b"{}".to_vec(),
    ] {
        let codes = schema_codes(&bytes);
        assert!(
            !codes.is_empty()
                && codes.len() <= 50
                && codes.iter().all(|code| code == "build-plan-schema"),
            "{codes:?}"
        );
    }
}
