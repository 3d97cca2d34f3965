//! What changed lines of a source newly reach: the network, the environment, other programs, deserialisation.
//!
//! A sink is a name in the code of a changed line that the text before does not have as often. This lists what a person should
//! look at; it proves nothing, since code can put a name together.

use std::collections::BTreeMap;

use crucible_model::RepoPath;
use serde::{Deserialize, Serialize};

use crate::class::is_test_path;
use crate::source::{Language, code_without_literals};

/// What a sink reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SinkKind {
    /// Another machine, or a socket.
    Network,
    /// A variable of the environment.
    Environment,
    /// Another program, or code that a text holds.
    Execution,
    /// Objects made from data.
    Deserialisation,
    /// A comparison of secrets that no longer takes the same time for all values.
    SecretComparison,
}

impl SinkKind {
    /// Its name in settings and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Environment => "environment",
            Self::Execution => "execution",
            Self::Deserialisation => "deserialisation",
            Self::SecretComparison => "secret-comparison",
        }
    }
}

/// One new sink.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sink {
    /// The file.
    pub path: RepoPath,
    /// The line, counted from 1.
    pub line: u64,
    /// What it reaches.
    pub kind: SinkKind,
    /// The name that shows it.
    pub name: String,
}

/// Names that show a sink, by language; a name with a dot or `::` is matched as a whole.
fn names(language: Language) -> &'static [(SinkKind, &'static [&'static str])] {
    use SinkKind::{Deserialisation, Environment, Execution, Network};
    match language {
        Language::Python => &[
            (
                Network,
                &[
                    "socket",
                    "urllib",
                    "requests",
                    "http.client",
                    "httpx",
                    "aiohttp",
                    "smtplib",
                    "ftplib",
                    "urlopen",
                ],
            ),
            (Environment, &["os.environ", "environ", "getenv", "putenv"]),
            (
                Execution,
                &[
                    "subprocess",
                    "os.system",
                    "popen",
                    "eval",
                    "exec",
                    "execv",
                    "spawnv",
                    "pty",
                    "ctypes",
                    "compile",
                    "__import__",
                    "importlib",
                ],
            ),
            (
                Deserialisation,
                &[
                    "pickle",
                    "marshal",
                    "shelve",
                    "yaml.load",
                    "jsonpickle",
                    "dill",
                ],
            ),
        ],
        Language::Script => &[
            (
                Network,
                &[
                    "fetch",
                    "XMLHttpRequest",
                    "WebSocket",
                    "axios",
                    "node:http",
                    "node:https",
                    "node:net",
                    "http.request",
                    "https.request",
                    "http.get",
                    "https.get",
                    "createConnection",
                    "sendBeacon",
                ],
            ),
            (Environment, &["process.env", "Deno.env"]),
            (
                Execution,
                &[
                    "child_process",
                    "execSync",
                    "spawn",
                    "spawnSync",
                    "execFile",
                    "eval",
                    "Function",
                    "vm.runInNewContext",
                    "runInThisContext",
                ],
            ),
            (Deserialisation, &["unserialize", "v8.deserialize"]),
        ],
        Language::Rust => &[
            (
                Network,
                &[
                    "TcpStream",
                    "TcpListener",
                    "UdpSocket",
                    "UnixStream",
                    "reqwest",
                    "hyper",
                    "ureq",
                ],
            ),
            (
                Environment,
                &["env::var", "env::vars", "env::var_os", "env::set_var"],
            ),
            (
                Execution,
                &["Command::new", "libloading", "dlopen", "asm", "exec"],
            ),
            (Deserialisation, &["bincode", "serde_pickle"]),
        ],
        Language::Go => &[
            (
                Network,
                &[
                    "net.Dial",
                    "net.Listen",
                    "http.Get",
                    "http.Post",
                    "http.Client",
                    "http.NewRequest",
                    "http.ListenAndServe",
                ],
            ),
            (
                Environment,
                &["os.Getenv", "os.LookupEnv", "os.Setenv", "os.Environ"],
            ),
            (
                Execution,
                &[
                    "exec.Command",
                    "exec.CommandContext",
                    "syscall.Exec",
                    "os.StartProcess",
                    "plugin.Open",
                ],
            ),
            (Deserialisation, &["gob.NewDecoder"]),
        ],
        Language::C => &[
            (
                Network,
                &["socket", "connect", "getaddrinfo", "curl_easy_init"],
            ),
            (Environment, &["getenv", "setenv", "putenv"]),
            (
                Execution,
                &[
                    "system",
                    "popen",
                    "execv",
                    "execve",
                    "execl",
                    "execlp",
                    "execvp",
                    "dlopen",
                    "posix_spawn",
                ],
            ),
            (Deserialisation, &[]),
        ],
    }
}

/// Functions that compare secrets in constant time.
const CONSTANT_TIME: [&str; 8] = [
    "compare_digest",
    "timingSafeEqual",
    "ConstantTimeCompare",
    "ct_eq",
    "constant_time_eq",
    "verify_slices_are_equal",
    "CRYPTO_memcmp",
    "timingsafe_bcmp",
];

