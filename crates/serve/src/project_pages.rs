//! The pages of specs, skills and crawls: from an address to a document and its page.

use askama::Template;
use crucible_model::{ExitStatus, Failure};
use crucible_view::{
    CrawlListView, CrawlView, EvidenceView, RedactedText, SkillListView, SkillView, SpecListView,
    SpecView,
};
use serde_json::Value;

use crate::error::ServeError;
use crate::pages::Frame;
use crate::project::{ProjectDocument, ProjectReader};

/// A page, or a document that does not exist.
pub(crate) enum ProjectPage {
    /// The page.
    Html(String),
    /// Why there is no such page, and what to do.
    Missing(RedactedText),
}

#[derive(Template)]
#[template(path = "specs.html")]
struct SpecsPage<'a> {
    frame: Frame,
    specs: &'a SpecListView,
}

#[derive(Template)]
#[template(path = "spec.html")]
struct SpecPage<'a> {
    frame: Frame,
    name: &'a RedactedText,
    /// Absent for a spec without phases, such as one of another format.
    spec: Option<&'a SpecView>,
    evidence: Option<&'a EvidenceView>,
    no_evidence: &'a RedactedText,
}

#[derive(Template)]
#[template(path = "skills.html")]
struct SkillsPage<'a> {
    frame: Frame,
    skills: &'a SkillListView,
}

#[derive(Template)]
#[template(path = "skill.html")]
struct SkillPage<'a> {
    frame: Frame,
    skill: &'a SkillView,
}

#[derive(Template)]
#[template(path = "crawls.html")]
struct CrawlsPage<'a> {
    frame: Frame,
    crawls: &'a CrawlListView,
}

#[derive(Template)]
#[template(path = "crawl.html")]
struct CrawlPage<'a> {
    frame: Frame,
    crawl: &'a CrawlView,
}

/// Returns the document of an address; `None` if it is another page.
pub(crate) fn document_of(path: &str) -> Option<ProjectDocument> {
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    // Names are checked by whoever reads the document.
    match parts.as_slice() {
        ["specs"] => Some(ProjectDocument::Specs),
        ["specs", name] => Some(ProjectDocument::Spec((*name).to_owned())),
        ["skills"] => Some(ProjectDocument::Skills),
        ["skills", name] => Some(ProjectDocument::Skill((*name).to_owned())),
        ["crawls"] => Some(ProjectDocument::Crawls),
        ["crawls", number] => Some(ProjectDocument::Crawl(number.parse().ok()?)),
        _ => None,
    }
}

/// Reads a document and returns its page.
pub(crate) async fn project_page(
    reader: &ProjectReader,
    document: ProjectDocument,
) -> Result<ProjectPage, ServeError> {
    if let ProjectDocument::Spec(name) = document {
        return read_spec(reader, name).await;
    }
    let read = match reader.read(document.clone()).await {
        Ok(read) => read,
        Err(failure) if failure.status == ExitStatus::Usage => {
            return Ok(ProjectPage::Missing(message_of(&failure)));
        }
        Err(failure) => return Err(ServeError::Project(message_of(&failure))),
    };
    let page = match document {
        ProjectDocument::Specs => specs_page(&SpecListView::of_document(read)?),
        ProjectDocument::Skills => skills_page(&SkillListView::of_document(read)?),
        ProjectDocument::Skill(_) => skill_page(&SkillView::of_document(read)?),
        ProjectDocument::Crawls => crawls_page(&CrawlListView::of_document(read)?),
        ProjectDocument::Crawl(_) => crawl_page(&CrawlView::of_document(read)?),
        // No address leads to these.
        ProjectDocument::Spec(_) | ProjectDocument::Evidence(_) => {
            return Ok(ProjectPage::Missing(RedactedText::default()));
        }
    };
    page.map(ProjectPage::Html)
}

/// The page of a spec has its phases, its evidence, or both.
async fn read_spec(reader: &ProjectReader, name: String) -> Result<ProjectPage, ServeError> {
    let phases = reader.read(ProjectDocument::Spec(name.clone())).await;
    let evidence = reader.read(ProjectDocument::Evidence(name.clone())).await;
    let spec = match (phases, &evidence) {
        (Ok(document), _) => Some(SpecView::of_document(document)?),
        (Err(failure), _) if failure.status != ExitStatus::Usage => {
            return Err(ServeError::Project(message_of(&failure)));
        }
        (Err(_), Ok(_)) => None,
        (Err(failure), Err(_)) => return Ok(ProjectPage::Missing(message_of(&failure))),
    };
    let name = RedactedText::new(&name);
    spec_page(&name, spec.as_ref(), evidence).map(ProjectPage::Html)
}

/// Returns the message of a failure with its hints, a line each.
pub(crate) fn message_of(failure: &Failure) -> RedactedText {
    let hints = failure.hints.iter().map(String::as_str);
    let lines: Vec<&str> = std::iter::once(failure.message.as_str())
        .chain(hints)
        .collect();
    RedactedText::new(&lines.join("\n"))
}

/// The specs.
pub(crate) fn specs_page(specs: &SpecListView) -> Result<String, ServeError> {
    let frame = Frame::site("Specs");
    Ok(SpecsPage { frame, specs }.render()?)
}

/// One spec. Without evidence the page says why.
pub(crate) fn spec_page(
    name: &RedactedText,
    spec: Option<&SpecView>,
    evidence: Result<Value, Failure>,
) -> Result<String, ServeError> {
    let (evidence, no_evidence) = match evidence {
        Ok(document) => (
            Some(EvidenceView::of_document(document)?),
            RedactedText::default(),
        ),
        Err(failure) => (None, message_of(&failure)),
    };
    let page = SpecPage {
        frame: Frame::site(format!("Spec {name}")),
        name,
        spec,
        evidence: evidence.as_ref(),
        no_evidence: &no_evidence,
    };
    Ok(page.render()?)
}

/// The skills.
pub(crate) fn skills_page(skills: &SkillListView) -> Result<String, ServeError> {
    let frame = Frame::site("Skills");
    Ok(SkillsPage { frame, skills }.render()?)
}

/// One skill.
pub(crate) fn skill_page(skill: &SkillView) -> Result<String, ServeError> {
    let frame = Frame::site(format!("Skill {}", skill.name));
    Ok(SkillPage { frame, skill }.render()?)
}

/// Past crawls.
pub(crate) fn crawls_page(crawls: &CrawlListView) -> Result<String, ServeError> {
    let frame = Frame::site("Crawls");
    Ok(CrawlsPage { frame, crawls }.render()?)
}

/// One crawl.
pub(crate) fn crawl_page(crawl: &CrawlView) -> Result<String, ServeError> {
    let frame = Frame::site(format!("Crawl {}", crawl.session.session_id));
    Ok(CrawlPage { frame, crawl }.render()?)
}
