//! Rust: `Cargo.toml` at the top. Offline, because the sandbox has no network.

use super::{Detector, TreeView, command};

pub(super) struct Cargo;

impl Detector for Cargo {
    fn id(&self) -> &'static str {
        "cargo-test"
    }

    fn reads(&self) -> &'static [&'static str] {
        &["Cargo.toml"]
    }

    fn detect(&self, view: &TreeView) -> Option<(Vec<String>, String)> {
        let manifest =
            view.names.contains("Cargo.toml").then(|| view.text("Cargo.toml").unwrap_or_default())?;
        let mut words = command(&["cargo", "test", "--offline", "--quiet"]);
        // Without this, a package at the top would be tested and the other members would not.
        let is_workspace =
            toml::from_str::<toml::Table>(manifest).is_ok_and(|table| table.contains_key("workspace"));
        if is_workspace {
            words.push("--workspace".to_owned());
        }
        Some((words, "there is a Cargo.toml at the top".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::view;

    #[test]
    fn a_workspace_is_tested_as_a_whole() {
        let words = |manifest| Cargo.detect(&view(&[("Cargo.toml", manifest)])).unwrap().0.join(" ");
        assert_eq!(words("[package]\nname='x'"), "cargo test --offline --quiet");
        assert_eq!(words("[workspace]\nmembers=[]"), "cargo test --offline --quiet --workspace");
        assert_eq!(words("# [workspace]\n[broken"), "cargo test --offline --quiet");
        assert!(Cargo.detect(&view(&[("sub/Cargo.toml", "")])).is_none());
    }
}
