//! Which files of the repository a gate consists of: with them a change could grade itself.
//!
//! A gate is a command; what it runs is followed through shell scripts, makefiles and the scripts of a
//! `package.json`, as far as words tell. A file counts when it stands where a program or a script stands, not
//! when it is merely mentioned: what a gate compiles or reads is what it judges. Programs in other languages
//! count and are not followed, since what they import is usually the code under test.

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;

use crucible_model::RepoPath;
use crucible_verify::GateSpec;

/// Programs whose first word that is no option is a script.
const INTERPRETERS: [&str; 27] = [
    ".", "bash", "bun", "busybox", "dash", "deno", "fish", "ksh", "lua", "node", "nodejs", "perl", "php",
    "pwsh", "py", "pypy3", "python", "python2", "python3", "ruby", "Rscript", "sh", "source", "ts-node",
    "tsx", "xvfb-run", "zsh",
];
/// Words that another command follows.
const PREFIXES: [&str; 24] = [
    "!", "builtin", "command", "do", "elif", "else", "env", "exec", "if", "nice", "nohup", "poetry", "run",
    "setsid", "stdbuf", "sudo", "then", "time", "timeout", "until", "uv", "while", "xargs", "{",
];
/// Programs that run what a file of theirs says.
const RUNNERS: [(&str, &[&str]); 7] = [
    ("make", &["GNUmakefile", "makefile", "Makefile"]),
    ("gmake", &["GNUmakefile", "makefile", "Makefile"]),
    ("just", &["justfile", "Justfile", ".justfile"]),
    ("npm", &["package.json"]),
    ("pnpm", &["package.json"]),
    ("yarn", &["package.json"]),
    ("bun", &["package.json"]),
];

/// How the text of a file is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Lines of commands: shell scripts, makefiles.
    Commands,
    /// The texts in `scripts`.
    Package,
    /// Something else, which is not followed.
    Leaf,
}

/// The tracked files that the gates' commands run, sorted. `read` gives the beginning of a tracked regular file,
/// and nothing for every other path. Pure.
pub(crate) fn gate_files(
    gates: &[GateSpec],
    mut read: impl FnMut(&RepoPath) -> Option<Vec<u8>>,
) -> Vec<RepoPath> {
    let mut found = BTreeSet::new();
    let mut queue: VecDeque<(RepoPath, Vec<u8>)> = VecDeque::new();
    let mut take = |candidate: &str, beside: Option<&RepoPath>, queue: &mut VecDeque<_>| {
        for path in places(candidate, beside) {
            if !found.contains(&path)
                && let Some(content) = read(&path)
            {
                found.insert(path.clone());
                queue.push_back((path, content));
            }
        }
    };
    for gate in gates {
        // Every word of the command itself: some of them are scripts in a shape of their own, `sh -c` for one.
        for word in gate.command.iter().flat_map(|word| words(word)) {
            take(word, None, &mut queue);
        }
        for candidate in
            gate.command.iter().flat_map(|word| run_by(word)).chain(run_by(&gate.command.join(" ")))
        {
            take(&candidate, None, &mut queue);
        }
    }
    while let Some((path, content)) = queue.pop_front() {
        let text = String::from_utf8_lossy(&content);
        let candidates: Vec<String> = match kind(&path, &text) {
            Kind::Leaf => Vec::new(),
            Kind::Commands => run_by(&text),
            Kind::Package => scripts(&text).iter().flat_map(|script| run_by(script)).collect(),
        };
        for candidate in candidates {
            take(&candidate, Some(&path), &mut queue);
        }
    }
    found.into_iter().collect()
}

fn kind(path: &RepoPath, text: &str) -> Kind {
    let path = Path::new(path.as_str());
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    if name == "package.json" {
        return Kind::Package;
    }
    let recipes = RUNNERS.iter().any(|(_, files)| files.contains(&name)) || ending == "mk";
    let first = text.lines().next().unwrap_or_default();
    let interpreter = first.strip_prefix("#!").and_then(|rest| rest.split_whitespace().last());
    let interpreter = interpreter.and_then(|word| word.rsplit('/').next());
    let shell = match interpreter {
        Some(program) => program.ends_with("sh") && program != "pwsh",
        None => matches!(ending, "" | "sh" | "bash" | "zsh" | "ksh" | "bats"),
    };
    if recipes || shell { Kind::Commands } else { Kind::Leaf }
}

