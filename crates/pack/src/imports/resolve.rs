//! The names of imports as paths of a repository.

use std::collections::{BTreeSet, HashMap, HashSet};

use crucible_model::RepoPath;

/// Maximum files per import: a Go package is all of its files.
const MAX_FILES: usize = 40;

#[derive(Debug)]
pub(super) struct Resolver<'p> {
    paths: HashSet<&'p str>,
    /// The directories with a package or module of this name, each with a trailing slash.
    roots: HashMap<&'p str, Vec<&'p str>>,
    /// The files of each directory.
    directories: HashMap<&'p str, Vec<&'p str>>,
    /// The sources and headers of C and C++ by their names up to the first dot.
    c_units: HashMap<&'p str, Vec<&'p str>>,
}

/// Endings of sources of C and C++, headers aside.
const C_SOURCES: [&str; 4] = ["c", "cc", "cpp", "cxx"];
/// Endings of headers.
const C_HEADERS: [&str; 6] = ["h", "hh", "hpp", "hxx", "inl", "ipp"];

/// More files than this that a header's name fits, and it names none of them.
const MAX_FITTING: usize = 4;

impl<'p> Resolver<'p> {
    pub(super) fn new(paths: impl IntoIterator<Item = &'p RepoPath>) -> Self {
        let mut sorted: Vec<&str> = paths.into_iter().map(RepoPath::as_str).collect();
        sorted.sort_unstable();
        let mut resolver = Self {
            paths: sorted.iter().copied().collect(),
            roots: HashMap::new(),
            directories: HashMap::new(),
            c_units: HashMap::new(),
        };
        for path in sorted {
            let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
            resolver
                .directories
                .entry(directory)
                .or_default()
                .push(path);
            if let Some((stem, end)) = name.split_once('.')
                && (C_SOURCES.contains(&end) || C_HEADERS.contains(&end))
            {
                resolver.c_units.entry(stem).or_default().push(path);
            }
            let root = match name {
                "__init__.py" | "package.json" if !directory.is_empty() => directory,
                _ => path.strip_suffix(".py").unwrap_or_default(),
            };
            let last = root.rsplit('/').next().unwrap_or_default();
            if !last.is_empty() {
                let above = &root[..root.len() - last.len()];
                resolver.roots.entry(last).or_default().push(above);
            }
        }
        resolver
    }

    /// Adds the first of these that exists.
    fn first(
        &self,
        names: impl IntoIterator<Item = String>,
        found: &mut BTreeSet<RepoPath>,
    ) -> bool {
        let name = names
            .into_iter()
            .find(|name| self.paths.contains(name.as_str()));
        let path = name.and_then(|name| name.parse().ok());
        path.is_some_and(|path| {
            found.insert(path);
            true
        })
    }

    fn python_module(&self, place: &str, found: &mut BTreeSet<RepoPath>) -> bool {
        let ends = [".py", "/__init__.py", ".pyi"];
        !place.is_empty() && self.first(ends.map(|end| format!("{place}{end}")), found)
    }

    /// `from module import names`, or `import module`.
    pub(super) fn python(
        &self,
        from: &RepoPath,
        module: &str,
        names: &[&str],
        found: &mut BTreeSet<RepoPath>,
    ) {
        let dots = module.len() - module.trim_start_matches('.').len();
        let inside = module.trim_start_matches('.').replace('.', "/");
        let places: Vec<String> = if dots > 0 {
            let mut segments: Vec<&str> = from.as_str().split('/').collect();
            segments.truncate(segments.len().saturating_sub(dots));
            if !inside.is_empty() {
                segments.push(&inside);
            }
            vec![segments.join("/")]
        } else {
            let head = inside.split('/').next().unwrap_or_default();
            let roots = self.roots.get(head).map(Vec::as_slice).unwrap_or_default();
            roots
                .iter()
                .take(MAX_FILES)
                .map(|root| format!("{root}{inside}"))
                .collect()
        };
        for place in places {
            let is_there = self.python_module(&place, found);
            let mut inner = false;
            for name in names {
                inner |= self.python_module(&format!("{place}/{name}"), found);
            }
            if is_there || inner {
                return;
            }
        }
    }

