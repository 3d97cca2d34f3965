//! The headers of one file's section, and what they say together.
//!
//! Each header is kept as it stands and may stand once. [`Headers::resolve`] then asks that all of them tell the
//! same story: the names in the `diff --git` line must be, letter for letter, the names that the other headers give.
//! That also settles where the first name of an unquoted `diff --git` line ends.

use crucible_model::RepoPath;

use super::lines::Lines;
use super::{PatchError, PatchErrorKind, SECTION};
use crate::patch::{Change, Content, FileMode, FilePatch, ObjectNames};
use crate::quote::{may_stand_unquoted, unquote};

/// The headers as they were read.
pub(super) struct Headers<'a> {
    both: Both<'a>,
    old_mode: Option<FileMode>,
    new_mode: Option<FileMode>,
    index_mode: Option<FileMode>,
    objects: Option<ObjectNames>,
    created: Option<FileMode>,
    deleted: Option<FileMode>,
    rename: [Option<Vec<u8>>; 2],
    copy: [Option<Vec<u8>>; 2],
    names: Option<(Name, Name)>,
    similarity: Seen,
}

#[derive(PartialEq)]
enum Seen {
    No,
    Yes,
}

/// What follows `diff --git `.
enum Both<'a> {
    /// Two unquoted names with a blank between them; which blank is not known yet.
    Plain(&'a [u8]),
    /// Two names, at least one of them quoted.
    Split(Vec<u8>, Vec<u8>),
}

/// What follows `--- ` or `+++ `.
#[derive(PartialEq)]
enum Name {
    DevNull,
    Named(Vec<u8>),
}

const DISAGREE_NAMES: PatchErrorKind = PatchErrorKind::HeadersDisagree {
    why: "the names in `diff --git` and below are not the same",
};

impl<'a> Headers<'a> {
    /// Reads the `diff --git` line and the headers below it, `---` and `+++` included.
    pub(super) fn read(lines: &mut Lines<'a>) -> Result<Self, PatchError> {
        let number = lines.number();
        let line = lines.next_header()?.unwrap_or_default();
        let rest = line.strip_prefix(SECTION);
        let both = rest.ok_or(PatchErrorKind::Junk).and_then(Both::read);
        let mut headers = Self {
            both: both.map_err(|kind| PatchError { line: number, kind })?,
            old_mode: None,
            new_mode: None,
            index_mode: None,
            objects: None,
            created: None,
            deleted: None,
            rename: [None, None],
            copy: [None, None],
            names: None,
            similarity: Seen::No,
        };
        let mut seen: Vec<&[u8]> = Vec::new();
        while let Some(line) = lines.peek() {
            let is_body = line.starts_with(b"@@")
                || line.starts_with(b"GIT binary")
                || line.starts_with(b"Binary files");
            if headers.names.is_some() || is_body || line.starts_with(SECTION) {
                break;
            }
            let number = lines.number();
            let fail = |kind| PatchError { line: number, kind };
            let line = lines.next_header()?.unwrap_or_default();
            if let Some(old) = line.strip_prefix(b"--- ") {
                let old = Name::read(old).map_err(fail)?;
                let number = lines.number();
                let new = lines
                    .next_header()?
                    .and_then(|line| line.strip_prefix(b"+++ "));
                let why = "`---` is not followed by `+++`";
                let new = new
                    .ok_or(PatchErrorKind::HeadersDisagree { why })
                    .and_then(Name::read);
                headers.names = Some((old, new.map_err(|kind| PatchError { line: number, kind })?));
                continue;
            }
            let key = headers.take(line).map_err(fail)?;
            if seen.contains(&key) {
                return Err(fail(PatchErrorKind::RepeatedHeader));
            }
            seen.push(key);
        }
        Ok(headers)
    }

    /// Whether `---` and `+++` were there, so that hunks have to follow.
    pub(super) fn has_names(&self) -> bool {
        self.names.is_some()
    }

