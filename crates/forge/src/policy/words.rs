//! Words that mean something wherever they stand: attributes past the surface of an object, hosts and places in literal texts.

use crucible_model::RepoPath;

/// Attributes with two underscores that show nothing but a name or a text, or that a class defines for itself.
static SURFACE: [&str; 32] = [
    "__author__",
    "__debug__",
    "__slots__",
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

/// Attributes without them that lead from a generator, a traceback or a function to its frame and names, and from what runs coroutines to
/// processes and machine code.
static DEEP: [&str; 62] = [
    "gi_frame",
    "gi_code",
    "gi_yieldfrom",
    "cr_frame",
    "cr_code",
    "cr_await",
    "cr_origin",
    "ag_frame",
    "ag_code",
    "ag_await",
    "tb_frame",
    "tb_next",
    "tb_lasti",
    "f_back",
    "f_globals",
    "f_locals",
    "f_builtins",
    "f_code",
    "f_trace",
    "f_generator",
    "func_globals",
    "func_code",
    "func_closure",
    "func_defaults",
    "co_code",
    "co_consts",
    "co_names",
    "co_varnames",
    "co_freevars",
    "with_traceback",
    "mro",
    "subprocess_exec",
    "subprocess_shell",
    "run_in_executor",
    "set_default_executor",
    "get_loop",
    "get_event_loop",
    "get_running_loop",
    "call_soon",
    "call_later",
    "call_at",
    "call_soon_threadsafe",
    "call_exception_handler",
    "set_task_factory",
    "set_exception_handler",
    "add_signal_handler",
    "add_reader",
    "add_writer",
    "connect_read_pipe",
    "connect_write_pipe",
    "load_module",
    "exec_module",
    "find_spec",
    "find_module",
    "get_data",
    "get_source",
    "extractall",
    "enable_load_extension",
    "load_extension",
    "keylog_filename",
    "register_instance",
    "set_name_resolver",
];

/// Names of modules that lead to everything else. Where an object of the standard library has one of these attributes, it is that module.
static MODULES: [&str; 26] = [
    "asyncio",
    "builtins",
    "codecs",
    "ctypes",
    "gc",
    "genericpath",
    "importlib",
    "inspect",
    "linecache",
    "marshal",
    "multiprocessing",
    "nt",
    "ntpath",
    "os",
    "pickle",
    "pkgutil",
    "posix",
    "posixpath",
    "pty",
    "runpy",
    "shutil",
    "socketserver",
    "subprocess",
    "sys",
    "sysconfig",
    "threading",
];

/// Methods that initialize an object again: an open file becomes another one.
static MAKERS: [&str; 2] = ["__init__", "__post_init__"];

/// Methods of a running loop that connect.
static CONNECTS: [&str; 9] = [
    "create_connection",
    "create_server",
    "create_unix_connection",
    "create_unix_server",
    "create_datagram_endpoint",
    "sock_connect",
    "sock_accept",
    "start_tls",
    "open_connection",
];

/// What a named tuple says of itself, besides its fields.
static OF_TUPLES: [&str; 5] = ["_asdict", "_field_defaults", "_fields", "_make", "_replace"];

/// Attributes by which objects of the standard library keep modules, functions and loops; a skill calls nothing of its own like them.
static KEPT: [&str; 14] = [
    "_module",
    "_modules",
    "_os",
    "_sys",
    "_io",
    "_builtins",
    "_loop",
    "_get_loop",
    "_globals",
    "_locals",
    "_executor",
    "_rmtree",
    "_unlink",
    "_sock",
];

/// Methods that change files, of objects that stand for paths.
static WRITERS: [&str; 15] = [
    "chmod",
    "copy_into",
    "move",
    "move_into",
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

/// Whether a word is meant for the object itself.
pub(super) fn is_private(word: &str) -> bool {
    word.starts_with('_')
        && !(word.len() > 4 && word.starts_with("__") && word.ends_with("__"))
        && !OF_TUPLES.contains(&word)
}

/// Whether objects of the standard library keep something powerful under this name.
pub(super) fn leads_to_effect(word: &str) -> bool {
    KEPT.contains(&word)
}

/// Whether a word is the name of a module that leads to everything else.
pub(super) fn is_module(word: &str) -> bool {
    MODULES.contains(&word)
}

/// Whether a method initializes its object again.
pub(super) fn reinitializes(word: &str) -> bool {
    MAKERS.contains(&word)
}

/// Whether a method connects.
pub(super) fn connects(word: &str) -> bool {
    CONNECTS.contains(&word)
}

/// Whether a text to be filled in reaches for attributes that are not shown.
pub(super) fn format_reaches(text: &str) -> bool {
    let mut fields = text.split('{').skip(1);
    fields.any(|field| {
        let field = field.split(['}', ':', '!']).next().unwrap_or_default();
        field
            .split(['.', '[', ']'])
            .skip(1)
            .any(|word| is_deep(word) || is_private(word))
    })
}

/// Whether the address of a database, as it is written, ends in words by which it is only read.
pub(super) fn reads_database(written: &str) -> bool {
    const HARMLESS: [&str; 4] = ["cache=private", "immutable=1", "mode=ro", "nolock=1"];
    let Some((place, words)) = written
        .trim_end_matches(['"', '\'', ')', ' '])
        .rsplit_once('?')
    else {
        return false;
    };
    // SQLite takes the words from the first `?` to the first `#`.
    if place.contains(['?', '#']) {
        return false;
    }
    let is_read = words
        .split('&')
        .any(|word| matches!(word, "mode=ro" | "immutable=1"));
    is_read && words.split('&').all(|word| HARMLESS.contains(&word))
}

/// Whether a text is SQL that opens another database than the one it is given to: `ATTACH`, or `VACUUM INTO`.
pub(super) fn opens_database(text: &str) -> bool {
    let is_opening = |statement: &str| {
        let first: String = without_comments(statement)
            .chars()
            .skip_while(|letter| !letter.is_alphabetic())
            .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
            .collect();
        ["attach", "vacuum"]
            .iter()
            .any(|word| first.eq_ignore_ascii_case(word))
    };
    text.split(';').any(is_opening)
}

/// The rest of a statement behind the comments that it begins with.
fn without_comments(statement: &str) -> &str {
    let mut rest = statement;
    loop {
        rest = rest.trim_start_matches(|letter: char| {
            !letter.is_alphabetic() && !matches!(letter, '-' | '/')
        });
        let after = match rest.get(..2) {
            Some("--") => rest.split_once('\n').map_or("", |(_, after)| after),
            Some("/*") => rest.split_once("*/").map_or("", |(_, after)| after),
            _ => return rest,
        };
        rest = after;
    }
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
        let found = SECRET_PARTS
            .iter()
            .find(|known| part.eq_ignore_ascii_case(known))
            .copied();
        // These two are words of their own, too.
        found.filter(|found| absolute || !matches!(*found, "shadow" | "environ"))
    })
}

