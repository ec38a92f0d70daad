//! Many clients at once on a log that is synced: no client waits for ever, nothing is lost or
//! doubled.

use std::collections::BTreeSet;
use std::sync::Mutex;

use model::StorePolicy;

use crate::client::{Http, http_too};
use crate::common::{Directory, connect, journal, start};

const CLIENTS: usize = 16;
const ROUNDS: usize = 40;

#[test]
fn crowd_of_http_clients_is_served() {
    let directory = Directory::new("http-crowd");
    let server = start(http_too(journal(&directory, StorePolicy::Always)));
    let received = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (server, received) = (&server, &received);
            scope.spawn(move || {
                let mut http = Http::to(server);
                for round in 0..ROUNDS {
                    let body = format!("{client}-{round}");
                    http.post("/queues/q/messages", &body).says(201, "message");
                }
            });
            scope.spawn(move || {
                let mut http = Http::to(server);
                for _ in 0..ROUNDS {
                    let (body, lease) = http.receive("q");
                    assert_eq!(http.ask(&format!("DELETE /leases/{lease}")).status, 204);
                    received.lock().unwrap().push(body);
                }
            });
        }
        // Others keep the reactors awake and asleep in turns.
        scope.spawn(|| {
            let mut worker = connect(&server);
            for _ in 0..ROUNDS {
                worker.put("other");
                let reserved = worker.ask("reserve");
                worker.line();
                let id = reserved.split(' ').nth(1).unwrap();
                assert_eq!(worker.ask(&format!("delete {id}")), "DELETED");
            }
        });
    });
    let received = received.into_inner().unwrap();
    assert_eq!(received.len(), CLIENTS * ROUNDS);
    assert_eq!(received.iter().collect::<BTreeSet<_>>().len(), CLIENTS * ROUNDS, "each once");
    Http::to(&server).ask("GET /queues/q").says(404, "no queue q");
}