    /// Keeps one extended header and returns the word that names it.
    fn take(&mut self, line: &[u8]) -> Result<&'static [u8], PatchErrorKind> {
        let mode = |digits: &[u8]| {
            FileMode::parse(digits)
                .map(Some)
                .ok_or(PatchErrorKind::BadMode)
        };
        let modes: [(&'static [u8], _); 4] = [
            (b"old mode ", &mut self.old_mode),
            (b"new mode ", &mut self.new_mode),
            (b"new file mode ", &mut self.created),
            (b"deleted file mode ", &mut self.deleted),
        ];
        for (key, slot) in modes {
            if let Some(digits) = line.strip_prefix(key) {
                *slot = mode(digits)?;
                return Ok(key);
            }
        }
        let [rename_from, rename_to] = &mut self.rename;
        let [copy_from, copy_to] = &mut self.copy;
        let names: [(&'static [u8], _); 4] = [
            (b"rename from ", rename_from),
            (b"rename to ", rename_to),
            (b"copy from ", copy_from),
            (b"copy to ", copy_to),
        ];
        for (key, slot) in names {
            if let Some(name) = line.strip_prefix(key) {
                *slot = Some(whole_name(name)?);
                return Ok(key);
            }
        }
        if let Some(value) = line.strip_prefix(b"index ") {
            let (ids, digits) = match value.iter().position(|byte| *byte == b' ') {
                Some(at) => (&value[..at], Some(&value[at + 1..])),
                None => (value, None),
            };
            self.objects = Some(object_names(ids).ok_or(PatchErrorKind::UnknownHeader)?);
            if let Some(digits) = digits {
                self.index_mode = mode(digits)?;
            }
            return Ok(b"index");
        }
        let key: &'static [u8] = if line.starts_with(b"similarity index ") {
            b"similarity index "
        } else {
            b"dissimilarity index "
        };
        let percent = line
            .strip_prefix(key)
            .and_then(|value| value.strip_suffix(b"%"));
        let is_percent = percent.is_some_and(|digits| {
            matches!(digits, b"100" | [b'0'..=b'9'] | [b'1'..=b'9', b'0'..=b'9'])
        });
        if !is_percent {
            return Err(PatchErrorKind::UnknownHeader);
        }
        self.similarity = Seen::Yes;
        Ok(key)
    }

    /// The file that all headers describe together, without its content. `first` is the section's first line.
    pub(super) fn resolve(&self, first: u64) -> Result<FilePatch, PatchError> {
        self.agree()
            .map_err(|kind| PatchError { line: first, kind })
    }

    fn agree(&self) -> Result<FilePatch, PatchErrorKind> {
        let disagree = |why| Err(PatchErrorKind::HeadersDisagree { why });
        let kind = match (&self.created, &self.deleted, &self.rename, &self.copy) {
            (None, None, [None, None], [None, None]) => Kind::Modify,
            (Some(_), None, [None, None], [None, None]) => Kind::Create,
            (None, Some(_), [None, None], [None, None]) => Kind::Delete,
            (None, None, [Some(from), Some(to)], [None, None]) => Kind::Rename(from, to),
            (None, None, [None, None], [Some(from), Some(to)]) => Kind::Copy(from, to),
            _ => {
                return disagree(
                    "a file is created, deleted, renamed or copied, and only one of these",
                );
            }
        };
        let (old, new) = self.both_names(&kind)?;
        if !self.both.are(&old, &new) {
            return Err(DISAGREE_NAMES);
        }
        let (old, new) = (repo_path(&old)?, repo_path(&new)?);
        let (old_mode, new_mode) = match (self.old_mode, self.new_mode, self.index_mode) {
            (None, None, Some(mode)) if self.created.is_none() && self.deleted.is_none() => {
                (Some(mode), Some(mode))
            }
            (None, None, None) => (self.deleted, self.created),
            (Some(old), Some(new), None)
                if old != new && self.created.is_none() && self.deleted.is_none() =>
            {
                (Some(old), Some(new))
            }
            _ => return disagree("the modes"),
        };
        let change = match kind {
            Kind::Create => Change::Create,
            Kind::Modify => Change::Modify,
            Kind::Delete => Change::Delete,
            Kind::Rename(..) | Kind::Copy(..) if old == new => {
                return disagree("a file is renamed or copied to itself");
            }
            Kind::Rename(..) => Change::Rename { from: old },
            Kind::Copy(..) => Change::Copy { from: old },
        };
        if self.similarity == Seen::Yes && matches!(change, Change::Create | Change::Delete) {
            return disagree("a created or deleted file is similar to nothing");
        }
        let objects = self.objects.clone();
        let (hunks, content) = (Vec::new(), Content::Text);
        Ok(FilePatch {
            change,
            path: new,
            old_mode,
            new_mode,
            hunks,
            content,
            objects,
        })
    }

    /// The old and the new name without `a/` and `b/`, from the headers that state them without ambiguity.
    fn both_names(&self, kind: &Kind<'_>) -> Result<(Vec<u8>, Vec<u8>), PatchErrorKind> {
        let stripped = |name: &[u8], prefix: &[u8]| {
            let why = "the names below `diff --git` begin with `a/` and `b/`, or are /dev/null";
            name.strip_prefix(prefix)
                .map(<[u8]>::to_vec)
                .ok_or(PatchErrorKind::HeadersDisagree { why })
        };
        let from_names = match &self.names {
            None => None,
            Some((Name::Named(old), Name::Named(new))) => {
                Some((stripped(old, b"a/")?, stripped(new, b"b/")?))
            }
            Some((Name::DevNull, Name::Named(new))) if matches!(kind, Kind::Create) => {
                let new = stripped(new, b"b/")?;
                return Ok((new.clone(), new));
            }
            Some((Name::Named(old), Name::DevNull)) if matches!(kind, Kind::Delete) => {
                let old = stripped(old, b"a/")?;
                return Ok((old.clone(), old));
            }
            Some(_) => {
                return Err(PatchErrorKind::HeadersDisagree {
                    why: "/dev/null stands for a file that is there",
                });
            }
        };
        match (kind, from_names) {
            (Kind::Rename(from, to) | Kind::Copy(from, to), None) => {
                Ok(((*from).clone(), (*to).clone()))
            }
            (Kind::Rename(from, to) | Kind::Copy(from, to), Some((old, new)))
                if **from == old && **to == new =>
            {
                Ok((old, new))
            }
            (Kind::Modify, Some((old, new))) if old == new => Ok((old, new)),
            (Kind::Modify | Kind::Create | Kind::Delete, None) => {
                let name = self.both.the_one_name().ok_or(DISAGREE_NAMES)?;
                Ok((name.clone(), name))
            }
            _ => Err(DISAGREE_NAMES),
        }
    }
}

