//! Converts file bytes to text for a pack: UTF-8 is copied, invalid bytes are replaced and counted, and cuts
//! respect character boundaries.

/// Text made of a file's bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Decoded {
    /// The text, at most as long as requested.
    pub(crate) text: String,
    /// Number of invalid bytes, replaced by U+FFFD.
    pub(crate) replaced: u64,
    /// Whether the text holds the whole input.
    pub(crate) extent: Extent,
}

/// How much of the input a text holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    Prefix,
}

/// Decodes at most `max` bytes of text. Valid input that fits is not copied.
pub(crate) fn decode(bytes: Vec<u8>, max: u64) -> Decoded {
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    match String::from_utf8(bytes) {
        Ok(mut text) => {
            let extent = if text.len() > max {
                Extent::Prefix
            } else {
                Extent::Whole
            };
            if extent == Extent::Prefix {
                text.truncate(text.floor_char_boundary(max));
            }
            Decoded {
                text,
                replaced: 0,
                extent,
            }
        }
        Err(error) => replace(error.as_bytes(), max),
    }
}

fn replace(bytes: &[u8], max: usize) -> Decoded {
    let mut text = String::with_capacity(bytes.len().min(max));
    let mut replaced = 0;
    for chunk in bytes.utf8_chunks() {
        let remaining = max - text.len();
        let valid = chunk.valid();
        if valid.len() > remaining {
            text.push_str(&valid[..valid.floor_char_boundary(remaining)]);
            return Decoded {
                text,
                replaced,
                extent: Extent::Prefix,
            };
        }
        text.push_str(valid);
        if chunk.invalid().is_empty() {
            continue;
        }
        if char::REPLACEMENT_CHARACTER.len_utf8() > max - text.len() {
            return Decoded {
                text,
                replaced,
                extent: Extent::Prefix,
            };
        }
        text.push(char::REPLACEMENT_CHARACTER);
        replaced += chunk.invalid().len() as u64;
    }
    Decoded {
        text,
        replaced,
        extent: Extent::Whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_falls_between_characters() {
        let decoded = decode("aé€😀".into(), 5);
        assert_eq!(decoded.text, "aé");
        assert_eq!(decoded.extent, Extent::Prefix);
    }

    #[test]
    fn invalid_bytes_are_counted_line_ends_preserved() {
        let decoded = decode(b"a\xff\r\nb\xfe\xfd\n".to_vec(), 100);
        assert_eq!(decoded.text, "a\u{fffd}\r\nb\u{fffd}\u{fffd}\n");
        assert_eq!(decoded.replaced, 3);
        assert_eq!(decoded.extent, Extent::Whole);
    }

    #[test]
    fn a_replacement_never_exceeds_the_limit() {
        for max in 0..12 {
            let decoded = decode(b"\xff\xff\xff\xff".to_vec(), max);
            assert!(decoded.text.len() as u64 <= max);
            assert_eq!(
                decoded.extent,
                if max >= 12 {
                    Extent::Whole
                } else {
                    Extent::Prefix
                }
            );
        }
    }
}
