//! What the test of a skill may hold: what tests need passes, and what could fake the run that judges it does not.

#![expect(
    clippy::unwrap_used,
    reason = "a text that cannot be read fails its test"
)]

use std::collections::BTreeSet;

use crucible_forge::{PythonSource, SkillPaths, SkillPolicy, check_test_policy};

const HEAD: &str = "import pytest\n\nfrom skillset.skills.demo import DemoSkill\n\n\n";

fn codes(text: &str) -> BTreeSet<String> {
    let paths = SkillPaths::new(&"skillset".parse().unwrap(), &"demo".parse().unwrap()).unwrap();
    let source = match PythonSource::parse(text.as_bytes()) {
        Ok(source) => source,
        Err(fault) => return [fault.finding().code.as_str().to_owned()].into(),
    };
    let verdict = check_test_policy(&source, &SkillPolicy::default(), &paths);
    verdict
        .findings()
        .iter()
        .map(|finding| format!("{} {}", finding.code.as_str(), finding.subject))
        .collect()
}

#[test]
fn allowed_test_constructs_pass() {
    for (imports, body) in [
        (
            "",
            "def test_it():\n    assert DemoSkill().execute({'x': 1}) == {'y': 2}\n",
        ),
        (
            "",
            "SKILL = DemoSkill()\n\n\ndef test_it() -> None:\n    assert SKILL.execute({}) == {}\n",
        ),
        (
            "",
            "@pytest.fixture\ndef skill() -> DemoSkill:\n    return DemoSkill()\n\n\ndef test_it(skill: DemoSkill) -> None:\n    with pytest.raises(KeyError, match='x'):\n        skill.execute({})\n",
        ),
        (
            "",
            "@pytest.mark.parametrize(('a', 'b'), [('x', 1), pytest.param('y', 2, id='two')])\ndef test_it(a, b):\n    assert DemoSkill().execute({'a': a})['b'] == pytest.approx(b)\n",
        ),
        (
            "from pathlib import Path\n",
            "def test_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:\n    file = tmp_path / 'a' / 'x.txt'\n    file.parent.name\n    file.write_text('x', encoding='utf-8')\n    (tmp_path / 'd').mkdir()\n    with open(file, 'w') as out:\n        out.write('y')\n    with (tmp_path / 'z').open('w') as out:\n        out.write('y')\n    DemoSkill().execute({})\n    assert capsys.readouterr().out == ''\n",
        ),
        (
            "",
            "def test_it(tmp_path, monkeypatch: pytest.MonkeyPatch):\n    monkeypatch.chdir(tmp_path)\n    monkeypatch.setenv('API_KEY', 'x')\n    monkeypatch.delenv('OTHER', raising=False)\n    (tmp_path / 'notes').mkdir()\n    assert DemoSkill().execute({}) == {}\n",
        ),
        (
            "from skillset.skills import demo\n",
            "def test_it(monkeypatch):\n    monkeypatch.setattr(demo, 'fetch', lambda url: 'x')\n    monkeypatch.setattr('skillset.skills.demo._clock', lambda: 1)\n    monkeypatch.setattr(DemoSkill, '_get', lambda self, url: 'x')\n    assert demo._helper(1) == 2\n    assert DemoSkill().execute({}) == {}\n",
        ),
        (
            "import json\n",
            "def test_it():\n    assert json.dumps(DemoSkill().execute({})) == '{}'\n",
        ),
        (
            "import enum\nimport io\nfrom collections.abc import Mapping\nfrom typing import Generic, Protocol, TypeVar\n",
            "T = TypeVar('T')\n\n\nclass Fake(DemoSkill):\n    def _get(self):\n        return 1\n\n\nclass Answer(io.BytesIO):\n    status = 200\n\n\nclass Own(Generic[T], Protocol):\n    pass\n\n\n\
             class Deep(Own[int]):\n    pass\n\n\nclass Wrong(ValueError):\n    pass\n\n\nclass Kind(enum.Enum):\n    A = 1\n\n\nclass Few(dict[str, int], Mapping[str, int]):\n    pass\n\n\ndef test_it():\n    assert Fake().execute({}) == {}\n",
        ),
        (
            "",
            "class TestDemo:\n    def _skill(self):\n        return DemoSkill()\n\n    def test_it(self):\n        assert self._skill().execute({})\n        assert DemoSkill.side_effect_class == 'READ_ONLY'\n",
        ),
        (
            "import asyncio\n",
            "async def ask():\n    return DemoSkill().execute({})\n\n\ndef test_it():\n    assert asyncio.run(ask()) == {}\n",
        ),
    ] {
        let text = format!("{imports}{HEAD}{body}");
        assert!(codes(&text).is_empty(), "{text}\n{:#?}", codes(&text));
    }
}

