//! Minitest, which `rake test` runs: a `Rakefile` and Ruby files in `test`.

use super::{
    Call, CommandOutput, ReportContext, Reporting, Runner, RunnerFiles, Tool, TreeView, command,
    rspec,
};
use crate::results::{TestResults, TestStatus};

pub(super) struct Minitest;

impl Runner for Minitest {
    fn id(&self) -> &'static str {
        "minitest"
    }

    fn tool(&self) -> Tool {
        Tool {
            program: "rake",
            install: "install Ruby, then run `gem install rake minitest`",
        }
    }

    fn detect(&self, view: &TreeView) -> Option<(Vec<String>, String)> {
        let is_test = |name: &&String| {
            name.starts_with("test/")
                && (name.ends_with("_test.rb")
                    || name.starts_with("test/test_") && name.ends_with(".rb"))
        };
        let file = view
            .names
            .iter()
            .find(is_test)
            .filter(|_| view.has("Rakefile"))?;
        let words: &[&str] = if view.has("Gemfile") {
            &["bundle", "exec", "rake", "test"]
        } else {
            &["rake", "test"]
        };
        Some((command(words), format!("a Rakefile and {file}")))
    }

    fn runs(&self, call: &Call<'_>) -> bool {
        call.program == "rake"
            && call
                .args
                .iter()
                .any(|word| word == "test" || word.starts_with("test:"))
    }

    fn reporting(&self, call: &Call<'_>, _: &ReportContext<'_>) -> Option<Reporting> {
        let options = vec![("TESTOPTS", "-v".to_owned())];
        Some(Reporting {
            options,
            ..Reporting::unchanged(call)
        })
    }

    /// `FooTest#test_bar = 0.00 s = .`
    fn results(&self, output: &CommandOutput<'_>) -> Option<TestResults> {
        let mut results = output.new_results();
        for line in output.stdout.lines() {
            let Some((rest, mark)) = line.trim_end().rsplit_once(" s = ") else {
                continue;
            };
            let Some((name, _)) = rest
                .rsplit_once(" = ")
                .filter(|(name, _)| name.contains('#'))
            else {
                continue;
            };
            let status = match mark {
                "." => TestStatus::Passed,
                "S" => TestStatus::Skipped,
                "F" | "E" => TestStatus::Failed,
                _ => continue,
            };
            super::format::add(&mut results, name, status);
        }
        Some(results)
    }

    fn suite(&self) -> &'static str {
        "ruby"
    }

    fn nothing_ran(&self) -> &'static [&'static str] {
        &["0 runs, 0 assertions", "0 tests, 0 assertions"]
    }

    fn influence(&self) -> RunnerFiles {
        RunnerFiles {
            programs: &["rake"],
            recipes: &["Rakefile"],
            settings: &[],
        }
    }

    fn signs(&self) -> &'static [(&'static str, &'static str)] {
        rspec::SIGNS
    }
}
