//! `crucible serve`: the local page, and what it reads of the project.

use clap::Args;
use crucible_model::{ExitStatus, Failure};
use crucible_serve::{PageRights, PageServer, ServeOptions, project_requests};

use crate::app::App;
use crate::project_documents::answer_requests;

/// Show runs, costs, specs, skills and the ledger as a local page
///
/// The page is on 127.0.0.1 only. It changes nothing, unless --allow-landing lets it approve and land. Specs and skills are those of the project around the working directory. The printed link works once, within five minutes; it gives the browser a cookie
/// for as long as the command runs. Ctrl-C ends it.
#[derive(Args)]
pub(crate) struct Serve {
    /// The port on 127.0.0.1; 0 for any free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Let pages approve plans and land verified changes, each confirmed with its digest
    #[arg(long)]
    allow_landing: bool,
}

impl Serve {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let config = app.config(app.env.working_directory(), &[])?;
        let (project, requests) = project_requests();
        let options = ServeOptions {
            ledger: app.ledger_path()?,
            runs_root: app.runs_root(&config)?,
            port: self.port,
            project,
            rights: match self.allow_landing {
                true => PageRights::Land,
                false => PageRights::ReadOnly,
            },
        };
        let ended = app.block_on(async {
            let server = PageServer::open(options).await?;
            let link = server.link();
            if app.output.is_json() {
                let document =
                    serde_json::json!({ "schema_version": "crucible-serve-v1", "link": link });
                app.output.json(&document)?;
            } else {
                app.output.line(&format!("Open {link}"));
                app.output
                    .line("The link works once, within five minutes. Ctrl-C ends the server.");
            }
            tokio::select! {
                () = server.run() => {}
                () = answer_requests(app, requests) => {}
            }
            Ok(ExitStatus::Success)
        });
        match ended {
            // Ctrl-C is how it is ended.
            Err(failure) if failure.status == ExitStatus::Interrupted => Ok(ExitStatus::Success),
            ended => ended,
        }
    }
}
