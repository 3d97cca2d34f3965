//! What holds of the programs of Python, Node, Rust and Go besides their lines in the golden file: where they work, where a
//! path leads them, and that installing outside the workspace is told.

use crucible_crawl::{PlanSafety, Workspace, validate_plan_safety};

use super::support::{judge, plan, refusals, step, warnings, workspace};

/// The verdict on a command in `cwd`, where `docs/latest` is a link.
fn judge_in(cwd: &str, system: &str, command: &str) -> PlanSafety {
    let mut step = step(command);
    step.cwd = cwd.to_owned();
    let links = ["docs/latest".to_owned()].into();
    validate_plan_safety(&plan(system, vec![step]), &Workspace { links, ..workspace() })
}

#[test]
fn nothing_is_run_or_installed_inside_installed_packages() {
    for (system, cwd, command) in [
        ("node-npm", "node_modules/npm/bin", "node npx-cli.js"),
        ("node-npm", "Node_Modules/npm/bin", "node npx-cli.js dev"),
        ("node-npm", "sub/node_modules/x", "npm install"),
        ("node-yarn", "node_modules/x", "yarn install"),
        ("cargo", "node_modules/x", "cargo build"),
        ("python-pip", ".venv/lib", "python -m unittest"),
        ("python-pip", "venv/lib/python3/site-packages/pip", "python -m unittest discover"),
    ] {
        assert!(!judge_in(cwd, system, command).valid(), "{cwd}: {command}");
        let allowed = judge_in("sub", system, command.trim_end_matches(" dev"));
        assert!(allowed.valid(), "{command}: {:?}", allowed.violations());
    }
}

#[test]
fn a_directory_that_python_or_npm_is_told_leads_through_no_link() {
    for (system, cwd, command) in [
        ("python-pip", ".", "python -m unittest discover -s ./docs/latest"),
        ("python-pip", "docs", "python -m unittest discover ./latest -t ."),
        ("python-pip", ".", "python -m unittest docs/latest/test_x.py"),
        ("python-pip", ".", "pip install -r docs/latest/requirements.txt"),
        ("python-pip", ".", "python -m compileall docs/latest"),
        ("node-npm", ".", "npm run build --workspace docs/latest"),
        ("node-npm", ".", "npm run build --prefix docs --workspace latest"),
        ("node-npm", ".", "npm install --prefix docs/latest"),
        ("go", ".", "go test ./docs/latest/..."),
    ] {
        let codes = refusals(&judge_in(cwd, system, command));
        assert!(codes.contains(&"build-path-link".to_owned()), "{cwd}: {command}: {codes:?}");
    }
}

#[test]
fn what_python_installs_outside_the_workspace_warns_unless_it_is_told_where() {
    for (system, command) in [
        ("python-pip", "pip install ."),
        ("python-pip", "pip install --user ."),
        ("python-pip", "pip3 install -r requirements.txt"),
        ("python-pip", "python -m pip install -e ."),
        ("python-pip", "python setup.py install"),
        ("python-pip", "python setup.py install --user"),
        ("python-setuptools", "python3 setup.py build develop --user"),
        ("python-poetry", "poetry run python setup.py develop"),
    ] {
        let safety = judge(system, command);
        assert!(safety.valid(), "{command}: {:?}", safety.violations());
        assert_eq!(warnings(&safety), ["build-installs-outside"], "{command}");
    }
    for (system, command) in [
        ("python-pip", "pip install --target out ."),
        ("python-pip", "pip install -t out -r requirements.txt"),
        ("python-pip", "pip install --dry-run ."),
        ("python-setuptools", "python3 setup.py install --root=out"),
        ("python-setuptools", "python3 setup.py build"),
        ("python-setuptools", "python3 -m build"),
    ] {
        let safety = judge(system, command);
        assert!(safety.valid(), "{command}: {:?}", safety.violations());
        assert!(!warnings(&safety).contains(&"build-installs-outside".to_owned()), "{command}");
    }
}
