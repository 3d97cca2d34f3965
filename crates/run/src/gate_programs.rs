//! The programs that a repository's gates start, for `doctor`.
//!
//! Only what this repository needs is listed: the programs of its own gates, found as a gate finds them, with its virtual
//! environment and its `node_modules` on `PATH`. The tools of skills are listed where the project has skills.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crucible_host::env::find_program;
use crucible_llm::doctor::{Diagnosis, NeededBy, ProgramCheck, ProgramState};
use crucible_model::{Code, Finding, Verdict};
use crucible_sandbox::Runtime;
use crucible_settings::Settings;
use crucible_verify::{GateSpec, install_hint};

use crate::configured::GateChoice;
use crate::gate_workspace::{ENVIRONMENTS, venv_python};

const TOOL_MISSING: Code = Code::new("doctor-gate-tool-missing");

/// Programs that only the checks of skills use.
const OF_SKILLS: [&str; 3] = ["ruff", "mypy", "pytest"];

/// Leaves out the tools of skills where the project has no skills.
pub(crate) fn drop_unused_skill_tools(seen: &mut Diagnosis, settings: &Settings, root: &Path) {
    let package = settings.forge.package.as_deref().unwrap_or("skillset");
    if !root.join("src").join(package).is_dir() {
        seen.programs
            .retain(|check| !OF_SKILLS.contains(&check.name.as_str()));
    }
}

/// Adds the programs of the gates, and a warning for each that is missing. Gates that cannot be read are reported by
/// `crucible gates`.
pub(crate) fn add_gate_programs(
    runtime: &Runtime<'_>,
    root: &Path,
    settings: &Settings,
    seen: &mut Diagnosis,
    found: &mut Verdict,
) {
    let gates = GateChoice::new(&[], Some(root), root).all(settings, root);
    let path = path_of_gates(runtime, root);
    for gate in gates.unwrap_or_default() {
        for (program, place) in programs(&gate, root, &path) {
            if seen.programs.iter().any(|check| check.name == program) {
                continue;
            }
            let install = install_hint(&gate.command).unwrap_or("install it");
            if place.is_none() {
                let hint = format!("For the gate {}, {install}.", gate.id);
                let subject = format!("{program} was not found");
                found.push(Finding::warning(TOOL_MISSING, subject, hint));
            }
            seen.programs.push(ProgramCheck {
                name: program,
                needed_by: NeededBy::EveryRun,
                purpose: format!("gate {}", gate.id),
                state: match place {
                    Some(_) => ProgramState::Found,
                    None => ProgramState::Missing,
                },
                path: place.map(|place| place.to_string_lossy().into_owned()),
                searched: Vec::new(),
                version: None,
                says: None,
                isolation: None,
                problem: None,
                install: install.to_owned(),
            });
        }
    }
}

/// The programs that a gate starts, each with its place: the command's own, and the module that Python runs.
fn programs(gate: &GateSpec, root: &Path, path: &OsString) -> Vec<(String, Option<PathBuf>)> {
    let cwd = gate
        .cwd
        .as_ref()
        .map_or_else(|| root.to_owned(), |cwd| root.join(cwd.as_str()));
    let Some(program) = gate.command.first() else {
        return Vec::new();
    };
    let place = find_program(Path::new(program), &cwd, path).ok();
    let mut all = vec![(program.clone(), place.clone())];
    if let [_, flag, module, ..] = gate.command.as_slice()
        && flag == "-m"
        && module != "unittest"
        && let Some(python) = place
        && let Some(module_path) = python.parent().map(|bin| bin.join(module))
        && module_path.is_file()
    {
        all.push((module.clone(), Some(module_path)));
    }
    all
}

/// `PATH` as gates see it: the repository's virtual environment first, programs of `node_modules` last.
fn path_of_gates(runtime: &Runtime<'_>, root: &Path) -> OsString {
    let path = runtime.env.get_os("PATH").unwrap_or_default();
    let environments = ENVIRONMENTS
        .iter()
        .filter(|name| venv_python(root, name).is_some())
        .map(|name| root.join(name).join("bin"));
    let places = environments
        .take(1)
        .chain(std::env::split_paths(path))
        .chain([root.join("node_modules/.bin")]);
    std::env::join_paths(places).unwrap_or_else(|_| path.to_owned())
}
