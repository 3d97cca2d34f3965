//! The `summary` of a pack: counts of included and omitted files, with reasons.

use std::collections::BTreeMap;

use crucible_model::counted;

use crate::pack::{Omitted, OmittedReason, PackedFile};

use super::Refusal;

/// How many omissions are explained one by one.
const MAX_DETAILS: usize = 20;

/// What building a pack learned about the files it leaves out.
#[derive(Default)]
pub(super) struct Tally {
    /// Needs that name a document which is in the pack anyway.
    pub(super) already_mandatory: u64,
    details: Vec<String>,
    unexplained: u64,
}

impl Tally {
    /// Takes note of one omission.
    pub(super) fn note(&mut self, path: &str, refusal: &Refusal) {
        let Some(detail) = &refusal.detail else {
            return;
        };
        if self.details.len() < MAX_DETAILS {
            let text: String = path.chars().take(200).collect();
            self.details.push(format!("{text:?} {detail}"));
        } else {
            self.unexplained += 1;
        }
    }

    /// Tells it all in a few sentences.
    pub(super) fn summary(
        &self,
        files: &[PackedFile],
        omitted: &[Omitted],
        max_bytes: u64,
    ) -> String {
        let bytes: usize = files.iter().map(|file| file.content.len()).sum();
        let cut = files.iter().filter(|file| file.truncated).count();
        let is = if files.len() == 1 { "is" } else { "are" };
        let count = counted(files.len() as u64, "file");
        let mut text = format!("{count} with {bytes} of {max_bytes} bytes {is} in");
        if cut > 0 {
            text.push_str(&format!(", {cut} of them cut to the budget"));
        }
        text.push_str(". ");
        if omitted.is_empty() {
            text.push_str("Nothing was omitted.");
        } else {
            let mut counts: BTreeMap<OmittedReason, u64> = BTreeMap::new();
            for row in omitted {
                *counts.entry(row.reason).or_default() += 1;
            }
            let counts: Vec<String> = counts
                .iter()
                .map(|(reason, count)| format!("{count} {}", reason.as_str()))
                .collect();
            text.push_str(&format!(
                "{} omitted: {}.",
                omitted.len(),
                counts.join(", ")
            ));
        }
        for detail in &self.details {
            text.push_str(&format!(" {detail}."));
        }
        if self.unexplained > 0 {
            text.push_str(&format!(
                " {} more were omitted for reasons of this kind.",
                self.unexplained
            ));
        }
        if self.already_mandatory > 0 {
            text.push_str(&format!(
                " {} requested paths are in as mandatory documents.",
                self.already_mandatory
            ));
        }
        text
    }
}
