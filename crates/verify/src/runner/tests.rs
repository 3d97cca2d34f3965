//! Tests of all runners.

use super::*;
use crate::runner::tree_view::view;

#[test]
fn an_empty_tree_has_no_gates_and_a_mixed_one_has_several_in_order() {
    assert_eq!(TreeView::default().gates(), []);
    let mixed = view(&[("Makefile", "test:\n\ttrue\n"), ("go.mod", ""), ("Cargo.toml", "[package]\n")]);
    let ids: Vec<String> = mixed.gates().into_iter().map(|gate| gate.id).collect();
    assert_eq!(ids, ["cargo-test", "go-test", "make-test"]);
}
