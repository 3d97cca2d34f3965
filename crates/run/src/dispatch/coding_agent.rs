//! A coding agent that proposes changes: it works in the sandbox, and its tree becomes the proposal.
//!
//! Each turn gets a working copy as the gates have it: dependencies, ignored files that tests need, no secrets, and a
//! throwaway `.git`. After a refused attempt the copy has the refused change, and an agent that can continues its session.
//! The agent reaches its model endpoint and nothing else. When it ends, the difference of its tree to the base is the
//! answer, or what it wrote to [`DECLINED_FILE`]. Both streams and the exchanges with its model are kept in `logs/agents/`.
//!
//! What always holds: nothing but that difference leaves the copy. An agent that fails, hangs or floods has made no
//! proposal, and the run stays where it is.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use crucible_agents::{Endpoint, EndpointOptions, EndpointUse, Exchanges, Launch};
use crucible_host::clock::{Stopwatch, SystemClock};
use crucible_host::env::Environment;
use crucible_host::fs;
use crucible_host::http::HttpClient;
use crucible_llm::{
    AnswerFault, CallBudget, Fault, LlmBackend, LlmError, LlmInvocation, LlmResult, PriceTable,
    Upstream, dollars,
};
use crucible_model::{ByteLimit, Finding, counted};
use crucible_repo::{Git, RepoError, WorkCopy};
use crucible_sandbox::{
    AllowedHost, Cap, Completed, Confinement, End, Identity, Keep, Limits, Network, Profile,
    Redaction, Resources, Sandbox, Spawn, Stdin, Stdout, SyscallClass,
};
use crucible_secrets::Scanner;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};

use super::agent::{AGENT_LOGS, last_log_number};
use super::outbox::MAX_GIVEN;
use super::service::{CallHints, RoleService, ServiceReport};
use crate::attempt;
use crate::contract::{AGENT, CodingAgentSettings, RunRecord, RunSettings};
use crate::dispatch::action::Action;
use crate::error::RunError;
use crate::gate_workspace::{GateWorkspace, SurveyCache};
use crate::layout::{RunDir, attempt_file};
use crate::recording::SEED;
use crate::role::declined::{DECLINED_FILE, Decline};
use crate::run_context::RunContext;
use crate::trial::{TrialSetup, copy_base, require_base};

/// The ending of the name of a session's exchanges.
pub(crate) const EXCHANGES: &str = "exchanges.jsonl";

/// Bytes kept of each stream.
const MAX_STREAM: ByteLimit = ByteLimit(4 * 1024 * 1024);
/// An agent that prints more than this on one stream is ended.
const RUNAWAY: ByteLimit = ByteLimit(64 * 1024 * 1024);
/// How much of its last words an error shows, in bytes.
const LAST_WORDS: usize = 2 * 1024;
/// The longest explanation of an agent that declines.
const MAX_DECLINED: ByteLimit = ByteLimit(16 * 1024);
/// How long an agent may go on asking its model after the budget is exhausted. Some clients retry for minutes.
const UNPAID_TIME: Duration = Duration::from_secs(15);
/// How often the changed files are counted.
const COUNT_INTERVAL: Duration = Duration::from_secs(2);
/// How long a request to a model may take.
const REQUEST_TIME: Duration = Duration::from_secs(900);

/// A coding agent as the service of a role.
pub(super) struct CodingAgentService;

impl RoleService for CodingAgentService {
    fn reads_repository(&self) -> bool {
        true
    }

    fn works_in_copy(&self) -> bool {
        true
    }

    fn writes_logs(&self) -> bool {
        true
    }

    fn timeout(&self, settings: &RunSettings) -> Duration {
        let seconds = settings.coding_agent.as_ref().map(|agent| agent.timeout_s);
        Duration::from_secs(seconds.unwrap_or(settings.model_timeout_s))
    }

    fn metadata(&self, _: &RunSettings, call: &CallHints<'_>) -> BTreeMap<String, Value> {
        call.with_target()
    }

    fn refuse(&self, _: Action, _: String, _: &str) -> Option<Finding> {
        None
    }

