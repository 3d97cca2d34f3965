//! Secret rules, scanning and redaction.
