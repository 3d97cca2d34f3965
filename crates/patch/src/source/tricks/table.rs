//! The constructs that are known by their words alone.
//!
//! A pattern is a row of words and marks, separated by blanks. `a|b` stands for either, `a*` for every word that
//! begins so; a final `=` assigns and does not compare. A word that begins with `"` is a literal with one of these texts
//! between two tokens; `"*` is any literal.

use super::{Confidence, Role, Tampering};
use crate::source::Language;
use crate::source::token::Token;

/// Variables that a test runner sets, so that code that reads them can distinguish a test from real use.
pub(super) const TEST_VARIABLES: [&str; 5] = [
    "PYTEST_CURRENT_TEST",
    "PYTEST_VERSION",
    "JEST_WORKER_ID",
    "VITEST_WORKER_ID",
    "NEXTEST_RUN_ID",
];

/// One row of the table.
pub(super) struct Pattern {
    language: Language,
    words: &'static str,
    pub(super) trick: Tampering,
    place: FileScope,
    sure: PatternConfidence,
}

/// In which files a pattern means something.
#[derive(Clone, Copy)]
enum FileScope {
    Anywhere,
    Tests,
    Sources,
}

/// How sure a pattern is.
#[derive(Clone, Copy)]
enum PatternConfidence {
    Certain,
    Doubtful,
    /// Certain in tests, which it ends before they fail; elsewhere a program's business.
    InTests,
    /// Certain but in tests, whose set-up may do this.
    UnlessTest,
}

const fn row(
    language: Language,
    words: &'static str,
    trick: Tampering,
    place: FileScope,
    sure: PatternConfidence,
) -> Pattern {
    Pattern {
        language,
        words,
        trick,
        place,
        sure,
    }
}

use FileScope::{Anywhere, Sources, Tests};
use Language::{C, Go, Python, Rust, Script};
use PatternConfidence::{Certain, Doubtful, InTests, UnlessTest};
use Tampering::{Disabled, Exit, Replaced, Shadow, TestAware};

