//! Forms in which each language reads a file outside of the repository, with the honest forms beside them.

use super::*;

/// Asserts that each of the first forms is found, and none of the others.
pub(super) fn check(refused: &[(&str, &str)], fine: &[(&str, &str)]) {
    let missed = refused
        .iter()
        .filter(|(path, source)| outside(path, source).is_empty());
    let wrong = fine
        .iter()
        .filter(|(path, source)| !outside(path, source).is_empty());
    let (missed, wrong): (Vec<_>, Vec<_>) = (missed.collect(), wrong.collect());
    assert!(missed.is_empty(), "missed: {missed:#?}");
    assert!(wrong.is_empty(), "honest: {wrong:#?}");
}

#[test]
fn assembly_paths_that_macros_complete_are_found() {
    check(
        &[
            ("src/a.s", ".include/**/\"src/../../x.txt\"\n"),
            (
                "src/a.s",
                ".macro m a b c\n\\a\\b \\c\n.endm\nm .inc, bin, \"src/../../x.txt\"\n",
            ),
            (
                "src/a.s",
                ".macro m a b c\n\\a\\b \\c\n.endm\nm .inc, bin, \"/tmp/my x.txt\"\n",
            ),
            (
                "src/a.s",
                ".macro m a b c\n\\a\\b \\c\n.endm\nm .inc, bin, \"\\\"src/../../x.txt\\\"\"\n",
            ),
            (
                "src/a.s",
                ".macro m a:vararg\n\\a\n.endm\n.macro k b\nm .inc\\b \"src/../../x.txt\"\n.endm\nk bin\n",
            ),
            (
                "src/a.s",
                ".macro k p q\nm .inc, bin, \"\\p\\q\"\n.endm\nk /tmp/, x.txt\n",
            ),
            (
                "src/a.s",
                ".irp x, .inc\nz <\\x\\()bin \\\"src/../../x.txt\\\">\n.endr\n",
            ),
            (
                "src/a.s",
                ".altmacro\nm <.inc>, <bin>, <!\"/tmp/x.txt!\">\n",
            ),
            ("src/a.s", "; m .inc, bin, \"src/../../x.txt\"\n"),
            ("src/a.s", "x: y: m .inc, bin, \"src/../../x.txt\"\n"),
            ("src/a.s", "m .inc, bin, \"\\057tmp/x.txt\"\n"),
            ("src/a.s", "m .inc, bin, \"src/.\\056/../x.txt\"\n"),
            ("src/a.s", "m .inc, bin, \".\"\n"),
            (
                "src/a.s",
                ".ascii \"\\\\\" ; m .inc, bin, \"src/../../x.txt\" ; .ascii \"\\\\\"\n",
            ),
            ("src/a.s", ".byte '\" ; m .inc, bin, \"src/../../x.txt\"\n"),
            (
                "src/a.s",
                ".ascii \"a\n\" ; m .inc, bin, \"src/../../x.txt\" ; .ascii \"\na\"\n",
            ),
            (
                "src/a.s",
                ".macro string a b\n\\a \\b\n.endm\nstring .incbin, \"\\\"/tmp/x.txt\\\"\"\n",
            ),
            ("src/a.s", ".inc\\\nbin \"src/../../x.txt\"\n"),
            ("src/a.S", "\u{feff}.inc\\\nlude \"/tmp/x.s\"\n"),
            (
                "src/a.S",
                "#define J(a,b) a##b\n.J(inc,bin) \"src/../../x.txt\"\n",
            ),
            ("src/a.S", "#define D .\nD incbin \"src/../../x.txt\"\n"),
            (
                "src/a.S",
                "#define string incbin\n.string \"src/../../x.txt\"\n",
            ),
            ("src/a.S", "#define S(x) #x\n.J(inc,bin) S(/tmp/x.txt)\n"),
            (
                "src/a.S",
                "#define S(x) #x\n.J(inc,bin) S(src/../../x.txt)\n",
            ),
            ("src/a.asm", "%include \"../../x.asm\"\n"),
            ("src/a.asm", "%define P '/tmp/x'\nincbin P\n"),
            ("src/a.inc", ".macro m a b\n\\a \"\\b\"\n.endm\n"),
            ("src/a.ld", "INPUT(a.o, \"/tmp/x.o\")\n"),
            ("src/a.ld", "GROUP ( AS_NEEDED ( ../../x.o ) )\n"),
        ],
        &[
            (
                "src/a.s",
                ".macro m op, a, b\n\\op \\a, \\b\n.endm\nm add, r0, r1\n",
            ),
            (
                "src/a.s",
                ".macro say text\nmov r0, 1\n.ascii \"\\text\"\n.endm\nsay \"hello /tmp\"\n",
            ),
            (
                "src/a.s",
                ".macro data name, path\n\\name: .incbin \"data/a.bin\"\n.endm\n",
            ),
            (
                "src/a.s",
                "print \"Hello\\n\"\nlabel: .asciz \"/bin/sh\", \"../x\", \"it's; /x\"\n",
            ),
            (
                "src/a.s",
                ".section .rodata.str, \"aMS\", @progbits, 1 # \"x\"\n.file 1 \"/usr/src/a.c\"\n",
            ),
            (
                "src/a.s",
                "cmpb $'/', %al\ncmpb $'\"', %al ; .ascii \"/x\"\nmov $'\\'', %al\n",
            ),
            (
                "src/a.s",
                "ALTERNATIVE \"jmp 1f\", \"\", X86_FEATURE\nALTERNATIVE \"call \\func\", \"nop\"\n",
            ),
            (
                "src/a.S",
                "#define STR(x) #x\n#include \"a.h\"\n.ascii STR(a/b) // see ../x and (/x)\nmov (a)/(b), %al\n",
            ),
            (
                "src/a.asm",
                "; see \"/etc/x\"\n%define FORMAT \"%s: %d\"\nsection .data\npath: db '/etc/x', 0\n",
            ),
            ("src/a.inc", "<?php $a = '/usr/bin'; $b = \"$a/x\";\n"),
            ("src/a.inc", "A = \"/usr/bin\"\nB += \"${A}/x\"\n"),
            (
                "src/a.ld",
                "SEARCH_DIR(\"/usr/lib\")\nINPUT(a.o b.o)\nGROUP(-lc -lgcc)\n",
            ),
        ],
    );
}

