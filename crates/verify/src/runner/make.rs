//! make: a makefile with a target `test` or `check` whose recipe is more than another gate of the same tree.

use super::scripts::test_script;
use super::{
    Call, CommandOutput, NotRunReason, Runner, RunnerFiles, Tool, TreeView, command, recipe,
};
use crate::makefile::Makefile;

/// Names of makefiles in make's order of preference; make reads only the first.
const FILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

/// The makefiles that detection reads: the one at the top, and those of directories of tests.
const READS: [&str; 9] = [
    "GNUmakefile",
    "makefile",
    "Makefile",
    "tests/GNUmakefile",
    "tests/makefile",
    "tests/Makefile",
    "test/GNUmakefile",
    "test/makefile",
    "test/Makefile",
];

/// The targets that run tests, the better first.
const TARGETS: [&str; 2] = ["test", "check"];

pub(super) struct Make;

impl Runner for Make {
    fn id(&self) -> &'static str {
        "make-test"
    }

    fn tool(&self) -> Tool {
        Tool {
            program: "make",
            install: "install make, such as `apt install make`",
        }
    }

    fn reads(&self) -> &'static [&'static str] {
        &READS
    }

    fn detect(&self, view: &TreeView) -> Option<(Vec<String>, String)> {
        let name = view.first(&FILES)?;
        let makefile = Makefile::read([view.text(name)?]);
        let target = TARGETS
            .into_iter()
            .find(|target| makefile.has_target(target))?;
        let is_script = test_script(view).is_some_and(|script| script == format!("make {target}"));
        if is_script || recipe::adds_no_gate(&makefile.commands(target), &makefile, view) {
            return None;
        }
        Some((
            command(&["make", target]),
            format!("{name} has a target `{target}`"),
        ))
    }

    /// A directory of tests with a makefile of its own: its target for tests, or else its first one, which builds and runs them.
    fn detect_alone(&self, view: &TreeView) -> Option<(Vec<String>, String)> {
        let name = READS
            .into_iter()
            .find(|name| name.contains('/') && view.has(name))?;
        let (directory, _) = name.split_once('/')?;
        let made = Makefile::read([view.text(name)?]);
        let target = TARGETS.into_iter().find(|target| made.has_target(target));
        if target.is_none() && made.rules().is_empty() {
            return None;
        }
        let words: Vec<&str> = ["make", "-C", directory]
            .into_iter()
            .chain(target)
            .collect();
        Some((
            command(&words),
            format!("{name} is the makefile of a directory of tests"),
        ))
    }

    fn runs(&self, call: &Call<'_>) -> bool {
        matches!(call.program, "make" | "gmake")
    }

    fn calls_others(&self) -> bool {
        true
    }

    fn influence(&self) -> RunnerFiles {
        RunnerFiles {
            programs: &["make", "gmake"],
            recipes: &FILES,
            ..RunnerFiles::default()
        }
    }

    fn obstacle(&self, output: &CommandOutput<'_>) -> Option<NotRunReason> {
        let is_make = |line: &&str| line.starts_with("make") || line.starts_with("gmake");
        let mut lines = output.lines().filter(is_make);
        if let Some(line) = lines.find(|line| line.contains("*** No rule to make target")) {
            let remedy =
                "name the command that runs the tests: `crucible run start --test \"COMMAND\"`";
            return Some(NotRunReason::quoting(line, remedy));
        }
        // make names the program itself, or the shell did before.
        let ended = output
            .lines()
            .filter(is_make)
            .any(|line| line.ends_with("] Error 127"));
        let named = |line: &&str| {
            line.ends_with(": not found")
                || line.ends_with("ommand not found")
                || line.ends_with(": No such file or directory")
        };
        let line = output.stderr.lines().find(named).filter(|_| ended)?;
        let program = line.rsplit(": ").nth(1).unwrap_or_default();
        Some(NotRunReason::quoting(
            line,
            format!("install {program:?}, which the makefile runs"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::tree_view::view;

    #[test]
    fn only_a_rule_for_test_counts() {
        for rule in [
            "test:",
            "test: build",
            "check test: a",
            "test::",
            "all:\n\ntest :\n\ttrue",
        ] {
            assert!(
                Make.detect(&view(&[("Makefile", rule)])).is_some(),
                "{rule}"
            );
        }
        for other in [
            "test := 1",
            "test ::= 1",
            "tests:",
            ".PHONY: test",
            "\ttest: x",
            "# test: x",
            "build: test",
            "",
        ] {
            assert!(
                Make.detect(&view(&[("Makefile", other)])).is_none(),
                "{other}"
            );
        }
        let shadowed = view(&[("GNUmakefile", "all:"), ("Makefile", "test:")]);
        assert!(Make.detect(&shadowed).is_none());
        let words = Make
            .detect(&view(&[("Makefile", "check:\n\t./run")]))
            .unwrap()
            .0;
        assert_eq!(words, ["make", "check"]);
    }

    #[test]
    fn makefile_in_test_directory_is_last_resort() {
        let gates = |files: &[(&str, &str)]| -> Vec<String> {
            view(files)
                .gates()
                .into_iter()
                .map(|gate| gate.command.join(" "))
                .collect()
        };
        let plain = ("tests/Makefile", "all: a\n\t./a\na: a.c\n");
        assert_eq!(gates(&[plain]), ["make -C tests"]);
        assert_eq!(
            gates(&[plain, ("Makefile", "all:\n\tcc a.c\n")]),
            ["make -C tests"]
        );
        assert_eq!(
            gates(&[("test/GNUmakefile", "all: b\ncheck: a\n\t./a\n")]),
            ["make -C test check"]
        );
        assert_eq!(gates(&[plain, ("go.mod", "module x\n")]), ["go test ./..."]);
        assert_eq!(
            gates(&[plain, ("Makefile", "test:\n\t./run\n")]),
            ["make test"]
        );
        assert_eq!(gates(&[("tests/Makefile", "CFLAGS = -g\n")]), [""; 0]);
        assert_eq!(gates(&[("examples/Makefile", "all: a\n")]), [""; 0]);
    }

    #[test]
    fn recipe_running_another_gate_is_skipped() {
        let gates = |makefile: &str, other: (&str, &str)| -> Vec<String> {
            view(&[("Makefile", makefile), other])
                .gates()
                .into_iter()
                .map(|gate| gate.id)
                .collect()
        };
        let go = ("go.mod", "");
        let python = ("pytest.ini", "");
        assert_eq!(gates("test:\n\tgo test ./...\n", go), ["go-test"]);
        assert_eq!(
            gates(
                "test: build\n\t@echo testing\n\t$(GO) test $(TEST_ARGS) ./...\n",
                go
            ),
            ["go-test"]
        );
        assert_eq!(
            gates("test:\n\t${PYTHON} -m pytest tests\n", python),
            ["pytest"]
        );
        let unittest = ("tests/test_a.py", "import unittest\n");
        for tests in [
            "python -m unittest -v ${tests}",
            "python3 -m unittest $(tests)",
        ] {
            assert_eq!(
                gates(&format!("test:\n\t{tests}\n"), unittest),
                ["unittest"],
                "{tests}"
            );
        }
        assert_eq!(
            gates("test: unit\nunit:\n\ttox -e py\n", python),
            ["pytest"]
        );
        assert_eq!(
            gates("RUN = docker run -it\ntest:\n\t$(RUN) go test ./...\n", go),
            ["go-test"]
        );
        assert_eq!(
            gates("test:\n\tcargo nextest run\n", ("Cargo.toml", "")),
            ["cargo-test"]
        );
        assert_eq!(
            gates(
                "test:\n\tnpm test\n",
                ("package.json", r#"{"scripts":{"test":"x"}}"#)
            ),
            ["npm-test"]
        );
        assert_eq!(
            gates(
                "test:\n\tx\n",
                ("package.json", r#"{"scripts":{"test":"make test"}}"#)
            ),
            ["npm-test"]
        );
        for more in [
            "go test ./... && ./integration.sh",
            "cd sub && go test ./...",
            "pytest",
            "$(RUN) go test",
            "echo no",
        ] {
            assert_eq!(
                gates(&format!("test:\n\t{more}\n"), go),
                ["go-test", "make-test"],
                "{more}"
            );
        }
    }
}
