//! The fixup phase: changes to the project files that the review names.
//!
//! The answer is a proposal in the backend's edit format. The module `fixup` parses and judges it, not
//! this one. The document is our own report of the proposal.

use crucible_llm::{Message, ReceiptWarning};
use crucible_model::{
    CodeFence, EditFormat, PromptBuilder, PromptText, Untrusted, Verdict, says_nothing,
};
use crucible_patch::MAX_ANSWER_BYTES;

use super::definition::{PhaseDefinition, PhaseDocument, PhaseInput, artifact};
use super::prompt::{conversation, correction, entries};
use crate::document::{
    Fault, Remark, Target, begins_as, is_no_changes, of_no_document, read_review, warning,
};
use crate::packet::{EntryKind, PacketEntry};
use crate::phase_id::PhaseId;

pub(super) struct FixupPhase;

impl PhaseDefinition for FixupPhase {
    fn id(&self) -> PhaseId {
        PhaseId::Fixup
    }

    fn upstream(&self) -> &'static [PhaseId] {
        &[PhaseId::Review]
    }

    fn messages(&self, input: &PhaseInput<'_>) -> Option<Vec<Message>> {
        let work = Work::from_input(input);
        if work.files.is_empty() {
            return None;
        }
        let is_apart = |entry: &&PacketEntry| {
            matches!(entry.kind, EntryKind::Previous(_))
                || work.files.iter().any(|file| std::ptr::eq(*file, *entry))
        };
        let others = input.packet.entries.iter().filter(|entry| !is_apart(entry));
        let prompt = entries(
            PromptBuilder::new().fixed_text("For reading only:\n"),
            others,
        );
        // The files to change come directly before the request: small models copy what they read last.
        let prompt =
            correction(prompt, input).fixed_text("\nThe files to change, as they are now:\n");
        let prompt = entries(prompt, work.files.iter().copied());
        let findings: Vec<_> = work
            .shown
            .iter()
            .map(|(name, remark)| finding_line(*name, remark))
            .collect();
        let names: Vec<_> = work
            .files
            .iter()
            .map(|file| format!("FILE: {}", file.name))
            .collect();
        let prompt = prompt
            .fixed_text("\nThe findings of the review about these files:\n")
            .untrusted("findings", &Untrusted::new(findings.join("\n")))
            .untrusted(
                "the files that you may change",
                &Untrusted::new(names.join("\n")),
            );
        conversation(system(input.edit_format), prompt.fixed_text(match input.edit_format {
            EditFormat::WholeFile => "\nCorrect what the block \"findings\" says. Give each file that you change whole, nothing left out.\n",
            EditFormat::SearchReplace => "\nCorrect what the block \"findings\" says, with blocks that search and replace.\n",
            EditFormat::Definitions => "\nCorrect what the block \"findings\" says. Of each file that you change, give only the definitions that change, each complete.\n",
            EditFormat::UnifiedDiff => "\nCorrect what the block \"findings\" says, with one diff.\n",
        }))
    }

    fn without_model(&self, input: &PhaseInput<'_>) -> Option<PhaseDocument> {
        let work = Work::from_input(input);
        if !work.files.is_empty() {
            return None;
        }
        Some(work.document(
            input,
            "The review names no file of the project to change.\n",
            None,
        ))
    }

    fn read(&self, answer: &Untrusted, input: &PhaseInput<'_>) -> Result<PhaseDocument, Verdict> {
        let text = answer.as_str();
        let work = Work::from_input(input);
        if text.len() as u64 > MAX_ANSWER_BYTES {
            return Err(
                Fault::TooLong.alone(&format!("{} bytes, at most {MAX_ANSWER_BYTES}", text.len()))
            );
        }
        if says_nothing(text) {
            return Err(Fault::Empty.alone("the answer"));
        }
        // A parser of edits would take the only code block of a design for the only file to change.
        if begins_as(text).is_some_and(|phase| phase != PhaseId::Fixup) {
            return Err(
                Fault::WrongPhase.alone(text.trim_start().lines().next().unwrap_or_default())
            );
        }
        if text.lines().any(begins_edit) {
            let mut document = work.document(input, "The model proposes changes for them.\n", None);
            document.proposal = Some(answer.clone());
            return Ok(document);
        }
        if text.lines().any(is_no_changes) {
            let message =
                "the model proposes no change for the findings about files of the project";
            let warning = warning("spec_fixup_declined", message);
            return Ok(work.document(
                input,
                "The model proposes no change for them.\n",
                Some(warning),
            ));
        }
        Err(of_no_document(text).alone(text.trim_start().lines().next().unwrap_or_default()))
    }
}

/// The work of a fixup.
struct Work<'a> {
    /// The findings about files that are shown, with their ids.
    shown: Vec<(u32, Remark)>,
    /// The findings about files that are not shown.
    unseen: Vec<(u32, Remark)>,
    /// The files with findings that are shown, in packet order.
    files: Vec<&'a PacketEntry>,
}

