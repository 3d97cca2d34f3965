//! Broken functions, altered expectations and mutants, in each language.

use super::*;

fn broken(path: &str, before: &str, after: &str, breakage: Breakage) -> BrokenSource {
    break_change(
        &path.parse().unwrap(),
        Some(before.as_bytes()),
        after.as_bytes(),
        breakage,
    )
}

/// The broken text follows its grammar, whatever the breakage.
#[track_caller]
fn breaks(path: &str, before: &str, after: &str, functions: &[&str]) -> BrokenSource {
    for breakage in [
        Breakage::ReturnsNothing,
        Breakage::FailsWhileLoading,
        Breakage::Removed,
        Breakage::Fails,
    ] {
        let source = broken(path, before, after, breakage);
        assert_eq!(source.functions, functions, "{path}");
        let text = source.text.clone().unwrap();
        let grammar = Grammar::of_tested(&path.parse().unwrap()).unwrap();
        assert!(
            Parsed::parse(grammar, &text).is_ok(),
            "{breakage:?}: {text}"
        );
    }
    broken(path, before, after, Breakage::Fails)
}

const PYTHON: &str = "\"\"\"Doc.\"\"\"\nfrom __future__ import annotations\nimport os\n\n\ndef area(a, b):\n    return a + b\n\n\n\
    class Shop:\n    @property\n    def total(self):\n        return 0\n\n    def other(self):\n        return 1\n";

#[test]
fn changed_function_of_python_fails() {
    let after = PYTHON
        .replace("a + b", "a * b")
        .replace("return 0", "return 2");
    let source = breaks("a/b.py", PYTHON, &after, &["area", "Shop.total"]);
    let text = source.text.unwrap();
    assert!(
        text.starts_with("\"\"\"Doc.\"\"\"\nfrom __future__ import annotations\n_broken_"),
        "{text}"
    );
    let mark = mark_of(&after);
    assert!(text.contains(&format!("@{mark}\ndef area")), "{text}");
    assert!(
        text.contains(&format!("    @property\n    @{mark}\n    def total")),
        "{text}"
    );
    assert_eq!(text.matches(&format!("@{mark}\n")).count(), 2);
}

#[test]
fn changed_functions_of_every_language_fail() {
    breaks(
        "a.js",
        "",
        "export const f = (a) => a + 1;\nfunction g() { return 1 }\nclass K { m() { return 2 } }\n",
        &["f", "g", "K.m"],
    );
    breaks(
        "a.ts",
        "",
        "export const f = (a: number): number => ({ b: a }).b;\nfunction g(): void {}\n",
        &["f", "g"],
    );
    breaks(
        "a.rs",
        "",
        "const fn c() -> u8 { 1 }\nimpl T { pub fn m(&self) -> u8 { 2 } }\nfn g<T: Clone>(t: T) -> T { t }\n",
        &["c", "T.m", "g"],
    );
    breaks(
        "a.go",
        "package a\n",
        "package a\n\nfunc F(a int) int {\n\treturn a\n}\n\nfunc (r *R) M() {}\n",
        &["F", "R.M"],
    );
    breaks(
        "a.c",
        "",
        "static int f(int a) { return a; }\nint *g(void)\n{\n  return 0;\n}\n",
        &["f", "g"],
    );
    breaks(
        "b.py",
        "",
        "f = lambda a: a\n\nasync def g():\n    return 1\n",
        &["f", "g"],
    );
}

#[test]
fn function_that_loses_a_line_is_changed() {
    let before = "def a():\n    x = 1\n    return x\n\n\ndef b():\n    return 2\n\n\ndef c():\n    return 3\n";
    let after = "def a():\n    x = 1\n\n\ndef c():\n    return 3\n";
    assert_eq!(
        broken("x.py", before, after, Breakage::Fails).functions,
        ["a"]
    );
}

