//! The scripts named by a program's arguments: after the options of interpreters, and what cargo and go build
//! and run.

/// Interpreter options whose value is a separate word. A value can be a file that runs as well.
const WITH_VALUE: [&str; 12] = [
    "-I",
    "-L",
    "-M",
    "-Q",
    "-W",
    "-X",
    "-r",
    "--import",
    "--loader",
    "--require",
    "--experimental-loader",
    "--env-file",
];

/// Python modules that run the script after them, with their options that have a value.
const LAUNCHERS: [&str; 9] = [
    "bdb",
    "cProfile",
    "debugpy",
    "kernprof",
    "memory_profiler",
    "pdb",
    "profile",
    "runpy",
    "trace",
];
const OF_LAUNCHERS: [&str; 4] = ["-c", "-m", "-o", "-s"];

/// The commands of cargo that build, run or look at the project as it is known. Every other word is an alias of the project, or a program.
const OF_CARGO: [&str; 34] = [
    "add",
    "b",
    "bench",
    "build",
    "c",
    "check",
    "clean",
    "clippy",
    "d",
    "deny",
    "doc",
    "fetch",
    "fix",
    "fmt",
    "generate-lockfile",
    "help",
    "hack",
    "install",
    "llvm-cov",
    "locate-project",
    "metadata",
    "miri",
    "nextest",
    "package",
    "publish",
    "r",
    "run",
    "rustc",
    "rustdoc",
    "t",
    "test",
    "tree",
    "update",
    "vendor",
];

/// Returns what an interpreter runs with these arguments: its script, and the modules its options name before
/// it.
pub(super) fn scripts<'w>(rest: &[&'w str]) -> Vec<&'w str> {
    let mut found = Vec::new();
    let mut launched = false;
    let mut words = rest
        .iter()
        .map(|word| word.trim_matches(['[', ']', ',']))
        .filter(|word| !word.is_empty());
    while let Some(word) = words.next() {
        if word == "-m" && !launched {
            // What another module is given is read by it, and not run.
            launched = words
                .next()
                .is_some_and(|module| LAUNCHERS.contains(&module));
            if !launched {
                break;
            }
        } else if launched && OF_LAUNCHERS.contains(&word) {
            words.next();
        } else if WITH_VALUE.contains(&word) {
            found.extend(words.next());
        } else if !word.starts_with('-') {
            found.push(word);
            break;
        }
    }
    found
}

/// Returns the possible files of the module that a Python interpreter runs, also below these directories.
pub(super) fn modules(rest: &[&str], below: &[&str]) -> Vec<String> {
    let module = rest
        .windows(2)
        .find(|pair| pair[0] == "-m")
        .map(|pair| pair[1].replace('.', "/"));
    let Some(module) = module else {
        return Vec::new();
    };
    let files = [format!("{module}.py"), format!("{module}/__main__.py")];
    let deeper = below
        .iter()
        .flat_map(|place| files.iter().map(move |file| format!("{place}/{file}")));
    files.iter().cloned().chain(deeper).collect()
}

/// Returns the named sources that cargo or go builds and runs. The project's own program, run without a name,
/// is what the gate checks.
pub(super) fn sources(program: &str, rest: &[&str]) -> Vec<String> {
    let mut plain = rest
        .iter()
        .copied()
        .filter(|word| !word.starts_with(['-', '+']));
    let Some(command) = plain.next() else {
        return Vec::new();
    };
    match (program, command) {
        ("go", "run") => plain
            .next()
            // Files are compiled into a program, and count by their content.
            .filter(|package| !package.ends_with(".go"))
            .map(|package| vec![format!("{}/*.go", package.trim_end_matches('/')), package.to_owned()])
            .unwrap_or_default(),
        ("cargo", "run" | "r") => cargo_targets(rest),
        ("cargo", alias) if !OF_CARGO.contains(&alias) => [
            vec![format!("{alias}/src/*"), format!("$/{alias}/src/main.rs")],
            cargo_targets(rest),
        ]
        .concat(),
        _ => Vec::new(),
    }
}

fn cargo_targets(rest: &[&str]) -> Vec<String> {
    let own = rest
        .iter()
        .position(|word| *word == "--")
        .map_or(rest, |at| rest.split_at(at).0);
    let value = |at: usize, names: [&str; 2]| {
        let word = own.get(at)?;
        match word.split_once('=') {
            Some((name, value)) if names.contains(&name) => Some(value),
            None if names.contains(word) => own.get(at + 1).copied(),
            _ => None,
        }
    };
    (0..own.len())
        .flat_map(|at| {
            let program = |name| {
                [
                    format!("$/src/bin/{name}.rs"),
                    format!("$/src/bin/{name}/main.rs"),
                ]
            };
            let example = |name| {
                [
                    format!("$/examples/{name}.rs"),
                    format!("$/examples/{name}/main.rs"),
                ]
            };
            let package = |name| {
                [
                    format!("{name}/src/main.rs"),
                    format!("$/{name}/src/main.rs"),
                ]
            };
            let programs = value(at, ["--bin", "--bin"]).map(program);
            let examples = value(at, ["--example", "--example"]).map(example);
            let packages = value(at, ["-p", "--package"]).map(package);
            [programs, examples, packages]
                .into_iter()
                .flatten()
                .flatten()
        })
        .collect()
}
