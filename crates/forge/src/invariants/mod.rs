//! What every skill is made of: one class of the right name on the right base, its three attributes, and `execute`.
//!
//! The attributes are what the registry and a reader go by, so each is a literal text that stands once, and nothing in the file can make it
//! another one later.

use crucible_ledger::SideEffect;
use crucible_model::{Code, Finding, Verdict};
use tree_sitter::Node;

use crate::name::SkillName;
use crate::paths::SkillPaths;
use crate::python::{PythonSource, imports, place_of};

/// The base class.
const BASE: &str = "BaseSkill";

/// The attributes of a skill.
const ATTRIBUTES: [&str; 3] = ["name", "description", "side_effect_class"];

/// Methods by which a class could be another one than it looks like.
const MAGIC: [&str; 9] = [
    "__class_getitem__",
    "__delattr__",
    "__getattr__",
    "__getattribute__",
    "__init_subclass__",
    "__new__",
    "__prepare__",
    "__set_name__",
    "__setattr__",
];

/// Judges the structure of a skill.
#[must_use]
pub fn check_invariants(
    source: &PythonSource,
    name: &SkillName,
    paths: &SkillPaths,
    class: SideEffect,
) -> Verdict {
    let mut judge = Judge {
        source,
        verdict: Verdict::default(),
    };
    judge.base(paths);
    let classes = judge.everywhere();
    let top: Vec<Node<'_>> = source
        .root()
        .named_children(&mut source.root().walk())
        .collect();
    match classes.as_slice() {
        [only] if top.contains(only) => judge.class(*only, name, paths, class),
        [only] => judge.say(
            *only,
            Code::new("forge-class-count"),
            "class",
            "Define the class at the top of the file, undecorated.",
        ),
        [] => judge.say(
            source.root(),
            Code::new("forge-class-count"),
            "no class",
            "Define the one class of the skill.",
        ),
        [_, second, ..] => judge.say(
            *second,
            Code::new("forge-class-count"),
            "a second class",
            "Define one class; use functions besides it.",
        ),
    }
    judge.verdict
}

struct Judge<'s> {
    source: &'s PythonSource,
    verdict: Verdict,
}

impl<'s> Judge<'s> {
    fn say(&mut self, node: Node<'_>, code: Code, what: &str, hint: &str) {
        let what: String = what.chars().take(80).collect();
        self.verdict.push(Finding::error(
            code,
            format!("{}: {what}", place_of(node)),
            hint,
        ));
    }

    /// The base class is imported once, at the top, from its own module.
    fn base(&mut self, paths: &SkillPaths) {
        let module = paths
            .module
            .rsplit_once('.')
            .map_or("", |(package, _)| package);
        let absolute = format!("{module}.base");
        let root = self.source.root();
        let found = root
            .named_children(&mut root.walk())
            .filter(|node| node.kind() == "import_from_statement")
            .flat_map(|node| imports(self.source, node))
            .filter(|import| import.binds == BASE && import.member == Some(BASE))
            .filter(|import| import.module == absolute || import.module == ".base")
            .count();
        if found != 1 {
            let hint = format!("Write `from {absolute} import {BASE}` once, at the top.");
            self.say(root, Code::new("forge-class-base"), BASE, &hint);
        }
    }

