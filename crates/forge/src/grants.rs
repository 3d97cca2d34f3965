//! What a class of side effects is narrowed to: hosts, paths below the project, and secrets by name.
//!
//! A class says what kind of thing a skill may do, its grants say to what. A class without the grants that it needs can do nothing of its kind.

use std::fmt;
use std::str::FromStr;

use crucible_ledger::SideEffect;
use crucible_model::{Code, Finding, PathPrefix, Verdict};
use crucible_sandbox::AllowedHost;
use serde::{Deserialize, Serialize};

use crate::places::{PlaceUse, RefusedPlace, may_be_granted};

/// The most entries of each list.
const LIMIT: usize = 32;

/// What a skill may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Grants {
    /// Hosts that it may connect to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostName>,
    /// Directories and files below the project's top that it may write.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write_paths: Vec<PathPrefix>,
    /// Directories and files below the project's top that it may read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read_paths: Vec<PathPrefix>,
    /// Environment variables that are handed to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretName>,
}

/// Grants that do not fit their class.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrantsError {
    /// The class cannot use them.
    #[error("{kind} are granted to a skill of the class {}, which has no use for them; leave them out, or choose another class", class.as_str())]
    Useless {
        /// Which.
        kind: &'static str,
        /// The class of the proposed skill.
        class: SideEffect,
    },
    /// The class can do nothing without them.
    #[error("a skill of the class {} needs {kind}; pass {flag}", class.as_str())]
    Missing {
        /// Which.
        kind: &'static str,
        /// The class of the proposed skill.
        class: SideEffect,
        /// The option that names them.
        flag: &'static str,
    },
    /// The whole project is granted.
    #[error(
        "a skill is granted directories of the project, not the whole project; name the directory"
    )]
    Everything,
    /// A place that is not the skill's to write or to read.
    #[error(transparent)]
    Place(#[from] RefusedPlace),
    /// Too many.
    #[error(
        "{count} {kind} are granted, at most {LIMIT} are taken; fewer and wider ones are easier to answer for"
    )]
    TooMany {
        /// Which.
        kind: &'static str,
        /// How many.
        count: usize,
    },
}

impl Grants {
    /// Judges whether these grants fit their class.
    ///
    /// # Errors
    ///
    /// [`GrantsError`] where one is missing, useless or too wide.
    pub fn check(&self, class: SideEffect) -> Result<(), GrantsError> {
        let lists = [
            ("hosts", self.hosts.len(), "--allow-host"),
            ("paths to write", self.write_paths.len(), "--allow-write"),
            ("paths to read", self.read_paths.len(), "--allow-read"),
            ("secrets", self.secrets.len(), "--allow-secret"),
        ];
        // What a class reads besides it could hand on to where it connects or writes.
        let uses = match class {
            SideEffect::ReadOnly => [Use::None, Use::None, Use::Possible, Use::None],
            SideEffect::FileWrite => [Use::None, Use::Needed, Use::None, Use::None],
            SideEffect::Network => [Use::Needed, Use::None, Use::None, Use::None],
            SideEffect::SecretRead => [Use::None, Use::None, Use::None, Use::Needed],
            // Both speak to a service, as somebody.
            SideEffect::Money | SideEffect::Messaging => {
                [Use::Needed, Use::None, Use::None, Use::Possible]
            }
        };
        for ((kind, count, flag), takes) in lists.into_iter().zip(uses) {
            match takes {
                Use::None if count > 0 => return Err(GrantsError::Useless { kind, class }),
                Use::Needed if count == 0 => {
                    return Err(GrantsError::Missing { kind, class, flag });
                }
                Use::None | Use::Needed | Use::Possible => {}
            }
            if count > LIMIT {
                return Err(GrantsError::TooMany { kind, count });
            }
        }
        if self
            .write_paths
            .iter()
            .chain(&self.read_paths)
            .any(PathPrefix::is_everything)
        {
            return Err(GrantsError::Everything);
        }
        Ok(self.check_places()?)
    }

    /// Judges whether what may be written means nothing to others than the skill, and what may be read is no secret.
    ///
    /// # Errors
    ///
    /// [`RefusedPlace`] names the first path that does.
    pub(crate) fn check_places(&self) -> Result<(), RefusedPlace> {
        self.write_paths
            .iter()
            .try_for_each(|place| may_be_granted(place, PlaceUse::Write))?;
        self.read_paths
            .iter()
            .try_for_each(|place| may_be_granted(place, PlaceUse::Read))
    }

