//! The idea of a spec, joined from its sources in the given order.
//!
//! A single source is used byte for byte. Each of several sources gets a heading with its name, and so
//! does every file of a directory. A source that does not fit is not read completely, but listed with its
//! size; then there is no packet.
//!
//! Invariants: the idea is UTF-8 without a NUL byte, and not empty. No file is read if its given name or
//! its real location suggests secrets. Files of a directory that are not part of the idea are listed. The
//! packet, not this module, scans the idea for secrets.

use std::path::{Path, PathBuf};

use crucible_host::fs::{FsError, read_prefix, read_regular_up_to};
use crucible_host::walk::{self, WalkedEntry};
use crucible_model::{ByteLimit, Untrusted, one_line, says_nothing, short_line};
use crucible_repo::Gh;
use crucible_secrets::{Scanner, is_secret_file};

use super::issue::{self, IssueRef};
use crate::error::SpecError;
use crate::packet::{
    COUNTED, EntryKind, Omission, OmissionReason, PacketEntry, PacketRow, SECRET_FILE, lines_of,
    lines_of_bytes,
};
use crate::project::CRUCIBLE;

/// The most files of a directory that are examined.
const MAX_FILES: usize = 1_000;

/// The bytes that decide whether a file that is too large is text.
const GLANCE: ByteLimit = ByteLimit(4096);

/// The most characters of a name in a heading.
const MAX_NAME_LEN: usize = 200;

/// The idea of a spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idea {
    /// Its text, which is stored as `context/idea.md` after a packet was built with it. Empty if it
    /// exceeds the limit.
    pub text: Untrusted,
    /// If it is too large: the size of every source; only sources that were read have a digest. No packet
    /// can be built with it.
    pub unread: Vec<PacketRow>,
    /// Files of its directories that are not part of it.
    pub skipped_files: Vec<Omission>,
    /// Other notes for the user, one sentence each.
    pub notes: Vec<String>,
    /// The sources in the text, in order: the line where each begins, from 1, and its name.
    pub places: Vec<(u64, String)>,
}

/// Joins the sources of an idea.
#[derive(Debug)]
pub struct IdeaBuilder {
    limit: ByteLimit,
    bytes: u64,
    parts: Vec<Part>,
    unread: Vec<PacketRow>,
    passed_over: Vec<Omission>,
    notes: Vec<String>,
}

/// How to use a file of a directory.
enum Taken {
    Text(String),
    /// A text with this many bytes and lines, which does not fit.
    Unread(u64, u64),
    PassedOver(OmissionReason),
}

/// One text of an idea.
#[derive(Debug)]
struct Part {
    heading: Heading,
    name: String,
    text: String,
}

/// Whether a text gets a heading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heading {
    /// Always: it is one file of a directory.
    Always,
    /// Only if it is not the only text.
    AmongOthers,
}

impl IdeaBuilder {
    /// Creates a builder for an idea of at most this many bytes. A larger idea has the sizes of its
    /// sources but no text.
    #[must_use]
    pub fn new(limit: ByteLimit) -> Self {
        let (parts, unread, passed_over, notes) = Default::default();
        Self {
            limit,
            bytes: 0,
            parts,
            unread,
            passed_over,
            notes,
        }
    }

    /// How many bytes of a text are worth reading: more than the limit, so that the size of a larger text
    /// can be counted.
    #[must_use]
    pub fn of_use(limit: ByteLimit) -> ByteLimit {
        ByteLimit(limit.0.max(COUNTED.0))
    }

    /// Adds a given text, such as standard input. An empty text adds nothing. Of a text that is too large, the beginning is enough
    /// ([`IdeaBuilder::of_use`]).
    ///
    /// # Errors
    ///
    /// [`SpecError::Source`] for bytes that are not text.
    pub fn text(&mut self, name: &str, bytes: Vec<u8>) -> Result<(), SpecError> {
        let why = match std::str::from_utf8(&bytes) {
            Ok(_) => "it contains a NUL byte, so it is not text; give it as plain text in UTF-8",
            Err(_) => "it is not UTF-8 text; give it as plain text",
        };
        let no_text = || refused(name, why);
        let size = bytes.len() as u64;
        if size > self.limit.0 && is_text_so_far(&bytes) {
            self.leave_unread(name, size, lines_of_bytes(&bytes));
            return Ok(());
        }
        self.add(
            Heading::AmongOthers,
            name,
            text_of(bytes).ok_or_else(no_text)?,
        );
        Ok(())
    }

