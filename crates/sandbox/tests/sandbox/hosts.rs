//! A network of named hosts, tried from inside.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crucible_sandbox::{
    AllowedHost, Completed, End, IsolationLevel, Layer, Network, Profile, SandboxError, Strength,
    SyscallClass,
};

use crate::confined::{AS_ORDINARY_USER, as_an_ordinary_user};
use crate::support::{Scratch, part, run};

/// A server on the machine's own loopback: it reads to the end and answers with what it read. It counts whom it met.
struct Echo {
    port: u16,
    met: Arc<AtomicUsize>,
}

fn echo() -> Echo {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let met = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&met);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            count.fetch_add(1, Ordering::SeqCst);
            std::thread::spawn(move || answer(stream));
        }
    });
    Echo { port, met }
}

fn answer(mut stream: TcpStream) {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let _ = stream.write_all(&bytes);
    let _ = stream.shutdown(Shutdown::Write);
}

fn hosts(hosts: &[(&str, u16)]) -> Network {
    Network::Hosts(
        hosts
            .iter()
            .map(|(host, port)| AllowedHost {
                host: (*host).to_owned(),
                ports: vec![*port],
            })
            .collect(),
    )
}

/// Python that can ask an echo, and says what came of it.
const ASK: &str = "import socket, sys\n\
    def ask(host, port, text=b'hello'):\n\
    \x20   try:\n\
    \x20       with socket.create_connection((host, port), 10) as s:\n\
    \x20           s.sendall(text); s.shutdown(socket.SHUT_WR)\n\
    \x20           got = b''.join(iter(lambda: s.recv(65536), b''))\n\
    \x20           return 'same' if got == text else f'other: {len(got)}'\n\
    \x20   except ConnectionRefusedError: return 'refused'\n\
    \x20   except PermissionError: return 'denied'\n\
    \x20   except OSError: return 'broken'\n";

fn run_script(network: Network, script: &str) -> Completed {
    let scratch = Scratch::new();
    let spawn = scratch.python(&format!("{ASK}{script}"), |profile| {
        (profile.network, profile.calls) = (network, SyscallClass::Connect);
    });
    let done = run(&scratch.sandbox(), spawn).unwrap();
    assert_eq!(done.end, End::Exited(0), "{}", done.stderr.text());
    done
}

#[test]
fn an_allowed_port_is_reached_and_no_other() {
    let (allowed, other) = (echo(), echo());
    let script = format!(
        "print(ask('localhost', {0}), ask('127.0.0.1', {0}), ask('127.0.0.1', {1}), ask('localhost', {1}), ask('::1', {1}))",
        allowed.port, other.port
    );
    let done = run_script(hosts(&[("localhost", allowed.port)]), &script);
    assert_eq!(
        done.stdout.text(),
        "same same refused refused refused\n",
        "{}",
        done.stderr.text()
    );
    assert_eq!(
        (
            allowed.met.load(Ordering::SeqCst),
            other.met.load(Ordering::SeqCst)
        ),
        (2, 0)
    );
    let [contact] = &done.contacts[..] else {
        panic!("{:?}", done.contacts)
    };
    assert_eq!(
        (
            contact.host.as_str(),
            contact.port,
            contact.opened,
            contact.failed
        ),
        ("localhost", allowed.port, 2, 0)
    );
    assert_eq!(done.receipt.level, IsolationLevel::Full);
    assert_eq!(
        serde_json::to_value(&done.receipt).unwrap()["network"]["hosts"][0]["ports"][0],
        allowed.port
    );
    let cut = done
        .receipt
        .reached
        .iter()
        .find(|found| found.layer == Layer::NetworkCut)
        .unwrap();
    assert!(
        cut.detail
            .ends_with(&format!("only localhost ({})", allowed.port)),
        "{}",
        cut.detail
    );
}

#[test]
fn bytes_flow_both_ways_over_many_connections() {
    let server = echo();
    let script = format!(
        "from concurrent.futures import ThreadPoolExecutor\n\
         print(ask('localhost', {0}, bytes(range(256)) * 40000))\n\
         with ThreadPoolExecutor(100) as pool: print(set(pool.map(lambda n: ask('localhost', {0}, str(n).encode()), range(300))))",
        server.port
    );
    let done = run_script(hosts(&[("localhost", server.port)]), &script);
    assert_eq!(
        done.stdout.text(),
        "same\n{'same'}\n",
        "{}",
        done.stderr.text()
    );
    assert_eq!(
        (server.met.load(Ordering::SeqCst), done.contacts[0].opened),
        (301, 301)
    );
}

