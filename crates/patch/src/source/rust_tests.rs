//! The test code in a Rust source file: items under `#[cfg(test)]`, test functions, `mod tests`, `proptest!`.
//!
//! An item runs from its first attribute to its closing brace or semicolon, found by matching brackets in masked text.

use super::mask::mask;
use super::token::{Token, tokens};
use super::{Language, TestCode};

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
                found.items.push((depth, text(source, &tokens, at, end)));
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
    let path: Vec<&Token<'_>> = inside.iter().take_while(|token| token.is_word() || token.is(":")).collect();
    match (path.first(), path.last()) {
        (Some(first), _) if first.is("cfg") => inside
            .iter()
            .enumerate()
            .any(|(at, token)| token.is("test") && !(at >= 2 && inside[at - 2].is("not"))),
        (_, Some(last)) => {
            ["test", "rstest", "test_case", "bench", "quickcheck"].iter().any(|name| last.is(name))
        }
        _ => false,
    }
}

/// The index of the bracket that closes the one at `open`, or of the last token.
fn close(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        if token.is("[") || token.is("(") || token.is("{") {
            depth += 1;
        } else if token.is("]") || token.is(")") || token.is("}") {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return at;
            }
        } else if depth == 0 {
            return at;
        }
    }
    tokens.len().saturating_sub(1)
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
    let start = tokens.get(first).map_or(source.len(), |token| token.range.start);
    let end = tokens.get(last).map_or(source.len(), |token| token.range.end);
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
            .map(|(_, item)| String::from_utf8_lossy(item).into_owned())
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
        assert!(
            found[1].starts_with("#[cfg(test)]\n#[allow(x)]\nmod tests {") && found[1].ends_with("1) }\n}")
        );
        assert_eq!(items("#[tokio::test(flavor = \"a\")]\nasync fn t() { x }\nfn u() {}").len(), 1);
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
            &FILE.replace("[1, 2]", "[3, 4]").replace("pub fn g() {}", "pub fn g() { f(); }")
        ));
        assert!(survives("fn f() {}", "fn f() {}\n#[cfg(test)]\nmod tests { #[test] fn new() {} }"));
    }

    #[test]
    fn every_way_to_weaken_a_test_is_seen() {
        for (from, to) in [
            ("== 1", "== 0 || true"),
            ("#[test]", "#[test]\n    #[ignore]"),
            ("#[test]\n", ""),
            ("#[cfg(test)]\n#[allow(x)]", "#[cfg(any())]\n#[cfg(test)]\n#[allow(x)]"),
            ("#[cfg(test)]\n#[allow(x)]\nmod tests {", "/*\n#[cfg(test)]\n#[allow(x)]\nmod tests {"),
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
