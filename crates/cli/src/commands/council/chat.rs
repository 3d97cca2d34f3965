//! `crucible chat`: the council's plain conversation.
//!
//! Lines are read from standard input. The whole conversation, errors included, goes to standard output,
//! so that the answers to a file of questions show which question failed. Warnings go to standard error.
//!
//! The commands of the seed are recognised in any case. Words that a user types to leave or to get help
//! (`quit`, `help`, `?`, `/exit` and the like) are not sent as questions. They print the list of
//! commands.
//!
//! Invariants: each question is a separate run with its own budget, and nothing is kept between
//! questions. A failed question does not end the conversation. The conversation ends when standard output
//! is closed, or when the requested recording cannot be written.

use clap::Args;
use crucible_council::configured::CouncilSession;
use crucible_council::{CouncilError, ExecutorResult, Observability, TriageContext};
use crucible_llm::CallError;
use crucible_model::{ExitStatus, Failure};
use crucible_terminal::input::{self, Line};

use super::ask::tell_in_vain;
use super::{CouncilFlags, session, show};
use crate::app::App;

/// The first line of a conversation. Its version is that of the conversation format in the seed, not of
/// the program.
const BANNER: &str = "Crucible v1.0";

/// The commands of a conversation.
const WORDS: &str = "Type 'exit' to quit, 'trace on/off' to toggle observability\n";

/// The exit codes, as the help lists them.
const ENDS: &str = "Exit codes: 0 the conversation has ended, even if questions failed, 1 standard input, \
standard output or the recording failed, 2 usage or configuration, 130 interrupted.";

/// Talk to the council, one question at a time
///
/// Each line is a separate question; the council does not remember earlier ones. `exit` or the end of the
/// input ends the conversation. `trace on` shows the argument behind each following answer, `trace off`
/// hides it. For example:
///
/// `crucible chat --provider openrouter`, or `crucible chat < questions.txt > answers.txt`
///
/// Each question takes up to 64 model calls (--max-calls). For one question with more options:
/// `crucible ask`.
#[derive(Args)]
#[command(after_help = ENDS)]
pub(crate) struct Chat {
    #[command(flatten)]
    council: CouncilFlags,
}

/// What a line of input means.
#[derive(Debug, PartialEq, Eq)]
enum ChatInput<'l> {
    Nothing,
    Exit,
    Observe(Observability),
    /// The line names the trace switch without `on` or `off`.
    Usage,
    /// The line asks for help.
    Help,
    Answer(&'l str),
}

impl Chat {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        if app.output.is_json() {
            return Err(Failure::usage("a conversation has no JSON output")
                .hint("Ask each question with `crucible ask --json`."));
        }
        let assembly = session(app, &self.council)?;
        let conversation = Conversation { app, assembly };
        conversation.hold()?;
        Ok(ExitStatus::Success)
    }
}

/// A conversation.
struct Conversation<'a> {
    app: &'a App,
    assembly: CouncilSession,
}

