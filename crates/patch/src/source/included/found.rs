//! What the readers of all languages report: the files that a text has read, and where they lie.

use std::collections::{BTreeMap, BTreeSet};

use crucible_model::RepoPath;

/// A file that a text has read, from a place that is not the repository or cannot be determined.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Included {
    pub(crate) reach: Reach,
    construct: String,
    /// The path or the expression, as it is written.
    pub(super) target: String,
}

impl Included {
    /// The construct and the path, short enough to be shown.
    pub(crate) fn what(&self) -> String {
        let target: String = self.target.chars().take(MAX_SHOWN).collect();
        format!("{} of {target:?}", self.construct)
    }
}

/// Where an included file lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// Outside of the repository, or among git's own files.
    Outside,
    /// The path is not written in a form that is understood.
    Unknown,
}

/// How much of a path is shown.
pub(super) const MAX_SHOWN: usize = 120;
/// Directories of the machine in which no sources lie.
pub(super) const SYSTEM: [&str; 10] = [
    "Users", "boot", "dev", "etc", "home", "private", "proc", "root", "sys", "var",
];

/// Further directories of the machine, which a text names where it is the path of a file.
pub(super) const PLACES: [&str; 10] = [
    "Applications",
    "Library",
    "lib",
    "media",
    "mnt",
    "opt",
    "run",
    "srv",
    "tmp",
    "usr",
];

/// Whether a text plainly is the path of a place of the machine, or one that climbs.
pub(super) fn is_place(text: &str) -> bool {
    if text.contains([' ', '\n']) {
        return false;
    }
    let text = text.strip_prefix("file://").unwrap_or(text);
    let first = text.trim_start_matches('/').split('/').next();
    let is_known = first.is_some_and(|first| SYSTEM.contains(&first) || PLACES.contains(&first));
    let is_rooted = text.starts_with('/') && is_known;
    is_rooted || text.starts_with("~/") || text.starts_with("../") || text.starts_with("./../")
}

/// Which constructs a file may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Family {
    Rust,
    /// C, what descends from it, and what its preprocessor reads.
    C,
    /// Assembly, which the preprocessor of C may read first.
    Assembly,
    Script,
    Go,
    Python,
    /// Text for people or data: only the constructs that the table gives its ending.
    Data,
    /// Everything else.
    Other,
}

impl Family {
    pub(super) fn from_path(path: &RepoPath) -> Self {
        Self::of_name(path.segments().next_back().unwrap_or_default())
    }

    pub(super) fn of_name(name: &str) -> Self {
        let file = name.rsplit(['/', '\\']).next().unwrap_or_default();
        let ending = file
            .rsplit_once('.')
            .filter(|(stem, _)| !stem.is_empty())
            .map(|(_, ending)| ending);
        match ending.unwrap_or_default().to_ascii_lowercase().as_str() {
            "rs" => Self::Rust,
            "py" | "pyi" | "pyw" | "pyx" | "pxd" | "pxi" => Self::Python,
            "js" | "jsx" | "mjs" | "cjs" | "ts" | "tsx" | "mts" | "cts" => Self::Script,
            "go" => Self::Go,
            "c" | "h" | "cc" | "cp" | "cpp" | "cxx" | "c++" | "hh" | "hp" | "hpp" | "hxx"
            | "h++" | "inl" | "ipp" | "ixx" | "tpp" | "txx" | "tcc" | "tcl++" | "cppm" | "cxxm"
            | "c++m" | "ccm" | "mpp" | "m" | "mm" | "cu" | "cuh" | "cl" | "hip" | "metal"
            | "glsl" | "vert" | "frag" | "geom" | "comp" | "tesc" | "tese" | "hlsl" | "def"
            | "pch" | "y" | "yy" | "ypp" | "l" | "ll" | "lpp" | "re" | "idl" | "ino" | "i"
            | "ii" | "mi" | "xpm" | "xbm" | "swig" | "rc" | "dts" | "dtsi" | "lds" | "inc" => {
                Self::C
            }
            "s" | "sx" | "asm" | "nasm" | "a51" => Self::Assembly,
            "md" | "markdown" | "rst" | "adoc" | "asciidoc" | "txt" | "html" | "htm" | "xml"
            | "svg" | "json" | "yaml" | "yml" | "toml" | "lock" | "csv" | "tsv" | "ini" | "cfg"
            | "log" | "patch" | "diff" | "out" | "snap" | "po" | "css" | "less" | "sass"
            | "scss" | "tex" => Self::Data,
            _ => Self::Other,
        }
    }
}

