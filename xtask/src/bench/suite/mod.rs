//! What is measured, and how it is reported.
//!
//! Each bench is one file and one entry of [`BENCHES`]: it brings its cases, each of them ours beside another, and
//! the frame around them measures in turns, takes medians and reports.

mod agents;
mod asking;
mod bench;
// The budget's book in the ledger belongs to the program, which is not a library; this is its very file.
mod council;
mod crawl;
mod deliberation;
mod forge;
mod forge_gates;
mod layers;
mod ledger;
mod measure;
mod model_server;
mod pack;
mod patch;
mod report;
mod run_overhead;
mod run_record;
mod scan;
mod skill_run;
mod snapshot;
mod spec;
mod spec_packet;
mod startup;
mod tree;

use std::cell::OnceCell;

use super::BenchArgs;
use crate::error::TaskError;
use crate::root::Root;
use bench::{Bench, Context};

/// Every bench.
const BENCHES: &[&dyn Bench] = &[
    &startup::Startup,
    &pack::Pack,
    &snapshot::Snapshot,
    &patch::PatchCheck,
    &ledger::Appends,
    &run_overhead::WholeRun,
    &agents::Agents,
    &scan::Scan,
    &skill_run::SkillRun,
    &run_record::RunRecords,
    &layers::Layers,
    &council::Council,
    &crawl::Crawl,
    &deliberation::Deliberation,
    &spec_packet::SpecPacket,
    &spec::Specs,
    &forge::ForgeCopy,
    &forge_gates::ForgeGates,
];

/// Measures, prints a table and writes `target/bench.json`.
pub(crate) fn run(root: &Root, args: &BenchArgs) -> Result<(), TaskError> {
    if let (Some(address), Some(text)) = (&args.ask_at_once, &args.about) {
        return council::ask_at_once(address, text);
    }
    if let Some(tree) = &args.inspect_once {
        return crawl::inspect_once(tree);
    }
    if let (Some(address), Some(question)) = (&args.deliberate_once, &args.question) {
        return deliberation::deliberate_once(address, question);
    }
    let context = Context {
        root,
        rounds: args.rounds,
        trees: OnceCell::new(),
    };
    let chosen = choose(&args.names)?;
    let mut cases = Vec::new();
    for bench in chosen {
        eprintln!("measuring {}", bench.name());
        cases.extend(bench.run(&context)?);
    }
    println!("{}", report::table(&cases));
    let path = root.target().join("bench.json");
    report::write(&path, &cases, args.rounds)?;
    println!("written to {}", path.display());
    Ok(())
}

fn choose(names: &[String]) -> Result<Vec<&'static dyn Bench>, TaskError> {
    if names.is_empty() {
        return Ok(BENCHES.to_vec());
    }
    names
        .iter()
        .map(|name| {
            BENCHES
                .iter()
                .copied()
                .find(|bench| bench.name() == name)
                .ok_or_else(|| TaskError::UnknownBench {
                    name: name.clone(),
                    known: BENCHES
                        .iter()
                        .map(|bench| bench.name())
                        .collect::<Vec<_>>()
                        .join(", "),
                })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benches_are_chosen_by_name() {
        assert_eq!(choose(&[]).map(|all| all.len()).ok(), Some(BENCHES.len()));
        assert_eq!(
            choose(&["startup".to_owned()]).map(|one| one.len()).ok(),
            Some(1)
        );
        let unknown = choose(&["no-such".to_owned()])
            .err()
            .map(|error| error.to_string());
        assert!(unknown.is_some_and(|text| text.contains("no-such") && text.contains("startup")));
    }
}
