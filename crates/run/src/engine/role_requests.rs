//! Calls for chair, reviewers and researcher if code does not serve them: ask, parse, and ask again with the
//! errors.

use crucible_llm::Message;
use crucible_model::{Code, Digest, Finding, Timestamp, Untrusted, Verdict};
use crucible_pack::{ContextPack, FileRequest};

use super::Engine;
use super::ask::{Answer, AskOutcome, RoleTask};
use super::attempts::patch_excerpt;
use super::prepare::FoundSources;
use crate::analysis::Analysis;
use crate::clients::Clients;
use crate::contract::key_lines::strip_bom;
use crate::contract::{Guardrails, Plan, Review, ReviewVerdict, RunRole};
use crate::dispatch::Action;
use crate::dispatch::evidence::{Evidence, FileListing};
use crate::error::RunError;
use crate::event_kind::{EventKind, answered_key, taken_key};
use crate::find::{FindWeb, check_web};
use crate::layout;
use crate::role::librarian::by_hand::parse_manual_pack;
use crate::role::patchmaker::FixBrief;
use crate::role::prompts;

const ANSWER_UNUSABLE: Code = Code::new("run-answer-unusable");

/// The field of an event that holds why an answer was refused.
const REFUSED: &str = "refused";

/// Maximum number of times one answer is requested.
const TRIES: u64 = 3;

/// A request to a role, for any service.
struct RoleRequest<'w> {
    role: RunRole,
    action: Action,
    target: &'w str,
    evidence: Evidence<'w>,
}

