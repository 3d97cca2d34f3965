//! Tests of the files that a gate consists of.

use std::collections::BTreeMap;

use super::*;

fn found(command: &[&str], files: &[(&str, &str)]) -> Vec<String> {
    found_with(serde_json::json!({}), command, files)
}

/// The same for a gate with these settings.
fn found_with(
    settings: serde_json::Value,
    command: &[&str],
    files: &[(&str, &str)],
) -> Vec<String> {
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    let mut gate = serde_json::json!({"id": "tests", "command": command, "timeout_ms": 1000, "source": "the test"});
    gate.as_object_mut()
        .unwrap()
        .extend(settings.as_object().unwrap().clone());
    let gates = [serde_json::from_value(gate).unwrap()];
    let read = |path: &RepoPath| {
        files
            .get(path.as_str())
            .map(|text| text.as_bytes().to_vec())
    };
    let tracked: Vec<(&str, Mode)> = files.keys().map(|path| (*path, Mode::Plain)).collect();
    gate_files(&gates, &tracked, read)
        .into_iter()
        .map(|path| path.to_string())
        .collect()
}

#[test]
fn makefile_script_is_a_gate_file() {
    let files = [
        (
            "Makefile",
            "all: build\n\ntest:\n\t@python3 tools/verify.py src/total.py\n",
        ),
        ("tools/verify.py", "import total\n"),
        ("src/total.py", ""),
    ];
    assert_eq!(
        found(&["make", "test"], &files),
        ["Makefile", "tools/verify.py"]
    );
}

/// Make reads the dependency file of each source. The source itself is not a makefile.
#[test]
fn dependency_files_do_not_add_sources() {
    let makefile = "SOURCES=src/total.cpp $(wildcard tests/*.cpp)\nOBJECTS=$(SOURCES:%=build/%.o)\n\n\
        test: build/test\n\tbuild/test\n\nbuild/test: $(OBJECTS)\n\t$(CXX) $(OBJECTS) -o $@\n\n\
        -include $(OBJECTS:.o=.d)\ninclude rules.mk\n";
    let files = [
        ("Makefile", makefile),
        ("rules.mk", "check:\n\tsh check.sh\n"),
        ("check.sh", ""),
        (
            "src/total.cpp",
            "int total() { assert(1); return load(\"data/a.xml\"); }\n",
        ),
        ("tests/main.cpp", "int main() { CHECK(total() == 1); }\n"),
        ("data/a.xml", ""),
    ];
    let found = found(&["make", "test"], &files);
    assert!(
        !found
            .iter()
            .any(|path| path == "src/total.cpp" || path == "data/a.xml"),
        "{found:?}"
    );
    assert!(
        ["rules.mk", "check.sh"]
            .iter()
            .all(|path| found.iter().any(|known| known == path)),
        "{found:?}"
    );
}

#[test]
fn setup_and_variables_belong_to_gate() {
    let files = [
        ("gen.sh", "python3 tools/gen.py\n"),
        ("tools/gen.py", ""),
        ("hook.js", ""),
        ("src/a.js", ""),
    ];
    let setup = serde_json::json!({"setup": [["sh", "gen.sh"]]});
    assert_eq!(
        found_with(setup, &["node", "--test"], &files),
        ["gen.sh", "tools/gen.py"]
    );
    let env = serde_json::json!({"env": {"NODE_OPTIONS": "--require=./hook.js", "MODE": "fast"}});
    assert_eq!(found_with(env, &["node", "--test"], &files), ["hook.js"]);
    assert_eq!(found(&["node", "--test"], &files), [""; 0]);
}

#[test]
fn gate_files_are_relative_to_its_directory() {
    let files = [
        ("packages/x/Makefile", "test:\n\tsh scripts/all.sh\n"),
        ("packages/x/scripts/all.sh", "sh ./lib.sh\n"),
        ("packages/x/lib.sh", ""),
        ("packages/x/src/a.py", ""),
    ];
    let cwd = serde_json::json!({"cwd": "packages/x"});
    let expected = [
        "packages/x/Makefile",
        "packages/x/lib.sh",
        "packages/x/scripts/all.sh",
    ];
    assert_eq!(found_with(cwd, &["make", "test"], &files), expected);
}

#[test]
fn submake_makefile_is_a_gate_file() {
    let files = [
        (
            "Makefile",
            "test:\n\t$(MAKE) -C sub check && ${MAKE} -f other.mk\n",
        ),
        ("sub/Makefile", "check:\n\tsh ./all.sh\n"),
        ("sub/all.sh", ""),
        ("other.mk", ""),
    ];
    assert_eq!(
        found(&["make", "test"], &files),
        ["Makefile", "other.mk", "sub/Makefile", "sub/all.sh"]
    );
}

