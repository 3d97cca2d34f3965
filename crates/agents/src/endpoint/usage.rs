//! What an answer took, read from its bytes while they pass. Pure.

use serde_json::Value;

use super::request::Api;

/// The longest line of a stream that is read.
const MAX_LINE: usize = 16 << 20;

/// The tokens of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// Tokens of the request that are not in a cache.
    pub(super) input: u64,
    /// Tokens that were written to a cache for minutes.
    pub(super) cached: u64,
    /// Tokens that were written to a cache for an hour.
    pub(super) cached_long: u64,
    /// Tokens that were read from a cache.
    pub(super) read: u64,
    /// Tokens of the answer.
    pub(super) output: u64,
}

impl Usage {
    /// All tokens of the request.
    pub(super) fn sent(self) -> u64 {
        let written = self.cached.saturating_add(self.cached_long);
        self.input.saturating_add(written).saturating_add(self.read)
    }

    /// The tokens of the request at the price of plain ones: Anthropic counts a token written to its cache as 1.25 or 2,
    /// and one read from it as a tenth.
    pub(super) fn priced_input(self) -> u64 {
        let hundredths = self
            .input
            .saturating_mul(100)
            .saturating_add(self.cached.saturating_mul(125))
            .saturating_add(self.cached_long.saturating_mul(200))
            .saturating_add(self.read.saturating_mul(10));
        hundredths.div_ceil(100)
    }
}

/// Reads an answer piece by piece.
pub(super) struct UsageReader {
    api: Api,
    is_stream: bool,
    pending: Vec<u8>,
    usage: Option<Usage>,
    is_complete: bool,
    /// The tools that the model asked for.
    pub(super) tools: Vec<String>,
}

impl UsageReader {
    /// Reads an answer to this kind of request.
    pub(super) fn new(api: Api, is_stream: bool) -> Self {
        Self {
            api,
            is_stream,
            pending: Vec::new(),
            usage: None,
            is_complete: false,
            tools: Vec::new(),
        }
    }

