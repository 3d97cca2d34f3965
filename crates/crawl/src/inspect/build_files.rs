//! Selects the build files for a model: the redacted beginning of each, within a common limit.

use crucible_model::Untrusted;
use crucible_repo::{Detection, FileKind, RepoSample, SampleExtent};

use super::BuildFile;
use super::beginning::beginning;

/// The bytes of one build file.
const FILE_BYTES: usize = 4_000;
/// The bytes of all build files.
const TOTAL_BYTES: usize = 12_000;
/// With less room than this, a file would be little more than a note about its cut.
const LEAST_BYTES: usize = 200;

/// The selected build files, and the number of incomplete ones.
pub(super) struct BuildFileSelection {
    pub(super) files: Vec<BuildFile>,
    /// The number of files that are cut or missing.
    pub(super) cut: usize,
    pub(super) secrets: usize,
}

/// Selects from the files that were read: first those that the detection is based on, then those at the
/// highest level.
pub(super) fn build_files(sampling: &RepoSample, detection: &Detection) -> BuildFileSelection {
    let mut candidates: Vec<_> = sampling
        .files
        .iter()
        .filter(|file| file.kind == FileKind::Build)
        .collect();
    // The sort is stable: the rest keeps the reading order.
    candidates.sort_by_key(|file| !detection.detected_files.contains(&file.path));
    let mut build_file_selection = BuildFileSelection {
        files: Vec::new(),
        cut: 0,
        secrets: 0,
    };
    let mut left = TOTAL_BYTES;
    for file in candidates {
        if left < LEAST_BYTES {
            build_file_selection.cut += 1;
            continue;
        }
        let limit = FILE_BYTES.min(left);
        let mut part = beginning(file, usize::MAX, limit);
        if part.extent == SampleExtent::Beginning {
            let note = format!("\n[only the beginning of {} bytes]\n", file.total_bytes);
            part = beginning(file, usize::MAX, limit - note.len());
            part.text.push_str(&note);
            build_file_selection.cut += 1;
        }
        left -= part.text.len();
        build_file_selection.secrets += part.secrets;
        build_file_selection.files.push(BuildFile {
            path: file.path.clone(),
            content: Untrusted::new(part.text),
        });
    }
    build_file_selection
}
