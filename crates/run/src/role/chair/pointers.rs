//! What failing gates point at, as files of the repository: the frames of their traces, the files of the failing tests, what
//! these import, and the names that they use.
//!
//! What always holds: the result depends on the sorted evidence and the content of the files alone, never on the order, the
//! times or the addresses of what a gate printed; few files are read, each up to a limit.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use crucible_model::{ByteLimit, RepoPath};
use crucible_pack::{Evidence, FileClass, ImportIndex, tested_name};
use crucible_patch::outline;
use crucible_repo::TreeReader;
use crucible_secrets::is_secret_file;
use crucible_verify::FailureEvidence;

/// How much of a file is read for its imports and its tests.
const READ: ByteLimit = ByteLimit(512 * 1024);

/// The most failing test files, and files that they import, that are looked into.
const MAX_TESTS: usize = 12;
const MAX_IMPORTED: usize = 60;

/// A printed name that fits more files than this points at none of them.
const MAX_FITTING: usize = 3;

/// The most names of failing tests and of what they use.
const MAX_HINTS: usize = 64;

/// The shortest title of a test that is looked for in its file, and the lines behind it that are looked into.
const LEAST_TITLE: usize = 8;
const BEHIND_TITLE: u64 = 10;

/// What failing gates point at.
#[derive(Debug, Default)]
pub(crate) struct Pointers {
    /// Files and how strongly.
    pub(crate) evidence: Evidence,
    /// Names to look for in files.
    pub(crate) hints: Vec<String>,
    /// The lines of frames by file.
    pub(crate) lines: HashMap<RepoPath, BTreeSet<u64>>,
    /// The plain names of the failing tests.
    pub(crate) tests: BTreeSet<String>,
}

impl Pointers {
    /// Resolves evidence against the tracked files `paths` of the work tree at `top`.
    pub(crate) fn new(top: &Path, failed: &FailureEvidence, paths: &[&RepoPath]) -> Self {
        let mut pointers = Self::default();
        if failed.is_empty() {
            return pointers;
        }
        let by_name = by_name(paths);
        let fitting = |printed: &str| fitting(&by_name, printed);
        for frame in &failed.frames {
            for path in fitting(&frame.file) {
                pointers.evidence.add_frame(path, frame.depth);
                pointers
                    .lines
                    .entry(path.clone())
                    .or_default()
                    .insert(frame.line);
                if FileClass::from_path(path) == FileClass::Test {
                    pointers.evidence.add_failing(path);
                }
            }
            // A function inside of a test is a hint as well as a test's own name.
            pointers.hints.extend(frame.function.clone());
        }
        for test in &failed.tests {
            for path in test.split([' ', ':', '>']).flat_map(&fitting) {
                pointers.evidence.add_failing(path);
            }
            // A group of tests is often called like what it tests, and its file as well.
            if let Some((group, _)) = test.split_once(" > ") {
                let of_group = paths.iter().filter(|path| {
                    FileClass::from_path(path) == FileClass::Test
                        && tested_name(path).eq_ignore_ascii_case(group)
                });
                of_group
                    .take(MAX_FITTING)
                    .for_each(|path| pointers.evidence.add_failing(path));
            }
            pointers.tests.extend(plain_name(test).map(str::to_owned));
        }
        pointers.hints.extend(pointers.tests.iter().cloned());
        for name in &failed.names {
            let last = name.rsplit(['.', ':']).find(|part| !part.is_empty());
            pointers.hints.extend(last.map(str::to_owned));
        }
        let titles: Vec<&str> = failed
            .tests
            .iter()
            .filter_map(|test| Some(test.rsplit_once(" > ")?.1))
            .collect();
        if let Ok(reader) = TreeReader::open(top) {
            pointers.follow(&reader, paths, &titles);
        }
        let mut seen = BTreeSet::new();
        pointers.hints.retain(|hint| seen.insert(hint.clone()));
        pointers.hints.truncate(MAX_HINTS);
        pointers
    }

    /// Follows the imports of the failing tests, and notes the names that the tests use.
    fn follow(&mut self, reader: &TreeReader, paths: &[&RepoPath], titles: &[&str]) {
        let index = ImportIndex::new(paths.iter().copied());
        let failing: Vec<RepoPath> = self
            .evidence
            .failing()
            .into_iter()
            .take(MAX_TESTS)
            .cloned()
            .collect();
        let mut used: BTreeMap<String, u64> = BTreeMap::new();
        let mut direct = BTreeSet::new();
        for path in &failing {
            let Some(text) = read(reader, path) else {
                continue;
            };
            direct.extend(index.imported(path, &text));
            // A test without a function has its title in the text, and what it does behind it.
            for at in titles
                .iter()
                .filter(|title| title.len() >= LEAST_TITLE)
                .filter_map(|title| text.find(title))
            {
                let line = text[..at].matches('\n').count() as u64 + 1;
                self.lines
                    .entry(path.clone())
                    .or_default()
                    .extend([line, line + BEHIND_TITLE]);
            }
            let lines = self.lines.get(path);
            for words in failing_functions(path, &text, &self.tests, lines) {
                names_used(words, &mut used);
            }
        }
        for path in &failing {
            direct.remove(path);
        }
        let mut through = BTreeSet::new();
        for path in direct.iter().take(MAX_IMPORTED) {
            self.evidence.add_import(path, 0);
            if let Some(text) = read(reader, path) {
                through.extend(index.imported(path, &text));
            }
        }
        for path in through.difference(&direct) {
            self.evidence.add_import(path, 1);
        }
        let mut used: Vec<(String, u64)> = used.into_iter().collect();
        used.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        self.hints.extend(used.into_iter().map(|(name, _)| name));
    }
}

