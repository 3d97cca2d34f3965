//! A goal taken apart into what can be looked for, and what one file shares with it.

use std::collections::BTreeSet;

use crucible_model::RepoPath;

use super::class::FileClass;
use super::occurrences::Occurrences;
use super::parts::ScoreParts;
use super::words::WordStem;
use super::{GoalCut, words};

/// The most words and the most paths of a goal that are looked for; the first ones count.
const MAX_PATTERNS: usize = 64;

/// How much of a goal is read, in bytes.
const MAX_GOAL: usize = 16 * 1024;

/// How much of a text is searched, in bytes.
const MAX_TEXT: usize = 256 * 1024;

/// How much of the message of a commit is searched, in bytes.
const MAX_MESSAGE: usize = 4 * 1024;

/// How far into a text a NUL byte tells that it is none, in bytes.
const BINARY_PROBE: usize = 8 * 1024;

/// Words after which a name is being defined, in many languages.
const DEFINING: [&[u8]; 14] = [
    b"class",
    b"const",
    b"def",
    b"enum",
    b"fn",
    b"func",
    b"function",
    b"interface",
    b"macro_rules!",
    b"mod",
    b"static",
    b"struct",
    b"trait",
    b"type",
];

/// A goal, ready to look at files.
#[derive(Debug)]
pub struct Goal {
    patterns: Vec<Pattern>,
    mentions: Vec<String>,
    occurrences: Option<Occurrences>,
    cut: GoalCut,
}

#[derive(Debug)]
struct Pattern {
    text: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A name made of several words, as code spells it.
    Identifier,
    /// One word.
    Word,
}

/// One file and what it shares with a goal. Small: the text is not kept.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub(super) path: RepoPath,
    pub(super) size: u64,
    pub(super) class: FileClass,
    pub(super) mention_points: u64,
    pub(super) standing: Standing,
    name_hits: Vec<NameHit>,
    pub(super) text_hits: Vec<TextHit>,
}

/// Whether a file may be chosen at all, and at what cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It may, and takes of the budget.
    Asked,
    /// It may, and costs nothing: the pack holds it anyway.
    AlreadyIn,
    /// It may not.
    Withheld(&'static str),
}

#[derive(Debug, Clone)]
struct NameHit {
    pattern: usize,
    place: NamePlace,
    points: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NamePlace {
    /// The file's own name.
    Name,
    /// A directory on the way.
    Directory,
}

#[derive(Debug, Clone)]
pub(super) struct TextHit {
    pub(super) pattern: usize,
    count: u64,
    definitions: u64,
}

impl Candidate {
    /// Which file it is.
    #[must_use]
    pub fn path(&self) -> &RepoPath {
        &self.path
    }

    /// The same file, which must not be chosen for the reason `why`, such as `holds a secret`.
    #[must_use]
    pub fn withheld(mut self, why: &'static str) -> Self {
        self.standing = Standing::Withheld(why);
        self
    }

