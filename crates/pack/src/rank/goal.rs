//! Parses a goal into search patterns, and finds what one file shares with it.

use std::collections::BTreeSet;

use crucible_model::RepoPath;

use super::class::FileClass;
use super::occurrences::Occurrences;
use super::parts::ScoreParts;
use super::words::WordStem;
use super::{GoalCut, words};

/// Maximum number of words and of paths to search; the first ones count.
const MAX_PATTERNS: usize = 64;

/// Maximum number of names from other sources to search; the first ones count.
const MAX_HINTS: usize = 64;

/// How much of a goal is read, in bytes.
const MAX_GOAL: usize = 16 * 1024;

/// How much of a text is searched, in bytes.
const MAX_TEXT: usize = 256 * 1024;

/// The size of a file in which one occurrence of a word is usual, in bytes.
const USUAL_SIZE: u64 = 12 * 1024;

/// Further occurrences of a word in a file do not count.
const MAX_REPEATS: u64 = 32;

/// How much of the message of a commit is searched, in bytes.
const MAX_MESSAGE: usize = 4 * 1024;

/// Number of leading bytes in which a NUL byte marks a binary file.
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
    asks_for_documents: bool,
    area: Option<String>,
}

/// A match in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextMark {
    /// Its line, from 1.
    pub line: u64,
    /// Which of the names and words it is.
    pub pattern: usize,
    /// The weight of the match; a definition weighs more than a mention.
    pub points: u64,
}

/// The points of a file in the directory of the goal's area.
const FOR_AREA: u64 = 200;

#[derive(Debug)]
struct Pattern {
    text: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A compound name, or one that the goal marks as code.
    Identifier,
    Word,
    /// A name that the goal does not say: a failing test or an error does.
    Hint,
}

/// A file and what it shares with a goal. Small: the text is not kept.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub(super) path: RepoPath,
    pub(super) size: u64,
    pub(super) class: FileClass,
    pub(super) mention_points: u64,
    area_points: u64,
    pub(super) standing: Standing,
    name_hits: Vec<NameHit>,
    pub(super) text_hits: Vec<TextHit>,
}

/// Whether a file may be chosen, and at what cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It may be chosen and uses the budget.
    Asked,
    /// It may be chosen for free: the pack already contains it.
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

    /// Marks the file as already in the pack, so choosing it is free.
    #[must_use]
    pub fn already_in(mut self) -> Self {
        self.standing = Standing::AlreadyIn;
        self
    }
}

impl Goal {
    /// [`Goal::with_hints`], without hints.
    #[must_use]
    pub fn new(goal: &str) -> Self {
        Self::with_hints(goal, &[])
    }

    /// Parses a goal into paths, file names, identifiers and significant words. Text in backticks, before `(`
    /// or between dots is code, in which no word is too common. `hints` are names from other sources, such as
    /// a failing test; they count less.
    #[must_use]
    pub fn with_hints(goal: &str, hints: &[String]) -> Self {
        let total = goal.len();
        let goal = &goal[..goal.floor_char_boundary(MAX_GOAL)];
        let mut dropped = BTreeSet::new();
        let mut patterns: Vec<Pattern> = Vec::new();
        let mut mentions = Vec::new();
        let mut asks_for_documents = false;
        for (token, is_marked) in tokens(goal) {
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
            let is_code = is_marked || is_dotted_name(token);
            for name in token.split(['.', '/', '-', ':']) {
                let parts = words::split(name);
                if parts.len() > 1 || (is_code && is_code_name(name)) {
                    dropped.extend(add(&mut patterns, name.to_lowercase(), Kind::Identifier));
                }
                for word in parts {
                    asks_for_documents |= is_document_word(&word);
                    if word.chars().count() >= 3 && word.len() <= 64 && !words::is_stop_word(&word)
                    {
                        dropped.extend(add(&mut patterns, word, Kind::Word));
                    }
                }
            }
        }
        let own = patterns.len();
        for hint in hints
            .iter()
            .filter(|hint| is_code_name(hint) && hint.len() >= 3)
        {
            let hint = hint.to_lowercase();
            if patterns.len() < own + MAX_HINTS
                && patterns.iter().all(|pattern| pattern.text != hint)
            {
                patterns.push(Pattern {
                    text: hint,
                    kind: Kind::Hint,
                });
            }
        }
        let occurrences =
            Occurrences::from_patterns(patterns.iter().map(|pattern| pattern.text.as_str()));
        let cut = GoalCut {
            bytes: (total - goal.len()) as u64,
            names: dropped.len() as u64,
        };
        let area = area_of(goal).map(str::to_lowercase);
        Self {
            patterns,
            mentions,
            occurrences,
            cut,
            asks_for_documents,
            area,
        }
    }

