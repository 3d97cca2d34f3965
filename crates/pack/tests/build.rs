//! What a pack holds, checked against a repository in memory (rows T02 to T05 of
//! `docs/conformance.md`).

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test that cannot go on ends the test"
)]

mod support;

use std::collections::BTreeSet;

use crucible_pack::{ContextPack, Mandatory, OmittedReason, PackError, build};
use proptest::prelude::*;
use support::{Fake, Node, full, lines, request};

const CONTRACT: [(&str, &str); 6] = [
    ("AGENTS.md", "agents"),
    ("ai_context/00_AI_CONTRACT.md", "contract"),
    ("ai_context/CTCP_FAST_RULES.md", "rules"),
    ("docs/00_CORE.md", "core"),
    ("src/a.rs", "fn a() {}\r\n"),
    ("src/b.rs", "one\ntwo\nthree\nfour"),
];

fn none() -> Mandatory {
    Mandatory::default()
}

fn pack(request: &crucible_pack::FileRequest, source: &Fake) -> ContextPack {
    build(request, &none(), "slug", source).unwrap()
}

fn paths(pack: &ContextPack) -> Vec<&str> {
    pack.files.iter().map(|file| file.path.as_str()).collect()
}

fn reasons(pack: &ContextPack) -> Vec<(&str, OmittedReason)> {
    pack.omitted
        .iter()
        .map(|row| (row.path.as_str(), row.reason))
        .collect()
}

#[test]
fn mandatory_documents_come_first_and_once() {
    let source = Fake::from_files(&CONTRACT);
    let contract = Mandatory::contract::<&str>(&[]).unwrap();
    let expected = request(vec![full("src/a.rs"), full("AGENTS.md")], 10, 1000);
    let pack = build(&expected, &contract, "slug", &source).unwrap();
    assert_eq!(
        paths(&pack),
        [
            "AGENTS.md",
            "ai_context/00_AI_CONTRACT.md",
            "ai_context/CTCP_FAST_RULES.md",
            "docs/00_CORE.md",
            "src/a.rs"
        ]
    );
    assert_eq!(pack.files[0].why, "mandatory_contract");
    assert_eq!(pack.files[4].why, "requested:why not");
    assert_eq!(pack.files[4].content, "fn a() {}\r\n");
    assert!(pack.omitted.is_empty());
}

#[test]
fn oversized_mandatory_documents_fail_unread() {
    let source = Fake::from_files(&CONTRACT);
    let contract = Mandatory::contract::<&str>(&[]).unwrap();
    for (files, bytes) in [(3, 1000), (10, 22), (0, 0)] {
        let error = build(&request(vec![], files, bytes), &contract, "slug", &source).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("increase budget") && text.contains("max_files 4"),
            "{text}"
        );
        assert!(
            text.contains("23") && text.contains(&format!("allows {files} and {bytes}")),
            "{text}"
        );
    }
    assert_eq!(source.reads.get(), 0);
    assert!(build(&request(vec![], 4, 23), &contract, "slug", &source).is_ok());
}

#[test]
fn replacements_can_make_a_mandatory_document_too_large() {
    let source = Fake::default().with("AGENTS.md", Node::File(vec![0xff; 10]));
    let mandatory = Mandatory {
        required: vec!["AGENTS.md".parse().unwrap()],
        optional: vec![],
    };
    let error = build(&request(vec![], 1, 29), &mandatory, "slug", &source).unwrap_err();
    assert!(
        matches!(
            error,
            PackError::BudgetTooSmall {
                bytes_needed: 30,
                ..
            }
        ),
        "{error}"
    );
    assert!(build(&request(vec![], 1, 30), &mandatory, "slug", &source).is_ok());
}

