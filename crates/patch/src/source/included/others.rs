//! Languages of which no more is known than the words before a path.
//!
//! One table says which words they are. Adding a language is a row.

use crucible_model::RepoPath;

use super::found::{Found, leaves};
use super::item::{after, has, unescaped};

/// What follows a word.
#[derive(Clone, Copy, PartialEq)]
enum Written {
    /// A path in quotes; whatever else follows may be something else of the same name.
    Quoted,
    /// One text in quotes, with or without a bracket; anything else in the bracket cannot be determined.
    Only,
    /// The same, and without a bracket too.
    Bare,
    /// A path without quotes, up to a blank or a closing bracket.
    Plain,
    /// Paths in a bracket, with or without quotes.
    List,
}

/// One construct.
struct Construct {
    endings: &'static [&'static str],
    words: &'static [&'static str],
    written: Written,
    /// Whether a path from the root may mean that of a site.
    has_site: bool,
}

const fn construct(
    endings: &'static [&'static str],
    written: Written,
    words: &'static [&'static str],
) -> Construct {
    Construct {
        endings,
        words,
        written,
        has_site: false,
    }
}

const fn of_site(
    endings: &'static [&'static str],
    written: Written,
    words: &'static [&'static str],
) -> Construct {
    Construct {
        endings,
        words,
        written,
        has_site: true,
    }
}

/// Endings of scripts for a linker.
const LINKED: [&str; 4] = ["ld", "ldscript", "lds", "lcf"];

