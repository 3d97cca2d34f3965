//! How texts are read as outlines, and that reading ends whatever the text is.
//!
//! Slow where the texts are megabytes long, which the dev profile reads at a tenth of the speed.

use super::*;

const ALL: [Grammar; 6] = [
    Grammar::Rust,
    Grammar::Python,
    Grammar::JavaScript,
    Grammar::TypeScript,
    Grammar::Tsx,
    Grammar::Go,
];

/// Each entry as `container/container/word name`, with its kind where it is not a definition.
fn entries(grammar: Grammar, text: &str, branches: Branches) -> Vec<String> {
    let parsed =
        Parsed::parse(grammar, text).unwrap_or_else(|unparsed| panic!("{unparsed:?}: {text}"));
    let outline = Outline::new(&parsed, branches);
    let own = |entry: &Entry<'_>| match &entry.kind {
        Kind::Definition(definition) => {
            format!("{} {}", definition.word, definition.names.join("+"))
        }
        Kind::Import => "import".to_owned(),
        Kind::Prose => "prose".to_owned(),
        Kind::Other => "other".to_owned(),
    };
    let name = |entry: &Entry<'_>| {
        let mut name = own(entry);
        let mut parent = entry.parent;
        while let Some(at) = parent {
            name = format!("{}/{name}", own(&outline.entries[at]));
            parent = outline.entries[at].parent;
        }
        name
    };
    outline.entries.iter().map(name).collect()
}

#[test]
fn rust() {
    let text = "#![allow(x)]\n//! Doc.\nuse a::b;\nextern crate c;\nimpl<T> fmt::Display for S<T> where T: X {\n    const C: u8 = 1;\n    \
                fn f() {\n        fn inner() {}\n    }\n}\nmod m;\nmod n {\n    struct S;\n}\nconst _: () = ();\nextern \"C\" {\n    fn e();\n}\n\
                union U {\n    a: u8,\n}\nmac!(x);\n";
    assert_eq!(
        entries(Grammar::Rust, text, Branches::Open),
        [
            "other",
            "import",
            "import",
            "impl fmt::Display for S<T>",
            "impl fmt::Display for S<T>/const C",
            "impl fmt::Display for S<T>/fn f",
            "mod m",
            "mod n",
            "mod n/struct S",
            "other",
            "block extern\"C\"",
            "block extern\"C\"/fn e",
            "union U",
            "other"
        ]
    );
}

#[test]
fn python() {
    let text = "\"\"\"Doc.\"\"\"\nfrom a import b\nx: int = 1\na = b = 2\n(c, d) = 1, 2\nx += 1\nA.y = 2\nclass A:\n    @property\n    def p(self): ...\n    \
                @p.setter\n    def p(self, v): ...\n    class B:\n        z = 1\ntry:\n    def f(): ...\nexcept E:\n    def f(): ...\ntype T[X] = X\n";
    let open = [
        "prose",
        "import",
        "variable x",
        "variable a+b",
        "variable c+d",
        "other",
        "variable A.y",
        "class A",
        "class A/def p",
        "class A/def p.setter",
        "class A/class B",
        "class A/class B/variable z",
        "other",
        "def f",
        "def f",
        "type T",
    ];
    assert_eq!(entries(Grammar::Python, text, Branches::Open), open);
    let closed: Vec<&str> = open.into_iter().filter(|entry| *entry != "def f").collect();
    assert_eq!(entries(Grammar::Python, text, Branches::Closed), closed);
}

#[test]
fn script() {
    let text = "import a from \"a\";\nexport default class K {\n  get v() { return 1 }\n  static m() {}\n  #p = 1;\n  static { x() }\n}\nlet { a: b, c = 1, ...d } = e;\n\
                var [f, g] = h\nexport { K };\nA.b.c = 1;\nx = 2;\nasync function* gen() {}\n";
    let expected = [
        "import",
        "class K",
        "class K/member get v",
        "class K/member static m",
        "class K/member #p",
        "class K/other",
        "variable b+c+d",
        "variable f+g",
        "other",
        "assignment A.b.c",
        "other",
        "function gen",
    ];
    let sorted = |mut entries: Vec<String>| {
        // The names of one pattern come in the order in which the walk meets them.
        for entry in &mut entries {
            if let Some((word, names)) = entry
                .split_once(' ')
                .filter(|(_, names)| names.contains('+'))
            {
                let mut names: Vec<&str> = names.split('+').collect();
                names.sort_unstable();
                *entry = format!("{word} {}", names.join("+"));
            }
        }
        entries
    };
    for grammar in [Grammar::JavaScript, Grammar::TypeScript, Grammar::Tsx] {
        assert_eq!(
            sorted(entries(grammar, text, Branches::Open)),
            expected,
            "{grammar:?}"
        );
    }
    let text = "declare function f(): void;\nabstract class A {\n  abstract m(): void;\n  q?: string;\n}\ndeclare module \"x\" {\n  export type T = 1;\n}\n\
                interface I {}\nexport const enum E {}\nexport default { a: 1 };\n";
    assert_eq!(
        entries(Grammar::TypeScript, text, Branches::Open),
        [
            "function f",
            "class A",
            "class A/member m",
            "class A/member q",
            "namespace \"x\"",
            "namespace \"x\"/type T",
            "interface I",
            "enum E",
            "export default"
        ]
    );
}

