//! Judges whether the commands of a plan may run: a pure function.
//!
//! Three layers check each step, and each may only refuse more than the one before:
//!
//! 1. `seed`: the tables of the specification, compared as texts.
//! 2. `words`, `paths`, `environment`: a command is plain words separated by single spaces, which every shell splits alike.
//!    Its first words are an allowed prefix, paths stay inside, and variables come from a short list.
//! 3. `programs`: each program's subcommands, options and values, from a table; anything else is refused. `forms` lists the
//!    same table for the prompts of a debate.
//!
//! Invariants: only the arguments are used. Time is linear in the size of the plan, and the number of findings is bounded. No
//! plan causes a panic.

mod command_line;
mod environment;
mod finding;
mod forms;
mod grammar;
mod judge;
mod parsed_lines;
mod paths;
mod programs;
mod seed;
mod words;
mod workspace;

use std::collections::BTreeSet;
use std::path::{Component, Path};

use crucible_model::{Finding, Level, Verdict, is_hidden, short_line};
use crucible_repo::BuildSystem;

use crate::artifact::{PlanStep, PlanV1};
use finding::{FindingSink, StepLabel};
use paths::{Access, Links, StepDirectory};

pub(crate) use forms::{accepted_forms, accepted_variables};
pub use judge::judge_plan;
pub use seed::allowed_prefixes;
pub use workspace::Workspace;

pub(crate) use command_line::CommandLine;
pub(crate) use parsed_lines::command_lines;

/// More steps than this give a warning.
const MANY_STEPS: usize = 10;
/// More steps than this are not judged one by one.
const MAX_STEPS: usize = 4096;
/// A command with more characters than this gives a warning.
const LONG_COMMAND: usize = 500;
/// A detection with a lower confidence gives a warning.
const MIN_CONFIDENCE: f64 = 0.80;

/// The verdict of the rules on a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanSafety {
    /// Every finding.
    pub verdict: Verdict,
}

impl PlanSafety {
    /// Whether no finding rejects the plan.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.verdict.passes()
    }

    /// The findings that reject it, one sentence each.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        self.sentences(Level::Error)
    }

    /// The warnings, one sentence each.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.sentences(Level::Warning)
    }

    fn sentences(&self, level: Level) -> Vec<String> {
        let of_level = self
            .verdict
            .findings()
            .iter()
            .filter(|finding| finding.level == level);
        of_level
            .map(|finding| format!("{}: {} ({})", finding.subject, finding.hint, finding.code))
            .collect()
    }
}

/// Judges a plan. Pure: it uses only its arguments.
///
/// The build system is the one that the plan names; a caller that did not create the plan must compare it
/// with the repository.
#[must_use]
pub fn validate_plan_safety(plan: &PlanV1, workspace: &Workspace) -> PlanSafety {
    let mut findings = Vec::new();
    let system = judge_build_system_and_step_count(plan, &mut findings);
    if plan.steps.len() > MAX_STEPS {
        let count = format!("{} steps", plan.steps.len());
        let hint = format!("the limit is {MAX_STEPS} steps; no step was judged; shorten the plan");
        findings.push(Finding::error(finding::STEPS_TOO_MANY, count, hint));
        return PlanSafety {
            verdict: Verdict::new(findings),
        };
    }
    let links = Links::from_workspace(workspace);
    let created = plan.steps.iter().flat_map(|step| {
        let directories = programs::environments(&step.cmd).into_iter();
        directories.map(|directory| format!("{}/{directory}", step.cwd))
    });
    let links_with_environments = links.with_environments(created);
    // The directories where an earlier step installs everything that package.json declares.
    let mut installed = BTreeSet::new();
    for (index, step) in plan.steps.iter().enumerate() {
        let label = StepLabel {
            number: index + 1,
            name: &step.name,
        };
        let mut sink = FindingSink::new(label, &mut findings);
        let directory = paths::normal(&step.cwd);
        let declared_entry = workspace
            .declared
            .iter()
            .find(|(declared, _)| paths::normal(declared) == directory);
        let packages = declared_entry
            .map(|(_, packages)| packages)
            .filter(|_| installed.contains(&directory));
        let links = if programs::environments(&step.cmd).is_empty() {
            &links_with_environments
        } else {
            &links
        };
        judge_step(step, system, workspace, links, packages, &mut sink);
        sink.close();
        let is_production = step
            .env
            .get("NODE_ENV")
            .is_some_and(|value| value == "production");
        if programs::installs_all(&step.cmd) && !is_production {
            installed.insert(directory);
        } else if programs::installs_by_npm(&step.cmd) {
            // A partial install removes other packages, in a location that is not tracked.
            installed.clear();
        }
    }
    PlanSafety {
        verdict: Verdict::new(findings),
    }
}

