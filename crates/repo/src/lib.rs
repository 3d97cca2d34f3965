//! git, snapshots, trees, and what a repository is built with.
