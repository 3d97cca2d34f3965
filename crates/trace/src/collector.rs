//! Where the user's environment asks to send traces, by the standard variables of OpenTelemetry.
//!
//! Nothing is sent unless the user sets an endpoint. No setting of a project or of the user has this effect, so a cloned
//! repository cannot enable it.

use std::time::Duration;

use crucible_host::env::Environment;
use crucible_host::http::{HttpError, check_url, without_login};
use crucible_model::Secret;

use crate::conventions::SERVICE_NAME;
use crate::span::Attribute;

/// The time for sending if the user sets none, and the longest: a run ends this much later at most.
const MAX_TIMEOUT: Duration = Duration::from_secs(3);

/// A collector of traces.
#[derive(Debug)]
pub struct Collector {
    /// The complete address.
    pub url: String,
    /// The encoding.
    pub protocol: Protocol,
    /// Additional headers, such as a key.
    pub headers: Vec<(String, Secret)>,
    /// The time for connecting, sending and the answer.
    pub timeout: Duration,
    /// Attributes that the user gives to the resource.
    pub attributes: Vec<Attribute>,
}

/// The encoding of spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// `http/protobuf`.
    Protobuf,
    /// `http/json`.
    Json,
}

/// A variable that cannot be used. No text here has a value of a header.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CollectorError {
    /// The protocol is not supported.
    #[error("{variable}: {value:?} is not supported; use http/protobuf or http/json")]
    Protocol {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
    },
    /// The address cannot be used.
    #[error("{variable}: {problem}")]
    Endpoint {
        /// The variable.
        variable: &'static str,
        /// What is wrong.
        problem: HttpError,
    },
    /// The value is not a list of pairs.
    #[error("{variable} is not a list such as name=value,other=value")]
    Pairs {
        /// The variable.
        variable: &'static str,
    },
    /// The value is not a number of milliseconds.
    #[error("{variable}: {value:?} is not a number of milliseconds")]
    Timeout {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
    },
}

impl Collector {
    /// Reads the collector from the environment; `None` if the user names none or switches traces off.
    ///
    /// # Errors
    ///
    /// Fails if a variable cannot be used.
    pub fn from_environment(env: &Environment) -> Result<Option<Self>, CollectorError> {
        let set = |name: &'static str| {
            let value = env.get(name).map(str::trim);
            value
                .filter(|value| !value.is_empty())
                .map(|value| (name, value))
        };
        // The variable for traces has precedence over the general one.
        let first = |of_traces, general| set(of_traces).or_else(|| set(general));
        let is_off = set("OTEL_SDK_DISABLED")
            .is_some_and(|(_, value)| value.eq_ignore_ascii_case("true"))
            || set("OTEL_TRACES_EXPORTER")
                .is_some_and(|(_, value)| !value.split(',').any(|name| name.trim() == "otlp"));
        if is_off {
            return Ok(None);
        }
        let of_traces =
            set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").map(|(name, value)| (name, value.to_owned()));
        let general = || {
            set("OTEL_EXPORTER_OTLP_ENDPOINT")
                .map(|(name, value)| (name, format!("{}/v1/traces", value.trim_end_matches('/'))))
        };
        let Some((variable, url)) = of_traces.or_else(general) else {
            return Ok(None);
        };
        check_url(&url).map_err(|problem| CollectorError::Endpoint { variable, problem })?;
        let protocol = first(
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
            "OTEL_EXPORTER_OTLP_PROTOCOL",
        );
        let protocol = match protocol {
            None | Some((_, "http/protobuf")) => Protocol::Protobuf,
            Some((_, "http/json")) => Protocol::Json,
            Some((variable, value)) => {
                let value = value.to_owned();
                return Err(CollectorError::Protocol { variable, value });
            }
        };
        let timeout = first(
            "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
            "OTEL_EXPORTER_OTLP_TIMEOUT",
        );
        let timeout = match timeout {
            None => MAX_TIMEOUT,
            Some((variable, value)) => {
                let millis = value.parse().map_err(|_| CollectorError::Timeout {
                    variable,
                    value: value.to_owned(),
                })?;
                Duration::from_millis(millis).min(MAX_TIMEOUT)
            }
        };
        let headers = first(
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
            "OTEL_EXPORTER_OTLP_HEADERS",
        );
        let headers = headers.map(pairs).transpose()?.unwrap_or_default();
        let resource = set("OTEL_RESOURCE_ATTRIBUTES").map(pairs).transpose()?;
        let mut resource = resource.unwrap_or_default();
        if let Some((_, name)) = set("OTEL_SERVICE_NAME") {
            resource.retain(|(key, _)| key != SERVICE_NAME);
            resource.push((SERVICE_NAME.to_owned(), name.to_owned()));
        }
        Ok(Some(Self {
            url,
            protocol,
            headers: headers
                .into_iter()
                .map(|(name, value)| (name.to_ascii_lowercase(), Secret::new(value)))
                .collect(),
            timeout,
            attributes: resource
                .into_iter()
                .map(|(name, value)| Attribute::new(&name, value))
                .collect(),
        }))
    }

    /// The address for people, without a login and what follows `?`.
    #[must_use]
    pub fn shown_address(&self) -> String {
        let url = without_login(&self.url);
        url.split('?').next().unwrap_or_default().to_owned()
    }
}