#[test]
fn long_chain_of_scripts_is_followed() {
    let names: Vec<(String, String)> = (0..400)
        .map(|n| (format!("s{n}.sh"), format!("sh s{}.sh", n + 1)))
        .collect();
    let files: Vec<(&str, &str)> = names
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    assert_eq!(found(&["sh", "s0.sh"], &files).len(), 400);
}

#[test]
fn package_scripts_are_gate_files() {
    let files = [
        (
            "package.json",
            r#"{"main": "lib/index.js", "scripts": {"test": "NODE_ENV=x node ./scripts/check.js"}}"#,
        ),
        ("scripts/check.js", "require('../lib/index.js')"),
        ("lib/index.js", ""),
    ];
    assert_eq!(
        found(&["npm", "test"], &files),
        ["package.json", "scripts/check.js"]
    );
}

#[test]
fn scripts_that_a_script_sources_count() {
    let files = [
        (
            "check.sh",
            "set -e\n. \"$(dirname \"$0\")/ci/lib.sh\"\nif ./ci/more && true; then run_all; fi\n",
        ),
        (
            "ci/lib.sh",
            "source \"$HERE/last.sh\"\ncc -o x src/main.c\n",
        ),
        (
            "ci/more",
            "#!/usr/bin/env bash\nexec timeout 5 python3 -m tools.lint\n",
        ),
        ("ci/last.sh", ""),
        ("tools/lint.py", "./src/run.sh\n"),
        ("src/main.c", ""),
    ];
    let expected = [
        "check.sh",
        "ci/last.sh",
        "ci/lib.sh",
        "ci/more",
        "tools/lint.py",
    ];
    assert_eq!(found(&["sh", "check.sh"], &files), expected);
    assert_eq!(found(&["sh", "-c", "cd . && ./check.sh"], &files), expected);
}

#[test]
fn all_command_words_count() {
    let files = [
        ("ci/check.sh", ""),
        ("src/self_test.py", ""),
        ("src/a.py", ""),
        ("make.mk", ""),
    ];
    assert_eq!(
        found(
            &["./ci/check.sh", "--all", "../out.sh", "src/untracked.py"],
            &files
        ),
        // The makefile by the rule about scripts.
        ["ci/check.sh", "make.mk"]
    );
    let line = "X=1 python3 'src/self_test.py';make -f make.mk";
    assert_eq!(
        found(&["sh", "-c", line], &files),
        ["ci/check.sh", "make.mk", "src/self_test.py"]
    );
}

#[test]
fn script_is_found_through_any_command() {
    let steps = "dev/steps.py";
    for line in [
        "cd dev && python3 steps.py",
        "timeout 60s python3 dev/steps.py",
        "timeout 1.5m nice -n 5 python3.12 dev/steps.py",
        "for t in dev/st*.py; do python3 \"$t\"; done",
        "D=dev; python3 \"$D/steps.py\"",
        "S=dev/steps.py; python3 $S",
        "${PYTHON:-python3} dev/steps.py",
        "flock /tmp/l python3 dev/steps.py",
        "env -C dev python3 steps.py",
        "bash -c 'python3 dev/steps.py'",
        "find dev | xargs -n 1 python3 dev/steps.py",
        "find dev -name 'st*.py' | xargs -n 1 python3",
        "find dev -name 'st*.py' -exec python3 {} \\;",
        "parallel python3 ::: dev/st*.py",
        "T=dev/st*.py; for t in $T; do python3 \"$t\"; done",
        "for t in dev/steps.py; do python3 \"$t\"; done",
        "cd dev; for t in st*.py; do python3 $t; done",
        "python3 \\\n  dev/steps.py",
        "python3 -W error dev/steps.py",
        "python3 -X utf8 -B dev/steps.py",
        "node -r dev/steps.py other.js",
        "python3 -m cProfile -o /dev/null dev/steps.py",
        "python3 -m pdb -c continue dev/steps.py",
        "PYTHONPATH=dev python3 -m steps",
        "PYTHONPATH=.:dev python3 -m steps --all",
        "F=steps; python3 dev/$F.py",
        "F=steps; python3 ./dev/${F}.py",
        "find dev -type f | sort | while read f; do python3 $f || exit 1; done",
        "find dev -type f | while read -r f; do\n  python3 \"$f\"\ndone",
        "ls dev | sed s,^,dev/, | xargs -n1 python3",
        "cat dev/steps.py | python3 -",
        "cat dev/steps.py | python3",
        "printf '%s\\n' dev/steps.py | xargs python3",
        "python3 < dev/steps.py",
    ] {
        let files = [("check.sh", line), (steps, ""), ("src/total.py", "")];
        assert_eq!(
            found(&["sh", "check.sh"], &files),
            ["check.sh", steps],
            "{line}"
        );
    }
}

