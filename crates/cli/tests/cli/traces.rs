//! `trace export` and live traces: decoded by the types that OpenTelemetry generates, sent to collectors of all kinds.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use crucible_testkit::{CollectorManner, FakeOpenAi, Reply, TraceCollector};
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::trace::v1::{Span, TracesData};
use prost::Message;
use serde_json::Value;

use crate::support::{Call, Fixture, Ran, answering, good_answer, id_of, small, whole_file};

pub(crate) const PRICES: &str = "[llm.prices.\"gateway/*\"]\ninput = 1.0\noutput = 2.5\ndate = \"2026-01-31\"\nsource = \"a test\"\n";

/// The attributes of a span.
fn attributes(span: &Span) -> BTreeMap<&str, &Any> {
    assert!(span.attributes.iter().all(|pair| pair.value.is_some()));
    span.attributes
        .iter()
        .map(|pair| {
            (
                pair.key.as_str(),
                pair.value.as_ref().unwrap().value.as_ref().unwrap(),
            )
        })
        .collect()
}

fn number(span: &Span, name: &str) -> Option<i64> {
    match attributes(span).get(name) {
        Some(Any::IntValue(number)) => Some(*number),
        _ => None,
    }
}

fn text(span: &Span, name: &str) -> Option<String> {
    match attributes(span).get(name) {
        Some(Any::StringValue(text)) => Some(text.clone()),
        _ => None,
    }
}

/// The spans of an export, which is decoded in both encodings and must be the same in both.
#[track_caller]
pub(crate) fn exported(fixture: &Fixture, id: &str, options: &[&str]) -> Vec<Span> {
    let export = |format: &str, file: &str| {
        let file = fixture.path(file);
        let mut call = fixture
            .call(["trace", "export", id, "--format", format, "--output"])
            .arg(&file);
        for option in options {
            call = call.arg(option);
        }
        call.run().ok();
        std::fs::read(file).unwrap()
    };
    let (json, bytes) = (export("json", "t.json"), export("protobuf", "t.pb"));
    assert_eq!(
        export("json", "again.json"),
        json,
        "an export is reproducible"
    );
    let decoded = TracesData::decode(bytes.as_slice()).unwrap();
    assert_eq!(decoded.encode_to_vec(), bytes, "no byte is unknown");
    assert_eq!(
        serde_json::from_slice::<TracesData>(&json).unwrap(),
        decoded
    );
    spans_of(decoded)
}

/// The spans, which must form one tree of valid spans.
#[track_caller]
fn spans_of(data: TracesData) -> Vec<Span> {
    let [of_resource] = data.resource_spans.try_into().unwrap();
    assert!(
        of_resource
            .schema_url
            .starts_with("https://opentelemetry.io/schemas/")
    );
    let [of_scope] = of_resource.scope_spans.try_into().unwrap();
    let spans = of_scope.spans;
    let ids: BTreeSet<&[u8]> = spans.iter().map(|span| span.span_id.as_slice()).collect();
    assert_eq!(ids.len(), spans.len(), "each id is there once");
    for span in &spans {
        assert_eq!((span.trace_id.len(), span.span_id.len()), (16, 8));
        assert_eq!(span.trace_id, spans[0].trace_id);
        assert!(
            span.start_time_unix_nano > 0 && span.start_time_unix_nano <= span.end_time_unix_nano
        );
        assert!(!span.name.is_empty());
    }
    spans
}

fn names(spans: &[Span]) -> Vec<&str> {
    spans.iter().map(|span| span.name.as_str()).collect()
}

