//! A place for one run, the model that answers it, and what a finished run must look like.
//!
//! Every place holds a copy of the same repository under the same name, and the model answers each distinct question
//! with the next line of one script. So two runs may differ in instants and ids and in nothing else, and
//! [`Story`] holds exactly what must be equal.
#![expect(
    clippy::disallowed_methods,
    reason = "tests lay out directories and look at what a run left in them"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crucible_host::clock::SystemClock;
use crucible_host::env::Environment;
use crucible_host::http::HttpClient;
use crucible_ledger::{Anchor, EventRecord, Ledger, Usage};
use crucible_llm::{
    BudgetLimits, CallBudget, Cassette, CassetteError, CassetteHeader, CassetteSource,
    CassetteWriter, ClientOptions, Context, ModelClient, ProviderSettings, Recording,
    RetryAllowance, RetryPolicy, Reuse, construct,
};
use crucible_model::{Clock, ClockSource, EditFormat, RunId, Timestamp};
use crucible_run::{
    AgentCommands, AnswerSource, CASSETTE, ClientContext, ContextSettings, Landing,
    LedgerReservations, PatchLimits, RunContext, RunDir, RunError, RunObserver, RunOptions,
    RunSettings, RunState, Signing, advance, answers_used, create, land, status,
};
use crucible_sandbox::{Sandbox, Strength};
use crucible_secrets::Scanner;
use crucible_testkit::{FakeOpenAi, Reply, RepoBuilder, SeenRequest};
use crucible_verify::GateSpec;
use tempfile::TempDir;

use crate::cast::{All, RoleServers, person};

/// The file that the goal is about.
pub(crate) const FILE: &str = "src/price.py";
const BEFORE: &str = "def total(items):\n    return 0\n";
const WRONG: &str = "def total(items):\n    return len(items)\n";
const RIGHT: &str = "def total(items):\n    return sum(items)\n";

/// The gate: it prints what a replay must not depend on, and wants the right line.
const CHECK: &str = "echo \"checking in $(pwd) as pid $$\"\n\
    grep -q 'sum(items)' src/price.py && exit 0\n\
    echo \"total is wrong\"\n\
    exit 1\n";

/// Files by path, with their bytes.
pub(crate) type Files = BTreeMap<PathBuf, Vec<u8>>;

/// A directory with a repository, a home for the ledger and the runs, and nothing else.
pub(crate) struct Place {
    root: PathBuf,
    cast: RoleServers,
    _owned: Option<TempDir>,
}

/// How far [`Place::drive`] goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// A run is made.
    Created,
    /// No further attempt is needed or left.
    Advanced,
    /// The change is a commit.
    Landed,
}

/// What happens along the way; each is a point at which a process may be ended.
pub(crate) trait Along: Send + Sync {
    /// An event stands in the ledger and in `events.jsonl`.
    fn event(&self, _event: &EventRecord) {}
    /// A long step begins.
    fn working(&self, _what: &str) {}
    /// The clock is read: right before an event is appended, with its artifact written, and elsewhere.
    fn instant(&self) {}
}

/// Nothing happens.
pub(crate) struct Nothing;

impl Along for Nothing {}

/// Counts what happens.
#[derive(Default)]
pub(crate) struct Counted {
    pub(crate) workings: AtomicU64,
    pub(crate) instants: AtomicU64,
    /// How often something was recorded: what goes into the ledger together is told without a look at the clock in between.
    pub(crate) commits: AtomicU64,
    last: AtomicU64,
    is_told: AtomicBool,
}

