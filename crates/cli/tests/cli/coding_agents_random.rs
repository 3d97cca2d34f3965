//! Agents and processes that end at random: whatever happens, no more is asked than the budget allows, nothing is
//! lost, and no process is left. The test is the parent of every orphan, so it sees each process that is left.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crucible_host::process::ProcessStat;
use crucible_testkit::{FakeApi, Reply, RetryAfter};
use serde_json::Value;

use crate::coding_agents::Setup;
use crate::support::snapshot;

/// An agent that asks from several threads, retries, leaves processes behind, and may be killed.
/// Arguments: threads, tries, whether it streams, whether it leaves a process, and after how many seconds it is killed.
const AGENT: &str = r#"
python3 - "$0" THREADS TRIES STREAMS LEAVES KILLED <<'PY'
import json, os, signal, subprocess, sys, threading, urllib.request
program, threads, tries, streams, leaves, killed = sys.argv[1], *map(float, sys.argv[2:])
if leaves:
    subprocess.Popen(["python3", "-c", "import time; time.sleep(600)", program], start_new_session=True)
if killed:
    threading.Timer(killed, os.kill, (os.getpid(), signal.SIGKILL)).start()
def ask(number):
    for attempt in range(int(tries)):
        body = {"model": "m", "max_tokens": 10, "stream": bool(streams),
                "messages": [{"role": "user", "content": f"hello {number}"}]}
        request = urllib.request.Request(os.environ["BASE"] + "/v1/chat/completions", json.dumps(body).encode(),
            {"Authorization": "Bearer " + os.environ["TOKEN"], "Content-Type": "application/json"})
        try:
            return urllib.request.urlopen(request, timeout=20).read()
        except Exception as error:
            print(number, attempt, error, flush=True)
asking = [threading.Thread(target=ask, args=(number,)) for number in range(int(threads))]
[thread.start() for thread in asking]
[thread.join() for thread in asking]
os._exit(0)
PY
fix
"#;

/// Numbers that follow from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    /// True once in `n` times.
    fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

fn reply(random: &mut Random) -> Reply {
    let fine = || "fine".to_owned();
    match random.below(12) {
        0 => Reply::RateLimited(RetryAfter::Absent),
        1 => Reply::RateLimited(RetryAfter::Value("0".to_owned())),
        2 => Reply::Status(500),
        3 => Reply::Drop,
        4 => Reply::DropHalfway,
        5 => Reply::EndHalfway,
        6 => Reply::FailHalfway,
        7 => Reply::LateAnswer(fine(), Duration::from_millis(random.below(300))),
        8 => Reply::SlowAnswer(fine(), Duration::from_millis(random.below(30))),
        _ => Reply::Answer(fine()),
    }
}

/// The children of this process that live, by their number and arguments.
fn living_children() -> Vec<String> {
    let own = i32::try_from(std::process::id()).unwrap();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let living = pids.filter(|pid| {
        ProcessStat::read(*pid).is_some_and(|stat| stat.parent == own && !stat.has_ended())
    });
    living
        .map(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            format!(
                "{pid} {}",
                String::from_utf8_lossy(&line).replace('\0', " ")
            )
        })
        .collect()
}

/// The lines of a run's records about requests that were sent on.
fn recorded(run: &Path) -> Vec<Value> {
    let logs = fs::read_dir(run.join("logs/agents")).into_iter().flatten();
    let logs = logs.flatten().map(|entry| entry.path());
    let mut lines: Vec<Value> = logs
        .filter(|path| path.to_str().unwrap().ends_with("exchanges.jsonl"))
        .flat_map(|path| {
            let text = fs::read_to_string(path).unwrap();
            let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
            lines.collect::<Vec<_>>()
        })
        .collect();
    lines.retain(|line| line["request"] != "");
    lines
}

/// What one run showed.
#[derive(Default)]
struct Seen {
    verified: usize,
    killed: usize,
    exhausted: usize,
}

