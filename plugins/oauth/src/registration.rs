//! The registration of an app with an authorization server that was found out: RFC 7591.

use std::io;

use goondan::{Secret, json};
use goondan_oauth_client::code;
use reqwest::Url;
use reqwest::header::CONTENT_TYPE;
use serde::Deserialize;

use crate::app::{App, Client, OwnClient};
use crate::callback::Callback;
use crate::discovery::{Announced, Issuer};
use crate::failure::Failure;
use crate::kept::{Owner, Registration, now};
use crate::server::Refusal;
use crate::tokens::Tokens;

/// A page on which a person allows an access.
pub(crate) struct Page {
    pub(crate) url: Url,
    /// Who exchanges the code for a token.
    pub(crate) client: Client,
    pub(crate) scopes: Vec<String>,
    /// The authorization server, if it was found out.
    pub(crate) issuer: Option<Issuer>,
}

#[derive(Deserialize)]
struct Registered {
    client_id: String,
    client_secret: Option<Secret>,
    client_secret_expires_at: Option<u64>,
    token_endpoint_auth_method: Option<String>,
}

impl Registered {
    /// Returns the stored registration, if the app can identify itself in one of the ways that the server accepts.
    fn registration(self, app: &App, issuer: &str, port: u16) -> Result<Registration, Failure> {
        let method = self.token_endpoint_auth_method.as_deref();
        if !matches!(method, None | Some("none" | "client_secret_basic" | "client_secret_post")) {
            return Err(unregistered(format!("`{issuer}` wants the app `{}` to sign requests", app.name)));
        }
        Ok(Registration {
            issuer: issuer.to_owned(),
            port,
            client_id: self.client_id,
            client_secret: self.client_secret.filter(|_| method != Some("none")),
            secret_in_body: method == Some("client_secret_post"),
            // 0: never
            expires_at: self.client_secret_expires_at.filter(|expires_at| *expires_at != 0),
        })
    }
}

/// Returns the failure of an authorization server with which the app cannot register itself.
fn unregistered(why: String) -> Failure {
    let suggestion = "register the app with its authorization server, and write its `clientId`";
    let message = format!("the authorization server {why}");
    Failure { suggestion, ..Failure::new(code::CONFIGURATION_ERROR, message.trim_end()) }
}

impl Tokens {
    /// Returns the page of the authorization server that a resource announces, and the listener for the browser.
    pub(crate) async fn announced_page(
        &self,
        app: &App,
        owner: &Owner,
        resource: &Url,
        own: Option<&OwnClient>,
        port: u16,
    ) -> Result<(Callback, Page), Failure> {
        let announced = self.server.discover(resource).await?;
        let (callback, id, secret, secret_in_body) = match own {
            Some(OwnClient { id, secret }) => (self.listen(app, port).await?, id.clone(), secret.clone(), false),
            None => {
                let (callback, known) = self.registration(app, owner, &announced, port).await?;
                (callback, known.client_id, known.client_secret, known.secret_in_body)
            }
        };
        let Announced { resource, scopes, issuer, authorize_url: url, token_url, .. } = announced;
        let scopes = if app.scopes.is_empty() { scopes } else { app.scopes.clone() };
        let client = Client { token_url: token_url.into(), id, secret, secret_in_body, resource: Some(resource) };
        Ok((callback, Page { url, client, scopes, issuer: Some(issuer) }))
    }

    /// Returns the registration that is kept if its port is free, else a new one.
    async fn registration(
        &self,
        app: &App,
        owner: &Owner,
        announced: &Announced,
        port: u16,
    ) -> Result<(Callback, Registration), Failure> {
        let known = self.store.registration(app, owner)?.filter(|known| {
            let is_current = known.expires_at.is_none_or(|expires_at| expires_at > now());
            is_current && known.issuer == announced.issuer.name && (port == 0 || port == known.port)
        });
        if let Some(known) = known {
            match Callback::listen(known.port).await {
                Ok(callback) => return Ok((callback, known)),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && port == 0 => {}
                Err(error) => return Err(Failure::listening(app, known.port, &error)),
            }
        }
        let issuer = &announced.issuer.name;
        let Some(url) = &announced.registration_url else {
            return Err(unregistered(format!("`{issuer}` of `{}` registers no apps by itself", app.name)));
        };
        let callback = self.listen(app, port).await?;
        let wanted = json!({
            "client_name": "goondan",
            "application_type": "native",
            "redirect_uris": [callback.url()],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        });
        let request = self.server.0.post(url.clone()).header(CONTENT_TYPE, "application/json");
        let registered: Registered = self.server.ask(request.body(wanted.to_string())).await.map_err(|refusal| {
            let why = match &refusal {
                Refusal::Named { error, description } => format!("`{error}` {description}"),
                Refusal::Unclear { status } if status.is_client_error() => status.to_string(),
                _ => return refusal.failure(app),
            };
            unregistered(format!("`{issuer}` of `{}` does not register it: {why}", app.name))
        })?;
        let registration = registered.registration(app, issuer, callback.port())?;
        let _lock = self.store.lock(app, owner).await?;
        self.store.register(app, owner, Some(&registration))?;
        Ok((callback, registration))
    }

    /// Makes the next sign-in of an app register it anew, if it registers itself.
    pub(crate) async fn forget_registration(&self, app: &App, owner: &Owner) -> Result<(), Failure> {
        if app.registers() {
            let _lock = self.store.lock(app, owner).await?;
            self.store.register(app, owner, None)?;
        }
        Ok(())
    }

    /// Listens for the browser.
    pub(crate) async fn listen(&self, app: &App, port: u16) -> Result<Callback, Failure> {
        Callback::listen(port).await.map_err(|error| Failure::listening(app, port, &error))
    }
}
