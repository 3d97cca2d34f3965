//! Commands that serve roles: they get the prompt, and their standard output is the
//! answer.
//!
//! Each call runs on its own private copy of the run's base, without secrets and `.git`. It is sandboxed like
//! a gate, with network only if the user allows it. Files that it writes are discarded; only its standard
//! output becomes an answer, which is judged like any other. Both streams are saved in `logs/agents/`.
//!
//! What counts as what: a command that fails, hangs or is not a command at all is a failed call, and the run
//! stays where it is. One that ends well and printed nothing, far too much or no diff where one is owed has
//! answered badly: that answer is refused, and asked for once more.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use crucible_host::env::Environment;
use crucible_host::fs;
use crucible_llm::{AnswerFault, Fault, LlmBackend, LlmError, LlmInvocation, LlmResult};
use crucible_model::{ByteLimit, Code, Finding, Secret, Verdict};
use crucible_repo::Git;
use crucible_sandbox::{
    Captured, Completed, Confinement, End, Extent, FORBIDDEN_SIGNAL, Identity, Keep, Limits,
    Network, Profile, Redaction, Sandbox, Spawn, Stdin, Stdout, SyscallClass,
};
use crucible_secrets::{ProvidedValues, Scanner};
use serde_json::Value;

use crate::contract::key_lines::strip_bom;
use crate::contract::{
    API_AGENT, AgentCommands, AgentNetwork, DispatchConfig, RunRecord, RunRole, RunSettings,
    Service,
};
use crate::dispatch::action::Action;
use crate::dispatch::coding_agent::EXCHANGES;
use crate::dispatch::outbox::MAX_GIVEN;
use crate::dispatch::service::{CallHints, RoleService, TARGET};
use crate::error::RunError;
use crate::hidden::hidden_paths;
use crate::layout::{self, RunDir};
use crate::run_context::RunContext;
use crate::trial::{copy_base, environment, require_base};

const NO_COMMAND: Code = Code::new("dispatch-no-command");
const RELATIVE: Code = Code::new("dispatch-command-relative");
const UNKNOWN_WORD: Code = Code::new("dispatch-command-word");
pub(crate) const NO_DIFF: Code = Code::new("dispatch-no-diff");

/// Directory of the commands' output, in the run directory.
pub(crate) const AGENT_LOGS: &str = "logs/agents";

/// Bytes kept of standard error.
const MAX_STDERR: ByteLimit = ByteLimit(4 * 1024 * 1024);
/// A command that prints more than this on one stream is ended.
const RUNAWAY: ByteLimit = ByteLimit(32 * 1024 * 1024);
/// How much of standard error an error shows, in bytes.
const LAST_WORDS: usize = 2 * 1024;

/// The words of a command's arguments that are replaced.
const WORDS: [&str; 4] = ["prompt_file", "role", "action", "target"];

/// Checks the commands of a run before it begins. Each role served by a command needs one that is not a file
/// of the repository and has no unknown placeholder.
#[must_use]
pub(crate) fn check_agents(dispatch: &DispatchConfig, agents: &AgentCommands) -> Verdict {
    let mut verdict = Verdict::default();
    for role in RunRole::ALL {
        if dispatch.service(role) != Service::ApiAgent {
            continue;
        }
        let Some((program, arguments)) = agents.command(role).split_first() else {
            let hint = format!(
                "No command is configured for this role; set [dispatch] {} or agent_command in your own configuration.",
                if role == RunRole::Chair {
                    "plan_command"
                } else {
                    "patch_command"
                }
            );
            verdict.push(Finding::error(NO_COMMAND, role.name(), hint));
            continue;
        };
        if program.trim().is_empty() || (program.contains('/') && !Path::new(program).is_absolute())
        {
            let hint = "Name a program on PATH or an absolute path; a relative path would come from the repository.";
            verdict.push(Finding::error(
                RELATIVE,
                format!("{}: {program:?}", role.name()),
                hint,
            ));
        }
        if let Some(word) = arguments.iter().find_map(|argument| unknown_word(argument)) {
            let hint = format!("Write one of {{{}}}.", WORDS.join("}, {"));
            verdict.push(Finding::error(
                UNKNOWN_WORD,
                format!("{}: {{{word}}}", role.name()),
                hint,
            ));
        }
    }
    verdict
}

