//! The walk over the tree of a skill: what each mention may mean, and whether its class allows it.

use std::collections::BTreeSet;

use crucible_ledger::SideEffect;
use crucible_model::{Code, Finding, Verdict};
use tree_sitter::Node;

use super::table::{self, Power};
use super::{SkillPolicy, import_time, words};
use crate::grants::Grants;
use crate::python::{Clarity, Names, PythonSource, imports};

/// The most findings of one skill; who has so many needs no more.
const MOST_FINDINGS: usize = 100;

/// The walk.
pub(super) struct Walk<'s> {
    source: &'s PythonSource,
    names: Names<'s>,
    policy: &'s SkillPolicy,
    class: SideEffect,
    grants: &'s Grants,
    annotations: When,
    said: BTreeSet<(usize, &'static str)>,
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
    /// Of a `with`.
    With,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    when: When,
    scope: Scope,
    stands: Use,
}

impl Place {
    fn of(self, stands: Use) -> Self {
        Self { stands, ..self }
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
    pub(super) fn over(
        source: &'s PythonSource,
        policy: &'s SkillPolicy,
        class: SideEffect,
        grants: &'s Grants,
    ) -> Verdict {
        let mut children = source.root().walk();
        let lazy = source
            .root()
            .named_children(&mut children)
            .any(|node| node.kind() == "future_import_statement" && source.of(node).contains("annotations"));
        let mut walk = Self {
            source,
            names: Names::of(source),
            policy,
            class,
            grants,
            annotations: if lazy { When::Call } else { When::Import },
            said: BTreeSet::new(),
            verdict: Verdict::default(),
        };
        if walk.names.clarity() == Clarity::Unclear {
            walk.say(
                source.root(),
                Code::new("forge-unclear"),
                "aliases",
                "Give things one name each; so many aliases are not followed.",
            );
        }
        walk.inner(source.root(), Place { when: When::Import, scope: Scope::Open, stands: Use::Value });
        walk.verdict
    }

    fn visit(&mut self, node: Node<'s>, place: Place) {
        let field = |name| node.child_by_field_name(name);
        let values = place.of(Use::Value);
        match node.kind() {
            "comment" | "future_import_statement" => {}
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
            "keyword_argument" => self.each([field("value")], values),
            "keyword_pattern" => {
                if let Some(name) = node.named_child(0) {
                    self.word(name, name);
                }
                self.inner(node, values);
            }
            "assignment" | "named_expression" => self.assignment(node, place),
            "augmented_assignment" => {
                self.runs(node, place, "an operator on a variable");
                self.each([field("left")], place.of(Use::Target));
                self.each([field("right")], values);
            }
            "default_parameter" | "typed_default_parameter" => {
                self.each([field("value")], place.of(Use::Alias));
                self.annotation(field("type"), place);
            }
            "typed_parameter" => self.annotation(field("type"), place),
            "function_definition" => {
                self.each([field("name")], place.of(Use::Target));
                self.each([field("parameters")], values);
                self.annotation(field("return_type"), place);
                self.each(
                    [field("body")],
                    Place { when: When::Call, scope: Scope::Open, stands: Use::Value },
                );
            }
            "lambda" => {
                self.each([field("parameters")], values);
                self.each([field("body")], Place { when: When::Call, ..values });
            }
            "class_definition" => {
                self.each([field("superclasses")], values);
                self.each([field("body")], Place { scope: Scope::Class, ..values });
            }
            "decorator" => self.decorator(node, place),
            "expression_statement" => self.statement(node, place),
            "with_item" => self.inner(node, place.of(Use::With)),
            "for_statement" | "while_statement" | "with_statement" | "match_statement"
            | "raise_statement" | "assert_statement" | "delete_statement" | "await" | "yield" => {
                self.runs(node, place, "a statement that does something");
                let stands = if node.kind() == "delete_statement" { Use::Target } else { Use::Value };
                self.inner(node, place.of(stands));
            }
            _ => self.inner(node, values_of(node, place)),
        }
    }

    fn inner(&mut self, node: Node<'s>, place: Place) {
        let children: Vec<Node<'s>> = node.named_children(&mut node.walk()).collect();
        children.into_iter().for_each(|child| self.visit(child, place));
    }

    fn each<const N: usize>(&mut self, nodes: [Option<Node<'s>>; N], place: Place) {
        nodes.into_iter().flatten().for_each(|node| self.visit(node, place));
    }

    /// An annotation runs where its function or variable is defined, unless the file says that it does not.
    fn annotation(&mut self, node: Option<Node<'s>>, place: Place) {
        let when = if self.annotations == When::Call { When::Call } else { place.when };
        self.each([node], Place { when, ..place.of(Use::Value) });
    }

    fn statement(&mut self, node: Node<'s>, place: Place) {
        let mut cursor = node.walk();
        let mut parts = node.named_children(&mut cursor);
        let text = parts.next().filter(|part| matches!(part.kind(), "string" | "concatenated_string"));
        // A text on its own is prose, and a placeholder in it is not.
        if text.is_none_or(|text| self.source.literal(text).is_none()) {
            self.inner(node, place.of(Use::Value));
        }
    }

    fn assignment(&mut self, node: Node<'s>, place: Place) {
        let named = node.kind() == "named_expression";
        let left = node.child_by_field_name(if named { "name" } else { "left" });
        let right = node.child_by_field_name(if named { "value" } else { "right" });
        let plain = left.is_some_and(|left| left.kind() == "identifier");
        let lists = |node: Option<Node<'_>>| {
            node.filter(|node| {
                matches!(node.kind(), "pattern_list" | "tuple_pattern" | "expression_list" | "tuple")
            })
            .map(|node| node.named_child_count())
        };
        let paired = lists(left).is_some() && lists(left) == lists(right);
        self.each([left], place.of(Use::Target));
        let stands = if (plain || paired) && place.scope == Scope::Open { Use::Alias } else { Use::Value };
        match right {
            Some(right) if paired => self.inner(right, place.of(stands)),
            right => self.each([right], place.of(stands)),
        }
        self.annotation(node.child_by_field_name("type"), place);
    }

    fn decorator(&mut self, node: Node<'s>, place: Place) {
        let Some(expression) = node.named_child(0) else { return };
        let callee = match expression.kind() {
            "call" => expression.child_by_field_name("function").unwrap_or(expression),
            _ => expression,
        };
        let text = self.source.of(callee);
        let setter = [".setter", ".getter", ".deleter"].iter().any(|end| text.ends_with(end));
        let known = setter
            || self.names.meanings(callee).iter().any(|path| import_time::decorates(path))
            || (import_time::decorates_by_itself(text) && !self.names.is_own(text));
        if place.when == When::Import && !known {
            self.runs(node, place, "a decorator");
        }
        self.visit(
            expression,
            Place { when: if known { When::Call } else { place.when }, ..place.of(Use::Value) },
        );
    }

    fn import(&mut self, node: Node<'s>, place: Place) {
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
            if !import.binds.is_ascii() || import.member.is_some_and(words::is_deep) {
                self.report(node, Power::Reflection, &what);
            } else if import.member == Some("*") {
                self.say(node, Code::new("forge-star-import"), &what, "Name what is imported.");
            } else if place.scope == Scope::Class {
                self.say(
                    node,
                    Code::new("forge-import-not-allowed"),
                    &what,
                    "Import at the top of the file, not in a class.",
                );
            } else if listed(&self.policy.forbidden_imports) {
                self.say(
                    node,
                    Code::new("forge-import-forbidden"),
                    &what,
                    "The policy forbids this module; do without it.",
                );
            } else if is_base(&import.module) {
                if import.member != Some("BaseSkill") {
                    self.say(
                        node,
                        Code::new("forge-import-not-allowed"),
                        &what,
                        "Take `BaseSkill` from the base module, and nothing else.",
                    );
                }
            } else {
                match table::module_power(&import.module) {
                    Power::Unknown if !listed(&self.policy.allowed_imports) => {
                        self.say(
                            node,
                            Code::new("forge-import-not-allowed"),
                            &what,
                            "Use the harmless part of the standard library, or ask the operator to allow the module in the policy.",
                        );
                    }
                    Power::None | Power::Unknown => {
                        let power = table::power(&import.means);
                        if !matches!(power, Power::Open(_) | Power::ByName(_) | Power::Pool | Power::Type) {
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

    /// Judges a name or a dotted expression by what it may mean.
    fn mention(&mut self, node: Node<'s>, place: Place) -> Seen {
        let mut seen = Seen::Nothing;
        for path in self.names.meanings(node) {
            let module = table::is_module(&path) || self.names.imports(&path);
            let followed = match place.stands {
                Use::Base => true,
                Use::Alias => place.scope == Scope::Open,
                Use::Value | Use::Callee | Use::Target | Use::With => false,
            };
            if module && !followed && place.stands != Use::Target {
                self.say(
                    node,
                    Code::new("forge-reflection"),
                    &path,
                    "A module is no value; write out what is used of it.",
                );
                seen = Seen::Finding;
                continue;
            }
            let called = matches!(place.stands, Use::Callee);
            let found = match table::power(&path) {
                Power::Open(_) | Power::ByName(_) | Power::Pool if called => Seen::Nothing,
                Power::Open(_) => self.report(node, Power::Write, &path),
                Power::ByName(_) => self.report(node, Power::Reflection, &path),
                Power::Pool => self.report(node, Power::Outlives, &path),
                Power::Type => Seen::Nothing,
                // With a class that reads secrets, each one is read by its name: see `call` and `subscript`.
                Power::Secret if self.allows(Power::Secret) && path.starts_with("os.") => {
                    if place.stands == Use::Base || place.stands == Use::Alias {
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

    fn attribute(&mut self, node: Node<'s>, place: Place) {
        let (Some(object), Some(word)) =
            (node.child_by_field_name("object"), node.child_by_field_name("attribute"))
        else {
            return;
        };
        let text = self.source.of(word);
        if self.word(word, node) == Seen::Finding {
            return;
        }
        let own = matches!(self.source.of(object), "self" | "cls") && self.names.defines(text);
        let writes = words::is_writer(text) || (text == "replace" && place.stands != Use::Callee);
        if writes
            && !own
            && self.names.imports("pathlib")
            && self.report(node, Power::Write, text) == Seen::Finding
        {
            return;
        }
        if place.stands == Use::Target {
            let foreign = self.names.meanings(object).into_iter().find(|path| !path.starts_with("builtins."));
            if let Some(path) = foreign {
                self.say(
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
                .is_some_and(|word| self.source.of(word) == "__class__");
        let object = if class { object.child_by_field_name("object").unwrap_or(object) } else { object };
        self.visit(object, place.of(Use::Base));
    }

    fn subscript(&mut self, node: Node<'s>, place: Place) {
        let Some(value) = node.child_by_field_name("value") else { return };
        let reads =
            self.allows(Power::Secret) && self.names.meanings(value).iter().any(|path| path == "os.environ");
        if place.stands == Use::Target {
            self.runs(node, place, "a change of an element");
        }
        if reads && place.stands != Use::Target {
            let index = node.child_by_field_name("subscript");
            self.secret(node, index);
            self.each([index], place.of(Use::Value));
        } else {
            self.inner(node, place.of(Use::Value));
        }
    }

    fn call(&mut self, node: Node<'s>, place: Place) {
        let (Some(callee), Some(arguments)) =
            (node.child_by_field_name("function"), node.child_by_field_name("arguments"))
        else {
            return;
        };
        let paths = self.names.meanings(callee);
        if place.when == When::Import {
            self.called_at_import(node, callee, arguments, &paths);
        }
        let mut reads = false;
        for path in &paths {
            match table::power(path) {
                Power::Open(mode) => self.opens(node, arguments, mode, Some(0)),
                Power::ByName(at) => self.by_name(node, arguments, at, path),
                Power::Pool if place.stands != Use::With => {
                    self.report(node, Power::Outlives, path);
                }
                Power::Type if arguments.named_child_count() != 1 => {
                    self.report(node, Power::Code, path);
                }
                Power::Secret
                    if self.allows(Power::Secret)
                        && matches!(path.as_str(), "os.getenv" | "os.environ.get") =>
                {
                    reads = true;
                    self.secret(node, self.argument(arguments, 0, "key"));
                }
                _ => {}
            }
        }
        if callee.kind() == "attribute" && self.names.imports("pathlib") && paths.is_empty() {
            self.path_method(node, callee, arguments);
        }
        if !reads {
            self.visit(callee, place.of(Use::Callee));
        }
        self.visit(arguments, place.of(Use::Value));
    }

    /// `.open(mode)` and `.replace(target)` of what may be a path.
    fn path_method(&mut self, node: Node<'s>, callee: Node<'s>, arguments: Node<'s>) {
        let Some(word) = callee.child_by_field_name("attribute") else { return };
        let object = callee.child_by_field_name("object");
        let place = object
            .filter(|object| object.kind() == "call")
            .and_then(|call| call.child_by_field_name("arguments"));
        let literal =
            place.filter(|place| place.named_child_count() == 1).and_then(|place| place.named_child(0));
        match self.source.of(word) {
            "open" => {
                self.opens(node, arguments, 0, None);
            }
            // A text is replaced by a second argument.
            "replace" if arguments.named_child_count() < 2 => {
                self.report(node, Power::Write, "replace");
            }
            word if words::is_writer(word) && self.allows(Power::Write) => self.writes_to(node, literal),
            _ => {}
        }
    }

    fn opens(&mut self, node: Node<'s>, arguments: Node<'s>, mode: usize, path: Option<usize>) {
        let splat =
            arguments.named_children(&mut arguments.walk()).any(|part| part.kind().ends_with("_splat"));
        let opener = self.keyword(arguments, "opener").is_some();
        let said = self.argument(arguments, mode, "mode");
        let reading = |mode: Node<'_>| {
            self.source.literal(mode).is_some_and(|mode| mode.bytes().all(|byte| b"rbtU".contains(&byte)))
        };
        if !splat && !opener && said.is_none_or(reading) {
            return;
        }
        if self.report(node, Power::Write, "open") == Seen::Nothing
            && let Some(at) = path
        {
            self.writes_to(node, self.argument(arguments, at, "file"));
        }
    }

    /// A literal place has to be one that is granted.
    fn writes_to(&mut self, node: Node<'s>, place: Option<Node<'s>>) {
        let Some(text) = place.and_then(|place| self.source.literal(place)) else { return };
        let inside = words::inside(&text).filter(|path| {
            let allowed = self.policy.allowed_write_paths.as_ref();
            self.grants.write_paths.iter().any(|prefix| prefix.contains(path))
                && allowed.is_none_or(|allowed| allowed.iter().any(|prefix| prefix.contains(path)))
        });
        if inside.is_none() {
            self.say(
                node,
                Code::new("forge-write-outside"),
                &text,
                "Write below a directory that is granted, or ask for a grant.",
            );
        }
    }

    fn by_name(&mut self, node: Node<'s>, arguments: Node<'s>, at: usize, path: &str) {
        let given: Vec<Node<'s>> = arguments.named_children(&mut arguments.walk()).collect();
        let name = given.get(at).and_then(|name| self.source.literal(*name));
        let harmless = name.is_some_and(|name| !name.split('.').any(words::is_deep));
        // `attrgetter` takes more than one name.
        let single = at > 0 || given.len() == 1;
        let changes = matches!(path, "builtins.setattr" | "builtins.delattr");
        let own = given.first().is_some_and(|target| self.source.of(*target) == "self");
        if !harmless || !single || (changes && !own) {
            self.report(node, Power::Reflection, path);
        }
    }

    fn secret(&mut self, node: Node<'s>, name: Option<Node<'s>>) {
        let name = name.and_then(|name| self.source.literal(name));
        let granted = name
            .as_ref()
            .is_some_and(|name| self.grants.secrets.iter().any(|secret| secret.as_str() == name));
        if !granted {
            self.ungranted(node, &name.unwrap_or_else(|| "a computed name".to_owned()));
        }
    }

    fn ungranted(&mut self, node: Node<'s>, what: &str) -> Seen {
        self.say(
            node,
            Code::new("forge-secret-not-granted"),
            what,
            "Read a secret by its literal name, one that is granted.",
        );
        Seen::Finding
    }

    fn called_at_import(
        &mut self,
        node: Node<'s>,
        callee: Node<'s>,
        arguments: Node<'s>,
        paths: &BTreeSet<String>,
    ) {
        let text = self.source.of(callee);
        let root = text.split('.').next().unwrap_or_default();
        let of_text = callee.child_by_field_name("object").is_some_and(|object| object.kind() == "string")
            && callee
                .child_by_field_name("attribute")
                .is_some_and(|word| import_time::is_of_text(self.source.of(word)));
        let builds = of_text
            || (!self.names.is_own(root)
                && (import_time::constructs_by_itself(text)
                    || paths.iter().any(|path| import_time::constructs(path))));
        let runs_own = arguments.named_children(&mut arguments.walk()).any(|argument| {
            let value =
                argument.child_by_field_name("value").filter(|_| argument.kind() == "keyword_argument");
            let value = value.unwrap_or(argument);
            value.kind() == "lambda" || self.names.defines(self.source.of(value))
        });
        if !builds || runs_own {
            self.runs(node, Place { when: When::Import, scope: Scope::Open, stands: Use::Value }, text);
        }
    }

    fn string(&mut self, node: Node<'s>, place: Place) {
        if let Some(text) = self.source.literal(node)
            && let Some(part) = words::secret_place(&text)
        {
            self.say(
                node,
                Code::new("forge-secret"),
                part,
                "Secrets are handed over by name, never read from where they lie.",
            );
        }
        // Also in a text with placeholders, as far as the host stands in it.
        if self.allows(Power::Network) {
            for host in words::hosts(self.source.of(node)) {
                let granted = self.grants.hosts.iter().any(|granted| granted.as_str() == host);
                let allowed = self.policy.allowed_network.as_ref();
                let allowed = allowed.is_none_or(|allowed| allowed.iter().any(|name| name.as_str() == host));
                // A placeholder is no literal host.
                let computed = host.starts_with('{');
                if !computed && (!granted || !allowed) {
                    self.say(
                        node,
                        Code::new("forge-host-not-granted"),
                        &host,
                        "Name a host that is granted, or ask for a grant.",
                    );
                }
            }
        }
        self.inner(node, place);
    }

    /// Refuses words that lead past what an object shows.
    fn word(&mut self, word: Node<'s>, node: Node<'s>) -> Seen {
        let text = self.source.of(word);
        let of_name = text == "__class__" && node.kind() == "attribute" && {
            let after = self.source.text().get(node.end_byte()..).unwrap_or_default();
            after.starts_with(".__name__") || after.starts_with(".__qualname__")
        };
        if words::is_deep(text) && !of_name {
            return self.report(node, Power::Reflection, text);
        }
        Seen::Nothing
    }

    fn runs(&mut self, node: Node<'s>, place: Place, what: &str) {
        if place.when == When::Import {
            self.say(
                node,
                Code::new("forge-import-time"),
                what,
                "Only imports, constants and definitions run while a skill is imported; do this in `execute`.",
            );
        }
    }

    fn argument(&self, arguments: Node<'s>, at: usize, name: &str) -> Option<Node<'s>> {
        let mut cursor = arguments.walk();
        let mut plain = arguments
            .named_children(&mut cursor)
            .filter(|part| !matches!(part.kind(), "keyword_argument" | "comment"));
        plain.nth(at).or_else(|| self.keyword(arguments, name))
    }

    fn keyword(&self, arguments: Node<'s>, name: &str) -> Option<Node<'s>> {
        let named = |part: &Node<'_>| {
            part.kind() == "keyword_argument"
                && part.child_by_field_name("name").is_some_and(|found| self.source.of(found) == name)
        };
        let mut cursor = arguments.walk();
        arguments.named_children(&mut cursor).find(named).and_then(|part| part.child_by_field_name("value"))
    }

    fn allows(&self, power: Power) -> bool {
        use SideEffect::{FileWrite, Messaging, Money, Network, SecretRead};
        match power {
            Power::None => true,
            Power::Network => matches!(self.class, Network | Money | Messaging),
            Power::Write => self.class == FileWrite,
            Power::Secret => matches!(self.class, SecretRead | Money | Messaging),
            _ => false,
        }
    }

    fn report(&mut self, node: Node<'s>, power: Power, what: &str) -> Seen {
        if self.allows(power) {
            return Seen::Nothing;
        }
        let (code, hint) = match power {
            Power::Process => {
                (Code::new("forge-process"), "A skill starts and ends no processes; do it in Python.")
            }
            Power::Code => (
                Code::new("forge-code"),
                "A skill runs no text as code and loads none by name; write the code out.",
            ),
            Power::Interpreter => {
                (Code::new("forge-interpreter"), "A skill leaves the interpreter alone; do without it.")
            }
            Power::Outlives => (
                Code::new("forge-outlives"),
                "Nothing of a skill goes on after its call; wait for it in a `with` block.",
            ),
            Power::Pickle => (Code::new("forge-pickle"), "Bytes are no objects; read and write JSON."),
            Power::Native => (Code::new("forge-native"), "A skill calls no machine code; do it in Python."),
            Power::Network => {
                (Code::new("forge-network"), "Only the classes NETWORK, MONEY and MESSAGING connect.")
            }
            Power::Write => (
                Code::new("forge-write"),
                "Only the class FILE_WRITE changes files; read with a literal mode.",
            ),
            Power::Secret => (
                Code::new("forge-secret"),
                "Only the classes SECRET_READ, MONEY and MESSAGING read secrets, by name.",
            ),
            _ => (
                Code::new("forge-reflection"),
                "Name attributes in the text, and stay on the surface of objects.",
            ),
        };
        self.say(node, code, what, hint);
        Seen::Finding
    }

    fn say(&mut self, node: Node<'s>, code: Code, what: &str, hint: &'static str) {
        if self.verdict.findings().len() >= MOST_FINDINGS || !self.said.insert((node.start_byte(), hint)) {
            return;
        }
        let at = node.start_position();
        let what: String = what.chars().take(80).collect();
        self.verdict.push(Finding::error(
            code,
            format!("line {}, column {}: {what}", at.row + 1, at.column + 1),
            hint,
        ));
    }
}

/// What the children of a node stand as: those of parentheses as it does.
fn values_of(node: Node<'_>, place: Place) -> Place {
    match node.kind() {
        "parenthesized_expression"
        | "conditional_expression"
        | "boolean_operator"
        | "pattern_list"
        | "tuple_pattern"
        | "list_pattern"
        | "with_clause"
        | "as_pattern" => place,
        _ => place.of(Use::Value),
    }
}

/// Whether a module is the package's own base module.
fn is_base(module: &str) -> bool {
    let plain = |word: &str| {
        word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    };
    module == ".base"
        || module.strip_suffix(".skills.base").is_some_and(|package| !package.is_empty() && plain(package))
}