const PATTERNS: [Pattern; 90] = [
    row(Rust, "process : : exit|abort", Exit, Anywhere, InTests),
    row(Rust, "std : : process as", Exit, Anywhere, InTests),
    row(Rust, "use std as", Exit, Anywhere, Doubtful),
    row(
        Rust,
        "libc : : exit|_exit|_Exit|quick_exit|abort",
        Exit,
        Anywhere,
        InTests,
    ),
    row(Rust, "intrinsics : : abort", Exit, Anywhere, InTests),
    row(
        Rust,
        "link_name = \"exit|_exit|_Exit|quick_exit|abort",
        Exit,
        Anywhere,
        Certain,
    ),
    row(
        Rust,
        "link_section = \".init_array*|.fini_array*|.ctors*|.CRT*|__DATA,__mod*",
        Exit,
        Anywhere,
        Certain,
    ),
    row(Rust, "[ ctor|dtor", Exit, Anywhere, Doubtful),
    row(Rust, "ctor : : ctor|dtor", Exit, Anywhere, Doubtful),
    row(
        Rust,
        "asm|global_asm|naked_asm ! (",
        Exit,
        Anywhere,
        Doubtful,
    ),
    row(
        Rust,
        "macro_rules ! assert|assert_eq|assert_ne|panic",
        Shadow,
        Anywhere,
        Certain,
    ),
    row(
        Rust,
        "macro_rules ! debug_assert|debug_assert_eq|debug_assert_ne",
        Shadow,
        Anywhere,
        Certain,
    ),
    row(
        Rust,
        "as assert|assert_eq|assert_ne|panic",
        Shadow,
        Anywhere,
        Certain,
    ),
    row(
        Rust,
        "cfg ! ( debug_assertions",
        TestAware,
        Sources,
        Doubtful,
    ),
    row(
        Rust,
        "cfg ! ( not ( debug_assertions",
        TestAware,
        Sources,
        Doubtful,
    ),
    row(
        Rust,
        "# [ cfg ( debug_assertions",
        TestAware,
        Sources,
        Doubtful,
    ),
    row(
        Rust,
        "# [ cfg ( not ( debug_assertions",
        TestAware,
        Sources,
        Doubtful,
    ),
    row(
        Script,
        "process . exit|reallyExit|abort|exitCode",
        Exit,
        Anywhere,
        InTests,
    ),
    row(
        Script,
        "process ? . exit|reallyExit|abort|exitCode",
        Exit,
        Anywhere,
        InTests,
    ),
    row(
        Script,
        "process [ \"exit|reallyExit|abort|exitCode ]",
        Exit,
        Anywhere,
        InTests,
    ),
    row(
        Script,
        "require ( \"process|node:process ) . exit|reallyExit|abort",
        Exit,
        Anywhere,
        InTests,
    ),
    row(Script, "Deno . exit", Exit, Anywhere, InTests),
    row(
        Script,
        "global|globalThis . expect|assert|it|test|describe =",
        Shadow,
        Anywhere,
        UnlessTest,
    ),
    row(
        Script,
        "assert . equal|strictEqual|deepEqual|deepStrictEqual|ok|throws =",
        Shadow,
        Anywhere,
        Certain,
    ),
    row(
        Script,
        "import . meta . vitest",
        TestAware,
        Sources,
        Certain,
    ),
    row(
        Script,
        "env . JEST_WORKER_ID|VITEST_WORKER_ID|VITEST",
        TestAware,
        Sources,
        Certain,
    ),
    row(
        Script,
        "typeof jest|vitest|jasmine|mocha|describe",
        TestAware,
        Sources,
        Certain,
    ),
    row(
        Script,
        "it|test|describe|suite|context|bench . only|skip|skipIf|runIf",
        Disabled,
        Tests,
        Certain,
    ),
    row(
        Script,
        "it|test|describe . todo|fails|failing",
        Disabled,
        Tests,
        Doubtful,
    ),
    row(
        Script,
        "xit|xtest|xdescribe|xcontext|fit|fdescribe ( \"*",
        Disabled,
        Tests,
        Certain,
    ),
    row(Script, "this . skip (", Disabled, Tests, Doubtful),
    row(Go, "os|syscall|unix . Exit", Exit, Anywhere, InTests),
    row(Go, "testing . Testing (", TestAware, Sources, Certain),
    row(Go, "flag . Lookup ( \"test.*", TestAware, Sources, Certain),
    row(Go, "os . Args [ 0 ] , \".test", TestAware, Sources, Certain),
    row(
        Go,
        "t|b|f . Skip|SkipNow|Skipf (",
        Disabled,
        Tests,
        Doubtful,
    ),
    row(C, "exit|_exit|_Exit|quick_exit (", Exit, Sources, InTests),
    row(Python, "os|posix|nt . _exit", Exit, Anywhere, InTests),
    row(Python, "os|posix|nt . abort", Exit, Anywhere, InTests),
    row(Python, "os|posix|nt . exec*", Exit, Tests, Doubtful),
    row(C, "exit|_exit|_Exit|quick_exit (", Exit, Tests, Doubtful),
    row(Python, "import _exit", Exit, Anywhere, InTests),
    row(
        Python,
        "CDLL ( None ) . exit|_exit|abort",
        Exit,
        Anywhere,
        Certain,
    ),
    row(
        Python,
        "pythonapi . Py_Exit|Py_FatalError",
        Exit,
        Anywhere,
        Certain,
    ),
    row(Python, UNITTEST_METHODS, Shadow, Anywhere, UnlessTest),
    row(
        Python,
        "unittest|pytest|testing . assert* =",
        Shadow,
        Anywhere,
        UnlessTest,
    ),
    row(
        Python,
        "setattr ( unittest|pytest|TestCase",
        Shadow,
        Anywhere,
        UnlessTest,
    ),
    row(Python, ". AssertionError =", Shadow, Anywhere, Certain),
    row(Python, "mark . skip|xfail", Disabled, Anywhere, Certain),
    row(Python, "mark . skipif", Disabled, Anywhere, Doubtful),
    row(
        Python,
        "unittest . skip|expectedFailure",
        Disabled,
        Anywhere,
        Certain,
    ),
    row(
        Python,
        "unittest . skipIf|skipUnless",
        Disabled,
        Anywhere,
        Doubtful,
    ),
    row(
        Python,
        "@ skip|expectedFailure",
        Disabled,
        Anywhere,
        Certain,
    ),
    row(
        Python,
        "pytest . importorskip (",
        Disabled,
        Anywhere,
        Doubtful,
    ),
    row(Python, "__test__ = False", Disabled, Anywhere, Certain),
    row(Python, "self . skipTest (", Disabled, Anywhere, Doubtful),
    row(Python, "pytest . exit (", Disabled, Anywhere, Certain),
    row(
        Python,
        "sys . _called_from_test",
        TestAware,
        Sources,
        Certain,
    ),
    row(
        Python,
        "\"pytest|_pytest|unittest|py.test in sys . modules",
        TestAware,
        Sources,
        Certain,
    ),
    row(
        Python,
        "\"pytest|_pytest|unittest|py.test not in sys . modules",
        TestAware,
        Sources,
        Certain,
    ),
    row(
        Python,
        "sys . modules . get ( \"pytest|_pytest|unittest",
        TestAware,
        Sources,
        Certain,
    ),
    row(
        Python,
        "\"PYTEST_* in os . environ",
        TestAware,
        Sources,
        Certain,
    ),
    row(
        Python,
        "\"PYTEST_* not in os . environ",
        TestAware,
        Sources,
        Certain,
    ),
    row(
        Python,
        "environ . get ( \"PYTEST_*",
        TestAware,
        Sources,
        Certain,
    ),
    row(Python, "environ [ \"PYTEST_*", TestAware, Sources, Certain),
    row(Python, "getenv ( \"PYTEST_*", TestAware, Sources, Certain),
    row(
        Python,
        "inspect . stack|currentframe|getouterframes|getinnerframes|trace",
        TestAware,
        Sources,
        Doubtful,
    ),
    row(
        Python,
        "import stack|currentframe|getouterframes|_getframe|_current_frames",
        TestAware,
        Sources,
        Doubtful,
    ),
    row(
        Python,
        "sys . _getframe|_getframemodulename|_current_frames|settrace|setprofile",
        TestAware,
        Sources,
        Doubtful,
    ),
    row(
        Python,
        "\"_getframe|_current_frames|f_back|tb_frame|currentframe )",
        TestAware,
        Sources,
        Doubtful,
    ),
    row(
        Python,
        "gc . get_objects|get_referrers|get_referents",
        TestAware,
        Sources,
        Doubtful,
    ),
    row(
        Python,
        "import get_objects|get_referrers|get_referents",
        TestAware,
        Sources,
        Doubtful,
    ),
    row(
        Python,
        "traceback . extract_stack|walk_stack|format_stack|print_stack",
        TestAware,
        Sources,
        Doubtful,
    ),
    row(
        Python,
        "import extract_stack|walk_stack|format_stack",
        TestAware,
        Sources,
        Doubtful,
    ),
    row(
        Python,
        "f_back|tb_frame|gi_frame|cr_frame",
        TestAware,
        Sources,
        Doubtful,
    ),
    row(
        Rust,
        "Backtrace : : capture|force_capture|new",
        TestAware,
        Sources,
        Doubtful,
    ),
    row(
        Rust,
        "thread : : current ( ) . name (",
        TestAware,
        Sources,
        Doubtful,
    ),
    row(
        Script,
        "new Error ( ) . stack",
        TestAware,
        Sources,
        Doubtful,
    ),
    row(Script, "Error ( ) . stack", TestAware, Sources, Doubtful),
    row(
        Script,
        "Error . captureStackTrace|prepareStackTrace|stackTraceLimit",
        TestAware,
        Sources,
        Doubtful,
    ),
    row(
        Go,
        "runtime . Caller|Callers|CallersFrames|FuncForPC|Stack",
        TestAware,
        Sources,
        Doubtful,
    ),
    row(
        Go,
        "debug . Stack|PrintStack (",
        TestAware,
        Sources,
        Doubtful,
    ),
    row(Go, "pprof . Lookup (", TestAware, Sources, Doubtful),
    row(
        Python,
        "globals ( ) . pop ( \"test*|Test*",
        Replaced,
        Anywhere,
        Certain,
    ),
    row(
        Python,
        "globals ( ) [ \"test*|Test* ] =",
        Replaced,
        Anywhere,
        Certain,
    ),
    row(Python, "setattr ( builtins", Shadow, Anywhere, Certain),
    row(
        Script,
        "process ? . [ \"exit|reallyExit|abort|exitCode ]",
        Exit,
        Anywhere,
        InTests,
    ),
    row(
        Python,
        "patch ( \"unittest.*|_pytest.*|pytest.*|doctest.*",
        Shadow,
        Sources,
        Certain,
    ),
    row(
        Python,
        "patch . object ( unittest|pytest|_pytest|doctest",
        Shadow,
        Sources,
        Certain,
    ),
    row(
        Python,
        "builtins . AssertionError|print|assert* =",
        Shadow,
        Anywhere,
        Doubtful,
    ),
];

