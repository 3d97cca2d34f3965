//! What kind of file a path names, judged by its name and the directories on the way.

use crucible_model::RepoPath;

/// The kinds of files a ranking tells apart, the most useful first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileClass {
    /// Code, and anything that fits no other class.
    Source,
    /// Code that tests other code. Shown so that a model knows what is expected; not for it to change.
    Test,
    /// Names the project's parts, dependencies and commands.
    Manifest,
    /// Text for people.
    Document,
    /// Made by a program, locked, minified, vendored or binary.
    Generated,
}

impl FileClass {
    /// The class of the file at `path`.
    #[must_use]
    pub fn of(path: &RepoPath) -> Self {
        let name = path.file_name().to_ascii_lowercase();
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        if is_generated(path, &name, extension) {
            Self::Generated
        } else if MANIFESTS.contains(&name.as_str()) {
            Self::Manifest
        } else if is_test(path, &name) {
            Self::Test
        } else if DOCUMENT_EXTENSIONS.contains(&extension) || DOCUMENT_NAMES.contains(&name.as_str()) {
            Self::Document
        } else {
            Self::Source
        }
    }

    /// The class as a word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Test => "test",
            Self::Manifest => "manifest",
            Self::Document => "document",
            Self::Generated => "generated",
        }
    }

    /// How much of its points a file of this class keeps, in percent.
    pub(super) fn percent(self) -> u64 {
        match self {
            Self::Source => 100,
            Self::Test => 60,
            Self::Manifest => 50,
            Self::Document => 40,
            Self::Generated => 5,
        }
    }
}

/// The name of the thing that a file is or tests: `parser` for `src/parser.rs`, `tests/test_parser.py`,
/// `parser_test.go` and `parser.spec.ts`.
pub(super) fn core_name(path: &RepoPath) -> String {
    let name = path.file_name().to_ascii_lowercase();
    let stem = name.split('.').next().unwrap_or_default();
    let stem = stem.strip_prefix("test_").or_else(|| stem.strip_prefix("test-")).unwrap_or(stem);
    let endings = ["_test", "_tests", "-test", "_spec"];
    let stem = endings.iter().find_map(|ending| stem.strip_suffix(ending)).unwrap_or(stem);
    stem.to_owned()
}

const MANIFESTS: &[&str] = &[
    "build.gradle",
    "build.gradle.kts",
    "cargo.toml",
    "cmakelists.txt",
    "composer.json",
    "gemfile",
    "go.mod",
    "go.work",
    "justfile",
    "makefile",
    "meson.build",
    "package.json",
    "pom.xml",
    "pyproject.toml",
    "requirements.txt",
    "setup.cfg",
    "setup.py",
    "tox.ini",
    "tsconfig.json",
];

const LOCKS: &[&str] = &[
    "bun.lock",
    "bun.lockb",
    "cargo.lock",
    "composer.lock",
    "gemfile.lock",
    "go.sum",
    "npm-shrinkwrap.json",
    "package-lock.json",
    "pdm.lock",
    "pipfile.lock",
    "pnpm-lock.yaml",
    "poetry.lock",
    "uv.lock",
    "yarn.lock",
];

const GENERATED_DIRECTORIES: &[&str] = &[
    "generated",
    "target",
    "third_party",
    "vendor",
    ".venv",
    "venv",
    ".tox",
    ".mypy_cache",
    ".pytest_cache",
];

const GENERATED_ENDINGS: &[&str] = &[
    ".bundle.js",
    ".g.dart",
    ".generated.cs",
    ".min.css",
    ".min.js",
    ".pb.go",
    ".snap",
    "_generated.go",
    "_pb2.py",
    "_pb2_grpc.py",
];

const BINARY_EXTENSIONS: &[&str] = &[
    "7z", "a", "avif", "bin", "bmp", "bz2", "class", "db", "dll", "dylib", "eot", "exe", "gif", "gz", "ico",
    "jar", "jpeg", "jpg", "lock", "map", "mo", "mp3", "mp4", "o", "otf", "parquet", "pdf", "png", "pyc",
    "rlib", "so", "sqlite", "tar", "tgz", "ttf", "wasm", "webm", "webp", "whl", "woff", "woff2", "xz", "zip",
    "zst",
];

const DOCUMENT_EXTENSIONS: &[&str] = &["adoc", "markdown", "md", "rst", "txt"];

const DOCUMENT_NAMES: &[&str] =
    &["authors", "changelog", "copying", "license", "licence", "notice", "readme"];

const TEST_DIRECTORIES: &[&str] = &["__tests__", "spec", "specs", "test", "testing", "tests"];

fn is_generated(path: &RepoPath, name: &str, extension: &str) -> bool {
    let below = |directory: &&str| {
        let mut segments = path.segments();
        segments.next_back();
        segments.any(|segment| segment.eq_ignore_ascii_case(directory))
    };
    LOCKS.contains(&name)
        || BINARY_EXTENSIONS.contains(&extension)
        || GENERATED_ENDINGS.iter().any(|ending| name.ends_with(ending))
        || GENERATED_DIRECTORIES.iter().any(below)
}

fn is_test(path: &RepoPath, name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    let mut segments = path.segments();
    segments.next_back();
    name.starts_with("test_")
        || matches!(stem, "conftest" | "test" | "tests")
        || [".test.", ".spec."].iter().any(|infix| name.contains(infix))
        || ["_test", "_tests", "_spec"].iter().any(|ending| stem.ends_with(ending))
        || segments.any(|segment| TEST_DIRECTORIES.iter().any(|known| known.eq_ignore_ascii_case(segment)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_names_and_directories() {
        let cases = [
            ("src/parser.rs", FileClass::Source),
            ("Dockerfile", FileClass::Source),
            ("tests/a.rs", FileClass::Test),
            ("pkg/a_test.go", FileClass::Test),
            ("a/test_b.py", FileClass::Test),
            ("ui/button.spec.ts", FileClass::Test),
            ("Cargo.toml", FileClass::Manifest),
            ("sub/Makefile", FileClass::Manifest),
            ("README", FileClass::Document),
            ("docs/a.md", FileClass::Document),
            ("Cargo.lock", FileClass::Generated),
            ("vendor/x/a.go", FileClass::Generated),
            ("a.min.js", FileClass::Generated),
            ("logo.PNG", FileClass::Generated),
            ("contest.py", FileClass::Source),
        ];
        for (path, class) in cases {
            assert_eq!(FileClass::of(&path.parse().unwrap()), class, "{path}");
        }
    }

    #[test]
    fn tests_share_the_name_of_what_they_test() {
        for path in
            ["src/parser.rs", "tests/test_parser.py", "parser_test.go", "a/parser.spec.ts", "tests/parser.rs"]
        {
            assert_eq!(core_name(&path.parse().unwrap()), "parser", "{path}");
        }
    }
}
