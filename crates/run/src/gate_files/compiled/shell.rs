//! Parses lines of shell commands: what runs, where its output goes, and the arguments of a compiler.

use std::collections::BTreeSet;

use crucible_host::words::shell_word;

use super::super::{PREFIXES, file_name, is_measure, setting};

/// Names of compilers and linkers that build programs from sources and objects, without a prefix for another machine and a version.
const COMPILERS: [&str; 14] = [
    "c++", "c99", "cc", "clang", "clang++", "g++", "gcc", "gfortran", "icc", "icx", "ld", "nvcc",
    "tcc", "zig",
];
/// Words besides [`PREFIXES`] that precede a compiler or program.
const WRAPPERS: [&str; 12] = [
    "bear",
    "ccache",
    "catchsegv",
    "chrt",
    "distcc",
    "icecc",
    "libtool",
    "prlimit",
    "scan-build",
    "strace",
    "unbuffer",
    "valgrind",
];
/// Compiler options whose value is a separate word.
const WITH_VALUE: [&str; 20] = [
    "-D",
    "-I",
    "-L",
    "-MF",
    "-MQ",
    "-MT",
    "-T",
    "-U",
    "-Xlinker",
    "-arch",
    "-classpath",
    "-cp",
    "-d",
    "-include",
    "-isystem",
    "-l",
    "-x",
    "--crate-name",
    "--edition",
    "--extern",
];

/// Whom the output of a command is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputUse {
    /// Nobody: its exit code counts.
    Open,
    /// Another command.
    Piped,
}

/// One command of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShellCommand {
    /// Its words, without quotes.
    pub(super) words: Vec<String>,
    pub(super) output: OutputUse,
    /// The file that its output is written to.
    pub(super) file: Option<String>,
}

/// What the arguments of a compiler ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Compilation {
    pub(super) inputs: Vec<String>,
    pub(super) output: String,
    /// Whether the output is not a program yet.
    pub(super) is_object: bool,
    /// Whether an input is a package, a directory of sources.
    pub(super) is_package: bool,
    /// Whether the program runs at once.
    pub(super) is_run: bool,
}

/// Parses the commands of a text.
pub(super) fn commands(text: &str) -> Vec<ShellCommand> {
    let mut reader = Lexer::default();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => reader
                .word
                .extend(letters.next().filter(|next| *next != '\n')),
            '\'' => {
                reader.is_quoted = true;
                reader
                    .word
                    .extend(letters.by_ref().take_while(|next| *next != '\''));
            }
            '"' => {
                reader.is_quoted = true;
                while let Some(next) = letters.next().filter(|next| *next != '"') {
                    match next {
                        '\\' => reader.word.extend(letters.next()),
                        // The word is the output of another command.
                        '$' if letters.peek() == Some(&'(') => {
                            letters.next();
                            reader.capture();
                            while let Some(next) = letters.next().filter(|next| *next != ')') {
                                if next.is_whitespace() {
                                    reader.end_word()
                                } else {
                                    reader.word.push(next)
                                }
                            }
                            reader.release();
                        }
                        next => reader.word.push(next),
                    }
                }
            }
            '#' if reader.word.is_empty() => {
                while letters.next_if(|next| *next != '\n').is_some() {}
            }
            ' ' | '\t' | '\r' => reader.end_word(),
            '$' if letters.peek() == Some(&'(') => {
                letters.next();
                reader.capture();
            }
            '<' if letters.peek() == Some(&'(') => {
                letters.next();
                reader.capture();
            }
            '`' if reader.captured.last() == Some(&'`') => reader.release(),
            '`' => {
                reader.capture();
                reader.captured.pop();
                reader.captured.push('`');
            }
            '(' => reader.end(OutputUse::Open),
            ')' if reader.captured.is_empty() => reader.end(OutputUse::Open),
            ')' => reader.release(),
            ';' | '\n' => reader.end(OutputUse::Open),
            '&' if matches!(letters.peek(), Some('>')) => {}
            '&' => {
                letters.next_if(|next| *next == '&');
                reader.end(OutputUse::Open);
            }
            '|' if letters.next_if(|next| *next == '|').is_some() => reader.end(OutputUse::Open),
            '|' => reader.end(OutputUse::Piped),
            '>' => {
                letters.next_if(|next| matches!(next, '>' | '|'));
                if letters.next_if(|next| *next == '&').is_some() {
                    while letters
                        .next_if(|next| next.is_ascii_digit() || *next == '-')
                        .is_some()
                    {}
                } else {
                    reader.redirect(true);
                }
                if matches!(reader.word.as_str(), "1" | "2") {
                    reader.word.clear();
                }
            }
            '<' => reader.redirect(false),
            letter => reader.word.push(letter),
        }
    }
    reader.end(OutputUse::Open);
    reader.found
}

