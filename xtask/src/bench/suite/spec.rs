//! Specs with many receipts, and many specs: what `status`, `gate` and `project status` take as whole processes.
//!
//! The specs are made as the program makes them, through its own store. Beside a spec with many receipts stands reading all of
//! them with `cat`: what a program would have to do at least that reads them all. Beside many specs stands `find`, which lists their files.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crucible_ledger::Ledger;
use crucible_llm::{LlmReceipt, PipelineReceipt};
use crucible_model::{ClockSource, Digest, Timestamp};
use crucible_spec::{
    FileRecord, LockClaim, PacketReceipt, PhaseEntry, PhaseId, PhaseOutput, PhaseStatus, ReceiptId,
    SpecProject, SpecReceipt, SpecStore,
};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use super::bench::{Bench, Context, unmeasured};
use super::measure::{Case, Goal, side_by_side, timed};
use super::tree::scratch;
use crate::error::TaskError;

/// How many receipts the long spec has, and how many specs the large workspace.
const RECEIPTS: u64 = 1_000;
const SPECS: u64 = 1_000;

/// CPU time of `status` and `gate` on the long spec; wall time of both on a fresh one; wall time of the workspace's status.
const CPU: Goal = Goal::TimeAtMost(Duration::from_millis(15));
const FRESH: Goal = Goal::TimeAtMost(Duration::from_millis(10));
const WORKSPACE: Goal = Goal::TimeAtMost(Duration::from_millis(150));

const BENCH: &str = "spec";

/// The bench of specs.
pub(super) struct Specs;

impl Bench for Specs {
    fn name(&self) -> &'static str {
        BENCH
    }

    fn run(&self, context: &Context<'_>) -> Result<Vec<Case>, TaskError> {
        let program = context.program()?;
        let (long, fresh, many) = (scratch()?, scratch()?, scratch()?);
        let fail = unmeasured(BENCH);
        history(long.path(), "long", RECEIPTS).map_err(&fail)?;
        history(fresh.path(), "fresh", 3).map_err(&fail)?;
        workspace(many.path(), SPECS).map_err(&fail)?;
        let rounds = context.rounds.saturating_mul(4);
        let mut cases = Vec::new();
        let status: &[&str] = &["status", "long"];
        let gate: &[&str] = &["gate", "long"];
        for args in [status, gate] {
            let all = "cat .crucible/specs/long/receipts/*.json";
            let ours = || cpu(|| run(&program, args, long.path()));
            let pair = side_by_side(rounds, ours, || {
                cpu(|| run(Path::new("/bin/sh"), &["-c", all], long.path()))
            })?;
            let own_text = format!("CPU of crucible {}, {RECEIPTS} receipts", args.join(" "));
            cases.push(Case {
                bench: BENCH,
                ours: own_text,
                beside: "CPU of cat of them all".to_owned(),
                pair,
                goal: CPU,
            });
        }
        for args in [&["status", "fresh"][..], &["gate", "fresh"]] {
            let ours = || run(&program, args, fresh.path());
            let pair = side_by_side(rounds, ours, || {
                run(Path::new("/bin/true"), &[], fresh.path())
            })?;
            let ours = format!("crucible {}, 3 receipts", args.join(" "));
            cases.push(Case {
                bench: BENCH,
                ours,
                beside: "/bin/true".to_owned(),
                pair,
                goal: FRESH,
            });
        }
        let ours = || run(&program, &["project", "status"], many.path());
        let find = || {
            run(
                Path::new("/usr/bin/find"),
                &[".crucible", "-type", "f"],
                many.path(),
            )
        };
        cases.push(Case {
            bench: BENCH,
            ours: format!("crucible project status, {SPECS} specs"),
            beside: "find of their files".to_owned(),
            pair: side_by_side(context.rounds, ours, find)?,
            goal: WORKSPACE,
        });
        Ok(cases)
    }
}

type BenchResult<T> = Result<T, Box<dyn std::error::Error>>;

/// A spec whose phases up to tasks ran again and again.
fn history(project: &Path, spec: &str, receipts: u64) -> BenchResult<()> {
    let mut ledger = Ledger::open(&project.join("home/ledger.db"))?;
    let phases = [PhaseId::Requirements, PhaseId::Design, PhaseId::Tasks];
    promote(
        project,
        spec,
        &mut ledger,
        phases.into_iter().cycle().take(usize::try_from(receipts)?),
    )
}

