//! The length-prefixed strings of the SSH protocol (RFC 4251, section 5).

/// Reads values from the front of a byte sequence.
pub(crate) struct WireReader<'b> {
    rest: &'b [u8],
}

impl<'b> WireReader<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Takes so many bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'b [u8]> {
        let (data, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(data)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.bytes(1).map(|bytes| bytes[0])
    }

    pub(crate) fn number(&mut self) -> Option<u32> {
        let bytes = self.bytes(4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    }

    pub(crate) fn string(&mut self) -> Option<&'b [u8]> {
        let length = self.number()?;
        self.bytes(usize::try_from(length).ok()?)
    }

    /// Takes a positive integer without its sign byte. A longer spelling of the same number is refused.
    pub(crate) fn positive(&mut self) -> Option<&'b [u8]> {
        let bytes = self.string()?;
        match bytes {
            [0, second, ..] if second & 0x80 != 0 => Some(&bytes[1..]),
            [first, ..] if *first != 0 && first & 0x80 == 0 => Some(bytes),
            _ => None,
        }
    }

    /// Takes everything that is left.
    pub(crate) fn rest(self) -> &'b [u8] {
        self.rest
    }

    /// Succeeds if nothing is left.
    pub(crate) fn end(self) -> Option<()> {
        self.rest.is_empty().then_some(())
    }
}

/// Appends a string with its length.
pub(crate) fn put_string(into: &mut Vec<u8>, bytes: &[u8]) {
    // No string of ours comes near four gigabytes.
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    into.extend(length.to_be_bytes());
    into.extend(bytes);
}

/// Appends a positive integer without leading zeros, in its one spelling.
pub(crate) fn put_positive(into: &mut Vec<u8>, number: &[u8]) {
    let needs_sign = number.first().is_some_and(|first| first & 0x80 != 0);
    let sign: &[u8] = if needs_sign { &[0] } else { &[] };
    put_string(into, &[sign, number].concat());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_canonical_number_is_refused() {
        let read = |bytes: &[u8]| {
            let mut wire = Vec::new();
            put_string(&mut wire, bytes);
            WireReader::new(&wire).positive().map(<[u8]>::to_vec)
        };
        assert_eq!(read(&[1]), Some(vec![1]));
        assert_eq!(read(&[0, 0x80]), Some(vec![0x80]));
        for bad in [&[][..], &[0], &[0, 1], &[0x80], &[0, 0, 0x80]] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn truncated_string_is_refused() {
        assert_eq!(WireReader::new(&[0, 0, 0, 2, 7]).string(), None);
        assert_eq!(WireReader::new(&[255, 255, 255, 255]).string(), None);
        assert_eq!(WireReader::new(&[1]).end(), None);
    }
}
