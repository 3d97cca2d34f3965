//! Bad servers, networks and settings, for every HTTP provider.
//!
//! Each fault is a typed error without the key or the prompt, and every call ends: a silent server within
//! the call's time, all else within a deadline that is generous for a loaded machine.

use std::io::Write;
use std::time::Duration;

use crucible_llm::{
    AnswerFault, CallError, KeyUse, LlmBackend, LlmError, LlmResult, ProviderClass,
    ProviderSettings, Recording, RetryPolicy, construct,
};
use crucible_testkit::{FakeApi, Reply, RetryAfter};
use serde_json::json;

use crate::raw_server::{RawServer, read_request};
use crate::support::{ask, client, context, http_backend, http_providers, http_settings};

const KEY: &str = "secret-key-0123456789";
const PROMPT: &str = "words of the prompt";

/// A deadline that no call here reaches unless it hangs.
const DEADLINE: Duration = Duration::from_secs(120);

/// Makes a call with this timeout, and checks what holds for every error.
async fn outcome(provider: &str, base_url: &str, timeout: Duration) -> Result<LlmResult, LlmError> {
    let backend = http_backend(provider, base_url, &context(&[("TEST_KEY", KEY)]));
    let mut inv = ask(PROMPT);
    inv.timeout = timeout;
    let outcome = tokio::time::timeout(DEADLINE, backend.invoke(inv))
        .await
        .unwrap();
    if let Err(error) = &outcome {
        let text = format!("{error} {error:?}");
        assert!(
            !text.contains("0123456789") && !text.contains(PROMPT),
            "{text}"
        );
        assert!(
            text.contains(provider) && text.contains("test-model"),
            "{text}"
        );
    }
    outcome
}

async fn error_after(provider: &str, reply: &Reply) -> LlmError {
    let server = FakeApi::start([reply.clone()]);
    outcome(provider, &server.base_url(), Duration::from_secs(60))
        .await
        .unwrap_err()
}

