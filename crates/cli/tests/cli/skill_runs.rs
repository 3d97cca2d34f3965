//! What a run may see of the machine and leave in the project, and what `run`, `show`, `list`, `propose` and `promote` tell of it.
//!
//! Slow because each run is one start of Python in a sandbox.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crucible_ledger::{Moment, NewPromotion, NewSkill, SideEffect, SkillStatus};
use crucible_model::ClockSource;
use serde_json::{Value, json};

use crate::skill_trust::{Skills, five, outcome_of};

#[test]
fn no_class_reads_process_or_mount_information() {
    let skills = Skills::new();
    let reads = "\
import os
seen = {}
for path in ['/proc/1/cmdline', '/proc/1/mountinfo', '/proc/self/mountinfo', '/proc/self/mounts', '/proc/mounts',
             '/proc/self/environ', '/proc/self/maps', '/proc/self/cmdline', '/proc/thread-self/mountinfo', '/proc/version',
             '/proc/self/root/proc/self/mountinfo', '/dev/fd/../mountinfo']:
    try:
        with open(path, 'rb') as file:
            seen[path] = 'read'
    except OSError as error:
        seen[path] = type(error).__name__
return seen";
    let classes = [
        ("reads", "READ_ONLY", vec![]),
        ("writes", "FILE_WRITE", vec!["--allow-write", "notes/"]),
        (
            "connects",
            "NETWORK",
            vec!["--allow-host", "api.example.invalid"],
        ),
        (
            "knows",
            "SECRET_READ",
            vec!["--allow-secret", "WEATHER_KEY"],
        ),
    ];
    for (name, class, grants) in classes {
        let trust = |name: &str, body: &str| match grants.as_slice() {
            [flag, value] => skills.trusted(name, class, [*flag, *value], body),
            _ => skills.trusted(name, class, [], body),
        };
        let run = |name: &str| {
            let call = skills.call(["skill", "run", name, "--input", "{}", "--json"]);
            outcome_of(call.env("WEATHER_KEY", "correct-horse-battery"))
        };
        trust(name, reads);
        let seen = run(name).is(0, "SUCCEEDED", "").document["result"].clone();
        for (path, value) in seen.as_object().unwrap() {
            assert_ne!(value, "read", "{class} reads {path}");
        }
        // Where nothing hides it, it is a denial.
        let name = format!("{name}_plainly");
        trust(&name, "open('/proc/self/mountinfo')\nreturn {}");
        run(&name).is(1, "DENIED", "forge-run-denied");
    }
}

