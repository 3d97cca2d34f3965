//! What becomes of arguments that name no command.
//!
//! Help and version are results and printed as they are. A wrong command line is an error like any other: escaped,
//! for it quotes what was typed, and one JSON document where `--json` stands among the arguments, even when they
//! cannot be read as a whole. One under `crawl` speaks with that voice.

use std::ffi::OsString;

use crucible_model::ExitStatus;

use crate::error::CommandError;
use crate::output::{Format, Manner, Output, Voice};

/// Whether JSON is asked for. What follows a bare `--` belongs to another program.
fn wants_json(arguments: &[OsString]) -> bool {
    arguments.iter().skip(1).take_while(|argument| *argument != "--").any(|argument| argument == "--json")
}

/// How to speak of arguments that cannot be read.
pub(crate) fn manner(arguments: &[OsString]) -> Manner {
    let ours = || arguments.iter().skip(1).take_while(|argument| *argument != "--");
    let format = |json: bool| if json { Format::Json } else { Format::Human };
    // No option that may stand before a command takes a value.
    let command = ours().find(|argument| !argument.as_encoded_bytes().starts_with(b"-"));
    if command.is_none_or(|command| command != "crawl") {
        return Manner::plain(format(wants_json(arguments)));
    }
    let named = ours().zip(ours().skip(1)).any(|(name, value)| name == "--format" && value == "json");
    let asked = named || wants_json(arguments) || ours().any(|argument| argument == "--format=json");
    Manner { format: format(asked), errors: format(asked), voice: Voice::Crawl }
}

/// Prints what clap found, and tells how the process ends.
pub(crate) fn report(error: &clap::Error, output: &Output) -> ExitStatus {
    if !error.use_stderr() {
        output.clap(error);
        return ExitStatus::Success;
    }
    if output.is_json() {
        output.error(&document(error));
    } else {
        output.usage(&error.render().to_string());
    }
    ExitStatus::Usage
}

/// The parts of clap's message: what is wrong, then a paragraph for each tip.
fn document(error: &clap::Error) -> CommandError {
    let text = error.render().to_string();
    let mut paragraphs = text.split("\n\n").map(words).filter(|paragraph| !paragraph.is_empty());
    let message = paragraphs.next().unwrap_or_default();
    let usage = CommandError::usage(message.strip_prefix("error: ").unwrap_or(&message));
    paragraphs.fold(usage, CommandError::hint)
}

/// A paragraph on one line.
fn words(paragraph: &str) -> String {
    paragraph.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}
