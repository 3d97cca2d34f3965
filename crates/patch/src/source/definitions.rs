//! Which definitions a source file holds, by kind and name.
//!
//! What stands inside a function is its own business and is not counted. Names are counted, not only collected: of
//! three methods called `new`, two are one too few.

use std::collections::BTreeMap;
use std::fmt;

use super::mask::mask;
use super::token::{Position, Token, tokens};
use super::{Language, python};

/// A definition by what it is and how it is called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Definition {
    /// The word that introduces it in its language.
    pub(crate) kind: &'static str,
    /// Its name, without the names of what it stands in.
    pub(crate) name: String,
}

impl fmt::Display for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

/// How often each definition occurs.
pub(crate) type Definitions = BTreeMap<Definition, u64>;

/// The definitions of a source file.
pub(crate) fn definitions(language: Language, source: &[u8]) -> Definitions {
    if language == Language::Python {
        return python::definitions(source);
    }
    let mut masked = mask(language, source);
    let mut found = Definitions::new();
    if language == Language::C {
        take_directives(&mut masked, &mut found);
    }
    let tokens = tokens(&masked);
    let mut reader = Reader {
        tokens: &tokens,
        blocks: Vec::new(),
        bodies: 0,
        opens: Block::Body,
        nesting: 0,
        found,
    };
    for at in 0..tokens.len() {
        reader.step(language, at);
    }
    reader.found
}

/// The longest signature of a C function that is recognised, in tokens.
const MAX_SIGNATURE_TOKENS: usize = 300;

/// Notes the `#define NAME` lines of C and blanks all directives, whose braces need not match.
fn take_directives(masked: &mut [u8], found: &mut Definitions) {
    let mut continues = Continues::No;
    for line in masked.split_mut(|byte| *byte == b'\n') {
        let directive = line
            .trim_ascii_start()
            .strip_prefix(b"#")
            .map(<[u8]>::trim_ascii_start);
        if directive.is_none() && continues == Continues::No {
            continue;
        }
        let name = directive
            .and_then(|rest| rest.strip_prefix(b"define "))
            .map(tokens);
        if let Some(name) = name.iter().flatten().next().filter(|token| token.is_word()) {
            *found
                .entry(Definition {
                    kind: "macro",
                    name: name.name(),
                })
                .or_default() += 1;
        }
        continues = if line.trim_ascii_end().ends_with(b"\\") {
            Continues::Yes
        } else {
            Continues::No
        };
        line.fill(b' ');
    }
}

#[derive(PartialEq)]
enum Continues {
    No,
    Yes,
}

/// What a brace opens.
#[derive(Clone, Copy, PartialEq)]
enum Block {
    /// Definitions stand inside: a module, an implementation, a namespace.
    Items,
    /// A class of JavaScript or C++: methods stand inside.
    Class,
    /// A function or anything else: what is inside does not count.
    Body,
}

struct Reader<'t> {
    tokens: &'t [Token<'t>],
    blocks: Vec<Block>,
    /// How many of `blocks` are bodies.
    bodies: usize,
    /// What the next brace opens.
    opens: Block,
    /// How many parentheses and brackets are open.
    nesting: usize,
    found: Definitions,
}

