//! Reads the repository's configuration once: the programs that it names, and its work tree.
//!
//! git prints the listing, so it has everything that git would follow: conditionally included files, and the
//! configuration of one work tree. Every driver and hook in it is then overridden by name in all later calls.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::command::{Call, Runner, as_path};
use super::locate::GitLocation;
use super::store::HashKind;
use crate::error::RepoError;

/// Time limit for reading the configuration. It may include any file, even a pipe without a writer.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// Far more drivers than any repository has, and few enough to fit an environment.
const MAX_DRIVERS: usize = 500;

/// Sections whose entries can start a program, and the values that disable them. An empty filter passes its
/// input through; an empty event list calls no hook.
const FAMILIES: [(&str, &[(&str, &str)]); 4] = [
    (
        "filter",
        &[
            ("clean", ""),
            ("smudge", ""),
            ("process", ""),
            ("required", "false"),
        ],
    ),
    (
        "diff",
        &[
            ("command", ""),
            ("textconv", ""),
            ("cachetextconv", "false"),
        ],
    ),
    ("merge", &[("driver", "false")]),
    ("hook", &[("enabled", "false"), ("event", "")]),
];

/// What `core.autocrlf` and `core.eol` ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum LineEnds {
    /// Nothing: as the attributes say.
    #[default]
    Unset,
    /// Something, whatever it is: git decides.
    Set,
}

/// Whether git excludes files from the work tree by patterns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum SparseWorkTree {
    /// It has all files.
    #[default]
    No,
    /// Some are left out; git believes the flags of its index only for files that are not there.
    Yes,
}

/// In which form the repository keeps objects and references.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Format {
    /// Loose objects, packs and files of references, with names of this hash.
    Files(HashKind),
    /// Some other form, which git reads or refuses.
    #[default]
    Other,
}

/// The settings of a repository that concern us.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ConfigListing {
    /// The last `core.worktree`.
    pub(crate) work_tree: Option<PathBuf>,
    /// The last `core.bare`.
    pub(crate) is_bare: bool,
    /// Section and subsection of every driver and hook.
    drivers: BTreeSet<(&'static str, Vec<u8>)>,
    /// Whether a setting requires other line endings in the work tree than in the repository.
    pub(crate) line_ends: LineEnds,
    /// The last `core.sparseCheckout`.
    pub(crate) sparse: SparseWorkTree,
    /// The last `remote.origin.url`.
    pub(crate) origin: Option<Vec<u8>>,
    /// The form of objects and references.
    pub(crate) format: Format,
    /// Whether git applies our own settings.
    ours_count: bool,
}

/// Reads the configuration of the repository at `place`, for at most `timeout`.
pub(crate) async fn list(
    runner: &Runner,
    place: &GitLocation,
    timeout: Duration,
) -> Result<ConfigListing, RepoError> {
    let call = Call::new(["config", "--list", "--show-scope", "-z"]).with_timeout(timeout);
    let output = runner.run(&place.top, Some(place), &[], call).await?;
    let listing = parse(&output.stdout);
    match listing {
        Some(listing) if output.code == 0 && listing.ours_count => Ok(listing),
        // Before 2.31 git does not read settings from its environment, and before 2.26 it shows no scope.
        _ if output.code == 0 || output.code == 129 => Err(RepoError::GitTooOld {
            found: runner.version(&place.top).await?,
        }),
        _ => Err(output.into_error()),
    }
}

impl ConfigListing {
    /// The settings that switch off every program named here.
    pub(crate) fn disabling_settings(
        &self,
        top: &Path,
    ) -> Result<Vec<(OsString, OsString)>, RepoError> {
        if self.drivers.len() > MAX_DRIVERS {
            return Err(RepoError::TooManyDrivers {
                path: top.to_owned(),
                count: self.drivers.len(),
            });
        }
        let mut settings = Vec::new();
        for (section, name) in &self.drivers {
            let entries = FAMILIES
                .iter()
                .find(|(family, _)| family == section)
                .map_or(&[][..], |(_, e)| e);
            for (entry, value) in entries {
                let key = [section.as_bytes(), b".", name, b".", entry.as_bytes()].concat();
                settings.push((OsString::from_vec(key), OsString::from(value)));
            }
        }
        Ok(settings)
    }
}

