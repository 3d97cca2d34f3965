//! Comparisons of a script with the mode that it runs in: `NODE_ENV`, and the `MODE` of Vite.
//!
//! A test runner sets the mode to `test`. So an expression that takes the mode to a literal distinguishes tests from use, whatever the
//! order, the operator, the spelling of the access or the name that the mode was given before.

use super::{Confidence, Detection, Tampering};
use crate::source::token::{Position, Token, close};

/// Methods that take one text to another.
const PREDICATES: [&str; 9] = [
    "endsWith",
    "equals",
    "has",
    "includes",
    "indexOf",
    "is",
    "match",
    "startsWith",
    "test",
];
/// How many tokens of an expression are read on each side.
const MAX_OPERAND: usize = 24;
/// The longest text between two tokens that is read as a literal.
const MAX_LITERAL: usize = 64;
/// How many words may be left out.
const MAX_OMITTED: usize = 200;

/// Finds every comparison of the mode with a literal.
pub(super) fn find(source: &[u8], tokens: &[Token<'_>], found: &mut Vec<Detection>) {
    let script = Script { source, tokens };
    let names = script.names();
    for at in 0..tokens.len() {
        if !script.is_mode(at, &names) {
            continue;
        }
        let Some(compared) = script.compared(at) else {
            continue;
        };
        let decides = !script.is_left_out_alone(&compared);
        let weight = match (compared.literal == "test", decides) {
            (true, true) => Confidence::Certain,
            (true, false) | (false, true) => Confidence::Doubtful,
            (false, false) => continue,
        };
        let what = format!("mode {} {:?}", compared.operator, compared.literal);
        found.push(Detection::new(Tampering::TestAware, weight, what));
    }
}

struct Script<'t> {
    source: &'t [u8],
    tokens: &'t [Token<'t>],
}

/// The mode in an expression with a literal.
struct Comparison {
    /// The last token of the mode.
    mode: usize,
    operator: String,
    literal: String,
}

