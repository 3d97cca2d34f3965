//! Tools that Node projects install for themselves, as `npx --no-install`, `npm exec --no --`, `yarn exec` and `pnpm exec`
//! run them: by their bare name, each with its own options. Tools that run other programs, evaluate text, fetch or delete
//! are not in the table.

use super::super::finding::{ARGUMENT_REFUSED, Desk};
use super::super::grammar::{self, Kind, Operands, Usage, flag, is_name, joined, maybe_joined, value};
use super::super::paths::Place;

const FILES: Operands = Operands::Each(Kind::Input);
const MODE: Kind = Kind::OneOf(&["production", "development", "test", "none"]);
const EXTENSIONS: Kind = Kind::Fits(
    |word| word.split(',').all(|end| is_name(end.strip_prefix('.').unwrap_or(end))),
    "extensions of files, separated by commas",
);

const TOOLS: &[Usage] = &[
    Usage::new(
        "tsc",
        &[&[
            value("-p", Kind::Input),
            value("--project", Kind::Input),
            flag("-b"),
            flag("--build"),
            flag("--noEmit"),
            flag("--declaration"),
            flag("--emitDeclarationOnly"),
            flag("--pretty"),
            flag("--verbose"),
            flag("--skipLibCheck"),
            value("--outDir", Kind::Output),
        ]],
        FILES,
    ),
    Usage::new(
        "eslint",
        &[&[
            value("--ext", EXTENSIONS),
            value("--max-warnings", Kind::Number),
            flag("--quiet"),
            flag("--cache"),
            flag("--no-error-on-unmatched-pattern"),
        ]],
        FILES,
    ),
    Usage::new("prettier", &[&[flag("--check"), flag("-c"), flag("--list-different"), flag("-l")]], FILES),
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
            joined("--watchAll", Kind::OneOf(&["false"])),
            value("--maxWorkers", Kind::Number),
        ]],
        FILES,
    ),
    Usage::new(
        "vitest",
        &[&[
            flag("--run"),
            flag("--coverage"),
            flag("--passWithNoTests"),
            flag("--silent"),
            value("--reporter", Kind::OneOf(&["default", "verbose", "dot", "json", "junit"])),
        ]],
        FILES,
    ),
    Usage::new(
        "mocha",
        &[&[
            flag("--recursive"),
            flag("--exit"),
            flag("--bail"),
            flag("-b"),
            flag("--parallel"),
            flag("--forbid-only"),
            value("--timeout", Kind::Number),
            value("-t", Kind::Number),
        ]],
        FILES,
    ),
    Usage::new(
        "webpack",
        &[&[
            value("--mode", MODE),
            flag("--no-watch"),
            value("--config", Kind::Input),
            value("-c", Kind::Input),
        ]],
        Operands::Each(Kind::OneOf(&["build"])),
    ),
    Usage::new(
        "vite",
        &[&[
            value("--mode", MODE),
            value("--outDir", Kind::Output),
            value("--config", Kind::Input),
            value("-c", Kind::Input),
        ]],
        Operands::One(Kind::OneOf(&["build"]), "`build`"),
    ),
    Usage::new("rollup", &[&[flag("-c"), maybe_joined("--config", Kind::Input), flag("--silent")]], FILES),
    Usage::new(
        "esbuild",
        &[&[
            flag("--bundle"),
            flag("--minify"),
            flag("--sourcemap"),
            joined("--outfile", Kind::Output),
            joined("--outdir", Kind::Output),
            joined("--platform", Kind::OneOf(&["node", "browser", "neutral"])),
            joined("--format", Kind::OneOf(&["esm", "cjs", "iife"])),
            joined("--target", Kind::Labels),
        ]],
        FILES,
    ),
    Usage::new("next", &[], Operands::One(Kind::OneOf(&["build", "lint"]), "`build` or `lint`")),
    Usage::new("gulp", &[&[flag("--silent")]], Operands::Each(Kind::Label)),
    Usage::new("grunt", &[&[flag("--no-color")]], Operands::Each(Kind::Label)),
];

/// Judges a tool and its words.
pub(super) fn judge(words: &[&str], place: Place<'_>, desk: &mut Desk<'_>) {
    let (tool, rest) = super::subcommand(words);
    match TOOLS.iter().find(|usage| usage.name == tool) {
        Some(usage) => {
            grammar::judge(usage, rest, place, desk);
        }
        None => {
            let known: Vec<_> = TOOLS.iter().map(|usage| usage.name).collect();
            let hint = format!(
                "only tools that are known to install and evaluate nothing are run by their bare name: {}; \
                 use a script of package.json instead",
                known.join(", ")
            );
            desk.refuse(ARGUMENT_REFUSED, tool, hint);
        }
    }
}
