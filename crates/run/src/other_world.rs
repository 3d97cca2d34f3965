//! The second world: another home, user, host name, path, command and settings for gates.
//!
//! Its values follow from the run and the verified tree, so they are the same at each verification, and no change can
//! contain them. The clock is not among them: the kernel gives no process another calendar, and a preloaded
//! library is left behind by a system call.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crucible_model::Digest;
use crucible_sandbox::{Identity, InnerUser};

/// Where home directories usually are.
const HOMES: &str = "/home";
/// Where the home is on a machine without them.
const OTHER_HOMES: &str = "/tmp/u";
/// The lowest number of a user, and how many there are.
const USERS: (u32, u32) = (1_100, 50_000);
/// Variables that give programs a number of threads.
const THREADS: [&str; 3] = ["RUST_TEST_THREADS", "GOMAXPROCS", "OMP_NUM_THREADS"];
/// A time zone that is neither that of the user nor a whole hour from it, and its replacement.
const ZONES: [&str; 2] = ["Asia/Kathmandu", "Pacific/Chatham"];
/// The locale of a user without one.
const LOCALE: &str = "C.UTF-8";

/// How much of the second world differs from the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorldDifference {
    /// What people set: time zone, locale, order of tests, threads.
    Settings,
    /// The same, and the user, the machine, the path and the command.
    Everything,
}

/// Another world for gates.
#[derive(Debug, Clone)]
pub(crate) struct OtherWorld {
    pub(crate) identity: Identity,
    pub(crate) differing: WorldDifference,
    seed: u32,
}

impl OtherWorld {
    /// The second world of the verification of `tree` in a run.
    pub(crate) fn new(run: &str, tree: &str) -> Self {
        let digest = Digest::compute(format!("{run} {tree}").as_bytes()).to_string();
        let digits = digest.rsplit(':').next().unwrap_or(&digest);
        let letters = |from: usize| -> String {
            let digits = digits.chars().skip(from).take(7);
            digits
                .filter_map(|digit| char::from_u32(u32::from(b'a') + digit.to_digit(16)?))
                .collect()
        };
        let number = |from: usize| {
            let digits: String = digits.chars().skip(from).take(7).collect();
            u32::from_str_radix(&digits, 16).unwrap_or_default()
        };
        let homes = if Path::new(HOMES).is_dir() {
            HOMES
        } else {
            OTHER_HOMES
        };
        Self {
            identity: Identity {
                home: Path::new(homes).join(letters(0)),
                user: InnerUser::Ids {
                    user: USERS.0 + number(7) % USERS.1,
                    group: USERS.0 + number(14) % USERS.1,
                },
                host_name: letters(21),
            },
            differing: WorldDifference::Everything,
            seed: number(28),
        }
    }

    /// The first world, with the settings of this one.
    pub(crate) fn settings_only(&self) -> Self {
        Self {
            differing: WorldDifference::Settings,
            ..self.clone()
        }
    }

    pub(crate) fn differs_completely(&self) -> bool {
        self.differing == WorldDifference::Everything
    }

    /// Where the copy of the repository at `top` is seen.
    pub(crate) fn place(&self, top: &Path) -> PathBuf {
        let name = top.file_name().unwrap_or(OsStr::new("project"));
        self.identity.home.join("src").join(name)
    }

    /// Changes the variables of a gate, but none that a gate sets itself. Returns what differs then.
    pub(crate) fn apply(&self, env: &mut Vec<(OsString, OsString)>) -> Vec<&'static str> {
        let mut differences = Vec::new();
        let value = |env: &[(OsString, OsString)], name: &str| {
            let found = env.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone())
        };
        let set = |env: &mut Vec<(OsString, OsString)>, name: &str, value: &OsStr| {
            env.retain(|(known, _)| known != name);
            env.push((name.into(), value.to_owned()));
        };
        let zone = ZONES
            .into_iter()
            .find(|zone| value(env, "TZ").as_deref() != Some(OsStr::new(zone)));
        if let Some(zone) = zone {
            set(env, "TZ", OsStr::new(zone));
            differences.push("time zone");
        }
        let is_locale = |name: &str| value(env, name).as_deref() == Some(OsStr::new(LOCALE));
        if !(is_locale("LC_ALL") || is_locale("LANG") && value(env, "LC_ALL").is_none()) {
            set(env, "LC_ALL", OsStr::new(LOCALE));
            differences.push("locale");
        }
        for name in THREADS {
            if value(env, name).is_none() {
                set(env, name, OsStr::new("2"));
            }
        }
        differences.push("number of threads");
        // The order of a set of strings, and the order of Go's tests.
        let seed = self.seed.to_string();
        if value(env, "PYTHONHASHSEED").is_none() {
            set(env, "PYTHONHASHSEED", OsStr::new(&seed));
        }
        if value(env, "GOFLAGS").is_none() {
            let shuffled = format!("-shuffle={seed}");
            set(env, "GOFLAGS", OsStr::new(&shuffled));
        }
        differences.push("order of tests");
        if self.differs_completely() {
            set(env, "HOME", self.identity.home.as_os_str());
            differences.extend(["home", "command"]);
        }
        differences
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_world_follows_from_run_and_tree() {
        let world = OtherWorld::new("run-1", "tree-1");
        assert_eq!(world.identity, OtherWorld::new("run-1", "tree-1").identity);
        for other in [
            OtherWorld::new("run-2", "tree-1"),
            OtherWorld::new("run-1", "tree-2"),
        ] {
            assert_ne!(world.identity.home, other.identity.home);
            assert_ne!(world.identity.user, other.identity.user);
            assert_ne!(world.identity.host_name, other.identity.host_name);
        }
        assert_ne!(world.identity, Identity::default());
        let place = world.place(Path::new("/root/shop"));
        assert!(place.starts_with(&world.identity.home) && place.ends_with("shop"));
    }

    #[test]
    fn settings_only_world_keeps_home() {
        let pairs = |pairs: &[(&str, &str)]| -> Vec<(OsString, OsString)> {
            let own = pairs
                .iter()
                .map(|(name, value)| (name.into(), value.into()));
            own.collect()
        };
        let first = pairs(&[("HOME", "/tmp/home"), ("TZ", ZONES[0]), ("GOFLAGS", "-v")]);
        let world = OtherWorld::new("run-1", "tree-1");
        let value = |env: &[(OsString, OsString)], name: &str| {
            let found = env.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.to_string_lossy().into_owned())
        };
        let mut env = first.clone();
        let differences = world.apply(&mut env);
        assert!(differences.contains(&"home") && differences.contains(&"time zone"));
        assert_eq!(value(&env, "TZ").as_deref(), Some(ZONES[1]));
        assert_eq!(value(&env, "GOFLAGS").as_deref(), Some("-v"));
        assert_eq!(value(&env, "LC_ALL").as_deref(), Some(LOCALE));
        assert_eq!(
            value(&env, "HOME"),
            world.identity.home.to_str().map(str::to_owned)
        );
        let mut env = first;
        assert!(!world.settings_only().apply(&mut env).contains(&"home"));
        assert_eq!(value(&env, "HOME").as_deref(), Some("/tmp/home"));
    }
}
