//! HTTP/1.1 as far as a test needs it: one request per connection, and an answer that is whole or an error.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// After so long the server hangs, and the test with it.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A whole answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    head: String,
    pub(super) body: String,
}

impl Answer {
    /// The value of a header; its name in small letters.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| *found == name).map(|(_, value)| value)
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

/// Sends a request, and reads its answer to the end.
pub(super) fn send(server: SocketAddr, line: &str, headers: &[(&str, &str)], body: &str) -> io::Result<Answer> {
    let mut stream = TcpStream::connect(server)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    let head =
        format!("{line} HTTP/1.1\r\nhost: {server}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}");
    // A server that refuses a body may answer before it has read all of it.
    let sent = stream.write_all(format!("{head}\r\n{body}").as_bytes());
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    match parse(&answer) {
        Some(answer) => Ok(answer),
        None => Err(sent.and(read).err().unwrap_or_else(|| ErrorKind::UnexpectedEof.into())),
    }
}

/// `None` when it is not whole.
fn parse(bytes: &[u8]) -> Option<Answer> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let answer = Answer { status, head: head.to_owned(), body: body.to_owned() };
    let length: usize = answer.header("content-length").unwrap_or("0").parse().ok()?;
    (answer.body.len() == length).then_some(answer)
}

/// Sends JSON.
pub(super) fn post(server: SocketAddr, path: &str, body: &Value) -> io::Result<Answer> {
    send(server, &format!("POST {path}"), &[("content-type", "application/json")], &body.to_string())
}

/// Sends a form as a browser does. Values are plain words.
pub(super) fn post_form(server: SocketAddr, path: &str, fields: &[(&str, &str)]) -> io::Result<Answer> {
    let fields: Vec<_> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
    send(server, &format!("POST {path}"), &[("content-type", "application/x-www-form-urlencoded")], &fields.join("&"))
}

pub(super) fn get(server: SocketAddr, path: &str) -> io::Result<Answer> {
    send(server, &format!("GET {path}"), &[], "")
}