#[test]
fn a_test_that_compares_nothing_is_refused() {
    let run = "DemoSkill().execute({})";
    for (body, empty) in [
        (format!("def test_it():\n    {run}\n"), true),
        (
            format!("def test_it():\n    assert True\n    {run}\n"),
            true,
        ),
        (
            format!("def test_it():\n    assert not (1), 'x'\n    {run}\n"),
            true,
        ),
        (
            format!("def test_it():\n    assert {run}\n\n\ndef test_two():\n    print({run})\n"),
            true,
        ),
        (
            "def test_it():\n    assert DemoSkill.name == 'demo'\n".to_owned(),
            true,
        ),
        (
            format!("class TestIt:\n    def test_it(self):\n        {run}\n"),
            true,
        ),
        (format!("def test_it():\n    assert {run} == {{}}\n"), false),
        (
            format!("def test_it():\n    with pytest.raises(KeyError):\n        {run}\n"),
            false,
        ),
        (
            format!(
                "def same(a, b):\n    assert a == b\n\n\ndef is_empty(a):\n    same(a, {{}})\n\n\ndef test_it():\n    is_empty({run})\n"
            ),
            false,
        ),
        (
            format!(
                "class TestIt:\n    def check(self, a):\n        assert a\n\n    def test_it(self):\n        self.check({run})\n"
            ),
            false,
        ),
        (
            format!("def test_it():\n    def inner():\n        assert {run}\n\n    inner()\n"),
            false,
        ),
    ] {
        let found = codes(&format!("{HEAD}{body}"));
        assert_eq!(
            found
                .iter()
                .any(|code| code.starts_with("forge-test-empty")),
            empty,
            "{body}\n{found:?}"
        );
    }
    // A function of the file's own that has the name of a check is none.
    for name in ["fail", "raises", "warns", "deprecated_call"] {
        let found = codes(&format!(
            "{HEAD}def {name}():\n    pass\n\n\ndef test_it():\n    {run}\n    {name}()\n"
        ));
        assert!(
            found
                .iter()
                .any(|code| code.starts_with("forge-test-empty")),
            "{name}: {found:?}"
        );
        let of_pytest = format!(
            "from pytest import {name} as wanted\n{HEAD}def test_it():\n    wanted({run})\n"
        );
        assert!(
            codes(&of_pytest).is_empty(),
            "{of_pytest}: {:?}",
            codes(&of_pytest)
        );
    }
    // As deep as a text may be.
    let deep = format!(
        "{HEAD}def test_it():\n    assert {}1{}\n",
        "(".repeat(3000),
        ")".repeat(3000)
    );
    let _ = codes(&deep);
}