/// `scope NUL key [LF value] NUL`, again and again.
fn parse(bytes: &[u8]) -> Option<ConfigListing> {
    let mut listing = ConfigListing::default();
    let mut claims = Claims::default();
    let mut records = bytes.split(|byte| *byte == 0);
    while let Some(scope) = records.next() {
        let Some(entry) = records.next() else {
            listing.format = claims.format();
            return scope.is_empty().then_some(listing);
        };
        let (key, value) = match entry.iter().position(|byte| *byte == b'\n') {
            Some(at) => (&entry[..at], Some(&entry[at + 1..])),
            None => (entry, None),
        };
        if scope == b"command" {
            listing.ours_count |= key == b"core.hookspath" && value == Some(b"/dev/null");
            continue;
        }
        match key {
            b"core.autocrlf" | b"core.eol" => listing.line_ends = LineEnds::Set,
            b"core.worktree" => listing.work_tree = value.map(as_path),
            b"core.bare" => listing.is_bare = is_true(value),
            b"core.sparsecheckout" => {
                listing.sparse = if is_true(value) {
                    SparseWorkTree::Yes
                } else {
                    SparseWorkTree::No
                };
            }
            b"core.repositoryformatversion" => claims.version = value,
            b"extensions.objectformat" => claims.hash = Some(value),
            _ if key.starts_with(b"extensions.") => {
                claims.are_known &= is_known_extension(&key[11..], value)
            }
            b"remote.origin.url" => listing.origin = value.map(<[u8]>::to_vec),
            _ => listing.drivers.extend(driver(key)),
        }
    }
    listing.format = claims.format();
    Some(listing)
}

/// What settings say of the form of a repository.
struct Claims<'a> {
    version: Option<&'a [u8]>,
    hash: Option<Option<&'a [u8]>>,
    are_known: bool,
}

impl Default for Claims<'_> {
    fn default() -> Self {
        Self {
            version: None,
            hash: None,
            are_known: true,
        }
    }
}

impl Claims<'_> {
    /// Returns the format if it can be read here: git's versions 0 and 1 with only known extensions.
    fn format(&self) -> Format {
        let hash = match (self.version, self.hash) {
            (None | Some(b"0" | b"1"), None) | (Some(b"1"), Some(Some(b"sha1"))) => HashKind::Sha1,
            (Some(b"1"), Some(Some(b"sha256"))) => HashKind::Sha256,
            _ => return Format::Other,
        };
        if self.are_known {
            Format::Files(hash)
        } else {
            Format::Other
        }
    }
}

/// Returns whether an extension does not affect reading objects and references. Missing objects of a partial
/// clone are requested from git.
fn is_known_extension(name: &[u8], value: Option<&[u8]>) -> bool {
    match name {
        b"noop" | b"partialclone" | b"preciousobjects" | b"worktreeconfig"
        | b"relativeworktrees" => true,
        b"refstorage" => value == Some(b"files"),
        _ => false,
    }
}

/// A setting without a value is a true one.
pub(super) fn is_true(value: Option<&[u8]>) -> bool {
    let text = value.map(<[u8]>::to_ascii_lowercase);
    !matches!(
        text.as_deref(),
        Some(b"false" | b"no" | b"off" | b"0" | b"")
    )
}

