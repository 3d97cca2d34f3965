//! The tree against the text: where they say different things, the patch is refused.

use std::collections::BTreeMap;

use crucible_model::{ByteLimit, Verdict};
use crucible_patch::parse;
use crucible_repo::{ProducedTree, check_agreement};

use crate::common::Repo;

struct Case {
    repo: Repo,
    produced: ProducedTree,
    raw: Vec<u8>,
}

async fn case(files: &[(&str, &str)], raw: &[u8]) -> Case {
    let repo = Repo::with(files);
    let produced = repo
        .open()
        .await
        .tree_after_patch(&repo.oid("HEAD"), raw)
        .await
        .unwrap();
    Case {
        repo,
        produced,
        raw: raw.to_vec(),
    }
}

impl Case {
    async fn verdict(&self) -> Verdict {
        let patch = parse(&self.raw).unwrap();
        let paths: Vec<_> = patch.paths().into_iter().cloned().collect();
        let before = self
            .repo
            .open()
            .await
            .files_at(&self.produced.base, &paths, ByteLimit(1 << 20))
            .await
            .unwrap();
        check_agreement(&self.raw, &patch, &before, &self.produced)
    }

    async fn subjects(&self) -> Vec<String> {
        let verdict = self.verdict().await;
        verdict
            .findings()
            .iter()
            .map(|finding| format!("{} {}", finding.code, finding.subject))
            .collect()
    }
}

const FILES: &[(&str, &str)] = &[
    ("a", "1\n2\n3\n4\n5\n6\n7\n8\n9\n"),
    ("b", "b\n"),
    ("run", "#!\n"),
];

#[tokio::test]
async fn every_kind_of_honest_change_agrees() {
    let raw = b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,4 +1,4 @@\n 1\n-2\n+two\n 3\n 4\n\
                diff --git a/b b/c\nsimilarity index 100%\nrename from b\nrename to c\n\
                diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+n\n\
                diff --git a/run b/run\nold mode 100644\nnew mode 100755\n";
    assert_eq!(case(FILES, raw).await.subjects().await, [""; 0]);
    let delete = b"diff --git a/b b/b\ndeleted file mode 100644\n--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n";
    assert_eq!(case(FILES, delete).await.subjects().await, [""; 0]);
    let copy = b"diff --git a/b b/c\nsimilarity index 100%\ncopy from b\ncopy to c\n";
    assert_eq!(case(FILES, copy).await.subjects().await, [""; 0]);
}

#[tokio::test]
async fn a_hunk_that_git_moves_is_refused() {
    // It says line 2 and fits at line 4: git moves it, the text does not.
    let raw = b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -2,4 +2,4 @@\n 4\n-5\n+five\n 6\n 7\n";
    assert_eq!(
        case(FILES, raw).await.subjects().await,
        ["repo-tree-differs the patch"]
    );
}

#[tokio::test]
async fn tree_differing_from_patch_is_refused() {
    let raw = b"diff --git a/b b/b\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-b\n+B\n";
    let both = b"diff --git a/b b/b\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-b\n+B\n\
                 diff --git a/run b/run\nold mode 100644\nnew mode 100755\n";
    let more = Case {
        raw: raw.to_vec(),
        ..case(FILES, both).await
    };
    assert_eq!(more.subjects().await, ["repo-tree-differs run"]);
    let less = Case {
        raw: both.to_vec(),
        ..case(FILES, raw).await
    };
    assert_eq!(less.subjects().await, ["repo-tree-differs run"]);

    let other = b"diff --git a/b b/b\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-b\n+C\n";
    let other = Case {
        raw: raw.to_vec(),
        ..case(FILES, other).await
    };
    assert_eq!(other.subjects().await, ["repo-tree-differs b"]);

    let mode =
        b"diff --git a/b b/b\nold mode 100644\nnew mode 100755\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-b\n+B\n";
    let mode = Case {
        raw: raw.to_vec(),
        ..case(FILES, mode).await
    };
    assert_eq!(mode.subjects().await, ["repo-tree-differs b"]);

    let bytes = b"diff --git a/b b/b\ndeleted file mode 100644\n--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n";
    let stored_case = Case {
        raw: bytes.to_vec(),
        ..case(FILES, raw).await
    };
    assert_eq!(stored_case.subjects().await, ["repo-tree-differs b"]);
    let removed = Case {
        raw: raw.to_vec(),
        ..case(FILES, bytes).await
    };
    assert_eq!(removed.subjects().await, ["repo-tree-differs b"]);
}

#[tokio::test]
async fn an_unknown_content_before_is_refused() {
    let raw = b"diff --git a/b b/b\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-b\n+B\n";
    let case = case(FILES, raw).await;
    let verdict = check_agreement(raw, &parse(raw).unwrap(), &BTreeMap::new(), &case.produced);
    assert!(!verdict.passes());
}
