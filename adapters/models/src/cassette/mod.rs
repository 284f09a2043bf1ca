//! Recorded exchanges between a model and its provider: recorded once, and played without key and network.

mod config;
mod difference;
mod format;
mod keys;
mod play;
mod record;
mod redact;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use goondan_core::Result;
use goondan_runtime::CassetteMode;

use crate::http::{Failure, Incoming, Outgoing};
use play::Player;
use record::Recorder;
use redact::Redaction;

pub use config::{CassetteConfig, Matching, Pace};
pub(crate) use play::Playback;
pub(crate) use record::Recording;

/// A file with the exchanges between a model and its provider, which are recorded or played.
/// [`HttpModel::with_cassette`](crate::HttpModel::with_cassette) gives a model one.
///
/// The recording has requests and responses as they go over the connection, so that a model that plays them does all
/// that it does with its provider: it decodes events, sends pieces to watchers, and repeats failed requests, but does
/// not wait. A request plays the first exchange with an equal request that was not played yet, so conversations can
/// take turns; one whose answer was dropped before its end was not played. Keys and other secrets are not recorded: see
/// [`CassetteConfig::redact`].
///
/// An exchange is written when its response has ended. When the process is killed, those before it are in the file.
#[derive(Clone)]
pub struct Cassette(Arc<Exchanges>);

struct Exchanges {
    path: PathBuf,
    redaction: Redaction,
    player: Option<Player>,
    recorder: Option<Arc<Recorder>>,
}

impl Cassette {
    /// Returns a cassette that plays the exchanges in a file.
    ///
    /// # Errors
    /// `E_MODEL_CASSETTE` when the file cannot be read or is no cassette.
    pub fn replay(path: impl Into<PathBuf>) -> Result<Self> {
        Self::open(path, CassetteMode::Replay, &CassetteConfig::default())
    }

    /// Returns a cassette that records to a file. The first exchange creates it, with the directory that it is in, and
    /// replaces an earlier recording.
    ///
    /// # Errors
    /// `E_MODEL_CASSETTE` when there is such a file that is no cassette.
    pub fn record(path: impl Into<PathBuf>) -> Result<Self> {
        Self::open(path, CassetteMode::Record, &CassetteConfig::default())
    }

    /// Returns a cassette with other settings. `mode` and `path` count, not those in `config`. Nothing is written yet.
    ///
    /// # Errors
    /// `E_MODEL_CASSETTE` when the file cannot be read or is no cassette, or when a pattern is no regular expression.
    pub fn open(path: impl Into<PathBuf>, mode: CassetteMode, config: &CassetteConfig) -> Result<Self> {
        let path = std::path::absolute(path.into())?;
        let redaction = Redaction::new(&config.redact)?;
        let (plays, records) = match mode {
            CassetteMode::Off => (false, false),
            CassetteMode::Record => (false, true),
            CassetteMode::Replay => (true, false),
            CassetteMode::Auto => (true, true),
        };
        let recorded = match mode {
            CassetteMode::Off => format::Recorded::default(),
            // A file that is no cassette is not overwritten either.
            _ => format::read(&path, plays && !records)?,
        };
        let player = plays.then(|| Player::new(recorded.exchanges, config));
        let recorder = records.then(|| Recorder::of(&path, plays));
        Ok(Self(Arc::new(Exchanges { path, redaction, player, recorder })))
    }

    /// Searches a recording for likely keys, for the lines that have one. Each has its number, and a part of
    /// a sentence about the first key in it. A file that is no cassette has none.
    ///
    /// ```
    /// assert!(goondan::models::Cassette::keys_in("cassettes/main.jsonl").is_empty());
    /// ```
    // ENV-01
    pub fn keys_in(path: impl AsRef<Path>) -> Vec<(u64, String)> {
        // A file that is no cassette is reported where it is played.
        let recorded = format::read(path.as_ref(), false).unwrap_or_default();
        let lines = recorded.text.lines().zip(1..);
        lines.filter_map(|(line, number)| Some((number, keys::find(line)?))).collect()
    }

    /// Checks that all exchanges were played, for the end of a test.
    ///
    /// # Errors
    /// `E_MODEL_CASSETTE` when some were not.
    pub fn finish(&self) -> Result<()> {
        match self.0.player.as_ref().map_or(0, Player::left) {
            0 => Ok(()),
            left => {
                let message =
                    format!("the cassette `{}` has exchanges that were not played: {left}", self.0.path.display());
                Err(format::refused(message, "record the conversation anew, or ask all that was asked"))
            }
        }
    }

    /// Returns whether nothing but the cassette answers, so that waiting for the provider is of no use.
    pub(crate) fn only_plays(&self) -> bool {
        self.0.recorder.is_none() && self.0.player.is_some()
    }

    /// Returns the recorded response to a request, or a recording if the provider is to be asked.
    pub(crate) fn play(&self, request: &Outgoing) -> Result<Played, Failure> {
        let Exchanges { path, redaction, player, recorder } = &*self.0;
        let request = redaction.request(request);
        let difference = match player.as_ref().map(|player| player.play(&request)) {
            Some(Ok((response, playback))) => return Ok(Played::Response(response, Box::new(playback))),
            Some(Err(difference)) => Some(difference),
            None => None,
        };
        match (recorder, difference) {
            (Some(recorder), _) => {
                recorder.check()?;
                let recording = Recording::new(Arc::clone(recorder), redaction.clone(), request);
                Ok(Played::Nothing(Some(Box::new(recording))))
            }
            (None, Some(difference)) => Err(format::failure(path, difference)),
            (None, None) => Ok(Played::Nothing(None)),
        }
    }

    /// Returns why an exchange could not be recorded, if one could not.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.0.recorder.as_ref().map_or(Ok(()), |recorder| recorder.check())
    }
}

/// The answer of a cassette to a request.
pub(crate) enum Played {
    /// The recorded response, and the guard that counts it as played.
    Response(Incoming, Box<Playback>),
    /// Nothing. The answer of the provider is to be recorded.
    Nothing(Option<Box<Recording>>),
}

impl fmt::Debug for Cassette {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cassette({})", self.0.path.display())
    }
}
