//! Validates GitHub's description of a repository.
//!
//! Invariants: a [`FoundRepo`] has a valid GitHub name, the matching address, numbers that JSON
//! preserves, and one-line texts without secrets or invisible characters. Anything else is refused with a
//! reason.

use crucible_model::{Timestamp, is_hidden, single_spaced};
use crucible_repo::RefName;
use crucible_secrets::Scanner;
use serde_json::Value;

use super::FoundRepo;
use crate::artifact::OwnerType;
use crate::target::RepoName;

/// The largest integer that every JSON parser preserves.
const LIMIT: u64 = (1 << 53) - 1;

/// The most characters of a description that are kept; GitHub allows 350.
const DESCRIPTION: usize = 1000;

/// The most bytes of a branch, language or topic.
const WORD: usize = 255;

/// The most topics that are kept; GitHub allows 20.
const TOPICS: usize = 50;

/// Parses a repository from the interface of `host`, or returns why it is invalid.
pub(super) fn parse_repository(metadata: &Value, host: &str) -> Result<FoundRepo, String> {
    let repo = metadata["full_name"].as_str().and_then(|name| {
        RepoName::parse(name)
            .ok()
            .filter(|repo| repo.full_name() == name)
    });
    let repo = repo.ok_or("its full name is not owner/name")?;
    let full_name = repo.full_name();
    let url = format!("https://{host}/{full_name}");
    if metadata["html_url"].as_str() != Some(url.as_str()) {
        return Err(format!("its address is not {url}"));
    }
    let stars = metadata["stargazers_count"]
        .as_u64()
        .filter(|stars| *stars <= LIMIT)
        .ok_or("its star count is not a number")?;
    // A repository without pushes is as old as its creation.
    let pushed = if metadata["pushed_at"].is_null() {
        &metadata["created_at"]
    } else {
        &metadata["pushed_at"]
    };
    let pushed_at: Timestamp = pushed
        .as_str()
        .and_then(|instant| instant.parse().ok())
        .ok_or("its last push is not a UTC timestamp")?;
    let owner_type = match metadata["owner"]["type"].as_str() {
        Some("Organization") => OwnerType::Organization,
        Some(_) => OwnerType::User,
        None => return Err("its owner has no type".to_owned()),
    };
    let flag = |name: &str| {
        metadata[name]
            .as_bool()
            .ok_or_else(|| format!("`{name}` is neither true nor false"))
    };
    let default_branch = metadata["default_branch"]
        .as_str()
        .filter(|branch| is_ref(branch));
    Ok(FoundRepo {
        name: repo.name().to_owned(),
        full_name,
        description: line(
            metadata["description"].as_str().unwrap_or_default(),
            DESCRIPTION,
        ),
        url,
        stars,
        pushed_at,
        owner_type,
        archived: flag("archived")?,
        fork: flag("fork")?,
        default_branch: default_branch
            .ok_or("its default branch is not a valid name")?
            .to_owned(),
        language: metadata["language"]
            .as_str()
            .filter(|language| is_word(language))
            .map(|name| line(name, WORD)),
        topics: topics(&metadata["topics"]),
        has_releases: None,
    })
}

/// Whether a text can be a branch or tag name without invisible characters.
pub(super) fn is_ref(text: &str) -> bool {
    is_word(text) && text.parse::<RefName>().is_ok()
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.len() <= WORD && !text.contains(is_hidden)
}

/// Foreign text on one line: redacted, without invisible characters, cut to this many characters.
pub(super) fn line(text: &str, most: usize) -> String {
    let clean: String = single_spaced(text)
        .chars()
        .filter(|c| !is_hidden(*c))
        .collect();
    let clean = Scanner::builtin().redact(&clean).text;
    match clean.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", clean.get(..end).unwrap_or_default()),
        None => clean.into_owned(),
    }
}

