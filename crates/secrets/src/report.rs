//! From matches to a verdict.
//!
//! What always holds: a finding names the place and the rule, and holds no byte of the secret.

use crucible_model::{Code, Finding, Verdict};

use crate::scanner::SecretMatch;

/// The verdict on a text at `path`: one error for each secret, its subject `path:line rule-id`.
#[must_use]
pub fn findings(matches: &[SecretMatch<'_>], path: &str) -> Verdict {
    let finding = |found: &SecretMatch<'_>| {
        Finding::error(
            Code::new("secrets-detected"),
            format!("{path}:{} {}", found.line, found.rule),
            format!(
                "This looks like {}; remove it, and revoke it if anyone could have read it.",
                found.description
            ),
        )
    };
    Verdict::new(matches.iter().map(finding).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scanner;

    #[test]
    fn finding_never_contains_the_secret() {
        let secret = format!("gh{}_{}", 'p', "16C7e42F292c6912E7710c838347Ae178B4a");
        let text = format!("first\nsecond\nlet x = {secret};\n");
        let matches = Scanner::builtin().scan(text.as_bytes());
        let verdict = findings(&matches, "src/a.rs");
        assert!(!verdict.passes());
        let [finding] = verdict.findings() else {
            panic!("one finding expected: {verdict:?}")
        };
        assert_eq!(finding.code.as_str(), "secrets-detected");
        assert_eq!(finding.subject, "src/a.rs:3 github-personal-token");
        let content = format!("{verdict:?}{matches:?}{:?}", Scanner::builtin().redactor());
        assert!(!content.contains(&secret[4..20]), "{content}");
    }

    #[test]
    fn no_match_passes() {
        assert!(findings(&[], "a").passes());
    }
}
