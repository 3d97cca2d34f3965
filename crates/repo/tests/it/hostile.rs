//! A repository whose configuration names programs. Whatever is called, none of them ever runs.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests plant traps and look for their traces"
)]

use std::os::unix::fs::PermissionsExt;

use crucible_model::{ByteLimit, RepoPath};
use crucible_repo::{
    Branch, LandRequest, RepoError, SnapshotOptions, Untracked, create_baseline, snapshot,
};

use crate::common::{Repo, environment, sandbox};

/// A repository in which every way we know to make git run a program leads to one that leaves a trace.
fn trapped() -> (Repo, std::path::PathBuf) {
    let repo = Repo::with(&[
        ("a.txt", "one\ntwo\n"),
        ("b.dat", "data\n"),
        (
            ".gitattributes",
            "* filter=evil diff=evil merge=evil\n*.dat filter=e.v=i l\n",
        ),
    ]);
    repo.git(["tag", "base"]);
    let trace = repo.dir.path().join("trace");
    let trap = repo.home().join("trap");
    std::fs::write(
        &trap,
        format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", trace.display()),
    )
    .unwrap();
    std::fs::set_permissions(&trap, std::fs::Permissions::from_mode(0o755)).unwrap();
    let trap_text = trap.to_str().unwrap();

    let hooks = repo.top.join(".git/hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    for hook in [
        "pre-commit",
        "post-commit",
        "commit-msg",
        "prepare-commit-msg",
        "post-checkout",
        "post-merge",
        "pre-push",
        "reference-transaction",
        "post-index-change",
        "fsmonitor-watchman",
        "applypatch-msg",
        "pre-applypatch",
        "post-applypatch",
        "pre-auto-gc",
        "post-rewrite",
    ] {
        std::fs::copy(&trap, hooks.join(hook)).unwrap();
    }
    let included = repo.home().join("included.config");
    let drivers = format!(
        "[filter \"evil\"]\n\tclean = {trap_text}\n\tsmudge = {trap_text}\n\tprocess = {trap_text}\n\trequired = true\n\
         [filter \"e.v=i l\"]\n\tclean = {trap_text}\n\tsmudge = {trap_text}\n\trequired\n\
         [diff \"evil\"]\n\ttextconv = {trap_text}\n\tcommand = {trap_text}\n[merge \"evil\"]\n\tdriver = {trap_text}\n\
         [hook \"evil\"]\n\tcommand = {trap_text}\n\tevent = pre-commit\n\tevent = reference-transaction\n\tevent = post-index-change\n"
    );
    std::fs::write(&included, drivers).unwrap();
    for (key, value) in [
        ("include.path", included.to_str().unwrap()),
        ("core.fsmonitor", trap_text),
        ("core.hooksPath", hooks.to_str().unwrap()),
        ("core.pager", trap_text),
        ("core.editor", trap_text),
        ("core.sshCommand", trap_text),
        ("core.askPass", trap_text),
        ("core.alternateRefsCommand", trap_text),
        ("core.gitProxy", trap_text),
        ("credential.helper", trap_text),
        ("diff.external", trap_text),
        ("gpg.program", trap_text),
        ("commit.gpgSign", "true"),
        ("log.showSignature", "true"),
        ("gc.auto", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.url", &format!("ext::{trap_text} x")),
        ("remote.origin.promisor", "true"),
        ("protocol.allow", "always"),
        ("protocol.ext.allow", "always"),
        ("remote.origin.uploadpack", trap_text),
        ("alias.status", &format!("!{trap_text}")),
        ("alias.apply", &format!("!{trap_text}")),
        ("alias.read-tree", &format!("!{trap_text}")),
        ("pager.status", trap_text),
        ("interactive.diffFilter", trap_text),
        ("trailer.x.command", trap_text),
        ("submodule.recurse", "true"),
        ("core.worktree", ".."),
    ] {
        repo.git(["config", key, value]);
    }
    // The traps work: git on its own runs them.
    let _ = std::process::Command::new("git")
        .arg("status")
        .current_dir(&repo.top)
        .output();
    assert!(
        std::fs::read_to_string(&trace)
            .unwrap_or_default()
            .contains("trap"),
        "the traps are not set"
    );
    std::fs::remove_file(&trace).unwrap();
    (repo, trace)
}

#[tokio::test]
async fn no_program_that_a_repository_names_ever_runs() {
    let (repo, trace) = trapped();
    let quiet = |what: &str| {
        let text = std::fs::read_to_string(&trace).unwrap_or_default();
        assert!(text.is_empty(), "{what} ran {text}");
    };
    let git = repo.open().await;
    quiet("open");
    git.branch().await.unwrap();
    git.identity().await.unwrap();
    quiet("identity");
    // Files that look changed make git compare, and so filter.
    for file in ["a.txt", "b.dat"] {
        let content = repo.read(file);
        repo.write(file, content);
    }
    assert_eq!(git.status().await.unwrap(), []);
    quiet("status");
    let files = git.tracked_files().await.unwrap();
    git.untracked_files().await.unwrap();
    git.read_blob(&files[1].oid, ByteLimit(100)).await.unwrap();
    let head = git.head().await.unwrap();
    let paths: Vec<RepoPath> = vec!["a.txt".parse().unwrap()];
    git.files_at(&head.tree, &paths, ByteLimit(100))
        .await
        .unwrap();
    let missing = "2".repeat(40).parse().unwrap();
    assert!(
        git.read_blob(&missing, ByteLimit(100)).await.is_err(),
        "and nothing is fetched"
    );
    quiet("reading");

    let patch = b"diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-one\n+ONE\n two\n\
                  diff --git a/new.dat b/new.dat\nnew file mode 100644\n--- /dev/null\n+++ b/new.dat\n@@ -0,0 +1 @@\n+new\n";
    let produced = git.tree_after_patch(&head.commit, patch).await.unwrap();
    quiet("tree_after_patch");

    let options = SnapshotOptions {
        untracked: Untracked::Include,
        secret: std::sync::Arc::new(|_| None),
    };
    let copy = repo.dir.path().join("copy");
    snapshot(&git, &copy, &options).await.unwrap();
    quiet("snapshot");
    create_baseline(sandbox(), &environment(&repo.home()), &copy)
        .await
        .unwrap();
    quiet("baseline");

    let run = "20260131t093000z-1f2e3d4c5b6a".parse().unwrap();
    let request = LandRequest {
        run: &run,
        base: &head.commit,
        branch: &Branch::Named("main".to_owned()),
        patch,
        tree: &produced.tree,
        message: &format!("change\n\nCrucible-Run: {run}\n"),
        identity: &git.identity().await.unwrap(),
        at: "2026-01-31T09:30:00Z".parse().unwrap(),
        signature: None,
    };
    let refused = git.land(&request).await;
    assert!(
        matches!(refused, Err(RepoError::Rewritten { ref paths }) if paths.len() == 2),
        "{refused:?}"
    );
    quiet("a landing that is refused");
    assert_eq!(repo.oid("HEAD"), head.commit);
    repo.write(".git/info/attributes", "* -filter\n");
    git.land(&request).await.unwrap();
    quiet("land");
    assert_eq!(repo.read("a.txt"), "ONE\ntwo\n");
    assert_eq!(repo.read("new.dat"), "new\n");
    assert_eq!(git.status().await.unwrap(), []);
    quiet("status after landing");
}

#[tokio::test]
async fn a_repository_of_another_owner_is_read() {
    let repo = Repo::with(&[("a", "a\n")]);
    for path in [repo.top.clone(), repo.top.join(".git")] {
        // Only root can give a directory away; for anybody else the repository is their own anyway.
        let _ = std::os::unix::fs::chown(&path, Some(4242), Some(4242));
    }
    assert!(repo.open().await.status().await.unwrap().is_empty());
}
