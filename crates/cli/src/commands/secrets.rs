//! `crucible secrets`: the scanner on its own.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use crucible_host::fs::read_up_to;
use crucible_model::{ByteLimit, Code, ExitStatus, Failure, Finding, Verdict, counted};
use crucible_secrets::{Scanner, is_secret_file};

use crate::app::App;

const UNREAD: Code = Code::new("secrets-file-unread");
const SECRET_FILE: Code = Code::new("secrets-file");

/// A larger file is named, not read.
const MAX_FILE: ByteLimit = ByteLimit(64 * 1024 * 1024);

/// Find keys, tokens and passwords
#[derive(Subcommand)]
pub(crate) enum Secrets {
    Scan(Scan),
}

/// Scan files and directories for secrets; exit 8 on a finding
///
/// Directories are scanned recursively, without .git and files that git ignores. Secret values are never
/// printed. For example: `crucible secrets scan .`
#[derive(Args)]
pub(crate) struct Scan {
    /// Files or directories
    #[arg(required = true)]
    paths: Vec<PathBuf>,
}

impl Secrets {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let Self::Scan(scan) = self;
        let mut verdict = Verdict::default();
        let mut files = 0_u64;
        for root in &scan.paths {
            let absolute = app.absolute(root);
            if !absolute.exists() {
                return Err(Failure::usage(format!("{} does not exist", root.display()))
                    .hint("Name an existing file or directory, such as `.`."));
            }
            for found in crucible_host::walk::files(&absolute) {
                files += 1;
                match found {
                    Ok(path) => scan_file(&path, &absolute, root, &mut verdict),
                    Err(problem) => verdict.push(Finding::warning(
                        UNREAD,
                        problem,
                        "Make the file readable, or exclude it.",
                    )),
                }
            }
        }
        let passed = format!("no secret in {}", counted(files, "file"));
        let found = verdict.errors().count() > 0;
        app.output
            .verdict(&verdict.report("crucible-secrets-scan-v1"), &passed)?;
        Ok(if found {
            ExitStatus::SecretDetected
        } else {
            ExitStatus::Success
        })
    }
}

fn scan_file(path: &Path, root: &Path, named: &Path, verdict: &mut Verdict) {
    let relative = path.strip_prefix(root).unwrap_or(path);
    let file_path = if relative.as_os_str().is_empty() {
        named.to_owned()
    } else {
        named.join(relative)
    };
    let text = file_path.to_string_lossy();
    if is_secret_file(&text) {
        let hint = "Files of this name hold secrets: keep them out of the repository.";
        verdict.push(Finding::warning(SECRET_FILE, text.as_ref(), hint));
    }
    match read_up_to(path, MAX_FILE) {
        Ok(bytes) => verdict.merge(crucible_secrets::findings(
            &Scanner::builtin().scan(&bytes),
            &text,
        )),
        Err(error) => verdict.push(Finding::warning(UNREAD, text.as_ref(), error.to_string())),
    }
}