    /// Takes the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        if !self.is_stream {
            return;
        }
        while let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.pending.drain(..=end).collect();
            self.line(&line);
        }
        if self.pending.len() > MAX_LINE {
            self.pending.clear();
        }
    }

    /// Takes the end of the body.
    pub(super) fn finish(&mut self) {
        let rest = std::mem::take(&mut self.pending);
        if self.is_stream {
            self.line(&rest);
        } else if let Ok(value) = serde_json::from_slice::<Value>(&rest) {
            self.event(&value);
            self.is_complete = self.usage.is_some();
        }
    }

    /// What the answer took, if it says so and is complete.
    pub(super) fn usage(&self) -> Option<Usage> {
        self.usage.filter(|_| self.is_complete)
    }

    fn line(&mut self, line: &[u8]) {
        let Some(data) = line.trim_ascii().strip_prefix(b"data:") else {
            return;
        };
        let data = data.trim_ascii();
        if data == b"[DONE]" {
            self.is_complete = self.usage.is_some();
        } else if let Ok(value) = serde_json::from_slice::<Value>(data) {
            self.event(&value);
        }
    }

    fn event(&mut self, event: &Value) {
        match self.api {
            Api::Messages => self.message(event),
            Api::Chat => self.chat(event),
            Api::Responses => self.response(event),
            Api::Generate => self.generated(event),
        }
    }

    fn message(&mut self, event: &Value) {
        let merge_usage = |usage: &Value, known: Usage| {
            let count = |name: &str, known: u64| usage[name].as_u64().unwrap_or(known);
            let long = usage["cache_creation"]["ephemeral_1h_input_tokens"]
                .as_u64()
                .unwrap_or(known.cached_long);
            let written = count(
                "cache_creation_input_tokens",
                known.cached + known.cached_long,
            );
            Usage {
                input: count("input_tokens", known.input),
                cached: written.saturating_sub(long),
                cached_long: long.min(written),
                read: count("cache_read_input_tokens", known.read),
                output: count("output_tokens", known.output),
            }
        };
        for usage in [&event["message"]["usage"], &event["usage"]] {
            if usage.is_object() {
                self.usage = Some(merge_usage(usage, self.usage.unwrap_or_default()));
            }
        }
        let blocks = event["content"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        for block in blocks.iter().chain([&event["content_block"]]) {
            if block["type"] == "tool_use" {
                self.tool(&block["name"]);
            }
        }
        if event["type"] == "message_stop" {
            self.is_complete = true;
        }
    }

    fn chat(&mut self, event: &Value) {
        let usage = &event["usage"];
        if let (Some(input), output) =
            (usage["prompt_tokens"].as_u64(), &usage["completion_tokens"])
        {
            self.usage = Some(Usage {
                input,
                output: output.as_u64().unwrap_or_default(),
                ..Usage::default()
            });
        }
        for choice in event["choices"].as_array().into_iter().flatten() {
            for message in [&choice["delta"], &choice["message"]] {
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    self.tool(&call["function"]["name"]);
                }
            }
        }
    }

    fn response(&mut self, event: &Value) {
        let kind = event["type"].as_str().unwrap_or_default();
        let full_json = if event["object"] == "response" {
            event
        } else {
            &event["response"]
        };
        let usage = &full_json["usage"];
        if let Some(input) = usage["input_tokens"].as_u64() {
            let output = usage["output_tokens"].as_u64().unwrap_or_default();
            self.usage = Some(Usage {
                input,
                output,
                ..Usage::default()
            });
        }
        if matches!(kind, "response.completed" | "response.incomplete") {
            self.is_complete = self.usage.is_some();
        }
        if kind == "response.output_item.done" && event["item"]["type"] == "function_call" {
            self.tool(&event["item"]["name"]);
        }
    }

    fn generated(&mut self, event: &Value) {
        let usage = &event["usageMetadata"];
        if let Some(input) = usage["promptTokenCount"].as_u64() {
            let count = |name: &str| usage[name].as_u64().unwrap_or_default();
            let output = count("candidatesTokenCount").saturating_add(count("thoughtsTokenCount"));
            self.usage = Some(Usage {
                input,
                output,
                ..Usage::default()
            });
        }
        for candidate in event["candidates"].as_array().into_iter().flatten() {
            for part in candidate["content"]["parts"]
                .as_array()
                .into_iter()
                .flatten()
            {
                self.tool(&part["functionCall"]["name"]);
            }
            if candidate["finishReason"].is_string() {
                self.is_complete = self.usage.is_some();
            }
        }
    }

    fn tool(&mut self, name: &Value) {
        if let Some(name) = name.as_str().filter(|name| !name.is_empty()) {
            let name = name
                .chars()
                .filter(|letter| !letter.is_control())
                .take(60)
                .collect();
            self.tools.push(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(api: Api, is_stream: bool, text: &str) -> UsageReader {
        let mut reader = UsageReader::new(api, is_stream);
        // However the bytes are cut.
        for piece in text.as_bytes().chunks(7) {
            reader.push(piece);
        }
        reader.finish();
        reader
    }

    #[test]
    fn stream_usage_is_read_from_its_end() {
        let text = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":10,\"cache_creation_input_tokens\":100,\"cache_read_input_tokens\":1000,\"output_tokens\":1}}}\n\n\
                    data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"tool_use\",\"name\":\"Write\"}}\n\n\
                    data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":20}}\n\n";
        let cut = read(Api::Messages, true, text);
        assert_eq!(cut.usage(), None, "it is not complete");
        let full_usage_reader = read(
            Api::Messages,
            true,
            &format!("{text}data: {{\"type\":\"message_stop\"}}\n\n"),
        );
        let usage = full_usage_reader.usage().unwrap();
        assert_eq!(
            (usage.sent(), usage.priced_input(), usage.output),
            (1110, 235, 20)
        );
        assert_eq!(full_usage_reader.tools, ["Write"]);
    }

    #[test]
    fn each_api_reports_usage() {
        let chat = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"name\":\"bash\"}}]}}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\ndata: [DONE]\n\n";
        let responses = "data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":3,\"output_tokens\":4}}}\n\n";
        let gemini = "data: {\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":3,\"candidatesTokenCount\":1,\"thoughtsTokenCount\":3}}\n\n";
        let plain = "{\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}";
        for (api, is_stream, text) in [
            (Api::Chat, true, chat),
            (Api::Responses, true, responses),
            (Api::Generate, true, gemini),
            (Api::Chat, false, plain),
        ] {
            let usage = read(api, is_stream, text).usage().unwrap();
            assert_eq!(
                (usage.sent(), usage.priced_input(), usage.output),
                (3, 3, 4),
                "{text}"
            );
        }
        assert_eq!(read(Api::Chat, true, chat).tools, ["bash"]);
    }
}
