//! Finds the files that a command runs, the settings of git in it, and the repositories that it names.
//!
//! A command is split as a shell does. The program is not looked for, since any other may start it. These rules hold instead:
//!
//! - A word that names an existing file counts, unless it is found on `PATH`. So does any piece of the value between signs of a shell.
//! - A program without `/` counts where it is found on `PATH`, or would be found.
//! - A file that does not exist counts if a word after an interpreter names it, if it is the first with a `/`, or if it is called
//!   like a script and its directory exists.
//! - A word `KEY=VALUE` counts as the setting or the variable `KEY`.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crucible_host::env::Environment;

use super::command::as_path;
use super::config_files::{canonical, path_in};
use super::git_call::GitCall;
use super::pieces::pieces;
use super::programs::{
    NamedPath, SettingRole, library_variable, named_by, role, subsection, variable_role,
};
use super::search_path::{SearchPath, is_builtin};
use super::shell::Script;

/// Programs that run what an argument names. Versions may follow the name (`python3.12`).
const INTERPRETERS: [&str; 43] = [
    "ash",
    "awk",
    "bash",
    "busybox",
    "csh",
    "dash",
    "elixir",
    "expect",
    "fish",
    "gawk",
    "groovy",
    "guile",
    "julia",
    "ksh",
    "lua",
    "luajit",
    "mawk",
    "mksh",
    "nawk",
    "nu",
    "osascript",
    "perl",
    "php",
    "posh",
    "pwsh",
    "pypy",
    "python",
    "r",
    "racket",
    "rbash",
    "rksh",
    "rscript",
    "ruby",
    "runghc",
    "sh",
    "source",
    "tclsh",
    "tcsh",
    "uv",
    "wish",
    "xonsh",
    "yash",
    "zsh",
];
/// Other programs that run what the value of an option names.
const FILE_OPTIONS: [(&str, &str); 12] = [
    ("ex", "-S"),
    ("gdb", "-x"),
    ("gmake", "-f"),
    ("make", "-f"),
    ("nvim", "-S"),
    ("scp", "-F"),
    ("sed", "-f"),
    ("sftp", "-F"),
    ("ssh", "-F"),
    ("vi", "-S"),
    ("view", "-S"),
    ("vim", "-S"),
];
/// Interpreters that also look for the name with an ending, and for a file in a directory.
const MODULE_INTERPRETERS: [&str; 7] = [
    "bun",
    "deno",
    "node",
    "nodejs",
    "ts-node",
    "tsx",
    "vite-node",
];
const MODULE_ENDINGS: [&str; 8] = ["cjs", "js", "json", "jsx", "mjs", "node", "ts", "tsx"];
/// Words of a shell before a command.
const KEYWORDS: [&str; 10] = [
    "!", "do", "elif", "else", "if", "then", "time", "until", "while", "{",
];
/// Endings of programs that another program gets without a path.
const SCRIPTS: [&str; 26] = [
    "awk", "bash", "cjs", "cts", "exs", "fish", "jl", "js", "jsx", "ksh", "lua", "mjs", "mk",
    "mts", "php", "pl", "ps1", "py", "pyz", "r", "rb", "sh", "tcl", "ts", "tsx", "zsh",
];
/// The files of which Python runs one if it gets a directory.
const MAINS: [&str; 2] = ["__main__.py", "__main__.pyc"];
/// Bytes between an option or a variable and its value, and between several values.
const SEPARATORS: &[u8] = b"=,:";
/// Bytes of patterns, formats and code, which no name of a missing file has.
const NOT_IN_NAMES: &[u8] = b"\t\r\n*?[]{}()<>|&;^\\\"'`!%$";

/// How a word of a command is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    /// It may be the program, found on `PATH` if it has no `/`.
    Program,
    /// It is an argument of an interpreter, which may run it.
    Script,
    /// The same, for one of [`MODULE_INTERPRETERS`].
    Module,
    /// It is a part of a [`Use::Script`].
    ScriptPart,
    /// It is a part of a [`Use::Module`].
    ModulePart,
    Argument,
    /// It is a part of the value as it is written, and means a file if there is one.
    Written,
}

impl Use {
    fn is_script(self) -> bool {
        matches!(self, Self::Script | Self::Module)
    }

    /// Returns how the interpreter uses what it gets, if there is one.
    fn of_interpreter(self) -> Option<Self> {
        match self {
            Self::Script | Self::ScriptPart => Some(Self::Script),
            Self::Module | Self::ModulePart => Some(Self::Module),
            _ => None,
        }
    }

    /// Returns how a part of a word is used.
    fn of_part(self) -> Self {
        match self {
            Self::Script => Self::ScriptPart,
            Self::Module => Self::ModulePart,
            _ => Self::Argument,
        }
    }
}

