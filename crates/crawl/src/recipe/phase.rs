//! Classifies a command by its first words, with a table for each program; an unknown command builds.

use crate::artifact::CommandPhase;
use crate::safety::{CommandLine, command_lines};
use CommandPhase::{Build, Clean, Configure, Fetch, Install, Test};

/// The phase of a command.
///
/// | program | rule |
/// |---|---|
/// | `cargo` | by subcommand; `check`, `clippy` and `fmt` count as tests |
/// | `go` | by subcommand; `mod` fetches, `generate` configures, `vet` is a test |
/// | `npm`, `yarn`, `pnpm` | `install` and `ci` fetch; `run NAME` by the script's name |
/// | `pip` | `-r FILE` fetches; anything else installs |
/// | `python -m MODULE`, `python setup.py COMMAND` | by the module or the command |
/// | `poetry` | `install` fetches, `build` builds, `run` by its command |
/// | `cmake` | `--build` by its target, `--install` installs, anything else configures |
/// | `meson` | by subcommand |
/// | `make`, `ninja` | by the last target |
/// | `./configure`, `autoreconf`, `autoconf`, `automake`, `mkdir` | configure |
/// | `ctest`, `pytest` | test |
/// | `cp`, `install` | install |
pub(super) fn classify(cmd: &str) -> CommandPhase {
    let words: Vec<&str> = cmd.split_whitespace().collect();
    of_words(&words)
}

fn of_words(words: &[&str]) -> CommandPhase {
    let Some((program, rest)) = words.split_first() else {
        return Build;
    };
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
            "run" => by_line(words, &format!("{program} run"), first_operand),
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
        "cmake" => match first {
            "--build" => by_line(words, "cmake --build", last_target),
            "--install" => Install,
            _ => Configure,
        },
        "meson" => match first {
            "compile" => Build,
            "test" => Test,
            "install" => Install,
            _ => Configure,
        },
        "make" => by_line(words, "make", last_target),
        "ninja" => by_line(words, "ninja", last_target),
        "./configure" | "autoreconf" | "autoconf" | "automake" | "mkdir" => Configure,
        "ctest" | "pytest" => Test,
        "cp" | "install" => Install,
        _ => Build,
    }
}

fn pip(words: &[&str]) -> CommandPhase {
    let is_list = |word: &&str| word.starts_with("-r") || word.starts_with("--requirement");
    if words.iter().any(is_list) {
        Fetch
    } else {
        Install
    }
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

/// Classifies by the name that `choose` finds in the command line of this `usage`.
fn by_line(words: &[&str], usage: &str, choose: fn(&CommandLine) -> Option<&str>) -> CommandPhase {
    let lines = command_lines(words);
    lines
        .iter()
        .find(|line| line.usage == usage)
        .and_then(choose)
        .map_or(Build, by_name)
}

fn first_operand(line: &CommandLine) -> Option<&str> {
    line.operands.first().map(String::as_str)
}

/// The last word that is neither an assignment nor the separate number of `-j`; else the value of an
/// option.
fn last_target(line: &CommandLine) -> Option<&str> {
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let mut words = line.operands.iter().rev().map(String::as_str);
    words
        .find(|word| !word.contains('=') && !is_number(word))
        .or_else(|| line.value_of(&["--target", "-t"]))
}

/// Classifies by the name of a script, target or command: its first known part.
fn by_name(name: &str) -> CommandPhase {
    let known = |part: &str| {
        Some(match part {
            "build" | "compile" | "bundle" | "dist" | "sdist" | "all" => Build,
            "test" | "tests" | "check" | "checks" | "lint" | "typecheck" | "unit" | "e2e"
            | "coverage" | "bench" => Test,
            "configure" | "setup" | "generate" | "codegen" | "prebuild" => Configure,
            "install" | "develop" => Install,
            "clean" | "distclean" | "mrproper" => Clean,
            "fetch" | "download" | "vendor" | "deps" => Fetch,
            _ => return None,
        })
    };
    name.split([':', '-', '_', '.', '/'])
        .find_map(known)
        .unwrap_or(Build)
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
            (Test, "npm run --workspace packages/core test"),
            (Build, "npm run -w packages/test build"),
            (Test, "pnpm run --filter core test"),
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
            (Install, "cmake --build build --target=install"),
            (Install, "cmake --build build -tinstall"),
            (Install, "cmake --build build -t all install -j 4"),
            (Test, "cmake --build build --parallel 4 --target test"),
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
            (Test, "make test -j 4"),
            (Test, "make -j 4 test V=1"),
            (Build, "make -j 4 -C test"),
            (Test, "ninja -j 4 -C build test"),
            (Clean, "ninja -Cbuild clean"),
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
            assert_eq!(classify(cmd), phase, "{cmd}");
        }
    }
}
