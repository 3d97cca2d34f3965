//! A whole deliberation before a model that takes 50 ms for each call: how much longer it takes than the longest chain of calls
//! that its grammar requires, how it stands beside a script that makes the same calls one after another, and its memory.
//!
//! The server configures the council as the question asks it to, so each case is one question. What was asked of it is written
//! down; the plain exchanges that a deliberation is compared with send those very bytes and get the same answers. The number of
//! calls and their order are checked against the grammar: a council that leaves calls out is not measured. Memory is that of a
//! process which does nothing else.

use std::io::{self, Write};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{env, mem};

use crucible_council::{
    Crucible, DegradationKind, EngineConfig, LoopGrammar, Observability, TriageContext,
};
use serde_json::{Value, json};

use super::asking::Asking;
use super::bench::{Bench, Context, unmeasured};
use super::council::peak_of;
use super::measure::{Case, Goal, Pair, timed};
use super::model_server::ModelServer;
use crate::error::TaskError;

const NAME: &str = "deliberation";

/// How long the model thinks.
const LATENCY: Duration = Duration::from_millis(50);

/// The most times that a deliberation takes of its longest chain of calls.
const LIMIT: f64 = 1.05;

/// The most memory that the process of a deliberation has resident at any moment, in bytes.
const MEMORY: u64 = 30_000_000;

/// How long answers are where time is measured, and where memory is.
const ANSWER: usize = 2_000;
const LONG_ANSWER: usize = 20_000;

/// The most rounds of a case: all of them take a good minute a round, nearly all of it waiting.
const MAX_ROUNDS: u32 = 3;

/// What a question begins with that tells the server what to configure.
const MARK: &str = "BENCH-CASE";

/// The roles of a council, of which a case takes the first few; one more seat is the red team's.
const ROLES: [&str; 4] = ["domain_expert", "pragmatist", "synthesizer", "creative"];

/// The bench of whole deliberations.
pub(super) struct Deliberation;

impl Bench for Deliberation {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&self, context: &Context<'_>) -> Result<Vec<Case>, TaskError> {
        let fixture = Fixture::open(LATENCY)?;
        fixture.deliberate(&Shape {
            grammar: LoopGrammar::Debate,
            seats: 3,
            loops: 2,
        })?;
        let rounds = context.rounds.min(MAX_ROUNDS);
        let mut cases = Vec::new();
        for &grammar in LoopGrammar::ALL {
            let measured: Result<Vec<Measured>, TaskError> = Shape::all(grammar)
                .map(|shape| fixture.measure(shape, rounds))
                .collect();
            let measured = measured?;
            cases.extend(worst(&measured, Measured::beside_chain));
            cases.extend(worst(&measured, Measured::beside_critical_path));
            cases.extend(measured.iter().filter_map(Measured::beside_script));
        }
        for &grammar in LoopGrammar::ALL {
            cases.push(fixture.memory(&Shape {
                grammar,
                seats: 5,
                loops: 5,
            })?);
        }
        Ok(cases)
    }
}

/// What a deliberation is like.
struct Shape {
    grammar: LoopGrammar,
    /// The red team's included.
    seats: usize,
    loops: usize,
}

impl Shape {
    /// Every one of a grammar.
    fn all(grammar: LoopGrammar) -> impl Iterator<Item = Self> {
        (3..=5).flat_map(move |seats| {
            (2..=5).map(move |loops| Self {
                grammar,
                seats,
                loops,
            })
        })
    }

    /// The question whose council has this shape and whose answers have so many bytes.
    fn question(&self, answer: usize) -> String {
        let Self {
            grammar,
            seats,
            loops,
        } = self;
        format!(
            "{MARK} {grammar} {seats} {loops} {answer} . Should a team of five split its one program?"
        )
    }

    /// How many calls are made at the same time, one step after the other.
    fn steps(&self) -> Vec<usize> {
        let voices = self.seats - 1;
        let in_loop = match self.grammar {
            LoopGrammar::Parallel => vec![voices, 1],
            LoopGrammar::Debate => vec![voices, 1, voices],
            LoopGrammar::Sequential => vec![1; 2 * voices + 1],
        };
        let mut steps = vec![1];
        for number in 1..=self.loops {
            steps.extend(&in_loop);
            // Whether anything changed is asked where the loops may still end early.
            steps.extend((number >= 2 && number < self.loops).then_some(1));
        }
        steps.push(1);
        steps
    }

