//! Where tokens are kept: those of users in the state of the conversation, global ones in a file for each app. Both
//! hold the same ciphertext.
// LEGACY-OAUTH-04

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use goondan::json;
use goondan::prelude::*;
use serde::de::DeserializeOwned;
use tokio::task::spawn_blocking;

use crate::app::App;
use crate::kept::{Granted, Owner, Registration};
use crate::seal::{Key, sha256};

/// What is kept for an app and an owner.
pub(crate) enum Stored<T = Granted> {
    Nothing,
    /// It was encrypted with another key, or changed.
    Unreadable,
    Found(T),
}

/// What can be kept for an app and an owner.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Token,
    Registration,
}

/// The form in which a token is kept.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sealed {
    /// A digest of what the token is for: the app, its settings, and the owner.
    purpose: String,
    ciphertext: String,
}

/// The tokens and registrations of users, by app and user.
type State = BTreeMap<String, BTreeMap<String, Sealed>>;

/// Keeps tokens, and the registrations with which they were issued.
pub(crate) struct Store {
    api: ExtensionApi,
    ctx: InitContext,
    key: Key,
    /// What was last read and written, so that it is masked.
    masked: Mutex<BTreeMap<(String, Owner), Granted>>,
}

impl Store {
    pub(crate) fn new(api: ExtensionApi, ctx: InitContext, key: Key) -> Self {
        Self { api, ctx, key, masked: Mutex::default() }
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

    /// Reads the registration that is kept. One that cannot be read is as good as none.
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
            Owner::Global => match fs::read(self.file(app, kind.extension())?) {
                Ok(bytes) => match json::from_slice(&bytes) {
                    Ok(sealed) => Some(sealed),
                    Err(_) => return Ok(Stored::Unreadable),
                },
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                Err(error) => return Err(error.into()),
            },
        };
        let purpose = kind.purpose(app, owner)?;
        // What was kept for other settings is as good as nothing.
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
            Owner::Global => self.write_file(kind, app, sealed.as_ref()),
        }
    }

    /// Replaces a file of an app, so that a crash leaves the old one or the new one.
    fn write_file(&self, kind: Kind, app: &App, sealed: Option<&Sealed>) -> Result<()> {
        let (file, new) = (self.file(app, kind.extension())?, self.file(app, "new")?);
        for path in [Some(&new), Some(&file).filter(|_| sealed.is_none())].into_iter().flatten() {
            match fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
        }
        if let Some(sealed) = sealed {
            let mut written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
            written.write_all(&json::to_vec(sealed)?)?;
            written.sync_all()?;
            fs::rename(&new, &file)?;
        }
        File::open(self.ctx.state_dir()?)?.sync_all()?;
        Ok(())
    }

    /// Waits until no other process changes what is kept, and none does until the file is dropped. A conversation, and
    /// so the tokens of its users, is open in one process only.
    pub(crate) async fn lock(&self, app: &App, owner: &Owner) -> Result<Option<File>> {
        if *owner != Owner::Global {
            return Ok(None);
        }
        let path = self.file(app, "lock")?;
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
        Ok(Some(spawn_blocking(move || file.lock().map(|()| file)).await??))
    }

    fn file(&self, app: &App, extension: &str) -> Result<PathBuf> {
        Ok(self.ctx.state_dir()?.join(format!("{}.{extension}", app.name)))
    }

    fn mask(&self, app: &App, owner: &Owner, granted: Option<&Granted>) {
        let mut masked = self.masked.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (app.name.clone(), owner.clone());
        match granted {
            Some(granted) => drop(masked.insert(key, granted.clone())),
            None => drop(masked.remove(&key)),
        }
    }
}

impl Kind {
    /// Returns the ending of the file's name.
    fn extension(self) -> &'static str {
        match self {
            Self::Token => "json",
            Self::Registration => "client",
        }
    }

    /// Returns the key in the state of the conversation. The name of an app has no dot.
    fn name(self, app: &App) -> String {
        match self {
            Self::Token => app.name.clone(),
            Self::Registration => format!("{}.client", app.name),
        }
    }

    /// Returns what a ciphertext is for.
    fn purpose(self, app: &App, owner: &Owner) -> Result<String> {
        let (app, owner) = (app.identity(), owner.to_string());
        Ok(match self {
            Self::Token => json::to_string(&(app, owner))?,
            Self::Registration => json::to_string(&(app, owner, "registration"))?,
        })
    }
}