impl Along for Counted {
    fn event(&self, event: &EventRecord) {
        let is_new = self.last.fetch_max(event.seq, Ordering::Relaxed) < event.seq;
        if is_new && !self.is_told.swap(true, Ordering::Relaxed) {
            self.commits.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn working(&self, _: &str) {
        self.workings.fetch_add(1, Ordering::Relaxed);
    }

    fn instant(&self) {
        self.is_told.store(false, Ordering::Relaxed);
        self.instants.fetch_add(1, Ordering::Relaxed);
    }
}

struct Watching(Arc<dyn Along>);

impl RunObserver for Watching {
    fn working(&mut self, _: &str, what: &str) {
        self.0.working(what);
    }

    fn note(&mut self, _: &str) {}

    fn event(&mut self, event: &EventRecord) {
        self.0.event(event);
    }
}

impl Clock for Watching {
    fn now(&self) -> Timestamp {
        self.0.instant();
        SystemClock.now()
    }

    fn source(&self) -> ClockSource {
        ClockSource::System
    }
}

impl Place {
    /// A new place, in memory where the system offers that: what is tested here is not the speed of a disk.
    pub(crate) fn new() -> Self {
        Self::from_cast(RoleServers::Model)
    }

    /// A new place for a run with this cast.
    pub(crate) fn from_cast(cast: RoleServers) -> Self {
        Self {
            cast,
            ..Self::new_in(&memory())
        }
    }

    /// A new place in this directory.
    pub(crate) fn new_in(parent: &Path) -> Self {
        let owned = tempfile::tempdir_in(parent).unwrap();
        let place = Self {
            root: owned.path().to_owned(),
            cast: RoleServers::Model,
            _owned: Some(owned),
        };
        place.furnish();
        place
    }

    /// A place that is there already; it stays when this is dropped.
    pub(crate) fn at(root: PathBuf) -> Self {
        Self {
            root,
            cast: RoleServers::Model,
            _owned: None,
        }
    }

    /// The same place for a run with this cast.
    pub(crate) fn with(self, cast: RoleServers) -> Self {
        Self { cast, ..self }
    }

    pub(crate) fn cast(&self) -> RoleServers {
        self.cast
    }

    /// Lays the repository into an empty directory.
    pub(crate) fn furnish(&self) {
        let template = RepoBuilder::new()
            .file(FILE, BEFORE)
            .file("check.sh", CHECK)
            .file("README.md", "# Prices\n\nAdds up prices.\n")
            .build();
        template.git(["config", "user.name", "Fixture"]);
        template.git(["config", "user.email", "fixture@example.invalid"]);
        copy_all(template.path(), &self.repo());
        std::fs::create_dir_all(self.home()).unwrap();
    }

    /// A copy of everything here.
    pub(crate) fn keep(&self) -> TempDir {
        let stored_temp_dir = tempfile::tempdir_in(self.root.parent().unwrap()).unwrap();
        copy_all(&self.root, stored_temp_dir.path());
        stored_temp_dir
    }

    /// Makes everything here as it was kept.
    pub(crate) fn restore(&self, stored_temp_dir: &TempDir) {
        self.clear();
        copy_all(stored_temp_dir.path(), &self.root);
    }

    /// Removes all that lies here; a directory that something is mounted on is emptied and stays.
    pub(crate) fn clear(&self) {
        empty(&self.root);
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.root.join("work/prices")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    pub(crate) fn runs(&self) -> PathBuf {
        self.home().join("runs")
    }

    pub(crate) fn ledger_path(&self) -> PathBuf {
        self.home().join("ledger/ledger.db")
    }

    pub(crate) fn ledger(&self) -> Ledger {
        Ledger::open(&self.ledger_path()).unwrap()
    }

    /// The one run there is, if it came to be.
    pub(crate) fn run(&self) -> Option<RunDir> {
        let entries = std::fs::read_dir(self.runs()).ok()?;
        let listed = self.ledger().runs().unwrap();
        let mut runs: Vec<RunDir> = entries
            .map(|entry| RunDir::from_path(entry.unwrap().path()))
            .filter(|dir| dir.has("run.json"))
            .filter(|dir| {
                listed
                    .iter()
                    .any(|run| dir.root().ends_with(run.id.as_str()) || is_hidden(dir, &run.id))
            })
            .collect();
        assert!(runs.len() <= 1, "more than one run was made");
        runs.pop()
    }

    /// The run directories that others see.
    pub(crate) fn visible(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.runs())
            .into_iter()
            .flatten()
            .flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| !name.starts_with('.')).collect()
    }

    pub(crate) fn the_run(&self) -> RunDir {
        self.run().expect("a run")
    }

    /// Makes the run where there is none, then takes it on.
    pub(crate) fn drive(
        &self,
        base_url: &str,
        until: Until,
        along: Arc<dyn Along>,
    ) -> Result<RunState, RunError> {
        let env = Environment::capture();
        let sandbox = Arc::new(Sandbox::new(None, &env));
        let clock = Watching(Arc::clone(&along));
        let world = RunContext {
            env: &env,
            clock: &clock,
            sandbox: Arc::clone(&sandbox),
            runs_root: self.runs(),
            tmp: self.home().join("tmp"),
        };
        let mut ledger = Ledger::open(&self.ledger_path())?;
        let mut observer = Watching(along);
        block_on(async {
            let listed = self.run().and_then(|_| ledger.runs().unwrap().pop());
            let dir = match listed {
                Some(run) => world.open_run(run.id.as_str())?,
                None => {
                    let git = world.repository(&self.repo()).await?;
                    let id = create(&world, &git, options(self.cast), &mut ledger, &mut observer)
                        .await?;
                    RunDir::new(&world.runs_root, &id)
                }
            };
            if until == Until::Created {
                return Ok(RunState::New);
            }
            let state = loop {
                let open = |opening: &ClientContext<'_>| {
                    let budget = self.budget(opening)?;
                    clients(&dir, base_url, &env, &sandbox, &budget)
                };
                let state = advance(&world, &dir, open, &mut ledger, &mut observer).await?;
                if state != RunState::Blocked || !self.cast.answers(&self.root, &dir, &ledger)? {
                    break state;
                }
            };
            if until == Until::Landed && state == RunState::Verified {
                land(
                    &world,
                    &dir,
                    None,
                    &Signing::off(),
                    &mut ledger,
                    &mut observer,
                )
                .await?;
                return Ok(RunState::Landed);
            }
            Ok(state)
        })
    }

