//! The debate over real connections, with servers that simulate the models.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper of a test fails the test that calls it"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "tests say where a client program may put its files"
)]

mod hints;
mod record;
mod replies;
mod rounds;
mod support;
mod wire;
