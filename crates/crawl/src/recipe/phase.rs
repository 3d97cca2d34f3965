//! What a command is for, told from its first words. A table for each program; a command that no table knows builds.

use crate::artifact::CommandPhase;
use CommandPhase::{Build, Clean, Configure, Fetch, Install, Test};

/// The phase of a command.
///
/// | program | rule |
/// |---|---|
/// | `cargo` | by subcommand; `check`, `clippy` and `fmt` judge, so they are tests |
/// | `go` | by subcommand; `mod` fetches, `generate` configures, `vet` is a test |
/// | `npm`, `yarn`, `pnpm` | `install` and `ci` fetch; `run NAME` by the script's name |
/// | `pip` | what `-r` names is fetched; anything else is installed |
/// | `python -m MODULE`, `python setup.py COMMAND` | by the module or the command |
/// | `poetry` | `install` fetches, `build` builds, `run` by what is run |
/// | `cmake` | `--build` by its target, `--install` installs, anything else configures |
/// | `meson` | by subcommand |
/// | `make`, `ninja` | by the last target |
/// | `./configure`, `autoreconf`, `autoconf`, `automake`, `mkdir` | configure |
/// | `ctest`, `pytest` | test |
/// | `cp`, `install` | install |
pub(super) fn of(cmd: &str) -> CommandPhase {
    let words: Vec<&str> = cmd.split_whitespace().collect();
    of_words(&words)
}

fn of_words(words: &[&str]) -> CommandPhase {
    let Some((program, rest)) = words.split_first() else { return Build };
    let first = rest.first().copied().unwrap_or_default();
    match *program {
        "cargo" => match first {
            "fetch" => Fetch,
            "test" | "check" | "clippy" | "fmt" | "bench" => Test,
            "install" => Install,
            "clean" => Clean,
            _ => Build,
        },
        "go" => match first {
            "mod" => Fetch,
            "generate" => Configure,
            "test" | "vet" => Test,
            "install" => Install,
            "clean" => Clean,
            _ => Build,
        },
        "npm" | "yarn" | "pnpm" => match first {
            "install" | "ci" => Fetch,
            "run" => by_name(operand(rest.get(1..).unwrap_or_default())),
            "exec" => Build,
            name => by_name(name),
        },
        "pip" | "pip3" => pip(rest),
        "python" | "python3" => python(rest),
        "poetry" => match first {
            "install" => Fetch,
            "run" => of_words(rest.get(1..).unwrap_or_default()),
            _ => Build,
        },
        "cmake" => cmake(rest),
        "meson" => match first {
            "compile" => Build,
            "test" => Test,
            "install" => Install,
            _ => Configure,
        },
        "make" => by_target(rest, &["-C", "-f", "-I", "-o", "-W"]),
        "ninja" => by_target(rest, &["-C", "-f", "-d", "-t", "-w", "-j", "-k", "-l"]),
        "./configure" | "autoreconf" | "autoconf" | "automake" | "mkdir" => Configure,
        "ctest" | "pytest" => Test,
        "cp" | "install" => Install,
        _ => Build,
    }
}

fn pip(words: &[&str]) -> CommandPhase {
    let is_list = |word: &&str| word.starts_with("-r") || word.starts_with("--requirement");
    if words.iter().any(is_list) { Fetch } else { Install }
}

fn python(words: &[&str]) -> CommandPhase {
    match words {
        ["-m", "pip", rest @ ..] => pip(rest),
        ["-m", "pytest" | "unittest", ..] => Test,
        ["-m", "venv", ..] => Configure,
        ["setup.py", command, ..] => by_name(command),
        _ => Build,
    }
}

fn cmake(words: &[&str]) -> CommandPhase {
    match words.first().copied().unwrap_or_default() {
        "--build" => {
            let mut behind = words.iter().skip_while(|word| !matches!(**word, "--target" | "-t")).skip(1);
            behind.next().map_or(Build, |target| by_name(target))
        }
        "--install" => Install,
        _ => Configure,
    }
}