impl Engine<'_> {
    /// Requests web pages from the service `name`; `None` if a person must provide them first. Crucible
    /// fetches none: the guardrails judge what is provided.
    pub(super) async fn ask_for_pages(
        &mut self,
        clients: &dyn Clients,
        name: &str,
        guardrails: &Guardrails,
    ) -> Result<Option<FindWeb>, RunError> {
        let refused = |verdict: &Verdict| {
            verdict
                .errors()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("; ")
        };
        if !self.is_made("find-web", layout::FIND_WEB) {
            let requested = RoleRequest {
                role: RunRole::Researcher,
                action: Action::FindWeb,
                target: layout::FIND_WEB,
                evidence: Evidence::default(),
            };
            let read = |answer: &Untrusted, at: Timestamp| {
                check_web(answer.as_str().as_bytes(), guardrails, at)
                    .map(|_| answer.as_str().to_owned())
            };
            let pages = self
                .ask_until(clients, name, &requested, |_| Vec::new(), read)
                .await?;
            let Some(pages) = pages else { return Ok(None) };
            self.dir
                .write_recorded(layout::FIND_WEB, pages.as_bytes())?;
        }
        let (role, event) = (RunRole::Researcher.name(), EventKind::PagesTaken);
        self.journal
            .record_file(role, event, "find-web", layout::FIND_WEB)?;
        let at = self.instant(clients, "find-web");
        check_web(&self.dir.read(layout::FIND_WEB)?, guardrails, at)
            .map(Some)
            .map_err(|verdict| self.dir.malformed(layout::FIND_WEB, &refused(&verdict)))
    }

    /// Requests the file names from the service `name`; returns whether they are there.
    pub(super) async fn ask_for_files(
        &mut self,
        clients: &dyn Clients,
        name: &str,
        analysis: &Analysis,
        found: &FoundSources,
    ) -> Result<bool, RunError> {
        let (tracked, _) = crate::role::chair::candidates(self.git.tracked_files().await?);
        let (ranked, not_asked) =
            crate::role::chair::file_request(&self.record, analysis, &tracked);
        let record = self.record.clone();
        let listing = FileListing::new(&ranked, &tracked);
        let requested = RoleRequest {
            role: RunRole::Chair,
            action: Action::FileRequest,
            target: layout::FILE_REQUEST,
            evidence: Evidence {
                files: Some(&listing),
                baseline: &analysis.baseline,
                externals: &found.externals,
                quotes_others: found.quotes_others,
                ..Evidence::default()
            },
        };
        let chat =
            |brief: Option<&FixBrief>| prompts::files_question(&record, analysis, &listing, brief);
        let read = |answer: &Untrusted, _| prompts::read_files(answer, &record, &tracked);
        let request: Option<FileRequest> = self
            .ask_until(clients, name, &requested, chat, read)
            .await?;
        let Some(request) = request else {
            return Ok(false);
        };
        self.dir
            .write_json_recorded(layout::LEFT_OUT, &not_asked.without_file(&request))?;
        let role = RunRole::Chair.name();
        self.journal
            .record_file(role, EventKind::FilesLeftOut, "left-out", layout::LEFT_OUT)?;
        self.dir
            .write_json_recorded(layout::FILE_REQUEST, &request)?;
        Ok(true)
    }

    /// Requests the pack from a person; `None` if that is still open.
    pub(super) async fn ask_for_pack(
        &mut self,
        clients: &dyn Clients,
        name: &str,
        analysis: &Analysis,
        request: &FileRequest,
    ) -> Result<Option<ContextPack>, RunError> {
        let record = self.record.clone();
        let requested = RoleRequest {
            role: RunRole::Librarian,
            action: Action::ContextPack,
            target: layout::CONTEXT_PACK,
            evidence: Evidence {
                request: Some(request),
                baseline: &analysis.baseline,
                ..Evidence::default()
            },
        };
        let read = |answer: &Untrusted, _| {
            parse_manual_pack(
                answer,
                &record.repo,
                &record.repo_slug,
                &record.settings.context,
                request,
            )
        };
        self.ask_until(clients, name, &requested, |_| Vec::new(), read)
            .await
    }

    /// Requests the plan from the service `name`. Code keeps what the chair may not choose: gates, budgets,
    /// results and what only the operator may name.
    pub(super) async fn ask_for_plan(
        &mut self,
        clients: &dyn Clients,
        name: &str,
        analysis: &Analysis,
        found: &FoundSources,
        by_code: &Plan,
        pack: &ContextPack,
    ) -> Result<Option<Plan>, RunError> {
        let record = self.record.clone();
        let requested = RoleRequest {
            role: RunRole::Chair,
            action: Action::PlanDraft,
            target: layout::PLAN_DRAFT,
            evidence: Evidence {
                pack: Some(pack),
                baseline: &analysis.baseline,
                externals: &found.externals,
                quotes_others: found.quotes_others,
                ..Evidence::default()
            },
        };
        let chat =
            |brief: Option<&FixBrief>| prompts::plan_question(&record, analysis, pack, brief);
        let behaviors = self.behaviors(analysis);
        let read = |answer: &Untrusted, _| {
            prompts::read_plan(answer, by_code, pack, &analysis.gate_files, &behaviors)
        };
        self.ask_until(clients, name, &requested, chat, read).await
    }

    /// Requests the dispatch's second opinions; returns whether all approve. They can block, but never
    /// overrule a local reviewer who blocks; they are not called then.
    pub(super) async fn second_reviews(
        &mut self,
        clients: &dyn Clients,
        found: &FoundSources,
        plan: &Plan,
        pack: &ContextPack,
        subject: Digest,
    ) -> Result<bool, RunError> {
        for (role, path, event) in [
            (
                RunRole::ContractGuardian,
                layout::SECOND_REVIEW_CONTRACT,
                EventKind::ContractReviewedAgain,
            ),
            (
                RunRole::CostController,
                layout::SECOND_REVIEW_COST,
                EventKind::CostReviewedAgain,
            ),
        ] {
            let Some(name) = self.client_of(role) else {
                continue;
            };
            let key = self.allowances.key(event.name());
            if !self.is_made(&key, path) {
                let requested = RoleRequest {
                    role,
                    action: Action::Review,
                    target: path,
                    evidence: Evidence {
                        pack: Some(pack),
                        plan: Some(plan),
                        externals: &found.externals,
                        quotes_others: found.quotes_others,
                        ..Evidence::default()
                    },
                };
                let record = self.record.clone();
                let chat = |brief: Option<&FixBrief>| {
                    prompts::review_question(&record, role, plan, pack, brief)
                };
                let read = |answer: &Untrusted, _| prompts::read_review(answer, role, subject);
                let review: Option<Review> = self
                    .ask_until(clients, &name, &requested, chat, read)
                    .await?;
                let Some(review) = review else {
                    return Ok(false);
                };
                self.dir.write_recorded(path, review.render().as_bytes())?;
            }
            self.journal.record_file(role.name(), event, &key, path)?;
            let parsed = Review::parse_verdict(&self.dir.read_text(path)?);
            if parsed != Ok((ReviewVerdict::Approve, subject)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The instant by which something is judged that was recorded under this key: that of the record, however late it is judged
    /// again; in a replay that of the run which is repeated.
    fn instant(&self, clients: &dyn Clients, key: &str) -> Timestamp {
        let recorded = clients
            .recorded_at(key)
            .or_else(|| self.journal.instant_of(key));
        recorded.unwrap_or_else(|| self.world.clock.now())
    }

    /// Asks until an answer can be parsed, a limited number of times; `None` if a person must answer first or
    /// the run failed.
    async fn ask_until<T>(
        &mut self,
        clients: &dyn Clients,
        name: &str,
        requested: &RoleRequest<'_>,
        chat: impl Fn(Option<&FixBrief>) -> Vec<Message>,
        read: impl Fn(&Untrusted, Timestamp) -> Result<T, Verdict>,
    ) -> Result<Option<T>, RunError> {
        let mut brief: Option<FixBrief> = None;
        let read =
            |text: &Untrusted, at: Timestamp| read(&Untrusted::new(strip_bom(text.as_str())), at);
        for number in 1..=TRIES {
            let step = format!(
                "{}-{}-{number}",
                requested.role.name(),
                requested.action.name()
            );
            // A widened plan is reviewed again.
            let step = if requested.action == Action::Review {
                self.allowances.key(&step)
            } else {
                step
            };
            let duty = RoleTask {
                role: requested.role,
                action: requested.action,
                target: requested.target,
                answer_path: format!("answers/{step}.txt"),
                step,
                number,
                refusals: number.saturating_sub(1),
                label: requested.action.name().to_owned(),
                chat: chat(brief.as_ref()),
                evidence: Evidence {
                    brief: brief.as_ref(),
                    ..requested.evidence
                },
            };
            // A used answer is used again as before: a refusal stays, whatever is known by now.
            let (text, refused) = match self.journal.body_of(&taken_key(&duty.step)) {
                Some(document) => {
                    let refused = match document.get(REFUSED) {
                        Some(findings) => {
                            Some(serde_json::from_value(findings.clone()).map_err(|_| {
                                self.dir.malformed(
                                    layout::EVENTS,
                                    "the reason for refusing an answer is not recorded completely",
                                )
                            })?)
                        }
                        None => None,
                    };
                    (
                        Untrusted::new(self.dir.read_text(&duty.answer_path)?),
                        refused,
                    )
                }
                None => match self.ask(clients, name, &duty).await? {
                    AskOutcome::Waiting => return Ok(None),
                    AskOutcome::Answered(Answer { text, unread }) => {
                        let judged = match unread {
                            Some(finding) => Err(Verdict::new(vec![finding])),
                            None => read(&text, self.instant(clients, &answered_key(&duty.step))),
                        };
                        let refused = judged
                            .err()
                            .map(|verdict| verdict.errors().cloned().collect::<Vec<_>>());
                        for finding in refused.iter().flatten() {
                            self.journal.note(&format!("  refused: {finding}"))?;
                        }
                        let body = match &refused {
                            Some(findings) => serde_json::json!({ REFUSED: findings }),
                            None => serde_json::json!({}),
                        };
                        self.record_used_answer(&duty, body)?;
                        (text, refused)
                    }
                },
            };
            let findings: Vec<Finding> = match refused {
                Some(findings) => findings,
                None => match read(&text, self.instant(clients, &answered_key(&duty.step))) {
                    Ok(value) => return Ok(Some(value)),
                    Err(verdict) => verdict.errors().cloned().collect(),
                },
            };
            brief = Some(FixBrief {
                reasons: findings.iter().map(Finding::to_string).collect(),
                malformed: Vec::new(),
                output: String::new(),
                patch: String::new(),
                answer: patch_excerpt(text.as_str()),
                unchanged: Vec::new(),
                test_places: Vec::new(),
            });
        }
        let subject = format!("{} {}", requested.role.name(), requested.action.name());
        let hint = "No answer had the required form; read answers/ and configure another backend for the role.";
        self.fail(&Finding::error(ANSWER_UNUSABLE, subject, hint))?;
        Ok(None)
    }
}
