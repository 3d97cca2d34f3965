//! The test script of a `package.json`, run by npm, pnpm, yarn or bun: whichever the lock file belongs to.
//!
//! Where the script is one plain call of a runner, that runner reports: its options are appended to the script. What the script of `npm init` does
//! is no test.

use crucible_host::words::split_words;

use super::spec::find_runner;
use super::{
    Call, CommandOutput, NotRunReason, ReportContext, Reporting, Runner, RunnerFiles, Tool,
    TreeView, chain, command,
};

pub(super) const NPM: PackageManager = PackageManager {
    id: "npm-test",
    program: "npm",
    test: &["npm", "test"],
    locks: &["package-lock.json", "npm-shrinkwrap.json"],
    tool: "install Node.js, such as `apt install nodejs npm`",
    install: "install the packages first: run `npm ci`",
};
pub(super) const PNPM: PackageManager = PackageManager {
    id: "pnpm-test",
    program: "pnpm",
    test: &["pnpm", "test"],
    locks: &["pnpm-lock.yaml"],
    tool: "run `npm install --global pnpm`",
    install: "install the packages first: run `pnpm install --frozen-lockfile`",
};
pub(super) const YARN: PackageManager = PackageManager {
    id: "yarn-test",
    program: "yarn",
    test: &["yarn", "test"],
    locks: &["yarn.lock"],
    tool: "run `npm install --global yarn`",
    install: "install the packages first: run `yarn install --frozen-lockfile`",
};
pub(super) const BUN: PackageManager = PackageManager {
    id: "bun-test",
    program: "bun",
    test: &["bun", "run", "test"],
    locks: &["bun.lock", "bun.lockb"],
    tool: "run `npm install --global bun`",
    install: "install the packages first: run `bun install --frozen-lockfile`",
};

/// Every package manager.
const MANAGERS: [&PackageManager; 4] = [&NPM, &PNPM, &YARN, &BUN];

/// One package manager.
pub(super) struct PackageManager {
    id: &'static str,
    program: &'static str,
    /// What runs the test script.
    test: &'static [&'static str],
    /// The lock files that it writes.
    locks: &'static [&'static str],
    /// How it comes to a machine.
    tool: &'static str,
    /// How the packages come into the project.
    install: &'static str,
}

impl Runner for PackageManager {
    fn id(&self) -> &'static str {
        self.id
    }

    fn tool(&self) -> Tool {
        Tool {
            program: self.program,
            install: self.tool,
        }
    }

    fn reads(&self) -> &'static [&'static str] {
        &["package.json"]
    }

    fn detect(&self, view: &TreeView) -> Option<(Vec<String>, String)> {
        let script = test_script(view)?;
        if self.program != manager(view).program || calls_other_suite(&script, view) {
            return None;
        }
        let mut command = command(self.test);
        let mut why = "package.json has a test script".to_owned();
        if has_posttest(view) && self.program == "npm" && !calls_scripts(&script) {
            command.push("--ignore-scripts".to_owned());
            why.push_str(", whose `posttest` is left out");
        }
        Some((command, why))
    }

    fn builds(&self, view: &TreeView) -> Vec<Vec<String>> {
        let runs = |name: &str, script: &str| {
            let mut words = script.split(|c: char| c.is_whitespace() || ";&|()'\"".contains(c));
            words.any(|word| word == name)
        };
        let tests = ["pretest", "test"].map(|name| script(view, name).unwrap_or_default());
        let is_left = |name: &&str| {
            script(view, name).is_some_and(|text| !runs("test", &text))
                && !tests.iter().any(|text| runs(name, text))
        };
        let names = ["compile", "build"].into_iter().filter(is_left);
        names
            .map(|name| command(&[self.program, "run", name]))
            .collect()
    }

    fn runs(&self, call: &Call<'_>) -> bool {
        call.program == self.program && self.script(call).is_some()
    }

    fn env(&self) -> &'static [(&'static str, &'static str)] {
        &[("npm_config_update_notifier", "false")]
    }

    fn reporting(&self, call: &Call<'_>, at: &ReportContext<'_>) -> Option<Reporting> {
        Some(
            self.inner(call, at)
                .or_else(|| self.steps(call, at))
                .unwrap_or_else(|| Reporting::unchanged(call)),
        )
    }

    fn calls_others(&self) -> bool {
        true
    }

    fn suite(&self) -> &'static str {
        "javascript"
    }

    fn influence(&self) -> RunnerFiles {
        let programs: &[&str] = match self.program {
            "npm" => &["npm"],
            "pnpm" => &["pnpm"],
            "yarn" => &["yarn"],
            _ => &["bun"],
        };
        RunnerFiles {
            programs,
            recipes: &["package.json"],
            ..RunnerFiles::default()
        }
    }

    fn obstacle(&self, output: &CommandOutput<'_>) -> Option<NotRunReason> {
        if output
            .run
            .command
            .first()
            .is_none_or(|word| !word.ends_with(self.program))
        {
            return None;
        }
        if let Some(line) = output
            .line_with("Missing script: \"")
            .or_else(|| output.line_with("ERR_PNPM_NO_SCRIPT"))
        {
            let remedy = "add the script to package.json, or name the tests: `crucible run start --test \"COMMAND\"`";
            return Some(NotRunReason::quoting(line, remedy));
        }
        let not_found =
            |line: &&str| line.ends_with(": not found") || line.ends_with(": command not found");
        let line = output.lines().find(not_found);
        match (output.code(), line) {
            (Some(127), Some(line)) => Some(NotRunReason::quoting(line, self.install)),
            (Some(127), None) => Some(NotRunReason {
                cause: "a program of the script is missing".to_owned(),
                remedy: self.install.to_owned(),
            }),
            _ => None,
        }
    }
}

