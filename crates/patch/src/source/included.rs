//! What a text has a compiler, an assembler or a loader read from a file, by the path that it names.
//!
//! `include_str!("/etc/passwd")` puts a file of the machine into what is built there. The gates do not notice: the sandbox hides
//! the file, or has one of its own. So the text is searched for the constructs that read, and each of them has to name its file
//! in a plain form: one that shows without a compiler which file it is. A path that leaves the repository is one result, a path that
//! cannot be determined the other. The constructs of each language stand in one file here.
//!
//! What always holds: a path is judged by its text alone, from the place where its file lies; links are not known here. The reading is
//! linear in the text.

mod assembler;
mod c;
mod found;
mod go;
mod item;
mod manifest;
mod modules;
mod names;
mod others;
mod python;
mod rust;
mod script;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crucible_model::RepoPath;

use found::{Family, Found, union};
use item::has_any;
use names::Names;

pub(crate) use found::{Included, Reach};

/// How many files may include one another.
const MAX_NESTED: usize = 16;
/// Words that macros of assemblers begin with.
const ASSEMBLER_MACROS: [&str; 4] = [".irp", ".macro", "%define", "%macro"];

/// Every file that each of these texts has read from outside or by a path that cannot be determined, as often as it does. A text that
/// another one includes is also read in the language of that one, whatever its own ending.
pub(crate) fn included<'a>(
    files: &[(&'a RepoPath, &'a [u8])],
) -> Vec<(&'a RepoPath, Vec<Included>)> {
    let texts: Vec<Cow<'_, [u8]>> = files
        .iter()
        .map(|(path, source)| with_plain_blanks(source, Family::from_path(path)))
        .collect();
    let files: Vec<(&RepoPath, &[u8])> = files
        .iter()
        .zip(&texts)
        .map(|((path, _), text)| (*path, &**text))
        .collect();
    let mut families: Vec<BTreeSet<Family>> = files
        .iter()
        .map(|(path, source)| {
            let mut families = BTreeSet::from([Family::from_path(path)]);
            // The ending says little: macros of an assembler do.
            if path.extension() == Some("inc") && has_any(source, &ASSEMBLER_MACROS) {
                families.insert(Family::Assembly);
            }
            families
        })
        .collect();
    let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, (path, _)) in files.iter().enumerate() {
        by_name.entry(path.file_name()).or_default().push(at);
    }
    let mut round = 0;
    loop {
        let each = || files.iter().zip(&families);
        let names = Names::from_files(
            each().flat_map(|((_, source), families)| families.iter().map(|one| (*one, *source))),
        );
        let found: Vec<Found<'_>> = each()
            .map(|((path, source), families)| read(path, source, families, &names))
            .collect();
        let mut has_more = false;
        for by in &found {
            for (family, target) in &by.sources {
                let name = target.rsplit(['/', '\\']).next().unwrap_or_default();
                for at in by_name.get(name).into_iter().flatten() {
                    if may_name(target, files[*at].0) {
                        has_more |= families[*at].insert(*family);
                    }
                }
            }
        }
        round += 1;
        if !has_more || round > MAX_NESTED {
            let lists = found.into_iter().map(|found| found.list);
            return files.iter().map(|(path, _)| *path).zip(lists).collect();
        }
    }
}

/// The text without a byte order mark, and with plain blanks for the white space that some compilers skip and tokens here do not.
fn with_plain_blanks(source: &[u8], family: Family) -> Cow<'_, [u8]> {
    const MARK: &[u8] = "\u{feff}".as_bytes();
    let source = source.strip_prefix(MARK).unwrap_or(source);
    if source.is_ascii() && !source.contains(&0x0b) {
        return Cow::Borrowed(source);
    }
    let mut out = Vec::with_capacity(source.len());
    for chunk in source.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\u{2028}' | '\u{2029}' if family == Family::Script => out.push(b'\n'),
                '\u{180e}' | '\u{200e}' | '\u{200f}' | '\u{feff}' => out.push(b' '),
                c if c.is_whitespace() && !c.is_ascii_whitespace() => out.push(b' '),
                c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        out.extend_from_slice(chunk.invalid());
    }
    Cow::Owned(out)
}

/// Reads a text in each of these languages.
fn read<'a>(
    path: &'a RepoPath,
    source: &[u8],
    families: &BTreeSet<Family>,
    names: &Names,
) -> Found<'a> {
    let own = Family::from_path(path);
    let mut found = Found {
        depth: path.segments().count() - 1,
        path,
        family: own,
        list: Vec::new(),
        sources: BTreeSet::new(),
    };
    let languages = std::iter::once(own).chain(families.iter().copied().filter(|one| *one != own));
    for family in languages {
        let known = std::mem::take(&mut found.list);
        found.family = family;
        match family {
            Family::Rust => rust::read(source, names, &mut found),
            Family::C => c::read(source, names, &mut found),
            Family::Assembly => {
                c::directives(source, names, &mut found);
                c::assembly_file(source, names, &mut found);
            }
            Family::Script => script::read(source, &mut found),
            Family::Go => go::read(source, names, &mut found),
            Family::Python => python::read(source, names, &mut found),
            Family::Data | Family::Other => {}
        }
        if family == own {
            manifest::read(path, source, &mut found);
            others::read(path, own == Family::Other, source, &mut found);
        }
        found.list = union(known, std::mem::take(&mut found.list));
    }
    found
}

/// Whether a path that a text names may be that of this file: its place depends on directories that are searched.
fn may_name(target: &str, path: &RepoPath) -> bool {
    let segments = target.split(['/', '\\']);
    let named: Vec<&str> = segments
        .filter(|segment| !matches!(*segment, "" | "." | ".."))
        .collect();
    let own: Vec<&str> = path.segments().collect();
    !named.is_empty() && own.ends_with(&named)
}

#[cfg(test)]
mod tests;
