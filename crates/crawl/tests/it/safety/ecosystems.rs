//! Rules for Python, Node, Rust and Go besides the golden file: working directories, paths, and warnings
//! about installs outside of the workspace.

use std::collections::{BTreeMap, BTreeSet};

use crucible_crawl::{PlanSafety, PlanStep, Workspace, validate_plan_safety};

use super::support::{judge, plan, refusals, step, warnings, workspace};

/// The verdict on a command in `cwd`, where `docs/latest` is a link.
fn judge_in(cwd: &str, system: &str, command: &str) -> PlanSafety {
    let mut step = step(command);
    step.cwd = cwd.to_owned();
    let links = ["docs/latest".to_owned()].into();
    validate_plan_safety(
        &plan(system, vec![step]),
        &Workspace {
            links,
            ..workspace()
        },
    )
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
        (
            "python-pip",
            "venv/lib/python3/site-packages/pip",
            "python -m unittest discover",
        ),
    ] {
        assert!(
            !judge_in(cwd, system, command).is_valid(),
            "{cwd}: {command}"
        );
        let allowed = judge_in("sub", system, command.trim_end_matches(" dev"));
        assert!(allowed.is_valid(), "{command}: {:?}", allowed.violations());
    }
}

#[test]
fn python_and_npm_directories_avoid_links() {
    for (system, cwd, command) in [
        (
            "python-pip",
            ".",
            "python -m unittest discover -s ./docs/latest",
        ),
        (
            "python-pip",
            "docs",
            "python -m unittest discover ./latest -t .",
        ),
        (
            "python-pip",
            ".",
            "python -m unittest docs/latest/test_x.py",
        ),
        (
            "python-pip",
            ".",
            "pip install -r docs/latest/requirements.txt",
        ),
        ("python-pip", ".", "python -m compileall docs/latest"),
        ("node-npm", ".", "npm run build --workspace docs/latest"),
        (
            "node-npm",
            ".",
            "npm run build --prefix docs --workspace latest",
        ),
        ("node-npm", ".", "npm install --prefix docs/latest"),
        ("go", ".", "go test ./docs/latest/..."),
    ] {
        let codes = refusals(&judge_in(cwd, system, command));
        assert!(
            codes.contains(&"build-path-link".to_owned()),
            "{cwd}: {command}: {codes:?}"
        );
    }
}

/// A step's name, command and variables.
type TestStep<'t> = (&'t str, &'t str, &'t [(&'t str, &'t str)]);

