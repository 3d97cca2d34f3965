//! A minimal XML parser for reports.
//!
//! Invariants: only the five XML entities and numeric characters are expanded, so nothing grows; malformed
//! input ends parsing, and everything before it counts.

use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// The deepest nesting of elements that is read.
const MAX_DEPTH: usize = 200;

/// The start or end of an element.
pub(super) enum Tag<'x> {
    /// An element begins.
    Open(&'x Element<'x>),
    /// The element of this name ends.
    Close(&'x str),
}

/// An element with its attributes.
pub(super) struct Element<'x> {
    /// Its name without a namespace.
    pub(super) name: &'x str,
    start: &'x BytesStart<'x>,
}

impl Element<'_> {
    /// Returns the value of an attribute.
    pub(super) fn attribute(&self, name: &str) -> Option<String> {
        // Checking for duplicates would take quadratic time.
        let mut attributes = self.start.attributes();
        let named = attributes
            .with_checks(false)
            .filter_map(Result::ok)
            .find(|found| found.key.as_ref() == name);
        let value = named?.value;
        Some(
            quick_xml::escape::unescape(&value).map_or_else(|_| value.to_string(), Cow::into_owned),
        )
    }
}

/// Parses a report tag by tag; several documents may follow each other. Returns whether all of it was
/// well-formed.
pub(super) fn read(text: &str, mut take: impl FnMut(Tag<'_>)) -> bool {
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_end_names = true;
    let mut depth = 0_usize;
    loop {
        match reader.read_event() {
            Ok(Event::Start(start)) => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return false;
                }
                let name = start.local_name().as_ref().to_owned();
                take(Tag::Open(&Element {
                    name: &name,
                    start: &start,
                }));
            }
            Ok(Event::Empty(start)) => {
                let name = start.local_name().as_ref().to_owned();
                take(Tag::Open(&Element {
                    name: &name,
                    start: &start,
                }));
                take(Tag::Close(&name));
            }
            Ok(Event::End(end)) => {
                depth = depth.saturating_sub(1);
                take(Tag::Close(end.local_name().as_ref()));
            }
            Ok(Event::Eof) => return depth == 0,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}
