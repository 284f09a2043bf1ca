//! Requests of `http-fetch` with a token.

use std::io::{Read, Write};
use std::net::TcpListener;

use goondan::testing::Chat;
use goondan::{Value, json};
use goondan_covers::both_linkages;

use super::server::{Server, browse};
use super::support::{chat_with, config};
use crate::call::{call, refused};
use crate::linkage::WithPlugin;

/// Opens a conversation in which requests to the API have a token of `app`.
async fn chat(server: &Server, app: &str) -> Chat {
    let fetch = json!({
        "allowHosts": ["127.0.0.1", "localhost"],
        "auth": { &server.url: { "oauth": app, "scopes": ["read"] } },
    });
    chat_with(config(server), |agent| agent.plugin("http-fetch", "http-fetch", fetch)).await
}

#[both_linkages]
async fn a_request_to_a_site_of_the_config_has_the_token_and_the_model_does_not() {
    let server = Server::start();
    let mut chat = chat(&server, "service").await;
    let arguments = json!({ "url": format!("{}/api", server.url), "headers": { "Authorization": "Bearer mine" } });
    let answer = call(&mut chat, "http-fetch__get", arguments.clone()).await;
    assert_eq!((&answer["status"], &answer["body"]), (&json!(200), &json!(r#"{"authorization":"Bearer ***"}"#)));
    assert_eq!(server.calls(), [format!("Bearer {}", server.secrets()[0])]);
    // A token that is refused is renewed once.
    server.refuse_access();
    assert_eq!(call(&mut chat, "http-fetch__get", arguments).await["status"], 200);
    assert_eq!((server.log().len(), server.calls().len()), (2, 3));
}

#[both_linkages]
async fn no_other_site_is_sent_a_token() {
    let server = Server::start();
    let mut chat = chat(&server, "service").await;
    let other = Server::start();
    let elsewhere = server.url.replace("127.0.0.1", "localhost");
    for url in [&other.url, &elsewhere] {
        let answer = call(&mut chat, "http-fetch__get", json!({ "url": format!("{url}/api") })).await;
        assert_eq!(answer["status"], 401);
    }
    assert_eq!((server.calls(), other.calls()), (vec![String::new()], vec![String::new()]));
    assert_eq!(server.log(), [""; 0], "there was no need of a token");
    // A redirect leaves it behind.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let target = other.url.clone();
    let got = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = vec![0; 4096];
        let length = stream.read(&mut request).unwrap();
        write!(stream, "HTTP/1.1 307 x\r\nlocation: {target}/api\r\ncontent-length: 0\r\n\r\n").unwrap();
        String::from_utf8_lossy(&request[..length]).into_owned()
    });
    let fetch = json!({ "allowHosts": ["127.0.0.1"], "auth": { &url: { "oauth": "service" } } });
    let with_fetch = chat_with(config(&server), |agent| agent.plugin("http-fetch", "http-fetch", fetch)).await;
    let mut chat = with_fetch;
    assert_eq!(call(&mut chat, "http-fetch__get", json!({ "url": format!("{url}/api") })).await["status"], 401);
    assert!(got.join().unwrap().contains("authorization: Bearer access-"));
    assert_eq!(other.calls().last().unwrap(), "");
}

#[both_linkages]
async fn a_request_that_needs_a_sign_in_says_where() {
    let server = Server::start();
    let mut chat = chat(&server, "page").await;
    let arguments = json!({ "url": format!("{}/api", server.url) });
    let (code, message) = refused(&mut chat, "http-fetch__get", arguments.clone()).await;
    assert_eq!(code, "authorizationRequired");
    let url = message.split([' ', ',']).find(|word| word.starts_with("http://")).unwrap();
    browse(url).await;
    assert_eq!(call(&mut chat, "http-fetch__get", arguments).await["status"], 200);
}

#[both_linkages]
async fn a_site_that_is_none_or_without_tls_is_refused() {
    for site in
        ["api.github.com", "http://api.github.com", "https://api.github.com/users", "https://a@b.c", "ftp://a.b"]
    {
        let config = json!({ "auth": { site: { "oauth": "github" } } });
        let error = Chat::builder().agent(|agent| agent.plugin("http-fetch", "http-fetch", config)).start().await;
        let report = error.unwrap_err().report().to_string();
        assert!(report.contains("E_EXT_CONFIG") && report.contains(&format!("`auth` has `{site}`")), "{report}");
    }
    let config: Value = json!({ "auth": { "https://api.github.com": { "oauth": "github" } } });
    Chat::builder().agent(|agent| agent.plugin("http-fetch", "http-fetch", config)).start().await.unwrap();
}
