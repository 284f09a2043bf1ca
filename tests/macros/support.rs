//! Owns what the tests put in the place of the runtime.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use goondan::{
    AnyRegistration, Extension, ExtensionApi, ExtensionHost, ExtensionName, MiddlewareKind, Options, Result,
};
use goondan_core::pipeline::AnyMiddleware;
use serde_json::Value;

/// Notes what an extension registers.
struct Recorder {
    name: ExtensionName,
    noted: Mutex<Vec<(AnyMiddleware, Options)>>,
}

impl ExtensionHost for Recorder {
    fn extension(&self) -> &ExtensionName {
        &self.name
    }

    fn register(&self, registration: AnyRegistration) -> Result<()> {
        match registration {
            AnyRegistration::Middleware(middleware, options) => self.noted.lock().unwrap().push((middleware, options)),
            AnyRegistration::Tool(..) => panic!("no tool is registered here"),
        }
        Ok(())
    }
}

/// Runs the generated `register`.
pub(crate) fn registered<E: Extension>(config: Value) -> Result<Vec<(AnyMiddleware, Options)>> {
    let descriptor = E::DESCRIPTOR;
    let name = ExtensionName::new(descriptor.name)?;
    let host = Arc::new(Recorder { name, noted: Mutex::default() });
    ready((descriptor.register)(ExtensionApi::new(host.clone()), config))?;
    Ok(host.noted.lock().unwrap().clone())
}

/// The same, as kind, name and priority.
pub(crate) fn layers<E: Extension>(config: Value) -> Vec<(MiddlewareKind, String, i32)> {
    let kind = |middleware: &AnyMiddleware| match middleware {
        AnyMiddleware::Turn(_) => MiddlewareKind::Turn,
        AnyMiddleware::Step(_) => MiddlewareKind::Step,
        AnyMiddleware::ToolCall(_) => MiddlewareKind::ToolCall,
    };
    let all = registered::<E>(config).unwrap();
    all.into_iter().map(|(layer, options)| (kind(&layer), options.name.into_owned(), options.priority)).collect()
}

/// The value of a future that is never pending for long.
pub(crate) fn ready<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return value;
        }
    }
}
