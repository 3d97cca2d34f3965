//! What a request may contain: text, data that is in the request itself, and tools that the agent runs. Pure.
//!
//! Each API has a list of the kinds of parts, items and tools that are forwarded; every other kind is refused. So a
//! request cannot make the provider fetch an address, read a stored file or run a tool on its own servers, whatever
//! kinds the provider adds.

use serde_json::Value;

use super::request::Api;

/// The most tokens of an image, whatever its bytes.
const IMAGE_TOKENS: u64 = 50_000;
/// The most tokens of a document, a sound or a video: no model reads more at once.
const MEDIA_TOKENS: u64 = 1_000_000;

/// Returns the most tokens that images and documents of a request may add to those of its bytes.
///
/// # Errors
///
/// Says which part or tool is not forwarded.
pub(super) fn check(api: Api, body: &Value) -> Result<u64, String> {
    check_tools(api, &body["tools"])?;
    let mut content = Content { added: 0 };
    match api {
        Api::Messages => {
            content.anthropic(&body["system"])?;
            for message in items(&body["messages"], "messages")? {
                content.anthropic(&message["content"])?;
            }
        }
        Api::Chat => {
            for message in items(&body["messages"], "messages")? {
                if !message["audio"].is_null() {
                    return Err(refers("a message's \"audio\""));
                }
                content.chat(&message["content"])?;
            }
        }
        Api::Responses => {
            for item in items(&body["input"], "input")? {
                content.item(item)?;
            }
        }
        Api::Generate => {
            content.gemini(&body["systemInstruction"])?;
            match &body["contents"] {
                Value::Array(all) => all.iter().try_for_each(|one| content.gemini(one))?,
                one => content.gemini(one)?,
            }
        }
    }
    Ok(content.added)
}

struct Content {
    added: u64,
}

impl Content {
    fn add(&mut self, tokens: u64) {
        self.added = self.added.saturating_add(tokens);
    }

    fn anthropic(&mut self, content: &Value) -> Result<(), String> {
        for part in items(content, "content")? {
            match kind(part) {
                "text" | "thinking" | "redacted_thinking" | "tool_use" => {}
                "tool_result" | "search_result" => self.anthropic(&part["content"])?,
                name @ ("image" | "document") => {
                    match part["source"]["type"].as_str() {
                        Some("base64" | "text") => {}
                        Some("content") => self.anthropic(&part["source"]["content"])?,
                        _ => return Err(refers(&format!("the source of {name:?}"))),
                    }
                    self.add(if name == "image" {
                        IMAGE_TOKENS
                    } else {
                        MEDIA_TOKENS
                    });
                }
                other => return Err(unknown_kind("part", other)),
            }
        }
        Ok(())
    }

    fn chat(&mut self, content: &Value) -> Result<(), String> {
        for part in items(content, "content")? {
            match kind(part) {
                "text" | "refusal" => {}
                "image_url" => {
                    let image = &part["image_url"];
                    self.image(image.as_str().or(image["url"].as_str()))?;
                }
                "input_audio" => self.add(MEDIA_TOKENS),
                "file" => {
                    if !part["file"]["file_id"].is_null() {
                        return Err(refers("\"file_id\""));
                    }
                    self.add(MEDIA_TOKENS);
                }
                other => return Err(unknown_kind("part", other)),
            }
        }
        Ok(())
    }

    /// An item of OpenAI's responses.
    fn item(&mut self, item: &Value) -> Result<(), String> {
        match kind(item) {
            "" | "message" => self.response_parts(&item["content"]),
            "function_call_output" | "custom_tool_call_output" => {
                self.response_parts(&item["output"])
            }
            "tool_search_output" => check_tools(Api::Responses, &item["tools"]),
            "function_call"
            | "tool_search_call"
            | "custom_tool_call"
            | "reasoning"
            | "compaction"
            | "local_shell_call"
            | "local_shell_call_output"
            | "shell_call"
            | "shell_call_output"
            | "apply_patch_call"
            | "apply_patch_call_output" => Ok(()),
            other => Err(unknown_kind("item", other)),
        }
    }

    fn response_parts(&mut self, content: &Value) -> Result<(), String> {
        for part in items(content, "content")? {
            let is_stored = |field: &str| !part[field].is_null();
            if is_stored("file_id") || is_stored("file_url") {
                return Err(refers("\"file_id\" or \"file_url\""));
            }
            match kind(part) {
                "input_text" | "output_text" | "text" | "summary_text" | "reasoning_text"
                | "refusal" => {}
                "input_image" => self.image(part["image_url"].as_str())?,
                "input_file" | "input_audio" => self.add(MEDIA_TOKENS),
                other => return Err(unknown_kind("part", other)),
            }
        }
        Ok(())
    }

