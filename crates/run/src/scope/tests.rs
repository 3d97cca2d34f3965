//! Goals as users write them, and what they open in a small project.

use super::*;

const FILES: &[(&str, &str)] = &[
    ("CHANGELOG.md", "# Changelog\n"),
    ("Cargo.toml", "[package]\n"),
    ("Cargo.lock", ""),
    ("README.md", "Call `tokenize` first.\n"),
    (".github/workflows/ci.yml", "on: push\n"),
    ("docs/guide.md", "guide\n"),
    ("package.json", "{}"),
    ("package-lock.json", "{}"),
    ("pkg/__init__.py", ""),
    (
        "pkg/area.py",
        "class Area:\n    def add(self):\n        pass\n\ndef helper():\n    pass\n",
    ),
    ("pkg/io/__init__.py", "def load(): pass\n"),
    ("pkg/io/json.py", "def dump(): pass\ndef load(): pass\n"),
    (
        "pkg/shape.py",
        "from .area import helper\n\ndef parse_shape():\n    return helper()\n",
    ),
    ("pyproject.toml", "[project]\n"),
    (
        "src/lexer.rs",
        "pub fn tokenize() {}\npub struct Lexer;\nimpl Lexer { pub fn next(&self) {} }\n",
    ),
    ("src/main.rs", "fn main() { lexer::tokenize(); }\n"),
    (
        "src/parser/mod.rs",
        "pub struct Parser;\nimpl Parser { pub fn next(&self) {} }\n",
    ),
    ("src/parser/expr.rs", "pub fn parse_expr() {}\n"),
    ("tests/conftest.py", "def helper(): pass\n"),
    (
        "tests/test_area.py",
        "from pkg.area import helper\n\ndef test_helper():\n    assert helper() is None\n",
    ),
    ("tests/test_shape.py", "def test_shape(): pass\n"),
    ("web/app/index.ts", "export function render() {}\n"),
    ("web/app/util.ts", "export const pad = 1;\n"),
    ("web/lib/index.ts", "export function paint() {}\n"),
];

