//! Judges the imports of a skill.

use crucible_model::Code;
use tree_sitter::Node;

use super::super::table::{self, Effect};
use super::super::words;
use super::{NodeContext, Scope, Walk};
use crate::python::imports;

impl<'s> Walk<'s> {
    pub(super) fn import(&mut self, node: Node<'s>, context: NodeContext) {
        for import in imports(self.source, node) {
            let what = import.means.clone();
            let listed = |list: &[String]| {
                let within = |entry: &String| {
                    let below = |path: &str| {
                        path.strip_prefix(entry.as_str())
                            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                    };
                    below(&import.module) || (import.member.is_some() && below(&import.means))
                };
                list.iter().any(within)
            };
            if self.imports_for_tests(&import) {
                continue;
            }
            if !import.binds.is_ascii() || import.member.is_some_and(words::is_deep) {
                self.report(node, Effect::Reflection, &what);
            } else if import.member == Some("*") {
                self.add_finding(
                    node,
                    Code::new("forge-star-import"),
                    &what,
                    "Name what is imported.",
                );
            } else if context.scope == Scope::Class {
                self.add_finding(
                    node,
                    Code::new("forge-import-not-allowed"),
                    &what,
                    "Import at the top of the file, not in a class.",
                );
            } else if listed(&self.policy.forbidden_imports) {
                self.add_finding(
                    node,
                    Code::new("forge-import-forbidden"),
                    &what,
                    "The policy forbids this module; remove the import.",
                );
            } else if is_base(&import.module) {
                if import.member != Some("BaseSkill") {
                    self.add_finding(
                        node,
                        Code::new("forge-import-not-allowed"),
                        &what,
                        "Import only `BaseSkill` from the base module.",
                    );
                }
            } else {
                // `from a import b` loads `a.b` if that is a module, else `a`.
                let is_module = import.member.is_some() && table::is_module(&import.means);
                let text = if is_module {
                    &import.means
                } else {
                    &import.module
                };
                match table::module_effect(text) {
                    Effect::Unknown if !listed(&self.policy.allowed_imports) => {
                        self.add_finding(
                            node,
                            Code::new("forge-import-not-allowed"),
                            &what,
                            "Use the harmless part of the standard library, or ask the operator to allow the module in the policy.",
                        );
                    }
                    Effect::None | Effect::Unknown => {
                        let power = table::effect_of(&import.means);
                        if !matches!(
                            power,
                            Effect::Open(_)
                                | Effect::Database
                                | Effect::Annotation
                                | Effect::ByName(_)
                                | Effect::Pool
                                | Effect::Type
                                | Effect::Wrapper
                                | Effect::Arguments(_)
                                | Effect::Decorator
                        ) {
                            self.report(node, power, &what);
                        }
                    }
                    power => {
                        self.report(node, power, &what);
                    }
                }
            }
        }
    }
}

/// Whether a module is the package's own base module.
fn is_base(module: &str) -> bool {
    let plain = |word: &str| {
        word.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    };
    module == ".base"
        || module
            .strip_suffix(".skills.base")
            .is_some_and(|package| !package.is_empty() && plain(package))
}
