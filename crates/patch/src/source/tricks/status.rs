//! What a call that ends the process says about how it went.

use super::super::token::Token;

/// Whether no test passes by this end, in a file that may be imported: it is not a success, or only a name that is never used as one.
pub(super) fn is_harmless(what: &str, tokens: &[Token<'_>]) -> bool {
    const NAMES: [&str; 6] = [
        "exit",
        "_exit",
        "_Exit",
        "quick_exit",
        "reallyExit",
        "exitCode",
    ];
    if what.contains("abort") || what.contains("exitCode") {
        return true;
    }
    let is_name_alone = ["use of ", "extern fn ", "import "]
        .iter()
        .any(|start| what.starts_with(start))
        || what.ends_with(" of process")
        || what.ends_with(" as");
    let may_succeed = |at: usize| {
        let before = |words: &[&str]| {
            at.checked_sub(1)
                .is_some_and(|before| words.iter().any(|word| tokens[before].is(word)))
        };
        let is_call = tokens.get(at + 1).is_some_and(|next| next.is("("));
        let is_value = !is_call && before(&["=", "("]);
        is_value || is_call && !before(&["fn", "."]) && status(tokens, at) != Status::Failure
    };
    let ends = (0..tokens.len()).filter(|at| NAMES.iter().any(|name| tokens[*at].is(name)));
    is_name_alone && !ends.into_iter().any(may_succeed)
}

/// What a call that ends the process says about how it went.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Status {
    /// A literal zero.
    Success,
    /// A literal that is not zero: no test passes by it.
    Failure,
    /// Nothing, or what only running it tells.
    Unknown,
}

/// The status in the first parentheses behind `at`, or behind the `=` there.
pub(super) fn status(tokens: &[Token<'_>], at: usize) -> Status {
    let near = tokens.get(at..).unwrap_or_default();
    let begin = near
        .iter()
        .take(10)
        .position(|token| token.is("(") || token.is("=") || token.is(";"));
    let argument = begin
        .and_then(|begin| near.get(begin + 1..))
        .unwrap_or_default();
    let [number, end, ..] = argument else {
        return Status::Unknown;
    };
    let is_end = |token: &Token<'_>| token.is(")") || token.is(";") || token.is("}");
    if number.is("-") {
        let is_one = end.is("1") && argument.get(2).is_some_and(is_end);
        return if is_one {
            Status::Failure
        } else {
            Status::Unknown
        };
    }
    if number.is("EXIT_FAILURE") && is_end(end) {
        return Status::Failure;
    }
    // The system keeps the lowest eight bits.
    let number = std::str::from_utf8(number.text)
        .ok()
        .and_then(|number| number.parse::<u32>().ok());
    match number {
        Some(number) if is_end(end) && number % 256 == 0 => Status::Success,
        Some(_) if is_end(end) => Status::Failure,
        _ => Status::Unknown,
    }
}
