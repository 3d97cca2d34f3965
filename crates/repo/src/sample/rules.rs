//! Which files are read and which are skipped: as tables.
//!
//! Case matters. A name without a slash matches in any directory. Skipping has precedence
//! over every other list.

/// Directories that are not looked into.
pub(crate) const SKIPPED_DIRECTORIES: &[&str] = &[
    "node_modules",
    ".git",
    "dist",
    "build",
    "target",
    "vendor",
    "__pycache__",
    ".next",
    ".cache",
    "coverage",
    ".tox",
    ".eggs",
];

/// Suffixes of directory names that are skipped.
pub(crate) const SKIPPED_DIRECTORY_ENDINGS: &[&str] = &[".egg-info"];

/// Endings of the names of files that are passed over.
pub(crate) const SKIPPED_ENDINGS: &[&str] = &[
    ".bin", ".exe", ".dll", ".so", ".dylib", ".o", ".a", ".lib", ".wasm", ".pyc", ".pyo", ".class",
    ".png", ".jpg", ".jpeg", ".gif", ".bmp", ".ico", ".svg", ".webp", ".mp3", ".mp4", ".wav",
    ".avi", ".mov", ".zip", ".tar", ".gz", ".bz2", ".xz", ".7z", ".rar", ".pdf", ".doc", ".docx",
    ".ppt", ".pptx", ".min.js", ".min.css", ".map", ".lock",
];

/// Names that are read although they end in `.lock` or have another lock file suffix.
pub(crate) const KEPT_LOCK_FILES: &[&str] = &[
    "Cargo.lock",
    "package-lock.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "poetry.lock",
    "Pipfile.lock",
];

/// Files that say how to build: always read.
pub(crate) const BUILD_FILES: &[&str] = &[
    "Cargo.toml",
    "go.mod",
    "package.json",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "requirements.txt",
    "Pipfile",
    "CMakeLists.txt",
    "meson.build",
    "meson_options.txt",
    "configure.ac",
    "Makefile.am",
    "Makefile",
    "GNUmakefile",
    "Justfile",
    "Taskfile.yml",
];

/// READMEs, the one that is preferred first: always read.
pub(crate) const READMES: &[&str] = &["README.md", "README.txt", "README.rst", "README"];

/// Licences: always read.
pub(crate) const LICENSES: &[&str] = &["LICENSE", "LICENSE.md", "LICENSE.txt", "COPYING"];

/// Descriptions of containers: always read.
pub(crate) const CONTAINERS: &[&str] = &["Dockerfile", "docker-compose.yml", "docker-compose.yaml"];

/// Other files that are always read.
pub(crate) const OTHER_FILES: &[&str] = &[
    "CHANGELOG.md",
    "CHANGES.md",
    ".gitignore",
    ".gitattributes",
    "flake.nix",
    "shell.nix",
    "default.nix",
];

/// What package managers wrote: always read, after the rest.
pub(crate) const LOCK_FILES: &[&str] = &[
    "Cargo.lock",
    "go.sum",
    "package-lock.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "poetry.lock",
];

/// The directory of CI workflows, from the top: always read.
pub(crate) const WORKFLOW_DIRECTORY: &str = ".github/workflows";

/// Endings of the names of workflows.
pub(crate) const WORKFLOW_ENDINGS: &[&str] = &[".yml", ".yaml"];

/// Extensions of source files, each with the language that they are counted as.
pub(crate) const SOURCE_EXTENSIONS: &[(&str, &str)] = &[
    ("rs", "Rust"),
    ("go", "Go"),
    ("js", "JavaScript"),
    ("mjs", "JavaScript"),
    ("cjs", "JavaScript"),
    ("ts", "TypeScript"),
    ("tsx", "TypeScript"),
    ("jsx", "JavaScript"),
    ("py", "Python"),
    ("rb", "Ruby"),
    ("java", "Java"),
    ("kt", "Kotlin"),
    ("kts", "Kotlin"),
    ("scala", "Scala"),
    ("c", "C"),
    ("cpp", "C++"),
    ("cc", "C++"),
    ("h", "C"),
    ("hpp", "C++"),
    ("cs", "C#"),
    ("fs", "F#"),
    ("swift", "Swift"),
    ("m", "Objective-C"),
    ("mm", "Objective-C++"),
    ("ex", "Elixir"),
    ("exs", "Elixir"),
    ("erl", "Erlang"),
    ("hrl", "Erlang"),
    ("lua", "Lua"),
    ("zig", "Zig"),
    ("nim", "Nim"),
    ("v", "V"),
    ("d", "D"),
    ("sh", "Shell"),
    ("bash", "Shell"),
    ("zsh", "Shell"),
    ("fish", "Shell"),
    ("toml", "TOML"),
    ("yaml", "YAML"),
    ("yml", "YAML"),
    ("json", "JSON"),
    ("xml", "XML"),
    ("sql", "SQL"),
    ("graphql", "GraphQL"),
    ("proto", "Protocol Buffers"),
];

