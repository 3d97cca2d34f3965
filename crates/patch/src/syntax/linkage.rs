//! The lines by which a C header is read by C++, too.
//!
//! `extern "C" {` and its `}` stand in two blocks of the preprocessor, and the grammar of C wants a brace closed where it was
//! opened. They say nothing to C, so they are blanked where the file cannot be parsed otherwise.

/// Returns the text with blanks of the same length in place of such blocks; `None` without any. A block that holds anything else
/// stays.
pub(super) fn without_linkage(text: &str) -> Option<String> {
    if !text.contains("__cplusplus") {
        return None;
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut out = String::with_capacity(text.len());
    let mut has_blanked = false;
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let rest = lines.get(at + 1..).unwrap_or_default();
        let end = rest
            .iter()
            .position(|line| directive(line) == Some("endif"));
        let inside = end
            .and_then(|end| rest.get(..end))
            .filter(|inside| is_for_cplusplus(line) && inside.iter().all(|line| is_linkage(line)));
        match inside {
            Some(inside) => {
                has_blanked = true;
                let block = lines.get(at..at + inside.len() + 2).unwrap_or_default();
                for byte in block.iter().flat_map(|line| line.bytes()) {
                    out.push(if byte == b'\n' { '\n' } else { ' ' });
                }
                at += inside.len() + 2;
            }
            None => {
                out.push_str(line);
                at += 1;
            }
        }
    }
    has_blanked.then_some(out)
}

/// The name of a line's directive.
fn directive(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start();
    rest.split(|c: char| !c.is_alphanumeric()).next()
}

fn is_for_cplusplus(line: &str) -> bool {
    let words: String = line.split_whitespace().collect();
    matches!(
        words.as_str(),
        "#ifdef__cplusplus" | "#ifdefined(__cplusplus)" | "#ifdefined__cplusplus"
    )
}

fn is_linkage(line: &str) -> bool {
    let words: String = line.split_whitespace().collect();
    let comment = |words: &str| {
        words.starts_with("/*") && words.ends_with("*/") && words.matches("*/").count() == 1
    };
    let code = words.split("/*").next().unwrap_or_default();
    let rest = words.get(code.len()..).unwrap_or_default();
    let is_plain = matches!(code, "" | "extern\"C\"{" | "extern\"C\"" | "{" | "}" | "};");
    is_plain && (rest.is_empty() || comment(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linkage_lines_are_blanked_in_place() {
        let header = "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\nint f(void);\n\n#ifdef __cplusplus\n} /* extern \"C\" */\n#endif\n";
        let blanked = without_linkage(header).unwrap();
        assert_eq!(blanked.len(), header.len());
        assert_eq!(blanked.trim(), "int f(void);");
        assert_eq!(blanked.matches('\n').count(), header.matches('\n').count());
    }

    #[test]
    fn code_for_cplusplus_stays() {
        for header in [
            "#ifdef __cplusplus\nint f() { return 1; }\n#endif\n",
            "#ifdef __cplusplus\nextern \"C\" { /* a */ int g(); /* b */\n#endif\n",
            "#ifdef __cplusplus\n} int g() { return 1;\n#endif\n",
            "#ifdef OTHER /* __cplusplus */\nextern \"C\" {\n#endif\n",
            "#ifdef __cplusplus\nextern \"C\" {\n",
        ] {
            assert_eq!(without_linkage(header), None, "{header}");
        }
    }
}
