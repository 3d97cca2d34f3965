//! Honest additions, and the ways in which an addition could make other tests pass.

use super::*;

const PY: &str = "import pytest\nfrom pkg import add\n\n\ndef helper(x):\n    return x\n\n\ndef test_add():\n    assert add(1, 2) == helper(3)\n\n\nclass TestMore:\n    def test_text(self):\n        assert \"\"\"a\n\nb\"\"\" != \"\"\n";
const RS: &str = "use pkg::add;\n\n#[test]\nfn adds() {\n    assert_eq!(add(1, 2), 3);\n}\n";
const JS: &str = "import { add } from '../add.js';\n\ndescribe('add', () => {\n  it('adds', () => {\n    expect(add(1, 2)).toBe(3);\n  });\n});\n";
const GO: &str = "package a\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(1, 2) != 3 {\n\t\tt.Fatal()\n\t}\n}\n";

fn judged(path: &str, before: &str, after: &str) -> Option<&'static str> {
    only_adds_tests(&path.parse().unwrap(), before.as_bytes(), after.as_bytes())
        .err()
        .map(|it| it.why)
}

fn insert(text: &str, before: &str, new: &str) -> String {
    assert_eq!(text.matches(before).count(), 1, "{before}");
    text.replace(before, &format!("{new}{before}"))
}

#[test]
fn new_tests_are_additions() {
    let method = "    def test_new(self, tmp_path):\n        made = add(1, 1)\n        made.x = 2\n        self.y = 3\n        assert made\n\n";
    for after in [
        format!("{PY}\n\ndef test_new():\n    assert add(2, 2) == 4\n"),
        insert(
            PY,
            "def test_add",
            "# Two and two.\n@pytest.mark.parametrize(\"x\", [1, 2])\nasync def test_two(x):\n    assert add(x, 2)\n\n\n",
        ),
        insert(PY, "    def test_text", method),
        format!(
            "{PY}\n\nclass TestNew(unittest.TestCase):\n    \"\"\"New.\"\"\"\n\n    def test_it(self):\n        with mock.patch(\"pkg.add\") as fake:\n            fake.return_value = 1\n"
        ),
        format!(
            "{}\n\ndef test_sub():\n    assert sub(2, 1) == 1\n",
            PY.replace("import add", "import add, sub")
        ),
        format!(
            "{}\n\ndef test_sub():\n    assert sub(2, 1) == 1\n",
            insert(PY, "from pkg", "import re\n")
        ),
        PY.replace("\n\n\nclass", "\n\n\n\nclass"),
    ] {
        assert_eq!(judged("tests/test_a.py", PY, &after), None, "{after}");
    }
    let rust = "\n/// Two.\n#[test]\n#[should_panic(expected = \"x\")]\nfn two() {\n    let x = add(2, 2);\n    assert_eq!(x, 4);\n}\n";
    assert_eq!(judged("tests/a.rs", RS, &format!("{RS}{rust}")), None);
    assert_eq!(
        judged("tests/a.rs", RS, &insert(RS, "#[test]", &rust[1..])),
        None
    );
    let inner = "  it('adds twice', async () => {\n    const made = add(2, 2);\n    made.x = 1;\n    expect(made).toBe(4);\n  });\n\n";
    assert_eq!(
        judged("test/a.test.js", JS, &insert(JS, "  it('adds'", inner)),
        None
    );
    let group = "\ndescribe('sub', () => {\n  test('is there', () => {\n    expect(1).toBe(1);\n  });\n});\n";
    assert_eq!(judged("test/a.test.ts", JS, &format!("{JS}{group}")), None);
    let go = "\nfunc TestTwo(t *testing.T) {\n\tx := Add(2, 2)\n\tx++\n\tif x != 5 {\n\t\tt.Errorf(\"%d\", x)\n\t}\n}\n";
    assert_eq!(judged("a_test.go", GO, &format!("{GO}{go}")), None);
    assert_eq!(
        judged(
            "a_test.go",
            GO,
            &GO.replace("\"testing\"", "(\n\t\"strings\"\n\t\"testing\"\n)")
        ),
        None
    );
}

