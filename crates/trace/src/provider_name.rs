//! The names that the conventions give to providers.

/// The name of a provider in `gen_ai.provider.name`; a provider without a name there keeps its own.
pub(crate) fn provider_name(provider: &str) -> &str {
    match provider {
        "anthropic" | "claude-cli" => "anthropic",
        "openai" | "codex-cli" => "openai",
        "gemini-cli" => "gcp.gemini",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_have_the_name_of_their_vendor() {
        assert_eq!(provider_name("claude-cli"), "anthropic");
        assert_eq!(provider_name("gateway"), "gateway");
    }
}
