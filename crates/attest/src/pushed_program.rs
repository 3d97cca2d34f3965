//! Which files of a push the command of a rerun gate would run. Pure.
//!
//! The command comes from the policy, but it may name a file of the checkout. No list of interpreters is needed: each word of
//! the command, and each part of one, is looked up among the files that the push changed.

use std::collections::BTreeSet;

use crucible_model::{Code, Finding};

use crate::policy::RerunGate;

const GATE_CHANGED: Code = Code::new("attest-gate-changed");

/// Returns an error for each file among `changed` that the gate's command names, also as a module (`-m NAME`) or below a
/// directory that it names. Files that the policy names are admitted.
#[must_use]
pub fn judge_pushed_programs(
    gate: &RerunGate,
    tip: &str,
    changed: &BTreeSet<String>,
) -> Vec<Finding> {
    let mut named = BTreeSet::new();
    for word in &gate.command {
        named.insert(normal(word));
        for piece in word.split(|c: char| !c.is_alphanumeric() && !"._-/+@%".contains(c)) {
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
    let is_directory = |name: &&String| {
        let below = format!("{name}/");
        let first = changed.range(below.clone()..).next();
        first.is_some_and(|file| file.starts_with(&below))
    };
    let roots = named.iter().filter(is_directory).map(String::as_str);
    let roots: Vec<&str> = roots.chain([""]).collect();
    let is_named = |file: &&String| {
        roots.iter().any(|root| {
            let below = file.strip_prefix(root);
            let below = below.map(|rest| rest.strip_prefix('/').unwrap_or(rest));
            below.is_some_and(|file| spellings(file).iter().any(|one| named.contains(one)))
        })
    };
    let refused = changed
        .iter()
        .filter(is_named)
        .filter(|file| !gate.pushed_files.contains(file));
    refused
        .map(|file| {
            let hint = format!(
                "the push changes {file:?}, which the command of gate {:?} names; use a program of the server, or name the file in `pushed_files` of the gate",
                gate.id
            );
            Finding::error(GATE_CHANGED, tip, hint)
        })
        .collect()
}

/// How a command may name a file: by its path, as a module of Python, or with `/` without its extension.
fn spellings(file: &str) -> Vec<String> {
    let mut names = vec![file.to_owned()];
    let module = file
        .strip_suffix("/__main__.py")
        .or_else(|| file.strip_suffix(".py"));
    if let Some(module) = module {
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
        ] {
            assert_eq!(refused(command, &files), 0, "{command:?}");
        }
    }
}
