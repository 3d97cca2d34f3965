//! Edits the text of a workspace: adds an entry, or replaces the tags and the time of one.
//!
//! New text is inserted at positions from the parsed tree ([`Node`]). The rest of the text is not
//! rewritten, so comments, unknown keys, order, quotes and line endings are preserved. Then the new text
//! is parsed and compared.
//!
//! Invariant: the new text means the same as the old one plus the change. If that is impossible, the
//! change is refused.

use std::fmt::Write;
use std::ops::Range;

use crucible_model::is_hidden;

use super::model::{Flaw, SpecWorkspace, VERSION, WorkspaceEntry};
use super::yaml::{Kind, Node, Style};

/// Replacements in a text: byte ranges and their new text, sorted and without overlaps.
type Cuts = Vec<(Range<usize>, String)>;

/// The text of a workspace without specs.
pub(super) fn new_text(name: &str) -> String {
    format!(
        "version: {}\nname: {}\nspecs: []\n",
        quoted(VERSION),
        quoted(name)
    )
}

/// Adds this entry at the end of the list.
pub(super) fn with_entry(text: &str, entry: &WorkspaceEntry) -> Result<String, Flaw> {
    let before = Parsed::new(text)?;
    let mut requested = before.workspace.clone();
    requested.specs.push(entry.clone());
    let keys = 2 + usize::from(entry.added.is_some());
    // Any other reference to the list in the file would change its meaning.
    if before
        .root
        .pair("specs")
        .is_some_and(|(_, list)| list.is_anchored())
    {
        return Err(refusal());
    }
    let fits = |after: &Parsed| {
        let (old, new) = (before.entries(), after.entries());
        let same_list = match (before.root.pair("specs"), after.root.pair("specs")) {
            (Some((_, old)), Some((_, new))) => old.is_marked_as(new),
            (_, new) => new.is_some(),
        };
        after.workspace == requested
            && same_list
            && new.len() == old.len() + 1
            && old.iter().zip(new).all(|(old, new)| old.means(new))
            && new.last().is_some_and(|last| last.pairs().len() == keys)
            && other_pairs(&before.root, "specs").eq_by_meaning(&other_pairs(&after.root, "specs"))
    };
    let places = places_for_entry(text, &before.root, entry);
    let mut places = places.into_iter().filter(|cuts| !ends_a_text(text, cuts));
    places
        .find_map(|cuts| checked(text, &cuts, &fits))
        .ok_or_else(refusal)
}

/// Replaces the tags and the time of an existing entry; its other keys are kept.
pub(super) fn with_replaced(text: &str, entry: &WorkspaceEntry) -> Result<String, Flaw> {
    let before = Parsed::new(text)?;
    let place = before
        .workspace
        .specs
        .iter()
        .position(|old| old.id == entry.id)
        .ok_or_else(refusal)?;
    let mut requested = before.workspace.clone();
    requested.specs[place] = entry.clone();
    let fits = |after: &Parsed| {
        let (old, new) = (before.entries(), after.entries());
        let is_unchanged = |(at, (old, new)): (usize, (&Node, &Node))| {
            let (old_rest, new_rest) = (other_pairs(old, "tags"), other_pairs(new, "tags"));
            old.means(new)
                || (at == place
                    && old_rest
                        .remove_key("added")
                        .eq_by_meaning(&new_rest.remove_key("added")))
        };
        after.workspace == requested
            && old.len() == new.len()
            && old.iter().zip(new).enumerate().all(is_unchanged)
            && other_pairs(&before.root, "specs").eq_by_meaning(&other_pairs(&after.root, "specs"))
    };
    let node = before.entries().get(place).ok_or_else(refusal)?;
    if node.is_anchored()
        || before
            .root
            .pair("specs")
            .is_some_and(|(_, list)| list.is_anchored())
    {
        return Err(refusal());
    }
    let cuts = cuts_for_values(text, node, entry).ok_or_else(refusal)?;
    if ends_a_text(text, &cuts) {
        return Err(refusal());
    }
    checked(text, &cuts, &fits).ok_or_else(refusal)
}

