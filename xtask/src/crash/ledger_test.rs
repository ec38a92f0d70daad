//! Each rule of the ledger, kept and broken.

use super::*;

const READY: Place = Place { state: "ready", priority: Some(1) };

/// A ledger that knows one confirmed job: number 0, id 10.
fn one_job() -> (Ledger, Vec<u8>) {
    let mut ledger = Ledger::default();
    let (number, body) = ledger.intend_put(b"filler");
    ledger.inserted(number, 10, READY);
    (ledger, body)
}

fn found(jobs: &[(u64, &[u8])]) -> BTreeMap<u64, Vec<u8>> {
    jobs.iter().map(|&(id, body)| (id, body.to_vec())).collect()
}

/// The ledger's only complaint.
fn complaint(ledger: &Ledger) -> &str {
    assert_eq!(ledger.violations.len(), 1, "{:?}", ledger.violations);
    &ledger.violations[0]
}

#[test]
fn confirmed_job_present_is_fine() {
    let (mut ledger, body) = one_job();
    ledger.settle(&found(&[(10, &body)]));
    assert_eq!(ledger.violations, Vec::<String>::new());
    assert_eq!(ledger.places(), [(0, 10, READY)]);
    assert_eq!((ledger.open_ids(), ledger.gone_ids()), (vec![10], vec![]));
}

#[test]
fn confirmed_job_missing_is_lost() {
    let (mut ledger, _) = one_job();
    ledger.settle(&found(&[]));
    assert_eq!(complaint(&ledger), "job 0 (id Some(10)) is lost");
}

#[test]
fn delivered_job_missing_is_lost() {
    let mut ledger = Ledger::default();
    let (number, body) = ledger.intend_put(b"");
    assert_eq!(ledger.delivered(3, &body), Some(number));
    ledger.settle(&found(&[]));
    assert_eq!(complaint(&ledger), "job 0 (id Some(3)) is lost");
}

#[test]
fn unanswered_put_may_be_there() {
    for present in [true, false] {
        let mut ledger = Ledger::default();
        let (_, body) = ledger.intend_put(b"");
        ledger.settle(&if present { found(&[(4, &body)]) } else { found(&[]) });
        assert_eq!(ledger.violations, Vec::<String>::new());
        assert_eq!(ledger.count_there(), usize::from(present));
    }
}

#[test]
fn job_found_gone_must_not_return() {
    let mut ledger = Ledger::default();
    let (_, body) = ledger.intend_put(b"");
    ledger.settle(&found(&[]));
    ledger.settle(&found(&[(4, &body)]));
    assert_eq!(complaint(&ledger), "job 0 (id 4) came back after it was gone");
}

#[test]
fn confirmed_delete_must_not_return() {
    let (mut ledger, body) = one_job();
    ledger.intend_delete(0);
    ledger.deleted(0);
    assert_eq!(ledger.gone_ids(), [10]);
    ledger.settle(&found(&[(10, &body)]));
    assert_eq!(complaint(&ledger), "job 0 (id 10) came back after it was gone");
}

#[test]
fn unanswered_delete_is_open_until_check() {
    let (mut ledger, body) = one_job();
    ledger.intend_delete(0);
    ledger.settle(&found(&[(10, &body)]));
    assert_eq!((ledger.violations.len(), ledger.count_there()), (0, 1));
    ledger.settle(&found(&[]));
    assert_eq!(complaint(&ledger), "job 0 (id Some(10)) is lost");
}

#[test]
fn job_must_be_single_and_unchanged() {
    let (mut ledger, body) = one_job();
    ledger.settle(&found(&[(10, &body), (11, &body)]));
    assert!(ledger.violations.iter().any(|v| v == "job 0 is there twice, as 10 and 11"));
    let (mut ledger, mut body) = one_job();
    body.push(0);
    assert_eq!(ledger.delivered(10, &body), None);
    assert_eq!(complaint(&ledger), "job 0 (id 10) has a changed body");
}

#[test]
fn unsent_bodies_are_reported() {
    let (mut ledger, _) = one_job();
    assert_eq!(ledger.delivered(11, b"job 7 x"), None);
    assert_eq!(ledger.delivered(12, b"\0\0"), None);
    assert_eq!(ledger.violations.len(), 2);
}

#[test]
fn id_stays_with_its_job() {
    let (mut ledger, body) = one_job();
    let (number, _) = ledger.intend_put(b"");
    ledger.inserted(number, 10, READY);
    assert_eq!(complaint(&ledger), "id 10 names job 0 and job 1");
    ledger.violations.clear();
    ledger.delivered(12, &body);
    assert_eq!(complaint(&ledger), "job 0 was Some(10) and is now 12");
}

#[test]
fn late_reply_undoes_no_newer_move() {
    let (mut ledger, body) = one_job();
    let moves = ledger.unplace(0);
    ledger.delivered(10, &body);
    ledger.placed(0, moves, READY);
    assert_eq!(ledger.places(), []);
}