    fn report(&self, result: &LlmResult) -> Option<ServiceReport> {
        let report = result.extensions.get(AGENT)?.clone();
        let summary = report
            .get("summary")
            .and_then(Value::as_str)
            .unwrap_or_default();
        Some(ServiceReport {
            notes: vec![format!("  {summary}")],
            field: (AGENT, report),
        })
    }
}

/// What an agent has done so far.
#[derive(Debug, Clone, Default)]
pub struct AgentProgress {
    /// What it has used.
    pub used: EndpointUse,
    /// How many files differ from the base.
    pub files: u64,
}

/// What an agent is connected with.
pub(crate) struct Connection {
    pub(crate) upstream: Upstream,
    pub(crate) http: Arc<HttpClient>,
    pub(crate) budget: Arc<CallBudget>,
    pub(crate) prices: Arc<PriceTable>,
}

/// A backend whose answer is the change that an agent made.
pub(crate) struct CodingAgentBackend {
    dir: RunDir,
    record: RunRecord,
    agent: CodingAgentSettings,
    env: Environment,
    sandbox: Arc<Sandbox>,
    runs_root: PathBuf,
    tmp: PathBuf,
    surveys: SurveyCache,
    connection: Connection,
    /// Records of sessions that were interrupted.
    interrupted: Vec<PathBuf>,
    turns: AtomicU64,
    progress: watch::Sender<AgentProgress>,
}

impl CodingAgentBackend {
    /// Creates the backend of the run in this directory.
    ///
    /// # Errors
    ///
    /// Fails when the run's record cannot be read or names no agent.
    pub(crate) fn new(
        world: &RunContext<'_>,
        dir: &RunDir,
        connection: Connection,
    ) -> Result<Self, RunError> {
        let record = dir.record()?;
        let agent = record.settings.coding_agent.clone();
        let agent = agent.ok_or_else(|| dir.malformed(crate::layout::RUN, "it names no agent"))?;
        let interrupted = (1..=last_log_number(dir).unwrap_or_default())
            .map(|number| format!("{AGENT_LOGS}/{number:03}"))
            .filter(|log| {
                !dir.has(&format!("{log}.stdout.log")) && dir.has(&format!("{log}.{EXCHANGES}"))
            })
            .map(|log| dir.path(&format!("{log}.{EXCHANGES}")));
        Ok(Self {
            interrupted: interrupted.collect(),
            dir: dir.clone(),
            record,
            agent,
            env: world.env.clone(),
            sandbox: Arc::clone(&world.sandbox),
            runs_root: world.runs_root.clone(),
            tmp: world.tmp.clone(),
            surveys: SurveyCache::default(),
            connection,
            turns: AtomicU64::new(0),
            progress: watch::Sender::new(AgentProgress::default()),
        })
    }

    /// What the agent has done, while it works.
    pub(crate) fn progress(&self) -> watch::Receiver<AgentProgress> {
        self.progress.subscribe()
    }

    /// The copy that the agent works in, with the change of the attempt before in it.
    async fn copy(
        &self,
        git: &Git,
        world: &GateWorkspace<'_>,
        scratch_dir: &Path,
        number: u64,
    ) -> Result<WorkCopy, RunError> {
        let copy = scratch_dir.join("copy");
        require_base(git, &self.record).await?;
        copy_base(git, &copy).await?;
        require_base(git, &self.record).await?;
        world.complete_copy_without_git(&copy).await?;
        for path in &self.agent.profile.disabled {
            let path = copy.join(path);
            match path.symlink_metadata() {
                Ok(meta) if meta.is_dir() => fs::remove_dir_all(&path)?,
                Ok(_) => fs::remove_file(&path)?,
                Err(_) => {}
            }
        }
        let mut leftovers = self.agent.profile.leftovers.clone();
        leftovers.push(format!("/{DECLINED_FILE}"));
        let work = git
            .work_copy(
                &self.record.base_commit,
                &copy,
                &scratch_dir.join("before"),
                &leftovers,
            )
            .await?;
        let earlier = (1..number)
            .rev()
            .map(|number| attempt_file(number, attempt::PATCH));
        if let Some(earlier) = earlier
            .map(|path| self.dir.read_if_there(&path))
            .find_map(Result::transpose)
        {
            // One that does not apply leaves the copy as the base is.
            let _unapplied = work.apply(git, earlier?).await;
        }
        Ok(work)
    }

