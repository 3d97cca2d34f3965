//! Carries the connections of a confined program to the hosts that it may reach.
//!
//! How it works: the inner stage listens in the program's own network and hands the open listeners out, so connections
//! made inside are accepted out here, where the real network is. Which listener one came in on says where it goes:
//! the program has no way to name a destination. Bytes are carried as they are, so encryption goes from end to end.
//!
//! What always holds: no thread and no process serves this; when the program has ended, or the run is dropped, every connection ends.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::completed::HostConnections;
use crate::hosts::{Destination, Route, is_public};

/// The most connections at a time; a program that wants more of them waits.
const MAX_CONNECTIONS: usize = 64;
/// How long a host may take to answer a connection.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Time until the next try where no connection could be accepted, for want of descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// What a name means at this moment.
type Meaning = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;
/// Finds out what a name means.
type Resolver = fn(String, u16) -> Meaning;

/// The connections of one program.
pub(crate) struct Forwarder {
    routes: Vec<Route>,
    contacts: Arc<Mutex<Vec<HostConnections>>>,
    connections: JoinSet<()>,
    resolver: Resolver,
}

impl Forwarder {
    /// For a program with these routes.
    pub(crate) fn new(routes: Vec<Route>) -> Self {
        let contact = |route: &Route| HostConnections {
            host: route.host.clone(),
            port: route.inside.port(),
            opened: 0,
            failed: 0,
            last_failure: String::new(),
        };
        let contacts = Arc::new(Mutex::new(routes.iter().map(contact).collect()));
        Self {
            routes,
            contacts,
            connections: JoinSet::new(),
            resolver: |name, port| Box::pin(lookup(name, port)),
        }
    }

    /// Serves the listeners, one for each route in their order, once they come. Never returns.
    pub(crate) async fn serve(&mut self, listeners: oneshot::Receiver<Vec<OwnedFd>>) {
        if let Ok(listeners) = listeners.await {
            let listeners: Vec<_> = listeners
                .into_iter()
                .filter_map(|one| listener(one).ok())
                .collect();
            if listeners.len() == self.routes.len() && !listeners.is_empty() {
                self.accept(&listeners).await;
            }
        }
        std::future::pending().await
    }

    async fn accept(&mut self, listeners: &[TcpListener]) {
        loop {
            while self.connections.len() >= MAX_CONNECTIONS {
                self.connections.join_next().await;
            }
            while self.connections.try_join_next().is_some() {}
            let accepted = poll_fn(|context| {
                let mut ready = listeners
                    .iter()
                    .enumerate()
                    .map(|(n, one)| (n, one.poll_accept(context)));
                let found = ready.find_map(|(n, poll)| match poll {
                    Poll::Ready(result) => Some((n, result)),
                    Poll::Pending => None,
                });
                found.map_or(Poll::Pending, Poll::Ready)
            });
            let (index, Ok((inside, _))) = accepted.await else {
                sleep(PAUSE).await;
                continue;
            };
            if let Some(route) = self.routes.get(index) {
                let carried = carry(
                    inside,
                    index,
                    route.clone(),
                    self.resolver,
                    Arc::clone(&self.contacts),
                );
                self.connections.spawn(carried);
            }
        }
    }

    /// Ends every connection, and tells what became of them: each host that was asked for.
    pub(crate) async fn end(mut self) -> Vec<HostConnections> {
        self.connections.shutdown().await;
        let contacts = std::mem::take(&mut *lock(&self.contacts));
        contacts
            .into_iter()
            .filter(|contact| contact.opened + contact.failed > 0)
            .collect()
    }
}

/// A listener that the inner stage handed out.
fn listener(descriptor: OwnedFd) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::from(descriptor);
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

fn lock(contacts: &Mutex<Vec<HostConnections>>) -> MutexGuard<'_, Vec<HostConnections>> {
    contacts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Carries one connection to its end.
