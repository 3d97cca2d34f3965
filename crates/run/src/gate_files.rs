//! The files of the repository that a gate consists of. A change to them could influence its own check.
//!
//! A gate is a command. What it runs is followed through shell scripts, makefiles, task runner settings and
//! `package.json` scripts, as far as their text shows. A file counts if it is in the position of a program or
//! script, not if it is merely mentioned. What a gate compiles or reads is what it checks, except the sources
//! of a program whose exit code is the verdict ([`compiled`]). Programs in other languages count and are not
//! followed, since what they import is usually the code under test.
//!
//! Words do not tell everything: a script changes its directory, keeps a name in a variable, starts a wrapper
//! that nobody knows. So two rules ask for no reading. Where the directory or a part of a name is not known,
//! every tracked file whose path ends like the name counts. And once a gate runs anything that can start
//! other programs, every tracked script that a shell would run counts: by its ending, its name (makefiles and
//! settings of task runners), its first line or its executable bit. To change one of them, a person names
//! it.

mod compiled;
mod support;
mod targets;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::path::Path;

use compiled::{
    CommandText, compiled_by, compilers, is_compiler, is_makefile, is_source, test_sources,
};
use crucible_host::words::shell_word;
use crucible_model::RepoPath;
use crucible_verify::{GateSpec, Makefile, runners};
pub(crate) use support::test_support;

/// Programs whose first non-option argument is a script.
const INTERPRETERS: [&str; 27] = [
    ".", "bash", "bun", "busybox", "dash", "deno", "fish", "ksh", "lua", "node", "nodejs", "perl",
    "php", "pwsh", "py", "pypy3", "python", "python2", "python3", "ruby", "Rscript", "sh",
    "source", "ts-node", "tsx", "xvfb-run", "zsh",
];
/// Words that another command follows.
const PREFIXES: [&str; 24] = [
    "!", "builtin", "command", "do", "elif", "else", "env", "exec", "if", "nice", "nohup",
    "poetry", "run", "setsid", "stdbuf", "sudo", "then", "time", "timeout", "until", "uv", "while",
    "xargs", "{",
];
/// Programs other than test runners that run commands from a file of theirs.
const OTHER_RUNNERS: [(&str, &[&str]); 5] = [
    ("hatch", &["pyproject.toml", "hatch.toml"]),
    ("invoke", &["tasks.py"]),
    ("pre-commit", &[".pre-commit-config.yaml"]),
    ("prek", &[".pre-commit-config.yaml"]),
    ("task", &["Taskfile.yml", "Taskfile.yaml"]),
];
/// Suffixes of files from which a shell or recipe runner reads commands.
const SHELL_ENDINGS: [&str; 8] = ["sh", "bash", "zsh", "ksh", "dash", "fish", "bats", "mk"];
/// Endings of programs in other languages.
const OTHER_LANGUAGES: [&str; 24] = [
    "py", "rb", "js", "mjs", "cjs", "ts", "mts", "cts", "jsx", "tsx", "pl", "pm", "lua", "php",
    "ps1", "r", "go", "rs", "c", "cc", "cpp", "h", "java", "cs",
];
/// Commands that change the directory for those after them.
const MOVES: [&str; 13] = [
    "cd",
    "pushd",
    "chdir",
    "-C",
    "--chdir",
    "--directory",
    "--prefix",
    "--dir",
    "--cwd",
    "-w",
    "--workspace",
    "--workspaces",
    "--filter",
];
/// What a program of another language starts programs with.
const STARTS_PROGRAMS: [&str; 7] = [
    "subprocess",
    "os.system",
    "popen",
    "child_process",
    "os.exec",
    "system(",
    "spawn",
];

/// Programs whose quoted arguments are text, not commands.
const QUIET: [&str; 13] = [
    "[", "[[", "case", "echo", "egrep", "error", "exit", "fgrep", "grep", "printf", "return", "rg",
    "test",
];

/// Characters that make a word a name pattern.
const GLOB: [char; 4] = ['*', '?', '[', '{'];
/// Options with which a line passes names to the program that follows.
const SPREADERS: [&str; 6] = [
    "-exec",
    "-execdir",
    "entr",
    "parallel",
    "run-parts",
    "xargs",
];

