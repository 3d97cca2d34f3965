//! What is reached through an object: attributes, elements, and names that are found by their text.

use crucible_model::Code;
use tree_sitter::Node;

use super::super::table::{self, Effect};
use super::super::words;
use super::{NodeContext, Seen, Use, Walk};
use crate::python::parts;

impl<'s> Walk<'s> {
    pub(super) fn attribute(&mut self, node: Node<'s>, place: NodeContext) {
        let (Some(object), Some(word)) = (
            node.child_by_field_name("object"),
            node.child_by_field_name("attribute"),
        ) else {
            return;
        };
        let text = self.source.node_text(word);
        if self.replaces_execute(node, text, place) == Seen::Finding
            || self.word(word, node) == Seen::Finding
            || self.fills_in(node, object, text) == Seen::Finding
        {
            return;
        }
        let own = self.is_own_object(object) && self.names.is_member(text);
        let is_passed_on = place.usage != Use::Callee && matches!(text, "replace" | "open");
        let writes = (words::is_writer(text) || is_passed_on) && !own && self.may_have_paths();
        if writes
            && !self.writes_in_tests(object)
            && self.report(node, Effect::Write, text) == Seen::Finding
        {
            return;
        }
        if !own
            && self.writes_tree(text, object)
            && self.report(node, Effect::Write, "ElementTree.write") == Seen::Finding
        {
            return;
        }
        if self.is_class_itself(object) && self.names.is_method(text) && place.usage != Use::Target
        {
            self.report(node, Effect::Reflection, "a method without its object");
            return;
        }
        if place.usage == Use::Target {
            let foreign = self
                .names
                .meanings(object)
                .into_iter()
                .find(|path| !path.starts_with("builtins."));
            if let Some(path) = foreign {
                self.add_finding(
                    node,
                    Code::new("forge-reflection"),
                    &path,
                    "What others have made is not changed; keep values of your own.",
                );
                return;
            }
            self.runs(node, place, "a change of an attribute");
        }
        if self.mention(node, place) == Seen::Finding {
            return;
        }
        // The name of an object's class is harmless, the class is not.
        let class = object.kind() == "attribute"
            && matches!(text, "__name__" | "__qualname__")
            && object
                .child_by_field_name("attribute")
                .is_some_and(|word| self.source.node_text(word) == "__class__");
        let object = if class {
            object.child_by_field_name("object").unwrap_or(object)
        } else {
            object
        };
        self.visit(object, place.with_use(Use::Base));
    }

    pub(super) fn subscript(&mut self, node: Node<'s>, place: NodeContext) {
        let Some(value) = node.child_by_field_name("value") else {
            return;
        };
        let reads = self.allows(Effect::Secret)
            && self
                .names
                .meanings(value)
                .iter()
                .any(|path| path == "os.environ");
        if place.usage == Use::Target {
            self.runs(node, place, "a change of an element");
        }
        if reads && place.usage != Use::Target {
            let index = node.child_by_field_name("subscript");
            self.secret(node, index);
            self.visit(value, place.with_use(Use::Read));
            self.each([index], place.with_use(Use::Value));
        } else {
            self.inner(node, place.with_use(Use::Value));
        }
    }

