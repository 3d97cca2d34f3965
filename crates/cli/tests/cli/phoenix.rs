//! A trace in Phoenix, a program of others that stores and shows traces: it accepts an export, and has the same spans.

mod exhaustive {
    use std::collections::BTreeMap;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::path::Path;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
    use serde_json::Value;

    use crate::support::{Fixture, answering, good_answer, id_of, small};
    use crate::traces::{PRICES, exported};

    /// How long Phoenix may take to answer for the first time.
    const START: Duration = Duration::from_secs(240);

    /// A Phoenix on loopback, with a directory of its own. It ends with the test.
    struct Phoenix {
        process: Child,
        port: u16,
        _home: tempfile::TempDir,
    }

    impl Drop for Phoenix {
        fn drop(&mut self) {
            let _ended = self.process.kill();
            let _waited = self.process.wait();
        }
    }

    fn free_port() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    }

    impl Phoenix {
        fn start() -> Self {
            let program = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../.tools/phoenix/bin/phoenix")
                .canonicalize()
                .unwrap_or_else(|error| {
                    panic!("{error}: `cargo xtask test --slow` installs Phoenix")
                });
            let home = tempfile::tempdir().unwrap();
            let port = free_port();
            let process = Command::new(program)
                .arg("serve")
                .env("HOME", home.path())
                .env("PHOENIX_WORKING_DIR", home.path())
                .env("PHOENIX_HOST", "127.0.0.1")
                .env("PHOENIX_PORT", port.to_string())
                .env("PHOENIX_GRPC_PORT", free_port().to_string())
                .env("PHOENIX_TELEMETRY_ENABLED", "false")
                .env("PHOENIX_ALLOW_EXTERNAL_RESOURCES", "false")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let phoenix = Self {
                process,
                port,
                _home: home,
            };
            let begun = Instant::now();
            while !phoenix
                .request("GET /healthz", &[])
                .is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
            {
                assert!(begun.elapsed() < START, "Phoenix does not answer");
                std::thread::sleep(Duration::from_millis(500));
            }
            phoenix
        }

        fn request(&self, first: &str, body: &[u8]) -> std::io::Result<String> {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
            let head = format!(
                "{first} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/x-protobuf\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                self.port,
                body.len()
            );
            stream.write_all(head.as_bytes())?;
            stream.write_all(body)?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        }

        /// The spans of the only project, when there are as many.
        fn spans(&self, count: usize) -> Vec<Value> {
            let begun = Instant::now();
            loop {
                let answer = self
                    .request("GET /v1/projects/default/spans?limit=1000", &[])
                    .unwrap();
                let (_, body) = answer.split_once("\r\n\r\n").unwrap();
                let found: Value = serde_json::from_str(body).unwrap_or_default();
                if let Some(spans) = found["data"]
                    .as_array()
                    .filter(|spans| spans.len() >= count)
                {
                    return spans.clone();
                }
                assert!(begun.elapsed() < Duration::from_secs(60), "{answer}");
                std::thread::sleep(Duration::from_millis(200));
            }
        }
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Phoenix starts in 40 seconds.
    #[test]
    fn phoenix_has_the_spans_of_an_export() {
        let server = answering(good_answer());
        let (repo, fixture) = (small().build(), Fixture::with(&server));
        fixture.user_config(PRICES);
        let id = id_of(&fixture.start(repo.path()).ok().json());
        fixture.run(["run", "land", &id]).ok();
        let spans = exported(&fixture, &id, &[]);
        let bytes = std::fs::read(fixture.path("t.pb")).unwrap();

        let phoenix = Phoenix::start();
        let text = phoenix.request("POST /v1/traces", &bytes).unwrap();
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        let values = phoenix.spans(spans.len());
        assert_eq!(values.len(), spans.len());
        let by_id: BTreeMap<&str, &Value> = values
            .iter()
            .map(|span| (span["context"]["span_id"].as_str().unwrap(), span))
            .collect();
        let mut numbers = 0;
        for span in &spans {
            let json = by_id[hex(&span.span_id).as_str()];
            assert_eq!(json["name"], span.name.as_str(), "{json:#}");
            assert_eq!(json["context"]["trace_id"], hex(&span.trace_id).as_str());
            let parent = json["parent_id"].as_str().unwrap_or_default();
            assert_eq!(parent, hex(&span.parent_span_id), "{json:#}");
            for attribute in &span.attributes {
                let value = attribute.value.as_ref().unwrap().value.as_ref().unwrap();
                if let Any::IntValue(number) = value {
                    assert_eq!(json["attributes"][&attribute.key], *number, "{json:#}");
                    numbers += 1;
                }
            }
        }
        assert!(numbers > 10, "{numbers}");
    }
}
