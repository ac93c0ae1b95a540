//! Stopped as asked, and not started where that cannot be.

use std::io::Write;
use std::net::{TcpListener, TcpStream};

use serde_json::json;

use super::client::{get, post};
use super::server::{Server, command};

#[test]
fn a_server_that_is_asked_to_stop_ends_well_whoever_holds_a_connection() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["TERM", "INT"] {
        let server = Server::start(folder.path(), &[]);
        let order = json!({ "id": name, "item": "lamp", "amount": "120", "requester": "Ada" });
        assert_eq!(post(server.address, "/api/orders", &order).unwrap().status, 201);
        let _idle = TcpStream::connect(server.address).unwrap();
        let mut half = TcpStream::connect(server.address).unwrap();
        half.write_all(b"POST /api/orders HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{").unwrap();
        server.signal(name);
        let output = server.finish();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{told}");
        assert_eq!(told, "finishing what is in hand; Ctrl-C again stops at once\n");
    }
    let server = Server::start(folder.path(), &[]);
    for name in ["TERM", "INT"] {
        assert_eq!(get(server.address, &format!("/api/orders/{name}")).unwrap().status, 200);
    }
}

fn check_refused(store: &std::path::Path, args: &[&str], code: i32, part: &str) {
    let output = command(store, args).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{told}");
    assert!(told.lines().count() == 1 && told.starts_with("error: ") && told.contains(part), "{told}");
}

#[test]
fn a_server_that_cannot_start_says_why_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    check_refused(folder.path(), &["--listen", &address], 4, &format!("cannot listen on {address}"));
    check_refused(folder.path(), &["--listen", "here"], 2, "--listen needs an address");
    let server = Server::start(folder.path(), &[]);
    check_refused(folder.path(), &["--listen", "127.0.0.1:0"], 3, "is in use by process");
    drop(server);
    let file = folder.path().join("file");
    std::fs::write(&file, "text").unwrap();
    check_refused(&file, &["--listen", "127.0.0.1:0"], 3, "cannot be made");
}