#[derive(Default)]
struct Lexer {
    found: Vec<ShellCommand>,
    words: Vec<String>,
    word: String,
    is_quoted: bool,
    file: Option<String>,
    /// The target of the next word if it is a redirection: whether it is the output's file.
    redirected: Option<bool>,
    /// The enclosing commands, for command substitution.
    outer: Vec<(Vec<String>, String, Option<String>)>,
    captured: Vec<char>,
}

impl Lexer {
    fn end_word(&mut self) {
        if self.word.is_empty() && !self.is_quoted {
            return;
        }
        self.is_quoted = false;
        let word = std::mem::take(&mut self.word);
        match self.redirected.take() {
            Some(true) => self.file = Some(word),
            Some(false) => {}
            None => self.words.push(word),
        }
    }

    fn redirect(&mut self, is_output: bool) {
        // Standard error is not the command's output.
        let is_error = self.word == "2";
        if matches!(self.word.as_str(), "0" | "1" | "2") {
            self.word.clear();
        }
        self.end_word();
        self.redirected = Some(is_output && !is_error);
    }

    fn end(&mut self, output: OutputUse) {
        self.end_word();
        self.redirected = None;
        let output = if self.captured.is_empty() {
            output
        } else {
            OutputUse::Piped
        };
        let (words, file) = (std::mem::take(&mut self.words), self.file.take());
        if !words.is_empty() {
            self.found.push(ShellCommand {
                words,
                output,
                file,
            });
        }
    }

    fn capture(&mut self) {
        self.outer.push((
            std::mem::take(&mut self.words),
            std::mem::take(&mut self.word),
            self.file.take(),
        ));
        self.captured.push('(');
    }

    fn release(&mut self) {
        self.end(OutputUse::Piped);
        self.captured.pop();
        if let Some((words, word, file)) = self.outer.pop() {
            (self.words, self.word, self.file) = (words, word, file);
        }
    }
}

/// The words from the program on: without settings, words that another command follows, and their options and numbers.
pub(super) fn from_program(words: &[String]) -> &[String] {
    let is_before = |word: &String| {
        PREFIXES.contains(&word.as_str())
            || WRAPPERS.contains(&file_name(word))
            || word.starts_with('-')
            || is_measure(word)
            || setting(word).is_some()
    };
    let at = words
        .iter()
        .position(|word| !is_before(word))
        .unwrap_or(words.len());
    words.get(at..).unwrap_or_default()
}

/// Returns whether a program of this name compiles, or is the usual variable for a compiler.
pub(in super::super) fn is_compiler(program: &str) -> bool {
    let variable = program.trim_start_matches(['$', '{', '(']);
    if program.starts_with('$') {
        let name = variable.split([':', '}', ')']).next().unwrap_or_default();
        return matches!(
            name,
            "CC" | "CXX" | "CPP" | "LD" | "AR" | "RUSTC" | "JAVAC" | "FC"
        );
    }
    let name = file_name(program);
    let known = name
        .trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
        .trim_end_matches('-');
    let is_of = |compiler: &&str| {
        [known, name].iter().any(|name| {
            name.strip_suffix(*compiler)
                .is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('-'))
        })
    };
    matches!(name, "rustc" | "javac" | "ar" | "gcc-ar" | "llvm-ar") || COMPILERS.iter().any(is_of)
}

/// What the commands in these words compile, as it is written there.
pub(in super::super) fn compiled_by(command: &[String]) -> BTreeSet<String> {
    let full_text = command
        .iter()
        .map(|word| shell_word(word))
        .collect::<Vec<_>>()
        .join(" ");
    let texts = command
        .iter()
        .filter(|word| word.contains(char::is_whitespace))
        .chain([&full_text]);
    let compiled = texts
        .flat_map(|text| commands(text))
        .filter_map(|found| compilation(from_program(&found.words)));
    compiled.flat_map(|made| made.inputs).collect()
}

