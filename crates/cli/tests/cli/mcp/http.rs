//! Streamable HTTP: on the loopback, with a token, for requests that name the loopback.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::support::{Fixture, small};

/// A server by HTTP, which ends with the test.
struct Server {
    child: Child,
    port: u16,
    token: String,
}

impl Server {
    fn start(fixture: &Fixture, repo: &std::path::Path) -> Self {
        let call = fixture.call(["mcp", "--http", "0"]).current_dir(repo);
        let mut command = call.command();
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut value = |name: &str| {
            let line = lines.next().unwrap().unwrap();
            line.strip_prefix(name).unwrap().trim().to_owned()
        };
        let url = value("url");
        let token = value("token");
        let port = url
            .trim_start_matches("http://127.0.0.1:")
            .trim_end_matches("/mcp");
        Self {
            port: port.parse().unwrap(),
            token,
            child,
        }
    }

    /// Posts a request with these headers, and returns the status and the answer.
    fn post(&self, headers: &[(&str, &str)], body: &Value) -> (u16, String) {
        let body = body.to_string();
        let mut request =
            "POST /mcp HTTP/1.1\r\nConnection: close\r\nContent-Type: application/json\r\n\
                           Accept: application/json, text/event-stream\r\n"
                .to_owned();
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _gone_already = self.child.kill();
        let _waited_for = self.child.wait();
    }
}

#[test]
fn token_host_and_origin_are_required() {
    let (repo, fixture) = (small().build(), Fixture::new());
    let server = Server::start(&fixture, repo.path());
    let begin = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } } });
    let here = format!("127.0.0.1:{}", server.port);
    let bearer = format!("Bearer {}", server.token);
    let local = format!("http://localhost:{}", server.port);
    let honest = [("Host", here.as_str()), ("Authorization", bearer.as_str())];
    let (status, answer) = server.post(&honest, &begin);
    assert_eq!(status, 200, "{answer}");
    assert!(
        answer.contains("\"protocolVersion\":\"2025-11-25\""),
        "{answer}"
    );
    assert_eq!(
        server
            .post(
                &[&honest[..], &[("Origin", local.as_str())]].concat(),
                &begin
            )
            .0,
        200
    );

    for (hostile, expected) in [
        (vec![("Host", here.as_str())], 401),
        (
            vec![("Host", here.as_str()), ("Authorization", "Bearer x")],
            401,
        ),
        (
            vec![
                ("Host", here.as_str()),
                ("Authorization", server.token.as_str()),
            ],
            401,
        ),
        (
            vec![("Host", "evil.example"), ("Authorization", bearer.as_str())],
            403,
        ),
        (
            vec![
                ("Host", "127.0.0.1.evil.example"),
                ("Authorization", bearer.as_str()),
            ],
            403,
        ),
        (
            [&honest[..], &[("Origin", "http://evil.example")]].concat(),
            403,
        ),
        ([&honest[..], &[("Origin", "null")]].concat(), 403),
        (
            [&honest[..], &[("Origin", "http://localhost.evil.example")]].concat(),
            403,
        ),
    ] {
        let (status, answer) = server.post(&hostile, &begin);
        assert_eq!(status, expected, "{hostile:?}: {answer}");
        assert!(!answer.contains("protocolVersion"), "{answer}");
    }
    let listen = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let port = format!(":{:04X} 00000000:0000 0A", server.port);
    let line = listen.lines().find(|line| line.contains(&port)).unwrap();
    assert!(
        line.contains("0100007F:"),
        "it listens on the loopback: {line}"
    );
}
