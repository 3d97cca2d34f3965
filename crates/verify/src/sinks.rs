//! What changed lines newly reach, and whether a person has to approve it. Pure.

use crucible_model::{Code, Finding, Verdict};
use serde::{Deserialize, Serialize};

/// One thing that a changed line newly reaches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewSink {
    /// The file and the line.
    pub at: String,
    /// What it reaches: `network`, `environment`, `execution`, `deserialisation` or `secret-comparison`.
    pub kind: String,
    /// The name that shows it.
    pub name: String,
}

/// The kinds of sinks, as settings write them.
pub const SINK_KINDS: [&str; 5] = [
    "network",
    "environment",
    "execution",
    "deserialisation",
    "secret-comparison",
];

/// Returns a warning for each sink, or an error for a kind that needs an approval.
#[must_use]
pub fn judge_sinks(sinks: &[NewSink], need_approval: &[String]) -> Verdict {
    let mut verdict = Verdict::default();
    for sink in sinks {
        let what = format!("the change newly reaches: {} ({})", sink.kind, sink.name);
        verdict.push(if need_approval.contains(&sink.kind) {
            let hint = format!(
                "{what}; `[run] sinks_need_approval` asks for a person, who approves it by starting the run without {:?} in that list",
                sink.kind
            );
            Finding::error(Code::new("verify-sink-not-approved"), &sink.at, hint)
        } else {
            Finding::warning(Code::new("verify-new-sink"), &sink.at, what)
        });
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listed_kinds_are_refused() {
        let sink = NewSink {
            at: "a.py:1".into(),
            kind: "network".into(),
            name: "socket".into(),
        };
        let sinks = [sink];
        let warned = judge_sinks(&sinks, &["execution".into()]);
        assert!(warned.passes() && warned.findings().len() == 1);
        assert!(!judge_sinks(&sinks, &["network".into()]).passes());
        assert!(judge_sinks(&[], &["network".into()]).findings().is_empty());
    }
}
