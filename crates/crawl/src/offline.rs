//! Drafts a plan without a model: the standard steps of each build system, as a table, adapted to the
//! repository's own files (scripts of a `package.json`, targets of a Makefile, a `configure` script).
//!
//! Invariants: an unknown build system gets no steps, and the warnings say that no model was used. The
//! plan is judged by the same safety rules as any other.

use std::collections::BTreeMap;

use crucible_repo::BuildSystem;

use crate::artifact::{Dependencies, PlanStep};
use crate::debate::DebateOutcome;
use crate::inspect::Inspection;

/// Why there is no plan without a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OfflineError {
    /// No build system was recognised, so there are no standard steps.
    #[error(
        "no build system was recognised{}, so there are no standard steps to plan with",
        seen_files_note(files)
    )]
    UnknownBuildSystem {
        /// Build files that were found but are not decisive, such as a `package.json` without a lock
        /// file; may be empty.
        files: Vec<String>,
    },
}

impl OfflineError {
    /// The advice for the user, one sentence.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::UnknownBuildSystem { .. } => {
                "choose a part of the repository that a supported build system builds, with --ref REF:PATH"
            }
        }
    }
}

fn seen_files_note(files: &[String]) -> String {
    if files.is_empty() {
        String::new()
    } else {
        format!(" (seen: {})", files.join(", "))
    }
}

/// The standard steps of the detected build system, with no debate, and a warning that says so.
///
/// # Errors
///
/// [`OfflineError::UnknownBuildSystem`] if none was detected.
pub(crate) fn offline_plan(inspection: &Inspection) -> Result<DebateOutcome, OfflineError> {
    let found = &inspection.artifact.build_system;
    let system = found.name.parse().unwrap_or(BuildSystem::Unknown);
    let view = View(inspection);
    let mut draft = Draft::default();
    match system {
        BuildSystem::Cargo => cargo(&mut draft),
        BuildSystem::Go => go(&mut draft),
        BuildSystem::NodeNpm => node(&mut draft, &view, "npm", "npm ci"),
        BuildSystem::NodeYarn => node(&mut draft, &view, "yarn", "yarn install --frozen-lockfile"),
        BuildSystem::NodePnpm => node(&mut draft, &view, "pnpm", "pnpm install --frozen-lockfile"),
        BuildSystem::PythonPip => python_pip(&mut draft, &view),
        BuildSystem::PythonPoetry => python_poetry(&mut draft, &view),
        BuildSystem::PythonSetuptools => python_setuptools(&mut draft, &view),
        BuildSystem::Cmake => cmake(&mut draft, &view),
        BuildSystem::Meson => meson(&mut draft),
        BuildSystem::Autotools => autotools(&mut draft, &view),
        BuildSystem::Make => make(&mut draft, &view),
        BuildSystem::Unknown => {
            return Err(OfflineError::UnknownBuildSystem {
                files: found.detected_files.clone(),
            });
        }
    }
    Ok(draft.settle(system, &inspection.build_dir))
}

fn cargo(draft: &mut Draft) {
    draft.needs(
        &["cargo", "rustc"],
        "cargo builds the workspace; crates with native code may need a C compiler.",
    );
    draft.step(
        "build",
        "cargo build --release",
        "Builds every default member, optimised.",
    );
    draft.step(
        "test",
        "cargo test",
        "Runs the tests of the default members.",
    );
}

fn go(draft: &mut Draft) {
    draft.needs(
        &["go"],
        "go builds the module; cgo packages need a C compiler.",
    );
    draft.step(
        "download",
        "go mod download",
        "Gets the modules that go.sum names.",
    );
    draft.step(
        "build",
        "go build ./...",
        "Builds every package of the module.",
    );
    draft.step("test", "go test ./...", "Runs the tests of every package.");
}

fn node(draft: &mut Draft, view: &View<'_>, manager: &'static str, install: &'static str) {
    draft.needs(
        &["node", manager],
        "The lock file decides about the versions that are installed.",
    );
    draft.step(
        "install",
        install,
        "Installs exactly what the lock file names.",
    );
    if view.has_script("build") {
        draft.step(
            "build",
            &format!("{manager} run build"),
            "Runs the package's own build script.",
        );
    } else {
        draft.warn(
            "package.json has no script named build, so the plan installs dependencies and builds nothing.",
        );
    }
    if view.has_script("test") {
        draft.step(
            "test",
            &format!("{manager} run test"),
            "Runs the package's own test script.",
        );
    }
}

