//! The librarian on work trees of every kind.

#![expect(
    clippy::disallowed_methods,
    reason = "the tests make work trees of their own"
)]

use std::cell::{Cell, RefCell};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crucible_model::{ByteLimit, FileLimit};
use crucible_pack::{
    Budget, LineRange, Mode, Need, OmittedReason, RequestVersion, SourceError, build,
};

use super::*;

/// A work tree in its own directory, with something outside it.
struct Room {
    dir: tempfile::TempDir,
}

impl Room {
    fn new(files: &[(&str, &[u8])], links: &[(&str, &str)]) -> Self {
        let fixture = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        fs::create_dir_all(fixture.top()).unwrap();
        fs::write(fixture.dir.path().join("outside"), "outside").unwrap();
        for (path, bytes) in files {
            fs::create_dir_all(fixture.at(path).parent().unwrap()).unwrap();
            fs::write(fixture.at(path), bytes).unwrap();
        }
        for (link, target) in links {
            fs::create_dir_all(fixture.at(link).parent().unwrap()).unwrap();
            symlink(target, fixture.at(link)).unwrap();
        }
        fixture
    }

    fn top(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    fn at(&self, path: &str) -> PathBuf {
        self.top().join(path)
    }

    fn pack(&self, request: &FileRequest) -> ContextPack {
        pack_context(&self.top(), "repo", &ContextSettings::default(), request).unwrap()
    }
}

fn request(paths: &[&str], max_files: u64, max_total_bytes: u64) -> FileRequest {
    let need = |path: &&str| Need {
        path: (*path).to_owned(),
        mode: Mode::Full,
        line_ranges: Vec::new(),
    };
    FileRequest {
        schema_version: RequestVersion::V1,
        goal: "g".to_owned(),
        needs: paths.iter().map(need).collect(),
        budget: Budget {
            max_files: FileLimit(max_files),
            max_total_bytes: ByteLimit(max_total_bytes),
        },
        reason: "r".to_owned(),
    }
}

fn rows(pack: &ContextPack) -> Vec<(&str, &str)> {
    let files = pack.files.iter().map(|file| (file.path.as_str(), "in"));
    files
        .chain(
            pack.omitted
                .iter()
                .map(|row| (row.path.as_str(), row.reason.as_str())),
        )
        .collect()
}

#[test]
fn path_entry_is_reported_through_links() {
    let fixture = Room::new(
        &[("src/a.rs", b"four"), ("src/deep/x", b"")],
        &[
            ("to-dir", "src"),
            ("to-file", "src/a.rs"),
            ("to-nothing", "missing"),
            ("to-itself", "to-itself"),
            ("out", "../outside"),
        ],
    );
    let tree = WorkTree::new(fixture.top());
    let linked = |to: &str| Entry::Linked {
        through: Vec::new(),
        to: to.parse().unwrap(),
        size: 4,
    };
    for (path, expected) in [
        ("src/a.rs", Entry::File { size: 4 }),
        ("src", Entry::NotAFile),
        ("src/b.rs", Entry::Missing),
        ("src/a.rs/x", Entry::Missing),
        ("to-file", linked("src/a.rs")),
        ("to-dir/a.rs", linked("src/a.rs")),
        ("to-dir/deep", Entry::NotAFile),
        ("to-nothing", Entry::LinkToNothing),
        ("to-itself", Entry::LinkCycle),
        ("out", Entry::LeavesRepository),
    ] {
        assert_eq!(tree.entry(&path.parse().unwrap()), expected, "{path}");
    }
}

#[test]
fn link_targets_are_checked_at_any_depth() {
    let files: [(&str, &[u8]); 6] = [
        ("src/a.rs", b"in the repository"),
        (".git/config", b"[core]"),
        ("sub/build/made", b"made"),
        ("node_modules/x/index.js", b"foreign"),
        ("a/b/keep", b""),
        ("conf/.env", b"PASSWORD=1"),
    ];
    let links = [
        ("fine", "src/a.rs"),
        ("a/b/fine-dir", "../../src"),
        ("out", "../outside"),
        ("a/b/out-dir", "../../.."),
        ("git-dir", ".git"),
        ("a/git-file", "../.git/config"),
        ("a/b/built", "../../sub/build"),
        ("a/b/built-file", "../../sub/build/made"),
        ("chain-1", "chain-2"),
        ("chain-2", "a/b/built/made"),
        ("modules", "node_modules"),
        ("env", "conf/.env"),
        ("self", "self"),
        ("device", "/dev/zero"),
    ];
    let fixture = Room::new(&files, &links);
    let expected_value = [
        "fine",
        "a/b/fine-dir/a.rs",
        "out",
        "a/b/out-dir/outside",
        "git-dir/config",
        "a/git-file",
        "a/b/built/made",
        "a/b/built-file",
        "chain-1",
        "modules/x/index.js",
        "env",
        "self",
        "device",
        "sub/build/made",
        "a/b/fine-dir",
    ];
    let pack = fixture.pack(&request(&expected_value, 99, 9999));
    let mut expected = vec![("fine", "in"), ("a/b/fine-dir/a.rs", "in")];
    expected.extend(expected_value[2..14].iter().map(|path| (*path, "denied")));
    expected.push(("a/b/fine-dir", "invalid_request"));
    assert_eq!(rows(&pack), expected);
    assert!(
        pack.files
            .iter()
            .all(|file| file.content == "in the repository")
    );
    assert!(
        pack.summary
            .contains("\"chain-1\" is a link to \"chain-2\"")
            || pack.summary.contains("which lies below build/")
    );
}

#[test]
fn special_files_are_refused_without_blocking() {
    let fixture = Room::new(&[("dir/a", b"")], &[]);
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, fixture.at("pipe"), fifo, mode, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(fixture.at("socket")).unwrap();
    symlink("pipe", fixture.at("to-pipe")).unwrap();
    let expected = ["pipe", "socket", "to-pipe", "dir", "none", "dir/a/b"];
    let pack = fixture.pack(&request(&expected, 9, 99));
    let not_a_file = "invalid_request";
    assert_eq!(
        rows(&pack),
        [
            ("pipe", not_a_file),
            ("socket", not_a_file),
            ("to-pipe", not_a_file),
            ("dir", not_a_file),
            ("none", "not_found"),
            ("dir/a/b", "not_found"),
        ]
    );
}

/// A work tree that counts requests and acts between a look and a read.
struct Watched<'a> {
    tree: WorkTree,
    asked: Cell<u64>,
    between: RefCell<&'a mut dyn FnMut(&RepoPath)>,
}

