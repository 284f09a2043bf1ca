//! Plays recorded exchanges.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use goondan_lock::Lock;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::Value;
use tokio::time::{Sleep, sleep};

use super::config::{CassetteConfig, Matching, Pace};
use super::difference::{Difference, difference};
use super::format::{Content, Exchange, Request, Response};
use crate::http::Incoming;

/// Members of requests that differ between instances, and change no answer.
const IGNORED: [&str; 2] = ["/prompt_cache_key", "/metadata/user_id"];

/// The exchanges of a cassette.
pub(super) struct Player {
    matching: Matching,
    pace: Pace,
    ignored: Vec<String>,
    left: Arc<Left>,
}

/// The exchanges that were not played yet, by their place in the file.
type Left = Lock<BTreeMap<usize, Exchange>>;

impl Player {
    pub(super) fn new(mut exchanges: Vec<Exchange>, config: &CassetteConfig) -> Self {
        let ignored = IGNORED.iter().map(|pointer| (*pointer).to_owned()).chain(config.ignore.iter().cloned());
        let ignored: Vec<_> = ignored.collect();
        exchanges.iter_mut().for_each(|exchange| remove(&mut exchange.request.body, &ignored));
        let left = exchanges.into_iter().enumerate().collect();
        Self { matching: config.matching, pace: config.pace, ignored, left: Arc::new(Lock::new(left)) }
    }

    /// Returns the response to a request: of the first exchange with an equal one that was not played yet.
    ///
    /// # Errors
    /// The members that the request has and no recorded one has.
    pub(super) fn play(&self, request: &Request) -> Result<(Incoming, Playback), String> {
        let mut asked = request.body.clone();
        remove(&mut asked, &self.ignored);
        let mut left = self.left.lock();
        let equal = |exchange: &Exchange| {
            self.matching == Matching::Order
                || (exchange.request.path == request.path && exchange.request.body == asked)
        };
        let found = left.iter().find(|(_, exchange)| equal(exchange)).map(|(place, _)| *place);
        let Some((place, exchange)) = found.and_then(|place| left.remove_entry(&place)) else {
            return Err(why_not(&left, &request.path, &asked));
        };
        let response = incoming(exchange.response.clone(), self.pace);
        Ok((response, Playback { left: Arc::clone(&self.left), place, exchange: Some(exchange) }))
    }

    /// Returns how many exchanges were not played.
    pub(super) fn left(&self) -> usize {
        self.left.lock().len()
    }
}

/// An exchange that is being played. If it is dropped before its answer was taken, because the turn was interrupted,
/// the exchange can be played again.
// RESUME-01
pub(crate) struct Playback {
    left: Arc<Left>,
    place: usize,
    /// `None` once the answer was taken.
    exchange: Option<Exchange>,
}

impl Playback {
    /// Ends it: the model has read the answer, or failed to.
    pub(crate) fn taken(mut self) {
        self.exchange = None;
    }
}

impl Drop for Playback {
    fn drop(&mut self) {
        if let Some(exchange) = self.exchange.take() {
            self.left.lock().insert(self.place, exchange);
        }
    }
}

/// Says how a request differs from the recorded one that is most like it.
fn why_not(left: &BTreeMap<usize, Exchange>, path: &str, asked: &Value) -> String {
    let same_path = left.values().filter(|exchange| exchange.request.path == path);
    let differences = same_path.filter_map(|exchange| difference(&exchange.request.body, asked));
    // The first one of several.
    let nearest = differences.reduce(|best, other| if other.same > best.same { other } else { best });
    match (nearest, left.values().next()) {
        (Some(Difference { text, .. }), _) => format!("the request was not recorded: {text}"),
        (None, Some(other)) => {
            format!(
                "the request was not recorded: it is for `{path}`, and the next one is for `{}`",
                other.request.path
            )
        }
        (None, None) => "the request was not recorded: all exchanges have been played".to_owned(),
    }
}

/// Removes members of a body.
fn remove(body: &mut Value, pointers: &[String]) {
    for pointer in pointers {
        let Some((around, name)) = pointer.rsplit_once('/') else { continue };
        if let Some(Value::Object(members)) = body.pointer_mut(around) {
            members.shift_remove(&name.replace("~1", "/").replace("~0", "~"));
            // An object that has nothing else need not be there.
            if members.is_empty() && !around.is_empty() {
                remove(body, &[around.to_owned()]);
            }
        }
    }
}

/// Returns a response that plays.
fn incoming(response: Response, pace: Pace) -> Incoming {
    let Response { status, headers, content, broken } = response;
    let header =
        |(name, value): (String, String)| Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?));
    let mut pieces: VecDeque<Piece> = match content {
        Content::Events(events) => events.into_iter().map(|(after, name, data)| event(after, &name, &data)).collect(),
        Content::Body(text) => [Piece { after: 0, bytes: Ok(text.into()) }].into(),
    };
    pieces.extend(broken.map(|why| Piece { after: 0, bytes: Err(why) }));
    Incoming {
        // The file could have been changed by hand.
        status: StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY),
        headers: headers.into_iter().filter_map(header).collect::<HeaderMap>(),
        body: Box::pin(Playing { pieces, pace, wait: None }),
    }
}

/// Returns an event as it goes over the connection.
fn event(after: u64, name: &str, data: &str) -> Piece {
    let mut text = String::new();
    if !name.is_empty() {
        text += &format!("event: {name}\n");
    }
    data.split('\n').for_each(|line| text += &format!("data: {line}\n"));
    text += "\n";
    Piece { after, bytes: Ok(text.into()) }
}

struct Piece {
    /// The milliseconds since the one before.
    after: u64,
    bytes: Result<Bytes, String>,
}

/// A body that is played.
struct Playing {
    pieces: VecDeque<Piece>,
    pace: Pace,
    wait: Option<Pin<Box<Sleep>>>,
}

impl Stream for Playing {
    type Item = Result<Bytes, Box<dyn std::error::Error + Send + Sync>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let Some(next) = this.pieces.front() else { return Poll::Ready(None) };
        if this.pace == Pace::Real {
            let wait = this.wait.get_or_insert_with(|| Box::pin(sleep(Duration::from_millis(next.after))));
            std::task::ready!(wait.as_mut().poll(cx));
            this.wait = None;
        }
        Poll::Ready(this.pieces.pop_front().map(|piece| piece.bytes.map_err(Into::into)))
    }
}
