//! `[crawl]`: who plans a build, and where repositories are cloned from.

use crate::declare::section;
use crate::sections::providers::PROVIDERS;

section! {
    ["crawl"] CrawlSection {
        /// Who drafts, revises and settles a build plan, and who criticises it: providers as above. Empty: llm.provider.
        gpt_provider: Text = "", one_of(PROVIDERS);
        claude_provider: Text = "", one_of(PROVIDERS);
        /// Where repositories are cloned from, an https or file address; owner/repo.git is put behind it. Left at its default it follows
        /// GH_HOST; an https address of another host than the one that gh asks is refused. (user)
        clone_base: Text = "https://github.com", user;
    }
}
