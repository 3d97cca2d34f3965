//! A server on its own thread, so that asynchronous tests, paused clocks and tests of the real binary can all use it.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::path::Path;
use std::thread::JoinHandle;

use axum::Router;
use axum::serve::Listener;
use tokio::sync::oneshot;

/// A server on a free loopback port that ends, connections and all, when this is dropped.
pub(crate) struct LoopbackServer {
    address: SocketAddr,
    _thread: ServerThread,
}

impl LoopbackServer {
    pub(crate) fn start(router: Router) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free loopback port");
        listener
            .set_nonblocking(true)
            .expect("a non-blocking listener");
        let address = listener.local_addr().expect("the listener's address");
        let thread = ServerThread::start(router, || {
            tokio::net::TcpListener::from_std(listener).expect("the listener in the runtime")
        });
        Self {
            address,
            _thread: thread,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

/// A server on a unix socket that ends, connections and all, when this is dropped.
pub(crate) struct UnixServer {
    _thread: ServerThread,
}

impl UnixServer {
    pub(crate) fn start(path: &Path, router: Router) -> Self {
        let listener =
            std::os::unix::net::UnixListener::bind(path).expect("a free name for a socket");
        listener
            .set_nonblocking(true)
            .expect("a non-blocking listener");
        let thread = ServerThread::start(router, || {
            tokio::net::UnixListener::from_std(listener).expect("the listener in the runtime")
        });
        Self { _thread: thread }
    }
}

/// The thread of a server; ends with it.
struct ServerThread {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ServerThread {
    fn start<L>(router: Router, listener: impl FnOnce() -> L + Send + 'static) -> Self
    where
        L: Listener,
        L::Addr: Debug,
    {
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime for the server");
            runtime.block_on(async move {
                let serve = axum::serve(listener(), router);
                tokio::select! {
                    _ = stopped => {}
                    outcome = serve.into_future() => outcome.expect("the server serves"),
                }
            });
        });
        Self {
            stop: Some(stop),
            thread: Some(thread),
        }
    }
}

impl Drop for ServerThread {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _gone_already = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}