    /// The same file, which the pack holds whether it is chosen or not: choosing it costs nothing.
    #[must_use]
    pub fn already_in(mut self) -> Self {
        self.standing = Standing::AlreadyIn;
        self
    }
}

impl Goal {
    /// Takes a goal apart: paths and file names it mentions, identifiers, and words that say something.
    #[must_use]
    pub fn new(goal: &str) -> Self {
        let whole = goal.len();
        let goal = &goal[..goal.floor_char_boundary(MAX_GOAL)];
        let mut dropped = BTreeSet::new();
        let mut patterns: Vec<Pattern> = Vec::new();
        let mut mentions = Vec::new();
        let tokens = goal.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '/' | '-' | ':')));
        for token in tokens {
            let token = token.trim_matches(['.', '/', '-', ':']);
            let place = without_position(token);
            if place.contains(['/', '.']) && place.len() >= 3 {
                let place = place.to_lowercase();
                if mentions.len() < MAX_PATTERNS {
                    mentions.push(place);
                } else if !mentions.contains(&place) {
                    dropped.insert(place);
                }
            }
            for name in token.split(['.', '/', '-', ':']) {
                let parts = words::split(name);
                if parts.len() > 1 {
                    dropped.extend(add(&mut patterns, name.to_lowercase(), Kind::Identifier));
                }
                for word in parts {
                    if word.chars().count() >= 3 && word.len() <= 64 && !words::is_stop_word(&word) {
                        dropped.extend(add(&mut patterns, word, Kind::Word));
                    }
                }
            }
        }
        let occurrences = Occurrences::of(patterns.iter().map(|pattern| pattern.text.as_str()));
        let cut = GoalCut { bytes: (whole - goal.len()) as u64, names: dropped.len() as u64 };
        Self { patterns, mentions, occurrences, cut }
    }

    /// What of the goal is not looked for.
    #[must_use]
    pub fn cut(&self) -> GoalCut {
        self.cut
    }

    /// Looks at one file. `class` is what [`FileClass::of`] says of its path, which whoever chooses what to read has asked already.
    /// `text` is its content or the beginning of it, where the caller has read it; at most 256 KiB of it are searched. Needs no
    /// order: files can be looked at side by side.
    #[must_use]
    pub fn look_at(&self, path: RepoPath, class: FileClass, size: u64, text: Option<&[u8]>) -> Candidate {
        let text = text.unwrap_or_default();
        let binary = memchr::memchr(0, &text[..text.len().min(BINARY_PROBE)]).is_some();
        let class = if binary { FileClass::Generated } else { class };
        let text_hits = if binary { Vec::new() } else { self.search(&text[..text.len().min(MAX_TEXT)]) };
        Candidate {
            mention_points: self.mention_points(&path),
            name_hits: self.name_hits(&path),
            standing: Standing::Asked,
            text_hits,
            path,
            size,
            class,
        }
    }

    pub(super) fn pattern_count(&self) -> usize {
        self.patterns.len()
    }

    /// What is looked for: identifiers and words, in the order of the goal.
    #[must_use]
    pub fn looked_for(&self) -> Vec<&str> {
        self.patterns.iter().map(|pattern| pattern.text.as_str()).collect()
    }

    /// How many of the patterns stand in the message of a commit.
    pub(super) fn shared_with_message(&self, message: &str) -> u64 {
        self.search(&message.as_bytes()[..message.len().min(MAX_MESSAGE)]).len() as u64
    }

    /// The points for what a file shares with this goal; `rarity` weighs each pattern.
    pub(super) fn shared(&self, candidate: &Candidate, rarity: &[u64]) -> ScoreParts {
        let mut parts = ScoreParts {
            mentioned: candidate.mention_points,
            class_percent: candidate.class.percent(),
            ..ScoreParts::default()
        };
        for hit in &candidate.name_hits {
            match hit.place {
                NamePlace::Name => parts.names += hit.points,
                NamePlace::Directory => parts.paths += hit.points,
            }
        }
        for hit in &candidate.text_hits {
            let mention = match self.patterns[hit.pattern].kind {
                Kind::Identifier => 30,
                Kind::Word => 6,
            };
            let often = 1 + u64::from(hit.count.clamp(1, 64).ilog2());
            parts.text += rarity[hit.pattern] * mention * often;
            parts.symbols += rarity[hit.pattern] * 3 * mention * hit.definitions.min(3);
        }
        parts
    }

    /// What a file shares, in words; at most six of them.
    pub(super) fn explain(&self, candidate: &Candidate) -> Vec<String> {
        let mut reasons = Vec::new();
        if candidate.mention_points > 0 {
            reasons.push("named in the goal".to_owned());
        }
        for hit in &candidate.name_hits {
            reasons.push(format!("path has `{}`", self.patterns[hit.pattern].text));
        }
        for hit in &candidate.text_hits {
            let text = &self.patterns[hit.pattern].text;
            reasons.push(match (hit.definitions, hit.count) {
                (0, 1) => format!("text has `{text}`"),
                (0, count) => format!("text has `{text}` {count} times"),
                (_, _) => format!("defines `{text}`"),
            });
        }
        reasons.truncate(6);
        reasons
    }

    fn mention_points(&self, path: &RepoPath) -> u64 {
        let path = path.as_str().to_lowercase();
        let of = |mention: &String| {
            if path == *mention {
                2000
            } else if path.strip_suffix(mention.as_str()).is_some_and(|before| before.ends_with('/')) {
                1500
            } else if path.strip_prefix(mention.as_str()).is_some_and(|after| after.starts_with('/')) {
                200
            } else {
                0
            }
        };
        self.mentions.iter().map(of).max().unwrap_or(0)
    }

    fn name_hits(&self, path: &RepoPath) -> Vec<NameHit> {
        let (directories, name) = path.as_str().rsplit_once('/').unwrap_or(("", path.as_str()));
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let in_stem = words::split(stem);
        let in_directories = words::split(directories);
        let (stems, stems_above) = (words::stems(&in_stem), words::stems(&in_directories));
        let whole = stem.to_lowercase();
        let mut hits = Vec::new();
        for (pattern, wanted) in self.patterns.iter().enumerate() {
            let text = &wanted.text;
            let (place, points) = if whole == *text {
                (NamePlace::Name, 300)
            } else if wanted.kind == Kind::Identifier {
                continue;
            } else if in_stem.contains(text) {
                (NamePlace::Name, 150)
            } else if stems.contains(&WordStem::of(text)) {
                (NamePlace::Name, 100)
            } else if in_directories.contains(text) {
                (NamePlace::Directory, 60)
            } else if stems_above.contains(&WordStem::of(text)) {
                (NamePlace::Directory, 30)
            } else {
                continue;
            };
            hits.push(NameHit { pattern, place, points });
        }
        hits
    }

    /// Counts the patterns in a text, where they begin a word; identifiers only where they also end it.
    fn search(&self, text: &[u8]) -> Vec<TextHit> {
        let Some(occurrences) = &self.occurrences else {
            return Vec::new();
        };
        let mut hits: Vec<TextHit> = Vec::new();
        occurrences.each(text, |pattern, start, end| {
            if !begins_word(text, start) {
                return;
            }
            let ends = !text.get(end).is_some_and(|next| is_name_byte(*next));
            if self.patterns[pattern].kind == Kind::Identifier && !ends {
                return;
            }
            let defined = u64::from(ends && is_defined(text, start));
            match hits.iter_mut().find(|hit| hit.pattern == pattern) {
                Some(hit) => {
                    hit.count += 1;
                    hit.definitions += defined;
                }
                None => hits.push(TextHit { pattern, count: 1, definitions: defined }),
            }
        });
        hits.sort_unstable_by_key(|hit| hit.pattern);
        hits
    }
}

