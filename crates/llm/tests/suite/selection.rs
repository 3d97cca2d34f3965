//! Which provider is made ready, and what is said when one cannot be.

use std::path::PathBuf;

use crucible_llm::{LlmBackend, LlmError, ProviderSettings, construct, provider, registry};
use crucible_testkit::{FakeOpenAi, Reply};

use crate::support::{ask, context};

#[test]
fn names_are_unique_and_every_provider_says_what_it_is() {
    let mut names: Vec<&str> = registry().iter().map(|kind| kind.name()).collect();
    assert_eq!(names, ["claude-cli", "gateway", "replay"]);
    names.dedup();
    assert_eq!(names.len(), registry().len());
    assert!(registry().iter().all(|kind| !kind.summary().is_empty()));
}

#[test]
fn no_provider_and_an_unknown_one_are_told_apart() {
    let error = provider("").err().unwrap();
    assert!(matches!(error, LlmError::Misconfiguration(_)));
    assert!(error.to_string().contains("LLM provider must be specified"), "{error}");
    let error = provider("nobody\u{1b}[2J").err().unwrap();
    assert!(matches!(error, LlmError::Unsupported(_)));
    assert!(error.to_string().contains("claude-cli, gateway, replay"), "{error}");
    assert!(!error.to_string().contains('\u{1b}'));
}

#[test]
fn a_missing_or_empty_key_is_found_before_anything_runs() {
    let settings = ProviderSettings { api_key_env: Some("MY_KEY".to_owned()), ..ProviderSettings::default() };
    for variables in [&[][..], &[("MY_KEY", "")], &[("MY_KEY", "  ")]] {
        let error = construct("gateway", &settings, &context(variables)).err().unwrap();
        assert!(matches!(error, LlmError::Misconfiguration(_)));
        assert!(error.to_string().contains("MY_KEY"), "{error}");
    }
    assert!(construct("gateway", &settings, &context(&[("MY_KEY", "k")])).is_ok());
}

#[test]
fn a_base_url_that_is_none_is_refused_and_one_with_a_password_is_not_shown() {
    for bad in ["here", "ftp://x/", "http://user:pass-0123@host/v1", "file:///etc"] {
        let settings = ProviderSettings { base_url: Some(bad.to_owned()), ..ProviderSettings::default() };
        let error = construct("gateway", &settings, &context(&[])).err().unwrap();
        assert!(matches!(error, LlmError::Misconfiguration(_)), "{error}");
        assert!(!format!("{error}{error:?}").contains("pass-0123"));
    }
}

#[tokio::test]
async fn the_environment_names_the_gateway_before_the_file_does() {
    let server = FakeOpenAi::start([Reply::Answer("from the environment".to_owned())]);
    let settings = ProviderSettings {
        base_url: Some("http://127.0.0.1:1/v1".to_owned()),
        ..ProviderSettings::default()
    };
    let context = context(&[("CRUCIBLE_GATEWAY_BASE_URL", server.base_url().as_str())]);
    let backend = construct("gateway", &settings, &context).unwrap();
    assert_eq!(backend.default_model(), "gpt-oss-20b");
    assert_eq!(backend.invoke(ask("x")).await.unwrap().raw_response, "from the environment");
    assert_eq!(server.requests()[0].body["model"], "gpt-oss-20b");
}

#[test]
fn a_missing_program_lists_the_places_searched() {
    let context = context(&[("PATH", "/nowhere/one:/nowhere/two")]);
    let error = construct("claude-cli", &ProviderSettings::default(), &context).err().unwrap();
    assert!(matches!(error, LlmError::Misconfiguration(_)));
    let text = error.to_string();
    assert!(
        text.contains("/nowhere/one") && text.contains("/nowhere/two") && text.contains("npm install"),
        "{text}"
    );
}

#[test]
fn a_program_that_is_none_is_named_for_what_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("plain");
    std::fs::write(&plain, "not a program").unwrap();
    for (program, problem) in [
        (dir.path().to_owned(), "it is a directory"),
        (plain, "it is not executable"),
        (dir.path().join("gone"), "there is no such file"),
    ] {
        let settings = ProviderSettings { program: Some(program), ..ProviderSettings::default() };
        let error = construct("claude-cli", &settings, &context(&[])).err().unwrap();
        assert!(error.to_string().contains(problem), "{error}");
    }
}

#[test]
fn a_recording_must_be_named_and_be_there() {
    let error = construct("replay", &ProviderSettings::default(), &context(&[])).err().unwrap();
    assert!(error.to_string().contains("no recording is named"), "{error}");
    let settings = ProviderSettings {
        cassette: Some(PathBuf::from("/nowhere/x.jsonl").into()),
        ..ProviderSettings::default()
    };
    let error = construct("replay", &settings, &context(&[])).err().unwrap();
    assert!(matches!(error, LlmError::Misconfiguration(_)) && error.to_string().contains("/nowhere/x.jsonl"));
}
