//! The records of a PAX header: `LENGTH SP KEY=VALUE LF`, where the length counts the whole record.

use super::{ArchiveError, Refusal};

/// The relevant records of a PAX header.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Records {
    pub(super) path: Option<Vec<u8>>,
    pub(super) link: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    pub(super) comment: Option<Vec<u8>>,
}

/// Parses the records. A duplicate key, a sparse entry or a change of the encoding is an error, because
/// readers of archives disagree on them.
pub(super) fn parse(bytes: &[u8]) -> Result<Records, ArchiveError> {
    let damaged = |what: &str| ArchiveError::Damaged {
        what: format!("a PAX header with {what}"),
    };
    let mut records = Records::default();
    let mut rest = bytes;
    while !rest.is_empty() {
        let space = rest.iter().take(12).position(|byte| *byte == b' ');
        let digits = space.and_then(|at| std::str::from_utf8(&rest[..at]).ok());
        let length = digits.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let length: usize = length
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| damaged("no length"))?;
        let start = space.map_or(0, |at| at + 1);
        let record = rest
            .get(start..length)
            .and_then(|record| record.strip_suffix(b"\n"));
        let record = record.ok_or_else(|| damaged("a wrong length"))?;
        let equals = record
            .iter()
            .position(|byte| *byte == b'=')
            .ok_or_else(|| damaged("no key"))?;
        let (key, value) = (&record[..equals], &record[equals + 1..]);
        let twice = match key {
            b"path" => records.path.replace(value.to_vec()).is_some(),
            b"linkpath" => records.link.replace(value.to_vec()).is_some(),
            b"comment" => records.comment.replace(value.to_vec()).is_some(),
            b"size" => {
                let size = std::str::from_utf8(value)
                    .ok()
                    .and_then(|text| text.parse().ok());
                records
                    .size
                    .replace(size.ok_or_else(|| damaged("an invalid size"))?)
                    .is_some()
            }
            b"hdrcharset" if value != b"ISO-IR 10646 2000 UTF-8" => {
                return Err(damaged("another character set"));
            }
            _ if key.starts_with(b"GNU.sparse.") => return Err(Refusal::Kind.into_error(key)),
            _ => false,
        };
        if twice {
            return Err(damaged("a key twice"));
        }
        rest = &rest[length..];
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pax_value_is_delimited_by_length() {
        let read =
            parse(b"18 path=a\nb=c/\xff d\n16 linkpath=x/y\n10 size=7\n10 mode=x\n").unwrap();
        assert_eq!(read.path.as_deref(), Some(b"a\nb=c/\xff d".as_slice()));
        assert_eq!(read.link.as_deref(), Some(b"x/y".as_slice()));
        assert_eq!(read.size, Some(7));
        assert_eq!(parse(b"").unwrap(), Records::default());
    }

    #[test]
    fn ambiguous_pax_header_is_refused() {
        for bad in [
            b"9 path=ab".as_slice(),
            b"8 path=ab\n",
            b"99 path=a\n",
            b"0 path=a\n",
            b"+9 path=a\n",
            b" 9 path=a\n",
            b"path=a\n",
            b"4 a\n",
            b"99999999999999999999 path=a\n",
            b"9 path=a\n9 path=b\n",
            b"11 size=-1\n",
            b"11 size=1x\n",
            b"9 path=a\n\0\0",
            b"21 GNU.sparse.major=1\n",
            b"20 hdrcharset=KOI8\n",
        ] {
            assert!(parse(bad).is_err(), "{:?}", String::from_utf8_lossy(bad));
        }
    }
}
