//! Where a change may add without touching what is there: new files beside what it changes, tests, a line in the changelog.

use std::collections::BTreeSet;

use crucible_model::{PathPrefix, PathRole, PathRoles, RepoPath};
use crucible_pack::FileClass;
use crucible_patch::{RELEASE_NOTES, is_test_path};

use super::{Tree, is_guarded};

/// The most places that a plan opens for additions.
const MAX_PLACES: usize = 40;

/// Directories of documents.
const DOCUMENTS: [&str; 3] = ["doc", "docs", "documentation"];

/// The places that a change of these files may add to. `scope` holds files and directories.
pub(crate) fn additions(
    scope: &[PathPrefix],
    tests: &[RepoPath],
    tree: &Tree<'_>,
) -> Vec<PathPrefix> {
    let mut places: Vec<String> = Vec::new();
    let mut add = |place: &str| {
        let covered = places.iter().any(|known| {
            place
                .strip_prefix(known.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        if !place.is_empty() && !covered && places.len() < MAX_PLACES {
            places.push(place.to_owned());
        }
    };
    let scope: Vec<String> = scope
        .iter()
        .map(|place| place.to_string().trim_end_matches('/').to_owned())
        .collect();
    let files: Vec<RepoPath> = scope
        .iter()
        .filter(|place| !tree.has_directory(place))
        .filter_map(|place| place.parse().ok())
        .collect();
    let sources: Vec<&RepoPath> = files
        .iter()
        .filter(|path| FileClass::from_path(path) == FileClass::Source)
        .collect();
    tests.iter().for_each(|path| add(path.as_str()));
    for directory in test_directories(&scope, tree) {
        add(directory);
    }
    for place in sources
        .iter()
        .map(|path| path.directory())
        .collect::<BTreeSet<_>>()
    {
        if is_free(place, tree) {
            add(place);
        }
        // Tests that stand beside what they test.
        tree.files_in(place)
            .filter(|path| is_test(path))
            .for_each(|path| add(path.as_str()));
    }
    for path in &sources {
        predicted_tests(path, tree)
            .iter()
            .for_each(|path| add(path));
    }
    for directory in RELEASE_NOTES
        .iter()
        .filter(|directory| tree.has_directory(directory))
    {
        add(directory);
    }
    let directories = DOCUMENTS
        .into_iter()
        .filter(|directory| tree.has_directory(directory));
    let pages = tree
        .files_in("")
        .filter(|path| is_of_every_change(path))
        .map(RepoPath::as_str);
    let on_the_way: BTreeSet<&str> = sources
        .iter()
        .flat_map(|path| parent_directories(path))
        .collect();
    let of_packages = on_the_way.into_iter().flat_map(|place| {
        let pages = tree.files_in(place);
        pages
            .filter(|path| is_of_every_change(path))
            .map(RepoPath::as_str)
    });
    let mut documents: Vec<&str> = directories.chain(pages).chain(of_packages).collect();
    keep_unread(&mut documents, tree);
    documents.into_iter().for_each(add);
    places
        .iter()
        .filter_map(|place| place.parse().ok())
        .collect()
}

/// Leaves out the documents that a test names: what it compares with them would follow the change. What only sets tools up, as a `noxfile.py`
/// does, compares nothing.
fn keep_unread(documents: &mut Vec<&str>, tree: &Tree<'_>) {
    let may_read = |path: &RepoPath| is_test(path) || path.file_name() == "conftest.py";
    for path in tree.paths.iter().filter(|path| may_read(path)) {
        if documents.is_empty() {
            return;
        }
        let text = tree.text(path);
        let is_named = |name: &str| memchr::memmem::find(&text, name.as_bytes()).is_some();
        documents.retain(|document| match document.contains('.') {
            true if document.contains('/') => {
                !is_named(document.rsplit('/').next().unwrap_or(document))
            }
            true => !names_file(&text, document, tree),
            false => !["{}/", "\"{}\"", "'{}'"]
                .iter()
                .any(|form| is_named(&form.replace("{}", document))),
        });
    }
}

/// Whether a text names a file at the top of the repository, and not one of this name in a place that is not there, as an address does.
fn names_file(text: &[u8], name: &str, tree: &Tree<'_>) -> bool {
    let is_part = |byte: &&u8| !byte.is_ascii_whitespace() && !b"\"'`(),<>".contains(*byte);
    memchr::memmem::find_iter(text, name.as_bytes()).any(|at| {
        let before = text.get(..at).unwrap_or_default();
        let length = before.iter().rev().take_while(is_part).count();
        let place =
            String::from_utf8_lossy(before.get(at - length..).unwrap_or_default()).into_owned();
        let steps = place
            .trim_end_matches('/')
            .split('/')
            .filter(|step| ![".", ".."].contains(step));
        let plain: Vec<&str> = steps.collect();
        let is_plain = |step: &&str| {
            step.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte))
        };
        !place.ends_with('/')
            || !plain.iter().all(is_plain)
            || plain.is_empty()
            || tree.has_directory(&plain.join("/"))
    })
}

/// Whether the file is the changelog, the front page or the list of authors, which any change may have to touch.
fn is_of_every_change(path: &RepoPath) -> bool {
    let name = path.file_name().to_ascii_lowercase();
    let stem = name.split('.').next().unwrap_or_default();
    const STEMS: [&str; 11] = [
        "authors",
        "changelog",
        "changes",
        "contributors",
        "credits",
        "history",
        "news",
        "readme",
        "release-notes",
        "release_notes",
        "thanks",
    ];
    PathRoles::from_path(path).has(PathRole::Document) && STEMS.contains(&stem)
}

/// A test that a runner runs, and not its settings.
fn is_test(path: &RepoPath) -> bool {
    is_test_path(path) && !is_guarded(path)
}

/// The topmost directories of tests that belong to what lies beside them.
fn test_directories<'a>(scope: &[String], tree: &Tree<'a>) -> Vec<&'a str> {
    let is_test_directory = |directory: &str| {
        // A file of a neutral name tells whether it is the directory that makes it a test.
        format!("{directory}/x")
            .parse::<RepoPath>()
            .is_ok_and(|path| is_test(&path))
    };
    let parent = |directory: &str| {
        directory
            .rsplit_once('/')
            .map_or("", |(at, _)| at)
            .to_owned()
    };
    let mut found: Vec<&str> = Vec::new();
    for directory in tree
        .directories()
        .filter(|directory| is_test_directory(directory))
    {
        let above = parent(directory);
        let is_topmost = above.is_empty() || !is_test_directory(&above);
        let is_near = scope
            .iter()
            .any(|place| above.is_empty() || place.starts_with(&format!("{above}/")));
        if is_topmost && is_near {
            found.push(directory);
        }
    }
    found
}

