//! The choice of a provider: the named one, or its fallback if that one cannot be prepared.

use std::os::unix::fs::PermissionsExt;

use crucible_llm::{Fallback, LlmError, NamedProvider, ProviderSettings, ReceiptWarning, select};
use crucible_testkit::{FakeOpenAi, Reply};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::support::{ask, context};

/// A fault of a provider before anything is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    NoModel,
    NoKey,
    EmptyKey,
    NoBinary,
    BadUrl,
}

const FAULTS: [Fault; 6] = [
    Fault::None,
    Fault::NoModel,
    Fault::NoKey,
    Fault::EmptyKey,
    Fault::NoBinary,
    Fault::BadUrl,
];

/// The providers that can be prepared from settings alone.
const PROVIDERS: [&str; 5] = ["claude-cli", "anthropic", "openai", "openrouter", "gateway"];

fn candidate(name: &str, fault: Fault, temp_dir: &TempDir) -> NamedProvider {
    let program = temp_dir.path().join("client");
    let settings = ProviderSettings {
        base_url: Some(
            if fault == Fault::BadUrl {
                "no address"
            } else {
                "http://127.0.0.1:9/v1"
            }
            .to_owned(),
        ),
        model: (fault != Fault::NoModel).then(|| "some-model".to_owned()),
        max_tokens: Some(100),
        referer: Some("https://crucible.invalid/".to_owned()),
        title: Some("Crucible".to_owned()),
        api_key_env: Some(
            match fault {
                Fault::NoKey => "NOT_SET",
                Fault::EmptyKey => "EMPTY",
                _ => "A_KEY",
            }
            .to_owned(),
        ),
        binary: Some(if fault == Fault::NoBinary {
            temp_dir.path().join("nothing")
        } else {
            program
        }),
        ..ProviderSettings::default()
    };
    NamedProvider {
        name: name.to_owned(),
        settings,
    }
}

/// Whether this fault prevents the preparation of this provider.
fn matters(name: &str, fault: Fault) -> bool {
    match fault {
        Fault::None => false,
        Fault::NoBinary => name == "claude-cli",
        Fault::NoModel | Fault::NoKey | Fault::EmptyKey | Fault::BadUrl => true,
    }
}

fn new_temp_dir() -> TempDir {
    let temp_dir = tempfile::tempdir().unwrap();
    let program = temp_dir.path().join("client");
    std::fs::write(&program, "#!/bin/sh\nexit 1\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    temp_dir
}

mod properties {
    use super::*;

    proptest! {
        /// Seed 002, property 3: the fallback is used exactly if the named provider cannot be prepared,
        /// and that is reported; if both fail, both errors are reported.
        #[test]
        fn fallback_is_used_exactly_when_needed(
            primary in 0usize..PROVIDERS.len(), first in 0usize..FAULTS.len(),
            fallback in 0usize..PROVIDERS.len(), second in 0usize..FAULTS.len(),
        ) {
            let (primary, first) = (PROVIDERS[primary], FAULTS[first]);
            let (fallback, second) = (PROVIDERS[fallback], FAULTS[second]);
            let new_temp_dir = new_temp_dir();
            let context = context(&[("PATH", "/usr/bin:/bin"), ("A_KEY", "k-secret-value"), ("EMPTY", " ")]);
            let chosen = select(
                candidate(primary, first, &new_temp_dir),
                Fallback::To(Box::new(candidate(fallback, second, &new_temp_dir))),
                &context,
            );
            match (matters(primary, first), matters(fallback, second)) {
                (false, _) => {
                    let chosen = chosen.map_err(|error| TestCaseError::fail(error.to_string()))?;
                    prop_assert_eq!(chosen.backend.provider(), primary);
                    prop_assert!(chosen.fell_back.is_none());
                }
                (true, false) => {
                    let chosen = chosen.map_err(|error| TestCaseError::fail(error.to_string()))?;
                    prop_assert_eq!(chosen.backend.provider(), fallback);
                    prop_assert_eq!(&chosen.candidate.name, fallback);
                    let warning = ReceiptWarning::fallback(&chosen.fell_back.unwrap());
                    prop_assert_eq!(&warning.kind, "llm_fallback");
                    prop_assert!(warning.message.contains(primary) && warning.message.contains(fallback));
                    prop_assert!(warning.message.contains("misconfiguration"), "{}", warning.message);
                    prop_assert!(!warning.message.contains("k-secret-value"));
                }
                (true, true) => {
                    let error = chosen.err().unwrap();
                    prop_assert!(matches!(error, LlmError::Misconfiguration(_)));
                    let text = error.to_string();
                    prop_assert!(text.contains(primary) && text.contains(fallback), "{}", text);
                    prop_assert!(!text.contains("k-secret-value"));
                }
            }
        }
    }
}

#[test]
fn recorded_fallback_hides_home() {
    let fixture = new_temp_dir();
    let home = fixture.path().display().to_string();
    let chosen = select(
        candidate("claude-cli", Fault::NoBinary, &fixture),
        Fallback::To(Box::new(candidate("gateway", Fault::None, &fixture))),
        &context(&[("A_KEY", "k"), ("HOME", &home)]),
    );
    let message = ReceiptWarning::fallback(&chosen.unwrap().fell_back.unwrap()).message;
    assert!(
        message.contains("~/nothing") && !message.contains(&home),
        "{message}"
    );
}

#[test]
fn unknown_primary_does_not_fall_back() {
    let fixture = new_temp_dir();
    let fallback = Fallback::To(Box::new(candidate("gateway", Fault::None, &fixture)));
    for (name, message) in [
        ("", "LLM provider must be specified"),
        ("claud-cli", "unknown provider"),
    ] {
        let nobody = NamedProvider {
            name: name.to_owned(),
            settings: ProviderSettings::default(),
        };
        let error = select(nobody, fallback.clone(), &context(&[("A_KEY", "k")]))
            .err()
            .unwrap();
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[tokio::test]
async fn provider_failing_during_work_is_kept() {
    use crucible_llm::LlmBackend;

    let (failing, other) = (
        FakeOpenAi::start([Reply::Status(500)]),
        FakeOpenAi::start([Reply::Answer("hi".into())]),
    );
    let at = |server: &FakeOpenAi| NamedProvider {
        name: "gateway".to_owned(),
        settings: ProviderSettings {
            base_url: Some(server.base_url()),
            model: Some("m".to_owned()),
            max_tokens: Some(100),
            ..ProviderSettings::default()
        },
    };
    let chosen = select(
        at(&failing),
        Fallback::To(Box::new(at(&other))),
        &context(&[]),
    )
    .unwrap();
    let error = chosen.backend.invoke(ask("x")).await.unwrap_err();
    assert!(matches!(error, LlmError::ProviderOutage(_)), "{error}");
    assert_eq!((failing.requests().len(), other.requests().len()), (1, 0));
}
