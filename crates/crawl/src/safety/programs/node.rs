//! npm, npx, yarn, pnpm and node: install what the lock file declares, and run files of the repository.
//!
//! A package name after `install`, another registry, another shell or another settings directory could
//! bring in foreign code; none of them is in a table. It is unknown what a repository's script does with
//! an argument. So only scripts whose name says that they test or build may get a few arguments, and
//! others none (one may publish with `--ci`).

use super::super::finding::{ARGUMENT_REFUSED, FindingSink, OPTION_REFUSED, PATH_INVALID};
use super::super::grammar::{
    self, Line, Operands, Opt, Role, Usage, WordKind, flag, is_label, is_name, required_long_value,
    value,
};
use super::super::paths::StepDirectory;
use super::form::{CommandForm, form, plain, refused, script, tool};
use super::node_tools;

const NO_PACKAGE: Operands = Operands::None(
    "a package's name would bring in code that the repository does not declare; leave it out",
);
const SCRIPT: Operands = Operands::One(WordKind::Label, "a script of package.json");
const NO_SCRIPT: Operands = Operands::None("the script is named already");
const LEVEL: WordKind = WordKind::OneOf(&[
    "silent", "error", "warn", "notice", "http", "info", "verbose",
]);
const MODE: WordKind = WordKind::OneOf(&["production", "development", "test"]);

/// Arguments for any program that tests or builds.
const LOUDNESS: &[Opt] = &[
    flag("--silent"),
    flag("--verbose"),
    flag("--quiet"),
    flag("--no-color"),
    flag("--no-watch"),
    required_long_value("--watch", WordKind::OneOf(&["false"])),
];
/// Arguments for a test script.
const TEST_OPTIONS: &[Opt] = &[
    flag("--ci"),
    flag("--run"),
    flag("--coverage"),
    flag("--no-coverage"),
    flag("--runInBand"),
    flag("--passWithNoTests"),
    flag("--bail"),
    required_long_value("--watchAll", WordKind::OneOf(&["false"])),
    required_long_value("--max-workers", WordKind::Number),
    required_long_value("--maxWorkers", WordKind::Number),
];
/// Arguments for a build script.
const BUILD_OPTIONS: &[Opt] = &[
    flag("--production"),
    flag("--prod"),
    value("--mode", MODE),
    value("--configuration", MODE),
];
const ONLY_OPTIONS: Operands = Operands::None("a script may get a few harmless options only");
const TEST_ARGUMENTS: Usage = Usage::new(
    "a script that tests",
    &[LOUDNESS, TEST_OPTIONS],
    ONLY_OPTIONS,
);
const BUILD_ARGUMENTS: Usage = Usage::new(
    "a script that builds",
    &[LOUDNESS, BUILD_OPTIONS],
    ONLY_OPTIONS,
);
const NO_ARGUMENTS: Usage = Usage::new(
    "a script whose name is not `test` or `build`",
    &[],
    Operands::None("what this script does with an argument is not known; leave it out"),
);

/// The allowed arguments of a script; the part of its name after `:` is ignored.
fn arguments_of(script: &str) -> &'static Usage {
    match script.split(':').next() {
        Some("test") => &TEST_ARGUMENTS,
        Some("build") => &BUILD_ARGUMENTS,
        _ => &NO_ARGUMENTS,
    }
}

/// Programs that `yarn run` takes from installed packages if no script has their name, and that publish,
/// install hooks or packages, or run other code even without an argument.
const NO_SCRIPTS_OF_YARN: &[&str] = &[
    "bun",
    "changeset",
    "corepack",
    "deno",
    "firebase",
    "gh-pages",
    "husky",
    "lefthook",
    "lerna",
    "lint-staged",
    "ncu",
    "netlify",
    "node",
    "node-gyp",
    "np",
    "npm",
    "npm-check-updates",
    "npx",
    "patch-package",
    "playwright",
    "pnpm",
    "puppeteer",
    "release-it",
    "semantic-release",
    "serverless",
    "simple-git-hooks",
    "standard-version",
    "surge",
    "vercel",
    "wrangler",
    "yarn",
];

/// Refuses names that run something else if package.json has no script of that name.
fn judge_script(program: &str, script: &str, sink: &mut FindingSink<'_>) {
    let is = |name: &&str| name.eq_ignore_ascii_case(script);
    let hint = if is(&"env") {
        "this prints all variables, secrets among them, unless package.json has such a script"
    } else if program == "yarn" && NO_SCRIPTS_OF_YARN.iter().any(is) {
        "without such a script yarn runs an installed program of this name; name a script that does what is wanted"
    } else {
        return;
    };
    sink.refuse(ARGUMENT_REFUSED, script, hint);
}

