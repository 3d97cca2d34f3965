//! What a trusted skill can do: that of its class, whatever it tries, and whatever it gives back. Its system calls have a file of their own.
//!
//! Slow because each attempt is one start of Python in a sandbox.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::skill_trust::{Skills, outcome_of};

#[test]
fn skill_writes_only_below_its_grants() {
    let skills = Skills::new();
    let root = skills.root();
    std::fs::create_dir_all(root.join("notes/sub/.git")).unwrap();
    std::fs::write(root.join("secret.txt"), "hidden from it").unwrap();
    std::fs::write(root.join("notes/.env"), "KEY=hidden from it").unwrap();
    std::fs::write(root.join("notes/old.txt"), "old").unwrap();
    for path in [
        "notes/.aws/credentials",
        "notes/.ssh/config",
        "notes/a/.config/gh/x.yml",
        "notes/.Crucible/x",
    ] {
        std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        std::fs::write(root.join(path), "hidden from it").unwrap();
    }
    let granted = ["--allow-write", "notes/"];
    let body = "\
import os
seen = {}
with open('notes/new.txt', 'w') as file:
    file.write('new')
with open('notes/old.txt') as file:
    seen['old'] = file.read()
os.makedirs('notes/deep/er')
for path in ['secret.txt', 'notes/.env', 'notes/.aws/credentials', 'notes/.ssh/config', 'notes/a/.config/gh/x.yml', 'notes/.Crucible/x', '.crucible/skills/policy.yaml', 'src/skillset/skills/base.py']:
    try:
        with open(path) as file:
            seen[path] = file.read()
    except OSError as error:
        seen[path] = type(error).__name__
for path in ['x.txt', 'src/x.py', '.crucible/x', 'notes/sub/.git/config', '/etc/x', '../x']:
    try:
        with open(path, 'w') as file:
            file.write('x')
        seen['to ' + path] = 'written'
    except OSError as error:
        seen['to ' + path] = 'refused'
return seen";
    skills.trusted("one", "FILE_WRITE", granted, body);
    let ran = skills.outcome("one");
    let seen = ran.document["result"]
        .as_object()
        .unwrap_or_else(|| panic!("{:#}", ran.document));
    for (key, value) in seen {
        let value = value.as_str().unwrap();
        assert!(
            !value.contains("hidden from it") && value != "written",
            "{key}: {value}"
        );
    }
    assert_eq!(seen["old"], "old");
    assert_eq!(
        std::fs::read_to_string(root.join("notes/new.txt")).unwrap(),
        "new"
    );
    assert!(root.join("notes/deep/er").is_dir());
    assert!(!root.join("x.txt").exists() && !root.join("notes/sub/.git/config").exists());
    assert_eq!(
        std::fs::read_to_string(root.join("notes/.env")).unwrap(),
        "KEY=hidden from it"
    );
    // Where nothing hides it, it is a denial.
    skills.trusted(
        "two",
        "FILE_WRITE",
        granted,
        "open('README.md', 'w')\nreturn {}",
    );
    skills.outcome("two").is(1, "DENIED", "forge-run-denied");
    // A link that lies where it may write leads it nowhere.
    std::os::unix::fs::symlink(root.join("src"), root.join("notes/link")).unwrap();
    skills.trusted(
        "three",
        "FILE_WRITE",
        granted,
        "open('notes/link/x.py', 'w')\nreturn {}",
    );
    let end = skills.outcome("three");
    assert_eq!(end.code, Some(1), "{:#}", end.document);
    assert!(!root.join("src/x.py").exists());
}

