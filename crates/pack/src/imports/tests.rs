//! Imports of each language, found and resolved.

use super::*;

const TREE: [&str; 22] = [
    "src/click/__init__.py",
    "src/click/core.py",
    "src/click/types.py",
    "tests/test_core.py",
    "tests/conftest.py",
    "index.js",
    "lib/express.js",
    "lib/router/index.js",
    "test/app.js",
    "packages/zod/package.json",
    "packages/zod/src/v4/index.ts",
    "packages/zod/src/v4/core/util.ts",
    "mux.go",
    "mux_test.go",
    "middleware/strip.go",
    "crates/regex/src/lib.rs",
    "crates/regex/src/word.rs",
    "crates/regex/src/ast/mod.rs",
    "crates/regex/tests/all.rs",
    "src/main/java/com/acme/Parser.java",
    "src/main/java/com/acme/Lexer.java",
    "src/main/java/org/Other.java",
];

fn imported(path: &str, text: &str) -> Vec<String> {
    let paths: Vec<RepoPath> = TREE.iter().map(|path| path.parse().unwrap()).collect();
    let found = ImportIndex::new(&paths).imported(&path.parse().unwrap(), text);
    found.into_iter().map(|path| path.to_string()).collect()
}

#[test]
fn python_absolute_and_relative_imports_resolve() {
    assert_eq!(
        imported("tests/test_core.py", "import os, click\n"),
        ["src/click/__init__.py"]
    );
    assert_eq!(
        imported(
            "tests/test_core.py",
            "from click.core import (\n    Option,  # x\n    Command,\n)\nfrom click import types as t\n"
        ),
        [
            "src/click/__init__.py",
            "src/click/core.py",
            "src/click/types.py"
        ]
    );
    assert_eq!(
        imported(
            "src/click/core.py",
            "from .types import X\nfrom . import core\n"
        ),
        ["src/click/__init__.py", "src/click/types.py"]
    );
    assert!(
        imported(
            "src/click/core.py",
            "from ..... import x\nimport\nfrom  import \n"
        )
        .is_empty()
    );
}

#[test]
fn scripts_resolve_relative_files_and_workspace_packages() {
    assert_eq!(
        imported(
            "test/app.js",
            "var express = require('../')\n  , r = require(\"../lib/router\");"
        ),
        ["index.js", "lib/router/index.js"]
    );
    assert_eq!(
        imported(
            "packages/zod/src/v4/a.test.ts",
            "import { z } from \"zod/v4\";\nimport * as u from './core/util.js'\n"
        ),
        [
            "packages/zod/src/v4/core/util.ts",
            "packages/zod/src/v4/index.ts"
        ]
    );
    assert!(imported("index.js", "require('../../etc/passwd'); require('fs')").is_empty());
}

#[test]
fn go_imports_resolve_by_directory() {
    assert_eq!(
        imported(
            "mux_test.go",
            "import (\n\t\"testing\"\n\t\"github.com/go-chi/chi/v5/middleware\"\n)\n"
        ),
        ["middleware/strip.go", "mux.go"]
    );
}

#[test]
fn rust_imports_resolve_inside_and_across_crates() {
    assert_eq!(
        imported(
            "crates/regex/src/lib.rs",
            "mod word;\nuse crate::{ast::Ast};"
        ),
        ["crates/regex/src/ast/mod.rs", "crates/regex/src/word.rs"]
    );
    assert_eq!(
        imported("crates/regex/src/ast/mod.rs", "use super::word::Word;"),
        ["crates/regex/src/word.rs"]
    );
    assert_eq!(
        imported("crates/regex/tests/all.rs", "use grep_regex::word::W;"),
        ["crates/regex/src/lib.rs", "crates/regex/src/word.rs"]
    );
}

#[test]
fn java_classes_resolve_by_their_full_name() {
    assert_eq!(
        imported("src/test/java/T.java", "import com.acme.Parser;\n"),
        ["src/main/java/com/acme/Parser.java"]
    );
    assert_eq!(
        imported("src/test/java/T.java", "import com.acme.*;\n").len(),
        2
    );
}

#[test]
fn hostile_text_is_read_without_harm() {
    for piece in [
        "from . import (",
        "import é,",
        "use a::{",
        "require('",
        "\"/",
        "mod ",
        "import .;",
        "from x import y\n",
    ] {
        for path in ["a.py", "a.ts", "a.go", "a.rs", "a.java"] {
            let _ = imported(path, &piece.repeat(30_000));
        }
    }
}
