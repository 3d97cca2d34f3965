//! Describes command lines, and checks them against their descriptions.
//!
//! A description is an allow-list: options with their exact spelling and allowed values, and the other
//! allowed words. Abbreviated options, combined short options and anything else that is not listed are
//! refused, so that a program cannot interpret its words in an unexpected way.

use std::fmt;

use super::command_line::CommandLine;
use super::finding::{ARGUMENT_REFUSED, FindingSink, OPTION_REFUSED, VALUE_REFUSED};
use super::paths::{Access, StepDirectory};

/// The kind of a word.
#[derive(Debug, Clone, Copy)]
pub(super) enum WordKind {
    /// At most six digits.
    Number,
    /// A plain name: letters, digits and `_ . + -`, the first one a letter, a digit or `_`.
    Name,
    /// Names separated by `:` or `/`: a test, a script, a target.
    Label,
    /// Labels separated by `,`.
    Labels,
    /// A path that is read or executed.
    Input,
    /// A path that is written, possibly with files below it.
    Output,
    /// A path that is created, while files below it are kept.
    Made,
    /// A directory that the command may clear or fill: never the working directory, nor a common source
    /// directory.
    Owned,
    /// One of these.
    OneOf(&'static [&'static str]),
    /// A predicate with its description.
    Fits(fn(&str) -> bool, &'static str),
}

/// An option and its allowed forms.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opt {
    name: &'static str,
    forms: Forms,
}

#[derive(Debug, Clone, Copy)]
enum Forms {
    /// `-v`
    Bare,
    /// `--jobs 4`, `--jobs=4`, `-k x`
    Value(WordKind),
    /// `-j 4`, `-j4`
    Short(WordKind),
    /// `-j`, `-j4`
    MaybeGlued(WordKind),
    /// `--cov`, `--cov=x`
    MaybeJoined(WordKind),
    /// `--with-x=yes`
    Joined(WordKind),
}

/// `-v`: without a value.
pub(super) const fn flag(name: &'static str) -> Opt {
    Opt {
        name,
        forms: Forms::Bare,
    }
}

/// `--jobs 4` or `--jobs=4`; a one-letter option has a separate value, because programs differ about `=`
/// after it.
pub(super) const fn value(name: &'static str, kind: WordKind) -> Opt {
    Opt {
        name,
        forms: Forms::Value(kind),
    }
}

/// `-j 4` or `-j4`.
pub(super) const fn short(name: &'static str, kind: WordKind) -> Opt {
    Opt {
        name,
        forms: Forms::Short(kind),
    }
}

/// `-j` or `-j4`.
pub(super) const fn optional_short_value(name: &'static str, kind: WordKind) -> Opt {
    Opt {
        name,
        forms: Forms::MaybeGlued(kind),
    }
}

/// `--parallel` or `--parallel=4`.
pub(super) const fn optional_long_value(name: &'static str, kind: WordKind) -> Opt {
    Opt {
        name,
        forms: Forms::MaybeJoined(kind),
    }
}

/// `--mode=x` only.
pub(super) const fn required_long_value(name: &'static str, kind: WordKind) -> Opt {
    Opt {
        name,
        forms: Forms::Joined(kind),
    }
}

/// The allowed words besides the options.
#[derive(Debug, Clone, Copy)]
pub(super) enum Operands {
    /// None; the sentence says why, or what to write instead.
    None(&'static str),
    /// Any number, each of this kind.
    Each(WordKind),
    /// Exactly one of this kind, required.
    One(WordKind, &'static str),
}

/// What may follow `--`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Tail {
    /// Nothing.
    Refused,
    /// Words of another description.
    Follows(&'static Usage),
}

/// Where options may be placed.
#[derive(Debug, Clone, Copy)]
pub(super) enum OptionPosition {
    Anywhere,
    /// Before the first other word; the words after that one have their own description.
    BeforeOperand(&'static Usage),
}

/// The description of a command line, after the words that select it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Usage {
    /// Its name for readers.
    pub(super) name: &'static str,
    pub(super) options: &'static [&'static [Opt]],
    /// Its other words.
    pub(super) operands: Operands,
    /// What may follow `--`.
    pub(super) tail: Tail,
    /// Where options may stand.
    pub(super) option_position: OptionPosition,
}

impl Usage {
    /// Options anywhere, no `--`.
    pub(super) const fn new(
        name: &'static str,
        options: &'static [&'static [Opt]],
        operands: Operands,
    ) -> Self {
        Self {
            name,
            options,
            operands,
            tail: Tail::Refused,
            option_position: OptionPosition::Anywhere,
        }
    }