/// How the text of a file is parsed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Lines of commands: shell scripts, makefiles.
    Commands,
    /// The texts in `scripts`.
    Package,
    /// Something else, which is not followed.
    Leaf,
}

/// Whether git keeps a file as one that can be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It can.
    Executable,
    /// It cannot.
    Plain,
}

/// Returns the tracked files that the gates' commands run, sorted. `read` returns the beginning of a tracked
/// regular file, and nothing for other paths. Pure.
pub(crate) fn gate_files(
    gates: &[GateSpec],
    tracked: &[(&str, Mode)],
    mut read: impl FnMut(&RepoPath) -> Option<Vec<u8>>,
) -> Vec<RepoPath> {
    let mut by_name: HashMap<&str, Vec<&str>> = HashMap::new();
    for (path, _) in tracked {
        by_name.entry(file_name(path)).or_default().push(path);
    }
    let mut search = Search {
        tracked,
        by_name,
        found: BTreeSet::new(),
        queue: VecDeque::new(),
    };
    let mut candidates: Vec<(String, Option<RepoPath>)> = Vec::new();
    let mut moves = false;
    let mut runs_programs = false;
    let mut followed: Vec<CommandText> = Vec::new();
    for gate in gates {
        // Where a gate runs elsewhere than at the top, so does all that it starts.
        moves |= gate.cwd.is_some();
        // A variable can name a file that is loaded first.
        let values = gate
            .env
            .values()
            .flat_map(|value| value.split([':', ',', ';', '=']));
        for word in values.flat_map(words) {
            candidates.push((word.to_owned(), None));
        }
        for command in gate.setup.iter().chain([&gate.command]) {
            // Every word of the command itself: some are scripts in another form, such as `sh -c`. What the
            // command compiles is built, not run as is.
            let inputs = compiled_by(command);
            for word in command
                .iter()
                .flat_map(|word| words(word))
                .filter(|word| !inputs.contains(*word))
            {
                candidates.push((word.to_owned(), None));
            }
            let texts = command
                .iter()
                .filter(|word| !inputs.contains(*word))
                .cloned()
                .chain([command.join(" ")]);
            for text in texts {
                moves |= moves_away(&text);
                candidates.extend(run_by(&text).into_iter().map(|candidate| (candidate, None)));
            }
            let program = command.first().map_or("", |program| file_name(program));
            runs_programs |= program.ends_with("sh") && program != "pwsh";
        }
    }
    let mut next = 0;
    loop {
        while let Some((candidate, base)) = candidates.get(next).cloned() {
            search.take(&candidate, base.as_ref(), moves, &mut read);
            next += 1;
        }
        let Some((path, content)) = search.queue.pop_front() else {
            break;
        };
        let text = String::from_utf8_lossy(&content);
        let kind = kind(&path, &text);
        let texts = match kind {
            Kind::Leaf => Vec::new(),
            Kind::Commands => {
                let text = text.replace("\\\n", " ");
                let is_makefile = is_makefile(path.as_str()) || is_named_by_make(&followed, &path);
                let directory = directory(path.as_str()).to_owned();
                followed.push(CommandText {
                    path: path.to_string(),
                    directory,
                    text: text.clone(),
                    is_makefile,
                });
                if is_makefile {
                    vec![made_from(&followed, &text, tracked)]
                } else {
                    vec![text]
                }
            }
            Kind::Package => scripts(&text),
        };
        runs_programs |=
            kind != Kind::Leaf || STARTS_PROGRAMS.iter().any(|word| text.contains(word));
        let moved = moves;
        for text in texts {
            moves |= moves_away(&text);
            candidates.extend(
                run_by(&text)
                    .into_iter()
                    .map(|candidate| (candidate, Some(path.clone()))),
            );
        }
        if moves && !moved {
            // An earlier candidate may also be elsewhere.
            next = 0;
        }
    }
    let commands: Vec<CommandText> = gates
        .iter()
        .flat_map(|gate| {
            gate.setup
                .iter()
                .chain([&gate.command])
                .map(move |command| (gate, command))
        })
        .map(|(gate, command)| CommandText {
            path: String::new(),
            directory: gate
                .cwd
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            is_makefile: false,
            text: command
                .iter()
                .map(|word| shell_word(word))
                .collect::<Vec<_>>()
                .join(" "),
        })
        .collect();
    search
        .found
        .extend(test_sources(&commands, &followed, tracked, &mut read));
    if runs_programs {
        search.all_scripts(&mut read);
    }
    search.found.into_iter().collect()
}

