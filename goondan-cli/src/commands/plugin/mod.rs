//! Owns `goondan plugin`: what extensions there are, in this program and in libraries.

mod child;
mod describe;
mod inspect;
mod list;
mod listed;
mod pack;

pub(crate) use child::libraries;
pub(crate) use describe::describe;
pub(crate) use inspect::inspect;
pub(crate) use list::list;
pub(crate) use pack::pack;
