//! `crucible chat`: the conversation as the seed lays it out, letter by letter, and all that a line can be.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use crucible_testkit::{
    CouncilCall, FakeApi, Reply, SeenRequest, council_call, simple_triage, triage,
};

use super::support::{ROLES, asked, bypassed, council, run_with};
use crate::crawl::support::wait_for;
use crate::crawl::terminal::Terminal;
use crate::support::{Fixture, Ran};

/// What a conversation begins with.
const BANNER: &str =
    "Crucible v1.0\nType 'exit' to quit, 'trace on/off' to toggle observability\n\n";

const SERVICES: &str = "Should we migrate to microservices?";
const CAPITAL: &str = "What's the capital of France?";
const ADVICE: &str = "Based on the analysis, migration to microservices is advisable only if...";

/// What the red team says, which only a trace shows.
const ATTACK: &str = "The costs of waiting are left out.";

/// A model that takes the capital for simple and everything else for a matter of four loops.
fn oracle() -> FakeApi {
    FakeApi::answering(|request| Reply::Answer(reply_for(request)))
}

fn reply_for(request: &SeenRequest) -> String {
    match council_call(request) {
        CouncilCall::Triage if request.conversation().contains("capital") => {
            simple_triage().to_string()
        }
        CouncilCall::Triage => {
            let mut triage = triage("parallel", &ROLES);
            triage["loop_count"] = 4.into();
            triage.to_string()
        }
        CouncilCall::Direct => "Paris.\n".to_owned(),
        CouncilCall::RedTeam => ATTACK.to_owned(),
        CouncilCall::Synthesis => ADVICE.to_owned(),
        other => format!("{other:?} has a position."),
    }
}

/// The conversation of these lines.
#[track_caller]
fn chat(server: &FakeApi, lines: &[u8]) -> Ran {
    let fixture = Fixture::with(server);
    run_with(fixture.call(["chat"]), lines).ok()
}

/// Interrupts the program on this terminal, and tells what was on the screen.
#[track_caller]
fn interrupted(terminal: Terminal) -> String {
    let id = terminal.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-s", "INT", &id])
            .status()
            .unwrap()
            .success()
    );
    let (code, screen) = terminal.ends();
    assert_eq!(code, Some(130), "{screen}");
    screen
}

#[test]
fn chat_transcript_matches_the_specification() {
    // §6.3 without what is typed: a pipe echoes nothing, neither the line nor its end.
    let expected = format!(
        "{BANNER}> \n[Processing... 4 loops executed]\n\n{ADVICE}\n\n> Observability enabled.\n\n> \n\
         [Processing... short-circuited]\n\nParis.\n\n> "
    );
    let server = oracle();
    let ran = chat(
        &server,
        format!("{SERVICES}\ntrace on\n{CAPITAL}\nexit\n").as_bytes(),
    );
    assert_eq!((ran.stdout, ran.stderr), (expected, String::new()));
    assert_eq!(asked(&server).last(), Some(&CouncilCall::Direct));
}

#[test]
fn terminal_chat_transcript_matches_without_colour() {
    let server = oracle();
    let fixture = Fixture::with(&server);
    let mut terminal = Terminal::start(fixture.call(["chat"]).env("TERM", "xterm"));
    terminal.shows("> ");
    terminal.types(SERVICES);
    terminal.shows("advisable only if...\r\n\r\n> ");
    terminal.types("trace on");
    terminal.shows("enabled.\r\n\r\n> ");
    terminal.types(CAPITAL);
    terminal.shows("Paris.\r\n\r\n> ");
    terminal.types("exit");
    let (code, screen) = terminal.ends();
    assert_eq!(code, Some(0));
    let expected = format!(
        "{BANNER}\
         > {SERVICES}\n\n[Processing... 4 loops executed]\n\n{ADVICE}\n\n\
         > trace on\nObservability enabled.\n\n\
         > {CAPITAL}\n\n[Processing... short-circuited]\n\nParis.\n\n\
         > exit\n"
    );
    assert_eq!(screen.replace("\r\n", "\n"), expected);
}

