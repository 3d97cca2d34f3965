//! What tests share that ask a real model on this machine: where its server is, and the line of summary that each leaves.
//!
//! What always holds: started without the server, or where real models are forbidden, such a test fails and says so; none skips. A
//! line whose verdict never came says that its test failed.

use std::fs::File;
use std::io::Write;
use std::time::Instant;

use serde_json::json;

const HOW_TO_RUN: &str = "run `cargo xtask test --live`, which starts the server for these tests";

/// Where the model server listens, as `http://host:port`.
///
/// # Panics
///
/// Where real models are forbidden, or no server was started for the tests.
#[must_use]
pub fn live_address() -> String {
    assert_ne!(
        variable("CRUCIBLE_SKIP_LLM_TESTS").as_deref(),
        Some("1"),
        "real models are forbidden here"
    );
    let asked_for = variable("CRUCIBLE_REAL_LLM_TESTS").as_deref() == Some("1");
    variable("CRUCIBLE_LIVE_ADDRESS")
        .filter(|_| asked_for)
        .expect(HOW_TO_RUN)
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The line that a live test leaves when it is dropped.
#[derive(Debug)]
pub struct LiveLine {
    test: &'static str,
    asked: &'static str,
    begun: Instant,
    file: File,
    /// Who answered, and with which model.
    pub by: (String, String),
    /// Tokens that went in and came out, where they are known.
    pub tokens: (Option<u64>, Option<u64>),
    verdict: String,
}

impl LiveLine {
    /// Of a test that asks this.
    ///
    /// # Panics
    ///
    /// Where the tests were not started by `cargo xtask test --live`.
    #[must_use]
    pub fn new(test: &'static str, prompt: &'static str) -> Self {
        let path = variable("CRUCIBLE_LIVE_SUMMARY").expect(HOW_TO_RUN);
        let file = File::options()
            .create(true)
            .append(true)
            .open(path)
            .expect("the summary can be written");
        let nobody = || "–".to_owned();
        Self {
            test,
            asked: prompt,
            begun: Instant::now(),
            file,
            by: (nobody(), nobody()),
            tokens: (None, None),
            verdict: "FAILED".to_owned(),
        }
    }

    /// Everything was as it should be.
    pub fn passed(mut self, verdict: impl Into<String>) {
        self.verdict = verdict.into();
    }
}

impl Drop for LiveLine {
    fn drop(&mut self) {
        let line = json!({
            "test": self.test, "asked": self.asked, "provider": self.by.0, "model": self.by.1,
            "tokens_input": self.tokens.0, "tokens_output": self.tokens.1,
            "seconds": self.begun.elapsed().as_secs_f64(), "verdict": self.verdict,
        });
        // Who started this suite counts the lines, so one that cannot be written is missed there.
        let _missed = self.file.write_all(format!("{line}\n").as_bytes());
    }
}
