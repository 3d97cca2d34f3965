//! The plan: drafted, reviewed, signed.

use std::collections::BTreeMap;

use crucible_model::{Digest, Finding, Verdict};
use crucible_pack::{ContextPack, FileRequest};

use super::Engine;
use super::prepare::FoundSources;
use crate::analysis::{Analysis, BehaviorCatalogue};
use crate::catalogue::listed_behaviors;
use crate::clients::Clients;
use crate::contract::{
    Plan, PlanDocuments, PlanStatus, Review, ReviewVerdict, RunRole, Signature, SignatureVersion,
};
use crate::error::RunError;
use crate::event_kind::EventKind;
use crate::layout;
use crate::progress::SIGNED;
use crate::role::chair::{self, OmittedFiles};
use crate::role::reviewers;

impl Engine<'_> {
    /// Drafts the plan; `None` if a person must draft it first.
    pub(super) async fn draft(
        &mut self,
        clients: &dyn Clients,
        analysis: &Analysis,
        found: &FoundSources,
        request: &FileRequest,
        pack: &ContextPack,
    ) -> Result<Option<Plan>, RunError> {
        let key = self.allowances.key("plan-draft");
        let earlier = self.outdated_content(layout::PLAN_DRAFT)?;
        if let (Some(text), false) = (&earlier, self.is_made(&key, layout::PLAN_DRAFT)) {
            let mut plan = self.parse_draft(text)?;
            self.allowances.widen(&mut plan);
            self.dir
                .write_recorded(layout::PLAN_DRAFT, plan.render().as_bytes())?;
        } else if !self.is_made(&key, layout::PLAN_DRAFT) {
            let (tracked, _) = chair::candidates(self.git.tracked_files().await?);
            let omitted_files: OmittedFiles = match self.dir.has(layout::LEFT_OUT) {
                true => self.dir.read_document(layout::LEFT_OUT)?,
                false => OmittedFiles::default(),
            };
            let by_code = chair::draft(
                &self.record,
                analysis,
                pack,
                request,
                &omitted_files,
                &tracked,
            );
            let mut plan = match self.client_of(RunRole::Chair) {
                None => by_code,
                Some(name) => match self
                    .ask_for_plan(clients, &name, analysis, found, &by_code, pack)
                    .await?
                {
                    Some(plan) => plan,
                    None => return Ok(None),
                },
            };
            self.allowances.widen(&mut plan);
            if Plan::parse(&plan.render()).as_ref() != Ok(&plan) {
                return Err(self.dir.malformed(
                    layout::PLAN_DRAFT,
                    "it has a path that a plan line cannot hold",
                ));
            }
            self.dir.write_recorded(
                layout::REASONS,
                chair::render_reasons(&self.record.goal).as_bytes(),
            )?;
            self.dir.write_recorded(
                layout::EXPECTED_RESULTS,
                chair::expected_results().as_bytes(),
            )?;
            self.dir
                .write_recorded(layout::PLAN_DRAFT, plan.render().as_bytes())?;
        }
        let role = RunRole::Chair.name();
        self.journal
            .record_file(role, EventKind::ReasonsWritten, "reasons", layout::REASONS)?;
        self.journal.record_file(
            role,
            EventKind::ResultsExpected,
            "expected-results",
            layout::EXPECTED_RESULTS,
        )?;
        self.journal
            .record_file(role, EventKind::PlanDrafted, &key, layout::PLAN_DRAFT)?;
        let text = self.dir.read_text(layout::PLAN_DRAFT)?;
        self.parse_draft(&text).map(Some)
    }

    fn parse_draft(&self, text: &str) -> Result<Plan, RunError> {
        Plan::parse(text).map_err(|verdict| {
            let first = verdict
                .findings()
                .first()
                .map(|finding| format!("{}: {}", finding.code, finding.subject));
            self.dir
                .malformed(layout::PLAN_DRAFT, &first.unwrap_or_default())
        })
    }

    /// Runs both local reviewers, then those of the dispatch; returns whether all approve.
    pub(super) async fn review(
        &mut self,
        clients: &dyn Clients,
        analysis: &Analysis,
        found: &FoundSources,
        plan: &Plan,
        pack: &ContextPack,
    ) -> Result<bool, RunError> {
        let subject = Digest::compute(&self.dir.read(layout::PLAN_DRAFT)?);
        let guardrails = self.guardrails()?;
        let results = self.dir.read_text(layout::EXPECTED_RESULTS)?;
        let reasons = self.dir.read_text(layout::REASONS)?;
        let behaviors = self.behaviors(analysis);
        let documents = PlanDocuments {
            plan,
            reasons: Some(&reasons),
            results: Some(&results),
            behaviors: &behaviors,
        };
        let (gates, gate_files) = (self.record.settings.gates.len(), &analysis.gate_files);
        let mut contract = reviewers::contract_guardian(&documents, pack, gates, gate_files);
        if !self.record.settings.has_named_paths() {
            let (tracked, _) = chair::candidates(self.git.tracked_files().await?);
            contract.merge(Verdict::new(chair::goal_problems(&self.record, &tracked)));
        }
        let cost = reviewers::cost_controller(&self.record, &guardrails, plan, pack);
        let mut approved = true;
        for (role, path, verdict, event) in [
            (
                RunRole::ContractGuardian,
                layout::REVIEW_CONTRACT,
                contract,
                EventKind::ContractReviewed,
            ),
            (
                RunRole::CostController,
                layout::REVIEW_COST,
                cost,
                EventKind::CostReviewed,
            ),
        ] {
            let key = self.allowances.key(event.name());
            if !self.is_made(&key, path) {
                let review = Review::from_verdict(role.name(), subject, &verdict);
                self.dir.write_recorded(path, review.render().as_bytes())?;
                for finding in verdict.errors() {
                    let Finding {
                        code,
                        subject,
                        hint,
                        ..
                    } = finding;
                    self.journal.note(&format!("  {code}: {subject}: {hint}"))?;
                }
            }
            self.journal.record_file(role.name(), event, &key, path)?;
            // The record decides, not what code would say today.
            let parsed = Review::parse_verdict(&self.dir.read_text(path)?);
            approved &= parsed == Ok((ReviewVerdict::Approve, subject));
        }
        if !approved {
            return Ok(false);
        }
        self.second_reviews(clients, found, plan, pack, subject)
            .await
    }

    /// Returns the behaviours of the catalogue. Only committed content counts; an untracked catalogue is
    /// ignored.
    pub(super) fn behaviors(&self, analysis: &Analysis) -> Vec<String> {
        match analysis.behaviors {
            BehaviorCatalogue::Absent => Vec::new(),
            BehaviorCatalogue::Unchecked => listed_behaviors(&self.record.repo),
        }
    }

    pub(super) fn sign(&mut self, draft: &Plan) -> Result<Plan, RunError> {
        let plan = Plan {
            status: PlanStatus::Signed,
            ..draft.clone()
        };
        let text = plan.render();
        let (key, signed) = (self.allowances.key("plan"), self.allowances.key(SIGNED));
        if !self.is_made(&key, layout::PLAN) {
            self.dir.write_recorded(layout::PLAN, text.as_bytes())?;
            if !plan.scope_sources.is_empty() {
                let places: Vec<String> =
                    plan.scope_sources.iter().map(ToString::to_string).collect();
                self.journal.note(&format!(
                    "  the goal clearly names no file; any source in {} may change",
                    places.join(", ")
                ))?;
            }
        }
        if self.dir.read(layout::PLAN)? != text.as_bytes() {
            return Err(RunError::Edited {
                path: self.dir.path(layout::PLAN),
            });
        }
        if !self.is_made(&signed, layout::SIGNATURE) {
            let mut reviews = BTreeMap::new();
            for (path, event) in layout::REVIEWS.into_iter().zip(EventKind::REVIEWS) {
                if self.is_made(&self.allowances.key(event.name()), path) {
                    reviews.insert(path.to_owned(), Digest::compute(&self.dir.read(path)?));
                }
            }
            let schema_version = SignatureVersion::V1;
            let signature = Signature {
                schema_version,
                plan: Digest::compute(text.as_bytes()),
                reviews,
            };
            self.dir
                .write_json_recorded(layout::SIGNATURE, &signature)?;
        }
        self.journal
            .record_file("crucible", EventKind::PlanWritten, &key, layout::PLAN)?;
        self.journal.record_file(
            "crucible",
            EventKind::PlanSigned,
            &signed,
            layout::SIGNATURE,
        )?;
        Ok(plan)
    }
}
