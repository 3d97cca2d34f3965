//! The incremental search for secrets, used by scanning, redaction and streams.
//!
//! Keywords are decided in the order of their first byte. A keyword is decided only when [`REACH`] bytes from
//! its start are known or the input has ended, so the result never depends on how the input was cut.
//! Overlapping matches are merged; the merged span has the first rule.
//!
//! Two things reach farther than `REACH`, and both are walked once: the run of token bytes after a match,
//! whose end is remembered, and an open block, in which keywords are not looked at. Backward only the lines
//! of a private key above its END line reach farther than the lookback: while what was read last may be some,
//! it is not safe.
//!
//! What always holds: spans are sorted, disjoint and not empty; positions count from the first byte of the
//! buffer given.

use std::ops::Range;

use crate::judge;
use crate::key_lines::key_may_begin;
use crate::rule::Tail;
use crate::scanner::Scanner;

/// Number of bytes, from the first byte of a keyword, that decide whether it belongs to a secret.
pub const REACH: usize = crucible_model::SECRET_REACH;

/// How many bytes before a keyword a match may begin.
pub(crate) const LOOKBACK: usize = 80;

/// Number of bytes to keep before the first undecided position: the lookback and the escape before it.
pub(crate) const BEHIND: usize = LOOKBACK + 32;

/// An upper bound for the length of a block's closing line.
const BLOCK_END: usize = 128;

/// How many bytes are searched for keywords before their rules are tried: keeps the list of hits small.
const SEGMENT: usize = 64 * 1024;

/// Where a secret stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Index of the rule.
    pub(crate) rule: usize,
}

/// Whether the buffer holds all that there will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input {
    Unfinished,
    Whole,
}

/// A block whose end has not been seen: its start, and where to continue the search.
#[derive(Debug, Clone, Copy)]
struct OpenBlock {
    rule: usize,
    start: usize,
    search_from: usize,
}

#[derive(Debug)]
pub(crate) struct Walk<'s> {
    scanner: &'s Scanner,
    pub(crate) spans: Vec<Span>,
    /// Every keyword that begins before this is settled.
    settled: usize,
    open: Option<OpenBlock>,
    /// The run of token bytes with the last end so far.
    run: Range<usize>,
    /// Whether the run reached the end of an unfinished buffer.
    run_may_grow: bool,
    /// Key lines whose end is still to come may begin here.
    key_from: usize,
}

impl<'s> Walk<'s> {
    pub(crate) fn new(scanner: &'s Scanner) -> Self {
        Self {
            scanner,
            spans: Vec::new(),
            settled: 0,
            open: None,
            run: 0..0,
            run_may_grow: false,
            key_from: usize::MAX,
        }
    }

    /// Decides as much of `buffer` as possible. Call it again with a longer buffer, which may be rebased in
    /// between.
    pub(crate) fn advance(&mut self, buffer: &[u8], input: Input) {
        self.grow_run(buffer, input);
        self.key_from = usize::MAX;
        if !self.close_block(buffer, input) {
            return;
        }
        let ready = match input {
            Input::Unfinished => buffer.len().saturating_sub(REACH),
            Input::Whole => buffer.len(),
        };
        let mut hits = Vec::new();
        while self.settled < ready {
            let stop = ready.min(self.settled + SEGMENT);
            self.scanner
                .keywords_in(buffer, self.settled..stop, &mut hits);
            for (hit, rule) in hits.drain(..) {
                if hit.start < self.settled {
                    continue; // it stands in a block
                }
                if !self.settle(buffer, hit, rule, input) {
                    return;
                }
            }
            self.settled = self.settled.max(stop);
        }
        if input == Input::Unfinished {
            self.key_from = key_may_begin(buffer, self.settled);
        }
    }

    /// Nothing that is still to be found begins before this.
    pub(crate) fn safe(&self) -> usize {
        self.settled.saturating_sub(LOOKBACK).min(self.key_from)
    }

    /// The first byte of the buffer that is still needed.
    pub(crate) fn needed_from(&self) -> usize {
        let needed = self
            .settled
            .min(self.open.map_or(usize::MAX, |open| open.search_from));
        needed.saturating_sub(BEHIND).min(self.key_from)
    }

