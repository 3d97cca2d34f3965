//! Whether a source file defines a test of a reported name, in the containers that the name says.
//!
//! A definition has a path of labels: modules of Rust, classes and functions of Python, titles around a call of a script,
//! suites of C++, and its own name. The reported name must end with the path. Before it, runners write crates, packages,
//! directories and files, but never another container of the same file.

use std::collections::{BTreeMap, BTreeSet};

use crucible_model::RepoPath;

use super::mask::mask;
use super::token::{Position, Token, close, plain_names, tokens};
use super::{Language, python};

/// What runners write between the parts of a name; a longer one comes before its own end.
const SEPARATORS: [&str; 6] = [" > ", " › ", "::", " ", ".", "/"];
/// A test in more brackets than these is not looked for, so that hostile nesting takes linear time.
const MAX_NESTING: usize = 100;
/// Attributes of Rust that make a module of cases from a function.
const CASE_ATTRIBUTES: [&str; 4] = ["rstest", "test_case", "test_matrix", "parameterized"];
/// Functions of scripts whose title is part of the name of each test in their arguments.
const GROUPS: [&str; 11] = [
    "describe",
    "fdescribe",
    "xdescribe",
    "context",
    "suite",
    "test",
    "it",
    "specify",
    "module",
    "group",
    "feature",
];
/// Words of scripts with a condition and a block.
const CONTROL: [&str; 6] = ["if", "for", "while", "switch", "catch", "with"];

/// Returns whether a source file defines the test that a runner reports by this name: as a function, or in a script as the
/// title of a call. `None` for a language that is not known. A comment or another text defines none.
#[must_use]
pub fn defines_test(path: &RepoPath, source: &[u8], name: &str) -> Option<bool> {
    let language = Language::from_path(path)?;
    let masked = mask(language, source);
    let name = match language {
        Language::Script => name,
        _ => name.split('[').next().unwrap_or_default().trim_end(),
    };
    Some(match language {
        Language::Python => PythonFile::read(&masked, name).define(path, name),
        Language::Rust => rust_definitions(path, &masked).define(name),
        Language::Script => script_definitions(source, &masked, name).define(name),
        Language::Go => go_defines(&masked, name),
        Language::C => {
            let name = without_numbers(name);
            c_definitions(&masked, &name).define(&name)
        }
    })
}

/// A part of the path of a definition.
#[derive(Debug, Clone, PartialEq)]
enum Label {
    /// Exactly this text.
    Name(String),
    /// This text, or nothing.
    Optional(String),
    /// Any one part, since code makes it.
    Computed,
}

/// Whether the path of a definition begins at the top of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Root {
    File,
    /// In a function or a macro, which may be used anywhere.
    Unknown,
}

#[derive(Debug)]
struct Path {
    labels: Vec<Label>,
    root: Root,
    /// Whether code makes more parts behind it.
    has_cases: bool,
}

impl Path {
    fn from_labels(labels: impl IntoIterator<Item = Label>) -> Self {
        Self {
            labels: labels.into_iter().collect(),
            root: Root::File,
            has_cases: false,
        }
    }
}

/// The definitions of a file, and the names of all of its containers.
#[derive(Debug, Default)]
struct Definitions {
    paths: Vec<Path>,
    containers: BTreeSet<String>,
}

impl Definitions {
    fn define(&self, name: &str) -> bool {
        let is_container = |part: &str| self.containers.contains(part);
        self.paths.iter().any(|path| {
            let mut before = parts_before(name, path).into_iter();
            before.any(|before| path.root == Root::Unknown || !last_parts(before).any(is_container))
        })
    }
}

/// What stands in a name before a path that it ends with; nothing if it does not.
fn parts_before<'n>(name: &'n str, path: &Path) -> BTreeSet<&'n str> {
    let mut ends = BTreeSet::from([name]);
    if path.has_cases {
        ends.extend(
            name.match_indices("::")
                .filter_map(|(at, _)| name.get(..at)),
        );
    }
    for label in path.labels.iter().rev() {
        let mut next = BTreeSet::new();
        for end in ends {
            match label {
                Label::Name(text) => {
                    next.extend(end.strip_suffix(text.as_str()).and_then(part_end))
                }
                Label::Optional(text) => {
                    next.extend(end.strip_suffix(text.as_str()).and_then(part_end));
                    next.insert(end);
                }
                Label::Computed => {
                    next.extend(
                        last_parts(end).filter_map(|part| part_end(end.strip_suffix(part)?)),
                    );
                }
            }
        }
        ends = next;
    }
    ends
}

