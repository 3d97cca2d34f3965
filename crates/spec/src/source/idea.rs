//! The idea: what a spec starts from, joined from its sources in the order in which they are given.
//!
//! One source is taken as it is, byte for byte. Several stand behind a heading each that names them, and so does every file of a
//! directory. A source that there is no room for is not read to its end, and named with its size: there is no packet then.
//!
//! What always holds: the idea is UTF-8 without a NUL byte, and says something; no file is read whose name says that it holds secrets, by
//! the name that was given or by the place where it leads; what is in a directory and no part of the idea is named. It has not been
//! looked through for secrets, which is the packet's part.

use std::path::{Path, PathBuf};

use crucible_host::fs::{FsError, read_prefix, read_regular_up_to};
use crucible_host::walk::{self, WalkedEntry};
use crucible_model::{ByteLimit, Untrusted, says_nothing, short_line};
use crucible_repo::Gh;
use crucible_secrets::{Scanner, is_secret_file};

use super::issue::{self, IssueRef};
use crate::error::SpecError;
use crate::packet::{
    COUNTED, EntryKind, PacketEntry, PacketRow, PassedOver, PassedOverReason, SECRET_FILE, lines_of,
    lines_of_bytes,
};
use crate::project::CRUCIBLE;

/// The most files of a directory that are looked at.
const MOST_FILES: usize = 1_000;

/// How many bytes decide whether a file that is too large is a text at all.
const GLANCE: ByteLimit = ByteLimit(4096);

/// How many characters of a name a heading shows.
const LONGEST_NAME: usize = 200;

/// What a spec starts from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idea {
    /// Its text: what is kept as `context/idea.md`, once a packet was made of it. Nothing where it is larger than there is room for.
    pub text: Untrusted,
    /// Where it is too large: the size of every source, and those alone that were read have a digest. No packet can be made of it.
    pub unread: Vec<PacketRow>,
    /// Files of its directories that are not in it.
    pub passed_over: Vec<PassedOver>,
    /// What else deserves a look, one sentence each.
    pub notes: Vec<String>,
    /// Where its sources stand in the text, in their order: the line on which each begins, from 1 on, and its name.
    pub places: Vec<(u64, String)>,
}

/// Joins the sources of an idea.
#[derive(Debug)]
pub struct IdeaBuilder {
    limit: ByteLimit,
    bytes: u64,
    parts: Vec<Part>,
    unread: Vec<PacketRow>,
    passed_over: Vec<PassedOver>,
    notes: Vec<String>,
}

/// What is to be taken of a directory's file.
enum Taken {
    Text(String),
    /// A text of so many bytes and lines, for which there is no room.
    Unread(u64, u64),
    PassedOver(PassedOverReason),
}

/// One text of an idea.
#[derive(Debug)]
struct Part {
    heading: Heading,
    name: String,
    text: String,
}

/// Whether a text stands behind a heading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heading {
    /// Always: it is one file of a directory.
    Always,
    /// Where it is not alone.
    AmongOthers,
}

impl IdeaBuilder {
    /// An idea of at most so many bytes. One with more is told with the sizes of its sources, and without a text.
    #[must_use]
    pub fn new(limit: ByteLimit) -> Self {
        let (parts, unread, passed_over, notes) = Default::default();
        Self { limit, bytes: 0, parts, unread, passed_over, notes }
    }

    /// How much of a text that is given is of use: more than the idea may have, so that what is too large has its bytes and lines counted.
    #[must_use]
    pub fn of_use(limit: ByteLimit) -> ByteLimit {
        ByteLimit(limit.0.max(COUNTED.0))
    }

