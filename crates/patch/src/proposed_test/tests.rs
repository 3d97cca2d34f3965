//! Proposed tests that code can judge, and those that it cannot.

use super::*;

const PYTHON: &str = "# The candidate returns 7.\nimport unittest\nfrom shop.pages import pages\n\n\nclass ReturnsEmptyPage(unittest.TestCase):\n    def test_seven(self):\n        \"\"\"It is 7 now.\"\"\"\n        found = pages([], 3)\n        self.assertEqual(found, [[]])\n";
const NODE: &str = "const test = require('node:test');\nconst assert = require('node:assert');\nconst { pages } = require('../src/pages.js');\n// seven\ntest('no items', () => {\n  assert.deepStrictEqual(pages([], 3), [[]]);\n});\n";

fn read(path: &str, text: &str, name: &str, expected: &str) -> Result<ProposedTest, TestFault> {
    proposed_test(&path.parse().unwrap(), text, name, expected)
}

fn of_python(body: &str, expected: &str) -> Result<ProposedTest, TestFault> {
    let text = format!("from shop.pages import pages\n\n\ndef test_a():\n    {body}\n");
    read("tests/test_a.py", &text, "test_a", expected)
}

#[test]
fn second_author_sees_no_value_comment_or_name() {
    let python = read("tests/test_o.py", PYTHON, "test_seven", "[[]]").unwrap();
    assert!(
        python
            .blanked
            .contains("assertEqual(found, EXPECTED_VALUE)"),
        "{}",
        python.blanked
    );
    assert_eq!(python.modules, ["shop.pages"]);
    let node = read("test/o.test.js", NODE, "no items", "[[]]").unwrap();
    assert!(
        node.blanked.contains("pages([], 3), EXPECTED_VALUE)"),
        "{}",
        node.blanked
    );
    assert_eq!(node.modules, ["../src/pages.js"]);
    for hidden in ["7", "seven", "ReturnsEmptyPage", "no items", "[[]]"] {
        assert!(
            !python.blanked.contains(hidden),
            "{hidden}: {}",
            python.blanked
        );
        assert!(!node.blanked.contains(hidden), "{hidden}: {}", node.blanked);
    }
}

#[test]
fn every_form_of_assertion_has_its_value() {
    for (body, expected) in [
        ("assert pages([], 3) == [[]]", "[[]]"),
        ("assert pages([], 3) is None", "None"),
        ("assert 3 == pages([3], 3)", "3"),
    ] {
        let read = of_python(body, expected);
        assert!(read.is_ok(), "{body}: {read:?}");
    }
    let raises = "import pytest\nfrom shop.pages import pages\n\n\ndef test_a():\n    with pytest.raises(ValueError):\n        pages([], 0)\n";
    let blanked = read("tests/test_a.py", raises, "test_a", "ValueError")
        .unwrap()
        .blanked;
    assert!(blanked.contains("raises(EXPECTED_VALUE)"), "{blanked}");
    for body in [
        "assert pages([], 3)",
        "assert pages([]) == f(3)",
        "assert pages([]) == 4",
    ] {
        let read = of_python(body, "f(3)");
        assert_eq!(read, Err(TestFault::NoExpectation), "{body}");
    }
}

#[test]
fn test_that_fails_by_itself_is_no_test() {
    for body in [
        "pages = len\n    assert pages([]) == 3",
        "pages.limit = 3\n    assert pages([]) == 3",
        "assert pages([]) == 3\n    assert pages([1]) == 3",
        "for n in [1]:\n        assert pages([]) == 3",
        "raise AssertionError\n    assert pages([]) == 3",
        "if open('src/pages.py').read():\n        assert pages([]) == 3",
        "assert eval('pages')([]) == 3",
        "assert pages.__code__.co_code == 3",
        "assert getattr(pages, 'x') == 3",
        "def pages(n):\n        return 1\n    assert pages([]) == 3",
        "(pages := len)\n    assert pages([]) == 3",
    ] {
        let read = of_python(body, "3");
        assert!(read.is_err(), "{body}: {read:?}");
    }
    for text in [
        "def test_a():\n    assert 1 == 3\n",
        "import os\nfrom shop import x\n\n\ndef test_a():\n    assert x() == 3\n",
        "from shop import x\n\n\ndef test_a():\n    assert x() == 3\n\n\ndef test_b():\n    pass\n",
        "from shop import x\nx = len\n\n\ndef test_a():\n    assert x('') == 3\n",
        "from unittest import mock\nfrom shop import x\n\n\ndef test_a():\n    assert x() == 3\n",
        "from shop import _x\n\n\ndef test_a():\n    assert _x() == 3\n",
    ] {
        assert!(
            read("tests/test_a.py", text, "test_a", "3").is_err(),
            "{text}"
        );
    }
    let own = "const { pages } = require('../src/pages.js');\n";
    for body in [
        "pages = () => 1; assert.equal(pages(), 3);",
        "if (true) { assert.equal(pages(), 3); }",
        "throw new Error('x'); assert.equal(pages(), 3);",
        "assert.equal(pages(), 3); assert.ok(pages());",
        "process.exit(1); assert.equal(pages(), 3);",
        "assert.equal(require('fs').readFileSync('x'), 3);",
    ] {
        let text = format!("{own}test('a', () => {{ {body} }});\n");
        assert!(read("test/a.test.js", &text, "a", "3").is_err(), "{text}");
    }
    assert_eq!(read("tests/a.rs", "", "a", "3"), Err(TestFault::NoGrammar));
}

#[test]
fn equal_literals_have_one_spelling() {
    let same = |path: &str, one: &str, other: &str| {
        let path = path.parse().unwrap();
        let spelled = normal_literal(&path, one);
        assert!(spelled.is_some(), "{one}");
        spelled == normal_literal(&path, other)
    };
    assert!(same("t.py", "['a',  1]", "[\"a\", 1.0,]"));
    assert!(same("t.py", "ValueError", " ValueError "));
    assert!(same("t.js", "{ a: 'x' }", "{a: \"x\"}"));
    assert!(!same("t.py", "[[]]", "[]"));
    assert!(!same("t.py", "3", "'3'"));
    assert!(!same("t.py", "(1,)", "(2,)"));
    for wrong in ["f(3)", "a", "1; import os", "x = 3", ""] {
        assert_eq!(
            normal_literal(&"t.py".parse().unwrap(), wrong),
            None,
            "{wrong}"
        );
    }
}

#[test]
fn names_only_of_the_change_are_found() {
    let path: RepoPath = "src/pages.py".parse().unwrap();
    let (before, after) = (
        b"def pages(a):\n    return a\n",
        b"def pages(a, size):\n    return cut(a)\n",
    );
    let found = new_names(&path, Some(before), after);
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["cut", "size"]);
    assert!(new_names(&path, None, after).contains("pages"));
    let names = BTreeSet::from(["pages".to_owned()]);
    assert_eq!(signatures(&path, after, &names), ["def pages(a, size)"]);
    let test: RepoPath = "test/unit/a.test.js".parse().unwrap();
    assert!(module_files(&test, "../../src/pages").contains(&"src/pages.js".parse().unwrap()));
    let test: RepoPath = "tests/test_a.py".parse().unwrap();
    assert!(module_files(&test, "shop.pages").contains(&"src/shop/pages.py".parse().unwrap()));
}
