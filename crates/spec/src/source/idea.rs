//! The idea: what a spec starts from, joined from its sources in the order in which they are given.
//!
//! One source is taken as it is, byte for byte. Several stand behind a heading each that names them, and so does every file of a
//! directory. What always holds: the idea is UTF-8 without a NUL byte, says something, and is within its limit; it has not been looked
//! through for secrets, which is the packet's part.

use std::path::Path;

use crucible_host::fs::{FsError, read_prefix, read_regular_up_to};
use crucible_host::walk;
use crucible_model::{ByteLimit, Untrusted, says_nothing, short_line};
use crucible_repo::Gh;
use crucible_secrets::{Scanner, is_secret_file};

use super::issue::{self, IssueRef};
use crate::error::SpecError;
use crate::packet::{PassedOver, PassedOverReason, SECRET_FILE};

/// The most files of a directory that are looked at.
const MOST_FILES: usize = 1_000;

/// How many bytes decide whether a file that is too large is a text at all.
const GLANCE: ByteLimit = ByteLimit(4096);

/// How many characters of a name a heading shows.
const LONGEST_NAME: usize = 200;

/// What a spec starts from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idea {
    /// Its text: what is kept as `context/idea.md`, once a packet was made of it.
    pub text: Untrusted,
    /// Files of its directories that are not in it.
    pub passed_over: Vec<PassedOver>,
    /// What else deserves a look, one sentence each.
    pub notes: Vec<String>,
}

/// Joins the sources of an idea.
#[derive(Debug)]
pub struct IdeaBuilder {
    limit: ByteLimit,
    bytes: u64,
    parts: Vec<Part>,
    passed_over: Vec<PassedOver>,
    notes: Vec<String>,
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
    /// An idea of at most so many bytes.
    #[must_use]
    pub fn new(limit: ByteLimit) -> Self {
        Self { limit, bytes: 0, parts: Vec::new(), passed_over: Vec::new(), notes: Vec::new() }
    }

    /// Adds a text that was given, such as standard input. One that says nothing adds nothing.
    ///
    /// # Errors
    ///
    /// [`SpecError::Source`] for what is no text, or too much.
    pub fn text(&mut self, name: &str, bytes: Vec<u8>) -> Result<(), SpecError> {
        let Some(text) = text_of(bytes) else {
            return Err(refused(name, "it is no UTF-8 text; give it as plain text"));
        };
        self.add(Heading::AmongOthers, name, text)
    }

