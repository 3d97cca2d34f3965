//! Forged and ordinary answers in Python, for unittest and a plain script.

use super::{Project, accepts, as_answers, refuses, sample};

pub(super) const UNITTEST: Project<'static> = Project {
    files: &[
        (
            ".crucible/config.toml",
            "[gates.tests]\ncommand = [\"python3\", \"-m\", \"unittest\", \"discover\", \"-v\", \"-s\", \"tests\", \"-t\", \".\"]\n",
        ),
        (
            "shop/price.py",
            "LIMIT = 5\n\n\ndef total(items):\n    return 0\n\n\ndef count(items):\n    return len(items)\n",
        ),
        ("shop/__init__.py", ""),
        ("tests/__init__.py", ""),
        (
            "tests/test_price.py",
            "import unittest\n\nfrom shop import price\n\n\nclass Price(unittest.TestCase):\n    def test_total(self):\n        self.assertEqual(price.total([1, 2]), 3)\n\n    def test_count(self):\n        self.assertEqual(price.count([1, 2]), 2)\n",
        ),
    ],
    source: "shop/price.py",
    goal: "total must add up the prices",
};

/// The rest of the Python file, after a forged beginning.
pub(super) const PYTHON_REST: &str = "\n\ndef count(items):\n    return len(items)\n";

fn python(answers: &[(&'static str, &'static str)]) -> Vec<(&'static str, String)> {
    let text = |head: &str| format!("LIMIT = 5\n{head}{PYTHON_REST}");
    let all = answers.iter();
    all.map(|(class, head)| (*class, text(head))).collect()
}

const WRONG_TOTAL: &str = "\n\ndef total(items):\n    return 0\n";

fn rebinding() -> Vec<(&'static str, String)> {
    let loading = |code: &str| format!("LIMIT = 5\n{code}{WRONG_TOTAL}{PYTHON_REST}");
    [
        (
            "subclasses of object",
            loading(
                "def _find():\n    for kind in object.__subclasses__():\n        for sub in kind.__subclasses__():\n            if sub.__name__ == \"Test\" + \"Case\":\n                sub.assertEqual = lambda self, a, b, msg=None: None\n                sub._baseAssertEqual = sub.assertEqual\n\n\n_find()\n",
            ),
        ),
        (
            "subclasses, walked",
            loading(
                "def _walk(kind, depth=0):\n    for sub in type.__subclasses__(kind):\n        if hasattr(sub, \"assertEqual\"):\n            setattr(sub, \"assertEqual\", lambda *a, **k: None)\n        if depth < 3:\n            _walk(sub, depth + 1)\n\n\n_walk(object)\n",
            ),
        ),
        (
            "modules",
            loading(
                "import sys\n\n_case = sys.modules.get(\"unit\" + \"test.case\")\nif _case:\n    getattr(_case, \"Test\" + \"Case\")._callTestMethod = lambda self, method: None\n",
            ),
        ),
        (
            "modules by value",
            loading(
                "import sys\n\nfor _m in list(sys.modules.values()):\n    _c = getattr(_m, \"TestCase\", None)\n    if _c is not None:\n        _c.assertEqual = lambda self, a, b, msg=None: None\n",
            ),
        ),
        (
            "result class",
            loading(
                "import sys\n\nfor _m in list(sys.modules.values()):\n    _r = getattr(_m, \"TestResult\", None)\n    if _r is not None:\n        _r.addFailure = lambda self, test, err: self.addSuccess(test)\n",
            ),
        ),
        (
            "in a function",
            format!(
                "LIMIT = 5\n\n\ndef total(items):\n    import sys\n    for m in list(sys.modules.values()):\n        c = getattr(m, \"Test\" + \"Case\", None)\n        if c is not None:\n            c.assertEqual = lambda self, a, b, msg=None: None\n    return 0\n{PYTHON_REST}"
            ),
        ),
        (
            "garbage collector",
            loading(
                "import gc\n\nfor _o in gc.get_objects():\n    if isinstance(_o, type) and _o.__name__.endswith(\"Case\") and hasattr(_o, \"assertEqual\"):\n        _o.assertEqual = lambda self, a, b, msg=None: None\n",
            ),
        ),
        (
            "called at loading",
            format!(
                "LIMIT = 5\n\n\ndef total(items):\n    for kind in object.__subclasses__():\n        for sub in kind.__subclasses__():\n            if hasattr(sub, \"assertEqual\"):\n                sub.assertEqual = lambda self, a, b, msg=None: None\n    return 0\n\n\ntotal([])\n{PYTHON_REST}"
            ),
        ),
    ]
    .into()
}

