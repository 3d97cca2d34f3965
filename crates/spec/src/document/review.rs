//! The review: findings about an artifact, or about a project file that the model was shown.
//!
//! In the document, backticks mark the path of a project file, and nothing else. So [`review_targets`]
//! can find the files for a fixup from the document alone.

use std::collections::BTreeSet;

use crucible_llm::ReceiptWarning;
use crucible_model::{Finding, RepoPath, Untrusted, single_spaced};

use super::answer::{Draft, trimmed, warning};
use super::fault::Fault;
use super::filler::is_filler;
use super::ids::{format_id, leading};
use super::lines::{LineKind, bare, list_item, scan};
use super::stray::{SEVERITIES, begins_finding, names_severity, tells_finding};
use crate::phase_id::PhaseId;
use crate::project::is_own;

/// The target of a finding that names nothing existing.
const WHOLE: &str = "spec";

/// A finding of a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remark {
    pub(crate) severity: &'static str,
    pub(crate) target: Target,
    /// The problem, on one line.
    pub(crate) text: String,
}

/// The target of a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// An artifact, by its phase's name, `idea` or `spec`, or an id.
    Artifact(String),
    /// A project file.
    File(RepoPath),
    /// Something else.
    Unknown(String),
}

/// The project files that the findings of a review name, in the order of first mention. Artifacts of the
/// spec and files in `.crucible/` are excluded.
#[must_use]
pub(crate) fn review_targets(review: &Untrusted) -> Vec<RepoPath> {
    let text = review.as_str().replace("\r\n", "\n");
    let mut seen = BTreeSet::new();
    let files = read_review(&text)
        .remarks
        .into_iter()
        .filter_map(|remark| match remark.target {
            Target::File(path) => Some(path),
            Target::Artifact(_) | Target::Unknown(_) => None,
        });
    files.filter(|path| seen.insert(path.clone())).collect()
}

/// A parsed review.
#[derive(Debug, Default)]
pub(crate) struct Review {
    pub(crate) remarks: Vec<Remark>,
    /// List entries that are not valid findings, and other lines that contain one.
    malformed: Vec<String>,
    /// How many of these contain a finding.
    hidden: u64,
    /// How often it states that there are no findings.
    says_none: u64,
    left_out: u64,
}

/// Parses the document of an answer. `shown_files` are the project files that the model was shown.
///
/// # Errors
///
/// The findings about the answer.
pub(crate) fn review(
    draft: Draft,
    fallback_title: &str,
    shown_files: &BTreeSet<&str>,
) -> Result<(String, usize, Vec<ReceiptWarning>), Vec<Finding>> {
    let mut warnings = draft.warnings;
    let read = read_review(&draft.body);
    let mut findings: Vec<Finding> = read
        .malformed
        .iter()
        .map(|line| Fault::LineForm.into_finding(line))
        .collect();
    // Two findings on one line, or one in the title, would be counted as one or as none.
    let doubled = read
        .remarks
        .iter()
        .map(|remark| &remark.text)
        .filter(|text| names_severity(text));
    let titled = draft.title.iter().filter(|title| tells_finding(title));
    findings.extend(
        doubled
            .chain(titled)
            .map(|text| Fault::LineForm.into_finding(text)),
    );
    if read.remarks.is_empty() && read.says_none == 0 && findings.is_empty() {
        findings.push(Fault::NoEntries.into_finding("neither a finding nor `- none`"));
    }
    if (!read.remarks.is_empty() || read.hidden > 0) && read.says_none > 0 {
        findings.push(Fault::Contradiction.into_finding("`- none` beside findings"));
    }
    let empty = read.remarks.iter().filter(|remark| is_filler(&remark.text));
    findings.extend(empty.map(|remark| Fault::Incomplete.into_finding(&remark.text)));
    if !findings.is_empty() {
        return Err(findings);
    }
    if read.left_out > 0 {
        warnings.push(trimmed(read.left_out, "finding"));
    }
    let mut text = format!(
        "# Review: {}\n\n## Findings\n\n",
        draft.title.as_deref().unwrap_or(fallback_title)
    );
    let count = read.remarks.len();
    for (place, remark) in read.remarks.into_iter().enumerate() {
        let name = format_id(u32::try_from(place + 1).unwrap_or(u32::MAX), 'F');
        let (target, remark_text) = match remark.target {
            Target::Artifact(name) => (name, remark.text),
            Target::File(path) if shown_files.contains(path.as_str()) => {
                (format!("`{path}`"), remark.text)
            }
            Target::File(path) => {
                let message = format!(
                    "{name} is about {path}, which the model was not shown; no fixup works on it"
                );
                warnings.push(warning("spec_file_not_shown", message));
                (WHOLE.to_owned(), format!("({path}) {}", remark.text))
            }
            // A `justfile` does not look like a file, but is one if the model was shown it.
            Target::Unknown(what) if is_shown(&what, shown_files) => {
                (format!("`{what}`"), remark.text)
            }
            Target::Unknown(what) => {
                if !what.contains(char::is_whitespace) {
                    let message = format!(
                        "{name} is about {what}, which the model was not shown; no fixup can change it"
                    );
                    warnings.push(warning("spec_file_not_shown", message));
                }
                (WHOLE.to_owned(), format!("({what}) {}", remark.text))
            }
        };
        text.push_str(&format!(
            "- {name} [{}] {target}: {remark_text}\n",
            remark.severity
        ));
    }
    if count == 0 {
        text.push_str("- none\n");
    }
    Ok((text, count, warnings))
}

