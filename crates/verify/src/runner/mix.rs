//! `mix test`, for Elixir: `mix.exs` at the top.

use std::collections::BTreeMap;

use super::{Call, CommandOutput, ReportContext, Reporting, Runner, Tool, TreeView, command};
use crate::results::{TestResults, TestStatus};

pub(super) struct Mix;

impl Runner for Mix {
    fn id(&self) -> &'static str {
        "mix-test"
    }

    fn tool(&self) -> Tool {
        Tool {
            program: "mix",
            install: "install Elixir, such as `apt install elixir`",
        }
    }

    fn detect(&self, view: &TreeView) -> Option<(Vec<String>, String)> {
        view.has("mix.exs").then(|| {
            (
                command(&["mix", "test"]),
                "there is a mix.exs at the top".to_owned(),
            )
        })
    }

    fn runs(&self, call: &Call<'_>) -> bool {
        call.program == "mix" && call.subcommand() == Some("test")
    }

    fn env(&self) -> &'static [(&'static str, &'static str)] {
        &[("HEX_OFFLINE", "1")]
    }

    fn reporting(&self, call: &Call<'_>, _: &ReportContext<'_>) -> Option<Reporting> {
        let is_given = call.has("--trace");
        Some(Reporting::lines(call.appended(if is_given {
            &[]
        } else {
            &["--trace"][..]
        })))
    }

    /// A heading `DemoTest [test/demo_test.exs]`, then `  * test adds (0.1ms) [L#3]`; failures follow as `  1) test adds (DemoTest)`.
    fn results(&self, output: &CommandOutput<'_>) -> Option<TestResults> {
        let mut module = "";
        let mut found: BTreeMap<String, TestStatus> = BTreeMap::new();
        for line in output.stdout.lines() {
            if let Some(test) = line.strip_prefix("  * ") {
                let Some((name, behind)) = test.rsplit_once(" (") else {
                    continue;
                };
                let status = match behind {
                    behind if behind.starts_with("skipped)") || behind.starts_with("excluded)") => {
                        TestStatus::Skipped
                    }
                    _ => TestStatus::Passed,
                };
                let status = found
                    .get(&format!("{module} {name}"))
                    .map_or(status, |known| status.max(*known));
                found.insert(format!("{module} {name}"), status);
            } else if let Some((name, file)) =
                line.split_once(" [").filter(|_| !line.starts_with(' '))
            {
                if file.ends_with(".exs]") {
                    module = name;
                }
            } else if let Some((number, test)) = line.trim_start().split_once(") ")
                && line.starts_with("  ")
                && !number.is_empty()
                && number.bytes().all(|byte| byte.is_ascii_digit())
                && let Some((name, module)) = test.rsplit_once(" (")
            {
                found.insert(
                    format!("{} {name}", module.trim_end_matches(')')),
                    TestStatus::Failed,
                );
            }
        }
        let mut results = output.new_results();
        found
            .iter()
            .for_each(|(name, status)| super::format::add(&mut results, name, *status));
        Some(results)
    }

    fn suite(&self) -> &'static str {
        "elixir"
    }

    fn nothing_ran(&self) -> &'static [&'static str] {
        &["There are no tests to run", "0 tests, 0 failures"]
    }

    fn signs(&self) -> &'static [(&'static str, &'static str)] {
        &[
            (
                "the dependency is not available, run \"mix deps.get\"",
                "run `mix deps.get` once",
            ),
            (
                "Unchecked dependencies for environment",
                "run `mix deps.get` once",
            ),
            ("Could not find Hex", "run `mix local.hex --force` once"),
            (
                "Could not find \"rebar3\"",
                "run `mix local.rebar --force` once",
            ),
        ]
    }
}
