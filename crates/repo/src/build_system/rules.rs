//! How each build system is detected in one directory: the seed's table, row by row.

use super::{BuildSystem, Detection, ProjectFiles};
use crate::sample::join;

/// One directory.
struct DirectoryFiles<'v, 'a> {
    files: &'v ProjectFiles<'a>,
    directory: &'v str,
}

/// Returns the files that identify a build system; empty if it is another.
type Rule = fn(&DirectoryFiles<'_, '_>) -> Vec<&'static str>;

/// In the order of the seed's table: of two that are equally sure, the earlier one is it.
const RULES: &[(BuildSystem, Rule)] = &[
    (BuildSystem::Cargo, |place| place.all(&["Cargo.toml"])),
    (BuildSystem::Go, |place| place.all(&["go.mod"])),
    (BuildSystem::NodeNpm, |place| {
        place.all(&["package.json", "package-lock.json"])
    }),
    (BuildSystem::NodeYarn, |place| {
        place.all(&["package.json", "yarn.lock"])
    }),
    (BuildSystem::NodePnpm, |place| {
        place.all(&["package.json", "pnpm-lock.yaml"])
    }),
    (BuildSystem::PythonPip, |place| {
        if place.has("pyproject.toml") {
            Vec::new()
        } else {
            place.any(&["requirements.txt", "setup.py"])
        }
    }),
    (BuildSystem::PythonPoetry, |place| {
        place.all(&["pyproject.toml", "poetry.lock"])
    }),
    (BuildSystem::PythonSetuptools, |place| {
        if place.builds_with_setuptools() {
            vec!["pyproject.toml"]
        } else {
            Vec::new()
        }
    }),
    (BuildSystem::Cmake, |place| place.all(CMAKE)),
    (BuildSystem::Meson, |place| place.all(MESON)),
    (BuildSystem::Autotools, |place| place.any(AUTOTOOLS)),
    (BuildSystem::Make, |place| {
        let others = [CMAKE, AUTOTOOLS].concat();
        if place.any(&others).is_empty() {
            place.any(MAKE)
        } else {
            Vec::new()
        }
    }),
];

const CMAKE: &[&str] = &["CMakeLists.txt"];
const MESON: &[&str] = &["meson.build"];
const AUTOTOOLS: &[&str] = &["configure.ac", "Makefile.am"];
const MAKE: &[&str] = &["Makefile", "GNUmakefile"];

/// All files that mean that a directory is built.
pub(super) const BUILD_FILES: &[&str] = &[
    "Cargo.toml",
    "go.mod",
    "package.json",
    "pyproject.toml",
    "requirements.txt",
    "setup.py",
    "CMakeLists.txt",
    "meson.build",
    "configure.ac",
    "Makefile.am",
    "Makefile",
    "GNUmakefile",
];

/// Detects the build system of `directory` by its own files alone.
pub(super) fn detect_in(files: &ProjectFiles<'_>, directory: &str) -> Detection {
    let place = DirectoryFiles { files, directory };
    let matches = RULES.iter().map(|(system, rule)| (*system, rule(&place)));
    let mut matches: Vec<_> = matches.filter(|(_, found)| !found.is_empty()).collect();
    // The sort is stable: the table's order decides among the equally sure.
    matches.sort_by(|(a, _), (b, _)| b.confidence().total_cmp(&a.confidence()));
    let at = if directory.is_empty() {
        "at the top".to_owned()
    } else {
        format!("in {directory}")
    };
    let detection = |system, names: &[&str], reasons| Detection {
        system,
        directory: directory.to_owned(),
        detected_files: names.iter().map(|name| join(directory, name)).collect(),
        reasons,
    };
    let Some(((system, names), others)) = matches.split_first() else {
        let (names, reasons) = place.nearly(&at);
        return detection(BuildSystem::Unknown, &names, reasons);
    };
    let is = if names.len() == 1 { "is" } else { "are" };
    let mut reasons = vec![format!("{system}: {} {is} {at}", names.join(" and "))];
    for (other, names) in others {
        let why = if other.confidence() < system.confidence() {
            "less sure"
        } else {
            "as sure, and later in the table"
        };
        reasons.push(format!(
            "not {other}, which {} would mean: it is {why}",
            names.join(" and ")
        ));
    }
    detection(*system, names, reasons)
}

impl DirectoryFiles<'_, '_> {
    fn has(&self, name: &str) -> bool {
        self.files.has(self.directory, name)
    }

    /// The names, if all of them are here.
    fn all(&self, names: &[&'static str]) -> Vec<&'static str> {
        if names.iter().all(|name| self.has(name)) {
            names.to_vec()
        } else {
            Vec::new()
        }
    }

    /// Those names that are here.
    fn any(&self, names: &[&'static str]) -> Vec<&'static str> {
        names
            .iter()
            .copied()
            .filter(|name| self.has(name))
            .collect()
    }

    /// Whether `[build-system]` of a `pyproject.toml` that can be read requires setuptools or names its backend.
    fn builds_with_setuptools(&self) -> bool {
        let Some(manifest) = self.files.toml(self.directory, "pyproject.toml") else {
            return false;
        };
        let Some(system) = manifest.get("build-system").and_then(toml::Value::as_table) else {
            return false;
        };
        let requires = system.get("requires").and_then(toml::Value::as_array);
        let is_required = requires
            .into_iter()
            .flatten()
            .filter_map(toml::Value::as_str)
            .any(is_setuptools);
        let backend = system
            .get("build-backend")
            .and_then(toml::Value::as_str)
            .unwrap_or_default();
        is_required || backend.split(['.', ':']).next() == Some("setuptools")
    }

    /// Returns files that nearly identify a build system, and what is missing.
    fn nearly(&self, at: &str) -> (Vec<&'static str>, Vec<String>) {
        let mut names = Vec::new();
        let mut reasons = Vec::new();
        if self.has("package.json") {
            names.push("package.json");
            reasons.push(format!(
                "unknown: package.json is {at} and no lock file beside it says which package manager to use \
                 (package-lock.json, yarn.lock or pnpm-lock.yaml)"
            ));
        }
        if self.has("pyproject.toml") {
            names.push("pyproject.toml");
            let is_read = self.files.toml(self.directory, "pyproject.toml").is_some();
            reasons.push(if is_read {
                format!(
                    "unknown: pyproject.toml is {at}, but there is no poetry.lock and its [build-system] does not name \
                     setuptools"
                )
            } else {
                format!("unknown: pyproject.toml is {at} and could not be read as TOML")
            });
        }
        if names.is_empty() {
            reasons.push(format!("unknown: none of the known build files is {at}"));
        }
        (names, reasons)
    }
}

/// Whether a requirement such as `setuptools>=61; python_version > "3"` is for setuptools and not for one of its plugins.
fn is_setuptools(requirement: &str) -> bool {
    let requirement = requirement.trim_start();
    let end =
        requirement.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')));
    requirement[..end.unwrap_or(requirement.len())].eq_ignore_ascii_case("setuptools")
}
