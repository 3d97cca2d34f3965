//! Temporary directories in memory for the tests, which otherwise wait for the disk at each flush.
//!
//! Root mounts a tmpfs over `/tmp` and over cargo's directory for tests, in a mount namespace of the test runner alone: no other
//! process sees it, and it is gone when the runner ends. Anyone else runs the same tests on the disk.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

use crate::error::TaskError;
use crate::process::Call;
use crate::root::Root;
use crate::tools::is_root;

/// Mounts a tmpfs over `/tmp` and `$0`, then becomes the program in `$@`.
const MOUNT: &str = r#"for directory in /tmp "$0"; do mount -t tmpfs -o mode=1777 tests "$directory"; done && exec "$@""#;

const UNSHARE: [&str; 5] = ["--mount", "--propagation", "private", "--", "sh"];

/// A call of `program` that finds its temporary directories in memory where this machine allows it.
pub(crate) fn with_temporary_files(
    root: &Root,
    program: impl Into<OsString>,
) -> Result<Call, TaskError> {
    let program = program.into();
    let for_tests = root.target().join("tmp");
    fs::create_dir_all(&for_tests).map_err(TaskError::io("create", &for_tests))?;
    // A workspace below `/tmp` would disappear below the mount.
    if root.path().starts_with("/tmp") || root.target().starts_with("/tmp") || !is_root()? {
        return Ok(Call::new(root, program));
    }
    let mounted = mounted(root, &for_tests, OsStr::new("true"));
    if mounted.succeeds() {
        return Ok(self::mounted(root, &for_tests, &program));
    }
    eprintln!(
        "the tests' temporary files are on the disk, which is slower: mounting a tmpfs is not allowed here"
    );
    Ok(Call::new(root, program))
}

fn mounted(root: &Root, for_tests: &Path, program: &OsStr) -> Call {
    Call::new(root, "unshare").args(UNSHARE).args([
        OsStr::new("-ec"),
        OsStr::new(MOUNT),
        for_tests.as_os_str(),
        program,
    ])
}