#[test]
fn inner_name_is_reachable_only_if_listed() {
    let script = "names = ['api.invalid', 'API.INVALID', 'other.invalid', 'example.com']\n\
        def known(name):\n\
        \x20   try: return {found[4][0] for found in socket.getaddrinfo(name, 443)}.pop()\n\
        \x20   except OSError: return None\n\
        print([known(name) for name in names], ask('api.invalid', 443), ask('api.invalid', 81))";
    // Names of this ending mean nothing anywhere, so outside it fails; the ports of the web are below 1024.
    let done = run_script(
        Network::Hosts(vec![AllowedHost::web("api.invalid")]),
        script,
    );
    assert_eq!(
        done.stdout.text(),
        "['127.0.0.2', '127.0.0.2', None, None] broken refused\n",
        "{}",
        done.stderr.text()
    );
    let [contact] = &done.contacts[..] else {
        panic!("{:?}", done.contacts)
    };
    assert_eq!(
        (
            contact.host.as_str(),
            contact.port,
            contact.opened,
            contact.failed
        ),
        ("api.invalid", 443, 0, 1)
    );
    assert!(!contact.last_failure.is_empty());
}

#[test]
fn an_address_is_itself_inside() {
    // Whether anybody is there outside does not matter: what is connected to is inside, though it may end at once.
    let script = "for host in ('192.0.2.1', '2001:db8::1', '127.0.0.77', '192.0.2.2'):\n\
        \x20   try: socket.create_connection((host, 443), 10)\n\
        \x20   except ConnectionResetError: pass\n\
        \x20   except OSError: print(host, 'is not there')";
    let done = run_script(
        hosts(&[
            ("192.0.2.1", 443),
            ("2001:db8::1", 443),
            ("127.0.0.77", 443),
        ]),
        script,
    );
    assert_eq!(
        done.stdout.text(),
        "192.0.2.2 is not there\n",
        "{}",
        done.stderr.text()
    );
}

#[test]
fn outer_close_and_reset_are_passed_inside() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut whole, _) = listener.accept().unwrap();
        whole.write_all(b"whole").unwrap();
        drop(whole);
        let (broken, _) = listener.accept().unwrap();
        // What was sent is left unread, so the end is a reset.
        let _ = broken.peek(&mut [0]);
        drop(broken);
    });
    let script = format!(
        "s = socket.create_connection(('localhost', {port}), 10)\nprint(b''.join(iter(lambda: s.recv(9), b'')))\n\
         s = socket.create_connection(('localhost', {port}), 10); s.sendall(b'unread')\n\
         try: print('ended well', s.recv(9))\n\
         except ConnectionResetError: print('reset')"
    );
    let done = run_script(hosts(&[("localhost", port)]), &script);
    assert_eq!(
        done.stdout.text(),
        "b'whole'\nreset\n",
        "{}",
        done.stderr.text()
    );
}

#[test]
fn connections_end_with_the_program() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let met = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let mut bytes = Vec::new();
        let end = stream.read_to_end(&mut bytes).map_err(|error| error.kind());
        (bytes, end)
    });
    let scratch = Scratch::new();
    let script = format!(
        "import socket, time\ns = socket.create_connection(('localhost', {port}), 10)\ns.sendall(b'here')\ntime.sleep(60)"
    );
    let mut spawn = scratch.python(&script, |profile| {
        profile.network = hosts(&[("localhost", port)])
    });
    spawn.limits.wall = Duration::from_secs(2);
    let done = run(&scratch.sandbox(), spawn).unwrap();
    assert_eq!((done.end, done.contacts[0].opened), (End::TimedOut, 1));
    let (content, end) = met.join().unwrap();
    assert_eq!(content, b"here");
    assert!(
        end.is_ok_and(|count| count == 4),
        "the connection stayed open"
    );
}

