//! Gates, the verify report and the failure bundle.
