//! TREE-01: what an agent or a repository has written makes git run no program, and hides nothing.

mod agent;
mod checks;
mod names;
mod plain;
mod repository;
mod trap;
