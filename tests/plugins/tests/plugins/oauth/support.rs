//! Conversations with the extension, and an extension that asks it.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use goondan::agent::{Agent, AgentBuilder, Instance};
use goondan::event::{AgentEvent, Auth, Principal};
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::store::FileStore;
use goondan::testing::Chat;
use goondan::{Value, json};
use goondan_oauth_client::Token;
use ring::digest::{SHA256, digest};

use super::server::{CLIENT, Server};
use crate::linkage::WithPlugin;

/// The key of the store: the bytes 1 to 32.
pub(crate) const KEY: &str = "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=";

/// Asks for tokens, by a tool and by a middleware.
#[goondan::extension(name = "asker")]
pub(crate) mod asker {
    use goondan::prelude::*;
    use goondan::{Value, json};
    use goondan_oauth_client::{TokenRequest, get_access_token, get_access_token_in_call};

    use super::digest_of;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase")]
    struct Ask {
        /// The app.
        app: String,
        /// The scopes.
        #[serde(default)]
        scopes: Vec<String>,
        /// How often to ask at once.
        #[serde(default = "one")]
        times: usize,
        /// Whether the token of now counts as refused.
        #[serde(default)]
        refused: bool,
    }

    fn one() -> usize {
        1
    }

    async fn ask(api: &ExtensionApi, ask: Ask) -> Result<Vec<Value>> {
        let mut request = TokenRequest::new(ask.app).scopes(ask.scopes);
        if ask.refused {
            request = request.clone().instead_of(&get_access_token(api, &request).await?);
        }
        let asked: Vec<_> = (0..ask.times)
            .map(|_| {
                let (api, request) = (api.clone(), request.clone());
                tokio::spawn(async move {
                    match get_access_token(&api, &request).await {
                        Ok(token) => json!({ "digest": digest_of(&token), "scopes": token.scopes, "kind": token.kind }),
                        Err(error) => json!({ "code": error.code().as_str(), "message": error.message() }),
                    }
                })
            })
            .collect();
        let mut answers = Vec::new();
        for answer in asked {
            answers.push(answer.await?);
        }
        Ok(answers)
    }

    /// Asks for a token.
    #[tool]
    async fn ask_tool(input: Ask, api: &ExtensionApi) -> Result<Vec<Value>> {
        ask(api, input).await
    }

    /// Uses a token, which the person may have to allow first.
    #[tool(effect = read, asks, timeout = "30s")]
    async fn in_call(input: Ask, ctx: &ToolContext<'_>, api: &ExtensionApi) -> Result<String> {
        let token = get_access_token_in_call(ctx, api, &TokenRequest::new(input.app)).await?;
        Ok(digest_of(&token))
    }

    /// Asks for a token, and fails with it in its error, in the log and in its progress.
    #[tool]
    async fn leak(input: Ask, ctx: &ToolContext<'_>, api: &ExtensionApi) -> Result<()> {
        let token = get_access_token(api, &TokenRequest::new(input.app)).await?;
        let text = token.text.expose();
        ctx.progress(0.0, None, text);
        api.logger().warn(format!("{token:?}"));
        Err(Error::msg(format!("401 for {text}")))
    }

    /// Asks for what the metadata of the input say, and emits what it gets as the event `asked`, without the token.
    #[middleware(turn)]
    async fn ask_first(ctx: &mut TurnContext<'_>, next: Next<'_, Turn>, api: &ExtensionApi) -> Result<TurnResult> {
        if let Some(wanted) = ctx.input().metadata.get("ask") {
            api.events().emit("asked", (ask(api, Ask::deserialize(wanted)?).await?,));
        }
        next.run(ctx).await
    }
}

/// Returns what identifies a token, and does not tell it.
pub(crate) fn digest_of(token: &Token) -> String {
    fingerprint(token.text.expose())
}

