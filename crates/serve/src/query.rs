//! The search of the list of runs, as its address has it.

use crucible_ledger::{Page, RunFilter};
use crucible_model::is_hidden;
use crucible_run::RunState;
use crucible_view::{ListQuery, RedactedText, RunOutcome};
use url::form_urlencoded::{Serializer, parse};

/// How many runs a page lists.
pub(crate) const PAGE: u64 = 50;

/// Returns how many pages a list of so many runs has.
pub(crate) fn pages_of(runs: u64) -> u64 {
    runs.div_ceil(PAGE).max(1)
}

/// How many repositories a search offers; of more, one is typed.
pub(crate) const MAX_REPOSITORIES: usize = 100;

/// The search; an empty text selects everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunQuery {
    /// A part of the goal, the id or the path.
    pub(crate) text: String,
    /// The state.
    pub(crate) state: String,
    /// The repository.
    pub(crate) repo: String,
    /// A model that was called.
    pub(crate) model: String,
    /// The page, from 1.
    pub(crate) page: u64,
}

impl RunQuery {
    /// Reads the query of an address. Unknown names are ignored, and of a repeated name the last one counts.
    pub(crate) fn parse(query: &str) -> Self {
        let mut read = Self {
            text: String::new(),
            state: String::new(),
            repo: String::new(),
            model: String::new(),
            page: 1,
        };
        for (name, value) in parse(query.as_bytes()) {
            // The page shows the search again, so it has no hidden characters.
            let value: String = value.chars().filter(|c| !is_hidden(*c)).collect();
            match name.as_ref() {
                "q" => read.text = value,
                "state" => read.state = value,
                "repo" => read.repo = value,
                "model" => read.model = value,
                "page" => read.page = value.parse().unwrap_or(1).max(1),
                _ => {}
            }
        }
        read
    }

    /// The address of another page of the same search.
    pub(crate) fn address(&self, page: u64) -> String {
        let mut query = Serializer::new(String::new());
        for (name, value) in [
            ("q", &self.text),
            ("state", &self.state),
            ("repo", &self.repo),
            ("model", &self.model),
        ] {
            if !value.is_empty() {
                query.append_pair(name, value);
            }
        }
        query.append_pair("page", &page.to_string());
        format!("/runs?{}", query.finish())
    }

    /// What the ledger is searched for.
    pub(crate) fn list(&self) -> ListQuery {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        ListQuery {
            filter: RunFilter {
                state: text(&self.state),
                repo: text(&self.repo),
                text: text(&self.text),
                model: text(&self.model),
                run: None,
            },
            page: Some(Page {
                skip: (self.page - 1).saturating_mul(PAGE),
                most: PAGE,
            }),
        }
    }

    /// The states that can be selected.
    pub(crate) fn states(&self) -> Vec<&'static str> {
        RunState::ALL.into_iter().map(RunState::name).collect()
    }

    pub(crate) fn has_state(&self, state: &str) -> bool {
        self.state == state
    }

    pub(crate) fn has_repo(&self, repo: &RedactedText) -> bool {
        self.repo == repo.to_string()
    }

    /// Whether it selects all runs.
    pub(crate) fn is_empty(&self) -> bool {
        let texts = [&self.text, &self.state, &self.repo, &self.model];
        texts.iter().all(|text| text.is_empty())
    }
}

/// The names of the outcomes, in the order of a chart.
pub(crate) const OUTCOMES: [RunOutcome; 6] = [
    RunOutcome::Landed,
    RunOutcome::Verified,
    RunOutcome::Open,
    RunOutcome::Blocked,
    RunOutcome::Declined,
    RunOutcome::Failed,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_survives_its_address() {
        let query = RunQuery::parse("q=a%26b+%22%3C&state=failed&repo=%2Fr&model=m&page=3&x=1");
        assert_eq!((query.text.as_str(), query.page), ("a&b \"<", 3));
        let address = query.address(3);
        assert_eq!(RunQuery::parse(address.split_once('?').unwrap().1), query);
        assert_eq!(query.list().page.map(|page| page.skip), Some(100));
        for page in ["0", "-1", "x", ""] {
            assert_eq!(RunQuery::parse(&format!("page={page}")).page, 1);
        }
        let last = RunQuery::parse(&format!("page={}", u64::MAX));
        assert_eq!(last.list().page.map(|page| page.skip), Some(u64::MAX));
    }
}
