//! The steps before a plan: inspect the repository, request files, and let the librarian pack them.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::ffi::OsStrExt;

use crucible_host::fs::read_prefix;
use crucible_model::{ByteLimit, RepoPath, counted};
use crucible_pack::{ContextPack, FileRequest};
use crucible_patch::FileMode;

use super::Engine;
use crate::analysis::{Analysis, AnalysisVersion, BehaviorCatalogue};
use crate::clients::Clients;
use crate::contract::{FindMode, Guardrails, RunRecord, RunRole};
use crate::error::RunError;
use crate::event_kind::EventKind;
use crate::find::{
    FindResult, RepoFacts, Workflows, check_web, externals, quotes_external_text, resolve,
};
use crate::gate_files::{Mode, gate_files as files_of_gates, test_support};
use crate::gate_workspace::remedy_for_venv;
use crate::layout;
use crate::role::chair::{self, OmittedFiles};
use crate::role::librarian::pack_context;
use crate::trial::{BEHAVIOR_INDEX, require_base};

/// Bytes read of a file to see what else a gate runs.
const GATE_FILE_READ: ByteLimit = ByteLimit(256 * 1024);

/// What is known from elsewhere.
#[derive(Default)]
pub(super) struct FoundSources {
    /// The text of `outbox/EXTERNALS.md`.
    pub(super) externals: String,
    /// Whether that text quotes text from outside.
    pub(super) quotes_others: bool,
}

