//! The documents of a crawl, for people.

use crucible_crawl::{Inspected, PlannedCrawl, SearchItem, SearchV1, text};
use crucible_model::one_line;
use crucible_terminal::{Output, table, wrap_to_terminal};

/// The narrowest terminal in which a table is wrapped.
const NARROWEST: u16 = 60;

/// Shows search results, best first, with the parts of each score.
pub(crate) fn search(output: &Output, found: &SearchV1) {
    if found.results.is_empty() {
        output.line(&one_line(&format!("nothing found for {:?}", found.query)));
        return;
    }
    let mut all = table(["#", "score", "repository", "stars", "pushed", "why"]);
    wrap_to_terminal(&mut all, NARROWEST);
    for item in &found.results {
        let why = format!(
            "{}\n{}",
            item.score_breakdown.reasons(),
            one_line(&text::truncate_chars(&item.description, text::DESCRIPTION))
        );
        let pushed = item.pushed_at.to_string();
        all.add_row([
            item.rank.to_string(),
            format!("{:.4}", item.score),
            one_line(&item.full_name),
            item.stars.to_string(),
            pushed.get(..10).unwrap_or(&pushed).to_owned(),
            why.trim_end().to_owned() + &marks(item),
        ]);
    }
    output.line(&all.trim_fmt());
    output.line("\nnext: crucible crawl plan OWNER/REPO");
}

fn marks(item: &SearchItem) -> String {
    let marks: Vec<&str> = [("archived", item.archived), ("fork", item.fork)]
        .iter()
        .filter(|(_, is)| *is)
        .map(|(name, _)| *name)
        .collect();
    if marks.is_empty() {
        String::new()
    } else {
        format!("\n({})", marks.join(", "))
    }
}

/// Shows a repository, its build system and the evidence for it.
pub(crate) fn inspection(output: &Output, inspected: &Inspected) {
    let lines = text::inspection(inspected);
    lines.iter().for_each(|line| output.line(line));
}

/// Shows a plan: its steps, warnings, debate and verdict.
pub(crate) fn plan(output: &Output, planned: &PlannedCrawl) {
    let lines = text::plan(planned);
    lines.iter().for_each(|line| output.line(line));
}
