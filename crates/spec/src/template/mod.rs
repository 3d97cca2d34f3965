//! Templates: problem statements from which to start a spec.
//!
//! A template is a folder beside this file with an `idea.md`, the problem statement for the model, and a
//! `README.md` with the next commands; both are compiled into the program. [`TEMPLATES`] lists them:
//! adding one takes a folder and an entry.

mod start;

use crate::id::SpecId;

pub use start::{OnExisting, StartedSpec, TemplateStart};

/// A problem statement from which to start a spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpecTemplate {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its purpose, in one line.
    pub summary: &'static str,
    /// The problem statement. It works as it is; the parts to adapt are marked with `Yours:`.
    pub idea: &'static str,
    readme: &'static str,
}

/// All templates, in name order.
pub const TEMPLATES: &[SpecTemplate] = &[
    SpecTemplate {
        name: "docs-refactor",
        summary: "put the documentation of a project in order",
        idea: include_str!("docs-refactor/idea.md"),
        readme: include_str!("docs-refactor/README.md"),
    },
    SpecTemplate {
        name: "fullstack-web",
        summary: "a web application: browser, server and storage",
        idea: include_str!("fullstack-web/idea.md"),
        readme: include_str!("fullstack-web/README.md"),
    },
    SpecTemplate {
        name: "python-service",
        summary: "a service in Python with a queue and a database",
        idea: include_str!("python-service/idea.md"),
        readme: include_str!("python-service/README.md"),
    },
    SpecTemplate {
        name: "rust-service",
        summary: "a service in Rust: one binary, one file of data",
        idea: include_str!("rust-service/idea.md"),
        readme: include_str!("rust-service/README.md"),
    },
];

/// The placeholder for the spec's id in a README.
const ID: &str = "SPEC-ID";

impl SpecTemplate {
    /// The template with this name, if there is one.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        TEMPLATES.iter().find(|template| template.name == name)
    }

    /// The README with the next commands for this spec.
    #[must_use]
    pub fn readme(&self, spec: &SpecId) -> String {
        self.readme.replace(ID, spec.as_str())
    }
}

#[cfg(test)]
mod tests {
    use crucible_model::{Untrusted, says_nothing};
    use crucible_secrets::Scanner;

    use super::*;
    use crate::packet::{EntryKind, PacketEntry, PacketLimits, build_packet};

    #[test]
    fn every_template_is_complete_with_placeholders() {
        for template in TEMPLATES {
            let parts = [
                "## The problem",
                "## What is wanted",
                "## How good it has to be",
                "## Not wanted",
            ];
            for part in parts {
                assert!(template.idea.contains(part), "{}: {part}", template.name);
            }
            assert!(
                template.idea.matches("<!-- Yours:").count() >= 5,
                "{}",
                template.name
            );
            assert!(
                !says_nothing(template.idea) && template.idea.ends_with("-->\n"),
                "{}",
                template.name
            );
            assert!(
                Scanner::builtin().scan(template.idea.as_bytes()).is_empty(),
                "{}",
                template.name
            );
            let idea = PacketEntry {
                kind: EntryKind::Idea,
                name: "idea".to_owned(),
                content: Untrusted::new(template.idea),
            };
            let packet = build_packet(vec![idea], PacketLimits::default()).unwrap();
            assert!(
                packet.manifest.bytes < PacketLimits::default().max_bytes / 8,
                "{}",
                template.name
            );
        }
    }

    #[test]
    fn names_are_spec_ids_and_in_order() {
        assert!(TEMPLATES.is_sorted_by_key(|template| template.name));
        for template in TEMPLATES {
            assert!(template.name.parse::<SpecId>().is_ok());
            assert_eq!(SpecTemplate::find(template.name), Some(template));
        }
        assert_eq!(SpecTemplate::find("no-such"), None);
    }

    #[test]
    fn template_readme_names_the_created_spec() {
        let spec: SpecId = "export-data".parse().unwrap();
        for template in TEMPLATES {
            let readme = template.readme(&spec);
            assert!(
                readme.starts_with("# export-data\n") && !readme.contains(ID),
                "{readme}"
            );
            for command in [
                "spec export-data --through tasks",
                "status export-data",
                "gate export-data",
            ] {
                assert!(
                    readme.contains(&format!("\ncrucible {command}\n")),
                    "{command}"
                );
            }
        }
    }
}
