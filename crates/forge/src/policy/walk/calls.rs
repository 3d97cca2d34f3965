//! What a call does, by what is called and what it is called with.

use std::collections::BTreeSet;

use crucible_model::{Code, RepoPath};
use tree_sitter::Node;

use super::super::table::Effect;
use super::super::{import_time, words};
use super::{NodeContext, Scope, Seen, Use, Walk, When};
use crate::python::parts;

/// Functions that change files, and which of their arguments are the places that are changed.
static PLACES: [(&str, &[usize]); 25] = [
    ("os.chmod", &[0]),
    ("os.link", &[1]),
    ("os.makedirs", &[0]),
    ("os.mkdir", &[0]),
    ("os.open", &[0]),
    ("os.remove", &[0]),
    ("os.removedirs", &[0]),
    ("os.rename", &[0, 1]),
    ("os.renames", &[0, 1]),
    ("os.replace", &[0, 1]),
    ("os.rmdir", &[0]),
    ("os.symlink", &[1]),
    ("os.truncate", &[0]),
    ("os.unlink", &[0]),
    ("os.utime", &[0]),
    ("shutil.copy", &[1]),
    ("shutil.copy2", &[1]),
    ("shutil.copyfile", &[1]),
    ("shutil.copytree", &[1]),
    ("shutil.make_archive", &[0]),
    ("shutil.move", &[0, 1]),
    ("shutil.rmtree", &[0]),
    ("shutil.unpack_archive", &[1]),
    ("codecs.open", &[0]),
    ("zipfile.ZipFile", &[0]),
];

/// What the places that these functions change are called where they are given by name.
static PLACE_NAMES: [&str; 9] = [
    "base_name",
    "database",
    "dir",
    "dst",
    "extract_dir",
    "file",
    "filename",
    "name",
    "path",
];

impl<'s> Walk<'s> {
    pub(super) fn call(&mut self, node: Node<'s>, place: NodeContext) {
        let (Some(callee), Some(arguments)) = (
            node.child_by_field_name("function"),
            node.child_by_field_name("arguments"),
        ) else {
            return;
        };
        let paths = self.names.meanings(callee);
        if place.when == When::Import {
            self.called_at_import(node, callee, arguments, &paths);
        }
        self.folded(node);
        if self.check_monkeypatch_target(node, callee, arguments, place) == Seen::Finding {
            return;
        }
        let mut reads = false;
        for path in &paths {
            match self.power(path) {
                Effect::Open(mode) => self.opens(node, arguments, mode, Some(0)),
                Effect::Database => self.database(node, arguments),
                Effect::ByName(at) => self.by_name(node, arguments, at, path),
                Effect::Pool if place.usage != Use::With => {
                    self.report(node, Effect::Outlives, path);
                }
                Effect::Type
                    if !has_only_positional(arguments, 1) || parts(arguments).is_empty() =>
                {
                    self.report(node, Effect::Code, path);
                }
                Effect::Type if !self.only_compared(node) => {
                    self.report(node, Effect::Reflection, path);
                }
                Effect::Arguments(most) if !has_only_positional(arguments, most) => {
                    self.report(node, Effect::Code, path);
                }
                Effect::Secret
                    if self.allows(Effect::Secret)
                        && matches!(path.as_str(), "os.getenv" | "os.environ.get") =>
                {
                    reads = true;
                    self.secret(node, self.argument(arguments, 0, "key"));
                }
                Effect::Network if self.allows(Effect::Network) => self.connects(arguments),
                Effect::Write if self.allows(Effect::Write) => {
                    let at = PLACES
                        .iter()
                        .find(|(known, _)| *known == path.as_str())
                        .map(|(_, at)| *at);
                    if at.is_some() || path.starts_with("tempfile.") {
                        for name in PLACE_NAMES {
                            self.writes_to(node, self.keyword(arguments, name));
                        }
                    }
                    for at in at.unwrap_or_default() {
                        self.writes_to(node, self.at(arguments, *at));
                    }
                }
                _ => {}
            }
        }
        let word = callee
            .child_by_field_name("attribute")
            .map(|word| self.source.node_text(word));
        if paths.is_empty()
            && matches!(word, Some("connect" | "connect_ex" | "sendto"))
            && self.allows(Effect::Network)
        {
            self.connects_to_pairs(arguments);
        }
        let of_path = paths.is_empty() || paths.iter().any(|path| path.starts_with("pathlib."));
        if callee.kind() == "attribute" && self.may_have_paths() && of_path {
            let unbound = paths
                .iter()
                .any(|path| path.split('.').count() > 2 && path.starts_with("pathlib."));
            self.path_method(node, callee, arguments, unbound);
        }
        if word == Some("write") && self.may_have_xml_trees() && self.allows(Effect::Write) {
            self.writes_to(node, self.argument(arguments, 0, "file_or_filename"));
        }
        self.visit(
            callee,
            place.with_use(if reads { Use::Read } else { Use::Callee }),
        );
        self.visit(arguments, place.with_use(Use::Value));
    }

