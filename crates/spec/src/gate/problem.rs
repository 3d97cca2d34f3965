//! The codes of receipt problems, and the advice for each.

use crucible_model::{Code, short_line};

use crate::id::SpecId;
use crate::state::{ReceiptProblem, ReceiptProblemKind};

/// The code of a receipt problem, for status and gate.
#[must_use]
pub(crate) fn problem_code(kind: &ReceiptProblemKind) -> Code {
    match kind {
        ReceiptProblemKind::Unreadable(_) => Code::new("gate-receipt-unreadable"),
        ReceiptProblemKind::ForeignName => Code::new("gate-receipt-foreign"),
        ReceiptProblemKind::NameDisagrees => Code::new("gate-receipt-misplaced"),
        ReceiptProblemKind::DigestDiffers => Code::new("gate-receipt-edited"),
        ReceiptProblemKind::ChainBroken => Code::new("gate-receipt-chain-broken"),
        ReceiptProblemKind::PlaceTaken { .. } => Code::new("gate-receipt-doubled"),
        ReceiptProblemKind::Gap { .. } => Code::new("gate-receipt-gone"),
        ReceiptProblemKind::PromotionUnfinished => Code::new("gate-promotion-unfinished"),
        ReceiptProblemKind::PromotionForeign { .. } => Code::new("gate-promotion-foreign"),
        ReceiptProblemKind::LedgerDiffers => Code::new("gate-receipt-not-the-ledgers"),
        ReceiptProblemKind::LedgerKnowsNewer => Code::new("gate-receipt-outdated"),
    }
}

/// The advice to the reader.
pub(super) fn advice(spec: &SpecId, problem: &ReceiptProblem) -> String {
    let advice = match &problem.kind {
        ReceiptProblemKind::Unreadable(why) => {
            return format!(
                "It is not a receipt ({why}). Restore it from version control, or run its phase again."
            );
        }
        ReceiptProblemKind::ForeignName => {
            "Only receipts belong in this directory; move it elsewhere."
        }
        ReceiptProblemKind::NameDisagrees => {
            "Its spec, phase or sequence number does not match its name. Restore the right one from version control."
        }
        ReceiptProblemKind::DigestDiffers => {
            "It was changed after it was written. Restore it from version control, or run its phase again."
        }
        ReceiptProblemKind::ChainBroken => {
            "The receipts disagree about which one came before. Restore them from version control, or run the \
            phase again."
        }
        ReceiptProblemKind::PlaceTaken { other } => {
            let phase = problem.phase.map_or_else(String::new, |phase| {
                format!(": `crucible resume {spec} --phase {phase}`")
            });
            return format!(
                "It has the same sequence number as {}, which happens when two branches that each ran a phase \
                are merged. Run its phase again{phase}.",
                short_line(other, 100)
            );
        }
        ReceiptProblemKind::Gap { older } => {
            let phases: Vec<&str> = older.iter().map(|phase| phase.as_str()).collect();
            return format!(
                "There are receipts before and after it, and the missing one may count. Restore it from \
                version control, or run these phases again, in this order, with `crucible resume {spec} --phase PHASE`: {}.",
                phases.join(", ")
            );
        }
        ReceiptProblemKind::PromotionUnfinished => {
            return format!(
                "A process was killed while it moved the files of a phase into place. They are complete in staging/: \
                 `crucible resume {spec}` finishes that and continues; with --dry-run it finishes that and calls no model."
            );
        }
        ReceiptProblemKind::PromotionForeign { replaces } => {
            let named = replaces
                .iter()
                .take(3)
                .map(|path| short_line(path, 60))
                .collect::<Vec<_>>()
                .join(", ");
            let replaces = match replaces.len() {
                0 => "no document".to_owned(),
                1..=3 => named,
                more => format!("{named} and {} more", more - 3),
            };
            return format!(
                "It is in staging/ and would replace {replaces}, but this machine did not write it. It came \
                with the project or is forged: inspect it, then delete staging/. It is ignored."
            );
        }
        ReceiptProblemKind::LedgerDiffers => {
            "The ledger of this machine has recorded another receipt with this name or sequence number. \
            Restore that one from version control, or run the phase again."
        }
        ReceiptProblemKind::LedgerKnowsNewer => {
            "The ledger of this machine has recorded a newer receipt than any here: a file was removed, or an \
            older state was checked out. Restore it from version control, or run its phase again."
        }
    };
    advice.to_owned()
}
