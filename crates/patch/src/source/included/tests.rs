//! Tests of what a text has read from outside: each language's constructs, and their honest neighbours.

use super::*;

fn outside(path: &str, source: &str) -> Vec<Reach> {
    let found = included(&path.parse().unwrap(), source.as_bytes());
    found.into_iter().map(|found| found.reach).collect()
}

#[test]
fn included_file_outside_the_repository_is_found() {
    for (path, source) in [
        ("src/a.rs", "const K: &str = include_str!(\"/etc/passwd\");"),
        ("src/a.rs", "const K: &[u8] = include_bytes!(\"../../secret\");"),
        ("src/a.rs", "include!{r#\"/home/me/x.rs\"#}"),
        ("src/a.rs", "const K: &str = std::include_str ! [\n  // here\n  \"../\\x2e./key\" ,\n];"),
        ("src/a.rs", "const K: &str = r#include_str!(\"\\u{2f}etc/passwd\");"),
        ("src/a.rs", "const K: &str = include_str!(concat!(\"/etc\", \"/passwd\"));"),
        ("src/a.rs", "const K: &str = include_str!(concat!(env!(\"HOME\"), \"/.ssh/id_rsa\"));"),
        ("src/a.rs", "const K: &str = include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/../key\"));"),
        ("src/a.rs", "include!(concat!(env!(\"OUT_DIR\"), \"/../../../../../../key\"));"),
        ("src/a.rs", "const K: &str = include_str!(\"../.git/config\");"),
        ("src/a.rs", "#![doc = include_str!(\"../../README.md\")]"),
        ("src/a.rs", "static D: Dir = include_dir!(\"$CARGO_MANIFEST_DIR/../..\");"),
        ("src/a.rs", "#[path = \"/usr/src/x.rs\"]\nmod x;"),
        ("src/a.rs", "#[cfg_attr(unix, path = \"../../x.rs\")]\nmod x;"),
        ("src/a.rs", "#[derive(RustEmbed)]\n#[folder = \"/etc\"]\nstruct A;"),
        ("src/a.rs", "use std::include_str as text;\nconst K: &str = text!(\"/etc/passwd\");"),
        ("src/a.rs", "global_asm!(\".incbin \\\"/etc/passwd\\\"\");"),
        ("src/a.c", "#include \"/etc/passwd\"\n"),
        ("src/a.c", "#  include </etc/passwd>\n"),
        ("src/a.c", "#inc\\\nlude \"../../x.h\"\n"),
        ("src/a.c", "%:include \"/etc/passwd\"\n"),
        ("src/a.c", "#define FILE \"/etc/passwd\"\n#include FILE\n"),
        ("src/deep/er/a.c", "#include <../../etc/passwd>\n"),
        ("src/a.c", "const char k[] = {\n#embed \"/etc/passwd\"\n};\n"),
        ("src/a.c", "asm(\".incbin \\\"../../key\\\"\");\n"),
        ("src/a.js", "const a = require(\"../../../key.json\");"),
        ("src/a.ts", "import key from '../../key.json';"),
        ("src/a.ts", "export * from \"/etc/x\";"),
        ("src/a.mjs", "const a = await import(`file:///etc/x.mjs`);"),
        ("src/a.go", "package a\n\n/*\n#include \"/etc/passwd\"\n*/\nimport \"C\"\n"),
        ("src/a.go", "package a\n\n//go:embed ../../key\nvar k string\n"),
        ("src/a.py", "exec(open(\"/etc/x.py\").read())"),
        ("src/a.py", "runpy.run_path('/etc/x.py')"),
        ("src/a.py", "s = spec_from_file_location(\"x\", \"../../x.py\")"),
        ("src/a.s", "k:\n  .incbin \"/etc/passwd\"\n"),
        ("src/a.zig", "const k = @embedFile(\"../../key\");"),
        ("src/a.rb", "require_relative '../../key'"),
        ("src/a.php", "<?php include('/etc/passwd'); require __DIR__ . '/../../key.php';"),
        ("src/a.jl", "include(\"/etc/x.jl\")"),
        ("docs/a.rst", ".. literalinclude:: ../../key\n"),
        ("docs/a.rst", ".. include:: /etc/passwd\n"),
        ("docs/a.md", "{{#include ../../key.md:2:3}}\n"),
        ("docs/a.adoc", "include::/etc/passwd[]\n"),
        ("web/a.css", "@import \"../../key.css\";\n"),
    ] {
        let found = outside(path, source);
        assert!(
            !found.is_empty() && found.iter().all(|reach| *reach == Reach::Outside),
            "{path} {source}: {found:?}"
        );
    }
}