enum Kind<'h> {
    Create,
    Modify,
    Delete,
    Rename(&'h Vec<u8>, &'h Vec<u8>),
    Copy(&'h Vec<u8>, &'h Vec<u8>),
}

impl<'a> Both<'a> {
    fn read(text: &'a [u8]) -> Result<Self, PatchErrorKind> {
        if text.first() == Some(&b'"') {
            let (first, rest) = unquote(text).ok_or(PatchErrorKind::BadQuoting)?;
            let second = rest.strip_prefix(b" ").ok_or(DISAGREE_NAMES)?;
            return Ok(Self::Split(first, whole_name(second)?));
        }
        // An unquoted name holds no quote, so the first quote begins the second name.
        match text.iter().position(|byte| *byte == b'"') {
            None => plain_name(text).map(Self::Plain),
            Some(at) => {
                let first = text[..at]
                    .strip_suffix(b" ")
                    .ok_or(PatchErrorKind::BadQuoting)?;
                Ok(Self::Split(
                    plain_name(first)?.to_vec(),
                    whole_name(&text[at..])?,
                ))
            }
        }
    }

    /// Whether this is `a/old b/new`.
    fn are(&self, old: &[u8], new: &[u8]) -> bool {
        match self {
            Self::Split(first, second) => {
                first.strip_prefix(b"a/") == Some(old) && second.strip_prefix(b"b/") == Some(new)
            }
            Self::Plain(text) => {
                let rest = text
                    .strip_prefix(b"a/")
                    .and_then(|rest| rest.strip_prefix(old));
                rest.and_then(|rest| rest.strip_prefix(b" b/")) == Some(new)
            }
        }
    }

    /// The name, when both are the same one.
    fn the_one_name(&self) -> Option<Vec<u8>> {
        let (first, second) = match self {
            Self::Split(first, second) => (first.as_slice(), second.as_slice()),
            Self::Plain(text) => {
                let (first, second) = text.split_at_checked(text.len() / 2)?;
                (first, second.strip_prefix(b" ")?)
            }
        };
        let (first, second) = (first.strip_prefix(b"a/")?, second.strip_prefix(b"b/")?);
        (first == second).then(|| first.to_vec())
    }
}

impl Name {
    fn read(text: &[u8]) -> Result<Self, PatchErrorKind> {
        // Git ends a name that holds a blank with a tab. Nothing may follow that tab.
        let text = text.strip_suffix(b"\t").unwrap_or(text);
        if text == b"/dev/null" {
            Ok(Self::DevNull)
        } else {
            whole_name(text).map(Self::Named)
        }
    }
}

/// A name that fills the rest of its line, quoted or not.
fn whole_name(text: &[u8]) -> Result<Vec<u8>, PatchErrorKind> {
    if text.first() != Some(&b'"') {
        return plain_name(text).map(<[u8]>::to_vec);
    }
    match unquote(text) {
        Some((name, b"")) => Ok(name),
        _ => Err(PatchErrorKind::BadQuoting),
    }
}

fn plain_name(text: &[u8]) -> Result<&[u8], PatchErrorKind> {
    if text.iter().all(|byte| may_stand_unquoted(*byte)) {
        Ok(text)
    } else {
        Err(PatchErrorKind::BadQuoting)
    }
}

fn repo_path(name: &[u8]) -> Result<RepoPath, PatchErrorKind> {
    RepoPath::from_bytes(name).map_err(|source| PatchErrorKind::BadPath {
        name: String::from_utf8_lossy(name).chars().take(120).collect(),
        source,
    })
}

fn object_names(ids: &[u8]) -> Option<ObjectNames> {
    let is_name =
        |id: &str| (4..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (old, new) = std::str::from_utf8(ids).ok()?.split_once("..")?;
    (is_name(old) && is_name(new)).then(|| ObjectNames {
        old: old.to_owned(),
        new: new.to_owned(),
    })
}