    /// Returns whether the goal is about documents.
    pub(super) fn asks_for_documents(&self) -> bool {
        self.asks_for_documents
    }

    /// Returns at most `most` matches of names and words in a text, in order.
    #[must_use]
    pub fn marks(&self, text: &[u8], most: usize) -> Vec<TextMark> {
        let text = &text[..text.len().min(MAX_TEXT)];
        let mut matches = Vec::new();
        self.each_match(text, |start, pattern, defined| {
            matches.push((start, pattern, defined))
        });
        matches.sort_unstable();
        let (mut line, mut counted) = (1, 0);
        let mut marks = Vec::new();
        for (start, pattern, defined) in matches.into_iter().take(most) {
            if let Some(more) = text.get(counted..start) {
                line += memchr::memchr_iter(b'\n', more).count() as u64;
                counted = start;
            }
            let points = match self.patterns[pattern].kind {
                Kind::Identifier => 30,
                Kind::Word => 6,
                Kind::Hint => 8,
            };
            marks.push(TextMark {
                line,
                pattern,
                points: if defined { 5 * points } else { points },
            });
        }
        marks
    }

    /// Returns the part of the goal that is not searched.
    #[must_use]
    pub fn cut(&self) -> GoalCut {
        self.cut
    }

    /// Examines one file. `class` is the result of [`FileClass::from_path`] for its path. `text` is its content or
    /// the beginning of it, if known; at most 256 KiB are searched. Files can be examined in any order or in
    /// parallel.
    #[must_use]
    pub fn look_at(
        &self,
        path: RepoPath,
        class: FileClass,
        size: u64,
        text: Option<&[u8]>,
    ) -> Candidate {
        let text = text.unwrap_or_default();
        let binary = memchr::memchr(0, &text[..text.len().min(BINARY_PROBE)]).is_some();
        let class = if binary { FileClass::Generated } else { class };
        let text_hits = if binary {
            Vec::new()
        } else {
            self.search(&text[..text.len().min(MAX_TEXT)])
        };
        Candidate {
            mention_points: self.mention_points(&path),
            area_points: self.area_points(&path),
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

    /// Returns the searched identifiers and words, in the order of the goal.
    #[must_use]
    pub fn looked_for(&self) -> Vec<&str> {
        let own = self
            .patterns
            .iter()
            .filter(|pattern| pattern.kind != Kind::Hint);
        own.map(|pattern| pattern.text.as_str()).collect()
    }

    /// Returns how many patterns occur in a commit message.
    pub(super) fn shared_with_message(&self, message: &str) -> u64 {
        let hits = self.search(&message.as_bytes()[..message.len().min(MAX_MESSAGE)]);
        hits.iter()
            .filter(|hit| self.patterns[hit.pattern].kind != Kind::Hint)
            .count() as u64
    }

    /// Returns the points for what a file shares with this goal; `rarity` weighs each pattern.
    pub(super) fn shared(&self, candidate: &Candidate, rarity: &[u64]) -> ScoreParts {
        let mut parts = ScoreParts {
            mentioned: candidate.mention_points,
            paths: candidate.area_points,
            class_percent: candidate.class.percent(&candidate.path),
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
                Kind::Hint => 5,
            };
            // A large file contains any word often, so the usual count for its size counts once.
            let usual = (candidate.size / USUAL_SIZE).max(1);
            let often = 1 + u64::from((hit.count / usual).clamp(1, MAX_REPEATS).ilog2());
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
        let from_mention = |mention: &String| {
            if path == *mention {
                2000
            } else if path
                .strip_suffix(mention.as_str())
                .is_some_and(|before| before.ends_with('/'))
            {
                1500
            } else if path
                .strip_prefix(mention.as_str())
                .is_some_and(|after| after.starts_with('/'))
            {
                200
            } else {
                0
            }
        };
        self.mentions.iter().map(from_mention).max().unwrap_or(0)
    }

    /// The points of a file in a directory that is the goal's area.
    fn area_points(&self, path: &RepoPath) -> u64 {
        let directories = path.directory();
        let is_area = |name: &str| {
            self.area
                .as_deref()
                .is_some_and(|area| is_of_area(name, area))
        };
        if directories.split('/').any(is_area) {
            FOR_AREA
        } else {
            0
        }
    }

    fn name_hits(&self, path: &RepoPath) -> Vec<NameHit> {
        let (directories, name) = path
            .as_str()
            .rsplit_once('/')
            .unwrap_or(("", path.as_str()));
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let in_stem = words::split(stem);
        let in_directories = words::split(directories);
        let (stems, stems_above) = (words::stems(&in_stem), words::stems(&in_directories));
        let full_text = stem.to_lowercase();
        let mut hits = Vec::new();
        for (pattern, requested) in self.patterns.iter().enumerate() {
            let text = &requested.text;
            let (place, points) = if full_text == *text && requested.kind != Kind::Hint {
                (NamePlace::Name, 300)
            } else if requested.kind != Kind::Word {
                continue;
            } else if in_stem.contains(text) {
                (NamePlace::Name, 150)
            } else if stems.contains(&WordStem::from_word(text)) {
                (NamePlace::Name, 100)
            } else if in_directories.contains(text) {
                (NamePlace::Directory, 60)
            } else if stems_above.contains(&WordStem::from_word(text)) {
                (NamePlace::Directory, 30)
            } else {
                continue;
            };
            hits.push(NameHit {
                pattern,
                place,
                points,
            });
        }
        hits
    }

    /// Counts the patterns in a text.
    fn search(&self, text: &[u8]) -> Vec<TextHit> {
        let mut hits: Vec<TextHit> = Vec::new();
        self.each_match(text, |_, pattern, defined| {
            let defined = u64::from(defined);
            match hits.iter_mut().find(|hit| hit.pattern == pattern) {
                Some(hit) => {
                    hit.count += 1;
                    hit.definitions += defined;
                }
                None => hits.push(TextHit {
                    pattern,
                    count: 1,
                    definitions: defined,
                }),
            }
        });
        hits.sort_unstable_by_key(|hit| hit.pattern);
        hits
    }

    /// Calls `found` for every match with its start, its pattern number and whether it is a definition, in
    /// any order. A pattern must begin at a word start; an identifier must also end at a word end.
    fn each_match(&self, text: &[u8], mut found: impl FnMut(usize, usize, bool)) {
        let Some(occurrences) = &self.occurrences else {
            return;
        };
        occurrences.each(text, |pattern, start, end| {
            if !begins_word(text, start) {
                return;
            }
            let ends = !text.get(end).is_some_and(|next| is_name_byte(*next));
            if self.patterns[pattern].kind != Kind::Word && !ends {
                return;
            }
            let defined = ends && (is_defined(text, start) || is_assigned(text, start, end));
            found(start, pattern, defined);
        });
    }
}

/// The area that a goal begins with, in the manner of commit messages: `globset: …`, `fix(globset): …`.
#[must_use]
pub fn area_of(goal: &str) -> Option<&str> {
    let (label, _) = goal.split_once(": ")?;
    let label = label.trim_end_matches('!');
    let area = label
        .strip_suffix(')')
        .and_then(|label| label.rsplit_once('('))
        .map_or(label, |(_, area)| area);
    let is_name = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    (!area.is_empty() && area.chars().all(is_name)).then_some(area)
}

/// Whether a directory of this name is the area: `lite` is `lite` and `regex-lite`. The kind of a commit, as in `fix: …`, is the end of no name.
#[must_use]
pub fn is_of_area(directory: &str, area: &str) -> bool {
    const KINDS: [&str; 11] = [
        "build", "chore", "ci", "docs", "feat", "fix", "perf", "refactor", "style", "test", "tests",
    ];
    let ends = || {
        let at = directory.len().checked_sub(area.len())?;
        let (before, last) = (directory.get(..at)?, directory.get(at..)?);
        Some(before.ends_with(['-', '_', '.']) && last.eq_ignore_ascii_case(area))
    };
    directory.eq_ignore_ascii_case(area)
        || (area.len() >= 3
            && !KINDS.iter().any(|kind| kind.eq_ignore_ascii_case(area))
            && ends() == Some(true))
}

/// Returns the tokens of a goal, and whether each is marked as code by backticks or a following `(`.
fn tokens(goal: &str) -> impl Iterator<Item = (&str, bool)> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '/' | '-' | ':');
    // A trailing unpaired backtick opens nothing.
    let pairs = goal.matches('`').count() / 2 * 2;
    goal.split('`').enumerate().flat_map(move |(at, piece)| {
        let in_ticks = at % 2 == 1 && at < pairs + 1 && piece.len() <= 200;
        let mut rest = piece;
        std::iter::from_fn(move || {
            let start = rest.find(is_part)?;
            rest = &rest[start..];
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let (token, after) = rest.split_at(end);
            rest = after;
            Some((token, in_ticks || after.starts_with('(')))
        })
    })
}

