//! The safety rules from outside: the golden file, the tests that the specification names, attacks
//! of every kind, and real shells.

#[cfg(test)]
mod differential;
#[cfg(test)]
mod ecosystems;
#[cfg(test)]
mod frame;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod links;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod support;