impl PackageManager {
    /// The name of the script that a call runs.
    fn script<'c>(&self, call: &Call<'c>) -> Option<&'c str> {
        let mut words = call
            .args
            .iter()
            .map(String::as_str)
            .filter(|word| !word.starts_with('-'));
        match words.next()? {
            "run" | "run-script" => words.next(),
            // `bun test` is a separate runner.
            "test" | "t" | "tst" if self.program != "bun" => Some("test"),
            _ => None,
        }
    }

    /// The report of a script of several steps.
    fn steps(&self, call: &Call<'_>, at: &ReportContext<'_>) -> Option<Reporting> {
        let manifest: serde_json::Value = serde_json::from_str(&(at.read)("package.json")?).ok()?;
        chain::reporting(call, self.script(call)?, &manifest, at)
    }

    /// The report of the runner that the script calls.
    fn inner(&self, call: &Call<'_>, at: &ReportContext<'_>) -> Option<Reporting> {
        let manifest: serde_json::Value = serde_json::from_str(&(at.read)("package.json")?).ok()?;
        let text = manifest.get("scripts")?.get(self.script(call)?)?.as_str()?;
        let words = script_words(text)?;
        let inner = Call::parse(&words)?;
        let runner = find_runner(at.runners, &inner).filter(|runner| !runner.calls_others())?;
        let reporting = runner.reporting(&inner, at)?;
        // Arguments can only be appended to the script.
        let more = reporting.command.strip_prefix(words.as_slice())?;
        let mut command = call.words.to_vec();
        if !more.is_empty() && self.program == "npm" && !call.has("--") {
            command.push("--".to_owned());
        }
        command.extend(more.iter().cloned());
        let name = if reporting.runner.is_empty() {
            runner.id()
        } else {
            reporting.runner
        };
        Some(Reporting {
            runner: name,
            command,
            ..reporting
        })
    }
}

/// Returns the words of a script that is one plain call; `None` if a shell would do more. Name patterns stay:
/// the shell expands them.
pub(super) fn script_words(script: &str) -> Option<Vec<String>> {
    const PATTERNS: [(char, char); 3] = [('*', '\u{e000}'), ('?', '\u{e001}'), ('[', '\u{e002}')];
    let swap = |text: &str, back: bool| -> String {
        let pair = |(one, other): (char, char)| if back { (other, one) } else { (one, other) };
        let swapped = |c: char| {
            PATTERNS
                .into_iter()
                .map(pair)
                .find(|(from, _)| *from == c)
                .map_or(c, |(_, to)| to)
        };
        text.chars().map(swapped).collect()
    };
    let words = split_words(&swap(script.trim(), false)).ok()?;
    Some(words.iter().map(|word| swap(word, true)).collect())
}