#[test]
fn c_constructs_with_outside_paths_are_found() {
    check(
        &[
            ("src/a.c", "\u{feff}#include \"../../x.h\"\n"),
            ("src/a.cc", "\u{feff}#include \"../../x.h\"\nint a;\n"),
            ("src/a.c", "#\u{a0}include\u{2003}\"../../x.h\"\n"),
            ("src/a.c", "#if __has_include(\"../../x.h\")\n#endif\n"),
            ("src/a.c", "#if __has_include(</tmp/x.h>)\n#endif\n"),
            (
                "src/a.c",
                "#define E(x) _Pragma(#x)\nE(GCC dependency \"../../x.h\")\n",
            ),
            ("src/a.c", "#pragma GCC dependency \"../../x.h\"\n"),
            ("src/a.c", "_Pragma(\"GCC dependency \\\"../../x.h\\\"\")\n"),
            ("src/a.c", "#pragma comment(lib, \"/tmp/x.a\")\n"),
            (
                "src/a.c",
                "#pragma comment(linker, \"/DEFAULTLIB:../../x.lib\")\n",
            ),
            ("src/a.cpp", "#using \"../../x.dll\"\n"),
            ("src/a.i", "%include \"../../x.i\"\n"),
            (
                "src/a.c",
                "void f(void){asm(\"{.inc|x}bin \\\"src/../../x.txt\\\"\"::);}\n",
            ),
            (
                "src/a.c",
                "void f(void){asm(\"{.inc|x}bin \\\"/tmp/my x.txt\\\"\"::);}\n",
            ),
            (
                "src/a.c",
                "asm(\".macro m a:vararg\\n\\\\a\\n.endm\\n.macro k b\\nm .inc\\\\b \\\"src/../../x.txt\\\"\\n.endm\\nk bin\");\n",
            ),
            (
                "src/a.c",
                "int x __attribute__((section(\".data\\n.incbin \\\"src/../../x.txt\\\"\\n#\")));\n",
            ),
            (
                "src/a.c",
                "#define B \"bin\"\nint x __attribute__((section(\".data\\n.inc\" B \" \\\"/tmp/x.txt\\\"\\n#\")));\n",
            ),
            (
                "src/a.c",
                "int x __attribute__((section(\".data\\n.inc\" B \" \\\"/tmp/x.txt\\\"\\n#\")));\n",
            ),
            (
                "src/a.c",
                "int x __attribute__((section(\".data\\n\" S(.in) \"cbin \\\"/tmp/x.txt\\\"\\n#\")));\n",
            ),
            (
                "src/a.c",
                "#define A \".data\\n.inc\"\n#define B \"bin \\\"src/../../x.txt\\\"\"\nint x SECTION(A B);\n",
            ),
            (
                "src/a.c",
                "#define P(a,b) a##b\n#define B \"bin\"\nP(as,m)(\".data\\n.inc\" B \" \\\"/tmp/x.txt\\\"\");\n",
            ),
            (
                "src/a.c",
                "#define D .J(inc,bin)\nasm(S(D \"/tmp/x.txt\"));\n",
            ),
            (
                "src/a.c",
                "f(\".in\" E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E E \"cbin \\\"/tmp/x.txt\\\"\");\n",
            ),
            (
                "src/a.pyx",
                "cdef extern from *:\n    \"\"\"\n    #include \"../../x.h\"\n    \"\"\"\n",
            ),
            ("src/a.pyx", "# distutils: sources = ../../x.c\n"),
        ],
        &[
            (
                "src/a.c",
                "\u{feff}#include \"a.h\"\n#if defined(__has_include) && __has_include(\"../b.h\")\n#endif\n#define HAS(x) __has_include(x)\n",
            ),
            (
                "src/a.c",
                "#pragma GCC diagnostic ignored \"-Wall\"\n#pragma message(\"/tmp/x\")\n_Pragma(\"once\")\n#pragma comment(lib, \"ws2_32\")\n",
            ),
            (
                "src/a.c",
                "#pragma comment(linker, \"/EXPORT:a=b\")\n#pragma comment(linker, \"\\\"/manifestdependency:type='win32'\\\"\")\n",
            ),
            (
                "src/a.c",
                "int x __attribute__((section(\".text.\" NAME))); printf(\"%\" PRIu64 \"\\n\" \"\\\"/tmp/x\\\"\", a);\n",
            ),
            (
                "src/a.c",
                "puts(\"\\n\" INDENT \"\\\"\" KEY \"\\\"\"); puts(PREFIX \"/etc/x.conf\"); puts(\".incbin \\\"a.bin\\\"\");\n",
            ),
            (
                "src/a.c",
                "asm volatile(\"{lock|lock} addl %0, %1\\n\\tmovl $'/', %%eax\" : \"=r\"(a) : \"r\"(b));\n",
            ),
            (
                "src/a.c",
                "asm(\".pushsection .rodata,\\\"a\\\"\\n.asciz \\\"/etc/x\\\"\\n.popsection\");\n",
            ),
            (
                "src/a.c",
                "struct s a = { .name = \"/etc/x\" }; f(a.b, \"/etc/x\"); int using = dependency;\n",
            ),
            (
                "src/a.c",
                "f(\"a\" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" N \" \" \"\\n\");\n",
            ),
            (
                "src/a.pyx",
                "# distutils: include_dirs = inc\ncdef extern from \"a.h\":\n    \"\"\"Not /etc/x.\"\"\"\n    int a\n",
            ),
        ],
    );
}

