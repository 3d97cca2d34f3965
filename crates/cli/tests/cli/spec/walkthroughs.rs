//! The walkthroughs of `docs/walkthroughs/`, followed to their end.
