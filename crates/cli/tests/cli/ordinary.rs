//! An ordinary user, who is not the superuser and has a copy of the program at a fixture of their own.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::skill_trust::Skills;
use crate::support::{Call, Fixture};

/// The number of the user and of the group of nobody.
const NOBODY: u32 = 65_534;

/// Who runs a skill.
pub(crate) enum Who {
    /// Whoever runs the tests: on most build machines the superuser.
    Tester,
    /// An ordinary user, by this copy of the program.
    Ordinary(PathBuf),
}

impl Who {
    /// The same call, made by them.
    pub(crate) fn calls(&self, call: Call) -> Call {
        let Self::Ordinary(program) = self else {
            return call;
        };
        let asked = call.command();
        let mut command = if rustix::process::geteuid().is_root() {
            let mut command = Command::new("setpriv");
            let id = NOBODY.to_string();
            command
                .args(["--reuid", &id, "--regid", &id, "--clear-groups"])
                .arg(program);
            command
        } else {
            Command::new(program)
        };
        command
            .args(asked.get_args())
            .stdin(Stdio::null())
            .env_clear();
        command.envs(
            asked
                .get_envs()
                .filter_map(|(name, value)| value.map(|value| (name, value))),
        );
        if let Some(directory) = asked.get_current_dir() {
            command.current_dir(directory);
        }
        Call::from_command(command)
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Tester => "whoever runs the tests",
            Self::Ordinary(_) => "an ordinary user",
        }
    }
}

/// Skills at a fixture that every user can come to.
pub(crate) fn skills_for_everybody() -> Skills {
    Skills::at(Fixture::below(&everybodys_place()))
}

/// Hands the whole fixture over to an ordinary user. Whoever was there before can still come, if they are the superuser.
pub(crate) fn hand_over(skills: &Skills) -> Who {
    let program = skills.fixture.path("crucible-copy");
    let built = Path::new(env!("CARGO_BIN_EXE_crucible"));
    if std::fs::hard_link(built, &program).is_err() {
        std::fs::copy(built, &program).unwrap();
    }
    if rustix::process::geteuid().is_root() {
        give(&skills.fixture.path(""), built);
    }
    Who::Ordinary(program)
}

/// Gives everything below `path` away, but not what is one with `kept`.
fn give(path: &Path, stored_path: &Path) {
    let meta = path.symlink_metadata().unwrap();
    if meta.is_symlink() {
        return;
    }
    let same = |other: std::fs::Metadata| {
        use std::os::unix::fs::MetadataExt;
        (other.dev(), other.ino()) == (meta.dev(), meta.ino())
    };
    if !stored_path.metadata().is_ok_and(same) {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    if meta.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            give(&entry.unwrap().path(), stored_path);
        }
    }
}

/// A directory that every user can enter and the sandbox does not empty.
fn everybodys_place() -> PathBuf {
    let open = |place: &PathBuf| {
        place.ancestors().all(|dir| {
            dir.metadata()
                .is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0)
        })
    };
    let places = [env!("CARGO_TARGET_TMPDIR"), "/srv", "/opt", "/mnt"];
    places.into_iter().map(PathBuf::from).find(open).unwrap()
}