/// Whether a name is that of a file which the model was shown.
fn is_shown(name: &str, shown_files: &BTreeSet<&str>) -> bool {
    shown_files.contains(name)
        && !name.contains('`')
        && name.parse::<RepoPath>().is_ok_and(|path| !is_own(&path))
}

/// Parses the findings of a document or an answer.
pub(crate) fn read_review(body: &str) -> Review {
    let mut review = Review::default();
    for line in scan(body).0 {
        let LineKind::Text = line.kind else {
            if tells_finding(line.text) {
                review.hide(line.text);
                continue;
            }
            if let LineKind::Heading { title, .. } = line.kind
                && !title.trim_end_matches(':').eq_ignore_ascii_case("findings")
                && !title.to_ascii_lowercase().starts_with("review")
            {
                review.left_out += 1;
            }
            review.left_out += u64::from(line.kind == LineKind::Fenced);
            continue;
        };
        let indented = line.text.starts_with([' ', '\t']);
        let item = list_item(line.text);
        if is_none(item.unwrap_or(line.text)) {
            review.says_none += 1;
        } else if let Some(remark) = item.filter(|_| !indented).and_then(remark) {
            review.remarks.push(remark);
        } else if let Some(item) = item.filter(|item| !indented && leading(item, 'F').is_some()) {
            review.hide(item);
        } else if indented && begins_finding(line.text) {
            review.hide(line.text);
        } else if let Some(last) = review.remarks.last_mut().filter(|_| indented) {
            last.text.push(' ');
            last.text
                .push_str(&single_spaced(item.unwrap_or(line.text)));
        } else if item.is_some() {
            review.hidden += u64::from(tells_finding(line.text));
            review.malformed.push(line.text.trim().to_owned());
        } else if tells_finding(line.text) {
            review.hide(line.text);
        } else {
            review.left_out += 1;
        }
    }
    review
}

impl Review {
    /// Records a line that contains a finding in an unsupported form.
    fn hide(&mut self, line: &str) {
        self.hidden += 1;
        self.malformed.push(line.trim().to_owned());
    }
}

/// Parses `F-001 [major] src/export.rs: text`.
fn remark(item: &str) -> Option<Remark> {
    let rest = leading(item, 'F').map_or(item, |(_, rest)| rest);
    let rest = rest.trim_start_matches(['*', ' ']).strip_prefix('[')?;
    let (severity, rest) = rest.split_once(']')?;
    let severity = SEVERITIES
        .into_iter()
        .find(|known| known.eq_ignore_ascii_case(severity.trim()))?;
    let rest = rest.trim_start_matches(['*', ' ', ':']);
    let (target, text, quoting) = match rest.strip_prefix('`').and_then(|rest| rest.split_once('`'))
    {
        Some((target, text)) => (target, text.trim_start_matches(['*', ' ']), Quoting::Quoted),
        None => {
            let (target, text) = rest.split_once(": ").or_else(|| rest.split_once(' '))?;
            (target, text, Quoting::Bare)
        }
    };
    let text =
        single_spaced(without_line_number(text).trim_start_matches([':', '-', '–', '—', ' ']));
    if text.is_empty() {
        return None;
    }
    Some(Remark {
        severity,
        target: target_of(target, quoting),
        text,
    })
}

/// Removes `:12` of `:12: text` after a path.
fn without_line_number(text: &str) -> &str {
    let rest = text
        .strip_prefix(':')
        .map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    rest.filter(|rest| rest.starts_with(':')).unwrap_or(text)
}

/// Whether a target is in backticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quoting {
    Quoted,
    Bare,
}

