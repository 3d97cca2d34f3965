//! Names that are written to files, and so must not be secrets.

use std::error::Error;
use std::fmt::{self, Display, Formatter};

use crate::Scanner;

/// Refuses a name that looks like a secret. `what` says what it names.
///
/// # Errors
///
/// Fails if a rule matches the name.
pub fn free_of_secrets(what: &'static str, name: &str) -> Result<(), SecretInName> {
    match Scanner::builtin().scan(name.as_bytes()).first() {
        Some(found) => Err(SecretInName {
            what,
            rule: found.rule.to_string(),
        }),
        None => Ok(()),
    }
}

/// A name that looks like a secret; it is not shown.
#[derive(Debug)]
pub struct SecretInName {
    what: &'static str,
    rule: String,
}

impl Display for SecretInName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { what, rule } = self;
        write!(
            f,
            "{what} looks like a secret ({rule}), and would be written to receipts and other files"
        )
    }
}

impl Error for SecretInName {}

impl SecretInName {
    /// What the user can do.
    pub const HINT: &str =
        "Choose another name. If it is a real secret, revoke it: the shell history contains it.";
}
