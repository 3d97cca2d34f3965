//! What of the user's environment a child may see: an allow-list, never the whole.

use std::ffi::{OsStr, OsString};

use crucible_host::env::Environment;

use crate::tools::{CHOICES, TOOLCHAINS, Tool};

/// Passed on as they are.
const PASSED: [&str; 4] = ["PATH", "LANG", "LC_ALL", "TZ"];

/// `PATH`, `LANG`, `LC_ALL` and `TZ` where the user has them, and `TERM=dumb`. `HOME` is not among them:
/// which home a child sees is a decision of its caller.
#[must_use]
pub fn base_env(env: &Environment) -> Vec<(OsString, OsString)> {
    let mut base: Vec<_> = PASSED
        .iter()
        .filter_map(|name| Some((OsString::from(name), env.get_os(name)?.to_owned())))
        .collect();
    base.push(("TERM".into(), "dumb".into()));
    base
}

/// The variables that let installed compilers and interpreters be found from a home directory that is not
/// the user's: each as the user set it, or its usual place where that exists. Without them the shims of
/// rustup, pyenv and the like find nothing inside the sandbox.
#[must_use]
pub fn toolchain_env(env: &Environment) -> Vec<(OsString, OsString)> {
    let home = env.home();
    let place = |tool: &Tool| {
        let value = match env.get_os(tool.variable) {
            Some(set) => set.to_owned(),
            None => home.as_ref()?.join(tool.default).into_os_string(),
        };
        let exists = OsStr::new(&value).len() > 1 && std::path::Path::new(&value).is_dir();
        exists.then(|| (OsString::from(tool.variable), value))
    };
    let choice = |name: &&str| Some((OsString::from(name), env.get_os(name)?.to_owned()));
    TOOLCHAINS
        .iter()
        .filter_map(place)
        .chain(CHOICES.iter().filter_map(choice))
        .collect()
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests lay out directories and links by hand"
)]
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
        let names: Vec<_> = base_env(&env)
            .into_iter()
            .map(|(name, value)| format!("{name:?}={value:?}"))
            .collect();
        assert_eq!(
            names,
            [
                r#""PATH"="/bin""#,
                r#""LANG"="C.UTF-8""#,
                r#""TERM"="dumb""#
            ]
        );
    }

    #[test]
    fn toolchains_are_named_only_where_they_exist() {
        let home = tempfile::tempdir().unwrap();
        std::fs::DirBuilder::new()
            .create(home.path().join(".rustup"))
            .unwrap();
        let env = Environment::from_pairs(
            [
                ("HOME", home.path().as_os_str()),
                ("GOPATH", "/no/such".as_ref()),
            ],
            "/",
        );
        let found = toolchain_env(&env);
        assert_eq!(
            found,
            [(
                "RUSTUP_HOME".into(),
                home.path().join(".rustup").into_os_string()
            )]
        );
    }
}
