//! A forwarder that adds the server's token to each request: the suite cannot send one.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

/// Starts to forward to `server` from a free port of the loopback, which it returns. It ends with the test.
pub(crate) fn forward(server: SocketAddr, token: &str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let token = token.to_owned();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let token = token.clone();
            thread::spawn(move || pass_on(client, server, &token));
        }
    });
    port
}

/// Passes one request on, on a connection of its own, and its answer back.
fn pass_on(mut client: TcpStream, server: SocketAddr, token: &str) -> Option<()> {
    let (mut request, mut byte) = (Vec::new(), [0]);
    while !request.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte).ok()?;
        request.push(byte[0]);
    }
    let text = String::from_utf8(request).ok()?;
    let (first, headers) = text.split_once("\r\n")?;
    let kept = headers
        .lines()
        .filter(|line| !line.is_empty() && !line.to_ascii_lowercase().starts_with("connection:"));
    let mut changed = format!("{first}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n");
    for header in kept {
        changed.push_str(&format!("{header}\r\n"));
    }
    let mut upstream = TcpStream::connect(server).ok()?;
    upstream
        .write_all(format!("{changed}\r\n").as_bytes())
        .ok()?;
    let (mut from_client, mut to_server) = (client.try_clone().ok()?, upstream.try_clone().ok()?);
    thread::spawn(move || std::io::copy(&mut from_client, &mut to_server));
    std::io::copy(&mut upstream, &mut client).ok()?;
    client.shutdown(std::net::Shutdown::Both).ok()
}