#[test]
fn unusable_required_document_is_an_error() {
    let missing = Fake::from_files(&CONTRACT[1..]);
    let contract = Mandatory::contract::<&str>(&[]).unwrap();
    let expected = request(vec![], 10, 1000);
    let error = build(&expected, &contract, "slug", &missing).unwrap_err();
    assert!(
        matches!(error, PackError::MandatoryMissing { .. }),
        "{error}"
    );
    for node in [
        Node::Outward,
        Node::File(b"SECRET-KEY".to_vec()),
        Node::Directory,
    ] {
        let source = Fake::from_files(&CONTRACT).with("AGENTS.md", node);
        let error = build(&expected, &contract, "slug", &source).unwrap_err();
        assert!(
            matches!(error, PackError::MandatoryRefused { .. }),
            "{error}"
        );
    }
    let source = Fake::from_files(&CONTRACT).with("AGENTS.md", Node::Unreadable);
    assert!(matches!(
        build(&expected, &contract, "slug", &source),
        Err(PackError::MandatoryUnreadable(_))
    ));
}

#[test]
fn contract_documents_are_optional_elsewhere() {
    let source = Fake::from_files(&[("PATCH_README.md", "p")]).with("AGENTS.md", Node::Outward);
    let mandatory = Mandatory::where_present(&["src/x.rs"]).unwrap();
    assert!(build(&request(vec![], 9, 99), &mandatory, "slug", &source).is_err());
    let mandatory = Mandatory::where_present::<&str>(&[]).unwrap();
    let pack = build(
        &request(vec![full("AGENTS.md")], 9, 99),
        &mandatory,
        "slug",
        &source,
    )
    .unwrap();
    assert_eq!(paths(&pack), ["PATCH_README.md"]);
    assert_eq!(reasons(&pack), [("AGENTS.md", OmittedReason::Denied)]);
    assert!(Mandatory::where_present(&["../x"]).is_err());
}

#[test]
fn every_omitted_path_has_a_row() {
    let source = Fake::from_files(&[("sub/build/a", "x"), ("build", "script"), ("a", "x")])
        .with("out", Node::Outward)
        .with("dir", Node::Directory)
        .with("locked", Node::Unreadable)
        .with(
            "to-dist",
            Node::Link {
                to: "dist/a",
                content: b"x".to_vec(),
            },
        )
        .with(
            "to-env",
            Node::Link {
                to: "conf/.env.local",
                content: b"x".to_vec(),
            },
        )
        .with(
            "to-a",
            Node::Link {
                to: "a",
                content: b"x".to_vec(),
            },
        );
    let needs = [
        "sub/build/a",
        "build",
        ".git/config",
        "a/../../etc/passwd",
        "/etc/passwd",
        "C:/x",
        "",
        "nul\0byte",
        "out",
        "dir",
        "locked",
        "to-dist",
        "to-env",
        "to-a",
        "gone",
        ".env",
    ];
    let pack = pack(&request(needs.map(full).to_vec(), 99, 999), &source);
    assert_eq!(paths(&pack), ["build", "to-a"]);
    let denied = OmittedReason::Denied;
    assert_eq!(
        reasons(&pack),
        [
            ("sub/build/a", denied),
            (".git/config", denied),
            ("a/../../etc/passwd", denied),
            ("/etc/passwd", denied),
            ("C:/x", denied),
            ("", denied),
            ("nul\\0byte", denied),
            ("out", denied),
            ("dir", OmittedReason::InvalidRequest),
            ("locked", denied),
            ("to-dist", denied),
            ("to-env", denied),
            ("gone", OmittedReason::NotFound),
            (".env", denied),
        ]
    );
    assert!(
        pack.summary.contains("\".env\" holds a secret (fake-rule)"),
        "{}",
        pack.summary
    );
    assert!(
        pack.summary
            .contains("14 omitted: 12 denied, 1 not_found, 1 invalid_request"),
        "{}",
        pack.summary
    );
}

#[test]
fn secret_across_a_cut_is_omitted() {
    let source = Fake::from_files(&[
        ("a", "0123456789SECRET-KEY"),
        ("b", "0123456789SECRET-KEY\nx\n"),
    ]);
    for budget in [5, 10, 14, 100] {
        let pack = pack(
            &request(vec![full("a"), lines("b", &[[2, 2]])], 9, budget),
            &source,
        );
        assert_eq!(
            reasons(&pack),
            [("a", OmittedReason::Denied), ("b", OmittedReason::Denied)],
            "{budget}"
        );
    }
    assert!(
        !String::from_utf8(
            pack(&request(vec![full("a")], 9, 100), &source)
                .to_bytes()
                .unwrap()
        )
        .unwrap()
        .contains("SECRET-KEY")
    );
}