/// A configured command. It reads the evidence files and the repository; its standard output is the answer.
pub(super) struct CommandService;

impl RoleService for CommandService {
    fn reads_repository(&self) -> bool {
        true
    }

    fn writes_logs(&self) -> bool {
        true
    }

    fn timeout(&self, settings: &RunSettings) -> Duration {
        let seconds = Some(settings.agents.timeout_s).filter(|seconds| *seconds > 0);
        Duration::from_secs(seconds.unwrap_or(settings.model_timeout_s))
    }

    fn metadata(&self, _: &RunSettings, call: &CallHints<'_>) -> BTreeMap<String, Value> {
        call.with_target()
    }

    /// A patch is owed, and the output does not begin as one. Pure, so that a replay refuses the same.
    fn refuse(&self, action: Action, subject: String, answer: &str) -> Option<Finding> {
        let needs_patch = matches!(action, Action::Patch | Action::Fix);
        let text = strip_bom(answer);
        (needs_patch && !text.starts_with("diff --git ")).then(|| {
            let begins: String = text.lines().next().unwrap_or_default().chars().take(60).collect();
            let hint = format!(
                "The command's output must begin with `diff --git` but begins with {begins:?}; see logs/agents/."
            );
            Finding::error(NO_DIFF, subject, hint)
        })
    }
}

/// A backend whose answer is the output of a configured command.
pub(crate) struct AgentBackend {
    dir: RunDir,
    record: RunRecord,
    env: Environment,
    sandbox: Arc<Sandbox>,
    /// The command's environment, without the variables that describe the call.
    command_env: Vec<(OsString, OsString)>,
    /// Values that no output may contain: those of the variables the user passed on.
    keys: ProvidedValues,
    masked: Vec<PathBuf>,
}

impl AgentBackend {
    /// Creates the backend of the run in this directory.
    ///
    /// # Errors
    ///
    /// Fails when the run's record cannot be read.
    pub(crate) fn new(world: &RunContext<'_>, dir: &RunDir) -> Result<Self, RunError> {
        let record = dir.record()?;
        let mut given = environment(world);
        let mut keys = Vec::new();
        for name in &record.settings.agents.env {
            let Some(value) = world.env.get_os(name) else {
                continue;
            };
            given.push((name.into(), value.to_owned()));
            keys.extend(value.to_str().map(|key| Secret::new(key.to_owned())));
        }
        let keys = ProvidedValues::new(&keys);
        let mut masked = hidden_paths(
            world,
            &record.repo,
            &record.settings.gates,
            &given,
            None,
            &[],
        );
        let withheld = record.settings.held_out.places.iter();
        masked.extend(withheld.filter(|place| place.exists()).cloned());
        let (env, sandbox) = (world.env.clone(), Arc::clone(&world.sandbox));
        Ok(Self {
            dir: dir.clone(),
            record,
            env,
            sandbox,
            command_env: given,
            keys,
            masked,
        })
    }

