//! The messages of Anthropic.

mod blocks;
mod decode;
mod encode;
pub(super) mod options;

use std::borrow::Cow;

use goondan_core::{ModelOptions, Result};

use super::doubled::once;
use super::{Encoding, Wire};
use crate::answer::Answer;
use crate::http::Failure;

/// The interface of Anthropic: `POST /v1/messages`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Anthropic;

impl Wire for Anthropic {
    const API: &'static str = "anthropic";
    const TOOLS_FIRST: bool = true;

    fn path(&self, _: &str) -> Cow<'static, str> {
        "/v1/messages".into()
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    fn key_header(&self, key: &str) -> (&'static str, String) {
        ("x-api-key", key.to_owned())
    }

    fn check(&self, model: &str, options: &ModelOptions) -> Result<()> {
        options::check(model, options)
    }

    fn holds_to_schema(&self, model: &str, _: &ModelOptions, _: bool) -> bool {
        options::holds_to_schema(model)
    }

    fn requires_tools(&self, model: &str, options: &ModelOptions) -> bool {
        !options::may_think(model, options)
    }

    fn encode(&self, request: &Encoding<'_>) -> Result<Vec<u8>> {
        encode::encode(request)
    }

    fn event(&self, name: &str, data: &str, answer: &mut Answer<'_>) -> Result<(), Failure> {
        once(data, |data| decode::event(name, data, answer))
    }
}
