//! The chain: all layers of one kind, outermost first, around the core.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;

use super::next::NamedMiddleware;
use super::skip::skipping;
use super::{Frame, Kind, Middleware, MiddlewareKind, MiddlewareOptions, Next, OnError};
use crate::error::{Error, Result};
use crate::name::ExtensionName;
use crate::panic::catch_panics;

/// All layers of one kind, outermost first. It is built once for each conversation and reload, and runs many times.
pub struct Chain<K: Kind> {
    layers: Box<[NamedMiddleware<K>]>,
    /// The description of each layer; in its own slice, so that a [`Frame`] needs no type parameter.
    infos: Box<[LayerInfo]>,
}

/// The description of a layer: where it comes from, and what determines its position in the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LayerInfo {
    /// The extension that registered the layer.
    pub extension: ExtensionName,
    /// The kind.
    pub kind: MiddlewareKind,
    /// The name of the function; empty if it was registered without a name.
    pub function: Cow<'static, str>,
    /// The priority; a lower one is further out.
    pub priority: i32,
    /// The extensions whose layers must be inside of this one. A trailing `?` marks one that may be missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<Cow<'static, str>>,
    /// The extensions whose layers must be outside of this one, in the same notation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<Cow<'static, str>>,
    /// What a failure of the layer means.
    // FAIL-01
    #[serde(skip_serializing_if = "OnError::is_abort")]
    pub on_error: OnError,
}

impl LayerInfo {
    /// The layer that `extension` registered with `options`. Its failures abort.
    pub fn new(extension: ExtensionName, kind: MiddlewareKind, options: MiddlewareOptions) -> Self {
        let MiddlewareOptions { priority, name, before, after } = options;
        Self { extension, kind, function: name, priority, before, after, on_error: OnError::Abort }
    }

    /// Returns the constraints as they were written: the option, and the extension.
    pub(super) fn constraints(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let before = self.before.iter().map(|name| ("before", &**name));
        before.chain(self.after.iter().map(|name| ("after", &**name)))
    }

    /// Returns the name of the layer in errors.
    #[doc(hidden)]
    pub fn part(&self) -> String {
        match self.function.as_ref() {
            "" => format!("{} middleware", self.kind),
            function => format!("{} middleware `{function}`", self.kind),
        }
    }
}

impl<K: Kind> Chain<K> {
    /// A chain of `layers`, outermost first. A layer whose failures are skipped fails if its own code takes longer than
    /// `layer_timeout`.
    pub fn new(
        layers: impl IntoIterator<Item = (LayerInfo, Arc<dyn Middleware<K>>)>,
        layer_timeout: super::LayerTimeout,
    ) -> Self {
        let (mut named, mut infos) = (Vec::new(), Vec::new());
        for (info, layer) in layers {
            match info.on_error {
                OnError::Abort => named.push((info.extension.clone(), layer)),
                OnError::Skip => {
                    named.extend(skipping(&info, layer, layer_timeout));
                    infos.push(info.clone());
                }
            }
            infos.push(info);
        }
        Self { layers: named.into(), infos: infos.into() }
    }

    /// Returns the descriptions of the layers, outermost first.
    pub fn layers(&self) -> impl Iterator<Item = &LayerInfo> {
        // A layer whose failures are skipped has its probe right inside.
        let mut probe = false;
        self.infos.iter().filter(move |info| {
            probe = !probe && info.on_error == OnError::Skip;
            probe || info.on_error == OnError::Abort
        })
    }

    /// Runs the chain around the core of `host`. A panic of a layer or of the core becomes an error that names it.
    ///
    /// # Errors
    /// The error of the outermost layer, or of the core if there is no layer.
    // PIPE-24
    pub async fn run<'a>(&'a self, host: &'a mut K::Host<'a>) -> Result<K::Output> {
        let mut ctx = K::context(host, Frame::new(&self.infos));
        match catch_panics("the program", Next::<K>::new(&self.layers).run(&mut ctx)).await {
            Ok(result) => result,
            Err(text) => {
                let panic = Error::panicked(&text);
                Err(match K::frame(&mut ctx).panicking() {
                    Some(layer) => panic.at(&layer.extension, layer.part()),
                    None => panic,
                })
            }
        }
    }
}

/// One layer in a library. Its `next` runs the core of the [`Kind::Host`] that it is run with, which continues the
/// chain in the host. The host wraps the layer in its own chain, which has the [`Frame`] and catches panics.
#[doc(hidden)]
pub struct Layer<K: Kind> {
    middleware: Arc<dyn Middleware<K>>,
    info: [LayerInfo; 1],
}

impl<K: Kind> Layer<K> {
    /// A layer of `middleware`.
    pub fn new(info: LayerInfo, middleware: Arc<dyn Middleware<K>>) -> Self {
        Self { middleware, info: [info] }
    }

    /// Runs the layer around the core of `host`.
    ///
    /// # Errors
    /// The error of the layer.
    pub async fn run<'a>(&'a self, host: &'a mut K::Host<'a>) -> Result<K::Output> {
        let mut ctx = K::context(host, Frame::inside(&self.info));
        self.middleware.handle(&mut ctx, Next::new(&[])).await
    }
}