    /// Adds a file or a directory that the user named, relative to `directory`. Errors name it as the user did.
    ///
    /// # Errors
    ///
    /// As [`IdeaBuilder::path`].
    pub fn source(&mut self, source: &Path, directory: &Path) -> Result<(), SpecError> {
        let name = display_path(source, directory);
        let path: PathBuf = directory.join(source).components().collect();
        self.path(&name, &path)
            .map_err(|error| as_given(error, &name, source))
    }

    /// Adds a file, or the files of a directory in name order with a heading each, except those that git ignores. `name` is the name in
    /// the idea and in messages.
    ///
    /// # Errors
    ///
    /// [`SpecError::Source`] if it does not exist, is not a regular file or not text, or is a directory without a text;
    /// [`SpecError::SecretInPacket`] for a file whose given or real name suggests secrets.
    pub fn path(&mut self, name: &str, path: &Path) -> Result<(), SpecError> {
        let there = |error: std::io::Error| {
            refused(
                name,
                &format!("{error}; name an existing file or directory"),
            )
        };
        let place = path.canonicalize().map_err(there)?;
        if let Some(owner) = whose_own(path).or_else(|| whose_own(&place)) {
            let why = format!(
                "{owner} keeps its own files there, which cannot be part of an idea; name another file or directory"
            );
            return Err(refused(name, &why));
        }
        let meta = place.metadata().map_err(there)?;
        if meta.is_dir() {
            return self.directory(name, &place);
        }
        if is_secret_place(path) || is_secret_place(&place) {
            let entry = redacted(&short_line(name, MAX_NAME_LEN));
            return Err(SpecError::SecretInPacket {
                entry,
                rule: SECRET_FILE.to_owned(),
                line: 0,
            });
        }
        match read_regular_up_to(&place, ByteLimit(self.remaining_bytes())) {
            Ok(bytes) => self.text(name, bytes),
            Err(FsError::TooLarge { limit, .. }) => {
                let prefix = read_prefix(&place, COUNTED)?;
                let bytes = meta.len().max(limit.saturating_add(1));
                self.leave_unread(name, bytes, lines_of_bytes(&prefix.bytes));
                Ok(())
            }
            Err(FsError::Io { source, .. }) => Err(refused(
                name,
                &format!("{source}; name a regular file that you may read, or pipe the text in"),
            )),
        }
    }

    /// Adds a GitHub issue: its title and its text, without comments, whose number is noted.
    ///
    /// # Errors
    ///
    /// [`SpecError::GitHub`] if it cannot be read; [`SpecError::Source`] if it is on another host than `gh` uses, or not an issue.
    pub async fn issue(&mut self, gh: &Gh, issue: &IssueRef) -> Result<(), SpecError> {
        let issue_text = issue::read(gh, issue).await?;
        self.notes.extend(issue_text.notes);
        self.text(&issue.to_string(), issue_text.text.into_bytes())
    }

    /// Returns the idea.
    ///
    /// # Errors
    ///
    /// [`SpecError::EmptyIdea`] if no source has any content.
    pub fn finish(self) -> Result<Idea, SpecError> {
        let Self {
            limit,
            parts,
            unread,
            passed_over,
            notes,
            ..
        } = self;
        let (joined, places) = match parts.as_slice() {
            [] if unread.is_empty() => return Err(SpecError::EmptyIdea),
            [
                Part {
                    heading: Heading::AmongOthers,
                    text,
                    name,
                },
            ] => (text.clone(), vec![(1, name.clone())]),
            several => join(several),
        };
        // The headings count, too.
        if unread.is_empty() && joined.len() as u64 <= limit.0 {
            return Ok(Idea {
                text: Untrusted::new(joined),
                unread,
                skipped_files: passed_over,
                notes,
                places,
            });
        }
        let row = |name: &str, text: &str| {
            let (kind, name, content) = (EntryKind::Idea, name.to_owned(), Untrusted::new(text));
            PacketRow::from_entry(&PacketEntry {
                kind,
                name,
                content,
            })
        };
        let rows = if unread.is_empty() {
            vec![PacketRow {
                sha256: None,
                ..row("idea", &joined)
            }]
        } else {
            parts
                .iter()
                .map(|part| row(&part.name, &part.text))
                .chain(unread)
                .collect()
        };
        Ok(Idea {
            text: Untrusted::new(""),
            unread: rows,
            skipped_files: passed_over,
            notes,
            places: Vec::new(),
        })
    }

