//! The workspace as a value: its files with their contents, and its packages as cargo describes them.
//!
//! Everything on disk is read once, here; the rules see nothing else. Parsing waits until a rule asks.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use cargo_metadata::{DependencyKind, MetadataCommand};
use ignore::WalkBuilder;
use proc_macro2::TokenStream;

use super::modules::{self, Reach};
use super::source::{self, Token};
use crate::error::TaskError;
use crate::root::Root;

/// A file larger than this is listed, but its content is not read as text.
const TEXT_LIMIT: u64 = 4 * 1024 * 1024;

/// Everything that the rules look at.
pub(crate) struct Workspace {
    files: BTreeMap<String, SourceFile>,
    packages: Vec<Package>,
    reached: OnceCell<BTreeMap<String, Reach>>,
}

/// One file. Its path is relative to the workspace, with `/`.
pub(crate) struct SourceFile {
    pub(crate) path: String,
    /// Empty when the file is not text.
    pub(crate) text: String,
    parsed: OnceCell<Result<Parsed, ParseProblem>>,
}

/// A Rust file read three ways.
pub(super) struct Parsed {
    pub(super) syntax: syn::File,
    pub(super) tokens: Vec<Token>,
    /// The tokens without the test code.
    pub(super) product: Vec<Token>,
}

/// Why a Rust file cannot be read, and on which line.
#[derive(Debug)]
pub(super) struct ParseProblem {
    pub(super) line: usize,
    pub(super) message: String,
}

/// One package of the workspace.
#[derive(Debug, Clone)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Its folder, relative to the workspace.
    pub(crate) folder: String,
    pub(crate) targets: Vec<Target>,
    pub(crate) dependencies: Vec<Dependency>,
}

/// One thing that cargo builds from a package.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) kind: TargetKind,
    pub(crate) path: String,
}

/// What a target is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TargetKind {
    /// A library, a program or a build script.
    Product,
    /// A test, a bench or an example.
    Test,
}

/// One declared dependency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: Need,
}

/// What a dependency is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// The product itself, or its build script.
    Product,
    /// Tests only.
    Test,
}

impl Workspace {
    /// Reads the workspace from disk; what git ignores is left out.
    pub(crate) fn load(root: &Root) -> Result<Self, TaskError> {
        let metadata = MetadataCommand::new()
            .no_deps()
            .current_dir(root.path())
            .exec()?;
        let packages = metadata
            .workspace_packages()
            .into_iter()
            .map(|package| Package::read(root.path(), package))
            .collect();
        let mut files = BTreeMap::new();
        let walk = WalkBuilder::new(root.path())
            .hidden(false)
            .require_git(false)
            .filter_entry(|entry| entry.file_name() != ".git")
            .build();
        for entry in walk.flatten() {
            if entry.file_type().is_some_and(|kind| kind.is_file()) {
                let path = relative(root.path(), entry.path());
                files.insert(
                    path.clone(),
                    SourceFile::new(path, read_text(entry.path())?),
                );
            }
        }
        Ok(Self {
            files,
            packages,
            reached: OnceCell::new(),
        })
    }

    /// A workspace made in memory.
    #[cfg(test)]
    pub(super) fn from_files(files: &[(&str, &str)], packages: Vec<Package>) -> Self {
        let files = files
            .iter()
            .map(|(path, text)| {
                (
                    (*path).to_owned(),
                    SourceFile::new((*path).to_owned(), (*text).to_owned()),
                )
            })
            .collect::<BTreeMap<_, _>>();
        let packages = packages
            .into_iter()
            .map(|package| package.with_test_targets(files.keys()))
            .collect();
        Self {
            files,
            packages,
            reached: OnceCell::new(),
        }
    }

    /// The packages, in cargo's order.
    pub(crate) fn packages(&self) -> &[Package] {
        &self.packages
    }

    /// Every path there is, text or not.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// One file.
    pub(crate) fn file(&self, path: &str) -> Option<&SourceFile> {
        self.files.get(path)
    }

    /// Every file.
    pub(crate) fn files(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.values()
    }

    /// Every Rust file that belongs to a package: all under `src`, and what its other targets reach.
    pub(crate) fn rust_files(&self) -> impl Iterator<Item = &SourceFile> {
        self.files().filter(|file| {
            file.path.ends_with(".rs")
                && (self.reach(file).is_some()
                    || self
                        .packages
                        .iter()
                        .any(|package| package.holds_source(&file.path)))
        })
    }

    /// What a file is compiled into; `None` when no `mod` reaches it.
    pub(crate) fn reach(&self, file: &SourceFile) -> Option<Reach> {
        self.reached
            .get_or_init(|| modules::walk(self))
            .get(&file.path)
            .copied()
    }

    /// The package that a file belongs to.
    pub(crate) fn package_of(&self, file: &SourceFile) -> Option<&Package> {
        self.packages
            .iter()
            .find(|package| package.holds(&file.path))
    }

    /// The product code of every package but `testkit`, which is test code as a whole.
    pub(super) fn product_code(&self) -> impl Iterator<Item = (&Package, &SourceFile, &Parsed)> {
        self.rust_files().filter_map(|file| {
            let package = self.package_of(file)?;
            let parsed = file.parsed().ok()?;
            let is_product =
                self.reach(file) == Some(Reach::Product) && package.short_name() != "testkit";
            is_product.then_some((package, file, parsed))
        })
    }
}

impl SourceFile {
    fn new(path: String, text: String) -> Self {
        Self {
            path,
            text,
            parsed: OnceCell::new(),
        }
    }

    /// The file as Rust.
    pub(super) fn parsed(&self) -> Result<&Parsed, &ParseProblem> {
        self.parsed
            .get_or_init(|| Parsed::read(&self.text))
            .as_ref()
    }
}

