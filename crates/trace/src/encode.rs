//! Spans as OTLP, in both encodings.
//!
//! The protobuf bytes are a `TracesData`, which has the same form as the body of an export request. The JSON is the mapping
//! that OTLP defines: ids as hexadecimal digits, 64-bit numbers as texts, enumerations as numbers.

use prost::Message;
use serde_json::{Map, Value as Json, json};

use crate::conventions as names;
use crate::id::TraceId;
use crate::message as otlp;
use crate::span::{Attribute, Span, SpanKind, SpanStatus, Value};

/// The code of a failed span.
const ERROR: i32 = 2;

/// What produced the spans.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// Its attributes, `service.name` among them.
    pub attributes: Vec<Attribute>,
}

impl Resource {
    /// Creates the resource of this version of Crucible. Attributes of the user come first; `service.name` and
    /// `service.version` are added if missing.
    #[must_use]
    pub fn of_version(version: &str, of_user: Vec<Attribute>) -> Self {
        let mut attributes = of_user;
        for (name, value) in [
            (names::SERVICE_NAME, names::SCOPE),
            (names::SERVICE_VERSION, version),
        ] {
            if !attributes.iter().any(|attribute| attribute.name == name) {
                attributes.push(Attribute::new(name, value));
            }
        }
        Self { attributes }
    }

    /// The version of Crucible.
    fn version(&self) -> &str {
        let version = self
            .attributes
            .iter()
            .rfind(|attribute| attribute.name == names::SERVICE_VERSION);
        match version.map(|version| &version.value) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }
}

/// Encodes spans as protobuf.
#[must_use]
pub fn to_protobuf(trace: &TraceId, spans: &[Span], resource: &Resource) -> Vec<u8> {
    let scope = otlp::ScopeSpans {
        scope: Some(otlp::Scope {
            name: names::SCOPE.to_owned(),
            version: resource.version().to_owned(),
        }),
        spans: spans.iter().map(|span| message(trace, span)).collect(),
        schema_url: names::SCHEMA_URL.to_owned(),
    };
    let data = otlp::TracesData {
        resource_spans: vec![otlp::ResourceSpans {
            resource: Some(otlp::Resource {
                attributes: key_values(&resource.attributes),
            }),
            scope_spans: vec![scope],
            schema_url: names::SCHEMA_URL.to_owned(),
        }],
    };
    data.encode_to_vec()
}

fn message(trace: &TraceId, span: &Span) -> otlp::Span {
    otlp::Span {
        trace_id: trace.bytes(),
        span_id: span.id.bytes(),
        parent_span_id: span
            .parent
            .as_ref()
            .map(|id| id.bytes())
            .unwrap_or_default(),
        name: span.name.clone(),
        kind: kind(span.kind),
        start_time_unix_nano: nanos(span.started),
        end_time_unix_nano: nanos(span.ended),
        attributes: key_values(&span.attributes),
        events: span
            .events
            .iter()
            .map(|event| otlp::Event {
                time_unix_nano: nanos(event.at),
                name: event.name.clone(),
                attributes: key_values(&event.attributes),
            })
            .collect(),
        dropped_events_count: span.dropped_events,
        status: match &span.status {
            SpanStatus::Unset => None,
            SpanStatus::Error(reason) => Some(otlp::Status {
                message: reason.clone(),
                code: ERROR,
            }),
        },
    }
}

fn key_values(attributes: &[Attribute]) -> Vec<otlp::KeyValue> {
    let any = |kind| otlp::AnyValue { value: Some(kind) };
    let value = |value: &Value| match value {
        Value::Text(text) => otlp::AnyKind::Text(text.clone()),
        Value::Number(number) => otlp::AnyKind::Number(*number),
        Value::Bool(is_so) => otlp::AnyKind::Bool(*is_so),
        Value::Texts(texts) => otlp::AnyKind::Array(otlp::ArrayValue {
            values: texts
                .iter()
                .map(|text| any(otlp::AnyKind::Text(text.clone())))
                .collect(),
        }),
    };
    attributes
        .iter()
        .map(|attribute| otlp::KeyValue {
            key: attribute.name.clone(),
            value: Some(any(value(&attribute.value))),
        })
        .collect()
}

/// Encodes spans as one line of JSON without a line end.
#[must_use]
pub fn to_json(trace: &TraceId, spans: &[Span], resource: &Resource) -> String {
    let spans: Vec<Json> = spans.iter().map(|span| document(trace, span)).collect();
    let scope = json!({ "name": names::SCOPE, "version": resource.version() });
    json!({
        "resourceSpans": [{
            "resource": { "attributes": json_pairs(&resource.attributes) },
            "scopeSpans": [{ "scope": scope, "spans": spans, "schemaUrl": names::SCHEMA_URL }],
            "schemaUrl": names::SCHEMA_URL,
        }]
    })
    .to_string()
}