/// A package of the workspace, by its name or its directory.
const PACKAGE: WordKind = WordKind::Fits(
    |word| match word.strip_prefix('@') {
        Some(scoped) => scoped
            .split_once('/')
            .is_some_and(|(scope, name)| is_name(scope) && is_name(name)),
        None => is_label(word.strip_prefix("./").unwrap_or(word)),
    },
    "a package of the workspace, such as core, packages/core or @scope/core",
);

const NPM_SCOPE: &[Opt] = &[
    flag("--workspaces"),
    flag("--ws"),
    flag("--include-workspace-root"),
    flag("--if-present"),
    flag("--ignore-scripts"),
    flag("--silent"),
    flag("-s"),
    flag("--quiet"),
    flag("-q"),
    flag("--verbose"),
    flag("--no-color"),
    value("--workspace", PACKAGE),
    value("-w", PACKAGE),
    value("--loglevel", LEVEL),
    value("--prefix", WordKind::Input),
];
const NPM_INSTALL_OPTIONS: &[Opt] = &[
    flag("--no-audit"),
    flag("--no-fund"),
    flag("--legacy-peer-deps"),
    flag("--strict-peer-deps"),
    flag("--production"),
    flag("--prefer-offline"),
    flag("--offline"),
    flag("--no-save"),
    flag("--package-lock-only"),
    flag("--no-optional"),
    flag("--no-progress"),
    flag("--engine-strict"),
    flag("--force"),
    flag("-f"),
    flag("--no-bin-links"),
    value("--omit", WordKind::OneOf(&["dev", "optional", "peer"])),
    value("--include", WordKind::OneOf(&["dev", "optional", "peer"])),
    value("--only", WordKind::OneOf(&["prod", "production", "dev"])),
];
const NPM_INSTALL: Usage = Usage::new("npm install", &[NPM_SCOPE, NPM_INSTALL_OPTIONS], NO_PACKAGE);
const NPM_RUN: Usage = Usage::new("npm run", &[NPM_SCOPE], SCRIPT);
const NPM_TEST: Usage = Usage::new("npm test", &[NPM_SCOPE], NO_SCRIPT).with_tail(&TEST_ARGUMENTS);

const YARN_INSTALL: Usage = Usage::new(
    "yarn install",
    &[&[
        flag("--frozen-lockfile"),
        flag("--immutable"),
        flag("--immutable-cache"),
        flag("--check-files"),
        flag("--ignore-scripts"),
        flag("--ignore-optional"),
        flag("--ignore-engines"),
        flag("--production"),
        flag("--prefer-offline"),
        flag("--offline"),
        flag("--non-interactive"),
        flag("--inline-builds"),
        flag("--silent"),
        flag("--verbose"),
        flag("--no-progress"),
        value("--network-timeout", WordKind::Number),
        required_long_value(
            "--mode",
            WordKind::OneOf(&["skip-build", "update-lockfile"]),
        ),
    ]],
    NO_PACKAGE,
);
const YARN_RUN: Usage = Usage::new("yarn run", &[&[flag("--silent")]], SCRIPT);

const PNPM_SCOPE: &[Opt] = &[
    flag("-r"),
    flag("--recursive"),
    flag("--if-present"),
    flag("--silent"),
    flag("-s"),
    flag("--no-bail"),
    value("--filter", PACKAGE),
    value(
        "--reporter",
        WordKind::OneOf(&["default", "append-only", "silent", "ndjson"]),
    ),
];
const PNPM_INSTALL: Usage = Usage::new(
    "pnpm install",
    &[
        PNPM_SCOPE,
        &[
            flag("--frozen-lockfile"),
            flag("--ignore-scripts"),
            flag("--prod"),
            flag("-P"),
            flag("--dev"),
            flag("-D"),
            flag("--no-optional"),
            flag("--offline"),
            flag("--prefer-offline"),
            flag("--shamefully-hoist"),
            flag("--strict-peer-dependencies"),
            flag("--no-strict-peer-dependencies"),
            flag("--lockfile-only"),
        ],
    ],
    NO_PACKAGE,
);
const PNPM_RUN: Usage = Usage::new("pnpm run", &[PNPM_SCOPE], SCRIPT);
const PNPM_TEST: Usage = Usage::new(
    "pnpm test",
    &[PNPM_SCOPE, LOUDNESS, TEST_OPTIONS],
    NO_SCRIPT,
);
const PNPM_BUILD: Usage = Usage::new(
    "pnpm build",
    &[PNPM_SCOPE, LOUDNESS, BUILD_OPTIONS],
    NO_SCRIPT,
);

