//! Model providers, retries, budgets, cassettes.