pub(super) struct Found<'a> {
    pub(super) path: &'a RepoPath,
    /// How many directories the file lies in.
    pub(super) depth: usize,
    /// The language that the text is read in.
    pub(super) family: Family,
    pub(super) list: Vec<Included>,
    /// The paths of what is read as source in these languages.
    pub(super) sources: BTreeSet<(Family, String)>,
}

impl Found<'_> {
    pub(super) fn push(&mut self, reach: Reach, construct: &str, target: &str) {
        self.list.push(Included {
            reach,
            construct: construct.to_owned(),
            target: target.to_owned(),
        });
    }

    pub(super) fn outside(&mut self, construct: &str, target: &str) {
        self.push(Reach::Outside, construct, target);
    }

    pub(super) fn report_unknown(&mut self, construct: &str, target: &str) {
        self.push(Reach::Unknown, construct, target);
    }

    /// Judges a path that is written from the place of the file.
    pub(super) fn path(&mut self, construct: &str, target: &str) {
        if leaves(target, self.depth) {
            self.outside(construct, target);
        }
    }

    /// Takes note of a path whose file is read as source. One whose ending is that of another language, or of data, is not judged as
    /// source when it changes alone.
    pub(super) fn source(&mut self, family: Family, construct: &str, target: &str) {
        self.sources.insert((family, target.to_owned()));
        let is_own = match Family::of_name(target) {
            Family::Other => true,
            Family::C | Family::Assembly => matches!(family, Family::C | Family::Assembly),
            ending => ending == family,
        };
        if !is_own && !leaves(target, self.depth) {
            self.report_unknown(
                &format!("{construct} with the ending of another language"),
                target,
            );
        }
    }

    /// Judges a path from the root, which may be that of the machine or that of a site.
    pub(super) fn rooted(&mut self, construct: &str, target: &str) {
        let before = self.list.len();
        self.path_of_site(construct, target);
        // Nothing that is worth reading lies in the root of a machine itself.
        if self.list.len() == before && target[1..].contains('/') {
            self.report_unknown(construct, target);
        }
    }

    /// Judges a path whose root may be that of a site or of a bundle: absolute ones count where they name a place of the machine.
    pub(super) fn path_of_site(&mut self, construct: &str, target: &str) {
        let is_rooted = target.starts_with('/') && !target.starts_with("//");
        let first = target
            .trim_start_matches('/')
            .split('/')
            .next()
            .unwrap_or_default();
        let climbs = target.split('/').any(|segment| segment == "..");
        if is_rooted && !climbs && !SYSTEM.contains(&first) {
            return;
        }
        if !target.starts_with("//") {
            self.path(construct, target);
        }
    }
}

/// Whether a path leaves the repository from a directory so deep in it, or comes by git's own files.
pub(super) fn leaves(target: &str, depth: usize) -> bool {
    let target = target.strip_prefix("file:").unwrap_or(target);
    let is_drive =
        matches!(target.as_bytes(), [drive, b':', b'/' | b'\\', ..] if drive.is_ascii_alphabetic());
    if target.starts_with(['/', '\\']) || is_drive {
        return true;
    }
    let mut depth = depth;
    for segment in target.split(['/', '\\']) {
        match segment {
            "" | "." => {}
            ".." if depth == 0 => return true,
            ".." => depth -= 1,
            _ if segment.eq_ignore_ascii_case(".git") => return true,
            _ => depth += 1,
        }
    }
    false
}

/// What two readings of one text find: what both find counts as often as the one that finds it more often.
pub(super) fn union(one: Vec<Included>, other: Vec<Included>) -> Vec<Included> {
    let mut counts: BTreeMap<&Included, usize> = BTreeMap::new();
    for found in &one {
        *counts.entry(found).or_default() += 1;
    }
    let more: Vec<Included> = other
        .iter()
        .filter(|found| match counts.get_mut(found) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        })
        .cloned()
        .collect();
    one.into_iter().chain(more).collect()
}
