//! The spec crate from outside: packets, sources and the store, with real files, a real ledger and the
//! real `gh`.

mod outline;
mod packet;
mod source;
mod store;