/// Which of the tracked files `paths` a file imports, by what it holds in the work tree at `top`. The index is made when it is
/// asked for first.
pub(crate) fn imports_of<'a>(
    top: &'a Path,
    paths: &'a [&'a RepoPath],
) -> impl Fn(&RepoPath) -> BTreeSet<RepoPath> + 'a {
    let index = OnceCell::new();
    move |path| {
        let index = index.get_or_init(|| {
            (
                ImportIndex::new(paths.iter().copied()),
                TreeReader::open(top).ok(),
            )
        });
        let text = index.1.as_ref().and_then(|reader| read(reader, path));
        text.map(|text| index.0.imported(path, &text))
            .unwrap_or_default()
    }
}

/// The tracked files by their last name.
fn by_name<'p>(paths: &[&'p RepoPath]) -> HashMap<&'p str, Vec<&'p RepoPath>> {
    let mut by_name: HashMap<&str, Vec<&RepoPath>> = HashMap::new();
    for path in paths {
        by_name.entry(path.file_name()).or_default().push(path);
    }
    by_name
}

/// The files that a printed name may mean: the one of this path, else those whose path ends with it or that it ends with.
fn fitting<'p>(by_name: &HashMap<&str, Vec<&'p RepoPath>>, printed: &str) -> Vec<&'p RepoPath> {
    let printed = printed.trim_start_matches("./");
    let name = printed.rsplit('/').next().unwrap_or_default();
    let same = by_name.get(name).map(Vec::as_slice).unwrap_or_default();
    if let Some(exact) = same.iter().find(|path| path.as_str() == printed) {
        return vec![exact];
    }
    let ends = |long: &str, short: &str| {
        long.strip_suffix(short)
            .is_some_and(|rest| rest.ends_with('/'))
    };
    let fits: Vec<&RepoPath> = same
        .iter()
        .copied()
        .filter(|path| ends(path.as_str(), printed) || ends(printed, path.as_str()))
        .collect();
    if fits.len() > MAX_FITTING {
        Vec::new()
    } else {
        fits
    }
}

fn read(reader: &TreeReader, path: &RepoPath) -> Option<String> {
    if is_secret_file(path.as_str()) {
        return None;
    }
    let mut bytes = Vec::new();
    reader.read_prefix(path, READ, &mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The function of a test as its runner names it: `test_b` of `tests/test_a.py::T::test_b[1-2]`.
fn plain_name(test: &str) -> Option<&str> {
    let name = test.split(['[', '(', ' ']).next()?;
    let name = name.rsplit("::").next()?;
    let name = name.split('/').next()?;
    let is_name = name.len() >= 3 && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    is_name.then_some(name)
}

/// The texts of the functions that failed, by their names or by a frame in them.
fn failing_functions<'t>(
    path: &RepoPath,
    text: &'t str,
    tests: &BTreeSet<String>,
    lines: Option<&BTreeSet<u64>>,
) -> Vec<&'t str> {
    const AROUND: u64 = 12;
    let starts: Vec<usize> = std::iter::once(0)
        .chain(text.match_indices('\n').map(|(at, _)| at + 1))
        .collect();
    let between = |from: u64, to: u64| {
        let at = |line: u64| starts.get(line as usize).copied().unwrap_or(text.len());
        text.get(at(from.saturating_sub(1))..at(to))
            .unwrap_or_default()
    };
    let mut found = Vec::new();
    for item in outline(path, text).unwrap_or_default() {
        if item.names.iter().any(|name| tests.contains(name)) {
            found.push(between(item.start, item.end));
        }
    }
    let around = lines.into_iter().flatten();
    found.extend(around.map(|line| between(line.saturating_sub(AROUND), line.saturating_add(3))));
    found
}

/// Counts the names that a test uses: what is called, and what stands behind a dot.
fn names_used(text: &str, used: &mut BTreeMap<String, u64>) {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = text;
    let mut before = ' ';
    while let Some(start) = rest.find(is_part) {
        before = rest[..start].chars().next_back().unwrap_or(before);
        rest = &rest[start..];
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let is_member_or_call = before == '.'
            || after.starts_with(['(', '.'])
            || (name.contains('_') && !after.starts_with('='));
        if is_member_or_call && name.len() >= 4 && name.len() <= 64 && !is_of_testing(name) {
            *used.entry(name.to_owned()).or_default() += 1;
        }
        before = name.chars().next_back().unwrap_or(' ');
        rest = after;
    }
}

/// What every test uses whatever it tests.
fn is_of_testing(name: &str) -> bool {
    const NAMES: [&str; 32] = [
        "Error",
        "Errorf",
        "Equal",
        "Fatal",
        "Fatalf",
        "assert",
        "assertEqual",
        "assertRaises",
        "assert_eq",
        "deepEqual",
        "describe",
        "done",
        "equal",
        "expect",
        "format",
        "func",
        "include",
        "invoke",
        "isinstance",
        "json",
        "length",
        "mock",
        "only",
        "parametrize",
        "print",
        "pytest",
        "raises",
        "self",
        "should",
        "strictEqual",
        "toBe",
        "toEqual",
    ];
    NAMES.contains(&name) || name.starts_with("test")
}

#[cfg(test)]
mod tests;