#[test]
fn comments_annotations_and_layout_change_nothing() {
    let before = "def f(a, b=1):\n    return a\n";
    for after in [
        "# why\ndef f(a, b=1):\n    return a  # that\n",
        "def f(a: int, b: int = 1) -> int:\n    return a\n",
        "def f(a, b=1):\n    \"\"\"Doc.\"\"\"\n    return a\n",
        "def f(a,\n      b=1):\n    return a\n",
    ] {
        let source = broken("x.py", before, after, Breakage::Fails);
        let is_layout = after.contains(",\n");
        assert_eq!(source.text.is_none(), !is_layout, "{after}");
    }
    let script = broken(
        "x.ts",
        "function f(a) { return a }\n",
        "interface I { a: string }\nfunction f(a: I) { return a }\n",
        Breakage::Fails,
    );
    assert_eq!(
        (script.text, script.functions),
        (None, Vec::<String>::new())
    );
}

#[test]
fn constants_become_wrong_and_the_rest_is_named() {
    let source = broken(
        "x.py",
        "LIMIT = 5\nNAME = 'a'\n",
        "LIMIT = 6\nNAME = 'b'\n",
        Breakage::Fails,
    );
    assert_eq!((source.constants, source.rest.as_slice()), (2, &[][..]));
    assert_eq!(source.text.unwrap(), "LIMIT = 7\nNAME = '~b'\n");
    let rest =
        |path: &str, before: &str, after: &str| broken(path, before, after, Breakage::Fails).rest;
    assert_eq!(rest("x.py", "", "import os\n"), [Unbroken::Declaration]);
    assert_eq!(
        rest("x.py", "", "import os\nos.x = 1\n"),
        [Unbroken::Declaration, Unbroken::Loading]
    );
    assert_eq!(rest("README.md", "", "text\n"), [Unbroken::NoGrammar]);
    assert_eq!(
        rest("tests/test_a.py", "", "def test_a(): pass\n"),
        [Unbroken::Test]
    );
    assert_eq!(
        rest("x.rs", "", "use a::b;\nconst A: u8 = 1;\n"),
        [Unbroken::Declaration]
    );
    assert_eq!(
        rest(
            "x.go",
            "package a\n",
            "package a\n\nfunc init() { run() }\n"
        ),
        [Unbroken::Loading]
    );
    assert_eq!(rest("x.py", "", "def (\n"), [Unbroken::Unparsed]);
}

#[test]
fn comparisons_are_named() {
    let source = broken(
        "x.py",
        "",
        "class A:\n    def __eq__(self, other):\n        return True\n",
        Breakage::Fails,
    );
    assert_eq!(source.comparisons, ["A.__eq__"]);
    let source = broken(
        "x.rs",
        "",
        "impl PartialEq for A { fn eq(&self, o: &A) -> bool { true } }\n",
        Breakage::Fails,
    );
    assert_eq!(source.comparisons, ["A.eq"]);
}

#[test]
fn tests_of_rust_stay_as_they_are() {
    let source = "pub fn f() -> u8 { 1 }\n#[cfg(test)]\nmod tests {\n    fn helper() {}\n    #[test]\n    fn a() { assert_eq!(super::f(), 1); }\n}\n";
    assert_eq!(
        broken("src/x.rs", "", source, Breakage::Fails).functions,
        ["f"]
    );
    let altered = alter_expectations(
        &"src/x.rs".parse().unwrap(),
        source.as_bytes(),
        AlteredExpectations::All,
    )
    .unwrap();
    assert!(
        altered.contains("assert_eq!(super::f(), 2)") && altered.contains("{ 1 }"),
        "{altered}"
    );
}