/// A text, parsed in both ways.
struct Parsed {
    workspace: SpecWorkspace,
    root: Node,
}

impl Parsed {
    fn new(text: &str) -> Result<Self, Flaw> {
        let workspace = SpecWorkspace::read(text)?;
        Ok(Self {
            workspace,
            root: Node::read(text).ok_or_else(refusal)?,
        })
    }

    fn entries(&self) -> &[Node] {
        self.root
            .pair("specs")
            .map_or(&[], |(_, list)| list.items())
    }
}

fn refusal() -> Flaw {
    Flaw(
        "its layout does not allow this change without touching other lines; edit it by hand"
            .to_owned(),
    )
}

/// Applies the replacements, and returns the text if it satisfies `fits`.
fn checked(text: &str, cuts: &Cuts, fits: &impl Fn(&Parsed) -> bool) -> Option<String> {
    let mut new = String::with_capacity(text.len() + 256);
    let mut from = 0;
    for (range, put) in cuts {
        new.push_str(text.get(from..range.start)?);
        new.push_str(put);
        from = range.end;
    }
    new.push_str(text.get(from..)?);
    Parsed::new(&new)
        .is_ok_and(|after| fits(&after))
        .then_some(new)
}

/// Whether the replacements add a line ending to a block scalar at the end of the file that has none,
/// which would change its value. YAML parsers disagree about that value, so the lines are checked, not
/// the tree.
fn ends_a_text(text: &str, cuts: &Cuts) -> bool {
    let appends = cuts
        .iter()
        .any(|(range, put)| range.start == text.len() && !put.is_empty());
    if !appends || text.ends_with('\n') {
        return false;
    }
    let mut least = usize::MAX;
    for line in text.lines().rev().filter(|line| !line.trim().is_empty()) {
        let indent = line.len() - line.trim_start_matches([' ', '-']).len();
        let written = line.split(" #").next().unwrap_or_default().trim_end();
        let sign = written.rsplit([' ', '\t']).next().unwrap_or_default();
        let begins = sign.starts_with(['|', '>'])
            && sign
                .chars()
                .skip(1)
                .all(|c| matches!(c, '+' | '-') || c.is_ascii_digit());
        if begins && indent < least {
            return !sign.contains('-');
        }
        least = least.min(line.len() - line.trim_start_matches(' ').len());
    }
    false
}

/// The pairs of a mapping except some.
struct RemainingPairs<'a>(Vec<&'a (Node, Node)>);

fn other_pairs<'a>(node: &'a Node, but: &str) -> RemainingPairs<'a> {
    RemainingPairs(node.pairs().iter().collect()).remove_key(but)
}

impl RemainingPairs<'_> {
    fn remove_key(self, but: &str) -> Self {
        Self(
            self.0
                .into_iter()
                .filter(|(key, _)| !key.is_text(but))
                .collect(),
        )
    }

    fn eq_by_meaning(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
            && self
                .0
                .iter()
                .zip(&other.0)
                .all(|(a, b)| a.0.means(&b.0) && a.1.means(&b.1))
    }
}