impl Script<'_> {
    fn is(&self, at: usize, word: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is(word))
    }

    fn is_word(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(Token::is_word)
    }

    /// The literal in front of a token, without its marks.
    fn literal(&self, at: usize) -> Option<String> {
        let before = at.checked_sub(1).and_then(|before| self.tokens.get(before));
        let start = before.map_or(0, |token| token.range.end);
        let end = self
            .tokens
            .get(at)
            .map_or(self.source.len(), |token| token.range.start);
        let text = self.source.get(start..end)?.trim_ascii();
        let is_literal = text.len() <= MAX_LITERAL
            && text.first().is_some_and(|first| b"'\"`/".contains(first))
            && !text.starts_with(b"//")
            && !text.starts_with(b"/*");
        let text = std::str::from_utf8(text).ok().filter(|_| is_literal)?;
        let text = text.trim_matches(|c: char| !c.is_alphanumeric());
        let is_test = text
            .split(|c: char| !c.is_alphanumeric())
            .any(|word| word == "test");
        Some(if is_test {
            "test".to_owned()
        } else {
            text.to_owned()
        })
    }

    /// Whether the token is the last word of an access to the mode, or a name for it.
    fn is_mode(&self, at: usize, names: &[&[u8]]) -> bool {
        let before = |back: usize, word: &str| at >= back && self.is(at - back, word);
        if self.is(at, "]") {
            let key = self.literal(at);
            let is_of_env =
                before(1, "[") && (before(2, "env") || before(2, ".") && before(4, "env"));
            return match key.as_deref() {
                Some("NODE_ENV") => before(1, "["),
                Some("MODE") => is_of_env,
                _ => false,
            };
        }
        self.is(at, "NODE_ENV") && !self.is(at + 1, ":")
            || self.is(at, "MODE") && before(1, ".") && (before(2, "env") || before(3, "env"))
            || !before(1, ".") && names.binary_search(&self.tokens[at].text).is_ok()
    }

    /// The names that a declaration gives the mode: `const mode = process.env.NODE_ENV`, `const { NODE_ENV: mode } = process.env`.
    fn names(&self) -> Vec<&[u8]> {
        let mut names: Vec<&[u8]> = Vec::new();
        for (at, token) in self.tokens.iter().enumerate() {
            if (token.is("NODE_ENV") || token.is("MODE")) && self.is_from_env(at) {
                let name = if self.is(at + 1, ":") { at + 2 } else { at };
                names.extend(self.tokens.get(name).map(|token| token.text));
            }
            if !self.is_mode(at, &[]) {
                continue;
            }
            let start = self.chain_start(at);
            let is_declared = start >= 3
                && self.is(start - 1, "=")
                && ["const", "let", "var"]
                    .iter()
                    .any(|word| self.is(start - 3, word));
            let is_compared = self.is(at + 1, "=") || self.is(at + 1, "!") || self.is(at + 1, ".");
            if is_declared && self.is_word(start - 2) && !is_compared {
                names.push(self.tokens[start - 2].text);
            }
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Whether a name is taken out of the environment by `const { … } = process.env`.
    fn is_from_env(&self, at: usize) -> bool {
        let is_item = |index: usize| {
            self.is_word(index) || [",", ":", "="].iter().any(|mark| self.is(index, mark))
        };
        let end = (at..self.tokens.len())
            .take(MAX_OPERAND)
            .find(|index| !is_item(*index));
        end.is_some_and(|end| {
            self.is(end, "}")
                && self.is(end + 1, "=")
                && (end + 2..end + 8).any(|index| self.is(index, "env"))
        })
    }

    /// The first token of the access that ends at `at`.
    fn chain_start(&self, at: usize) -> usize {
        let before =
            |start: usize, back: usize, mark: &str| start >= back && self.is(start - back, mark);
        let mut start = at - usize::from(self.is(at, "]"));
        loop {
            let dots = match before(start, 1, ".") {
                true => 1 + usize::from(before(start, 2, "?")),
                false => 0,
            };
            let is_part = dots > 0 || self.is(start, "[");
            if !(is_part && start > dots && self.is_word(start - dots - 1)) {
                return start;
            }
            start -= dots + 1;
        }
    }

    /// The access with the brackets around it that group nothing else.
    fn grouped(&self, at: usize) -> (usize, usize) {
        let (mut start, mut end) = (self.chain_start(at), at);
        while start > 1
            && self.is(start - 1, "(")
            && self.is(end + 1, ")")
            && !self.is_word(start - 2)
        {
            (start, end) = (start - 1, end + 1);
        }
        (start, end)
    }

    /// Reads the expression around the mode.
    fn compared(&self, at: usize) -> Option<Comparison> {
        const STOPS: [&str; 12] = [
            ";", "{", "}", "&", "|", ":", "return", "if", "while", "const", "let", "var",
        ];
        let is = |index: usize, word: &str| self.is(index, word);
        let stops = |index: usize| {
            STOPS.iter().any(|mark| is(index, mark))
                || is(index, "?") && !is(index + 1, ".")
                || self.is_assignment(index)
        };
        let opens = |index: usize| {
            let is_argument = index > 0 && PREDICATES.iter().any(|name| is(index - 1, name));
            let is_operand = index > 0 && is(index - 1, "=");
            is(index, "(") && !is_argument && !is_operand
        };
        let (first, last) = self.grouped(at);
        let before = (0..first)
            .rev()
            .take(MAX_OPERAND)
            .find(|index| stops(*index) || opens(*index));
        let start = before.map_or(first.saturating_sub(MAX_OPERAND), |stop| stop + 1);
        if start >= 2 && is(start - 2, "switch") {
            return self.case(at, start - 1);
        }
        let closes = |index: usize| {
            let is_continued = ["=", "!", "."].iter().any(|mark| is(index + 1, mark));
            is(index, ")") && !is_continued
        };
        let after = (last + 1..self.tokens.len())
            .take(MAX_OPERAND)
            .find(|index| stops(*index) || closes(*index));
        let end = after.unwrap_or((last + 1 + MAX_OPERAND).min(self.tokens.len()));
        let comparison = |operator: &str, literal: String| Comparison {
            mode: at,
            operator: operator.to_owned(),
            literal,
        };
        let equality = (start..end).find_map(|index| {
            let is_sign = |index: usize| is(index, "=") || is(index, "!");
            let is_first =
                is_sign(index) && !(index > 0 && is_sign(index - 1) && self.touch(index - 1));
            let last = (index..end)
                .take_while(|next| is_sign(*next) && (*next == index || self.touch(next - 1)))
                .last()
                .filter(|last| is_first && *last > index)?;
            // `mode!=== "test"` asserts that there is one.
            let is_negated = is(index, "!") && last - index < 3;
            let literal = self.literal(last + 1).or_else(|| self.literal(index))?;
            Some(comparison(if is_negated { "!=" } else { "==" }, literal))
        });
        let predicate = || {
            let is_call = |index: &usize| *index > 0 && is(index - 1, ".") && is(index + 1, "(");
            let mut calls = (start..end).filter(is_call);
            let name = calls.find_map(|index| PREDICATES.iter().find(|name| is(index, name)))?;
            let mut literals = (start..=end).filter_map(|index| self.literal(index));
            literals
                .find(|literal| literal == "test")
                .map(|literal| comparison(name, literal))
        };
        equality.or_else(predicate)
    }

    /// Whether nothing stands between a token and the next one.
    fn touch(&self, at: usize) -> bool {
        matches!(self.tokens.get(at..at + 2), Some([one, next]) if one.range.end == next.range.start)
    }

    fn is_assignment(&self, at: usize) -> bool {
        let is_part = |index: usize| ["=", "!", "<", ">"].iter().any(|mark| self.is(index, mark));
        let is_begun = at > 0 && is_part(at - 1) && self.touch(at - 1);
        self.is(at, "=") && !(is_part(at + 1) && self.touch(at)) && !is_begun
    }

    /// `switch (mode) { case "test": … }`.
    fn case(&self, mode: usize, open: usize) -> Option<Comparison> {
        let near = &self.tokens[..(open + MAX_OMITTED).min(self.tokens.len())];
        let cases = close(near, open) + 1..near.len();
        let mut tests = cases.filter(|at| self.is(*at, ":") && self.is(at - 1, "case"));
        tests
            .any(|at| self.literal(at).as_deref() == Some("test"))
            .then(|| Comparison {
                mode,
                operator: "case".to_owned(),
                literal: "test".to_owned(),
            })
    }

    /// Whether `if (NODE_ENV !== "test")` only leaves something out that nobody gets a value from: no server listens, nothing is logged.
    /// What returns, throws, sets or does something else instead is two ways of doing one thing.
    fn is_left_out_alone(&self, compared: &Comparison) -> bool {
        let is = |index: usize, word: &str| self.is(index, word);
        let mut before = (0..self.grouped(compared.mode).0).rev().take(MAX_OPERAND);
        let open = before.find(|index| is(*index, "(") || is(*index, ")"));
        let is_omission = compared.operator == "!=" || compared.literal != "test";
        let is_if = |open: &usize| is_omission && is(*open, "(") && *open > 0 && is(open - 1, "if");
        let Some(open) = open.filter(is_if) else {
            return false;
        };
        let near = &self.tokens[..(open + MAX_OMITTED).min(self.tokens.len())];
        let condition = close(near, open);
        let start = condition + 1;
        let end = if is(start, "{") {
            close(near, start)
        } else {
            let mut end = start;
            while end < near.len()
                && !is(end, ";")
                && (end == start || near[end].position != Position::First)
            {
                end = if is(end, "(") || is(end, "{") || is(end, "[") {
                    close(near, end) + 1
                } else {
                    end + 1
                };
            }
            end - usize::from(!is(end, ";"))
        };
        let decides = |index: usize| {
            let is_word = ["return", "throw", "yield", "break", "continue"]
                .iter()
                .any(|word| is(index, word));
            let is_declared = index >= 2
                && ["const", "let", "var"]
                    .iter()
                    .any(|word| is(index - 2, word));
            is_word
                || self.is_assignment(index) && !is_declared
                || is(index, "+") && is(index + 1, "+")
        };
        // A condition that says something else besides may turn it around.
        let is_plain = !(open..condition).any(|index| is(index, "?") && !is(index + 1, "."));
        end + 1 < open + MAX_OMITTED
            && is_plain
            && !is(end + 1, "else")
            && !(start..=end).any(decides)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Language::Script as Js;
    use crate::source::tricks::{Role, detections};

    fn weights(source: &str) -> Vec<Confidence> {
        let seen = detections(Js, Role::Source, source.as_bytes());
        let aware = seen
            .iter()
            .filter(|seen| seen.trick == Tampering::TestAware);
        aware.map(|seen| seen.weight).collect()
    }

    /// Every way to read the mode, with the lines before.
    const MODES: [(&str, &str); 13] = [
        ("", "process.env.NODE_ENV"),
        ("", "process?.env?.NODE_ENV"),
        ("", "process.env['NODE_ENV']"),
        ("", "process.env?.[\"NODE_ENV\"]"),
        ("", "(process.env.NODE_ENV)"),
        ("", "process.env.NODE_ENV!"),
        ("const { NODE_ENV } = process.env;\n", "NODE_ENV"),
        ("const { NODE_ENV: m, X } = process.env;\n", "m"),
        ("const m = process.env.NODE_ENV || 'development'\n", "m"),
        ("import { env } from 'node:process';\n", "env.NODE_ENV"),
        ("", "import.meta.env.MODE"),
        ("", "import.meta.env['MODE']"),
        ("const { MODE } = import.meta.env;\n", "MODE"),
    ];

    #[test]
    fn deciding_by_test_mode_is_certain_in_any_spelling() {
        for (before, mode) in MODES {
            for condition in [
                format!("{mode} === 'test'"),
                format!("{mode} == \"test\""),
                format!("{mode} !== `test`"),
                format!("'test' != {mode}"),
                format!("\"test\" === {mode}"),
                format!("['test', 'ci'].includes({mode})"),
                format!("{mode}.startsWith('test')"),
                format!("/^test$/.test({mode})"),
                format!("Object.is({mode}, 'test')"),
            ] {
                for use_of in [
                    "return C ? 3 : real();",
                    "if (C) { return 3; }\nreturn real();",
                    "const t = C;",
                ] {
                    let source = format!(
                        "{before}function f() {{ {} }}\n",
                        use_of.replace('C', &condition)
                    );
                    assert_eq!(weights(&source), [Confidence::Certain], "{source}");
                }
            }
        }
        for source in [
            "switch (process.env.NODE_ENV) { case 'test': return 3; default: return real(); }\n",
            "if (!(process.env.NODE_ENV !== 'test')) { fake(); }\n",
        ] {
            assert_eq!(weights(source), [Confidence::Certain], "{source}");
        }
    }

    #[test]
    fn omission_in_test_mode_is_doubtful() {
        for (before, mode) in MODES {
            for condition in [
                format!("{mode} !== 'test'"),
                format!("!a && 'test' != {mode}"),
            ] {
                let source = format!("{before}if ({condition}) {{ app.listen(1); }}\n");
                assert_eq!(weights(&source), [Confidence::Doubtful], "{source}");
            }
        }
    }

    #[test]
    fn other_mode_is_doubtful_where_it_decides() {
        for (source, expected) in [
            (
                "const a = process.env.NODE_ENV === 'production' ? real() : 3;\n",
                1,
            ),
            (
                "if (process.env.NODE_ENV !== 'production') { return 3; }\n",
                1,
            ),
            (
                "if (process.env.NODE_ENV !== 'production') { warn('test'); }\n",
                0,
            ),
            (
                "if (process.env.NODE_ENV === 'production') app.use(compress('test'));\n",
                0,
            ),
        ] {
            assert_eq!(
                weights(source),
                vec![Confidence::Doubtful; expected],
                "{source}"
            );
        }
    }

    #[test]
    fn mode_without_comparison_is_not_reported() {
        for source in [
            "process.env.NODE_ENV = 'test';\n",
            "process.env.NODE_ENV = process.env.NODE_ENV || 'test';\n",
            "process.env.NODE_ENV ??= 'test';\n",
            "spawn('jest', { env: { NODE_ENV: 'test' } });\n",
            "log('test', process.env.NODE_ENV);\n",
            "const mode = process.env.NODE_ENV;\nrun(mode, 'test');\n",
            "const mode = process.env.NODE_ENV;\nif (options.mode === 'test') go();\n",
            "if (a === 'test') log(process.env.NODE_ENV);\n",
            "const MODE = 'a'; if (MODE === 'test') go();\n",
            "switch (process.env.NODE_ENV) { case 'production': go(); }\n",
        ] {
            assert_eq!(weights(source), [], "{source}");
        }
    }
}
