//! The words of a goal that may name something, each with what the sentence around it says. Pure, linear in the goal.

use crucible_pack::WordStem;

use crate::may_drop::is_definition_name;

/// How much of a goal is read, in bytes, and how many words of it.
const MAX_BYTES: usize = 16 * 1024;
const MAX_WORDS: usize = 2048;

/// How many renames of a goal are read.
const MAX_RENAMES: usize = 8;

/// How far a verb reaches within its clause, in words.
const REACH: usize = 12;

/// After these, what does not exist yet is made.
const CREATING: [&str; 11] = [
    "create",
    "add",
    "new",
    "write",
    "introduce",
    "put",
    "extract",
    "split",
    "move",
    "rename",
    "generate",
];
/// After these, a manifest that is named is to change.
const CHANGING: [&str; 22] = [
    "add", "bump", "update", "upgrade", "pin", "set", "change", "edit", "remove", "drop", "raise",
    "lower", "declare", "require", "move", "rename", "fix", "correct", "put", "list", "relax",
    "replace",
];
/// After these, a file that is named goes away or gets another name.
const DELETING: [&str; 5] = ["remove", "delete", "drop", "rename", "move"];
/// Words between such a verb and the file.
const FILLERS: [&str; 18] = [
    "the", "file", "files", "module", "modules", "unused", "old", "obsolete", "and", "or", "dead",
    "whole", "entire", "any", "anything", "a", "in", "under",
];
/// With a denial before them, what is named stays as it is.
const TOUCHING: [&str; 6] = ["touch", "change", "edit", "modify", "alter", "rewrite"];
const DENIALS: [&str; 7] = ["not", "never", "without", "don't", "dont", "no", "don’t"];

/// A word that may name something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mention {
    /// What is named, without quotes, line numbers and what follows a parenthesis.
    pub(super) text: String,
    /// The word in lower case, without punctuation at its ends.
    pub(super) word: String,
    /// In which clause it stands.
    pub(super) clause: usize,
    /// It stands in backticks.
    is_quoted: bool,
    /// It ends with `()`.
    is_call: bool,
    /// A slash stands at its end.
    has_slash: bool,
    /// The goal says to leave it alone.
    pub(super) is_denied: bool,
    /// The goal makes it.
    pub(super) is_created: bool,
    /// The goal takes it away or gives it another name.
    pub(super) is_deleted: bool,
    /// The goal changes something in it.
    pub(super) is_changed: bool,
}

impl Mention {
    /// Whether it can be the name of something that code defines: it stands in backticks or is called.
    pub(super) fn is_symbol(&self) -> bool {
        (self.is_quoted || self.is_call)
            && self
                .text
                .split(['.', ':', '#'])
                .filter(|part| !part.is_empty())
                .all(is_definition_name)
            && !self.text.is_empty()
    }

    /// Whether it is worth looking up: a plain word names nothing.
    pub(super) fn may_name(&self) -> bool {
        self.is_quoted || self.is_call || self.has_slash || self.text.contains(['/', '.', ':', '*'])
    }

    pub(super) fn is_glob(&self) -> bool {
        self.text.contains(['*', '?', '{']) && self.text.contains(['/', '.']) && !self.is_call
    }

    /// Whether it looks like the path of a file: it has an extension, or a directory.
    pub(super) fn is_path(&self) -> bool {
        let name = self.text.rsplit('/').next().unwrap_or_default();
        let extension = name
            .rsplit_once('.')
            .filter(|(stem, _)| !stem.is_empty())
            .map(|(_, end)| end);
        !self.is_call
            && !self.has_slash
            && extension.is_some_and(|end| {
                (1..=8).contains(&end.len()) && end.chars().all(|c| c.is_ascii_alphanumeric())
            })
            && !name.contains("..")
            // `Parser.parse` is not a file; `parser.py` is one.
            && (self.text.contains('/') || extension.is_some_and(|end| end.chars().all(|c| !c.is_uppercase())))
    }