    pub(super) fn options(&self) -> impl Iterator<Item = &'static Opt> + use<> {
        self.options.iter().copied().flatten()
    }

    /// Allows words after `--`.
    pub(super) const fn with_tail(self, usage: &'static Self) -> Self {
        Self {
            tail: Tail::Follows(usage),
            ..self
        }
    }

    /// Describes the words after the first operand by `usage`.
    pub(super) const fn then(self, usage: &'static Self) -> Self {
        Self {
            option_position: OptionPosition::BeforeOperand(usage),
            ..self
        }
    }
}

/// A parsed command line, whether or not it was refused.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Line<'w> {
    /// The words other than options, without those of another description.
    pub(super) operands: Vec<&'w str>,
    values: Vec<(&'static str, &'w str)>,
}

impl<'w> Line<'w> {
    /// The values of the options with one of these names, in order.
    pub(super) fn values_of(&self, names: &[&str]) -> Vec<&'w str> {
        self.values
            .iter()
            .filter(|(name, _)| names.contains(name))
            .map(|(_, value)| *value)
            .collect()
    }

    /// Converts it for users of accepted commands.
    fn to_command_line(&self, usage: &'static str) -> CommandLine {
        CommandLine {
            usage,
            operands: self
                .operands
                .iter()
                .map(|word| (*word).to_owned())
                .collect(),
            values: self
                .values
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect(),
        }
    }
}

/// Checks `words` against their description; returns the operands.
pub(super) fn judge<'w>(
    usage: &Usage,
    words: &[&'w str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) -> Vec<&'w str> {
    read(usage, words, place, sink).operands
}

/// Checks `words` against their description; returns the parsed line.
pub(super) fn read<'w>(
    usage: &Usage,
    words: &[&'w str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) -> Line<'w> {
    let mut line = Line::default();
    let mut rest = words;
    while let Some((&word, after)) = rest.split_first().filter(|_| !sink.is_full()) {
        rest = after;
        if word == "--" {
            match usage.tail {
                Tail::Follows(tail) => {
                    judge(tail, rest, place, sink);
                }
                Tail::Refused => {
                    let hint = format!("nothing is passed on behind `--` by `{}`", usage.name);
                    sink.refuse(ARGUMENT_REFUSED, word, hint);
                }
            }
            break;
        }
        if word.starts_with('-') {
            rest = option(usage, word, rest, &mut line, place, sink);
            continue;
        }
        line.operands.push(word);
        if let OptionPosition::BeforeOperand(following) = usage.option_position {
            judge(following, rest, place, sink);
            break;
        }
    }
    judge_operands(usage, &line.operands, place, sink);
    sink.record_command_line(|| line.to_command_line(usage.name));
    line
}

fn judge_operands(
    usage: &Usage,
    operands: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    let refuse_from = |first: usize, why: &str, sink: &mut FindingSink<'_>| {
        if let Some(word) = operands.get(first) {
            sink.refuse(
                ARGUMENT_REFUSED,
                word,
                format!("`{}` takes no such word: {why}", usage.name),
            );
        }
    };
    match usage.operands {
        Operands::None(why) => refuse_from(0, why, sink),
        Operands::Each(kind) => {
            for word in operands {
                if sink.is_full() {
                    return;
                }
                judge_word(kind, word, Role::WordOf(usage.name), place, sink);
            }
        }
        Operands::One(kind, what) => {
            match operands.first() {
                Some(word) => judge_word(kind, word, Role::WordOf(usage.name), place, sink),
                None => sink.refuse(
                    ARGUMENT_REFUSED,
                    usage.name,
                    format!("`{}` must name {what}", usage.name),
                ),
            }
            refuse_from(1, what, sink);
        }
    }
}

/// Checks the option `word` and adds its value to `line`; returns the remaining words and its value.
fn option<'r, 'w>(
    usage: &Usage,
    word: &'w str,
    rest: &'r [&'w str],
    line: &mut Line<'w>,
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) -> &'r [&'w str] {
    let Some((opt, given)) = usage.options().find_map(|opt| match_option(opt, word)) else {
        sink.refuse(OPTION_REFUSED, word, how_to_spell(usage, word));
        return rest;
    };
    match given {
        OptionValue::Nothing => rest,
        OptionValue::Here(kind, value) => {
            line.values.push((opt.name, value));
            judge_word(kind, value, Role::ValueOf(opt.name), place, sink);
            rest
        }
        OptionValue::Next(kind) => {
            let Some((value, after)) = rest.split_first() else {
                sink.refuse(VALUE_REFUSED, word, format!("{} needs a value", opt.name));
                return rest;
            };
            line.values.push((opt.name, value));
            judge_word(kind, value, Role::ValueOf(opt.name), place, sink);
            after
        }
    }
}

