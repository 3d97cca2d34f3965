//! Prepares a command to report per test, and collects its report.
//!
//! A report goes to a private directory outside the work tree, to standard output, or to the tool's default
//! path. Report files are read after the process has ended: regular files only, up to [`MAX_REPORT`]
//! together. Invariants: a report names no directory of this machine, and holds no secret that the rules
//! know.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crucible_host::fs::{self, read_regular_up_to};
use crucible_model::ByteLimit;
use crucible_sandbox::Extent;
use crucible_secrets::Scanner;

use super::spec::find_runner;
use super::{Call, ReportContext, ReportPlace, Reporting, Runner, runner_by_id, runners};
use crate::gate::RunnerReport;

/// The most that is read of the reports of one gate, in bytes.
const MAX_REPORT: u64 = 32 << 20;

/// The most report files of one gate, and the most directories that are searched for them.
const MAX_FILES: usize = 20_000;

/// Maximum bytes of a manifest with scripts.
const MAX_MANIFEST: ByteLimit = ByteLimit(1 << 20);

/// A command that is about to run.
pub(crate) struct PreparedCommand {
    runner: Option<&'static dyn Runner>,
    reporting: Option<Reporting>,
    private: Option<PathBuf>,
    before: BTreeMap<PathBuf, (Option<SystemTime>, u64)>,
}

/// What a command reported.
#[derive(Default)]
pub(crate) struct CommandReport {
    /// The report, where there is one.
    pub(crate) report: Option<RunnerReport>,
    /// What to show instead of its standard output.
    pub(crate) stdout: Option<Vec<u8>>,
}

/// Prepares a command that runs in `cwd`. Without a private directory it runs as it is.
pub(crate) fn prepare(command: &[String], cwd: &Path, private: Option<&Path>) -> PreparedCommand {
    let mut prepared = PreparedCommand {
        runner: None,
        reporting: None,
        private: None,
        before: BTreeMap::new(),
    };
    let Some(call) = Call::parse(command) else {
        return prepared;
    };
    let Some(runner) = find_runner(runners(), &call) else {
        return prepared;
    };
    prepared.runner = Some(runner);
    let Some(private) = private.filter(|dir| is_ready(dir)) else {
        return prepared;
    };
    let (Some(dir), Some(file)) = (
        private.to_str(),
        private.join("report").to_str().map(str::to_owned),
    ) else {
        return prepared;
    };
    let read = |name: &str| {
        let bytes = read_regular_up_to(&cwd.join(name), MAX_MANIFEST).ok()?;
        String::from_utf8(bytes).ok()
    };
    let at = ReportContext {
        file: &file,
        dir,
        read: &read,
        runners: runners(),
    };
    prepared.reporting = runner
        .reporting(&call, &at)
        .map(|reporting| match reporting.runner {
            "" => Reporting {
                runner: runner.id(),
                ..reporting
            },
            _ => reporting,
        });
    prepared.private = Some(private.to_owned());
    let cannot_be_written = |(name, text): &(&str, String)| {
        fs::write_new(&private.join(name), text.as_bytes()).is_err()
    };
    if let Some(reporting) = &prepared.reporting
        && reporting.needs.iter().any(cannot_be_written)
    {
        prepared.reporting = None;
    }
    if let Some(ReportPlace::Tree(dirs)) =
        prepared.reporting.as_ref().map(|reporting| reporting.place)
    {
        prepared.before = reports_below(cwd, dirs);
    }
    prepared
}

/// Empties the private directory, so that another gate's report is not used.
fn is_ready(dir: &Path) -> bool {
    fs::remove_dir_all(dir).is_ok() && fs::create_dir_all(dir).is_ok()
}

impl PreparedCommand {
    /// Returns the words to run instead of those that were given.
    pub(crate) fn command<'p>(&'p self, inputs: &'p [String]) -> &'p [String] {
        self.reporting
            .as_ref()
            .map_or(inputs, |reporting| &reporting.command)
    }

    /// Returns the private directory, which the command has to be able to write to.
    pub(crate) fn writable(&self) -> Option<PathBuf> {
        self.private.clone()
    }

    /// Adds the runner's variables to the environment.
    pub(crate) fn extend(&self, env: &mut Vec<(OsString, OsString)>) {
        for (name, value) in self.runner.into_iter().flat_map(|runner| runner.env()) {
            if !env.iter().any(|(set, _)| set == OsStr::new(name)) {
                env.push((name.into(), value.into()));
            }
        }
        for (name, value) in self
            .reporting
            .iter()
            .flat_map(|reporting| &reporting.options)
        {
            match env.iter_mut().find(|(set, _)| set == OsStr::new(name)) {
                Some((_, set)) => {
                    set.push(" ");
                    set.push(value);
                }
                None => env.push((name.into(), value.into())),
            }
        }
    }

