//! Where things lie, by build system, relative to the workspace.

use crucible_repo::BuildSystem;

use crate::artifact::{PlanV1, WorkspaceLayout};

/// The layout of a plan that works in `dir`.
///
/// | build system | `build_dir` | `install_dir` |
/// |---|---|---|
/// | `cargo` | `target` | `target/release` where a step builds with `--release`, else `target/debug` |
/// | `go` | `.` | `bin` |
/// | `node-npm`, `node-yarn`, `node-pnpm` | `dist` | `dist` |
/// | `python-pip`, `python-setuptools` | `build` | `dist` |
/// | `python-poetry` | `dist` | `dist` |
/// | `cmake` | what a step names with `-B`, else `build` | `install` |
/// | `meson` | what `meson setup` names, else `build` | `install` |
/// | `autotools`, `make` | `.` | `install` |
/// | `unknown` | `.` | `.` |
///
/// `source_dir` is the workspace itself, `.`. Where the build system works a level below, the other two lie there.
pub(super) fn of(plan: &PlanV1, dir: &str) -> WorkspaceLayout {
    let system = plan.detected.build_system.parse().unwrap_or(BuildSystem::Unknown);
    let (build, install) = match system {
        BuildSystem::Cargo => {
            ("target", if builds_for_release(plan) { "target/release" } else { "target/debug" })
        }
        BuildSystem::Go => (".", "bin"),
        BuildSystem::NodeNpm | BuildSystem::NodeYarn | BuildSystem::NodePnpm => ("dist", "dist"),
        BuildSystem::PythonPip | BuildSystem::PythonSetuptools => ("build", "dist"),
        BuildSystem::PythonPoetry => ("dist", "dist"),
        BuildSystem::Cmake => (named(plan, "cmake", "-B").unwrap_or("build"), "install"),
        BuildSystem::Meson => (named(plan, "meson", "setup").unwrap_or("build"), "install"),
        BuildSystem::Autotools | BuildSystem::Make => (".", "install"),
        BuildSystem::Unknown => (".", "."),
    };
    WorkspaceLayout {
        source_dir: ".".to_owned(),
        build_dir: below(dir, build),
        install_dir: below(dir, install),
    }
}

fn builds_for_release(plan: &PlanV1) -> bool {
    let is_release = |cmd: &str| {
        let mut words = cmd.split_whitespace();
        words.next() == Some("cargo") && words.any(|word| matches!(word, "--release" | "-r"))
    };
    plan.steps.iter().any(|step| is_release(&step.cmd))
}

/// The directory behind `option`, in the first command of the program that names one; options and their values stand
/// aside.
fn named<'p>(plan: &'p PlanV1, program: &str, option: &str) -> Option<&'p str> {
    plan.steps.iter().find_map(|step| {
        let mut words = step.cmd.split_whitespace();
        if words.next() != Some(program) {
            return None;
        }
        let mut behind = words.skip_while(|word| *word != option).skip(1);
        while let Some(word) = behind.next() {
            if !word.starts_with('-') {
                return Some(word);
            }
            if word.starts_with("--") && !word.contains('=') && !ALONE.contains(&word) {
                behind.next();
            }
        }
        None
    })
}

/// Options of `meson setup` without a value.
const ALONE: [&str; 6] =
    ["--wipe", "--reconfigure", "--werror", "--strip", "--vsenv", "--fatal-meson-warnings"];

fn below(dir: &str, path: &str) -> String {
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
        let layout = of(&plan, dir);
        assert_eq!(layout.source_dir, ".");
        (layout.build_dir, layout.install_dir)
    }

    #[test]
    fn every_build_system_has_its_places() {
        let pair = |build: &str, install: &str| (build.to_owned(), install.to_owned());
        assert_eq!(layout("cargo", &["cargo build"], "."), pair("target", "target/debug"));
        assert_eq!(layout("cargo", &["cargo build --release"], "."), pair("target", "target/release"));
        assert_eq!(layout("cargo", &["make --release"], "."), pair("target", "target/debug"));
        assert_eq!(layout("go", &[], "."), pair(".", "bin"));
        assert_eq!(layout("node-npm", &[], "."), pair("dist", "dist"));
        assert_eq!(layout("node-yarn", &[], "."), pair("dist", "dist"));
        assert_eq!(layout("node-pnpm", &[], "."), pair("dist", "dist"));
        assert_eq!(layout("python-pip", &[], "."), pair("build", "dist"));
        assert_eq!(layout("python-setuptools", &[], "."), pair("build", "dist"));
        assert_eq!(layout("python-poetry", &[], "."), pair("dist", "dist"));
        assert_eq!(layout("cmake", &["cmake --build out"], "."), pair("build", "install"));
        assert_eq!(layout("cmake", &["cmake -S . -B out"], "."), pair("out", "install"));
        assert_eq!(
            layout("meson", &["meson setup --buildtype release --wipe out ."], "."),
            pair("out", "install")
        );
        assert_eq!(layout("meson", &["meson compile", "meson setup -Dx=y"], "."), pair("build", "install"));
        assert_eq!(layout("meson", &["meson setup out"], "."), pair("out", "install"));
        assert_eq!(layout("autotools", &[], "."), pair(".", "install"));
        assert_eq!(layout("make", &[], "."), pair(".", "install"));
        assert_eq!(layout("unknown", &[], "."), pair(".", "."));
    }

    #[test]
    fn a_system_a_level_below_has_its_places_there() {
        let pair = |build: &str, install: &str| (build.to_owned(), install.to_owned());
        assert_eq!(layout("cargo", &[], "rust"), pair("rust/target", "rust/target/debug"));
        assert_eq!(layout("make", &[], "src"), pair("src", "src/install"));
    }
}
