//! `[run]`, `[patch]` and `[context]`: the limits of a run and of a change, and the documents of each prompt.

use crate::declare::section;

section! {
    ["run"] RunSection {
        /// Answers of the model that are tried before the run fails.
        max_iterations: u64 = 4, lower;
        /// Answers that cost none of these because their form is at fault: cut off, no edit in them, lines to replace that are not there. Each
        /// costs a call; one more of them costs a try.
        max_malformed: u64 = 3;
        /// How often the model may ask for more files, by name or search, instead of proposing a change. Each costs a call and no try.
        max_file_requests: u64 = 2, lower;
        /// Answers that are sampled for each try, each judged and tested, until one is verified. Each costs a call.
        candidates: u64 = 1;
        /// Files and bytes of the repository that the model may see at first. Where its provider's context_window is set, the defaults follow from
        /// that, and what is set here only lowers them.
        max_files: u64 = 20, lower;
        max_total_bytes: u64 = 60_000, lower;
        /// How the model answers: whole-file, search-replace, definitions or unified-diff; empty: as the provider does best. Where whole files
        /// do not fit into max_tokens, definitions or search-replace are asked for instead. Any other form is read as well.
        edit_format: Text = "", one_of(&["whole-file", "search-replace", "definitions", "unified-diff"]);
    }
}

section! {
    ["patch"] PatchSection {
        /// Files a patch may touch, and lines it may add.
        max_files: u64 = 5, lower;
        max_added_lines: u64 = 400, lower;
    }
}

section! {
    ["context"] ContextSection {
        /// "ctcp": the three contract documents of a repository are required. Empty: required where ai_context/ exists.
        contract: Text = "", one_of(&["ctcp"]);
        /// Documents that every context pack begins with, on top of the contract's.
        mandatory: List = [];
    }
}
