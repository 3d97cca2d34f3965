//! Formats in which runners report test by test, one file each.

mod automake;
mod gtest;
pub(super) mod jest_json;
pub(super) mod junit;
pub(super) mod libtest;
mod name;
pub(super) mod nextest;
pub(super) mod tap;
pub(super) mod trx;
pub(super) mod unittest;
pub(super) mod xml;

use super::CommandOutput;
use crate::results::TestResults;

pub(super) use name::{Numbered, add};

/// Parses the output of an unknown runner, for formats that are recognisable.
pub(super) fn any_stream(output: &CommandOutput<'_>) -> Option<TestResults> {
    let readers: [fn(&CommandOutput<'_>) -> TestResults; 6] = [
        nextest::read,
        libtest::read,
        unittest::read,
        gtest::read,
        automake::read,
        |output| tap::read(&output.stdout, output),
    ];
    readers
        .iter()
        .map(|read| read(output))
        .find(|results| !results.tests.is_empty())
}