#[test]
fn go() {
    let text = "package a\n\nimport \"b\"\n\nvar _ I = (*T)(nil)\n\nvar (\n\tx = 1\n\ty, z int\n)\n\ntype P[K any] struct{}\n\nfunc (p *P[K]) M() {}\n\nfunc (P) N() {}\n\nfunc init() {}\n";
    assert_eq!(
        entries(Grammar::Go, text, Branches::Open),
        [
            "prose",
            "import",
            "other",
            "var x",
            "var y+z",
            "type P",
            "method P.M",
            "method P.N",
            "func init"
        ]
    );
}

#[test]
fn lines_directly_above_definition_belong_to_it() {
    let lead = |grammar: Grammar, text: &str| {
        let parsed = Parsed::parse(grammar, text).unwrap_or_else(|unparsed| panic!("{unparsed:?}"));
        let outline = Outline::new(&parsed, Branches::Open);
        let last = outline.entries.last().unwrap();
        last.lead
            .iter()
            .map(|piece| text[piece.span.clone()].to_owned())
            .collect::<Vec<_>>()
    };
    let rust = |text: &str| lead(Grammar::Rust, text);
    assert_eq!(
        rust("/// a\n// b\n#[c]\nfn f() {}"),
        ["/// a", "// b", "#[c]"]
    );
    assert_eq!(rust("/// a\n\n#[c]\n\nfn f() {}"), ["#[c]"]);
    assert_eq!(rust("// a\n\nfn f() {}"), [""; 0]);
    assert_eq!(rust("fn e() {} // e\nfn f() {}"), [""; 0]);
    assert_eq!(rust("//! a\nfn f() {}"), [""; 0]);
    assert_eq!(
        lead(Grammar::Python, "# a\n@b\n@c(1)\ndef f(): ...\n"),
        ["# a", "@b", "@c(1)"]
    );
    assert_eq!(
        lead(Grammar::TypeScript, "/** a */\n@b()\nexport class K {}"),
        ["/** a */", "@b()"]
    );
}

#[test]
fn syntax_error_position_is_reported() {
    let line = |grammar: Grammar, text: &str| match Parsed::parse(grammar, text) {
        Err(ParseFailure::Error { line }) => line,
        Err(ParseFailure::TooMuch) | Ok(_) => 0,
    };
    assert_eq!(line(Grammar::Rust, "fn a() {}\nfn b() {\n    1 +\n}\n"), 3);
    assert_eq!(line(Grammar::Python, "x = 1\ny = )\n"), 2);
    assert_eq!(line(Grammar::Go, "package a\n\nfunc f( {\n}\n"), 3);
    assert_eq!(line(Grammar::JavaScript, "f();\nfunction {\n"), 2);
    let large = format!("{}fn b( {{\n", "fn a() {}\n".repeat(20_000));
    assert!(line(Grammar::Rust, &large) >= 20_000);
}

#[test]
fn too_large_a_text_is_not_parsed() {
    let text = " ".repeat(MAX_SYNTAX_BYTES + 1);
    assert!(matches!(
        Parsed::parse(Grammar::Rust, &text),
        Err(ParseFailure::TooMuch)
    ));
}

/// Reading in quadratic time, or with a stack that grows with the nesting, would end this test as failed.
#[test]
fn hostile_text_is_read_in_bounded_time() {
    let nested = |open: &str, close: &str, count: usize| open.repeat(count) + &close.repeat(count);
    for (grammar, text) in [
        (Grammar::Rust, nested("mod a{", "}", 70_000)),
        (
            Grammar::Rust,
            format!("fn f(){{{}}}", nested("(", ")", 20_000)),
        ),
        (
            Grammar::Rust,
            format!("use {}a{};", "a::{".repeat(20_000), "}".repeat(20_000)),
        ),
        (Grammar::JavaScript, nested("{", "}", 100_000)),
        (Grammar::TypeScript, nested("namespace a{", "}", 20_000)),
        (
            Grammar::Go,
            format!(
                "package a\nvar x = {}1{}",
                "(".repeat(20_000),
                ")".repeat(20_000)
            ),
        ),
        (Grammar::Python, nested("(", ")", 20_000)),
        (Grammar::Python, "def f():\n ".repeat(20_000)),
        (Grammar::Rust, "struct A;".repeat(20_000)),
        (Grammar::Rust, "use a;".repeat(20_000)),
        (Grammar::Python, "# a\n".repeat(40_000)),
    ] {
        if let Ok(parsed) = Parsed::parse(grammar, &text) {
            let outline = Outline::new(&parsed, Branches::Open);
            for entry in outline
                .entries
                .iter()
                .filter(|entry| entry.kind == Kind::Import)
                .take(10)
            {
                assert!(!leaves(grammar, entry.node, &text).is_empty());
            }
        }
    }
    for piece in [
        "(",
        "{",
        "[",
        "<",
        "\"",
        "`${",
        "f(",
        "fn a(",
        "class A { ",
        "if (a) {",
        "<a>",
        "def f():\n ",
        "'",
        "\u{0}",
        "r#\"",
    ] {
        let text = piece.repeat(20_000 / piece.len());
        for grammar in ALL {
            if let Ok(parsed) = Parsed::parse(grammar, &text) {
                let _ = Outline::new(&parsed, Branches::Closed);
            }
        }
    }
}
