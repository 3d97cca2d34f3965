//! What reads a file by another name than its own, and the honest code beside it.

use super::forms::check;
use super::*;

#[test]
fn renamed_loaders_with_outside_paths_are_found() {
    let refused = [
        "createRequire(\"/etc/\")(\"./x\");",
        "import { createRequire as r } from \"node:module\";\nr(\"/etc/\")(\"./x\");",
        "import { createRequire as r } from \"node:module\";\nconst load = r(import.meta.url);\nload(\"/etc/x.json\");",
        "const { createRequire: r } = require(\"module\");\nr(\"/etc/\")(\"./x\");",
        "import module from \"node:module\";\nmodule.createRequire(\"/etc/\")(\"./x\");",
        "process.getBuiltinModule(\"module\").createRequire(\"/etc/\")(\"./x\");",
        "const m = require(\"module\");\nconst c = m.createRequire;\nconst d = c;\nd(\"/etc/x/\")(\"./x\");",
        "createRequire(import.meta.url)(\"/etc/x.json\");",
        "createRequire(import.meta.url)(\"../../x.json\");",
        "const r = require;\nr(\"/etc/x.json\");",
        "const r = require, s = r;\ns(\"../../x.json\");",
        "let r;\nr = module.require;\nr('/etc/x.json');",
        "const r = process.mainModule.require;\nr('/etc/x.json');",
        "(0, require)(\"/etc/x.json\");",
        "(require)(\"/etc/x.json\");",
        "require.call(null, \"/etc/x.json\");",
        "require.bind(null)(\"/etc/x.json\");",
        "require?.(\"/etc/x.json\");",
        "[\"/etc/x.json\"].map(require);",
        "Reflect.apply(require, null, [\"/etc/x.json\"]);",
        "const o = { load: require };\no.load(\"/etc/x.json\");",
        "module[\"require\"](\"/etc/x.json\");",
        "m[\"createRequire\"](\"/etc/\")(\"./x\");",
        "module.constructor._load(\"/etc/x.json\");",
        "Module._load(\"../../x.json\");",
        "function load(a, p) { return a(p); }\nload(require, \"/etc/x.json\");",
        "exports.load = require;\nexports.load(\"/tmp/x.js\");",
        "globalThis.r = require;\nglobalThis.r(\"/etc/x.json\");",
        "module.exports = require;\nmodule.exports(\"/etc/x.json\");",
        "class A { static l = require }\nA.l(\"/etc/x.json\");",
        "class A { #l = require; go() { this.#l(\"/etc/x.json\"); } }",
        "const r = require!;\nr(\"/etc/x.json\");",
        "const { mainModule: { require: r } } = process;\nr(\"/etc/x.json\");",
        "const r = eval(\"require\");\nr(\"/etc/x.json\");",
        "(() => require)()(\"/etc/x.json\");",
        "[require][0](\"/etc/x.json\");",
        "const { require: q } = module; q(\"/etc/x.json\");",
        "const r = module.require.bind(module); r(\"/etc/x.json\");",
    ];
    let honest = [
        "import { createRequire } from \"node:module\";\nconst require = createRequire(import.meta.url);\nconst p = require(\"../package.json\");\nfs.readFileSync(\"/etc/os-release\");",
        "const require = createRequire(__filename);\nrequire(\"./x\"); exec(\"/usr/bin/env\");",
        "const r = createRequire(process.cwd() + \"/\");\nr(\"x\"); r.resolve(\"y\");",
        "const r = createRequire(path.join(process.cwd(), \"package.json\"));\nr(\"x\");",
        "const a = require(\"./a\"); const b = \"/etc/hosts\"; fs.readFileSync(b);",
        "define(function (require, exports, module) { var a = require(\"./a\"); var b = \"/etc/hosts\"; });",
        "if (typeof require !== \"undefined\" && require.main === module) { open(\"/dev/null\"); }",
        "if (typeof require === 'function') { open(\"/dev/null\"); }",
        "const o = { require: true }; read(\"/etc/hosts\");",
        "option.require = true; schema.require(\"a\"); read(\"/etc/hosts\");",
        "class A { require(name) { return this.get(name); } }\nread(\"/etc/hosts\");",
        "const r = require;\nr(\"./a\"); r.resolve(\"b\");",
    ];
    let in_src = |sources: &[&'static str]| -> Vec<(&'static str, &'static str)> {
        sources.iter().map(|source| ("src/a.js", *source)).collect()
    };
    check(&in_src(&refused), &in_src(&honest));
}