#[test]
fn read_only_skill_reads_only_its_grants() {
    let skills = Skills::new();
    let root = skills.root();
    for path in [
        "logs/deep/a.log",
        "logs/.env",
        "logs/.ssh/config",
        "data/all.csv",
        "data/other.csv",
        "secret.txt",
    ] {
        std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        let seen = path.starts_with("logs/deep") || path == "data/all.csv";
        std::fs::write(
            root.join(path),
            if seen { "n\n3\n" } else { "hidden from it" },
        )
        .unwrap();
    }
    std::os::unix::fs::symlink(root.join("secret.txt"), root.join("logs/link")).unwrap();
    let exit_status = std::process::Command::new("python3")
        .args(["-c", "import sqlite3, sys; base = sqlite3.connect(sys.argv[1]); base.execute('CREATE TABLE t (a)'); base.execute('INSERT INTO t VALUES (7)'); base.commit()"])
        .arg(root.join("logs/base.db"))
        .status();
    assert!(exit_status.unwrap().success());
    let granted = ["--allow-read", "logs/", "--allow-read", "data/all.csv"];
    let body = "\
import csv
import os
import sqlite3
seen = {}
with open('data/all.csv', newline='') as file:
    seen['csv'] = [row['n'] for row in csv.DictReader(file)]
seen['walked'] = sorted(name for _, _, names in os.walk('logs/deep') for name in names)
base = sqlite3.connect('file:logs/base.db?mode=ro', uri=True)
seen['base'] = base.execute('SELECT a FROM t ORDER BY a').fetchall()[0][0]
base.close()
for path in ['secret.txt', 'data/other.csv', 'logs/.env', 'logs/.ssh/config', 'logs/link', 'README.md', '.crucible/skills/policy.yaml']:
    try:
        with open(path) as file:
            seen[path] = file.read()
    except OSError as error:
        seen[path] = type(error).__name__
return seen";
    skills.trusted("one", "READ_ONLY", granted, body);
    let ran = skills.outcome("one");
    let seen = ran.document["result"]
        .as_object()
        .unwrap_or_else(|| panic!("{:#}", ran.document));
    assert_eq!(
        (&seen["csv"], &seen["walked"], &seen["base"]),
        (&json!(["3"]), &json!(["a.log"]), &json!(7))
    );
    for (key, value) in seen.iter().filter(|(_, value)| value.is_string()) {
        assert!(value.as_str().unwrap().ends_with("Error"), "{key}: {value}");
    }
    // What it reads it does not change.
    for (name, body) in [
        ("two", "open('logs/new.txt', 'w')\nreturn {}"),
        (
            "three",
            "import sqlite3\nsqlite3.connect('logs/base.db').execute('DELETE FROM t')\nreturn {}",
        ),
    ] {
        skills.trusted(name, "READ_ONLY", granted, body);
        skills.outcome(name).is(1, "DENIED", "forge-run-denied");
    }
    assert!(!root.join("logs/new.txt").exists());
    // Without the grant nothing of the project is there, and a link is granted to nobody.
    skills.trusted(
        "four",
        "READ_ONLY",
        [],
        "import os\nreturn {'logs': os.path.exists('logs')}",
    );
    assert_eq!(
        skills.outcome("four").is(0, "SUCCEEDED", "").document["result"]["logs"],
        false
    );
    std::os::unix::fs::symlink(root.join("src"), root.join("linked")).unwrap();
    skills.trusted("five", "READ_ONLY", ["--allow-read", "linked"], "return {}");
    let output = skills
        .run(["skill", "run", "five", "--input", "{}"])
        .exits(2);
    assert!(output.stderr.contains("granted path"), "{}", output.stderr);
}

/// SQLite wants temporary files for this, which a skill that only reads cannot make.
#[test]
fn read_only_skill_groups_and_sorts_large_database() {
    let skills = Skills::new();
    let base = skills.root().join("logs/base.db");
    std::fs::create_dir_all(base.parent().unwrap()).unwrap();
    let mut database = rusqlite::Connection::open(&base).unwrap();
    let rows = database.transaction().unwrap();
    rows.execute_batch("CREATE TABLE t (a INTEGER, b TEXT)")
        .unwrap();
    rows.execute_batch(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 120000)
         INSERT INTO t SELECT i, hex(randomblob(40)) FROM n",
    )
    .unwrap();
    rows.commit().unwrap();
    drop(database);
    let body = "\
import sqlite3
base = sqlite3.connect('file:logs/base.db?mode=ro', uri=True)
groups = base.execute('SELECT b, count(*) FROM t GROUP BY b ORDER BY 2, 1').fetchall()
distinct = base.execute('SELECT count(*) FROM (SELECT DISTINCT b, a % 7 FROM t)').fetchone()[0]
return {'groups': len(groups), 'distinct': distinct}";
    skills.trusted("one", "READ_ONLY", ["--allow-read", "logs/"], body);
    let ran = skills.outcome("one").is(0, "SUCCEEDED", "");
    assert_eq!(
        ran.document["result"],
        json!({ "groups": 120_000, "distinct": 120_000 })
    );
    let left: Vec<_> = std::fs::read_dir(base.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["base.db"]);
}

