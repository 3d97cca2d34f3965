//! npm, npx, yarn, pnpm and node: they install what the lock file declares and run what the repository holds.
//!
//! A package's name behind `install`, another registry, another shell or another folder of settings could bring in foreign
//! code; none of them is in a table. What a repository's script does with an argument nobody knows here: only scripts whose
//! name says that they test or build get a few, and the others (one may publish when it is told `--ci`) none.

use super::super::finding::{ARGUMENT_REFUSED, Desk, OPTION_REFUSED, PATH_INVALID};
use super::super::grammar::{
    self, Kind, Line, Operands, Opt, Role, Usage, flag, is_label, is_name, joined, value,
};
use super::super::paths::Place;
use super::{Form, form, node_tools, plain, script, tool, unaccepted};

const NO_PACKAGE: Operands =
    Operands::None("a package's name would bring in code that the repository does not declare; leave it out");
const SCRIPT: Operands = Operands::One(Kind::Label, "a script of package.json");
const NO_SCRIPT: Operands = Operands::None("the script is named already");
const LEVEL: Kind = Kind::OneOf(&["silent", "error", "warn", "notice", "http", "info", "verbose"]);
const MODE: Kind = Kind::OneOf(&["production", "development", "test"]);

/// What any program that tests or builds may be told.
const LOUDNESS: &[Opt] = &[
    flag("--silent"),
    flag("--verbose"),
    flag("--quiet"),
    flag("--no-color"),
    flag("--no-watch"),
    joined("--watch", Kind::OneOf(&["false"])),
];
/// What a script that tests may be told.
const TEST_OPTIONS: &[Opt] = &[
    flag("--ci"),
    flag("--run"),
    flag("--coverage"),
    flag("--no-coverage"),
    flag("--runInBand"),
    flag("--passWithNoTests"),
    flag("--bail"),
    joined("--watchAll", Kind::OneOf(&["false"])),
    joined("--max-workers", Kind::Number),
    joined("--maxWorkers", Kind::Number),
];
/// What a script that builds may be told.
const BUILD_OPTIONS: &[Opt] =
    &[flag("--production"), flag("--prod"), value("--mode", MODE), value("--configuration", MODE)];
const ONLY_OPTIONS: Operands = Operands::None("a script may get a few harmless options only");
const TEST_ARGUMENTS: Usage = Usage::new("a script that tests", &[LOUDNESS, TEST_OPTIONS], ONLY_OPTIONS);
const BUILD_ARGUMENTS: Usage = Usage::new("a script that builds", &[LOUDNESS, BUILD_OPTIONS], ONLY_OPTIONS);
const NO_ARGUMENTS: Usage = Usage::new(
    "a script whose name is not `test` or `build`",
    &[],
    Operands::None("what this script does with an argument is not known; leave it out"),
);

/// What a script of this name may be told; a part behind `:` is its author's business.
fn arguments_of(script: &str) -> &'static Usage {
    match script.split(':').next() {
        Some("test") => &TEST_ARGUMENTS,
        Some("build") => &BUILD_ARGUMENTS,
        _ => &NO_ARGUMENTS,
    }
}

/// Programs that `yarn run` takes from installed packages when no script has their name, and that publish, install hooks,
/// install packages or run other code even without an argument.
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

/// Refuses names that are no script of the repository when package.json has none of that name.
fn judge_script(program: &str, script: &str, desk: &mut Desk<'_>) {
    let is = |name: &&str| name.eq_ignore_ascii_case(script);
    let hint = if is(&"env") {
        "this prints all variables, secrets among them, unless package.json has such a script"
    } else if program == "yarn" && NO_SCRIPTS_OF_YARN.iter().any(is) {
        "without such a script yarn runs an installed program of this name; name a script that does what is wanted"
    } else {
        return;
    };
    desk.refuse(ARGUMENT_REFUSED, script, hint);
}

