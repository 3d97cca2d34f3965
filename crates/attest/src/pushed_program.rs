//! Which files of a push the command of a rerun gate would run. Pure.
//!
//! The command comes from the policy, but it may name a file of the checkout. No list of interpreters is needed: each word of
//! the command, and each part of one, is looked up among the files that the push changed.

use std::collections::BTreeSet;

use crucible_model::{Code, Finding};

use crate::policy::RerunGate;

const GATE_CHANGED: Code = Code::new("attest-gate-changed");

/// Returns the paths of the checkout that the command of a gate may name, as far as its words show them.
#[must_use]
pub fn named_paths(gate: &RerunGate) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for word in &gate.command {
        named.insert(normal(word));
        for piece in pieces(word) {
            named.insert(normal(piece));
            // `-fcheck.awk`
            let glued = piece.strip_prefix('-').and_then(|rest| {
                let mut rest = rest.chars();
                rest.next().map(|_| rest.as_str())
            });
            named.extend(glued.map(normal));
        }
    }
    named.remove("");
    named
}

/// Returns an error for each path among `changed` that the gate's command names: by itself, as a module (`-m NAME`), below
/// a directory that it names, or on the way to such a file. Attributes change how each file is checked out. Files that
/// the policy names are admitted.
#[must_use]
pub fn judge_pushed_programs(
    gate: &RerunGate,
    tip: &str,
    changed: &BTreeSet<String>,
) -> Vec<Finding> {
    let named = named_paths(gate);
    let on_the_way = |path: &str| {
        let below = format!("{path}/");
        let first = named.range(below.clone()..).next();
        first.is_some_and(|name| name.starts_with(&below))
    };
    let packages = packages(gate);
    // `../check.sh`, from a directory that is not known here
    let relative: Vec<String> = gate
        .command
        .iter()
        .flat_map(|word| pieces(word))
        .filter(|piece| piece.split('/').any(|part| part == ".."))
        .map(|piece| format!("/{}", piece.rsplit("../").next().unwrap_or_default()))
        .collect();
    let is_directory = |name: &&String| {
        let below = format!("{name}/");
        let first = changed.range(below.clone()..).next();
        first.is_some_and(|file| file.starts_with(&below))
    };
    let roots = named.iter().filter(is_directory).map(String::as_str);
    let roots: Vec<&str> = roots.chain([""]).collect();
    let is_named = |file: &&String| {
        roots.iter().any(|root| {
            let below = match *root {
                "" => Some(file.as_str()),
                root => file
                    .strip_prefix(root)
                    .and_then(|rest| rest.strip_prefix('/')),
            };
            below.is_some_and(|file| {
                spellings(file).iter().any(|one| named.contains(one))
                    || package(file).is_some_and(|one| packages.contains(&one))
            })
        }) || on_the_way(file)
            || relative
                .iter()
                .any(|end| format!("/{file}").ends_with(end.as_str()))
            || file.rsplit('/').next() == Some(".gitattributes")
    };
    let refused = changed
        .iter()
        .filter(is_named)
        .filter(|file| !gate.pushed_files.contains(file));
    refused
        .map(|file| {
            let hint = format!(
                "the push changes {file:?}, which decides what the command of gate {:?} runs; use a program of the server, or name the file in `pushed_files` of the gate",
                gate.id
            );
            Finding::error(GATE_CHANGED, tip, hint)
        })
        .collect()
}

/// The modules that the command runs (`-m tools.check`), and the packages that they are in.
fn packages(gate: &RerunGate) -> BTreeSet<String> {
    let words: Vec<&str> = gate.command.iter().flat_map(|word| pieces(word)).collect();
    let mut packages = BTreeSet::new();
    for (at, word) in words.iter().enumerate() {
        let module = match word.strip_prefix("-m") {
            Some("") => words.get(at + 1).copied().unwrap_or_default(),
            Some(module) => module,
            None => continue,
        };
        let ends = module.match_indices('.').map(|(at, _)| at);
        packages.extend(
            ends.chain([module.len()])
                .map(|end| module[..end].to_owned()),
        );
    }
    packages
}

/// How a command may name a file: by its path, as a module of Python, or with `/` without its extension.
fn spellings(file: &str) -> Vec<String> {
    let mut names = vec![file.to_owned()];
    if let Some(module) = module(file) {
        let module = module.strip_suffix("/__main__").unwrap_or(module);
        names.extend([module.to_owned(), module.replace('/', ".")]);
    }
    if let Some((stem, extension)) = file.rsplit_once('.')
        && stem.contains('/')
        && !extension.contains('/')
    {
        names.push(stem.to_owned());
    }
    names
}

/// The path of a module of Python without its extension: source, bytecode or a compiled library.
fn module(file: &str) -> Option<&str> {
    let name = file.rfind('/').map_or(0, |at| at + 1);
    let (stem, _) = file[name..].split_once('.')?;
    let is_module = [".py", ".pyc", ".pyd", ".so"]
        .iter()
        .any(|extension| file.ends_with(extension));
    is_module.then(|| &file[..name + stem.len()])
}

/// The dotted name of the package that a file begins, such as `tools` of `tools/__init__.py`.
fn package(file: &str) -> Option<String> {
    let directory = module(file)?.strip_suffix("/__init__")?;
    Some(directory.replace('/', "."))
}

/// The parts of a word that may be paths.
fn pieces(word: &str) -> impl Iterator<Item = &str> {
    word.split(|c: char| !c.is_alphanumeric() && !"._-/+@%".contains(c))
}

/// A relative path without `.`, `..` and double slashes; an absolute one names no file of the push and is empty.
fn normal(path: &str) -> String {
    if path.starts_with('/') {
        return String::new();
    }
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
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
        judge_pushed_programs(&gate, "tip", &changed).len()
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
        ];
        for command in [
            &["cargo", "test", "--manifest-path", "Cargo.toml"][..],
            &["pytest", "--quiet", "tests/unit"],
            &["python3", "-m", "pytest", "tests"],
            &["python3", "-m", "unittest", "discover", "-s", "tests"],
            &["npm", "test"],
            &["env", "CI=1", "make", "check"],
            &["sh", "/srv/check.sh"],
            &["sh", "-c", "exit"],
            // `test` is a directory, and `tests/unit` is not the file `s/unit` in it.
            &["sh", "test", "s/unit/test_area.py"],
        ] {
            assert_eq!(refused(command, &files), 0, "{command:?}");
        }
    }
}
