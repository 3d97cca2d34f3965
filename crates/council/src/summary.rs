//! What the synthesis sees of the deliberation: bounded in characters, by a rule that favours the last loop.
//!
//! The rule. The last loop has up to one half of the characters. What it leaves is shared by the loops before it, evenly: one that
//! needs less than its share leaves the rest to the others, and what they all leave goes to the last loop. Within a loop, the texts
//! share its room in the same way. A text that does not fit keeps its beginning and its end, half and half, and says between them
//! how much was left out; one whose room would not even hold that is left out as a whole.
//!
//! After each attack stands which seats held and which changed. That is counted, not judged: a seat held where its next text
//! resembles the attacked one at least as much as [`HELD`] says.
//!
//! What holds: never more than the limit, names of pieces and fences aside; everything, where it fits; the same loops give the
//! same pieces.

use std::borrow::Cow;

use crucible_model::Untrusted;

use crate::grammar::LoopState;
use crate::seat::SeatId;
use crate::similarity::Shingles;

/// From this resemblance on a seat held its position.
const HELD: f64 = 0.8;

/// A piece of the deliberation, with the name under which it is shown.
pub(crate) struct Piece {
    pub(crate) name: String,
    pub(crate) text: Untrusted,
}

/// The deliberation in at most `limit` characters of text, and how many characters were left out.
pub(crate) fn summary(loops: &[LoopState], limit: usize) -> (Vec<Piece>, usize) {
    let told: Vec<Vec<Told<'_>>> =
        loops.iter().enumerate().map(|(index, state)| tell(state, loops.get(index + 1))).collect();
    let needs: Vec<usize> = told.iter().map(|told| told.iter().map(|told| told.length).sum()).collect();
    let mut pieces = Vec::new();
    let mut left_out = 0;
    for (told, room) in told.into_iter().zip(share_of_loops(&needs, limit)) {
        let lengths: Vec<usize> = told.iter().map(|told| told.length).collect();
        for (told, room) in told.into_iter().zip(share(&lengths, room)) {
            let (text, missing) = cut(told, room);
            left_out += missing;
            pieces.extend(text);
        }
    }
    (pieces, left_out)
}

/// Something that a loop has to tell.
struct Told<'l> {
    name: String,
    text: Cow<'l, str>,
    /// In characters.
    length: usize,
}

impl<'l> Told<'l> {
    fn new(number: u32, what: &str, text: impl Into<Cow<'l, str>>) -> Self {
        let text = text.into();
        let length = text.chars().count();
        Self { name: format!("loop {number}, {what}"), text, length }
    }
}

/// All that a loop has to tell, in the order in which a reader can follow it.
fn tell<'l>(state: &'l LoopState, next: Option<&LoopState>) -> Vec<Told<'l>> {
    let number = state.number;
    let mut told = Vec::new();
    let mut defended = Vec::new();
    for (seat, position) in &state.positions {
        match state.before_attack.get(seat) {
            Some(before) => {
                told.push(Told::new(number, &format!("{seat} before the attack"), before.as_str()));
                defended.push(Told::new(number, &format!("{seat} after the attack"), position.as_str()));
            }
            None if state.draft.as_ref() == Some(position) => {
                let what = format!("position of {seat}, the draft that the loop ended with");
                told.push(Told::new(number, &what, position.as_str()));
            }
            None => told.push(Told::new(number, &format!("position of {seat}"), position.as_str())),
        }
    }
    told.push(Told::new(number, "attack of the red team", state.critique.as_str()));
    told.extend(defended);
    told.push(Told::new(number, "who held and who changed", outcome(state, next)));
    told
}

/// What became of the positions that a loop's attack met. In a debate the defence tells, elsewhere the next loop.
fn outcome(state: &LoopState, next: Option<&LoopState>) -> String {
    let answers = |seat: &SeatId| next.map(|next| next.positions.get(seat));
    let mut lines = Vec::new();
    for (seat, position) in &state.positions {
        let became = match (state.before_attack.get(seat), answers(seat)) {
            (Some(before), _) => compared(before, position),
            (None, _) if state.targets.contains(seat) => "was attacked and gave no defence",
            (None, _) if !state.targets.is_empty() => "was not attacked",
            (None, Some(Some(answer))) => compared(position, answer),
            (None, Some(None)) => "gave no answer in the next loop",
            (None, None) => "was not asked again after this attack",
        };
        lines.push(format!("{seat} {became}"));
    }
    lines.join("\n")
}

fn compared(attacked: &Untrusted, answer: &Untrusted) -> &'static str {
    let [attacked, answer] = [attacked, answer].map(|text| Shingles::of(text.as_str()));
    if attacked.resemblance(&answer) >= HELD { "held" } else { "changed" }
}

/// The room of each loop.
fn share_of_loops(needs: &[usize], limit: usize) -> Vec<usize> {
    let Some((last, earlier)) = needs.split_last() else { return Vec::new() };
    let half = if earlier.is_empty() { limit } else { limit.div_ceil(2) };
    let mut rooms = share(earlier, limit - half.min(*last));
    rooms.push(limit - rooms.iter().sum::<usize>());
    rooms
}