#[test]
fn writing_program_control_files_is_a_denial() {
    let skills = Skills::new();
    let root = skills.root();
    std::fs::create_dir_all(root.join("notes/sub")).unwrap();
    std::fs::write(root.join("notes/kept.sh"), "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(root.join("notes/kept.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    let mode = root.join("notes").metadata().unwrap().permissions().mode() & 0o7777;
    let granted = ["--allow-write", "notes/"];
    let leaves = [
        (
            "hook",
            "os.makedirs('notes/sub/.git/hooks')\nwith open('notes/sub/.git/hooks/pre-commit', 'w') as f: f.write('x')",
            "notes/sub/.git",
        ),
        (
            "conftest",
            "with open('notes/sub/conftest.py', 'w') as f: f.write('x')",
            "notes/sub/conftest.py",
        ),
        (
            "env",
            "with open('notes/.env', 'w') as f: f.write('A=1')",
            "notes/.env",
        ),
        (
            "path_file",
            "with open('notes/x.pth', 'w') as f: f.write('x')",
            "notes/x.pth",
        ),
        (
            "program",
            "with open('notes/run', 'w') as f: f.write('x')\nos.chmod('notes/run', 0o755)",
            "notes/run",
        ),
        (
            "own",
            "os.makedirs('notes/.crucible/skills')",
            "notes/.crucible",
        ),
        (
            "fails",
            "with open('notes/setup.py', 'w') as f: f.write('x')\nraise ValueError('x')",
            "notes/setup.py",
        ),
        (
            "a_test",
            "with open('notes/test_x.py', 'w') as f: f.write('x')",
            "notes/test_x.py",
        ),
        (
            "aws",
            "os.makedirs('notes/.aws')\nopen('notes/.aws/credentials', 'w').close()",
            "notes/.aws",
        ),
        ("open_doors", "os.chmod('notes', 0o777)", "changed notes: "),
        (
            "a_loose_one",
            "os.mkdir('notes/loose')\nos.chmod('notes/loose', 0o1777)\nos.chmod('notes', 0o755)",
            "notes/loose",
        ),
        (
            "escapes",
            "os.makedirs('notes/\\x1b[2J')\nwith open('notes/\\x1b[2J/x.pyc', 'w') as f: f.write('x')",
            "x.pyc",
        ),
    ];
    for (name, body, path) in leaves {
        let name = format!("leaves_{name}");
        skills.trusted(
            &name,
            "FILE_WRITE",
            granted,
            &format!("import os\n{body}\nreturn {{'left': True}}"),
        );
        let outcome = skills.outcome(&name);
        let said =
            outcome
                .is(1, "DENIED", "forge-run-left-behind")
                .is(1, "DENIED", "forge-run-denied");
        assert_eq!(
            said.codes().contains(&"forge-run-raised"),
            name.ends_with("fails")
        );
        assert_eq!(said.document["result"], Value::Null);
        let hints = said.document["findings"].to_string();
        assert!(hints.contains(path), "{hints}");
        let output = skills.run(["skill", "show", &name]).ok();
        assert!(
            output.stdout.contains("forge-run-left-behind") && output.stdout.contains(path),
            "{}",
            output.stdout
        );
        // Nothing of it came to the project.
        let mut current_names: Vec<_> = walk(&root.join("notes"));
        current_names.sort();
        assert_eq!(current_names, ["notes/kept.sh", "notes/sub"], "{name}");
    }
    assert_eq!(
        root.join("notes").metadata().unwrap().permissions().mode() & 0o7777,
        mode
    );
    // What was there before is told no more, and ordinary files are nobody's business.
    let body = "with open('notes/sub/a.md', 'w') as f: f.write('x')\nwith open('notes/kept.txt', 'w') as f: f.write('x')\nreturn {}";
    skills.trusted("plain", "FILE_WRITE", granted, body);
    skills.outcome("plain").is(0, "SUCCEEDED", "");
    assert_eq!(
        std::fs::read_to_string(root.join("notes/sub/a.md")).unwrap(),
        "x"
    );
    skills.run(["ledger", "verify"]).ok();
}

/// Everything below a directory, from the one above it.
fn walk(directory: &Path) -> Vec<String> {
    let above = directory.parent().unwrap();
    let mut open = vec![directory.to_owned()];
    let mut found = Vec::new();
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(at).unwrap().flatten() {
            found.push(
                entry
                    .path()
                    .strip_prefix(above)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned(),
            );
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
            }
        }
    }
    found
}

#[test]
fn failed_run_discards_its_writes() {
    let skills = Skills::new();
    let root = skills.root();
    std::fs::create_dir_all(root.join("notes")).unwrap();
    std::fs::write(root.join("notes/old.txt"), "old").unwrap();
    let granted = ["--allow-write", "notes/"];
    let writes = "import os, time\nwith open('notes/old.txt', 'w') as f: f.write('bad')\nopen('notes/new.txt', 'w').close()\n";
    let fails = [
        ("raises", "raise ValueError('x')", "FAILED"),
        (
            "deletes",
            "os.remove('notes/old.txt')\nos._exit(1)",
            "FAILED",
        ),
        ("gives_no_object", "return 1", "FAILED"),
        ("is_denied", "os.fork()\nreturn {}", "DENIED"),
        ("is_refused", "open('README.md', 'w')\nreturn {}", "DENIED"),
        (
            "plants",
            "open('notes/conftest.py', 'w').close()\nos.makedirs('notes/.git/hooks')\nreturn {}",
            "DENIED",
        ),
    ];
    for (name, body, outcome) in fails {
        skills.trusted(name, "FILE_WRITE", granted, &format!("{writes}{body}"));
        skills.outcome(name).is(1, outcome, "");
        assert_eq!(walk(&root.join("notes")), ["notes/old.txt"], "{name}");
        assert_eq!(
            std::fs::read_to_string(root.join("notes/old.txt")).unwrap(),
            "old",
            "{name}"
        );
    }
    skills.trusted(
        "waits",
        "FILE_WRITE",
        granted,
        &format!("{writes}time.sleep(60)\nreturn {{}}"),
    );
    skills
        .run(["skill", "run", "waits", "--input", "{}", "--timeout", "2"])
        .exits(10);
    assert_eq!(walk(&root.join("notes")), ["notes/old.txt"]);
    skills.trusted(
        "works",
        "FILE_WRITE",
        granted,
        &format!("{writes}os.rename('notes/new.txt', 'notes/b.txt')\nreturn {{}}"),
    );
    skills.outcome("works").is(0, "SUCCEEDED", "");
    assert_eq!(
        std::fs::read_to_string(root.join("notes/old.txt")).unwrap(),
        "bad"
    );
    assert!(root.join("notes/b.txt").exists() && !root.join("notes/new.txt").exists());
}

