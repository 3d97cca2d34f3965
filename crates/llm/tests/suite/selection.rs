//! The construction of providers, and its errors.

use std::path::PathBuf;

use crucible_llm::{
    AddressOrigin, Context, LlmError, Login, ProviderClass, ProviderSettings, construct, provider,
    registry,
};
use crucible_model::Secret;

use crate::support::{client_settings, context, gateway_settings, http_settings};

#[test]
fn provider_names_are_unique_with_summaries() {
    let names: Vec<&str> = registry().iter().map(|kind| kind.name()).collect();
    assert!(names.is_sorted_by(|one, next| one < next), "{names:?}");
    for kind in registry() {
        assert!(!kind.summary().is_empty());
        assert!(
            kind.evidence().ends_with('.') && kind.evidence().len() < 400,
            "{}",
            kind.name()
        );
    }
}

#[test]
fn missing_and_unknown_provider_are_distinguished() {
    let error = provider("").err().unwrap();
    assert!(matches!(error, LlmError::Misconfiguration(_)));
    assert!(
        error.to_string().contains("LLM provider must be specified"),
        "{error}"
    );
    let error = provider("nobody\u{1b}[2J").err().unwrap();
    assert!(matches!(error, LlmError::Unsupported(_)));
    for kind in registry() {
        assert!(error.to_string().contains(kind.name()), "{error}");
    }
    assert!(!error.to_string().contains('\u{1b}'));
}

#[test]
fn missing_key_is_found_before_sending() {
    let api_key_env = Some("MY_KEY".to_owned());
    let base_url = Some("http://localhost:8000/v1".to_owned());
    let gateway = ProviderSettings {
        api_key_env: api_key_env.clone(),
        base_url,
        ..gateway_settings()
    };
    let binary = Some("/bin/sh".into());
    let client = ProviderSettings {
        api_key_env,
        binary,
        ..client_settings()
    };
    for (name, settings) in [("gateway", gateway), ("claude-cli", client)] {
        for variables in [&[][..], &[("MY_KEY", "")], &[("MY_KEY", "  ")]] {
            let error = construct(name, &settings, &context(variables))
                .err()
                .unwrap();
            assert!(matches!(error, LlmError::Misconfiguration(_)));
            assert!(error.to_string().contains("MY_KEY"), "{error}");
        }
        assert!(construct(name, &settings, &context(&[("MY_KEY", "k")])).is_ok());
    }
}

#[test]
fn base_url_password_is_not_shown() {
    for bad in [
        "here",
        "ftp://x/",
        "http://user:pass-0123@host/v1",
        "file:///etc",
    ] {
        let base_url = Some(bad.to_owned());
        let gateway = ProviderSettings {
            base_url: base_url.clone(),
            ..gateway_settings()
        };
        let client = ProviderSettings {
            base_url,
            binary: Some("/bin/sh".into()),
            ..client_settings()
        };
        for (name, settings) in [("gateway", gateway), ("claude-cli", client)] {
            let error = construct(name, &settings, &context(&[])).err().unwrap();
            assert!(matches!(error, LlmError::Misconfiguration(_)), "{error}");
            assert!(
                error
                    .to_string()
                    .contains(&format!("[llm.{name}] base_url")),
                "{error}"
            );
            assert!(!format!("{error}{error:?}").contains("pass-0123"));
        }
    }
}

/// Defaults come from the configuration; the environment provides only keys and programs.
#[test]
fn missing_setting_is_named() {
    let context = context(&[("CRUCIBLE_GATEWAY_BASE_URL", "http://127.0.0.1:1/v1")]);
    let named = |settings: &ProviderSettings, name: &str| {
        let error = construct(name, settings, &context).err().unwrap();
        assert!(matches!(error, LlmError::Misconfiguration(_)));
        error.to_string()
    };
    let full_provider_settings = ProviderSettings {
        base_url: Some("http://localhost:1/v1".to_owned()),
        ..gateway_settings()
    };
    assert!(construct("gateway", &full_provider_settings, &context).is_ok());
    for (without, key) in [
        (
            ProviderSettings {
                base_url: None,
                ..full_provider_settings.clone()
            },
            "base_url",
        ),
        (
            ProviderSettings {
                model: None,
                ..full_provider_settings.clone()
            },
            "model",
        ),
        (
            ProviderSettings {
                max_tokens: None,
                ..full_provider_settings.clone()
            },
            "max_tokens",
        ),
    ] {
        let text = named(&without, "gateway");
        assert!(text.contains(&format!("set [llm.gateway] {key}")), "{text}");
    }
    let whole = ProviderSettings {
        binary: Some("/bin/sh".into()),
        ..client_settings()
    };
    assert!(construct("claude-cli", &whole, &context).is_ok());
    for (without, key) in [
        (
            ProviderSettings {
                binary: None,
                ..whole.clone()
            },
            "binary",
        ),
        (
            ProviderSettings {
                model: None,
                ..whole.clone()
            },
            "model",
        ),
        (
            ProviderSettings {
                max_tokens: None,
                ..whole.clone()
            },
            "max_tokens",
        ),
    ] {
        let text = named(&without, "claude-cli");
        assert!(
            text.contains(&format!("set [llm.claude-cli] {key}")),
            "{text}"
        );
    }
}

