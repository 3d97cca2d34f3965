//! `[find]`: where a run may learn from.

use crate::declare::section;

section! {
    /// Where a run may learn how to reach its goal. Crucible itself fetches nothing.
    ["find"] FindSection {
        /// "resolver_only": known workflows and earlier runs on this machine. "resolver_plus_web": also pages that a researcher
        /// fetched and wrote to `artifacts/find_web.json` of the run.
        find_mode: FindScope = "resolver_only", user;
        /// Hosts that those pages may come from, each with the hosts below it, such as ["docs.example"].
        allow_domains: List = [], user;
        /// Searches that the researcher may make.
        max_queries: u64 = 5, lower;
        /// Different pages that may be cited.
        max_pages: u64 = 10, lower;
    }
}
