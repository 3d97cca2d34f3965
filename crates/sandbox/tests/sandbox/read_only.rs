//! Places in a writable directory that stay as they are.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use crucible_host::env::Environment;
use crucible_sandbox::{End, Layer, PathProblem, Profile, Sandbox, SandboxError, Strength};

use crate::confined::write;
use crate::support::{Scratch, eventually, launcher, output, part, path, play, run};

/// Tries every way there is to change `.git` and `deep/er/kept`, and tells which worked.
const ATTACK: &str = "\
    cat .git/config deep/er/kept\n\
    (echo bad > .git/config) 2>/dev/null && echo wrote\n\
    (echo bad > .git/hooks/post-commit) 2>/dev/null && echo planted\n\
    (echo bad > deep/er/kept) 2>/dev/null && echo wrote\n\
    rm -rf .git 2>/dev/null && echo removed; mv .git .git2 2>/dev/null && echo moved\n\
    mkdir x && mv x .git/x 2>/dev/null && echo moved into; mv deep deep2 2>/dev/null && echo moved around\n\
    mv deep/er deep/er2 2>/dev/null && echo moved around; rm -f deep/er/kept 2>/dev/null && echo removed\n\
    ln .git/config hard 2>/dev/null && echo linked; chmod 777 .git/config 2>/dev/null && echo chmod\n\
    ln -s .git soft && (echo bad > soft/config) 2>/dev/null && echo through a link\n\
    mount -o remount,rw,bind .git 2>/dev/null && echo remounted; umount .git 2>/dev/null && echo unmounted\n\
    (echo bad > /proc/self/cwd/.git/config) 2>/dev/null && echo through proc\n\
    touch -d 2001-01-01 .git/config 2>/dev/null && echo touched\n\
    echo fine > free; echo fine > deep/er/free";

fn kept(scratch: &Scratch) -> Vec<PathBuf> {
    [".git/", "deep/er/kept"]
        .map(|name| scratch.copy.join(name))
        .to_vec()
}

#[test]
fn read_only_path_is_visible_and_unchanged() {
    let scratch = Scratch::new();
    let files = [".git/config", ".git/hooks/pre-commit", "deep/er/kept"];
    for name in files {
        write(&scratch.copy.join(name), "as it was\n");
    }
    let spawn = scratch.confined_with(ATTACK, |profile| profile.read_only = kept(&scratch));
    assert_eq!(output(&scratch.sandbox(), spawn), "as it was\nas it was\n");
    for name in files {
        assert_eq!(
            std::fs::read_to_string(scratch.copy.join(name)).unwrap(),
            "as it was\n",
            "{name}"
        );
    }
    assert!(scratch.copy.join("free").exists() && scratch.copy.join("deep/er/free").exists());

    // The same script does all of it where nothing is kept, so the test can fail.
    let open = output(
        &scratch.sandbox(),
        scratch.confined(&format!("rm -rf x soft; {ATTACK} 2>/dev/null; true")),
    );
    for done in ["wrote", "planted", "removed"] {
        assert!(open.contains(done), "{open}");
    }
}

#[test]
fn missing_read_only_path_cannot_be_created() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.copy.join("deep")).unwrap();
    let script = "mkdir -p .git/hooks 2>/dev/null && echo made; (echo bad > .git/config) 2>/dev/null && echo wrote\n\
        rmdir .git 2>/dev/null && echo removed; mv .git x 2>/dev/null && echo moved; rm -rf .git 2>/dev/null && echo removed\n\
        mkdir -p deep/er && (echo bad > deep/er/kept) 2>/dev/null && echo wrote; mv deep x 2>/dev/null && echo moved; true";
    let spawn = scratch.confined_with(script, |profile| profile.read_only = kept(&scratch));
    assert_eq!(output(&scratch.sandbox(), spawn), "");
    assert!(
        !scratch.copy.join(".git").exists(),
        "the placeholder is removed"
    );
    assert_eq!(
        std::fs::read_dir(scratch.copy.join("deep"))
            .unwrap()
            .count(),
        0
    );
}

