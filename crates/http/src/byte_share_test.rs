use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;

/// The bytes of a share.
const ALL: usize = 2 * FEW_BYTES;

fn share(bytes_max: usize) -> ByteShare {
    ByteShare::new(bytes_max, &Arc::default())
}

fn take(share: &ByteShare, bytes: usize) -> Result<Permit> {
    let mut permit = share.permit();
    permit.take(bytes).map(|()| permit)
}

fn is_busy<T>(result: Result<T>) -> bool {
    result.is_err_and(|problem| problem.kind == "busy")
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

/// Runs a test in a runtime, without a wait for its timers.
fn patiently(test: impl FnOnce(ByteShare)) {
    let runtime = runtime();
    let _entered = runtime.enter();
    test(ByteShare::with_silence(ALL, Duration::from_secs(3600), &Arc::default()));
}

fn now<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

fn permit(follower: &Follower, bytes: usize) -> Option<Permit> {
    now(follower.permit(bytes)).and_then(|permit| permit.unwrap())
}

/// Bytes that are held, which all are within the share.
fn held(share: &ByteShare) -> usize {
    let held = share.0.held_bytes.load(Ordering::Relaxed);
    assert_eq!(held, share.state().bytes);
    held
}

#[test]
fn share_lets_one_permit_exceed_it() {
    let share = share(10);
    let mut first = take(&share, 8).unwrap();
    assert_eq!(first.bytes, 8);
    let beyond = take(&share, 3).unwrap();
    assert!(beyond.is_beyond && beyond.bytes == 0);
    assert!(is_busy(take(&share, 3)));
    assert!(is_busy(first.take(20)));
    assert!(first.take(10).is_ok());
    assert!(is_busy(take(&share, 1)));
    drop(beyond);
    assert!(first.take(20).is_ok(), "it is its turn");
    assert!(first.take(90).is_ok(), "and stays so");
    drop(first);
    assert!(!take(&share, 10).unwrap().is_beyond);
}

#[test]
fn waiting_permits_never_deadlock() {
    let share = share(10);
    let work = |share: ByteShare| async move {
        let mut permit = share.permit();
        for part in 1..=8 {
            permit.await_more(part, Duration::from_secs(3600)).await.unwrap();
            yield_now().await;
        }
    };
    runtime().block_on(async {
        let works: Vec<_> = (0..20).map(|_| tokio::spawn(work(share.clone()))).collect();
        for work in works {
            work.await.unwrap();
        }
    });
    assert!(!take(&share, 10).unwrap().is_beyond);
    assert!(share.state().waiting.is_empty());
    assert_eq!((held(&share), share.state().waiting_bytes), (0, 0));
}

#[test]
fn taken_bytes_are_counted() {
    let share = share(ALL);
    let held = || share.0.held_bytes.load(Ordering::Relaxed);
    let mut first = take(&share, 100).unwrap();
    first.take(1_000).unwrap();
    let beyond = take(&share, 10 * ALL).unwrap();
    assert_eq!(held(), 1_000 + 10 * ALL);
    assert!(is_busy(take(&share, ALL)));
    assert_eq!(held(), 1_000 + 10 * ALL, "nothing was taken");
    drop((first, beyond));
    assert_eq!(held(), 0);
    let bytes = Bytes::from(vec![b'x'; FEW_BYTES]);
    let bytes = take(&share, ALL).unwrap().hold_within(bytes).unwrap();
    assert_eq!(held(), FEW_BYTES);
    drop(bytes);
    assert_eq!(held(), 0);
}

#[test]
fn long_wait_for_bytes_is_refused() {
    let share = share(10);
    let (_all, _beyond) = (take(&share, 10).unwrap(), take(&share, 1).unwrap());
    let mut permit = share.permit();
    assert!(is_busy(runtime().block_on(permit.await_more(1, Duration::from_millis(1)))));
    assert!(share.state().waiting.is_empty());
}

#[test]
fn bytes_hold_their_permit_until_dropped() {
    let share = share(FEW_BYTES);
    let _beyond = take(&share, 2 * FEW_BYTES).unwrap();
    let large = Bytes::from(vec![b'x'; FEW_BYTES]);
    let held = share.permit().hold_within(large.clone()).unwrap();
    assert_eq!(held, large);
    let part = held.slice(1..2);
    drop(held);
    assert!(is_busy(share.permit().hold_within(large.clone())));
    assert!(share.permit().hold_within(Bytes::from_static(b"few")).is_ok());
    drop(part);
    assert!(share.permit().hold_within(large).is_ok());
}

#[test]
fn excess_of_a_permit_is_freed() {
    let share = share(4 * FEW_BYTES);
    let large = Bytes::from(vec![b'x'; FEW_BYTES]);
    let held = take(&share, 4 * FEW_BYTES).unwrap().hold_within(large.clone()).unwrap();
    let others = take(&share, 3 * FEW_BYTES).unwrap();
    assert!(!others.is_beyond);
    let _beyond = take(&share, 1).unwrap();
    assert!(is_busy(share.permit().hold_within(large)));
    drop(held);
    assert!(take(&share, FEW_BYTES).is_ok());
}

#[test]
fn longest_silent_client_ends_first() {
    runtime().block_on(async {
        let share = ByteShare::with_silence(ALL, Duration::from_millis(1), &Arc::default());
        let [first, second, gone] = [(); 3].map(|()| Arc::new(Notify::new()));
        let now = Instant::now();
        let _second = share.silence(now, &second);
        let first_silence = share.silence(now - Duration::from_secs(1), &first);
        drop(share.silence(now - Duration::from_secs(2), &gone));
        let told = async {
            first.notified().await;
            drop(first_silence);
        };
        tokio::select! {
            biased;
            () = told => {}
            () = second.notified() => panic!("the other first"),
            never = share.end_silent() => match never {},
        }
        tokio::select! {
            biased;
            () = gone.notified() => panic!("it is silent no more"),
            () = second.notified() => {}
            never = share.end_silent() => match never {},
        }
    });
}

#[test]
fn events_hold_permits_until_read() {
    patiently(|share| {
        let follower = share.follower(Hangup::default());
        assert_eq!(
            now(follower.permit(FEW_BYTES - 1)).map(|it| it.is_ok_and(|it| it.is_none())),
            Some(true)
        );
        let first = permit(&follower, FEW_BYTES).unwrap();
        assert!(now(follower.permit(FEW_BYTES + 1)).is_none());
        let event = first.hold(vec![b'x'; 3 * ALL].into());
        assert_eq!(held(&share), 3 * ALL, "it is as long as it became");
        assert!(now(follower.permit(FEW_BYTES)).is_none());
        drop(event);
        assert_eq!(held(&share), 0);
        let larger_than_all = permit(&follower, 2 * ALL).unwrap();
        assert!(now(follower.permit(FEW_BYTES)).is_none());
        drop(larger_than_all);
        assert_eq!(held(&share), 0);
        assert!(share.state().waiting.is_empty());
    });
}

#[test]
fn latest_reader_goes_first() {
    patiently(|share| {
        let [never, first, last] = [(); 3].map(|()| share.follower(Hangup::default()));
        drop(permit(&first, ALL));
        drop(permit(&last, ALL));
        let all = permit(&never, ALL).unwrap();
        let mut context = Context::from_waker(Waker::noop());
        let mut lines = [&never, &first, &last].map(|it| Box::pin(it.permit(ALL)));
        let mut asked = || lines.each_mut().map(|it| it.as_mut().poll(&mut context));
        assert!(asked().iter().all(Poll::is_pending));
        drop(all);
        let granted = asked();
        assert_eq!(granted.each_ref().map(Poll::is_ready), [false, false, true]);
    });
}

#[test]
fn slowest_reader_is_refused_first() {
    patiently(|share| {
        let [reader, other] = [(); 2].map(|()| share.follower(Hangup::default()));
        drop(permit(&reader, ALL));
        let all = permit(&other, ALL).unwrap();
        let mut context = Context::from_waker(Waker::noop());
        let mut others: Vec<_> = (0..WAITING_MIN).map(|_| Box::pin(other.permit(ALL))).collect();
        for other in &mut others {
            assert!(other.as_mut().poll(&mut context).is_pending());
        }
        assert_eq!(now(other.permit(ALL)).map(|permit| permit.is_err()), Some(true));
        let mut reading = Box::pin(reader.permit(ALL));
        assert!(reading.as_mut().poll(&mut context).is_pending());
        let asked = others.iter_mut().map(|it| it.as_mut().poll(&mut context));
        assert_eq!(asked.map(|it| it.is_ready()).collect::<Vec<_>>(), {
            let mut refused = vec![false; WAITING_MIN];
            refused[WAITING_MIN - 1] = true;
            refused
        });
        drop(all);
        assert!(matches!(reading.as_mut().poll(&mut context), Poll::Ready(Ok(Some(_)))));
        drop((others, reading));
        assert_eq!((held(&share), share.state().waiting_bytes), (0, 0));
    });
}

#[test]
fn dropped_wait_leaves_the_line() {
    patiently(|share| {
        let follower = share.follower(Hangup::default());
        let half = permit(&follower, FEW_BYTES).unwrap();
        let mut context = Context::from_waker(Waker::noop());
        let mut large = Box::pin(follower.permit(ALL));
        assert!(large.as_mut().poll(&mut context).is_pending());
        let mut small = Box::pin(follower.permit(FEW_BYTES));
        assert!(small.as_mut().poll(&mut context).is_pending(), "it would pass by");
        drop(large);
        assert!(small.as_mut().poll(&mut context).is_ready());
        drop(half);
    });
}

#[test]
fn longest_unread_event_closes_its_connection() {
    runtime().block_on(async {
        let share = ByteShare::with_silence(ALL, Duration::ZERO, &Arc::default());
        let [first, second, reader] = [(); 3].map(|()| share.follower(Hangup::default()));
        let left = first.permit(FEW_BYTES).await.unwrap().unwrap();
        let _left = second.permit(FEW_BYTES).await.unwrap().unwrap();
        let closed = async {
            first.hangup.notified().await;
            drop(left);
        };
        let (permit, ()) = tokio::join!(reader.permit(FEW_BYTES), closed);
        assert!(permit.unwrap().is_some());
    });
}
