//! `docs/conformance.md` has every row, says honestly where it stands, and names tests that exist.
//!
//! A test is named `crate::path::name`: the crate, any modules, and the function. It counts when a
//! function of that name under a test attribute stands in the crate, in a file that the middle of the
//! name leads to. A scenario folder `tests/scenarios/name/` counts as the test `crate::scenarios::name`.

use std::collections::{BTreeMap, BTreeSet};

use super::super::rule::{Report, Rule};
use super::super::source;
use super::super::workspace::Workspace;
use super::super::workspace::{SourceFile, short_name};

const TABLE: &str = "docs/conformance.md";

/// The families of rows with how many each has: `C01` to `C25` and so on.
const FAMILIES: &[(char, u8)] = &[
    ('C', 25),
    ('N', 16),
    ('X', 23),
    ('T', 18),
    ('R', 10),
    ('K', 18),
    ('A', 8),
    ('P', 8),
    ('S', 7),
    ('V', 6),
];

/// Checks the conformance table.
pub(in super::super) struct Conformance;

impl Rule for Conformance {
    fn name(&self) -> &'static str {
        "conformance"
    }

    fn check(&self, workspace: &Workspace, report: &mut Report<'_>) {
        let text = workspace.file(TABLE).map_or("", |file| file.text.as_str());
        let requested: BTreeSet<String> = FAMILIES
            .iter()
            .flat_map(|(family, count)| {
                (1..=*count).map(move |number| format!("{family}{number:02}"))
            })
            .collect();
        let tests = TestIndex::new(workspace);
        let mut seen = BTreeSet::new();
        for (at, line) in text.lines().enumerate() {
            let Some(row) = Row::read(line) else { continue };
            let mut say = |message: String| report(TABLE, at + 1, message);
            if !requested.contains(row.id) {
                say(format!("`{}` is no row of the requirements", row.id));
            } else if !seen.insert(row.id.to_owned()) {
                say(format!("`{}` has two rows", row.id));
            }
            check_row(&row, &tests, &mut say);
        }
        for missing in requested.difference(&seen) {
            report(TABLE, 1, format!("row `{missing}` is missing"));
        }
    }
}

/// One line of the table: `| id | row | status | tests | how a user sees it |`.
struct Row<'a> {
    id: &'a str,
    cells: Vec<&'a str>,
}

impl<'a> Row<'a> {
    /// `None` for a line that is not a row: its first cell is not a letter and two digits.
    fn read(line: &'a str) -> Option<Self> {
        let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
        let mut cells: Vec<&str> = inner.split('|').map(str::trim).collect();
        let id = (!cells.is_empty()).then(|| cells.remove(0))?;
        let is_id = matches!(id.as_bytes(), [letter, tens, ones]
            if letter.is_ascii_uppercase() && tens.is_ascii_digit() && ones.is_ascii_digit());
        is_id.then_some(Self { id, cells })
    }
}

fn check_row(row: &Row<'_>, tests: &TestIndex, say: &mut dyn FnMut(String)) {
    let id = row.id;
    let [_words, status, named, shown] = row.cells.as_slice() else {
        say(format!(
            "`{id}` has {} cells after its id: row, status, tests, how a user sees it",
            row.cells.len()
        ));
        return;
    };
    let named: Vec<&str> = named.split('`').skip(1).step_by(2).collect();
    match *status {
        "open" => {}
        "holds" | "partial" => {
            if named.is_empty() {
                say(format!(
                    "`{id}` is listed as `{status}` and names no test in backticks"
                ));
            }
            if shown.is_empty() {
                say(format!(
                    "`{id}` is listed as `{status}` and does not say how a user sees it"
                ));
            }
        }
        other => say(format!(
            "`{id}` has status `{other}`: it is one of holds, partial, open"
        )),
    }
    for name in named {
        if !tests.has(name) {
            say(format!(
                "`{id}` names the test `{name}`, which does not exist"
            ));
        }
    }
}

/// Every test function of the workspace.
#[derive(Default)]
struct TestIndex {
    /// Crate and function, with the parts that may stand between them: file stems, folders and modules.
    places: BTreeMap<(String, String), Vec<BTreeSet<String>>>,
}

impl TestIndex {
    fn new(workspace: &Workspace) -> Self {
        let mut index = Self::default();
        for file in workspace.rust_files() {
            if let Some(package) = workspace.package_of(file) {
                index.add_functions(package.short_name(), file);
            }
        }
        for path in workspace.paths() {
            let scenario = workspace.packages().iter().find_map(|package| {
                let rest = path
                    .strip_prefix(&package.folder)?
                    .strip_prefix("/tests/scenarios/")?;
                Some((
                    package.short_name().to_owned(),
                    rest.split_once('/')?.0.to_owned(),
                ))
            });
            if let Some(key) = scenario {
                index
                    .places
                    .entry(key)
                    .or_default()
                    .push(BTreeSet::from(["scenarios".to_owned()]));
            }
        }
        index
    }

