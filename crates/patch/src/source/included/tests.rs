//! Tests of what a text has read from outside: each language's constructs, and their honest neighbours.

use super::*;

fn outside(path: &str, source: &str) -> Vec<Reach> {
    let path = path.parse().unwrap();
    let names = Names::of([(&path, source.as_bytes())]);
    let found = included(&path, source.as_bytes(), &names);
    found.into_iter().map(|found| found.reach).collect()
}

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
        (
            "src/a.js",
            "const p = '/etc/passwd';\nconst a = require(p);",
        ),
        ("src/a.js", "const r = require;\nr('/etc/passwd');"),
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
        (
            "src/a.py",
            "from sys import path\npath.append(\"/tmp/x\")\n",
        ),
        ("src/a.py", "import sys as s\ns.path.append(\"/tmp/x\")\n"),
        (
            "src/a.py",
            "import sys\np = sys.path\np.append(\"/tmp/x\")\n",
        ),
        ("src/a.py", "import sys\nsys.path[:0] = [\"/tmp/x\"]\n"),
        (
            "src/a.py",
            "from sys import path as p\np[:0] = [\"/tmp/x\"]\n",
        ),
        ("src/a.py", "__import__(\"sys\").path.append(\"/tmp/x\")\n"),
        (
            "src/a.py",
            "from importlib.util import spec_from_file_location as s\ns(\"x\", \"/tmp/x.py\")\n",
        ),
        (
            "src/a.py",
            "from runpy import run_path as rp\nrp(\"/etc/x.py\")\n",
        ),
        ("src/a.py", "f = exec\nf(open(\"/etc/x.py\").read())\n"),
        (
            "src/a.py",
            "import builtins\nbuiltins.exec(open(\"/etc/x.py\").read())\n",
        ),
        ("src/a.py", "__path__ = [\"/tmp/x\"]\n"),
        ("src/a.py", "__path__.append(\"/tmp/x\")\n"),
        ("src/a.js", "require?.(\"/etc/x.json\");"),
        ("src/a.js", "require`/etc/x.json`;"),
        ("src/a.js", "module[\"require\"](\"/etc/x.json\");"),
        (
            "src/a.js",
            "const r = module.require.bind(module); r(\"/etc/x.json\");",
        ),
        (
            "src/a.js",
            "import { createRequire } from \"node:module\"; createRequire(import.meta.url)(\"/etc/x.json\");",
        ),
        (
            "src/a.js",
            "import { createRequire as c } from \"node:module\"; const r = c(import.meta.url); r(\"/etc/x.json\");",
        ),
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
    ] {
        let found = outside(path, source);
        if found.is_empty() || found.contains(&Reach::Unknown) {
            wrong.push((path, source, found));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn included_file_of_the_repository_is_fine() {
    let mut wrong = Vec::new();
    for (path, source) in [
        (
            "src/a.rs",
            "const K: &str = include_str!(\"../README.md\");",
        ),
        (
            "src/a.rs",
            "// include_str!(\"/etc/passwd\")\nconst K: &str = \"include_str!(\\\"/etc/passwd\\\")\";",
        ),
        (
            "src/a.rs",
            "include!(concat!(env!(\"OUT_DIR\"), \"/bindings.rs\"));",
        ),
        (
            "crates/x/src/a.rs",
            "const K: &str = include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/../../README.md\"));",
        ),
        ("src/a.rs", "include_bytes_aligned!(16, \"../data/a.bin\");"),
        (
            "src/a.rs",
            "#[utoipa::path(get, path = \"/users\")]\nfn a() {}\n#[serde(rename = \"/a\")]\nstruct B;",
        ),
        (
            "src/a.rs",
            "mod a {\n    #[path = \"../../x.rs\"]\n    mod b;\n}",
        ),
        (
            "src/a.rs",
            "let path = \"/etc/passwd\"; let folder = \"/etc\"; include(\"/etc/x\");",
        ),
        (
            "src/a.c",
            "#include <stdio.h>\n#include \"../include/a.h\"\n#include <sys/types.h>\n",
        ),
        (
            "src/a.c",
            "#define HEADER <ft2build.h>\n#include HEADER\n/* #include \"/etc/passwd\" */\n",
        ),
        (
            "src/b/a.c",
            "#include \"../../etc/config.h\"\nconst char *p = \"/etc/passwd\";\n",
        ),
        (
            "src/a.js",
            "import a from \"../b.js\"; const d = Array.from(\"/a\");",
        ),
        (
            "src/a.js",
            "const a = require(\"./\" + name); const p = require('path'); fetch(\"/etc\");",
        ),
        (
            "src/a.go",
            "package a\n\nimport \"C\"\n\n// #include <stdlib.h>\n//go:embed data/*.json\nvar k string\n",
        ),
        (
            "src/a.py",
            "exec(compile(text, \"/x\", \"exec\"))\nrunpy.run_path(\"data/x.py\")\nopen(\"/etc/passwd\")\n",
        ),
        ("src/a.rb", "require 'json'\nrequire_relative '../lib/a'\n"),
        (
            "src/a.php",
            "<?php require __DIR__ . '/../vendor/autoload.php';",
        ),
        (
            "docs/a.rst",
            ".. include:: ../README.rst\n\n.. literalinclude:: /examples/a.py\n",
        ),
        ("docs/a.md", "See `#include </etc/passwd>`.\n"),
        (
            "web/a.css",
            "@import \"/styles/base.css\";\n@import url(\"//fonts.example.org/a.css\");\n",
        ),
        (
            "a.unknown",
            "include_str!(\"passwd\")\n#include <stdio.h>\n",
        ),
        ("a.txt", "include_str!(\"/etc/passwd\")"),
        (
            "src/a.rs",
            "use core::{include_str, include_bytes};\nstruct A { include: B }\nf(include, exclude);",
        ),
        (
            "src/a.rs",
            "macro_rules! fixture { ($name:literal) => { load($name) } }\nfixture!(\"/etc\");",
        ),
        (
            "src/a.rs",
            "#[derive(Template)]\n#[template(path = \"a.html\")]\nstruct A;\n#[folder = \"$CARGO_MANIFEST_DIR/web\"]\nstruct B;",
        ),
        (
            "src/a.rs",
            "macro_rules! m { ($m:ident, $e:expr) => { $m!($e, $e) } }\nmacro_rules! n { ($e:expr) => { m!(assert_eq, $e); } }",
        ),
        ("src/a.jsx", "import logo from '/vite.svg';"),
        (
            "src/a.rs",
            "asm!(\"mov {0}, {1}\", \"add {0}, 5\", out(reg) o, in(reg) i);",
        ),
        (
            "src/a.c",
            "asm volatile(\"mov %0, %1\\n\\tadd $1, %0\" : \"=r\"(a) : \"r\"(b));\n",
        ),
        (
            "src/a.c",
            "int f(void) asm(\"_\" \"f\");\nprintf(\"no .include in \\\"/etc/x\\\"\");\n",
        ),
        (
            "src/a.c",
            "int include = import;\nchar *embed = \"# include\";\n",
        ),
        (
            "src/a.S",
            "# include what is needed\n.section \".note.GNU-stack\", \"\", %progbits\n\\op r0, r1\n.incbin \"a.bin\", 4\n",
        ),
        (
            "src/a.js",
            "const a = require(name); const b = require(`./locale/${name}.js`); import(this.path);",
        ),
        (
            "src/a.js",
            "const a = require(path.join(__dirname, '..', 'package.json')); require(base + '/etc');",
        ),
        (
            "src/a.js",
            "import a from 'node:fs'; import b from './a.svg?raw'; import c from '@/b'; import 'https://x/y';",
        ),
        (
            "src/a.js",
            "define(['require', 'x'], function (require, exports) {}); if (typeof require === 'function') {}",
        ),
        (
            "src/a.go",
            "package a\n\n// #cgo CFLAGS: -I${SRCDIR}/../c -I/usr/include/x -DX=1\n// #cgo LDFLAGS: -L/opt/x/lib -lx\nimport \"C\"\n",
        ),
        (
            "docs/conf.py",
            "sys.path.insert(0, os.path.abspath('..'))\nexec(text.replace('/', '.'))\nre.compile('/x')\n",
        ),
        (
            "docs/conf.py",
            "sys.path.insert(0, os.path.abspath(HERE + '/../'))",
        ),
        (
            "setup.py",
            "exec(open(os.path.join('src', 'x', 'version.py')).read())\nsys.path.append(here)\n",
        ),
        (
            "src/a.zig",
            "const std = @import(\"std\");\nconst k = @embedFile(\"../key\");",
        ),
        (
            "src/lib.rs",
            "#[path = \"a\"] mod a { #[path = \"x.rs\"] pub mod x; mod y; }",
        ),
        (
            "src/lib.rs",
            "mod a { mod b { #[path = \"../../x.rs\"] mod c; } }",
        ),
        (
            "src/lib.rs",
            "macro_rules! m { ($(#[$m:meta])* $vis:vis struct $n:ident;) => { $(#[$m])* $vis struct $n; } }",
        ),
        (
            "src/lib.rs",
            "macro_rules! m { ($vis:vis $n:ident) => { $vis mod $n { pub fn a() {} } } }",
        ),
        (
            "src/lib.rs",
            "macro_rules! m { ($($i:item)*) => { $(#[cfg(feature = \"a\")] $i)* } }",
        ),
        (
            "src/lib.rs",
            "macro_rules! m { ($($(#[$m:meta])* $n:ident),*) => { enum A { $($(#[$m])* $n),* } } }",
        ),
        (
            "a/tests/lib.rs",
            "macro_rules! m { ($n:expr) => { include_bytes!(concat!(\"../../testdata/\", $n, \".toml\")) } }\nm!(\"a\");",
        ),
        (
            "src/a.c",
            "#define LOCK \"lock; \"\nasm volatile(LOCK \"addl %0\" : \"=m\"(a));\nopen(\"/dev/null\");\n",
        ),
        (
            "src/a.c",
            "struct a { int include; }; int f(struct a *b) { return b->include; }\nchar *p = \"/etc/x\";\n",
        ),
        (
            "src/a.py",
            "import sys as s\nprint(s.argv)\nopen(\"/etc/x\")\n",
        ),
        (
            "src/a.py",
            "import sys\nif \"/opt/x\" in sys.path:\n    print(len(sys.path), sys.path[0])\n",
        ),
        (
            "src/a.py",
            "from sys import path\nimport os.path\np = os.path.join(\"/etc\", \"x\")\n",
        ),
        (
            "src/a.py",
            "from runpy import run_path as rp\nrp(\"data/x.py\")\n",
        ),
        (
            "src/a.py",
            "from importlib.util import (module_from_spec, spec_from_file_location)\nF = \"/etc/x\"\ns = spec_from_file_location(a, b)\n",
        ),
        (
            "src/a.py",
            "def f(exec=None, compile=True):\n    return model.eval(\"/tmp/x\")\n",
        ),
        (
            "src/a.js",
            "require.resolve('./x'); jest.requireActual('../a'); jest.mock('../b', () => ({}));",
        ),
        (
            "src/a.js",
            "const { createRequire } = require(\"module\"); const r = createRequire(import.meta.url); r(\"./a.json\");",
        ),
        (
            "src/a.js",
            "if (typeof require === \"function\" && require.main === module) { open(\"/etc/x\"); }",
        ),
        (
            "src/a.ts",
            "/// <reference types=\"node\" />\n/// <reference path=\"../types.d.ts\" />\n",
        ),
        (
            "crates/a/Cargo.toml",
            "[package]\nexclude = [\"/tests\"]\nreadme = \"../../README.md\"\n[dependencies]\nb = { path = \"../b\" }\n[package.metadata.deb]\nassets = [[\"a\", \"/usr/bin/\", \"755\"]]\n",
        ),
        ("go.mod", "module a // see /etc\n\nreplace b => ./b\n"),
        (
            "package.json",
            "{\"name\": \"a\", \"dependencies\": {\"x\": \"file:./x\"}, \"scripts\": {\"a\": \"cat /etc/x\"}}",
        ),
        ("src/a.d", "import std.stdio;\nenum k = import(\"key\");"),
    ] {
        let found = outside(path, source);
        if !found.is_empty() {
            wrong.push((path, source, found));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn path_that_is_not_written_plainly_is_unknown() {
    let mut wrong = Vec::new();
    for (path, source) in [
        (
            "src/a.rs",
            "macro_rules! text { ($path:expr) => { include_str!($path) } }",
        ),
        ("src/a.rs", "include!(env!(\"GENERATED\"));"),
        (
            "src/rs/src/a.rs",
            "const K: &str = include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/../key\"));",
        ),
        (
            "src/a.rs",
            "use std::include_str as text;\nconst K: &str = text!(\"/etc/passwd\");",
        ),
        ("src/a.rs", "const K: &str = include_str!(\"\\x61.txt\");"),
        ("src/a.rs", "m!(include_str);"),
        (
            "src/a.rs",
            "macro_rules! m { ($m:ident, $p:expr) => { $m!($p) } }\nm!(include, \"/etc/passwd\");",
        ),
        (
            "src/a.rs",
            "paste! { const K: &str = [<include _str>]!(\"/etc/passwd\"); }",
        ),
        (
            "src/a.rs",
            "#[derive(Embed)]\n#[folder = \"$HOME/x\"]\nstruct A;",
        ),
        ("src/a.rs", "static D: Dir = include_dir!(\"${HOME}\");"),
        ("src/a.rs", "global_asm!(\".incbin \\\"a\\\\x2f\\\"\");"),
        ("src/a.rs", "global_asm!(concat!(\".inc\", \"bin \", $x));"),
        ("src/a.c", "#include P\n"),
        ("src/a.c", "#include S(/etc/passwd)\n"),
        (
            "src/a.c",
            "#define S(x) #x\n#define P S(/etc/passwd)\n#include P\n",
        ),
        ("src/a.c", "#embed FILE\n"),
        (
            "src/a.c",
            "#pragma include_alias(\"a.h\", \"/etc/passwd\")\n",
        ),
        ("src/a.c", "#define I \".inc\"\nasm(I \"bin \\\"x\\\"\");\n"),
        ("src/a.c", "asm(TEXT);\n"),
        ("src/a.c", "asm(\".incbin \\\"\" FILE \"\\\"\");\n"),
        ("src/a.S", ".macro m x\n.inc\\x \"a\"\n.endm\n"),
        ("src/a.S", "m .incbin, x\n"),
        ("src/a.S", "#define I .incbin\n"),
        ("src/a.S", ".incbin \"a\\x65tc\"\n"),
        ("src/a.S", "#include FILE\n"),
        (
            "src/a.js",
            "const a = require('/xetc/passwd'.replace('x', ''));",
        ),
        ("src/a.js", "import a from './\\x2e./a.js';"),
        ("src/a.js", "import a from './%2e%2e/a.js';"),
        ("src/a.js", "import a from '/mnt/key.json';"),
        (
            "src/a.go",
            "package a\n\n// #cgo CFLAGS: -include x.h\nimport \"C\"\n",
        ),
        (
            "src/a.go",
            "package a\n\n/*\n#include P\n*/\nimport \"C\"\n",
        ),
        ("src/a.zig", "const k = @embedFile(path);"),
        ("src/a.nim", "const k = staticRead(\"a\" & \"b\")"),
        ("src/a.nim", "template r(p): untyped = staticRead p"),
        (
            "src/lib.rs",
            "macro_rules! at { ($m:meta) => { #[$m] mod x; } }",
        ),
        (
            "src/lib.rs",
            "macro_rules! at { ($($a:tt)*) => { #[$($a)*] mod x; } }",
        ),
        (
            "src/lib.rs",
            "macro_rules! at { ($i:ident) => { #[$i = \"x.rs\"] mod x; } }",
        ),
        (
            "src/lib.rs",
            "macro_rules! at { ($m:meta) => { #[cfg_attr(all(), $m)] pub mod x; } }",
        ),
        (
            "src/lib.rs",
            "macro_rules! at { ($h:tt $b:tt) => { $h $b mod x; } }",
        ),
        (
            "src/lib.rs",
            "macro_rules! at { ($m:meta, $i:item) => { #[$m] $i } }",
        ),
        (
            "src/lib.rs",
            "macro_rules! m { ($n:expr) => { include_bytes!(concat!(\"../data/\", $n, \"/../a\")) } }",
        ),
        (
            "a/tests/lib.rs",
            "macro_rules! m { ($n:expr) => { include_bytes!(concat!(\"../../testdata/\", $n)) } }\nm!(\"../../a\");",
        ),
        ("src/a.c", "#define I .incbin\n"),
        (
            "src/a.py",
            "import importlib.util\ngetattr(importlib.util, \"spec_from_file_location\")(\"x\", \"/tmp/x.py\")\n",
        ),
        (
            "src/a.py",
            "import sys\nlist.append(sys.path, \"/tmp/x\")\n",
        ),
        (
            "src/a.py",
            "import functools, runpy\nfunctools.partial(runpy.run_path, \"/tmp/x.py\")()\n",
        ),
        ("src/a.js", "require.call(null, \"/etc/x.json\");"),
        ("src/a.js", "(0, require)(\"/etc/x.json\");"),
        ("src/a.js", "[require][0](\"/etc/x.json\");"),
        (
            "src/a.js",
            "Reflect.apply(require, null, [\"/etc/x.json\"]);",
        ),
        (
            "src/a.js",
            "const { require: q } = module; q(\"/etc/x.json\");",
        ),
        (
            "dist/a.js",
            "(function (require, module, exports) { const a = require(\"../../type\"); })",
        ),
        ("src/a.d", "enum k = import(P);"),
    ] {
        let found = outside(path, source);
        if found.is_empty() || found.contains(&Reach::Outside) {
            wrong.push((path, source, found));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn macro_that_passes_a_path_on_reads_what_it_is_given() {
    let path: RepoPath = "src/a.rs".parse().unwrap();
    for macros in [
        "macro_rules! text { ($path:expr) => { include_str!($path) } }",
        "macro_rules! text { ($path:expr) => { call!(include_str, $path) } }\nmacro_rules! call { ($m:ident, $p:expr) => { $m!($p) } }",
    ] {
        let source = format!("{macros}\nconst K: &str = text!(\"/etc/passwd\");");
        let names = Names::of([(&path, source.as_bytes())]);
        let found = included(&path, b"const K: &str = text!(\"/etc/passwd\");", &names);
        let is_known =
            macros.contains("call!") || found.iter().any(|found| found.reach == Reach::Outside);
        assert!(is_known, "{macros}: {found:?}");
        assert!(
            !included(&path, source.as_bytes(), &names).is_empty(),
            "{macros}"
        );
        assert_eq!(
            included(&path, b"const K: &str = text!(\"../a.txt\");", &names),
            [],
            "{macros}"
        );
    }
}

#[test]
fn macro_with_attributes_of_modules_is_judged_where_it_is_called() {
    let path: RepoPath = "src/lib.rs".parse().unwrap();
    for macros in [
        "macro_rules! at { ($m:meta) => { #[$m] mod x; } }",
        "macro_rules! at { ($h:tt $($t:tt)*) => { $h [$($t)*] mod x; } }",
        "macro_rules! at { ($($t:tt)*) => { $($t)* mod x; } }",
    ] {
        let names = Names::of([(&path, macros.as_bytes())]);
        let of = |source: &str| included(&path, source.as_bytes(), &names).len();
        assert_eq!(of("at!(path = \"/etc/x.rs\");"), 1, "{macros}");
        assert_eq!(of("at!(path = \"x.rs\");"), 0, "{macros}");
    }
}

#[test]
fn path_of_a_macro_counts_from_its_caller() {
    let (deep, top): (RepoPath, RepoPath) = (
        "src/a/b/m.rs".parse().unwrap(),
        "src/lib.rs".parse().unwrap(),
    );
    let text = "macro_rules! m { () => { include_str!(\"../../../x\") } }";
    let names = Names::of([(&deep, text.as_bytes())]);
    assert_eq!(included(&deep, text.as_bytes(), &names), []);
    assert_eq!(included(&deep, b"m!();", &names), []);
    assert_eq!(included(&top, b"m!();", &names)[0].reach, Reach::Outside);
}

#[test]
fn name_of_a_header_is_told_with_its_value() {
    let path: RepoPath = "src/a.c".parse().unwrap();
    let of = |source: &str| {
        included(
            &path,
            source.as_bytes(),
            &Names::of([(&path, source.as_bytes())]),
        )
    };
    // The line that includes stays as it is; what is included does not.
    let (one, two) = (
        "#define P F(a)\n#include P\n",
        "#define P F(b)\n#include P\n",
    );
    assert_ne!(of(one), of(two));
    assert_eq!(of(one), of(one));
    // A name that another touched file defines.
    let (other, header): (RepoPath, &[u8]) =
        ("src/a.h".parse().unwrap(), b"#define P \"/etc/passwd\"\n");
    let names = Names::of([(&other, header)]);
    assert_eq!(
        included(&path, b"#include P\n", &names)[0].reach,
        Reach::Outside
    );
}
