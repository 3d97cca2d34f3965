//! An export is complete or absent, matches its manifest, and stays in its directory.

#![expect(
    clippy::disallowed_methods,
    reason = "tests plant links and files, and kill processes that they started"
)]

use std::fs::File;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crucible_crawl::{
    CheckedArtifact, Export, ExportError, Exported, ManifestV1, OutputDir, write_export,
};
use crucible_testkit::{made_up_token, on_a_small_disk};
use serde_json::{Value, json};

use super::common::{
    CHILD, CONFIG, Home, TRANSCRIPT, as_process, documents, plan_document, search_document, tree,
};

const FILES: [&str; 7] = [
    "search.json",
    "inspect.json",
    "plan.json",
    "recipe.json",
    "meta/debate-transcript.json",
    "meta/config-snapshot.json",
    "manifest.json",
];

fn good() -> Vec<CheckedArtifact> {
    documents(&search_document(), &plan_document())
}

/// An export with this search query.
fn about(query: &str) -> Vec<CheckedArtifact> {
    let mut search = search_document();
    search["query"] = json!(query);
    documents(&search, &plan_document())
}

fn write(dir: &OutputDir, artifacts: &[CheckedArtifact]) -> Result<Exported, ExportError> {
    write_export(
        dir,
        &Export {
            artifacts,
            debate_transcript: TRANSCRIPT,
            config_snapshot: CONFIG,
        },
    )
}

fn export(path: &Path, artifacts: &[CheckedArtifact]) -> Result<Exported, ExportError> {
    write(&OutputDir::resolve(path)?, artifacts)
}

/// The first twelve digits from the real `sha256sum` for each file in a manifest.
fn sums(dir: &Path, manifest: &ManifestV1) -> Vec<String> {
    let names = manifest
        .artifacts
        .iter()
        .map(|artifact| artifact.filename.as_str());
    let output = Command::new("sha256sum")
        .args(names)
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| line[..12].to_owned())
        .collect()
}

fn manifest_of(dir: &Path) -> ManifestV1 {
    serde_json::from_slice(&std::fs::read(dir.join("manifest.json")).unwrap()).unwrap()
}

/// Checks that a directory holds a complete export whose files match its manifest.
fn assert_whole(dir: &Path) {
    let manifest = manifest_of(dir);
    let listed: Vec<&str> = manifest
        .artifacts
        .iter()
        .map(|artifact| artifact.content_hash.as_str())
        .collect();
    assert_eq!(sums(dir, &manifest), listed);
    let names: Vec<&str> = manifest
        .artifacts
        .iter()
        .map(|artifact| artifact.filename.as_str())
        .collect();
    assert_eq!(names, FILES[..4]);
    for name in FILES {
        serde_json::from_slice::<Value>(&std::fs::read(dir.join(name)).unwrap()).unwrap();
    }
}

#[test]
fn export_writes_exactly_its_files() {
    let home = Home::new();
    let artifacts = good();
    let exported = export(&home.path().join("a/b"), &artifacts).unwrap();
    assert_eq!(exported.dir, home.path().join("a/b"));
    assert_eq!(exported.files, FILES, "the manifest is the last");
    let found: Vec<PathBuf> = tree(&exported.dir)
        .into_iter()
        .map(|(path, _)| path)
        .collect();
    let mut expected: Vec<PathBuf> = FILES.iter().map(|name| exported.dir.join(name)).collect();
    expected.push(exported.dir.join("meta"));
    expected.sort();
    assert_eq!(found, expected);
    for artifact in &artifacts {
        let file = exported
            .dir
            .join(format!("{}.json", artifact.kind().as_str()));
        assert_eq!(std::fs::read_to_string(file).unwrap(), artifact.json());
    }
    let meta = |name: &str| std::fs::read_to_string(exported.dir.join("meta").join(name)).unwrap();
    assert_eq!(
        (meta("debate-transcript.json"), meta("config-snapshot.json")),
        (TRANSCRIPT.to_owned(), CONFIG.to_owned())
    );
}

#[test]
fn manifest_hashes_match_sha256sum() {
    let home = Home::new();
    let exported = export(&home.path().join("out"), &good()).unwrap();
    assert_whole(&exported.dir);
    let manifest = manifest_of(&exported.dir);
    let listed: Vec<_> = manifest
        .artifacts
        .iter()
        .map(|one| (one.kind.as_str(), one.schema.as_str()))
        .collect();
    assert_eq!(
        listed,
        [
            ("search", "viv-git-search.v1"),
            ("inspect", "viv-git-inspect.v1"),
            ("plan", "viv-git-plan.v1"),
            ("recipe", "viv-git-recipe.v1")
        ]
    );
}

