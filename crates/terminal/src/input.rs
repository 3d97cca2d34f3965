//! Standard input, typed by a person or sent by a program: line by line, or as a whole.
//!
//! A separate thread reads, so that signals are handled while nobody types; a thread that still waits ends with
//! the process. Invariants: no more is kept than what was requested. The rest of a line that is too long is
//! skipped, never taken for the next line.

use std::io::{self, BufRead, ErrorKind, Read, StdinLock};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::Output;

/// A line of the input.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A line, without its end.
    Text(String),
    /// A line over the limit, with its length in bytes.
    TooLong(usize),
    /// A line that is not UTF-8.
    NotText,
    /// The input has ended.
    End,
}

/// Bytes of space around a text that are read in addition; they do not count against its limit.
pub const SPACE_AROUND: usize = 64 * 1024;

/// Waits for a line of at most `most` bytes.
pub async fn line(most: usize) -> io::Result<Line> {
    let line = started(move |input| read_line(input, most)).await;
    // A reader that ended without a result has no more lines.
    line.unwrap_or(Ok(Line::End))
}

/// What is printed while an input is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputNotice {
    /// Nothing, because the user named standard input.
    Silently,
    /// This text after a moment, because the user may not expect that input is read.
    Saying(&'static str),
}

/// How long nothing is printed while input is awaited.
const MOMENT: Duration = Duration::from_secs(1);

/// Reads the input to its end, but at most `most` bytes and one more, which shows that there are more.
pub async fn read_all(most: usize, awaited: InputNotice, output: &Output) -> io::Result<Vec<u8>> {
    let mut bytes = started(move |input| {
        let mut bytes = Vec::new();
        let read = input.take(one_more(most)).read_to_end(&mut bytes);
        read.map(|_| bytes)
    });
    let read = match awaited {
        InputNotice::Silently => bytes.await,
        InputNotice::Saying(what) => match timeout(MOMENT, &mut bytes).await {
            Ok(read) => read,
            Err(_) => {
                output.remark(what);
                bytes.await
            }
        },
    };
    read.unwrap_or_else(|_| Err(io::Error::other("the reader has stopped")))
}

/// Starts a thread that reads the input. The receiver fails if the thread ends without a result.
fn started<T: Send + 'static>(
    read: impl FnOnce(StdinLock<'static>) -> T + Send + 'static,
) -> oneshot::Receiver<T> {
    let (done, waiting) = oneshot::channel();
    std::thread::spawn(move || {
        let _nobody_waits_any_more = done.send(read(io::stdin().lock()));
    });
    waiting
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
    fn lines_are_stripped_and_last_needs_no_newline() {
        assert_eq!(
            lines(b"one\n\n two \r\nlast", 100),
            [text("one"), text(""), text(" two \r"), text("last")]
        );
        assert_eq!(lines(b"", 100), []);
    }

    #[test]
    fn overlong_line_is_one_line_without_remainder() {
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
    fn non_utf_8_bytes_are_not_text() {
        assert_eq!(lines(b"a\xff\nnext\n", 100), [Line::NotText, text("next")]);
    }
}
