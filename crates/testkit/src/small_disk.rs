//! A test that runs once more, as a process of its own, where a directory is a small disk in memory.

use std::path::Path;
use std::process::Command;

/// Runs the test of this name in a mount namespace of its own: `variable` tells it `home`, and `place` below that is a memory disk of
/// so many bytes (`512k`). `then` is shell code that ends in `&&`, run before the test begins there; `$0` is `home`.
///
/// # Panics
///
/// When the test fails there, with what it said.
pub fn on_a_small_disk(
    variable: &str,
    test: &str,
    home: &Path,
    place: &str,
    size: &str,
    then: &str,
) {
    let script = format!(
        "mkdir -p \"$0/{place}\" && mount -t tmpfs -o size={size},mode=700 small \"$0/{place}\" && {then} exec \"$@\""
    );
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", &script])
        .arg(home)
        .arg(std::env::current_exe().expect("the test's own program"))
        .args(["--exact", test, "--nocapture"])
        .env(variable, home)
        .output()
        .expect("unshare runs");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && printed.contains("1 passed"),
        "{printed}"
    );
}
