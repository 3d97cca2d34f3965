//! Tests of the reading of makefiles.

use super::*;

/// The shape of a real library: a program with the tests, and libraries from the same source.
const LIBRARY: &str = "\
OBJ = lib.o
NAME = lib_test
SRC = lib.c test.c
CC = gcc -std=c89
all: shared tests
tests: $(NAME)
test: tests
\t./$(NAME)
.c.o:
\t$(CC) -c $(CFLAGS) $<
$(NAME): $(SRC) lib.h # the tests
\t@$(CC) $(SRC) -o $@ $(LDLIBS)
";

#[test]
fn rules_have_targets_needs_and_recipes() {
    let makefile = Makefile::read([
        LIBRARY,
        "x y:: a | b ; run it\n\t# no\n\n\t-@ more \\\n\t  of it\n",
    ]);
    assert!(makefile.has_target("test") && !makefile.has_target("NAME"));
    assert_eq!(makefile.commands("test"), ["./$(NAME)"]);
    assert_eq!(makefile.commands("y"), ["run it", "more  \t  of it"]);
    assert_eq!(makefile.commands("all"), [""; 0]);
    let rule = |target: &str| {
        makefile
            .rules()
            .iter()
            .find(|rule| rule.targets == [target])
            .unwrap()
    };
    assert_eq!(rule("%.o").needs, ["%.c"]);
    assert_eq!(rule("%.o").stem("deep/lib.o"), Some("deep/lib"));
    assert_eq!(rule("$(NAME)").needs, ["$(SRC)", "lib.h"]);
    assert_eq!(rule("all").stem("all"), None);
}

#[test]
fn static_patterns_and_target_variables_are_parsed() {
    let makefile =
        Makefile::read(["test: CFLAGS += -g\nobj/a.o obj/b.o: obj/%.o: src/%.c\n\tcc -c $<\n"]);
    assert!(!makefile.has_target("test"));
    assert_eq!(
        makefile.rules()[0].targets,
        ["obj/a.o", "obj/b.o", "obj/%.o"]
    );
    assert_eq!(makefile.rules()[0].needs, ["src/%.c"]);
    assert_eq!(makefile.expand("$(CFLAGS)"), "-g");
}

#[test]
fn variables_are_expanded() {
    let makefile = Makefile::read([LIBRARY]);
    let automatic = [("@", "lib_test"), ("<", "lib.c")];
    let line = "$(CC) $(SRC) -o $@ $(LDLIBS) $<";
    assert_eq!(
        makefile.expand_with(line, &automatic),
        "gcc -std=c89 lib.c test.c -o lib_test  lib.c"
    );
    let made = Makefile::read([
        "SRC := $(wildcard src/*.c)\nOBJ := $(SRC:.c=.o)\nBIN = $(patsubst src/%.c,bin/%,$(SRC))\nexport A ?= 1\nA ?= 2\nB = x\nB += y\n\
         ifdef C\nB = z\nendif\nL = $(L) loop\nPY = python2\nPY = py\ndefine D\nE = 1\nendef\n",
    ]);
    for (text, expected) in [
        ("$(SRC) ${OBJ} $(BIN)", "src/*.c src/*.o bin/*"),
        ("$(A) $(B)", "1 x y z"),
        (
            "$(addprefix ./,$(B)) $(notdir $(OBJ)) $(basename a/b.c)",
            "./x ./y ./z *.o a/b",
        ),
        ("$(filter-out x,$(B)) $(filter %.c,a.c b.o)", "y z a.c"),
        (
            "for t in $(B); do ./$$t $${u} $$(id); done",
            "for t in x y z; do ./$$t $${u} $$(id); done",
        ),
        ("$(CC) $(CFLAGS) $(UNKNOWN)/x $(E)", "cc  $UNKNOWN/x $E"),
        (
            "$(PY) $(MAKE) $(shell find $(B))",
            "python3 make $(shell find x y z)",
        ),
        ("$(open $( ${ $", "$(open $( ${ $"),
    ] {
        assert_eq!(made.expand(text), expected, "{text}");
    }
    assert!(made.expand("$(L)").contains("loop"));
}

#[test]
fn growth_and_nesting_have_an_end() {
    let text: String = (0..30)
        .map(|n| format!("A{n} = $(A{0}) $(A{0}) $(A{0})\n", n + 1))
        .collect();
    assert!(Makefile::read([text.as_str()]).expand("$(A0)").len() < 4 << 20);
    let deep = "$(".repeat(50_000);
    assert_eq!(Makefile::default().expand(&deep), deep);
}