#[test]
fn unsafe_plan_is_never_exported() {
    let home = Home::new();
    let out = home.path().join("out");
    for (safe, violations) in [
        (false, json!([])),
        (false, json!(["sudo"])),
        (true, json!(["sudo"])),
    ] {
        let mut plan = plan_document();
        plan["safety_validated"] = json!(safe);
        plan["safety_violations"] = violations;
        let error = export(&out, &documents(&search_document(), &plan)).unwrap_err();
        assert!(matches!(error, ExportError::UnsafePlan { .. }), "{error}");
    }
    assert!(!out.exists());
}

#[test]
fn inconsistent_documents_are_not_exported() {
    let home = Home::new();
    let out = home.path().join("out");
    let good = good();
    let other = about("another");
    let mut stale = plan_document();
    stale["steps"][0]["cmd"] = json!("cargo test");
    let twice = [&good[..4], &good[..1]].concat();
    let mixed = [&good[..4], &other[4..]].concat();
    for wrong in [
        &good[..4],
        &good[1..],
        &[],
        &twice,
        &mixed,
        &documents(&search_document(), &stale),
    ] {
        let error = export(&out, wrong).unwrap_err();
        assert!(matches!(error, ExportError::Contents { .. }), "{error}");
    }
    let dir = OutputDir::resolve(&out).unwrap();
    let message = json!({
        "phase": "draft", "round": 1, "owner": "gpt", "provider": "gateway", "model": "", "request": [["user", "x"]],
        "reply": "{}", "verdict": "", "error": ""
    });
    let transcript = |change: &dyn Fn(&mut Value)| {
        let mut transcript: Value = serde_json::from_str(TRANSCRIPT).unwrap();
        transcript["messages"] = json!([message]);
        change(&mut transcript);
        transcript.to_string()
    };
    let wrong = [
        ("no JSON".to_owned(), CONFIG),
        ("{}".to_owned(), CONFIG),
        (
            transcript(&|it| it["schema_version"] = json!("crucible-crawl-transcript-v2")),
            CONFIG,
        ),
        (
            transcript(&|it| it["messages"][0]["owner"] = json!("somebody")),
            CONFIG,
        ),
        (
            transcript(&|it| it["messages"][0]["request"] = json!(["user"])),
            CONFIG,
        ),
        (
            transcript(&|it| drop(it["messages"][0].as_object_mut().unwrap().remove("reply"))),
            CONFIG,
        ),
        (transcript(&|_| {}), "{}"),
        (
            transcript(&|_| {}),
            "{\"schema_version\":\"crucible-crawl-config-v1\",\"values\":{\"a\":1}}",
        ),
    ];
    for (debate_transcript, config_snapshot) in &wrong {
        let export = Export {
            artifacts: &good,
            debate_transcript,
            config_snapshot,
        };
        assert!(
            matches!(
                write_export(&dir, &export),
                Err(ExportError::Contents { .. })
            ),
            "{export:?}"
        );
    }
    assert!(!out.exists());
    let shuffled: Vec<_> = good.iter().rev().cloned().collect();
    assert_eq!(write(&dir, &shuffled).unwrap().files, FILES);
    let full_text = transcript(&|_| {});
    write_export(
        &dir,
        &Export {
            artifacts: &good,
            debate_transcript: &full_text,
            config_snapshot: CONFIG,
        },
    )
    .unwrap();
}

#[test]
fn a_secret_in_any_file_stops_the_export() {
    let home = Home::new();
    let dir = OutputDir::resolve(&home.path().join("out")).unwrap();
    let token = made_up_token();
    let dirty = format!("{{\"x\":\"{token}\"}}");
    let (clean, artifacts, query) = (good(), about(&token), "search.json");
    for (artifacts, debate_transcript, config_snapshot, named) in [
        (
            &clean,
            dirty.as_str(),
            CONFIG,
            "meta/debate-transcript.json",
        ),
        (
            &clean,
            TRANSCRIPT,
            dirty.as_str(),
            "meta/config-snapshot.json",
        ),
        (&artifacts, TRANSCRIPT, CONFIG, query),
    ] {
        let error = write_export(
            &dir,
            &Export {
                artifacts,
                debate_transcript,
                config_snapshot,
            },
        )
        .unwrap_err();
        assert!(
            matches!(&error, ExportError::Secret { file, .. } if *file == named),
            "{error}"
        );
        assert!(!error.to_string().contains(&token), "{error}");
    }
    assert!(!dir.path().exists());
}

