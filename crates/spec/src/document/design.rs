//! The design: four sections, and the requirements that they serve.

use std::collections::BTreeSet;

use crucible_llm::ReceiptWarning;
use crucible_model::{CodeFence, Finding};

use super::answer::{Draft, warning};
use super::fault::Fault;
use super::filler::is_filler;
use super::ids::{format_ids, parse_ids};
use super::lines::{LineKind, scan};

/// The sections of a design.
pub(crate) const DESIGN_SECTIONS: [&str; 4] = ["Overview", "Components", "Data", "Risks"];

/// Parses the document of an answer. `known` are the ids of the requirements, if they are known.
///
/// # Errors
///
/// The findings about the answer.
pub(crate) fn design(
    draft: Draft,
    fallback_title: &str,
    known: Option<&BTreeSet<u32>>,
) -> Result<(String, Vec<ReceiptWarning>), Vec<Finding>> {
    let mut findings = sections(&draft.body, &DESIGN_SECTIONS);
    let mut warnings = draft.warnings;
    if let Some(known) = known {
        let served = parse_ids(&draft.body, 'R');
        findings.extend(unknown_references(&served, known));
        if served.is_empty() {
            findings.push(Fault::NoEntries.into_finding("the design names no requirement"));
        }
        let left = format_ids(known.difference(&served).copied(), 'R');
        if !left.is_empty() && findings.is_empty() {
            warnings.push(warning(
                "spec_not_designed",
                format!("the design does not name {left}"),
            ));
        }
    }
    if !findings.is_empty() {
        return Err(findings);
    }
    let title = draft.title.as_deref().unwrap_or(fallback_title);
    Ok((format!("# Design: {title}\n\n{}\n", draft.body), warnings))
}

/// The findings about requirement ids that do not exist.
pub(crate) fn unknown_references(found: &BTreeSet<u32>, known: &BTreeSet<u32>) -> Option<Finding> {
    let strange = format_ids(found.difference(known).copied(), 'R');
    (!strange.is_empty()).then(|| Fault::UnknownId.into_finding(&strange))
}

/// The findings about missing or empty sections.
pub(crate) fn sections(body: &str, requested: &[&str]) -> Vec<Finding> {
    let mut filled = vec![false; requested.len()];
    let mut current = None;
    for line in scan(body).0 {
        match line.kind {
            LineKind::Heading { level, title } => {
                let title = title
                    .trim_end_matches(':')
                    .trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ' '));
                let found = requested
                    .iter()
                    .position(|request| request.eq_ignore_ascii_case(title));
                if found.is_some() || level <= 2 {
                    current = found;
                }
            }
            LineKind::Blank | LineKind::Rule => {}
            LineKind::Fenced | LineKind::Text => {
                if let Some(slot) = current.and_then(|place| filled.get_mut(place))
                    && CodeFence::indented(line.text).is_none()
                    && !is_filler(line.text)
                {
                    *slot = true;
                }
            }
        }
    }
    let missing = requested.iter().zip(filled).filter(|(_, filled)| !filled);
    missing
        .map(|(section, _)| {
            Fault::Incomplete.into_finding(&format!("no text in the section ## {section}"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(body: &str) -> Draft {
        Draft {
            title: None,
            body: body.to_owned(),
            warnings: Vec::new(),
        }
    }

    const BODY: &str = "## overview\nServes R-1.\n## 2. Components:\n### api\nx\n## Data\n```\ncsv\n```\n## Risks\n- none";

    #[test]
    fn design_needs_its_sections_and_served_requirements() {
        let known = BTreeSet::from([1, 2]);
        let (text, warnings) = design(draft(BODY), "export", Some(&known)).unwrap();
        assert!(
            text.starts_with("# Design: export\n\n## overview\n") && text.ends_with("- none\n")
        );
        assert_eq!(warnings[0].message, "the design does not name R-002");
        let codes = |body: &str| {
            let findings = design(draft(body), "x", Some(&known)).unwrap_err();
            findings
                .iter()
                .map(|f| f.code.to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            codes(&BODY.replace("R-1", "R-9")),
            ["spec-answer-unknown-id"]
        );
        assert_eq!(
            codes(&BODY.replace("R-1", "it")),
            ["spec-answer-no-entries"]
        );
        assert_eq!(
            codes(&BODY.replace("- none", "")),
            ["spec-answer-incomplete"]
        );
        assert_eq!(
            codes(&BODY.replace("- none", "TODO")),
            ["spec-answer-incomplete"]
        );
        assert_eq!(
            codes(&BODY.replace("csv\n", "")),
            ["spec-answer-incomplete"]
        );
        assert_eq!(
            codes(&BODY.replace("## Data", "## Storage")),
            ["spec-answer-incomplete"]
        );
        assert_eq!(
            codes(&BODY.replace("## Data", "```\n## Data\n```")),
            ["spec-answer-incomplete"]
        );
        assert!(design(draft(BODY), "x", None).unwrap().1.is_empty());
    }
}
