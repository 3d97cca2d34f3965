//! Texts for people.

/// Returns the text with the first letter of each word in upper case.
pub fn capitalize(text: &str) -> String {
    let mut out = String::new();
    let mut first = true;
    for c in text.chars() {
        if first {
            out.push(c.to_ascii_uppercase());
        } else {
            out.push(c);
        }
        first = c == ' ';
    }
    out
}
