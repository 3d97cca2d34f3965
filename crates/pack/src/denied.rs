//! Places that no pack shows (seed 003 B.2): git's own files, Crucible's runs, build output, installed packages.

use crucible_model::RepoPath;

/// Directories whose content is never packed, at the root and at any depth below it.
pub const DENIED_DIRECTORIES: [&str; 6] = [".git", "runs", "build", "dist", "node_modules", "__pycache__"];

/// The denied directory on the way to `path`, if there is one. The last name is a file's: a script named
/// `build` is no build directory. Case is ignored, as some file systems ignore it.
#[must_use]
pub fn denied_directory(path: &RepoPath) -> Option<&'static str> {
    let mut segments = path.segments();
    segments.next_back();
    segments.find_map(|segment| {
        DENIED_DIRECTORIES.into_iter().find(|denied| denied.eq_ignore_ascii_case(segment))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denied_places_are_denied_at_any_depth() {
        for path in ["build/a", "x/build/a", "dist/a", "a/b/node_modules/c/d.js", "runs/1/x", "Build/a"] {
            assert!(denied_directory(&path.parse().unwrap()).is_some(), "{path}");
        }
        for path in ["build", "x/build", "builder/a", "src/dist.rs", "rebuild/a", "build.rs", "x.git/a"] {
            assert!(denied_directory(&path.parse().unwrap()).is_none(), "{path}");
        }
    }
}
