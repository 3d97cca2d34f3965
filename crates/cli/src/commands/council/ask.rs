//! `crucible ask`: one question, one council, one answer.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::Arc;

use clap::Args;
use crucible_council::configured::CouncilSession;
use crucible_council::{
    CouncilError, CouncilFailure, ExecutorResult, Observability, TriageContext, text,
};
use crucible_model::{ExitStatus, Failure, one_line};
use crucible_terminal::input::{self, InputNotice};
use serde::Serialize;

use super::progress::CouncilProgress;
use super::{CouncilFlags, session, show};
use crate::app::App;

/// The schema name of the JSON result, described in `docs/contracts/council.schema.json`.
const SCHEMA: &str = "crucible-council-v1";

/// The exit codes, as the help lists them.
const ENDS: &str = "Exit codes: 0 answered, 1 the record of a call cannot be written, 2 usage or configuration, 3 the triage's council \
    breaks the rules, 7 the question is too long, 8 secret found, 10 a required call timed out, 70 no usable model answer, or the budget is exhausted, 130 interrupted.";

/// Ask a council of models with a red team
///
/// A triage chooses the seats of the council and the order in which they speak. In each loop a red team
/// attacks the positions of the seats. At the end one model writes the answer. For example:
///
/// `crucible ask "Should a team of five split its program into services?" --provider openrouter --trace`,
/// or `crucible ask - --context audience=board < question.txt`
///
/// The answer goes to standard output, warnings and progress to standard error. One question takes up to
/// 64 model calls (--max-calls); llm.budget.tokens and llm.budget.dollars set further limits.
#[derive(Args)]
#[command(after_help = ENDS)]
pub(crate) struct Ask {
    /// The question; `-` reads it from standard input
    ///
    /// Without an argument, it is read from standard input if that is a file or a pipe.
    #[arg(value_name = "QUESTION")]
    question: Option<String>,
    /// Show the argument behind the answer, loop by loop
    #[arg(long)]
    trace: bool,
    /// Fact about the question that only the triage sees (repeatable)
    #[arg(long, value_name = "KEY=VALUE", value_parser = entry)]
    context: Vec<(String, String)>,
    #[command(flatten)]
    council: CouncilFlags,
}

/// The JSON result: the schema name, then the fields of the engine's result.
#[derive(Serialize)]
struct Document<'r> {
    schema_version: &'static str,
    #[serde(flatten)]
    result: &'r ExecutorResult,
}

impl Ask {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let context = self.context()?;
        let assembly = session(app, &self.council)?;
        let question = self.question(app, assembly.limits().query_bytes)?;
        let progress = Arc::new(CouncilProgress::new(&app.output));
        // A program that reads the document finds only errors on standard error. A spinner leaves nothing
        // behind.
        let assembly = if app.output.is_json() && !app.output.is_live() {
            assembly
        } else {
            assembly.with_observer(Arc::clone(&progress) as _)
        };
        let engine = assembly.engine(if self.trace {
            Observability::On
        } else {
            Observability::Off
        })?;
        let ended = app.block_on(async { Ok(engine.run(&question, &context).await) });
        progress.finish();
        let ended = ended.map_err(|error| match error.status {
            ExitStatus::Interrupted => error.hint(assembly.interruption_note()),
            _ => error,
        })?;
        let result = ended.inspect_err(|failure| tell_in_vain(app, failure))?;
        self.print(app, &assembly, &result)?;
        Ok(ExitStatus::Success)
    }

    /// The trimmed question, from the argument or from standard input.
    fn question(&self, app: &App, limit: usize) -> Result<String, Failure> {
        let question = match self.question.as_deref() {
            Some(question) if question != "-" => question.to_owned(),
            None if std::io::stdin().is_terminal() => return Err(no_question()),
            Some(_) | None => from_standard_input(app, limit)?,
        };
        let question = question.trim();
        match question.len() {
            0 => Err(CouncilError::EmptyQuery.into()),
            bytes if bytes > limit => Err(CouncilError::QueryTooLong { bytes, limit }.into()),
            _ => Ok(question.to_owned()),
        }
    }

    /// The context for the triage.
    fn context(&self) -> Result<TriageContext, Failure> {
        let mut known = BTreeMap::new();
        for (key, value) in &self.context {
            if known.insert(key, value).is_some() {
                return Err(Failure::usage(format!("--context names {key:?} twice"))
                    .hint("Give each key once, with its whole value."));
            }
        }
        Ok(known
            .into_iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect())
    }

    fn print(
        &self,
        app: &App,
        assembly: &CouncilSession,
        result: &ExecutorResult,
    ) -> Result<(), Failure> {
        if app.output.is_json() {
            return app.output.json(&Document {
                schema_version: SCHEMA,
                result,
            });
        }
        for warning in show::warnings(&result.degradations) {
            app.output.remark(&warning);
        }
        if self.trace {
            app.output.line(&format!(
                "{}\n{}",
                text::answer(result),
                show::trace(result).trim_end()
            ));
        } else {
            app.output.line(result.final_response.as_str().trim_end());
            let summary = text::summary(result);
            app.output
                .remark(&match assembly.models_used(&result.usage_by_part)[..] {
                    [] => summary,
                    ref models => format!("{summary}; asked: {}", one_line(&models.join(", "))),
                });
        }
        Ok(())
    }
}

/// Prints what a failed run used. The error alone says why there is no answer.
pub(super) fn tell_in_vain(app: &App, failure: &CouncilFailure) {
    if app.output.is_json() || failure.usage.calls == 0 {
        return;
    }
    for warning in show::warnings(&failure.degradations) {
        app.output.remark(&warning);
    }
    app.output
        .remark(&format!("no answer; {}", text::usage_line(&failure.usage)));
}

/// Parses an entry of the context, `KEY=VALUE`.
fn entry(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.to_owned()))
        }
        Some(_) | None => Err("expected KEY=VALUE, such as audience=board".to_owned()),
    }
}

fn no_question() -> Failure {
    Failure::usage("no question given")
        .hint("Pass it as an argument: crucible ask \"Should we split our program into services?\"")
        .hint(
            "Or pass it on standard input: crucible ask - < question.txt. For a conversation: crucible chat",
        )
}

/// Reads all of standard input.
fn from_standard_input(app: &App, limit: usize) -> Result<String, Failure> {
    let most = limit.saturating_add(input::SPACE_AROUND);
    let bytes = app
        .read_input(most, InputNotice::Silently)?
        .map_err(|why| {
            Failure::usage(format!(
                "cannot read the question from standard input: {why}"
            ))
            .hint("Pipe it in, or pass it as an argument of `crucible ask`.")
        })?;
    if bytes.len() > most {
        let error = CouncilError::QueryTooLong {
            bytes: bytes.len(),
            limit,
        };
        let message = format!(
            "the question on standard input has more than {limit} bytes, which is the limit"
        );
        return Err(Failure {
            message,
            ..error.into()
        });
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::usage(format!(
            "the question on standard input is not UTF-8 (at byte {})",
            at + 1
        ))
        .hint("Convert it first, for example with iconv.")
    })
}
