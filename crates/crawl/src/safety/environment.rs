//! The variables that a step may set: a short list, because most of the others choose what is run or from where it comes.

use super::finding::{Desk, ENV_KEY_REFUSED, ENV_VALUE_REFUSED};

/// The variables, in groups; `docs/codes/build.md` names them for readers.
pub(super) const ALLOWED: &[&str] = &[
    // For everybody.
    "CI",
    "FORCE_COLOR",
    "LANG",
    "LC_ALL",
    "NO_COLOR",
    "SOURCE_DATE_EPOCH",
    "TZ",
    "VERBOSE",
    // Rust.
    "CARGO_INCREMENTAL",
    "CARGO_NET_OFFLINE",
    "CARGO_TERM_COLOR",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "RUST_TEST_THREADS",
    // Go.
    "CGO_ENABLED",
    "GO111MODULE",
    "GOARCH",
    "GOOS",
    // Node.
    "BABEL_ENV",
    "DO_NOT_TRACK",
    "HUSKY",
    "NEXT_TELEMETRY_DISABLED",
    "NODE_ENV",
    // Python.
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "PYTHONUNBUFFERED",
    // C and C++.
    "CMAKE_BUILD_PARALLEL_LEVEL",
    "CTEST_OUTPUT_ON_FAILURE",
    "CTEST_PARALLEL_LEVEL",
];

/// The longest value, in bytes.
const LONGEST: usize = 128;

/// Judges one variable.
pub(super) fn judge(key: &str, value: &str, desk: &mut Desk<'_>) {
    if !ALLOWED.contains(&key) {
        let hint = "this variable is not on the list of harmless ones (docs/codes/build.md); leave it out";
        desk.refuse(ENV_KEY_REFUSED, key, hint);
        return;
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.,:=+@".contains(&byte);
    if value.len() > LONGEST || !value.bytes().all(is_plain) {
        let hint = "a value is at most 128 letters, digits and - _ . , : = + @, without a path";
        desk.refuse(ENV_VALUE_REFUSED, &format!("{key}={value}"), hint);
    }
}
