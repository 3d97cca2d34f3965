//! Tests of the sources that a gate compiles and runs.

use std::collections::BTreeMap;

use super::super::{Mode, gate_files};
use super::*;

const CHECKS: &str = "#include <assert.h>\n#include \"add.h\"\nint main(void) { assert(add(2, 3) == 5); return 0; }\n";
const ADD: &str = "#include \"add.h\"\nint add(int a, int b) { return a - b; }\n";
const ADD_ASSERTING: &str = "#include <assert.h>\n#include \"add.h\"\nint add(int *p, int b) { assert(p != 0); return *p - b; }\n";
const HEADER: &str = "int add(int a, int b);\n";

/// Returns the gate files other than makefiles and scripts.
fn found(command: &[&str], files: &[(&str, &str)]) -> Vec<String> {
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    let gate = serde_json::json!({"id": "t", "command": command, "timeout_ms": 1000, "source": "the test"});
    let gates = [serde_json::from_value(gate).unwrap()];
    let read = |path: &RepoPath| {
        files
            .get(path.as_str())
            .map(|text| text.as_bytes().to_vec())
    };
    let tracked: Vec<(&str, Mode)> = files.keys().map(|path| (*path, Mode::Plain)).collect();
    let found = gate_files(&gates, &tracked, read)
        .into_iter()
        .map(|path| path.to_string());
    found
        .filter(|path| !is_makefile(path) && !path.ends_with(".sh"))
        .collect()
}

fn of_makefile(makefile: &str, files: &[(&str, &str)]) -> Vec<String> {
    found(
        &["make", "test"],
        &[&[("Makefile", makefile)], files].concat(),
    )
}

#[test]
fn source_with_entry_point_counts() {
    for makefile in [
        "test: ; cc checks.c add.c -o checks && ./checks\n",
        "test:\n\t$(CC) $(CFLAGS) checks.c add.c -o checks\n\t@./checks --all\n",
        "SRC = checks.c add.c\nBIN = ./checks\ntest: $(BIN)\n\t$(BIN)\n$(BIN): $(SRC)\n\t$(CC) -o $@ $^\n",
        "OBJ := $(patsubst %.c,build/%.o,$(wildcard *.c))\ntest: build/t\n\tbuild/t\nbuild/t: $(OBJ)\n\t$(CC) $^ -o $@\n\
         build/%.o: %.c\n\t$(CC) -c $< -o $@\n",
        "test: checks\n\t./$<\nchecks: checks.o add.o\n",
        "TESTS = checks\ntest: $(TESTS)\n\tfor t in $(TESTS); do ./$$t || exit 1; done\nchecks: checks.c add.c\n\tgcc-12 $^ -o $@\n",
        "check test: run\nrun: all\n\tLD_LIBRARY_PATH=. valgrind -q ./checks > /dev/null || exit 1\nall: checks\nchecks: add.o\n",
        "test:\n\tmkdir -p out && ccache clang checks.c add.c -oout/checks\n\tcd out && timeout 10 ./checks 2>&1\n",
        "include rules.inc\nBIN := checks\n",
        "test:\n\tsh build.sh\n",
        "test:\n\t$(MAKE) -f other.mk deep\n",
    ] {
        let files = [
            ("checks.c", CHECKS),
            ("add.c", ADD),
            ("add.h", HEADER),
            (
                "rules.inc",
                "test: $(BIN)\n\t./$(BIN)\n$(BIN): checks.c add.c\n\t$(CC) $^ -o $@\n",
            ),
            (
                "build.sh",
                "set -e\ncc -Wall \\\n  checks.c add.c -o checks\nif ./checks; then echo ok; else exit 1; fi\n",
            ),
            ("other.mk", "deep:\n\tcc checks.c add.c && ./a.out\n"),
        ];
        assert_eq!(of_makefile(makefile, &files), ["checks.c"], "{makefile}");
    }
}

#[test]
fn compiler_of_one_platform_hides_no_product() {
    let makefile = "CC?=gcc\nifeq (wine,$(PLATFORM))\nCC = winegcc\nendif\n\
        test: checks\n\t$(HELPER) ./checks$(EXT)\nchecks: add_g.o checks.o\n\t$(CC) add_g.o checks.o -o $@\n\
        add_g.o: add.c\n\t$(CC) -I. -DSTRICT=1 -Wall -c add.c -o $@\nchecks.o: checks.c\n\t$(CC) -c checks.c -o $@\n\
        add.o: add.c\n\t$(CC) -c add.c\ntool: add.o contrib/tool.c\n\t$(CC) $^ -o $@\n";
    let tool = "#include \"add.h\"\nint main(void) { return add(1, 2); }\n";
    let files = [
        ("checks.c", CHECKS),
        ("add.c", ADD_ASSERTING),
        ("add.h", HEADER),
        ("contrib/tool.c", tool),
    ];
    assert_eq!(of_makefile(makefile, &files), ["checks.c"]);
}

