//! Which source files a crate really contains, found by following `mod` from its roots.
//!
//! A file that no `mod` reaches is not compiled, whatever it says. A file reached only through
//! `#[cfg(test)]`, or from a target that is a test, is test code.

use std::collections::BTreeMap;

use proc_macro2::TokenStream;
use syn::{Expr, ExprLit, Item, Lit, Meta};

use super::source;
use super::workspace::{TargetKind, Workspace};

/// What a file is compiled into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// Only tests, benches and examples.
    Test,
    /// The library, the program or the build script.
    Product,
}

/// Every reached file with the most that it is compiled into.
pub(super) fn walk(workspace: &Workspace) -> BTreeMap<String, Reach> {
    let mut reached = BTreeMap::new();
    for package in workspace.packages() {
        for target in &package.targets {
            let reach = match target.kind {
                TargetKind::Product => Reach::Product,
                TargetKind::Test => Reach::Test,
            };
            visit_file(workspace, &target.path, reach, FileRole::Root, &mut reached);
        }
    }
    reached
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FileRole {
    Root,
    Module,
}

fn visit_file(
    workspace: &Workspace,
    path: &str,
    reach: Reach,
    role: FileRole,
    reached: &mut BTreeMap<String, Reach>,
) {
    if reached.get(path).is_some_and(|known| *known >= reach) {
        return;
    }
    let Some(file) = workspace.file(path) else {
        return;
    };
    reached.insert(path.to_owned(), reach);
    let Ok(parsed) = file.parsed() else { return };
    let own = folder(path);
    let children = match (role, path.strip_suffix("/mod.rs"), path.strip_suffix(".rs")) {
        (FileRole::Root, ..) => own.to_owned(),
        (FileRole::Module, Some(own), _) => own.to_owned(),
        (FileRole::Module, None, stem) => stem.unwrap_or(path).to_owned(),
    };
    visit_items(
        workspace,
        &parsed.syntax.items,
        ModuleDirs {
            own,
            children: &children,
        },
        reach,
        reached,
    );
}

/// Where the modules declared in a file are looked for.
#[derive(Clone, Copy)]
struct ModuleDirs<'a> {
    /// The folder of the file itself, which a `#[path]` starts from.
    own: &'a str,
    /// The folder of the files that `mod name;` names.
    children: &'a str,
}

fn visit_items(
    workspace: &Workspace,
    items: &[Item],
    place: ModuleDirs<'_>,
    reach: Reach,
    reached: &mut BTreeMap<String, Reach>,
) {
    for item in items {
        let Item::Mod(module) = item else { continue };
        let name = module.ident.to_string();
        let name = name.strip_prefix("r#").unwrap_or(&name);
        let reach = if is_test_only(&module.attrs) {
            Reach::Test
        } else {
            reach
        };
        if let Some((_, inner)) = &module.content {
            let children = join(place.children, name);
            visit_items(
                workspace,
                inner,
                ModuleDirs {
                    own: &children,
                    children: &children,
                },
                reach,
                reached,
            );
        } else if let Some(path) = path_attribute(&module.attrs) {
            visit_file(
                workspace,
                &join(place.own, &path),
                reach,
                FileRole::Root,
                reached,
            );
        } else {
            for candidate in [format!("{name}.rs"), format!("{name}/mod.rs")] {
                visit_file(
                    workspace,
                    &join(place.children, &candidate),
                    reach,
                    FileRole::Module,
                    reached,
                );
            }
        }
    }
}

/// Whether attributes mark an item as test code.
pub(super) fn is_test_only(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let Meta::List(list) = &attribute.meta else {
            return false;
        };
        list.path.is_ident("cfg") && source::marks_tests(&source::tokens(wrap(&list.tokens)))
    })
}

fn wrap(condition: &TokenStream) -> TokenStream {
    let group = proc_macro2::Group::new(proc_macro2::Delimiter::Parenthesis, condition.clone());
    let name = proc_macro2::Ident::new("cfg", proc_macro2::Span::call_site());
    [
        proc_macro2::TokenTree::Ident(name),
        proc_macro2::TokenTree::Group(group),
    ]
    .into_iter()
    .collect()
}

fn path_attribute(attributes: &[syn::Attribute]) -> Option<String> {
    attributes
        .iter()
        .find_map(|attribute| match &attribute.meta {
            Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
                Expr::Lit(ExprLit {
                    lit: Lit::Str(text),
                    ..
                }) => Some(text.value()),
                _ => None,
            },
            _ => None,
        })
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn join(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::super::workspace::Package;
    use super::*;

    fn reach_of(files: &[(&str, &str)], path: &str) -> Option<Reach> {
        let workspace = Workspace::from_files(files, vec![Package::sample("crucible-a")]);
        walk(&workspace).get(path).copied()
    }

    #[test]
    fn modules_are_followed_through_both_layouts() {
        let files = [
            (
                "crates/a/src/lib.rs",
                "mod one; mod two; mod inline { mod deep; }",
            ),
            ("crates/a/src/one.rs", "mod leaf;"),
            ("crates/a/src/one/leaf.rs", ""),
            ("crates/a/src/two/mod.rs", "mod leaf;"),
            ("crates/a/src/two/leaf.rs", ""),
            ("crates/a/src/inline/deep.rs", ""),
            ("crates/a/src/stray.rs", ""),
        ];
        for path in [
            "one.rs",
            "one/leaf.rs",
            "two/mod.rs",
            "two/leaf.rs",
            "inline/deep.rs",
        ] {
            assert_eq!(
                reach_of(&files, &format!("crates/a/src/{path}")),
                Some(Reach::Product),
                "{path}"
            );
        }
        assert_eq!(reach_of(&files, "crates/a/src/stray.rs"), None);
    }

    #[test]
    fn files_behind_cfg_test_are_test_code() {
        let files = [
            (
                "crates/a/src/lib.rs",
                "#[cfg(test)] mod checks; #[path = \"odd name.rs\"] mod odd;",
            ),
            ("crates/a/src/checks.rs", "mod more;"),
            ("crates/a/src/checks/more.rs", ""),
            ("crates/a/src/odd name.rs", ""),
            ("crates/a/tests/whole.rs", "mod common;"),
            ("crates/a/tests/common/mod.rs", ""),
        ];
        assert_eq!(
            reach_of(&files, "crates/a/src/checks/more.rs"),
            Some(Reach::Test)
        );
        assert_eq!(
            reach_of(&files, "crates/a/src/odd name.rs"),
            Some(Reach::Product)
        );
        assert_eq!(
            reach_of(&files, "crates/a/tests/common/mod.rs"),
            Some(Reach::Test)
        );
    }
}
