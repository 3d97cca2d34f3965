//! just: a justfile with a recipe `test` or `check` that is not just another gate of the same tree.

use super::{
    Call, CommandOutput, NotRunReason, Runner, RunnerFiles, Tool, TreeView, command, recipe,
};
use crate::makefile::Makefile;

/// The names of justfiles.
const FILES: [&str; 3] = ["justfile", "Justfile", ".justfile"];

pub(super) struct Just;

impl Runner for Just {
    fn id(&self) -> &'static str {
        "just-test"
    }

    fn tool(&self) -> Tool {
        Tool {
            program: "just",
            install: "run `cargo install just --locked`",
        }
    }

    fn reads(&self) -> &'static [&'static str] {
        &FILES
    }

    fn detect(&self, view: &TreeView) -> Option<(Vec<String>, String)> {
        let name = view.first(&FILES)?;
        let text = view.text(name)?;
        let (recipe, commands) = ["test", "check"]
            .into_iter()
            .find_map(|name| Some((name, commands(text, name)?)))?;
        if recipe::adds_no_gate(&commands, &Makefile::default(), view) {
            return None;
        }
        Some((
            command(&["just", recipe]),
            format!("{name} has a recipe `{recipe}`"),
        ))
    }

    fn runs(&self, call: &Call<'_>) -> bool {
        call.program == "just"
    }

    fn calls_others(&self) -> bool {
        true
    }

    fn influence(&self) -> RunnerFiles {
        RunnerFiles {
            programs: &["just"],
            recipes: &FILES,
            ..RunnerFiles::default()
        }
    }

    fn obstacle(&self, output: &CommandOutput<'_>) -> Option<NotRunReason> {
        let remedy =
            "name the command that runs the tests: `crucible run start --test \"COMMAND\"`";
        let signs = [
            "error: Justfile does not contain recipe",
            "error: No justfile found",
        ];
        if let Some(line) = signs.iter().find_map(|sign| output.line_with(sign)) {
            return Some(NotRunReason::quoting(line, remedy));
        }
        let line = output
            .line_with("` failed ")
            .filter(|line| line.ends_with("with exit code 127"));
        let named = output
            .lines()
            .find(|line| line.ends_with(": not found") || line.ends_with("ommand not found"));
        let program = named?.rsplit(": ").nth(1).unwrap_or_default();
        line.and(named).map(|line| {
            NotRunReason::quoting(line, format!("install {program:?}, which the recipe runs"))
        })
    }
}

/// The lines of a recipe, or `None` without a recipe of this name: `test *args: build`, then indented lines.
fn commands(text: &str, recipe: &str) -> Option<Vec<String>> {
    let mut lines = text.lines();
    lines.find(|line| {
        let head = line.strip_prefix('@').unwrap_or(line);
        let rest = head
            .strip_prefix(recipe)
            .filter(|rest| rest.starts_with([':', ' ']));
        rest.is_some_and(|rest| rest.contains(':') && !rest.trim_start().starts_with(":="))
    })?;
    let body = lines.take_while(|line| line.starts_with([' ', '\t']) || line.trim().is_empty());
    let body = body
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("# "));
    Some(body.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use crate::runner::tree_view::view;

    #[test]
    fn recipe_of_its_own_is_a_gate() {
        let gates = |text: &str| -> Vec<String> {
            view(&[("justfile", text), ("go.mod", "")])
                .gates()
                .into_iter()
                .map(|gate| gate.id)
                .collect()
        };
        assert_eq!(
            gates("test *args: build\n    ./check.sh\n"),
            ["go-test", "just-test"]
        );
        assert_eq!(
            gates("build:\n    go build\n\ntest:\n    go test ./...\n"),
            ["go-test"]
        );
        assert_eq!(gates("test := 'x'\nlint: test\n"), ["go-test"]);
    }
}
