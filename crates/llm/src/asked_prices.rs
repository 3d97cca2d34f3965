//! The cost of a call that one of several models may answer: the requested one, or the service's
//! fallbacks.
//!
//! Invariants: the maximum cost is that of the most expensive model, and so is the cost if the answering
//! model is unknown. If one model has no price, the call has none.

use crate::price::Price;

/// The models that may answer a call, the requested one first, each with its price.
pub(crate) struct AskedPrices(Vec<(String, Price)>);

impl AskedPrices {
    /// Creates the list for these models.
    pub(crate) fn new(models: impl IntoIterator<Item = (String, Price)>) -> Self {
        Self(models.into_iter().collect())
    }

    /// The first model without a price.
    pub(crate) fn without_price(&self) -> Option<&str> {
        self.0
            .iter()
            .find(|(_, price)| *price == Price::Unknown)
            .map(|(model, _)| model.as_str())
    }

    /// The maximum cost of this many tokens, in millionths of a dollar.
    pub(crate) fn most(&self, input_tokens: u64, output_tokens: u64) -> Option<u64> {
        self.dearest(input_tokens, output_tokens)
            .map(|(_, cost)| cost)
    }

    /// The model whose price applies if this model answered, and the cost in millionths of a dollar.
    pub(crate) fn price(
        &self,
        answer: &str,
        input_tokens: u64,
        output_tokens: u64,
    ) -> Option<(&str, u64)> {
        match self.0.iter().find(|(model, _)| model == answer) {
            Some((model, price)) => Some((model, price.cost(input_tokens, output_tokens)?)),
            // A service may report a more specific name than the requested one.
            None => self.dearest(input_tokens, output_tokens),
        }
    }

    /// The most expensive model for this many tokens, and its cost.
    fn dearest(&self, input_tokens: u64, output_tokens: u64) -> Option<(&str, u64)> {
        let costs = self
            .0
            .iter()
            .map(|(model, price)| Some((model.as_str(), price.cost(input_tokens, output_tokens)?)));
        costs
            .collect::<Option<Vec<_>>>()?
            .into_iter()
            .max_by_key(|(_, cost)| *cost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(input: u64, output: u64) -> Price {
        Price::PerMillionTokens {
            input: input * 1_000_000,
            output: output * 1_000_000,
        }
    }

    fn prices(models: &[(&str, Price)]) -> AskedPrices {
        AskedPrices::new(
            models
                .iter()
                .map(|(model, price)| ((*model).to_owned(), *price)),
        )
    }

    #[test]
    fn most_expensive_model_depends_on_token_counts() {
        let both = prices(&[("reads-dear", price(5, 1)), ("writes-dear", price(1, 4))]);
        assert_eq!(both.most(10, 1), Some(51));
        assert_eq!(both.most(1, 10), Some(41));
    }

    #[test]
    fn unknown_answering_model_costs_the_most() {
        let both = prices(&[("cheap", price(1, 1)), ("dear", price(9, 9))]);
        assert_eq!(both.price("cheap", 1, 1), Some(("cheap", 2)));
        assert_eq!(both.price("dear", 1, 1), Some(("dear", 18)));
        assert_eq!(both.price("cheap-2026-01-01", 1, 1), Some(("dear", 18)));
        assert_eq!(
            prices(&[("one", price(1, 1))]).price("another name of it", 1, 1),
            Some(("one", 2))
        );
    }

    #[test]
    fn one_without_a_price_leaves_all_without() {
        let some = prices(&[("known", price(1, 1)), ("unknown", Price::Unknown)]);
        assert_eq!(some.without_price(), Some("unknown"));
        assert_eq!(
            (
                some.most(1, 1),
                some.price("unknown", 1, 1),
                some.price("other", 1, 1)
            ),
            (None, None, None)
        );
        assert_eq!(some.price("known", 1, 1), Some(("known", 2)));
        assert_eq!(prices(&[("known", price(1, 1))]).without_price(), None);
    }
}
