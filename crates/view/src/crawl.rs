//! Past crawls: the ranking with the parts of each score, and the plan with its verdicts.
//!
//! These documents are read from those that `crawl history` prints with `--json`.

use std::collections::BTreeMap;

use crucible_model::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::text::RedactedText;

/// Past crawls, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrawlListView {
    /// The sessions.
    pub sessions: Vec<CrawlRowView>,
}

/// A crawl in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrawlRowView {
    /// Its number.
    pub session_id: u64,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How it ended.
    pub status: RedactedText,
    /// The text that was searched for.
    pub query: Option<RedactedText>,
    /// The repository.
    pub selected_repo: Option<RedactedText>,
    /// The branch, tag or commit.
    pub selected_ref: Option<RedactedText>,
    /// The build system.
    pub build_system: Option<RedactedText>,
    /// How many rounds the debate about the plan had.
    pub debate_rounds: u64,
    /// The hash of the plan.
    pub plan_hash: Option<RedactedText>,
    /// The directory of the export.
    pub export_path: Option<RedactedText>,
}

/// One crawl.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrawlView {
    /// Its row in the list.
    pub session: CrawlRowView,
    /// The ranking of its search.
    pub ranking: Vec<RankedView>,
    /// The plan.
    pub plan: Option<CrawlPlanView>,
    /// Its documents.
    pub documents: Vec<CrawlDocumentView>,
    /// The messages of the debate about the plan.
    pub messages: Vec<CrawlMessageView>,
}

/// A repository in a ranking.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankedView {
    /// The rank; 1 is the best.
    pub rank: u64,
    /// The score, 0 to 1.
    pub score: f64,
    /// `owner/repo`.
    pub full_name: RedactedText,
    /// The owner's description.
    pub description: RedactedText,
    /// The number of stars.
    pub stars: u64,
    /// The parts of the score, by name.
    pub score_breakdown: BTreeMap<String, f64>,
}

/// A plan that builds a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrawlPlanView {
    /// The steps, in order.
    pub steps: Vec<CrawlStepView>,
    /// Whether the plan passes the safety rules.
    pub safety_validated: bool,
    /// The violated rules.
    pub safety_violations: Vec<RedactedText>,
    /// Warnings.
    pub warnings: Vec<RedactedText>,
    /// Suggestions of the debate that were accepted.
    pub accepted_suggestions: Vec<RedactedText>,
    /// Suggestions that were rejected, with the reason.
    pub rejected_suggestions: Vec<RedactedText>,
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrawlStepView {
    /// Its name.
    pub name: RedactedText,
    /// The command.
    pub cmd: RedactedText,
    /// The working directory.
    pub cwd: RedactedText,
    /// Why.
    #[serde(default)]
    pub note: RedactedText,
}

/// A document of a crawl.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrawlDocumentView {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: RedactedText,
    /// The name of its schema.
    pub schema: RedactedText,
    /// The hash of its content.
    pub content_hash: RedactedText,
}

/// A message of the debate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrawlMessageView {
    /// The round, from 1; 0 for the last message.
    pub round: u64,
    /// The step of the debate.
    pub phase: RedactedText,
    /// The side.
    pub owner: RedactedText,
    /// The provider.
    pub provider: RedactedText,
    /// The model; empty if no model answered.
    pub model: RedactedText,
    /// `approved`, `objected` or empty.
    pub verdict: RedactedText,
    /// What was wrong with the answer; empty if nothing was.
    pub error: RedactedText,
    /// The digest of the request and the answer.
    pub digest: RedactedText,
}

/// What `crawl history N --json` prints.
#[derive(Deserialize)]
struct SessionDocument {
    session: CrawlRowView,
    documents: Vec<Value>,
    messages: Vec<CrawlMessageView>,
}

/// The ranking of a search.
#[derive(Deserialize)]
struct SearchDocument {
    results: Vec<RankedView>,
}

impl CrawlListView {
    /// Reads what `crawl history --json` prints.
    ///
    /// # Errors
    ///
    /// Fails if the document is of another version.
    pub fn of_document(document: Value) -> Result<Self, serde_json::Error> {
        serde_json::from_value(document)
    }
}

impl CrawlView {
    /// Reads what `crawl history N --json` prints.
    ///
    /// # Errors
    ///
    /// Fails if the document is of another version.
    pub fn of_document(document: Value) -> Result<Self, serde_json::Error> {
        let read: SessionDocument = serde_json::from_value(document)?;
        // A search that was made again, and a plan, replace the earlier ones.
        let newest = |kind: &str| {
            let mut documents = read.documents.iter().rev();
            let found = documents.find(|document| document["type"] == kind);
            found.map(|document| document["content"].clone())
        };
        let ranking = newest("search").map(serde_json::from_value::<SearchDocument>);
        let plan = newest("plan").map(serde_json::from_value);
        let documents = read.documents.iter().cloned().map(serde_json::from_value);
        Ok(Self {
            ranking: ranking
                .transpose()?
                .map(|search| search.results)
                .unwrap_or_default(),
            plan: plan.transpose()?,
            documents: documents.collect::<Result<_, _>>()?,
            session: read.session,
            messages: read.messages,
        })
    }
}
