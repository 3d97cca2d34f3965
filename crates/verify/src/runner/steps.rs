//! The steps of a script of `package.json`, such as `eslint . && c8 mocha` or `npm run lint && npm run unit`.
//!
//! Scripts that a step calls are followed, with what runs before and after them. Nothing is expanded or run here. A step is
//! for a shell to run. A script stays whole where its steps depend on each other in another way than by `&&`: one changes
//! the shell for those behind it, such as `cd web`, or there is `;`, `||`, a loop or a comment.

use std::cell::Cell;

use crucible_host::words::shell_word;

use super::Call;
use super::scripts::script_words;
use super::spec::Runner;

/// Most steps of a script.
const MAX_STEPS: usize = 40;
/// Most scripts that are followed: scripts that call others several times would take forever.
const MAX_VISITS: usize = 200;
/// How deep scripts may call scripts.
const MAX_DEPTH: usize = 6;

/// Words of a shell that change it for what follows, or that begin a compound command.
const SHELL: [&str; 37] = [
    ".", "alias", "builtin", "case", "cd", "command", "declare", "do", "done", "elif", "else",
    "esac", "eval", "exec", "exit", "export", "fi", "for", "function", "if", "local", "popd",
    "pushd", "read", "readonly", "return", "set", "shift", "source", "then", "trap", "ulimit",
    "umask", "unset", "until", "wait", "while",
];

/// Test programs without reports that can be read, beside the known runners.
const TEST_PROGRAMS: [&str; 14] = [
    "ava",
    "borp",
    "brittle",
    "cypress",
    "jasmine",
    "karma",
    "lab",
    "playwright",
    "qunit",
    "tap",
    "tape",
    "testem",
    "uvu",
    "wtr",
];

/// Programs that run a file of the repository, which may hold tests.
const INTERPRETERS: [&str; 12] = [
    "babel-node",
    "bash",
    "bun",
    "deno",
    "electron",
    "esno",
    "node",
    "sh",
    "ts-node",
    "tsm",
    "tsx",
    "zx",
];

/// Those of them whose files may run several programs.
const SHELLS: [&str; 3] = ["bash", "sh", "zx"];

/// Programs that run a task by its name.
const TASK_RUNNERS: [&str; 11] = [
    "bun", "deno", "just", "lerna", "make", "npm", "nx", "pnpm", "turbo", "wireit", "yarn",
];

/// Parts of the names of scripts that do not end by themselves.
const SERVERS: [&str; 9] = [
    "dev",
    "mock",
    "preview",
    "proxy",
    "serve",
    "server",
    "start",
    "storybook",
    "watch",
];

/// Options whose value is not the file that an interpreter runs.
const WITH_VALUE: [&str; 6] = [
    "--experimental-loader",
    "--import",
    "--loader",
    "--require",
    "-C",
    "-r",
];

/// One step.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// What a shell runs: the step itself, or the script that has no other.
    pub(super) command: String,
    /// The words of the program in the end; patterns of names are not expanded.
    pub(super) words: Vec<String>,
    /// Its text.
    pub(super) text: String,
    /// Whether it starts one program only, whose tests then explain how it ends.
    pub(super) is_one: bool,
}

/// Every runner.
type Runners = &'static [&'static dyn Runner];

/// The scripts of a manifest.
pub(super) struct Scripts<'m> {
    pub(super) manifest: &'m serde_json::Value,
    /// The package manager.
    pub(super) manager: &'m str,
    /// Whether `pre` and `post` scripts run.
    pub(super) has_hooks: bool,
    pub(super) runners: Runners,
    /// How many scripts were followed.
    pub(super) visits: Cell<usize>,
}

/// What calls a script.
#[derive(Clone, Copy)]
struct Caller<'c> {
    /// The package manager.
    manager: &'c str,
    /// Commands that set variables.
    env: &'c str,
    /// How many more levels of scripts may follow.
    depth: usize,
}