    /// How long the longest chain of calls takes when nothing else takes any time.
    fn critical_path(&self) -> Duration {
        LATENCY * u32::try_from(self.steps().len()).unwrap_or(u32::MAX)
    }

    fn critical_path_named(&self) -> String {
        format!("its critical path, {} × {LATENCY:?}", self.steps().len())
    }

    /// Whether it is the smallest or the largest of its grammar, which stand beside a script.
    fn is_an_extreme(&self) -> bool {
        matches!((self.seats, self.loops), (3, 2) | (5, 5))
    }

    fn label(&self) -> String {
        let (deep, calls) = (self.steps().len(), self.steps().iter().sum::<usize>());
        let Self {
            grammar,
            seats,
            loops,
        } = self;
        format!("{grammar}, {seats} seats, {loops} loops: {calls} calls, {deep} deep")
    }
}

/// A server, and the means to ask it.
struct Fixture {
    server: ModelServer,
    /// The bodies of all requests that came since it was last looked at.
    heard: Arc<Mutex<Vec<Vec<u8>>>>,
    asking: Asking,
}

impl Fixture {
    fn open(latency: Duration) -> Result<Self, TaskError> {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let hearing = Arc::clone(&heard);
        let server = ModelServer::saying(latency, move |body| {
            hearing
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(body.to_vec());
            reply_for(&String::from_utf8_lossy(body))
        });
        let server = server.map_err(TaskError::io("start", "the model's server"))?;
        let asking = Asking::new(NAME, server.address())?;
        Ok(Self {
            server,
            heard,
            asking,
        })
    }

    /// The time of a deliberation, and the requests that it made.
    fn deliberate(&self, shape: &Shape) -> Result<(Duration, Vec<Vec<u8>>), TaskError> {
        self.received();
        let time = deliberate(&self.asking, &shape.question(ANSWER), shape.loops)?;
        let heard = self.received();
        let (new_count, required) = (heard.len(), shape.steps().iter().sum::<usize>());
        if new_count != required {
            let reason = format!("{}: {new_count} calls were made", shape.label());
            return Err(TaskError::Unmeasured {
                bench: NAME,
                reason,
            });
        }
        Ok((time, heard))
    }