fn target_of(target: &str, quoting: Quoting) -> Target {
    let target = bare(target.trim().trim_end_matches(':')).trim_matches('`');
    let name = target.rsplit('/').next().unwrap_or_default();
    let lower = target.to_ascii_lowercase();
    if matches!(lower.as_str(), "idea" | WHOLE) || lower.parse::<PhaseId>().is_ok() {
        return Target::Artifact(lower);
    }
    if let Some(phase) = PhaseId::ALL
        .into_iter()
        .find(|phase| phase.artifact() == name)
    {
        return Target::Artifact(phase.as_str().to_owned());
    }
    if name == "idea.md" {
        return Target::Artifact("idea".to_owned());
    }
    let id = ['R', 'T'].into_iter().find_map(|letter| {
        match super::ids::mentions(target, letter).next() {
            Some((range, number)) if range == (0..target.len()) => Some(format_id(number, letter)),
            _ => None,
        }
    });
    if let Some(id) = id {
        return Target::Artifact(id);
    }
    let path = match target.rsplit_once(':') {
        Some((path, line))
            if !line.is_empty() && line.bytes().all(|c| c.is_ascii_digit() || c == b'-') =>
        {
            path
        }
        _ => target,
    };
    let looks_like_a_file =
        path.contains(['/', '.']) || path.starts_with(|c: char| c.is_ascii_uppercase());
    // In the document a quoted target is a file, whatever its name looks like.
    let plain = quoting == Quoting::Quoted || (!path.contains(['`', ' ']) && looks_like_a_file);
    match path.parse::<RepoPath>() {
        Ok(path) if plain && !is_own(&path) => Target::File(path),
        _ => Target::Unknown(crucible_model::short_line(target, 120).replace('`', "'")),
    }
}