impl Scripts<'_> {
    /// Returns the steps of the script `name` and of those around it; `None` if they cannot be separated.
    pub(super) fn steps(&self, name: &str) -> Option<Vec<Step>> {
        parts(self.text(name)?)?;
        let from = Caller {
            manager: self.manager,
            env: "",
            depth: MAX_DEPTH,
        };
        let mut steps = Vec::new();
        self.add_called(name, from, &mut steps)?;
        Some(steps)
    }

    /// Returns whether a step starts a program that runs tests, as far as its words show.
    pub(super) fn runs_tests(&self, words: &[String]) -> bool {
        let Some(call) = Call::parse(words) else {
            return false;
        };
        let mut after_option = false;
        let mut files = call.args.iter().filter(|word| {
            let is_value =
                std::mem::replace(&mut after_option, WITH_VALUE.contains(&word.as_str()));
            !is_value && !word.starts_with('-')
        });
        self.is_runner(&call)
            || TEST_PROGRAMS.contains(&call.program)
            || names_tests(call.program)
            || INTERPRETERS.contains(&call.program)
                && files.next().is_some_and(|file| names_tests(file))
            || TASK_RUNNERS.contains(&call.program) && call.has("test")
    }

    fn is_runner(&self, call: &Call<'_>) -> bool {
        let mut known = self.runners.iter();
        known.any(|known| !known.calls_others() && known.runs(call))
    }

    /// The name of the JavaScript runner that a step starts.
    pub(super) fn runner(&self, words: &[String]) -> Option<&'static str> {
        let call = Call::parse(words)?;
        self.runners
            .iter()
            .find(|known| {
                known.suite() == "javascript" && !known.calls_others() && known.runs(&call)
            })
            .map(|known| known.id())
    }

    /// The text of a script.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.manifest.get("scripts")?.get(name)?.as_str()
    }

    /// Adds the steps of a script that is called by its name, and of those that run before and after it.
    fn add_called(&self, name: &str, from: Caller<'_>, steps: &mut Vec<Step>) -> Option<()> {
        // A package manager that runs a script as a whole runs those around it too.
        let has_hooks = self.has_hooks && self.text(name).and_then(parts).is_some();
        if has_hooks {
            self.add(&format!("pre{name}"), from, steps)?;
        }
        self.add(name, from, steps)?;
        if has_hooks {
            self.add(&format!("post{name}"), from, steps)?;
        }
        Some(())
    }

    /// Adds the steps of a script, if it exists.
    fn add(&self, name: &str, from: Caller<'_>, steps: &mut Vec<Step>) -> Option<()> {
        let Some(text) = self.text(name) else {
            return Some(());
        };
        let Caller { manager, env, .. } = from;
        let depth = from.depth.checked_sub(1)?;
        self.visits.set(self.visits.get() + 1);
        if self.visits.get() > MAX_VISITS {
            return None;
        }
        let by_name = format!("{} run {}", shell_word(manager), shell_word(name));
        let Some(parts) = parts(text) else {
            steps.push(Step {
                command: format!("{env}{by_name}"),
                words: self.test_words(text),
                text: by_name,
                is_one: false,
            });
            return Some(());
        };
        let has = |kind: &str| self.has_hooks && self.text(&format!("{kind}{name}")).is_some();
        let is_top = from.depth == MAX_DEPTH;
        let event = match is_top {
            true => String::new(),
            false => format!("export npm_lifecycle_event={}; ", shell_word(name)),
        };
        let is_alone = parts.len() == 1 && !has("pre") && !has("post");
        for part in parts {
            if steps.len() >= MAX_STEPS {
                return None;
            }
            let step = |words: &[String], is_one: bool| Step {
                command: if is_alone {
                    format!("{env}{by_name}")
                } else {
                    format!("{env}{event}{part}")
                },
                words: words.to_vec(),
                text: part.to_owned(),
                is_one,
            };
            let Some(words) = script_words(part) else {
                // A pipe or a variable is for the shell that runs the step.
                steps.push(step(&self.test_words(part), false));
                continue;
            };
            let words = self.direct(&words);
            let Some(call) = Call::parse(words) else {
                steps.push(step(words, false));
                continue;
            };
            let Called::Scripts { names, is_plain } = self.called(&call)? else {
                let is_script =
                    INTERPRETERS.contains(&call.program) && !SHELLS.contains(&call.program);
                let is_one = self.is_runner(&call)
                    || TEST_PROGRAMS.contains(&call.program)
                    || is_script && self.runs_tests(words);
                steps.push(step(words, is_one));
                continue;
            };
            let launchers = words.get(..words.len() - call.args.len() - 1)?;
            if let Some(added) = assignments(launchers).filter(|_| is_plain) {
                let is_manager = MANAGERS.contains(&call.program);
                let inner = Caller {
                    manager: if is_manager { call.program } else { manager },
                    env: &format!("{env}{added}"),
                    depth,
                };
                for name in names {
                    self.add_called(&name, inner, steps)?;
                }
            } else {
                // A program around scripts, such as one that measures coverage, or arguments for one.
                let mut inner = Vec::new();
                for name in &names {
                    self.add(name, Caller { depth, ..from }, &mut inner)?;
                }
                let is_one = matches!(inner.as_slice(), [inner] if inner.is_one);
                let tests = inner.iter().find(|inner| self.runs_tests(&inner.words));
                steps.push(step(tests.map_or(words, |inner| &inner.words), is_one));
            }
        }
        Some(())
    }

    /// Returns the words from the first program on that runs tests, in a text that only a shell can read.
    fn test_words(&self, text: &str) -> Vec<String> {
        let words: Vec<String> = text
            .split(|c: char| c.is_whitespace() || ";&|()".contains(c))
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect();
        let starts = (0..words.len()).map(|at| &words[at..]);
        let mut tests = starts.filter(|words| self.runs_tests(words));
        tests.next().unwrap_or_default().to_vec()
    }

    fn called(&self, call: &Call<'_>) -> Option<Called> {
        let operands = || call.args.iter().filter(|word| !word.starts_with('-'));
        let options = || call.args.iter().take_while(|word| *word != "--");
        let has = |names: &[&str]| options().any(|word| names.contains(&word.as_str()));
        // npm passes on what stands behind `--`, and operands; the others everything.
        let is_plain = |name: &String| {
            let mut behind = call.args.iter().skip_while(|word| *word != name).skip(1);
            behind.all(|word| call.program == "npm" && word.starts_with('-') && word != "--")
        };
        let one = |name: &String, script: &str| {
            self.text(script)?;
            Some(Called::Scripts {
                names: vec![script.to_owned()],
                is_plain: is_plain(name),
            })
        };
        match call.program {
            "run-s" | "run-p" | "npm-run-all" | "npm-run-all2" => {
                // Only the first one has to end.
                if has(&["-r", "--race"]) {
                    return None;
                }
                let goes_on = ["-c", "--continue-on-error", "-p", "--parallel"];
                let is_sequence = call.program != "run-p" && !has(&goes_on);
                let mut names = Vec::new();
                for pattern in operands() {
                    names.extend(self.matching_scripts(pattern)?);
                }
                let ends = |name: &String| !name.split(':').any(|part| SERVERS.contains(&part));
                (is_sequence || names.iter().all(ends)).then_some(Called::Scripts {
                    names,
                    is_plain: true,
                })
            }
            "npm" | "pnpm" | "yarn" | "bun" => {
                // Workspaces run at the same time.
                let elsewhere = [
                    "-r",
                    "--recursive",
                    "-w",
                    "-ws",
                    "--workspaces",
                    "--if-present",
                ];
                let other = |word: &String| {
                    ["--filter", "--workspace", "--prefix", "--cwd", "-C"]
                        .iter()
                        .any(|option| word.starts_with(option))
                };
                if has(&elsewhere) || options().any(other) {
                    return Some(Called::Program);
                }
                let mut operands = operands();
                let first = operands.next()?;
                match first.as_str() {
                    "run" | "run-script" => {
                        let name = operands.next()?;
                        match name
                            .strip_prefix("/^")
                            .and_then(|rest| rest.strip_suffix('/'))
                        {
                            Some(prefix) if call.program == "pnpm" => Some(Called::Scripts {
                                names: self.beginning_with(prefix)?,
                                is_plain: is_plain(name),
                            }),
                            _ => one(name, name),
                        }
                    }
                    "test" | "t" | "tst" if call.program != "bun" => one(first, "test"),
                    "workspace" | "workspaces" | "recursive" | "multi" | "m" => {
                        Some(Called::Program)
                    }
                    name if call.program != "npm" && self.text(name).is_some() => one(first, name),
                    _ => Some(Called::Program),
                }
            }
            _ => Some(Called::Program),
        }
    }

    /// The scripts of a pattern such as `lint:*`.
    fn matching_scripts(&self, pattern: &str) -> Option<Vec<String>> {
        match pattern.split_once('*') {
            None => self.text(pattern).map(|_| vec![pattern.to_owned()]),
            Some((prefix, "")) if !prefix.is_empty() => {
                let mut names = self.beginning_with(prefix)?;
                names.retain(|name| !name.trim_start_matches(prefix).contains(':'));
                Some(names)
            }
            Some(_) => None,
        }
    }

    /// The scripts whose names begin so, in the order of the manifest; `None` without any.
    fn beginning_with(&self, prefix: &str) -> Option<Vec<String>> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || ":-_".contains(c);
        let scripts = self.manifest.get("scripts")?.as_object()?;
        let names = scripts.keys().filter(|name| name.starts_with(prefix));
        let names: Vec<String> = names.cloned().collect();
        (!names.is_empty() && prefix.chars().all(is_plain)).then_some(names)
    }

    /// Returns the words without `pnpm` or `yarn` in front of a program.
    fn direct<'w>(&self, words: &'w [String]) -> &'w [String] {
        match words {
            [manager, rest @ ..] if ["pnpm", "yarn"].contains(&manager.as_str()) => {
                let is_script = |name: &String| self.text(name).is_some();
                let is_program =
                    !rest.first().is_some_and(is_script) && self.runner(rest).is_some();
                if is_program { rest } else { words }
            }
            _ => words,
        }
    }
}