/// The possible positions of the entry, the best first.
fn places_for_entry(text: &str, root: &Node, entry: &WorkspaceEntry) -> Vec<Cuts> {
    let Kind::Mapping { style, pairs } = &root.kind else {
        return Vec::new();
    };
    let Some((key, list)) = root.pair("specs") else {
        return match style {
            Style::Flow => {
                let list = format!("\"specs\": [{}]", in_brackets(entry, Style::Flow));
                vec![vec![after_last(
                    root,
                    pairs.last().map(|(_, value)| value),
                    &list,
                )]]
            }
            Style::Block => {
                let inner = |indent: usize| {
                    let mut lines = vec![format!("{}specs:", " ".repeat(indent))];
                    lines.extend(in_lines(entry, indent + 2));
                    lines
                };
                // After the last key; or before the first, if the text of the last one would absorb
                // anything that follows.
                let first = line_start(text, root.start);
                let lines = inner(root.column);
                vec![
                    vec![after_line(text, root.end, &lines)],
                    vec![(first..first, block(text, &lines))],
                ]
            }
        };
    };
    match &list.kind {
        Kind::Sequence {
            style: Style::Block,
            items,
        } => {
            // Dashes without indentation are below the key; the list then begins after the first of them.
            let begins = text.get(list.start..).unwrap_or_default();
            let dash = begins
                .strip_prefix('-')
                .is_some_and(|rest| rest.starts_with(char::is_whitespace));
            let column = if dash { list.column } else { key.column };
            let lines = in_lines(entry, column);
            let end = items.last().map_or(list.end, |last| last.end.max(list.end));
            vec![vec![after_comments_of(text, end, column, &lines)]]
        }
        Kind::Sequence {
            style: Style::Flow,
            items,
        } => {
            let within = after_last(list, items.last(), &in_brackets(entry, *style));
            let between = text.get(list.start..list.end).unwrap_or_default();
            let is_empty = items.is_empty() && !between.contains(['\n', '#']);
            let mut places = vec![vec![within]];
            if is_empty && *style == Style::Block {
                places.insert(0, instead(text, key, list, entry));
            }
            places
        }
        _ if list.is_null() && *style == Style::Block => vec![instead(text, key, list, entry)],
        _ if list.is_null() && list.end > list.start => {
            vec![vec![(
                list.start..list.end,
                format!("[{}]", in_brackets(entry, Style::Flow)),
            )]]
        }
        _ => Vec::new(),
    }
}

/// The first entry of an empty list: `[]` or `~` is replaced, and the entry is below the key.
fn instead(text: &str, key: &Node, list: &Node, entry: &WorkspaceEntry) -> Cuts {
    let lines = in_lines(entry, key.column + 2);
    let mut cuts = Vec::new();
    if list.end > list.start && list.start >= key.end {
        let start = key.end
            + text
                .get(key.end..list.start)
                .map_or(0, |between| between.trim_end().len());
        // Space before a comment is kept, trailing space is removed.
        cuts.push((start..list.end, String::new()));
    }
    cuts.push(after_line(text, list.end.max(key.end), &lines));
    cuts
}

/// New text after the last item of a flow collection.
fn after_last(collection: &Node, last: Option<&Node>, put: &str) -> (Range<usize>, String) {
    match last {
        Some(last) => (last.end..last.end, format!(", {put}")),
        None => (collection.start + 1..collection.start + 1, put.to_owned()),
    }
}

/// New lines after the line of this position.
fn after_line(text: &str, place: usize, lines: &[String]) -> (Range<usize>, String) {
    let end = line_end(text, place);
    let unended = end == text.len() && !text.ends_with('\n');
    let put = block(text, lines);
    let put = if unended {
        format!("{}{}", newline(text), put.trim_end_matches(['\r', '\n']))
    } else {
        put
    };
    (end..end, put)
}

/// New lines, also after comments that are indented deeper than `column` and so belong to the text above.
fn after_comments_of(
    text: &str,
    place: usize,
    column: usize,
    lines: &[String],
) -> (Range<usize>, String) {
    let mut place = place;
    loop {
        let next = line_end(text, place);
        let line = text.get(next..line_end(text, next)).unwrap_or_default();
        let indent = line.len() - line.trim_start_matches(' ').len();
        if indent <= column || !line.trim_start().starts_with('#') {
            return after_line(text, place, lines);
        }
        place = next;
    }
}

/// The replacements of an entry's tags and time.
fn cuts_for_values(text: &str, node: &Node, entry: &WorkspaceEntry) -> Option<Cuts> {
    let Kind::Mapping { style, .. } = &node.kind else {
        return None;
    };
    let (id_key, id) = node.pair("id")?;
    let instant = entry.added.map(|added| quoted(&added.to_string()))?;
    let mut cuts = Vec::new();
    let mut missing = Vec::new();
    for (name, value) in [("tags", tag_list(&entry.tags)), ("added", instant)] {
        match node.pair(name) {
            Some((key, old)) => {
                let start = key.end + colon(text, key.end);
                let removed = start..if old.end > old.start { old.end } else { start };
                // A comment must not be lost with the value that it describes.
                if holds_comment(text, &removed, old) {
                    return None;
                }
                cuts.push((removed, format!(" {value}")));
            }
            None => missing.push((name, value)),
        }
    }
    if !missing.is_empty() {
        cuts.push(match style {
            Style::Block => {
                let indent = " ".repeat(id_key.column);
                let lines: Vec<_> = missing
                    .iter()
                    .map(|(name, value)| format!("{indent}{name}: {value}"))
                    .collect();
                after_line(text, id.end, &lines)
            }
            Style::Flow => {
                let mark = if text.get(id_key.start..)?.starts_with('"') {
                    "\""
                } else {
                    ""
                };
                let pairs: String = missing
                    .iter()
                    .map(|(name, value)| format!(", {mark}{name}{mark}: {value}"))
                    .collect();
                (id.end..id.end, pairs)
            }
        });
    }
    cuts.sort_by_key(|(range, _)| range.start);
    Some(cuts)
}