/// Whether a new source in a directory can only be found by who looks for it there: a module of Python at the beginning of a
/// search path could take the place of an installed one.
fn is_free(directory: &str, tree: &Tree<'_>) -> bool {
    let python = tree
        .files_in(directory)
        .any(|path| path.extension() == Some("py"));
    !directory.is_empty() && (!python || tree.has(&format!("{directory}/__init__.py")))
}

/// The names that the test of a source has where it stands beside it.
fn predicted_tests(path: &RepoPath, tree: &Tree<'_>) -> Vec<String> {
    let directory = path.directory();
    let Some((stem, extension)) = path.file_name().rsplit_once('.') else {
        return Vec::new();
    };
    let names = match extension {
        "go" => vec![format!("{stem}_test.go")],
        "py" => vec![format!("test_{stem}.py")],
        "js" | "jsx" | "mjs" | "cjs" | "ts" | "tsx" | "mts" | "cts" => {
            vec![
                format!("{stem}.test.{extension}"),
                format!("{stem}.spec.{extension}"),
            ]
        }
        _ => Vec::new(),
    };
    // Where tests have a directory of their own, none stands beside its source.
    let has_own = tree.directories().any(|directory| {
        format!("{directory}/x")
            .parse::<RepoPath>()
            .is_ok_and(|path| is_test(&path))
    });
    if has_own && extension == "py" {
        return Vec::new();
    }
    let place = |name: &String| {
        if directory.is_empty() {
            name.clone()
        } else {
            format!("{directory}/{name}")
        }
    };
    names.iter().map(place).collect()
}

/// The directories on the way to a file, the top aside.
fn parent_directories(path: &RepoPath) -> impl Iterator<Item = &str> {
    std::iter::successors(path.as_str().rsplit_once('/'), |(directory, _)| {
        directory.rsplit_once('/')
    })
    .map(|(directory, _)| directory)
}