/// The scripts of a `package.json`.
fn scripts(text: &str) -> Vec<String> {
    let document: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let scripts = document.get("scripts").and_then(|scripts| scripts.as_object());
    scripts.into_iter().flatten().filter_map(|(_, script)| script.as_str().map(str::to_owned)).collect()
}

/// What stands where a program or a script stands in lines of shell commands.
fn run_by(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    // How a makefile starts another one.
    let text = text.replace("$(MAKE)", "make").replace("${MAKE}", "make");
    for line in text.lines() {
        let line = line.trim_start().trim_start_matches(['@', '-', '+']);
        if line.starts_with('#') {
            continue;
        }
        for command in line.split([';', '|', '&', '(', ')', '`', '\n']) {
            let mut words = words(command).filter(|word| !word.is_empty()).peekable();
            // Settings of variables, words that another command follows, and their options and numbers.
            while words
                .next_if(|word| {
                    PREFIXES.contains(word)
                        || word.starts_with('-')
                        || word.bytes().all(|byte| byte.is_ascii_digit())
                        || word.split_once('=').is_some_and(|(name, _)| {
                            !name.is_empty()
                                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                        })
                })
                .is_some()
            {}
            let Some(program) = words.next() else { continue };
            found.push(program.to_owned());
            let name = program.rsplit('/').next().unwrap_or(program);
            let rest: Vec<&str> = words.collect();
            for (_, files) in RUNNERS.iter().filter(|(runner, _)| *runner == name) {
                let directory = rest.windows(2).find(|pair| ["-C", "--prefix", "--dir"].contains(&pair[0]));
                let directory = directory.map_or(String::new(), |pair| format!("{}/", pair[1]));
                found.extend(files.iter().map(|file| format!("{directory}{file}")));
                found.extend(rest.windows(2).filter(|pair| pair[0] == "-f").map(|pair| pair[1].to_owned()));
            }
            if INTERPRETERS.contains(&name) {
                let module =
                    rest.windows(2).find(|pair| pair[0] == "-m").map(|pair| pair[1].replace('.', "/"));
                found.extend(
                    module
                        .iter()
                        .flat_map(|module| [format!("{module}.py"), format!("{module}/__main__.py")]),
                );
                found.extend(rest.iter().find(|word| !word.starts_with('-')).map(|word| (*word).to_owned()));
            }
        }
    }
    found
}

/// The words of a command, without quotes.
fn words(command: &str) -> impl Iterator<Item = &str> {
    command.split(|c: char| c.is_whitespace() || "\"'<>;&|()`".contains(c))
}

