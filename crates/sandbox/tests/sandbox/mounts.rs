//! A copy at the path of its original, with parts of the original in it.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crucible_host::env::Environment;
use crucible_sandbox::{
    Confinement, Layer, Mount, MountContent, PathProblem, Sandbox, SandboxError, Spawn, Strength,
};

use crate::confined::write;
use crate::support::{Scratch, launcher, output, path, run};

/// An original with dependencies and a secret, and a copy of it that differs.
fn original(scratch: &Scratch) -> PathBuf {
    let original = scratch.dir.path().join("original");
    write(&original.join("src/a"), "original\n");
    write(&original.join("secret"), "hidden\n");
    write(&original.join("deps/lib/b"), "dependency\n");
    write(&original.join("deps/key"), "hidden\n");
    write(&scratch.copy.join("src/a"), "copy\n");
    std::fs::create_dir_all(scratch.copy.join("deps")).unwrap();
    original
}

fn mount(target: &Path, content: MountContent) -> Mount {
    Mount {
        target: target.to_owned(),
        content,
    }
}

/// The script in the copy, which stands at the path of the original.
fn moved(scratch: &Scratch, original: &Path, script: &str) -> Spawn {
    let mut spawn = scratch.confined_with(script, |profile| {
        profile.writable.clear();
        let deps = original.join("deps");
        profile.masked = vec![scratch.dir.path().join("runs"), deps.join("key")];
        profile.mounts = vec![
            mount(original, MountContent::Writable(scratch.copy.clone())),
            mount(&deps, MountContent::ReadOnly(deps.clone())),
        ];
    });
    spawn.cwd = scratch.copy.join("src");
    spawn
}

#[test]
fn mounted_copy_stands_at_the_originals_path() {
    let scratch = Scratch::new();
    let original = original(&scratch);
    let script = format!(
        "pwd; cat a '{0}/src/a' ../deps/lib/b; cat ../secret ../deps/key 2>/dev/null\n\
         echo new > a; echo made > ../made\n\
         (echo bad > ../deps/lib/b) 2>/dev/null && echo wrote\n\
         mv ../deps ../deps2 2>/dev/null && echo moved; rm -rf ../deps/lib 2>/dev/null && echo removed\n\
         true",
        original.display()
    );
    let spawn = moved(&scratch, &original, &script);
    let expected = format!(
        "{}\ncopy\ncopy\ndependency\n",
        original.join("src").display()
    );
    let done = run(&scratch.sandbox(), spawn).unwrap();
    assert_eq!(done.stdout.text(), expected, "{}", done.stderr.text());
    let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
    assert_eq!(read(original.join("src/a")), "original\n");
    assert_eq!(read(scratch.copy.join("src/a")), "new\n");
    assert_eq!(read(scratch.copy.join("made")), "made\n");
    assert_eq!(read(original.join("deps/lib/b")), "dependency\n");
    assert!(!original.join("made").exists());
    let masks = done
        .receipt
        .reached
        .iter()
        .find(|layer| layer.layer == Layer::Masks)
        .unwrap();
    assert!(
        masks
            .detail
            .ends_with("the copy stands at the path of the original"),
        "{}",
        masks.detail
    );
}

#[test]
fn overlay_receives_writes_and_is_discarded() {
    let scratch = Scratch::new();
    let original = original(&scratch);
    let deps = original.join("deps");
    let script = "cd ../deps; ls -A; cat lib/b; echo changed > lib/b; mkdir -p .cache/tool; echo made > .cache/tool/x\n\
         cat lib/b .cache/tool/x; rm -r lib && mkdir lib && ls -A lib; echo over > key; cat key; rm -f key\n\
         mkdir away; mv key away 2>/dev/null; cat key away/key; ln key other; cat other; chmod 644 key; cat key";
    for _ in 0..2 {
        let mut spawn = moved(&scratch, &original, script);
        let Confinement::Confined(profile) = &mut spawn.confinement else {
            panic!("it is confined")
        };
        profile.mounts[1] = mount(&deps, MountContent::Overlay(deps.clone()));
        let done = run(&scratch.sandbox(), spawn).unwrap();
        assert_eq!(
            done.stdout.text(),
            "key\nlib\ndependency\nchanged\nmade\n",
            "{}",
            done.stderr.text()
        );
        let read = |path: &str| std::fs::read_to_string(deps.join(path)).unwrap();
        assert_eq!(
            (read("lib/b"), read("key")),
            ("dependency\n".into(), "hidden\n".into())
        );
        assert_eq!(std::fs::read_dir(&deps).unwrap().count(), 2);
        assert_eq!(
            std::fs::read_dir(scratch.copy.join("deps"))
                .unwrap()
                .count(),
            0
        );
    }
}

