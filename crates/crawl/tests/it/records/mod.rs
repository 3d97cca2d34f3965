//! Sessions, exports and caches, with real databases, real directories, the real `gh` and real processes.

#[cfg(test)]
mod common;
#[cfg(test)]
mod export;
#[cfg(test)]
mod search;
#[cfg(test)]
mod session;
