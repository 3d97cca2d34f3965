//! `crucible trace`: runs as OpenTelemetry traces.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use crucible_host::fs::write_atomic;
use crucible_model::{Digest, ExitStatus, Failure, counted};
use crucible_trace::{Content, Resource, RunTrace, to_json, to_protobuf};

use crate::app::App;

/// Export runs as OpenTelemetry traces
#[derive(Subcommand)]
pub(crate) enum Trace {
    Export(Export),
}

/// Write a run as an OpenTelemetry trace
///
/// The spans follow from the ledger: the same run always has the same ids. They have no text of people, models, repositories
/// or programs unless --content is given. To send spans while you work, set `OTEL_EXPORTER_OTLP_ENDPOINT`; docs/traces.md
/// has the details. For example: `crucible trace export RUN --output run.json`
#[derive(Args)]
pub(crate) struct Export {
    /// The run's id or a prefix of it [default: newest run of this repository]
    run: Option<String>,
    /// The encoding of OTLP
    #[arg(long, value_enum, default_value_t = TraceFormat::Json)]
    format: TraceFormat,
    /// Include the goal, the plan, answers, findings and the gates' commands and output; secrets are replaced
    #[arg(long)]
    content: bool,
    /// Write to this file; an existing file is replaced [default: standard output]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// An encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TraceFormat {
    /// One line of JSON
    Json,
    /// Protobuf
    Protobuf,
}

impl Trace {
    pub(crate) fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        match self {
            Self::Export(export) => export.run(app),
        }
    }
}

impl Export {
    fn run(&self, app: &App) -> Result<ExitStatus, Failure> {
        let view = app.run_view(self.run.as_deref())?;
        let content = match self.content {
            true => Content::Included,
            false => Content::Omitted,
        };
        let trace = RunTrace::new(&view, content);
        let resource = Resource::of_version(env!("CARGO_PKG_VERSION"), Vec::new());
        let bytes = match self.format {
            TraceFormat::Json => {
                let mut text = to_json(&trace.id, &trace.spans, &resource);
                text.push('\n');
                text.into_bytes()
            }
            TraceFormat::Protobuf => to_protobuf(&trace.id, &trace.spans, &resource),
        };
        let Some(file) = &self.output else {
            app.output.bytes(&bytes);
            return Ok(ExitStatus::Success);
        };
        let path = app.absolute(file);
        write_atomic(&path, &bytes)?;
        app.output.show(
            || {
                serde_json::json!({
                    "schema_version": "crucible-trace-v1", "path": path, "trace_id": trace.id.to_string(),
                    "spans": trace.spans.len(), "digest": Digest::compute(&bytes), "size": bytes.len()
                })
            },
            || {
                let spans = counted(trace.spans.len() as u64, "span");
                app.output
                    .line(&format!("{} (trace {}, {spans})", path.display(), trace.id));
            },
        )
    }
}
