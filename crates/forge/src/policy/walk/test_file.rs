//! What the test of a skill may do besides, and what it may not: end, skip or steer the run that judges it.
//!
//! A test takes the skill's module and pytest, writes below `tmp_path`, and replaces what its own skill's module holds. It never gets at the
//! machinery of the run: no hooks, no plugins, no settings, no exits.

use crucible_model::Code;
use tree_sitter::Node;

use super::super::table::{self, Effect};
use super::super::test_asks::EXECUTE;
use super::{NodeContext, Scope, Seen, Use, Walk};
use crate::python::{Import, parts};

/// What of pytest a test may use.
static OF_PYTEST: [&str; 13] = [
    "approx",
    "deprecated_call",
    "fail",
    "fixture",
    "mark.filterwarnings",
    "mark.parametrize",
    "mark.usefixtures",
    "param",
    "raises",
    "warns",
    "CaptureFixture",
    "LogCaptureFixture",
    "MonkeyPatch",
];

/// Fixtures by which a test reaches the run itself, or places that others share.
static OF_THE_RUN: [&str; 12] = [
    "cache",
    "doctest_namespace",
    "pytestconfig",
    "pytester",
    "record_property",
    "record_testsuite_property",
    "record_xml_attribute",
    "request",
    "testdir",
    "tmpdir",
    "tmpdir_factory",
    "tmp_path_factory",
];

/// Attributes of fixtures that lead to the run.
static OF_FIXTURES: [&str; 3] = ["getfixturevalue", "pluginmanager", "request"];

/// Classes on which those of a test may stand.
static BASES: [&str; 6] = [
    "abc.ABC",
    "collections.",
    "enum.",
    "io.BytesIO",
    "io.StringIO",
    "typing.",
];

/// Fixtures that this judge relies on, so that nothing else may have their names.
static RELIED_ON: [&str; 2] = ["monkeypatch", "tmp_path"];

/// Names by which a test file speaks to pytest.
static SETTINGS: [&str; 6] = [
    "__test__",
    "collect_ignore",
    "collect_ignore_glob",
    "conftest",
    "pytest_plugins",
    "pytestmark",
];

impl<'s> Walk<'s> {
    fn fakes(&mut self, node: Node<'s>, what: &str) -> Seen {
        self.add_finding(
            node,
            Code::new("forge-test-steers"),
            what,
            "A test calls its skill and compares; it leaves the run that judges it alone.",
        );
        Seen::Finding
    }

    /// Whether an import is one that tests need; members that it may not import are reported.
    pub(super) fn imports_for_tests(&mut self, import: &Import<'s>) -> bool {
        let Some(paths) = self.tests else {
            return false;
        };
        if import.module == "pytest" && import.member.is_none() {
            return true;
        }
        if import.module == "pytest" {
            return import.member.is_some_and(|member| {
                OF_PYTEST
                    .iter()
                    .any(|known| known.split('.').next() == Some(member))
            });
        }
        let is_complete = import.module == paths.module && import.member != Some("*");
        let part = paths
            .module
            .rsplit_once('.')
            .is_some_and(|(package, name)| import.module == package && import.member == Some(name));
        // What the skill itself has imported is not a part of it.
        let own = import
            .member
            .is_none_or(|member| !table::is_module_or_private(member.trim_start_matches('_')));
        part || (is_complete && own)
    }

    /// What a path of pytest, or of the module that is tested, can do.
    pub(super) fn power_in_tests(&self, path: &str) -> Option<Effect> {
        let paths = self.tests?;
        if path == "pytest" {
            return Some(Effect::None);
        }
        if let Some(member) = path.strip_prefix("pytest.") {
            let known = OF_PYTEST.iter().any(|known| {
                member == *known
                    || known
                        .strip_prefix(member)
                        .is_some_and(|rest| rest.starts_with('.'))
            });
            return Some(if known { Effect::None } else { Effect::Code });
        }
        let member = path
            .strip_prefix(paths.module.as_str())?
            .strip_prefix('.')?;
        let hidden = member
            .split('.')
            .any(|word| table::is_module_or_private(word.trim_start_matches('_')));
        Some(if hidden {
            Effect::Reflection
        } else {
            Effect::None
        })
    }

    /// Whether an object is the module that is tested.
    pub(super) fn is_tested_module(&self, object: Node<'_>) -> bool {
        self.tests
            .is_some_and(|paths| self.names.meanings(object).contains(&paths.module))
    }

    pub(super) fn decorates_tests(&self, path: &str) -> bool {
        self.tests.is_some() && (path == "pytest.fixture" || path.starts_with("pytest.mark."))
    }

