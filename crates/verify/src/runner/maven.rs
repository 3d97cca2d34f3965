//! Maven: `pom.xml` at the top, with the project's wrapper if present. Reports are in the default directories
//! of Surefire and Failsafe.

use super::format::junit;
use super::{
    Call, CommandOutput, ReportContext, ReportPlace, Reporting, Runner, Tool, TreeView, command,
};
use crate::results::TestResults;

const OFFLINE: &str = "gates have no network: run `mvn dependency:go-offline` once";

pub(super) struct Maven;

impl Runner for Maven {
    fn id(&self) -> &'static str {
        "maven"
    }

    fn tool(&self) -> Tool {
        Tool {
            program: "mvn",
            install: "install Maven and a JDK, such as `apt install maven`",
        }
    }

    fn detect(&self, view: &TreeView) -> Option<(Vec<String>, String)> {
        let program = if view.has("mvnw") { "./mvnw" } else { "mvn" };
        let words = command(&[program, "--batch-mode", "--offline", "test"]);
        view.has("pom.xml")
            .then(|| (words, "there is a pom.xml at the top".to_owned()))
    }

    fn runs(&self, call: &Call<'_>) -> bool {
        let goals = [
            "test",
            "verify",
            "package",
            "install",
            "integration-test",
            "surefire:test",
        ];
        matches!(call.program, "mvn" | "mvnw" | "mvnd")
            && call.args.iter().any(|word| goals.contains(&word.as_str()))
    }

    /// The tests of every module run, even if another module's tests fail.
    fn reporting(&self, call: &Call<'_>, _: &ReportContext<'_>) -> Option<Reporting> {
        let place = ReportPlace::Tree(&["surefire-reports", "failsafe-reports"]);
        Some(Reporting {
            place,
            ..Reporting::lines(call.appended(&["--fail-at-end"]))
        })
    }

    fn results(&self, output: &CommandOutput<'_>) -> Option<TestResults> {
        junit::read(output, junit::class_and_name)
    }

    fn suite(&self) -> &'static str {
        "java"
    }

    fn nothing_ran(&self) -> &'static [&'static str] {
        &[
            "[INFO] No tests to run.",
            "[ERROR] No tests to run.",
            "No tests were executed",
        ]
    }

    fn signs(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("in offline mode and the artifact", OFFLINE),
            ("Could not resolve dependencies for project", OFFLINE),
            ("or one of its dependencies could not be resolved", OFFLINE),
            (
                "The JAVA_HOME environment variable is not defined",
                "install a JDK, such as `apt install default-jdk`",
            ),
            (
                "No compiler is provided in this environment",
                "install a JDK, such as `apt install default-jdk`",
            ),
            (
                "there is no POM in this directory",
                "run the gate in the directory of pom.xml",
            ),
        ]
    }
}
