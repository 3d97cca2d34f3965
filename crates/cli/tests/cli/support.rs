//! What the tests share: a fixture to run the program at, a small repository with a failing test, a snapshot of
//! everything a run must not touch.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crucible_model::Digest;
use crucible_testkit::{FakeOpenAi, Reply, RepoBuilder, TestRepo};
use serde_json::Value;

/// The goal of most runs.
pub(crate) const GOAL: &str = "make area in src/area.py multiply width and height";

/// The file with the mistake.
pub(crate) const WRONG: &str = "\
def area(width, height):
    return width + height


def perimeter(width, height):
    return 2 * (width + height)
";

/// The patch that mends it.
pub(crate) const GOOD_DIFF: &str = "\
diff --git a/src/area.py b/src/area.py
--- a/src/area.py
+++ b/src/area.py
@@ -1,5 +1,5 @@
 def area(width, height):
-    return width + height
+    return width * height
 
 
 def perimeter(width, height):
";

/// Runs every test there is: a patch that deletes the failing one would pass.
pub(crate) const CHECK: &str = "\
set -e
for test in tests/*.sh; do
    [ -f \"$test\" ] || continue
    sh \"$test\"
done
";

/// The failing test.
pub(crate) const TEST: &str = "\
grep -q 'return width \\* height' src/area.py || {
    echo 'area(2, 3) is 5, expected 6 (src/area.py)'
    exit 1
}
";

/// A check that passes before the change, too, and that loads the code.
pub(crate) const LOADS: &str =
    "python3 -c 'import sys; sys.path.insert(0, \"src\"); import area' || exit 1\n";

/// The project's settings: one quick gate.
pub(crate) const GATE: &str = "[gates.tests]\ncommand = [\"sh\", \"./check.sh\"]\n";

/// The mended file.
pub(crate) fn right() -> String {
    WRONG.replacen("width + height", "width * height", 1)
}

/// The answer of a model that mends it.
pub(crate) fn good_answer() -> String {
    whole_file("src/area.py", &right())
}

/// An answer that gives one file whole.
pub(crate) fn whole_file(path: &str, content: &str) -> String {
    format!("FILE: {path}\n```\n{content}```\n")
}

/// A repository with one mistake, one failing test and one gate.
pub(crate) fn small() -> RepoBuilder {
    RepoBuilder::new().files([
        (".crucible/config.toml", GATE),
        ("check.sh", CHECK),
        ("src/area.py", WRONG),
        ("tests/area_test.sh", TEST),
    ])
}

/// Like [`small`], with another gate.
pub(crate) fn with_gate(script: &str, timeout_s: u64) -> RepoBuilder {
    let config = format!("{GATE}timeout_s = {timeout_s}\n");
    RepoBuilder::new().files([
        (".crucible/config.toml", config.as_str()),
        ("check.sh", script),
        ("src/area.py", WRONG),
    ])
}

/// Moves a file or directory, also to another file system: temporary files of the tests may lie on several.
pub(crate) fn move_to(from: &Path, to: &Path) {
    let moved = Command::new("mv")
        .args(["-T", "--"])
        .args([from, to])
        .status()
        .unwrap();
    assert!(
        moved.success(),
        "{} is not moved to {}",
        from.display(),
        to.display()
    );
}

/// A private home, and the program with it.
pub(crate) struct Fixture {
    directory: tempfile::TempDir,
    base_url: String,
}

impl Fixture {
    /// A fixture whose model is out of reach: a test that asks it anyway fails.
    pub(crate) fn new() -> Self {
        Self::below(Path::new(env!("CARGO_TARGET_TMPDIR")))
    }

    /// The same, in this directory.
    pub(crate) fn below(place: &Path) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("fixture")
            .tempdir_in(place)
            .unwrap();
        let fixture = Self {
            directory,
            base_url: "http://127.0.0.1:9/v1".to_owned(),
        };
        std::fs::create_dir(fixture.home()).unwrap();
        let identity = "[user]\n\tname = Operator\n\temail = operator@example.invalid\n";
        std::fs::write(fixture.home().join(".gitconfig"), identity).unwrap();
        fixture
    }

    /// A fixture with this server as the gateway.
    pub(crate) fn with(server: &FakeOpenAi) -> Self {
        Self {
            base_url: server.base_url(),
            ..Self::new()
        }
    }

    /// Makes a project below `project` with the package for skills, in which this skill is proposed; it only reads.
    pub(crate) fn with_skill(&self, name: &str, schema: &str, examples: Option<&str>) {
        let project = self.path("project");
        std::fs::create_dir_all(project.join(".git")).unwrap();
        std::fs::write(self.path("io.json"), schema).unwrap();
        self.call(["skill", "init"])
            .current_dir(&project)
            .run()
            .ok();
        let words = [
            "skill",
            "propose",
            name,
            "--describe",
            "Counts lines.",
            "--effects",
            "read_only",
        ];
        let mut call = self.call(words).arg("--io").arg(self.path("io.json"));
        if let Some(examples) = examples {
            std::fs::write(self.path("examples.json"), examples).unwrap();
            call = call.arg("--examples").arg(self.path("examples.json"));
        }
        call.current_dir(&project).run().ok();
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    /// `$CRUCIBLE_HOME`.
    pub(crate) fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Writes the user's own configuration file.
    pub(crate) fn user_config(&self, text: &str) {
        let dir = self.home().join(".config/crucible");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("config.toml"), text).unwrap();
    }

    /// A place for the test's own files.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The program with these arguments, in the home, knowing only what a test tells it.
    pub(crate) fn call(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Call {
        let mut command = Command::new(env!("CARGO_BIN_EXE_crucible"));
        command
            .args(args)
            .current_dir(self.home())
            .stdin(Stdio::null())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            // The fixture lies in this project's own repository, which is none of its business.
            .env("GIT_CEILING_DIRECTORIES", self.directory.path())
            .env("CRUCIBLE_HOME", self.data())
            .env("CRUCIBLE_LLM_PROVIDER", "gateway")
            .env("CRUCIBLE_GATEWAY_BASE_URL", &self.base_url);
        Call { command }
    }

    /// Runs the program with these arguments.
    pub(crate) fn run<const N: usize>(&self, args: [&str; N]) -> Ran {
        self.call(args).run()
    }

    /// `run start GOAL --repo REPO`, and where that leads.
    pub(crate) fn start(&self, repo: &Path) -> Ran {
        self.start_call(repo).run()
    }

    /// The same, not yet started.
    pub(crate) fn start_call(&self, repo: &Path) -> Call {
        let args = ["run", "start", GOAL, "--json", "--repo"].map(OsString::from);
        self.call(args).arg(repo)
    }

    /// The status of the newest run.
    pub(crate) fn status(&self) -> Value {
        self.run(["run", "status", "--json"]).ok().json()
    }

    /// The directories of all runs.
    pub(crate) fn runs(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.data().join("runs"));
        let entries = entries.map(|entries| entries.map(|entry| entry.unwrap().path()).collect());
        entries.unwrap_or_default()
    }
}

/// One call of the program.
pub(crate) struct Call {
    command: Command,
}

impl Call {
    /// A call of a command that was put together elsewhere.
    pub(crate) fn from_command(command: Command) -> Self {
        Self { command }
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    pub(crate) fn args<const N: usize>(mut self, args: [&str; N]) -> Self {
        self.command.args(args);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn without_env(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    pub(crate) fn current_dir(mut self, directory: impl AsRef<Path>) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// The command itself, for tests that do more than wait for its end.
    pub(crate) fn command(self) -> Command {
        self.command
    }

    pub(crate) fn run(mut self) -> Ran {
        let output = self.command.output().unwrap();
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// How a call ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// The same, having ended with this code.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(
            self.code,
            Some(code),
            "stdout:\n{}\nstderr:\n{}",
            self.stdout,
            self.stderr
        );
        self
    }

    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        self.exits(0)
    }

    /// Standard output as the one JSON document it has to be.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        match serde_json::from_str(&self.stdout) {
            Ok(value) => value,
            Err(error) => panic!(
                "no JSON document ({error}):\n{}\n{}",
                self.stdout, self.stderr
            ),
        }
    }

    /// The error document, which is the last line of standard error with `--json`.
    #[track_caller]
    pub(crate) fn error(&self) -> Value {
        assert_eq!(self.stdout, "", "an error has no result");
        let document = match serde_json::from_str(self.stderr.lines().last().unwrap_or_default()) {
            Ok(value) => value,
            Err(error) => panic!("no error document ({error}):\n{}", self.stderr),
        };
        let schema = include_str!("../../../../docs/contracts/error.schema.json");
        let schema = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
        let problem = schema
            .iter_errors(&document)
            .next()
            .map(|error| error.to_string());
        assert_eq!(problem, None, "{document:#}");
        document
    }

    /// The text of the error document.
    #[track_caller]
    pub(crate) fn message(&self) -> String {
        self.error()["error"].as_str().unwrap().to_owned()
    }
}

/// The id in a run's status.
pub(crate) fn id_of(status: &Value) -> String {
    status["run"]["run_id"].as_str().unwrap().to_owned()
}

/// The codes of an attempt's findings, counted from 1.
pub(crate) fn codes(status: &Value, attempt: usize) -> Vec<String> {
    let findings = status["attempts"][attempt - 1]["findings"]
        .as_array()
        .unwrap();
    findings
        .iter()
        .map(|finding| finding["code"].as_str().unwrap().to_owned())
        .collect()
}

/// A repository together with its server, or just the repository: everything below a directory, `.git`
/// included, as path → kind, mode, time and digest. Two snapshots are equal when nothing was touched.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Snapshot(BTreeMap<Vec<u8>, String>);

impl Snapshot {
    /// Everything below these directories.
    pub(crate) fn take<const N: usize>(roots: [&Path; N]) -> Self {
        let mut entries = BTreeMap::new();
        for root in roots {
            look_at(root, &mut entries);
        }
        Self(entries)
    }

    /// Fails, and names what was touched, unless both are the same.
    #[track_caller]
    pub(crate) fn is_still(&self, after: &Self) {
        let touched = self.touched(after);
        assert!(touched.is_empty(), "touched: {touched:?}");
    }

    /// Returns the paths that differ.
    pub(crate) fn touched(&self, after: &Self) -> Vec<String> {
        let differ = |(path, was): (&Vec<u8>, &String), other: &Self| {
            (other.0.get(path) != Some(was)).then(|| String::from_utf8_lossy(path).into_owned())
        };
        let mut touched: Vec<String> = self
            .0
            .iter()
            .filter_map(|entry| differ(entry, after))
            .collect();
        touched.extend(after.0.iter().filter_map(|entry| differ(entry, self)));
        touched
    }
}

fn look_at(path: &Path, entries: &mut BTreeMap<Vec<u8>, String>) {
    let meta = std::fs::symlink_metadata(path).unwrap();
    let kind = meta.file_type();
    let content = if kind.is_symlink() {
        format!("to {:?}", std::fs::read_link(path).unwrap())
    } else if kind.is_file() {
        Digest::compute(&std::fs::read(path).unwrap()).to_string()
    } else {
        String::new()
    };
    let entry = format!(
        "{:o} {}.{:09} {content}",
        meta.permissions().mode(),
        meta.mtime(),
        meta.mtime_nsec()
    );
    entries.insert(path.as_os_str().as_bytes().to_vec(), entry);
    if kind.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            look_at(&entry.unwrap().path(), entries);
        }
    }
}

/// A snapshot of a repository and of the user's home.
pub(crate) fn snapshot(repo: &TestRepo, fixture: &Fixture) -> Snapshot {
    Snapshot::take([repo.path(), &fixture.home()])
}

/// A server that always gives this answer.
pub(crate) fn answering(text: impl Into<String>) -> FakeOpenAi {
    FakeOpenAi::start([Reply::Answer(text.into())])
}

/// Every file below a directory that holds these words.
pub(crate) fn holding(root: &Path, words: &str) -> Vec<PathBuf> {
    let (mut found, mut dirs) = (Vec::new(), vec![root.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.symlink_metadata().unwrap().is_dir() {
                dirs.push(path);
            } else if std::fs::read(&path)
                .is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(words))
            {
                found.push(path);
            }
        }
    }
    found
}