fn document(trace: &TraceId, span: &Span) -> Json {
    let mut fields = Map::new();
    let mut set = |name: &str, value: Json| fields.insert(name.to_owned(), value);
    set("traceId", trace.to_string().into());
    set("spanId", span.id.to_string().into());
    if let Some(parent) = &span.parent {
        set("parentSpanId", parent.to_string().into());
    }
    set("name", span.name.as_str().into());
    set("kind", kind(span.kind).into());
    set("startTimeUnixNano", nanos(span.started).to_string().into());
    set("endTimeUnixNano", nanos(span.ended).to_string().into());
    set("attributes", json_pairs(&span.attributes));
    let event = |event: &crate::span::SpanEvent| json!({ "timeUnixNano": nanos(event.at).to_string(), "name": event.name, "attributes": json_pairs(&event.attributes) });
    if !span.events.is_empty() {
        set("events", span.events.iter().map(event).collect());
    }
    if span.dropped_events > 0 {
        set("droppedEventsCount", span.dropped_events.into());
    }
    if let SpanStatus::Error(reason) = &span.status {
        set("status", json!({ "message": reason, "code": ERROR }));
    }
    Json::Object(fields)
}

fn json_pairs(attributes: &[Attribute]) -> Json {
    let value = |value: &Value| match value {
        Value::Text(text) => json!({ "stringValue": text }),
        Value::Number(number) => json!({ "intValue": number.to_string() }),
        Value::Bool(is_so) => json!({ "boolValue": is_so }),
        Value::Texts(texts) => {
            let values: Vec<Json> = texts
                .iter()
                .map(|text| json!({ "stringValue": text }))
                .collect();
            json!({ "arrayValue": { "values": values } })
        }
    };
    attributes
        .iter()
        .map(|attribute| json!({ "key": attribute.name, "value": value(&attribute.value) }))
        .collect()
}

/// The number of a kind in OTLP.
const fn kind(kind: SpanKind) -> i32 {
    match kind {
        SpanKind::Internal => 1,
        SpanKind::Client => 3,
    }
}

/// Nanoseconds since the Unix epoch; 0 for instants before it.
fn nanos(at: crucible_model::Timestamp) -> u64 {
    let millis = u64::try_from(at.unix_millis()).unwrap_or(0);
    millis.saturating_mul(1_000_000)
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::trace::v1::TracesData;
    use prost::Message as _;

    use super::*;
    use crate::span::SpanEvent;

    /// A trace with every field, and hostile texts.
    fn sample() -> (TraceId, Vec<Span>, Resource) {
        let trace = TraceId::of_run(&"r".parse().unwrap(), None);
        let at = |text: &str| text.parse().unwrap();
        let times = (at("2026-01-01T00:00:00.001Z"), at("2026-01-01T00:00:02Z"));
        let root = trace.span("run");
        let hostile = "\u{0}\u{202e}\"},{\"key\":\"x\"\u{7f}\r\n</script>";
        let mut call = Span::new(trace.span("call/1"), Some(&root), hostile, times, None)
            .with("crucible.text", hostile)
            .with("crucible.number", u64::MAX)
            .with("crucible.bool", true)
            .with("crucible.texts", vec![hostile.to_owned(), String::new()])
            .failed(hostile);
        call.kind = SpanKind::Client;
        call.dropped_events = 2;
        call.push_event(SpanEvent {
            at: times.0,
            name: hostile.to_owned(),
            attributes: vec![Attribute::new("crucible.text", hostile)],
        });
        let spans = vec![Span::new(root, None, "run", times, Some(3)), call];
        (trace, spans, Resource::of_version("1.2.3", Vec::new()))
    }

    #[test]
    fn generated_types_decode_every_byte() {
        let (trace, spans, resource) = sample();
        let bytes = to_protobuf(&trace, &spans, &resource);
        let decoded = TracesData::decode(bytes.as_slice()).unwrap();
        // A field that their types do not have would be dropped, and its bytes would be missing.
        assert_eq!(decoded.encode_to_vec(), bytes);
        let spans = &decoded.resource_spans[0].scope_spans[0].spans;
        assert_eq!(
            (spans.len(), spans[1].kind, spans[1].attributes.len()),
            (2, 3, 4)
        );
        assert_eq!(spans[1].start_time_unix_nano, 1_767_225_600_001_000_000);
        assert_eq!(spans[1].parent_span_id, spans[0].span_id);
    }

    #[test]
    fn both_encodings_have_equal_content() {
        let (trace, spans, resource) = sample();
        let json = to_json(&trace, &spans, &resource);
        assert!(!json.contains('\n'));
        let of_json: TracesData = serde_json::from_str(&json).unwrap();
        let bytes = to_protobuf(&trace, &spans, &resource);
        assert_eq!(of_json, TracesData::decode(bytes.as_slice()).unwrap());
    }

    #[test]
    fn user_names_the_service() {
        let named = Attribute::new(names::SERVICE_NAME, "mine");
        let resource = Resource::of_version("1.2.3", vec![named.clone()]);
        assert_eq!(resource.attributes[0], named);
        assert_eq!(
            (resource.attributes.len(), resource.version()),
            (2, "1.2.3")
        );
    }
}