#[test]
fn granted_directory_is_created_unless_link_or_reserved() {
    let skills = Skills::new();
    let root = skills.root();
    let write = |path: &str| {
        format!("with open('{path}/x', 'w') as file:\n    file.write('x')\nreturn {{}}")
    };
    skills.trusted(
        "one",
        "FILE_WRITE",
        ["--allow-write", "a/b/c"],
        &write("a/b/c"),
    );
    skills.outcome("one").is(0, "SUCCEEDED", "");
    assert!(root.join("a/b/c/x").is_file());
    std::os::unix::fs::symlink(root.join("src"), root.join("linked")).unwrap();
    std::fs::write(root.join("plain"), "x").unwrap();
    for (name, path) in [
        ("two", "linked"),
        ("three", "linked/deep"),
        ("four", "plain"),
    ] {
        skills.trusted(name, "FILE_WRITE", ["--allow-write", path], &write(path));
        let output = skills.run(["skill", "run", name, "--input", "{}"]).exits(2);
        assert!(output.stderr.contains("granted path"), "{}", output.stderr);
    }
    assert!(!root.join("src/x").exists() && !root.join("src/deep").exists());
}

#[test]
fn network_skill_cannot_reach_ungranted_hosts() {
    let skills = Skills::new();
    let service = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = service.local_addr().unwrap().port();
    let granted = ["--allow-host", "api.example.invalid"];
    for (name, host) in [
        ("by_loopback", "127.0.0.1"),
        ("by_name", "localhost"),
        ("another", "example.com"),
    ] {
        let body = format!(
            "import socket\nsocket.create_connection(('{host}', {port}), timeout=5)\nreturn {{}}"
        );
        skills.trusted(name, "NETWORK", granted, &body);
        skills.outcome(name).is(1, "DENIED", "forge-run-denied");
    }
    service.set_nonblocking(true).unwrap();
    assert!(service.accept().is_err(), "somebody connected");
}

#[test]
fn granted_secrets_are_visible_but_never_returned() {
    const VALUE: &str = "correct-horse-battery";
    let skills = Skills::new();
    let run = |name: &str| {
        let call = skills.call(["skill", "run", name, "--input", "{}", "--json"]);
        outcome_of(
            call.env("WEATHER_KEY", VALUE)
                .env("OTHER_KEY", "another-secret-value"),
        )
    };
    let granted = ["--allow-secret", "WEATHER_KEY"];
    let body =
        "import os\nreturn {'length': len(os.environ['WEATHER_KEY']), 'names': sorted(os.environ)}";
    skills.trusted("one", "SECRET_READ", granted, body);
    let seen = run("one").is(0, "SUCCEEDED", "");
    assert_eq!(
        seen.document["result"],
        json!({"length": VALUE.len(), "names": ["HOME", "LANG", "PATH", "WEATHER_KEY"]})
    );
    for (name, gives) in [
        ("two", "os.environ['WEATHER_KEY']"),
        (
            "three",
            "['x', {'y': 'z' + os.environ['WEATHER_KEY'] + 'z'}]",
        ),
        ("four", "{os.environ['WEATHER_KEY']: 1}"),
    ] {
        skills.trusted(
            name,
            "SECRET_READ",
            granted,
            &format!("import os\nreturn {{'given': {gives}}}"),
        );
        let outcome = run(name).is(8, "FAILED", "forge-run-secret");
        assert!(!outcome.document.to_string().contains(VALUE));
    }
    skills.trusted(
        "five",
        "SECRET_READ",
        granted,
        "import os\nprint(os.environ['WEATHER_KEY'])\nraise ValueError(os.environ['WEATHER_KEY'])",
    );
    let said = run("five").is(1, "FAILED", "forge-run-raised");
    assert!(
        !said.document.to_string().contains(VALUE),
        "{:#}",
        said.document
    );
    assert!(
        said.document["printed"]["text"]
            .as_str()
            .unwrap()
            .contains("[secret:handed-over]")
    );
    let stored_output = skills.run(["ledger", "log"]).ok();
    assert!(!stored_output.stdout.contains(VALUE));
    // Without a value, or with one that could not be found again, nothing runs.
    skills
        .run(["skill", "run", "one", "--input", "{}"])
        .exits(2);
    for short in ["", "abc", "two\nlines-of-it"] {
        skills
            .call(["skill", "run", "one", "--input", "{}"])
            .env("WEATHER_KEY", short)
            .run()
            .exits(2);
    }
    // A class without grants sees none.
    skills.trusted(
        "six",
        "READ_ONLY",
        [],
        "import os\nreturn {'names': sorted(os.environ)}",
    );
    assert_eq!(
        run("six").document["result"]["names"],
        json!(["HOME", "LANG", "PATH"])
    );
}

