//! What the API answers, rightly and wrongly asked.

use serde_json::{Value, json};

use super::client::{Answer, get, post, send};
use super::server::Server;

fn order(id: &str) -> Value {
    json!({ "id": id, "item": "lamp", "amount": "120.5", "requester": "Ada" })
}

fn reply(id: &str) -> Value {
    json!({ "id": id, "by": "Bob", "comment": "so be it" })
}

fn check(answer: std::io::Result<Answer>, status: u16, part: &str) -> Value {
    let answer = answer.unwrap();
    assert!(answer.status == status && answer.body.contains(part), "{status} {part}: {answer:?}");
    answer.json()
}

#[test]
fn an_order_is_submitted_decided_and_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let at = server.address;
    let submitted = post(at, "/api/orders", &order("po-1")).unwrap();
    assert_eq!((submitted.status, submitted.header("location")), (201, Some("/api/orders/po-1")));
    check(post(at, "/api/orders", &order("po-1")), 200, "\"amount\":\"120.50\"");
    check(post(at, "/api/orders", &json!({ "item": "x", "amount": "1", "requester": "y" })), 201, "submitted");
    let other = json!({ "id": "po-1", "item": "lamp", "amount": "121", "requester": "Ada" });
    check(post(at, "/api/orders", &other), 409, "reads otherwise");

    check(post(at, "/api/orders/po-1/approve", &reply("a")), 200, "\"state\":\"paid\"");
    check(post(at, "/api/orders/po-1/approve", &reply("a")), 200, "\"state\":\"paid\"");
    for word in ["approve", "reject", "withdraw", "stop"] {
        check(post(at, &format!("/api/orders/po-1/{word}"), &reply("b")), 409, "order po-1 was approved by Bob");
    }
    let seen = check(get(at, "/api/orders/po-1"), 200, "order/po-1/decision");
    assert_eq!((seen["payments"].as_array().unwrap().len(), seen["steps"].as_array().unwrap().len()), (1, 3));

    post(at, "/api/orders", &order("po-2")).unwrap();
    post(at, "/api/orders", &order("po-3")).unwrap();
    check(post(at, "/api/orders/po-2/reject", &reply("a")), 200, "\"state\":\"rejected\"");
    check(post(at, "/api/orders/po-3/stop", &reply("a")), 200, "stopped by Bob: so be it");
    post(at, "/api/orders", &order("po-4")).unwrap();
    post(at, "/api/orders", &order("po-5")).unwrap();
    check(post(at, "/api/orders/po-5/withdraw", &reply("a")), 200, "\"state\":\"withdrawn\"");
    let lists = check(get(at, "/api/orders"), 200, "po-1");
    assert_eq!(lists["open"][0]["order"]["id"], "po-4");
}

#[test]
fn what_is_wrong_with_a_request_is_said_with_its_status() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let at = server.address;
    for path in ["/api/orders/po-9", "/api/orders/%2e%2e", "/api/orders/a%2Fb"] {
        check(get(at, path), 404, "there is no such order");
    }
    check(get(at, "/api/nothing"), 404, "there is nothing here");
    check(post(at, "/api/orders/po-9/approve", &reply("a")), 404, "there is no such order");
    check(post(at, "/api/orders", &json!({ "item": "lamp" })), 422, "amount");
    check(post(at, "/api/orders", &json!({ "item": 7 })), 422, "item");
    check(post(at, "/api/orders", &json!({ "price": "7" })), 422, "price");
    let long = json!({ "item": "x".repeat(201), "amount": "7", "requester": "Ada" });
    assert_eq!(check(post(at, "/api/orders", &long), 422, "1 to 200 characters")["field"], "item");
    check(post(at, "/api/orders", &json!({ "note": "x".repeat(17_000) })), 413, "");
    let json = ("content-type", "application/json");
    check(send(at, "POST /api/orders", &[json], "{"), 400, "");
    check(send(at, "POST /api/orders", &[], "{}"), 415, "");
    assert_eq!(send(at, "DELETE /api/orders", &[], "").unwrap().status, 405);
    let foreign = send(at, "POST /api/orders", &[json, ("sec-fetch-site", "cross-site")], &order("po-1").to_string());
    assert_eq!(foreign.unwrap().status, 403);

    post(at, "/api/orders", &order("po-1")).unwrap();
    check(post(at, "/api/orders/po-1/approve", &json!({ "id": "a" })), 422, "\"field\":\"by\"");
    check(get(at, "/api/orders/po-1"), 200, "\"verdict\":null");
}
