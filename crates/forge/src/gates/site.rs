//! What a gate looks at: the bytes of the two files, read once, and the copy of the project that was given them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crucible_host::fs::{FsError, create_dir_all};
use crucible_ledger::{SideEffect, VerificationLevel};
use crucible_model::{Digest, Finding, RepoPath, Verdict};

use super::SkillTools;
use crate::context::ForgeContext;
use crate::examples::HeldOutExample;
use crate::grants::Grants;
use crate::io_schema::IoSchema;
use crate::name::SkillName;
use crate::paths::{PackageName, SkillPaths};
use crate::policy::SkillPolicy;
use crate::python::{PythonFault, PythonSource};

/// One of the two files, as the gates get it.
#[derive(Debug)]
pub(crate) struct GateSource {
    /// Its path.
    pub(crate) path: RepoPath,
    /// What it holds.
    pub(crate) bytes: Vec<u8>,
    /// The digest of that.
    pub(crate) digest: Digest,
    /// Its text as a tree, or why it cannot be parsed.
    pub(crate) text: Result<PythonSource, PythonFault>,
}

impl GateSource {
    /// A file of these bytes.
    pub(crate) fn new(path: &RepoPath, bytes: Vec<u8>) -> Self {
        let text = PythonSource::parse(&bytes);
        Self {
            path: path.clone(),
            digest: Digest::compute(&bytes),
            bytes,
            text,
        }
    }

    /// What a judge of the text finds, each finding with the file that it is in.
    pub(crate) fn judged(&self, judge: impl FnOnce(&PythonSource) -> Verdict) -> Verdict {
        let verdict = match &self.text {
            Ok(source) => judge(source),
            Err(fault) => Verdict::new(vec![fault.finding()]),
        };
        let placed = |finding: &Finding| Finding {
            subject: format!("{}: {}", self.path, finding.subject),
            ..finding.clone()
        };
        Verdict::new(verdict.findings().iter().map(placed).collect())
    }
}

/// Everything that gates look at.
pub(crate) struct GateSite<'a> {
    /// The means.
    pub(crate) world: &'a ForgeContext<'a>,
    pub(crate) name: &'a SkillName,
    /// The package that it is in.
    pub(crate) package: &'a PackageName,
    /// Its path.
    pub(crate) paths: &'a SkillPaths,
    /// What it may do.
    pub(crate) class: SideEffect,
    /// What that is narrowed to.
    pub(crate) grants: &'a Grants,
    /// The operator's rules.
    pub(crate) policy: &'a SkillPolicy,
    pub(crate) skill: &'a GateSource,
    pub(crate) test: &'a GateSource,
    /// The copy of the project, with the two files in it.
    pub(crate) copy: &'a Path,
    /// A directory of Crucible's own beside it.
    pub(crate) scratch: &'a Path,
    /// The programs.
    pub(crate) tools: &'a SkillTools,
    /// How long each program may take.
    pub(crate) timeout: Duration,
    /// How much is verified.
    pub(crate) level: VerificationLevel,
    /// What goes in and comes out.
    pub(crate) io_schema: &'a IoSchema,
    /// What nobody who builds the skill was shown, where there is something.
    pub(crate) examples: Option<&'a GateExamples>,
}

/// The examples of a skill, and what they are run by.
#[derive(Debug)]
pub(crate) struct GateExamples {
    pub(crate) examples: Vec<HeldOutExample>,
    /// The interpreter.
    pub(crate) python: PathBuf,
    /// Directories of modules that are not Python's own.
    pub(crate) site_packages: Vec<PathBuf>,
}

impl GateSite<'_> {
    /// The two files.
    pub(crate) const fn sources(&self) -> [&GateSource; 2] {
        [self.skill, self.test]
    }

    /// A directory that one program may write to, made if it is not there.
    pub(crate) fn scratch_for(&self, program: &str) -> Result<PathBuf, FsError> {
        let directory = self.scratch.join(program);
        create_dir_all(&directory)?;
        Ok(directory)
    }

    /// Why programs are not handed these files: one of them is larger than any gate looks at.
    pub(crate) fn too_large(&self) -> Verdict {
        let mut verdict = Verdict::default();
        for source in self.sources() {
            if matches!(source.text, Err(PythonFault::TooLarge { .. })) {
                verdict.merge(source.judged(|_| Verdict::default()));
            }
        }
        verdict
    }
}
