//! Unified diffs, edits and the patch policy.