    /// Prepares the copy of a call and its command.
    async fn prepare(
        &self,
        scratch_dir: &Path,
        inv: &LlmInvocation,
        call: &Call<'_>,
    ) -> Result<Spawn, RunError> {
        let git = Git::open(Arc::clone(&self.sandbox), &self.env, &self.record.repo).await?;
        let git = git.with_scratch(scratch_dir.join("git"));
        fs::create_dir_all(&scratch_dir.join("git"))?;
        let copy = scratch_dir.join("copy");
        require_base(&git, &self.record).await?;
        copy_base(&git, &copy).await?;
        require_base(&git, &self.record).await?;
        let question_dir = scratch_dir.join("question");
        fs::create_dir_all(&question_dir)?;
        let prompt = question_dir.join("PROMPT.md");
        let question = question(inv);
        fs::write_atomic(&prompt, question.as_bytes())?;
        let agents = &self.record.settings.agents;
        let (program, arguments) = agents.command(call.role).split_first().ok_or_else(|| {
            self.dir.malformed(
                layout::RUN,
                &format!("no command serves the role {}", call.role.name()),
            )
        })?;
        let prompt_text = prompt.to_string_lossy();
        let value = |word: &str| match word {
            "prompt_file" => &prompt_text,
            "role" => call.role.name(),
            "action" => call.action.name(),
            _ => call.target,
        };
        let mut env = self.command_env.clone();
        for (name, value) in [
            ("CRUCIBLE_ROLE", call.role.name()),
            ("CRUCIBLE_ACTION", call.action.name()),
            ("CRUCIBLE_TARGET", call.target),
            ("CRUCIBLE_RUN_ID", inv.spec_id.as_str()),
            ("CRUCIBLE_PROMPT", &prompt_text),
        ] {
            env.push((name.into(), value.into()));
        }
        let mut masked = self.masked.clone();
        masked.push(copy.join(".git/"));
        Ok(Spawn {
            program: PathBuf::from(program),
            args: arguments
                .iter()
                .map(|argument| filled(argument, value).into())
                .collect(),
            cwd: copy.clone(),
            env,
            stdin: Stdin::Bytes(question.into_bytes()),
            stdout: Stdout::Memory,
            limits: Limits {
                stdout: MAX_GIVEN,
                stderr: MAX_STDERR,
                runaway: RUNAWAY,
                ..Limits::new(inv.timeout)
            },
            confinement: Confinement::Confined(Profile {
                strength: self.record.settings.sandbox,
                writable: vec![copy, question_dir],
                masked,
                read_only: Vec::new(),
                mounts: Vec::new(),
                network: match agents.network {
                    AgentNetwork::Off => Network::None,
                    AgentNetwork::On => Network::Host,
                },
                calls: SyscallClass::Tools,
                identity: Identity::default(),
            }),
            keep: Keep::Head,
            // The answer is judged unchanged, and redacted in the record.
            redaction: Redaction::OnlyStderr,
        })
    }

    /// Saves both streams of a call; returns their number.
    fn keep(&self, ended: &Completed) -> Result<u64, RunError> {
        let number = last_log_number(&self.dir).map_or(1, |last| last + 1);
        for (name, stream) in [("stdout", &ended.stdout), ("stderr", &ended.stderr)] {
            let (mut log, _) = Scanner::builtin().redact_bytes(&self.keys.out_of(&stream.bytes));
            if stream.extent == Extent::Cut {
                let note = format!(
                    "\n[only the first {} of {} bytes were kept]\n",
                    stream.bytes.len(),
                    stream.total
                );
                log.extend_from_slice(note.as_bytes());
            }
            self.dir
                .write(&format!("{AGENT_LOGS}/{number:03}.{name}.log"), &log)?;
        }
        Ok(number)
    }

    /// What a command that has ended amounts to.
    fn answer(
        &self,
        inv: &LlmInvocation,
        number: u64,
        ended: &Completed,
    ) -> Result<LlmResult, LlmError> {
        let logs = format!("{AGENT_LOGS}/{number:03}.stdout.log and .stderr.log");
        let fault = |what: String| {
            let next = format!(
                "read {logs} in the run directory, fix the command and continue with `crucible run advance`"
            );
            let mut fault = Fault::new(API_AGENT, &inv.model, what, next);
            fault.stderr = Some(self.last_words(&ended.stderr)).filter(|words| !words.is_empty());
            fault
        };
        let too_large = ended.stdout.extent == Extent::Cut;
        let refused = |answer, what: String| {
            let mut fault = fault(what);
            fault.answer = Some(answer);
            Err(LlmError::ProviderOutage(fault))
        };
        let failed = |what: String| Err(LlmError::ProviderOutage(fault(what)));
        match ended.end {
            End::Exited(0) if too_large => refused(
                AnswerFault::TooLarge,
                format!(
                    "it printed {} bytes; the limit is {}",
                    ended.stdout.total, MAX_GIVEN.0
                ),
            ),
            End::OutputLimit if too_large && ended.stdout.total > ended.stderr.total => refused(
                AnswerFault::TooLarge,
                format!(
                    "it was killed after printing {} bytes; the limit is {}",
                    ended.stdout.total, MAX_GIVEN.0
                ),
            ),
            End::Exited(0) if ended.stdout.bytes.trim_ascii().is_empty() => refused(
                AnswerFault::Empty,
                "it succeeded but printed nothing".to_owned(),
            ),
            End::Exited(0) => match String::from_utf8(self.keys.out_of(&ended.stdout.bytes)) {
                Ok(text) => Ok(result(inv, text, ended)),
                Err(_) => failed("its output is not UTF-8".to_owned()),
            },
            End::Exited(code) => failed(format!("its command exited with code {code}")),
            End::Signalled(signal) => failed(format!("its command was killed by signal {signal}")),
            End::Forbidden => failed(format!(
                "its command was killed by signal {FORBIDDEN_SIGNAL}"
            )),
            End::TimedOut => Err(LlmError::Timeout {
                provider: API_AGENT.to_owned(),
                model: inv.model.clone(),
                duration: inv.timeout,
                call: inv.timeout,
                cap: inv.timeout,
            }),
            End::OutputLimit => failed(format!(
                "its command was killed after printing more than {} bytes",
                RUNAWAY.0
            )),
            End::DiskLimit => failed("its command was killed because it wrote too much".to_owned()),
        }
    }