#[test]
fn gate_command_counts_like_a_recipe() {
    let files = [("checks.c", CHECKS), ("add.c", ADD), ("add.h", HEADER)];
    let command = "cc checks.c add.c -o checks && ./checks";
    assert_eq!(found(&["sh", "-c", command], &files), ["checks.c"]);
    assert_eq!(found(&["cc", "-fsyntax-only", "add.c"], &files), [""; 0]);
}

#[test]
fn other_compiled_languages_count_alike() {
    let go = "package main\nimport \"os\"\nfunc main() { if add(2, 3) != 5 { os.Exit(1) } }\n";
    let go_add = "package main\nfunc add(a, b int) int { return a - b }\n";
    let java = "class Checks { public static void main(String[] a) { if (Add.add(2, 3) != 5) System.exit(1); } }";
    let java_add = "class Add { static int add(int a, int b) { return a - b; } }";
    let files = [
        (
            "checks.rs",
            "mod add;\nfn main() { assert_eq!(add::add(2, 3), 5); }\n",
        ),
        (
            "add.rs",
            "pub fn add(a: i32, b: i32) -> i32 { assert!(a > 0); a - b }\n",
        ),
        ("checks.go", go),
        ("add.go", go_add),
        ("cmd/checks/main.go", go),
        ("cmd/checks/add.go", go_add),
        ("Checks.java", java),
        ("Add.java", java_add),
        (
            "checks.cpp",
            "#include <gtest/gtest.h>\nTEST(Add, Works) { EXPECT_EQ(add(2, 3), 5); }\n",
        ),
        ("add.cpp", "int add(int a, int b) { return a - b; }\n"),
    ];
    for (recipe, expected) in [
        ("rustc checks.rs -o checks && ./checks", vec!["checks.rs"]),
        ("go run checks.go add.go", vec!["checks.go"]),
        (
            "go build -o checks checks.go add.go && ./checks",
            vec!["checks.go"],
        ),
        (
            "go build -o t ./cmd/checks && ./t",
            vec!["cmd/checks/main.go"],
        ),
        (
            "javac -d out Checks.java Add.java && java -ea -cp out Checks",
            vec!["Checks.java"],
        ),
        ("javac *.java && java Checks", vec!["Checks.java"]),
        (
            "g++ checks.cpp add.cpp -lgtest -lgtest_main -o checks && ./checks",
            vec!["checks.cpp"],
        ),
        ("go vet ./... && javac Add.java", vec![]),
    ] {
        assert_eq!(
            of_makefile(&format!("test:\n\t{recipe}\n"), &files),
            expected,
            "{recipe}"
        );
    }
}

#[test]
fn helpers_that_assert_count_and_sources_do_not() {
    let main = "int add_works(void);\nint main(void) { return add_works(); }\n";
    let cases = "#include \"check.h\"\n#include \"add.h\"\nint add_works(void) { CHECK(add(2, 3) == 5); return 0; }\n";
    let check = "#define CHECK(x) do { if (!(x)) return 1; } while (0)\n";
    let files = |add| {
        [
            ("run.c", main),
            ("cases.c", cases),
            ("check.h", check),
            ("add.c", add),
            ("add.h", HEADER),
        ]
    };
    let makefile = "test:\n\tcc run.c cases.c add.c -o run && ./run\n";
    assert_eq!(
        of_makefile(makefile, &files(ADD)),
        ["cases.c", "check.h", "run.c"]
    );
    // Without anything else to change, an assertion in a product is too weak a sign.
    assert_eq!(
        of_makefile(makefile, &files(ADD_ASSERTING)),
        ["cases.c", "check.h", "run.c"]
    );
    let with_product = format!("all: libadd.a\nlibadd.a: add.o\n\tar rcs $@ $^\n{makefile}");
    let clearly = "#include \"check.h\"\nint add(int a, int b) { CHECK(a > 0); return a - b; }\n";
    assert_eq!(
        of_makefile(&with_product, &files(clearly)),
        ["cases.c", "run.c"]
    );
    // A header that the product includes is the product's.
    assert!(!of_makefile(&with_product, &files(clearly)).contains(&"check.h".to_owned()));
}

#[test]
fn asserting_product_source_stays_editable() {
    let files = |add| [("checks.c", CHECKS), ("add.c", add), ("add.h", HEADER)];
    let clearly = "#include \"add.h\"\nint add(int a, int b) { check_range(a); return a - b; }\n";
    for add in [ADD, ADD_ASSERTING, clearly] {
        for makefile in [
            "test: ; cc checks.c add.c -o checks && ./checks\n",
            "all: app\napp: main.o add.o\ntest: checks\n\t./checks\nchecks: checks.o add.o\n",
            "all: lib.so checks\nlib.so: add.c\n\tcc -shared -o $@ $<\ntest: checks\n\t./checks\nchecks: checks.c add.c\n\tcc -o $@ $^\n",
        ] {
            assert_eq!(
                of_makefile(makefile, &files(add)),
                ["checks.c"],
                "{makefile}"
            );
        }
    }
}

