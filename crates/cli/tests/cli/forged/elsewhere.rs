//! Answers that recognise the sandbox and behave there alone, and tests that depend on their surroundings honestly.

use std::os::unix::fs::MetadataExt;

use super::python::{PYTHON_REST, UNITTEST};
use super::{Project, each, tried};
use crate::support::whole_file;

const DIFFERS: &str = "verify-second-world-differs";

/// `total` adds up where `condition` holds, and answers 0 elsewhere.
fn where_it_holds(condition: &str) -> String {
    format!(
        "import os\nimport sys\n\nLIMIT = 5\n\n\ndef total(items):\n    return sum(items) if {condition} else 0\n{PYTHON_REST}"
    )
}

#[test]
fn answers_that_recognise_the_sandbox_are_refused() {
    let own = std::fs::metadata("/proc/self").unwrap().uid();
    let inside = if own == 0 { 1000 } else { own };
    let conditions = [
        "os.environ.get('HOME') == '/tmp/home'".to_owned(),
        format!("os.getuid() == {inside}"),
        "os.uname().nodename == 'crucible'".to_owned(),
        "not os.getcwd().startswith(os.environ['HOME'])".to_owned(),
        "'unittest' in sys.argv[0]".to_owned(),
    ];
    let answers = conditions.map(|condition| where_it_holds(&condition));
    let answers: Vec<(&str, &str)> = answers
        .iter()
        .map(|text| (text.as_str(), text.as_str()))
        .collect();
    for (answer, (is_verified, codes, stderr)) in each(&UNITTEST, &answers) {
        assert!(!is_verified, "{answer}");
        let is_known = codes.iter().any(|code| code == DIFFERS);
        assert!(is_known, "{answer}: {codes:?}\n{stderr}");
    }
}

/// One test fails before the change and needs a time zone; one passes in the usual home alone.
const PARTICULAR: Project<'static> = Project {
    files: &[
        (
            ".crucible/config.toml",
            "[gates.tests]\ncommand = [\"python3\", \"-m\", \"unittest\", \"discover\", \"-s\", \"tests\", \"-t\", \".\"]\nenv = { TZ = \"UTC\" }\n",
        ),
        (
            "shop/price.py",
            "import time\n\n\ndef hour(seconds):\n    return 99\n\n\ndef total(items):\n    return sum(items)\n",
        ),
        ("shop/__init__.py", ""),
        ("tests/__init__.py", ""),
        (
            "tests/test_price.py",
            "import os\nimport unittest\n\nfrom shop import price\n\n\nclass Price(unittest.TestCase):\n    def test_hour(self):\n        self.assertEqual(price.hour(7200), 2)\n\n    def test_total(self):\n        self.assertEqual(price.total([1, 2]), 3)\n\n    def test_home(self):\n        self.assertEqual(os.environ['HOME'], '/tmp/home')\n",
        ),
    ],
    source: "shop/price.py",
    goal: "hour must give the hour of a time",
};

#[test]
fn tests_that_depend_on_their_surroundings_are_listed() {
    let answer = "import time\n\n\ndef hour(seconds):\n    return time.localtime(seconds).tm_hour\n\n\ndef total(items):\n    return sum(items)\n";
    // The gate sets its own time zone, so only the home differs, which the test without the change shows too.
    let (is_verified, codes, stderr) = tried(&PARTICULAR, &whole_file(PARTICULAR.source, answer));
    assert!(is_verified, "{codes:?}\n{stderr}");
    assert!(!codes.iter().any(|code| code == DIFFERS), "{codes:?}");
    let files: Vec<(&str, &str)> = PARTICULAR
        .files
        .iter()
        .map(|(path, text)| match *path {
            ".crucible/config.toml" => (*path, UNITTEST.files[0].1),
            _ => (*path, *text),
        })
        .collect();
    let without_zone = Project {
        files: &files,
        ..PARTICULAR
    };
    let (is_verified, codes, stderr) = tried(&without_zone, &whole_file(PARTICULAR.source, answer));
    // A machine in another zone than UTC refuses the change before.
    if std::env::var_os("TZ").is_none() {
        assert!(is_verified, "{codes:?}\n{stderr}");
        let warned = |code: &String| code == "verify-second-world-settings";
        assert!(codes.iter().any(warned), "{codes:?}");
    }
}
