//! Packets: order, limits, secrets, and messages about them.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper of a test fails the test that calls it"
)]

use crucible_model::{Digest, Untrusted, to_canonical_json};
use crucible_spec::{
    EntryKind, Omission, OmissionReason, Packet, PacketEntry, PacketLimits, PacketManifest,
    PhaseId, Selection, SpecError, build_packet, build_packet_with,
};
use crucible_testkit::made_up_token;
use proptest::prelude::*;

const WIDE: PacketLimits = PacketLimits {
    max_bytes: 1 << 20,
    max_lines: 1 << 20,
};

fn entry(kind: EntryKind, name: &str, text: &str) -> PacketEntry {
    PacketEntry {
        kind,
        name: name.to_owned(),
        content: Untrusted::new(text),
    }
}

fn idea(text: &str) -> PacketEntry {
    entry(EntryKind::Idea, "idea", text)
}

fn named(name: &str, text: &str) -> PacketEntry {
    entry(EntryKind::Named, name, text)
}

fn selected(name: &str, text: &str) -> PacketEntry {
    entry(EntryKind::Selected, name, text)
}

fn limits(max_bytes: u64, max_lines: u64) -> PacketLimits {
    PacketLimits {
        max_bytes,
        max_lines,
    }
}

fn names(packet: &Packet) -> Vec<&str> {
    packet
        .entries
        .iter()
        .map(|entry| entry.name.as_str())
        .collect()
}

fn json_of(packet: &Packet) -> String {
    String::from_utf8(packet.manifest.to_json().unwrap()).unwrap()
}