    /// `.open(mode)` and `.replace(target)` of what may be a path; without an object, the path is the first argument.
    fn path_method(
        &mut self,
        node: Node<'s>,
        callee: Node<'s>,
        arguments: Node<'s>,
        unbound: bool,
    ) {
        let (Some(word), Some(object)) = (
            callee.child_by_field_name("attribute"),
            callee.child_by_field_name("object"),
        ) else {
            return;
        };
        let text = self.source.node_text(word);
        if self.is_own_object(object) && self.names.is_member(text) {
            return;
        }
        let given_nodes = parts(arguments);
        let target = if unbound {
            given_nodes.first().copied()
        } else {
            Some(object)
        };
        let temporary = self.writes_in_tests(object);
        let by_position = given_nodes
            .iter()
            .filter(|part| !is_named_or_spread(**part))
            .count();
        match text {
            "open" if !unbound && self.source.node_text(object) != "io" => {
                self.opens_at(node, arguments, 0, target)
            }
            "open" => self.opens_at(node, arguments, 1, target),
            // A text is replaced by a second argument, and a collection is copied without one.
            "replace" if !temporary && (unbound || by_position < 2) => {
                self.changes(node, text, target)
            }
            "copy"
                if !temporary
                    && by_position > usize::from(unbound)
                    && given_nodes.len() == 1 + usize::from(unbound) =>
            {
                self.changes(node, text, None);
            }
            word if words::is_writer(word) && self.allows(Effect::Write) => {
                self.writes_to(node, target)
            }
            _ => {}
        }
    }

    fn opens(&mut self, node: Node<'s>, arguments: Node<'s>, mode: usize, path: Option<usize>) {
        let target = path.and_then(|at| self.argument(arguments, at, "file"));
        self.opens_at(node, arguments, mode, target);
    }

    /// A database in memory, or one whose address says that it is only read, changes nothing.
    fn database(&mut self, node: Node<'s>, arguments: Node<'s>) {
        let address = self.argument(arguments, 0, "database");
        let is_spread = parts(arguments)
            .iter()
            .any(|part| part.kind().ends_with("_splat"));
        let is_address = self
            .keyword(arguments, "uri")
            .is_some_and(|uri| self.source.node_text(uri) == "True");
        let is_own_kind = self.keyword(arguments, "factory").is_some();
        let in_memory = address.and_then(|address| self.source.fold(address, &self.names));
        let is_read = is_address
            && address.is_some_and(|address| words::reads_database(self.source.node_text(address)));
        let is_harmless = is_read || in_memory.as_deref() == Some(":memory:");
        let is_temporary = address.is_some_and(|address| self.writes_in_tests(address));
        if !is_spread && !is_own_kind && (is_harmless || is_temporary) {
            return;
        }
        self.changes(node, "sqlite3.connect", address);
    }

