//! `[mcp]`: what clients of the Model Context Protocol may do.

use crate::declare::section;

section! {
    /// What coding agents may do that call Crucible as a tool (`crucible mcp`).
    ["mcp"] McpSection {
        /// Whether a client may land verified changes. Otherwise only `crucible run land` does.
        land: bool = false, user;
    }
}