#[test]
fn long_secret_across_cut_is_recognised() {
    let key = format!("BEGIN-KEY{}END-KEY\n", "x".repeat(1000));
    let source = Fake::from_files(&[("a", &key)]);
    for budget in [1, 9, 500] {
        let pack = pack(&request(vec![full("a")], 9, budget), &source);
        assert_eq!(reasons(&pack), [("a", OmittedReason::Denied)], "{budget}");
    }
    // The wanted line ends where the first read of a file does.
    let before = "x\n".repeat((64 * 1024 - 10) / 2);
    let key = format!("{before}BEGIN-KEY\n{}END-KEY\n", "y".repeat(900));
    let source = Fake::from_files(&[("b", &key)]);
    let last = before.lines().count() as u64 + 1;
    let pack = pack(&request(vec![lines("b", &[[last, last]])], 9, 100), &source);
    assert_eq!(reasons(&pack), [("b", OmittedReason::Denied)]);
}

#[test]
fn a_file_secret_by_name_is_never_opened() {
    let source = Fake::from_files(&[(".env", "x")]);
    pack(
        &request(vec![full(".env"), lines(".env", &[[1, 1]])], 9, 100),
        &source,
    );
    assert_eq!(source.reads.get(), 0);
}

#[test]
fn huge_file_read_is_bounded_by_budget() {
    let source = Fake::default()
        .with("huge", Node::Huge(300_000_000))
        .with("more", Node::Huge(300_000_000));
    let pack = pack(
        &request(vec![full("huge"), full("more")], 9, 1_000),
        &source,
    );
    assert_eq!(pack.files[0].content.len(), 1_000);
    assert!(pack.files[0].truncated);
    assert_eq!(reasons(&pack), [("more", OmittedReason::BudgetExceeded)]);
    assert!(
        source.bytes_read.get() <= 1_001 + 2 * 1024,
        "{}",
        source.bytes_read.get()
    );
    assert!(
        source.bytes_asked.get() <= 1_001 + 2 * 1024,
        "{}",
        source.bytes_asked.get()
    );
}

#[test]
fn unlimited_budget_is_capped_at_pack_limit() {
    let source = Fake::default().with("huge", Node::Huge(300_000_000));
    let pack = pack(
        &request(vec![full("huge"), full("gone")], u64::MAX, u64::MAX),
        &source,
    );
    assert_eq!(pack.files[0].content.len(), 64 * 1024 * 1024);
    assert!(pack.files[0].truncated && source.bytes_asked.get() < 65 * 1024 * 1024);
    assert!(
        pack.summary
            .contains("No pack holds more than 67108864 bytes"),
        "{}",
        pack.summary
    );
}

#[test]
fn line_search_over_huge_files_is_bounded() {
    let mut source = Fake::default();
    let names: Vec<String> = (0..400).map(|number| format!("huge{number:03}")).collect();
    for name in &names {
        source = source.with(name, Node::Huge(1_000_000));
    }
    let needs = names.iter().map(|name| lines(name, &[[5, 6]])).collect();
    let pack = pack(&request(needs, 999, 1_000_000), &source);
    // A file ends before its fifth line: the whole of it is the last line there is, while it is looked into.
    assert_eq!(pack.files.len() + pack.omitted.len(), 400);
    assert!(
        source.bytes_read.get() < (256 + 400) * 1024 * 1024,
        "{}",
        source.bytes_read.get()
    );
    let too_large = pack
        .omitted
        .iter()
        .filter(|row| row.reason == OmittedReason::TooLarge)
        .count();
    assert!(too_large > 0, "{}", pack.summary);
}