    /// What the run may cost: with a model alone no call is refused, for its server may fail at any time.
    fn budget(&self, opening: &ClientContext<'_>) -> Result<Arc<CallBudget>, RunError> {
        let calls = if self.cast == RoleServers::Model {
            1_000
        } else {
            opening.calls
        };
        let ledger = Ledger::open(&self.ledger_path())?;
        let book = LedgerReservations::new(ledger, opening.run.clone(), Box::new(SystemClock));
        Ok(CallBudget::with_store(
            BudgetLimits::calls(calls),
            Arc::new(book),
        ))
    }

    /// What the run's calls came to, as the ledger has it.
    pub(crate) fn usage(&self) -> Usage {
        let id = self.events()[0].run.clone();
        self.ledger().usage(&id).unwrap()
    }

    /// Repeats the run from its recording.
    pub(crate) fn replay(&self) -> Result<crucible_run::Replayed, ReplayError> {
        let env = Environment::capture();
        let sandbox = Arc::new(Sandbox::new(None, &env));
        let clock = Watching(Arc::new(Nothing));
        let world = RunContext {
            env: &env,
            clock: &clock,
            sandbox: Arc::clone(&sandbox),
            runs_root: self.runs(),
            tmp: self.home().join("tmp"),
        };
        let dir = self.the_run();
        let settings = ProviderSettings {
            cassette: Some(CassetteSource::File(dir.path(CASSETTE))),
            ..ProviderSettings::default()
        };
        let backend = construct("replay", &settings, &context(&env, &sandbox))
            .map_err(|error| ReplayError(error.to_string()))?;
        let client = ModelClient::new(
            backend,
            client_options(Recording::Off, CallBudget::new(BudgetLimits::calls(100))),
        );
        block_on(crucible_run::replay(
            &world,
            &dir,
            &client,
            &self.ledger(),
            &mut Watching(Arc::new(Nothing)),
        ))
        .map_err(|error| ReplayError(error.to_string()))
    }