/// Judges everything except the steps; returns the build system whose commands are allowed.
fn judge_build_system_and_step_count(
    plan: &PlanV1,
    findings: &mut Vec<Finding>,
) -> Option<BuildSystem> {
    let name = short_line(&plan.detected.build_system, 60);
    let system = plan.detected.build_system.parse().ok();
    match system {
        None => findings.push(Finding::error(
            finding::SYSTEM_INVALID,
            &name,
            format!("use one of these build systems: {}", BuildSystem::ALL.map(BuildSystem::as_str).join(", ")),
        )),
        Some(BuildSystem::Unknown) => findings.push(Finding::warning(
            finding::SYSTEM_UNKNOWN,
            &name,
            "no build system was detected, so the plan can do little; name the build system of the repository",
        )),
        Some(_) => {}
    }
    // Written so that NaN also gives a warning.
    let is_sure = plan.detected.confidence >= MIN_CONFIDENCE;
    if !is_sure {
        findings.push(Finding::warning(
            finding::CONFIDENCE_LOW,
            format!("{name}, {:.2}", plan.detected.confidence),
            "the confidence of the build system detection is below 0.80; check that it is correct",
        ));
    }
    if plan.steps.is_empty() {
        findings.push(Finding::error(
            finding::STEPS_MISSING,
            "steps",
            "the plan has no steps; add at least one",
        ));
    }
    if plan.steps.len() > MANY_STEPS {
        let count = format!("{} steps", plan.steps.len());
        let hint = "more than 10 steps are unusual; read each one before you run it";
        findings.push(Finding::warning(finding::STEPS_MANY, count, hint));
    }
    system
}

fn judge_step(
    step: &PlanStep,
    system: Option<BuildSystem>,
    workspace: &Workspace,
    links: &Links,
    packages: Option<&BTreeSet<String>>,
    sink: &mut FindingSink<'_>,
) {
    for (what, text) in [("name", &step.name), ("note", &step.note)] {
        if text
            .chars()
            .any(|c| is_hidden(c) && !(what == "note" && matches!(c, '\n' | '\t')))
        {
            let hint = format!("the {what} contains invisible characters; write it in plain text");
            sink.refuse(finding::TEXT_HIDDEN, text, hint);
        }
    }
    let in_cwd = judge_cwd(&step.cwd, workspace, links, sink);
    for (key, value) in &step.env {
        if sink.is_full() {
            return;
        }
        environment::judge(key, value, sink);
    }
    judge_command(
        &step.cmd,
        system,
        if in_cwd {
            StepDirectory::new(links, &step.cwd).with_installed(packages)
        } else {
            StepDirectory::top(links)
        },
        sink,
    );
}

/// Checks that the working directory is in the workspace.
fn judge_cwd(cwd: &str, workspace: &Workspace, links: &Links, sink: &mut FindingSink<'_>) -> bool {
    match StepDirectory::top(links).check(cwd, Access::Read) {
        Err(refusal) => {
            sink.refuse(
                finding::CWD_REFUSED,
                cwd,
                format!("cwd must be a directory of the workspace: {}", refusal.hint),
            );
            false
        }
        Ok(()) if !stays_inside(&workspace.root, cwd) => {
            sink.refuse(
                finding::CWD_REFUSED,
                cwd,
                "cwd leads out of the workspace; write `.` or a directory in it",
            );
            false
        }
        Ok(()) => true,
    }
}

fn stays_inside(root: &Path, cwd: &str) -> bool {
    let has_only_names = Path::new(cwd)
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    has_only_names && root.join(cwd).starts_with(root)
}