type Words = BTreeSet<(Vec<u8>, Use)>;

/// Returns what a command of a shell or of git's settings names, relative to `base`.
pub(super) fn named_in_command(
    value: &[u8],
    base: &Path,
    env: &Environment,
) -> BTreeSet<NamedPath> {
    let value = value.strip_prefix(b"!").unwrap_or(value);
    let written = value.split(u8::is_ascii_whitespace).chain([value]);
    let written = written.map(<[u8]>::to_owned).collect();
    Search::named_paths(Script::parse(value).commands, written, value, base, env)
}

/// Returns what a helper for credentials names: a command, or the name of a program after `git-credential-`.
pub(super) fn named_in_helper(value: &[u8], base: &Path, env: &Environment) -> BTreeSet<NamedPath> {
    let mut words = value.split(u8::is_ascii_whitespace);
    let is_command =
        value.starts_with(b"!") || words.next().is_some_and(|word| word.contains(&b'/'));
    if is_command {
        return named_in_command(value, base, env);
    }
    named_in_command(&[b"git-credential-", value].concat(), base, env)
}

/// Returns whether a command has this interpreter among its words, in any version.
pub(super) fn has_interpreter(value: &[u8], interpreter: &str) -> bool {
    let is_it = |word: &[u8]| name_of_program(word).eq_ignore_ascii_case(interpreter.as_bytes());
    Script::parse(value).words().any(is_it)
}

/// Returns what an alias names, which is a command of git or after `!` of a shell.
pub(super) fn named_in_alias(value: &[u8], base: &Path, env: &Environment) -> BTreeSet<NamedPath> {
    if value.starts_with(b"!") {
        return named_in_command(value, base, env);
    }
    let value = [b"git ", value].concat();
    let mut commands = Script::parse(&value).commands;
    // What is quoted in its arguments is not a command.
    let calls = commands.first().map(|command| GitCall::all(command));
    if calls.is_some_and(|calls| calls.iter().any(GitCall::is_harmless)) {
        commands.truncate(1);
    }
    Search::named_paths(commands, Vec::new(), b"", base, env)
}

/// Looks for what the words of a value name.
struct Search<'a> {
    words: Words,
    base: &'a Path,
    env: &'a Environment,
    named: BTreeSet<NamedPath>,
}

impl<'a> Search<'a> {
    /// Searches the words of commands, the words `written` without a shell, and the pieces of `text`.
    fn named_paths(
        mut commands: Vec<Vec<Vec<u8>>>,
        written: Vec<Vec<u8>>,
        text: &[u8],
        base: &'a Path,
        env: &'a Environment,
    ) -> BTreeSet<NamedPath> {
        let mut search = Self {
            words: Words::new(),
            base,
            env,
            named: BTreeSet::new(),
        };
        let mut not_files = BTreeSet::new();
        let mut calls = Vec::new();
        for command in &mut commands {
            let of_command = GitCall::all(command);
            if let Some(call) = of_command.iter().find(|call| call.is_harmless()) {
                not_files.extend(command.split_off(call.arguments));
            }
            calls.push(of_command);
        }
        search.add_words(&commands);
        for word in written {
            let is_on_path = search.words.contains(&(word.clone(), Use::Program));
            if !not_files.contains(&word) && (!is_on_path || word.contains(&b'/')) {
                search.words.insert((word, Use::Written));
            }
        }
        search.words.retain(|(word, _)| !word.is_empty());
        let directories = search.add_files();
        let mut bases = vec![base.to_owned()];
        if changes_directory(&search.words) {
            search.add_files_in(&directories);
            bases.extend(directories);
        }
        search.add_pieces(&commands, text, &not_files);
        search.add_programs(&commands, &calls, text);
        if calls.iter().any(|calls| !calls.is_empty()) {
            search.add_work_trees(&commands);
        }
        let values: Vec<&[u8]> = commands.iter().flat_map(|words| values(words)).collect();
        for base in &bases {
            for (command, calls) in commands.iter().zip(&calls) {
                search.add_settings(command, base);
                for call in calls {
                    search
                        .named
                        .extend(call.named_directories(command, &values, base, env));
                }
            }
        }
        search.named
    }

