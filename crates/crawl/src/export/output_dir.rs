//! Checks where an export may be written.
//!
//! A directory is checked twice: as given, and with every link followed. The checked path is the used
//! one: [`OutputDir`] holds the path without links, and the writer checks again that it still leads
//! there.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Access, access};

use super::{ExportError, MANIFEST, occupied, refuse_what_is_in_the_way};

/// Directories of the system, where nothing is exported. The last four are the counterparts of
/// `/lib` and `/var/run`.
const SYSTEM: [&str; 14] = [
    "/usr", "/etc", "/var", "/bin", "/sbin", "/lib", "/boot", "/proc", "/sys", "/dev", "/lib32",
    "/lib64", "/libx32", "/run",
];

/// The real location of `/home` on some systems. Reached through that link it is not a system directory.
const HOMES: &str = "/var/home";

/// A directory for an export: absolute, not a system directory even through links, writable, and empty or
/// an earlier export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputDir(PathBuf);

impl OutputDir {
    /// Checks a directory that the user chose. It need not exist, and nothing is created.
    ///
    /// # Errors
    ///
    /// [`ExportError`] names the rule that the directory breaks.
    pub fn resolve(path: &Path) -> Result<Self, ExportError> {
        let real = without_links(path)?;
        if let Some(system) = system_directory(&lexical(path), &real) {
            return Err(ExportError::System {
                path: path.to_owned(),
                real,
                system,
            });
        }
        Self::usable(path, real)
    }

    /// The directory of session `session` in Crucible's own: `exports/<session>`. Crucible's directory may be inside a system
    /// directory, for example for a service.
    ///
    /// # Errors
    ///
    /// As [`OutputDir::resolve`].
    pub fn in_home(home: &Path, session: u64) -> Result<Self, ExportError> {
        let path = home.join("exports").join(session.to_string());
        let real = without_links(&path)?;
        Self::usable(&path, real)
    }

    fn usable(path: &Path, real: PathBuf) -> Result<Self, ExportError> {
        let is_git = |part: Component<'_>| part.as_os_str().eq_ignore_ascii_case(".git");
        if real.components().any(is_git) {
            return Err(ExportError::InsideGit {
                path: path.to_owned(),
            });
        }
        let target_path = real
            .ancestors()
            .find(|ancestor| ancestor.symlink_metadata().is_ok())
            .unwrap_or(Path::new("/"));
        if !target_path.is_dir() {
            return Err(ExportError::NotADirectory {
                path: target_path.to_owned(),
            });
        }
        if access(target_path, Access::WRITE_OK | Access::EXEC_OK).is_err() {
            return Err(ExportError::NotWritable {
                path: target_path.to_owned(),
            });
        }
        if target_path == real {
            if let Some(entry) = occupied(&real)? {
                return Err(ExportError::Occupied { path: real, entry });
            }
            refuse_what_is_in_the_way(&real)?;
        }
        Ok(Self(real))
    }

    /// The path without links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The path of the manifest, which exists if an export is complete.
    pub(super) fn manifest(&self) -> PathBuf {
        self.0.join(MANIFEST)
    }
}

/// The path with every link followed; missing parts are kept as given.
fn without_links(path: &Path) -> Result<PathBuf, ExportError> {
    if !path.is_absolute() {
        return Err(ExportError::Relative {
            path: path.to_owned(),
        });
    }
    let mut real = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            // `real` contains no link, so its parent is the directory that contains it.
            Component::ParentDir => {
                real.pop();
            }
            Component::Normal(name) => {
                let next = real.join(name);
                real = match fs::canonicalize(&next) {
                    Ok(found) => found,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        if next.symlink_metadata().is_ok() {
                            return Err(ExportError::Link { path: next });
                        }
                        next
                    }
                    Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                        return Err(ExportError::NotADirectory { path: real });
                    }
                    Err(source) => return Err(ExportError::unreadable(&next, source)),
                };
            }
        }
    }
    Ok(real)
}