    async fn turn(&self, inv: &LlmInvocation) -> Result<LlmResult, LlmError> {
        let wrong = |what: String| {
            let next = "fix that and continue with `crucible run advance`";
            LlmError::Misconfiguration(Fault::new(AGENT, &inv.model, what, next))
        };
        let wrap_error = |error: &dyn std::fmt::Display| wrong(error.to_string());
        let number = inv.metadata.get(SEED).and_then(Value::as_u64).unwrap_or(1);
        let temp_dir =
            fs::temp_dir_in(&self.dir.scratch(), "agent-").map_err(|error| wrap_error(&error))?;
        let (scratch_dir, clock) = (temp_dir.path(), SystemClock);
        let world = RunContext {
            env: &self.env,
            clock: &clock,
            sandbox: Arc::clone(&self.sandbox),
            runs_root: self.runs_root.clone(),
            tmp: self.tmp.clone(),
        };
        let git = world
            .git(&self.record.repo, &scratch_dir.join("git"))
            .await
            .map_err(|error| wrap_error(&error))?;
        let gates = &self.record.settings.gates;
        let base = TrialSetup::new(&self.record, gates, &self.surveys);
        let gate_world = GateWorkspace::survey(&world, &git, base)
            .await
            .map_err(|error| wrap_error(&error))?;
        let work = self
            .copy(&git, &gate_world, scratch_dir, number)
            .await
            .map_err(|error| wrap_error(&error))?;
        let committed =
            fs::read_beneath(&scratch_dir.join("copy"), DECLINED_FILE, MAX_DECLINED).ok();
        let log = last_log_number(&self.dir).map_or(1, |last| last + 1);
        let log = format!("{AGENT_LOGS}/{log:03}");
        fs::create_dir_all(&self.dir.path(AGENT_LOGS)).map_err(|error| wrap_error(&error))?;
        let turn = self.turns.fetch_add(1, Ordering::Relaxed);
        let interrupted = if turn == 0 {
            &self.interrupted[..]
        } else {
            &[]
        };
        let exchanges =
            Exchanges::begin(&self.dir.path(&format!("{log}.{EXCHANGES}")), interrupted);
        let endpoint = Endpoint::open(EndpointOptions {
            wire: self.agent.profile.wire,
            upstream: self.connection.upstream.clone(),
            http: Arc::clone(&self.connection.http),
            budget: Arc::clone(&self.connection.budget),
            prices: Arc::clone(&self.connection.prices),
            exchanges: exchanges.map_err(|error| wrap_error(&error))?,
            timeout: REQUEST_TIME,
        });
        let endpoint = endpoint.await.map_err(|error| wrap_error(&error))?;
        let home = self.dir.scratch().join("agent-home");
        fs::create_dir_all(&home).map_err(|error| wrap_error(&error))?;
        let prompt: Vec<&str> = inv
            .messages
            .iter()
            .map(|message| message.content.as_str())
            .collect();
        let prompt = prompt.join("\n");
        let launch = Launch {
            profile: &self.agent.profile,
            endpoint: &endpoint.url(),
            token: endpoint.token(),
            home: &home,
            prompt: &prompt,
        };
        launch.write_home().map_err(|error| wrap_error(&error))?;
        let args = launch.args(turn > 0).map_err(|error| wrap_error(&error))?;
        let spawn = self
            .spawn(
                &gate_world,
                scratch_dir,
                &endpoint,
                &launch,
                args,
                inv.timeout,
            )
            .map_err(|error| wrap_error(&error))?;
        let counting = self.count_changed(&work, &git);
        let stop = Arc::new(Notify::new());
        let running = self.sandbox.run_until(spawn, Arc::clone(&stop));
        let ended = watched(
            endpoint.used(),
            &self.progress,
            UNPAID_TIME,
            &stop,
            running,
            counting,
        );
        let (ended, payment) = ended.await;
        let used = endpoint.close().await;
        let ended = ended.map_err(|error| wrap_error(&error))?;
        let streams = match payment {
            Payment::Sufficient => self.keep(&log, &ended),
            // Under other names, as the next session takes this one's answers like those of an interrupted one.
            Payment::Exhausted => self.keep(&format!("{log}.stopped"), &ended),
        };
        streams.map_err(|error| wrap_error(&error))?;
        if payment == Payment::Exhausted {
            let why = used.last_refusal.unwrap_or_default();
            return Err(LlmError::ProviderOutage(Fault::new(
                AGENT,
                &inv.model,
                format!(
                    "the agent was ended, because it kept asking although its requests were refused: {why}"
                ),
                "remove what the refusal names, such as a limit of llm.budget, and continue with `crucible run advance`",
            )));
        }
        self.stopped(inv, &log, &ended, &used)?;
        let copy = scratch_dir.join("copy");
        if let Some(text) = declined(&copy, committed.as_deref()) {
            return Ok(self.result(inv, text, &ended, &used, 0));
        }
        let fault = |what: String, answer| {
            let next = format!("read {log}.stdout.log in the run directory");
            let mut fault = Fault::new(AGENT, &inv.model, what, next);
            fault.answer = answer;
            LlmError::ProviderOutage(fault)
        };
        let diff = match work.diff(&git, MAX_GIVEN).await {
            Ok(diff) => diff,
            Err(error @ RepoError::TooLarge { .. }) => {
                return Err(fault(
                    format!("its change is too large: {error}"),
                    Some(AnswerFault::TooLarge),
                ));
            }
            Err(error) => return Err(fault(format!("its change cannot be read: {error}"), None)),
        };
        if diff.is_empty() {
            let why = used
                .last_refusal
                .as_ref()
                .map(|why| format!("; a request to its model was refused: {why}"));
            return Err(fault(
                format!("it ended without a change{}", why.unwrap_or_default()),
                Some(AnswerFault::Empty),
            ));
        }
        let files = diff
            .windows(11)
            .filter(|window| *window == b"\ndiff --git")
            .count() as u64
            + 1;
        match String::from_utf8(diff) {
            Ok(text) => Ok(self.result(inv, text, &ended, &used, files)),
            Err(_) => Err(fault(
                "its change holds text that is not UTF-8".to_owned(),
                Some(AnswerFault::TooLarge),
            )),
        }
    }

