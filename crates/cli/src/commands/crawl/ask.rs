//! The questions of a crawl to the user.

use std::io::IsTerminal;

use crucible_crawl::{SearchItem, SubProject};
use crucible_model::{Failure, one_line};
use crucible_terminal::prompt;

use super::flags::OutputArgs;
use crate::app::App;

/// Whether questions may be asked: there is a terminal, and questions are not turned off.
pub(crate) fn may_ask(output_args: &OutputArgs) -> bool {
    !output_args.non_interactive && std::io::stdin().is_terminal()
}

/// Asks for a line; returns nothing at the end of the input.
pub(crate) fn ask(app: &App, question: &str) -> Result<Option<String>, Failure> {
    app.block_on(async { Ok(prompt::ask(&app.output, question).await) })
}

/// Asks for yes or no; anything but yes means no.
pub(crate) fn confirm(app: &App, question: &str) -> Result<bool, Failure> {
    app.block_on(async { Ok(prompt::confirm(&app.output, question).await) })
}

/// Lets the user choose among search results.
pub(crate) fn choose_result<'a>(
    app: &App,
    results: &'a [SearchItem],
) -> Result<&'a SearchItem, Failure> {
    for item in results {
        let line = format!(
            "{:>3}) {:.4}  {}  {}",
            item.rank, item.score, item.full_name, item.description
        );
        app.output
            .remark(&one_line(&line.chars().take(100).collect::<String>()));
    }
    let chosen = which(app, results.len())?;
    chosen
        .and_then(|number| results.get(number - 1))
        .ok_or_else(nothing_chosen)
}

/// Lets the user choose a sub-project, or the top level (not a sub-project) if something builds there.
pub(crate) fn choose_project(
    app: &App,
    top: Option<&str>,
    projects: &[SubProject],
) -> Result<Option<String>, Failure> {
    app.output.remark(match top {
        Some(_) => "The repository contains several projects:",
        None => "The repository contains several projects, none of them at its top level:",
    });
    let whole = top.map(|system| (None, format!("the whole repository ({system})")));
    let part = |project: &SubProject| {
        (
            Some(project.path.clone()),
            format!("{} ({})", project.path, project.build_system),
        )
    };
    let places: Vec<(Option<String>, String)> =
        whole.into_iter().chain(projects.iter().map(part)).collect();
    for (number, (_, name)) in places.iter().enumerate() {
        app.output
            .remark(&one_line(&format!("{:>3}) {name}", number + 1)));
    }
    let chosen = which(app, places.len())?;
    let place = chosen.and_then(|number| places.into_iter().nth(number - 1));
    place.map(|(path, _)| path).ok_or_else(nothing_chosen)
}

/// Asks for the number of an item.
fn which(app: &App, most: usize) -> Result<Option<usize>, Failure> {
    app.block_on(async { Ok(prompt::ask_number(&app.output, "Which one?", most).await) })
}

fn nothing_chosen() -> Failure {
    Failure::usage("nothing was chosen").hint(
        "Name the repository, with --ref REF:PATH for one of its projects; or turn off questions: \
        --non-interactive.",
    )
}
