//! Go: `go.mod` at the top.

use super::{Detector, TreeView, command};

pub(super) struct Go;

impl Detector for Go {
    fn id(&self) -> &'static str {
        "go-test"
    }

    fn reads(&self) -> &'static [&'static str] {
        &[]
    }

    fn detect(&self, view: &TreeView) -> Option<(Vec<String>, String)> {
        let is_module = view.names.contains("go.mod");
        is_module.then(|| (command(&["go", "test", "./..."]), "there is a go.mod at the top".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::view;

    #[test]
    fn a_module_is_tested_with_all_its_packages() {
        assert_eq!(Go.detect(&view(&[("go.mod", "module x")])).unwrap().0, ["go", "test", "./..."]);
        assert!(Go.detect(&view(&[("go.sum", "")])).is_none());
    }
}
