//! Removes from a log what differs between two identical runs: the copy's path, durations, process ids, the
//! order of threads, build progress.
//!
//! A replay sends a fixer the same bytes only if this is complete, so the rules are broad where a machine
//! speaks and narrow where a test may print the same shape as its result: a duration is taken out only where
//! a known tool writes one.

use std::borrow::Cow;
use std::path::Path;

use crucible_secrets::Scanner;

use super::{diagnostics, libtest, line};

/// Replaces known directories by names and removes values that vary between runs.
#[derive(Debug, Clone, Default)]
pub struct Normaliser {
    places: Vec<(String, &'static str)>,
}

impl Normaliser {
    /// For gates that ran in `copy`, which becomes `<copy>`.
    #[must_use]
    pub fn new(copy: &Path) -> Self {
        Self::default().also(copy, "<copy>")
    }

    /// Also replaces `place` by `name`, such as a private build directory by `<target>`.
    #[must_use]
    pub fn also(mut self, place: &Path, name: &'static str) -> Self {
        let text = place.to_string_lossy();
        let text = text.trim_end_matches('/');
        if text.len() > 1 {
            self.places.push((text.to_owned(), name));
            // A directory inside another one must be searched first.
            self.places
                .sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.cmp(b)));
        }
        self
    }

    /// Returns the log as text without varying values. Invalid UTF-8 becomes U+FFFD. Secrets are searched
    /// again, because a colour code may have divided one.
    #[must_use]
    pub fn apply(&self, log: &[u8]) -> String {
        let text = String::from_utf8_lossy(log);
        let lines = text.lines().filter_map(|raw| self.line(raw)).collect();
        let lines = libtest::sort_results(diagnostics::sort_diagnostics(lines));
        let mut out = String::with_capacity(text.len());
        for line in lines {
            out.push_str(&line);
            out.push('\n');
        }
        match Scanner::builtin().redact(&out).text {
            Cow::Owned(redacted) => redacted,
            Cow::Borrowed(_) => out,
        }
    }

    /// A name on one line, without control characters and the path of the copy.
    pub(crate) fn name(&self, raw: &str) -> String {
        let places = self.places.iter();
        let text = places.fold(line::visible(raw), |text, (place, name)| {
            line::replace_path(text, place, name)
        });
        // Some runners name the files of tests from the root on.
        text.replace("<copy>/", "")
    }

    /// Returns one line, or `None` if it only shows build progress.
    fn line(&self, raw: &str) -> Option<String> {
        let mut text = line::visible(raw);
        if line::is_progress(&text) {
            return None;
        }
        for (place, name) in &self.places {
            text = line::replace_path(text, place, name);
        }
        text = line::replace_user_places(text);
        text = line::without_process_ids(text);
        text = line::without_durations(text);
        text = line::without_leading_instant(text);
        text = line::without_hashes_and_addresses(text);
        text = line::without_ports(text);
        text.truncate(text.trim_end().len());
        Some(text)
    }
}

