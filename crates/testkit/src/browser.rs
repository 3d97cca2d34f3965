//! Pages in a real Chromium, which `cargo xtask test` installs with the packages that drive it.
//!
//! A job is one JSON document, and so is what the browser saw. `browser/judge.mjs` judges the pages of a server, and
//! `browser/hostile.mjs` opens files whose texts attack the page.
//!
//! What always holds: a missing browser fails the test that asked for it; the browser ends with the job.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

/// What a browser does with a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrowserJob {
    /// Judge the pages of a server.
    Judge,
    /// Open files whose texts attack the page.
    Hostile,
    /// Open one page in many tabs, until each shows a change.
    Tabs,
}

/// Does a job in a browser of its own, and returns what it reports.
///
/// # Panics
/// When the browser or the packages are missing, or the job fails.
#[must_use]
pub fn in_browser(kind: BrowserJob, mut job: Value) -> Value {
    let testkit = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let tools = testkit.join("../../.tools/browser");
    let tools = tools
        .canonicalize()
        .expect(".tools/browser is missing: run `cargo xtask test`, which installs it");
    let script = match kind {
        BrowserJob::Judge => "browser/judge.mjs",
        BrowserJob::Hostile => "browser/hostile.mjs",
        BrowserJob::Tabs => "browser/tabs.mjs",
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let chromium = std::env::split_paths(&path)
        .map(|folder| folder.join("chromium"))
        .find(|program| program.is_file())
        .expect("chromium is missing: run `cargo xtask test`, which installs it");
    job["chromium"] = chromium.to_string_lossy().into();
    let home = tempfile::tempdir().expect("a temporary directory");
    let mut process = Command::new(tools.join("node"))
        .arg(testkit.join(script))
        .arg(&tools)
        .env("HOME", home.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node starts");
    let mut input = process.stdin.take().expect("standard input");
    input
        .write_all(job.to_string().as_bytes())
        .expect("the job is written");
    drop(input);
    let output = process.wait_with_output().expect("the job ends");
    assert!(
        output.status.success(),
        "{script} failed: {}",
        output.status
    );
    serde_json::from_slice(&output.stdout).expect("the browser reports JSON")
}