#[test]
fn trace_follows_answer_while_observability_is_on() {
    let lines = format!("{SERVICES}\ntrace on\n{SERVICES}\ntrace off\n{SERVICES}\n");
    let ran = chat(&oracle(), lines.as_bytes());
    let turns: Vec<&str> = ran.stdout.split("\n> ").collect();
    // The banner, five turns, and the prompt that nothing came to.
    assert_eq!(turns.len(), 7, "{}", ran.stdout);
    for plain in [1, 5] {
        assert!(turns[plain].ends_with(&format!("{ADVICE}\n")) && !turns[plain].contains(ATTACK));
    }
    assert_eq!(
        (turns[2], turns[4]),
        ("Observability enabled.\n", "Observability disabled.\n")
    );
    let (answer, argument) = turns[3].split_once(ADVICE).unwrap();
    assert!(!answer.contains(ATTACK));
    // Once in each of the four loops, at the least.
    assert!(
        argument.matches(ATTACK).count() >= 4 && argument.starts_with("\n\n"),
        "{argument}"
    );
    assert!(
        argument.ends_with('\n') && !argument.ends_with("\n\n"),
        "{argument:?}"
    );
}

#[test]
fn chat_continues_after_reporting_an_error() {
    let server = FakeApi::answering(|request| match council_call(request) {
        CouncilCall::Triage if request.conversation().contains("microservices") => {
            Reply::Answer("I would ask everybody.".to_owned())
        }
        _ => Reply::Answer(reply_for(request)),
    });
    let ran = chat(&server, format!("{SERVICES}\n{CAPITAL}\n").as_bytes());
    let (message, rest) = ran
        .stdout
        .split_once("\n\n> \n[Processing... short-circuited]")
        .unwrap();
    let text = message
        .strip_prefix(&format!(
            "{BANNER}> \n[Processing... failed]\n\nerror: the triage of "
        ))
        .unwrap();
    assert!(
        text.contains("\n  hint: ") && text.contains("--triage-model"),
        "{text}"
    );
    assert_eq!(rest, "\n\nParis.\n\n> \n");
    assert!(
        ran.stderr.starts_with("no answer; 1 call, ") && ran.stderr.lines().count() == 1,
        "{}",
        ran.stderr
    );
}

#[test]
fn overlong_chat_line_is_an_error_without_remainder() {
    let server = bypassed();
    let lines = format!("{}\n{CAPITAL}\n", "Should we? ".repeat(95_326));
    let ran = chat(&server, lines.as_bytes());
    let (message, rest) = ran
        .stdout
        .split_once("\n\n> ")
        .unwrap()
        .1
        .split_once("\n\n> ")
        .unwrap();
    assert!(
        message.starts_with("error: the question has 1048586 bytes; the limit is 200000"),
        "{message}"
    );
    assert!(
        message.contains("\n  hint: ") && message.contains("council.max_query_bytes"),
        "{message}"
    );
    assert_eq!(rest, "\n[Processing... short-circuited]\n\nParis.\n\n> \n");
    assert_eq!(asked(&server), [CouncilCall::Triage, CouncilCall::Direct]);
}

#[test]
fn chat_commands_ignore_case_and_are_not_questions() {
    let words = "Type 'exit' to quit, 'trace on/off' to toggle observability\n\n";
    let server = oracle();
    let ran = chat(
        &server,
        b"TRACE ON\nquit\nHelp\n?\n/exit\nExit\nWhat comes after the end?\n",
    );
    let expected = format!(
        "{BANNER}> Observability enabled.\n\n{}> ",
        format!("> {words}").repeat(4)
    );
    assert_eq!((ran.stdout, ran.stderr), (expected, String::new()));
    assert_eq!(asked(&server), []);
}