    /// Whether a call makes a part of a test while its file is imported.
    pub(super) fn constructs_tests(&self, path: &str) -> bool {
        let class = |paths: &crate::paths::SkillPaths| format!("{}.{}", paths.module, paths.class);
        self.tests.is_some_and(|paths| {
            matches!(path, "pytest.param" | "pytest.approx") || path == class(paths)
        })
    }

    /// A name that the file binds: some mean something to pytest.
    pub(super) fn bound_in_tests(&mut self, node: Node<'s>, scope: Scope) -> Seen {
        let name = self.source.node_text(node);
        let is_given = node
            .parent()
            .is_some_and(|list| list.kind().contains("parameter"));
        let reaches = is_given && OF_THE_RUN.contains(&name);
        // The method of a class that is written there runs in the place of the skill's.
        let replaces = name == EXECUTE && scope == Scope::Class;
        if self.tests.is_some() && (SETTINGS.contains(&name) || reaches || replaces) {
            return self.fakes(node, name);
        }
        Seen::Nothing
    }

    /// A class of a test stands on the skill's, on one of the file's own, or on one that keeps nothing to itself: what a class of the standard
    /// library keeps under private names would be the test's own, and with it whatever those lead to.
    pub(super) fn inherits_in_tests(&mut self, bases: Option<Node<'s>>) {
        let Some(paths) = self.tests else { return };
        for base in bases.map(parts).unwrap_or_default() {
            let named = if base.kind() == "subscript" {
                base.child_by_field_name("value")
            } else {
                Some(base)
            };
            let plain = named.is_some_and(|named| {
                let meanings = self.names.meanings(named);
                let text = self.source.node_text(named);
                let own = self.names.is_class(text) || !self.names.is_own(text);
                let known = |path: &String| {
                    let of_skill = path
                        .strip_prefix(paths.module.as_str())
                        .is_some_and(|rest| rest.starts_with('.'));
                    of_skill
                        || path.starts_with("builtins.")
                        || BASES.iter().any(|known| path.starts_with(known))
                };
                match named.kind() {
                    "identifier" if meanings.is_empty() => own,
                    "identifier" | "attribute" => {
                        !meanings.is_empty() && meanings.iter().all(known)
                    }
                    _ => false,
                }
            });
            if !plain {
                self.fakes(base, "a base class");
            }
        }
    }

    /// What a test binds to `….execute` would run in the place of the skill's own.
    pub(super) fn replaces_execute(
        &mut self,
        node: Node<'s>,
        word: &str,
        place: NodeContext,
    ) -> Seen {
        let bound = place.usage == Use::Target
            || node
                .parent()
                .is_some_and(|outer| outer.kind() == "as_pattern_target");
        if self.tests.is_some() && word == EXECUTE && bound {
            return self.fakes(node, word);
        }
        Seen::Nothing
    }

    /// A function of a name that pytest calls by itself, or of the one that runs a skill.
    pub(super) fn defines(&mut self, node: Node<'s>) {
        let name = node
            .child_by_field_name("name")
            .map(|name| self.source.node_text(name))
            .unwrap_or_default();
        if self.tests.is_some()
            && (name.starts_with("pytest_") || name == EXECUTE || RELIED_ON.contains(&name))
        {
            self.fakes(node, name);
        }
    }

    /// A text that names a fixture: it could be given another meaning by parameters.
    pub(super) fn names_fixtures(&mut self, node: Node<'s>, text: &str) {
        if self.tests.is_some() && text.split(',').any(|name| RELIED_ON.contains(&name.trim())) {
            self.fakes(node, text);
        }
    }

    /// `monkeypatch` is used by its methods and handed to nobody.
    pub(super) fn check_monkeypatch(&mut self, node: Node<'s>, place: NodeContext) -> Seen {
        if self.tests.is_none() {
            return Seen::Nothing;
        }
        let text = self.source.node_text(node);
        // Where one of its methods is called as it may be, nothing comes by here.
        if node.kind() == "identifier" && text == "monkeypatch" && place.usage != Use::Target {
            return self.fakes(node, "monkeypatch as a value");
        }
        let word = node
            .child_by_field_name("attribute")
            .map(|word| self.source.node_text(word));
        if let Some(word) = word.filter(|word| OF_FIXTURES.contains(word)) {
            return self.fakes(node, word);
        }
        for path in self.names.meanings(node) {
            let known = self.power_in_tests(&path);
            if path.starts_with("pytest.") && known != Some(Effect::None) {
                return self.fakes(node, &path);
            }
            if path == "pytest.MonkeyPatch" && !self.only_compared(node) {
                return self.fakes(node, &path);
            }
        }
        Seen::Nothing
    }