    /// Whether it can be a directory, which a plain word cannot.
    pub(super) fn may_be_directory(&self) -> bool {
        self.has_slash || self.text.contains('/') || self.is_quoted
    }
}

/// The part of a goal before the first Markdown heading, quote or HTML comment. What follows was pasted, such as an issue
/// of another person.
pub(crate) fn own_words(goal: &str) -> &str {
    let mut at = 0;
    for line in goal.split_inclusive('\n') {
        let text = line.trim_start();
        let is_heading = text.starts_with('#') && text.trim_start_matches('#').starts_with(' ');
        if is_heading || text.starts_with('>') || text.starts_with("<!--") {
            return goal.get(..at).unwrap_or(goal);
        }
        at += line.len();
    }
    goal
}

/// The words of a goal.
pub(super) fn mentions(goal: &str) -> Vec<Mention> {
    let goal = goal
        .get(..goal.floor_char_boundary(MAX_BYTES))
        .unwrap_or(goal);
    let mut words: Vec<Mention> = Vec::new();
    let mut clause = 0;
    let mut is_fenced = false;
    for (at, part) in goal.split("```").enumerate() {
        if at > 0 {
            is_fenced = !is_fenced;
        }
        for (at, part) in part.split('`').enumerate() {
            let is_quoted = at % 2 == 1 && !is_fenced;
            for raw in part.split_whitespace() {
                if words.len() == MAX_WORDS {
                    break;
                }
                words.push(word(raw, clause, is_quoted));
                if raw.ends_with(['.', ';', '!', '?']) || raw.eq_ignore_ascii_case("but") {
                    clause += 1;
                }
            }
            // "`a`. Then" ends a clause as well.
            if !is_quoted && part.starts_with(['.', ';', '!', '?']) && part.len() > 1 {
                clause += usize::from(part.as_bytes().get(1) == Some(&b' '));
            }
        }
    }
    let verbs: Vec<Verbs> = words.iter().map(|word| Verbs::parse(&word.word)).collect();
    for at in 0..words.len() {
        let clause = words[at].clause;
        let start = at.saturating_sub(REACH);
        let start = start + words[start..at].partition_point(|word| word.clause < clause);
        let before = Before {
            words: &words[start..at],
            verbs: &verbs[start..at],
        };
        let has = |is: fn(&Verbs) -> bool| before.verbs.iter().any(is);
        let (created, changed) = (has(|verb| verb.creating), has(|verb| verb.changing));
        let (deleted, denied) = (
            before.is_object_of(|verb| verb.deleting),
            before.is_left_alone(words.get(at + 1)),
        );
        let word = &mut words[at];
        word.is_created = created;
        word.is_changed = changed;
        word.is_deleted = deleted && !denied;
        word.is_denied = denied;
    }
    words
}

/// The pairs of names of "rename A to B".
pub(super) fn renames(mentions: &[Mention]) -> Vec<(String, String)> {
    let mut renames: Vec<(String, String)> = Vec::new();
    for (at, verb) in mentions.iter().enumerate() {
        if !is_one_of(&verb.word, &["rename"]) {
            continue;
        }
        let clause = mentions
            .iter()
            .skip(at + 1)
            .take(REACH)
            .take_while(|word| word.clause == verb.clause);
        let rest: Vec<&Mention> = clause.collect();
        let Some(to) = rest
            .iter()
            .position(|word| matches!(word.word.as_str(), "to" | "into" | "as"))
        else {
            continue;
        };
        let name = |word: &&Mention| {
            let last = word
                .text
                .rsplit(['.', ':', '#', '/'])
                .next()
                .unwrap_or_default();
            let is_small = FILLERS.contains(&word.word.as_str()) && !word.is_quoted;
            (is_definition_name(last) && !word.is_path() && !is_small).then(|| last.to_owned())
        };
        let old = rest[..to].iter().rev().find_map(name);
        let new = rest.get(to + 1..).unwrap_or_default().iter().find_map(name);
        renames.extend(
            old.zip(new)
                .filter(|(old, new)| old != new && !renames.contains(&(old.clone(), new.clone()))),
        );
        if renames.len() == MAX_RENAMES {
            break;
        }
    }
    renames
}

