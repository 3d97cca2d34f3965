//! The model vendors' own client programs, which the tests run against servers on loopback, and the official programs that
//! look at our server of the Model Context Protocol.
//!
//! `clients/package.json` pins their versions and `clients/package-lock.json` the digest of every package; the
//! installation is npm's, into a folder beside the final one, which it replaces when all of it is there. No
//! package's install script runs but the one that puts `claude`'s own binary into place.
//!
//! What always holds: `.tools/clients/node_modules/.bin/NAME` runs with any PATH, because it names its interpreter
//! itself; what is installed has exactly the packages of the lock file.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::node::Node;
use crate::error::TaskError;
use crate::process::Call;
use crate::root::Root;

const MANIFEST: &str = include_str!("../../clients/package.json");
const LOCK: &str = include_str!("../../clients/package-lock.json");

/// A program and the npm package it comes in.
struct Client {
    program: &'static str,
    package: &'static str,
    /// The file that starts it, inside its package.
    entry: &'static str,
    kind: Kind,
}

enum Kind {
    /// A binary of its own, put into place by the package's install script.
    Native { install: &'static str },
    /// A binary of its own that is in its place.
    Binary,
    /// A script for Node.js.
    Script,
}

const CLIENTS: [Client; 7] = [
    Client {
        program: "claude",
        package: "@anthropic-ai/claude-code",
        entry: "bin/claude.exe",
        kind: Kind::Native {
            install: "install.cjs",
        },
    },
    Client {
        program: "gemini",
        package: "@google/gemini-cli",
        entry: "bundle/gemini.js",
        kind: Kind::Script,
    },
    Client {
        program: "codex",
        package: "@openai/codex",
        entry: "bin/codex.js",
        kind: Kind::Script,
    },
    // The package `opencode-ai` would bring a binary for each processor.
    Client {
        program: "opencode",
        package: "opencode-linux-x64-baseline",
        entry: "bin/opencode",
        kind: Kind::Binary,
    },
    Client {
        program: "qwen",
        package: "@qwen-code/qwen-code",
        entry: "cli-entry.js",
        kind: Kind::Script,
    },
    Client {
        program: "conformance",
        package: "@modelcontextprotocol/conformance",
        entry: "dist/index.js",
        kind: Kind::Script,
    },
    Client {
        program: "mcp-inspector",
        package: "@modelcontextprotocol/inspector",
        entry: "clients/launcher/build/index.js",
        kind: Kind::Script,
    },
];

/// What of `package.json` is read here, ours and that of an installed package.
#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    version: String,
    #[serde(default)]
    dependencies: BTreeMap<String, String>,
}

/// The client programs, installed now if they were not.
pub(crate) fn clients(root: &Root) -> Result<(), TaskError> {
    let folder = root.tools().join("clients");
    if is_installed(&folder)? && is_launchable(&folder) {
        return Ok(());
    }
    let _alone = super::folder::alone(root)?;
    let node = Node::ready(root)?;
    if !is_installed(&folder)? {
        install(root, &node, &folder)?;
    }
    write_launchers(&folder, node.program())?;
    let answers = check(root, &folder);
    if answers.is_err() {
        super::folder::clear(&folder)?;
    }
    answers
}

/// Whether the folder holds what the lock file says, whole. It got its name only when it was; so this looks at what
/// may have changed since: the lock file and the programs.
fn is_installed(folder: &Path) -> Result<bool, TaskError> {
    let requested: Manifest = serde_json::from_str(MANIFEST)?;
    let same_lock =
        fs::read_to_string(folder.join("package-lock.json")).is_ok_and(|lock| lock == LOCK);
    Ok(same_lock
        && CLIENTS.iter().all(|client| {
            let package = folder.join("node_modules").join(client.package);
            let installed = fs::read_to_string(package.join("package.json")).ok();
            let installed: Option<Manifest> =
                installed.and_then(|text| serde_json::from_str(&text).ok());
            let version = installed.map(|manifest| manifest.version);
            version.as_ref() == requested.dependencies.get(client.package)
                && package.join(client.entry).is_file()
        }))
}

