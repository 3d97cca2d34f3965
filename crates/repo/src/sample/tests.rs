//! The sample of real trees, friendly and hostile.
#![expect(clippy::disallowed_methods, reason = "tests lay out trees by hand")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, OFlags};

use super::*;

fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, content) in files {
        put(dir.path(), path, content);
    }
    dir
}

fn put(top: &Path, path: &str, content: impl AsRef<[u8]>) {
    let path = top.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn standard(top: &Path) -> RepoSample {
    sample(top, None, &SampleCaps::STANDARD).unwrap()
}

fn paths(sampling: &RepoSample) -> Vec<&str> {
    sampling
        .files
        .iter()
        .map(|file| file.path.as_str())
        .collect()
}

fn caps(sampling: &RepoSample) -> Vec<SampleCap> {
    sampling.caps_hit.iter().copied().collect()
}

#[test]
fn reading_stops_after_200_files() {
    let dir = tree(&[("README.md", "x")]);
    for number in 0..200 {
        put(dir.path(), &format!("src/{number:03}.rs"), "x");
    }
    let sampling = standard(dir.path());
    assert_eq!(sampling.files.len(), 200);
    assert_eq!(caps(&sampling), [SampleCap::Files]);
    fs::remove_file(dir.path().join("src/000.rs")).unwrap();
    let sampling = standard(dir.path());
    assert_eq!(
        (sampling.files.len(), sampling.is_truncated()),
        (200, false)
    );
}

#[test]
fn file_is_cut_at_200_000_bytes() {
    let dir = tree(&[
        ("a.rs", &"x".repeat(200_000)),
        ("b.rs", &"y".repeat(200_001)),
    ]);
    let sampling = standard(dir.path());
    let of = |file: &SampledFile| (file.content.len(), file.total_bytes, file.extent);
    let files: Vec<_> = sampling.files.iter().map(of).collect();
    assert_eq!(
        files,
        [
            (200_000, 200_000, SampleExtent::Whole),
            (200_000, 200_001, SampleExtent::Beginning)
        ]
    );
    assert_eq!(caps(&sampling), [SampleCap::FileBytes]);
}

#[test]
fn total_read_is_capped_at_2_megabytes() {
    let dir = tree(&[]);
    for number in 0..30 {
        put(dir.path(), &format!("{number:02}.rs"), "x".repeat(150_000));
    }
    let sampling = standard(dir.path());
    assert_eq!((sampling.bytes(), sampling.files.len()), (2_000_000, 14));
    assert_eq!(sampling.files[13].extent, SampleExtent::Beginning);
    assert_eq!(caps(&sampling), [SampleCap::TotalBytes]);
}

#[test]
fn exact_total_hits_no_cap() {
    let dir = tree(&[]);
    for number in 0..10 {
        put(dir.path(), &format!("{number:02}.rs"), "x".repeat(200_000));
    }
    assert!(!standard(dir.path()).is_truncated());
    put(dir.path(), "empty.rs", "");
    assert!(!standard(dir.path()).is_truncated());
    put(dir.path(), "z.rs", "z");
    let sampling = standard(dir.path());
    assert_eq!(
        (caps(&sampling), sampling.files.len()),
        (vec![SampleCap::TotalBytes], 11)
    );
}

#[test]
fn depth_limit_is_four_directories() {
    let dir = tree(&[("1/2/3/4/in.rs", "x")]);
    assert!(!standard(dir.path()).is_truncated());
    put(dir.path(), "1/2/3/4/5/out.rs", "x");
    let sampling = standard(dir.path());
    assert_eq!(sampling.listing, ["1/2/3/4/in.rs"]);
    assert_eq!(caps(&sampling), [SampleCap::Depth]);
}

#[test]
fn summary_names_500_uppermost_files() {
    let dir = tree(&[("z.rs", "x")]);
    for number in 0..499 {
        put(dir.path(), &format!("a/{number:03}.rs"), "x");
    }
    let sampling = standard(dir.path());
    assert_eq!(sampling.tree_summary.lines().count(), 500);
    assert!(!sampling.caps_hit.contains(&SampleCap::Names));
    put(dir.path(), "a/b/deep.rs", "x");
    let sampling = standard(dir.path());
    let lines: Vec<&str> = sampling.tree_summary.lines().collect();
    assert_eq!(
        (lines.len(), lines[0], lines[499], lines[500]),
        (501, "a/000.rs", "z.rs", "... and 1 more")
    );
    assert!(sampling.caps_hit.contains(&SampleCap::Names));
}

#[test]
fn build_and_upper_files_are_read_first() {
    let dir = tree(&[
        ("a.rs", "x"),
        ("Cargo.lock", "x"),
        ("README.md", "x"),
        ("Makefile", "x"),
        ("LICENSE", "x"),
        (".github/workflows/ci.yml", "x"),
        ("sub/Cargo.toml", "x"),
        ("sub/a.rs", "x"),
        ("package.json", "x"),
    ]);
    assert_eq!(
        paths(&standard(dir.path())),
        [
            "Makefile",
            "package.json",
            "README.md",
            "LICENSE",
            "Cargo.lock",
            "sub/Cargo.toml",
            ".github/workflows/ci.yml",
            "a.rs",
            "sub/a.rs",
        ]
    );
}

#[test]
fn large_files_do_not_starve_build_files() {
    let dir = tree(&[
        ("package.json", "{}"),
        ("package-lock.json", &"x".repeat(300_000)),
    ]);
    for number in 0..20 {
        put(
            dir.path(),
            &format!("{number}/CHANGELOG.md"),
            "x".repeat(300_000),
        );
        put(dir.path(), &format!("a{number}.js"), "x".repeat(300_000));
    }
    for number in 0..300 {
        put(dir.path(), &format!("p/{number}/package.json"), "{}");
    }
    let sampling = standard(dir.path());
    assert_eq!(paths(&sampling)[..2], ["package.json", "package-lock.json"]);
    assert!(sampling.bytes() <= 2_000_000);
}

#[test]
fn only_listed_kinds_are_read() {
    let dir = tree(&[
        ("node_modules/a/index.js", "x"),
        ("sub/target/a.rs", "x"),
        ("x.egg-info/a.py", "x"),
        (".git/config", "x"),
        ("logo.png", "x"),
        ("app.min.js", "x"),
        ("other.lock", "x"),
        ("notes.md", "x"),
        ("build", "a file of that name is not a directory"),
        ("ok.rs", "x"),
    ]);
    let sampling = standard(dir.path());
    assert_eq!(sampling.listing, ["build", "notes.md", "ok.rs"]);
    assert_eq!(paths(&sampling), ["ok.rs"]);
    assert!(!sampling.is_truncated() && sampling.unseen.is_empty());
}

#[test]
fn links_are_recorded_and_never_followed() {
    let outside = tree(&[("secret.rs", "outside"), ("Cargo.toml", "[package]")]);
    let dir = tree(&[("node_modules/.bin/x.js", "x"), ("1/2/3/4/5/6/a.rs", "x")]);
    for (link, target) in [
        ("Cargo.toml", outside.path().join("Cargo.toml")),
        ("dir", outside.path().to_owned()),
        ("build", outside.path().to_owned()),
        ("node_modules/.bin/tool", outside.path().to_owned()),
        ("1/2/3/4/5/6/deep", PathBuf::from("/etc")),
        ("loop", PathBuf::from("loop")),
        ("a\nb", PathBuf::from("/")),
    ] {
        symlink(target, dir.path().join(link)).unwrap();
    }
    let sampling = standard(dir.path());
    let expected = [
        "1/2/3/4/5/6/deep",
        "Cargo.toml",
        "a\nb",
        "build",
        "dir",
        "loop",
        "node_modules/.bin/tool",
    ];
    assert_eq!(
        sampling
            .links
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>(),
        expected
    );
    assert!(sampling.files.is_empty() && sampling.listing.is_empty());
    assert_eq!(
        sampling.tree_summary,
        "Cargo.toml (link)\na\\nb (not looked at: its name)\nbuild (link)\ndir (link)\nloop (link)\n"
    );
    let inside = |path: &str| {
        sample(
            dir.path(),
            Some(&path.parse().unwrap()),
            &SampleCaps::STANDARD,
        )
    };
    for path in [
        "dir",
        "build",
        "missing",
        "1/2/none",
        "node_modules/.bin/tool/x",
        "node_modules/.bin/x.js",
    ] {
        let error = inside(path).unwrap_err();
        let kind = match error {
            RepoError::Io { source, .. } => source.kind(),
            other => panic!("{other}"),
        };
        assert!(
            matches!(
                kind,
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
            ),
            "{path}"
        );
    }
    assert_eq!(
        inside("1/2").unwrap().links,
        BTreeSet::from(["3/4/5/6/deep".to_owned()])
    );
}

#[test]
fn pipes_and_sockets_and_devices_are_not_opened() {
    let dir = tree(&[("a.rs", "x")]);
    for (name, kind) in [
        ("README.md", FileType::Fifo),
        ("Cargo.toml", FileType::Socket),
    ] {
        rustix::fs::mknodat(
            CWD,
            dir.path().join(name),
            kind,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
    }
    let sampling = standard(dir.path());
    assert_eq!(
        (paths(&sampling), sampling.listing.len()),
        (vec!["a.rs"], 1)
    );
}

#[test]
fn pipe_in_place_of_file_does_not_block() {
    let dir = tree(&[("a.rs", "x")]);
    let root = Root::open(dir.path()).unwrap();
    let mut sampling = walk::walk(&root, &SampleCaps::STANDARD).unwrap();
    fs::remove_file(dir.path().join("a.rs")).unwrap();
    rustix::fs::mknodat(
        CWD,
        dir.path().join("a.rs"),
        FileType::Fifo,
        Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    read::read(&root, &SampleCaps::STANDARD, &mut sampling);
    assert_eq!((sampling.files.len(), sampling.unreadable), (0, 1));
}

#[test]
fn huge_sparse_file_costs_one_read() {
    let dir = tree(&[("README.md", "begin")]);
    let file = fs::OpenOptions::new()
        .write(true)
        .open(dir.path().join("README.md"))
        .unwrap();
    file.set_len(1 << 40).unwrap();
    let sampling = standard(dir.path());
    assert_eq!((sampling.files.len(), sampling.skipped_binaries), (0, 1));
}

#[test]
fn binary_source_file_is_skipped_and_counted() {
    let dir = tree(&[("fine.rs", "fn main() {}"), ("empty.rs", "")]);
    put(dir.path(), "nul.rs", b"fn main\0");
    put(
        dir.path(),
        "utf16.cs",
        "\u{feff}class"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect::<Vec<u8>>(),
    );
    put(dir.path(), "noise.c", (128..=255).collect::<Vec<u8>>());
    put(
        dir.path(),
        "latin1.c",
        [
            b"/* ".as_slice(),
            &[0xe9],
            b" by someone, a comment long enough */\n",
        ]
        .concat(),
    );
    let sampling = standard(dir.path());
    assert_eq!(paths(&sampling), ["empty.rs", "fine.rs", "latin1.c"]);
    assert_eq!(sampling.skipped_binaries, 3);
    assert_eq!(
        sampling.file("latin1.c").unwrap().content,
        "/* ? by someone, a comment long enough */\n"
    );
    assert!(!sampling.is_truncated());
}

#[test]
fn binaries_count_among_the_files_that_are_read() {
    let dir = tree(&[]);
    for number in 0..250 {
        put(dir.path(), &format!("{number}.c"), [0]);
    }
    let sampling = standard(dir.path());
    assert_eq!(
        (sampling.skipped_binaries, caps(&sampling)),
        (200, vec![SampleCap::Files])
    );
}

#[test]
fn character_split_by_cap_is_dropped() {
    let mut long = "x".repeat(199_999);
    long.push_str("漢字");
    let dir = tree(&[("a.rs", &long)]);
    let sampling = standard(dir.path());
    assert_eq!(sampling.files[0].content, "x".repeat(199_999));
}

#[test]
fn odd_names_are_escaped_and_not_read() {
    let dir = tree(&[
        ("bell\u{7}.rs", "x"),
        ("a\u{202e}b/Cargo.toml", "x"),
        ("back\\slash.rs", "x"),
    ]);
    fs::write(dir.path().join(OsStr::from_bytes(b"\xff\n.rs")), "x").unwrap();
    fs::create_dir(dir.path().join(OsStr::from_bytes(b"d\xfe"))).unwrap();
    let sampling = standard(dir.path());
    assert_eq!(sampling.listing, ["back\\slash.rs"]);
    assert_eq!(sampling.odd_names, 4);
    assert_eq!(sampling.unseen, BTreeSet::from(["a\u{202e}b".to_owned()]));
    let lines: Vec<&str> = sampling.tree_summary.lines().collect();
    assert_eq!(
        lines,
        [
            "\\xff\\n.rs (not looked at: its name)",
            "a\\u{202e}b (not looked at: its name)",
            "back\\\\slash.rs",
            "bell\\u{7}.rs (not looked at: its name)",
            "d\\xfe (not looked at: its name)",
        ]
    );
}

#[test]
fn unreadable_directory_is_counted_and_named() {
    let dir = tree(&[
        ("closed/a.rs", "x"),
        ("open/a.rs", "x"),
        ("open/secret.rs", "x"),
    ]);
    fs::set_permissions(
        dir.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    for path in ["closed", "open/secret.rs"] {
        fs::set_permissions(
            dir.path().join(path),
            std::os::unix::fs::PermissionsExt::from_mode(0o000),
        )
        .unwrap();
    }
    let root = Root::open(dir.path()).unwrap();
    // Rights do not bind the superuser; they do bind a thread that gave them up.
    let sampling = std::thread::scope(|scope| {
        let as_nobody = || {
            if rustix::process::geteuid().is_root() {
                let nobody = rustix::process::Uid::from_raw(65_534);
                rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            }
            let mut sampling = walk::walk(&root, &SampleCaps::STANDARD).unwrap();
            read::read(&root, &SampleCaps::STANDARD, &mut sampling);
            sampling
        };
        scope.spawn(as_nobody).join().unwrap()
    });
    assert_eq!(paths(&sampling), ["open/a.rs"]);
    assert_eq!(
        (sampling.unreadable, &sampling.unseen),
        (2, &BTreeSet::from(["closed".to_owned()]))
    );
    fs::set_permissions(
        dir.path().join("closed"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
}

#[test]
fn oversized_directory_is_not_listed() {
    let dir = tree(&[("README.md", "x"), ("src/main.rs", "x"), ("zoo/a.rs", "x")]);
    for number in 0..40 {
        put(dir.path(), &format!("data/{number}.rs"), "x");
    }
    let caps_of = |directory_entries, entries| SampleCaps {
        directory_entries,
        entries,
        ..SampleCaps::STANDARD
    };
    let sampling = sample(dir.path(), None, &caps_of(39, 100)).unwrap();
    assert_eq!(sampling.listing, ["README.md", "src/main.rs", "zoo/a.rs"]);
    assert_eq!(
        (caps(&sampling), sampling.unseen),
        (vec![SampleCap::Walk], BTreeSet::from(["data".to_owned()]))
    );
    // The look at the large one was paid for.
    let sampling = sample(dir.path(), None, &caps_of(39, 43)).unwrap();
    assert_eq!(sampling.listing, ["README.md"]);
    assert_eq!(
        sampling.unseen.into_iter().collect::<Vec<_>>(),
        ["data", "src", "zoo"]
    );
}

#[test]
fn oversized_top_still_reads_build_files() {
    let dir = tree(&[
        ("Cargo.toml", "[package]"),
        ("Cargo.lock", "x"),
        ("README.md", "x"),
        ("src/main.rs", "x"),
    ]);
    symlink("Cargo.toml", dir.path().join("Makefile")).unwrap();
    for number in 0..40 {
        put(dir.path(), &format!("{number}.rs"), "x");
    }
    for caps_of in [
        SampleCaps {
            directory_entries: 39,
            ..SampleCaps::STANDARD
        },
        SampleCaps {
            entries: 39,
            ..SampleCaps::STANDARD
        },
    ] {
        let sampling = sample(dir.path(), None, &caps_of).unwrap();
        assert_eq!(paths(&sampling), ["Cargo.toml", "README.md", "Cargo.lock"]);
        assert_eq!(sampling.listing, ["Cargo.lock", "Cargo.toml", "README.md"]);
        assert_eq!(caps(&sampling), [SampleCap::Walk]);
        assert_eq!(
            (sampling.links.len(), sampling.unseen),
            (1, BTreeSet::from([String::new()]))
        );
    }
}

#[test]
fn walk_of_million_names_is_bounded() {
    // One name too many for one directory, and the other bound in small.
    let dir = tree(&[("Cargo.toml", "[package]")]);
    let make = |path: PathBuf| {
        rustix::fs::mknodat(
            CWD,
            path,
            FileType::RegularFile,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
    };
    fs::create_dir(dir.path().join("many")).unwrap();
    (0..=50_000).for_each(|number| make(dir.path().join(format!("many/{number}"))));
    let sampling = standard(dir.path());
    assert_eq!(
        (sampling.listing.len(), caps(&sampling)),
        (1, vec![SampleCap::Walk])
    );

    let small = SampleCaps {
        entries: 2_000,
        ..SampleCaps::STANDARD
    };
    let dir = tree(&[("Cargo.toml", "[package]")]);
    for number in 0..25 {
        fs::create_dir(dir.path().join(format!("{number:02}"))).unwrap();
        (0..100).for_each(|file| make(dir.path().join(format!("{number:02}/{file}"))));
    }
    let sampling = sample(dir.path(), None, &small).unwrap();
    assert_eq!(
        (sampling.listing.len(), sampling.unseen.len()),
        (1 + 19 * 100, 25 - 19)
    );
    assert!(sampling.caps_hit.contains(&SampleCap::Walk));
}

#[test]
fn long_names_are_bounded_too() {
    let dir = tree(&[("Cargo.toml", "[package]")]);
    for number in 0..50 {
        put(
            dir.path(),
            &format!("{}/{number}{}.rs", "d".repeat(200), "f".repeat(200)),
            "x",
        );
    }
    let sampling = sample(
        dir.path(),
        None,
        &SampleCaps {
            path_bytes: 10_000,
            ..SampleCaps::STANDARD
        },
    )
    .unwrap();
    assert_eq!(
        (sampling.listing.len(), caps(&sampling)),
        (1, vec![SampleCap::Walk])
    );
}

#[test]
fn overlong_directory_chain_ends() {
    let dir = tree(&[("a.rs", "x")]);
    let name = "d".repeat(250);
    let mut at = rustix::fs::openat(CWD, dir.path(), OFlags::DIRECTORY, Mode::empty()).unwrap();
    for _ in 0..30 {
        rustix::fs::mkdirat(&at, name.as_str(), Mode::from_raw_mode(0o755)).unwrap();
        at = rustix::fs::openat(&at, name.as_str(), OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
    let sampling = standard(dir.path());
    assert_eq!(
        (caps(&sampling), sampling.unseen.len()),
        (vec![SampleCap::Depth], 1)
    );
    // The standard library cannot remove paths it cannot name.
    drop(at);
    let removed = std::process::Command::new("rm")
        .arg("-rf")
        .arg(dir.path().join(name))
        .status()
        .unwrap();
    assert!(removed.success());
}

#[test]
fn subtree_sample_has_paths_from_its_top() {
    let dir = tree(&[
        ("Cargo.toml", "top"),
        ("web/app/package.json", "{}"),
        ("web/app/1/2/3/4/x.js", "x"),
    ]);
    let sampling = sample(
        dir.path(),
        Some(&"web/app".parse().unwrap()),
        &SampleCaps::STANDARD,
    )
    .unwrap();
    assert_eq!(sampling.listing, ["1/2/3/4/x.js", "package.json"]);
    assert!(!sampling.is_truncated());
}

#[test]
fn empty_tree_is_sampled_missing_one_fails() {
    let dir = tree(&[]);
    assert_eq!(standard(dir.path()), RepoSample::default());
    assert!(sample(&dir.path().join("none"), None, &SampleCaps::STANDARD).is_err());
}

/// Paths of a small tree; equal first parts make shared directories.
fn layout() -> impl Strategy<Value = Vec<(String, Vec<u8>)>> {
    let name = prop::sample::select(vec!["a", "b", "src", "target", "x y", "ü"]);
    let file = prop::sample::select(vec![
        "Cargo.toml",
        "README.md",
        "m.rs",
        "n.js",
        "o.png",
        "p.c",
        "yarn.lock",
    ]);
    let path = (prop::collection::vec(name, 0..7), file).prop_map(|(mut parts, file)| {
        parts.push(file);
        parts.join("/")
    });
    let content = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..30),
        "[a-zé漢]{0,200}".prop_map(String::into_bytes),
    ];
    prop::collection::vec((path, content), 0..40)
}

mod properties {
    use crucible_testkit::expensive_cases;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(expensive_cases()))]

        #[test]
        fn sample_is_order_independent_and_capped(
            layout in layout(), seed in any::<u64>(), files in 1..20_usize, file_bytes in 1..100_usize,
            total_bytes in 1..400_usize, depth in 0..5_usize, names in 1..20_usize, entries in 1..80_usize,
        ) {
            let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let mut expected: std::collections::BTreeMap<String, Vec<u8>> = layout.into_iter().collect();
            // A path that is a directory of another is not a file.
            let all: Vec<String> = expected.keys().cloned().collect();
            expected.retain(|path, _| !all.iter().any(|other| other.starts_with(&format!("{path}/"))));
            let mut shuffled: Vec<_> = expected.iter().collect();
            for (path, content) in &shuffled {
                put(first.path(), path, content);
            }
            shuffled.sort_by_key(|(path, _)| crucible_model::Digest::compute(format!("{seed}{path}").as_bytes()).short());
            for (path, content) in &shuffled {
                put(second.path(), path, content);
            }
            let caps = SampleCaps { files, file_bytes, total_bytes, depth, names, entries, ..SampleCaps::STANDARD };
            let sampling = sample(first.path(), None, &caps).unwrap();
            prop_assert_eq!(&sampling, &sample(second.path(), None, &caps).unwrap());

            prop_assert!(sampling.files.len() + sampling.skipped_binaries as usize <= files);
            prop_assert!(sampling.bytes() <= total_bytes as u64);
            prop_assert!(sampling.files.iter().all(|file| file.content.len() <= file_bytes));
            prop_assert!(sampling.listing.iter().all(|path| path.matches('/').count() <= depth));
            // Of a top larger than the bound only the files are listed that say how to build; there may be more of them than it allows.
            let only_how_to_build = sampling.unseen.contains("")
                && sampling.listing.iter().all(|path| !path.contains('/') && FileKind::from_path(path).is_some());
            prop_assert!(sampling.listing.len() <= entries || only_how_to_build);
            prop_assert!(sampling.tree_summary.lines().filter(|line| !line.starts_with("... and ")).count() <= names);
            for file in &sampling.files {
                prop_assert_eq!(FileKind::from_path(&file.path), Some(file.kind));
                let is_cut = file.extent == SampleExtent::Beginning;
                prop_assert!(!is_cut || sampling.is_truncated(), "{} is cut in silence", file.path);
                let full_content = &expected[&file.path];
                prop_assert_eq!(file.total_bytes, full_content.len() as u64);
            }
            if !sampling.is_truncated() {
                let readable = expected.keys().filter(|path| {
                    FileKind::from_path(path).is_some() && !path.split('/').any(|part| part == "target")
                });
                let read = sampling.files.len() + sampling.skipped_binaries as usize;
                prop_assert_eq!(readable.count(), read);
            }
        }
    }
}