/// Suggests a spelling for an unknown option.
fn how_to_spell(usage: &Usage, word: &str) -> String {
    let name = word.split('=').next().unwrap_or(word);
    if let Some(opt) = usage.options().find(|opt| opt.name == name) {
        return format!("`{}` takes it in this form: `{opt}`", usage.name);
    }
    // Several letters in one word, each of which is an option.
    let letters: Vec<String> = word
        .trim_start_matches('-')
        .chars()
        .map(|c| format!("-{c}"))
        .collect();
    let is_flag = |letter: &String| {
        usage
            .options()
            .any(|opt| opt.name == letter && matches!(opt.forms, Forms::Bare))
    };
    if !word.starts_with("--") && letters.len() > 1 && letters.iter().all(is_flag) {
        return format!(
            "write each letter as an option of its own: `{}`",
            letters.join(" ")
        );
    }
    let mut near: Vec<(usize, String)> = usage
        .options()
        .map(|opt| (shared(opt.name, name), opt.to_string()))
        .collect();
    near.sort_by_key(|(shared, _)| std::cmp::Reverse(*shared));
    near.truncate(NEAR);
    let near: Vec<String> = near
        .into_iter()
        .map(|(_, form)| format!("`{form}`"))
        .collect();
    let leave = format!(
        "`{}` has no such option in the list of harmless ones; leave it out",
        usage.name
    );
    if near.is_empty() {
        leave
    } else {
        format!("{leave}, or take one that is: {}", near.join(", "))
    }
}

/// The most options that are suggested for an unknown one.
const NEAR: usize = 5;

/// The length of the common prefix of two names.
fn shared(one: &str, other: &str) -> usize {
    one.chars()
        .zip(other.chars())
        .take_while(|(a, b)| a == b)
        .count()
}

enum OptionValue<'w> {
    Nothing,
    Here(WordKind, &'w str),
    Next(WordKind),
}

/// Parses `word` as this option, if it matches.
fn match_option<'w>(opt: &'static Opt, word: &'w str) -> Option<(&'static Opt, OptionValue<'w>)> {
    let value = word.strip_prefix(opt.name)?;
    let given_option_value = match (opt.forms, value) {
        (Forms::Bare | Forms::MaybeGlued(_) | Forms::MaybeJoined(_), "") => OptionValue::Nothing,
        (Forms::Value(kind) | Forms::Short(kind), "") => OptionValue::Next(kind),
        (Forms::Short(kind) | Forms::MaybeGlued(kind), value) => OptionValue::Here(kind, value),
        (Forms::Value(kind) | Forms::MaybeJoined(kind) | Forms::Joined(kind), value)
            if opt.name.len() > 2 =>
        {
            OptionValue::Here(kind, value.strip_prefix('=')?)
        }
        _ => return None,
    };
    Some((opt, given_option_value))
}

