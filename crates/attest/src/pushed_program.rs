//! Which files of a push the command of a rerun gate would run. Pure.
//!
//! The command comes from the policy, but it may name a file of the checkout. No list of interpreters is needed: the names of
//! the files that the push changed are searched in the words of the command. In doubt, a file counts as named.

use std::collections::BTreeSet;

use crucible_model::{Code, Finding};
use globset::{Glob, GlobMatcher};

use crate::policy::RerunGate;

const GATE_CHANGED: Code = Code::new("attest-gate-changed");

/// A symbolic link of the checkout: its path, and the path or name that it leads to.
pub type TreeLink = (String, String);

/// Returns an error for each path among `changed` that the gate's command may name: by its path, as a module that it
/// loads, by a pattern, or through one of `links`. Attributes change how each file is
/// checked out. Files that the policy names are admitted.
#[must_use]
pub fn judge_pushed_programs(
    gate: &RerunGate,
    tip: &str,
    changed: &BTreeSet<String>,
    links: &[TreeLink],
) -> Vec<Finding> {
    let mut words = CommandWords::default();
    gate.command.iter().for_each(|word| words.add(word));
    words.follow(links);
    let is_named = |file: &&String| words.may_name(file) || file.ends_with(".gitattributes");
    let refused = changed
        .iter()
        .filter(is_named)
        .filter(|file| !gate.pushed_files.contains(file));
    refused
        .map(|file| {
            let hint = format!(
                "the push changes {file:?}, which may decide what the command of gate {:?} runs; use a program of the server, or name the file in `pushed_files` of the gate",
                gate.id
            );
            Finding::error(GATE_CHANGED, tip, hint)
        })
        .collect()
}

/// Interpreters that find a file without its extension, by the beginning of their names, and the extensions. Modules of
/// Python count for each command, because many tools are written in it.
const LOADERS: [(&str, &[&str]); 7] = [
    ("", &["py", "pyc", "pyd", "so"]),
    ("node", &["js", "mjs", "cjs", "ts", "node"]),
    ("bun", &["js", "mjs", "cjs", "ts", "tsx", "jsx"]),
    ("perl", &["pm", "pl"]),
    ("ruby", &["rb"]),
    ("lua", &["lua"]),
    ("java", &["class", "java"]),
];

/// What a command may name. How a shell or an interpreter quotes, joins and expands words is not modelled: only letters,
/// digits and `_` of a name are compared.
#[derive(Default)]
struct CommandWords {
    /// Each word without other characters.
    squeezed: Vec<String>,
    /// The parts of words between other characters; those of a short option also without its first letters, as in `-mcheck`.
    tokens: Vec<String>,
    /// The packages of modules that Python runs or imports, with `/` between their parts.
    packages: BTreeSet<String>,
    /// The patterns whose last part begins with letters: `check*.sh`, but not `tests/*.sh`.
    patterns: Vec<GlobMatcher>,
    /// Whether the next word is a module.
    is_module_next: bool,
}

impl CommandWords {
    fn add(&mut self, word: &str) {
        let is_plain = |c: char| is_letter(c) || "._-/+@%".contains(c);
        if word.starts_with('/') && word.chars().all(is_plain) {
            // A file of the server.
            self.is_module_next = false;
            let name = word.rsplit('/').next().unwrap_or_default();
            self.tokens.push(squeezed(name));
            return;
        }
        // The name of an option is no file, and its value may be one.
        let value = match word.strip_prefix("--") {
            Some(option) => option.split_once('=').map_or("", |(_, value)| value),
            None => word,
        };
        self.squeezed.push(squeezed(value));
        for piece in word.split(|c: char| c.is_whitespace() || "\"'`;|&()<>=,".contains(c)) {
            self.add_piece(piece);
        }
    }

    fn add_piece(&mut self, piece: &str) {
        if piece.is_empty() || piece.starts_with("--") {
            return;
        }
        self.add_tokens(piece);
        let is_module = std::mem::take(&mut self.is_module_next);
        let option = piece.strip_prefix('-');
        let glued: Vec<&str> = option.map_or_else(Vec::new, |option| {
            let starts = option.char_indices().take_while(|(_, c)| is_letter(*c));
            starts.map(|(at, c)| &option[at + c.len_utf8()..]).collect()
        });
        for rest in &glued {
            let end = rest.find(|c| !is_letter(c)).unwrap_or(rest.len());
            self.add_tokens(&rest[..end]);
        }
        self.is_module_next = matches!(piece, "import" | "from")
            || option.is_some_and(|option| option.ends_with('m'));
        let modules = glued.into_iter().chain([piece]);
        for module in modules.filter(|module| is_module || option.is_some() || module.contains('.'))
        {
            let ends = module.match_indices('.').map(|(at, _)| at);
            let ends = ends.chain([module.len()]).filter(|end| *end > 0);
            self.packages
                .extend(ends.map(|end| module[..end].replace('.', "/")));
        }
        let last = piece.rsplit('/').next().unwrap_or(piece);
        if piece.contains(['*', '?', '[', '{']) && last.starts_with(is_letter) {
            let path = piece.trim_start_matches("./");
            let glob = Glob::new(&format!("{{,**/}}{path}"));
            self.patterns
                .extend(glob.map(|glob| glob.compile_matcher()));
        }
    }

