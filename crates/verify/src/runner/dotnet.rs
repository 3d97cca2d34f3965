//! `dotnet test`: a solution or a project at the top.

use super::format::trx;
use super::{Call, CommandOutput, ReportContext, Reporting, Runner, Tool, TreeView, command};
use crate::results::TestResults;

const RESTORE: &str = "gates have no network: run `dotnet restore` once";

/// Build files of C and C++.
const NATIVE: [&str; 6] = [
    "CMakeLists.txt",
    "Makefile.am",
    "configure.ac",
    "configure",
    "meson.build",
    "Makefile",
];

/// Files that only .NET reads.
const OWN: [&str; 4] = [
    "Directory.Build.props",
    "Directory.Packages.props",
    "global.json",
    "nuget.config",
];

pub(super) struct Dotnet;

impl Runner for Dotnet {
    fn id(&self) -> &'static str {
        "dotnet-test"
    }

    fn tool(&self) -> Tool {
        Tool {
            program: "dotnet",
            install: "install the .NET SDK from https://dotnet.microsoft.com/download",
        }
    }

    fn detect(&self, view: &TreeView) -> Option<(Vec<String>, String)> {
        let is_project = |name: &&String| {
            let ending = name.rsplit_once('.').map(|(_, ending)| ending);
            !name.contains('/')
                && ending
                    .is_some_and(|ending| ["sln", "slnx", "csproj", "fsproj"].contains(&ending))
        };
        // A solution may also hold C++ projects for Windows beside another build.
        let of_dotnet = |name: &&String| {
            !name.contains(".sln") || view.first(&NATIVE).is_none() || view.first(&OWN).is_some()
        };
        let mut projects = view.names.iter().filter(is_project);
        let name = projects.find(of_dotnet)?;
        Some((
            command(&["dotnet", "test"]),
            format!("there is a {name} at the top"),
        ))
    }

    fn runs(&self, call: &Call<'_>) -> bool {
        call.program == "dotnet" && call.subcommand() == Some("test")
    }

    fn env(&self) -> &'static [(&'static str, &'static str)] {
        &[("DOTNET_CLI_TELEMETRY_OPTOUT", "1"), ("DOTNET_NOLOGO", "1")]
    }

    fn reporting(&self, call: &Call<'_>, at: &ReportContext<'_>) -> Option<Reporting> {
        Some(Reporting::files(call.appended(&[
            "--logger",
            "trx",
            "--results-directory",
            at.dir,
        ])))
    }

    fn results(&self, output: &CommandOutput<'_>) -> Option<TestResults> {
        trx::read(output)
    }

    fn suite(&self) -> &'static str {
        "dotnet"
    }

    fn nothing_ran(&self) -> &'static [&'static str] {
        &[
            "No test is available in ",
            "No test matches the given testcase filter",
        ]
    }

    fn signs(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("error NU1301", RESTORE),
            ("error NU1101", RESTORE),
            ("error NETSDK1004", RESTORE),
            (
                "A compatible .NET SDK was not found",
                "install the version of the .NET SDK that global.json names",
            ),
            (
                "No .NET SDKs were found",
                "install the .NET SDK from https://dotnet.microsoft.com/download",
            ),
            (
                "You must install or update .NET to run this application",
                "install the .NET runtime that the project targets",
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::tree_view::view;

    #[test]
    fn solution_beside_native_build_is_not_dotnet() {
        let found = |names: &[&str]| {
            let files: Vec<(&str, &str)> = names.iter().map(|name| (*name, "")).collect();
            Dotnet.detect(&view(&files)).is_some()
        };
        for dotnet in [
            &["a.sln"][..],
            &["a.csproj", "Makefile"],
            &["a.sln", "CMakeLists.txt", "global.json"],
        ] {
            assert!(found(dotnet), "{dotnet:?}");
        }
        assert!(!found(&["a.sln", "CMakeLists.txt"]));
        assert!(!found(&["a.sln", "configure.ac"]));
    }
}
