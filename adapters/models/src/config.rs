//! Config of a model.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use goondan_core::{Error, ErrorCode, ModelInfo, ModelOptions, Prices, Result, Secret};
use http::Uri;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::answer::AnswerLimits;
#[cfg(feature = "bedrock")]
use crate::aws;
use crate::cassette::CassetteConfig;
use crate::http::{HttpClient, Limits, Retries, Transport};
use crate::model::{HttpModel, header, headers};
use crate::wire::Wire;

/// A model over HTTP, as a bundle describes it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct ModelConfig {
    /// The model, as its provider names it.
    #[schemars(length(min = 1))]
    pub model: String,
    /// The address of the provider's interface.
    #[serde(default)]
    #[schemars(extend("x-goondan" = "host"))]
    pub base_url: Option<String>,
    /// The region of AWS, such as `eu-central-1`, for providers that have regions. By default, the one that `baseUrl`
    /// is in.
    #[serde(default)]
    #[schemars(regex(pattern = r"^[a-z0-9]+(-[a-z0-9]+)+$"))]
    pub region: Option<String>,
    /// The key for the provider.
    #[serde(default)]
    pub api_key: Option<Secret>,
    /// Headers of all requests, beside those of the interface.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Options of all calls. Step middlewares can replace each of them.
    #[serde(default)]
    pub options: ModelOptions,
    /// The limits of time of one request. The agent's `policy.modelTimeoutMs` is the limit of all attempts together.
    #[serde(default)]
    pub timeouts: TimeoutConfig,
    /// The retries of a failed request.
    #[serde(default)]
    pub retries: RetryConfig,
    /// The limits of an answer.
    #[serde(default)]
    pub answer: AnswerLimits,
    /// The most tokens of a request and its answer together.
    #[serde(default)]
    pub context_window: Option<u64>,
    /// The media types of the files that the model takes, such as `image/png` or `image/*`. By default, all that its
    /// interface can send.
    #[serde(default)]
    #[schemars(inner(regex(pattern = r"^[A-Za-z]+/(\*|[A-Za-z0-9.+_-]+)$")))]
    pub accepts: Option<Vec<String>>,
    /// The prices of a million tokens.
    #[serde(default)]
    pub prices: Option<Prices>,
    /// The file in which exchanges with the provider are recorded, or from which they are played. Models of bundles
    /// have it; others get theirs by [`HttpModel::with_cassette`].
    #[serde(default)]
    pub cassette: CassetteConfig,
}

/// The limits of time of one request, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct TimeoutConfig {
    /// Until the connection is established.
    #[schemars(range(min = 1))]
    pub connect_ms: u64,
    /// Until the answer begins.
    #[schemars(range(min = 1))]
    pub first_ms: u64,
    /// The longest silence of the provider in the middle of an answer.
    #[schemars(range(min = 1))]
    pub idle_ms: u64,
}

impl Default for TimeoutConfig {
    fn default() -> Self {
        Self { connect_ms: 10_000, first_ms: 120_000, idle_ms: 60_000 }
    }
}

/// The retries of a failed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RetryConfig {
    /// The most attempts of a request, the first one included.
    #[schemars(range(min = 1))]
    pub max: u32,
    /// The longest sum of the waits between attempts, in milliseconds. A provider that wants a longer one is not asked
    /// again.
    pub budget_ms: u64,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self { max: 4, budget_ms: 60_000 }
    }
}

/// Something in a config that keeps the model from being used, or, as a hint, is probably not meant.
#[derive(Debug)]
#[non_exhaustive]
pub struct Problem {
    /// Where it is, as a JSON pointer into the config.
    pub setting: String,
    /// The error, with a remedy.
    pub error: Error,
    /// Whether the model can be used nevertheless.
    pub is_hint: bool,
}

/// A provider: a name in bundles, and defaults.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Provider {
    /// The name in bundles and messages.
    pub name: &'static str,
    /// The address of its interface, unless `baseUrl` is required.
    pub base_url: Option<&'static str>,
    /// Whether it refuses requests without a key.
    pub needs_key: bool,
    /// Whether it is a service of AWS: its address depends on a region, and its requests are signed.
    pub is_aws: bool,
}

impl Provider {
    /// A provider with the defaults of its interface.
    pub const fn new(name: &'static str, base_url: Option<&'static str>, needs_key: bool) -> Self {
        Self { name, base_url, needs_key, is_aws: false }
    }

    /// Returns the provider as a service of AWS.
    #[cfg(feature = "bedrock")]
    #[must_use]
    pub const fn of_aws(self) -> Self {
        Self { is_aws: true, ..self }
    }
}