/// Returns the text of a makefile with variables expanded, based on all makefiles so far.
fn made_from(followed: &[CommandText], text: &str, tracked: &[(&str, Mode)]) -> String {
    let makefiles = followed.iter().filter(|file| file.is_makefile);
    let makefile = Makefile::read(makefiles.map(|file| file.text.as_str()));
    let compilers = compilers(&makefile, |path| {
        tracked.iter().any(|(known, _)| *known == path)
    });
    text.lines()
        .map(|line| spaced(&makefile.expand_with(line, &compilers)))
        .collect::<Vec<_>>()
        .join("\n")
}

/// A line of a makefile with spaces around the sign of an assignment: to a shell `A=b c` would run `c`.
fn spaced(line: &str) -> String {
    let sign = line.find('=').filter(|_| !line.starts_with('\t'));
    let assignment = sign.and_then(|at| {
        let name = line[..at].trim_end_matches([':', '?', '+', '!']);
        is_name(name).then(|| format!("{name} = {}", &line[at + 1..]))
    });
    assignment.unwrap_or_else(|| line.to_owned())
}

/// Whether a makefile includes a file of this name, or a command has make read it.
fn is_named_by_make(followed: &[CommandText], path: &RepoPath) -> bool {
    let is_name = |word: &str| file_name(word) == path.file_name();
    followed.iter().any(|file| {
        file.text.lines().any(|line| {
            let words: Vec<&str> = words(line).collect();
            let includes = words.first().is_some_and(|word| {
                file.is_makefile && word.trim_start_matches(['-', 's']) == "include"
            });
            let has_name = |pair: &[&str]| pair[0] == "-f" && is_name(pair[1]);
            includes && words.iter().any(|word| is_name(word)) || words.windows(2).any(has_name)
        })
    })
}

fn directory(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// The result so far, and what is still to be examined.
struct Search<'a> {
    tracked: &'a [(&'a str, Mode)],
    by_name: HashMap<&'a str, Vec<&'a str>>,
    found: BTreeSet<RepoPath>,
    queue: VecDeque<(RepoPath, Vec<u8>)>,
}

impl Search<'_> {
    fn take(
        &mut self,
        candidate: &str,
        base: Option<&RepoPath>,
        moves: bool,
        read: &mut impl FnMut(&RepoPath) -> Option<Vec<u8>>,
    ) {
        let mut paths = places(candidate, base);
        // After a variable or another command follows the end of a path.
        let is_end = moves || candidate.contains('$') || candidate.starts_with('/');
        let known = known_part(candidate);
        if known.contains(GLOB) {
            let start = known
                .split(GLOB)
                .next()
                .unwrap_or_default()
                .trim_start_matches("./");
            let end = known
                .rsplit(['*', '?', ']', '}'])
                .next()
                .unwrap_or_default();
            let inner = format!("/{start}");
            // A pattern without any literal part would match every file.
            if start.is_empty() && end.is_empty() {
                return;
            }
            let begins = |path: &str| path.starts_with(start) || is_end && path.contains(&inner);
            let alike = self
                .tracked
                .iter()
                .filter(|(path, _)| begins(path) && path.ends_with(end));
            paths.extend(alike.filter_map(|(path, _)| path.parse().ok()));
        } else if is_end && let Some(known) = normal(known.trim_start_matches("../")) {
            let same = self
                .by_name
                .get(file_name(known.as_str()))
                .into_iter()
                .flatten();
            let end = format!("/{known}");
            paths.extend(
                same.filter(|path| path.ends_with(&end))
                    .filter_map(|path| path.parse().ok()),
            );
        }
        for path in paths {
            if !self.found.contains(&path)
                && let Some(content) = read(&path)
            {
                self.found.insert(path.clone());
                self.queue.push_back((path, content));
            }
        }
    }

    /// Adds every tracked file that a shell would run.
    fn all_scripts(&mut self, read: &mut impl FnMut(&RepoPath) -> Option<Vec<u8>>) {
        for (path, mode) in self.tracked {
            let name = file_name(path);
            let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
            let Ok(path) = path.parse::<RepoPath>() else {
                continue;
            };
            // Without a first line that names a program, only a shell could run it.
            let mut is_of_other_language = || {
                OTHER_LANGUAGES.contains(&ending)
                    && !read(&path).is_some_and(|content| content.starts_with(b"#!"))
            };
            let is_script = *mode == Mode::Executable && !is_of_other_language()
                || SHELL_ENDINGS.contains(&ending)
                || is_recipe(name)
                || ending.is_empty()
                    && read(&path).is_some_and(|content| content.starts_with(b"#!"));
            if is_script {
                self.found.insert(path);
            }
        }
    }
}