impl Reader<'_> {
    fn step(&mut self, language: Language, at: usize) {
        let token = &self.tokens[at];
        match token.text {
            b"{" => {
                self.bodies += usize::from(self.opens == Block::Body);
                self.blocks.push(self.opens);
                self.opens = Block::Body;
                return;
            }
            b"}" => {
                self.bodies -= usize::from(self.blocks.pop() == Some(Block::Body));
                self.opens = Block::Body;
                return;
            }
            b"(" | b"[" => self.nesting += 1,
            b")" | b"]" => self.nesting = self.nesting.saturating_sub(1),
            b";" if self.nesting == 0 => self.opens = Block::Body,
            _ => {}
        }
        let counts = self.nesting == 0 && self.bodies == 0;
        if !counts || !token.is_word() {
            return;
        }
        match language {
            Language::Rust => self.rust(at),
            Language::Script => self.script(at),
            Language::Go => self.go(at),
            Language::C => self.c(at),
            Language::Python => {}
        }
    }

    fn rust(&mut self, at: usize) {
        let kind = match self.tokens[at].text {
            b"fn" => "fn",
            b"struct" => "struct",
            b"enum" => "enum",
            b"trait" => "trait",
            b"type" => "type",
            b"mod" => "mod",
            b"const" => "const",
            b"static" => "static",
            b"macro_rules" => "macro",
            b"impl" => {
                self.opens = Block::Items;
                return;
            }
            _ => return,
        };
        let mut next = at + 1;
        while self.is(next, "!") || self.is(next, "mut") {
            next += 1;
        }
        if kind == "const"
            && ["fn", "unsafe", "async", "extern"]
                .iter()
                .any(|word| self.is(next, word))
        {
            return;
        }
        self.opens = match kind {
            "mod" | "trait" => Block::Items,
            // `impl Trait for fn(u8) -> u8 { … }`: a type, not a definition.
            "fn" if !self.tokens.get(next).is_some_and(Token::is_word) => return,
            _ => Block::Body,
        };
        self.add(kind, next);
    }

    fn script(&mut self, at: usize) {
        let token = &self.tokens[at];
        if self.blocks.last() == Some(&Block::Class) {
            let modifiers = [
                "static",
                "async",
                "get",
                "set",
                "public",
                "private",
                "protected",
                "readonly",
                "override",
                "abstract",
            ];
            let is_modifier = modifiers.iter().any(|word| token.is(word));
            let begins = token.position == Position::First
                || at.checked_sub(1).is_some_and(|before| {
                    let before = &self.tokens[before];
                    b"{};*#".contains(&before.text[0])
                        || modifiers.iter().any(|word| before.is(word))
                });
            let is_member = ["(", "=", "<"].iter().any(|mark| self.is(at + 1, mark));
            if begins
                && is_member
                && !(is_modifier && self.tokens.get(at + 1).is_some_and(Token::is_word))
            {
                self.add("member", at);
            }
            return;
        }
        let kind = match token.text {
            b"function" => "function",
            b"class" => "class",
            b"interface" => "interface",
            b"enum" => "enum",
            b"namespace" => "namespace",
            b"type" => "type",
            // One kind for all three, so that turning `var` into `const` drops nothing.
            b"const" | b"let" | b"var" => "variable",
            _ => return,
        };
        let next = if self.is(at + 1, "*") { at + 2 } else { at + 1 };
        match kind {
            "class" => self.opens = Block::Class,
            "namespace" => self.opens = Block::Items,
            "type" if !self.is(at + 2, "=") && !self.is(at + 2, "<") => return,
            "variable" if self.is(at + 1, "enum") => return,
            _ => {}
        }
        self.add(kind, next);
    }

    fn go(&mut self, at: usize) {
        match self.tokens[at].text {
            b"func" if self.is(at + 1, "(") => {
                let Some(close) = (at..self.tokens.len()).find(|at| self.is(*at, ")")) else {
                    return;
                };
                self.add("method", close + 1);
            }
            b"func" => self.add("func", at + 1),
            b"type" => self.add("type", at + 1),
            b"var" | b"const" => self.add("variable", at + 1),
            _ => {}
        }
    }

    fn c(&mut self, at: usize) {
        match self.tokens[at].text {
            b"namespace" | b"extern" => self.opens = Block::Items,
            b"struct" | b"union" | b"enum" | b"class" => {
                if at > 0 && self.is(at - 1, "enum") {
                    return;
                }
                let scoped =
                    self.is(at, "enum") && (self.is(at + 1, "class") || self.is(at + 1, "struct"));
                let name = if scoped { at + 2 } else { at + 1 };
                if self.is(name + 1, "{") || self.is(name + 1, ":") {
                    self.opens = if self.is(at, "enum") {
                        Block::Body
                    } else {
                        Block::Class
                    };
                    self.add("type", name);
                }
            }
            b"if" | b"for" | b"while" | b"switch" | b"return" | b"sizeof" | b"__attribute__"
            | b"decltype" | b"noexcept" => {}
            _ if self.is(at + 1, "(") && self.has_body(at + 1) => {
                self.opens = Block::Body;
                self.add("function", at);
            }
            _ => {}
        }
    }

    /// Whether a body follows the parameter list that opens at `at`, before a semicolon. Looks a limited way ahead, so
    /// that a text of nothing but calls is read in linear time.
    fn has_body(&self, at: usize) -> bool {
        let mut depth = 0usize;
        for token in self.tokens.iter().skip(at).take(MAX_SIGNATURE_TOKENS) {
            match token.text {
                b"(" => depth += 1,
                b")" => depth = depth.saturating_sub(1),
                b"{" if depth == 0 => return true,
                b";" | b"}" | b"=" | b"," if depth == 0 => return false,
                b"{" | b"}" => return false,
                _ => {}
            }
        }
        false
    }

    fn is(&self, at: usize, text: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is(text))
    }

    fn add(&mut self, kind: &'static str, at: usize) {
        if let Some(token) = self
            .tokens
            .get(at)
            .filter(|token| token.is_word() && !token.is("_"))
        {
            *self
                .found
                .entry(Definition {
                    kind,
                    name: token.name(),
                })
                .or_default() += 1;
        }
    }
}