    /// Lands the run, or says why not.
    pub(crate) fn land(&self) -> Result<Landing, RunError> {
        let env = Environment::capture();
        let clock = Watching(Arc::new(Nothing));
        let world = RunContext {
            env: &env,
            clock: &clock,
            sandbox: Arc::new(Sandbox::new(None, &env)),
            runs_root: self.runs(),
            tmp: self.home().join("tmp"),
        };
        let dir = self.the_run();
        block_on(land(
            &world,
            &dir,
            None,
            &Signing::off(),
            &mut self.ledger(),
            &mut Watching(Arc::new(Nothing)),
        ))
    }

    /// Runs git in the repository and returns what it printed, trimmed.
    pub(crate) fn git(&self, words: &[&str]) -> String {
        let output = Command::new("git")
            .args(words)
            .current_dir(self.repo())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .output()
            .unwrap();
        assert!(output.status.success(), "git {words:?}: {output:?}");
        String::from_utf8(output.stdout)
            .unwrap()
            .trim_end()
            .to_owned()
    }

    /// Every file of the repository, git's own included, with its bytes.
    pub(crate) fn repository(&self) -> Files {
        files_below(&self.repo())
    }

    pub(crate) fn events(&self) -> Vec<EventRecord> {
        // Without those by which the ledger tells of its own rows.
        let events = self.ledger().events(None).unwrap();
        events
            .into_iter()
            .filter(|event| event.role != "ledger")
            .collect()
    }

    /// What the run's `events.jsonl` holds; nothing where there is no run.
    pub(crate) fn event_lines(&self) -> Vec<u8> {
        self.run()
            .and_then(|dir| std::fs::read(dir.path("events.jsonl")).ok())
            .unwrap_or_default()
    }

    pub(crate) fn has_begun_to_land(&self) -> bool {
        self.events()
            .iter()
            .any(|event| event.event == "LANDING_STARTED")
    }

    /// The ledger is sound, with what the landed commit says of it.
    pub(crate) fn assert_ledger_is_clean(&self) {
        let message = self.git(&["log", "-1", "--format=%B"]);
        let anchors: Vec<Anchor> = message
            .lines()
            .filter_map(|line| line.strip_prefix("Crucible-Ledger: ")?.split_once(':'))
            .map(|(seq, hash)| Anchor {
                seq: seq.parse().unwrap(),
                hash: hash.parse().unwrap(),
            })
            .collect();
        assert_eq!(self.ledger().verify(&anchors).unwrap().findings(), []);
    }

    /// All that must be the same however often the run was ended and continued.
    pub(crate) fn story(&self) -> Story {
        let dir = self.the_run();
        let text = |event: &EventRecord, part: &Option<String>| {
            part.clone()
                .unwrap_or_else(|| format!("{} has none", event.event))
        };
        // A question that was cut off is put again, and that is recorded; how often is told by the requests.
        let put_again = |event: &&EventRecord| {
            event
                .key
                .as_ref()
                .is_some_and(|key| key.contains("-asked-"))
        };
        let steps = self
            .events()
            .iter()
            .filter(|event| !put_again(event))
            .map(|event| {
                let (path, key) = (text(event, &event.path), text(event, &event.key));
                format!("{} {} {path} {key}", event.role, event.event)
            })
            .collect();
        // What these hold is told by instants and ids; each is checked in its own way.
        let varies = [
            "run.json",
            "events.jsonl",
            "TRACE.md",
            CASSETTE,
            "lock",
            "failure_bundle.zip",
            "artifacts/landing.json",
        ];
        // Logs are verbatim, with the place where the gate ran. What a killed write leaves is not a part of a run.
        let counts = |path: &str| {
            !varies.contains(&path)
                && !path.ends_with(".log")
                && !path.split('/').any(|name| name.starts_with(".tmp-"))
        };
        let id = dir
            .root()
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        let artifacts = files_below(dir.root())
            .into_iter()
            .map(|(path, bytes)| (path.to_string_lossy().into_owned(), bytes))
            .filter(|(path, _)| counts(path))
            // A receipt names its run, and a prompt the place where its answer belongs.
            .map(|(path, bytes)| {
                let text = String::from_utf8(bytes).unwrap();
                (path, text.replace(&id, "RUN").replace(&self.root.display().to_string(), "PLACE"))
            })
            .collect();
        let cassette = Cassette::parse(&std::fs::read(dir.path(CASSETTE)).unwrap()).unwrap();
        Story {
            steps,
            artifacts,
            calls: cassette
                .calls
                .iter()
                .map(|call| call.key.to_string())
                .collect(),
        }
    }

