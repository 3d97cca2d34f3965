//! `prove`: Perl's tests and others that print the Test Anything Protocol, in `t`.

use super::format::tap;
use super::{
    Call, CommandOutput, ReportContext, Reporting, Runner, RunnerFiles, Tool, TreeView, command,
};
use crate::results::TestResults;
use crate::tally::TestRunner;

pub(super) struct Prove;

impl Runner for Prove {
    fn id(&self) -> &'static str {
        "prove"
    }

    fn tool(&self) -> Tool {
        Tool {
            program: "prove",
            install: "install Perl, such as `apt install perl`",
        }
    }

    fn detect(&self, view: &TreeView) -> Option<(Vec<String>, String)> {
        let file = view
            .names
            .iter()
            .find(|name| name.starts_with("t/") && name.ends_with(".t"))?;
        Some((
            command(&["prove", "-l", "-r", "t"]),
            format!("prove would run {file}"),
        ))
    }

    fn runs(&self, call: &Call<'_>) -> bool {
        call.program == "prove"
    }

    fn env(&self) -> &'static [(&'static str, &'static str)] {
        &[("HARNESS_VERBOSE", "1")]
    }

    fn reporting(&self, call: &Call<'_>, _: &ReportContext<'_>) -> Option<Reporting> {
        Some(Reporting::unchanged(call))
    }

    fn results(&self, output: &CommandOutput<'_>) -> Option<TestResults> {
        Some(tap::read(&output.stdout, output))
    }

    fn suite(&self) -> &'static str {
        "perl"
    }

    fn counts(&self) -> Option<TestRunner> {
        Some(TestRunner::Tap)
    }

    fn nothing_ran(&self) -> &'static [&'static str] {
        &["Files=0, Tests=0", "Result: NOTESTS"]
    }

    fn influence(&self) -> RunnerFiles {
        RunnerFiles {
            programs: &["prove"],
            settings: &[".proverc"],
            ..RunnerFiles::default()
        }
    }

    fn signs(&self) -> &'static [(&'static str, &'static str)] {
        &[(
            "(you may need to install the ",
            "install the modules first: run `cpanm --installdeps .`",
        )]
    }
}
