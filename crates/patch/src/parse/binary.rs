//! The body of `GIT binary patch`. It is walked to find its end, never decoded: what it makes is known by the name of the object
//! that its section states.

use super::lines::Lines;
use super::{PatchError, PatchErrorKind};

/// Steps over the marker line and the one or two blocks below it.
pub(super) fn skip(lines: &mut Lines<'_>) -> Result<(), PatchError> {
    lines.next_header()?;
    block(lines)?;
    if lines.peek().is_some_and(is_block_header) {
        block(lines)?;
    }
    Ok(())
}

fn block(lines: &mut Lines<'_>) -> Result<(), PatchError> {
    let line = lines.number();
    let bad = |line| {
        Err(PatchError {
            line,
            kind: PatchErrorKind::BadBinary,
        })
    };
    if !lines.next_header()?.is_some_and(is_block_header) {
        return bad(line);
    }
    loop {
        let line = lines.number();
        match lines.next() {
            Some([]) => return Ok(()),
            Some([length, data @ ..]) if length.is_ascii_alphabetic() && is_base85(data) => {}
            _ => return bad(line),
        }
    }
}

fn is_block_header(line: &[u8]) -> bool {
    let size = line
        .strip_prefix(b"literal ")
        .or_else(|| line.strip_prefix(b"delta "));
    size.is_some_and(|size| {
        !size.is_empty() && size.len() <= 10 && size.iter().all(u8::is_ascii_digit)
    })
}

fn is_base85(data: &[u8]) -> bool {
    let known =
        |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&()*+-;<=>?@^_`{|}~".contains(byte);
    !data.is_empty() && data.len().is_multiple_of(5) && data.iter().all(known)
}
