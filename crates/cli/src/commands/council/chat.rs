//! `crucible chat`: the council's plain conversation (seed 001 §6).
//!
//! Lines come from standard input, and all that belongs to the conversation goes to standard output, errors included: whoever
//! reads the answers of a file of questions sees which question has none. Warnings go to standard error.
//!
//! The words of the seed are taken in any case. Words that somebody types who looks for the way out or for help (`quit`, `help`,
//! `?`, `/exit` and the like) are no questions: they ask nobody and are told what the words are.
//!
//! What holds: each question is a run of its own with a budget of its own, and nothing of it is kept; no question ends the
//! conversation, whatever comes of it, and none is asked when nobody reads the answers any more, or when the recording that was
//! asked for cannot be written: then the conversation ends.

use clap::Args;
use crucible_council::{CouncilError, ExecutorResult, Observability, TriageContext};
use crucible_llm::CallError;
use crucible_model::ExitStatus;

use super::ask::tell_in_vain;
use super::{Assembly, CouncilFlags, show};
use crate::app::App;
use crate::error::CommandError;
use crate::input::{self, Line};

/// What a conversation begins with. The version is that of the conversation as the seed lays it out; the program has its own.
const BANNER: &str = "Crucible v1.0";

/// Its words.
const WORDS: &str = "Type 'exit' to quit, 'trace on/off' to toggle observability\n";

/// How the command ends.
const ENDS: &str = "Exit codes: 0 the conversation has ended, even if questions failed, 1 standard input, \
standard output or the recording failed, 2 usage or configuration, 130 interrupted.";

/// Talk to the council, one question at a time
///
/// Each line is a question of its own; the council remembers none. `exit` or the end of the input ends the conversation;
/// `trace on` shows the argument behind each answer from then on, `trace off` no longer. For example:
///
/// `crucible chat --provider openrouter`, or `crucible chat < questions.txt > answers.txt`
///
/// Each question takes up to 64 calls of a model (--max-calls). For one question with more options: `crucible ask`.
#[derive(Args)]
#[command(after_help = ENDS)]
pub(crate) struct Chat {
    #[command(flatten)]
    council: CouncilFlags,
}

/// What a line asks for.
#[derive(Debug, PartialEq, Eq)]
enum Wish<'l> {
    Nothing,
    Exit,
    Observe(Observability),
    /// How observability is switched.
    Usage,
    /// Which words there are.
    Help,
    Answer(&'l str),
}

impl Chat {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, CommandError> {
        if app.output.is_json() {
            return Err(CommandError::usage("a conversation has no JSON output")
                .hint("Ask each question with `crucible ask --json`."));
        }
        let assembly = Assembly::choose(app, &self.council)?;
        let conversation = Conversation { app, assembly };
        conversation.hold()?;
        Ok(ExitStatus::Success)
    }
}

/// A conversation.
struct Conversation<'a> {
    app: &'a App,
    assembly: Assembly,
}

