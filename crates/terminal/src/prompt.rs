//! Questions to the user: written to standard error, answered by a line on standard input.
//!
//! The end of the input, and an input that cannot be read, count as no answer.

use crucible_model::one_line;

use crate::Output;
use crate::input::{self, Line};

/// The longest accepted line, in bytes.
const MAX_LINE: usize = 4096;

/// Asks until a valid line is entered; returns nothing at the end of the input. Space around an answer is
/// ignored.
pub async fn ask(output: &Output, question: &str) -> Option<String> {
    loop {
        output.question(&one_line(question));
        match input::line(MAX_LINE).await {
            Ok(Line::Text(answer)) => return Some(answer.trim().to_owned()),
            Ok(Line::TooLong(_)) => output.remark(&format!("Write at most {MAX_LINE} bytes.")),
            Ok(Line::NotText) => output.remark("Write UTF-8 text."),
            Ok(Line::End) | Err(_) => return None,
        }
    }
}

/// Asks for a number from 1 to `most`; returns nothing at the end of the input.
pub async fn ask_number(output: &Output, question: &str, most: usize) -> Option<usize> {
    loop {
        let answer = ask(output, &format!("{question} [1-{most}]")).await?;
        match answer.parse::<usize>() {
            Ok(number) if (1..=most).contains(&number) => return Some(number),
            Ok(_) | Err(_) => output.remark(&format!("Write a number from 1 to {most}.")),
        }
    }
}

/// Asks for yes or no; anything but yes means no.
pub async fn confirm(output: &Output, question: &str) -> bool {
    let answer = ask(output, &format!("{question} [y/N]")).await;
    let answer = answer.unwrap_or_default().to_lowercase();
    matches!(answer.as_str(), "y" | "yes")
}
