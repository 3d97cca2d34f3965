//! Words that mean something wherever they stand: attributes past the surface of an object, hosts and places in literal texts.

use crucible_model::RepoPath;

/// Attributes with two underscores that show nothing but a name or a text, or that a class defines for itself.
static SURFACE: [&str; 29] = [
    "__name__",
    "__qualname__",
    "__doc__",
    "__init__",
    "__post_init__",
    "__eq__",
    "__ne__",
    "__lt__",
    "__le__",
    "__gt__",
    "__ge__",
    "__hash__",
    "__str__",
    "__repr__",
    "__len__",
    "__iter__",
    "__next__",
    "__contains__",
    "__enter__",
    "__exit__",
    "__aenter__",
    "__aexit__",
    "__add__",
    "__bool__",
    "__version__",
    "__all__",
    "__future__",
    "__file__",
    "__notes__",
];

/// Attributes without them that lead from a generator, a traceback or a function to its frame and names, and what starts processes from a
/// running event loop.
static DEEP: [&str; 26] = [
    "gi_frame",
    "gi_code",
    "cr_frame",
    "cr_code",
    "ag_frame",
    "ag_code",
    "tb_frame",
    "tb_next",
    "f_back",
    "f_globals",
    "f_locals",
    "f_builtins",
    "f_code",
    "func_globals",
    "func_code",
    "co_code",
    "with_traceback",
    "mro",
    "subprocess_exec",
    "subprocess_shell",
    "run_in_executor",
    "create_connection",
    "load_module",
    "exec_module",
    "find_spec",
    "extractall",
];

/// Methods that change files, of objects that stand for paths.
static WRITERS: [&str; 12] = [
    "chmod",
    "hardlink_to",
    "lchmod",
    "link_to",
    "mkdir",
    "rename",
    "rmdir",
    "symlink_to",
    "touch",
    "unlink",
    "write_bytes",
    "write_text",
];

/// Places where secrets lie, as parts of a path.
static SECRET_PARTS: [&str; 17] = [
    ".ssh",
    ".aws",
    ".gnupg",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pypirc",
    ".env",
    ".docker",
    ".kube",
    ".git-credentials",
    "id_rsa",
    "id_ed25519",
    "shadow",
    "environ",
    ".azure",
    ".pgpass",
];

/// Whether an attribute leads past what an object shows.
pub(super) fn is_deep(word: &str) -> bool {
    let dunder = word.len() > 4 && word.starts_with("__") && word.ends_with("__");
    (dunder && !SURFACE.contains(&word)) || DEEP.contains(&word) || !word.is_ascii()
}

/// Whether a method changes files where its object is a path.
pub(super) fn is_writer(word: &str) -> bool {
    WRITERS.contains(&word)
}

/// The place of secrets that a literal text names.
pub(super) fn secret_place(text: &str) -> Option<&'static str> {
    if text.len() > 4096 || text.contains(char::is_whitespace) {
        return None;
    }
    let mut parts = text.split(['/', '\\']);
    let absolute = text.starts_with('/');
    parts.find_map(|part| {
        let found = SECRET_PARTS.iter().find(|known| part.eq_ignore_ascii_case(known)).copied();
        // These two are words of their own, too.
        found.filter(|found| absolute || !matches!(*found, "shadow" | "environ"))
    })
}

/// The hosts of the addresses in a literal text, in small letters.
pub(super) fn hosts(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("://") {
        let scheme = text.get(..at).unwrap_or_default();
        let scheme = scheme
            .rsplit(|c: char| !c.is_ascii_alphanumeric())
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        if !matches!(scheme.as_str(), "http" | "https" | "ws" | "wss" | "ftp" | "ftps") {
            continue;
        }
        let rest = text.get(at + 3..).unwrap_or_default();
        let end = rest.find(|c: char| matches!(c, '/' | '?' | '#' | '\\' | '"' | '\'') || c.is_whitespace());
        let authority = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        let host = host.split(':').next().unwrap_or_default().trim_end_matches('.');
        if !host.is_empty() {
            found.push(host.to_ascii_lowercase());
        }
    }
    found
}

/// The path inside the project that a literal text names; nothing where it leads out.
pub(super) fn inside(text: &str) -> Option<RepoPath> {
    text.strip_prefix("./").unwrap_or(text).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_what_would_be_connected_to() {
        assert_eq!(hosts("https://good.example.com@evil.example.net:8443/x"), ["evil.example.net"]);
        assert_eq!(
            hosts("see HTTP://A.example.com. and wss://b.example.com?q"),
            ["a.example.com", "b.example.com"]
        );
        assert!(hosts("urn:x file:///etc/passwd a://b").is_empty());
    }

    #[test]
    fn a_place_of_secrets_is_a_part_of_a_path() {
        for text in
            ["/root/.ssh/id_rsa", ".env", "C:\\x\\.AWS\\credentials", "/proc/self/environ", "/etc/shadow"]
        {
            assert!(secret_place(text).is_some(), "{text}");
        }
        for text in ["environment", "shadow", "set .env first", "a/b.env.md", "environ"] {
            assert!(secret_place(text).is_none(), "{text}");
        }
    }
}