#[test]
fn export_replaces_earlier_export_only() {
    let home = Home::new();
    let out = home.path().join("out");
    export(&out, &about("first")).unwrap();
    std::fs::write(out.join("notes.txt"), "mine").unwrap();
    std::fs::write(out.join("meta/notes.txt"), "mine, too").unwrap();
    export(&out, &about("second")).unwrap();
    assert_whole(&out);
    assert!(
        std::fs::read_to_string(out.join("search.json"))
            .unwrap()
            .contains("second")
    );
    assert_eq!(
        std::fs::read_to_string(out.join("notes.txt")).unwrap(),
        "mine"
    );
    assert_eq!(
        std::fs::read_to_string(out.join("meta/notes.txt")).unwrap(),
        "mine, too"
    );
}

#[test]
fn directory_filled_meanwhile_is_refused() {
    let home = Home::new();
    let dir = OutputDir::resolve(&home.path().join("out")).unwrap();
    std::fs::create_dir(dir.path()).unwrap();
    std::fs::write(dir.path().join("plan.json"), "mine").unwrap();
    let before = tree(&home.path());
    let error = write(&dir, &good()).unwrap_err();
    assert!(
        matches!(&error, ExportError::Occupied { entry, .. } if entry == "plan.json"),
        "{error}"
    );
    assert_eq!(tree(&home.path()), before);
}

#[test]
fn planted_links_are_not_followed() {
    let home = Home::new();
    let victim = home.path().join("victim");
    std::fs::create_dir(&victim).unwrap();
    std::fs::write(victim.join("precious.json"), "precious").unwrap();
    for planted in [
        "meta",
        "search.json",
        "plan.json",
        "meta/config-snapshot.json",
        "manifest.json",
    ] {
        let out = home.path().join("out");
        export(&out, &about("first")).unwrap();
        let link = out.join(planted);
        let target = if planted == "meta" {
            victim.clone()
        } else {
            victim.join("precious.json")
        };
        if planted == "meta" {
            std::fs::remove_dir_all(&link).unwrap();
        } else {
            std::fs::remove_file(&link).unwrap();
        }
        symlink(target, &link).unwrap();
        assert!(
            OutputDir::resolve(&out).is_err(),
            "{planted}: said before anything is paid for"
        );
        let error = export(&out, &about("second")).unwrap_err();
        // A manifest behind a link is not trusted.
        let expected = if planted == "manifest.json" {
            matches!(error, ExportError::Occupied { .. })
        } else {
            matches!(error, ExportError::Link { .. })
        };
        assert!(expected, "{planted}: {error}");
        assert_eq!(
            std::fs::read_to_string(victim.join("precious.json")).unwrap(),
            "precious",
            "{planted}"
        );
        assert_eq!(std::fs::read_dir(&victim).unwrap().count(), 1, "{planted}");
        std::fs::remove_dir_all(&out).unwrap();
    }
}

#[test]
fn foreign_mark_is_not_trusted() {
    let home = Home::new();
    let out = home.path().join("out");
    std::fs::create_dir(&out).unwrap();
    std::fs::write(out.join("plan.json"), "mine").unwrap();
    std::fs::write(out.join(".crucible-export-unfinished"), "").unwrap();
    assert!(matches!(
        OutputDir::resolve(&out),
        Err(ExportError::Occupied { .. })
    ));
}

#[test]
fn directory_in_place_of_file_is_refused() {
    let home = Home::new();
    let out = home.path().join("out");
    export(&out, &about("first")).unwrap();
    std::fs::remove_file(out.join("recipe.json")).unwrap();
    std::fs::create_dir(out.join("recipe.json")).unwrap();
    let before = tree(&out);
    assert!(matches!(
        export(&out, &about("second")),
        Err(ExportError::Link { .. })
    ));
    assert_eq!(tree(&out), before);
}

