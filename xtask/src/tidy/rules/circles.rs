//! Files of a crate import each other in small circles at most.
//!
//! A circle is a set of files each of which leads to each other one by imports. A reader has to know all of them to understand one, so a
//! circle has at most [`MAX_FILES`] files. A name that a module exports from one of its children counts as the child's.
//! `use super::*` imports the module above.

use std::collections::{BTreeMap, BTreeSet};

use super::super::rule::{Report, Rule};
use super::super::source::{Kind, Path, Token, paths};
use super::super::workspace::Workspace;

/// The most files that may import each other in a circle.
const MAX_FILES: usize = 6;

/// Larger circles that are still there, by a file of each, and how many files they have. The number may only go down.
const KNOWN: [(&str, usize); 0] = [];

/// Names the files of a circle that is too large.
pub(in super::super) struct Circles;

/// A module, by its path in the crate; the root is empty.
type Module = Vec<String>;

/// The files of a crate by their modules: the path and the tokens without the tests.
type Files<'f> = BTreeMap<Module, (&'f str, &'f [Token])>;

impl Rule for Circles {
    fn name(&self) -> &'static str {
        "circles"
    }

    fn check(&self, workspace: &Workspace, report: &mut Report<'_>) {
        let mut crates: BTreeMap<&str, Files<'_>> = BTreeMap::new();
        for (package, file, parsed) in workspace.product_code() {
            if let Some(module) = module_of(&file.path) {
                crates
                    .entry(package.short_name())
                    .or_default()
                    .insert(module, (file.path.as_str(), parsed.product.as_slice()));
            }
        }
        for files in crates.values() {
            let graph = graph_of(files);
            for circle in circles(&graph)
                .into_iter()
                .filter(|circle| circle.len() > MAX_FILES)
            {
                let names: Vec<&str> = circle.iter().map(|module| files[module].0).collect();
                let known = KNOWN.iter().find(|(name, _)| names.contains(name));
                if known.is_some_and(|(_, most)| names.len() <= *most) {
                    continue;
                }
                let message = format!(
                    "{} files import each other in a circle, and at most {MAX_FILES} may; move what the lower ones need to a file of its own: {}",
                    names.len(),
                    names.join(", ")
                );
                report(names[0], 1, message);
            }
        }
    }
}

/// `crates/a/src/b/mod.rs` is the module `b`; a file outside of `src` is not a module.
fn module_of(path: &str) -> Option<Module> {
    let (_, below) = path.split_once("/src/")?;
    let mut module: Module = below
        .strip_suffix(".rs")?
        .split('/')
        .map(str::to_owned)
        .collect();
    if module
        .last()
        .is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str()))
    {
        module.pop();
    }
    Some(module)
}

/// Which module imports which.
fn graph_of(files: &Files<'_>) -> BTreeMap<Module, BTreeSet<Module>> {
    let exports: BTreeMap<(Module, String), Module> = files
        .iter()
        .flat_map(|(module, (_, tokens))| {
            exported(tokens).into_iter().filter_map(|(path, name)| {
                let (target, rest) = resolve(module, &path, files)?;
                (!rest.is_empty() && target != *module).then(|| ((module.clone(), name), target))
            })
        })
        .collect();
    let imports = |module: &Module, tokens: &[Token]| -> BTreeSet<Module> {
        let exported: Vec<(usize, usize)> = export_spans(tokens);
        let is_export = |path: &Path| {
            exported
                .iter()
                .any(|(start, end)| (*start..*end).contains(&path.end))
        };
        paths(tokens)
            .iter()
            .filter(|path| {
                (path.is_glob || is_import(&path.segments))
                    && !is_export(path)
                    && !is_visibility(path, tokens)
            })
            .filter_map(|path| {
                let (mut target, mut rest) = resolve(module, &path.segments, files)?;
                while let Some(next) = rest
                    .first()
                    .and_then(|name| exports.get(&(target.clone(), name.clone())))
                {
                    target = next.clone();
                    rest.remove(0);
                }
                (target != *module).then_some(target)
            })
            .collect()
    };
    files
        .iter()
        .map(|(module, (_, tokens))| (module.clone(), imports(module, tokens)))
        .collect()
}