const CONSTRUCTS: [Construct; 48] = [
    construct(&["md", "markdown"], Written::Quoted, &["--8<--"]),
    construct(
        &["dts", "dtsi", "dtso"],
        Written::Quoted,
        &["/incbin/", "/include/"],
    ),
    construct(&["pyx", "pxd", "pxi"], Written::Quoted, &["include"]),
    construct(&LINKED, Written::Plain, &["INCLUDE"]),
    construct(
        &LINKED,
        Written::List,
        &["AS_NEEDED", "GROUP", "INPUT", "STARTUP"],
    ),
    construct(
        &["zig"],
        Written::Only,
        &["@embedFile", "@import", "@cInclude"],
    ),
    construct(
        &["nim", "nims", "nimble"],
        Written::Bare,
        &["staticRead", "slurp", "staticExec", "gorge", "gorgeEx"],
    ),
    construct(&["nim", "nims"], Written::Quoted, &["include", "import"]),
    construct(&["d", "di"], Written::Only, &["import"]),
    construct(
        &["odin"],
        Written::Only,
        &["#load", "#load_directory", "#load_hash", "#load_or"],
    ),
    construct(&["v"], Written::Only, &["$embed_file", "$tmpl"]),
    construct(&["v", "sv", "svh", "vh"], Written::Quoted, &["`include"]),
    construct(&["v"], Written::Quoted, &["#include", "#flag"]),
    construct(&["c3"], Written::Only, &["$embed", "$include", "$exec"]),
    construct(
        &["jai"],
        Written::Quoted,
        &["#load", "#import", "#run read_entire_file"],
    ),
    construct(
        &["swift"],
        Written::Quoted,
        &[
            "#fileLiteral(resourceName:",
            "#imageLiteral(resourceName:",
            "#embed",
            "#include",
        ],
    ),
    construct(
        &["kts"],
        Written::Quoted,
        &["@file:Import", "@file:DependsOn", "apply(from ="],
    ),
    construct(
        &["cs", "csx", "fs", "fsx", "fsi"],
        Written::Quoted,
        &["#load", "#r", "#I"],
    ),
    construct(
        &["fs", "fsx"],
        Written::Quoted,
        &["JsonProvider<", "CsvProvider<", "XmlProvider<"],
    ),
    construct(&["cr"], Written::Only, &["read_file", "read_file?"]),
    construct(&["cr"], Written::Quoted, &["require", "run"]),
    construct(
        &["rb", "rake", "gemspec", "ru"],
        Written::Quoted,
        &["require_relative", "require", "load", "eval_gemfile"],
    ),
    construct(
        &["php", "phtml", "inc"],
        Written::Quoted,
        &["include", "include_once", "require", "require_once"],
    ),
    construct(
        &["pl", "pm", "t"],
        Written::Quoted,
        &["do", "require", "use lib"],
    ),
    construct(&["lua"], Written::Quoted, &["dofile", "loadfile"]),
    construct(
        &["hs", "lhs"],
        Written::Bare,
        &[
            "embedFile",
            "embedStringFile",
            "embedDir",
            "embedOneFileOf",
            "makeRelativeToProject",
        ],
    ),
    construct(
        &["hs", "lhs"],
        Written::Quoted,
        &[
            "#include",
            "addDependentFile",
            "quoteFile",
            "hamletFile",
            "juliusFile",
        ],
    ),
    construct(
        &["ml", "mli", "mll", "mly"],
        Written::Quoted,
        &["[%blob", "[%static_file", "#use", "#load"],
    ),
    construct(&["jl"], Written::Quoted, &["include", "include_dependency"]),
    construct(
        &["erl", "hrl", "yrl"],
        Written::Quoted,
        &["-include", "-include_lib"],
    ),
    construct(
        &["ex", "exs", "eex"],
        Written::Quoted,
        &[
            "Code.require_file",
            "Code.eval_file",
            "@external_resource",
            "embed_templates",
        ],
    ),
    construct(
        &["f", "f90", "f95", "f03", "f08", "for", "ftn", "fpp"],
        Written::Quoted,
        &["include", "INCLUDE", "#include"],
    ),
    construct(
        &["pas", "pp", "dpr", "lpr"],
        Written::Plain,
        &["{$I", "{$i", "{$INCLUDE", "{$include", "{$R", "{$r"],
    ),
    construct(&["dart"], Written::Quoted, &["import", "export", "part"]),
    construct(
        &[
            "proto", "thrift", "fbs", "capnp", "sol", "idl", "graphql", "smithy",
        ],
        Written::Quoted,
        &[
            "import",
            "import option",
            "import public",
            "import weak",
            "include",
            "embed",
            "native_include",
            "cpp_include",
            "#import",
        ],
    ),
    construct(
        &["jsonnet", "libsonnet"],
        Written::Only,
        &["importstr", "importbin", "import"],
    ),
    construct(
        &["scm", "ss", "sld", "rkt", "lisp", "cl", "lsp", "el"],
        Written::Quoted,
        &["include", "include-ci", "load", "require", "file"],
    ),
    construct(&["r", "rmd"], Written::Quoted, &["source", "sourceCpp"]),
    construct(&["tcl"], Written::Plain, &["source"]),
    construct(&["vim"], Written::Plain, &["source", "runtime"]),
    construct(
        &["tf", "hcl"],
        Written::Quoted,
        &["file", "filebase64", "templatefile", "fileset"],
    ),
    of_site(
        &["vue", "svelte", "astro", "mdx", "marko"],
        Written::Quoted,
        &["from", "import", "require", "src=", "import.meta.glob"],
    ),
    of_site(
        &["css", "less", "sass", "scss", "styl", "pcss"],
        Written::Quoted,
        &[
            "@config",
            "@forward",
            "@import",
            "@import (css)",
            "@import (inline)",
            "@import (less)",
            "@import (multiple)",
            "@import (once)",
            "@import (optional)",
            "@import (reference)",
            "@import url",
            "@plugin",
            "@reference",
            "@require",
            "@source",
            "@use",
            "data-uri",
            "load-css",
        ],
    ),
    of_site(
        &["css", "less", "sass", "scss", "styl", "pcss"],
        Written::Plain,
        &["@import url("],
    ),
    of_site(
        &["rst"],
        Written::Plain,
        &["include::", "literalinclude::", ":file:", "raw:: file"],
    ),
    of_site(&["adoc", "asciidoc"], Written::Plain, &["include::"]),
    of_site(
        &["md", "markdown"],
        Written::Plain,
        &[
            "{{#include",
            "{{#rustdoc_include",
            "{{#playground",
            "@include:",
        ],
    ),
    construct(
        &["tex", "sty", "cls", "ltx"],
        Written::Plain,
        &[
            "\\input{",
            "\\include{",
            "\\verbatiminput{",
            "\\lstinputlisting{",
        ],
    ),
];

/// What is looked for in files of which nothing else is known: any text can be included from anywhere.
const ANYWHERE: [Construct; 2] = [
    construct(
        &[],
        Written::Quoted,
        &[
            "include_str!",
            "include_bytes!",
            "include!",
            "#include",
            "#embed",
            ".incbin",
            "@embedFile",
        ],
    ),
    construct(&[], Written::Quoted, &["# include", "#import", "%:include"]),
];