#[test]
fn forwarding_leaves_program_no_rights_or_descriptors() {
    let script = "import os\n\
        print(sorted(os.listdir('/proc/self/fd'))[:3], len(os.listdir('/proc/self/fd')))\n\
        print({l.split()[1] for l in open('/proc/self/status') if l.startswith('Cap')})\n\
        print(open('/etc/hosts').read())\n\
        for place in ('/etc/hosts', '/dev/new', '/proc/sys/net/ipv4/ip_unprivileged_port_start'):\n\
        \x20   try: open(place, 'w'); print('wrote', place)\n\
        \x20   except OSError: pass\n\
        for address in (('127.0.0.9', 80), ('127.0.0.1', 443), ('127.0.0.2', 443)):\n\
        \x20   try: socket.socket().bind(address); print('bound', address)\n\
        \x20   except OSError: pass\n\
        open('/dev/null', 'w').write('x'); open('/dev/urandom', 'rb').read(4); open('/dev/stdin'); os.listdir('/dev/fd')\n";
    let scratch = Scratch::new();
    let spawn = scratch.python(&format!("{ASK}{script}"), |profile| {
        profile.network = hosts(&[("a.invalid", 443)])
    });
    let done = run(&scratch.sandbox(), spawn).unwrap();
    let expected = "['0', '1', '2'] 4\n{'0000000000000000'}\n127.0.0.1 localhost crucible\n127.0.0.2 a.invalid\n\n";
    assert_eq!(done.stdout.text(), expected, "{}", done.stderr.text());
    assert!(done.contacts.is_empty());
}

#[test]
fn only_tcp_reaches_the_allowed_hosts() {
    // Nothing but TCP gets out: no datagram, no abstract socket, no port that a tool inside opens.
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let port = udp.local_addr().unwrap().port();
    let script =
        format!("socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {port}))");
    run_script(
        hosts(&[("localhost", port)]),
        &format!("try: {script}\nexcept OSError: pass"),
    );
    assert!(udp.recv(&mut [0; 4]).is_err(), "a datagram came out");
}

#[test]
fn without_namespaces_no_host_is_reached() {
    let scratch = Scratch::new();
    let server = echo();
    let with = |strength: Strength| {
        let change = |profile: &mut Profile| {
            (profile.network, profile.strength) = (hosts(&[("localhost", server.port)]), strength);
        };
        let script = format!(
            "{ASK}print(ask('localhost', {0}), ask('127.0.0.1', {0}))",
            server.port
        );
        run(
            &scratch.without_bubblewrap(),
            scratch.python(&script, change),
        )
    };
    let done = with(Strength::BestEffort).unwrap();
    assert_eq!(
        done.stdout.text(),
        "denied denied\n",
        "{}",
        done.stderr.text()
    );
    let cut = done
        .receipt
        .reached
        .iter()
        .find(|found| found.layer == Layer::NetworkCut)
        .unwrap();
    assert!(
        cut.detail
            .contains("the allowed hosts are not reached either"),
        "{}",
        cut.detail
    );
    assert!(matches!(
        with(Strength::Required),
        Err(SandboxError::LayersMissing { .. })
    ));
    assert_eq!(server.met.load(Ordering::SeqCst), 0);
}

#[test]
fn invalid_host_is_refused_before_starting() {
    let scratch = Scratch::new();
    for strength in [Strength::Required, Strength::BestEffort, Strength::Off] {
        let spawn = scratch.python("open('started', 'w')", |profile| {
            (profile.network, profile.strength) = (hosts(&[("*.example.com", 443)]), strength);
        });
        let error = run(&scratch.sandbox(), spawn).unwrap_err();
        assert!(matches!(error, SandboxError::Host(_)), "{error}");
    }
    assert!(!scratch.copy.join("started").exists());
}

#[test]
fn an_ordinary_user_reaches_allowed_hosts_too() {
    if part().is_some() {
        assert!(!rustix::process::geteuid().is_root());
        an_allowed_port_is_reached_and_no_other();
        inner_name_is_reachable_only_if_listed();
        an_address_is_itself_inside();
        forwarding_leaves_program_no_rights_or_descriptors();
        println!("{AS_ORDINARY_USER}");
        return;
    }
    as_an_ordinary_user("hosts::an_ordinary_user_reaches_allowed_hosts_too");
}