/// Returns the sinks that a change brings into one file; `before` is absent in a new file. Tests have none.
#[must_use]
pub fn new_sinks(path: &RepoPath, before: Option<&[u8]>, after: &[u8]) -> Vec<Sink> {
    let Some(language) = Language::from_path(path).filter(|_| !is_test_path(path)) else {
        return Vec::new();
    };
    let old = found(language, before.unwrap_or_default());
    let new = found(language, after);
    let mut had: BTreeMap<(SinkKind, &str), usize> = BTreeMap::new();
    for (kind, name, _) in &old {
        *had.entry((*kind, name)).or_default() += 1;
    }
    // What stood there before keeps its places from the top; a moved line brings nothing new.
    let mut sinks = Vec::new();
    let mut seen: BTreeMap<(SinkKind, &str), usize> = BTreeMap::new();
    for (kind, name, line) in &new {
        let count = seen.entry((*kind, name)).or_default();
        *count += 1;
        if *count > had.get(&(*kind, *name)).copied().unwrap_or(0) {
            sinks.push(Sink {
                path: path.clone(),
                line: *line,
                kind: *kind,
                name: (*name).to_owned(),
            });
        }
    }
    let constant = |bytes: &[u8]| {
        let code = code_without_literals(language, bytes);
        CONSTANT_TIME
            .iter()
            .map(|name| places(&code, name).len())
            .sum::<usize>()
    };
    if constant(after) < constant(before.unwrap_or_default()) {
        let name = "constant-time comparison removed".to_owned();
        sinks.push(Sink {
            path: path.clone(),
            line: 1,
            kind: SinkKind::SecretComparison,
            name,
        });
    }
    sinks.sort();
    sinks
}

/// Every sink of a text in order of its names, with its line.
fn found(language: Language, source: &[u8]) -> Vec<(SinkKind, &'static str, u64)> {
    let code = code_without_literals(language, source);
    let mut found = Vec::new();
    for (kind, names) in names(language) {
        for name in *names {
            let is_module = name.contains("node:");
            let text = if is_module { source } else { &code };
            found.extend(
                places(text, name)
                    .into_iter()
                    .map(|line| (*kind, *name, line)),
            );
        }
    }
    found
}

/// The lines of a text, counted from 1, that hold this name as a whole word.
fn places(text: &[u8], name: &str) -> Vec<u64> {
    let is_word =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let mut found = Vec::new();
    for (row, line) in text.split(|byte| *byte == b'\n').enumerate() {
        for at in 0..line.len().saturating_sub(name.len().saturating_sub(1)) {
            let end = at + name.len();
            let is_here = line.get(at..end) == Some(name.as_bytes());
            if is_here
                && !is_word(at.checked_sub(1).and_then(|at| line.get(at)))
                && !is_word(line.get(end))
            {
                found.push(row as u64 + 1);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(path: &str, before: &str, after: &str) -> Vec<(SinkKind, u64)> {
        let sinks = new_sinks(
            &path.parse().unwrap(),
            Some(before.as_bytes()),
            after.as_bytes(),
        );
        sinks
            .into_iter()
            .map(|sink| (sink.kind, sink.line))
            .collect()
    }

    #[test]
    fn new_sinks_are_listed_in_every_language() {
        use SinkKind::{Deserialisation, Environment, Execution, Network};
        for (path, after, kind) in [
            ("a.py", "import subprocess\n", Execution),
            ("a.py", "x = os.getenv('A')\n", Environment),
            ("a.py", "x = pickle.loads(data)\n", Deserialisation),
            ("a.js", "const r = await fetch(url)\n", Network),
            ("a.js", "const k = process.env.KEY\n", Environment),
            ("a.rs", "let c = Command::new(\"ls\");\n", Execution),
            ("a.go", "c, err := net.Dial(\"tcp\", a)\n", Network),
            ("a.c", "int r = system(command);\n", Execution),
        ] {
            assert!(
                kinds(path, "", after).contains(&(kind, 1)),
                "{path}: {after}"
            );
        }
    }

    #[test]
    fn existing_sink_is_not_reported() {
        let before = "import subprocess\n\n\ndef a():\n    subprocess.run(['ls'])\n";
        assert_eq!(kinds("a.py", before, &format!("# moved\n{before}")), []);
        let more = format!("{before}    subprocess.run(['rm'])\n");
        assert_eq!(kinds("a.py", before, &more), [(SinkKind::Execution, 6)]);
    }

    #[test]
    fn words_in_texts_and_tests_are_no_sinks() {
        assert_eq!(kinds("a.py", "", "x = 'subprocess'  # eval\n"), []);
        assert_eq!(kinds("tests/test_a.py", "", "import subprocess\n"), []);
        assert_eq!(kinds("a.py", "", "evaluate = medieval\n"), []);
    }

    #[test]
    fn weaker_comparison_of_secrets_is_listed() {
        let before = "def ok(a, b):\n    return hmac.compare_digest(a, b)\n";
        let after = "def ok(a, b):\n    return a == b\n";
        assert_eq!(
            kinds("a.py", before, after),
            [(SinkKind::SecretComparison, 1)]
        );
        assert_eq!(kinds("a.py", after, before), []);
    }
}
