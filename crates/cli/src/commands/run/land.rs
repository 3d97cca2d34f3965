//! `crucible run land`: the verified change becomes a commit.

use clap::Args;
use crucible_ledger::Ledger;
use crucible_model::{ExitStatus, Failure};
use crucible_run::{RunContext, RunDir, Signing, land, push_notes};

use crate::app::App;
use crate::arguments::subject;
use crate::live_trace::{newest_event, send_trace};
use crate::progress::Progress;

/// Commit a verified change to the branch it started from
///
/// Exactly the verified bytes are applied. The branch must not have moved since the start, and no file of
/// the change may have other changes. Missing files of the run's evidence are restored from the ledger. Gates of level `full` run first, on a copy. The commit's trailers
/// name the run, the plan, the report and the ledger's head. With a signing key, statements about the commit are signed and kept as its note. `crucible run list` shows the ids. For example,
/// in the repository: `crucible run land`
#[derive(Args)]
pub(crate) struct Land {
    /// The run's id or a prefix of it [default: newest run of this repository]
    run: Option<String>,
    /// The commit's subject [default: the subject from the start of the run, else the goal, shortened]
    #[arg(long, value_name = "TEXT", value_parser = subject)]
    message: Option<String>,
    /// Push the notes with the signed statements to this remote afterwards [default: origin]
    #[arg(long, value_name = "REMOTE", num_args = 0..=1, default_missing_value = "origin")]
    push_notes: Option<String>,
}

impl Land {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let world = app.world_here()?;
        let current_dir = app.env.working_directory();
        if self.run.is_none() && app.repository_of(current_dir).is_none() {
            return Err(Failure::usage(format!(
                "{} is not in a git repository",
                current_dir.display()
            ))
            .hint(
                "Name the run, or change to its repository; `crucible run list` shows the ids.",
            ));
        }
        let settings = app.config(current_dir, &[])?;
        let signing =
            Signing::configured(&settings, world.sandbox.clone(), &app.env, &app.home()?)?;
        let (mut ledger, dir) = app.find_run(&world, self.run.as_deref())?;
        let known = newest_event(&dir, &ledger);
        let ended = self.land(app, &world, &signing, (&mut ledger, &dir));
        send_trace(app, &dir, known);
        ended
    }

    fn land(
        &self,
        app: &App,
        world: &RunContext<'_>,
        signing: &Signing,
        (ledger, dir): (&mut Ledger, &RunDir),
    ) -> Result<ExitStatus, Failure> {
        let mut progress = Progress::new(&app.output);
        let landed = app.drive(land(
            world,
            dir,
            self.message.as_deref(),
            signing,
            ledger,
            &mut progress,
        ));
        progress.finish();
        let landed = landed?;
        if let Some(remote) = &self.push_notes {
            let pushed = app.drive(push_notes(world, dir, remote));
            pushed.map_err(|error| {
                let landed = format!(
                    "{} landed, but its note was not pushed: {}",
                    landed.commit, error.message
                );
                Failure {
                    message: landed,
                    ..error
                }
                .hint(format!(
                    "Push it yourself: git push {remote} refs/notes/crucible"
                ))
            })?;
        }
        app.output.show(
            || &landed,
            || {
                app.output.line(&format!("landed {}", landed.commit));
                for line in landed
                    .message
                    .lines()
                    .filter(|line| line.starts_with("Crucible-"))
                {
                    app.output.line(&format!("  {line}"));
                }
            },
        )
    }
}
