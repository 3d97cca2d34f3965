//! Ranks search results by a formula.
//!
//! All values are whole ten-thousandths of a point: a score has four decimals, the parts add up to the
//! score before it is clamped to 0 and 1, and equal scores are exactly equal. The logarithm of the stars
//! is rounded to the nearest ten-thousandth, halves upwards.
//!
//! Invariant: the same repositories, in any order and with repetitions, give the same bytes for the same
//! query and time.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crucible_model::Timestamp;

use crate::artifact::{OwnerType, ScoreBreakdown, SearchItem};
use crate::github::FoundRepo;

const EXACT_NAME: i32 = 4000;
const PARTIAL_NAME: i32 = 2000;
const STARS: i32 = 2000;
const RECENCY: i32 = 1000;
const ORGANIZATION: i32 = 500;
const RELEASES: i32 = 500;
const BUILD_FILES: i32 = 1000;

const STALE: i32 = 2000;
const UNPROVEN: i32 = 1000;
const ARCHIVED: i32 = 1500;
const FORK: i32 = 1000;

/// A score of 1.
const ONE: i32 = 10_000;

const DAY_MILLIS: i64 = 24 * 60 * 60 * 1000;
/// The largest age in days of a recent push.
const RECENT_DAYS: i64 = 90;
/// The age in days above which a push is stale.
const STALE_DAYS: i64 = 730;
/// A repository with fewer stars and no release is unproven.
const FEW_STARS: u64 = 50;

/// Words in a description or a topic that name a build system. `make`, `go` and `node` are missing: they
/// are common words, and such repositories are recognised by their language.
const BUILD_WORDS: [&str; 16] = [
    "autoconf",
    "automake",
    "autotools",
    "cargo",
    "cmake",
    "gnumake",
    "gomod",
    "makefile",
    "meson",
    "ninja",
    "npm",
    "pip",
    "pnpm",
    "poetry",
    "setuptools",
    "yarn",
];

/// Languages, by GitHub's names, that a supported build system builds.
const BUILT_LANGUAGES: [&str; 11] = [
    "C",
    "C++",
    "CMake",
    "Go",
    "JavaScript",
    "M4",
    "Makefile",
    "Meson",
    "Python",
    "Rust",
    "TypeScript",
];

/// Scores and sorts `candidates` without duplicates; the best first, ranks from 1.
///
/// Names are compared without case. If a repository is listed more than once with different facts, the
/// entry with a known release is used, then the one with the later push, then the one with more stars. An
/// empty query matches no name.
#[must_use]
pub fn rank(candidates: &[FoundRepo], query: &str, now: Timestamp) -> Vec<SearchItem> {
    let query = query.to_lowercase();
    let mut scored: Vec<(i32, &FoundRepo, ScoreBreakdown)> = unique(candidates)
        .into_iter()
        .map(|candidate| {
            let points = Points::new(candidate, &query, now);
            (points.sum().clamp(0, ONE), candidate, points.breakdown())
        })
        .collect();
    scored.sort_by(|(left_score, left, _), (right_score, right, _)| {
        right_score
            .cmp(left_score)
            .then_with(|| right.stars.cmp(&left.stars))
            .then_with(|| right.pushed_at.cmp(&left.pushed_at))
            .then_with(|| left.full_name.cmp(&right.full_name))
    });
    (1..)
        .zip(scored)
        .map(|(rank, (score, candidate, breakdown))| item(rank, score, candidate, breakdown))
        .collect()
}

/// Removes duplicates, independent of the input order.
fn unique(candidates: &[FoundRepo]) -> Vec<&FoundRepo> {
    let mut by_name: BTreeMap<String, &FoundRepo> = BTreeMap::new();
    for candidate in candidates {
        match by_name.entry(candidate.full_name.to_lowercase()) {
            Entry::Vacant(place) => {
                place.insert(candidate);
            }
            Entry::Occupied(mut place) => {
                if precedence(candidate) > precedence(place.get()) {
                    place.insert(candidate);
                }
            }
        }
    }
    by_name.into_values().collect()
}

/// The precedence of entries of the same repository; entries with the same precedence are equal in every
/// field.
fn precedence(candidate: &FoundRepo) -> impl Ord + '_ {
    let FoundRepo {
        full_name,
        name,
        description,
        url,
        stars,
        pushed_at,
        owner_type,
        archived,
        fork,
        default_branch,
        language,
        topics,
        has_releases,
    } = candidate;
    let facts = (
        *has_releases,
        *pushed_at,
        *stars,
        *archived,
        *fork,
        *owner_type,
    );
    let words = (
        full_name,
        name,
        description,
        url,
        default_branch,
        language,
        topics,
    );
    (facts, words)
}