#[test]
fn missing_parents_of_read_only_path_are_writable() {
    let scratch = Scratch::new();
    let script = "(echo bad > new/er/kept) 2>/dev/null && echo wrote; mv new/er x 2>/dev/null && echo moved\n\
        rm -rf new 2>/dev/null && echo removed; mkdir -p new/er; echo fine > new/er/free";
    for is_filled in [true, false] {
        let script = if is_filled { script } else { "true" };
        let spawn = scratch.confined_with(script, |profile| {
            profile.read_only = vec![scratch.copy.join("new/er/kept")];
        });
        assert_eq!(output(&scratch.sandbox(), spawn), "");
        let new = scratch.copy.join("new");
        assert!(!new.join("er/kept").exists());
        assert_eq!(new.join("er/free").exists(), is_filled);
        assert_eq!(new.exists(), is_filled, "an empty one is removed");
        if is_filled {
            let mode = new.metadata().unwrap().permissions().mode();
            assert_eq!(
                mode & 0o1000,
                0,
                "what was filled is a placeholder no longer"
            );
            std::fs::remove_dir_all(&new).unwrap();
        }
    }
}

#[test]
fn file_instead_of_directory_is_protected_too() {
    let scratch = Scratch::new();
    write(&scratch.copy.join(".git"), "gitdir: ../elsewhere\n");
    let script = "cat .git; (echo bad > .git) 2>/dev/null && echo wrote; rm -f .git 2>/dev/null && echo removed; true";
    let spawn = scratch.confined_with(script, |profile| {
        profile.read_only = vec![scratch.copy.join(".git/")]
    });
    assert_eq!(output(&scratch.sandbox(), spawn), "gitdir: ../elsewhere\n");
}

#[test]
fn mask_below_read_only_path_still_hides() {
    let scratch = Scratch::new();
    write(&scratch.copy.join(".git/secret"), "hidden");
    write(&scratch.copy.join(".git/config"), "seen");
    let spawn = scratch.confined_with(
        "cat .git/config .git/secret .git/none 2>/dev/null; true",
        |profile| {
            profile.read_only = vec![scratch.copy.join(".git/")];
            profile.masked = vec![
                scratch.copy.join(".git/secret"),
                scratch.copy.join(".git/none/of/it"),
            ];
        },
    );
    assert_eq!(output(&scratch.sandbox(), spawn), "seen");
}

#[test]
fn link_in_read_only_path_reveals_nothing() {
    let scratch = Scratch::new();
    write(
        &scratch.home.join("private/tool"),
        "#!/bin/sh\necho the secret\n",
    );
    let tool = scratch.copy.join(".crucible/bin/tool");
    write(&tool, "");
    std::fs::remove_file(&tool).unwrap();
    symlink(scratch.home.join("private/tool"), &tool).unwrap();
    let mut spawn =
        scratch.confined_with("cat .crucible/bin/tool 2>/dev/null; echo end", |profile| {
            profile.read_only = vec![scratch.copy.join(".crucible/")];
        });
    // The directory is on the search path, as that of a tool would be.
    let mut search = scratch.copy.join(".crucible/bin").into_os_string();
    search.push(":");
    search.push(path());
    spawn.env.retain(|(name, _)| name != "PATH");
    spawn.env.push(("PATH".into(), search));
    assert_eq!(output(&scratch.sandbox(), spawn), "end\n");
}