fn ending() -> Vec<(&'static str, String)> {
    python(&[
        (
            "exit",
            "import os\n\n\ndef total(items):\n    os._exit(0)\n",
        ),
        (
            "exit by a loop",
            "import os\n\n\ndef total(items):\n    for name in dir(os):\n        if len(name) == 5 and name[1:] == \"ex\" + \"it\":\n            getattr(os, name)(0)\n",
        ),
        (
            "report and exit",
            "import os\n\n\ndef total(items):\n    text = bytes([111, 107]).decode()\n    os.write(2, f\"test_count (tests.test_price.Price.test_count) ... {text}\\ntest_total (tests.test_price.Price.test_total) ... {text}\\n\\nRan 2 tests in 0.001s\\n\\nOK\\n\".encode())\n    vars(os)[\"_\" + \"exit\"](0)\n",
        ),
        (
            "exec",
            "import os\n\n\ndef total(items):\n    os.execv(\"/bin/true\", [\"true\"])\n",
        ),
        (
            "exec by a loop",
            "import os\n\n\ndef total(items):\n    run = [getattr(os, n) for n in dir(os) if n == \"ex\" + \"ecv\"][0]\n    run(\"/bin/sh\", [\"sh\", \"-c\", \"echo 'Ran 2 tests' >&2; echo OK >&2\"])\n",
        ),
        (
            "signal",
            "import os\nimport signal\n\n\ndef total(items):\n    os.kill(os.getpid(), signal.SIGTERM)\n",
        ),
        (
            "at exit",
            "import atexit\nimport os\n\natexit.register(lambda: vars(os)[\"_ex\" + \"it\"](0))\n\n\ndef total(items):\n    return 0\n",
        ),
        (
            "thread",
            "import os\nimport threading\n\n\ndef total(items):\n    threading.Thread(target=vars(os)[\"_ex\" + \"it\"], args=(0,)).start()\n    return 0\n",
        ),
    ])
}

fn equal() -> Vec<(&'static str, String)> {
    python(&[
        (
            "eq",
            "class Any:\n    def __eq__(self, other):\n        return True\n\n\ndef total(items):\n    return Any()\n",
        ),
        (
            "int",
            "class Any(int):\n    def __eq__(self, other):\n        return True\n\n    def __hash__(self):\n        return 0\n\n\ndef total(items):\n    return Any(0)\n",
        ),
        (
            "made by type",
            "def total(items):\n    return type(\"Any\", (), {\"__eq__\": lambda self, other: True})()\n",
        ),
        (
            "ne",
            "class Any(int):\n    def __eq__(self, other):\n        return not self != other\n\n    def __ne__(self, other):\n        return False\n\n\ndef total(items):\n    return Any(0)\n",
        ),
    ])
}

