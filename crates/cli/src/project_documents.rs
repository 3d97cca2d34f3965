//! What the local page asks for: documents, each what a command prints with `--json`, and confirmed actions on runs.

use crucible_crawl::{PastCrawl, PastSession};
use crucible_forge::{SkillHistory, SkillName, SkillRegistry};
use crucible_model::Failure;
use crucible_run::{ApprovalSource, Signing, approve, land};
use crucible_serve::{ProjectDocument, ProjectQuery, ProjectRequests, RunAction, RunActionKind};
use crucible_spec::{SpecId, SpecProject, fixup_under_way, spec_status};
use crucible_view::RunView;
use serde::Serialize;
use serde_json::Value;

use crate::app::App;
use crate::progress::Progress;
use crate::requirement_report::{EvidenceReport, judged};
use crate::spec_project::{outline_of, project, skill_project, spec_to_read};

/// Answers requests until the server ends.
pub(crate) async fn answer_requests(app: &App, mut requests: ProjectRequests) {
    while let Some(request) = requests.next().await {
        let answer = match &request.ask {
            ProjectQuery::Document(wanted) => document(app, wanted).await,
            ProjectQuery::Action(action) => act(app, action).await,
        };
        request.answer(answer);
    }
}

async fn document(app: &App, requested: &ProjectDocument) -> Result<Value, Failure> {
    match requested {
        ProjectDocument::Specs => {
            let ledger = app.optional_ledger()?;
            let survey = project(app, None)?.survey(app.clock.now(), ledger.as_ref())?;
            value(&survey.summary())
        }
        ProjectDocument::Spec(name) => {
            let id = name
                .parse::<SpecId>()
                .map_err(|error| Failure::usage(error.to_string()))?;
            let store = spec_to_read(app, &project(app, None)?, id);
            let ledger = app.optional_ledger()?;
            let status = spec_status(&store.state(ledger.as_ref())?, app.clock.now());
            value(&status.with_under_way(fixup_under_way(&store)?.as_ref()))
        }
        ProjectDocument::Evidence(name) => evidence_document(app, &project(app, None)?, name).await,
        ProjectDocument::Skills => {
            let (project, _) = skill_project(app, &[])?;
            let Some(ledger) = app.optional_ledger()? else {
                return Ok(SkillRegistry::default().list_document(&project, &[]));
            };
            let (known, _) = SkillRegistry::load_with_differences(&ledger, &project);
            Ok(known.list_document(&project, &ledger.skills(project.key())?))
        }
        ProjectDocument::Skill(name) => {
            let name = name
                .parse::<SkillName>()
                .map_err(|error| Failure::usage(error.to_string()))?;
            let (project, _) = skill_project(app, &[])?;
            let (ledger, skill) = project.known_skill(app.optional_ledger()?, &name)?;
            let paths = project.paths(&name)?;
            Ok(SkillHistory::read(&ledger, skill)?.document(&paths))
        }
        ProjectDocument::Crawls => {
            let sessions = PastSession::list(app.existing_ledger()?.as_ref())?;
            serde_json::from_str(&PastSession::document(&sessions)?)
                .map_err(|error| no_json(&error))
        }
        ProjectDocument::Crawl(number) => {
            value(&PastCrawl::read(app.existing_ledger()?.as_ref(), *number)?)
        }
    }
}

/// The requirements of a spec, judged now.
pub(crate) async fn evidence_document(
    app: &App,
    project: &SpecProject,
    name: &str,
) -> Result<Value, Failure> {
    let outline = outline_of(app, project, name)?;
    let (matrix, verdict) = judged(app, project, &outline).await?;
    value(&EvidenceReport::new(&matrix, &verdict))
}

/// Does what a person has confirmed, if the run still has exactly what the person saw.
async fn act(app: &App, action: &RunAction) -> Result<Value, Failure> {
    let world = app.world_here()?;
    let (mut ledger, dir) = app.find_run(&world, Some(action.run.as_str()))?;
    let run = RunView::read(&dir, &ledger)?;
    let found = run.as_ref().and_then(|run| match action.kind {
        RunActionKind::Approve => run.plan_to_approve(),
        RunActionKind::Land => run.verified_attempt()?.patch_digest,
    });
    if found != Some(action.digest) {
        return Err(Failure::refused(format!(
            "run {} no longer has {}",
            action.run, action.digest
        ))
        .hint("Open the page of the run again."));
    }
    let settings = app.config(app.env.working_directory(), &[])?;
    let home = app.home()?;
    let signing = Signing::configured(&settings, world.sandbox.clone(), &app.env, &home)?;
    let mut progress = Progress::new(&app.output);
    let done = match action.kind {
        RunActionKind::Approve => {
            let source = ApprovalSource::Signer(signing.signer(&home)?);
            let approved = approve(&world, &dir, source, &mut ledger, &mut progress).await;
            value(&approved?)
        }
        RunActionKind::Land => {
            let landed = land(&world, &dir, None, &signing, &mut ledger, &mut progress).await;
            value(&landed?)
        }
    };
    progress.finish();
    done
}

fn value(document: &impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(document).map_err(|error| no_json(&error))
}

pub(crate) fn no_json(error: &serde_json::Error) -> Failure {
    Failure::refused(format!("cannot serialize the document: {error}"))
}
