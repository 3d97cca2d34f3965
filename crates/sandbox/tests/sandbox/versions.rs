//! Programs that are asked for their version: what they are given, and the worst that they can do with it.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crucible_sandbox::{IsolationLevel, NoVersion, Sandbox, VersionOutput};

use crate::confined::write;
use crate::support::{Scratch, eventually, mark, processes_with, runtime};

fn program(scratch: &Scratch, name: &str, script: &str) -> PathBuf {
    let path = scratch.home.join(name);
    write(&path, &format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path
}

fn asked(sandbox: &Sandbox, program: &std::path::Path) -> Result<VersionOutput, NoVersion> {
    runtime().block_on(sandbox.version_of(program))
}

#[test]
fn version_query_gives_program_nothing_else() {
    let scratch = Scratch::new();
    write(&scratch.home.join("letter"), "hidden\n");
    let home = scratch.home.display().to_string();
    let tool = program(
        &scratch,
        "opt/node_modules/tool/bin/tool",
        &format!(
            "[ \"$#\" = 1 ] && [ \"$1\" = --version ] || exit 3\n\
             read line && exit 4\n(: < /dev/tty) 2>/dev/null && exit 5\n\
             (read line < {home}/letter) 2>/dev/null && exit 6\n[ -z \"$LEAKED\" ] || exit 7\n\
             read -r line < \"${{0%/*}}/../../other/part\" && echo \"$line\""
        ),
    );
    // What it is made of lies beside it, in a home that is hidden.
    write(
        &scratch.home.join("opt/node_modules/other/part"),
        "Tool v1.2.3-rc.1 (part)\n",
    );
    for (sandbox, level) in [
        (scratch.sandbox(), IsolationLevel::Full),
        (scratch.without_bubblewrap(), IsolationLevel::Partial),
    ] {
        let version_output = asked(&sandbox, &tool).unwrap();
        assert_eq!(version_output.line, "Tool v1.2.3-rc.1 (part)");
        assert_eq!(
            (version_output.number.as_deref(), version_output.isolation),
            (Some("1.2.3-rc.1"), level)
        );
    }
}

#[test]
fn program_directly_in_home_is_queried_too() {
    let scratch = Scratch::new();
    let tool = program(&scratch, "tool", "echo 7.8");
    assert_eq!(
        asked(&scratch.sandbox(), &tool).unwrap().number.as_deref(),
        Some("7.8")
    );
}

#[test]
fn whatever_a_program_does_becomes_a_value() {
    let scratch = Scratch::new();
    let sandbox = scratch.sandbox();
    let said = |script: &str| asked(&sandbox, &program(&scratch, "tool", script));
    assert!(matches!(said("exit 0"), Err(NoVersion::Silent)));
    let failed = said("echo 'no such option' >&2; exit 64").unwrap_err();
    assert!(
        matches!(&failed, NoVersion::Failed { code: 64, line } if line == "no such option"),
        "{failed}"
    );
    assert_eq!(
        said("echo '1.0 of stderr' >&2").unwrap().line,
        "1.0 of stderr"
    );
    assert_eq!(
        said("printf 'Password: '; read secret; exit 0")
            .unwrap()
            .number,
        None
    );
    let loud = said("printf '\\033]0;owned\\007\\033[31m2.0\\033[0m\\n'").unwrap();
    assert_eq!(
        (loud.line.as_str(), loud.number.as_deref()),
        ("2.0", Some("2.0"))
    );
    assert!(matches!(said("yes"), Err(NoVersion::Endless)));
    assert!(matches!(
        said("kill -9 $$"),
        Err(NoVersion::Failed { code: 137, .. } | NoVersion::Signalled { .. })
    ));
    let script = program(&scratch, "orphan", "x");
    write(&script, "#!/no/such/interpreter\n");
    assert!(matches!(
        asked(&sandbox, &script),
        Err(NoVersion::NotRun(_))
    ));
    // What looks like a key is not repeated.
    let key = format!("ghp_{}", "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4zAb7d");
    let leaky = said(&format!("echo {key} 1.0")).unwrap();
    assert!(!leaky.line.contains(&key), "{}", leaky.line);
}

#[test]
fn hanging_program_is_ended_with_its_children() {
    let scratch = Scratch::new();
    let mark = mark();
    let tool = program(
        &scratch,
        "tool",
        &format!("trap '' TERM\nsleep {mark} &\nsleep {mark}\nsleep {mark}"),
    );
    let started = Instant::now();
    assert!(matches!(
        asked(&scratch.sandbox(), &tool),
        Err(NoVersion::TimedOut)
    ));
    assert!(started.elapsed() > Duration::from_secs(9));
    eventually("nothing of it is left", || processes_with(&mark).is_empty());
}
