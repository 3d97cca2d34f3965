//! Detects gates from a repository's build files if none is configured.
//!
//! The nearest directory decides. A run started in a package of a monorepo uses and runs the gates of that
//! package; without any, those of the directory above, up to the repository's top.

use std::path::Path;
use std::time::Duration;

use crucible_model::RepoPath;
use crucible_verify::{GateOrigin, GateSpec};

use crate::error::RunError;

/// Returns the gates of the directory `from` of the repository at `top`, or of the nearest one above it that
/// has any; empty if none has. Without `from`, only the top is examined.
///
/// # Errors
///
/// Fails when a directory cannot be listed, or a build file is too large to be read.
pub(crate) fn detect_gates(
    top: &Path,
    from: Option<&RepoPath>,
    timeout: Duration,
) -> Result<Vec<GateSpec>, RunError> {
    let mut directory = from.cloned();
    loop {
        let place = directory
            .as_ref()
            .map_or_else(|| top.to_owned(), |inside| top.join(inside));
        let mut gates = Vec::new();
        for found in crucible_verify::detect(&place)? {
            let id = found.id.parse().map_err(|_| no_gates_error(from))?;
            let why = match &directory {
                Some(inside) => format!("{inside}: {}", found.why),
                None => found.why,
            };
            let spec = GateSpec::new(id, found.command, timeout, why);
            gates.push(GateSpec {
                alternatives: found.alternatives,
                builds: found.builds,
                cwd: directory.clone(),
                origin: GateOrigin::Found,
                ..spec
            });
        }
        match directory {
            Some(inside) if gates.is_empty() => {
                directory = inside
                    .as_str()
                    .rsplit_once('/')
                    .and_then(|(above, _)| above.parse().ok());
            }
            _ => return Ok(gates),
        }
    }
}

/// Returns the error if no gate is configured or detected.
#[must_use]
pub(crate) fn no_gates_error(from: Option<&RepoPath>) -> RunError {
    RunError::NoGates {
        looked_in: from.map_or_else(
            || "the repository's top directory".to_owned(),
            |inside| format!("{inside} and the directories above it"),
        ),
        looked_for: crucible_verify::runners()
            .iter()
            .map(|detector| detector.id())
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// Returns the path of the directory `start` inside the repository at `top`; `None` if it is the top.
#[must_use]
pub(crate) fn path_inside(top: &Path, start: &Path) -> Option<RepoPath> {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let inside = real(start)?
        .strip_prefix(real(top)?)
        .ok()?
        .to_str()?
        .to_owned();
    inside.parse().ok()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test lays out directories")]
mod tests {
    use super::*;

    #[test]
    fn nearest_directory_with_gates_decides() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("packages/x/src")).unwrap();
        std::fs::create_dir_all(root.path().join("docs")).unwrap();
        std::fs::write(root.path().join("Makefile"), "test:\n").unwrap();
        std::fs::write(root.path().join("packages/x/go.mod"), "module x\n").unwrap();
        let found = |from: &str| {
            let from = path_inside(root.path(), &root.path().join(from));
            let gates = detect_gates(root.path(), from.as_ref(), Duration::from_secs(1)).unwrap();
            let commands = gates.iter().map(|gate| {
                (
                    gate.id.to_string(),
                    gate.cwd.as_ref().map(RepoPath::to_string),
                )
            });
            commands.collect::<Vec<_>>()
        };
        let of_x = [("go-test".to_owned(), Some("packages/x".to_owned()))];
        assert_eq!(found("packages/x"), of_x);
        assert_eq!(found("packages/x/src"), of_x);
        for from in ["", "docs", "packages"] {
            assert_eq!(found(from), [("make-test".to_owned(), None)], "{from}");
        }
    }
}
