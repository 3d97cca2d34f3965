//! Go: files that are embedded, and the preamble and the flags of cgo; all of them stand in comments.

use super::super::Language;
use super::super::mask::read as masked;
use super::*;

/// Directories in which the machine's packages put what is compiled against.
const PACKAGES: [&str; 4] = ["/usr/", "/opt/", "/Library/", "/System/"];
/// Flags of directories that are searched.
const SEARCHED: [&str; 5] = ["-I", "-L", "-F", "-isystem", "-Wl,-rpath,"];

pub(super) fn read(source: &[u8], names: &Names, found: &mut Found<'_>) {
    if !has_any(source, &["go:embed", "import"]) {
        return;
    }
    let is_cgo = imports_c(source);
    let text = String::from_utf8_lossy(source);
    let mut preamble = String::new();
    let mut in_block = false;
    for line in text.lines() {
        if let Some(patterns) = line
            .strip_prefix("//go:embed")
            .filter(|patterns| patterns.starts_with([' ', '\t']))
        {
            for pattern in patterns.split_whitespace() {
                let pattern = pattern.trim_matches(['"', '`']);
                found.path("go:embed", pattern.strip_prefix("all:").unwrap_or(pattern));
                if pattern.contains('\\') {
                    found.unknown("go:embed", pattern);
                }
            }
            continue;
        }
        let trimmed = line.trim();
        let comment = match trimmed {
            _ if in_block => Some(trimmed),
            _ => trimmed
                .strip_prefix("//")
                .or_else(|| trimmed.strip_prefix("/*")),
        };
        in_block = match comment {
            Some(_) if in_block => !trimmed.contains("*/"),
            _ => trimmed
                .rfind("/*")
                .is_some_and(|open| !trimmed[open..].contains("*/") && !trimmed.starts_with("//")),
        };
        let Some(comment) = comment.filter(|_| is_cgo) else {
            continue;
        };
        let comment = comment.split("*/").next().unwrap_or_default().trim();
        match comment.strip_prefix("#cgo") {
            Some(flags) => cgo(flags, found),
            None => {
                preamble.push_str(comment);
                preamble.push('\n');
            }
        }
    }
    if is_cgo {
        c::read(preamble.as_bytes(), names, found);
    }
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
        return found.unknown("#cgo", flags.trim());
    }
    for word in flags.split_whitespace() {
        if word.starts_with('@') || word == "-include" || word == "-imacros" {
            found.unknown("#cgo", flags.trim());
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