    fn spawn(
        &self,
        gate_world: &GateWorkspace<'_>,
        scratch_dir: &Path,
        endpoint: &Endpoint,
        launch: &Launch<'_>,
        args: Vec<OsString>,
        time: Duration,
    ) -> Result<Spawn, RunError> {
        let profile = &self.agent.profile;
        let copy = scratch_dir.join("copy");
        let place = gate_world.program_setting(&copy)?;
        let mut env: BTreeMap<OsString, OsString> = place.env.into_iter().collect();
        env.extend(launch.env());
        let program = self.env.find_program(&profile.program);
        let mut writable = vec![launch.home.to_owned()];
        if !gate_world.is_mounted() {
            writable.push(copy.clone());
        }
        let mut hosts = vec![AllowedHost {
            host: "127.0.0.1".to_owned(),
            ports: vec![endpoint.port()],
        }];
        for host in &profile.hosts {
            hosts.push(
                host.parse()
                    .map_err(|error: crucible_sandbox::AllowedHostError| {
                        self.dir.malformed(crate::layout::RUN, &error.to_string())
                    })?,
            );
        }
        Ok(Spawn {
            program: program.unwrap_or_else(|_| PathBuf::from(&profile.program)),
            args,
            // It is found at the path of the original, if it is mounted there.
            cwd: copy,
            env: env.into_iter().collect(),
            stdin: Stdin::Bytes(launch.stdin()),
            stdout: Stdout::Memory,
            limits: Limits {
                stdout: MAX_STREAM,
                stderr: MAX_STREAM,
                runaway: RUNAWAY,
                resources: Resources {
                    disk: Cap::At(self.agent.disk_mib << 20),
                    ..Resources::DEFAULT
                },
                ..Limits::new(time)
            },
            confinement: Confinement::Confined(Profile {
                strength: place.strength,
                writable,
                masked: place.masked,
                read_only: Vec::new(),
                mounts: place.mounts,
                network: Network::Hosts(hosts),
                calls: SyscallClass::Tools,
                identity: Identity::default(),
            }),
            keep: Keep::Tail,
            redaction: Redaction::Redact,
        })
    }