#[test]
fn whatever_reaches_another_test_is_refused() {
    let test = |body: &str| format!("{PY}\n\ndef test_new():\n    {body}\n");
    let method = |body: &str| insert(PY, "    def test_text", body);
    for after in [
        // An existing test is changed, moved, shadowed or taken away.
        PY.replace("== helper(3)", "!= helper(4)"),
        PY.replace("a\n\nb", "a\n\n\nb"),
        format!("{PY}\n\ndef test_add():\n    pass\n"),
        format!("{PY}\n\ndef test_text():\n    pass\n"),
        method("    def test_text(self):\n        pass\n\n"),
        insert(PY, "    def test_text", "def test_new():\n"),
        insert(PY, "    def test_text", "class TestNew:\n"),
        PY.replace(
            "def test_add():\n    assert add(1, 2) == helper(3)\n",
            "def test_new():\n    pass\n",
        ),
        insert(PY, "def test_add", "@pytest.mark.skip\n"),
        insert(
            PY,
            "def test_add",
            "@pytest.mark.parametrize(\"x\", [])\ndef test_new(x): ",
        ),
        // What other tests are written with.
        format!("{PY}\n\ndef helper(x):\n    return 3\n"),
        format!("{PY}\n\nhelper = lambda x: 3\n"),
        format!(
            "{PY}\n\n@pytest.fixture(autouse=True)\ndef test_fixture(monkeypatch):\n    monkeypatch.setattr(\"pkg.add\", 1)\n"
        ),
        format!("{PY}\n\ndef pytest_collection_modifyitems(items):\n    items.clear()\n"),
        format!("{PY}\n\nadd.__code__ = helper.__code__\n"),
        format!("{PY}\n\npytestmark = pytest.mark.skip\n"),
        format!("{PY}\n\nclass TestNew(TestMore):\n    def test_it(self):\n        pass\n"),
        format!(
            "{PY}\n\nclass TestNew:\n    def setup_method(self):\n        pass\n    def test_it(self):\n        pass\n"
        ),
        method("    def setUp(self):\n        pass\n\n"),
        PY.replace("import add", "import add, sub as helper"),
        PY.replace("import add", "import *"),
        PY.replace("from pkg import add", "from fake import add"),
        insert(PY, "from pkg", "import sys; sys.modules.clear()\n"),
        // A new test that leaves something behind.
        test("import pkg; pkg.add = lambda a, b: 3"),
        test("m = pkg\n    m.add = None"),
        test("m = []\n    m = pkg\n    m.add = None"),
        test("setattr(pkg, \"add\", None)"),
        test("pkg.TABLE[\"a\"] = 1"),
        test("del pkg.TABLE"),
        test("global helper\n    helper = None"),
        test("os.environ.update(A=\"1\")"),
        test("sys.modules[\"pkg\"] = None"),
        test("exec(\"x\")"),
        test("mock.patch(\"pkg.add\").start()"),
        test("self.__class__.test_text = None"),
        test("pytest.skip()"),
        test("for pkg.add in [1]: pass"),
        format!("{PY}\n\n@pytest.mark.skip\ndef test_new():\n    pass\n"),
        format!("{PY}\n\n@setup_everything\ndef test_new():\n    pass\n"),
        format!("{PY}\n\ndef test_new(x=setattr(add, \"a\", 1)):\n    pass\n"),
        format!("{PY}\n\ndef test_new(:\n"),
    ] {
        assert!(judged("tests/test_a.py", PY, &after).is_some(), "{after}");
    }
}

#[test]
fn other_languages_are_held_to_the_same() {
    let test = |body: &str| format!("{RS}\n#[test]\nfn two() {{\n    {body}\n}}\n");
    for after in [
        RS.replace("3)", "4)"),
        format!("{RS}\n#[cfg(test)]\nfn add(a: u8, b: u8) -> u8 {{ 3 }}\n"),
        format!("{RS}\nmacro_rules! assert_eq {{ ($($x:tt)*) => {{}} }}\n"),
        format!("{RS}\nmod pkg {{ pub fn add() {{}} }}\n"),
        format!("{RS}\n#[test]\n#[ignore]\nfn two() {{}}\n"),
        format!("{RS}\n#[test]\n#[cfg(any())]\nfn two() {{}}\n"),
        insert(RS, "fn adds", "#[ignore]\n"),
        insert(RS, "fn adds", "\n#[test]\nfn two() {}\n"),
        RS.replace(
            "#[test]\nfn adds",
            "#[test]\n\n#[test]\nfn two() {}\nfn adds",
        ),
        RS.replace("use pkg::add", "use fake::add"),
        insert(RS, "#[test]", "use fake::*;\n"),
        test("std::env::set_var(\"A\", \"1\");"),
        test("std::process::exit(0);"),
        test("impl PartialEq<X> for Y { fn eq(&self, _: &X) -> bool { true } }"),
        test("unsafe { TABLE = 1 }"),
    ] {
        assert!(judged("tests/a.rs", RS, &after).is_some(), "{after}");
    }
    let it = |body: &str| {
        insert(
            JS,
            "  it('adds'",
            &format!("  it('new', () => {{ {body} }});\n"),
        )
    };
    for after in [
        JS.replace("toBe(3)", "toBe(4)"),
        it("beforeEach(() => {})"),
        it("jest.mock('../add.js')"),
        it("jest.spyOn(lib, 'add').mockReturnValue(3)"),
        it("lib.add = () => 3"),
        it("add.prototype.x = 1"),
        it("globalThis.add = 1"),
        it("delete require.cache[x]"),
        it("counter++"),
        it("Object.assign(lib, {})"),
        insert(
            JS,
            "  it('adds'",
            "  beforeEach(() => { jest.mock('../add.js') });\n",
        ),
        insert(JS, "  it('adds'", "  it.skip('new', () => {});\n"),
        insert(JS, "  it('adds'", "  it('adds', () => {});\n"),
        insert(
            JS,
            "  it('adds'",
            "  const expect = () => ({ toBe() {} });\n",
        ),
        format!("{JS}\njest.mock('../add.js');\n"),
        format!(
            "{JS}\ndescribe('new', () => {{ beforeAll(() => {{}}); it('x', () => {{}}); }});\n"
        ),
        JS.replace("{ add }", "{ fake as add }"),
        insert(JS, "describe", "import './setup.js';\n"),
        JS.replace("it('adds'", "it.only('adds'"),
    ] {
        assert!(judged("test/a.test.js", JS, &after).is_some(), "{after}");
    }
    let test = |body: &str| format!("{GO}\nfunc TestTwo(t *testing.T) {{\n\t{body}\n}}\n");
    for after in [
        GO.replace("!= 3", "!= 4"),
        format!("{GO}\nfunc TestMain(m *testing.M) {{}}\n"),
        format!("{GO}\nfunc init() {{ Add = nil }}\n"),
        format!("{GO}\nvar _ = hack()\n"),
        format!("{GO}\nfunc helper() {{}}\n"),
        test("table = nil"),
        test("p := &table\n\t*p = nil"),
        test("pkg.Add = nil"),
        test("os.Exit(0)"),
        test("t.Skip()"),
        GO.replace("package a\n", "//go:build ignore\n\npackage a\n"),
    ] {
        assert!(judged("a_test.go", GO, &after).is_some(), "{after}");
    }
    assert!(judged("spec/a_spec.rb", "it 'a'\n", "it 'a'\nit 'b'\n").is_some());
    assert!(only_adds_tests(&"t/test_a.py".parse().unwrap(), b"\xff", b"\xff").is_err());
}

