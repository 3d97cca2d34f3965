//! Standard input, typed by a person or sent by a program: line by line, or as a whole.
//!
//! It is read by a thread of its own, so that Ctrl-C is heard while nobody types; one that waits in vain ends with
//! the process. What holds: no more is kept than what was asked for, and the rest of a line that is longer is passed
//! over, never taken for the next line.

use std::io::{self, BufRead, ErrorKind, Read, StdinLock};
use std::time::Duration;

use crucible_model::Failure;
use tokio::sync::oneshot;

use crate::app::App;

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line, without its end.
    Text(String),
    /// One that is longer than what is taken, in bytes.
    TooLong(usize),
    /// One that is not UTF-8.
    NotText,
    /// The input has ended.
    End,
}

/// Bytes of space around a text that are taken besides it: they are no part of it and do not count against its limit.
pub(crate) const SPACE_AROUND: usize = 64 * 1024;

/// Waits for a line of at most so many bytes. The inner error is the input's, the outer one an interruption.
pub(crate) fn line(app: &App, most: usize) -> Result<io::Result<Line>, Failure> {
    let line = beside(app, Awaited::Silently, move |input| read_line(input, most))?;
    // A reader that is gone without a word has no more lines.
    Ok(line.unwrap_or(Ok(Line::End)))
}

/// What is printed while an input is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// Nothing: the caller of the program asked for it.
    Silently,
    /// This, once it has taken a moment: it may be that nobody knows of it.
    Saying(&'static str),
}

/// How long nothing is printed.
const MOMENT: Duration = Duration::from_secs(1);

/// Waits for the end of the input, and gives so many bytes of it and one more where there are more. The errors are as those of a
/// line.
pub(crate) fn whole(
    app: &App,
    most: usize,
    awaited: Awaited,
) -> Result<io::Result<Vec<u8>>, Failure> {
    let read = move |input: StdinLock<'static>| {
        let mut bytes = Vec::new();
        input
            .take(one_more(most))
            .read_to_end(&mut bytes)
            .map(|_| bytes)
    };
    let gone = || Err(io::Error::other("the reader has stopped"));
    Ok(beside(app, awaited, read)?.unwrap_or_else(gone))
}

/// What this reader makes of the input; nothing where it is gone without a word.
fn beside<T: Send + 'static>(
    app: &App,
    awaited: Awaited,
    read: impl FnOnce(StdinLock<'static>) -> T + Send + 'static,
) -> Result<Option<T>, Failure> {
    app.block_on(async {
        let (done, mut waiting) = oneshot::channel();
        std::thread::spawn(move || {
            let _nobody_waits_any_more = done.send(read(io::stdin().lock()));
        });
        if let Awaited::Saying(what) = awaited {
            match tokio::time::timeout(MOMENT, &mut waiting).await {
                Ok(read) => return Ok(read.ok()),
                Err(_) => app.output.remark(what),
            }
        }
        Ok(waiting.await.ok())
    })
}

fn one_more(most: usize) -> u64 {
    u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1)
}

fn read_line(mut input: impl BufRead, most: usize) -> io::Result<Line> {
    let mut line = Vec::new();
    input
        .by_ref()
        .take(one_more(most))
        .read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(Line::End);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() > most {
        return Ok(Line::TooLong(line.len().saturating_add(pass_over(input)?)));
    }
    Ok(String::from_utf8(line).map_or(Line::NotText, Line::Text))
}

/// Reads to the end of the line, and tells how many bytes there were before it.
fn pass_over(mut input: impl BufRead) -> io::Result<usize> {
    let mut passed: usize = 0;
    loop {
        let (used, ended) = match input.fill_buf() {
            Ok([]) => return Ok(passed),
            Ok(chunk) => match chunk.iter().position(|byte| *byte == b'\n') {
                Some(before) => (before, true),
                None => (chunk.len(), false),
            },
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        input.consume(used + usize::from(ended));
        passed = passed.saturating_add(used);
        if ended {
            return Ok(passed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8], most: usize) -> Vec<Line> {
        // Small pieces, so that lines lie across their borders.
        let mut input = io::BufReader::with_capacity(3, bytes);
        let mut lines = Vec::new();
        loop {
            match read_line(&mut input, most).unwrap() {
                Line::End => return lines,
                line => lines.push(line),
            }
        }
    }

    fn text(text: &str) -> Line {
        Line::Text(text.to_owned())
    }

    #[test]
    fn lines_come_without_their_ends_and_the_last_needs_none() {
        assert_eq!(
            lines(b"one\n\n two \r\nlast", 100),
            [text("one"), text(""), text(" two \r"), text("last")]
        );
        assert_eq!(lines(b"", 100), []);
    }

    #[test]
    fn a_line_that_is_too_long_is_one_line_whose_rest_is_none() {
        assert_eq!(
            lines(b"1234\n12345\n1234567890\nnext\n", 4),
            [
                text("1234"),
                Line::TooLong(5),
                Line::TooLong(10),
                text("next")
            ]
        );
        assert_eq!(lines(b"1234", 4), [text("1234")]);
        assert_eq!(lines(b"12345", 4), [Line::TooLong(5)]);
    }

    #[test]
    fn bytes_that_are_no_text_are_not_taken_for_any() {
        assert_eq!(lines(b"a\xff\nnext\n", 100), [Line::NotText, text("next")]);
    }
}