/// Returns what a command compiles, if anything.
pub(super) fn compilation(words: &[String]) -> Option<Compilation> {
    let (program, rest) = words.split_first()?;
    let name = file_name(program);
    if name == "go" {
        return of_go(rest);
    }
    if !is_compiler(program) {
        return None;
    }
    let is_archive = name.ends_with("ar") || name.starts_with("$AR") || name.starts_with("${AR");
    let mut made = Compilation {
        inputs: Vec::new(),
        output: String::new(),
        is_object: is_archive,
        is_package: false,
        is_run: false,
    };
    let mut is_only_compiled = false;
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        if word == "-o" {
            made.output = words.next().cloned().unwrap_or_default();
        } else if let Some(file) = word
            .strip_prefix("-o")
            .filter(|file| !file.is_empty() && !is_archive)
        {
            made.output = file.trim_start_matches('=').to_owned();
        } else if matches!(
            word.as_str(),
            "-c" | "-S" | "-E" | "-MM" | "-M" | "-fsyntax-only"
        ) {
            is_only_compiled = true;
        } else if WITH_VALUE.contains(&word.as_str()) {
            words.next();
        } else if is_archive && made.output.is_empty() && super::is_object(word) {
            made.output = word.clone();
        } else if !word.starts_with('-') && (super::is_source(word) || super::is_object(word)) {
            made.inputs.push(word.clone());
        }
    }
    if made.inputs.is_empty() {
        return None;
    }
    if is_only_compiled {
        made.is_object = true;
    }
    let first = made.inputs.first().map_or("", |word| file_name(word));
    let stem = first.rsplit_once('.').map_or(first, |(stem, _)| stem);
    if made.output.is_empty() {
        made.output = match (name, is_only_compiled) {
            ("rustc", _) => stem.to_owned(),
            ("javac", _) => JAVA.to_owned(),
            (_, true) => format!("{stem}.o"),
            (_, false) => "a.out".to_owned(),
        };
    }
    Some(made)
}

/// The output of a compiler that builds classes.
pub(super) const JAVA: &str = "<classes>";

fn of_go(rest: &[String]) -> Option<Compilation> {
    let (command, rest) = rest.split_first()?;
    let is_run = command == "run";
    if !is_run && command != "build" {
        return None;
    }
    let mut output = None;
    let mut inputs: Vec<String> = Vec::new();
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-o" => output = words.next().cloned(),
            "-C" | "-exec" | "-gcflags" | "-ldflags" | "-mod" | "-p" | "-tags" => {
                words.next();
            }
            word if word.starts_with('-') => {}
            // The program's arguments follow the sources.
            word if is_run
                && !inputs.is_empty()
                && !(word.ends_with(".go") && inputs[0].ends_with(".go")) =>
            {
                break;
            }
            word => inputs.push(word.to_owned()),
        }
    }
    if is_run && !inputs.iter().all(|input| input.ends_with(".go")) {
        // All of such a package counts by itself.
        return None;
    }
    let last = inputs
        .last()
        .map_or("", |word| file_name(word.trim_end_matches('/')));
    let stem = last.strip_suffix(".go").unwrap_or(last).to_owned();
    let output = if is_run {
        "<run>".to_owned()
    } else {
        output.unwrap_or(stem)
    };
    let is_package = !inputs.iter().any(|input| input.ends_with(".go"));
    (!inputs.is_empty()).then_some(Compilation {
        inputs,
        output,
        is_object: false,
        is_package,
        is_run,
    })
}

/// The class that a command of Java runs.
pub(super) fn java_class(words: &[String]) -> Option<&str> {
    let (program, rest) = words.split_first()?;
    if file_name(program) != "java" {
        return None;
    }
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-cp" | "-classpath" | "--class-path" | "-p" | "--module-path" => {
                words.next();
            }
            "-jar" => return None,
            word if word.starts_with('-') => {}
            word => return (!word.ends_with(".java")).then_some(word),
        }
    }
    None
}