/// Sorted without duplicates: their order has no meaning.
fn topics(metadata: &Value) -> Vec<String> {
    let words = metadata
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|word| is_word(word));
    let mut topics: Vec<String> = words.take(TOPICS).map(|word| line(word, WORD)).collect();
    topics.sort_unstable();
    topics.dedup();
    topics
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample_metadata() -> Value {
        json!({
            "full_name": "acme/widget",
            "name": "widget",
            "html_url": "https://github.com/acme/widget",
            "description": "A widget.",
            "stargazers_count": 12,
            "pushed_at": "2026-01-02T03:04:05Z",
            "created_at": "2020-01-01T00:00:00Z",
            "owner": {"login": "acme", "type": "Organization"},
            "archived": false,
            "fork": true,
            "default_branch": "main",
            "language": "Rust",
            "topics": ["cli", "cargo", "cli"],
        })
    }

    fn with(field: &str, value: Value) -> Result<FoundRepo, String> {
        let mut metadata = sample_metadata();
        metadata[field] = value;
        parse_repository(&metadata, "github.com")
    }

    #[test]
    fn valid_repository_is_parsed() {
        let read = parse_repository(&sample_metadata(), "github.com").unwrap();
        assert_eq!(
            (read.full_name.as_str(), read.name.as_str()),
            ("acme/widget", "widget")
        );
        assert_eq!((read.stars, read.owner_type), (12, OwnerType::Organization));
        assert_eq!(
            (read.archived, read.fork, read.default_branch.as_str()),
            (false, true, "main")
        );
        assert_eq!(read.pushed_at.to_string(), "2026-01-02T03:04:05.000Z");
        assert_eq!(read.topics, ["cargo", "cli"]);
        assert_eq!(
            (read.language.as_deref(), read.has_releases),
            (Some("Rust"), None)
        );
    }

    #[test]
    fn invalid_repository_is_refused() {
        for (field, value) in [
            ("full_name", json!("acme")),
            ("full_name", json!("acme/widget/x")),
            ("full_name", json!("acme/widget.git")),
            ("full_name", json!("../etc")),
            ("full_name", json!("-acme/widget")),
            ("full_name", json!("acme/wid\u{1b}get")),
            ("full_name", json!(7)),
            ("full_name", Value::Null),
            ("html_url", json!("https://evil.example/acme/widget")),
            ("html_url", json!("https://github.com/acme/other")),
            ("html_url", json!("javascript:alert(1)")),
            ("html_url", Value::Null),
            ("stargazers_count", json!(-1)),
            ("stargazers_count", json!(1.5)),
            ("stargazers_count", json!("12")),
            ("stargazers_count", json!(1_u64 << 60)),
            ("pushed_at", json!("yesterday")),
            ("pushed_at", json!("2026-01-02T03:04:05+02:00")),
            ("pushed_at", json!(1_700_000_000)),
            ("owner", Value::Null),
            ("owner", json!({"type": 3})),
            ("archived", Value::Null),
            ("fork", json!("false")),
            ("default_branch", Value::Null),
            ("default_branch", json!("")),
            ("default_branch", json!("--upload-pack=x")),
            ("default_branch", json!("a..b")),
            ("default_branch", json!("ma\u{202e}in")),
        ] {
            assert!(with(field, value.clone()).is_err(), "{field}: {value}");
        }
        for unusual_json in [Value::Null, json!([]), json!("text"), json!({})] {
            assert!(
                parse_repository(&unusual_json, "github.com").is_err(),
                "{unusual_json}"
            );
        }
    }

    #[test]
    fn optional_fields_may_be_missing() {
        let never_pushed = with("pushed_at", Value::Null).unwrap();
        assert_eq!(
            never_pushed.pushed_at.to_string(),
            "2020-01-01T00:00:00.000Z"
        );
        assert_eq!(with("description", Value::Null).unwrap().description, "");
        assert_eq!(with("language", Value::Null).unwrap().language, None);
        assert_eq!(with("language", json!({"a": 1})).unwrap().language, None);
        assert_eq!(with("topics", Value::Null).unwrap().topics, [""; 0]);
        assert_eq!(
            with("topics", json!(["b", 3, "", "a", null, "x".repeat(10_000)]))
                .unwrap()
                .topics,
            ["a", "b"]
        );
        assert_eq!(
            with("owner", json!({"type": "Bot"})).unwrap().owner_type,
            OwnerType::User
        );
    }

    #[test]
    fn description_is_one_short_redacted_line() {
        let candidate_repo =
            with("description", json!("a\u{1b}[31m\r\nb\u{202e}c\u{0}\t d")).unwrap();
        assert_eq!(candidate_repo.description, "a[31m bc d");
        let long = with("description", json!("é".repeat(1 << 19)))
            .unwrap()
            .description;
        assert_eq!(long.chars().count(), DESCRIPTION + 1);
        let secret = crucible_testkit::made_up_token();
        // Also if the cut would split it.
        for before in ["key ".to_owned(), "x ".repeat(495)] {
            let text = with("description", json!(format!("{before}{secret} end")))
                .unwrap()
                .description;
            assert!(
                !text.contains("a1B2") && text.contains("[secret:"),
                "{text}"
            );
        }
    }

    #[test]
    fn address_is_on_the_requested_host() {
        let mut metadata = sample_metadata();
        metadata["html_url"] = json!("https://git.example.org/acme/widget");
        assert!(parse_repository(&metadata, "github.com").is_err());
        assert_eq!(
            parse_repository(&metadata, "git.example.org").unwrap().url,
            "https://git.example.org/acme/widget"
        );
    }

    mod properties {
        use super::*;

        proptest::proptest! {
            #[test]
            fn foreign_text_becomes_one_visible_line(text in "(?s).{0,400}", most in 0_usize..50) {
                let line = line(&text, most);
                proptest::prop_assert!(line.chars().count() <= most + 1);
                proptest::prop_assert!(!line.contains(is_hidden));
            }
        }
    }
}