/// What a file is read as. Of two in one directory's depth, the earlier kind is read first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileKind {
    /// It says how to build.
    Build,
    /// A README.
    Readme,
    /// A licence.
    License,
    /// A description of a container.
    Container,
    /// A workflow of continuous integration.
    Workflow,
    /// Another file that is always read.
    Other,
    /// A package manager wrote it.
    Lock,
    /// Source, or data that resembles it: read within the limits.
    Source,
}

/// Files that are read by name, in any directory.
const NAMED: &[(&[&str], FileKind)] = &[
    (BUILD_FILES, FileKind::Build),
    (READMES, FileKind::Readme),
    (LICENSES, FileKind::License),
    (CONTAINERS, FileKind::Container),
    (OTHER_FILES, FileKind::Other),
    (LOCK_FILES, FileKind::Lock),
];

/// The names of all files that are always read for their names.
pub(super) fn always_read() -> impl Iterator<Item = &'static str> {
    NAMED.iter().flat_map(|(names, _)| names.iter().copied())
}

impl FileKind {
    /// Returns the kind of the file at `path`, from the top; `None` if it is not read.
    #[must_use]
    pub fn from_path(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or(path);
        if is_skipped_file(name) {
            None
        } else {
            Self::of_listed(path)
        }
    }

    /// The same for a path of a listing, which has no skipped paths.
    pub(super) fn of_listed(path: &str) -> Option<Self> {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let ends = |endings: &[&str]| {
            endings
                .iter()
                .any(|ending| name.len() > ending.len() && name.ends_with(ending))
        };
        if let Some((_, kind)) = NAMED.iter().find(|(names, _)| names.contains(&name)) {
            return Some(*kind);
        }
        if directory == WORKFLOW_DIRECTORY && ends(WORKFLOW_ENDINGS) {
            return Some(Self::Workflow);
        }
        let is_lock = name == "npm-shrinkwrap.json" || ends(&["-lock.json", ".lock.json"]);
        (source_language(name).is_some() && !is_lock).then_some(Self::Source)
    }
}

/// Returns the language of a file by its extension; `None` if it is not source.
pub(crate) fn source_language(name: &str) -> Option<&'static str> {
    let (stem, extension) = name.rsplit_once('.')?;
    if stem.is_empty() {
        return None;
    }
    SOURCE_EXTENSIONS
        .iter()
        .find_map(|(known, language)| (*known == extension).then_some(*language))
}

/// Whether a directory of this name is passed over.
pub(crate) fn is_skipped_directory(name: &str) -> bool {
    SKIPPED_DIRECTORIES.contains(&name)
        || SKIPPED_DIRECTORY_ENDINGS
            .iter()
            .any(|ending| name.ends_with(ending))
}

