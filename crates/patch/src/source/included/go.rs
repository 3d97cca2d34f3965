//! Go: files that are embedded, and the preamble and the flags of cgo; all of them stand in comments.

use super::super::Language;
use super::super::mask::read as masked;
use super::c;
use super::found::{Found, union};
use super::item::{has_any, value};
use super::names::Names;

/// Directories in which the machine's packages put what is compiled against.
const PACKAGES: [&str; 4] = ["/usr/", "/opt/", "/Library/", "/System/"];
/// Flags of directories that are searched.
const SEARCHED: [&str; 5] = ["-I", "-L", "-F", "-isystem", "-Wl,-rpath,"];

pub(super) fn read(source: &[u8], names: &Names, found: &mut Found<'_>) {
    if !has_any(source, &["go:embed", "import"]) {
        return;
    }
    let comments = comments(source);
    let embeds = comments
        .iter()
        .filter_map(|comment| comment.text.strip_prefix("//go:embed"));
    for text in embeds.filter(|text| text.starts_with([' ', '\t'])) {
        for pattern in text.split_whitespace() {
            let pattern = pattern.trim_matches(['"', '`']);
            found.path("go:embed", pattern.strip_prefix("all:").unwrap_or(pattern));
            if pattern.contains('\\') {
                found.report_unknown("go:embed", pattern);
            }
        }
    }
    if !imports_c(source) {
        return;
    }
    let (groups, all) = preambles(&comments);
    let mut known = std::mem::take(&mut found.list);
    groups
        .iter()
        .for_each(|group| preamble(group, names, found));
    let by_group = std::mem::take(&mut found.list);
    preamble(&all, names, found);
    known.extend(union(by_group, std::mem::take(&mut found.list)));
    found.list = known;
}

fn preamble(text: &str, names: &Names, found: &mut Found<'_>) {
    let (flags, code): (Vec<&str>, Vec<&str>) = text
        .lines()
        .partition(|line| line.trim().starts_with("#cgo"));
    flags.iter().for_each(|flags| cgo(flags, found));
    c::read(code.join("\n").as_bytes(), names, found);
}

/// Collects the names that the preambles give values to.
pub(super) fn defines(source: &[u8], names: &mut Names) {
    if imports_c(source) {
        let (groups, all) = preambles(&comments(source));
        for preamble in groups.iter().chain([&all]) {
            c::defines(preamble.as_bytes(), names);
        }
    }
}

/// A comment as it is written, but for carriage returns, which Go drops.
struct Comment {
    text: String,
    /// Whether it goes on with the comment before it.
    is_joined: bool,
}

fn comments(source: &[u8]) -> Vec<Comment> {
    let mut out: Vec<Comment> = Vec::new();
    // The lines on which the last comment and the last code before it end.
    let (mut line, mut comment_line, mut code_line) = (0usize, None, None);
    let mut is_trailing = false;
    let mut at = 0;
    while let Some(byte) = source.get(at) {
        let rest = &source[at..];
        let end = |close: &[u8], from: usize| {
            let found = rest[from..]
                .windows(close.len())
                .position(|text| text == close);
            found.map_or(rest.len(), |found| from + found + close.len())
        };
        let length = match rest {
            [b'/', b'/', ..] => end(b"\n", 2) - usize::from(end(b"\n", 2) < rest.len()),
            [b'/', b'*', ..] => end(b"*/", 2),
            [b'`', ..] => end(b"`", 1),
            [quote @ (b'"' | b'\''), ..] => {
                let mut is_escaped = false;
                let inner = rest[1..].iter().position(|byte| {
                    let ends = !is_escaped && byte == quote || *byte == b'\n';
                    is_escaped = *byte == b'\\' && !is_escaped;
                    ends
                });
                inner.map_or(rest.len(), |inner| inner + 2)
            }
            _ => 1,
        };
        let text = &rest[..length];
        let start_line = line;
        line += text.iter().filter(|byte| **byte == b'\n').count();
        at += length;
        if text.starts_with(b"//") || text.starts_with(b"/*") {
            let most = if is_trailing { 0 } else { 1 };
            let is_joined = comment_line.is_some_and(|end| start_line <= end + most);
            if !is_joined {
                is_trailing = code_line == Some(start_line);
            }
            out.push(Comment {
                text: String::from_utf8_lossy(text).replace('\r', ""),
                is_joined,
            });
            comment_line = Some(line);
        } else if !byte.is_ascii_whitespace() {
            comment_line = None;
            code_line = Some(line);
        }
    }
    out
}

/// Each text that cgo may take for a preamble, and all of them together.
fn preambles(comments: &[Comment]) -> (Vec<String>, String) {
    let mut out: Vec<String> = Vec::new();
    let mut all = String::new();
    for Comment { text, is_joined } in comments {
        let inner = match text.strip_prefix("//") {
            Some(line) => format!("{line}\n"),
            None => {
                let inner = text.strip_prefix("/*").unwrap_or_default();
                inner.strip_suffix("*/").unwrap_or(inner).to_owned()
            }
        };
        match out.last_mut().filter(|_| *is_joined) {
            Some(group) => group.push_str(&inner),
            None => {
                all.push('\n');
                out.push(inner.clone());
            }
        }
        all.push_str(&inner);
    }
    (out, all)
}

/// Whether the text imports the package of cgo, however its name is written.
fn imports_c(source: &[u8]) -> bool {
    // Any escape may be that of the letter.
    if !has_any(source, &["\"C\"", "`C`", "\"\\"]) {
        return false;
    }
    let masked = masked(Language::Go, source);
    let mut literals = masked.literals.iter();
    literals.any(|range| value(&source[range.clone()]) == "C")
}

/// The flags of one line: a path in them has to lie in the repository, or among the packages of the machine where it is only searched.
fn cgo(flags: &str, found: &mut Found<'_>) {
    let Some((_, flags)) = flags.split_once(':') else {
        return;
    };
    if flags.contains(['\\', '\'', '"']) {
        return found.report_unknown("#cgo", flags.trim());
    }
    for word in flags.split_whitespace() {
        if word.starts_with('@') || word == "-include" || word == "-imacros" {
            found.report_unknown("#cgo", flags.trim());
        }
        let searched = SEARCHED.iter().find_map(|flag| word.strip_prefix(flag));
        match searched.or_else(|| word.strip_prefix("-include")) {
            Some(path) => cgo_path(path, found),
            // A flag for the linker may hold any number of paths.
            None => word
                .split([',', '=', '@'])
                .for_each(|part| cgo_path(part, found)),
        }
    }
}

fn cgo_path(path: &str, found: &mut Found<'_>) {
    let own = path.strip_prefix("${SRCDIR}");
    let is_package = PACKAGES.iter().any(|place| path.starts_with(place)) && !path.contains("..");
    let is_path = path.contains('/') || path.starts_with("..");
    // A flag with its path behind it.
    let path = match path.strip_prefix('-').and_then(|_| path.find(['/', '.'])) {
        Some(start) => &path[start..],
        None => path,
    };
    if own.is_some() || is_path && !is_package {
        found.path("#cgo", own.map_or(path, |own| own.trim_start_matches('/')));
    }
}