impl Engine<'_> {
    pub(super) async fn analyse(&mut self) -> Result<Analysis, RunError> {
        if !self.is_made("analysis", layout::ANALYSIS) {
            let tracked = self.git.tracked_files().await?;
            let gates = counted(self.record.settings.gates.len() as u64, "gate");
            let what = format!("running {gates} before any change");
            self.journal.working("verifier", &what)?;
            let (mut trial, mut gates) = self.trial().await?;
            let goal = self.record.goal.clone();
            let settled = trial.set_aside(&gates, &goal, self.journal.observer()?);
            settled.map_err(|error| match error {
                RunError::GateCouldNotRun {
                    gate,
                    command,
                    cause,
                    remedy,
                } => RunError::GateCouldNotRun {
                    remedy: remedy_for_venv(self.world, self.git.top(), &remedy),
                    gate,
                    command,
                    cause,
                },
                other => other,
            })?;
            for gate in trial
                .results
                .iter()
                .filter(|gate| !gate.passed && gate.set_aside.is_none())
            {
                self.journal.note(&format!(
                    "  gate {} fails before any change: {}",
                    gate.id,
                    gate.failing()
                ))?;
            }
            let files: HashMap<&[u8], FileMode> = tracked
                .iter()
                .map(|file| (file.path.as_os_str().as_bytes(), file.mode))
                .collect();
            let is_tracked = |path: &str| {
                files
                    .get(path.as_bytes())
                    .is_some_and(|mode| *mode != FileMode::Gitlink)
            };
            let modes: Vec<(&str, Mode)> = tracked
                .iter()
                .filter_map(|file| {
                    let is_executable = file.mode == FileMode::Executable;
                    Some((
                        file.path.to_str()?,
                        if is_executable {
                            Mode::Executable
                        } else {
                            Mode::Plain
                        },
                    ))
                })
                .collect();
            // A link is a file of the gate as well, and so is a file that cannot be read; neither leads further.
            let beginning = |path: &RepoPath| match files.get(path.as_str().as_bytes())? {
                FileMode::Gitlink => None,
                FileMode::Symlink => Some(Vec::new()),
                _ => {
                    let place = self.record.repo.join(path.as_str());
                    Some(
                        read_prefix(&place, GATE_FILE_READ)
                            .map(|read| read.bytes)
                            .unwrap_or_default(),
                    )
                }
            };
            let mut gate_files = files_of_gates(&gates, &modes, beginning);
            gate_files.extend(test_support(&modes, beginning));
            gate_files.sort();
            gate_files.dedup();
            let mut gate_files_of = BTreeMap::new();
            for gate in gates.iter().filter(|_| gates.len() > 1) {
                let own = files_of_gates(std::slice::from_ref(gate), &modes, beginning);
                gate_files_of.insert(gate.id.to_string(), own);
            }
            let proof = self.canary(&gates, &gate_files, &trial).await?;
            trial.replace_results(&proof.again);
            for building in proof.building {
                let same = gates.iter_mut().find(|gate| gate.id == building.id);
                same.into_iter().for_each(|gate| gate.clone_from(&building));
            }
            let analysis = Analysis {
                schema_version: AnalysisVersion::V1,
                base_commit: self.record.base_commit.clone(),
                tracked_files: tracked.len() as u64,
                tracked_bytes: tracked.iter().map(|file| file.size).sum(),
                left_out: trial.left_out,
                gate_files,
                gate_files_of,
                behaviors: if is_tracked(BEHAVIOR_INDEX) {
                    BehaviorCatalogue::Unchecked
                } else {
                    BehaviorCatalogue::Absent
                },
                gates,
                baseline: trial.results,
                canary: proof.canary,
                python_paths: proof.python_paths,
            };
            self.dir.write_json_recorded(layout::ANALYSIS, &analysis)?;
            if !analysis.left_out.is_empty() {
                let count = analysis.left_out.len();
                self.journal.note(&format!(
                    "  not copied for the gates: {count} files and directories; see {}",
                    layout::ANALYSIS
                ))?;
            }
        }
        self.journal.record_file(
            "crucible",
            EventKind::RepositoryAnalysed,
            "analysis",
            layout::ANALYSIS,
        )?;
        self.dir.read_document(layout::ANALYSIS)
    }

    /// Looks up what is known already; `None` if a person must provide it first.
    pub(super) async fn look_up_sources(
        &mut self,
        clients: &dyn Clients,
    ) -> Result<Option<FoundSources>, RunError> {
        let tracked = self.git.tracked_files().await?;
        let workflows = Workflows::read(&self.record.repo, &tracked)?;
        if !self.is_made("find-result", layout::FIND_RESULT) {
            for note in workflows.notes() {
                self.journal.note(&format!("  {note}"))?;
            }
            let facts = RepoFacts::from_paths(tracked.iter().filter_map(|file| file.path.to_str()));
            let result = resolve(&self.record.goal, &facts, &workflows, &self.record.past);
            self.dir.write_json_recorded(layout::FIND_RESULT, &result)?;
        }
        let (event, key) = (EventKind::WorkflowFound, "find-result");
        self.journal
            .record_file("crucible", event, key, layout::FIND_RESULT)?;
        let result: FindResult = self.dir.read_document(layout::FIND_RESULT)?;
        let guardrails = self.guardrails()?;
        let web = match (&guardrails.find_mode, self.client_of(RunRole::Researcher)) {
            (FindMode::ResolverPlusWeb(_), Some(name)) => {
                match self.ask_for_pages(clients, &name, &guardrails).await? {
                    Some(web) => Some(web),
                    None => return Ok(None),
                }
            }
            (FindMode::ResolverPlusWeb(_), None) => None,
            (FindMode::ResolverOnly, _) => {
                if let Some(bytes) = self.dir.read_if_there(layout::FIND_WEB)?
                    && let Err(verdict) = check_web(&bytes, &guardrails, self.world.clock.now())
                {
                    for finding in verdict.findings() {
                        self.journal.note(&format!("  not read: {finding}"))?;
                    }
                }
                None
            }
        };
        let externals = externals(&result, &workflows, web.as_ref())
            .as_str()
            .to_owned();
        let quotes_others = quotes_external_text(&result, &workflows, web.as_ref());
        Ok(Some(FoundSources {
            externals,
            quotes_others,
        }))
    }

    /// Returns the content of a file that a permission made outdated, or that was written after it and not
    /// recorded. `None` without a permission or such a file.
    pub(super) fn outdated_content(&self, path: &str) -> Result<Option<String>, RunError> {
        if self.allowances.is_empty() || !self.dir.has(path) {
            return Ok(None);
        }
        self.dir.read_text(path).map(Some)
    }

    /// The limits that the run began with.
    pub(super) fn guardrails(&self) -> Result<Guardrails, RunError> {
        Guardrails::parse(&self.dir.read_text(layout::GUARDRAILS)?)
            .map_err(|error| self.dir.malformed(layout::GUARDRAILS, &error.to_string()))
    }

    /// Requests files and packs them; `None` if a person must name them first.
    pub(super) async fn build_context(
        &mut self,
        clients: &dyn Clients,
        analysis: &Analysis,
        found: &FoundSources,
    ) -> Result<Option<(FileRequest, ContextPack)>, RunError> {
        let (file_request_key, packed) = (
            self.allowances.key("file-request"),
            self.allowances.key("context-pack"),
        );
        let is_asked = self.is_made(&file_request_key, layout::FILE_REQUEST);
        let earlier = if is_asked {
            None
        } else {
            self.outdated_content(layout::FILE_REQUEST)?
        };
        if let Some(text) = earlier {
            let mut request = FileRequest::parse(text.as_bytes())
                .map_err(|error| self.dir.malformed(layout::FILE_REQUEST, &error.to_string()))?;
            self.allowances.prioritize(&mut request);
            self.dir
                .write_json_recorded(layout::FILE_REQUEST, &request)?;
        } else if let Some(name) = self.client_of(RunRole::Chair)
            && !is_asked
        {
            if !self.ask_for_files(clients, &name, analysis, found).await? {
                return Ok(None);
            }
        } else if !is_asked {
            let (tracked, unfit) = chair::candidates(self.git.tracked_files().await?);
            self.journal
                .working("chair", "ranking the files of the repository")?;
            let (mut request, mut not_asked) =
                chair::file_request(&self.record, analysis, &tracked);
            self.allowances.prioritize(&mut request);
            not_asked.files.extend(unfit);
            self.dir.write_json_recorded(layout::LEFT_OUT, &not_asked)?;
            let role = RunRole::Chair.name();
            self.journal.record_file(
                role,
                EventKind::FilesLeftOut,
                "left-out",
                layout::LEFT_OUT,
            )?;
            self.dir
                .write_json_recorded(layout::FILE_REQUEST, &request)?;
        }
        self.journal.record_file(
            RunRole::Chair.name(),
            EventKind::FilesRequested,
            &file_request_key,
            layout::FILE_REQUEST,
        )?;
        let request = FileRequest::parse(&self.dir.read(layout::FILE_REQUEST)?)
            .map_err(|error| self.dir.malformed(layout::FILE_REQUEST, &error.to_string()))?;
        if !self.is_made(&packed, layout::CONTEXT_PACK) {
            self.journal
                .working(RunRole::Librarian.name(), "building the context pack")?;
            // What a permission adds to a pack, code adds.
            let by_hand = self
                .client_of(RunRole::Librarian)
                .filter(|_| self.allowances.is_empty());
            let pack = match by_hand {
                Some(name) => match self
                    .ask_for_pack(clients, &name, analysis, &request)
                    .await?
                {
                    Some(pack) => pack,
                    None => return Ok(None),
                },
                None => {
                    let RunRecord {
                        repo,
                        repo_slug,
                        settings,
                        ..
                    } = &self.record;
                    pack_context(repo, repo_slug, &settings.context, &request)?
                }
            };
            require_base(&self.git, &self.record).await?;
            self.dir
                .write_recorded(layout::CONTEXT_PACK, &pack.to_bytes()?)?;
            let omitted_files: Option<OmittedFiles> = self
                .dir
                .has(layout::LEFT_OUT)
                .then(|| self.dir.read_document(layout::LEFT_OUT))
                .transpose()?;
            if let Some(note) =
                omitted_files.and_then(|not_asked| chair::omission_note(&pack, &not_asked))
            {
                self.journal.note(&note)?;
            }
        }
        self.journal.record_file(
            RunRole::Librarian.name(),
            EventKind::ContextPacked,
            &packed,
            layout::CONTEXT_PACK,
        )?;
        let pack = ContextPack::parse(&self.dir.read(layout::CONTEXT_PACK)?)
            .map_err(|error| self.dir.malformed(layout::CONTEXT_PACK, &error.to_string()))?;
        Ok(Some((request, pack)))
    }
}