    /// What `monkeypatch` changes is the skill's own, or an environment that steers nothing.
    pub(super) fn check_monkeypatch_target(
        &mut self,
        node: Node<'s>,
        callee: Node<'s>,
        arguments: Node<'s>,
        place: NodeContext,
    ) -> Seen {
        let object = callee
            .child_by_field_name("object")
            .filter(|object| self.source.node_text(*object) == "monkeypatch");
        let (Some(paths), Some(_), Some(word)) =
            (self.tests, object, callee.child_by_field_name("attribute"))
        else {
            return Seen::Nothing;
        };
        let given_nodes = parts(arguments);
        let plain = self.names.is_only_given("monkeypatch")
            && !given_nodes
                .iter()
                .any(|part| part.kind().ends_with("_splat"));
        let first = given_nodes.first().copied();
        let text = |at: usize| {
            given_nodes
                .get(at)
                .and_then(|part| self.source.fold(*part, &self.names))
        };
        let steers = |name: &str| {
            ["PY", "LD_", "PATH", "COV"]
                .iter()
                .any(|start| name.to_ascii_uppercase().starts_with(start))
        };
        let own = |target: &str| {
            let rest = target
                .strip_prefix(paths.module.as_str())
                .and_then(|rest| rest.strip_prefix('.'));
            rest.is_some_and(|rest| {
                let words: Vec<&str> = rest.split('.').collect();
                let named = words.len() == 1
                    || (words.len() == 2 && words.first() == Some(&paths.class.as_str()));
                named && !words.contains(&EXECUTE) && rest != paths.class
            })
        };
        let is_valid = plain
            && match self.source.node_text(word) {
                "setenv" | "delenv" => text(0).is_some_and(|name| !steers(&name)),
                "chdir" => first.is_some_and(|place| self.is_temporary(place)),
                "setattr" => {
                    let by_text = text(0).is_some_and(|target| own(&target));
                    let by_object = first.is_some_and(|target| {
                        let meanings = self.names.meanings(target);
                        !meanings.is_empty()
                            && meanings.iter().all(|path| {
                                text(1).is_some_and(|name| own(&format!("{path}.{name}")))
                            })
                    });
                    by_text || by_object
                }
                _ => false,
            };
        if !is_valid {
            return self.fakes(node, "monkeypatch");
        }
        // The module that is changed is not a value that is handed on.
        let rest = if self.source.node_text(word) == "setattr" {
            given_nodes.get(1..).unwrap_or_default()
        } else {
            &given_nodes
        };
        rest.iter()
            .for_each(|part| self.visit(*part, place.with_use(Use::Value)));
        Seen::Finding
    }

    /// Whether what is written lies below the test's own temporary directory.
    pub(super) fn writes_in_tests(&self, target: Node<'_>) -> bool {
        self.tests.is_some() && self.is_temporary(target)
    }

    fn is_temporary(&self, node: Node<'_>) -> bool {
        let part = |field| node.child_by_field_name(field);
        let inner = |part: Node<'_>| {
            let text = self.source.fold(part, &self.names);
            text.is_none_or(|text| {
                !text.starts_with('/') && !text.split('/').any(|word| word == "..")
            })
        };
        match node.kind() {
            "identifier" => {
                let name = self.source.node_text(node);
                let is_given = name == "tmp_path" && self.names.is_only_given(name);
                is_given
                    || self.names.only_value(name).is_some_and(|value| {
                        value.start_byte() < node.start_byte() && self.is_temporary(value)
                    })
            }
            "parenthesized_expression" => parts(node)
                .first()
                .is_some_and(|only| self.is_temporary(*only)),
            "binary_operator" => {
                part("left").is_some_and(|left| self.is_temporary(left))
                    && part("right").is_some_and(inner)
            }
            "call" => {
                let (Some(callee), Some(arguments)) = (part("function"), part("arguments")) else {
                    return false;
                };
                let given_nodes = parts(arguments);
                let word = callee
                    .child_by_field_name("attribute")
                    .map(|word| self.source.node_text(word));
                let object = callee.child_by_field_name("object");
                let below = matches!(
                    word,
                    Some("joinpath" | "with_suffix" | "with_name" | "resolve" | "absolute")
                ) && object.is_some_and(|object| self.is_temporary(object));
                let named = matches!(
                    self.source.node_text(callee),
                    "str" | "Path" | "os.path.join" | "os.fspath"
                ) && given_nodes
                    .first()
                    .is_some_and(|first| self.is_temporary(*first));
                (below && given_nodes.iter().all(|part| inner(*part)))
                    || (named && given_nodes.iter().skip(1).all(|part| inner(*part)))
            }
            _ => false,
        }
    }
}