#[test]
fn export_has_the_parts_and_the_costs_of_a_run() {
    // The first answer repeats the mistake, so its gates fail.
    let wrong = whole_file(
        "src/area.py",
        "def area(width, height):\n    return width - height\n\n\ndef perimeter(width, height):\n    return 2 * (width + height)\n",
    );
    let server = FakeOpenAi::start([Reply::Answer(wrong), Reply::Answer(good_answer())]);
    let (repo, fixture) = (small().build(), Fixture::with(&server));
    fixture.user_config(PRICES);
    let id = id_of(&fixture.start(repo.path()).ok().json());
    fixture.run(["run", "land", &id]).ok();
    let spans = exported(&fixture, &id, &[]);

    let known: BTreeSet<&[u8]> = spans.iter().map(|span| span.span_id.as_slice()).collect();
    let (root, rest) = spans.split_first().unwrap();
    assert!(root.parent_span_id.is_empty() && root.name == "run");
    assert!(
        rest.iter()
            .all(|span| known.contains(span.parent_span_id.as_slice()))
    );
    let names = names(&spans);
    for name in [
        "stage inspect",
        "stage context",
        "stage plan",
        "stage change",
        "stage land",
        "attempt 1",
        "attempt 2",
        "question patchmaker",
        "question fixer",
        "gates",
        "gate tests",
        "variant broken-change",
    ] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    let under = |child: &str, parent: &str| {
        let of_name = |name: &str| {
            spans
                .iter()
                .filter(|span| span.name == name)
                .collect::<Vec<_>>()
        };
        let parents: Vec<&[u8]> = of_name(parent)
            .iter()
            .map(|span| span.span_id.as_slice())
            .collect();
        assert!(
            of_name(child)
                .iter()
                .all(|span| parents.contains(&span.parent_span_id.as_slice())),
            "{child}"
        );
    };
    under("attempt 2", "stage change");
    under("question fixer", "attempt 2");
    under("question patchmaker", "attempt 1");

    let report = fixture.run(["report", &id, "--json"]).ok().json();
    let calls: Vec<&Span> = spans
        .iter()
        .filter(|span| text(span, "gen_ai.operation.name").as_deref() == Some("chat"))
        .collect();
    assert_eq!(calls.len() as u64, report["calls"].as_u64().unwrap());
    let sum = |name: &str| {
        spans
            .iter()
            .filter_map(|span| number(span, name))
            .sum::<i64>()
    };
    let cost = sum("crucible.call.cost.micro_usd");
    assert!(cost > 0);
    assert_eq!(
        cost + sum("crucible.call.reserved.micro_usd"),
        report["micro_dollars"].as_i64().unwrap()
    );
    let tokens = sum("gen_ai.usage.input_tokens") + sum("gen_ai.usage.output_tokens");
    assert_eq!(tokens, report["tokens"].as_i64().unwrap());
    let receipt = std::fs::read(fixture.runs()[0].join("receipt.json")).unwrap();
    let receipt: Value = serde_json::from_slice(&receipt).unwrap();
    let phases = receipt["phases"].as_array().unwrap().iter();
    let of_receipt: i64 = phases
        .map(|phase| phase["llm"]["cost"]["micro_dollars"].as_i64().unwrap())
        .sum();
    assert_eq!(cost, of_receipt, "{receipt:#}");
    assert_eq!(number(root, "crucible.run.cost.micro_usd"), Some(cost));
    assert_eq!(
        text(root, "crucible.run.outcome").as_deref(),
        Some("landed")
    );
    assert!(
        calls
            .iter()
            .all(|call| call.kind == 3 && text(call, "gen_ai.request.model").is_some())
    );
    let failed = spans.iter().find(|span| span.name == "attempt 1").unwrap();
    assert_eq!(failed.status.as_ref().unwrap().code, 2);
    assert!(!failed.events.is_empty(), "findings are events");
}

#[test]
fn content_is_left_out_unless_it_is_requested() {
    let token = format!("ghp_{}", "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6");
    let answer = format!(
        "The key is {token}, and a canary-of-the-answer.\n{}",
        good_answer()
    );
    let (repo, server) = (small().build(), answering(answer));
    let fixture = Fixture::with(&server);
    let id = id_of(&fixture.start(repo.path()).ok().json());
    let read = |options: &[&str]| {
        exported(&fixture, &id, options);
        std::fs::read_to_string(fixture.path("t.json")).unwrap()
    };
    let content = [
        "canary-of-the-answer",
        "multiply width",
        "src/area.py",
        "check.sh",
        "return width",
    ];
    let plain = read(&[]);
    let path = repo.path().to_str().unwrap();
    for part in content.iter().chain([&path, &token.as_str()]) {
        assert!(!plain.contains(part), "{part}: {plain}");
    }
    let full = read(&["--content"]);
    for part in ["canary-of-the-answer", "multiply width", "check.sh", path] {
        assert!(full.contains(part), "{part}");
    }
    assert!(
        !full.contains(&token) && full.contains("[secret:"),
        "{full}"
    );
}

#[test]
fn export_of_an_open_or_failed_run_is_valid() {
    let (repo, server) = (small().build(), answering("no change".to_owned()));
    let fixture = Fixture::with(&server);
    fixture
        .start_call(repo.path())
        .args(["--max-iterations", "1"])
        .run()
        .exits(1);
    let failed = id_of(&fixture.status());
    let spans = exported(&fixture, &failed, &[]);
    assert_eq!(spans[0].status.as_ref().unwrap().code, 2);
    fixture
        .call([
            "run",
            "new",
            "another goal in src/area.py",
            "--json",
            "--repo",
        ])
        .arg(repo.path())
        .run()
        .ok();
    let open = id_of(&fixture.status());
    let spans = exported(&fixture, &open, &[]);
    assert!(attributes(&spans[0]).contains_key("crucible.is_open"));
    let bytes = fixture.run(["trace", "export", &open]).ok().stdout;
    assert!(bytes.ends_with("}\n") && bytes.lines().count() == 1);
}

fn sending(call: Call, origin: &str) -> Call {
    call.env("OTEL_EXPORTER_OTLP_ENDPOINT", origin)
}

#[track_caller]
fn warnings(ran: &Ran) -> Vec<&str> {
    let lines = ran.stderr.lines();
    lines
        .filter(|line| line.contains("the trace was not sent"))
        .collect()
}

