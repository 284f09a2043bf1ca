//! An app that has the URL of a resource alone: its authorization server is found out, and the app registers itself.

use goondan::testing::Chat;
use goondan::{Value, json};
use goondan_covers::both_linkages;
use tempfile::TempDir;

use super::server::{CLIENT, Server, browse, leads_to};
use super::support::{KEY, ask, ask_for, ask_in, chat_with, code, open_at, page};
use crate::linkage::WithPlugin;

const CHALLENGED: &str = "oauth-protected-resource/elsewhere";
const RESOURCE: &str = "oauth-protected-resource/mcp";
const SERVER: &str = "oauth-authorization-server";

/// Makes the server announce itself, and returns the URL of the resource.
pub(crate) fn announce(server: &Server) -> String {
    let (url, resource) = (&server.url, format!("{}/mcp", server.url));
    server.challenge(format!(r#"Basic realm="x", Bearer resource_metadata="{url}/.well-known/{CHALLENGED}""#));
    server.document(CHALLENGED, of_resource(server));
    server.document(SERVER, of_server(server));
    resource
}

fn of_resource(server: &Server) -> Value {
    let resource = format!("{}/mcp", server.url);
    json!({ "resource": resource, "authorization_servers": [server.url], "scopes_supported": ["read", "write"] })
}

fn of_server(server: &Server) -> Value {
    let url = |path: &str| format!("{}/{path}", server.url);
    json!({
        "issuer": server.url, "authorization_endpoint": url("authorize"), "token_endpoint": url("token"),
        "registration_endpoint": url("register"), "code_challenge_methods_supported": ["plain", "S256"],
    })
}

/// Returns a config with the app `announced`.
pub(crate) fn config(server: &Server) -> Value {
    let resource = format!("{}/mcp", server.url);
    let app = json!({ "flow": "authorization-code", "resource": resource, "subject": "global" });
    json!({ "apps": { "announced": app }, "store": { "key": KEY } })
}

async fn chat(server: &Server) -> Chat {
    chat_with(config(server), |agent| agent).await
}

fn wanted() -> Value {
    json!({ "app": "announced" })
}

/// Returns a parameter of a page's URL.
fn parameter(url: &str, name: &str) -> Option<String> {
    let query = url.split_once('?').unwrap().1;
    form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// Signs in, and returns the URL of the page.
async fn sign_in(chat: &mut Chat) -> String {
    let url = leads_to(&page(&ask(chat, wanted()).await)).await;
    let (status, text) = browse(&url).await;
    assert!(status == 200 && text.contains("is allowed"), "{text}");
    url
}

/// Asserts that the app cannot be used, and that the message has `about`.
async fn assert_unusable(server: &Server, about: &str) {
    let answer = ask(&mut chat(server).await, wanted()).await;
    assert_eq!(code(&answer), "configurationError", "{answer}");
    assert!(answer["message"].as_str().unwrap().contains(about), "{answer}");
}

#[both_linkages]
async fn a_challenge_leads_to_a_registration_and_to_a_token_for_the_resource() {
    let server = Server::start();
    let resource = announce(&server);
    let mut chat = chat(&server).await;
    let url = sign_in(&mut chat).await;
    assert_eq!(parameter(&url, "scope").unwrap(), "read write");
    let looked = [CHALLENGED, SERVER].map(|path| format!("/.well-known/{path}"));
    assert_eq!(server.looked(), looked);
    let redirect = parameter(&url, "redirect_uri").unwrap();
    let expected = json!({
        "client_name": "goondan", "application_type": "native", "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    });
    assert_eq!(server.registrations(), [expected]);
    assert_eq!(ask(&mut chat, json!({ "app": "announced", "scopes": ["write", "read"] })).await["kind"], "Bearer");
    assert_eq!(code(&ask(&mut chat, json!({ "app": "announced", "scopes": ["admin"] })).await), "scopeNotAllowed");
    // A refresh asks the server of the token, whatever is announced by then.
    chat.restart().await.unwrap();
    server.document(SERVER, json!({}));
    assert_eq!(ask(&mut chat, json!({ "app": "announced", "refused": true })).await["kind"], "Bearer");
    let expected = ["authorize", "authorization_code", "refresh_token"].map(|grant| format!("{grant} {resource}"));
    assert_eq!(server.resources(), expected);
    assert_eq!(server.looked().len(), 2);
}

#[both_linkages]
async fn without_a_challenge_the_known_paths_are_asked() {
    let server = Server::start();
    server.document(SERVER, of_server(&server));
    server.document(RESOURCE, of_resource(&server));
    sign_in(&mut chat(&server).await).await;
    // The paths without that of the resource, and a server with a path that announces itself by OpenID Connect.
    let server = Server::start();
    let issuer = format!("{}/tenant", server.url);
    let mut resource = of_resource(&server);
    (resource["resource"], resource["authorization_servers"]) = (server.url.clone().into(), json!([issuer]));
    server.document("oauth-protected-resource", resource);
    let mut announced = of_server(&server);
    (announced["issuer"], announced["scopes_supported"]) = (issuer.into(), json!(["offline_access", "read"]));
    server.document("openid-configuration/tenant", announced);
    let url = sign_in(&mut chat(&server).await).await;
    assert_eq!(parameter(&url, "resource"), Some(server.url.clone()));
    assert_eq!(parameter(&url, "scope").unwrap(), "read write offline_access");
    let looked = [RESOURCE, "oauth-protected-resource", "oauth-authorization-server/tenant"];
    let looked = [&looked[..], &["openid-configuration/tenant"]].concat();
    assert_eq!(server.looked(), looked.iter().map(|path| format!("/.well-known/{path}")).collect::<Vec<_>>());
}

#[both_linkages]
async fn scopes_are_those_of_the_config_then_of_the_challenge() {
    let server = Server::start();
    announce(&server);
    let metadata = format!("{}/.well-known/{CHALLENGED}", server.url);
    server.challenge(format!(r#"Bearer scope="read", resource_metadata="{metadata}""#));
    let url = leads_to(&page(&ask(&mut chat(&server).await, wanted()).await)).await;
    assert_eq!(parameter(&url, "scope").unwrap(), "read");
    let mut config = config(&server);
    config["apps"]["announced"]["scopes"] = json!(["write"]);
    let mut chat = chat_with(config, |agent| agent).await;
    let url = leads_to(&page(&ask(&mut chat, wanted()).await)).await;
    assert_eq!(parameter(&url, "scope").unwrap(), "write");
    let other = json!({ "app": "announced", "scopes": ["read"] });
    assert_eq!(code(&ask(&mut chat, other).await), "scopeNotAllowed");
}

#[both_linkages]
async fn what_is_announced_wrongly_is_refused() {
    let server = Server::start();
    assert_unusable(&server, "announces no authorization server").await;
    announce(&server);
    let other = Server::start();
    let mut resource = of_resource(&server);
    for wrong in [format!("{}/mcp", other.url), format!("{}/mc", server.url), "mcp".to_owned()] {
        resource["resource"] = wrong.into();
        server.document(CHALLENGED, resource.clone());
        assert_unusable(&server, "announces itself as another resource").await;
    }
    let mut resource = of_resource(&server);
    resource["authorization_servers"] = json!([]);
    server.document(CHALLENGED, resource.clone());
    assert_unusable(&server, "announces no authorization server in its metadata").await;
    resource["authorization_servers"] = json!(["http://example.com"]);
    server.document(CHALLENGED, resource);
    assert_unusable(&server, "unsafe URL as `authorization_servers`: `http://example.com`").await;
    server.document(CHALLENGED, of_resource(&server));
    for (member, value, about) in [
        ("issuer", json!(other.url), "announces itself as another"),
        ("code_challenge_methods_supported", json!(["plain"]), "does not announce PKCE with `S256`"),
        ("code_challenge_methods_supported", json!([]), "does not announce PKCE with `S256`"),
        ("token_endpoint", json!("http://example.com/token"), "an unsafe URL"),
        ("authorization_endpoint", json!("file:///etc/passwd"), "an unsafe URL"),
        ("authorization_endpoint", json!(null), "does not announce its pages"),
        ("registration_endpoint", json!(null), "registers no apps by itself"),
    ] {
        let mut announced = of_server(&server);
        announced[member] = value;
        server.document(SERVER, announced);
        assert_unusable(&server, about).await;
    }
    server.document(SERVER, of_server(&server));
    server.set(|settings| settings.registered = json!({ "error": "invalid_redirect_uri" }));
    assert_unusable(&server, "does not register it: `invalid_redirect_uri`").await;
    server.set(|settings| settings.registered = json!({ "token_endpoint_auth_method": "private_key_jwt" }));
    assert_unusable(&server, "to sign requests").await;
    assert_eq!((server.resources(), other.looked()), (Vec::new(), Vec::new()));
}

#[both_linkages]
async fn a_client_of_the_config_is_not_registered() {
    let server = Server::start();
    announce(&server);
    let mut config = config(&server);
    config["apps"]["announced"]["clientId"] = CLIENT.0.into();
    config["apps"]["announced"]["clientSecret"] = CLIENT.1.into();
    let mut chat = chat_with(config.clone(), |agent| agent).await;
    sign_in(&mut chat).await;
    assert_eq!(ask(&mut chat, json!({ "app": "announced", "refused": true })).await["kind"], "Bearer");
    assert_eq!((server.registrations(), server.log().len()), (Vec::new(), 2));
}

#[both_linkages]
async fn a_registration_is_kept_and_used_again_while_its_port_is_free() {
    let (root, server) = (TempDir::new().unwrap(), Server::start());
    announce(&server);
    let secret = "registered-secret-+/& 11";
    let told = json!({ "client_secret": secret, "token_endpoint_auth_method": "client_secret_post" });
    server.set(|settings| settings.registered = told);
    let chat = open_at(root.path(), "a", config(&server)).await;
    let first = leads_to(&page(&ask_in(&chat, None, wanted()).await[0])).await;
    chat.close().await.unwrap();
    for file in ["oauth.json", "oauth/announced.lock"] {
        let text = std::fs::read_to_string(root.path().join("extensions").join(file)).unwrap();
        assert!(!text.contains(secret) && !text.contains("registered"), "{text}");
    }

    let chat = open_at(root.path(), "b", config(&server)).await;
    let again = leads_to(&page(&ask_in(&chat, None, wanted()).await[0])).await;
    for name in ["client_id", "redirect_uri"] {
        assert_eq!(parameter(&first, name), parameter(&again, name));
    }
    assert_eq!(server.registrations().len(), 1);
    assert_eq!(browse(&again).await.0, 200);
    assert_eq!(ask_in(&chat, None, wanted()).await[0]["kind"], "Bearer");
    // The access ends, and another listener has the port.
    server.revoke();
    let refused = json!({ "app": "announced", "refused": true });
    assert_eq!(code(&ask_in(&chat, None, refused.clone()).await[0]), "tokenRevoked");
    let address = parameter(&first, "redirect_uri").unwrap();
    let address = address.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
    let taken = std::net::TcpListener::bind(address).unwrap();
    let other = leads_to(&page(&ask_in(&chat, None, wanted()).await[0])).await;
    assert_ne!(parameter(&first, "redirect_uri"), parameter(&other, "redirect_uri"));
    assert_eq!(browse(&other).await.0, 200);
    assert_eq!(ask_in(&chat, None, wanted()).await[0]["kind"], "Bearer");
    assert_eq!(server.registrations().len(), 2);
    drop(taken);
    // The server forgets the registration.
    server.forget_clients();
    assert_eq!(code(&ask_in(&chat, None, refused).await[0]), "tokenRevoked");
    assert_eq!(browse(&leads_to(&page(&ask_in(&chat, None, wanted()).await[0])).await).await.0, 200);
    assert_eq!(ask_in(&chat, None, wanted()).await[0]["kind"], "Bearer");
    assert_eq!(server.registrations().len(), 3);
    // The resource announces another authorization server, which does not know the registration.
    chat.close().await.unwrap();
    server.revoke();
    let (mut resource, mut announced, issuer) = (of_resource(&server), of_server(&server), format!("{}/x", server.url));
    (resource["authorization_servers"], announced["issuer"]) = (json!([issuer]), issuer.into());
    server.document(CHALLENGED, resource);
    server.document(&format!("{SERVER}/x"), announced);
    let chat = open_at(root.path(), "c", config(&server)).await;
    let refused = json!({ "app": "announced", "refused": true });
    assert_eq!(code(&ask_in(&chat, None, refused).await[0]), "tokenRevoked");
    leads_to(&page(&ask_in(&chat, None, wanted()).await[0])).await;
    assert_eq!(server.registrations().len(), 4);
    chat.close().await.unwrap();
}

#[both_linkages]
async fn an_answer_of_another_server_is_not_redeemed() {
    let server = Server::start();
    announce(&server);
    let mut announced = of_server(&server);
    announced["authorization_response_iss_parameter_supported"] = json!(true);
    server.document(SERVER, announced);
    let mut chat = chat(&server).await;
    for issuer in [None, Some("https://example.com".to_owned())] {
        server.set(|settings| settings.issuer = issuer);
        let (_, text) = browse(&leads_to(&page(&ask(&mut chat, wanted()).await)).await).await;
        assert!(text.contains("is not allowed"), "{text}");
    }
    assert_eq!(server.log(), [""; 0]);
    let own = server.url.clone();
    server.set(|settings| settings.issuer = Some(own));
    sign_in(&mut chat).await;
}

#[both_linkages]
async fn a_config_that_is_half_announced_is_refused() {
    let server = Server::start();
    for (member, value, about) in [
        ("authorizeUrl", json!(server.url), "has no `tokenUrl`"),
        ("tokenUrl", json!(server.url), "has no `authorizeUrl`"),
        ("clientSecret", json!("secret"), "has a `clientSecret` and no `clientId`"),
        ("resource", json!("http://example.com/mcp"), "does not begin with `https://`"),
        ("resource", json!("https://example.com/mcp#x"), "has a fragment"),
        ("flow", json!("client-credentials"), "has no `tokenUrl`"),
    ] {
        let mut config = config(&server);
        config["apps"]["announced"][member] = value;
        let chat = Chat::builder().agent(|agent| agent.plugin("oauth", "oauth", config));
        let report = chat.start().await.unwrap_err().report().to_string();
        assert!(report.contains("E_EXT_CONFIG") && report.contains(about), "{report}");
    }
}

#[both_linkages]
async fn a_document_that_does_not_end_is_not_read() {
    let server = Server::start();
    announce(&server);
    let mut resource = of_resource(&server);
    resource["resource_name"] = "x".repeat(1_000_000).into();
    server.document(CHALLENGED, resource);
    let mut chat = chat(&server).await;
    let answer = ask(&mut chat, wanted()).await;
    assert_eq!(code(&answer), "refreshFailed");
    assert!(answer["message"].as_str().unwrap().contains("is longer than"), "{answer}");
    // It is asked again.
    server.document(CHALLENGED, of_resource(&server));
    sign_in(&mut chat).await;
}

#[both_linkages]
async fn a_user_has_a_registration_in_the_conversation() {
    let server = Server::start();
    announce(&server);
    let mut config = config(&server);
    config["apps"]["announced"]["subject"] = "user".into();
    let mut chat = chat_with(config, |agent| agent).await;
    let first = leads_to(&page(&ask_for(&chat, "ada", wanted()).await)).await;
    chat.restart().await.unwrap();
    let again = leads_to(&page(&ask_for(&chat, "ada", wanted()).await)).await;
    assert_eq!(parameter(&first, "client_id"), parameter(&again, "client_id"));
    assert_ne!(
        parameter(&first, "client_id"),
        parameter(&leads_to(&page(&ask_for(&chat, "bob", wanted()).await)).await, "client_id")
    );
    assert_eq!(browse(&again).await.0, 200);
    assert_eq!(ask_for(&chat, "ada", wanted()).await["kind"], "Bearer");
    let states = format!("{:?}", chat.instance().states().await.unwrap());
    assert!(states.contains("announced.client") && !states.contains("registered"), "{states}");
}

#[both_linkages]
async fn a_resource_is_named_to_a_server_of_the_config_too() {
    let server = Server::start();
    let mut config = super::support::config(&server);
    config["apps"]["service"]["resource"] = "https://example.com/mcp".into();
    let mut chat = chat_with(config, |agent| agent).await;
    assert_eq!(ask(&mut chat, json!({ "app": "service" })).await["kind"], "Bearer");
    assert_eq!(server.resources(), ["client_credentials https://example.com/mcp"]);
}