    /// Checks all that holds of a run that has come to its end, whatever happened to it before.
    pub(crate) fn assert_ended_like(&self, expected: &Story) {
        self.assert_ended_as(self.story(), expected);
    }

    /// The same for a run whose calls could not be booked for a while: such a call is written down as one that failed, and made
    /// once more.
    pub(crate) fn assert_ended_like_but_for_calls_that_failed(&self, expected: &Story) {
        let mut story = self.story();
        story.calls.dedup();
        self.assert_ended_as(story, expected);
    }

    fn assert_ended_as(&self, story: Story, expected: &Story) {
        self.assert_recorded_once();
        story.assert_is(expected);
        self.assert_ledger_is_clean();
        match status(&self.the_run(), &self.ledger()).unwrap().state {
            RunState::Landed => self.assert_landed(),
            state => assert_eq!(state, RunState::Failed),
        }
    }

    /// There is one new commit, it holds the right file, and landing again gives the same.
    fn assert_landed(&self) {
        let dir = self.the_run();
        let landing: Landing =
            serde_json::from_slice(&dir.read("artifacts/landing.json").unwrap()).unwrap();
        assert_eq!(self.git(&["rev-parse", "HEAD"]), landing.commit.to_string());
        assert_eq!(
            self.git(&["rev-parse", "HEAD^{tree}"]),
            landing.tree.to_string()
        );
        assert_eq!(self.git(&["rev-list", "--count", "--all"]), "2");
        assert_eq!(
            self.git(&["log", "-1", "--format=%B"]),
            landing.message.trim_end()
        );
        assert_eq!(self.git(&["status", "--porcelain", "--ignored"]), "");
        assert_eq!(
            std::fs::read_to_string(self.repo().join(FILE)).unwrap(),
            RIGHT
        );
        self.git(&["fsck", "--strict"]);
        let second_landing = self.land().unwrap();
        assert_eq!(second_landing, landing);
        assert_eq!(self.git(&["rev-list", "--count", "--all"]), "2");
    }

    /// Each step stands once in the ledger, and the derived files say the same as it.
    pub(crate) fn assert_recorded_once(&self) {
        let dir = self.the_run();
        let events = self.events();
        let keys: BTreeSet<_> = events
            .iter()
            .map(|event| (event.run.to_string(), event.key.clone()))
            .collect();
        assert_eq!(keys.len(), events.len(), "a step stands twice");
        let lines = String::from_utf8(self.event_lines()).unwrap();
        let messages: Vec<(u64, String)> = lines
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .map(|line| {
                (
                    line["seq"].as_u64().unwrap(),
                    line["hash"].as_str().unwrap().to_owned(),
                )
            })
            .collect();
        let known: Vec<(u64, String)> = events
            .iter()
            .map(|event| (event.seq, event.hash.to_string()))
            .collect();
        assert_eq!(messages, known);
        let trace = String::from_utf8(dir.read("TRACE.md").unwrap()).unwrap();
        assert_eq!(
            trace.lines().filter(|line| line.starts_with("- ")).count(),
            events.len(),
            "{trace}"
        );
    }
}

/// Why a replay has no result, in words.
#[derive(Debug)]
pub(crate) struct ReplayError(pub(crate) String);

/// What two runs of the same goal on the same repository share.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Story {
    pub(crate) steps: Vec<String>,
    pub(crate) artifacts: BTreeMap<String, String>,
    pub(crate) calls: Vec<String>,
}

impl Story {
    /// The place of the first step of this name, counted from 1.
    pub(crate) fn place_of(&self, event: &str) -> u64 {
        let named = |step: &String| step.split(' ').any(|word| word == event);
        self.steps.iter().position(named).expect("such a step") as u64 + 1
    }