    /// `import … from name`, `require(name)`.
    pub(super) fn script(&self, from: &RepoPath, name: &str, found: &mut BTreeSet<RepoPath>) {
        if name.starts_with('.') {
            let directory = from.directory();
            if let Some(place) = joined(directory, name) {
                self.script_file(&place, found);
            }
            return;
        }
        // A package of the workspace, by the name of its directory.
        let mut segments = name.split('/').skip(usize::from(name.starts_with('@')));
        let package = segments.next().unwrap_or_default();
        let inside: Vec<&str> = segments.collect();
        for root in self
            .roots
            .get(package)
            .into_iter()
            .flatten()
            .take(MAX_FILES)
        {
            for source in ["src/", "", "lib/"] {
                let place = format!("{root}{package}/{source}{}", inside.join("/"));
                if self.script_file(place.trim_end_matches('/'), found) {
                    return;
                }
            }
        }
    }

    fn script_file(&self, place: &str, found: &mut BTreeSet<RepoPath>) -> bool {
        const ENDS: [&str; 8] = [
            ".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".d.ts",
        ];
        let stem = [".js", ".mjs", ".cjs", ".jsx"]
            .iter()
            .find_map(|end| place.strip_suffix(end));
        let mut names = vec![place.to_owned()];
        for stem in [Some(place), stem]
            .into_iter()
            .flatten()
            .filter(|stem| !stem.is_empty())
        {
            names.extend(ENDS.iter().map(|end| format!("{stem}{end}")));
        }
        for main in ["index", "src/index", "lib/index"] {
            let main = if place.is_empty() {
                main.to_owned()
            } else {
                format!("{place}/{main}")
            };
            names.extend(ENDS.iter().map(|end| format!("{main}{end}")));
        }
        self.first(names, found)
    }

    /// All files of the package that a file of Go belongs to, tests aside.
    pub(super) fn package_of(&self, from: &RepoPath, found: &mut BTreeSet<RepoPath>) {
        let directory = from.directory();
        self.go_package(directory, found);
    }

    fn go_package(&self, directory: &str, found: &mut BTreeSet<RepoPath>) -> bool {
        let files = self
            .directories
            .get(directory)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let files = files
            .iter()
            .filter(|path| path.ends_with(".go") && !path.ends_with("_test.go"));
        let files: Vec<RepoPath> = files
            .take(MAX_FILES)
            .filter_map(|path| path.parse().ok())
            .collect();
        let is_any = !files.is_empty();
        found.extend(files);
        is_any
    }

    /// Finds a package by its import path: the longest suffix that is a directory here.
    pub(super) fn go(&self, name: &str, found: &mut BTreeSet<RepoPath>) {
        let mut rest = name;
        while let Some((_, inside)) = rest.split_once('/') {
            if self.go_package(inside, found) {
                return;
            }
            rest = inside;
        }
    }

    /// The modules that the words of a `use` or a `mod` name.
    pub(super) fn rust(&self, from: &RepoPath, words: &[&str], found: &mut BTreeSet<RepoPath>) {
        let path = from.as_str();
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let stem = name.trim_end_matches(".rs");
        let own = if matches!(stem, "mod" | "lib" | "main") || words[0] == "use" {
            directory.to_owned()
        } else {
            format!("{directory}/{stem}")
        };
        let top = path
            .split_once("src/")
            .or_else(|| path.split_once("tests/"))
            .map_or("", |(top, _)| top);
        let foreign = words.get(1).copied().unwrap_or_default();
        let mut bases = vec![own];
        match (words[0], foreign) {
            ("mod", _) => {}
            (_, "self" | "super") => bases.push(
                directory
                    .rsplit_once('/')
                    .map_or("", |(up, _)| up)
                    .to_owned(),
            ),
            (_, "crate") => bases = vec![format!("{top}src")],
            _ => bases = self.crates_named(foreign, top),
        }
        for base in bases {
            if words[0] == "use" && !matches!(foreign, "self" | "super") {
                self.first(
                    ["lib.rs", "main.rs"].map(|main| format!("{base}/{main}")),
                    found,
                );
            }
            let mut place = base.clone();
            // Words of a group are alternatives; each is looked up below what precedes it and below the base.
            for word in words.iter().skip(1) {
                let below = format!("{place}/{word}");
                let is_there = self.rust_module(&below, found);
                if is_there || self.directories.contains_key(below.as_str()) {
                    place = below;
                } else {
                    self.rust_module(&format!("{base}/{word}"), found);
                }
            }
        }
    }