#[tokio::test]
async fn invalid_answer_is_outage_without_retry() {
    for reply in [
        Reply::Html,
        Reply::BadJson,
        Reply::EndHalfway,
        Reply::InvalidUtf8,
        Reply::Raw(200, Vec::new()),
        Reply::Raw(200, b"null".to_vec()),
        Reply::Raw(200, b"{}".to_vec()),
        Reply::Raw(200, b"[]".to_vec()),
        Reply::Raw(200, br#"{"choices":null,"content":null}"#.to_vec()),
        Reply::Raw(
            200,
            br#"{"choices":[{"message":{"content":["parts"]}}],"content":"text"}"#.to_vec(),
        ),
        Reply::Raw(200, br#"{"choices":[{}],"content":[{}]}"#.to_vec()),
        Reply::Raw(
            200,
            br#"{"choices":{"message":{}},"content":{"text":"x"}}"#.to_vec(),
        ),
        Reply::Raw(200, vec![b'['; 200_000]),
    ] {
        for provider in http_providers() {
            let error = error_after(provider, &reply).await;
            assert_eq!(error.class(), "provider_outage", "{provider}: {reply:?}");
            assert!(
                !error.is_transient() && error.answer_fault().is_none(),
                "{provider}: {error}"
            );
        }
    }
}

#[tokio::test]
async fn an_answer_without_words_is_the_models_fault() {
    for reply in [
        Reply::EmptyChoices,
        Reply::NullContent,
        Reply::Answer(String::new()),
        Reply::Answer(" \n\t".to_owned()),
        Reply::CutAnswer(String::new()),
    ] {
        for provider in http_providers() {
            let error = error_after(provider, &reply).await;
            assert_eq!(
                error.answer_fault(),
                Some(AnswerFault::Empty),
                "{provider}: {reply:?}: {error}"
            );
            assert!(!error.is_transient());
        }
    }
}

/// Sends this head, then body pieces until the reader stops.
fn flood(head: &'static str, piece: &'static [u8]) -> RawServer {
    RawServer::start(move |mut stream| {
        if read_request(&mut stream) && stream.write_all(head.as_bytes()).is_ok() {
            while stream.write_all(piece).is_ok() {}
        }
    })
}

#[tokio::test]
async fn fifty_megabytes_are_not_read_announced_or_not() {
    let announced = flood(
        "HTTP/1.1 200 OK\r\ncontent-length: 50000000\r\n\r\n",
        b"                ",
    );
    let mut piece = b"10000\r\n".to_vec();
    piece.extend_from_slice(&[b' '; 0x10000]);
    piece.extend_from_slice(b"\r\n");
    let chunked = flood(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        piece.leak(),
    );
    for server in [announced, chunked] {
        for provider in http_providers() {
            let error = outcome(provider, &server.base_url(), Duration::from_secs(60))
                .await
                .unwrap_err();
            assert_eq!(
                error.answer_fault(),
                Some(AnswerFault::TooLarge),
                "{provider}: {error}"
            );
        }
    }
}

#[tokio::test]
async fn headers_without_end_are_broken_off() {
    let server = flood("HTTP/1.1 200 OK\r\n", b"x-filler: 0123456789\r\n");
    for provider in http_providers() {
        let error = outcome(provider, &server.base_url(), Duration::from_secs(60))
            .await
            .unwrap_err();
        assert!(
            matches!(error, LlmError::Transport(_)),
            "{provider}: {error}"
        );
    }
}

#[tokio::test]
async fn endless_response_times_out() {
    for reply in [
        Reply::Hang,
        Reply::Endless,
        Reply::LateAnswer("late".to_owned(), Duration::from_secs(3600)),
    ] {
        for provider in http_providers() {
            let server = FakeApi::start([reply.clone()]);
            let error = outcome(provider, &server.base_url(), Duration::from_millis(300))
                .await
                .unwrap_err();
            assert!(
                matches!(error, LlmError::Timeout { .. }),
                "{provider}: {reply:?}: {error}"
            );
        }
    }
}

#[tokio::test]
async fn invalid_token_limit_is_refused_unsent() {
    for provider in http_providers() {
        let server = FakeApi::start([Reply::Answer("fine".to_owned())]);
        let backend = http_backend(provider, &server.base_url(), &context(&[("TEST_KEY", KEY)]));
        for hint in [json!(0), json!(-1), json!(1.5), json!("77"), json!(null)] {
            let mut inv = ask(PROMPT);
            inv.metadata.insert("max_tokens".to_owned(), hint.clone());
            let error = backend.invoke(inv).await.unwrap_err();
            assert!(
                matches!(error, LlmError::Unsupported(_)),
                "{provider}: {hint}: {error}"
            );
        }
        assert_eq!(server.requests().len(), 0, "{provider}");
    }
}

#[tokio::test]
async fn a_broken_exchange_is_transport() {
    for provider in http_providers() {
        for reply in [Reply::Drop, Reply::DropHalfway] {
            let error = error_after(provider, &reply).await;
            assert!(
                matches!(error, LlmError::Transport(_)),
                "{provider}: {reply:?}: {error}"
            );
        }
        let free = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let error = outcome(provider, &format!("http://{free}/v1"), DEADLINE)
            .await
            .unwrap_err();
        assert!(
            matches!(error, LlmError::Transport(_)) && error.to_string().contains("base_url"),
            "{error}"
        );
        let no_http =
            RawServer::start(|mut stream| drop(stream.write_all(b"SSH-2.0-server\r\n\r\n")));
        let error = outcome(provider, &no_http.base_url(), DEADLINE)
            .await
            .unwrap_err();
        assert!(
            matches!(error, LlmError::Transport(_)),
            "{provider}: {error}"
        );
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    for provider in http_providers() {
        let elsewhere = FakeApi::start([Reply::Answer("stolen".to_owned())]);
        let target = Reply::Redirect(format!("{}/chat/completions", elsewhere.base_url()));
        assert!(matches!(
            error_after(provider, &target).await,
            LlmError::Misconfiguration(_)
        ));
        assert_eq!(elsewhere.requests().len(), 0);
    }
}

/// A requested wait of a year is reported at once, even by the layers around a backend.
#[tokio::test]
async fn year_long_retry_after_fails_at_once() {
    for provider in http_providers() {
        let server = FakeApi::start([Reply::RateLimited(RetryAfter::Value("31536000".to_owned()))]);
        let backend = http_backend(provider, &server.base_url(), &context(&[("TEST_KEY", KEY)]));
        let client = client(backend, Recording::Off, RetryPolicy::PHASES);
        let call = tokio::time::timeout(DEADLINE, client.call(ask(PROMPT)))
            .await
            .unwrap();
        let Err(CallError::Llm(LlmError::ProviderQuota(fault))) = call else {
            panic!("429 is a quota")
        };
        assert_eq!(fault.retry_after_seconds, Some(31_536_000));
        assert_eq!(server.requests().len(), 1);
    }
}

/// Seed 002, property 7, through each provider and a real connection.
#[tokio::test]
async fn each_status_becomes_its_variant() {
    let expected = [
        (204, "provider_outage"),
        (400, "unsupported"),
        (401, "provider_auth"),
        (402, "provider_quota"),
        (403, "provider_auth"),
        (404, "misconfiguration"),
        (408, "provider_outage"),
        (413, "unsupported"),
        (422, "unsupported"),
        (429, "provider_quota"),
        (500, "provider_outage"),
        (502, "provider_outage"),
        (503, "provider_outage"),
        (504, "provider_outage"),
        (529, "provider_outage"),
    ];
    for provider in http_providers() {
        for (status, class) in expected {
            let error = error_after(provider, &Reply::Status(status)).await;
            assert_eq!(error.class(), class, "{provider}: {status}");
            assert_eq!(error.is_transient(), status >= 500);
            assert!(error.to_string().contains(&status.to_string()), "{error}");
        }
    }
}

#[test]
fn invalid_base_url_is_refused_without_text() {
    let context = context(&[("TEST_KEY", KEY)]);
    for bad in [
        "",
        "here",
        "http://",
        "ftp://host/v1",
        "file:///etc/passwd",
        "http://user:pass-0123@host/v1",
        "http://host/v1?key=pass-0123",
        "http://host/v1#pass-0123",
    ] {
        for provider in http_providers() {
            let error = construct(provider, &http_settings(bad), &context)
                .err()
                .unwrap();
            assert!(
                matches!(error, LlmError::Misconfiguration(_)),
                "{provider}: {bad}: {error}"
            );
            assert!(
                error
                    .to_string()
                    .contains(&format!("[llm.{provider}] base_url")),
                "{error}"
            );
            assert!(!format!("{error} {error:?}").contains("pass-0123"));
        }
    }
}

#[test]
fn invalid_key_is_refused_without_text() {
    let settings = http_settings("https://host.invalid/v1");
    for provider in http_providers() {
        for key in [
            "",
            " \t",
            "secret-key-0123456789\n",
            "secret-key-0123456789\r\nx-other: 1",
            "schlüssel-0123456789",
        ] {
            let error = construct(provider, &settings, &context(&[("TEST_KEY", key)]))
                .err()
                .unwrap();
            assert!(
                matches!(error, LlmError::Misconfiguration(_)),
                "{provider}: {error}"
            );
            assert!(!format!("{error} {error:?}").contains("0123456789"));
        }
        let unnamed = ProviderSettings {
            api_key_env: None,
            ..settings.clone()
        };
        let backend = construct(provider, &unnamed, &context(&[("TEST_KEY", KEY)]));
        let class = crucible_llm::provider(provider).unwrap().class();
        let is_optional = class
            == ProviderClass::Http {
                key: KeyUse::Optional,
            };
        assert_eq!(backend.is_ok(), is_optional, "{provider}");
    }
}