#[test]
fn project_address_gets_no_credentials() {
    let context = context(&[("A_KEY", "key-0123456789")]);
    let full_provider_settings = ProviderSettings {
        base_url: Some("http://127.0.0.1:1/v1".to_owned()),
        address: AddressOrigin::Project,
        api_key_env: Some("A_KEY".to_owned()),
        binary: Some("/bin/sh".into()),
        referer: Some("https://example.org".to_owned()),
        title: Some("title".to_owned()),
        ..gateway_settings()
    };
    for kind in registry().iter().filter(|kind| kind.name() != "replay") {
        for login in [Login::User, Login::Isolated] {
            let settings = ProviderSettings {
                login,
                ..full_provider_settings.clone()
            };
            let error = construct(kind.name(), &settings, &context).err().unwrap();
            assert!(matches!(error, LlmError::Misconfiguration(_)));
            let text = error.to_string();
            assert!(
                text.contains("is not sent there") && text.contains("base_url from"),
                "{text}"
            );
            assert!(!text.contains("key-0123456789"), "{text}");
            let own = ProviderSettings {
                address: AddressOrigin::User,
                ..settings
            };
            assert!(
                construct(kind.name(), &own, &context).is_ok(),
                "{}",
                kind.name()
            );
        }
    }
    let free = ProviderSettings {
        api_key_env: None,
        ..full_provider_settings
    };
    assert!(
        construct("gateway", &free, &context).is_ok(),
        "a server that wants no key is asked"
    );
}

#[test]
fn a_missing_program_lists_the_places_searched() {
    let context = context(&[("PATH", "/nowhere/one:/nowhere/two")]);
    let error = construct("claude-cli", &client_settings(), &context)
        .err()
        .unwrap();
    assert!(matches!(error, LlmError::Misconfiguration(_)));
    let text = error.to_string();
    assert!(
        text.contains("/nowhere/one")
            && text.contains("/nowhere/two")
            && text.contains("npm install"),
        "{text}"
    );
}

#[test]
fn unusable_program_is_described() {
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("plain");
    std::fs::write(&plain, "not a program").unwrap();
    for (program, problem) in [
        (dir.path().to_owned(), "is a directory"),
        (plain, "is not executable"),
        (dir.path().join("gone"), "it was not found"),
    ] {
        let settings = ProviderSettings {
            binary: Some(program),
            ..client_settings()
        };
        let error = construct("claude-cli", &settings, &context(&[]))
            .err()
            .unwrap();
        assert!(error.to_string().contains(problem), "{error}");
    }
}

#[test]
fn a_recording_must_be_named_and_be_there() {
    let error = construct("replay", &ProviderSettings::default(), &context(&[]))
        .err()
        .unwrap();
    assert!(
        error.to_string().contains("no recording is named"),
        "{error}"
    );
    let settings = ProviderSettings {
        cassette: Some(PathBuf::from("/nowhere/x.jsonl").into()),
        ..ProviderSettings::default()
    };
    let error = construct("replay", &settings, &context(&[])).err().unwrap();
    assert!(
        matches!(error, LlmError::Misconfiguration(_))
            && error.to_string().contains("/nowhere/x.jsonl")
    );
}

/// The context of an embedding program: HTTP and the given keys.
#[test]
fn http_only_context_has_no_programs() {
    let key = || ("MY_KEY".to_owned(), Secret::new("k".to_owned()));
    let context = Context::http_only([key()]).unwrap();
    let mut programs = 0;
    for kind in registry() {
        match kind.class() {
            ProviderClass::Http { .. } => {
                let settings = ProviderSettings {
                    api_key_env: Some("MY_KEY".to_owned()),
                    ..http_settings("http://localhost:1/v1")
                };
                assert!(
                    construct(kind.name(), &settings, &context).is_ok(),
                    "{}",
                    kind.name()
                );
                // The environment of the process is not used.
                let error = construct(kind.name(), &settings, &Context::http_only([]).unwrap())
                    .err()
                    .unwrap();
                assert!(error.to_string().contains("MY_KEY"), "{error}");
            }
            ProviderClass::Program { .. } => {
                programs += 1;
                // A program that every machine has, so that only the missing PATH matters.
                let settings = ProviderSettings {
                    binary: Some("sh".into()),
                    ..client_settings()
                };
                let error = construct(kind.name(), &settings, &context).err().unwrap();
                assert!(matches!(error, LlmError::Misconfiguration(_)), "{error}");
                assert!(
                    error
                        .to_string()
                        .contains("PATH holds no absolute directory"),
                    "{error}"
                );
            }
            ProviderClass::Recording => {}
        }
    }
    assert_eq!(programs, 3);
}
