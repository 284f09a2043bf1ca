//! `goondan plugin`: the extensions of this program and of libraries.

mod child;
mod describe;
mod inspect;
mod libraries;
mod list;
mod listed;
mod pack;

pub(crate) use describe::describe;
pub(crate) use inspect::inspect;
pub(crate) use libraries::libraries;
pub(crate) use list::list;
pub(crate) use pack::pack;
