//! Cuts a value into pieces that may be names of files, where only a shell tells what is a name.
//!
//! No rule of a shell is applied. The text is cut at every byte that is seldom in a name, and a piece means a file only if there is
//! one. So `${X:-tools/check}`, `exec(open("check"))` and `N=check; sh tools/$N` name `tools/check` or `check`.

use std::collections::BTreeSet;

/// Bytes that no name of a program has.
const NEVER: &[u8] = b" \t\r\n${}()[]<>\"'`\\;|&*?";
/// Bytes that a name may have, but that also separate names.
const SOMETIMES: &[u8] = b"-+=:,@~%#!^";
/// The most pieces of one value.
const LIMIT: usize = 4096;

/// Returns the pieces of a text. A piece that begins with `/` also counts without it, since a variable may precede it.
pub(super) fn pieces(text: &[u8]) -> BTreeSet<Vec<u8>> {
    let mut pieces = BTreeSet::new();
    for token in text.split(|byte| NEVER.contains(byte)) {
        let cuts: Vec<usize> = (0..token.len())
            .filter(|at| SOMETIMES.contains(&token[*at]))
            .collect();
        let starts = std::iter::once(0).chain(cuts.iter().map(|cut| cut + 1));
        for start in starts {
            let ends = cuts.iter().copied().filter(|cut| *cut > start);
            for end in ends.chain([token.len()]) {
                let piece = &token[start..end];
                let slashes = piece.iter().take_while(|byte| **byte == b'/').count();
                if pieces.len() >= LIMIT {
                    return pieces;
                }
                if slashes < piece.len() {
                    pieces.insert(piece.to_owned());
                    pieces.insert(piece[slashes..].to_owned());
                }
            }
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_between_signs_of_shells() {
        for (text, names) in [
            ("sh ${X:-tools/mon}", &["tools/mon"][..]),
            ("sh ${X-my-mon}", &["mon", "my-mon"]),
            ("sh ${X:=./mon}", &["./mon"]),
            ("sh ${GIT_PREFIX}mon", &["mon"]),
            ("sh $(dirname tools/x)/mon", &["tools/x", "mon"]),
            ("N=mon; sh tools/$N", &["mon", "tools/"]),
            ("sh ~+/mon", &["mon", "/mon"]),
            ("sh $'mon'", &["mon"]),
            ("sh tools/{mon,}", &["tools/", "mon"]),
            ("exec(open(\"mon.py\"))", &["mon.py"]),
            ("read @mon", &["mon"]),
        ] {
            let pieces = pieces(text.as_bytes());
            for name in names {
                assert!(pieces.contains(name.as_bytes()), "{text}: {name}");
            }
        }
        assert_eq!(pieces(b" ${}/ "), BTreeSet::new());
    }

    #[test]
    fn long_value_has_a_limited_number_of_pieces() {
        let text = "a-".repeat(5_000);
        assert!(pieces(text.as_bytes()).len() <= LIMIT + 1);
    }
}