/// Whether the replaced range contains a comment: between its values, or after the indicator of a block
/// scalar.
fn holds_comment(text: &str, removed: &Range<usize>, value: &Node) -> bool {
    let mut scalars = Vec::new();
    scalars_of(value, &mut scalars);
    let mut from = removed.start;
    for scalar in scalars {
        let written = text.get(scalar.start..scalar.end).unwrap_or_default();
        let sign = written
            .starts_with(['|', '>'])
            .then(|| written.lines().next().unwrap_or_default());
        let before = text.get(from..scalar.start).unwrap_or_default();
        if before.contains('#') || sign.is_some_and(|sign| sign.contains('#')) {
            return true;
        }
        from = scalar.end.max(from);
    }
    text.get(from..removed.end)
        .is_some_and(|rest| rest.contains('#'))
}

/// The visible scalars and aliases of a value, in order.
fn scalars_of<'n>(value: &'n Node, into: &mut Vec<&'n Node>) {
    match &value.kind {
        Kind::Scalar { .. } | Kind::Alias(_) if value.end > value.start => into.push(value),
        Kind::Scalar { .. } | Kind::Alias(_) => {}
        Kind::Sequence { items, .. } => items.iter().for_each(|item| scalars_of(item, into)),
        Kind::Mapping { pairs, .. } => pairs.iter().for_each(|(key, value)| {
            scalars_of(key, into);
            scalars_of(value, into);
        }),
    }
}

/// The lines of a list entry whose dashes are in this column.
fn in_lines(entry: &WorkspaceEntry, column: usize) -> Vec<String> {
    let indent = " ".repeat(column);
    let mut lines = vec![
        format!("{indent}- id: {}", quoted(entry.id.as_str())),
        format!("{indent}  tags: {}", tag_list(&entry.tags)),
    ];
    lines.extend(
        entry
            .added
            .map(|added| format!("{indent}  added: {}", quoted(&added.to_string()))),
    );
    lines
}

/// A list entry in brackets; below a root in braces the keys are quoted as in JSON.
fn in_brackets(entry: &WorkspaceEntry, root: Style) -> String {
    let mark = match root {
        Style::Flow => "\"",
        Style::Block => "",
    };
    let mut text = format!("{{{mark}id{mark}: {}", quoted(entry.id.as_str()));
    let _a_string_takes_it = write!(text, ", {mark}tags{mark}: {}", tag_list(&entry.tags));
    if let Some(added) = entry.added {
        let _a_string_takes_it =
            write!(text, ", {mark}added{mark}: {}", quoted(&added.to_string()));
    }
    text + "}"
}

fn tag_list(tags: &[String]) -> String {
    let tags: Vec<String> = tags.iter().map(|tag| quoted(tag)).collect();
    format!("[{}]", tags.join(", "))
}

/// A text in double quotes, which YAML parses as exactly this text.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if is_hidden(c) => {
                let number = u32::from(c);
                let _a_string_takes_it = match u16::try_from(number) {
                    Ok(number) => write!(out, "\\u{number:04x}"),
                    Err(_) => write!(out, "\\U{number:08x}"),
                };
            }
            c => out.push(c),
        }
    }
    out + "\""
}

fn block(text: &str, lines: &[String]) -> String {
    let newline = newline(text);
    lines
        .iter()
        .map(|line| format!("{line}{newline}"))
        .collect()
}

