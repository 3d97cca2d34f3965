//! tox and nox: used if nothing else shows how the Python tests run. Both create environments, which needs a
//! network; pytest or unittest run the same tests in the existing one.

use super::{Call, Runner, RunnerFiles, Tool, TreeView, command, pytest, unittest};

pub(super) const TOX: Environments = Environments {
    program: "tox",
    files: &["tox.ini"],
    tool: "run `python3 -m pip install tox`",
    influence: RunnerFiles {
        programs: &["tox"],
        recipes: &["tox.ini", "setup.cfg", "pyproject.toml"],
        settings: &[],
    },
    signs: &[
        (
            "No module named tox",
            "run `python3 -m pip install tox` with the Python that the gate starts",
        ),
        (
            "No matching distribution found",
            "gates have no network: run `tox run --notest` once",
        ),
        (
            "Temporary failure in name resolution",
            "gates have no network: run `tox run --notest` once",
        ),
        (
            "could not find python interpreter",
            "install the Python that tox.ini names, or run `tox run -e py`",
        ),
        (
            "InterpreterNotFound",
            "install the Python that tox.ini names, or run `tox run -e py`",
        ),
    ],
};

pub(super) const NOX: Environments = Environments {
    program: "nox",
    files: &["noxfile.py"],
    tool: "run `python3 -m pip install nox`",
    influence: RunnerFiles {
        programs: &["nox"],
        recipes: &["noxfile.py"],
        settings: &[],
    },
    signs: &[
        (
            "No module named nox",
            "run `python3 -m pip install nox` with the Python that the gate starts",
        ),
        (
            "No matching distribution found",
            "gates have no network: run `nox --install-only` once",
        ),
        (
            "Temporary failure in name resolution",
            "gates have no network: run `nox --install-only` once",
        ),
        (
            "not found in PATH",
            "install the Python that noxfile.py names",
        ),
    ],
};

/// One of the two.
pub(super) struct Environments {
    program: &'static str,
    files: &'static [&'static str],
    tool: &'static str,
    influence: RunnerFiles,
    signs: &'static [(&'static str, &'static str)],
}

impl Runner for Environments {
    fn id(&self) -> &'static str {
        self.program
    }

    fn tool(&self) -> Tool {
        Tool {
            program: self.program,
            install: self.tool,
        }
    }

    fn detect(&self, view: &TreeView) -> Option<(Vec<String>, String)> {
        let name = view.first(self.files)?;
        let is_known =
            pytest::Pytest.detect(view).is_some() || unittest::Unittest.detect(view).is_some();
        // tox is preferred over nox.
        let is_second = self.program == "nox" && TOX.detect(view).is_some();
        (!is_known && !is_second).then(|| {
            (
                command(&[self.program]),
                format!("there is a {name} at the top"),
            )
        })
    }

    fn alternatives(&self, view: &TreeView) -> Vec<Vec<String>> {
        vec![unittest::discover(view)]
    }

    fn runs(&self, call: &Call<'_>) -> bool {
        call.program == self.program
    }

    fn calls_others(&self) -> bool {
        true
    }

    fn suite(&self) -> &'static str {
        "python"
    }

    fn influence(&self) -> RunnerFiles {
        self.influence
    }

    fn signs(&self) -> &'static [(&'static str, &'static str)] {
        self.signs
    }
}

#[cfg(test)]
mod tests {
    use crate::runner::tree_view::view;

    #[test]
    fn tox_is_used_as_last_resort() {
        let ids = |files: &[(&str, &str)]| -> Vec<String> {
            view(files)
                .gates()
                .into_iter()
                .map(|gate| gate.id)
                .collect()
        };
        assert_eq!(
            ids(&[
                ("tox.ini", "[testenv]\ncommands = stestr run"),
                ("noxfile.py", "")
            ]),
            ["tox"]
        );
        assert_eq!(ids(&[("noxfile.py", "")]), ["nox"]);
        assert_eq!(
            ids(&[("tox.ini", "[testenv]\ncommands = pytest")]),
            ["pytest"]
        );
    }
}
