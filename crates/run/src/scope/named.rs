//! The files and directories that a person names on a command line.

use crucible_model::{PathPrefix, RepoPath, is_hidden};
use crucible_repo::TrackedFile;

use super::{Expansion, MAX_MATCHES, Tree, expand, is_guarded};

/// The files and directories that a user names on a command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NamedPaths {
    /// Files, those that are not there yet among them.
    pub files: Vec<RepoPath>,
    /// The files among these that are not there yet.
    pub new: Vec<RepoPath>,
    /// Directories, in which everything may change that is not protected.
    pub directories: Vec<PathPrefix>,
}

/// Why a text names no place; the value is quoted by the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NamedPlaceError {
    /// It is not a path inside the repository.
    #[error("{0}")]
    NotAPath(String),
    /// It holds a character that nobody sees.
    #[error("the name holds an invisible character")]
    Hidden,
    /// It is a glob that nothing matches.
    #[error("no tracked file matches")]
    NoMatch,
    /// It is a glob that too much matches.
    #[error(
        "{0} files match, but at most {MAX_MATCHES} are allowed; name a directory, or narrow the pattern"
    )]
    TooMany(usize),
}

/// Reads what a user names: a path, a directory, or a glob.
///
/// # Errors
///
/// The first text that names no place, with the reason.
pub(crate) fn named_places<'t>(
    texts: &'t [String],
    tracked: &[TrackedFile],
) -> Result<NamedPaths, (&'t str, NamedPlaceError)> {
    let paths: Vec<RepoPath> = tracked
        .iter()
        .filter_map(|file| file.path.to_str()?.parse::<RepoPath>().ok())
        .collect();
    let unread = |_: &RepoPath| Vec::new();
    let tree = Tree::new(&paths, &unread);
    let mut places = NamedPaths::default();
    for text in texts {
        let refuse = |error| Err((text.as_str(), error));
        if text.chars().any(is_hidden) {
            return refuse(NamedPlaceError::Hidden);
        }
        let mut add = |path: RepoPath| {
            if !places.files.contains(&path) {
                places.files.push(path);
            }
        };
        match expand(text, &tree) {
            Expansion::NotAPath(why) => return refuse(NamedPlaceError::NotAPath(why)),
            Expansion::Files(files) if files.is_empty() => return refuse(NamedPlaceError::NoMatch),
            Expansion::Files(files) if files.len() > MAX_MATCHES => {
                return refuse(NamedPlaceError::TooMany(files.len()));
            }
            Expansion::Files(files) => {
                let is_glob = files.len() > 1
                    || files
                        .first()
                        .is_some_and(|file| !text.ends_with(file.as_str()));
                // What is guarded is named word for word, or not at all.
                files
                    .into_iter()
                    .filter(|path| !is_glob || !is_guarded(path))
                    .for_each(&mut add);
            }
            Expansion::Directory(path) => {
                let place = PathPrefix::from(path);
                if !places.directories.contains(&place) {
                    places.directories.push(place);
                }
            }
            Expansion::New(path) => {
                if !places.new.contains(&path) {
                    places.new.push(path.clone());
                }
                add(path);
            }
        }
    }
    Ok(places)
}