const NODE_FILE: Usage = Usage::new(
    "node",
    &[],
    Operands::One(WordKind::Input, "a file of the repository"),
);
const NODE_TEST: Usage = Usage::new("node --test", &[], Operands::Each(WordKind::Input));

/// The allowed arguments of scripts, for a reader.
pub(super) fn script_arguments_text() -> String {
    format!(
        "`test` or `test:NAME` takes {TEST_ARGUMENTS}, `build` or `build:NAME` takes {BUILD_ARGUMENTS}, any other script nothing"
    )
}

/// The allowed forms of npm.
pub(super) const NPM: &[CommandForm] = &[
    form(&["install"], &NPM_INSTALL, judge_npm),
    form(&["ci"], &NPM_INSTALL, judge_npm),
    form(&["test"], &NPM_TEST, judge_npm),
    script(&NPM_RUN, "`--`", judge_npm_run),
    tool(&["exec", "--no", "--"]),
    refused(&["exec"], judge_exec),
];
/// The allowed forms of npx: without `--no-install` it would fetch a missing tool.
pub(super) const NPX: &[CommandForm] = &[
    tool(&["--no-install"]),
    tool(&["--no-install", "--"]),
    // npx takes the word after a bare `--no` as its value, and continues to parse its own options after
    // it.
    tool(&["--no", "--"]),
    tool(&[]).judged_by(judge_npx).with_condition(
        "without `--no-install` only behind a step `npm ci` or `npm install` in the same `cwd`, and if its package.json declares the tool and the repository has no `.npmrc` there or above",
    ),
];
/// The allowed forms of yarn.
pub(super) const YARN: &[CommandForm] = &[
    plain(&["install"], &YARN_INSTALL),
    script(&YARN_RUN, "its name", judge_yarn_run),
    plain(&["test"], &TEST_ARGUMENTS),
    plain(&["build"], &BUILD_ARGUMENTS),
    tool(&["exec"]),
    tool(&["exec", "--"]),
];
/// The allowed forms of pnpm.
pub(super) const PNPM: &[CommandForm] = &[
    plain(&["install"], &PNPM_INSTALL),
    script(&PNPM_RUN, "its name", judge_pnpm_run),
    plain(&["test"], &PNPM_TEST),
    plain(&["build"], &PNPM_BUILD),
    tool(&["exec"]),
    tool(&["exec", "--"]),
];
/// The allowed forms of node.
pub(super) const NODE: &[CommandForm] = &[
    form(&["--test"], &NODE_TEST, judge_node_test),
    form(&["--check"], &NODE_FILE, judge_node_check),
    form(&["-c"], &NODE_FILE, judge_node_check),
    form(&[], &NODE_FILE, judge_node)
        .with_condition("it ends in .js, .mjs or .cjs and lies in no `node_modules`"),
];

fn judge_npm(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    judge_packages(&grammar::read(usage, words, place, sink), place, sink);
}

fn judge_npm_run(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    let end = words
        .iter()
        .position(|word| *word == "--")
        .unwrap_or(words.len());
    let (own, behind) = words.split_at(end);
    let line = grammar::read(usage, own, place, sink);
    judge_packages(&line, place, sink);
    let script = line.operands.first().copied().unwrap_or_default();
    judge_script("npm", script, sink);
    grammar::judge(
        arguments_of(script),
        behind.get(1..).unwrap_or_default(),
        place,
        sink,
    );
}

/// Without `--`, npm would parse the tool's options as its own, `--yes` and `--package` among them.
fn judge_exec(
    _: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    let hint = accepted_spelling("npm exec --no --", words, place, sink);
    sink.refuse(OPTION_REFUSED, "npm exec", hint);
}

/// Returns a hint with a spelling of this tool that is accepted: `start` installs nothing.
fn accepted_spelling(
    start: &str,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &FindingSink<'_>,
) -> String {
    let why = "which runs what is installed and installs nothing";
    match words.first() {
        Some(tool) if !tool.starts_with('-') => {
            let problems = sink.unreported_findings(|sink| node_tools::judge(words, place, sink));
            match problems.first() {
                None => format!("write `{start} {}`, {why}", words.join(" ")),
                Some(problem) if node_tools::is_known(tool) => {
                    format!("write `{start} {tool}` with other words: {}", problem.hint)
                }
                Some(problem) => problem.hint.clone(),
            }
        }
        _ => format!("write `{start} TOOL`, {why}"),
    }
}

