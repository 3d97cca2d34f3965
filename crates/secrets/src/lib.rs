//! Secret rules, scanning and redaction.
//!
//! This crate has the rules in `rules.toml`, their scanner, redaction of texts and streams, the search for
//! known values, and the list of file names that mean a secret.
//!
//! The scanner first finds the keywords of all rules. At each keyword it tries the rule's regex, anchored and
//! on at most [`REACH`] bytes. The work is therefore linear in the input, and the result depends on nothing
//! farther away (but for the lines of a private key above its END line, of which at most 16 KiB count). That
//! is why a stream redacts to the same bytes however it is cut into pieces. A rule is read and its regex
//! compiled when its keyword is met for the first time, and the automaton that finds keywords in much text is
//! made when there is much text: a short text costs next to nothing, also the first one.
//!
//! What always holds: no I/O, no clock, no environment. No value in this crate shows a secret in its `Debug`
//! or in a finding.

mod exit_status;
mod file_name;
mod judge;
mod key_lines;
mod keywords;
mod name;
mod provided;
mod report;
mod rule;
mod scanner;
mod stream;
mod walk;

pub use file_name::{is_secret_directory, is_secret_file};
pub use name::{SecretInName, free_of_secrets};
pub use provided::{ProvidedValues, SHORTEST_PROVIDED};
pub use report::findings;
pub use rule::{RuleId, RulesError};
pub use scanner::{MARKER_BEGIN, Redacted, Scanner, SecretMatch};
pub use stream::{HELD_BACK, StreamRedactor};
pub use walk::REACH;