/// `click.option`, not `README.md`, `v1.2` or `e.g.`.
fn is_dotted_name(token: &str) -> bool {
    let mut parts = token.split('.').peekable();
    let last = token.rsplit('.').next().unwrap_or_default();
    const ENDINGS: [&str; 22] = [
        "c", "cfg", "cpp", "css", "go", "h", "html", "ini", "java", "js", "json", "jsx", "md",
        "py", "rs", "rst", "toml", "ts", "tsx", "txt", "yaml", "yml",
    ];
    token.contains('.')
        && !token.contains(['/', '-', ':'])
        && ENDINGS
            .binary_search(&last.to_ascii_lowercase().as_str())
            .is_err()
        && parts.all(is_code_name)
}

/// Whether a text can be the name of something in code.
fn is_code_name(name: &str) -> bool {
    name.len() >= 2
        && name.len() <= 64
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// Returns whether a lowercase word is about documents.
fn is_document_word(word: &str) -> bool {
    [
        "changelog",
        "doc",
        "docs",
        "document",
        "documentation",
        "guide",
        "license",
        "readme",
        "tutorial",
        "typo",
        "typos",
    ]
    .contains(&word)
}

/// Adds a new pattern; returns it if the maximum is reached.
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
    !before.is_ascii_alphanumeric()
        || (text[at].is_ascii_uppercase() && !before.is_ascii_uppercase())
}

