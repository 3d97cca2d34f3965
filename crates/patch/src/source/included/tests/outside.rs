//! Constructs of each language whose path leaves the repository.

use super::*;

#[test]
fn included_file_outside_the_repository_is_found() {
    let mut wrong = Vec::new();
    for (path, source) in [
        ("src/a.rs", "const K: &str = include_str!(\"/etc/passwd\");"),
        (
            "src/a.rs",
            "const K: &[u8] = include_bytes!(\"../../secret\");",
        ),
        ("src/a.rs", "include!{r#\"/home/me/x.rs\"#}"),
        (
            "src/a.rs",
            "const K: &str = std::include_str ! [\n  // here\n  \"../\\x2e./key\" ,\n];",
        ),
        (
            "src/a.rs",
            "const K: &str = r#include_str!(\"\\u{2f}etc/passwd\");",
        ),
        (
            "src/a.rs",
            "const K: &str = include_str!(concat!(\"/etc\", \"/passwd\"));",
        ),
        (
            "src/a.rs",
            "const K: &str = include_str!(concat!(env!(\"HOME\"), \"/.ssh/id_rsa\"));",
        ),
        (
            "src/a.rs",
            "const K: &str = include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/../key\"));",
        ),
        (
            "src/a.rs",
            "include!(concat!(env!(\"OUT_DIR\"), \"/../../../../../../key\"));",
        ),
        (
            "src/a.rs",
            "const K: &str = include_str!(\"../.git/config\");",
        ),
        ("src/a.rs", "#![doc = include_str!(\"../../README.md\")]"),
        (
            "src/a.rs",
            "static D: Dir = include_dir!(\"$CARGO_MANIFEST_DIR/../..\");",
        ),
        ("src/a.rs", "#[path = \"/usr/src/x.rs\"]\nmod x;"),
        (
            "src/a.rs",
            "#[cfg_attr(unix, path = \"../../x.rs\")]\nmod x;",
        ),
        (
            "src/a.rs",
            "#[derive(RustEmbed)]\n#[folder = \"/etc\"]\nstruct A;",
        ),
        ("src/a.rs", "global_asm!(\".incbin \\\"/etc/passwd\\\"\");"),
        ("src/a.c", "#include \"/etc/passwd\"\n"),
        ("src/a.c", "#  include </etc/passwd>\n"),
        ("src/a.c", "#inc\\\nlude \"../../x.h\"\n"),
        ("src/a.c", "%:include \"/etc/passwd\"\n"),
        ("src/a.c", "#define FILE \"/etc/passwd\"\n#include FILE\n"),
        ("src/deep/er/a.c", "#include <../../etc/passwd>\n"),
        (
            "src/a.c",
            "const char k[] = {\n#embed \"/etc/passwd\"\n};\n",
        ),
        ("src/a.c", "asm(\".incbin \\\"../../key\\\"\");\n"),
        ("src/a.js", "const a = require(\"../../../key.json\");"),
        ("src/a.ts", "import key from '../../key.json';"),
        ("src/a.ts", "export * from \"/etc/x\";"),
        ("src/a.mjs", "const a = await import(`file:///etc/x.mjs`);"),
        (
            "src/a.go",
            "package a\n\n/*\n#include \"/etc/passwd\"\n*/\nimport \"C\"\n",
        ),
        (
            "src/a.go",
            "package a\n\n//go:embed ../../key\nvar k string\n",
        ),
        ("src/a.py", "exec(open(\"/etc/x.py\").read())"),
        ("src/a.py", "runpy.run_path('/etc/x.py')"),
        (
            "src/a.py",
            "s = spec_from_file_location(\"x\", \"../../x.py\")",
        ),
        ("src/a.s", "k:\n  .incbin \"/etc/passwd\"\n"),
        ("src/a.zig", "const k = @embedFile(\"../../key\");"),
        ("src/a.rb", "require_relative '../../key'"),
        (
            "src/a.php",
            "<?php include('/etc/passwd'); require __DIR__ . '/../../key.php';",
        ),
        ("src/a.jl", "include(\"/etc/x.jl\")"),
        ("docs/a.rst", ".. literalinclude:: ../../key\n"),
        ("docs/a.rst", ".. include:: /etc/passwd\n"),
        ("docs/a.md", "{{#include ../../key.md:2:3}}\n"),
        ("docs/a.adoc", "include::/etc/passwd[]\n"),
        ("web/a.css", "@import \"../../key.css\";\n"),
        (
            "src/a.rs",
            "global_asm!(\".incbin \\\"\\x2fetc/passwd\\\"\");",
        ),
        (
            "src/a.rs",
            "macro_rules! file { () => { \"x\" } }\n#[derive(Embed)]\n#[folder = \"~/x\"]\nstruct A;",
        ),
        ("src/a.rs", "#[template(path = \"/etc/passwd\")]\nstruct A;"),
        ("src/a.rs", "const M: M = embed_migrations!(\"../../x\");"),
        (
            "src/a.c",
            "#define P \"/etc/passwd\"\n#define Q P\n#include Q\n",
        ),
        ("src/lib.rs", "mod m { #![path = \"../..\"] pub mod n; }"),
        (
            "src/lib.rs",
            "mod m { #![cfg_attr(all(), path = \"/etc\")] pub mod n; }",
        ),
        ("src/a.scss", "@include meta.load-css(\"/etc/x\");\n"),
        ("src/a.less", "@import (inline) \"/etc/x\";\n"),
        ("src/a.less", "a { b: data-uri(\"../../../x\"); }\n"),
        ("src/a.css", "@reference \"/etc/x\";\n"),
        ("src/a.proto", "import public \"../../x.proto\";\n"),
        ("docs/a.md", "--8<-- \"/etc/passwd\"\n"),
        ("src/a.c", "#include /* here */ \"/etc/passwd\"\n"),
        ("src/a.c", "#inc\\ \nlude \"/etc/passwd\"\n"),
        ("src/a.c", "#inc??/\nlude \"/etc/passwd\"\n"),
        ("src/a.c", "asm(\".inc\" \"bin \\\"/etc/passwd\\\"\");\n"),
        ("src/a.c", "INCBIN(Key, \"/etc/passwd\");\n"),
        ("src/a.cppm", "import </etc/passwd>;\n"),
        ("src/a.mm", "#import \"/etc/passwd\"\n"),
        ("src/a.m", "#include \"/etc/passwd\"\n"),
        ("src/a.cu", "#include \"/etc/passwd\"\n"),
        ("src/a.c++", "#include \"/etc/passwd\"\n"),
        ("src/a.inl", "#include \"/etc/passwd\"\n"),
        ("src/a.tpp", "#include \"/etc/passwd\"\n"),
        ("src/a.ixx", "#include \"/etc/passwd\"\n"),
        ("src/a.whatever", "#include \"/etc/passwd\"\n"),
        ("src/a.in", "const K: &str = include_str!(\"/etc/passwd\");"),
        ("src/a.S", "#include \"/etc/passwd\"\n"),
        ("src/a.S", "\t.incbin\t\"../../etc/passwd\"\n"),
        ("src/a.asm", "key: incbin '/etc/passwd'\n"),
        ("src/a.s", ".macro m a b\n.endm\nm inc, \"/etc/passwd\"\n"),
        ("src/a.js", "const a = require('raw-loader!/etc/passwd');"),
        ("src/a.js", "import a from '!!raw-loader!../../key?x';"),
        ("src/a.js", "import a from 'raw:/etc/passwd';"),
        ("src/a.js", "const a = require('/e' + 'tc/passwd');"),
        ("src/a.js", "const a = require.context('/etc', true);"),
        (
            "src/a.js",
            "const a = import.meta.glob(['./x/*', '/etc/*']);",
        ),
        (
            "src/a.js",
            "const a = new URL('../../key', import.meta.url);",
        ),
        ("src/a.js", "const a = require(x ? './a' : '/etc/passwd');"),
        ("src/a.js", "const a = require('x/../../../key');"),
        (
            "src/a.js",
            "const a = require(path.join(__dirname, '..', '..', 'key'));",
        ),
        (
            "src/a.vue",
            "<script>\nimport a from '../../key'\n</script>",
        ),
        (
            "src/a.go",
            "package a\n\n// #cgo CFLAGS: -I/etc\nimport \"C\"\n",
        ),
        ("setup.py", "exec(Path('/etc/x').read_text())"),
        (
            "docs/conf.py",
            "exec(compile(Path('..', '..', 'x').read_text(), 'x', 'exec'))",
        ),
        ("setup.py", "sys.path.insert(0, '/home/me/lib')"),
        ("setup.py", "sys.path += ['..']"),
        ("setup.py", "sys.path.insert(0, '/e' + 'tc/x')"),
        ("setup.py", "sys.path.append(os.path.expanduser('~/lib'))"),
        ("src/a.d", "enum k = import(\"/etc/passwd\");"),
        ("src/a.nim", "const k = staticRead(\"/etc/passwd\")"),
        ("src/lib.rs", "#[r#path = \"/tmp/x.rs\"] mod x;"),
        (
            "src/lib.rs",
            "#[path = \"..\"] mod a { #[path = \"../x.rs\"] pub mod x; }",
        ),
        (
            "src/lib.rs",
            "fn f() { { #[path = \"../../x.rs\"] mod x; } }",
        ),
        (
            "src/lib.rs",
            "#[path = \"../..\"] mod a { #[path = \"b\"] mod b { #[path = \"../x.rs\"] mod x; } }",
        ),
        (
            "src/a.c",
            "#define S(x) #x\n__asm__(S(.incbin \"/etc/hostname\"));\n",
        ),
        (
            "src/a.c",
            "#define A asm\n#define S(x) #x\nA(S(.incbin \"/etc/hostname\"));\n",
        ),
        ("src/a.cppm", "export import \"../../x.h\";\n"),
        ("src/a.dts", "x = /incbin/(\"/etc/passwd\");\n"),
        ("src/a.pyx", "include \"/etc/passwd\"\n"),
        ("src/a.py", "import sys\nsys.path[:0] = [\"/tmp/x\"]\n"),
        (
            "src/a.py",
            "import builtins\nbuiltins.exec(open(\"/etc/x.py\").read())\n",
        ),
        ("src/a.py", "__path__ = [\"/tmp/x\"]\n"),
        ("src/a.py", "__path__.append(\"/tmp/x\")\n"),
        ("src/a.js", "jest.requireActual(\"/etc/x.json\");"),
        (
            "src/a.ts",
            "const a = await vi.importActual<typeof import(\"./a\")>(\"/etc/x\");",
        ),
        ("src/a.ts", "/// <reference path=\"../../x.d.ts\" />\n"),
        ("Cargo.toml", "[lib]\npath = \"../../x.rs\"\n"),
        ("Cargo.toml", "[package]\nbuild = \"/tmp/build.rs\"\n"),
        (
            "Cargo.toml",
            "[dependencies]\nx = { exclude = \"a\", \"p\\u0061th\" = \"/home/x\" }\n",
        ),
        (
            "Cargo.toml",
            "[dependencies]\nx = { a = '\\', path = '/home/x' }\n",
        ),
        ("go.mod", "module a\n\nreplace b => ../../b\n"),
        ("package.json", "{\"dependencies\": {\"x\": \"file:../x\"}}"),
        ("src/a.pyx", "cdef extern from \"/etc/passwd\":\n    pass\n"),
        (
            "src/a.rs",
            "const K: &str = include_str!(concat!('/', \"etc/passwd\"));",
        ),
        (
            "src/a.rs",
            "#!/bin/sh /*\nconst K: &str = include_str!(\"/etc/passwd\"); // */\n",
        ),
        (
            "src/a.rs",
            "m!(cr\"\\\" , \"); const K: &str = include_str!(\"/etc/passwd\"); //\"",
        ),
        (
            "src/a.rs",
            "m!('r\"\\\" , \"); const K: &str = include_str!(\"/etc/passwd\"); //\"",
        ),
        (
            "src/a.rs",
            "#![debugger_visualizer(gdb_script_file = \"/data/x.py\")]",
        ),
        (
            "src/a.rs",
            "#[cfg_attr(all(), debugger_visualizer(natvis_file = \"/mnt/x.natvis\"))] mod v {}",
        ),
        (
            "src/a.rs",
            "#[link(name = \"/tmp/x.a\", kind = \"static\", modifiers = \"+verbatim\")] extern \"C\" {}",
        ),
        (
            "src/a.rs",
            "#[link(name = \"../../x.a\", modifiers = \"+verbatim\")] extern \"C\" {}",
        ),
        (
            "src/lib.rs",
            "mod a { #![path = \"..\"] #[path = \"../../x.rs\"] pub mod x; }",
        ),
        (
            "src/a.rs",
            "global_asm!(\"/* c */ .incbin \\\"/etc/passwd\\\"\");",
        ),
        (
            "src/a.rs",
            "global_asm!(\"; .incbin \\\"/etc/passwd\\\"\");",
        ),
        (
            "src/a.rs",
            "global_asm!(\"/*\\n*/ .incbin \\\"/etc/passwd\\\"\");",
        ),
        (
            "src/a.rs",
            "global_asm!(stringify!(.incbin \"/etc/passwd\"));",
        ),
        (
            "src/a.rs",
            "macro_rules! q { () => { \"bin \\\"/etc/passwd\\\"\" } }\nglobal_asm!(concat!(\"nop; .inc\", q!()));",
        ),
        ("src/a.c", "// what??/\n#include \"/etc/passwd\"\n"),
        (
            "src/a.c",
            "const char *a = \"a??/\";\n#include \"/etc/passwd\"\n//\"\n",
        ),
        (
            "src/a.c",
            "#define R\nconst char *a = R\"(\";\n#include \"/etc/passwd\"\nconst char *b = \")\";\n",
        ),
        (
            "src/a.c",
            "int a = X(1'/*');\n#include \"/etc/passwd\"\n/* */\n",
        ),
        (
            "src/a.c",
            "int a = 4 //**/ 2; asm(\".incbin \\\"/etc/passwd\\\"\");\n",
        ),
        ("src/a.c", "// a\r#include \"/etc/passwd\"\n"),
        ("src/a.c", "// a\\ \n#include \"/etc/passwd\"\n"),
        ("src/a.c", "\u{b}#include \"/etc/passwd\"\n"),
        ("src/a.c", "a\\\nsm(\".incbin \\\"/etc/passwd\\\"\");\n"),
        ("src/a.c", "asm(\"/* c */ .incbin \\\"/etc/passwd\\\"\");\n"),
        ("src/a.c", "asm(\"; .incbin \\\"/etc/passwd\\\"\");\n"),
        ("src/a.S", "/* c */ .incbin \"/etc/passwd\"\n"),
        ("src/a.S", "; .incbin \"/etc/passwd\"\n"),
        (
            "src/a.jsx",
            "const a = <p>don't {require(\"/etc/x.json\")} won't</p>;\n",
        ),
        (
            "src/a.rs",
            "macro_rules! load_file { ($a:expr) => { load!($a) } }\nload_file!(\"/etc/x\");",
        ),
        (
            "src/a.jsx",
            "const a = <p>`</p>;\nrequire(\"/etc/x.json\");\nconst b = <p>`</p>;\n",
        ),
        (
            "src/a.jsx",
            "const a = <p>/*</p>;\nrequire(\"/etc/x.json\");\nconst b = <p>*/</p>;\n",
        ),
        ("src/a.js", "<!-- /*\nrequire(\"/etc/x.json\");\n// */\n"),
        (
            "src/a.js",
            "let a;\n--> /*\nrequire(\"/etc/x.json\");\n// */\n",
        ),
        (
            "src/a.js",
            "#!/usr/bin/env node /*\nrequire(\"/etc/x.json\");\n// */\n",
        ),
        ("src/a.js", "require((0, \"/etc/x.json\"));"),
        (
            "src/a.go",
            "package a\n\n// #include \"/etc/passwd\"\nimport `C`\n",
        ),
        (
            "src/a.go",
            "package a\n\n// #include \"/etc/passwd\"\nimport \"\\x43\"\n",
        ),
        (
            "src/a.go",
            "package a\n\n//go:embed\t../../key\nvar k string\n",
        ),
        ("a.go", "package a\n\n// #cgo CFLAGS: -I..\nimport \"C\"\n"),
        ("a.go", "package a\n\n// #cgo CFLAGS: -I ..\nimport \"C\"\n"),
        (
            "a.go",
            "package a\n\n// #cgo LDFLAGS: -L../lib -lx\nimport \"C\"\n",
        ),
        (
            "a.go",
            "package a\n\n// #cgo LDFLAGS: -Wl,--format=binary,/etc/passwd\nimport \"C\"\n",
        ),
        ("src/a.py", "import sys\nsys.\\\npath.append(\"/tmp/x\")\n"),
        ("src/a.py", "import pkg\npkg.__path__.append(\"/tmp/x\")\n"),
        (
            "src/a.py",
            "import zipimport\nzipimport.zipimporter(\"/tmp/x.zip\").load_module(\"x\")\n",
        ),
        (
            "src/a.py",
            "import imp\nimp.load_dynamic(\"x\", \"/tmp/x.so\")\n",
        ),
        ("package.json", "{\"dependencies\": {\"x\": \"../../x\"}}"),
        ("package.json", "{\"devDependencies\": {\"x\": \"/tmp/x\"}}"),
        ("package.json", "{\"overrides\": {\"a\": {\"x\": \"~/x\"}}}"),
        (
            "package.json",
            "{\"optionalDependencies\": {\"x\": \"git+file:///tmp/x\"}}",
        ),
        ("package.json", "{\"main\": \"../x.js\"}"),
        (
            "package.json",
            "{\"pnpm\": {\"overrides\": {\"x\": \"link:../x\"}}}",
        ),
        (
            "src/a.cc",
            "asm(R\"x(.inc)x\" R\"(bin \"/etc/passwd\")\");\n",
        ),
        (
            "package.json",
            "{\"exports\": {\".\": {\"import\": \"./a/../../x.js\"}}}",
        ),
        (
            "src/a.py",
            "__spec__.submodule_search_locations.append(\"/tmp/x\")\n",
        ),
    ] {
        let found = outside(path, source);
        if found.is_empty() || found.contains(&Reach::Unknown) {
            wrong.push((path, source, found));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
