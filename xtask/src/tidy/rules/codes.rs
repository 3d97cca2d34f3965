//! Every finding code has a section in `docs/codes/`, and every section explains a code that exists.
//!
//! `Code::new("patch-path-denied")` in a crate requires `## patch-path-denied` in `docs/codes/patch.md`.

use std::collections::BTreeMap;

use super::super::rule::{Report, Rule};
use super::super::source::{self, Token};
use super::super::workspace::Workspace;

const FOLDER: &str = "docs/codes/";

/// Compares the codes in the source with the headings in `docs/codes/`.
pub(in super::super) struct Codes;

impl Rule for Codes {
    fn name(&self) -> &'static str {
        "codes"
    }

    fn check(&self, workspace: &Workspace, report: &mut Report<'_>) {
        let headings = headings(workspace);
        let mut codes_in_source = BTreeMap::new();
        for (package, file, parsed) in workspace.product_code() {
            if !package.folder.starts_with("crates/") {
                continue;
            }
            for (line, code) in codes(&parsed.product) {
                match code {
                    None => {
                        let message = "the code is not a string literal, so this rule cannot check it; pass a literal";
                        report(&file.path, line, message.to_owned());
                    }
                    Some(code) => {
                        codes_in_source
                            .entry(code.to_owned())
                            .or_insert_with(|| (file.path.clone(), line));
                    }
                }
            }
        }
        for (code, (path, line)) in &codes_in_source {
            match page(code) {
                None => report(
                    path,
                    *line,
                    format!(
                        "`{code}` is not lowercase words joined by `-`; rename it to `FAMILY-WORDS`"
                    ),
                ),
                Some(page) if !headings.contains_key(&(page.as_str(), code.as_str())) => {
                    report(
                        path,
                        *line,
                        format!("`{code}` has no heading `## {code}` in {page}"),
                    );
                }
                Some(_) => {}
            }
        }
        for ((path, code), line) in &headings {
            if !codes_in_source.contains_key(*code) {
                report(
                    path,
                    *line,
                    format!("no code in the source is named `{code}`"),
                );
            } else if page(code).as_deref() != Some(*path) {
                report(
                    path,
                    *line,
                    format!("`{code}` belongs in the page of its family; move the section there"),
                );
            }
        }
    }
}

/// The page of a well-formed code's family.
fn page(code: &str) -> Option<String> {
    let word = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let (family, rest) = code.split_once('-')?;
    (word(family) && rest.split('-').all(word)).then(|| format!("{FOLDER}{family}.md"))
}

fn codes(tokens: &[Token]) -> impl Iterator<Item = (usize, Option<&str>)> {
    source::paths(tokens).into_iter().filter_map(|path| {
        let is_call = path.ends_with(&["Code", "new"])
            && tokens.get(path.end).is_some_and(|token| token.is("("));
        let closes = tokens
            .get(path.end + 2)
            .is_some_and(|token| token.is(")") || token.is(","));
        let literal = tokens
            .get(path.end + 1)
            .filter(|_| closes)
            .and_then(Token::string);
        is_call.then_some((path.line, literal))
    })
}

/// Each heading of the second level with its page and line; fenced text is not a heading.
fn headings(workspace: &Workspace) -> BTreeMap<(&str, &str), usize> {
    let mut found = BTreeMap::new();
    for file in workspace.files() {
        let is_page = file.path.starts_with(FOLDER)
            && file.path.ends_with(".md")
            && !file.path.ends_with("/README.md");
        if !is_page {
            continue;
        }
        let mut is_fenced = false;
        for (at, line) in file.text.lines().enumerate() {
            if line.starts_with("```") {
                is_fenced = !is_fenced;
            } else if let Some(heading) = line.strip_prefix("## ").filter(|_| !is_fenced) {
                found.insert(
                    (file.path.as_str(), heading.trim().trim_matches('`')),
                    at + 1,
                );
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::super::rule_findings;
    use super::super::super::workspace::Package;
    use super::*;

    fn findings_of(code: &str, page: (&str, &str)) -> Vec<String> {
        let files = [
            ("crates/a/src/lib.rs", code),
            page,
            ("docs/codes/README.md", "## how to read these"),
        ];
        rule_findings(
            &Codes,
            &Workspace::from_files(&files, vec![Package::sample("crucible-a")]),
        )
    }

    #[test]
    fn matching_codes_and_headings_pass() {
        let code = "const A: Code = Code::new(\"patch-path-denied\");\n#[cfg(test)] mod tests { const B: Code = Code::new(\"x-y\"); }";
        let page = "# patch\n\n## patch-path-denied\n\ntext\n```\n## not-a-heading\n```\n";
        assert_eq!(findings_of(code, ("docs/codes/patch.md", page)), [""; 0]);
    }

    #[test]
    fn codes_and_headings_without_counterpart_are_reported() {
        let findings = findings_of(
            "\nconst A: Code = model::Code::new(\"patch-new\");",
            ("docs/codes/patch.md", "\n## patch-old\n"),
        );
        assert_eq!(
            findings,
            [
                "crates/a/src/lib.rs:2: `patch-new` has no heading `## patch-new` in docs/codes/patch.md",
                "docs/codes/patch.md:2: no code in the source is named `patch-old`",
            ]
        );
    }

    #[test]
    fn misplaced_malformed_or_computed_code_is_reported() {
        let wrong_page = findings_of(
            "const A: Code = Code::new(\"patch-new\");",
            ("docs/codes/pack.md", "## patch-new\n"),
        );
        assert_eq!(wrong_page.len(), 2, "{wrong_page:?}");
        for code in [
            "Code::new(\"Patch-New\")",
            "Code::new(\"patch\")",
            "Code::new(name)",
            "Code::new(concat!(\"a\", \"-b\"))",
        ] {
            let code = format!("fn f() {{ {code}; }}");
            assert_eq!(
                findings_of(&code, ("docs/codes/patch.md", "")).len(),
                1,
                "{code}"
            );
        }
    }
}