/// The `test` script of the manifest, unless it is the placeholder.
pub(super) fn test_script(view: &TreeView) -> Option<String> {
    // The placeholder always fails with these words.
    script(view, "test").filter(|text| !text.is_empty() && !text.contains("no test specified"))
}

/// The text of a script of the manifest.
fn script(view: &TreeView, name: &str) -> Option<String> {
    let manifest: serde_json::Value = serde_json::from_str(view.text("package.json")?).ok()?;
    let text = manifest.get("scripts")?.get(name)?.as_str()?;
    Some(text.trim().to_owned())
}

/// Returns whether the manifest has a `posttest` script and no `pretest`: npm runs it after the tests, for
/// example a linter, and tests do not need it.
fn has_posttest(view: &TreeView) -> bool {
    let manifest: serde_json::Value = view
        .text("package.json")
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let has = |name: &str| {
        manifest
            .get("scripts")
            .and_then(|scripts| scripts.get(name))
            .is_some()
    };
    has("posttest") && !has("pretest")
}

/// Returns whether a script runs other scripts of the manifest, whose own `pre` scripts it may need.
fn calls_scripts(script: &str) -> bool {
    let runs = [
        "npm",
        "npx",
        "pnpm",
        "yarn",
        "bun",
        "run-s",
        "run-p",
        "npm-run-all",
    ];
    script
        .split(|c: char| !(c.is_alphanumeric() || c == '-'))
        .any(|word| runs.contains(&word))
}

/// Whether the manifest names this package as one that it depends on, and has no test script to run it by.
pub(super) fn is_bare_dependency(view: &TreeView, package: &str) -> bool {
    let manifest: serde_json::Value = view
        .text("package.json")
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let has = |kind: &str| {
        manifest
            .get(kind)
            .and_then(|list| list.get(package))
            .is_some()
    };
    test_script(view).is_none() && (has("devDependencies") || has("dependencies"))
}

/// What installs the packages of this project.
fn manager(view: &TreeView) -> &'static PackageManager {
    let manifest: serde_json::Value = view
        .text("package.json")
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let named = manifest
        .get("packageManager")
        .and_then(|named| named.as_str())
        .and_then(|named| named.split('@').next());
    let by_name = MANAGERS
        .into_iter()
        .find(|manager| Some(manager.program) == named);
    let by_lock = || {
        MANAGERS
            .into_iter()
            .find(|manager| view.first(manager.locks).is_some())
    };
    by_name.or_else(by_lock).unwrap_or(&NPM)
}

/// Returns whether a script is one call of a runner of another language, which is a separate gate.
fn calls_other_suite(script: &str, view: &TreeView) -> bool {
    let Some(words) = script_words(script) else {
        return false;
    };
    let Some(runner) = view.runner_of(&words) else {
        return false;
    };
    !runner.calls_others() && runner.suite() != "javascript" && view.has_suite(runner.suite())
}

/// Returns why the package manager that a gate starts could not run its script.
pub(super) fn obstacle_of_manager(output: &CommandOutput<'_>) -> Option<NotRunReason> {
    MANAGERS
        .into_iter()
        .find_map(|manager| manager.obstacle(output))
}

