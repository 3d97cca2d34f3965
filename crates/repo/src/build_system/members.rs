//! The members that a workspace declares, found among the files there are.
//!
//! A pattern names directories, and a directory is a member when it holds a manifest of the same kind. Patterns are
//! matched
//! all at once, so the work grows with the files and not with files times patterns.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::ProjectFiles;

/// Maximum number of patterns with wildcards.
const MAX_WILDCARDS: usize = 64;
/// Maximum bytes of a pattern.
const MAX_PATTERN: usize = 512;

/// What a workspace declares.
pub(super) struct Members<'a> {
    /// The members that are there.
    pub(super) directories: Vec<&'a str>,
    /// Notes on skipped patterns, for the user.
    pub(super) notes: Vec<String>,
}

/// Returns the members in `workspaces` of the top `package.json`; `None` without a pattern.
pub(super) fn of_package_json<'a>(files: &ProjectFiles<'a>) -> Option<Members<'a>> {
    let manifest = files.json("", "package.json")?;
    let workspaces = manifest.get("workspaces")?;
    let patterns = workspaces
        .as_array()
        .or_else(|| workspaces.get("packages")?.as_array())?;
    let patterns: Vec<&str> = patterns
        .iter()
        .filter_map(serde_json::Value::as_str)
        .collect();
    let (left_out, declared): (Vec<&str>, Vec<&str>) = patterns
        .iter()
        .partition(|pattern| pattern.starts_with('!'));
    if declared.is_empty() {
        return None;
    }
    let left_out: Vec<&str> = left_out
        .iter()
        .map(|pattern| pattern.trim_start_matches('!'))
        .collect();
    Some(find(files, "package.json", &declared, &left_out))
}

/// Returns the members in `[workspace]` of the top `Cargo.toml`; `None` without such a table.
pub(super) fn of_cargo_toml<'a>(files: &ProjectFiles<'a>) -> Option<Members<'a>> {
    let manifest = files.toml("", "Cargo.toml")?;
    let workspace = manifest.get("workspace")?.as_table()?;
    let list = |key: &str| -> Vec<&str> {
        let list = workspace.get(key).and_then(toml::Value::as_array);
        list.into_iter()
            .flatten()
            .filter_map(toml::Value::as_str)
            .collect()
    };
    Some(find(
        files,
        "Cargo.toml",
        &list("members"),
        &list("exclude"),
    ))
}

fn find<'a>(
    files: &ProjectFiles<'a>,
    manifest: &str,
    declared: &[&str],
    left_out: &[&str],
) -> Members<'a> {
    let mut notes = Vec::new();
    let declared = compile(declared, Reach::Directory, &mut notes);
    let left_out = compile(left_out, Reach::AndBelow, &mut notes);
    let directory_of = |path: &'a String| path.strip_suffix(manifest)?.strip_suffix('/');
    let is_member =
        |directory: &&str| declared.is_match(directory) && !left_out.is_match(directory);
    let directories = files
        .listing
        .iter()
        .filter_map(directory_of)
        .filter(is_member)
        .collect();
    Members { directories, notes }
}

/// What a pattern stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Directories.
    Directory,
    /// Directories and all that is below them.
    AndBelow,
}

fn compile(patterns: &[&str], reach: Reach, notes: &mut Vec<String>) -> GlobSet {
    let mut set = GlobSetBuilder::new();
    let mut wildcards = 0;
    let mut skipped_patterns = Vec::new();
    for pattern in patterns {
        let normal = pattern.trim_start_matches("./").trim_end_matches('/');
        let is_wild = normal.contains(['*', '?', '[', '{']);
        wildcards += usize::from(is_wild);
        let leads_outside =
            normal.starts_with('/') || normal.split('/').any(|segment| segment == "..");
        let is_too_much = normal.len() > MAX_PATTERN || (is_wild && wildcards > MAX_WILDCARDS);
        if normal == "." {
            continue;
        }
        if normal.is_empty() || leads_outside || is_too_much || !add(&mut set, normal, reach) {
            skipped_patterns.push(*pattern);
        }
    }
    if let Some(first) = skipped_patterns.first() {
        let text: String = first.chars().take(60).collect();
        let count = skipped_patterns.len();
        notes.push(format!(
            "{count} workspace patterns were skipped, the first is {text:?}"
        ));
    }
    set.build().unwrap_or_else(|_| {
        notes.push("the workspace has too many patterns to match".to_owned());
        GlobSet::empty()
    })
}

/// Adds a pattern; returns whether it is valid.
fn add(set: &mut GlobSetBuilder, pattern: &str, reach: Reach) -> bool {
    let glob = |text: &str| GlobBuilder::new(text).literal_separator(true).build();
    let Ok(itself) = glob(pattern) else {
        return false;
    };
    set.add(itself);
    if reach == Reach::AndBelow {
        let Ok(below) = glob(&format!("{pattern}/**")) else {
            return false;
        };
        set.add(below);
    }
    true
}
