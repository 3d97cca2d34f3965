//! The only place that starts a process: limits, timeouts, isolation.
