//! What a trusted skill cannot read, under whatever name it asks for it: the project, the home, what Crucible keeps, the machine's secrets.
//!
//! Project and homes lie outside `/tmp`, which the sandbox empties: the sandbox of a run hides them.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::ordinary::{Who, hand_over, skills_for_everybody};
use crate::skill_trust::{Skills, outcome_of};

/// Stands in each file that is to be hidden.
const MARK: &str = "nobody-may-read-this";
/// Stands in one that is not.
const PLAIN: &str = "everybody-may-read-this";

/// Reads each of the files named on the lines of its input, by every name that it can think of.
const BODY: &str = "\
import glob, os
seen = {}
def read(path):
    try:
        with open(path, 'rb') as file:
            seen[path] = file.read(4096).decode('latin-1')
    except OSError:
        pass
for path in inputs['text'].splitlines():
    up = '../' * 40
    for other in ['', '/proc/self/root', '/proc/1/root', '/proc/self/cwd/' + up, '/proc/thread-self/root', '/dev/fd/../root']:
        read(other + path)
    read(os.path.relpath(path))
    read('/.' + path.replace('/', '//./'))
    try:
        at = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
        read('/proc/self/fd/%d/%s' % (at, os.path.basename(path)))
        os.close(at)
    except OSError:
        pass
for path in glob.glob('/proc/[0-9]*/environ'):
    read(path)
return seen";

fn put(path: &Path) -> PathBuf {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, format!("KEY={MARK}\n")).unwrap();
    path.to_owned()
}

/// What is to be hidden from every skill.
fn hidden(skills: &Skills) -> Vec<PathBuf> {
    let (root, home, data) = (skills.root(), skills.fixture.home(), skills.fixture.data());
    let mut paths: Vec<PathBuf> = [
        ".ssh/id_ed25519",
        ".aws/credentials",
        ".netrc",
        ".config/crucible/keys",
        "private.txt",
    ]
    .map(|name| put(&home.join(name)))
    .to_vec();
    paths.extend(["io.json", "runs/x/run.json", "tmp/left.txt"].map(|name| put(&data.join(name))));
    paths.extend(
        [
            ".env",
            ".git/config",
            "secret.txt",
            "src/skillset/more.py",
            ".crucible/own",
        ]
        .map(|name| put(&root.join(name))),
    );
    paths.extend(
        [
            "notes/.env",
            "notes/deep/.env.local",
            "notes/id_rsa",
            "notes/.git/config",
            "notes/.crucible/x",
        ]
        .map(|name| put(&root.join(name))),
    );
    // By links that lie where a skill may look: beside the project, and in what it was granted.
    for (number, place) in [home.join(".ssh"), data, root.join("src")]
        .iter()
        .enumerate()
    {
        symlink(place, skills.fixture.path(&format!("link{number}"))).unwrap();
        symlink(place, root.join(format!("notes/link{number}"))).unwrap();
    }
    for directory in [skills.fixture.path(""), root.join("notes")] {
        paths.extend(
            [
                "link0/id_ed25519",
                "link1/io.json",
                "link1/ledger.db",
                "link2/skillset/more.py",
            ]
            .map(|name| directory.join(name)),
        );
    }
    paths
}

fn sees_nothing(skills: &Skills, who: &Who, paths: &[PathBuf]) {
    let plain = skills.fixture.path("plain.txt");
    std::fs::write(&plain, PLAIN).unwrap();
    let ledger = skills.fixture.data().join("ledger.db");
    let machine = [
        "/etc/shadow",
        "/root/.bashrc",
        "/root/.profile",
        "/proc/kcore",
        "/dev/mem",
    ];
    let mut questions: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    questions.extend([plain.display().to_string(), ledger.display().to_string()]);
    questions.extend(machine.map(str::to_owned));
    for name in ["reads", "writes", "connects", "has_a_secret"] {
        let input = json!({ "text": questions.join("\n") }).to_string();
        let call = skills.call(["skill", "run", name, "--input", &input, "--json"]);
        let ran = outcome_of(who.calls(call.env("WEATHER_KEY", "correct-horse-battery")));
        let ran = ran.is(0, "SUCCEEDED", "");
        let seen = ran.document["result"].as_object().unwrap();
        assert_eq!(
            seen[plain.to_str().unwrap()],
            PLAIN,
            "what is hidden from nobody is read"
        );
        for (path, text) in seen {
            let text = text.as_str().unwrap();
            assert!(!text.contains(MARK), "{name}, {}: {path}", who.name());
            assert!(
                !text.starts_with("SQLite format"),
                "{name}, {}: {path}",
                who.name()
            );
            // A file that is hidden may be there, and empty.
            assert!(
                text.is_empty() || !machine.iter().any(|place| path.ends_with(place)),
                "{name}: {path}"
            );
        }
    }
}

#[test]
fn hidden_paths_are_hidden_from_every_class() {
    let skills = skills_for_everybody();
    std::fs::create_dir(skills.root().join("notes")).unwrap();
    skills.trusted("reads", "READ_ONLY", [], BODY);
    skills.trusted("writes", "FILE_WRITE", ["--allow-write", "notes/"], BODY);
    skills.trusted(
        "connects",
        "NETWORK",
        ["--allow-host", "api.example.invalid"],
        BODY,
    );
    skills.trusted(
        "has_a_secret",
        "SECRET_READ",
        ["--allow-secret", "WEATHER_KEY"],
        BODY,
    );
    let paths = hidden(&skills);
    sees_nothing(&skills, &Who::Tester, &paths);
    let who = hand_over(&skills);
    sees_nothing(&skills, &who, &paths);
}
