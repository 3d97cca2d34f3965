//! The rules of the normaliser, each for one line. Every rule scans the line once.

/// Returns the line as a terminal would show it: without escape sequences, only the text after the last
/// carriage return, without other control characters.
pub(crate) fn visible(raw: &str) -> String {
    let raw = raw.trim_end_matches('\r');
    let raw = raw.rsplit('\r').next().unwrap_or(raw);
    let mut out = String::with_capacity(raw.len());
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_escape(&mut chars),
            '\t' => out.push(c),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

fn skip_escape(chars: &mut std::str::Chars<'_>) {
    match chars.next() {
        Some('[') => {
            chars.by_ref().find(|c| ('\u{40}'..='\u{7e}').contains(c));
        }
        Some(']') => {
            while let Some(c) = chars.next() {
                if c == '\u{7}' {
                    break;
                }
                if c == '\u{1b}' {
                    chars.next();
                    break;
                }
            }
        }
        _ => {}
    }
}

/// Returns whether the line only shows build progress of cargo, whose order depends on its threads.
pub(super) fn is_progress(line: &str) -> bool {
    const STEPS: [&str; 14] = [
        "Adding ",
        "Blocking ",
        "Building ",
        "Checking ",
        "Compiling ",
        "Dirty ",
        "Downloaded ",
        "Downloading ",
        "Fresh ",
        "Locking ",
        "Preparing ",
        "Scraping ",
        "Unpacking ",
        "Updating ",
    ];
    let text = line.trim_start();
    line.len() > text.len() && STEPS.iter().any(|step| text.starts_with(step))
}

/// Replaces a directory if it is a whole path or the start of one.
pub(super) fn replace_path(line: String, place: &str, name: &str) -> String {
    if !line.contains(place) {
        return line;
    }
    let mut out = String::with_capacity(line.len());
    let mut rest = line.as_str();
    while let Some(at) = rest.find(place) {
        let end = at + place.len();
        let is_complete = !rest[end..].chars().next().is_some_and(is_name_char);
        out.push_str(&rest[..at]);
        out.push_str(if is_complete { name } else { place });
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

/// Replaces values that differ between machines and users: `/tmp/x` by `<tmp>`, a home directory by `<home>`.
pub(super) fn replace_user_places(line: String) -> String {
    const PLACES: [(&str, &str, Named); 7] = [
        ("/tmp/", "<tmp>", Named::ByNextSegment),
        ("/var/tmp/", "<tmp>", Named::ByNextSegment),
        ("/dev/shm/", "<tmp>", Named::ByNextSegment),
        ("/var/folders/", "<tmp>", Named::ByNextSegment),
        ("/home/", "<home>", Named::ByNextSegment),
        ("/Users/", "<home>", Named::ByNextSegment),
        ("/root/", "<home>/", Named::Whole),
    ];
    if !line.contains('/') {
        return line;
    }
    let mut out = String::with_capacity(line.len());
    let mut rest = line.as_str();
    let mut before = None;
    'scan: while let Some(at) = rest.find('/') {
        let (head, tail) = rest.split_at(at);
        out.push_str(head);
        before = head.chars().next_back().or(before);
        if !before.is_some_and(|c| is_name_char(c) || matches!(c, '.' | '~' | '>')) {
            for (prefix, name, named) in PLACES {
                let Some(after) = tail.strip_prefix(prefix) else {
                    continue;
                };
                let used = match named {
                    Named::Whole => 0,
                    Named::ByNextSegment => after
                        .find(|c: char| !is_name_char(c) && c != '.')
                        .unwrap_or(after.len()),
                };
                if named == Named::ByNextSegment && used == 0 {
                    continue;
                }
                out.push_str(name);
                before = Some('>');
                rest = &after[used..];
                continue 'scan;
            }
        }
        out.push('/');
        before = Some('/');
        rest = &tail[1..];
    }
    out.push_str(rest);
    out
}

/// Whether the directory after a known place belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    Whole,
    ByNextSegment,
}

/// `thread 'x' (12345) panicked` without the number; `pid 12345` and `pid=12345` with a placeholder.
pub(super) fn without_process_ids(mut line: String) -> String {
    if let Some(start) = line.find("thread '")
        && let Some(quote) = line[start + 8..].find("' (").map(|at| start + 8 + at + 1)
    {
        let digits = leading_digits(&line[quote + 2..]);
        if digits > 0 && line[quote + 2 + digits..].starts_with(')') {
            line.replace_range(quote..quote + 3 + digits, "");
        }
    }
    replace_numbers_after(line, &["pid ", "pid=", "pid: ", "PID ", "PID: "], "<pid>")
}

/// Replaces the number that directly follows one of the words.
fn replace_numbers_after(mut line: String, words: &[&str], name: &str) -> String {
    for word in words {
        if !line.contains(word) {
            continue;
        }
        let mut out = String::with_capacity(line.len());
        let mut rest = line.as_str();
        while let Some(at) = rest.find(word) {
            let begins = !rest[..at]
                .chars()
                .next_back()
                .or(out.chars().next_back())
                .is_some_and(is_name_char);
            let (head, tail) = rest.split_at(at + word.len());
            out.push_str(head);
            let digits = leading_digits(tail);
            let ends = !tail[digits..].chars().next().is_some_and(is_name_char);
            if begins && digits > 0 && ends {
                out.push_str(name);
                rest = &tail[digits..];
            } else {
                rest = tail;
            }
        }
        out.push_str(rest);
        line = out;
    }
    line
}

/// Replaces durations written by test runners and build tools.
pub(super) fn without_durations(line: String) -> String {
    let trimmed = line.trim_start();
    for label in [
        "Time:",
        "Duration ",
        "duration_ms: ",
        "duration_ms ",
        "# duration_ms ",
    ] {
        if trimmed.starts_with(label)
            && trimmed[label.len()..]
                .trim_start()
                .starts_with(|c: char| c.is_ascii_digit())
        {
            let indent = &line[..line.len() - trimmed.len()];
            return format!("{indent}{} <time>", label.trim_end());
        }
    }
    if let Some((head, tail)) = line.rsplit_once('\t')
        && (head.starts_with("ok") || head.starts_with("FAIL"))
        && decimal_seconds(tail) == Some(tail.len())
    {
        return format!("{head}\t<time>");
    }
    let line = bracketed(line, '[', ']');
    let line = bracketed(line, '(', ')');
    spent_in(line)
}

/// `[   0.006s]`, `(0.00s)`, `(5 ms)`: nothing but a time between two brackets.
fn bracketed(line: String, open: char, close: char) -> String {
    let Some(mut at) = line.find(open) else {
        return line;
    };
    let mut out = String::with_capacity(line.len());
    let mut rest = line.as_str();
    loop {
        let (head, tail) = rest.split_at(at + 1);
        out.push_str(head);
        let inner = tail.trim_start_matches([' ', '>']);
        let skipped = tail.len() - inner.len();
        match time_length(inner) {
            Some(length) if inner[length..].starts_with(close) => {
                out.push_str("<time>");
                rest = &tail[skipped + length..];
            }
            _ => rest = tail,
        }
        match rest.find(open) {
            Some(next) => at = next,
            None => break,
        }
    }
    out.push_str(rest);
    out
}

/// `... in 0.03s ===`, `... in 61.02s (0:01:01)`, `target(s) in 1m 02s`: the last ` in ` of a line whose
/// rest is a time and decoration.
fn spent_in(line: String) -> String {
    let Some((head, tail)) = line.rsplit_once(" in ") else {
        return line;
    };
    let length = decimal_seconds(tail).or_else(|| minutes_and_seconds(tail));
    let Some(length) = length else { return line };
    let mut rest = &tail[length..];
    if let Some(clock) = rest.strip_prefix(" (")
        && let Some((inner, after)) = clock.split_once(')')
        && inner.chars().all(|c| c.is_ascii_digit() || c == ':')
    {
        rest = after;
    }
    let decoration =
        rest.trim_end_matches(['=', ' ']).is_empty() || rest.starts_with([';', ',', ')']);
    if decoration {
        format!("{head} in <time>{rest}")
    } else {
        line
    }
}

/// The length of `0.03s` at the beginning of a text.
fn decimal_seconds(text: &str) -> Option<usize> {
    let total = leading_digits(text);
    let fraction = leading_digits(text.get(total..)?.strip_prefix('.')?);
    let end = total + 1 + fraction;
    (total > 0 && fraction > 0 && text[end..].starts_with('s')).then_some(end + 1)
}

/// The length of `1m 02s` at the beginning of a text.
fn minutes_and_seconds(text: &str) -> Option<usize> {
    let minutes = leading_digits(text);
    let rest = text.get(minutes..)?.strip_prefix("m ")?;
    let seconds = leading_digits(rest);
    (minutes > 0 && seconds > 0 && rest[seconds..].starts_with('s'))
        .then_some(minutes + 2 + seconds + 1)
}

/// The length of a decimal number of seconds, or a number of milliseconds, at the beginning of a text.
fn time_length(text: &str) -> Option<usize> {
    if let Some(length) = decimal_seconds(text) {
        return Some(length);
    }
    let mut end = leading_digits(text);
    if end == 0 {
        return None;
    }
    if let Some(rest) = text[end..].strip_prefix('.') {
        end += 1 + leading_digits(rest);
    }
    [" ms", "ms", " s"]
        .iter()
        .find(|unit| text[end..].starts_with(**unit))
        .map(|unit| end + unit.len())
}

/// Replaces a time at the beginning of a line, as written by loggers.
pub(super) fn without_leading_instant(line: String) -> String {
    let (open, text) = match line.strip_prefix('[') {
        Some(rest) => ("[", rest),
        None => ("", line.as_str()),
    };
    match instant_length(text) {
        Some(length) => format!("{open}<instant>{}", &text[length..]),
        None => line,
    }
}

/// The length of `2026-01-31T09:30:00.123Z` and its relatives at the beginning of a text.
fn instant_length(text: &str) -> Option<usize> {
    const SHAPE: &[u8; 19] = b"dddd-dd-ddTdd:dd:dd";
    let bytes = text.as_bytes().get(..SHAPE.len())?;
    let fits = bytes.iter().zip(SHAPE).all(|(byte, shape)| match shape {
        b'd' => byte.is_ascii_digit(),
        b'-' => matches!(byte, b'-' | b'/'),
        b'T' => matches!(byte, b'T' | b' '),
        _ => byte == shape,
    });
    if !fits {
        return None;
    }
    let mut end = SHAPE.len();
    if text[end..].starts_with(['.', ',']) {
        end += 1 + leading_digits(&text[end + 1..]);
    }
    if text[end..].starts_with('Z') {
        end += 1;
    }
    Some(end)
}

/// `name-0123456789abcdef` as cargo names its artifacts, and `0x7f12ab34cd56` as objects are printed. Shorter
/// numbers are left alone: a test may compare them.
pub(super) fn without_hashes_and_addresses(line: String) -> String {
    const HASH: usize = 16;
    const SHORTEST_ADDRESS: usize = 10;
    if !line.contains("0x") && !line.contains('-') {
        return line;
    }
    let mut out = String::with_capacity(line.len());
    let mut rest = line.as_str();
    while let Some(at) = rest.find(['-', 'x']) {
        let (head, tail) = rest.split_at(at + 1);
        let digits = tail.bytes().take_while(u8::is_ascii_hexdigit).count();
        let ends = !tail[digits..].starts_with(|c: char| c.is_ascii_alphanumeric());
        if head.ends_with('-') && digits == HASH && ends {
            out.push_str(head);
            out.push_str("<hash>");
            rest = &tail[digits..];
        } else if head.ends_with("0x") && digits >= SHORTEST_ADDRESS && ends {
            out.push_str(&head[..head.len() - 2]);
            out.push_str("<address>");
            rest = &tail[digits..];
        } else {
            out.push_str(head);
            rest = tail;
        }
    }
    out.push_str(rest);
    out
}

/// `127.0.0.1:45123`: a port that the kernel gave out.
pub(super) fn without_ports(mut line: String) -> String {
    const FIRST_EPHEMERAL: u32 = 32_768;
    for host in ["127.0.0.1:", "localhost:", "[::1]:", "0.0.0.0:"] {
        if !line.contains(host) {
            continue;
        }
        let mut out = String::with_capacity(line.len());
        let mut rest = line.as_str();
        while let Some(at) = rest.find(host) {
            let (head, tail) = rest.split_at(at + host.len());
            out.push_str(head);
            let digits = leading_digits(tail);
            match tail[..digits].parse::<u32>() {
                Ok(port) if (FIRST_EPHEMERAL..=65_535).contains(&port) => {
                    out.push_str("<port>");
                    rest = &tail[digits..];
                }
                _ => rest = tail,
            }
        }
        out.push_str(rest);
        line = out;
    }
    line
}

fn leading_digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '+')
}
