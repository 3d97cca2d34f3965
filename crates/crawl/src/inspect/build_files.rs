//! The build files that a model may read: each its beginning, all of them within one budget, secrets replaced.

use crucible_model::Untrusted;
use crucible_repo::{Detection, FileKind, SampleExtent, Sampling};

use super::BuildFile;
use super::beginning::beginning;

/// Bytes of one build file.
const FILE_BYTES: usize = 4_000;
/// Bytes of all of them.
const TOTAL_BYTES: usize = 12_000;
/// With less than this left, a file would be a note about its cut and little else.
const LEAST_BYTES: usize = 200;

/// Build files, and what is missing of them.
pub(super) struct Shown {
    pub(super) files: Vec<BuildFile>,
    /// Files that are cut or missing.
    pub(super) cut: usize,
    pub(super) secrets: usize,
}

/// Chooses among what was read: first what gave the build system away, then what lies highest.
pub(super) fn build_files(sampling: &Sampling, detection: &Detection) -> Shown {
    let mut candidates: Vec<_> = sampling.files.iter().filter(|file| file.kind == FileKind::Build).collect();
    // The sort is stable: the rest stays in the order of reading.
    candidates.sort_by_key(|file| !detection.detected_files.contains(&file.path));
    let mut shown = Shown { files: Vec::new(), cut: 0, secrets: 0 };
    let mut left = TOTAL_BYTES;
    for file in candidates {
        if left < LEAST_BYTES {
            shown.cut += 1;
            continue;
        }
        let limit = FILE_BYTES.min(left);
        let mut part = beginning(file, usize::MAX, limit);
        if part.extent == SampleExtent::Beginning {
            let note = format!("\n[only the beginning of {} bytes]\n", file.total_bytes);
            part = beginning(file, usize::MAX, limit - note.len());
            part.text.push_str(&note);
            shown.cut += 1;
        }
        left -= part.text.len();
        shown.secrets += part.secrets;
        shown.files.push(BuildFile { path: file.path.clone(), content: Untrusted::new(part.text) });
    }
    shown
}
