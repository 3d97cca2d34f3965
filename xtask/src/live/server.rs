//! llama.cpp's server while the live suite runs: started, waited for, and stopped whatever happens.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::error::TaskError;
use crate::process::Call;
use crate::root::Root;

/// How long it may take to load the weights.
const READY_WITHIN: Duration = Duration::from_secs(120);
/// How long it gets to end on its own.
const END_WITHIN: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(100);

/// One thread and one slot: two threads collapse beside anything else that computes. The context holds what a client
/// program adds to a question of its own. Always the likeliest token, also for a client that asks for chance: so that an
/// answer stays the same from run to run.
const OPTIONS: [&str; 14] = [
    "-t", "1", "-tb", "1", "-np", "1", "-c", "8192", "--top-k", "1", "--jinja", "--no-ui",
    "--poll", "0",
];

/// A server that answers. Dropped, it and all its processes are gone.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    /// Starts it on a free port of loopback and waits until it has loaded its weights.
    pub(super) fn start(
        root: &Root,
        program: &Path,
        weights: &Path,
        log: &Path,
    ) -> Result<Self, TaskError> {
        if !Call::new(root, "setpriv").args(["--version"]).succeeds() {
            return Err(TaskError::Missing {
                what: "setpriv (it ties the model server's life to this task's)".to_owned(),
                fix: "Install the package `util-linux` of your distribution.".to_owned(),
            });
        }
        let file = File::create(log).map_err(TaskError::io("create", log))?;
        let address = free_address().map_err(TaskError::io("find a free port on", "127.0.0.1"))?;
        let child = Call::new(root, program)
            .args(OPTIONS)
            .args([
                "--host",
                &address.ip().to_string(),
                "--port",
                &address.port().to_string(),
            ])
            .args([Path::new("-m"), weights])
            .start_group(&file)?;
        let mut server = Self { child, address };
        server.wait(log)?;
        Ok(server)
    }

    /// Where it listens, as `http://host:port`.
    pub(super) fn address(&self) -> String {
        format!("http://{}", self.address)
    }

    fn wait(&mut self, log: &Path) -> Result<(), TaskError> {
        let fault = |reason: String| TaskError::NoServer {
            reason,
            log: PathBuf::from(log),
        };
        let begun = Instant::now();
        while begun.elapsed() < READY_WITHIN {
            if is_healthy(self.address).unwrap_or(false) {
                return Ok(());
            }
            if let Some(status) = self
                .child
                .try_wait()
                .map_err(TaskError::io("wait for", log))?
            {
                return Err(fault(format!("ended ({status}) before it was ready")));
            }
            sleep(POLL);
        }
        Err(fault(format!(
            "was not ready within {} s",
            READY_WITHIN.as_secs()
        )))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Until it was waited for, its number names this group and no other.
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let signal = |signal| group.is_some_and(|group| kill_process_group(group, signal).is_ok());
        signal(Signal::TERM);
        let begun = Instant::now();
        while begun.elapsed() < END_WITHIN {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            sleep(POLL);
        }
        signal(Signal::KILL);
        if let Err(error) = self.child.wait() {
            eprintln!("the model server could not be waited for: {error}");
        }
    }
}

/// An address that nobody listens at; the system does not give it to another at once.
fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}

/// Whether the server says that its weights are loaded.
fn is_healthy(address: SocketAddr) -> io::Result<bool> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(
        format!("GET /health HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").as_bytes(),
    )?;
    let mut start = [0; 13];
    stream.read_exact(&mut start)?;
    Ok(start.starts_with(b"HTTP/1.") && start.ends_with(b" 200 "))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    /// A program that stands in for the server.
    fn program(dir: &Path, script: &str) -> PathBuf {
        let path = dir.join("server");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn appears(note: &Path) {
        let begun = Instant::now();
        while !note.exists() && begun.elapsed() < Duration::from_secs(60) {
            sleep(POLL);
        }
    }

    #[test]
    fn server_ending_early_is_error_naming_log() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let program = program(dir.path(), "echo cannot load; exit 3");
        let root = Root::find().unwrap();
        let error = Server::start(&root, &program, Path::new("w"), &log)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("ended") && error.contains(&log.display().to_string()),
            "{error}"
        );
        assert_eq!(fs::read_to_string(&log).unwrap(), "cannot load\n");
    }

    #[test]
    fn dropping_server_ends_its_whole_process_group() {
        let dir = tempfile::tempdir().unwrap();
        let note = dir.path().join("note");
        let script = format!(
            "trap '' TERM; sleep 1000 & echo $! > {0}.new; mv {0}.new {0}; while :; do sleep 1; done",
            note.display()
        );
        let program = program(dir.path(), &script);
        let root = Root::find().unwrap();
        let log = File::create(dir.path().join("log")).unwrap();
        let child = Call::new(&root, program).start_group(&log).unwrap();
        let address = free_address().unwrap();
        let server = Server { child, address };
        appears(&note);
        let grandchild: i32 = fs::read_to_string(&note).unwrap().trim().parse().unwrap();
        drop(server);
        let gone = |pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // A process that nobody waited for yet is none any more.
            stat.rsplit(')')
                .next()
                .is_none_or(|rest| rest.is_empty() || rest.starts_with(" Z"))
        };
        let begun = Instant::now();
        while !gone(grandchild) && begun.elapsed() < Duration::from_secs(60) {
            sleep(POLL);
        }
        assert!(gone(grandchild), "process {grandchild} is still there");
    }

    #[test]
    fn a_server_does_not_outlive_who_started_it() {
        let dir = tempfile::tempdir().unwrap();
        let note = dir.path().join("note");
        let program = program(
            dir.path(),
            &format!("echo > {}; exec sleep 1000", note.display()),
        );
        let log = File::create(dir.path().join("log")).unwrap();
        let root = Root::find().unwrap();
        // The thread stands in for this whole program: it ends without a word to what it started.
        let starting = std::thread::spawn(move || {
            let child = Call::new(&root, program).start_group(&log).unwrap();
            appears(&note);
            child
        });
        let mut child = starting.join().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }

    #[test]
    fn only_a_200_counts_as_healthy() {
        for (answer, healthy) in [
            ("HTTP/1.1 200 OK\r\n\r\n", true),
            ("HTTP/1.1 503 Loading\r\n\r\n", false),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let answering = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 512];
                let read = stream.read(&mut request).unwrap();
                assert!(request[..read].starts_with(b"GET /health "));
                stream.write_all(answer.as_bytes()).unwrap();
            });
            assert_eq!(is_healthy(address).unwrap(), healthy);
            answering.join().unwrap();
        }
    }
}
