//! CTest: a `CMakeLists.txt` that enables testing. One command configures, builds and runs the tests in a
//! separate directory.

use super::format::junit;
use super::{Call, CommandOutput, ReportContext, Reporting, Runner, Tool, TreeView, command};
use crate::results::TestResults;
use crate::tally::TestRunner;

/// What CMake keeps of the options of a tree that was configured in the usual place.
const CACHE: &str = "build/CMakeCache.txt";

/// The most options that are taken from there.
const MAX_OPTIONS: usize = 60;

pub(super) struct Ctest;

/// The switches of the project as they are configured in `build`. Those of CMake itself say nothing about the project, and one that switches
/// tests off is not followed.
fn configured(cache: &str) -> Vec<String> {
    let option = |line: &str| {
        let (name, value) = line.split_once(":BOOL=")?;
        let is_name = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
        let is_on = matches!(value, "ON" | "TRUE" | "YES" | "1");
        let is_off = matches!(value, "OFF" | "FALSE" | "NO" | "0");
        let tests = name.to_ascii_uppercase().contains("TEST");
        let is_own = !name.starts_with("CMAKE_")
            && !name.starts_with(|first: char| !first.is_ascii_alphabetic());
        (is_name && is_own && (is_on || is_off && !tests)).then(|| format!("-D{name}={value}"))
    };
    cache
        .lines()
        .filter_map(|line| option(line.trim_end()))
        .take(MAX_OPTIONS)
        .collect()
}

impl Runner for Ctest {
    fn id(&self) -> &'static str {
        "ctest"
    }

    fn decides_outside(&self) -> bool {
        true
    }

    fn tool(&self) -> Tool {
        Tool {
            program: "ctest",
            install: "install CMake, such as `apt install cmake`",
        }
    }

    fn reads(&self) -> &'static [&'static str] {
        &["CMakeLists.txt", CACHE]
    }

    fn detect(&self, view: &TreeView) -> Option<(Vec<String>, String)> {
        let text = view.text("CMakeLists.txt")?.to_ascii_lowercase();
        let tests = text.contains("enable_testing") || text.contains("include(ctest)");
        let mut words = command(&[
            "ctest",
            "--build-and-test",
            ".",
            "crucible-build",
            "--build-generator",
            "Unix Makefiles",
        ]);
        let mut why = "CMakeLists.txt enables testing".to_owned();
        let options = configured(view.text(CACHE).unwrap_or_default());
        if !options.is_empty() {
            words.push("--build-options".to_owned());
            words.extend(options);
            why.push_str(", with the switches of build/CMakeCache.txt");
        }
        words.extend(command(&["--test-command", "ctest", "--output-on-failure"]));
        tests.then_some((words, why))
    }

    fn runs(&self, call: &Call<'_>) -> bool {
        call.program == "ctest"
    }

    /// The inner call follows `--test-command`; the option belongs to it.
    fn reporting(&self, call: &Call<'_>, at: &ReportContext<'_>) -> Option<Reporting> {
        Some(Reporting::files(
            call.appended(&["--output-junit", at.file]),
        ))
    }

    fn results(&self, output: &CommandOutput<'_>) -> Option<TestResults> {
        junit::read(output, |case| case.name.clone())
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
            (
                "CMAKE_CXX_COMPILER not set",
                "install a C++ compiler, such as `apt install g++`",
            ),
            (
                "CMAKE_C_COMPILER not set",
                "install a C compiler, such as `apt install gcc`",
            ),
            (
                "No CMAKE_CXX_COMPILER could be found",
                "install a C++ compiler, such as `apt install g++`",
            ),
            (
                "No CMAKE_C_COMPILER could be found",
                "install a C compiler, such as `apt install gcc`",
            ),
            (
                "CMake was unable to find a build program",
                "install make, such as `apt install make`",
            ),
            (
                "Configuring incomplete, errors occurred!",
                "install what CMake misses, or configure `build` without it, such as `cmake -B build -DBUILD_DOCS=OFF`: gates take its switches",
            ),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::tree_view::view;

    #[test]
    fn switches_of_the_configured_tree_are_taken() {
        let lists = ("CMakeLists.txt", "enable_testing()\n");
        let cache = "// comment\nA_DOCS:BOOL=OFF\nA_TOOLS:BOOL=ON\nA_TESTS:BOOL=OFF\nBUILD_TESTING:BOOL=OFF\nCMAKE_SKIP_RPATH:BOOL=NO\n\
            A_DIR:PATH=/x\nA_ODD:BOOL=$(id)\n-B:BOOL=ON\nA B:BOOL=ON\nA_EMPTY:BOOL=\nA_KEPT:INTERNAL=ON\n";
        let words = |files: &[(&str, &str)]| Ctest.detect(&view(files)).unwrap().0.join(" ");
        assert!(!words(&[lists]).contains("--build-options"));
        assert!(words(&[lists, (CACHE, cache)]).contains(
            " Makefiles --build-options -DA_DOCS=OFF -DA_TOOLS=ON --test-command ctest "
        ));
    }
}
