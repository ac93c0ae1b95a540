//! What is promised of signals, in virtual time on the in-memory queue.

mod buffer;
mod cost;
mod crashes;
mod delivery;
mod ids;
mod limits;
mod objects;
mod repair;
mod timeouts;
mod torrent;
