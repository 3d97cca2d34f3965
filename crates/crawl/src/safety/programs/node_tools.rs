//! Tools that Node projects install for themselves, as `npx --no-install`, `npm exec --no --`,
//! `yarn exec` and `pnpm exec` run them: by name, each with its own options.
//!
//! The table excludes tools that run other programs, evaluate text, fetch, delete, or install missing
//! parts (or offer to). It also excludes options for another settings file, because such a file is a
//! program, and words that some tool takes for another command.

use super::super::finding::{ARGUMENT_REFUSED, FindingSink};
use super::super::grammar::{
    self, Operands, Opt, Usage, WordKind, flag, is_name, required_long_value, value,
};
use super::super::paths::StepDirectory;
use super::python_checks;

const FILES: Operands = Operands::Each(WordKind::Input);
const MODE: WordKind = WordKind::OneOf(&["production", "development", "test", "none"]);
const EXTENSIONS: WordKind = WordKind::Fits(
    |word| {
        word.split(',')
            .all(|end| is_name(end.strip_prefix('.').unwrap_or(end)))
    },
    "extensions of files, separated by commas",
);

const VITEST: &[Opt] = &[
    flag("--passWithNoTests"),
    flag("--silent"),
    value(
        "--reporter",
        WordKind::OneOf(&["default", "verbose", "dot", "json", "junit"]),
    ),
];

/// Every tool, by its name.
pub(super) const TOOLS: &[Usage] = &[
    Usage::new(
        "tsc",
        &[&[
            value("-p", WordKind::Input),
            value("--project", WordKind::Input),
            flag("-b"),
            flag("--build"),
            flag("--noEmit"),
            flag("--declaration"),
            flag("--emitDeclarationOnly"),
            flag("--pretty"),
            flag("--verbose"),
            flag("--skipLibCheck"),
            value("--outDir", WordKind::Output),
        ]],
        FILES,
    ),
    Usage::new(
        "eslint",
        &[&[
            value("--ext", EXTENSIONS),
            value("--max-warnings", WordKind::Number),
            flag("--quiet"),
            flag("--cache"),
            flag("--no-error-on-unmatched-pattern"),
        ]],
        FILES,
    ),
    Usage::new(
        "prettier",
        &[&[
            flag("--check"),
            flag("-c"),
            flag("--list-different"),
            flag("-l"),
        ]],
        FILES,
    ),
    Usage::new(
        "jest",
        &[&[
            flag("--ci"),
            flag("--coverage"),
            flag("--runInBand"),
            flag("-i"),
            flag("--passWithNoTests"),
            flag("--silent"),
            flag("--verbose"),
            flag("--bail"),
            flag("--forceExit"),
            flag("--no-cache"),
            flag("--detectOpenHandles"),
            required_long_value("--watchAll", WordKind::OneOf(&["false"])),
            value("--maxWorkers", WordKind::Number),
        ]],
        FILES,
    ),
    Usage::new("pyright", &[python_checks::PYRIGHT_OPTIONS], FILES),
    // Its other commands set up, watch or serve; it offers to install missing coverage packages.
    Usage::new(
        "vitest",
        &[VITEST],
        Operands::One(WordKind::OneOf(&["run"]), "`run`"),
    )
    .then(&Usage::new("vitest run", &[VITEST], FILES)),
    Usage::new(
        "mocha",
        &[&[
            flag("--recursive"),
            flag("--exit"),
            flag("--bail"),
            flag("-b"),
            flag("--parallel"),
            flag("--forbid-only"),
            value("--timeout", WordKind::Number),
            value("-t", WordKind::Number),
        ]],
        Operands::None(
            "the repository's settings name its tests, and some words are commands that write files",
        ),
    ),
    Usage::new(
        "vite",
        &[&[value("--mode", MODE)]],
        Operands::One(WordKind::OneOf(&["build"]), "`build`"),
    ),
    Usage::new(
        "rollup",
        &[&[flag("-c"), flag("--config"), flag("--silent")]],
        Operands::None(
            "the repository's settings name its files, and a word behind `-c` would be run as such",
        ),
    ),
    Usage::new(
        "esbuild",
        &[&[
            flag("--bundle"),
            flag("--minify"),
            flag("--sourcemap"),
            required_long_value("--outfile", WordKind::Output),
            required_long_value("--outdir", WordKind::Output),
            required_long_value(
                "--platform",
                WordKind::OneOf(&["node", "browser", "neutral"]),
            ),
            required_long_value("--format", WordKind::OneOf(&["esm", "cjs", "iife"])),
            required_long_value("--target", WordKind::Labels),
        ]],
        FILES,
    ),
];

/// Whether a word names a tool of the table.
pub(super) fn is_known(tool: &str) -> bool {
    TOOLS.iter().any(|usage| usage.name == tool)
}

/// The package of a tool in the table.
pub(super) fn package_of(tool: &str) -> Option<&str> {
    is_known(tool).then_some(if tool == "tsc" { "typescript" } else { tool })
}

/// Judges a tool and its words.
pub(super) fn judge(words: &[&str], place: StepDirectory<'_>, sink: &mut FindingSink<'_>) {
    let (tool, rest) = words
        .split_first()
        .map_or(("", &[][..]), |(tool, rest)| (*tool, rest));
    match TOOLS.iter().find(|usage| usage.name == tool) {
        Some(usage) => {
            grammar::judge(usage, rest, place, sink);
        }
        None => {
            let known: Vec<_> = TOOLS.iter().map(|usage| usage.name).collect();
            let hint = format!(
                "only tools that are known to install nothing are run by their bare name: {}; \
                 use a script of package.json instead, such as `npm run NAME`",
                known.join(", ")
            );
            sink.refuse(ARGUMENT_REFUSED, tool, hint);
        }
    }
}
