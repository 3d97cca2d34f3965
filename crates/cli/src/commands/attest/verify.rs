//! `crucible attest verify`: commits or a bundle file, judged by a policy.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use crucible_attest::{MAX_NOTE, NoteRead, judge_file, subject_commit};
use crucible_host::fs::{FsError, read_regular_up_to};
use crucible_model::{
    ByteLimit, ExitStatus, Failure, Finding, SarifRule, SarifRun, Verdict, code_sections,
};
use crucible_repo::{CommitReader, Revisions};
use crucible_run::check_commits;
use serde_json::json;

use super::{policy, report};
use crate::app::App;

/// Verify the signed statements of commits against a policy, offline
///
/// Judges one commit, each commit of a range, or a file of `crucible attest export`. A file alone does not show that the
/// commit is what it says. Exit code 0: everything is admitted; 1: something is refused. For example:
/// `crucible attest verify origin/main..HEAD --policy attest.toml`
#[derive(Args)]
pub(crate) struct Verify {
    /// A commit (HEAD), a range (main..topic), or a file of statements (x.jsonl, x.json or ./x)
    #[arg(value_name = "REV|RANGE|BUNDLE")]
    subject: String,
    /// The policy [default: attest.policy]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// The repository [default: the one around the working directory]
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// Output format; `--json` is the same as `--format json`
    #[arg(long, value_name = "FORMAT")]
    format: Option<VerifyFormat>,
}

/// The output format of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum VerifyFormat {
    /// For people
    Text,
    /// One document, crucible-attest-verify-v1
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
}

impl Verify {
    /// Whether the format is JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.format == Some(VerifyFormat::Json)
    }

    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let policy = policy(app, self.policy.as_deref())?;
        let now = app.clock.now();
        if let Some(file) = self.file(app)? {
            let read = match read_regular_up_to(&file, ByteLimit(MAX_NOTE)) {
                Ok(bytes) => Some(bytes),
                Err(FsError::TooLarge { .. }) => None,
                Err(error) => return Err(error.into()),
            };
            let bytes = read.as_deref().map_or(NoteRead::TooLarge, NoteRead::Bytes);
            let judged = judge_file(&policy, &self.subject, bytes, now);
            if self.is_sarif(app) {
                return self.sarif(app, &judged.verdict);
            }
            let commit = subject_commit(read.as_deref().unwrap_or_default()).unwrap_or_default();
            if app.output.is_json() {
                let commits = json!([{ "commit": commit, "admitted": false, "statement_valid": judged.admission.is_some() }]);
                return report::document(app, &judged.verdict, &commits);
            }
            let passed = format!(
                "the statements about {commit} are valid; verify the commit itself with `crucible attest verify {commit}`"
            );
            return app
                .output
                .verdict(&judged.verdict.report(report::schema()), &passed);
        }
        let place = self.repo.clone().unwrap_or_default();
        let reader = CommitReader::open(app.runtime().sandbox, &app.env, &place)?;
        let named = match self.subject.contains("..") {
            true => Revisions::Range(&self.subject),
            false => Revisions::Commit(&self.subject),
        };
        let check = app.drive(check_commits(&reader, &policy, named, now))?;
        if self.is_sarif(app) {
            return self.sarif(app, &check.verdict);
        }
        report::show(app, &check)
    }

    /// Returns the bundle file that the user named; `None` if it is a revision or a range.
    ///
    /// A path that begins with `/`, `./` or `../` is a file, because no revision begins so. Otherwise the ending decides: a
    /// file that is named like a range must not be judged in its place. A name that is both is an error.
    fn file(&self, app: &App) -> Result<Option<PathBuf>, Failure> {
        let name = Path::new(&self.subject);
        let file = app.absolute(name);
        if ["/", "./", "../"]
            .iter()
            .any(|start| self.subject.starts_with(start))
        {
            return Ok(Some(file));
        }
        let ending = name.extension().and_then(std::ffi::OsStr::to_str);
        if !matches!(ending, Some("json" | "jsonl")) {
            return Ok(None);
        }
        let place = self.repo.clone().unwrap_or_default();
        let is_revision = match CommitReader::open(app.runtime().sandbox, &app.env, &place) {
            Ok(reader) => app.drive(reader.has_revision(&self.subject))?,
            // A file needs no repository.
            Err(_) => false,
        };
        match (is_revision, file.exists()) {
            (true, true) => Err(Failure::usage(format!(
                "{:?} is ambiguous: it is a file and a revision",
                self.subject
            ))
            .hint(format!(
                "Write ./{} for the file, or the whole name of the ref, such as refs/heads/{}.",
                self.subject, self.subject
            ))),
            (true, false) => Ok(None),
            (false, _) => Ok(Some(file)),
        }
    }

    fn is_sarif(&self, app: &App) -> bool {
        self.format == Some(VerifyFormat::Sarif) && !app.output.is_json()
    }

    fn sarif(&self, app: &App, verdict: &Verdict) -> Result<ExitStatus, Failure> {
        let status = verdict.outcome().exit_status();
        let place = |finding: &Finding| {
            format!(
                "commits/{}",
                finding.subject.split(':').next().unwrap_or_default()
            )
        };
        let findings: Vec<_> = verdict
            .findings()
            .iter()
            .map(|finding| (finding, place(finding)))
            .collect();
        let rules: Vec<SarifRule> = code_sections("attest").map(SarifRule::from).collect();
        let log = SarifRun {
            id: &format!("crucible-attest/{}/", self.subject),
            rules: &rules,
            findings: &findings,
            left_out: 0,
            exit_code: status.code(),
            at: app.clock.now(),
        };
        app.output.json(&log.log())?;
        Ok(status)
    }
}
