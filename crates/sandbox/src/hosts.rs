//! The hosts that a confined program can reach: what they are called, and where inside they seem to be.
//!
//! How it works: the program lives in a network of its own, where each host is an address of the loopback: a name is
//! given one (127.0.0.2 and on) that a hosts file tells, an address is itself. What is connected to there is carried to
//! the real host from outside (`forward`).
//!
//! What always holds: a name leads to public addresses only. Who owns a name decides where it points, and could
//! point it at the machine's own services or its neighbours; those are reached only where their address is written out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::identity::HOSTNAME;

/// The ports of a host that is named without one.
const USUAL_PORTS: [u16; 2] = [443, 80];
/// The most hosts.
const MAX_HOSTS: usize = 64;
/// The most ports of all of them together.
const MAX_PORTS: usize = 256;
/// The name of the machine itself.
const LOCALHOST: &str = "localhost";

/// A host that a confined program can reach by TCP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllowedHost {
    /// A DNS name, `localhost`, or an IP address. A name that means an address of the machine or of a private network is
    /// not reached; an address is reached as it is written.
    pub host: String,
    /// The ports.
    pub ports: Vec<u16>,
}

impl AllowedHost {
    /// A host with the ports of the web, 443 and 80.
    pub fn web(host: impl Into<String>) -> Self {
        Self {
            host: host.into(),
            ports: USUAL_PORTS.to_vec(),
        }
    }

    /// Whether it is written as an address of the machine itself, of a private network or of special use, such as the one at which clouds
    /// tell a machine its keys.
    #[must_use]
    pub fn is_local(&self) -> bool {
        matches!(meaning(&self.host), Ok((_, Destination::Address(address))) if !is_public(address))
    }
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports: Vec<_> = self.ports.iter().map(u16::to_string).collect();
        write!(f, "{} ({})", self.host, ports.join(", "))
    }
}

impl FromStr for AllowedHost {
    type Err = AllowedHostError;

    /// `HOST`, `HOST:PORT`, `[IPV6]:PORT` or an IPv6 address; without a port the ports of the web.
    fn from_str(text: &str) -> Result<Self, AllowedHostError> {
        let refuse = |problem| AllowedHostError {
            host: text.to_owned(),
            problem,
        };
        if text.contains('/') {
            // A URL, whose scheme would be taken for a host.
            return Err(refuse(HostProblem::NotAHost));
        }
        let (host, port) = if text.parse::<Ipv6Addr>().is_ok() {
            (text, None)
        } else if let Some(rest) = text.strip_prefix('[') {
            let (host, rest) = rest
                .split_once(']')
                .ok_or_else(|| refuse(HostProblem::NotAHost))?;
            let port = match rest.strip_prefix(':') {
                Some(port) => Some(port),
                None if rest.is_empty() => None,
                None => return Err(refuse(HostProblem::NotAHost)),
            };
            host.parse::<Ipv6Addr>()
                .map_err(|_| refuse(HostProblem::NotAHost))?;
            (host, port)
        } else {
            text.split_once(':')
                .map_or((text, None), |(host, port)| (host, Some(port)))
        };
        let ports = match port {
            None => USUAL_PORTS.to_vec(),
            Some(port) => vec![port.parse().map_err(|_| refuse(HostProblem::Port))?],
        };
        let allowed = Self {
            host: host.to_owned(),
            ports,
        };
        match routes(std::slice::from_ref(&allowed)) {
            Ok(_) => Ok(allowed),
            Err(error) => Err(refuse(error.problem)),
        }
    }
}

/// A host that cannot be allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("host {host:?}: {problem}")]
pub struct AllowedHostError {
    /// What was asked for.
    pub host: String,
    /// What is wrong with it.
    pub problem: HostProblem,
}

/// Why a host cannot be allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HostProblem {
    /// Neither a name nor an address.
    #[error(
        "it is neither a DNS name nor an IP address; give a name such as api.example.com, without a scheme, a path or a wildcard"
    )]
    NotAHost,
    /// An address that is not the address of a single host.
    #[error("it is not the address of a single host; give one that is")]
    NotOneHost,
    /// It has no port, or one that does not exist.
    #[error("it needs a port from 1 to 65535")]
    Port,
    /// Too many hosts, or too many ports.
    #[error("it exceeds the limit of {MAX_HOSTS} hosts or {MAX_PORTS} ports; allow fewer")]
    TooMany,
}

/// Where a connection goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destination {
    /// To what the name means at that moment.
    Name(String),
    /// To this address.
    Address(IpAddr),
}

/// From an address inside to a host outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    /// Where the program connects to.
    pub(crate) inside: SocketAddr,
    /// What the caller calls the host.
    pub(crate) host: String,
    pub(crate) to: Destination,
}

