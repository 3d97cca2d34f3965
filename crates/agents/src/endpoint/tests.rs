//! The endpoint between an agent and a provider that answers event by event.

use std::path::Path;

use crucible_llm::BudgetLimits;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use super::*;

const EVENT: &str =
    "data: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\n";
const LAST: &str = "data: {\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n\
                    data: [DONE]\n\n";
const NO_LIMITS: BudgetLimits = BudgetLimits {
    calls: Limit::At(9),
    tokens: Limit::Unlimited,
    micro_dollars: Limit::Unlimited,
};

/// A provider that has received a request and sends what a test asks for.
struct Provider(TcpStream);

impl Provider {
    async fn asked(listener: &TcpListener) -> Self {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"}") {
            stream.read_buf(&mut request).await.unwrap();
        }
        Self(stream)
    }

    async fn head(&mut self) {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        self.0.write_all(head.as_bytes()).await.unwrap();
    }

    async fn event(&mut self, text: &str) {
        let chunk = format!("{:x}\r\n{text}\r\n", text.len());
        self.0.write_all(chunk.as_bytes()).await.unwrap();
    }
}

async fn endpoint(listener: &TcpListener, dir: &TempDir) -> Endpoint {
    endpoint_with(NO_LIMITS, listener, dir).await
}

async fn endpoint_with(limits: BudgetLimits, listener: &TcpListener, dir: &TempDir) -> Endpoint {
    Endpoint::open(EndpointOptions {
        wire: Wire::OpenAi,
        upstream: Upstream {
            provider: "openai",
            origin: format!("http://{}", listener.local_addr().unwrap()),
            key: None,
            max_tokens: 10,
        },
        http: Arc::new(HttpClient::new().unwrap()),
        budget: CallBudget::new(limits),
        prices: Arc::default(),
        exchanges: Exchanges::begin(&record(dir), &[]).unwrap(),
        timeout: Duration::from_secs(60),
    })
    .await
    .unwrap()
}

fn record(dir: &TempDir) -> std::path::PathBuf {
    dir.path().join("exchanges.jsonl")
}

fn recorded(path: &Path) -> Vec<Exchange> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Asks the endpoint, and returns the connection.
async fn ask(endpoint: &Endpoint) -> Result<HttpStream, HttpError> {
    let bearer = format!("Bearer {}", endpoint.token().expose());
    let body =
        json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "hello"}]});
    let request = HttpRequest {
        url: format!("{}/v1/chat/completions", endpoint.url()),
        headers: vec![("authorization".to_owned(), Secret::new(bearer))],
        payload: Payload::Json(body.to_string().into_bytes()),
        timeout: Duration::from_secs(60),
        max_body: ByteLimit(1 << 20),
    };
    HttpClient::new().unwrap().open(request).await
}

#[tokio::test]
async fn each_event_is_passed_on_before_the_next_exists() {
    let (listener, dir) = (
        TcpListener::bind("127.0.0.1:0").await.unwrap(),
        TempDir::new().unwrap(),
    );
    let endpoint = endpoint(&listener, &dir).await;
    let (arrived, has_arrived) = oneshot::channel();
    let agent = async {
        let mut stream = ask(&endpoint).await.unwrap();
        let mut text = Vec::new();
        while text.len() < EVENT.len() {
            text.extend(stream.chunk().await.unwrap().unwrap());
        }
        arrived.send(()).unwrap();
        while let Some(piece) = stream.chunk().await.unwrap() {
            text.extend(piece);
        }
        text
    };
    let provider = async {
        let mut provider = Provider::asked(&listener).await;
        provider.head().await;
        provider.event(EVENT).await;
        has_arrived.await.unwrap();
        provider.event(LAST).await;
        provider.event("").await;
    };
    let (text, ()) = tokio::join!(agent, provider);
    assert_eq!(text, format!("{EVENT}{LAST}").into_bytes());
    let used = endpoint.close().await;
    assert_eq!((used.tokens_input, used.tokens_output), (3, 2));
    assert!(recorded(&record(&dir))[0].is_whole);
}

#[tokio::test]
async fn request_without_a_waiting_agent_is_recorded() {
    for has_begun in [false, true] {
        let (listener, dir) = (
            TcpListener::bind("127.0.0.1:0").await.unwrap(),
            TempDir::new().unwrap(),
        );
        let endpoint = endpoint(&listener, &dir).await;
        let (begun, has_begun_here) = oneshot::channel();
        let provider = async {
            let mut provider = Provider::asked(&listener).await;
            if has_begun {
                provider.head().await;
                provider.event(EVENT).await;
            } else {
                begun.send(()).unwrap();
            }
            provider
        };
        let agent = async {
            if has_begun {
                let mut stream = ask(&endpoint).await.unwrap();
                stream.chunk().await.unwrap();
            } else {
                tokio::select! {
                    _ = ask(&endpoint) => panic!("nothing was answered"),
                    _ = has_begun_here => {}
                }
            }
        };
        let (provider, ()) = tokio::join!(provider, agent);
        endpoint.close().await;
        drop(provider);
        let recorded = recorded(&record(&dir));
        assert_eq!(recorded.len(), 1);
        assert!(!recorded[0].is_whole && recorded[0].refused.is_some());
        assert!(recorded[0].request.contains("hello"));
    }
}

#[tokio::test]
async fn reservation_waits_for_unsettled_answers() {
    let (listener, dir) = (
        TcpListener::bind("127.0.0.1:0").await.unwrap(),
        TempDir::new().unwrap(),
    );
    let limits = BudgetLimits {
        tokens: Limit::At(150),
        ..NO_LIMITS
    };
    let endpoint = endpoint_with(limits, &listener, &dir).await;
    let shared = &endpoint.shared;
    let call = PlannedCall {
        provider: "openai",
        model: "m".to_owned(),
        request: Digest::compute(b""),
        worst: Amount {
            calls: 1,
            tokens: 100,
            micro_dollars: 0,
        },
    };
    let first = shared.reserve_call(call.clone()).await.unwrap();
    let refused = shared.reserve_call(call.clone()).await;
    assert!(matches!(refused, Err(ReservationError::Exhausted { .. })));
    shared.settling.send_modify(|count| *count += 1);
    let settle = async {
        tokio::task::yield_now().await;
        let end = CallEnd {
            outcome: "ok",
            tokens: Some((3, 2)),
            micro_dollars: None,
        };
        first.settle(end).await.unwrap();
        shared.settling.send_modify(|count| *count -= 1);
    };
    let (second, ()) = tokio::join!(shared.reserve_call(call), settle);
    assert!(second.is_ok());
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the test takes the record away")]
async fn request_after_unrecorded_exchange_is_refused() {
    let (listener, dir) = (
        TcpListener::bind("127.0.0.1:0").await.unwrap(),
        TempDir::new().unwrap(),
    );
    let endpoint = endpoint(&listener, &dir).await;
    std::fs::remove_file(record(&dir)).unwrap();
    std::fs::create_dir(record(&dir)).unwrap();
    let provider = async {
        let mut provider = Provider::asked(&listener).await;
        provider.head().await;
        provider.event(LAST).await;
        provider.event("").await;
    };
    let agent = async {
        let mut stream = ask(&endpoint).await.unwrap();
        while stream.chunk().await.unwrap().is_some() {}
    };
    tokio::join!(provider, agent);
    while !endpoint.shared.exchanges.has_failed() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(ask(&endpoint).await.unwrap().status, 503);
}
