//! Normalises Rust's test harness output and panics: sorts what threads print in any order, and removes
//! backtrace frames outside the repository.

/// How many marks the harness prints in a row with `--quiet`.
const ROW: usize = 88;

/// Returns the lines with each row of test results sorted, with `--quiet` the failed tests last, the outputs
/// of failed tests sorted by name, and backtraces reduced to repository frames.
pub(super) fn sort_results(lines: Vec<String>) -> Vec<String> {
    let mut out: Vec<String> = Vec::with_capacity(lines.len());
    let mut statuses: Vec<String> = Vec::new();
    let mut sections: Vec<Vec<String>> = Vec::new();
    let mut in_sections = false;
    let mut rest = lines.into_iter().peekable();
    while let Some(line) = rest.next() {
        if is_status(&line) {
            statuses.push(line);
            continue;
        }
        statuses.sort_unstable();
        out.append(&mut statuses);
        if is_section_head(&line) {
            in_sections = true;
            sections.push(vec![line]);
            continue;
        }
        if in_sections && (line == "failures:" || line.starts_with("test result: ")) {
            in_sections = false;
            flush(&mut sections, &mut out);
        }
        let into = match sections.last_mut() {
            Some(section) if in_sections => section,
            _ => &mut out,
        };
        if let Some(total) = announced(&line) {
            let total = total.to_owned();
            into.push(line);
            let mut quiet = Quiet::default();
            while let Some(line) = rest.next_if(|next| quiet.accepts(next)) {
                quiet.take(line);
            }
            quiet.write(&total, into);
        } else if line == "stack backtrace:" {
            let mut frames = vec![line];
            while let Some(name) = rest.next_if(|next| is_frame_name(next)) {
                let place = rest.next_if(|next| next.trim_start().starts_with("at "));
                if let Some(place) = place
                    && is_own(&place)
                {
                    frames.push(without_number(&name));
                    frames.push(place);
                }
            }
            rest.next_if(|next| next.starts_with("note: Some details are omitted"));
            if frames.len() > 1 {
                into.append(&mut frames);
            }
        } else {
            into.push(line);
        }
    }
    statuses.sort_unstable();
    out.append(&mut statuses);
    flush(&mut sections, &mut out);
    out
}

/// Writes the sections in the order of their heads, one empty line after each.
fn flush(sections: &mut Vec<Vec<String>>, out: &mut Vec<String>) {
    sections.sort();
    for mut section in sections.drain(..) {
        while section.last().is_some_and(String::is_empty) {
            section.pop();
        }
        out.append(&mut section);
        out.push(String::new());
    }
}

/// The number in `running 3 tests`.
fn announced(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("running ")?;
    let total = rest
        .strip_suffix(" tests")
        .or_else(|| rest.strip_suffix(" test"))?;
    (!total.is_empty() && total.bytes().all(|byte| byte.is_ascii_digit())).then_some(total)
}

/// Output of the harness with `--quiet`: a mark per test that did not fail, in rows that end at a failure,
/// and the names of failed tests. The order depends on the threads.
#[derive(Default)]
struct Quiet {
    marks: Vec<u8>,
    failed: Vec<String>,
    /// Whether the last line is an unfinished row: the harness then writes no empty line after it.
    open: bool,
}

impl Quiet {
    /// Whether a line is such a row or such a name.
    fn accepts(&self, line: &str) -> bool {
        line.ends_with(" --- FAILED") || !marks_of(line).is_empty()
    }

    fn take(&mut self, line: String) {
        self.open = !line.contains(' ');
        match marks_of(&line) {
            "" => self.failed.push(line),
            marks => self.marks.extend(marks.bytes()),
        }
    }

    /// Writes the marks and the names as if all that did not fail had ended first.
    fn write(mut self, total: &str, out: &mut Vec<String>) {
        self.marks.sort_unstable();
        self.failed.sort_unstable();
        let mut printed = 0;
        for row in self.marks.chunks(ROW) {
            printed += row.len();
            let mut text = String::from_utf8_lossy(row).into_owned();
            if row.len() == ROW || !self.failed.is_empty() {
                text.push_str(&format!(" {printed}/{total}"));
            }
            out.push(text);
        }
        if self.open && !self.failed.is_empty() {
            self.failed.push(String::new());
        }
        out.append(&mut self.failed);
    }
}

