//! Tests with archives built byte by byte: each hostile one is refused for the expected reason and touches
//! nothing outside.

#![expect(
    clippy::disallowed_methods,
    reason = "tests lay out files and run the real tar beside us"
)]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

/// One entry, field by field.
#[derive(Debug, Clone)]
struct Raw {
    name: Vec<u8>,
    kind: u8,
    link: Vec<u8>,
    mode: &'static [u8],
    content: Vec<u8>,
    /// The size field; the content's length by default.
    size: Option<&'static [u8]>,
    magic: &'static [u8],
    prefix: Vec<u8>,
}

fn entry(kind: u8, name: impl AsRef<[u8]>) -> Raw {
    Raw {
        name: name.as_ref().to_vec(),
        kind,
        link: Vec::new(),
        mode: b"0000664\0",
        content: Vec::new(),
        size: None,
        magic: b"ustar\x0000",
        prefix: Vec::new(),
    }
}

fn file(name: impl AsRef<[u8]>, content: impl AsRef<[u8]>) -> Raw {
    Raw {
        content: content.as_ref().to_vec(),
        ..entry(b'0', name)
    }
}

fn dir(name: impl AsRef<[u8]>) -> Raw {
    Raw {
        mode: b"0000775\0",
        ..entry(b'5', name)
    }
}

fn link(name: impl AsRef<[u8]>, target: impl AsRef<[u8]>) -> Raw {
    Raw {
        link: target.as_ref().to_vec(),
        ..entry(b'2', name)
    }
}

fn hard_link(name: impl AsRef<[u8]>, target: impl AsRef<[u8]>) -> Raw {
    Raw {
        kind: b'1',
        ..link(name, target)
    }
}

/// A PAX header with these records.
fn pax(kind: u8, records: &[(&str, &[u8])]) -> Raw {
    let mut content = Vec::new();
    for (key, value) in records {
        let rest = [b" ", key.as_bytes(), b"=", value, b"\n"].concat();
        let mut length = rest.len() + 1;
        while length.to_string().len() + rest.len() != length {
            length = length.to_string().len() + rest.len();
        }
        content.extend([length.to_string().as_bytes(), &rest].concat());
    }
    Raw {
        content,
        ..entry(kind, "pax")
    }
}

/// GNU's header for a long name or a long link.
fn gnu_long(kind: u8, name: impl AsRef<[u8]>) -> Raw {
    Raw {
        magic: b"ustar  \0",
        content: [name.as_ref(), b"\0"].concat(),
        ..entry(kind, "././@LongLink")
    }
}

impl Raw {
    fn bytes(&self) -> Vec<u8> {
        let mut block = [0; 512];
        let mut put = |at: usize, field: &[u8]| block[at..at + field.len()].copy_from_slice(field);
        put(0, &self.name);
        put(100, self.mode);
        put(108, b"0000000\x000000000\0");
        put(
            124,
            self.size
                .unwrap_or(format!("{:011o}\0", self.content.len()).as_bytes()),
        );
        put(136, b"00000000000\0");
        put(148, b"        ");
        put(156, &[self.kind]);
        put(157, &self.link);
        put(257, self.magic);
        put(345, &self.prefix);
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let mut bytes = block.to_vec();
        bytes.extend(&self.content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
        bytes
    }
}

fn tar(entries: &[Raw]) -> Vec<u8> {
    let mut bytes: Vec<u8> = entries.iter().flat_map(Raw::bytes).collect();
    bytes.extend([0; 1024]);
    bytes
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

/// A directory to unpack in, beside something that must not change.
struct Bench {
    temp_dir: TempDir,
}

impl Bench {
    fn new() -> Self {
        let temp_dir = tempfile::tempdir().unwrap();
        fs::create_dir(temp_dir.path().join("into")).unwrap();
        fs::write(temp_dir.path().join("beside"), "beside").unwrap();
        Self { temp_dir }
    }

    fn unpack_bytes(&self, bytes: &[u8], limits: &ArchiveLimits) -> Result<Unpacked, ArchiveError> {
        let archive = self.temp_dir.path().join("a.tar.gz");
        fs::write(&archive, bytes).unwrap();
        let before = self.outside();
        let unpacked = unpack(
            &archive,
            &self.temp_dir.path().join("into"),
            limits,
            &AtomicBool::new(false),
        );
        assert_eq!(self.outside(), before, "something outside was touched");
        unpacked
    }

    fn unpack(&self, entries: &[Raw]) -> Result<Unpacked, ArchiveError> {
        self.unpack_bytes(&gzip(&tar(entries)), &ArchiveLimits::DEFAULT)
    }

    /// Lists everything except the unpacked files: names, kinds, lengths, times.
    fn outside(&self) -> Vec<(PathBuf, u32, u64, i64, i64, u64)> {
        let mut all: Vec<_> = fs::read_dir(self.temp_dir.path())
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                let meta = path.symlink_metadata().unwrap();
                // The directory itself gets a new top folder, and with it a new instant.
                let is_into = path.ends_with("into");
                let instant = if is_into {
                    (0, 0)
                } else {
                    (meta.mtime(), meta.mtime_nsec())
                };
                let links = if is_into { 0 } else { meta.nlink() };
                (
                    path,
                    meta.mode(),
                    if is_into { 0 } else { meta.len() },
                    instant.0,
                    instant.1,
                    links,
                )
            })
            .collect();
        all.sort();
        all
    }
}

