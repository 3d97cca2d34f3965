//! `[find]`: where a run may learn from.

use crate::declare::section;

section! {
    /// Where a run may learn from how to reach its goal. Crucible itself fetches nothing.
    ["find"] FindSection {
        /// "resolver_only": known workflows and earlier runs on this machine. "resolver_plus_web": pages, too, that a researcher
        /// fetched and laid into the run's artifacts/find_web.json.
        find_mode: FindScope = "resolver_only", user;
        /// Hosts that those pages may come from, each with the hosts below it, for example ["docs.example"].
        allow_domains: List = [], user;
        /// Searches that the researcher may make, and different pages that may be cited.
        max_queries: u64 = 5, lower;
        max_pages: u64 = 10, lower;
    }
}
