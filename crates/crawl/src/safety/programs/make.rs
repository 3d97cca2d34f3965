//! make: builds targets of the Makefile at hand. Variables can replace the programs that it runs, so only a few harmless
//! ones may be set, and no option chooses another Makefile or evaluates text.

use super::super::finding::{Desk, VALUE_REFUSED};
use super::super::grammar::{
    self, Kind, Operands, Role, Usage, flag, is_label, joined, maybe_glued, maybe_joined, short, value,
};
use super::super::paths::Place;

/// Variables that say where to install to.
const PLACES: &[&str] = &["PREFIX", "prefix", "DESTDIR", "BUILDDIR"];
/// Variables that switch something on or off.
const SWITCHES: &[&str] = &["V", "VERBOSE", "Q", "DEBUG", "RELEASE", "NDEBUG", "STATIC", "SHARED"];

const USAGE: Usage = Usage::new(
    "make",
    &[&[
        maybe_glued("-j", Kind::Number),
        maybe_joined("--jobs", Kind::Number),
        flag("-k"),
        flag("--keep-going"),
        flag("-s"),
        flag("--silent"),
        flag("--quiet"),
        flag("-B"),
        flag("--always-make"),
        flag("--no-print-directory"),
        flag("-w"),
        flag("--print-directory"),
        flag("-O"),
        flag("-n"),
        flag("--dry-run"),
        short("-C", Kind::Input),
        value("--directory", Kind::Input),
        joined("--output-sync", Kind::OneOf(&["line", "target", "recurse", "none"])),
    ]],
    Operands::Each(Kind::Fits(
        |word| is_label(word) || word.contains('='),
        "a target, or one of the variables PREFIX, DESTDIR, V, VERBOSE, DEBUG, ... with a plain value",
    )),
);

pub(super) fn judge(words: &[&str], place: Place<'_>, desk: &mut Desk<'_>) {
    let operands = grammar::judge(&USAGE, words, place, desk);
    for word in &operands {
        let Some((name, value)) = word.split_once('=') else { continue };
        if PLACES.contains(&name) {
            grammar::judge_word(Kind::Output, value, Role::ValueOf(name), place, desk);
        } else if SWITCHES.contains(&name) {
            grammar::judge_word(
                Kind::OneOf(&["0", "1", "2", "yes", "no", "true", "false"]),
                value,
                Role::ValueOf(name),
                place,
                desk,
            );
        } else {
            let hint = format!(
                "variables can choose what make runs; only these may be set: {}, {}",
                PLACES.join(", "),
                SWITCHES.join(", ")
            );
            desk.refuse(VALUE_REFUSED, word, hint);
        }
    }
    if operands.iter().any(|word| word.starts_with("install")) {
        super::warn_of_outside("make install", words, PLACES, desk);
    }
}
