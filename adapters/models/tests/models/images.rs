//! Images that the model of OpenAI made: files of the answer, which go back as OpenAI takes them.

use goondan_core::Part;
use goondan_models::providers;
use goondan_models::wire::{Anthropic, Responses, Wire};
use goondan_runtime::ModelResponse;
use serde_json::{Value, json};

use crate::support::{Asked, Played, Sent, ask, config, data, sent_body};

/// Returns the answer with this image item.
async fn answer(begun: Value, done: Value) -> ModelResponse {
    let events = [
        json!({ "type": "response.created", "response": {} }),
        json!({ "type": "response.output_item.added", "output_index": 0, "item": begun }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": done }),
        json!({ "type": "response.completed", "response": {} }),
    ];
    let stream: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let model = config("http://127.0.0.1:9").model(&providers::OPENAI, Responses).unwrap();
    ask(&model.with_transport(Sent::to([Played::events(&stream)]))).await.unwrap()
}

fn item(more: Value) -> Value {
    let mut item = json!({ "id": "ig_1", "type": "image_generation_call" });
    item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    item
}

#[tokio::test]
async fn an_image_is_a_file_of_the_format_that_was_made() {
    for (more, media_type) in [
        (json!({}), "image/png"),
        (json!({ "output_format": "webp" }), "image/webp"),
        (json!({ "output_format": "no; format" }), "image/png"),
    ] {
        let mut done = item(json!({ "status": "completed", "result": "AQID" }));
        done.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = answer(item(json!({ "status": "in_progress", "result": null })), done).await;
        let [Part::File(file)] = &*answer.content else { panic!("{answer:?}") };
        assert_eq!((&*file.media_type, &*file.url), (media_type, &*format!("data:{media_type};base64,AQID")));
    }
    let failed = item(json!({ "status": "failed", "result": null }));
    let answer = answer(item(json!({ "status": "in_progress" })), failed).await;
    assert!(matches!(&*answer.content, [Part::Provider(_)]), "{answer:?}");
}

#[tokio::test]
async fn an_image_goes_back_to_the_model_that_made_it_and_is_named_to_others() {
    let rest = item(json!({ "status": "completed", "output_format": "png", "action": "generate", "size": "1x1" }));
    let image = json!({ "type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AQID",
        "provider": data("openai", "m", rest) });
    let asked = || {
        Asked::messages(json!([
            { "role": "user", "content": "draw" },
            { "role": "assistant", "content": [image] },
            { "role": "user", "content": "brighter" },
        ]))
    };
    let end = "data: {\"type\":\"response.completed\",\"response\":{}}\n\n";
    let second =
        async |model| sent_body(&providers::OPENAI, Responses, model, end, asked()).await.unwrap()["input"][1].take();
    // OpenAI refuses the other members.
    let expected = json!({ "type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "AQID" });
    assert_eq!(second("m").await, expected);

    let named = "[A file of the type image/png is not shown: this model cannot read it.]";
    let message = second("other").await;
    assert_eq!((&message["role"], &message["content"]), (&json!("assistant"), &json!(named)));
    let end = "data: {\"type\":\"message_start\",\"message\":{}}\n\ndata: {\"type\":\"message_stop\"}\n\n";
    let body = sent_body(&providers::ANTHROPIC, Anthropic, "m", end, asked()).await.unwrap();
    assert_eq!(body["messages"][1]["content"][0]["text"], named, "over {}", Anthropic::API);
}
