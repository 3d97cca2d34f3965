//! The variables that a step may set: a short list, because most others choose what is executed or where
//! it comes from.

use super::finding::{ENV_KEY_REFUSED, ENV_VALUE_REFUSED, FindingSink};

/// The allowed variables, in groups; `docs/codes/build.md` lists them for readers.
pub(super) const ALLOWED: &[&str] = &[
    // Any build system.
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

/// Variables that name a compiler, with the allowed names; a version such as `gcc-14` may follow.
pub(super) const COMPILERS: &[(&str, &[&str])] = &[
    ("CC", &["gcc", "clang", "cc"]),
    ("CXX", &["g++", "clang++", "c++"]),
];

/// The longest value, in bytes.
const MAX_LEN: usize = 128;

/// Judges one variable.
pub(super) fn judge(key: &str, value: &str, sink: &mut FindingSink<'_>) {
    if let Some((_, names)) = COMPILERS.iter().find(|(variable, _)| *variable == key) {
        if !is_compiler(value, names) {
            let hint = format!(
                "{key} is the bare name of a compiler, with or without its version: {}",
                names.join(", ")
            );
            sink.refuse(ENV_VALUE_REFUSED, &format!("{key}={value}"), hint);
        }
        return;
    }
    if !ALLOWED.contains(&key) {
        let hint =
            "this variable is not on the list of harmless ones (docs/codes/build.md); leave it out";
        sink.refuse(ENV_KEY_REFUSED, key, hint);
        return;
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.,:=+@".contains(&byte);
    if value.len() > MAX_LEN || !value.bytes().all(is_plain) {
        let hint = "a value is at most 128 letters, digits and - _ . , : = + @, without a path";
        sink.refuse(ENV_VALUE_REFUSED, &format!("{key}={value}"), hint);
    }
}

/// How a variable is written as an entry of `env`.
pub(super) fn entry(name: &str, value: &str) -> String {
    format!(
        "{{\"{name}\": \"{value}\"}} in a plan, {{\"name\": \"{name}\", \"value\": \"{value}\"}} in a reply"
    )
}

/// Whether a step may set this variable at all.
pub(super) fn is_allowed(key: &str) -> bool {
    ALLOWED.contains(&key) || COMPILERS.iter().any(|(variable, _)| *variable == key)
}

/// Whether a value is a bare compiler name, which is looked up only in `PATH`.
fn is_compiler(value: &str, names: &[&str]) -> bool {
    let is_version = |text: &str| {
        let digits = text.strip_prefix('-').unwrap_or_default();
        text.is_empty()
            || (!digits.is_empty()
                && digits.len() <= 2
                && digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    names
        .iter()
        .any(|name| value.strip_prefix(name).is_some_and(is_version))
}
