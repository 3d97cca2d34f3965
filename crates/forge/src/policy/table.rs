//! What each module and built-in of Python can do, by class.
//!
//! An allow-list: a module without a row may not be imported, a member that its row does not list is what the row says
//! of the others. So a
//! function that a later Python adds to `os` is refused until a person has reviewed it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// What a thing can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
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
    /// Opens a database, for reading where its address says so.
    Database,
    /// May stand in an annotation, and nowhere else: called, it opens what it is given.
    Annotation,
    /// Takes the name of an attribute; which argument it is.
    ByName(usize),
    /// May end before its block does, and only as `with …:`.
    Pool,
    /// May be called with one argument only: with three it makes a class.
    Type,
    /// May stand as a decorator, and nowhere else: it writes code from the names of what it is given.
    Decorator,
    /// May stand as the innermost decorator of a function, with one argument, and nowhere else: on any other object it
    /// sets attributes.
    Wrapper,
    /// May stand as the base of a class, or be called with so many arguments by position and with nothing else.
    Arguments(usize),
    /// A module without a row.
    Unknown,
}

/// One module.
struct Row {
    module: &'static str,
    /// Groups of members with their powers.
    members: &'static [(Effect, &'static [&'static str])],
    /// What every other member can do.
    others: Effect,
}

const fn plain(module: &'static str) -> Row {
    Row {
        module,
        members: &[],
        others: Effect::None,
    }
}

const fn all(module: &'static str, others: Effect) -> Row {
    Row {
        module,
        members: &[],
        others,
    }
}

static ROWS: &[Row] = &[
    plain("__future__"),
    Row {
        module: "abc",
        members: &[(Effect::Code, &["ABCMeta", "update_abstractmethods"])],
        others: Effect::None,
    },
    plain("array"),
    plain("base64"),
    plain("binascii"),
    plain("bisect"),
    Row {
        module: "calendar",
        members: &[(
            Effect::Reflection,
            &["different_locale", "format", "repeat"],
        )],
        others: Effect::None,
    },
    plain("cmath"),
    plain("collections"),
    plain("collections.abc"),
    plain("colorsys"),
    Row {
        module: "contextlib",
        members: &[(Effect::Interpreter, &["chdir"])],
        others: Effect::None,
    },
    plain("contextvars"),
    plain("copy"),
    plain("csv"),
    plain("datetime"),
    plain("decimal"),
    plain("difflib"),
    Row {
        module: "enum",
        members: &[
            // Called with more, they make a class of any other.
            (
                Effect::Arguments(2),
                &["Enum", "Flag", "IntEnum", "IntFlag", "ReprEnum", "StrEnum"],
            ),
            (Effect::Code, &["EnumMeta", "EnumType", "EnumDict"]),
            (
                Effect::Interpreter,
                &[
                    "global_enum",
                    "global_enum_repr",
                    "global_flag_repr",
                    "global_str",
                    "pickle_by_enum_name",
                    "pickle_by_global_name",
                ],
            ),
        ],
        others: Effect::None,
    },
    plain("errno"),
    plain("fnmatch"),
    plain("fractions"),
    Row {
        module: "functools",
        members: &[
            (Effect::Code, &["singledispatch", "singledispatchmethod"]),
            (
                Effect::Reflection,
                &[
                    "partialmethod",
                    "update_wrapper",
                    "WRAPPER_ASSIGNMENTS",
                    "WRAPPER_UPDATES",
                ],
            ),
            (Effect::Wrapper, &["wraps"]),
        ],
        others: Effect::None,
    },
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
    Row {
        module: "os.path",
        members: &[(Effect::Secret, &["expandvars"])],
        others: Effect::None,
    },
    plain("pprint"),
    plain("queue"),
    plain("random"),
    Row {
        module: "re",
        members: &[(Effect::None, &["RegexFlag"])],
        others: Effect::None,
    },
    plain("secrets"),
    plain("shlex"),
    plain("stat"),
    plain("statistics"),
    Row {
        module: "string",
        members: &[(Effect::Reflection, &["Formatter"])],
        others: Effect::None,
    },
    plain("struct"),
    plain("textwrap"),
    Row {
        module: "time",
        members: &[(
            Effect::Interpreter,
            &["clock_settime", "clock_settime_ns", "tzset"],
        )],
        others: Effect::None,
    },
    plain("tomllib"),
    Row {
        module: "typing_extensions",
        members: &[(
            Effect::Code,
            &[
                "get_args",
                "get_type_hints",
                "ForwardRef",
                "evaluate_forward_ref",
                "get_annotations",
            ],
        )],
        others: Effect::None,
    },
    plain("unicodedata"),
    plain("urllib.parse"),
    all("xml.etree", Effect::Interpreter),
    // It reads what it is given: no entity of another file, and no address.
    Row {
        module: "xml.etree.ElementTree",
        members: &[(
            Effect::None,
            &[
                "Comment",
                "Element",
                "ElementTree",
                "ParseError",
                "ProcessingInstruction",
                "QName",
                "SubElement",
                "TreeBuilder",
                "XML",
                "XMLID",
                "XMLParser",
                "XMLPullParser",
                "canonicalize",
                "dump",
                "fromstring",
                "fromstringlist",
                "indent",
                "iselement",
                "iterparse",
                "parse",
                "tostring",
                "tostringlist",
            ],
        )],
        others: Effect::Interpreter,
    },
    Row {
        module: "uuid",
        members: &[(Effect::Process, &["getnode", "uuid1", "uuid6"])],
        others: Effect::None,
    },
    Row {
        module: "warnings",
        members: &[(Effect::Interpreter, &["showwarning", "warn_explicit"])],
        others: Effect::None,
    },
    plain("zlib"),
    plain("zoneinfo"),
    Row {
        module: "ast",
        members: &[(Effect::None, &["literal_eval", "parse", "walk", "dump"])],
        others: Effect::Code,
    },
    Row {
        module: "asyncio",
        members: &[
            (
                Effect::None,
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
                Effect::Network,
                &[
                    "open_connection",
                    "open_unix_connection",
                    "start_server",
                    "start_unix_server",
                ],
            ),
            (
                Effect::Outlives,
                &["create_task", "ensure_future", "to_thread"],
            ),
        ],
        others: Effect::Process,
    },
    Row {
        module: "concurrent.futures",
        members: &[
            (Effect::Pool, &["ThreadPoolExecutor"]),
            (
                Effect::None,
                &[
                    "Future",
                    "TimeoutError",
                    "CancelledError",
                    "as_completed",
                    "wait",
                ],
            ),
        ],
        others: Effect::Process,
    },
    all("concurrent", Effect::Process),
    Row {
        module: "dataclasses",
        members: &[
            (Effect::Code, &["make_dataclass"]),
            (Effect::Decorator, &["dataclass"]),
        ],
        others: Effect::None,
    },
    Row {
        module: "io",
        members: &[
            (
                Effect::None,
                &[
                    "StringIO",
                    "BytesIO",
                    "IOBase",
                    "TextIOBase",
                    "UnsupportedOperation",
                ],
            ),
            (Effect::Open(1), &["open"]),
        ],
        others: Effect::Write,
    },
    Row {
        module: "logging",
        members: &[
            (
                Effect::None,
                &[
                    "getLogger",
                    "Logger",
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
                ],
            ),
            (Effect::Code, &["config"]),
            (Effect::Write, &["FileHandler", "basicConfig"]),
        ],
        others: Effect::Outlives,
    },
    Row {
        module: "operator",
        members: &[(Effect::ByName(0), &["attrgetter", "methodcaller"])],
        others: Effect::None,
    },
    Row {
        module: "os",
        members: &[
            (
                Effect::None,
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
            (
                Effect::Secret,
                &["environ", "environb", "getenv", "getenvb"],
            ),
            (
                Effect::Write,
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
        others: Effect::Process,
    },
    Row {
        module: "pathlib",
        members: &[],
        others: Effect::None,
    },
    Row {
        module: "shutil",
        members: &[(Effect::None, &["disk_usage", "which", "get_terminal_size"])],
        others: Effect::Write,
    },
    Row {
        module: "sys",
        members: &[(
            Effect::None,
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
        others: Effect::Interpreter,
    },
    Row {
        module: "threading",
        members: &[(
            Effect::None,
            &[
                "Condition",
                "Event",
                "Lock",
                "RLock",
                "Semaphore",
                "BoundedSemaphore",
            ],
        )],
        others: Effect::Outlives,
    },
    Row {
        module: "types",
        members: &[(
            Effect::None,
            &[
                "MappingProxyType",
                "SimpleNamespace",
                "NoneType",
                "GenericAlias",
                "UnionType",
                "TracebackType",
            ],
        )],
        others: Effect::Code,
    },
    Row {
        module: "typing",
        members: &[(
            Effect::Code,
            &[
                "get_args",
                "get_type_hints",
                "ForwardRef",
                "evaluate_forward_ref",
            ],
        )],
        others: Effect::None,
    },
    Row {
        module: "weakref",
        members: &[(Effect::Outlives, &["finalize"])],
        others: Effect::None,
    },
    Row {
        module: "gzip",
        members: &[
            (Effect::Open(1), &["open"]),
            (Effect::None, &["compress", "decompress", "BadGzipFile"]),
        ],
        others: Effect::Write,
    },
    Row {
        module: "bz2",
        members: &[
            (Effect::Open(1), &["open"]),
            (Effect::None, &["compress", "decompress"]),
        ],
        others: Effect::Write,
    },
    Row {
        module: "lzma",
        members: &[
            (Effect::Open(1), &["open"]),
            (Effect::None, &["compress", "decompress", "LZMAError"]),
        ],
        others: Effect::Write,
    },
    all("dbm", Effect::Write),
    all("fileinput", Effect::Write),
    all("mmap", Effect::Write),
    Row {
        module: "sqlite3",
        members: &[
            (Effect::Database, &["connect"]),
            (
                Effect::None,
                &[
                    "DataError",
                    "DatabaseError",
                    "Error",
                    "IntegrityError",
                    "InterfaceError",
                    "InternalError",
                    "NotSupportedError",
                    "OperationalError",
                    "PARSE_COLNAMES",
                    "PARSE_DECLTYPES",
                    "ProgrammingError",
                    "Row",
                    "Warning",
                    "complete_statement",
                    "sqlite_version",
                    "sqlite_version_info",
                ],
            ),
            (
                Effect::Interpreter,
                &[
                    "enable_callback_tracebacks",
                    "register_adapter",
                    "register_converter",
                ],
            ),
            (Effect::Annotation, &["Connection", "Cursor"]),
        ],
        others: Effect::Write,
    },
    all("tarfile", Effect::Write),
    all("tempfile", Effect::Write),
    Row {
        module: "zipfile",
        members: &[(Effect::Code, &["PyZipFile"])],
        others: Effect::Write,
    },
    Row {
        module: "http",
        members: &[(Effect::None, &["HTTPStatus", "HTTPMethod"])],
        others: Effect::Network,
    },
    all("aiohttp", Effect::Network),
    all("ftplib", Effect::Network),
    all("httpx", Effect::Network),
    Row {
        module: "imaplib",
        members: &[(Effect::Process, &["IMAP4_stream"])],
        others: Effect::Network,
    },
    all("nntplib", Effect::Network),
    all("poplib", Effect::Network),
    all("requests", Effect::Network),
    all("select", Effect::Network),
    all("selectors", Effect::Network),
    all("smtplib", Effect::Network),
    all("socket", Effect::Network),
    all("_socket", Effect::Network),
    Row {
        module: "socketserver",
        members: &[(
            Effect::Process,
            &["ForkingMixIn", "ForkingTCPServer", "ForkingUDPServer"],
        )],
        others: Effect::Network,
    },
    all("ssl", Effect::Network),
    all("telnetlib", Effect::Network),
    all("urllib", Effect::Network),
    Row {
        module: "urllib.request",
        members: &[
            (
                Effect::Write,
                &["urlretrieve", "URLopener", "FancyURLopener"],
            ),
            (Effect::Secret, &["getproxies"]),
            (Effect::Interpreter, &["install_opener"]),
        ],
        others: Effect::Network,
    },
    Row {
        module: "http.cookiejar",
        members: &[(
            Effect::Write,
            &["FileCookieJar", "LWPCookieJar", "MozillaCookieJar"],
        )],
        others: Effect::Network,
    },
    Row {
        module: "http.server",
        members: &[(Effect::Process, &["CGIHTTPRequestHandler", "test"])],
        others: Effect::Network,
    },
    all("urllib3", Effect::Network),
    all("websocket", Effect::Network),
    all("websockets", Effect::Network),
    all("xmlrpc", Effect::Network),
    // It calls what callers name, and finds it by the text of its name.
    all("xmlrpc.server", Effect::Reflection),
    all("dotenv", Effect::Secret),
    all("getpass", Effect::Secret),
    all("keyring", Effect::Secret),
    all("netrc", Effect::Secret),
    all("_posixsubprocess", Effect::Process),
    all("_winapi", Effect::Process),
    all("antigravity", Effect::Process),
    all("multiprocessing", Effect::Process),
    all("nt", Effect::Process),
    all("pexpect", Effect::Process),
    all("platform", Effect::Process),
    all("plumbum", Effect::Process),
    all("popen2", Effect::Process),
    all("posix", Effect::Process),
    all("posixpath", Effect::Reflection),
    all("ntpath", Effect::Reflection),
    all("psutil", Effect::Process),
    all("pty", Effect::Process),
    all("sh", Effect::Process),
    all("subprocess", Effect::Process),
    all("webbrowser", Effect::Process),
    all("builtins", Effect::Code),
    all("__builtin__", Effect::Code),
    all("__main__", Effect::Reflection),
    all("_frozen_importlib", Effect::Code),
    all("_imp", Effect::Code),
    all("bdb", Effect::Code),
    all("code", Effect::Code),
    all("codeop", Effect::Code),
    all("doctest", Effect::Code),
    all("imp", Effect::Code),
    all("importlib", Effect::Code),
    all("pdb", Effect::Code),
    all("pkgutil", Effect::Code),
    all("pydoc", Effect::Code),
    all("py_compile", Effect::Code),
    all("compileall", Effect::Code),
    all("runpy", Effect::Code),
    all("site", Effect::Code),
    all("timeit", Effect::Code),
    all("trace", Effect::Code),
    all("zipimport", Effect::Code),
    all("codecs", Effect::Write),
    all("faulthandler", Effect::Interpreter),
    all("gc", Effect::Interpreter),
    all("inspect", Effect::Interpreter),
    all("resource", Effect::Interpreter),
    all("sysconfig", Effect::Interpreter),
    all("traceback", Effect::Interpreter),
    all("tracemalloc", Effect::Interpreter),
    all("_thread", Effect::Outlives),
    all("atexit", Effect::Outlives),
    all("sched", Effect::Outlives),
    all("signal", Effect::Outlives),
    all("cloudpickle", Effect::Pickle),
    all("copyreg", Effect::Pickle),
    all("dill", Effect::Pickle),
    all("joblib", Effect::Pickle),
    all("jsonpickle", Effect::Pickle),
    all("marshal", Effect::Pickle),
    all("pickle", Effect::Pickle),
    all("_pickle", Effect::Pickle),
    all("shelve", Effect::Pickle),
    all("_ctypes", Effect::Native),
    all("cffi", Effect::Native),
    all("ctypes", Effect::Native),
];

/// Built-ins that can do something; `open` in its own way.
static BUILTINS: &[(&str, Effect)] = &[
    ("__build_class__", Effect::Code),
    ("__builtins__", Effect::Reflection),
    ("__import__", Effect::Code),
    ("breakpoint", Effect::Code),
    ("compile", Effect::Code),
    ("delattr", Effect::ByName(1)),
    ("eval", Effect::Code),
    ("exec", Effect::Code),
    ("execfile", Effect::Code),
    ("KeyboardInterrupt", Effect::Process),
    ("SystemExit", Effect::Process),
    ("exit", Effect::Process),
    ("getattr", Effect::ByName(1)),
    ("globals", Effect::Reflection),
    ("hasattr", Effect::ByName(1)),
    ("help", Effect::Code),
    ("locals", Effect::Reflection),
    ("open", Effect::Open(1)),
    ("quit", Effect::Process),
    ("reload", Effect::Code),
    ("setattr", Effect::ByName(1)),
    ("type", Effect::Type),
    ("vars", Effect::Reflection),
];

/// Modules without a row that are not a member of another module.
static HIDDEN: [&str; 6] = [
    "bltns",
    "genericpath",
    "linecache",
    "re_compile",
    "stdlib_re",
    "sre_parse",
];

/// The public members of the modules of the standard library, by module.
static MEMBERS: LazyLock<BTreeMap<&'static str, &'static str>> = LazyLock::new(|| {
    let lines = include_str!("members.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(": ")).collect()
});

/// Whether a built-in of this name can do something.
pub(crate) fn is_sensitive_builtin(name: &str) -> bool {
    BUILTINS.iter().any(|(known, _)| *known == name)
}

/// Whether a path is a module of the table.
pub(crate) fn is_module(path: &str) -> bool {
    row(path).is_some()
}

/// The powers of a whole module; `None` where its members have their own.
pub(crate) fn module_effect(module: &str) -> Effect {
    match deepest(module) {
        Some((row, "")) if row.members.is_empty() => row.others,
        Some((_, "")) => Effect::None,
        Some((row, rest)) => member_power(row, rest),
        None => Effect::Unknown,
    }
}

/// What a dotted path can do.
pub(crate) fn effect_of(path: &str) -> Effect {
    if let Some(name) = path.strip_prefix("builtins.") {
        let first = name.split('.').next().unwrap_or_default();
        let found = BUILTINS.iter().find(|(known, _)| *known == first);
        return match found {
            Some((_, Effect::Type)) if name != "type" => Effect::None,
            Some((_, power)) => *power,
            None => Effect::None,
        };
    }
    match deepest(path) {
        Some((_, "")) => Effect::None,
        Some((row, rest)) => member_power(row, rest),
        None if path.split('.').skip(1).any(is_module_or_private) => Effect::Reflection,
        None => Effect::None,
    }
}

fn member_power(row: &Row, rest: &str) -> Effect {
    let first = rest.split('.').next().unwrap_or_default();
    let listed = row
        .members
        .iter()
        .find(|(_, names)| names.contains(&first))
        .map(|(power, _)| *power);
    let found = listed.unwrap_or(row.others);
    let known = || {
        MEMBERS
            .get(row.module)
            .is_none_or(|names| names.split(' ').any(|name| name == first))
    };
    let covers = matches!(
        found,
        Effect::Process | Effect::Code | Effect::Interpreter | Effect::Outlives | Effect::Native
    );
    let strange = listed.is_none() && !is_dunder(first) && !known();
    let deeper = rest.split('.').skip(1).any(is_module_or_private)
        || (listed.is_none() && hides_at_all(row, first));
    if !covers && (strange || deeper) {
        Effect::Reflection
    } else {
        found
    }
}

fn is_dunder(word: &str) -> bool {
    word.len() > 4 && word.starts_with("__") && word.ends_with("__")
}

/// Whether a member of a module is another module, or private.
pub(crate) fn is_module_or_private(word: &str) -> bool {
    let strong = |row: &Row| {
        !matches!(row.others, Effect::None | Effect::Network) || !row.members.is_empty()
    };
    HIDDEN.contains(&word)
        || (word.starts_with('_') && !is_dunder(word))
        || row(word).is_some_and(|row| strong(row) && !SHARED.contains(&word))
}

/// Words that are names of modules and of harmless members and methods of other things as well.
static SHARED: [&str; 9] = [
    "abc", "calendar", "code", "enum", "http", "platform", "select", "string", "trace",
];

/// Whether the first member of a module without a list of its members is another module.
fn hides_at_all(row: &Row, word: &str) -> bool {
    !MEMBERS.contains_key(row.module) && is_module_or_private(word)
}

fn row(module: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.module == module)
}

/// The row of the longest module that a path begins with, and what follows it.
fn deepest(path: &str) -> Option<(&'static Row, &str)> {
    let ends = path
        .match_indices('.')
        .map(|(at, _)| at)
        .chain([path.len()]);
    let mut found = None;
    for end in ends {
        let module = path.get(..end).unwrap_or_default();
        if let Some(row) = row(module) {
            found = Some((row, path.get(end + 1..).unwrap_or_default()));
        }
    }
    found
}