/// The line ending of this text.
fn newline(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

fn line_start(text: &str, place: usize) -> usize {
    text.get(..place)
        .and_then(|before| before.rfind('\n'))
        .map_or(0, |at| at + 1)
}

/// The position after the end of this position's line.
fn line_end(text: &str, place: usize) -> usize {
    text.get(place..)
        .and_then(|rest| rest.find('\n'))
        .map_or(text.len(), |at| place + at + 1)
}

/// The offset after a key where its value may begin.
fn colon(text: &str, key_end: usize) -> usize {
    text.get(key_end..)
        .and_then(|rest| rest.find(':'))
        .map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(id: &str, tags: &[&str]) -> WorkspaceEntry {
        WorkspaceEntry {
            id: id.parse().unwrap(),
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            added: Some("2024-12-01T10:00:00Z".parse().unwrap()),
        }
    }

    #[track_caller]
    fn added(text: &str) -> String {
        with_entry(text, &entry("new", &["t"])).unwrap_or_else(|flaw| panic!("{}:\n{text}", flaw.0))
    }

    #[track_caller]
    fn replaced(text: &str) -> String {
        with_replaced(text, &entry("a", &["t"]))
            .unwrap_or_else(|flaw| panic!("{}:\n{text}", flaw.0))
    }

    const HEAD: &str = "version: \"1\"\nname: x\n";
    const BLOCK: &str = "- id: \"new\"\n  tags: [\"t\"]\n  added: \"2024-12-01T10:00:00.000Z\"\n";

    fn indented(by: usize) -> String {
        BLOCK
            .lines()
            .map(|line| format!("{}{line}\n", " ".repeat(by)))
            .collect()
    }

    #[test]
    fn new_workspace_file_parses_for_any_name() {
        for name in [
            "my-project",
            "yes",
            "1",
            "a: b",
            "größe",
            "\"\\\n\u{202e}\u{e0041}",
            "#",
            "",
        ] {
            let workspace = SpecWorkspace::read(&new_text(name)).unwrap();
            assert_eq!((workspace.name.as_str(), workspace.specs.len()), (name, 0));
        }
    }

    #[test]
    fn first_entry_creates_list_below_its_key() {
        for (list, key) in [
            ("specs: []", "specs:"),
            ("specs:", "specs:"),
            ("specs: ~", "specs:"),
            ("specs: null", "specs:"),
            ("specs:   [ ]  # none yet", "specs:  # none yet"),
            ("specs: # none yet", "specs: # none yet"),
        ] {
            let new = added(&format!("{HEAD}{list}\n"));
            assert_eq!(new, format!("{HEAD}{key}\n{}", indented(2)), "{list}");
            let between = added(&format!("{HEAD}{list}\nafter: 1\n"));
            assert_eq!(
                between,
                format!("{HEAD}{key}\n{}after: 1\n", indented(2)),
                "{list}"
            );
        }
        assert_eq!(added(HEAD), format!("{HEAD}specs:\n{}", indented(2)));
        assert_eq!(
            added(&format!("{HEAD}...\n")),
            format!("{HEAD}specs:\n{}...\n", indented(2))
        );
        assert_eq!(
            added("%YAML 1.2\n---\n  version: '1'\n  name: x # y\n# end\n"),
            format!(
                "%YAML 1.2\n---\n  version: '1'\n  name: x # y\n  specs:\n{}# end\n",
                indented(4)
            )
        );
    }

    #[test]
    fn new_entry_is_appended() {
        for (by, last) in [
            (2, "  - id: a\n"),
            (0, "- id: a # first\n  tags: [\n    b, # c\n  ]\n"),
            (
                4,
                "    -   id: a\n        note: |\n          text\n          - more\n",
            ),
            (2, "  - id: a\n    tags:\n    - b\n    # - c\n"),
            (2, "  - {id: a}\n"),
            (2, "  # of this list\n  - id: a\n    tags:\n"),
            (
                2,
                "  -\n    id: a\n    note: some words\n      that go on\n",
            ),
        ] {
            for rest in [
                "",
                "# end of the list\n",
                "\n# end\nafter: [1]\n",
                "after: 1\n...\n",
            ] {
                let old = format!("{HEAD}specs:\n{last}");
                assert_eq!(
                    added(&format!("{old}{rest}")),
                    format!("{old}{}{rest}", indented(by))
                );
            }
        }
    }

    #[test]
    fn unterminated_block_scalar_is_refused() {
        for sign in ["|+", "|", ">", "|2+", ">+ # why"] {
            let text = format!("{HEAD}specs:\n  - id: a\n    note: {sign}\n      text");
            assert!(
                with_entry(&text, &entry("new", &[]))
                    .unwrap_err()
                    .0
                    .contains("by hand"),
                "{sign}"
            );
            assert!(added(&format!("{text}\n")).starts_with(&text), "{sign}");
            // Elsewhere in the file there is room, and the end is unchanged.
            let difference = format!("{HEAD}specs:\n  - id: a\nnote: {sign}\n  text");
            assert!(
                added(&difference).ends_with(&format!("note: {sign}\n  text")),
                "{sign}"
            );
        }
        for sign in ["|-", ">-", "|2-"] {
            let text = format!("{HEAD}specs:\n  - id: a\n    note: {sign}\n      text");
            assert!(added(&text).starts_with(&format!("{text}\n")), "{sign}");
        }
    }

    #[test]
    fn lines_end_as_they_did() {
        let old = format!("\u{feff}{HEAD}specs:\n  - id: a\n# end\n").replace('\n', "\r\n");
        let new = added(&old);
        assert_eq!(new.matches('\n').count(), new.matches("\r\n").count());
        assert!(new.ends_with("000Z\"\r\n# end\r\n"), "{new:?}");
        let unended = format!("{HEAD}specs:\n- id: a");
        assert_eq!(added(&unended), format!("{unended}\n{}", BLOCK.trim_end()));
        assert_eq!(
            added("{\"version\": \"1\", \"name\": \"x\"}")
                .matches('\n')
                .count(),
            0
        );
    }

    #[test]
    fn a_list_in_brackets_stays_one() {
        let flow = "{id: \"new\", tags: [\"t\"], added: \"2024-12-01T10:00:00.000Z\"}";
        for (old, new) in [
            (
                "specs: [{id: a}]\n",
                format!("specs: [{{id: a}}, {flow}]\n"),
            ),
            (
                "specs: [\n  {id: a}, # one\n  {id: b},\n] # end\n",
                format!("specs: [\n  {{id: a}}, # one\n  {{id: b}}, {flow},\n] # end\n"),
            ),
            (
                "specs: [\n  # none\n]\n",
                format!("specs: [{flow}\n  # none\n]\n"),
            ),
        ] {
            assert_eq!(added(&format!("{HEAD}{old}")), format!("{HEAD}{new}"));
        }
    }

    #[test]
    fn a_file_in_json_stays_json() {
        for list in [
            "",
            ",\n  \"specs\": []",
            ", \"specs\": null",
            ", \"specs\": [{\"id\": \"a\"}]",
        ] {
            let new = added(&format!("{{\"version\": \"1\", \"name\": \"x\"{list}}}\n"));
            let value: serde_json::Value = serde_json::from_str(&new).unwrap();
            let last = value["specs"].as_array().unwrap().last().unwrap();
            assert_eq!(
                (&last["id"], &last["tags"][0]),
                (&"new".into(), &"t".into())
            );
        }
        let text = "{\"version\": \"1\", \"name\": \"x\", \"specs\": [{\"id\": \"a\", \"tags\": [\"b\"]}]}\n";
        let value: serde_json::Value = serde_json::from_str(&replaced(text)).unwrap();
        assert_eq!(value["specs"][0]["tags"][0], "t");
        assert!(value["specs"][0]["added"].is_string());
    }

    #[test]
    fn replaced_entry_keeps_its_other_keys() {
        let new = "[\"t\"]";
        let instant = "\"2024-12-01T10:00:00.000Z\"";
        for (old, expected) in [
            (
                "- id: a\n",
                format!("- id: a\n  tags: {new}\n  added: {instant}\n"),
            ),
            (
                "- tags: [b] # why\n  owner: me\n  id: a # it\n  added: 2024-01-01T00:00:00Z\n",
                format!("- tags: {new} # why\n  owner: me\n  id: a # it\n  added: {instant}\n"),
            ),
            (
                "- id: a\n  tags:\n  - b\n  - c\n  weight: 3\n",
                format!("- id: a\n  tags: {new}\n  added: {instant}\n  weight: 3\n"),
            ),
            (
                "- {id: a, tags: []} # it\n",
                format!("- {{id: a, added: {instant}, tags: {new}}} # it\n"),
            ),
            (
                "- id: a\n  tags:\n",
                format!("- id: a\n  added: {instant}\n  tags: {new}\n"),
            ),
            (
                "- id: a\n  tags: # why\n  weight: 3\n",
                format!("- id: a\n  added: {instant}\n  tags: {new} # why\n  weight: 3\n"),
            ),
            (
                "- id: a\n  tags:\n  - 'b # no comment'\n  - |-\n    # nor this\n  - c # why\n",
                format!("- id: a\n  tags: {new} # why\n  added: {instant}\n"),
            ),
        ] {
            let rest = "- id: b\n  tags: [z]\nafter: 1\n";
            let text = replaced(&format!("{HEAD}specs:\n{old}{rest}"));
            let read = |text: &str| SpecWorkspace::read(text).unwrap();
            assert_eq!(
                read(&text),
                read(&format!("{HEAD}specs:\n{expected}{rest}")),
                "{text}"
            );
            for stored_text in ["# why", "# it", "owner: me", "weight: 3"]
                .iter()
                .filter(|kept| old.contains(**kept))
            {
                assert!(text.contains(stored_text), "{text}");
            }
            assert!(text.starts_with(HEAD) && text.ends_with(rest), "{text}");
        }
    }

    #[test]
    fn change_that_would_lose_data_is_refused() {
        for text in [
            "specs: &s []\nmore: *s\n",
            "list: &l [{id: a}]\nspecs: *l\n",
            "base: &b {specs: [{id: a}]}\n<<: *b\n",
        ] {
            let text = format!("{HEAD}{text}");
            SpecWorkspace::read(&text).unwrap();
            assert!(
                with_entry(&text, &entry("new", &[]))
                    .unwrap_err()
                    .0
                    .contains("by hand"),
                "{text}"
            );
        }
        for text in [
            "specs:\n- id: a\n  tags:\n  - b # dear to me\n  - c # too\n",
            "specs:\n- id: a\n  tags:\n  # before\n  - b   # after\n",
            "specs:\n- id: a\n  tags:   # c0\n    - b\n",
            "specs:\n- id: a\n  tags: [ # c0\n    b ]\n",
            "specs:\n- id: a\n  tags: [\n    b # c0\n  ]\n",
            "specs:\n- id: a\n  tags: [\n    # none\n  ]\n",
            "specs:\n- id: a\n  tags:\n  - |- # c0\n    b\n",
            "specs:\n- id: a\n  added:  # when\n    2024-01-01T00:00:00Z\n",
            "specs:\n- id: a\n  added: >- # when\n    2024-01-01T00:00:00Z\n",
            "specs:\n- id: a\n  tags: &t [b]\nmore: *t\n",
            "e: &e {id: a}\nspecs:\n- *e\n",
        ] {
            let text = format!("{HEAD}{text}");
            assert!(
                with_replaced(&text, &entry("a", &[]))
                    .unwrap_err()
                    .0
                    .contains("by hand"),
                "{text}"
            );
        }
    }

    /// A line of a hand-written file.
    fn piece() -> impl Strategy<Value = String> {
        let words = prop::sample::select(vec![
            "# a comment\n",
            "\n",
            "owner: me\n",
            "note: |\n  text\n\n",
            "note2: >-\n  more\n  text\n",
            "map: {a: [1, 2]} # x\n",
            "x-list:\n- 1\n- two\n",
            "empty:\n",
            "long: some words\n  that go on\n",
            "keep: |+\n  text\n\n",
        ]);
        words.prop_map(str::to_owned)
    }

    fn list() -> impl Strategy<Value = String> {
        let item = prop::sample::select(vec![
            "- id: ID\n",
            "- id: ID # c\n  tags: [a, 'b']\n",
            "- {id: ID}\n",
            "-   id: ID\n    tags:\n      - x\n      # - y\n",
            "- tags: []\n  added: 2024-01-01T00:00:00Z\n  id: \"ID\"\n\n",
            "- id: ID\n  note: |\n    text\n",
            "# apart\n- id: ID\n",
        ]);
        let block = (prop::collection::vec(item, 1..5), 0usize..5).prop_map(|(items, by)| {
            let items = items
                .iter()
                .enumerate()
                .map(|(at, item)| item.replace("ID", &format!("s{at}")));
            let lines: String = items.collect();
            let indent = |line: &str| {
                if line.is_empty() {
                    "\n".to_owned()
                } else {
                    format!("{}{line}\n", " ".repeat(by))
                }
            };
            format!("specs:\n{}", lines.lines().map(indent).collect::<String>())
        });
        let others = prop::sample::select(vec![
            "",
            "specs: []\n",
            "specs:\n",
            "specs: [{id: s0}, {id: s1, tags: [a]}]\n",
            "specs: [\n  {id: s0}, # c\n]\n",
        ]);
        prop_oneof![block, others.prop_map(str::to_owned)]
    }

    /// Whether the new line is the old one, perhaps with an insertion.
    fn grown(old: &str, new: &str) -> bool {
        let mut cuts = (0..=old.len()).filter(|cut| old.is_char_boundary(*cut));
        new.len() >= old.len()
            && cuts.any(|cut| new.starts_with(&old[..cut]) && new.ends_with(&old[cut..]))
    }

    mod properties {
        use super::*;

        proptest! {
            /// For any file, every line is still there, in order, and the meaning has one more entry.
            #[test]
            fn an_entry_more_and_nothing_less(
                before in prop::collection::hash_set(piece(), 0..4),
                list in list(),
                after in prop::collection::hash_set(piece(), 0..3),
                crlf in any::<bool>(),
                ended in any::<bool>(),
                tags in prop::collection::vec(any::<String>(), 0..4),
            ) {
                let after: Vec<_> = after.difference(&before).cloned().collect();
                let before: Vec<_> = before.into_iter().collect();
                let mut text = format!("{HEAD}{}{list}{}", before.concat(), after.concat());
                if crlf { text = text.replace('\n', "\r\n"); }
                if !ended { text = text.trim_end().to_owned(); }
                let old = SpecWorkspace::read(&text).unwrap();
                let new_entry = WorkspaceEntry { tags, ..entry("new", &[]) };
                let new = with_entry(&text, &new_entry);
                if new.is_err() {
                    // The line ending that the entry needs would become part of the text before it.
                    prop_assert!(!text.ends_with('\n') && text.contains(['|', '>']), "refused:\n{text}");
                    prop_assert!(with_entry(&format!("{text}\n"), &new_entry).is_ok(), "refused:\n{text}");
                    return Ok(());
                }
                let new = new.unwrap();
                let mut lines = new.lines();
                for line in text.lines() {
                    prop_assert!(lines.any(|new| grown(line, new) || line.strip_suffix(" []") == Some(new)), "{line:?} is gone:\n{text}\n---\n{new}");
                }
                let mut expected = old;
                expected.specs.push(new_entry);
                let read = SpecWorkspace::read(&new).unwrap();
                prop_assert_eq!(&read, &expected);
                // And the entry can be replaced again.
                let other = WorkspaceEntry { tags: vec!["other".to_owned()], ..entry("new", &[]) };
                let replaced = with_replaced(&new, &other).unwrap();
                let read = SpecWorkspace::read(&replaced).unwrap();
                prop_assert_eq!(read.specs.last(), Some(&other));
                prop_assert_eq!(replaced.lines().count(), new.lines().count());
            }

            #[test]
            fn a_quoted_text_is_the_text(name in any::<String>()) {
                prop_assert_eq!(SpecWorkspace::read(&new_text(&name)).unwrap().name, name);
            }
        }
    }
}