/// Rebuilds the folder, first beside its final path.
fn install(root: &Root, node: &Node, folder: &Path) -> Result<(), TaskError> {
    eprintln!("installing the client programs into .tools/clients (about 1.2 GB, about a minute)");
    let (new, old) = (
        root.tools().join("clients.new"),
        root.tools().join("clients.old"),
    );
    super::folder::clear(&new)?;
    fs::create_dir_all(&new).map_err(TaskError::io("create", &new))?;
    for (name, text) in [("package.json", MANIFEST), ("package-lock.json", LOCK)] {
        let path = new.join(name);
        fs::write(&path, text).map_err(TaskError::io("write", &path))?;
    }
    node.npm(root)
        .args([
            "ci",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--no-update-notifier",
            "--loglevel=error",
        ])
        .folder(&new)
        .run()?;
    for client in &CLIENTS {
        if let Kind::Native { install } = client.kind {
            let package = new.join("node_modules").join(client.package);
            Call::new(root, node.program())
                .args([install])
                .folder(&package)
                .run()?;
        }
    }
    super::folder::clear(&old)?;
    match fs::rename(folder, &old) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(TaskError::io("move away", folder)(error));
        }
        _ => {}
    }
    fs::rename(&new, folder).map_err(TaskError::io("put into place", folder))?;
    super::folder::clear(&old)
}

/// Each program says its version, with nothing on its PATH.
fn check(root: &Root, folder: &Path) -> Result<(), TaskError> {
    let home = tempfile::tempdir().map_err(TaskError::io("create", "a temporary folder"))?;
    for client in &CLIENTS {
        let output = Call::new(root, bin(folder).join(client.program))
            .args(["--version"])
            .env("HOME", home.path())
            .env("PATH", "")
            .folder(home.path())
            .stdout();
        let version = output.ok_or_else(|| TaskError::Missing {
            what: format!("a `{}` that starts", client.program),
            fix: format!(
                "It was installed from {} and removed again: run the task once more.",
                client.package
            ),
        })?;
        eprintln!("installed {}: {}", client.program, version.trim_end());
    }
    Ok(())
}

fn bin(folder: &Path) -> PathBuf {
    folder.join("node_modules/.bin")
}

/// Whether every program can be started from where it is: nothing was moved, and the interpreter is still there.
fn is_launchable(folder: &Path) -> bool {
    let bin = bin(folder);
    let Ok(node) = fs::read_link(bin.join("node")) else {
        return false;
    };
    node.is_file()
        && CLIENTS.iter().all(|client| {
            let path = bin.join(client.program);
            match client.kind {
                Kind::Native { .. } => path.is_file(),
                Kind::Binary | Kind::Script => fs::read_to_string(path)
                    .is_ok_and(|text| text == launcher(folder, client, &node)),
            }
        })
}

/// Replaces npm's links to scripts, which would need an interpreter on the PATH, and puts the interpreter beside them.
fn write_launchers(folder: &Path, node: &Path) -> Result<(), TaskError> {
    let bin = bin(folder);
    for client in CLIENTS
        .iter()
        .filter(|client| !matches!(client.kind, Kind::Native { .. }))
    {
        put(&bin.join(client.program), |path| {
            fs::write(path, launcher(folder, client, node))?;
            fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        })?;
    }
    // Last: whoever finds it finds the others, too.
    put(&bin.join("node"), |path| symlink(node, path))
}

/// Makes a file under another name and then gives it its own, so that nobody meets half of it.
fn put(path: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), TaskError> {
    let new = path.with_extension("new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(TaskError::io("remove", &new)(error));
        }
        _ => {}
    }
    make(&new).map_err(TaskError::io("make", &new))?;
    fs::rename(&new, path).map_err(TaskError::io("put into place", path))
}

