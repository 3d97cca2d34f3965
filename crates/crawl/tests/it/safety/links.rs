//! No command and no `cwd` leads through a link of the repository, in any spelling.

use crucible_crawl::{PlanSafety, Workspace, validate_plan_safety};

use super::support::{plan, refusals, step, workspace};

fn judge(system: &str, cwd: &str, command: &str) -> PlanSafety {
    let mut step = step(command);
    step.cwd = cwd.to_owned();
    let links = ["out", "docs/latest", "src/deep/er"]
        .map(str::to_owned)
        .into();
    validate_plan_safety(
        &plan(system, vec![step]),
        &Workspace {
            links,
            ..workspace()
        },
    )
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
        assert_eq!(
            refusals(&judge("cargo", cwd, "cargo build")),
            ["build-cwd-refused"],
            "{cwd}"
        );
    }
    for cwd in [".", "docs", "outer", "docs/latest2", "src/deep", "x/out"] {
        assert!(judge("cargo", cwd, "cargo build").is_valid(), "{cwd}");
    }
}

#[test]
fn nothing_below_an_unchecked_root_is_trusted() {
    let judge = |cwd: &str, command: &str| {
        let mut step = step(command);
        step.cwd = cwd.to_owned();
        let workspace = Workspace {
            links: [String::new()].into(),
            ..workspace()
        };
        validate_plan_safety(&plan("cargo", vec![step]), &workspace)
    };
    assert!(judge(".", "cargo build").is_valid());
    assert_eq!(
        refusals(&judge("src", "cargo build")),
        ["build-cwd-refused"]
    );
    assert!(!judge(".", "cargo build --target-dir out").is_valid());
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
        // Other paths are relative to the directory that make or meson changes to first.
        ("make", ".", "make -C docs install PREFIX=latest"),
        (
            "make",
            ".",
            "make install --directory=docs DESTDIR=latest/x",
        ),
        ("make", "src", "make -Cdeep install DESTDIR=er"),
        ("meson", ".", "meson install -C docs --destdir latest"),
        // A write below a directory could follow a link in it.
        ("cargo", ".", "cargo build --target-dir docs"),
        ("cmake", ".", "cmake -S . -B src/deep"),
        ("cmake", ".", "cmake --install build --prefix=src/deep"),
        ("make", ".", "make install DESTDIR=src/deep"),
        ("meson", ".", "meson setup src/deep"),
        ("meson", ".", "meson setup src/deep ."),
        ("unknown", ".", "cp latest docs"),
        ("unknown", ".", "cp a x/latest docs/"),
        ("unknown", ".", "cp out/a ."),
        ("unknown", "docs", "cp x/latest ."),
        ("unknown", "docs", "cp x/LATEST ./"),
        ("make", ".", "install -m 644 x/latest docs"),
        ("unknown", ".", "cp -r tree src"),
        ("unknown", ".", "cp -r er src/deep"),
        ("unknown", ".", "cp -a a b docs"),
    ] {
        assert!(
            refusals(&judge(system, cwd, command)).contains(&"build-path-link".to_owned()),
            "{cwd}: {command}"
        );
    }
}

#[test]
fn tree_with_link_is_not_copied() {
    for command in [
        "cp -r docs copy",
        "cp -a docs copy",
        "cp -R src copy",
        "cp -rf src/deep copy",
        "cp -r a docs copy",
    ] {
        assert_eq!(
            refusals(&judge("unknown", ".", command)),
            ["build-path-link"],
            "{command}"
        );
    }
    for command in ["cp -r assets copy", "cp docs/a copy", "cp -r docs/lat copy"] {
        assert!(judge("unknown", ".", command).is_valid(), "{command}");
    }
}

#[test]
fn a_link_beside_what_is_written_refuses_nothing() {
    for (system, cwd, command) in [
        ("unknown", ".", "cp notes.txt docs"),
        ("unknown", ".", "cp notes.txt ."),
        ("unknown", "docs", "cp x/later ."),
        ("unknown", ".", "mkdir -p docs src/deep docs/api"),
        ("unknown", ".", "cp -r tree copy"),
        ("make", ".", "install -m 755 -d docs/api"),
        ("make", ".", "make -C docs install PREFIX=stage"),
        ("cmake", ".", "cmake -S . -B build"),
        ("meson", ".", "meson setup build ."),
        ("meson", ".", "meson install -C build --destdir latest"),
    ] {
        let safety = judge(system, cwd, command);
        assert!(
            safety.is_valid(),
            "{cwd}: {command}: {:?}",
            safety.violations()
        );
    }
}