/// Returns the missing package that left a JavaScript runner without tests. A missing file of the repository
/// is the repository's fault.
pub(super) fn missing_package(output: &CommandOutput<'_>) -> Option<NotRunReason> {
    let signs = [
        "Cannot find module '",
        "Cannot find package '",
        "Failed to resolve entry for package \"",
        "Failed to resolve import \"",
        "Failed to load url ",
    ];
    let line = output.lines().find(|line| {
        signs.iter().any(|sign| {
            let name = line.split_once(sign).map(|(_, rest)| rest);
            name.is_some_and(|name| {
                !name.starts_with(['.', '/', '~', '#']) && !name.starts_with("file:")
            })
        })
    })?;
    let manager = output.run.command.first().and_then(|program| {
        MANAGERS
            .into_iter()
            .find(|manager| program.rsplit('/').next() == Some(manager.program))
    });
    Some(NotRunReason::quoting(line, manager.unwrap_or(&NPM).install))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::runners;
    use crate::runner::tree_view::view;

    #[test]
    fn only_a_script_that_tests_counts() {
        let found = |text| NPM.detect(&view(&[("package.json", text)])).is_some();
        assert!(found(r#"{"scripts":{"test":"node --test"}}"#));
        assert!(!found(
            r#"{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}"#
        ));
        for bad in [
            r#"{"scripts":{"test":" "}}"#,
            r#"{"scripts":{"test":1}}"#,
            r#"{"scripts":[]}"#,
            "{}",
            "[",
            "",
        ] {
            assert!(!found(bad), "{bad}");
        }
    }

    #[test]
    fn the_lock_file_names_the_package_manager() {
        let script = r#"{"scripts":{"test":"vitest"}}"#;
        let gates = |files: &[(&str, &str)]| {
            view(files)
                .gates()
                .into_iter()
                .map(|gate| gate.command.join(" "))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            gates(&[("package.json", script), ("package-lock.json", "")]),
            ["npm test"]
        );
        assert_eq!(
            gates(&[("package.json", script), ("pnpm-lock.yaml", "")]),
            ["pnpm test"]
        );
        assert_eq!(
            gates(&[("package.json", script), ("yarn.lock", "")]),
            ["yarn test"]
        );
        assert_eq!(
            gates(&[("package.json", script), ("bun.lock", "")]),
            ["bun run test"]
        );
        let named = r#"{"packageManager":"yarn@4.1.0","scripts":{"test":"vitest"}}"#;
        assert_eq!(
            gates(&[("package.json", named), ("package-lock.json", "")]),
            ["yarn test"]
        );
    }

    #[test]
    fn posttest_script_is_not_a_test() {
        let gate = |scripts: &str| {
            let manifest = format!("{{\"scripts\":{{{scripts}}}}}");
            view(&[("package.json", &manifest)]).gates().remove(0)
        };
        let gate_of = |scripts: &str| gate(scripts).command.join(" ");
        assert_eq!(
            gate_of(r#""test":"tap","posttest":"npm run lint""#),
            "npm test --ignore-scripts"
        );
        assert_eq!(
            gate(r#""test":"tap","posttest":"x""#).why,
            "package.json has a test script, whose `posttest` is left out"
        );
        // What the tests may need stays.
        for scripts in [
            r#""test":"tap""#,
            r#""test":"tap","pretest":"tsc","posttest":"x""#,
            r#""test":"npm run build && tap","posttest":"x""#,
            r#""test":"run-s build unit","posttest":"x""#,
        ] {
            assert_eq!(gate_of(scripts), "npm test", "{scripts}");
        }
    }

    #[test]
    fn options_of_the_inner_runner_are_appended() {
        let reporting = |words: &[&str], script: &str| {
            let manifest = serde_json::json!({"scripts": {"test": script}}).to_string();
            let read = |_: &str| Some(manifest.clone());
            let words = command(words);
            let call = Call::parse(&words).unwrap();
            let at = ReportContext {
                file: "/r/report",
                dir: "/r",
                read: &read,
                runners: runners(),
            };
            let runner = runners().iter().find(|runner| runner.runs(&call)).unwrap();
            let reporting = runner.reporting(&call, &at).unwrap();
            (reporting.runner, reporting.command.join(" "))
        };
        let jest = "--json --outputFile=/r/report";
        assert_eq!(
            reporting(&["npm", "test"], "jest --ci"),
            ("jest", format!("npm test -- {jest}"))
        );
        assert_eq!(
            reporting(&["pnpm", "run", "test"], "jest"),
            ("jest", format!("pnpm run test {jest}"))
        );
        assert_eq!(
            reporting(&["npm", "test"], "node --test"),
            ("node-test", "npm test".to_owned())
        );
        let nyc = "nyc --reporter=lcov --reporter=text mocha --throw-deprecation test/*.test.js";
        assert_eq!(
            reporting(&["npm", "test"], nyc),
            ("mocha", "npm test -- --reporter=spec".to_owned())
        );
        for steps in ["tsc && jest", "jest | cat", "jest --outputFile=x"] {
            assert_eq!(
                reporting(&["npm", "test"], steps),
                ("script-steps", "sh /r/steps.sh".to_owned()),
                "{steps}"
            );
        }
        for other in ["make test", "tsc; jest", ""] {
            assert_eq!(
                reporting(&["npm", "test"], other),
                ("", "npm test".to_owned()),
                "{other}"
            );
        }
    }
}
