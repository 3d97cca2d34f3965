//! Helps users who name a spec that does not exist: similar names of existing specs, and the workspace.

use crucible_model::{MAX_NAMES, MAX_SUGGESTIONS, nearest};

use super::SpecStore;
use crate::error::{SpecAbsence, SpecError};
use crate::id::SpecId;
use crate::workspace::WorkspaceFile;

impl SpecStore {
    /// The error that the spec does not exist, with what is in its place, and the most similar names of
    /// existing specs, or some names if none is similar.
    #[must_use]
    pub fn unknown_spec(&self) -> SpecError {
        self.absent(SpecAbsence::Nothing)
    }

    /// [`SpecStore::unknown`], with this reason.
    pub(super) fn absent(&self, why: SpecAbsence) -> SpecError {
        let workspace = WorkspaceFile::within(self.project.root());
        let is_listed = || {
            workspace
                .as_ref()
                .and_then(|file| file.load().ok())
                .is_some_and(|list| list.entry(&self.spec).is_some())
        };
        let why = match why {
            SpecAbsence::Nothing if is_listed() => SpecAbsence::NotBegun,
            why => why,
        };
        if why != SpecAbsence::Nothing {
            // No other name helps, and specs behind a link do not belong to this project.
            return SpecError::Unknown {
                spec: self.spec.clone(),
                why,
                near: Vec::new(),
                workspace: None,
            };
        }
        let names = self
            .dir
            .parent()
            .and_then(|specs| std::fs::read_dir(specs).ok());
        let mut current_spec_ids: Vec<SpecId> = names
            .into_iter()
            .flatten()
            .take(MAX_NAMES)
            .filter_map(|entry| {
                let entry = entry
                    .ok()
                    .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))?;
                entry.file_name().to_str()?.parse().ok()
            })
            .filter(|id| *id != self.spec)
            .collect();
        current_spec_ids.sort_unstable();
        let all: Vec<&str> = current_spec_ids.iter().map(SpecId::as_str).collect();
        let near = nearest(self.spec.as_str(), &all);
        let mut specs: Vec<SpecId> = current_spec_ids
            .iter()
            .filter(|id| near.contains(&id.as_str()))
            .cloned()
            .collect();
        if specs.is_empty() {
            specs = current_spec_ids;
        }
        specs.truncate(MAX_SUGGESTIONS);
        let workspace = workspace.map(|file| file.path().to_owned());
        SpecError::Unknown {
            spec: self.spec.clone(),
            why,
            near: specs,
            workspace,
        }
    }
}

impl SpecStore {
    /// Checks that no other spec has the same name in another case, unless this one exists: some file systems treat the two as one.
    ///
    /// # Errors
    ///
    /// [`SpecError::SpelledOtherwise`] with the existing one.
    pub(super) fn is_spelled_so(&self) -> Result<(), SpecError> {
        let spec_id = match self.alike_on_disk() {
            Alike::Same => None,
            Alike::Other(other) => Some(other),
            Alike::None => WorkspaceFile::within(self.project.root())
                .and_then(|file| file.load().ok())
                .and_then(|list| list.spelled_otherwise(&self.spec).cloned()),
        };
        match spec_id {
            Some(other) => Err(SpecError::SpelledOtherwise {
                spec: self.spec.clone(),
                other,
            }),
            None => Ok(()),
        }
    }

    /// The existing spec with the same name in another case, if this one does not exist.
    pub(crate) fn other_spelling(&self) -> Option<SpecId> {
        match self.alike_on_disk() {
            Alike::Other(other) => Some(other),
            Alike::Same | Alike::None => None,
        }
    }

    fn alike_on_disk(&self) -> Alike {
        let names = self
            .dir
            .parent()
            .and_then(|specs| std::fs::read_dir(specs).ok());
        let mut alike = Alike::None;
        for entry in names.into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(name) = name
                .to_str()
                .filter(|name| name.eq_ignore_ascii_case(self.spec.as_str()))
            else {
                continue;
            };
            if name == self.spec.as_str() {
                return Alike::Same;
            }
            if let Ok(other) = name.parse() {
                alike = Alike::Other(other);
            }
        }
        alike
    }
}

/// What exists under a spec's name, ignoring case.
enum Alike {
    None,
    Same,
    Other(SpecId),
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test lays out directories")]
mod tests {
    use super::*;
    use crate::project::SpecProject;

    fn near(root: &std::path::Path, expected: &str) -> (Vec<String>, bool) {
        match SpecStore::new(&SpecProject::at(root), expected.parse().unwrap()).unknown_spec() {
            SpecError::Unknown {
                near, workspace, ..
            } => (
                near.iter().map(ToString::to_string).collect(),
                workspace.is_some(),
            ),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn name_in_other_case_is_recognised() {
        let dir = tempfile::tempdir().unwrap();
        let project = SpecProject::at(dir.path());
        let lock = |id: &str| {
            SpecStore::new(&project, id.parse().unwrap())
                .lock("a test", super::super::LockClaim::IfFree)
        };
        lock("s1").unwrap();
        let error = lock("S1").unwrap_err();
        assert!(
            matches!(&error, SpecError::SpelledOtherwise { other, .. } if other.as_str() == "s1"),
            "{error}"
        );
        assert!(!project.spec(&"S1".parse().unwrap()).exists());
        lock("s1").unwrap();
        lock("s10").unwrap();
        // If both exist already, they are different specs.
        std::fs::create_dir(project.specs().join("S10")).unwrap();
        lock("s10").unwrap();
        lock("S10").unwrap();
        std::fs::write(
            dir.path().join("workspace.yaml"),
            "version: \"1\"\nname: x\nspecs: [{id: Later}]\n",
        )
        .unwrap();
        let message = lock("later").unwrap_err().to_string();
        assert!(message.contains("later differs from Later"), "{message}");
        lock("Later").unwrap();
    }

    #[test]
    fn nearest_spec_names_are_suggested_or_some() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(near(dir.path(), "export-data"), (vec![], false));
        let specs = dir.path().join(".crucible/specs");
        for name in ["export-data", "Export-Date", "zebra", "not a spec"] {
            std::fs::create_dir_all(specs.join(name)).unwrap();
        }
        std::fs::write(specs.join("exportdata"), "a file is not a spec").unwrap();
        let named = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            near(dir.path(), "exprot-data").0,
            named(&["Export-Date", "export-data"])
        );
        assert_eq!(near(dir.path(), "ZEBRAS").0, named(&["zebra"]));
        assert_eq!(
            near(dir.path(), "q").0,
            named(&["Export-Date", "export-data", "zebra"])
        );
        std::fs::write(dir.path().join("workspace.yaml"), "").unwrap();
        assert!(near(dir.path(), "q").1);
        for number in 0..30 {
            std::fs::create_dir_all(specs.join(format!("many-{number}"))).unwrap();
        }
        assert_eq!(near(dir.path(), "many-x").0.len(), MAX_SUGGESTIONS);
    }
}