    /// Adds the words of the commands and their parts.
    fn add_words(&mut self, commands: &[Vec<Vec<u8>>]) {
        for (number, command) in commands.iter().enumerate() {
            let (mut is_first, mut has_path, mut interpreter) = (true, false, None);
            let (mut has_script, mut is_value) = (false, false);
            let mut before_it: Option<&[u8]> = None;
            for word in command {
                let is_option = word.starts_with(b"-");
                let has_slash = word.contains(&b'/');
                let is_before = is_option || is_assignment(word);
                // An option may take code (`sh -c "a b"`).
                let is_code = is_value && word.contains(&b' ');
                let used = match interpreter {
                    Some(_) if is_code => Use::Argument,
                    Some(used) => used,
                    None if is_file_option(command, before_it) => Use::Script,
                    None if is_before || !is_first && (has_path || !has_slash) => Use::Argument,
                    None => Use::Program,
                };
                has_script |= interpreter.is_some() && !is_option;
                is_value = is_option;
                // A program of the system may start the next one (`/usr/bin/env tools/check`).
                let is_of_system = word.starts_with(b"/") && as_path(word).is_file();
                has_path |= has_slash && !is_before && !is_of_system;
                interpreter = match interpreter_of(word) {
                    _ if !is_first && word == b"." => interpreter,
                    None if is_first && is_variable(word) => Some(Use::Script),
                    None => interpreter,
                    found => found,
                };
                before_it = Some(word);
                is_first &= is_before || is_keyword(word);
                self.add_word(word, used);
            }
            // An interpreter without a script reads what the command before it writes.
            let before = number.checked_sub(1).map(|before| &commands[before]);
            if let (Some(used), false, Some(before)) = (interpreter, has_script, before) {
                for word in before.iter().skip(1) {
                    self.words.insert((word.clone(), used));
                }
            }
        }
    }

    fn add_word(&mut self, word: &[u8], used: Use) {
        self.words.extend(parts(word).map(|part| {
            // One with separators in it is a file only if there is one.
            let is_single = !part.iter().any(|byte| SEPARATORS.contains(byte));
            let used = if is_single {
                used.of_part()
            } else {
                Use::Written
            };
            (part.to_owned(), used)
        }));
        self.words.insert((word.to_owned(), used));
    }

    /// Adds the files that the words name, and returns the directories.
    fn add_files(&mut self) -> BTreeSet<PathBuf> {
        let mut directories = BTreeSet::new();
        for (word, used) in &self.words {
            let has_slash = word.contains(&b'/');
            for (path, may_be_missing) in paths(word, self.base, self.env) {
                if path.file_name().is_none() || path.ends_with("..") {
                    continue;
                }
                let is_there = path.exists();
                let is_directory = path.is_dir();
                if is_directory && !self.base.starts_with(&path) {
                    directories.insert(path.clone());
                }
                let is_counted = match used {
                    _ if is_directory => false,
                    Use::Program if is_there => has_slash,
                    _ if is_there => true,
                    // A link that leads nowhere stands for what is created there.
                    _ if !may_be_missing => false,
                    _ => is_created(word, *used, &path, self.base),
                };
                if let Some(interpreter) = used.of_interpreter() {
                    let counts = is_counted || used.is_script() && is_directory;
                    let others = other_files(&path, interpreter).into_iter();
                    let others = others.filter(|other| counts || other.is_file());
                    self.named.extend(others.map(NamedPath::Path));
                }
                if is_counted {
                    self.named.insert(NamedPath::Path(path));
                }
            }
        }
        directories
    }

    /// Adds the files that the words name in directories that other words name (`cd tools && sh check`, `D=tools; sh $D/check`).
    fn add_files_in(&mut self, directories: &BTreeSet<PathBuf>) {
        for directory in directories {
            let inside = self
                .words
                .iter()
                .filter_map(|(word, used)| named_inside(directory, word, *used));
            self.named.extend(inside.map(NamedPath::Path));
        }
    }

    /// Adds the existing files that pieces of the text or of the words name, from `base` and from directories that other pieces name.
    fn add_pieces(
        &mut self,
        commands: &[Vec<Vec<u8>>],
        text: &[u8],
        not_files: &BTreeSet<Vec<u8>>,
    ) {
        let mut names = pieces(text);
        for word in not_files {
            pieces(word).iter().for_each(|piece| {
                names.remove(piece);
            });
        }
        names.extend(commands.iter().flatten().flat_map(|word| pieces(word)));
        // What is found on `PATH` is not a file here.
        names.retain(|name| !self.words.contains(&(name.clone(), Use::Program)));
        let is_inner = |directory: &PathBuf| {
            directory != self.base && directory.starts_with(self.base) && directory.is_dir()
        };
        let mut directories = BTreeSet::from([self.base.to_owned()]);
        for name in &names {
            let path = self.base.join(as_path(name));
            directories.extend(path.parent().map(Path::to_owned).filter(is_inner));
            directories.extend(Some(path).filter(is_inner));
        }
        let mut used = self.words.iter().map(|(_, used)| used.of_interpreter());
        let is_module = used.any(|used| used == Some(Use::Module));
        for directory in directories {
            for path in names.iter().map(|name| directory.join(as_path(name))) {
                if !path.starts_with(self.base) {
                    continue;
                }
                let others = is_module.then(|| other_files(&path, Use::Module));
                let files = others.into_iter().flatten().chain([path]);
                self.named
                    .extend(files.filter(|file| file.is_file()).map(NamedPath::Path));
            }
        }
    }

