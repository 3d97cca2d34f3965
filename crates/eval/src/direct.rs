//! The baseline: the same model writes whole files once, without plan, gates or judge. Its answer is
//! committed unchanged.
//!
//! The model sees the goal and the project's files, or those that the task names. All of them must fit into
//! the limit.

use std::sync::Arc;
use std::time::Duration;

use crucible_host::fs::{read_beneath, write_atomic};
use crucible_llm::{CallError, LlmError, LlmInvocation, Message, ModelClient};
use crucible_model::{ByteLimit, EditFormat, PromptBuilder, RepoPath, Untrusted};
use crucible_patch::{apply, read_answer};
use crucible_repo::Git;
use serde_json::Value;

use crate::engine::{Ending, Job, Solved};
use crate::error::EvalError;
use crate::outcome::Spent;
use crate::place::Machine;

/// The most bytes of files that are shown.
const MAX_SHOWN: u64 = 64 * 1024;

/// How the baseline asks.
pub(crate) struct DirectRequest<'a> {
    /// The model, in all its layers.
    pub client: &'a ModelClient,
    /// The model's name.
    pub model: String,
    /// The parameters of the question.
    pub parameters: std::collections::BTreeMap<String, Value>,
    /// The time for the answer.
    pub timeout: Duration,
}

/// Requests whole files from the model and commits them. The answer is saved in the trial's `answer.txt`.
///
/// # Errors
///
/// Fails where the clone or the trial's directory cannot be used.
pub(crate) async fn ask_directly(
    machine: &Machine<'_>,
    request: DirectRequest<'_>,
    job: &Job<'_>,
) -> Result<Solved, EvalError> {
    let free = Spent {
        micro_dollars: Some(0),
        ..Spent::default()
    };
    let ended = |ending, reason: String, spent| Solved {
        ending,
        reason,
        run: None,
        spent,
    };
    let files = match read_files(machine, job).await? {
        Ok(files) => files,
        Err(why) => return Ok(ended(Ending::Declined, why, free)),
    };
    let mut prompt = PromptBuilder::new().fixed_text("Goal: ").operator(&job.task.goal).fixed_text(
        "\n\nChange the project below so that it reaches the goal. For each file that you change or add, answer with one line \
         `FILE: path` and then its complete new content in one fenced code block. Leave nothing out.\n\n",
    );
    for (path, content) in &files {
        prompt = prompt.untrusted(path.as_str(), &Untrusted::new(content.clone()));
    }
    let invocation = LlmInvocation {
        spec_id: job.task.name.clone(),
        phase_id: "direct".to_owned(),
        model: request.model.clone(),
        timeout: request.timeout,
        messages: vec![Message::user(prompt.build())],
        metadata: request.parameters,
    };
    let (llm_result, calls) = request.client.call_counted(invocation).await;
    let result = match llm_result {
        Ok(result) => result,
        Err(error) => {
            let ending = match &error {
                CallError::Llm(LlmError::Timeout { .. }) => Ending::Nothing,
                CallError::Secret(_) => Ending::Declined,
                CallError::Llm(_) | CallError::Record(_) => Ending::Unfinished,
            };
            let cost = if calls == 0 { Some(0) } else { None };
            let spent = Spent {
                calls,
                micro_dollars: cost,
                ..free
            };
            return Ok(ended(ending, error.to_string(), spent));
        }
    };
    let receipt = request
        .client
        .receipt(&result, &[request.model], request.timeout);
    let spent = Spent {
        calls,
        tokens_input: result.tokens_input.unwrap_or_default(),
        tokens_output: result.tokens_output.unwrap_or_default(),
        micro_dollars: receipt.cost.map(|cost| cost.micro_dollars),
    };
    write_atomic(
        &job.place.join("answer.txt"),
        result.raw_response.as_bytes(),
    )?;
    let nothing = |why: String| Ok(ended(Ending::Nothing, why, spent));
    let answer = match result.complete_answer() {
        Ok(answer) => answer,
        Err(cut) => return nothing(cut.to_string()),
    };
    let paths: Vec<RepoPath> = files.iter().map(|(path, _)| path.clone()).collect();
    let before = files
        .into_iter()
        .map(|(path, content)| (path, content.into_bytes()))
        .collect();
    let after = read_answer(EditFormat::WholeFile, &answer, &paths)
        .and_then(|proposal| apply(&proposal, &before));
    match after {
        Ok(after) if after.is_empty() => nothing("the answer changes no file".to_owned()),
        Ok(after) => {
            let commit = job.workspace.commit_files(after).await?;
            Ok(ended(
                Ending::Landed(commit),
                "the answer was committed".to_owned(),
                spent,
            ))
        }
        Err(error) => nothing(error.to_string()),
    }
}

/// The files that are shown, or why that is not possible.
async fn read_files(
    machine: &Machine<'_>,
    job: &Job<'_>,
) -> Result<Result<Vec<(RepoPath, String)>, String>, EvalError> {
    let top = job.workspace.top();
    let mut paths = job.task.files.clone();
    if paths.is_empty() {
        let git = Git::open(Arc::clone(&machine.sandbox), machine.env, top).await?;
        let tracked = git.tracked_names().await?;
        paths = tracked
            .iter()
            .filter_map(|(path, _)| path.to_str()?.parse().ok())
            .collect();
    }
    let (mut files, mut total) = (Vec::new(), 0u64);
    for path in paths {
        let bytes = match read_beneath(top, path.as_str(), ByteLimit(MAX_SHOWN)) {
            Ok(bytes) => bytes,
            Err(error) => return Ok(Err(format!("{path} cannot be shown: {error}"))),
        };
        // What is not text is not shown.
        let Ok(content) = String::from_utf8(bytes) else {
            continue;
        };
        total += content.len() as u64;
        if total > MAX_SHOWN {
            return Ok(Err(format!(
                "the project has more than {MAX_SHOWN} bytes; name `files` in task.toml"
            )));
        }
        files.push((path, content));
    }
    Ok(Ok(files))
}
