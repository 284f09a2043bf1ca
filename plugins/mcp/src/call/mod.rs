//! The calls of the model.

mod asked;
mod handlers;
mod reply;
#[cfg(feature = "http")]
mod sign_in;

pub(crate) use handlers::{Call, ConfiguredServer, Extra, ExtraTool};
#[cfg(feature = "http")]
pub(crate) use sign_in::SignIn;

/// The name of the tool by which a person signs in, behind the name of the extension.
pub(crate) const SIGN_IN: &str = "sign_in";