/// The routes to these hosts, in an order that both stages keep.
pub(crate) fn routes(hosts: &[AllowedHost]) -> Result<Vec<Route>, AllowedHostError> {
    let refuse = |host: &AllowedHost, problem| AllowedHostError {
        host: host.host.clone(),
        problem,
    };
    let mut requested: BTreeMap<String, (Destination, BTreeSet<u16>)> = BTreeMap::new();
    let mut ports = 0;
    for host in hosts {
        let (name, to) = meaning(&host.host).map_err(|problem| refuse(host, problem))?;
        let known = &mut requested
            .entry(name)
            .or_insert_with(|| (to, BTreeSet::new()))
            .1;
        if host.ports.is_empty() || host.ports.contains(&0) {
            return Err(refuse(host, HostProblem::Port));
        }
        ports += host
            .ports
            .iter()
            .filter(|port| known.insert(**port))
            .count();
        if ports > MAX_PORTS || requested.len() > MAX_HOSTS {
            return Err(refuse(host, HostProblem::TooMany));
        }
    }
    let ip_addrs: BTreeSet<IpAddr> = requested
        .values()
        .filter_map(|(to, _)| {
            if let Destination::Address(address) = to {
                Some(*address)
            } else {
                None
            }
        })
        .collect();
    let free = (2..=u8::MAX).map(|last| IpAddr::from([127, 0, 0, last]));
    let mut free = free.filter(|address| !ip_addrs.contains(address));
    let mut routes = BTreeMap::new();
    for (host, (to, ports)) in requested {
        let inside = match &to {
            Destination::Address(address) => *address,
            // There are more of these addresses than hosts are taken.
            Destination::Name(_) => free.next().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        };
        for port in ports {
            let inside = SocketAddr::new(inside, port);
            // `localhost` and its address are one.
            routes.entry(inside).or_insert(Route {
                inside,
                host: host.clone(),
                to: to.clone(),
            });
        }
    }
    Ok(routes.into_values().collect())
}

/// The hosts file of a program with these routes.
pub(crate) fn hosts_file(routes: &[Route], host_name: &str) -> String {
    let mut text = format!("{} {LOCALHOST} {host_name}\n", Ipv4Addr::LOCALHOST);
    let mut last = None;
    for route in routes {
        if matches!(route.to, Destination::Name(_)) && last != Some(route.inside.ip()) {
            text.push_str(&format!("{} {}\n", route.inside.ip(), route.host));
            last = Some(route.inside.ip());
        }
    }
    text
}

/// What a host's text means, and how it is spelled.
fn meaning(host: &str) -> Result<(String, Destination), HostProblem> {
    if let Ok(address) = host.parse::<IpAddr>() {
        let address = address.to_canonical();
        let is_one = match address {
            IpAddr::V4(v4) => !(v4.octets()[0] == 0 || v4.octets()[0] >= 224),
            IpAddr::V6(v6) => {
                !(v6.is_unspecified() || v6.is_multicast() || v6.is_unicast_link_local())
            }
        };
        return if is_one {
            Ok((address.to_string(), Destination::Address(address)))
        } else {
            Err(HostProblem::NotOneHost)
        };
    }
    let name = host.to_ascii_lowercase();
    if name == LOCALHOST {
        return Ok((name, Destination::Address(IpAddr::V4(Ipv4Addr::LOCALHOST))));
    }
    let is_label = |label: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        (1..=63).contains(&label.len())
            && label.bytes().all(plain)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    // What ends in a number would be read as an address by some, such as 127.1 or 0x7f000001.
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_number = last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit());
    if name.len() > 253 || is_number || !name.split('.').all(is_label) || name == HOSTNAME {
        return Err(HostProblem::NotAHost);
    }
    Ok((name.clone(), Destination::Name(name)))
}

