//! The user's repository: read through git, copied for the sandbox, and changed once, at the end.
//!
//! Every call of git's command line is built in one place (`git::command`): no hooks, no filters, no monitors, no configuration of the
//! machine, no network, nothing inherited. Objects, the index and what is checked out are read in this process where they are in the usual
//! form (`git::store`, `index_file`); git's command line reads the rest, applies patches, and writes. A repository is hostile input: what
//! its configuration names is never run, and what could hide a change from us is reported.
//!
//! - [`Git`] opens a repository and reads it: head, status, tracked files, contents.
//! - [`Git::tree_after_patch`] makes the tree that a patch really produces, beside the repository; [`Git::changes_after_patch`] only
//!   what it changes. [`check_agreement`] and [`check_changes_agreement`] compare that with the patch's text.
//! - [`Git::land`] commits such a tree, exactly once however often it is interrupted.
//! - [`snapshot`] copies the work tree for the sandbox, [`create_baseline`] gives the copy a repository of its own. [`copy_tree`] copies any tree by
//!   walking it, and its [`TreeManifest`] tells later what was changed in the copy.
//! - [`CommitReader`] reads commits and notes of any repository, also a bare one during a push, and writes notes.
//! - [`WorkClone`] is a repository of our own at a commit of another one, without its hooks, configuration and later history.
//! - [`detect`] finds the gates that a repository has.
//! - [`Git::apply_to_work_tree`] brings such a tree's files to the work tree, and commits nothing.
//! - [`edit_tree`] replaces files below a directory, with git or without: all of them or none.
//!
//! What always holds: until `land`, `write_note`, `apply_to_work_tree` or `edit_tree`, nothing in the user's repository is written, not even an object.

mod agree;
mod apply;
mod archive;
mod attributes;
mod baseline;
mod beneath;
mod build_system;
mod checkout;
mod clone;
mod commit_reader;
mod error;
mod exit_status;
mod gh;
mod git;
mod identity;
mod index_file;
mod land;
mod language;
mod oid;
mod patch_index;
mod percent;
mod private_git;
mod ref_name;
mod sample;
mod snapshot;
mod trailers;
mod tree;
mod tree_edit;
mod tree_reader;
mod work_clone;
mod work_copy;

pub use agree::{check_agreement, check_changes_agreement};
pub use apply::{AppliedFile, AppliedTree, ApplyError};
pub use archive::{ArchiveError, ArchiveLimits, Refusal, Unpacked, unpack};
pub use baseline::create_baseline;
pub use build_system::{
    BuildSystem, BuildSystemError, Detection, ProjectFiles, Projects, detect_build_system,
    find_projects,
};
pub use clone::{CloneAt, CloneError, CloneLimits, CloneRequest, CloneUrl, Cloned, clone};
pub use commit_reader::{CommitReader, ListedRef, NotesChange, ReadObject, Revisions};
pub use error::RepoError;
pub use gh::{
    Gh, GhDeadlines, GhError, GhRequest, GhResponse, LimitReset, is_github_name, is_github_owner,
};
pub use git::{
    Branch, BranchReach, CommitFiles, CommitObject, DirtyEntry, DirtyKind, Git, GuardConflict,
    Guards, Head, RunByGit, TrackedFile, TrackedState, git_directory_around, is_dot_git,
    is_git_directory, is_git_entry,
};
pub use identity::Identity;
pub use land::{Commit, LandRequest, Landed, RUN_TRAILER};
pub use language::count_languages;
pub use oid::{Oid, OidError};
pub use patch_index::PatchIndex;
pub use private_git::{HistoryLimits, PrivateGit};
pub use ref_name::{RefName, RefNameError};
pub use sample::{FileKind, RepoSample, SampleCap, SampleCaps, SampleExtent, SampledFile, sample};
pub use snapshot::{
    ContentCheck, CopyEntry, CopyMethod, DependencyTree, FileContent, IgnoredFiles, IgnoredLimits,
    IgnoredOptions, Omission, OmitReason, PathCheck, SecretCheck, SnapshotOptions, SnapshotReport,
    SplitTrees, TreeCopy, TreeCopyOptions, TreeLimits, TreeManifest, UnseenReason, Untracked,
    WorkspaceChange, copy_tree, snapshot,
};
pub use tree::{ChangeStatus, MAX_TOUCHED, ProducedChanges, ProducedTree, TreeChange};
pub use tree_edit::{
    ClaimedEdit, EditClaim, EditJournal, EditNote, EditObstacle, EditRecovery, EditedFile,
    GuardedPlaces, LinkPolicy, MAX_EDITED_BYTES, NewFile, RecoveredEdit, RegeneratedContent,
    TreeEdit, TreeEditError, TreeFile, edit_tree, pending_tree_edit, read_tree_file,
    recover_tree_edit, recover_tree_edit_with,
};
pub use tree_reader::{PathState, TreeReader};
pub use work_clone::WorkClone;
pub use work_copy::WorkCopy;
