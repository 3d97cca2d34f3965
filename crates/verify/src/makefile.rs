//! Parses makefiles: rules with their recipes, and the values of variables.
//!
//! Nothing is executed, conditions count as true, and a variable that is set several times has all of its
//! values. Unknown references stay in the text as `$NAME`. Parsing is linear in the text; expansion is
//! bounded.

mod expand;

use std::collections::BTreeMap;

/// Words before an assignment that define its scope.
const MODIFIERS: [&str; 4] = ["export", "override", "private", "unexport"];
/// Directives of makefiles; they do not end a rule.
const DIRECTIVES: [&str; 7] = ["ifeq", "ifneq", "ifdef", "ifndef", "else", "endif", "vpath"];

/// Makefiles that are read together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Makefile {
    rules: Vec<MakeRule>,
    variables: BTreeMap<String, Vec<String>>,
}

/// A rule as it is written, variables included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MakeRule {
    /// The targets; `%` matches any text.
    pub targets: Vec<String>,
    /// What the targets need.
    pub needs: Vec<String>,
    /// The lines of the recipe, without the marks before a command.
    pub recipe: Vec<String>,
}

impl Makefile {
    /// Reads makefiles that share their variables.
    pub fn read<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let mut makefile = Self::default();
        for text in texts {
            makefile.add(text);
        }
        makefile
    }

    /// Returns the rules, in their order.
    #[must_use]
    pub fn rules(&self) -> &[MakeRule] {
        &self.rules
    }

    /// Returns whether a rule has this target by name.
    #[must_use]
    pub fn has_target(&self, target: &str) -> bool {
        self.rules_of(target).next().is_some()
    }

    /// Returns the lines of the target's recipe; without one, those of its prerequisites.
    #[must_use]
    pub fn commands(&self, target: &str) -> Vec<String> {
        let recipe = |target: &str| {
            let rules = self.rules_of(target);
            rules
                .flat_map(|rule| &rule.recipe)
                .cloned()
                .collect::<Vec<String>>()
        };
        let own = recipe(target);
        if !own.is_empty() {
            return own;
        }
        self.rules_of(target)
            .flat_map(|rule| &rule.needs)
            .take(32)
            .flat_map(|need| recipe(need))
            .collect()
    }

    fn rules_of(&self, target: &str) -> impl Iterator<Item = &MakeRule> {
        self.rules
            .iter()
            .filter(move |rule| rule.targets.iter().any(|name| name == target))
    }

    fn add(&mut self, text: &str) {
        let text = text.replace("\\\r\n", " ").replace("\\\n", " ");
        let mut rule: Option<MakeRule> = None;
        let mut is_definition = false;
        for line in text.lines() {
            if is_definition {
                is_definition = !line.trim_start().starts_with("endef");
                continue;
            }
            if let Some(command) = line.strip_prefix('\t') {
                if let Some(rule) = &mut rule {
                    rule.recipe.extend(command_of(command));
                }
                continue;
            }
            let first = line.split_whitespace().next().unwrap_or_default();
            if first.is_empty() || first.starts_with('#') || DIRECTIVES.contains(&first) {
                continue;
            }
            if matches!(first, "define") {
                is_definition = true;
                continue;
            }
            let line = line.trim();
            let line = MODIFIERS.iter().fold(line, |line, word| {
                line.strip_prefix(word)
                    .filter(|rest| rest.starts_with(char::is_whitespace))
                    .map_or(line, str::trim_start)
            });
            if self.assign(line) {
                self.rules.extend(rule.take());
            } else if let Some(next) = self.rule(line) {
                self.rules.extend(rule.replace(next));
            }
        }
        self.rules.extend(rule);
    }

    /// Records the assignment on a line; returns whether it is one.
    fn assign(&mut self, line: &str) -> bool {
        let Some((left, value)) = line.split_once('=') else {
            return false;
        };
        let name = left.trim_end_matches([':', '?', '+', '!']).trim_end();
        let is_weak = left.ends_with('?');
        if name.is_empty() || name.contains(|c: char| c.is_whitespace() || "$:;(){}".contains(c)) {
            return false;
        }
        let value = without_comment(value).trim().to_owned();
        let values = self.variables.entry(name.to_owned()).or_default();
        if !values.contains(&value) && (!is_weak || values.is_empty()) {
            values.push(value);
        }
        true
    }

    /// The rule that a line begins.
    fn rule(&mut self, line: &str) -> Option<MakeRule> {
        let (targets, rest) = split_outside(line, ':')?;
        let rest = rest.strip_prefix(':').unwrap_or(rest);
        if rest.starts_with('=') {
            return None;
        }
        let (needs, command) = match rest.split_once(';') {
            Some((needs, command)) => (needs, Some(command)),
            None => (without_comment(rest), None),
        };
        // A variable for this target alone.
        if needs.contains('=') && self.assign(needs.trim()) {
            return None;
        }
        let words = |text: &str| {
            split_words(text)
                .filter(|word| word != "|")
                .collect::<Vec<_>>()
        };
        let mut targets = words(targets);
        let mut needs = words(needs);
        // `objects: %.o: %.c`
        if let Some((pattern, of_pattern)) =
            split_outside(rest.split(';').next().unwrap_or_default(), ':')
        {
            targets.extend(words(pattern));
            needs = words(of_pattern);
        }
        if let [suffix] = targets.as_slice()
            && let Some((from, to)) = suffix_rule(suffix)
        {
            needs.push(format!("%.{from}"));
            targets = vec![format!("%{to}")];
        }
        Some(MakeRule {
            targets,
            needs,
            recipe: command.and_then(command_of).into_iter().collect(),
        })
    }
}

