//! What the layers around a model's backend cost a call with a question of 100 kB.
//!
//! Each rung adds one layer and stands beside the rung before it, so that the table says which one costs what. The
//! client as a whole stands beside the HTTP client that sends the very same bytes. What has to reach the disk
//! before an answer is used, the recording and the ledger, has rows of its own twice: beside the HTTP client alone,
//! and beside the HTTP client with as many plain appends that wait for the disk.

use std::fmt::Display;
use std::fs::{self, File};
use std::future::Future;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crucible_host::clock::SystemClock;
use crucible_ledger::Ledger;
use crucible_llm::{
    Asks, Budgeted, CallBudget, CassetteHeader, CassetteWriter, ClientExtra, LlmBackend,
    LlmInvocation, LlmResult, Origin, Recording, Retried, RetryPolicy, Reuse,
};
use crucible_model::RunId;
use crucible_run::LedgerReservations;
use tempfile::TempDir;

use super::asking::{AMPLE, Asking, question};
use super::bench::{Bench, Context, unmeasured};
use super::measure::{Case, Goal, Pair, side_by_side};
use super::model_server::ModelServer;
use super::tree::scratch;
use crate::error::TaskError;

const NAME: &str = "layers";

/// How long the question's text is.
const QUESTION_BYTES: usize = 100_000;

/// How many calls one round makes, one after the other; its time is divided by this.
const CALLS: u32 = 20;

/// The most that a call may take longer than what it stands beside.
const LIMIT: Duration = Duration::from_millis(1);

/// What SQLite writes to its log for one changed page: the page and its header.
const LEDGER_WRITE: usize = 4096 + 24;

/// A call is reserved before it is made and settled afterwards.
const LEDGER_WRITES: usize = 2;

/// The bench of the layers.
pub(super) struct Layers;

impl Bench for Layers {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&self, context: &Context<'_>) -> Result<Vec<Case>, TaskError> {
        let text = context.trees()?.branched.text(QUESTION_BYTES)?;
        let stand = Stand::new(&text)?;
        let append = |bytes: &[usize]| bytes.to_vec();
        let recorded = stand.recorded_bytes;
        let ledger = [LEDGER_WRITE; LEDGER_WRITES];
        let (nothing, line, rows) = (append(&[]), append(&[recorded]), append(&ledger));
        let all = [line.as_slice(), rows.as_slice()].concat();

        let rounds = context.rounds;
        let mut cases = Vec::new();
        let mut row = |own_text: &str, beside: &str, pair: Pair| {
            let (ours, beside) = (own_text.to_owned(), beside.to_owned());
            cases.push(Case {
                bench: NAME,
                ours,
                beside,
                pair,
                goal: Goal::MoreAtMost(LIMIT),
            });
        };
        let (backend, budget, retry, full) = (
            ClientLayer::Backend,
            ClientLayer::Budget,
            ClientLayer::Retry,
            ClientLayer::Client(Storage::Nowhere),
        );
        let climb = |upper: ClientLayer, lower: ClientLayer| {
            side_by_side(rounds, || stand.rung(upper), || stand.rung(lower))
        };
        let whole = |storage: Storage, writes: &[usize]| {
            side_by_side(
                rounds,
                || stand.rung(ClientLayer::Client(storage)),
                || stand.http(writes),
            )
        };
        row(
            "backend alone",
            "HTTP client",
            side_by_side(rounds, || stand.rung(backend), || stand.http(&nothing))?,
        );
        row(
            "… with a budget in memory",
            "backend alone",
            climb(budget, backend)?,
        );
        row(
            "… and retries",
            "… with a budget in memory",
            climb(retry, budget)?,
        );
        row(
            "… and the secret scan: all layers",
            "… and retries",
            climb(full, retry)?,
        );
        row(
            "all layers",
            "HTTP client",
            whole(Storage::Nowhere, &nothing)?,
        );
        for (ours, kept, writes) in [
            ("all layers, recorded", Storage::Recorded, &line),
            ("all layers, budget in the ledger", Storage::InLedger, &rows),
            (
                "all layers, recorded, budget in the ledger",
                Storage::Both,
                &all,
            ),
        ] {
            row(ours, "HTTP client", whole(kept, &nothing)?);
            let sizes: Vec<String> = writes
                .iter()
                .map(|bytes| format!("{} kB", bytes / 1000))
                .collect();
            row(
                ours,
                &format!("HTTP client, appends of {}", sizes.join(" and ")),
                whole(kept, writes)?,
            );
        }
        Ok(cases)
    }
}

