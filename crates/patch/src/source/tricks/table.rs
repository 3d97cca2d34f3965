//! The constructs that are known by their words alone.
//!
//! A pattern is a row of words and marks, separated by blanks. `a|b` stands for either, `a*` for every word that
//! begins so; a final `=` assigns and does not compare.

use super::{Role, Trick, Weight};
use crate::source::Language;
use crate::source::token::Token;

/// Variables that a test runner sets, so that whoever reads them can tell a test from real use.
pub(super) const TEST_VARIABLES: [&str; 5] =
    ["PYTEST_CURRENT_TEST", "PYTEST_VERSION", "JEST_WORKER_ID", "VITEST_WORKER_ID", "NEXTEST_RUN_ID"];

/// One row of the table.
pub(super) struct Pattern {
    language: Language,
    words: &'static str,
    pub(super) trick: Trick,
    place: Place,
    sure: Sure,
}

/// In which files a pattern means something.
#[derive(Clone, Copy)]
enum Place {
    Anywhere,
    Tests,
    Sources,
}

/// How sure a pattern is.
#[derive(Clone, Copy)]
enum Sure {
    Certain,
    Doubtful,
    /// Certain but in a program, whose business this may be.
    UnlessProgram,
    /// Certain but in tests, whose set-up may do this.
    UnlessTest,
}

const fn row(language: Language, words: &'static str, trick: Trick, place: Place, sure: Sure) -> Pattern {
    Pattern { language, words, trick, place, sure }
}

use Language::{C, Go, Python, Rust, Script};
use Place::{Anywhere, Sources, Tests};
use Sure::{Certain, Doubtful, UnlessProgram, UnlessTest};
use Trick::{Disabled, Exit, Shadow, TestAware};

const PATTERNS: [Pattern; 37] = [
    row(Rust, "process : : exit|abort", Exit, Anywhere, UnlessProgram),
    row(Rust, "std : : process as", Exit, Anywhere, UnlessProgram),
    row(Rust, "libc : : exit|_exit|_Exit|quick_exit|abort", Exit, Anywhere, UnlessProgram),
    row(Rust, "intrinsics : : abort", Exit, Anywhere, UnlessProgram),
    row(Rust, "macro_rules ! assert|assert_eq|assert_ne|panic", Shadow, Anywhere, Certain),
    row(Rust, "macro_rules ! debug_assert|debug_assert_eq|debug_assert_ne", Shadow, Anywhere, Certain),
    row(Rust, "as assert|assert_eq|assert_ne|panic", Shadow, Anywhere, Certain),
    row(Rust, "# [ ignore", Disabled, Anywhere, Certain),
    row(Script, "process . exit|reallyExit|abort|exitCode", Exit, Anywhere, UnlessProgram),
    row(Script, "Deno . exit", Exit, Anywhere, UnlessProgram),
    row(Script, "global|globalThis . expect|assert|it|test|describe =", Shadow, Anywhere, UnlessTest),
    row(
        Script,
        "assert . equal|strictEqual|deepEqual|deepStrictEqual|ok|throws =",
        Shadow,
        Anywhere,
        Certain,
    ),
    row(Script, "import . meta . vitest", TestAware, Sources, Certain),
    row(Script, "it|test|describe|suite|context|bench . only|skip|skipIf|runIf", Disabled, Tests, Certain),
    row(Script, "it|test|describe . todo|fails|failing", Disabled, Tests, Doubtful),
    row(Script, "xit|xtest|xdescribe|xcontext|fit|fdescribe (", Disabled, Tests, Certain),
    row(Script, "this . skip (", Disabled, Tests, Doubtful),
    row(Go, "os|syscall . Exit", Exit, Anywhere, UnlessProgram),
    row(Go, "testing . Testing (", TestAware, Sources, Certain),
    row(Go, "t|b|f . Skip|SkipNow|Skipf (", Disabled, Tests, Doubtful),
    row(C, "exit|_exit|_Exit|quick_exit (", Exit, Anywhere, Doubtful),
    row(Python, "os . _exit|abort", Exit, Anywhere, UnlessProgram),
    row(Python, "import _exit", Exit, Anywhere, UnlessProgram),
    row(Python, ". assert* =", Shadow, Anywhere, UnlessTest),
    row(Python, ". AssertionError =", Shadow, Anywhere, Certain),
    row(Python, "mark . skip|xfail", Disabled, Anywhere, Certain),
    row(Python, "mark . skipif", Disabled, Anywhere, Doubtful),
    row(Python, "unittest . skip|expectedFailure", Disabled, Anywhere, Certain),
    row(Python, "unittest . skipIf|skipUnless", Disabled, Anywhere, Doubtful),
    row(Python, "@ skip|expectedFailure", Disabled, Anywhere, Certain),
    row(Python, "pytest . importorskip (", Disabled, Anywhere, Doubtful),
    row(Python, "__test__ = False", Disabled, Anywhere, Certain),
    row(Python, "self . skipTest (", Disabled, Anywhere, Doubtful),
    row(Python, "pytest . exit (", Disabled, Anywhere, Certain),
    row(Python, "sys . _called_from_test", TestAware, Sources, Certain),
    row(Python, "setattr ( builtins", Shadow, Anywhere, Certain),
    row(Python, "builtins . AssertionError|print|assert* =", Shadow, Anywhere, Doubtful),
];

