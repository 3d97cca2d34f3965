//! A disk that is full: an error, the previous state whole, and the run goes on when there is room again.
//!
//! The data directory lies on a small file system of its own, in a mount namespace that bubblewrap makes; what
//! is left free there is set step by step, so that the program meets the end of the disk at many places.

use std::process::Command;

use crate::support::{Fixture, GOAL, answering, good_answer, small};

/// Runs in the namespace; `$1` is the program, `$2` the goal, `$3` the repository.
const STORY: &str = r#"
cd "$HOME" || exit 90
"$1" run new "$2" --repo "$3" --sandbox off >/dev/null 2>&1 || exit 91
failed=0
for free in 0 16 64 128 160 168 176 184 192 200 208 216 224 232 240 248 256 272 288 320 384 512 768; do
    rm -f "$CRUCIBLE_HOME/ballast"
    dd if=/dev/zero of="$CRUCIBLE_HOME/ballast" bs=4096 2>/dev/null
    truncate -s "-$((free * 1024))" "$CRUCIBLE_HOME/ballast" || exit 92
    if "$1" run advance >/dev/null 2>"$HOME/advance.txt"; then
        break
    else
        code=$?
        failed=$((failed + 1))
        echo "with $free KiB free: exit $code: $(grep error: "$HOME/advance.txt" | head -n 1)"
    fi
    # Without the ballast everything that was there is still there.
    rm -f "$CRUCIBLE_HOME/ballast"
    "$1" run status >/dev/null || exit 93
    "$1" ledger verify >/dev/null || exit 94
done
rm -f "$CRUCIBLE_HOME/ballast"
"$1" run advance >/dev/null || exit 95
"$1" run land "$("$1" run list --json | grep -o '"run_id": *"[^"]*"' | cut -d '"' -f 4)" >/dev/null || exit 96
"$1" ledger verify --repo "$3" >/dev/null || exit 97
echo "failed $failed"
"#;

#[test]
fn full_disk_is_an_error_and_run_resumes() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    std::fs::create_dir(fixture.data()).unwrap();
    let program = fixture.call(["--version"]).command();
    let mut story = Command::new("bwrap");
    story
        .args(["--dev-bind", "/", "/", "--size", "4194304", "--tmpfs"])
        .arg(fixture.data());
    story
        .args(["sh", "-c", STORY, "story"])
        .arg(program.get_program())
        .arg(GOAL)
        .arg(repo.path());
    story.env_clear().envs(
        program
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let output = story.output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{:?}\n{stdout}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    let failed: u32 = stdout
        .lines()
        .last()
        .unwrap()
        .strip_prefix("failed ")
        .unwrap()
        .parse()
        .unwrap();
    assert!(failed >= 3, "the disk was never full: {stdout}");
    assert!(
        stdout
            .lines()
            .all(|line| !line.contains("panicked") && !line.ends_with("exit 101: ")),
        "{stdout}"
    );
    assert_eq!(repo.git(["rev-list", "--count", "HEAD"]), "2");
    assert_eq!(repo.status(), "");
    assert_eq!(server.requests().len(), 1, "{stdout}");
}
