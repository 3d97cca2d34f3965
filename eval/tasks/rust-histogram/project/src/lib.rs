//! How often words occur.

use std::collections::HashMap;

/// The `n` most frequent words of a text, with how often each occurs.
pub fn top(text: &str, n: usize) -> Vec<(String, usize)> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for word in text.split_whitespace() {
        *counts.entry(word.to_lowercase()).or_default() += 1;
    }
    counts.into_iter().take(n).collect()
}
