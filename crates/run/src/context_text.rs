//! A context pack and its ranking as text.

use crucible_model::counted;

use crate::context_build::BuiltContext;
use crate::role::chair::{ContextRanking, RankedOutcome};

/// How many rows of a list are shown to a person; the documents hold them all.
const SHOWN: usize = 20;

impl BuiltContext {
    /// Returns the pack and the ranking as lines: what is in, what is not, and why.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let pack = &self.pack;
        let mut lines = Vec::new();
        if let Some(ranking) = &self.ranking {
            lines.extend(ranking_lines(ranking));
        }
        lines.push(pack.summary.clone());
        for omitted in pack.omitted.iter().take(SHOWN) {
            lines.push(format!(
                "  left out  {:<16} {}",
                omitted.reason.as_str(),
                omitted.path
            ));
        }
        if let Some(more) = pack
            .omitted
            .len()
            .checked_sub(SHOWN)
            .filter(|more| *more > 0)
        {
            lines.push(format!("  and {more} more; the pack lists them all"));
        }
        lines
    }
}

fn ranking_lines(ranking: &ContextRanking) -> Vec<String> {
    let looked_for = match ranking.looked_for.as_slice() {
        [] => "nothing, because the goal names no place".to_owned(),
        words => words.join(", "),
    };
    let count = counted(ranking.files.len() as u64, "tracked file");
    let mut lines = vec![format!("ranked {count} by: {looked_for}")];
    if ranking.names_not_looked_for > 0 {
        let more = counted(ranking.names_not_looked_for, "word");
        lines.push(format!("  {more} more words of the goal were not searched"));
    }
    if let Some(problem) = &ranking.history.problem {
        lines.push(format!("  git's history was not used: {problem}"));
    }
    let chosen: Vec<_> = ranking
        .files
        .iter()
        .filter(|file| file.outcome == RankedOutcome::Chosen)
        .collect();
    for file in chosen.iter().take(SHOWN) {
        lines.push(format!(
            "  {:>6}  {}  {}",
            file.score, file.path, file.reason
        ));
    }
    if let Some(more) = chosen.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        lines.push(format!("  and {more} more; --ranking-out writes them all"));
    }
    lines
}
