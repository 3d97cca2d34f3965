//! The literal rules of the crawl's specification: allowed prefixes and prohibited tokens, compared
//! as texts.
//!
//! They are the minimum: what they refuse is refused, even if a token is part of a harmless word.
//! All stricter rules are in the other files and work on words.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use crucible_repo::BuildSystem;

/// The texts with which a command may begin, by build system.
#[must_use]
pub fn allowed_prefixes(system: BuildSystem) -> &'static [&'static str] {
    match system {
        BuildSystem::Cargo => &[
            "cargo build",
            "cargo test",
            "cargo check",
            "cargo clippy",
            "cargo fmt",
            "cargo doc",
            "cargo install --path",
            "cargo bench",
            "install -m",
            "install target/",
            "cp target/",
            "mkdir -p",
        ],
        BuildSystem::Go => &[
            "go build",
            "go test",
            "go vet",
            "go mod tidy",
            "go mod download",
            "go install",
            "go generate",
            "install -m",
            "cp ",
            "mkdir -p",
        ],
        BuildSystem::NodeNpm => &[
            "npm install",
            "npm ci",
            "npm run",
            "npm test",
            "npm exec",
            "npx ",
            "node ",
            "cp ",
            "mkdir -p",
        ],
        BuildSystem::NodeYarn => &[
            "yarn install",
            "yarn run",
            "yarn test",
            "yarn build",
            "yarn exec",
            "node ",
            "cp ",
            "mkdir -p",
        ],
        BuildSystem::NodePnpm => &[
            "pnpm install",
            "pnpm run",
            "pnpm test",
            "pnpm build",
            "pnpm exec",
            "node ",
            "cp ",
            "mkdir -p",
        ],
        BuildSystem::PythonPip => &[
            "pip install",
            "pip3 install",
            "python -m",
            "python3 -m",
            "python setup.py",
            "python3 setup.py",
            "pytest",
            "cp ",
            "mkdir -p",
        ],
        BuildSystem::PythonPoetry => &[
            "poetry install",
            "poetry build",
            "poetry run",
            "python -m",
            "python3 -m",
            "pytest",
            "cp ",
            "mkdir -p",
        ],
        BuildSystem::PythonSetuptools => &[
            "pip install",
            "pip3 install",
            "python -m build",
            "python -m",
            "python3 -m",
            "python setup.py",
            "python3 setup.py",
            "pytest",
            "cp ",
            "mkdir -p",
        ],
        BuildSystem::Cmake => &[
            "cmake -S",
            "cmake -B",
            "cmake --build",
            "cmake --install",
            "ctest",
            "make -j",
            "make install",
            "make test",
            "mkdir -p",
            "cp ",
        ],
        BuildSystem::Meson => &[
            "meson setup",
            "meson compile",
            "meson test",
            "meson install",
            "ninja",
            "mkdir -p",
            "cp ",
        ],
        BuildSystem::Autotools => &[
            "./configure",
            "autoreconf",
            "automake",
            "autoconf",
            "make -j",
            "make install",
            "make check",
            "make test",
            "mkdir -p",
            "cp ",
        ],
        BuildSystem::Make => &["make", "mkdir -p", "cp ", "install -m"],
        BuildSystem::Unknown => &["mkdir -p", "cp "],
    }
}

/// The tokens that are refused anywhere in a command, in the order and groups of the specification.
pub(super) const PROHIBITED_TOKENS: &[&str] = &[
    // Privilege escalation.
    "sudo", "su ", "doas ", // Code from elsewhere.
    "curl ", "wget ", "fetch ", "curl|", "wget|", "|sh", "|bash", "|zsh", "$(", "`",
    // More than one command.
    "&&", "||", ";", "|", // Redirection.
    ">>", ">", // Dangerous file system operations.
    "rm -rf", "rm -r", "rmdir", "chmod ", "chown ", "chgrp ", "ln -s", "mount ", "umount ",
    // System directories.
    "/usr/", "/etc/", "/var/", "/opt/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/boot/", "/proc/",
    "/sys/", "/dev/", "/root/", "~", "$HOME", "$USER", "$PATH", // Network.
    "ssh ", "scp ", "rsync ", "nc ", "ncat ", "netcat ", // System packages.
    "apt ", "apt-get ", "yum ", "dnf ", "pacman ", "brew ", "snap ", "flatpak ",
];

/// Finds all tokens in one pass; if the automaton cannot be built, each is searched separately.
static FINDER: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::new(PROHIBITED_TOKENS).ok());

/// The tokens of the table in `command`, in table order.
pub(super) fn prohibited_tokens(command: &str) -> Vec<&'static str> {
    let Some(finder) = FINDER.as_ref() else {
        return PROHIBITED_TOKENS
            .iter()
            .copied()
            .filter(|token| command.contains(token))
            .collect();
    };
    let mut is_found = [false; PROHIBITED_TOKENS.len()];
    for hit in finder.find_overlapping_iter(command) {
        if let Some(is_found) = is_found.get_mut(hit.pattern().as_usize()) {
            *is_found = true;
        }
    }
    PROHIBITED_TOKENS
        .iter()
        .zip(is_found)
        .filter(|(_, is_found)| *is_found)
        .map(|(token, _)| *token)
        .collect()
}

/// Whether `command` begins with a text that its build system allows.
pub(super) fn has_allowed_prefix(command: &str, system: BuildSystem) -> bool {
    allowed_prefixes(system)
        .iter()
        .any(|prefix| command.starts_with(prefix))
}

/// How to rephrase without the token: many of them are also part of innocent words.
pub(super) fn rephrase_hint(token: &str) -> &'static str {
    match token {
        "&&" | "||" | ";" | "|" | "|sh" | "|bash" | "|zsh" | "curl|" | "wget|" => {
            "a step is one command; write a separate step for each command"
        }
        ">" | ">>" => "a step cannot redirect; let the program write its file by an option",
        "$(" | "`" | "$HOME" | "$USER" | "$PATH" | "~" => {
            "nothing is expanded; write the value itself"
        }
        _ if token.starts_with('/') => {
            "this token is also forbidden inside a relative path; enter the directory with `cwd`, or omit a \
            leading `./`"
        }
        _ if token.ends_with(' ') => {
            "this token is also forbidden at the end of a longer word; write that word last, or choose another one"
        }
        _ => {
            "this token is forbidden everywhere, even inside a longer word; choose another word or omit the step"
        }
    }
}
