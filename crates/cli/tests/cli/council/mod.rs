//! `crucible ask` and `crucible chat` as a user meets them: the real binary, and a server on loopback that speaks for every part
//! of a council.

mod ask;
mod chat;
mod ends;
mod input;
mod record;
mod settings;
mod standstill;
pub(crate) mod support;