    /// Adds the programs that are found on `PATH`, or would be found, also by git as its subcommands.
    fn add_programs(&mut self, commands: &[Vec<Vec<u8>>], calls: &[Vec<GitCall>], text: &[u8]) {
        let assigned = commands.iter().flatten();
        let assigned = assigned.filter_map(|word| word.strip_prefix(b"PATH="));
        let assigned =
            assigned.map(|value| SearchPath::after_assignment(value, self.env, self.base));
        let paths: Vec<SearchPath> = assigned
            .chain([SearchPath::new(self.env, self.base)])
            .collect();
        let subcommands = calls.iter().flatten().filter_map(GitCall::subcommand);
        let subcommands = subcommands.map(|name| ([b"git-", name].concat(), Use::Program));
        let words: Words = self.words.iter().cloned().chain(subcommands).collect();
        for (word, used) in words {
            let is_function = || {
                let named = [&word[..], b"()"].concat();
                text.windows(named.len()).any(|part| part == named)
            };
            let is_program = is_name(&as_path(&word))
                && !word.iter().any(|byte| b"/=".contains(byte))
                && !word.starts_with(b"-")
                && !is_keyword(&word)
                && !is_builtin(&word)
                && !is_function();
            for path in paths.iter().filter(|_| is_program) {
                if used == Use::Program {
                    self.named.extend(path.candidate_programs(&word));
                } else {
                    self.named.extend(path.find(&word));
                }
            }
        }
    }

    /// Adds the directories that git is called in (`cd web && git status`, `env -C web git status`).
    fn add_work_trees(&mut self, commands: &[Vec<Vec<u8>>]) {
        for (number, change, directory) in commands.iter().flat_map(|command| {
            let first = command
                .iter()
                .position(|word| !is_keyword(word))
                .unwrap_or(0);
            let pairs = command.windows(2).enumerate().skip(first);
            pairs.map(move |(number, pair)| (number - first, &pair[0][..], &pair[1]))
        }) {
            let is_change = match change {
                b"cd" | b"pushd" => number == 0,
                b"-C" | b"--chdir" => true,
                _ => false,
            };
            if is_change && !directory.starts_with(b"-") {
                let named = named_by_word(SettingRole::WorkTree, directory, self.base, self.env);
                self.named.extend(named);
            }
        }
    }

    /// Adds what the settings and variables in a command name.
    fn add_settings(&mut self, command: &[Vec<u8>], base: &Path) {
        for key in command {
            // `GIT_CONFIG_KEY_0=KEY GIT_CONFIG_VALUE_0=VALUE`
            let numbered = key.strip_prefix(b"GIT_CONFIG_KEY_").and_then(assignment);
            let Some((number, key)) = numbered else {
                continue;
            };
            let values = command
                .iter()
                .filter_map(|word| assignment(word.strip_prefix(b"GIT_CONFIG_VALUE_")?));
            for (_, value) in values.filter(|(of, _)| *of == number) {
                self.add_setting(key, value, base);
            }
        }
        for (number, word) in command.iter().enumerate() {
            // The option of a setting may be in the same word.
            let options = [&b""[..], b"-c", b"--config=", b"--config-env="];
            for assignment in options
                .iter()
                .filter_map(|option| word.strip_prefix(*option))
            {
                let ends = assignment.iter().enumerate();
                for (end, _) in ends.filter(|(_, byte)| **byte == b'=') {
                    self.add_setting(&assignment[..end], &assignment[end + 1..], base);
                }
            }
            // `git config KEY VALUE`
            if let Some(value) = command.get(number + 1) {
                self.add_setting(word, value, base);
            }
        }
    }

    fn add_setting(&mut self, key: &[u8], value: &[u8], base: &Path) {
        let variable = std::str::from_utf8(key).ok().and_then(role_of_variable);
        if let Some(role) = variable {
            self.named
                .extend(named_by_word(role, value, base, self.env));
        }
        let key = canonical(key);
        let Some(role) = role(&key) else { return };
        let (subsection, of_key) = (subsection(&key), role == SettingRole::AddressPrefix);
        let value = if of_key { subsection } else { value };
        self.named
            .extend(named_by_word(role, value, base, self.env));
        // `--config-env` gives the name of a variable.
        let name = std::str::from_utf8(value).ok();
        if let Some(value) = name.and_then(|name| self.env.get_os(name)) {
            self.named
                .extend(named_by(role, value.as_bytes(), base, self.env));
        }
    }
}

