//! What a gate builds and runs: its commands, followed through makefile rules and scripts.
//!
//! The goals of the gate are followed first, then every other goal of the makefiles, to see what is also
//! built for purposes other than tests. A target is followed once in each pass; nothing recurses.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crucible_verify::Makefile;

use super::super::{GLOB, INTERPRETERS, QUIET, file_name};
use super::shell::{Compilation, JAVA, OutputUse, commands, compilation, from_program, java_class};
use super::{SourceTree, ends_of, is_object, is_source};

/// Programs that examine the output of another one.
const COMPARERS: [&str; 12] = [
    "[", "[[", "awk", "cmp", "comm", "diff", "egrep", "fgrep", "grep", "sed", "sort", "test",
];
/// Programs that do something to a file and do not run it.
const TOOLS: [&str; 24] = [
    "cat", "cd", "chmod", "cp", "dirname", "file", "git", "install", "ldd", "ln", "ls", "mkdir",
    "mv", "nm", "objcopy", "objdump", "ranlib", "rm", "rmdir", "size", "strip", "tar", "touch",
    "true",
];
/// Variables that name a compiler, and a name by which it is known. A makefile may call it anything, as `winegcc` for one platform.
const COMPILERS: [(&str, &str); 5] = [
    ("AR", "ar"),
    ("CC", "cc"),
    ("CPP", "cc"),
    ("CXX", "c++"),
    ("LD", "ld"),
];
/// Maximum number of commands and targets that are followed.
const MAX_STEPS: usize = 20_000;
/// The longest name of a target that is followed, in bytes.
const MAX_TARGET: usize = 512;
/// Maximum nesting of `sh -c` that is parsed.
const MAX_NESTED: usize = 4;

/// A text of commands that is followed.
pub(in super::super) struct CommandText {
    /// The file's path; empty for the gate's own command.
    pub(in super::super) path: String,
    /// The directory that names start from.
    pub(in super::super) directory: String,
    pub(in super::super) text: String,
    /// Whether make reads it.
    pub(in super::super) is_makefile: bool,
}

/// What a gate builds and runs.
#[derive(Default)]
pub(super) struct Graph {
    pub(super) steps: Vec<Step>,
    pub(super) runs: Vec<Run>,
}

/// A command that builds something, or make's built-in rule without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) inputs: Vec<String>,
    pub(super) output: String,
    pub(super) directory: String,
    pub(super) is_object: bool,
    pub(super) is_package: bool,
    /// Whether a goal that tests nothing reaches it.
    pub(super) is_elsewhere: bool,
}

/// What the exit of a program decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RunKind {
    /// Its exit code is the verdict.
    Own,
    /// Another program examines its output.
    Watched,
}

/// A program that the gate runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    /// Its name or a pattern for it; of Java the class.
    pub(super) name: String,
    pub(super) kind: RunKind,
    pub(super) is_in_script: bool,
    /// The file that its output is written to.
    file: Option<String>,
    is_class: bool,
}

impl Run {
    /// Returns whether this runs what a step builds.
    pub(super) fn is_of(&self, step: &Step) -> bool {
        if self.is_class || step.output == JAVA {
            return self.is_class && step.output == JAVA;
        }
        let (name, output) = (file_name(&self.name), file_name(&step.output));
        if name.contains('$') || name.contains(GLOB) {
            let (start, end) = ends_of(name);
            let (start, end) = match name.find('$') {
                Some(at) => (name.get(..at).unwrap_or_default(), ""),
                None => (start, end),
            };
            return output.starts_with(start) && output.ends_with(end);
        }
        name == output || self.name == step.output
    }
}

/// A rule with its variables expanded.
struct KnownRule {
    rule: crucible_verify::MakeRule,
    directory: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Pass {
    Gate,
    Others,
}

struct Follower<'f> {
    graph: Graph,
    made: Makefile,
    rules: Vec<KnownRule>,
    /// Which rules make a target by its name.
    by_target: BTreeMap<String, Vec<usize>>,
    patterns: Vec<usize>,
    scripts: Vec<&'f CommandText>,
    tree: &'f SourceTree<'f>,
    pass: Pass,
    /// The goals that the gate names.
    goals: BTreeSet<String>,
    targets: VecDeque<String>,
    visited: BTreeSet<String>,
    open_scripts: VecDeque<usize>,
    read_scripts: BTreeSet<usize>,
    is_in_script: bool,
    /// What programs that compare are given.
    compared: BTreeSet<String>,
    /// What the loops of a line go through.
    loops: BTreeMap<String, Vec<String>>,
    left: usize,
}

