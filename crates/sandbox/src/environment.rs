//! What of the user's environment a child may see: an allow-list, never the whole.

use std::ffi::{OsStr, OsString};

use crucible_host::env::Environment;

/// A private, empty home directory that every namespaced sandbox has; give it as `HOME`.
pub const CONFINED_HOME: &str = "/tmp/home";

/// Passed on as they are.
const PASSED: [&str; 4] = ["PATH", "LANG", "LC_ALL", "TZ"];

/// Where language tools keep their installations: the variable, and the directory under the user's home
/// that it stands for when it is not set. None holds a secret that the sandbox does not mask.
const TOOLCHAINS: [(&str, &str); 11] = [
    ("CARGO_HOME", ".cargo"),
    ("RUSTUP_HOME", ".rustup"),
    ("PYENV_ROOT", ".pyenv"),
    ("NVM_DIR", ".nvm"),
    ("VOLTA_HOME", ".volta"),
    ("GOPATH", "go"),
    ("SDKMAN_DIR", ".sdkman"),
    ("RBENV_ROOT", ".rbenv"),
    ("ASDF_DATA_DIR", ".asdf"),
    ("GRADLE_USER_HOME", ".gradle"),
    ("MISE_DATA_DIR", ".local/share/mise"),
];

/// Passed on where set, because they choose a toolchain and nothing else.
const TOOL_CHOICES: [&str; 5] = ["RUSTUP_TOOLCHAIN", "GOROOT", "JAVA_HOME", "VIRTUAL_ENV", "PYENV_VERSION"];

/// `PATH`, `LANG`, `LC_ALL` and `TZ` where the user has them, and `TERM=dumb`. `HOME` is not among them:
/// which home a child sees is a decision of its caller.
#[must_use]
pub fn base_env(env: &Environment) -> Vec<(OsString, OsString)> {
    let mut base: Vec<_> =
        PASSED.iter().filter_map(|name| Some((OsString::from(name), env.get_os(name)?.to_owned()))).collect();
    base.push(("TERM".into(), "dumb".into()));
    base
}

/// The variables that let installed compilers and interpreters be found from a home directory that is not
/// the user's: each as the user set it, or its usual place where that exists. Without them the shims of
/// rustup, pyenv and the like find nothing inside the sandbox.
#[must_use]
pub fn toolchain_env(env: &Environment) -> Vec<(OsString, OsString)> {
    let home = env.home();
    let place = |(name, default): &(&str, &str)| {
        let value = match env.get_os(name) {
            Some(set) => set.to_owned(),
            None => home.as_ref()?.join(default).into_os_string(),
        };
        let exists = OsStr::new(&value).len() > 1 && std::path::Path::new(&value).is_dir();
        exists.then(|| (OsString::from(name), value))
    };
    let choice = |name: &&str| Some((OsString::from(name), env.get_os(name)?.to_owned()));
    TOOLCHAINS.iter().filter_map(place).chain(TOOL_CHOICES.iter().filter_map(choice)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_listed_variables_pass() {
        let env = Environment::from_pairs(
            [
                ("PATH", "/bin"),
                ("LANG", "C.UTF-8"),
                ("HOME", "/home/somebody"),
                ("AWS_SECRET_ACCESS_KEY", "x"),
                ("LD_PRELOAD", "/tmp/evil.so"),
                ("TERM", "xterm"),
                ("GIT_DIR", "/elsewhere"),
            ],
            "/",
        );
        let names: Vec<_> =
            base_env(&env).into_iter().map(|(name, value)| format!("{name:?}={value:?}")).collect();
        assert_eq!(names, [r#""PATH"="/bin""#, r#""LANG"="C.UTF-8""#, r#""TERM"="dumb""#]);
    }

    #[test]
    fn toolchains_are_named_only_where_they_exist() {
        let home = tempfile::tempdir().unwrap();
        std::fs::DirBuilder::new().create(home.path().join(".rustup")).unwrap();
        let env = Environment::from_pairs(
            [("HOME", home.path().as_os_str()), ("GOPATH", "/no/such".as_ref())],
            "/",
        );
        let found = toolchain_env(&env);
        assert_eq!(found, [("RUSTUP_HOME".into(), home.path().join(".rustup").into_os_string())]);
    }
}
