//! CTest: a `CMakeLists.txt` that enables testing. One command configures, builds and runs the tests in a
//! separate directory.

use super::format::junit;
use super::{Call, CommandOutput, ReportAt, Reporting, Runner, Tool, TreeView, command};
use crate::results::TestResults;
use crate::tally::TestRunner;

pub(super) struct Ctest;

impl Runner for Ctest {
    fn id(&self) -> &'static str {
        "ctest"
    }

    fn tool(&self) -> Tool {
        Tool { program: "ctest", install: "install CMake, such as `apt install cmake`" }
    }

    fn reads(&self) -> &'static [&'static str] {
        &["CMakeLists.txt"]
    }

    fn detect(&self, view: &TreeView) -> Option<(Vec<String>, String)> {
        let text = view.text("CMakeLists.txt")?.to_ascii_lowercase();
        let tests = text.contains("enable_testing") || text.contains("include(ctest)");
        let words = [
            "ctest",
            "--build-and-test",
            ".",
            "crucible-build",
            "--build-generator",
            "Unix Makefiles",
            "--test-command",
            "ctest",
            "--output-on-failure",
        ];
        tests.then(|| (command(&words), "CMakeLists.txt enables testing".to_owned()))
    }

    fn runs(&self, call: &Call<'_>) -> bool {
        call.program == "ctest"
    }

    /// The inner call follows `--test-command`; the option belongs to it.
    fn reporting(&self, call: &Call<'_>, at: &ReportAt<'_>) -> Option<Reporting> {
        Some(Reporting::files(call.appended(&["--output-junit", at.file])))
    }

    fn results(&self, told: &CommandOutput<'_>) -> Option<TestResults> {
        junit::read(told, |case| case.name.clone())
    }

    fn suite(&self) -> &'static str {
        "cmake"
    }

    fn counts(&self) -> Option<TestRunner> {
        Some(TestRunner::Ctest)
    }

    fn nothing_ran(&self) -> &'static [&'static str] {
        &["No tests were found!!!"]
    }

    fn signs(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("CMAKE_CXX_COMPILER not set", "install a C++ compiler, such as `apt install g++`"),
            ("CMAKE_C_COMPILER not set", "install a C compiler, such as `apt install gcc`"),
            ("No CMAKE_CXX_COMPILER could be found", "install a C++ compiler, such as `apt install g++`"),
            ("No CMAKE_C_COMPILER could be found", "install a C compiler, such as `apt install gcc`"),
            ("CMake was unable to find a build program", "install make, such as `apt install make`"),
            (
                " provided by \"",
                "install the package that CMakeLists.txt asks for, its development files included",
            ),
            (
                "or higher is required.  You are running version",
                "install a newer CMake: run `python3 -m pip install cmake`",
            ),
        ]
    }
}
