//! Each folder in `scenarios/` and `splices/` is one named test.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a scenario that cannot be read fails its test"
)]

mod patches;
mod splices;

use std::path::Path;
use std::process::ExitCode;

use crucible_testkit::{ScenarioSet, run_scenarios};

fn main() -> ExitCode {
    let folder = |name| {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests")
            .join(name)
    };
    run_scenarios(vec![
        ScenarioSet {
            name: "patches",
            root: folder("scenarios"),
            at_least: 150,
            check: patches::check,
        },
        ScenarioSet {
            name: "splices",
            root: folder("splices"),
            at_least: 66,
            check: splices::check,
        },
    ])
}