/// Returns what a word of a command names in this role. A shell replaces variables in it.
pub(super) fn named_by_word(
    role: SettingRole,
    word: &[u8],
    base: &Path,
    env: &Environment,
) -> BTreeSet<NamedPath> {
    if matches!(
        role,
        SettingRole::Command | SettingRole::Helper | SettingRole::Alias | SettingRole::OtherTool
    ) {
        return named_by(role, word, base, env);
    }
    let likely = likely_words(word, base, env).into_iter();
    likely
        .flat_map(|word| named_by(role, &word, base, env))
        .collect()
}

/// Returns a word as it is, or the paths that it most likely means if there is a variable in it.
pub(super) fn likely_words(word: &[u8], base: &Path, env: &Environment) -> Vec<Vec<u8>> {
    if !word.iter().any(|byte| b"$`".contains(byte)) {
        return vec![word.to_owned()];
    }
    let likely = paths(word, base, env).into_iter();
    likely
        .filter_map(|(path, is_likely)| is_likely.then(|| path.as_os_str().as_bytes().to_owned()))
        .collect()
}

/// Returns the role of a variable that a command sets.
fn role_of_variable(name: &str) -> Option<SettingRole> {
    match name {
        "GIT_COMMON_DIR" | "GIT_DIR" => Some(SettingRole::Repository),
        "ENV" | "GIT_CONFIG" | "GIT_CONFIG_GLOBAL" | "GIT_CONFIG_SYSTEM" | "PYTHONSTARTUP" => {
            Some(SettingRole::File)
        }
        _ if library_variable(name).is_some() => Some(SettingRole::Libraries),
        _ => variable_role(name),
    }
}

/// Returns whether a missing file counts: a program would run it if it were created.
fn is_created(word: &[u8], used: Use, path: &Path, base: &Path) -> bool {
    let is_name = is_name(path.strip_prefix(base).unwrap_or(path)) && !word.ends_with(b"/");
    let has_slash = word.contains(&b'/');
    match used {
        Use::Script | Use::Module if is_name && !word.starts_with(b"-") => true,
        Use::Program if is_name && has_slash => true,
        Use::Written => false,
        _ => {
            let is_called_script = used != Use::Program && has_script_ending(word);
            (has_slash || is_called_script) && path.parent().is_some_and(Path::is_dir)
        }
    }
}

/// Returns the files that an interpreter runs instead if it gets this path, whether or not they exist.
fn other_files(path: &Path, used: Use) -> Vec<PathBuf> {
    let is_directory = path.is_dir();
    let mut files = Vec::new();
    if is_directory {
        files.extend(MAINS.map(|main| path.join(main)));
    }
    if used == Use::Module && !path.is_file() {
        if is_directory {
            files.push(path.join("package.json"));
        }
        for ending in MODULE_ENDINGS {
            if is_directory {
                files.push(path.join(format!("index.{ending}")));
            }
            let mut file = path.as_os_str().to_owned();
            file.push(".");
            file.push(ending);
            files.push(file.into());
        }
    }
    files
}

/// Returns whether a command may run what is in a directory that another word names.
fn changes_directory(words: &Words) -> bool {
    let changes = |word: &[u8]| {
        matches!(word, b"cd" | b"pushd") || word.starts_with(b"-C") || word.starts_with(b"--chdir")
    };
    words
        .iter()
        .any(|(word, _)| changes(word) || word.contains(&b'$'))
}

/// Returns the file that a word names in a directory, after a variable that may stand for the directory.
fn named_inside(directory: &Path, word: &[u8], used: Use) -> Option<PathBuf> {
    let variable = word.iter().position(|byte| *byte == b'$');
    let slash = word.iter().position(|byte| *byte == b'/');
    let rest = match (variable, slash) {
        (Some(_), Some(slash)) => &word[slash + 1..],
        _ => word,
    };
    if rest.is_empty() || rest.starts_with(b"/") || rest.starts_with(b"-") {
        return None;
    }
    let path = directory.join(as_path(rest));
    let is_run = used.is_script() || used == Use::Program && word.contains(&b'/');
    let is_created = is_run && is_name(&as_path(rest)) && !rest.ends_with(b"/");
    (path.is_file() || is_created && path.symlink_metadata().is_err()).then_some(path)
}

/// Returns whether a path may be the name of a file that is created, and no code.
pub(super) fn is_name(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    !bytes.iter().any(|byte| NOT_IN_NAMES.contains(byte))
}

/// Returns the parts of a word: an option without its name, and what is between separators.
fn parts(word: &[u8]) -> impl Iterator<Item = &[u8]> {
    let begins = |at: &usize| *at > 0 && SEPARATORS.contains(&word[at - 1]);
    let of_option = (word.starts_with(b"-") && word.len() > 2).then_some(2);
    let starts = (0..word.len()).filter(begins).chain(of_option);
    let parts = starts.chain([0]).flat_map(|start| {
        let rest = &word[start..];
        let end = rest.iter().position(|byte| SEPARATORS.contains(byte));
        [rest, &rest[..end.unwrap_or(rest.len())]]
    });
    parts.filter(move |part| *part != word)
}

