//! A judgement as workflow commands, which GitHub shows as annotations of a pull request.
//!
//! A command is one line that begins with `::`. Findings may quote arbitrary text, so every character
//! that could end a line, a property or the command is escaped as runners expect, and every command
//! starts on a line of ours.

use crucible_model::Level;

use super::GateView;
use crate::gate::GateFinding;

/// The workflow commands for the findings of a view.
pub fn annotations(view: &GateView<'_>) -> impl Iterator<Item = String> {
    let line = |found| annotation(found, &view.places.file(found));
    view.findings.iter().map(line)
}

/// The workflow command for a gate that reached no verdict.
#[must_use]
pub fn unjudged(why: &str) -> String {
    format!("::error title=crucible gate::{}", message(why))
}

/// One finding as a workflow command.
fn annotation(found: &GateFinding, file: &str) -> String {
    let finding = &found.finding;
    let command = match finding.level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Info => "notice",
    };
    let message = message(&format!("{}: {}", finding.subject, finding.hint));
    format!(
        "::{command} file={},title={}::{message}",
        property(file),
        property(finding.code.as_str())
    )
}

/// Escapes a text as the message of a command.
fn message(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// Escapes a text as the property of a command.
fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use crucible_model::{Code, Finding};
    use proptest::prelude::*;

    use super::*;

    fn about(subject: &str, hint: &str) -> GateFinding {
        let finding = Finding::error(Code::new("gate-artifact-differs"), subject, hint);
        GateFinding {
            finding,
            file: subject.to_owned(),
        }
    }

    #[test]
    fn annotation_file_name_cannot_inject_commands() {
        let evil = "a,title=x::\r\n::set-env name=PATH::/tmp%0A::stop-commands::";
        assert_eq!(
            annotation(&about(evil, "Look."), evil),
            "::error file=a%2Ctitle=x%3A%3A%0D%0A%3A%3Aset-env name=PATH%3A%3A/tmp%250A%3A%3Astop-commands%3A%3A,\
             title=gate-artifact-differs::a,title=x::%0D%0A::set-env name=PATH::/tmp%250A::stop-commands::: Look."
        );
    }

    /// Undoes the escapes in the same order as a runner.
    fn undone(text: &str) -> String {
        let text = text
            .replace("%0D", "\r")
            .replace("%0A", "\n")
            .replace("%3A", ":")
            .replace("%2C", ",");
        text.replace("%25", "%")
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn every_finding_is_one_command_whatever_it_quotes(subject in any::<String>(), hint in any::<String>()) {
                let line = annotation(&about(&subject, &hint), &subject);
                prop_assert!(!line.contains(['\n', '\r']), "{line:?}");
                let rest = line.strip_prefix("::error ").unwrap();
                let (properties, message) = rest.split_once("::").unwrap();
                let properties: Vec<&str> = properties.split(',').collect();
                prop_assert_eq!(properties.len(), 2, "{:?}", properties);
                prop_assert_eq!(undone(properties[0].strip_prefix("file=").unwrap()), subject.as_str());
                prop_assert_eq!(properties[1], "title=gate-artifact-differs");
                prop_assert_eq!(undone(message), format!("{subject}: {hint}"));
            }
        }
    }
}