    /// Grants that deserve a look before a person approves them. A host that is written as an address of the machine itself or of a
    /// private network is reached as it is written, even if another program listens there. A name that resolves to such an address is not reached.
    #[must_use]
    pub fn judge(&self) -> Verdict {
        let local = self
            .hosts
            .iter()
            .filter(|host| AllowedHost::web(host.as_str()).is_local());
        let local_host_warning = |host: &HostName| {
            Finding::warning(
                Code::new("forge-host-local"),
                host.to_string(),
                "This host is local: the machine itself, a private network, or a cloud metadata service. The skill can connect to any service there. Grant it only if that is intended.",
            )
        };
        Verdict::new(local.map(local_host_warning).collect())
    }
}

/// Whether a class takes grants of a kind.
#[derive(Clone, Copy)]
enum Use {
    None,
    Possible,
    Needed,
}

/// A host that may be connected to: a name such as `api.example.com`, in small letters, without a port and without a wildcard.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostName(String);

/// The text is not a name of a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a host: {text:?}; it takes a name such as api.example.com, without a scheme, a port or a wildcard"
)]
pub struct HostNameError {
    text: String,
}

/// The name of an environment variable that is handed to a skill.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SecretName(String);

/// The text is not a name of a variable that could be handed to a skill.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "not the name of a secret: {text:?}; it takes capitals, digits and `_`, and changes nothing of how a program is run: WEATHER_API_KEY"
)]
pub struct SecretNameError {
    text: String,
}

impl HostName {
    /// The host as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl SecretName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for HostName {
    type Err = HostNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let host = text.to_ascii_lowercase();
        let plain = |label: &str| {
            (1..=63).contains(&label.len())
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        if host.len() <= 253 && host.split('.').all(plain) {
            Ok(Self(host))
        } else {
            Err(HostNameError {
                text: text.chars().take(260).collect(),
            })
        }
    }
}

/// Variables that steer how a program is found, loaded or run: none of them is a secret, whatever it holds.
const STEERING: [&str; 5] = ["PATH", "HOME", "IFS", "SHELL", "TMPDIR"];
const STEERING_PREFIXES: [&str; 5] = ["PYTHON", "LD_", "DYLD_", "GLIBC_", "CRUCIBLE_"];

impl FromStr for SecretName {
    type Err = SecretNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = text
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
        let begins = text.starts_with(|first: char| first.is_ascii_uppercase());
        let steers = STEERING.contains(&text)
            || STEERING_PREFIXES
                .iter()
                .any(|prefix| text.starts_with(prefix));
        if plain && begins && !steers && text.len() <= 64 {
            Ok(Self(text.to_owned()))
        } else {
            Err(SecretNameError {
                text: text.chars().take(72).collect(),
            })
        }
    }
}