    /// Part by part: a failure shows what differs and not all that there is.
    pub(crate) fn assert_is(&self, expected: &Self) {
        let shared = self
            .steps
            .iter()
            .zip(&expected.steps)
            .take_while(|(a, b)| a == b)
            .count();
        assert_eq!(
            self.steps[shared..],
            expected.steps[shared..],
            "after {shared} equal steps"
        );
        let names = |story: &Self| story.artifacts.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(self), names(expected));
        for (path, content) in &self.artifacts {
            assert_eq!(*content, expected.artifacts[path], "{path}");
        }
        assert_eq!(self.calls, expected.calls);
    }
}

/// What the model says in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Script {
    /// The first answer is right, but cut off by the server; the second leaves the plan's scope, the third fails the
    /// gate, the fourth is right.
    Lands,
    /// Every answer fails the gate; the later ones repeat the first.
    Fails,
}

impl Script {
    /// A model that speaks so. A question that was asked before gets the same answer, a new one the next.
    pub(crate) fn model(self) -> FakeOpenAi {
        answering(move |number| match (self, number) {
            (Self::Lands, 0) => Reply::CutAnswer(whole(FILE, RIGHT)),
            (Self::Lands, 1) => Reply::Answer(whole("check.sh", "exit 0\n")),
            (Self::Fails, 1) => Reply::Answer(whole(FILE, &WRONG.replace("len", "max"))),
            (Self::Lands, 2) | (Self::Fails, _) => Reply::Answer(whole(FILE, WRONG)),
            (Self::Lands, _) => right(),
        })
    }

    /// How many answers a run takes.
    pub(crate) fn attempts(self) -> usize {
        match self {
            Self::Lands | Self::Fails => 4,
        }
    }
}

/// A model that answers the n-th distinct question as told.
pub(crate) fn answering(script: impl Fn(usize) -> Reply + Send + 'static) -> FakeOpenAi {
    let mut known: Vec<String> = Vec::new();
    FakeOpenAi::answering(move |request: &SeenRequest| {
        let question = request.body.to_string();
        let number = known
            .iter()
            .position(|asked| *asked == question)
            .unwrap_or_else(|| {
                known.push(question);
                known.len() - 1
            });
        script(number)
    })
}

/// A model that gives these answers in order.
pub(crate) fn answering_in_order<const N: usize>(replies: [Reply; N]) -> FakeOpenAi {
    FakeOpenAi::start(replies)
}

pub(crate) fn whole(path: &str, content: &str) -> String {
    format!("FILE: {path}\n```\n{content}```\n")
}

/// The answer that is right.
pub(crate) fn right() -> Reply {
    Reply::Answer(whole(FILE, RIGHT))
}

fn options(cast: RoleServers) -> RunOptions {
    let settings = RunSettings {
        coding_agent: None,
        provider: "gateway".to_owned(),
        model: "fake-model".to_owned(),
        role_models: BTreeMap::new(),
        edit_format: EditFormat::WholeFile,
        parameters: BTreeMap::from([
            ("max_tokens".to_owned(), 500.into()),
            ("temperature".to_owned(), 0.3.into()),
        ]),
        model_timeout_s: 20,
        max_calls: cast.calls(),
        gates: vec![GateSpec::new(
            "tests".parse().unwrap(),
            vec!["sh".to_owned(), "check.sh".to_owned()],
            Duration::from_secs(20),
            "the test",
        )],
        sandbox: Strength::BestEffort,
        patch: PatchLimits {
            max_files: 5,
            max_added_lines: 100,
        },
        // One that asks for files is not shown all of them.
        max_files: if cast == RoleServers::Asks { 2 } else { 10 },
        max_total_bytes: 20_000,
        max_iterations: 4,
        max_malformed: 0,
        max_file_requests: u64::from(cast == RoleServers::Asks),
        context_window: None,
        broken_change: crucible_verify::BrokenPolicy::Required,
        // Hundreds of runs end here at each event; the tests of the program have the second world.
        second_world: crucible_verify::WorldPolicy::Off,
        results_outside: crucible_verify::ResultsPolicy::Off,
        min_strength: 0,
        strength_budget_s: 0,
        objections: crucible_verify::ObjectionPolicy::Off,
        held_out: Default::default(),
        sinks_need_approval: Vec::new(),
        candidates: 1,
        named: vec![FILE.parse().unwrap()],
        directories: Vec::new(),
        message: None,
        may_drop: Vec::new(),
        context: ContextSettings::default(),
        dispatch: cast.dispatch(),
        agents: AgentCommands::default(),
        web: None,
    };
    RunOptions {
        goal: "total must add up the prices".to_owned(),
        settings,
        found_gate_timeout: Duration::from_secs(20),
        started_in: None,
        answers: AnswerSource::Provider,
        warnings: Vec::new(),
        task: None,
    }
}

