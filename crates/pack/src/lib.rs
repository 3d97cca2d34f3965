//! Deterministic, verbatim context packs.
