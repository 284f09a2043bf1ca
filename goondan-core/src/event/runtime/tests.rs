//! Tests of the JSON form of runtime events (EVENT-04).

use serde_json::{Map, Value, json};

use super::*;
use crate::conversation::{MessageData, Part, Role, TextPart};
use crate::error::ErrorCode;
use crate::event::TurnInfo;
use crate::event::{AgentEvent, Event};
use crate::event::{Span, SpanId};
use crate::name::{AgentName, ExtensionName, InstanceKey, TraceId, TurnId};
use crate::outcome::ModelFinish;
use crate::presentation::ToolOutcome;

fn scope() -> EventScope {
    EventScope {
        agent_name: AgentName::new("bot").unwrap(),
        instance_key: InstanceKey::new("user:1").unwrap(),
        timestamp: "2026-01-31T12:00:00.250Z".parse().unwrap(),
        turn_id: TurnId::from("t1"),
        trace_id: "0123456789abcdef0123456789abcdef".parse().unwrap(),
        span: Span { id: "00000000000000ff".parse().unwrap(), parent: Some("0123456789abcdef".parse().unwrap()) },
    }
}

fn step() -> StepRef {
    StepRef::new(&TurnId::from("t1"), 2)
}

fn call() -> ToolCallRef {
    ToolCallRef { step_id: step().step_id, tool_call_id: "c1".into(), tool_name: "notes__add".to_owned() }
}

