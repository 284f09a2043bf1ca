//! Work trees that other extensions make and tell about by an event. The state of the extension lists them.

use std::path::PathBuf;

use goondan::event::WorktreeMounted;
use goondan::prelude::*;

/// Notes each work tree from now on.
// Not by `#[on]`, which starts when all extensions are there: those that make work trees tell in `#[init]` which ones
// are open.
pub(crate) fn note(api: &ExtensionApi) -> Result<()> {
    let noting = api.clone();
    let note = move |event: Event| std::future::ready(add(&noting, &event));
    api.events().on(WorktreeMounted::NAME, note)?.detach();
    Ok(())
}

fn add(api: &ExtensionApi, event: &Event) -> Result<()> {
    let WorktreeMounted { path, .. } = event.payload()?;
    api.state().update(|trees: &mut Vec<PathBuf>| {
        trees.retain(|tree| *tree != path && tree.is_dir());
        trees.insert(0, path);
    })
}

/// Returns the work trees that are there, the newest first.
pub(crate) async fn open(api: &ExtensionApi) -> Result<impl Iterator<Item = PathBuf>> {
    // An event that another tool has emitted is handled by a task of its own.
    tokio::task::yield_now().await;
    let trees: Vec<PathBuf> = api.state().get()?.unwrap_or_default();
    Ok(trees.into_iter().filter(|tree| tree.is_dir()))
}
