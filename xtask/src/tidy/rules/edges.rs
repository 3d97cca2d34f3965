//! The edges between crates: the table in ARCHITECTURE.md equals what cargo says, and every edge points down.
//!
//! The table is a fenced `edges` block, one `crate: dep dep` a line. Dependencies of tests are limited
//! to `testkit` and to what the crate depends on anyway.

use std::collections::{BTreeMap, BTreeSet};

use super::super::rule::{Report, Rule};
use super::super::workspace::Workspace;
use super::super::workspace::{Need, Package, short_name};

const TABLE: &str = "ARCHITECTURE.md";

/// Each crate with its layer; an edge points to a lower one, so capabilities (4) never import each other.
const LAYERS: &[(&str, u8)] = &[
    ("model", 0),
    ("secrets", 1),
    ("patch", 1),
    ("pack", 1),
    ("evidence", 1),
    ("host", 1),
    ("settings", 2),
    ("ledger", 2),
    ("sandbox", 2),
    ("agents", 3),
    ("llm", 3),
    ("repo", 3),
    ("verify", 3),
    ("attest", 3),
    ("terminal", 3),
    ("council", 4),
    ("crawl", 4),
    ("spec", 4),
    ("run", 4),
    ("forge", 4),
    ("eval", 4),
    ("tui", 6),
    ("view", 5),
    ("mcp", 6),
    ("serve", 6),
    ("trace", 6),
    ("cli", 7),
    ("testkit", 8),
    ("xtask", 8),
];

/// Edges within layer 3 that the design names: to a crate that is the base of the other.
const BESIDE: &[(&str, &str)] = &[("agents", "llm")];

/// Compares the table with `cargo metadata`.
pub(in super::super) struct Edges;

impl Rule for Edges {
    fn name(&self) -> &'static str {
        "edges"
    }

    fn check(&self, workspace: &Workspace, report: &mut Report<'_>) {
        let text = workspace.file(TABLE).map_or("", |file| file.text.as_str());
        let table = read_table(text, report);
        let crates: BTreeMap<&str, &Package> = workspace
            .packages()
            .iter()
            .map(|package| (package.short_name(), package))
            .collect();
        for (name, row) in &table {
            if !crates.contains_key(name) {
                report(
                    TABLE,
                    row.line,
                    format!("`{name}` has a row and is not a crate of the workspace"),
                );
            }
        }
        for (name, package) in &crates {
            let declared = edges_of(package, Need::Product, &crates);
            match table.get(name) {
                None => report(
                    TABLE,
                    1,
                    format!("`{name}` has no row in the `edges` block"),
                ),
                Some(row) => compare(name, row, &declared, report),
            }
            check_direction(name, package, &declared, report);
            for dependency in edges_of(package, Need::Test, &crates) {
                if dependency != "testkit" && !declared.contains(dependency) {
                    let message = format!(
                        "the tests of `{name}` depend on `{dependency}`: only `testkit` is free"
                    );
                    report(&package.manifest(), 1, message);
                }
            }
        }
    }
}

struct Row<'a> {
    line: usize,
    edges: BTreeSet<&'a str>,
}

fn read_table<'a>(text: &'a str, report: &mut Report<'_>) -> BTreeMap<&'a str, Row<'a>> {
    let mut table = BTreeMap::new();
    let mut inside = false;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with("```") {
            inside = line == "```edges";
        } else if inside && !line.is_empty() {
            let Some((name, edges)) = line.split_once(':') else {
                report(TABLE, at + 1, format!("`{line}` is no `crate: dep dep`"));
                continue;
            };
            let row = Row {
                line: at + 1,
                edges: edges.split_whitespace().collect(),
            };
            if table.insert(name.trim(), row).is_some() {
                report(TABLE, at + 1, format!("`{}` has two rows", name.trim()));
            }
        }
    }
    table
}

fn edges_of<'a>(
    package: &'a Package,
    need: Need,
    crates: &BTreeMap<&str, &Package>,
) -> BTreeSet<&'a str> {
    package
        .dependencies
        .iter()
        .filter(|dependency| dependency.kind == need)
        .map(|dependency| short_name(&dependency.name))
        .filter(|name| {
            crates
                .get(name)
                .is_some_and(|other| other.name != package.name)
        })
        .collect()
}