/// Returns the files that control a program; `None` if it is not a runner.
fn steered_by(program: &str) -> Option<Vec<&'static str>> {
    let influences = runners().iter().map(|runner| runner.influence());
    let of_tests = influences
        .filter(|influence| influence.programs.contains(&program))
        .map(|influence| [influence.recipes, influence.settings].concat());
    let others = OTHER_RUNNERS
        .iter()
        .filter(|(name, _)| *name == program)
        .map(|(_, files)| files.to_vec());
    of_tests
        .chain(others)
        .reduce(|all, more| [all, more].concat())
}

/// Whether a file of this name holds the commands of a runner.
fn is_recipe(name: &str) -> bool {
    runners()
        .iter()
        .any(|runner| runner.influence().recipes.contains(&name))
        || OTHER_RUNNERS.iter().any(|(_, files)| files.contains(&name))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn moves_away(text: &str) -> bool {
    words(text).any(|word| {
        MOVES.contains(&word.split('=').next().unwrap_or(word)) || word.starts_with("-C")
    })
}

fn kind(path: &RepoPath, text: &str) -> Kind {
    let path = Path::new(path.as_str());
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let ending = path
        .extension()
        .and_then(|ending| ending.to_str())
        .unwrap_or_default();
    if name == "package.json" {
        return Kind::Package;
    }
    let influences = || runners().iter().map(|runner| runner.influence());
    if influences().any(|influence| {
        influence
            .settings
            .iter()
            .any(|file| file_name(file) == name)
    }) {
        return Kind::Leaf;
    }
    let recipes = is_recipe(name) || ending == "mk";
    let first = text.lines().next().unwrap_or_default();
    let interpreter = first
        .strip_prefix("#!")
        .and_then(|rest| rest.split_whitespace().last());
    let interpreter = interpreter.and_then(|word| word.rsplit('/').next());
    let shell = match interpreter {
        Some(program) => program.ends_with("sh") && program != "pwsh",
        None => !OTHER_LANGUAGES.contains(&ending),
    };
    if recipes || shell {
        Kind::Commands
    } else {
        Kind::Leaf
    }
}

/// The scripts of a `package.json`.
fn scripts(text: &str) -> Vec<String> {
    let document: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let scripts = document
        .get("scripts")
        .and_then(|scripts| scripts.as_object());
    scripts
        .into_iter()
        .flatten()
        .filter_map(|(_, script)| script.as_str().map(str::to_owned))
        .collect()
}

/// Returns the words in the position of a program or script in lines of shell commands.
fn run_by(text: &str) -> Vec<String> {
    let mut reading = Reading::default();
    for line in text.lines() {
        let line = line.trim_start().trim_start_matches(['@', '-', '+']);
        if !line.starts_with('#') {
            reading.line(&without_texts(line));
        }
    }
    reading.found()
}

/// What lines of commands run, as far as they were read.
#[derive(Default)]
struct Reading {
    found: Vec<String>,
    /// Variables in the position of a program or script.
    run: BTreeSet<String>,
    /// What variables are set to or go through: names, patterns and other variables.
    values: Vec<(String, String)>,
}

impl Reading {
    fn line(&mut self, line: &str) {
        let reads = read_into(line);
        let spreads = words(line).any(|word| SPREADERS.contains(&word));
        let pipes = line.contains('|');
        for command in line.split(SEPARATORS) {
            let all: Vec<&str> = words(command).filter(|word| !word.is_empty()).collect();
            self.assigned(&all);
            // What a compiler is given is built, and not run as it is.
            if is_compiled(&all) {
                continue;
            }
            self.mentioned(&all);
            // Unless something else shows it, a variable after a pipe is an argument of a program.
            let named = || {
                all.iter()
                    .any(|word| is_interpreter(file_name(word)) && !word.starts_with('$'))
            };
            if (spreads || pipes && named()) && runs_unnamed_scripts(&all) {
                self.found.extend(spread(line));
            }
            if let Some(name) = reads {
                self.values
                    .extend(spread(line).map(|value| (name.to_owned(), value)));
            }
            self.command(all);
        }
    }

    /// What the first words of a command run.
    fn command(&mut self, all: Vec<&str>) {
        let paths = all
            .iter()
            .filter_map(|word| setting(word))
            .filter(|(name, _)| *name == "PYTHONPATH");
        let below: Vec<&str> = paths.flat_map(|(_, places)| places.split(':')).collect();
        let mut words = all.into_iter().peekable();
        // Settings of variables, words that another command follows, and their options and numbers.
        while words
            .next_if(|word| {
                PREFIXES.contains(word)
                    || word.starts_with('-')
                    || is_measure(word)
                    || setting(word).is_some()
            })
            .is_some()
        {}
        let Some(program) = words.next() else { return };
        self.runs(program);
        let name = file_name(program);
        let rest: Vec<&str> = words.collect();
        if matches!(name, "include" | "sinclude") && rest.first() != Some(&"=") {
            // Files of dependencies are named after sources: `-include $(OBJECTS:.o=.d)`.
            let is_makefile = |word: &&&str| {
                let ending = word.rsplit_once('.').map_or("", |(_, ending)| ending);
                !OTHER_LANGUAGES.contains(&ending) && !is_source(word)
            };
            self.found.extend(
                rest.iter()
                    .filter(is_makefile)
                    .map(|word| (*word).to_owned()),
            );
        }
        if let Some(files) = steered_by(name) {
            let directory = rest
                .windows(2)
                .find(|pair| ["-C", "--prefix", "--dir"].contains(&pair[0]));
            let directory = directory.map_or(String::new(), |pair| format!("{}/", pair[1]));
            self.found
                .extend(files.iter().map(|file| format!("{directory}{file}")));
            self.found.extend(
                rest.windows(2)
                    .filter(|pair| pair[0] == "-f")
                    .map(|pair| pair[1].to_owned()),
            );
        }
        self.found.extend(targets::sources(name, &rest));
        if is_interpreter(name) {
            self.found.extend(targets::modules(&rest, &below));
            targets::scripts(&rest)
                .into_iter()
                .for_each(|script| self.runs(script));
        }
    }

    /// Adds what runs anywhere in the words: the script of an interpreter started by something unknown, every
    /// word with a shell script suffix, and the value of a variable if it is a path.
    fn mentioned(&mut self, words: &[&str]) {
        for (at, word) in words.iter().enumerate() {
            let value = word
                .split_once('=')
                .map_or(*word, |(_, value)| value)
                .trim_matches(['[', ']', ',']);
            let is_shell = value
                .rsplit_once('.')
                .is_some_and(|(_, ending)| SHELL_ENDINGS.contains(&ending));
            let is_set = value.len() < word.len() && value.contains('/') && !value.contains(GLOB);
            if is_shell || is_set {
                self.found.push(value.to_owned());
            }
            let is_program = !matches!(*word, "." | "source") && is_interpreter(file_name(word));
            let files = steered_by(word);
            if is_program || files.is_some() {
                let rest = words.get(at + 1..).unwrap_or_default();
                targets::scripts(rest)
                    .into_iter()
                    .for_each(|script| self.runs(script));
                self.found
                    .extend(files.into_iter().flatten().map(str::to_owned));
            }
        }
    }

    /// Records the values of variables and loops.
    fn assigned(&mut self, words: &[&str]) {
        let mut note = |name: &str, values: &[&str]| {
            self.values.extend(
                values
                    .iter()
                    .map(|value| (name.to_owned(), (*value).to_owned())),
            );
        };
        if let Some(at) = words.iter().position(|word| *word == "for")
            && let Some([name, values @ ..]) = words.get(at + 1..)
        {
            note(name, values);
        }
        if let [name, ":=" | "=" | "+=" | "?=" | "::=", values @ ..] = words {
            note(name, values);
        }
        for (name, value) in words.iter().filter_map(|word| setting(word)) {
            note(name, &[value]);
        }
    }

    /// Records a word in the position of a program or script.
    fn runs(&mut self, word: &str) {
        if let Some(name) = variable(word) {
            self.run.insert(name.to_owned());
        } else if let Some((known, _)) = word
            .split_once('$')
            .filter(|(known, _)| known.contains('/'))
        {
            // Any value of the variable within the name.
            let end = word.rsplit_once('.').map_or("", |(_, ending)| ending);
            let end = if end.contains(['$', '/', '}']) {
                ""
            } else {
                end
            };
            self.found.push(format!(
                "{known}*{}{end}",
                if end.is_empty() { "" } else { "." }
            ));
        }
        self.found.push(word.to_owned());
    }

    /// Returns all that runs, including the values of variables that run.
    fn found(mut self) -> Vec<String> {
        let mut open: Vec<String> = self.run.iter().cloned().collect();
        while let Some(name) = open.pop() {
            for (_, value) in self.values.iter().filter(|(set, _)| *set == name) {
                match variable(value) {
                    Some(other) => {
                        if self.run.insert(other.to_owned()) {
                            open.push(other.to_owned());
                        }
                    }
                    None => self.found.push(value.clone()),
                }
            }
        }
        self.found
    }
}

/// The name and the value of a setting, `NAME=value`.
fn setting(word: &str) -> Option<(&str, &str)> {
    word.split_once('=').filter(|(name, _)| is_name(name))
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns the variable that is the whole word.
fn variable(word: &str) -> Option<&str> {
    let name = word.strip_prefix('$')?;
    let name = name.strip_prefix('$').unwrap_or(name);
    let name = name
        .strip_prefix('{')
        .and_then(|name| name.strip_suffix('}'))
        .unwrap_or(name);
    let name = name.strip_suffix("[@]").unwrap_or(name);
    is_name(name).then_some(name)
}

/// Returns whether a command ends with an interpreter that gets its scripts from elsewhere: `xargs sh`,
/// `-exec python3 {} +`.
fn runs_unnamed_scripts(words: &[&str]) -> bool {
    let first = words
        .iter()
        .position(|word| is_interpreter(file_name(word)));
    let scripts = first
        .and_then(|at| words.get(at + 1..))
        .map(|rest| rest.iter().find(|word| !word.starts_with('-')));
    let is_open = scripts
        .is_some_and(|script| script.is_none_or(|word| matches!(*word, "{}" | ":::" | "\\")));
    is_open || words.first().is_some_and(|word| *word == "run-parts")
}

/// Returns the names that a line can pass on: files, patterns, and the contents of named directories.
fn spread(line: &str) -> impl Iterator<Item = String> {
    // In which directory a name is found is not known.
    words(line)
        .filter(|word| !word.is_empty() && !word.starts_with(['-', '$']))
        .map(|word| match word.contains(GLOB) || word.contains('.') {
            true => format!("$/{word}"),
            false => format!("{}/*", word.trim_end_matches('/')),
        })
}

/// Returns the variable of a reading loop, if any: `while read -r file`.
fn read_into(line: &str) -> Option<&str> {
    let mut words = words(line).skip_while(|word| *word != "read");
    words.next()?;
    words
        .find(|word| !word.starts_with('-'))
        .filter(|word| is_name(word))
}

/// Whether a command compiles.
fn is_compiled(words: &[&str]) -> bool {
    let is_before = |word: &str| {
        PREFIXES.contains(&word) || word.starts_with(['-', '@', '+']) || setting(word).is_some()
    };
    words
        .iter()
        .find(|word| !is_before(word))
        .is_some_and(|program| is_compiler(program))
}

/// What stands between two commands.
const SEPARATORS: [char; 7] = [';', '|', '&', '(', ')', '`', '\n'];

/// Removes the quoted words of programs that only print, compare or search, because a message may name a file
/// in parentheses. Shell substitutions in such a word stay, and so does everything if the words go to another
/// program or are ambiguous.
fn without_texts(line: &str) -> String {
    let mut stripped = String::with_capacity(line.len());
    let mut letters = line.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => {
                stripped.push(letter);
                stripped.extend(letters.next().map(|(_, escaped)| escaped));
            }
            '|' if letters.next_if(|(_, next)| *next == '|').is_none() => return line.to_owned(),
            '|' => stripped.push_str("||"),
            '\'' | '"' => {
                let Some(length) = quoted(line.get(at + 1..).unwrap_or_default(), letter) else {
                    return line.to_owned();
                };
                let end = at + 1 + length;
                let text = line.get(at + 1..end).unwrap_or_default();
                let command = stripped.rsplit(SEPARATORS).next().unwrap_or_default();
                let program =
                    words(command).find(|word| !word.is_empty() && !PREFIXES.contains(word));
                let is_quiet = program.is_some_and(|word| QUIET.contains(&word));
                let runs = letter == '"' && (text.contains("$(") || text.contains('`'));
                if !is_quiet || runs {
                    stripped.push(letter);
                    stripped.push_str(text);
                    stripped.push(letter);
                }
                while letters.next_if(|(place, _)| *place <= end).is_some() {}
            }
            letter => stripped.push(letter),
        }
    }
    stripped
}