impl Source for Watched<'_> {
    fn entry(&self, path: &RepoPath) -> Entry {
        self.tree.entry(path)
    }

    fn read(&self, path: &RepoPath, max: u64) -> Result<Vec<u8>, SourceError> {
        self.asked.set(self.asked.get() + max);
        (self.between.borrow_mut())(path);
        self.tree.read(path, max)
    }

    fn is_secret(&self, path: &RepoPath, content: &[u8]) -> Option<String> {
        self.tree.is_secret(path, content)
    }
}

fn watched(
    top: &Path,
    request: &FileRequest,
    between: &mut dyn FnMut(&RepoPath),
) -> (ContextPack, u64) {
    let source = Watched {
        tree: WorkTree::new(top),
        asked: Cell::new(0),
        between: RefCell::new(between),
    };
    let pack = build(request, &Mandatory::default(), "repo", &source).unwrap();
    (pack, source.asked.get())
}

#[test]
fn huge_file_read_is_bounded() {
    let fixture = Room::new(&[], &[]);
    for name in ["huge", "lines"] {
        fs::File::create(fixture.at(name))
            .unwrap()
            .set_len(300 << 20)
            .unwrap();
    }
    let mut expected = request(&["huge"], 9, 1000);
    let (pack, request_count) = watched(&fixture.top(), &expected, &mut |_| {});
    assert!(pack.files[0].truncated && pack.files[0].content.len() == 1000);
    assert!(request_count <= 4 * 1024, "{request_count}");
    let line_ranges = vec![LineRange { start: 1, end: 2 }];
    expected.needs = vec![Need {
        path: "lines".to_owned(),
        mode: Mode::Snippets,
        line_ranges,
    }];
    let (pack, asked) = watched(&fixture.top(), &expected, &mut |_| {});
    assert_eq!(pack.omitted[0].reason, OmittedReason::BudgetExceeded);
    assert!(asked <= 72 * 1024, "{asked}");
}