/// Whether an address belongs to the public internet, and to no machine, neighbour or special use.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => {
            let words = v6.segments();
            let [.., high, low] = words;
            match words {
                // An IPv4 address as networks without IPv4 write it.
                [0x64, 0xff9b, 0, 0, 0, 0, ..] => {
                    is_public_v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
                }
                // Tunnels, which hold an address of their own choice; protocols; documentation.
                [0x2002 | 0x3fff, ..] | [0x2001, 0..=0x1ff | 0xdb8, ..] => false,
                [first, ..] => first & 0xe000 == 0x2000,
            }
        }
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !matches!(
        address.octets(),
        [0 | 10 | 127, ..]
            | [100, 64..=127, ..]
            | [169, 254, ..]
            | [172, 16..=31, ..]
            | [192, 0, 0 | 2, _]
            | [192, 88, 99, _]
            | [192, 168, ..]
            | [198, 18 | 19, ..]
            | [198, 51, 100, _]
            | [203, 0, 113, _]
            | [224..=255, ..]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allow(host: &str, ports: &[u16]) -> AllowedHost {
        AllowedHost {
            host: host.to_owned(),
            ports: ports.to_vec(),
        }
    }

    #[test]
    fn each_name_has_its_own_inner_address() {
        let hosts = [
            allow("api.example.com", &[443, 80]),
            allow("API.Example.com", &[443, 8443]),
            allow("127.0.0.2", &[5000]),
            allow("localhost", &[5432]),
            allow("127.0.0.1", &[5432]),
            allow("::ffff:93.184.215.14", &[443]),
            allow("www.example.com", &[443]),
            allow("::1", &[1]),
        ];
        let routes = routes(&hosts).unwrap();
        let found: Vec<_> = routes
            .iter()
            .map(|route| format!("{} {}", route.inside, route.host))
            .collect();
        assert_eq!(
            found,
            [
                "93.184.215.14:443 93.184.215.14",
                "127.0.0.1:5432 127.0.0.1",
                "127.0.0.2:5000 127.0.0.2",
                "127.0.0.3:80 api.example.com",
                "127.0.0.3:443 api.example.com",
                "127.0.0.3:8443 api.example.com",
                "127.0.0.4:443 www.example.com",
                "[::1]:1 ::1",
            ]
        );
        assert_eq!(
            hosts_file(&routes, HOSTNAME),
            "127.0.0.1 localhost crucible\n127.0.0.3 api.example.com\n127.0.0.4 www.example.com\n"
        );
    }

    #[test]
    fn invalid_host_name_is_refused() {
        let long = format!("{}.com", "a.".repeat(130));
        let bad = [
            "",
            ".",
            "a..b",
            "*.example.com",
            "example.com.",
            "https://example.com",
            "a b",
            "a/b",
            "example.com\n1.2.3.4 x",
            "127.1",
            "0x7f000001",
            "2130706433",
            "a.0x1",
            "-a.com",
            "a-.com",
            "ex\u{e4}mple.com",
            "fe80::1%lo",
            "crucible",
            &long,
        ];
        for host in bad {
            let refused = routes(&[allow(host, &[443])]).unwrap_err();
            assert_eq!(refused.problem, HostProblem::NotAHost, "{host:?}");
        }
        for host in [
            "0.0.0.0",
            "255.255.255.255",
            "224.0.0.1",
            "::",
            "ff02::1",
            "fe80::1",
        ] {
            assert_eq!(
                routes(&[allow(host, &[443])]).unwrap_err().problem,
                HostProblem::NotOneHost,
                "{host}"
            );
        }
        for ports in [&[][..], &[0], &[443, 0]] {
            assert_eq!(
                routes(&[allow("a.example", ports)]).unwrap_err().problem,
                HostProblem::Port
            );
        }
        let many: Vec<_> = (0..=MAX_HOSTS)
            .map(|n| allow(&format!("h{n}.example"), &[1]))
            .collect();
        assert!(routes(&many[1..]).is_ok());
        assert_eq!(routes(&many).unwrap_err().problem, HostProblem::TooMany);
        let ports: Vec<u16> = (1..=257).collect();
        assert_eq!(
            routes(&[allow("a.example", &ports)]).unwrap_err().problem,
            HostProblem::TooMany
        );
    }

    #[test]
    fn a_host_is_read_as_people_write_it() {
        let read = |text: &str| {
            text.parse::<AllowedHost>()
                .map(|host| (host.host, host.ports))
        };
        assert_eq!(
            read("a.example"),
            Ok(("a.example".to_owned(), vec![443, 80]))
        );
        assert_eq!(
            read("a.example:8443"),
            Ok(("a.example".to_owned(), vec![8443]))
        );
        assert_eq!(read("127.0.0.1:1"), Ok(("127.0.0.1".to_owned(), vec![1])));
        assert_eq!(read("::1"), Ok(("::1".to_owned(), vec![443, 80])));
        assert_eq!(read("[::1]:5"), Ok(("::1".to_owned(), vec![5])));
        assert_eq!(read("[::1]"), Ok(("::1".to_owned(), vec![443, 80])));
        for bad in [
            "",
            ":1",
            "a.example:",
            "a.example:0",
            "a.example:65536",
            "a.example:x",
            "[a.example]:1",
            "[::1",
            "[::1]5",
            "https://a.example",
        ] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn local_addresses_are_local_hosts() {
        for local in [
            "localhost",
            "127.0.0.1",
            "10.0.0.7",
            "169.254.169.254",
            "192.168.1.1",
            "::1",
            "fd00::1",
        ] {
            assert!(AllowedHost::web(local).is_local(), "{local}");
        }
        // What a name means is known when it is connected to, and such an address is refused there.
        for other in [
            "api.example.com",
            "93.184.215.14",
            "localhost.example.com",
            "127.1",
        ] {
            assert!(!AllowedHost::web(other).is_local(), "{other}");
        }
    }

    #[test]
    fn only_addresses_of_the_internet_are_public() {
        let is_public = |text: &str| is_public(text.parse().unwrap());
        for public in [
            "93.184.215.14",
            "1.1.1.1",
            "172.32.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "64:ff9b::5db8:d70e",
            "::ffff:1.1.1.1",
        ] {
            assert!(is_public(public), "{public}");
        }
        let not = [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "fe80::1",
            "fc00::1",
            "fd00::1",
            "ff02::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "100::1",
        ];
        for address in not {
            assert!(!is_public(address), "{address}");
        }
    }
}
