//! npm, npx, yarn, pnpm and node: they install what the lock file declares and run what the repository holds.
//!
//! A package's name behind `install`, another registry, another shell or another folder of settings could bring in foreign
//! code; none of them is in a table. A repository's script may get only a few harmless arguments: what it does with others
//! nobody knows.

use super::super::finding::{ARGUMENT_REFUSED, Desk, OPTION_REFUSED, PATH_INVALID};
use super::super::grammar::{self, Kind, Operands, Opt, Usage, flag, joined, value};
use super::super::paths::Place;
use super::node_tools;

const NO_PACKAGE: Operands =
    Operands::None("a package's name would bring in code that the repository does not declare; leave it out");
const SCRIPT: Operands = Operands::One(Kind::Label, "a script of package.json");
const NO_SCRIPT: Operands = Operands::None("the script is named already");
const LEVEL: Kind = Kind::OneOf(&["silent", "error", "warn", "notice", "http", "info", "verbose"]);
const MODE: Kind = Kind::OneOf(&["production", "development", "test"]);

/// What any script may be told.
pub(super) const SCRIPT_OPTIONS: &[Opt] = &[
    flag("--ci"),
    flag("--run"),
    flag("--coverage"),
    flag("--no-coverage"),
    flag("--runInBand"),
    flag("--passWithNoTests"),
    flag("--silent"),
    flag("--verbose"),
    flag("--quiet"),
    flag("--production"),
    flag("--prod"),
    flag("--no-watch"),
    flag("--no-color"),
    flag("--bail"),
    joined("--watch", Kind::OneOf(&["false"])),
    joined("--watchAll", Kind::OneOf(&["false"])),
    value("--mode", MODE),
    value("--configuration", MODE),
    joined("--max-workers", Kind::Number),
    joined("--maxWorkers", Kind::Number),
];
const SCRIPT_WORDS: Kind = Kind::OneOf(&["production", "development", "test", "build", "prod", "dev", "all"]);
const SCRIPT_ARGUMENTS: Usage =
    Usage::new("a script", &[SCRIPT_OPTIONS], Operands::None("a script may get a few harmless options only"));

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
    value("--workspace", Kind::Input),
    value("-w", Kind::Input),
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
    flag("--no-package-lock"),
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
const NPM_RUN: Usage = Usage::new("npm run", &[NPM_SCOPE], SCRIPT).with_tail(&SCRIPT_ARGUMENTS);
const NPM_TEST: Usage = Usage::new("npm test", &[NPM_SCOPE], NO_SCRIPT).with_tail(&SCRIPT_ARGUMENTS);

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
const YARN_RUN: Usage = Usage::new("yarn run", &[&[flag("--silent")]], SCRIPT).then(&SCRIPT_ARGUMENTS);

