//! Deterministic, verbatim context packs: the part of a repository that a model may see.
//!
//! A [`FileRequest`] names files and a budget; [`build`] turns it into a [`ContextPack`]. The caller passes
//! the repository as a [`Source`], so the same request on the same content gives the same bytes at every
//! location. [`rank`] chooses the files of a request if none are named.
//!
//! Invariants: mandatory documents come first and whole or the build fails; content is copied, never written;
//! the contents of a pack never exceed its budget; every requested path ends in exactly one row, either a
//! file or an omission with its reason; a file is read no further than the budget can use.

mod build;
mod error;
mod imports;
mod json;
mod mandatory;
mod pack;
mod rank;
mod request;
mod snippet;
mod source;
mod text;

pub use build::build;
pub use error::PackError;
pub use imports::ImportIndex;
pub use json::{DocumentError, MAX_DOCUMENT_BYTES};
pub use mandatory::{Mandatory, MandatoryError};
pub use pack::{ContextPack, Omitted, OmittedReason, PackVersion, PackedFile};
pub use rank::{
    Candidate, Choice, Evidence, FileClass, Goal, GoalCut, History, OmittedCandidate, PastChange,
    RankLimits, Ranking, ScoreParts, Surroundings, TextMark, WordStem, area_of, is_beside,
    is_filler, is_little_word, is_of_area, rank, rank_with, tested_name,
};
pub use request::{Budget, FileRequest, LineRange, MAX_NEEDS, Mode, Need, RequestVersion};
pub use source::{Entry, Source, SourceError};
