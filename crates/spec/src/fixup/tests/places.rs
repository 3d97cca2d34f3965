//! The real locations of a fixup's files are checked before it is offered; and dropped parts of an answer
//! are detected.

use crucible_repo::GuardedPlaces;

use super::*;

/// The result of proposing these changes.
fn proposed(
    fixture: &Fixture,
    changes: &[(&str, &str)],
    choice: &FixupChoice,
) -> Result<Vec<(String, String, String)>, Verdict> {
    let paths: Vec<&str> = changes.iter().map(|(path, _)| *path).collect();
    let files = fixture.read(&paths);
    let fixup = propose_fixup(
        &whole(changes),
        EditFormat::WholeFile,
        &files,
        &choice.policy,
    )?;
    let placed = place_fixup(&fixture.project(), fixup.clone(), &files, choice)?;
    assert_eq!((placed.diff, placed.files), (fixup.diff, fixup.files));
    let told = placed.verdict.findings().iter();
    Ok(told
        .map(|finding| {
            (
                finding.code.to_string(),
                finding.subject.clone(),
                finding.hint.clone(),
            )
        })
        .collect())
}

fn linked() -> Fixture {
    let fixture = Fixture::new(&[
        ("src/real.rs", "a\n"),
        ("src/plain.rs", "a\n"),
        ("tests/it.rs", "a\n"),
        (".github/notes.md", "a\n"),
        (".crucible/notes.md", "a\n"),
    ]);
    std::fs::write(fixture.dir.path().join("outside.rs"), "a\n").unwrap();
    for (link, to) in [
        ("src/lt.rs", "../tests/it.rs"),
        ("src/ghdir", "../.github"),
        ("src/own", "../.crucible"),
        ("src/fine.rs", "real.rs"),
        ("src/out.rs", "../../outside.rs"),
    ] {
        symlink(to, fixture.root().join(link)).unwrap();
    }
    fixture
}

#[test]
fn fixup_paths_are_judged_at_real_location() {
    let fixture = linked();
    for links in [LinkPolicy::Refuse, LinkPolicy::InsideProject] {
        let choice = FixupChoice {
            links,
            ..FixupChoice::unguarded(policy())
        };
        for (path, code, place) in [
            ("src/lt.rs", "patch-test-edited", "tests/it.rs"),
            (
                "src/ghdir/notes.md",
                "patch-path-denied",
                ".github/notes.md",
            ),
            (
                "src/own/notes.md",
                "patch-path-denied",
                ".crucible/notes.md",
            ),
            ("src/out.rs", "fixup-out-of-reach", "src/out.rs"),
        ] {
            let verdict =
                proposed(&fixture, &[("src/plain.rs", "b\n"), (path, "b\n")], &choice).unwrap_err();
            let told = verdict
                .errors()
                .find(|finding| finding.code.as_str() == code);
            let told = told.unwrap_or_else(|| panic!("{path}: {verdict:?}"));
            assert_eq!(told.subject, place, "{verdict:?}");
            assert!(
                path == place || told.hint.starts_with(&format!("{path} leads there")),
                "{verdict:?}"
            );
        }
        let both = [("src/fine.rs", "b\n"), ("src/real.rs", "b\n")];
        assert_eq!(
            codes(&proposed(&fixture, &both, &choice).unwrap_err()),
            ["fixup-out-of-reach"]
        );
        let told = proposed(
            &fixture,
            &[("src/fine.rs", "b\n"), ("src/plain.rs", "b\n")],
            &choice,
        )
        .unwrap();
        let [(code, path, hint)] = &told[..] else {
            panic!("{told:?}")
        };
        assert_eq!(
            (code.as_str(), path.as_str()),
            ("fixup-behind-link", "src/fine.rs")
        );
        assert!(hint.contains("what would change is src/real.rs"), "{hint}");
        assert_eq!(
            hint.contains("--allow-links"),
            links == LinkPolicy::Refuse,
            "{hint}"
        );
    }
    // The user names the file itself.
    let allowing = |path: &str| FixupChoice::unguarded(naming(&[path]));
    proposed(&fixture, &[("src/lt.rs", "b\n")], &allowing("src/lt.rs")).unwrap_err();
    proposed(&fixture, &[("src/lt.rs", "b\n")], &allowing("tests/it.rs")).unwrap();
}

