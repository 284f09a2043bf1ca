//! An authorization server and an API behind it. Refresh tokens rotate: one that is used a second time ends all access
//! that came from the same sign-in, which is a logout.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use goondan::{Value, json};
use ring::digest::{SHA256, digest};

/// The id and the secret of the client, with characters that have to be encoded.
pub(crate) const CLIENT: (&str, &str) = ("the client:1", "client-secret/+& 47");

/// An authorization server, which answers until the process ends.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) url: String,
    state: Arc<Mutex<State>>,
}

/// What the server does next.
#[derive(Clone)]
pub(crate) struct Settings {
    /// How long tokens live.
    pub(crate) expires_in: u64,
    /// The status of answers to requests for tokens, if they fail.
    pub(crate) failing: Option<u16>,
    /// The scopes that are granted instead of those that are asked for.
    pub(crate) scope: Option<&'static str>,
    /// Whether a refresh token works again until what it was exchanged for is used.
    pub(crate) lenient: bool,
    /// Whether answers to refreshes end after the head: the client never learns the new token.
    pub(crate) silent: bool,
    /// Whether the API refuses new tokens too.
    pub(crate) useless: bool,
    /// How often a device has to ask.
    pub(crate) pending: u32,
    /// The name of the server that it tells after a sign-in.
    pub(crate) issuer: Option<String>,
    /// What a client that registers itself is told besides its id.
    pub(crate) registered: Value,
}

/// A client that has registered itself.
struct Client {
    redirect: String,
    /// A secret that is sent in the body.
    secret: String,
}

#[derive(Default)]
struct State {
    settings: Option<Settings>,
    count: u64,
    /// The code challenge and the redirect of each code.
    codes: BTreeMap<String, (String, String)>,
    /// The sign-in of each refresh token.
    refresh: BTreeMap<String, u64>,
    spent: BTreeMap<String, u64>,
    access: BTreeSet<String>,
    /// Every token and code that the server has made.
    secrets: Vec<String>,
    /// The requests, as `grant outcome`.
    log: Vec<String>,
    logouts: u32,
    /// The `authorization` headers of requests to the API.
    calls: Vec<String>,
    /// The documents at paths of `/.well-known`.
    documents: BTreeMap<String, Value>,
    /// The challenge to requests to the API without a token.
    challenge: Option<String>,
    /// The clients that have registered themselves, and what each sent.
    clients: BTreeMap<String, Client>,
    registrations: Vec<Value>,
    /// The parameter `resource` of the requests, as `grant resource`.
    resources: Vec<String>,
    /// The requests for documents.
    looked: Vec<String>,
    /// The address of the server that answers requests to the API which have a token.
    behind: Option<String>,
}

impl State {
    fn secret(&mut self, kind: &str) -> String {
        self.count += 1;
        let secret = format!("{kind}-{}-{:016x}", self.count, fastrand::u64(..));
        self.secrets.push(secret.clone());
        secret
    }

    fn settings(&mut self) -> &mut Settings {
        self.settings.get_or_insert(Settings {
            expires_in: 3600,
            failing: None,
            scope: None,
            lenient: false,
            silent: false,
            useless: false,
            pending: 0,
            issuer: None,
            registered: json!({}),
        })
    }

