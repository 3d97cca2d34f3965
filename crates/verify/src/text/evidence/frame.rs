//! One line of a stack trace or of a compiler's message: which file, which line, which function.

/// A line that names a place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) file: String,
    pub(super) line: u64,
    pub(super) function: Option<String>,
    /// Whether it may be a file of the repository.
    pub(super) is_own: bool,
    pub(super) order: Order,
}

/// The position of the innermost frame in a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Order {
    #[default]
    InnermostFirst,
    /// As Python prints it.
    InnermostLast,
}

const EXTENSIONS: [&str; 26] = [
    "c", "cc", "cjs", "cpp", "cs", "cts", "ex", "exs", "go", "h", "hpp", "java", "js", "jsx", "kt",
    "mjs", "mts", "php", "py", "pyi", "rb", "rs", "scala", "swift", "ts", "tsx",
];

/// Directories of toolchains and of installed packages.
const FOREIGN: [&str; 6] = [
    "/rustc/",
    "node_modules/",
    "/usr/lib/",
    "/usr/local/go/",
    "lib/rustlib/",
    "/pkg/mod/",
];

/// Whether something other than the trace so far begins here.
pub(super) fn opens_trace(line: &str) -> bool {
    let text = line.trim_start();
    [
        "Traceback (",
        "goroutine ",
        "thread '",
        "not ok ",
        "● ",
        "panic: ",
        "--- FAIL",
        "____",
        "====",
        "FAIL: ",
    ]
    .iter()
    .any(|start| text.starts_with(start))
}

/// The place that a line names; `before` is the line above it, trimmed.
pub(super) fn frame_of(line: &str, before: &str) -> Option<Frame> {
    let text = line.trim();
    python(text).or_else(|| positioned(text, before))
}

/// `File "a.py", line 3, in f`
fn python(text: &str) -> Option<Frame> {
    let (file, rest) = text.strip_prefix("File \"")?.split_once("\", line ")?;
    let digits = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (line, rest) = rest.split_at(digits);
    let function = rest.strip_prefix(", in ").map(str::to_owned);
    Some(frame(
        file,
        line.parse().ok()?,
        function,
        Order::InnermostLast,
    ))
}

/// Anything that holds `path.ext:12`.
fn positioned(text: &str, before: &str) -> Option<Frame> {
    let mut from = 0;
    while let Some(at) = text.get(from..)?.find(':').map(|at| at + from) {
        from = at + 1;
        let rest = &text[from..];
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let path_start = text[..at]
            .rfind([' ', '\t', '(', '"', '\'', '`', '[', '=', ','])
            .map_or(0, |at| at + 1);
        let path = &text[path_start..at];
        let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
        if digits == 0 || digits > 9 || EXTENSIONS.binary_search(&extension).is_err() {
            continue;
        }
        let line = rest[..digits].parse().ok()?;
        let order = if matches!(extension, "py" | "pyi") {
            Order::InnermostLast
        } else {
            Order::InnermostFirst
        };
        let function = function_of(text, path_start, &rest[digits..], before);
        return Some(frame(path, line, function, order));
    }
    None
}

/// Returns the function of a frame: after the location in pytest, before it in JavaScript and Java, above it
/// in Go and Rust.
fn function_of(text: &str, path_start: usize, after: &str, before: &str) -> Option<String> {
    if let Some(name) = after.strip_prefix(": in ") {
        return Some(name.trim().to_owned());
    }
    let ahead = text[..path_start].trim_end_matches('(').trim_end();
    let name = match ahead.strip_prefix("at ") {
        Some(name) => name.trim_start_matches("async ").trim_start_matches("new "),
        None if ahead == "at" || (ahead.is_empty() && after.starts_with(" +0x")) => {
            let name = before
                .split_once(": ")
                .filter(|(number, _)| number.bytes().all(|b| b.is_ascii_digit()));
            let name = name.map_or(before, |(_, name)| name);
            name.rsplit_once('(').map_or(name, |(name, _)| name)
        }
        None => return None,
    };
    let name = name.rsplit(['.', ':', '/']).next().unwrap_or(name).trim();
    let is_name = !name.is_empty()
        && name.len() <= 80
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || "_$<>".contains(c));
    is_name.then(|| name.to_owned())
}

fn frame(path: &str, line: u64, function: Option<String>, order: Order) -> Frame {
    let path = path.trim_start_matches("file://");
    let (file, is_own) = match path.rsplit_once("site-packages/") {
        Some((_, inside)) => (inside, true),
        None => {
            let in_copy = path.strip_prefix("<copy>/");
            let is_foreign =
                FOREIGN.iter().any(|place| path.contains(place)) || path.starts_with("node:");
            (
                in_copy.or_else(|| path.strip_prefix("./")).unwrap_or(path),
                !is_foreign,
            )
        }
    };
    let is_placeless = file.is_empty() || file.len() > 500 || file.starts_with(['/', '<', '~']);
    Frame {
        file: file.to_owned(),
        line,
        function,
        is_own: is_own && !is_placeless,
        order,
    }
}
