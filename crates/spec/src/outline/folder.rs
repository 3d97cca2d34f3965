//! Finds a spec by its name or folder, and reads its files.

use std::path::{Component, Path, PathBuf};

use crucible_evidence::SpecFormat;
use crucible_host::fs::{FsError, read_beneath};
use crucible_model::{ByteLimit, Code, Finding, Verdict, is_hidden};

use super::check::outline;
use super::{FolderFormat, FolderTexts, SpecOutline, formats};
use crate::error::SpecError;
use crate::project::SpecProject;

const LINK: Code = Code::new("outline-link");
const TOO_LARGE: Code = Code::new("outline-too-large");
const NOT_TEXT: Code = Code::new("outline-not-text");
const HIDDEN: Code = Code::new("outline-hidden");
const MISSING: Code = Code::new("outline-missing");
const TOO_MANY: Code = Code::new("outline-too-many");

/// The largest file.
const MAX_FILE: ByteLimit = ByteLimit(1 << 20);
/// The most directories with a file each.
const MAX_NESTED: usize = 200;

/// A spec that was found.
#[derive(Clone, Copy)]
struct FoundFormat {
    format: &'static dyn FolderFormat,
    /// The directory of the format.
    place: &'static str,
}

/// The folder of a spec.
pub struct SpecFolder {
    place: FoundFormat,
    /// The project.
    root: PathBuf,
    /// The path of the folder in the project.
    path: String,
    /// The name of the folder.
    name: String,
}

/// Finds the spec that a command names: by its id or the name of its folder, in the places of every format, or by the path
/// of its folder, relative to `here`.
///
/// # Errors
///
/// Fails if there is no such spec, if several have the name, or if the folder is outside of the project.
pub fn find_spec_folder(
    project: &SpecProject,
    current_dir: &Path,
    named: &str,
) -> Result<SpecFolder, SpecError> {
    let root = project.root();
    let fail = |why: String| SpecError::Folder {
        named: named.chars().take(200).collect(),
        why,
    };
    if named.chars().any(is_hidden) || named.is_empty() {
        return Err(fail("it is not a name".to_owned()));
    }
    if !named.contains('/') {
        let mut found: Vec<SpecFolder> = Vec::new();
        for format in formats() {
            for place in format.places() {
                let folder = SpecFolder {
                    place: FoundFormat {
                        format: *format,
                        place,
                    },
                    root: root.to_owned(),
                    path: format!("{place}/{named}"),
                    name: named.to_owned(),
                };
                if is_plain(named) && folder.is_there() {
                    // Crucible's own spec comes first.
                    if folder.format() == SpecFormat::Crucible {
                        return Ok(folder);
                    }
                    found.push(folder);
                }
            }
        }
        if found.len() > 1 {
            let paths: Vec<&str> = found.iter().map(|folder| folder.path.as_str()).collect();
            return Err(fail(format!(
                "several specs have this name; name the folder: {}",
                paths.join(", ")
            )));
        }
        return found.pop().ok_or_else(|| fail(absence(root)));
    }
    let path = plain_path(root, current_dir, named)
        .ok_or_else(|| fail(format!("it is not a folder in {}", root.display())))?;
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", &path));
    for format in formats() {
        for place in format.places() {
            let is_here = parent == *place || parent.ends_with(&format!("/{place}"));
            // `.crucible/specs` and `openspec/specs` end like the place of Spec Kit.
            let is_others = formats()
                .iter()
                .flat_map(|other| other.places())
                .any(|other| {
                    other.len() > place.len()
                        && (parent == *other || parent.ends_with(&format!("/{other}")))
                });
            if is_here && !is_others {
                let folder = SpecFolder {
                    place: FoundFormat {
                        format: *format,
                        place,
                    },
                    root: root.to_owned(),
                    name: name.to_owned(),
                    path: path.clone(),
                };
                if folder.is_there() {
                    return Ok(folder);
                }
                return Err(fail("there is no such folder".to_owned()));
            }
        }
    }
    Err(fail(format!(
        "no format has specs there; the places are {}",
        places().join(", ")
    )))
}

impl SpecFolder {
    /// Returns the format.
    #[must_use]
    pub fn format(&self) -> SpecFormat {
        self.place.format.format()
    }

    /// Returns the name by which runs and documents know the spec: its id, or the path of its folder in the project.
    #[must_use]
    pub fn spec_name(&self) -> &str {
        match self.format() {
            SpecFormat::Crucible => &self.name,
            SpecFormat::SpecKit | SpecFormat::OpenSpec | SpecFormat::Kiro => &self.path,
        }
    }

