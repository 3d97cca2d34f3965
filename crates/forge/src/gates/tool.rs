//! Runs one program of a gate in a sandbox: no network, the copy of the project only to be read, one directory to write to.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crucible_model::{ByteLimit, Code, Finding, Verdict};
use crucible_sandbox::{
    CONFINED_HOME, Cap, Captured, Completed, Confinement, End, Extent, FORBIDDEN_SIGNAL, Identity,
    Keep, Limits, Network, Profile, Redaction, Resources, Spawn, Stdin, Stdout, SyscallClass,
    base_env, toolchain_env,
};
use serde_json::{Map, Value, json};

use super::{GateAnswer, GateError, GateSite, SkillTool};

/// What is kept of each stream.
const KEPT: ByteLimit = ByteLimit(2 << 20);
/// A program that prints more than this is ended.
const RUNAWAY: ByteLimit = ByteLimit(64 << 20);
/// The grace period of a program that is asked to end.
const GRACE: Duration = Duration::from_secs(1);
/// What tools and tests may use: enough for a compiled type checker and a test of what takes memory, not enough to take the machine.
const RESOURCES: Resources = Resources {
    memory: Cap::Unlimited,
    address_space: Cap::At(16 << 30),
    file_size: Cap::At(512 << 20),
    processes: Cap::At(256),
    open_files: Cap::At(1024),
    disk: Cap::At(1 << 30),
};
/// The code of a gate whose time was over.
pub(crate) const GATE_TIMED_OUT: Code = Code::new("forge-gate-timed-out");

/// A call of a program.
pub(super) struct ToolCall<'a> {
    pub(super) tool: &'a SkillTool,
    pub(super) args: Vec<OsString>,
    /// Variables besides the usual ones.
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) stdin: Stdin,
    /// A directory that it may write to.
    pub(super) writable: PathBuf,
}

impl<'a> ToolCall<'a> {
    /// A call with these words; `writable` has to be there.
    pub(super) fn new<'w>(
        tool: &'a SkillTool,
        words: impl IntoIterator<Item = &'w str>,
        writable: PathBuf,
    ) -> Self {
        let args = words.into_iter().map(OsString::from).collect();
        Self {
            tool,
            args,
            env: Vec::new(),
            stdin: Stdin::Empty,
            writable,
        }
    }

    /// Runs it in the copy.
    pub(super) async fn run(self, site: &GateSite<'_>, keep: Keep) -> Result<ToolRun, GateError> {
        let mut env = base_env(site.world.env);
        env.extend(toolchain_env(site.world.env));
        env.retain(|(name, _)| name != "PATH");
        env.extend([
            ("PATH".into(), site.tools.search_path().clone()),
            ("HOME".into(), CONFINED_HOME.into()),
            ("TMPDIR".into(), self.writable.clone().into_os_string()),
            ("NO_COLOR".into(), "1".into()),
            ("PYTHONDONTWRITEBYTECODE".into(), "1".into()),
            ("PYTHONUTF8".into(), "1".into()),
        ]);
        env.extend(self.env);
        let limits = Limits {
            stdout: KEPT,
            stderr: KEPT,
            runaway: RUNAWAY,
            grace: GRACE,
            resources: RESOURCES,
            ..Limits::new(site.timeout)
        };
        let profile = Profile {
            strength: site.world.strength,
            writable: vec![self.writable],
            masked: Vec::new(),
            read_only: Vec::new(),
            mounts: Vec::new(),
            network: Network::None,
            calls: SyscallClass::Tools,
            identity: Identity::default(),
        };
        let spawn = Spawn {
            program: self.tool.path.clone(),
            args: self.args,
            cwd: site.copy.to_owned(),
            env,
            stdin: self.stdin,
            stdout: Stdout::Memory,
            limits,
            confinement: Confinement::Confined(profile),
            keep,
            redaction: Redaction::Redact,
        };
        let completed = site.world.sandbox.run(spawn).await?;
        Ok(ToolRun {
            name: self.tool.name,
            timeout: site.timeout,
            completed,
            copy: site.copy.to_owned(),
            hidden: None,
        })
    }
}

/// A program that ended.
pub(super) struct ToolRun {
    name: &'static str,
    timeout: Duration,
    completed: Completed,
    copy: PathBuf,
    hidden: Option<String>,
}