/// Returns the length of a quoted word up to its closing quote; `None` if it continues on the next line.
fn quoted(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if quote == '"' => escaped = true,
            letter if letter == quote => return Some(at),
            _ => {}
        }
    }
    None
}

/// A program of this name, or one known only by its variable, runs the script it is given.
fn is_interpreter(name: &str) -> bool {
    INTERPRETERS.contains(&name)
        || name.starts_with('$') && name.len() > 1
        || ["python", "pypy", "ruby", "node", "lua", "perl", "php"]
            .iter()
            .any(|program| {
                name.strip_prefix(program).is_some_and(|version| {
                    version
                        .bytes()
                        .all(|byte| byte.is_ascii_digit() || byte == b'.')
                })
            })
}

/// A number, with or without a unit: how long, how often.
fn is_measure(word: &str) -> bool {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    word.len() - digits.len() <= 2
        && !digits.is_empty()
        && digits
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
        && digits.bytes().any(|byte| byte.is_ascii_digit())
}

/// The words of a command, without quotes.
fn words(command: &str) -> impl Iterator<Item = &str> {
    command.split(|c: char| c.is_whitespace() || "\"'<>;&|()`".contains(c))
}

/// Returns the possible places of a candidate: below the root, or beside the file that names it. Variables
/// have unknown values; the rest of such a path is searched in both.
fn places(candidate: &str, base: Option<&RepoPath>) -> Vec<RepoPath> {
    let known = known_part(candidate);
    let directory = base
        .and_then(|path| path.as_str().rsplit_once('/'))
        .map(|(directory, _)| directory);
    let relative = directory.map(|directory| format!("{directory}/{known}"));
    [Some(known.to_owned()), relative]
        .into_iter()
        .flatten()
        .filter_map(|path| normal(&path))
        .collect()
}

/// Returns the text after the last variable of a candidate. The braces of a variable are skipped: `${0%/*}`
/// names no file.
fn known_part(candidate: &str) -> &str {
    let known = match candidate.rfind('$') {
        Some(at) => {
            let variable = candidate.get(at..).unwrap_or_default();
            let behind = match variable.strip_prefix("${") {
                Some(inner) => inner.split_once('}').map_or("", |(_, behind)| behind),
                None => variable,
            };
            behind.split_once('/').map_or("", |(_, rest)| rest)
        }
        None => candidate,
    };
    known.trim_start_matches('/')
}

/// A path without `.` and `..`.
fn normal(path: &str) -> Option<RepoPath> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    parts.join("/").parse().ok()
}

#[cfg(test)]
mod tests;
