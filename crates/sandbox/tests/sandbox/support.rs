//! What the tests share: a sandbox, shell scripts as programs, and eyes for processes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crucible_host::env::Environment;
use crucible_sandbox::{
    Completed, Confinement, End, Identity, Launcher, Limits, Network, Profile, Sandbox,
    SandboxError, Spawn, Stdin, Strength, SyscallClass, base_env,
};

/// Set in a copy of the test program that plays a part in a test of its parent.
const PART: &str = "CRUCIBLE_TEST_PART";

/// Where the search for programs goes in all tests.
pub(crate) fn path() -> OsString {
    std::env::var_os("PATH").unwrap()
}

/// An environment as `cli` would capture it, with this home.
pub(crate) fn environment(home: &Path) -> Environment {
    Environment::from_pairs(
        [
            ("PATH", path()),
            ("HOME", home.into()),
            ("LANG", "C.UTF-8".into()),
        ],
        "/",
    )
}

pub(crate) fn launcher() -> Launcher {
    let program = std::env::var_os("CRUCIBLE_TEST_LAUNCHER").map_or_else(
        || env!("CARGO_BIN_EXE_crucible-sandbox-exec").into(),
        PathBuf::from,
    );
    Launcher {
        program,
        args: Vec::new(),
    }
}

/// A scratch home and a directory to write to, both outside `/tmp`, which the sandbox empties.
pub(crate) struct Scratch {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) home: PathBuf,
    pub(crate) copy: PathBuf,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        let base = std::env::var_os("CRUCIBLE_TEST_SCRATCH")
            .map_or_else(|| env!("CARGO_TARGET_TMPDIR").into(), PathBuf::from);
        let dir = tempfile::Builder::new()
            .prefix("sandbox")
            .tempdir_in(base.canonicalize().unwrap())
            .unwrap();
        let (home, copy) = (dir.path().join("home"), dir.path().join("copy"));
        std::fs::create_dir(&home).unwrap();
        std::fs::create_dir(&copy).unwrap();
        Self { dir, home, copy }
    }

    pub(crate) fn sandbox(&self) -> Sandbox {
        Sandbox::new(Some(launcher()), &environment(&self.home))
    }

    /// A shell script, trusted, in the writable directory, with twenty seconds.
    pub(crate) fn script(&self, script: &str) -> Spawn {
        let mut spawn = Spawn::new("sh", &self.copy, limits());
        spawn.args = vec!["-c".into(), script.into()];
        spawn.env = base_env(&environment(&self.home));
        spawn
    }

    /// The same, required to be confined, writing to `copy` only.
    pub(crate) fn confined(&self, script: &str) -> Spawn {
        let mut spawn = self.script(script);
        spawn.confinement = Confinement::Confined(self.profile());
        spawn
    }

    /// A Python script as a skill is run: isolated, on its standard input.
    pub(crate) fn python(&self, script: &str, change: impl FnOnce(&mut Profile)) -> Spawn {
        let mut spawn = self.confined_with("", change);
        spawn.program = python();
        spawn.args = ["-I", "-B", "-S", "-"].map(OsString::from).to_vec();
        spawn.stdin = Stdin::Bytes(script.into());
        spawn
    }

    pub(crate) fn profile(&self) -> Profile {
        Profile {
            strength: Strength::Required,
            writable: vec![self.copy.clone()],
            masked: Vec::new(),
            read_only: Vec::new(),
            mounts: Vec::new(),
            network: Network::None,
            calls: SyscallClass::Tools,
            identity: Identity::default(),
        }
    }
}

pub(crate) fn limits() -> Limits {
    let mut limits = Limits::new(Duration::from_secs(20));
    limits.grace = Duration::from_millis(300);
    limits
}

/// Runs on a runtime of its own.
pub(crate) fn run(sandbox: &Sandbox, spawn: Spawn) -> Result<Completed, SandboxError> {
    runtime().block_on(sandbox.run(spawn))
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

/// The output of a run that must have worked.
pub(crate) fn output(sandbox: &Sandbox, spawn: Spawn) -> String {
    let done = run(sandbox, spawn).unwrap();
    assert!(
        done.end == End::Exited(0),
        "{:?}\n{}\n{}",
        done.end,
        done.stdout.text(),
        done.stderr.text()
    );
    done.stdout.text().into_owned()
}

/// The interpreter itself, not a script that finds it.
pub(crate) fn python() -> PathBuf {
    static FOUND: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    let ask = || {
        let mut command = Command::new("python3");
        command.args([
            "-I",
            "-c",
            "import os, sys; print(os.path.realpath(sys.executable))",
        ]);
        let output = command.current_dir("/").output().unwrap();
        PathBuf::from(String::from_utf8(output.stdout).unwrap().trim_end())
    };
    FOUND.get_or_init(ask).clone()
}

/// The processes whose command line holds `mark`, besides this one.
pub(crate) fn processes_with(mark: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(line) = std::fs::read(entry.path().join("cmdline")) else {
            continue;
        };
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(mark) && entry.file_name() != *std::process::id().to_string() {
            found.push(format!("{:?}: {line}", entry.file_name()));
        }
    }
    found
}

/// A number for `sleep` that no other test uses, as a mark to find its process by.
pub(crate) fn mark() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!(
        "86{:07}{:02}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

/// Waits until `holds` holds.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(20), "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether this process was started to play a part, and the argument for it.
pub(crate) fn part() -> Option<String> {
    std::env::var(PART).ok()
}

/// Makes `command`, which starts a copy of this test program, run the test `name` in the part given.
pub(crate) fn play(command: &mut Command, name: &str, argument: &str) {
    command
        .args(["--exact", name, "--nocapture"])
        .env(PART, argument);
}