#[test]
fn every_target_in_link_chain_is_checked() {
    let source = Fake::from_files(&[("a", "a")])
        .with(
            "over-build",
            Node::Chain {
                through: "sub/build/x",
                to: "a",
            },
        )
        .with(
            "over-secret",
            Node::Chain {
                through: "conf/.env",
                to: "a",
            },
        )
        .with(
            "to-build",
            Node::Chain {
                through: "b",
                to: "build/x",
            },
        )
        .with(
            "fine",
            Node::Chain {
                through: "b",
                to: "a",
            },
        );
    let needs = ["over-build", "over-secret", "to-build", "fine"]
        .map(full)
        .to_vec();
    let pack = pack(&request(needs, 9, 99), &source);
    assert_eq!(paths(&pack), ["fine"]);
    assert!(
        pack.omitted
            .iter()
            .all(|row| row.reason == OmittedReason::Denied)
            && pack.omitted.len() == 3
    );
    assert!(
        pack.summary
            .contains("is a link to \"sub/build/x\", which lies below build/"),
        "{}",
        pack.summary
    );
}

#[test]
fn denied_places_apply_at_any_depth_and_case() {
    let places = [
        ".git",
        "runs",
        "build",
        "dist",
        "node_modules",
        "__pycache__",
    ];
    let mut source = Fake::from_files(&[("src/builder.rs", "x")]);
    let mut expected = vec!["src/builder.rs".to_owned()];
    for place in places {
        for path in [
            format!("{place}/x"),
            format!("a/{place}/x"),
            format!("a/b/c/{place}/d/e/x"),
        ] {
            for path in [path.clone(), path.to_uppercase()] {
                source = source.with(&path, Node::File(b"x".to_vec()));
                expected.push(path);
            }
        }
    }
    let pack = pack(
        &request(expected.iter().map(|path| full(path)).collect(), 99, 999),
        &source,
    );
    assert_eq!(paths(&pack), ["src/builder.rs"]);
    assert_eq!(pack.omitted.len(), places.len() * 6);
    assert!(
        pack.omitted
            .iter()
            .all(|row| row.reason == OmittedReason::Denied)
    );
}

#[test]
fn encoding_replacements_are_reported() {
    let utf16: Vec<u8> = [0xff, 0xfe]
        .into_iter()
        .chain("hi\r\n".encode_utf16().flat_map(u16::to_le_bytes))
        .collect();
    let cases: [(&[u8], &str, &str); 7] = [
        (b"a\r\nb\r\n", "a\r\nb\r\n", ""),
        (b"a\nb", "a\nb", ""),
        (b"a\rb\r", "a\rb\r", ""),
        (b"\xef\xbb\xbfa\n", "\u{feff}a\n", ""),
        (b"caf\xe9\n", "caf\u{fffd}\n", "; replaced 1 invalid byte"),
        (b"a\0b\0", "a\0b\0", ""),
        (
            &utf16,
            "\u{fffd}\u{fffd}h\0i\0\r\0\n\0",
            "; replaced 2 invalid bytes",
        ),
    ];
    for (bytes, content, said) in cases {
        let source = Fake::default().with("a", Node::File(bytes.to_vec()));
        let pack = pack(&request(vec![full("a")], 9, 100), &source);
        assert_eq!(pack.files[0].content, content);
        assert_eq!(pack.files[0].why, format!("requested:why not{said}"));
        let read_back = ContextPack::parse(&pack.to_bytes().unwrap()).unwrap();
        assert_eq!(read_back, pack);
    }
}