#[test]
fn run_killed_during_copy_is_settled_by_next() {
    const FILES: usize = 150;
    let skills = Skills::new();
    let root = skills.root();
    std::fs::create_dir_all(root.join("notes")).unwrap();
    for number in 0..FILES {
        std::fs::write(root.join(format!("notes/{number}.txt")), "old").unwrap();
    }
    let body = format!(
        "import os\nif os.path.exists('notes/stop'): raise ValueError('x')\nfor n in range({FILES}):\n    with open(f'notes/{{n}}.txt', 'w') as f: f.write('new')\nreturn {{}}"
    );
    skills.trusted("one", "FILE_WRITE", ["--allow-write", "notes/"], &body);
    let is_under_way = || {
        let files = std::fs::read_dir(skills.fixture.data().join("skills"))
            .into_iter()
            .flatten()
            .flatten();
        files
            .filter(|file| file.file_name().to_string_lossy().ends_with("-run.json"))
            .count()
            > 0
    };
    let mut command = skills
        .call(["skill", "run", "one", "--input", "{}"])
        .command();
    let quiet = std::process::Stdio::null;
    let mut child = command.stdout(quiet()).stderr(quiet()).spawn().unwrap();
    while !is_under_way() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_micros(200));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::write(root.join("notes/stop"), "").unwrap();
    skills.outcome("one").is(1, "FAILED", "forge-run-raised");
    let text =
        |number: usize| std::fs::read_to_string(root.join(format!("notes/{number}.txt"))).unwrap();
    let first = text(0);
    assert!(
        ["old", "new"].contains(&first.as_str()) && (0..FILES).all(|number| text(number) == first)
    );
    assert_eq!(walk(&root.join("notes")).len(), FILES + 1);
    assert!(!is_under_way());
}

#[test]
fn skill_output_is_kept_unless_changed_by_others() {
    let skills = Skills::new();
    let root = skills.root();
    std::fs::create_dir_all(root.join("notes")).unwrap();
    std::fs::write(root.join("notes/a.txt"), "a").unwrap();
    let body = "import time\nwith open('notes/a.txt', 'w') as f: f.write('by the skill')\nopen('notes/b.txt', 'w').close()\ntime.sleep(3)\nreturn {}";
    skills.trusted("one", "FILE_WRITE", ["--allow-write", "notes/"], body);
    let mut command = skills
        .call(["skill", "run", "one", "--input", "{}", "--json"])
        .command();
    let child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    std::fs::write(root.join("notes/a.txt"), "by somebody else").unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    let message = String::from_utf8(ended.stdout).unwrap();
    assert!(
        message.contains("forge-run-not-kept") && message.contains("notes/a.txt"),
        "{message}"
    );
    assert_eq!(
        std::fs::read_to_string(root.join("notes/a.txt")).unwrap(),
        "by somebody else"
    );
    assert!(!root.join("notes/b.txt").exists());
}

