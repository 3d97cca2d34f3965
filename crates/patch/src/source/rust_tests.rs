//! The test code in a Rust source file: items under `#[cfg(test)]`, test functions, `mod tests`, `proptest!`.
//!
//! An item runs from its first attribute to its closing brace or semicolon, found by matching brackets in masked text.
//! Of a test module each item counts by itself, so that a new one may come in without touching the others.

use std::ops::Range;

use super::mask::mask;
use super::token::{Token, close, tokens};
use super::{Language, NewNames, TestCode, TestItem};

/// Finds every test item and every `#![cfg(…)]` of the file.
pub(super) fn find(source: &[u8]) -> TestCode<'_> {
    let masked = mask(Language::Rust, source);
    let tokens = tokens(&masked);
    let mut found = TestCode::default();
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        if token.is("{") {
            depth += 1;
        } else if token.is("}") {
            depth = depth.saturating_sub(1);
        } else if token.is("#") && tokens.get(at + 1).is_some_and(|next| next.is("!")) {
            let end = close(&tokens, at + 2);
            if tokens.get(at + 3).is_some_and(|word| word.is("cfg")) {
                found.conditions.push(text(source, &tokens, at, end));
            }
            at = end;
        } else {
            let (item, kind) = classify(&tokens, at);
            if kind == Kind::Test {
                let end = item_end(&tokens, item);
                found
                    .items
                    .push(test_item(source, &tokens, at..end + 1, item, depth));
                at = end;
            } else if item > at {
                at = item;
                continue;
            }
        }
        at += 1;
    }
    found
}

/// Where the test items stand among the tokens.
pub(super) fn ranges(tokens: &[Token<'_>]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let (item, kind) = classify(tokens, at);
        if kind == Kind::Test {
            let end = item_end(tokens, item);
            found.push(at..end + 1);
            at = end;
        } else if item > at {
            at = item;
            continue;
        }
        at += 1;
    }
    found
}

/// The test item whose tokens are `all`, behind whose attributes `item` begins.
fn test_item<'a>(
    source: &'a [u8],
    tokens: &[Token<'_>],
    all: Range<usize>,
    item: usize,
    depth: usize,
) -> TestItem<'a> {
    let last = all.end.saturating_sub(1);
    let is = |index: usize, word: &str| tokens.get(index).is_some_and(|token| token.is(word));
    let keyword = behind_visibility(tokens, item);
    let open = keyword + 2;
    if !is(keyword, "mod") || !is(open, "{") || !is(last, "}") {
        return TestItem {
            depth,
            text: text(source, tokens, all.start, last),
            ..TestItem::default()
        };
    }
    let mut inside = Vec::new();
    let mut at = open + 1;
    while at < last {
        if is(at, ";") {
            at += 1;
            continue;
        }
        let (begin, _) = classify(tokens, at);
        let end = if is(at, "#") && is(at + 1, "!") {
            close(tokens, at + 2)
        } else {
            item_end(tokens, begin)
        };
        let end = end.clamp(at, last - 1);
        let words = tokens
            .get(at..=end)
            .unwrap_or_default()
            .iter()
            .filter(|token| token.is_word());
        inside.push(TestItem {
            depth: depth + 1,
            text: text(source, tokens, at, end),
            inside: Vec::new(),
            brings: brings(source, tokens, begin, end),
            words: words
                .filter_map(|word| source.get(word.range.clone()))
                .collect(),
        });
        at = end + 1;
    }
    TestItem {
        depth,
        text: text(source, tokens, all.start, open),
        inside,
        ..TestItem::default()
    }
}

