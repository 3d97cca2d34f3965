//! What each module and built-in of Python can do, by class.
//!
//! An allow-list: a module without a row may not be imported, a member that its row does not list is what the row says of the others. So a
//! function that a later Python adds to `os` is refused until a person has reviewed it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

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
    /// May stand as the innermost decorator of a function, with one argument, and nowhere else: on any other object it sets attributes.
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
    members: &'static [(Power, &'static [&'static str])],
    /// What every other member can do.
    others: Power,
}

const fn plain(module: &'static str) -> Row {
    Row {
        module,
        members: &[],
        others: Power::None,
    }
}

const fn all(module: &'static str, others: Power) -> Row {
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
        members: &[(Power::Code, &["ABCMeta", "update_abstractmethods"])],
        others: Power::None,
    },
    plain("array"),
    plain("base64"),
    plain("binascii"),
    plain("bisect"),
    Row {
        module: "calendar",
        members: &[(Power::Reflection, &["different_locale", "format", "repeat"])],
        others: Power::None,
    },
    plain("cmath"),
    plain("collections"),
    plain("collections.abc"),
    plain("colorsys"),
    Row {
        module: "contextlib",
        members: &[(Power::Interpreter, &["chdir"])],
        others: Power::None,
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
                Power::Arguments(2),
                &["Enum", "Flag", "IntEnum", "IntFlag", "ReprEnum", "StrEnum"],
            ),
            (Power::Code, &["EnumMeta", "EnumType", "EnumDict"]),
            (
                Power::Interpreter,
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
        others: Power::None,
    },
    plain("errno"),
    plain("fnmatch"),
    plain("fractions"),
    Row {
        module: "functools",
        members: &[
            (Power::Code, &["singledispatch", "singledispatchmethod"]),
            (
                Power::Reflection,
                &[
                    "partialmethod",
                    "update_wrapper",
                    "WRAPPER_ASSIGNMENTS",
                    "WRAPPER_UPDATES",
                ],
            ),
            (Power::Wrapper, &["wraps"]),
        ],
        others: Power::None,
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
        members: &[(Power::Secret, &["expandvars"])],
        others: Power::None,
    },
    plain("pprint"),
    plain("queue"),
    plain("random"),
    Row {
        module: "re",
        members: &[(Power::None, &["RegexFlag"])],
        others: Power::None,
    },
    plain("secrets"),
    plain("shlex"),
    plain("stat"),
    plain("statistics"),
    Row {
        module: "string",
        members: &[(Power::Reflection, &["Formatter"])],
        others: Power::None,
    },
    plain("struct"),
    plain("textwrap"),
    Row {
        module: "time",
        members: &[(
            Power::Interpreter,
            &["clock_settime", "clock_settime_ns", "tzset"],
        )],
        others: Power::None,
    },
    plain("tomllib"),
    Row {
        module: "typing_extensions",
        members: &[(
            Power::Code,
            &[
                "get_args",
                "get_type_hints",
                "ForwardRef",
                "evaluate_forward_ref",
                "get_annotations",
            ],
        )],
        others: Power::None,
    },
    plain("unicodedata"),
    plain("urllib.parse"),
    all("xml.etree", Power::Interpreter),
    // It reads what it is given: no entity of another file, and no address.
    Row {
        module: "xml.etree.ElementTree",
        members: &[(
            Power::None,
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
        others: Power::Interpreter,
    },
    Row {
        module: "uuid",
        members: &[(Power::Process, &["getnode", "uuid1", "uuid6"])],
        others: Power::None,
    },
    Row {
        module: "warnings",
        members: &[(Power::Interpreter, &["showwarning", "warn_explicit"])],
        others: Power::None,
    },
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
                &[
                    "open_connection",
                    "open_unix_connection",
                    "start_server",
                    "start_unix_server",
                ],
            ),
            (
                Power::Outlives,
                &["create_task", "ensure_future", "to_thread"],
            ),
        ],
        others: Power::Process,
    },
    Row {
        module: "concurrent.futures",
        members: &[
            (Power::Pool, &["ThreadPoolExecutor"]),
            (
                Power::None,
                &[
                    "Future",
                    "TimeoutError",
                    "CancelledError",
                    "as_completed",
                    "wait",
                ],
            ),
        ],
        others: Power::Process,
    },
    all("concurrent", Power::Process),
    Row {
        module: "dataclasses",
        members: &[
            (Power::Code, &["make_dataclass"]),
            (Power::Decorator, &["dataclass"]),
        ],
        others: Power::None,
    },
    Row {
        module: "io",
        members: &[
            (
                Power::None,
                &[
                    "StringIO",
                    "BytesIO",
                    "IOBase",
                    "TextIOBase",
                    "UnsupportedOperation",
                ],
            ),
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
            (Power::Code, &["config"]),
            (Power::Write, &["FileHandler", "basicConfig"]),
        ],
        others: Power::Outlives,
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
    Row {
        module: "pathlib",
        members: &[],
        others: Power::None,
    },
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
        members: &[(
            Power::None,
            &[
                "Condition",
                "Event",
                "Lock",
                "RLock",
                "Semaphore",
                "BoundedSemaphore",
            ],
        )],
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
        members: &[(
            Power::Code,
            &[
                "get_args",
                "get_type_hints",
                "ForwardRef",
                "evaluate_forward_ref",
            ],
        )],
        others: Power::None,
    },
    Row {
        module: "weakref",
        members: &[(Power::Outlives, &["finalize"])],
        others: Power::None,
    },
    Row {
        module: "gzip",
        members: &[
            (Power::Open(1), &["open"]),
            (Power::None, &["compress", "decompress", "BadGzipFile"]),
        ],
        others: Power::Write,
    },
    Row {
        module: "bz2",
        members: &[
            (Power::Open(1), &["open"]),
            (Power::None, &["compress", "decompress"]),
        ],
        others: Power::Write,
    },
    Row {
        module: "lzma",
        members: &[
            (Power::Open(1), &["open"]),
            (Power::None, &["compress", "decompress", "LZMAError"]),
        ],
        others: Power::Write,
    },
    all("dbm", Power::Write),
    all("fileinput", Power::Write),
    all("mmap", Power::Write),
    Row {
        module: "sqlite3",
        members: &[
            (Power::Database, &["connect"]),
            (
                Power::None,
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
                Power::Interpreter,
                &[
                    "enable_callback_tracebacks",
                    "register_adapter",
                    "register_converter",
                ],
            ),
            (Power::Annotation, &["Connection", "Cursor"]),
        ],
        others: Power::Write,
    },
    all("tarfile", Power::Write),
    all("tempfile", Power::Write),
    Row {
        module: "zipfile",
        members: &[(Power::Code, &["PyZipFile"])],
        others: Power::Write,
    },
    Row {
        module: "http",
        members: &[(Power::None, &["HTTPStatus", "HTTPMethod"])],
        others: Power::Network,
    },
    all("aiohttp", Power::Network),
    all("ftplib", Power::Network),
    all("httpx", Power::Network),
    Row {
        module: "imaplib",
        members: &[(Power::Process, &["IMAP4_stream"])],
        others: Power::Network,
    },
    all("nntplib", Power::Network),
    all("poplib", Power::Network),
    all("requests", Power::Network),
    all("select", Power::Network),
    all("selectors", Power::Network),
    all("smtplib", Power::Network),
    all("socket", Power::Network),
    all("_socket", Power::Network),
    Row {
        module: "socketserver",
        members: &[(
            Power::Process,
            &["ForkingMixIn", "ForkingTCPServer", "ForkingUDPServer"],
        )],
        others: Power::Network,
    },
    all("ssl", Power::Network),
    all("telnetlib", Power::Network),
    all("urllib", Power::Network),
    Row {
        module: "urllib.request",
        members: &[
            (
                Power::Write,
                &["urlretrieve", "URLopener", "FancyURLopener"],
            ),
            (Power::Secret, &["getproxies"]),
            (Power::Interpreter, &["install_opener"]),
        ],
        others: Power::Network,
    },
    Row {
        module: "http.cookiejar",
        members: &[(
            Power::Write,
            &["FileCookieJar", "LWPCookieJar", "MozillaCookieJar"],
        )],
        others: Power::Network,
    },
    Row {
        module: "http.server",
        members: &[(Power::Process, &["CGIHTTPRequestHandler", "test"])],
        others: Power::Network,
    },
    all("urllib3", Power::Network),
    all("websocket", Power::Network),
    all("websockets", Power::Network),
    all("xmlrpc", Power::Network),
    // It calls what callers name, and finds it by the text of its name.
    all("xmlrpc.server", Power::Reflection),
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
    ("KeyboardInterrupt", Power::Process),
    ("SystemExit", Power::Process),
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

/// Modules that no row tells of, and that are no member of another one either.
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
        Power::Process | Power::Code | Power::Interpreter | Power::Outlives | Power::Native
    );
    let strange = listed.is_none() && !is_dunder(first) && !known();
    let deeper =
        rest.split('.').skip(1).any(hides) || (listed.is_none() && hides_at_all(row, first));
    if !covers && (strange || deeper) {
        Power::Reflection
    } else {
        found
    }
}

fn is_dunder(word: &str) -> bool {
    word.len() > 4 && word.starts_with("__") && word.ends_with("__")
}

/// Whether a member of a module is another module, or nobody's business.
pub(crate) fn hides(word: &str) -> bool {
    let strong =
        |row: &Row| !matches!(row.others, Power::None | Power::Network) || !row.members.is_empty();
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
    !MEMBERS.contains_key(row.module) && hides(word)
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
