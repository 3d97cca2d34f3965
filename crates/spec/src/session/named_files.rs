//! The files that the command line names, as paths of the project.

use std::path::{Component, Path, PathBuf};

use crucible_model::Failure;

/// Converts a path or glob relative to the working directory into one relative to the project's
/// directory.
pub(super) fn in_project(text: &str, directory: &Path, root: &Path) -> Result<String, Failure> {
    let outside = || {
        Failure::usage(format!(
            "--context {text}: it is not in the project {}",
            root.display()
        ))
        .hint("Name files of the project; use --source to add other files to the idea.")
    };
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let directory = directory
        .canonicalize()
        .unwrap_or_else(|_| directory.to_owned());
    if text.is_empty() {
        return Err(outside());
    }
    let (directory, below) = match Path::new(text).is_absolute() {
        true => entering(Path::new(text), &root).ok_or_else(outside)?,
        false => (directory, Path::new(text)),
    };
    // Directories of the working directory are literal names, even with glob characters.
    let is_glob = text.contains(['*', '?', '[', '{', '\\']);
    let mut parts: Vec<String> = Vec::new();
    for part in directory
        .strip_prefix(&root)
        .map_err(|_| outside())?
        .components()
    {
        let part = part.as_os_str().to_str().ok_or_else(outside)?;
        parts.push(if is_glob {
            escaped(part)
        } else {
            part.to_owned()
        });
    }
    for component in below.components() {
        match component {
            Component::Normal(part) => parts.push(part.to_str().ok_or_else(outside)?.to_owned()),
            Component::CurDir => {}
            Component::ParentDir => drop(parts.pop().ok_or_else(outside)?),
            Component::RootDir | Component::Prefix(_) => return Err(outside()),
        }
    }
    Ok(if parts.is_empty() {
        ".".to_owned()
    } else {
        parts.join("/")
    })
}

/// The directory where an absolute path enters the project, after following links, and the rest of the
/// path as written.
fn entering<'a>(path: &'a Path, root: &Path) -> Option<(PathBuf, &'a Path)> {
    let ancestors: Vec<&Path> = path.ancestors().collect();
    ancestors.into_iter().rev().find_map(|ancestor| {
        let place = ancestor
            .canonicalize()
            .ok()
            .filter(|place| place.starts_with(root))?;
        Some((place, path.strip_prefix(ancestor).ok()?))
    })
}

/// Escapes a name as a glob that matches only that name.
fn escaped(name: &str) -> String {
    let mut glob = String::with_capacity(name.len());
    for c in name.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\') {
            glob.push('\\');
        }
        glob.push(c);
    }
    glob
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test lays out links by hand")]
mod tests {
    use super::*;

    #[test]
    fn working_directory_path_becomes_project_path() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let below = root.join("web/[id]");
        crucible_host::fs::create_dir_all(&below).unwrap();
        let of = |text: &str, directory: &Path| in_project(text, directory, &root).ok();
        assert_eq!(of("src/a.rs", &root), Some("src/a.rs".to_owned()));
        assert_eq!(of("./src/../*.md", &root), Some("*.md".to_owned()));
        assert_eq!(of("page.tsx", &below), Some("web/[id]/page.tsx".to_owned()));
        assert_eq!(of("*.tsx", &below), Some(r"web/\[id\]/*.tsx".to_owned()));
        assert_eq!(of("../../README.md", &below), Some("README.md".to_owned()));
        assert_eq!(of("../..", &below), Some(".".to_owned()));
        assert_eq!(
            of(root.join("a.md").to_str().unwrap(), &below),
            Some("a.md".to_owned())
        );
        let elsewhere = tempfile::tempdir().unwrap();
        let (link, inner) = (
            elsewhere.path().join("link"),
            elsewhere.path().join("inner"),
        );
        std::os::unix::fs::symlink(&root, &link).unwrap();
        std::os::unix::fs::symlink(&below, &inner).unwrap();
        let through = |link: &Path, rest: &str| of(link.join(rest).to_str().unwrap(), &root);
        assert_eq!(through(&link, "web/*.tsx"), Some("web/*.tsx".to_owned()));
        assert_eq!(
            through(&link, "missing/a.md"),
            Some("missing/a.md".to_owned())
        );
        assert_eq!(
            through(&inner, "page.tsx"),
            Some("web/[id]/page.tsx".to_owned())
        );
        assert_eq!(
            through(&inner, "*.tsx"),
            Some(r"web/\[id\]/*.tsx".to_owned())
        );
        assert_eq!(through(&link, "../x"), None);
        for outside in ["../x", "/etc/passwd", "../../../x", ""] {
            assert_eq!(of(outside, &root), None, "{outside}");
        }
        assert_eq!(
            of("x", dir.path().parent().unwrap()),
            None,
            "a directory outside of the project"
        );
    }
}