/// Package managers.
const MANAGERS: [&str; 4] = ["npm", "pnpm", "yarn", "bun"];

/// Returns the commands between `&&` that are neither quoted nor in parentheses; `None` if the text is more than a list of
/// commands that each stand alone.
fn parts(text: &str) -> Option<Vec<&str>> {
    let mut parts = Vec::new();
    let (mut from, mut depth, mut quote) = (0, 0_usize, None);
    let mut previous = ' ';
    let mut characters = text.char_indices().peekable();
    while let Some((at, next)) = characters.next() {
        let behind = text[at + next.len_utf8()..].chars().next();
        // A manager sets such variables for its own scripts.
        if next == '$'
            && quote != Some('\'')
            && text[at..]
                .trim_start_matches(['$', '{'])
                .starts_with("npm_")
        {
            return None;
        }
        match (quote, next) {
            (Some('\''), '\'') => quote = None,
            (Some('\''), _) => {}
            (_, '\\') => drop(characters.next()),
            (Some(open), _) if open == next => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"' | '`') => quote = Some(next),
            (None, '(' | '{') => depth += 1,
            (None, ')' | '}') => depth = depth.saturating_sub(1),
            (None, _) if depth > 0 => {}
            (None, '&') if behind == Some('&') => {
                characters.next();
                parts.push(text[from..at].trim());
                from = at + 2;
            }
            // Not of `2>&1` and `&>`.
            (None, '&') if previous == '>' || previous == '<' || behind == Some('>') => {}
            (None, '&' | ';' | '\n' | '\r') => return None,
            (None, '|') if behind == Some('|') => return None,
            (None, '<') if behind == Some('<') => return None,
            (None, '#') if previous.is_whitespace() => return None,
            (None, _) => {}
        }
        previous = next;
    }
    parts.push(text[from..].trim());
    let is_closed = quote.is_none() && depth == 0;
    (is_closed && parts.iter().all(|part| stands_alone(part))).then_some(parts)
}

