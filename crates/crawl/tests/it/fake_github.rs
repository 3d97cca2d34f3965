//! The real `gh` of this machine with a fake GitHub.

#![expect(
    clippy::disallowed_methods,
    reason = "gh and git are found as a user's would be, by PATH"
)]

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crucible_host::env::Environment;
use crucible_repo::{Gh, GhDeadlines};
use crucible_sandbox::Sandbox;
use crucible_testkit::FakeGitHub;

/// Longer than any answer takes on a busy machine.
const LONG: Duration = Duration::from_secs(300);

/// The environment of a user in `directory` who is logged in to the fake, with these additional
/// variables.
pub(crate) fn environment(
    fake: &FakeGitHub,
    directory: &Path,
    more: &[(&str, &str)],
) -> Environment {
    let mut pairs: Vec<(OsString, OsString)> = vec![
        ("PATH".into(), std::env::var_os("PATH").unwrap()),
        ("HOME".into(), "/nonexistent".into()),
    ];
    pairs.extend(fake.env());
    pairs.extend(
        more.iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value))),
    );
    Environment::from_pairs(pairs, directory)
}

/// That user's `gh`.
pub(crate) fn gh(env: &Environment) -> Gh {
    let patient = GhDeadlines {
        answer: LONG,
        download: LONG,
    };
    Gh::new(Arc::new(Sandbox::new(None, env)), env).with_deadlines(patient)
}
