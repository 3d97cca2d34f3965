//! Tests of what a text has read from outside: each language's constructs, and their honest neighbours.

use super::*;

mod forms;
mod outside;
mod renamed;

fn outside(path: &str, source: &str) -> Vec<Reach> {
    let found = included_in(&[(path, source)]).remove(0);
    found.into_iter().map(|found| found.reach).collect()
}

/// What is found in each of these files.
fn included_in(files: &[(&str, &str)]) -> Vec<Vec<Included>> {
    let paths: Vec<RepoPath> = files
        .iter()
        .map(|(path, _)| path.parse().unwrap())
        .collect();
    let sources = files.iter().map(|(_, source)| source.as_bytes());
    let files: Vec<(&RepoPath, &[u8])> = paths.iter().zip(sources).collect();
    let found = included(&files).into_iter().map(|(_, found)| found);
    found.collect()
}

/// What is found in the last of these files.
fn included_in_last(files: &[(&str, &str)]) -> Vec<Included> {
    included_in(files).pop().unwrap()
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
        (
            "src/a.rs",
            "#!/usr/bin/env run-cargo-script\nconst K: &str = include_str!(\"a.txt\");",
        ),
        (
            "src/a.rs",
            "#[link(name = \"z\", kind = \"static\")] extern \"C\" {}\n#![debugger_visualizer(natvis_file = \"x.natvis\")]",
        ),
        (
            "src/lib.rs",
            "mod a { #![path = \"b\"] #[path = \"x.rs\"] pub mod x; }",
        ),
        (
            "src/a.rs",
            "use core::arch::{asm, global_asm};\nglobal_asm!(stringify!(nop));\ncfg_if! { if #[cfg(a)] { use core::arch::global_asm; } }",
        ),
        (
            "src/a.rs",
            "assert_eq!(a.include, [include]);\nm!(a.include(b), A { include: 1 });\nlet include = include(1);",
        ),
        (
            "src/a.rs",
            "macro_rules! nop { () => { \"nop\" } }\nasm!(concat!(nop!(), \"; mov {0}, 1\"), out(reg) a);",
        ),
        (
            "src/a.rs",
            "include!(concat!(env!(\"OUT_DIR\"), \"/\", env!(\"CARGO_PKG_NAME\"), \".rs\"));",
        ),
        (
            "src/a.rs",
            "macro_rules! assert_file { ($a:expr) => { assert_file!($a, $a) }; ($a:expr, $b:expr) => { assert!(is($a), \"{}\", $b) } }\nassert_file!(\"/etc/x\");",
        ),
        (
            "src/lib.rs",
            "macro_rules! m { ($($(#[$i:ident $($a:tt)*])* $f:ident;)*) => { n! { $($(#[$i $($a)*])* $f;)* } } }",
        ),
        (
            "src/a.rs",
            "cfg_if! { if #[cfg(unix)] { #[path = \"unix.rs\"] mod imp; } else { mod imp; } }",
        ),
        (
            "src/a.c",
            "const char *a = R\"(\n#include <a.h>\n)\";\nint b = 1'000; // what??\n#include \"b.inc\"\n",
        ),
        (
            "src/a.cpp",
            "//**********\n// it's \"a\" comment\n//**********\n#include \"a.hpp\"\nasm(\"nop # halts\");\n",
        ),
        (
            "src/a.c",
            "#define TEXT \"nop; \" \"hlt // halts\"\nasm(TEXT \"nop\");\n",
        ),
        (
            "src/a.S",
            "/* .incbin is not used */\n.string \"/etc/x\"\n/* c */ nop\n.incbin \"data/a.bin\"\n",
        ),
        ("src/a.js", "const a = 'file://' + b;\nawait import(a);"),
        ("src/a.js", "a = [\"read it from `.\", b / c / d]; e = `"),
        (
            "src/a.jsx",
            "const a = <p>don't {`/etc/x`} won't</p>;\nconst b = require(\"./b\");\n",
        ),
        (
            "src/a.js",
            "// require(\"/etc/x\")\nconst s = 'require(\"/etc/x\")'; const r = /a/.test(\"import('/etc/x')\");\n",
        ),
        (
            "src/a.js",
            "const p = \"./lib/\";\nrequire(p + \"x.json\"); require((\"./a\", \"./b\"));\n",
        ),
        (
            "src/a.go",
            "package a\n\n// #include \"/etc/passwd\"\nimport \"fmt\"\n",
        ),
        (
            "src/a.go",
            "package a\n\n// #cgo CFLAGS: -I../inc -I.. -DX=a/b -Iinc\n// #cgo LDFLAGS: -Wl,-rpath,/usr/local/lib -Wl,-z,now -L.\nimport \"C\"\n",
        ),
        (
            "src/a.py",
            "import pkg, pkgutil\nfor m in pkgutil.iter_modules(pkg.__path__):\n    print(m, pkg.__path__[0])\nF = \"/etc/x\"\n",
        ),
        (
            "src/a.py",
            "import sys\na = 1 + \\\n    2\nsys.\\\nargv.append(\"/tmp/x\")\n",
        ),
        (
            "packages/a/package.json",
            "{\"main\": \"./a.js\", \"exports\": {\".\": \"./a.js\"}, \"dependencies\": {\"b\": \"../b\", \"c\": \"^1.0.0\", \"d\": \"workspace:*\", \"e\": \"git+https://x/../y\"}, \"files\": [\"/dist\"], \"homepage\": \"/x\"}",
        ),
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
        ("src/a.rs", "const K: &str = include_str!(\"\\x61.txt\");"),
        ("src/a.rs", "m!(include_str);"),
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
            "dist/a.js",
            "(function (require, module, exports) { const a = require(\"../../type\"); })",
        ),
        ("src/a.d", "enum k = import(P);"),
        (
            "src/a.rs",
            "const K: &str = include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"-b/x\"));",
        ),
        (
            "src/a.rs",
            "const K: &str = include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), env!(\"CARGO_PKG_NAME\"), \"/x\"));",
        ),
        (
            "src/a.rs",
            "const K: &str = include_str!(concat!(env!(\"CARGO_PKG_DESCRIPTION\"), \"/x\"));",
        ),
        ("src/a.rs", "const K: &str = m!(include_str (\"a.txt\"));"),
        ("src/a.rs", "m!(include (\"a.rs\"));"),
        ("src/a.rs", "m!(asm (\"nop\"));"),
        ("src/a.rs", "m!(a.include (\"/etc/passwd\"));"),
        (
            "src/a.rs",
            "macro_rules! m { ($g:tt $b:tt) => { include_str $g $b } }",
        ),
        (
            "src/a.rs",
            "macro_rules! info { ($a:ident $b:tt) => { $a ! $b } }\ninfo!(include (\"a.rs\"));",
        ),
        (
            "src/a.rs",
            "paste! { m! { [<inc lude _str>] (\"/etc/passwd\") } }",
        ),
        (
            "src/a.rs",
            "m!(debugger_visualizer(gdb_script_file = \"/tmp/x.py\"));",
        ),
        ("src/a.rs", "m!(path = \"/tmp/x.rs\");"),
        (
            "src/lib.rs",
            "macro_rules! m { ($i:ident, $k:ident $f:ident) => { #[$i = \"x.rs\"] $k $f; } }",
        ),
        (
            "src/a.rs",
            "#[debugger_visualizer(natvis_file = $x)] mod a {}",
        ),
        ("src/a.rs", "global_asm!(\".incbin \\\"../a.bin\\\"\");"),
        (
            "src/a.rs",
            "macro_rules! q { () => { \"\\n.inc\" } }\nmacro_rules! r { () => { \"bin \\\"x\\\"\" } }\nglobal_asm!(concat!(\"nop\", q!(), r!()));",
        ),
        ("src/a.rs", "include!(\"a.txt\");"),
        ("src/a.rs", "#[path = \"a.md\"] mod a;"),
        ("src/a.c", "#include \"a.json\"\n"),
        ("src/a.c", "asm(\".incbin \\\"../a.bin\\\"\");\n"),
        (
            "src/a.c",
            "#define A \"\\n.inc\"\n#define B \"bin \\\"x\\\"\"\nasm(\"nop\" A B);\n",
        ),
        (
            "src/a.c",
            "#define S_(x) #x\n#define S(x) S_(x)\n#define P(a,b) S(.a##b \"/etc/passwd\")\nasm(\"nop\" P(;inc,bin));\n",
        ),
        ("src/a.c", "#define I inc ## bin\n"),
        (
            "src/a.S",
            "#define string .inc##bin\nstring \"/etc/passwd\"\n",
        ),
        ("src/a.S", ".incbin \"../a.bin\"\n"),
        ("src/a.S", "/* c */ .incbin FILE\n"),
        (
            "src/a.go",
            "package a\n\n// #include \"a.txt\"\nimport \"C\"\n",
        ),
        (
            "crates/x/src/a.rs",
            "const K: &str = include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/../../README.md\"));",
        ),
    ] {
        let found = outside(path, source);
        if found.is_empty() || found.contains(&Reach::Outside) {
            wrong.push((path, source, found));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn address_beside_module_is_judged_in_every_form() {
    for arguments in [
        "'../../x', import.meta.url",
        "`../../${x}`, import.meta.url",
        "'../../' + x, import.meta.url",
        "('../../x'), import.meta.url",
        "a ? './b' : '../../x', import.meta.url",
        "'../../x', (import.meta.url)",
        "'../../x', `${import.meta.url}`",
        "'../../x', import.meta['url']",
        "'../../x', here",
    ] {
        let source = format!("const here = import.meta.url;\nconst a = new URL({arguments});\n");
        assert_eq!(outside("src/a.js", &source), [Reach::Outside], "{source}");
    }
    for arguments in [
        "'../x', import.meta.url",
        "`./${x}.js`, import.meta.url",
        "'./' + x, import.meta.url",
        "x, import.meta.url",
        "a ? './b' : '../c', here",
        "'../../x', 'https://example.org/a/b/c'",
        "'../../x', location.href",
        "'/a?b=/etc/passwd', base",
    ] {
        let source = format!("const here = import.meta.url;\nconst a = new URL({arguments});\n");
        assert_eq!(outside("src/a.js", &source), [], "{source}");
    }
}

#[test]
fn macro_forwarding_a_path_reads_its_argument() {
    for macros in [
        "macro_rules! text { ($path:expr) => { include_str!($path) } }",
        "macro_rules! text { ($path:expr) => { call!(include_str, $path) } }\nmacro_rules! call { ($m:ident, $p:expr) => { $m!($p) } }",
    ] {
        let last = |source: &str| included_in_last(&[("src/m.rs", macros), ("src/a.rs", source)]);
        let found = last("const K: &str = text!(\"/etc/passwd\");");
        let is_known =
            macros.contains("call!") || found.iter().any(|found| found.reach == Reach::Outside);
        assert!(is_known, "{macros}: {found:?}");
        let source = format!("{macros}\nconst K: &str = text!(\"/etc/passwd\");");
        assert!(!outside("src/a.rs", &source).is_empty(), "{macros}");
        assert_eq!(last("const K: &str = text!(\"../a.txt\");"), [], "{macros}");
    }
}

#[test]
fn macro_with_module_attributes_is_judged_at_call() {
    for macros in [
        "macro_rules! at { ($m:meta) => { #[$m] mod x; } }",
        "macro_rules! at { ($h:tt $($t:tt)*) => { $h [$($t)*] mod x; } }",
        "macro_rules! at { ($($t:tt)*) => { $($t)* mod x; } }",
    ] {
        let last =
            |source: &str| included_in_last(&[("src/m.rs", macros), ("src/lib.rs", source)]).len();
        assert!(last("at!(path = \"/etc/x.rs\");") > 0, "{macros}");
        assert_eq!(last("at!(path = \"x.rs\");"), 0, "{macros}");
    }
}

#[test]
fn path_of_a_macro_counts_from_its_caller() {
    let text = "macro_rules! m { () => { include_str!(\"../../../x\") } }";
    let reach = |macros: &str, path: &str, source: &str| {
        let found = included_in(&[("src/a/b/m.rs", macros), (path, source)]);
        found.into_iter().flatten().map(|found| found.reach).next()
    };
    assert_eq!(reach(text, "src/a/b/n.rs", "m!();"), None);
    assert_eq!(reach(text, "src/lib.rs", "m!();"), Some(Reach::Outside));
    // By way of another macro, and by another name.
    let nested = format!("{text}\nmacro_rules! n {{ () => {{ m!() }} }}");
    assert_eq!(reach(&nested, "src/lib.rs", "n!();"), Some(Reach::Outside));
    let renamed = "use crate::a::b::m as k;\nk!();";
    assert_eq!(reach(text, "src/lib.rs", renamed), Some(Reach::Outside));
    let module = "macro_rules! m { () => { #[path = \"../../../x.rs\"] mod x; } }";
    assert_eq!(reach(module, "src/lib.rs", "m!();"), Some(Reach::Outside));
    assert_eq!(reach(module, "src/a/b/n.rs", "m!();"), None);
    // One that is exported may be called from anywhere in the package.
    let exported = format!("#[macro_export]\n{text}");
    assert_eq!(reach(&exported, "src/x.rs", ""), Some(Reach::Unknown));
    let near = exported.replace("../../../x", "../x");
    assert_eq!(reach(&near, "src/x.rs", ""), None);
}

#[test]
fn header_macro_is_reported_with_its_value() {
    let found = |source: &str| included_in_last(&[("src/a.c", source)]);
    // The line that includes stays as it is; what is included does not.
    let (one, two) = (
        "#define P F(a)\n#include P\n",
        "#define P F(b)\n#include P\n",
    );
    assert_ne!(found(one), found(two));
    assert_eq!(found(one), found(one));
    // A name that another touched file defines.
    let found = included_in_last(&[
        ("src/a.h", "#define P \"/etc/passwd\"\n"),
        ("src/a.c", "#include P\n"),
    ]);
    assert_eq!(found[0].reach, Reach::Outside);
}

#[test]
fn included_file_has_the_includers_language() {
    let (rust, c, assembly, script) = (
        "const K: &str = include_str!(concat!(\"/etc\", \"/passwd\"));",
        "#define P \"/etc/passwd\"\n#include P\n",
        ".incbin FILE\n",
        "require(\"/etc/x.json\");\n",
    );
    for (includer, source, path, text) in [
        ("src/a.rs", "include!(\"g.in\");", "src/g.in", rust),
        ("src/a.rs", "#[path = \"g\"] mod g;", "src/g", rust),
        ("src/a.c", "#include \"../inc/t.x\"\n", "inc/t.x", c),
        ("src/a.c", "#include <t.x>\n", "inc/t.x", c),
        ("src/a.c", "#include \"t.txt\"\n", "src/t.txt", c),
        (
            "src/a.go",
            "package a\n\n// #include \"t.x\"\nimport \"C\"\n",
            "src/t.x",
            c,
        ),
        ("src/a.s", ".include \"src/t.x\"\n", "src/t.x", assembly),
        ("src/a.js", "require('./t.txt');", "src/t.txt", script),
    ] {
        assert_ne!(
            included_in_last(&[(includer, source), (path, text)]),
            [],
            "{source}"
        );
        // Nothing includes it.
        assert_eq!(
            included_in_last(&[(includer, "\n"), (path, text)]),
            [],
            "{source}"
        );
        let neighbour = "dir/u.x";
        assert_eq!(
            included_in_last(&[(includer, source), (neighbour, text)]),
            [],
            "{source}"
        );
    }
    let chain = included_in_last(&[
        ("src/a.c", "#include \"b.x\"\n"),
        ("src/b.x", "#include \"c.y\"\n"),
        ("src/c.y", c),
    ]);
    assert_eq!(chain[0].reach, Reach::Outside);
    // Its names count for those who include it.
    let named = included_in(&[
        ("src/a.c", "#include \"b.x\"\n#include P\n"),
        ("src/b.x", "#define P \"/etc/passwd\"\n"),
    ]);
    assert_eq!(named[0][0].reach, Reach::Outside);
}