/// Returns whether a command leaves the shell as it was for the next one.
fn stands_alone(part: &str) -> bool {
    let Some(first) = part.split_whitespace().next() else {
        return false;
    };
    let is_assignment = |word: &str| word.split_once('=').is_some_and(|(name, _)| is_name(name));
    let only_assigns = match script_words(part) {
        Some(words) => words.iter().all(|word| is_assignment(word)),
        // The output of a command may be the value.
        None => is_assignment(first) && (first.contains("$(") || first.contains('`')),
    };
    let first = first.trim_start_matches('\\');
    !(only_assigns || first.starts_with('{') || SHELL.contains(&first))
}

/// Returns whether a part of a name says that it holds tests, such as `test/unit.js` or `run-specs`.
fn names_tests(name: &str) -> bool {
    let mut parts = name.split(|c: char| !c.is_ascii_alphanumeric());
    parts.any(|part| ["test", "tests", "spec", "specs"].contains(&part))
}

/// Returns words in front of a program as commands that set variables; `None` if they are anything else.
fn assignments(words: &[String]) -> Option<String> {
    let mut text = String::new();
    for word in words {
        match word.split_once('=') {
            Some((name, value)) if is_name(name) => {
                text.push_str(&format!("export {name}={}; ", shell_word(value)));
            }
            None if ["env", "cross-env"].contains(&word.as_str()) => {}
            _ => return None,
        }
    }
    Some(text)
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// What a step calls.
enum Called {
    /// A program.
    Program,
    /// Scripts of the manifest.
    Scripts {
        names: Vec<String>,
        /// Whether they get no arguments.
        is_plain: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_and_enclosed_operators_part_nothing() {
        for (text, expected) in [
            ("a && b&&c", &["a", "b", "c"][..]),
            ("a | b && c", &["a | b", "c"]),
            ("(cd x && y; z) && z", &["(cd x && y; z)", "z"]),
            ("a > b 2>&1 && c &> d", &["a > b 2>&1", "c &> d"]),
            ("a#b && A=1 c $(d; e)", &["a#b", "A=1 c $(d; e)"]),
            (
                r#"a "b && c; $X" 'd && "; $npm_x # ' && e\&\& f"#,
                &[r#"a "b && c; $X" 'd && "; $npm_x # '"#, r"e\&\& f"],
            ),
            ("a \"\\\" && b\" && c", &["a \"\\\" && b\"", "c"]),
        ] {
            assert_eq!(parts(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn text_that_is_not_command_list_is_whole() {
        for text in [
            "a; b",
            "a\nb",
            "a || b && c",
            "a & b",
            "a && b &",
            "a # && b",
            "# a",
            "cat <<X && a",
            "a && echo \"$npm_package_name\"",
            "a ${npm_config_x}",
            "if a && b",
            "for a in b && c",
            "{ a && b; }",
            "A=1 && b",
            "V=$(a b) && c $V",
            "a && cd b && c",
            "ulimit -n 10 && a",
            "a 'b && c",
            "(a && b",
            "",
            "a && ",
        ] {
            assert_eq!(parts(text), None, "{text}");
        }
    }
}