    /// Forgets the first `dropped` bytes of the buffer.
    pub(crate) fn rebase(&mut self, dropped: usize) {
        self.settled -= dropped;
        self.key_from = self.key_from.saturating_sub(dropped);
        if let Some(open) = &mut self.open {
            open.search_from -= dropped;
            open.start = open.start.saturating_sub(dropped);
        }
        self.run = self.run.start.saturating_sub(dropped)..self.run.end.saturating_sub(dropped);
        for span in &mut self.spans {
            span.start = span.start.saturating_sub(dropped);
            span.end = span.end.saturating_sub(dropped);
        }
    }

    /// Tries one rule at one keyword. False when a block was opened that this buffer does not close.
    fn settle(&mut self, buffer: &[u8], hit: Range<usize>, rule: usize, input: Input) -> bool {
        let Some(found) = self.scanner.rule(rule).find(buffer, hit) else {
            return true;
        };
        let mut span = Span {
            start: found.start,
            end: found.end,
            rule,
        };
        match self.scanner.rule(rule).tail {
            Tail::None => self.add(span),
            Tail::Token => {
                span.end = self.run_end(buffer, span.end, input);
                self.add(span);
            }
            Tail::Block => {
                self.add(span);
                self.open = Some(OpenBlock {
                    rule,
                    start: span.start,
                    search_from: span.end,
                });
                return self.close_block(buffer, input);
            }
        }
        true
    }

    /// Searches the end of the open block. Returns true if no block is open afterwards.
    fn close_block(&mut self, buffer: &[u8], input: Input) -> bool {
        let Some(open) = self.open else {
            return true;
        };
        let end = self
            .scanner
            .rule(open.rule)
            .block_end(&buffer[open.search_from..])
            .map(|length| open.search_from + length)
            .or((input == Input::Whole).then_some(buffer.len()));
        self.add(Span {
            start: open.start,
            end: end.unwrap_or(buffer.len()),
            rule: open.rule,
        });
        self.settled = end.unwrap_or(buffer.len());
        self.open = match end {
            Some(_) => None,
            None => Some(OpenBlock {
                search_from: open.search_from.max(buffer.len().saturating_sub(BLOCK_END)),
                ..open
            }),
        };
        end.is_some()
    }

    /// Returns the end of the run of token bytes that begins at `from`.
    fn run_end(&mut self, buffer: &[u8], from: usize, input: Input) -> usize {
        if self.run.contains(&from) {
            return self.run.end;
        }
        let mut end = from;
        while end < buffer.len() && judge::is_token_byte(buffer[end]) {
            end += 1;
            if end == self.run.start && end < self.run.end {
                end = self.run.end;
                break;
            }
        }
        if end >= self.run.end {
            self.run = from..end;
            self.run_may_grow = end == buffer.len() && input == Input::Unfinished;
        }
        end
    }

    /// Extends a run that reached the end of the buffer into new bytes.
    fn grow_run(&mut self, buffer: &[u8], input: Input) {
        if !self.run_may_grow {
            return;
        }
        let old = self.run.end;
        let more = buffer[old..]
            .iter()
            .take_while(|byte| judge::is_token_byte(**byte))
            .count();
        self.run.end += more;
        self.run_may_grow = self.run.end == buffer.len() && input == Input::Unfinished;
        if let Some(last) = self.spans.last_mut().filter(|last| last.end == old) {
            last.end = self.run.end;
        }
    }

    /// Adds a span, united with those that it overlaps.
    fn add(&mut self, mut span: Span) {
        let after = self
            .spans
            .iter()
            .rev()
            .take_while(|other| other.start >= span.end)
            .count();
        let upper = self.spans.len() - after;
        let overlapping = self.spans[..upper]
            .iter()
            .rev()
            .take_while(|other| other.end > span.start)
            .count();
        let lower = upper - overlapping;
        for other in &self.spans[lower..upper] {
            span.start = span.start.min(other.start);
            span.end = span.end.max(other.end);
            span.rule = span.rule.min(other.rule);
        }
        self.spans.splice(lower..upper, [span]);
    }
}