/// The methods with which a `TestCase` asserts. Others may begin with the same word and mean something else.
const UNITTEST_METHODS: &str = ". assertEqual|assertNotEqual|assertTrue|assertFalse|assertIs|assertIsNot|assertIsNone|\
    assertIsNotNone|assertIn|assertNotIn|assertIsInstance|assertNotIsInstance|assertRaises|assertRaisesRegex|assertWarns|\
    assertWarnsRegex|assertLogs|assertNoLogs|assertAlmostEqual|assertNotAlmostEqual|assertGreater|assertGreaterEqual|\
    assertLess|assertLessEqual|assertRegex|assertNotRegex|assertCountEqual|assertMultiLineEqual|assertSequenceEqual|\
    assertListEqual|assertTupleEqual|assertSetEqual|assertDictEqual|failureException =";

/// The rows that mean something in files of one language and role.
pub(super) struct PatternSet {
    rows: Vec<&'static Pattern>,
    /// With which bytes a match can begin.
    starts: [bool; 256],
}

impl PatternSet {
    pub(super) fn new(language: Language, role: Role) -> Self {
        let is_here = |pattern: &&Pattern| {
            let is_place = match pattern.place {
                Anywhere => true,
                Tests => role == Role::Test,
                Sources => role != Role::Test,
            };
            pattern.language == language && is_place
        };
        let rows: Vec<&Pattern> = PATTERNS.iter().filter(is_here).collect();
        let mut starts = [false; 256];
        let firsts = rows
            .iter()
            .filter_map(|row| row.words.split(' ').find(|word| !word.starts_with('"')));
        for word in firsts.flat_map(|word| word.split('|')) {
            starts[usize::from(word.as_bytes()[0])] = true;
        }
        Self { rows, starts }
    }