#[test]
fn odd_ranges_have_one_meaning() {
    let source = Fake::from_files(&[("a", "1\n2\n3\n4\n5\n6\n")]);
    let cases: [(&[[u64; 2]], &str); 5] = [
        (&[[2, 4], [3, 5]], "2\n3\n4\n5\n"),
        (&[[5, 5], [1, 2], [5, 5]], "1\n2\n5\n"),
        (&[[1, 6], [2, 3]], "1\n2\n3\n4\n5\n6\n"),
        (&[[6, 99], [40, 50]], "6\n"),
        (&[[0, 1]], "1\n"),
    ];
    for (ranges, content) in cases {
        let pack = pack(&request(vec![lines("a", ranges)], 9, 100), &source);
        assert_eq!(pack.files[0].content, content, "{ranges:?}");
    }
    let reversed = pack(
        &request(vec![lines("a", &[[1, 2], [4, 3]])], 9, 100),
        &source,
    );
    assert_eq!(reasons(&reversed), [("a", OmittedReason::InvalidRequest)]);
    assert!(
        reversed.summary.contains("reversed lines"),
        "{}",
        reversed.summary
    );
}

#[test]
fn line_search_depth_is_bounded() {
    let source = Fake::default().with("huge", Node::Huge(300_000_000));
    let deep = pack(&request(vec![lines("huge", &[[5, 6]])], 9, 1_000), &source);
    assert_eq!(reasons(&deep), [("huge", OmittedReason::TooLarge)]);
    assert!(
        source.bytes_read.get() <= 32 * 1024 * 1024,
        "{}",
        source.bytes_read.get()
    );
}

#[test]
fn lines_over_the_budget_are_noticed_early() {
    let source = Fake::from_files(&[("a", &"line\n".repeat(1_000_000))]);
    let pack = pack(
        &request(vec![lines("a", &[[1, 1_000_000]])], 9, 1_000),
        &source,
    );
    assert_eq!(reasons(&pack), [("a", OmittedReason::BudgetExceeded)]);
    assert!(source.bytes_read.get() <= 66 * 1024);
}

#[test]
fn snippets_are_clamped_and_merged() {
    let source = Fake::from_files(&CONTRACT);
    let needs = vec![lines("src/b.rs", &[[3, 99], [1, 1]])];
    let pack_one = pack(&request(needs, 9, 100), &source);
    assert_eq!(pack_one.files[0].content, "one\nthree\nfour");
    assert_eq!(pack_one.files[0].why, "requested:why not; lines 1-1, 3-4");
    let bad = [lines("src/b.rs", &[]), lines("src/b.rs", &[[3, 2]])];
    for need in bad {
        let pack = pack(&request(vec![need], 9, 100), &source);
        assert_eq!(
            reasons(&pack),
            [("src/b.rs", OmittedReason::InvalidRequest)]
        );
    }
    let pack_two = pack(&request(vec![lines("src/b.rs", &[[1, 2]])], 9, 7), &source);
    assert_eq!(
        reasons(&pack_two),
        [("src/b.rs", OmittedReason::BudgetExceeded)]
    );
}

#[test]
fn needs_for_one_path_are_one_need() {
    let source = Fake::from_files(&CONTRACT);
    let needs = vec![
        lines("src/b.rs", &[[4, 4]]),
        full("src/a.rs"),
        lines("src/b.rs", &[[1, 1]]),
    ];
    let two_snippets = pack(&request(needs, 9, 100), &source);
    assert_eq!(paths(&two_snippets), ["src/b.rs", "src/a.rs"]);
    assert_eq!(two_snippets.files[0].content, "one\nfour");
    let needs = vec![lines("src/b.rs", &[[4, 4]]), full("src/b.rs")];
    assert_eq!(
        pack(&request(needs, 9, 100), &source).files[0].content,
        "one\ntwo\nthree\nfour"
    );
}

#[test]
fn invalid_need_has_row_and_spares_others() {
    let source = Fake::from_files(&CONTRACT);
    for (bad, good) in [
        (lines("src/b.rs", &[[5, 1]]), lines("src/b.rs", &[[1, 2]])),
        (lines("src/b.rs", &[]), lines("src/b.rs", &[[1, 2]])),
        (lines("src/b.rs", &[[5, 1]]), full("src/b.rs")),
    ] {
        for needs in [
            vec![bad.clone(), good.clone()],
            vec![good.clone(), bad.clone()],
        ] {
            let pack = pack(&request(needs.clone(), 9, 100), &source);
            assert_eq!(paths(&pack), ["src/b.rs"], "{needs:?}");
            assert!(
                pack.files[0].content.starts_with("one\ntwo\n"),
                "{}",
                pack.files[0].content
            );
            assert_eq!(
                reasons(&pack),
                [("src/b.rs", OmittedReason::InvalidRequest)],
                "{needs:?}"
            );
        }
    }
    let twice = vec![lines("src/b.rs", &[[5, 1]]), lines("src/b.rs", &[])];
    let pack = pack(&request(twice, 9, 100), &source);
    assert_eq!(
        (paths(&pack).len(), reasons(&pack)),
        (0, vec![("src/b.rs", OmittedReason::InvalidRequest)])
    );
}

