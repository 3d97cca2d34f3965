//! Why a place that decides what git runs cannot be protected.
//!
//! Read-only places are not enough where a writer can replace what leads to them.

use std::fmt;
use std::path::{Path, PathBuf};

/// Why a place that decides what git runs cannot be protected in a writable directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuardConflict {
    /// The writable directory is a part of the place.
    Around {
        /// The place, which may be the directory itself.
        place: PathBuf,
        /// The writable directory.
        directory: PathBuf,
    },
    /// The place is reached through a link, which a writer could replace.
    Link {
        /// The link.
        place: PathBuf,
    },
    /// A file of the place has another name in a writable directory.
    HardLink {
        /// The file.
        place: PathBuf,
        /// Its other name.
        other: PathBuf,
    },
}

impl GuardConflict {
    /// Returns the place that decides what git runs.
    #[must_use]
    pub fn place(&self) -> &Path {
        match self {
            Self::Around { place, .. } | Self::Link { place } | Self::HardLink { place, .. } => {
                place
            }
        }
    }
}

impl fmt::Display for GuardConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Around { place, directory } if place == directory => {
                write!(f, "{}: git runs programs from it", directory.display())
            }
            Self::Around { place, directory } => {
                let (directory, place) = (directory.display(), place.display());
                write!(f, "{directory} is in {place}: git runs programs from there")
            }
            Self::Link { place } => {
                let place = place.display();
                write!(
                    f,
                    "{place}: git follows this symbolic link, which the command could replace"
                )
            }
            Self::HardLink { place, other } => {
                let (place, other) = (place.display(), other.display());
                write!(
                    f,
                    "{other} is a hard link to {place}, which git runs or obeys"
                )
            }
        }
    }
}
