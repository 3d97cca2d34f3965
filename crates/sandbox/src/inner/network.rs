//! The program's side of the hosts that it may reach: addresses of its own network that are listened on.
//!
//! How it works: an address that is not of the loopback is given to the loopback device first. Then a listener is made for
//! each route and handed to the outer stage, which serves it. Ports below 1024 and addresses need rights over this network only; bubblewrap
//! leaves them to this stage, which gives them up before the program starts.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, listen, recv, sendto,
    socket_with,
};

use crate::descriptors;

/// The loopback is the first device of every network.
const LOOPBACK_DEVICE: u32 = 1;
/// How many connections may wait to be accepted.
const BACKLOG: i32 = 128;

/// Message types and flags of the kernel's interface for addresses (`linux/netlink.h`, `linux/rtnetlink.h`).
const NEW_ADDRESS: u16 = 20;
const ANSWER: u16 = 2;
const REQUEST_CREATE_EXCLUSIVE_ACKNOWLEDGE: u16 = 0x1 | 0x400 | 0x200 | 0x4;
const ADDRESS: u16 = 1;
const LOCAL: u16 = 2;
/// An address of version 6 is used at once, without asking neighbours whether they have it.
const AT_ONCE: u8 = 0x2;
/// Bytes of a message's head.
const HEAD: usize = 16;

/// Listens on these addresses and hands the listeners out in this order.
pub(super) fn listen_on(addresses: &[SocketAddr], socket: &UnixStream) -> Result<(), String> {
    let mut given_ip_addrs = Vec::new();
    for address in addresses {
        let ip = address.ip();
        let failed = |error: &dyn std::fmt::Display| {
            format!("{address} cannot stand for a host in the program's own network: {error}")
        };
        if !ip.is_loopback() && !given_ip_addrs.contains(&ip) {
            give_address(ip).map_err(|error| failed(&error))?;
            given_ip_addrs.push(ip);
        }
        let listener = listener(*address).map_err(|errno| failed(&errno))?;
        descriptors::send(socket, &listener).map_err(|error| failed(&error))?;
    }
    Ok(())
}

fn listener(address: SocketAddr) -> rustix::io::Result<OwnedFd> {
    let family = if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let listener = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    bind(&listener, &address)?;
    listen(&listener, BACKLOG)?;
    Ok(listener)
}

/// Gives the loopback device an address.
fn give_address(address: IpAddr) -> io::Result<()> {
    // The protocol for addresses is number zero, which is none.
    let kernel = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    )?;
    sendto(
        &kernel,
        &request(address),
        SendFlags::empty(),
        &SocketAddrNetlink::new(0, 0),
    )?;
    let mut answer = [0; 256];
    let (length, _) = recv(&kernel, &mut answer, RecvFlags::empty())?;
    let number = |at: usize| {
        let bytes = answer.get(..length)?.get(at..)?.first_chunk()?;
        Some(i32::from_ne_bytes(*bytes))
    };
    let kind = answer
        .get(4..6)
        .and_then(|bytes| bytes.first_chunk())
        .map(|bytes| u16::from_ne_bytes(*bytes));
    match (kind, number(HEAD)) {
        (Some(ANSWER), Some(0)) => Ok(()),
        (Some(ANSWER), Some(error)) => Err(io::Error::from_raw_os_error(error.saturating_neg())),
        _ => Err(io::Error::other("the kernel's answer is not one")),
    }
}

/// The message that gives the loopback device an address.
fn request(address: IpAddr) -> Vec<u8> {
    let (family, octets) = match address {
        IpAddr::V4(v4) => (libc::AF_INET, v4.octets().to_vec()),
        IpAddr::V6(v6) => (libc::AF_INET6, v6.octets().to_vec()),
    };
    // Both families are small numbers, and an address has 4 or 16 bytes.
    let small = |number: usize| u8::try_from(number).unwrap_or_default();
    let mut body = vec![
        u8::try_from(family).unwrap_or_default(),
        small(octets.len() * 8),
        AT_ONCE,
        0,
    ];
    body.extend(LOOPBACK_DEVICE.to_ne_bytes());
    for kind in [LOCAL, ADDRESS] {
        body.extend(u16::from(small(4 + octets.len())).to_ne_bytes());
        body.extend(kind.to_ne_bytes());
        body.extend(&octets);
    }
    let mut message = u32::from(small(HEAD + body.len())).to_ne_bytes().to_vec();
    message.extend(NEW_ADDRESS.to_ne_bytes());
    message.extend(REQUEST_CREATE_EXCLUSIVE_ACKNOWLEDGE.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_as_long_as_it_says() {
        for (address, length) in [("192.0.2.7", HEAD + 8 + 16), ("2001:db8::7", HEAD + 8 + 40)] {
            let message = request(address.parse().unwrap());
            assert_eq!(message.len(), length);
            assert_eq!(message[..4], u32::try_from(length).unwrap().to_ne_bytes());
        }
    }
}
