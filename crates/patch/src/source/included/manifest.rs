//! Manifests: paths by which cargo, go and npm compile or load what lies outside.

use crucible_model::RepoPath;

use super::found::{Found, is_place, leaves};
use super::item::unescaped;

/// Keys of cargo whose values are patterns, which begin at the root of the package.
const PATTERNS: [&str; 2] = ["exclude", "include"];
/// Prefixes of the local packages of npm and its relatives.
const LOCAL: [&str; 6] = [
    "exec:",
    "file:",
    "git+file:",
    "link:",
    "portal:",
    "workspace:",
];
/// Keys of npm that set the versions of dependencies, besides those of their lists.
const OVERRIDES: [&str; 2] = ["overrides", "resolutions"];
/// Keys of npm whose values are files or directories that are loaded.
const LOADED: [&str; 8] = [
    "bin",
    "exports",
    "imports",
    "main",
    "module",
    "types",
    "typings",
    "workspaces",
];

pub(super) fn read(path: &RepoPath, source: &[u8], found: &mut Found<'_>) {
    let text = String::from_utf8_lossy(source);
    match path.segments().next_back() {
        Some("Cargo.toml") => cargo(&text, found),
        Some("go.mod" | "go.work") => go(&text, found),
        Some("package.json") => npm(&text, found),
        _ => {}
    }
}

/// Every text that is a path, whatever its key: cargo takes paths under many of them. Metadata is for other tools.
fn cargo(text: &str, found: &mut Found<'_>) {
    let (mut key, mut is_metadata) = (String::new(), false);
    let mut word = String::new();
    let mut rest = text;
    let mut is_start = true;
    while let Some(c) = rest.chars().next() {
        match c {
            '"' | '\'' => {
                let (value, behind) = toml_text(rest, c);
                rest = behind;
                is_start = false;
                // A key in quotes.
                if rest.trim_start_matches([' ', '\t']).starts_with('=') {
                    word = value;
                } else if !is_metadata && !PATTERNS.contains(&key.as_str()) {
                    cargo_path(&key, &value, found);
                }
                continue;
            }
            '#' => {
                rest = rest.find('\n').map_or("", |end| &rest[end..]);
                continue;
            }
            '[' if is_start => {
                let header = rest.lines().next().unwrap_or_default();
                let name = header.trim_start_matches('[').trim_start();
                is_metadata = ["package.metadata", "workspace.metadata"]
                    .iter()
                    .any(|table| name.starts_with(table));
                key.clear();
                rest = &rest[header.len()..];
                continue;
            }
            '=' => key = std::mem::take(&mut word),
            '.' | ',' | '{' => word.clear(),
            '\n' => {
                word.clear();
                is_start = true;
            }
            c if c.is_whitespace() => {}
            c => word.push(c),
        }
        is_start &= c.is_whitespace();
        rest = &rest[c.len_utf8()..];
    }
}

fn cargo_path(key: &str, value: &str, found: &mut Found<'_>) {
    let construct = if key.is_empty() { "a path" } else { key };
    let is_path = value.starts_with(['/', '~', '\\']) || value.contains("..");
    let is_drive = value.as_bytes().get(1) == Some(&b':');
    if value.starts_with('~') && value.contains('/')
        || (is_path || is_drive || value.starts_with("file:")) && leaves(value, found.depth)
    {
        found.outside(construct, value);
    }
}

/// The text in quotes that begins here, and what follows it.
fn toml_text(rest: &str, quote: char) -> (String, &str) {
    let three: String = std::iter::repeat_n(quote, 3).collect();
    let mark = if rest.starts_with(&three) {
        three
    } else {
        quote.to_string()
    };
    let inner = &rest[mark.len()..];
    let mut at = 0;
    while let Some(c) = inner[at..].chars().next() {
        if inner[at..].starts_with(&mark) || mark.len() == 1 && c == '\n' {
            break;
        }
        at += c.len_utf8();
        if c == '\\' && quote == '"' {
            at += inner[at..].chars().next().map_or(0, char::len_utf8);
        }
    }
    let value = if quote == '"' {
        unescaped(&inner[..at])
    } else {
        inner[..at].to_owned()
    };
    let end = if inner[at..].starts_with(&mark) {
        at + mark.len()
    } else {
        at
    };
    (value, &inner[end..])
}

/// Modules that are replaced by, or used from, a directory.
fn go(text: &str, found: &mut Found<'_>) {
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default();
        for word in line.split_whitespace() {
            let word = word.trim_matches(['"', '`']);
            if word.starts_with(['/', '.']) {
                found.path("a directory of modules", word);
            }
        }
    }
}

/// Packages that are taken from a directory, and files that are loaded for a package.
fn npm(text: &str, found: &mut Found<'_>) {
    let text = text.trim_start_matches('\u{feff}');
    let Ok(manifest) = serde_json::from_str::<serde_json::Value>(text) else {
        // A template, or nested too deeply: whatever looks like a path counts.
        let quoted = text.split('"').map(unescaped);
        let paths = quoted.filter(|text| text.contains("../") || is_local(text) || is_place(text));
        return paths.for_each(|text| npm_package(&text, found));
    };
    let all = texts(&manifest).into_iter();
    all.filter(|text| is_local(text))
        .for_each(|text| npm_package(text, found));
    for (key, value) in manifest.as_object().into_iter().flatten() {
        let is_dependencies = key.ends_with("ependencies") || OVERRIDES.contains(&key.as_str());
        if !is_dependencies && !LOADED.contains(&key.as_str()) {
            continue;
        }
        for text in texts(value).into_iter().filter(|text| !is_local(text)) {
            if is_dependencies {
                npm_package(text, found);
            } else if text.contains("..") || text.starts_with('/') {
                found.path("a file of the package", text);
            }
        }
    }
}

/// The version of a dependency, which may be a path.
fn npm_package(version: &str, found: &mut Found<'_>) {
    const CONSTRUCT: &str = "a local package";
    let scheme = LOCAL.iter().find(|prefix| version.starts_with(**prefix));
    let path = &version[scheme.map_or(0, |scheme| scheme.len())..];
    // An address with a host is none of the machine's.
    let path = match path.strip_prefix("//") {
        Some(rest) if scheme.is_some_and(|scheme| scheme.ends_with("file:")) => rest,
        _ => path,
    };
    if path.starts_with("~/") {
        found.outside(CONSTRUCT, version);
    } else if path.starts_with(['/', '.']) || scheme.is_some() {
        found.path(CONSTRUCT, path);
    }
}

fn is_local(version: &str) -> bool {
    LOCAL.iter().any(|prefix| version.starts_with(prefix))
}

/// Every text in a value.
fn texts(value: &serde_json::Value) -> Vec<&str> {
    let mut next = vec![value];
    let mut out = Vec::new();
    while let Some(value) = next.pop() {
        match value {
            serde_json::Value::String(text) => out.push(text.as_str()),
            serde_json::Value::Array(values) => next.extend(values),
            serde_json::Value::Object(values) => next.extend(values.values()),
            _ => {}
        }
    }
    out
}
