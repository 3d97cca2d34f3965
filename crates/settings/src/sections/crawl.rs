//! `[crawl]`: who plans a build, and where repositories are cloned from.

use crate::declare::section;
use crate::sections::providers::PROVIDERS;

section! {
    /// `crucible crawl`: who plans a build, and where repositories are cloned from.
    ["crawl"] CrawlSection {
        /// The provider that drafts, revises and settles a build plan. Empty: `llm.provider`.
        gpt_provider: Text = "", one_of(PROVIDERS);
        /// The provider that criticises a build plan. Empty: `llm.provider`.
        claude_provider: Text = "", one_of(PROVIDERS);
        /// The https or file address that `owner/repo.git` is appended to. The default follows GH_HOST. An https address of
        /// another host than the one that gh asks is refused.
        clone_base: Text = "https://github.com", user;
    }
}