    fn last_words(&self, stderr: &Captured) -> String {
        let bytes = self.keys.out_of(&stderr.bytes);
        let text = self.env.without_home(&String::from_utf8_lossy(&bytes));
        let text = text.trim();
        let start = text.ceil_char_boundary(text.len().saturating_sub(LAST_WORDS));
        text.get(start..).unwrap_or_default().to_owned()
    }
}

#[async_trait]
impl LlmBackend for AgentBackend {
    async fn invoke(&self, inv: LlmInvocation) -> Result<LlmResult, LlmError> {
        let wrong = |what: String| {
            let next = "fix that and continue with `crucible run advance`";
            LlmError::Misconfiguration(Fault::new(API_AGENT, &inv.model, what, next))
        };
        let target = inv
            .metadata
            .get(TARGET)
            .and_then(Value::as_str)
            .unwrap_or_default();
        let role = RunRole::ALL
            .into_iter()
            .find(|role| role.name() == inv.phase_id);
        let call = role
            .and_then(|role| Call::new(role, target))
            .ok_or_else(|| wrong(format!("{} owes nothing at {target:?}", inv.phase_id)))?;
        let temp_dir = fs::temp_dir_in(&self.dir.scratch(), "agent-")
            .map_err(|error| wrong(error.to_string()))?;
        let spawn = self
            .prepare(temp_dir.path(), &inv, &call)
            .await
            .map_err(|error| wrong(error.to_string()))?;
        let ended = self
            .sandbox
            .run(spawn)
            .await
            .map_err(|error| wrong(error.to_string()))?;
        let number = self
            .keep(&ended)
            .map_err(|error| wrong(error.to_string()))?;
        self.answer(&inv, number, &ended)
    }
}

/// What a command is called for.
struct Call<'c> {
    role: RunRole,
    action: Action,
    target: &'c str,
}

impl<'c> Call<'c> {
    /// Returns what a role owes there, if anything.
    fn new(role: RunRole, target: &'c str) -> Option<Self> {
        let action = match (role, target) {
            (RunRole::Chair, layout::FILE_REQUEST) => Action::FileRequest,
            (RunRole::Chair, layout::PLAN_DRAFT) => Action::PlanDraft,
            (RunRole::Researcher, layout::FIND_WEB) => Action::FindWeb,
            (RunRole::ContractGuardian, layout::SECOND_REVIEW_CONTRACT)
            | (RunRole::CostController, layout::SECOND_REVIEW_COST) => Action::Review,
            (RunRole::Patchmaker, layout::PATCH) => Action::Patch,
            (RunRole::Fixer, layout::PATCH) => Action::Fix,
            (RunRole::Objector, layout::OBJECTIONS) => Action::Object,
            (RunRole::SecondAuthor, layout::EXPECTATION) => Action::Expect,
            _ => return None,
        };
        Some(Self {
            role,
            action,
            target,
        })
    }
}

/// Returns the paths of the command logs in a run directory, in order.
pub(crate) fn agent_logs(dir: &RunDir) -> Vec<String> {
    let numbers = 1..=last_log_number(dir).unwrap_or_default();
    let names = numbers.flat_map(|number| {
        ["stdout.log", "stderr.log", EXCHANGES]
            .map(|name| format!("{AGENT_LOGS}/{number:03}.{name}"))
    });
    names.filter(|path| dir.has(path)).collect()
}

/// Returns the number of the last log, if any.
pub(super) fn last_log_number(dir: &RunDir) -> Option<u64> {
    let entries = std::fs::read_dir(dir.path(AGENT_LOGS)).ok()?;
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.split_once('.')?.0.parse().ok())
        .max()
}