#[test]
fn directory_replaced_by_link_is_refused() {
    let home = Home::new();
    let victim = home.path().join("victim");
    std::fs::create_dir(&victim).unwrap();
    // The directory itself, and one in its path.
    for (resolved, replaced) in [("out", "out"), ("way/out", "way")] {
        let dir = OutputDir::resolve(&home.path().join(resolved)).unwrap();
        symlink(&victim, home.path().join(replaced)).unwrap();
        let error = write(&dir, &good()).unwrap_err();
        assert!(matches!(error, ExportError::Moved { .. }), "{error}");
        let files = tree(&victim)
            .into_iter()
            .filter(|(_, content)| content.is_some())
            .count();
        assert_eq!(files, 0, "{resolved}");
        std::fs::remove_file(home.path().join(replaced)).unwrap();
    }
}

#[test]
fn two_exports_never_mix_in_one_directory() {
    let home = Home::new();
    let dir = OutputDir::resolve(&home.path().join("out")).unwrap();
    write(&dir, &about("first")).unwrap();
    let held = File::open(dir.path()).unwrap();
    held.lock().unwrap();
    assert!(matches!(
        write(&dir, &good()),
        Err(ExportError::Busy { .. })
    ));
    assert_whole(dir.path());
    drop(held);
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let one = |number: usize| {
            let (dir, artifacts) = (dir.clone(), about(&format!("query {number}")));
            scope.spawn(move || write(&dir, &artifacts))
        };
        let threads: Vec<_> = (0..6).map(one).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    for outcome in outcomes {
        if let Err(error) = outcome {
            assert!(matches!(error, ExportError::Busy { .. }), "{error}");
        }
    }
    assert_whole(dir.path());
}

#[test]
fn killed_export_never_looks_complete() {
    let test = "records::export::killed_export_never_looks_complete";
    if let Some(out) = std::env::var_os(CHILD) {
        let dir = OutputDir::resolve(Path::new(&out)).unwrap();
        for number in 0.. {
            write(&dir, &about(&format!("query {number}"))).unwrap();
        }
    }
    let home = Home::new();
    let mut torn = 0;
    for round in 0..12u64 {
        let out = home.path().join(format!("out{round}"));
        let mut child = as_process(test, &out).spawn().unwrap();
        while !out.join("recipe.json").exists() {
            assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(round));
        child.kill().unwrap();
        child.wait().unwrap();
        if out.join("manifest.json").exists() {
            assert_whole(&out);
        } else {
            torn += 1;
        }
        // Its leftovers are recognised.
        export(&out, &about("after")).unwrap();
        assert_whole(&out);
        assert!(!out.join(".crucible-export-unfinished").exists());
    }
    println!("{torn} of 12 were torn");
}

#[test]
fn full_disk_leaves_no_partial_export() {
    let test = "records::export::full_disk_leaves_no_partial_export";
    let Some(home) = std::env::var_os(CHILD) else {
        let home = Home::new();
        on_a_small_disk(CHILD, test, &home.path(), ".", "48k", "");
        return;
    };
    let out = Path::new(&home).canonicalize().unwrap().join("out");
    let dir = OutputDir::resolve(&out).unwrap();
    let mut large: Value = serde_json::from_str(TRANSCRIPT).unwrap();
    large["summary"] = json!("x".repeat(60_000));
    let large = large.to_string();
    let export = Export {
        artifacts: &good(),
        debate_transcript: &large,
        config_snapshot: CONFIG,
    };
    let error = write_export(&dir, &export).unwrap_err();
    assert!(error.to_string().contains("No space left"), "{error}");
    let files: Vec<_> = tree(&out)
        .into_iter()
        .filter(|(_, content)| content.is_some())
        .collect();
    assert_eq!(files, []);
    // The remaining empty directory `meta` is ignored: the same directory can be used again.
    write(&OutputDir::resolve(&out).unwrap(), &good()).unwrap();
    assert_whole(&out);
}

#[test]
fn unwritable_directory_is_refused_early() {
    let test = "records::export::unwritable_directory_is_refused_early";
    let Some(home) = std::env::var_os(CHILD) else {
        let home = Home::new();
        on_a_small_disk(
            CHILD,
            test,
            &home.path(),
            ".",
            "1m",
            "mkdir \"$0/there\" && mount -o remount,ro small \"$0\" &&",
        );
        return;
    };
    let home = Path::new(&home).canonicalize().unwrap();
    for (path, named) in [
        (home.join("there"), home.join("there")),
        (home.join("new/deep"), home.clone()),
    ] {
        let error = OutputDir::resolve(&path).unwrap_err();
        assert!(
            matches!(&error, ExportError::NotWritable { path } if *path == named),
            "{error}"
        );
    }
}
