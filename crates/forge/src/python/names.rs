//! What a dotted expression may mean: through imports, aliases, assignments, default arguments.
//!
//! One table for the whole file, without regard to order or scope: a name that is bound to a thing anywhere may mean it everywhere. That errs
//! on the side of refusing, and cannot be led astray by scopes, branches or order. Only names that lead to an import or a built-in have a
//! meaning; everything else means nothing here.

use std::collections::{BTreeMap, BTreeSet};

use tree_sitter::Node;

use super::PythonSource;

/// How often the assignments are gone through; an alias of an alias of an alias takes one round in the order of the text.
const MAX_ROUNDS: usize = 6;

/// How many things one name may mean, and of how many words a meaning may be.
const MAX_MEANINGS: usize = 16;
const MAX_WORDS: usize = 6;

/// The names of a file.
pub(crate) struct Names<'s> {
    source: &'s PythonSource,
    meanings: BTreeMap<&'s str, BTreeSet<String>>,
    /// Every name that the file itself binds other than by an import.
    own: BTreeSet<&'s str>,
    /// Every function that is called on an object: its first parameter is `self`.
    methods: BTreeSet<&'s str>,
    /// Every class that it defines.
    classes: BTreeSet<&'s str>,
    /// What its classes and their methods bind on a class or an object of it.
    members: BTreeSet<&'s str>,
    /// Every name that is declared as one of an outer scope.
    outer: BTreeSet<&'s str>,
    /// Every text that a name stands for, and how often the name is bound.
    texts: BTreeMap<&'s str, (usize, Option<Node<'s>>)>,
    /// Every module that it imports something from.
    modules: BTreeSet<String>,
    clarity: AliasLimit,
}

/// Whether the table is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AliasLimit {
    /// It is.
    Clear,
    /// More aliases than are followed.
    Unclear,
}

