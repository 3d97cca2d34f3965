//! The safety rules, judged from outside: the golden file, the seed's named tests, attacks of every kind, and real shells.

mod differential;
mod frame;
mod golden;
mod links;
mod properties;
mod support;