fn python_pip(draft: &mut Draft, view: &View<'_>) {
    draft.needs(
        &["pip", "python3"],
        "pip installs into the environment that is active.",
    );
    let has_list = view.has_file("requirements.txt");
    if has_list {
        draft.step(
            "install-requirements",
            "pip install -r requirements.txt",
            "Installs what the file names.",
        );
    }
    if view.has_file("setup.py") || !has_list {
        draft.step(
            "install",
            "pip install .",
            "Builds and installs the package.",
        );
    }
    draft.warn(ACTIVE_ENVIRONMENT);
    pytest(draft, view, "pytest");
}

fn python_poetry(draft: &mut Draft, view: &View<'_>) {
    draft.needs(
        &["poetry", "python3"],
        "poetry keeps an environment of its own.",
    );
    draft.step(
        "install",
        "poetry install",
        "Installs what the lock file names, and the package itself.",
    );
    draft.step(
        "build",
        "poetry build",
        "Makes the source archive and the wheel in dist.",
    );
    pytest(draft, view, "poetry run pytest");
}

fn python_setuptools(draft: &mut Draft, view: &View<'_>) {
    draft.needs(
        &["pip", "python3"],
        "`python3 -m build` is the package named build.",
    );
    draft.step(
        "build",
        "python3 -m build",
        "Makes the source archive and the wheel in dist.",
    );
    draft.step(
        "install",
        "pip install .",
        "Installs the package into the active environment.",
    );
    draft.warn(ACTIVE_ENVIRONMENT);
    pytest(draft, view, "pytest");
}

fn cmake(draft: &mut Draft, view: &View<'_>) {
    draft.needs(
        &["cc", "cmake", "make"],
        "A compiler for the project's languages; cmake's usual generator is make.",
    );
    draft.step(
        "configure",
        "cmake -S . -B build",
        "Configures a build beside the sources.",
    );
    draft.step(
        "build",
        "cmake --build build",
        "Builds every default target.",
    );
    if view
        .build_file("CMakeLists.txt")
        .is_some_and(|text| mentions(text, "enable_testing") || mentions(text, "CTest"))
    {
        draft.step(
            "test",
            "ctest --test-dir build",
            "Runs the tests that CMakeLists.txt registers.",
        );
    }
}

fn meson(draft: &mut Draft) {
    draft.needs(
        &["cc", "meson", "ninja"],
        "A compiler for the project's languages; meson drives ninja.",
    );
    draft.step(
        "configure",
        "meson setup build",
        "Configures a build beside the sources.",
    );
    draft.step(
        "build",
        "meson compile -C build",
        "Builds every default target.",
    );
    draft.step(
        "test",
        "meson test -C build",
        "Runs the tests, if there are any.",
    );
}

fn autotools(draft: &mut Draft, view: &View<'_>) {
    draft.needs(&["cc", "make"], "A compiler for the project's languages.");
    if !view.has_file("configure") {
        draft.needs(
            &["autoconf", "automake"],
            "autoconf and automake write the configure script.",
        );
        draft.step(
            "generate",
            "autoreconf --install",
            "Writes the configure script.",
        );
    }
    draft.step(
        "configure",
        "./configure",
        "Looks at the machine and writes the Makefiles.",
    );
    draft.step("build", "make -j4", "Builds every default target.");
    draft.step("test", "make check", "Runs the tests, if there are any.");
}

fn make(draft: &mut Draft, view: &View<'_>) {
    draft.needs(
        &["make"],
        "What the Makefile calls is needed, too; it was not looked at.",
    );
    draft.step("build", "make", "Makes the first target of the Makefile.");
    let makefile = view
        .build_file("GNUmakefile")
        .or_else(|| view.build_file("Makefile"))
        .unwrap_or_default();
    if let Some(target) = ["check", "test"]
        .into_iter()
        .find(|target| has_target(makefile, target))
    {
        draft.step(
            "test",
            &format!("make {target}"),
            "Runs the tests that the Makefile knows.",
        );
    }
}

