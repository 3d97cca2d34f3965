//! RSpec: `.rspec` or a directory `spec` at the top.

use serde::Deserialize;

use super::{
    Call, CommandOutput, ReportContext, Reporting, Runner, RunnerFiles, Tool, TreeView, command,
};
use crate::results::{TestResults, TestStatus};

/// What Bundler and RubyGems print when a gem is missing.
pub(super) const SIGNS: &[(&str, &str)] = &[
    ("Could not find gem '", BUNDLE),
    ("in locally installed gems", BUNDLE),
    ("bundler: command not found: ", BUNDLE),
    ("Bundler::GemNotFound", BUNDLE),
    (
        "cannot load such file -- bundler",
        "run `gem install bundler`",
    ),
    (
        "but your Gemfile specified",
        "install the version of Ruby that the Gemfile names",
    ),
];

const BUNDLE: &str = "install the gems first: run `bundle install`";

pub(super) struct Rspec;

#[derive(Deserialize)]
struct Report {
    #[serde(default)]
    examples: Vec<Example>,
}

#[derive(Deserialize)]
struct Example {
    #[serde(default)]
    full_description: String,
    #[serde(default)]
    file_path: String,
    #[serde(default)]
    status: String,
}

impl Runner for Rspec {
    fn id(&self) -> &'static str {
        "rspec"
    }

    fn tool(&self) -> Tool {
        Tool {
            program: "rspec",
            install: "install Ruby, then run `gem install rspec`",
        }
    }

    fn detect(&self, view: &TreeView) -> Option<(Vec<String>, String)> {
        let name = view.first(&[".rspec", "spec/spec_helper.rb"])?;
        let words: &[&str] = if view.has("Gemfile") {
            &["bundle", "exec", "rspec"]
        } else {
            &["rspec"]
        };
        Some((command(words), format!("there is a {name}")))
    }

    fn runs(&self, call: &Call<'_>) -> bool {
        call.program == "rspec"
    }

    fn reporting(&self, call: &Call<'_>, at: &ReportContext<'_>) -> Option<Reporting> {
        let more = ["--format", "progress", "--format", "json", "--out", at.file];
        Some(Reporting::files(call.appended(&more)))
    }

    fn results(&self, output: &CommandOutput<'_>) -> Option<TestResults> {
        let report: Report = serde_json::from_str(output.report.as_deref()?.trim()).ok()?;
        let mut results = output.new_results();
        for example in report.examples {
            let status = match example.status.as_str() {
                "passed" => TestStatus::Passed,
                "pending" => TestStatus::Skipped,
                _ => TestStatus::Failed,
            };
            let file = example.file_path.trim_start_matches("./");
            super::format::add(
                &mut results,
                &format!("{file} > {}", example.full_description),
                status,
            );
        }
        Some(results)
    }

    fn suite(&self) -> &'static str {
        "ruby"
    }

    fn nothing_ran(&self) -> &'static [&'static str] {
        &["No examples found.", "0 examples, 0 failures"]
    }

    fn influence(&self) -> RunnerFiles {
        RunnerFiles {
            programs: &["rspec"],
            settings: &[".rspec"],
            ..RunnerFiles::default()
        }
    }

    fn signs(&self) -> &'static [(&'static str, &'static str)] {
        SIGNS
    }
}