    fn received(&self) -> Vec<Vec<u8>> {
        mem::take(&mut *self.heard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The time of plain exchanges of these bytes, one after another.
    fn exchange(&self, bodies: Vec<Vec<u8>>) -> Result<Duration, TaskError> {
        let (time, done) = timed(|| {
            self.asking.runtime.block_on(async {
                for body in bodies {
                    self.asking.http().send(self.asking.request(body)).await?;
                }
                Ok::<_, crucible_host::http::HttpError>(())
            })
        });
        done.map_err(unmeasured(NAME))?;
        Ok(time)
    }

    /// One shape beside plain exchanges, in turns: along its longest chain, and of all its calls where that is of interest.
    fn measure(&self, shape: Shape, rounds: u32) -> Result<Measured, TaskError> {
        let steps = shape.steps();
        let mut measured = Measured {
            shape,
            ours: Vec::new(),
            chain: Vec::new(),
            script: Vec::new(),
        };
        for _ in 0..rounds {
            let (time, heard) = self.deliberate(&measured.shape)?;
            measured.ours.push(time);
            measured
                .chain
                .push(self.exchange(longest_of_each(&heard, &steps))?);
            if measured.shape.is_an_extreme() {
                measured.script.push(self.exchange(heard)?);
            }
        }
        Ok(measured)
    }

    /// The memory of a process that deliberates once, with long answers and the whole trace.
    fn memory(&self, shape: &Shape) -> Result<Case, TaskError> {
        let program = env::current_exe().map_err(TaskError::io("find", "this program"))?;
        let mut command = Command::new(program);
        command.args([
            "bench",
            "--deliberate-once",
            &self.server.address().to_string(),
            "--question",
        ]);
        command.arg(shape.question(LONG_ANSWER));
        let (line, peak) = peak_of(command)?;
        self.received();
        let took = Duration::from_micros(line.trim().parse().map_err(unmeasured(NAME))?);
        Ok(Case {
            bench: NAME,
            ours: format!(
                "{}, its peak of memory with answers of {} kB",
                shape.label(),
                LONG_ANSWER / 1000
            ),
            beside: shape.critical_path_named(),
            pair: Pair {
                ours: vec![took],
                beside: vec![shape.critical_path()],
            },
            goal: Goal::MemoryAtMost { peak, most: MEMORY },
        })
    }
}

/// What was measured of one shape.
struct Measured {
    shape: Shape,
    ours: Vec<Duration>,
    /// Its longest chain of calls.
    chain: Vec<Duration>,
    /// All its calls, one after another; nothing where that was not measured.
    script: Vec<Duration>,
}

impl Measured {
    fn case(&self, beside: String, times: &[Duration], most: f64) -> Case {
        Case {
            bench: NAME,
            ours: self.shape.label(),
            beside,
            pair: Pair {
                ours: self.ours.clone(),
                beside: times.to_vec(),
            },
            goal: Goal::TimesAtMost(most),
        }
    }

    fn beside_chain(&self) -> Case {
        self.case(
            "the longest chain as plain exchanges".to_owned(),
            &self.chain,
            LIMIT,
        )
    }

    fn beside_critical_path(&self) -> Case {
        self.case(
            self.shape.critical_path_named(),
            &[self.shape.critical_path()],
            LIMIT,
        )
    }

    fn beside_script(&self) -> Option<Case> {
        let steps = self.shape.steps();
        let share = lossless(steps.len()) / lossless(steps.iter().sum());
        let case = || {
            self.case(
                "a script, one call after another".to_owned(),
                &self.script,
                LIMIT * share,
            )
        };
        (!self.script.is_empty()).then(case)
    }
}

/// Of all shapes of a grammar the one that takes longest beside what it is measured with.
fn worst(measured: &[Measured], case: fn(&Measured) -> Case) -> Option<Case> {
    let worst = measured
        .iter()
        .map(case)
        .max_by(|one, other| one.pair.ratio().total_cmp(&other.pair.ratio()))?;
    Some(Case {
        ours: format!("worst of {}: {}", measured.len(), worst.ours),
        ..worst
    })
}

/// The process of one deliberation: asks, says how many microseconds it took, and waits for the end of its input.
pub(super) fn deliberate_once(address: &str, question: &str) -> Result<(), TaskError> {
    let asking = Asking::new(NAME, address.parse().map_err(unmeasured(NAME))?)?;
    let loops = parse_request(question).map_or(0, |requested| requested.loops);
    let took = deliberate(&asking, question, loops)?;
    let mut out = io::stdout();
    writeln!(out, "{}", took.as_micros())
        .and_then(|()| out.flush())
        .map_err(TaskError::io("write", "standard output"))?;
    io::copy(&mut io::stdin(), &mut io::sink()).map_err(TaskError::io("read", "standard input"))?;
    Ok(())
}

/// The time of one run, with the whole trace, which has to take so many loops.
fn deliberate(asking: &Asking, question: &str, loops: usize) -> Result<Duration, TaskError> {
    let mut config = EngineConfig::with_backend(asking.backend()?);
    config.observability = Observability::On;
    let engine = Crucible::new(config).map_err(unmeasured(NAME))?;
    let (time, result) = timed(|| {
        asking
            .runtime
            .block_on(engine.run(question, &TriageContext::none()))
    });
    let result = result.map_err(unmeasured(NAME))?;
    // The synthesis of a long deliberation sees a part of it, as it should; nothing else may be worse than asked for.
    let worse = result
        .degradations
        .iter()
        .find(|worse| worse.kind != DegradationKind::SummaryCut);
    if usize::try_from(result.loops_executed) != Ok(loops) || worse.is_some() {
        let reason = format!("{} loops were run, with {worse:?}", result.loops_executed);
        return Err(TaskError::Unmeasured {
            bench: NAME,
            reason,
        });
    }
    Ok(time)
}

/// Of the requests of each step, the longest.
fn longest_of_each(bodies: &[Vec<u8>], steps: &[usize]) -> Vec<Vec<u8>> {
    let mut rest = bodies;
    let longest = steps.iter().map(|&calls| {
        let (step, after) = rest.split_at(calls.min(rest.len()));
        rest = after;
        step.iter()
            .max_by_key(|body| body.len())
            .cloned()
            .unwrap_or_default()
    });
    longest.collect()
}

/// What the model says to a request: a configuration, a judgement, or so many words.
fn reply_for(body: &str) -> String {
    let requested = parse_request(body);
    if body.contains("You judge whether positions changed") {
        return "YES".to_owned();
    }
    match requested {
        Some(request) if body.contains("You configure a council") => triage(&request).to_string(),
        wanted => {
            let sentence =
                "The costs stand against it, and nothing that was said here takes them away. ";
            sentence.repeat(wanted.map_or(ANSWER, |wanted| wanted.answer) / sentence.len())
        }
    }
}

/// What a question asks the server for.
struct Wanted<'a> {
    grammar: &'a str,
    seats: usize,
    loops: usize,
    answer: usize,
}

fn parse_request(text: &str) -> Option<Wanted<'_>> {
    let mut words = text.split_once(MARK)?.1.split_whitespace();
    let grammar = words.next()?;
    let mut number = || words.next()?.parse().ok();
    Some(Wanted {
        grammar,
        seats: number()?,
        loops: number()?,
        answer: number()?,
    })
}