    /// All classes, in the order of the text; on the way, what would change a class or its base from elsewhere.
    fn everywhere(&mut self) -> Vec<Node<'s>> {
        let mut classes = Vec::new();
        let mut cursor = self.source.root().walk();
        let (mut bases, mut depth) = (0_usize, 0_usize);
        loop {
            let node = cursor.node();
            match node.kind() {
                "class_definition" => classes.push(node),
                "identifier" if self.source.node_text(node) == BASE => {
                    bases += 1;
                    // Once in the import, once in the class.
                    if bases > 2 {
                        self.say(
                            node,
                            Code::new("forge-class-base"),
                            BASE,
                            "Use the base class as the base, and for nothing else.",
                        );
                    }
                }
                "assignment" | "augmented_assignment" => {
                    let left = node.child_by_field_name("left");
                    self.target(left);
                }
                "for_statement" | "for_in_clause" => self.target(node.child_by_field_name("left")),
                _ => {}
            }
            if cursor.goto_first_child() {
                depth += 1;
                continue;
            }
            while !cursor.goto_next_sibling() {
                if depth == 0 || !cursor.goto_parent() {
                    return classes;
                }
                depth -= 1;
            }
        }
    }

    /// An attribute of a skill is not assigned from outside its place in the class.
    fn target(&mut self, left: Option<Node<'s>>) {
        let mut rest: Vec<Node<'s>> = left.into_iter().collect();
        while let Some(node) = rest.pop() {
            match node.kind() {
                "attribute" => {
                    let word = node
                        .child_by_field_name("attribute")
                        .map(|word| self.source.node_text(word))
                        .unwrap_or_default();
                    if ATTRIBUTES.contains(&word) || word == "execute" {
                        self.say(
                            node,
                            Code::new("forge-class-attribute"),
                            word,
                            "State it once, in the class.",
                        );
                    }
                }
                "pattern_list" | "tuple_pattern" | "list_pattern" | "list_splat_pattern" => {
                    rest.extend(node.named_children(&mut node.walk()));
                }
                _ => {}
            }
        }
    }

    fn class(&mut self, node: Node<'s>, name: &SkillName, paths: &SkillPaths, class: SideEffect) {
        let field = |field| node.child_by_field_name(field);
        let called = field("name")
            .map(|name| self.source.node_text(name))
            .unwrap_or_default();
        if called != paths.class || field("type_parameters").is_some() {
            self.say(
                node,
                Code::new("forge-class-name"),
                called,
                &format!("Call the class `{}`.", paths.class),
            );
        }
        let bases = field("superclasses").map(|bases| {
            self.source
                .node_text(bases)
                .split_whitespace()
                .collect::<String>()
        });
        if bases.as_deref() != Some("(BaseSkill)") {
            self.say(
                node,
                Code::new("forge-class-base"),
                called,
                &format!(
                    "Write `class {}({BASE}):`, with no other base and no keyword.",
                    paths.class
                ),
            );
        }
        let Some(body) = field("body") else { return };
        let members: Vec<Node<'s>> = body.named_children(&mut body.walk()).collect();
        let expected = [Some(name.as_str()), None, Some(class.as_str())];
        for (attribute, expected) in ATTRIBUTES.into_iter().zip(expected) {
            self.attribute(body, &members, attribute, expected);
        }
        let mut executes = 0;
        for member in members {
            let (function, decorated) = match member.kind() {
                "decorated_definition" => (
                    member.child_by_field_name("definition").unwrap_or(member),
                    true,
                ),
                _ => (member, false),
            };
            match function.kind() {
                "function_definition" => {
                    let called = function
                        .child_by_field_name("name")
                        .map(|name| self.source.node_text(name))
                        .unwrap_or_default();
                    if MAGIC.contains(&called) {
                        self.say(
                            function,
                            Code::new("forge-class-magic"),
                            called,
                            "Leave this method out.",
                        );
                    }
                    if ATTRIBUTES.contains(&called) {
                        self.say(
                            function,
                            Code::new("forge-class-attribute"),
                            called,
                            "It is a literal text, no method.",
                        );
                    }
                    if called == "execute" {
                        executes += 1;
                        if decorated || !self.is_execute(function) {
                            self.say(function, Code::new("forge-class-execute"), called, "Write `def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:`, undecorated, neither async nor a generator.");
                        }
                    }
                }
                "expression_statement" | "pass_statement" | "comment" => {}
                _ => self.say(
                    function,
                    Code::new("forge-class-attribute"),
                    "a statement",
                    "A class of a skill holds constants and methods.",
                ),
            }
        }
        if executes != 1 {
            self.say(
                node,
                Code::new("forge-class-execute"),
                called,
                "Define `execute` once.",
            );
        }
    }

    fn attribute(
        &mut self,
        body: Node<'s>,
        members: &[Node<'s>],
        attribute: &str,
        expected: Option<&str>,
    ) {
        // Every mention in the body of the class itself: assignments in tuples, walrus and deletions count, too.
        let mut bound = Vec::new();
        let mut mentions = 0;
        for member in members
            .iter()
            .filter(|member| member.kind() == "expression_statement")
        {
            let mut rest = vec![*member];
            while let Some(node) = rest.pop() {
                if node.kind() == "identifier" && self.source.node_text(node) == attribute {
                    mentions += 1;
                }
                rest.extend(node.named_children(&mut node.walk()));
            }
            let assignment = member
                .named_child(0)
                .filter(|node| node.kind() == "assignment");
            if let Some(assignment) = assignment
                && assignment
                    .child_by_field_name("left")
                    .is_some_and(|left| self.source.node_text(left) == attribute)
            {
                bound.push(assignment);
            }
        }
        let [only] = bound.as_slice() else {
            self.say(
                body,
                Code::new("forge-class-attribute"),
                attribute,
                "State it exactly once in the class, as a literal text.",
            );
            return;
        };
        let value = only
            .child_by_field_name("right")
            .filter(|right| right.kind() == "string")
            .and_then(|right| self.source.literal(right));
        let typed = only
            .child_by_field_name("type")
            .is_none_or(|kind| matches!(self.source.node_text(kind), "str" | "ClassVar[str]"));
        match value {
            Some(value) if mentions == 1 && typed => match expected {
                Some(expected) if value != expected => {
                    self.say(*only, Code::new("forge-class-attribute"), attribute, &format!("It must be \"{expected}\"."));
                }
                None if value.trim().is_empty() => {
                    self.say(*only, Code::new("forge-class-attribute"), attribute, "Say what the skill does.");
                }
                _ => {}
            },
            _ => self.say(*only, Code::new("forge-class-attribute"), attribute, "Write one literal text: no expression, no placeholder, no escape, and use it nowhere else in the class."),
        }
    }

    fn is_execute(&self, function: Node<'s>) -> bool {
        let squeezed = |field| {
            let node: Option<Node<'_>> = function.child_by_field_name(field);
            node.map(|node| {
                self.source
                    .node_text(node)
                    .split_whitespace()
                    .collect::<String>()
            })
            .unwrap_or_default()
        };
        let parameters = squeezed("parameters");
        let shape = matches!(
            parameters.as_str(),
            "(self,inputs:dict[str,Any])" | "(self,inputs:dict[str,Any],)"
        ) && squeezed("return_type") == "dict[str,Any]"
            && !self.source.node_text(function).starts_with("async");
        let mut rest: Vec<Node<'_>> = function.child_by_field_name("body").into_iter().collect();
        while let Some(node) = rest.pop() {
            match node.kind() {
                "yield" => return false,
                "function_definition" | "lambda" => {}
                _ => rest.extend(node.named_children(&mut node.walk())),
            }
        }
        shape
    }
}
