//! Open descriptors that the inner stage hands out, over the socket on which it reports.
//!
//! How it works: each travels with one empty line, which means nothing in a report. A reader takes bytes and descriptors as they come.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Hands out one descriptor.
pub(crate) fn send(socket: impl AsFd, descriptor: impl AsFd) -> io::Result<()> {
    let one = [descriptor.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    if !message.push(SendAncillaryMessage::ScmRights(&one)) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    sendmsg(
        socket,
        &[IoSlice::new(b"\n")],
        &mut message,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}

/// Reads some bytes, and the descriptor that came with them if one did. No bytes mean the end.
pub(crate) fn receive(
    socket: impl AsFd,
    bytes: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = RecvAncillaryBuffer::new(&mut space);
    let read = recvmsg(
        socket,
        &mut [IoSliceMut::new(bytes)],
        &mut message,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    for part in message.drain() {
        if let RecvAncillaryMessage::ScmRights(found) = part {
            descriptors.extend(found);
        }
    }
    Ok(read.bytes)
}