/// The parts of one score, in ten-thousandths.
struct Points {
    exact_name: i32,
    partial_name: i32,
    stars: i32,
    recency: i32,
    organization: i32,
    releases: i32,
    build_files: i32,
    penalties: i32,
}

impl Points {
    fn new(candidate: &FoundRepo, query: &str, now: Timestamp) -> Self {
        let name = candidate.name.to_lowercase();
        let exact = !query.is_empty() && name == query;
        let partial = !exact && !query.is_empty() && name.contains(query);
        let age = now
            .unix_millis()
            .saturating_sub(candidate.pushed_at.unix_millis());
        let released = candidate.has_releases == Some(true);
        let penalties = [
            (age > STALE_DAYS * DAY_MILLIS, STALE),
            (!released && candidate.stars < FEW_STARS, UNPROVEN),
            (candidate.archived, ARCHIVED),
            (candidate.fork, FORK),
        ];
        let if_so = |holds: bool, points: i32| if holds { points } else { 0 };
        Self {
            exact_name: if_so(exact, EXACT_NAME),
            partial_name: if_so(partial, PARTIAL_NAME),
            stars: star_points(candidate.stars),
            recency: if_so(age <= RECENT_DAYS * DAY_MILLIS, RECENCY),
            organization: if_so(
                candidate.owner_type == OwnerType::Organization,
                ORGANIZATION,
            ),
            releases: if_so(released, RELEASES),
            build_files: if_so(tells_how_it_is_built(candidate), BUILD_FILES),
            penalties: -penalties
                .into_iter()
                .map(|(holds, points)| if_so(holds, points))
                .sum::<i32>(),
        }
    }

    fn sum(&self) -> i32 {
        self.exact_name
            + self.partial_name
            + self.stars
            + self.recency
            + self.organization
            + self.releases
            + self.build_files
            + self.penalties
    }

    fn breakdown(&self) -> ScoreBreakdown {
        ScoreBreakdown {
            exact_name: decimal(self.exact_name),
            partial_name: decimal(self.partial_name),
            star_score: decimal(self.stars),
            recency: decimal(self.recency),
            verified_owner: decimal(self.organization),
            has_releases: decimal(self.releases),
            build_files: decimal(self.build_files),
            penalties: decimal(self.penalties),
        }
    }
}

/// `log10(stars) / 5`, at most 1, weighted and rounded.
fn star_points(stars: u64) -> i32 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "the logarithm is cut to four decimals afterwards"
    )]
    let share = ((stars.max(1) as f64).log10() / 5.0).min(1.0);
    #[expect(clippy::cast_possible_truncation, reason = "between 0 and the weight")]
    let points = (f64::from(STARS) * share).round() as i32;
    points
}

fn decimal(points: i32) -> f64 {
    f64::from(points) / f64::from(ONE)
}

fn tells_how_it_is_built(candidate: &FoundRepo) -> bool {
    let names_one = |text: &str| {
        let mut words = text.split(|c: char| !c.is_alphanumeric());
        words.any(|word| {
            BUILD_WORDS
                .iter()
                .any(|known| word.eq_ignore_ascii_case(known))
        })
    };
    candidate.language.as_deref().is_some_and(|it| {
        BUILT_LANGUAGES
            .iter()
            .any(|known| it.eq_ignore_ascii_case(known))
    }) || names_one(&candidate.description)
        || candidate.topics.iter().any(|topic| names_one(topic))
}