/// The path as given, with `..` and the part before it removed.
fn lexical(path: &Path) -> PathBuf {
    let mut named = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => named.push(name),
            Component::ParentDir => {
                named.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    named
}

/// The system directory that a path is or is inside, by its given or real form.
fn system_directory(named: &Path, real: &Path) -> Option<&'static str> {
    if named == Path::new("/") || real == Path::new("/") {
        return Some("/");
    }
    let within = |path: &Path| SYSTEM.into_iter().find(|system| path.starts_with(system));
    within(named).or_else(|| within(real).filter(|_| !real.starts_with(HOMES)))
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests plant links and files by hand"
)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn refused(path: &Path) -> ExportError {
        OutputDir::resolve(path).expect_err(&path.display().to_string())
    }

    #[test]
    fn system_directories_are_refused() {
        let seed = [
            "/usr", "/etc", "/var", "/bin", "/sbin", "/lib", "/boot", "/proc", "/sys", "/dev",
        ];
        let own_lines = ["/lib32", "/lib64", "/libx32", "/run"];
        for system in seed.into_iter().chain(own_lines) {
            for path in [
                system.to_owned(),
                format!("{system}/"),
                format!("{system}/crucible/out"),
                format!("/tmp/..{system}/x"),
            ] {
                let error = refused(Path::new(&path));
                assert!(
                    matches!(error, ExportError::System { system: found, .. } if found == system),
                    "{path}: {error}"
                );
                assert!(error.to_string().contains(system), "{error}");
            }
        }
        assert!(matches!(
            refused(Path::new("/")),
            ExportError::System { system: "/", .. }
        ));
        assert!(matches!(
            refused(Path::new("/tmp/..")),
            ExportError::System { system: "/", .. }
        ));
    }

    #[test]
    fn system_directory_check_compares_path_parts() {
        for path in [
            "/usrlocal/x",
            "/etcetera",
            "/variable",
            "/development/x",
            "/library/x",
            "/running",
        ] {
            assert_eq!(
                system_directory(Path::new(path), Path::new(path)),
                None,
                "{path}"
            );
        }
    }

    #[test]
    fn var_home_is_not_a_system_directory() {
        let (named, real) = (Path::new("/home/me/out"), Path::new("/var/home/me/out"));
        assert_eq!(system_directory(named, real), None);
        assert_eq!(system_directory(real, real), Some("/var"));
        assert_eq!(
            system_directory(named, Path::new("/var/homer/me")),
            Some("/var")
        );
        assert_eq!(
            system_directory(Path::new("/etc/out"), Path::new("/home/me/out")),
            Some("/etc")
        );
    }

    #[test]
    fn link_to_system_directory_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        symlink("/etc", dir.path().join("link")).unwrap();
        symlink("link", dir.path().join("chain")).unwrap();
        for path in [
            "link",
            "link/out",
            "chain/out/deep",
            "missing/../chain/out",
            "./link/../etc/out",
        ] {
            let error = refused(&dir.path().join(path));
            assert!(
                matches!(error, ExportError::System { .. }),
                "{path}: {error}"
            );
        }
    }

    #[test]
    fn parent_segment_follows_real_path() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("real/deep")).unwrap();
        symlink("real/deep", root.join("link")).unwrap();
        let resolved = |path: &str| {
            OutputDir::resolve(&root.join(path))
                .unwrap()
                .path()
                .to_owned()
        };
        assert_eq!(resolved("link/../out"), root.join("real/out"));
        assert_eq!(resolved("missing/../out"), root.join("out"));
        assert_eq!(resolved("./a//b/."), root.join("a/b"));
    }

    #[test]
    fn a_relative_path_is_refused() {
        assert!(matches!(
            refused(Path::new("out")),
            ExportError::Relative { .. }
        ));
        assert!(matches!(
            refused(Path::new("")),
            ExportError::Relative { .. }
        ));
    }

    #[test]
    fn export_into_git_directory_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join(".git/hooks")).unwrap();
        symlink(".git/hooks", dir.path().join("innocent")).unwrap();
        for path in [
            ".git",
            ".git/hooks/out",
            "innocent",
            "innocent/x",
            "new/.GIT/x",
        ] {
            let error = refused(&dir.path().join(path));
            assert!(
                matches!(error, ExportError::InsideGit { .. }),
                "{path}: {error}"
            );
        }
        OutputDir::resolve(&dir.path().join(".github")).unwrap();
        OutputDir::resolve(&dir.path().join("a.git")).unwrap();
    }

    #[test]
    fn non_directories_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "x").unwrap();
        symlink("nowhere", dir.path().join("dangling")).unwrap();
        symlink("loop", dir.path().join("loop")).unwrap();
        for path in ["file", "file/out"] {
            assert!(
                matches!(
                    refused(&dir.path().join(path)),
                    ExportError::NotADirectory { .. }
                ),
                "{path}"
            );
        }
        for path in ["dangling", "dangling/out"] {
            assert!(
                matches!(refused(&dir.path().join(path)), ExportError::Link { .. }),
                "{path}"
            );
        }
        assert!(matches!(
            refused(&dir.path().join("loop")),
            ExportError::Fs(_)
        ));
        assert!(matches!(
            refused(&dir.path().join("n".repeat(300))),
            ExportError::Fs(_)
        ));
    }

    #[test]
    fn checking_creates_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let requested_path = dir.path().join("a/b/c");
        assert_eq!(
            OutputDir::resolve(&requested_path).unwrap().path(),
            dir.path().canonicalize().unwrap().join("a/b/c")
        );
        OutputDir::in_home(dir.path(), 7).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_default_directory_is_named_after_the_session() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        assert_eq!(
            OutputDir::in_home(&home, 42).unwrap().path(),
            home.join("exports/42")
        );
    }

    #[test]
    fn foreign_files_are_refused_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        OutputDir::resolve(dir.path()).unwrap();
        fs::write(dir.path().join("plan.json"), "mine").unwrap();
        let error = refused(dir.path());
        assert!(
            matches!(&error, ExportError::Occupied { entry, .. } if entry == "plan.json"),
            "{error}"
        );
        assert!(
            error.to_string().contains("choose another directory"),
            "{error}"
        );
        for manifest in [
            "",
            "{}",
            "[]",
            r#"{"schema":"viv-crawl-manifest.v1"}"#,
            r#"{"name":"my web app"}"#,
        ] {
            fs::write(dir.path().join(MANIFEST), manifest).unwrap();
            assert!(
                matches!(refused(dir.path()), ExportError::Occupied { .. }),
                "{manifest}"
            );
        }
        assert_eq!(
            fs::read_to_string(dir.path().join("plan.json")).unwrap(),
            "mine"
        );
    }
}