    /// Removes lines with the report's path from an output, because they vary.
    pub(crate) fn without_report_path(&self, output: Vec<u8>) -> Vec<u8> {
        let place = self.private.as_ref().and_then(|dir| dir.to_str());
        let Some(place) =
            place.filter(|place| output.windows(place.len()).any(|at| at == place.as_bytes()))
        else {
            return output;
        };
        let lines = output.split_inclusive(|byte| *byte == b'\n');
        lines
            .filter(|line| !line.windows(place.len()).any(|at| at == place.as_bytes()))
            .flatten()
            .copied()
            .collect()
    }

    /// Collects the report after the command has ended in `cwd` of the work tree `copy`.
    pub(crate) fn collect(
        &self,
        cwd: &Path,
        copy: &Path,
        stdout: &[u8],
        stdout_extent: Extent,
    ) -> CommandReport {
        let Some(reporting) = &self.reporting else {
            return CommandReport::default();
        };
        let mut collected = CommandReport::default();
        let (bytes, extent) = match reporting.place {
            ReportPlace::Output => (Vec::new(), Extent::Whole),
            ReportPlace::Stdout => {
                let text = String::from_utf8_lossy(stdout);
                let content =
                    runner_by_id(reporting.runner).and_then(|runner| runner.readable_output(&text));
                collected.stdout = content.map(String::into_bytes);
                (stdout.to_vec(), stdout_extent)
            }
            ReportPlace::Files => read_all(&files_in(self.private.as_deref(), &reporting.needs)),
            ReportPlace::Tree(dirs) => {
                let now = reports_below(cwd, dirs);
                let is_new = |(path, state): &(&PathBuf, &_)| self.before.get(*path) != Some(state);
                read_all(
                    &now.iter()
                        .filter(is_new)
                        .map(|(path, _)| path.clone())
                        .collect::<Vec<_>>(),
                )
            }
        };
        let bytes = Scanner::builtin()
            .redact_bytes(&without_directory(&bytes, copy))
            .0;
        collected.report = Some(RunnerReport {
            runner: reporting.runner.to_owned(),
            bytes,
            extent,
        });
        collected
    }
}

/// Returns the report with the copy's path removed from file names.
fn without_directory(bytes: &[u8], copy: &Path) -> Vec<u8> {
    match copy.to_str().filter(|copy| copy.len() > 1) {
        Some(copy) => {
            let text = String::from_utf8_lossy(bytes);
            text.replace(&format!("{copy}/"), "")
                .replace(copy, ".")
                .into_bytes()
        }
        None => bytes.to_vec(),
    }
}

fn files_in(dir: Option<&Path>, needs: &[(&str, String)]) -> Vec<PathBuf> {
    let entries = dir.and_then(|dir| std::fs::read_dir(dir).ok());
    let mut files: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .take(MAX_FILES)
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| !needs.iter().any(|(name, _)| path.ends_with(name)))
        .collect();
    files.sort();
    files
}

/// Reads files one after another. An unreadable or oversized file marks the whole as cut.
fn read_all(files: &[PathBuf]) -> (Vec<u8>, Extent) {
    let mut bytes = Vec::new();
    let mut extent = Extent::Whole;
    for file in files {
        let left = MAX_REPORT.saturating_sub(bytes.len() as u64);
        match read_regular_up_to(file, ByteLimit(left)) {
            Ok(more) => {
                bytes.extend_from_slice(&more);
                bytes.push(b'\n');
            }
            Err(_) => extent = Extent::Cut,
        }
    }
    (bytes, extent)
}

/// Returns the report files below directories of these names, with data that shows changes. Links are not
/// followed.
fn reports_below(top: &Path, dirs: &[&str]) -> BTreeMap<PathBuf, (Option<SystemTime>, u64)> {
    let mut found = BTreeMap::new();
    let mut open = vec![(top.to_owned(), false)];
    let mut listed = 0;
    while let Some((dir, inside)) = open.pop() {
        listed += 1;
        if listed > MAX_FILES {
            break;
        }
        for entry in std::fs::read_dir(&dir)
            .into_iter()
            .flatten()
            .filter_map(Result::ok)
        {
            let (name, Ok(meta)) = (entry.file_name(), entry.metadata()) else {
                continue;
            };
            let name = name.to_string_lossy();
            if meta.is_dir() && !["node_modules", ".git", ".gradle"].contains(&name.as_ref()) {
                open.push((entry.path(), inside || dirs.contains(&name.as_ref())));
            } else if inside
                && meta.is_file()
                && name.starts_with("TEST-")
                && name.ends_with(".xml")
                && found.len() < MAX_FILES
            {
                found.insert(entry.path(), (meta.modified().ok(), meta.len()));
            }
        }
    }
    found
}
