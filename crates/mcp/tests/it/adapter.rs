//! The tools, resources and prompts that the suite looks for. They are in no program: the product has none of them.
//!
//! Results are written as the JSON that the protocol's own documentation shows, and read into the library's types.

#![expect(
    deprecated,
    reason = "older revisions have log messages, and requests to the client"
)]

use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, ErrorData,
    GetPromptRequestParams, GetPromptResponse, Implementation, InputRequiredResult, InputResponses,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
    ServerConfig, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A picture of one point.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// A sound of no length.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

/// The state that a client hands back unchanged.
const STATE: &str = "state-of-the-first-round";
/// The same for the second round.
const SECOND_STATE: &str = "state-of-the-second-round";

#[derive(Debug, Clone)]
pub(crate) struct Adapter;

type Context = RequestContext<RoleServer>;

/// Reads a value of the protocol.
fn read<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    let text = value.to_string();
    serde_json::from_value(value)
        .map_err(|error| ErrorData::internal_error(format!("{error} in {text}"), None))
}

/// A complete result with these blocks.
fn content(blocks: Value) -> Result<CallToolResponse, ErrorData> {
    let result: rmcp::model::CallToolResult =
        read(json!({ "content": blocks, "resultType": "complete" }))?;
    Ok(result.into())
}

fn text_response(text: impl Into<String>) -> Result<CallToolResponse, ErrorData> {
    content(json!([{ "type": "text", "text": text.into() }]))
}

/// The result that asks the client for these inputs.
fn wanted(inputs: Value, state: Option<&str>) -> Result<InputRequiredResult, ErrorData> {
    let mut result = json!({ "resultType": "input_required", "inputRequests": inputs });
    if let Some(state) = state {
        result["requestState"] = state.into();
    }
    read(result)
}

/// The request for a form with one field.
fn form(message: &str, field: &str, kind: &str) -> Value {
    json!({ "method": "elicitation/create", "params": {
        "mode": "form", "message": message,
        "requestedSchema": { "type": "object", "properties": { field: { "type": kind } }, "required": [field] },
    } })
}

fn sampling(text: &str, most: u32) -> Value {
    json!({ "method": "sampling/createMessage", "params": {
        "messages": [{ "role": "user", "content": { "type": "text", "text": text } }], "maxTokens": most,
    } })
}

fn roots() -> Value {
    json!({ "method": "roots/list", "params": {} })
}

/// The accepted value of a form's field.
fn field(responses: &InputResponses, key: &str, field: &str) -> Option<Value> {
    let response = responses.get(key)?;
    (response["action"] == "accept").then_some(())?;
    response["content"].get(field).cloned()
}

fn tool(name: &'static str) -> Tool {
    let arguments = match name {
        "test_sampling" => json!({ "prompt": { "type": "string" } }),
        "test_elicitation" => json!({ "message": { "type": "string" } }),
        _ => json!({}),
    };
    let required: Vec<_> = arguments.as_object().unwrap().keys().cloned().collect();
    let schema = json!({ "type": "object", "properties": arguments, "required": required });
    Tool::new(
        name,
        "A tool of the suite.",
        schema.as_object().unwrap().clone(),
    )
}

const TOOLS: [&str; 23] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_tool_with_logging",
    "test_logging_tool",
    "test_error_handling",
    "test_tool_with_progress",
    "test_sampling",
    "test_elicitation",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
    "test_missing_capability",
    "test_streaming_elicitation",
];