    fn issue(&mut self, sign_in: Option<u64>, scope: &str) -> Value {
        let access = self.secret("access");
        let settings = self.settings().clone();
        if !settings.useless {
            self.access.insert(access.clone());
        }
        let mut answer = json!({ "access_token": access, "token_type": "bearer", "expires_in": settings.expires_in });
        if let Some(sign_in) = sign_in {
            let refresh = self.secret("refresh");
            self.refresh.insert(refresh.clone(), sign_in);
            answer["refresh_token"] = refresh.into();
        }
        if !scope.is_empty() || settings.scope.is_some() {
            answer["scope"] = settings.scope.unwrap_or(scope).into();
        }
        answer
    }
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = Self { url, state: Arc::default() };
        let answering = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (server, stream) = (answering.clone(), stream.unwrap());
                std::thread::spawn(move || server.answer(stream));
            }
        });
        server
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn set(&self, change: impl FnOnce(&mut Settings)) {
        change(self.state().settings());
    }

    /// Returns the requests for tokens so far, each with its outcome.
    pub(crate) fn log(&self) -> Vec<String> {
        self.state().log.clone()
    }

    pub(crate) fn logouts(&self) -> u32 {
        self.state().logouts
    }

    pub(crate) fn secrets(&self) -> Vec<String> {
        self.state().secrets.clone()
    }

    /// Returns the `authorization` headers that the API got.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.state().calls.clone()
    }

    /// Makes the API refuse every access token so far.
    pub(crate) fn refuse_access(&self) {
        self.state().access.clear();
    }

    /// Ends every sign-in, as a user does in the settings of an account.
    pub(crate) fn revoke(&self) {
        let mut state = self.state();
        state.refresh.clear();
        state.access.clear();
    }

    /// Answers requests for a path of `/.well-known` with a document.
    pub(crate) fn document(&self, path: &str, document: Value) {
        self.state().documents.insert(format!("/.well-known/{path}"), document);
    }

    /// Answers requests to the API without a token with a challenge.
    pub(crate) fn challenge(&self, challenge: impl Into<String>) {
        self.state().challenge = Some(challenge.into());
    }

    /// Returns what clients sent that have registered themselves.
    pub(crate) fn registrations(&self) -> Vec<Value> {
        self.state().registrations.clone()
    }

    pub(crate) fn forget_clients(&self) {
        self.state().clients.clear();
    }

    /// Returns the parameter `resource` of the requests, as `grant resource`.
    pub(crate) fn resources(&self) -> Vec<String> {
        self.state().resources.clone()
    }

    /// Returns the paths of `/.well-known` that were asked for.
    pub(crate) fn looked(&self) -> Vec<String> {
        self.state().looked.clone()
    }

    /// Passes requests to the API which have a token on to the server at `address`.
    pub(crate) fn guard(&self, address: String) {
        self.state().behind = Some(address);
    }

    fn answer(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream);
        let (mut first, mut headers) = (String::new(), BTreeMap::new());
        if reader.read_line(&mut first).unwrap() == 0 {
            return;
        }
        let mut head = first.clone();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            head.push_str(&line);
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.insert(name.to_ascii_lowercase(), value.to_owned());
        }
        let mut body = vec![0; headers.get("content-length").map_or(0, |length| length.parse().unwrap())];
        reader.read_exact(&mut body).unwrap();
        let target = first.split(' ').nth(1).unwrap();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let form = |text: &[u8]| form_urlencoded::parse(text).into_owned().collect::<BTreeMap<_, _>>();
        let mut stream = reader.into_inner();
        let silent = path == "/token" && self.state().settings().silent;
        let (status, more, answer) = match path {
            "/token" => self.token(&form(&body), headers.get("authorization")),
            "/authorize" => self.authorize(&form(query.as_bytes())),
            "/device" => self.device(),
            "/register" => self.register(&body),
            _ if path.starts_with("/.well-known/") => self.well_known(path),
            _ => self.api(headers.get("authorization")),
        };
        if status == 200
            && path == "/mcp"
            && let Some(behind) = self.state().behind.clone()
        {
            let mut server = TcpStream::connect(behind).unwrap();
            server.write_all(head.as_bytes()).and_then(|()| server.write_all(&body)).unwrap();
            // A client that has read enough may be gone.
            let _ = std::io::copy(&mut server, &mut stream);
            return;
        }
        let body = answer.to_string();
        let head = format!("HTTP/1.1 {status} x\r\n{more}content-length: {}\r\nconnection: close\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).unwrap();
        if silent {
            // The connection stays open, so that the client waits.
            std::mem::forget(stream);
            self.state().log.push("silent".to_owned());
        } else {
            // A client that was killed does not read it.
            let _ = stream.write_all(body.as_bytes());
        }
    }

    #[expect(clippy::too_many_lines, reason = "a branch each grant")]
    fn token(&self, form: &BTreeMap<String, String>, authorization: Option<&String>) -> (u16, String, Value) {
        let mut state = self.state();
        let grant = form["grant_type"].rsplit(':').next().unwrap().to_owned();
        let settings = state.settings().clone();
        let text = |name: &str| form.get(name).cloned().unwrap_or_default();
        let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let basic = format!("Basic {}", STANDARD.encode(format!("{}:{}", encoded(CLIENT.0), encoded(CLIENT.1))));
        let registered = state.clients.get(&text("client_id"));
        let registered = registered.is_some_and(|client| client.secret == text("client_secret"));
        let public = (text("client_id") == CLIENT.0 || registered) && grant != "client_credentials";
        state.resources.extend(form.get("resource").map(|resource| format!("{grant} {resource}")));
        let outcome = match grant.as_str() {
            _ if settings.failing.is_some() => Err("server_error"),
            _ if authorization != Some(&basic) && !public => Err("invalid_client"),
            "client_credentials" => Ok(state.issue(None, &text("scope"))),
            "authorization_code" => match state.codes.remove(&text("code")) {
                Some((challenge, redirect)) if redirect == text("redirect_uri") => {
                    let verifier = text("code_verifier");
                    assert!(verifier.len() >= 43, "{verifier}");
                    if URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.as_bytes())) == challenge {
                        state.secrets.push(verifier);
                        let sign_in = state.count;
                        Ok(state.issue(Some(sign_in), "read write"))
                    } else {
                        Err("invalid_grant")
                    }
                }
                _ => Err("invalid_grant"),
            },
            "refresh_token" => {
                let refresh = text("refresh_token");
                let again = state.spent.get(&refresh).copied();
                match (state.refresh.remove(&refresh), again) {
                    (Some(sign_in), _) => {
                        state.spent.insert(refresh, sign_in);
                        Ok(state.issue(Some(sign_in), &text("scope")))
                    }
                    (None, Some(sign_in)) if settings.lenient => {
                        state.refresh.retain(|_, other| *other != sign_in);
                        Ok(state.issue(Some(sign_in), ""))
                    }
                    (None, Some(sign_in)) => {
                        state.refresh.retain(|_, other| *other != sign_in);
                        state.logouts += 1;
                        Err("invalid_grant")
                    }
                    (None, None) => Err("invalid_grant"),
                }
            }
            "device_code" if settings.pending > 0 => {
                state.settings().pending -= 1;
                Err("authorization_pending")
            }
            "device_code" => Ok(state.issue(Some(0), "read write")),
            _ => Err("unsupported_grant_type"),
        };
        state.log.push(format!("{grant} {}", outcome.as_ref().err().unwrap_or(&"ok")));
        match outcome {
            Ok(answer) => (200, String::new(), answer),
            Err(_) if settings.failing.is_some() => (settings.failing.unwrap(), String::new(), Value::Null),
            Err(error) => (400, String::new(), json!({ "error": error, "error_description": "as the test wants" })),
        }
    }

    /// Allows the access at once, and sends the browser back.
    fn authorize(&self, query: &BTreeMap<String, String>) -> (u16, String, Value) {
        assert_eq!(query["response_type"], "code");
        assert_eq!(query["code_challenge_method"], "S256");
        assert!(query["state"].len() >= 43 && query["code_challenge"].len() == 43, "{query:?}");
        let mut state = self.state();
        let redirect = &query["redirect_uri"];
        let known = state.clients.get(&query["client_id"]).is_some_and(|client| client.redirect == *redirect);
        if !known && query["client_id"] != CLIENT.0 {
            return (400, String::new(), json!("who are you?"));
        }
        state.resources.extend(query.get("resource").map(|resource| format!("authorize {resource}")));
        let code = state.secret("code");
        state.codes.insert(code.clone(), (query["code_challenge"].clone(), redirect.clone()));
        let issuer = state.settings().issuer.as_ref().map_or(String::new(), |issuer| {
            format!("&iss={}", form_urlencoded::byte_serialize(issuer.as_bytes()).collect::<String>())
        });
        (302, format!("location: {redirect}?code={code}&state={}{issuer}\r\n", query["state"]), Value::Null)
    }

    fn register(&self, body: &[u8]) -> (u16, String, Value) {
        let wanted: Value = goondan::json::from_slice(body).unwrap();
        let mut state = self.state();
        let mut answer = state.settings().registered.clone();
        if answer.get("error").is_some() {
            return (400, String::new(), answer);
        }
        let id = format!("registered {}", state.registrations.len());
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let client = Client { redirect: text(&wanted["redirect_uris"][0]), secret: text(&answer["client_secret"]) };
        state.clients.insert(id.clone(), client);
        state.registrations.push(wanted);
        answer["client_id"] = id.into();
        (201, String::new(), answer)
    }

    fn well_known(&self, path: &str) -> (u16, String, Value) {
        let mut state = self.state();
        state.looked.push(path.to_owned());
        match state.documents.get(path) {
            Some(document) => (200, String::new(), document.clone()),
            None => (404, String::new(), json!({ "error": "not found" })),
        }
    }

    fn device(&self) -> (u16, String, Value) {
        let mut state = self.state();
        let code = state.secret("device");
        let answer = json!({
            "device_code": code, "user_code": "WDJB-MJHT", "verification_uri": format!("{}/enter", self.url),
            "expires_in": 600, "interval": 1,
        });
        (200, String::new(), answer)
    }

    fn api(&self, authorization: Option<&String>) -> (u16, String, Value) {
        let mut state = self.state();
        let header = authorization.cloned().unwrap_or_default();
        state.calls.push(header.clone());
        let known = header.strip_prefix("Bearer ").is_some_and(|token| state.access.contains(token));
        match known {
            // It tells what it got, as some do.
            true => (200, "content-type: application/json\r\n".to_owned(), json!({ "authorization": header })),
            false => {
                let challenge = state.challenge.as_deref().unwrap_or("Bearer");
                (401, format!("www-authenticate: {challenge}\r\n"), json!("who are you?"))
            }
        }
    }
}

/// Opens a URL as a browser does, with redirects. Returns the status and the text of the last page.
pub(crate) async fn browse(url: &str) -> (u16, String) {
    let url = url.to_owned();
    // The extension may run on this thread.
    tokio::task::spawn_blocking(move || open(&url)).await.unwrap()
}

/// Returns where a URL leads to, without opening that.
pub(crate) async fn leads_to(url: &str) -> String {
    let url = url.to_owned();
    let head = tokio::task::spawn_blocking(move || request(&url).0).await.unwrap();
    head.lines().find_map(|line| line.strip_prefix("location: ")).unwrap_or_else(|| panic!("{head}")).to_owned()
}

fn open(url: &str) -> (u16, String) {
    let (head, body) = request(url);
    match head.lines().find_map(|line| line.strip_prefix("location: ")) {
        Some(location) => open(location),
        None => (head.split(' ').nth(1).unwrap().parse().unwrap(), body),
    }
}

/// Returns the head and the body of the response to a request.
fn request(url: &str) -> (String, String) {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nhost: {host}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}