macro_rules! as_text {
    ($name:ident, $error:ident) => {
        impl TryFrom<String> for $name {
            type Error = $error;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}
as_text!(HostName, HostNameError);
as_text!(SecretName, SecretNameError);

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(hosts: &[&str], paths: &[&str], secrets: &[&str]) -> Grants {
        Grants {
            hosts: hosts.iter().map(|host| host.parse().unwrap()).collect(),
            write_paths: paths.iter().map(|path| path.parse().unwrap()).collect(),
            secrets: secrets.iter().map(|name| name.parse().unwrap()).collect(),
            read_paths: Vec::new(),
        }
    }

    fn reading(paths: &[&str]) -> Grants {
        Grants {
            read_paths: paths.iter().map(|path| path.parse().unwrap()).collect(),
            ..Grants::default()
        }
    }

    #[test]
    fn read_only_alone_is_granted_directories_to_read() {
        for class in SideEffect::ALL.iter().copied() {
            let fits = reading(&["logs/", "data/all.csv"]).check(class).is_ok();
            assert_eq!(fits, class == SideEffect::ReadOnly, "{class:?}");
        }
        assert_eq!(
            reading(&["."]).check(SideEffect::ReadOnly),
            Err(GrantsError::Everything)
        );
        for place in [
            ".crucible",
            "a/.git~x/../b",
            ".ssh",
            "a/.env",
            "~/logs",
            "logs/*",
        ] {
            let Ok(prefix) = place.parse() else { continue };
            let refused = Grants {
                read_paths: vec![prefix],
                ..Grants::default()
            }
            .check(SideEffect::ReadOnly);
            assert!(
                matches!(&refused, Err(GrantsError::Place(refused)) if refused.path == place),
                "{place}: {refused:?}"
            );
        }
        // What other programs run may be read.
        assert_eq!(
            reading(&[".github/workflows", "node_modules"]).check(SideEffect::ReadOnly),
            Ok(())
        );
        // What was granted before there were such paths is written as it was.
        let older = serde_json::to_string(&grants(&[], &["notes/"], &[])).unwrap();
        assert_eq!(older, r#"{"write_paths":["notes"]}"#);
    }

    #[test]
    fn each_class_requires_and_allows_its_grants() {
        let nothing = grants(&[], &[], &[]);
        let (hosts, paths, secrets) = (
            grants(&["api.example.com"], &[], &[]),
            grants(&[], &["notes/"], &[]),
            grants(&[], &[], &["KEY"]),
        );
        let fits = [
            (SideEffect::ReadOnly, [true, false, false, false]),
            (SideEffect::FileWrite, [false, false, true, false]),
            (SideEffect::Network, [false, true, false, false]),
            (SideEffect::SecretRead, [false, false, false, true]),
            (SideEffect::Money, [false, true, false, false]),
            (SideEffect::Messaging, [false, true, false, false]),
        ];
        assert_eq!(fits.len(), SideEffect::ALL.len());
        for (class, expected) in fits {
            let found =
                [&nothing, &hosts, &paths, &secrets].map(|grants| grants.check(class).is_ok());
            assert_eq!(found, expected, "{class:?}");
        }
        assert!(
            grants(&["pay.example.com"], &[], &["PAY_KEY"])
                .check(SideEffect::Money)
                .is_ok()
        );
    }

    #[test]
    fn overly_broad_grant_is_refused() {
        assert_eq!(
            grants(&[], &["."], &[]).check(SideEffect::FileWrite),
            Err(GrantsError::Everything)
        );
        let many: Vec<String> = (0..=LIMIT)
            .map(|number| format!("h{number}.example.com"))
            .collect();
        let many = grants(
            &many.iter().map(String::as_str).collect::<Vec<_>>(),
            &[],
            &[],
        );
        assert!(matches!(
            many.check(SideEffect::Network),
            Err(GrantsError::TooMany { .. })
        ));
    }

    #[test]
    fn grant_of_control_path_refuses_the_request() {
        for place in [".github", "a/.Crucible", "notes/.env", "~/x"] {
            let refused = grants(&[], &["notes", place], &[]).check(SideEffect::FileWrite);
            assert!(
                matches!(&refused, Err(GrantsError::Place(refused)) if refused.path == place),
                "{place}"
            );
        }
    }

    #[test]
    fn local_and_private_hosts_are_reported() {
        let verdict_of = |host: &str| grants(&[host, "api.example.com"], &[], &[]).judge();
        for local in [
            "169.254.169.254",
            "127.0.0.1",
            "localhost",
            "LOCALHOST",
            "10.1.2.3",
            "192.168.0.1",
        ] {
            let verdict = verdict_of(local);
            assert!(verdict.passes(), "{local}");
            let codes: Vec<String> = verdict
                .findings()
                .iter()
                .map(|found| found.code.to_string())
                .collect();
            assert_eq!(codes, ["forge-host-local"], "{local}");
        }
        for public in ["www.example.com", "93.184.215.14", "localhost.example.com"] {
            assert!(verdict_of(public).findings().is_empty(), "{public}");
        }
    }

    #[test]
    fn host_names_and_secret_variables_are_validated() {
        for good in ["api.example.com", "localhost", "127.0.0.1", "A.Example.COM"] {
            assert_eq!(
                good.parse::<HostName>().unwrap().as_str(),
                good.to_ascii_lowercase()
            );
        }
        for bad in [
            "",
            "*",
            "*.example.com",
            "https://x",
            "x:80",
            "a..b",
            "-a.com",
            "a b",
            "ä.com",
            "a/b",
        ] {
            assert!(bad.parse::<HostName>().is_err(), "{bad:?}");
        }
        for bad in [
            "",
            "path",
            "PATH",
            "PYTHONPATH",
            "LD_PRELOAD",
            "A=B",
            "A B",
            "1A",
            "CRUCIBLE_HOME",
        ] {
            assert!(bad.parse::<SecretName>().is_err(), "{bad:?}");
        }
        assert!("WEATHER_API_KEY".parse::<SecretName>().is_ok());
    }
}