/// Splits a word at its first `=`.
fn assignment(word: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = word.iter().position(|byte| *byte == b'=')?;
    Some((&word[..end], &word[end + 1..]))
}

/// Whether a word sets a variable, or a setting of git (`-c core.pager=less`).
pub(super) fn is_assignment(word: &[u8]) -> bool {
    let end = word.iter().position(|byte| *byte == b'=').unwrap_or(0);
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-".contains(byte);
    end > 0 && word[..end].iter().all(is_of_name)
}

pub(super) fn is_keyword(word: &[u8]) -> bool {
    KEYWORDS.iter().any(|keyword| keyword.as_bytes() == word)
}

/// Returns the values of variables in a command, and the words of a loop.
fn values(command: &[Vec<u8>]) -> impl Iterator<Item = &[u8]> {
    let assigned = command.iter().filter(|word| is_assignment(word));
    let assigned = assigned.filter_map(|word| Some(assignment(word)?.1));
    let of_loop = command.iter().skip_while(|word| *word != b"in").skip(1);
    assigned.chain(of_loop.map(Vec::as_slice))
}

/// Whether a word is a variable or the output of a command, and not a path that begins with one.
fn is_variable(word: &[u8]) -> bool {
    let is_whole = !word.contains(&b'/') || word.ends_with(b"}") || word.ends_with(b")");
    word.starts_with(b"$") && !word.starts_with(b"$(") && is_whole
}

/// Returns whether the word before is an option of a program in the command that takes a file with commands.
fn is_file_option(command: &[Vec<u8>], before: Option<&[u8]>) -> bool {
    let mut options = FILE_OPTIONS.iter();
    before.is_some_and(|before| {
        options.any(|(program, option)| {
            let is_program = |word: &Vec<u8>| name_of_program(word) == program.as_bytes();
            option.as_bytes() == before && command.iter().any(is_program)
        })
    })
}

/// Returns the name of a program without its directory and its version.
fn name_of_program(word: &[u8]) -> &[u8] {
    let name = word.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let is_of_version = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let end = name.iter().rposition(|byte| !is_of_version(byte));
    end.map_or(b"", |end| &name[..=end])
}

/// Returns how the words after an interpreter are used; `None` if the word names none.
fn interpreter_of(word: &[u8]) -> Option<Use> {
    if word == b"." {
        return Some(Use::Script);
    }
    // A setting in quotes may end with it (`ssh -o "ProxyCommand=sh connect"`).
    let word = word.rsplit(|byte| *byte == b'=').next().unwrap_or_default();
    let name = name_of_program(word);
    let is_named = |one: &&str| one.as_bytes().eq_ignore_ascii_case(name);
    if MODULE_INTERPRETERS.iter().any(is_named) {
        return Some(Use::Module);
    }
    INTERPRETERS.iter().any(is_named).then_some(Use::Script)
}

fn has_script_ending(word: &[u8]) -> bool {
    as_path(word)
        .extension()
        .and_then(|ending| ending.to_str())
        .is_some_and(|ending| SCRIPTS.iter().any(|one| ending.eq_ignore_ascii_case(one)))
}