impl MakeRule {
    /// Returns the text matched by `%` if a pattern of this rule matches the target.
    #[must_use]
    pub fn stem<'t>(&self, target: &'t str) -> Option<&'t str> {
        self.targets.iter().find_map(|pattern| {
            let (start, end) = pattern.split_once('%')?;
            target
                .strip_prefix(start)?
                .strip_suffix(end)
                .filter(|stem| !stem.is_empty())
        })
    }
}

/// Returns a line of a recipe without its prefix characters; `None` without a command.
fn command_of(line: &str) -> Option<String> {
    let command = line.trim().trim_start_matches(['@', '-', '+', ' ']).trim();
    (!command.is_empty() && !command.starts_with('#')).then(|| command.to_owned())
}

fn without_comment(text: &str) -> &str {
    match text.find('#') {
        Some(at) if !text[..at].ends_with('\\') => &text[..at],
        _ => text,
    }
}

/// `.c.o` as the endings that it leads from and to, the latter with its dot.
fn suffix_rule(target: &str) -> Option<(&str, String)> {
    let (from, to) = target.strip_prefix('.')?.split_once('.')?;
    let is_ending =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_ending(from) && is_ending(to)).then(|| (from, format!(".{to}")))
}

/// The parts of a text around a character outside of any `$(…)`.
fn split_outside(text: &str, mark: char) -> Option<(&str, &str)> {
    let mut depth = 0usize;
    let mut before = ' ';
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '{' if before == '$' || depth > 0 => depth += 1,
            ')' | '}' => depth = depth.saturating_sub(1),
            letter if letter == mark && depth == 0 => {
                return Some((&text[..at], &text[at + letter.len_utf8()..]));
            }
            _ => {}
        }
        before = letter;
    }
    None
}

/// Splits a text into words; `$(…)` is one word.
fn split_words(text: &str) -> impl Iterator<Item = String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut depth = 0usize;
    let mut before = ' ';
    for letter in text.chars() {
        match letter {
            '(' | '{' if before == '$' || depth > 0 => depth += 1,
            ')' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if letter.is_whitespace() && depth == 0 {
            words.push(std::mem::take(&mut word));
        } else {
            word.push(letter);
        }
        before = letter;
    }
    words.push(word);
    words.into_iter().filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests;