    fn add_functions(&mut self, package: &str, file: &SourceFile) {
        let Ok(parsed) = file.parsed() else { return };
        let tokens = &parsed.tokens;
        let mut parts: Option<BTreeSet<String>> = None;
        for attribute in source::attributes(tokens) {
            let path = attribute.tokens.iter().take_while(|token| !token.is("("));
            if path.last().is_none_or(|word| !word.is("test")) {
                continue;
            }
            let function = tokens
                .iter()
                .skip(attribute.end)
                .skip_while(|token| !token.is("fn"))
                .nth(1);
            let Some(function) = function else { continue };
            let parts = parts.get_or_insert_with(|| {
                let from_path = file
                    .path
                    .split('/')
                    .map(|part| part.strip_suffix(".rs").unwrap_or(part));
                let modules = tokens.windows(2).filter_map(|two| match two {
                    [word, name] if word.is("mod") => Some(name.text.as_str()),
                    _ => None,
                });
                from_path.chain(modules).map(str::to_owned).collect()
            });
            self.places
                .entry((package.to_owned(), function.text.clone()))
                .or_default()
                .push(parts.clone());
        }
    }

    /// Whether `crate::path::name` is a test.
    fn has(&self, name: &str) -> bool {
        let parts: Vec<&str> = name.split("::").collect();
        let [package, middle @ .., function] = parts.as_slice() else {
            return false;
        };
        let package = short_name(&package.replace('_', "-")).to_owned();
        self.places
            .get(&(package, (*function).to_owned()))
            .is_some_and(|places| {
                places
                    .iter()
                    .any(|place| middle.iter().all(|part| place.contains(*part)))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::rule_findings;
    use super::super::super::workspace::Package;
    use super::*;

    fn table(change: impl Fn(&str) -> Option<String>) -> String {
        let ids = FAMILIES
            .iter()
            .flat_map(|(family, count)| (1..=*count).map(move |n| format!("{family}{n:02}")));
        let rows =
            ids.map(|id| change(&id).unwrap_or_else(|| format!("| {id} | words | open |  |  |")));
        format!(
            "| id | row | status | tests | how |\n|---|---|---|---|---|\n{}\n",
            rows.collect::<Vec<_>>().join("\n")
        )
    }

    fn findings_of(table: &str) -> Vec<String> {
        let files = [
            (TABLE, table),
            ("crates/a/src/lib.rs", "mod inner; fn plain() {}"),
            (
                "crates/a/src/inner.rs",
                "#[cfg(test)] mod tests { #[test] fn one() {} proptest! { #[test] fn many(x in 0..9) {} } }",
            ),
            (
                "crates/a/tests/whole.rs",
                "#[tokio::test(flavor = \"x\")] async fn two() {}",
            ),
            ("crates/a/tests/scenarios/003_empty/input.json", "{}"),
        ];
        rule_findings(
            &Conformance,
            &Workspace::from_files(&files, vec![Package::sample("crucible-a")]),
        )
    }

    fn said_of_row(id: &str, row: &str) -> Vec<String> {
        findings_of(&table(|other| (other == id).then(|| row.to_owned())))
    }

    #[test]
    fn a_whole_table_is_fine() {
        assert_eq!(findings_of(&table(|_| None)), [""; 0]);
        let row = "| T12 | words | holds | `a::inner::tests::one`, `crucible_a::inner::many`, `a::whole::two`, `a::scenarios::003_empty` | `crucible x` |";
        assert_eq!(said_of_row("T12", row), [""; 0]);
    }

    #[test]
    fn missing_doubled_and_unknown_rows_are_named() {
        assert_eq!(
            said_of_row("C25", ""),
            ["docs/conformance.md:1: row `C25` is missing"]
        );
        let findings = said_of_row(
            "C25",
            "| C24 | again | open |  |  |\n| Z99 | what | open |  |  |",
        );
        assert_eq!(findings.len(), 3, "{findings:?}");
    }

    #[test]
    fn claims_without_a_test_are_named() {
        for row in [
            "| T12 | words | done |  |  |",
            "| T12 | words | holds |  | `crucible x` |",
            "| T12 | words | holds | `a::inner::one` |  |",
            "| T12 | words | partial | a::inner::one, without backticks | x |",
            "| T12 | words | holds | `a::inner::three` | x |",
            "| T12 | words | holds | `a::elsewhere::one` | x |",
            "| T12 | words | holds | `b::inner::one` | x |",
            "| T12 | words | holds | `a::plain` | x |",
            "| T12 | words | open | `a::gone` |  |",
            "| T12 | words | open |",
        ] {
            assert_eq!(said_of_row("T12", row).len(), 1, "{row}");
        }
    }
}