/// Whether a step makes every tool that package.json declares available: a complete install in the
/// directory itself.
pub(super) fn installs_all(command: &str) -> bool {
    const HARMLESS: &[&str] = &[
        "--no-audit",
        "--no-fund",
        "--legacy-peer-deps",
        "--strict-peer-deps",
        "--prefer-offline",
        "--offline",
        "--no-optional",
        "--no-progress",
        "--engine-strict",
        "--force",
        "-f",
        "--ignore-scripts",
        "--silent",
        "-s",
        "--quiet",
        "-q",
        "--verbose",
        "--no-color",
    ];
    let words: Vec<&str> = command.split(' ').collect();
    matches!(words.as_slice(), ["npm", "ci" | "install", rest @ ..] if rest.iter().all(|word| HARMLESS.contains(word)))
}

/// A package named by its directory is also a path, relative to the directory that npm changes to.
fn judge_packages(line: &Line<'_>, place: StepDirectory<'_>, sink: &mut FindingSink<'_>) {
    let current_step_directory =
        place.within(line.values_of(&["--prefix"]).last().copied().unwrap_or("."));
    for package in line.values_of(&["--workspace", "-w"]) {
        if !package.starts_with('@') {
            grammar::judge_word(
                WordKind::Input,
                package,
                Role::ValueOf("--workspace"),
                current_step_directory,
                sink,
            );
        }
    }
}

/// Options whose value may be the next word, which is then not a script.
const APART: &[&str] = &["--filter", "--reporter"];

/// Checks the words up to the script's name by `usage`, and the rest, which the script gets, by that
/// name.
fn judge_run(
    program: &str,
    usage: &Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    let is_script = |at: usize, word: &&str| {
        let before = at.checked_sub(1).and_then(|before| words.get(before));
        !word.starts_with('-') && !before.is_some_and(|option| APART.contains(option))
    };
    let script = words
        .iter()
        .enumerate()
        .position(|(at, word)| is_script(at, word));
    let (own, behind) = words.split_at(script.map_or(words.len(), |at| at + 1));
    let script = grammar::judge(usage, own, place, sink)
        .first()
        .copied()
        .unwrap_or_default();
    judge_script(program, script, sink);
    grammar::judge(arguments_of(script), behind, place, sink);
}

/// A tool without `--no-install`: npx fetches it unless it is installed.
fn judge_npx(
    _: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    let (tool, _) = words
        .split_first()
        .map_or(("", &[][..]), |(tool, rest)| (*tool, rest));
    if node_tools::package_of(tool).is_some_and(|package| place.has_installed(package)) {
        return node_tools::judge(words, place, sink);
    }
    let hint = accepted_spelling("npx --no-install", words, place, sink);
    sink.refuse(OPTION_REFUSED, "npx", hint);
}

fn judge_yarn_run(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    judge_run("yarn", usage, words, place, sink);
}

fn judge_pnpm_run(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    judge_run("pnpm", usage, words, place, sink);
}

fn judge_node_test(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    judge_own_files(&grammar::judge(usage, words, place, sink), sink);
}

fn judge_node_check(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    let files = grammar::judge(usage, words, place, sink);
    judge_scripts(&files, sink);
    judge_own_files(&files, sink);
}

fn judge_node(
    usage: &'static Usage,
    words: &[&str],
    place: StepDirectory<'_>,
    sink: &mut FindingSink<'_>,
) {
    let (own, behind) = words.split_at(1.min(words.len()));
    let first = own.first().copied().unwrap_or_default();
    let stem = first
        .rsplit('/')
        .next()
        .unwrap_or(first)
        .split('.')
        .next()
        .unwrap_or_default();
    grammar::judge(arguments_of(stem), behind, place, sink);
    let files = grammar::judge(usage, own, place, sink);
    judge_scripts(&files, sink);
    judge_own_files(&files, sink);
}

fn judge_scripts(files: &[&str], sink: &mut FindingSink<'_>) {
    for file in files.iter().filter(|file| {
        ![".js", ".mjs", ".cjs"]
            .iter()
            .any(|end| file.ends_with(end))
    }) {
        let hint = "node runs a file of the repository that ends in .js, .mjs or .cjs";
        sink.refuse(ARGUMENT_REFUSED, file, hint);
    }
}

/// Installed files have their own command lines, package managers among them.
fn judge_own_files(files: &[&str], sink: &mut FindingSink<'_>) {
    let is_foreign = |part: &str| {
        part.eq_ignore_ascii_case("node_modules") || (part.starts_with('.') && part != ".")
    };
    for file in files.iter().filter(|file| file.split('/').any(is_foreign)) {
        let hint =
            "node runs files of the repository only, no installed package and no hidden file";
        sink.refuse(PATH_INVALID, file, hint);
    }
}