/// The pairs of a list `name=value,other=value`. Values are percent-encoded.
fn pairs((variable, value): (&'static str, &str)) -> Result<Vec<(String, String)>, CollectorError> {
    let malformed = || CollectorError::Pairs { variable };
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').ok_or_else(malformed)?;
        let name = name.trim();
        if name.is_empty() {
            return Err(malformed());
        }
        let value = percent_decoded(value.trim()).ok_or_else(malformed)?;
        Ok((name.to_owned(), value))
    };
    let items = value.split(',').filter(|item| !item.trim().is_empty());
    items.map(pair).collect()
}

/// Decodes `%20`; `None` if the result is not UTF-8. A `%` without two digits stays.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digit = |at: usize| after.get(at).and_then(|byte| (*byte as char).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(u8::try_from(high << 4 | low).unwrap_or(0));
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::Value;

    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318/");

    fn read(pairs: &[(&str, &str)]) -> Result<Option<Collector>, CollectorError> {
        Collector::from_environment(&Environment::from_pairs(pairs.iter().copied(), "/"))
    }

    #[test]
    fn collector_is_off_without_an_endpoint() {
        for off in [
            &[][..],
            &[("OTEL_SERVICE_NAME", "x")],
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")],
            &[ENDPOINT, ("OTEL_SDK_DISABLED", "TRUE")],
            &[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")],
        ] {
            assert!(read(off).unwrap().is_none(), "{off:?}");
        }
        for on in [
            &[ENDPOINT][..],
            &[ENDPOINT, ("OTEL_SDK_DISABLED", "false")],
            &[ENDPOINT, ("OTEL_TRACES_EXPORTER", "console, otlp")],
        ] {
            let collector = read(on).unwrap().unwrap();
            assert_eq!(collector.url, "http://127.0.0.1:4318/v1/traces");
            assert_eq!(collector.protocol, Protocol::Protobuf);
            assert_eq!(collector.timeout, MAX_TIMEOUT);
        }
    }

    #[test]
    fn variables_for_traces_have_precedence() {
        let collector = read(&[
            ENDPOINT,
            (
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                "https://h.example/custom?k=v",
            ),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=1"),
            (
                "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
                "X-Key = a%20b%3D , y=1=2",
            ),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "60000"),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "250"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=a,team=b"),
            ("OTEL_SERVICE_NAME", "c"),
        ]);
        let collector = collector.unwrap().unwrap();
        assert_eq!(collector.url, "https://h.example/custom?k=v");
        assert_eq!(collector.shown_address(), "https://h.example/custom");
        assert_eq!(collector.protocol, Protocol::Json);
        assert_eq!(collector.timeout, Duration::from_millis(250));
        let headers: Vec<(&str, &str)> = collector
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.expose()))
            .collect();
        assert_eq!(headers, [("x-key", "a b="), ("y", "1=2")]);
        let text = |text: &str| Value::Text(text.to_owned());
        let attributes: Vec<(&str, &Value)> = collector
            .attributes
            .iter()
            .map(|attribute| (attribute.name.as_str(), &attribute.value))
            .collect();
        assert_eq!(
            attributes,
            [("team", &text("b")), (SERVICE_NAME, &text("c"))]
        );
    }

    #[test]
    fn unusable_variables_are_named_without_their_secrets() {
        let secret = "s3cret-value";
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
            ("OTEL_EXPORTER_OTLP_HEADERS", secret),
            ("OTEL_EXPORTER_OTLP_HEADERS", "=s3cret-value"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "k=%ffs3cret-value"),
            ("OTEL_RESOURCE_ATTRIBUTES", "x"),
            (
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                "ftp://user:s3cret-value@h",
            ),
        ] {
            let error = read(&[ENDPOINT, (name, value)]).unwrap_err().to_string();
            assert!(error.starts_with(name), "{error}");
            assert!(!error.contains(secret), "{error}");
        }
    }

    #[test]
    fn longer_timeouts_are_cut_to_the_limit() {
        let long = read(&[ENDPOINT, ("OTEL_EXPORTER_OTLP_TIMEOUT", "3600000")]);
        assert_eq!(long.unwrap().unwrap().timeout, MAX_TIMEOUT);
    }
}