    /// Counts the changed files now and then, for the progress alone.
    async fn count_changed(&self, work: &WorkCopy, git: &Git) -> Infallible {
        loop {
            tokio::time::sleep(COUNT_INTERVAL).await;
            if let Ok(files) = work.changed_files(git).await {
                self.progress
                    .send_modify(|progress| progress.files = files as u64);
            }
        }
    }

    /// Saves both streams of a turn.
    fn keep(&self, log: &str, ended: &Completed) -> Result<(), RunError> {
        for (name, stream) in [("stdout", &ended.stdout), ("stderr", &ended.stderr)] {
            let (text, _) = Scanner::builtin().redact_bytes(&stream.bytes);
            self.dir.write(&format!("{log}.{name}.log"), &text)?;
        }
        Ok(())
    }

    /// Fails if the agent did not end well by itself.
    fn stopped(
        &self,
        inv: &LlmInvocation,
        log: &str,
        ended: &Completed,
        used: &EndpointUse,
    ) -> Result<(), LlmError> {
        let failed = |what: String| {
            let why = used
                .last_refusal
                .as_ref()
                .map(|why| format!("; a request to its model was refused: {why}"));
            let what = format!("{what}{}", why.unwrap_or_default());
            let next = format!(
                "read {log}.stdout.log and .stderr.log in the run directory, and continue with `crucible run advance`"
            );
            let mut fault = Fault::new(AGENT, &inv.model, what, next);
            let words =
                [&ended.stderr, &ended.stdout].map(|stream| stream.text().trim().to_owned());
            let words = words
                .into_iter()
                .find(|words| !words.is_empty())
                .unwrap_or_default();
            let words = self.env.without_home(&words);
            let start = words.ceil_char_boundary(words.len().saturating_sub(LAST_WORDS));
            fault.stderr = words
                .get(start..)
                .map(str::to_owned)
                .filter(|words| !words.is_empty());
            Err(LlmError::ProviderOutage(fault))
        };
        match ended.end {
            End::Exited(0) => Ok(()),
            End::Exited(code) => failed(format!("the agent exited with code {code}")),
            End::Signalled(signal) => failed(format!("the agent was killed by signal {signal}")),
            End::Forbidden => failed("the agent made a forbidden system call".to_owned()),
            End::OutputLimit => failed(format!(
                "the agent was ended after printing more than {} bytes",
                RUNAWAY.0
            )),
            End::DiskLimit => failed(format!(
                "the agent was ended after writing more than {} MiB",
                self.agent.disk_mib
            )),
            End::TimedOut => Err(LlmError::Timeout {
                provider: AGENT.to_owned(),
                model: inv.model.clone(),
                duration: inv.timeout,
                call: inv.timeout,
                cap: inv.timeout,
            }),
        }
    }

    fn result(
        &self,
        inv: &LlmInvocation,
        text: String,
        ended: &Completed,
        used: &EndpointUse,
        files: u64,
    ) -> LlmResult {
        let cost = if used.micro_dollars > 0 {
            format!(", {}", dollars(used.micro_dollars))
        } else {
            String::new()
        };
        let summary = format!(
            "agent {}: {}, {}, {} tokens in, {} out{cost}, {} changed",
            self.agent.profile.name,
            counted(used.requests, "request"),
            counted(used.tools, "tool call"),
            used.tokens_input,
            used.tokens_output,
            counted(files, "file"),
        );
        let report = json!({
            "name": self.agent.profile.name, "provider": self.connection.upstream.provider, "models": used.models,
            "summary": summary, "requests": used.requests, "reused": used.reused,
            "refused": used.refused, "tool_calls": used.tools, "tokens_input": used.tokens_input,
            "tokens_output": used.tokens_output, "micro_dollars": used.micro_dollars, "files": files,
            "contacts": ended.contacts, "isolation": ended.receipt.level,
        });
        LlmResult {
            raw_response: text,
            provider: AGENT.to_owned(),
            model_used: inv.model.clone(),
            tokens_input: None,
            tokens_output: None,
            timed_out: Some(false),
            extensions: BTreeMap::from([(AGENT.to_owned(), report)]),
        }
    }
}

