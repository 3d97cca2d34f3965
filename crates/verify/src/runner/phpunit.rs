//! PHPUnit: its settings at the top.

use super::format::junit;
use super::{
    Call, CommandOutput, ReportContext, Reporting, Runner, RunnerFiles, Tool, TreeView, command,
};
use crate::results::TestResults;

/// The names of its settings.
const FILES: [&str; 3] = ["phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"];

pub(super) struct Phpunit;

impl Runner for Phpunit {
    fn id(&self) -> &'static str {
        "phpunit"
    }

    fn tool(&self) -> Tool {
        Tool {
            program: "php",
            install: "install PHP, such as `apt install php-cli`, then run `composer install`",
        }
    }

    fn detect(&self, view: &TreeView) -> Option<(Vec<String>, String)> {
        let name = view.first(&FILES)?;
        Some((
            command(&["php", "vendor/bin/phpunit"]),
            format!("there is a {name} at the top"),
        ))
    }

    fn runs(&self, call: &Call<'_>) -> bool {
        let by_php = || {
            call.program == "php"
                && call
                    .subcommand()
                    .is_some_and(|script| script.ends_with("/phpunit"))
        };
        matches!(call.program, "phpunit" | "phpunit.phar") || by_php()
    }

    fn reporting(&self, call: &Call<'_>, at: &ReportContext<'_>) -> Option<Reporting> {
        Some(Reporting::files(call.appended(&["--log-junit", at.file])))
    }

    fn results(&self, output: &CommandOutput<'_>) -> Option<TestResults> {
        junit::read(output, junit::class_and_name)
    }

    fn suite(&self) -> &'static str {
        "php"
    }

    fn nothing_ran(&self) -> &'static [&'static str] {
        &["No tests executed!"]
    }

    fn influence(&self) -> RunnerFiles {
        RunnerFiles {
            programs: &["phpunit"],
            settings: &FILES,
            ..RunnerFiles::default()
        }
    }

    fn signs(&self) -> &'static [(&'static str, &'static str)] {
        &[
            (
                "Could not open input file: vendor/bin/phpunit",
                "install the packages first: run `composer install`",
            ),
            (
                "You need to set up the project dependencies using Composer",
                "run `composer install`",
            ),
            (
                "vendor/autoload.php): Failed to open stream",
                "install the packages first: run `composer install`",
            ),
            (
                "Composer detected issues in your platform",
                "install the version of PHP that composer.json names",
            ),
        ]
    }
}
