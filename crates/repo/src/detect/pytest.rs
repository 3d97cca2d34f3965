//! Python: settings that speak of pytest, or files that it would collect.

use super::{Detector, TreeView, command};

pub(super) struct Pytest;

impl Detector for Pytest {
    fn id(&self) -> &'static str {
        "pytest"
    }

    fn reads(&self) -> &'static [&'static str] {
        &["pyproject.toml", "setup.cfg", "tox.ini"]
    }

    fn detect(&self, view: &TreeView) -> Option<(Vec<String>, String)> {
        let settings = ["pytest.ini", ".pytest.ini"].into_iter().find(|name| view.names.contains(*name));
        let speaks = |name: &&&str| view.text(name).is_some_and(|text| text.contains("pytest"));
        let mentions = self.reads().iter().find(speaks).copied();
        let why = if let Some(name) = settings {
            format!("there is a {name} at the top")
        } else if let Some(name) = mentions {
            format!("{name} speaks of pytest")
        } else {
            let file = view.names.iter().find(|name| is_test_file(name))?;
            format!("pytest would collect {file}")
        };
        // Without its cache pytest writes nothing into the tree that is checked.
        Some((command(&["python3", "-m", "pytest", "-q", "-p", "no:cacheprovider"]), why))
    }
}

fn is_test_file(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    file.strip_suffix(".py").is_some_and(|stem| stem.starts_with("test_") || stem.ends_with("_test"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::view;

    #[test]
    fn settings_or_test_files_give_pytest_away() {
        let found = |name, text| Pytest.detect(&view(&[(name, text)])).map(|(_, why)| why);
        assert!(found("pytest.ini", "").is_some());
        assert!(found("pyproject.toml", "[tool.pytest.ini_options]").is_some());
        assert!(found("setup.cfg", "[tool:pytest]").is_some());
        assert_eq!(found("tests/test_a.py", "").unwrap(), "pytest would collect tests/test_a.py");
        assert!(found("a_test.py", "").is_some());
        for (name, text) in
            [("pyproject.toml", "[project]"), ("tests/data.py", ""), ("test_a.rs", ""), ("latest_.py", "")]
        {
            assert_eq!(found(name, text), None, "{name}");
        }
    }
}