/// The hosts of the addresses in a literal text, in small letters. Where readers of addresses differ, all that they could see.
pub(super) fn hosts(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    // Clients drop these; in prose they end an address.
    let squeezed = !text.contains(' ') && text.contains(['\t', '\r', '\n']);
    let text = if squeezed {
        text.replace(['\t', '\r', '\n'], "")
    } else {
        text.to_owned()
    };
    for (at, _) in text.match_indices("://") {
        let scheme = text.get(..at).unwrap_or_default();
        let scheme = scheme
            .rsplit(|c: char| !c.is_ascii_alphanumeric())
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        if !matches!(
            scheme.as_str(),
            "http" | "https" | "ws" | "wss" | "ftp" | "ftps"
        ) {
            continue;
        }
        let rest = text.get(at + 3..).unwrap_or_default();
        let until = |ends: &[char]| {
            let end = rest.find(|c: char| ends.contains(&c) || c.is_whitespace());
            rest.get(..end.unwrap_or(rest.len())).unwrap_or_default()
        };
        let narrow = until(&['/', '?', '#', '\\', '"', '\'']);
        let wide = until(&['/', '?', '#', '"', '\'']);
        for authority in [narrow, wide] {
            let host = authority.rsplit('@').next().unwrap_or_default();
            let host = host
                .split(':')
                .next()
                .unwrap_or_default()
                .trim_end_matches('.')
                .to_ascii_lowercase();
            if !host.is_empty() && !found.contains(&host) {
                found.push(host);
            }
        }
    }
    found
}

/// Whether a text on its own looks like the name of a host, or its address.
pub(super) fn looks_like_host(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':');
    text.len() < 254 && (text == "localhost" || (text.contains('.') && text.chars().all(plain)))
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
        assert_eq!(
            hosts("https://good.example.com@evil.example.net:8443/x"),
            ["evil.example.net"]
        );
        assert_eq!(
            hosts("see HTTP://A.example.com. and wss://b.example.com?q"),
            ["a.example.com", "b.example.com"]
        );
        assert!(hosts("urn:x file:///etc/passwd a://b").is_empty());
    }

    #[test]
    fn secret_place_matches_part_of_a_path() {
        for text in [
            "/root/.ssh/id_rsa",
            ".env",
            "C:\\x\\.AWS\\credentials",
            "/proc/self/environ",
            "/etc/shadow",
        ] {
            assert!(secret_place(text).is_some(), "{text}");
        }
        for text in [
            "environment",
            "shadow",
            "set .env first",
            "a/b.env.md",
            "environ",
        ] {
            assert!(secret_place(text).is_none(), "{text}");
        }
    }
}
