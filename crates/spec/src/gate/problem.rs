//! What a problem with a receipt is called, and what can be done about it.

use crucible_model::Code;

use crate::state::ReceiptProblemKind;

/// The code of a problem with a receipt; status and gate name it alike.
#[must_use]
pub fn problem_code(kind: &ReceiptProblemKind) -> Code {
    match kind {
        ReceiptProblemKind::Unreadable(_) => Code::new("gate-receipt-unreadable"),
        ReceiptProblemKind::ForeignName => Code::new("gate-receipt-foreign"),
        ReceiptProblemKind::NameDisagrees => Code::new("gate-receipt-misplaced"),
        ReceiptProblemKind::DigestDiffers => Code::new("gate-receipt-edited"),
        ReceiptProblemKind::ChainBroken => Code::new("gate-receipt-chain-broken"),
        ReceiptProblemKind::Gap => Code::new("gate-receipt-gone"),
        ReceiptProblemKind::LedgerDiffers => Code::new("gate-receipt-not-the-ledgers"),
        ReceiptProblemKind::LedgerKnowsNewer => Code::new("gate-receipt-outdated"),
    }
}

/// What the reader can do about it.
pub(super) fn advice(kind: &ReceiptProblemKind) -> String {
    let advice = match kind {
        ReceiptProblemKind::Unreadable(why) => {
            return format!(
                "It is no receipt ({why}). Put it back from version control, or run its phase again."
            );
        }
        ReceiptProblemKind::ForeignName => "Only receipts belong into this directory; move it elsewhere.",
        ReceiptProblemKind::NameDisagrees => {
            "It tells of another spec, phase or place than its name does. Put the right one back from version control."
        }
        ReceiptProblemKind::DigestDiffers => {
            "It was changed after it was written. Put it back from version control, or run its phase again."
        }
        ReceiptProblemKind::ChainBroken => {
            "The receipts do not agree on what came before. Put them back from version control, or run the phase again."
        }
        ReceiptProblemKind::Gap => {
            "There are receipts before and after it. Put it back from version control."
        }
        ReceiptProblemKind::LedgerDiffers => {
            "The ledger of this machine remembers another receipt of this name. Put that one back from version control."
        }
        ReceiptProblemKind::LedgerKnowsNewer => {
            "The ledger of this machine knows of a newer receipt than any here: a file was removed, or an older state was checked out."
        }
    };
    advice.to_owned()
}
