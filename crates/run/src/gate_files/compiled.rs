//! Sources that a gate compiles into a program whose exit code is its verdict. A change to them could
//! influence its own check as well.
//!
//! What a gate compiles is mostly what it judges, so two things have to come together. The gate runs a
//! program that it built by itself, and not for another program to look at what it prints; and the source
//! defines that program's entry point, or asserts and is in nothing else that the makefile builds. Where that
//! would leave no source of the program to change, those that assert as products may, too, are not protected,
//! nor is the only one beside the entry point.
//!
//! What is built and run is read from commands ([`shell`]) along the rules of makefiles ([`graph`]). Nothing
//! is run.
//!
//! Commands can hide what they compile: in a pipe, in a loop, in a file that CMake reads. So a second rule
//! asks for no reading of them: a source of the C family that defines an entry point is a test program,
//! unless a product is known to be built from it. Where nothing tells the products, it has to assert as well,
//! or CMake has to name its program as a test.

mod graph;
mod shell;

use std::collections::{BTreeMap, BTreeSet};

use crucible_model::RepoPath;
use crucible_patch::{Asserts, SourceSigns, defines_assertions, source_signs};

use super::{Mode, file_name, normal};
use graph::{Graph, Run, RunKind, Step};

pub(super) use graph::{CommandText, compilers, is_makefile};
pub(super) use shell::{compiled_by, is_compiler};

/// Endings of sources that are compiled.
const SOURCES: [&str; 17] = [
    "c", "cc", "cpp", "cxx", "c++", "m", "mm", "rs", "go", "java", "s", "f", "f90", "d", "zig",
    "cu", "adb",
];
/// Suffixes of compiled files that are not programs yet.
const OBJECTS: [&str; 8] = ["o", "obj", "lo", "a", "la", "so", "lib", "rlib"];
/// Maximum number of nested included files that are read.
const MAX_INCLUDED: usize = 200;
/// Maximum number of sources that are read to find what includes a file.
const MAX_READ: usize = 2000;

/// The sources and headers of test programs among the tracked files.
pub(super) fn test_sources(
    commands: &[CommandText],
    files: &[CommandText],
    tracked: &[(&str, Mode)],
    read: &mut impl FnMut(&RepoPath) -> Option<Vec<u8>>,
) -> BTreeSet<RepoPath> {
    let tree = SourceTree::from_tracked_files(tracked);
    let graph = Graph::build(commands, files, &tree);
    let mut judge = Judge {
        tree: &tree,
        graph: &graph,
        texts: BTreeMap::new(),
        libraries: BTreeSet::new(),
        read,
    };
    let mut found = if graph.runs.is_empty() {
        BTreeSet::new()
    } else {
        judge.sources()
    };
    // Along makefiles and scripts the products are known, so whatever else starts a program is there to test.
    let least = if files.is_empty() {
        Asserts::Plain
    } else {
        Asserts::No
    };
    if !files.is_empty() || commands.iter().any(builds_by_itself) {
        found.extend(judge.other_programs(least));
    }
    let parts = judge.parts_of(&found);
    found.extend(parts);
    found
}

/// Returns whether a gate's command may compile something that is not parsed here: a shell, a build system, a
/// program of the project.
fn builds_by_itself(command: &CommandText) -> bool {
    const OTHERS: [&str; 12] = [
        "cargo", "go", "npm", "npx", "pnpm", "yarn", "bun", "node", "dotnet", "mvn", "gradle",
        "bundle",
    ];
    let program = command
        .text
        .split_whitespace()
        .map(file_name)
        .next()
        .unwrap_or_default();
    !OTHERS.contains(&program) && !is_compiler(program)
}

/// The words of each call of a command in a `CMakeLists.txt`.
fn calls_of<'t>(text: &'t str, command: &'t str) -> impl Iterator<Item = Vec<&'t str>> {
    let calls = text
        .split(command)
        .skip(1)
        .filter_map(|call| call.trim_start().strip_prefix('('));
    calls.filter_map(|call| Some(call.split(')').next()?.split_whitespace().collect()))
}

/// The tracked sources and headers, by path and by name.
pub(super) struct SourceTree<'t> {
    paths: BTreeSet<&'t str>,
    by_name: BTreeMap<&'t str, Vec<&'t str>>,
}