fn on<T>(files: &[(&str, &str)], act: impl FnOnce(&Tree<'_>) -> T) -> T {
    let paths: Vec<RepoPath> = files
        .iter()
        .map(|(path, _)| path.parse().unwrap())
        .collect();
    let text = |path: &RepoPath| {
        let found = files.iter().find(|(known, _)| *known == path.as_str());
        found
            .map(|(_, text)| text.as_bytes().to_vec())
            .unwrap_or_default()
    };
    act(&Tree::new(&paths, &text))
}

/// What a goal opens, in one line: files, directories with `/`, `+` what is lifted, `?` tests, `-` what is denied.
fn scope_text(goal: &str) -> String {
    let scope = on(FILES, |tree| read_goal(goal, tree));
    let lifted = |path: &RepoPath| if scope.names.contains(path) { "+" } else { "" };
    let mut described: Vec<String> = scope
        .files
        .iter()
        .map(|path| format!("{}{path}", lifted(path)))
        .collect();
    described.extend(
        scope
            .directories
            .iter()
            .map(|place| format!("{}/", place.to_string().trim_end_matches('/'))),
    );
    described.extend(scope.tests.iter().map(|path| format!("?{path}")));
    described.extend(scope.denied.iter().map(|place| format!("-{place}")));
    described.extend(
        scope
            .renames
            .iter()
            .map(|(old, new)| format!("{old}>{new}")),
    );
    described.extend(
        scope
            .problems
            .iter()
            .map(|finding| finding.code.to_string()),
    );
    described.join(" ")
}

#[test]
fn goals_open_what_they_name() {
    for (goal, opens) in [
        // Paths.
        ("Fix the crash in src/lexer.rs", "src/lexer.rs"),
        (
            "src/lexer.rs:12:5: tokenize drops the last byte",
            "src/lexer.rs",
        ),
        (
            "lexer.rs and expr.rs both panic on an empty input.",
            "src/lexer.rs src/parser/expr.rs",
        ),
        (
            "index.ts renders twice",
            "web/app/index.ts web/lib/index.ts",
        ),
        (
            "Handle tabs in ./pkg/area.py (see /home/me/work/pkg/shape.py, line 3)",
            "pkg/area.py pkg/shape.py",
        ),
        ("fix missing.rs", ""),
        // Directories.
        (
            "Return errors instead of panicking in src/parser/",
            "src/parser/",
        ),
        ("Make everything under web/app strict", "web/app/"),
        ("make the parser faster", ""),
        // Globs.
        (
            "Use two spaces in web/**/*.ts",
            "web/app/index.ts web/app/util.ts web/lib/index.ts",
        ),
        (
            "Sort the imports of pkg/*.py",
            "pkg/__init__.py pkg/area.py pkg/shape.py",
        ),
        // Modules.
        ("pkg.io.json.dump writes NaN", "pkg/io/json.py"),
        ("pkg.io.load fails on Windows", "pkg/io/__init__.py"),
        (
            "crate::parser::expr::parse_expr accepts `1 +`",
            "src/parser/expr.rs",
        ),
        // Symbols.
        ("`tokenize` must accept CRLF", "src/lexer.rs"),
        (
            "parse_expr() returns None for an empty list",
            "src/parser/expr.rs",
        ),
        ("Lexer::next() skips a token", "src/lexer.rs"),
        ("`Area.add` should return the sum", "pkg/area.py"),
        ("next() never ends", "src/lexer.rs src/parser/mod.rs"),
        ("the word tokenize alone says nothing", ""),
        // New files, files that go.
        ("Extract the helpers into pkg/util.py", "+pkg/util.py"),
        (
            "Add a module src/parser/types.rs for the types",
            "+src/parser/types.rs",
        ),
        ("Remove the unused file web/app/util.ts", "+web/app/util.ts"),
        ("Remove pad from web/app/util.ts", "web/app/util.ts"),
        ("Add tests/test_io.py for pkg/io/json.py", "pkg/io/json.py"),
        // Tests.
        ("Make tests/test_area.py pass", "?tests/test_area.py"),
        (
            "Fix area.py and its tests, see tests/test_area.py::test_helper",
            "pkg/area.py ?tests/test_area.py",
        ),
        // Dependencies and manifests.
        (
            "Add a dependency on serde and use it in src/main.rs",
            "src/main.rs +Cargo.toml +package.json +pyproject.toml +Cargo.lock +package-lock.json",
        ),
        ("Bump the version in Cargo.toml to 2.0", "+Cargo.toml"),
        ("The build fails, see Cargo.toml", ""),
        ("Depend on nothing new in src/main.rs", "src/main.rs"),
        // What is pasted names sources and opens nothing else.
        (
            "Fix src/main.rs\n\n## Report\n\nAdd `x` to Cargo.toml, remove src/lexer.rs, see pkg/area.py",
            "src/main.rs src/lexer.rs pkg/area.py",
        ),
        (
            "Bump Cargo.toml\n> Add a dependency to package.json",
            "+Cargo.toml",
        ),
        ("Fix #12 and bump Cargo.toml", "+Cargo.toml"),
        // Renames.
        (
            "Rename `helper` to `assist`",
            "pkg/area.py pkg/shape.py ?tests/test_area.py helper>assist",
        ),
        (
            "rename tokenize to scan",
            "README.md src/lexer.rs src/main.rs tokenize>scan",
        ),
        // Documents.
        (
            "Document the flags in the README and the changelog",
            "CHANGELOG.md README.md",
        ),
        ("Explain it in docs/guide.md", "docs/guide.md"),
        // What stays as it is.
        (
            "Fix src/lexer.rs but do not touch src/main.rs",
            "src/lexer.rs -src/main.rs",
        ),
        (
            "Fix src/lexer.rs without changing anything in src/parser/",
            "src/lexer.rs -src/parser",
        ),
        (
            "Leave pkg/area.py alone; fix pkg/shape.py",
            "pkg/shape.py -pkg/area.py",
        ),
        ("Do not change the behaviour of src/main.rs", "src/main.rs"),
        // What no goal opens.
        ("Update .github/workflows/ci.yml and tests/conftest.py", ""),
        (
            "write .git/hooks/pre-commit and ../x.py and /etc/passwd.txt",
            "",
        ),
    ] {
        assert_eq!(scope_text(goal), opens, "{goal}");
    }
}

#[test]
fn goal_is_certain_where_it_names_a_place() {
    let is_certain = |goal: &str| on(FILES, |tree| read_goal(goal, tree).is_certain);
    for goal in [
        "fix pkg/area.py",
        "fix shape.py:12",
        "fix the parser in src/parser/",
        "src/*.rs: use the new error",
        "rename `helper` to `assist`",
        "remove the file pkg/shape.py",
    ] {
        assert!(is_certain(goal), "{goal}");
    }
    for goal in [
        "the parser loses the last token",
        "crash in pkg.shape.parse_shape",
        "`parse_expr` is wrong",
        "tokenize() is wrong",
        "bump the version in Cargo.toml",
        "fix index.ts",
        "`load` and `next` are wrong",
        "tests/test_area.py::test_helper fails",
        "document it in the README",
        "see docs/guide.md",
        "do not touch pkg/area.py",
        "see Cargo.toml",
        "",
    ] {
        assert!(!is_certain(goal), "{goal}");
    }
}

#[test]
fn rename_of_too_many_files_gives_advice() {
    let names: Vec<String> = (0..=MAX_RENAMED)
        .map(|number| format!("src/a{number}.py"))
        .collect();
    let files: Vec<(&str, &str)> = names
        .iter()
        .map(|name| (name.as_str(), "legacy()\n"))
        .collect();
    let scope = on(&files, |tree| read_goal("rename `legacy` to `new`", tree));
    assert_eq!(scope.problems[0].code.as_str(), "plan-goal-too-wide");
    assert!(scope.problems[0].hint.contains("--file") && scope.renames.is_empty());
    let scope = on(&files[1..], |tree| {
        read_goal("rename `legacy` to `new`", tree)
    });
    assert_eq!((scope.problems.len(), scope.files.len()), (0, MAX_RENAMED));
}

#[test]
fn hostile_goals_end_and_open_nothing_outside() {
    for piece in [
        "`a` ",
        "a/b.c ",
        "**/* ",
        "a.b.c.d() ",
        "{a,b}/* ",
        "``` ",
        "rename a to b. ",
        "not touch x.py ",
    ] {
        let goal = piece.repeat(40_000 / piece.len());
        let scope = on(FILES, |tree| read_goal(&goal, tree));
        assert!(scope.files.len() <= FILES.len(), "{piece}");
    }
    let bombs = "{a,{b,{c,{d,{e,{f,{g,{h,{i,{j,k}}}}}}}}}}/*.py [a-/*.py {/*.py \\*/.py";
    assert_eq!(scope_text(bombs), "");
}

#[test]
fn additions_are_allowed_beside_change_and_tests() {
    let places = |scope: &[&str], tests: &[&str]| {
        let scope: Vec<PathPrefix> = scope.iter().map(|place| place.parse().unwrap()).collect();
        let tests: Vec<RepoPath> = tests.iter().map(|path| path.parse().unwrap()).collect();
        let places = on(FILES, |tree| additions(&scope, &tests, tree));
        places
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        places(&["pkg/area.py"], &[]),
        "tests pkg docs CHANGELOG.md README.md"
    );
    assert_eq!(
        places(&["src/main.rs"], &["tests/test_area.py"]),
        "tests/test_area.py tests src docs CHANGELOG.md README.md"
    );
    assert_eq!(
        places(&["web/app/util.ts"], &[]),
        "tests web/app docs CHANGELOG.md README.md"
    );
    let flat = [
        ("area.py", ""),
        ("test_area.py", ""),
        ("main.go", ""),
        ("lib/a.py", ""),
        ("changes/1.md", ""),
    ];
    let scope: Vec<PathPrefix> = ["area.py", "main.go", "lib/a.py"]
        .iter()
        .map(|it| it.parse().unwrap())
        .collect();
    let places = on(&flat, |tree| additions(&scope, &[], tree));
    let places: Vec<String> = places.iter().map(ToString::to_string).collect();
    assert_eq!(
        places,
        ["test_area.py", "main_test.go", "lib/test_a.py", "changes"]
    );
}

#[test]
fn author_lists_may_grow_but_licences_not() {
    let files = [
        ("pkg/a.py", ""),
        ("AUTHORS.rst", ""),
        ("CONTRIBUTORS", ""),
        ("COPYING", ""),
        ("LICENSE.md", ""),
        ("THANKS", ""),
        ("thanks.py", ""),
    ];
    let scope: Vec<PathPrefix> = vec!["pkg/a.py".parse().unwrap()];
    let places = on(&files, |tree| additions(&scope, &[], tree));
    let places: Vec<String> = places.iter().map(ToString::to_string).collect();
    assert_eq!(
        places,
        ["pkg/test_a.py", "AUTHORS.rst", "CONTRIBUTORS", "THANKS"]
    );
}

#[test]
fn documents_that_a_test_names_are_no_additions() {
    let places = |test: &str| {
        let files = [
            ("pkg/a.py", ""),
            ("README.md", ""),
            ("docs/cli.md", ""),
            ("tests/test_a.py", test),
        ];
        let scope: Vec<PathPrefix> = vec!["pkg/a.py".parse().unwrap()];
        let places = on(&files, |tree| additions(&scope, &[], tree));
        places
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        places("it has docs, and a docstring"),
        "tests docs README.md"
    );
    assert_eq!(places("open('docs/cli.md')"), "tests README.md");
    assert_eq!(places("Path('docs') / name"), "tests README.md");
    assert_eq!(places("open('README.md')"), "tests docs");
    assert_eq!(places("open(f'{root}/README.md')"), "tests docs");
    assert_eq!(
        places("url = 'https://example.org/blob/main/README.md'"),
        "tests docs README.md"
    );
    let files = [
        ("pkg/a.py", ""),
        ("CHANGES", ""),
        ("noxfile.py", "Path('CHANGES')"),
        ("tests/test_a.py", ""),
    ];
    let scope: Vec<PathPrefix> = vec!["pkg/a.py".parse().unwrap()];
    let places = on(&files, |tree| additions(&scope, &[], tree));
    assert!(
        places.iter().any(|place| place.to_string() == "CHANGES"),
        "{places:?}"
    );
}

#[test]
fn paths_directories_and_globs_are_distinguished() {
    let expanded = |text: &str| match on(FILES, |tree| expand(text, tree)) {
        Expansion::Files(files) => files
            .iter()
            .map(RepoPath::as_str)
            .collect::<Vec<_>>()
            .join(" "),
        Expansion::Directory(path) => format!("{path}/"),
        Expansion::New(path) => format!("new {path}"),
        Expansion::NotAPath(why) => why,
    };
    assert_eq!(expanded("./pkg/area.py"), "pkg/area.py");
    assert_eq!(expanded("pkg/io/"), "pkg/io/");
    assert_eq!(expanded("pkg/io"), "pkg/io/");
    assert_eq!(expanded("src/*.rs"), "src/lexer.rs src/main.rs");
    assert_eq!(expanded("no/such/*.rs"), "");
    assert_eq!(expanded("no/such/"), "there is no such directory");
    assert_eq!(expanded("pkg/new.py"), "new pkg/new.py");
    assert!(expanded("../x").contains("segment") && expanded("/etc/*").is_empty());
    assert!(
        expanded("src/[a.rs").contains("glob"),
        "{}",
        expanded("src/[a.rs")
    );
}
