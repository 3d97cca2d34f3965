//! Questions to the user: written to standard error, answered by a line on standard input.
//!
//! The end of the input, and an input that cannot be read, count as no answer.

use std::io::IsTerminal;

use crucible_crawl::{SearchItem, SubProject};
use crucible_model::{Failure, one_line};

use super::flags::OutputArgs;
use crate::app::App;
use crate::input::{self, Line};

/// The longest accepted line, in bytes.
const MAX_LINE: usize = 4096;

/// Whether questions may be asked: there is a terminal, and questions are not turned off.
pub(crate) fn may_ask(output_args: &OutputArgs) -> bool {
    !output_args.non_interactive && std::io::stdin().is_terminal()
}

/// Asks until a valid line is entered; returns nothing at the end of the input. Space around an answer is
/// ignored.
pub(crate) fn ask(app: &App, question: &str) -> Result<Option<String>, Failure> {
    loop {
        app.output.question(&one_line(question));
        match input::line(app, MAX_LINE)? {
            Ok(Line::Text(answer)) => return Ok(Some(answer.trim().to_owned())),
            Ok(Line::TooLong(_)) => app
                .output
                .remark(&format!("Write at most {MAX_LINE} bytes.")),
            Ok(Line::NotText) => app.output.remark("Write UTF-8 text."),
            Ok(Line::End) | Err(_) => return Ok(None),
        }
    }
}

/// Asks for a number from 1 to `most`; returns nothing at the end of the input.
pub(crate) fn ask_number(app: &App, question: &str, most: usize) -> Result<Option<usize>, Failure> {
    loop {
        let Some(answer) = ask(app, &format!("{question} [1-{most}]"))? else {
            return Ok(None);
        };
        match answer.parse::<usize>() {
            Ok(number) if (1..=most).contains(&number) => return Ok(Some(number)),
            Ok(_) | Err(_) => app
                .output
                .remark(&format!("Write a number from 1 to {most}.")),
        }
    }
}

/// Asks for yes or no; anything but yes means no.
pub(crate) fn confirm(app: &App, question: &str) -> Result<bool, Failure> {
    let answer = ask(app, &format!("{question} [y/N]"))?.unwrap_or_default();
    Ok(matches!(answer.to_lowercase().as_str(), "y" | "yes"))
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
    let chosen = ask_number(app, "Which one?", results.len())?;
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
    let chosen = ask_number(app, "Which one?", places.len())?;
    let place = chosen.and_then(|number| places.into_iter().nth(number - 1));
    place.map(|(path, _)| path).ok_or_else(nothing_chosen)
}

fn nothing_chosen() -> Failure {
    Failure::usage("nothing was chosen").hint(
        "Name the repository, with --ref REF:PATH for one of its projects; or turn off questions: \
        --non-interactive.",
    )
}
