//! `./configure` and the programs that generate it. Refused are assignments, which can replace compilers,
//! other macro directories, and everything that would create links.

use super::super::finding::{ARGUMENT_REFUSED, FindingSink, OPTION_REFUSED};
use super::super::grammar::{self, Kind, Operands, Role, Usage, flag, is_name, joined, value};
use super::super::paths::Place;
use super::form::{Form, form, plain};

const TRIPLE: Kind = Kind::Name;

const CONFIGURE: Usage = Usage::new(
    "./configure",
    &[&[
        joined("--prefix", Kind::Output),
        joined("--exec-prefix", Kind::Output),
        joined("--bindir", Kind::Output),
        joined("--sbindir", Kind::Output),
        joined("--libdir", Kind::Output),
        joined("--libexecdir", Kind::Output),
        joined("--includedir", Kind::Output),
        joined("--datadir", Kind::Output),
        joined("--datarootdir", Kind::Output),
        joined("--mandir", Kind::Output),
        joined("--docdir", Kind::Output),
        joined("--sysconfdir", Kind::Output),
        joined("--localstatedir", Kind::Output),
        joined("--host", TRIPLE),
        joined("--build", TRIPLE),
        joined("--target", TRIPLE),
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
        joined("--warnings", Kind::Labels),
    ]],
    Operands::Each(Kind::Output),
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
        joined("--warnings", Kind::Labels),
    ]],
    Operands::Each(Kind::Output),
);
const AUTOCONF: Usage = Usage::new(
    "autoconf",
    &[&[
        flag("-f"),
        flag("--force"),
        flag("-v"),
        flag("--verbose"),
        flag("-Wall"),
        joined("--warnings", Kind::Labels),
        value("--output", Kind::Output),
    ]],
    Operands::Each(Kind::Input),
);

pub(super) const CONFIGURE_FORMS: &[Form] = &[form(&[], &CONFIGURE, judge_configure)
    .also("features too: `--enable-NAME[=NAME]`, `--disable-NAME`, `--with-NAME[=NAME]`, `--without-NAME`")];
pub(super) const AUTORECONF_FORMS: &[Form] = &[plain(&[], &AUTORECONF)];
pub(super) const AUTOMAKE_FORMS: &[Form] =
    &[form(&[], &AUTOMAKE, judge_automake).also("`--add-missing` only with `--copy`")];
pub(super) const AUTOCONF_FORMS: &[Form] = &[plain(&[], &AUTOCONF)];

fn judge_configure(
    usage: &'static Usage,
    words: &[&str],
    place: Place<'_>,
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
    grammar::judge_word(Kind::Input, "./configure", Role::WordOf("sh"), place, sink);
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
    place: Place<'_>,
    sink: &mut FindingSink<'_>,
) {
    grammar::judge(usage, words, place, sink);
    let holds = |options: [&str; 2]| words.iter().any(|word| options.contains(word));
    if holds(["-a", "--add-missing"]) && !holds(["-c", "--copy"]) {
        let hint = "without --copy the missing files become links to the system's own; add --copy";
        sink.refuse(ARGUMENT_REFUSED, "automake --add-missing", hint);
    }
}