    fn directory(&mut self, name: &str, directory: &Path) -> Result<(), SpecError> {
        let before = self.parts.len() + self.unread.len();
        let own = directory.join(CRUCIBLE);
        if own.symlink_metadata().is_ok() {
            let content = redacted(&short_line(
                &format!("{}/{CRUCIBLE}", name.trim_end_matches('/')),
                MAX_NAME_LEN,
            ));
            self.notes.push(format!(
                "{content} is left out: Crucible keeps its own files there"
            ));
        }
        let is_own = |entry: &Result<WalkedEntry, String>| match entry {
            Ok(WalkedEntry::File(path) | WalkedEntry::Other(path)) => path
                .strip_prefix(directory)
                .is_ok_and(|below| whose_own(below).is_some()),
            Err(_) => false,
        };
        for (count, entry) in walk::entries(directory)
            .filter(|entry| !is_own(entry))
            .enumerate()
        {
            if count >= MAX_FILES {
                return Err(refused(
                    name,
                    &format!(
                        "it holds more than {MAX_FILES} files; name the ones that describe the idea"
                    ),
                ));
            }
            let relative_message = |relative_message: String| {
                relative_message.replace(&directory.display().to_string(), name)
            };
            let (path, file) =
                match entry.map_err(|error| refused(name, &relative_message(error)))? {
                    WalkedEntry::File(path) => (path.clone(), Some(path)),
                    WalkedEntry::Other(path) => (path, None),
                };
            let below = path
                .strip_prefix(directory)
                .unwrap_or(&path)
                .to_string_lossy()
                .into_owned();
            let label = format!("{}/{below}", name.trim_end_matches('/'));
            let taken = match file {
                Some(file) => self.file(file)?,
                None => Taken::PassedOver(OmissionReason::NotAFile),
            };
            match taken {
                Taken::Text(text) => self.add(Heading::Always, &label, text),
                Taken::Unread(bytes, lines) => self.leave_unread(&label, bytes, lines),
                // The name reaches a receipt, and nothing else redacts it before.
                Taken::PassedOver(why) => self.passed_over.push(Omission {
                    name: redacted(&label),
                    why,
                }),
            }
        }
        if self.parts.len() + self.unread.len() == before {
            return Err(refused(
                name,
                "it contains no text; name a directory that does",
            ));
        }
        Ok(())
    }

    /// Decides how to use a file of a directory. Its path contains no link, unless it is replaced at this
    /// moment.
    fn file(&self, file: PathBuf) -> Result<Taken, SpecError> {
        let passed_over = |why| Ok(Taken::PassedOver(why));
        let unreadable =
            |source: std::io::Error| OmissionReason::Unreadable(redacted(&source.to_string()));
        let place = match file.canonicalize() {
            Ok(place) => place,
            Err(source) => return passed_over(unreadable(source)),
        };
        if is_secret_place(&file) || is_secret_place(&place) {
            return passed_over(OmissionReason::SecretName);
        }
        if place != file {
            return passed_over(OmissionReason::NotAFile);
        }
        let bytes = match read_regular_up_to(&place, ByteLimit(self.remaining_bytes())) {
            Ok(bytes) => bytes,
            Err(FsError::TooLarge { .. }) => {
                // A picture is skipped whatever its size; a text would be missed.
                let glance = read_prefix(&place, GLANCE)?;
                return if is_text_so_far(&glance.bytes) {
                    let prefix = read_prefix(&place, COUNTED)?;
                    Ok(Taken::Unread(prefix.total, lines_of_bytes(&prefix.bytes)))
                } else {
                    passed_over(OmissionReason::NotText)
                };
            }
            Err(FsError::Io { source, .. }) => return passed_over(unreadable(source)),
        };
        Ok(match text_of(bytes) {
            None => Taken::PassedOver(OmissionReason::NotText),
            Some(text) if says_nothing(&text) => Taken::PassedOver(OmissionReason::Empty),
            Some(text) => Taken::Text(text),
        })
    }

    fn add(&mut self, heading: Heading, name: &str, text: String) {
        if text.len() as u64 > self.remaining_bytes() {
            self.leave_unread(name, text.len() as u64, lines_of(&text));
        } else if !says_nothing(&text) {
            self.bytes = self.bytes.saturating_add(text.len() as u64);
            self.parts.push(Part {
                heading,
                name: short_line(name, MAX_NAME_LEN),
                text,
            });
        }
    }

