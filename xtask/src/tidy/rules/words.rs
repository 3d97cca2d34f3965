//! Words that do not belong in any file: host names of package registries.
//!
//! Where packages come from is the reader's configuration, not ours. The names are kept in two halves,
//! so that this file does not hold what it forbids. `Cargo.lock` is cargo's own text.

use super::super::rule::{Report, Rule};
use super::super::workspace::Workspace;

const FORBIDDEN: &[(&str, &str)] = &[
    ("crates", ".io"),
    ("pypi", ".org"),
    ("pythonhosted", ".org"),
    ("npmjs", ".com"),
    ("npmjs", ".org"),
    ("deb.debian", ".org"),
];

/// No file holds one of the forbidden words, in any case.
pub(in super::super) struct Words;

impl Rule for Words {
    fn name(&self) -> &'static str {
        "words"
    }

    fn check(&self, workspace: &Workspace, report: &mut Report<'_>) {
        let forbidden: Vec<String> = FORBIDDEN
            .iter()
            .map(|(head, tail)| format!("{head}{tail}"))
            .collect();
        for file in workspace.files().filter(|file| file.path != "Cargo.lock") {
            let text = file.text.to_ascii_lowercase();
            for word in &forbidden {
                for (at, _) in text.match_indices(word.as_str()) {
                    let line = 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
                    report(
                        &file.path,
                        line,
                        format!("`{word}` does not belong here: name the package, not the host"),
                    );
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::rule_findings;
    use super::*;

    #[test]
    fn a_registry_host_is_named_with_its_line() {
        let (head, tail) = FORBIDDEN[0];
        let text = format!("one\nsee https://{}{tail}/x\n", head.to_uppercase());
        let files = [
            ("README.md", text.as_str()),
            ("Cargo.lock", text.as_str()),
            ("notes.md", "crates and .io apart"),
        ];
        let findings = rule_findings(&Words, &Workspace::from_files(&files, vec![]));
        assert_eq!(findings.len(), 1);
        assert!(findings[0].starts_with("README.md:2: "));
    }
}