impl ToolRun {
    /// Its exit code, where it ended by itself.
    pub(super) const fn exit_code(&self) -> Option<i32> {
        match self.completed.end {
            End::Exited(code) => Some(code),
            _ => None,
        }
    }

    pub(super) const fn stdout(&self) -> &Captured {
        &self.completed.stdout
    }

    /// What it printed on its standard output, with places below the copy as the project names them.
    pub(super) fn stdout_text(&self) -> String {
        placed(&self.completed.stdout, &self.copy)
    }

    /// Why its answer cannot be used, if it did not end by itself.
    pub(super) fn abnormal_end(&self) -> Option<Finding> {
        let name = self.name;
        let finding = |what: String, hint: &str| {
            Some(Finding::error(
                Code::new("forge-gate-ended"),
                format!("{name}: {what}"),
                hint,
            ))
        };
        match self.completed.end {
            End::Exited(_) => None,
            End::TimedOut => {
                let seconds = self.timeout.as_secs();
                Some(Finding::error(
                    GATE_TIMED_OUT,
                    format!("{name}: {seconds} s"),
                    "It was ended because its time was over. Look for what waits or never ends; [forge] gate_timeout_s gives more time.",
                ))
            }
            End::Signalled(signal) => finding(
                format!("signal {signal}"),
                "It was ended by a signal from elsewhere, by the lack of memory perhaps. Verify again.",
            ),
            End::OutputLimit => finding(
                format!("more than {} MiB of output", RUNAWAY.0 >> 20),
                "It printed without end and was ended. Take the prints out.",
            ),
            End::DiskLimit => finding(
                "more than 1 GiB on the disk".to_owned(),
                "It wrote without end and was ended. Write less.",
            ),
            End::Forbidden => finding(
                format!("signal {FORBIDDEN_SIGNAL}"),
                "It made a system call that the sandbox forbids. Leave it out.",
            ),
        }
    }

    /// A finding for a program that ended with a code that says nothing about the skill.
    pub(super) fn failed(&self, code: i32) -> Finding {
        let output = placed(&self.completed.stderr, &self.copy) + "\n" + &self.stdout_text();
        let last = output
            .lines()
            .map(str::trim)
            .rfind(|line| !line.is_empty())
            .unwrap_or("it printed nothing");
        Finding::error(
            Code::new("forge-gate-ended"),
            format!("{}: exit code {code}", self.name),
            format!("It did not get to its verdict: {last}"),
        )
    }

    /// The answer of the gate with this verdict.
    pub(super) fn answer(&self, verdict: Verdict) -> GateAnswer {
        GateAnswer {
            verdict,
            log: self.log(),
            facts: self.facts(),
        }
    }

    /// Takes the lines that hold this out of the log.
    pub(super) fn hide(&mut self, word: String) {
        self.hidden = Some(word);
    }

    /// What it printed, for the record.
    pub(super) fn log(&self) -> Vec<u8> {
        let mut log = String::new();
        for (stream, captured) in [
            ("stdout", &self.completed.stdout),
            ("stderr", &self.completed.stderr),
        ] {
            if captured.total == 0 {
                continue;
            }
            let kept_bytes = captured.bytes.len();
            let cut = match captured.extent {
                Extent::Whole => String::new(),
                Extent::Cut => format!(", {kept_bytes} of {} bytes kept", captured.total),
            };
            log.push_str(&format!("==> {} {stream}{cut}\n", self.name));
            let text = placed(captured, &self.copy);
            let hides = |line: &&str| {
                self.hidden
                    .as_deref()
                    .is_some_and(|word| line.contains(word))
            };
            log.extend(text.split_inclusive('\n').filter(|line| !hides(line)));
            if !log.ends_with('\n') {
                log.push('\n');
            }
        }
        log.into_bytes()
    }

    /// What was measured.
    pub(super) fn facts(&self) -> Map<String, Value> {
        let mut facts = Map::new();
        facts.insert("isolation".to_owned(), json!(self.completed.receipt.level));
        if let Some(code) = self.exit_code() {
            facts.insert("exit_code".to_owned(), json!(code));
        }
        facts
    }
}

/// The text with places below the copy as the project names them.
fn placed(captured: &Captured, copy: &Path) -> String {
    captured.text().replace(&format!("{}/", copy.display()), "")
}
