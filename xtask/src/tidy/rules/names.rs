//! Names that do not describe the item are refused: words that are only a participle, and constructors called `of`.
//!
//! CONTRIBUTING has the rules for names. This rule covers what can be checked: functions, modules and variables.

use super::super::rule::{Report, Rule};
use super::super::source::{Kind, Token};
use super::super::workspace::Workspace;

/// Words that are not names of functions, modules or variables.
const PARTICIPLES: [&str; 7] = ["asked", "handed", "kept", "said", "says", "spoken", "told"];
/// The keywords before a name that is checked.
const DECLARE: [&str; 3] = ["fn", "let", "mod"];

/// Reports names that do not describe the item.
pub(in super::super) struct Names;

impl Rule for Names {
    fn name(&self) -> &'static str {
        "names"
    }

    fn check(&self, workspace: &Workspace, report: &mut Report<'_>) {
        for (_, file, parsed) in workspace.product_code() {
            for (line, name) in declared(&parsed.product) {
                if name == "of" {
                    let message = "rename the function `of` to `new`, `from_…`, `open` or `parse`";
                    report(&file.path, line, message.to_owned());
                } else if PARTICIPLES.contains(&name) {
                    let message = format!("rename `{name}` to a noun or a verb that describes it");
                    report(&file.path, line, message);
                }
            }
        }
    }
}

/// Returns the names that follow `fn`, `mod` and `let`, also after `mut`, each with its line.
fn declared(tokens: &[Token]) -> impl Iterator<Item = (usize, &str)> {
    tokens.iter().enumerate().filter_map(|(at, token)| {
        let declares = token.kind == Kind::Ident && DECLARE.contains(&token.text.as_str());
        let name = declares.then(|| {
            let mut rest = tokens.iter().skip(at + 1);
            rest.find(|token| !token.is("mut"))
        })??;
        (name.kind == Kind::Ident).then_some((name.line, name.text.as_str()))
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::rule_findings;
    use super::super::super::workspace::Package;
    use super::*;

    #[test]
    fn private_words_are_reported_as_names() {
        let source = "//! Owns a.\nmod told;\nfn of() {\n    let mut said = 1;\n    let asked_for = said;\n}\n\
                      struct S { said: u8 }\nfn message() { let message = s.said; }\n";
        let files = [("crates/a/src/lib.rs", source)];
        let workspace = Workspace::from_files(&files, vec![Package::sample("crucible-a")]);
        let lines: Vec<String> = rule_findings(&Names, &workspace)
            .iter()
            .filter_map(|finding| finding.split(' ').next().map(str::to_owned))
            .collect();
        let file = "crates/a/src/lib.rs";
        assert_eq!(
            lines,
            [
                format!("{file}:2:"),
                format!("{file}:3:"),
                format!("{file}:4:")
            ]
        );
    }
}