const PNPM_SCOPE: &[Opt] = &[
    flag("-r"),
    flag("--recursive"),
    flag("--if-present"),
    flag("--silent"),
    flag("-s"),
    flag("--no-bail"),
    value("--filter", Kind::Label),
    value("--reporter", Kind::OneOf(&["default", "append-only", "silent", "ndjson"])),
];
const PNPM_INSTALL: Usage = Usage::new(
    "pnpm install",
    &[
        PNPM_SCOPE,
        &[
            flag("--frozen-lockfile"),
            flag("--no-frozen-lockfile"),
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
const PNPM_RUN: Usage = Usage::new("pnpm run", &[PNPM_SCOPE], SCRIPT).then(&SCRIPT_ARGUMENTS);
const PNPM_SCRIPT: Usage = Usage::new("pnpm", &[PNPM_SCOPE, SCRIPT_OPTIONS], NO_SCRIPT);

const NODE_FILE: Usage = Usage::new("node", &[], Operands::One(Kind::Input, "a file of the repository"))
    .then(&Usage::new("a script", &[SCRIPT_OPTIONS], Operands::Each(SCRIPT_WORDS)));
const NODE_TEST: Usage = Usage::new("node --test", &[], Operands::Each(Kind::Input));

pub(super) fn judge_npm(words: &[&str], place: Place<'_>, desk: &mut Desk<'_>) {
    let (command, rest) = super::subcommand(words);
    let usage = match command {
        "install" | "ci" => &NPM_INSTALL,
        "run" => &NPM_RUN,
        "test" => &NPM_TEST,
        "exec" => {
            // Without `--`, npm would read the tool's options as its own, `--yes` and `--package` among them.
            match rest {
                ["--no", "--", tool @ ..] => node_tools::judge(tool, place, desk),
                _ => desk.refuse(
                    OPTION_REFUSED,
                    "npm exec",
                    "write `npm exec --no -- TOOL`, which installs nothing",
                ),
            }
            return;
        }
        _ => return super::unknown("npm", command, "install, ci, run, test, exec", desk),
    };
    grammar::judge(usage, rest, place, desk);
}

pub(super) fn judge_npx(words: &[&str], place: Place<'_>, desk: &mut Desk<'_>) {
    match words {
        // npx takes the word behind a bare `--no` for its value and goes on reading its own options behind it.
        ["--no-install" | "--no", "--", tool @ ..] | ["--no-install", tool @ ..] => {
            node_tools::judge(tool, place, desk)
        }
        _ => {
            let hint = "write `npx --no-install TOOL`, which runs what is installed and installs nothing";
            desk.refuse(OPTION_REFUSED, "npx", hint);
        }
    }
}

pub(super) fn judge_yarn(words: &[&str], place: Place<'_>, desk: &mut Desk<'_>) {
    let (command, rest) = super::subcommand(words);
    let usage = match command {
        "install" => &YARN_INSTALL,
        "run" => &YARN_RUN,
        "test" | "build" => &SCRIPT_ARGUMENTS,
        "exec" => return node_tools::judge(rest.strip_prefix(&["--"]).unwrap_or(rest), place, desk),
        _ => return super::unknown("yarn", command, "install, run, test, build, exec", desk),
    };
    grammar::judge(usage, rest, place, desk);
}

pub(super) fn judge_pnpm(words: &[&str], place: Place<'_>, desk: &mut Desk<'_>) {
    let (command, rest) = super::subcommand(words);
    let usage = match command {
        "install" => &PNPM_INSTALL,
        "run" => &PNPM_RUN,
        "test" | "build" => &PNPM_SCRIPT,
        "exec" => return node_tools::judge(rest.strip_prefix(&["--"]).unwrap_or(rest), place, desk),
        _ => return super::unknown("pnpm", command, "install, run, test, build, exec", desk),
    };
    grammar::judge(usage, rest, place, desk);
}

pub(super) fn judge_node(words: &[&str], place: Place<'_>, desk: &mut Desk<'_>) {
    let (first, rest) = super::subcommand(words);
    let files = match first {
        "--test" => grammar::judge(&NODE_TEST, rest, place, desk),
        "--check" | "-c" if rest.len() == 1 => grammar::judge(&NODE_TEST, rest, place, desk),
        _ => grammar::judge(&NODE_FILE, words, place, desk),
    };
    for file in files {
        let is_script = [".js", ".mjs", ".cjs"].iter().any(|end| file.ends_with(end));
        if !is_script && first != "--test" {
            desk.refuse(
                ARGUMENT_REFUSED,
                file,
                "node runs a file of the repository that ends in .js, .mjs or .cjs",
            );
        }
        // What is installed there has its own command line, package managers among it.
        if file
            .split('/')
            .any(|part| part.eq_ignore_ascii_case("node_modules") || (part.starts_with('.') && part != "."))
        {
            desk.refuse(
                PATH_INVALID,
                file,
                "node runs files of the repository only, no installed package and no hidden file",
            );
        }
    }
}