/// Where a candidate may lie: below the root, or beside the file that names it. What a variable stands for is not
/// known; the rest of such a path is looked for in both.
fn places(candidate: &str, beside: Option<&RepoPath>) -> Vec<RepoPath> {
    let known = match candidate.rfind('$') {
        Some(at) => candidate.get(at..).and_then(|rest| rest.split_once('/')).map_or("", |(_, rest)| rest),
        None => candidate,
    };
    let known = known.trim_start_matches('/');
    let directory = beside.and_then(|path| path.as_str().rsplit_once('/')).map(|(directory, _)| directory);
    let beside = directory.map(|directory| format!("{directory}/{known}"));
    [Some(known.to_owned()), beside].into_iter().flatten().filter_map(|path| normal(&path)).collect()
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
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn found(command: &[&str], files: &[(&str, &str)]) -> Vec<String> {
        let files: BTreeMap<&str, &str> = files.iter().copied().collect();
        let gate =
            serde_json::json!({"id": "tests", "command": command, "timeout_ms": 1000, "source": "the test"});
        let gates = [serde_json::from_value(gate).unwrap()];
        let read = |path: &RepoPath| files.get(path.as_str()).map(|text| text.as_bytes().to_vec());
        gate_files(&gates, read).into_iter().map(|path| path.to_string()).collect()
    }

    #[test]
    fn a_makefile_leads_to_the_script_that_it_runs() {
        let files = [
            ("Makefile", "all: build\n\ntest:\n\t@python3 tools/verify.py src/total.py\n"),
            ("tools/verify.py", "import total\n"),
            ("src/total.py", ""),
        ];
        assert_eq!(found(&["make", "test"], &files), ["Makefile", "tools/verify.py"]);
    }

    #[test]
    fn a_makefile_leads_to_the_one_that_it_starts() {
        let files = [
            ("Makefile", "test:\n\t$(MAKE) -C sub check && ${MAKE} -f other.mk\n"),
            ("sub/Makefile", "check:\n\tsh ./all.sh\n"),
            ("sub/all.sh", ""),
            ("other.mk", ""),
        ];
        assert_eq!(found(&["make", "test"], &files), ["Makefile", "other.mk", "sub/Makefile", "sub/all.sh"]);
    }

    #[test]
    fn however_long_the_way_it_is_followed_to_its_end() {
        let names: Vec<(String, String)> =
            (0..400).map(|n| (format!("s{n}.sh"), format!("sh s{}.sh", n + 1))).collect();
        let files: Vec<(&str, &str)> =
            names.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        assert_eq!(found(&["sh", "s0.sh"], &files).len(), 400);
    }

    #[test]
    fn a_package_leads_to_its_scripts_and_not_to_its_main_file() {
        let files = [
            (
                "package.json",
                r#"{"main": "lib/index.js", "scripts": {"test": "NODE_ENV=x node ./scripts/check.js"}}"#,
            ),
            ("scripts/check.js", "require('../lib/index.js')"),
            ("lib/index.js", ""),
        ];
        assert_eq!(found(&["npm", "test"], &files), ["package.json", "scripts/check.js"]);
    }

    #[test]
    fn scripts_that_a_script_sources_count() {
        let files = [
            (
                "check.sh",
                "set -e\n. \"$(dirname \"$0\")/ci/lib.sh\"\nif ./ci/more && true; then run_all; fi\n",
            ),
            ("ci/lib.sh", "source \"$HERE/last.sh\"\ncc -o x src/main.c\n"),
            ("ci/more", "#!/usr/bin/env bash\nexec timeout 5 python3 -m tools.lint\n"),
            ("ci/last.sh", ""),
            ("tools/lint.py", "./src/run.sh\n"),
            ("src/main.c", ""),
            ("src/run.sh", ""),
        ];
        let expected = ["check.sh", "ci/last.sh", "ci/lib.sh", "ci/more", "tools/lint.py"];
        assert_eq!(found(&["sh", "check.sh"], &files), expected);
        assert_eq!(found(&["sh", "-c", "cd . && ./check.sh"], &files), expected);
    }

    #[test]
    fn the_words_of_the_command_itself_count_wherever_they_stand() {
        let files = [("ci/check.sh", ""), ("src/self_test.py", ""), ("src/a.py", ""), ("make.mk", "")];
        assert_eq!(
            found(&["./ci/check.sh", "--all", "../out.sh", "src/untracked.py"], &files),
            ["ci/check.sh"]
        );
        let line = "X=1 python3 'src/self_test.py';make -f make.mk";
        assert_eq!(found(&["sh", "-c", line], &files), ["make.mk", "src/self_test.py"]);
    }

    #[test]
    fn files_that_name_each_other_come_to_an_end() {
        let files = [("a.sh", "sh b.sh\nsh ../a.sh\nsh ./a.sh"), ("b.sh", "sh a.sh\nsh $X\nsh $\nsh ''")];
        assert_eq!(found(&["./a.sh"], &files), ["a.sh", "b.sh"]);
        assert_eq!(found(&["cargo", "test", "--offline"], &files), [""; 0]);
    }
}