/// Shares room evenly among what needs so much each; who needs less leaves the rest to the others, the later ones first.
fn share(needs: &[usize], mut room: usize) -> Vec<usize> {
    let mut by_need: Vec<usize> = (0..needs.len()).collect();
    by_need.sort_by_key(|index| needs.get(*index));
    let mut rooms = vec![0; needs.len()];
    let mut left = needs.len();
    for index in by_need {
        if let (Some(need), Some(given)) = (needs.get(index), rooms.get_mut(index)) {
            *given = (room / left).min(*need);
            room -= *given;
        }
        left -= 1;
    }
    rooms
}

/// The text in at most so many characters, nothing where there is no room for any of it; and how many characters are missing.
fn cut(told: Told<'_>, room: usize) -> (Option<Piece>, usize) {
    let Told { name, text, length } = told;
    if length <= room {
        let text = Untrusted::new(text);
        return (Some(Piece { name, text }), 0);
    }
    // The mark is never longer than one that names the whole text.
    let Some(kept) = room.checked_sub(mark(length).chars().count()) else { return (None, length) };
    let missing = length - kept;
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    let beginning = text.get(..start_of(&text, head)).unwrap_or_default();
    let end = text.get(start_of(&text, length - tail)..).unwrap_or_default();
    let text = Untrusted::new(format!("{beginning}{}{end}", mark(missing)));
    (Some(Piece { name, text }), missing)
}

fn mark(missing: usize) -> String {
    format!("\n[… {missing} characters left out …]\n")
}

