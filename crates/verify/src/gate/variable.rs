//! Checks the environment variables that a gate may set.
//!
//! A gate's settings may come with a cloned repository. They take effect only inside the sandbox, and the
//! gate's own script could set them as well. The rule therefore protects the reader of a command, not the
//! machine: `cargo test` starts the user's cargo without injected code, and git works on the copy. Variables
//! that would change that are refused from any source.

/// Why a gate may not set a variable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VariableError {
    /// It is not a name of a variable.
    #[error("invalid variable name {name:?}; use letters, digits and `_`, no digit first")]
    Name {
        /// The name.
        name: String,
    },
    /// It changes which programs run, what they load or which repository git uses.
    #[error(
        "a gate cannot set {name}, which decides what program runs; set it in a script that the gate calls"
    )]
    Reserved {
        /// The name.
        name: String,
    },
    /// The value is not valid in an environment.
    #[error("the value of {name} holds a NUL byte")]
    Value {
        /// The name.
        name: String,
    },
}

/// Names that are not a gate's to set.
const RESERVED: [&str; 6] = ["PATH", "HOME", "BASH_ENV", "ENV", "IFS", "SHELLOPTS"];
/// Beginnings of such names.
const RESERVED_BEGINNINGS: [&str; 4] = ["LD_", "DYLD_", "GIT_", "CRUCIBLE_"];
/// Names that begin like reserved ones and only say who commits and when, as tests of tools around git do.
const IDENTITY: [&str; 2] = ["GIT_AUTHOR_", "GIT_COMMITTER_"];

/// Checks that a gate may set the variable `name` to `value`.
///
/// # Errors
///
/// See [`VariableError`].
pub fn check_variable(name: &str, value: &str) -> Result<(), VariableError> {
    let name_of = || name.chars().take(80).collect::<String>();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.is_empty()
        || name.starts_with(|c: char| c.is_ascii_digit())
        || !name.bytes().all(is_plain)
    {
        return Err(VariableError::Name { name: name_of() });
    }
    let begins = |list: &[&str]| list.iter().any(|beginning| name.starts_with(beginning));
    if RESERVED.contains(&name) || begins(&RESERVED_BEGINNINGS) && !begins(&IDENTITY) {
        return Err(VariableError::Reserved { name: name_of() });
    }
    if value.contains('\0') {
        return Err(VariableError::Value { name: name_of() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_variables_are_accepted() {
        for name in [
            "PYTHONPATH",
            "CI",
            "_x",
            "DATABASE_URL",
            "GIT_AUTHOR_NAME",
            "GIT_COMMITTER_DATE",
            "LDFLAGS",
        ] {
            assert_eq!(check_variable(name, "a=b c"), Ok(()), "{name}");
        }
    }

    #[test]
    fn variables_that_choose_programs_are_refused() {
        for name in [
            "PATH",
            "HOME",
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "DYLD_INSERT_LIBRARIES",
            "BASH_ENV",
            "GIT_DIR",
            "GIT_CONFIG_GLOBAL",
            "CRUCIBLE_HOME",
        ] {
            assert!(
                matches!(
                    check_variable(name, ""),
                    Err(VariableError::Reserved { .. })
                ),
                "{name}"
            );
        }
        for name in ["", "1A", "A-B", "A B", "Ä", "A=B", "A\n"] {
            assert!(
                matches!(check_variable(name, ""), Err(VariableError::Name { .. })),
                "{name}"
            );
        }
        assert!(matches!(
            check_variable("A", "a\0b"),
            Err(VariableError::Value { .. })
        ));
    }
}
