//! The end of what was printed, as a note may hold it.

use crucible_ledger::{Ledger, LedgerError, SkillArtifactKind, SkillArtifactRow, SkillGateRow};
use crucible_model::{Digest, Untrusted, is_hidden};
use crucible_secrets::Scanner;

use super::diagnose::deciding_gate;
use super::failed::FailedStep;
use crate::failure::SkillFailure;
use crate::gates::SkillGate;

/// What is read of a log: its end.
const READ_BYTES: usize = 64 * 1024;
/// The most characters of an excerpt.
const EXCERPT_CHARS: usize = 4_000;

/// The log of a failure: that which its record names, else the newest one of its attempt; of gates, that of the gate which decides. What the
/// held-out examples printed is shown to nobody.
pub(super) fn log_of(
    step: &FailedStep<'_>,
    gates: &[SkillGateRow],
    artifacts: &[SkillArtifactRow],
) -> Option<Digest> {
    match step {
        FailedStep::Gates(..) => {
            let (gate, _) = deciding_gate(gates)?;
            gate.log.filter(|_| !SkillGate::Examples.is_of(gate))
        }
        FailedStep::Build(build) => {
            let named = build.failure.as_ref().and_then(|failure| {
                serde_json::from_value::<SkillFailure>(failure.clone())
                    .ok()
                    .and_then(|failure| failure.log)
            });
            let newest = || {
                let is_build_log = |row: &&SkillArtifactRow| {
                    row.kind == SkillArtifactKind::BuildLog && row.build == Some(build.id)
                };
                artifacts.iter().rfind(is_build_log).map(|row| row.digest)
            };
            named.or_else(newest)
        }
    }
}

/// The end of a log, without secrets, control characters shown.
pub(super) fn read_end(ledger: &Ledger, log: &Digest) -> Result<Option<Untrusted>, LedgerError> {
    Ok(ledger
        .artifact(log)?
        .map(|bytes| Untrusted::new(end_of(&bytes))))
}

fn end_of(bytes: &[u8]) -> String {
    let start = bytes.len().saturating_sub(READ_BYTES);
    let text = String::from_utf8_lossy(bytes.get(start..).unwrap_or_default()).into_owned();
    let redacted = Scanner::builtin().redact(&text).text.into_owned();
    let mut content = String::new();
    for c in redacted.chars() {
        if is_hidden(c) && !matches!(c, '\n' | '\t') {
            content.extend(c.escape_unicode());
        } else {
            content.push(c);
        }
    }
    let left_out = content.chars().count().saturating_sub(EXCERPT_CHARS);
    let end: String = content.chars().skip(left_out).collect();
    match (start, left_out) {
        (0, 0) => end,
        _ => format!("[the beginning is left out]\n{end}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpt_is_redacted_end_without_escapes() {
        let token = crucible_testkit::made_up_token();
        let log = format!(
            "{}\u{1b}[31mexport TOKEN={token}\nthe end",
            "x\n".repeat(50_000)
        );
        let end = end_of(log.as_bytes());
        assert!(
            end.ends_with("\nthe end") && end.starts_with("[the beginning is left out]\n"),
            "{end}"
        );
        assert!(!end.contains(&token) && !end.contains('\u{1b}'), "{end}");
        assert!(end.chars().count() <= EXCERPT_CHARS + 40);
        assert_eq!(end_of(b"short"), "short");
        assert_eq!(end_of(b"\xff\x00"), "\u{fffd}\\u{0}");
    }
}