/// A shell script that becomes the program or its interpreter: the same process, the same group.
fn launcher(folder: &Path, client: &Client, node: &Path) -> String {
    let entry = folder
        .join("node_modules")
        .join(client.package)
        .join(client.entry);
    let program = match client.kind {
        Kind::Script => format!("{} {}", quoted(node), quoted(&entry)),
        Kind::Native { .. } | Kind::Binary => quoted(&entry),
    };
    format!("#!/bin/sh\nexec {program} \"$@\"\n")
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// A folder that looks as after an installation, with a file that stands in for the interpreter.
    fn installed(folder: &Path) -> PathBuf {
        let expected: Manifest = serde_json::from_str(MANIFEST).unwrap();
        fs::create_dir_all(bin(folder)).unwrap();
        fs::write(folder.join("package-lock.json"), LOCK).unwrap();
        for client in &CLIENTS {
            let package = folder.join("node_modules").join(client.package);
            let entry = package.join(client.entry);
            fs::create_dir_all(entry.parent().unwrap()).unwrap();
            fs::write(&entry, "echo \"$@\"").unwrap();
            let version = &expected.dependencies[client.package];
            fs::write(
                package.join("package.json"),
                format!("{{\"version\": \"{version}\"}}"),
            )
            .unwrap();
            let link = Path::new("..").join(client.package).join(client.entry);
            symlink(link, bin(folder).join(client.program)).unwrap();
        }
        let node = folder.join("it's node");
        symlink("/bin/sh", &node).unwrap();
        node
    }

    #[test]
    fn clients_are_pinned_and_lock_file_agrees() {
        let expected: Manifest = serde_json::from_str(MANIFEST).unwrap();
        let lock: Value = serde_json::from_str(LOCK).unwrap();
        assert_eq!(expected.dependencies.len(), CLIENTS.len());
        for client in &CLIENTS {
            let version = &expected.dependencies[client.package];
            let is_exact = |number: &str| {
                number
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || byte == b'.')
            };
            assert!(version.split("-alpha").all(is_exact), "{version}");
            let locked = &lock["packages"][format!("node_modules/{}", client.package)];
            assert_eq!(locked["version"], Value::from(version.as_str()));
            assert_eq!(
                lock["packages"][""]["dependencies"][client.package],
                Value::from(version.as_str())
            );
        }
        for (name, package) in lock["packages"].as_object().unwrap() {
            assert!(
                name.is_empty() || package["integrity"].is_string(),
                "{name} has no digest"
            );
        }
    }

    #[test]
    fn changed_installation_is_detected() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("clients");
        assert!(!is_installed(&folder).unwrap());
        installed(&folder);
        assert!(is_installed(&folder).unwrap());

        let package = folder.join("node_modules/@openai/codex");
        fs::write(package.join("package.json"), r#"{"version": "0.1.0"}"#).unwrap();
        assert!(!is_installed(&folder).unwrap(), "another version");
        installed_again(&folder);
        fs::remove_file(package.join("bin/codex.js")).unwrap();
        assert!(!is_installed(&folder).unwrap(), "a program is gone");
        installed_again(&folder);
        fs::write(folder.join("package-lock.json"), "{}").unwrap();
        assert!(!is_installed(&folder).unwrap(), "another lock file");
    }

    fn installed_again(folder: &Path) {
        fs::remove_dir_all(folder).unwrap();
        installed(folder);
        assert!(is_installed(folder).unwrap());
    }

    #[test]
    fn launcher_names_interpreter_and_follows_moves() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("clients");
        let node = installed(&folder);
        assert!(
            !is_launchable(&folder),
            "npm's links need an interpreter on the PATH"
        );
        write_launchers(&folder, &node).unwrap();
        assert!(is_launchable(&folder));
        let output = std::process::Command::new(bin(&folder).join("gemini"))
            .args(["one word", "$HOME"])
            .env_clear()
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8(output.stdout).unwrap(),
            "one word $HOME\n"
        );

        let moved = dir.path().join("moved");
        fs::rename(&folder, &moved).unwrap();
        assert!(!is_launchable(&moved));
        write_launchers(&moved, &moved.join("it's node")).unwrap();
        assert!(is_launchable(&moved));
        fs::remove_file(moved.join("it's node")).unwrap();
        assert!(!is_launchable(&moved), "the interpreter is gone");
    }
}