    fn add_tokens(&mut self, text: &str) {
        let tokens = text
            .split(|c| !is_letter(c))
            .filter(|token| !token.is_empty());
        self.tokens.extend(tokens.map(str::to_owned));
    }

    /// Adds the targets of the links that are named, and of those that these name.
    fn follow(&mut self, links: &[TreeLink]) {
        let mut rest: Vec<&TreeLink> = links.iter().collect();
        loop {
            let (named, others): (Vec<_>, Vec<_>) =
                rest.into_iter().partition(|(path, _)| self.may_name(path));
            if named.is_empty() {
                return;
            }
            for (_, target) in named {
                // A path from `/` in a checkout leads out of it.
                self.add(target);
            }
            rest = others;
        }
    }

    fn may_name(&self, file: &str) -> bool {
        let (directory, name) = file.rsplit_once('/').unwrap_or(("", file));
        let directories: Vec<&str> = directory
            .split('/')
            .filter(|part| !part.is_empty())
            .collect();
        let whole: Vec<&str> = directories.iter().copied().chain([name]).collect();
        let (stem, rest) = name.split_once('.').unwrap_or((name, ""));
        let extension = rest.rsplit('.').next().unwrap_or_default();
        let loads = |(interpreter, extensions): &(&str, &[&str])| {
            extensions.contains(&extension)
                && self
                    .tokens
                    .iter()
                    .any(|token| token.starts_with(interpreter))
        };
        let is_module = || match stem {
            "__init__" => self
                .packages
                .iter()
                .any(|package| format!("/{directory}").ends_with(&format!("/{package}"))),
            "__main__" => self.has(&directories),
            stem => self.has(&[&directories[..], &[stem]].concat()),
        };
        self.has(&whole)
            || LOADERS.iter().any(loads) && is_module()
            || self.patterns.iter().any(|pattern| pattern.is_match(file))
    }

    /// Whether the command has each of these parts, as often as they are here. A part with other characters than letters may
    /// be anywhere in a word.
    fn has(&self, parts: &[&str]) -> bool {
        parts.iter().all(|part| {
            let letters = squeezed(part);
            if letters.len() < part.len() {
                return self.squeezed.iter().any(|word| word.contains(&letters));
            }
            let wanted = parts.iter().filter(|other| *other == part).count();
            let tokens = self.tokens.iter().filter(|token| **token == letters);
            tokens.count() >= wanted || wanted == 1 && self.squeezed.contains(&letters)
        })
    }
}