#[test]
fn each_command_sends_what_it_added_once() {
    let collector = TraceCollector::start(CollectorManner::Accepts);
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let call = sending(fixture.start_call(repo.path()), collector.origin())
        .env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=s3cret%20value")
        .env("OTEL_SERVICE_NAME", "my service");
    let started = call.run().ok();
    assert!(warnings(&started).is_empty(), "{}", started.stderr);
    let id = id_of(&started.json());
    let land = sending(fixture.call(["run", "land", &id]), collector.origin())
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
    land.run().ok();
    let requests = collector.requests();
    let [(first, start), (second, land)] = requests.as_slice() else {
        panic!("{} requests", requests.len());
    };
    assert!(first.starts_with("post /v1/traces http/1.1"), "{first}");
    assert!(
        first.contains("x-key: s3cret value")
            && first.contains("content-type: application/x-protobuf")
    );
    assert!(second.contains("content-type: application/json"));
    let start = TracesData::decode(start.as_slice()).unwrap();
    let service = &start.resource_spans[0]
        .resource
        .as_ref()
        .unwrap()
        .attributes[0];
    assert_eq!(service.key, "service.name");
    let land: TracesData = serde_json::from_slice(land).unwrap();
    let (start, land) = (spans_of(start), spans_of(land));
    assert_eq!(start[0].name, "run");
    assert_eq!(names(&land), ["stage land"]);
    // All together are what an export has.
    let ids = |spans: &[Span]| {
        spans
            .iter()
            .map(|span| span.span_id.clone())
            .collect::<BTreeSet<_>>()
    };
    let exported = ids(&exported(&fixture, &id, &[]));
    assert!(ids(&start).is_disjoint(&ids(&land)));
    assert_eq!(&ids(&start) | &ids(&land), exported);
    // Content is never sent.
    let sent = String::from_utf8_lossy(&requests[0].1).into_owned();
    assert!(!sent.contains("multiply") && !sent.contains("area.py"));
}

#[test]
fn bad_collector_costs_a_run_nothing_but_a_warning() {
    let (repo, server) = (small().build(), answering(good_answer()));
    let fixture = Fixture::with(&server);
    let id = id_of(&fixture.start(repo.path()).ok().json());
    let list = || fixture.run(["run", "advance", &id, "--json"]).ok().stdout;
    let plain = list();
    // A run that is continued after its end adds nothing, so nothing is sent.
    let unused = TraceCollector::start(CollectorManner::Accepts);
    sending(fixture.call(["run", "advance", &id]), unused.origin())
        .run()
        .ok();
    assert!(unused.requests().is_empty());

    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed_origin = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let silent = TraceCollector::start(CollectorManner::NeverAnswers);
    for origin in [silent.origin(), &closed_origin, "not an address"] {
        let goal = "add a comment to src/area.py";
        let call = fixture
            .call([
                "run",
                "start",
                goal,
                "--json",
                "--max-iterations",
                "1",
                "--repo",
            ])
            .arg(repo.path());
        let began = Instant::now();
        let ran = sending(call, origin)
            .env("OTEL_EXPORTER_OTLP_TIMEOUT", "300")
            .env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=s3cret")
            .run();
        let took = began.elapsed();
        assert!([Some(0), Some(1)].contains(&ran.code), "{origin}: {ran:?}");
        assert!(ran.json()["state"].is_string(), "{origin}");
        assert_eq!(warnings(&ran).len(), 1, "{origin}: {}", ran.stderr);
        assert!(!ran.stderr.contains("s3cret"), "{}", ran.stderr);
        assert!(took < Duration::from_secs(20), "{origin}: {took:?}");
    }
    assert_eq!(list(), plain, "and the run is as it was");
}

#[test]
fn repository_cannot_enable_traces() {
    let collector = TraceCollector::start(CollectorManner::Accepts);
    let variables = format!("OTEL_EXPORTER_OTLP_ENDPOINT={}\n", collector.origin());
    let (origin, server) = (collector.origin(), answering(good_answer()));
    let repo = small()
        .file(".env", &variables)
        .file(".envrc", format!("export {variables}"))
        .file("otel.env", &variables)
        .build();
    let fixture = Fixture::with(&server);
    fixture.start(repo.path()).ok();
    fixture
        .call(["run", "land"])
        .current_dir(repo.path())
        .run()
        .ok();
    // No setting has this effect: not for a project, and not for the user.
    for section in ["trace", "otel", "telemetry", "opentelemetry"] {
        let settings = format!("[{section}]\nendpoint = {origin:?}\n");
        let hostile = small().file(".crucible/config.toml", &settings).build();
        fixture.start_call(hostile.path()).run().exits(2);
    }
    assert!(collector.requests().is_empty());
}

#[test]
fn gates_and_agents_do_not_see_the_collector() {
    let collector = TraceCollector::start(CollectorManner::Accepts);
    let check = "if env | grep -q OTEL_; then echo 'the gate sees the collector'; exit 1; fi\n";
    let check = format!("{check}{}", crate::support::CHECK);
    let repo = small().file("check.sh", &check).build();
    let server = answering(good_answer());
    let fixture = Fixture::with(&server);
    let call = sending(fixture.start_call(repo.path()), collector.origin())
        .env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=s3cret");
    call.run().ok();
    assert_eq!(collector.requests().len(), 1);
}
