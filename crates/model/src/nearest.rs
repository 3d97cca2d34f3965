//! Finds existing names that are similar to a requested one.

use similar::{Algorithm, capture_diff_slices, diff_ratio};

/// The most names of a directory that callers compare.
pub const MAX_NAMES: usize = 2_000;

/// The most names that are suggested.
pub const MAX_SUGGESTIONS: usize = 5;

/// The similarity from which a name is suggested.
const ALIKE: f32 = 0.6;

/// Returns the names that are similar to the requested one, ignoring case: at most [`MAX_SUGGESTIONS`], the most similar
/// one first.
#[must_use]
pub fn nearest<'a>(requested: &str, current_names: &[&'a str]) -> Vec<&'a str> {
    let letters = |name: &str| {
        name.to_lowercase()
            .chars()
            .map(u32::from)
            .collect::<Vec<_>>()
    };
    let request = letters(requested);
    let mut alike: Vec<(usize, f32)> = current_names
        .iter()
        .map(|name| likeness(&request, &letters(name)))
        .enumerate()
        .filter(|(_, likeness)| *likeness >= ALIKE)
        .collect();
    alike.sort_by(|a, b| b.1.total_cmp(&a.1));
    alike
        .iter()
        .take(MAX_SUGGESTIONS)
        .filter_map(|(at, _)| current_names.get(*at).copied())
        .collect()
}

/// The share of letters that two words have in common, in the same order: 1 if they are equal.
fn likeness(one: &[u32], other: &[u32]) -> f32 {
    let (shorter, both) = (one.len().min(other.len()), one.len() + other.len());
    // Most names of a large directory are excluded by their length alone.
    #[expect(
        clippy::cast_precision_loss,
        reason = "lengths of names, far below 2^24"
    )]
    let most = if both == 0 {
        1.0
    } else {
        2.0 * shorter as f32 / both as f32
    };
    if most < ALIKE {
        return most;
    }
    diff_ratio(
        &capture_diff_slices(Algorithm::Myers, one, other),
        one.len(),
        other.len(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_suggested_ignoring_case() {
        let current_names = ["Export-Date", "export-data", "zebra"];
        assert_eq!(
            nearest("EXPROT-DATA", &current_names),
            ["export-data", "Export-Date"]
        );
        assert_eq!(nearest("zebras", &current_names), ["zebra"]);
        assert!(nearest("q", &current_names).is_empty());
        let many: Vec<String> = (0..30).map(|number| format!("many-{number:02}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(nearest("many-x", &many).len(), MAX_SUGGESTIONS);
    }
}