    /// Adds a file, or the files of a directory in the order of their names: without what git ignores, with a heading each. `name` is
    /// what it is called in the idea and in messages.
    ///
    /// # Errors
    ///
    /// [`SpecError::Source`] for what is not there, no regular file, no text, too much, or a directory without a text;
    /// [`SpecError::SecretInPacket`] for a file whose name says that it holds secrets.
    pub fn path(&mut self, name: &str, path: &Path) -> Result<(), SpecError> {
        let meta = path
            .metadata()
            .map_err(|error| refused(name, &format!("{error}; name a file or a directory that is there")))?;
        if meta.is_dir() {
            return self.directory(name, path);
        }
        if is_secret_file(&path.to_string_lossy()) {
            let entry = short_line(name, LONGEST_NAME);
            return Err(SpecError::SecretInPacket { entry, rule: SECRET_FILE.to_owned(), line: 1 });
        }
        match read_regular_up_to(path, ByteLimit(self.room())) {
            Ok(bytes) => self.text(name, bytes),
            Err(FsError::TooLarge { .. }) => Err(self.too_large(name)),
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
    /// [`SpecError::GitHub`] where GitHub does not show it; [`SpecError::Source`] where it is on another host than `gh` asks, no issue, or too
    /// large.
    pub async fn issue(&mut self, gh: &Gh, issue: &IssueRef) -> Result<(), SpecError> {
        let told = issue::read(gh, issue).await?;
        self.notes.extend(told.notes);
        self.text(&issue.to_string(), told.text.into_bytes())
    }

    /// The idea.
    ///
    /// # Errors
    ///
    /// [`SpecError::EmptyIdea`] where no source says anything; [`SpecError::Source`] where the headings between them make it too large.
    pub fn finish(self) -> Result<Idea, SpecError> {
        let Self { limit, parts, passed_over, notes, .. } = self;
        let joined = match parts.as_slice() {
            [] => return Err(SpecError::EmptyIdea),
            [Part { heading: Heading::AmongOthers, text, .. }] => text.clone(),
            several => join(several),
        };
        if joined.len() as u64 > limit.0 {
            return Err(refused("the idea", &too_large(limit)));
        }
        Ok(Idea { text: Untrusted::new(joined), passed_over, notes })
    }

    fn directory(&mut self, name: &str, directory: &Path) -> Result<(), SpecError> {
        let before = self.parts.len();
        for (count, file) in walk::files(directory).enumerate() {
            if count >= MOST_FILES {
                return Err(refused(
                    name,
                    &format!("it holds more than {MOST_FILES} files; name the ones that tell the idea"),
                ));
            }
            let file = file.map_err(|said| refused(name, &said))?;
            let below = file.strip_prefix(directory).unwrap_or(&file).to_string_lossy().into_owned();
            let shown = format!("{}/{below}", name.trim_end_matches('/'));
            match self.file(&shown, &below, &file)? {
                Ok(text) => self.add(Heading::Always, &shown, text)?,
                // The name reaches a receipt, and nobody else looks through it before.
                Err(why) => {
                    let name = Scanner::builtin().redact(&shown).text.into_owned();
                    self.passed_over.push(PassedOver { name, why });
                }
            }
        }
        if self.parts.len() == before {
            return Err(refused(name, "it holds no text that says anything; name a directory that does"));
        }
        Ok(())
    }

    /// The text of a directory's file, or why it is not taken.
    fn file(
        &self,
        shown: &str,
        below: &str,
        file: &Path,
    ) -> Result<Result<String, PassedOverReason>, SpecError> {
        if is_secret_file(below) {
            return Ok(Err(PassedOverReason::SecretName));
        }
        let bytes = match read_regular_up_to(file, ByteLimit(self.room())) {
            Ok(bytes) => bytes,
            Err(FsError::TooLarge { .. }) => {
                // A picture is passed over however large it is; a text would be missed.
                let glance = read_prefix(file, GLANCE)?.bytes;
                return if is_text_so_far(&glance) {
                    Err(self.too_large(shown))
                } else {
                    Ok(Err(PassedOverReason::NotText))
                };
            }
            Err(FsError::Io { source, .. }) => {
                return Ok(Err(PassedOverReason::Unreadable(source.to_string())));
            }
        };
        Ok(match text_of(bytes) {
            None => Err(PassedOverReason::NotText),
            Some(text) if says_nothing(&text) => Err(PassedOverReason::Empty),
            Some(text) => Ok(text),
        })
    }

    fn add(&mut self, heading: Heading, name: &str, text: String) -> Result<(), SpecError> {
        if text.len() as u64 > self.room() {
            return Err(self.too_large(name));
        }
        if !says_nothing(&text) {
            self.bytes = self.bytes.saturating_add(text.len() as u64);
            self.parts.push(Part { heading, name: short_line(name, LONGEST_NAME), text });
        }
        Ok(())
    }

    fn room(&self) -> u64 {
        self.limit.0.saturating_sub(self.bytes)
    }

    fn too_large(&self, name: &str) -> SpecError {
        refused(name, &too_large(self.limit))
    }
}

/// The texts, each behind its heading, an empty line between them.
fn join(parts: &[Part]) -> String {
    let mut joined = String::new();
    for Part { name, text, .. } in parts {
        if !joined.is_empty() {
            joined.push_str(if joined.ends_with('\n') { "\n" } else { "\n\n" });
        }
        joined.push_str(&format!("# From {name}\n\n{text}"));
    }
    if !joined.ends_with('\n') {
        joined.push('\n');
    }
    joined
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

fn too_large(limit: ByteLimit) -> String {
    format!(
        "with it the idea has more than {} bytes; say it in fewer words, or raise spec.max_packet_bytes",
        limit.0
    )
}

fn refused(name: &str, why: &str) -> SpecError {
    SpecError::Source { source_name: short_line(name, LONGEST_NAME), why: why.to_owned() }
}