    fn rust_module(&self, place: &str, found: &mut BTreeSet<RepoPath>) -> bool {
        self.first(
            [".rs", "/mod.rs"].map(|end| format!("{}{end}", place.trim_start_matches('/'))),
            found,
        )
    }

    /// Returns the source directories of the crates with this name: the crate of a test, and those in a
    /// directory of this name.
    fn crates_named(&self, name: &str, top: &str) -> Vec<String> {
        let requested = name.replace('_', "-");
        let mut bases: Vec<String> = self
            .directories
            .keys()
            .filter(|directory| {
                directory.strip_suffix("/src").is_some_and(|package| {
                    let last = package.rsplit('/').next().unwrap_or_default();
                    last == name
                        || last == requested
                        || (requested.ends_with(last)
                            && requested.len() > last.len()
                            && requested[..requested.len() - last.len()].ends_with('-'))
                })
            })
            .map(|directory| (*directory).to_owned())
            .collect();
        bases.sort_unstable();
        bases.truncate(4);
        if bases.is_empty() && !matches!(name, "std" | "core" | "alloc") {
            bases.push(format!("{top}src"));
        }
        bases
    }

    /// `#include "name"`: the header, and the sources of its name, which hold what it declares.
    pub(super) fn c(&self, from: &RepoPath, name: &str, found: &mut BTreeSet<RepoPath>) {
        let file = name.rsplit('/').next().unwrap_or(name);
        let Some((stem, end)) = file.split_once('.') else {
            return;
        };
        let same = self
            .c_units
            .get(stem)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let directory = from.directory();
        let near = joined(directory, name);
        let exact = same.iter().filter(|path| near.as_deref() == Some(**path));
        let mut headers: Vec<&str> = exact.copied().collect();
        if headers.is_empty() {
            let inside = name.trim_start_matches("../").trim_start_matches("./");
            let fits = same.iter().filter(|path| {
                path.strip_suffix(inside)
                    .is_some_and(|above| above.is_empty() || above.ends_with('/'))
            });
            headers.extend(fits.copied());
        }
        if headers.is_empty() || headers.len() > MAX_FITTING {
            return;
        }
        if C_HEADERS.contains(&end) {
            let sources = same.iter().filter(|path| {
                path.rsplit_once('.')
                    .is_some_and(|(_, end)| C_SOURCES.contains(&end))
            });
            let sources: Vec<&str> = sources.copied().collect();
            if sources.len() <= MAX_FITTING {
                headers.extend(sources);
            }
        }
        found.extend(headers.into_iter().filter_map(|path| path.parse().ok()));
    }

    /// A class by its full name.
    pub(super) fn java(&self, name: &str, found: &mut BTreeSet<RepoPath>) {
        let inside = name.trim().replace('.', "/");
        let Some((package, class)) = inside.rsplit_once('/') else {
            return;
        };
        for (directory, files) in &self.directories {
            if *directory == package
                || directory
                    .strip_suffix(package)
                    .is_some_and(|above| above.ends_with('/'))
            {
                let requested = files.iter().filter(|path| {
                    let stem = path
                        .rsplit('/')
                        .next()
                        .and_then(|name| name.split('.').next());
                    class == "*" || stem == Some(class)
                });
                found.extend(
                    requested
                        .take(MAX_FILES)
                        .filter_map(|path| path.parse().ok()),
                );
            }
        }
    }
}

/// Resolves a relative name from a directory; `None` if it leaves the repository.
fn joined(directory: &str, name: &str) -> Option<String> {
    let mut segments: Vec<&str> = directory
        .split('/')
        .filter(|segment| !segment.is_empty())
        .collect();
    for segment in name.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop()?;
            }
            _ => segments.push(segment),
        }
    }
    Some(segments.join("/"))
}
