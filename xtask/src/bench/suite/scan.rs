//! The secret scan over source text, on one core, beside reading the same files.

use crucible_secrets::Scanner;

use super::bench::{Bench, Context};
use super::measure::{Case, Goal, side_by_side, timed};
use crate::error::TaskError;

/// The least megabytes a second.
const LEAST: f64 = 200.0;

/// The bench of the secret scan.
pub(super) struct Scan;

impl Bench for Scan {
    fn name(&self) -> &'static str {
        "scan"
    }

    fn run(&self, context: &Context<'_>) -> Result<Vec<Case>, TaskError> {
        let scanner = Scanner::builtin();
        let mut cases = Vec::new();
        for tree in context.trees()?.both() {
            let contents = tree.contents()?;
            let scan = || {
                let (time, _) = timed(|| {
                    contents
                        .iter()
                        .map(|bytes| scanner.scan(bytes).len())
                        .sum::<usize>()
                });
                Ok(time)
            };
            let read = || {
                let (time, read) = timed(|| tree.contents());
                read.map(|_| time)
            };
            cases.push(Case {
                bench: self.name(),
                ours: format!("secret scan: {}", tree.name),
                beside: "reading".to_owned(),
                pair: side_by_side(context.rounds, scan, read)?,
                goal: Goal::BytesPerSecond {
                    bytes: tree.bytes,
                    megabytes: LEAST,
                },
            });
        }
        Ok(cases)
    }
}
