//! Unified diffs, edits and the patch policy.
//!
//! The crate owns the way from what a model answered to a patch that may be tried: [`read_answer`] turns an
//! answer into a [`Proposal`], [`apply`] turns that into file contents, [`make_diff`] writes the canonical patch,
//! [`parse`] reads any patch strictly, and [`judge`] weighs it against a [`Policy`].
//!
//! What always holds: everything here is a pure function of its arguments; bytes are never decoded lossily;
//! a patch or an answer that can be read in two ways is refused, not guessed.

mod added;
mod answer;
mod class;
mod collision;
mod diff;
mod entry;
mod hidden;
mod judge;
mod mutation;
mod outline;
mod parse;
mod patch;
mod policy;
mod proposed_test;
mod quote;
mod sinks;
mod source;
mod stdlib;
mod syntax;
mod tricks;

pub use answer::{
    AnswerBlock, AnswerError, Edit, EditKind, LooseHunk, MAX_ANSWER_BYTES, ParsedAnswer, Proposal,
    RestoredDefinitions, answer_blocks, apply, as_line_edits, can_splice, consists_of_definitions,
    read_answer, read_any_answer, restore_lost_definitions, strip_reasoning,
};
pub use class::{is_ci, is_git_setting, is_lockfile, is_manifest, is_test_path};
pub use collision::{adds_paths, collisions};
pub use diff::{DiffError, make_diff};
pub use entry::{TreeEntry, judge_entries, link_target_prefixes, submodule};
pub use judge::{RELEASE_NOTES, judge, judge_paths};
pub use mutation::{
    AlteredExpectations, BROKEN_ON_PURPOSE, Breakage, BrokenSource, MAX_MUTANTS, Mutant, Unbroken,
    alter_expectations, break_change, mutants,
};
pub use outline::{OutlineItem, outline};
pub use parse::{PatchError, PatchErrorKind, parse};
pub use patch::{
    Change, Content, FileMode, FilePatch, Hunk, HunkLine, LineEnd, LineKind, ObjectNames, Patch,
};
pub use policy::{
    DEFAULT_MAX_ADDED_LINES, DEFAULT_MAX_FILES, Policy, PolicySource, SpecialEntries,
};
pub use proposed_test::{
    EXPECTED_BLANK, ProposedTest, TestFault, module_files, new_names, normal_literal,
    proposed_test, signatures,
};
pub use sinks::{Sink, SinkKind, new_sinks};
pub use source::{
    Asserts, SourceSigns, defined_names, defines_assertions, defines_test, source_signs,
};
pub use tricks::EXAMPLE_CHANGED;