/// The module that a path of `module` leads to, and what of the path names something in it; `None` for another crate's.
fn resolve(module: &Module, path: &[String], files: &Files<'_>) -> Option<(Module, Vec<String>)> {
    let mut base = module.clone();
    let mut rest = path;
    match rest.first()?.as_str() {
        "crate" => {
            base.clear();
            rest = &rest[1..];
        }
        "self" => rest = &rest[1..],
        "super" => {
            while rest.first().is_some_and(|word| word == "super") {
                base.pop();
                rest = &rest[1..];
            }
        }
        child => {
            base.push(child.to_owned());
            if !files.contains_key(&base) {
                return None;
            }
            rest = &rest[1..];
        }
    }
    while let Some(next) = rest.first() {
        base.push(next.clone());
        if !files.contains_key(&base) {
            base.pop();
            break;
        }
        rest = &rest[1..];
    }
    files.contains_key(&base).then(|| (base, rest.to_vec()))
}

/// Whether a path of more than one segment names something: `pub(in super::super)` only names a place.
fn is_import(segments: &[String]) -> bool {
    let is_place = |word: &String| ["crate", "self", "super"].contains(&word.as_str());
    segments.len() > 1 && !segments.iter().all(is_place)
}

/// Whether a path is that of `pub(in crate::a)`, which imports nothing.
fn is_visibility(path: &Path, tokens: &[Token]) -> bool {
    let start = path.end.checked_sub(3 * path.segments.len() - 2);
    let before = start.and_then(|start| tokens.get(start.checked_sub(3)?..start));
    before.is_some_and(|before| {
        before
            .iter()
            .zip(["pub", "(", "in"])
            .all(|(token, word)| token.is(word))
    })
}

/// Where the `pub use` items of a file begin and end among its tokens.
fn export_spans(tokens: &[Token]) -> Vec<(usize, usize)> {
    let is_public = |at: usize| match at.checked_sub(1).and_then(|before| tokens.get(before)) {
        Some(before) if before.kind == Kind::Close => tokens[..at]
            .iter()
            .rposition(|token| token.is("pub"))
            .is_some_and(|public| at - public <= 6),
        Some(before) => before.is("pub"),
        None => false,
    };
    let uses = tokens
        .iter()
        .enumerate()
        .filter(|(at, token)| token.is("use") && is_public(*at));
    uses.map(|(at, _)| {
        let end = tokens[at..]
            .iter()
            .position(|token| token.is(";"))
            .map_or(tokens.len(), |end| at + end);
        (at, end + 1)
    })
    .collect()
}

/// The paths that a file exports, and the name of each.
fn exported(tokens: &[Token]) -> Vec<(Vec<String>, String)> {
    export_spans(tokens)
        .into_iter()
        .flat_map(|(start, end)| {
            let item = &tokens[start + 1..end];
            paths(item)
                .into_iter()
                .filter(|path| path.segments.len() > 1)
                .map(|path| {
                    let alias = item
                        .get(path.end)
                        .filter(|token| token.is("as"))
                        .and_then(|_| item.get(path.end + 1));
                    let name = alias.map_or_else(
                        || path.segments.last().cloned().unwrap_or_default(),
                        |alias| alias.text.clone(),
                    );
                    (path.segments, name)
                })
        })
        .collect()
}

/// The sets of modules that lead to each other, by Tarjan's algorithm.
fn circles(graph: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<Vec<Module>> {
    let mut search = Search {
        graph,
        numbers: BTreeMap::new(),
        lowest: BTreeMap::new(),
        open: Vec::new(),
        found: Vec::new(),
    };
    for module in graph.keys() {
        if !search.numbers.contains_key(module) {
            search.visit(module);
        }
    }
    search.found
}

struct Search<'g> {
    graph: &'g BTreeMap<Module, BTreeSet<Module>>,
    numbers: BTreeMap<Module, usize>,
    lowest: BTreeMap<Module, usize>,
    open: Vec<Module>,
    found: Vec<Vec<Module>>,
}

