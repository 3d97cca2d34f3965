//! A secret rule: its form in `rules.toml`, its validation, and its match at a keyword.
//!
//! The file `rules.toml` explains every field. A rule is validated when it is read. Its regex is compiled
//! when its keyword first occurs. A regex that does not compile matches everything it could have matched, so
//! a broken rule hides nothing.
//!
//! Most of the file is samples, and a text has the keywords of few rules. Of the built-in rules, only the
//! keywords are therefore read at once, and each rule when needed. A test checks that the result equals
//! reading the whole file.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;
use serde::de::IgnoredAny;
use thiserror::Error;

use crate::walk::{LOOKBACK, REACH};
use crate::{judge, key_lines};

/// The name of a secret rule: lowercase words joined by `-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(transparent)]
pub struct RuleId(String);

impl RuleId {
    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a set of rules cannot be used.
#[derive(Debug, Error)]
pub enum RulesError {
    /// The text is not a TOML document of rules.
    #[error("cannot read the rules; correct the TOML")]
    Unreadable {
        /// What the parser says.
        #[from]
        source: toml::de::Error,
    },
    /// Two rules have one id.
    #[error("duplicate rule id `{id}`; rename one")]
    Twice {
        /// The id of both rules.
        id: RuleId,
    },
    /// A rule contradicts itself.
    #[error("rule `{id}`: {what}")]
    Invalid {
        /// The id of the rule.
        id: RuleId,
        /// What is wrong and how it must be.
        what: &'static str,
    },
}

/// What may directly precede a match.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Left {
    /// Anything.
    #[default]
    Any,
    /// No letter, digit or underscore, unless it ends an escape.
    Edge,
}

/// How a secret goes on after the match of its regex.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Tail {
    /// It does not.
    #[default]
    None,
    /// As long as bytes of a token follow.
    Token,
    /// Up to and with the match of `block_end`.
    Block,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum KeywordCase {
    #[default]
    Any,
    Exact,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Placeholders {
    #[default]
    Report,
    Skip,
    SkipWhole,
}

/// What must precede a match on the lines above; it becomes part of the match.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Above {
    #[default]
    Any,
    /// The lines of a private key.
    KeyLines,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Shape {
    #[default]
    Any,
    Mixed,
}

/// One rule as `rules.toml` writes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    pub(crate) id: RuleId,
    pub(crate) description: String,
    pub(crate) keywords: Vec<String>,
    regex: String,
    #[serde(default)]
    secret_group: usize,
    entropy: Option<f32>,
    #[serde(default)]
    keyword_case: KeywordCase,
    #[serde(default)]
    left: Left,
    #[serde(default)]
    lookback: usize,
    #[serde(default)]
    pub(crate) tail: Tail,
    block_end: Option<String>,
    #[serde(default)]
    placeholders: Placeholders,
    #[serde(default)]
    shape: Shape,
    #[serde(default)]
    above: Above,
    /// Samples are for the tests and for the reader of the file.
    #[serde(default, rename = "positive")]
    _positive: IgnoredAny,
    #[serde(default, rename = "negative")]
    _negative: IgnoredAny,
    #[serde(skip)]
    compiled: OnceLock<Option<Regex>>,
    #[serde(skip)]
    compiled_end: OnceLock<Option<Regex>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    rule: Vec<Rule>,
}

/// An unparsed rule of a file: its keywords are known, the rest is parsed on first use.
#[derive(Debug)]
pub(crate) struct WrittenRule {
    pub(crate) keywords: Vec<String>,
    /// Its fields as TOML; empty if it was parsed at once.
    fields: &'static str,
    rule: OnceLock<Rule>,
}

impl WrittenRule {
    /// One that was read.
    pub(crate) fn read(rule: Rule) -> Self {
        Self {
            keywords: rule.keywords.clone(),
            fields: "",
            rule: OnceLock::from(rule),
        }
    }

    /// One of which only these fields are known.
    fn parse(fields: &'static str) -> Self {
        // One line, in the form that TOML and JSON share.
        let list = fields
            .split_once(KEYWORDS)
            .and_then(|(_, rest)| rest.lines().next());
        let keywords =
            serde_json::from_str(list.unwrap_or_default()).unwrap_or_else(|error| broken(&error));
        Self {
            keywords,
            fields,
            rule: OnceLock::new(),
        }
    }

    /// The rule itself.
    pub(crate) fn rule(&self) -> &Rule {
        self.rule
            .get_or_init(|| toml::from_str(self.fields).unwrap_or_else(|error| broken(&error)))
    }
}

/// Returns the built-in rules with only their keywords parsed.
pub(crate) fn built_in_rules(text: &'static str) -> Vec<WrittenRule> {
    text.split(HEADING)
        .skip(1)
        .map(WrittenRule::parse)
        .collect()
}

const HEADING: &str = "\n[[rule]]";
const KEYWORDS: &str = "\nkeywords = ";