#[test]
fn go_preambles_are_read_as_cgo_does() {
    check(
        &[
            (
                "src/a.go",
                "package a\n\n// /* */ #include \"../../x.h\"\nimport \"C\"\n",
            ),
            (
                "src/a.go",
                "package a // /*\n\n// #include \"../../x.h\"\nimport \"C\"\n",
            ),
            (
                "src/a.go",
                "package a\n\n/* int a;\n*/ /*\n#include \"../../x.h\"\n*/\nimport \"C\"\n",
            ),
            (
                "src/a.go",
                "package a\n\n/*#inc*//*lude \"../../x.h\"*/\n//\nimport \"C\"\n",
            ),
            (
                "src/a.go",
                "package a\n\n/*\n#in\rclude \"../../x.h\"\n*/\nimport \"C\"\n",
            ),
            (
                "src/a.go",
                "package a\n\n// const char *z = R\"x(\nimport \"C\"\n\n// )x\";\n// #include \"../../x.h\"\nimport \"C\"\n",
            ),
            (
                "src/a.go",
                "package a\n\nimport (\n\t// #include \"../../x.h\"\n\t\"C\"\n)\n",
            ),
            (
                "src/a.go",
                "package a\n\n/*#cgo CFLAGS: *//*-include /tmp/x.h*/\nimport \"C\"\n",
            ),
            (
                "src/a.go",
                "package a\n\n// int x __attribute__((section(\".rodata\\n.inc\" \"bin \\\"/tmp/x.txt\\\"\\n#\")));\nimport \"C\"\n",
            ),
            (
                "src/a.go",
                "package a\n\n// #define B \"bin\"\n// int x __attribute__((section(\".rodata\\n.inc\" B \" \\\"/tmp/x.txt\\\"\\n#\")));\nimport \"C\"\n",
            ),
            (
                "src/a.go",
                "\u{feff}package a\n\nimport _ \"embed\"\n\n  //go:embed ../../x.txt\nvar x string\n",
            ),
            ("src/a_amd64.s", "\u{feff}#include \"../../x.h\"\n"),
        ],
        &[
            (
                "src/a.go",
                "package a\n\n// Copies \"/etc/x\", see ../x.\n\n// #include \"a.h\"\nimport \"C\"\n",
            ),
            (
                "src/a.go",
                "package a\n\nvar s = `/*\n#include \"/etc/x\"\n`\n\nvar r = '\"' // \"\n\n/*\n#include <a.h>\n*/\nimport \"C\"\n",
            ),
            (
                "src/a.go",
                "package a\n\n// #include \"/etc/x\"\nimport \"fmt\"\n\n//go:embedded /etc/x\n//go:embed data/a.txt\nvar x string\n",
            ),
        ],
    );
}