/// The byte at which the character of this number starts.
fn start_of(text: &str, number: usize) -> usize {
    text.char_indices().nth(number).map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::delta::Positions;
    use crate::seat::CouncilRole;

    const ROLES: [CouncilRole; 4] =
        [CouncilRole::Synthesizer, CouncilRole::DomainExpert, CouncilRole::Pragmatist, CouncilRole::Creative];

    fn positions(texts: &[&str]) -> Positions {
        let seats = SeatId::of_roles(ROLES);
        seats.into_iter().zip(texts).map(|(seat, text)| (seat, Untrusted::new(*text))).collect()
    }

    fn parallel(number: u32, texts: &[&str], critique: &str) -> LoopState {
        LoopState {
            number,
            positions: positions(texts),
            critique: Untrusted::new(critique),
            draft: None,
            targets: Vec::new(),
            before_attack: Positions::new(),
            models: BTreeMap::new(),
            turns: Vec::new(),
        }
    }

    fn shown(loops: &[LoopState], limit: usize) -> String {
        let (pieces, left_out) = summary(loops, limit);
        let pieces = pieces.iter().map(|piece| format!("{}: {}\n", piece.name, piece.text.as_str()));
        pieces.chain([format!("left out: {left_out}")]).collect()
    }

    fn length(pieces: &[Piece]) -> usize {
        pieces.iter().map(|piece| piece.text.as_str().chars().count()).sum()
    }

    #[test]
    fn each_loop_tells_its_positions_its_attack_and_what_became_of_them() {
        let first = [
            "We should split the program into services now.",
            "Keep it whole.",
            "Split the mail part off first, then look.",
        ];
        // Other signs, other words, and one other word out of eight (six of eight pairs are shared: 0.75).
        let second = [
            "we should split the program, into services, now",
            "Split one part off.",
            "Split the mail part off first, then stop.",
        ];
        let loops = [parallel(1, &first, "Who runs it?"), parallel(2, &second, "At night?")];
        insta::assert_snapshot!(shown(&loops, 10_000), @r"
        loop 1, position of synthesizer: We should split the program into services now.
        loop 1, position of domain_expert: Keep it whole.
        loop 1, position of pragmatist: Split the mail part off first, then look.
        loop 1, attack of the red team: Who runs it?
        loop 1, who held and who changed: synthesizer held
        domain_expert changed
        pragmatist changed
        loop 2, position of synthesizer: we should split the program, into services, now
        loop 2, position of domain_expert: Split one part off.
        loop 2, position of pragmatist: Split the mail part off first, then stop.
        loop 2, attack of the red team: At night?
        loop 2, who held and who changed: synthesizer was not asked again after this attack
        domain_expert was not asked again after this attack
        pragmatist was not asked again after this attack
        left out: 0
        ");
    }

    #[test]
    fn a_debate_tells_positions_before_the_attack_and_after_it() {
        let mut debate =
            parallel(1, &["Split it, but only the mail part.", "Keep it whole.", "Wait."], "Weak.");
        debate.before_attack = positions(&["Split it into twenty services."]);
        debate.targets = debate.positions.keys().copied().take(2).collect();
        insta::assert_snapshot!(shown(&[debate], 10_000), @r"
        loop 1, synthesizer before the attack: Split it into twenty services.
        loop 1, position of domain_expert: Keep it whole.
        loop 1, position of pragmatist: Wait.
        loop 1, attack of the red team: Weak.
        loop 1, synthesizer after the attack: Split it, but only the mail part.
        loop 1, who held and who changed: synthesizer changed
        domain_expert was attacked and gave no defence
        pragmatist was not attacked
        left out: 0
        ");
    }

    #[test]
    fn the_draft_that_a_sequential_loop_ended_with_is_named_so() {
        let mut first = parallel(1, &["A first draft.", "A better draft."], "Thin.");
        first.draft = Some(Untrusted::new("A better draft."));
        let second = parallel(2, &["The best draft of all."], "Still thin.");
        insta::assert_snapshot!(shown(&[first, second], 10_000), @r"
        loop 1, position of synthesizer: A first draft.
        loop 1, position of domain_expert, the draft that the loop ended with: A better draft.
        loop 1, attack of the red team: Thin.
        loop 1, who held and who changed: synthesizer changed
        domain_expert gave no answer in the next loop
        loop 2, position of synthesizer: The best draft of all.
        loop 2, attack of the red team: Still thin.
        loop 2, who held and who changed: synthesizer was not asked again after this attack
        left out: 0
        ");
    }

    #[test]
    fn the_last_loop_has_half_and_what_a_loop_does_not_need_goes_to_the_others() {
        assert_eq!(share_of_loops(&[900, 900, 900], 600), [150, 150, 300]);
        assert_eq!(share_of_loops(&[900, 10, 900], 600), [290, 10, 300]);
        assert_eq!(share_of_loops(&[10, 10, 900], 600), [10, 10, 580]);
        assert_eq!(share_of_loops(&[900, 900, 100], 600), [250, 250, 100]);
        assert_eq!(share_of_loops(&[900, 900], 601), [300, 301]);
        assert_eq!(share_of_loops(&[900], 600), [600]);
        assert_eq!(share_of_loops(&[], 600), [0; 0]);
        assert_eq!(share(&[50, 5, 50], 56), [25, 5, 26], "an odd character goes to the later one");
    }

    #[test]
    fn a_cut_text_keeps_both_ends_and_says_how_much_is_missing() {
        let long = format!("beginning {} end", "ä".repeat(1000));
        let (pieces, left_out) = summary(&[parallel(1, &[&long, "short"], "attack")], 300);
        let [cut, short, attack, ..] = &pieces[..] else { panic!("pieces are missing") };
        assert!(cut.text.as_str().starts_with("beginning ä"), "{}", cut.text.as_str());
        assert!(cut.text.as_str().ends_with("ä end"), "{}", cut.text.as_str());
        assert!(cut.text.as_str().contains(&format!("\n[… {left_out} characters left out …]\n")));
        let kept = cut.text.as_str().matches('ä').count() + "beginning  end".chars().count();
        assert_eq!(kept + left_out, long.chars().count());
        assert_eq!((short.text.as_str(), attack.text.as_str()), ("short", "attack"));
    }

    #[test]
    fn the_last_loop_is_whole_where_all_loops_are_too_long_and_it_needs_less_than_half() {
        let long = "word ".repeat(500);
        let last = "The last word of all. ".repeat(10);
        let texts = [long.as_str(), long.as_str()];
        let loops =
            [parallel(1, &texts, &long), parallel(2, &texts, &long), parallel(3, &[&last, &last], "Weak.")];
        let (pieces, left_out) = summary(&loops, 2000);
        let of_last: Vec<&Piece> = pieces.iter().filter(|piece| piece.name.starts_with("loop 3")).collect();
        assert_eq!(of_last.len(), 4);
        assert!(of_last.iter().all(|piece| !piece.text.as_str().contains("left out")));
        assert!(left_out > 0 && length(&pieces) <= 2000);
    }

    fn states() -> impl Strategy<Value = Vec<LoopState>> {
        let text = || prop_oneof!["[a-z äß漢\u{1f600}]{0,80}", "\\PC{0,300}"];
        let state = (prop::collection::vec(text(), 2..=4), text(), prop::collection::vec(text(), 0..=4));
        prop::collection::vec(state, 1..=5).prop_map(|loops| {
            let numbered = (1..).zip(loops).map(|(number, (texts, critique, before))| {
                let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                let before: Vec<&str> = before.iter().map(String::as_str).take(texts.len()).collect();
                let mut state = parallel(number, &texts, &critique);
                state.before_attack = positions(&before);
                state.targets = state.before_attack.keys().copied().collect();
                state
            });
            numbered.collect()
        })
    }

    proptest! {
        #[test]
        fn never_more_than_the_limit_and_everything_where_it_fits(loops in states(), limit in 0usize..4000) {
            let (all, none_missing) = summary(&loops, usize::MAX);
            prop_assert_eq!(none_missing, 0);
            let (pieces, left_out) = summary(&loops, limit);
            prop_assert!(length(&pieces) <= limit);
            let fits = length(&all) <= limit;
            prop_assert_eq!(left_out == 0, fits);
            if fits {
                prop_assert_eq!(pieces.len(), all.len());
            }
            let texts = loops.iter().map(|state| state.positions.len() + state.before_attack.len() + 2);
            prop_assert_eq!(all.len(), texts.sum::<usize>());
        }
    }
}