fn compare(name: &str, row: &Row<'_>, declared: &BTreeSet<&str>, report: &mut Report<'_>) {
    for edge in declared.difference(&row.edges) {
        report(
            TABLE,
            row.line,
            format!("`{name}` depends on `{edge}`, and the row does not allow it"),
        );
    }
    for edge in row.edges.difference(declared) {
        report(
            TABLE,
            row.line,
            format!("the row says `{name}` depends on `{edge}`, and cargo does not"),
        );
    }
}

fn check_direction(
    name: &str,
    package: &Package,
    declared: &BTreeSet<&str>,
    report: &mut Report<'_>,
) {
    let Some(own) = layer(name) else {
        report(
            &package.manifest(),
            1,
            format!("`{name}` has no layer: give it one in the edges rule"),
        );
        return;
    };
    for edge in declared {
        let is_beside = BESIDE.contains(&(name, edge));
        if !is_beside && layer(edge).is_some_and(|below| below >= own) {
            let message =
                format!("`{name}` (layer {own}) depends on `{edge}`, which is not below it");
            report(&package.manifest(), 1, message);
        }
    }
}

fn layer(name: &str) -> Option<u8> {
    LAYERS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, layer)| *layer)
}

#[cfg(test)]
mod tests {
    use super::super::super::rule_findings;
    use super::*;

    fn findings_of(table: &str, packages: Vec<Package>) -> Vec<String> {
        let text = format!("# Title\n```edges\n{table}\n```\n");
        rule_findings(&Edges, &Workspace::from_files(&[(TABLE, &text)], packages))
    }

    fn sample() -> Vec<Package> {
        vec![
            Package::sample("crucible-model").needs("serde"),
            Package::sample("crucible-host")
                .needs("crucible-model")
                .tests_need("crucible-testkit"),
            Package::sample("crucible-testkit"),
            Package::sample("crucible").needs("crucible-host"),
        ]
    }

    #[test]
    fn a_table_that_equals_cargo_is_fine() {
        assert_eq!(
            findings_of("model:\nhost: model\ntestkit:\ncli: host", sample()),
            [""; 0]
        );
    }

    #[test]
    fn differences_are_named_both_ways() {
        let findings = findings_of("model: host\nhost:\ncli: host\ngone: model", sample());
        assert_eq!(
            findings,
            [
                "ARCHITECTURE.md:1: `testkit` has no row in the `edges` block",
                "ARCHITECTURE.md:3: the row says `model` depends on `host`, and cargo does not",
                "ARCHITECTURE.md:4: `host` depends on `model`, and the row does not allow it",
                "ARCHITECTURE.md:6: `gone` has a row and is not a crate of the workspace",
            ]
        );
    }

    #[test]
    fn capabilities_never_import_each_other_despite_table() {
        let packages = vec![
            Package::sample("crucible-run").needs("crucible-council"),
            Package::sample("crucible-council"),
        ];
        let findings = findings_of("run: council\ncouncil:", packages);
        assert_eq!(
            findings,
            [
                "crates/run/Cargo.toml:1: `run` (layer 4) depends on `council`, which is not below it"
            ]
        );
    }

    #[test]
    fn crate_needs_layer_and_tests_no_sideways_edge() {
        let packages = vec![
            Package::sample("crucible-surprise"),
            Package::sample("crucible-pack").tests_need("crucible-patch"),
            Package::sample("crucible-patch"),
        ];
        let findings = findings_of("surprise:\npack:\npatch:\nbroken row", packages);
        assert_eq!(
            findings,
            [
                "ARCHITECTURE.md:6: `broken row` is no `crate: dep dep`",
                "crates/pack/Cargo.toml:1: the tests of `pack` depend on `patch`: only `testkit` is free",
                "crates/surprise/Cargo.toml:1: `surprise` has no layer: give it one in the edges rule",
            ]
        );
    }
}
