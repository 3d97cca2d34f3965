//! The repository as users, models and enemies leave it: one binary, real git, real files.

#[cfg(test)]
mod agree;
#[cfg(test)]
mod apply;
#[cfg(test)]
mod attributes;
#[cfg(test)]
mod clone;
#[cfg(test)]
mod commit_reader;
#[cfg(test)]
mod common;
#[cfg(test)]
mod gh;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod ignored;
#[cfg(test)]
mod kept_index;
#[cfg(test)]
mod land;
#[cfg(test)]
mod open;
#[cfg(test)]
mod private_git;
#[cfg(test)]
mod reads;
#[cfg(test)]
mod reads_hostile;
#[cfg(test)]
mod snapshot;
#[cfg(test)]
mod status;
#[cfg(test)]
mod tree;
#[cfg(test)]
mod tree_copy;