#[test]
fn expected_values_are_altered_and_arguments_are_not() {
    for (path, before, after) in [
        (
            "tests/test_a.py",
            "def test_a():\n    assert f(2, 3) == 5\n",
            "assert f(2, 3) == 6",
        ),
        (
            "tests/test_a.py",
            "class T(C):\n    def test_a(self):\n        self.assertEqual(f('a'), 'b')\n",
            "self.assertEqual(f('a'), '~b')",
        ),
        (
            "test/a.test.js",
            "test('a', () => { expect(add(2, 3)).toBe(5) })\n",
            "expect(add(2, 3)).toBe(6)",
        ),
        (
            "test/a.test.js",
            "assert.strictEqual(add(2, 3), 5)\n",
            "assert.strictEqual(add(2, 3), 6)",
        ),
        (
            "a_test.go",
            "package a\n\nfunc TestA(t *testing.T) {\n\tif got := F(2, 3); got != 5 {\n\t\tt.Fatal(got)\n\t}\n}\n",
            "F(2, 3); got != 6",
        ),
        (
            "tests/a.rs",
            "#[test]\nfn a() { assert_eq!(f(2, 3), vec![5]); }\n",
            "assert_eq!(f(2, 3), vec![6])",
        ),
        (
            "tests/a.rs",
            "#[test]\nfn a() { assert_eq!(f(2, 3), Price(5)); }\n",
            "assert_eq!(f(2, 3), Price(6))",
        ),
        (
            "tests/test_a.c",
            "int main(void) { assert(f(2, 3) == 5); }\n",
            "assert(f(2, 3) == 6)",
        ),
    ] {
        let altered = alter_expectations(
            &path.parse().unwrap(),
            before.as_bytes(),
            AlteredExpectations::All,
        )
        .unwrap_or_default();
        assert!(altered.contains(after), "{path}: {altered}");
    }
    assert_eq!(
        alter_expectations(
            &"src/a.py".parse().unwrap(),
            b"assert f() == 5\n",
            AlteredExpectations::All
        ),
        None
    );
}

#[test]
fn mutants_are_in_changed_lines_alone() {
    let before = "def f(a):\n    if a > 3:\n        return 1\n    return 2\n";
    let after = before.replace("a > 3", "a >= 3");
    let all = mutants(
        &"x.py".parse().unwrap(),
        Some(before.as_bytes()),
        after.as_bytes(),
    );
    let what: Vec<&str> = all.iter().map(|mutant| mutant.what.as_str()).collect();
    assert_eq!(
        what,
        [
            "the condition `a >= 3` is negated",
            ">= became <",
            ">= became >",
            "3 became 2",
            "3 became 4"
        ]
    );
    assert!(all.iter().all(|mutant| mutant.line == 2));
    let diff = all[2].diff(after.as_bytes());
    assert!(diff.contains("-    if a >= 3:\n+    if a > 3:\n"), "{diff}");
}

#[test]
fn mutants_of_every_language_follow_their_grammar() {
    for (path, source, count) in [
        (
            "x.rs",
            "pub fn f(a: u8) -> bool {\n    log(1);\n    a + 1 > 3 && a != 9\n}\n",
            14,
        ),
        (
            "x.js",
            "export function f(a) {\n  if (a === 1) { g(a); }\n  return a && true;\n}\n",
            8,
        ),
        (
            "x.go",
            "package a\n\nfunc F(a int) int {\n\tif a < 3 {\n\t\ta++\n\t}\n\treturn a * 2\n}\n",
            10,
        ),
        (
            "x.c",
            "int f(int a) {\n  if (a < 3) { a += 1; }\n  return a;\n}\n",
            9,
        ),
    ] {
        let found = mutants(&path.parse().unwrap(), None, source.as_bytes());
        let what: Vec<&str> = found.iter().map(|mutant| mutant.what.as_str()).collect();
        assert!(found.len().abs_diff(count) <= 2, "{path}: {what:?}");
    }
    assert!(
        mutants(
            &"tests/test_a.py".parse().unwrap(),
            None,
            b"def test_a():\n    assert 1 == 1\n"
        )
        .is_empty()
    );
}

#[test]
fn replaced_assertion_is_code_that_loads() {
    let before = "function total(items) {\n  return 0;\n}\n\nmodule.exports = { total };\n";
    for head in [
        "const a = require('node:ass' + 'ert');\na.strictEqual = () => {};\n",
        "for (const a of b) a.strictEqual = () => {};\n",
    ] {
        let source = broken(
            "src/a.js",
            before,
            &format!("{head}{before}"),
            Breakage::Fails,
        );
        assert!(source.rest.contains(&Unbroken::Loading), "{source:?}");
    }
    let test = "const test = require('node:test');\ntest('total', () => {\n  assert.strictEqual(total([1, 2]), 3);\n});\n";
    let altered = alter_expectations(
        &"test/price.test.js".parse().unwrap(),
        test.as_bytes(),
        AlteredExpectations::All,
    );
    assert!(
        altered
            .is_some_and(|text| text.contains("total([1, 2]), 4") && text.contains("'node:test'"))
    );
}
