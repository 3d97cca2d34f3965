//! Shallow clones of real repositories: in every state they can be in, and of those that set traps.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests plant traps and look for their traces"
)]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crucible_host::env::Environment;
use crucible_model::ByteLimit;
use crucible_repo::{
    CloneAt, CloneError, CloneLimits, CloneRequest, CloneUrl, Cloned, RefName, RepoError, clone,
};

use crate::common::{Repo, environment, sandbox};

fn named(name: &str) -> CloneAt {
    CloneAt::Named(name.parse::<RefName>().unwrap())
}

async fn clone_from(
    url: CloneUrl,
    at: CloneAt,
    limits: CloneLimits,
) -> (tempfile::TempDir, Result<Cloned, CloneError>) {
    let temp_dir = tempfile::tempdir().unwrap();
    let request = CloneRequest {
        url,
        at,
        into: temp_dir.path().join("tree"),
        limits,
    };
    let cloned = clone(sandbox(), &environment(temp_dir.path()), &request).await;
    (temp_dir, cloned)
}

async fn clone_of(repo: &Path, at: CloneAt) -> (tempfile::TempDir, Result<Cloned, CloneError>) {
    clone_from(
        CloneUrl::of_directory(repo).unwrap(),
        at,
        CloneLimits::DEFAULT,
    )
    .await
}