/// Returns the paths that a word may mean, and whether they count if they do not exist. Up to any `/`, a variable or the output of
/// a command may stand for `base`; most likely up to the first one after it.
fn paths(word: &[u8], base: &Path, env: &Environment) -> Vec<(PathBuf, bool)> {
    let home = [&b"$HOME/"[..], b"${HOME}/"]
        .iter()
        .find_map(|home| word.strip_prefix(*home));
    if let Some(below) = home {
        let path = env.home().map(|home| home.join(as_path(below)));
        return path.map(|path| (path, true)).into_iter().collect();
    }
    let variable = word.iter().rposition(|byte| b"$`)}".contains(byte));
    let variable = variable.filter(|_| word.contains(&b'$') || word.contains(&b'`'));
    let literal = path_in(word, base, env).map(|path| (path, variable.is_none()));
    let mut paths: Vec<(PathBuf, bool)> = literal.into_iter().collect();
    if let Some(variable) = variable {
        let slashes = word.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let mut is_first = true;
        for (at, _) in slashes {
            let rest = &word[at + 1..];
            if !rest.is_empty() && !rest.starts_with(b"/") {
                let is_likely = at > variable && std::mem::take(&mut is_first);
                paths.push((base.join(as_path(rest)), is_likely));
            }
        }
    }
    paths
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test lays out files by hand")]
mod tests {
    use super::*;

    fn laid_out() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for directory in ["tools", "src"] {
            std::fs::create_dir_all(dir.path().join(directory)).unwrap();
        }
        for file in [
            "tools/my check",
            "tools/check",
            "main",
            "test",
            "sh",
            "tools/__main__.py",
            "tools/a,b",
            "tools/a:b",
            "tools/v=1",
            "tools/{x}",
        ] {
            std::fs::write(dir.path().join(file), "").unwrap();
        }
        dir
    }

    /// Returns what a value names, relative to the top; other places than files have their kind in front.
    fn named_files(role: SettingRole, value: &str, top: &Path) -> Vec<String> {
        let joined = |words: &[Vec<u8>]| String::from_utf8(words.join(&b' ')).unwrap();
        let below = |path: &Path| path.strip_prefix(top).unwrap_or(path).display().to_string();
        let text = |named: &NamedPath| match named {
            NamedPath::Path(path) => below(path),
            NamedPath::Directory(path) => format!("directory {}", below(path)),
            NamedPath::Hooks(path) => format!("hooks {}", below(path)),
            NamedPath::Repository(path) => format!("repository {}", below(path)),
            NamedPath::Repositories(path) => format!("repositories {}", below(path)),
            NamedPath::WorkTree(path) => format!("work tree {}", below(path)),
            NamedPath::Address(text) => format!("address {}", String::from_utf8_lossy(text)),
            NamedPath::Remote(text) => format!("remote {}", String::from_utf8_lossy(text)),
            NamedPath::Remotes(words) => format!("remotes {}", joined(words)),
            NamedPath::FirstRemote(words) => format!("first remote {}", joined(words)),
            NamedPath::Program(path) => format!("program {}", below(path)),
            NamedPath::Library(path) => format!("library {}", below(path)),
        };
        let env = Environment::default();
        let named = named_by(role, value.as_bytes(), top, &env);
        named.iter().map(text).collect()
    }

    #[test]
    fn files_of_commands_are_named() {
        let dir = laid_out();
        for (value, files) in [
            ("tools/check %f", &["tools/check"][..]),
            ("sh tools/my\\ check", &["tools/check", "tools/my check"]),
            ("'tools/my check'", &["tools/my", "tools/my check"]),
            ("sh tools/\"my check\"", &["tools/check", "tools/my check"]),
            ("true\nsh tools/new", &["tools/new"]),
            ("sh new.sh", &["new.sh"]),
            ("$PWD/tools/check", &["tools/check"]),
            (
                "$(git rev-parse --show-toplevel)/tools/check",
                &["tools/check"],
            ),
            ("sh -c 'D=tools; sh $D/check'", &["check", "tools/check"]),
            ("cd tools && sh check", &["check", "tools/check"]),
            ("cd tools && ./new", &["new", "tools/./new"]),
            ("diff tools", &[]),
            ("sh tools/a,b", &["tools/a", "tools/a,b"]),
            ("sh tools/a:b", &["tools/a", "tools/a:b"]),
            ("sh tools/v=1", &["tools/v", "tools/v=1"]),
            ("sh tools/{x}", &["tools/{x}"]),
            ("X=tools/check sh -f", &["tools/check"]),
            ("tool --with=tools/check,x", &["tools/check"]),
            ("tool -ftools/check", &["tools/check"]),
            ("elsewhere/new", &["elsewhere/new"]),
            ("timeout 5 elsewhere/new", &["elsewhere/new"]),
            ("sh elsewhere/new x/y", &["elsewhere/new", "x/y"]),
            ("sh sh", &["sh"]),
            ("sh 'my new'", &["my new"]),
            ("sh -c 'my new'", &[]),
            ("env A=b python3.12 -u main", &["main"]),
            ("tool -F main", &["main"]),
            ("main", &[]),
            ("helper.sh --get", &[]),
            ("make all", &[]),
            ("less -R src", &[]),
            ("cat new", &[]),
            ("sed s/a/b/", &[]),
            ("awk '{print $1}'", &[]),
            ("git log --format=%h/%s main", &[]),
            ("git checkout main | less", &[]),
            ("find . new", &[]),
            ("", &[]),
        ] {
            assert_eq!(
                named_files(SettingRole::Command, value, dir.path()),
                files,
                "{value:?}"
            );
        }
    }

    #[test]
    fn scripts_count_behind_any_program() {
        let dir = laid_out();
        for value in [
            "sh new",
            "timeout 5 sh new",
            "nice -n 5 sh new",
            "env -u X sh new",
            "setsid sh new",
            "stdbuf -oL /bin/sh new",
            "flock sh new",
            "eval sh new",
            ". new",
            "if true; then sh new; fi",
            "bash -c 'exec -a x sh new'",
            "Rscript new",
            "sh <new",
            "cat new | sh",
            "cat new | python3 -",
        ] {
            let files = named_files(SettingRole::Command, value, dir.path());
            assert!(files.contains(&"new".to_owned()), "{value:?}: {files:?}");
        }
        let pipe = named_files(SettingRole::Command, "bash -o pipefail new", dir.path());
        assert_eq!(pipe, ["new", "pipefail"]);
        assert_eq!(
            named_files(SettingRole::Command, "uv run new.py", dir.path()),
            ["new.py", "run"]
        );
    }

    #[test]
    fn other_files_of_interpreters_are_named() {
        let dir = laid_out();
        std::fs::remove_file(dir.path().join("tools/__main__.py")).unwrap();
        let python = named_files(SettingRole::Command, "python3 tools", dir.path());
        assert_eq!(python, ["tools/__main__.py", "tools/__main__.pyc"]);
        let missing = named_files(SettingRole::Command, "node new", dir.path());
        for file in ["new", "new.js", "new.ts", "new.json"] {
            assert!(missing.contains(&file.to_owned()), "{missing:?}");
        }
        let directory = named_files(SettingRole::Command, "node tools", dir.path());
        for file in ["tools.js", "tools/index.js", "tools/package.json"] {
            assert!(directory.contains(&file.to_owned()), "{directory:?}");
        }
        assert_eq!(
            named_files(SettingRole::Command, "node main", dir.path()),
            ["main"]
        );
    }

    #[test]
    fn aliases_are_commands_of_git_or_shell() {
        let dir = laid_out();
        for (value, files) in [
            ("log --format=%h/%s tools/check", &[][..]),
            ("log --format='%h sh x/y'", &[]),
            ("log --oneline", &[]),
            ("checkout main", &[]),
            ("!git checkout main", &[]),
            ("!sh tools/check", &["tools/check"]),
            ("-c core.pager=tools/check log", &["tools/check"]),
            ("-ccore.pager=tools/check log", &["tools/check"]),
            ("difftool -x tools/check", &["tools/check"]),
            ("submodule foreach sh new", &["new", "sh"]),
        ] {
            assert_eq!(
                named_files(SettingRole::Alias, value, dir.path()),
                files,
                "{value:?}"
            );
        }
    }

    #[test]
    fn settings_in_commands_are_named() {
        let dir = laid_out();
        for (value, places) in [
            ("-c core.hooksPath=gh commit", &["hooks gh"][..]),
            ("!git -c core.hooksPath=gh commit", &["hooks gh"]),
            ("!config core.hooksPath gh", &["hooks gh"]),
            ("config core.hooksPath gh", &["hooks gh"]),
            ("-c core.attributesFile=at add", &["at"]),
            ("--git-dir=dot.g status", &["repository dot.g"]),
            ("--git-dir dot.g status", &["repository dot.g"]),
            ("!GIT_DIR=dot.g git status", &["repository dot.g"]),
            ("!export GIT_DIR=dot.g; git status", &["repository dot.g"]),
            ("-C new status", &["work tree new"]),
            ("!cd new && git status", &["work tree new"]),
            ("!git -C \"$(git rev-parse --show-toplevel)\" status", &[]),
            ("!git fetch ${1:-origin}", &[]),
            ("!GIT_CONFIG_GLOBAL=gc git status", &["gc"]),
            (
                "!GIT_CONFIG_KEY_0=core.hooksPath GIT_CONFIG_VALUE_0=gh git commit",
                &["hooks gh"],
            ),
            ("--exec-path=ex zz", &["directory ex"]),
            ("!GIT_EXEC_PATH=ex git zz", &["directory ex"]),
            ("clone --template=tp", &["directory tp"]),
            ("push -q m HEAD", &["first remote m"]),
            ("push -o x m HEAD", &["first remote x m"]),
            ("push --repo=m", &["first remote m"]),
            ("send-pack --all m", &["first remote m"]),
            ("remote add o m", &["remotes o m"]),
            ("archive --remote m HEAD x", &["remotes m"]),
            ("!D=m; git push $D HEAD", &["first remote m"]),
            ("-c remote.o.url=m push o", &["address m", "first remote o"]),
            ("-c user.name=new commit", &[]),
        ] {
            assert_eq!(
                named_files(SettingRole::Alias, value, dir.path()),
                places,
                "{value:?}"
            );
        }
        let env = Environment::from_pairs([("MON", "./mon")], dir.path());
        let named = named_by(
            SettingRole::Alias,
            b"--config-env=core.fsmonitor=MON status",
            dir.path(),
            &env,
        );
        let program = NamedPath::Path(dir.path().join("./mon"));
        assert_eq!(named, BTreeSet::from([program]));
    }
}
