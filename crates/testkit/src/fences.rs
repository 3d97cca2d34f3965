//! Reads a message to a model as the model is told to read it: what stands behind a fence, and what stands outside of all fences.
//!
//! What always holds: a fence ends at the line with its own marker and at no other, so whatever its content looks like stays
//! inside; a fence that is left open panics.

/// The blocks of a message in their order, each with its name and its content. The newline before the end of a fence belongs to
/// the fence.
#[must_use]
pub fn fenced_blocks(text: &str) -> Vec<(String, String)> {
    read(text).blocks
}

/// What stands outside of all fences, line by line; the lines of the fences themselves are not part of it.
#[must_use]
pub fn outside_of_fences(text: &str) -> String {
    read(text).outside
}

#[derive(Default)]
struct Message {
    blocks: Vec<(String, String)>,
    outside: String,
}

fn read(text: &str) -> Message {
    let mut message = Message::default();
    // What `lines` would cut off, a carriage return, is content.
    let mut lines = text
        .split_inclusive('\n')
        .map(|line| line.strip_suffix('\n').unwrap_or(line));
    while let Some(line) = lines.next() {
        let opening = line
            .strip_prefix("<<<DATA ")
            .and_then(|rest| rest.rsplit_once(' '));
        let Some((name, marker)) = opening else {
            message.outside.extend([line, "\n"]);
            continue;
        };
        let name = serde_json::from_str(name).expect("the name of a block is a JSON string");
        let end = format!(">>>END {marker}");
        let mut content: Vec<&str> = Vec::new();
        loop {
            let line = lines.next().expect("a fence that is closed");
            if line == end {
                break;
            }
            content.push(line);
        }
        message.blocks.push((name, content.join("\n")));
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_fences_own_marker_ends_it() {
        let text = "ours\n<<<DATA \"a \\\"b\\\"\" 01\none\r\n>>>END 02\n<<<DATA \"c\" 03\n\n>>>END 01\nmore\n<<<DATA \"d\" 04\n>>>END 04\n";
        let expected = [
            (
                "a \"b\"".to_owned(),
                "one\r\n>>>END 02\n<<<DATA \"c\" 03\n".to_owned(),
            ),
            ("d".to_owned(), String::new()),
        ];
        assert_eq!(fenced_blocks(text), expected);
        assert_eq!(outside_of_fences(text), "ours\nmore\n");
    }

    #[test]
    #[should_panic(expected = "a fence that is closed")]
    fn unclosed_fence_panics() {
        let _ = fenced_blocks("<<<DATA \"a\" 01\none\n>>>END 02\n");
    }
}
