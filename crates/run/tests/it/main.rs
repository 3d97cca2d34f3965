//! A run under the worst circumstances: killed anywhere, its files torn or edited, started twice, on a full disk.
//!
//! One binary. Tests that need a process of their own to kill start this binary again with the exact name of the one
//! test that acts as that process (`worker`).

#[cfg(test)]
mod cast;
#[cfg(test)]
mod common;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod kill;
#[cfg(test)]
mod kill_roles;
#[cfg(test)]
mod meanwhile;
#[cfg(test)]
mod power;
#[cfg(test)]
mod prompts;
#[cfg(test)]
mod together;
#[cfg(test)]
mod torn;
#[cfg(test)]
mod worker;