fn triage(requested: &Wanted<'_>) -> Value {
    let seat =
        |role: &str| json!({"role": role, "system_prompt": "Weigh the costs.", "model_hint": null});
    let Wanted {
        grammar,
        seats,
        loops,
        answer,
    } = requested;
    let voices = ROLES.iter().take(seats - 1).copied();
    json!({
        "reconstructed_query": format!("{MARK} {grammar} {seats} {loops} {answer} . Should the team split it?"),
        "complexity": "complex",
        "short_circuit_allowed": false,
        "council": voices.chain(["red_team"]).map(seat).collect::<Vec<_>>(),
        "loop_grammar": grammar,
        "loop_count": loops,
        "red_team_flavor": "feasibility",
        "allow_early_exit": true,
        "synthesis_instruction": "Two paragraphs, the recommendation first.",
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a number of calls is far below 2^53"
)]
fn lossless(calls: usize) -> f64 {
    calls as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_chain_of_grammar_follows_its_rules() {
        let depth = |grammar, seats, loops| {
            let steps = Shape {
                grammar,
                seats,
                loops,
            }
            .steps();
            (steps.len(), steps.iter().sum::<usize>())
        };
        // Triage, per loop the grammar's steps, a judgement after each loop but the first and the last, synthesis.
        assert_eq!(
            depth(LoopGrammar::Parallel, 3, 2),
            (1 + 2 * 2 + 1, 1 + 2 * 3 + 1)
        );
        assert_eq!(
            depth(LoopGrammar::Debate, 4, 3),
            (1 + 3 * 3 + 1 + 1, 1 + 3 * 7 + 1 + 1)
        );
        assert_eq!(
            depth(LoopGrammar::Sequential, 5, 5),
            (1 + 5 * 9 + 3 + 1, 1 + 5 * 9 + 3 + 1)
        );
    }

    #[test]
    fn the_server_configures_what_the_question_asks_for() {
        let shape = Shape {
            grammar: LoopGrammar::Debate,
            seats: 4,
            loops: 3,
        };
        let triage: Value = serde_json::from_str(&reply_for(&format!(
            "You configure a council {}",
            shape.question(9)
        )))
        .unwrap();
        assert_eq!(
            (&triage["loop_grammar"], &triage["loop_count"]),
            (&json!("debate"), &json!(3))
        );
        assert_eq!(triage["council"].as_array().unwrap().len(), 4);
        assert_eq!(reply_for("You judge whether positions changed"), "YES");
        let words = reply_for(&format!(
            "You hold one seat of a council {}",
            shape.question(900)
        ))
        .len();
        assert!((800..=900).contains(&words), "{words}");
    }

    #[test]
    fn of_each_step_the_longest_request_counts() {
        let bodies: Vec<Vec<u8>> = ["a", "bb", "b", "c"]
            .map(|body| body.as_bytes().to_vec())
            .into();
        assert_eq!(
            longest_of_each(&bodies, &[1, 2, 1]),
            [&b"a"[..], b"bb", b"c"]
        );
    }

    #[test]
    fn every_grammar_makes_the_expected_calls() {
        let fixture = Fixture::open(Duration::ZERO).unwrap();
        for &grammar in LoopGrammar::ALL {
            let shape = Shape {
                grammar,
                seats: 4,
                loops: 3,
            };
            let (_, heard) = fixture.deliberate(&shape).unwrap();
            fixture
                .exchange(longest_of_each(&heard, &shape.steps()))
                .unwrap();
        }
    }
}