impl Search<'_> {
    fn visit(&mut self, module: &Module) {
        let number = self.numbers.len();
        self.numbers.insert(module.clone(), number);
        let mut lowest = number;
        self.open.push(module.clone());
        for next in self.graph.get(module).into_iter().flatten() {
            if !self.numbers.contains_key(next) {
                self.visit(next);
                lowest = lowest.min(self.lowest[next]);
            } else if self.open.contains(next) {
                lowest = lowest.min(self.numbers[next]);
            }
        }
        self.lowest.insert(module.clone(), lowest);
        if lowest == number {
            let start = self
                .open
                .iter()
                .position(|open| open == module)
                .unwrap_or_default();
            let mut circle = self.open.split_off(start);
            circle.sort();
            self.found.push(circle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::rule_findings;
    use super::super::super::workspace::Package;
    use super::*;

    fn found(files: &[(String, String)]) -> Vec<String> {
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        rule_findings(
            &Circles,
            &Workspace::from_files(&files, vec![Package::sample("crucible-a")]),
        )
    }

    /// A crate of `count` files, each of which imports the next one, and the last one the first.
    fn ring(count: usize, import: impl Fn(usize) -> String) -> Vec<(String, String)> {
        let mods: String = (0..count).map(|at| format!("mod m{at};")).collect();
        let file = |at: usize| {
            (
                format!("crates/a/src/m{at}.rs"),
                format!("{}\nstruct S{at};", import((at + 1) % count)),
            )
        };
        [("crates/a/src/lib.rs".to_owned(), mods)]
            .into_iter()
            .chain((0..count).map(file))
            .collect()
    }

    #[test]
    fn circle_of_seven_files_is_reported_once() {
        let seven = found(&ring(7, |next| format!("use crate::m{next}::S{next};")));
        assert_eq!(seven.len(), 1, "{seven:?}");
        assert!(
            seven[0].starts_with("crates/a/src/m0.rs:1: 7 files import each other"),
            "{seven:?}"
        );
        let grouped = found(&ring(7, |next| {
            format!("use super::{{m{next}::{{S{next} as T}}}};")
        }));
        assert_eq!(grouped.len(), 1, "{grouped:?}");
        let all_names = found(&ring(7, |next| format!("use crate::m{next}::*;")));
        assert_eq!(all_names.len(), 1, "{all_names:?}");
        let in_code = found(&ring(7, |next| {
            format!("fn f(_: crate::m{next}::S{next}) {{}}")
        }));
        assert_eq!(in_code.len(), 1, "{in_code:?}");
    }

    #[test]
    fn small_circles_chains_tests_and_comments_are_fine() {
        assert_eq!(
            found(&ring(6, |next| format!("use crate::m{next}::S{next};"))),
            [""; 0]
        );
        let chain = |next: usize| {
            if next == 0 {
                String::new()
            } else {
                format!("use crate::m{next}::S{next};")
            }
        };
        assert_eq!(found(&ring(9, chain)), [""; 0]);
        let tests = |next: usize| {
            format!(
                "#[cfg(test)] mod tests {{ use crate::m{next}::S{next}; }} // crate::m{next}::S{next}"
            )
        };
        assert_eq!(found(&ring(9, tests)), [""; 0]);
        let visibility = |next: usize| format!("pub(in crate::m{next}) fn f() {{}}");
        assert_eq!(found(&ring(9, visibility)), [""; 0]);
    }

    /// A module of six children that import it by `*`, and that itself imports each of them.
    #[test]
    fn glob_of_parent_is_an_import() {
        let module = |child: &str| {
            let mods: String = (0..6)
                .map(|at| format!("mod m{at}; use m{at}::S;"))
                .collect();
            let child = |at| (format!("crates/a/src/top/m{at}.rs"), child.to_owned());
            let own = [
                ("crates/a/src/lib.rs".to_owned(), "mod top;".to_owned()),
                ("crates/a/src/top/mod.rs".to_owned(), mods),
            ];
            found(&own.into_iter().chain((0..6).map(child)).collect::<Vec<_>>())
        };
        let by_glob = module("use super::*; pub struct S;");
        assert_eq!(by_glob.len(), 1, "{by_glob:?}");
        assert_eq!(module("use super::{std::*, *}; pub struct S;").len(), 1);
        assert_eq!(module("pub struct S;"), [""; 0]);
        let in_tests = "#[cfg(test)] mod tests { use super::*; } pub struct S;";
        assert_eq!(module(in_tests), [""; 0]);
    }

    #[test]
    fn exported_name_counts_as_its_own_module() {
        let mut files = ring(7, |_| "use crate::Top;".to_owned());
        files[0].1.push_str("mod top; pub use top::Top;");
        files.push((
            "crates/a/src/top.rs".to_owned(),
            "pub struct Top;".to_owned(),
        ));
        assert_eq!(found(&files), [""; 0]);
    }
}