#[test]
fn git_controlled_files_need_naming() {
    let fixture = Fixture::new(&[
        ("gitconf", "a\n"),
        ("bare/repo/config", "a\n"),
        ("src/a.rs", "a\n"),
    ]);
    symlink("../gitconf", fixture.root().join("src/conf")).unwrap();
    let root = fixture.root();
    let guarded = GuardedPlaces::in_root(
        &root,
        ["gitconf", "bare/repo"]
            .map(|place| root.join(place))
            .to_vec(),
    );
    let choosing = |named: &[&str]| FixupChoice {
        guarded: guarded.clone(),
        links: LinkPolicy::InsideProject,
        ..FixupChoice::unguarded(naming(named))
    };
    for (path, place) in [
        ("gitconf", "gitconf"),
        ("bare/repo/config", "bare/repo/config"),
        ("src/conf", "gitconf"),
    ] {
        let changes = [("src/a.rs", "b\n"), (path, "b\n")];
        let verdict = proposed(&fixture, &changes, &choosing(&[])).unwrap_err();
        assert_eq!(codes(&verdict), ["fixup-guarded-place"], "{path}");
        let finding = &verdict.findings()[0];
        assert_eq!(finding.subject, place);
        assert!(
            finding.hint.contains("decides what git runs") && finding.hint.contains("--allow-path"),
            "{finding:?}"
        );
        proposed(&fixture, &changes, &choosing(&[place])).unwrap();
        // A fixup that was proposed before the location was guarded.
        let fixup = fixture.pending(&changes, &policy());
        let before = fixture.tree();
        let refused = fixture.apply_as(&fixup, &choosing(&[]));
        let Err(SpecError::FixupRefused { verdict }) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!(codes(&verdict), ["fixup-guarded-place"], "{path}");
        assert_eq!(fixture.tree(), before);
    }
    let unknown = FixupChoice {
        guarded: GuardedPlaces::unknown("git is missing".to_owned()),
        ..FixupChoice::unguarded(policy())
    };
    let verdict = proposed(&fixture, &[("src/a.rs", "b\n")], &unknown).unwrap_err();
    assert!(
        verdict.findings()[0].hint.contains("git is missing"),
        "{verdict:?}"
    );
    let fixup = fixture.pending(&[("gitconf", "b\n")], &policy());
    fixture.apply_as(&fixup, &choosing(&["gitconf"])).unwrap();
    assert_eq!(fixture.get("gitconf"), "b\n");
}

#[test]
fn unused_code_block_is_refused() {
    let shown = files(&[("src/a.rs", "a\n"), ("README.md", "r\n")]);
    let tried = |answer: &str| {
        propose_fixup(
            &Untrusted::new(answer),
            EditFormat::WholeFile,
            &shown,
            &policy(),
        )
        .map(|fixup| fixup.files.len())
        .map_err(|verdict| codes(&verdict).join(" "))
    };
    let first = "FILE: src/a.rs\n```rust\nb\n```\n";
    let unclear = Err("fixup-block-unclear".to_owned());
    for second in [
        "```rust\nc\n```\n",
        "```\nc\n```\n",
        "\n\n```sh\nc\n```\n",
        "and the rest of it:\n```rust\nc\n```\n",
        "and the rest of it:\r\n\r\n~~~\r\nc\r\n~~~\r\n",
    ] {
        assert_eq!(tried(&format!("{first}{second}")), unclear, "{second}");
        if !second.contains("rest of it") {
            continue;
        }
        assert_eq!(
            tried(&format!(
                "I change this:\n{}{first}",
                &second[second.find('\n').unwrap() + 1..]
            )),
            unclear
        );
    }
    for valid_text in [
        first.to_owned(),
        format!("{first}Then run this:\n```sh\ncargo test\n```\n"),
        format!("{first}It prints:\n```text\nok\n```\n"),
        // The same once more.
        format!("{first}Again:\n{first}"),
        format!("{first}FILE: README.md\n````markdown\nRun:\n```sh\nx\n```\n````\n"),
        "FILE: README.md\n```markdown\nRun:\n```sh\nx\n```\n```\n".to_owned(),
    ] {
        assert!(
            tried(&valid_text).is_ok(),
            "{valid_text}: {:?}",
            tried(&valid_text)
        );
    }
}

#[test]
fn unusable_allow_path_is_explained() {
    let fixture = Fixture::new(&[
        ("src/a.rs", "a\n"),
        ("src/[id].tsx", "a\n"),
        ("odd/*", "a\n"),
    ]);
    let told = |path: &str| not_nameable(&fixture.root(), &path.parse().unwrap());
    for (path, why) in [
        (".crucible/config.toml", "Crucible's own directory"),
        ("sub/.CRUCIBLE/x", "Crucible's own directory"),
        ("src/*", "word for word"),
        ("src/?.rs", "word for word"),
        ("src/{a,b}.rs", "word for word"),
        ("src", "name each file"),
    ] {
        assert!(
            told(path).is_some_and(|message| message.contains(why)),
            "{path}: {:?}",
            told(path)
        );
    }
    for path in [
        "src/a.rs",
        "src/new.rs",
        "src/[id].tsx",
        "src/[new].tsx",
        "odd/*",
        "src/{a}.rs",
    ] {
        assert_eq!(told(path), None, "{path}");
    }
}
