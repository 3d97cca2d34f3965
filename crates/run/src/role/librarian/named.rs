//! Checks the files that the operator names before a run is created. A file that cannot be shown to a model
//! in full stops it, so that no call is wasted on a run that must fail.

use std::path::Path;

use crucible_model::{ByteLimit, FileLimit, RepoPath};
use crucible_pack::{
    Budget, Entry, FileRequest, Mode, Need, OmittedReason, RequestVersion, Source,
};

use super::{WorkTree, pack_context};
use crate::contract::RunSettings;
use crate::error::RunError;

/// Packs what a run of this goal always shows, and refuses what cannot be shown. Files that do not exist yet
/// pass: the model may create them.
///
/// # Errors
///
/// [`RunError::SecretInNamed`] and [`RunError::NamedUnseen`] for a named file; as [`pack_context`] for the
/// mandatory documents.
pub(crate) fn check_named(
    top: &Path,
    slug: &str,
    goal: &str,
    settings: &RunSettings,
) -> Result<(), RunError> {
    let tree = WorkTree::new(top);
    for path in &settings.named {
        if let Some(rule) = secret_in_file(&tree, path, settings.max_total_bytes) {
            return Err(RunError::SecretInNamed {
                path: path.clone(),
                rule,
            });
        }
    }
    let whole = |path: &RepoPath| Need {
        path: path.to_string(),
        mode: Mode::Full,
        line_ranges: Vec::new(),
    };
    let request = FileRequest {
        schema_version: RequestVersion::V1,
        goal: goal.to_owned(),
        needs: settings.named.iter().map(whole).collect(),
        budget: Budget {
            max_files: FileLimit(settings.max_files),
            max_total_bytes: ByteLimit(settings.max_total_bytes),
        },
        reason: "named by the operator".to_owned(),
    };
    let pack = pack_context(top, slug, &settings.context, &request)?;
    for path in &settings.named {
        let left_out = pack
            .omitted
            .iter()
            .find(|row| row.path == path.as_str())
            .map(|row| row.reason);
        let cut = pack
            .files
            .iter()
            .any(|file| file.path == path.as_str() && file.truncated);
        let cut = cut.then_some(OmittedReason::BudgetExceeded);
        if let Some(reason) = left_out
            .filter(|reason| *reason != OmittedReason::NotFound)
            .or(cut)
        {
            return Err(RunError::NamedUnseen {
                path: path.clone(),
                reason,
            });
        }
    }
    Ok(())
}

/// Returns the rule by which a file is secret, by name or content, following its links.
fn secret_in_file(tree: &WorkTree, path: &RepoPath, most: u64) -> Option<String> {
    let real = match tree.entry(path) {
        Entry::File { .. } => path.clone(),
        Entry::Linked { to, .. } => to,
        Entry::Missing
        | Entry::NotAFile
        | Entry::LeavesRepository
        | Entry::LinkCycle
        | Entry::LinkToNothing
        | Entry::Unreadable { .. } => return tree.is_secret(path, &[]),
    };
    let by_name = tree
        .is_secret(path, &[])
        .or_else(|| tree.is_secret(&real, &[]));
    by_name.or_else(|| tree.is_secret(path, &tree.read(&real, most).unwrap_or_default()))
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests lay out what a user's tools would"
)]
mod tests {
    use std::os::unix::fs::symlink;

    use crucible_host::fs::{create_dir_all, write_atomic};

    use super::*;
    use crate::gatekeeper::tests::record;

    #[test]
    fn unshowable_named_file_stops_run_creation() {
        let temp_dir = tempfile::tempdir().unwrap();
        let top = temp_dir.path();
        create_dir_all(&top.join("node_modules/x")).unwrap();
        let token = crucible_testkit::made_up_token();
        for (path, text) in [
            ("a.rs", "fn a() {}\n"),
            (".env", "A=1\n"),
            ("token.rs", &format!("const T: &str = \"{token}\";\n")),
            ("node_modules/x/a.js", "a\n"),
            ("big.rs", &"x".repeat(2000)),
        ] {
            write_atomic(&top.join(path), text.as_bytes()).unwrap();
        }
        symlink(".env", top.join("settings.rs")).unwrap();
        symlink("/etc", top.join("out")).unwrap();
        let mut settings = record(top, &[]).settings;
        (settings.max_files, settings.max_total_bytes) = (2, 1000);
        let mut named = |paths: &[&str]| {
            settings.named = paths.iter().map(|path| path.parse().unwrap()).collect();
            match check_named(top, "r", "fix it", &settings) {
                Ok(()) => "shown".to_owned(),
                Err(RunError::SecretInNamed { path, rule }) => format!("{path} secret {rule}"),
                Err(RunError::NamedUnseen { path, reason }) => {
                    format!("{path} {}", reason.as_str())
                }
                Err(other) => panic!("{other}"),
            }
        };
        assert_eq!(named(&["a.rs", "not/there/yet.rs"]), "shown");
        assert_eq!(named(&["a.rs", ".env"]), ".env secret secret-file");
        assert_eq!(
            named(&["not/there/.env"]),
            "not/there/.env secret secret-file"
        );
        assert_eq!(named(&["settings.rs"]), "settings.rs secret secret-file");
        assert!(
            named(&["token.rs"]).starts_with("token.rs secret github"),
            "{}",
            named(&["token.rs"])
        );
        assert_eq!(
            named(&["node_modules/x/a.js"]),
            "node_modules/x/a.js denied"
        );
        assert_eq!(named(&["out/passwd"]), "out/passwd denied");
        assert_eq!(named(&["big.rs"]), "big.rs budget_exceeded");
    }
}
