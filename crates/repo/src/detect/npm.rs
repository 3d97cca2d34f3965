//! JavaScript: a `test` script in `package.json` that is not the one `npm init` writes.

use super::{Detector, TreeView, command};

pub(super) struct Npm;

impl Detector for Npm {
    fn id(&self) -> &'static str {
        "npm-test"
    }

    fn reads(&self) -> &'static [&'static str] {
        &["package.json"]
    }

    fn detect(&self, view: &TreeView) -> Option<(Vec<String>, String)> {
        let manifest: serde_json::Value = serde_json::from_str(view.text("package.json")?).ok()?;
        let script = manifest.get("scripts")?.get("test")?.as_str()?.trim();
        // The placeholder always fails, and says so in these words.
        let is_real = !script.is_empty() && !script.contains("no test specified");
        is_real.then(|| (command(&["npm", "test"]), "package.json has a test script".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::view;

    #[test]
    fn only_a_script_that_tests_counts() {
        let found = |text| Npm.detect(&view(&[("package.json", text)])).is_some();
        assert!(found(r#"{"scripts":{"test":"node --test"}}"#));
        assert!(!found(r#"{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}"#));
        for bad in
            [r#"{"scripts":{"test":" "}}"#, r#"{"scripts":{"test":1}}"#, r#"{"scripts":[]}"#, "{}", "[", ""]
        {
            assert!(!found(bad), "{bad}");
        }
    }
}
