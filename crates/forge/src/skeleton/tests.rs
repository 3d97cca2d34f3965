//! What is laid down, where a file is in the way, and whether the tools are content.
#![expect(
    clippy::disallowed_methods,
    reason = "a test lays out directories and starts the tools"
)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use super::*;

struct Setup {
    directory: tempfile::TempDir,
}

impl Setup {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("project")).unwrap();
        Self { directory }
    }

    fn root(&self) -> PathBuf {
        self.directory.path().join("project")
    }

    fn lay(&self, package: &str) -> Result<WrittenSkeleton, SkeletonError> {
        let package: PackageName = package.parse().unwrap();
        let project = ForgeProject::new(self.root(), Digest::compute(b"project"), package.clone());
        Skeleton::from_package(&package)
            .unwrap()
            .write(&project, &self.directory.path().join("home"))
    }

    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        fn walk(place: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
            for entry in std::fs::read_dir(place).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, files);
                } else {
                    files.insert(path.clone(), std::fs::read(&path).unwrap());
                }
            }
        }
        let mut files = BTreeMap::new();
        walk(&self.root(), &mut files);
        files
    }
}

#[test]
fn skeleton_passes_ruff_mypy_and_pytest() {
    let tools = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../.tools/python/bin")
        .canonicalize();
    let tools =
        tools.expect("the Python tools are missing: run `cargo xtask test`, which installs them");
    for package in ["skillset", "my_tools2"] {
        let setup = Setup::new();
        setup.lay(package).unwrap();
        let run = |program: &str, words: &[&str]| {
            let output = Command::new(tools.join(program))
                .args(words)
                .current_dir(setup.root())
                .env_clear()
                .env("HOME", setup.directory.path())
                .output()
                .unwrap();
            let stdout = String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{program}: {stdout}");
            stdout
        };
        run("ruff", &["check", "--no-cache", "."]);
        run(
            "ruff",
            &[
                "format",
                "--check",
                "--no-cache",
                "--line-length",
                "110",
                ".",
            ],
        );
        run("mypy", &["--strict", "--cache-dir=/dev/null"]);
        let message = run("pytest", &["-q", "-p", "no:cacheprovider"]);
        assert!(message.contains("6 passed"), "{message}");
    }
}

#[test]
fn init_keeps_existing_files_and_writes_once() {
    let setup = Setup::new();
    std::fs::write(
        setup.root().join("pyproject.toml"),
        "[project]\nname = \"mine\"\n",
    )
    .unwrap();
    std::fs::create_dir_all(setup.root().join("src/skillset/skills")).unwrap();
    std::fs::write(setup.root().join("src/skillset/__init__.py"), "MINE = 1\n").unwrap();
    std::os::unix::fs::symlink("nowhere", setup.root().join("src/skillset/py.typed")).unwrap();
    let written_skeleton = setup.lay("skillset").unwrap();
    let stored_lines: Vec<&str> = written_skeleton
        .existing
        .iter()
        .map(RepoPath::as_str)
        .collect();
    assert_eq!(
        stored_lines,
        [
            "pyproject.toml",
            "src/skillset/__init__.py",
            "src/skillset/py.typed"
        ]
    );
    assert_eq!(written_skeleton.written.len(), 5);
    let add = written_skeleton.settings_to_add.unwrap();
    assert!(
        add.starts_with("[tool.ruff]") && add.contains("[tool.pytest.ini_options]"),
        "{add}"
    );
    assert_eq!(
        std::fs::read(setup.root().join("src/skillset/__init__.py")).unwrap(),
        b"MINE = 1\n"
    );
    std::fs::remove_file(setup.root().join("src/skillset/py.typed")).unwrap();
    std::fs::write(setup.root().join("src/skillset/py.typed"), "").unwrap();
    let before = setup.files();
    let second_written_skeleton = setup.lay("skillset").unwrap();
    assert_eq!(
        (
            second_written_skeleton.written.len(),
            second_written_skeleton.existing.len()
        ),
        (0, 8)
    );
    assert_eq!(second_written_skeleton.settings_to_add, None);
    assert_eq!(setup.files(), before);
}

#[test]
fn where_one_file_cannot_be_written_none_is() {
    let setup = Setup::new();
    // A file where a directory has to be, and a link that leads out.
    std::fs::write(setup.root().join("tests"), "not a directory").unwrap();
    let before = setup.files();
    assert!(setup.lay("skillset").is_err());
    assert_eq!(setup.files(), before);
    std::fs::remove_file(setup.root().join("tests")).unwrap();
    let outside = setup.directory.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, setup.root().join("src")).unwrap();
    assert!(setup.lay("skillset").is_err());
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    assert!(!setup.root().join("pyproject.toml").exists());
}

#[test]
fn default_policy_removes_no_grant() {
    let policy = crate::policy::SkillPolicy::read(include_str!("files/policy.yaml")).unwrap();
    assert!(policy.allowed_network.is_none() && policy.allowed_write_paths.is_none());
}
