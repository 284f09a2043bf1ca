//! Where tokens are kept: those of users in the state of the conversation, global ones in what the conversations of a
//! workspace share. Both hold the same ciphertext.
// LEGACY-OAUTH-04

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;

use goondan::extension::SharedState;
use goondan::json;
use goondan::prelude::*;
use goondan_lock::Lock;
use serde::de::DeserializeOwned;
use tokio::task::spawn_blocking;

use crate::app::App;
use crate::kept::{Granted, Owner, Registration};
use crate::seal::{Key, sha256};

/// The data that is kept for an app and an owner.
pub(crate) enum Stored<T = Granted> {
    Nothing,
    /// It was encrypted with another key, or changed.
    Unreadable,
    Found(T),
}

/// The kinds of data that can be kept for an app and an owner.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Token,
    Registration,
}

/// The form in which a token is kept.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sealed {
    /// A digest of the purpose of the token: the app, its settings, and the owner.
    purpose: String,
    ciphertext: String,
}

/// The tokens and registrations of users, by app and user.
type State = BTreeMap<String, BTreeMap<String, Sealed>>;

/// The global tokens and registrations, by app.
type Shared = BTreeMap<String, Sealed>;

/// Keeps tokens, and the registrations with which they were issued.
pub(crate) struct Store {
    api: ExtensionApi,
    ctx: InitContext,
    key: Key,
    /// The tokens that were last read and written, so that they are masked.
    masked: Lock<BTreeMap<(String, Owner), Granted>>,
}

impl Store {
    pub(crate) fn new(api: ExtensionApi, ctx: InitContext, key: Key) -> Self {
        Self { api, ctx, key, masked: Lock::default() }
    }

    /// Reads the token that is kept.
    pub(crate) fn load(&self, app: &App, owner: &Owner) -> Result<Stored> {
        let stored = self.read(Kind::Token, app, owner)?;
        if let Stored::Found(granted) = &stored {
            self.mask(app, owner, Some(granted));
        }
        Ok(stored)
    }

    /// Replaces the token that is kept; `None` removes it.
    pub(crate) fn save(&self, app: &App, owner: &Owner, granted: Option<&Granted>) -> Result<()> {
        self.mask(app, owner, granted);
        self.write(Kind::Token, app, owner, granted)
    }

    /// Reads the registration that is kept. One that cannot be read counts as none.
    pub(crate) fn registration(&self, app: &App, owner: &Owner) -> Result<Option<Registration>> {
        Ok(match self.read(Kind::Registration, app, owner)? {
            Stored::Found(registration) => Some(registration),
            Stored::Nothing | Stored::Unreadable => None,
        })
    }

    /// Replaces the registration that is kept, under the lock; `None` removes it.
    pub(crate) fn register(&self, app: &App, owner: &Owner, registration: Option<&Registration>) -> Result<()> {
        self.write(Kind::Registration, app, owner, registration)
    }

    fn read<T: DeserializeOwned>(&self, kind: Kind, app: &App, owner: &Owner) -> Result<Stored<T>> {
        let sealed = match owner {
            Owner::User(user) => {
                let state = self.api.state().get::<State>()?.unwrap_or_default();
                state.get(&kind.name(app)).and_then(|users| users.get(user)).cloned()
            }
            Owner::Global => self.shared()?.read()?.remove(&kind.name(app)),
        };
        let purpose = kind.purpose(app, owner)?;
        // Data for other settings counts as none.
        let Some(sealed) = sealed.filter(|sealed: &Sealed| sealed.purpose == sha256(&purpose)) else {
            return Ok(Stored::Nothing);
        };
        let text = self.key.open(purpose.as_bytes(), &sealed.ciphertext);
        Ok(text.and_then(|text| json::from_slice(&text).ok()).map_or(Stored::Unreadable, Stored::Found))
    }

    fn write<T: Serialize>(&self, kind: Kind, app: &App, owner: &Owner, value: Option<&T>) -> Result<()> {
        let purpose = kind.purpose(app, owner)?;
        let seal = |value| {
            let ciphertext = self.key.seal(purpose.as_bytes(), json::to_vec(value)?)?;
            Ok::<_, Error>(Sealed { purpose: sha256(&purpose), ciphertext })
        };
        let sealed = value.map(seal).transpose()?;
        match owner {
            Owner::User(user) => self.api.state().update(|state: &mut State| {
                let users = state.entry(kind.name(app)).or_default();
                match sealed {
                    Some(sealed) => drop(users.insert(user.clone(), sealed)),
                    None => drop(users.remove(user)),
                }
            }),
            Owner::Global => self.shared()?.update(|shared: &mut Shared| match sealed {
                Some(sealed) => drop(shared.insert(kind.name(app), sealed)),
                None => drop(shared.remove(&kind.name(app))),
            }),
        }
    }

    /// Only apps with global tokens need it: a store in memory has none.
    fn shared(&self) -> Result<SharedState<Shared>> {
        self.ctx.shared_state()
    }

    /// Waits until no other process changes the records of the app, and none does until the file is dropped. It is
    /// held while the authorization server is asked, so a change of the shared state, which blocks its thread, is not
    /// enough. A conversation, and so the tokens of its users, is open in one process only.
    pub(crate) async fn lock(&self, app: &App, owner: &Owner) -> Result<Option<File>> {
        if *owner != Owner::Global {
            return Ok(None);
        }
        let path = self.ctx.state_dir()?.join(format!("{}.lock", app.name));
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
        Ok(Some(spawn_blocking(move || file.lock().map(|()| file)).await??))
    }

    fn mask(&self, app: &App, owner: &Owner, granted: Option<&Granted>) {
        let mut masked = self.masked.lock();
        let key = (app.name.clone(), owner.clone());
        match granted {
            Some(granted) => drop(masked.insert(key, granted.clone())),
            None => drop(masked.remove(&key)),
        }
    }
}

impl Kind {
    /// Returns the key in the state. The name of an app has no dot.
    fn name(self, app: &App) -> String {
        match self {
            Self::Token => app.name.clone(),
            Self::Registration => format!("{}.client", app.name),
        }
    }

    /// Returns the purpose of a ciphertext.
    fn purpose(self, app: &App, owner: &Owner) -> Result<String> {
        let (app, owner) = (app.identity(), owner.to_string());
        Ok(match self {
            Self::Token => json::to_string(&(app, owner))?,
            Self::Registration => json::to_string(&(app, owner, "registration"))?,
        })
    }
}