#[test]
fn broken_and_cyclic_links_are_reported() {
    let source = Fake::default()
        .with("circle", Node::InCircles)
        .with("gone", Node::ToNothing);
    let pack = pack(
        &request(vec![full("circle"), full("gone")], 9, 100),
        &source,
    );
    assert_eq!(
        reasons(&pack),
        [
            ("circle", OmittedReason::Denied),
            ("gone", OmittedReason::Denied)
        ]
    );
    for part in ["in circles", "a link to nothing"] {
        assert!(pack.summary.contains(part), "{part} in {}", pack.summary);
    }
    assert!(
        !pack.summary.contains("out of the repository"),
        "{}",
        pack.summary
    );
}

#[test]
fn budget_is_used_in_order() {
    let source = Fake::from_files(&[
        ("a", "12345"),
        ("b", "x"),
        ("c", "one\ntwo\n"),
        ("empty", ""),
        ("z", "z"),
    ]);
    let needs = vec![
        full("a"),
        lines("c", &[[1, 2]]),
        full("b"),
        full("empty"),
        full("z"),
    ];
    let over = OmittedReason::BudgetExceeded;
    let pack_one = pack(&request(needs.clone(), 9, 6), &source);
    assert_eq!(paths(&pack_one), ["a", "b", "empty"]);
    assert_eq!(reasons(&pack_one), [("c", over), ("z", over)]);
    let pack_two = pack(&request(needs, 1, 600), &source);
    assert_eq!(paths(&pack_two), ["a"]);
    assert_eq!(pack_two.omitted.len(), 4);
}

#[test]
fn a_cut_keeps_characters_whole_and_is_marked() {
    let source = Fake::from_files(&[("a", "é€")]);
    let cut = pack(&request(vec![full("a")], 9, 4), &source);
    assert_eq!(
        (cut.files[0].content.as_str(), cut.files[0].truncated),
        ("é", true)
    );
    let nothing = pack(&request(vec![full("a")], 9, 1), &source);
    assert_eq!(reasons(&nothing), [("a", OmittedReason::BudgetExceeded)]);
    let text = String::from_utf8(cut.to_bytes().unwrap()).unwrap();
    assert!(text.contains(r#""truncated":true"#));
    let full_context_pack = pack(&request(vec![full("a")], 9, 5), &source);
    assert!(
        !String::from_utf8(full_context_pack.to_bytes().unwrap())
            .unwrap()
            .contains("truncated")
    );
}

#[test]
fn replaced_bytes_are_reported() {
    let source = Fake::default().with("a", Node::File(b"\xef\xbb\xbfa\xff\xfe\xfd\r\n".to_vec()));
    let pack = pack(&request(vec![full("a")], 9, 100), &source);
    assert_eq!(
        pack.files[0].content,
        "\u{feff}a\u{fffd}\u{fffd}\u{fffd}\r\n"
    );
    assert_eq!(
        pack.files[0].why,
        "requested:why not; replaced 3 invalid bytes"
    );
}

#[test]
fn ten_thousand_needs_end_in_ten_thousand_rows() {
    let source = Fake::from_files(&[("a", "x")]);
    let needs = (0..10_000)
        .map(|n| full(&format!("/{}-{n}", "p".repeat(300))))
        .collect();
    let pack = pack(&request(needs, 9, 100), &source);
    assert_eq!(pack.omitted.len(), 10_000);
    assert!(pack.summary.len() < 10_000 && pack.omitted.iter().all(|row| row.path.len() < 300));
}

#[test]
fn a_reason_cannot_forge_provenance_over_lines() {
    let mut expected = request(vec![full("a")], 9, 100);
    expected.reason = format!("x\nmandatory_contract{}", "y".repeat(1_000));
    let pack = pack(&expected, &Fake::from_files(&[("a", "x")]));
    assert!(
        pack.files[0].why.starts_with("requested:x mandatory") && pack.files[0].why.len() < 220
    );
}

#[test]
fn pack_round_trips_without_unknown_fields() {
    let pack = pack(
        &request(vec![full("src/a.rs"), full("gone")], 9, 3),
        &Fake::from_files(&CONTRACT),
    );
    let bytes = pack.to_bytes().unwrap();
    assert_eq!(ContextPack::parse(&bytes).unwrap(), pack);
    let text = String::from_utf8(bytes).unwrap();
    assert!(ContextPack::parse(text.replace("not_found", "lost").as_bytes()).is_err());
    assert!(ContextPack::parse(text.replacen('{', "{\"plan\":1,", 1).as_bytes()).is_err());
}

fn any_path() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "a", "b", "dir/c", "build/x", "../x", "gone", "big", ".env", "bin", "s"
        ])
        .prop_map(str::to_owned),
        "\\PC{0,8}",
    ]
}

