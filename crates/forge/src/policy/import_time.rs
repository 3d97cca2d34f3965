//! What may run while a skill is imported: constructors of constants and decorators that only wrap.

/// Functions and classes of the standard library whose result is a constant.
static CONSTRUCTORS: [&str; 38] = [
    "array.array",
    "collections.Counter",
    "collections.OrderedDict",
    "collections.defaultdict",
    "collections.deque",
    "collections.namedtuple",
    "dataclasses.field",
    "datetime.date",
    "datetime.datetime",
    "datetime.time",
    "datetime.timedelta",
    "datetime.timezone",
    "decimal.Decimal",
    "enum.auto",
    "fractions.Fraction",
    "functools.cache",
    "functools.lru_cache",
    "functools.wraps",
    "ipaddress.ip_network",
    "ipaddress.ip_address",
    "logging.getLogger",
    "operator.itemgetter",
    "os.path.join",
    "pathlib.Path",
    "pathlib.PurePath",
    "pathlib.PurePosixPath",
    "re.compile",
    "re.escape",
    "string.Template",
    "struct.Struct",
    "textwrap.dedent",
    "threading.Lock",
    "types.MappingProxyType",
    "typing.NewType",
    "typing.ParamSpec",
    "typing.TypeVar",
    "uuid.UUID",
    "zoneinfo.ZoneInfo",
];

/// Built-ins whose result is a constant.
static BUILTINS: [&str; 19] = [
    "bool",
    "bytes",
    "complex",
    "dict",
    "enumerate",
    "float",
    "frozenset",
    "int",
    "len",
    "list",
    "max",
    "min",
    "object",
    "range",
    "set",
    "sorted",
    "str",
    "tuple",
    "zip",
];

/// Methods of literal texts.
static OF_TEXT: [&str; 8] = [
    "encode",
    "join",
    "lower",
    "split",
    "splitlines",
    "strip",
    "upper",
    "removeprefix",
];

static DECORATORS: [&str; 14] = [
    "abc.abstractmethod",
    "contextlib.contextmanager",
    "dataclasses.dataclass",
    "functools.cache",
    "functools.cached_property",
    "functools.lru_cache",
    "functools.singledispatch",
    "functools.total_ordering",
    "functools.wraps",
    "typing.final",
    "typing.overload",
    "typing.override",
    "typing.runtime_checkable",
    "typing_extensions.override",
];

static BUILTIN_DECORATORS: [&str; 3] = ["classmethod", "property", "staticmethod"];

pub(super) fn constructs(path: &str) -> bool {
    CONSTRUCTORS.contains(&path)
}

pub(super) fn constructs_by_itself(builtin: &str) -> bool {
    BUILTINS.contains(&builtin)
}

pub(super) fn is_of_text(method: &str) -> bool {
    OF_TEXT.contains(&method)
}

pub(super) fn decorates(path: &str) -> bool {
    DECORATORS.contains(&path)
}

pub(super) fn decorates_by_itself(builtin: &str) -> bool {
    BUILTIN_DECORATORS.contains(&builtin)
}