/// Returns the marks of `..i 3/7`; empty if the line is not such a row.
fn marks_of(line: &str) -> &str {
    let (marks, count) = line.split_once(' ').unwrap_or((line, "0/0"));
    let counts = count.split_once('/').is_some_and(|(done, total)| {
        [done, total]
            .iter()
            .all(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    });
    if counts && marks.bytes().all(|mark| matches!(mark, b'.' | b'i' | b'b')) {
        marks
    } else {
        ""
    }
}

/// `test name ... ok`.
fn is_status(line: &str) -> bool {
    line.strip_prefix("test ").is_some_and(|rest| {
        [" ... ok", " ... FAILED", " ... ignored"]
            .iter()
            .any(|end| rest.ends_with(end))
    })
}

/// `---- name stdout ----`.
fn is_section_head(line: &str) -> bool {
    line.starts_with("---- ") && line.ends_with(" ----")
}

/// `   4: sum::one`.
fn is_frame_name(line: &str) -> bool {
    let text = line.trim_start();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    digits > 0 && text[digits..].starts_with(": ")
}

/// The frame's name without its number, which depends on how many frames the standard library has.
fn without_number(line: &str) -> String {
    let name = line.split_once(": ").map_or(line, |(_, name)| name);
    format!("      {name}")
}

/// Returns whether a frame is in the repository: its path is relative or in the copy.
fn is_own(place: &str) -> bool {
    let path = place.trim_start().trim_start_matches("at ");
    !path.starts_with('/') && !path.starts_with("<home>") && !path.starts_with("<tmp>")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalize(text: &str) -> String {
        sort_results(text.lines().map(str::to_owned).collect()).join("\n")
    }

    #[test]
    fn thread_results_are_sorted_in_place() {
        let text = "running 2 tests\ntest b ... ok\ntest a ... FAILED\n\ntest z ... ok";
        assert_eq!(
            normalize(text),
            "running 2 tests\ntest a ... FAILED\ntest b ... ok\n\ntest z ... ok"
        );
    }

    #[test]
    fn quiet_results_put_failures_last() {
        let expected = "running 4 tests\n..i 3/4\na --- FAILED\n\nfailures:";
        for text in [
            "running 4 tests\n. 1/4\na --- FAILED\ni.\nfailures:",
            "running 4 tests\na --- FAILED\n.i.\nfailures:",
            "running 4 tests\n.i. 3/4\na --- FAILED\n\nfailures:",
        ] {
            assert_eq!(normalize(text), expected, "{text}");
        }
        assert_eq!(
            normalize("running 2 tests\n..\nend"),
            "running 2 tests\n..\nend"
        );
        assert_eq!(
            normalize("running 1 test\n... and more"),
            "running 1 test\n... and more"
        );
        assert_eq!(
            normalize("running 2 tests\nb --- FAILED\na --- FAILED"),
            "running 2 tests\na --- FAILED\nb --- FAILED"
        );
        let many = format!(
            "running 100 tests\n{} 88/100\n{}\nend",
            ".".repeat(88),
            ".".repeat(12)
        );
        assert_eq!(normalize(&many), many);
    }

    #[test]
    fn outputs_of_failed_tests_are_sorted_by_name() {
        let one = "failures:\n\n---- b stdout ----\n\nB\n\n---- a stdout ----\nA\n\n\nfailures:\n    a\n    b";
        let two = "failures:\n\n---- a stdout ----\nA\n\n---- b stdout ----\n\nB\n\n\nfailures:\n    a\n    b";
        assert_eq!(normalize(one), normalize(two));
        assert_eq!(
            normalize(one),
            "failures:\n\n---- a stdout ----\nA\n\n---- b stdout ----\n\nB\n\nfailures:\n    a\n    b"
        );
    }

    #[test]
    fn unterminated_sections_are_kept() {
        assert_eq!(
            normalize("---- b stdout ----\nB\n---- a stdout ----\nA"),
            "---- a stdout ----\nA\n\n---- b stdout ----\nB\n"
        );
    }

    #[test]
    fn backtrace_keeps_repository_frames() {
        let text = "panicked\nstack backtrace:\n   0: core::panicking::panic\n             at /rustc/abc/library/core/src/panicking.rs:80:14\n   \
                    1: sum::one\n             at ./src/lib.rs:2:20\n   2: noplace\nnote: Some details are omitted, run with x\nend";
        assert_eq!(
            normalize(text),
            "panicked\nstack backtrace:\n      sum::one\n             at ./src/lib.rs:2:20\nend"
        );
        let foreign = "stack backtrace:\n   0: core::panicking::panic\n             at /rustc/a.rs:80:14\nend";
        assert_eq!(normalize(foreign), "end");
    }
}