impl Conversation<'_> {
    fn hold(&self) -> Result<(), CommandError> {
        let output = &self.app.output;
        output.line(BANNER);
        output.line(WORDS);
        let limit = self.assembly.limits().query_bytes;
        let mut observability = Observability::Off;
        loop {
            let line = match self.listen(limit.saturating_add(input::SPACE_AROUND))? {
                Line::Text(line) => line,
                Line::TooLong(bytes) => {
                    self.tell(&CouncilError::QueryTooLong { bytes, limit }.into());
                    continue;
                }
                Line::NotText => {
                    self.tell(
                        &CommandError::usage("the question is not UTF-8").hint("Write it as UTF-8 text."),
                    );
                    continue;
                }
                Line::End => {
                    // What comes next on a terminal begins a line of its own.
                    output.line("");
                    break;
                }
            };
            match wish(&line) {
                Wish::Nothing => {}
                Wish::Exit => break,
                Wish::Observe(wanted) => {
                    observability = wanted;
                    output.line(match wanted {
                        Observability::On => "Observability enabled.\n",
                        Observability::Off => "Observability disabled.\n",
                    });
                }
                Wish::Usage => output.line("Type 'trace on' or 'trace off'.\n"),
                Wish::Help => output.line(WORDS),
                Wish::Answer(question) if question.len() > limit => {
                    self.tell(&CouncilError::QueryTooLong { bytes: question.len(), limit }.into());
                }
                Wish::Answer(question) => self.answer(question, observability)?,
            }
        }
        Ok(())
    }

    /// Waits for a line; the conversation is at its end, too, when nobody reads it any more.
    fn listen(&self, most: usize) -> Result<Line, CommandError> {
        self.app.output.part("> ");
        if self.app.output.is_lost() {
            return Ok(Line::End);
        }
        let line = input::line(self.app, most);
        let line = line.inspect_err(|_| self.app.output.line(""))?;
        line.map_err(|error| {
            self.app.output.line("");
            CommandError::new(ExitStatus::Refused, format!("cannot read standard input: {error}"))
        })
    }

    /// Asks the council, and says what came of it; fails where the conversation cannot go on.
    fn answer(&self, question: &str, observability: Observability) -> Result<(), CommandError> {
        let output = &self.app.output;
        output.part("\n[Processing...");
        if output.is_lost() {
            return Ok(());
        }
        let engine = self.assembly.engine(observability).inspect_err(|_| output.line(" failed]"))?;
        let context = TriageContext::none();
        let ended = self.app.block_on(async { Ok(engine.run(question, &context).await) });
        let ended = ended.map_err(|error| {
            output.line(" interrupted]");
            error.hint(self.assembly.kept())
        })?;
        match ended {
            Ok(result) => self.show(&result),
            Err(failure) => {
                // The line ends before standard error is written, which a terminal shows in the same place.
                output.line(" failed]");
                tell_in_vain(self.app, &failure);
                let unrecorded =
                    matches!(*failure.error, CouncilError::Call { source: CallError::Record(_), .. });
                let error = CommandError::from(failure);
                if unrecorded {
                    return Err(error
                        .hint("The conversation ends, because further calls would not be recorded."));
                }
                output.line("");
                self.tell(&error);
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
        output.line(&format!("\n{}\n", result.final_response.as_str().trim_end()));
        // Without a council there is no argument to show.
        let trace = if council_met { show::trace(result) } else { String::new() };
        if !trace.is_empty() {
            output.line(&format!("{}\n", trace.trim_end()));
        }
    }

    /// Prints what went wrong, as a part of the conversation.
    fn tell(&self, error: &CommandError) {
        // What a message quotes may have lines of its own: set off, they cannot pass for ours.
        let set_off = |text: &str| text.trim_end().replace('\n', "\n  ");
        let mut text = format!("error: {}\n", set_off(&error.message));
        for hint in &error.hints {
            text.push_str(&format!("  hint: {}\n", set_off(hint)));
        }
        self.app.output.line(&text);
    }
}

/// What a line asks for; space around it is no part of it, and the case of a word makes no difference.
fn wish(line: &str) -> Wish<'_> {
    let line = line.trim();
    let lower = line.to_ascii_lowercase();
    let mut words = lower.split_whitespace();
    match [words.next(), words.next(), words.next()] {
        [None, ..] => Wish::Nothing,
        [Some("exit"), None, _] => Wish::Exit,
        [Some("trace"), Some("on"), None] => Wish::Observe(Observability::On),
        [Some("trace"), Some("off"), None] => Wish::Observe(Observability::Off),
        // Two words are meant as the switch: nobody pays for a slip of the hand.
        [Some("trace"), _, None] => Wish::Usage,
        [Some("quit" | "help" | "?" | "/exit" | "/quit" | "/help" | "/?"), None, _] => Wish::Help,
        _ => Wish::Answer(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_command_only_when_it_is_one_alone() {
        let wishes = ["", " \t", "exit\r", " Exit ", "TRACE ON", "trace off ", "Trace"].map(wish);
        assert_eq!(
            wishes,
            [
                Wish::Nothing,
                Wish::Nothing,
                Wish::Exit,
                Wish::Exit,
                Wish::Observe(Observability::On),
                Wish::Observe(Observability::Off),
                Wish::Usage,
            ]
        );
        for word in ["quit", " HELP", "?", "/exit", "/Quit\r"] {
            assert_eq!(wish(word), Wish::Help);
        }
        assert_eq!(["trace maybe", "Trace  on "].map(wish), [Wish::Usage, Wish::Observe(Observability::On)]);
        for question in ["exit?", "help!", "EXITUS", "trace the costs", "how do I exit"] {
            assert_eq!(wish(question), Wish::Answer(question));
        }
    }
}
