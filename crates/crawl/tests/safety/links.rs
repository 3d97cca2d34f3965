//! No command and no `cwd` goes through a link of the repository, in whatever spelling.

use crucible_crawl::{PlanSafety, Workspace, validate_plan_safety};

use super::support::{plan, refusals, step, workspace};

fn judge(system: &str, cwd: &str, command: &str) -> PlanSafety {
    let mut step = step(command);
    step.cwd = cwd.to_owned();
    let links = ["out", "docs/latest", "src/deep/er"].map(str::to_owned).into();
    validate_plan_safety(&plan(system, vec![step]), &Workspace { links, ..workspace() })
}

#[test]
fn a_cwd_through_a_link_is_refused() {
    for cwd in [
        "out",
        "./out",
        "out/",
        "out/x",
        "docs/latest",
        "docs/./latest/api",
        "docs//latest",
        "OUT",
        "src/deep/er",
    ] {
        assert_eq!(refusals(&judge("cargo", cwd, "cargo build")), ["build-cwd-refused"], "{cwd}");
    }
    for cwd in [".", "docs", "outer", "docs/latest2", "src/deep", "x/out"] {
        assert!(judge("cargo", cwd, "cargo build").valid(), "{cwd}");
    }
}

#[test]
fn an_argument_through_a_link_is_refused() {
    for (system, cwd, command) in [
        ("unknown", ".", "cp a out"),
        ("unknown", ".", "cp a out/b"),
        ("unknown", ".", "cp a ./out//b"),
        ("unknown", ".", "cp a OUT/b"),
        ("unknown", ".", "cp out/a b"),
        ("unknown", ".", "mkdir -p out/b"),
        ("unknown", "docs", "cp a latest/b"),
        ("unknown", "src", "mkdir -p deep/er/x"),
        ("make", ".", "install -m 755 a out/b"),
        ("make", ".", "make -C out"),
        ("make", ".", "make PREFIX=out install"),
        ("cargo", ".", "cargo build --target-dir out"),
        ("cargo", ".", "cargo install --path out"),
        ("go", ".", "go build -o out/app ."),
        ("go", ".", "go build ./out/..."),
        ("node-npm", ".", "node out/build.js"),
        ("cmake", ".", "cmake -S . -B out"),
        ("cmake", ".", "cmake -B build -DCMAKE_INSTALL_PREFIX=out"),
        ("meson", ".", "meson setup out"),
        ("meson", ".", "ninja -C out"),
        ("python-pip", ".", "pip install -r out/requirements.txt"),
        ("python-pip", ".", "pip install ./out"),
        ("python-pip", ".", "pip install -e ./out"),
        ("python-pip", ".", "pip install --editable=./out"),
        ("python-pip", ".", "pip install -q --editable=./out"),
        ("python-pip", ".", "pytest out/test.py::test"),
        ("autotools", ".", "./configure --prefix=out"),
    ] {
        assert!(
            refusals(&judge(system, cwd, command)).contains(&"build-path-link".to_owned()),
            "{cwd}: {command}"
        );
    }
}

#[test]
fn a_tree_that_holds_a_link_is_not_copied_because_its_copy_would_lead_there() {
    for command in
        ["cp -r docs copy", "cp -a docs copy", "cp -R src copy", "cp -rf src/deep copy", "cp -r a docs copy"]
    {
        assert_eq!(refusals(&judge("unknown", ".", command)), ["build-path-link"], "{command}");
    }
    for command in ["cp -r assets copy", "cp docs/a copy", "cp -r docs/lat copy"] {
        assert!(judge("unknown", ".", command).valid(), "{command}");
    }
}
