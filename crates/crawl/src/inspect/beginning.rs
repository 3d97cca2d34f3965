//! Reads the beginning of a file without its secrets, for a model or a person.

use crucible_model::SECRET_REACH;
use crucible_repo::{SampleExtent, SampledFile};
use crucible_secrets::Scanner;

/// How far to read beyond a cut, so that a secret which the cut splits is still recognised: it may begin
/// slightly before its keyword, which decides within its reach.
const LOOK_AHEAD: usize = 2 * SECRET_REACH;

/// The redacted beginning of a file.
pub(super) struct Beginning {
    /// The redacted text.
    pub(super) text: String,
    /// Whether it is the whole file.
    pub(super) extent: SampleExtent,
    /// The number of secrets that were replaced.
    pub(super) secrets: usize,
}

/// At most `characters` and `bytes` of a file. Text so close to the end of the read part that a secret
/// could be missed is left out.
pub(super) fn beginning(file: &SampledFile, characters: usize, bytes: usize) -> Beginning {
    let text = file.content.as_str();
    let requested = cut_at(text, characters, bytes);
    let seen = text.ceil_char_boundary(requested.saturating_add(LOOK_AHEAD));
    let judged = match file.extent {
        SampleExtent::Beginning if seen == text.len() => text.len().saturating_sub(LOOK_AHEAD),
        _ => text.len(),
    };
    let end = text.floor_char_boundary(requested.min(judged));

    let mut content = String::with_capacity(end);
    let mut from = 0;
    let mut secrets = 0;
    for secret in Scanner::builtin().scan(&text.as_bytes()[..seen]) {
        let start = text.floor_char_boundary(secret.range.start);
        if start >= end {
            break;
        }
        secrets += 1;
        content.push_str(&text[from.min(start)..start]);
        content.push_str(&format!("[secret:{}]", secret.rule.as_str()));
        from = text.ceil_char_boundary(secret.range.end);
    }
    content.push_str(&text[from.min(end)..end]);
    // A replacement may be longer than the secret.
    content.truncate(cut_at(&content, characters, bytes));
    let is_whole = end == text.len() && file.extent == SampleExtent::Whole;
    Beginning {
        text: content,
        extent: if is_whole {
            SampleExtent::Whole
        } else {
            SampleExtent::Beginning
        },
        secrets,
    }
}

/// The position at which a text is cut to this many whole characters and bytes.
fn cut_at(text: &str, characters: usize, bytes: usize) -> usize {
    let end = text
        .char_indices()
        .nth(characters)
        .map_or(text.len(), |(index, _)| index);
    text.floor_char_boundary(end.min(bytes))
}

#[cfg(test)]
mod tests {
    use crucible_repo::FileKind;

    use super::*;

    const KEY: &str = concat!("AKIA", "Q7RX2MPL4ZTW6NCB");

    fn file(content: &str, extent: SampleExtent) -> SampledFile {
        let total_bytes = content.len() as u64;
        SampledFile {
            path: "README.md".to_owned(),
            kind: FileKind::Readme,
            content: content.to_owned(),
            total_bytes,
            extent,
        }
    }

    #[test]
    fn whole_characters_are_kept_up_to_either_limit() {
        let text = "aé漢😀".repeat(10);
        let of = |characters, bytes| {
            beginning(&file(&text, SampleExtent::Whole), characters, bytes).text
        };
        assert_eq!(of(6, 4000), "aé漢😀aé");
        assert_eq!(of(4000, 5), "aé");
        assert_eq!(of(4000, 4000), text);
    }

    #[test]
    fn secret_split_by_cut_is_removed() {
        for lead in 0..60 {
            let text = format!("{}\nkey = {KEY}\n{}", "x".repeat(lead), "y ".repeat(3000));
            for extent in [SampleExtent::Whole, SampleExtent::Beginning] {
                let shown = beginning(&file(&text, extent), 4000, 50);
                assert!(!shown.text.contains("AKIA"), "{lead}: {}", shown.text);
                assert!(shown.text.len() <= 50);
            }
        }
    }

    #[test]
    fn text_near_sample_end_is_dropped() {
        // The sample ends in the middle of a key, which cannot be recognised.
        let text = format!("{}\nkey = {}", "word ".repeat(1000), &KEY[..15]);
        let shown = beginning(&file(&text, SampleExtent::Beginning), 100_000, 100_000);
        assert_eq!(shown.extent, SampleExtent::Beginning);
        assert!(
            !shown.text.contains("AKIA") && shown.text.len() > 2900,
            "{}",
            shown.text.len()
        );
        assert_eq!(
            beginning(&file("short", SampleExtent::Beginning), 9, 9).text,
            ""
        );
    }

    #[test]
    fn endless_private_key_is_redacted() {
        let text = format!(
            "a\n-----BEGIN RSA {}-----\n{}",
            "PRIVATE KEY",
            "hxS63hbOZEpWQlIgVcPdHrs11/qp81xo70xHkLK6vDn6r/mEgRPXd+JN43rzctim\n".repeat(500)
        );
        let shown = beginning(&file(&text, SampleExtent::Whole), 4000, 4000);
        assert_eq!(
            (shown.text.as_str(), shown.secrets),
            ("a\n[secret:private-key-block]", 1)
        );
    }
}