#[test]
fn controlling_directory_is_never_granted() {
    let skills = Skills::new();
    let propose = |path: &str| {
        let words = [
            "skill",
            "propose",
            "one",
            "--describe",
            "Does it.",
            "--effects",
            "FILE_WRITE",
            "--io",
        ];
        skills
            .call(words)
            .arg(skills.fixture.path("io.json"))
            .args(["--allow-write", path])
            .run()
    };
    for (path, name) in [
        (".crucible/skills", "(.crucible)"),
        ("a/.Crucible", "(.Crucible)"),
        ("a/.github/workflows", "(.github)"),
        (".cargo", "(.cargo)"),
        (".claude", "(.claude)"),
        (".vscode", "(.vscode)"),
        (".ssh", "(.ssh)"),
        ("notes/.env", "(.env)"),
        ("~/x", "(~)"),
    ] {
        let command_output = propose(path).exits(2);
        assert!(
            command_output.stderr.contains(path) && command_output.stderr.contains(name),
            "{}",
            command_output.stderr
        );
        assert!(
            command_output.stderr.contains("grant a directory"),
            "{}",
            command_output.stderr
        );
    }
    for (name, path) in [("two", "a/.github"), ("three", "a/.crucible")] {
        let (mut ledger, project) = skills.ledger();
        let older = NewSkill {
            moment: Moment {
                at: "2026-01-02T03:04:05Z".parse().unwrap(),
                clock: ClockSource::System,
            },
            project,
            name: name.to_owned(),
            description: "Does it.".to_owned(),
            io_schema: json!({"input": {"type": "object"}, "output": {"type": "object"}}),
            side_effect: SideEffect::FileWrite,
            grants: json!({"write_paths": [path]}),
            spec: b"{}".to_vec(),
            held_out: None,
        };
        ledger.propose_skill(&older).unwrap();
        drop(ledger);
        skills.write(name, "return {}");
        std::fs::write(
            skills.root().join(format!("tests/test_skill_{name}.py")),
            "# a test\n",
        )
        .unwrap();
        skills.verified(name, &five());
        let refused = skills.promote(name).run().exits(1);
        assert!(
            refused.stdout.contains("forge-promote-grants"),
            "{}",
            refused.stdout
        );
        // An older version promoted it.
        let (mut ledger, project) = skills.ledger();
        let proposal = ledger.skill(&project, name).unwrap().unwrap().id;
        let verified = ledger.verifications(proposal).unwrap().pop().unwrap();
        let promotion = NewPromotion {
            moment: older.moment,
            proposal,
            verification: Some(verified.id),
            from: SkillStatus::Verified,
            to: SkillStatus::Trusted,
            approved_by: "Ada Example".to_owned(),
            reason: "It was taken once.".to_owned(),
            skill: verified.skill,
            test: verified.test,
        };
        ledger.promote_skill(&promotion).unwrap();
        drop(ledger);
        let result = skills.run(["skill", "run", name, "--input", "{}"]).exits(2);
        assert!(
            result.stderr.contains("granted path") && result.stderr.contains(path),
            "{}",
            result.stderr
        );
    }
    assert!(!skills.root().join("a").exists());
}

#[test]
fn no_part_of_granted_secret_leaks() {
    const VALUE: &str = "Zebra-Walnut-Lantern-Copper-Meadow-Thimble-42x";
    let skills = Skills::new();
    let bodies = [
        ("a_key", "return {key: object()}", 8),
        ("a_type", "return {'a': type('A' * 50 + key, (), {})()}", 8),
        ("no_dict", "return type('A' * 60 + key, (), {})()", 8),
        (
            "deep_key",
            "return {'a' * 20 + key: {'b': float('nan')}}",
            8,
        ),
        (
            "an_exception",
            "raise type('A' * 80 + key, (Exception,), {})()",
            1,
        ),
        ("a_message", "raise ValueError('q' * 1980 + key)", 1),
        ("a_traceback", "raise ValueError('q' * 7780 + key)", 1),
        ("a_long_message", "raise ValueError('q' * 65510 + key)", 1),
        ("a_missing_key", "return {}[key]", 1),
    ];
    for (name, body, code) in bodies {
        let name = format!("tells_{name}");
        let body = format!("import os\nkey = os.environ['WEATHER_KEY']\n{body}");
        skills.trusted(
            &name,
            "SECRET_READ",
            ["--allow-secret", "WEATHER_KEY"],
            &body,
        );
        let call = skills.call(["skill", "run", &name, "--input", "{}", "--json"]);
        let finding = if code == 8 {
            "forge-run-secret"
        } else {
            "forge-run-raised"
        };
        let outcome = outcome_of(call.env("WEATHER_KEY", VALUE)).is(code, "FAILED", finding);
        let content = skills.run(["skill", "show", &name, "--json"]).ok().stdout;
        for text in [outcome.document.to_string(), content] {
            let mut part = (0..VALUE.len() - 8).map(|start| &VALUE[start..start + 8]);
            assert_eq!(
                part.find(|part| text.contains(part)),
                None,
                "{name}: {text}"
            );
        }
    }
}