async fn carry(
    mut inside: TcpStream,
    index: usize,
    route: Route,
    resolver: Resolver,
    contacts: Arc<Mutex<Vec<HostConnections>>>,
) {
    let late = || {
        Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the host did not answer in time",
        ))
    };
    let opened = timeout(TIMEOUT, connect(&route, resolver))
        .await
        .unwrap_or_else(|_| late());
    if let Some(contact) = lock(&contacts).get_mut(index) {
        match &opened {
            Ok(_) => contact.opened += 1,
            Err(error) => {
                contact.failed += 1;
                contact.last_failure = error.to_string();
            }
        }
    }
    let broken = match opened {
        Ok(mut outside) => {
            let carried = copy_bidirectional(&mut inside, &mut outside).await;
            if carried.is_err() {
                // The other side must not take a broken connection for one that ended well.
                let _ = outside.set_zero_linger();
            }
            carried.is_err()
        }
        Err(_) => true,
    };
    if broken {
        let _ = inside.set_zero_linger();
    }
}

async fn connect(route: &Route, resolver: Resolver) -> io::Result<TcpStream> {
    let port = route.inside.port();
    let name = match &route.to {
        Destination::Address(address) => {
            return TcpStream::connect(SocketAddr::new(*address, port)).await;
        }
        Destination::Name(name) => name,
    };
    let mut addresses = resolver(name.clone(), port).await?;
    let refuse = |why: &str| io::Error::new(io::ErrorKind::PermissionDenied, why.to_owned());
    if addresses.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "the name means no address",
        ));
    }
    addresses.retain(|address| is_public(address.ip()));
    if addresses.is_empty() {
        return Err(refuse(
            "the name resolves to a local or private address; allow the address itself if that is intended",
        ));
    }
    let stream = TcpStream::connect(&*addresses).await?;
    if stream.local_addr()?.ip().to_canonical() == stream.peer_addr()?.ip().to_canonical() {
        return Err(refuse(
            "the name resolves to this machine; allow the address itself if that is intended",
        ));
    }
    Ok(stream)
}

async fn lookup(name: String, port: u16) -> io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((name, port)).await?.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::{AllowedHost, routes};

    /// A route to this name at the port of a server on the loopback that must not be met.
    async fn refused(resolver: Resolver) -> String {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = server.local_addr().unwrap().port();
        let host = AllowedHost {
            host: "evil.example".to_owned(),
            ports: vec![port],
        };
        let route = routes(&[host]).unwrap().remove(0);
        let error = connect(&route, resolver).await.unwrap_err();
        assert!(
            timeout(Duration::from_millis(50), server.accept())
                .await
                .is_err(),
            "the server was reached"
        );
        error.to_string()
    }

    #[tokio::test]
    async fn name_resolving_to_local_or_private_is_refused() {
        let resolvers: [Resolver; 3] = [
            |_, port| Box::pin(async move { Ok(vec![SocketAddr::from(([127, 0, 0, 1], port))]) }),
            |_, port| {
                Box::pin(async move {
                    Ok(vec![
                        SocketAddr::from(([10, 0, 0, 1], port)),
                        SocketAddr::from(([169, 254, 169, 254], port)),
                    ])
                })
            },
            |_, port| {
                Box::pin(
                    async move { Ok(vec![format!("[::ffff:127.0.0.1]:{port}").parse().unwrap()]) },
                )
            },
        ];
        for resolver in resolvers {
            let message = refused(resolver).await;
            assert!(message.contains("a local or private address"), "{message}");
        }
        let nothing = refused(|_, _| Box::pin(async { Ok(Vec::new()) })).await;
        assert_eq!(nothing, "the name means no address");
    }

    #[tokio::test]
    async fn an_address_that_is_written_out_is_reached() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = server.local_addr().unwrap().port();
        let host = AllowedHost {
            host: "127.0.0.1".to_owned(),
            ports: vec![port],
        };
        let route = routes(&[host]).unwrap().remove(0);
        let nobody: Resolver = |_, _| Box::pin(async { panic!("an address is not looked up") });
        assert!(connect(&route, nobody).await.is_ok());
        assert!(server.accept().await.is_ok());
    }
}
