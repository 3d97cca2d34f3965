//! Home directories are hidden whole, and tools in them run all the same.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crucible_host::env::Environment;
use crucible_sandbox::{IsolationLevel, Layer, Sandbox, Spawn, Strength, base_env};

use crate::confined::write;
use crate::support::{Scratch, launcher, output, path, run};

fn program(path: &Path, script: &str) {
    write(path, &format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Both ways to isolate: with namespaces, and with Landlock alone.
fn levels(scratch: &Scratch) -> [(Sandbox, Strength); 2] {
    [
        (scratch.sandbox(), Strength::Required),
        (scratch.without_bubblewrap(), Strength::BestEffort),
    ]
}

fn script(scratch: &Scratch, strength: Strength, text: &str) -> Spawn {
    scratch.confined_with(text, |profile| profile.strength = strength)
}

#[test]
fn only_tools_of_home_are_readable() {
    let scratch = Scratch::new();
    let hidden = [
        "secret.txt",
        ".secret",
        "Documents/letter",
        ".config/app/token",
        ".local/share/app/data",
        ".cargo/credentials.toml",
        ".cargo/own",
        ".gradle/gradle.properties",
        "go/src/private/main.go",
        ".m2/settings.xml",
    ];
    for name in hidden {
        write(&scratch.home.join(name), "password = hidden\n");
    }
    let lines = [
        ".cargo/registry/index",
        ".rustup/settings.toml",
        "go/pkg/mod/x",
        ".m2/repository/y",
    ];
    for name in lines.iter().chain(&[".cargo/config.toml"]) {
        write(&scratch.home.join(name), "shown\n");
    }
    let home = scratch.home.display();
    let mut text = String::new();
    for name in hidden.iter().chain(&lines).chain(&[".cargo/config.toml"]) {
        text.push_str(&format!("cat {home}/{name} 2>/dev/null; "));
    }
    text.push_str(&format!(
        "find {home} -type f 2>/dev/null | grep -e ecret -e letter -e token -e src; "
    ));
    text.push_str(&format!(
        "(echo bad > {home}/.cargo/registry/new) 2>/dev/null && echo wrote; true"
    ));
    for (sandbox, strength) in levels(&scratch) {
        assert_eq!(
            output(&sandbox, script(&scratch, strength, &text)),
            "shown\n".repeat(5),
            "{strength:?}"
        );
    }

    // Settings that hold a secret are not shown, whatever the file is called.
    write(
        &scratch.home.join(".cargo/config.toml"),
        "[registries.own]\ntoken = \"hidden\"\n",
    );
    let text = format!("cat {home}/.cargo/config.toml 2>/dev/null || echo none");
    for (sandbox, strength) in levels(&scratch) {
        assert_eq!(
            output(&sandbox, script(&scratch, strength, &text)),
            "none\n"
        );
    }
}

#[test]
fn mask_in_shown_working_directory_stays_hidden() {
    let scratch = Scratch::new();
    let project = scratch.home.join("project");
    for name in [
        "logs/a.log",
        "logs/deep/b.log",
        "logs/.env",
        "secret.txt",
        "src/a.py",
    ] {
        write(&project.join(name), "content\n");
    }
    let text = "for name in logs/a.log logs/deep/b.log logs/.env secret.txt src/a.py; do cat $name > /dev/null 2>&1 && test -s $name && echo $name; done; true";
    for (sandbox, strength) in levels(&scratch) {
        let mut spawn = scratch.confined_with(text, |profile| {
            profile.strength = strength;
            profile.writable = Vec::new();
            profile.masked = ["logs/.env", "secret.txt", "src/"]
                .map(|name| project.join(name))
                .to_vec();
        });
        spawn.cwd = project.clone();
        assert_eq!(
            output(&sandbox, spawn),
            "logs/a.log\nlogs/deep/b.log\n",
            "{strength:?}"
        );
    }
}

#[test]
fn tool_below_home_runs_in_its_place() {
    let scratch = Scratch::new();
    program(
        &scratch.home.join(".local/bin/greet"),
        "cat ~/.secret 2>/dev/null; echo greetings",
    );
    // An installation of its own on the PATH, with its library beside it.
    program(
        &scratch.home.join("opt/tool/bin/tool"),
        ". \"$(dirname \"$0\")/../lib/words\"; echo $WORDS",
    );
    write(
        &scratch.home.join("opt/tool/lib/words"),
        "WORDS='from the library'",
    );
    write(&scratch.home.join("opt/tool/.secret"), "hidden");
    write(&scratch.home.join(".secret"), "hidden");
    // A link among the programs, to where the program is kept.
    program(
        &scratch.home.join("src/thing/run.sh"),
        "cat ~/src/thing/key 2>/dev/null; echo through a link",
    );
    write(&scratch.home.join("src/thing/key"), "hidden");
    symlink(
        scratch.home.join("src/thing/run.sh"),
        scratch.home.join(".local/bin/thing"),
    )
    .unwrap();
    for (sandbox, strength) in levels(&scratch) {
        for (name, words) in [
            ("greet", "greetings\n"),
            ("tool", "from the library\n"),
            ("thing", "through a link\n"),
        ] {
            let mut spawn = script(&scratch, strength, "");
            spawn.program = name.into();
            spawn.args.clear();
            let system = path();
            let dirs = [".local/bin", "opt/tool/bin"].map(|dir| scratch.home.join(dir));
            let dirs = dirs.into_iter().chain(std::env::split_paths(&system));
            spawn.env = vec![
                ("PATH".into(), std::env::join_paths(dirs).unwrap()),
                ("HOME".into(), scratch.home.clone().into()),
            ];
            assert_eq!(output(&sandbox, spawn), words, "{strength:?}");
        }
    }
}

#[test]
fn toolchains_that_a_variable_names_are_found() {
    let scratch = Scratch::new();
    write(&scratch.home.join("own/cargo/registry/index"), "index\n");
    write(&scratch.home.join("own/cargo/credentials.toml"), "hidden\n");
    write(&scratch.home.join("own/java/lib/modules"), "modules\n");
    write(&scratch.home.join("own/other"), "hidden\n");
    let text = "cat $CARGO_HOME/registry/index $CARGO_HOME/credentials.toml $JAVA_HOME/lib/modules 2>/dev/null; \
                cat $JAVA_HOME/../other 2>/dev/null; ls $JAVA_HOME/.. >/dev/null 2>&1 && ls $JAVA_HOME/..; true";
    for (sandbox, strength) in levels(&scratch) {
        let mut spawn = script(&scratch, strength, text);
        spawn
            .env
            .push(("CARGO_HOME".into(), scratch.home.join("own/cargo").into()));
        spawn
            .env
            .push(("JAVA_HOME".into(), scratch.home.join("own/java").into()));
        let seen = output(&sandbox, spawn);
        assert!(
            seen.starts_with("index\nmodules\n") && !seen.contains("other"),
            "{strength:?}: {seen}"
        );
        assert!(!seen.contains("hidden"), "{strength:?}: {seen}");
    }
}

#[test]
fn links_in_the_home_lead_where_they_led() {
    let scratch = Scratch::new();
    let disk = scratch.dir.path().join("disk");
    write(&disk.join("cargo/registry/index"), "index\n");
    write(&disk.join("cargo/credentials.toml"), "hidden\n");
    symlink(disk.join("cargo"), scratch.home.join(".cargo")).unwrap();
    write(
        &scratch.home.join("versions/rust/settings.toml"),
        "settings\n",
    );
    symlink("versions/rust", scratch.home.join(".rustup")).unwrap();
    // One that leads to the home itself, and one to nothing, show nothing.
    write(&scratch.home.join("secret.txt"), "hidden\n");
    symlink(&scratch.home, scratch.home.join(".pyenv")).unwrap();
    symlink("/no/such/place", scratch.home.join(".nvm")).unwrap();
    let home = scratch.home.display();
    let text = format!(
        "cd {home}; cat .cargo/registry/index .rustup/settings.toml; \
         cat .pyenv/secret.txt secret.txt versions/other .cargo/credentials.toml 2>/dev/null; true"
    );
    let spawn = script(&scratch, Strength::Required, &text);
    assert_eq!(output(&scratch.sandbox(), spawn), "index\nsettings\n");
    let spawn = script(&scratch, Strength::BestEffort, &text);
    let seen = output(&scratch.without_bubblewrap(), spawn);
    assert!(seen.starts_with("index\nsettings\n"), "{seen}");
}

/// The copy is the change's author's: a link in it must not decide what of the home is shown.
#[test]
fn link_in_copy_reveals_nothing_of_home() {
    let scratch = Scratch::new();
    program(&scratch.home.join("private/bin/tool"), "echo ran");
    write(&scratch.home.join("private/lib/secret.txt"), "hidden\n");
    write(&scratch.home.join("private/bin/secret.txt"), "hidden\n");
    symlink(scratch.home.join("private"), scratch.copy.join("env")).unwrap();
    symlink(
        scratch.home.join("private/bin/tool"),
        scratch.copy.join("gate"),
    )
    .unwrap();
    let home = scratch.home.display();
    let text =
        format!("cat env/lib/secret.txt env/bin/secret.txt {home}/private/*/* 2>/dev/null; true");
    for (sandbox, strength) in levels(&scratch) {
        let mut spawn = script(&scratch, strength, &text);
        let system = path();
        let dirs = [scratch.copy.join("env/bin")]
            .into_iter()
            .chain(std::env::split_paths(&system));
        spawn.env = vec![
            ("PATH".into(), std::env::join_paths(dirs).unwrap()),
            ("VIRTUAL_ENV".into(), scratch.copy.join("env").into()),
        ];
        assert_eq!(output(&sandbox, spawn), "", "{strength:?}");
        let mut spawn = script(&scratch, strength, "");
        spawn.program = "./gate".into();
        assert!(
            !run(&sandbox, spawn).is_ok_and(|done| done.stdout.text().contains("ran")),
            "{strength:?}"
        );
    }
}

#[test]
fn writable_and_working_directories_may_be_in_home() {
    let scratch = Scratch::new();
    let copy = scratch.home.join("work/copy");
    write(&copy.join("file"), "source\n");
    write(&scratch.home.join("work/secret.txt"), "hidden\n");
    write(&scratch.home.join("here/file"), "here\n");
    write(&scratch.home.join("here/.env/x"), "");
    for (sandbox, strength) in levels(&scratch) {
        let text = "cat file; echo new > new && cat new; cat ../secret.txt ../../here/file 2>/dev/null; true";
        let mut spawn = script(&scratch, strength, text);
        if let crucible_sandbox::Confinement::Confined(profile) = &mut spawn.confinement {
            profile.writable = vec![copy.clone()];
        }
        spawn.cwd.clone_from(&copy);
        assert_eq!(output(&sandbox, spawn), "source\nnew\n", "{strength:?}");

        let mut spawn = script(
            &scratch,
            strength,
            "cat file; (echo bad > new) 2>/dev/null && echo wrote; true",
        );
        spawn.cwd = scratch.home.join("here");
        assert_eq!(output(&sandbox, spawn), "here\n", "{strength:?}");
    }
}

#[test]
fn other_homes_and_mail_are_hidden() {
    let scratch = Scratch::new();
    let text = "for place in /root /home /var/mail /var/spool /var/log; do \
                  find -L $place -maxdepth 3 -type f 2>/dev/null | grep -v -e /.cargo/ -e /.rustup/ -e /.pyenv/; \
                done; true";
    let env = Environment::from_pairs(
        [("PATH", path()), ("HOME", scratch.home.clone().into())],
        "/",
    );
    for (sandbox, strength) in levels(&scratch) {
        let mut spawn = script(&scratch, strength, text);
        spawn.env = base_env(&env);
        assert_eq!(output(&sandbox, spawn), "", "{strength:?}");
    }
}

/// The reported isolation is the one in force: without namespaces a mask inside the copy does not hold, so the
/// layer is missing, and the closed homes are named where they are closed.
#[test]
fn the_receipt_names_what_closes_the_home() {
    let scratch = Scratch::new();
    let done = run(&scratch.sandbox(), scratch.confined("true")).unwrap();
    assert_eq!(done.receipt.level, IsolationLevel::Full);
    let masks = done
        .receipt
        .reached
        .iter()
        .find(|found| found.layer == Layer::Masks)
        .unwrap();
    assert!(masks.detail.contains("home"), "{}", masks.detail);

    let done = run(
        &scratch.without_bubblewrap(),
        script(&scratch, Strength::BestEffort, "true"),
    )
    .unwrap();
    assert_eq!(done.receipt.level, IsolationLevel::Partial);
    let landlock = done
        .receipt
        .reached
        .iter()
        .find(|found| found.layer == Layer::Landlock)
        .unwrap();
    assert!(
        landlock.detail.contains("no home directory"),
        "{}",
        landlock.detail
    );
    let masks = done
        .receipt
        .missing
        .iter()
        .find(|lost| lost.layer == Layer::Masks)
        .unwrap();
    assert!(
        masks.reason.contains("inside the writable directories"),
        "{}",
        masks.reason
    );
}

#[test]
fn a_sandbox_without_a_home_runs() {
    let scratch = Scratch::new();
    for home in ["/", "/nonexistent", ""] {
        let env = Environment::from_pairs([("PATH", path()), ("HOME", home.into())], "/");
        let sandbox = Sandbox::new(Some(launcher()), &env);
        assert_eq!(
            output(&sandbox, scratch.confined("echo fine")),
            "fine\n",
            "{home}"
        );
    }
}
