//! A spec's directory in normal and hostile use: real files, a real ledger, real processes that are
//! killed.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "the tests plant what others might, and start and kill themselves"
)]

mod common;
mod crash;
mod forged;
mod hostile;
mod ledger;
mod locking;
mod promoting;
mod state;