    /// A `Content` of Gemini: an object with parts, a part, or a text.
    fn gemini(&mut self, content: &Value) -> Result<(), String> {
        let parts = match content {
            Value::Object(fields) if fields.contains_key("parts") => &content["parts"],
            other => other,
        };
        match parts {
            Value::Null | Value::String(_) => Ok(()),
            Value::Array(all) => all.iter().try_for_each(|part| self.gemini_part(part)),
            one => self.gemini_part(one),
        }
    }

    fn gemini_part(&mut self, part: &Value) -> Result<(), String> {
        let Value::Object(fields) = part else {
            return part
                .is_string()
                .then_some(())
                .ok_or_else(|| "a part is not an object".to_owned());
        };
        for (name, value) in fields {
            match name.as_str() {
                "text" | "thought" | "thoughtSignature" | "thought_signature" | "functionCall"
                | "function_call" | "role" => {}
                "inlineData" | "inline_data" => {
                    let mime = value["mimeType"].as_str().or(value["mime_type"].as_str());
                    let is_image = mime.is_some_and(|mime| mime.starts_with("image/"));
                    self.add(if is_image { IMAGE_TOKENS } else { MEDIA_TOKENS });
                }
                "functionResponse" | "function_response" => {
                    if let Value::Array(parts) = &value["parts"] {
                        parts.iter().try_for_each(|part| self.gemini_part(part))?;
                    }
                }
                other => return Err(unknown_kind("part", other)),
            }
        }
        Ok(())
    }

    /// An image by its address, which has to be the data itself.
    fn image(&mut self, address: Option<&str>) -> Result<(), String> {
        if !address.is_some_and(|address| address.starts_with("data:")) {
            return Err(refers("the address of an image"));
        }
        self.add(IMAGE_TOKENS);
        Ok(())
    }
}

/// Checks that the agent runs every tool itself.
fn check_tools(api: Api, tools: &Value) -> Result<(), String> {
    if matches!(tools, Value::String(_)) {
        return Err("the tools are not a list".to_owned());
    }
    for tool in items(tools, "tools")? {
        let name = kind(tool);
        let dated = |stem: &str| name.starts_with(stem);
        let is_client = match api {
            Api::Messages => {
                matches!(name, "" | "custom")
                    || dated("bash_")
                    || dated("text_editor_")
                    || dated("memory_")
            }
            Api::Chat => matches!(name, "function" | "custom"),
            Api::Responses => match name {
                "function" | "custom" | "local_shell" | "apply_patch" => true,
                "shell" => tool["environment"]["type"] == "local",
                "tool_search" => tool["execution"] == "client",
                "namespace" => {
                    check_tools(api, &tool["tools"])?;
                    true
                }
                _ => false,
            },
            Api::Generate => {
                let own = ["functionDeclarations", "function_declarations"];
                let mut fields = tool.as_object().into_iter().flatten();
                match fields.find(|(field, _)| !own.contains(&field.as_str())) {
                    Some((field, _)) => return Err(server_tool(field)),
                    None => true,
                }
            }
        };
        if !is_client {
            return Err(server_tool(name));
        }
    }
    Ok(())
}

/// The objects of a list; a text or nothing has none.
fn items<'v>(list: &'v Value, name: &str) -> Result<&'v [Value], String> {
    match list {
        Value::Null | Value::String(_) => Ok(&[]),
        Value::Array(items) if items.iter().all(Value::is_object) => Ok(items),
        _ => Err(format!("{name:?} is not a list of objects")),
    }
}

fn kind(value: &Value) -> &str {
    match &value["type"] {
        Value::Null => "",
        kind => kind.as_str().unwrap_or("of no text"),
    }
}

fn unknown_kind(what: &str, kind: &str) -> String {
    format!(
        "the {what} {kind:?} is not forwarded: only text, data in the request and calls of the agent's own tools are"
    )
}

fn refers(what: &str) -> String {
    format!("{what} refers to what is not in the request; send the data itself")
}