#[test]
fn registry_that_contradicts_ledger_refuses() {
    let skills = Skills::new();
    skills.trusted("one", "READ_ONLY", [], "return {}");
    let registry = skills.root().join(".crucible/skills/registry.yaml");
    let written = std::fs::read_to_string(&registry).unwrap();
    skills.outcome("one").is(0, "SUCCEEDED", "");
    for (from, to) in [
        ("READ_ONLY", "NETWORK"),
        ("Ada Example", "Eve Example"),
        ("OneSkill", "TwoSkill"),
        ("skillset.skills.one", "skillset.skills.two"),
    ] {
        let changed = written.replace(from, to);
        assert_ne!(changed, written, "{from}");
        std::fs::write(&registry, changed).unwrap();
        skills
            .outcome("one")
            .is(1, "REFUSED", "forge-registry-differs");
    }
    for key in ["    may_do: everything\n", "trusts: everything\n"] {
        std::fs::write(&registry, format!("{written}{key}")).unwrap();
        skills
            .outcome("one")
            .is(1, "REFUSED", "forge-registry-unreadable");
    }
    // Taken away, the ledger alone decides.
    std::fs::remove_file(&registry).unwrap();
    skills
        .outcome("one")
        .is(0, "SUCCEEDED", "forge-registry-missing");
}

#[test]
fn show_names_run_failure_and_its_promotion() {
    let skills = Skills::new();
    let leak = "import os\nreturn {'given': os.environ['WEATHER_KEY']}";
    skills.trusted(
        "leaks",
        "SECRET_READ",
        ["--allow-secret", "WEATHER_KEY"],
        leak,
    );
    let run = skills.call(["skill", "run", "leaks", "--input", "{}"]);
    run.env("WEATHER_KEY", "correct-horse-battery")
        .run()
        .exits(8);
    let document = skills.run(["skill", "show", "leaks", "--json"]).ok().json();
    let schema = include_str!("../../../../docs/schemas/skill-show.v1.schema.json");
    let judge = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
    let problems: Vec<String> = judge
        .iter_errors(&document)
        .map(|error| error.to_string())
        .collect();
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(
        document["runs"][0]["findings"][0]["code"],
        "forge-run-secret"
    );
    assert_eq!(document["runs"][0]["promotion"], document["trust"]["event"]);
    let text = skills.run(["skill", "show", "leaks"]).ok().stdout;
    assert!(
        text.contains("forge-run-secret leaks: Its result holds"),
        "{text}"
    );
    assert!(
        text.contains(&format!("by event {}", document["trust"]["event"])),
        "{text}"
    );
}

#[test]
fn a_run_of_nothing_has_no_digest() {
    let skills = Skills::new();
    skills.proposed("one", "READ_ONLY", [], "return {}");
    std::fs::remove_file(skills.file("one")).unwrap();
    let outcome = skills
        .outcome("one")
        .is(1, "REFUSED", "forge-run-untrusted");
    assert_eq!(outcome.document["skill_digest"], Value::Null);
    let document = skills.run(["skill", "show", "one", "--json"]).ok().json();
    assert_eq!(document["runs"][0]["skill_digest"], Value::Null);
}

