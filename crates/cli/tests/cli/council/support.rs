//! What the tests of a council share: a server that speaks for every part of one, and a look at who was asked.

use std::io::Write;
use std::process::Stdio;

use crucible_testkit::{CouncilCall, FakeApi, Reply, council_call, simple_triage, triage};
use serde_json::Value;

use crate::support::{Call, Ran};

/// The roles of most councils here, beside the red team's.
pub(crate) const ROLES: [&str; 2] = ["domain_expert", "pragmatist"];

/// What the one answer is.
pub(crate) const ANSWER: &str =
    "Keep one program for now.\n\nSplit it when a second team needs to release alone.";

/// A server that plays a whole council under this triage. `special` speaks first where it has something to say.
pub(crate) fn council(
    triage: Value,
    mut special: impl FnMut(&CouncilCall) -> Option<Reply> + Send + 'static,
) -> FakeApi {
    FakeApi::answering(move |request| {
        let call = council_call(request);
        special(&call).unwrap_or_else(|| Reply::Answer(reply_for(&call, &triage)))
    })
}

/// A council of this grammar in which everybody says the usual.
pub(crate) fn usual(grammar: &str) -> FakeApi {
    council(triage(grammar, &ROLES), |_| None)
}

/// A server whose triage lets every question go without a council.
pub(crate) fn bypassed() -> FakeApi {
    council(simple_triage(), |_| None)
}

/// What each part says when nothing else is wanted of it.
fn reply_for(call: &CouncilCall, triage: &Value) -> String {
    match call {
        CouncilCall::Triage => triage.to_string(),
        CouncilCall::Direct => "Paris.".to_owned(),
        CouncilCall::Seat(name) => format!("{name}: one program is enough for five people."),
        CouncilCall::Defense(name) => format!("{name}: the costs are counted in the second table."),
        CouncilCall::RedTeam if triage["loop_grammar"] == "debate" => {
            "TARGETS: pragmatist\nThe costs of waiting are left out.".to_owned()
        }
        CouncilCall::RedTeam => "The costs of waiting are left out.".to_owned(),
        CouncilCall::Judge => "YES".to_owned(),
        CouncilCall::Synthesis => ANSWER.to_owned(),
    }
}

/// A trace without what differs from one run to the next: tokens and times, and the columns that they widen.
pub(crate) fn steady(text: &str) -> String {
    let (argument, took) = text.split_once("WHAT IT TOOK\n").unwrap();
    let row = |line: &str| {
        let cells: Vec<&str> = line
            .split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .collect();
        let [part, calls, tokens_in, tokens_out, cost, time] = cells[..] else {
            return line.to_owned();
        };
        let number = |cell: &str| match cell.split_once(|c: char| !c.is_ascii_digit()) {
            None => "N".to_owned(),
            Some(("", _)) => cell.to_owned(),
            Some((_, rest)) => format!("N {rest}"),
        };
        let time = if time.ends_with(" s") { "T s" } else { time };
        format!(
            "  {part} | {calls} | {} | {} | {cost} | {time}",
            number(tokens_in),
            number(tokens_out)
        )
    };
    let rows: Vec<String> = took.lines().map(row).collect();
    format!("{argument}WHAT IT TOOK\n{}\n", rows.join("\n"))
}

/// Who was asked, in the order of arrival.
pub(crate) fn asked(server: &FakeApi) -> Vec<CouncilCall> {
    server.completions().iter().map(council_call).collect()
}

/// Runs a call with this on its standard input.
pub(crate) fn run_with(call: Call, input: &[u8]) -> Ran {
    let mut command = call.command();
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Who has read enough closes its end.
    let _closed = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