/// A text without the separator at its end; nothing if it ends within a part.
fn part_end(text: &str) -> Option<&str> {
    if text.is_empty() {
        return Some(text);
    }
    SEPARATORS
        .iter()
        .find_map(|separator| text.strip_suffix(separator))
}

/// Each text that may be the last part of a name: what follows a separator, or all of it.
fn last_parts(name: &str) -> impl Iterator<Item = &str> {
    let starts = name.char_indices().map(|(at, _)| at);
    starts
        .filter(|at| part_end(&name[..*at]).is_some())
        .map(|at| &name[at..])
}

/// An open bracket of a text.
enum Block {
    /// What is inside stands where the bracket does.
    Plain,
    /// A container.
    Labelled(Label),
    /// A function or a macro, which may be used anywhere.
    Anywhere,
    /// What is inside is no test.
    Closed,
}

/// The path of what stands in these brackets; nothing if it is no test.
fn path_in<'b>(blocks: impl ExactSizeIterator<Item = &'b Block>, own: &str) -> Option<Path> {
    if blocks.len() > MAX_NESTING {
        return None;
    }
    let mut path = Path::from_labels([]);
    for block in blocks {
        match block {
            Block::Plain => {}
            Block::Labelled(label) => path.labels.push(label.clone()),
            Block::Anywhere => {
                path.labels.clear();
                path.root = Root::Unknown;
            }
            Block::Closed => return None,
        }
    }
    path.labels.push(Label::Name(own.to_owned()));
    Some(path)
}

/// The functions of Rust that are not in functions and implementations.
fn rust_definitions(file: &RepoPath, masked: &[u8]) -> Definitions {
    // The module of the file may have the name of one inside.
    let is_of_file = |name: &str| {
        let mut parts = file.as_str().split(['/', '.']);
        parts.any(|part| part.replace('-', "_") == name)
    };
    let mut tokens = tokens(masked);
    plain_names(&mut tokens);
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| token.is(text));
    let mut found = Definitions::default();
    let mut blocks: Vec<Block> = Vec::new();
    // What the next brace opens.
    let mut opens: Option<Block> = None;
    let mut has_cases = false;
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            b"{" => blocks.push(opens.take().unwrap_or(Block::Plain)),
            b"(" | b"[" => {
                let is_macro = matches!(opens, Some(Block::Anywhere));
                let block = opens.take_if(|_| is_macro);
                blocks.push(block.unwrap_or(Block::Plain));
                if token.is("[") && at > 0 && is(at - 1, "#") {
                    let path = tokens[at + 1..].iter();
                    let path = path.take_while(|token| token.is_word() || token.is(":"));
                    let last = path.last().map(Token::name).unwrap_or_default();
                    has_cases |= CASE_ATTRIBUTES.contains(&last.as_str());
                }
            }
            b"}" | b")" | b"]" => {
                blocks.pop();
            }
            b";" => opens = None,
            b"mod" => {
                let name = tokens.get(at + 1).map(Token::name).unwrap_or_default();
                if !is_of_file(&name) {
                    found.containers.insert(name.clone());
                }
                opens = Some(Block::Labelled(Label::Name(name)));
            }
            b"macro_rules" if is(at + 1, "!") => opens = Some(Block::Anywhere),
            b"impl" | b"trait" if opens.is_none() => opens = Some(Block::Closed),
            b"fn" if tokens.get(at + 1).is_some_and(Token::is_word) => {
                if let Some(path) = path_in(blocks.iter(), &tokens[at + 1].name()) {
                    found.paths.push(Path { has_cases, ..path });
                }
                has_cases = false;
                opens = Some(Block::Closed);
            }
            _ => {}
        }
    }
    found
}