#[test]
fn file_in_message_is_not_run() {
    for (line, expected) in [
        (
            "grep -q x src/total.py || { echo 'wrong (src/total.py)'; exit 1; }",
            vec!["check.sh"],
        ),
        (
            "[ -s \"src/total.py\" ] || printf \"no (src/total.py) | %s\" x",
            vec!["check.sh"],
        ),
        ("echo \"$(src/total.py)\"", vec!["check.sh", "src/total.py"]),
        (
            "echo 'it runs:'; src/total.py",
            vec!["check.sh", "src/total.py"],
        ),
        (
            "sh -c 'true; src/total.py'",
            vec!["check.sh", "src/total.py"],
        ),
        // What is printed goes on into a program that runs it.
        (
            "echo 'python3 src/total.py' | sh",
            vec!["check.sh", "src/total.py"],
        ),
        (
            "echo \"5\\\" disk\"; python3 \"src/total.py\"",
            vec!["check.sh", "src/total.py"],
        ),
        (
            "echo don\\'t; python3 'src/total.py'",
            vec!["check.sh", "src/total.py"],
        ),
        (
            "echo 'it is (src/total.py",
            vec!["check.sh", "src/total.py"],
        ),
    ] {
        let files = [("check.sh", line), ("src/total.py", "")];
        assert_eq!(found(&["sh", "check.sh"], &files), expected, "{line}");
    }
}

#[test]
fn moved_or_checked_files_are_not_run() {
    for line in [
        "cd \"${0%/*}\"",
        "DIR=${0%/*}; cd \"$DIR\"",
        "cd \"${BASH_SOURCE[0]%/*}\"",
        "rm -rf \"$TMP\"/*",
        "rm -rf $(BUILD)/*",
        "cp -r src/* out/",
        "ruff check src/*.py",
        "SRC=src/*.py; ruff check $SRC",
        "SRC := $(wildcard src/*.py)",
        "find . -name '*.py' | xargs python3 -m py_compile",
        "for f in src/*.py; do python3 -m py_compile \"$f\"; done",
        "find src -type f | while read f; do python3 -m py_compile $f; done",
        "find src -type f | while read f; do ruff check $f; done",
        "python3 -m mypy src/total.py",
        "python3 -m doctest src/total.py",
        "cat src/total.py | wc -l",
        "cat src/total.py | python3 -m json.tool",
        "F=total; ruff check src/$F.py",
        "PYTHONPATH=src python3 -m unittest discover",
    ] {
        let files = [("check.sh", line), ("src/total.py", ""), ("README.md", "")];
        assert_eq!(found(&["sh", "check.sh"], &files), ["check.sh"], "{line}");
    }
    let files = [
        ("tox.ini", "[tool]\ninclude = [\"src*\"]\n"),
        ("src/total.py", ""),
    ];
    assert_eq!(found(&["tox"], &files), ["tox.ini"]);
}

#[test]
fn task_runner_settings_are_followed() {
    let cases: [(&[&str], &str, &str); 7] = [
        (&["make", "test"], "Makefile", "include rules.inc"),
        (
            &["make"],
            "Makefile",
            "T := tools/*.py\nall:\n\tfor t in $(T); do python3 $$t; done",
        ),
        (&["tox"], "tox.ini", "commands =\n  python tools/verify.py"),
        (
            &["nox"],
            "noxfile.py",
            "session.run(\"python\", \"tools/verify.py\")",
        ),
        (
            &["just", "test"],
            "justfile",
            "test:\n  @python3 tools/verify.py",
        ),
        (
            &["pre-commit", "run"],
            ".pre-commit-config.yaml",
            "entry: python3 tools/verify.py",
        ),
        (
            &["npm", "test"],
            "package.json",
            r#"{"scripts": {"test": "cd tools && python3 verify.py"}}"#,
        ),
    ];
    for (command, name, text) in cases {
        let files = [
            (name, text),
            ("rules.inc", "test:\n\tpython3 tools/verify.py\n"),
            ("tools/verify.py", ""),
            ("src/total.py", ""),
        ];
        let found = found(command, &files);
        assert!(
            found.contains(&"tools/verify.py".to_owned()),
            "{command:?}: {found:?}"
        );
        assert!(
            !found.contains(&"src/total.py".to_owned()),
            "{command:?}: {found:?}"
        );
    }
}

