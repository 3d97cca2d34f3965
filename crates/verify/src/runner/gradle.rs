//! Gradle: a build script at the top, with the project's wrapper if present. Reports are in the test task's
//! default directory.

use super::format::junit;
use super::{
    Call, CommandOutput, ReportContext, ReportPlace, Reporting, Runner, Tool, TreeView, command,
    maven,
};
use crate::results::TestResults;

const OFFLINE: &str = "gates have no network: run `./gradlew test` once outside of them";

pub(super) struct Gradle;

impl Runner for Gradle {
    fn id(&self) -> &'static str {
        "gradle"
    }

    fn tool(&self) -> Tool {
        Tool {
            program: "gradle",
            install: "install Gradle and a JDK, such as `apt install gradle`",
        }
    }

    fn detect(&self, view: &TreeView) -> Option<(Vec<String>, String)> {
        let name = view.first(&[
            "build.gradle",
            "build.gradle.kts",
            "settings.gradle",
            "settings.gradle.kts",
        ])?;
        if maven::Maven.detect(view).is_some() {
            return None;
        }
        let program = if view.has("gradlew") {
            "./gradlew"
        } else {
            "gradle"
        };
        Some((
            command(&[program, "--offline", "--console=plain", "test"]),
            format!("there is a {name} at the top"),
        ))
    }

    fn runs(&self, call: &Call<'_>) -> bool {
        let is_task =
            |word: &String| matches!(word.rsplit(':').next(), Some("test" | "check" | "build"));
        matches!(call.program, "gradle" | "gradlew") && call.args.iter().any(is_task)
    }

    /// The tests of every project run, even if another project's tests fail.
    fn reporting(&self, call: &Call<'_>, _: &ReportContext<'_>) -> Option<Reporting> {
        let place = ReportPlace::Tree(&["test-results"]);
        Some(Reporting {
            place,
            ..Reporting::lines(call.appended(&["--continue"]))
        })
    }

    fn results(&self, output: &CommandOutput<'_>) -> Option<TestResults> {
        junit::read(output, junit::class_and_name)
    }

    fn suite(&self) -> &'static str {
        "java"
    }

    fn nothing_ran(&self) -> &'static [&'static str] {
        &["> Task :test NO-SOURCE", ":test NO-SOURCE"]
    }

    fn signs(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("available for offline mode", OFFLINE),
            ("Could not resolve all ", OFFLINE),
            ("java.net.UnknownHostException", OFFLINE),
            (
                "JAVA_HOME is not set",
                "install a JDK, such as `apt install default-jdk`",
            ),
            (
                "No matching toolchains found",
                "install the JDK that the build names, such as `apt install default-jdk`",
            ),
        ]
    }
}