#[test]
fn programs_in_copy_start_at_original_path() {
    let scratch = Scratch::new();
    let original = original(&scratch);
    write(&scratch.copy.join("src/tool"), "#!/bin/sh\necho \"$0\"\n");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(scratch.copy.join("src/tool"), executable).unwrap();
    let mut spawn = moved(&scratch, &original, "");
    (spawn.program, spawn.args) = ("./tool".into(), Vec::new());
    assert_eq!(
        output(&scratch.sandbox(), spawn),
        format!("{}\n", original.join("src/./tool").display())
    );
}

#[test]
fn mounts_that_lead_elsewhere_are_refused() {
    let scratch = Scratch::new();
    let original = original(&scratch);
    let refused = |content: MountContent, target: PathBuf, first: bool| {
        let mut spawn = moved(&scratch, &original, "true");
        let Confinement::Confined(profile) = &mut spawn.confinement else {
            panic!("it is confined")
        };
        profile.mounts.truncate(usize::from(!first));
        profile.mounts.push(mount(&target, content));
        match run(&scratch.sandbox(), spawn) {
            Err(SandboxError::Mounted { path, problem }) => {
                assert_eq!(path, target);
                problem
            }
            other => panic!("{target:?}: {other:?}"),
        }
    };
    // The copy's own link decides where a mount in it would land.
    symlink("../../..", scratch.copy.join("out")).unwrap();
    std::fs::create_dir(original.join("out")).unwrap();
    let lib = || MountContent::ReadOnly(original.join("deps/lib"));
    assert!(matches!(
        refused(lib(), original.join("out"), false),
        PathProblem::NotADirectory
    ));
    assert!(matches!(
        refused(lib(), original.join("src/a"), false),
        PathProblem::NotADirectory
    ));
    assert!(matches!(
        refused(lib(), original.clone(), false),
        PathProblem::Contradiction
    ));
    assert!(matches!(
        refused(lib(), "/usr".into(), true),
        PathProblem::System
    ));
    // What is hidden from every program is shown by no mount.
    write(&scratch.home.join(".ssh/id"), "key\n");
    let keys = MountContent::ReadOnly(scratch.home.join(".ssh"));
    assert!(matches!(
        refused(keys, original.join("deps"), false),
        PathProblem::Hidden
    ));
}

#[test]
fn a_masked_target_is_a_contradiction() {
    let scratch = Scratch::new();
    let original = original(&scratch);
    let mut spawn = moved(&scratch, &original, "true");
    let Confinement::Confined(profile) = &mut spawn.confinement else {
        panic!("it is confined")
    };
    profile.masked.push(original.clone());
    let error = run(&scratch.sandbox(), spawn).unwrap_err();
    assert!(
        matches!(
            error,
            SandboxError::Masked {
                problem: PathProblem::Contradiction,
                ..
            }
        ),
        "{error}"
    );
    // One around it is not a contradiction: the mount shows nothing of what it hides.
    let mut spawn = moved(&scratch, &original, "cat a; cat ../../home/x");
    let Confinement::Confined(profile) = &mut spawn.confinement else {
        panic!("it is confined")
    };
    profile.masked = vec![scratch.dir.path().to_owned()];
    write(&scratch.home.join("x"), "hidden\n");
    assert_eq!(
        run(&scratch.sandbox(), spawn).unwrap().stdout.text(),
        "copy\n"
    );
}

#[test]
fn copy_works_at_own_path_without_namespaces() {
    let scratch = Scratch::new();
    let original = original(&scratch);
    let environment = Environment::from_pairs([("PATH", "/nowhere")], "/");
    let sandbox = Sandbox::new(Some(launcher()), &environment);
    let mut spawn = moved(&scratch, &original, "pwd; cat a; echo new > a");
    spawn.env = vec![("PATH".into(), path())];
    let Confinement::Confined(profile) = &mut spawn.confinement else {
        panic!("it is confined")
    };
    profile.strength = Strength::BestEffort;
    let done = run(&sandbox, spawn).unwrap();
    let expected = format!("{}\ncopy\n", scratch.copy.join("src").display());
    assert_eq!(done.stdout.text(), expected, "{}", done.stderr.text());
    assert_eq!(
        std::fs::read_to_string(scratch.copy.join("src/a")).unwrap(),
        "new\n"
    );
    let masks = done
        .receipt
        .missing
        .iter()
        .find(|layer| layer.layer == Layer::Masks)
        .unwrap();
    assert!(
        masks
            .reason
            .ends_with("the copy is not at the path of the original"),
        "{}",
        masks.reason
    );
}
