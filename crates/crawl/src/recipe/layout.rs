//! The directories of each build system, relative to the workspace.

use crucible_repo::BuildSystem;

use crate::artifact::{PlanV1, WorkspaceLayout};
use crate::safety::{CommandLine, command_lines};

/// The layout of a plan that works in `dir`.
///
/// | build system | `build_dir` | `install_dir` |
/// |---|---|---|
/// | `cargo` | `target` | `target/release` if a step builds with `--release`, else `target/debug` |
/// | `go` | `.` | `bin` |
/// | `node-npm`, `node-yarn`, `node-pnpm` | `dist` | `dist` |
/// | `python-pip`, `python-setuptools` | `build` | `dist` |
/// | `python-poetry` | `dist` | `dist` |
/// | `cmake` | the `-B` directory of the first configuring step, else `build` | `install` |
/// | `meson` | the directory of the first `meson setup`, else `build` | `install` |
/// | `autotools`, `make` | `.` | `install` |
/// | `unknown` | `.` | `.` |
///
/// `source_dir` is the workspace itself, `.`. If the build system works a level below, the other two are relative to that
/// directory; a directory named by a step is relative to the step's directory.
pub(super) fn workspace_layout(plan: &PlanV1, dir: &str) -> WorkspaceLayout {
    let system = plan
        .detected
        .build_system
        .parse()
        .unwrap_or(BuildSystem::Unknown);
    let (build, install) = match system {
        BuildSystem::Cargo => (
            "target",
            if builds_for_release(plan) {
                "target/release"
            } else {
                "target/debug"
            },
        ),
        BuildSystem::Go => (".", "bin"),
        BuildSystem::NodeNpm | BuildSystem::NodeYarn | BuildSystem::NodePnpm => ("dist", "dist"),
        BuildSystem::PythonPip | BuildSystem::PythonSetuptools => ("build", "dist"),
        BuildSystem::PythonPoetry => ("dist", "dist"),
        BuildSystem::Cmake | BuildSystem::Meson => ("build", "install"),
        BuildSystem::Autotools | BuildSystem::Make => (".", "install"),
        BuildSystem::Unknown => (".", "."),
    };
    WorkspaceLayout {
        source_dir: ".".to_owned(),
        build_dir: named_directory(plan, system).unwrap_or_else(|| join_path(dir, build)),
        install_dir: join_path(dir, install),
    }
}

fn builds_for_release(plan: &PlanV1) -> bool {
    let is_release = |cmd: &str| {
        let mut words = cmd.split_whitespace();
        words.next() == Some("cargo") && words.any(|word| matches!(word, "--release" | "-r"))
    };
    plan.steps.iter().any(|step| is_release(&step.cmd))
}

/// The build directory that a step names: the first configuring step decides.
fn named_directory(plan: &PlanV1, system: BuildSystem) -> Option<String> {
    let (usage, directory): (&str, fn(&CommandLine) -> Option<&str>) = match system {
        BuildSystem::Cmake => ("cmake", |line| line.value_of(&["-B"])),
        BuildSystem::Meson => ("meson setup", |line| named_to_meson(&line.operands)),
        _ => return None,
    };
    plan.steps.iter().find_map(|step| {
        let words: Vec<&str> = step.cmd.split_whitespace().collect();
        let lines = command_lines(&words);
        let line = lines.iter().find(|line| line.usage == usage)?;
        directory(line).map(|directory| join_path(plain(&step.cwd), plain(directory)))
    })
}

/// meson accepts its two directories in either order; the top of the sources is not a build directory.
fn named_to_meson(operands: &[String]) -> Option<&str> {
    operands
        .iter()
        .map(String::as_str)
        .find(|word| plain(word) != ".")
}

/// A path without leading `./` and trailing `/`.
fn plain(path: &str) -> &str {
    let mut path = path.trim_end_matches('/');
    while let Some(rest) = path.strip_prefix("./") {
        path = rest.trim_start_matches('/');
    }
    if path.is_empty() { "." } else { path }
}