/// The index behind a `pub` or `pub(…)` at `at`.
fn behind_visibility(tokens: &[Token<'_>], at: usize) -> usize {
    let is = |index: usize, word: &str| tokens.get(index).is_some_and(|token| token.is(word));
    match (is(at, "pub"), is(at + 1, "(")) {
        (true, true) => close(tokens, at + 1) + 1,
        (true, false) => at + 1,
        _ => at,
    }
}

/// The names that the item at `begin` brings into its module.
fn brings<'a>(source: &'a [u8], tokens: &[Token<'_>], begin: usize, end: usize) -> NewNames<'a> {
    let is = |index: usize, word: &str| tokens.get(index).is_some_and(|token| token.is(word));
    let name = |index: usize| {
        tokens
            .get(index)
            .and_then(|token| source.get(token.range.clone()))
    };
    let mut at = behind_visibility(tokens, begin);
    if is(at, "use") {
        let list = tokens.get(..=end).unwrap_or_default();
        if list.iter().skip(at).any(|token| token.is("*")) {
            return NewNames::Anything;
        }
        let leaves = (at..=end).filter(|leaf| {
            list.get(*leaf).is_some_and(Token::is_word)
                && (*leaf == end || [",", "}", ";"].iter().any(|mark| is(leaf + 1, mark)))
        });
        return NewNames::Names(leaves.filter_map(name).collect());
    }
    while ["async", "unsafe"].iter().any(|word| is(at, word)) || is(at, "const") && is(at + 1, "fn")
    {
        at += 1;
    }
    let kinds = [
        "fn",
        "struct",
        "enum",
        "type",
        "mod",
        "const",
        "static",
        "macro_rules",
    ];
    if !kinds.iter().any(|kind| is(at, kind)) {
        return NewNames::Anything;
    }
    at += 1;
    while is(at, "!") || is(at, "mut") {
        at += 1;
    }
    // A raw name begins with a word and a mark; what it means nobody asks.
    if is(at + 1, "#") {
        return NewNames::Anything;
    }
    NewNames::Names(name(at).into_iter().collect())
}

#[derive(PartialEq)]
enum Kind {
    Test,
    Other,
}

/// The index of the first token behind the attributes that stand at `at`, and what begins there.
fn classify(tokens: &[Token<'_>], at: usize) -> (usize, Kind) {
    let mut item = at;
    let mut kind = Kind::Other;
    while let [Some(hash), Some(open)] = [tokens.get(item), tokens.get(item + 1)]
        && hash.is("#")
        && open.is("[")
    {
        let end = close(tokens, item + 1);
        if is_test_attribute(tokens.get(item + 2..end).unwrap_or_default()) {
            kind = Kind::Test;
        }
        item = end + 1;
    }
    let first = item + usize::from(tokens.get(item).is_some_and(|token| token.is("pub")));
    let named = match (tokens.get(first), tokens.get(first + 1)) {
        (Some(a), Some(b)) if a.is("mod") => b.is("tests") || b.is("test"),
        (Some(a), Some(b)) => b.is("!") && (a.is("proptest") || a.is("quickcheck")),
        _ => false,
    };
    (item, if named { Kind::Test } else { kind })
}

/// `test`, `tokio::test`, `rstest`, `test_case(…)`, `bench`, `cfg(test)`, `cfg(all(test, …))`; not `cfg(not(test))`.
fn is_test_attribute(inside: &[Token<'_>]) -> bool {
    let path: Vec<&Token<'_>> = inside
        .iter()
        .take_while(|token| token.is_word() || token.is(":"))
        .collect();
    match (path.first(), path.last()) {
        (Some(first), _) if first.is("cfg") => inside
            .iter()
            .enumerate()
            .any(|(at, token)| token.is("test") && !(at >= 2 && inside[at - 2].is("not"))),
        (_, Some(last)) => ["test", "rstest", "test_case", "bench", "quickcheck"]
            .iter()
            .any(|name| last.is(name)),
        _ => false,
    }
}

/// The index of the token that ends the item: a semicolon, or the brace that closes its body.
fn item_end(tokens: &[Token<'_>], item: usize) -> usize {
    let mut at = item;
    while let Some(token) = tokens.get(at) {
        if token.is("{") {
            return close(tokens, at);
        }
        if token.is("(") || token.is("[") {
            at = close(tokens, at);
        } else if token.is(";") {
            return at;
        } else if token.is("}") {
            return at.saturating_sub(1);
        }
        at += 1;
    }
    tokens.len().saturating_sub(1)
}

fn text<'a>(source: &'a [u8], tokens: &[Token<'_>], first: usize, last: usize) -> &'a [u8] {
    let start = tokens
        .get(first)
        .map_or(source.len(), |token| token.range.start);
    let end = tokens
        .get(last)
        .map_or(source.len(), |token| token.range.end);
    source.get(start..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "#[cfg(test)]\nuse std::fmt;\npub fn f() -> [u8; 2] { [1, 2] }\n\
        #[cfg(not(test))]\nfn real() {}\n#[cfg(test)]\n#[allow(x)]\nmod tests {\n    use super::*;\n    #[test]\n    fn a() { assert!(\"}\".len() == 1) }\n}\npub fn g() {}\n";

    fn items(source: &str) -> Vec<String> {
        find(source.as_bytes())
            .items
            .iter()
            .map(|item| String::from_utf8_lossy(item.text).into_owned())
            .collect()
    }

    fn survives(before: &str, after: &str) -> bool {
        find(before.as_bytes()).survives_in(&find(after.as_bytes()))
    }

    #[test]
    fn finds_items_with_their_attributes_and_nothing_else() {
        let found = items(FILE);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], "#[cfg(test)]\nuse std::fmt;");
        assert_eq!(found[1], "#[cfg(test)]\n#[allow(x)]\nmod tests {");
        let code = find(FILE.as_bytes());
        let inside: Vec<_> = code.items[1]
            .inside
            .iter()
            .map(|item| String::from_utf8_lossy(item.text))
            .collect();
        assert_eq!(
            inside,
            [
                "use super::*;",
                "#[test]\n    fn a() { assert!(\"}\".len() == 1) }"
            ]
        );
        assert_eq!(
            items("#[tokio::test(flavor = \"a\")]\nasync fn t() { x }\nfn u() {}").len(),
            1
        );
        assert_eq!(
            items("mod tests;\nproptest! { fn a() {} }\n// #[test]\nconst S: &str = \"#[test] fn a() {}\";")
                .len(),
            2
        );
    }

    #[test]
    fn changing_source_around_the_tests_leaves_them_alone() {
        assert!(survives(
            FILE,
            &FILE
                .replace("[1, 2]", "[3, 4]")
                .replace("pub fn g() {}", "pub fn g() { f(); }")
        ));
        assert!(survives(
            "fn f() {}",
            "fn f() {}\n#[cfg(test)]\nmod tests { #[test] fn new() {} }"
        ));
    }

    #[test]
    fn new_item_may_join_an_unchanged_test_module() {
        let with = |item: &str| FILE.replace("    #[test]", &format!("    {item}\n    #[test]"));
        for item in [
            "#[test]\n    fn b() { assert!(true) }",
            "fn helper() -> u8 { 1 }",
            "use std::collections::BTreeMap;",
            "const N: S = S { a: 1 };",
            "mod more { }",
        ] {
            assert!(survives(FILE, &with(item)), "{item}");
            let last = FILE.replace("== 1) }\n", &format!("== 1) }}\n    {item}\n"));
            assert!(survives(FILE, &last), "{item}");
        }
        for item in [
            "fn len() -> u8 { 1 }",
            "macro_rules! assert { () => {} }",
            "macro_rules! r#assert { () => {} }",
            "use crate::fake::assert;",
            "use crate::fake::other as assert;",
            "use crate::fake::*;",
            "impl X for u8 { }",
            "extern crate fake;",
            "#![cfg(any())]",
            "off! {}",
            "#[cfg(any())]",
        ] {
            assert!(!survives(FILE, &with(item)), "{item}");
        }
        let moved = FILE.replace(
            "    #[test]",
            "}\n#[cfg(all(test, any()))]\nmod off {\n    #[test]",
        );
        assert!(!survives(FILE, &moved));
        let wrapped = FILE
            .replace("    #[test]", "    mod off {\n    #[test]")
            .replace("== 1) }\n", "== 1) }\n}");
        assert!(!survives(FILE, &wrapped));
    }

    #[test]
    fn every_way_to_weaken_a_test_is_seen() {
        for (from, to) in [
            ("== 1", "== 0 || true"),
            ("#[test]", "#[test]\n    #[ignore]"),
            ("#[test]\n", ""),
            (
                "#[cfg(test)]\n#[allow(x)]",
                "#[cfg(any())]\n#[cfg(test)]\n#[allow(x)]",
            ),
            (
                "#[cfg(test)]\n#[allow(x)]\nmod tests {",
                "/*\n#[cfg(test)]\n#[allow(x)]\nmod tests {",
            ),
            ("#[cfg(test)]\nuse", "#![cfg(not(test))]\n#[cfg(test)]\nuse"),
            ("mod tests", "mod tests_off"),
        ] {
            let after = FILE.replacen(from, to, 1);
            assert_ne!(after, FILE);
            assert!(!survives(FILE, &after), "{to:?}");
        }
        let start = FILE.find("#[cfg(test)]\n#[allow").unwrap();
        let end = FILE.find("pub fn g").unwrap();
        let wrapped = format!(
            "{}macro_rules! off {{ () => {{ {} }} }}\n{}",
            &FILE[..start],
            &FILE[start..end],
            &FILE[end..]
        );
        assert!(!survives(FILE, &wrapped));
    }

    #[test]
    fn half_a_file_is_read_to_its_end() {
        for source in [
            "#[cfg(test)]",
            "#[",
            "#![",
            "#[cfg(test)] mod tests {",
            "#[test] fn",
            "mod tests",
            "}}}#[test]fn a(){",
        ] {
            let _ = items(source);
        }
    }
}
