//! A council's result for people: the argument, loop by loop, and its usage.

use crucible_council::text::{argument, cost, degradation_lines, seconds, tokens};
use crucible_council::{Degradation, ExecutorResult};
use crucible_terminal::table;

/// The trace of a run as text, with its usage; empty if none was built.
pub(super) fn trace(result: &ExecutorResult) -> String {
    let page = argument(result);
    if result.reasoning_trace.is_none() {
        return page;
    }
    let mut all = table(["  part", "calls", "tokens in", "tokens out", "cost", "time"]);
    let parts = result.usage_by_part.iter();
    let rows = parts.map(|(part, usage)| (part.to_string(), usage));
    for (part, usage) in rows.chain([("all together".to_owned(), &result.usage)]) {
        all.add_row([
            format!("  {part}"),
            usage.calls.to_string(),
            tokens(usage, usage.tokens_input),
            tokens(usage, usage.tokens_output),
            cost(usage),
            seconds(usage.elapsed_ms),
        ]);
    }
    let space = if page.is_empty() { "" } else { "\n" };
    format!(
        "{page}{space}WHAT IT TOOK\n{}\n  The time of a part is the sum over its calls, some of which ran in parallel.\n",
        all.trim_fmt()
    )
}

/// The degradations, one warning line each.
pub(super) fn warnings(degradations: &[Degradation]) -> Vec<String> {
    let line = |line: &String| format!("warning: {line}");
    degradation_lines(degradations).iter().map(line).collect()
}
