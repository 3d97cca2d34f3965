//! Folders of cases, one named test each.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

/// Folders that hold one case each, and what checks a case.
pub struct ScenarioSet {
    /// The group's name, which begins the name of each test.
    pub name: &'static str,
    /// The folder of the folders.
    pub root: PathBuf,
    /// The number of folders that there are at least, so that none is lost unnoticed.
    pub at_least: usize,
    /// Returns what is wrong with the case in a folder.
    pub check: fn(&Path) -> Result<(), String>,
}

/// Runs each folder of each set as a test `set::folder`, with the command line of the usual test harness.
///
/// # Panics
///
/// If a set cannot be read or has too few folders.
pub fn run_scenarios(sets: Vec<ScenarioSet>) -> ExitCode {
    let trials = sets.into_iter().flat_map(trials).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn trials(set: ScenarioSet) -> Vec<Trial> {
    let folders: Vec<PathBuf> = std::fs::read_dir(&set.root)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", set.root.display()));
    assert!(
        folders.len() >= set.at_least,
        "{} cases in {}, expected {}",
        folders.len(),
        set.root.display(),
        set.at_least
    );
    let trial = |folder: PathBuf| {
        let case = folder.file_name().unwrap_or_default().to_string_lossy();
        let (name, check) = (format!("{}::{case}", set.name), set.check);
        Trial::test(name, move || check(&folder).map_err(Failed::from))
    };
    folders.into_iter().map(trial).collect()
}