/// The calls of a script with a title, and its named functions, as far as the name may end with them.
fn script_definitions(source: &[u8], masked: &[u8], name: &str) -> Definitions {
    let tokens = tokens(masked);
    let is = |at: Option<usize>, text: &str| {
        at.and_then(|at| tokens.get(at))
            .is_some_and(|token| token.is(text))
    };
    let mut found = Definitions::default();
    let mut blocks: Vec<Block> = Vec::new();
    let mut opened: Vec<usize> = Vec::new();
    // Where the bracket opens that a token closes.
    let mut opening: BTreeMap<usize, usize> = BTreeMap::new();
    let mut in_head = false;
    for (at, token) in tokens.iter().enumerate() {
        let before = at.checked_sub(1);
        let mut block = Block::Plain;
        match token.text {
            b"(" => {
                let callee = callee(&tokens, &opening, at);
                let is_group = callee
                    .iter()
                    .any(|token| GROUPS.iter().any(|word| token.is(word)));
                let is_each = callee.iter().any(|token| token.is("each"));
                match title(source, token.range.end) {
                    Title::Text(title) => {
                        if name.ends_with(&title) {
                            found.paths.extend(path_in(blocks.iter(), &title));
                        }
                        if is_each && title.contains(['%', '$']) {
                            block = Block::Labelled(Label::Computed);
                        } else if !title.is_empty() {
                            if is_group {
                                found.containers.insert(title.clone());
                                block = Block::Labelled(Label::Name(title));
                            } else {
                                block = Block::Labelled(Label::Optional(title));
                            }
                        }
                    }
                    Title::Computed if is_group && !is(Some(at + 1), "[") => {
                        block = Block::Labelled(Label::Computed);
                    }
                    Title::Computed => {}
                }
            }
            b"{" => {
                let is_statement = opened.last().is_none_or(|open| is(Some(*open), "{"));
                let is_arrow = is(before, ">") && is(at.checked_sub(2), "=");
                let is_method = before.and_then(|at| opening.get(&at)).is_some_and(|open| {
                    let word = open.checked_sub(1).and_then(|at| tokens.get(at));
                    word.is_some_and(|word| {
                        word.is_word() && !CONTROL.iter().any(|control| word.is(control))
                    })
                });
                if is_statement && (in_head || is_arrow || is_method) {
                    block = Block::Anywhere;
                    in_head = false;
                }
            }
            b"function" => {
                in_head = opened.last().is_none_or(|open| is(Some(*open), "{"));
                let own = tokens.get(at + 1).map(Token::name).unwrap_or_default();
                if !own.is_empty() && name.ends_with(&own) {
                    found.paths.extend(path_in(blocks.iter(), &own));
                }
            }
            _ => {}
        }
        match token.text {
            b"(" | b"[" | b"{" => {
                blocks.push(block);
                opened.push(at);
            }
            b")" | b"]" | b"}" => {
                blocks.pop();
                opening.extend(opened.pop().map(|open| (at, open)));
            }
            _ => {}
        }
    }
    found
}

/// The words of what is called before the parenthesis at `open`: `describe.only`, `test.each([…])`.
fn callee<'t, 's>(
    tokens: &'t [Token<'s>],
    opening: &BTreeMap<usize, usize>,
    open: usize,
) -> Vec<&'t Token<'s>> {
    let mut end = open;
    if let Some(inner) = end.checked_sub(1).and_then(|at| opening.get(&at)) {
        end = *inner;
    }
    let chain = tokens[..end].iter().rev();
    let mut expects_word = true;
    let chain = chain.take_while(|token| {
        let fits = if expects_word {
            token.is_word()
        } else {
            token.is(".")
        };
        expects_word = !expects_word;
        fits
    });
    chain.take(8).filter(|token| token.is_word()).collect()
}

enum Title {
    /// The whole first argument.
    Text(String),
    /// Something else.
    Computed,
}