fn names(tree: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(tree)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Mode, length, instants of content and entry, and the file itself.
type FileState = (u32, u64, (i64, i64), (i64, i64), u64);

/// Every file below, with all that a write would change.
fn state(root: &Path) -> BTreeMap<PathBuf, FileState> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(path) = open.pop() {
        let meta = path.symlink_metadata().unwrap();
        if meta.is_dir() {
            open.extend(
                std::fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
        let (m, c) = (
            (meta.mtime(), meta.mtime_nsec()),
            (meta.ctime(), meta.ctime_nsec()),
        );
        found.insert(path, (meta.mode(), meta.len(), m, c, meta.ino()));
    }
    found
}

#[tokio::test]
async fn clone_checks_out_branch_tag_or_head() {
    let repo = Repo::with(&[("a", "one\n"), ("sub/b", "b\n")]);
    let first = repo.oid("HEAD");
    repo.git(["tag", "-a", "v1", "-m", "v1"]);
    repo.git(["branch", "release/1.0"]);
    repo.write("a", "two\n");
    symlink("a", repo.top.join("link")).unwrap();
    symlink("/etc/passwd", repo.top.join("out")).unwrap();
    let second = repo.commit("second");
    let before = state(&repo.top);
    for (at, commit, branch) in [
        (CloneAt::Head, &second, Some("main")),
        (named("main"), &second, None),
        (named("v1"), &first, None),
        (named("release/1.0"), &first, None),
    ] {
        let (room, cloned) = clone_of(&repo.top, at.clone()).await;
        let cloned = cloned.unwrap();
        assert_eq!(
            (&cloned.commit, cloned.head_branch.as_deref()),
            (commit, branch),
            "{at:?}"
        );
        assert_eq!(cloned.submodules, 0);
        let expected = if *commit == first {
            vec!["a", "sub"]
        } else {
            vec!["a", "link", "out", "sub"]
        };
        assert_eq!(names(&cloned.tree), expected);
        assert_eq!(names(room.path()), ["tree"], "git's own directory is gone");
    }
    assert_eq!(
        state(&repo.top),
        before,
        "the user's repository was written to"
    );

    repo.git(["checkout", "-q", "--detach", "v1"]);
    repo.write("only-here", "x\n");
    let third = repo.commit("on no branch");
    let (_room, cloned) = clone_of(&repo.top, CloneAt::Head).await;
    let cloned = cloned.unwrap();
    assert_eq!((cloned.commit, cloned.head_branch), (third, None));
}

#[tokio::test]
async fn failed_clone_states_reason() {
    let repo = Repo::with(&[("a", "one\n")]);
    let (_room, missing) = clone_of(&repo.top, named("nope")).await;
    assert!(
        matches!(&missing, Err(CloneError::NoSuchRef { name, .. }) if name == "nope"),
        "{missing:?}"
    );
    let id = repo.oid("HEAD").to_string();
    let (_room, by_id) = clone_of(&repo.top, named(&id)).await;
    assert!(
        matches!(by_id, Err(CloneError::NoSuchRef { .. })),
        "{by_id:?}"
    );
    for (tag, target) in [("a-tree", "HEAD^{tree}"), ("a-blob", "HEAD:a")] {
        repo.git(["tag", tag, target]);
        repo.git(["tag", "-a", "-m", "x", &format!("annotated-{tag}"), target]);
        for name in [tag.to_owned(), format!("annotated-{tag}")] {
            let error = clone_of(&repo.top, named(&name)).await.1.unwrap_err();
            assert!(
                matches!(&error, CloneError::NotACommit { name: told, .. } if *told == name),
                "{error}"
            );
            assert!(
                error.to_string().contains("is not a commit")
                    && !error.to_string().contains("signal"),
                "{error}"
            );
        }
    }
    let (_room, nowhere) = clone_of(Path::new("/no/such/place"), CloneAt::Head).await;
    assert!(
        matches!(nowhere, Err(CloneError::NoAccess { .. })),
        "{nowhere:?}"
    );
    let (_room, unborn) = clone_of(&Repo::empty().top, CloneAt::Head).await;
    assert!(
        matches!(unborn, Err(CloneError::Empty { .. })),
        "{unborn:?}"
    );

    let long = Repo::empty();
    std::fs::remove_dir_all(long.top.join(".git")).unwrap();
    long.git(["init", "-q", "--object-format=sha256", "-b", "main", "."]);
    long.write("a", "a");
    long.git(["add", "-A"]);
    long.git([
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@example.org",
        "commit",
        "-q",
        "-m",
        "first",
    ]);
    let (_room, sha256) = clone_of(&long.top, CloneAt::Head).await;
    assert!(
        matches!(sha256, Err(CloneError::Sha256 { .. })),
        "{sha256:?}"
    );

    // Nobody listens there.
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let url = CloneUrl::parse(&format!("https://127.0.0.1:{port}/o/r.git")).unwrap();
    let (_room, closed) = clone_from(url, CloneAt::Head, CloneLimits::DEFAULT).await;
    assert!(
        matches!(closed, Err(CloneError::Unreachable { .. })),
        "{closed:?}"
    );

    let temp_dir = tempfile::tempdir().unwrap();
    let url = CloneUrl::of_directory(&repo.top).unwrap();
    let request = CloneRequest {
        url,
        at: CloneAt::Head,
        into: temp_dir.path().to_owned(),
        limits: CloneLimits::DEFAULT,
    };
    let cloned = clone(sandbox(), &environment(temp_dir.path()), &request).await;
    assert!(
        matches!(
            cloned,
            Err(CloneError::Repo(RepoError::DestinationTaken { .. }))
        ),
        "{cloned:?}"
    );
}

#[test]
fn only_https_and_file_addresses_are_accepted() {
    for good in [
        "https://github.com",
        "https://git.example.org:8443/x",
        "file:///srv/git",
        "https://[::1]/x",
    ] {
        assert!(CloneUrl::parse(good).is_ok(), "{good}");
    }
    for bad in [
        "",
        "http://github.com",
        "git://github.com",
        "ssh://github.com/x",
        "ext::sh -c x",
        "-x",
        "--upload-pack=x",
        "/srv/git",
        "https://",
        "https:///x",
        "https://-x/y",
        "https://me:pw@github.com",
        "https://github.com/x?y",
        "https://github.com/x#y",
        "https://git hub.com",
        "file://host/x",
        "file://",
        "https://g\u{e9}.com",
        "https://github.com/\n",
        "HTTPS://github.com",
        "fd::1",
        "file:///x\0",
    ] {
        assert!(
            matches!(CloneUrl::parse(bad), Err(CloneError::Address { .. })),
            "{bad:?}"
        );
    }
    for secret in [
        "https://me:hunter2@github.com",
        "https://me:hun/ter2@github.com",
        "ssh://me:hunter2@x y",
    ] {
        let message = CloneUrl::parse(secret).unwrap_err().to_string();
        assert!(
            !message.contains("me:") && !message.contains("ter2") && message.contains("...@"),
            "{message}"
        );
    }
    for (address, host) in [
        ("https://git.example.org:8443/x", Some("git.example.org")),
        ("https://[::1]/x", Some("[::1]")),
        ("https://[::1]:443", Some("[::1]")),
        ("file:///srv/git", None),
    ] {
        assert_eq!(CloneUrl::parse(address).unwrap().host(), host);
    }
    let base = CloneUrl::parse("https://github.com/").unwrap();
    assert_eq!(
        base.join("o/r%20?#.git").as_str(),
        "https://github.com/o/r%2520%3F%23.git"
    );
    assert!(CloneUrl::of_directory(Path::new("relative")).is_err());
}

#[tokio::test]
async fn a_directory_may_have_any_name() {
    let repo = Repo::with(&[("a", "one\n")]);
    let odd: [&[u8]; 6] = [
        b"with space",
        b"100%25 #1?",
        b"it's \"q\" $(touch x) `y`",
        b"\xff\xfe",
        b"new\nline",
        b"-u \\x",
    ];
    for name in odd {
        let moved = repo.dir.path().join(OsStr::from_bytes(name));
        std::fs::rename(&repo.top, &moved).unwrap();
        let (_room, cloned) = clone_of(&moved.canonicalize().unwrap(), CloneAt::Head).await;
        assert_eq!(
            names(&cloned.unwrap().tree),
            ["a"],
            "{:?}",
            String::from_utf8_lossy(name)
        );
        std::fs::rename(&moved, &repo.top).unwrap();
    }
}

#[tokio::test]
async fn clone_works_from_linked_and_shallow_sources() {
    let repo = Repo::with(&[("a", "one\n")]);
    repo.git(["worktree", "add", "-q", "-b", "side", "../side"]);
    let side = repo.top.parent().unwrap().join("side");
    std::fs::write(side.join("b"), "b").unwrap();
    repo.git_in(&side, ["add", "b"]);
    repo.git_in(&side, ["commit", "-q", "-m", "b"]);
    let (_room, cloned) = clone_of(&side, CloneAt::Head).await;
    let cloned = cloned.unwrap();
    assert_eq!(
        (names(&cloned.tree), cloned.head_branch.as_deref()),
        (vec!["a".into(), "b".into()], Some("side"))
    );
    let (room, cloned) = clone_of(&repo.top, CloneAt::Head).await;
    cloned.unwrap();
    let shallow = room.path().join("shallow");
    let address = format!("file://{}", repo.top.display());
    repo.git([
        "-c",
        "protocol.file.allow=always",
        "clone",
        "-q",
        "--depth=1",
        &address,
        shallow.to_str().unwrap(),
    ]);
    let (_room, second_clone) = clone_of(&shallow.canonicalize().unwrap(), CloneAt::Head).await;
    assert_eq!(second_clone.unwrap().commit, repo.oid("HEAD"));
}

#[tokio::test]
async fn clone_ignores_attributes() {
    let repo = Repo::with(&[
        ("dos.txt", "a\r\nb\r\n"),
        ("unix.txt", "$Id$\nb\n"),
        (
            "pointer.bin",
            "version https://git-lfs.github.com/spec/v1\n",
        ),
    ]);
    repo.write(
        ".gitattributes",
        "*.txt text eol=crlf ident\n*.bin filter=lfs\nutf.txt working-tree-encoding=UTF-16\nno.txt export-ignore\n",
    );
    repo.write("no.txt", "kept\n");
    repo.commit("attributes");
    let (_room, cloned) = clone_of(&repo.top, CloneAt::Head).await;
    let tree = cloned.unwrap().tree;
    for name in ["unix.txt", "pointer.bin", "no.txt", "dos.txt"] {
        let committed = repo.git(["cat-file", "blob", &format!("HEAD:{name}")]);
        assert_eq!(
            std::fs::read_to_string(tree.join(name)).unwrap(),
            committed,
            "{name}"
        );
    }
}

/// A repository in which everything that could start a program leads to one that leaves a trace.
fn trapped() -> (Repo, PathBuf) {
    let repo = Repo::with(&[
        ("a.txt", "a\n"),
        (".gitattributes", "* filter=evil diff=evil merge=evil\n"),
        (
            ".gitmodules",
            "[submodule \"m\"]\n\tpath = m\n\turl = ext::sh -c touch% trace\n[submodule \"n\"]\n\tpath = n\n\turl = /\n",
        ),
    ]);
    let trace = repo.dir.path().join("trace");
    let trap = repo.home().join("trap");
    std::fs::write(
        &trap,
        format!(
            "#!/bin/sh\necho \"$0 $*\" >> {}\nexec \"$@\"\n",
            trace.display()
        ),
    )
    .unwrap();
    std::fs::set_permissions(&trap, std::fs::Permissions::from_mode(0o755)).unwrap();
    let trap_text = trap.to_str().unwrap().to_owned();
    let head = repo.oid("HEAD").to_string();
    for path in ["m", "n"] {
        repo.git([
            "update-index",
            "--add",
            "--cacheinfo",
            &format!("160000,{head},{path}"),
        ]);
    }
    repo.git(["commit", "-q", "-m", "modules"]);
    let hooks = repo.top.join(".git/hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    for hook in [
        "post-checkout",
        "reference-transaction",
        "post-index-change",
        "pre-upload",
        "post-upload-pack",
        "fsmonitor-watchman",
    ] {
        std::fs::copy(&trap, hooks.join(hook)).unwrap();
    }
    for (key, value) in [
        ("uploadpack.packObjectsHook", trap_text.as_str()),
        ("core.fsmonitor", &trap_text),
        ("core.hooksPath", hooks.to_str().unwrap()),
        ("core.sshCommand", &trap_text),
        ("core.gitProxy", &trap_text),
        ("core.askPass", &trap_text),
        ("core.pager", &trap_text),
        ("core.alternateRefsCommand", &trap_text),
        ("credential.helper", &trap_text),
        ("filter.evil.clean", &trap_text),
        ("filter.evil.smudge", &trap_text),
        ("filter.evil.process", &trap_text),
        ("filter.evil.required", "true"),
        ("diff.external", &trap_text),
        ("alias.upload-pack", &format!("!{trap_text}")),
        ("alias.pack-objects", &format!("!{trap_text}")),
        ("alias.clone", &format!("!{trap_text}")),
        ("pager.upload-pack", &trap_text),
        ("protocol.allow", "always"),
        ("protocol.ext.allow", "always"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", &format!("ext::{trap_text} x")),
        ("remote.origin.uploadpack", &trap_text),
        ("submodule.recurse", "true"),
        ("url.ext::x.insteadOf", "file://"),
        ("gc.auto", "1"),
        ("trace2.eventTarget", trace.to_str().unwrap()),
    ] {
        repo.git(["config", "--local", key, value]);
    }
    repo.git(["config", "--local", "core.repositoryFormatVersion", "1"]);
    (repo, trace)
}

#[tokio::test]
async fn clone_runs_no_program_of_the_repository() {
    let (repo, trace) = trapped();
    // The trap is a trap: git falls into it where nobody looks out.
    let hook = repo.top.join(".git/hooks/post-checkout");
    let spring = std::process::Command::new(&hook)
        .arg("true")
        .status()
        .unwrap();
    assert!(spring.success() && trace.exists());
    std::fs::remove_file(&trace).unwrap();
    let before = state(&repo.top);
    for at in [CloneAt::Head, named("main"), named("nope")] {
        let (_room, cloned) = clone_of(&repo.top, at.clone()).await;
        if let Ok(cloned) = &cloned {
            assert_eq!(
                names(&cloned.tree),
                [".gitattributes", ".gitmodules", "a.txt", "m", "n"]
            );
            assert_eq!(cloned.submodules, 2);
            assert!(
                names(&cloned.tree.join("m")).is_empty()
                    && names(&cloned.tree.join("n")).is_empty()
            );
        }
        assert_eq!(cloned.is_ok(), at != named("nope"), "{cloned:?}");
        assert!(
            !trace.exists(),
            "{}",
            std::fs::read_to_string(&trace).unwrap()
        );
    }
    assert_eq!(state(&repo.top), before);

    // An object that is missing is not fetched from wherever the configuration says.
    let blob = repo.oid("HEAD:a.txt").to_string();
    let (directory, file) = blob.split_at(2);
    std::fs::remove_file(repo.top.join(".git/objects").join(directory).join(file)).unwrap();
    let (_room, partial) = clone_of(&repo.top, CloneAt::Head).await;
    assert!(partial.is_err());
    assert!(
        !trace.exists(),
        "{}",
        std::fs::read_to_string(&trace).unwrap()
    );
}

#[tokio::test]
async fn oversized_tree_is_refused_before_checkout() {
    let repo = Repo::with(&[("a", "x")]);
    // Ten trees, each of which holds the one before ten times: 10^10 files in a few hundred bytes.
    let mut tree = repo.oid("HEAD^{tree}").to_string();
    for _ in 0..10 {
        let listing: String = (0..10)
            .map(|n| format!("040000 tree {tree}\td{n}\n"))
            .collect();
        let path = repo.dir.path().join("listing");
        std::fs::write(&path, listing).unwrap();
        let output = std::process::Command::new("git")
            .args(["mktree"])
            .current_dir(&repo.top)
            .stdin(std::fs::File::open(&path).unwrap())
            .output()
            .unwrap();
        tree = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    }
    let bomb = repo.git(["commit-tree", "-m", "bomb", &tree]);
    repo.git(["update-ref", "refs/heads/bomb", bomb.trim()]);
    let (room, refused) = clone_of(&repo.top, named("bomb")).await;
    assert!(
        matches!(
            refused,
            Err(CloneError::TooLarge {
                what: "bytes of file names",
                ..
            })
        ),
        "{refused:?}"
    );
    assert!(!room.path().join("tree").exists());

    repo.write("zeros", vec![0; 3 << 20]);
    repo.commit("zeros");
    let url = CloneUrl::of_directory(&repo.top).unwrap();
    for (limits, what) in [
        (
            CloneLimits {
                bytes: ByteLimit(1 << 20),
                ..CloneLimits::DEFAULT
            },
            "bytes of files",
        ),
        (
            CloneLimits {
                files: 1,
                ..CloneLimits::DEFAULT
            },
            "files",
        ),
        (
            CloneLimits {
                received: ByteLimit(100),
                ..CloneLimits::DEFAULT
            },
            "bytes to receive",
        ),
    ] {
        let (room, refused) = clone_from(url.clone(), CloneAt::Head, limits).await;
        assert!(
            matches!(&refused, Err(CloneError::TooLarge { what: found, .. }) if *found == what),
            "{refused:?}"
        );
        assert!(!room.path().join("tree").exists());
    }
}

/// A program called git that follows our settings, and writes down how it is called to clone.
fn fake_git(scratch_dir: &Path, then: &str) -> Environment {
    let bin = scratch_dir.join("bin");
    std::fs::create_dir(&bin).unwrap();
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *core.hooksPath*) echo /dev/null; exit 0;; esac\n\
         {{ for word in \"$@\"; do echo \"word $word\"; done; env; }} > {}/called\n{then}\n",
        scratch_dir.display()
    );
    std::fs::write(bin.join("git"), script).unwrap();
    std::fs::set_permissions(bin.join("git"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let pairs = [
        ("PATH", path.as_str()),
        ("HTTPS_PROXY", "http://127.0.0.1:9"),
        ("no_proxy", "localhost"),
        ("SSL_CERT_FILE", "/certificates"),
        ("GIT_SSL_NO_VERIFY", "1"),
        ("GIT_TRACE", "1"),
        ("GIT_DIR", "/elsewhere"),
        ("HOME", "/home/someone"),
        ("GIT_CONFIG_GLOBAL", "/home/someone/.gitconfig"),
    ];
    Environment::from_pairs(pairs, "/")
}

/// The real git, with one more variable of its own; it is found first on the `PATH`.
fn git_with(scratch_dir: &Path, variable: &str) -> Environment {
    let bin = scratch_dir.join("bin");
    std::fs::create_dir(&bin).unwrap();
    let path = std::env::var("PATH").unwrap();
    let real = environment(scratch_dir).find_program("git").unwrap();
    let script = format!(
        "#!/bin/sh\nexport {variable}\nexec {} \"$@\"\n",
        real.display()
    );
    std::fs::write(bin.join("git"), script).unwrap();
    std::fs::set_permissions(bin.join("git"), std::fs::Permissions::from_mode(0o755)).unwrap();
    Environment::from_pairs([("PATH", format!("{}:{path}", bin.display()))], "/")
}

#[tokio::test]
async fn old_git_fetches_nothing_for_partial_clone() {
    let repo = Repo::with(&[("a.txt", "a\n")]);
    let trace = repo.dir.path().join("trace");
    let trap = repo.home().join("trap");
    std::fs::write(&trap, format!("#!/bin/sh\ntouch {}\n", trace.display())).unwrap();
    std::fs::set_permissions(&trap, std::fs::Permissions::from_mode(0o755)).unwrap();
    for (key, value) in [
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        (
            "remote.origin.url",
            &format!("file://{}", repo.top.display()),
        ),
        ("remote.origin.uploadpack", trap.to_str().unwrap()),
    ] {
        repo.git(["config", "--local", key, value]);
    }
    let blob = repo.oid("HEAD:a.txt").to_string();
    let (directory, file) = blob.split_at(2);
    std::fs::remove_file(repo.top.join(".git/objects").join(directory).join(file)).unwrap();
    let temp_dir = tempfile::tempdir().unwrap();
    // As before git knew how to leave it.
    let env = git_with(temp_dir.path(), "GIT_NO_LAZY_FETCH=0");
    let url = CloneUrl::of_directory(&repo.top).unwrap();
    let request = CloneRequest {
        url,
        at: CloneAt::Head,
        into: temp_dir.path().join("tree"),
        limits: CloneLimits::DEFAULT,
    };
    let partial = clone(sandbox(), &env, &request).await;
    assert!(partial.is_err(), "{partial:?}");
    assert!(
        !trace.exists(),
        "a program that the repository names was run"
    );
}

#[tokio::test]
async fn a_repository_of_another_owner_is_cloned_too() {
    let repo = Repo::with(&[("a.txt", "a\n")]);
    let temp_dir = tempfile::tempdir().unwrap();
    let env = git_with(temp_dir.path(), "GIT_TEST_ASSUME_DIFFERENT_OWNER=1");
    let url = CloneUrl::of_directory(&repo.top).unwrap();
    let request = CloneRequest {
        url,
        at: CloneAt::Head,
        into: temp_dir.path().join("tree"),
        limits: CloneLimits::DEFAULT,
    };
    let cloned = clone(sandbox(), &env, &request).await.unwrap();
    assert_eq!(names(&cloned.tree), ["a.txt"]);
}

#[tokio::test]
async fn network_clone_allows_only_https() {
    let temp_dir = tempfile::tempdir().unwrap();
    let env = fake_git(temp_dir.path(), "exit 128");
    let url = CloneUrl::parse("https://git.example.org/o/r.git").unwrap();
    let into = temp_dir.path().join("tree");
    let request = CloneRequest {
        url,
        at: named("v1"),
        into: into.clone(),
        limits: CloneLimits::DEFAULT,
    };
    let failed = clone(sandbox(), &env, &request).await;
    assert!(
        matches!(failed, Err(CloneError::Repo(RepoError::GitFailed { .. }))),
        "{failed:?}"
    );
    let called = std::fs::read_to_string(temp_dir.path().join("called")).unwrap();
    let words: Vec<&str> = called
        .lines()
        .filter_map(|line| line.strip_prefix("word "))
        .collect();
    let git_dir = format!("{}.git", into.display());
    assert_eq!(
        words,
        [
            "--no-pager",
            "clone",
            "--quiet",
            "--bare",
            "--depth=1",
            "--single-branch",
            "--no-recurse-submodules",
            "--no-tags",
            "--template=",
            "--branch=v1",
            "--",
            "https://git.example.org/o/r.git",
            &git_dir
        ]
    );
    let variables: BTreeMap<&str, &str> = called
        .lines()
        .filter(|line| !line.starts_with("word "))
        .filter_map(|line| line.split_once('='))
        .collect();
    for (name, value) in [
        ("GIT_ALLOW_PROTOCOL", "https"),
        ("HTTPS_PROXY", "http://127.0.0.1:9"),
        ("no_proxy", "localhost"),
        ("SSL_CERT_FILE", "/certificates"),
        ("GIT_SSL_CAINFO", "/certificates"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("HOME", "/nonexistent"),
    ] {
        assert_eq!(variables.get(name), Some(&value), "{name}");
    }
    for name in ["GIT_SSL_NO_VERIFY", "GIT_TRACE", "GIT_DIR", "http_proxy"] {
        assert_eq!(variables.get(name), None, "{name}");
    }
    let mut settings = BTreeMap::new();
    for number in 0..variables["GIT_CONFIG_COUNT"].parse::<usize>().unwrap() {
        let part =
            |part: &str| variables[format!("GIT_CONFIG_{part}_{number}").as_str()].to_owned();
        settings.insert(part("KEY"), part("VALUE"));
    }
    for (key, value) in [
        ("protocol.allow", "never"),
        ("protocol.https.allow", "always"),
        ("http.followRedirects", "false"),
        ("http.sslVerify", "true"),
        ("http.lowSpeedTime", "60"),
        ("transfer.fsckObjects", "true"),
        ("transfer.bundleURI", "false"),
        ("core.hooksPath", "/dev/null"),
        ("credential.helper", ""),
        ("init.templateDir", ""),
    ] {
        assert_eq!(settings.get(key).map(String::as_str), Some(value), "{key}");
    }
    assert!(!settings.contains_key("protocol.file.allow"));
}

#[tokio::test]
async fn git_output_is_redacted_before_cutting() {
    let secret = crucible_testkit::made_up_token();
    for (script, before) in [("exit 128", 1980), ("exit 1", 10)] {
        let temp_dir = tempfile::tempdir().unwrap();
        let say = format!(
            "printf '%s' '{} {secret} end' >&2; {script}",
            "x".repeat(before)
        );
        let env = fake_git(temp_dir.path(), &say);
        let url = CloneUrl::parse("https://git.example.org/o/r.git").unwrap();
        let limits = CloneLimits::DEFAULT;
        let request = CloneRequest {
            url,
            at: CloneAt::Head,
            into: temp_dir.path().join("tree"),
            limits,
        };
        let message = clone(sandbox(), &env, &request)
            .await
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("xxx") && !message.contains("ghp_"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn hanging_or_dropped_clone_ends() {
    let temp_dir = tempfile::tempdir().unwrap();
    let env = fake_git(temp_dir.path(), "exec sleep 600");
    let request = CloneRequest {
        url: CloneUrl::parse("https://git.example.org/o/r.git").unwrap(),
        at: CloneAt::Head,
        into: temp_dir.path().join("tree"),
        limits: CloneLimits {
            time: Duration::from_millis(300),
            ..CloneLimits::DEFAULT
        },
    };
    let late = clone(sandbox(), &env, &request).await;
    assert!(matches!(late, Err(CloneError::TimedOut { .. })), "{late:?}");
}

#[tokio::test]
async fn users_proxy_is_used_for_the_host_only() {
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", proxy.local_addr().unwrap());
    let join_handle = std::thread::spawn(move || {
        let (mut stream, _) = proxy.accept().unwrap();
        let mut request = [0; 200];
        let count = stream.read(&mut request).unwrap();
        stream
            .write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .unwrap();
        String::from_utf8_lossy(&request[..count]).into_owned()
    });
    let temp_dir = tempfile::tempdir().unwrap();
    let path = std::env::var("PATH").unwrap();
    let env = Environment::from_pairs([("PATH", path.as_str()), ("HTTPS_PROXY", &address)], "/");
    let url = CloneUrl::parse("https://git.example.invalid/o/r.git").unwrap();
    let request = CloneRequest {
        url,
        at: CloneAt::Head,
        into: temp_dir.path().join("tree"),
        limits: CloneLimits::DEFAULT,
    };
    let refused = clone(sandbox(), &env, &request).await;
    assert!(
        matches!(refused, Err(CloneError::Unreachable { .. })),
        "{refused:?}"
    );
    let question = join_handle.join().unwrap();
    assert!(
        question.starts_with("CONNECT git.example.invalid:443 HTTP/1.1"),
        "{question}"
    );
}

#[tokio::test]
async fn git_ignoring_our_settings_is_refused() {
    let temp_dir = tempfile::tempdir().unwrap();
    let bin = temp_dir.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::fs::write(
        bin.join("git"),
        "#!/bin/sh\ncase \"$*\" in *version*) echo git version 2.20.1;; esac\n",
    )
    .unwrap();
    std::fs::set_permissions(bin.join("git"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let env = Environment::from_pairs([("PATH", bin.as_os_str())], "/");
    let url = CloneUrl::of_directory(temp_dir.path()).unwrap();
    let request = CloneRequest {
        url,
        at: CloneAt::Head,
        into: temp_dir.path().join("tree"),
        limits: CloneLimits::DEFAULT,
    };
    let old = clone(sandbox(), &env, &request).await;
    assert!(
        matches!(old, Err(CloneError::Repo(RepoError::GitTooOld { .. }))),
        "{old:?}"
    );
}
