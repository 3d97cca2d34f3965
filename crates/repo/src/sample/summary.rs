//! The tree as text: one line per file in path order; if there are too many, the uppermost ones.

use crucible_model::is_hidden;

use super::{RepoSample, SampleCap, depth};

/// The subject of a line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Line {
    File,
    Link,
    /// Its path is escaped already.
    Odd,
}

/// Writes the summary of the sampling into it.
pub(super) fn write(found: &mut RepoSample, unusual_names: &[String], names: usize) {
    let files = found.listing.iter().map(|path| (path.as_str(), Line::File));
    // A link with an odd name is among the odd ones.
    let links = found
        .links
        .iter()
        .filter(|path| !path.chars().any(is_hidden));
    let links = links.map(|path| (path.as_str(), Line::Link));
    let odd = unusual_names.iter().map(|path| (path.as_str(), Line::Odd));
    let mut lines: Vec<(usize, &str, Line)> = files
        .chain(links)
        .chain(odd)
        .map(|(path, line)| (depth(path), path, line))
        .collect();
    let more = lines.len().saturating_sub(names);
    if more > 0 {
        lines.select_nth_unstable(names);
        lines.truncate(names);
    }
    lines.sort_unstable_by_key(|(_, path, line)| (*path, *line));
    let mut text = String::new();
    for (_, path, line) in lines {
        match line {
            Line::File => text.push_str(&escaped(path)),
            Line::Link => text.extend([escaped(path).as_str(), " (link)"]),
            Line::Odd => text.extend([path, " (not looked at: its name)"]),
        }
        text.push('\n');
    }
    if more > 0 {
        text.push_str(&format!("... and {more} more\n"));
        found.caps_hit.insert(SampleCap::Names);
    }
    found.tree_summary = text;
}

/// Returns the text visible and on one line. A backslash is doubled, so that only escapes look escaped.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            c if is_hidden(c) => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}