/// By the last word that is neither an option, nor the value of one, nor an assignment.
fn by_target(words: &[&str], with_value: &[&str]) -> CommandPhase {
    let mut target = "";
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if with_value.contains(word) {
            words.next();
        } else if !word.starts_with('-') && !word.contains('=') {
            target = word;
        }
    }
    by_name(target)
}

/// The first word that is no option.
fn operand<'w>(words: &[&'w str]) -> &'w str {
    words.iter().find(|word| !word.starts_with('-')).copied().unwrap_or_default()
}

/// By what a script, a target or a command is called: its first part that says something.
fn by_name(name: &str) -> CommandPhase {
    let known = |part: &str| {
        Some(match part {
            "build" | "compile" | "bundle" | "dist" | "sdist" | "all" => Build,
            "test" | "tests" | "check" | "checks" | "lint" | "typecheck" | "unit" | "e2e" | "coverage"
            | "bench" => Test,
            "configure" | "setup" | "generate" | "codegen" | "prebuild" => Configure,
            "install" | "develop" => Install,
            "clean" | "distclean" | "mrproper" => Clean,
            "fetch" | "download" | "vendor" | "deps" => Fetch,
            _ => return None,
        })
    };
    name.split([':', '-', '_', '.', '/']).find_map(known).unwrap_or(Build)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_has_its_phases() {
        let table = [
            (Build, "cargo build --release"),
            (Build, "cargo doc"),
            (Test, "cargo test"),
            (Test, "cargo clippy"),
            (Install, "cargo install --path ."),
            (Build, "go build ./..."),
            (Test, "go vet ./..."),
            (Fetch, "go mod download"),
            (Configure, "go generate ./..."),
            (Install, "go install ./cmd/x"),
            (Fetch, "npm ci"),
            (Fetch, "npm install"),
            (Build, "npm run build"),
            (Build, "npm run build:test"),
            (Test, "npm run --silent test:unit"),
            (Test, "npm test"),
            (Clean, "yarn run clean"),
            (Build, "yarn build"),
            (Fetch, "yarn install --frozen-lockfile"),
            (Test, "pnpm run lint"),
            (Build, "pnpm exec tsc"),
            (Build, "npm run"),
            (Fetch, "pip install -r requirements.txt"),
            (Install, "pip install ."),
            (Install, "pip3 install -e ."),
            (Fetch, "python3 -m pip install --requirement dev.txt"),
            (Build, "python3 -m build"),
            (Test, "python -m pytest"),
            (Build, "python setup.py build_ext"),
            (Install, "python setup.py install"),
            (Test, "pytest -q"),
            (Fetch, "poetry install"),
            (Build, "poetry build"),
            (Test, "poetry run pytest"),
            (Configure, "cmake -S . -B build"),
            (Build, "cmake --build build"),
            (Test, "cmake --build build --target test"),
            (Clean, "cmake --build build --target clean"),
            (Install, "cmake --install build"),
            (Test, "ctest --test-dir build"),
            (Configure, "meson setup build"),
            (Build, "meson compile -C build"),
            (Test, "meson test -C build"),
            (Install, "meson install -C build"),
            (Build, "ninja -C test"),
            (Test, "ninja -C build test"),
            (Configure, "./configure"),
            (Configure, "autoreconf --install"),
            (Build, "make"),
            (Build, "make -j4"),
            (Build, "make -C test"),
            (Test, "make check"),
            (Install, "make all install"),
            (Install, "make install PREFIX=out"),
            (Clean, "make distclean"),
            (Configure, "mkdir -p out"),
            (Install, "cp target/release/x out"),
            (Install, "install -m 755 a b"),
            (Build, "node scripts/build.js"),
            (Build, "npx --no-install tsc"),
            (Build, ""),
        ];
        for (phase, cmd) in table {
            assert_eq!(of(cmd), phase, "{cmd}");
        }
    }
}