    fn is_there(&self) -> bool {
        let meta = self.root.join(&self.path).symlink_metadata();
        meta.is_ok_and(|meta| meta.is_dir() || meta.is_symlink())
    }

    /// Reads the spec. What is wrong with its files is in the verdict of the outline.
    #[must_use]
    pub fn read(&self) -> SpecOutline {
        let mut verdict = Verdict::default();
        let mut texts = FolderTexts::new();
        let FoundFormat { format, place } = self.place;
        let mut paths: Vec<String> = Vec::new();
        for (at, file) in format.files(place).iter().enumerate() {
            if at == 0 || self.has(file) {
                paths.push((*file).to_owned());
            }
        }
        if let Some((directory, file)) = format.nested(place) {
            paths.extend(self.nested(directory, file, &mut verdict));
        }
        for path in paths {
            match self.text(&path) {
                Ok(text) => {
                    texts.insert(path, text);
                }
                Err(finding) => verdict.push(finding),
            }
        }
        let parts = format.read(&texts);
        outline(self.spec_name().to_owned(), format.format(), parts, verdict)
    }

    fn has(&self, file: &str) -> bool {
        self.root
            .join(&self.path)
            .join(file)
            .symlink_metadata()
            .is_ok()
    }

    /// The paths of a file in each directory of a directory, sorted.
    fn nested(&self, directory: &str, file: &str, verdict: &mut Verdict) -> Vec<String> {
        let place = self.root.join(&self.path).join(directory);
        let subject = format!("{}/{directory}", self.path);
        match place.symlink_metadata() {
            Ok(meta) if meta.is_symlink() => {
                verdict.push(link(&subject));
                return Vec::new();
            }
            Ok(meta) if meta.is_dir() => {}
            _ => return Vec::new(),
        }
        let names = std::fs::read_dir(&place).into_iter().flatten().flatten();
        let mut names: Vec<String> = names
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| is_plain(name))
            .take(MAX_NESTED + 1)
            .collect();
        names.sort();
        if names.len() > MAX_NESTED {
            let hint = format!("it has more than {MAX_NESTED} entries");
            verdict.push(Finding::error(TOO_MANY, subject, hint));
            names.truncate(MAX_NESTED);
        }
        names
            .into_iter()
            .map(|name| format!("{directory}/{name}/{file}"))
            .filter(|path| self.has(path))
            .collect()
    }

    fn text(&self, path: &str) -> Result<String, Finding> {
        let subject = format!("{}/{path}", self.path);
        let bytes = read_beneath(&self.root, &subject, MAX_FILE).map_err(|error| match &error {
            FsError::TooLarge { limit, .. } => {
                let hint = format!("it has more than {limit} bytes and was not read");
                Finding::error(TOO_LARGE, subject.as_str(), hint)
            }
            _ if error.is_link() => link(&subject),
            _ if error.is_not_found() => {
                Finding::error(MISSING, subject.as_str(), "the spec needs this file")
            }
            _ => Finding::error(NOT_TEXT, subject.as_str(), error.to_string()),
        })?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Finding::error(NOT_TEXT, subject.as_str(), "it is not UTF-8"))?;
        let text = text.replace("\r\n", "\n");
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned();
        for (line, content) in text.lines().enumerate() {
            if let Some(c) = content.chars().find(|c| is_hidden(*c) && *c != '\t') {
                let hint = format!("it contains U+{:04X}, which no reader sees", u32::from(c));
                let subject = format!("{subject}:{}", line + 1);
                return Err(Finding::error(HIDDEN, subject, hint));
            }
        }
        Ok(text)
    }
}

fn link(subject: &str) -> Finding {
    let hint = "it is a symbolic link, or behind one, and was not followed";
    Finding::error(LINK, subject, hint)
}

fn is_plain(name: &str) -> bool {
    !name.starts_with('.') && !name.contains(['/', '\\', '\0'])
}

/// The path of a folder in the project, if it is one.
fn plain_path(root: &Path, current_dir: &Path, named: &str) -> Option<String> {
    let mut path = PathBuf::new();
    for part in current_dir.join(named).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                path.pop();
            }
            part => path.push(part),
        }
    }
    let inside = path.strip_prefix(root).ok()?.to_str()?;
    let inside = inside.trim_end_matches('/');
    (!inside.is_empty()).then(|| inside.to_owned())
}

fn places() -> Vec<&'static str> {
    let places = formats().iter().flat_map(|format| format.places());
    places.copied().collect()
}

fn absence(root: &Path) -> String {
    format!(
        "there is no spec of this name in {}; looked in {}",
        root.display(),
        places().join(", ")
    )
}