#[test]
fn renamed_readers_with_outside_paths_are_found() {
    let named = "macro_rules! m { ($i:ident, $p:expr) => { $i!($p) } }\n";
    for (before, call) in [
        ("use std::include_str as x;\n", "x!(\"/etc/passwd\")"),
        ("use std::include as x;\n", "x!(\"/etc/passwd\")"),
        ("use std::{env, include_bytes\tas\tx};\n", "x!(\"../../x\")"),
        (
            "use core::include_str as x;\nuse x as y;\n",
            "y![\"/tmp/x\"]",
        ),
        (
            "use std::include_str as x;\nmacro_rules! k { ($p:expr) => { x!($p) } }\n",
            "k!(\"/etc/passwd\")",
        ),
        (
            "macro_rules! k { ($p:expr) => { l!($p) } }\nmacro_rules! l { ($p:expr) => { include_str!($p) } }\n",
            "k!(\"/etc/passwd\")",
        ),
        (named, "m!(include_str, \"/etc/passwd\")"),
        (named, "m!(include, \"/etc/passwd\")"),
        (named, "m!(include_bytes, \"../../x\")"),
        (
            "macro_rules! m { ($a:ident $b:tt) => { $a ! $b } }\n",
            "m!(include_str (\"/etc/passwd\"))",
        ),
        (
            "macro_rules! m { ($i:ident, $p:expr) => { $i!($p) } }\nmacro_rules! n { ($p:expr) => { m!(include_str, $p) } }\n",
            "n!(\"/etc/passwd\")",
        ),
        (
            "macro_rules! n { ($p:expr) => { outer!(include_str, $p) } }\n",
            "n!(\"/etc/passwd\")",
        ),
        (
            "macro_rules! n { ($p:expr) => { paste! { [<include _str>]!($p) } } }\n",
            "n!(\"/etc/passwd\")",
        ),
        ("", "paste! { [<include _str>]!(\"/etc/passwd\") }"),
    ] {
        // In one file, and in two.
        let use_ = format!("const K: &str = {call};\n");
        let one = included_in_last(&[("src/a.rs", &format!("{before}{use_}"))]);
        let two = included_in_last(&[("src/m.rs", before), ("src/a.rs", &use_)]);
        for found in [one, two] {
            let is_outside = found.iter().any(|found| found.reach == Reach::Outside);
            assert!(is_outside, "{before}{call}: {found:?}");
        }
        let honest = call
            .replace("/etc/passwd", "a.rs")
            .replace("/tmp/x", "a.rs");
        let honest = format!(
            "const K: &str = {};\n",
            honest.replace("../../x", "../a.rs")
        );
        let found = included_in_last(&[("src/m.rs", before), ("src/a.rs", &honest)]);
        assert!(
            !found.iter().any(|found| found.reach == Reach::Outside),
            "{honest}: {found:?}"
        );
    }
    check(
        &[],
        &[
            (
                "src/a.rs",
                "fn a() { println!(\"/etc/passwd\"); cstr!(\"/dev/null\"); }",
            ),
            (
                "src/a.rs",
                "macro_rules! m { ($i:ident, $p:expr) => { $i!($p) } }\nm!(println, \"/etc/passwd\");",
            ),
            (
                "src/a.rs",
                "macro_rules! p { () => { \"/etc/x\" } }\nlet a = File::open(p!());",
            ),
        ],
    );
}

#[test]
fn text_of_a_macro_counts_where_it_is_included() {
    let include = "const K: &str = include_str!(p!());\n";
    let reach = |text: &str| {
        let text = format!("macro_rules! p {{ () => {{ {text:?} }} }}\n{include}");
        outside("src/a.rs", &text).contains(&Reach::Outside)
    };
    assert!(reach("/etc/passwd"));
    assert!(!reach("a.txt"));
}