#[test]
fn skill_cannot_see_project_home_or_crucible_data() {
    let skills = Skills::new();
    std::fs::write(skills.fixture.home().join("private.txt"), "mine").unwrap();
    let look = |path: &Path| format!("'{}'", path.display());
    let places = [
        skills.root(),
        skills.fixture.home(),
        skills.fixture.data(),
        "/home".into(),
    ];
    let places = places
        .iter()
        .map(|place| look(place))
        .collect::<Vec<_>>()
        .join(", ");
    let body = format!(
        "import os\nseen = []\nfor place in [{places}, '.']:\n    for top, below, files in os.walk(place):\n        seen += [os.path.join(top, file) for file in files]\nreturn {{'seen': seen}}"
    );
    skills.trusted("one", "READ_ONLY", [], &body);
    let ran = skills.outcome("one").is(0, "SUCCEEDED", "");
    let own = [
        "private.txt",
        ".gitconfig",
        "ledger.db",
        "policy.yaml",
        "base.py",
    ];
    for path in ran.document["result"]["seen"].as_array().unwrap() {
        let path = path.as_str().unwrap();
        // Python itself may lie in a home.
        assert!(
            !own.iter().any(|name| path.ends_with(name)) || path.contains("/lib/python"),
            "{path}"
        );
    }
    let listed = format!(
        "import os\nreturn {{'listed': os.listdir({}), 'here': os.listdir('.')}}",
        look(&skills.root())
    );
    skills.trusted("two", "READ_ONLY", [], &listed);
    let ran = skills.outcome("two").is(0, "SUCCEEDED", "");
    assert_eq!(ran.document["result"], json!({"listed": [], "here": []}));
}

#[test]
fn invalid_result_is_never_returned() {
    let skills = Skills::new();
    let no_result = [
        ("exits", "import os\nos._exit(0)"),
        ("exits_badly", "import os\nos._exit(7)"),
        ("kills_itself", "import os\nos.kill(os.getpid(), 9)"),
        ("a_list", "return [1]"),
        ("nothing", "return None"),
        ("not_a_number", "return {'a': float('nan')}"),
        ("endless", "return {'a': float('-inf')}"),
        ("too_large_a_number", "return {'a': 10 ** 40}"),
        ("a_set", "return {'a': {1}}"),
        ("half_a_character", "return {'a': '\\ud800'}"),
        ("keys_of_numbers", "return {1: 2}"),
        (
            "deep",
            "made = {}\nat = made\nfor _ in range(5000):\n    at['a'] = {}\n    at = at['a']\nreturn made",
        ),
        ("in_itself", "made = {}\nmade['a'] = made\nreturn made"),
        ("too_large", "return {'a': 'x' * (5 << 20)}"),
        ("prints_without_end", "while True:\n    print('x' * 100000)"),
        (
            "twice",
            "import os\nfor fd in range(3, 30):\n    try:\n        os.write(fd, b'{\"returned\":{\"a\":1}}')\n    except OSError:\n        pass\nreturn {'a': 2}",
        ),
        (
            "keys_twice",
            "import os\nfor fd in range(3, 30):\n    try:\n        os.write(fd, b'{\"returned\":{\"a\":1,\"a\":2}}')\n    except OSError:\n        pass\nos._exit(0)",
        ),
    ];
    for (name, body) in no_result {
        let name = format!("gives_{name}");
        skills.trusted(&name, "READ_ONLY", [], body);
        let outcome = skills.outcome(&name).is(1, "FAILED", "forge-run-no-result");
        assert_eq!(outcome.document["result"], Value::Null);
    }
    let raised = [
        ("leaves", "import sys\nsys.exit(0)"),
        ("recursion", "def again():\n    again()\nagain()"),
        (
            "memory",
            "kept = ['x' * (1 << 30) for _ in range(64)]\nreturn {}",
        ),
        ("interrupts", "raise KeyboardInterrupt"),
        ("escapes", "raise ValueError('\\x1b[2J\\u202e')"),
        ("unseen", "import nosuch_module"),
        ("sibling", "import skillset.skills.word_count"),
    ];
    for (name, body) in raised {
        let name = format!("raises_{name}");
        skills.trusted(&name, "READ_ONLY", [], body);
        skills.outcome(&name).is(1, "FAILED", "forge-run-raised");
    }
    skills.trusted(
        "prints",
        "READ_ONLY",
        [],
        "print('{\"returned\": {\"a\": 1}}\\x1b[2J')\nreturn {'text': '\\x1b[2J\\u202e'}",
    );
    let ran = skills.run(["skill", "run", "prints", "--input", "{}"]).ok();
    assert_eq!(ran.json(), json!({"text": "\u{1b}[2J\u{202e}"}));
    assert!(
        !ran.stdout.contains('\u{1b}') && !ran.stdout.contains('\u{202e}'),
        "{:?}",
        ran.stdout
    );
    skills.trusted(
        "threads",
        "READ_ONLY",
        [],
        "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\nreturn {}",
    );
    skills.outcome("threads").is(0, "SUCCEEDED", "");
}