pub(crate) fn fingerprint(secret: &str) -> String {
    STANDARD.encode(digest(&SHA256, secret.as_bytes()))
}

/// Returns the config with an app for each flow.
pub(crate) fn config(server: &Server) -> Value {
    config_at(&server.url)
}

pub(crate) fn config_at(url: &str) -> Value {
    let app = |more: Value| {
        let mut app = json!({
            "tokenUrl": format!("{url}/token"), "clientId": CLIENT.0, "scopes": ["read", "write"], "subject": "global",
        });
        app.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        app
    };
    let (page, code) = (format!("{url}/authorize"), format!("{url}/device"));
    let apps = json!({
        "service": app(json!({ "flow": "client-credentials", "clientSecret": CLIENT.1 })),
        "page": app(json!({ "flow": "authorization-code", "authorizeUrl": page })),
        "users": app(json!({ "flow": "authorization-code", "authorizeUrl": page, "subject": "user" })),
        "device": app(json!({ "flow": "device-code", "deviceUrl": code, "clientSecret": CLIENT.1 })),
    });
    json!({ "apps": apps, "store": { "key": KEY } })
}

pub(crate) async fn chat(server: &Server) -> Chat {
    chat_with(config(server), |agent| agent).await
}

/// Opens a conversation with the extensions `oauth` and `asker`.
pub(crate) async fn chat_with(config: Value, more: impl FnOnce(AgentBuilder) -> AgentBuilder) -> Chat {
    let chat = Chat::builder().with::<asker::Extension>(json!({}));
    let chat = chat.agent(|agent| more(agent.plugin("oauth", "oauth", config)));
    chat.script([ScriptItem::say("fine").repeat()]).start().await.unwrap()
}

/// Asks by the tool, and returns the answers.
pub(crate) async fn ask_all(chat: &mut Chat, ask: Value) -> Vec<Value> {
    let result = chat.call("asker__ask_tool", ask).await.unwrap();
    result.output().unwrap_or_else(|| panic!("{result:?}")).as_array().unwrap().clone()
}

/// Asks by the tool once, and returns the answer.
pub(crate) async fn ask(chat: &mut Chat, ask: Value) -> Value {
    ask_all(chat, ask).await.remove(0)
}

/// Asks by the middleware in a turn of `user`, and returns the answer.
pub(crate) async fn ask_for(chat: &Chat, user: &str, ask: Value) -> Value {
    ask_in(chat.instance(), Some(user), ask).await.remove(0)
}

/// Asks by the middleware, and returns the answers.
pub(crate) async fn ask_in(instance: &Instance, user: Option<&str>, ask: Value) -> Vec<Value> {
    let mut asked = instance.events().subscribe("asked").unwrap();
    let mut event = AgentEvent::input("go");
    event.auth = user.map(|user| Auth::new(Principal::new("user", user)));
    event.metadata.insert("ask".to_owned(), ask);
    instance.run(event).await.unwrap();
    asked.next().await.unwrap().payload().unwrap()
}

/// Opens the conversation `key` below a state root.
pub(crate) async fn open_at(root: &Path, key: &str, config: Value) -> Instance {
    let agent = Agent::builder("assistant").store(FileStore::open(root).unwrap());
    let agent = agent.model(ScriptedModel::new([ScriptItem::say("fine").repeat()]));
    let agent = agent.extension::<asker::Extension>(json!({})).plugin("oauth", "oauth", config);
    agent.build().unwrap().instance(key).await.unwrap()
}

/// Returns the code of an answer that is an error.
pub(crate) fn code(answer: &Value) -> &str {
    answer["code"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

/// Returns the URL in an answer that asks for a sign-in.
pub(crate) fn page(answer: &Value) -> String {
    assert_eq!(code(answer), "authorizationRequired", "{answer}");
    let message = answer["message"].as_str().unwrap();
    message.split([' ', ',']).find(|word| word.starts_with("http://")).unwrap().to_owned()
}
