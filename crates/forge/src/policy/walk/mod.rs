//! The walk over the tree of a skill: what each mention may mean, and whether its class allows it.

mod calls;
mod import;
mod objects;
mod report;
mod test_file;
mod texts;

use std::collections::BTreeSet;
use std::ops::Range;

use crucible_ledger::SideEffect;
use crucible_model::{Code, Verdict};
use tree_sitter::Node;

use super::table::{self, Effect};
use super::{SkillPolicy, import_time};
use crate::grants::Grants;
use crate::paths::SkillPaths;
use crate::python::{AliasLimit, Names, PythonSource, parts};

pub(super) struct Walk<'s> {
    source: &'s PythonSource,
    names: Names<'s>,
    policy: &'s SkillPolicy,
    class: SideEffect,
    grants: &'s Grants,
    annotations: When,
    /// Where the file is the test of a skill: the places of that skill.
    tests: Option<&'s SkillPaths>,
    /// What was judged as one text already.
    judged: Range<usize>,
    reported: BTreeSet<(usize, &'static str)>,
    verdict: Verdict,
}

/// When a piece of code runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Import,
    Call,
}

/// In what a piece of code stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Open,
    Class,
}

/// As what an expression stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Value,
    /// Of an attribute.
    Base,
    /// It is called.
    Callee,
    /// It gets another name that is followed.
    Alias,
    /// It is assigned to.
    Target,
    /// What is read of it was judged where it is read.
    Read,
    With,
}

#[derive(Debug, Clone, Copy)]
struct NodeContext {
    when: When,
    scope: Scope,
    usage: Use,
}

impl NodeContext {
    fn with_use(self, stands: Use) -> Self {
        Self {
            usage: stands,
            ..self
        }
    }
}

/// Whether something was found.
#[derive(PartialEq, Eq)]
enum Seen {
    Nothing,
    Finding,
}

