//! Properties of answers, on generated text.

use super::*;

proptest! {
    #[test]
    fn arbitrary_text_gives_file_or_error(
        language in 0usize..4,
        lines in proptest::collection::vec("[ \\t\u{a0}\u{a9}\u{3000}\u{3042}\u{2003}\u{2014}\u{85}\u{10ffff}]{0,3}(fn f\\(\\) \\{|def f\\(\\):|function f\\(\\) \\{|func f\\(\\) \\{|/\\*|\\*/|//|#|\"|'|`|pass|\\}|;)?[ \u{a0}\u{a9}\u{3042}]{0,2}", 0..9),
        marked in "[\u{a0}\u{3000}\u{2003}\u{2028} \\t]{0,2}",
        comment in "[\u{a0}\u{a9}\u{3000}\u{3042}\u{2003}\u{2014}\u{2028}x ]{0,4}",
    ) {
        let (name, before, head, tail) = [
            ("a.rs", "fn f() {}\n", "fn f() {\n/*\n", "\n*/\n}\n"),
            ("a.js", "function f() {}\n", "function f() {\n/*\n", "\n*/\n}\n"),
            ("a.go", "package a\n\nfunc f() {}\n", "func f() {\n/*\n", "\n*/\n}\n"),
            ("a.py", "def f():\n    pass\n", "def f():\n    x = [\n", "\n    ]\n"),
        ][language];
        in_blocks(name, before, &[lines.join("\n")]);
        in_blocks(name, before, &[format!("{marked}{head}{comment}{tail}")]);
        in_blocks(name, &format!("{marked}{before}"), &[format!("{head}{comment}{tail}")]);
    }

    #[test]
    fn any_text_gives_edits_or_an_error(text in "([ -~\n]|```|FILE: a\n|<<<<<<< SEARCH\n|=======\n|>>>>>>> REPLACE\n|diff --git a/a b/a\n){0,40}") {
        for format in EditFormat::ALL {
            let answer = Untrusted::new(text.clone());
            if let Ok(proposal) = read_answer(format, &answer, &paths(&["a"])) {
                let _ = apply(&proposal, &files(&[("a", "x\ny\n")]));
            }
            prop_assert_eq!(
                read_answer(format, &answer, &paths(&["a"])).ok(),
                read_answer(format, &answer, &paths(&["a"])).ok()
            );
        }
    }

    #[test]
    fn a_fenced_file_comes_back_as_it_was(content in "([a-z{}/#\" ]{0,12}\n){0,12}", crlf in any::<bool>(), end in any::<bool>()) {
        let mut before = if crlf { content.replace('\n', "\r\n") } else { content.clone() };
        if !end {
            before = before.trim_end_matches(['\n', '\r']).to_owned();
        }
        prop_assume!(!before.is_empty() && (end || content.trim_end_matches('\n').len() + 1 == content.len()));
        let answer = format!("FILE: a.rs\n`````\n{content}`````");
        prop_assert_eq!(applied(EditFormat::WholeFile, &answer, &before), before);
    }

    #[test]
    fn only_the_definition_that_is_given_changes(
        names in proptest::collection::btree_set("[a-z]{3,6}_[a-z]", 1..8),
        chosen in any::<prop::sample::Index>(),
        language in 0usize..4,
        crlf in any::<bool>(),
        end in any::<bool>(),
        blanks in 0usize..3,
    ) {
        let (file, form): (&str, fn(&str, u32) -> String) = [
            ("a.rs", (|name, value| format!("/// Of {name}.\n#[inline]\npub fn {name}() -> u32 {{\n    {value}\n}}\n")) as fn(&str, u32) -> String),
            ("a.py", |name, value| format!("# Of {name}.\n@cache\ndef {name}():\n    return {value}\n")),
            ("a.ts", |name, value| format!("/** Of {name}. */\nexport const {name} = (): number => {{\n  return {value};\n}};\n")),
            ("a.go", |name, value| format!("// Of {name}.\nfunc {name}() int {{\n\treturn {value}\n}}\n")),
        ][language];
        let chosen = names.iter().nth(chosen.index(names.len())).unwrap();
        let made = |changed: u32| {
            let blanks = "\n".repeat(blanks);
            let mut text: String = names
                .iter()
                .map(|name| format!("{}{blanks}", form(name, if name == chosen { changed } else { 1 })))
                .collect();
            if !end {
                text.truncate(text.trim_end().len());
            }
            if crlf { text.replace('\n', "\r\n") } else { text }
        };
        let answer = form(chosen, 2);
        let bare = answer.lines().filter(|line| !line.starts_with(['/', '#', '@'])).map(|line| format!("{line}\n"));
        for content in [answer.clone(), bare.collect()] {
            let proposal = Proposal::Edits(vec![Edit { path: path(file), kind: EditKind::Definitions { content } }]);
            let after = apply(&proposal, &files(&[(file, &made(1))])).unwrap();
            prop_assert_eq!(String::from_utf8(after[&path(file)].clone()).unwrap(), made(2));
        }
    }

    #[test]
    fn a_files_own_definitions_change_nothing(
        pieces in proptest::collection::vec(0usize..9, 0..10),
        crlf in any::<bool>(),
        mark in any::<bool>(),
    ) {
        const PIECES: [&str; 9] = [
            "use a::{b, c as d};\n", "/// Doc.\n#[x]\nfn NAME() {\n\t\"a\nb\";\n}\n", "\n\n", "// note\n",
            "impl NAME {\n    const A: u8 = 1; // one\n\n    /// M.\n    fn m(&self) {}\n}\n", "const NAME: u8 = 1;\n",
            "mod NAME {\n  use super::*;\n  struct S;\n}\n", "mac! { x }\n", "  struct NAME;  \n",
        ];
        let named = |(at, piece): (usize, &usize)| PIECES[*piece].replace("NAME", &format!("n{at}"));
        let text: String = pieces.iter().enumerate().map(named).collect();
        let ended = if crlf { text.replace('\n', "\r\n") } else { text.clone() };
        let before = if mark { format!("\u{feff}{ended}") } else { ended };
        let proposal = Proposal::Edits(vec![Edit { path: path("a.rs"), kind: EditKind::Definitions { content: text } }]);
        match apply(&proposal, &files(&[("a.rs", &before)])) {
            Ok(after) => prop_assert_eq!(String::from_utf8(after[&path("a.rs")].clone()).unwrap(), before),
            Err(error) => prop_assert_eq!(error.code(), Code::new("answer-no-definition")),
        }
    }

    #[test]
    fn any_two_texts_give_parsing_file_or_error(
        before in "(fn a\\(\\) \\{\\}|impl A|\\{|\\}|struct B;|use c::d;|// e|#\\[f\\]|\n| ){0,12}",
        content in "(fn a\\(\\) \\{\\}|impl A|\\{|\\}|struct B;|use c::d;|// e|#\\[f\\]|\n| ){0,12}",
    ) {
        let proposal = Proposal::Edits(vec![Edit { path: path("a.rs"), kind: EditKind::Definitions { content } }]);
        let accepts = can_splice(&path("a.rs"), before.as_bytes()) && !before.trim().is_empty();
        if let (true, Ok(after)) = (accepts, apply(&proposal, &files(&[("a.rs", &before)]))) {
            prop_assert!(can_splice(&path("a.rs"), &after[&path("a.rs")]));
        }
    }
}
