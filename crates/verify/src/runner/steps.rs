//! The steps of a script of `package.json`, such as `eslint . && c8 mocha` or `npm run lint && npm run unit`.
//!
//! Scripts that a step calls are followed, with what runs before and after them. Nothing is expanded or run here. A step is
//! for a shell to run; one that changes the shell for those behind it, such as `cd web`, makes the script one whole.

use crucible_host::words::shell_word;

use super::Call;
use super::scripts::script_words;
use super::spec::Runner;

/// Most steps of a script.
const MAX_STEPS: usize = 40;
/// How deep scripts may call scripts.
const MAX_DEPTH: usize = 6;

/// Words of a shell that change it for what follows.
const SHELL: [&str; 12] = [
    ".", "alias", "cd", "eval", "exec", "exit", "export", "popd", "pushd", "set", "source", "unset",
];

/// Parts of the names of scripts that do not end by themselves.
const SERVERS: [&str; 4] = ["dev", "serve", "start", "watch"];

/// One step.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// What a shell runs: the step itself, or the script that has no other.
    pub(super) command: String,
    /// The words of the program in the end; patterns of names are not expanded.
    pub(super) words: Vec<String>,
    /// Its text.
    pub(super) text: String,
}

/// Every runner.
type Runners = &'static [&'static dyn Runner];

/// The scripts of a manifest.
pub(super) struct Scripts<'m> {
    pub(super) manifest: &'m serde_json::Value,
    /// The package manager.
    pub(super) manager: &'m str,
    pub(super) runners: Runners,
}