impl Parsed {
    fn read(text: &str) -> Result<Self, ParseProblem> {
        let problem = |span: proc_macro2::Span, message: String| ParseProblem {
            line: span.start().line,
            message,
        };
        let syntax =
            syn::parse_file(text).map_err(|error| problem(error.span(), error.to_string()))?;
        let stream: TokenStream = text
            .parse()
            .map_err(|error: proc_macro2::LexError| problem(error.span(), error.to_string()))?;
        let tokens = source::tokens(stream.clone());
        let product = source::tokens(source::without_tests(stream));
        Ok(Self {
            syntax,
            tokens,
            product,
        })
    }
}

impl Package {
    /// The name without the common prefix; the program itself is `cli`.
    pub(crate) fn short_name(&self) -> &str {
        short_name(&self.name)
    }

    /// Whether the path is inside this package.
    pub(crate) fn holds(&self, path: &str) -> bool {
        path.strip_prefix(&self.folder)
            .is_some_and(|rest| rest.starts_with('/'))
    }

    /// Whether the path is a Rust file under this package's `src`.
    pub(crate) fn holds_source(&self, path: &str) -> bool {
        path.strip_prefix(&self.folder)
            .is_some_and(|rest| rest.starts_with("/src/"))
            && path.ends_with(".rs")
    }

    /// The path of its manifest.
    pub(crate) fn manifest(&self) -> String {
        format!("{}/Cargo.toml", self.folder)
    }

    fn read(root: &Path, package: &cargo_metadata::Package) -> Self {
        let manifest = relative(root, package.manifest_path.as_std_path());
        let folder = manifest
            .strip_suffix("/Cargo.toml")
            .unwrap_or_default()
            .to_owned();
        let targets = package
            .targets
            .iter()
            .map(|target| Target {
                kind: if target.is_test() || target.is_bench() || target.is_example() {
                    TargetKind::Test
                } else {
                    TargetKind::Product
                },
                path: relative(root, target.src_path.as_std_path()),
            })
            .collect();
        let dependencies = package
            .dependencies
            .iter()
            .map(|dependency| Dependency {
                name: dependency.name.clone(),
                kind: if dependency.kind == DependencyKind::Development {
                    Need::Test
                } else {
                    Need::Product
                },
            })
            .collect();
        Self {
            name: package.name.to_string(),
            folder,
            targets,
            dependencies,
        }
    }

    /// A library package in its conventional folder.
    #[cfg(test)]
    pub(super) fn sample(name: &str) -> Self {
        let short = short_name(name);
        let folder = if short == "xtask" {
            short.to_owned()
        } else {
            format!("crates/{short}")
        };
        let root = if matches!(short, "xtask" | "cli") {
            "main.rs"
        } else {
            "lib.rs"
        };
        let targets = vec![Target {
            kind: TargetKind::Product,
            path: format!("{folder}/src/{root}"),
        }];
        Self {
            name: name.to_owned(),
            folder,
            targets,
            dependencies: Vec::new(),
        }
    }

    /// The package with one more dependency of its product.
    #[cfg(test)]
    pub(super) fn needs(mut self, name: &str) -> Self {
        self.dependencies.push(Dependency {
            name: name.to_owned(),
            kind: Need::Product,
        });
        self
    }

    /// The package with one more dependency of its tests.
    #[cfg(test)]
    pub(super) fn tests_need(mut self, name: &str) -> Self {
        self.dependencies.push(Dependency {
            name: name.to_owned(),
            kind: Need::Test,
        });
        self
    }

    /// As cargo does: every file directly under `tests/` is a target.
    #[cfg(test)]
    fn with_test_targets<'a>(mut self, paths: impl Iterator<Item = &'a String>) -> Self {
        for path in paths {
            let name = path
                .strip_prefix(&self.folder)
                .and_then(|rest| rest.strip_prefix("/tests/"));
            if name.is_some_and(|name| name.ends_with(".rs") && !name.contains('/')) {
                self.targets.push(Target {
                    kind: TargetKind::Test,
                    path: path.clone(),
                });
            }
        }
        self
    }
}

/// A package's name as the edge table and the folders have it.
pub(crate) fn short_name(name: &str) -> &str {
    match name {
        "crucible" => "cli",
        name => name.strip_prefix("crucible-").unwrap_or(name),
    }
}

fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root)
        .unwrap_or(path)
        .to_string_lossy()
        .replace('\\', "/")
}

fn read_text(path: &Path) -> Result<String, TaskError> {
    let size = fs::metadata(path)
        .map_err(TaskError::io("look at", path))?
        .len();
    if size > TEXT_LIMIT {
        return Ok(String::new());
    }
    let bytes = fs::read(path).map_err(TaskError::io("read", path))?;
    Ok(String::from_utf8(bytes).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_contains_only_files_of_its_folder() {
        let package = Package::sample("crucible-run");
        assert!(package.holds("crates/run/src/lib.rs"));
        assert!(!package.holds("crates/runner/src/lib.rs"));
        assert!(package.holds_source("crates/run/src/a.rs"));
        assert!(!package.holds_source("crates/run/tests/a.rs"));
    }

    #[test]
    fn parse_error_names_its_line() {
        let file = SourceFile::new("a.rs".to_owned(), "fn a() {}\nfn (".to_owned());
        assert_eq!(file.parsed().err().map(|problem| problem.line), Some(2));
    }

    #[test]
    fn the_program_is_named_by_its_folder() {
        assert_eq!(short_name("crucible"), "cli");
        assert_eq!(short_name("crucible-patch"), "patch");
        assert_eq!(short_name("xtask"), "xtask");
    }
}