    /// Records a source that does not fit.
    fn leave_unread(&mut self, name: &str, bytes: u64, lines: u64) {
        let name = short_line(name, MAX_NAME_LEN);
        self.unread.push(PacketRow {
            kind: EntryKind::Idea,
            name,
            bytes,
            lines,
            sha256: None,
        });
    }

    fn remaining_bytes(&self) -> u64 {
        self.limit.0.saturating_sub(self.bytes)
    }
}

impl Idea {
    /// The source of this line, and the line number within that source; 0 for the line with the source's
    /// heading.
    #[must_use]
    pub fn place_of(&self, line: u64) -> Option<(String, u64)> {
        // A heading and an empty line precede a text.
        if let Some((_, name)) = self.places.iter().find(|(begins, _)| *begins == line + 2) {
            return Some((redacted(name), 0));
        }
        let (begins, name) = self
            .places
            .iter()
            .rev()
            .find(|(begins, _)| *begins <= line)?;
        Some((redacted(name), line - begins + 1))
    }
}

/// Joins the texts, each after its heading, separated by empty lines; and returns where each begins.
fn join(parts: &[Part]) -> (String, Vec<(u64, String)>) {
    let mut joined = String::new();
    let mut places = Vec::new();
    for Part { name, text, .. } in parts {
        if !joined.is_empty() {
            joined.push_str(if joined.ends_with('\n') { "\n" } else { "\n\n" });
        }
        joined.push_str(&format!("# From {name}\n\n"));
        places.push((lines_of(&joined) + 1, name.clone()));
        joined.push_str(text);
    }
    if !joined.ends_with('\n') {
        joined.push('\n');
    }
    (joined, places)
}

/// The bytes as text, if they are text.
fn text_of(bytes: Vec<u8>) -> Option<String> {
    String::from_utf8(bytes)
        .ok()
        .filter(|text| !text.contains('\0'))
}

/// Whether the beginning of a file could be text; the last character may be cut.
fn is_text_so_far(bytes: &[u8]) -> bool {
    !bytes.contains(&0)
        && std::str::from_utf8(bytes).map_or_else(|error| error.error_len().is_none(), |_| true)
}

/// Whether a path suggests secrets, by its name or its directories.
fn is_secret_place(path: &Path) -> bool {
    is_secret_file(&path.to_string_lossy())
}

/// The tool that owns a directory on the path, ignoring case.
fn whose_own(path: &Path) -> Option<&'static str> {
    let named = |own: &str| {
        path.components().any(|part| {
            part.as_os_str()
                .to_str()
                .is_some_and(|part| part.eq_ignore_ascii_case(own))
        })
    };
    match (named(".git"), named(CRUCIBLE)) {
        (true, _) => Some("git"),
        (false, true) => Some("Crucible"),
        (false, false) => None,
    }
}

fn redacted(text: &str) -> String {
    Scanner::builtin().redact(text).text.into_owned()
}

fn refused(name: &str, why: &str) -> SpecError {
    SpecError::Source {
        source_name: redacted(&short_line(name, MAX_NAME_LEN)),
        why: redacted(why),
    }
}

/// The name of a source in the idea. An absolute path would reveal the machine, and would differ between
/// machines.
fn display_path(source: &Path, directory: &Path) -> String {
    let below = source.strip_prefix(directory).unwrap_or(source);
    let name = if below.is_absolute() {
        below.file_name().map_or(below, Path::new)
    } else {
        below
    };
    if name.as_os_str().is_empty() {
        ".".to_owned()
    } else {
        name.display().to_string()
    }
}

/// Names a source in an error by the path that the user typed, not by its name in the idea.
fn as_given(error: SpecError, name: &str, source: &Path) -> SpecError {
    match error {
        SpecError::Source { source_name, why } if source_name == name => SpecError::Source {
            source_name: one_line(&source.display().to_string()),
            why,
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_absolute_path_reaches_the_idea() {
        let current_dir = Path::new("/home/me/shop");
        assert_eq!(
            display_path(Path::new("notes/a.md"), current_dir),
            "notes/a.md"
        );
        assert_eq!(
            display_path(Path::new("/home/me/shop/notes"), current_dir),
            "notes"
        );
        assert_eq!(
            display_path(Path::new("/tmp/x/idea.md"), current_dir),
            "idea.md"
        );
        assert_eq!(display_path(current_dir, current_dir), ".");
    }
}
