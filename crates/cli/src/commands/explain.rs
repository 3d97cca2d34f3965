//! `crucible explain`: what a finding code means and what to do.

use clap::Args;
use crucible_model::{ExitStatus, Failure, find_code};
use serde_json::json;

use crate::app::App;

/// Explain a finding code
///
/// Prints the section of the code from docs/codes. For example: `crucible explain patch-path-denied`
#[derive(Args)]
pub(crate) struct Explain {
    /// The code, such as patch-path-denied
    code: String,
}

impl Explain {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let section = find_code(&self.code).map_err(|near| {
            let hint = match near.as_slice() {
                [] => "Pass the code of a finding as it is printed, such as patch-path-denied."
                    .to_owned(),
                near => format!("Similar codes: {}", near.join(", ")),
            };
            Failure::usage(format!("unknown finding code {:?}", self.code)).hint(hint)
        })?;
        let page = format!("docs/codes/{}.md", section.family);
        app.output.show(
            || {
                json!({
                    "schema_version": "crucible-explain-v1",
                    "code": section.code,
                    "family": section.family,
                    "page": page,
                    "text": section.text,
                })
            },
            || {
                app.output.line(&format!(
                    "{}\n\n{}\n\npage: {page}",
                    section.code, section.text
                ));
            },
        )
    }
}