#[test]
fn gate_starting_programs_counts_every_script() {
    let files = [
        ("check.sh", "eval \"$(cat plan.txt)\"\n"),
        ("deep/down/steps.sh", ""),
        ("deep/tool", "#!/usr/bin/perl\n"),
        ("LICENSE", "free\n"),
        ("src/total.py", ""),
    ];
    let scripts = ["check.sh", "deep/down/steps.sh", "deep/tool"];
    assert_eq!(found(&["sh", "check.sh"], &files), scripts);
    assert_eq!(found(&["bash", "-c", "$X"], &files), scripts);
    assert_eq!(found(&["cargo", "test"], &files), [""; 0]);
    let gate = serde_json::json!({"id": "t", "command": ["sh", "check.sh"], "timeout_ms": 9, "source": "s"});
    let gates = [serde_json::from_value(gate).unwrap()];
    let tracked = [
        ("check.sh", Mode::Plain),
        ("run.py", Mode::Executable),
        ("tool", Mode::Executable),
        ("module.py", Mode::Executable),
        ("a.py", Mode::Plain),
    ];
    // Nobody can run a module that names no program, whatever its bits.
    let read = |path: &RepoPath| match path.as_str() {
        "check.sh" => Some(Vec::new()),
        "run.py" => Some(b"#!/usr/bin/env python3\n".to_vec()),
        "module.py" => Some(b"def total(): pass\n".to_vec()),
        _ => None,
    };
    let paths = gate_files(&gates, &tracked, read);
    assert_eq!(
        paths.iter().map(RepoPath::as_str).collect::<Vec<_>>(),
        ["check.sh", "run.py", "tool"]
    );
}

#[test]
fn circular_references_end() {
    let files = [
        ("a.sh", "sh b.sh\nsh ../a.sh\nsh ./a.sh"),
        ("b.sh", "sh a.sh\nsh $X\nsh $\nsh ''"),
    ];
    assert_eq!(found(&["./a.sh"], &files), ["a.sh", "b.sh"]);
    assert_eq!(found(&["cargo", "test", "--offline"], &files), [""; 0]);
}

#[test]
fn named_cargo_and_go_programs_count() {
    let files = [
        ("src/bin/check.rs", ""),
        ("src/bin/deep/main.rs", ""),
        ("src/main.rs", ""),
        ("src/lib.rs", ""),
        ("examples/probe.rs", ""),
        ("xtask/src/main.rs", ""),
        ("xtask/src/steps.rs", ""),
        ("tools/lint/src/main.rs", ""),
        ("cmd/check/main.go", ""),
        ("total.go", ""),
    ];
    for (line, expected) in [
        (
            "cargo run -q --offline --bin check",
            vec!["src/bin/check.rs"],
        ),
        ("cargo run --bin=deep", vec!["src/bin/deep/main.rs"]),
        (
            "cargo +nightly run --example probe",
            vec!["examples/probe.rs"],
        ),
        (
            "cargo xtask ci",
            vec!["xtask/src/main.rs", "xtask/src/steps.rs"],
        ),
        ("cargo run -p lint -- --all", vec!["tools/lint/src/main.rs"]),
        ("cargo test --lib", vec![]),
        ("cargo clippy --all-targets", vec![]),
        ("cargo run", vec![]),
        ("go run ./cmd/check", vec!["cmd/check/main.go"]),
        ("go test ./...", vec![]),
        ("go vet .", vec![]),
    ] {
        let command: Vec<&str> = line.split(' ').collect();
        assert_eq!(found(&command, &files), expected, "{line}");
        let text = format!("test:\n\t{line}\n");
        let files = [&files[..], &[("Makefile", text.as_str())]].concat();
        let expected = [&["Makefile"], &expected[..]].concat();
        assert_eq!(found(&["make", "test"], &files), expected, "{line}");
    }
}

#[test]
fn runner_settings_count_without_following() {
    let files = [
        ("pytest.ini", "addopts = tools/x.sh"),
        ("tools/x.sh", "true"),
        ("jest.config.js", "run"),
        ("src/a.py", ""),
    ];
    assert_eq!(
        found(&["python3", "-m", "pytest", "-q"], &files),
        ["pytest.ini"]
    );
    assert_eq!(found(&["npx", "jest"], &files), ["jest.config.js"]);
}