fn pytest(draft: &mut Draft, view: &View<'_>, command: &'static str) {
    if view.mentions("pytest") {
        draft.needs(&["pytest"], "The repository's build files name pytest.");
        draft.step(
            "test",
            command,
            "Runs the tests with pytest, which the build files name.",
        );
    }
}

const ACTIVE_ENVIRONMENT: &str =
    "pip installs into the environment that is active: use a virtual environment made for this.";

/// The repository's files, as far as the steps depend on them.
struct View<'a>(&'a Inspection);

impl View<'_> {
    /// The path, relative to the top level, of a file in the build system's directory.
    fn path(&self, name: &str) -> String {
        let dir = &self.0.build_dir;
        if dir == "." {
            name.to_owned()
        } else {
            format!("{dir}/{name}")
        }
    }

    /// The beginning of a build file.
    fn build_file(&self, name: &str) -> Option<&str> {
        let path = self.path(name);
        let file = self.0.build_files.iter().find(|file| file.path == path)?;
        Some(file.content.as_str())
    }

    /// Whether a file exists; one beyond the end of the listing is missed.
    fn has_file(&self, name: &str) -> bool {
        let path = self.path(name);
        let artifact = &self.0.artifact;
        artifact.build_system.detected_files.contains(&path)
            || self.build_file(name).is_some()
            || artifact.key_files.iter().any(|file| file.path == path)
            || artifact.file_tree_summary.lines().any(|line| line == path)
    }

    /// Whether the package has a script with this name; the placeholder test of `npm init` does not
    /// count.
    fn has_script(&self, name: &str) -> bool {
        let is_placeholder = || {
            name == "test"
                && self
                    .build_file("package.json")
                    .is_some_and(|it| it.contains("no test specified"))
        };
        self.0.scripts.contains(name) && !is_placeholder()
    }

    /// Whether a build file there mentions a program.
    fn mentions(&self, word: &str) -> bool {
        let within = self.path("");
        self.0
            .build_files
            .iter()
            .any(|file| file.path.starts_with(&within) && mentions(file.content.as_str(), word))
    }
}

/// Whether a text contains a whole word.
fn mentions(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .any(|it| it == word)
}

/// Whether a Makefile defines a target: a line that begins with it and a colon that is not part of an
/// assignment.
fn has_target(makefile: &str, target: &str) -> bool {
    let rest = |line: &str| {
        line.strip_prefix(target)
            .map(|rest| rest.trim_start().to_owned())
    };
    makefile
        .lines()
        .filter_map(rest)
        .any(|rest| rest.starts_with(':') && !rest.starts_with(":=") && !rest.starts_with("::="))
}

/// A list of steps under construction.
#[derive(Default)]
struct Draft {
    tools: Vec<&'static str>,
    notes: Vec<&'static str>,
    steps: Vec<(&'static str, String, &'static str)>,
    warnings: Vec<&'static str>,
}

impl Draft {
    fn needs(&mut self, tools: &[&'static str], note: &'static str) {
        self.tools.extend(tools);
        self.notes.push(note);
    }

    fn step(&mut self, name: &'static str, cmd: &str, note: &'static str) {
        self.steps.push((name, cmd.to_owned(), note));
    }

    fn warn(&mut self, warning: &'static str) {
        self.warnings.push(warning);
    }

    fn settle(mut self, system: BuildSystem, cwd: &str) -> DebateOutcome {
        self.tools.sort_unstable();
        self.tools.dedup();
        let mut warnings = vec![format!(
            "No model was asked: these are the standard steps of {system}, and this repository may need others."
        )];
        warnings.extend(self.warnings.into_iter().map(str::to_owned));
        let steps = self.steps.into_iter().map(|(name, cmd, note)| PlanStep {
            name: name.to_owned(),
            cmd,
            cwd: cwd.to_owned(),
            env: BTreeMap::new(),
            note: note.to_owned(),
        });
        DebateOutcome {
            dependencies: Dependencies {
                tools: self.tools.into_iter().map(str::to_owned).collect(),
                notes: self.notes.join(" "),
            },
            steps: steps.collect(),
            warnings,
            ..DebateOutcome::default()
        }
    }
}

#[cfg(test)]
mod tests;
