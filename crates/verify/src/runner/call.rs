//! A command as seen by a runner: the program without its wrappers, and its arguments.
//!
//! Variable assignments (`A=b`, `env`, `cross-env`), launchers (`npx`, `uv run`, `bundle exec`, …) and an
//! interpreter with `-m` are skipped. Invariant: nothing is expanded or run; the words before the arguments
//! stay unchanged.

/// Words that another command follows.
const PREFIXES: [&str; 16] = [
    "env",
    "cross-env",
    "npx",
    "bunx",
    "pnpx",
    "time",
    "nice",
    "nohup",
    "command",
    "exec",
    "nyc",
    "c8",
    "xvfb-run",
    "sudo",
    "then",
    "dotenv",
];

/// Pairs of words that another command follows.
const PAIRS: [(&str, &str); 13] = [
    ("uv", "run"),
    ("poetry", "run"),
    ("pipenv", "run"),
    ("pdm", "run"),
    ("hatch", "run"),
    ("rye", "run"),
    ("bundle", "exec"),
    ("npm", "exec"),
    ("pnpm", "exec"),
    ("yarn", "exec"),
    ("yarn", "run"),
    ("coverage", "run"),
    ("rbenv", "exec"),
];

/// A parsed command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call<'c> {
    /// The file name of the program; if Python starts a module, the module.
    pub program: &'c str,
    /// The arguments behind it.
    pub args: &'c [String],
    /// All words of the command.
    pub words: &'c [String],
}

impl<'c> Call<'c> {
    /// Parses a command; `None` if it has no program.
    #[must_use]
    pub fn parse(words: &'c [String]) -> Option<Self> {
        let mut rest = words;
        loop {
            let (first, behind) = rest.split_first()?;
            let name = file_name(first);
            let pair = behind
                .first()
                .is_some_and(|second| PAIRS.contains(&(name, second.as_str())));
            // `yarn run test` runs a package script and is not a launcher; only the next word shows it, so a
            // script's name stays.
            let is_script = (name, behind.first().map(String::as_str)) == ("yarn", Some("run"));
            if first.starts_with('-') || is_setting(first) || PREFIXES.contains(&name) {
                rest = behind;
            } else if pair && !is_script {
                rest = behind.get(1..)?;
                if name == "coverage" {
                    match module(rest) {
                        Some(from) => rest = from,
                        None => {
                            return Some(Self {
                                program: name,
                                args: behind,
                                words,
                            });
                        }
                    }
                }
            } else if is_python(name)
                && let Some(from) = module(behind)
            {
                rest = from;
            } else {
                return Some(Self {
                    program: name,
                    args: behind,
                    words,
                });
            }
        }
    }

    /// Returns whether this is one of the arguments.
    #[must_use]
    pub fn has(&self, word: &str) -> bool {
        self.args.iter().any(|input| input == word)
    }

    /// Returns the first argument that is not an option.
    #[must_use]
    pub fn subcommand(&self) -> Option<&'c str> {
        self.args
            .iter()
            .map(String::as_str)
            .find(|word| !word.starts_with(['-', '+']))
    }

    /// Returns the command with other arguments.
    #[must_use]
    pub(crate) fn with_args(&self, args: impl IntoIterator<Item = String>) -> Vec<String> {
        let before = self.words.len().saturating_sub(self.args.len());
        self.words
            .iter()
            .take(before)
            .cloned()
            .chain(args)
            .collect()
    }

    /// Returns the command with more arguments, placed before a `--`, after which options end.
    #[must_use]
    pub fn appended<S: AsRef<str>>(&self, more: &[S]) -> Vec<String> {
        let end = self
            .args
            .iter()
            .position(|word| word == "--")
            .unwrap_or(self.args.len());
        let (options, operands) = self.args.split_at(end);
        let more = more.iter().map(|word| word.as_ref().to_owned());
        self.with_args(
            options
                .iter()
                .cloned()
                .chain(more)
                .chain(operands.iter().cloned()),
        )
    }
}

/// Returns the words from the module on, for Python with `-m MODULE` before any script.
fn module(args: &[String]) -> Option<&[String]> {
    let mut at = 0;
    while let Some(word) = args.get(at) {
        match word.as_str() {
            "-m" => return args.get(at + 1..),
            "-X" | "-W" => at += 2,
            word if word.starts_with('-') => at += 1,
            _ => return None,
        }
    }
    None
}

fn is_setting(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

/// Whether a program's name is that of a Python interpreter: `python`, `python3`, `python3.12`, `pypy3`.
pub(super) fn is_python(name: &str) -> bool {
    ["python", "pypy"].iter().any(|program| {
        name.strip_prefix(program).is_some_and(|version| {
            version
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.')
        })
    })
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(text: &str) -> Option<(String, String)> {
        let words: Vec<String> = text
            .split(' ')
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect();
        Call::parse(&words).map(|call| (call.program.to_owned(), call.args.join(" ")))
    }

    #[test]
    fn program_is_found_behind_settings_and_launchers() {
        for (text, program, args) in [
            ("pytest -q", "pytest", "-q"),
            (".venv/bin/python -X dev -m pytest tests", "pytest", "tests"),
            ("python3.12 -m coverage run -m pytest", "pytest", ""),
            (
                "coverage run --branch -m unittest discover",
                "unittest",
                "discover",
            ),
            ("CI=1 uv run pytest", "pytest", ""),
            ("cross-env NODE_ENV=test nyc mocha", "mocha", ""),
            ("npx --no-install vitest run", "vitest", "run"),
            ("bundle exec rspec", "rspec", ""),
            ("yarn run test", "yarn", "run test"),
            ("python3 manage.py test", "python3", "manage.py test"),
        ] {
            assert_eq!(
                call(text),
                Some((program.to_owned(), args.to_owned())),
                "{text}"
            );
        }
        for none in ["", "A=b", "env", "python3 -m", "npx"] {
            assert_eq!(call(none), None, "{none}");
        }
    }

    #[test]
    fn arguments_are_added_before_operands() {
        let words = super::super::command(&["python3", "-m", "pytest", "-q", "--", "tests"]);
        let added = Call::parse(&words).unwrap().appended(&["--x"]);
        assert_eq!(added.join(" "), "python3 -m pytest -q --x -- tests");
    }
}