#[test]
fn forged_test_run_is_refused() {
    for (imports, body, expected) in [
        ("import os\n", "def test_it():\n    os._exit(0)\n", "forge-"),
        (
            "import sys\n",
            "def test_it():\n    sys.exit(0)\n",
            "forge-interpreter",
        ),
        (
            "import sys\n",
            "def test_it():\n    sys.modules['x'] = 1\n",
            "forge-interpreter",
        ),
        (
            "",
            "def test_it():\n    raise SystemExit(0)\n",
            "forge-process",
        ),
        (
            "",
            "def test_it():\n    raise KeyboardInterrupt\n",
            "forge-process",
        ),
        ("", "def test_it():\n    exit(0)\n", "forge-process"),
        (
            "",
            "def test_it():\n    pytest.exit('done', returncode=0)\n",
            "forge-test-steers",
        ),
        (
            "from pytest import exit as done\n",
            "def test_it():\n    done('x')\n",
            "forge-",
        ),
        (
            "",
            "def test_it():\n    p = pytest\n    p.exit('done')\n",
            "forge-test-steers",
        ),
        (
            "",
            "def test_it():\n    [pytest][0].exit('x')\n",
            "forge-reflection",
        ),
        (
            "",
            "def test_it():\n    getattr(pytest, 'exit')('x')\n",
            "forge-reflection",
        ),
        (
            "",
            "def test_it():\n    pytest.main([])\n",
            "forge-test-steers",
        ),
        (
            "",
            "def test_it():\n    s = DemoSkill()\n    s.execute = lambda inputs: {}\n",
            "forge-test-steers",
        ),
        (
            "",
            "def test_it():\n    s = [DemoSkill()]\n    (a, s[0].execute) = 1, len\n",
            "forge-test-steers",
        ),
        (
            "",
            "def test_it():\n    for kind in [DemoSkill]:\n        kind.execute = len\n",
            "forge-test-steers",
        ),
        (
            "",
            "def test_it():\n    s = DemoSkill()\n    for s.execute in [len]:\n        pass\n",
            "forge-test-steers",
        ),
        (
            "",
            "def test_it():\n    s = DemoSkill()\n    del s.execute\n",
            "forge-test-steers",
        ),
        (
            "import contextlib\n",
            "def test_it():\n    s = DemoSkill()\n    with contextlib.nullcontext(len) as s.execute:\n        pass\n",
            "forge-test-steers",
        ),
        (
            "",
            "class Fake(DemoSkill):\n    def execute(self, inputs):\n        return {'n': 3}\n\n\ndef test_it():\n    assert Fake().execute({})\n",
            "forge-test-steers",
        ),
        (
            "",
            "def test_it():\n    class Fake(DemoSkill):\n        execute = len\n    assert Fake().execute({})\n",
            "forge-test-steers",
        ),
        (
            "",
            "def test_it():\n    s = DemoSkill()\n    setattr(s, 'execute', len)\n",
            "forge-reflection",
        ),
        (
            "import contextlib\n",
            "class R(contextlib.redirect_stdout):\n    _stream = 'modules'\n    _old_targets = []\n\n    def found(self):\n        return self._old_targets[0]\n",
            "forge-test-steers",
        ),
        (
            "import contextlib\n",
            "K = contextlib.redirect_stdout\n\n\nclass R(K):\n    _stream = 'modules'\n",
            "forge-test-steers",
        ),
        (
            "import contextlib\n",
            "class R(*[contextlib.redirect_stdout]):\n    pass\n",
            "forge-test-steers",
        ),
        (
            "import contextlib\n",
            "def made(base):\n    class R(base):\n        _stream = 'modules'\n    return R(None)\n\n\ndef test_it():\n    assert made(contextlib.redirect_stdout)\n",
            "forge-test-steers",
        ),
        (
            "import contextlib\n",
            "class Base:\n    pass\n\n\nBase = contextlib.redirect_stdout\n\n\nclass R(Base):\n    pass\n",
            "forge-test-steers",
        ),
        (
            "import enum\nimport contextlib\n",
            "def test_it():\n    assert enum.Enum('R', {'a': 1}, type=contextlib.redirect_stdout)\n",
            "forge-code",
        ),
        (
            "",
            "def test_it():\n    pytest.skip('no')\n",
            "forge-test-steers",
        ),
        (
            "",
            "pytest.skip('no', allow_module_level=True)\n",
            "forge-test-steers",
        ),
        (
            "",
            "@pytest.mark.skip\ndef test_it():\n    pass\n",
            "forge-test-steers",
        ),
        (
            "",
            "@pytest.mark.xfail(strict=False)\ndef test_it():\n    assert False\n",
            "forge-test-steers",
        ),
        (
            "",
            "@pytest.mark.skipif(True, reason='x')\ndef test_it():\n    pass\n",
            "forge-test-steers",
        ),
        ("", "pytestmark = pytest.mark.skip\n", "forge-test-steers"),
        (
            "",
            "m = pytest.mark\n\n\n@m.skip\ndef test_it():\n    pass\n",
            "forge-test-steers",
        ),
        ("", "pytest.importorskip('nothing')\n", "forge-test-steers"),
        (
            "",
            "@pytest.hookimpl\ndef test_it():\n    pass\n",
            "forge-test-steers",
        ),
        (
            "",
            "def pytest_runtest_makereport(item, call):\n    return None\n",
            "forge-test-steers",
        ),
        (
            "",
            "class A:\n    def pytest_sessionfinish(self, session):\n        session.exitstatus = 0\n",
            "forge-test-steers",
        ),
        ("", "pytest_plugins = ['x']\n", "forge-test-steers"),
        ("", "collect_ignore = ['x']\n", "forge-test-steers"),
        (
            "",
            "for pytest_plugins in [['x']]:\n    pass\n",
            "forge-test-steers",
        ),
        ("", "(pytest_plugins := ['x'])\n", "forge-test-steers"),
        (
            "",
            "def test_it(request):\n    request.config\n",
            "forge-test-steers",
        ),
        (
            "",
            "def test_it(pytestconfig):\n    pass\n",
            "forge-test-steers",
        ),
        ("import conftest\n", "", "forge-import-not-allowed"),
        ("import _pytest.outcomes\n", "", "forge-import-not-allowed"),
        (
            "import pytest as p\nfrom _pytest import config\n",
            "",
            "forge-import-not-allowed",
        ),
        (
            "from unittest import mock\n",
            "",
            "forge-import-not-allowed",
        ),
        ("import atexit\n", "", "forge-outlives"),
        ("import importlib\n", "", "forge-code"),
        ("import subprocess\n", "", "forge-process"),
        ("import socket\n", "", "forge-network"),
        ("import builtins\n", "", "forge-code"),
        (
            "from pathlib import Path\n",
            "def test_it():\n    Path('x').write_text('y')\n",
            "forge-write",
        ),
        (
            "",
            "def test_it(tmp_path):\n    (tmp_path / '../../x').write_text('y')\n",
            "forge-write",
        ),
        (
            "",
            "def test_it(tmp_path):\n    (tmp_path / '/etc/x').write_text('y')\n",
            "forge-write",
        ),
        (
            "",
            "def test_it(tmp_path):\n    tmp_path = DemoSkill().root\n    (tmp_path / 'x').write_text('y')\n",
            "forge-write",
        ),
        (
            "",
            "def test_it(tmp_path):\n    (tmp_path.parent / 'x').write_text('y')\n",
            "forge-write",
        ),
        ("", "def test_it():\n    open('x', 'w')\n", "forge-write"),
        (
            "import os\n",
            "def test_it():\n    os.environ['PYTEST_ADDOPTS'] = 'x'\n",
            "forge-secret",
        ),
        (
            "",
            "def test_it(monkeypatch):\n    monkeypatch.setattr('builtins.open', None)\n",
            "forge-test-steers",
        ),
        (
            "",
            "def test_it(monkeypatch):\n    monkeypatch.setattr(DemoSkill, 'execute', lambda s, i: {})\n",
            "forge-test-steers",
        ),
        (
            "",
            "def test_it(monkeypatch):\n    monkeypatch.setattr('skillset.skills.demo.DemoSkill', None)\n",
            "forge-test-steers",
        ),
        (
            "",
            "def test_it(monkeypatch):\n    monkeypatch.setattr('skillset.skills.demo.os.path', None)\n",
            "forge-test-steers",
        ),
        (
            "",
            "def test_it(monkeypatch):\n    monkeypatch.setattr(*['builtins.open', None])\n",
            "forge-test-steers",
        ),
        (
            "",
            "def test_it(monkeypatch):\n    monkeypatch.setenv('PYTHONPATH', 'x')\n",
            "forge-test-steers",
        ),
        (
            "",
            "def test_it(monkeypatch):\n    monkeypatch.setenv('PYTEST_' 'ADDOPTS', 'x')\n",
            "forge-test-steers",
        ),
        (
            "",
            "def test_it(monkeypatch):\n    monkeypatch.chdir('/')\n",
            "forge-test-steers",
        ),
        (
            "",
            "def test_it(monkeypatch):\n    monkeypatch.syspath_prepend('/tmp')\n",
            "forge-test-steers",
        ),
        (
            "",
            "def test_it(monkeypatch):\n    m = monkeypatch\n    m.setattr('builtins.open', None)\n",
            "forge-test-steers",
        ),
        (
            "",
            "def test_it():\n    pytest.MonkeyPatch().setattr('builtins.open', None)\n",
            "forge-test-steers",
        ),
        (
            "",
            "def test_it(monkeypatch):\n    (monkeypatch).setattr('builtins.open', None)\n",
            "forge-test-steers",
        ),
        (
            "",
            "def test_it(monkeypatch):\n    monkeypatch.undo.__self__.setattr('builtins.open', None)\n",
            "forge-",
        ),
        (
            "",
            "@pytest.fixture\ndef tmp_path():\n    return DemoSkill().root\n",
            "forge-test-steers",
        ),
        (
            "",
            "@pytest.mark.parametrize('a, tmp_path', [(1, DemoSkill)])\ndef test_it(a, tmp_path):\n    pass\n",
            "forge-test-steers",
        ),
        (
            "",
            "@pytest.fixture(name='tmp_' 'path')\ndef place():\n    return DemoSkill().root\n",
            "forge-test-steers",
        ),
        (
            "",
            "def test_it(capsys):\n    capsys.request.config.pluginmanager.unregister(name='x')\n",
            "forge-test-steers",
        ),
        (
            "",
            "def test_it():\n    open = 1\n\n    class A:\n        if not open:\n            open = 2\n        open('x', 'w')\n",
            "forge-write",
        ),
        (
            "",
            "def test_it():\n    DemoSkill.execute = lambda self, inputs: {}\n",
            "forge-test-steers",
        ),
        (
            "",
            "def test_it():\n    setattr(DemoSkill, 'execute', None)\n",
            "forge-reflection",
        ),
        (
            "from skillset.skills.demo import os\n",
            "def test_it():\n    os.system('x')\n",
            "forge-",
        ),
        (
            "from skillset.skills import demo\n",
            "def test_it():\n    demo.os.system('x')\n",
            "forge-reflection",
        ),
        (
            "from skillset.skills.other import OtherSkill\n",
            "",
            "forge-import-not-allowed",
        ),
        ("", "print('1 passed')\n", "forge-import-time"),
        ("", "assert DemoSkill().execute({})\n", "forge-import-time"),
        ("# coding coding: utf-7\n", "", "forge-source"),
    ] {
        let text = format!("{imports}{HEAD}{body}");
        let found = codes(&text);
        assert!(
            found.iter().any(|code| code.starts_with(expected)),
            "{expected}\n{text}\n{found:#?}"
        );
    }
}