fn join_path(dir: &str, path: &str) -> String {
    match (dir, path) {
        (".", path) => path.to_owned(),
        (dir, ".") => dir.to_owned(),
        (dir, path) => format!("{dir}/{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::fixture;

    fn layout(system: &str, commands: &[&str], dir: &str) -> (String, String) {
        let mut plan = fixture::plan_document();
        plan.detected.build_system = system.to_owned();
        plan.steps = commands.iter().map(|cmd| fixture::step("x", cmd)).collect();
        let layout = workspace_layout(&plan, dir);
        assert_eq!(layout.source_dir, ".");
        (layout.build_dir, layout.install_dir)
    }

    #[test]
    fn every_build_system_has_a_layout() {
        let pair = |build: &str, install: &str| (build.to_owned(), install.to_owned());
        assert_eq!(
            layout("cargo", &["cargo build"], "."),
            pair("target", "target/debug")
        );
        assert_eq!(
            layout("cargo", &["cargo build --release"], "."),
            pair("target", "target/release")
        );
        assert_eq!(
            layout("cargo", &["make --release"], "."),
            pair("target", "target/debug")
        );
        assert_eq!(layout("go", &[], "."), pair(".", "bin"));
        assert_eq!(layout("node-npm", &[], "."), pair("dist", "dist"));
        assert_eq!(layout("node-yarn", &[], "."), pair("dist", "dist"));
        assert_eq!(layout("node-pnpm", &[], "."), pair("dist", "dist"));
        assert_eq!(layout("python-pip", &[], "."), pair("build", "dist"));
        assert_eq!(layout("python-setuptools", &[], "."), pair("build", "dist"));
        assert_eq!(layout("python-poetry", &[], "."), pair("dist", "dist"));
        assert_eq!(
            layout("cmake", &["cmake --build out"], "."),
            pair("build", "install")
        );
        assert_eq!(
            layout("cmake", &["cmake -S . -B out"], "."),
            pair("out", "install")
        );
        assert_eq!(
            layout(
                "meson",
                &["meson setup --buildtype release --reconfigure out ."],
                "."
            ),
            pair("out", "install")
        );
        assert_eq!(
            layout("meson", &["meson compile", "meson setup -Dx=y"], "."),
            pair("build", "install")
        );
        assert_eq!(
            layout("meson", &["meson setup out"], "."),
            pair("out", "install")
        );
        for named in [
            "meson setup -D tests=false out",
            "meson setup --debug out",
            "meson setup . ./out/",
        ] {
            assert_eq!(layout("meson", &[named], ".").0, "out", "{named}");
        }
        for named in [
            "cmake -Bout -S.",
            "cmake -S . -DX=ON -B ./out",
            "cmake -B out -D CMAKE_BUILD_TYPE=Debug",
        ] {
            assert_eq!(
                layout("cmake", &["cmake --build b", named], ".").0,
                "out",
                "{named}"
            );
        }
        assert_eq!(layout("autotools", &[], "."), pair(".", "install"));
        assert_eq!(layout("make", &[], "."), pair(".", "install"));
        assert_eq!(layout("unknown", &[], "."), pair(".", "."));
    }

    #[test]
    fn named_build_directory_is_relative_to_step() {
        let mut plan = fixture::plan_document();
        plan.detected.build_system = "cmake".to_owned();
        for (cwd, cmd, build_dir) in [
            (".", "cmake -S lib -B lib/out", "lib/out"),
            ("lib", "cmake -S . -B out", "lib/out"),
            ("./lib/", "cmake -S . -B .", "lib"),
            ("lib", "cmake --build out", "lib/build"),
        ] {
            plan.steps = vec![fixture::step("x", cmd)];
            cwd.clone_into(&mut plan.steps[0].cwd);
            assert_eq!(
                workspace_layout(&plan, "lib").build_dir,
                build_dir,
                "{cmd} in {cwd}"
            );
        }
    }

    #[test]
    fn nested_build_system_has_nested_layout() {
        let pair = |build: &str, install: &str| (build.to_owned(), install.to_owned());
        assert_eq!(
            layout("cargo", &[], "rust"),
            pair("rust/target", "rust/target/debug")
        );
        assert_eq!(layout("make", &[], "src"), pair("src", "src/install"));
    }
}
