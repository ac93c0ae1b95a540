//! Killed again and again, between and during requests and waits: what was acknowledged is there, what was not is sent
//! again, and nobody is paid twice.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::client::{Answer, get, post};
use super::server::Server;

const SEED: u64 = 20_260_726;
const CLIENTS: usize = 4;
const ORDERS: usize = 16;
const KILLS: usize = 20;
/// After so long it hangs.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Where the server is, and the how many-th it is.
#[derive(Default)]
struct Whereabouts {
    latest: Mutex<(usize, Option<SocketAddr>)>,
    changed: Condvar,
    /// Requests that a kill has torn, their answers never known.
    torn: AtomicUsize,
}

impl Whereabouts {
    fn publish(&self, address: SocketAddr) {
        let mut latest = self.latest.lock().unwrap();
        *latest = (latest.0 + 1, Some(address));
        self.changed.notify_all();
    }

    /// The first server after the `seen`-th.
    fn after(&self, seen: usize) -> (usize, SocketAddr) {
        let latest = self.latest.lock().unwrap();
        let (latest, waited) = self.changed.wait_timeout_while(latest, TIMEOUT, |latest| latest.0 <= seen).unwrap();
        assert!(!waited.timed_out(), "no server comes after the {seen}-th");
        (latest.0, latest.1.unwrap())
    }
}

/// One who sends every request until it is answered.
struct Client<'a> {
    whereabouts: &'a Whereabouts,
    acknowledged: Sender<()>,
    server: (usize, SocketAddr),
}

impl Client<'_> {
    fn send(&mut self, path: &str, body: &Value) -> Answer {
        loop {
            match post(self.server.1, path, body) {
                Ok(answer) if answer.status == 503 => {}
                Ok(answer) => {
                    // Nobody listens any more once there were kills enough.
                    let _ = self.acknowledged.send(());
                    return answer;
                }
                // It was killed: the next one tells.
                Err(error) => {
                    let is_torn = error.kind() != ErrorKind::ConnectionRefused;
                    self.whereabouts.torn.fetch_add(usize::from(is_torn), Ordering::Relaxed);
                    self.server = self.whereabouts.after(self.server.0);
                }
            }
        }
    }

    fn submit(&mut self, id: &str) {
        let order = json!({ "id": id, "item": "lamp", "amount": "120", "requester": "Ada" });
        let answer = self.send("/api/orders", &order);
        assert!(matches!(answer.status, 200 | 201), "{answer:?}");
    }

    fn answer(&mut self, id: &str, word: &str) -> u16 {
        let reply = json!({ "id": format!("{id}-{word}"), "by": word, "comment": "" });
        self.send(&format!("/api/orders/{id}/{word}"), &reply).status
    }
}

/// What the clients were told: an order, and the word that counts.
type Told = Vec<(String, &'static str)>;

/// Sends orders and answers; every fourth order is answered by rivals.
fn work(number: usize, whereabouts: &Whereabouts, acknowledged: &Sender<()>) -> Told {
    let client = || Client { whereabouts, acknowledged: acknowledged.clone(), server: whereabouts.after(0) };
    let mut own = client();
    let mut told = Told::new();
    for order in 0..ORDERS {
        let id = format!("po-{number}-{order}");
        own.submit(&id);
        let word = ["approve", "reject", "withdraw", "approve"][order % 4];
        if order % 4 < 3 {
            assert_eq!(own.answer(&id, word), 200, "{id}");
            told.push((id, word));
            continue;
        }
        let (first, second) = thread::scope(|scope| {
            let rival = scope.spawn(|| client().answer(&id, "reject"));
            (own.answer(&id, word), rival.join().unwrap())
        });
        match (first, second) {
            (200, 409) => told.push((id, word)),
            (409, 200) => told.push((id, "reject")),
            both => panic!("{id}: {both:?}"),
        }
    }
    told
}

/// Starts the server, and kills it after some acknowledgements, while others are asked for.
fn kill_on(store: &Path, whereabouts: &Whereabouts, acknowledged: &Receiver<()>) -> Server {
    let mut chance = StdRng::seed_from_u64(SEED);
    for _ in 0..KILLS {
        let server = Server::start(store, &[]);
        whereabouts.publish(server.address);
        for _ in 0..chance.random_range(1..=8) {
            acknowledged.recv().expect("there is more work than kills");
        }
        server.kill();
    }
    let server = Server::start(store, &[]);
    whereabouts.publish(server.address);
    server
}

#[test]
fn orders_survive_kills_between_and_during_requests() {
    let folder = tempfile::tempdir().unwrap();
    let whereabouts = Whereabouts::default();
    let (sender, acknowledged) = channel();
    let (told, server) = thread::scope(|scope| {
        let (whereabouts, sender) = (&whereabouts, &sender);
        let clients: Vec<_> =
            (0..CLIENTS).map(|number| scope.spawn(move || work(number, whereabouts, sender))).collect();
        let server = kill_on(folder.path(), whereabouts, &acknowledged);
        let told: Told = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
        (told, server)
    });
    assert_eq!(told.len(), CLIENTS * ORDERS);
    let torn = whereabouts.torn.load(Ordering::Relaxed);
    assert!(torn >= KILLS / 2, "{torn} requests were torn by {KILLS} kills");
    for (id, word) in told {
        // It was told as soon as it was approved; the payment may have been left to the last server.
        let order = state_after(&server, &id, "approved");
        let (state, payments) = match word {
            "approve" => ("paid", 1),
            "reject" => ("rejected", 0),
            _ => ("withdrawn", 0),
        };
        assert_eq!(order["state"], state, "{order}");
        assert_eq!(order["verdict"]["by"], word, "{order}");
        assert_eq!(order["payments"].as_array().unwrap().len(), payments, "{order}");
        assert_eq!(order["messages"].as_array().unwrap().len(), 2, "{order}");
    }
    let lists = get(server.address, "/api/orders").unwrap().json();
    assert_eq!(
        (lists["open"].as_array().unwrap().len(), lists["closed"].as_array().unwrap().len()),
        (0, CLIENTS * ORDERS)
    );
}

/// Asks until an order is not in `state` any more.
fn state_after(server: &Server, id: &str, state: &str) -> Value {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let order = get(server.address, &format!("/api/orders/{id}")).unwrap().json();
        if order["state"] != state {
            return order;
        }
        assert!(Instant::now() < deadline, "{order}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn timers_go_on_over_kills_and_remind_once() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--remind-after", "500ms", "--escalate-after", "500ms", "--expire-after", "500ms"];
    let server = Server::start(folder.path(), &args);
    let order = json!({ "id": "po-1", "item": "lamp", "amount": "120", "requester": "Ada" });
    assert_eq!(post(server.address, "/api/orders", &order).unwrap().status, 201);
    let mut server = server;
    for state in ["submitted", "asked", "reminded"] {
        state_after(&server, "po-1", state);
        server.kill();
        server = Server::start(folder.path(), &args);
    }
    let order = state_after(&server, "po-1", "escalated");
    assert_eq!(order["state"], "expired", "{order}");
    let messages = order["messages"].as_array().unwrap();
    let to: Vec<_> = messages.iter().map(|message| message["to"].as_str().unwrap()).collect();
    assert_eq!(to, ["approver", "approver", "manager", "Ada"]);
}