    /// Refuses words that lead past what an object shows.
    pub(super) fn word(&mut self, word: Node<'s>, node: Node<'s>) -> Seen {
        let text = self.source.node_text(word);
        let object = (node.kind() == "attribute")
            .then(|| node.child_by_field_name("object"))
            .flatten();
        let of_name = text == "__class__"
            && node.parent().is_some_and(|outer| {
                outer.kind() == "attribute"
                    && outer.child_by_field_name("attribute").is_some_and(|word| {
                        matches!(self.source.node_text(word), "__name__" | "__qualname__")
                    })
            });
        if words::is_deep(text) && !of_name {
            return self.report(node, Effect::Reflection, text);
        }
        let Some(object) = object else {
            return Seen::Nothing;
        };
        let of_itself = self.is_own_object(object) && self.names.is_member(text);
        if !of_itself && self.leads_to_modules(text) && self.names.meanings(node).is_empty() {
            return self.report(node, Effect::Reflection, text);
        }
        if words::reinitializes(text) && !self.is_ones_own_to_make(object) {
            return self.report(node, Effect::Reflection, text);
        }
        if words::connects(text) && self.names.meanings(object).is_empty() {
            return self.report(node, Effect::Network, text);
        }
        if !words::is_private(text) {
            return Seen::Nothing;
        }
        let own = (self.is_own_object(object) || self.is_class_itself(object))
            && self.names.is_member(text)
            && !words::leads_to_effect(text);
        if own || self.is_tested_module(object) {
            return Seen::Nothing;
        }
        self.report(node, Effect::Reflection, text)
    }

    /// Judges an attribute that is found by its name as a text, on an object that nobody knows.
    pub(super) fn found_by_name(&mut self, node: Node<'s>, names: &str) -> Seen {
        for word in names.split('.') {
            let reaches = words::is_deep(word)
                || words::is_private(word)
                || words::reinitializes(word)
                || self.leads_to_modules(word)
                || matches!(word, "format" | "format_map");
            if reaches {
                return self.report(node, Effect::Reflection, word);
            }
            if words::connects(word) && self.report(node, Effect::Network, word) == Seen::Finding {
                return Seen::Finding;
            }
            if word == "write"
                && self.may_have_xml_trees()
                && self.report(node, Effect::Write, "ElementTree.write") == Seen::Finding
            {
                return Seen::Finding;
            }
            let writes = words::is_writer(word) || matches!(word, "open" | "replace");
            if writes
                && self.may_have_paths()
                && self.report(node, Effect::Write, word) == Seen::Finding
            {
                return Seen::Finding;
            }
        }
        Seen::Nothing
    }

    /// Whether an object that nobody knows could hand out a module under this name: some of the standard library do, and paths have the
    /// module that takes them apart.
    fn leads_to_modules(&self, word: &str) -> bool {
        words::is_module(word) || word == "parser" && self.names.imports("pathlib")
    }

    /// Whether `__init__` of this is called as classes call it: on what is above them, on a class by its name, or on the object itself.
    fn is_ones_own_to_make(&self, object: Node<'_>) -> bool {
        let above = object.kind() == "call"
            && object
                .child_by_field_name("function")
                .is_some_and(|callee| self.source.node_text(callee) == "super")
            && !self.names.is_own("super");
        let paths = self.names.meanings(object);
        let of_class = !paths.is_empty()
            && paths.iter().all(|path| {
                let last = path.rsplit('.').next().unwrap_or_default();
                path.starts_with("builtins.")
                    || last.starts_with(|first: char| first.is_ascii_uppercase())
            });
        // A name that the file does not bind is a built-in class.
        let built_in = object.kind() == "identifier"
            && paths.is_empty()
            && !self.names.is_own(self.source.node_text(object));
        above || of_class || built_in || self.is_class_itself(object) || self.is_own_object(object)
    }

    /// `.format` of a text that is not written down may reach for any attribute of what fills it in.
    fn fills_in(&mut self, node: Node<'s>, object: Node<'s>, word: &str) -> Seen {
        if !matches!(word, "format" | "format_map")
            || (self.is_own_object(object) && self.names.is_member(word))
        {
            return Seen::Nothing;
        }
        match self.source.fold(object, &self.names) {
            Some(text) if !words::format_reaches(&text) => Seen::Nothing,
            _ => self.report(
                node,
                Effect::Reflection,
                "a text that is filled in, and is not a literal one or reaches for attributes",
            ),
        }
    }

