//! What git writes is read, and what git would not write is refused with its own kind at its own line.

use proptest::prelude::*;

use super::*;
use crate::patch::{FileMode, LineEnd, LineKind};

const MODIFY: &str = "diff --git a/a b/a\nindex 1111111..2222222 100644\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@ fn x\n one\n-two\n+zwei\n";

fn ok(patch: impl AsRef<[u8]>) -> Patch {
    parse(patch.as_ref())
        .unwrap_or_else(|error| panic!("{error}\n{}", String::from_utf8_lossy(patch.as_ref())))
}

fn code(patch: impl AsRef<[u8]>) -> String {
    match parse(patch.as_ref()) {
        Ok(patch) => format!("accepted {patch:?}"),
        Err(error) => format!("{} {}", error.line, error.code()),
    }
}

fn one(patch: impl AsRef<[u8]>) -> FilePatch {
    let mut files = ok(patch).files;
    assert_eq!(files.len(), 1);
    files.remove(0)
}

#[test]
fn reads_a_modification() {
    let file = one(MODIFY);
    assert_eq!(
        (file.change.clone(), file.path.as_str()),
        (Change::Modify, "a")
    );
    assert_eq!(
        (file.old_mode, file.new_mode),
        (Some(FileMode::Regular), Some(FileMode::Regular))
    );
    assert_eq!((file.added(), file.removed()), (1, 1));
    let lines: Vec<_> = file.hunks[0]
        .lines()
        .map(|line| (line.kind, line.text))
        .collect();
    assert_eq!(
        lines,
        [
            (LineKind::Context, &b"one"[..]),
            (LineKind::Removed, b"two"),
            (LineKind::Added, b"zwei")
        ]
    );
}

#[test]
fn reads_every_kind_of_section() {
    let create = "diff --git a/n b/n\nnew file mode 100755\nindex 0000000..1111111\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n";
    let file = one(create);
    assert_eq!(
        (file.change, file.new_mode, file.old_mode),
        (Change::Create, Some(FileMode::Executable), None)
    );
    let file = one(
        "diff --git a/n b/n\ndeleted file mode 100644\n--- a/n\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
    );
    assert_eq!(
        (file.change, file.old_mode),
        (Change::Delete, Some(FileMode::Regular))
    );
    let file = one("diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n");
    assert_eq!(
        file.change,
        Change::Rename {
            from: "x".parse().unwrap()
        }
    );
    assert_eq!(file.path.as_str(), "y");
    let file = one(
        "diff --git a/x b/y\nsimilarity index 90%\ncopy from x\ncopy to y\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n",
    );
    assert_eq!(
        file.change,
        Change::Copy {
            from: "x".parse().unwrap()
        }
    );
    let file = one("diff --git a/x b/x\nold mode 100644\nnew mode 120000\n");
    assert_eq!(file.new_mode, Some(FileMode::Symlink));
    assert!(matches!(
        one("diff --git a/e b/e\nnew file mode 100644\nindex 0000000..e69de29\n").change,
        Change::Create
    ));
    let binary =
        "diff --git a/i b/i\nindex 1111111..2222222 100644\nBinary files a/i and b/i differ\n";
    assert_eq!(one(binary).content, Content::Omitted);
    let binary = "diff --git a/i b/i\nindex 1111111..2222222 100644\nGIT binary patch\nliteral 4\nLc${Nk0Pz3;\n\nliteral 3\nKc${Nk0P\n\n";
    assert_eq!(code(binary), "8 patch-bad-binary");
    let binary = "diff --git a/i b/i\nindex 1111111..2222222 100644\nGIT binary patch\nliteral 4\nLc${Nk\n\nliteral 3\nKc${Nk\n\n";
    assert_eq!(one(binary).content, Content::Binary);
}