#[test]
fn file_swapped_before_read_stays_inside() {
    let fixture = Room::new(
        &[
            ("link", b"a"),
            ("pipe", b"a"),
            ("grown", b"a"),
            ("shrunk", b"abcdef"),
            ("gone", b"a"),
        ],
        &[],
    );
    let mut change = |path: &RepoPath| {
        let at = fixture.at(path.as_str());
        fs::remove_file(&at).unwrap();
        match path.as_str() {
            "link" => symlink("../outside", &at).unwrap(),
            "pipe" => {
                let mode = rustix::fs::Mode::from_raw_mode(0o600);
                rustix::fs::mknodat(rustix::fs::CWD, &at, rustix::fs::FileType::Fifo, mode, 0)
                    .unwrap();
            }
            "grown" => fs::write(&at, "x".repeat(1_000_000)).unwrap(),
            "shrunk" => fs::write(&at, "abc").unwrap(),
            _ => {}
        }
    };
    let expected = request(&["link", "pipe", "shrunk", "gone", "grown"], 9, 100);
    let (pack, request_count) = watched(&fixture.top(), &expected, &mut change);
    assert_eq!(
        rows(&pack),
        [
            ("shrunk", "in"),
            ("grown", "in"),
            ("link", "denied"),
            ("pipe", "denied"),
            ("gone", "denied")
        ]
    );
    assert_eq!(
        (pack.files[0].content.as_str(), pack.files[0].truncated),
        ("abc", false)
    );
    assert_eq!(
        (pack.files[1].content.len(), pack.files[1].truncated),
        (97, true)
    );
    assert!(
        request_count < 16 * 1024 && !pack.summary.contains("outside"),
        "{}",
        pack.summary
    );
    let room_path = fixture.dir.path().to_str().unwrap();
    assert!(
        !String::from_utf8(pack.to_bytes().unwrap())
            .unwrap()
            .contains(room_path),
        "{}",
        pack.summary
    );
}

#[test]
fn another_checkout_gives_the_same_bytes() {
    let files: [(&str, &[u8]); 4] = [
        ("src/a.rs", b"fn a() {}\r\n"),
        ("AGENTS.md", b"be kind"),
        ("latin", b"caf\xe9"),
        (".env", b"A=1"),
    ];
    let expected = request(
        &[
            "src/a.rs",
            ".env",
            "latin",
            "none",
            "link",
            "../x",
            "AGENTS.md",
        ],
        9,
        99,
    );
    let links = [("link", "../outside")];
    let [one, other] = [Room::new(&files, &links), Room::new(&files, &links)];
    let bytes = one.pack(&expected).to_bytes().unwrap();
    assert_eq!(bytes, other.pack(&expected).to_bytes().unwrap());
    assert_eq!(bytes, one.pack(&expected).to_bytes().unwrap());
}

#[test]
fn request_text_is_scanned_for_secrets() {
    let fixture = Room::new(&[("a", b"x")], &[]);
    let token = crucible_testkit::made_up_token();
    for (place, expected) in ["the goal", "the reason", "path 2"].into_iter().enumerate() {
        let mut expected_value = request(&["a"], 9, 99);
        match place {
            0 => expected_value.goal = format!("use {token}"),
            1 => expected_value.reason = format!("has {token}"),
            _ => expected_value = request(&["a", &format!("a/{token}")], 9, 99),
        }
        let refused = pack_context(
            &fixture.top(),
            "repo",
            &ContextSettings::default(),
            &expected_value,
        );
        let error = refused.unwrap_err();
        assert!(
            matches!(&error, RunError::SecretInRequest { place, .. } if place == expected),
            "{error:?}"
        );
        assert!(
            error.to_string().starts_with(expected) && !error.to_string().contains(&token),
            "{error}"
        );
    }
}

#[test]
fn mandatory_documents_have_reserved_budget() {
    let fixture = Room::new(
        &[("AGENTS.md", b"12345"), ("extra.md", b"123")],
        &[("PATCH_README.md", "AGENTS.md")],
    );
    let settings = ContextSettings {
        mandatory: vec!["extra.md".parse().unwrap(), "none.md".parse().unwrap()],
        ..ContextSettings::default()
    };
    let stored_mandatory_size = mandatory_size(&fixture.top(), &settings);
    let paths: Vec<&str> = stored_mandatory_size
        .paths
        .iter()
        .map(RepoPath::as_str)
        .collect();
    assert_eq!(
        (paths, stored_mandatory_size.bytes),
        (vec!["extra.md", "AGENTS.md", "PATCH_README.md"], 13)
    );
}

#[test]
fn a_secret_in_wide_characters_is_one() {
    let text = format!("token = {}\n", crucible_testkit::made_up_token());
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let four: Vec<u8> = text
        .chars()
        .flat_map(|c| u32::from(c).to_le_bytes())
        .collect();
    let plain: Vec<u8> = "nothing here"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let fixture = Room::new(
        &[
            ("le", &little),
            ("be", &big),
            ("four", &four),
            ("plain", &plain),
        ],
        &[],
    );
    let pack = fixture.pack(&request(&["le", "be", "four", "plain"], 9, 9999));
    assert_eq!(
        rows(&pack),
        [
            ("plain", "in"),
            ("le", "denied"),
            ("be", "denied"),
            ("four", "denied")
        ]
    );
}
