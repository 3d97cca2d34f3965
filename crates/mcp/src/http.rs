//! Serves clients by streamable HTTP on the loopback.
//!
//! What always holds: the listener is on 127.0.0.1; a request without the token is refused before it is read; the headers `Host`
//! and `Origin` must name the loopback, so that no page of a browser reaches the server under another name.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use crucible_host::random;
use crucible_model::{Digest, Failure, Secret};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use crate::calls::run_calls;
use crate::host::ToolHost;
use crate::reach::Reach;
use crate::server::Server;
use crate::session::Session;

/// The path of the server.
const PATH: &str = "/mcp";
/// The longest request, in bytes.
const MAX_REQUEST: usize = 8 << 20;

/// How a client reaches the server.
#[derive(Debug)]
pub struct HttpAccess {
    /// The address, such as `http://127.0.0.1:8123/mcp`.
    pub url: String,
    /// What every request carries as `Authorization: Bearer`.
    pub token: Secret,
}

/// A server that listens and does not answer yet.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    access: HttpAccess,
}

impl HttpServer {
    /// Listens on this port of the loopback; 0 is any free one.
    ///
    /// # Errors
    ///
    /// Fails if the port is taken.
    pub async fn open(port: u16) -> Result<Self, Failure> {
        let taken = |error: std::io::Error| {
            Failure::usage(format!("cannot listen on 127.0.0.1:{port}: {error}"))
                .hint("Choose another port, or 0 for any free one.")
        };
        let listener = TcpListener::bind(("127.0.0.1", port))
            .await
            .map_err(taken)?;
        let address = listener.local_addr().map_err(taken)?;
        let access = HttpAccess {
            url: format!("http://{address}{PATH}"),
            token: Secret::new(random::token()?),
        };
        Ok(Self { listener, access })
    }

    /// How clients reach it.
    #[must_use]
    pub fn access(&self) -> &HttpAccess {
        &self.access
    }

    /// Answers with this handler until dropped.
    ///
    /// # Errors
    ///
    /// Fails if the listener does.
    pub async fn serve<S: ServerHandler + Clone>(self, handler: S) -> Result<(), Failure> {
        let Self { listener, access } = self;
        let loopback = ["localhost", "127.0.0.1", "[::1]"];
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(["localhost", "127.0.0.1", "::1"])
            .with_allowed_origins(loopback.map(|host| format!("http://{host}:*")))
            .enforce_origin_validation()
            .with_max_request_body_bytes(MAX_REQUEST);
        let sessions = Arc::new(LocalSessionManager::default());
        let service = StreamableHttpService::new(move || Ok(handler.clone()), sessions, config);
        let token = Arc::new(Digest::compute(access.token.expose().as_bytes()));
        let router = Router::new()
            .route_service(PATH, service)
            .layer(from_fn_with_state(token, with_token));
        axum::serve(listener, router)
            .await
            .map_err(|error| Failure::refused(format!("the server has ended: {error}")))
    }
}

/// Serves clients by HTTP until dropped.
///
/// # Errors
///
/// Fails if the settings cannot be read, or if the listener does.
pub async fn serve_http(
    host: &dyn ToolHost,
    reach: &Reach,
    server: HttpServer,
) -> Result<(), Failure> {
    let session = Session::new(host, reach)?;
    let (handler, calls) = Server::new(session.landing);
    tokio::select! {
        result = server.serve(handler) => result,
        () = run_calls(&session, calls) => Ok(()),
    }
}

/// Passes on a request that carries the token. Digests are compared, so that the time tells nothing of the token.
async fn with_token(
    State(token): State<Arc<Digest>>,
    request: Request,
    next: Next,
) -> Response<Body> {
    let given_header_value = request.headers().get(header::AUTHORIZATION);
    let bytes = given_header_value.and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    if bytes.is_some_and(|content| Digest::compute(content) == *token) {
        return next.run(request).await;
    }
    let mut response = Response::new(Body::from("the token is missing or wrong"));
    *response.status_mut() = StatusCode::UNAUTHORIZED;
    let scheme = header::HeaderValue::from_static("Bearer");
    response
        .headers_mut()
        .insert(header::WWW_AUTHENTICATE, scheme);
    response
}