/// Adds a pattern that is not known yet; gives it back where there are as many as are looked for.
fn add(patterns: &mut Vec<Pattern>, text: String, kind: Kind) -> Option<String> {
    if text.len() > 128 || patterns.iter().any(|pattern| pattern.text == text) {
        return None;
    }
    if patterns.len() >= MAX_PATTERNS {
        return Some(text);
    }
    patterns.push(Pattern { text, kind });
    None
}

/// A path as a compiler prints it, without line and column: `src/lib.rs:3:7`.
fn without_position(token: &str) -> &str {
    match token.rsplit_once(':') {
        Some((before, digits)) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            without_position(before)
        }
        _ => token,
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Whether a word begins here: after a non-letter, after `_`, or as a capital after a small letter.
fn begins_word(text: &[u8], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|index| text[index]) else {
        return true;
    };
    !before.is_ascii_alphanumeric() || (text[at].is_ascii_uppercase() && !before.is_ascii_uppercase())
}

/// Whether the name that begins here follows a word that defines names.
fn is_defined(text: &[u8], at: usize) -> bool {
    let before = &text[at.saturating_sub(24)..at];
    let word = before.trim_ascii_end();
    word.len() < before.len()
        // Every hit in every text comes here: most end at the last letter.
        && DEFINING.iter().filter(|defining| defining.last() == word.last()).any(|defining| {
            word.strip_suffix(*defining)
                .is_some_and(|rest| !rest.last().is_some_and(|byte| is_name_byte(*byte)))
        })
}
