//! `crucible mcp`: Crucible as a tool of coding agents.

use std::path::PathBuf;

use clap::Args;
use crucible_mcp::{HttpServer, Reach, serve_http, serve_stdio};
use crucible_model::{ExitStatus, Failure};
use crucible_terminal::{InputStream, OutputStream};
use serde::Serialize;

use crate::app::App;

/// Serve coding agents that call Crucible as a tool
///
/// Speaks the Model Context Protocol on standard input and output, for clients such as Claude Code, Codex and Gemini CLI.
/// Tools build context packs, check patches, start and follow runs, and submit changes. Only the user lands, unless
/// `[mcp] land = true` is in the user's own settings. docs/mcp.md shows the setups. For example: `claude mcp add crucible --
/// crucible mcp`
#[derive(Args)]
pub(crate) struct Mcp {
    /// A directory in a repository that tools reach. May be given several times; the first is their default
    #[arg(long, value_name = "DIR", default_value = ".")]
    repo: Vec<PathBuf>,
    /// Serve streamable HTTP on this port of 127.0.0.1 instead; 0 is any free port. Prints the address and a token
    #[arg(long, value_name = "PORT")]
    http: Option<u16>,
}

/// How clients reach the server, as JSON.
#[derive(Serialize)]
struct AccessDocument<'a> {
    schema_version: &'static str,
    url: &'a str,
    token: &'a str,
}

impl Mcp {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let directories = self.repo.iter().map(|named| app.directory(named));
        let reach = Reach::new(directories.collect::<Result<_, _>>()?);
        match self.http {
            None => app.block_on(async {
                serve_stdio(app, &reach, InputStream::open(), OutputStream::open()).await
            })?,
            Some(port) => app.block_on(async {
                let server = HttpServer::open(port).await?;
                show(app, &server)?;
                serve_http(app, &reach, server).await
            })?,
        }
        Ok(ExitStatus::Success)
    }
}

fn show(app: &App, server: &HttpServer) -> Result<(), Failure> {
    let access = server.access();
    let token = access.token.expose();
    let document = AccessDocument {
        schema_version: "crucible-mcp-access-v1",
        url: &access.url,
        token,
    };
    app.output.show(
        || document,
        || {
            app.output.line(&format!("url    {}", access.url));
            app.output.line(&format!("token  {token}"));
            app.output
                .remark("Requests carry the token as `Authorization: Bearer TOKEN`. Ctrl-C ends the server.");
        },
    )?;
    Ok(())
}