impl<'t> SourceTree<'t> {
    fn from_tracked_files(tracked: &[(&'t str, Mode)]) -> Self {
        let paths: BTreeSet<&str> = tracked.iter().map(|(path, _)| *path).collect();
        let mut by_name: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        paths
            .iter()
            .for_each(|path| by_name.entry(file_name(path)).or_default().push(path));
        Self { paths, by_name }
    }

    /// Returns the tracked files that a word names from a directory: there, at the top, or any path or name
    /// with this ending.
    fn matching_files(&self, word: &str, directory: &str) -> Vec<&'t str> {
        let word = super::known_part(word);
        if word.contains(super::GLOB) {
            let (start, end) = ends_of(word);
            let below = format!("{directory}/{start}");
            let begins = |path: &str| {
                path.starts_with(start) || !directory.is_empty() && path.starts_with(&below)
            };
            return self
                .paths
                .iter()
                .filter(|path| begins(path) && path.ends_with(end))
                .copied()
                .collect();
        }
        let places = [format!("{directory}/{word}"), word.to_owned()];
        let exact = places
            .iter()
            .filter_map(|place| normal(place.trim_start_matches('/')));
        let exact = exact
            .filter_map(|path| self.paths.get(path.as_str()).copied())
            .next();
        if let Some(path) = exact {
            return vec![path];
        }
        let same = self
            .by_name
            .get(file_name(word))
            .cloned()
            .unwrap_or_default();
        let end = format!(
            "/{}",
            word.trim_start_matches("../").trim_start_matches("./")
        );
        let by_end: Vec<&str> = same
            .iter()
            .filter(|path| path.ends_with(&end))
            .copied()
            .collect();
        if by_end.is_empty() { same } else { by_end }
    }

    fn has(&self, word: &str, directory: &str) -> bool {
        !self.matching_files(word, directory).is_empty()
    }

    /// The sources that an object of this name is compiled from, by its name.
    fn of_object(&self, object: &str, directory: &str) -> Vec<&'t str> {
        let stem = object.rsplit_once('.').map_or(object, |(stem, _)| stem);
        let sources = SOURCES
            .iter()
            .map(|ending| self.matching_files(&format!("{stem}.{ending}"), directory));
        sources.flatten().collect()
    }

    /// The sources of Go in a directory.
    fn of_package(&self, package: &str, directory: &str) -> Vec<&'t str> {
        let place = normal(&format!("{directory}/{package}"))
            .map(|path| format!("{path}/"))
            .unwrap_or_default();
        let is_in = |path: &&&str| {
            let name = path.strip_prefix(place.as_str());
            name.is_some_and(|name| {
                !name.contains('/') && name.ends_with(".go") && !name.ends_with("_test.go")
            })
        };
        self.paths.iter().filter(is_in).copied().collect()
    }
}

/// Returns the literal start and end of a name pattern.
fn ends_of(pattern: &str) -> (&str, &str) {
    let start = pattern
        .split(super::GLOB)
        .next()
        .unwrap_or_default()
        .trim_start_matches("./");
    let end = pattern
        .rsplit(['*', '?', ']', '}'])
        .next()
        .unwrap_or_default();
    (start, end)
}

fn ending(path: &str) -> &str {
    file_name(path)
        .rsplit_once('.')
        .map_or("", |(_, ending)| ending)
}

pub(super) fn is_source(word: &str) -> bool {
    SOURCES.contains(&ending(word).to_ascii_lowercase().as_str())
}

fn is_object(word: &str) -> bool {
    OBJECTS.contains(&ending(word)) || file_name(word).contains(".so.")
}

/// Decides which sources count.
struct Judge<'j, R> {
    tree: &'j SourceTree<'j>,
    graph: &'j Graph,
    /// The parsed files and their signs.
    texts: BTreeMap<RepoPath, (Vec<u8>, SourceSigns)>,
    /// The sources of libraries that CMake builds. A test program may include one as a whole, and tests it by that.
    libraries: BTreeSet<RepoPath>,
    read: &'j mut R,
}

/// A program that the gate builds and runs.
struct TestProgram {
    sources: BTreeSet<RepoPath>,
    /// The sources with the entry point.
    entries: BTreeSet<RepoPath>,
    kind: RunKind,
    /// Whether a makefile goal that tests nothing builds it as well.
    is_built_elsewhere: bool,
}