fn context(env: &Environment, sandbox: &Arc<Sandbox>) -> Context {
    Context {
        env: env.clone(),
        http: Arc::new(HttpClient::new().unwrap()),
        sandbox: Arc::clone(sandbox),
        temporary: std::env::temp_dir(),
        cli_cap: Context::CLI_CAP,
        http_cap: Context::HTTP_CAP,
    }
}

fn client_options(recording: Recording, budget: Arc<CallBudget>) -> ClientOptions {
    ClientOptions {
        scanner: Scanner::builtin(),
        recording,
        retry: RetryPolicy::NEVER,
        retries: RetryAllowance::unlimited(),
        budget,
        prices: Arc::default(),
    }
}

/// The clients of a run, as the program makes them: what was answered and recorded is not asked again.
fn clients(
    dir: &RunDir,
    base_url: &str,
    env: &Environment,
    sandbox: &Arc<Sandbox>,
    budget: &Arc<CallBudget>,
) -> Result<All, RunError> {
    let settings = ProviderSettings {
        base_url: Some(base_url.to_owned()),
        model: Some("fake-model".to_owned()),
        max_tokens: Some(4096),
        ..ProviderSettings::default()
    };
    let backend = construct("gateway", &settings, &context(env, sandbox)).unwrap();
    let header = CassetteHeader::new("gateway", "fake-model", backend.capabilities());
    let reuse = Reuse::After(answers_used(dir)?);
    match CassetteWriter::open(&dir.path(CASSETTE), &header, reuse) {
        Ok(writer) => {
            let writer = Arc::new(writer);
            let options = || client_options(Recording::To(Arc::clone(&writer)), Arc::clone(budget));
            Ok(All {
                model: ModelClient::new(backend, options()),
                person: ModelClient::new(person(dir), options()),
            })
        }
        Err(CassetteError::File(error)) => Err(error.into()),
        Err(error) => panic!("the recording cannot be used: {error}"),
    }
}

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(work)
}

/// A directory in memory where the system has one, and the usual temporary one elsewhere.
pub(crate) fn memory() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    }
}

/// Every regular file below a directory, with its bytes.
pub(crate) fn files_below(root: &Path) -> Files {
    let mut files = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_owned();
                files.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    files
}

fn empty(directory: &Path) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            empty(&path);
            let _something_is_mounted_here = std::fs::remove_dir(path);
        } else {
            std::fs::remove_file(path).unwrap();
        }
    }
}

pub(crate) fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_all(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

/// Whether a directory is that of a run which has no name of its own yet.
fn is_hidden(dir: &RunDir, id: &RunId) -> bool {
    dir.root()
        .file_name()
        .is_some_and(|name| name.to_str() == Some(&format!(".new-{id}")))
}

/// Counts the events of a run as they are told, from 1 on; one that is told again has no number.
#[derive(Default)]
pub(crate) struct Ordinals {
    last: AtomicU64,
    told: AtomicU64,
}

impl Ordinals {
    pub(crate) fn ordinal(&self, event: &EventRecord) -> Option<u64> {
        let is_new = self.last.fetch_max(event.seq, Ordering::SeqCst) < event.seq;
        is_new.then(|| self.told.fetch_add(1, Ordering::SeqCst) + 1)
    }
}