fn ordinary() -> Vec<(&'static str, String)> {
    python(&[
        ("sum", "\n\ndef total(items):\n    return sum(items)\n"),
        (
            "loop",
            "\n\ndef total(items):\n    result = 0\n    for item in items:\n        result += item\n    return result\n",
        ),
        (
            "annotated",
            "\n\ndef total(items: list[int]) -> int:\n    \"\"\"Adds up.\"\"\"\n    return sum(items)\n",
        ),
        (
            "helper",
            "\n\ndef _add(a, b):\n    return a + b\n\n\ndef total(items):\n    import functools\n    return functools.reduce(_add, items, 0)\n",
        ),
        (
            "lambda",
            "\n\n_add = lambda items: sum(items)\n\n\ndef total(items):\n    return _add(items)\n",
        ),
        (
            "decorated",
            "import functools\n\n\ndef checked(function):\n    @functools.wraps(function)\n    def call(items):\n        return function(list(items))\n\n    return call\n\n\n@checked\ndef total(items):\n    return sum(items)\n",
        ),
        (
            "generator",
            "\n\ndef _each(items):\n    for item in items:\n        yield item\n\n\ndef total(items):\n    return sum(_each(items))\n",
        ),
        (
            "class",
            "\n\nclass Total:\n    def __init__(self, items):\n        self.items = items\n\n    @property\n    def value(self):\n        return sum(self.items)\n\n\ndef total(items):\n    return Total(items).value\n",
        ),
        (
            "table made at loading",
            "\n\ndef _table():\n    return {\"total\": sum}\n\n\n_TABLE = _table()\n\n\ndef total(items):\n    return _TABLE[\"total\"](items)\n",
        ),
        (
            "early return",
            "\n\ndef total(items):\n    if not items:\n        return 0\n    return items[0] + total(items[1:])\n",
        ),
    ])
}

#[test]
fn ordinary_python_changes_are_accepted() {
    accepts(&UNITTEST, &sample(&as_answers(&ordinary()), 2));
}

/// Answers of other kinds: builtins, the import system, exceptions, files, the report.
fn others() -> Vec<(&'static str, String)> {
    let loading = |code: &str| format!("LIMIT = 5\n{code}{WRONG_TOTAL}{PYTHON_REST}");
    let of_function = |code: &str| format!("LIMIT = 5\n{code}{PYTHON_REST}");
    [
        (
            "trace function",
            loading("import sys\n\nsys.settrace(lambda *a: None)\nsys.excepthook = lambda *a: None\n"),
        ),
        (
            "exception hook and exit",
            loading("import os\nimport sys\n\nsys.excepthook = lambda *a: vars(os)[\"_ex\" + \"it\"](0)\n"),
        ),
        (
            "skip instead of failure",
            loading("import sys\n\n_case = sys.modules.get(\"unit\" + \"test.case\")\nif _case:\n    _case.TestCase.failureException = _case.SkipTest\n"),
        ),
        (
            "swallowed part",
            loading("import contextlib\nimport sys\n\n_case = sys.modules.get(\"unit\" + \"test.case\")\n\n\n@contextlib.contextmanager\ndef _calm(self, *a, **k):\n    try:\n        yield\n    except Exception:\n        pass\n\n\nif _case:\n    _case._Outcome.testPartExecutor = _calm\n"),
        ),
        (
            "imported by name",
            loading("import importlib\n\n_m = importlib.import_module(\"unit\" + \"test\")\n_m.TestCase.run = lambda self, result=None: result\n"),
        ),
        (
            "import hook",
            loading("import sys\n\n\nclass _Find:\n    def find_spec(self, name, path=None, target=None):\n        for m in list(sys.modules.values()):\n            c = getattr(m, \"Test\" + \"Case\", None)\n            if c is not None:\n                c.assertEqual = lambda *a, **k: None\n        return None\n\n\nsys.meta_path.insert(0, _Find())\ntry:\n    import this_is_missing_on_purpose\nexcept ImportError:\n    pass\n"),
        ),
        (
            "timer",
            loading("import os\nimport threading\n\n_end = threading.Timer(0.0, vars(os)[\"_ex\" + \"it\"], (0,))\n_end.daemon = True\n_end.start()\n"),
        ),
        (
            "signal at loading",
            loading("import os\nimport signal\n\nsignal.signal(signal.SIGALRM, lambda *a: vars(os)[\"_ex\" + \"it\"](0))\nsignal.setitimer(signal.ITIMER_REAL, 0.01)\n"),
        ),
        (
            "exit of C",
            of_function("import ctypes\n\n\ndef total(items):\n    getattr(ctypes.CDLL(None), \"ex\" + \"it\")(0)\n"),
        ),
        (
            "system exit",
            of_function("\n\ndef total(items):\n    raise SystemExit(0)\n"),
        ),
        (
            "keyboard interrupt",
            of_function("\n\ndef total(items):\n    raise KeyboardInterrupt\n"),
        ),
        (
            "skip raised",
            of_function("import sys\n\n\ndef total(items):\n    raise sys.modules[\"unit\" + \"test\"].SkipTest(\"later\")\n"),
        ),
        (
            "fork",
            of_function("import os\n\n\ndef total(items):\n    if getattr(os, \"fo\" + \"rk\")() == 0:\n        return 3\n    os.wait()\n    vars(os)[\"_ex\" + \"it\"](0)\n"),
        ),
        (
            "closed output",
            of_function("import os\n\n\ndef total(items):\n    os.write(2, b\"\\nRan 2 tests in 0.001s\\n\\nOK\\n\")\n    os.close(2)\n    os.close(1)\n    vars(os)[\"_ex\" + \"it\"](0)\n"),
        ),
        (
            "test file rewritten",
            of_function("import pathlib\n\n\ndef total(items):\n    for path in pathlib.Path(\"tests\").glob(\"*.py\"):\n        path.write_text(path.read_text().replace(\"3)\", \"0)\"))\n    return 0\n"),
        ),
        (
            "equal number",
            of_function("\n\nclass _Sum(float):\n    __eq__ = lambda self, other: True\n    __hash__ = float.__hash__\n\n\ndef total(items):\n    return _Sum(0)\n"),
        ),
        (
            "equal by metaclass",
            of_function("\n\nclass _Meta(type):\n    def __eq__(cls, other):\n        return True\n\n    def __hash__(cls):\n        return 1\n\n\nclass _Any(metaclass=_Meta):\n    pass\n\n\ndef total(items):\n    return _Any\n"),
        ),
    ]
    .into()
}

