//! The pages of specs, skills and crawls: from an address to a document and its page.

use askama::Template;
use crucible_model::{ExitStatus, Failure};
use crucible_view::{
    CrawlListView, CrawlView, EvidenceView, RedactedText, SkillListView, SkillView, SpecListView,
    SpecView,
};

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
    spec: &'a SpecView,
}

#[derive(Template)]
#[template(path = "evidence.html")]
struct EvidencePage<'a> {
    frame: Frame,
    name: &'a RedactedText,
    evidence: &'a EvidenceView,
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
    // The reader of the document checks names.
    match parts.as_slice() {
        ["specs"] => Some(ProjectDocument::Specs),
        ["specs", name] => Some(ProjectDocument::Spec((*name).to_owned())),
        ["specs", name, "evidence"] => Some(ProjectDocument::Evidence((*name).to_owned())),
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
        ProjectDocument::Spec(name) => {
            spec_page(&RedactedText::new(&name), &SpecView::of_document(read)?)
        }
        ProjectDocument::Evidence(name) => {
            evidence_page(&RedactedText::new(&name), &EvidenceView::of_document(read)?)
        }
    };
    page.map(ProjectPage::Html)
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

/// The phases of a spec. Its evidence takes longer and has a page of its own.
pub(crate) fn spec_page(name: &RedactedText, spec: &SpecView) -> Result<String, ServeError> {
    let frame = Frame::site(format!("Spec {name}"));
    Ok(SpecPage { frame, name, spec }.render()?)
}

/// The requirements of a spec with their tests, judged now.
pub(crate) fn evidence_page(
    name: &RedactedText,
    evidence: &EvidenceView,
) -> Result<String, ServeError> {
    let page = EvidencePage {
        frame: Frame::site(format!("Evidence for {name}")),
        name,
        evidence,
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