fn refused(entries: &[Raw]) -> Refusal {
    match Bench::new().unpack(entries) {
        Err(ArchiveError::Refused { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn source_archive_unpacks_exactly() {
    let bench = Bench::new();
    let sha = "c".repeat(40);
    let long = format!("o-r-ccccccc/{}/{}", "d".repeat(120), "é".repeat(60));
    let unpacked = bench
        .unpack(&[
            pax(b'g', &[("comment", sha.as_bytes())]),
            dir("o-r-ccccccc/"),
            file("o-r-ccccccc/README", "read me"),
            Raw {
                mode: b"0104755\0",
                ..file("o-r-ccccccc/run", "#!")
            },
            Raw {
                prefix: b"o-r-ccccccc/src".to_vec(),
                ..file("deep/in.rs", "x".repeat(200_000))
            },
            dir("o-r-ccccccc/src/"),
            pax(b'x', &[("path", long.as_bytes()), ("mtime", b"1.5")]),
            file("short", "long"),
            gnu_long(b'L', format!("o-r-ccccccc/{}", "g".repeat(200))),
            Raw {
                magic: b"ustar  \0",
                ..file("short", "gnu")
            },
            link("o-r-ccccccc/src/up", "../README"),
            link("o-r-ccccccc/dangling", "nowhere/at/all"),
            link("o-r-ccccccc/itself", "itself"),
            hard_link("o-r-ccccccc/again", "o-r-ccccccc/README"),
            file(b"o-r-ccccccc/back\\slash \n\xff", ""),
        ])
        .unwrap();
    assert_eq!(
        unpacked.commit.as_ref().map(Oid::as_str),
        Some(sha.as_str())
    );
    assert_eq!(
        (unpacked.top.as_str(), unpacked.special_bits),
        ("o-r-ccccccc", 1)
    );
    let at = |path: &str| unpacked.tree.join(path);
    assert_eq!(fs::read(at("src/deep/in.rs")).unwrap().len(), 200_000);
    assert_eq!(
        fs::read_to_string(at(long.strip_prefix("o-r-ccccccc/").unwrap())).unwrap(),
        "long"
    );
    assert_eq!(fs::read_to_string(at(&"g".repeat(200))).unwrap(), "gnu");
    assert_eq!(fs::read_to_string(at("src/up")).unwrap(), "read me");
    assert_eq!(fs::read_to_string(at("again")).unwrap(), "read me");
    let mode = |path: &str| at(path).metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode("run"), mode("README")), (0o755, 0o644));
    assert!(at("dangling").is_symlink() && !at("dangling").exists());
}

#[test]
fn invalid_entry_name_is_refused() {
    use Refusal::*;
    let top = || dir("t/");
    for (name, why) in [
        ("/etc/passwd", Absolute),
        ("//t/x", Absolute),
        ("t/../../beside", Parent),
        ("../beside", Parent),
        ("..", Parent),
        ("t/..", Parent),
        ("t//x", EmptyPart),
        ("t/./x", EmptyPart),
        ("./t/x", EmptyPart),
        ("", EmptyPart),
        ("other/x", OtherTop),
        ("tt", OtherTop),
        ("t/.git/config", GitDirectory),
        ("t/a/.GIT/hooks/post-checkout", GitDirectory),
        ("t/GIT~1/config", GitDirectory),
        ("t/x/", Contradiction),
    ] {
        assert_eq!(
            refused(&[top(), file(name, "x")]),
            why,
            "{name:?} as it stands"
        );
        if !name.is_empty() {
            let named = [
                top(),
                pax(b'x', &[("path", name.as_bytes())]),
                file("t/fine", "x"),
            ];
            assert_eq!(refused(&named), why, "{name:?} by PAX");
            let named = [top(), gnu_long(b'L', name), file("t/fine", "x")];
            assert_eq!(refused(&named), why, "{name:?} by GNU");
        }
    }
    assert_eq!(refused(&[file("x", "no folder")]), OtherTop);
    assert_eq!(refused(&[dir("../t/")]), Parent);
    assert_eq!(refused(&[dir("/")]), EmptyPart);
    assert_eq!(
        refused(&[top(), pax(b'x', &[("path", b"t/a\0b")]), file("t/x", "")]),
        Nul
    );
    assert_eq!(
        refused(&[top(), gnu_long(b'L', "t/a\0b"), file("t/x", "")]),
        Nul
    );
    let long = format!("t/{}", "n".repeat(256));
    assert_eq!(
        refused(&[top(), gnu_long(b'L', &long), file("t/x", "")]),
        TooLong
    );
    let deep = ["t"; 129].join("/");
    assert_eq!(
        refused(&[top(), gnu_long(b'L', &deep), file("t/x", "")]),
        TooDeep
    );
    let far = format!("t/{}", ["n"; 3000].join("/"));
    assert_eq!(
        refused(&[
            top(),
            pax(b'x', &[("path", far.as_bytes())]),
            file("t/x", "")
        ]),
        TooLong
    );
}

#[test]
fn escaping_link_is_refused() {
    use Refusal::*;
    let with = |entries: &[Raw]| {
        refused(&[&[dir("t/"), dir("t/a/"), file("t/a/f", "x")], entries].concat())
    };
    for target in [
        "/etc/passwd",
        "/",
        "..",
        "../..",
        "a/../../beside",
        "./../x",
        "nowhere/../../x",
        "../t/a",
    ] {
        assert_eq!(with(&[link("t/l", target)]), LeadsOut, "{target:?}");
        assert_eq!(
            with(&[
                pax(b'x', &[("linkpath", target.as_bytes())]),
                link("t/l", "a")
            ]),
            LeadsOut,
            "{target:?} by PAX"
        );
        assert_eq!(
            with(&[gnu_long(b'K', target), link("t/l", "a")]),
            LeadsOut,
            "{target:?} by GNU"
        );
    }
    assert_eq!(with(&[link("t/a/l", "../../x")]), LeadsOut);
    // Each looks harmless; together they climb.
    assert_eq!(
        with(&[link("t/here", "."), link("t/out", "here/../../beside")]),
        ThroughLink
    );
    assert_eq!(
        with(&[link("t/out", "here/../x"), link("t/here", "a")]),
        ThroughLink
    );
    assert_eq!(
        with(&[link("t/b", "a"), link("t/a/out", "../b/../../x")]),
        ThroughLink
    );
    assert_eq!(with(&[link("t/l", "")]), Contradiction);
    for target in ["/etc/passwd", "../beside", "other/f", "t/../x", ""] {
        assert_eq!(with(&[hard_link("t/h", target)]), LeadsOut, "{target:?}");
    }
    for target in ["t/a", "t/nowhere", "t/a/f/x"] {
        assert_eq!(with(&[hard_link("t/h", target)]), HardLink, "{target:?}");
    }
    assert_eq!(
        with(&[link("t/l", "a/f"), hard_link("t/h", "t/l")]),
        HardLink
    );
}

#[test]
fn write_through_link_and_duplicates_are_refused() {
    use Refusal::*;
    let twice = |entries: &[Raw]| {
        assert_eq!(
            refused(&[&[dir("t/")], entries].concat()),
            Duplicate,
            "{entries:?}"
        )
    };
    twice(&[file("t/x", "1"), file("t/x", "2")]);
    twice(&[dir("t/d/"), dir("t/d/")]);
    twice(&[dir("t/d"), dir("t/d/")]);
    twice(&[file("t/x", "1"), file("t/x/y", "2")]);
    twice(&[file("t/x/y", "1"), file("t/x", "2")]);
    twice(&[file("t/x", "1"), dir("t/x/")]);
    twice(&[dir("t/x/"), file("t/x", "1")]);
    twice(&[link("t/x", "y"), link("t/x", "z")]);
    twice(&[link("t/x", "y"), file("t/x", "2")]);
    twice(&[file("t/x", "1"), link("t/x", "y")]);
    twice(&[file("t/x", "1"), file("t/y", "2"), hard_link("t/x", "t/y")]);
    // The classic attack: first a link, then a file behind it.
    twice(&[link("t/x", "d"), file("t/x/f", "1")]);
    twice(&[
        dir("t/d/"),
        link("t/x", "d"),
        dir("t/x/"),
        file("t/x/f", "1"),
    ]);
    twice(&[
        file("t/a", "1"),
        pax(b'x', &[("path", b"t/a")]),
        file("t/b", "2"),
    ]);
    // Other case is another name here.
    assert_eq!(
        Bench::new()
            .unpack(&[dir("t/"), file("t/x", ""), file("t/X", "")])
            .unwrap()
            .top,
        "t"
    );
}

#[test]
fn only_files_directories_and_links_are_made() {
    for kind in [
        b'3', b'4', b'6', b'7', b'S', b'D', b'M', b'V', b'N', b's', b'Z',
    ] {
        assert_eq!(
            refused(&[dir("t/"), entry(kind, "t/x")]),
            Refusal::Kind,
            "{:?}",
            char::from(kind)
        );
    }
    let sparse = pax(
        b'x',
        &[("GNU.sparse.major", b"1"), ("GNU.sparse.name", b"t/y")],
    );
    assert_eq!(
        refused(&[dir("t/"), sparse, file("t/x", "1")]),
        Refusal::Kind
    );
    for with_content in [link("t/l", "x"), hard_link("t/l", "t/x"), dir("t/d/")] {
        let with_content = Raw {
            content: vec![b'x'; 10],
            ..with_content
        };
        assert_eq!(
            refused(&[dir("t/"), file("t/x", ""), with_content]),
            Refusal::Contradiction
        );
    }
}

#[test]
fn contradicting_headers_are_refused() {
    let after = |entries: &[Raw]| Bench::new().unpack(&[&[dir("t/")], entries].concat());
    let size = |size: &[u8]| pax(b'x', &[("size", size)]);
    // Another reader would take the content for an entry, or the next entry for content.
    let hidden = file("t/hidden", "").bytes();
    for claimed in [b"0".as_slice(), b"1024", b"99999999999"] {
        let smuggled = after(&[size(claimed), file("t/x", &hidden)]);
        assert!(matches!(
            smuggled,
            Err(ArchiveError::Refused {
                why: Refusal::Contradiction,
                ..
            })
        ));
    }
    assert!(after(&[size(b"2"), file("t/x", "ab")]).is_ok());
    let both = |other: &str| {
        [
            pax(b'x', &[("path", b"t/a")]),
            gnu_long(b'L', other),
            file("t/x", ""),
        ]
    };
    assert!(matches!(
        after(&both("t/b")),
        Err(ArchiveError::Refused { .. })
    ));
    assert!(after(&both("t/a")).is_ok());
    for damaged in [
        vec![pax(b'x', &[]), pax(b'x', &[]), file("t/x", "")],
        vec![
            gnu_long(b'L', "t/a"),
            gnu_long(b'L', "t/b"),
            file("t/x", ""),
        ],
        vec![pax(b'x', &[("path", b"t/a")])],
        vec![pax(b'g', &[("path", b"t/a")]), file("t/x", "")],
        vec![pax(b'g', &[("size", b"0")]), file("t/x", "ab")],
        vec![Raw {
            magic: b"\0\0\0\0\0\0\0\0",
            ..file("t/x", "")
        }],
        vec![Raw {
            mode: b"rw-r--r-",
            ..file("t/x", "")
        }],
        vec![Raw {
            size: Some(b"-0000000001\0"),
            ..file("t/x", "")
        }],
    ] {
        assert!(
            matches!(after(&damaged), Err(ArchiveError::Damaged { .. })),
            "{damaged:?}"
        );
    }
}

#[test]
fn truncated_archive_is_refused() {
    let bench = Bench::new();
    let tar_bytes = tar(&[dir("t/"), file("t/x", "x".repeat(3000))]);
    let full_content = gzip(&tar_bytes);
    let broken = |bytes: &[u8]| {
        let _gone = fs::remove_dir_all(bench.temp_dir.path().join("into/t"));
        bench
            .unpack_bytes(bytes, &ArchiveLimits::DEFAULT)
            .unwrap_err()
    };
    for cut in [
        0,
        1,
        9,
        20,
        full_content.len() / 2,
        full_content.len() - 9,
        full_content.len() - 8,
        full_content.len() - 4,
        full_content.len() - 1,
    ] {
        let error = broken(&full_content[..cut]);
        assert!(
            matches!(
                error,
                ArchiveError::Truncated { .. } | ArchiveError::Damaged { .. }
            ),
            "{cut}: {error}"
        );
    }
    for flipped in [
        full_content.len() - 8,
        full_content.len() - 4,
        full_content.len() - 1,
    ] {
        let mut wrong = full_content.clone();
        wrong[flipped] ^= 1;
        assert!(
            matches!(broken(&wrong), ArchiveError::Damaged { .. }),
            "byte {flipped}"
        );
    }
    // The tar itself is cut, and packed without a fault.
    for cut in [
        100,
        512,
        1000,
        1024,
        1536,
        4096,
        tar_bytes.len() - 1024,
        tar_bytes.len() - 512,
        tar_bytes.len() - 1,
    ] {
        let error = broken(&gzip(&tar_bytes[..cut]));
        assert!(
            matches!(error, ArchiveError::Truncated { .. }),
            "{cut}: {error}"
        );
    }
    assert!(matches!(broken(&gzip(b"")), ArchiveError::Truncated { .. }));
    assert!(matches!(
        broken(&gzip(&[0; 1024])),
        ArchiveError::Damaged { .. }
    ));
    assert!(matches!(
        broken(b"{\"message\": \"Not Found\"}"),
        ArchiveError::Damaged { .. }
    ));
    assert!(matches!(
        broken(&[full_content.clone(), b"x".to_vec()].concat()),
        ArchiveError::Trailing
    ));
    assert!(matches!(
        broken(&[full_content.clone(), full_content.clone()].concat()),
        ArchiveError::Trailing
    ));
    let hidden = [tar_bytes.clone(), file("t/hidden", "").bytes()].concat();
    assert!(matches!(broken(&gzip(&hidden)), ArchiveError::Trailing));
    let mut one_zero_block = tar_bytes[..tar_bytes.len() - 512].to_vec();
    one_zero_block.extend(file("t/hidden", "").bytes());
    assert!(matches!(
        broken(&gzip(&one_zero_block)),
        ArchiveError::Trailing
    ));
    let mut sum = tar_bytes.clone();
    sum[0] = b'u';
    assert!(matches!(broken(&gzip(&sum)), ArchiveError::Damaged { .. }));
    // tar fills its records with zeros.
    let padded = [tar_bytes, vec![0; 10_240]].concat();
    let _gone = fs::remove_dir_all(bench.temp_dir.path().join("into/t"));
    assert!(
        bench
            .unpack_bytes(&gzip(&padded), &ArchiveLimits::DEFAULT)
            .is_ok()
    );
}

#[test]
fn every_limit_is_an_error_that_names_it() {
    let small = ArchiveLimits {
        compressed: ByteLimit(100_000),
        unpacked: ByteLimit(20_000),
        entries: 5,
        path: 60,
        depth: 3,
        ratio: 10,
        time: ArchiveLimits::DEFAULT.time,
    };
    let over = |entries: &[Raw], limits: &ArchiveLimits| match Bench::new()
        .unpack_bytes(&gzip(&tar(entries)), limits)
    {
        Err(ArchiveError::TooLarge { what, .. }) => what,
        other => panic!("{other:?}"),
    };
    let with = |entries: &[Raw]| over(&[&[dir("t/")], entries].concat(), &small);
    assert_eq!(
        with(&[file("t/x", [0; 20_000])]),
        "bytes when it is unpacked"
    );
    let files: Vec<Raw> = (0..5).map(|n| file(format!("t/{n}"), "")).collect();
    assert_eq!(with(&files), "entries");
    // A path can make directories without an entry for them.
    assert_eq!(
        with(&[file("t/a/f", ""), file("t/b/f", ""), file("t/c/f", "")]),
        "entries"
    );
    let description = pax(b'x', &[("comment", &[b'x'; 70_000])]);
    assert_eq!(
        over(&[dir("t/"), description], &ArchiveLimits::DEFAULT),
        "bytes in the description of one entry"
    );
    assert_eq!(
        with(&[gnu_long(b'L', "n".repeat(100)), file("t/x", "")]),
        "bytes in the description of one entry"
    );
    let tight = ArchiveLimits {
        compressed: ByteLimit(50),
        ..small
    };
    assert_eq!(
        over(&[dir("t/"), file("t/x", "y")], &tight),
        "bytes in the archive"
    );
    // 80 MiB of zeros in 80 kB.
    let bomb = file("t/bomb", vec![0; 80 << 20]);
    assert_eq!(
        over(&[dir("t/"), bomb], &ArchiveLimits::DEFAULT),
        "times its own size when it is unpacked"
    );
    let links: Vec<Raw> = (0..1100)
        .flat_map(|n| {
            [
                pax(b'x', &[("linkpath", &[b'x'; 4000])]),
                link(format!("t/{n}"), "x"),
            ]
        })
        .collect();
    assert_eq!(
        over(
            &[&[dir("t/")], links.as_slice()].concat(),
            &ArchiveLimits::DEFAULT
        ),
        "bytes of links"
    );
}

#[test]
fn unpacking_stops_on_request() {
    let bench = Bench::new();
    let archive = bench.temp_dir.path().join("a.tar.gz");
    fs::write(&archive, gzip(&tar(&[dir("t/"), file("t/x", "x")]))).unwrap();
    let into = bench.temp_dir.path().join("into");
    let stopped = unpack(
        &archive,
        &into,
        &ArchiveLimits::DEFAULT,
        &AtomicBool::new(true),
    )
    .unwrap_err();
    assert!(matches!(stopped, ArchiveError::Stopped), "{stopped}");
}

#[test]
fn a_refusal_names_the_entry_on_one_line() {
    let error = Bench::new()
        .unpack(&[dir("t/"), file("t/\n\x1b[2J/../x", "")])
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        r#"the archive is refused: its entry "t/\n\u{1b}[2J/../x" has `..` in its name"#
    );
    let long = format!("t/{}/..", ["y"; 1000].join("/"));
    let error = Bench::new()
        .unpack(&[dir("t/"), gnu_long(b'L', long), file("t/x", "")])
        .unwrap_err()
        .to_string();
    assert!(error.len() < 400 && error.contains('…'), "{error}");
}

/// Lists everything below a directory: kinds, modes, contents, targets.
fn listing(top: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut open = vec![top.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let is_executable = meta.is_file() && meta.mode() & 0o100 != 0;
            let content = if meta.is_symlink() {
                fs::read_link(&path)
                    .unwrap()
                    .as_os_str()
                    .as_bytes()
                    .to_vec()
            } else if meta.is_dir() {
                open.push(path.clone());
                Vec::new()
            } else {
                fs::read(&path).unwrap()
            };
            let kind = (meta.mode() & 0o170_000) | u32::from(is_executable);
            found.insert(path.strip_prefix(top).unwrap().to_owned(), (kind, content));
        }
    }
    found
}