fn broken(error: &dyn std::error::Error) -> ! {
    // Going on without a rule would let secrets through.
    unreachable!("the tests of this crate read these rules: {error}")
}

/// Reads rules and checks each.
pub(crate) fn parse(text: &str) -> Result<Vec<Rule>, RulesError> {
    let file: RuleFile = toml::from_str(text)?;
    let mut seen = BTreeSet::new();
    for rule in &file.rule {
        if let Some(what) = rule.fault() {
            return Err(RulesError::Invalid {
                id: rule.id.clone(),
                what,
            });
        }
        if !seen.insert(&rule.id) {
            return Err(RulesError::Twice {
                id: rule.id.clone(),
            });
        }
    }
    Ok(file.rule)
}

impl Rule {
    /// Returns the secret that this rule finds at the keyword `bytes[hit]`. Reads at most `REACH` bytes from
    /// the keyword's start; the tail is not included.
    pub(crate) fn find(&self, bytes: &[u8], hit: Range<usize>) -> Option<Range<usize>> {
        if self.keyword_case == KeywordCase::Exact
            && !self
                .keywords
                .iter()
                .any(|keyword| keyword.as_bytes() == &bytes[hit.clone()])
        {
            return None;
        }
        let start = match self.lookback {
            0 => hit.start,
            lookback => judge::token_start(bytes, hit.start, lookback)?,
        };
        if self.left == Left::Edge && !judge::at_edge(bytes, start) {
            return None;
        }
        let window = &bytes[start..bytes.len().min(hit.start + REACH)];
        let Some(regex) = self.compiled() else {
            return Some(start..start + window.len());
        };
        // Most keywords are in harmless text, so capture groups run only on a match.
        let full_match = regex.find(window)?;
        let secret = match self.secret_group {
            0 => full_match.range(),
            group => regex.captures(window)?.get(group)?.range(),
        };
        if !self.believes(&window[secret.clone()]) {
            return None;
        }
        let secret = start + secret.start..start + secret.end;
        match self.above {
            Above::Any => Some(secret),
            Above::KeyLines => {
                key_lines::key_above(bytes, hit.start).map(|above| above..secret.end)
            }
        }
    }

    /// Returns the end in `bytes` of the block that this rule opened, if present.
    pub(crate) fn block_end(&self, bytes: &[u8]) -> Option<usize> {
        let pattern = self.block_end.as_deref()?;
        let regex = self
            .compiled_end
            .get_or_init(|| compile(pattern))
            .as_ref()?;
        regex.find(bytes).map(|found| found.end())
    }

    fn believes(&self, secret: &[u8]) -> bool {
        !secret.is_empty()
            && self
                .entropy
                .is_none_or(|least| judge::entropy(secret) >= least)
            && (self.shape == Shape::Any || judge::is_mixed(secret))
            && match self.placeholders {
                Placeholders::Report => true,
                Placeholders::Skip => !judge::is_placeholder(secret),
                Placeholders::SkipWhole => !judge::is_whole_placeholder(secret),
            }
    }

    fn compiled(&self) -> Option<&Regex> {
        self.compiled
            .get_or_init(|| {
                compile(&format!(
                    r"\A(?:{})",
                    self.regex.replace("@assign@", ASSIGN)
                ))
            })
            .as_ref()
    }

    fn fault(&self) -> Option<&'static str> {
        let id = self.id.as_str();
        if id.is_empty()
            || !id
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        {
            return Some("an id must consist of lowercase letters, digits and `-`");
        }
        if self.keywords.is_empty()
            || self
                .keywords
                .iter()
                .any(|keyword| !(2..=64).contains(&keyword.len()))
        {
            return Some("give at least one keyword, each of 2 to 64 bytes");
        }
        if self.above == Above::KeyLines && self.lookback > 0 {
            return Some("`above` and `lookback` exclude each other");
        }
        if self.lookback > LOOKBACK {
            return Some("`lookback` must be at most 80");
        }
        if (self.tail == Tail::Block) != self.block_end.is_some() {
            return Some("`tail = \"block\"` and `block_end` need each other");
        }
        None
    }
}

/// The rest of a name, then what stands between a name and its value in settings, code, JSON, headers and shells.
const ASSIGN: &str =
    r#"[\w.\-]{0,32}[\s"'`\\=:,>\])&(]{1,20}(?:(?:'static )?[sS]tr(?:ing)?[\s="'`(]{1,8})?"#;