/// The title of a call whose arguments begin at `start`.
fn title(source: &[u8], start: usize) -> Title {
    const LONGEST: usize = 1_000;
    let rest = source.get(start..).unwrap_or_default().trim_ascii_start();
    let Some((quote, rest)) = rest
        .split_first()
        .filter(|(quote, _)| b"\"'`".contains(quote))
    else {
        return Title::Computed;
    };
    let rest = rest.get(..LONGEST.min(rest.len())).unwrap_or_default();
    let mut is_escaped = false;
    let end = rest.iter().position(|byte| {
        let ends = byte == quote && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        ends
    });
    let Some((text, behind)) = end.and_then(|end| rest.split_at_checked(end)) else {
        return Title::Computed;
    };
    let is_whole = matches!(
        behind
            .get(1..)
            .unwrap_or_default()
            .trim_ascii_start()
            .first(),
        None | Some(b',' | b')')
    );
    match std::str::from_utf8(text) {
        Ok(text) if is_whole && !(*quote == b'`' && text.contains("${")) => {
            let quote = char::from(*quote);
            Title::Text(text.replace(&format!("\\{quote}"), &quote.to_string()))
        }
        _ => Title::Computed,
    }
}

/// The definitions of a Python file that the name may mean.
#[derive(Default)]
struct PythonFile {
    /// The definitions whose name the reported one ends with.
    paths: Vec<Path>,
    /// Their names, and those of the classes that they are in.
    methods: BTreeSet<(String, String)>,
    classes: Vec<Path>,
    /// The bases of a class, by its name.
    bases: BTreeMap<String, BTreeSet<String>>,
}

impl PythonFile {
    fn read(masked: &[u8], name: &str) -> Self {
        let mut found = Self::default();
        let mut around: Vec<(usize, Block)> = Vec::new();
        for line in python::lines(masked) {
            // The end of a definition's own line, which may be as far to the left.
            if line.code.starts_with([')', ']', '}']) {
                continue;
            }
            while around
                .pop_if(|(indent, _)| *indent >= line.indent)
                .is_some()
            {}
            let Some((kind, own)) = python::definition(line.code) else {
                continue;
            };
            let path = || path_in(around.iter().map(|(_, block)| block), own);
            if name.ends_with(own) {
                found.paths.extend(path());
                if let Some((_, Block::Labelled(Label::Name(class)))) = around.last() {
                    found.methods.insert((class.clone(), own.to_owned()));
                }
            }
            if kind == "class" {
                found.classes.extend(path().filter(|_| name.contains(own)));
                let known = found.bases.entry(own.to_owned()).or_default();
                known.extend(bases(masked.get(line.start..).unwrap_or_default()));
            }
            around.push((line.indent, Block::Labelled(Label::Name(own.to_owned()))));
        }
        found
    }

    /// Returns whether the file defines the name. Before classes, runners write only the module. A class has the methods of
    /// its bases in the same file; those of an imported base are unknown.
    fn define(&self, file: &RepoPath, name: &str) -> bool {
        let module = file.as_str().rsplit_once('.').map_or("", |(path, _)| path);
        let module = module.strip_suffix("/__init__").unwrap_or(module);
        let module = module.rsplit('/').next().unwrap_or_default();
        let is_module = |before: &str| {
            let before = before.strip_suffix(".py").unwrap_or(before);
            let ends_with = |module: &str| {
                let rest = before.strip_suffix(module);
                rest.is_some_and(|rest| !rest.ends_with(|c: char| c.is_alphanumeric() || c == '_'))
            };
            before.is_empty() || ends_with(module) || ends_with("__main__")
        };
        let is_named = |path: &Path| parts_before(name, path).into_iter().any(is_module);
        let own: BTreeSet<&String> = self.methods.iter().map(|(_, own)| own).collect();
        self.paths.iter().any(is_named)
            || self.classes.iter().any(|class| {
                own.iter().any(|own| {
                    let label = Label::Name((*own).clone());
                    let labels = class.labels.iter().cloned().chain([label]);
                    is_named(&Path::from_labels(labels)) && self.inherits(class, own)
                })
            })
    }

    fn inherits(&self, class: &Path, method: &str) -> bool {
        let Some(Label::Name(class)) = class.labels.last() else {
            return false;
        };
        let mut seen = BTreeSet::from([class]);
        let mut rest = vec![class];
        while let Some(class) = rest.pop() {
            if self.methods.contains(&(class.clone(), method.to_owned())) {
                return true;
            }
            let bases = self.bases.get(class).into_iter().flatten();
            rest.extend(bases.filter(|base| seen.insert(base)));
        }
        false
    }
}