/// Whether nothing outside of the file can know a definition of this name: each line at the left margin that introduces it exports nothing.
/// Methods and what is set in further are no such definitions, for a trait or a caller by name may ask for them. Known for Rust, JavaScript
/// and TypeScript, and for names of Python that begin with `_`.
pub(crate) fn is_private(language: Language, source: &[u8], name: &str) -> bool {
    let text = String::from_utf8_lossy(source);
    let holds = |line: &str| words_of(line).any(|word| word == name);
    let introducing = |line: &&str| {
        let line = line.strip_prefix("async ").unwrap_or(line);
        let kinds: &[&str] = match language {
            Language::Rust => &[
                "const ",
                "static ",
                "fn ",
                "struct ",
                "enum ",
                "type ",
                "unsafe fn ",
            ],
            Language::Script => &["const ", "let ", "var ", "function ", "class "],
            Language::Python => &["def ", "class "],
            Language::Go | Language::C => &[],
        };
        let is_assigned =
            || language == Language::Python && line.starts_with(&format!("{name} = "));
        holds(line) && (kinds.iter().any(|kind| line.starts_with(kind)) || is_assigned())
    };
    // A script that is not a module shares its names with all others of a page.
    let is_module = || {
        ["import", "export", "require("]
            .iter()
            .any(|word| text.contains(word))
    };
    if language == Language::Python && !name.starts_with('_')
        || language == Language::Script && !is_module()
    {
        return false;
    }
    let is_exported = |line: &str| {
        let line = line.trim_start();
        line.starts_with("pub") || line.starts_with("export") || line.contains("exports")
    };
    // An attribute or a decorator can hand it to somebody else: to a test runner, a linker, a router.
    let is_marked = |line: &str| line.starts_with("#[") || line.starts_with('@');
    let mut before = "";
    let mut found = false;
    for line in text.lines() {
        if is_exported(line) && holds(line)
            || introducing(&line) && (is_marked(before) || name == "main")
        {
            return false;
        }
        found |= introducing(&line);
        before = line;
    }
    found
}

