//! The pages of `docs/codes/`, embedded: each finding code with its section.
//!
//! `cargo xtask tidy` requires that each code in the source has a section, and each section a code.

use crate::nearest::nearest;

macro_rules! pages {
    ($($family:literal)*) => {
        &[$(($family, include_str!(concat!("../../../docs/codes/", $family, ".md")))),*]
    };
}

/// The family of each page, and its text.
const PAGES: &[(&str, &str)] = pages! {
    "answer" "attest" "behaviors" "build" "dispatch" "doctor" "evidence" "find" "fixup" "forge" "gate" "ledger"
    "outline" "patch" "plan" "record" "repo" "run" "sandbox" "secrets" "spec" "verify"
};

/// The section that explains a finding code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeSection {
    /// The finding code.
    pub code: &'static str,
    /// The first word of the code, which names the page.
    pub family: &'static str,
    /// The explanation, in Markdown.
    pub text: &'static str,
}

/// Returns the sections of a family's page; none if the family is unknown.
pub fn code_sections(family: &str) -> impl Iterator<Item = CodeSection> {
    all_sections().filter(move |section| section.family == family)
}

fn all_sections() -> impl Iterator<Item = CodeSection> {
    PAGES.iter().flat_map(|(family, page)| {
        let sections = page.split("\n## ").skip(1);
        sections
            .filter_map(|section| section.split_once('\n'))
            .map(|(code, text)| CodeSection {
                code: code.trim(),
                family,
                text: text.trim(),
            })
    })
}

/// Returns the section of a code.
///
/// # Errors
///
/// The most similar codes, possibly none, if the code is unknown.
pub fn find_code(code: &str) -> Result<CodeSection, Vec<&'static str>> {
    all_sections()
        .find(|section| section.code == code)
        .ok_or_else(|| {
            let codes: Vec<&str> = all_sections().map(|section| section.code).collect();
            nearest(code, &codes)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_embedded_and_listed() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/codes");
        let mut families: Vec<String> = std::fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter_map(|name| name.strip_suffix(".md").map(str::to_owned))
            .filter(|family| family != "README")
            .collect();
        families.sort();
        let embedded: Vec<&str> = PAGES.iter().map(|(family, _)| *family).collect();
        assert_eq!(families, embedded);
        let list = std::fs::read_to_string(folder.join("README.md")).unwrap();
        for family in embedded {
            assert!(list.contains(&format!("| `{family}.md` |")), "{family}");
        }
    }

    #[test]
    fn sections_are_named_and_explained() {
        for section in all_sections() {
            let CodeSection { code, family, text } = section;
            assert!(code.starts_with(&format!("{family}-")), "{code}");
            assert!(text.len() > 20 && !text.starts_with('#'), "{code}: {text}");
            assert_eq!(find_code(code), Ok(section));
        }
        assert_eq!(code_sections("no-family").count(), 0);
    }

    #[test]
    fn unknown_code_has_similar_ones() {
        let near = find_code("patch-path-deneid").unwrap_err();
        assert!(near.contains(&"patch-path-denied"), "{near:?}");
        assert_eq!(find_code("qqqq"), Err(Vec::new()));
    }
}