pub(super) fn read(path: &RepoPath, is_unknown: bool, source: &[u8], found: &mut Found<'_>) {
    let ending = path
        .extension()
        .map(str::to_ascii_lowercase)
        .unwrap_or_default();
    let known: Vec<&Construct> = CONSTRUCTS
        .iter()
        .filter(|construct| construct.endings.contains(&ending.as_str()))
        .collect();
    let anywhere = ANYWHERE.iter().filter(|_| is_unknown && known.is_empty());
    for construct in known.iter().copied().chain(anywhere) {
        for word in construct.words.iter().filter(|word| has(source, word)) {
            let text = String::from_utf8_lossy(source);
            match construct.written {
                Written::Quoted => quoted(&text, word, construct, found),
                Written::Only | Written::Bare => only(&text, word, construct.written, found),
                Written::Plain => plain(&text, word, construct, found),
                Written::List => list(&text, word, found),
            }
        }
    }
}

fn judge(construct: &Construct, word: &str, target: &str, found: &mut Found<'_>) {
    match construct.has_site {
        true => found.path_of_site(word, target),
        false => found.path(word, target),
    }
}

/// Each path in quotes behind `word`, with a bracket or the file's own directory between them at most.
fn quoted(text: &str, word: &str, construct: &Construct, found: &mut Found<'_>) {
    const OWN: [&str; 3] = ["__DIR__", "__dir__", "dirname(__FILE__)"];
    for rest in after(text, word) {
        let mut rest = rest.trim_start_matches(['(', '{', ' ', '\t', '[']);
        let mut is_own = false;
        if let Some(own) = OWN.iter().find_map(|own| rest.strip_prefix(own)) {
            rest = own.trim_start_matches([' ', '.', '+', '\t']);
            is_own = true;
        }
        let Some(quote) = rest
            .chars()
            .next()
            .filter(|quote| matches!(quote, '"' | '\'' | '<'))
        else {
            continue;
        };
        let close = if quote == '<' { '>' } else { quote };
        let Some((target, _)) = rest[1..]
            .split_once(close)
            .filter(|(target, _)| !target.contains('\n'))
        else {
            continue;
        };
        let target = &unescaped(target);
        judge(
            construct,
            word,
            if is_own {
                target.trim_start_matches('/')
            } else {
                target
            },
            found,
        );
    }
}

/// The one text behind `word`; in a bracket nothing else is understood.
fn only(text: &str, word: &str, written: Written, found: &mut Found<'_>) {
    for rest in after(text, word) {
        let line = rest.lines().next().unwrap_or_default().trim();
        let is_call = line.starts_with('(');
        let inner = line.trim_start_matches(['(', ' ', '\t']);
        let literal = inner
            .strip_prefix('"')
            .and_then(|inner| inner.split_once('"'));
        match literal {
            Some((target, behind)) => {
                let behind = behind.trim_start();
                let goes_on = ["++", "~", "&", "+", "."]
                    .iter()
                    .any(|mark| behind.starts_with(mark));
                if leaves(&unescaped(target), found.depth) {
                    found.outside(word, target);
                } else if target.contains('\\') || goes_on {
                    found.report_unknown(word, line);
                }
            }
            None if is_call && !inner.is_empty() && !inner.starts_with(')') => {
                found.report_unknown(word, line)
            }
            // A name that a function of the language is handed.
            None if written == Written::Bare
                && line.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$') =>
            {
                found.report_unknown(word, line);
            }
            None => {}
        }
    }
}

/// Each path behind `word` that stands without quotes.
fn plain(text: &str, word: &str, construct: &Construct, found: &mut Found<'_>) {
    for rest in after(text, word) {
        let line = rest.lines().next().unwrap_or_default().trim_start();
        let end = line
            .find([' ', '\t', '}', '[', ']', ')', ':', '>'])
            .unwrap_or(line.len());
        judge(construct, word, &line[..end], found);
    }
}

/// Each path in the bracket behind `word`.
fn list(text: &str, word: &str, found: &mut Found<'_>) {
    for rest in after(text, word) {
        let Some(list) = rest.trim_start().strip_prefix('(') else {
            continue;
        };
        let list = list.split(')').next().unwrap_or_default();
        let paths = list.split(|c: char| c.is_whitespace() || matches!(c, ',' | '(' | '"'));
        paths.for_each(|path| found.path(word, path));
    }
}
