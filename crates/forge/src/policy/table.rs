//! What each module and built-in of Python can do, by class.
//!
//! An allow-list: a module without a row may not be imported, a member that its row does not list is what the row says of the others. So a
//! function that a later Python adds to `os` is refused until somebody has looked at it.

/// What a thing can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Power {
    /// Nothing that a class of side effects is about.
    None,
    /// Starts or ends processes.
    Process,
    /// Runs text as code, or loads code by a name that is computed.
    Code,
    /// Reaches things by their name, past what a reader sees.
    Reflection,
    /// Changes or looks into the running interpreter.
    Interpreter,
    /// Goes on after the call has ended, or runs at a moment of its own.
    Outlives,
    /// Makes objects, and with them calls, from bytes.
    Pickle,
    /// Calls into machine code.
    Native,
    /// Connects.
    Network,
    /// Changes files.
    Write,
    /// Reads secrets, or the environment that holds them.
    Secret,
    /// Opens a file; which argument is the mode.
    Open(usize),
    /// Takes the name of an attribute; which argument it is.
    ByName(usize),
    /// May end before its block does, and only as `with …:`.
    Pool,
    /// May be called with one argument only: with three it makes a class.
    Type,
    /// A module without a row.
    Unknown,
}

/// One module.
struct Row {
    module: &'static str,
    /// Groups of members with their powers.
    members: &'static [(Power, &'static [&'static str])],
    /// What every other member can do.
    others: Power,
}

const fn plain(module: &'static str) -> Row {
    Row { module, members: &[], others: Power::None }
}

const fn all(module: &'static str, others: Power) -> Row {
    Row { module, members: &[], others }
}

static ROWS: &[Row] = &[
    plain("__future__"),
    plain("abc"),
    plain("array"),
    plain("base64"),
    plain("binascii"),
    plain("bisect"),
    plain("calendar"),
    plain("cmath"),
    plain("collections"),
    plain("collections.abc"),
    plain("colorsys"),
    plain("contextlib"),
    plain("contextvars"),
    plain("copy"),
    plain("csv"),
    plain("datetime"),
    plain("decimal"),
    plain("difflib"),
    plain("enum"),
    plain("errno"),
    plain("fnmatch"),
    plain("fractions"),
    plain("functools"),
    plain("glob"),
    plain("graphlib"),
    plain("hashlib"),
    plain("heapq"),
    plain("hmac"),
    plain("html"),
    plain("html.entities"),
    plain("html.parser"),
    plain("ipaddress"),
    plain("itertools"),
    plain("json"),
    plain("keyword"),
    plain("math"),
    plain("numbers"),
    plain("os.path"),
    plain("pprint"),
    plain("queue"),
    plain("random"),
    plain("re"),
    plain("secrets"),
    plain("shlex"),
    plain("stat"),
    plain("statistics"),
    plain("string"),
    plain("struct"),
    plain("textwrap"),
    plain("time"),
    plain("tomllib"),
    plain("typing_extensions"),
    plain("unicodedata"),
    plain("urllib.parse"),
    plain("uuid"),
    plain("warnings"),
    plain("zlib"),
    plain("zoneinfo"),
    Row {
        module: "ast",
        members: &[(Power::None, &["literal_eval", "parse", "walk", "dump"])],
        others: Power::Code,
    },
    Row {
        module: "asyncio",
        members: &[
            (
                Power::None,
                &[
                    "CancelledError",
                    "Event",
                    "Lock",
                    "Queue",
                    "Semaphore",
                    "TaskGroup",
                    "TimeoutError",
                    "as_completed",
                    "gather",
                    "run",
                    "sleep",
                    "timeout",
                    "wait",
                    "wait_for",
                ],
            ),
            (
                Power::Network,
                &["open_connection", "open_unix_connection", "start_server", "start_unix_server"],
            ),
            (Power::Outlives, &["create_task", "ensure_future", "to_thread"]),
        ],
        others: Power::Process,
    },
    Row {
        module: "concurrent.futures",
        members: &[
            (Power::Pool, &["ThreadPoolExecutor"]),
            (Power::None, &["Future", "TimeoutError", "CancelledError", "as_completed", "wait", "thread"]),
        ],
        others: Power::Process,
    },
    all("concurrent", Power::Process),
    Row { module: "dataclasses", members: &[(Power::Code, &["make_dataclass"])], others: Power::None },
    Row {
        module: "io",
        members: &[
            (Power::None, &["StringIO", "BytesIO", "IOBase", "TextIOBase", "UnsupportedOperation"]),
            (Power::Open(1), &["open"]),
        ],
        others: Power::Write,
    },
    Row {
        module: "logging",
        members: &[
            (
                Power::None,
                &[
                    "getLogger",
                    "Logger",
                    "LoggerAdapter",
                    "DEBUG",
                    "INFO",
                    "WARNING",
                    "ERROR",
                    "CRITICAL",
                    "debug",
                    "info",
                    "warning",
                    "error",
                    "exception",
                    "critical",
                    "NullHandler",
                    "Formatter",
                ],
            ),
            (Power::Code, &["config"]),
        ],
        others: Power::Write,
    },
    Row {
        module: "operator",
        members: &[(Power::ByName(0), &["attrgetter", "methodcaller"])],
        others: Power::None,
    },
    Row {
        module: "os",
        members: &[
            (
                Power::None,
                &[
                    "DirEntry",
                    "PathLike",
                    "R_OK",
                    "W_OK",
                    "X_OK",
                    "F_OK",
                    "access",
                    "altsep",
                    "cpu_count",
                    "curdir",
                    "devnull",
                    "error",
                    "extsep",
                    "fsdecode",
                    "fsencode",
                    "fspath",
                    "getcwd",
                    "linesep",
                    "listdir",
                    "lstat",
                    "name",
                    "pardir",
                    "pathsep",
                    "path",
                    "scandir",
                    "sep",
                    "stat",
                    "stat_result",
                    "walk",
                ],
            ),
            (Power::Secret, &["environ", "environb", "getenv", "getenvb"]),
            (
                Power::Write,
                &[
                    "chflags",
                    "chmod",
                    "chown",
                    "copy_file_range",
                    "fchmod",
                    "fchown",
                    "ftruncate",
                    "lchmod",
                    "lchown",
                    "link",
                    "makedirs",
                    "mkdir",
                    "mkfifo",
                    "mknod",
                    "open",
                    "pwrite",
                    "pwritev",
                    "remove",
                    "removedirs",
                    "removexattr",
                    "rename",
                    "renames",
                    "replace",
                    "rmdir",
                    "sendfile",
                    "setxattr",
                    "symlink",
                    "truncate",
                    "unlink",
                    "utime",
                    "write",
                    "writev",
                    "fdopen",
                ],
            ),
        ],
        others: Power::Process,
    },
    Row { module: "pathlib", members: &[], others: Power::None },
    Row {
        module: "shutil",
        members: &[(Power::None, &["disk_usage", "which", "get_terminal_size"])],
        others: Power::Write,
    },
    Row {
        module: "sys",
        members: &[(
            Power::None,
            &[
                "byteorder",
                "float_info",
                "int_info",
                "maxsize",
                "maxunicode",
                "platform",
                "stderr",
                "stdout",
                "version",
                "version_info",
                "getsizeof",
                "getdefaultencoding",
            ],
        )],
        others: Power::Interpreter,
    },
    Row {
        module: "threading",
        members: &[(Power::None, &["Condition", "Event", "Lock", "RLock", "Semaphore", "BoundedSemaphore"])],
        others: Power::Outlives,
    },
    Row {
        module: "types",
        members: &[(
            Power::None,
            &[
                "MappingProxyType",
                "SimpleNamespace",
                "NoneType",
                "GenericAlias",
                "UnionType",
                "TracebackType",
            ],
        )],
        others: Power::Code,
    },
    Row {
        module: "typing",
        members: &[(Power::Code, &["get_type_hints", "ForwardRef", "evaluate_forward_ref"])],
        others: Power::None,
    },
    Row { module: "weakref", members: &[(Power::Outlives, &["finalize"])], others: Power::None },
    Row {
        module: "gzip",
        members: &[(Power::Open(1), &["open"]), (Power::None, &["compress", "decompress", "BadGzipFile"])],
        others: Power::Write,
    },
    Row {
        module: "bz2",
        members: &[(Power::Open(1), &["open"]), (Power::None, &["compress", "decompress"])],
        others: Power::Write,
    },
    Row {
        module: "lzma",
        members: &[(Power::Open(1), &["open"]), (Power::None, &["compress", "decompress", "LZMAError"])],
        others: Power::Write,
    },
    all("dbm", Power::Write),
    all("fileinput", Power::Write),
    all("mmap", Power::Write),
    all("sqlite3", Power::Write),
    all("tarfile", Power::Write),
    all("tempfile", Power::Write),
    all("zipfile", Power::Write),
    Row { module: "http", members: &[(Power::None, &["HTTPStatus", "HTTPMethod"])], others: Power::Network },
    all("aiohttp", Power::Network),
    all("ftplib", Power::Network),
    all("httpx", Power::Network),
    all("imaplib", Power::Network),
    all("nntplib", Power::Network),
    all("poplib", Power::Network),
    all("requests", Power::Network),
    all("select", Power::Network),
    all("selectors", Power::Network),
    all("smtplib", Power::Network),
    all("socket", Power::Network),
    all("_socket", Power::Network),
    all("socketserver", Power::Network),
    all("ssl", Power::Network),
    all("telnetlib", Power::Network),
    all("urllib", Power::Network),
    all("urllib3", Power::Network),
    all("websocket", Power::Network),
    all("websockets", Power::Network),
    all("xmlrpc", Power::Network),
    all("dotenv", Power::Secret),
    all("getpass", Power::Secret),
    all("keyring", Power::Secret),
    all("netrc", Power::Secret),
    all("_posixsubprocess", Power::Process),
    all("_winapi", Power::Process),
    all("antigravity", Power::Process),
    all("multiprocessing", Power::Process),
    all("nt", Power::Process),
    all("pexpect", Power::Process),
    all("platform", Power::Process),
    all("plumbum", Power::Process),
    all("popen2", Power::Process),
    all("posix", Power::Process),
    all("posixpath", Power::Reflection),
    all("ntpath", Power::Reflection),
    all("psutil", Power::Process),
    all("pty", Power::Process),
    all("sh", Power::Process),
    all("subprocess", Power::Process),
    all("webbrowser", Power::Process),
    all("builtins", Power::Code),
    all("__builtin__", Power::Code),
    all("__main__", Power::Reflection),
    all("_frozen_importlib", Power::Code),
    all("_imp", Power::Code),
    all("bdb", Power::Code),
    all("code", Power::Code),
    all("codeop", Power::Code),
    all("doctest", Power::Code),
    all("imp", Power::Code),
    all("importlib", Power::Code),
    all("pdb", Power::Code),
    all("pkgutil", Power::Code),
    all("pydoc", Power::Code),
    all("py_compile", Power::Code),
    all("compileall", Power::Code),
    all("runpy", Power::Code),
    all("site", Power::Code),
    all("timeit", Power::Code),
    all("trace", Power::Code),
    all("zipimport", Power::Code),
    all("codecs", Power::Write),
    all("faulthandler", Power::Interpreter),
    all("gc", Power::Interpreter),
    all("inspect", Power::Interpreter),
    all("resource", Power::Interpreter),
    all("sysconfig", Power::Interpreter),
    all("traceback", Power::Interpreter),
    all("tracemalloc", Power::Interpreter),
    all("_thread", Power::Outlives),
    all("atexit", Power::Outlives),
    all("sched", Power::Outlives),
    all("signal", Power::Outlives),
    all("cloudpickle", Power::Pickle),
    all("copyreg", Power::Pickle),
    all("dill", Power::Pickle),
    all("joblib", Power::Pickle),
    all("jsonpickle", Power::Pickle),
    all("marshal", Power::Pickle),
    all("pickle", Power::Pickle),
    all("_pickle", Power::Pickle),
    all("shelve", Power::Pickle),
    all("_ctypes", Power::Native),
    all("cffi", Power::Native),
    all("ctypes", Power::Native),
];

/// Built-ins that can do something; `open` in its own way.
static BUILTINS: &[(&str, Power)] = &[
    ("__build_class__", Power::Code),
    ("__builtins__", Power::Reflection),
    ("__import__", Power::Code),
    ("breakpoint", Power::Code),
    ("compile", Power::Code),
    ("delattr", Power::ByName(1)),
    ("eval", Power::Code),
    ("exec", Power::Code),
    ("execfile", Power::Code),
    ("exit", Power::Process),
    ("getattr", Power::ByName(1)),
    ("globals", Power::Reflection),
    ("hasattr", Power::ByName(1)),
    ("help", Power::Code),
    ("locals", Power::Reflection),
    ("open", Power::Open(1)),
    ("quit", Power::Process),
    ("reload", Power::Code),
    ("setattr", Power::ByName(1)),
    ("type", Power::Type),
    ("vars", Power::Reflection),
];

/// Modules that are reached by an import of their own or not at all, never as a member of another module.
static HIDDEN: [&str; 24] = [
    "builtins",
    "codecs",
    "copyreg",
    "ctypes",
    "functools",
    "gc",
    "importlib",
    "inspect",
    "io",
    "linecache",
    "marshal",
    "os",
    "pathlib",
    "pickle",
    "posix",
    "runpy",
    "shutil",
    "signal",
    "socket",
    "subprocess",
    "sys",
    "tempfile",
    "threading",
    "types",
];

/// Whether a built-in of this name can do something.
pub(crate) fn is_sensitive_builtin(name: &str) -> bool {
    BUILTINS.iter().any(|(known, _)| *known == name)
}

/// Whether a path is a module of the table.
pub(crate) fn is_module(path: &str) -> bool {
    row(path).is_some()
}

/// The powers of a whole module; `None` where its members have their own.
pub(crate) fn module_power(module: &str) -> Power {
    match deepest(module) {
        Some((row, "")) if row.members.is_empty() => row.others,
        Some((_, "")) => Power::None,
        Some((row, rest)) => member_power(row, rest),
        None => Power::Unknown,
    }
}

/// What a dotted path can do.
pub(crate) fn power(path: &str) -> Power {
    if let Some(name) = path.strip_prefix("builtins.") {
        let first = name.split('.').next().unwrap_or_default();
        let found = BUILTINS.iter().find(|(known, _)| *known == first);
        return match found {
            Some((_, Power::Type)) if name != "type" => Power::None,
            Some((_, power)) => *power,
            None => Power::None,
        };
    }
    match deepest(path) {
        Some((_, "")) => Power::None,
        Some((row, rest)) => member_power(row, rest),
        None if path.split('.').skip(1).any(hides) => Power::Reflection,
        None => Power::None,
    }
}

fn member_power(row: &Row, rest: &str) -> Power {
    let first = rest.split('.').next().unwrap_or_default();
    let listed = row.members.iter().find(|(_, names)| names.contains(&first)).map(|(power, _)| *power);
    let found = listed.unwrap_or(row.others);
    let covers =
        matches!(found, Power::Process | Power::Code | Power::Interpreter | Power::Outlives | Power::Native);
    if !covers && rest.split('.').any(hides) { Power::Reflection } else { found }
}

/// Whether a member of a module is another module, or nobody's business.
fn hides(word: &str) -> bool {
    let dunder = word.len() > 4 && word.starts_with("__") && word.ends_with("__");
    HIDDEN.contains(&word) || (word.starts_with('_') && !dunder)
}

fn row(module: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.module == module)
}

/// The row of the longest module that a path begins with, and what follows it.
fn deepest(path: &str) -> Option<(&'static Row, &str)> {
    let ends = path.match_indices('.').map(|(at, _)| at).chain([path.len()]);
    let mut found = None;
    for end in ends {
        let module = path.get(..end).unwrap_or_default();
        if let Some(row) = row(module) {
            found = Some((row, path.get(end + 1..).unwrap_or_default()));
        }
    }
    found
}