#[test]
fn rust_paths_without_a_known_directory_are_found() {
    check(
        &[
            (
                "lib/a.rs",
                "const K: &str = include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/../x.txt\"));",
            ),
            (
                "cmd/tool/main.rs",
                "const K: &str = include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/../../x.txt\"));",
            ),
            (
                "x/src/a.rs",
                "const K: &str = include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/../x.txt\"));",
            ),
            (
                "x/a.rs",
                "#[derive(Embed)]\n#[folder = \"../x\"]\nstruct A;",
            ),
            ("src/a.rs", "\u{feff}include!(\"../../x.rs\");"),
            (
                "src/a.rs",
                "const K: &str = \u{b}include_str\u{b}!\u{b}(\"../../x.txt\");",
            ),
            (
                "src/a.rs",
                "const K: &str = \u{2028}include_str\u{200e}!(\"../../x.txt\");",
            ),
            (
                "src/a.rs",
                "global_asm!(\".include/**/\\\"src/../../x.txt\\\"\");",
            ),
            (
                "src/a.rs",
                "global_asm!(\".macro m a b c\", \"\\\\a\\\\b \\\\c\", \".endm\", \"m .inc, bin, \\\"src/../../x.txt\\\"\");",
            ),
            (
                "src/a.rs",
                "global_asm!(\".macro m a b c\", \"\\\\a\\\\b \\\\c\", \".endm\", \"m .inc, bin, \\\"/tmp/my x.txt\\\"\");",
            ),
            ("src/a.rs", "global_asm!(include_str!(\"a.txt\"));"),
            (
                "src/a.rs",
                "#[link_section = \".data\\n.incbin \\\"src/../../x.txt\\\"\"]\nstatic A: u8 = 1;",
            ),
        ],
        &[
            (
                "lib/a.rs",
                "const K: &str = include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/x.txt\"));",
            ),
            (
                "crates/x/src/a.rs",
                "const K: &str = include_str!(\"../../../README.md\");",
            ),
            (
                "crates/x/src/a.rs",
                "#[derive(Embed)]\n#[folder = \"../web\"]\nstruct A;",
            ),
            (
                "src/a.rs",
                "#[derive(Embed)]\n#[folder = \"web/\"]\nstruct A;",
            ),
            (
                "x/build.rs",
                "#[derive(Embed)]\n#[folder = \"../web\"]\nstruct A;",
            ),
            (
                "src/a.rs",
                "\u{feff}const K: &str = include_str!(\"a.txt\");",
            ),
            (
                "src/a.rs",
                "global_asm!(include_str!(\"a.s\"));\nglobal_asm!(concat!(include_str!(\"a.S\"), include_str!(\"b.asm\")));",
            ),
            (
                "src/a.rs",
                "global_asm!(\".macro m op\", \"\\\\op r0\", \".endm\", \"m nop\", \".asciz \\\"/etc/x\\\"\");",
            ),
        ],
    );
}