/// A workspace of so many specs, each with its requirements.
fn workspace(project: &Path, specs: u64) -> BenchResult<()> {
    let mut ledger = Ledger::open(&project.join("home/ledger.db"))?;
    let mut listed = "version: \"1\"\nname: \"bench\"\nspecs:\n".to_owned();
    for number in 0..specs {
        let spec = format!("spec-{number:04}");
        promote(project, &spec, &mut ledger, [PhaseId::Requirements])?;
        listed.push_str(&format!(
            "  - id: \"{spec}\"\n    tags: [\"bench\"]\n    added: \"2026-01-31T09:30:00Z\"\n"
        ));
    }
    std::fs::write(project.join("workspace.yaml"), listed)?;
    Ok(())
}

fn promote(
    project: &Path,
    spec: &str,
    ledger: &mut Ledger,
    phases: impl IntoIterator<Item = PhaseId>,
) -> BenchResult<()> {
    let store = SpecStore::new(&SpecProject::at(project), spec.parse()?);
    let lock = store.lock("bench", LockClaim::IfFree)?;
    let ts: Timestamp = "2026-01-31T09:30:00Z".parse()?;
    let text = "a line of a document\n".repeat(200).into_bytes();
    let idea = b"users can export their data\n";
    lock.write_context("idea.md", idea)?;
    for phase in phases {
        let output = format!("artifacts/{}", phase.artifact());
        let input = |path: String, bytes: &[u8]| FileRecord {
            path,
            sha256: Digest::compute(bytes),
            bytes: bytes.len() as u64,
        };
        let artifact = |before: PhaseId| input(format!("artifacts/{}", before.artifact()), &text);
        let earlier = PhaseId::ALL
            .into_iter()
            .filter(|before| *before < phase)
            .map(artifact);
        let inputs = std::iter::once(input("context/idea.md".to_owned(), idea))
            .chain(earlier)
            .collect();
        let ran = PhaseEntry {
            status: PhaseStatus::Success,
            finished_at: Some(ts),
            llm: Some(LlmReceipt {
                provider: Some("gateway".to_owned()),
                model_used: Some("bench".to_owned()),
                tokens_input: Some(1_000),
                tokens_output: Some(500),
                ..LlmReceipt::default()
            }),
            attempts: 1,
            packet: Some(PacketReceipt {
                sha256: Digest::compute(&text),
                bytes: text.len() as u64,
                lines: 200,
                entries: 1,
                left_out: 0,
            }),
            inputs,
            ..PhaseEntry::begun(phase, ts)
        };
        let receipt = SpecReceipt {
            schema_version: String::new(),
            receipt_id: ReceiptId::new(phase, ts, lock.next_sequence()?).to_string(),
            spec_id: spec.to_owned(),
            sequence: 0,
            emitted_at: Some(ts),
            clock: Some(ClockSource::System),
            dry_run: false,
            exit_code: Some(0),
            phases: vec![ran],
            pipeline: Some(PipelineReceipt::default()),
            previous: None,
            last_real: None,
            last_success: None,
            crucible_version: None,
            digest: None,
        };
        lock.promote(
            receipt,
            vec![PhaseOutput {
                path: output,
                bytes: text.clone(),
            }],
            ledger,
        )?;
    }
    Ok(())
}

/// How long the program takes from its start to its end.
fn run(program: &Path, args: &[&str], project: &Path) -> Result<Duration, TaskError> {
    let mut command = Command::new(program);
    command
        .args(args)
        .current_dir(project)
        .env("CRUCIBLE_HOME", project.join("home"));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let text = format!("{} {}", program.display(), args.join(" "));
    let (time, status) = timed(|| command.status());
    match status {
        Ok(status) if status.success() => Ok(time),
        Ok(status) => Err(unmeasured(BENCH)(format!("`{text}` ended with {status}"))),
        Err(source) => Err(TaskError::Spawn {
            command: text,
            source,
        }),
    }
}

/// The CPU time of the processes that `work` starts and waits for.
fn cpu(work: impl FnOnce() -> Result<Duration, TaskError>) -> Result<Duration, TaskError> {
    let used = || -> Result<i64, TaskError> {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(unmeasured(BENCH))?;
        Ok(usage.user_time().num_microseconds() + usage.system_time().num_microseconds())
    };
    let before = used()?;
    work()?;
    Ok(Duration::from_micros(
        u64::try_from(used()? - before).unwrap_or_default(),
    ))
}