fn compile(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(pattern).unicode(false).build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scanner::{BUILTIN_RULES, Scanner};

    #[derive(Deserialize)]
    struct Samples {
        id: RuleId,
        #[serde(default)]
        positive: Vec<String>,
        #[serde(default)]
        negative: Vec<String>,
    }

    fn samples() -> Vec<Samples> {
        #[derive(Deserialize)]
        struct File {
            rule: Vec<Samples>,
        }
        toml::from_str::<File>(BUILTIN_RULES).unwrap().rule
    }

    fn joined(sample: &str) -> String {
        sample.replace("{{}}", "")
    }

    #[test]
    fn every_builtin_regex_compiles() {
        for rule in parse(BUILTIN_RULES).unwrap() {
            assert!(
                rule.compiled().is_some(),
                "{}: the regex does not compile",
                rule.id
            );
            if let Some(end) = &rule.block_end {
                assert!(
                    compile(end).is_some(),
                    "{}: block_end does not compile",
                    rule.id
                );
            }
            let groups = rule.compiled().unwrap().captures_len();
            assert!(
                rule.secret_group < groups,
                "{}: the regex has no group {}",
                rule.id,
                rule.secret_group
            );
        }
    }

    #[test]
    fn lazily_read_rules_equal_whole_file() {
        let full_rules = parse(BUILTIN_RULES).unwrap();
        let one_by_one = built_in_rules(BUILTIN_RULES);
        assert_eq!(one_by_one.len(), full_rules.len());
        assert!(
            one_by_one
                .iter()
                .all(|written| written.rule.get().is_none()),
            "read before it was asked for"
        );
        for (written, rule) in one_by_one.iter().zip(&full_rules) {
            assert_eq!(written.keywords, rule.keywords, "{}", rule.id);
            assert_eq!(format!("{:?}", written.rule()), format!("{rule:?}"));
        }
    }

    #[test]
    fn there_are_more_than_forty_formats() {
        assert!(parse(BUILTIN_RULES).unwrap().len() > 100);
    }

    #[test]
    fn every_rule_finds_its_true_samples() {
        let mut wrong = Vec::new();
        for rule in samples() {
            if rule.positive.is_empty() {
                wrong.push(format!("{}: no true sample", rule.id));
            }
            for sample in &rule.positive {
                let text = joined(sample);
                let found = Scanner::builtin().scan(text.as_bytes());
                if !found.iter().any(|found| *found.rule == rule.id) {
                    wrong.push(format!(
                        "{}: nothing found in {sample}; others: {found:?}",
                        rule.id
                    ));
                }
                // Redacted text is not taken for a secret again.
                let redacted = Scanner::builtin().redact(&text).text.into_owned();
                if Scanner::builtin().redact(&redacted).count != 0 {
                    wrong.push(format!(
                        "{}: its redaction holds a secret: {redacted}",
                        rule.id
                    ));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn no_rule_finds_its_false_samples() {
        let mut wrong = Vec::new();
        for rule in samples() {
            if rule.negative.is_empty() {
                wrong.push(format!("{}: no false sample", rule.id));
            }
            for sample in &rule.negative {
                let text = joined(sample);
                if Scanner::builtin()
                    .scan(text.as_bytes())
                    .iter()
                    .any(|found| *found.rule == rule.id)
                {
                    wrong.push(format!("{}: found in {sample}", rule.id));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn every_true_sample_is_written_with_a_split() {
        for rule in samples() {
            for sample in &rule.positive {
                assert!(sample.contains("{{}}"), "{}: {sample}", rule.id);
            }
        }
    }

    #[test]
    fn the_rules_themselves_hold_no_secret() {
        let found = Scanner::builtin().scan(BUILTIN_RULES.as_bytes());
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn rules_that_contradict_themselves_are_refused() {
        let rule = |body: &str| format!("[[rule]]\ndescription = \"d\"\n{body}");
        let cases = [
            "id = \"Bad Id\"\nkeywords = [\"abc\"]\nregex = \"abc\"",
            "id = \"a\"\nkeywords = []\nregex = \"abc\"",
            "id = \"a\"\nkeywords = [\"x\"]\nregex = \"x\"",
            "id = \"a\"\nkeywords = [\"abc\"]\nregex = \"abc\"\nlookback = 81",
            "id = \"a\"\nkeywords = [\"abc\"]\nregex = \"abc\"\nlookback = 1\nabove = \"key-lines\"",
            "id = \"a\"\nkeywords = [\"abc\"]\nregex = \"abc\"\ntail = \"block\"",
            "id = \"a\"\nkeywords = [\"abc\"]\nregex = \"abc\"\nblock_end = \"x\"",
        ];
        for case in cases {
            assert!(
                matches!(parse(&rule(case)), Err(RulesError::Invalid { .. })),
                "{case}"
            );
        }
        let one = rule("id = \"a\"\nkeywords = [\"abc\"]\nregex = \"abc\"\n");
        assert!(matches!(
            parse(&format!("{one}{one}")),
            Err(RulesError::Twice { .. })
        ));
        assert!(matches!(
            parse(&format!("{one}colour = 1\n")),
            Err(RulesError::Unreadable { .. })
        ));
    }

    #[test]
    fn invalid_regex_hides_nothing() {
        let scanner = Scanner::from_toml(
            "[[rule]]\nid = \"broken\"\ndescription = \"d\"\nkeywords = [\"abc\"]\nregex = \"abc(\"",
        )
        .unwrap();
        assert_eq!(scanner.redact("x abc value").text, "x [secret:broken]");
    }
}
