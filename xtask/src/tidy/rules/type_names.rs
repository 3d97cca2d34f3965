//! One public name, one type: a reader who meets a name in any crate knows which type it is.

use std::collections::BTreeMap;

use syn::{Ident, Item, Visibility};

use super::super::modules::is_test_only;
use super::super::{Report, Rule, Workspace};

/// Public structs, enums, unions, traits and aliases have names of their own across all crates.
pub(in super::super) struct TypeNames;

impl Rule for TypeNames {
    fn name(&self) -> &'static str {
        "type-names"
    }

    fn check(&self, workspace: &Workspace, report: &mut Report<'_>) {
        let mut places: BTreeMap<String, Vec<(&str, usize)>> = BTreeMap::new();
        for (package, file, parsed) in workspace.product_code() {
            if !package.folder.starts_with("crates/") {
                continue;
            }
            for_each_public_type(&parsed.syntax.items, &mut |ident| {
                places.entry(ident.to_string()).or_default().push((&file.path, ident.span().start().line));
            });
        }
        for (name, places) in places {
            for (at, (path, line)) in places.iter().enumerate() {
                let others: Vec<String> = places
                    .iter()
                    .enumerate()
                    .filter(|(other, _)| *other != at)
                    .map(|(_, (path, line))| format!("{path}:{line}"))
                    .collect();
                if !others.is_empty() {
                    report(
                        path,
                        *line,
                        format!("public type `{name}` is also at {}: rename one", others.join(", ")),
                    );
                }
            }
        }
    }
}

fn for_each_public_type(items: &[Item], found: &mut dyn FnMut(&Ident)) {
    for item in items {
        let (attributes, visibility, ident) = match item {
            Item::Struct(item) => (&item.attrs, &item.vis, &item.ident),
            Item::Enum(item) => (&item.attrs, &item.vis, &item.ident),
            Item::Union(item) => (&item.attrs, &item.vis, &item.ident),
            Item::Trait(item) => (&item.attrs, &item.vis, &item.ident),
            Item::Type(item) => (&item.attrs, &item.vis, &item.ident),
            Item::Mod(module) => {
                if let Some((_, inner)) = &module.content
                    && !is_test_only(&module.attrs)
                {
                    for_each_public_type(inner, found);
                }
                continue;
            }
            _ => continue,
        };
        if matches!(visibility, Visibility::Public(_)) && !is_test_only(attributes) {
            found(ident);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::said;
    use super::super::super::workspace::Package;
    use super::*;

    fn said_of(a: &str, b: &str) -> Vec<String> {
        let files = [("crates/a/src/lib.rs", a), ("crates/b/src/lib.rs", b)];
        let packages = vec![Package::sample("crucible-a"), Package::sample("crucible-b")];
        said(&TypeNames, &Workspace::of(&files, packages))
    }

    #[test]
    fn a_name_used_twice_is_named_at_both_places() {
        let said = said_of("pub struct Report;", "\npub mod inner { pub enum Report {} }");
        assert_eq!(
            said,
            [
                "crates/a/src/lib.rs:1: public type `Report` is also at crates/b/src/lib.rs:2: rename one",
                "crates/b/src/lib.rs:2: public type `Report` is also at crates/a/src/lib.rs:1: rename one",
            ]
        );
    }

    #[test]
    fn private_types_test_types_and_associated_types_may_repeat() {
        assert_eq!(
            said_of(
                "pub struct One; struct Two; pub trait T { type Out; }",
                "pub(crate) struct One; pub struct Two; pub trait U { type Out; } #[cfg(test)] mod tests { pub struct One; }"
            ),
            [""; 0]
        );
    }
}