/// [`Normaliser::apply`] for gates that ran in `copy`.
#[must_use]
pub fn normalise(log: &[u8], copy: &Path) -> String {
    let text = Normaliser::new(copy).apply(log);
    // A message of one line stays one.
    if log.ends_with(b"\n") {
        text
    } else {
        text.trim_end_matches('\n').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(text: &str) -> String {
        normalise(text.as_bytes(), Path::new("/data/tmp/run-1/copy"))
    }

    #[test]
    fn two_runs_of_the_same_failure_read_alike() {
        let log = |copy: &str, id: &str, time: &str, hash: &str, first: &str, second: &str| {
            format!(
                "   Compiling p v0.1.0 ({copy})\n\u{1b}[32m    Finished\u{1b}[0m `test` profile [unoptimized] target(s) in {time}s\n\
                 \x20    Running unittests src/lib.rs (target/debug/deps/p-{hash})\n\nrunning 2 tests\n{first}\n{second}\n\n\
                 thread 'tests::a' ({id}) panicked at {copy}/src/lib.rs:3:5:\nassertion failed: `5s` == `(0.5)`\n\
                 test result: FAILED. 1 passed; 1 failed; finished in {time}s\nobject at 0x7f{id}aa{id}\n"
            )
        };
        let (a, b) = ("test tests::a ... FAILED", "test tests::b ... ok");
        let one = log(
            "/data/tmp/x1/copy",
            "12345",
            "0.01",
            "0123456789abcdef",
            a,
            b,
        );
        let two = log(
            "/var/elsewhere/copy",
            "99999",
            "61.70",
            "fedcba9876543210",
            b,
            a,
        );
        let one = normalise(one.as_bytes(), Path::new("/data/tmp/x1/copy"));
        let two = normalise(two.as_bytes(), Path::new("/var/elsewhere/copy"));
        assert_eq!(one, two);
        assert!(one.contains("panicked at <copy>/src/lib.rs:3:5:"), "{one}");
        assert!(one.contains("assertion failed: `5s` == `(0.5)`"), "{one}");
        assert!(!one.contains("Compiling"), "{one}");
    }

    #[test]
    fn secret_split_by_color_code_is_found() {
        let token = format!("{}{}", "ghp_aB3dE5fG7h", "I9jK1lM3nO5pQ7rS9tU1vW3xY5");
        for between in ["\u{1b}[0m", "\u{1b}[31;1m", "\u{8}"] {
            let log = format!("token {}{between}{} of mine\n", &token[..14], &token[14..]);
            let text = clean(&log);
            assert!(!text.contains(&token) && text.contains("of mine"), "{text}");
        }
        assert!(!clean(&token).contains(&token));
    }

    #[test]
    fn durations_go_where_tools_write_them() {
        let cases = [
            (
                "=== 1 failed, 2 passed in 0.03s ===",
                "=== 1 failed, 2 passed in <time> ===",
            ),
            ("1 failed in 61.02s (0:01:01)", "1 failed in <time>"),
            ("--- FAIL: TestA (0.00s)", "--- FAIL: TestA (<time>)"),
            ("FAIL\texample.com/a\t0.003s", "FAIL\texample.com/a\t<time>"),
            (
                "ok  \texample.com/a\t(cached)",
                "ok  \texample.com/a\t(cached)",
            ),
            (
                "        FAIL [   0.006s] p tests::a",
                "        FAIL [<time>] p tests::a",
            ),
            ("  ✓ adds (5 ms)", "  ✓ adds (<time>)"),
            ("Time:        1.234 s", "Time: <time>"),
            ("  duration_ms: 1.25", "  duration_ms: <time>"),
            ("# duration_ms 57.1", "# duration_ms <time>"),
            ("Ran 3 tests in 0.001s", "Ran 3 tests in <time>"),
            (
                "Finished `dev` profile in 4.53s",
                "Finished `dev` profile in <time>",
            ),
            ("target(s) in 1m 02s", "target(s) in <time>"),
        ];
        for (text, expected) in cases {
            assert_eq!(clean(text), expected);
        }
    }

    #[test]
    fn compared_values_are_not_normalised() {
        for text in [
            "  left: 5s",
            "expected 30s, got 29.5s",
            "assert parse('10 ms') == 10",
            "wait(3) returned 4",
            "E   assert 0.25 == 0.5",
            "bits 0xdeadbeef",
            "due 2026-01-31T09:30:00Z",
            "port 127.0.0.1:8080",
            "pid control loop",
            "in 3 steps",
        ] {
            assert_eq!(clean(text), text);
        }
    }

    #[test]
    fn paths_ids_and_addresses_go() {
        let cases = [
            ("at /data/tmp/run-1/copy/src/a.rs:1", "at <copy>/src/a.rs:1"),
            ("'/data/tmp/run-1/copy'", "'<copy>'"),
            (
                "/data/tmp/run-1/copying stays",
                "/data/tmp/run-1/copying stays",
            ),
            ("file:///data/tmp/run-1/copy/a", "file://<copy>/a"),
            ("open /tmp/pytest-of-me/pytest-0/x", "open <tmp>/pytest-0/x"),
            (
                "/home/someone/.cargo/registry/a.rs",
                "<home>/.cargo/registry/a.rs",
            ),
            ("/root/.cargo/a", "<home>/.cargo/a"),
            ("src/tmp/a and /tmp", "src/tmp/a and /tmp"),
            (
                "thread '<unnamed>' (42) panicked",
                "thread '<unnamed>' panicked",
            ),
            (
                "killed pid 4321 now, pid=9",
                "killed pid <pid> now, pid=<pid>",
            ),
            (
                "<Foo object at 0x7f12ab34cd56>",
                "<Foo object at <address>>",
            ),
            (
                "deps/foo-0123456789abcdef (signal: 6)",
                "deps/foo-<hash> (signal: 6)",
            ),
            ("2026-01-31T09:30:00.123Z WARN x", "<instant> WARN x"),
            ("[2026-01-31 09:30:00] x", "[<instant>] x"),
            ("2026/01/31 09:30:00 listening", "<instant> listening"),
            (
                "connect 127.0.0.1:45123 refused",
                "connect 127.0.0.1:<port> refused",
            ),
            ("10%\r50%\r100% done", "100% done"),
            ("\u{1b}]0;title\u{7}\u{1b}[1;31mred\u{1b}[0m", "red"),
        ];
        for (text, expected) in cases {
            assert_eq!(clean(text), expected);
        }
    }

    #[test]
    fn normalising_is_idempotent() {
        let log = "thread 'a' (12) panicked at /tmp/x/y.rs in 0.1s\nFAIL [  0.1s] a\n\u{1b}[1mx\n\rTime: 3 s\n";
        assert_eq!(clean(&clean(log)), clean(log));
    }

    #[test]
    fn hostile_logs_are_normalised_in_linear_time() {
        for piece in [
            "\u{1b}[",
            "/tmp/",
            "(",
            "0x",
            " in ",
            "thread '",
            "\r",
            "-0123456789abcde",
            "pid ",
            "é",
        ] {
            let log = piece.repeat(100_000);
            assert!(clean(&log).len() <= 4 * log.len());
        }
    }
}
