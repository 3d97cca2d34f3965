//! The matrix for people, as Markdown.

use crucible_model::short_line;

use crate::matrix::{EvidenceMatrix, TestEvidence, TestOrigin, TestState};

/// The most characters of a cell.
const MAX_CELL: usize = 200;
/// The digits of a commit that a table shows.
const SHORT_COMMIT: usize = 12;

/// Returns the matrix as a Markdown document. Text of the spec is escaped, so it stays in its cell.
#[must_use]
pub fn to_markdown(matrix: &EvidenceMatrix) -> String {
    let counts = matrix.counts;
    let mut text = format!(
        "# Evidence: {}\n\nAt commit {}: {} proven, {} partial, {} without evidence.\n\n\
         | requirement | state | test | result | run | commit |\n|---|---|---|---|---|---|\n",
        cell(&matrix.spec),
        cell(&matrix.commit),
        counts.proven,
        counts.partial,
        counts.none
    );
    let mut row = |cells: [&str; 6]| {
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    };
    for requirement in &matrix.requirements {
        let name = cell(&format!("{}: {}", requirement.id, requirement.title));
        let state = requirement.state.words();
        if requirement.tests.is_empty() {
            row([&name, state, "", "", "", ""]);
        }
        for (at, test) in requirement.tests.iter().enumerate() {
            let (name, state) = if at == 0 {
                (name.as_str(), state)
            } else {
                ("", "")
            };
            let commit: String = test
                .commit
                .iter()
                .flat_map(|commit| commit.chars().take(SHORT_COMMIT))
                .collect();
            row([
                name,
                state,
                &cell(&test.name),
                result(test),
                test.run.as_ref().map_or("", |run| run.as_str()),
                &cell(&commit),
            ]);
        }
    }
    text
}

/// What is known of a test, in words.
fn result(test: &TestEvidence) -> &'static str {
    match (test.state, test.origin) {
        (TestState::Proven, Some(TestOrigin::Added)) => "passed, added by the run",
        (state, _) => state.words(),
    }
}

/// Escapes what Markdown or HTML would interpret.
fn cell(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in short_line(text, MAX_CELL).chars() {
        match c {
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '!' | '#' => {
                escaped.push('\\');
                escaped.push(c);
            }
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            _ => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{EvidenceCounts, EvidenceState, MatrixVersion, RequirementEvidence};
    use crate::task::SpecFormat;

    #[test]
    fn hostile_text_stays_in_its_cell() {
        let matrix = EvidenceMatrix {
            schema_version: MatrixVersion::V1,
            spec: "a|b".to_owned(),
            format: SpecFormat::Kiro,
            commit: "c".repeat(40),
            counts: EvidenceCounts::default(),
            requirements: vec![RequirementEvidence {
                id: "1.1".to_owned(),
                title: "x | proven\n| <img src=a> \u{202e}".to_owned(),
                state: EvidenceState::None,
                tests: vec![TestEvidence {
                    name: "t_1".to_owned(),
                    file: "t".to_owned(),
                    state: TestState::Proven,
                    run: None,
                    commit: Some("d".repeat(40)),
                    origin: Some(TestOrigin::Added),
                }],
            }],
        };
        let text = to_markdown(&matrix);
        assert_eq!(
            text.lines().last(),
            Some(
                "| 1.1: x \\| proven\\\\u{a}\\| &lt;img src=a&gt; \\\\u{202e} | no evidence | t\\_1 | passed, added by the run |  | dddddddddddd |"
            )
        );
    }
}