/// Returns the JSON of an event of the type `name`: the members that all events have, then `own`.
fn written(name: &str, own: Value) -> Value {
    let mut object = json!({
        "type": name,
        "agentName": "bot",
        "instanceKey": "user:1",
        "timestamp": "2026-01-31T12:00:00.250Z",
        "turnId": "t1",
        "traceId": "0123456789abcdef0123456789abcdef",
        "spanId": "00000000000000ff",
        "parentSpanId": "0123456789abcdef",
    });
    let Value::Object(own) = own else { panic!("{own} is no object") };
    object.as_object_mut().unwrap().extend(own);
    object
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn each_event_has_the_json_form_of_the_contract() {
    let (duration, wait) = (Duration::from_micros(1_500_250), Duration::from_millis(1500));
    let code = Some(ErrorCode::MODEL);
    let usage = TokenUsage::new(10, 5);
    let usage_written = json!({ "promptTokens": 10, "completionTokens": 5, "totalTokens": 15 });
    let error_message = "no answer".to_owned();
    let said = MessageData::new(Role::User, "hi");
    for (event, name, own) in [
        (RuntimeEvent::TurnStarted { scope: scope() }, "turn.started", json!({})),
        (RuntimeEvent::TurnResumed { scope: scope(), number: 2 }, "turn.resumed", json!({ "number": 2 })),
        (
            RuntimeEvent::InputJoined { scope: scope(), event_id: "e2".into() },
            "input.joined",
            json!({ "eventId": "e2" }),
        ),
        (
            RuntimeEvent::TurnCompleted {
                scope: scope(),
                step_count: 3,
                duration,
                token_usage: Some(usage),
                whole_usage: Some(TokenUsage::new(20, 10)),
            },
            "turn.completed",
            json!({
                "stepCount": 3,
                "duration": 1500,
                "durationMicros": 1_500_250,
                "tokenUsage": usage_written,
                "wholeUsage": { "promptTokens": 20, "completionTokens": 10, "totalTokens": 30 },
            }),
        ),
        (
            RuntimeEvent::TurnFailed {
                scope: scope(),
                duration,
                error_code: code.clone(),
                error_message: error_message.clone(),
                token_usage: Some(usage),
                whole_usage: None,
            },
            "turn.failed",
            json!({
                "duration": 1500,
                "durationMicros": 1_500_250,
                "errorCode": "E_MODEL",
                "errorMessage": "no answer",
                "tokenUsage": usage_written,
            }),
        ),
        (
            RuntimeEvent::StepStarted {
                scope: scope(),
                step: step(),
                llm_input_messages: Some(vec![LlmInputMessage::from(&said)]),
            },
            "step.started",
            json!({
                "stepId": "t1-step-2",
                "stepIndex": 2,
                "llmInputMessages": [{ "role": "user", "content": "hi", "contentSource": "verbatim" }],
            }),
        ),
        (
            RuntimeEvent::StepCompleted {
                scope: scope(),
                step: step(),
                tool_call_count: 1,
                duration,
                token_usage: Some(usage),
                provider: Some("p1".to_owned()),
                model: Some("m1".to_owned()),
                time_to_first_piece: Some(Duration::from_micros(20_400)),
                finish_reason: Some(ModelFinish::Stop),
                prepared_by: None,
                kept_prefix: Some(KeptPrefix::new(90, 100)),
            },
            "step.completed",
            json!({
                "stepId": "t1-step-2",
                "stepIndex": 2,
                "toolCallCount": 1,
                "duration": 1500,
                "durationMicros": 1_500_250,
                "tokenUsage": usage_written,
                "provider": "p1",
                "model": "m1",
                "timeToFirstPiece": 20,
                "timeToFirstPieceMicros": 20_400,
                "finishReason": "stop",
                "keptPrefix": { "kept": 90, "of": 100 },
            }),
        ),
        (
            RuntimeEvent::StepFailed {
                scope: scope(),
                step: step(),
                duration,
                error_code: code.clone(),
                error_message: error_message.clone(),
            },
            "step.failed",
            json!({
                "stepId": "t1-step-2",
                "stepIndex": 2,
                "duration": 1500,
                "durationMicros": 1_500_250,
                "errorCode": "E_MODEL",
                "errorMessage": "no answer",
            }),
        ),
        (
            RuntimeEvent::ModelRetried { scope: scope(), step: step(), reason: "busy".to_owned(), wait },
            "model.retried",
            json!({ "stepId": "t1-step-2", "stepIndex": 2, "reason": "busy", "wait": 1500 }),
        ),
        (
            RuntimeEvent::ModelPrefixBroken { scope: scope(), step: step(), prefix: broken_prefix() },
            "model.prefixBroken",
            json!({
                "stepId": "t1-step-2",
                "stepIndex": 2,
                "kept": 10,
                "of": 100,
                "broken": { "part": "messages", "index": 3, "change": "removed", "extensionName": "notes" },
            }),
        ),
        (
            RuntimeEvent::ToolCalled { scope: scope(), call: call(), presentation: "a note".into() },
            "tool.called",
            json!({
                "stepId": "t1-step-2",
                "toolCallId": "c1",
                "toolName": "notes__add",
                "presentation": { "line": "a note" },
            }),
        ),
        (
            RuntimeEvent::ToolCompleted {
                scope: scope(),
                call: call(),
                status: ToolCallStatus::Error,
                duration,
                error_message: Some("no".to_owned()),
                prepared_by: Some(ExtensionName::new("cache").unwrap()),
                presentation: Presentation::new("a note").outcome(ToolOutcome::failed("full")),
            },
            "tool.completed",
            json!({
                "stepId": "t1-step-2",
                "toolCallId": "c1",
                "toolName": "notes__add",
                "status": "error",
                "duration": 1500,
                "durationMicros": 1_500_250,
                "errorMessage": "no",
                "preparedBy": "cache",
                "presentation": { "line": "a note", "outcome": { "failed": true, "words": "full" } },
            }),
        ),
        (
            RuntimeEvent::ExtensionSkipped {
                scope: scope(),
                extension_name: ExtensionName::new("audit").unwrap(),
                part: "step middleware `note`".to_owned(),
                after_next: true,
                error_code: ErrorCode::EXT_PANIC,
                error_message: error_message.clone(),
            },
            "extension.skipped",
            json!({
                "extensionName": "audit",
                "part": "step middleware `note`",
                "afterNext": true,
                "errorCode": "E_EXT_PANIC",
                "errorMessage": "no answer",
            }),
        ),
        (
            RuntimeEvent::ToolFailed {
                scope: scope(),
                call: call(),
                duration,
                error_code: code,
                error_message,
                presentation: Presentation::new("a note").output("full"),
            },
            "tool.failed",
            json!({
                "stepId": "t1-step-2",
                "toolCallId": "c1",
                "toolName": "notes__add",
                "duration": 1500,
                "durationMicros": 1_500_250,
                "errorCode": "E_MODEL",
                "errorMessage": "no answer",
                "presentation": { "line": "a note", "output": "full" },
            }),
        ),
    ] {
        let written = written(name, own);
        assert_eq!(event.name(), name);
        assert_eq!(event.scope(), &scope());
        assert_eq!(serde_json::to_value(&event).unwrap(), written);
        assert_eq!(serde_json::from_value::<RuntimeEvent>(written).unwrap(), event);
    }
}

fn broken_prefix() -> KeptPrefix {
    let mut broken = PrefixBreak::new(RequestPart::Messages, 3, PrefixChange::Removed);
    broken.extension_name = Some(ExtensionName::new("notes").unwrap());
    KeptPrefix { broken: Some(broken), ..KeptPrefix::new(10, 100) }
}

#[test]
fn missing_values_are_not_written_and_not_required() {
    let mut scope = scope();
    scope.span.parent = None;
    let event = RuntimeEvent::StepCompleted {
        scope,
        step: step(),
        tool_call_count: 0,
        duration: Duration::ZERO,
        token_usage: None,
        provider: None,
        model: Some("m1".to_owned()),
        time_to_first_piece: None,
        finish_reason: Some(ModelFinish::Stop),
        prepared_by: None,
        kept_prefix: None,
    };
    let written: Map<String, Value> = serde_json::from_str(&serde_json::to_string(&event).unwrap()).unwrap();
    assert!(!written.contains_key("parentSpanId") && !written.contains_key("tokenUsage"));
    assert!(!written.contains_key("preparedBy"));
    assert_eq!(serde_json::from_value::<RuntimeEvent>(written.into()).unwrap(), event);
}

#[test]
fn a_handler_reads_the_event_from_the_bus() {
    let event = RuntimeEvent::ToolCalled { scope: scope(), call: call(), presentation: "a note".into() };
    let on_the_bus = Event::new(event.name(), (&event,)).unwrap();
    assert_eq!(on_the_bus.payload::<RuntimeEvent>().unwrap(), event);
}

#[test]
fn spans_form_a_tree_in_the_trace_of_their_turn() {
    let caller = SpanId::random();
    let turn = Span::of_turn(Some(caller));
    let step = turn.child();
    assert_eq!((turn.parent, step.parent), (Some(caller), Some(turn.id)));
    assert_ne!(turn.id, step.id);
    assert_eq!(Span::of_turn(None).parent, None);
    let info = TurnInfo {
        agent: AgentName::new("bot").unwrap(),
        instance: InstanceKey::new("main").unwrap(),
        turn: TurnId::from("t1"),
        trace: TraceId::random(),
        input: AgentEvent::input("hi"),
        resumption: 0,
    };
    let scope = EventScope::now(&info, step);
    assert_eq!((scope.span, scope.trace_id, scope.turn_id), (step, info.trace, info.turn));
}

#[test]
fn span_ids_are_16_hexadecimal_digits() {
    let id = SpanId::random();
    assert_eq!(id.to_string().len(), 16);
    assert_eq!(id.to_string().parse::<SpanId>().unwrap(), id);
    for illegal in ["", "123", "00000000000000000ff", "+0000000000000ff", "000000000000000g", "0000000000000é0"] {
        assert_eq!(illegal.parse::<SpanId>().unwrap_err().code(), &ErrorCode::INPUT, "{illegal}");
    }
}

#[test]
fn the_input_of_a_model_shows_its_text_and_its_parts() {
    let later = Map::from_iter([("type".to_owned(), json!("later"))]);
    let parts = vec![TextPart::new("look").into(), Part::Other(Box::new(later))];
    let said = MessageData::new(Role::User, parts.clone());
    let input = LlmInputMessage::from(&said);
    assert_eq!((&*input.content.text(), input.content.parts()), ("look", &*parts));
    assert_eq!((&json!(input)["content"], &json!(input)["contentSource"]), (&json!("look"), &json!("summary")));
    assert_eq!(serde_json::from_value::<LlmInputMessage>(json!(input)).unwrap(), input);
}

#[test]
fn usage_of_several_calls_adds_up() {
    let one = TokenUsage { cached_prompt_tokens: 1, cost: Some(Cost::usd(0.1)), ..TokenUsage::new(1, 2) };
    let mut sum = TokenUsage { total_tokens: u64::MAX, cost: Some(Cost::usd(0.2)), ..one };
    sum += one;
    sum += TokenUsage::new(0, 1);
    let written = json!({
        "promptTokens": 2, "completionTokens": 5, "totalTokens": u64::MAX, "cachedPromptTokens": 2, "cost": 0.3,
    });
    assert_eq!(json!(sum), written);
    assert_eq!(serde_json::from_value::<TokenUsage>(written).unwrap(), sum);
}

#[test]
fn an_input_event_has_the_id_of_a_trace_and_no_other_text() {
    let mut input = serde_json::to_value(AgentEvent::input("hello")).unwrap();
    input["traceId"] = json!("my-trace");
    let error = serde_json::from_value::<AgentEvent>(input).unwrap_err();
    assert!(error.to_string().contains("`my-trace` is not the id of a trace"), "{error}");
}

#[test]
fn an_event_of_an_earlier_version_has_milliseconds_and_no_code() {
    let old = written("turn.failed", json!({ "duration": 1500, "errorMessage": "no answer" }));
    let event = RuntimeEvent::TurnFailed {
        scope: scope(),
        duration: Duration::from_millis(1500),
        error_code: None,
        error_message: "no answer".to_owned(),
        token_usage: None,
        whole_usage: None,
    };
    assert_eq!(serde_json::from_value::<RuntimeEvent>(old).unwrap(), event);
}
