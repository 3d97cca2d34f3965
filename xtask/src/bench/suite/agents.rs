//! What Crucible adds to a coding agent: its model endpoint beside the model's server, and a whole turn beside a run
//! whose model answers at once.
//!
//! The endpoint keeps its budget in a ledger and records each exchange durably, as in a run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crucible_agents::{Endpoint, EndpointOptions, Exchanges, Wire};
use crucible_host::http::{HttpClient, HttpRequest};
use crucible_llm::Upstream;
use crucible_model::Secret;
use serde_json::json;
use tempfile::TempDir;

use super::asking::Asking;
use super::bench::{Bench, Context, unmeasured};
use super::layers::ledger_budget;
use super::measure::{Case, Goal, side_by_side};
use super::model_server::ModelServer;
use super::run_overhead::agent_turn;
use super::tree::scratch;
use crate::error::TaskError;

const NAME: &str = "agents";

/// How long a request's text is.
const REQUEST_BYTES: usize = 100_000;

/// How many requests one round makes, one after the other; its time is divided by this.
const REQUESTS: u32 = 20;

/// The most that the endpoint may add to a request.
const LIMIT: Duration = Duration::from_millis(5);

/// The bench of coding agents.
pub(super) struct Agents;

impl Bench for Agents {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&self, context: &Context<'_>) -> Result<Vec<Case>, TaskError> {
        let text = context.trees()?.branched.text(REQUEST_BYTES)?;
        let stand = Stand::new(&text)?;
        let case = |own_text: &str, pair| Case {
            bench: NAME,
            ours: own_text.to_owned(),
            beside: "the model's server itself".to_owned(),
            pair,
            goal: Goal::MoreAtMost(LIMIT),
        };
        let rounds = context.rounds;
        let first = side_by_side(
            rounds,
            || stand.time(true, true),
            || stand.time(false, true),
        )?;
        let full_pair = side_by_side(
            rounds,
            || stand.time(true, false),
            || stand.time(false, false),
        )?;
        let mut cases = vec![
            case(
                "first byte of a request of 100 kB through the endpoint",
                first,
            ),
            case("request of 100 kB through the endpoint", full_pair),
        ];
        cases.push(agent_turn(context)?);
        Ok(cases)
    }
}

/// A model's server, with and without the endpoint before it.
struct Stand {
    asking: Asking,
    server: ModelServer,
    body: Vec<u8>,
}

impl Stand {
    fn new(text: &str) -> Result<Self, TaskError> {
        let server = ModelServer::start(Duration::ZERO)
            .map_err(TaskError::io("start", "the model's server"))?;
        let asking = Asking::new(NAME, server.address())?;
        let body = json!({
            "model": "bench-model", "max_tokens": 4096, "messages": [{"role": "user", "content": text}],
        });
        Ok(Self {
            asking,
            server,
            body: body.to_string().into_bytes(),
        })
    }

    /// The time of a request, or until its first byte.
    fn time(&self, is_through_endpoint: bool, is_first_byte: bool) -> Result<Duration, TaskError> {
        let place = scratch()?;
        self.asking.runtime.block_on(async {
            let endpoint = match is_through_endpoint {
                true => Some(self.endpoint(&place).await?),
                false => None,
            };
            let http = HttpClient::new().map_err(unmeasured(NAME))?;
            let mut time = Duration::ZERO;
            // The first request opens the connections.
            for number in 0..=REQUESTS {
                let request = self.request(endpoint.as_ref());
                let start = Instant::now();
                let mut stream = http.open(request).await.map_err(unmeasured(NAME))?;
                let mut duration = start.elapsed();
                while stream.chunk().await.map_err(unmeasured(NAME))?.is_some() {}
                if !is_first_byte {
                    duration = start.elapsed();
                }
                if stream.status != 200 {
                    return Err(unmeasured(NAME)(format!(
                        "the answer has the status {}",
                        stream.status
                    )));
                }
                if number > 0 {
                    time += duration;
                }
            }
            if let Some(endpoint) = endpoint {
                endpoint.close().await;
            }
            Ok(time / REQUESTS)
        })
    }

    async fn endpoint(&self, place: &TempDir) -> Result<Endpoint, TaskError> {
        let record = place.path().join("exchanges.jsonl");
        let options = EndpointOptions {
            wire: Wire::OpenAi,
            upstream: Upstream {
                provider: "gateway",
                origin: format!("http://{}", self.server.address()),
                key: None,
                max_tokens: 4096,
            },
            http: Arc::new(HttpClient::new().map_err(unmeasured(NAME))?),
            budget: ledger_budget(place.path().join("ledger.db"))?,
            prices: Arc::default(),
            exchanges: Exchanges::begin(&record, &[]).map_err(unmeasured(NAME))?,
            timeout: Duration::from_secs(60),
        };
        Endpoint::open(options).await.map_err(unmeasured(NAME))
    }

    fn request(&self, endpoint: Option<&Endpoint>) -> HttpRequest {
        let direct = self.asking.request(self.body.clone());
        match endpoint {
            None => direct,
            Some(endpoint) => HttpRequest {
                url: format!("{}/v1/chat/completions", endpoint.url()),
                headers: vec![(
                    "authorization".to_owned(),
                    Secret::new(format!("Bearer {}", endpoint.token().expose())),
                )],
                ..direct
            },
        }
    }
}