#[test]
fn blank_chat_line_makes_no_call() {
    let server = oracle();
    let ran = chat(
        &server,
        b"\n  \t\r\ntrace\n caf\xe9\n trace off \r\nexit\nWhat comes after the end?\n",
    );
    let expected = format!(
        "{BANNER}> > > Type 'trace on' or 'trace off'.\n\n> error: the question is not UTF-8\n  hint: Write it as \
         UTF-8 text.\n\n> Observability disabled.\n\n> "
    );
    assert_eq!((ran.stdout, ran.stderr), (expected, String::new()));
    assert_eq!(asked(&server), []);
}

#[test]
fn each_question_has_own_budget_and_no_history() {
    let server = oracle();
    let fixture = Fixture::with(&server);
    // What the first two take: the triage, four times two seats and the red team, and the answer.
    let call = fixture.call(["chat", "--max-calls", "14"]);
    let lines = format!("{SERVICES}\nShould we go back?\n{CAPITAL}\n");
    let ran = run_with(call, lines.as_bytes()).ok();
    assert_eq!(
        ran.stdout.matches("4 loops executed").count(),
        2,
        "{}",
        ran.stdout
    );
    let requests = server.completions();
    assert_eq!(requests.len(), 14 + 14 + 2);
    for request in &requests[14..] {
        assert!(
            !request.conversation().contains("microservices"),
            "{}",
            request.conversation()
        );
    }
}

#[test]
fn degradations_are_printed_to_stderr() {
    let roles = ["domain_expert", "pragmatist", "creative"];
    let server = council(triage("parallel", &roles), |call| match call {
        CouncilCall::Seat(name) if name == "creative" => Some(Reply::Status(400)),
        _ => None,
    });
    let ran = chat(&server, format!("{SERVICES}\n").as_bytes());
    assert!(
        ran.stdout.contains("[Processing... 3 loops executed]\n\n"),
        "{}",
        ran.stdout
    );
    assert!(!ran.stdout.contains("creative"), "{}", ran.stdout);
    let warnings: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(warnings.len(), 3, "{}", ran.stderr);
    assert!(
        warnings
            .iter()
            .all(|line| line.starts_with("warning: ") && line.contains("creative"))
    );
}

#[test]
fn model_text_cannot_move_the_cursor() {
    let server = council(simple_triage(), |call| match call {
        CouncilCall::Direct => Some(Reply::Answer(
            "\u{1b}[2J\u{202e}Paris.\u{7}\n\n\n".to_owned(),
        )),
        _ => None,
    });
    let ran = chat(&server, format!("{CAPITAL}\n").as_bytes());
    let answer = "]\n\n\\u{1b}[2J\\u{202e}Paris.\\u{7}\n\n> \n";
    assert!(ran.stdout.ends_with(answer), "{}", ran.stdout);
}

#[test]
fn all_line_endings_of_answers_are_normalized() {
    let server = council(simple_triage(), |call| {
        (*call == CouncilCall::Direct)
            .then(|| Reply::Answer("Paris.\r\nAnd\rno other.\r\n".to_owned()))
    });
    let ran = chat(&server, format!("{CAPITAL}\n").as_bytes());
    assert!(
        ran.stdout.ends_with("]\n\nParis.\nAnd\\rno other.\n\n> \n"),
        "{}",
        ran.stdout
    );
    let ran = Fixture::with(&server).run(["ask", CAPITAL]).ok();
    assert_eq!(ran.stdout, "Paris.\nAnd\\rno other.\n");
    let document = Fixture::with(&server)
        .run(["ask", CAPITAL, "--json"])
        .ok()
        .json();
    assert_eq!(document["final_response"], "Paris.\r\nAnd\rno other.\r\n");
}

