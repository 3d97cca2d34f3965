//! SQLite, hash-chained events, content-addressed artifacts.