/// One run of a random agent, killed at random and continued.
fn run(seed: u64, seen: &mut Seen) {
    let mut random = Random(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let (threads, tries) = (1 + random.below(6), 1 + random.below(3));
    let killed_after = match random.once_in(4) {
        true => format!("0.{:03}", 1 + random.below(400)),
        false => "0".to_owned(),
    };
    let lines = AGENT
        .replace("THREADS", &threads.to_string())
        .replace("TRIES", &tries.to_string())
        .replace("STREAMS", &random.below(2).to_string())
        .replace("LEAVES", &random.below(2).to_string())
        .replace("KILLED", &killed_after);
    let calls = 2 + random.below(9);
    let settings = format!(
        "[llm.budget]\ncalls = {calls}\n[run]\nmax_iterations = 2\nbroken_change = \"off\"\n"
    );
    let mut replies = Random(random.below(u64::MAX - 1) + 1);
    let api = FakeApi::answering(move |_| reply(&mut replies));
    let setup = Setup::with_server(api, &lines, &settings);
    let before = snapshot(&setup.repo, &setup.fixture);

    let mut was_killed = false;
    let mut ended = None;
    for turn in 0..4 {
        // A directory that is still being made has a dot before its name.
        let mut runs = setup.fixture.runs().into_iter();
        let has_run = runs.any(|run| {
            !run.file_name()
                .unwrap()
                .as_encoded_bytes()
                .starts_with(b".")
        });
        let mut command = match has_run {
            false => setup.call().command(),
            true => setup
                .agents(setup.fixture.call(["run", "advance", "--json"]))
                .command(),
        };
        let log = fs::File::create(setup.fixture.path("stderr")).unwrap();
        command.stdout(Stdio::null()).stderr(log);
        let mut child = command.spawn().unwrap();
        if turn < 3 && random.once_in(2) {
            std::thread::sleep(Duration::from_millis(random.below(2500)));
            child.kill().unwrap();
            was_killed = true;
        }
        ended = child.wait().unwrap().code();
        if ended.is_some() {
            break;
        }
    }
    let printed = fs::read_to_string(setup.fixture.path("stderr")).unwrap();
    let context =
        format!("seed {seed}: {calls} calls, {threads} threads, ended {ended:?}: {printed}");

    let request_count = setup.api.completions().len();
    assert!(
        request_count < calls as usize,
        "{context}: {request_count} requests"
    );
    let ended = ended.unwrap();
    assert!([0, 1, 10, 70].contains(&ended), "{context}");
    before.is_still(&snapshot(&setup.repo, &setup.fixture));
    let status = setup.fixture.status();
    assert_eq!(
        ended == 0,
        status["state"] == "verified",
        "{context}: {status:#}"
    );
    let stored_values = recorded(&setup.run_dir());
    let answered: BTreeSet<String> = stored_values
        .iter()
        .filter(|line| line["status"] != 0)
        .map(Value::to_string)
        .collect();
    // Equal lines: a session that goes on records the answers again that it need not ask for.
    assert!(
        answered.len() <= request_count,
        "{context}: {stored_values:?} of {request_count}"
    );
    // What was in flight when Crucible was killed has no line.
    assert!(
        was_killed || stored_values.len() >= request_count,
        "{context}: {stored_values:?} of {request_count}"
    );
    setup.fixture.run(["ledger", "verify"]).ok();
    let deadline = Instant::now() + Duration::from_secs(15);
    while !living_children().is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(living_children(), [""; 0], "{context}");
    seen.verified += usize::from(ended == 0);
    seen.killed += usize::from(was_killed);
    seen.exhausted += usize::from(request_count + 1 == calls as usize);
}

/// Runs these seeds; each kind of end must have occurred.
fn run_all(seeds: std::ops::Range<u64>) {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    let mut seen = Seen::default();
    for seed in seeds {
        run(seed, &mut seen);
    }
    let Seen {
        verified,
        killed,
        exhausted,
    } = seen;
    assert!(
        verified > 0 && killed > 0 && exhausted > 0,
        "{verified} verified, {killed} killed, {exhausted} with an exhausted budget"
    );
}

mod slow {
    #[test]
    fn budget_holds_over_random_ends() {
        super::run_all(0..15);
    }
}

mod exhaustive {
    /// 1,000 runs, in parts that end before the runner's limit of one test.
    macro_rules! parts {
        ($($name:ident: $seeds:expr,)*) => {
            $(#[test]
            fn $name() {
                super::run_all($seeds);
            })*
        };
    }

    parts! {
        budget_holds_over_random_ends_1: 1000..1125,
        budget_holds_over_random_ends_2: 1125..1250,
        budget_holds_over_random_ends_3: 1250..1375,
        budget_holds_over_random_ends_4: 1375..1500,
        budget_holds_over_random_ends_5: 1500..1625,
        budget_holds_over_random_ends_6: 1625..1750,
        budget_holds_over_random_ends_7: 1750..1875,
        budget_holds_over_random_ends_8: 1875..2000,
    }
}