/// Whether a text holds this word.
pub(crate) fn mentions(source: &[u8], name: &str) -> bool {
    words_of(&String::from_utf8_lossy(source)).any(|word| word == name)
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(language: Language, source: &str) -> Vec<String> {
        definitions(language, source.as_bytes())
            .into_iter()
            .flat_map(|(definition, count)| {
                std::iter::repeat_n(definition.to_string(), count as usize)
            })
            .collect()
    }

    #[test]
    fn private_definitions_are_distinguished_from_public() {
        use Language::{C, Go, Python, Rust, Script};
        for (language, source) in [
            (
                Script,
                "import a from 'a'\nconst name = /x/\nexport const other = 1\n",
            ),
            (
                Script,
                "const a = require('a');\nasync function name() {}\n",
            ),
            (Rust, "const name: u8 = 1;\npub fn other() {}\n"),
            (Rust, "fn name() {}\n"),
        ] {
            assert!(is_private(language, source.as_bytes(), "name"), "{source}");
        }
        assert!(is_private(Python, b"def _name():\n    pass\n", "_name"));
        assert!(is_private(Python, b"_name = 1\n", "_name"));
        for (language, source) in [
            (Script, "import a from 'a'\nexport const name = 1\n"),
            (
                Script,
                "import a from 'a'\nconst name = 1\nexport { name }\n",
            ),
            (
                Script,
                "const name = require('a')\nmodule.exports = { name }\n",
            ),
            (Script, "function name() {}\n"),
            (Script, "import a from 'a'\nclass A {\n  name() {}\n}\n"),
            (Rust, "pub fn name() {}\n"),
            (Rust, "pub(crate) const name: u8 = 1;\n"),
            (Rust, "impl Trait for A {\n    fn name() {}\n}\n"),
            (Rust, "#[test]\nfn name() {}\n"),
            (Rust, "#[unsafe(no_mangle)]\nstatic name: u8 = 1;\n"),
            (Python, "def name():\n    pass\n"),
            (Go, "func name() {}\n"),
            (C, "static int name(void) { return 1; }\n"),
        ] {
            assert!(!is_private(language, source.as_bytes(), "name"), "{source}");
        }
    }

    #[test]
    fn rust() {
        let source = "pub(crate) const fn a<'x>(f: fn(u8) -> u8) -> u8 { const L: u8 = 1; fn inner() {} L }\n\
            pub struct S { f: fn() }\nimpl<T: Fn() -> u8> S { pub async fn new() {} const C: u8 = 2; }\nimpl Other { fn new() {} }\n\
            mod m { pub static mut X: u8 = 1; }\nmacro_rules! mac { () => { fn no() {} } }\ntype A = [u8; 2];\ntrait T { fn req(&self); fn more(&self); }\n\
            const _: () = (); // fn comment() {}\nstatic TEXT: &str = \"fn string() {}\";\nenum E { A }\nextern \"C\" fn ext() {}";
        assert_eq!(
            names(Language::Rust, source),
            [
                "const C",
                "enum E",
                "fn a",
                "fn ext",
                "fn more",
                "fn new",
                "fn new",
                "fn req",
                "macro mac",
                "mod m",
                "static TEXT",
                "static X",
                "struct S",
                "trait T",
                "type A"
            ]
        );
    }

    #[test]
    fn script_definitions_are_found() {
        let source = "export default async function* f(a = {b: 1}) { const inner = 1; function no() {} }\n\
            export const g = (x) => { let y = 2; return y };\nclass K extends L {\n  #p = 1;\n  constructor() { super(); call(); }\n  static async m(a) { return `}` }\n  get v() { return 1 }\n}\n\
            interface I { a: string }\nexport type U<T> = T | null;\ntype V = string\nexport const enum En { A }\nvar old = 1\nif (x) { function cond() {} }";
        assert_eq!(
            names(Language::Script, source),
            [
                "class K",
                "enum En",
                "function f",
                "interface I",
                "member constructor",
                "member m",
                "member p",
                "member v",
                "type U",
                "type V",
                "variable g",
                "variable old"
            ]
        );
    }

    #[test]
    fn go() {
        let source = "package a\nimport \"x\"\nfunc A(f func(int) int) { var no = 1 }\nfunc (r *R) M() {}\ntype R struct { x int }\nvar V = 1\nconst (\n C = 1\n)";
        assert_eq!(
            names(Language::Go, source),
            ["func A", "method M", "type R", "variable V"]
        );
    }

    #[test]
    fn c_and_cpp_definitions_are_found() {
        let source = "#include <a.h>\n#define MAX(a) ((a)) \\\n  { no(a) {\nstatic int f(int a, char *(*g)(void)) { if (a) { return h(a); } return 1; }\nint proto(int a);\n\
            struct s { int a; };\ntypedef struct { int b; } t;\nnamespace n { class K : public B { void m() const { x(); } void d(); }; }\nextern \"C\" { void e(void) {} }\nint v = call(1);\nenum class E { A };";
        assert_eq!(
            names(Language::C, source),
            [
                "function e",
                "function f",
                "function m",
                "macro MAX",
                "type E",
                "type K",
                "type s"
            ]
        );
    }

    #[test]
    fn broken_source_is_read_without_harm() {
        for language in [
            Language::Rust,
            Language::Script,
            Language::Go,
            Language::C,
            Language::Python,
        ] {
            for source in [
                "",
                "fn",
                "func (",
                "class {",
                "}}}} fn a() {",
                "function*",
                "#define",
                "def",
                "const enum",
                "struct",
            ] {
                let _ = names(language, source);
            }
        }
    }
}
