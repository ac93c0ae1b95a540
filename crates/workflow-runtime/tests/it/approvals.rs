//! Purchase orders over real HTTP: the example's own program, asked rightly and wrongly, stopped and killed.

mod answers;
mod client;
mod kills;
mod pages;
mod server;
#[cfg(unix)]
mod stops;
