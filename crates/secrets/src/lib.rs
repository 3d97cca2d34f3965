//! Secret rules, scanning and redaction.
//!
//! What it owns: the rules in `rules.toml`, the scanner that runs them, redaction of whole texts and of streams, finding values that
//! somebody was handed, and the list of file names that hold secrets whatever stands in them.
//!
//! How it works: the keywords of all rules are found first. Where a keyword stands, the rule's regex is tried, anchored
//! there and on at most [`REACH`] bytes, so the work is linear in the input whatever it holds, and the answer depends on
//! nothing farther away (but for the lines of a private key above its END line, of which at most 16 KiB count). That is why a stream redacts to the same bytes however it is cut into pieces. A rule is
//! read and its regex compiled when its keyword is met for the first time, and the automaton that finds keywords in much text is made
//! when there is much text: a short text costs next to nothing, also the first one.
//!
//! What always holds: no I/O, no clock, no environment. No value in this crate shows a secret in its `Debug` or in a finding.

mod file_name;
mod handed;
mod judge;
mod key_lines;
mod keywords;
mod report;
mod rule;
mod scanner;
mod stream;
mod walk;

pub use file_name::{is_secret_directory, is_secret_file};
pub use handed::{HandedKeys, SHORTEST_HANDED};
pub use report::findings;
pub use rule::{RuleId, RulesError};
pub use scanner::{MARKER_BEGIN, Redacted, Scanner, SecretMatch};
pub use stream::{HELD_BACK, StreamRedactor};
pub use walk::REACH;