fn driver(key: &[u8]) -> Option<(&'static str, Vec<u8>)> {
    let first = key.iter().position(|byte| *byte == b'.')?;
    let last = key.iter().rposition(|byte| *byte == b'.')?;
    let (family, _) = FAMILIES
        .iter()
        .find(|(family, _)| family.as_bytes() == &key[..first])?;
    (first < last).then(|| (*family, key[first + 1..last].to_vec()))
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::disallowed_methods,
        reason = "a test needs the way to the git of this machine"
    )]

    use super::*;

    #[test]
    fn drivers_with_any_name_are_found() {
        let text = b"command\0core.hookspath\n/dev/null\0local\0filter.a.b=c d.clean\nrun me\0local\0filter.x.required\0\
                     worktree\0diff.\xff.textconv\nrun\0local\0diff.renames\ntrue\0local\0hook.h.command\nrun\0local\0core.bare\0";
        let listing = parse(text).unwrap();
        assert!(listing.ours_count && listing.is_bare);
        let names: Vec<_> = listing
            .drivers
            .iter()
            .map(|(s, n)| (*s, n.as_slice()))
            .collect();
        let expected: [(&str, &[u8]); 4] = [
            ("diff", b"\xff"),
            ("filter", b"a.b=c d"),
            ("filter", b"x"),
            ("hook", b"h"),
        ];
        assert_eq!(names, expected);
        let neutral = listing.disabling_settings(Path::new("/r")).unwrap();
        assert!(neutral.contains(&("filter.a.b=c d.smudge".into(), "".into())));
        assert!(neutral.contains(&("hook.h.enabled".into(), "false".into())));
    }

    #[test]
    fn own_settings_are_not_repository_settings() {
        let listing = parse(b"command\0core.worktree\n/x\0local\0core.bare\nfalse\0").unwrap();
        assert_eq!(listing.work_tree, None);
        assert!(!listing.is_bare && !listing.ours_count);
        assert_eq!(parse(b"local"), None);
    }

    #[tokio::test]
    async fn included_pipe_times_out() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        use std::os::unix::ffi::OsStrExt;
        let dir = tempfile::tempdir().unwrap();
        for name in ["objects", "refs"] {
            crucible_host::fs::create_dir_all(&dir.path().join(".git").join(name)).unwrap();
        }
        let write = |name: &str, text: &[u8]| {
            crucible_host::fs::write_atomic(&dir.path().join(".git").join(name), text).unwrap();
        };
        write("HEAD", b"ref: refs/heads/main\n");
        let pipe = dir.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        write(
            "config",
            &[b"[include]\n\tpath = ", pipe.as_os_str().as_bytes(), b"\n"].concat(),
        );
        let path = std::env::var_os("PATH").unwrap();
        let env = crucible_host::env::Environment::from_pairs([("PATH", path)], "/");
        let sandbox = std::sync::Arc::new(crucible_sandbox::Sandbox::new(None, &env));
        let runner = Runner::find(sandbox, &env).unwrap();
        let place = super::super::locate::locate(dir.path()).unwrap();
        let timeout = Duration::from_millis(300);
        let stalled = list(&runner, &place, timeout).await;
        assert!(
            matches!(stalled, Err(RepoError::TimedOut { after, .. }) if after == timeout),
            "{stalled:?}"
        );
        assert!(TIMEOUT <= Duration::from_secs(20));
    }

    #[test]
    fn format_with_unknown_extension_is_left_to_git() {
        for (text, format) in [
            ("", Format::Files(HashKind::Sha1)),
            (
                "local\0core.repositoryformatversion\n0\0",
                Format::Files(HashKind::Sha1),
            ),
            ("local\0core.repositoryformatversion\n2\0", Format::Other),
            (
                "local\0core.repositoryformatversion\n1\0local\0extensions.objectformat\nsha256\0",
                Format::Files(HashKind::Sha256),
            ),
            (
                "local\0core.repositoryformatversion\n1\0local\0extensions.objectformat\nsha512\0",
                Format::Other,
            ),
            ("local\0extensions.objectformat\nsha256\0", Format::Other),
            (
                "local\0extensions.worktreeconfig\ntrue\0",
                Format::Files(HashKind::Sha1),
            ),
            ("local\0extensions.refstorage\nreftable\0", Format::Other),
            (
                "local\0extensions.compatobjectformat\nsha256\0",
                Format::Other,
            ),
            ("local\0extensions.later\0", Format::Other),
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap().format, format, "{text:?}");
        }
    }

    #[test]
    fn more_drivers_than_an_environment_holds_are_refused() {
        let text: String = (0..501)
            .map(|n| format!("local\0filter.f{n}.clean\nx\0"))
            .collect();
        let listing = parse(text.as_bytes()).unwrap();
        assert!(matches!(
            listing.disabling_settings(Path::new("/r")),
            Err(RepoError::TooManyDrivers { count: 501, .. })
        ));
    }
}
