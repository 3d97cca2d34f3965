//! `./configure` and the programs that generate it. Refused are assignments, which can replace compilers,
//! other macro directories, and everything that would create links.

use super::super::finding::{ARGUMENT_REFUSED, FindingSink, OPTION_REFUSED};
use super::super::grammar::{
    self, Operands, Role, Usage, WordKind, flag, is_name, required_long_value, value,
};
use super::super::paths::StepDirectory;
use super::form::{CommandForm, form, plain};

const TRIPLE: WordKind = WordKind::Name;

const CONFIGURE: Usage = Usage::new(
    "./configure",
    &[&[
        required_long_value("--prefix", WordKind::Output),
        required_long_value("--exec-prefix", WordKind::Output),
        required_long_value("--bindir", WordKind::Output),
        required_long_value("--sbindir", WordKind::Output),
        required_long_value("--libdir", WordKind::Output),
        required_long_value("--libexecdir", WordKind::Output),
        required_long_value("--includedir", WordKind::Output),
        required_long_value("--datadir", WordKind::Output),
        required_long_value("--datarootdir", WordKind::Output),
        required_long_value("--mandir", WordKind::Output),
        required_long_value("--docdir", WordKind::Output),
        required_long_value("--sysconfdir", WordKind::Output),
        required_long_value("--localstatedir", WordKind::Output),
        required_long_value("--host", TRIPLE),
        required_long_value("--build", TRIPLE),
        required_long_value("--target", TRIPLE),
        flag("--quiet"),
        flag("-q"),
        flag("--silent"),
        flag("--disable-option-checking"),
    ]],
    Operands::None("variables on the command line can choose what it runs"),
);

const AUTORECONF: Usage = Usage::new(
    "autoreconf",
    &[&[
        flag("-i"),
        flag("--install"),
        flag("-f"),
        flag("--force"),
        flag("-v"),
        flag("--verbose"),
        flag("-fi"),
        flag("-if"),
        flag("-iv"),
        flag("-vi"),
        flag("-fiv"),
        flag("-fvi"),
        flag("-ivf"),
        flag("-ifv"),
        flag("-vif"),
        flag("-vfi"),
        flag("--no-recursive"),
        flag("-Wall"),
        required_long_value("--warnings", WordKind::Labels),
    ]],
    Operands::Each(WordKind::Output),
);
const AUTOMAKE: Usage = Usage::new(
    "automake",
    &[&[
        flag("-a"),
        flag("--add-missing"),
        flag("-c"),
        flag("--copy"),
        flag("-f"),
        flag("--force-missing"),
        flag("--foreign"),
        flag("--gnu"),
        flag("--gnits"),
        flag("-v"),
        flag("--verbose"),
        flag("-Wall"),
        required_long_value("--warnings", WordKind::Labels),
    ]],
    Operands::Each(WordKind::Output),
);
const AUTOCONF: Usage = Usage::new(
    "autoconf",
    &[&[
        flag("-f"),
        flag("--force"),
        flag("-v"),
        flag("--verbose"),
        flag("-Wall"),
        required_long_value("--warnings", WordKind::Labels),
        value("--output", WordKind::Output),
    ]],
    Operands::Each(WordKind::Input),
);

pub(super) const CONFIGURE_FORMS: &[CommandForm] = &[form(&[], &CONFIGURE, judge_configure)
    .with_condition("features too: `--enable-NAME[=NAME]`, `--disable-NAME`, `--with-NAME[=NAME]`, `--without-NAME`")];
pub(super) const AUTORECONF_FORMS: &[CommandForm] = &[plain(&[], &AUTORECONF)];
pub(super) const AUTOMAKE_FORMS: &[CommandForm] =
    &[form(&[], &AUTOMAKE, judge_automake).with_condition("`--add-missing` only with `--copy`")];
pub(super) const AUTOCONF_FORMS: &[CommandForm] = &[plain(&[], &AUTOCONF)];

fn judge_configure(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    let (features, others): (Vec<&str>, Vec<&str>) =
        words.iter().partition(|word| is_feature(word));
    for word in features {
        let value = word.split_once('=').map_or("yes", |(_, value)| value);
        if !is_name(value) {
            let hint = "a feature's value is a plain name such as yes, no or system";
            sink.refuse(OPTION_REFUSED, word, hint);
        }
    }
    grammar::judge_word(
        WordKind::Input,
        "./configure",
        Role::WordOf("sh"),
        place,
        sink,
    );
    grammar::judge(usage, &others, place, sink);
}

/// `--enable-x`, `--disable-x`, `--with-x`, `--without-x`, the first and third with or without a value.
fn is_feature(word: &str) -> bool {
    let (option, value) = word
        .split_once('=')
        .map_or((word, None), |(option, value)| (option, Some(value)));
    let named = |start: &str| option.strip_prefix(start).is_some_and(is_name);
    let takes_value = named("--enable-") || named("--with-");
    takes_value
        || (value.is_none()
            && (named("--disable-") || named("--without-"))
            && option != "--disable-option-checking")
}

fn judge_automake(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    grammar::judge(usage, words, place, sink);
    let holds = |options: [&str; 2]| words.iter().any(|word| options.contains(word));
    if holds(["-a", "--add-missing"]) && !holds(["-c", "--copy"]) {
        let hint = "without --copy the missing files become links to the system's own; add --copy";
        sink.refuse(ARGUMENT_REFUSED, "automake --add-missing", hint);
    }
}
