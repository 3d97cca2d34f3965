//! Tests the patch gate on real repositories: what is judged before reading, and what decides which programs
//! git runs.

#![expect(
    clippy::disallowed_methods,
    reason = "git is found where the test's own PATH says"
)]

use std::sync::Arc;

use crucible_host::env::Environment;
use crucible_sandbox::Sandbox;
use crucible_testkit::{RepoBuilder, TestRepo};

use super::tests::{codes, record};
use super::*;

async fn open(repo: &TestRepo) -> Git {
    let env = Environment::from_pairs([("PATH", std::env::var_os("PATH").unwrap())], "/");
    Git::open(Arc::new(Sandbox::new(None, &env)), &env, repo.path())
        .await
        .unwrap()
}

fn plan(allow: &str, names: &str) -> Plan {
    let text = format!(
        "Status: SIGNED\nScope-Allow: {allow}\nScope-Deny:\nNames: {names}\nGates: lite\nStop: verified\nBudgets: x\n\
         Behaviors:\nResults:\n"
    );
    Plan::parse(&text).unwrap()
}

fn change(path: &str) -> String {
    format!("diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-one\n+two\n")
}

/// Judges an answer on a commit of its choice.
async fn judged(
    git: &Git,
    base: &Oid,
    plan: &Plan,
    format: EditFormat,
    answer: &str,
) -> Result<PatchVerdict, RunError> {
    let mut record = record(git.top(), &[]);
    record.base_commit = base.clone();
    let context = PatchContext {
        git,
        record: &record,
        format,
        plan,
        gate_files: &[],
    };
    judge(&context, &Untrusted::new(answer), 1).await
}

#[tokio::test]
async fn too_many_files_are_refused_unread() {
    let repo = RepoBuilder::new().file("a.txt", "one\n").build();
    let git = open(&repo).await;
    // Reading any object of this commit fails.
    let nowhere: Oid = serde_json::from_value("7".repeat(40).into()).unwrap();
    let blocks: String = (0..6)
        .map(|number| format!("FILE: f{number}.txt\n```\nx\n```\n"))
        .collect();
    let diff: String = (0..6)
        .map(|number| change(&format!("f{number}.txt")))
        .collect();
    let plan = plan("src/", "");
    for (format, answer) in [
        (EditFormat::WholeFile, blocks),
        (EditFormat::UnifiedDiff, diff.clone()),
    ] {
        let judged = judged(&git, &nowhere, &plan, format, &answer)
            .await
            .unwrap();
        assert!(
            codes(&judged.verdict).contains(&"patch-too-many-files".to_owned()),
            "{:?}",
            judged.verdict
        );
        assert_eq!(judged.patch.is_some(), format == EditFormat::UnifiedDiff);
    }
    let policy = Policy {
        max_files: 5,
        ..Policy::for_roots(vec![PathPrefix::ALL])
    };
    let second_patch_verdict = judge_diff(&git, &nowhere, &policy, diff.as_bytes())
        .await
        .unwrap();
    assert_eq!(
        codes(&second_patch_verdict.verdict),
        ["patch-too-many-files"]
    );
}

#[tokio::test]
async fn oversized_files_are_refused() {
    let large = format!("one\n{}", "0123456789abcde\n".repeat(320 * 1024));
    let repo = RepoBuilder::new()
        .file("large.txt", large)
        .file("src/a.txt", "one\n")
        .build();
    let git = open(&repo).await;
    let base = git.opened_at().commit.clone();
    // Files out of scope are refused already, so only a little is read.
    let (plan, large) = (plan("src/", ""), change("large.txt"));
    let outside = judged(&git, &base, &plan, EditFormat::UnifiedDiff, &large)
        .await
        .unwrap();
    assert_eq!(codes(&outside.verdict), ["patch-path-outside-scope"]);
    let policy = Policy::for_roots(vec!["src/".parse().unwrap()]);
    let checked = check_patch(&git, &policy, change("large.txt").as_bytes())
        .await
        .unwrap();
    assert_eq!(codes(&checked), ["patch-path-outside-scope"]);
    let error = || RepoError::TooLarge {
        what: "it".to_owned(),
        limit: 7,
    };
    assert_eq!(
        codes(&too_large(Verdict::default(), error()).unwrap()),
        ["patch-files-too-large"]
    );
    assert!(
        too_large(
            Verdict::default(),
            RepoError::PatchRefused {
                detail: String::new()
            }
        )
        .is_err()
    );
}

#[tokio::test]
async fn files_that_control_git_must_be_named() {
    let repo = RepoBuilder::new()
        .files([
            ("tools/gitconf", "one\n"),
            ("inner/HEAD", "ref: refs/heads/x\n"),
            ("hooked/a", "one\n"),
        ])
        .files([
            ("inner/objects/keep", ""),
            ("inner/refs/keep", ""),
            ("inner/config", "one\n"),
            ("a.txt", "one\n"),
        ])
        .build();
    repo.git(["config", "include.path", "../tools/gitconf"]);
    std::fs::write(repo.path().join("tools/gitconf"), "# one\n").unwrap();
    repo.commit("a file of settings");
    let git = open(&repo).await;
    let base = git.opened_at().commit.clone();
    let settings = change("tools/gitconf").replace("-one\n+two", "-# one\n+# two");
    for (path, diff) in [
        ("tools/gitconf", settings),
        ("inner/config", change("inner/config")),
    ] {
        let named = Policy {
            named: vec![path.parse().unwrap()],
            ..Policy::for_roots(vec![PathPrefix::ALL])
        };
        let free = Policy {
            named: Vec::new(),
            ..named.clone()
        };
        assert_eq!(
            codes(&check_patch(&git, &free, diff.as_bytes()).await.unwrap()),
            ["patch-guarded-place"],
            "{path}"
        );
        assert_eq!(
            codes(&check_patch(&git, &named, diff.as_bytes()).await.unwrap()),
            [""; 0],
            "{path}"
        );
        let refused = judged(
            &git,
            &base,
            &plan("tools/, inner/", ""),
            EditFormat::UnifiedDiff,
            &diff,
        )
        .await
        .unwrap();
        assert_eq!(codes(&refused.verdict), ["patch-guarded-place"], "{path}");
        assert!(refused.change.is_none());
        let second_patch_verdict = judge_diff(&git, &base, &named, diff.as_bytes())
            .await
            .unwrap();
        assert!(second_patch_verdict.change.is_some(), "{path}");
    }
    let free = Policy::for_roots(vec![PathPrefix::ALL]);
    assert_eq!(
        codes(
            &check_patch(&git, &free, change("a.txt").as_bytes())
                .await
                .unwrap()
        ),
        [""; 0]
    );
}
