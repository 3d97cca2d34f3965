//! What a confined program sees of its user and its machine: home directory, numbers and host name.

use std::path::{Component, Path, PathBuf};

/// The private, empty home directory of every namespaced sandbox. Pass it as `HOME`.
pub const CONFINED_HOME: &str = "/tmp/home";
/// The name of the machine inside.
pub(crate) const HOSTNAME: &str = "crucible";
/// The user and group that the superuser becomes inside.
const INNER_ID: u32 = 1000;
/// A private place of every namespaced sandbox.
const PRIVATE: &str = "/tmp";
/// The directory that contains home directories.
const HOMES: &str = "/home";
/// The longest host name that the kernel takes.
const MAX_NAME: usize = 63;

/// The user and the machine that a confined program sees. Where namespaces are missing, it sees those of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// A directory that is made for the program, empty and in memory: in `/tmp`, or directly in `/home`. Its environment names
    /// it as `HOME`.
    pub home: PathBuf,
    /// Its user and group.
    pub user: InnerUser,
    /// The name of the machine.
    pub host_name: String,
}

/// The numbers of the user and the group inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InnerUser {
    /// Those of Crucible's own user; 1000 for the superuser, who must not be one inside.
    Own,
    /// These.
    Ids {
        /// The user.
        user: u32,
        /// The group.
        group: u32,
    },
}

impl Default for Identity {
    fn default() -> Self {
        Self {
            home: PathBuf::from(CONFINED_HOME),
            user: InnerUser::Own,
            host_name: HOSTNAME.to_owned(),
        }
    }
}

impl Identity {
    /// The numbers to take inside, if they differ from those outside.
    pub(crate) fn ids(&self) -> Option<(u32, u32)> {
        match self.user {
            InnerUser::Ids { user, group } => Some((user, group)),
            InnerUser::Own => rustix::process::geteuid()
                .is_root()
                .then_some((INNER_ID, INNER_ID)),
        }
    }

    /// The directory of home directories that must be made private for the home; `None` if it lies in a private place.
    pub(crate) fn homes(&self) -> Option<&'static Path> {
        let homes = Path::new(HOMES);
        (self.home.parent() == Some(homes) && homes.is_dir()).then_some(homes)
    }

    /// Checks the home directory, the user (not root) and the host name.
    pub(crate) fn check(&self) -> Result<(), String> {
        let is_plain = self
            .home
            .components()
            .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        let above = self.home.parent().unwrap_or(&self.home);
        let is_private = above.starts_with(PRIVATE) || self.homes().is_some();
        let is_user = !matches!(
            self.user,
            InnerUser::Ids { user: 0, .. } | InnerUser::Ids { group: 0, .. }
        );
        let is_name = (1..=MAX_NAME).contains(&self.host_name.len())
            && self
                .host_name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let problem = if !(is_plain && is_private) {
            format!(
                "the home {:?} is neither in /tmp nor directly in /home",
                self.home
            )
        } else if !is_user {
            "a confined program cannot be the superuser".to_owned()
        } else if !is_name {
            format!("{:?} is not a valid host name", self.host_name)
        } else {
            return Ok(());
        };
        Err(problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_that_covers_or_grants_is_refused() {
        let with_home = |home: &str| Identity {
            home: home.into(),
            ..Identity::default()
        };
        assert!(Identity::default().check().is_ok());
        assert!(with_home("/tmp/other/home").check().is_ok());
        for home in [
            "/tmp",
            "/",
            "/etc",
            "/tmp/../etc",
            "tmp/home",
            "/home/a/b",
            "/usr/home",
        ] {
            assert!(with_home(home).check().is_err(), "{home}");
        }
        for (user, group) in [(0, 1000), (1000, 0)] {
            let identity = Identity {
                user: InnerUser::Ids { user, group },
                ..Identity::default()
            };
            assert!(identity.check().is_err());
        }
        for host_name in ["", "a b", "a\0b", &"a".repeat(64)] {
            let identity = Identity {
                host_name: host_name.to_owned(),
                ..Identity::default()
            };
            assert!(identity.check().is_err(), "{host_name:?}");
        }
    }
}
