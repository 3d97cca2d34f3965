//! Serves one client on a pair of streams.

use std::sync::Arc;
use std::time::Duration;

use crucible_model::{Failure, one_line};
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::calls::run_calls;
use crate::host::ToolHost;
use crate::lines::Lines;
use crate::reach::Reach;
use crate::server::Server;
use crate::session::Session;

/// How long calls may go on after the input has ended.
const LAST_CALLS: Duration = Duration::from_secs(10);

/// Serves a client until its input ends. Calls that take longer than ten seconds more are ended.
///
/// # Errors
///
/// Fails if the settings cannot be read, or if the client does not begin as the protocol says.
pub async fn serve_stdio(
    host: &dyn ToolHost,
    reach: &Reach,
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> Result<(), Failure> {
    let session = Session::new(host, reach)?;
    let (server, calls) = Server::new(session.landing);
    let ended = Arc::new(Notify::new());
    let lines = Lines::new(input, output, Arc::clone(&ended));
    let protocol = async {
        let running = match server.serve(lines).await {
            Ok(running) => running,
            // A client that leaves before it has begun has got what it wanted.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(not_begun(&error)),
        };
        // The end is reported as a client that has gone.
        let _gone = running.waiting().await;
        Ok(())
    };
    let late = async {
        ended.notified().await;
        sleep(LAST_CALLS).await;
    };
    tokio::select! {
        result = protocol => result,
        () = run_calls(&session, calls) => Ok(()),
        () = late => Ok(()),
    }
}

fn not_begun(error: &ServerInitializeError) -> Failure {
    let text: String = one_line(&error.to_string()).chars().take(300).collect();
    Failure::refused(format!("the MCP handshake failed: {text}")).hint(
        "`crucible mcp` is started by a client of the Model Context Protocol; docs/mcp.md has the setups.",
    )
}
