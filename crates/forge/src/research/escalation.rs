//! The five triggers that require a review by a person before the next attempt. Pure.

use std::collections::BTreeMap;
use std::fmt;

use crucible_model::is_hidden;
use serde::{Deserialize, Serialize};
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::diagnose::{DiagnosisBasis, FailureDiagnosis};
use crate::failure::FailureKind;

/// So many attempts in a row that came to nothing call a person.
pub(crate) const MAX_FAILURES_IN_A_ROW: u64 = 3;
/// A proposed packet of more lines than this is not compared: it is another one.
const MAX_LINES: usize = 5_000;

/// Why a person has to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum EscalationTrigger {
    /// Three attempts in a row, or more, came to nothing.
    RepeatedFailure,
    /// The proposal mentions the network, money, messages or secrets more often than the packet.
    PermissionWidening,
    /// The policy or the invariants did not pass.
    SecurityClass,
    /// What a model proposes changes more than half of the packet's lines.
    LargeDiff,
    /// The cause is unknown, or a model was asked and gave no advice.
    Ambiguous,
}

/// What came of asking a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EscalationAdvice<'a> {
    /// Nobody was asked.
    NotAsked,
    /// A model was to be asked, and there is no advice.
    Missing,
    /// A packet that is to take the place of the old one.
    Proposed {
        /// The packet of the attempt that failed.
        old: &'a str,
        /// The one that is proposed.
        new: &'a str,
    },
}

impl EscalationTrigger {
    /// Every one, in order.
    pub const ALL: [Self; 5] = [
        Self::RepeatedFailure,
        Self::PermissionWidening,
        Self::SecurityClass,
        Self::LargeDiff,
        Self::Ambiguous,
    ];

    /// The name in records and documents.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RepeatedFailure => "REPEATED_FAILURE",
            Self::PermissionWidening => "PERMISSION_WIDENING",
            Self::SecurityClass => "SECURITY_CLASS",
            Self::LargeDiff => "LARGE_DIFF",
            Self::Ambiguous => "AMBIGUOUS",
        }
    }

    /// What a person is to look at.
    #[must_use]
    pub const fn why(self) -> &'static str {
        match self {
            Self::RepeatedFailure => "three or more attempts in a row came to nothing",
            Self::PermissionWidening => {
                "the proposal mentions the network, money, messages or secrets, but the packet does not"
            }
            Self::SecurityClass => "the policy or the invariants did not pass",
            Self::LargeDiff => "what the model proposes changes more than half of the packet",
            Self::Ambiguous => "the cause of the failure is unknown, or there is no advice",
        }
    }
}

impl fmt::Display for EscalationTrigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Judges which triggers a failure pulls; none where the next attempt may begin by itself.
#[must_use]
pub fn escalation(
    diagnosis: &FailureDiagnosis,
    in_a_row: u64,
    advice: EscalationAdvice<'_>,
) -> Vec<EscalationTrigger> {
    let security = matches!(
        diagnosis.kind,
        FailureKind::VerifyPolicy | FailureKind::VerifyInvariant
    );
    // A kind that was guessed from printed text is no answer: whoever printed it might have chosen it.
    let ambiguous =
        diagnosis.kind == FailureKind::Unknown || diagnosis.basis != DiagnosisBasis::Record;
    let (widens, large) = match advice {
        EscalationAdvice::Proposed { old, new } => (widens(old, new), is_large(old, new)),
        EscalationAdvice::NotAsked | EscalationAdvice::Missing => (false, false),
    };
    let pulled = |trigger: &EscalationTrigger| match trigger {
        EscalationTrigger::RepeatedFailure => in_a_row >= MAX_FAILURES_IN_A_ROW,
        EscalationTrigger::PermissionWidening => widens,
        EscalationTrigger::SecurityClass => security,
        EscalationTrigger::LargeDiff => large,
        EscalationTrigger::Ambiguous => ambiguous || advice == EscalationAdvice::Missing,
    };
    EscalationTrigger::ALL.into_iter().filter(pulled).collect()
}

/// Words that ask for more than a skill may do, whole and in small letters.
const WIDENING: [&str; 36] = [
    "api",
    "apis",
    "credential",
    "credentials",
    "curl",
    "download",
    "email",
    "environ",
    "ftp",
    "getenv",
    "http",
    "https",
    "internet",
    "messaging",
    "money",
    "network",
    "networking",
    "networks",
    "password",
    "passwords",
    "pay",
    "payment",
    "payments",
    "secret",
    "secrets",
    "smtp",
    "socket",
    "sockets",
    "sudo",
    "telegram",
    "upload",
    "url",
    "urllib",
    "urls",
    "webhook",
    "wget",
];

/// Whether such a word stands in the new text more often than in the old one, or a word in two scripts, which is there to look like another.
fn widens(old: &str, new: &str) -> bool {
    let before = counts(old);
    counts(new)
        .into_iter()
        .any(|(word, count)| count > before.get(&word).copied().unwrap_or(0))
}

/// How often each word that matters stands in a text. Letters of full width count as plain ones, and what nobody sees parts no word.
fn counts(text: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    let mut word = String::new();
    let mut before = ' ';
    for c in text.chars().chain(std::iter::once(' ')) {
        if c != '\n'
            && c != '\r'
            && c != '\t'
            && (is_hidden(c) || matches!(c, '\u{200c}' | '\u{200d}'))
        {
            continue;
        }
        let c = match c {
            '\u{ff01}'..='\u{ff5e}' => u32::from(c)
                .checked_sub(0xfee0)
                .and_then(char::from_u32)
                .unwrap_or(c),
            other => other,
        };
        // `NetworkSkill` and `SECRET_READ` hold words as well.
        if !c.is_alphabetic() || (c.is_uppercase() && before.is_lowercase()) {
            let done = std::mem::take(&mut word);
            if matters(&done) {
                *counts.entry(done).or_default() += 1;
            }
        }
        if c.is_alphabetic() {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    counts
}

fn matters(word: &str) -> bool {
    let plain = word.chars().any(|c| c.is_ascii_alphabetic());
    // Greek, Cyrillic, Armenian and Cherokee have letters that look like Latin ones.
    let lookalike = |c: char| matches!(c, '\u{370}'..='\u{58f}' | '\u{13a0}'..='\u{13ff}' | '\u{ab70}'..='\u{abbf}');
    WIDENING.contains(&word) || (plain && word.chars().any(lookalike))
}

/// Whether more than half of the old packet's lines are changed: taken out, or outnumbered by new ones.
fn is_large(old: &str, new: &str) -> bool {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    if old.len() > MAX_LINES || new.len() > MAX_LINES {
        return old != new;
    }
    let same: usize = capture_diff_slices(Algorithm::Myers, &old, &new)
        .into_iter()
        .map(|op| match op {
            DiffOp::Equal { len, .. } => len,
            DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => 0,
        })
        .sum();
    2 * (old.len().max(new.len()) - same) > old.len()
}
