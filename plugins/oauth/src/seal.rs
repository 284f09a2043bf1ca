//! The encryption of stored records: ChaCha20-Poly1305, with a random nonce before the ciphertext.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use goondan::{Error, ErrorCode, Result, Secret};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Serialize, Serializer};

/// The key.
#[derive(Debug)]
pub(crate) struct Key(LessSafeKey);

impl Key {
    /// # Errors
    /// `E_EXT_CONFIG` when it is not 32 bytes in base64.
    pub(crate) fn new(text: &Secret) -> Result<Self> {
        let bytes = STANDARD.decode(text.expose().trim()).ok();
        let key = bytes.and_then(|bytes| UnboundKey::new(&CHACHA20_POLY1305, &bytes).ok());
        key.map(LessSafeKey::new).map(Self).ok_or_else(|| {
            Error::new(ErrorCode::EXT_CONFIG, "`store.key` is not 32 bytes in base64")
                .suggest("make one with `openssl rand -base64 32`")
        })
    }

    /// Encrypts `text`, which [`Self::open`] returns only for the same `purpose`.
    pub(crate) fn seal(&self, purpose: &[u8], text: Vec<u8>) -> Result<String> {
        let nonce = random::<NONCE_LEN>()?;
        let (mut sealed, failed) = (text, |_| Error::msg("the encryption failed"));
        self.0
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(purpose), &mut sealed)
            .map_err(failed)?;
        Ok(STANDARD.encode([&nonce[..], &sealed].concat()))
    }

    /// Returns the plain text; `None` if it was with another key, for another purpose, or has changed.
    pub(crate) fn open(&self, purpose: &[u8], sealed: &str) -> Option<Vec<u8>> {
        let bytes = STANDARD.decode(sealed).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_LEN>()?;
        let mut sealed = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        self.0.open_in_place(nonce, Aad::from(purpose), &mut sealed).ok().map(|text| text.to_vec())
    }
}

/// Writes the text of a secret, which is encrypted afterwards.
pub(crate) fn exposed<S: Serializer>(secret: &Option<Secret>, serializer: S) -> Result<S::Ok, S::Error> {
    secret.as_ref().map(Secret::expose).serialize(serializer)
}

/// Returns random bytes.
fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| Error::msg("the system has no random bytes"))?;
    Ok(bytes)
}

/// Returns a text of 43 letters, digits, `-` and `_` that cannot be guessed.
pub(crate) fn random_text() -> Result<String> {
    random::<32>().map(|bytes| URL_SAFE_NO_PAD.encode(bytes))
}

/// Returns the SHA-256 of a text in base64, as in URLs.
pub(crate) fn sha256(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(ring::digest::digest(&ring::digest::SHA256, text.as_bytes()))
}
