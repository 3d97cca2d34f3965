//! The goal of a run for a task.

use std::collections::BTreeSet;

use crucible_evidence::NamedTest;

use super::{OutlineTask, SpecOutline};

/// Returns the goal of a run for a task: the task, and the requirements that it serves.
///
/// `defined` are the tests that exist. They are not named, because a goal opens the files that it names, and the tests that
/// check a change must not be part of it. Tests that do not exist are named, so that the change can add them.
#[must_use]
pub fn task_goal(
    outline: &SpecOutline,
    task: &OutlineTask,
    defined: &BTreeSet<NamedTest>,
) -> String {
    let mut goal = format!("{}\n", task.text);
    for detail in &task.details {
        goal.push_str(&format!("{detail}\n"));
    }
    goal.push_str(&format!(
        "\nThis is task {} of the spec {}.\n",
        task.id, outline.name
    ));
    for requirement in outline.served(task) {
        goal.push_str(&format!(
            "\nRequirement {}: {}\n",
            requirement.id, requirement.title
        ));
        if !requirement.text.is_empty() {
            goal.push_str(&format!("{}\n", requirement.text));
        }
        for test in requirement
            .tests
            .iter()
            .filter(|test| !defined.contains(test))
        {
            goal.push_str(&format!("Write the test {} in {}.\n", test.name, test.file));
        }
    }
    goal
}