    /// The rows that match the tokens at `at`. `source` is the text that the tokens' ranges count in, with its literals.
    pub(super) fn matching<'t>(
        &self,
        source: &'t [u8],
        tokens: &'t [Token<'t>],
        at: usize,
    ) -> impl Iterator<Item = &'static Pattern> {
        let may_start = tokens
            .get(at)
            .is_some_and(|token| self.starts[usize::from(token.text[0])]);
        let rows = if may_start { self.rows.as_slice() } else { &[] };
        rows.iter()
            .copied()
            .filter(move |pattern| pattern.matches(source, tokens, at))
    }
}

impl Pattern {
    pub(super) fn weight(&self, role: Role) -> Confidence {
        let is_certain = match self.sure {
            Certain => true,
            Doubtful => false,
            InTests => role.exit_weight() == Confidence::Certain,
            UnlessTest => role != Role::Test,
        };
        if is_certain {
            Confidence::Certain
        } else {
            Confidence::Doubtful
        }
    }

    /// The matched tokens as they would be written.
    pub(super) fn text(&self, tokens: &[Token<'_>], at: usize) -> String {
        let count = self
            .words
            .split(' ')
            .filter(|word| !word.starts_with('"'))
            .count();
        let text: Vec<String> = tokens
            .iter()
            .skip(at)
            .take(count)
            .map(Token::name)
            .collect();
        spaced(&text)
    }

    fn matches(&self, source: &[u8], tokens: &[Token<'_>], at: usize) -> bool {
        let mut next = at;
        let mut words = self.words.split(' ').peekable();
        while let Some(choice) = words.next() {
            if let Some(texts) = choice.strip_prefix('"') {
                let Some(text) = literal_before(source, tokens, next) else {
                    return false;
                };
                if !texts.split('|').any(|requested| is_like(text, requested)) {
                    return false;
                }
                continue;
            }
            let Some(token) = tokens.get(next) else {
                return false;
            };
            next += 1;
            let is_same = match choice {
                "=" if words.peek().is_none() => {
                    token.is("=") && !tokens.get(next).is_some_and(|token| token.is("="))
                }
                _ => choice.split('|').any(|word| is_like(token.text, word)),
            };
            if !is_same {
                return false;
            }
        }
        true
    }
}

/// What stands between the quotes of the literal in front of the token at `at`, behind the token before it.
fn literal_before<'s>(source: &'s [u8], tokens: &[Token<'_>], at: usize) -> Option<&'s [u8]> {
    /// The longest literal with a meaning here.
    const MAX_LEN: usize = 64;
    let start = at
        .checked_sub(1)
        .map_or(Some(0), |before| Some(tokens.get(before)?.range.end))?;
    let end = tokens
        .get(at)
        .map_or(source.len(), |token| token.range.start);
    let text = source.get(start..end)?.trim_ascii();
    let opens = text
        .iter()
        .take(4)
        .any(|byte| matches!(byte, b'"' | b'\'' | b'`'));
    let is_edge = |byte: &u8| matches!(byte, b'"' | b'\'' | b'`' | b'#');
    let from = text
        .iter()
        .position(is_edge)
        .filter(|at| opens && *at < 4)?;
    let inner = text.get(from..)?;
    let from = inner
        .iter()
        .position(|byte| !is_edge(byte))
        .unwrap_or(inner.len());
    let inner = inner.get(from..)?.get(..MAX_LEN.min(inner.len() - from))?;
    let to = inner.iter().position(is_edge).unwrap_or(inner.len());
    inner.get(..to)
}

fn is_like(text: &[u8], requested: &str) -> bool {
    match requested.strip_suffix('*') {
        Some(start) => text.starts_with(start.as_bytes()),
        None => text == requested.as_bytes(),
    }
}

/// Words with a blank where one is needed.
fn spaced(words: &[String]) -> String {
    let is_word = |word: &str| word.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let mut text = String::new();
    let mut after_word = false;
    for word in words {
        if (after_word && is_word(word)) || word == "=" {
            text.push(' ');
        }
        text.push_str(word);
        after_word = is_word(word);
    }
    text
}

/// A cheap first look: a changed line without any of these words changes none of the constructs.
pub(super) fn words(language: Language) -> &'static [&'static str] {
    match language {
        Rust => &[
            "exit",
            "abort",
            "process",
            "assert",
            "panic",
            "ignore",
            "test",
            "TEST",
            "link_",
            "ctor",
            "dtor",
            "asm",
            "exec",
            "Exec",
            "sys",
            "dlsym",
            "std",
            "Backtrace",
            "thread",
        ],
        Script => &[
            "exit", "Exit", "abort", "expect", "assert", "test", "TEST", "it", "describe", "suite",
            "context", "bench", "skip", "global", "process", "typeof", "Error", "stack", "\\",
            "assign", "define", "require", "import", "jest", "vi", "eval", "Function", "execve",
            "/", "=",
        ],
        Go => &[
            "Exit",
            "Test",
            "Skip",
            "TEST",
            "test",
            "Call",
            "FuncForPC",
            "Stack",
            "pprof",
            "os",
            "sys",
            "SYS_",
            "C",
            "link",
            "import",
        ],
        C => &["exit", "Exit", "define", "exec", "sys", "dl"],
        Python => &[
            "exit",
            "quit",
            "abort",
            "Exit",
            "assert",
            "Assert",
            "skip",
            "Skip",
            "xfail",
            "test",
            "Test",
            "TEST",
            "PYTEST",
            "expectedFailure",
            "builtins",
            "del",
            "import",
            "exec",
            "failureException",
            "stack",
            "frame",
            "back",
            "gc",
            "get_",
            "trace",
            "profile",
            "co_",
            "function",
            "f_",
            "unit",
            "doc",
            "hook",
            "cdll",
            "Py",
            "Library",
            "coding",
            "=",
            "__name__",
            "main",
            "setattr",
            "dl",
        ],
    }
}