fn is_none(text: &str) -> bool {
    let text = text
        .trim()
        .trim_matches(['*', '.', '`', '_'])
        .to_ascii_lowercase();
    matches!(text.as_str(), "none" | "no findings" | "none found")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_review(
        body: &str,
        files: &[&str],
    ) -> Result<(String, usize, Vec<ReceiptWarning>), Vec<Finding>> {
        let draft = Draft {
            title: Some("Export".to_owned()),
            body: body.to_owned(),
            warnings: Vec::new(),
        };
        review(draft, "export", &files.iter().copied().collect())
    }

    fn targets(text: &str) -> Vec<String> {
        review_targets(&Untrusted::new(text))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn findings_are_numbered_and_files_are_marked() {
        let body = "## Findings\n\n- F-007 [Major] src/a.rs:12: Wrong\n  and more\n- [blocker] 10-design.md: Thin\n\
                    * **F-001** [minor] `src/b.rs` - No test\n- F-3 [minor] R-2: Vague\n- F-4 [minor] src/unseen.rs: Gone\n\
                    - F-5 [minor] the whole thing: Long\n";
        let (text, count, warnings) = build_review(body, &["src/a.rs", "src/b.rs"]).unwrap();
        assert_eq!(
            text,
            "# Review: Export\n\n## Findings\n\n\
             - F-001 [major] `src/a.rs`: Wrong and more\n\
             - F-002 [blocker] design: Thin\n\
             - F-003 [minor] `src/b.rs`: No test\n\
             - F-004 [minor] R-002: Vague\n\
             - F-005 [minor] spec: (src/unseen.rs) Gone\n\
             - F-006 [minor] spec: (the whole thing) Long\n"
        );
        assert_eq!((count, warnings.len()), (6, 1));
        assert_eq!(targets(&text), ["src/a.rs", "src/b.rs"]);
        assert_eq!(
            build_review(
                text.split_once("\n\n").unwrap().1,
                &["src/a.rs", "src/b.rs"]
            )
            .unwrap()
            .0,
            text
        );
    }

    #[test]
    fn any_shown_file_name_is_a_target() {
        let body = "- F-1 [major] justfile: Wrong\n- F-2 [minor] `my file`: Odd\n- F-3 [minor] configure: Gone\n";
        let (text, _, warnings) = build_review(body, &["justfile", "my file"]).unwrap();
        assert_eq!(targets(&text), ["justfile", "my file"]);
        assert!(
            text.contains("- F-003 [minor] spec: (configure) Gone\n"),
            "{text}"
        );
        assert_eq!(
            warnings
                .iter()
                .map(|receipt_warning| receipt_warning.kind.as_str())
                .collect::<Vec<_>>(),
            ["spec_file_not_shown"]
        );
    }

    #[test]
    fn a_review_that_finds_nothing_has_no_targets() {
        for none in [
            "- none",
            "- None.",
            "No findings.",
            "## Findings\n\n- **none**",
        ] {
            let (text, count, _) = build_review(none, &[]).unwrap();
            assert_eq!(
                (text.as_str(), count),
                ("# Review: Export\n\n## Findings\n\n- none\n", 0)
            );
            assert!(targets(&text).is_empty());
        }
    }

    #[test]
    fn invalid_review_is_reported() {
        for (body, code) in [
            ("All is well.", "spec-answer-no-entries"),
            ("- F-001 [high] design: x", "spec-answer-line-form"),
            ("- F-001 design: x", "spec-answer-line-form"),
            ("- F-001 [major]", "spec-answer-line-form"),
            ("- F-001 [major] design:", "spec-answer-line-form"),
            ("- looks good", "spec-answer-line-form"),
            ("- F-001 [major] design: TODO", "spec-answer-incomplete"),
            (
                "- none\n- F-001 [major] design: x",
                "spec-answer-contradiction",
            ),
        ] {
            let findings = build_review(body, &[]).unwrap_err();
            assert_eq!(findings[0].code.as_str(), code, "{body:?}");
        }
    }

    #[test]
    fn malformed_finding_is_never_dropped() {
        for hidden in [
            "F-001 [blocker] src/export.py: remote code execution",
            "### F-001 [blocker] src/export.py: remote code execution",
            "### Blocker: src/export.py runs code of strangers",
            "| F-001 | blocker | src/export.py | remote code execution |",
            "| blocker | src/export.py | remote code execution |",
            "```\n- F-001 [blocker] src/export.py: remote code execution\n```",
            "> - F-001 [blocker] src/export.py: remote code execution",
            "[blocker] src/export.py: remote code execution",
            "  - F-001 [blocker] src/export.py: remote code execution",
            "  - [blocker] src/export.py: remote code execution",
        ] {
            for (beside, contradicts) in [
                ("- none\n\n", true),
                ("- F-002 [minor] design: Thin\n", false),
                ("", false),
            ] {
                let findings =
                    build_review(&format!("## Findings\n\n{beside}{hidden}\n"), &[]).unwrap_err();
                let codes: Vec<_> = findings
                    .iter()
                    .map(|finding| finding.code.as_str())
                    .collect();
                assert_eq!(codes[0], "spec-answer-line-form", "{beside:?} {hidden:?}");
                assert!(
                    findings[0].subject.contains("src/export.py"),
                    "{findings:?}"
                );
                assert_eq!(
                    codes.contains(&"spec-answer-contradiction"),
                    contradicts,
                    "{hidden:?}"
                );
            }
        }
        let two =
            "- F-001 [minor] design: Thin F-002 [blocker] src/export.py: remote code execution";
        assert_eq!(
            build_review(two, &[]).unwrap_err()[0].code.as_str(),
            "spec-answer-line-form"
        );
        let titled = Draft {
            title: Some("F-001 [blocker] src/export.py".to_owned()),
            body: "- none".to_owned(),
            warnings: Vec::new(),
        };
        assert_eq!(
            review(titled, "x", &BTreeSet::new()).unwrap_err()[0]
                .code
                .as_str(),
            "spec-answer-line-form"
        );
    }

    #[test]
    fn omitted_lines_are_counted_with_correct_plural() {
        let (_, _, warnings) = build_review("All is well.\n\n- none\n", &[]).unwrap();
        assert_eq!(
            warnings[0].message,
            "1 line outside of the findings left out"
        );
        let (_, _, warnings) = build_review("All is well.\nIndeed.\n\n- none\n", &[]).unwrap();
        assert_eq!(
            warnings[0].message,
            "2 lines outside of the findings left out"
        );
    }

    #[test]
    fn target_is_never_artifact_or_outside_project() {
        for target in [
            "../x.rs",
            "/etc/passwd",
            ".git/config",
            "a/.git/hooks/x",
            ".crucible/config.toml",
            "web/.Crucible/config.toml",
            "00-requirements.md",
            ".crucible/specs/a/artifacts/10-design.md",
            "artifacts/20-tasks.md",
            "context/idea.md",
            "design",
            "R-001",
            "T-2",
            "C:\\x.rs",
        ] {
            assert!(
                targets(&format!("- F-001 [major] {target}: x\n")).is_empty(),
                "{target}"
            );
            assert!(
                targets(&format!("- F-001 [major] `{target}`: x\n")).is_empty(),
                "{target}"
            );
        }
        assert!(targets("- F-001 [major] a b.rs: x\n- F-002 [major] no: x\n").is_empty());
        assert_eq!(
            targets("```\n- F-001 [major] `src/a.rs`: x\n```\n"),
            [""; 0]
        );
        let twice = "- F-001 [major] `b.rs`: x\r\n- F-002 [minor] `a.rs`: y\r\n- F-003 [minor] `b.rs`: z\r\n";
        assert_eq!(targets(twice), ["b.rs", "a.rs"]);
        assert_eq!(targets("- F-001 [major] Makefile: x"), ["Makefile"]);
    }
}