fn item(
    rank: u64,
    score: i32,
    candidate: &FoundRepo,
    score_breakdown: ScoreBreakdown,
) -> SearchItem {
    SearchItem {
        rank,
        score: decimal(score),
        full_name: candidate.full_name.clone(),
        name: candidate.name.clone(),
        description: candidate.description.clone(),
        url: candidate.url.clone(),
        stars: candidate.stars,
        pushed_at: candidate.pushed_at,
        owner_type: candidate.owner_type,
        has_releases: candidate.has_releases == Some(true),
        archived: candidate.archived,
        fork: candidate.fork,
        default_branch: candidate.default_branch.clone(),
        score_breakdown,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    fn now() -> Timestamp {
        "2026-03-01T12:00:00Z".parse().unwrap()
    }

    fn days_ago(days: u32) -> Timestamp {
        before(DAY * days)
    }

    fn before(age: Duration) -> Timestamp {
        let millis = u64::try_from(now().unix_millis()).unwrap();
        Timestamp::from_unix(Duration::from_millis(millis) - age)
    }

    /// A repository that scores only for its 50 stars and has no penalty.
    fn plain(full_name: &str) -> FoundRepo {
        FoundRepo {
            full_name: full_name.to_owned(),
            name: full_name.rsplit('/').next().unwrap().to_owned(),
            description: String::new(),
            url: format!("https://example.org/{full_name}"),
            stars: 50,
            pushed_at: days_ago(365),
            owner_type: OwnerType::User,
            archived: false,
            fork: false,
            default_branch: "main".to_owned(),
            language: None,
            topics: Vec::new(),
            has_releases: Some(false),
        }
    }

    fn rank_one(candidate: FoundRepo, query: &str) -> SearchItem {
        let mut items = rank(&[candidate], query, now());
        assert_eq!(items.len(), 1);
        items.remove(0)
    }

    fn order(candidates: &[FoundRepo], query: &str) -> Vec<String> {
        rank(candidates, query, now())
            .into_iter()
            .map(|item| item.full_name)
            .collect()
    }

    #[test]
    fn an_exact_name_counts_040_whatever_its_case() {
        for query in ["ripgrep", "RipGrep"] {
            let item = rank_one(plain("a/ripGREP"), query);
            assert_eq!(
                (
                    item.score_breakdown.exact_name,
                    item.score_breakdown.partial_name
                ),
                (0.40, 0.0)
            );
        }
        assert_eq!(
            rank_one(plain("a/ÄPFEL"), "äpfel")
                .score_breakdown
                .exact_name,
            0.40
        );
    }

    #[test]
    fn partial_name_counts_020_without_exact_match() {
        let item = rank_one(plain("a/ripgrep-all"), "ripgrep");
        assert_eq!(
            (
                item.score_breakdown.exact_name,
                item.score_breakdown.partial_name
            ),
            (0.0, 0.20)
        );
        let other = rank_one(plain("ripgrep/x"), "ripgrep");
        assert_eq!(
            (
                other.score_breakdown.exact_name,
                other.score_breakdown.partial_name
            ),
            (0.0, 0.0)
        );
    }

    #[test]
    fn an_empty_query_matches_no_name() {
        let item = rank_one(plain("a/b"), "");
        assert_eq!(
            (
                item.score_breakdown.exact_name,
                item.score_breakdown.partial_name
            ),
            (0.0, 0.0)
        );
    }

    #[test]
    fn stars_count_by_their_logarithm() {
        let stars = |stars| {
            rank_one(
                FoundRepo {
                    stars,
                    ..plain("a/b")
                },
                "q",
            )
            .score_breakdown
            .star_score
        };
        assert_eq!(stars(100_000), 0.20 * 1.0);
        assert_eq!(stars(u64::MAX), 0.20);
        assert_eq!(stars(100), 0.08, "0.4 of 0.20");
        assert_eq!(stars(1), 0.0);
        assert_eq!(stars(0), 0.0);
        assert_eq!(stars(50), 0.068, "0.2 * log10(50) / 5 = 0.067959");
    }

    #[test]
    fn star_rounding_is_unambiguous() {
        for stars in 1..=100_000_u32 {
            let points = 400.0 * f64::from(stars).log10();
            assert!((points.fract() - 0.5).abs() > 1e-9, "{stars}");
        }
    }

    #[test]
    fn push_within_90_days_is_recent_to_millisecond() {
        let recency = |pushed_at| {
            rank_one(
                FoundRepo {
                    pushed_at,
                    ..plain("a/b")
                },
                "q",
            )
            .score_breakdown
            .recency
        };
        let millisecond = Duration::from_millis(1);
        assert_eq!(recency(days_ago(30)), 0.10);
        assert_eq!(recency(days_ago(100)), 0.0);
        assert_eq!(recency(days_ago(90)), 0.10);
        assert_eq!(recency(before(DAY * 90 + millisecond)), 0.0);
        assert_eq!(
            recency("2027-01-01T00:00:00Z".parse().unwrap()),
            0.10,
            "a push of the future is recent"
        );
    }

    #[test]
    fn an_organisation_counts_005() {
        let owner = |owner_type| {
            rank_one(
                FoundRepo {
                    owner_type,
                    ..plain("a/b")
                },
                "q",
            )
            .score_breakdown
            .verified_owner
        };
        assert_eq!(
            (owner(OwnerType::Organization), owner(OwnerType::User)),
            (0.05, 0.0)
        );
    }

    #[test]
    fn release_counts_005_and_unknown_counts_zero() {
        let of = |has_releases| {
            rank_one(
                FoundRepo {
                    has_releases,
                    stars: 49,
                    ..plain("a/b")
                },
                "q",
            )
        };
        let released = of(Some(true));
        assert_eq!(
            (
                released.score_breakdown.has_releases,
                released.score_breakdown.penalties
            ),
            (0.05, 0.0)
        );
        assert!(released.has_releases);
        for none in [Some(false), None] {
            let item = of(none);
            assert_eq!(
                (
                    item.score_breakdown.has_releases,
                    item.score_breakdown.penalties
                ),
                (0.0, -0.10)
            );
            assert!(!item.has_releases);
        }
    }

    #[test]
    fn build_system_is_found_by_word_or_language() {
        let counts = |description: &str, topics: &[&str], language: Option<&str>| {
            let candidate = FoundRepo {
                description: description.to_owned(),
                topics: topics.iter().map(ToString::to_string).collect(),
                language: language.map(str::to_owned),
                ..plain("a/b")
            };
            rank_one(candidate, "q").score_breakdown.build_files
        };
        assert_eq!(counts("Builds with CMake.", &[], None), 0.10);
        assert_eq!(counts("", &["cargo-plugin"], None), 0.10);
        assert_eq!(counts("", &[], Some("rust")), 0.10);
        assert_eq!(counts("", &[], Some("C++")), 0.10);
        for nothing in [
            "an escargot recipe",
            "makes you go",
            "pipes",
            "",
            "käse,npmäh",
        ] {
            assert_eq!(
                counts(nothing, &["go", "escargot"], Some("Haskell")),
                0.0,
                "{nothing}"
            );
        }
    }

    #[test]
    fn penalties_are_subtracted_each_and_together() {
        let of = |change: &dyn Fn(&mut FoundRepo)| {
            let mut candidate = plain("a/b");
            change(&mut candidate);
            rank_one(candidate, "q").score_breakdown.penalties
        };
        assert_eq!(of(&|_| ()), 0.0);
        assert!(
            of(&|_| ()).is_sign_positive(),
            "no negative zero in a document"
        );
        assert_eq!(of(&|it| it.pushed_at = days_ago(731)), -0.20);
        assert_eq!(of(&|it| it.pushed_at = days_ago(730)), 0.0);
        assert_eq!(
            of(&|it| it.pushed_at = before(DAY * 730 + Duration::from_millis(1))),
            -0.20
        );
        assert_eq!(of(&|it| it.archived = true), -0.15);
        assert_eq!(of(&|it| it.fork = true), -0.10);
        assert_eq!(of(&|it| it.stars = 49), -0.10);
        let all = of(&|it| {
            (it.archived, it.fork, it.stars, it.pushed_at) = (true, true, 0, days_ago(800));
        });
        assert_eq!(all, -0.55);
    }

    #[test]
    fn score_is_clamped_to_0_and_1() {
        let worst = FoundRepo {
            archived: true,
            fork: true,
            stars: 0,
            pushed_at: days_ago(800),
            ..plain("a/b")
        };
        assert_eq!(rank_one(worst, "q").score, 0.0);
        let best = FoundRepo {
            stars: 1_000_000,
            pushed_at: now(),
            owner_type: OwnerType::Organization,
            has_releases: Some(true),
            language: Some("Rust".to_owned()),
            ..plain("a/q")
        };
        let best = rank_one(best, "q");
        assert_eq!(
            best.score, 0.9,
            "an exact name is not a partial one, so the weights reach 0.90"
        );
        assert!(!best.score.to_string().contains("00000"));
    }

    #[test]
    fn more_stars_win_a_tie() {
        let few = FoundRepo {
            stars: 100_000,
            ..plain("a/z")
        };
        let many = FoundRepo {
            stars: 200_000,
            ..plain("b/z")
        };
        assert_eq!(order(&[few, many], "q"), ["b/z", "a/z"]);
    }

    #[test]
    fn the_later_push_wins_when_stars_are_equal() {
        let early = FoundRepo {
            pushed_at: days_ago(300),
            ..plain("a/z")
        };
        let late = FoundRepo {
            pushed_at: days_ago(299),
            ..plain("b/z")
        };
        assert_eq!(order(&[early, late], "q"), ["b/z", "a/z"]);
    }

    #[test]
    fn names_decide_last() {
        assert_eq!(
            order(&[plain("b/z"), plain("a/z"), plain("B/y")], "q"),
            ["B/y", "a/z", "b/z"]
        );
    }

    #[test]
    fn scores_equal_to_four_decimals_tie() {
        let fewer = FoundRepo {
            stars: 90_001,
            ..plain("a/z")
        };
        let more = FoundRepo {
            stars: 90_002,
            ..plain("b/z")
        };
        let items = rank(&[fewer, more], "q", now());
        assert_eq!(items[0].score, items[1].score);
        assert_eq!(items[0].full_name, "b/z");
    }

    #[test]
    fn duplicate_repository_uses_newest_facts() {
        let old = FoundRepo {
            stars: 70,
            ..plain("Owner/Tool")
        };
        let new = FoundRepo {
            stars: 80,
            pushed_at: days_ago(3),
            ..plain("owner/tool")
        };
        let both = rank(&[old.clone(), new.clone(), old.clone()], "q", now());
        assert_eq!(both.len(), 1);
        assert_eq!((both[0].stars, both[0].rank), (80, 1));
        assert_eq!(rank(&[new, old], "q", now()), both);
    }

    #[test]
    fn a_known_order_with_its_scores() {
        let ripgrep = FoundRepo {
            stars: 48_000,
            pushed_at: days_ago(10),
            has_releases: Some(true),
            language: Some("Rust".to_owned()),
            ..plain("one/ripgrep")
        };
        let all = FoundRepo {
            stars: 7_000,
            language: Some("Rust".to_owned()),
            ..plain("two/ripgrep-all")
        };
        let fork = FoundRepo {
            fork: true,
            stars: 3,
            pushed_at: days_ago(900),
            ..plain("three/ripgrep")
        };
        let other = FoundRepo {
            owner_type: OwnerType::Organization,
            stars: 12_000,
            ..plain("four/grep")
        };
        let items = rank(&[other, fork, all, ripgrep], "ripgrep", now());
        let table: Vec<String> = items
            .iter()
            .map(|item| format!("{} {} {}", item.rank, item.full_name, item.score))
            .collect();
        assert_eq!(
            table,
            [
                "1 one/ripgrep 0.8372",
                "2 two/ripgrep-all 0.4538",
                "3 four/grep 0.2132",
                "4 three/ripgrep 0.0191"
            ]
        );
    }

    fn candidates() -> impl Strategy<Value = Vec<FoundRepo>> {
        let name = prop_oneof![
            Just("a/tool"),
            Just("A/Tool"),
            Just("b/tool"),
            Just("b/toolbox"),
            Just("c/x")
        ];
        let stars = prop_oneof![0_u64..60, 99_990_u64..200_000];
        let flags = any::<(bool, bool, bool, Option<bool>)>();
        let words = prop_oneof![Just(""), Just("cmake"), Just("a tool")];
        let one = (name, stars, 0_u32..800, flags, words).prop_map(
            |(name, stars, days, flags, words)| {
                let (archived, fork, organization, has_releases) = flags;
                let owner_type = if organization {
                    OwnerType::Organization
                } else {
                    OwnerType::User
                };
                let description = words.to_owned();
                let pushed_at = days_ago(days);
                FoundRepo {
                    stars,
                    pushed_at,
                    archived,
                    fork,
                    has_releases,
                    owner_type,
                    description,
                    ..plain(name)
                }
            },
        );
        proptest::collection::vec(one, 0..40)
    }

    mod properties {
        use super::*;

        proptest! {
            #[test]
            fn ranking_ignores_order_and_duplicates(
                (given, mut permuted, twice) in candidates().prop_flat_map(|given_found_repos| {
                    (Just(given_found_repos.clone()), Just(given_found_repos.clone()).prop_shuffle(), proptest::sample::subsequence(given_found_repos.clone(), 0..=given_found_repos.len()))
                }),
            ) {
                permuted.extend(twice);
                let bytes = |candidates: &[FoundRepo]| serde_json::to_string(&rank(candidates, "tool", now())).unwrap();
                prop_assert_eq!(bytes(&given), bytes(&permuted));
            }

            #[test]
            fn a_breakdown_adds_up_to_its_score(given in candidates()) {
                for item in rank(&given, "tool", now()) {
                    let ScoreBreakdown {
                        exact_name, partial_name, star_score, recency, verified_owner, has_releases, build_files, penalties,
                    } = item.score_breakdown;
                    let parts = [exact_name, partial_name, star_score, recency, verified_owner, has_releases, build_files, penalties];
                    prop_assert!(parts[..7].iter().all(|part| *part >= 0.0) && penalties <= 0.0);
                    prop_assert!(parts.iter().all(|part| *part != 0.0 || part.is_sign_positive()));
                    let sum: f64 = parts.iter().sum();
                    prop_assert!((sum.clamp(0.0, 1.0) - item.score).abs() < 1e-9);
                    prop_assert_eq!((item.score * 10_000.0).round() / 10_000.0, item.score);
                }
            }
        }
    }
}