/// A package of the workspace, by its name or its directory.
const PACKAGE: Kind = Kind::Fits(
    |word| match word.strip_prefix('@') {
        Some(scoped) => scoped.split_once('/').is_some_and(|(scope, name)| is_name(scope) && is_name(name)),
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
    value("--prefix", Kind::Input),
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
    value("--omit", Kind::OneOf(&["dev", "optional", "peer"])),
    value("--include", Kind::OneOf(&["dev", "optional", "peer"])),
    value("--only", Kind::OneOf(&["prod", "production", "dev"])),
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
        value("--network-timeout", Kind::Number),
        joined("--mode", Kind::OneOf(&["skip-build", "update-lockfile"])),
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
    value("--reporter", Kind::OneOf(&["default", "append-only", "silent", "ndjson"])),
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
const PNPM_TEST: Usage = Usage::new("pnpm test", &[PNPM_SCOPE, LOUDNESS, TEST_OPTIONS], NO_SCRIPT);
const PNPM_BUILD: Usage = Usage::new("pnpm build", &[PNPM_SCOPE, LOUDNESS, BUILD_OPTIONS], NO_SCRIPT);

const NODE_FILE: Usage = Usage::new("node", &[], Operands::One(Kind::Input, "a file of the repository"));
const NODE_TEST: Usage = Usage::new("node --test", &[], Operands::Each(Kind::Input));

/// What a script may be told, for a reader.
pub(super) fn told_of_scripts() -> String {
    format!(
        "`test` or `test:NAME` takes {TEST_ARGUMENTS}, `build` or `build:NAME` takes {BUILD_ARGUMENTS}, any other script nothing"
    )
}

/// What npm may do.
pub(super) const NPM: &[Form] = &[
    form(&["install"], &NPM_INSTALL, judge_npm),
    form(&["ci"], &NPM_INSTALL, judge_npm),
    form(&["test"], &NPM_TEST, judge_npm),
    script(&NPM_RUN, "`--`", judge_npm_run),
    tool(&["exec", "--no", "--"]),
    unaccepted(&["exec"], judge_exec),
];
/// What npx may do: without `--no-install` it would fetch a tool that is not installed.
pub(super) const NPX: &[Form] = &[
    tool(&["--no-install"]),
    tool(&["--no-install", "--"]),
    // npx takes the word behind a bare `--no` for its value and goes on reading its own options behind it.
    tool(&["--no", "--"]),
    tool(&[]).judged_by(judge_npx).also(
        "without `--no-install` only behind a step `npm ci` or `npm install` in the same `cwd`, and if its package.json declares the tool",
    ),
];
/// What yarn may do.
pub(super) const YARN: &[Form] = &[
    plain(&["install"], &YARN_INSTALL),
    script(&YARN_RUN, "its name", judge_yarn_run),
    plain(&["test"], &TEST_ARGUMENTS),
    plain(&["build"], &BUILD_ARGUMENTS),
    tool(&["exec"]),
    tool(&["exec", "--"]),
];
/// What pnpm may do.
pub(super) const PNPM: &[Form] = &[
    plain(&["install"], &PNPM_INSTALL),
    script(&PNPM_RUN, "its name", judge_pnpm_run),
    plain(&["test"], &PNPM_TEST),
    plain(&["build"], &PNPM_BUILD),
    tool(&["exec"]),
    tool(&["exec", "--"]),
];
/// What node may run.
pub(super) const NODE: &[Form] = &[
    form(&["--test"], &NODE_TEST, judge_node_test),
    form(&["--check"], &NODE_FILE, judge_node_check),
    form(&["-c"], &NODE_FILE, judge_node_check),
    form(&[], &NODE_FILE, judge_node).also("it ends in .js, .mjs or .cjs and lies in no `node_modules`"),
];

fn judge_npm(usage: &'static Usage, words: &[&str], place: Place<'_>, desk: &mut Desk<'_>) {
    judge_packages(&grammar::read(usage, words, place, desk), place, desk);
}

fn judge_npm_run(usage: &'static Usage, words: &[&str], place: Place<'_>, desk: &mut Desk<'_>) {
    let end = words.iter().position(|word| *word == "--").unwrap_or(words.len());
    let (own, behind) = words.split_at(end);
    let line = grammar::read(usage, own, place, desk);
    judge_packages(&line, place, desk);
    let script = line.operands.first().copied().unwrap_or_default();
    judge_script("npm", script, desk);
    grammar::judge(arguments_of(script), behind.get(1..).unwrap_or_default(), place, desk);
}

/// Without `--`, npm would read the tool's options as its own, `--yes` and `--package` among them.
fn judge_exec(_: &'static Usage, words: &[&str], _: Place<'_>, desk: &mut Desk<'_>) {
    let named = named_tool(words);
    let hint = format!("write `npm exec --no -- {named}`, which installs nothing");
    desk.refuse(OPTION_REFUSED, "npm exec", hint);
}

/// The tool and its words, or that there is one.
fn named_tool(words: &[&str]) -> String {
    let is_plain = words.first().is_some_and(|tool| node_tools::is_known(tool));
    if is_plain { words.join(" ") } else { "TOOL".to_owned() }
}

/// Whether a step makes every tool that package.json declares at hand: a whole install at the place itself.
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

/// A package that is named by its directory is a path, too; it counts from where npm is told to go.
fn judge_packages(line: &Line<'_>, place: Place<'_>, desk: &mut Desk<'_>) {
    let there = place.within(line.values_of(&["--prefix"]).last().copied().unwrap_or("."));
    for package in line.values_of(&["--workspace", "-w"]) {
        if !package.starts_with('@') {
            grammar::judge_word(Kind::Input, package, Role::ValueOf("--workspace"), there, desk);
        }
    }
}

/// Options whose value may be the next word, which is no script then.
const APART: &[&str] = &["--filter", "--reporter"];

/// Judges what stands up to the script's name by `usage`, and the rest, which the script gets, by that name.
fn judge_run(program: &str, usage: &Usage, words: &[&str], place: Place<'_>, desk: &mut Desk<'_>) {
    let is_script = |at: usize, word: &&str| {
        let before = at.checked_sub(1).and_then(|before| words.get(before));
        !word.starts_with('-') && !before.is_some_and(|option| APART.contains(option))
    };
    let script = words.iter().enumerate().position(|(at, word)| is_script(at, word));
    let (own, behind) = words.split_at(script.map_or(words.len(), |at| at + 1));
    let script = grammar::judge(usage, own, place, desk).first().copied().unwrap_or_default();
    judge_script(program, script, desk);
    grammar::judge(arguments_of(script), behind, place, desk);
}

/// A tool without `--no-install`: npx fetches it unless it is installed.
fn judge_npx(_: &'static Usage, words: &[&str], place: Place<'_>, desk: &mut Desk<'_>) {
    let (tool, _) = words.split_first().map_or(("", &[][..]), |(tool, rest)| (*tool, rest));
    if node_tools::package_of(tool).is_some_and(|package| place.has_installed(package)) {
        return node_tools::judge(words, place, desk);
    }
    let hint = format!(
        "write `npx --no-install {}`, which runs what is installed and installs nothing",
        named_tool(words)
    );
    desk.refuse(OPTION_REFUSED, "npx", hint);
}

fn judge_yarn_run(usage: &'static Usage, words: &[&str], place: Place<'_>, desk: &mut Desk<'_>) {
    judge_run("yarn", usage, words, place, desk);
}

fn judge_pnpm_run(usage: &'static Usage, words: &[&str], place: Place<'_>, desk: &mut Desk<'_>) {
    judge_run("pnpm", usage, words, place, desk);
}

fn judge_node_test(usage: &'static Usage, words: &[&str], place: Place<'_>, desk: &mut Desk<'_>) {
    judge_own_files(&grammar::judge(usage, words, place, desk), desk);
}

fn judge_node_check(usage: &'static Usage, words: &[&str], place: Place<'_>, desk: &mut Desk<'_>) {
    let files = grammar::judge(usage, words, place, desk);
    judge_scripts(&files, desk);
    judge_own_files(&files, desk);
}

fn judge_node(usage: &'static Usage, words: &[&str], place: Place<'_>, desk: &mut Desk<'_>) {
    let (own, behind) = words.split_at(1.min(words.len()));
    let first = own.first().copied().unwrap_or_default();
    let stem = first.rsplit('/').next().unwrap_or(first).split('.').next().unwrap_or_default();
    grammar::judge(arguments_of(stem), behind, place, desk);
    let files = grammar::judge(usage, own, place, desk);
    judge_scripts(&files, desk);
    judge_own_files(&files, desk);
}

fn judge_scripts(files: &[&str], desk: &mut Desk<'_>) {
    for file in files.iter().filter(|file| ![".js", ".mjs", ".cjs"].iter().any(|end| file.ends_with(end))) {
        let hint = "node runs a file of the repository that ends in .js, .mjs or .cjs";
        desk.refuse(ARGUMENT_REFUSED, file, hint);
    }
}

/// What is installed has its own command line, package managers among it.
fn judge_own_files(files: &[&str], desk: &mut Desk<'_>) {
    let is_foreign =
        |part: &str| part.eq_ignore_ascii_case("node_modules") || (part.starts_with('.') && part != ".");
    for file in files.iter().filter(|file| file.split('/').any(is_foreign)) {
        let hint = "node runs files of the repository only, no installed package and no hidden file";
        desk.refuse(PATH_INVALID, file, hint);
    }
}