/// Whether an agent ended, or was ended because it kept asking without a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Payment {
    Sufficient,
    Exhausted,
}

/// Passes on what an agent has used until it ends. Stops it if it asks its model for longer than `unpaid_time` although the
/// budget, the prices or the record allow no request.
async fn watched<T>(
    mut used: watch::Receiver<EndpointUse>,
    progress: &watch::Sender<AgentProgress>,
    unpaid_time: Duration,
    stop: &Notify,
    ended: impl Future<Output = T>,
    counting: impl Future<Output = Infallible>,
) -> (T, Payment) {
    let mut ended = std::pin::pin!(ended);
    let mut counting = std::pin::pin!(counting);
    let mut unpaid_since = None;
    let mut payment = Payment::Sufficient;
    loop {
        tokio::select! {
            result = &mut ended => return (result, payment),
            Ok(()) = used.changed() => {
                let now = used.borrow_and_update().clone();
                if now.unpaid == 0 {
                    unpaid_since = None;
                } else if unpaid_since.get_or_insert_with(Stopwatch::start).elapsed() > unpaid_time {
                    payment = Payment::Exhausted;
                    stop.notify_one();
                }
                progress.send_modify(|progress| progress.used = now);
            }
            never = &mut counting => match never {},
        }
    }
}

/// The text with which the agent declines, if it wrote one. A link does not count, and neither does a file of the base.
fn declined(copy: &Path, base: Option<&[u8]>) -> Option<String> {
    let bytes = fs::read_beneath(copy, DECLINED_FILE, MAX_DECLINED).ok()?;
    (base != Some(bytes.as_slice()))
        .then(|| Decline::answer_of_file(&String::from_utf8_lossy(&bytes)))
}

#[async_trait]
impl LlmBackend for CodingAgentBackend {
    async fn invoke(&self, inv: LlmInvocation) -> Result<LlmResult, LlmError> {
        // What waits for an agent is large.
        Box::pin(self.turn(&inv)).await
    }
}

/// The same backend, which its observer shares.
pub(crate) struct SharedAgent(pub(crate) Arc<CodingAgentBackend>);

#[async_trait]
impl LlmBackend for SharedAgent {
    async fn invoke(&self, inv: LlmInvocation) -> Result<LlmResult, LlmError> {
        self.0.invoke(inv).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Watches an agent that asks every 10 ms, with these numbers of requests in a row that were refused, and ends then or when
    /// it is stopped.
    async fn watched_agent(refused_in_row: &[u64]) -> (End, Payment) {
        let (sender, used) = watch::channel(EndpointUse::default());
        let (progress, stop) = (watch::Sender::new(AgentProgress::default()), Notify::new());
        let agent = async {
            for unpaid in refused_in_row {
                sender.send_modify(|used| used.unpaid = *unpaid);
                let pause = tokio::time::sleep(Duration::from_millis(10));
                tokio::select! {
                    () = stop.notified() => return End::TimedOut,
                    () = pause => {}
                }
            }
            End::Exited(0)
        };
        let unpaid_time = Duration::from_millis(100);
        watched(
            used,
            &progress,
            unpaid_time,
            &stop,
            agent,
            std::future::pending(),
        )
        .await
    }

    #[tokio::test]
    async fn agent_that_keeps_asking_unpaid_is_stopped() {
        let refused: Vec<u64> = (1..500).collect();
        assert_eq!(
            watched_agent(&refused).await,
            (End::TimedOut, Payment::Exhausted)
        );
    }

    #[tokio::test]
    async fn agent_that_ends_or_is_paid_again_goes_on() {
        let soon = watched_agent(&[1, 2, 3]).await;
        assert_eq!(soon, (End::Exited(0), Payment::Sufficient));
        let paid_again: Vec<u64> = (0..50).map(|turn| turn % 2).collect();
        let paid = watched_agent(&paid_again).await;
        assert_eq!(paid, (End::Exited(0), Payment::Sufficient));
    }
}