/// Whether the name that begins here follows a word that defines names.
fn is_defined(text: &[u8], at: usize) -> bool {
    let before = &text[at.saturating_sub(24)..at];
    let word = before.trim_ascii_end();
    word.len() < before.len()
        // Every match in every text is checked here; most fail at the last letter.
        && DEFINING.iter().filter(|defining| defining.last() == word.last()).any(|defining| {
            word.strip_suffix(*defining)
                .is_some_and(|rest| !rest.last().is_some_and(|byte| is_name_byte(*byte)))
        })
}

/// Returns whether the name here is assigned a function: `a.b = function`, `b: function`, `func (r *R) b(`,
/// or a method's own line `async b(x) {`.
fn is_assigned(text: &[u8], start: usize, end: usize) -> bool {
    let line_start = start
        - text[..start]
            .iter()
            .rev()
            .take(80)
            .take_while(|byte| **byte != b'\n')
            .count();
    let before = text[line_start..start].trim_ascii();
    let after = &text[end..text.len().min(end + 160)];
    let after = &after[..memchr::memchr(b'\n', after).unwrap_or(after.len())];
    match after.trim_ascii_start().first() {
        Some(b'=' | b':') => {
            let value = after.trim_ascii_start()[1..].trim_ascii_start();
            !before.contains(&b' ')
                && (value.starts_with(b"function") || value.starts_with(b"async "))
        }
        Some(b'(') => {
            before.starts_with(b"func (")
                || (after.trim_ascii_end().ends_with(b"{")
                    && before.split(|byte| *byte == b' ').all(|word| {
                        matches!(
                            word,
                            b"" | b"async"
                                | b"static"
                                | b"get"
                                | b"set"
                                | b"public"
                                | b"private"
                                | b"protected"
                                | b"*"
                        )
                    }))
        }
        _ => false,
    }
}