/// Packs this crate's own sources and unusual names in each of tar's formats; the result equals tar's.
#[test]
fn real_archives_unpack_like_tar() {
    let temp_dir = tempfile::tempdir().unwrap();
    let tree = temp_dir.path().join("source-1.0");
    let run = |program: &str, args: &[&std::ffi::OsStr]| {
        let output = Command::new(program)
            .args(args)
            .current_dir(temp_dir.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{program} {args:?}: {output:?}");
    };
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    run("cp", &["-r".as_ref(), own.as_os_str(), tree.as_os_str()]);
    let deep = tree.join("d".repeat(90)).join("e".repeat(90));
    fs::create_dir_all(&deep).unwrap();
    fs::create_dir(tree.join("empty")).unwrap();
    fs::write(deep.join("f".repeat(90)), "far").unwrap();
    fs::write(tree.join("run me"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(tree.join("run me"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::hard_link(tree.join("run me"), tree.join("again")).unwrap();
    std::os::unix::fs::symlink("../Cargo.toml", tree.join("src/up")).unwrap();
    for (format, pack) in [
        ("gnu", "--format=gnu"),
        ("pax", "--format=pax"),
        ("ustar", "--format=ustar"),
        ("old", "--format=gnu"),
    ] {
        if format == "ustar" {
            // No room for that long a name there.
            fs::remove_dir_all(tree.join("d".repeat(90))).unwrap();
        }
        let archive = temp_dir.path().join(format!("{format}.tar.gz"));
        run(
            "tar",
            &[
                "-czf".as_ref(),
                archive.as_os_str(),
                pack.as_ref(),
                "source-1.0".as_ref(),
            ],
        );
        let [ours, theirs] =
            ["ours", "theirs"].map(|name| temp_dir.path().join(format!("{format}-{name}")));
        fs::create_dir(&ours).unwrap();
        fs::create_dir(&theirs).unwrap();
        run(
            "tar",
            &[
                "-xzf".as_ref(),
                archive.as_os_str(),
                "-C".as_ref(),
                theirs.as_os_str(),
            ],
        );
        let unpacked = unpack(
            &archive,
            &ours,
            &ArchiveLimits::DEFAULT,
            &AtomicBool::new(false),
        )
        .unwrap();
        assert_eq!(unpacked.top, "source-1.0");
        let (ours, theirs) = (listing(&ours), listing(&theirs));
        assert!(
            ours.len() > 50 && ours == theirs,
            "{format}: {:?}",
            ours.keys().collect::<Vec<_>>()
        );
    }
}

fn any_entry() -> impl Strategy<Value = Raw> {
    let part = prop::sample::select(vec![
        "a", "b", "l", "m", "..", ".", "", "t", ".git", "beside",
    ]);
    let name = prop::collection::vec(part.clone(), 1..4).prop_map(|parts| parts.join("/"));
    let name = prop_oneof![3 => name.clone().prop_map(|name| format!("t/{name}")), 1 => name];
    let target = prop::collection::vec(part, 1..6).prop_map(|parts| parts.join("/"));
    let kind = prop::sample::select(vec![
        b'0', b'0', b'5', b'2', b'2', b'2', b'1', b'x', b'L', b'K',
    ]);
    (kind, name, target).prop_map(|(kind, name, target)| match kind {
        b'x' => pax(
            b'x',
            &[("path", name.as_bytes()), ("linkpath", target.as_bytes())],
        ),
        b'L' | b'K' => gnu_long(kind, target),
        b'0' => file(name, "content"),
        b'5' => dir(name),
        kind => Raw {
            kind,
            ..link(name, target)
        },
    })
}

/// Entries that are likely to be accepted: `..` only in targets.
fn tame_entry() -> impl Strategy<Value = Raw> {
    let part = prop::sample::select(vec!["a", "b", "c"]);
    let name = prop::collection::vec(part, 1..4).prop_map(|parts| format!("t/{}", parts.join("/")));
    let target = prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "..", "."]), 1..6);
    (prop::sample::select(vec![b'0', b'2', b'2']), name, target).prop_map(|(kind, name, target)| {
        match kind {
            b'0' => file(name, "content"),
            kind => Raw {
                kind,
                ..link(name, target.join("/"))
            },
        }
    })
}

mod properties {
    use super::*;

    proptest! {
        #[test]
        fn hostile_archive_touches_nothing_outside(
            entries in prop_oneof![
                prop::collection::vec(any_entry(), 1..8),
                prop::collection::vec(tame_entry(), 1..8),
            ]
        ) {
            let bench = Bench::new();
            let result = bench.unpack(&[&[dir("t/")], entries.as_slice()].concat());
            let into = fs::canonicalize(bench.temp_dir.path().join("into")).unwrap();
            if let Ok(unpacked) = result {
                let top = into.join("t");
                prop_assert_eq!(fs::canonicalize(&unpacked.tree).unwrap(), top.clone());
                for path in listing(&into).keys() {
                    // Where a link leads, if anywhere, and where any path through links leads.
                    if let Ok(real) = fs::canonicalize(into.join(path)) {
                        prop_assert!(real.starts_with(&top), "{:?} leads to {:?}", path, real);
                    }
                }
            }
        }
    }
}