#[test]
fn result_violating_declared_schema_is_withheld() {
    let skills = Skills::new();
    std::fs::write(
        skills.fixture.path("io.json"),
        r#"{"input": {"type": "object"}, "output": {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"], "additionalProperties": false}}"#,
    )
    .unwrap();
    skills.trusted("one", "READ_ONLY", [], "return {'count': 'many'}");
    let outcome = skills.outcome("one").is(1, "FAILED", "forge-run-output");
    assert_eq!(outcome.document["result"], Value::Null);
    assert!(!outcome.document.to_string().contains("many"));
}

#[test]
fn a_skill_that_does_not_end_is_ended() {
    let skills = Skills::new();
    skills.trusted("one", "READ_ONLY", [], "while True:\n    pass");
    let call = skills.call([
        "skill",
        "run",
        "one",
        "--input",
        "{}",
        "--timeout",
        "1",
        "--json",
    ]);
    outcome_of(call).is(10, "FAILED", "forge-run-timeout");
}

#[test]
fn killed_skill_run_leaves_no_process() {
    let skills = Skills::new();
    let body = "\
import os, time
with open('notes/started', 'w') as file:
    file.write('x')
while not os.path.exists('notes/go'):
    time.sleep(0.05)
return {}";
    skills.trusted("one", "FILE_WRITE", ["--allow-write", "notes/"], body);
    let mut command = skills
        .call(["skill", "run", "one", "--input", "{}"])
        .command();
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // It writes into a copy, which lies below Crucible's own directory.
    eventually(|| !found_below(&skills.fixture.data(), "started").is_empty());
    let below = descendants(child.id());
    assert!(!below.is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    eventually(|| below.iter().all(|pid| !is_alive(*pid)));
    assert!(!skills.root().join("notes/started").exists());
    std::fs::write(skills.root().join("notes/go"), "x").unwrap();
    skills.outcome("one").is(0, "SUCCEEDED", "");
    assert!(skills.root().join("notes/started").exists());
    assert_eq!(
        found_below(&skills.fixture.data(), "started"),
        Vec::<PathBuf>::new(),
        "a copy was left"
    );
    skills.run(["ledger", "verify"]).ok();
}

#[test]
fn missing_sandbox_layers_are_reported() {
    let skills = Skills::new();
    skills
        .fixture
        .user_config("[sandbox]\nstrength = \"off\"\n");
    skills.trusted("one", "READ_ONLY", [], "return {}");
    let outcome = skills.outcome("one").is(0, "SUCCEEDED", "forge-run-walls");
    assert_eq!(outcome.document["isolation"]["level"], "none");
}

#[track_caller]
fn eventually(mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(30), "never");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The files of this name at any depth.
fn found_below(directory: &Path, name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_name() == name {
            found.push(path);
        } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(found_below(&path, name));
        }
    }
    found
}

fn descendants(of: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        let parent = stat
            .rsplit(')')
            .next()
            .and_then(|rest| rest.split_whitespace().nth(1));
        if parent.and_then(|parent| parent.parse().ok()) == Some(of) {
            found.push(pid);
            found.extend(descendants(pid));
        }
    }
    found
}

fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(')')
        .next()
        .and_then(|rest| rest.split_whitespace().next());
    state.is_some_and(|state| state != "Z" && state != "X")
}