#[test]
fn program_that_a_script_tests_is_ordinary_source() {
    let main =
        "#include <assert.h>\nint main(int n, char **v) { assert(n); puts(v[1]); return 0; }\n";
    let files = |script| {
        [
            ("main.c", main),
            ("add.c", ADD),
            ("test.sh", script),
            ("expected", "5\n"),
        ]
    };
    let all = "all: app\napp: main.o add.o\n\t$(CC) -o $@ $^\n";
    for (recipe, script) in [
        ("./test.sh", "[ \"$(./app 2 3)\" = 5 ] || exit 1\n"),
        ("./test.sh ./app", "\"$1\" 2 3 | grep -q 5\n"),
        (
            "sh test.sh",
            "./app 2 3 || exit 1\n./app 2 3 > out\ncmp out expected\n",
        ),
        ("./app 2 3 | diff - expected", ""),
        ("./app 2 3 > out.txt\n\tdiff out.txt expected", ""),
        ("test `./app 2 3` = 5", ""),
        ("diff <(./app 2 3) wanted", ""),
    ] {
        let makefile = format!("{all}test: app\n\t{recipe}\n");
        assert_eq!(of_makefile(&makefile, &files(script)), [""; 0], "{recipe}");
    }
    // Another goal that runs it is no gate.
    let makefile = format!("{all}run: app\n\t./app\ntest: app\n\t./test.sh\n");
    assert_eq!(of_makefile(&makefile, &files("true\n")), [""; 0]);
    // The gate goes by its exit code.
    let makefile = format!("{all}test: app\n\t./app --self-test\n");
    assert_eq!(of_makefile(&makefile, &files("")), ["main.c"]);
}

#[test]
fn source_behind_variables_of_a_library_stays_open() {
    let makefile = "\
LIB_OBJ = lib.o
TEST = lib_test
TEST_SRC = lib.c test.c
R_CFLAGS = -fPIC $(CFLAGS)
CC = gcc -std=c89
SHARED = lib$(VERSION).so
.PHONY: all tests clean
all: shared static tests
shared: $(SHARED)
static: lib.a
tests: $(TEST)
test: tests
\t./$(TEST)
.c.o:
\t$(CC) -c $(R_CFLAGS) $<
$(TEST): $(TEST_SRC) lib.h
\t$(CC) $(R_CFLAGS) $(TEST_SRC)  -o $@ $(LDLIBS) -I.
lib.a: $(LIB_OBJ)
\t$(AR) rcs $@ $<
$(SHARED): $(LIB_OBJ)
\t$(CC) -shared -o $@ $< $(LDFLAGS)
$(LIB_OBJ): lib.c lib.h
";
    let lib = "#include \"lib.h\"\n#include <assert.h>\nint size(void) { assert(1); return 0; }\n";
    let files = [
        ("lib.c", lib),
        ("lib.h", "int size(void);\n"),
        (
            "test.c",
            "#include \"lib.h\"\nint main(void) { return size(); }\n",
        ),
    ];
    assert_eq!(of_makefile(makefile, &files), ["test.c"]);
}

#[test]
fn rules_without_end_are_left() {
    let makefile = "test: a\n\t./a\na: b\nb: a\n%: %.x\n%.x: %\n\t$(MAKE) test\n";
    assert_eq!(of_makefile(makefile, &[("a.c", ADD)]), [""; 0]);
    let long: String = (0..3000).map(|n| format!("t{n}: t{}\n", n + 1)).collect();
    assert_eq!(
        of_makefile(&format!("test: t0\n\t./x\n{long}"), &[("x.c", ADD)]),
        [""; 0]
    );
}

#[test]
fn commands_are_parsed() {
    let parsed_commands = |text: &str| {
        let commands = shell::commands(text).into_iter();
        let one = |command: shell::ShellCommand| {
            let mark = if command.output == shell::OutputUse::Piped {
                "|"
            } else {
                ""
            };
            let file = command
                .file
                .map(|file| format!(">{file}"))
                .unwrap_or_default();
            format!("{}{mark}{file}", command.words.join(" "))
        };
        commands.map(one).collect::<Vec<_>>()
    };
    assert_eq!(
        parsed_commands("a 'b c' && d \"e; f\" || g # h\ni"),
        ["a b c", "d e; f", "g", "i"]
    );
    assert_eq!(
        parsed_commands("a | b; c 2>&1 > d 2> e < f & g >> h &> k"),
        ["a|", "b", "c>d", "g>k"]
    );
    assert_eq!(
        parsed_commands("test \"$(a b)\" = `c d` x$(e)"),
        ["a b|", "c d|", "e|", "test = x"]
    );
    assert_eq!(
        parsed_commands("(cd a; ./b) 'open"),
        ["cd a", "./b", "open"]
    );
    for unusual_text in ["$(", "`", "\"$(", ")", "a > ", "<(", "\\"] {
        let _ = parsed_commands(&unusual_text.repeat(5000));
    }
}