impl Scripts<'_> {
    /// Returns the steps of the script `name` with its `pre` script; `None` if they cannot be separated.
    pub(super) fn steps(&self, name: &str) -> Option<Vec<Step>> {
        let mut steps = Vec::new();
        self.add(&format!("pre{name}"), "", MAX_DEPTH, &mut steps)?;
        self.add(name, "", MAX_DEPTH, &mut steps)?;
        Some(steps)
    }

    /// The name of the JavaScript runner that a step starts.
    pub(super) fn runner(&self, words: &[String]) -> Option<&'static str> {
        let call = Call::of(words)?;
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

    /// Adds the steps of a script, if it exists; `env` are assignments of variables in front of each.
    fn add(&self, name: &str, env: &str, depth: usize, steps: &mut Vec<Step>) -> Option<()> {
        let Some(text) = self.text(name) else {
            return Some(());
        };
        let depth = depth.checked_sub(1)?;
        let parts = parts(text);
        let has = |kind: &str| self.text(&format!("{kind}{name}")).is_some();
        let is_alone = parts.len() == 1 && !has("pre") && !has("post");
        for part in parts {
            let first = part.split_whitespace().next()?;
            if SHELL.contains(&first) || steps.len() >= MAX_STEPS {
                return None;
            }
            let step = |words: &[String]| Step {
                command: if is_alone {
                    format!("{env}{} run {}", shell_word(self.manager), shell_word(name))
                } else {
                    format!("{env}{part}")
                },
                words: words.to_vec(),
                text: part.to_owned(),
            };
            // A pipe or a variable is for the shell that runs the step.
            let words = script_words(part).unwrap_or_default();
            let words = self.direct(&words);
            let Some(call) = Call::of(words) else {
                steps.push(step(words));
                continue;
            };
            let Called::Scripts(names) = self.called(&call)? else {
                steps.push(step(words));
                continue;
            };
            let launchers = words.get(..words.len() - call.args.len() - 1)?;
            if let Some(added) = assignments(launchers) {
                let env = format!("{env}{added}");
                for name in names {
                    self.add(&format!("pre{name}"), &env, depth, steps)?;
                    self.add(&name, &env, depth, steps)?;
                    self.add(&format!("post{name}"), &env, depth, steps)?;
                }
            } else {
                // A program around scripts, such as one that measures coverage.
                let mut inner = Vec::new();
                for name in &names {
                    self.add(name, "", depth, &mut inner)?;
                }
                let runner = inner
                    .iter()
                    .find(|inner| self.runner(&inner.words).is_some());
                steps.push(step(runner.map_or(words, |inner| &inner.words)));
            }
        }
        Some(())
    }

    fn called(&self, call: &Call<'_>) -> Option<Called> {
        let operands = || call.args.iter().filter(|word| !word.starts_with('-'));
        let options = || call.args.iter().take_while(|word| *word != "--");
        let has = |names: &[&str]| options().any(|word| names.contains(&word.as_str()));
        let one = |name: Option<&String>| {
            let name = name.filter(|name| self.text(name).is_some())?;
            Some(Called::Scripts(vec![name.clone()]))
        };
        match call.program {
            "run-s" | "run-p" | "npm-run-all" | "npm-run-all2" => {
                let goes_on = [
                    "-c",
                    "--continue-on-error",
                    "-p",
                    "--parallel",
                    "-r",
                    "--race",
                ];
                let is_sequence = call.program != "run-p" && !has(&goes_on);
                let mut names = Vec::new();
                for pattern in operands() {
                    names.extend(self.named(pattern)?);
                }
                let ends = |name: &String| !name.split(':').any(|part| SERVERS.contains(&part));
                (is_sequence || names.iter().all(ends)).then_some(Called::Scripts(names))
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
                match operands.next()?.as_str() {
                    "run" | "run-script" => {
                        let name = operands.next()?;
                        match name
                            .strip_prefix("/^")
                            .and_then(|rest| rest.strip_suffix('/'))
                        {
                            Some(prefix) if call.program == "pnpm" => {
                                self.beginning_with(prefix).map(Called::Scripts)
                            }
                            _ => one(Some(name)),
                        }
                    }
                    "test" | "t" | "tst" => one(Some(&"test".to_owned())),
                    "workspace" | "workspaces" | "recursive" | "multi" | "m" => {
                        Some(Called::Program)
                    }
                    name if call.program != "npm" && self.text(name).is_some() => {
                        one(Some(&name.to_owned()))
                    }
                    _ => Some(Called::Program),
                }
            }
            _ => Some(Called::Program),
        }
    }

    /// The scripts of a pattern such as `lint:*`.
    fn named(&self, pattern: &str) -> Option<Vec<String>> {
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

/// Returns the commands between `&&` that are neither quoted nor in parentheses.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut from, mut depth, mut quote) = (0, 0_usize, None);
    let mut characters = text.char_indices().peekable();
    while let Some((at, next)) = characters.next() {
        match (quote, next) {
            (Some('\''), '\'') => quote = None,
            (Some('\''), _) => {}
            (_, '\\') => drop(characters.next()),
            (Some(open), _) if open == next => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"' | '`') => quote = Some(next),
            (None, '(' | '{') => depth += 1,
            (None, ')' | '}') => depth = depth.saturating_sub(1),
            (None, '&') if depth == 0 && characters.next_if(|(_, next)| *next == '&').is_some() => {
                parts.push(text[from..at].trim());
                from = at + 2;
            }
            (None, _) => {}
        }
    }
    parts.push(text[from..].trim());
    parts
}

/// Returns words in front of a program as assignments for a shell; `None` if they are anything else.
fn assignments(words: &[String]) -> Option<String> {
    let mut text = String::new();
    for word in words {
        match word.split_once('=') {
            Some((name, value)) if is_name(name) => {
                text.push_str(&format!("{name}={} ", shell_word(value)));
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
    Scripts(Vec<String>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_and_enclosed_operators_part_nothing() {
        for (text, expected) in [
            ("a && b&&c", &["a", "b", "c"][..]),
            ("a | b && c || d; e", &["a | b", "c || d; e"]),
            ("(cd x && y) && z", &["(cd x && y)", "z"]),
            (
                r#"a "b && c" 'd && "' && e\&& f"#,
                &[r#"a "b && c" 'd && "'"#, r"e\&& f"],
            ),
            ("a & b", &["a & b"]),
            ("a \"\\\" && b\" && c", &["a \"\\\" && b\"", "c"]),
            ("a 'b && c", &["a 'b && c"]),
            ("", &[""]),
        ] {
            assert_eq!(parts(text), expected, "{text}");
        }
    }
}
