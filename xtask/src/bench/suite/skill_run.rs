//! What running a trusted skill takes beyond the plain Python that runs the same text.
//!
//! Ours finds the project, asks the ledger and the registry, hashes the file, starts the sandbox of its class, runs it, judges input and
//! result by their schemas and writes the run down. Beside it the same interpreter imports the same module from the project and prints its result.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crucible_forge::SkillGate;
use crucible_ledger::{
    Ledger, LedgerError, Moment, NewSkillBuild, NewVerification, SkillBuildEnd, SkillGateRow,
    VerificationEnd, VerificationLevel,
};
use crucible_model::{ClockSource, Digest, Timestamp};

use super::bench::{Bench, Context, unmeasured};
use super::measure::{Case, Goal, side_by_side, timed};
use super::tree::scratch;
use crate::error::TaskError;

const NAME: &str = "skill-run";
/// The example skill under a name of its own.
const SKILL: &str = "words_of";
/// The most that it may take beyond plain Python.
const LIMIT: Duration = Duration::from_millis(40);
const INPUT: &str = r#"{"text": "one two three"}"#;
const PLAIN: &str = "import json; from skillset.skills.words_of import WordsOfSkill; \
    print(json.dumps(WordsOfSkill().execute(json.loads('{\"text\": \"one two three\"}'))))";

/// The bench of a skill's run.
pub(super) struct SkillRun;

impl Bench for SkillRun {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&self, context: &Context<'_>) -> Result<Vec<Case>, TaskError> {
        let temp_dir = scratch()?;
        let program = context.program()?;
        let stand = Stand::new(program, temp_dir.path())?;
        // A start is short and noisy: more rounds cost little.
        let rounds = context.rounds.saturating_mul(4);
        let pair = side_by_side(rounds, || stand.measure_crucible(), || stand.plain())?;
        Ok(vec![Case {
            bench: NAME,
            ours: "skill run, READ_ONLY, full isolation".to_owned(),
            beside: "the same module by plain python".to_owned(),
            pair,
            goal: Goal::MoreAtMost(LIMIT),
        }])
    }
}

/// A project with a trusted skill.
struct Stand {
    program: PathBuf,
    python: PathBuf,
    project: PathBuf,
    home: PathBuf,
}

impl Stand {
    fn new(program: PathBuf, scratch_dir: &Path) -> Result<Self, TaskError> {
        let (project, home) = (scratch_dir.join("project"), scratch_dir.join("home"));
        let git = project.join(".git");
        for directory in [&git, &home] {
            std::fs::create_dir_all(directory).map_err(TaskError::io("create", directory))?;
        }
        let stand = Self {
            program,
            python: python()?,
            project,
            home,
        };
        stand.crucible(&["skill", "init"])?;
        let io = scratch_dir.join("io.json");
        let schema = r#"{"input": {"type": "object"}, "output": {"type": "object"}}"#;
        std::fs::write(&io, schema).map_err(TaskError::io("write", &io))?;
        let io = io.display().to_string();
        stand.crucible(&[
            "skill",
            "propose",
            SKILL,
            "--describe",
            "Counts.",
            "--io",
            &io,
            "--effects",
            "READ_ONLY",
        ])?;
        stand.verify().map_err(unmeasured(NAME))?;
        stand.crucible(&["skill", "promote", SKILL, "--by", "The bench"])?;
        Ok(stand)
    }

    /// Puts the files there and lets the ledger know them as verified.
    fn verify(&self) -> Result<(), Box<dyn std::error::Error>> {
        let skills = self.project.join("src/skillset/skills");
        let text = std::fs::read_to_string(skills.join("word_count.py"))?;
        let text = text
            .replace("WordCount", "WordsOf")
            .replace("word_count", SKILL);
        std::fs::write(skills.join(format!("{SKILL}.py")), &text)?;
        std::fs::write(
            self.project.join(format!("tests/test_skill_{SKILL}.py")),
            "",
        )?;
        let mut ledger = Ledger::open(&self.home.join("data/ledger.db"))?;
        let project = Digest::compute(self.project.canonicalize()?.as_os_str().as_encoded_bytes());
        let proposal = ledger
            .skill(&project, SKILL)?
            .ok_or("the skill is not in the ledger")?
            .id;
        let at: Timestamp = "2026-01-02T03:04:05Z".parse()?;
        let moment = Moment {
            at,
            clock: ClockSource::System,
        };
        let (skill, test) = (Digest::compute(text.as_bytes()), Digest::compute(b""));
        let new = NewSkillBuild {
            moment,
            proposal,
            agent: "bench".to_owned(),
        };
        let build = ledger.begin_skill_build(&new, |_| Ok::<_, LedgerError>(b"packet".to_vec()))?;
        ledger.end_skill_build(&build, moment, &SkillBuildEnd::Succeeded { skill, test })?;
        let level = VerificationLevel::Skill;
        let required = SkillGate::REQUIRED
            .map(|gate| gate.as_str().to_owned())
            .to_vec();
        let new = NewVerification {
            moment,
            proposal,
            build: build.id,
            level,
            required,
            skill,
            test,
        };
        let verification = ledger.begin_verification(&new)?;
        for gate in SkillGate::REQUIRED {
            let findings = serde_json::json!([]);
            let row = SkillGateRow {
                gate: gate.as_str().to_owned(),
                passed: true,
                duration_ms: 1,
                findings,
                log: None,
            };
            ledger.record_skill_gate(&verification, moment, &row)?;
        }
        ledger.end_verification(&verification, moment, VerificationEnd::Passed)?;
        Ok(())
    }

    fn measure_crucible(&self) -> Result<Duration, TaskError> {
        self.crucible(&["skill", "run", SKILL, "--input", INPUT])
    }

    fn plain(&self) -> Result<Duration, TaskError> {
        let mut command = Command::new(&self.python);
        command
            .args(["-B", "-c", PLAIN])
            .env("PYTHONPATH", self.project.join("src"));
        self.time(command)
    }

    fn crucible(&self, words: &[&str]) -> Result<Duration, TaskError> {
        let mut command = Command::new(&self.program);
        command
            .args(words)
            .env("CRUCIBLE_HOME", self.home.join("data"))
            .env("CRUCIBLE_FORGE_PYTHON", &self.python);
        self.time(command)
    }

    fn time(&self, mut command: Command) -> Result<Duration, TaskError> {
        command.current_dir(&self.project).env("HOME", &self.home);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let text = format!("{command:?}");
        let (time, status) = timed(|| command.status());
        match status {
            Ok(status) if status.success() => Ok(time),
            Ok(status) => Err(TaskError::Unmeasured {
                bench: NAME,
                reason: format!("`{text}` ended with {status}"),
            }),
            Err(source) => Err(TaskError::Spawn {
                command: text,
                source,
            }),
        }
    }
}

/// The interpreter itself: a manager's script would be measured with both.
fn python() -> Result<PathBuf, TaskError> {
    let question = "import os, sys; print(os.path.realpath(sys.executable), end='')";
    let answer = Command::new("python3")
        .args(["-I", "-S", "-c", question])
        .output();
    let answer = answer.map_err(|source| TaskError::Spawn {
        command: "python3".to_owned(),
        source,
    })?;
    Ok(PathBuf::from(
        String::from_utf8_lossy(&answer.stdout).into_owned(),
    ))
}
