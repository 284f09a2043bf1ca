//! The work trees that extensions of a conversation make, such as `changesets`, for the ready-made extensions of
//! goondan that work in them and for those of users.
//!
//! [`is_git`] knows the names that no file in one may have.
//!
//! An extension tells about each by the event `workspace.worktreeMounted`. The state of the extension that uses this
//! crate lists them.
//!
//! ```
//! use goondan::prelude::*;
//!
//! /// Counts files.
//! #[derive(Debug)]
//! pub struct Files {
//!     api: ExtensionApi,
//! }
//!
//! #[goondan::extension(name = "files")]
//! impl Files {
//!     #[init]
//!     fn new(api: ExtensionApi) -> Result<Self> {
//!         work_trees::note(&api)?;
//!         Ok(Self { api })
//!     }
//!
//!     /// Returns the number of files in the newest work tree, or else in the working directory.
//!     #[tool(effect = read)]
//!     async fn count(&self, ctx: &ToolContext<'_>) -> Result<usize> {
//!         let tree = work_trees::open(&self.api).await?.next();
//!         let directory = tree.as_deref().map_or_else(|| ctx.workdir(), Ok)?;
//!         Ok(directory.read_dir()?.count())
//!     }
//! }
//! ```

mod names;

// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

use std::path::PathBuf;

use goondan::event::WorktreeMounted;
use goondan::prelude::*;

pub use names::{components, is_git, is_in_git};

/// Notes each later work tree. For `#[init]`, where other extensions tell about those that are there already, so
/// the extension must be listed before them.
///
/// # Errors
/// None in practice: the name of the event is legal.
pub fn note(api: &ExtensionApi) -> Result<()> {
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
///
/// # Errors
/// `E_EXT_STATE` when the extension has stored a state of its own.
pub async fn open(api: &ExtensionApi) -> Result<impl Iterator<Item = PathBuf>> {
    // An event that another tool has just emitted is handled by a task of its own, which runs now.
    tokio::task::yield_now().await;
    let trees: Vec<PathBuf> = api.state().get()?.unwrap_or_default();
    Ok(trees.into_iter().filter(|tree| tree.is_dir()))
}