/// The verdict on steps, each with its `cwd` and variables, in a repository whose `package.json` declares
/// these packages.
fn judge_steps(steps: &[TestStep<'_>], declared: &[(&str, &str)]) -> PlanSafety {
    let steps = steps.iter().map(|(command, cwd, variables)| PlanStep {
        cwd: (*cwd).to_owned(),
        env: variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        ..step(command)
    });
    let mut packages = BTreeMap::<String, BTreeSet<String>>::new();
    for (directory, package) in declared {
        packages
            .entry((*directory).to_owned())
            .or_default()
            .insert((*package).to_owned());
    }
    validate_plan_safety(
        &plan("node-npm", steps.collect()),
        &Workspace {
            declared: packages,
            ..workspace()
        },
    )
}

#[test]
fn npx_runs_declared_tool_after_install() {
    let declared = &[(".", "eslint"), (".", "typescript"), ("web", "jest")];
    let valid = |steps: &[TestStep<'_>]| {
        let safety = judge_steps(steps, declared);
        assert!(safety.is_valid(), "{steps:?}: {:?}", safety.violations());
    };
    valid(&[("npm ci", ".", &[]), ("npx eslint .", ".", &[])]);
    valid(&[
        ("npm install --no-audit", ".", &[("NODE_ENV", "test")]),
        ("npx tsc --noEmit", "./", &[]),
    ]);
    valid(&[("npm ci", "web", &[]), ("npx jest --ci", "web/", &[])]);
    for steps in [
        // Not installed, or in another directory, or without its package, or only later.
        &[("npx eslint .", ".", &[] as &[(&str, &str)])][..],
        &[("npx eslint .", ".", &[]), ("npm ci", ".", &[])],
        &[("npm ci", "web", &[]), ("npx eslint .", ".", &[])],
        &[("npm ci", ".", &[]), ("npx eslint .", "web", &[])],
        &[("npm ci --omit dev", ".", &[]), ("npx eslint .", ".", &[])],
        &[("npm ci --omit=dev", ".", &[]), ("npx eslint .", ".", &[])],
        &[
            ("npm install --production", ".", &[]),
            ("npx eslint .", ".", &[]),
        ],
        &[
            ("npm install --only prod", ".", &[]),
            ("npx eslint .", ".", &[]),
        ],
        &[
            ("npm install --package-lock-only", ".", &[]),
            ("npx eslint .", ".", &[]),
        ],
        &[
            ("npm install --no-bin-links", ".", &[]),
            ("npx eslint .", ".", &[]),
        ],
        &[
            ("npm install --prefix web", ".", &[]),
            ("npx eslint .", ".", &[]),
        ],
        &[
            ("npm ci --workspace web", ".", &[]),
            ("npx eslint .", ".", &[]),
        ],
        &[
            ("npm ci", ".", &[("NODE_ENV", "production")]),
            ("npx eslint .", ".", &[]),
        ],
        &[
            ("npm ci", ".", &[]),
            ("npm ci --omit=dev", ".", &[]),
            ("npx eslint .", ".", &[]),
        ],
        &[
            ("npm ci", ".", &[]),
            ("npm install --prefix ./ --omit dev", "web", &[]),
            ("npx eslint .", ".", &[]),
        ],
        &[
            ("npm ci", ".", &[]),
            ("npm ci", ".", &[("NODE_ENV", "production")]),
            ("npx eslint .", ".", &[]),
        ],
        // Other tools than the declared ones, and options of npx itself.
        &[("npm ci", ".", &[]), ("npx prettier --check .", ".", &[])],
        &[("npm ci", ".", &[]), ("npx jest", ".", &[])],
        &[("npm ci", ".", &[]), ("npx typescript", ".", &[])],
        &[("npm ci", ".", &[]), ("npx eslint@9 .", ".", &[])],
        &[("npm ci", ".", &[]), ("npx -y eslint .", ".", &[])],
        &[("npm ci", ".", &[]), ("npx --yes eslint .", ".", &[])],
        &[("npm ci", ".", &[]), ("npx -p evil eslint .", ".", &[])],
        &[("npm ci", ".", &[]), ("npx eslint --fix .", ".", &[])],
        &[
            ("npm ci", ".", &[]),
            ("npx eslint --config evil.js .", ".", &[]),
        ],
    ] {
        let codes = refusals(&judge_steps(steps, declared));
        assert!(
            codes.contains(&"build-option-refused".to_owned()),
            "{steps:?}: {codes:?}"
        );
    }
    // Every tool of the table is well known: a repository that declares another package of that name uses
    // its own code.
    assert!(
        !judge_steps(
            &[("npm ci", ".", &[]), ("npx left-pad", ".", &[])],
            &[(".", "left-pad")]
        )
        .is_valid()
    );
}

#[test]
fn env_compiler_must_be_bare_name() {
    let judged = |name: &str, value: &str| {
        let mut step = step("make");
        step.env.insert(name.to_owned(), value.to_owned());
        validate_plan_safety(&plan("make", vec![step]), &workspace())
    };
    for (name, value) in [
        ("CC", "gcc"),
        ("CC", "gcc-14"),
        ("CC", "clang"),
        ("CC", "cc"),
        ("CXX", "g++"),
        ("CXX", "clang++-18"),
    ] {
        assert!(
            judged(name, value).is_valid(),
            "{name}={value}: {:?}",
            judged(name, value).violations()
        );
    }
    for (name, value) in [
        ("CC", "./gcc"),
        ("CC", "/usr/bin/gcc"),
        ("CC", "tools/gcc"),
        ("CC", "gcc -wrapper sh,-c,id"),
        ("CC", "gcc-x"),
        ("CC", "gcc-"),
        ("CC", "gcc-123"),
        ("CC", "gcc-14-x"),
        ("CC", "g++"),
        ("CC", "evil"),
        ("CC", ""),
        ("CC", "gcc\n"),
        ("CXX", "gcc"),
    ] {
        assert_eq!(
            refusals(&judged(name, value)),
            ["build-env-value-refused"],
            "{name}={value}"
        );
    }
    for name in ["cc", "CC_x", "LD", "AR", "CFLAGS", "CPP", "CC "] {
        assert_eq!(
            refusals(&judged(name, "gcc")),
            ["build-env-key-refused"],
            "{name}"
        );
    }
}

#[test]
fn environments_caches_and_extras_avoid_links() {
    let judged = |cwd: &str, command: &str, link: &str| {
        let mut step = step(command);
        step.cwd = cwd.to_owned();
        refusals(&validate_plan_safety(
            &plan("python-pip", vec![step]),
            &Workspace {
                links: [link.to_owned()].into(),
                ..workspace()
            },
        ))
    };
    for (cwd, command, link) in [
        (".", "python -m venv .venv", ".venv"),
        (".", "python -m venv .venv", ".venv/bin"),
        (".", "python -m venv .venv", ".VENV/bin"),
        (".", "python -m venv .venv", ""),
        ("sub", "python -m venv .venv", "sub/.venv/lib64"),
        (".", "python -m venv sub/.venv", "sub"),
        (".", "python -m venv .venv/", ".venv/bin"),
        (".", "python -m mypy .", ".mypy_cache"),
        (".", "python -m ruff check .", ".ruff_cache"),
        ("sub", "python -m mypy .", "sub/.mypy_cache/3.12"),
        (".", "pip install .[dev]", ".d"),
        (".", "pip install .[dev]", ".D"),
        (".", "pip install .[dev]", ""),
        ("sub", "pip install -e .[dev]", "sub/.v"),
    ] {
        assert_eq!(
            judged(cwd, command, link),
            ["build-path-link"],
            "{cwd}: {command}: {link}"
        );
    }
    for (cwd, command, link) in [
        (".", "python -m venv .venv", "docs/latest"),
        (".", "python -m venv .venv", ".venv2"),
        (".", "python -m venv .venv/", ".venv2"),
        (".", "python -m venv sub/.venv//", "docs/latest"),
        (".", "pip install .[dev]", ".dev"),
        (".", "pip install .[dev]", "sub/.d"),
        ("sub", "pip install .[dev]", ".d"),
    ] {
        assert_eq!(
            judged(cwd, command, link),
            [""; 0],
            "{cwd}: {command}: {link}"
        );
    }
}

/// The name is usual for other directories as well, so it is closed only where a step creates an environment.
#[test]
fn no_step_reaches_into_environment_called_env() {
    let judged = |steps: &[(&str, &str)]| {
        let step_in = |(cwd, command): &(&str, &str)| {
            let mut step = step(command);
            step.cwd = (*cwd).to_owned();
            step
        };
        let steps = steps.iter().map(step_in).collect();
        refusals(&validate_plan_safety(
            &plan("python-pip", steps),
            &workspace(),
        ))
    };
    let create = (".", "python -m venv env");
    for other in [
        (".", "cp x env/bin/python"),
        (".", "mkdir -p Env/lib64/x"),
        ("env", "python -m compileall ."),
        (".", "python -m compileall env/lib"),
    ] {
        for steps in [[create, other], [other, create]] {
            let codes = judged(&steps);
            assert!(
                codes
                    .iter()
                    .any(|code| code == "build-path-link" || code == "build-cwd-refused"),
                "{other:?}: {codes:?}"
            );
        }
    }
    for other in [
        (".", "cp x sub/env/y"),
        (".", "pip install -r requirements.txt"),
        (".", "python -m pytest"),
        (".", "python -m compileall src"),
    ] {
        assert_eq!(judged(&[create, other]), [""; 0], "{other:?}");
    }
    assert_eq!(judged(&[(".", "cp x env/y")]), [""; 0]);
}

#[test]
fn refusal_hint_has_accepted_spelling() {
    for (system, command, spelling) in [
        ("node-npm", "npx eslint .", "`npx --no-install eslint .`"),
        ("node-npm", "npx --yes eslint .", "`npx --no-install TOOL`"),
        ("node-npm", "npx biome check", "`npm run NAME`"),
        ("node-npm", "npm exec biome check", "`npm run NAME`"),
        (
            "node-npm",
            "npx eslint --fix .",
            "`npx --no-install eslint` with other words",
        ),
        (
            "node-npm",
            "npm exec eslint src",
            "`npm exec --no -- eslint src`",
        ),
        (
            "node-npm",
            "npm test -- --max-workers 2",
            "`--max-workers=N`",
        ),
        (
            "python-pip",
            "pip install \".[dev]\"",
            "`pip install .[dev]`",
        ),
        ("python-pip", "pip install '.[dev]'", "`pip install .[dev]`"),
        (
            "python-pip",
            "pip install .[dev-tools]",
            "`pip install .[dev,test]`",
        ),
        ("python-pip", "pip install requests", "`.[dev,test]`"),
        (
            "python-pip",
            "python -m venv build",
            "`.venv`, `venv`, `env` or `.virtualenv`",
        ),
        ("python-pip", "pytest -qx", "`-q -x`"),
        ("python-pip", "pytest --maxfails 3", "`--maxfail N`"),
        ("python-pip", "python -m bandit .", "-m mypy"),
        ("python-pip", "python -m black .", "--check"),
        ("python-poetry", "poetry run bandit .", "run pylint"),
        ("python-poetry", "poetry run pylint", "name what to check"),
        (
            "python-pip",
            "python -m pylint --load-plugins x .",
            "--disable",
        ),
        (
            "python-pip",
            "python -m pyright --pythonpath ./x",
            "--project",
        ),
        ("cargo", "cargo run", "cargo build, cargo test"),
        (
            "make",
            "CC=gcc make",
            "{\"name\": \"CC\", \"value\": \"gcc\"}",
        ),
        (
            "make",
            "make CC=gcc",
            "{\"name\": \"CC\", \"value\": \"gcc\"}",
        ),
        (
            "make",
            "make CFLAGS=-O2",
            "PREFIX, prefix, DESTDIR, BUILDDIR",
        ),
        (
            "cmake",
            "cmake --build=build",
            "write the directory as the next word",
        ),
    ] {
        let messages = judge(system, command).violations();
        assert!(
            messages.iter().any(|sentence| sentence.contains(spelling)),
            "{command}: {spelling}: {messages:?}"
        );
    }
}

#[test]
fn python_install_outside_workspace_warns() {
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
        assert!(safety.is_valid(), "{command}: {:?}", safety.violations());
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
        assert!(safety.is_valid(), "{command}: {:?}", safety.violations());
        assert!(
            !warnings(&safety).contains(&"build-installs-outside".to_owned()),
            "{command}"
        );
    }
}