/// The last names of the bases in `class A(B, c.D[E]):`.
fn bases(class: &[u8]) -> Vec<String> {
    const LONGEST: usize = 2_000;
    let head = tokens(class.get(..LONGEST.min(class.len())).unwrap_or_default());
    let is = |at: usize, text: &str| head.get(at).is_some_and(|token| token.is(text));
    let Some(open) = (0..head.len()).find(|at| is(*at, "(") || is(*at, ":")) else {
        return Vec::new();
    };
    let arguments = head.get(open + 1..close(&head, open)).unwrap_or_default();
    let ends = arguments
        .iter()
        .zip(arguments.iter().skip(1).map(Some).chain([None]));
    let ends = ends.filter(|(token, next)| {
        let is_end = |next: &Token<'_>| next.is(",") || next.is("[");
        token.is_word() && next.is_none_or(is_end)
    });
    ends.map(|(token, _)| token.name()).collect()
}

/// A function of Go is a test of its package, a method one of its suite. The names of subtests are ignored, because code makes
/// them.
fn go_defines(masked: &[u8], name: &str) -> bool {
    let ends: Vec<&str> = name
        .match_indices('/')
        .filter_map(|(at, _)| name.get(..at))
        .chain([name])
        .collect();
    let is_reported = |own: &Token<'_>, separators: &[char]| {
        let own = own.name();
        let mut before = ends.iter().filter_map(|end| end.strip_suffix(own.as_str()));
        before.any(|before| before.is_empty() || before.ends_with(separators))
    };
    let tokens = tokens(masked);
    let functions = tokens.iter().enumerate();
    let mut functions =
        functions.filter(|(_, token)| token.is("func") && token.position == Position::First);
    functions.any(|(at, _)| match tokens.get(at + 1) {
        Some(own) if own.is_word() => is_reported(own, &['.']),
        Some(_) => {
            let own = tokens.get(close(&tokens, at + 1) + 1);
            own.is_some_and(|own| own.is_word() && is_reported(own, &['/']))
        }
        None => false,
    })
}

/// The tests of macros such as `TEST(Suite, Name)`. Without one of the name, each word of the code counts.
fn c_definitions(masked: &[u8], name: &str) -> Definitions {
    let tokens = tokens(masked);
    let mut found = Definitions::default();
    let mut words = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let before = |back: usize| at.checked_sub(back).and_then(|at| tokens.get(at));
        let suite = match (before(4), before(3), before(2), before(1)) {
            (Some(call), Some(open), Some(suite), Some(comma))
                if call.name().contains("TEST") && open.is("(") && comma.is(",") =>
            {
                Some(suite.name())
            }
            _ => None,
        };
        found.containers.extend(suite.clone());
        if !token.is_word() || !name.ends_with(&token.name()) {
            continue;
        }
        let own = Label::Name(token.name());
        match suite {
            Some(suite) => {
                found
                    .paths
                    .push(Path::from_labels([Label::Name(suite), own]));
            }
            None => words.push(Path::from_labels([own])),
        }
    }
    if found.paths.is_empty() {
        found.paths = words;
    }
    found
}