#[test]
fn the_counts_decide_what_is_content() {
    let tricky = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,4 +1,5 @@\n diff --git a/x b/x\n--- a/x\n-@@ -1 +1 @@\n+++ b/x\n++ plus\n+\u{2028}\u{c}\r\n \n";
    let file = one(tricky);
    let lines: Vec<_> = file.hunks[0]
        .lines()
        .map(|line| line.text.to_vec())
        .collect();
    assert_eq!(lines[1], b"-- a/x");
    assert_eq!(lines[3], b"++ b/x");
    assert_eq!(lines[4], b"+ plus");
    assert_eq!(lines[5], "\u{2028}\u{c}\r".as_bytes());
    assert_eq!((file.added(), file.removed()), (3, 2));
    let mut latin =
        b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-\xff\xfe\n+\xe9\n".to_vec();
    assert_eq!(
        one(&latin).hunks[0].lines().next().unwrap().text,
        b"\xff\xfe"
    );
    latin.extend_from_slice(b"diff --git a/b b/b\n--- a/b\n+++ b/b\n@@ -1 +0,0 @@\n-x\n");
    assert_eq!(ok(&latin).files.len(), 2);
}

#[test]
fn an_empty_line_is_an_empty_context_line() {
    let file = one("diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,3 +1,2 @@\n x\n\n-y\n");
    assert_eq!(
        file.hunks[0]
            .lines()
            .nth(1)
            .map(|line| (line.kind, line.text.len())),
        Some((LineKind::Context, 0))
    );
}

#[test]
fn a_missing_final_newline_is_kept() {
    let file = one(
        "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+x\n",
    );
    let ends: Vec<_> = file.hunks[0].lines().map(|line| line.end).collect();
    assert_eq!(ends, [LineEnd::EndOfFile, LineEnd::Newline]);
    assert_eq!(file.apply_to(b"x"), Ok(b"x\n".to_vec()));
    assert_eq!(file.apply_to(b"x\n"), Err(1));
}

#[test]
fn names_are_read_as_git_writes_them() {
    for (header, names, path) in [
        ("a/x y b/x y", "--- a/x y\t\n+++ b/x y\t", "x y"),
        ("a/x b/x b/x b/x", "--- a/x b/x\t\n+++ b/x b/x\t", "x b/x"),
        ("a/a/x b/a/x", "--- a/a/x\n+++ b/a/x", "a/x"),
        ("a/b/x b/b/x", "--- a/b/x\n+++ b/b/x", "b/x"),
        (
            "\"a/t\\tq\\\"\\303\\251\" \"b/t\\tq\\\"\\303\\251\"",
            "--- \"a/t\\tq\\\"\\303\\251\"\n+++ \"b/t\\tq\\\"\\303\\251\"",
            "t\tq\"é",
        ),
        ("a/é b/é", "--- a/é\n+++ b/é", "é"),
        ("a/é \"b/\\303\\251\"", "--- a/é\n+++ \"b/\\303\\251\"", "é"),
        ("a/x b/x", "--- a/x\n+++ b/x", "x"),
    ] {
        let patch = format!("diff --git {header}\n{names}\n@@ -1 +1 @@\n-a\n+b\n");
        assert_eq!(one(&patch).path.as_str(), path, "{patch}");
    }
    let rename = "diff --git a/x b/y b/x b/z\nrename from x b/y\nrename to x b/z\n";
    assert_eq!(one(rename).path.as_str(), "x b/z");
    assert_eq!(
        code(rename.replace("to x b/z", "to z")),
        "1 patch-headers-disagree"
    );
    assert_eq!(
        one("diff --git a/x b/y b/z\nrename from x\nrename to y b/z\n")
            .path
            .as_str(),
        "y b/z"
    );
    assert_eq!(
        one("diff --git a/x b/y b/z\nrename from x b/y\nrename to z\n")
            .path
            .as_str(),
        "z"
    );
}

