//! Connections: how many there are, and how long one may take to ask.
//!
//! Every program of this machine can connect, also those of other users, who have no cookie. A connection that asks for nothing
//! is closed, and so many of them at once are all there are, so that they cannot keep the page from its reader for long.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// How long a connection may take until it has sent the head of its next request.
pub(crate) const HEAD_TIME: Duration = Duration::from_secs(3);
/// How long a request may take to send its form.
pub(crate) const FORM_TIME: Duration = Duration::from_secs(3);
/// How many connections there are at most; more wait.
pub(crate) const MAX_CONNECTIONS: usize = 256;
/// How long to wait when no connection can be accepted, such as without a free file descriptor.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers connections until it is dropped, which ends them.
pub(crate) async fn answer_connections(listener: TcpListener, router: Router) {
    let free = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut open = JoinSet::new();
    loop {
        let Ok(place) = Arc::clone(&free).acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        while open.try_join_next().is_some() {}
        let service = TowerToHyperService::new(router.clone());
        open.spawn(async move {
            let mut server = http1::Builder::new();
            server
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIME);
            let _the_reader_left = server.serve_connection(TokioIo::new(stream), service).await;
            drop(place);
        });
    }
}