#[test]
fn script_comments_and_mocks_are_found() {
    check(
        &[
            ("src/a.ts", "/** @jsxImportSource ../../x */\n"),
            ("src/a.ts", "/// <amd-dependency path=\"../../x\" />\n"),
            ("src/a.js", "/** @jest-environment /tmp/x.js */\n"),
            ("src/a.js", "jest.createMockFromModule(\"/tmp/x.js\");"),
            ("src/a.js", "\u{feff}require\u{a0}(\"/tmp/x.js\");"),
            ("src/a.js", "//\u{2028}require(\"/tmp/\" + \"x.js\");"),
            ("src/a.css", "@import url(../../x.css);\n"),
            ("src/a.css", "@config \"../../x.js\";\n"),
        ],
        &[
            (
                "src/a.ts",
                "/** @jsxImportSource preact */\n/** @jest-environment jsdom */\n",
            ),
            (
                "src/a.js",
                "const r = createRequire(import.meta.url); r(\"./a.json\");",
            ),
            (
                "src/a.js",
                "requires(\"/etc/x\"); a.require = b; jest.createMockFromModule(\"./a\");",
            ),
            (
                "src/a.css",
                "@import url(\"a.css\");\n@config \"./tailwind.js\";\n",
            ),
        ],
    );
}

#[test]
fn python_plain_loads_are_found() {
    check(
        &[
            ("src/a.py", "\u{feff}exec(open(\"/tmp/x.py\").read())\n"),
            (
                "src/a.py",
                "eval(compile(open(\"/tmp/x.py\").read(), \"x\", \"exec\"))\n",
            ),
            (
                "src/a.py",
                "import sys\nsys.path = [\"/tmp/x\"] + sys.path\n",
            ),
            (
                "src/a.py",
                "spec_from_file_location(\"x\", \"a.py\", submodule_search_locations=[\"/tmp/x\"])\n",
            ),
        ],
        &[
            (
                "src/a.py",
                "import sys\nsys.path.remove(\"/tmp/x\")\nassert sys.path == [\"/tmp/x\"]\nprint(sys.path, \"/tmp/x\")\n",
            ),
            (
                "src/a.py",
                "self.exec(\"/tmp/x\")\nspec = spec_from_file_location\n",
            ),
        ],
    );
}

/// The boundary of the check: what Python and scripts compute when they run is left to the sandbox of the gates.
#[test]
fn computed_loads_are_left_to_the_sandbox() {
    check(
        &[],
        &[
            (
                "src/a.js",
                "const p = '/etc/passwd';\nconst a = require(p);",
            ),
            (
                "src/a.py",
                "from sys import path\npath.append(\"/tmp/x\")\n",
            ),
            ("src/a.py", "import sys as s\ns.path.append(\"/tmp/x\")\n"),
            (
                "src/a.py",
                "import sys\np = sys.path\np.append(\"/tmp/x\")\n",
            ),
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
            ("src/a.js", "require`/etc/x.json`;"),
            ("src/a.js", "const p = \"/etc/\";\nrequire(p + \"x.json\");"),
            (
                "src/a.js",
                "const p = \"/etc/\";\nconst r = createRequire;\n[r].map((f) => f(p)(\"./x\"));",
            ),
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
            (
                "src/a.py",
                "from importlib.machinery import PathFinder\nPathFinder.find_spec(\"x\", [\"/tmp/x\"]).loader.load_module()\n",
            ),
            (
                "src/a.ts",
                "class L { r = require; go() { return this.r(\"/tmp/x.js\"); } }",
            ),
            (
                "src/a.py",
                "import sys\na = b = sys.path\na.append(\"/tmp/x\")\n",
            ),
            (
                "src/a.py",
                "e: object = exec\ne(open(\"/tmp/x.py\").read())\n",
            ),
            (
                "src/a.py",
                "with open(\"/tmp/x.py\") as f:\n    exec(f.read())\n",
            ),
            (
                "src/a.py",
                "import imp\nimp.load_module(\"x\", f, \"/tmp/x.py\", d)\n",
            ),
        ],
    );
}
