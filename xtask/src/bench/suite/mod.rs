//! What is measured, and how it is told.
//!
//! Each bench is one file and one entry of [`BENCHES`]: it brings its cases, each of them ours beside another, and
//! the frame around them measures in turns, takes medians and reports.

mod asking;
// The budget's book in the ledger belongs to the program, which is no library; this is its very file.
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
use std::path::PathBuf;

use super::BenchArgs;
use crate::error::TaskError;
use crate::process::Call;
use crate::root::Root;
use measure::Case;
use tree::Trees;

/// What a bench may use.
#[derive(Debug)]
struct Context<'a> {
    root: &'a Root,
    rounds: u32,
    /// The source trees that are measured on, found when the first bench asks for them.
    trees: OnceCell<Trees>,
}

impl Context<'_> {
    /// Builds the program in release and tells where it is.
    fn program(&self) -> Result<PathBuf, TaskError> {
        Call::cargo(self.root).args(["build", "--quiet", "--release", "--package", "crucible"]).run()?;
        Ok(self.root.target().join("release/crucible"))
    }

    /// The source trees that are measured on.
    fn trees(&self) -> Result<&Trees, TaskError> {
        if let Some(trees) = self.trees.get() {
            return Ok(trees);
        }
        let found = Trees::find(self.root)?;
        Ok(self.trees.get_or_init(|| found))
    }
}

/// One subject that is measured.
trait Bench {
    /// The word that selects it.
    fn name(&self) -> &'static str;
    /// Measures every case of it.
    fn run(&self, context: &Context<'_>) -> Result<Vec<Case>, TaskError>;
}

/// Every bench.
const BENCHES: &[&dyn Bench] = &[
    &startup::Startup,
    &pack::Pack,
    &snapshot::Snapshot,
    &patch::PatchCheck,
    &ledger::Appends,
    &run_overhead::WholeRun,
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
    let context = Context { root, rounds: args.rounds, trees: OnceCell::new() };
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

/// Turns what a crate of the product says into the error of a bench.
fn unmeasured<E: std::fmt::Display>(bench: &'static str) -> impl Fn(E) -> TaskError {
    move |error| TaskError::Unmeasured { bench, reason: error.to_string() }
}

fn choose(names: &[String]) -> Result<Vec<&'static dyn Bench>, TaskError> {
    if names.is_empty() {
        return Ok(BENCHES.to_vec());
    }
    names
        .iter()
        .map(|name| {
            BENCHES.iter().copied().find(|bench| bench.name() == name).ok_or_else(|| {
                TaskError::UnknownBench {
                    name: name.clone(),
                    known: BENCHES.iter().map(|bench| bench.name()).collect::<Vec<_>>().join(", "),
                }
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
        assert_eq!(choose(&["startup".to_owned()]).map(|one| one.len()).ok(), Some(1));
        let unknown = choose(&["no-such".to_owned()]).err().map(|error| error.to_string());
        assert!(unknown.is_some_and(|text| text.contains("no-such") && text.contains("startup")));
    }
}