/// Whether a file of this name is passed over.
pub(crate) fn is_skipped_file(name: &str) -> bool {
    // An ending of the table has one dot or two.
    let Some(last) = name.rfind('.') else {
        return false;
    };
    let second = name[..last].rfind('.');
    let is_listed = SKIPPED_ENDINGS.contains(&&name[last..])
        || second.is_some_and(|second| SKIPPED_ENDINGS.contains(&&name[second..]));
    is_listed && !KEPT_LOCK_FILES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seed's lists, as it writes them.
    const ALWAYS: &str = "Cargo.toml Cargo.lock go.mod go.sum package.json package-lock.json yarn.lock pnpm-lock.yaml
        pyproject.toml setup.py setup.cfg requirements.txt Pipfile poetry.lock CMakeLists.txt meson.build
        meson_options.txt configure.ac Makefile.am Makefile GNUmakefile Dockerfile docker-compose.yml
        docker-compose.yaml .github/workflows/x.yml .github/workflows/x.yaml Justfile Taskfile.yml README.md README.txt
        README.rst README LICENSE LICENSE.md LICENSE.txt COPYING CHANGELOG.md CHANGES.md .gitignore .gitattributes
        flake.nix shell.nix default.nix";
    const SOURCES: &str =
        "rs go js mjs cjs ts tsx jsx py rb java kt kts scala c cpp cc h hpp cs fs swift m mm ex exs erl
        hrl lua zig nim v d sh bash zsh fish toml yaml yml json xml sql graphql proto";
    const SKIPPED: &str =
        "bin exe dll so dylib o a lib wasm pyc pyo class png jpg jpeg gif bmp ico svg webp mp3 mp4 wav
        avi mov zip tar gz bz2 xz 7z rar pdf doc docx ppt pptx min.js min.css map lock";
    const DIRECTORIES: &str =
        "node_modules .git dist build target vendor __pycache__ .next .cache coverage .tox .eggs
        x.egg-info";

    #[test]
    fn lists_equal_those_of_the_seed() {
        for name in ALWAYS.split_whitespace() {
            assert!(
                FileKind::from_path(name).is_some_and(|kind| kind != FileKind::Source),
                "{name}"
            );
        }
        for extension in SOURCES.split_whitespace() {
            assert_eq!(
                FileKind::from_path(&format!("a/b.{extension}")),
                Some(FileKind::Source),
                "{extension}"
            );
        }
        for extension in SKIPPED.split_whitespace() {
            assert!(is_skipped_file(&format!("a.{extension}")), "{extension}");
            assert_eq!(
                FileKind::from_path(&format!("a.{extension}")),
                None,
                "{extension}"
            );
        }
        for name in DIRECTORIES.split_whitespace() {
            assert!(is_skipped_directory(name), "{name}");
        }
        let tables = [
            BUILD_FILES,
            READMES,
            LICENSES,
            CONTAINERS,
            OTHER_FILES,
            LOCK_FILES,
            WORKFLOW_ENDINGS,
        ];
        assert_eq!(
            tables.iter().map(|table| table.len()).sum::<usize>(),
            ALWAYS.split_whitespace().count()
        );
        assert_eq!(SOURCE_EXTENSIONS.len(), SOURCES.split_whitespace().count());
        assert_eq!(SKIPPED_ENDINGS.len(), SKIPPED.split_whitespace().count());
        let directories = SKIPPED_DIRECTORIES.len() + SKIPPED_DIRECTORY_ENDINGS.len();
        assert_eq!(directories, DIRECTORIES.split_whitespace().count());
    }

    #[test]
    fn only_listed_lock_files_are_read() {
        for stored_text in KEPT_LOCK_FILES {
            assert!(!is_skipped_file(stored_text), "{stored_text}");
        }
        // Neither list names it for reading.
        assert_eq!(FileKind::from_path("Pipfile.lock"), None);
        for lock in [
            "flake.lock",
            "Gemfile.lock",
            "composer-lock.json",
            "a.lock.json",
            "npm-shrinkwrap.json",
        ] {
            assert_eq!(FileKind::from_path(lock), None, "{lock}");
        }
        assert_eq!(
            FileKind::from_path("sub/package-lock.json"),
            Some(FileKind::Lock)
        );
    }

    #[test]
    fn named_files_count_in_any_directory() {
        assert_eq!(FileKind::from_path("a/b/Makefile"), Some(FileKind::Build));
        assert_eq!(
            FileKind::from_path(".github/workflows/ci.yml"),
            Some(FileKind::Workflow)
        );
        assert_eq!(
            FileKind::from_path("a/.github/workflows/ci.yml"),
            Some(FileKind::Source)
        );
        assert_eq!(
            FileKind::from_path(".github/workflows/sub/ci.yml"),
            Some(FileKind::Source)
        );
        for none in [
            "makefile",
            "readme.md",
            "x.RS",
            ".rs",
            "rs",
            "src/data.csv",
            "x.min.js",
            "a.js.map",
        ] {
            assert_eq!(FileKind::from_path(none), None, "{none}");
        }
    }
}