impl Graph {
    /// Follows the gates' commands through these files.
    pub(super) fn build(
        gates: &[CommandText],
        files: &[CommandText],
        tree: &SourceTree<'_>,
    ) -> Self {
        let (makefiles, scripts): (Vec<&CommandText>, Vec<&CommandText>) =
            files.iter().partition(|file| file.is_makefile);
        let makefile = Makefile::read(makefiles.iter().map(|file| file.text.as_str()));
        let mut follower = Follower {
            graph: Self::default(),
            made: makefile,
            rules: Vec::new(),
            by_target: BTreeMap::new(),
            patterns: Vec::new(),
            scripts,
            tree,
            pass: Pass::Gate,
            goals: BTreeSet::new(),
            targets: VecDeque::new(),
            visited: BTreeSet::new(),
            open_scripts: VecDeque::new(),
            read_scripts: BTreeSet::new(),
            is_in_script: false,
            compared: BTreeSet::new(),
            loops: BTreeMap::new(),
            left: MAX_STEPS,
        };
        makefiles.iter().for_each(|file| follower.know(file));
        for gate in gates {
            follower.text(&gate.text, &gate.directory, MAX_NESTED);
        }
        follower.work();
        follower.visit_others();
        let Follower {
            mut graph,
            compared,
            ..
        } = follower;
        for run in &mut graph.runs {
            let is_compared = |file: &String| compared.contains(file_name(file));
            if run.file.as_ref().is_some_and(is_compared) {
                run.kind = RunKind::Watched;
            }
        }
        graph
    }
}

/// Whether a file of this path is read by make.
pub(in super::super) fn is_makefile(path: &str) -> bool {
    let name = file_name(path);
    name.to_ascii_lowercase().starts_with("makefile")
        || name.starts_with("GNUmakefile")
        || ["mk", "mak", "make", "inc"].contains(&super::ending(name))
}