impl<'a> Work<'a> {
    fn from_input(input: &PhaseInput<'a>) -> Self {
        let review = artifact(input, PhaseId::Review)
            .map_or("", Untrusted::as_str)
            .replace("\r\n", "\n");
        let remarks = read_review(&review)
            .remarks
            .into_iter()
            .zip(1..)
            .map(|(remark, number)| (number, remark));
        let about = |remark: &Remark, entry: &PacketEntry| match &remark.target {
            Target::File(path) => path.as_str() == entry.name,
            Target::Artifact(_) | Target::Unknown(_) => false,
        };
        let remarks = remarks.filter(|(_, remark)| matches!(remark.target, Target::File(_)));
        let (shown, unseen): (Vec<_>, Vec<_>) =
            remarks.partition(|(_, remark)| input.packet.files().any(|entry| about(remark, entry)));
        let files = input
            .packet
            .files()
            .filter(|entry| shown.iter().any(|(_, remark)| about(remark, entry)))
            .collect();
        Self {
            shown,
            unseen,
            files,
        }
    }

    fn document(
        &self,
        input: &PhaseInput<'_>,
        result: &str,
        more: Option<ReceiptWarning>,
    ) -> PhaseDocument {
        let mut text = format!("# Fixup: {}\n", input.spec);
        if !self.shown.is_empty() {
            text.push_str("\n## Findings about files of the project\n\n");
            for (number, remark) in &self.shown {
                text.push_str(&format!("- {}\n", finding_line(*number, remark)));
            }
        }
        let mut warnings: Vec<_> = more.into_iter().collect();
        if !self.unseen.is_empty() {
            text.push_str("\n## Findings about files that were not shown\n\n");
            for (number, remark) in &self.unseen {
                text.push_str(&format!("- {}\n", finding_line(*number, remark)));
            }
            let count = crucible_model::counted(self.unseen.len() as u64, "finding");
            warnings.push(warning(
                "spec_file_not_shown",
                format!("no fixup works on {count} about files that were not shown"),
            ));
        }
        text.push('\n');
        text.push_str(result);
        PhaseDocument {
            text,
            warnings,
            proposal: None,
        }
    }
}

/// A finding on one line.
fn finding_line(number: u32, remark: &Remark) -> String {
    let target = match &remark.target {
        Target::File(path) => path.as_str(),
        Target::Artifact(name) | Target::Unknown(name) => name,
    };
    format!(
        "F-{number:03} [{}] `{target}`: {}",
        remark.severity, remark.text
    )
}

/// Whether a line can be part of a change to files.
fn begins_edit(line: &str) -> bool {
    let bare = line.trim_start_matches(['#', '*', ' ', '`', '>']);
    let starts = ["FILE:", "File:", "file:", "<<<<<<<", "diff --git", "--- a/"];
    CodeFence::indented(line).is_some() || starts.iter().any(|start| bare.starts_with(start))
}

fn system(format: EditFormat) -> PromptText {
    let prompt = PromptBuilder::new().fixed_text(
        "You correct files of a software project as a review asks. A program reads your answer, makes a patch of it and shows it to a \
         person before anything changes; nobody reads explanations.\n\
         Rules:\n\
         - Change only the files that you may change, and of them only what a finding asks for. Everything else stays as it is.\n\
         - No introduction, no summary of what you did, no question.\n\
         - If no finding asks for a change, answer with the one line NO CHANGES.\n",
    );
    match format {
        EditFormat::WholeFile => prompt.fixed_text(
            "- For each file that you change, write a line `FILE: ` with its path, and below it one code block that holds all of the \
             file's new content. The form:\n\nFILE: src/name.rs\n```\nthe whole new content\n```\n",
        ),
        EditFormat::SearchReplace => prompt.fixed_text(
            "- For each place that you change, write a line `FILE: ` with the file's path and below it one block. What is searched is \
             copied from the file line by line and stands in it once. The form:\n\nFILE: src/name.rs\n<<<<<<< SEARCH\nlines of the file\n\
             =======\nnew lines\n>>>>>>> REPLACE\n",
        ),
        EditFormat::Definitions => prompt.fixed_text(
            "- For each file that you change, write a line `FILE: ` with its path, and below it one code block that holds only the \
             functions, types, constants or methods that you change or add, each complete and a method inside the line of its class, \
             `impl` or module. Of a file that is not Rust, Python, JavaScript, TypeScript or Go, give all of its new content. The \
             form:\n\nFILE: src/name.rs\n```\nthe definitions that change\n```\n",
        ),
        EditFormat::UnifiedDiff => prompt.fixed_text(
            "- Write one unified diff as git does, with a line `diff --git a/src/name.rs b/src/name.rs` for each file, three lines of \
             context, and nothing before or behind it.\n",
        ),
    }
    .build()
}