impl<R: FnMut(&RepoPath) -> Option<Vec<u8>>> Judge<'_, R> {
    fn sources(&mut self) -> BTreeSet<RepoPath> {
        let mut programs = Vec::new();
        let mut is_tested = vec![false; self.graph.steps.len()];
        for (at, step) in self
            .graph
            .steps
            .iter()
            .enumerate()
            .filter(|(_, step)| !step.is_object)
        {
            let runs: Vec<&Run> = self
                .graph
                .runs
                .iter()
                .filter(|run| run.is_of(step))
                .collect();
            if runs.is_empty() {
                continue;
            }
            is_tested[at] = true;
            programs.push(self.program(step, &runs));
        }
        let mut products: BTreeSet<RepoPath> = BTreeSet::new();
        let others = self.graph.steps.iter().zip(&is_tested);
        for (step, _) in
            others.filter(|(step, is_tested)| step.is_elsewhere && !**is_tested && !step.is_object)
        {
            products.extend(self.sources_of(step, &mut BTreeSet::new()));
        }
        let mut found = BTreeSet::new();
        for program in &programs {
            found.extend(self.judged(program, &products));
        }
        found
    }

    /// The sources of the C family with an entry point of which no product is known, and that assert at `least` so clearly.
    fn other_programs(&mut self, least: Asserts) -> BTreeSet<RepoPath> {
        const ENDINGS: [&str; 7] = ["c", "cc", "cpp", "cxx", "c++", "m", "mm"];
        let mut products: BTreeSet<RepoPath> = BTreeSet::new();
        for step in self.graph.steps.iter().filter(|step| step.is_elsewhere) {
            products.extend(self.sources_of(step, &mut BTreeSet::new()));
        }
        let tested = self.tested_by_cmake(&mut products);
        let sources = self
            .tree
            .paths
            .iter()
            .filter(|path| ENDINGS.contains(&ending(path)));
        let candidates: Vec<RepoPath> = sources.filter_map(|path| path.parse().ok()).collect();
        let mut found = BTreeSet::new();
        for path in candidates
            .into_iter()
            .filter(|path| !products.contains(path))
        {
            let Some(text) = (self.read)(&path).filter(|text| holds(text, b"main")) else {
                continue;
            };
            let signs = source_signs(&path, &text);
            if signs.has_main && (signs.asserts >= least || tested.contains(&path)) {
                found.insert(path);
            }
        }
        found
    }

    /// The tables and pieces of code that test programs alone include. A header may be the whole product.
    fn parts_of(&mut self, programs: &BTreeSet<RepoPath>) -> BTreeSet<RepoPath> {
        if programs.is_empty() {
            return BTreeSet::new();
        }
        let is_part = |path: &RepoPath| {
            ["inc", "def", "tbl", "x", "c", "cc", "cpp", "cxx"].contains(&ending(path.as_str()))
        };
        let own: BTreeSet<RepoPath> = self
            .included(programs.iter().cloned().collect())
            .into_iter()
            .filter(|path| is_part(path) && !self.libraries.contains(path))
            .collect();
        if own.is_empty() {
            return own;
        }
        let is_other =
            |path: &&&str| is_source(path) || ["h", "hh", "hpp", "hxx"].contains(&ending(path));
        let others = self
            .tree
            .paths
            .iter()
            .filter(is_other)
            .take(MAX_READ)
            .filter_map(|path| path.parse().ok());
        let others: Vec<RepoPath> = others
            .filter(|path: &RepoPath| !programs.contains(path) && !own.contains(path))
            .collect();
        let shared = self.included(others);
        own.difference(&shared).cloned().collect()
    }

    /// The sources of programs that CMake names as tests. Those of programs that it installs, or names as no test, join the products.
    fn tested_by_cmake(&mut self, products: &mut BTreeSet<RepoPath>) -> BTreeSet<RepoPath> {
        let mut tested = BTreeSet::new();
        let lists: Vec<&str> = self
            .tree
            .paths
            .iter()
            .copied()
            .filter(|path| file_name(path) == "CMakeLists.txt")
            .collect();
        let mut texts: Vec<String> = Vec::new();
        for path in &lists {
            let text = path
                .parse()
                .ok()
                .and_then(|path| (self.read)(&path))
                .unwrap_or_default();
            texts.push(String::from_utf8_lossy(&text).into_owned());
        }
        let named = |command: &str| -> BTreeSet<String> {
            let words = texts
                .iter()
                .flat_map(|text| calls_of(text, command))
                .flatten();
            words.map(str::to_owned).collect()
        };
        let (tests, installed) = (named("add_test"), named("install"));
        let found = named("discover_tests");
        // A computed name may be any.
        let is_unknown = tests.union(&found).any(|word| word.contains("${"));
        for (list, text) in lists.iter().zip(&texts) {
            let directory = list.rsplit_once('/').map_or("", |(directory, _)| directory);
            for words in calls_of(text, "add_library") {
                let sources = words.iter().skip(1);
                let sources = sources.flat_map(|word| self.tree.matching_files(word, directory));
                self.libraries
                    .extend(sources.filter_map(|path| path.parse::<RepoPath>().ok()));
            }
            for words in calls_of(text, "add_executable") {
                let Some((target, sources)) = words.split_first() else {
                    continue;
                };
                let sources = sources
                    .iter()
                    .flat_map(|word| self.tree.matching_files(word, directory));
                let sources = sources.filter_map(|path| path.parse::<RepoPath>().ok());
                let is_test = tests.iter().chain(&found).any(|word| word.contains(target));
                if is_test && !installed.contains(*target) {
                    tested.extend(sources);
                    // Sources by a variable, which a pattern may have filled: any below here.
                    if words.iter().any(|word| word.contains('$')) {
                        let is_below = |path: &&&str| path.starts_with(directory);
                        let below = self.tree.paths.iter().filter(is_below);
                        tested.extend(below.filter_map(|path| path.parse::<RepoPath>().ok()));
                    }
                } else if !is_unknown {
                    products.extend(sources);
                }
            }
        }
        tested
    }

    /// The program that a step builds; of Java those are the classes that are run.
    fn program(&mut self, step: &Step, runs: &[&Run]) -> TestProgram {
        let sources = self.sources_of(step, &mut BTreeSet::new());
        let is_run = |path: &RepoPath| {
            let class = path.file_name().strip_suffix(".java");
            class.is_none_or(|class| {
                runs.iter()
                    .any(|run| run.name.rsplit('.').next() == Some(class))
            })
        };
        let mut entries = BTreeSet::new();
        for path in sources.iter().filter(|path| is_run(path)) {
            if self.signs(path).is_some_and(|signs| signs.has_main) {
                entries.insert(path.clone());
            }
        }
        // What a script does with a program of the project is not followed.
        let kind = |run: &&Run| {
            if run.is_in_script && step.is_elsewhere {
                RunKind::Watched
            } else {
                run.kind
            }
        };
        let kind = runs.iter().map(kind).min().unwrap_or(RunKind::Watched);
        TestProgram {
            sources,
            entries,
            kind,
            is_built_elsewhere: step.is_elsewhere,
        }
    }

    /// The tracked sources that a step's inputs are, or are built from.
    fn sources_of(&self, step: &Step, seen: &mut BTreeSet<String>) -> BTreeSet<RepoPath> {
        let mut found = BTreeSet::new();
        let mut add = |paths: Vec<&str>| {
            let sources = paths.into_iter().filter(|path| is_source(path));
            found.extend(sources.filter_map(|path| path.parse::<RepoPath>().ok()));
        };
        let mut objects = Vec::new();
        for input in &step.inputs {
            if step.is_package && !is_source(input) {
                add(self.tree.of_package(input, &step.directory));
            } else if is_source(input) {
                add(self.tree.matching_files(input, &step.directory));
            } else {
                objects.push(input);
            }
        }
        for object in objects {
            if !seen.insert(object.clone()) {
                continue;
            }
            let steps = || {
                self.graph
                    .steps
                    .iter()
                    .filter(|step| file_name(&step.output) == file_name(object))
            };
            let exact: Vec<&Step> = steps().filter(|step| step.output == *object).collect();
            let steps = if exact.is_empty() {
                steps().collect()
            } else {
                exact
            };
            if steps.is_empty() && is_object(object) {
                let sources = self.tree.of_object(object, &step.directory);
                found.extend(
                    sources
                        .into_iter()
                        .filter_map(|path| path.parse::<RepoPath>().ok()),
                );
            }
            for step in steps {
                found.extend(self.sources_of(step, seen));
            }
        }
        found
    }

    /// Which sources of a test program count.
    fn judged(
        &mut self,
        program: &TestProgram,
        products: &BTreeSet<RepoPath>,
    ) -> BTreeSet<RepoPath> {
        let is_own = program.kind == RunKind::Own;
        let mut found = if is_own {
            program.entries.clone()
        } else {
            BTreeSet::new()
        };
        let shares = program.sources.iter().any(|path| products.contains(path));
        // What the makefile builds as its product and then runs tests itself at most.
        if program.is_built_elsewhere && !shares {
            return found;
        }
        let asserting: Vec<(RepoPath, Asserts)> = program
            .sources
            .iter()
            .filter(|path| !found.contains(*path) && !products.contains(*path))
            .filter_map(|path| Some((path.clone(), self.signs(path)?.asserts)))
            .filter(|(_, asserts)| *asserts > Asserts::No)
            .collect();
        let at_least = |least: Asserts| {
            asserting
                .iter()
                .filter(move |(_, asserts)| *asserts >= least)
                .map(|(path, _)| path.clone())
        };
        let is_whole = |more: &BTreeSet<RepoPath>| {
            program
                .sources
                .iter()
                .all(|path| found.contains(path) || more.contains(path))
        };
        // For a program checked by others, only what cannot be a product.
        let least = if is_own {
            Asserts::Plain
        } else {
            Asserts::Clearly
        };
        let mut more: BTreeSet<RepoPath> = at_least(least).collect();
        if is_whole(&more) {
            more = at_least(Asserts::Clearly).collect();
        }
        let has_entry = !program.entries.is_empty();
        if is_whole(&more) && has_entry && more.len() == 1 && is_own {
            more.clear();
        }
        found.extend(more);
        let others: Vec<RepoPath> = program
            .sources
            .union(products)
            .filter(|path| !found.contains(*path))
            .cloned()
            .collect();
        let shared = self.included(others);
        let own = self.included(found.iter().cloned().collect());
        for path in own.difference(&shared) {
            let defines = |(text, signs): &(Vec<u8>, SourceSigns)| {
                defines_assertions(path, text) || signs.asserts == Asserts::Clearly
            };
            if self.text(path).is_some_and(defines) {
                found.insert(path.clone());
            }
        }
        found
    }

    /// The tracked files that these files include, directly or not.
    fn included(&mut self, files: Vec<RepoPath>) -> BTreeSet<RepoPath> {
        let mut found = BTreeSet::new();
        let mut open = files.clone();
        while let Some(path) = open.pop() {
            let Some((text, _)) = self.text(&path) else {
                continue;
            };
            let text = String::from_utf8_lossy(text).into_owned();
            let directory = path.directory();
            let names = text
                .lines()
                .filter_map(|line| included_by(path.as_str(), line));
            for name in names.flat_map(|name| self.tree.matching_files(&name, directory)) {
                let Ok(path) = name.parse::<RepoPath>() else {
                    continue;
                };
                if found.len() < MAX_INCLUDED
                    && !files.contains(&path)
                    && found.insert(path.clone())
                {
                    open.push(path);
                }
            }
        }
        found
    }

    fn signs(&mut self, path: &RepoPath) -> Option<SourceSigns> {
        self.text(path).map(|(_, signs)| *signs)
    }

    fn text(&mut self, path: &RepoPath) -> Option<&(Vec<u8>, SourceSigns)> {
        if !self.texts.contains_key(path) {
            let text = (self.read)(path)?;
            let signs = source_signs(path, &text);
            self.texts.insert(path.clone(), (text, signs));
        }
        self.texts.get(path)
    }
}

fn holds(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}

/// The file that a line of a source includes: `#include "x.h"`, `mod x;`.
fn included_by(path: &str, line: &str) -> Option<String> {
    let line = line.trim_start();
    if ending(path) == "rs" {
        let name = line
            .strip_prefix("pub ")
            .unwrap_or(line)
            .strip_prefix("mod ")?;
        return Some(format!("{}.rs", name.trim_end().strip_suffix(';')?));
    }
    let rest = line
        .strip_prefix('#')?
        .trim_start()
        .strip_prefix("include")?
        .trim_start();
    Some(rest.strip_prefix('"')?.split('"').next()?.to_owned())
}

#[cfg(test)]
mod tests;
