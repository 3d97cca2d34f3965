//! Sends spans to a collector from a thread of its own, within a time limit.
//!
//! The thread ends with the process. A caller waits no longer than the limit, regardless of what the collector does: it may
//! be missing, slow, send an endless answer or a redirect. Nothing is tried twice.

use std::thread;
use std::time::Duration;

use crucible_host::http::{HttpClient, HttpError, HttpRequest, Payload};
use crucible_model::{ByteLimit, Secret};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::collector::{Collector, Protocol};
use crate::encode::{Resource, to_json, to_protobuf};
use crate::id::TraceId;
use crate::span::Span;

/// The longest answer that is read.
const MAX_ANSWER: ByteLimit = ByteLimit(64 * 1024);

/// Spans on their way to a collector.
#[derive(Debug)]
pub struct Delivery {
    end: oneshot::Receiver<Result<(), DeliveryError>>,
    limit: Duration,
}

/// Why spans were not delivered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryError {
    /// The exchange failed.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The collector refused them.
    #[error("the collector answered with status {status}")]
    Refused {
        /// The status code.
        status: u16,
    },
    /// The time was over.
    #[error("no answer within {limit:?}")]
    TimedOut {
        /// The time limit.
        limit: Duration,
    },
    /// The thread could not be started.
    #[error("no thread could be started: {detail}")]
    Thread {
        /// What the system said.
        detail: String,
    },
}

impl Delivery {
    /// Begins to send spans, and returns at once.
    ///
    /// # Errors
    ///
    /// Fails if no thread can be started.
    pub fn start(
        collector: Collector,
        version: &str,
        trace: &TraceId,
        spans: &[Span],
    ) -> Result<Self, DeliveryError> {
        let resource = Resource::of_version(version, collector.attributes.clone());
        let (body, content_type) = match collector.protocol {
            Protocol::Protobuf => (
                to_protobuf(trace, spans, &resource),
                "application/x-protobuf",
            ),
            Protocol::Json => (
                to_json(trace, spans, &resource).into_bytes(),
                "application/json",
            ),
        };
        let limit = collector.timeout;
        let mut headers = collector.headers;
        headers.retain(|(name, _)| name != "content-type");
        headers.push((
            "content-type".to_owned(),
            Secret::new(content_type.to_owned()),
        ));
        let request = HttpRequest {
            url: collector.url,
            headers,
            payload: Payload::Bytes(body),
            timeout: limit,
            max_body: MAX_ANSWER,
        };
        let (sender, end) = oneshot::channel();
        let detail = |error: std::io::Error| DeliveryError::Thread {
            detail: error.to_string(),
        };
        thread::Builder::new()
            .name("trace".to_owned())
            .spawn(move || {
                // Nobody waits any more if the receiver is gone.
                let _unheard = sender.send(send(request));
            })
            .map_err(detail)?;
        Ok(Self { end, limit })
    }

    /// Waits for the end, no longer than the time limit of the collector.
    ///
    /// # Errors
    ///
    /// See [`DeliveryError`].
    pub async fn finish(self) -> Result<(), DeliveryError> {
        let limit = self.limit;
        match tokio::time::timeout(limit, self.end).await {
            Ok(Ok(end)) => end,
            // The sender is dropped only with its thread.
            Ok(Err(_)) | Err(_) => Err(DeliveryError::TimedOut { limit }),
        }
    }
}

fn send(request: HttpRequest) -> Result<(), DeliveryError> {
    let detail = |error: std::io::Error| DeliveryError::Thread {
        detail: error.to_string(),
    };
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(detail)?;
    let answer = runtime.block_on(async { HttpClient::new()?.send(request).await });
    // The look-up of a host may still be at work; nobody waits for it.
    runtime.shutdown_background();
    match answer?.status {
        200..=299 => Ok(()),
        status => Err(DeliveryError::Refused { status }),
    }
}

#[cfg(test)]
mod tests {
    use crucible_host::env::Environment;
    use crucible_testkit::{CollectorManner, TraceCollector};
    use tokio::time::Instant;

    use super::*;

    /// Sends one span with 300 milliseconds, and returns how that ends.
    fn delivered(origin: &str) -> Result<(), DeliveryError> {
        let env = Environment::from_pairs(
            [
                ("OTEL_EXPORTER_OTLP_ENDPOINT", origin),
                ("OTEL_EXPORTER_OTLP_TIMEOUT", "300"),
                (
                    "OTEL_EXPORTER_OTLP_HEADERS",
                    "content-type=text/html,x-key=s3cret",
                ),
            ],
            "/",
        );
        let collector = Collector::from_environment(&env).unwrap().unwrap();
        let trace = TraceId::of_run(&"r".parse().unwrap(), None);
        let at = "2026-01-01T00:00:00Z".parse().unwrap();
        let span = Span::new(trace.span("run"), None, "run", (at, at), Some(1));
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let delivery = Delivery::start(collector, "1.2.3", &trace, &[span]).unwrap();
        runtime.block_on(delivery.finish())
    }

    #[test]
    fn collector_gets_one_request_of_the_right_type() {
        let collector = TraceCollector::start(CollectorManner::Accepts);
        assert_eq!(delivered(collector.origin()), Ok(()));
        let [(head, body)] = collector.requests().try_into().unwrap();
        assert!(
            head.contains("content-type: application/x-protobuf") && !head.contains("text/html")
        );
        assert!(head.contains("x-key: s3cret") && !body.is_empty());
    }

    #[test]
    fn bad_collectors_fail_within_the_limit() {
        for behavior in [
            CollectorManner::Refuses,
            CollectorManner::Redirects,
            CollectorManner::NeverAnswers,
            CollectorManner::AnswersForEver,
            CollectorManner::SpeaksNoHttp,
        ] {
            let collector = TraceCollector::start(behavior);
            let began = Instant::now();
            let error = delivered(collector.origin()).unwrap_err().to_string();
            assert!(began.elapsed() < Duration::from_secs(2), "{behavior:?}");
            assert!(
                !error.contains("s3cret") && !error.contains('\u{1b}'),
                "{error}"
            );
            assert_eq!(collector.requests().len(), 1, "{behavior:?}");
        }
        assert!(delivered("http://127.0.0.1:9").is_err());
    }
}