/// How much of the client stands around the backend.
#[derive(Debug, Clone, Copy)]
enum ClientLayer {
    Backend,
    Budget,
    Retry,
    Client(Storage),
}

/// What of a call is kept on the disk.
#[derive(Debug, Clone, Copy)]
enum Storage {
    Nowhere,
    Recorded,
    InLedger,
    Both,
}

/// The server, both ways to ask it, and a folder for what is written.
struct Stand {
    asking: Asking,
    question: LlmInvocation,
    /// What the backend sends for the question.
    body: Vec<u8>,
    /// How long the line is that records a call.
    recorded_bytes: usize,
    folder: TempDir,
}

impl Stand {
    /// Asks the question once in every way, so that the bytes are known that it makes.
    fn new(text: &str) -> Result<Self, TaskError> {
        let server = ModelServer::start(Duration::ZERO)
            .map_err(TaskError::io("start", "the model's server"))?;
        let asking = Asking::new(NAME, server.address())?;
        let mut stand = Self {
            asking,
            question: question(text),
            body: Vec::new(),
            recorded_bytes: 0,
            folder: scratch()?,
        };
        let sample = stand.folder.path().join("sample.jsonl");
        let client = stand
            .asking
            .client(Self::record(sample.clone())?, CallBudget::new(AMPLE))?;
        stand.calls(1, |inv| client.call(inv))?;
        let recording = fs::read(&sample).map_err(TaskError::io("read", &sample))?;
        stand.recorded_bytes = recording
            .split_inclusive(|byte| *byte == b'\n')
            .next_back()
            .map_or(0, <[u8]>::len);
        stand.body = server.last_body();
        Ok(stand)
    }

    fn record(path: PathBuf) -> Result<Recording, TaskError> {
        let header = CassetteHeader::new(
            "gateway",
            "bench-model",
            crucible_llm::provider("gateway")
                .map_err(unmeasured(NAME))?
                .capabilities(),
        );
        let writer =
            CassetteWriter::open(&path, &header, Reuse::Nothing).map_err(unmeasured(NAME))?;
        Ok(Recording::To(Arc::new(writer)))
    }

    /// The time of a call with so much around the backend. Everything but the pool of connections is new each round, as
    /// it is in a run.
    fn rung(&self, rung: ClientLayer) -> Result<Duration, TaskError> {
        let budgeted = || -> Result<_, TaskError> {
            let asks = Asks {
                provider: "gateway",
                max_output_tokens: 4096,
                extra: ClientExtra::NONE,
                origin: Origin::Live,
            };
            Ok(Budgeted::new(
                self.asking.backend()?,
                asks,
                CallBudget::new(AMPLE),
                Arc::default(),
            ))
        };
        match rung {
            ClientLayer::Backend => {
                let backend = self.asking.backend()?;
                self.calls(CALLS, |inv| backend.invoke(inv))
            }
            ClientLayer::Budget => {
                let budgeted = budgeted()?;
                self.calls(CALLS, |inv| budgeted.invoke(inv))
            }
            ClientLayer::Retry => {
                let retried = Retried::new(budgeted()?, RetryPolicy::PHASES);
                self.calls(CALLS, |inv| retried.invoke(inv))
            }
            ClientLayer::Client(kept) => {
                let place = scratch_in(&self.folder)?;
                let recording = match kept {
                    Storage::Recorded | Storage::Both => {
                        Self::record(place.path().join("cassette.jsonl"))?
                    }
                    Storage::Nowhere | Storage::InLedger => Recording::Off,
                };
                let budget = match kept {
                    Storage::InLedger | Storage::Both => {
                        ledger_budget(place.path().join("ledger.db"))?
                    }
                    Storage::Nowhere | Storage::Recorded => CallBudget::new(AMPLE),
                };
                let client = self.asking.client(recording, budget)?;
                self.calls(CALLS, |inv| client.call(inv))
            }
        }
    }