fn over(result: Result<Packet, SpecError>) -> PacketManifest {
    match result {
        Err(SpecError::PacketOverLimit { manifest }) => *manifest,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_limits_are_the_documented_ones() {
    assert_eq!(PacketLimits::default(), limits(65_536, 1_200));
}

#[test]
fn packet_order_is_idea_artifacts_named_selected() {
    let candidates = vec![
        selected("a.md", "s"),
        named("z.md", "n"),
        named("b.md", "n"),
        entry(EntryKind::Artifact(PhaseId::Tasks), "a-tasks", "t"),
        entry(EntryKind::Artifact(PhaseId::Design), "design", "d"),
        idea("i"),
        selected("B.md", "s"),
    ];
    let packet = build_packet(candidates, WIDE).unwrap();
    assert_eq!(
        names(&packet),
        ["idea", "design", "a-tasks", "b.md", "z.md", "B.md", "a.md"]
    );
    assert_eq!(packet.text_of(EntryKind::Idea).unwrap().as_str(), "i");
    let files: Vec<&str> = packet.files().map(|file| file.name.as_str()).collect();
    assert_eq!(files, ["b.md", "z.md", "B.md", "a.md"]);
}

#[test]
fn bytes_and_lines_are_counted_exactly() {
    // 4 bytes in 2 lines, the last one unterminated.
    let entries = || vec![idea("a\nbc")];
    assert!(build_packet(entries(), limits(4, 2)).is_ok());
    for tight in [limits(3, 2), limits(4, 1), limits(0, 0)] {
        let manifest = over(build_packet(entries(), tight));
        assert_eq!(
            (manifest.bytes, manifest.lines, manifest.limits),
            (4, 2, tight)
        );
    }
    let packet = build_packet(
        vec![idea("a\r\nb\r\n"), named("e", ""), named("r", "\n")],
        WIDE,
    )
    .unwrap();
    let rows: Vec<(u64, u64)> = packet
        .manifest
        .entries
        .iter()
        .map(|row| (row.bytes, row.lines))
        .collect();
    assert_eq!(rows, [(6, 2), (0, 0), (1, 1)]);
    assert_eq!(
        packet.text_of(EntryKind::Idea).unwrap().as_str(),
        "a\r\nb\r\n",
        "line ends are kept"
    );
}

#[test]
fn oversized_required_content_lists_sizes() {
    let long = "x".repeat(60 * 1024);
    let candidates = vec![
        selected("s.md", "12345"),
        named("one-line.json", &long),
        idea("wish\n"),
    ];
    let manifest = over(build_packet(candidates, limits(50_000, 10)));
    assert_eq!(manifest.schema_version, "crucible-packet-v1");
    assert_eq!((manifest.bytes, manifest.lines), (5 + 60 * 1024, 2));
    let messages: Vec<(&str, u64)> = manifest
        .entries
        .iter()
        .map(|row| (row.name.as_str(), row.bytes))
        .collect();
    assert_eq!(messages, [("idea", 5), ("one-line.json", 60 * 1024)]);
    let left: Vec<(&str, u64)> = manifest
        .left_out
        .iter()
        .map(|row| (row.name.as_str(), row.bytes))
        .collect();
    assert_eq!(left, [("s.md", 5)]);
    let error = SpecError::PacketOverLimit {
        manifest: Box::new(manifest),
    }
    .to_string();
    assert!(
        error.contains("61445 bytes") && error.contains("50000 bytes"),
        "{error}"
    );
    // The same line within the limits is accepted.
    assert!(build_packet(vec![named("one-line.json", &long)], PacketLimits::default()).is_ok());
}

#[test]
fn selected_files_are_added_while_fitting() {
    let candidates = vec![
        selected("c", "333"),
        selected("b", "22222"),
        selected("a", "1111"),
        idea("i"),
    ];
    let packet = build_packet(candidates, limits(8, 100)).unwrap();
    assert_eq!(
        names(&packet),
        ["idea", "a", "c"],
        "a smaller one after a larger one still fits"
    );
    assert_eq!(packet.manifest.left_out.len(), 1);
    assert_eq!(packet.manifest.left_out[0].name, "b");
    assert_eq!((packet.manifest.bytes, packet.manifest.lines), (8, 3));
}

#[test]
fn duplicate_entry_is_shown_once_or_refused() {
    let packet = build_packet(
        vec![selected("a", "x"), named("a", "x"), selected("a", "x")],
        WIDE,
    )
    .unwrap();
    assert_eq!(
        (names(&packet), packet.entries[0].kind),
        (vec!["a"], EntryKind::Named)
    );
    let design = |text| entry(EntryKind::Artifact(PhaseId::Design), "design", text);
    for twice in [
        vec![named("a", "x"), named("a", "y")],
        vec![idea("x"), idea("y")],
        vec![
            entry(EntryKind::Idea, "one", "x"),
            entry(EntryKind::Idea, "two", "x"),
        ],
        vec![design("x"), design("y")],
    ] {
        let error = build_packet(twice, WIDE).unwrap_err();
        assert!(
            matches!(&error, SpecError::Source { why, .. } if why.contains("twice")),
            "{error}"
        );
    }
}

#[test]
fn secret_stops_packet_with_rule_and_line() {
    let token = made_up_token();
    let text = format!("one\r\ntwo\r\nä {token}\r\n");
    let artifact = EntryKind::Artifact(PhaseId::Design);
    for kind in [
        EntryKind::Idea,
        artifact,
        EntryKind::Named,
        EntryKind::Selected,
    ] {
        let error = build_packet(vec![entry(kind, "src/x.rs", &text)], WIDE).unwrap_err();
        let SpecError::SecretInPacket { entry, rule, line } = &error else {
            panic!("{error}")
        };
        let place = if kind == artifact {
            "artifacts/10-design.md"
        } else {
            "src/x.rs"
        };
        assert_eq!((entry.as_str(), *line), (place, 3));
        assert!(rule.contains("github"), "{rule}");
        assert!(!error.to_string().contains(&token) && !format!("{error:?}").contains(&token));
    }
    // Omitted text is not sent, so it stops nothing; nor is it shown.
    let packet = build_packet(vec![selected("x.rs", &text), idea("i")], limits(10, 10)).unwrap();
    assert_eq!(names(&packet), ["idea"]);
    assert!(!json_of(&packet).contains(&token));
}

#[test]
fn secret_entry_name_is_neither_sent_nor_shown() {
    let token = made_up_token();
    let name = format!("notes/{token}.md");
    let error = build_packet(vec![named(&name, "text")], WIDE).unwrap_err();
    assert!(matches!(error, SpecError::SecretInPacket { .. }), "{error}");
    assert!(
        !error.to_string().contains(&token) && !format!("{error:?}").contains(&token),
        "{error}"
    );
    assert!(
        error.to_string().starts_with("the name of notes/[secret:"),
        "{error}"
    );
    let left_out = build_packet(vec![named("x", "text")], WIDE)
        .unwrap()
        .manifest
        .entries;
    let left_out = left_out.into_iter().map(|row| crucible_spec::PacketRow {
        name: name.clone(),
        ..row
    });
    let selection = Selection {
        left_out: left_out.collect(),
        passed_over: vec![Omission {
            name: name.clone(),
            why: OmissionReason::NotText,
        }],
        ..Selection::default()
    };
    let packet = build_packet_with(vec![idea("i")], selection.clone(), WIDE).unwrap();
    assert_eq!(
        (
            packet.manifest.left_out.len(),
            packet.manifest.passed_over.len()
        ),
        (1, 1)
    );
    assert!(!json_of(&packet).contains(&token));
    // Nor if the file was not read because of its size, nor in the operating system's error.
    let unread = Selection {
        unread: selection.left_out.clone(),
        ..Selection::default()
    };
    let error = build_packet_with(vec![idea("i")], unread, WIDE).unwrap_err();
    assert!(matches!(error, SpecError::SecretInPacket { .. }), "{error}");
    assert!(!format!("{error} {error:?}").contains(&token), "{error}");
    let why = OmissionReason::Unreadable(format!("no: {token}"));
    let passed_over = vec![Omission {
        name: "a.md".to_owned(),
        why,
    }];
    let selection = Selection {
        passed_over,
        ..Selection::default()
    };
    assert!(
        !json_of(&build_packet_with(vec![idea("i")], selection, WIDE).unwrap()).contains(&token)
    );
}

#[test]
fn previous_document_is_ordinary_entry() {
    let previous = |text: &str| {
        entry(
            EntryKind::Previous(PhaseId::Requirements),
            "the last requirements",
            text,
        )
    };
    let packet = build_packet(
        vec![named("n", "n"), previous("# R\n"), idea("wish\n")],
        WIDE,
    )
    .unwrap();
    assert_eq!(names(&packet), ["idea", "the last requirements", "n"]);
    assert_eq!((packet.manifest.bytes, packet.manifest.lines), (10, 3));
    let inputs = packet.manifest.inputs();
    assert_eq!(
        (inputs[1].path.as_str(), inputs[1].bytes),
        ("previous/00-requirements.md", 4)
    );
    let manifest = over(build_packet(
        vec![previous("12345"), idea("12345")],
        limits(9, 9),
    ));
    assert_eq!((manifest.bytes, manifest.entries.len()), (10, 2));
    let error = build_packet(vec![previous(&made_up_token()), idea("i")], WIDE).unwrap_err();
    assert!(matches!(error, SpecError::SecretInPacket { .. }), "{error}");
}

#[test]
fn secret_named_file_is_never_shown() {
    for name in [".env", "config/prod.env", "id_rsa", "certs/server.key"] {
        for file in [named(name, "text"), selected(name, "text")] {
            match build_packet(vec![file], WIDE) {
                Err(SpecError::SecretInPacket { entry, rule, .. }) => {
                    assert_eq!((entry.as_str(), rule.as_str()), (name, "secret-file"));
                }
                other => panic!("{other:?}"),
            }
        }
    }
    // Only files have such names.
    assert!(build_packet(vec![entry(EntryKind::Idea, "idea.env", "text")], WIDE).is_ok());
}

#[test]
fn a_nul_byte_is_no_text() {
    let error = build_packet(vec![idea("a\0b")], WIDE).unwrap_err();
    assert!(
        matches!(&error, SpecError::Source { why, .. } if why.contains("NUL")),
        "{error}"
    );
}

#[test]
fn unread_named_files_exceed_limit() {
    let mut small = build_packet(vec![named("small", "x")], WIDE)
        .unwrap()
        .manifest
        .entries
        .remove(0);
    small.sha256 = None;
    let selection = Selection {
        unread: vec![small],
        ..Selection::default()
    };
    let manifest = over(build_packet_with(vec![idea("i")], selection, WIDE));
    assert_eq!(manifest.entries.len(), 2);
    assert_eq!(manifest.inputs().len(), 1, "what was not read is no input");
}

#[test]
fn manifest_is_canonical_and_feeds_the_receipt() {
    let candidates = vec![
        idea("wish\n"),
        entry(
            EntryKind::Artifact(PhaseId::Requirements),
            "requirements",
            "# R\n",
        ),
        named("src/a.rs", "fn a() {}\n"),
        selected("README.md", "# It\n"),
        selected("big.md", &"x".repeat(100)),
    ];
    let packet = build_packet(candidates, limits(60, 100)).unwrap();
    let json = packet.manifest.to_json().unwrap();
    let read: PacketManifest = serde_json::from_slice(&json).unwrap();
    assert_eq!(read, packet.manifest);
    assert_eq!(
        to_canonical_json(&serde_json::from_slice::<serde_json::Value>(&json).unwrap()).unwrap(),
        json
    );
    let receipt = packet.manifest.receipt().unwrap();
    assert_eq!(
        (
            receipt.bytes,
            receipt.lines,
            receipt.entries,
            receipt.left_out
        ),
        (24, 4, 4, 1)
    );
    assert_eq!(receipt.sha256, Digest::compute(&json));
    let inputs = packet.manifest.inputs();
    let paths: Vec<&str> = inputs.iter().map(|input| input.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "context/idea.md",
            "artifacts/00-requirements.md",
            "project/src/a.rs",
            "project/README.md"
        ]
    );
    assert_eq!(
        (inputs[0].sha256, inputs[0].bytes),
        (Digest::compute(b"wish\n"), 5)
    );
}

#[test]
fn the_manifest_is_as_its_schema_says() {
    let schema = include_str!("../../../../docs/schemas/crucible-packet-v1.schema.json");
    let schema = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
    let valid = |manifest: &PacketManifest| {
        let document = serde_json::from_slice(&manifest.to_json().unwrap()).unwrap();
        let problem = schema
            .iter_errors(&document)
            .next()
            .map(|error| error.to_string());
        assert_eq!(problem, None, "{document:#}");
    };
    let passed_over = [
        OmissionReason::SecretName,
        OmissionReason::NotText,
        OmissionReason::Empty,
        OmissionReason::OutsideProject,
        OmissionReason::NotAFile,
        OmissionReason::Unreadable("no".to_owned()),
    ];
    let passed_over = passed_over.map(|why| Omission {
        name: "x".to_owned(),
        why,
    });
    let fixed = || {
        let previous = entry(EntryKind::Previous(PhaseId::Tasks), "the last tasks", "");
        vec![
            idea("i"),
            entry(EntryKind::Artifact(PhaseId::Design), "design", "d"),
            previous,
            named("n", "n"),
        ]
    };
    let entries = vec![selected("s", "s"), selected("large", "large")];
    let selection = Selection {
        entries,
        passed_over: passed_over.to_vec(),
        ..Selection::default()
    };
    let packet = build_packet_with(fixed(), selection, limits(5, 9)).unwrap();
    assert_eq!(
        (
            packet.manifest.entries.len(),
            packet.manifest.left_out.len()
        ),
        (5, 1)
    );
    valid(&packet.manifest);
    let mut row = packet.manifest.left_out[0].clone();
    row.sha256 = None;
    let selection = Selection {
        unread: vec![row],
        ..Selection::default()
    };
    valid(&over(build_packet_with(fixed(), selection, limits(5, 9))));
}

fn kinds() -> impl Strategy<Value = EntryKind> {
    prop_oneof![
        2 => Just(EntryKind::Named),
        4 => Just(EntryKind::Selected),
        2 => prop::sample::select(PhaseId::ALL.to_vec()).prop_map(EntryKind::Artifact),
        1 => prop::sample::select(PhaseId::ALL.to_vec()).prop_map(EntryKind::Previous),
        1 => Just(EntryKind::Idea),
    ]
}

/// Few names, so that they collide; texts with all kinds of line endings.
fn candidate() -> impl Strategy<Value = PacketEntry> {
    (kinds(), "[a-d]{1,2}", "[ab\r\né\u{1f6d1}]{0,40}")
        .prop_map(|(kind, name, text)| entry(kind, &name, &text))
}

/// The error as text, because it has no equality.
fn with_error_text(result: Result<Packet, SpecError>) -> Result<Packet, String> {
    result.map_err(|error| format!("{error:?}"))
}

mod properties {
    use super::*;

    proptest! {
        #[test]
        fn packet_never_exceeds_its_limits(
            candidates in prop::collection::vec(candidate(), 0..9),
            max_bytes in 0_u64..200,
            max_lines in 0_u64..40,
        ) {
            match build_packet(candidates.clone(), limits(max_bytes, max_lines)) {
                Ok(packet) => {
                    let texts: Vec<&str> = packet.entries.iter().map(|entry| entry.content.as_str()).collect();
                    let bytes: usize = texts.iter().map(|text| text.len()).sum();
                    let lines: usize = texts.iter().map(|text| text.split_inclusive('\n').count()).sum();
                    let manifest = &packet.manifest;
                    prop_assert_eq!((bytes as u64, lines as u64), (manifest.bytes, manifest.lines));
                    prop_assert!(bytes as u64 <= max_bytes && lines as u64 <= max_lines);
                    // Everything is included, or listed as left out.
                    for candidate in &candidates {
                        let is_in = packet.entries.iter().any(|entry| entry.name == candidate.name);
                        let is_told = manifest.left_out.iter().any(|row| row.name == candidate.name);
                        prop_assert!(is_in || (is_told && candidate.kind == EntryKind::Selected));
                    }
                    // What was left out does not fit into the remaining room either.
                    for row in &manifest.left_out {
                        prop_assert!(
                            manifest.bytes + row.bytes > max_bytes || manifest.lines + row.lines > max_lines
                        );
                    }
                }
                Err(SpecError::PacketOverLimit { manifest }) => {
                    prop_assert!(manifest.bytes > max_bytes || manifest.lines > max_lines);
                    prop_assert!(manifest.entries.iter().all(|row| row.kind != EntryKind::Selected));
                }
                Err(SpecError::Source { why, .. }) => prop_assert!(why.contains("twice")),
                Err(other) => prop_assert!(false, "{}", other),
            }
        }

        #[test]
        fn the_order_of_the_candidates_changes_nothing(
            (one, other) in prop::collection::vec(candidate(), 0..12)
                .prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle())),
            max_bytes in 0_u64..200,
        ) {
            let limits = limits(max_bytes, 30);
            prop_assert_eq!(with_error_text(build_packet(one, limits)), with_error_text(build_packet(other, limits)));
        }

        #[test]
        fn no_secret_is_ever_inside(
            mut candidates in prop::collection::vec((kinds(), "[a-z]{4,9}", "[a-z \r\n\"=:é]{0,60}"), 1..6),
            place in any::<prop::sample::Index>(),
            at in any::<prop::sample::Index>(),
            form in 0_usize..6,
            salt in "[a-zA-Z0-9]{12}",
            max_bytes in 0_u64..600,
        ) {
            // A new one for each case, made for the test.
            let made_up = made_up_token();
            let token = format!("{}{salt}", &made_up[..made_up.len() - salt.len()]);
            let secret = match form {
                0 => format!("{token}\n"),
                1 => format!("\"{token}\""),
                2 => format!("{{\"token\": \"{token}\"}}"),
                3 => format!("\r\nexport T='{token}'\r\n"),
                4 => format!("é\n{token} "),
                _ => format!("{token} {token}"),
            };
            let place = place.index(candidates.len());
            let text = &mut candidates[place].2;
            let starts: Vec<usize> = text.char_indices().map(|(start, _)| start).chain([text.len()]).collect();
            text.insert_str(*at.get(&starts), &format!(" {secret} "));
            let candidates = candidates.iter().enumerate();
            let candidates: Vec<PacketEntry> =
                candidates.map(|(number, (kind, name, text))| entry(*kind, &format!("{name}{number}"), text)).collect();
            match build_packet(candidates, limits(max_bytes, 1000)) {
                Ok(packet) => {
                    prop_assert!(packet.entries.iter().all(|entry| !entry.content.as_str().contains(&token)));
                    prop_assert!(!json_of(&packet).contains(&token));
                }
                Err(error) => {
                    let message = format!("{error} {error:?}");
                    prop_assert!(!message.contains(&token));
                }
            }
        }
    }
}