#[test]
fn included_file_of_the_repository_is_fine() {
    for (path, source) in [
        ("src/a.rs", "const K: &str = include_str!(\"../README.md\");"),
        (
            "src/a.rs",
            "// include_str!(\"/etc/passwd\")\nconst K: &str = \"include_str!(\\\"/etc/passwd\\\")\";",
        ),
        ("src/a.rs", "include!(concat!(env!(\"OUT_DIR\"), \"/bindings.rs\"));"),
        (
            "crates/x/src/a.rs",
            "const K: &str = include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/../../README.md\"));",
        ),
        ("src/a.rs", "include_bytes_aligned!(16, \"../data/a.bin\");"),
        (
            "src/a.rs",
            "#[utoipa::path(get, path = \"/users\")]\nfn a() {}\n#[serde(rename = \"/a\")]\nstruct B;",
        ),
        ("src/a.rs", "mod a {\n    #[path = \"../../x.rs\"]\n    mod b;\n}"),
        ("src/a.rs", "let path = \"/etc/passwd\"; let folder = \"/etc\"; include(\"/etc/x\");"),
        ("src/a.c", "#include <stdio.h>\n#include \"../include/a.h\"\n#include <sys/types.h>\n"),
        ("src/a.c", "#define HEADER <ft2build.h>\n#include HEADER\n/* #include \"/etc/passwd\" */\n"),
        ("src/b/a.c", "#include \"../../etc/config.h\"\nconst char *p = \"/etc/passwd\";\n"),
        ("src/a.js", "import a from \"../b.js\"; import l from '/logo.svg'; const d = Array.from(\"/a\");"),
        ("src/a.js", "const a = require(\"./\" + name); const p = require('path'); fetch(\"/etc\");"),
        (
            "src/a.go",
            "package a\n\nimport \"C\"\n\n// #include <stdlib.h>\n//go:embed data/*.json\nvar k string\n",
        ),
        (
            "src/a.py",
            "exec(compile(text, \"/x\", \"exec\"))\nrunpy.run_path(\"data/x.py\")\nopen(\"/etc/passwd\")\n",
        ),
        ("src/a.rb", "require 'json'\nrequire_relative '../lib/a'\n"),
        ("src/a.php", "<?php require __DIR__ . '/../vendor/autoload.php';"),
        ("docs/a.rst", ".. include:: ../README.rst\n\n.. literalinclude:: /examples/a.py\n"),
        ("docs/a.md", "See `#include </etc/passwd>`.\n"),
        ("web/a.css", "@import \"/styles/base.css\";\n@import url(\"//fonts.example.org/a.css\");\n"),
        ("a.unknown", "include_str!(\"/etc/passwd\")"),
    ] {
        assert_eq!(outside(path, source), [], "{path} {source}");
    }
}

#[test]
fn path_that_only_the_build_knows_is_a_doubt() {
    for (path, source) in [
        ("src/a.rs", "macro_rules! text { ($path:expr) => { include_str!($path) } }"),
        ("src/a.rs", "include!(env!(\"GENERATED\"));"),
        (
            "src/rs/src/a.rs",
            "const K: &str = include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/../key\"));",
        ),
    ] {
        assert_eq!(outside(path, source), [Reach::Unknown], "{path} {source}");
    }
}