    /// Whether a name is the object of the method that it stands in: the first parameter, never assigned.
    pub(super) fn is_own_object(&self, object: Node<'_>) -> bool {
        let name = self.source.node_text(object);
        if object.kind() != "identifier"
            || !matches!(name, "self" | "cls")
            || !self.names.is_only_given(name)
        {
            return false;
        }
        let mut inside = object;
        while let Some(outer) = inside.parent() {
            if matches!(outer.kind(), "function_definition" | "lambda") {
                let given_nodes = outer
                    .child_by_field_name("parameters")
                    .map(parts)
                    .unwrap_or_default();
                let at = given_nodes.iter().position(|given_node| {
                    self.source
                        .node_text(*given_node)
                        .trim_start_matches('*')
                        .split([':', '='])
                        .next()
                        .map(str::trim)
                        == Some(name)
                });
                match at {
                    None => {}
                    Some(0) => return self.is_method(outer),
                    Some(_) => return false,
                }
            }
            inside = outer;
        }
        false
    }

    /// Whether a function stands in a class, and gets the object or the class that it is called on.
    fn is_method(&self, function: Node<'_>) -> bool {
        let decorated = function
            .parent()
            .filter(|outer| outer.kind() == "decorated_definition");
        let is_static = decorated.is_some_and(|outer| {
            parts(outer)
                .into_iter()
                .filter(|part| part.kind() == "decorator")
                .any(|part| self.source.node_text(part).contains("static"))
        });
        let block = decorated.unwrap_or(function).parent();
        !is_static
            && function.kind() == "function_definition"
            && block
                .and_then(|block| block.parent())
                .is_some_and(|outer| outer.kind() == "class_definition")
    }

    /// Whether an expression is a class of the file.
    fn is_class_itself(&self, object: Node<'_>) -> bool {
        object.kind() == "identifier" && self.names.is_class(self.source.node_text(object))
    }

    /// Whether a method may be that of an XML tree that writes a file.
    fn writes_tree(&self, word: &str, object: Node<'_>) -> bool {
        let is_stream = |path: &String| matches!(path.as_str(), "sys.stdout" | "sys.stderr");
        word == "write"
            && self.may_have_xml_trees()
            && !self.names.meanings(object).iter().any(is_stream)
    }

    /// Whether XML trees may be among the objects of this file.
    pub(super) fn may_have_xml_trees(&self) -> bool {
        self.tests.is_none() && self.names.imports("xml.etree.ElementTree")
    }

    /// Whether paths may be among the objects of this file.
    pub(super) fn may_have_paths(&self) -> bool {
        self.tests.is_some() || self.names.imports("pathlib")
    }

    /// Whether `type`, or what it returns, is only compared, shown or named.
    pub(super) fn only_compared(&self, node: Node<'_>) -> bool {
        let Some(outer) = node.parent() else {
            return false;
        };
        match outer.kind() {
            "comparison_operator" | "interpolation" | "type" => true,
            "attribute" => outer.child_by_field_name("attribute").is_some_and(|word| {
                matches!(self.source.node_text(word), "__name__" | "__qualname__")
            }),
            "generic_type" | "union_type" | "binary_operator" | "type_parameter" | "subscript" => {
                self.in_annotation(outer)
            }
            "argument_list" => outer
                .parent()
                .and_then(|call| call.child_by_field_name("function"))
                .is_some_and(|callee| {
                    matches!(
                        self.source.node_text(callee),
                        "isinstance" | "issubclass" | "str" | "repr"
                    )
                }),
            _ => false,
        }
    }

    fn in_annotation(&self, node: Node<'_>) -> bool {
        let mut at = Some(node);
        for _ in 0..6 {
            match at {
                Some(node) if node.kind() == "type" => return true,
                Some(node) => at = node.parent(),
                None => return false,
            }
        }
        false
    }

    /// What a path can do: the table's answer, and for the test of a skill what tests need.
    pub(super) fn power(&self, path: &str) -> Effect {
        self.power_in_tests(path)
            .unwrap_or_else(|| table::effect_of(path))
    }
}