#[test]
fn interrupted_at_the_prompt() {
    let server = oracle();
    let fixture = Fixture::with(&server);
    let mut terminal = Terminal::start(fixture.call(["chat"]).env("NO_COLOR", "1"));
    terminal.shows("> ");
    let screen = interrupted(terminal);
    assert!(screen.ends_with("> \r\nerror: interrupted\r\n"), "{screen}");
    assert_eq!(asked(&server), []);
}

#[test]
fn interrupted_while_the_council_works() {
    let server = council(simple_triage(), |call| {
        (*call == CouncilCall::Direct).then_some(Reply::Hang)
    });
    let fixture = Fixture::with(&server);
    let mut terminal = Terminal::start(fixture.call(["chat"]).env("NO_COLOR", "1"));
    terminal.shows("> ");
    terminal.types(CAPITAL);
    // It is seen before there is an answer.
    terminal.shows("\r\n\r\n[Processing...");
    wait_for("the model to be asked", || asked(&server).len() == 2);
    let screen = interrupted(terminal);
    let (_, rest) = screen
        .split_once("[Processing... interrupted]\r\nerror: interrupted\r\n")
        .unwrap();
    assert!(
        rest.contains("No partial result was saved") && !rest.contains("> "),
        "{screen}"
    );
}

#[test]
fn end_of_input_ends_the_prompt_line() {
    let fixture = Fixture::new();
    let mut terminal = Terminal::start(fixture.call(["chat"]));
    terminal.shows("> ");
    terminal.ends_input();
    let (code, screen) = terminal.ends();
    assert_eq!(code, Some(0));
    assert!(screen.ends_with("> \r\n"), "{screen}");
}

#[test]
fn chat_stops_calling_when_reader_is_gone() {
    let server = oracle();
    let fixture = Fixture::with(&server);
    let mut command = fixture.call(["chat"]).command();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut reader = child.stdout.take().unwrap();
    reader.read_exact(&mut [0; BANNER.len()]).unwrap();
    drop(reader);
    let mut lines = child.stdin.take().unwrap();
    let _it_may_have_ended = lines.write_all(format!("{CAPITAL}\n{SERVICES}\n").as_bytes());
    drop(lines);
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), output.stderr.as_slice()),
        (Some(0), &b""[..])
    );
    assert_eq!(asked(&server), []);
}

#[test]
fn unwritable_output_stops_further_questions() {
    let server = oracle();
    let fixture = Fixture::with(&server);
    std::fs::write(fixture.path("questions"), format!("{CAPITAL}\n")).unwrap();
    let questions = std::fs::File::open(fixture.path("questions")).unwrap();
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = fixture
        .call(["chat"])
        .command()
        .stdin(questions)
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.starts_with("error: the result could not be written"),
        "{stderr}"
    );
    assert_eq!(asked(&server), []);
}

#[test]
fn unreadable_input_is_an_error() {
    let fixture = Fixture::with(&oracle());
    let directory = std::fs::File::open(fixture.home()).unwrap();
    let output = fixture
        .call(["chat"])
        .command()
        .stdin(directory)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.starts_with("error: cannot read standard input: "),
        "{stderr}"
    );
}

#[test]
fn a_conversation_has_no_json_form() {
    let server = oracle();
    let fixture = Fixture::with(&server);
    let ran = run_with(fixture.call(["chat", "--json"]), b"What now?\n").exits(2);
    let error = ran.error();
    assert_eq!(error["exit_code"], 2);
    assert!(
        error["hints"][0]
            .as_str()
            .unwrap()
            .contains("crucible ask --json"),
        "{error}"
    );
    assert_eq!(asked(&server), []);
}

#[test]
fn a_conversation_without_a_model_does_not_begin() {
    let fixture = Fixture::new();
    let call = fixture.call(["chat"]).without_env("CRUCIBLE_LLM_PROVIDER");
    let ran = run_with(call, b"What now?\n").exits(2);
    assert_eq!(ran.stdout, "");
    assert!(
        ran.stderr.starts_with("error: ") && ran.stderr.contains("--provider"),
        "{}",
        ran.stderr
    );
}