#[test]
fn changed_trusted_file_is_reported_with_advice() {
    let skills = Skills::new();
    skills.trusted("one", "READ_ONLY", [], "return {}");
    let listed = || {
        let document = skills.run(["skill", "list", "--json"]).ok().json();
        let schema = include_str!("../../../../docs/schemas/skill-list.v1.schema.json");
        let judge = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
        assert!(judge.is_valid(&document), "{document:#}");
        document["skills"][0]["file"].clone()
    };
    assert_eq!(listed(), "promoted");
    let test = skills.root().join("tests/test_skill_one.py");
    std::fs::write(&test, "# another test\n").unwrap();
    skills
        .outcome("one")
        .is(0, "SUCCEEDED", "forge-run-test-changed");
    std::fs::remove_file(&test).unwrap();
    skills
        .outcome("one")
        .is(0, "SUCCEEDED", "forge-run-test-changed");
    std::fs::write(&test, "# a test\n").unwrap();
    assert!(
        !skills
            .outcome("one")
            .codes()
            .contains(&"forge-run-test-changed")
    );
    skills.write("one", "return {'another': 1}");
    assert_eq!(listed(), "changed");
    let text = skills.run(["skill", "list"]).ok().stdout;
    assert!(text.contains("TRUSTED, file changed"), "{text}");
    let output = skills.promote("one").run().exits(1);
    assert!(
        output
            .stderr
            .contains("`crucible skill demote one` comes first"),
        "{}",
        output.stderr
    );
    let command_output = skills
        .run([
            "skill", "demote", "one", "--by", "Bo", "--reason", "Changed.",
        ])
        .ok();
    assert!(
        command_output
            .stdout
            .contains("next: crucible skill verify one"),
        "{}",
        command_output.stdout
    );
    skills.verified("one", &five());
    let result = skills.promote("one").run().ok();
    assert!(
        result
            .stdout
            .contains("next: crucible skill run one --input"),
        "{}",
        result.stdout
    );
    assert_eq!(listed(), "promoted");
    std::fs::remove_file(skills.file("one")).unwrap();
    assert_eq!(listed(), "unreadable");
}

#[test]
fn local_host_grant_warns_at_propose_and_promote() {
    let skills = Skills::new();
    for (name, host) in [
        ("metadata", "169.254.169.254"),
        ("loopback", "localhost"),
        ("private", "10.0.0.8"),
    ] {
        let io = skills.fixture.path("io.json");
        let words = [
            "skill",
            "propose",
            name,
            "--describe",
            "Does it.",
            "--effects",
            "NETWORK",
            "--allow-host",
            host,
        ];
        let output = skills.call(words).arg("--io").arg(&io).run().ok();
        assert!(
            output.stderr.contains("forge-host-local") && output.stderr.contains(host),
            "{}",
            output.stderr
        );
        skills.write(name, "return {}");
        std::fs::write(
            skills.root().join(format!("tests/test_skill_{name}.py")),
            "# a test\n",
        )
        .unwrap();
        skills.verified(name, &five());
        let document = skills.promote(name).arg("--json").run().ok().json();
        assert_eq!(document["findings"][0]["code"], "forge-host-local");
        assert_eq!(document["verdict"], "pass");
    }
    skills.trusted(
        "public",
        "NETWORK",
        ["--allow-host", "api.example.invalid"],
        "return {}",
    );
    assert_eq!(
        skills.outcome("public").is(0, "SUCCEEDED", "").document["findings"],
        json!([])
    );
}

#[test]
fn skill_output_cannot_imitate_messages_or_control_terminal() {
    let skills = Skills::new();
    let body = "print('forge-run-denied: not so\\x1b[2J\\rx')\nraise ValueError('one\\nforge-run-denied: not so either\\x1b]0;x\\x07')";
    skills.trusted("one", "READ_ONLY", [], body);
    let output = skills
        .run(["skill", "run", "one", "--input", "{}"])
        .exits(1);
    assert!(
        !output.stderr.chars().any(|c| c.is_control() && c != '\n'),
        "{:?}",
        output.stderr
    );
    for line in output.stderr.lines().filter(|line| line.contains("not so")) {
        assert!(
            line.starts_with("[skill] ") || line.starts_with("forge-run-raised: "),
            "{line}"
        );
    }
    assert!(
        output.stderr.contains("[skill] Traceback"),
        "{}",
        output.stderr
    );
}