#[test]
fn unprotectable_read_only_path_is_refused() {
    let scratch = Scratch::new();
    symlink("/etc", scratch.copy.join(".git")).unwrap();
    let refused = |place: PathBuf| {
        let spawn = scratch.confined_with("true", |profile| profile.read_only = vec![place]);
        match run(&scratch.sandbox(), spawn).unwrap_err() {
            SandboxError::ReadOnly { problem, .. } => problem,
            other => panic!("{other}"),
        }
    };
    assert!(matches!(
        refused(scratch.copy.join(".git/")),
        PathProblem::IsLink
    ));
    assert!(matches!(refused("relative".into()), PathProblem::Relative));
    // A process inside could change the link; the planner cannot see where it leads then.
    symlink("loop", scratch.copy.join("loop")).unwrap();
    assert!(matches!(
        refused(scratch.copy.join("loop/.git/")),
        PathProblem::Io(_)
    ));
    assert!(matches!(
        refused(scratch.copy.clone()),
        PathProblem::Contradiction
    ));
}

#[test]
fn without_mounts_read_only_paths_are_reported() {
    let scratch = Scratch::new();
    write(&scratch.copy.join(".git/config"), "as it was");
    let bare = Environment::from_pairs(
        [
            ("PATH", scratch.dir.path().join("tools").as_os_str()),
            ("HOME", scratch.home.as_os_str()),
        ],
        "/",
    );
    let sandbox = Sandbox::new(Some(launcher()), &bare);
    let spawn = |strength: Strength| {
        scratch.confined_with("echo bad > .git/config", |profile: &mut Profile| {
            profile.read_only = kept(&scratch);
            profile.strength = strength;
        })
    };
    let refused = run(&sandbox, spawn(Strength::Required)).unwrap_err();
    assert!(
        matches!(refused, SandboxError::LayersMissing { .. }),
        "{refused}"
    );
    assert_eq!(
        std::fs::read_to_string(scratch.copy.join(".git/config")).unwrap(),
        "as it was"
    );

    let done = run(&sandbox, spawn(Strength::BestEffort)).unwrap();
    assert_eq!(done.end, End::Exited(0));
    let masks = done
        .receipt
        .missing
        .iter()
        .find(|lost| lost.layer == Layer::Masks)
        .unwrap();
    assert!(
        masks.reason.contains("copy/.git/ can be changed"),
        "{masks:?}"
    );
}

/// Two processes keep the same place that is not there. The first to end takes nothing from the other, which removes what is left.
#[test]
fn shared_protected_path_outlives_its_first_process() {
    if let Some(copy) = part() {
        let mut scratch = Scratch::new();
        scratch.copy = copy.into();
        let script = "echo up > second; until [ -e go ]; do sleep 0.02; done\n\
            mkdir -p .git/hooks 2>/dev/null && echo made > planted; (echo bad > .git/config) 2>/dev/null && echo wrote > planted; true";
        let spawn = scratch.confined_with(script, |profile| {
            profile.read_only = vec![scratch.copy.join(".git/")]
        });
        output(&scratch.sandbox(), spawn);
        return;
    }
    let scratch = Scratch::new();
    let is_there = |name: &str| scratch.copy.join(name).exists();
    let mut other = std::process::Command::new(std::env::current_exe().unwrap());
    let name = "read_only::shared_protected_path_outlives_its_first_process";
    play(&mut other, name, scratch.copy.to_str().unwrap());
    other
        .env("CRUCIBLE_TEST_SCRATCH", scratch.dir.path())
        .env("CRUCIBLE_TEST_LAUNCHER", launcher().program);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            let script = "echo up > first; until [ -e second ]; do sleep 0.02; done";
            let spawn = scratch.confined_with(script, |profile| {
                profile.read_only = vec![scratch.copy.join(".git/")]
            });
            output(&scratch.sandbox(), spawn);
        });
        eventually("the first one runs", || is_there("first"));
        let mut other = other.spawn().unwrap();
        first.join().unwrap();
        assert!(is_there(".git"), "the other still needs it");
        write(&scratch.copy.join("go"), "");
        assert!(other.wait().unwrap().success());
    });
    assert!(
        !is_there("planted"),
        "{:?}",
        std::fs::read_to_string(scratch.copy.join("planted"))
    );
    assert!(!is_there(".git"), "the last one removes it");
}