/// Whether a word is a form of one of these.
pub(super) fn is_one_of(word: &str, verbs: &[&str]) -> bool {
    !word.is_empty()
        && verbs
            .iter()
            .any(|verb| WordStem::from_word(verb) == WordStem::from_word(word))
}

fn word(raw: &str, clause: usize, is_quoted: bool) -> Mention {
    let quotes = ['"', '\'', '(', '[', '<', '“', '‘', '«'];
    let ends = [
        '"', '\'', ')', ']', '>', ',', ';', ':', '.', '!', '?', '”', '’', '»',
    ];
    let text = raw.trim_start_matches(quotes);
    let text = text
        .strip_suffix("'s")
        .or_else(|| text.strip_suffix("’s"))
        .unwrap_or(text);
    let (text, is_call) = match text.find('(') {
        Some(at) if at > 0 => (&text[..at], true),
        _ => (text.trim_end_matches(ends), false),
    };
    let text = text.strip_prefix("./").unwrap_or(text);
    let has_slash = text.len() > 1 && text.ends_with('/');
    let text = without_line(text.trim_end_matches('/'));
    Mention {
        text: text.to_owned(),
        word: raw
            .trim_matches(|c: char| !c.is_alphanumeric() && c != '_')
            .to_lowercase(),
        clause,
        is_quoted,
        is_call,
        has_slash,
        is_denied: false,
        is_created: false,
        is_deleted: false,
        is_changed: false,
    }
}

/// `src/a.py` of `src/a.py:12:5`, `src/a.py#L7` and `tests/a.py::test_x`.
fn without_line(text: &str) -> &str {
    let text = text.split("#L").next().unwrap_or(text);
    let mut text = match text.split_once("::") {
        Some((file, _)) if file.contains('.') => file,
        _ => text,
    };
    for _ in 0..2 {
        if let Some((head, line)) = text.rsplit_once(':')
            && !line.is_empty()
            && line.bytes().all(|byte| byte.is_ascii_digit())
        {
            text = head;
        }
    }
    text
}

/// What a verb does to what it names.
struct Verbs {
    creating: bool,
    changing: bool,
    deleting: bool,
    touching: bool,
}

impl Verbs {
    fn parse(word: &str) -> Self {
        let is = |verbs: &[&str]| is_one_of(word, verbs);
        Self {
            creating: is(&CREATING),
            changing: is(&CHANGING),
            deleting: is(&DELETING),
            touching: is(&TOUCHING),
        }
    }
}

/// The words before one in its clause.
struct Before<'w> {
    words: &'w [Mention],
    verbs: &'w [Verbs],
}

impl Before<'_> {
    /// Where such a verb stands, where nothing but small words and other files stand between it and the word.
    fn governing(&self, is: fn(&Verbs) -> bool) -> Option<usize> {
        let verb = self.verbs.iter().rposition(is)?;
        self.words[verb + 1..]
            .iter()
            .all(|word| is_filler(&word.word))
            .then_some(verb)
    }

    fn is_object_of(&self, is: fn(&Verbs) -> bool) -> bool {
        self.governing(is).is_some()
    }

    fn is_left_alone(&self, next: Option<&Mention>) -> bool {
        let Some(last) = self.words.last() else {
            return false;
        };
        let next = next.map(|next| next.word.as_str()).unwrap_or_default();
        let is_kept = matches!(last.word.as_str(), "leave" | "keep")
            && matches!(next, "alone" | "unchanged" | "untouched" | "as");
        let is_untouched = self.governing(|verb| verb.touching).is_some_and(|verb| {
            self.words[verb.saturating_sub(2)..verb]
                .iter()
                .any(|word| DENIALS.contains(&word.word.as_str()))
        });
        is_kept || last.word == "not" || is_untouched
    }
}

fn is_filler(word: &str) -> bool {
    word.is_empty() || FILLERS.contains(&word) || word.contains(['/', '.', '_'])
}