#[test]
fn new_file_may_hold_tests_and_their_helpers() {
    let judged =
        |path: &str, text: &str| is_file_of_tests(&path.parse().unwrap(), text.as_bytes()).err();
    let python = "\"\"\"Tests.\"\"\"\nimport pytest\nfrom pkg import add\n\nCASES = [(1, 2)]\n\n\n@pytest.fixture\ndef made():\n    return add(1, 1)\n\n\ndef helper():\n    return 1\n\n\ndef test_new(made):\n    assert made == 2\n";
    for (path, text) in [
        ("tests/test_new.py", python),
        ("tests/new.rs", RS),
        ("src/a.test.ts", JS),
        (
            "src/a.test.js",
            "const { add } = require('./a');\nconst two = () => 2;\ntest('new', () => { expect(add(1, 1)).toBe(two()); });\n",
        ),
        ("a_test.go", GO),
    ] {
        assert_eq!(judged(path, text), None, "{path}");
    }
    for (path, text) in [
        ("tests/conftest.py", python),
        ("tests/json.py", python),
        ("tests/test_new.py", "import pkg\npkg.add = None\n"),
        ("tests/test_new.py", "CASES = [setattr(1, 'a', 2)]\n"),
        ("tests/test_new.py", "pytest_plugins = ['x']\n"),
        ("tests/test_new.py", "from pkg import *\n"),
        (
            "tests/test_new.py",
            "def pytest_runtest_makereport(): pass\n",
        ),
        ("tests/test_new.py", "def setup_module(): pass\n"),
        (
            "tests/test_new.py",
            "@pytest.fixture(autouse=True)\ndef x(): pass\n",
        ),
        ("tests/test_new.py", "if True:\n    pass\n"),
        ("tests/new.rs", "macro_rules! a { () => {} }\n"),
        ("tests/new.rs", "use pkg::*;\nimpl A for B {}\n"),
        ("src/a.test.ts", "import './setup';\n"),
        ("src/a.test.ts", "beforeEach(() => {});\n"),
        ("src/a.test.ts", "const x = hack();\n"),
        ("a_test.go", "package a\n\nvar x = hack()\n"),
        ("a_test.go", "package a\n\nfunc init() {}\n"),
        ("spec/a_spec.rb", "it 'a'\n"),
    ] {
        assert!(judged(path, text).is_some(), "{path}: {text}");
    }
}

#[test]
fn a_rename_changes_the_name_alone() {
    let renames = [("helper".to_owned(), "assist".to_owned())];
    let after = PY.replace("helper", "assist");
    assert!(only_renames(&renames, PY.as_bytes(), after.as_bytes()));
    assert!(!only_renames(
        &renames,
        PY.as_bytes(),
        after.replace("(3)", "(4)").as_bytes()
    ));
    assert!(!only_renames(&[], PY.as_bytes(), PY.as_bytes()));
    assert!(!only_renames(&renames, b"helpers()", b"assists()"));
}

#[test]
fn hostile_files_end() {
    for piece in [
        "def test_a():\n  x = 1\n",
        "a = b; b = a\n",
        "class Test:\n ",
        "((",
        "\"\"\"\n",
        "@a\n",
        "import a\n",
    ] {
        let text = piece.repeat(60_000 / piece.len());
        let longer = format!("{text}\ndef test_new():\n    pass\n");
        let _ = judged("tests/test_a.py", &text, &longer);
        let _ = is_file_of_tests(&"tests/test_a.py".parse().unwrap(), longer.as_bytes());
    }
}
