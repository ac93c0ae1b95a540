//! The pages, as a browser without scripts uses them.

use std::net::SocketAddr;

use super::client::{Answer, get, post_form};
use super::server::Server;

/// The value of the first hidden id on a page.
fn hidden_id(page: &Answer) -> String {
    let (_, rest) = page.body.split_once("name=\"id\" value=\"").expect("a form has an id");
    rest.split_once('"').unwrap().0.to_owned()
}

/// Follows the redirect that answers a form.
fn follow(at: SocketAddr, answer: &Answer) -> Answer {
    assert_eq!(answer.status, 303, "{answer:?}");
    get(at, answer.header("location").unwrap()).unwrap()
}

#[test]
fn an_order_goes_through_forms_and_redirects() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let at = server.address;
    let id = hidden_id(&get(at, "/").unwrap());
    let fields = [("id", id.as_str()), ("item", "%3Cb%3Elamp"), ("amount", "120"), ("requester", "Ada"), ("note", "")];
    let clicks = [(); 2].map(|()| post_form(at, "/orders", &fields).unwrap());
    let page = clicks.map(|click| follow(at, &click)).into_iter().next_back().unwrap();
    assert!(page.body.contains("waits for the approver") || page.body.contains("submitted"), "{page:?}");
    assert!(page.body.contains("&lt;b&gt;lamp") && !page.body.contains("<b>lamp"));
    assert!(page.header("content-security-policy").unwrap().starts_with("default-src 'none'"));

    let path = format!("/orders/{id}/decision");
    let reply_id = hidden_id(&page);
    let fields = [("id", reply_id.as_str()), ("word", "approve"), ("by", "Bob"), ("comment", "fine")];
    let clicks = [(); 2].map(|()| post_form(at, &path, &fields).unwrap());
    for click in clicks {
        let page = follow(at, &click);
        assert_eq!(page.body.matches("<dt>Paid</dt>").count(), 1, "{page:?}");
    }
    let late = post_form(at, &path, &[("id", "late"), ("word", "reject"), ("by", "Eve"), ("comment", "")]).unwrap();
    assert!(late.status == 409 && late.body.contains("was approved by Bob"), "{late:?}");
    let home = get(at, "/").unwrap();
    assert_eq!(home.body.matches("&lt;b&gt;lamp").count(), 1);
}

#[test]
fn a_form_that_is_refused_keeps_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let at = server.address;
    let fields = [("item", "lamp"), ("amount", "much"), ("requester", "Ada"), ("note", "soon")];
    let page = post_form(at, "/orders", &fields).unwrap();
    assert!(page.status == 422 && page.body.contains("Amount: a number like"), "{page:?}");
    for kept in ["value=\"lamp\"", "value=\"much\"", "value=\"Ada\"", "\nsoon</textarea>"] {
        assert!(page.body.contains(kept), "{kept} in {page:?}");
    }
    let nowhere = get(at, "/orders/po-9").unwrap();
    assert!(nowhere.status == 404 && nowhere.body.contains("There is no such order"), "{nowhere:?}");
    let undecided = post_form(at, "/orders/po-9/decision", &[("by", "Bob")]).unwrap();
    assert_eq!(undecided.status, 404);
}
