//! `crucible run compare`: two runs side by side.

use clap::Args;
use crucible_llm::dollars;
use crucible_model::{ExitStatus, Failure, one_line};
use crucible_terminal::{lines_of, table};
use crucible_view::{CompareView, duration};

use crate::app::App;

/// How much of a value a cell shows, in characters.
const SHOWN: usize = 48;

/// Compare two runs: outcome, attempts, cost, time and change
///
/// For example, one goal with two models: `crucible run compare 2026-a 2026-b`
#[derive(Args)]
pub(crate) struct Compare {
    /// The first run's id or a prefix of it
    a: String,
    /// The second run's id or a prefix of it
    b: String,
}

impl Compare {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let a = app.run_view(Some(&self.a))?;
        let b = app.run_view(Some(&self.b))?;
        let compared = CompareView::new(&a, &b);
        app.output
            .show(|| &compared, || app.output.line(&text_of(&compared)))
    }
}

fn text_of(compared: &CompareView) -> String {
    let (a, b) = (&compared.a, &compared.b);
    let mut rows = table(["", a.run_id.as_str(), b.run_id.as_str(), "differs"]);
    let mut row = |name: &str, a: &str, b: &str, differs: bool| {
        let cell = |text: &str| match text {
            "" => "-".to_owned(),
            text => one_line(&text.chars().take(SHOWN).collect::<String>()),
        };
        let mark = if differs { "yes" } else { "" };
        rows.add_row([one_line(name), cell(a), cell(b), mark.to_owned()]);
    };
    for ((name, a), (_, b)) in a.values().into_iter().zip(b.values()) {
        let differs = a != b;
        match name {
            "micro_dollars" => {}
            _ => row(&name.replace('_', " "), &a, &b, differs),
        }
    }
    row(
        "cost",
        &dollars(a.micro_dollars),
        &dollars(b.micro_dollars),
        a.micro_dollars != b.micro_dollars,
    );
    let times = [
        ("time", a.elapsed_ms, b.elapsed_ms),
        ("time of models", a.model_ms, b.model_ms),
        ("time of gates", a.gates_ms, b.gates_ms),
    ];
    for (name, a, b) in times {
        row(name, &duration(a), &duration(b), false);
    }
    let same = |is_same: Option<bool>| match is_same {
        Some(true) => "the same",
        Some(false) => "different",
        None => "not in both runs",
    };
    format!(
        "{}\nlast patch: {}; verified tree: {}",
        lines_of(&rows),
        same(compared.is_same_patch),
        same(compared.is_same_tree)
    )
}
