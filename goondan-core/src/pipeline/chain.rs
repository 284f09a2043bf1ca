//! Owns the chain: the layers of one kind in their order, around the core.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;

use super::{Frame, Kind, Middleware, MiddlewareKind, Next, Options};
use crate::error::Result;
use crate::name::ExtensionName;
use crate::panic::catch_panics;

/// All middlewares of one kind, outermost first. Built once, run often.
pub struct Chain<K: Kind> {
    layers: Box<[Arc<dyn Middleware<K>>]>,
    /// Who each layer is, beside `layers` so that a [`Frame`] needs no type parameter.
    infos: Box<[LayerInfo]>,
}

/// Who a layer is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LayerInfo {
    /// The extension that registered the layer.
    pub extension: ExtensionName,
    /// What it wraps.
    pub kind: MiddlewareKind,
    /// The function; empty when it was registered without a name.
    pub function: Cow<'static, str>,
    /// The priority that it was registered with.
    pub priority: i32,
    /// The extensions that it must be outside of; a `?` at the end marks one that may be missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<Cow<'static, str>>,
    /// The extensions that it must be inside of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<Cow<'static, str>>,
}

impl LayerInfo {
    /// The layer that `extension` registered with `options`.
    pub fn new(extension: ExtensionName, kind: MiddlewareKind, options: Options) -> Self {
        let Options { priority, name, before, after } = options;
        Self { extension, kind, function: name, priority, before, after }
    }

    /// The constraints as they were written: the option, and the extension.
    pub(super) fn constraints(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let before = self.before.iter().map(|name| ("before", &**name));
        before.chain(self.after.iter().map(|name| ("after", &**name)))
    }

    /// The layer as errors name it.
    pub(super) fn hook(&self) -> String {
        match self.function.as_ref() {
            "" => format!("{} middleware", self.kind),
            function => format!("{} middleware `{function}`", self.kind),
        }
    }
}

impl<K: Kind> Chain<K> {
    /// A chain of `layers`, outermost first.
    pub fn new(layers: impl IntoIterator<Item = (LayerInfo, Arc<dyn Middleware<K>>)>) -> Self {
        let (infos, layers): (Vec<_>, Vec<_>) = layers.into_iter().unzip();
        Self { layers: layers.into(), infos: infos.into() }
    }

    /// Who the layers are, outermost first.
    pub fn layers(&self) -> &[LayerInfo] {
        &self.infos
    }

    /// Runs the onion around the core of `host`. A panic of a layer or of the core becomes an error that names it.
    ///
    /// # Errors
    /// The error of the outermost layer, or of the core when there is no layer (PIPE-24).
    pub async fn run<'a>(&'a self, host: &'a mut K::Host<'a>) -> Result<K::Output> {
        let mut ctx = K::context(host, Frame::new(&self.infos));
        match catch_panics(Next::<K>::new(&self.layers).run(&mut ctx)).await {
            Ok(result) => result,
            Err(panic) => Err(match K::frame(&mut ctx).panicking() {
                Some(layer) => panic.at(&layer.extension, layer.hook()),
                None => panic,
            }),
        }
    }
}

/// One layer on the far side of a linkage: its `next` is the core of the host that it is given. The near side frames it
/// like any other layer, and is the border of its panics.
#[doc(hidden)]
pub struct Layer<K: Kind> {
    middleware: Arc<dyn Middleware<K>>,
    info: [LayerInfo; 1],
}

impl<K: Kind> Layer<K> {
    /// The layer that `middleware` is.
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