/// `Made/Suite.Name/0` of GoogleTest without the numbers of parameters and types.
fn without_numbers(name: &str) -> String {
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (first, rest) = name.split_once('/').unwrap_or((name, ""));
    let mut content = first.to_owned();
    for part in rest.split('/').filter(|part| !is_number(part)) {
        match part.split_once('.') {
            Some((number, name)) if is_number(number) => content.extend([".", name]),
            _ => content.extend(["/", part]),
        }
    }
    content
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks names against one file.
    fn check(path: &str, source: &str, names: &[(&str, bool)]) {
        let path: RepoPath = path.parse().unwrap();
        for (name, expected) in names {
            let found = defines_test(&path, source.as_bytes(), name);
            assert_eq!(found, Some(*expected), "{name} in {source}");
        }
    }

    #[test]
    fn only_definitions_define_tests() {
        for (path, source, name, expected) in [
            ("t.py", "async def test_b():\n    pass\n", "test_b", true),
            ("t.py", "# def test_b():\n", "test_b", false),
            ("t.py", "print(\"def test_b\")\n", "test_b", false),
            ("t.py", "test_b = 1\n", "test_b", false),
            ("t.py", "def test_bc():\n    pass\n", "t.py::test_b", false),
            ("t.py", "def b():\n    pass\n", "t.py::test_b", false),
            (
                "t.rs",
                "proptest! {\n    #[test]\n    fn wide(a: u8) {}\n}\n",
                "wide",
                true,
            ),
            (
                "t.rs",
                "// fn wide() {}\nfn other() { wide(); }\n",
                "wide",
                false,
            ),
            (
                "a_test.go",
                "func TestArea(t *testing.T) {}\n",
                "TestArea",
                true,
            ),
            ("a_test.go", "// TestArea\n", "TestArea", false),
            ("a.mjs", "test(\"adds 1.5\", f)\n", "adds 1.5", true),
            ("a.mjs", "test(\"adds 1.55\", f)\n", "adds 1.5", false),
            ("a.mjs", "it(\n  'adds', f)\n", "adds", true),
            ("a.mjs", "// test(\"adds\", f)\n", "adds", false),
            ("a.mjs", "const title = \"adds\";\n", "adds", false),
            ("t.cc", "TEST(Area, IsWide) {}\n", "Area.IsWide", true),
            ("t.cc", "// IsWide\n", "IsWide", false),
        ] {
            check(path, source, &[(name, expected)]);
        }
        let shell = "tests/a.sh".parse().unwrap();
        assert_eq!(defines_test(&shell, b"a.sh", "a.sh"), None);
    }

    #[test]
    fn python_test_is_in_its_class() {
        let source = r#"
def test_top():
    def test_inner():
        pass

class A(
    TestCase,
):
    class In:
        def test_in(self):
            pass

    def test_a(self):
        x = """
class C:
"""

    async def test_last(self): pass

class B(TestCase):
    def test_b(self):
        pass
"#;
        check(
            "pkg/tests/test_a.py",
            source,
            &[
                ("pkg/tests/test_a.py::B::test_b", true),
                ("tests/test_a.py::B::test_b[1-a.b]", true),
                ("tests.test_a.B.test_b", true),
                ("test_a.B.test_b", true),
                ("__main__.B.test_b", true),
                ("B.test_b", true),
                ("pkg/tests/test_a.py::A::test_last", true),
                ("pkg/tests/test_a.py::A::In::test_in", true),
                ("pkg/tests/test_a.py::test_top", true),
                ("pkg/tests/test_a.py::A::test_b", false),
                ("tests.test_a.A.test_b", false),
                ("tests.test_a.X.test_b", false),
                ("pkg/tests/test_a.py::test_b", false),
                ("test_b", false),
                ("pkg/tests/test_a.py::A::test_top", false),
                ("pkg/tests/test_a.py::X::test_top", false),
                ("pkg/tests/test_other.py::test_top", false),
                ("pkg/tests/test_a.py::test_inner", false),
                ("pkg/tests/test_a.py::In::test_in", false),
                ("pkg/tests/test_a.py::C::test_last", false),
            ],
        );
        let names = [("t.B.test_b", true), ("u.B.test_b", false)];
        check("t/__init__.py", source, &names);
    }

    #[test]
    fn python_class_inherits_from_its_file_only() {
        let source = r#"
from other import Far

class Base:
    def test_b(self):
        pass

class Mid(Base):
    pass

class A(Mid, unittest.TestCase):
    pass

class G(Base[int], metaclass=M):
    pass

class Other(Far):
    def test_o(self):
        pass

class Loop(Loop):
    pass
"#;
        check(
            "test_a.py",
            source,
            &[
                ("test_a.py::A::test_b", true),
                ("test_a.A.test_b", true),
                ("test_a.G.test_b", true),
                ("test_a.py::Other::test_b", false),
                ("test_a.py::A::test_o", false),
                ("test_a.py::A::test_far", false),
                ("test_a.Loop.test_b", false),
            ],
        );
    }

    #[test]
    fn rust_test_is_in_its_modules() {
        let source = r#"
fn top() { fn inner() {} }
mod tests {
    use super::*;
    mod deep {
        #[test]
        fn c() {}
    }
    proptest! {
        #[test]
        fn b(x in 0..3u8) {}
    }
    impl S { fn method(&self) {} }
}
mod other {
    #[test]
    fn b_only() {}
}
macro_rules! shared { () => { #[test] fn made() {} } }
"#;
        check(
            "crates/area/src/wide.rs",
            source,
            &[
                ("area::wide::tests::b", true),
                ("area wide::tests::b", true),
                ("tests::b", true),
                ("wide::tests::deep::c", true),
                ("area::wide::top", true),
                ("wide::other::made", true),
                ("area::wide::other::b", false),
                ("area::wide::b", false),
                ("wide::deep::c", false),
                ("wide::tests::c", false),
                ("area::tests::b_only", false),
                ("wide::tests::top", false),
                ("wide::tests::method", false),
                ("wide::top::inner", false),
            ],
        );
        let names = [("it::x", true), ("it::area::x", true)];
        check("tests/it.rs", "#[test]\nfn x() {}\n", &names);
        let source = "mod area { fn y() {} }\nfn x() {}\n";
        check("src/area.rs", source, &[("p::area::x", true)]);
    }

    #[test]
    fn cases_of_rust_macros_belong_to_their_function() {
        let source = r#"
mod t {
    #[rstest]
    #[case(1, 2)]
    fn adds(#[case] a: u8) {}

    #[test_case(1; "one")]
    #[tokio::test]
    async fn wide(a: u8) {}

    #[test]
    fn plain() {}
}
"#;
        check(
            "src/a.rs",
            source,
            &[
                ("a::t::adds::case_1", true),
                ("a::t::adds::case_1::b_2_x", true),
                ("a::t::wide::one", true),
                ("a::t::plain", true),
                ("a::t::plain::case_1", false),
                ("a::u::adds::case_1", false),
                ("a::adds::case_1", false),
            ],
        );
    }

    #[test]
    fn script_test_is_in_its_groups() {
        let source = r#"
describe('a', () => {
  describe.only("in [x]", function () {
    it('adds', f)
  })
  for (const n of [1]) {
    it('loops', f)
  }
  it("it's", () => { expect(g('b', 1)).toBe(2) })
})
describe('b', () => it('short', f))
test('top', async (t) => { await t.test('sub', f) })
withPath('/x', () => { test('wrapped', f) })
describe(Area, () => { it('has width', f) })
describe.each([[1]])('n %i', (n) => { it('counts', f) })
function shared() { it('shares', f) }
const more = () => {
  it('more', f)
}
"#;
        check(
            "src/a.test.ts",
            source,
            &[
                ("src/a.test.ts > a > in [x] > adds", true),
                ("a > in [x] > adds", true),
                ("a in [x] adds", true),
                ("a › in [x] › adds", true),
                ("a > loops", true),
                ("a > it's", true),
                ("b > short", true),
                ("src/a.test.ts > top > sub", true),
                ("top", true),
                ("wrapped", true),
                ("/x > wrapped", true),
                ("Area > has width", true),
                ("n 1 > counts", true),
                ("b > shares", true),
                ("a > more", true),
                ("b > in [x] > adds", false),
                ("a > adds", false),
                ("b > loops", false),
                ("a > short", false),
                ("a > top", false),
                ("sub", false),
                ("adds", false),
                ("has width", false),
            ],
        );
    }

    #[test]
    fn go_method_is_test_of_a_suite() {
        let source = "func TestArea(t *testing.T) {}\n\nfunc (s *Suite) TestWide() {}\n";
        check(
            "a_test.go",
            source,
            &[
                ("example.com/a.TestArea", true),
                ("example.com/a.TestArea/zero/x.y", true),
                ("example.com/a.TestSuite/TestWide", true),
                ("example.com/a.TestSuite/TestWide/zero", true),
                ("example.com/a.TestSuite/TestArea", false),
                ("example.com/a.TestWide", false),
            ],
        );
    }

    #[test]
    fn c_test_is_in_its_suite() {
        let source = "TEST_P(Area, Wide) {}\nTYPED_TEST(Typed, Deep) {}\nvoid plain(void) {}\n\
                      int main(void) { RUN(area, plain); }\n";
        check(
            "a.cc",
            source,
            &[
                ("Area.Wide", true),
                ("Made/Area.Wide/0", true),
                ("Typed/1.Deep", true),
                ("plain", true),
                ("area.plain", true),
                ("Other.Wide", false),
                ("Typed.Wide", false),
                ("Area.plain", false),
            ],
        );
    }
}