/// Sends progress to a client that asked for it.
async fn progress(context: &Context) -> Result<(), ErrorData> {
    for done in [0, 50, 100] {
        if let Some(token) = context.meta.get_progress_token() {
            let params = json!({ "progressToken": token, "progress": done, "total": 100 });
            let sent = context.peer.notify_progress(read(params)?).await;
            sent.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

async fn log(context: &Context) -> Result<(), ErrorData> {
    for text in ["started", "processing data", "completed"] {
        let text = match text {
            "processing data" => "Tool processing data".to_owned(),
            other => format!("Tool execution {other}"),
        };
        let params = json!({ "level": "info", "data": text });
        let sent = context.peer.notify_logging_message(read(params)?).await;
        sent.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// Asks the client's user for this form, in the older revisions.
async fn ask(context: &Context, message: &str, schema: Value) -> Result<Value, ErrorData> {
    let params = json!({ "mode": "form", "message": message, "requestedSchema": schema });
    let answer = context.peer.create_elicitation(read(params)?).await;
    let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    Ok(serde_json::to_value(answer).unwrap())
}

/// The answer to a form, as the suite wants to read it.
fn prefixed_response(prefix: &str, answer: &Value) -> Result<CallToolResponse, ErrorData> {
    let action = answer["action"].as_str().unwrap_or_default();
    let given_json = answer.get("content").unwrap_or(&Value::Null);
    text_response(format!("{prefix}: action={action}, content={given_json}"))
}

async fn sample(context: &Context, prompt: &str) -> Result<CallToolResponse, ErrorData> {
    let params = sampling(prompt, 100)["params"].clone();
    let answer = context.peer.create_message(read(params)?).await;
    let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let answer = serde_json::to_value(answer).unwrap();
    let text = answer["content"]["text"].as_str().unwrap_or_default();
    text_response(format!("LLM response: {text}"))
}

fn defaults() -> Value {
    json!({ "type": "object", "properties": {
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "default": true },
    } })
}

fn enums() -> Value {
    let titled = |words: [&str; 3], titles: [&str; 3]| -> Value {
        let pairs = words.iter().zip(titles);
        pairs
            .map(|(word, title)| json!({ "const": word, "title": title }))
            .collect()
    };
    let options = ["option1", "option2", "option3"];
    let values = ["value1", "value2", "value3"];
    json!({ "type": "object", "properties": {
        "untitledSingle": { "type": "string", "enum": options },
        "titledSingle": { "type": "string", "oneOf": titled(values, ["First Option", "Second Option", "Third Option"]) },
        "legacyEnum": {
            "type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled(values, ["First Choice", "Second Choice", "Third Choice"]) } },
    } })
}

/// Tools whose result asks the client for inputs.
fn rounds(
    request: &CallToolRequestParams,
    context: &Context,
) -> Result<CallToolResponse, ErrorData> {
    let none = InputResponses::new();
    let given = request.input_responses.as_ref().unwrap_or(&none);
    let state = request.request_state.as_deref();
    let unknown_state = || ErrorData::invalid_params("the state is not one of this server", None);
    match &*request.name {
        "test_input_required_result_elicitation" => match field(given, "user_name", "name") {
            Some(Value::String(name)) => text_response(format!("Hello, {name}!")),
            _ => {
                let inputs = json!({ "user_name": form("What is your name?", "name", "string") });
                wanted(inputs, None).map(Into::into)
            }
        },
        "test_input_required_result_sampling" => match given.get("capital_question") {
            Some(answer) => text_response(answer["content"].to_string()),
            None => {
                let inputs =
                    json!({ "capital_question": sampling("What is the capital of France?", 100) });
                wanted(inputs, None).map(Into::into)
            }
        },
        "test_input_required_result_list_roots" => match given.get("client_roots") {
            Some(answer) => text_response(answer["roots"].to_string()),
            None => wanted(json!({ "client_roots": roots() }), None).map(Into::into),
        },
        "test_input_required_result_request_state"
        | "test_input_required_result_tampered_state" => match state {
            Some(STATE) => text_response("state-ok"),
            Some(_) => Err(unknown_state()),
            None => {
                let inputs = json!({ "confirm": form("Please confirm", "ok", "boolean") });
                wanted(inputs, Some(STATE)).map(Into::into)
            }
        },
        "test_input_required_result_multiple_inputs" => {
            let keys = ["user_name", "greeting", "client_roots"];
            if state == Some(STATE) && keys.iter().all(|key| given.contains_key(*key)) {
                return text_response("all inputs are here");
            }
            let inputs = json!({
                "user_name": form("What is your name?", "name", "string"),
                "greeting": sampling("Generate a greeting", 50),
                "client_roots": roots(),
            });
            wanted(inputs, Some(STATE)).map(Into::into)
        }
        "test_input_required_result_multi_round" => match state {
            None => {
                let inputs =
                    json!({ "step1": form("Step 1: What is your name?", "name", "string") });
                wanted(inputs, Some(STATE)).map(Into::into)
            }
            Some(STATE) => {
                let question = form("Step 2: What is your favorite color?", "color", "string");
                wanted(json!({ "step2": question }), Some(SECOND_STATE)).map(Into::into)
            }
            Some(SECOND_STATE) => text_response("both steps are done"),
            Some(_) => Err(unknown_state()),
        },
        // Only what the client has said that it can do is asked for.
        _ => {
            let can = context.client_capabilities();
            let can = serde_json::to_value(can).unwrap_or_default();
            let mut inputs = serde_json::Map::new();
            if can["elicitation"].is_object() {
                let question = form("What is your name?", "name", "string");
                inputs.insert("user_name".to_owned(), question);
            }
            if can["sampling"].is_object() {
                let question = sampling("Generate a greeting", 50);
                inputs.insert("greeting".to_owned(), question);
            }
            if can["roots"].is_object() {
                inputs.insert("client_roots".to_owned(), roots());
            }
            if inputs.is_empty() || !given.is_empty() {
                return text_response("nothing is wanted");
            }
            wanted(Value::Object(inputs), None).map(Into::into)
        }
    }
}

impl ServerHandler for Adapter {
    fn get_info(&self) -> ServerConfig {
        let capabilities = read::<ServerCapabilities>(json!({
            "tools": {}, "resources": { "subscribe": true }, "prompts": {}, "logging": {}, "completions": {},
        }));
        ServerConfig::new(capabilities.unwrap())
            .with_server_info(Implementation::new("adapter", "0.1.0"))
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    /// Subscriptions of the newest revision. Nothing changes, so none brings a notification.
    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: Context,
    ) -> Result<CompleteResult, ErrorData> {
        read(
            json!({ "completion": { "values": ["paris", "park"], "hasMore": false }, "resultType": "complete" }),
        )
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(TOOLS.map(tool).to_vec()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let argument = |name: &str| {
            let arguments = request.arguments.clone().unwrap_or_default();
            let text = arguments.get(name).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        match &*request.name {
            "test_simple_text" => text_response("This is a simple text response for testing."),
            "test_image_content" => {
                content(json!([{ "type": "image", "data": PNG, "mimeType": "image/png" }]))
            }
            "test_audio_content" => {
                content(json!([{ "type": "audio", "data": WAV, "mimeType": "audio/wav" }]))
            }
            "test_embedded_resource" => content(json!([{ "type": "resource", "resource": {
                "uri": "test://embedded-resource", "mimeType": "text/plain",
                "text": "This is an embedded resource content.",
            } }])),
            "test_multiple_content_types" => content(json!([
                { "type": "text", "text": "Multiple content types test:" },
                { "type": "image", "data": PNG, "mimeType": "image/png" },
                { "type": "resource", "resource": {
                    "uri": "test://mixed-content-resource", "mimeType": "application/json",
                    "text": "{\"test\":\"data\",\"value\":123}",
                } },
            ])),
            "test_tool_with_logging" => {
                log(&context).await?;
                text_response("the messages were sent")
            }
            // In the newest revision a request says whether it wants messages.
            "test_logging_tool" => {
                if context.meta.log_level().is_some() {
                    log(&context).await?;
                }
                text_response("messages were sent where they were wanted")
            }
            "test_tool_with_progress" => {
                progress(&context).await?;
                text_response("the work is done")
            }
            "test_error_handling" => {
                let text = "This tool intentionally returns an error for testing";
                let result: rmcp::model::CallToolResult = read(
                    json!({ "content": [{ "type": "text", "text": text }], "isError": true, "resultType": "complete" }),
                )?;
                Ok(result.into())
            }
            "test_sampling" => sample(&context, &argument("prompt")).await,
            "test_elicitation" => {
                let schema = json!({ "type": "object", "properties": {
                    "username": { "type": "string", "description": "User's response" },
                    "email": { "type": "string", "description": "User's email address" },
                }, "required": ["username", "email"] });
                prefixed_response(
                    "User response",
                    &ask(&context, &argument("message"), schema).await?,
                )
            }
            "test_elicitation_sep1034_defaults" => {
                let answer = ask(&context, "Please check the values", defaults()).await?;
                prefixed_response("Elicitation completed", &answer)
            }
            "test_elicitation_sep1330_enums" => {
                let answer = ask(&context, "Please choose", enums()).await?;
                prefixed_response("Elicitation completed", &answer)
            }
            "test_missing_capability" => Err(ErrorData::missing_required_client_capability(read(
                json!({ "sampling": {} }),
            )?)),
            name if TOOLS.contains(&name) => rounds(&request, &context),
            other => {
                let text = format!("there is no tool {other:?}");
                Err(ErrorData::invalid_params(text, None))
            }
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resource = |name: &str, kind: &str| json!({ "uri": format!("test://{name}"), "name": name, "description": "A resource of the suite.", "mimeType": kind });
        read(json!({ "resources": [
            resource("static-text", "text/plain"), resource("static-binary", "image/png"),
            resource("watched-resource", "text/plain"),
        ], "resultType": "complete" }))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        read(json!({ "resourceTemplates": [{
            "uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json",
            "description": "A template of the suite.",
        }], "resultType": "complete" }))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri.as_str();
        let id = uri
            .strip_prefix("test://template/")
            .and_then(|rest| rest.strip_suffix("/data"));
        let contents = match (uri, id) {
            ("test://static-text", _) => {
                json!({ "uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource." })
            }
            ("test://static-binary", _) => {
                json!({ "uri": uri, "mimeType": "image/png", "blob": PNG })
            }
            ("test://watched-resource", _) => {
                json!({ "uri": uri, "mimeType": "text/plain", "text": "watched" })
            }
            (_, Some(id)) => {
                let text =
                    json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
                json!({ "uri": uri, "mimeType": "application/json", "text": text.to_string() })
            }
            _ => {
                let about = Some(json!({ "uri": uri }));
                return Err(ErrorData::resource_not_found(
                    "there is no such resource",
                    about,
                ));
            }
        };
        let result: rmcp::model::ReadResourceResult =
            read(json!({ "contents": [contents], "resultType": "complete" }))?;
        Ok(result.into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompt = |name: &str, arguments: &[&str]| {
            let argument = |name: &&str| json!({ "name": name, "description": "An argument.", "required": true });
            let arguments: Vec<_> = arguments.iter().map(argument).collect();
            json!({ "name": name, "description": "A prompt of the suite.", "arguments": arguments })
        };
        read(json!({ "prompts": [
            prompt("test_simple_prompt", &[]), prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
            prompt("test_prompt_with_embedded_resource", &["resourceUri"]), prompt("test_prompt_with_image", &[]),
            prompt("test_input_required_result_prompt", &[]),
        ], "resultType": "complete" }))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = serde_json::to_value(&request.arguments).unwrap_or_default();
        let argument = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
        let user = |content: Value| json!({ "role": "user", "content": content });
        let text = |text: &str| user(json!({ "type": "text", "text": text }));
        let messages = match request.name.as_str() {
            "test_simple_prompt" => json!([text("This is a simple prompt for testing.")]),
            "test_prompt_with_arguments" => {
                let (first, second) = (argument("arg1"), argument("arg2"));
                json!([text(&format!(
                    "Prompt with arguments: arg1='{first}', arg2='{second}'"
                ))])
            }
            "test_prompt_with_embedded_resource" => json!([
                user(json!({ "type": "resource", "resource": {
                    "uri": argument("resourceUri"), "mimeType": "text/plain",
                    "text": "Embedded resource content for testing.",
                } })),
                text("Please process the embedded resource above."),
            ]),
            "test_prompt_with_image" => json!([
                user(json!({ "type": "image", "data": PNG, "mimeType": "image/png" })),
                text("Please analyze the image above."),
            ]),
            "test_input_required_result_prompt" => {
                let none = InputResponses::new();
                let given = request.input_responses.as_ref().unwrap_or(&none);
                let Some(context) = field(given, "user_context", "context") else {
                    let question = form("What context should the prompt use?", "context", "string");
                    return wanted(json!({ "user_context": question }), None).map(Into::into);
                };
                json!([text(&format!("The context is {context}."))])
            }
            other => {
                let text = format!("there is no prompt {other:?}");
                return Err(ErrorData::invalid_params(text, None));
            }
        };
        let result: rmcp::model::GetPromptResult =
            read(json!({ "messages": messages, "resultType": "complete" }))?;
        Ok(result.into())
    }
}