fn result(inv: &LlmInvocation, text: String, ended: &Completed) -> LlmResult {
    let isolation = serde_json::to_value(ended.receipt.level).unwrap_or_default();
    LlmResult {
        raw_response: text,
        provider: API_AGENT.to_owned(),
        model_used: inv.model.clone(),
        tokens_input: None,
        tokens_output: None,
        timed_out: Some(false),
        extensions: BTreeMap::from([("isolation".to_owned(), isolation)]),
    }
}

fn question(inv: &LlmInvocation) -> String {
    let texts: Vec<&str> = inv
        .messages
        .iter()
        .map(|message| message.content.as_str())
        .collect();
    texts.join("\n")
}

/// Returns the first word of an argument that looks like a placeholder but is unknown.
fn unknown_word(argument: &str) -> Option<&str> {
    words(argument)
        .map(|(_, word)| word)
        .find(|word| !WORDS.contains(word))
}

/// Replaces the placeholders of an argument once; replacements are not examined again.
fn filled<'v>(argument: &str, value: impl Fn(&str) -> &'v str) -> String {
    let mut filled = String::new();
    let mut from = 0;
    for (at, word) in words(argument).filter(|(_, word)| WORDS.contains(word)) {
        filled.push_str(argument.get(from..at).unwrap_or_default());
        filled.push_str(value(word));
        from = at + word.len() + 2;
    }
    filled.push_str(argument.get(from..).unwrap_or_default());
    filled
}

/// Returns the words in braces with the position of each brace. Braces around anything else, as in JSON, are
/// text.
fn words(argument: &str) -> impl Iterator<Item = (usize, &str)> {
    argument.match_indices('{').filter_map(|(at, _)| {
        let word = argument.get(at + 1..)?.split_once('}')?.0;
        let is_word = !word.is_empty()
            && word
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        is_word.then_some((at, word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(patch: &[&str], agent: &[&str]) -> AgentCommands {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
        AgentCommands {
            patch: words(patch),
            agent: words(agent),
            ..AgentCommands::default()
        }
    }

    fn codes(agents: &AgentCommands) -> Vec<String> {
        let mut dispatch = DispatchConfig::for_model("gateway");
        dispatch.role_providers.insert(
            RunRole::Fixer,
            crate::contract::RoleProvider(API_AGENT.to_owned()),
        );
        check_agents(&dispatch, agents)
            .findings()
            .iter()
            .map(|finding| finding.code.as_str().to_owned())
            .collect()
    }

    #[test]
    fn command_exists_outside_repository() {
        assert_eq!(codes(&commands(&["agent"], &[])), [""; 0]);
        assert_eq!(
            codes(&commands(
                &[],
                &["/opt/agent", "--role={role}", "{\"json\": {}}"]
            )),
            [""; 0]
        );
        assert_eq!(codes(&commands(&[], &[])), ["dispatch-no-command"]);
        for program in ["./agent", "tools/agent", ""] {
            assert_eq!(
                codes(&commands(&[program], &[])),
                ["dispatch-command-relative"],
                "{program}"
            );
        }
        assert_eq!(
            codes(&commands(&["agent", "{prompt}"], &[])),
            ["dispatch-command-word"]
        );
    }

    #[test]
    fn words_are_replaced_once_and_all_else_stays() {
        let value = |word: &str| if word == "role" { "{target}" } else { "T" };
        assert_eq!(filled("{role}-{target}{target}", value), "{target}-TT");
        for text in ["", "{", "{}", "{ROLE}", "{\"role\": 1}", "a{b c}", "}{"] {
            assert_eq!(filled(text, value), text);
            assert_eq!(unknown_word(text), None);
        }
        assert_eq!(unknown_word("{role} {secrets}"), Some("secrets"));
    }

    #[test]
    fn only_a_patch_has_to_begin_as_one() {
        let code = |action, text| {
            CommandService
                .refuse(action, String::new(), text)
                .map(|finding| finding.code.as_str().to_owned())
        };
        for bad in [
            "",
            "\ndiff --git a/x b/x\n",
            "```diff\ndiff --git a/x b/x\n```",
            "Here: diff --git",
            "diff --gitx",
        ] {
            assert_eq!(
                code(Action::Patch, bad).as_deref(),
                Some("dispatch-no-diff"),
                "{bad}"
            );
            assert_eq!(code(Action::Review, bad), None);
        }
        assert_eq!(code(Action::Fix, "diff --git a/x b/x\n"), None);
    }
}