fn server_tool(name: &str) -> String {
    format!(
        "the tool {name:?} does not run in the agent; the provider's own tools are not allowed here"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_that_agents_send_are_forwarded() {
        for (api, body, added) in [
            (
                Api::Messages,
                json!({"system": [{"type": "text", "text": "s"}], "messages": [
                    {"role": "user", "content": "hi"},
                    {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "s"},
                        {"type": "tool_use", "id": "1", "name": "Fetch", "input": {"type": "url", "url": "https://x"}}]},
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": [
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aa"}}]}]},
                ], "tools": [{"name": "web_search", "input_schema": {}}, {"type": "bash_20250124", "name": "bash"}]}),
                IMAGE_TOKENS,
            ),
            (
                Api::Chat,
                json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "https://x"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,aa"}}]},
                    {"role": "assistant", "content": null, "tool_calls": []}],
                    "tools": [{"type": "function", "function": {"name": "web_search"}}]}),
                IMAGE_TOKENS,
            ),
            (
                Api::Responses,
                json!({"input": [{"role": "user", "content": [{"type": "input_text", "text": "x"}]},
                    {"type": "reasoning", "summary": []}, {"type": "function_call_output", "call_id": "1", "output": "o"},
                    {"type": "custom_tool_call_output", "call_id": "2", "output": [{"type": "input_text", "text": "x"}]}],
                    "tools": [{"type": "function", "name": "shell"}, {"type": "namespace", "tools": [{"type": "custom"}]},
                        {"type": "tool_search", "execution": "client"}]}),
                0,
            ),
            (
                Api::Generate,
                json!({"systemInstruction": {"parts": [{"text": "s"}]}, "contents": [
                    {"role": "user", "parts": [{"text": "x"}, {"inlineData": {"mimeType": "application/pdf", "data": "a"}}]},
                    {"role": "model", "parts": [{"functionCall": {"name": "f"}, "thoughtSignature": "s"}]}],
                    "tools": [{"functionDeclarations": [{"name": "google_search"}]}]}),
                MEDIA_TOKENS,
            ),
        ] {
            assert_eq!(check(api, &body), Ok(added), "{body}");
        }
    }

    #[test]
    fn references_and_server_tools_are_refused() {
        let parts = |api: Api, part: Value| match api {
            Api::Responses => json!({"input": [{"role": "user", "content": [part]}]}),
            Api::Generate => json!({"contents": [{"parts": [part]}]}),
            Api::Messages | Api::Chat => json!({"messages": [{"role": "user", "content": [part]}]}),
        };
        for (api, part) in [
            (
                Api::Messages,
                json!({"type": "image", "source": {"type": "url", "url": "https://x"}}),
            ),
            (
                Api::Messages,
                json!({"type": "document", "source": {"type": "file", "file_id": "f"}}),
            ),
            (
                Api::Messages,
                json!({"type": "tool_result", "content": [{"type": "image", "source": {"type": "url"}}]}),
            ),
            (
                Api::Messages,
                json!({"type": "container_upload", "file_id": "f"}),
            ),
            (
                Api::Chat,
                json!({"type": "image_url", "image_url": {"url": "https://x"}}),
            ),
            (
                Api::Chat,
                json!({"type": "image_url", "image_url": "https://x"}),
            ),
            (Api::Chat, json!({"type": "file", "file": {"file_id": "f"}})),
            (Api::Chat, json!({"type": "video_url"})),
            (
                Api::Responses,
                json!({"type": "input_file", "file_url": "https://x"}),
            ),
            (
                Api::Responses,
                json!({"type": "input_image", "file_id": "f"}),
            ),
            (Api::Generate, json!({"fileData": {"fileUri": "https://x"}})),
            (
                Api::Generate,
                json!({"functionResponse": {"parts": [{"file_data": {}}]}}),
            ),
        ] {
            assert!(check(api, &parts(api, part.clone())).is_err(), "{part}");
        }
        for (api, tools) in [
            (Api::Messages, json!([{"type": "web_search_20250305"}])),
            (Api::Messages, json!([{"type": "advisor_20260301"}])),
            (Api::Messages, json!([{"type": 7}])),
            (
                Api::Messages,
                json!([{"type": "mcp_toolset", "mcp_server_name": "x"}]),
            ),
            (Api::Chat, json!([{"type": "web_search"}])),
            (Api::Chat, json!([{"function": {"name": "f"}}])),
            (Api::Responses, json!([{"type": "image_generation"}])),
            (Api::Responses, json!([{"type": "tool_search"}])),
            (
                Api::Responses,
                json!([{"type": "shell", "environment": {"type": "container_auto"}}]),
            ),
            (
                Api::Responses,
                json!([{"type": "namespace", "tools": [{"type": "web_search"}]}]),
            ),
            (Api::Generate, json!({"google_search": {}})),
            (
                Api::Generate,
                json!([{"functionDeclarations": [], "googleMaps": {}}]),
            ),
            (Api::Generate, json!("google_search")),
        ] {
            assert!(check(api, &json!({"tools": tools})).is_err(), "{tools}");
        }
        for body in [
            json!({"messages": {"role": "user"}}),
            json!({"messages": ["x"]}),
        ] {
            assert!(check(Api::Chat, &body).is_err(), "{body}");
        }
        let reference = json!({"input": [{"type": "item_reference", "id": "x"}]});
        assert!(check(Api::Responses, &reference).is_err());
    }
}
