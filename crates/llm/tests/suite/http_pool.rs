//! Many calls at once, over the connections of one client.

use std::io::Write;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use crucible_llm::LlmBackend;

use crate::raw_server::{RawServer, read_request, response};
use crate::support::{ask, context, http_backend, http_providers};

const CALLS: usize = 64;

fn answer() -> Vec<u8> {
    // Every provider finds its own list in it.
    response(
        200,
        r#"{"choices":[{"message":{"content":"ok"}}],"content":[{"type":"text","text":"ok"}]}"#,
    )
}

/// The server answers only after all calls have arrived: calls that wait for each other would never end.
#[tokio::test]
async fn sixty_four_calls_are_in_flight_at_once() {
    let all_there = Barrier::new(CALLS);
    let server = RawServer::start(move |mut stream| {
        while read_request(&mut stream) {
            all_there.wait();
            std::thread::sleep(Duration::from_millis(200));
            let _ = stream.write_all(&answer());
        }
    });
    let context = context(&[("TEST_KEY", "k")]);
    let backends: Vec<_> = http_providers()
        .into_iter()
        .map(|name| Arc::new(http_backend(name, &server.base_url(), &context)))
        .collect();
    let calls: Vec<_> = (backends.iter().cycle().take(CALLS))
        .map(|backend| {
            let backend = Arc::clone(backend);
            let mut inv = ask("x");
            inv.timeout = Duration::from_secs(120);
            tokio::spawn(async move { backend.invoke(inv).await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().raw_response, "ok");
    }
    assert_eq!(server.connections(), CALLS);
}

#[tokio::test]
async fn providers_share_http_connections() {
    let server =
        RawServer::start(
            |mut stream| {
                while read_request(&mut stream) && stream.write_all(&answer()).is_ok() {}
            },
        );
    let context = context(&[("TEST_KEY", "k")]);
    for name in http_providers().into_iter().cycle().take(CALLS) {
        http_backend(name, &server.base_url(), &context)
            .invoke(ask("x"))
            .await
            .unwrap();
    }
    // One is usual; a connection that is returned slightly late causes another.
    assert!(
        server.connections() < CALLS / 4,
        "{} connections",
        server.connections()
    );
}