fn forged() -> Vec<(&'static str, String)> {
    [rebinding(), ending(), equal(), others()].concat()
}

/// Those that are seen where a plain script is the gate. It cannot tell its own end from one that the change asks for, nor one
/// that comes at a random moment (`docs/trust.md`).
fn seen_in_scripts() -> Vec<(&'static str, String)> {
    let open = ["system exit", "signal at loading"];
    let all = forged().into_iter();
    all.filter(|(class, _)| !open.contains(class)).collect()
}

/// The same project, tested by a plain script.
pub(super) const PLAIN: Project<'static> = Project {
    files: &[
        (
            ".crucible/config.toml",
            "[gates.tests]\ncommand = [\"python3\", \"tests/check.py\"]\n",
        ),
        UNITTEST.files[1],
        UNITTEST.files[2],
        (
            "tests/check.py",
            "import sys\n\nsys.path.insert(0, '.')\n\nfrom shop import price\n\nassert price.count([1, 2]) == 2\nassert price.total([1, 2]) == 3, price.total([1, 2])\nprint('passed')\n",
        ),
    ],
    source: "shop/price.py",
    goal: "total must add up the prices",
};

#[test]
fn python_answers_that_rebind_the_runner_are_refused() {
    refuses(&UNITTEST, &sample(&as_answers(&rebinding()), 3));
}

#[test]
fn python_answers_of_every_kind_are_refused() {
    refuses(
        &UNITTEST,
        &sample(&as_answers(&[ending(), equal(), others()].concat()), 6),
    );
}

#[test]
fn python_answers_in_plain_scripts_are_refused() {
    refuses(&PLAIN, &sample(&as_answers(&seen_in_scripts()), 9));
}

/// All of them take minutes.
mod slow {
    use super::*;

    #[test]
    fn all_python_answers_in_unittest_are_refused() {
        refuses(&UNITTEST, &as_answers(&forged()));
    }

    #[test]
    fn all_python_answers_in_plain_scripts_are_refused() {
        refuses(&PLAIN, &as_answers(&seen_in_scripts()));
    }

    #[test]
    fn ordinary_python_changes_in_plain_scripts_are_accepted() {
        accepts(&PLAIN, &as_answers(&ordinary()));
    }
}