/// The rows that mean something in files of one language and role.
pub(super) struct Rows {
    rows: Vec<&'static Pattern>,
    /// With which bytes a match can begin.
    starts: [bool; 256],
}

impl Rows {
    pub(super) fn of(language: Language, role: Role) -> Self {
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
        for word in rows.iter().filter_map(|row| row.words.split(' ').next()).flat_map(|word| word.split('|'))
        {
            starts[usize::from(word.as_bytes()[0])] = true;
        }
        Self { rows, starts }
    }

    /// The rows that match the tokens at `at`.
    pub(super) fn matching<'t>(
        &self,
        tokens: &'t [Token<'t>],
        at: usize,
    ) -> impl Iterator<Item = &'static Pattern> {
        let may_start = tokens.get(at).is_some_and(|token| self.starts[usize::from(token.text[0])]);
        let rows = if may_start { self.rows.as_slice() } else { &[] };
        rows.iter().copied().filter(move |pattern| pattern.matches(tokens, at))
    }
}

impl Pattern {
    pub(super) fn weight(&self, role: Role) -> Weight {
        let is_certain = match self.sure {
            Certain => true,
            Doubtful => false,
            UnlessProgram => role != Role::Program,
            UnlessTest => role != Role::Test,
        };
        if is_certain { Weight::Certain } else { Weight::Doubtful }
    }

    /// The matched tokens as they would be written.
    pub(super) fn text(&self, tokens: &[Token<'_>], at: usize) -> String {
        let count = self.words.split(' ').count();
        let text: Vec<String> = tokens.iter().skip(at).take(count).map(Token::name).collect();
        spaced(&text)
    }

    fn matches(&self, tokens: &[Token<'_>], at: usize) -> bool {
        self.words.split(' ').enumerate().all(|(index, choice)| {
            let next = at + index;
            let Some(token) = tokens.get(next) else { return false };
            match choice {
                "=" => token.is("=") && !tokens.get(next + 1).is_some_and(|token| token.is("=")),
                _ => choice.split('|').any(|word| match word.strip_suffix('*') {
                    Some(start) => token.text.starts_with(start.as_bytes()),
                    None => token.is(word),
                }),
            }
        })
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
        Rust => &["exit", "abort", "process", "assert", "panic", "ignore", "test", "TEST"],
        Script => &[
            "exit", "Exit", "abort", "expect", "assert", "test", "TEST", "it", "describe", "suite",
            "context", "bench", "skip", "global",
        ],
        Go => &["Exit", "Test", "Skip", "TEST"],
        C => &["exit", "Exit"],
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
        ],
    }
}