#[test]
fn program_counts_with_any_compiler() {
    let files = [
        ("checks.c", CHECKS),
        ("add.c", ADD),
        ("add.h", HEADER),
        ("build.py", "import os\n"),
    ];
    for makefile in [
        "test: ; cat checks.c | cc -x c - add.c -o checks && ./checks\n",
        "test: checks\n\t$(foreach t,$^,./$(t) &&) true\nchecks: checks.o add.o\n",
        "test: ; python3 build.py && ./checks\n",
        "test: ; cp checks.c /tmp/x.c && cc /tmp/x.c add.c && ./a.out\n",
    ] {
        assert!(
            of_makefile(makefile, &files).contains(&"checks.c".to_owned()),
            "{makefile}"
        );
        assert!(
            !of_makefile(makefile, &files).contains(&"add.c".to_owned()),
            "{makefile}"
        );
    }
    let cmake = |text| {
        found(
            &["ctest"],
            &[&[("CMakeLists.txt", text)][..], &files].concat(),
        )
    };
    let test = "enable_testing()\nadd_executable(checks checks.c add.c)\nadd_test(NAME checks COMMAND checks)\n";
    assert_eq!(cmake(test), ["checks.c"]);
    // A program may include a library's only source as a whole.
    let including = CHECKS.replacen("#include", "#include \"add.c\"\n#include", 1);
    let amalgamated = |list: &str| {
        let files = [
            ("CMakeLists.txt", list),
            ("checks.c", &including),
            ("add.c", ADD),
            ("add.h", HEADER),
        ];
        found(&["ctest"], &files)
    };
    let alone =
        "enable_testing()\nadd_executable(checks checks.c)\nadd_test(NAME checks COMMAND checks)\n";
    assert_eq!(amalgamated(alone), ["add.c", "checks.c"]);
    assert_eq!(
        amalgamated(&format!("add_library(add STATIC add.h add.c)\n{alone}")),
        ["checks.c"]
    );
    let looped =
        "foreach(t checks)\nadd_executable(${t} ${t}.c)\nadd_test(${t} ${t})\nendforeach()\n";
    assert_eq!(cmake(looped), ["checks.c"]);
    let product = "add_executable(app checks.c add.c)\nadd_test(NAME all COMMAND sh run.sh)\n";
    assert_eq!(cmake(product), [""; 0]);
    assert_eq!(
        cmake(&format!(
            "{test}install(TARGETS lib checks RUNTIME DESTINATION bin)\n"
        )),
        [""; 0]
    );
}

/// A product's main file may assert: its makefile also builds it on its own, or it is in a project that no
/// gate compiles.
#[test]
fn product_that_asserts_is_ordinary_source() {
    let files = [("main.c", CHECKS), ("add.c", ADD), ("add.h", HEADER)];
    let makefile = "all: app\napp: main.o add.o\ntest: app\n\tpython3 -m pytest\n";
    assert_eq!(of_makefile(makefile, &files), [""; 0]);
    assert_eq!(found(&["cargo", "test"], &files), [""; 0]);
    // Nothing shows what else is built here, so an entry point alone is no sign.
    let silent = CHECKS.replace("assert(add(2, 3) == 5);", "return add(2, 3);");
    assert_eq!(
        found(&["./run-tests"], &[("main.c", silent.as_str())]),
        [""; 0]
    );
}

#[test]
fn tables_that_test_programs_alone_include_count() {
    let checks = CHECKS.replacen(
        "#include",
        "#include \"cases.def\"\n#include \"lib.h\"\n#include",
        1,
    );
    let files = [
        ("checks.c", checks.as_str()),
        (
            "add.c",
            "#include \"shared.def\"\nint add(int a, int b) { return a - b; }\n",
        ),
        ("cases.def", "#include \"shared.def\"\n{2, 3, 5},\n"),
        ("shared.def", "{1, 1, 2},\n"),
        ("lib.h", "static int twice(int a) { return 2 * a; }\n"),
    ];
    let makefile = "test: ; cc checks.c add.c -o checks && ./checks\n";
    assert_eq!(of_makefile(makefile, &files), ["cases.def", "checks.c"]);
}