    /// The time of a call. What the caller hands over is made before the time starts.
    fn calls<F, E>(
        &self,
        number: u32,
        ask: impl Fn(LlmInvocation) -> F,
    ) -> Result<Duration, TaskError>
    where
        F: Future<Output = Result<LlmResult, E>>,
        E: Display,
    {
        let questions: Vec<_> = (0..number).map(|_| self.question.clone()).collect();
        self.asking.runtime.block_on(async {
            let start = Instant::now();
            for question in questions {
                ask(question).await.map_err(unmeasured(NAME))?;
            }
            Ok(start.elapsed() / number)
        })
    }

    /// The time of an exchange of the same bytes, each followed by plain appends of so many bytes, flushed one by one.
    fn http(&self, appends: &[usize]) -> Result<Duration, TaskError> {
        let place = scratch_in(&self.folder)?;
        let path = place.path().join("plain");
        let mut file = File::create(&path).map_err(TaskError::io("create", &path))?;
        let lines: Vec<Vec<u8>> = appends.iter().map(|bytes| vec![b'x'; *bytes]).collect();
        let requests: Vec<_> = (0..CALLS)
            .map(|_| self.asking.request(self.body.clone()))
            .collect();
        self.asking.runtime.block_on(async {
            let start = Instant::now();
            for request in requests {
                let answer = self
                    .asking
                    .http()
                    .send(request)
                    .await
                    .map_err(unmeasured(NAME))?;
                if answer.status != 200 {
                    return Err(unmeasured(NAME)(format!(
                        "the server answered {}",
                        answer.status
                    )));
                }
                for line in &lines {
                    file.write_all(line)
                        .and_then(|()| file.sync_data())
                        .map_err(TaskError::io("append to", &path))?;
                }
            }
            Ok(start.elapsed() / CALLS)
        })
    }
}

fn scratch_in(folder: &TempDir) -> Result<TempDir, TaskError> {
    tempfile::tempdir_in(folder).map_err(TaskError::io("create", folder.path()))
}

/// The budget of a run of its own, kept as the program keeps it.
pub(super) fn ledger_budget(path: PathBuf) -> Result<Arc<CallBudget>, TaskError> {
    let ledger = Ledger::open(&path).map_err(unmeasured(NAME))?;
    let run: RunId = "bench".parse().map_err(unmeasured(NAME))?;
    Ok(CallBudget::with_store(
        AMPLE,
        Arc::new(LedgerReservations::new(ledger, run, Box::new(SystemClock))),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_layers_answer_and_send_equal_bytes() {
        let stand = Stand::new("fn main() {}\n").unwrap();
        let body = String::from_utf8(stand.body.clone()).unwrap();
        assert!(
            body.contains("fn main") && body.contains("bench-model"),
            "{body}"
        );
        assert!(
            stand.recorded_bytes > body.len() + 2000,
            "{}",
            stand.recorded_bytes
        );
        for rung in [
            ClientLayer::Backend,
            ClientLayer::Budget,
            ClientLayer::Retry,
        ] {
            assert!(stand.rung(rung).unwrap() > Duration::ZERO);
        }
        for storage in [
            Storage::Nowhere,
            Storage::Recorded,
            Storage::InLedger,
            Storage::Both,
        ] {
            assert!(stand.rung(ClientLayer::Client(storage)).unwrap() > Duration::ZERO);
        }
        assert!(stand.http(&[10, 20]).unwrap() > Duration::ZERO);
    }
}
