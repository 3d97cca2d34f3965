//! The report of a run: one HTML file that opens anywhere.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crucible_view::RunView;
use sha2::{Digest, Sha256};

use crate::error::ServeError;
use crate::pages::{STYLE, Style, full_run_page};

/// Returns the report of a run as one HTML file. It loads nothing, has no script, and allows no style but its own.
///
/// # Errors
///
/// Fails when the template cannot be rendered.
pub fn html_report(run: &RunView) -> Result<String, ServeError> {
    // A browser hashes the text between the tags.
    let text = STYLE;
    let digest = STANDARD.encode(Sha256::digest(text.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    );
    full_run_page(run, Style { text, policy })
}