fn judge_command(
    command: &str,
    system: Option<BuildSystem>,
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    for token in seed::prohibited_tokens(command) {
        sink.refuse(finding::TOKEN_PROHIBITED, token, seed::rephrase_hint(token));
    }
    if command.len() > words::MAX_COMMAND_LEN {
        words::refuse_too_long(command, sink);
        return;
    }
    if command.chars().nth(LONG_COMMAND).is_some() {
        let hint = "more than 500 characters are unusual for a command; read it before you run it";
        sink.warn(finding::COMMAND_LONG, command, hint);
    }
    warn_of_path_options(command, sink);
    let words = words::words(command, sink);
    for word in command.split_whitespace() {
        if sink.is_full() {
            return;
        }
        if let Err(refusal) = paths::check_word(word) {
            sink.refuse(refusal.code, word, refusal.hint);
        }
    }
    let Some(system) = system else { return };
    let has_prefix = seed::has_allowed_prefix(command, system);
    let prefixes = allowed_prefixes(system);
    let begins_with_prefix = |words: &Vec<&str>| {
        prefixes
            .iter()
            .any(|prefix| words::begin_with(words, prefix))
    };
    if !has_prefix
        || words
            .as_ref()
            .is_some_and(|words| !begins_with_prefix(words))
    {
        let allowed = prefixes
            .iter()
            .map(|prefix| prefix.trim_end())
            .collect::<Vec<_>>()
            .join(", ");
        let hint = match variable_of(command) {
            Some((name, value)) if environment::is_allowed(name) => format!(
                "put the variable into the step's `env`: {}; begin the command with one of: {allowed}",
                environment::entry(name, value)
            ),
            Some((name, _)) => format!(
                "{name} is not one of the harmless variables (docs/codes/build.md), so leave it out; the command begins with one of: \
                 {allowed}"
            ),
            None => format!("begin a command of {system} with one of: {allowed}"),
        };
        sink.refuse(finding::COMMAND_NOT_ALLOWED, command, hint);
    } else if let Some(words) = words {
        programs::judge(&words, place, sink);
    }
}

/// The variable that a command sets before its program, in shell syntax.
fn variable_of(command: &str) -> Option<(&str, &str)> {
    let (name, value) = command.split(' ').next()?.split_once('=')?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_plain = |byte: u8| is_name(byte) || b"-.+".contains(&byte);
    (!name.is_empty() && name.bytes().all(is_name) && value.bytes().all(is_plain))
        .then_some((name, value))
}

/// Options that set an install location.
const PLACE_OPTIONS: &[&str] = &[
    "prefix",
    "exec-prefix",
    "destdir",
    "install-prefix",
    "cmake_install_prefix",
    "dcmake_install_prefix",
    "dprefix",
];

fn warn_of_path_options(command: &str, sink: &mut FindingSink<'_>) {
    let lower = command.to_ascii_lowercase();
    if !lower.contains("prefix") && !lower.contains("destdir") {
        return;
    }
    // These two require an absolute path, which a plan may not contain.
    let is_absolute_wanted = lower.starts_with("./configure") || lower.starts_with("meson setup");
    let hint = if is_absolute_wanted {
        "this sets the install location, which cannot be relative here; omit it, and write \
         `make install DESTDIR=stage` or `meson install --destdir stage` later"
    } else {
        "this sets the install location; make sure that it is inside the workspace"
    };
    for (word, lower) in command.split_whitespace().zip(lower.split_whitespace()) {
        let option = lower.split('=').next().unwrap_or(lower);
        // A cmake entry may include its type: `-DCMAKE_INSTALL_PREFIX:PATH=out`.
        let name = option
            .split(':')
            .next()
            .unwrap_or(option)
            .trim_start_matches('-');
        let is_option = lower.starts_with('-') || lower.contains('=');
        let is_named = is_option && PLACE_OPTIONS.contains(&name);
        if is_named || lower.contains("--prefix=") || lower.contains("--destdir=") {
            sink.warn(finding::PATH_OPTION, word, hint);
        }
    }
}
