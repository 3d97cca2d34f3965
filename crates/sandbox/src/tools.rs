//! Tool installations below home directories: the only parts of a home that a confined program sees.
//!
//! Home directories are covered completely. This table lists the paths that are visible again, read-only:
//! programs, libraries and download caches. A settings file is visible only if
//! nothing in it looks like a secret. Paths in the user's `PATH` and in toolchain variables are also visible,
//! because the user's settings point programs there.
//!
//! Invariant: a path is in this table because a build needs it, never because it is harmless. All other
//! paths stay hidden.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crucible_host::env::Environment;
use crucible_host::fs::read_up_to;
use crucible_model::ByteLimit;
use crucible_secrets::Scanner;

/// An installation of a tool.
pub(crate) struct Tool {
    /// The variable that names its directory; empty without one.
    pub(crate) variable: &'static str,
    /// Its directory below the home directory if the variable is not set.
    pub(crate) default: &'static str,
    /// The visible parts; empty for all.
    parts: &'static [&'static str],
    /// Settings files that are visible only if they contain no secret.
    settings: &'static [&'static str],
}

const fn tool(
    variable: &'static str,
    default: &'static str,
    parts: &'static [&'static str],
) -> Tool {
    Tool {
        variable,
        default,
        parts,
        settings: &[],
    }
}

/// Installations that a variable names. Their order is that of [`crate::toolchain_env`].
pub(crate) const TOOLCHAINS: [Tool; 11] = [
    Tool {
        variable: "CARGO_HOME",
        default: ".cargo",
        parts: &["bin", "registry", "git", "env"],
        settings: &["config.toml", "config"],
    },
    tool("RUSTUP_HOME", ".rustup", &[]),
    tool("PYENV_ROOT", ".pyenv", &[]),
    tool("NVM_DIR", ".nvm", &[]),
    tool("VOLTA_HOME", ".volta", &[]),
    tool("GOPATH", "go", &["bin", "pkg"]),
    tool("SDKMAN_DIR", ".sdkman", &[]),
    tool("RBENV_ROOT", ".rbenv", &[]),
    tool(
        "ASDF_DATA_DIR",
        ".asdf",
        &["bin", "installs", "lib", "plugins", "shims", "asdf.sh"],
    ),
    Tool {
        variable: "GRADLE_USER_HOME",
        default: ".gradle",
        parts: &["caches", "jdks", "native", "wrapper"],
        settings: &["gradle.properties"],
    },
    tool(
        "MISE_DATA_DIR",
        ".local/share/mise",
        &["installs", "plugins", "shims"],
    ),
];

/// Installations that no passed variable names.
const OTHERS: [Tool; 32] = [
    tool("", ".local/bin", &[]),
    tool("", ".local/lib", &[]),
    tool("", ".local/pipx", &["venvs"]),
    tool("", ".local/share/pipx", &["venvs"]),
    tool("", ".local/share/uv", &["python", "tools"]),
    tool("", ".local/share/fnm", &[]),
    tool("", ".local/share/pnpm", &[]),
    tool("", ".local/share/gem/ruby", &[]),
    tool("", ".local/state/nix/profile", &[]),
    tool("", ".nix-profile", &[]),
    tool("", ".fnm", &[]),
    tool("", ".npm-global", &["bin", "lib"]),
    tool("", ".yarn", &["berry/cache", "bin", "releases"]),
    tool("", ".deno", &["bin"]),
    tool("", ".bun", &["bin", "install"]),
    tool("", ".m2", &["repository", "wrapper"]),
    tool("", ".gem/ruby", &[]),
    tool(
        "",
        ".dotnet",
        &[
            "dotnet",
            "host",
            "packs",
            "sdk",
            "shared",
            "templates",
            "tools",
        ],
    ),
    tool("", ".nuget/packages", &[]),
    tool("", ".ghcup", &["bin", "ghc"]),
    tool("", ".cabal", &["bin", "packages", "store"]),
    tool("", ".stack", &["pantry", "programs", "snapshots"]),
    tool("", ".opam", &[]),
    tool("", ".elan", &["bin", "toolchains"]),
    tool("", ".juliaup", &["bin"]),
    tool(
        "",
        ".julia",
        &["artifacts", "compiled", "packages", "registries"],
    ),
    tool("", ".mix/archives", &[]),
    tool("", ".hex/packages", &[]),
    tool("", ".pub-cache", &["bin", "hosted"]),
    tool("", "miniconda3", &[]),
    tool("", "miniforge3", &[]),
    tool("", "anaconda3", &[]),
];

/// Variables that only choose a toolchain; values that are directories are visible.
pub(crate) const CHOICES: [&str; 5] = [
    "RUSTUP_TOOLCHAIN",
    "GOROOT",
    "JAVA_HOME",
    "VIRTUAL_ENV",
    "PYENV_VERSION",
];

/// Directories below `/home` in which package managers install tools.
const MANAGERS: [&str; 1] = ["/home/linuxbrew/.linuxbrew"];

/// Entries next to a `bin` directory that its programs need.
const BESIDE_PROGRAMS: [&str; 5] = ["include", "lib", "lib64", "libexec", "pyvenv.cfg"];

/// The largest settings file that is searched for secrets.
const MAX_SETTINGS: ByteLimit = ByteLimit(256 << 10);
/// Words in the names of secret settings.
const SECRET_KEYS: [&str; 4] = ["token", "password", "secret", "passphrase"];