mod properties {
    use super::*;

    proptest! {
        #[test]
        fn every_pack_keeps_its_promises(
            wanted in prop::collection::vec((any_path(), any::<bool>(), prop::collection::vec((0u64..9, 0u64..9), 0..4)), 0..12),
            max_files in 0u64..8,
            max_bytes in 0u64..80,
            binary in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let source = Fake::from_files(&[("a", "1\n22\n333\n"), ("b", "é€😀\r\n"), ("dir/c", ""), ("s", "SECRET-KEY")])
                .with("bin", Node::File(binary))
                .with("big", Node::Huge(5_000_000));
            let needs: Vec<_> = wanted.iter().map(|(path, whole, ranges)| {
                let ranges: Vec<[u64; 2]> = ranges.iter().map(|(a, b)| [*a, *b]).collect();
                if *whole { full(path) } else { lines(path, &ranges) }
            }).collect();
            let request = request(needs, max_files, max_bytes);
            let pack = build(&request, &none(), "slug", &source).unwrap();
            let read_once = source.bytes_read.get();

            let second_context_pack = build(&request, &none(), "slug", &source).unwrap();
            prop_assert_eq!(pack.to_bytes().unwrap(), second_context_pack.to_bytes().unwrap());
            prop_assert_eq!(source.bytes_read.get(), 2 * read_once);

            let distinct: BTreeSet<_> = request.needs.iter().map(|need| &need.path).collect();
            let mut rows: BTreeSet<_> = pack.files.iter().map(|file| &file.path).collect();
            let shown_count = rows.len();
            prop_assert_eq!(shown_count, pack.files.len(), "no file twice");
            let second = |path: &&String| rows.contains(path);
            let seconds = pack.omitted.iter().map(|row| &row.path).filter(second).count();
            rows.extend(pack.omitted.iter().map(|row| &row.path));
            prop_assert_eq!(rows.len(), distinct.len());
            prop_assert_eq!(shown_count + pack.omitted.len(), distinct.len() + seconds);
            let total: usize = pack.files.iter().map(|file| file.content.len()).sum();
            prop_assert!(total as u64 <= max_bytes);
            prop_assert!(pack.files.len() as u64 <= max_files);
            for file in &pack.files {
                let Node::File(bytes) = &source.nodes[&file.path] else { continue };
                let text = String::from_utf8_lossy(bytes);
                for line in file.content.split_inclusive('\n') {
                    prop_assert!(text.contains(line));
                }
                if !file.why.contains("lines") && !file.truncated {
                    prop_assert_eq!(&text, &file.content);
                }
            }
        }
    }
}
