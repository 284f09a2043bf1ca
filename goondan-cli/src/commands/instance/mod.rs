//! `goondan instance`: lists, shows, decides, takes back, deletes, repairs, exports and imports stored conversations.

mod decide;
mod delete;
pub(super) mod find;
mod list;
mod repair;
mod rewind;
mod show;
mod transfer;

pub(crate) use decide::decide;
pub(crate) use delete::delete;
pub(crate) use list::list;
pub(crate) use repair::repair;
pub(crate) use rewind::rewind;
pub(crate) use show::show;
pub(crate) use transfer::{export, import};