/// Returns all tool paths, from the table below the user's home and from the child's variables.
/// They need not exist.
pub(crate) fn visible_tool_paths(
    env: &Environment,
    given: &[(OsString, OsString)],
    program: &Path,
) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = MANAGERS.iter().map(PathBuf::from).collect();
    let home = env.home();
    let value = |name: &str| {
        let set = given.iter().rev().find(|(input, _)| input == name);
        set.map(|(_, value)| value.as_os_str())
            .filter(|_| !name.is_empty())
    };
    for tool in TOOLCHAINS.iter().chain(&OTHERS) {
        if let Some(home) = &home {
            tool.collect_visible(&home.join(tool.default), &mut found);
        }
        for named in value(tool.variable).iter().flat_map(std::env::split_paths) {
            tool.collect_visible(&named, &mut found);
        }
    }
    found.extend(
        CHOICES
            .iter()
            .filter_map(|name| value(name))
            .map(PathBuf::from),
    );
    for programs in std::env::split_paths(value("PATH").unwrap_or(OsStr::new(""))) {
        collect_siblings(&programs, &mut found);
        found.push(programs);
    }
    if let Some(programs) = program.parent() {
        collect_siblings(programs, &mut found);
    }
    found.push(program.to_owned());
    found.retain(|place| place.is_absolute());
    found
}

/// Adds the libraries next to a `bin` directory. A `bin` in the home directory itself has none.
fn collect_siblings(programs: &Path, found: &mut Vec<PathBuf>) {
    if programs.file_name() == Some(OsStr::new("bin"))
        && let Some(above) = programs.parent()
    {
        found.extend(BESIDE_PROGRAMS.iter().map(|name| above.join(name)));
    }
}

impl Tool {
    fn collect_visible(&self, place: &Path, found: &mut Vec<PathBuf>) {
        if self.parts.is_empty() {
            found.push(place.to_owned());
        }
        found.extend(self.parts.iter().map(|part| place.join(part)));
        let settings = self.settings.iter().map(|name| place.join(name));
        found.extend(settings.filter(|file| !holds_secret(file)));
    }
}

/// Returns whether a settings file may contain a secret. One that cannot be read may.
fn holds_secret(file: &Path) -> bool {
    let Ok(bytes) = read_up_to(file, MAX_SETTINGS) else {
        return true;
    };
    let text = String::from_utf8_lossy(&bytes).to_lowercase();
    let keys = text
        .lines()
        .filter_map(|line| line.split_once(['=', ':']))
        .map(|(key, _)| key);
    let mut keys = keys.filter(|key| !key.trim_start().starts_with('#'));
    keys.any(|key| SECRET_KEYS.iter().any(|word| key.contains(word)))
        || !Scanner::builtin().scan(&bytes).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &str) -> bool {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        crucible_host::fs::write_atomic(&file, text.as_bytes()).unwrap();
        holds_secret(&file)
    }

    #[test]
    fn settings_with_secrets_are_recognised() {
        assert!(holds("[registries.own]\ntoken = \"abc\"\n"));
        assert!(holds("registries.own.token = 'abc'"));
        assert!(holds("signing.password=abc"));
        assert!(holds(&format!(
            "[env]\nX = \"{}{}\"",
            "AKIA", "ZQ3DRSTUVWXY2345"
        )));
        assert!(!holds(
            "[registry]\nglobal-credential-providers = [\"cargo:token\"]\n"
        ));
        assert!(!holds("[build]\njobs = 2 # token\n# token = 1\n"));
        assert!(holds_secret(Path::new("/no/such/file")));
    }

    #[test]
    fn tool_table_has_no_secret_or_duplicate_places() {
        let all: Vec<&str> = TOOLCHAINS
            .iter()
            .chain(&OTHERS)
            .map(|tool| tool.default)
            .collect();
        for (index, place) in all.iter().enumerate() {
            assert!(!place.starts_with('/') && !place.is_empty() && !place.contains(".."));
            let doubled = all
                .iter()
                .skip(index + 1)
                .any(|other| Path::new(other).starts_with(place));
            assert!(!doubled, "{place} is listed twice");
        }
    }

    #[test]
    fn only_places_given_to_the_child_are_shown() {
        let env = Environment::from_pairs(
            [("HOME", "/h"), ("JAVA_HOME", "/h/java"), ("PATH", "/h/own")],
            "/",
        );
        let given = [
            ("PATH".into(), "/h/opt/x/bin:relative".into()),
            ("GOPATH".into(), "/h/a:/h/b".into()),
        ];
        let found = visible_tool_paths(&env, &given, Path::new("/h/venv/bin/pytest"));
        let has = |place: &str| found.contains(&PathBuf::from(place));
        for place in [
            "/h/opt/x/bin",
            "/h/opt/x/lib",
            "/h/a/pkg",
            "/h/b/bin",
            "/h/go/pkg",
            "/h/venv/lib",
        ] {
            assert!(has(place), "{place} is not in {found:?}");
        }
        for place in [
            "/h/java",
            "/h/own",
            "relative",
            "/h/a",
            "/h/.cargo",
            "/h/venv",
            "/h",
        ] {
            assert!(!has(place), "{place} is in {found:?}");
        }
    }
}