impl Follower<'_> {
    /// Takes the rules of a makefile in.
    fn know(&mut self, file: &CommandText) {
        let words = |list: &[String]| -> Vec<String> {
            let text = list
                .iter()
                .map(|word| self.made.expand(word))
                .collect::<Vec<_>>()
                .join(" ");
            text.split_whitespace().map(str::to_owned).collect()
        };
        let own = Makefile::read([file.text.as_str()]);
        let known: Vec<KnownRule> = own
            .rules()
            .iter()
            .map(|rule| KnownRule {
                rule: crucible_verify::MakeRule {
                    targets: words(&rule.targets),
                    needs: words(&rule.needs),
                    recipe: rule.recipe.clone(),
                },
                directory: file.directory.clone(),
            })
            .collect();
        for known in known {
            let at = self.rules.len();
            for target in &known.rule.targets {
                if target.contains('%') {
                    self.patterns.push(at);
                } else {
                    self.by_target
                        .entry(plain(target).to_owned())
                        .or_default()
                        .push(at);
                }
            }
            self.rules.push(known);
        }
    }

    fn work(&mut self) {
        loop {
            if let Some(target) = self.targets.pop_front() {
                // Patterns can generate unlimited names from each other.
                self.left = self.left.saturating_sub(1);
                if self.left > 0
                    && target.len() <= MAX_TARGET
                    && self.visited.insert(target.clone())
                {
                    self.target(&target);
                }
            } else if let Some(at) = self.open_scripts.pop_front() {
                if self.read_scripts.insert(at)
                    && let Some(script) = self.scripts.get(at).copied()
                {
                    self.is_in_script = true;
                    self.text(&script.text, &script.directory, MAX_NESTED);
                    self.is_in_script = false;
                }
            } else {
                return;
            }
        }
    }

    /// Follows every goal that the gate does not reach and that reaches no goal of the gate.
    fn visit_others(&mut self) {
        let mut above: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for known in &self.rules {
            for need in &known.rule.needs {
                above
                    .entry(plain(need))
                    .or_default()
                    .extend(known.rule.targets.iter().map(|name| plain(name)));
            }
        }
        let mut tests: BTreeSet<&str> = BTreeSet::new();
        let mut open: Vec<&str> = self.goals.iter().map(String::as_str).collect();
        while let Some(goal) = open.pop() {
            if tests.insert(goal) {
                open.extend(above.get(goal).into_iter().flatten().copied());
            }
        }
        let is_other = |name: &&String| {
            !self.visited.contains(*name)
                && !tests.contains(name.as_str())
                && !name.starts_with('.')
        };
        let others: Vec<String> = self.by_target.keys().filter(is_other).cloned().collect();
        self.pass = Pass::Others;
        self.visited.clear();
        self.targets.extend(others);
        self.work();
    }

    /// Follows one target: its recipes and prerequisites.
    fn target(&mut self, target: &str) {
        let stem = |at: &usize| {
            self.rules
                .get(*at)
                .and_then(|known| known.rule.stem(target))
                .map(str::to_owned)
        };
        let explicit = self.by_target.get(target).cloned().unwrap_or_default();
        let has_recipe = |at: &usize| {
            self.rules
                .get(*at)
                .is_some_and(|known| !known.rule.recipe.is_empty())
        };
        let is_file = is_source(target) || self.tree.paths.contains(target);
        let mut rules: Vec<(usize, String)> =
            explicit.iter().map(|at| (*at, String::new())).collect();
        if !explicit.iter().any(has_recipe) && !is_file {
            rules.extend(self.patterns.iter().filter_map(|at| Some((*at, stem(at)?))));
        }
        let mut has_command = false;
        let mut inputs = Vec::new();
        let mut directory = String::new();
        for (at, stem) in rules {
            let Some(known) = self.rules.get(at) else {
                continue;
            };
            let own = if stem.is_empty() {
                known.rule.stem(target).unwrap_or_default()
            } else {
                &stem
            };
            let needs: Vec<String> = known
                .rule
                .needs
                .iter()
                .map(|need| need.replace('%', own))
                .collect();
            // A pattern whose source is missing belongs to another file.
            let is_there = |need: &String| {
                !is_source(need) || self.tree.has(need, &known.directory) || need.contains(GLOB)
            };
            if !stem.is_empty() && !needs.iter().all(is_there) {
                continue;
            }
            let own = own.to_owned();
            directory.clone_from(&known.directory);
            let recipe = known.rule.recipe.clone();
            let first = needs.first().cloned().unwrap_or_default();
            let all = self.needs_of(&explicit, &needs).join(" ");
            for line in &recipe {
                has_command = true;
                let mut automatic = compilers(&self.made, |path| self.tree.paths.contains(path));
                automatic.extend([
                    ("@", target),
                    ("<", first.as_str()),
                    ("^", &all),
                    ("+", &all),
                    ("?", &all),
                    ("*", &own),
                ]);
                let line = self.made.expand_with(line, &automatic);
                self.text(&line, &directory.clone(), MAX_NESTED);
            }
            inputs.extend(
                needs
                    .iter()
                    .filter(|need| is_source(need) || is_object(need))
                    .cloned(),
            );
            self.targets
                .extend(needs.iter().map(|need| plain(need).to_owned()));
        }
        if has_command || is_file {
            return;
        }
        // What make does without a recipe.
        if is_object(target) {
            inputs.retain(|input| is_source(input));
        } else if explicit.is_empty() {
            let sources = self.tree.of_object(&format!("{target}.o"), &directory);
            inputs.extend(
                sources
                    .first()
                    .map(|path| (*path).to_owned())
                    .filter(|_| !target.contains('.')),
            );
        } else if !inputs.is_empty() {
            inputs.push(format!("{target}.o"));
        }
        if !inputs.is_empty() {
            let is_object = is_object(target);
            let output = target.to_owned();
            self.step(
                Compilation {
                    inputs,
                    output,
                    is_object,
                    is_package: false,
                    is_run: false,
                },
                &directory,
            );
        }
    }

    /// What a target needs by all rules that name it.
    fn needs_of(&self, explicit: &[usize], own: &[String]) -> Vec<String> {
        let mut all = own.to_vec();
        for need in explicit
            .iter()
            .filter_map(|at| self.rules.get(*at))
            .flat_map(|known| &known.rule.needs)
        {
            if !all.contains(need) && !need.contains('%') {
                all.push(need.clone());
            }
        }
        all
    }

    fn step(&mut self, compilation: Compilation, directory: &str) {
        let step = Step {
            inputs: compilation.inputs,
            output: plain(&compilation.output).to_owned(),
            directory: directory.to_owned(),
            is_object: compilation.is_object,
            is_package: compilation.is_package,
            is_elsewhere: self.pass == Pass::Others,
        };
        let is_same =
            |known: &&mut Step| known.output == step.output && known.inputs == step.inputs;
        match self.graph.steps.iter_mut().find(is_same) {
            Some(known) => known.is_elsewhere |= step.is_elsewhere,
            None => self.graph.steps.push(step),
        }
    }

    fn text(&mut self, text: &str, directory: &str, nested: usize) {
        self.loops.clear();
        for command in commands(text) {
            self.left = self.left.saturating_sub(1);
            if self.left == 0 {
                return;
            }
            if let [word, name, rest @ ..] = command.words.as_slice()
                && word == "for"
            {
                let values = rest.iter().filter(|word| *word != "in").cloned().collect();
                self.loops.insert(name.clone(), values);
                continue;
            }
            let kind = if command.output == OutputUse::Piped {
                RunKind::Watched
            } else {
                RunKind::Own
            };
            self.command(
                &command.words,
                kind,
                command.file.as_ref(),
                directory,
                nested,
            );
        }
    }

    fn command(
        &mut self,
        words: &[String],
        kind: RunKind,
        file: Option<&String>,
        directory: &str,
        nested: usize,
    ) {
        let words = from_program(words);
        let Some((program, rest)) = words.split_first() else {
            return;
        };
        let name = file_name(program).trim_start_matches(['@', '-', '+']);
        if COMPARERS.contains(&name) {
            self.compared
                .extend(rest.iter().map(|word| file_name(word).to_owned()));
            return;
        }
        if matches!(name, "make" | "gmake") {
            return self.make(rest);
        }
        if name.ends_with("sh")
            && let Some(at) = rest
                .iter()
                .position(|word| word.starts_with('-') && word.ends_with('c'))
            && let (Some(text), true) = (rest.get(at + 1), nested > 0)
        {
            let loops = std::mem::take(&mut self.loops);
            self.text(&text.clone(), directory, nested - 1);
            self.loops = loops;
            return;
        }
        for word in words {
            let is_named = |script: &&CommandText| {
                !script.path.is_empty() && file_name(&script.path) == file_name(word)
            };
            if let Some(at) = self.scripts.iter().position(is_named) {
                self.open_scripts.push_back(at);
            }
        }
        if let Some(class) = java_class(words) {
            return self.run(class, kind, file, true);
        }
        if let Some(mut made) = compilation(words) {
            if made.is_run {
                made.output = format!("<run> {}", made.inputs.join(" "));
                self.run(&made.output.clone(), kind, file, false);
            }
            return self.step(made, directory);
        }
        let is_word =
            QUIET.contains(&name) || TOOLS.contains(&name) || INTERPRETERS.contains(&name);
        if is_word && !program.contains('/') {
            return;
        }
        for program in self.looped(program) {
            self.run(&program, kind, file, false);
        }
        // An unknown wrapper; the arguments of a project script are not followed.
        if !self.tree.paths.contains(plain(program)) {
            for word in rest.iter().filter(|word| word.contains('/')) {
                for program in self.looped(word) {
                    self.run(&program, kind, file, false);
                }
            }
        }
    }

    /// A word with the values of a loop's variable.
    fn looped(&self, word: &str) -> Vec<String> {
        let variable = word
            .rsplit_once('$')
            .map(|(_, name)| name.trim_matches(['{', '}', '(', ')']));
        let values = variable.and_then(|name| self.loops.get(name));
        match values {
            Some(values) => values.iter().map(|value| plain(value).to_owned()).collect(),
            // Only within a path is it a program for sure.
            None if word.contains('$') && !word.contains('/') => Vec::new(),
            None => vec![plain(word).to_owned()],
        }
    }

    fn run(&mut self, name: &str, kind: RunKind, file: Option<&String>, is_class: bool) {
        if self.pass == Pass::Gate {
            let is_in_script = self.is_in_script;
            self.graph.runs.push(Run {
                name: name.to_owned(),
                kind,
                is_in_script,
                file: file.cloned(),
                is_class,
            });
        }
    }

    fn make(&mut self, rest: &[String]) {
        let mut goals: Vec<String> = Vec::new();
        let mut words = rest.iter();
        while let Some(word) = words.next() {
            if matches!(
                word.as_str(),
                "-C" | "-f" | "-I" | "-o" | "-W" | "--directory" | "--file"
            ) {
                words.next();
            } else if !word.starts_with('-')
                && !word.contains('=')
                && !super::super::is_measure(word)
            {
                goals.push(plain(word).to_owned());
            }
        }
        if goals.is_empty() {
            let is_goal = |target: &&String| !target.starts_with('.') && !target.contains('%');
            let first = |known: &KnownRule| known.rule.targets.iter().find(is_goal).cloned();
            let mut seen = BTreeSet::new();
            let tops = self.rules.iter().filter(|known| first(known).is_some());
            goals = tops
                .filter(|known| seen.insert(known.directory.clone()))
                .filter_map(first)
                .collect();
        }
        if self.pass == Pass::Gate {
            self.goals.extend(goals.iter().cloned());
        }
        self.targets.extend(goals);
    }
}

/// The values of a makefile's variables for compilers by names that are known, but for one that is a file of the project.
pub(in super::super) fn compilers(
    makefile: &Makefile,
    is_tracked: impl Fn(&str) -> bool,
) -> Vec<(&'static str, &'static str)> {
    let is_own = |variable: &str| {
        let value = makefile.expand(&format!("$({variable})"));
        value.split_whitespace().any(|word| is_tracked(plain(word)))
    };
    COMPILERS
        .into_iter()
        .filter(|(variable, _)| !is_own(variable))
        .collect()
}

/// A path without `./` before it.
fn plain(path: &str) -> &str {
    path.trim_start_matches("./")
}