impl<'s> Names<'s> {
    /// The names of a file.
    pub(crate) fn from_source(source: &'s PythonSource) -> Self {
        let mut names = Self {
            source,
            meanings: BTreeMap::new(),
            own: BTreeSet::new(),
            methods: BTreeSet::new(),
            classes: BTreeSet::new(),
            members: BTreeSet::new(),
            outer: BTreeSet::new(),
            texts: BTreeMap::new(),
            modules: BTreeSet::new(),
            clarity: AliasLimit::Clear,
        };
        let mut bindings = Vec::new();
        let mut cursor = source.root().walk();
        'all: loop {
            names.collect(cursor.node(), &mut bindings);
            if cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    break 'all;
                }
            }
        }
        names.follow(&bindings);
        names
    }

    /// What an expression may mean, as dotted paths from a module or from `builtins`.
    pub(crate) fn meanings(&self, node: Node<'_>) -> BTreeSet<String> {
        let child = |field| {
            node.child_by_field_name(field)
                .map(|child| self.meanings(child))
                .unwrap_or_default()
        };
        match node.kind() {
            "identifier" => {
                let name = self.source.node_text(node);
                let mut found = self.meanings.get(name).cloned().unwrap_or_default();
                // A built-in keeps its meaning even where the file binds the same name: somewhere it may not be bound yet.
                if crate::policy::is_sensitive_builtin(name) && !self.is_local(node) {
                    found.insert(format!("builtins.{name}"));
                }
                found
            }
            "attribute" => {
                let Some(attribute) = node.child_by_field_name("attribute") else {
                    return BTreeSet::new();
                };
                let word = self.source.node_text(attribute);
                let extend = |base: &String| {
                    let has_capacity = base.split('.').count() < MAX_WORDS;
                    has_capacity.then(|| format!("{base}.{word}"))
                };
                child("object").iter().filter_map(extend).collect()
            }
            "parenthesized_expression" => parts(node)
                .first()
                .map(|inner| self.meanings(*inner))
                .unwrap_or_default(),
            "conditional_expression" | "boolean_operator" => parts(node)
                .into_iter()
                .flat_map(|part| self.meanings(part))
                .collect(),
            "named_expression" => child("value"),
            "assignment" => child("right"),
            _ => BTreeSet::new(),
        }
    }

    /// Whether the file itself binds this name, other than by an import.
    pub(crate) fn is_own(&self, name: &str) -> bool {
        self.own.contains(name)
    }

    /// Whether a function of this name takes its object as its first argument.
    pub(crate) fn is_method(&self, name: &str) -> bool {
        self.methods.contains(name)
    }

    /// Whether a name is a parameter wherever it is bound, never assigned.
    pub(crate) fn is_only_given(&self, name: &str) -> bool {
        !self.outer.contains(name)
    }

    /// Whether the file defines a class of this name.
    pub(crate) fn is_class(&self, name: &str) -> bool {
        self.classes.contains(name)
    }

    /// Whether a class of the file binds an attribute of this name.
    pub(crate) fn is_member(&self, name: &str) -> bool {
        self.members.contains(name)
    }

    /// The only value that a name is ever bound to.
    pub(crate) fn only_value(&self, name: &str) -> Option<Node<'s>> {
        self.texts
            .get(name)
            .filter(|(count, _)| *count == 1)
            .and_then(|(_, value)| *value)
    }

    /// Whether a name is bound in a function around it, so that Python looks nowhere else.
    fn is_local(&self, node: Node<'_>) -> bool {
        let name = self.source.node_text(node);
        if self.outer.contains(name) || !self.own.contains(name) {
            return false;
        }
        let mut inside = node;
        while let Some(outer) = inside.parent() {
            // A class looks for its own names outside of every function, too.
            if outer.kind() == "class_definition" {
                return false;
            }
            let function = matches!(outer.kind(), "function_definition" | "lambda");
            if function
                && outer
                    .child_by_field_name("body")
                    .is_some_and(|body| body.id() == inside.id())
                && self.binds_here(outer, name)
            {
                return true;
            }
            inside = outer;
        }
        false
    }

    /// Whether a function binds a name among its parameters, or by a plain assignment in its body.
    fn binds_here(&self, function: Node<'_>, name: &str) -> bool {
        let parameters = function.child_by_field_name("parameters");
        let is_given = parameters.is_some_and(|list| {
            parts(list).into_iter().any(|part| {
                let named = match part.kind() {
                    "identifier" => Some(part),
                    "typed_parameter" => part
                        .named_child(0)
                        .filter(|first| first.kind() == "identifier"),
                    _ => part.child_by_field_name("name"),
                };
                named.is_some_and(|named| self.source.node_text(named) == name)
            })
        });
        let body = function
            .child_by_field_name("body")
            .filter(|body| body.kind() == "block");
        is_given
            || body.is_some_and(|body| {
                parts(body).into_iter().any(|line| {
                    line.kind() == "expression_statement"
                        && line.named_child(0).is_some_and(|assignment| {
                            assignment.kind() == "assignment"
                                && assignment
                                    .child_by_field_name("left")
                                    .is_some_and(|left| self.source.node_text(left) == name)
                        })
                })
            })
    }

    /// Whether the file imports this module, or something from it.
    pub(crate) fn imports(&self, module: &str) -> bool {
        self.modules.contains(module)
    }

    pub(crate) fn clarity(&self) -> AliasLimit {
        self.clarity
    }

    fn collect(&mut self, node: Node<'s>, bindings: &mut Vec<(&'s str, Node<'s>)>) {
        let field = |name| node.child_by_field_name(name);
        match node.kind() {
            "import_statement" | "import_from_statement" => {
                for import in imports(self.source, node) {
                    self.modules.insert(import.module.clone());
                    self.texts.entry(import.binds).or_default().0 += 1;
                    self.meanings
                        .entry(import.binds)
                        .or_default()
                        .insert(import.means);
                }
            }
            "assignment" | "named_expression" => {
                let (left, right) = match node.kind() {
                    "assignment" => (field("left"), field("right")),
                    _ => (field("name"), field("value")),
                };
                if let Some(left) = left {
                    self.member(node, left);
                    self.bind(left, right, bindings);
                }
            }
            "augmented_assignment" => {
                if let Some(left) = field("left") {
                    self.bind(left, None, bindings);
                }
            }
            "default_parameter" | "typed_default_parameter" => {
                if let Some(name) = field("name") {
                    self.bind(name, field("value"), bindings);
                }
            }
            "function_definition" | "class_definition" => {
                if let Some(name) = field("name") {
                    let name = self.source.node_text(name);
                    self.own.insert(name);
                    self.texts.entry(name).or_default().0 += 1;
                    if node.kind() == "function_definition" {
                        self.members.insert(name);
                        let first =
                            field("parameters").and_then(|list| parts(list).first().copied());
                        if first.is_some_and(|first| self.source.node_text(first) == "self") {
                            self.methods.insert(name);
                        }
                    } else {
                        self.classes.insert(name);
                    }
                }
            }
            "for_statement" | "for_in_clause" => {
                if let Some(left) = field("left") {
                    self.bind(left, None, bindings);
                }
            }
            "parameters"
            | "lambda_parameters"
            | "as_pattern_target"
            | "global_statement"
            | "nonlocal_statement"
            | "typed_parameter"
            | "list_splat_pattern"
            | "dictionary_splat_pattern"
            | "case_pattern"
            | "dotted_name" => {
                for name in parts(node)
                    .into_iter()
                    .filter(|child| child.kind() == "identifier")
                {
                    let name = self.source.node_text(name);
                    if node.kind() != "dotted_name" {
                        self.own.insert(name);
                    }
                    let is_given = matches!(name, "self" | "cls" | "tmp_path" | "monkeypatch")
                        && matches!(
                            node.kind(),
                            "as_pattern_target" | "case_pattern" | "list_splat_pattern"
                        );
                    if is_given || matches!(node.kind(), "global_statement" | "nonlocal_statement")
                    {
                        self.outer.insert(name);
                    }
                    // No constant any more: it may be bound here.
                    self.texts.entry(name).or_default().0 += 2;
                }
            }
            _ => {}
        }
    }

    fn bind(
        &mut self,
        left: Node<'s>,
        right: Option<Node<'s>>,
        bindings: &mut Vec<(&'s str, Node<'s>)>,
    ) {
        match left.kind() {
            "identifier" => {
                let name = self.source.node_text(left);
                self.own.insert(name);
                let known = self.texts.entry(name).or_default();
                *known = (known.0 + 1, right);
                if matches!(name, "self" | "cls" | "tmp_path" | "monkeypatch") {
                    self.outer.insert(name);
                }
                if let Some(right) = right {
                    bindings.push((name, right));
                }
            }
            "pattern_list" | "tuple_pattern" | "list_pattern" | "tuple" | "list" => {
                let lefts: Vec<_> = left.named_children(&mut left.walk()).collect();
                let rights: Vec<_> = right
                    .filter(|right| {
                        matches!(
                            right.kind(),
                            "expression_list" | "tuple" | "list" | "pattern_list"
                        )
                    })
                    .map(|right| right.named_children(&mut right.walk()).collect())
                    .unwrap_or_default();
                let paired = lefts.len() == rights.len();
                for (at, left) in lefts.into_iter().enumerate() {
                    self.bind(left, rights.get(at).filter(|_| paired).copied(), bindings);
                }
            }
            _ => {}
        }
    }

    /// What an assignment binds on a class or on an object of it.
    fn member(&mut self, node: Node<'s>, left: Node<'s>) {
        let object = left
            .child_by_field_name("object")
            .map(|object| self.source.node_text(object));
        let word = left.child_by_field_name("attribute");
        if let (Some("self" | "cls"), Some(word)) = (object, word) {
            self.members.insert(self.source.node_text(word));
        }
        let outer = node
            .parent()
            .and_then(|line| line.parent())
            .and_then(|block| block.parent());
        if left.kind() == "identifier"
            && outer.is_some_and(|outer| outer.kind() == "class_definition")
        {
            self.members.insert(self.source.node_text(left));
        }
    }

    fn follow(&mut self, bindings: &[(&'s str, Node<'s>)]) {
        for _ in 0..MAX_ROUNDS {
            let mut grew = false;
            for (name, value) in bindings {
                let found = self.meanings(*value);
                let known = self.meanings.get(name);
                let new: Vec<_> = found
                    .into_iter()
                    .filter(|path| known.is_none_or(|known| !known.contains(path)))
                    .collect();
                if new.is_empty() {
                    continue;
                }
                let known = self.meanings.entry(name).or_default();
                known.extend(new);
                if known.len() > MAX_MEANINGS {
                    self.clarity = AliasLimit::Unclear;
                    return;
                }
                grew = true;
            }
            if !grew {
                return;
            }
        }
        self.clarity = AliasLimit::Unclear;
    }
}