impl<'s> Walk<'s> {
    /// Judges a whole source.
    pub(super) fn judge(
        source: &'s PythonSource,
        policy: &'s SkillPolicy,
        class: SideEffect,
        grants: &'s Grants,
        tests: Option<&'s SkillPaths>,
    ) -> Verdict {
        let named = |name: Node<'_>| {
            let name = if name.kind() == "aliased_import" {
                name.named_child(0).unwrap_or(name)
            } else {
                name
            };
            source.node_text(name) == "annotations"
        };
        let lazy = parts(source.root())
            .into_iter()
            .filter(|node| node.kind() == "future_import_statement")
            .any(|node| {
                node.children_by_field_name("name", &mut node.walk())
                    .any(named)
            });
        let mut walk = Self {
            source,
            names: Names::from_source(source),
            policy,
            class,
            grants,
            annotations: if lazy { When::Call } else { When::Import },
            tests,
            judged: 0..0,
            reported: BTreeSet::new(),
            verdict: Verdict::default(),
        };
        if walk.names.clarity() == AliasLimit::Unclear {
            walk.add_finding(
                source.root(),
                Code::new("forge-unclear"),
                "aliases",
                "Give things one name each; so many aliases are not followed.",
            );
        }
        walk.inner(
            source.root(),
            NodeContext {
                when: When::Import,
                scope: Scope::Open,
                usage: Use::Value,
            },
        );
        walk.verdict
    }

    fn visit(&mut self, node: Node<'s>, place: NodeContext) {
        let field = |name| node.child_by_field_name(name);
        let values = place.with_use(Use::Value);
        match node.kind() {
            "comment" | "line_continuation" | "future_import_statement" => {}
            "import_statement" | "import_from_statement" => self.import(node, place),
            "identifier" => {
                if self.mention(node, place) == Seen::Nothing {
                    self.word(node, node);
                }
            }
            "attribute" => self.attribute(node, place),
            "call" => self.call(node, place),
            "subscript" => self.subscript(node, place),
            "string" => self.string(node, values),
            "concatenated_string" | "binary_operator" => {
                self.folded(node);
                self.inner(node, values);
            }
            "keyword_argument" => {
                if let Some(name) = field("name") {
                    self.word(name, name);
                }
                self.each([field("value")], values);
            }
            "keyword_pattern" => {
                if let Some(name) = parts(node).first() {
                    self.found_by_name(*name, self.source.node_text(*name));
                }
                self.inner(node, values);
            }
            "assignment" | "named_expression" => self.assignment(node, place),
            "augmented_assignment" => {
                self.runs(node, place, "an operator on a variable");
                self.each([field("left")], place.with_use(Use::Target));
                self.each([field("right")], values);
            }
            "parameters" | "lambda_parameters" => self.inner(node, place.with_use(Use::Target)),
            "default_parameter" | "typed_default_parameter" => {
                self.each([field("name")], place.with_use(Use::Target));
                self.each([field("value")], values);
                self.annotation(field("type"), place);
            }
            "typed_parameter" => {
                self.each([node.named_child(0)], place.with_use(Use::Target));
                self.annotation(field("type"), place);
            }
            "function_definition" => {
                self.defines(node);
                self.each([field("name")], place.with_use(Use::Target));
                self.each(
                    [field("type_parameters")],
                    NodeContext {
                        when: When::Call,
                        ..values
                    },
                );
                self.each([field("parameters")], values);
                self.annotation(field("return_type"), place);
                self.each(
                    [field("body")],
                    NodeContext {
                        when: When::Call,
                        scope: Scope::Open,
                        usage: Use::Value,
                    },
                );
            }
            "lambda" => {
                self.each([field("parameters")], values);
                self.each(
                    [field("body")],
                    NodeContext {
                        when: When::Call,
                        ..values
                    },
                );
            }
            "class_definition" => {
                self.each([field("name")], place.with_use(Use::Target));
                self.inherits_in_tests(field("superclasses"));
                self.each([field("superclasses")], values);
                self.each(
                    [field("body")],
                    NodeContext {
                        scope: Scope::Class,
                        ..values
                    },
                );
            }
            "decorator" => self.decorator(node, place),
            "expression_statement" => self.statement(node, place),
            "for_in_clause" => {
                self.each([field("left")], place.with_use(Use::Target));
                self.each([field("right")], values);
            }
            "for_statement" => {
                self.runs(node, place, "a loop");
                self.each([field("left")], place.with_use(Use::Target));
                self.each(
                    [field("right"), field("body"), field("alternative")],
                    values,
                );
            }
            "with_item" => self.inner(node, place.with_use(Use::With)),
            "while_statement" | "with_statement" | "match_statement" | "raise_statement"
            | "assert_statement" | "delete_statement" | "await" | "yield" => {
                self.runs(node, place, "a statement that does something");
                let stands = if node.kind() == "delete_statement" {
                    Use::Target
                } else {
                    Use::Value
                };
                self.inner(node, place.with_use(stands));
            }
            _ => self.inner(node, values_of(node, place)),
        }
    }

    fn inner(&mut self, node: Node<'s>, place: NodeContext) {
        let children: Vec<Node<'s>> = node.named_children(&mut node.walk()).collect();
        children
            .into_iter()
            .for_each(|child| self.visit(child, place));
    }

    fn each<const N: usize>(&mut self, nodes: [Option<Node<'s>>; N], place: NodeContext) {
        nodes
            .into_iter()
            .flatten()
            .for_each(|node| self.visit(node, place));
    }

    /// An annotation runs where its function or variable is defined, unless the file says that it does not.
    fn annotation(&mut self, node: Option<Node<'s>>, place: NodeContext) {
        let when = if self.annotations == When::Call {
            When::Call
        } else {
            place.when
        };
        self.each(
            [node],
            NodeContext {
                when,
                ..place.with_use(Use::Value)
            },
        );
    }

    fn statement(&mut self, node: Node<'s>, place: NodeContext) {
        let text = match parts(node).as_slice() {
            [only] if matches!(only.kind(), "string" | "concatenated_string") => Some(*only),
            _ => None,
        };
        // A text on its own is prose, and a placeholder in it is not.
        let prose = |text| self.source.fold(text, &self.names).is_some();
        if !text.is_some_and(prose) {
            self.inner(node, place.with_use(Use::Value));
        }
    }

    fn assignment(&mut self, node: Node<'s>, place: NodeContext) {
        if node.kind() == "named_expression" {
            self.each(
                [node.child_by_field_name("name")],
                place.with_use(Use::Target),
            );
            // What it is assigned is what it is worth, too.
            let followed = matches!(
                place.usage,
                Use::Base | Use::Callee | Use::Alias | Use::Read
            ) && place.scope == Scope::Open;
            let stands = if followed { place.usage } else { Use::Value };
            self.each([node.child_by_field_name("value")], place.with_use(stands));
            return;
        }
        // `a = b = value` binds both.
        let (mut targets, mut value) = (Vec::new(), Some(node));
        while let Some(assignment) = value.filter(|value| value.kind() == "assignment") {
            targets.extend(assignment.child_by_field_name("left"));
            self.annotation(assignment.child_by_field_name("type"), place);
            value = assignment.child_by_field_name("right");
        }
        targets
            .iter()
            .for_each(|target| self.visit(*target, place.with_use(Use::Target)));
        let Some(value) = value else { return };
        let name = |node: &Node<'_>| node.kind() == "identifier";
        let alias = place.with_use(if place.scope == Scope::Open {
            Use::Alias
        } else {
            Use::Value
        });
        if targets.iter().all(name) {
            return self.visit(value, alias);
        }
        match (targets.as_slice(), value.kind()) {
            ([target], "expression_list" | "tuple")
                if matches!(target.kind(), "pattern_list" | "tuple_pattern") =>
            {
                let (lefts, rights) = (parts(*target), parts(value));
                let paired = lefts.len() == rights.len()
                    && !lefts
                        .iter()
                        .chain(&rights)
                        .any(|part| part.kind().starts_with("list_splat"));
                for (at, right) in rights.into_iter().enumerate() {
                    let followed = paired && lefts.get(at).is_some_and(name);
                    self.visit(
                        right,
                        if followed {
                            alias
                        } else {
                            place.with_use(Use::Value)
                        },
                    );
                }
            }
            _ => self.visit(value, place.with_use(Use::Value)),
        }
    }

    fn decorator(&mut self, node: Node<'s>, place: NodeContext) {
        let Some(expression) = parts(node).first().copied() else {
            return;
        };
        let (callee, arguments) = match expression.kind() {
            "call" => (
                expression
                    .child_by_field_name("function")
                    .unwrap_or(expression),
                expression.child_by_field_name("arguments"),
            ),
            _ => (expression, None),
        };
        let text = self.source.node_text(callee);
        let setter = callee.child_by_field_name("object").is_some_and(|object| {
            object.kind() == "identifier"
                && self.names.is_method(self.source.node_text(object))
                && self.names.meanings(object).is_empty()
        }) && ["setter", "getter", "deleter"].iter().any(|end| {
            callee
                .child_by_field_name("attribute")
                .is_some_and(|word| self.source.node_text(word) == *end)
        });
        let paths = self.names.meanings(callee);
        let innermost = node
            .next_named_sibling()
            .is_some_and(|next| next.kind() == "function_definition");
        let judged_here = |path: &String| match table::effect_of(path) {
            Effect::Decorator => true,
            Effect::Wrapper => {
                innermost
                    && arguments.is_some_and(|arguments| calls::has_only_positional(arguments, 1))
            }
            _ => false,
        };
        let known = setter
            || (!paths.is_empty()
                && paths
                    .iter()
                    .all(|path| import_time::decorates(path) || self.decorates_tests(path)))
            || (import_time::decorates_by_itself(text) && !self.names.is_own(text));
        if !known {
            self.runs(node, place, "a decorator");
            return self.visit(expression, place.with_use(Use::Value));
        }
        // The callee is judged like one that is called later; its arguments are made now.
        if !(paths.iter().any(judged_here) && paths.len() == 1) {
            self.visit(
                callee,
                NodeContext {
                    when: When::Call,
                    ..place.with_use(Use::Callee)
                },
            );
        }
        self.each([arguments], place.with_use(Use::Value));
    }

    /// Judges a name or a dotted expression by what it may mean.
    fn mention(&mut self, node: Node<'s>, place: NodeContext) -> Seen {
        let mut seen = Seen::Nothing;
        if node.kind() == "identifier" && place.usage == Use::Target {
            return self.bound_in_tests(node, place.scope);
        }
        if self.check_monkeypatch(node, place) == Seen::Finding {
            return Seen::Finding;
        }
        for path in self.names.meanings(node) {
            let module = table::is_module(&path) || self.names.imports(&path);
            let followed = match place.usage {
                Use::Base => true,
                Use::Alias => place.scope == Scope::Open,
                Use::Value | Use::Callee | Use::Target | Use::With | Use::Read => false,
            };
            if module && !followed && place.usage != Use::Target {
                self.add_finding(
                    node,
                    Code::new("forge-reflection"),
                    &path,
                    "A module is not a value; write out what is used of it.",
                );
                seen = Seen::Finding;
                continue;
            }
            let called = matches!(place.usage, Use::Callee);
            let found = match self.power(&path) {
                Effect::Open(_) | Effect::Database | Effect::ByName(_) | Effect::Pool if called => {
                    Seen::Nothing
                }
                // An alias means the same.
                Effect::ByName(_) | Effect::Open(_) | Effect::Database | Effect::Type
                    if place.usage == Use::Alias && followed_alias(place) =>
                {
                    Seen::Nothing
                }
                Effect::Type if called || self.only_compared(node) => Seen::Nothing,
                Effect::Type => self.report(node, Effect::Reflection, &path),
                Effect::Decorator => self.report(node, Effect::Code, &path),
                Effect::Wrapper => self.report(node, Effect::Reflection, &path),
                Effect::Arguments(_) if called || is_base(node) || self.only_compared(node) => {
                    Seen::Nothing
                }
                Effect::Arguments(_) => self.report(node, Effect::Code, &path),
                Effect::Annotation if is_annotation(node) => Seen::Nothing,
                Effect::Open(_) | Effect::Database | Effect::Annotation => {
                    self.report(node, Effect::Write, &path)
                }
                Effect::ByName(_) => self.report(node, Effect::Reflection, &path),
                Effect::Pool => self.report(node, Effect::Outlives, &path),
                // With a class that reads secrets, each one is read by its name: see `call` and `subscript`.
                Effect::Secret if self.allows(Effect::Secret) && path.starts_with("os.") => {
                    let alias = place.usage == Use::Alias && followed_alias(place);
                    if matches!(place.usage, Use::Base | Use::Read)
                        || alias
                        || self.asks_for_secret(node)
                    {
                        continue;
                    }
                    self.ungranted(node, &path)
                }
                power => self.report(node, power, &path),
            };
            if found == Seen::Finding {
                seen = found;
            }
        }
        seen
    }
}