    fn opens_at(
        &mut self,
        node: Node<'s>,
        arguments: Node<'s>,
        mode: usize,
        target: Option<Node<'s>>,
    ) {
        let splat = parts(arguments)
            .iter()
            .any(|part| part.kind().ends_with("_splat"));
        let opener = self.keyword(arguments, "opener").is_some();
        let mode_argument = self.argument(arguments, mode, "mode");
        let reading = |mode: Node<'_>| {
            self.source
                .literal(mode)
                .is_some_and(|mode| mode.bytes().all(|byte| b"rbtU".contains(&byte)))
        };
        if !splat && !opener && mode_argument.is_none_or(reading) {
            return;
        }
        if !splat && !opener && target.is_some_and(|target| self.writes_in_tests(target)) {
            return;
        }
        self.changes(node, "open", target);
    }

    /// What changes files needs its class, and a place that is granted.
    fn changes(&mut self, node: Node<'s>, what: &str, place: Option<Node<'s>>) {
        if self.report(node, Effect::Write, what) == Seen::Nothing {
            self.writes_to(node, place);
        }
    }

    /// A literal place has to be one that is granted.
    fn writes_to(&mut self, node: Node<'s>, place: Option<Node<'s>>) {
        let Some(text) = place.and_then(|place| self.source.fold(place, &self.names)) else {
            return;
        };
        let granted = words::inside(&text).filter(|path| {
            self.grants
                .write_paths
                .iter()
                .any(|prefix| prefix.contains(path))
        });
        let left = |path: &RepoPath| {
            let allowed = self.policy.allowed_write_paths.as_ref();
            allowed.is_none_or(|allowed| allowed.iter().any(|prefix| prefix.contains(path)))
        };
        let hint = match &granted {
            Some(path) if left(path) => return,
            Some(_) => {
                "It is granted, and the project's policy leaves it out: see allowed_write_paths in .crucible/skills/policy.yaml."
            }
            None => "Write below a directory that is granted, or ask for a grant.",
        };
        self.add_finding(node, Code::new("forge-write-outside"), &text, hint);
    }

    /// A host that is handed over as such has to be granted.
    fn connects(&mut self, arguments: Node<'s>) {
        let named = ["host", "address", "url"]
            .into_iter()
            .filter_map(|name| self.keyword(arguments, name));
        let mut places: Vec<Node<'s>> = named.chain(parts(arguments).first().copied()).collect();
        for place in &mut places {
            if place.kind() == "tuple"
                && let Some(first) = parts(*place).first()
            {
                *place = *first;
            }
        }
        for place in places {
            if let Some(text) = self
                .source
                .fold(place, &self.names)
                .filter(|text| words::looks_like_host(text))
            {
                let text = text.to_ascii_lowercase();
                self.host(
                    place,
                    text.split(':')
                        .next()
                        .unwrap_or_default()
                        .trim_end_matches('.'),
                );
            }
        }
    }

    /// A socket is connected to a host and a port, as a pair.
    fn connects_to_pairs(&mut self, arguments: Node<'s>) {
        for pair in parts(arguments)
            .into_iter()
            .filter(|part| part.kind() == "tuple")
        {
            let Some(host) = parts(pair).first().copied() else {
                continue;
            };
            if let Some(text) = self
                .source
                .fold(host, &self.names)
                .filter(|text| words::looks_like_host(text))
            {
                self.host(host, text.to_ascii_lowercase().trim_end_matches('.'));
            }
        }
    }

    fn by_name(&mut self, node: Node<'s>, arguments: Node<'s>, at: usize, path: &str) {
        let given_nodes = parts(arguments);
        let name = given_nodes
            .get(at)
            .and_then(|name| self.source.fold(*name, &self.names));
        let spread = given_nodes.iter().any(|part| is_named_or_spread(*part));
        // `attrgetter` takes more than one name; `methodcaller` what it calls with.
        let single = at > 0 || given_nodes.len() == 1 || path.ends_with("methodcaller");
        let changes = matches!(path, "builtins.setattr" | "builtins.delattr");
        let own = given_nodes
            .first()
            .is_some_and(|target| self.is_own_object(*target));
        match name {
            Some(name) if !spread && single && (!changes || own) => {
                self.found_by_name(node, &name);
            }
            _ => {
                self.report(node, Effect::Reflection, path);
            }
        }
    }

    pub(super) fn secret(&mut self, node: Node<'s>, name: Option<Node<'s>>) {
        let name = name.and_then(|name| self.source.fold(name, &self.names));
        let granted = name.as_ref().is_some_and(|name| {
            self.grants
                .secrets
                .iter()
                .any(|secret| secret.as_str() == name)
        });
        if !granted {
            self.ungranted(node, &name.unwrap_or_else(|| "a computed name".to_owned()));
        }
    }

    /// Whether an environment is only asked whether it holds a granted secret: `"NAME" in os.environ`.
    pub(super) fn asks_for_secret(&self, environment: Node<'s>) -> bool {
        let Some(asks) = environment
            .parent()
            .filter(|outer| outer.kind() == "comparison_operator")
        else {
            return false;
        };
        let operators: Vec<Node<'_>> = asks
            .children_by_field_name("operators", &mut asks.walk())
            .collect();
        let [operator] = operators.as_slice() else {
            return false;
        };
        let is_membership = matches!(operator.kind(), "in" | "not in");
        let name = parts(asks)
            .first()
            .filter(|name| name.id() != environment.id())
            .copied();
        let granted = |name: &str| {
            self.grants
                .secrets
                .iter()
                .any(|secret| secret.as_str() == name)
        };
        is_membership
            && name
                .and_then(|name| self.source.fold(name, &self.names))
                .is_some_and(|name| granted(&name))
    }

    pub(super) fn ungranted(&mut self, node: Node<'s>, what: &str) -> Seen {
        self.add_finding(
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
        let text = self.source.node_text(callee);
        let root = text.split('.').next().unwrap_or_default();
        let of_text = callee
            .child_by_field_name("object")
            .is_some_and(|object| object.kind() == "string")
            && callee
                .child_by_field_name("attribute")
                .is_some_and(|word| import_time::is_of_text(self.source.node_text(word)));
        let constructs = !paths.is_empty()
            && paths
                .iter()
                .all(|path| import_time::constructs(path) || self.constructs_tests(path));
        let builds = of_text
            || (!self.names.is_own(root)
                && (import_time::constructs_by_itself(text) || constructs));
        // These call what they are given.
        let calls = matches!(text, "sorted" | "max" | "min")
            && parts(arguments)
                .into_iter()
                .filter(|part| is_named_or_spread(*part))
                .any(|part| {
                    let value = part.child_by_field_name("value");
                    !value.is_some_and(|value| {
                        import_time::constructs_by_itself(self.source.node_text(value))
                    })
                });
        if !builds || calls {
            self.runs(
                node,
                NodeContext {
                    when: When::Import,
                    scope: Scope::Open,
                    usage: Use::Value,
                },
                text,
            );
        }
    }

    pub(super) fn argument(&self, arguments: Node<'s>, at: usize, name: &str) -> Option<Node<'s>> {
        self.at(arguments, at)
            .or_else(|| self.keyword(arguments, name))
    }

    /// The argument that is given by its position.
    fn at(&self, arguments: Node<'s>, at: usize) -> Option<Node<'s>> {
        parts(arguments)
            .into_iter()
            .filter(|part| part.kind() != "keyword_argument")
            .nth(at)
    }

    pub(super) fn keyword(&self, arguments: Node<'s>, name: &str) -> Option<Node<'s>> {
        let named = |part: &Node<'_>| {
            part.kind() == "keyword_argument"
                && part
                    .child_by_field_name("name")
                    .is_some_and(|found| self.source.node_text(found) == name)
        };
        let mut cursor = arguments.walk();
        arguments
            .named_children(&mut cursor)
            .find(named)
            .and_then(|part| part.child_by_field_name("value"))
    }
}

/// Whether an argument is given by its name, or is several at once.
fn is_named_or_spread(part: Node<'_>) -> bool {
    part.kind() == "keyword_argument" || part.kind().ends_with("_splat")
}

/// Whether a call gives no more than so many arguments, all by position.
pub(super) fn has_only_positional(arguments: Node<'_>, most: usize) -> bool {
    let given_nodes = parts(arguments);
    arguments.kind() == "argument_list"
        && given_nodes.len() <= most
        && !given_nodes.into_iter().any(is_named_or_spread)
}