/// The named parts of a node, without comments.
pub(crate) fn parts(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    let is_code = |part: &Node<'_>| !matches!(part.kind(), "comment" | "line_continuation");
    node.named_children(&mut cursor).filter(is_code).collect()
}

/// One name that an import binds.
pub(crate) struct Import<'s> {
    /// The name in the file.
    pub(crate) binds: &'s str,
    /// What it means.
    pub(crate) means: String,
    /// The module that is loaded for it; relative ones begin with dots.
    pub(crate) module: String,
    /// What is taken from the module; nothing where it is the module itself.
    pub(crate) member: Option<&'s str>,
}

/// What an import statement binds; a star binds `*`.
pub(crate) fn imports<'s>(source: &'s PythonSource, node: Node<'s>) -> Vec<Import<'s>> {
    let squeezed = |node| {
        source
            .node_text(node)
            .split_whitespace()
            .collect::<String>()
    };
    let from = node.child_by_field_name("module_name").map(squeezed);
    let mut found = Vec::new();
    for name in node
        .children_by_field_name("name", &mut node.walk())
        .filter(Node::is_named)
    {
        let (path, alias) = match name.kind() {
            "aliased_import" => (
                name.child_by_field_name("name"),
                name.child_by_field_name("alias"),
            ),
            _ => (Some(name), None),
        };
        let Some(path) = path else { continue };
        let first = path
            .named_child(0)
            .map_or(source.node_text(path), |first| source.node_text(first));
        let binds = alias.map_or(first, |alias| source.node_text(alias));
        found.push(match &from {
            Some(module) => {
                let joint = if module.ends_with('.') { "" } else { "." };
                Import {
                    binds,
                    means: format!("{module}{joint}{first}"),
                    module: module.clone(),
                    member: Some(first),
                }
            }
            None => {
                let module = squeezed(path);
                let qualified_name = if alias.is_some() {
                    module.clone()
                } else {
                    first.to_owned()
                };
                Import {
                    binds,
                    means: qualified_name,
                    module,
                    member: None,
                }
            }
        });
    }
    if let Some(module) = from
        && node
            .named_children(&mut node.walk())
            .any(|child| child.kind() == "wildcard_import")
    {
        found.push(Import {
            binds: "*",
            means: format!("{module}.*"),
            module,
            member: Some("*"),
        });
    }
    found
}