/// What the children of a node stand as: those of parentheses as it does.
fn values_of(node: Node<'_>, place: NodeContext) -> NodeContext {
    match node.kind() {
        "parenthesized_expression"
        | "conditional_expression"
        | "boolean_operator"
        | "list_splat_pattern"
        | "dictionary_splat_pattern"
        | "pattern_list"
        | "tuple_pattern"
        | "list_pattern"
        | "with_clause"
        | "as_pattern" => place,
        _ => place.with_use(Use::Value),
    }
}

/// Whether an expression stands in an annotation, as a type alone.
fn is_annotation(node: Node<'_>) -> bool {
    let mut at = node;
    while let Some(outer) = at.parent() {
        match outer.kind() {
            "type" => return true,
            "attribute" | "union_type" | "generic_type" | "type_parameter" | "subscript" => {
                at = outer
            }
            "binary_operator" if outer.parent().is_some_and(|above| above.kind() == "type") => {
                return true;
            }
            _ => return false,
        }
    }
    false
}

/// Whether an expression is what a class stands on.
fn is_base(node: Node<'_>) -> bool {
    let class = node
        .parent()
        .filter(|list| list.kind() == "argument_list")
        .and_then(|list| list.parent());
    class.is_some_and(|class| class.kind() == "class_definition")
}

/// Whether another name for a thing is followed here.
fn followed_alias(place: NodeContext) -> bool {
    place.scope == Scope::Open
}
