//! Reads a process from `/proc/<number>/stat`.
//!
//! What always holds: the program's name, which may hold anything, decides about no other field.

/// A process as reported by `/proc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStat {
    /// The kernel's letter for what it does.
    state: u8,
    /// The number of its parent; 0 where that is outside of this process namespace.
    pub parent: i32,
    /// Its session; 0 where the leader is outside of this process namespace.
    pub session: i32,
    /// When it began, in the kernel's ticks since the machine's start; with its number it names one process, also
    /// after the number is used again.
    pub started: u64,
}

impl ProcessStat {
    /// What the system reports of the process of this number; nothing if it does not exist, or if the system does not report it.
    #[must_use]
    pub fn read(process: i32) -> Option<Self> {
        Self::parse(&std::fs::read(format!("/proc/{process}/stat")).ok()?)
    }

    /// Whether it has ended and only waits to be waited for.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }

    /// Reads the fields after the program's name, which stands in parentheses and may hold anything, other
    /// parentheses, line ends and what is not text included.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let after_name = bytes.iter().rposition(|byte| *byte == b')')? + 1;
        let text = std::str::from_utf8(bytes.get(after_name..)?).ok()?;
        let mut fields = text.split_ascii_whitespace();
        let state = *fields.next()?.as_bytes().first()?;
        let parent = fields.next()?.parse().ok()?;
        let session = fields.nth(1)?.parse().ok()?;
        let started = fields.nth(15)?.parse().ok()?;
        Some(Self {
            state,
            parent,
            session,
            started,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_program_name_does_not_confuse_parser() {
        let fields = b" S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 777 99 100";
        for name in [&b"(sh)"[..], b"(a) Z 1 1 1 (\n)", b"(\xff\xfe)", b"()"] {
            let stat = ProcessStat::parse(&[b"12 ", name, fields].concat()).unwrap();
            assert_eq!(
                stat,
                ProcessStat {
                    state: b'S',
                    parent: 7,
                    session: 9,
                    started: 777
                }
            );
            assert!(!stat.has_ended());
        }
        for broken in [&b"12 (x"[..], b"", b"12 (x)", b"12 (x) S 7 8 9"] {
            assert_eq!(ProcessStat::parse(broken), None);
        }
    }

    #[test]
    fn stat_of_own_process_is_read() {
        let own = i32::try_from(std::process::id()).unwrap();
        let stat = ProcessStat::read(own).unwrap();
        assert!(stat.started > 0 && !stat.has_ended(), "{stat:?}");
    }
}
