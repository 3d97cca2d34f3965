//! What becomes of arguments that name no command.
//!
//! Help and version are results and printed as they are. A wrong command line is an error like any other: escaped,
//! for it quotes what was typed, and one JSON document where `--json` stands among the arguments, even when they
//! cannot be read as a whole. One under `crawl` speaks with that voice. A question that was typed without quotes, or without
//! the command that asks it, gets a hint how it is meant to be typed.

use std::error::Error;
use std::ffi::OsString;

use clap::error::ErrorKind;
use crucible_model::{ExitStatus, Failure};
use crucible_secrets::SecretInName;
use crucible_terminal::{Format, Output, OutputMode, Voice};

/// Whether JSON is asked for. What follows a bare `--` belongs to another program.
fn wants_json(arguments: &[OsString]) -> bool {
    arguments
        .iter()
        .skip(1)
        .take_while(|argument| *argument != "--")
        .any(|argument| argument == "--json")
}

/// How to speak of arguments that cannot be read.
pub(crate) fn mode(arguments: &[OsString]) -> OutputMode {
    let ours = || {
        arguments
            .iter()
            .skip(1)
            .take_while(|argument| *argument != "--")
    };
    let format = |json: bool| if json { Format::Json } else { Format::Human };
    // No option that may stand before a command takes a value.
    let command = ours().find(|argument| !argument.as_encoded_bytes().starts_with(b"-"));
    if command.is_none_or(|command| command != "crawl" && command != "gate") {
        return OutputMode::plain(format(wants_json(arguments)));
    }
    let named = ours()
        .zip(ours().skip(1))
        .any(|(name, value)| name == "--format" && value == "json");
    let wants_json_output =
        named || wants_json(arguments) || ours().any(|argument| argument == "--format=json");
    let voice = if command.is_some_and(|command| command == "crawl") {
        Voice::Crawl
    } else {
        Voice::Plain
    };
    OutputMode {
        format: format(wants_json_output),
        errors: format(wants_json_output),
        voice,
    }
}

/// Prints what clap found, and tells how the process ends.
pub(crate) fn report(error: &clap::Error, arguments: &[OsString], output: &Output) -> ExitStatus {
    if !error.use_stderr() {
        output.written_by(|| error.print());
        return ExitStatus::Success;
    }
    // Clap quotes what was typed.
    if let Some(secret) = error
        .source()
        .and_then(|source| source.downcast_ref::<SecretInName>())
    {
        output.error(&Failure::from(secret));
        return ExitStatus::SecretDetected;
    }
    let text = with_tip(
        &error.render().to_string(),
        question(error.kind(), arguments),
    );
    if output.is_json() {
        output.error(&document(&text));
    } else {
        output.usage(&text);
    }
    ExitStatus::Usage
}

/// The question that a user seems to ask with these arguments.
fn question(kind: ErrorKind, arguments: &[OsString]) -> Option<String> {
    let mut words = arguments
        .iter()
        .skip(1)
        .map(|argument| argument.to_string_lossy());
    let named = words.by_ref().find(|word| !word.starts_with('-'))?;
    match kind {
        // `ask` takes one text, and more came.
        ErrorKind::UnknownArgument if named == "ask" => {
            let question: Vec<_> = words.take_while(|word| !word.starts_with('-')).collect();
            (question.len() > 1).then(|| question.join(" "))
        }
        // No command has a blank in its name.
        ErrorKind::InvalidSubcommand if named.contains(' ') => Some(named.into_owned()),
        _ => None,
    }
}

/// Clap's message with a tip of ours before the usage.
fn with_tip(text: &str, question: Option<String>) -> String {
    let Some(question) = question else {
        return text.to_owned();
    };
    let tip = format!(
        "  tip: a question is one text in quotes: crucible ask {}",
        in_quotes(&question)
    );
    match text.split_once("\n\nUsage:") {
        Some((before, usage)) => format!("{before}\n\n{tip}\n\nUsage:{usage}"),
        None => format!("{}\n\n{tip}\n", text.trim_end()),
    }
}

/// The text as a shell takes it for one argument and itself.
fn in_quotes(text: &str) -> String {
    if text.contains(['"', '$', '`', '\\', '!']) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    format!("\"{text}\"")
}

/// The parts of clap's message: what is wrong, then a paragraph for each tip.
fn document(text: &str) -> Failure {
    let mut paragraphs = text
        .split("\n\n")
        .map(words)
        .filter(|paragraph| !paragraph.is_empty());
    let message = paragraphs.next().unwrap_or_default();
    let usage = Failure::usage(message.strip_prefix("error: ").unwrap_or(&message));
    paragraphs.fold(usage, Failure::hint)
}

/// A paragraph on one line.
fn words(paragraph: &str) -> String {
    paragraph
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}