fn is_letter(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn squeezed(text: &str) -> String {
    text.chars().filter(|c| is_letter(*c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(command: &[&str], files: &[&str]) -> usize {
        let gate = RerunGate {
            id: "tests".to_owned(),
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            timeout_s: 9,
            pushed_files: vec!["Cargo.toml".to_owned()],
        };
        let changed = files.iter().map(|file| (*file).to_owned()).collect();
        let links = [
            ("linked".to_owned(), "real/dir".to_owned()),
            ("real/dir".to_owned(), "../deep".to_owned()),
        ];
        judge_pushed_programs(&gate, "tip", &changed, &links).len()
    }

    #[test]
    fn changed_program_of_a_gate_is_refused() {
        for (command, file) in [
            (&["bash", "-e", "check.sh"][..], "check.sh"),
            (&["./check.sh"], "check.sh"),
            (&["python3", "-B", "tools//x/../check.py"], "tools/check.py"),
            (&["python3", "-m", "check"], "check.py"),
            (&["python3", "-mcheck"], "check.py"),
            (&["python3", "-m", "tools.check"], "tools/check.py"),
            (&["python3", "tools"], "tools/__main__.py"),
            (&["python3", "-m", "unittest", "discover"], "unittest.py"),
            (&["python3", "-m", "unittest"], "unittest/__main__.py"),
            (&["env", "PATH=.", "check"], "check"),
            (&["env", "PATH=/bin:tools", "check"], "tools/check"),
            (&["env", "-C", "tools", "check"], "tools/check"),
            (
                &["env", "PYTHONPATH=src", "python3", "-m", "pytest"],
                "src/pytest.py",
            ),
            (&["awk", "-f", "check.awk"], "check.awk"),
            (&["awk", "-fcheck.awk"], "check.awk"),
            (&["node", "--require=./tools/set", "x"], "tools/set.js"),
            (
                &["sh", "-c", "cd tools && . ./check.sh; true"],
                "tools/check.sh",
            ),
            (&["sh", "-c", "x=$(sh check.sh)"], "check.sh"),
            (&["sh", "my check"], "my check"),
            (&["xargs", "-a", "words", "sh"], "words"),
            (&["bash", "tools/check.sh"], "tools"),
            (&["bash", "check.sh"], ".gitattributes"),
            (&["bash", "check.sh"], "src/.gitattributes"),
            (&["python3", "-m", "unittest"], "unittest/__init__.py"),
            (&["python3", "-m", "unittest"], "unittest.pyc"),
            (
                &["python3", "-m", "unittest"],
                "unittest.cpython-311-x86_64-linux-gnu.so",
            ),
            (&["python3", "-m", "tools.check"], "tools/__init__.py"),
            (&["env", "-C", "a/b", "sh", "../check.sh"], "a/check.sh"),
            (
                &["python3", "-Bm", "unittest", "discover"],
                "unittest/__init__.py",
            ),
            (&["python3", "-uBm", "tools"], "tools/__init__.py"),
            (
                &["python3", "-c", "import tools.check"],
                "tools/__init__.py",
            ),
            (&["python3", "-m", "tools.check"], "tools"),
            (&["sh", "-c", "cd tools && sh check.sh"], "tools"),
            (&["python3", "linked"], "real/dir/__main__.py"),
            (&["python3", "linked"], "deep/__main__.py"),
            (&["sh", "linked/check.sh"], "real/dir/check.sh"),
            (&["sh", "-c", "sh \"$PWD/check.sh\""], "check.sh"),
            (
                &["sh", "-c", "sh scripts/check:all.sh"],
                "scripts/check:all.sh",
            ),
            (&["sh", "-c", "sh 'my check.sh'"], "my check.sh"),
            (&["sh", "-c", "./che\"\"ck.sh"], "check.sh"),
            (&["node", "check"], "check.js"),
            (&["node", "--require", "./set", "x"], "set.js"),
            (&["perl", "-Ilib", "-MCheck"], "lib/Check.pm"),
            (&["perl", "-Mtools::check"], "tools/check.pm"),
            (&["make", "-sfcheck.mk"], "check.mk"),
            (&["sh", "-c", "sh check*.sh"], "check1.sh"),
            (&["java", "com.x.Check"], "com/x/Check.java"),
            (&["gcc", "@opts"], "opts"),
        ] {
            assert_eq!(refused(command, &[file, "other"]), 1, "{command:?}");
            assert_eq!(refused(command, &["other"]), 0, "{command:?}");
        }
    }

    #[test]
    fn honest_gates_accept_changed_sources_and_tests() {
        let files = [
            "Cargo.toml",
            "package.json",
            "conftest.py",
            "src/area.py",
            "src/lib.rs",
            "test/area.js",
            "tests/__init__.py",
            "tests/test_area.py",
            "tests/unit/test_area.py",
            "test.js",
            "test/test.js",
            "tests/d",
            "go.mod",
            "mix.exs",
            "tox.ini",
            "pytest.ini",
        ];
        for command in [
            &["cargo", "test", "--manifest-path", "Cargo.toml"][..],
            &["pytest", "--quiet", "tests/unit"],
            &["python3", "-m", "pytest", "tests"],
            &["python3", "-m", "unittest", "discover", "-s", "tests"],
            &["npm", "test"],
            &["npm", "run", "test"],
            &["node", "--test"],
            &["go", "test", "./..."],
            &["mix", "test"],
            &["tox"],
            &["env", "CI=1", "make", "check"],
            &["sh", "/srv/check.sh"],
            &["sh", "-c", "exit"],
            &["sh", "/srv/area.sh"],
            &["sh", "-c", "for test in tests/*.py; do python3 $test; done"],
            // `test` is a directory, and `tests/unit` is not the file `s/unit` in it.
            &["sh", "test", "s/unit/test_area.py"],
        ] {
            assert_eq!(refused(command, &files), 0, "{command:?}");
        }
    }
}
