//! The ledger as its callers and its enemies meet it: one binary, real databases, real processes.

#[cfg(test)]
mod chain;
#[cfg(test)]
mod common;
#[cfg(test)]
mod crawl;
#[cfg(test)]
mod forge;
#[cfg(test)]
mod forge_trust;
#[cfg(test)]
mod guarded;
#[cfg(test)]
mod opening;
#[cfg(test)]
mod rows;
#[cfg(test)]
mod spec_receipts;
#[cfg(test)]
mod tamper;