impl Conversation<'_> {
    fn hold(&self) -> Result<(), Failure> {
        let output = &self.app.output;
        output.line(BANNER);
        output.line(WORDS);
        let limit = self.assembly.limits().query_bytes;
        let mut observability = Observability::Off;
        loop {
            let line = match self.listen(limit.saturating_add(input::SPACE_AROUND))? {
                Line::Text(line) => line,
                Line::TooLong(bytes) => {
                    self.print_error(&CouncilError::QueryTooLong { bytes, limit }.into());
                    continue;
                }
                Line::NotText => {
                    self.print_error(
                        &Failure::usage("the question is not UTF-8")
                            .hint("Write it as UTF-8 text."),
                    );
                    continue;
                }
                Line::End => {
                    // The next output on a terminal starts on its own line.
                    output.line("");
                    break;
                }
            };
            match wish(&line) {
                ChatInput::Nothing => {}
                ChatInput::Exit => break,
                ChatInput::Observe(wanted) => {
                    observability = wanted;
                    output.line(match wanted {
                        Observability::On => "Observability enabled.\n",
                        Observability::Off => "Observability disabled.\n",
                    });
                }
                ChatInput::Usage => output.line("Type 'trace on' or 'trace off'.\n"),
                ChatInput::Help => output.line(WORDS),
                ChatInput::Answer(question) if question.len() > limit => {
                    self.print_error(
                        &CouncilError::QueryTooLong {
                            bytes: question.len(),
                            limit,
                        }
                        .into(),
                    );
                }
                ChatInput::Answer(question) => self.answer(question, observability)?,
            }
        }
        Ok(())
    }

    /// Waits for a line. The conversation also ends when standard output is closed.
    fn listen(&self, most: usize) -> Result<Line, Failure> {
        self.app.output.part("> ");
        if self.app.output.is_lost() {
            return Ok(Line::End);
        }
        let line = self.app.block_on(async { Ok(input::line(most).await) });
        let line = line.inspect_err(|_| self.app.output.line(""))?;
        line.map_err(|error| {
            self.app.output.line("");
            Failure::refused(format!("cannot read standard input: {error}"))
        })
    }

    /// Asks the council and prints the result. Fails if the conversation cannot continue.
    fn answer(&self, question: &str, observability: Observability) -> Result<(), Failure> {
        let output = &self.app.output;
        output.part("\n[Processing...");
        if output.is_lost() {
            return Ok(());
        }
        let engine = self
            .assembly
            .engine(observability)
            .inspect_err(|_| output.line(" failed]"))?;
        let context = TriageContext::none();
        let ended = self
            .app
            .block_on(async { Ok(engine.run(question, &context).await) });
        let ended = ended.map_err(|error| {
            output.line(" interrupted]");
            error.hint(self.assembly.interruption_note())
        })?;
        match ended {
            Ok(result) => self.show(&result),
            Err(failure) => {
                // End this line before standard error is written, because a terminal shows both in the
                // same place.
                output.line(" failed]");
                tell_in_vain(self.app, &failure);
                let unrecorded = matches!(
                    *failure.error,
                    CouncilError::Call {
                        source: CallError::Record(_),
                        ..
                    }
                );
                let error = Failure::from(failure);
                if unrecorded {
                    return Err(error.hint(
                        "The conversation ends, because further calls would not be recorded.",
                    ));
                }
                output.line("");
                self.print_error(&error);
            }
        }
        Ok(())
    }

    fn show(&self, result: &ExecutorResult) {
        let output = &self.app.output;
        let council_met = result.loops_executed > 0;
        output.line(&if council_met {
            format!(" {} loops executed]", result.loops_executed)
        } else {
            " short-circuited]".to_owned()
        });
        for warning in show::warnings(&result.degradations) {
            output.remark(&warning);
        }
        output.line(&format!(
            "\n{}\n",
            result.final_response.as_str().trim_end()
        ));
        // A question that bypassed the council has no argument to show.
        let trace = if council_met {
            show::trace(result)
        } else {
            String::new()
        };
        if !trace.is_empty() {
            output.line(&format!("{}\n", trace.trim_end()));
        }
    }

    /// Prints an error as a part of the conversation.
    fn print_error(&self, error: &Failure) {
        // Indent continuation lines, so that quoted text cannot pass for ours.
        let set_off = |text: &str| text.trim_end().replace('\n', "\n  ");
        let mut text = format!("error: {}\n", set_off(&error.message));
        for hint in &error.hints {
            text.push_str(&format!("  hint: {}\n", set_off(hint)));
        }
        self.app.output.line(&text);
    }
}

/// Parses a line. Surrounding space and the case of a command are ignored.
fn wish(line: &str) -> ChatInput<'_> {
    let line = line.trim();
    let lower = line.to_ascii_lowercase();
    let mut words = lower.split_whitespace();
    match [words.next(), words.next(), words.next()] {
        [None, ..] => ChatInput::Nothing,
        [Some("exit"), None, _] => ChatInput::Exit,
        [Some("trace"), Some("on"), None] => ChatInput::Observe(Observability::On),
        [Some("trace"), Some("off"), None] => ChatInput::Observe(Observability::Off),
        // Two words that begin with `trace` are taken as the switch, so that a typing error costs no
        // call.
        [Some("trace"), _, None] => ChatInput::Usage,
        [
            Some("quit" | "help" | "?" | "/exit" | "/quit" | "/help" | "/?"),
            None,
            _,
        ] => ChatInput::Help,
        _ => ChatInput::Answer(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chat_command_must_be_the_whole_line() {
        let wishes = [
            "",
            " \t",
            "exit\r",
            " Exit ",
            "TRACE ON",
            "trace off ",
            "Trace",
        ]
        .map(wish);
        assert_eq!(
            wishes,
            [
                ChatInput::Nothing,
                ChatInput::Nothing,
                ChatInput::Exit,
                ChatInput::Exit,
                ChatInput::Observe(Observability::On),
                ChatInput::Observe(Observability::Off),
                ChatInput::Usage,
            ]
        );
        for word in ["quit", " HELP", "?", "/exit", "/Quit\r"] {
            assert_eq!(wish(word), ChatInput::Help);
        }
        assert_eq!(
            ["trace maybe", "Trace  on "].map(wish),
            [ChatInput::Usage, ChatInput::Observe(Observability::On)]
        );
        for question in [
            "exit?",
            "help!",
            "EXITUS",
            "trace the costs",
            "how do I exit",
        ] {
            assert_eq!(wish(question), ChatInput::Answer(question));
        }
    }
}
