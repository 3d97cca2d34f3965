//! Anything else: a Makefile with a target `test`.

use super::{Detector, TreeView, command};

pub(super) struct Make;

impl Detector for Make {
    fn id(&self) -> &'static str {
        "make-test"
    }

    fn reads(&self) -> &'static [&'static str] {
        // In the order in which make takes them; it reads the first one only.
        &["GNUmakefile", "makefile", "Makefile"]
    }

    fn detect(&self, view: &TreeView) -> Option<(Vec<String>, String)> {
        let name = self.reads().iter().find(|name| view.names.contains(**name))?;
        let has_target = view.text(name)?.lines().any(is_test_rule);
        has_target.then(|| (command(&["make", "test"]), format!("{name} has a target `test`")))
    }
}

/// Whether a line begins a rule that makes `test`: targets, a colon, and not the `:=` of a variable.
fn is_test_rule(line: &str) -> bool {
    let Some((targets, rest)) = line.split_once(':') else {
        return false;
    };
    let is_rule = !rest.starts_with('=') && !rest.starts_with(":=") && !line.starts_with([' ', '\t', '#']);
    is_rule && targets.split_whitespace().any(|target| target == "test")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::view;

    #[test]
    fn only_a_rule_for_test_counts() {
        for rule in ["test:", "test: build", "check test: a", "test::", "all:\n\ntest :\n\ttrue"] {
            assert!(Make.detect(&view(&[("Makefile", rule)])).is_some(), "{rule}");
        }
        for other in
            ["test := 1", "test ::= 1", "tests:", ".PHONY: test", "\ttest: x", "# test: x", "build: test", ""]
        {
            assert!(Make.detect(&view(&[("Makefile", other)])).is_none(), "{other}");
        }
        let shadowed = view(&[("GNUmakefile", "all:"), ("Makefile", "test:")]);
        assert!(Make.detect(&shadowed).is_none());
    }
}
