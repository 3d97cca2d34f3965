//! Token prices from the configuration, each with a date and a source.
//!
//! Nothing is guessed: a model that is not in the table has no price, and a cost limit then refuses it. A
//! cost computed from a price is an estimate; a cost that the provider reports takes precedence.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The price of a model's tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Price {
    /// Not configured.
    Unknown,
    /// Millionths of a US dollar per million tokens.
    PerMillionTokens {
        /// Input tokens.
        input: u64,
        /// Output tokens.
        output: u64,
    },
}

impl Price {
    /// Free of charge.
    pub const NOTHING: Self = Self::PerMillionTokens {
        input: 0,
        output: 0,
    };

    /// The cost in millionths of a dollar, rounded up; none if the price is unknown.
    #[must_use]
    pub fn cost(self, input_tokens: u64, output_tokens: u64) -> Option<u64> {
        match self {
            Self::Unknown => None,
            Self::PerMillionTokens { input, output } => {
                let total = u128::from(input) * u128::from(input_tokens)
                    + u128::from(output) * u128::from(output_tokens);
                Some(u64::try_from(total.div_ceil(1_000_000)).unwrap_or(u64::MAX))
            }
        }
    }
}

/// Converts dollars to millionths, rounded up, so that no positive amount becomes zero. For a price in
/// dollars per million tokens, the result is a value of [`Price::PerMillionTokens`].
///
/// None if it is not a plausible amount: negative, not a number, or at least a thousand million dollars.
#[must_use]
pub fn micro_dollars(dollars: f64) -> Option<u64> {
    // The error of a binary fraction must not round the value up by one.
    let millionths = (dollars * 1e6 * (1.0 - 4.0 * f64::EPSILON)).ceil();
    (dollars >= 0.0 && millionths < 1e15).then_some(millionths as u64)
}

/// A price with its source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedPrice {
    /// The price.
    pub price: Price,
    /// The day it was looked up, as `YYYY-MM-DD`.
    pub date: String,
    /// Where.
    pub source: String,
}

/// The prices of models, by `provider/model`. A name that ends in `*` matches every name with this
/// prefix; the longest match applies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PriceTable(BTreeMap<String, ListedPrice>);

impl PriceTable {
    /// Creates a table with these lines.
    #[must_use]
    pub fn new(lines: BTreeMap<String, ListedPrice>) -> Self {
        Self(lines)
    }

    /// The price of a model.
    #[must_use]
    pub fn price(&self, provider: &str, model: &str) -> Price {
        self.line(provider, model)
            .map_or(Price::Unknown, |line| line.price)
    }

    /// The table line for a model.
    #[must_use]
    pub fn line(&self, provider: &str, model: &str) -> Option<&ListedPrice> {
        let name = format!("{provider}/{model}");
        self.0.get(&name).or_else(|| {
            let fits = |pattern: &str| {
                pattern
                    .strip_suffix('*')
                    .is_some_and(|start| name.starts_with(start))
            };
            let lines = self.0.iter().filter(|(pattern, _)| fits(pattern));
            lines
                .max_by_key(|(pattern, _)| pattern.len())
                .map(|(_, line)| line)
        })
    }
}

/// Returns millionths of a dollar as text in dollars, with at least two decimals and no zeros after them.
#[must_use]
pub fn dollars(millionths: u64) -> String {
    let text = format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000);
    let kept_len = text.trim_end_matches('0').len().max(text.len() - 4);
    format!("${}", text.get(..kept_len).unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(input: u64) -> ListedPrice {
        ListedPrice {
            price: Price::PerMillionTokens { input, output: 0 },
            date: "2026-01-01".to_owned(),
            source: "the provider's page".to_owned(),
        }
    }

    #[test]
    fn price_lookup_prefers_exact_then_longest_prefix() {
        let table = PriceTable::new(BTreeMap::from([
            ("openai/gpt-4.1".to_owned(), line(1)),
            ("openai/gpt-4*".to_owned(), line(2)),
            ("openai/*".to_owned(), line(3)),
        ]));
        let input = |provider, model| match table.price(provider, model) {
            Price::PerMillionTokens { input, .. } => input,
            Price::Unknown => 0,
        };
        assert_eq!(input("openai", "gpt-4.1"), 1);
        assert_eq!(input("openai", "gpt-4o"), 2);
        assert_eq!(input("openai", "o3"), 3);
        assert_eq!(input("anthropic", "gpt-4.1"), 0);
    }

    #[test]
    fn dollars_become_millionths_rounded_up() {
        for (dollars, micro) in [
            (0.0, Some(0)),
            (-0.0, Some(0)),
            (1e-300, Some(1)),
            (0.000_001, Some(1)),
            (0.000_014, Some(14)),
            (0.000_014_1, Some(15)),
            (1.1, Some(1_100_000)),
            (123_456.789_012, Some(123_456_789_012)),
            (-0.01, None),
            (f64::NAN, None),
            (1e9, None),
            (f64::INFINITY, None),
        ] {
            assert_eq!(micro_dollars(dollars), micro, "{dollars}");
        }
    }

    mod properties {
        use super::*;

        proptest! {
            /// Every amount of whole millionths survives being written as dollars.
            #[test]
            fn written_dollar_amount_is_read_exactly(micro in 0u64..1_000_000_000_000) {
                let written = format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000);
                prop_assert_eq!(micro_dollars(written.parse().unwrap()), Some(micro));
            }
        }
    }

    #[test]
    fn a_cost_is_rounded_up_and_never_wraps() {
        let price = Price::PerMillionTokens {
            input: 1,
            output: u64::MAX,
        };
        assert_eq!(price.cost(1, 0), Some(1));
        assert_eq!(price.cost(0, u64::MAX), Some(u64::MAX));
        assert_eq!(Price::Unknown.cost(5, 5), None);
    }

    #[test]
    fn dollars_keep_every_digit_and_two_at_least() {
        let lines = [0, 1, 50_000, 3_000_000, 15_500_000, 1_234_567].map(dollars);
        assert_eq!(
            lines,
            [
                "$0.00",
                "$0.000001",
                "$0.05",
                "$3.00",
                "$15.50",
                "$1.234567"
            ]
        );
    }
}