#[test]
fn diff_that_git_never_writes_is_refused() {
    let hunk = "@@ -1 +1 @@\n-a\n+b\n";
    let names = "--- a/a\n+++ b/a\n";
    let a = "diff --git a/a b/a\n";
    let table: Vec<(String, &str)> = vec![
        (String::new(), "1 patch-empty"),
        (" \n\n".into(), "1 patch-empty"),
        ("Here is the patch:\n".to_owned() + MODIFY, "1 patch-not-git-diff"),
        ("\u{feff}".to_owned() + MODIFY, "1 patch-not-git-diff"),
        ("\n".to_owned() + MODIFY, "1 patch-not-git-diff"),
        (format!("{names}{hunk}"), "1 patch-not-git-diff"),
        (MODIFY.trim_end().to_owned(), "8 patch-truncated"),
        (MODIFY.replace('\n', "\r\n"), "1 patch-crlf-header"),
        (MODIFY.replace("+++ b/a\n", "+++ b/a\r\n"), "4 patch-crlf-header"),
        (MODIFY.replace("fn x\n", "fn x\r\n"), "5 patch-crlf-header"),
        (format!("{MODIFY}Done.\n"), "9 patch-junk"),
        (format!("{MODIFY}\n"), "9 patch-junk"),
        (format!("{MODIFY}```\n"), "9 patch-junk"),
        (format!("{MODIFY}-- \n2.47.3\n"), "9 patch-hunk-counts"),
        // The second section has no `diff --git`: git applies it, a careless reader does not see it.
        (format!("{MODIFY}--- a/.github/x\n+++ b/.github/x\n{hunk}"), "9 patch-section-without-header"),
        (format!("{MODIFY}--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"), "9 patch-section-without-header"),
        (format!("{a}\n{names}{hunk}"), "2 patch-unknown-header"),
        (format!("{a}rename old a\nrename new b\n"), "2 patch-unknown-header"),
        (format!("{a}index zzz..yyy\n{names}{hunk}"), "2 patch-unknown-header"),
        (format!("{a}similarity index 101%\n{names}{hunk}"), "2 patch-unknown-header"),
        (format!("{a}old mode 100644\nold mode 100644\nnew mode 100755\n"), "3 patch-repeated-header"),
        (format!("{a}--- a/a\n{hunk}"), "3 patch-headers-disagree"),
        (format!("{a}--- a/a\n+++ b/b\n{hunk}"), "1 patch-headers-disagree"),
        (format!("{a}--- a/b\n+++ b/b\n{hunk}"), "1 patch-headers-disagree"),
        (format!("{a}--- a\n+++ a\n{hunk}"), "1 patch-headers-disagree"),
        (format!("{a}--- a/a\t2026-01-01\n+++ b/a\n{hunk}"), "2 patch-bad-quoting"),
        (format!("diff --git a/a b/b\n{names}{hunk}"), "1 patch-headers-disagree"),
        ("diff --git a/a b/b\nold mode 100644\nnew mode 100755\n".into(), "1 patch-headers-disagree"),
        ("diff --git a b\nold mode 100644\nnew mode 100755\n".into(), "1 patch-headers-disagree"),
        (format!("diff --git a/a\tb b/a\tb\n{names}{hunk}"), "1 patch-bad-quoting"),
        (format!("diff --git \"a/\\x\" b/a\n{names}{hunk}"), "1 patch-bad-quoting"),
        (format!("diff --git \"a/a b/a\n{names}{hunk}"), "1 patch-bad-quoting"),
        (format!("{a}--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+x\n"), "1 patch-headers-disagree"),
        (format!("{a}new file mode 100644\n{names}{hunk}"), "1 patch-headers-disagree"),
        (format!("{a}new file mode 100644\n--- /dev/null\n+++ b/a\n{hunk}"), "1 patch-headers-disagree"),
        (format!("{a}new file mode 100644\ndeleted file mode 100644\n"), "1 patch-headers-disagree"),
        (format!("{a}new file mode 100644\nold mode 100644\nnew mode 100755\n"), "1 patch-headers-disagree"),
        (format!("{a}old mode 100644\n{names}{hunk}"), "1 patch-headers-disagree"),
        (format!("{a}old mode 100644\nnew mode 100644\n"), "1 patch-headers-disagree"),
        (format!("{a}new file mode 100664\n"), "2 patch-bad-mode"),
        (format!("{a}new file mode 040000\n"), "2 patch-bad-mode"),
        (format!("{a}rename from a\nrename to a\n"), "1 patch-headers-disagree"),
        ("diff --git a/x b/y\nrename from x\n".into(), "1 patch-headers-disagree"),
        ("diff --git a/x b/y\nrename from x\ncopy to y\n".into(), "1 patch-headers-disagree"),
        ("diff --git a/x b/y\nrename from x\nrename to z\n".into(), "1 patch-headers-disagree"),
        (format!("diff --git a/x b/y\nrename from x\nrename to y\n--- a/z\n+++ b/y\n{hunk}"), "1 patch-headers-disagree"),
        (a.into(), "1 patch-empty"),
        (format!("{a}index 1111111..2222222 100644\n"), "1 patch-empty"),
        (format!("{a}{names}"), "1 patch-empty"),
        (format!("{MODIFY}{MODIFY}"), "9 patch-path-twice"),
        (format!("{MODIFY}diff --git a/a b/c\nrename from a\nrename to c\n"), "9 patch-path-twice"),
        ("diff --git a/x b/y\nrename from x\nrename to y\ndiff --git a/x b/z\nrename from x\nrename to z\n".into(), "4 patch-path-twice"),
        (format!("{a}{names}@@ -1 +1\n-a\n+b\n"), "4 patch-bad-hunk-header"),
        (format!("{a}{names}@@ -1 +1 @@x\n-a\n+b\n"), "4 patch-bad-hunk-header"),
        (format!("{a}{names}@@ -0,1 +1 @@\n-a\n+b\n"), "4 patch-bad-hunk-header"),
        (format!("{a}{names}@@ -1,18446744073709551617 +1 @@\n-a\n+b\n"), "4 patch-bad-hunk-header"),
        (format!("{a}{names}@@ -1,9999999999 +1 @@\n-a\n+b\n"), "4 patch-bad-hunk-header"),
        (format!("{a}{names}@@ -1,2147483648 +1 @@\n-a\n+b\n"), "7 patch-hunk-counts"),
        (format!("{a}{names}@@ -1,-1 +1 @@\n-a\n+b\n"), "4 patch-bad-hunk-header"),
        (format!("{a}{names}@@@ -1 -1 +1 @@@\n-a\n+b\n"), "4 patch-bad-hunk-header"),
        (format!("{a}{names}@@ -1,3 +1 @@\n-a\n+b\n"), "7 patch-hunk-counts"),
        (format!("{a}{names}@@ -1 +1 @@\n-a\n-b\n"), "6 patch-hunk-counts"),
        (format!("{a}{names}@@ -1 +1 @@\n-a\n+b\n+c\n"), "7 patch-hunk-counts"),
        (format!("{a}{names}@@ -1 +1 @@\n-a\nb\n"), "6 patch-hunk-counts"),
        (format!("{a}{names}@@ -1,2 +1,2 @@\n-a\n{MODIFY}"), "6 patch-hunk-counts"),
        (format!("{a}{names}@@ -1 +1 @@\n a\n"), "4 patch-empty"),
        (format!("{a}{names}@@ -1,0 +1,0 @@\n"), "4 patch-empty"),
        (format!("{a}{names}@@ -5 +5 @@\n-a\n+b\n@@ -1 +1 @@\n-a\n+b\n"), "7 patch-hunk-order"),
        (format!("{a}{names}@@ -1,2 +1,2 @@\n-a\n+b\n c\n@@ -2 +2 @@\n-c\n+d\n"), "8 patch-hunk-order"),
        (format!("{a}{names}@@ -1 +9 @@\n-a\n+b\n"), "4 patch-hunk-order"),
        (format!("{a}{names}@@ -1 +1,0 @@\n-a\n"), "4 patch-hunk-order"),
        (format!("{a}{names}{hunk}\\ No newline at end of file\n\\ No newline at end of file\n"), "8 patch-misplaced-marker"),
        (format!("{a}{names}@@ -1 +1 @@\n\\ No newline at end of file\n-a\n+b\n"), "5 patch-misplaced-marker"),
        (format!("{a}{names}{hunk}\\ No newline\n"), "7 patch-misplaced-marker"),
        (format!("{a}{names}@@ -1,2 +1 @@\n-a\n\\ No newline at end of file\n-b\n+b\n"), "7 patch-misplaced-marker"),
        (format!("{a}{names}{hunk}\\ No newline at end of file\n@@ -2 +2 @@\n-c\n+d\n"), "10 patch-misplaced-marker"),
        (format!("{a}GIT binary patch\nliteral x\n\n"), "3 patch-bad-binary"),
        (format!("{a}GIT binary patch\nliteral 1\nLc${{Nk\n"), "5 patch-bad-binary"),
    ];
    let wrong: Vec<_> = table
        .iter()
        .filter_map(|(patch, want)| {
            let got = code(patch);
            (got != *want).then(|| format!("want {want}, got {got}:\n{patch}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn paths_outside_the_repository_are_refused() {
    for path in [
        "../x",
        "/etc/x",
        ".git/hooks/pre-commit",
        "a/../../x",
        ".GIT/config",
        "sub/.git/x",
        "a//b",
        "C:/x",
        "git~1/x",
    ] {
        let patch = format!(
            "diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b\n"
        );
        assert_eq!(code(&patch), "1 patch-bad-path", "{path}");
        let rename = format!("diff --git a/{path} b/ok\nrename from {path}\nrename to ok\n");
        assert_eq!(code(&rename), "1 patch-bad-path", "{path}");
    }
    let latin = b"diff --git \"a/\\377\" \"b/\\377\"\nnew file mode 100644\n";
    assert_eq!(code(latin), "1 patch-path-not-utf8");
    let sections = |old: &str, new: &str| {
        format!(
            "diff --git a/x b/x\ndeleted file mode {old}\ndiff --git a/x b/x\nnew file mode {new}\n"
        )
    };
    for (old, new, expected) in [
        ("100644", "120000", "3 patch-type-change"),
        ("120000", "100755", "3 patch-type-change"),
        ("100644", "160000", "3 patch-type-change"),
        ("160000", "120000", "3 patch-type-change"),
        ("100644", "100755", "3 patch-path-twice"),
        ("120000", "120000", "3 patch-path-twice"),
    ] {
        assert_eq!(code(sections(old, new)), expected, "{old} {new}");
    }
    let nul = "diff --git \"a/x\\000y\" \"b/x\\000y\"\nnew file mode 100644\n";
    assert_eq!(code(nul), "1 patch-bad-path");
}

#[test]
fn size_is_limited_and_hostile_sizes_are_fast() {
    let huge = vec![b'x'; MAX_PATCH_BYTES as usize + 1];
    assert_eq!(code(&huge), "1 patch-too-large");
    let blanks = format!("diff --git {}\n", " b/".repeat(1_000_000));
    assert_eq!(code(&blanks), "1 patch-headers-disagree");
    let many = "+\n".repeat(1_000_000);
    let long = format!(
        "diff --git a/a b/a\nnew file mode 100644\n--- /dev/null\n+++ b/a\n@@ -0,0 +1,1000000 @@\n{many}"
    );
    assert_eq!(one(&long).added(), 1_000_000);
}

mod properties {
    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(raw in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&raw);
        }

        /// Cutting, doubling or changing a line of a good patch never gives one that says something else about its paths.
        #[test]
        fn damaged_patches_name_no_new_paths(at in 0usize..8, kind in 0usize..3, byte in any::<u8>()) {
            let mut lines: Vec<Vec<u8>> = MODIFY.lines().map(|line| line.as_bytes().to_vec()).collect();
            match kind {
                0 => { lines.remove(at); }
                1 => { let line = lines[at].clone(); lines.insert(at, line); }
                _ => { let len = lines[at].len(); lines[at][len / 2] = byte; }
            }
            let mut raw = lines.join(&b'\n');
            raw.push(b'\n');
            if let Ok(patch) = parse(&raw) {
                prop_assert_eq!(patch.files.len(), 1);
                prop_assert_eq!(patch.files[0].path.as_str(), "a");
            }
        }
    }
}