impl ModelConfig {
    /// Returns the config of a model without other settings.
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            base_url: None,
            region: None,
            api_key: None,
            headers: BTreeMap::new(),
            options: ModelOptions::default(),
            timeouts: TimeoutConfig::default(),
            retries: RetryConfig::default(),
            answer: AnswerLimits::default(),
            context_window: None,
            accepts: None,
            prices: None,
            cassette: CassetteConfig::default(),
        }
    }

    /// Returns the address of the provider's interface, if it is known.
    pub(crate) fn address(&self, provider: &Provider) -> Option<Cow<'_, str>> {
        let named = self.base_url.as_deref().or(provider.base_url).map(Cow::Borrowed);
        #[cfg(feature = "bedrock")]
        let named = named.or_else(|| {
            let region = self.region.as_deref().filter(|region| provider.is_aws && aws::is_region(region));
            region.map(|region| aws::address(region).into())
        });
        named
    }

    /// Returns what is wrong with the region.
    fn problem_of_region(&self, provider: &Provider) -> Option<Problem> {
        let found = |setting: &str, message: String, remedy| {
            Some(Problem { setting: setting.to_owned(), error: refuse(message, remedy), is_hint: false })
        };
        if !provider.is_aws {
            self.region.as_ref()?;
            return found("/region", format!("the provider `{}` has no regions", provider.name), "leave it out");
        }
        #[cfg(feature = "bedrock")]
        if let Some(region) = &self.region {
            let message = || format!("`{region}` is no region of AWS");
            return if aws::is_region(region) {
                None
            } else {
                found("/region", message(), "write it as `eu-central-1`")
            };
        }
        #[cfg(feature = "bedrock")]
        if let Some(Ok(uri)) = self.base_url.as_deref().map(address)
            && aws::is_aws(uri.host().unwrap_or_default())
            && aws::region_of(uri.host().unwrap_or_default()).is_none()
        {
            let message = "the host of `baseUrl` does not say its region".to_owned();
            return found("/baseUrl", message, "set `region`, which requests are signed for");
        }
        None
    }

    /// Returns what the schema of the config cannot say. It needs no key and no network.
    pub fn problems<W: Wire>(&self, provider: &Provider, wire: &W) -> Vec<Problem> {
        let found = |setting: &str, error| Problem { setting: setting.to_owned(), error, is_hint: false };
        let mut problems = Vec::new();
        if self.model.trim().is_empty() {
            let error = refuse("`model` is empty", "name a model of the provider");
            problems.push(found("/model", error));
        }
        match self.base_url.as_deref() {
            None if provider.is_aws && self.region.is_none() => {
                let message = format!("the address of the provider `{}` depends on the region", provider.name);
                problems.push(found("", refuse(message, "set `region`, or `baseUrl`")));
            }
            None if provider.base_url.is_none() && !provider.is_aws => {
                let message = format!("the provider `{}` has no address of its own", provider.name);
                problems.push(found("", refuse(message, "set `baseUrl` to the address of its interface")));
            }
            None => {}
            Some(url) => match address(url) {
                Err(error) => problems.push(found("/baseUrl", error)),
                Ok(uri) if uri.scheme_str() == Some("http") && !is_loopback(&uri) => {
                    let message = "`baseUrl` is not encrypted: everybody on the way can read the key and the messages";
                    let error = refuse(message, "use https, unless the network is your own");
                    problems.push(Problem { is_hint: true, ..found("/baseUrl", error) });
                }
                Ok(_) => {}
            },
        }
        problems.extend(self.problem_of_region(provider));
        for (name, value) in &self.headers {
            if let Err(error) = header(name, value) {
                let setting = format!("/headers/{}", name.replace('~', "~0").replace('/', "~1"));
                problems.push(found(&setting, error));
            }
        }
        if let Err(error) = wire.check(&self.model, &self.options) {
            let option = error.details().get("option").and_then(|option| option.as_str()).unwrap_or_default();
            problems.push(found(&format!("/options/{option}"), error));
        }
        problems
    }

    /// Returns the model. It opens no connection before the first request.
    ///
    /// # Errors
    /// The first of [`problems`](Self::problems) that is no hint: `E_MODEL_OPTION` when the provider cannot do what an
    /// option says, else `E_MODEL_REQUEST`. The same if the key has characters that no header can have.
    pub fn model<W: Wire>(self, provider: &Provider, wire: W) -> Result<HttpModel<W>> {
        if let Some(problem) = self.problems(provider, &wire).into_iter().find(|problem| !problem.is_hint) {
            return Err(problem.error);
        }
        let base = self.address(provider).unwrap_or_default().into_owned();
        let url = format!("{}{}", base.trim_end_matches('/'), wire.path(&self.model));
        let mut info = ModelInfo::new(provider.name, self.model);
        info.context_window = self.context_window;
        info.max_output = self.options.max_output_tokens.map(|tokens| u64::from(tokens.get()));
        info.prices = self.prices;
        info.accepts = self.accepts;
        let millis = Duration::from_millis;
        let limits = Limits {
            connect: millis(self.timeouts.connect_ms),
            first: millis(self.timeouts.first_ms),
            idle: millis(self.timeouts.idle_ms),
        };
        let uri = address(&base)?;
        let client = HttpClient::new(limits.connect, is_loopback(&uri));
        let transport: Box<dyn Transport> = match provider.is_aws {
            #[cfg(feature = "bedrock")]
            true => Box::new(aws::Aws::new(client, &uri, is_loopback(&uri), self.region.as_deref())),
            _ => Box::new(client),
        };
        Ok(HttpModel {
            transport,
            headers: headers(&wire, self.api_key.as_ref(), &self.headers)?,
            cassette: None,
            key_missing: provider.needs_key && self.api_key.is_none(),
            _key: self.api_key,
            wire,
            url,
            host: uri.host().unwrap_or_default().to_ascii_lowercase(),
            info,
            options: self.options,
            limits,
            answer: self.answer,
            retries: Retries { max: self.retries.max, budget: millis(self.retries.budget_ms) },
            refuses_closed: AtomicBool::new(false),
        })
    }
}

/// Reads a base URL. It is in no error: it could have a password.
fn address(url: &str) -> Result<Uri> {
    let read = url.parse::<Uri>().ok().filter(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some() && uri.query().is_none()
    });
    let Some(uri) = read else {
        return Err(refuse("`baseUrl` is not the address of an interface", "write it as `https://host/path`"));
    };
    if uri.scheme_str() == Some("https") && !cfg!(feature = "tls") {
        return Err(refuse("`baseUrl` is encrypted, which this program cannot do", "build it with the feature `tls`"));
    }
    Ok(uri)
}

/// Whether an address is on this machine.
fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn refuse(message: impl Into<Cow<'static, str>>, remedy: &'static str) -> Error {
    Error::new(ErrorCode::MODEL_REQUEST, message).suggest(remedy)
}
