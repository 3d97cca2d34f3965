//! Detects a compiler error that a code change does not usually cause.
//!
//! Error lines of C, C++ and Java compilers are parsed. Tests often need a name or signature that the change
//! has to add, so an error about a missing one is an ordinary failure.

use super::{CommandOutput, NotRunReason};
use crate::gate::{GateEnd, GateRun};

/// What compilers say of code that waits for other code.
const WAITING: [&str; 22] = [
    "argument list",
    "cannot be applied",
    "cannot find symbol",
    "conflicting types",
    "does not exist",
    "does not name a type",
    "does not override",
    "has no member",
    "implicit declaration",
    "incompatible",
    "incomplete type",
    "is not a member of",
    "no matching",
    "no member named",
    "not declared",
    "too few arguments",
    "too many arguments",
    "undeclared",
    "undefined",
    "unknown type name",
    "unresolved",
    "use of class template",
];

/// Returns why a gate's command does not compile its sources; `None` if it passed, ran a test, or waits for
/// missing code.
#[must_use]
pub fn cannot_compile(run: &GateRun) -> Option<NotRunReason> {
    if !matches!(run.end, GateEnd::Exited(code) if code != 0) {
        return None;
    }
    let output = CommandOutput::from_run(run);
    if output.has_finished_test()
        || run
            .results
            .as_ref()
            .is_some_and(|results| !results.tests.is_empty())
    {
        return None;
    }
    let errors: Vec<&str> = output.lines().filter(|line| is_error(line)).collect();
    let is_waiting = |line: &&str| WAITING.iter().any(|sign| line.contains(sign));
    let first = errors.first().filter(|_| !errors.iter().any(is_waiting))?;
    let remedy = if first.contains("[-Werror") {
        format!(
            "let the compiler warn, such as with `[gates.{}] env = {{ CFLAGS = \"-Wno-error\" }}`",
            run.id
        )
    } else {
        "make it compile, or name another command: `crucible run start --test \"COMMAND\"`"
            .to_owned()
    };
    let NotRunReason { cause, remedy } = NotRunReason::quoting(first, remedy);
    Some(NotRunReason {
        cause: format!("it does not compile even before the change; {cause}"),
        remedy,
    })
}

/// Returns whether a goal concerns the compiler error: it is about building, or about a quoted name.
#[must_use]
pub fn concerns_compiling(goal: &str, cause: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        text.split(|c: char| !(c.is_alphanumeric() || c == '_'))
            .map(str::to_lowercase)
            .collect()
    };
    let of_goal = words(goal);
    let begins = [
        "build", "compil", "error", "gcc", "clang", "link", "warning", "werror",
    ];
    if of_goal
        .iter()
        .any(|word| begins.iter().any(|begin| word.starts_with(begin)))
    {
        return true;
    }
    // The option of a warning, and quoted names.
    let option = cause
        .rsplit_once("[-W")
        .map(|(_, option)| option.split(']').next().unwrap_or_default());
    let quoted = cause.split(['‘', '’', '`', '\'']).skip(1).step_by(2);
    let terms = quoted
        .chain(option)
        .flat_map(words)
        .filter(|word| word.len() > 2 && word != "error");
    terms.into_iter().any(|word| of_goal.contains(&word))
}

/// Whether a compiler or a linker names an error on this line.
fn is_error(line: &str) -> bool {
    let place = line.split([':', '(']).next().unwrap_or_default();
    let is_of_source = [
        ".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".java", ".m", ".mm", ".S",
    ]
    .iter()
    .any(|ending| place.ends_with(ending));
    let is_of_tool = [
        "cc1", "collect2", "ld", "gcc", "g++", "cc", "c++", "clang", "clang++", "javac",
    ]
    .contains(&place.rsplit('/').next().unwrap_or_default());
    (is_of_source || is_of_tool)
        && ([": error:", ": fatal error:", "undefined reference to"]
            .iter()
            .any(|sign| line.contains(sign))
            || line.contains(": cannot find "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::tests::run_of;

    const FLOATS: &str = "unity.c:9:14: error: comparing floating-point with ‘==’ or ‘!=’ is unsafe [-Werror=float-equal]\n\
         cc1: all warnings being treated as errors\nmake: *** [Makefile:3: test] Error 1\n";

    fn cause(output: &str) -> Option<NotRunReason> {
        cannot_compile(&run_of(
            "make test",
            GateEnd::Exited(2),
            "cc -o t unity.c\n",
            output,
        ))
    }

    #[test]
    fn compiler_error_unrelated_to_change_is_reported() {
        let found = cause(FLOATS).unwrap();
        assert!(
            found.cause.contains("-Werror=float-equal") && found.remedy.contains("-Wno-error"),
            "{found:?}"
        );
        for output in [
            "a.c:1:10: fatal error: zlib.h: No such file or directory\n",
            "/usr/bin/ld: cannot find -lz: No such file or directory\n",
            "gcc: error: unrecognized command-line option ‘-fnew’\n",
            "src/a.c:3:1: error: expected ‘;’ before ‘}’ token\n",
        ] {
            assert!(cause(output).is_some(), "{output}");
        }
    }

    #[test]
    fn missing_name_is_an_ordinary_failure() {
        for output in [
            "t.c:3:10: error: implicit declaration of function ‘sub’ [-Wimplicit-function-declaration]\n",
            "/usr/bin/ld: t.o: in function `main':\nt.c:(.text+0x9): undefined reference to `sub'\n",
            "t.cpp:3:10: error: ‘sub’ was not declared in this scope\n",
            "Checks.java:3: error: cannot find symbol\n",
            "t.c:3:10: error: too few arguments to function ‘add’\na.c:1:1: error: expected ‘;’ before ‘}’ token\n",
            "assertion failed: t.c:4: add(2, 3) == 5\nmake: *** [Makefile:3: test] Error 1\n",
            "",
        ] {
            assert_eq!(cause(output), None, "{output}");
        }
        let passed = run_of("make test", GateEnd::Exited(0), "", FLOATS);
        assert_eq!(cannot_compile(&passed), None);
        let tested = run_of(
            "make test",
            GateEnd::Exited(1),
            "1..2\nok 1 - a\nnot ok 2 - b\n",
            FLOATS,
        );
        assert_eq!(cannot_compile(&tested), None);
    }

    #[test]
    fn goal_about_the_error_is_known() {
        let cause = cause(FLOATS).unwrap().cause;
        for goal in [
            "make it compile with gcc 14",
            "fix the build",
            "avoid float equal",
            "silence -Wfloat-equal",
        ] {
            assert!(concerns_compiling(goal, &cause), "{goal}");
        }
        assert!(!concerns_compiling(
            "add must return the sum of a and b",
            &cause
        ));
    }
}