/// The role of a word in a command line, for readers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Role<'a> {
    /// An operand of this program.
    WordOf(&'a str),
    /// The value of this option or variable.
    ValueOf(&'a str),
}

/// An option for readers: `--jobs N`, `-j[N]`, `--watch=false`.
impl fmt::Display for Opt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name;
        match self.forms {
            Forms::Bare => f.write_str(name),
            Forms::Value(kind) | Forms::Short(kind) => write!(f, "{name} {kind}"),
            Forms::MaybeGlued(kind) => write!(f, "{name}[{kind}]"),
            Forms::MaybeJoined(kind) => write!(f, "{name}[={kind}]"),
            Forms::Joined(kind) => write!(f, "{name}={kind}"),
        }
    }
}

/// A word for readers.
impl fmt::Display for WordKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number => f.write_str("N"),
            Self::Name | Self::Label => f.write_str("NAME"),
            Self::Labels => f.write_str("NAME,NAME"),
            Self::Input => f.write_str("PATH"),
            Self::Output | Self::Made => f.write_str("OUT"),
            Self::Owned => f.write_str("DIR"),
            Self::OneOf(values) => f.write_str(&values.join("|")),
            // Other quotes: text between backticks is typed literally.
            Self::Fits(_, wanted) => write!(f, "<{}>", wanted.replace('`', "'")),
        }
    }
}

/// The words after those that select the program: operands, options, and what may follow `--`.
impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.operands {
            Operands::None(_) => f.write_str("no other word")?,
            Operands::Each(kind) => write!(f, "any number of {kind}")?,
            Operands::One(kind @ WordKind::OneOf(_), _) => write!(f, "one word: {kind}")?,
            Operands::One(_, what) => write!(f, "one word: {what}")?,
        }
        let options: Vec<String> = self.options().map(|opt| format!("`{opt}`")).collect();
        if !options.is_empty() {
            write!(f, "; options {}", options.join(" "))?;
        }
        if let OptionPosition::BeforeOperand(following) = self.option_position {
            write!(f, "; behind that word {following}")?;
        }
        match self.tail {
            Tail::Refused => Ok(()),
            Tail::Follows(tail) => write!(f, "; behind `--` {tail}"),
        }
    }
}

impl fmt::Display for Role<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WordOf(name) => write!(f, "a word for `{name}`"),
            Self::ValueOf(name) => write!(f, "the value of {name}"),
        }
    }
}

/// Checks one word of a known kind.
pub(super) fn judge_word(
    kind: WordKind,
    word: &str,
    role: Role<'_>,
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    let access = match kind {
        WordKind::Input => Access::Read,
        WordKind::Output => Access::Write,
        WordKind::Made => Access::Make,
        WordKind::Owned => Access::Own,
        _ => {
            if let Err(requested) = fits(kind, word) {
                sink.refuse(VALUE_REFUSED, word, format!("{role} must be {requested}"));
            }
            return;
        }
    };
    if let Err(refusal) = place.check(word, access) {
        sink.refuse(refusal.code, word, refusal.hint);
    }
}

fn fits(kind: WordKind, word: &str) -> Result<(), String> {
    let (fits, request) = match kind {
        WordKind::Number => {
            let is_number = !word.is_empty()
                && word.len() <= 6
                && word.bytes().all(|byte| byte.is_ascii_digit());
            (is_number, "a number".to_owned())
        }
        WordKind::Name => (is_name(word), "a plain name".to_owned()),
        WordKind::Label => (is_label(word), "a plain name".to_owned()),
        WordKind::Labels => (
            word.split(',').all(is_label),
            "plain names, separated by commas".to_owned(),
        ),
        WordKind::OneOf(values) => (
            values.contains(&word),
            format!("one of: {}", values.join(", ")),
        ),
        WordKind::Fits(rule, wanted) => (rule(word), wanted.to_owned()),
        WordKind::Input | WordKind::Output | WordKind::Made | WordKind::Owned => {
            (true, String::new())
        }
    };
    if fits { Ok(()) } else { Err(request) }
}

/// Letters, digits and `_ . + -`; the first one is a letter, a digit or `_`.
pub(super) fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && word
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.+-".contains(&byte))
}

/// Names separated by `:` or `/`; `::` is one separator.
pub(super) fn is_label(word: &str) -> bool {
    word.replace("::", ":").split([':', '/']).all(is_name)
}