    /// Adds a text that was given, such as standard input. One that says nothing adds nothing. Of one that is too large the beginning is
    /// enough ([`IdeaBuilder::of_use`]).
    ///
    /// # Errors
    ///
    /// [`SpecError::Source`] for what is no text.
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
        self.add(Heading::AmongOthers, name, text_of(bytes).ok_or_else(no_text)?);
        Ok(())
    }

    /// Adds a file, or the files of a directory in the order of their names: without what git ignores, with a heading each. `name` is
    /// what it is called in the idea and in messages.
    ///
    /// # Errors
    ///
    /// [`SpecError::Source`] for what is not there, no regular file, no text, or a directory without a text; [`SpecError::SecretInPacket`] for
    /// a file whose name, or the one it leads to, says that it holds secrets.
    pub fn path(&mut self, name: &str, path: &Path) -> Result<(), SpecError> {
        let there = |error: std::io::Error| {
            refused(name, &format!("{error}; name an existing file or directory"))
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
            let entry = redacted(&short_line(name, LONGEST_NAME));
            return Err(SpecError::SecretInPacket { entry, rule: SECRET_FILE.to_owned(), line: 0 });
        }
        match read_regular_up_to(&place, ByteLimit(self.room())) {
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

    /// Adds an issue of GitHub: its title and its text, without comments, of which it is noted how many there are.
    ///
    /// # Errors
    ///
    /// [`SpecError::GitHub`] where GitHub does not show it; [`SpecError::Source`] where it is on another host than `gh` asks, or no issue.
    pub async fn issue(&mut self, gh: &Gh, issue: &IssueRef) -> Result<(), SpecError> {
        let told = issue::read(gh, issue).await?;
        self.notes.extend(told.notes);
        self.text(&issue.to_string(), told.text.into_bytes())
    }

    /// The idea.
    ///
    /// # Errors
    ///
    /// [`SpecError::EmptyIdea`] where no source says anything.
    pub fn finish(self) -> Result<Idea, SpecError> {
        let Self { limit, parts, unread, passed_over, notes, .. } = self;
        let (joined, places) = match parts.as_slice() {
            [] if unread.is_empty() => return Err(SpecError::EmptyIdea),
            [Part { heading: Heading::AmongOthers, text, name }] => (text.clone(), vec![(1, name.clone())]),
            several => join(several),
        };
        // The headings count, too.
        if unread.is_empty() && joined.len() as u64 <= limit.0 {
            return Ok(Idea { text: Untrusted::new(joined), unread, passed_over, notes, places });
        }
        let row = |name: &str, text: &str| {
            let (kind, name, content) = (EntryKind::Idea, name.to_owned(), Untrusted::new(text));
            PacketRow::of(&PacketEntry { kind, name, content })
        };
        let rows = if unread.is_empty() {
            vec![PacketRow { sha256: None, ..row("idea", &joined) }]
        } else {
            parts.iter().map(|part| row(&part.name, &part.text)).chain(unread).collect()
        };
        Ok(Idea { text: Untrusted::new(""), unread: rows, passed_over, notes, places: Vec::new() })
    }

    fn directory(&mut self, name: &str, directory: &Path) -> Result<(), SpecError> {
        let before = self.parts.len() + self.unread.len();
        let own = directory.join(CRUCIBLE);
        if own.symlink_metadata().is_ok() {
            let shown =
                redacted(&short_line(&format!("{}/{CRUCIBLE}", name.trim_end_matches('/')), LONGEST_NAME));
            self.notes.push(format!("{shown} is left out: Crucible keeps its own files there"));
        }
        let is_own = |entry: &Result<WalkedEntry, String>| match entry {
            Ok(WalkedEntry::File(path) | WalkedEntry::Other(path)) => {
                path.strip_prefix(directory).is_ok_and(|below| whose_own(below).is_some())
            }
            Err(_) => false,
        };
        for (count, entry) in walk::entries(directory).filter(|entry| !is_own(entry)).enumerate() {
            if count >= MOST_FILES {
                return Err(refused(
                    name,
                    &format!("it holds more than {MOST_FILES} files; name the ones that describe the idea"),
                ));
            }
            let said = |said: String| said.replace(&directory.display().to_string(), name);
            let (path, file) = match entry.map_err(|error| refused(name, &said(error)))? {
                WalkedEntry::File(path) => (path.clone(), Some(path)),
                WalkedEntry::Other(path) => (path, None),
            };
            let below = path.strip_prefix(directory).unwrap_or(&path).to_string_lossy().into_owned();
            let shown = format!("{}/{below}", name.trim_end_matches('/'));
            let taken = match file {
                Some(file) => self.file(file)?,
                None => Taken::PassedOver(PassedOverReason::NotAFile),
            };
            match taken {
                Taken::Text(text) => self.add(Heading::Always, &shown, text),
                Taken::Unread(bytes, lines) => self.leave_unread(&shown, bytes, lines),
                // The name reaches a receipt, and nobody else looks through it before.
                Taken::PassedOver(why) => self.passed_over.push(PassedOver { name: redacted(&shown), why }),
            }
        }
        if self.parts.len() + self.unread.len() == before {
            return Err(refused(name, "it contains no text; name a directory that does"));
        }
        Ok(())
    }

    /// What is to be taken of a directory's file. Its own path has no link in it, but where somebody changes that this very moment.
    fn file(&self, file: PathBuf) -> Result<Taken, SpecError> {
        let passed_over = |why| Ok(Taken::PassedOver(why));
        let unreadable = |source: std::io::Error| PassedOverReason::Unreadable(redacted(&source.to_string()));
        let place = match file.canonicalize() {
            Ok(place) => place,
            Err(source) => return passed_over(unreadable(source)),
        };
        if is_secret_place(&file) || is_secret_place(&place) {
            return passed_over(PassedOverReason::SecretName);
        }
        if place != file {
            return passed_over(PassedOverReason::NotAFile);
        }
        let bytes = match read_regular_up_to(&place, ByteLimit(self.room())) {
            Ok(bytes) => bytes,
            Err(FsError::TooLarge { .. }) => {
                // A picture is passed over however large it is; a text would be missed.
                let glance = read_prefix(&place, GLANCE)?;
                return if is_text_so_far(&glance.bytes) {
                    let prefix = read_prefix(&place, COUNTED)?;
                    Ok(Taken::Unread(prefix.total, lines_of_bytes(&prefix.bytes)))
                } else {
                    passed_over(PassedOverReason::NotText)
                };
            }
            Err(FsError::Io { source, .. }) => return passed_over(unreadable(source)),
        };
        Ok(match text_of(bytes) {
            None => Taken::PassedOver(PassedOverReason::NotText),
            Some(text) if says_nothing(&text) => Taken::PassedOver(PassedOverReason::Empty),
            Some(text) => Taken::Text(text),
        })
    }

    fn add(&mut self, heading: Heading, name: &str, text: String) {
        if text.len() as u64 > self.room() {
            self.leave_unread(name, text.len() as u64, lines_of(&text));
        } else if !says_nothing(&text) {
            self.bytes = self.bytes.saturating_add(text.len() as u64);
            self.parts.push(Part { heading, name: short_line(name, LONGEST_NAME), text });
        }
    }

    /// A source for which there is no room.
    fn leave_unread(&mut self, name: &str, bytes: u64, lines: u64) {
        let name = short_line(name, LONGEST_NAME);
        self.unread.push(PacketRow { kind: EntryKind::Idea, name, bytes, lines, sha256: None });
    }

    fn room(&self) -> u64 {
        self.limit.0.saturating_sub(self.bytes)
    }
}

impl Idea {
    /// The source that this line of the text is of, and which line of that source it is; 0 for the line that names the source.
    #[must_use]
    pub fn place_of(&self, line: u64) -> Option<(String, u64)> {
        // Heading and empty line before a text.
        if let Some((_, name)) = self.places.iter().find(|(begins, _)| *begins == line + 2) {
            return Some((redacted(name), 0));
        }
        let (begins, name) = self.places.iter().rev().find(|(begins, _)| *begins <= line)?;
        Some((redacted(name), line - begins + 1))
    }
}

/// The texts, each behind its heading, an empty line between them; and where each begins.
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

/// The bytes as text; none where they are something else.
fn text_of(bytes: Vec<u8>) -> Option<String> {
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

/// Whether the beginning of a file could be one of a text; a character may be cut at its end.
fn is_text_so_far(bytes: &[u8]) -> bool {
    !bytes.contains(&0)
        && std::str::from_utf8(bytes).map_or_else(|error| error.error_len().is_none(), |_| true)
}

/// Whether a path says that what is there holds secrets: its name, or the directories that it lies in.
fn is_secret_place(path: &Path) -> bool {
    is_secret_file(&path.to_string_lossy())
}

/// Whose own files a path leads to: a directory of that name, under any capitals.
fn whose_own(path: &Path) -> Option<&'static str> {
    let named = |own: &str| {
        path.components()
            .any(|part| part.as_os_str().to_str().is_some_and(|part| part.eq_ignore_ascii_case(own)))
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
    SpecError::Source { source_name: redacted(&short_line(name, LONGEST_NAME)), why: redacted(why) }
}
